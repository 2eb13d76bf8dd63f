use crate::finding::Findings;
use crate::validate::dependencies::LABEL;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("dependency-label-missing", Error, OLM, "dependency_label_missing.md");

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
