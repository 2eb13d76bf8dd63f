use olmkit_bundle::finding::{Code, Findings, Level};

use crate::graph::GraphError;
use crate::index::Index;
use crate::validate::{OPM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "channel-skip-empty",
        level: Level::Error,
        suite: OPM,
        docs: include_str!("channel_skip_empty.md"),
    },
    check,
};

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for channel in index.channels().filter(|channel| !index.is_faulty(channel.blob.at)) {
        for error in channel.errors() {
            let GraphError::EmptySkip { entry, skip } = *error else { continue };
            let span = channel.blob.entries[entry].skips[skip].span;
            let message = format!("`{}` skips an empty name", channel.entry_name(entry));
            findings.push(
                index
                    .finding(&RULE.code, channel.blob.at.with(span), message)
                    .subject(channel.id())
                    .help("remove the item"),
            );
        }
    }
}
