//! `catalog build-index`: a catalog to the file that a server opens.

use std::path::Path;

use olmkit_serve::compiled::{self, BuildError, Built};

use super::inside::check_file_outside;
use crate::exit::Failure;
use crate::files::{self, FileError};
use crate::image::Access;
use crate::input::Input;
use crate::shell::argument;
use std::path::PathBuf;

/// A compiled catalog.
#[derive(Debug)]
pub struct Index {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// What is in it.
    pub built: Built,
}

/// Compiles a catalog.
///
/// # Errors
/// When it cannot be read, is not sound, or the file cannot be written.
pub fn build_index(input: &Input, to: &Path, access: &Access) -> Result<Index, Failure> {
    check_file_outside(to, input)?;
    let fail = |source| FileError::Write { path: to.to_owned(), source };
    let target = files::target(to).map_err(fail)?;
    let files = input.catalog(access)?;
    let built = compiled::build(&files, &target).map_err(|error| failure(error, input))?;
    let fail = |source| FileError::Read { path: to.to_owned(), source };
    Ok(Index { path: to.to_owned(), size: std::fs::metadata(to).map_err(fail)?.len(), built })
}

/// What a catalog that cannot be compiled means for the command: the first of its errors, with its place.
pub(super) fn failure(error: BuildError, input: &Input) -> Failure {
    match &error {
        BuildError::Invalid { findings, .. } => {
            let place = findings.first().and_then(|finding| finding.place.clone());
            Failure::failed(error)
                .at(place)
                .help(format!("run `olmkit catalog validate {}`", argument(input)))
        }
        BuildError::NotReplaced { .. } => Failure::usage(error).help("choose a new file"),
        _ => Failure::incomplete(error),
    }
}
