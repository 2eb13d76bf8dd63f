use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("default-channel-missing", Error, OPM, "default_channel_missing.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in &index.catalog.packages {
        if package.default_channel.is_empty() && !package.name.is_empty() && !index.is_faulty(package.at) {
            let message = format!("the package `{}` has no default channel", package.name);
            let finding = index
                .finding(&RULE.code, package.at.with(package.name.span), message)
                .subject(package.name.as_str());
            findings.push(finding.help("add `defaultChannel`, the channel for users who do not choose one"));
        }
    }
}
