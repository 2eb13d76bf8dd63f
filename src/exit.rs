//! Exit codes, and failures with their help.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use olmkit_bundle::finding::Place;

use crate::sentence::Help;
use crate::shell::Reach;

/// Exit codes. The README has the same table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Success.
    Success = 0,
    /// Failed: errors were found, or the operation failed.
    Failed = 1,
    /// Invalid usage.
    Usage = 2,
    /// Could not complete: an I/O, network or API error.
    Incomplete = 3,
    /// Timed out.
    TimedOut = 4,
    /// Interrupted by Ctrl-C or SIGTERM.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error of a command, with its exit code and its help.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What failed; its sources are the causes.
    pub error: Box<dyn Error + Send + Sync>,
    /// The place in a file.
    pub place: Option<Box<Place>>,
    /// What to do.
    pub help: Help,
}

impl Failure {
    fn new(exit: Exit, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit, error: error.into(), place: None, help: Help::default() }
    }

    /// Could not complete: an I/O, network or API error.
    pub fn incomplete(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::Incomplete, error)
    }

    /// The operation failed, or found errors.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::Failed, error)
    }

    /// Invalid usage.
    pub fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::Usage, error)
    }

    /// Interrupted by the user.
    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted")
    }

    /// Adds the place.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place.map(Box::new);
        self
    }

    /// Adds what to do.
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

    /// The messages of the causes, outermost first.
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
