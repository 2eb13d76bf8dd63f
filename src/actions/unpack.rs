//! `bundle unpack`: an image's files to a directory.

use std::path::PathBuf;

use crate::exit::Failure;
use crate::files;
use crate::image::Access;
use crate::input::Input;
use crate::report::UnpackedAnswer;

/// What to unpack, and where to.
#[derive(Debug)]
pub struct Request {
    /// The bundle.
    pub bundle: Input,
    /// The directory, which must not exist or be empty.
    pub output_dir: PathBuf,
}

/// Writes the files of a bundle to a new directory, all of them or none.
///
/// # Errors
/// The bundle cannot be read, or the directory is there already.
pub fn bundle(request: &Request, access: &Access) -> Result<UnpackedAnswer, Failure> {
    let tree = request.bundle.bundle_tree(access)?;
    let contents = tree.contents().map_err(Failure::unknown)?;
    files::new_tree(&request.output_dir, &contents)?;
    let files = contents.into_iter().filter(|(_, content)| content.is_some()).map(|(path, _)| path).collect();
    Ok(UnpackedAnswer { input: request.bundle.to_string(), output_dir: request.output_dir.clone(), files })
}
