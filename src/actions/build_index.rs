//! `catalog build-index`: a catalog to the file that a server opens.

use std::path::Path;

use olmkit_serve::compiled::{self, BuildError, Built};

use crate::exit::Failure;
use crate::files::{self, FileError};
use crate::image::Access;
use crate::input::Input;
use crate::shell::argument;
use std::path::PathBuf;

/// The file would be read as a part of the catalog that it is made of.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is in the catalog's directory, where every file is read as a part of the catalog")]
struct Inside(String);

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
    if let Input::Disk(directory) = input
        && is_inside(to, directory)
    {
        let error = Inside(to.display().to_string());
        return Err(Failure::usage(error).help("choose a file outside of it"));
    }
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

fn is_inside(file: &Path, directory: &Path) -> bool {
    let parent = file.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    match (parent.canonicalize(), directory.canonicalize()) {
        // A catalog may be a file, which no other file is inside of.
        (Ok(parent), Ok(directory)) => directory.is_dir() && parent.starts_with(directory),
        _ => false,
    }
}
