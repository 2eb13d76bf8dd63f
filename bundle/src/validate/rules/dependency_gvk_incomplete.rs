use crate::finding::{Code, Findings, Level};
use crate::validate::dependencies::GVK;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "dependency-gvk-incomplete",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("dependency_gvk_incomplete.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (dependency, fields) in facts.dependencies_of(GVK) {
        for field in ["group", "version", "kind"].into_iter().filter(|field| fields.text(&[field]).is_empty())
        {
            findings.push(
                dependency
                    .finding(
                        &RULE.code,
                        format!("a dependency on an API has no `{field}`"),
                        steps!("value", field),
                    )
                    .help("name `group`, `version` and `kind` of the API that another operator provides"),
            );
        }
    }
}
