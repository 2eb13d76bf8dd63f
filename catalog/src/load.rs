//! A catalog's directory to text: the only file of this crate's reading half that touches the disk.
//!
//! Every file below the directory belongs to the catalog, whatever its name, unless an `.indexignore` file says otherwise.
//! A link is followed to a file of the same directory tree and nowhere else. Sizes are bounded.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;

use olmkit_bundle::load::{Content, TEMPORARY};

use crate::ignore::{IGNORE_FILE, Ignore};
use olmkit_bundle::parallel::in_parallel;

/// Beyond this sum of sizes no further file is read. The largest catalogs known are a tenth of it.
pub const MAX_BYTES: u64 = 2 << 30;
/// A catalog with more files than this is not read to the end.
pub const MAX_FILES: usize = 200_000;
/// Directories nested deeper than this are not entered.
pub const MAX_DEPTH: usize = 32;
/// The largest `.indexignore`, in bytes.
const MAX_IGNORE: u64 = 1 << 20;

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
    #[error("`{path}` contains more than {MAX_FILES} files")]
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
        Self::load_those(path, |_| true)
    }

    /// The same without the files in which none of some words occurs.
    ///
    /// # Errors
    /// As [`CatalogFiles::load`].
    pub fn load_mentioning(path: &Path, words: &[&str]) -> Result<Self, LoadError> {
        let finders: Vec<_> = words.iter().map(|word| memchr::memmem::Finder::new(*word)).collect();
        Self::load_those(path, |bytes| finders.iter().any(|finder| finder.find(bytes).is_some()))
    }

    /// The files that an `.indexignore` keeps out of the catalog, those in which a word occurs.
    ///
    /// # Errors
    /// As [`CatalogFiles::load`].
    pub fn load_hidden_mentioning(path: &Path, word: &str) -> Result<Self, LoadError> {
        let finder = memchr::memmem::Finder::new(word);
        Self::read_those(path, list_those(path, true)?, |bytes| finder.find(bytes).is_some())
    }

    fn load_those(path: &Path, is_wanted: impl Fn(&[u8]) -> bool + Sync) -> Result<Self, LoadError> {
        Self::read_those(path, list(path)?, is_wanted)
    }

    fn read_those(
        path: &Path,
        (root, found): (PathBuf, Vec<(String, Found)>),
        is_wanted: impl Fn(&[u8]) -> bool + Sync,
    ) -> Result<Self, LoadError> {
        let mut bytes_left = MAX_BYTES;
        let with_limits: Vec<_> = found
            .into_iter()
            .map(|(path, found)| {
                let limit = bytes_left;
                if let Found::File(path) = &found
                    && let Ok(Ok(file)) = metadata(&root, path)
                {
                    bytes_left = bytes_left.saturating_sub(file.len());
                }
                (path, found, limit)
            })
            .collect();
        let contents = in_parallel(&with_limits, |(_, found, limit)| match found {
            Found::File(path) => read_if(&root, path, *limit, &is_wanted),
            Found::Unread(why) => Some(Content::Unread(why.clone())),
        });
        let files = with_limits.into_iter().zip(contents);
        let files =
            files.filter_map(|((path, ..), content)| Some(CatalogFile { path, content: content? })).collect();
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

/// The `.indexignore` that would keep a file out of a catalog, if there is one; the file need not exist. Its path is below the
/// catalog's directory.
pub fn hidden_by(directory: &Path, path: &str) -> Option<PathBuf> {
    let mut ignore = Ignore::default();
    let mut last = None;
    let above = path.match_indices('/').map(|(at, _)| &path[..at]);
    for directory_below in std::iter::once("").chain(above) {
        let file = directory.join(directory_below).join(IGNORE_FILE);
        let before = ignore.matches(path);
        if let Ok(Content::Text(rules)) =
            fs::canonicalize(directory).map(|root| read(&root, &file, MAX_IGNORE))
        {
            ignore.add(directory_below, &rules);
        }
        if ignore.matches(path) && !before {
            last = Some(file);
        }
    }
    last.filter(|_| ignore.matches(path))
}

/// Something at a catalog's path.
pub enum Found {
    /// It is to be read.
    File(PathBuf),
    /// It is not, and why.
    Unread(String),
}

/// What belongs to a catalog, sorted by path, and its directory without links; nothing is read yet.
///
/// # Errors
/// As [`CatalogFiles::load`].
pub fn list(path: &Path) -> Result<(PathBuf, Vec<(String, Found)>), LoadError> {
    list_those(path, false)
}

/// The files that belong to a catalog, or those that are hidden from it.
fn list_those(path: &Path, hidden: bool) -> Result<(PathBuf, Vec<(String, Found)>), LoadError> {
    let failed = |source| LoadError::Path { path: path.to_owned(), source };
    let root = fs::canonicalize(path).map_err(failed)?;
    let mut walk = Walk { root: &root, files: Vec::new(), ignore: Ignore::default(), hidden };
    if root.is_dir() {
        walk.enter(&root, 0)?;
    } else if !hidden {
        walk.files.push((String::new(), Found::File(root.clone())));
    }
    let mut files = walk.files;
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok((root, files))
}

/// Opens a file of a catalog, and tells its size; or says why it is none.
///
/// # Errors
/// The system's.
pub fn open(root: &Path, path: &Path) -> io::Result<Result<(fs::File, u64), String>> {
    let (target, metadata) = match target(root, path)? {
        Ok(target) => target,
        Err(why) => return Ok(Err(why)),
    };
    Ok(Ok((fs::File::open(target)?, metadata.len())))
}

/// What the system knows of a file of a catalog; or why it is none.
///
/// # Errors
/// The system's.
pub fn metadata(root: &Path, path: &Path) -> io::Result<Result<fs::Metadata, String>> {
    Ok(target(root, path)?.map(|(_, metadata)| metadata))
}

/// Why a link is not followed that leads out of the catalog.
pub(crate) const OUTSIDE: &str = "it is a link to a file outside of the catalog";

/// The plain file that a path leads to, if it is one of the same tree.
fn target(root: &Path, path: &Path) -> io::Result<Result<(PathBuf, fs::Metadata), String>> {
    let mut metadata = fs::symlink_metadata(path)?;
    let mut target = path.to_owned();
    if metadata.is_symlink() {
        target = fs::canonicalize(path)?;
        if !target.starts_with(root) {
            return Ok(Err(OUTSIDE.into()));
        }
        metadata = fs::metadata(&target)?;
    }
    // Before it is opened, since to open a pipe is to wait for its writer.
    Ok(if metadata.is_file() { Ok((target, metadata)) } else { Err("it is not a plain file".into()) })
}

fn read(root: &Path, path: &Path, limit: u64) -> Content {
    read_if(root, path, limit, &|_: &[u8]| true).unwrap_or(Content::Directory)
}

/// The content of a file, if its bytes are those that are wanted.
fn read_if(root: &Path, path: &Path, limit: u64, is_wanted: &impl Fn(&[u8]) -> bool) -> Option<Content> {
    let try_read = || {
        let (file, size) = match open(root, path)? {
            Ok(opened) => opened,
            Err(why) => return Ok(Some(Content::Unread(why))),
        };
        let bytes = match usize::try_from(size) {
            Ok(size) if size >= LARGE && size as u64 <= limit => read_large(&file, size)?,
            _ => None,
        };
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => {
                let mut bytes = Vec::with_capacity(size.min(limit) as usize + 1);
                file.take(limit + 1).read_to_end(&mut bytes)?;
                bytes
            }
        };
        if bytes.len() as u64 > limit {
            return Ok(Some(Content::Unread(format!("the catalog is larger than {} MiB", MAX_BYTES >> 20))));
        }
        Ok(is_wanted(&bytes).then(|| Content::from_bytes(bytes)))
    };
    try_read().unwrap_or_else(|error: io::Error| Some(Content::Unread(error.to_string())))
}

/// Files from this size on are read in pieces side by side, in bytes.
const LARGE: usize = 8 << 20;

/// All of a file; nothing when it is not of the size that it was said to be.
fn read_large(file: &fs::File, size: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; size];
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let length = size.div_ceil(workers);
    let read = thread::scope(|scope| {
        let pieces = bytes.chunks_mut(length).enumerate();
        let pieces: Vec<_> = pieces
            .map(|(at, piece)| scope.spawn(move || file.read_exact_at(piece, (at * length) as u64)))
            .collect();
        // Reading does not panic.
        pieces
            .into_iter()
            .try_for_each(|piece| piece.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    match read {
        Ok(()) if file.read_at(&mut [0], size as u64)? == 0 => Ok(Some(bytes)),
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(None),
    }
}

/// A walk through a directory, with what it has found.
struct Walk<'a> {
    root: &'a Path,
    files: Vec<(String, Found)>,
    ignore: Ignore,
    /// Whether the ignored files are wanted instead of the others.
    hidden: bool,
}

impl Walk<'_> {
    fn enter(&mut self, directory: &Path, depth: usize) -> Result<(), LoadError> {
        let failed = |source| LoadError::Directory { path: directory.to_owned(), source };
        let entries: io::Result<Vec<_>> = fs::read_dir(directory).map_err(failed)?.collect();
        let mut entries = entries.map_err(failed)?;
        entries.retain(|entry| !entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()));
        entries.sort_by_key(fs::DirEntry::file_name);
        // First, since it speaks of everything beside and below it.
        if entries.iter().any(|entry| entry.file_name() == IGNORE_FILE) {
            let path = directory.join(IGNORE_FILE);
            match read(self.root, &path, MAX_IGNORE) {
                Content::Text(rules) => self.ignore.add(&self.below(directory), &rules),
                Content::Unread(why) => self.files.push((self.below(&path), Found::Unread(why))),
                _ => self.files.push((self.below(&path), Found::File(path))),
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
                    self.files.push((below, Found::Unread("the directory is nested too deeply".into())));
                }
            } else if entry.file_name() != IGNORE_FILE && self.ignore.matches(&below) == self.hidden {
                self.files.push((below, Found::File(path)));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_belongs_to_the_catalog_unless_it_is_ignored() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for directory in ["a/b", "..data", ".olmkit-new-x"] {
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
            (".olmkit-new-x/0", "left by a killed process"),
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
        outside Unread("it is a link to a file outside of the catalog")
        "#);
    }

    #[test]
    fn what_is_hidden_is_told_by_the_file_that_hides_it() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at(".indexignore"), "*.bak\n/a/b\n").unwrap();
        fs::write(at("a/.indexignore"), "!b/kept\nown\n").unwrap();
        fs::write(at("a/b/c"), "name: redis").unwrap();
        fs::write(at("a/x.bak"), "name: other").unwrap();
        fs::write(at("a/seen"), "name: redis").unwrap();
        let hidden =
            |path| hidden_by(root.path(), path).map(|by| by.strip_prefix(root.path()).unwrap().to_owned());
        for (path, by) in [
            ("new.bak", Some(".indexignore")),
            ("a/b/c", Some(".indexignore")),
            ("a/own", Some("a/.indexignore")),
            ("a/b/kept", None),
            ("a/seen", None),
            ("own", None),
        ] {
            assert_eq!(hidden(path), by.map(PathBuf::from), "{path}");
        }
        let found = CatalogFiles::load_hidden_mentioning(root.path(), "redis").unwrap().files;
        assert_eq!(found.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["a/b/c"]);
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
