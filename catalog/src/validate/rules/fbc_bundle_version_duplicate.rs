use std::collections::HashMap;

use olmkit_bundle::finding::Findings;

use crate::index::Bundle;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-bundle-version-duplicate", Error, OPM, "fbc_bundle_version_duplicate.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in index.packages.values() {
        let mut first: HashMap<String, &Bundle<'_, '_>> = HashMap::new();
        for bundle in &package.bundles {
            let Some(version) = bundle.version.as_ref().map(ToString::to_string) else { continue };
            let other = *first.entry(version.clone()).or_insert(bundle);
            if other.blob.name == bundle.blob.name {
                continue;
            }
            let place = |bundle: &Bundle<'_, '_>| bundle.property_at(bundle.packages[0].0);
            let message =
                format!("`{}` and `{}` have the same version {version}", bundle.blob.name, other.blob.name);
            let finding = index
                .finding(&RULE.code, place(bundle), message)
                .and(index.catalog.place(place(other)).label(format!("`{}`", other.blob.name)))
                .subject(bundle.blob.name.as_str());
            findings.push(finding.help("give one of them another version, or remove it"));
        }
    }
}
