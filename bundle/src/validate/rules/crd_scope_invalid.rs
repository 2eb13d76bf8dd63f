use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("crd-scope-invalid", Error, OLM, "crd_scope_invalid.md");

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
