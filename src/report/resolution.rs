//! What OLM would install next, or why it cannot.

use std::io::{self, Write};

use super::{Answer, json, pretty, printable};
use crate::actions::resolve::{Direction, Resolved};
use crate::exit::Exit;

impl Answer for Resolved {
    fn json(&self) -> String {
        pretty(&json::Resolution {
            schema: "olmkit.resolution/v1",
            result: match self.result {
                Direction::Install => json::ResolutionResult::Install,
                Direction::Stay => json::ResolutionResult::Stay,
                Direction::Unsatisfiable => json::ResolutionResult::Unsatisfiable,
                Direction::Error => json::ResolutionResult::Error,
            },
            install: self.install.clone(),
            sentence: self.sentence.clone(),
            constraints: self.constraints.clone(),
        })
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        let colon = if self.install.is_empty() && self.constraints.is_empty() { "" } else { ":" };
        writeln!(out, "{}{colon}", printable(&self.sentence))?;
        for new in &self.install {
            let over = new.replaces.as_ref().map(|old| format!(", replaces {old}")).unwrap_or_default();
            let why = if new.dependency { ", as a dependency" } else { "" };
            let line =
                format!("{} from {}/{} of {}{over}{why}", new.csv, new.package, new.channel, new.catalog);
            writeln!(out, "  {}", printable(&line))?;
        }
        for (at, constraint) in self.constraints.iter().enumerate() {
            writeln!(out, "  {}. {}", at + 1, printable(constraint))?;
        }
        Ok(())
    }

    fn exit(&self) -> Exit {
        match self.result {
            Direction::Install | Direction::Stay => Exit::Success,
            Direction::Unsatisfiable | Direction::Error => Exit::Failed,
        }
    }
}
