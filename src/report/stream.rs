//! Answers that are files themselves: catalogs and pictures.

use std::io::{self, Write};

use super::Answer;

/// A file as it would stand on disk. What comes from input is in it as it is: it is for programs to read.
#[derive(Debug)]
pub struct StreamAnswer {
    /// The file.
    pub text: String,
}

impl Answer for StreamAnswer {
    fn json(&self) -> String {
        self.text.clone()
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.text.as_bytes())
    }

    fn verbatim(&self) -> Option<&str> {
        Some(&self.text)
    }
}
