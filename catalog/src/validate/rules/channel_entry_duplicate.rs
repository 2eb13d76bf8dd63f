use olmkit_bundle::finding::Findings;

use crate::graph::GraphError;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("channel-entry-duplicate", Error, OPM, "channel_entry_duplicate.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for channel in index.channels() {
        for error in channel.errors() {
            let GraphError::Duplicate { first, second } = *error else { continue };
            let message =
                format!("`{}` is already in the channel `{}`", channel.entry_name(second), channel.blob.name);
            let finding = index
                .finding(&RULE.code, channel.entry_at(second), message)
                .and(index.catalog.place(channel.entry_at(first)).label("first here"))
                .subject(channel.id());
            findings.push(finding.help("put the edges of both into one entry"));
        }
    }
}
