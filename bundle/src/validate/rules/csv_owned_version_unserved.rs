use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-owned-version-unserved", Error, OLM, "csv_owned_version_unserved.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, owned) in csv.typed.spec.custom_resource_definitions.owned.iter().enumerate() {
        let gvk = owned.gvk();
        let mut versions = facts.crd_versions().iter().filter(|version| version.gvk == gvk);
        let Some(unserved) = versions.next().filter(|version| !version.served) else { continue };
        let path = steps!("spec", "customresourcedefinitions", "owned", index, "version");
        let message =
            format!("`{gvk}` is owned, but its CRD does not serve this version: OLM waits for it forever");
        findings.push(
            csv.object
                .finding(&RULE.code, message, path)
                .label("owned here")
                .and(unserved.crd.place_at(unserved.span))
                .subject(gvk.to_string())
                .help("remove the entry from `spec.customresourcedefinitions.owned`, or set `served: true` in the CRD"),
        );
    }
}
