//! The flags of every verb that reports findings.

use clap::Args;
use olmkit_bundle::finding::Levels;

use crate::actions::findings::codes;
use crate::exit::Failure;

/// Levels of findings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Findings")]
pub(super) struct LevelFlags {
    /// Report these findings as errors; `warnings` means every warning
    #[arg(long, value_name = "warnings|CODE,…", value_delimiter = ',')]
    deny: Vec<String>,
    /// Report these findings as warnings
    #[arg(long, value_name = "CODE,…", value_delimiter = ',')]
    warn: Vec<String>,
    /// Do not report these findings
    #[arg(long, value_name = "CODE,…", value_delimiter = ',')]
    allow: Vec<String>,
}

impl LevelFlags {
    /// The same, with a word among the denied replaced by the codes that it stands for.
    pub(super) fn expand(mut self, word: &str, codes: impl Iterator<Item = &'static str>) -> Self {
        if self.deny.iter().any(|denied| denied == word) {
            self.deny.retain(|denied| denied != word);
            let others = |code: &&str| !self.warn.iter().chain(&self.allow).any(|other| other == *code);
            let codes: Vec<_> = codes.filter(others).map(str::to_owned).collect();
            self.deny.extend(codes);
        }
        self
    }

    /// Whether any findings are to be errors.
    pub(super) fn denies(&self) -> bool {
        !self.deny.is_empty()
    }

    /// The levels as the flags say.
    ///
    /// # Errors
    /// A code that is not there, or is given two levels.
    pub(super) fn levels(self) -> Result<Levels, Failure> {
        let codes = codes();
        let levels =
            Levels::new(self.deny, self.allow, &codes).and_then(|levels| levels.warn(self.warn, &codes));
        levels.map_err(|error| {
            let help = error.help().map(str::to_owned);
            Failure::usage(error).help(help)
        })
    }
}
