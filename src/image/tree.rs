//! The files that go into an image, or came out of one: sorted, checked relative paths and their content.
//!
//! A tree is a plan, not a directory: files of a directory are named and measured when they are added, and read once,
//! piece by piece, when a layer is built. So a catalog of any size is packed in flat memory.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The longest path that Linux takes, and the longest name in it, in bytes.
const MAX_PATH: usize = 4095;
const MAX_NAME: usize = 255;

/// The largest size that a tar header holds in octal digits, in bytes: 8 GiB less one.
const MAX_FILE: u64 = 0o77_777_777_777;

/// What a layer calls a file that says "this name was removed"; no real file may be called so.
/// <https://github.com/opencontainers/image-spec/blob/main/layer.md#whiteouts>
pub(super) const WHITEOUT: &str = ".wh.";

/// A path inside an image, relative to its root: `manifests/csv.yaml`.
///
/// Never empty or absolute; without `.`, `..` and empty components, control characters and names that layers reserve.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(String);

/// Text that is not a path inside an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot be a path in an image: it {reason}", .path.escape_debug())]
pub struct PathError {
    /// The path as it was given.
    pub path: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl FromStr for TreePath {
    type Err = PathError;

    fn from_str(path: &str) -> Result<Self, PathError> {
        let reason = if path.is_empty() {
            "is empty"
        } else if path.starts_with('/') {
            "is absolute"
        } else if path.len() > MAX_PATH || path.split('/').any(|name| name.len() > MAX_NAME) {
            "is too long"
        } else if path.chars().any(char::is_control) {
            "has a control character"
        } else if path.split('/').any(|name| name == "..") {
            "points outside the image through `..`"
        } else if path.split('/').any(|name| name.is_empty() || name == ".") {
            "has an empty component or a `.`"
        } else if path.split('/').any(|name| name.starts_with(WHITEOUT)) {
            "has a name with `.wh.`, by which layers mark removed files"
        } else {
            return Ok(Self(path.into()));
        };
        Err(PathError { path: path.into(), reason })
    }
}

impl TreePath {
    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directory that holds it; `None` for what lies in the root.
    pub fn parent(&self) -> Option<TreePath> {
        self.0.rsplit_once('/').map(|(parent, _)| Self(parent.into()))
    }

    /// Whether this is `other` or lies somewhere below it.
    pub fn is_within(&self, other: &TreePath) -> bool {
        self.0.strip_prefix(&other.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for TreePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Files and directories under checked paths. Every directory that holds something is an entry of its own.
///
/// ```
/// let mut tree = olmkit::image::FileTree::new();
/// tree.add_file("metadata/annotations.yaml", "annotations: {}\n")?;
/// let paths: Vec<&str> = tree.iter().map(|(path, _)| path.as_str()).collect();
/// assert_eq!(paths, ["metadata", "metadata/annotations.yaml"]);
/// # Ok::<(), olmkit::image::TreeError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct FileTree {
    nodes: BTreeMap<TreePath, Node>,
}

/// What lies at a path.
#[derive(Debug, Clone)]
pub enum Node {
    /// A directory, mode 0755 in the image.
    Dir,
    /// A regular file.
    File(TreeFile),
    /// Another name for a file of the same directory: a symbolic link.
    Link(String),
}

/// A regular file: mode 0644 in the image, or 0755 when it is executable.
#[derive(Debug, Clone)]
pub struct TreeFile {
    executable: bool,
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    /// Shared by all clones.
    Memory(bytes::Bytes),
    Disk {
        path: PathBuf,
        size: u64,
    },
}

/// Why something cannot be added to a tree.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The path is not one that an image can have.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Something is at that path already.
    #[error("`{path}` is in the image twice")]
    Duplicate {
        /// The path in the image.
        path: TreePath,
    },
    /// The path leads through a regular file.
    #[error("`{path}` cannot be in the image: `{file}` is a file, not a directory")]
    ThroughFile {
        /// The path in the image.
        path: TreePath,
        /// The file on the way.
        file: TreePath,
    },
    /// The directory holds something that is neither a file nor a directory.
    #[error("`{}` is a {kind}, expected a regular file or a directory", .path.display())]
    Kind {
        /// The path on disk.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// The directory holds a name that is not UTF-8.
    #[error("`{}` has a name that is not UTF-8", .path.to_string_lossy().escape_debug())]
    NotUtf8 {
        /// The path on disk.
        path: PathBuf,
    },
    /// The file is larger than an image's layer can hold.
    #[error("`{}` has {size} bytes, at most {MAX_FILE} fit into a layer", .path.display())]
    TooLarge {
        /// The path on disk.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// The disk could not be read.
    #[error("cannot read `{}`", .path.display())]
    Io {
        /// The path on disk.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl TreeError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Kind { kind: "symbolic link", .. } => {
                Some("replace the link with a copy of the file: images are built from plain files".into())
            }
            Self::Kind { .. } => Some("remove it from the directory".into()),
            Self::NotUtf8 { .. } | Self::Path(_) => Some("rename the file".into()),
            _ => None,
        }
    }
}

impl FileTree {
    /// A tree without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tree of everything below a directory. See [`FileTree::add_dir`].
    ///
    /// # Errors
    /// As [`FileTree::add_dir`].
    pub fn from_dir(dir: &Path) -> Result<Self, TreeError> {
        let mut tree = Self::new();
        tree.walk("", dir)?;
        Ok(tree)
    }

    /// Adds a file with this content.
    ///
    /// # Errors
    /// The path is bad, taken, or leads through a file.
    pub fn add_file(&mut self, path: &str, content: impl Into<Vec<u8>>) -> Result<(), TreeError> {
        self.insert(path.parse()?, Node::File(TreeFile::from_memory(content.into(), false)))
    }

    /// Adds a file that can be run.
    ///
    /// # Errors
    /// As [`FileTree::add_file`].
    pub fn add_executable(&mut self, path: &str, content: impl Into<Vec<u8>>) -> Result<(), TreeError> {
        self.insert(path.parse()?, Node::File(TreeFile::from_memory(content.into(), true)))
    }

    /// Adds another name for a file of the same directory, as a symbolic link.
    ///
    /// # Errors
    /// As [`FileTree::add_file`].
    pub fn add_link(&mut self, path: &str, name: &str) -> Result<(), TreeError> {
        self.insert(path.parse()?, Node::Link(name.to_owned()))
    }

    /// Adds a directory from disk and everything below it at a path of the image. Permissions on disk are of no
    /// account: they differ between checkouts, and the files of bundles and catalogs are only read.
    ///
    /// The files are read when a layer is built, which fails if one has another length by then.
    ///
    /// # Errors
    /// The path is bad or taken, the disk cannot be read, or the directory holds a link, a FIFO, a socket or a device.
    /// Some entries may have been added by then.
    pub fn add_dir(&mut self, path: &str, dir: &Path) -> Result<(), TreeError> {
        let path: TreePath = path.parse()?;
        self.insert(path.clone(), Node::Dir)?;
        self.walk(path.as_str(), dir)
    }

    /// The tree without what lies at or below a path, and without directories that held nothing else.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        let Ok(mut path) = path.parse::<TreePath>() else { return self };
        self.remove(&path);
        while let Some(parent) = path.parent() {
            let below = (Bound::Excluded(format!("{parent}/")), Bound::Excluded(format!("{parent}0")));
            let range = (below.0.as_ref().map(String::as_str), below.1.as_ref().map(String::as_str));
            if self.nodes.range::<str, _>(range).next().is_some() {
                break;
            }
            self.nodes.remove(&parent);
            path = parent;
        }
        self
    }

    /// Adds everything of another tree.
    ///
    /// # Errors
    /// A path is taken by something else.
    pub fn add_tree(&mut self, other: FileTree) -> Result<(), TreeError> {
        other.nodes.into_iter().try_for_each(|(path, node)| self.insert(path, node))
    }

    /// What lies below one directory, below another; either may be empty, which is the root.
    ///
    /// # Errors
    /// The new paths are not ones that an image can have.
    pub fn moved(self, from: &str, to: &str) -> Result<Self, TreeError> {
        let mut moved = Self::new();
        for (path, node) in self.nodes {
            let Some(rest) = path.0.strip_prefix(from) else { continue };
            let rest = match rest.strip_prefix('/') {
                Some(rest) => rest,
                None if from.is_empty() || rest.is_empty() => rest,
                None => continue,
            };
            let inside = [to, rest].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
            if !inside.is_empty() {
                moved.insert(inside.parse()?, node)?;
            }
        }
        Ok(moved)
    }

    /// Everything with its content in memory, not copied where the tree alone has it: files with theirs, directories without. Links have none of their own.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn into_contents(self) -> io::Result<BTreeMap<String, Option<Vec<u8>>>> {
        let content = |(TreePath(path), node)| match node {
            Node::Dir => Some(Ok((path, None))),
            Node::Link(_) => None,
            Node::File(file) => Some(file.into_bytes().map(|bytes| (path, Some(bytes)))),
        };
        self.nodes.into_iter().filter_map(content).collect()
    }

    /// The sizes of all files together, in bytes.
    pub fn size(&self) -> u64 {
        let size = |node: &Node| if let Node::File(file) = node { file.size() } else { 0 };
        self.nodes.values().map(size).sum()
    }

    /// All entries, sorted by path: parents come before what they hold.
    pub fn iter(&self) -> impl Iterator<Item = (&TreePath, &Node)> {
        self.nodes.iter()
    }

    /// What lies at a path.
    pub fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// The file at a path; `None` when there is nothing or a directory.
    pub fn file(&self, path: &str) -> Option<&TreeFile> {
        match self.get(path)? {
            Node::File(file) => Some(file),
            Node::Dir | Node::Link(_) => None,
        }
    }

    /// Whether the tree has no entries.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a node and the directories above it. A directory may be added again, as layers and callers do.
    ///
    /// # Errors
    /// The path is taken, or leads through a file.
    pub fn insert(&mut self, path: TreePath, node: Node) -> Result<(), TreeError> {
        let mut above = path.parent();
        while let Some(dir) = above {
            match self.nodes.get(&dir) {
                Some(Node::Dir) => break,
                Some(Node::File(_) | Node::Link(_)) => {
                    return Err(TreeError::ThroughFile { path, file: dir });
                }
                None => above = dir.parent(),
            }
        }
        match (self.nodes.get(&path), &node) {
            (None, _) => {}
            (Some(Node::Dir), Node::Dir) => return Ok(()),
            (Some(_), _) => return Err(TreeError::Duplicate { path }),
        }
        let mut above = path.parent();
        while let Some(dir) = above {
            above = dir.parent();
            if self.nodes.insert(dir, Node::Dir).is_some() {
                break;
            }
        }
        self.nodes.insert(path, node);
        Ok(())
    }

    /// Removes what lies at a path and below it.
    pub(super) fn remove(&mut self, path: &TreePath) {
        self.nodes.remove(path);
        self.remove_below(path);
    }

    /// Removes everything below a path.
    pub(super) fn remove_below(&mut self, path: &TreePath) {
        // All paths below `a` start with `a/`, and `0` is the character after `/`: they lie side by side.
        let (first, end) = (format!("{path}/"), format!("{path}0"));
        let range = (Bound::Included(first.as_str()), Bound::Excluded(end.as_str()));
        let below: Vec<TreePath> = self.nodes.range::<str, _>(range).map(|(path, _)| path.clone()).collect();
        for path in below {
            self.nodes.remove(&path);
        }
    }

    /// Lays another tree over this one, as a layer lies over those below it: its files and directories win.
    pub(super) fn overlay(&mut self, upper: FileTree) {
        for (path, node) in upper.nodes {
            if let Node::File(_) = node {
                self.remove_below(&path);
            }
            // `upper` holds every parent as a directory and parents come first, so that no file is left on the way.
            self.nodes.insert(path, node);
        }
    }

    /// Adds what lies below a directory; `at` is its path in the image, or empty for the root.
    fn walk(&mut self, at: &str, dir: &Path) -> Result<(), TreeError> {
        let mut pending = vec![(at.to_owned(), dir.to_owned())];
        while let Some((at, dir)) = pending.pop() {
            let failed = |path: &Path| {
                let path = path.to_owned();
                move |source| TreeError::Io { path, source }
            };
            let entries = fs::read_dir(&dir).map_err(failed(&dir))?.map(|entry| Ok(entry?.path()));
            let mut entries = entries.collect::<io::Result<Vec<_>>>().map_err(failed(&dir))?;
            // So that of two bad names the same one is reported on every machine.
            entries.sort();
            for on_disk in entries {
                let name = on_disk.file_name().and_then(|name| name.to_str());
                let name = name.ok_or_else(|| TreeError::NotUtf8 { path: on_disk.clone() })?;
                if name.starts_with(super::TEMPORARY) {
                    continue;
                }
                let inside = if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") };
                let path: TreePath = inside.parse()?;
                let metadata = fs::symlink_metadata(&on_disk).map_err(failed(&on_disk))?;
                if metadata.is_dir() {
                    self.insert(path, Node::Dir)?;
                    pending.push((inside, on_disk));
                } else if !metadata.is_file() {
                    return Err(TreeError::Kind { kind: kind(metadata.file_type()), path: on_disk });
                } else if metadata.len() > MAX_FILE {
                    return Err(TreeError::TooLarge { path: on_disk, size: metadata.len() });
                } else {
                    let content = Content::Disk { path: on_disk, size: metadata.len() };
                    self.insert(path, Node::File(TreeFile { executable: false, content }))?;
                }
            }
        }
        Ok(())
    }
}

impl TreeFile {
    pub(super) fn from_memory(content: Vec<u8>, executable: bool) -> Self {
        Self { executable, content: Content::Memory(content.into()) }
    }

    /// Whether the image lets it be run.
    pub fn is_executable(&self) -> bool {
        self.executable
    }

    /// Its length in bytes.
    pub fn size(&self) -> u64 {
        match &self.content {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::Disk { size, .. } => *size,
        }
    }

    /// Its content. Only files that were added from disk touch the disk.
    ///
    /// # Errors
    /// The file cannot be read, or has another length than when it was added.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        self.clone().into_bytes()
    }

    /// The same, without a copy where nothing else has the content.
    ///
    /// # Errors
    /// As [`TreeFile::read`].
    pub fn into_bytes(self) -> io::Result<Vec<u8>> {
        match self.content {
            Content::Memory(bytes) => Ok(bytes.into()),
            Content::Disk { path, size } => {
                let mut bytes = Vec::new();
                ExactFile { file: File::open(path)?, left: size }.read_to_end(&mut bytes)?;
                Ok(bytes)
            }
        }
    }

    /// Its content, piece by piece: exactly [`TreeFile::size`] bytes or an error.
    pub(super) fn reader(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match &self.content {
            Content::Memory(bytes) => Box::new(&bytes[..]),
            Content::Disk { path, size } => Box::new(ExactFile { file: File::open(path)?, left: *size }),
        })
    }
}

/// A file that is read to its end and has to end where it ended when it was measured.
struct ExactFile {
    file: File,
    left: u64,
}

impl Read for ExactFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)? as u64;
        if read > self.left || (read == 0 && self.left > 0 && !buffer.is_empty()) {
            return Err(io::Error::other("the file changed while it was read"));
        }
        self.left -= read;
        Ok(read as usize)
    }
}

fn kind(file_type: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match file_type {
        t if t.is_symlink() => "symbolic link",
        t if t.is_fifo() => "FIFO",
        t if t.is_socket() => "socket",
        t if t.is_block_device() => "block device",
        t if t.is_char_device() => "character device",
        _ => "special file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn listing(tree: &FileTree) -> String {
        let line = |(path, node): (&TreePath, &Node)| match node {
            Node::Dir => format!("{path}/\n"),
            Node::File(file) => format!("{path} {}\n", file.size()),
            Node::Link(name) => format!("{path} -> {name}\n"),
        };
        tree.iter().map(line).collect()
    }

    fn check_path(path: &str) -> String {
        path.parse::<TreePath>().unwrap_err().to_string()
    }

    #[test]
    fn a_directory_moves_with_all_that_is_in_it() {
        let mut tree = FileTree::new();
        for path in ["bundle/a", "bundle/deep/b", "bundles/c", "d"] {
            tree.add_file(path, "").unwrap();
        }
        let moved = |from, to| listing(&tree.clone().moved(from, to).unwrap()).replace('\n', " ");
        assert_snapshot!(moved("bundle", "manifests"), @"manifests/ manifests/a 0 manifests/deep/ manifests/deep/b 0 ");
        assert_snapshot!(moved("bundle", ""), @"a 0 deep/ deep/b 0 ");
        assert_snapshot!(moved("", "x/y"), @"x/ x/y/ x/y/bundle/ x/y/bundle/a 0 x/y/bundle/deep/ x/y/bundle/deep/b 0 x/y/bundles/ x/y/bundles/c 0 x/y/d 0 ");
        assert_snapshot!(moved("nowhere", "x"), @"");
    }

    #[test]
    fn paths_that_no_image_has() {
        assert_snapshot!(check_path(""), @"`` cannot be a path in an image: it is empty");
        assert_snapshot!(check_path("/etc/passwd"), @"`/etc/passwd` cannot be a path in an image: it is absolute");
        assert_snapshot!(check_path("a/../../b"), @"`a/../../b` cannot be a path in an image: it points outside the image through `..`");
        assert_snapshot!(check_path(".."), @"`..` cannot be a path in an image: it points outside the image through `..`");
        assert_snapshot!(check_path("./a"), @"`./a` cannot be a path in an image: it has an empty component or a `.`");
        assert_snapshot!(check_path("a//b"), @"`a//b` cannot be a path in an image: it has an empty component or a `.`");
        assert_snapshot!(check_path("a/"), @"`a/` cannot be a path in an image: it has an empty component or a `.`");
        assert_snapshot!(check_path("a\0b"), @r"`a\0b` cannot be a path in an image: it has a control character");
        assert_snapshot!(check_path("a\u{1b}[31mb"), @r"`a\u{1b}[31mb` cannot be a path in an image: it has a control character");
        assert_snapshot!(check_path("a/.wh.b"), @"`a/.wh.b` cannot be a path in an image: it has a name with `.wh.`, by which layers mark removed files");
        assert!(check_path(&"n".repeat(256)).ends_with("it is too long"));
        assert!(check_path(&"n/".repeat(2048)).ends_with("it is too long"));
    }

    #[test]
    fn paths_with_dots_spaces_and_letters_of_any_script_are_fine() {
        for path in ["a", "..a", "a..", ".hidden", "a b/c", "каталог/ключ", "a/wh.b"] {
            assert_eq!(path.parse::<TreePath>().unwrap().as_str(), path);
        }
    }

    #[test]
    fn within_means_whole_names() {
        let path = |text: &str| text.parse::<TreePath>().unwrap();
        assert!(path("a/b/c").is_within(&path("a/b")));
        assert!(path("a/b").is_within(&path("a/b")));
        assert!(!path("a/bc").is_within(&path("a/b")));
        assert!(!path("a").is_within(&path("a/b")));
    }

    #[test]
    fn directories_above_a_file_are_entries_and_come_first() {
        let mut tree = FileTree::new();
        tree.add_file("b/c/d.yaml", "four").unwrap();
        tree.add_file("a", "").unwrap();
        assert_snapshot!(listing(&tree), @r"
        a 0
        b/
        b/c/
        b/c/d.yaml 4
        ");
    }

    #[test]
    fn a_path_can_be_taken_once() {
        let mut tree = FileTree::new();
        tree.add_file("dir/file", "").unwrap();
        assert_snapshot!(tree.add_file("dir/file", "").unwrap_err(), @"`dir/file` is in the image twice");
        assert_snapshot!(tree.add_file("dir", "").unwrap_err(), @"`dir` is in the image twice");
        assert_snapshot!(tree.add_file("dir/file/deep/er", "").unwrap_err(), @"`dir/file/deep/er` cannot be in the image: `dir/file` is a file, not a directory");
        assert_snapshot!(listing(&tree), @r"
        dir/
        dir/file 0
        ");
    }

    #[test]
    fn a_directory_is_taken_whole_and_permissions_do_not_matter() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("sub/empty")).unwrap();
        fs::write(dir.path().join("sub/script"), "#!").unwrap();
        fs::write(dir.path().join("sub/.olmkit-x"), "left by a killed process").unwrap();
        fs::set_permissions(dir.path().join("sub/script"), fs::Permissions::from_mode(0o777)).unwrap();
        let mut tree = FileTree::new();
        tree.add_dir("at/here", dir.path()).unwrap();
        assert_snapshot!(listing(&tree), @r"
        at/
        at/here/
        at/here/sub/
        at/here/sub/empty/
        at/here/sub/script 2
        ");
        assert!(!tree.file("at/here/sub/script").unwrap().is_executable());
        assert_eq!(tree.file("at/here/sub/script").unwrap().read().unwrap(), b"#!");
        assert_eq!(listing(&FileTree::from_dir(dir.path()).unwrap()), "sub/\nsub/empty/\nsub/script 2\n");
    }

    /// Refusals name the path on disk; the temporary directory's name is cut off.
    fn check_refused(prepare: impl FnOnce(&Path)) -> String {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path());
        let error = FileTree::from_dir(dir.path()).unwrap_err();
        assert!(error.help().is_some());
        error.to_string().replace(dir.path().to_str().unwrap(), "DIR")
    }

    #[test]
    fn links_fifos_and_sockets_are_refused() {
        use std::os::unix::{fs::symlink, net::UnixListener};
        assert_snapshot!(check_refused(|dir| symlink("/etc/passwd", dir.join("link")).unwrap()), @"`DIR/link` is a symbolic link, expected a regular file or a directory");
        assert_snapshot!(check_refused(|dir| symlink(".", dir.join("loop")).unwrap()), @"`DIR/loop` is a symbolic link, expected a regular file or a directory");
        assert_snapshot!(check_refused(|dir| drop(UnixListener::bind(dir.join("socket")).unwrap())), @"`DIR/socket` is a socket, expected a regular file or a directory");
        assert_snapshot!(
            check_refused(|dir| {
                let made = std::process::Command::new("mkfifo").arg(dir.join("fifo")).status().unwrap();
                assert!(made.success());
            }),
            @"`DIR/fifo` is a FIFO, expected a regular file or a directory"
        );
    }

    #[test]
    fn names_that_are_not_utf8_are_refused() {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
        assert_snapshot!(check_refused(|dir| fs::write(dir.join(name), "").unwrap()), @"`DIR/caf�` has a name that is not UTF-8");
    }

    #[test]
    fn names_that_layers_reserve_are_refused() {
        assert_snapshot!(check_refused(|dir| fs::write(dir.join(".wh.gone"), "").unwrap()), @"`.wh.gone` cannot be a path in an image: it has a name with `.wh.`, by which layers mark removed files");
    }

    #[test]
    fn a_file_beyond_the_tar_header_is_refused() {
        let prepare = |dir: &Path| File::create(dir.join("huge")).unwrap().set_len(MAX_FILE + 1).unwrap();
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path());
        assert!(matches!(
            FileTree::from_dir(dir.path()),
            Err(TreeError::TooLarge { size: 0o100_000_000_000, .. })
        ));
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = FileTree::from_dir(Path::new("/no/such/directory")).unwrap_err();
        assert_snapshot!(error, @"cannot read `/no/such/directory`");
        assert!(std::error::Error::source(&error).is_some());
    }

    #[test]
    fn a_file_that_changed_since_it_was_added_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        for later in ["shorter", "longer than before"] {
            fs::write(&file, "as before").unwrap();
            let tree = FileTree::from_dir(dir.path()).unwrap();
            fs::write(&file, later).unwrap();
            let error = tree.file("file").unwrap().read().unwrap_err();
            assert_eq!(error.to_string(), "the file changed while it was read");
        }
    }
}
