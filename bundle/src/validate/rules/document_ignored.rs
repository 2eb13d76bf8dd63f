use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};

rule!("document-ignored", Warning, STRICT, "document_ignored.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for file in &facts.files {
        let behind = file.documents.iter().skip(1).filter_map(|document| document.as_ref().ok());
        for document in behind.filter(|document| !document.root.is_null()) {
            let finding =
                Finding::new(&RULE.code, "only the first document of a file is read, and this is another")
                    .at(file.place_at(document.root.locate(&[])))
                    .subject(file.source.path());
            findings.push(finding.help("move it to a separate file"));
        }
    }
}
