use std::collections::HashSet;

use olmkit_bundle::finding::Findings;

use crate::fbc::schema;
use crate::index::Index;
use crate::validate::{ADVICE, Rule, rule};

rule!("channel-head-deprecated", Warning, ADVICE, "channel_head_deprecated.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in index.packages.values() {
        let named: HashSet<&str> = package.deprecated(schema::BUNDLE).map(|(name, _)| name).collect();
        for channel in &package.channels {
            let Some(head) = channel.linked.as_ref().ok().map(|channel| channel.head()) else { continue };
            let bundle = package.bundle(&head.name);
            let by_property = bundle.is_some_and(|bundle| {
                bundle.blob.properties.iter().any(|property| *property.kind == *"olm.deprecated")
            });
            if by_property || named.contains(head.name.as_str()) {
                let message =
                    format!("the head `{}` of the channel `{}` is deprecated", head.name, channel.blob.name);
                findings.push(index.finding(&RULE.code, channel.at(), message).subject(channel.id()));
            }
        }
    }
}
