//! Writing single files, and directories of our own.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::output::STAGING;
use super::read::not_plain;
use super::{FileError, OutputDir};

/// Writes a file and the directories above it; a reader sees the old file or the new one. A link is followed.
///
/// # Errors
/// When it cannot be written; an old file is then as it was.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let fail = |source| FileError::Write { path: path.to_owned(), source };
    let target = target(path).map_err(fail)?;
    let Some(name) = target.file_name().and_then(|name| name.to_str()) else {
        return Err(fail(io::ErrorKind::InvalidInput.into()));
    };
    let parent = target.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    OutputDir::open(parent)?.write(&BTreeMap::from([(name.to_owned(), Some(bytes))]))
}

/// Makes a file and the directories above it, whole at once. Of several who make the same file one succeeds.
///
/// # Errors
/// The file is there already, or cannot be written.
pub fn create(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let fail = |source| FileError::Write { path: path.to_owned(), source };
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    // It removes what a killed process left, and keeps other writers waiting.
    let _directory = OutputDir::open(parent)?;
    let staging = tempfile::Builder::new().prefix(STAGING).tempdir_in(parent);
    let permissions = fs::Permissions::from_mode(0o666);
    let made = staging.and_then(|staging| {
        let file = tempfile::Builder::new().permissions(permissions).tempfile_in(staging.path());
        file.map(|file| (staging, file))
    });
    // Without the name of the temporary file, which says nothing to a user.
    let (_staging, mut file) = made.map_err(|error| fail(error.kind().into()))?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
    file.persist_noclobber(path).map(drop).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => FileError::Exists { path: path.to_owned() },
        _ => fail(error.error),
    })
}

/// The file that is written when a path is named: that of a link, since its user named it.
///
/// # Errors
/// The link leads nowhere.
pub fn target(path: &Path) -> io::Result<PathBuf> {
    if !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        return Ok(path.to_owned());
    }
    fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("it is a link that leads nowhere"),
        _ => error,
    })
}

/// Tries whether [`write()`] could make or replace a file, and changes nothing.
///
/// # Errors
/// It could not: a link leads nowhere, something else has the name, or the directory takes no files.
pub fn writable(path: &Path) -> io::Result<()> {
    let real = std::path::absolute(target(path)?)?;
    match fs::metadata(&real) {
        Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => return Err(not_plain(&found.file_type())),
        Ok(_) => drop(OpenOptions::new().write(true).open(&real)?),
        Err(_) => {}
    }
    // Those that are missing are made. A new file takes the place of the old one, so the directory counts either way.
    let above = real.ancestors().skip(1).find(|above| fs::symlink_metadata(above).is_ok());
    let above = above.unwrap_or(Path::new("/"));
    // A file without a name: one that has a name would stay if the process were killed here.
    tempfile::tempfile_in(above).map(drop).map_err(|error| error.kind().into())
}

/// Fills a directory of our own, such as a temporary one, with these paths (with `/` between, parents first): files with
/// their content, and directories. It must not exist. For directories of users there is [`OutputDir`].
///
/// # Errors
/// When it cannot be written.
pub fn fill(directory: &Path, contents: &BTreeMap<String, Option<Vec<u8>>>) -> Result<(), FileError> {
    let fail = |path: &Path, source| FileError::Write { path: path.to_owned(), source };
    fs::create_dir(directory).map_err(|error| fail(directory, error))?;
    for (path, content) in contents {
        let path = directory.join(path);
        let written = match content {
            None => fs::create_dir(&path),
            Some(bytes) => fs::File::create_new(&path).and_then(|mut file| file.write_all(bytes)),
        };
        written.map_err(|error| fail(&path, error))?;
    }
    Ok(())
}
