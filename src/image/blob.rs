//! One blob: its media type, digest and size, and where its bytes are.
//!
//! Blobs are what every place stores; a manifest, a configuration and a layer are blobs alike. The bytes are in memory
//! when they are few and in an open file when they are many, so that an image is a value of bounded size.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use oci_spec::image::{Descriptor, MediaType};

use super::digest::{Digest, DigestError, Hashing};

/// Bytes with their media type, digest and size. Clones share the bytes.
///
/// # Guarantees
/// [`Blob::copy_to`], [`Blob::read`] and [`Blob::verify`] fail when the bytes are not those that the digest names.
#[derive(Clone)]
pub struct Blob {
    media_type: MediaType,
    digest: Digest,
    size: u64,
    bytes: Arc<Bytes>,
}

#[derive(Debug)]
pub(super) enum Bytes {
    Memory(Vec<u8>),
    File(File),
}

/// Why a blob's bytes cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The digest that names the blob is not one that can be checked.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// The blob is not there.
    #[error("blob `{digest}` is missing")]
    Missing {
        /// The digest by which something names it.
        digest: Digest,
    },
    /// There are more or fewer bytes than the descriptor says.
    #[error("blob `{digest}` should have {expected} bytes and has {found}")]
    Size {
        /// The blob.
        digest: Digest,
        /// Bytes by the descriptor.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// The bytes are not those that the digest names.
    #[error("blob `{digest}` is corrupted: its content has the digest `{found}`")]
    Corrupted {
        /// The blob.
        digest: Digest,
        /// The digest of what is there.
        found: Digest,
    },
    /// The blob is larger than what such a blob may be.
    #[error("blob `{digest}` has {size} bytes, at most {limit} are allowed")]
    TooLarge {
        /// The blob.
        digest: Digest,
        /// Its size in bytes.
        size: u64,
        /// The bound in bytes.
        limit: u64,
    },
    /// Reading failed.
    #[error("cannot read blob `{digest}`")]
    Read {
        /// The blob.
        digest: Digest,
        /// The system's reason.
        source: io::Error,
    },
    /// The bytes were read and could not be written.
    #[error("cannot write blob `{digest}`")]
    Write {
        /// The blob.
        digest: Digest,
        /// The system's reason.
        source: io::Error,
    },
}

impl BlobError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Missing { .. } | Self::Size { .. } | Self::Corrupted { .. } => {
                Some("the copy is damaged: build the image again or fetch it again".into())
            }
            _ => None,
        }
    }
}

impl Blob {
    /// A blob of bytes that are at hand.
    pub(super) fn from_bytes(media_type: MediaType, bytes: Vec<u8>) -> Self {
        let (digest, size) = (Digest::of(&bytes), bytes.len() as u64);
        Self::from_parts(media_type, digest, size, Bytes::Memory(bytes))
    }

    /// A blob whose digest and size were computed while its bytes were written.
    pub(super) fn from_parts(media_type: MediaType, digest: Digest, size: u64, bytes: Bytes) -> Self {
        Self { media_type, digest, size, bytes: Arc::new(bytes) }
    }

    /// The blob that a descriptor names, in a file that is said to hold it.
    ///
    /// # Errors
    /// The digest is not SHA-256, or the file's length is not the descriptor's. The content is checked when it is read.
    pub(super) fn from_file(descriptor: &Descriptor, file: File) -> Result<Self, BlobError> {
        let digest = Digest::try_from(descriptor.digest())?;
        let found = match file.metadata() {
            Ok(metadata) => metadata.len(),
            Err(source) => return Err(BlobError::Read { digest, source }),
        };
        if found != descriptor.size() {
            return Err(BlobError::Size { digest, expected: descriptor.size(), found });
        }
        Ok(Self::from_parts(descriptor.media_type().clone(), digest, found, Bytes::File(file)))
    }

    /// What the bytes are.
    pub fn media_type(&self) -> &MediaType {
        &self.media_type
    }

    /// The digest that names the bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The number of bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The blob as a manifest or an index names it.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::new(self.media_type.clone(), self.size, self.digest)
    }

    /// Whether this is the blob that a descriptor names.
    pub(super) fn is_named_by(&self, descriptor: &Descriptor) -> bool {
        Digest::try_from(descriptor.digest()) == Ok(self.digest)
            && (&self.media_type, self.size) == (descriptor.media_type(), descriptor.size())
    }

    /// Copies the bytes and checks them on the way. What was written is worth nothing when this fails.
    ///
    /// # Errors
    /// The bytes cannot be read or written, or are not those that the digest names.
    pub fn copy_to(&self, writer: &mut impl Write) -> Result<(), BlobError> {
        let digest = self.digest;
        let mut source = Hashing::new(self.reader());
        let mut buffer = vec![0; 128 * 1024];
        loop {
            let read = match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(BlobError::Read { digest, source }),
            };
            writer.write_all(&buffer[..read]).map_err(|source| BlobError::Write { digest, source })?;
        }
        let (_, found, size) = source.finish();
        if size != self.size {
            return Err(BlobError::Size { digest, expected: self.size, found: size });
        }
        if found != self.digest {
            return Err(BlobError::Corrupted { digest, found });
        }
        Ok(())
    }

    /// Reads everything to check it.
    ///
    /// # Errors
    /// As [`Blob::copy_to`].
    pub fn verify(&self) -> Result<(), BlobError> {
        self.copy_to(&mut io::sink())
    }

    /// The bytes, checked, when there are no more than `limit` of them.
    ///
    /// # Errors
    /// As [`Blob::copy_to`], and when there are more.
    pub fn read(&self, limit: u64) -> Result<Vec<u8>, BlobError> {
        if self.size > limit {
            return Err(BlobError::TooLarge { digest: self.digest, size: self.size, limit });
        }
        let mut bytes = Vec::new();
        self.copy_to(&mut bytes)?;
        Ok(bytes)
    }

    /// The bytes from the start, unchecked: for those who called [`Blob::verify`]. Ends after [`Blob::size`] bytes.
    pub(super) fn reader(&self) -> impl Read {
        BlobReader { bytes: &self.bytes, position: 0 }.take(self.size)
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} {} {})", self.media_type, self.digest, self.size)
    }
}

/// Reads by position, so that clones of one blob can be read at once.
struct BlobReader<'b> {
    bytes: &'b Bytes,
    position: u64,
}

impl Read for BlobReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self.bytes {
            Bytes::File(file) => file.read_at(buffer, self.position)?,
            Bytes::Memory(bytes) => {
                let start =
                    usize::try_from(self.position).map_or(bytes.len(), |start| start.min(bytes.len()));
                (&bytes[start..]).read(buffer)?
            }
        };
        self.position += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn in_file(text: &str, descriptor: &Descriptor) -> Result<Blob, BlobError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Blob::from_file(descriptor, file)
    }

    fn descriptor_of(text: &str) -> Descriptor {
        Blob::from_bytes(MediaType::ImageConfig, text.into()).descriptor()
    }

    #[test]
    fn a_blob_in_a_file_can_be_read_many_times() {
        let blob = in_file("content", &descriptor_of("content")).unwrap();
        assert_eq!(blob.read(7).unwrap(), b"content");
        assert_eq!(blob.clone().read(7).unwrap(), b"content");
    }

    #[test]
    fn other_bytes_of_the_same_length_are_noticed() {
        let blob = in_file("cOntent", &descriptor_of("content")).unwrap();
        assert_snapshot!(blob.verify().unwrap_err(), @"blob `sha256:ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73` is corrupted: its content has the digest `sha256:6851d7828e7bad2fd47532733f8bc6306d3202544a599d1f7f7697c76d7b2d2f`");
    }

    #[test]
    fn another_length_is_noticed_before_reading() {
        assert_snapshot!(in_file("contents", &descriptor_of("content")).unwrap_err(), @"blob `sha256:ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73` should have 7 bytes and has 8");
    }

    #[test]
    fn a_file_that_shrank_after_it_was_opened_is_noticed() {
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(b"content").unwrap();
        let blob = Blob::from_file(&descriptor_of("content"), file.try_clone().unwrap()).unwrap();
        file.set_len(3).unwrap();
        assert_snapshot!(blob.verify().unwrap_err(), @"blob `sha256:ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73` should have 7 bytes and has 3");
    }

    #[test]
    fn too_many_bytes_are_not_read() {
        let blob = Blob::from_bytes(MediaType::ImageConfig, b"content".to_vec());
        assert_snapshot!(blob.read(6).unwrap_err(), @"blob `sha256:ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73` has 7 bytes, at most 6 are allowed");
    }

    #[test]
    fn only_sha256_names_a_blob() {
        let mut descriptor = descriptor_of("content");
        descriptor.set_digest(format!("sha512:{}", "0".repeat(128)).parse().unwrap());
        assert!(matches!(in_file("content", &descriptor), Err(BlobError::Digest(_))));
    }
}
