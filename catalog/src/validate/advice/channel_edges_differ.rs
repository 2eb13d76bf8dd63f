use std::collections::HashMap;

use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{ADVICE, Rule, rule};

rule!("channel-edges-differ", Info, ADVICE, "channel_edges_differ.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in index.packages.values() {
        let mut first: HashMap<&str, (usize, &str)> = HashMap::new();
        for (at, channel) in package.channels.iter().enumerate() {
            let mut names: Option<std::collections::HashSet<&str>> = None;
            for entry in channel.blob.entries.iter().filter(|entry| !entry.replaces.is_empty()) {
                let (other, replaces) = *first.entry(&entry.name).or_insert((at, &entry.replaces));
                if *entry.replaces == *replaces {
                    continue;
                }
                let has = names.get_or_insert_with(|| {
                    channel.blob.entries.iter().map(|entry| entry.name.as_str()).collect()
                });
                if !has.contains(replaces) {
                    continue;
                }
                let other = &package.channels[other].blob.name;
                let message = format!(
                    "`{}` replaces `{}` in the channel `{}` and `{replaces}` in `{other}`, and both have that",
                    entry.name, entry.replaces, channel.blob.name
                );
                findings.push(
                    index
                        .finding(&RULE.code, channel.blob.at.with(entry.replaces.span), message)
                        .subject(channel.id()),
                );
            }
        }
    }
}
