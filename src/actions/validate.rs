//! `bundle validate`: reads bundles and runs the rules over them.

use olmkit_bundle::parse::Bundle;
use olmkit_bundle::validate::{OLM, validate};

use crate::exit::Failure;
use crate::image::Access;
use crate::input::Input;
use crate::report::FindingsAnswer;

/// Validates every bundle, and answers with all findings in the order of the bundles.
///
/// # Errors
/// When an input cannot be read at all. A directory that is no bundle is a finding.
pub fn run(bundles: &[Input], access: &Access) -> Result<FindingsAnswer, Failure> {
    let mut findings = Vec::new();
    for bundle in bundles {
        let files = bundle.bundle(access)?;
        findings.extend(validate(&Bundle::parse(&files), &[OLM]));
    }
    Ok(FindingsAnswer { what: "bundle", checked: bundles.len(), findings })
}
