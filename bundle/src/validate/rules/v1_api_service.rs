use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM_V1, Rule, rule};
use crate::yaml::steps;

rule!("v1-api-service", Warning, OLM_V1, "v1_api_service.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for index in 0..csv.typed.spec.api_service_definitions.owned.len() {
        let path = steps!("spec", "apiservicedefinitions", "owned", index, "name");
        let finding = csv.object.finding(&RULE.code, "OLM v1 sets up no aggregated APIs", path);
        findings.push(finding.help("serve the API as a custom resource"));
    }
}
