use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-bundle-name-missing", Error, OPM, "fbc_bundle_name_missing.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for bundle in index.bundles() {
        if bundle.blob.name.is_empty() && !index.is_faulty(bundle.blob.at) {
            let message = format!("a bundle of `{}` has no name", bundle.blob.package);
            let finding =
                index.finding(&RULE.code, bundle.blob.at, message).subject(bundle.blob.package.as_str());
            findings.push(finding.help("add `name`, the name of its ClusterServiceVersion"));
        }
    }
}
