//! Why a file could not be read or written, and what to do then.

use std::io;
use std::path::PathBuf;

use crate::exit::{Exit, Failure};
use crate::limits::Over;
use crate::shell::argument;

/// A file or directory that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The directory cannot be listed.
    #[error("cannot list `{path}`")]
    List {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is not text.
    #[error("`{path}` is not text in UTF-8 (byte {at})")]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first byte that is not.
        at: usize,
    },
    /// It is text of another kind.
    #[error("`{path}` is in UTF-16, not in UTF-8")]
    Utf16 {
        /// The file.
        path: PathBuf,
    },
    /// Something is there already.
    #[error("`{path}` already exists")]
    Exists {
        /// The file or directory.
        path: PathBuf,
    },
    /// A directory that is to be filled holds something else.
    #[error("the directory `{path}` is not empty")]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// A link in an output directory leads out of it.
    #[error("`{path}` points outside `{directory}`")]
    LeadsOut {
        /// The link.
        path: PathBuf,
        /// The output directory.
        directory: PathBuf,
    },
    /// A link in an output directory leads to nothing.
    #[error("`{path}` is a symbolic link to `{target}`, which does not exist")]
    BrokenLink {
        /// The link.
        path: PathBuf,
        /// Where it leads to.
        target: PathBuf,
    },
    /// Another process writes into the directory, and does not finish.
    #[error("timed out waiting for another olmkit that is writing to `{path}`")]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// It is a device, a pipe, or what this command prints to.
    #[error("cannot write a report to `{path}`: it is not a file of its own")]
    Stream {
        /// The path.
        path: PathBuf,
    },
    /// The path is taken by a file that olmkit did not write.
    #[error("`{path}` exists and is not {what}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What may be replaced.
        what: &'static str,
    },
    /// It is too large.
    #[error("`{path}` is larger than {} MiB", .most >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size that is read, in bytes.
        most: u64,
    },
}

/// How a command ends that could not read something: also because its time was over meanwhile.
pub fn exit_of(error: &io::Error) -> Exit {
    match error.get_ref().and_then(|error| error.downcast_ref::<Over>()) {
        Some(Over::Interrupted) => Exit::Interrupted,
        Some(Over::TimedOut(_)) => Exit::TimedOut,
        None => Exit::Incomplete,
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let help = match &error {
            FileError::Utf16 { path } => {
                let path = argument(path.display());
                Some(format!("convert it: `iconv -f UTF-16 -t UTF-8 {path} > utf8.yaml`"))
            }
            FileError::Exists { .. } => Some("choose another name, or move it away first".to_owned()),
            FileError::NotEmpty { .. } => Some("choose a new or an empty directory".to_owned()),
            FileError::LeadsOut { .. } => {
                Some("replace the link with what it leads to, or choose another directory".to_owned())
            }
            FileError::BrokenLink { .. } => Some("remove the link, or make what it leads to".to_owned()),
            FileError::Stream { .. } => Some("name a file, or print the report with --output".to_owned()),
            FileError::Foreign { .. } => Some("name another file, or remove it first".to_owned()),
            FileError::Busy { .. } => Some("end the other olmkit, then run the command again".to_owned()),
            FileError::Read { source, .. } if exit_of(source) == Exit::TimedOut => {
                Some("check that something writes to it and then closes it".to_owned())
            }
            _ => None,
        };
        let exit = match &error {
            FileError::Busy { .. } => Exit::TimedOut,
            FileError::Read { source, .. } => exit_of(source),
            FileError::Stream { .. } | FileError::Foreign { .. } => Exit::Usage,
            _ => Exit::Incomplete,
        };
        Self { help: help.into(), exit, ..Self::incomplete(error) }
    }
}
