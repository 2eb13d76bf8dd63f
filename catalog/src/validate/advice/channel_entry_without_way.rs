use olmkit_bundle::finding::Findings;

use super::walked;
use crate::index::Index;
use crate::validate::{ADVICE, Rule, rule};

rule!("channel-entry-without-way", Warning, ADVICE, "channel_entry_without_way.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for (_, channel, ways) in walked(index) {
        for entry in ways.unreachable() {
            let name = channel.entry_name(entry);
            let message = format!(
                "`{name}` has no upgrade path to the head `{}` of the channel `{}`",
                ways.head(),
                channel.blob.name
            );
            let help = format!("let an entry on the path to the head replace or skip `{name}`");
            let finding = index.finding(&RULE.code, channel.entry_at(entry), message).subject(channel.id());
            findings.push(finding.help(help));
        }
    }
}
