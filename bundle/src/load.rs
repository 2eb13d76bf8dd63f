//! A bundle's directory to text: the only file of this crate's reading half that touches the disk.
//!
//! Nothing is followed or opened that is not a plain file: links, pipes and devices are remembered by name, so
//! that a rule can speak of them. Sizes are bounded.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Files larger than this are not read: etcd takes no object of even a hundredth of it.
pub const MAX_FILE_BYTES: u64 = 128 << 20;
/// A bundle with more files than this is not read to the end.
pub const MAX_FILES: usize = 10_000;
/// Directories nested deeper than this are not entered.
pub const MAX_DEPTH: usize = 16;

/// The files of a bundle, as text where they are text.
#[derive(Debug, Clone, Default)]
pub struct BundleFiles {
    /// The directory or reference as the user named it.
    pub name: String,
    /// Every file below it, sorted by path.
    pub files: Vec<BundleFile>,
}

/// One file of a bundle.
#[derive(Debug, Clone)]
pub struct BundleFile {
    /// The path below the bundle's directory, with `/` between.
    pub path: String,
    /// What is in it.
    pub content: Content,
}

/// What is in a file.
#[derive(Debug, Clone)]
pub enum Content {
    /// Text in UTF-8.
    Text(String),
    /// Bytes that are not UTF-8, from the given offset on.
    Binary {
        /// How many bytes there are.
        bytes: u64,
        /// Where they stop being UTF-8.
        valid_up_to: usize,
    },
    /// Something that was not read, and why.
    Unread(String),
}

/// A bundle that could not be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The directory cannot be listed.
    #[error("cannot read the directory `{path}`")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The path is not a directory.
    #[error("`{path}` is not a directory")]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// There is no end to the files.
    #[error("`{path}` holds more than {MAX_FILES} files")]
    TooManyFiles {
        /// The directory.
        path: PathBuf,
    },
}

impl BundleFiles {
    /// Reads the directory of a bundle. Hidden directories are left out, as operator-sdk leaves them out.
    ///
    /// # Errors
    /// When the directory itself cannot be listed, or holds more than [`MAX_FILES`] files. What cannot be read
    /// below it becomes [`Content::Unread`].
    pub fn load(directory: &Path) -> Result<Self, LoadError> {
        let mut files = Vec::new();
        walk(directory, directory, 0, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { name: directory.display().to_string(), files })
    }

    /// The path of a file as the user can open it.
    pub fn display_path(&self, file: &BundleFile) -> String {
        format!("{}/{}", self.name.trim_end_matches('/'), file.path)
    }
}

fn walk(root: &Path, directory: &Path, depth: usize, files: &mut Vec<BundleFile>) -> Result<(), LoadError> {
    let fail = |source: io::Error| match source.kind() {
        io::ErrorKind::NotADirectory => LoadError::NotADirectory { path: directory.to_owned() },
        _ => LoadError::Directory { path: directory.to_owned(), source },
    };
    for entry in fs::read_dir(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let path = entry.path();
        let below = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        let kind = entry.file_type().map_err(fail)?;
        if kind.is_dir() {
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if depth == MAX_DEPTH {
                files.push(BundleFile {
                    path: below,
                    content: Content::Unread("the directory is nested too deeply".into()),
                });
            } else {
                walk(root, &path, depth + 1, files)?;
            }
            continue;
        }
        files.push(BundleFile { path: below, content: read(&path, kind) });
        if files.len() > MAX_FILES {
            return Err(LoadError::TooManyFiles { path: root.to_owned() });
        }
    }
    Ok(())
}

fn read(path: &Path, kind: fs::FileType) -> Content {
    if !kind.is_file() {
        let what = if kind.is_symlink() { "a symbolic link" } else { "not a plain file" };
        return Content::Unread(what.into());
    }
    match read_bounded(path) {
        Ok(bytes) if bytes.len() as u64 > MAX_FILE_BYTES => {
            Content::Unread(format!("larger than {} MiB", MAX_FILE_BYTES >> 20))
        }
        Ok(bytes) => Content::from_bytes(bytes),
        Err(error) => Content::Unread(error.to_string()),
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    let size = file.metadata()?.len().min(MAX_FILE_BYTES);
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Content {
    /// Bytes as text, if they are.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Binary {
                bytes: error.as_bytes().len() as u64,
                valid_up_to: error.utf8_error().valid_up_to(),
            },
        }
    }

    /// The text, if this is text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}
