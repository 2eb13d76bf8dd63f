//! What OLM would install next, or why it cannot.

use std::io::{self, Write};

use olmkit_catalog::resolve::{Install, Resolution};

use super::{Answer, json, pretty, printable};
use crate::exit::Exit;

/// What a resolution leads to.
#[derive(Debug)]
pub struct ResolutionAnswer {
    /// Which way it goes.
    pub result: ResolutionResult,
    /// What is installed.
    pub install: Vec<Install>,
    /// One sentence.
    pub sentence: String,
    /// The constraints that exclude each other.
    pub constraints: Vec<String>,
}

/// Which way a resolution goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResolutionResult {
    /// Something is installed.
    Install,
    /// Nothing changes.
    Stay,
    /// The constraints exclude each other.
    Unsatisfiable,
    /// OLM cannot tell.
    Error,
}

impl ResolutionAnswer {
    /// Something is installed, or nothing has to be. `installed` is what there is already.
    pub fn of(resolution: Resolution, installed: &[&str]) -> Self {
        let install = resolution.install;
        let names = |dependency: bool| {
            let wanted = install.iter().filter(move |new| new.dependency == dependency);
            let over = |new: &Install| match &new.replaces {
                Some(old) if installed.contains(&old.as_str()) => format!("`{}` over `{old}`", new.csv),
                _ => format!("`{}`", new.csv),
            };
            wanted.map(over).collect::<Vec<_>>().join(", ")
        };
        let (wanted, needed) = (names(false), names(true));
        let (result, sentence) = match (wanted.as_str(), needed.as_str()) {
            ("", "") => {
                (ResolutionResult::Stay, "nothing to install: every Subscription has what it can have".into())
            }
            ("", _) => (ResolutionResult::Install, format!("OLM would install {needed}, which is required")),
            (_, "") => (ResolutionResult::Install, format!("OLM would install {wanted}")),
            _ => (
                ResolutionResult::Install,
                format!("OLM would install {wanted}, and {needed}, which is required"),
            ),
        };
        Self { result, install, sentence, constraints: Vec::new() }
    }

    /// Constraints exclude each other.
    pub fn unsatisfiable(constraints: Vec<String>) -> Self {
        let sentence = match constraints.len() {
            1 => "OLM would install nothing, since this cannot be met".into(),
            count => format!("OLM would install nothing, since these {count} constraints exclude each other"),
        };
        Self { result: ResolutionResult::Unsatisfiable, install: Vec::new(), sentence, constraints }
    }

    /// OLM cannot even try.
    pub fn failed(result: ResolutionResult, sentence: String) -> Self {
        Self { result, install: Vec::new(), sentence, constraints: Vec::new() }
    }
}

impl Answer for ResolutionAnswer {
    fn json(&self) -> String {
        pretty(&json::Resolution {
            schema: "olmkit.resolution/v1",
            result: self.result,
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
            ResolutionResult::Install | ResolutionResult::Stay => Exit::Yes,
            ResolutionResult::Unsatisfiable | ResolutionResult::Error => Exit::No,
        }
    }
}
