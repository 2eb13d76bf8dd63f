use crate::finding::Findings;
use crate::validate::dependencies::GVK;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("dependency-gvk-incomplete", Error, OLM, "dependency_gvk_incomplete.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (dependency, fields) in facts.dependencies_of(GVK) {
        for field in ["group", "version", "kind"].into_iter().filter(|field| fields.text(&[field]).is_empty())
        {
            let finding = dependency.finding(
                &RULE.code,
                format!("a dependency on an API has no `{field}`"),
                steps!("value", field),
            );
            findings.push(
                finding.help("name `group`, `version` and `kind` of the API that another operator provides"),
            );
        }
    }
}
