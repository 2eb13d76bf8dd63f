//! `bundle validate`: reads bundles and runs the rules over them.

use std::path::PathBuf;

use olmkit_bundle::load::BundleFiles;
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::validate::{OLM, validate};

use crate::exit::Failure;
use crate::report::FindingsAnswer;

/// Validates every bundle, and answers with all findings in the order of the bundles.
///
/// # Errors
/// When a path cannot be read at all. A directory that is no bundle is a finding.
pub fn run(bundles: &[PathBuf]) -> Result<FindingsAnswer, Failure> {
    let mut findings = Vec::new();
    for path in bundles {
        let files = BundleFiles::load(path).map_err(|error| {
            Failure::unknown(error).help("give the directory that holds `manifests/` and `metadata/`")
        })?;
        findings.extend(validate(&Bundle::parse(&files), &[OLM]));
    }
    Ok(FindingsAnswer { what: "bundle", checked: bundles.len(), findings })
}
