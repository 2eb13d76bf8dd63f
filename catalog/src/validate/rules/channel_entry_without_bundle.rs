use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("channel-entry-without-bundle", Error, OPM, "channel_entry_without_bundle.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in index.packages.values().filter(|package| !package.blobs.is_empty() && !index.incomplete) {
        for channel in &package.channels {
            for entry in channel.blob.entries.iter().filter(|entry| !entry.name.is_empty()) {
                if package.bundle(&entry.name).is_some() {
                    continue;
                }
                let message = format!(
                    "`{}` is in the channel `{}`, but the package has no such bundle",
                    entry.name, channel.blob.name
                );
                let finding = index
                    .finding(&RULE.code, channel.blob.at.with(entry.name.span), message)
                    .subject(channel.id());
                findings.push(finding.help("add the `olm.bundle` blob, or remove the entry; what it replaces need not be in the catalog"));
            }
        }
    }
}
