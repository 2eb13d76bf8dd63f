//! Checks a bundle against rules: one rule, one file, one code, one page of documentation.
//!
//! [`validate`] runs the rules of the chosen suites over a bundle and returns all findings, sorted. A rule sees the
//! whole bundle and looks at nothing else; it runs on broken bundles too, and is silent about what it cannot see. What
//! several rules need is worked out once, in `facts`.

use crate::finding::{Code, Finding, Findings};
use crate::parse::Bundle;

mod dependencies;
mod embedded;
mod examples;
mod facts;
mod metadata;
mod rules;

use facts::Facts;

/// The suite of rules that OLM's tools always apply, with their verdicts: operator-framework/api
/// `pkg/validation/internal/{csv,bundle,annotations,typecheck}.go` and `pkg/manifests/bundleloader.go`, operator-registry
/// `pkg/lib/bundle/validate.go`, Kubernetes' rules for metadata.
pub const OLM: &str = "olm";
/// The suite of what those tools pass over in silence, or will refuse in their next releases.
pub const STRICT: &str = "strict";

/// Every suite.
pub const SUITES: &[&str] = &[OLM, STRICT];

/// A rule: what it is about and the check itself.
pub struct Rule {
    /// Name, level, suite and documentation.
    pub code: Code,
    /// Pushes a finding for every place where the bundle breaks the rule.
    check: fn(&Facts<'_, '_>, &mut Findings),
}

/// Every rule, sorted by code.
pub fn rules() -> &'static [&'static Rule] {
    rules::ALL
}

/// Everything the rules of `suites` have to say about a bundle, sorted by file and place.
///
/// ```
/// use olmkit_bundle::{load::BundleFiles, parse::Bundle, validate::{OLM, validate}};
/// let nothing = BundleFiles { name: "bundle".into(), files: Vec::new() };
/// let findings = validate(&Bundle::parse(&nothing), &[OLM]);
/// assert_eq!(findings[0].code.name, "manifests-missing");
/// ```
pub fn validate(bundle: &Bundle<'_>, suites: &[&str]) -> Vec<Finding> {
    let facts = Facts::new(bundle);
    let mut findings = Findings::new();
    for rule in rules().iter().filter(|rule| suites.contains(&rule.code.suite)) {
        (rule.check)(&facts, &mut findings);
    }
    findings.into_sorted(bundle.name)
}

#[cfg(test)]
mod tests;
