//! What a registry+v1 bundle is: its names, its ClusterServiceVersion, how it is read, generated and validated.
//!
//! A bundle is a directory that OLM, the Operator Lifecycle Manager of Kubernetes, installs an operator from.
//! This crate reads files and returns values: it never opens a socket, prints, or knows what a catalog is.
//!
//! ```no_run
//! use olmkit_bundle::{load::BundleFiles, parse::Bundle, validate::{SUITES, validate}};
//! let files = BundleFiles::load("bundle".as_ref())?;
//! for finding in validate(&Bundle::parse(&files), SUITES) {
//!     assert_ne!(finding.code.name, "csv-owned-crd-missing");
//! }
//! # Ok::<(), olmkit_bundle::load::LoadError>(())
//! ```

pub mod annotations;
pub mod cel;
mod contents;
pub mod convert;
pub mod crd;
pub mod csv;
mod deployment;
pub mod diff;
pub mod email;
pub mod finding;
pub mod generate;
pub mod kinds;
pub mod load;
pub mod manifests;
pub mod names;
pub mod parallel;
pub mod parse;
pub mod pattern;
pub mod pod;
mod refused;
pub mod schema;
pub mod source;
pub mod suggest;
pub mod url;
pub mod validate;
pub mod version;
pub mod yaml;
