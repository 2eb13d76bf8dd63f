use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{ADVICE, Rule, rule};

rule!("channel-edge-backwards", Warning, ADVICE, "channel_edge_backwards.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in index.packages.values() {
        for channel in &package.channels {
            for entry in &channel.blob.entries {
                let Some(own) = package.version(&entry.name) else { continue };
                let edges = std::iter::once(("replaces", &entry.replaces));
                for (word, old) in edges.chain(entry.skips.iter().map(|skip| ("skips", skip))) {
                    let Some(version) = package.version(old).filter(|version| *version > own) else {
                        continue;
                    };
                    let message =
                        format!("`{}` {word} `{old}`, whose version {version} is higher", entry.name);
                    findings.push(
                        index
                            .finding(&RULE.code, channel.blob.at.with(old.span), message)
                            .subject(channel.id()),
                    );
                }
            }
        }
    }
}
