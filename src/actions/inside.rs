//! Output that would become a part of the catalog that it is made of.

use std::path::Path;

use crate::exit::Failure;
use crate::input::Input;

/// Where it is, if it is below that directory.
const IN: &str = "in the catalog's directory";

/// The output would be read as a part of the catalog.
#[derive(Debug, thiserror::Error)]
#[error("`{output}` is {place}, where every file is read as a part of the catalog")]
struct Inside {
    output: String,
    place: &'static str,
}

/// Refuses to write a file into the directory of the catalog that it is made of.
///
/// # Errors
/// When the file is inside of it.
pub(super) fn check_file_outside(file: &Path, catalog: &Input) -> Result<(), Failure> {
    let parent = file.parent().unwrap_or(Path::new(""));
    check(file, place(parent, catalog).map(|_| IN), "choose a file outside of it")
}

/// Refuses to write files to a directory that is that of the catalog, or in it.
///
/// # Errors
/// When it is.
pub(super) fn check_directory_outside(directory: &Path, catalog: &Input) -> Result<(), Failure> {
    check(directory, place(directory, catalog), "choose a directory outside of it")
}

fn check(output: &Path, place: Option<&'static str>, help: &'static str) -> Result<(), Failure> {
    let Some(place) = place else { return Ok(()) };
    Err(Failure::usage(Inside { output: output.display().to_string(), place }).help(help))
}

/// Where a directory is, which need not exist, if it is that of a catalog or below it.
fn place(directory: &Path, catalog: &Input) -> Option<&'static str> {
    // A catalog may be a file, which nothing is inside of.
    let Input::Disk(catalog) = catalog else { return None };
    let catalog = catalog.canonicalize().ok().filter(|catalog| catalog.is_dir())?;
    let directory = if directory == Path::new("") { Path::new(".") } else { directory };
    let directory = std::path::absolute(directory).ok()?;
    let existing = directory.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let (above, real) = existing?;
    match real.starts_with(&catalog) {
        true if above == directory && real == catalog => Some("the catalog's directory"),
        true => Some(IN),
        false => None,
    }
}
