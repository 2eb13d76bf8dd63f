//! What `bundle init` has written.

use std::io::{self, Write};
use std::path::PathBuf;

use super::{Answer, json, pretty, printable};

/// A package file and the files that it names.
#[derive(Debug)]
pub struct InitAnswer {
    /// The directory they are in.
    pub directory: PathBuf,
    /// Their names.
    pub files: Vec<String>,
}

impl Answer for InitAnswer {
    fn json(&self) -> String {
        let directory = self.directory.display().to_string();
        pretty(&json::Initial { schema: "olmkit.initial/v1", directory, files: self.files.clone() })
    }

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        for file in &self.files {
            writeln!(out, "{}", printable(&self.directory.join(file).display().to_string()))?;
        }
        writeln!(talk, "look it through, then run `olmkit bundle generate`")
    }
}
