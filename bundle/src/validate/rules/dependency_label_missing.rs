use crate::finding::{Code, Findings, Level};
use crate::validate::dependencies::LABEL;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "dependency-label-missing",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("dependency_label_missing.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (dependency, fields) in facts.dependencies_of(LABEL) {
        if fields.text(&["label"]).is_empty() {
            findings.push(
                dependency
                    .finding(&RULE.code, "a dependency on a label has no `label`", steps!("value", "label"))
                    .help("name the label that another bundle has among its properties"),
            );
        }
    }
}
