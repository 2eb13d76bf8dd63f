use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM_V1, Rule, rule};
use crate::yaml::steps;

rule!("v1-dependency", Warning, OLM_V1, "v1_dependency.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    const HELP: &str = "tell users to install it first, and let the operator work without it until then";
    for dependency in facts.dependencies().iter().filter(|dependency| dependency.kind.starts_with("olm.")) {
        let message = format!(
            "OLM v1 refuses bundles with dependencies, such as this `{}`",
            dependency.kind.replace('`', "'")
        );
        findings.push(dependency.finding(&RULE.code, message, &[]).help(HELP));
    }
    let Some(csv) = facts.csv() else { return };
    let spec = &csv.typed.spec;
    let lists = [
        ("customresourcedefinitions", spec.custom_resource_definitions.required.len()),
        ("apiservicedefinitions", spec.api_service_definitions.required.len()),
    ];
    for (list, count) in lists {
        for index in 0..count {
            let path = steps!("spec", list, "required", index, "name");
            let message = "OLM v1 refuses bundles that require APIs of others";
            findings.push(csv.object.finding(&RULE.code, message, path).help(HELP));
        }
    }
}
