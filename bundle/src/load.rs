//! A bundle's directory to text: the only file of this crate's reading half that touches the disk.
//!
//! Nothing is followed or opened that is not a plain file: links, pipes and devices are remembered by name, so
//! that a rule can speak of them. Sizes are bounded.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::annotations::{MANIFESTS_DIR, METADATA_DIR};

/// Files larger than this are not read: etcd takes no object of even a hundredth of it.
pub const MAX_FILE_BYTES: u64 = 128 << 20;
/// Beyond this sum of sizes no further file of a bundle is read, so that memory stays bounded.
pub const MAX_BUNDLE_BYTES: u64 = 512 << 20;
/// A bundle with more files than this is not read to the end.
pub const MAX_FILES: usize = 10_000;
/// Directories nested deeper than this are not entered.
pub const MAX_DEPTH: usize = 16;

/// The start of the names of files and directories that olmkit is writing. A killed process leaves them; they are never
/// part of a bundle or a catalog.
pub const TEMPORARY: &str = ".olmkit-";

/// The files of a bundle, as text where they are text.
#[derive(Debug, Clone, Default)]
pub struct BundleFiles {
    /// The directory or reference as the user named it.
    pub name: String,
    /// Every file below it, and every directory without files, sorted by path.
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
    /// A directory that has nothing in it, or is hidden and was not entered.
    Directory,
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
    #[error("`{path}` contains more than {MAX_FILES} files")]
    TooManyFiles {
        /// The directory.
        path: PathBuf,
    },
}

/// Whether a file in `manifests/` or `metadata/` is there by accident, by its name: what editors, merges and file managers leave
/// behind, and notes for people. Its content may well be a manifest, such as an older ClusterServiceVersion; OLM goes by contents
/// and not by names, and would take it for one.
///
/// ```
/// use olmkit_bundle::load::is_leftover;
/// assert!(is_leftover("manifests/redis.clusterserviceversion.yaml.bak") && is_leftover("metadata/README.md"));
/// assert!(!is_leftover("manifests/readme.yaml") && !is_leftover("README.md"));
/// ```
pub fn is_leftover(path: &str) -> bool {
    const ENDINGS: [&str; 14] = [
        "~", ".bak", ".backup", ".old", ".orig", ".rej", ".save", ".swp", ".swo", ".tmp", ".md", ".rst",
        ".adoc", ".diff",
    ];
    const NAMES: [&str; 5] = ["readme", "license", "notice", "thumbs.db", "desktop.ini"];
    let below = [MANIFESTS_DIR, METADATA_DIR].iter().find_map(|directory| path.strip_prefix(directory));
    let Some(name) = below.filter(|name| !name.contains('/')) else { return false };
    let name = name.to_lowercase();
    name.starts_with('.')
        || name.starts_with('#') && name.ends_with('#')
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || NAMES.contains(&name.as_str())
}

impl BundleFiles {
    /// The bundle without the files that are there by accident, and their paths. See [`is_leftover`].
    #[must_use]
    pub fn without_leftovers(mut self) -> (Self, Vec<String>) {
        let is_file = |file: &BundleFile| !matches!(file.content, Content::Directory);
        let left = self.files.extract_if(.., |file| is_file(file) && is_leftover(&file.path));
        let left = left.map(|file| file.path).collect();
        (self, left)
    }

    /// Reads the directory of a bundle. Hidden directories are not entered, as operator-sdk does not enter them.
    ///
    /// # Errors
    /// When the directory itself cannot be listed, or holds more than [`MAX_FILES`] files. What cannot be read
    /// below it becomes [`Content::Unread`].
    pub fn load(directory: &Path) -> Result<Self, LoadError> {
        // What is no bundle may be anything, such as `/`: a list of its names is enough.
        let parts = ["manifests", "metadata"];
        let is_bundle = parts.iter().any(|part| directory.join(part).is_dir());
        let mut walk = Walk { root: directory, is_bundle, files: Vec::new(), bytes_left: MAX_BUNDLE_BYTES };
        walk.enter(directory, 0)?;
        let mut files = walk.files;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { name: directory.display().to_string(), files })
    }

    /// How many bytes of text there are.
    pub fn text_bytes(&self) -> usize {
        self.files.iter().map(|file| file.content.text().map_or(0, str::len)).sum()
    }

    /// The path of a file as the user can open it.
    pub fn display_path(&self, file: &BundleFile) -> String {
        format!("{}/{}", self.name.trim_end_matches('/'), file.path)
    }
}

/// A walk through a directory, with what it has found.
struct Walk<'a> {
    root: &'a Path,
    is_bundle: bool,
    files: Vec<BundleFile>,
    bytes_left: u64,
}

impl Walk<'_> {
    fn enter(&mut self, directory: &Path, depth: usize) -> Result<(), LoadError> {
        let fail = |source: io::Error| match source.kind() {
            io::ErrorKind::NotADirectory => LoadError::NotADirectory { path: directory.to_owned() },
            _ => LoadError::Directory { path: directory.to_owned(), source },
        };
        for entry in fs::read_dir(directory).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
                continue;
            }
            let path = entry.path();
            let kind = entry.file_type().map_err(fail)?;
            let content = if !kind.is_dir() {
                self.read(&path, kind)
            } else if !self.is_bundle || entry.file_name().as_encoded_bytes().starts_with(b".") {
                Content::Directory
            } else if depth == MAX_DEPTH {
                Content::Unread("the directory is nested too deeply".into())
            } else {
                let before = self.files.len();
                self.enter(&path, depth + 1)?;
                if self.files.len() > before {
                    continue;
                }
                Content::Directory
            };
            let below = path.strip_prefix(self.root).unwrap_or(&path);
            self.files.push(BundleFile { path: below.to_string_lossy().into_owned(), content });
            if self.files.len() > MAX_FILES {
                return Err(LoadError::TooManyFiles { path: self.root.to_owned() });
            }
        }
        Ok(())
    }

    fn read(&mut self, path: &Path, kind: fs::FileType) -> Content {
        if !kind.is_file() {
            let what = if kind.is_symlink() { "a symbolic link" } else { "not a plain file" };
            return Content::Unread(format!("it is {what}"));
        }
        let limit = MAX_FILE_BYTES.min(self.bytes_left);
        match read_bounded(path, limit) {
            Ok(bytes) if bytes.len() as u64 <= limit => {
                self.bytes_left -= bytes.len() as u64;
                Content::from_bytes(bytes)
            }
            Ok(_) if limit < MAX_FILE_BYTES => {
                Content::Unread(format!("the bundle is larger than {} MiB", MAX_BUNDLE_BYTES >> 20))
            }
            Ok(_) => Content::Unread(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20)),
            Err(error) => Content::Unread(error.to_string()),
        }
    }
}

/// The bytes of a file, one more than `limit` at most.
fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    let size = file.metadata()?.len().min(limit);
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(limit + 1).read_to_end(&mut bytes)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_is_no_plain_file_is_remembered_by_name() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for directory in ["manifests/.git", "metadata", ".olmkit-new-x"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        fs::write(at("manifests/.olmkit-x"), "left by a killed process").unwrap();
        fs::write(at("manifests/.git/config"), "x").unwrap();
        fs::write(at("manifests/a.yaml"), "kind: A").unwrap();
        fs::write(at("manifests/b.bin"), [b'a', 0xff]).unwrap();
        std::os::unix::fs::symlink("a.yaml", at("manifests/link.yaml")).unwrap();
        let files = BundleFiles::load(root.path()).unwrap().files;
        let lines: Vec<_> = files.iter().map(|file| format!("{} {:?}", file.path, file.content)).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        manifests/.git Directory
        manifests/a.yaml Text("kind: A")
        manifests/b.bin Binary { bytes: 2, valid_up_to: 1 }
        manifests/link.yaml Unread("it is a symbolic link")
        metadata Directory
        "#);
    }

    #[test]
    fn a_file_is_no_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(BundleFiles::load(file.path()), Err(LoadError::NotADirectory { .. })));
    }
}
