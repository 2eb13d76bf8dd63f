use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "metadata-missing",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("metadata_missing.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    if facts.metadata().next().is_none() {
        findings.push(
            Finding::new(&RULE.code, "there are no files in `metadata/`")
                .at(facts.place())
                .subject(facts.name)
                .help("add `metadata/annotations.yaml`, which names the package and its channels"),
        );
    }
}
