//! Checks a bundle against rules: one rule, one file, one code, one page of documentation.
//!
//! [`validate`] runs every rule over a bundle and returns all findings, sorted. A rule sees the whole bundle and
//! looks at nothing else; it runs on broken bundles too, and is silent about what it cannot see.

use crate::finding::{Code, Finding, Findings};
use crate::parse::Bundle;

mod rules;

/// The suite of rules that OLM's tools always apply.
pub const OLM: &str = "olm";

/// A rule: what it is about and the check itself.
pub struct Rule {
    /// Name, level, suite and documentation.
    pub code: Code,
    /// Pushes a finding for every place where the bundle breaks the rule.
    pub check: fn(&Bundle<'_>, &mut Findings),
}

/// Every rule, sorted by code.
pub fn rules() -> &'static [&'static Rule] {
    rules::ALL
}

/// Everything there is to say about a bundle, sorted by file and place.
pub fn validate(bundle: &Bundle<'_>) -> Vec<Finding> {
    let mut findings = Findings::new();
    for rule in rules() {
        (rule.check)(bundle, &mut findings);
    }
    findings.into_sorted(bundle.name)
}

#[cfg(test)]
mod tests;
