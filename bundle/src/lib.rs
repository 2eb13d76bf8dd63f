//! What a registry+v1 bundle is: its names, its ClusterServiceVersion, how it is read, generated and validated.
//!
//! A bundle is a directory that OLM, the Operator Lifecycle Manager of Kubernetes, installs an operator from.
//! This crate reads files and returns values: it never opens a socket, prints, or knows what a catalog is.
//!
//! - [`load`] reads a directory, [`parse`] takes its text apart; [`yaml`] keeps the place of every value, which [`source`] tells
//!   as line and column;
//! - [`csv`], [`crd`], [`annotations`] and [`schema`] are views of what was read, and borrow from it;
//! - [`validate`](mod@validate) checks it, rule by rule, and returns [`finding`]s; [`diff`](mod@diff) says what an upgrade changes;
//! - [`generate`](mod@generate) makes bundles of an operator's manifests, [`convert`] of package manifests;
//! - [`installed`] is the Deployment that OLM makes, [`manifests`] renders a bundle as the objects that OLM v1 applies;
//! - [`go`] is how Go matches names of fields and writes numbers, [`quantity`] reads what Kubernetes calls one;
//! - [`names`] and [`version`] are what catalogs and clusters know bundles by, [`cel`] evaluates constraints and rules.
//!
//! Start at [`parse::Bundle`]; `examples/check.rs` is a whole program. Another version of Kubernetes' types than that of the default
//! feature is chosen in `k8s-openapi`, with `default-features = false` here.
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
pub mod go;
pub mod installed;
pub mod kinds;
pub mod load;
pub mod manifests;
pub mod names;
pub mod parallel;
pub mod parse;
pub mod pattern;
pub mod pod;
pub mod printable;
pub mod property;
pub mod quantity;
mod refused;
pub mod schema;
pub mod source;
mod subject;
pub mod suggest;
pub mod url;
pub mod validate;
pub mod version;
pub mod yaml;
