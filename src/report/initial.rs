//! What `bundle init` has written.

use std::io::{self, Write};

use super::{Answer, json, pretty, printable};
use crate::actions::init::Initial;

/// More sources than this are counted instead of listed.
const LISTED: usize = 20;

impl Answer for Initial {
    fn json(&self) -> String {
        let directory = self.directory.display().to_string();
        pretty(&json::Initial {
            schema: "olmkit.initial/v1",
            directory,
            files: self.files.clone(),
            unused: self.unused.clone(),
            missing: self.missing.clone(),
            next: self.next.clone(),
        })
    }

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        for file in &self.files {
            writeln!(out, "{}", printable(&self.directory.join(file).display().to_string()))?;
        }
        for other in self.unused.iter().take(LISTED) {
            writeln!(talk, "also found, not used: {}", printable(other))?;
        }
        if let Some(more) = self.unused.len().checked_sub(LISTED).filter(|more| *more > 0) {
            writeln!(talk, "also found, not used: {more} more; `--output json` lists all")?;
        }
        for missing in &self.missing {
            writeln!(talk, "still missing in the package file: {}", printable(missing))?;
        }
        Ok(())
    }

    fn next(&self) -> Option<String> {
        Some(self.fill_in.clone().unwrap_or_else(|| format!("look it through, then run `{}`", self.next)))
    }
}
