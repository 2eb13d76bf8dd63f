use std::collections::BTreeSet;

use crate::csv::GroupVersionKind;
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-owned-crd-missing", Error, OLM, "csv_owned_crd_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    // The CRD may be in the very file that cannot be read.
    let Some(csv) = facts.csv().filter(|_| facts.all_manifests_are_read()) else { return };
    let present: BTreeSet<&GroupVersionKind> =
        facts.crd_versions().iter().map(|version| &version.gvk).collect();
    for (index, owned) in csv.typed.spec.custom_resource_definitions.owned.iter().enumerate() {
        let gvk = owned.gvk();
        if present.contains(&gvk) {
            continue;
        }
        let path = steps!("spec", "customresourcedefinitions", "owned", index, "name");
        findings.push(
            csv.object
                .finding(&RULE.code, format!("`{gvk}` is owned but not in the bundle"), path)
                .label("owned here")
                .subject(gvk.to_string())
                .help(
                    "add the CRD to `manifests/`, or remove it from `spec.customresourcedefinitions.owned`",
                ),
        );
    }
}
