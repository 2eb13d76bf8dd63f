use olmkit_bundle::finding::{Code, Findings, Level};

use crate::index::Index;
use crate::validate::{OPM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "fbc-bundle-name-missing",
        level: Level::Error,
        suite: OPM,
        docs: include_str!("fbc_bundle_name_missing.md"),
    },
    check,
};

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for bundle in index.bundles() {
        if bundle.blob.name.is_empty() && !index.is_faulty(bundle.blob.at) {
            let message = format!("a bundle of `{}` has no name", bundle.blob.package);
            findings.push(
                index
                    .finding(&RULE.code, bundle.blob.at, message)
                    .subject(bundle.blob.package.as_str())
                    .help("add `name`, the name of its ClusterServiceVersion"),
            );
        }
    }
}
