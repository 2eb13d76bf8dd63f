use crate::csv::API_VERSION;
use crate::finding::Findings;
use crate::parse::Csv;
use crate::validate::facts::Facts;
use crate::validate::{REMOVED_APIS, Rule, removals, rule};
use std::collections::BTreeSet;

rule!("removed-api-permission", Warning, REMOVED_APIS, "removed_api_permission.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let is_current = |csv: &Csv<'_, '_>| csv.object.api_version() == API_VERSION;
    let Some(csv) = facts.csv().filter(is_current) else { return };
    let crds = &csv.typed.spec.custom_resource_definitions;
    let named = crds.owned.iter().chain(&crds.required).flat_map(|crd| &crd.resources);
    let named: BTreeSet<_> = named.map(|resource| resource.kind.to_lowercase() + "s").collect();
    for rule in facts.access_rules().iter().filter(|rule| rule.is_in_csv()) {
        for resource in rule.resources().filter(|resource| !named.contains(resource.as_ref())) {
            if rule.groups().any(|group| removals::OLD_IN_1_25.contains(&(group.as_ref(), resource.as_ref())))
            {
                let message = format!("Kubernetes 1.25 removed an API version of `{resource}`");
                findings.push(
                    rule.finding(&RULE.code, message).subject(format!("{resource} in {}", rule.name())).help(
                        "check that the operator uses the newer version; then `--allow` this kind of finding",
                    ),
                );
            }
        }
    }
}
