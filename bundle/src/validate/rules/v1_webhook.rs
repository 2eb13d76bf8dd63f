use crate::finding::Findings;
use crate::names::check_subdomain;
use crate::validate::facts::Facts;
use crate::validate::{OLM_V1, Rule, rule};
use crate::yaml::{Step, steps};
use std::collections::BTreeSet;

rule!("v1-webhook", Warning, OLM_V1, "v1_webhook.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let spec = &csv.typed.spec;
    let owned: BTreeSet<_> =
        spec.custom_resource_definitions.owned.iter().map(|crd| crd.name.as_str()).collect();
    let (mut names, mut converted) = (BTreeSet::new(), BTreeSet::new());
    for (index, webhook) in spec.webhook_definitions.iter().enumerate() {
        let mut report = |path: &[Step<'_>], message: String, help: &str| {
            let path: Vec<_> =
                steps!("spec", "webhookdefinitions", index).iter().chain(path).copied().collect();
            findings.push(csv.object.finding(&RULE.code, message, &path).help(help));
        };
        let deployment = webhook.deployment_name.as_str();
        if !spec.install.spec.deployments.iter().any(|other| other.name == deployment) {
            let message = format!("there is no deployment `{deployment}` to serve the webhook");
            report(steps!("deploymentName"), message, "name a deployment of `spec.install.spec.deployments`");
        }
        let name = webhook.generate_name.as_str();
        if let Err(why) = check_subdomain(name) {
            report(
                steps!("generateName"),
                format!("`{name}` cannot be the name of a webhook: {why}"),
                NAME_HELP,
            );
        } else if !names.insert((webhook.kind.as_str(), name)) {
            report(
                steps!("generateName"),
                format!("a second webhook of this type is named `{name}`"),
                NAME_HELP,
            );
        }
        for (at, crd) in webhook.conversion_crds.iter().enumerate() {
            if !owned.contains(crd.as_str()) {
                let message = format!("`{crd}` is converted but not owned");
                report(
                    steps!("conversionCRDs", at),
                    message,
                    "list it under `spec.customresourcedefinitions.owned`",
                );
            } else if !converted.insert(crd.as_str()) {
                let message = format!("`{crd}` is converted by two webhooks");
                report(steps!("conversionCRDs", at), message, "leave it to one of them");
            }
        }
        for (at, rule) in webhook.rules.iter().enumerate() {
            for group in rule.api_groups.iter().flatten() {
                let resources = || rule.resources.iter().flatten();
                let is_webhook = |resource: &String| {
                    matches!(
                        resource.as_str(),
                        "*" | "mutatingwebhookconfigurations" | "validatingwebhookconfigurations"
                    )
                };
                let message = match group.as_str() {
                    "*" => "the webhook intercepts every group",
                    "olm.operatorframework.io" => "the webhook intercepts objects of OLM",
                    "admissionregistration.k8s.io" if resources().any(is_webhook) => {
                        "the webhook intercepts the configurations of webhooks"
                    }
                    _ => continue,
                };
                report(
                    steps!("rules", at, "apiGroups"),
                    message.into(),
                    "name the groups and resources that the webhook is for",
                );
            }
        }
    }
}

const NAME_HELP: &str = "give every webhook a unique name, such as `vredis.example.com`";
