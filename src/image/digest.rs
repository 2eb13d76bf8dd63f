//! SHA-256 digests: what they look like, and how they are computed in passing, on the way in and on the way out.

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use oci_spec::image as oci;
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, `sha256:` and 64 hexadecimal digits as text.
///
/// The type of `oci-spec` admits every algorithm that the specification reserves a name for. This one is what everybody
/// uses, and the only one that is accepted; so what has a digest can be checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Text that is not a SHA-256 digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a SHA-256 digest, the only kind that is supported: expected `sha256:` and 64 digits or letters from `a` to `f`", .text.escape_debug())]
pub struct DigestError {
    /// What was found instead.
    pub text: String,
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        parse(text).ok_or_else(|| DigestError { text: text.into() })
    }
}

/// Lower-case digits only: a digest has one spelling, and names one file.
fn parse(text: &str) -> Option<Digest> {
    let hex = text.strip_prefix("sha256:")?.as_bytes();
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if hex.len() != 64 {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(Digest(digest))
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl TryFrom<&oci::Digest> for Digest {
    type Error = DigestError;

    fn try_from(digest: &oci::Digest) -> Result<Self, DigestError> {
        digest.as_ref().parse()
    }
}

impl From<Digest> for oci::Digest {
    fn from(digest: Digest) -> Self {
        // The parser asks for an algorithm, a colon, and for this algorithm 64 hexadecimal digits.
        oci::Digest::try_from(digest.to_string()).expect("a SHA-256 digest is a digest")
    }
}

impl Digest {
    /// The digest of bytes that are at hand.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 64 hexadecimal digits, by which layouts name files.
    pub(super) fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Hashes and counts everything that passes, written or read.
pub(super) struct Hashing<T> {
    inner: T,
    sha: Sha256,
    count: u64,
}

impl<T> Hashing<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, sha: Sha256::new(), count: 0 }
    }

    /// What was wrapped, and the digest and length of what has passed.
    pub(super) fn finish(self) -> (T, Digest, u64) {
        (self.inner, Digest(self.sha.finalize().into()), self.count)
    }

    fn passed(&mut self, bytes: &[u8]) {
        self.sha.update(bytes);
        self.count += bytes.len() as u64;
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.passed(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.passed(&buffer[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn both_directions_agree_with_the_published_digest_of_abc() {
        assert_eq!(Digest::of(b"abc").to_string(), ABC);

        let mut writer = Hashing::new(Vec::new());
        writer.write_all(b"ab").unwrap();
        writer.write_all(b"c").unwrap();
        let (bytes, digest, count) = writer.finish();
        assert_eq!((bytes.as_slice(), digest.to_string(), count), (b"abc".as_slice(), ABC.to_owned(), 3));

        let mut reader = Hashing::new(b"abc".as_slice());
        io::copy(&mut reader, &mut io::sink()).unwrap();
        let (_, digest, count) = reader.finish();
        assert_eq!((digest.to_string(), count), (ABC.to_owned(), 3));
    }

    #[test]
    fn a_digest_has_one_spelling() {
        assert_eq!(ABC.parse::<Digest>().unwrap().to_string(), ABC);
        let sha512 = format!("sha512:{}", "0".repeat(128));
        let half = "é".repeat(32);
        for text in
            ["", "sha256:", &ABC[7..], &ABC[..70], &ABC.to_uppercase(), &sha512, &format!("sha256:{half}")]
        {
            assert_eq!(text.parse::<Digest>(), Err(DigestError { text: text.to_owned() }));
        }
    }
}
