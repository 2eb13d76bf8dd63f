use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{ADVICE, Rule, rule};

rule!("default-channel-prerelease", Warning, ADVICE, "default_channel_prerelease.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in index.packages.values() {
        let Some(blob) = package.blobs.first() else { continue };
        let default = package.channels.iter().find(|channel| *channel.blob.name == *blob.default_channel);
        let Some(head) =
            default.and_then(|channel| channel.linked.as_ref().ok()).map(|channel| channel.head())
        else {
            continue;
        };
        if head.version.as_ref().is_some_and(|version| !version.version.pre.is_empty()) {
            let message = format!(
                "the head `{}` of the default channel `{}` is a pre-release",
                head.name, blob.default_channel
            );
            let finding = index
                .finding(&RULE.code, blob.at.with(blob.default_channel.span), message)
                .subject(blob.name.to_string());
            findings.push(finding.help("set a release channel as the default"));
        }
    }
}
