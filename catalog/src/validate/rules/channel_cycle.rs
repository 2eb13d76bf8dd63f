use olmkit_bundle::finding::Findings;

use crate::graph::GraphError;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("channel-cycle", Error, OPM, "channel_cycle.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for channel in index.channels() {
        for error in channel.errors() {
            let GraphError::Cycle { cycle } = error else { continue };
            let closed: Vec<_> = cycle.iter().chain(cycle.first()).copied().collect();
            let message = format!("the channel `{}` is a cycle: {}", channel.blob.name, channel.way(&closed));
            let last = cycle.last().and_then(|entry| channel.blob.entries.get(*entry));
            let at = last.map_or(channel.at(), |entry| channel.blob.at.with(entry.replaces.span));
            let finding = index.finding(&RULE.code, at, message).subject(channel.id());
            findings.push(finding.help("let the oldest of them replace nothing, or what came before it"));
        }
    }
}
