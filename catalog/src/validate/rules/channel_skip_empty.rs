use olmkit_bundle::finding::Findings;

use crate::graph::GraphError;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("channel-skip-empty", Error, OPM, "channel_skip_empty.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for channel in index.channels().filter(|channel| !index.is_faulty(channel.blob.at)) {
        for error in channel.errors() {
            let GraphError::EmptySkip { entry, skip } = *error else { continue };
            let span = channel.blob.entries[entry].skips[skip].span;
            let message = format!("`{}` skips an empty name", channel.entry_name(entry));
            let finding =
                index.finding(&RULE.code, channel.blob.at.with(span), message).subject(channel.id());
            findings.push(finding.help("remove the item"));
        }
    }
}
