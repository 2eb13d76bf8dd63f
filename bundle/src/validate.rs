//! Checks a bundle against rules: one rule, one file, one code, one page of documentation.
//!
//! [`validate`] runs the rules of the chosen suites over a bundle and returns all findings, sorted. A rule sees the
//! whole bundle and looks at nothing else; it runs on broken bundles too, and is silent about what it cannot see. What
//! several rules need is worked out once, in `facts`.

use crate::finding::{Code, Finding, Findings};
use crate::parse::Bundle;

mod access;
mod dependencies;
mod embedded;
mod examples;
mod facts;
mod metadata;
mod openshift;
mod platforms;
mod removals;
mod rules;
mod schemas;
mod suites;
mod typed;

use std::collections::{BTreeMap, BTreeSet};

use facts::Facts;

use crate::version::Version;

pub use platforms::images;
pub(crate) use removals::removed_in;
pub use suites::*;

/// A platform that an image is made for: operating system and architecture.
pub type Platform = (String, String);
/// What registries said of images: their platforms, or why that is not known.
pub type Answers = BTreeMap<String, Result<Vec<Platform>, String>>;

/// What rules are told beside the bundle.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The oldest Kubernetes that the bundle is meant for, beside its own `spec.minKubeVersion`.
    pub kubernetes: Option<Version>,
    /// The categories of the catalog, instead of OperatorHub's.
    pub categories: Option<BTreeSet<String>>,
    /// The Dockerfile that the bundle's image is built from.
    pub index_image: Option<String>,
    /// What registries said of the images of the bundle ([`images`]); none when they were not asked.
    pub platforms: Option<Answers>,
}

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
    validate_with(bundle, suites, &Options::default())
}

/// As [`validate`], with what rules are told beside the bundle.
pub fn validate_with(bundle: &Bundle<'_>, suites: &[&str], options: &Options) -> Vec<Finding> {
    let facts = Facts::new(bundle, options);
    let mut findings = Findings::new();
    for rule in rules().iter().filter(|rule| suites.contains(&rule.code.suite)) {
        (rule.check)(&facts, &mut findings);
    }
    findings.into_sorted(bundle.name)
}

#[cfg(test)]
mod tests;
