//! Manifests onto the disk, each file whole or not at all.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::Manifest;

/// A file of the release could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write `{}`", path.display())]
pub struct WriteError {
    path: PathBuf,
    source: io::Error,
}

/// Writes each manifest to its place below `dir`, which is made when it is not there. Files of the same names
/// are replaced, others are left alone.
///
/// # Errors
/// When a directory or file cannot be written. The files before it are then the new ones, those after it
/// are as they were, and none is half written.
pub fn write(dir: &Path, manifests: &[Manifest]) -> Result<(), WriteError> {
    for manifest in manifests {
        let path = dir.join(manifest.path);
        replace(&path, &manifest.yaml).map_err(|source| WriteError { path, source })?;
    }
    Ok(())
}

/// The new content under a name of its own first, so that no reader sees half of it.
fn replace(path: &Path, content: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = fs::write(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}
