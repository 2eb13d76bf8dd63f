//! Answers that are files themselves: catalogs and pictures.

use std::io::{self, Write};

use super::Answer;
use crate::actions::results::FileText;

impl Answer for FileText {
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
