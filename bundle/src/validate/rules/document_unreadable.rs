use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};

rule!("document-unreadable", Warning, STRICT, "document_unreadable.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for file in &facts.files {
        for (index, document) in file.documents.iter().enumerate() {
            // The first document of a file that must be readable is `yaml-syntax`.
            let Err(error) = document else { continue };
            if index == 0 && facts.must_be_readable(file) {
                continue;
            }
            let finding = Finding::new(
                &RULE.code,
                format!(
                    "this document cannot be read: {}",
                    error.message.replace('`', "'").replace('\n', " ")
                ),
            )
            .at(file.place_at(error.span))
            .subject(file.source.path());
            findings.push(finding.help("correct or remove it"));
        }
    }
}
