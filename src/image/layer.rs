//! A file tree as a layer: tar, compression, and the two digests, in one pass; several layers at once.
//!
//! The tar is POSIX's: plain ustar headers, and a pax record only for a path that a ustar header cannot carry (over its
//! lengths, or not ASCII). The choice depends on nothing but the path, and every reader of layers knows both.

use std::io::{self, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flate2::GzBuilder;
use flate2::write::GzEncoder;
use oci_spec::image::MediaType;
use tar::{Builder, EntryType, Header};
use tempfile::{SpooledData, SpooledTempFile};

use super::blob::{Blob, Local};
use super::digest::{Digest, Hashing};
use super::tree::{FileTree, Node, TreePath};

/// Compressed layers up to this many bytes stay in memory; larger ones go to an unnamed temporary file.
const IN_MEMORY: usize = 8 << 20;

/// zlib's own default. Of 54 MB of catalogs, one processor makes 9.3 MB in 0.46 s; level 1 makes 14.2 MB in 0.20 s, level
/// 3 10.1 MB in 0.32 s.
const GZIP_LEVEL: u32 = 6;

/// zstd's own default, with a window of 8 MiB, the largest that every decoder has to take (RFC 8878, 3.1.1.1.2): packages
/// repeat themselves from bundle to bundle over more than the usual 2 MiB. Of the same catalogs it makes 2.6 MB in 0.07 s;
/// the usual window makes 4 % more of all, and a fifth more of some packages, in the same time.
const ZSTD_LEVEL: i32 = 3;
const ZSTD_WINDOW_LOG: u32 = 23;

/// The compressor's input at a time, in bytes. Another size gives other compressed bytes.
const PIECE: usize = 64 << 10;

/// In a gzip header: made on an unknown operating system.
const UNKNOWN_SYSTEM: u8 = 255;

/// A compressed layer, ready to be stored anywhere. Clones share the bytes.
///
/// # Guarantees
/// The same tree gives the same bytes: entries are sorted, times, owners and owner names are zero, modes are 0644 for
/// files and 0755 for directories and executables. The diff ID never changes between releases; the blob's digest
/// changes when the compressor does.
#[derive(Debug, Clone)]
pub struct Layer {
    blob: Blob,
    diff_id: Digest,
}

/// Why a layer cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// A file cannot be read, or there is no room for it.
    #[error("cannot pack `{path}` into a layer")]
    File {
        /// Its path in the image.
        path: TreePath,
        /// What failed: the file or the temporary file.
        source: io::Error,
    },
    /// The layer's temporary file cannot be written.
    #[error("cannot finish a layer in the temporary directory `{}`", std::env::temp_dir().display())]
    Finish {
        /// The system's reason.
        source: io::Error,
    },
}

impl LayerError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        let (Self::File { source, .. } | Self::Finish { source }) = self;
        (source.kind() == io::ErrorKind::StorageFull)
            .then(|| "large layers are written to a temporary file: make room or set `TMPDIR`".into())
    }
}

impl Layer {
    /// Packs a tree.
    ///
    /// ```
    /// use olmkit::image::{FileTree, Layer};
    ///
    /// let mut tree = FileTree::new();
    /// tree.add_file("hello", "world")?;
    /// let layer = Layer::build(&tree)?;
    /// assert_eq!(layer.diff_id(), Layer::build(&tree)?.diff_id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A file cannot be read or changed since it was added, or the temporary file cannot be written.
    pub fn build(tree: &FileTree) -> Result<Self, LayerError> {
        Self::build_with(tree, Compression::default())
    }

    /// Packs a tree with a compression of choice, which the diff ID does not depend on.
    ///
    /// # Errors
    /// As [`Layer::build`].
    pub fn build_with(tree: &FileTree, compression: Compression) -> Result<Self, LayerError> {
        let started = Packer::new(SpooledTempFile::new(IN_MEMORY), compression);
        let mut tar = Builder::new(Hashing::new(started.map_err(|source| LayerError::Finish { source })?));
        for (path, node) in tree.iter() {
            append(&mut tar, path, node).map_err(|source| LayerError::File { path: path.clone(), source })?;
        }
        let finish = || {
            let (packer, diff_id, _) = tar.into_inner()?.finish();
            let (mut spool, digest, size) = packer.finish()?;
            spool.seek(SeekFrom::Start(0))?;
            let bytes = match spool.into_inner() {
                SpooledData::InMemory(bytes) => Local::Memory(bytes.into_inner().into()),
                SpooledData::OnDisk(file) => file.into(),
            };
            let media_type = match compression {
                Compression::Gzip => MediaType::ImageLayerGzip,
                Compression::Zstd => MediaType::ImageLayerZstd,
            };
            Ok(Self { blob: Blob::from_parts(media_type, digest, size, bytes), diff_id })
        };
        finish().map_err(|source| LayerError::Finish { source })
    }

    /// Packs several trees, as many at once as the machine has processors, and calls `done` with each layer as soon as it
    /// is. The layers are those of [`Layer::build_with`], in the order of the trees.
    ///
    /// # Errors
    /// As [`Layer::build`], for the first tree that fails.
    pub fn build_all(
        trees: &[FileTree],
        compression: Compression,
        done: impl Fn(&Self) + Sync,
    ) -> Result<Vec<Self>, LayerError> {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(trees.len());
        // The largest first, so that nobody waits for the last one at the end.
        let mut order: Vec<usize> = (0..trees.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(trees[*at].size()));
        let next = AtomicUsize::new(0);
        let work = || {
            let mut built = Vec::new();
            while let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                let layer = Self::build_with(&trees[*at], compression);
                layer.iter().for_each(&done);
                built.push((*at, layer));
            }
            built
        };
        let mut built: Vec<_> = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let join = |worker: thread::ScopedJoinHandle<'_, Vec<_>>| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            workers.into_iter().flat_map(join).collect()
        });
        built.sort_by_key(|(at, _)| *at);
        built.into_iter().map(|(_, layer)| layer).collect()
    }

    /// A layer of any bytes, for the tests of those who read layers.
    #[cfg(test)]
    pub(super) fn of_blob(blob: Blob, diff_id: Digest) -> Self {
        Self { blob, diff_id }
    }

    /// The compressed bytes.
    pub fn blob(&self) -> &Blob {
        &self.blob
    }

    /// The digest of the tar before compression, which the image's configuration names.
    pub fn diff_id(&self) -> Digest {
        self.diff_id
    }
}

/// How layers are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Compression {
    /// What every reader of images knows.
    #[default]
    Gzip,
    /// A third of the size and a sixth of the time for catalogs; read by containerd 1.5, CRI-O 1.18, docker 23, skopeo
    /// 1.0 and all later ones.
    Zstd,
}

/// Compresses to the same bytes however its input is cut. The compressors alone do not: where they end their blocks may
/// depend on how much they are given at once, and a file on a slow disk comes in other pieces than one in memory.
struct Packer<W: Write> {
    encoder: Encoder<Hashing<W>>,
    piece: Vec<u8>,
}

enum Encoder<W: Write> {
    Gzip(GzEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
}

impl<W: Write> Packer<W> {
    fn new(inner: W, compression: Compression) -> io::Result<Self> {
        let inner = Hashing::new(inner);
        let encoder = match compression {
            Compression::Gzip => {
                let header = GzBuilder::new().mtime(0).operating_system(UNKNOWN_SYSTEM);
                Encoder::Gzip(header.write(inner, flate2::Compression::new(GZIP_LEVEL)))
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(inner, ZSTD_LEVEL)?;
                encoder.window_log(ZSTD_WINDOW_LOG)?;
                Encoder::Zstd(encoder)
            }
        };
        Ok(Self { encoder, piece: Vec::with_capacity(PIECE) })
    }

    fn pass_on(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Gzip(encoder) => encoder.write_all(&self.piece)?,
            Encoder::Zstd(encoder) => encoder.write_all(&self.piece)?,
        }
        self.piece.clear();
        Ok(())
    }

    /// What was wrapped, and the digest and length of the compressed bytes.
    fn finish(mut self) -> io::Result<(W, Digest, u64)> {
        self.pass_on()?;
        let finished = match self.encoder {
            Encoder::Gzip(encoder) => encoder.finish()?,
            Encoder::Zstd(encoder) => encoder.finish()?,
        };
        Ok(finished.finish())
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == PIECE {
            self.pass_on()?;
        }
        Ok(taken)
    }

    /// Does nothing: to pass on what is there would cut the input.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn append<W: Write>(tar: &mut Builder<W>, path: &TreePath, node: &Node) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    let (entry_type, name, mode, size) = match node {
        Node::Dir => (EntryType::Directory, format!("{path}/"), 0o755, 0),
        Node::File(file) if file.is_executable() => {
            (EntryType::Regular, path.to_string(), 0o755, file.size())
        }
        Node::File(file) => (EntryType::Regular, path.to_string(), 0o644, file.size()),
        Node::Link(name) => {
            header.set_link_name(name)?;
            (EntryType::Symlink, path.to_string(), 0o777, 0)
        }
    };
    header.set_entry_type(entry_type);
    header.set_mode(mode);
    header.set_size(size);
    if !name.is_ascii() || header.set_path(&name).is_err() {
        tar.append_pax_extensions([("path", name.as_bytes())])?;
        set_placeholder(&mut header, &name);
    }
    header.set_cksum();
    match node {
        Node::Dir | Node::Link(_) => tar.append(&header, io::empty()),
        Node::File(file) => tar.append(&header, file.reader()?),
    }
}

/// Names an entry whose true path is in the pax record before it, for readers that know no pax: as much of the path as
/// fits. A cut never falls into a character, nor leaves a file with a directory's trailing slash.
fn set_placeholder(header: &mut Header, name: &str) {
    let room = header.as_old().name.len();
    let cut = name[..name.floor_char_boundary(room)].trim_end_matches('/');
    header.as_old_mut().name[..cut.len()].copy_from_slice(cut.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use std::fmt::Write as _;
    use std::io::Read;
    use std::iter;

    /// Files, an executable, directories, and every way to write a path.
    fn sample() -> FileTree {
        let mut tree = FileTree::new();
        let in_two_parts = format!("{}/{}", "d".repeat(90), "f".repeat(90));
        let in_a_record = "r".repeat(120);
        for path in [in_two_parts.as_str(), in_a_record.as_str(), "ключ.yaml"] {
            tree.add_file(path, "").unwrap();
        }
        tree.add_file("manifests/service.yaml", "apiVersion: v1\nkind: Service\nmetadata:\n  name: demo\n")
            .unwrap();
        tree.add_file("metadata/annotations.yaml", "annotations:\n  key: value\n").unwrap();
        tree.add_executable("bin/run", "#!/bin/true\n").unwrap();
        tree
    }

    fn tar_of(tree: &FileTree) -> Vec<u8> {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(Layer::build(tree).unwrap().blob().reader())
            .read_to_end(&mut bytes)
            .unwrap();
        bytes
    }

    /// What tar and gzip must never change: pinned for good, a change breaks every published digest.
    #[test]
    fn the_diff_id_of_the_sample_never_changes() {
        assert_snapshot!(Layer::build(&sample()).unwrap().diff_id(), @"sha256:316ef80501422b822e74c0f4a8e017c8df3bd00a36405a8cd9d164a35e5cabd9");
    }

    /// Pinned for the locked version of zlib-rs: a new one may compress to other bytes, and then this changes with it.
    #[test]
    fn the_compressed_digest_of_the_sample_is_that_of_the_locked_compressor() {
        let layer = Layer::build(&sample()).unwrap();
        assert_snapshot!(format!("{} {}", layer.blob().digest(), layer.blob().size()), @"sha256:b6d212b91d9921e984f4af9eb3290ede55eed7f7d80e809a1bb184d231d7c9e9 394");
    }

    /// Pinned for the locked version of zstd.
    #[test]
    fn zstd_makes_other_bytes_of_the_same_diff_id() {
        let layer = Layer::build_with(&sample(), Compression::Zstd).unwrap();
        assert_eq!(layer.diff_id(), Layer::build(&sample()).unwrap().diff_id());
        assert_snapshot!(format!("{} {}", layer.blob().digest(), layer.blob().size()), @"sha256:7d3286d3ce95a570b93c14cb9be21e3da297e1170026ee9ab72e9e04230b7daf 408");
    }

    #[test]
    fn the_compressor_does_not_care_how_its_input_is_cut() {
        // Text of a small alphabet in no order, so that the compressor has choices to make.
        let text: Vec<u8> =
            noise(1).map(|number| b"abcdefgh: \n"[(number % 11) as usize]).take(1 << 20).collect();
        for compression in [Compression::Gzip, Compression::Zstd] {
            let cut = |sizes: &mut dyn Iterator<Item = usize>| {
                let mut packer = Packer::new(Vec::new(), compression).unwrap();
                let mut rest = text.as_slice();
                while !rest.is_empty() {
                    let (piece, later) = rest.split_at(sizes.next().unwrap().clamp(1, rest.len()));
                    packer.write_all(piece).unwrap();
                    packer.flush().unwrap();
                    rest = later;
                }
                packer.finish().unwrap().1
            };
            let whole = cut(&mut iter::once(usize::MAX));
            assert_eq!(cut(&mut iter::repeat(1)), whole);
            assert_eq!(cut(&mut iter::repeat(8192)), whole);
            assert_eq!(cut(&mut noise(2).map(|number| (number % 100_000) as usize)), whole);
        }
    }

    /// Numbers in no order, the same for the same seed (xorshift64).
    fn noise(seed: u64) -> impl Iterator<Item = u64> {
        iter::successors(Some(seed), |state| {
            let state = state ^ (state << 13);
            let state = state ^ (state >> 7);
            Some(state ^ (state << 17))
        })
        .skip(1)
    }

    #[test]
    fn the_gzip_header_tells_neither_time_nor_system() {
        let blob = Layer::build(&sample()).unwrap().blob().read(1 << 20).unwrap();
        assert_eq!(blob[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    }

    #[test]
    fn entries_tell_no_owner_and_no_time() {
        let bytes = tar_of(&sample());
        let mut listing = String::new();
        for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
            let entry = entry.unwrap();
            let h = entry.header();
            let names = (h.username().unwrap().unwrap(), h.groupname().unwrap().unwrap());
            let owner = (h.uid().unwrap(), h.gid().unwrap());
            let path = entry.path().unwrap().display().to_string();
            let (kind, mode, size) = (h.entry_type().as_byte() as char, h.mode().unwrap(), entry.size());
            writeln!(listing, "{kind} {mode:o} {owner:?} {names:?} {} {size} {path}", h.mtime().unwrap())
                .unwrap();
        }
        assert_snapshot!(listing, @r#"
        5 755 (0, 0) ("", "") 0 0 bin/
        0 755 (0, 0) ("", "") 0 12 bin/run
        5 755 (0, 0) ("", "") 0 0 dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd/
        0 644 (0, 0) ("", "") 0 0 dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd/ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
        5 755 (0, 0) ("", "") 0 0 manifests/
        0 644 (0, 0) ("", "") 0 52 manifests/service.yaml
        5 755 (0, 0) ("", "") 0 0 metadata/
        0 644 (0, 0) ("", "") 0 26 metadata/annotations.yaml
        0 644 (0, 0) ("", "") 0 0 rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr
        0 644 (0, 0) ("", "") 0 0 ключ.yaml
        "#);
    }

    /// A ustar header holds 100 bytes of name, or 155 and 100 parted at a slash; the rest needs a pax record.
    #[test]
    fn long_and_foreign_paths_survive() {
        let fits = format!("{}/{}", "d".repeat(155), "f".repeat(100));
        let too_long = format!("{}/{}", "d".repeat(155), "f".repeat(101));
        let deep = vec!["deep"; 100].join("/");
        let foreign = "каталог/ключ.yaml".to_owned();
        let cut_in_a_character = format!("{}ключ", "f".repeat(99));
        let cut_at_a_slash = format!("{}/{}", "d".repeat(99), "f".repeat(200));
        for (path, pax) in [
            (fits, false),
            (too_long, true),
            (deep, true),
            (foreign, true),
            (cut_in_a_character, true),
            (cut_at_a_slash, true),
        ] {
            let mut tree = FileTree::new();
            tree.add_file(&path, "content").unwrap();
            let bytes = tar_of(&tree);
            let mut last = None;
            for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
                let mut entry = entry.unwrap();
                let extended = entry.pax_extensions().unwrap().is_some();
                last = Some((
                    entry.path().unwrap().display().to_string(),
                    entry.header().entry_type(),
                    extended,
                ));
            }
            assert_eq!(last, Some((path, EntryType::Regular, pax)));
        }
    }

    #[test]
    fn a_file_that_changed_since_it_was_added_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "before").unwrap();
        let tree = FileTree::from_dir(dir.path()).unwrap();
        std::fs::write(dir.path().join("file"), "after it was added").unwrap();
        let error = Layer::build(&tree).unwrap_err();
        let source = std::error::Error::source(&error).unwrap();
        assert_snapshot!(format!("{error}: {source}"), @"cannot pack `file` into a layer: the file changed while it was read");
    }

    #[test]
    fn a_layer_too_large_for_memory_is_the_same_blob() {
        let noise: Vec<u8> = noise(3).flat_map(u64::to_le_bytes).take(IN_MEMORY + (1 << 20)).collect();
        let mut tree = FileTree::new();
        tree.add_file("noise", noise.clone()).unwrap();
        let layer = Layer::build(&tree).unwrap();
        assert!(layer.blob().size() > IN_MEMORY as u64);
        layer.blob().verify().unwrap();
        assert!(tar_of(&tree).windows(64).any(|window| window == &noise[..64]));
    }

    proptest! {
        #[test]
        fn any_order_of_adding_gives_the_same_blob(
            files in prop::collection::btree_map("[a-c]{1,2}(/[d-f]{1,2}){0,2}", "[a-z]{0,20}", 0..8),
            seed in any::<prop::sample::Index>(),
        ) {
            let mut order: Vec<_> = files.iter().collect();
            let mut forwards = FileTree::new();
            // A file may lie where another needs a directory; such a name is left out of both trees.
            order.retain(|(path, content)| forwards.add_file(path, content.as_bytes()).is_ok());
            if !order.is_empty() {
                let turn = seed.index(order.len());
                order.rotate_left(turn);
                order.reverse();
            }
            let mut backwards = FileTree::new();
            for (path, content) in order {
                backwards.add_file(path, content.as_bytes()).unwrap();
            }
            let (one, other) = (Layer::build(&forwards).unwrap(), Layer::build(&backwards).unwrap());
            prop_assert_eq!(one.blob().digest(), other.blob().digest());
            prop_assert_eq!(one.diff_id(), other.diff_id());
        }
    }
}
