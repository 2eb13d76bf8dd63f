use crate::crd;
use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "crd-api-version-unsupported",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("crd_api_version_unsupported.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for object in facts.crds() {
        let message = match object.api_version() {
            crd::V1 | crd::V1BETA1 => continue,
            "" => "the CustomResourceDefinition has no `apiVersion`".to_owned(),
            other => format!("`{other}` is not a version of CustomResourceDefinitions"),
        };
        findings.push(
            object
                .finding(&RULE.code, message, steps!("apiVersion"))
                .help("write `apiVersion: apiextensions.k8s.io/v1`"),
        );
    }
}
