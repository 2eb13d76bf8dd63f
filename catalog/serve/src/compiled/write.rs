//! Writes parts and tables to a file that appears whole or not at all.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use flate2::{Compress, Compression, FlushCompress};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::fingerprint::Fingerprint;
use super::format::{HEADER, Header, MAX_PART, NONE, Table, short};

/// The start of the name of a file that is being written; it begins with [`olmkit_bundle::load::TEMPORARY`], so that no catalog contains it.
const UNFINISHED: &str = ".olmkit-index-";

/// Fast: the file is made where somebody waits for it, and what is packed is seldom read.
const LEVEL: Compression = Compression::new(1);

/// The bytes of a part, ready to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    stored: Vec<u8>,
    /// How many bytes there are when unpacked; 0 when they are stored as they are.
    raw: u32,
    digest: [u32; 2],
    /// The SHA-256 of the stored bytes, by which equal parts are found.
    key: [u8; 32],
}

/// A part that is too large to be one.
#[derive(Debug)]
pub(super) struct TooLarge;

impl Part {
    /// A part as it is.
    pub(super) fn plain(stored: Vec<u8>) -> Result<Self, TooLarge> {
        length(&stored)?;
        Ok(Self::new(stored, 0))
    }

    fn new(stored: Vec<u8>, raw: u32) -> Self {
        let key: [u8; 32] = Sha256::digest(&stored).into();
        Self { digest: short(&key), key, raw, stored }
    }
}

/// Packs parts, several at once. What it needs for that is used again, since it is larger than most parts.
#[derive(Default)]
pub(super) struct Packer {
    idle: Mutex<Vec<Compress>>,
}

impl Packer {
    /// A packed part: whole blocks of a DEFLATE stream that refer to nothing before them, so that packed parts one behind
    /// the other are a stream again.
    pub(super) fn packed(&self, raw: &[u8]) -> Result<Part, TooLarge> {
        let raw_len = length(raw)?;
        if raw.is_empty() {
            return Part::plain(Vec::new());
        }
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let compress = idle().pop();
        let mut compress = compress.unwrap_or_else(|| Compress::new(LEVEL, false));
        let mut stored = Vec::new();
        loop {
            stored.reserve(raw.len() / 4 + 64);
            let rest = &raw[compress.total_in() as usize..];
            // What can go wrong is that there is no room, and then there is more the next time.
            let _ = compress.compress_vec(rest, &mut stored, FlushCompress::Sync);
            if stored.len() < stored.capacity() {
                break;
            }
        }
        compress.reset();
        idle().push(compress);
        length(&stored)?;
        Ok(Part::new(stored, raw_len))
    }

    /// A part as it is, or packed when that is smaller.
    pub(super) fn smaller(&self, raw: &[u8]) -> Result<Part, TooLarge> {
        let packed = self.packed(raw)?;
        if packed.stored.len() < raw.len() { Ok(packed) } else { Part::plain(raw.to_vec()) }
    }
}

fn length(bytes: &[u8]) -> Result<u32, TooLarge> {
    u32::try_from(bytes.len()).ok().filter(|len| *len <= MAX_PART).ok_or(TooLarge)
}

/// Texts with numbers that compare as they do.
pub(super) struct Texts<'t> {
    sorted: Vec<&'t str>,
    numbers: HashMap<&'t str, u32>,
}

impl<'t> Texts<'t> {
    pub(super) fn new(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut sorted: Vec<_> = texts.into_iter().chain([""]).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let numbers = sorted.iter().zip(0..).map(|(text, number)| (*text, number)).collect();
        Self { sorted, numbers }
    }

    /// The number of a text that was given to [`Texts::new`].
    pub(super) fn number(&self, text: &str) -> u32 {
        self.numbers.get(text).copied().unwrap_or(NONE)
    }
}

/// Removes what killed processes have left half written.
fn remove_leftovers(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_unfinished = entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes());
        let is_file = || entry.metadata().is_ok_and(|found| found.is_file());
        if is_unfinished && is_file() {
            let is_dead = fs::File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
            let _ = is_dead.then(|| fs::remove_file(entry.path()));
        }
    }
}

/// A compiled catalog in the making. Nothing is at its path before [`Writer::finish`].
pub(super) struct Writer {
    out: BufWriter<NamedTempFile>,
    at: u64,
    tables: [Vec<u32>; Table::ALL.len()],
    /// Shared parts, which stand once however often they are used.
    known: HashMap<[u8; 32], u32>,
}

impl Writer {
    /// Starts a file beside the path it is going to have.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        fs::create_dir_all(parent)?;
        remove_leftovers(parent);
        // Without the name of that file, which says nothing to a user.
        let plain = |error: io::Error| match error.to_string().split_once(" at path ") {
            Some((reason, _)) => io::Error::new(error.kind(), reason.to_owned()),
            None => error,
        };
        let file = loop {
            let file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(parent).map_err(plain)?;
            // A process that is alive holds the lock of its file. Without locks nothing is removed.
            let _ = file.as_file().try_lock();
            // Another process may have taken it for a dead one's before it was locked.
            if file.path().exists() {
                break file;
            }
        };
        let mut out = BufWriter::with_capacity(256 << 10, file);
        out.write_all(&[0; HEADER])?;
        Ok(Self { out, at: HEADER as u64, tables: Default::default(), known: HashMap::new() })
    }

    /// Writes a part behind the last one; its number.
    pub(super) fn part(&mut self, part: &Part) -> io::Result<u32> {
        self.out.write_all(&part.stored)?;
        let (low, high) = (self.at as u32, (self.at >> 32) as u32);
        let stored = part.stored.len() as u32;
        self.at += u64::from(stored);
        Ok(self.row(Table::Parts, &[low, high, stored, part.raw, part.digest[0], part.digest[1]]))
    }

    /// Writes a part unless the same is there already; its number.
    pub(super) fn shared(&mut self, part: &Part) -> io::Result<u32> {
        if let Some(number) = self.known.get(&part.key) {
            return Ok(*number);
        }
        let number = self.part(part)?;
        self.known.insert(part.key, number);
        Ok(number)
    }

    /// Adds a row to a table; its number.
    pub(super) fn row(&mut self, table: Table, words: &[u32]) -> u32 {
        debug_assert_eq!(words.len(), table.width(), "{}", table.name());
        let number = self.rows(table);
        self.tables[table as usize].extend_from_slice(words);
        number
    }

    /// How many rows a table has.
    pub(super) fn rows(&self, table: Table) -> u32 {
        (self.tables[table as usize].len() / table.width()) as u32
    }

    /// Writes the index and the header, and gives the file its name.
    pub(super) fn finish(
        mut self,
        path: &Path,
        texts: &Texts<'_>,
        fingerprint: Fingerprint,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        for text in &texts.sorted {
            self.row(Table::Texts, &[bytes.len() as u32, text.len() as u32]);
            bytes.extend_from_slice(text.as_bytes());
        }
        let mut index = Vec::new();
        for table in Table::ALL {
            index.extend(self.rows(table).to_le_bytes());
        }
        index.extend((bytes.len() as u32).to_le_bytes());
        for table in Table::ALL {
            index.extend(self.tables[table as usize].iter().flat_map(|word| word.to_le_bytes()));
        }
        index.extend(bytes);
        let header = Header {
            fingerprint,
            index_at: self.at,
            index_len: index.len() as u64,
            index_digest: Sha256::digest(&index).into(),
        };
        self.out.write_all(&index)?;
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&header.encode())?;
        let file = self.out.into_inner().map_err(|error| error.into_error())?;
        // A temporary file is private; a server may run as anybody. No waiting for the disk: what a crash leaves half
        // written, digests show, and it is made again.
        file.as_file().set_permissions(Permissions::from_mode(0o644))?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}
