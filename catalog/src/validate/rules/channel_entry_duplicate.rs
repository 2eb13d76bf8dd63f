use olmkit_bundle::finding::{Code, Findings, Level};

use crate::graph::GraphError;
use crate::index::Index;
use crate::validate::{OPM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "channel-entry-duplicate",
        level: Level::Error,
        suite: OPM,
        docs: include_str!("channel_entry_duplicate.md"),
    },
    check,
};

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for channel in index.channels() {
        for error in channel.errors() {
            let GraphError::Duplicate { first, second } = *error else { continue };
            let message =
                format!("`{}` is already in the channel `{}`", channel.entry_name(second), channel.blob.name);
            findings.push(
                index
                    .finding(&RULE.code, channel.entry_at(second), message)
                    .and(index.catalog.place(channel.entry_at(first)).label("first here"))
                    .subject(channel.id())
                    .help("put the edges of both into one entry"),
            );
        }
    }
}
