use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::removals::Table;
use crate::validate::{REMOVED_APIS, Rule, removals, rule};
use crate::yaml::steps;

rule!("removed-api", Warning, REMOVED_APIS, "removed_api.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for object in facts.objects() {
        let (api_version, kind) = (object.api_version(), object.kind());
        let Some(removal) = removals::find(api_version, kind).filter(|removal| removal.table != Table::Wider)
        else {
            continue;
        };
        let mut finding = object.finding(&RULE.code, removal.message(), steps!("apiVersion"));
        finding.level = removal.level(facts);
        findings.push(finding.help(removal.help()).subject(object.id()));
    }
    if csv.object.api_version() != crate::csv::API_VERSION {
        return;
    }
    let crds = &csv.typed.spec.custom_resource_definitions;
    for (list, crds) in [("owned", &crds.owned), ("required", &crds.required)] {
        for (index, crd) in crds.iter().enumerate() {
            for (at, resource) in crd.resources.iter().enumerate() {
                let Some(removal) = removals::find(&resource.version, &resource.kind) else { continue };
                // Only this table is held against what the operator makes.
                if removal.table != Table::V1_25 {
                    continue;
                }
                let path =
                    steps!("spec", "customresourcedefinitions", list, index, "resources", at, "version");
                let mut finding = csv.object.finding(&RULE.code, removal.message(), path);
                finding.level = removal.level(facts);
                let subject = format!("{} in {list}[{index}].resources[{at}]", removal.kind);
                findings.push(finding.help(removal.help()).subject(subject));
            }
        }
    }
}
