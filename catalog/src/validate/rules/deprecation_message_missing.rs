use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("deprecation-message-missing", Error, OPM, "deprecation_message_missing.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for blob in index.catalog.deprecations.iter().filter(|blob| !index.is_faulty(blob.at)) {
        for entry in blob.entries.iter().filter(|entry| entry.message.is_empty()) {
            let finding = index
                .finding(&RULE.code, blob.at.with(entry.span), "a deprecation has no message")
                .subject(blob.package.as_str());
            findings.push(finding.help("add `message`: what users should do instead"));
        }
    }
}
