//! The end of `catalog serve`, of which there is nothing to say: the log has it all.

use std::io::{self, Write};

use super::Answer;

/// A server that was asked to end, and did.
#[derive(Debug)]
pub struct ServedAnswer;

impl Answer for ServedAnswer {
    fn json(&self) -> String {
        String::new()
    }

    fn text(&self, _: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
