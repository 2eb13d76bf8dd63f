//! How the command ends: exit codes, and failures that carry their way out.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use olmkit_bundle::finding::Place;

use crate::sentence::Help;
use crate::shell::Reach;

/// What the exit code says. The README has the same table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It was done, or the answer is yes.
    Yes = 0,
    /// The answer is no: errors were found, a version cannot reach the head.
    No = 1,
    /// The command was misused.
    Misuse = 2,
    /// It could not be found out: a file, a registry or a cluster did not answer.
    Unknown = 3,
    /// It took too long.
    TimedOut = 4,
    /// Somebody pressed Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why an action could not be done, how the command ends then, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    /// How the command ends.
    pub exit: Exit,
    /// What failed; its sources say why.
    pub error: Box<dyn Error + Send + Sync>,
    /// Where in a file the trouble is.
    pub place: Option<Box<Place>>,
    /// The way out.
    pub help: Help,
}

impl Failure {
    fn new(exit: Exit, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit, error: error.into(), place: None, help: Help::default() }
    }

    /// The input or the world did not let us do it.
    pub fn unknown(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::Unknown, error)
    }

    /// The input was understood, and the answer is no.
    pub fn no(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::No, error)
    }

    /// The command cannot mean what it says.
    pub fn misuse(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::Misuse, error)
    }

    /// Somebody pressed Ctrl-C.
    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted")
    }

    /// Names the place.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place.map(Box::new);
        self
    }

    /// Names the way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<Help>) -> Self {
        self.help = help.into();
        self
    }

    /// The same failure, met on a cluster: the commands of its help act on it.
    #[must_use]
    pub fn on(mut self, reach: &Reach) -> Self {
        self.help = self.help.on(reach);
        self
    }

    /// The messages of the sources, outermost first, without the error itself.
    pub fn causes(&self) -> Vec<String> {
        let mut causes = Vec::new();
        let mut next = self.error.source();
        while let Some(cause) = next {
            causes.push(cause.to_string());
            next = cause.source();
        }
        causes
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}
