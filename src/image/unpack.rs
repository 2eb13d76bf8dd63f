//! From an image back to its files: layers applied in order, into memory, with everything bounded.
//!
//! Nothing is ever written to disk here, so that no path, link or device of a hostile archive can reach it; what does not
//! belong into a tree of plain files is refused all the same, and named.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use oci_spec::image::MediaType;
use tar::{Archive, EntryType, Header};

use super::blob::{Blob, BlobError};
use super::digest::{Digest, Hashing};
use super::manifest::Image;
use super::media_types::DOCKER_LAYER;
use super::tree::{FileTree, Node, PathError, TreeError, TreeFile, TreePath, WHITEOUT};

/// `.wh..wh..opq` in a directory: nothing of it is left from the layers below.
const OPAQUE: &str = ".wh..wh..opq";
/// The largest pax or GNU record before an entry, in bytes. Real ones hold a path and some attributes.
pub(crate) const MAX_RECORD: u64 = 1 << 20;
/// Bytes that any image may unpack to, and how many more for each packed byte. Catalogs of text compress 10 to 40 times, and
/// zeros a thousand times: a small image must not take the memory and time of a large one.
const FREE: u64 = 1 << 20;
const MAX_RATIO: u64 = 100;

/// The bytes that so many packed ones may unpack to.
pub(super) fn max_unpacked(packed: u64) -> u64 {
    packed.saturating_mul(MAX_RATIO).saturating_add(FREE)
}

/// What to unpack of an image, and how much at most.
#[derive(Debug, Clone, Default)]
pub struct Unpack {
    /// Only what lies at or below these paths; everything when empty. What lies elsewhere is passed over, so that links
    /// and devices of a base image do no harm.
    pub only: Vec<TreePath>,
    /// Bounds on what an image may make us do.
    pub limits: Limits,
}

/// Bounds on what one image may make us do. The defaults have ample room for any catalog on any base image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files that are kept, which are held in memory, and of their paths: each path counts once for every
    /// directory on it, for that is what a hostile one can cost.
    pub kept: u64,
    /// Bytes of all layers after decompression, kept or passed over.
    pub total: u64,
    /// Entries of all layers.
    pub entries: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { kept: 512 << 20, total: 4 << 30, entries: 500_000 }
    }
}

/// Why an image cannot be unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// The layer's blob is missing or damaged.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The layer is packed in a way that is not supported.
    #[error("layer `{layer}` has the media type `{}`, expected a tar, plain or with gzip or zstd", .media_type.escape_debug())]
    MediaType {
        /// The layer.
        layer: Digest,
        /// What it says that it is.
        media_type: String,
    },
    /// The manifest is not of an image with files.
    #[error("`{digest}` is not an image: its configuration has the media type `{}`", .media_type.escape_debug())]
    NotAnImage {
        /// The manifest.
        digest: Digest,
        /// The media type of its configuration.
        media_type: String,
    },
    /// The layer's content is not what the configuration promises.
    #[error("layer `{layer}` unpacks to the diff ID `{found}`, the image's configuration says `{expected}`")]
    DiffId {
        /// The layer.
        layer: Digest,
        /// The diff ID by the configuration.
        expected: Digest,
        /// The diff ID of what is there.
        found: Digest,
    },
    /// The layer is not a sound gzip or tar.
    #[error("layer `{layer}` is not a valid archive")]
    Archive {
        /// The layer.
        layer: Digest,
        /// What is wrong with it.
        source: io::Error,
    },
    /// There is not enough memory for what is in a layer, or for decompressing it.
    #[error("not enough memory to unpack layer `{layer}`")]
    Memory {
        /// The layer.
        layer: Digest,
        /// What could not be done.
        source: io::Error,
    },
    /// An entry is neither a file nor a directory.
    #[error("layer `{layer}` has `{path}`, a {kind}; expected regular files and directories")]
    Kind {
        /// The layer.
        layer: Digest,
        /// The entry.
        path: TreePath,
        /// What it is.
        kind: &'static str,
    },
    /// An entry's path leads out of the image or cannot be a path, or is taken by another entry.
    #[error("layer `{layer}` has a bad entry")]
    Tree {
        /// The layer.
        layer: Digest,
        /// What is wrong with the entry.
        source: TreeError,
    },
    /// The image is larger than the limits allow.
    #[error("layer `{layer}` exceeds the limit of {limit} {unit}")]
    TooLarge {
        /// The layer with which the limit was reached.
        layer: Digest,
        /// The limit.
        limit: u64,
        /// What is counted.
        unit: &'static str,
    },
    /// The image unpacks to too many times its size.
    #[error(
        "layer `{layer}` unpacks to too much: {packed} bytes of layers may unpack to {limit} bytes, 1 MiB and {MAX_RATIO} times their size"
    )]
    TooDense {
        /// The layer with which the limit was reached.
        layer: Digest,
        /// The sizes of all layers together.
        packed: u64,
        /// The bytes that they may unpack to.
        limit: u64,
    },
}

impl UnpackError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Blob(error) => error.help(),
            Self::MediaType { .. } => Some("build the image with gzip layers".into()),
            Self::Kind { .. } => Some("build the image from plain files".into()),
            _ => None,
        }
    }
}

impl Image {
    /// The files of the image.
    ///
    /// Layers lie over each other as in a container, removals included. Every digest is checked before anything of a
    /// layer is used, and the diff ID before anything is returned.
    ///
    /// # Errors
    /// A layer is damaged, is not what the configuration promises, or holds what a tree of files cannot: paths that lead
    /// out, links, devices, a file twice, more than the limits allow.
    pub fn unpack(&self, options: &Unpack) -> Result<FileTree, UnpackError> {
        if self.platform().is_none() {
            let media_type = self.configuration().media_type().to_string();
            return Err(UnpackError::NotAnImage { digest: self.digest(), media_type });
        }
        Blob::fetch_all(self.layers())?;
        let packed = self.layers().iter().map(Blob::size).fold(0, u64::saturating_add);
        let Limits { kept, total, entries } = options.limits;
        let dense = max_unpacked(packed);
        let mut left = Limits { kept: kept.min(dense), total: total.min(dense), entries };
        let mut tree = FileTree::new();
        for (layer, diff_id) in self.layers().iter().zip(self.diff_ids()) {
            layer.verify()?;
            let unpack = UnpackLayer { layer, options, packed, left: &mut left, upper: Upper::default() };
            let upper = unpack.run(*diff_id)?;
            upper.removed.iter().for_each(|path| tree.remove(path));
            for dir in &upper.emptied {
                match dir {
                    Some(dir) => tree.remove_below(dir),
                    None => tree = FileTree::new(),
                }
            }
            tree.overlay(upper.tree);
        }
        Ok(tree)
    }
}

/// What one layer does to those below it.
#[derive(Default)]
struct Upper {
    tree: FileTree,
    removed: Vec<TreePath>,
    /// Directories that start anew; `None` is the root.
    emptied: Vec<Option<TreePath>>,
}

/// The work on one layer.
struct UnpackLayer<'a> {
    layer: &'a Blob,
    options: &'a Unpack,
    /// The sizes of all layers of the image together.
    packed: u64,
    /// What the limits leave.
    left: &'a mut Limits,
    upper: Upper,
}

impl UnpackLayer<'_> {
    fn run(mut self, diff_id: Digest) -> Result<Upper, UnpackError> {
        let packed = self.layer.reader();
        let stream: Box<dyn Read> = match self.layer.media_type() {
            MediaType::ImageLayer => Box::new(packed),
            kind if *kind == MediaType::ImageLayerGzip || kind.as_ref() == DOCKER_LAYER => {
                Box::new(MultiGzDecoder::new(packed))
            }
            MediaType::ImageLayerZstd => {
                Box::new(zstd::Decoder::new(packed).map_err(|error| self.archive_error(error))?)
            }
            other => {
                return Err(UnpackError::MediaType { layer: self.digest(), media_type: other.to_string() });
            }
        };
        // One byte more than allowed shows that there is more.
        let room = self.left.total;
        let mut archive = Archive::new(Hashing::new(stream.take(room.saturating_add(1))));
        let outcome = self.entries(&mut archive);

        let mut stream = archive.into_inner();
        // The end of the archive need not be the end of the stream, which the diff ID is about.
        let drained = outcome.and_then(|()| {
            io::copy(&mut stream, &mut io::sink()).map_err(|source| self.archive_error(source)).map(drop)
        });
        let (_, found, count) = stream.finish();
        if count > room {
            return Err(self.too_large(self.options.limits.total, "bytes after decompression"));
        }
        drained?;
        self.left.total -= count;
        if found != diff_id {
            return Err(UnpackError::DiffId { layer: self.digest(), expected: diff_id, found });
        }
        Ok(self.upper)
    }

    fn entries(&mut self, archive: &mut Archive<impl Read>) -> Result<(), UnpackError> {
        // Raw: the library would read records of any size into memory, and keeps attributes that are of no use here.
        let entries = archive.entries().map_err(|source| self.archive_error(source))?.raw(true);
        let mut records = Records::default();
        for entry in entries {
            let mut entry = entry.map_err(|source| self.archive_error(source))?;
            let left = self.left.entries.checked_sub(1);
            self.left.entries = left.ok_or_else(|| self.too_large(self.options.limits.entries, "entries"))?;
            let header = entry.header().clone();
            let kind = header.entry_type();
            if is_record(kind) {
                if entry.size() > MAX_RECORD {
                    return Err(self.too_large(MAX_RECORD, "bytes in the record before an entry"));
                }
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(|source| self.archive_error(source))?;
                records.take(kind, &bytes).map_err(|source| self.archive_error(source))?;
                continue;
            }
            let records = std::mem::take(&mut records);
            if records.size.is_some_and(|size| size != entry.size()) {
                return Err(self.archive_error(io::Error::other("a pax record contradicts an entry's size")));
            }
            self.entry(&header, records, &mut entry)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        header: &Header,
        records: Records,
        content: &mut tar::Entry<'_, impl Read>,
    ) -> Result<(), UnpackError> {
        let is_sparse = records.is_sparse;
        let is_dir = header.entry_type().is_dir();
        let path = records.path.unwrap_or_else(|| header.path_bytes().into_owned());
        let Some(path) = self.path(path, is_dir)? else { return Ok(()) };
        let (parent, name) =
            path.rsplit_once('/').map_or((None, path.as_str()), |(dir, name)| (Some(dir), name));
        if name == OPAQUE {
            let dir = parent.map(|dir| self.tree_path(dir)).transpose()?;
            if dir.as_ref().is_none_or(|dir| self.is_wanted(dir)) {
                self.keep(cost(&path))?;
                self.upper.emptied.push(dir);
            }
            return Ok(());
        }
        if let Some(name) = name.strip_prefix(WHITEOUT) {
            let removed = parent.map_or_else(|| name.to_owned(), |dir| format!("{dir}/{name}"));
            let removed = self.tree_path(&removed)?;
            if self.is_wanted(&removed) {
                self.keep(cost(&path))?;
                self.upper.removed.push(removed);
            }
            return Ok(());
        }
        let path = self.tree_path(&path)?;
        if !self.is_wanted(&path) {
            return Ok(());
        }
        self.keep(cost(path.as_str()))?;
        let node = match header.entry_type() {
            EntryType::Directory => Node::Dir,
            EntryType::Regular | EntryType::Continuous if !is_sparse => {
                let executable = header.mode().map_err(|source| self.archive_error(source))? & 0o111 != 0;
                Node::File(TreeFile::from_memory(self.content(content)?, executable))
            }
            kind => return Err(UnpackError::Kind { layer: self.digest(), path, kind: name_of(kind) }),
        };
        self.upper.tree.insert(path, node).map_err(|error| self.bad_entry(error))
    }

    fn content(&mut self, entry: &mut tar::Entry<'_, impl Read>) -> Result<Vec<u8>, UnpackError> {
        let size = entry.size();
        self.keep(size)?;
        // The size is within the bounds, and the system gives memory for those bytes alone that come.
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(size as usize);
        reserved.map_err(|_| self.archive_error(io::ErrorKind::OutOfMemory.into()))?;
        entry.read_to_end(&mut bytes).map_err(|source| self.archive_error(source))?;
        if bytes.len() as u64 != size {
            return Err(self.archive_error(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(bytes)
    }

    fn keep(&mut self, bytes: u64) -> Result<(), UnpackError> {
        let left = self.left.kept.checked_sub(bytes);
        self.left.kept = left.ok_or_else(|| self.too_large(self.options.limits.kept, "bytes of files"))?;
        Ok(())
    }

    /// An entry's path as text, without the `./` before it and a directory's `/` after it; `None` is the root itself.
    fn path(&self, bytes: Vec<u8>, is_dir: bool) -> Result<Option<String>, UnpackError> {
        let text = String::from_utf8(bytes).map_err(|error| {
            let path = String::from_utf8_lossy(error.as_bytes()).into_owned();
            self.bad_entry(PathError { path, reason: "is not UTF-8" })
        })?;
        let mut path = text.as_str();
        while let Some(rest) = path.strip_prefix("./") {
            path = rest;
        }
        if is_dir && matches!(path, "." | "") && !text.is_empty() {
            return Ok(None);
        }
        Ok(Some(if is_dir && path != "/" { path.strip_suffix('/').unwrap_or(path) } else { path }.to_owned()))
    }

    fn tree_path(&self, path: &str) -> Result<TreePath, UnpackError> {
        path.parse().map_err(|error: PathError| self.bad_entry(error))
    }

    /// Whether an entry is asked for, or lies above something that is: what is no directory there is in the way.
    fn is_wanted(&self, path: &TreePath) -> bool {
        let only = &self.options.only;
        only.is_empty() || only.iter().any(|wanted| path.is_within(wanted) || wanted.is_within(path))
    }

    fn digest(&self) -> Digest {
        self.layer.digest()
    }

    fn bad_entry(&self, error: impl Into<TreeError>) -> UnpackError {
        UnpackError::Tree { layer: self.digest(), source: error.into() }
    }

    fn archive_error(&self, source: io::Error) -> UnpackError {
        let layer = self.digest();
        // The decompressors have no kind of their own for it.
        if source.kind() == io::ErrorKind::OutOfMemory || source.to_string().contains("memory") {
            return UnpackError::Memory { layer, source };
        }
        UnpackError::Archive { layer, source: plain_words(source) }
    }

    /// The limit that was given, or the lower one that follows from the size of the image.
    fn too_large(&self, limit: u64, unit: &'static str) -> UnpackError {
        let (layer, packed) = (self.digest(), self.packed);
        match max_unpacked(packed) {
            dense if dense < limit => UnpackError::TooDense { layer, packed, limit: dense },
            _ => UnpackError::TooLarge { layer, limit, unit },
        }
    }
}

/// What the records before an entry say of it, as far as it matters here.
#[derive(Default)]
pub(crate) struct Records {
    /// The path, where the header has no room for it.
    pub(crate) path: Option<Vec<u8>>,
    /// The size, where the header has no room for it.
    pub(crate) size: Option<u64>,
    is_sparse: bool,
}

impl Records {
    /// Reads one of the records, which is no longer than [`MAX_RECORD`].
    ///
    /// # Errors
    /// It is malformed.
    pub(crate) fn take(&mut self, kind: EntryType, bytes: &[u8]) -> io::Result<()> {
        match kind {
            EntryType::GNULongName => {
                self.path = Some(bytes.strip_suffix(b"\0").unwrap_or(bytes).to_vec());
            }
            EntryType::XHeader => self.take_pax(bytes)?,
            // A link's target, and defaults for the whole archive: links are refused by their entry, and a path or size
            // for all entries would make no sense.
            _ => {}
        }
        Ok(())
    }

    /// Reads records of the form `LENGTH KEY=VALUE\n`. By their lengths, for values may hold any byte: the tar library
    /// stops at a line feed within one.
    fn take_pax(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let malformed = || io::Error::other("a pax record is malformed");
        while !bytes.is_empty() {
            let space = bytes.iter().take(20).position(|byte| *byte == b' ').ok_or_else(malformed)?;
            let length = number(&bytes[..space]).and_then(|length| usize::try_from(length).ok());
            let length = length.filter(|length| *length > space).ok_or_else(malformed)?;
            let (record, rest) = bytes.split_at_checked(length).ok_or_else(malformed)?;
            let record = record[space + 1..].strip_suffix(b"\n").ok_or_else(malformed)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(malformed)?;
            match (&record[..equals], &record[equals + 1..]) {
                (b"path", value) => self.path = Some(value.to_vec()),
                (b"size", value) => self.size = Some(number(value).ok_or_else(malformed)?),
                (key, _) => self.is_sparse |= key.starts_with(b"GNU.sparse."),
            }
            bytes = rest;
        }
        Ok(())
    }
}

/// The most that a path can add to a tree: itself, and every directory on it.
fn cost(path: &str) -> u64 {
    path.len() as u64 * path.split('/').count() as u64
}

fn number(digits: &[u8]) -> Option<u64> {
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Entries that describe the entry after them.
pub(crate) fn is_record(kind: EntryType) -> bool {
    matches!(
        kind,
        EntryType::XHeader | EntryType::XGlobalHeader | EntryType::GNULongName | EntryType::GNULongLink
    )
}

/// An error of the tar library, without the bytes that it could not read.
pub(super) fn plain_words(error: io::Error) -> io::Error {
    match error.to_string() {
        text if text.contains("numeric field") => {
            io::Error::new(error.kind(), "the header of an entry is not one of a tar")
        }
        _ => error,
    }
}

fn name_of(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Symlink => "symbolic link",
        EntryType::Link => "hard link",
        EntryType::Char => "character device",
        EntryType::Block => "block device",
        EntryType::Fifo => "FIFO",
        EntryType::GNUSparse | EntryType::Regular | EntryType::Continuous => "sparse file",
        _ => "special entry",
    }
}

#[cfg(test)]
mod tests;
