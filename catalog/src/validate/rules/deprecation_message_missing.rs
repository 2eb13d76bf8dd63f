use olmkit_bundle::finding::{Code, Findings, Level};

use crate::index::Index;
use crate::validate::{OPM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "deprecation-message-missing",
        level: Level::Error,
        suite: OPM,
        docs: include_str!("deprecation_message_missing.md"),
    },
    check,
};

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for blob in index.catalog.deprecations.iter().filter(|blob| !index.is_faulty(blob.at)) {
        for entry in blob.entries.iter().filter(|entry| entry.message.is_empty()) {
            findings.push(
                index
                    .finding(&RULE.code, blob.at.with(entry.span), "a deprecation has no message")
                    .subject(blob.package.as_str())
                    .help("add `message`: what users should do instead"),
            );
        }
    }
}
