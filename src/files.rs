//! Files on disk: reading with errors that name the path, and writing trees whole or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// Inputs larger than this are not read.
const MAX_BYTES: u64 = 256 << 20;

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
    /// Something is there already.
    #[error("`{path}` is there already")]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// It is too large.
    #[error("`{path}` is larger than {} MiB", MAX_BYTES >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let help = match error {
            FileError::Exists { .. } => Some("choose a new or an empty directory".to_owned()),
            _ => None,
        };
        Self { help, ..Self::unknown(error) }
    }
}

/// The bytes of a plain file.
///
/// # Errors
/// When it is missing, not a plain file, unreadable or too large.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let fail = |source| FileError::Read { path: path.to_owned(), source };
    let metadata = fs::metadata(path).map_err(fail)?;
    if !metadata.is_file() {
        return Err(fail(io::Error::other("not a plain file")));
    }
    let mut bytes = Vec::with_capacity(metadata.len().min(MAX_BYTES) as usize + 1);
    fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)).map_err(fail)?;
    if bytes.len() as u64 > MAX_BYTES {
        Err(FileError::TooLarge { path: path.to_owned() })
    } else {
        Ok(bytes)
    }
}

/// The text of a plain file in UTF-8.
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    String::from_utf8(read(path)?)
        .map_err(|error| FileError::NotText { path: path.to_owned(), at: error.utf8_error().valid_up_to() })
}

/// The plain files below a directory, sorted; hidden ones and links are passed over.
///
/// # Errors
/// When a directory cannot be listed.
pub fn below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Writes a file and the directories above it; a reader sees the old file or the new one.
///
/// # Errors
/// When it cannot be written; an old file is then as it was.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let write = || {
        let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        fs::create_dir_all(parent)?;
        let mut fresh = tempfile::Builder::new().prefix(".olmkit-").tempfile_in(parent)?;
        fresh.write_all(bytes)?;
        fresh.as_file().sync_all()?;
        // A temporary file is private; this one keeps the old one's mode, or becomes a file like any other.
        let mode = fs::metadata(path).map_or(fs::Permissions::from_mode(0o644), |old| old.permissions());
        fresh.as_file().set_permissions(mode)?;
        fresh.persist(path).map(drop).map_err(|error| error.error)
    };
    write().map_err(|source| FileError::Write { path: path.to_owned(), source })
}

/// Makes `directory` hold exactly `files` (paths with `/` between) and whatever it held that is not `ours`.
///
/// The new tree is built beside the old one and takes its place by two renames: a reader sees the old tree or
/// the new one, and a failure leaves the old one. Returns the paths that were kept though they are not ours.
///
/// # Errors
/// When anything cannot be read or written; the directory is then as it was.
pub fn replace_tree(
    directory: &Path,
    files: &BTreeMap<String, String>,
    ours: impl Fn(&[u8]) -> bool,
) -> Result<Vec<String>, FileError> {
    let fail = |path: &Path, source| FileError::Write { path: path.to_owned(), source };
    let parent = match directory.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(|error| fail(parent, error))?;
    let fresh = tempfile::Builder::new()
        .prefix(".olmkit-")
        .tempdir_in(parent)
        .map_err(|error| fail(parent, error))?;
    let write = |path: &str, bytes: &[u8]| -> Result<(), FileError> {
        let path = fresh.path().join(path);
        let write = || {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            let mut file = fs::File::create_new(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(|error| fail(&path, error))
    };
    for (path, text) in files {
        write(path, text.as_bytes())?;
    }
    let mut kept = Vec::new();
    if directory.exists() {
        for path in
            below(directory).map_err(|source| FileError::List { path: directory.to_owned(), source })?
        {
            let below = path.strip_prefix(directory).unwrap_or(&path).to_string_lossy().into_owned();
            if files.contains_key(&below) {
                continue;
            }
            let bytes = read(&path)?;
            if !ours(&bytes) {
                write(&below, &bytes)?;
                kept.push(below);
            }
        }
    }
    swap(directory, fresh, parent).map_err(|error| fail(directory, error))?;
    Ok(kept)
}

/// A file of a tree that is not on disk as it should be.
#[derive(Debug)]
pub struct Difference {
    /// The path below the tree, with `/` between.
    pub path: String,
    /// What is there.
    pub found: Option<String>,
    /// What should be there.
    pub expected: Option<String>,
}

/// How a directory differs from what [`replace_tree`] would make of it.
///
/// # Errors
/// When a file that is there cannot be read.
pub fn differences(
    directory: &Path,
    files: &BTreeMap<String, String>,
    ours: impl Fn(&[u8]) -> bool,
) -> Result<Vec<Difference>, FileError> {
    let mut differences = Vec::new();
    for (path, expected) in files {
        let on_disk = directory.join(path);
        let found = if on_disk.exists() {
            Some(String::from_utf8_lossy(&read(&on_disk)?).into_owned())
        } else {
            None
        };
        if found.as_ref() != Some(expected) {
            differences.push(Difference { path: path.clone(), found, expected: Some(expected.clone()) });
        }
    }
    if directory.exists() {
        let list = |source| FileError::List { path: directory.to_owned(), source };
        for path in below(directory).map_err(list)? {
            let name = path.strip_prefix(directory).unwrap_or(&path).to_string_lossy().into_owned();
            let bytes = if files.contains_key(&name) { continue } else { read(&path)? };
            if ours(&bytes) {
                let found = Some(String::from_utf8_lossy(&bytes).into_owned());
                differences.push(Difference { path: name, found, expected: None });
            }
        }
    }
    differences.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(differences)
}

/// Makes a directory of these paths (with `/` between, parents first): files with their content, and directories. It must
/// not exist, or be empty.
///
/// # Errors
/// Something is there, or it cannot be written; then nothing is there that was not before.
pub fn new_tree(directory: &Path, contents: &[(String, Option<Vec<u8>>)]) -> Result<(), FileError> {
    use std::os::unix::fs::PermissionsExt as _;

    let fail = |path: &Path, source| FileError::Write { path: path.to_owned(), source };
    // Resolved, so that `.` and `dir/..` have a parent and a name.
    let exists = fs::read_dir(directory);
    match exists {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(FileError::Exists { path: directory.to_owned() });
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(directory).map_err(|error| fail(directory, error))?;
        }
        Err(error) => return Err(fail(directory, error)),
    }
    let resolved = fs::canonicalize(directory).map_err(|error| fail(directory, error))?;
    let parent = resolved.parent().unwrap_or(&resolved);
    let fresh = tempfile::Builder::new()
        .prefix(".olmkit-")
        .tempdir_in(parent)
        .map_err(|error| fail(parent, error))?;
    for (path, content) in contents {
        let path = fresh.path().join(path);
        let written = match content {
            None => fs::create_dir(&path),
            Some(bytes) => fs::File::create_new(&path).and_then(|mut file| file.write_all(bytes)),
        };
        written.map_err(|error| fail(&path, error))?;
    }
    fs::set_permissions(fresh.path(), fs::Permissions::from_mode(0o755))
        .and_then(|()| fs::rename(fresh.path(), &resolved))
        .map_err(|error| fail(directory, error))?;
    // It is in its place, there is nothing to remove any more.
    let _ = fresh.keep();
    Ok(())
}

/// Puts `fresh` where `directory` is, and removes what was there.
fn swap(directory: &Path, fresh: tempfile::TempDir, parent: &Path) -> io::Result<()> {
    // A temporary directory is private; this one becomes a directory like any other.
    fs::set_permissions(fresh.path(), fs::Permissions::from_mode(0o755))?;
    if !directory.exists() {
        fs::rename(fresh.keep(), directory)?;
        return Ok(());
    }
    let old = tempfile::Builder::new().prefix(".olmkit-old-").tempdir_in(parent)?;
    let aside = old.path().join("tree");
    fs::rename(directory, &aside)?;
    if let Err(error) = fs::rename(fresh.path(), directory) {
        fs::rename(&aside, directory)?;
        return Err(error);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(directory: &Path) -> Vec<(String, String)> {
        let name = |path: &PathBuf| path.strip_prefix(directory).unwrap().display().to_string();
        below(directory).unwrap().iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
    }

    #[test]
    fn stale_files_of_ours_go_and_others_stay() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("bundle");
        let files =
            |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), format!("ours {name}"))).collect();
        let ours = |bytes: &[u8]| bytes.starts_with(b"ours");
        assert!(replace_tree(&directory, &files(&["a/one", "a/two"]), ours).unwrap().is_empty());
        fs::write(directory.join("notes.md"), "mine").unwrap();
        assert_eq!(replace_tree(&directory, &files(&["a/two", "b"]), ours).unwrap(), ["notes.md"]);
        let names: Vec<_> = tree(&directory).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a/two", "b", "notes.md"]);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_failure_leaves_the_directory_as_it_was() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("bundle");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("a"), "before").unwrap();
        let impossible =
            BTreeMap::from([("a".to_owned(), "after".to_owned()), ("a/b".to_owned(), String::new())]);
        assert!(replace_tree(&directory, &impossible, |_| true).is_err());
        assert_eq!(tree(&directory), [("a".to_owned(), "before".to_owned())]);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
