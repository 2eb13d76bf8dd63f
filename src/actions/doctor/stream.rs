//! What a file or a pipe holds, decompressed while it is read, in bounded memory.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

use super::{MAX_FILE, MAX_PACKED, is_stdin};
use crate::files;
use crate::limits::Limits;

/// How everything begins that gzip has compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// How everything begins that zstd has compressed.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The largest window of zstd, as a power of two: 128 MiB, what `zstd` itself takes without a flag.
const WINDOW_LOG: u32 = 27;
/// The bytes that any file may unpack to, and how many more for each byte of it: what clusters hold unpacks to 50 times its size at most.
const FREE: u64 = 1 << 20;
const MAX_RATIO: u64 = 100;
/// Enough of a beginning to tell what it is: a tar says so after 257 bytes.
const START: u64 = 512;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
}

/// A file or a pipe that is read once, from its beginning.
pub(super) struct Stream {
    reader: Box<dyn Read>,
    /// How it is compressed.
    pub(super) compression: Compression,
    /// Its first bytes as they stand in the file.
    pub(super) raw: Vec<u8>,
    /// Its first bytes after decompression.
    start: Vec<u8>,
    /// Why not even these can be read.
    error: Option<io::Error>,
    /// How long it is after decompression, in bytes, if it says so.
    length: Option<u64>,
}

impl Stream {
    /// Opens a file, or standard input for `-`, which is waited for as long as the limits say, as is a pipe that has a name.
    ///
    /// # Errors
    /// It cannot be opened or read.
    pub(super) fn open(path: &Path, limits: Limits) -> io::Result<Self> {
        let mut file: Box<dyn Read> = if is_stdin(path) {
            Box::new(files::Pipe::stdin(limits))
        } else if files::is_pipe(path) {
            Box::new(files::Pipe::open(path, limits))
        } else {
            Box::new(BufReader::new(File::open(path)?))
        };
        let raw = start_of(&mut file)?;
        let packed = Rc::new(Cell::new(0));
        let file = Counted { reader: Cursor::new(raw.clone()).chain(file), read: Rc::clone(&packed) };
        let unpacked = |reader| Box::new(Unpacked { reader, packed, read: 0 });
        let (compression, mut reader): (_, Box<dyn Read>) = if raw.starts_with(&GZIP) {
            (Compression::Gzip, unpacked(Box::new(MultiGzDecoder::new(file))))
        } else if raw.starts_with(&ZSTD) {
            let mut decoder = zstd::Decoder::new(file)?;
            decoder.window_log_max(WINDOW_LOG)?;
            (Compression::Zstd, unpacked(Box::new(decoder)))
        } else {
            (Compression::None, Box::new(file))
        };
        let length = match compression {
            Compression::Zstd => zstd::zstd_safe::get_frame_content_size(&raw).ok().flatten(),
            _ => None,
        };
        let mut start = Vec::new();
        let error = reader.by_ref().take(START).read_to_end(&mut start).err();
        Ok(Self { reader, compression, raw, start, error, length })
    }

    /// Whether it is a tar.
    pub(super) fn is_tar(&self) -> bool {
        self.start.get(257..262) == Some(b"ustar")
    }

    /// What it holds, to be read in pieces.
    pub(super) fn into_reader(self) -> impl Read {
        Cursor::new(self.start).chain(self.reader)
    }

    /// How large a file in it may be that is read, in bytes.
    pub(super) fn most(&self) -> u64 {
        if self.compression == Compression::None { MAX_FILE } else { MAX_PACKED }
    }

    /// What it holds as far as it can be read, and why not to its end; nothing at all of what is larger than [`Stream::most`].
    pub(super) fn into_bytes(mut self) -> (Option<Vec<u8>>, io::Result<()>) {
        if let Some(error) = self.error.take() {
            return (Some(self.start), Err(error));
        }
        let most = self.most();
        if self.length.is_some_and(|length| length > most) {
            return (None, Ok(()));
        }
        let (bytes, read) = read_most(self.into_reader(), most + 1);
        if bytes.len() as u64 > most { (None, Ok(())) } else { (Some(bytes), read) }
    }
}

/// Counts the bytes that are read.
struct Counted<R> {
    reader: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(bytes)?;
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }
}

/// What something unpacks to, up to so many times its size: a small file must not make more work than a large one.
struct Unpacked {
    reader: Box<dyn Read>,
    /// The bytes that were read of it as it is packed.
    packed: Rc<Cell<u64>>,
    read: u64,
}

impl Read for Unpacked {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(bytes)?;
        self.read += count as u64;
        if self.read > FREE + MAX_RATIO * self.packed.get() {
            return Err(io::Error::other(TOO_DENSE));
        }
        Ok(count)
    }
}

/// Where something unpacks to more than is read.
const TOO_DENSE: &str = "unpacks to more than 1 MiB and 100 times its size";

/// Reads up to so many bytes, and why not all of what there is. The system gives memory for those alone that come; a vector that grows
/// is copied, and takes twice what it holds.
pub(super) fn read_most(reader: impl Read, most: u64) -> (Vec<u8>, io::Result<()>) {
    let mut bytes = Vec::new();
    // Where there is no room for the most, there may be for less.
    let _ = bytes.try_reserve_exact(most as usize);
    let read = reader.take(most).read_to_end(&mut bytes);
    (bytes, read.map(drop))
}

/// The first bytes.
fn start_of(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    reader.take(START).read_to_end(&mut start)?;
    Ok(start)
}

/// Why something that was compressed, or a tar, cannot be read to its end.
pub(super) fn damaged(error: &io::Error) -> String {
    match error.to_string() {
        text if text.contains("too much memory") => format!(
            "it needs more than {} MiB of memory to be decompressed: decompress it with `zstd -d --long=31`",
            (1_u64 << WINDOW_LOG) >> 20
        ),
        text if text.contains(TOO_DENSE) => format!("it {TOO_DENSE}: unpack it, and pass the files"),
        text => format!("it ends early or is damaged: {text}"),
    }
}
