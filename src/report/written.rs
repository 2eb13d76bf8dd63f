//! Files that were written to a directory.

use std::io::{self, Write};

use super::{Answer, json, pretty, printable};
use crate::actions::results::Written;

impl Answer for Written {
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

    fn notes(&self) -> &[String] {
        self.note.as_slice()
    }
}
