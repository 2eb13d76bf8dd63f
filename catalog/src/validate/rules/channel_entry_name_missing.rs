use olmkit_bundle::finding::Findings;

use crate::graph::GraphError;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("channel-entry-name-missing", Error, OPM, "channel_entry_name_missing.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for channel in index.channels().filter(|channel| !index.is_faulty(channel.blob.at)) {
        for error in channel.errors() {
            let GraphError::Unnamed { entry } = *error else { continue };
            let message = format!("an entry of the channel `{}` has no name", channel.blob.name);
            let finding = index.finding(&RULE.code, channel.entry_at(entry), message).subject(channel.id());
            findings.push(finding.help("add `name`, the name of the bundle"));
        }
    }
}
