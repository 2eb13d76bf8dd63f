use std::collections::HashMap;

use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("channel-duplicate", Error, OPM, "channel_duplicate.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in index.packages.values() {
        let mut first = HashMap::new();
        for channel in package.channels.iter().filter(|channel| !channel.blob.name.is_empty()) {
            let Some(other) = first.insert(channel.blob.name.as_str(), channel) else { continue };
            first.insert(other.blob.name.as_str(), other);
            let message = format!(
                "the channel `{}` of `{}` is defined again here",
                channel.blob.name, channel.blob.package
            );
            let finding = index
                .finding(&RULE.code, channel.at(), message)
                .and(index.catalog.place(other.at()).label("first here"))
                .subject(channel.id());
            findings.push(finding.help("put the entries of both into one of them"));
        }
    }
}
