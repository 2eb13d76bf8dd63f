use crate::finding::Findings;
use crate::suggest::did_you_mean;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::steps;

rule!("api-service-without-deployment", Error, INSTALL, "api_service_without_deployment.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let spec = &csv.typed.spec;
    let deployments: Vec<_> = spec.install.spec.deployments.iter().map(|own| own.name.as_str()).collect();
    for (index, owned) in spec.api_service_definitions.owned.iter().enumerate() {
        let name = owned.deployment_name.as_str();
        if deployments.contains(&name) {
            continue;
        }
        let api = format!("{}.{}", owned.version, owned.group).replace('`', "'");
        let message = match name {
            "" => format!("the API `{api}` names no deployment that serves it"),
            _ => format!("there is no deployment `{}` to serve the API `{api}`", name.replace('`', "'")),
        };
        let help = did_you_mean(name, deployments.iter().copied());
        let help = help.unwrap_or_else(|| {
            "set `deploymentName` to a deployment of `spec.install.spec.deployments`".to_owned()
        });
        let path = steps!("spec", "apiservicedefinitions", "owned", index, "deploymentName");
        findings.push(csv.object.finding(&RULE.code, message, path).help(help));
    }
}
