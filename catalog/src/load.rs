//! A catalog's directory to text: the only file of this crate's reading half that touches the disk.
//!
//! Every file below the directory belongs to the catalog, whatever its name, unless an `.indexignore` file says otherwise.
//! A link is followed to a file of the same directory tree and nowhere else. Sizes are bounded.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use olmkit_bundle::load::Content;

use crate::ignore::{IGNORE_FILE, Ignore};

/// Beyond this sum of sizes no further file is read. The largest catalogs known are a tenth of it.
pub const MAX_BYTES: u64 = 2 << 30;
/// A catalog with more files than this is not read to the end.
pub const MAX_FILES: usize = 200_000;
/// Directories nested deeper than this are not entered.
pub const MAX_DEPTH: usize = 32;

/// The files of a catalog, as text where they are text.
#[derive(Debug, Clone, Default)]
pub struct CatalogFiles {
    /// The directory, file or reference as the user named it.
    pub name: String,
    /// Every file that is not ignored, sorted by path.
    pub files: Vec<CatalogFile>,
}

/// One file of a catalog.
#[derive(Debug, Clone)]
pub struct CatalogFile {
    /// The path below the catalog's directory, with `/` between; empty when the catalog is this file alone.
    pub path: String,
    /// What is in it.
    pub content: Content,
}

/// A catalog that could not be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A directory cannot be listed.
    #[error("cannot read the directory `{path}`")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is nothing at the path, or nothing that can be looked at.
    #[error("cannot read `{path}`")]
    Path {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is no end to the files.
    #[error("`{path}` holds more than {MAX_FILES} files")]
    TooManyFiles {
        /// The directory.
        path: PathBuf,
    },
}

impl CatalogFiles {
    /// Reads the directory of a catalog, or a catalog that is a single file.
    ///
    /// # Errors
    /// When a directory cannot be listed, or there are more than [`MAX_FILES`] files. A file that cannot be read is
    /// remembered as such.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let failed = |source| LoadError::Path { path: path.to_owned(), source };
        let root = fs::canonicalize(path).map_err(failed)?;
        let mut walk =
            Walk { root: &root, files: Vec::new(), ignore: Ignore::default(), bytes_left: MAX_BYTES };
        if root.is_dir() {
            walk.enter(&root, 0)?;
        } else {
            let content = walk.read(&root);
            walk.files.push(CatalogFile { path: String::new(), content });
        }
        let mut files = walk.files;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { name: path.display().to_string(), files })
    }

    /// A catalog that is one text.
    pub fn from_text(name: impl Into<String>, text: impl Into<String>) -> Self {
        let file = CatalogFile { path: String::new(), content: Content::Text(text.into()) };
        Self { name: name.into(), files: vec![file] }
    }

    /// The path of a file as the user can open it.
    pub fn display_path(&self, file: &CatalogFile) -> String {
        if file.path.is_empty() {
            return self.name.clone();
        }
        format!("{}/{}", self.name.trim_end_matches('/'), file.path)
    }
}

/// A walk through a directory, with what it has found.
struct Walk<'a> {
    root: &'a Path,
    files: Vec<CatalogFile>,
    ignore: Ignore,
    bytes_left: u64,
}

impl Walk<'_> {
    fn enter(&mut self, directory: &Path, depth: usize) -> Result<(), LoadError> {
        let failed = |source| LoadError::Directory { path: directory.to_owned(), source };
        let entries: io::Result<Vec<_>> = fs::read_dir(directory).map_err(failed)?.collect();
        let mut entries = entries.map_err(failed)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        // First, since it speaks of everything beside and below it.
        if entries.iter().any(|entry| entry.file_name() == IGNORE_FILE) {
            match self.read(&directory.join(IGNORE_FILE)) {
                Content::Text(rules) => self.ignore.add(&self.below(directory), &rules),
                content => {
                    let path = self.below(&directory.join(IGNORE_FILE));
                    self.files.push(CatalogFile { path, content });
                }
            }
        }
        for entry in entries {
            let path = entry.path();
            let below = self.below(&path);
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                if depth < MAX_DEPTH {
                    self.enter(&path, depth + 1)?;
                } else {
                    let content = Content::Unread("the directory is nested too deeply".into());
                    self.files.push(CatalogFile { path: below, content });
                }
            } else if entry.file_name() != IGNORE_FILE && !self.ignore.matches(&below) {
                let content = self.read(&path);
                self.files.push(CatalogFile { path: below, content });
            }
            if self.files.len() > MAX_FILES {
                return Err(LoadError::TooManyFiles { path: self.root.to_owned() });
            }
        }
        Ok(())
    }

    /// A path below the root, with `/` between.
    fn below(&self, path: &Path) -> String {
        path.strip_prefix(self.root).unwrap_or(path).to_string_lossy().into_owned()
    }

    fn read(&mut self, path: &Path) -> Content {
        match self.try_read(path) {
            Ok(content) => content,
            Err(error) => Content::Unread(error.to_string()),
        }
    }

    fn try_read(&mut self, path: &Path) -> io::Result<Content> {
        let target = fs::canonicalize(path)?;
        if !target.starts_with(self.root) {
            return Ok(Content::Unread("it is a link to somewhere else".into()));
        }
        // Before it is opened, since to open a pipe is to wait for its writer.
        let metadata = fs::metadata(&target)?;
        if !metadata.is_file() {
            return Ok(Content::Unread("it is not a plain file".into()));
        }
        let limit = self.bytes_left;
        let mut bytes = Vec::with_capacity(metadata.len().min(limit) as usize + 1);
        fs::File::open(&target)?.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Ok(Content::Unread(format!("the catalog is larger than {} MiB", MAX_BYTES >> 20)));
        }
        self.bytes_left -= bytes.len() as u64;
        Ok(Content::from_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_belongs_to_the_catalog_unless_it_is_ignored() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for directory in ["a/b", "..data"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        for (path, text) in [
            (".indexignore", "# comment\n*.md\n/a/b/kept.md\n!kept.md\n"),
            ("a/.indexignore", "only-here\n"),
            ("README.md", ""),
            ("a/b/kept.md", ""),
            ("a/only-here", ""),
            ("only-here", ""),
            ("..data/catalog.json", "{}"),
        ] {
            fs::write(at(path), text).unwrap();
        }
        fs::write(at("binary"), [b'a', 0xff]).unwrap();
        std::os::unix::fs::symlink("..data/catalog.json", at("catalog.json")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", at("outside")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("dangling")).unwrap();
        let files = CatalogFiles::load(root.path()).unwrap().files;
        let lines: Vec<_> = files.iter().map(|file| format!("{} {:?}", file.path, file.content)).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        ..data/catalog.json Text("{}")
        a/b/kept.md Text("")
        binary Binary { bytes: 2, valid_up_to: 1 }
        catalog.json Text("{}")
        dangling Unread("No such file or directory (os error 2)")
        only-here Text("")
        outside Unread("it is a link to somewhere else")
        "#);
    }

    #[test]
    fn a_single_file_is_a_catalog() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "schema: x").unwrap();
        let files = CatalogFiles::load(file.path()).unwrap();
        assert_eq!(files.files[0].content.text(), Some("schema: x"));
        assert_eq!(files.display_path(&files.files[0]), file.path().display().to_string());
    }

    #[test]
    fn nothing_there() {
        assert!(matches!(CatalogFiles::load(Path::new("/does/not/exist")), Err(LoadError::Path { .. })));
    }
}
