//! Answers with something that the user should know of them.

use std::io::{self, Write};

use super::{Answer, Format};
use crate::exit::Exit;

/// An answer, and warnings about it for standard error.
pub struct NotedAnswer {
    /// The answer.
    pub answer: Box<dyn Answer>,
    /// A sentence each.
    pub warnings: Vec<String>,
}

impl Answer for NotedAnswer {
    fn json(&self) -> String {
        self.answer.json()
    }

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        self.answer.text(out, talk)
    }

    fn verbatim(&self) -> Option<&str> {
        self.answer.verbatim()
    }

    fn findings(&self, format: Format) -> Option<String> {
        self.answer.findings(format)
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn exit(&self) -> Exit {
        self.answer.exit()
    }
}
