//! File-based catalogs: the packages, channels and bundles that OLM offers, and the upgrade graph they form.
//!
//! This crate knows bundles, but no registry, no cluster and no terminal.
//!
//! - [`load`] reads a directory, [`fbc`] takes its text apart without losing any of it, and writes it again;
//! - [`validate`](mod@validate) says what opm would refuse, all at once, each with its place;
//! - [`graph`] is a channel whose entries are known to fit together;
//! - [`render`] makes the blob of a bundle.
//!
//! Start at [`fbc::Catalog`].
//!
//! ```no_run
//! use olmkit_catalog::{fbc::Catalog, load::CatalogFiles, validate::validate};
//! let files = CatalogFiles::load("catalog".as_ref())?;
//! let catalog = Catalog::parse(&files);
//! assert!(validate(&catalog).is_empty());
//! # Ok::<(), olmkit_catalog::load::LoadError>(())
//! ```

mod base64;
pub mod fbc;
pub mod graph;
mod ignore;
mod index;
mod json;
pub mod load;
mod property;
pub mod render;
#[cfg(test)]
mod testing;
pub mod validate;
