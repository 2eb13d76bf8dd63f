use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::removals::Table;
use crate::validate::{REMOVED_APIS, Rule, removals, rule};
use crate::yaml::steps;

rule!("api-no-longer-served", Warning, REMOVED_APIS, "api_no_longer_served.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for object in facts.objects() {
        let removal = removals::find(object.api_version(), object.kind());
        if let Some(removal) = removal.filter(|removal| removal.table == Table::Wider) {
            let finding = object.finding(&RULE.code, removal.message(), steps!("apiVersion"));
            findings.push(finding.help(removal.help()));
        }
    }
    for rule in facts.access_rules() {
        for resource in rule.resources() {
            if rule.groups().any(|group| group == "extensions") && removals::is_in_extensions(&resource) {
                let message = format!(
                    "`{resource}` are no longer in the group `extensions`, since Kubernetes 1.22 at the latest"
                );
                let help = "name the group that they are in today: `apps`, `networking.k8s.io` or `policy`";
                findings.push(rule.finding(&RULE.code, message).help(help));
            }
        }
    }
    let Some(csv) = facts.csv() else { return };
    let spec = &csv.typed.spec;
    for (list, crds) in [
        ("owned", &spec.custom_resource_definitions.owned),
        ("required", &spec.custom_resource_definitions.required),
    ] {
        for (index, crd) in crds.iter().enumerate() {
            for (at, resource) in crd.resources.iter().enumerate() {
                let Some(removal) = removals::find(&resource.version, &resource.kind) else { continue };
                if removal.table != Table::V1_25 {
                    let path =
                        steps!("spec", "customresourcedefinitions", list, index, "resources", at, "version");
                    findings
                        .push(csv.object.finding(&RULE.code, removal.message(), path).help(removal.help()));
                }
            }
        }
    }
    for (index, api) in spec.native_apis.iter().enumerate() {
        if let Some(removal) = removals::find(&format!("{}/{}", api.group, api.version), &api.kind) {
            let path = steps!("spec", "nativeAPIs", index, "version");
            findings.push(csv.object.finding(&RULE.code, removal.message(), path).help(removal.help()));
        }
    }
    for (index, webhook) in spec.webhook_definitions.iter().enumerate() {
        for (at, rule) in webhook.rules.iter().enumerate() {
            let (groups, versions) =
                (rule.api_groups.iter().flatten(), rule.api_versions.as_deref().unwrap_or_default());
            let asked = groups
                .flat_map(|group| rule.resources.iter().flatten().map(move |resource| (group, resource)));
            for (group, resource) in asked {
                let removed =
                    versions.iter().map(|version| removals::find_resource(group, version, resource));
                // A webhook that asks for an old version too works on clusters of every age.
                if let Some(removal) =
                    removed.collect::<Option<Vec<_>>>().and_then(|all| all.first().copied())
                {
                    let path = steps!("spec", "webhookdefinitions", index, "rules", at, "apiVersions");
                    findings
                        .push(csv.object.finding(&RULE.code, removal.message(), path).help(removal.help()));
                }
            }
        }
    }
}
