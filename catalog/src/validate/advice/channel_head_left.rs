use olmkit_bundle::finding::Findings;

use super::walked;
use crate::index::Index;
use crate::validate::{ADVICE, Rule, rule};

rule!("channel-head-left", Warning, ADVICE, "channel_head_left.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for (package, channel, ways) in walked(index) {
        let head = ways.head();
        let Some(next) = ways.next(head, package.version(head)) else { continue };
        let at = channel.blob.entries.iter().position(|entry| *entry.name == *next).unwrap_or(0);
        let message =
            format!("OLM upgrades from the head `{head}` of the channel `{}` to `{next}`", channel.blob.name);
        let finding = index.finding(&RULE.code, channel.entry_at(at), message).subject(channel.id());
        findings.push(finding.help("give its `skipRange` an upper end, such as its own version"));
    }
}
