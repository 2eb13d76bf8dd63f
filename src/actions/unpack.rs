//! `bundle unpack`: an image's files to a directory.

use std::path::PathBuf;

use olmkit_bundle::annotations::MANIFESTS_DIR;

use crate::exit::Failure;
use crate::files::OutputDir;
use crate::image::Access;
use crate::input::Input;

/// What to unpack, and where to.
#[derive(Debug)]
pub struct Request {
    /// The bundle.
    pub bundle: Input,
    /// The directory, which must not exist, or be empty, or be what an interrupted run left.
    pub output_dir: PathBuf,
}

/// A bundle that was unpacked.
#[derive(Debug)]
pub struct Unpacked {
    /// The bundle as it was named.
    pub input: String,
    /// The directory.
    pub output_dir: PathBuf,
    /// The files that were written, below the directory.
    pub files: Vec<String>,
}

/// Writes the files of a bundle to a new directory.
///
/// # Errors
/// The bundle cannot be read, or the directory holds something else or cannot be written; then nothing was written.
pub fn bundle(request: &Request, access: &Access) -> Result<Unpacked, Failure> {
    let tree = request.bundle.bundle_tree(access)?;
    if tree.is_empty() {
        // Says so if it is not there or cannot be read.
        request.bundle.bundle(access)?;
        let error = format!("`{}` is not a bundle: it has no `{MANIFESTS_DIR}`", request.bundle);
        return Err(Failure::failed(error).help("name a bundle's image, or its directory"));
    }
    let contents = tree.into_contents().map_err(Failure::incomplete)?;
    OutputDir::open(&request.output_dir)?.fill(&contents)?;
    let files = contents.into_iter().filter(|(_, content)| content.is_some()).map(|(path, _)| path).collect();
    Ok(Unpacked { input: request.bundle.to_string(), output_dir: request.output_dir.clone(), files })
}
