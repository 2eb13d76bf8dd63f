use olmkit_bundle::finding::{Code, Findings, Level};

use crate::index::Index;
use crate::validate::{OPM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "default-channel-unknown",
        level: Level::Error,
        suite: OPM,
        docs: include_str!("default_channel_unknown.md"),
    },
    check,
};

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in index.packages.values().filter(|_| !index.incomplete) {
        for blob in &package.blobs {
            let name = &blob.default_channel;
            if name.is_empty() || package.channels.iter().any(|channel| channel.blob.name == *name) {
                continue;
            }
            let known: Vec<_> =
                package.channels.iter().map(|channel| format!("`{}`", channel.blob.name)).collect();
            let message = format!("the default channel `{name}` of `{}` does not exist", blob.name);
            let finding =
                index.finding(&RULE.code, blob.at.with(name.span), message).subject(blob.name.as_str());
            findings.push(match known.is_empty() {
                true => finding.help(format!("add the channel `{name}`")),
                false => finding.help(format!("the package has {}", known.join(", "))),
            });
        }
    }
}
