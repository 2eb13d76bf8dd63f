//! File-based catalogs: the packages, channels and bundles that OLM offers, and the upgrade graph they form.
//!
//! This crate knows bundles, but no registry, no cluster and no terminal.
