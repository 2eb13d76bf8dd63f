//! Opens a compiled catalog and reads rows and parts of it, each checked when it is touched.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use flate2::{Decompress, FlushDecompress};
use sha2::{Digest as _, Sha256};

use super::fingerprint::Fingerprint;
use super::format::{HEADER, Header, HeaderError, MAX_INDEX, MAX_PART, Table, part_digest};

/// What is read of the file at once when parts are read one behind the other, in bytes.
const WINDOW: usize = 16 << 10;

/// A compiled catalog that is open. It holds the index in memory and the file open; the file may be replaced meanwhile.
#[derive(Debug)]
pub struct Compiled {
    path: PathBuf,
    file: File,
    header: Header,
    index: Vec<u8>,
    /// Where each table starts in the index, in bytes, and its count of rows.
    tables: [(usize, u32); Table::ALL.len()],
    /// Where the texts' bytes start in the index.
    texts: usize,
}

/// A compiled catalog that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be read.
    #[error("cannot read the compiled catalog `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is something else.
    #[error("`{path}` is not a compiled catalog")]
    Other {
        /// The file.
        path: PathBuf,
    },
    /// It is of another release.
    #[error(
        "`{path}` is a compiled catalog of format {found}; this program reads format {}",
        super::format::FORMAT
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// A part of it is not what it was.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
}

/// A part of a compiled catalog that is not what was written, or names what is not there.
#[derive(Debug, thiserror::Error)]
#[error("the compiled catalog `{path}` is damaged: {what}")]
pub struct Corrupt {
    /// The file.
    pub path: PathBuf,
    /// The part, and what is wrong with it.
    pub what: String,
    /// The system's reason, when it cannot be read at all.
    #[source]
    pub source: Option<io::Error>,
}

/// The place of a part in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartRow {
    number: u32,
    offset: u64,
    pub(super) stored: u32,
    pub(super) raw: u32,
    digest: [u32; 2],
}

impl PartRow {
    /// Its length when unpacked.
    pub(super) fn len(self) -> u32 {
        if self.raw == 0 { self.stored } else { self.raw }
    }
}

impl Compiled {
    /// Opens a file and reads its header and index.
    ///
    /// # Errors
    /// It cannot be read, is something else, or its header or index is damaged.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Read { path: path.to_owned(), source };
        // Opening a pipe blocks until somebody opens it for writing.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(OpenError::Other { path: path.to_owned() });
        }
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let mut bytes = [0; HEADER];
        if !metadata.is_file() || metadata.len() < HEADER as u64 {
            return Err(OpenError::Other { path: path.to_owned() });
        }
        file.read_exact_at(&mut bytes, 0).map_err(failed)?;
        let corrupt = |what: &str| Corrupt { path: path.to_owned(), what: what.to_owned(), source: None };
        let header = Header::decode(&bytes).map_err(|error| match error {
            HeaderError::Magic => OpenError::Other { path: path.to_owned() },
            HeaderError::Format(found) => OpenError::Format { path: path.to_owned(), found },
            HeaderError::Digest => corrupt("its header has another digest").into(),
        })?;
        if header.index_at.checked_add(header.index_len) != Some(metadata.len())
            || header.index_at < HEADER as u64
        {
            return Err(corrupt("it is cut off, or something follows its index").into());
        }
        if header.index_len > MAX_INDEX {
            return Err(corrupt("its index is too large").into());
        }
        let mut index = vec![0; header.index_len as usize];
        file.read_exact_at(&mut index, header.index_at).map_err(failed)?;
        if Sha256::digest(&index).as_slice() != header.index_digest {
            return Err(corrupt("its index has another digest").into());
        }
        let (tables, texts) =
            tables(&index).ok_or_else(|| corrupt("its index has tables that do not fit into it"))?;
        Ok(Self { path: path.to_owned(), file, header, index, tables, texts })
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the catalog's files were when it was compiled.
    pub fn fingerprint(&self) -> Fingerprint {
        self.header.fingerprint
    }

    /// The time of its last change, where the system knows one.
    pub fn modified(&self) -> Option<std::time::SystemTime> {
        self.file.metadata().ok()?.modified().ok()
    }

    /// How many packages and bundles there are; a bundle counts once, whatever channels it is in.
    pub fn counts(&self) -> (u32, u32) {
        (self.rows(Table::Packages), self.rows(Table::Bundles))
    }

    /// Reads every part and compares it with its digest; for those who have the time.
    ///
    /// # Errors
    /// The first part that is not what was written.
    pub fn verify(&self) -> Result<(), Corrupt> {
        let mut window = Window::default();
        (0..self.rows(Table::Parts)).try_for_each(|number| {
            let row = self.part_row(number)?;
            self.stored(row, &mut window).map(drop)
        })
    }

    pub(super) fn corrupt(&self, what: impl Into<String>) -> Corrupt {
        Corrupt { path: self.path.clone(), what: what.into(), source: None }
    }

    /// How many rows a table has.
    pub(super) fn rows(&self, table: Table) -> u32 {
        self.tables[table as usize].1
    }

    /// A row of a table; `N` is the table's width.
    pub(super) fn row<const N: usize>(&self, table: Table, number: u32) -> Result<[u32; N], Corrupt> {
        debug_assert_eq!(N, table.width(), "{}", table.name());
        let (start, rows) = self.tables[table as usize];
        let at = start + number as usize * N * 4;
        let words = if number < rows { self.index.get(at..at + N * 4) } else { None };
        let words =
            words.ok_or_else(|| self.corrupt(format!("row {number} of its {} is missing", table.name())))?;
        let mut row = [0; N];
        for (word, bytes) in row.iter_mut().zip(words.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        Ok(row)
    }

    /// A text by its number.
    pub(super) fn text(&self, number: u32) -> Result<&str, Corrupt> {
        let [start, len] = self.row(Table::Texts, number)?;
        let start = self.texts + start as usize;
        let text =
            self.index.get(start..start + len as usize).and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.ok_or_else(|| self.corrupt(format!("text {number} is invalid")))
    }

    /// The number of a text; `None` when the catalog has it nowhere.
    pub(super) fn number(&self, text: &str) -> Result<Option<u32>, Corrupt> {
        self.search(Table::Texts, 0..self.rows(Table::Texts), |number| Ok(self.text(number)?.cmp(text)))
    }

    /// A row among sorted ones.
    pub(super) fn search(
        &self,
        table: Table,
        range: std::ops::Range<u32>,
        compare: impl Fn(u32) -> Result<std::cmp::Ordering, Corrupt>,
    ) -> Result<Option<u32>, Corrupt> {
        let (mut from, mut to) = (range.start, range.end.min(self.rows(table)));
        while from < to {
            let middle = from + (to - from) / 2;
            match compare(middle)? {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
                std::cmp::Ordering::Equal => return Ok(Some(middle)),
            }
        }
        Ok(None)
    }

    /// Where a part is.
    pub(super) fn part_row(&self, number: u32) -> Result<PartRow, Corrupt> {
        let [low, high, stored, raw, digest @ ..] = self.row::<6>(Table::Parts, number)?;
        let offset = u64::from(high) << 32 | u64::from(low);
        let fits = offset >= HEADER as u64
            && offset.checked_add(stored.into()).is_some_and(|end| end <= self.header.index_at);
        if !fits || stored > MAX_PART || raw > MAX_PART {
            return Err(self.corrupt(format!("part {number} lies outside of it")));
        }
        Ok(PartRow { number, offset, stored, raw, digest })
    }

    /// The bytes of a part as they are stored, checked.
    pub(super) fn stored<'w>(&self, row: PartRow, window: &'w mut Window) -> Result<&'w [u8], Corrupt> {
        let bytes = window.read(&self.file, row.offset, row.stored as usize, self.header.index_at);
        let bytes = bytes.map_err(|source| Corrupt {
            source: Some(source),
            ..self.corrupt(format!("part {} cannot be read", row.number))
        })?;
        if part_digest(bytes) != row.digest {
            return Err(self.corrupt(format!("part {} has another digest", row.number)));
        }
        Ok(bytes)
    }

    /// Appends the bytes of a part, unpacked.
    pub(super) fn append(&self, row: PartRow, window: &mut Window, out: &mut Vec<u8>) -> Result<(), Corrupt> {
        let stored = self.stored(row, window)?;
        if row.raw == 0 {
            out.extend_from_slice(stored);
            return Ok(());
        }
        let end = out.len() + row.raw as usize;
        out.reserve_exact(row.raw as usize);
        // Not more than was promised, whatever the stream says.
        let mut decompress = Decompress::new(false);
        while out.len() < end {
            let (read, written) = (decompress.total_in(), out.len());
            let rest = &stored[read as usize..];
            let unpacked = decompress.decompress_vec(rest, out, FlushDecompress::None);
            if unpacked.is_err() || decompress.total_in() == read && out.len() == written {
                break;
            }
        }
        if out.len() != end {
            return Err(self.corrupt(format!("part {} does not unpack", row.number)));
        }
        Ok(())
    }
}

/// Where the tables and the texts start, if all of it is there.
fn tables(index: &[u8]) -> Option<([(usize, u32); Table::ALL.len()], usize)> {
    let count = |at: usize| Some(u32::from_le_bytes(*index.get(at * 4..)?.first_chunk()?));
    let mut tables = [(0, 0); Table::ALL.len()];
    let mut at = (Table::ALL.len() + 1) * 4;
    for table in Table::ALL {
        let rows = count(table as usize)?;
        tables[table as usize] = (at, rows);
        at = at.checked_add((rows as usize).checked_mul(table.width() * 4)?)?;
    }
    let texts = count(Table::ALL.len())? as usize;
    (at.checked_add(texts)? == index.len()).then_some((tables, at))
}

/// A stretch of the file in memory, so that parts one behind the other cost one read for many.
#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    at: u64,
}

impl Window {
    fn read(&mut self, file: &File, offset: u64, len: usize, end: u64) -> io::Result<&[u8]> {
        let inside = offset.checked_sub(self.at).map(|start| start as usize);
        let inside = inside.filter(|start| start.checked_add(len).is_some_and(|end| end <= self.bytes.len()));
        let start = match inside {
            Some(start) => start,
            None => {
                let more = (end - offset).min(len.max(WINDOW) as u64);
                // What a large part needed is given back.
                if self.bytes.capacity() > 4 * WINDOW && (more as usize) < self.bytes.capacity() / 4 {
                    self.bytes = Vec::new();
                }
                // Nothing is in memory should reading fail.
                self.at = u64::MAX;
                self.bytes.resize(more as usize, 0);
                file.read_exact_at(&mut self.bytes, offset)?;
                self.at = offset;
                0
            }
        };
        Ok(&self.bytes[start..start + len])
    }
}
