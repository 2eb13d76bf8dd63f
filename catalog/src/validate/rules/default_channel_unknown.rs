use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("default-channel-unknown", Error, OPM, "default_channel_unknown.md");

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
