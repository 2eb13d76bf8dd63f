use olmkit_bundle::finding::Findings;

use crate::graph::GraphError;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("channel-no-head", Error, OPM, "channel_no_head.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for channel in index.channels() {
        for error in channel.errors() {
            let GraphError::NoHead { cycle } = error else { continue };
            let newest_first: Vec<_> = cycle.iter().chain(cycle.first()).rev().copied().collect();
            let message = format!(
                "the channel `{}` has no head: every entry is replaced or skipped by another one",
                channel.blob.name
            );
            let at = cycle.first().map_or(channel.at(), |entry| channel.entry_at(*entry));
            let finding = index.finding(&RULE.code, at, message).subject(channel.id());
            findings.push(
                finding.help(format!("one of these edges is too many: {}", channel.way(&newest_first))),
            );
        }
    }
}
