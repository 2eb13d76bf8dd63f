//! Files that were written to a directory.

use std::io::{self, Write};
use std::path::PathBuf;

use super::{Answer, json, pretty, printable};

/// Files of a directory.
#[derive(Debug)]
pub struct WrittenAnswer {
    /// The directory.
    pub directory: PathBuf,
    /// The files below it.
    pub files: Vec<String>,
}

impl Answer for WrittenAnswer {
    fn json(&self) -> String {
        pretty(&json::Written {
            schema: "olmkit.written/v1",
            directory: self.directory.display().to_string(),
            files: self.files.clone(),
        })
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        for file in &self.files {
            writeln!(out, "{}", printable(&self.directory.join(file).display().to_string()))?;
        }
        Ok(())
    }
}
