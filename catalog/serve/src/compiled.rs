//! Compiled catalogs: one file with every answer of a catalog server already encoded, and an index to find them by.
//!
//! It is derived data: made from a catalog's files by [`build()`], opened by [`Compiled`] in the time that reading the index
//! takes, and never trusted: whatever is read of it is checked against a digest and against the file's bounds, and what does not
//! fit is a [`Corrupt`] that names the part. [`Fingerprint`] tells whether it still speaks of the files that are there.
//!
//! What can be asked is in `answer`; the layout of the file is in `format`. Nothing here knows a network.
//!
//! ```
//! use olmkit_catalog::load::CatalogFiles;
//! use olmkit_serve::compiled::{self, Compiled};
//! let files = CatalogFiles::from_text("catalog.yaml", "\
//! schema: olm.package
//! name: redis
//! defaultChannel: stable
//! ---
//! schema: olm.channel
//! package: redis
//! name: stable
//! entries: [{name: redis.v1.0.0}]
//! ---
//! schema: olm.bundle
//! package: redis
//! name: redis.v1.0.0
//! image: example.com/redis:v1.0.0
//! properties: [{type: olm.package, value: {packageName: redis, version: 1.0.0}}]
//! ");
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("catalog.olmkit");
//! compiled::build(&files, &path)?;
//! let catalog = Compiled::open(&path)?;
//! assert_eq!(catalog.packages()?, ["redis"]);
//! assert!(catalog.bundle("redis", "stable", "redis.v2.0.0").is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod blobs;
mod build;
mod canonical;
mod csv_metadata;
mod fingerprint;
mod format;
mod manifests;
mod read;
mod write;

/// The messages of `proto/registry.proto`.
#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::all, reason = "generated: `make generate`")]
pub mod api;

pub use answer::{AskError, Listing};
pub use blobs::{BlobFilter, Blobs};
pub(crate) use build::may_replace;
pub use build::{BuildError, Built, build};
pub use fingerprint::Fingerprint;
pub use read::{Compiled, Corrupt, OpenError};

/// The name that compiled catalogs have where nobody chooses another.
pub const FILE_NAME: &str = "catalog.olmkit";

#[cfg(test)]
mod tests;
