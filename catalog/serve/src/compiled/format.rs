//! The layout of a compiled catalog: a header, the parts, and an index of tables of numbers.
//!
//! Everything is little-endian. The header has a fixed length and says where the index is; the index says where the parts
//! are. A part is a run of bytes with a digest: a piece of a protobuf message, or a blob as JSON. The index is tables whose
//! rows are a fixed number of words, then the bytes of all texts. Texts are sorted, so their numbers compare as they do.

use sha2::{Digest as _, Sha256};

use super::fingerprint::Fingerprint;

/// What the file starts with; the line break shows whether it was carried as text.
pub(super) const MAGIC: [u8; 16] = *b"olmkit catalog\r\n";
/// Changes with everything that an older reader would misread.
pub(super) const FORMAT: u32 = 1;
/// The length of the header in bytes.
pub(super) const HEADER: usize = 176;
/// The largest index that is read, in bytes: some hundred times that of the largest catalogs known.
pub(super) const MAX_INDEX: u64 = 512 << 20;
/// The largest part, as stored and as it is when unpacked, in bytes.
pub(super) const MAX_PART: u32 = 256 << 20;
/// Stands for "none" where a row names another.
pub(super) const NONE: u32 = u32::MAX;

/// The tables of the index, in their order, each with the words of a row:
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// A text: start and length in the text bytes. Sorted.
    Texts,
    /// A part: offset (two words), stored length, unpacked length or 0 when it is stored as it is, digest (two words).
    Parts,
    /// A package: name, default channel, first channel, count of channels, part. Sorted by name.
    Packages,
    /// A channel: package, name, first entry, count of entries, head (an entry). Sorted by package and name.
    Channels,
    /// A channel's entry: channel, bundle, its name, part, how much of that comes before its edges, replaces, first skip, count
    /// of skips. Sorted by channel and name.
    Entries,
    /// A text that an entry skips.
    Skips,
    /// The entries as ListBundles gives them: by channel, package and name.
    Listing,
    /// A bundle: part, whether it has an image, first manifest, count of those that are objects, the manifest that is its CSV.
    Bundles,
    /// A manifest: first segment, count of segments.
    Manifests,
    /// A part that is a segment of a manifest.
    Segments,
    /// An API: group, version, kind, first provider, count of providers. Sorted.
    Apis,
    /// An entry whose bundle provides an API.
    Providers,
    /// A name that entries replace or skip: text, first replacer, count of replacers. Sorted.
    Replaced,
    /// An entry that replaces or skips a name.
    Replacers,
    /// A blob: schema, package, name, part, CRC-32 of the unpacked bytes. In the order of the files.
    Blobs,
    /// A blob of a schema that is not OLM's, as protobuf: schema, package, part.
    Customs,
}

impl Table {
    pub(super) const ALL: [Self; 16] = [
        Self::Texts,
        Self::Parts,
        Self::Packages,
        Self::Channels,
        Self::Entries,
        Self::Skips,
        Self::Listing,
        Self::Bundles,
        Self::Manifests,
        Self::Segments,
        Self::Apis,
        Self::Providers,
        Self::Replaced,
        Self::Replacers,
        Self::Blobs,
        Self::Customs,
    ];

    /// The words of a row.
    pub(super) const fn width(self) -> usize {
        match self {
            Self::Skips | Self::Listing | Self::Segments | Self::Providers | Self::Replacers => 1,
            Self::Texts | Self::Manifests => 2,
            Self::Replaced | Self::Customs => 3,
            Self::Packages | Self::Channels | Self::Bundles | Self::Apis | Self::Blobs => 5,
            Self::Parts => 6,
            Self::Entries => 8,
        }
    }

    /// The name in messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Texts => "texts",
            Self::Parts => "parts",
            Self::Packages => "packages",
            Self::Channels => "channels",
            Self::Entries => "entries",
            Self::Skips => "skips",
            Self::Listing => "listing",
            Self::Bundles => "bundles",
            Self::Manifests => "manifests",
            Self::Segments => "segments",
            Self::Apis => "APIs",
            Self::Providers => "providers",
            Self::Replaced => "replaced names",
            Self::Replacers => "replacers",
            Self::Blobs => "blobs",
            Self::Customs => "custom blobs",
        }
    }
}

/// The header's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// What the catalog's files were.
    pub(super) fingerprint: Fingerprint,
    /// Where the index starts; it ends where the file does.
    pub(super) index_at: u64,
    /// The index's length in bytes.
    pub(super) index_len: u64,
    /// The index's digest.
    pub(super) index_digest: [u8; 32],
}

/// Why a header cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeaderError {
    Magic,
    Format(u32),
    Digest,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = Vec::with_capacity(HEADER);
        bytes.extend(MAGIC);
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend([0; 12]);
        bytes.extend(self.fingerprint.content);
        bytes.extend(self.fingerprint.shape);
        bytes.extend(self.index_at.to_le_bytes());
        bytes.extend(self.index_len.to_le_bytes());
        bytes.extend(self.index_digest);
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        bytes.extend(digest);
        let mut header = [0; HEADER];
        header.copy_from_slice(&bytes);
        header
    }

    pub(super) fn decode(bytes: &[u8; HEADER]) -> Result<Self, HeaderError> {
        let mut rest = bytes.as_slice();
        if take::<16>(&mut rest) != MAGIC {
            return Err(HeaderError::Magic);
        }
        let format = u32::from_le_bytes(take(&mut rest));
        if format != FORMAT {
            return Err(HeaderError::Format(format));
        }
        let (signed, digest) = bytes.split_at(HEADER - 32);
        if Sha256::digest(signed).as_slice() != digest {
            return Err(HeaderError::Digest);
        }
        let _reserved: [u8; 12] = take(&mut rest);
        let (content, shape) = (take(&mut rest), take(&mut rest));
        Ok(Self {
            fingerprint: Fingerprint { content, shape },
            index_at: u64::from_le_bytes(take(&mut rest)),
            index_len: u64::from_le_bytes(take(&mut rest)),
            index_digest: take(&mut rest),
        })
    }
}

/// The next bytes; zeros when there are not so many, which a header's fixed length rules out.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    match rest.split_first_chunk() {
        Some((chunk, behind)) => {
            *rest = behind;
            *chunk
        }
        None => [0; N],
    }
}

/// The digest that a part is stored with: the first eight bytes of its SHA-256.
pub(super) fn part_digest(bytes: &[u8]) -> [u32; 2] {
    short(&Sha256::digest(bytes).into())
}

/// The first eight bytes of a SHA-256.
pub(super) fn short(digest: &[u8; 32]) -> [u32; 2] {
    let word = |at: usize| u32::from_le_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]]);
    [word(0), word(4)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_shows_every_change() {
        let header = Header {
            fingerprint: Fingerprint { content: [1; 32], shape: [2; 32] },
            index_at: 3,
            index_len: 4,
            index_digest: [5; 32],
        };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Ok(header));
        for at in 0..HEADER {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert!(Header::decode(&changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn tables_are_in_the_order_of_their_numbers() {
        for (at, table) in Table::ALL.into_iter().enumerate() {
            assert_eq!(table as usize, at, "{}", table.name());
        }
    }
}
