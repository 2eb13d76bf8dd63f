use olmkit_bundle::finding::Findings;

use crate::graph::GraphError;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("channel-several-heads", Error, OPM, "channel_several_heads.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for channel in index.channels() {
        for error in channel.errors() {
            let GraphError::SeveralHeads { heads } = error else { continue };
            let names: Vec<_> = heads.iter().map(|head| format!("`{}`", channel.entry_name(*head))).collect();
            let message =
                format!("the channel `{}` has several heads: {}", channel.blob.name, names.join(", "));
            let mut finding = index.finding(&RULE.code, channel.at(), message).subject(channel.id());
            if let [first, second, ..] = heads[..] {
                finding = finding
                    .at(index.catalog.place(channel.entry_at(second)).label("neither replaced nor skipped"))
                    .and(index.catalog.place(channel.entry_at(first)).label("nor is this"));
            }
            findings
                .push(finding.help("let the newest replace or skip the others; a `skipRange` does neither"));
        }
    }
}
