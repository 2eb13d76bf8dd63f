use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{ADVICE, Rule, rule};

rule!("channel-replaces-absent", Info, ADVICE, "channel_replaces_absent.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for channel in index.channels() {
        let names: std::collections::HashSet<&str> =
            channel.blob.entries.iter().map(|entry| entry.name.as_str()).collect();
        for entry in &channel.blob.entries {
            if !entry.replaces.is_empty() && !names.contains(entry.replaces.as_str()) {
                let message = format!(
                    "`{}` replaces `{}`, which the channel `{}` does not have",
                    entry.name, entry.replaces, channel.blob.name
                );
                findings.push(
                    index
                        .finding(&RULE.code, channel.blob.at.with(entry.replaces.span), message)
                        .subject(channel.id()),
                );
            }
        }
    }
}
