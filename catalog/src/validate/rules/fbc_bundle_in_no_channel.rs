use std::collections::HashSet;

use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-bundle-in-no-channel", Error, OPM, "fbc_bundle_in_no_channel.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in index.packages.values().filter(|package| !package.blobs.is_empty() && !index.incomplete) {
        let entries = package.channels.iter().flat_map(|channel| &channel.blob.entries);
        let entered: HashSet<_> = entries.map(|entry| entry.name.as_str()).collect();
        for bundle in package.bundles.iter().filter(|bundle| !bundle.blob.name.is_empty()) {
            if entered.contains(bundle.blob.name.as_str()) {
                continue;
            }
            let message =
                format!("the bundle `{}` is in no channel of `{}`", bundle.blob.name, bundle.blob.package);
            let finding = index
                .finding(&RULE.code, bundle.at(&bundle.blob.name), message)
                .subject(bundle.blob.name.as_str());
            findings.push(finding.help("add an entry to a channel, or remove the bundle"));
        }
    }
}
