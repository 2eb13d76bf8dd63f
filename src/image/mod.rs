//! OCI images from files and labels: built, written, read back and unpacked, without Docker.
//!
//! The way of the data: a [`FileTree`] becomes a [`Layer`], layers and a [`Config`] become an [`Image`], images of
//! several platforms become an [`Index`]; either is a [`Root`], which is stored at a [`Place`] and loaded from one.
//! [`Image::unpack`] is the way back to a [`FileTree`].
//!
//! Same input, same bytes: nothing here looks at the clock, the host's platform, file owners, file times or the order
//! in which files were found. Nothing that is read is trusted: every digest and size is checked, every size is bounded,
//! and no path of an archive touches the disk.
//!
//! What deliberately is not here: any word of OLM. Labels and directory names are the caller's.
//!
//! ```
//! use olmkit::image::{Access, Config, FileTree, Image, Layer, Place, Platform, Root};
//!
//! # let dir = tempfile::tempdir()?;
//! let mut tree = FileTree::new();
//! tree.add_file("manifests/service.yaml", "kind: Service\n")?;
//!
//! let config = Config { labels: [("tier".into(), "demo".into())].into(), ..Config::default() };
//! let image = Image::new(&Platform::default(), &config, &[Layer::build(&tree)?]);
//!
//! let place: Place = format!("oci:{}:v1", dir.path().display()).parse()?;
//! let access = Access::default();
//! let stored = place.store(&Root::from(image), &access)?;
//! assert_eq!(place.load(&access)?.digest(), stored.digest);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// The start of the names of files that are being written. A killed process leaves them, and no image contains them.
const TEMPORARY: &str = ".olmkit-";

/// An error of a file that is being written, without the name of that file, which says nothing to a user.
fn without_path(error: std::io::Error) -> std::io::Error {
    match error.to_string().split_once(" at path ") {
        Some((reason, _)) => std::io::Error::new(error.kind(), reason.to_owned()),
        None => error,
    }
}

mod archive;
mod blob;
mod config;
mod digest;
mod json;
mod layer;
mod layout;
mod lock;
mod lookup;
mod manifest;
mod media_types;
mod place;
mod platform;
mod progress;
mod reference;
mod registry;
mod store;
mod tree;
mod unpack;

pub use archive::{ArchiveError, FoundImage};
pub use blob::{Blob, BlobError};
pub use config::Config;
pub use digest::{Digest, DigestError};
pub use layer::{Compression, Layer, LayerError};
pub use layout::{Layout, LayoutError, Tag, TagError};
pub(crate) use lock::Held;
pub use lookup::{Answers, digests, platforms, present};
pub use manifest::{Image, ImageError, Index, Root};
pub use oci_spec::distribution::Reference;
pub(crate) use place::names_registry;
pub use place::{Place, PlaceError};
pub use platform::{Platform, PlatformError};
pub use progress::{Direction, Event, Outcome, Progress};
pub use registry::{
    Access, CredentialsError, DEFAULT_CACHE_LIMIT, Fault, GivenCredentials, GivenCredentialsError, Options,
    Patience, RegistryError, Untrusted,
};
pub use store::{LoadError, StoreError, Stored, StoredLayer};
pub use tree::{FileTree, Node, PathError, TreeError, TreeFile, TreePath};
pub use unpack::{Limits, Unpack, UnpackError};
pub(crate) use unpack::{MAX_RECORD, Records, is_record};
