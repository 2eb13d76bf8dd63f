use crate::finding::Findings;
use crate::names::check_subdomain;
use crate::validate::facts::Facts;
use crate::validate::{OLM_V1, Rule, rule};
use crate::yaml::steps;
use std::collections::BTreeSet;

rule!("v1-deployment-name", Warning, OLM_V1, "v1_deployment_name.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let mut seen = BTreeSet::new();
    for (index, deployment) in csv.typed.spec.install.spec.deployments.iter().enumerate() {
        let name = deployment.name.as_str();
        let message = match check_subdomain(name) {
            Err(why) => format!("`{name}` cannot be the name of a deployment: {why}"),
            Ok(()) if !seen.insert(name) => format!("a second deployment is named `{name}`"),
            Ok(()) => continue,
        };
        let path = steps!("spec", "install", "spec", "deployments", index, "name");
        findings
            .push(csv.object.finding(&RULE.code, message, path).help("give every deployment a unique name"));
    }
}
