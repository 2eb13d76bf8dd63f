use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-bundle-duplicate", Error, OPM, "fbc_bundle_duplicate.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in index.packages.values() {
        for bundle in package.bundles.iter().filter(|bundle| !bundle.blob.name.is_empty()) {
            let Some(first) =
                package.bundle(&bundle.blob.name).filter(|first| first.blob.at != bundle.blob.at)
            else {
                continue;
            };
            let message = format!(
                "the bundle `{}` of `{}` is defined again here",
                bundle.blob.name, bundle.blob.package
            );
            let finding = index
                .finding(&RULE.code, bundle.at(&bundle.blob.name), message)
                .and(index.catalog.place(first.at(&first.blob.name)).label("first here"))
                .subject(bundle.blob.name.as_str());
            findings.push(finding.help("remove one of them; a bundle in several channels has one blob"));
        }
    }
}
