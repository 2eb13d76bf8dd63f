//! The objects that `bundle manifests` renders, with warnings about them.

use std::io::{self, Write};

use super::Answer;
use crate::actions::manifests::{Content, Rendered};

impl Content {
    fn answer(&self) -> &dyn Answer {
        match self {
            Self::Stream(text) => text,
            Self::Files(written) => written,
        }
    }
}

impl Answer for Rendered {
    fn json(&self) -> String {
        self.content.answer().json()
    }

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        self.content.answer().text(out, talk)
    }

    fn verbatim(&self) -> Option<&str> {
        self.content.answer().verbatim()
    }

    fn notes(&self) -> &[String] {
        self.content.answer().notes()
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
