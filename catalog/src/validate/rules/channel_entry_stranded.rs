use olmkit_bundle::finding::Findings;

use crate::graph::GraphError;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("channel-entry-stranded", Error, OPM, "channel_entry_stranded.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for channel in index.channels() {
        for error in channel.errors() {
            let GraphError::Stranded { entry } = *error else { continue };
            let message = format!(
                "`{}` is stranded in the channel `{}`: the chain of `replaces` from the head does not reach it",
                channel.entry_name(entry),
                channel.blob.name
            );
            let finding = index.finding(&RULE.code, channel.entry_at(entry), message).subject(channel.id());
            findings.push(finding.help("let an entry of the chain replace or skip it; the chain ends where `replaces` names what is skipped"));
        }
    }
}
