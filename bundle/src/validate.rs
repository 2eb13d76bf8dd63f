//! Checks a bundle against rules: one rule, one file, one code, one page of documentation.
//!
//! [`validate`] runs the rules of the chosen suites over a bundle and returns all findings, sorted. A rule sees the
//! whole bundle and looks at nothing else; it runs on broken bundles too, and is silent about what it cannot see. What
//! several rules need is worked out once, in `facts`.

use crate::finding::{Code, Finding, Findings};
use crate::parse::Bundle;

mod access;
mod crds;
mod dependencies;
pub(crate) mod descriptors;
mod embedded;
mod examples;
mod facts;
mod metadata;
pub(crate) mod objects;
mod openshift;
mod platforms;
mod removals;
mod rules;
mod schemas;
mod suites;
mod typed;

use std::collections::{BTreeMap, BTreeSet};

use facts::Facts;

use crate::rule;
use crate::version::Version;

pub use platforms::images;
pub(crate) use removals::removed_in;
pub(crate) use rules::csv_descriptor_unknown::RULE as DESCRIPTOR_UNKNOWN;
pub use suites::*;

/// A platform that an image is made for: operating system and architecture.
pub type Platform = (String, String);
/// What registries said of images: their platforms, or why that is not known.
pub type Answers = BTreeMap<String, Result<Vec<Platform>, String>>;

/// What rules are told beside the bundle.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
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
    let is_asked = |rule: &&&Rule| is_in(&rule.code, suites);
    run(rules().iter().filter(is_asked), &Facts::new(bundle, options))
}

/// What the rules of some codes have to say about a bundle, whatever their suites.
pub fn validate_by(bundle: &Bundle<'_>, codes: &[&str]) -> Vec<Finding> {
    let options = Options::default();
    run(rules().iter().filter(|rule| codes.contains(&rule.code.name)), &Facts::new(bundle, &options))
}

/// As [`validate`], without the kinds of findings that are known already.
pub(crate) fn validate_without(bundle: &Bundle<'_>, suites: &[&str], known: &[&Code]) -> Vec<Finding> {
    let options = Options::default();
    let facts = Facts::new(bundle, &options);
    let is_asked = |rule: &&&Rule| is_in(&rule.code, suites) && !known.contains(&&rule.code);
    run(rules().iter().filter(is_asked), &facts)
}

/// Whether a rule is in one of some suites. What `install` has about schemas and sizes is in the suites of these names too.
pub fn is_in(code: &Code, suites: &[&str]) -> bool {
    let also = [(SCHEMA, "schema-"), (SIZE, "size-")];
    suites.contains(&code.suite)
        || also.iter().any(|(suite, name)| code.name.starts_with(name) && suites.contains(suite))
}

fn run<'r>(rules: impl Iterator<Item = &'r &'static Rule>, facts: &Facts<'_, '_>) -> Vec<Finding> {
    let mut findings = Findings::new();
    rules.for_each(|rule| (rule.check)(facts, &mut findings));
    findings.into_sorted(facts.name)
}

#[cfg(test)]
mod tests;
