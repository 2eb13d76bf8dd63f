//! `olmkit`: from an operator's manifests to bundles, catalogs and images for OLM.
//!
//! The command line as a library, so that tests call what `main` calls.

pub mod image;
