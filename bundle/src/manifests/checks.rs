//! What makes OLM v1 refuse a bundle whatever its configuration (`rukpak/render/registryv1/validators`).

use std::collections::{BTreeMap, BTreeSet};

use super::config::Modes;
use super::source::Parts;
use crate::csv::WebhookDescription;
use crate::kinds::supported;
use crate::yaml::{Node, steps};

/// The type of webhooks that convert between versions.
pub(super) const CONVERSION: &str = "ConversionWebhook";

/// Everything that is wrong, in the order of OLM v1.
pub(super) fn problems(parts: &Parts<'_, '_>, modes: &Modes) -> Vec<String> {
    let spec = &parts.csv.spec;
    let deployments = &spec.install.spec.deployments;
    let webhooks = &spec.webhook_definitions;
    let mut problems = Vec::new();
    for name in repeated(deployments.iter().map(|deployment| deployment.name.as_str())) {
        problems.push(format!("the Deployment `{name}` is in the ClusterServiceVersion twice"));
    }
    let names: BTreeSet<_> = deployments.iter().map(|deployment| deployment.name.as_str()).collect();
    for name in names.iter().filter(|name| !is_subdomain(name)) {
        problems.push(format!("`{name}` is not a valid name of a Deployment"));
    }
    let crds: Vec<_> = parts.crds.iter().map(|crd| text(crd, "name")).collect();
    for name in repeated(crds.iter().copied()) {
        problems.push(format!("the CRD `{name}` is in the bundle twice"));
    }
    let owned: BTreeSet<_> =
        spec.custom_resource_definitions.owned.iter().map(|crd| crd.name.as_str()).collect();
    for name in owned.iter().filter(|name| !crds.contains(name)) {
        problems.push(format!("the CRD `{name}` is owned, and not in the bundle"));
    }
    if parts.package.is_empty() {
        problems.push("`metadata/annotations.yaml` names no package".to_owned());
    }
    let conversions: Vec<_> = webhooks.iter().filter(|webhook| webhook.kind == CONVERSION).collect();
    if modes.len() != 1 || !modes.contains("AllNamespaces") {
        for webhook in &conversions {
            let name = &webhook.generate_name;
            problems.push(format!(
                "the conversion webhook `{name}` needs AllNamespaces as the only install mode"
            ));
        }
    }
    let mut orphans: Vec<_> =
        webhooks.iter().filter(|webhook| !names.contains(webhook.deployment_name.as_str())).collect();
    orphans.sort_by_key(|webhook| (&webhook.deployment_name, &webhook.kind, &webhook.generate_name));
    for WebhookDescription { generate_name, deployment_name, .. } in orphans {
        problems.push(format!(
            "the webhook `{generate_name}` names the Deployment `{deployment_name}`, which does not exist"
        ));
    }
    for (kind, name) in
        repeated(webhooks.iter().map(|webhook| (webhook.kind.as_str(), webhook.generate_name.as_str())))
    {
        problems.push(format!("two webhooks of type `{kind}` have the name `{name}`"));
    }
    let named: BTreeSet<_> = webhooks.iter().map(|webhook| (&webhook.kind, &webhook.generate_name)).collect();
    for (_, name) in named.iter().filter(|(_, name)| !is_subdomain(name)) {
        problems.push(format!("`{name}` is not a valid name of a webhook"));
    }
    conversion_problems(&conversions, &owned, &mut problems);
    webhooks.iter().for_each(|webhook| rule_problems(webhook, &mut problems));
    for object in &parts.others {
        let kind = object.get("kind").and_then(Node::as_str).unwrap_or_default();
        if supported(kind).is_none() {
            problems.push(format!(
                "a bundle cannot contain objects of kind `{kind}`, such as `{}`",
                text(object, "name")
            ));
        }
    }
    problems
}

fn conversion_problems(
    conversions: &[&WebhookDescription],
    owned: &BTreeSet<&str>,
    problems: &mut Vec<String>,
) {
    let mut converted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for webhook in conversions {
        for crd in &webhook.conversion_crds {
            converted.entry(crd).or_default().insert(&webhook.generate_name);
            *times.entry(crd).or_default() += 1;
        }
    }
    for (crd, webhooks) in converted.iter().filter(|(crd, _)| times[*crd] > 1) {
        let names = webhooks.iter().copied().collect::<Vec<_>>().join("`, `");
        problems.push(format!("several webhooks convert the CRD `{crd}`: `{names}`"));
    }
    for crd in converted.keys().filter(|crd| !owned.contains(**crd)) {
        problems.push(format!("a webhook converts the CRD `{crd}`, which the operator does not own"));
    }
}

fn rule_problems(webhook: &WebhookDescription, problems: &mut Vec<String>) {
    const CONFIGURATIONS: [&str; 5] = [
        "*",
        "mutatingwebhookconfiguration",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfiguration",
        "validatingwebhookconfigurations",
    ];
    if webhook.kind == CONVERSION {
        return;
    }
    let name = &webhook.generate_name;
    for rule in &webhook.rules {
        for group in rule.api_groups.iter().flatten() {
            if matches!(group.as_str(), "*" | "olm.operatorframework.io") {
                problems
                    .push(format!("the webhook `{name}` must not have a rule for the API group `{group}`"));
            }
            if group == "admissionregistration.k8s.io" {
                let resources = rule.resources.iter().flatten();
                for resource in resources.filter(|one| CONFIGURATIONS.contains(&one.to_lowercase().as_str()))
                {
                    problems
                        .push(format!("the webhook `{name}` must not have a rule for `{resource}.{group}`"));
                }
            }
        }
    }
}

/// What is there more than once, sorted.
fn repeated<T: Ord + Copy>(items: impl Iterator<Item = T>) -> BTreeSet<T> {
    let mut seen = BTreeSet::new();
    items.filter(|item| !seen.insert(*item)).collect()
}

/// A text of an object's metadata.
pub(super) fn text<'b>(object: &'b Node<'_>, key: &str) -> &'b str {
    object.at(steps!("metadata", key)).and_then(Node::as_str).unwrap_or_default()
}

/// Whether a text is a DNS-1123 subdomain.
fn is_subdomain(name: &str) -> bool {
    let sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_label = |label: &str| {
        label.starts_with(sound) && label.ends_with(sound) && label.chars().all(|c| sound(c) || c == '-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}
