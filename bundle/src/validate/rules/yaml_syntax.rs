use crate::finding::{Code, Finding, Findings, Level};
use crate::parse::Bundle;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code { name: "yaml-syntax", level: Level::Error, suite: OLM, docs: include_str!("yaml_syntax.md") },
    check,
};

fn check(bundle: &Bundle<'_>, findings: &mut Findings) {
    for file in &bundle.files {
        let Some(Err(error)) = file.documents.first() else { continue };
        findings.push(Finding::new(&RULE.code, error.message.clone()).at(file.place_at(error.span)).subject(file.path));
    }
}
