use olmkit_bundle::finding::{Code, Findings, Level};

use crate::index::Index;
use crate::validate::{OPM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "default-channel-missing",
        level: Level::Error,
        suite: OPM,
        docs: include_str!("default_channel_missing.md"),
    },
    check,
};

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in &index.catalog.packages {
        if package.default_channel.is_empty() && !package.name.is_empty() && !index.is_faulty(package.at) {
            let message = format!("the package `{}` has no default channel", package.name);
            findings.push(
                index
                    .finding(&RULE.code, package.at.with(package.name.span), message)
                    .subject(package.name.as_str())
                    .help("add `defaultChannel`, the channel for users who do not choose one"),
            );
        }
    }
}
