use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("channel-name-missing", Error, OPM, "channel_name_missing.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for channel in index.channels() {
        if channel.blob.name.is_empty() && !index.is_faulty(channel.blob.at) {
            let message = format!("a channel of `{}` has no name", channel.blob.package);
            let finding =
                index.finding(&RULE.code, channel.blob.at, message).subject(channel.blob.package.as_str());
            findings.push(finding.help("add `name`"));
        }
    }
}
