//! One blob: its media type, digest and size, and where its bytes are.
//!
//! Blobs are what every place stores; a manifest, a configuration and a layer are blobs alike. The bytes are in memory
//! when they are few, in an open file when they are many, and stay in a registry until they are needed, so that an image
//! is a value of bounded size.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use oci_spec::image::{Descriptor, MediaType};

use super::digest::{Digest, DigestError, Hashing};
use super::media_types::DOCKER_LAYER;
use super::registry::error::RegistryError;
use super::registry::pull::Remote;
use super::registry::repository::Repository;

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

/// Where a blob's bytes are.
enum Bytes {
    Local(Local),
    Remote(Remote),
}

/// Bytes on this machine.
#[derive(Debug)]
pub(super) enum Local {
    Memory(bytes::Bytes),
    /// From a position of the file on.
    File(Arc<File>, u64),
}

impl From<File> for Local {
    fn from(file: File) -> Self {
        Self::File(Arc::new(file), 0)
    }
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
    /// The registry does not give it.
    #[error("cannot fetch blob `{digest}`")]
    Fetch {
        /// The blob.
        digest: Digest,
        /// What the registry did.
        source: Box<RegistryError>,
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
            Self::Fetch { source, .. } => source.help(),
            _ => None,
        }
    }
}

impl Blob {
    /// A blob of bytes that are at hand.
    pub(super) fn from_bytes(media_type: MediaType, bytes: Vec<u8>) -> Self {
        let (digest, size) = (Digest::of(&bytes), bytes.len() as u64);
        Self::from_parts(media_type, digest, size, Local::Memory(bytes.into()))
    }

    /// A blob whose digest and size were computed while its bytes were written.
    pub(super) fn from_parts(media_type: MediaType, digest: Digest, size: u64, local: Local) -> Self {
        Self { media_type, digest, size, bytes: Arc::new(Bytes::Local(local)) }
    }

    /// A blob that stays in its registry until its bytes are needed.
    pub(super) fn remote(media_type: MediaType, digest: Digest, size: u64, remote: Remote) -> Self {
        Self { media_type, digest, size, bytes: Arc::new(Bytes::Remote(remote)) }
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
        Ok(Self::from_parts(descriptor.media_type().clone(), digest, found, file.into()))
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

    /// The same bytes under OCI's name for what docker calls otherwise: one manifest has names of one kind.
    pub(super) fn as_oci(&self) -> Self {
        let mut blob = self.clone();
        if blob.media_type.as_ref() == DOCKER_LAYER {
            blob.media_type = MediaType::ImageLayerGzip;
        }
        blob
    }

    /// Whether this is the blob that a descriptor names.
    pub(super) fn is_named_by(&self, descriptor: &Descriptor) -> bool {
        Digest::try_from(descriptor.digest()) == Ok(self.digest)
            && (&self.media_type, self.size) == (descriptor.media_type(), descriptor.size())
    }

    /// The same bytes under the name that a descriptor gives them.
    ///
    /// # Errors
    /// It speaks of another number of bytes.
    pub(super) fn named_as(&self, descriptor: &Descriptor) -> Result<Self, BlobError> {
        if self.size != descriptor.size() {
            return Err(BlobError::Size {
                digest: self.digest,
                expected: descriptor.size(),
                found: self.size,
            });
        }
        Ok(Self { media_type: descriptor.media_type().clone(), ..self.clone() })
    }

    /// Copies the bytes and checks them on the way. What was written is worth nothing when this fails.
    ///
    /// # Errors
    /// The bytes cannot be read or written, or are not those that the digest names.
    pub fn copy_to(&self, writer: &mut impl Write) -> Result<(), BlobError> {
        let digest = self.digest;
        self.local()?;
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

    /// Fetches the bytes of blobs that are still in a registry, several at once.
    ///
    /// # Errors
    /// The registry does not give one of them.
    pub(super) fn fetch_all<'b>(blobs: impl IntoIterator<Item = &'b Self>) -> Result<(), BlobError> {
        let remote = |blob: &'b Self| match &*blob.bytes {
            Bytes::Remote(remote) => Some((blob.digest, remote)),
            Bytes::Local(_) => None,
        };
        let remotes: Vec<_> = blobs.into_iter().filter_map(remote).collect();
        let Some((digest, _)) = remotes.first() else { return Ok(()) };
        let fetched = Remote::fetch_all(&remotes.iter().map(|(_, remote)| *remote).collect::<Vec<_>>());
        fetched.map_err(|source| BlobError::Fetch { digest: *digest, source: Box::new(source) })
    }

    /// As [`Blob::fetch_all`] with one, for those who may not block.
    pub(super) async fn fetch(&self) -> Result<(), RegistryError> {
        match &*self.bytes {
            Bytes::Remote(remote) => remote.fetch().await.map(drop),
            Bytes::Local(_) => Ok(()),
        }
    }

    /// The repository that the blob is known to be in.
    pub(super) fn origin(&self) -> Option<&Repository> {
        match &*self.bytes {
            Bytes::Remote(remote) => Some(remote.repository()),
            Bytes::Local(_) => None,
        }
    }

    /// Checks bytes that somebody else may have changed since they were written; those in memory are as they were made.
    ///
    /// # Errors
    /// As [`Blob::copy_to`].
    pub(super) fn verify_if_on_disk(&self) -> Result<(), BlobError> {
        match self.local() {
            Ok(Local::Memory(_)) => Ok(()),
            _ => self.verify(),
        }
    }

    /// At most `length` bytes from a position on, unchecked.
    ///
    /// # Errors
    /// They cannot be read, or there are none.
    pub(super) fn piece(&self, position: u64, length: u64) -> io::Result<bytes::Bytes> {
        let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
        match self.local().map_err(io::Error::other)? {
            Local::Memory(bytes) => {
                let start = usize::try_from(position).map_err(|_| ended())?;
                let end =
                    bytes.len().min(start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)));
                if start < end { Ok(bytes.slice(start..end)) } else { Err(ended()) }
            }
            Local::File(file, start) => {
                let mut buffer = vec![0; usize::try_from(length).map_err(|_| ended())?];
                let read = file.read_at(&mut buffer, start + position)?;
                buffer.truncate(read);
                if read > 0 { Ok(buffer.into()) } else { Err(ended()) }
            }
        }
    }

    fn local(&self) -> Result<&Local, BlobError> {
        match &*self.bytes {
            Bytes::Local(local) => Ok(local),
            Bytes::Remote(remote) => remote
                .wait()
                .map_err(|source| BlobError::Fetch { digest: self.digest, source: Box::new(source) }),
        }
    }

    /// The bytes from the start, unchecked: for those who called [`Blob::verify`]. Ends after [`Blob::size`] bytes.
    pub(super) fn reader(&self) -> impl Read {
        BlobReader { blob: self, position: 0 }.take(self.size)
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} {} {})", self.media_type, self.digest, self.size)
    }
}

/// Reads by position, so that clones of one blob can be read at once.
struct BlobReader<'b> {
    blob: &'b Blob,
    position: u64,
}

impl Read for BlobReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self.blob.local().map_err(io::Error::other)? {
            Local::File(file, start) => file.read_at(buffer, start + self.position)?,
            Local::Memory(bytes) => {
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
