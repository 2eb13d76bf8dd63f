use std::collections::HashMap;

use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("deprecation-duplicate", Error, OPM, "deprecation_duplicate.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for blob in index.catalog.deprecations.iter().filter(|blob| !index.is_faulty(blob.at)) {
        let mut first = HashMap::new();
        for entry in blob.entries.iter().filter(|entry| !entry.reference.schema.is_empty()) {
            let reference = (entry.reference.schema.as_str(), entry.reference.name.as_str());
            let other = *first.entry(reference).or_insert(entry.span);
            if other == entry.span {
                continue;
            }
            let what = match reference {
                (schema, "") => format!("`{schema}`"),
                (schema, name) => format!("`{schema}` `{name}`"),
            };
            let finding = index
                .finding(&RULE.code, blob.at.with(entry.span), format!("{what} is deprecated twice"))
                .and(index.catalog.place(blob.at.with(other)).label("first here"))
                .subject(blob.package.as_str());
            findings.push(finding.help("keep one message"));
        }
    }
}
