//! OCI images from files and labels: built and unpacked, without Docker.
//!
//! The way of the data: a [`FileTree`] becomes a [`Layer`], layers and a [`Config`] become an [`Image`], images of
//! several platforms become an [`Index`]; either is a [`Root`].
//! [`Image::unpack`] is the way back to a [`FileTree`].
//!
//! Same input, same bytes: nothing here looks at the clock, the host's platform, file owners, file times or the order
//! in which files were found. Nothing that is read is trusted: every digest and size is checked, every size is bounded,
//! and no path of an archive touches the disk.
//!
//! What deliberately is not here: any word of OLM. Labels and directory names are the caller's.
//!
//! ```
//! use olmkit::image::{Config, FileTree, Image, Layer, Platform};
//!
//! let mut tree = FileTree::new();
//! tree.add_file("manifests/service.yaml", "kind: Service\n")?;
//!
//! let config = Config { labels: [("tier".into(), "demo".into())].into(), ..Config::default() };
//! let image = Image::new(&Platform::default(), &config, &[Layer::build(&tree)?]);
//!
//! assert_eq!(image.label("tier"), Some("demo"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blob;
mod config;
mod digest;
mod json;
mod layer;
mod manifest;
mod platform;
mod tree;
mod unpack;

pub use blob::{Blob, BlobError};
pub use config::Config;
pub use digest::{Digest, DigestError};
pub use layer::{Layer, LayerError};
pub use manifest::{Image, ImageError, Index, Root};
pub use platform::{Platform, PlatformError};
pub use tree::{FileTree, Node, PathError, TreeError, TreeFile, TreePath};
pub use unpack::{Limits, Unpack, UnpackError};
