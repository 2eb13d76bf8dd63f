//! The end of `catalog serve`, of which there is nothing to say: the log has it all.

use std::io::{self, Write};

use super::Answer;

impl Answer for () {
    fn json(&self) -> String {
        String::new()
    }

    fn text(&self, _: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
