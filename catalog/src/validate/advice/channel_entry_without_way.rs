use olmkit_bundle::finding::{Code, Findings, Level};

use super::walked;
use crate::index::Index;
use crate::validate::{ADVICE, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "channel-entry-without-way",
        level: Level::Warning,
        suite: ADVICE,
        docs: include_str!("channel_entry_without_way.md"),
    },
    check,
};

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
            findings.push(
                index.finding(&RULE.code, channel.entry_at(entry), message).subject(channel.id()).help(help),
            );
        }
    }
}
