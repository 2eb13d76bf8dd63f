use olmkit_bundle::finding::Findings;

use crate::graph::GraphError;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("channel-skip-range-invalid", Error, OPM, "channel_skip_range_invalid.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for channel in index.channels() {
        for error in channel.errors() {
            let GraphError::SkipRange { entry, why } = error else { continue };
            let span = channel.blob.entries[*entry].skip_range.span;
            let message = format!("the skipRange of `{}`: {why}", channel.entry_name(*entry));
            let finding =
                index.finding(&RULE.code, channel.blob.at.with(span), message).subject(channel.id());
            findings.push(finding.help("write comparisons with whole versions, such as `>=1.0.0 <1.2.0`"));
        }
    }
}
