//! Blobs as JSON lines, as OLM v1 reads catalogs; packed as gzip without packing anything anew.
//!
//! A blob is stored as blocks of a DEFLATE stream that refer to nothing before them. So any choice of blobs, between a gzip header
//! and a trailer, is a gzip file; the trailer's CRC is combined from those of the blobs.

use super::format::Table;
use super::read::{Compiled, Corrupt, Window};

/// A gzip header without name or time, made on an unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// The last block of a DEFLATE stream, empty.
const LAST_BLOCK: [u8; 2] = [3, 0];

/// Which blobs; all when nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobFilter {
    /// Those of this schema.
    pub schema: String,
    /// Those of this package. An `olm.package` is of none.
    pub package: String,
    /// Those of this name.
    pub name: String,
}

/// Blobs as JSON lines, in the order of the files, read as one goes along.
#[derive(Debug)]
pub struct Blobs {
    parts: Vec<u32>,
    next: usize,
    window: Window,
    gzip: bool,
    raw_len: u64,
    len: u64,
    crc: u32,
    started: bool,
    ended: bool,
}

impl Compiled {
    /// The blobs that a filter lets through.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn blobs(&self, filter: &BlobFilter) -> Result<Blobs, Corrupt> {
        let mut wanted = [None; 3];
        let mut known = true;
        for (wanted, text) in wanted.iter_mut().zip([&filter.schema, &filter.package, &filter.name]) {
            if !text.is_empty() {
                *wanted = self.number(text)?;
                known &= wanted.is_some();
            }
        }
        let mut blobs = Blobs {
            parts: Vec::new(),
            next: 0,
            window: Window::default(),
            gzip: false,
            raw_len: 0,
            len: 0,
            crc: 0,
            started: false,
            ended: false,
        };
        let mut crc = crc32fast::Hasher::new();
        for number in 0..if known { self.rows(Table::Blobs) } else { 0 } {
            let [schema, package, name, part, blob_crc] = self.row(Table::Blobs, number)?;
            let fits = |(wanted, found): (&Option<u32>, u32)| wanted.is_none_or(|wanted| wanted == found);
            if wanted.iter().zip([schema, package, name]).all(fits) {
                let row = self.part_row(part)?;
                blobs.parts.push(part);
                blobs.raw_len += u64::from(row.len());
                blobs.len += u64::from(row.stored);
                crc.combine(&crc32fast::Hasher::new_with_initial_len(blob_crc, row.len().into()));
            }
        }
        blobs.crc = crc.finalize();
        Ok(blobs)
    }
}

impl Blobs {
    /// The number of bytes as they are.
    pub fn raw_len(&self) -> u64 {
        self.raw_len
    }

    /// The same as gzip.
    #[must_use]
    pub fn gzipped(self) -> Self {
        Self { gzip: true, ..self }
    }

    /// The number of bytes that all pieces have together.
    pub fn len(&self) -> u64 {
        if self.gzip { (GZIP_HEADER.len() + LAST_BLOCK.len() + 8) as u64 + self.len } else { self.raw_len }
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next piece; none at the end.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn next(&mut self, catalog: &Compiled) -> Result<Option<Vec<u8>>, Corrupt> {
        let mut piece = Vec::new();
        if self.gzip && !self.started {
            piece.extend(GZIP_HEADER);
        }
        self.started = true;
        // Small blobs go together.
        while piece.len() < 16 << 10 {
            let Some(part) = self.parts.get(self.next) else { break };
            self.next += 1;
            let row = catalog.part_row(*part)?;
            if self.gzip {
                piece.extend_from_slice(catalog.stored(row, &mut self.window)?);
            } else {
                catalog.append(row, &mut self.window, &mut piece)?;
            }
        }
        if self.next >= self.parts.len() && !self.ended {
            self.ended = true;
            if self.gzip {
                piece.extend(LAST_BLOCK);
                piece.extend(self.crc.to_le_bytes());
                piece.extend((self.raw_len as u32).to_le_bytes());
            }
        }
        Ok((!piece.is_empty()).then_some(piece))
    }
}
