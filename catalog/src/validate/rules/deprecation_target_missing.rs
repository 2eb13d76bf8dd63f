use std::collections::HashSet;

use olmkit_bundle::finding::Findings;

use crate::fbc::schema;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("deprecation-target-missing", Error, OPM, "deprecation_target_missing.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in index.packages.values().filter(|package| !package.blobs.is_empty() && !index.incomplete) {
        let channels: HashSet<&str> =
            package.channels.iter().map(|channel| channel.blob.name.as_str()).collect();
        for blob in &package.deprecations {
            for entry in &blob.entries {
                let name = entry.reference.name.as_str();
                let (what, there) = match entry.reference.schema.as_str() {
                    schema::BUNDLE => ("bundle", package.bundle(name).is_some()),
                    schema::CHANNEL => ("channel", channels.contains(name)),
                    _ => continue,
                };
                if !there {
                    let message = format!(
                        "the {what} `{name}` is deprecated, but `{}` has none of that name",
                        blob.package
                    );
                    let finding = index
                        .finding(&RULE.code, blob.at.with(entry.reference.name.span), message)
                        .subject(blob.package.as_str());
                    findings.push(finding.help("correct the name, or remove the entry"));
                }
            }
        }
    }
}
