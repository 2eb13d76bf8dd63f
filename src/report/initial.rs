//! What `bundle init` has written.

use std::io::{self, Write};
use std::path::PathBuf;

use super::{Answer, json, pretty, printable};

/// More sources than this are counted instead of listed.
const LISTED: usize = 20;

/// A package file and the files that it names.
#[derive(Debug)]
pub struct InitAnswer {
    /// The directory they are in.
    pub directory: PathBuf,
    /// Their names.
    pub files: Vec<String>,
    /// Other sources of manifests that were seen, as keys of the package file; and files that are not YAML.
    pub unused: Vec<String>,
    /// What the package file still lacks.
    pub missing: Vec<String>,
    /// What to write into the package file before the next command can work.
    pub fill_in: Option<String>,
    /// The next command.
    pub next: String,
}

impl Answer for InitAnswer {
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
