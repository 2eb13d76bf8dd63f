use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "document-ignored",
        level: Level::Warning,
        suite: STRICT,
        docs: include_str!("document_ignored.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for file in &facts.files {
        let behind = file.documents.iter().skip(1).filter_map(|document| document.as_ref().ok());
        for document in behind.filter(|document| !document.root.is_null()) {
            findings.push(
                Finding::new(&RULE.code, "only the first document of a file is read, and this is another")
                    .at(file.place_at(document.root.locate(&[])))
                    .subject(file.source.path())
                    .help("move it to a separate file"),
            );
        }
    }
}
