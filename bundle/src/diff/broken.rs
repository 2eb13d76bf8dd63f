//! What keeps two versions from being compared whole, or the new one from being applied at all: files that cannot be read,
//! CRDs that no API server accepts, and manifests that are too large for where OLM puts them.

use std::collections::BTreeSet;

use crate::finding::{Finding, Level};
use crate::load::{BundleFile, BundleFiles};
use crate::parse::Bundle;
use crate::validate::{INSTALL, OLM, SIZE, validate};

/// Rules about files that could not be read.
const UNREADABLE: [&str; 4] =
    ["dependency-unreadable", "file-unreadable", "yaml-key-duplicate", "yaml-syntax"];

/// Rules of other suites about sizes.
const TOO_LARGE: [&str; 3] = ["bundle-nearly-too-large", "bundle-too-large", "size-object"];

/// What is broken in two versions of a bundle.
pub(super) struct Broken {
    /// The findings: unreadable files of both versions, and CRDs and sizes that only the new version has wrong.
    pub(super) findings: Vec<Finding>,
    /// Whether files of the old version could not be read.
    pub(super) old_is_partial: bool,
    /// Whether files of the new version could not be read.
    pub(super) new_is_partial: bool,
}

/// Looks for what is broken, with the rules of `bundle validate`.
pub(super) fn check(old: &Bundle<'_>, new: &Bundle<'_>) -> Broken {
    let (olds, news) = (errors(old), errors(new));
    let is_unreadable = |finding: &&Finding| UNREADABLE.contains(&finding.code.name);
    let partial = |findings: &[Finding]| findings.iter().any(|finding| is_unreadable(&finding));
    let (old_is_partial, new_is_partial) = (partial(&olds), partial(&news));
    let known: BTreeSet<_> = olds.iter().map(key).collect();
    let of_new = news.iter().filter(|finding| is_unreadable(finding) || !known.contains(&key(finding)));
    let findings = olds.iter().filter(is_unreadable).chain(of_new).cloned().collect();
    Broken { findings, old_is_partial, new_is_partial }
}

/// The errors in the CRDs of one file that the CRDs of another do not have.
pub(super) fn crds_of_file(old: &BundleFiles, new: &BundleFiles) -> Vec<Finding> {
    let of = |files: &BundleFiles| {
        let as_manifest =
            |file: &BundleFile| BundleFile { path: format!("{MANIFESTS}{}", file.path), ..file.clone() };
        let bundle =
            BundleFiles { name: files.name.clone(), files: files.files.iter().map(as_manifest).collect() };
        errors(&Bundle::parse(&bundle))
    };
    let (olds, news) = (of(old), of(new));
    let known: BTreeSet<_> = olds.iter().map(key).collect();
    let mut findings: Vec<_> = news.into_iter().filter(|finding| !known.contains(&key(finding))).collect();
    for place in findings.iter_mut().filter_map(|finding| finding.place.as_mut()) {
        let path = place.path.replacen(MANIFESTS, "", 1);
        place.path = path.strip_prefix("./").unwrap_or(&path).to_owned();
    }
    findings
}

const NOT_STRUCTURAL: &str = "schema-not-structural";
const MANIFESTS: &str = "manifests/";

/// Errors about unreadable files and invalid CRDs, and what is or becomes too large.
fn errors(bundle: &Bundle<'_>) -> Vec<Finding> {
    let mut findings = validate(bundle, &[OLM, INSTALL, SIZE]);
    for finding in findings.iter_mut().filter(|finding| finding.code.name == NOT_STRUCTURAL) {
        // A warning elsewhere, since old CRDs without a schema go on working; no update that drops it is accepted.
        finding.level = Level::Error;
    }
    findings.retain(|finding| {
        let name = finding.code.name;
        let of_crds = name.starts_with("schema-") || (name.starts_with("crd-") && name != "crd-not-owned");
        is_about_size(finding) || finding.level == Level::Error && (of_crds || UNREADABLE.contains(&name))
    });
    findings
}

fn is_about_size(finding: &Finding) -> bool {
    finding.code.suite == SIZE || TOO_LARGE.contains(&finding.code.name)
}

/// What tells a finding that the old version has too. A size that changes is the same one.
fn key(finding: &Finding) -> (&'static str, String) {
    let message = match (is_about_size(finding), &finding.place) {
        (false, _) => finding.message.clone(),
        (true, Some(place)) if matches!(finding.code.name, "size-manifest" | "size-object") => {
            place.path.rsplit('/').next().unwrap_or_default().to_owned()
        }
        (true, _) => String::new(),
    };
    (finding.code.name, message)
}
