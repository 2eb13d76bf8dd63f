use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::metadata::Metadata;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "crd-metadata-invalid",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("crd_metadata_invalid.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, _) in facts.readable_crds() {
        Metadata { object, code: &RULE.code, typed: true, findings }.check();
    }
}
