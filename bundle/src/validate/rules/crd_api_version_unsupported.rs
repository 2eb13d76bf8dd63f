use crate::crd;
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("crd-api-version-unsupported", Error, OLM, "crd_api_version_unsupported.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for object in facts.crds() {
        let message = match object.api_version() {
            crd::V1 | crd::V1BETA1 => continue,
            "" => "the CustomResourceDefinition has no `apiVersion`".to_owned(),
            other => format!("`{other}` is not a version of CustomResourceDefinitions"),
        };
        let finding = object.finding(&RULE.code, message, steps!("apiVersion"));
        findings.push(finding.help("write `apiVersion: apiextensions.k8s.io/v1`"));
    }
}
