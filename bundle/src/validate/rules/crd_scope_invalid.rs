use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "crd-scope-invalid",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("crd_scope_invalid.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, crd) in facts.readable_crds() {
        let path = steps!("spec", "scope");
        let message = match crd.text(path).as_ref() {
            "Cluster" | "Namespaced" => continue,
            // The older API has a default.
            "" if !crd.is_v1() => continue,
            "" => "the CustomResourceDefinition has no scope".to_owned(),
            other => format!("`{other}` is not a scope"),
        };
        findings.push(object.finding(&RULE.code, message, path).help("write `Namespaced` or `Cluster`"));
    }
}
