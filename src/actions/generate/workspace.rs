//! The workspace of a crate, which other values of its Cargo.toml may be inherited from.

use std::path::{Path, PathBuf};

use olmkit_bundle::generate::CargoFile;
use olmkit_bundle::source::Source;

use super::CARGO_FILE;
use crate::exit::Failure;
use crate::files;

/// The Cargo.toml of the workspace that a crate inherits values from; none when it inherits nothing, or is the root itself.
///
/// # Errors
/// When a Cargo.toml above the crate cannot be read.
pub(in super::super) fn root_of(path: &Path, text: &str) -> Result<Option<(PathBuf, String)>, Failure> {
    if !parse(path, text).is_some_and(|cargo| cargo.inherits() && !cargo.is_workspace()) {
        return Ok(None);
    }
    let start = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for directory in start.ancestors().skip(2) {
        let above = directory.join(CARGO_FILE);
        if above.is_file() {
            let text = files::read_text(&above)?;
            if parse(&above, &text).is_some_and(|cargo| cargo.is_workspace()) {
                return Ok(Some((above, text)));
            }
        }
    }
    Ok(None)
}

/// A Cargo.toml, if it is one.
pub(in super::super) fn parse<'t>(path: &Path, text: &'t str) -> Option<CargoFile<'t>> {
    CargoFile::parse(Source::new(path.display().to_string(), text)).ok()
}
