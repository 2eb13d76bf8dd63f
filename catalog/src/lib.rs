//! File-based catalogs: the packages, channels and bundles that OLM offers, and the upgrade graph they form.
//!
//! This crate knows bundles, but no registry, no cluster and no terminal.
//!
//! - [`load`] reads a directory, [`fbc`] takes its text apart without losing any of it, and writes it again;
//! - [`validate`](mod@validate) says what opm would refuse, all at once, each with its place;
//! - [`graph`] is a channel whose entries are known to fit together; [`path`] follows it as OLM does;
//! - [`edit`](mod@edit) changes it in place, [`diff`](mod@diff) compares two;
//! - [`list`] and [`draw`] show what is there, [`page`] as a web page;
//! - [`resolve`](mod@resolve) says what OLM would install next, or why it cannot;
//! - [`template`] makes catalogs of templates, [`render::migrate()`] gives blobs their newer form;
//! - [`render`] makes the blob of a bundle, [`add`](mod@add) puts it into channels by a version policy, in place.
//!
//! Start at [`fbc::Catalog`]; `examples/upgrades.rs` is a whole program.
//!
//! ```no_run
//! use olmkit_catalog::{fbc::Catalog, load::CatalogFiles, path::{Query, paths}, validate::validate};
//! let files = CatalogFiles::load("catalog".as_ref())?;
//! let catalog = Catalog::parse(&files);
//! assert!(validate(&catalog).is_empty());
//! for path in paths(&catalog, &Query::default())?.iter() {
//!     assert!(path.reaches_head, "{} does not reach {}", path.from, path.head);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod add;
pub mod base64;
pub mod diff;
pub mod draw;
pub mod edit;
pub mod fbc;
pub mod graph;
mod ignore;
pub mod index;
pub mod json;
pub mod list;
pub mod load;
pub mod page;
pub mod path;
pub mod property;
pub mod render;
mod requirements;
#[cfg(feature = "resolve")]
pub mod resolve;
pub mod template;
#[cfg(test)]
mod testing;
mod texts;
pub mod validate;
