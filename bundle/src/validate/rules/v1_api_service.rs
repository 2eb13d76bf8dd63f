use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM_V1, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "v1-api-service",
        level: Level::Warning,
        suite: OLM_V1,
        docs: include_str!("v1_api_service.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for index in 0..csv.typed.spec.api_service_definitions.owned.len() {
        let path = steps!("spec", "apiservicedefinitions", "owned", index, "name");
        findings.push(
            csv.object
                .finding(&RULE.code, "OLM v1 sets up no aggregated APIs", path)
                .help("serve the API as a custom resource"),
        );
    }
}
