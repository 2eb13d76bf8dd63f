use olmkit_bundle::finding::Findings;

use crate::graph::GraphError;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("channel-empty", Error, OPM, "channel_empty.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for channel in index.channels() {
        if channel.errors().contains(&GraphError::Empty) && !index.is_faulty(channel.blob.at) {
            let message = format!("the channel `{}` has no entries", channel.blob.name);
            let finding = index.finding(&RULE.code, channel.at(), message).subject(channel.id());
            findings.push(finding.help("add `entries`, or remove the channel"));
        }
    }
}
