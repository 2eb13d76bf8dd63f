//! OCI image layouts: directories that hold images as registries do, by digest, with tags beside them.
//!
//! <https://github.com/opencontainers/image-spec/blob/main/image-layout.md>
//! ```text
//! DIR/oci-layout           the format's version; also the lock that writers hold and readers share
//! DIR/index.json           tag -> digest of a manifest or an index
//! DIR/blobs/sha256/HEX     everything that has a digest
//! ```

mod read;
mod write;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::blob::BlobError;
use super::digest::Digest;
use super::manifest::ImageError;
use crate::shell::argument;

pub(super) use write::list;

/// The content of `oci-layout`.
pub(super) const VERSION: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
/// The largest `index.json` that is read, in bytes: room for tens of thousands of tags.
pub(super) const MAX_INDEX: u64 = 16 << 20;

/// An OCI image layout directory, which need not exist before something is written.
///
/// A tag that is not given is `latest` when writing. When reading, it is the only image of the layout if there is just
/// one, else `latest`.
///
/// # Guarantees
/// - Who reads while others write gets the old image or the new one, whole. Writers wait for each other, so that no tag
///   is lost. Other tools that write to the layout at the same moment know nothing of this.
/// - Writing a tag leaves all other tags as they are, and whatever else other tools noted in `index.json`.
/// - A tag that is written again lets go of its old image: blobs that this image had and nothing in `index.json` leads
///   to any more are removed. Blobs that were unreachable before are somebody else's and stay.
/// - A write that fails leaves no blob behind and no tag changed, and no layout where there was none. A process that is killed may
///   leave blobs without a tag and temporary files; the next write removes the temporary files.
/// - The same images under the same tags give the same files, in whatever order they were written.
#[derive(Debug, Clone)]
pub struct Layout {
    dir: PathBuf,
}

/// A name of an image in a layout: `v1.0.0`, or a whole reference such as `quay.io/example/bundle:v1`.
///
/// The grammar is that of the annotation `org.opencontainers.image.ref.name`:
/// <https://github.com/opencontainers/image-spec/blob/main/annotations.md>. The default is `latest`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(String);

/// Text that is no tag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a tag", .text.escape_debug())]
pub struct TagError {
    text: String,
}

impl TagError {
    /// The way out.
    pub fn help(&self) -> Option<String> {
        Some(
            "a tag is made of letters and digits, with `.`, `-`, `_`, `:`, `@`, `+` and `/` between them"
                .into(),
        )
    }
}

impl Default for Tag {
    fn default() -> Self {
        Self("latest".into())
    }
}

impl FromStr for Tag {
    type Err = TagError;

    fn from_str(text: &str) -> Result<Self, TagError> {
        // component = alphanum (separator alphanum)*, separator = one of [-._:@+] or `--`
        let component = |component: &str| {
            let single = component.replace("--", "-");
            single
                .split(['-', '.', '_', ':', '@', '+'])
                .all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        };
        if text.len() <= 255 && text.split('/').all(component) {
            Ok(Self(text.into()))
        } else {
            Err(TagError { text: text.into() })
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Tag {
    /// The tag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a layout cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The directory is not there.
    #[error("there is no OCI image layout at `{}`", .dir.display())]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory holds something else.
    #[error("`{}` is not an OCI image layout: {problem}", .dir.display())]
    NotALayout {
        /// The directory.
        dir: PathBuf,
        /// What is missing or different.
        problem: String,
    },
    /// `index.json` cannot be understood.
    #[error("`{}` is not a valid image index", .path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// The layout has no image of that name.
    #[error("the layout `{}` has no image tagged `{tag}`; it has {available}", .dir.display())]
    NoSuchTag {
        /// The directory.
        dir: PathBuf,
        /// The tag that was asked for.
        tag: Tag,
        /// The tags that are there.
        available: String,
    },
    /// The layout has several images and none was named.
    #[error("the layout `{}` has {count} images and none is tagged `latest`; it has {available}", .dir.display())]
    Ambiguous {
        /// The kind of place that the layout is: `oci` or `oci-archive`.
        transport: &'static str,
        /// The directory or the archive.
        dir: PathBuf,
        /// How many images there are.
        count: usize,
        /// Their tags.
        available: String,
    },
    /// The image is damaged, not whole or not an image.
    #[error("the layout `{}` has an image that cannot be used", .dir.display())]
    Image {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it.
        source: ImageError,
    },
    /// A blob cannot be copied into the layout.
    #[error("cannot store a blob in the layout `{}`", .dir.display())]
    Blob {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it.
        source: BlobError,
    },
    /// Another process writes to the layout, and does not finish.
    #[error("timed out waiting for another writer of `{}`", .dir.display())]
    Busy {
        /// The directory.
        dir: PathBuf,
        /// Who it is.
        source: io::Error,
    },
    /// The disk refused.
    #[error("cannot {action} `{}`", .path.display())]
    Io {
        /// What was tried: "read", "create".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl LayoutError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::NotALayout { .. } => Some("choose an empty or a new directory".into()),
            Self::Ambiguous { transport, dir, .. } => {
                Some(format!("name one: `{}`", argument(format!("{transport}:{}:TAG", dir.display()))))
            }
            Self::Image { source, .. } => source.help(),
            Self::Blob { source, .. } => source.help(),
            Self::Busy { .. } => Some("end the other process, then run the command again".into()),
            Self::Io { action: "lock", .. } => {
                Some("the file system has no locks: write to a local directory and copy that".into())
            }
            _ => None,
        }
    }
}

impl Layout {
    /// The layout at a directory. Nothing is read or created yet.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn version_path(&self) -> PathBuf {
        self.dir.join("oci-layout")
    }

    fn index_path(&self) -> PathBuf {
        self.dir.join("index.json")
    }

    fn blobs_path(&self) -> PathBuf {
        self.dir.join("blobs").join("sha256")
    }

    /// Where a blob lies or would lie.
    fn blob_path(&self, digest: Digest) -> PathBuf {
        self.blobs_path().join(digest.hex())
    }

    /// Checks what `oci-layout` says. `text` is its content.
    fn check_version(&self, text: &[u8]) -> Result<(), LayoutError> {
        let problem = match serde_json::from_slice::<oci_spec::image::OciLayout>(text) {
            Ok(layout) if layout.image_layout_version() == "1.0.0" => return Ok(()),
            Ok(layout) => {
                format!("its version is `{}`, expected `1.0.0`", layout.image_layout_version().escape_debug())
            }
            Err(error) => format!("its `oci-layout` cannot be read ({error})"),
        };
        Err(LayoutError::NotALayout { dir: self.dir.clone(), problem })
    }
}

/// Opens a regular file for reading. Never waits, as opening a FIFO would.
fn open_file(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// The content of a small file.
fn read_file(file: &mut File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file.take(limit + 1).read_to_end(&mut bytes)? as u64 > limit {
        return Err(io::Error::other(format!("it has more than {limit} bytes")));
    }
    Ok(bytes)
}

/// For `map_err`: the disk refused to do something with a path.
fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LayoutError {
    let path = path.to_owned();
    move |source| LayoutError::Io { action, path, source }
}

#[cfg(test)]
mod tests;
