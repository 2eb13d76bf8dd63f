use std::collections::BTreeSet;

use crate::csv::GroupVersionKind;
use crate::finding::{Finding, Findings};
use crate::validate::facts::{CrdVersion, Facts};
use crate::validate::{OLM, Rule, rule};

rule!("crd-not-owned", Error, OLM, "crd_not_owned.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let owned = csv.typed.spec.custom_resource_definitions.owned.iter().map(|owned| owned.gvk());
    let owned: BTreeSet<GroupVersionKind> = owned.collect();
    // Of a kind that is owned in one version, the CRD may have others.
    let versions = facts.crd_versions();
    let kinds: BTreeSet<_> =
        versions.iter().map(|version| &version.gvk).filter(|gvk| owned.contains(gvk)).collect();
    let kinds: BTreeSet<_> = kinds.into_iter().map(|gvk| (&gvk.group, &gvk.kind)).collect();
    for version in versions.iter().filter(|version| !kinds.contains(&(&version.gvk.group, &version.gvk.kind)))
    {
        let is_same = |other: &&CrdVersion<'_, '_>| {
            (&other.gvk.group, &other.gvk.kind) == (&version.gvk.group, &version.gvk.kind)
        };
        let is_served = versions.iter().filter(is_same).any(|other| other.served);
        let help = match (version.served, is_served) {
            (true, _) => "list it under `spec.customresourcedefinitions.owned`, or remove the CRD",
            (false, true) => {
                "list a version that is served under `spec.customresourcedefinitions.owned`, or remove the CRD"
            }
            // OLM would wait for it for ever.
            (false, false) => {
                "no version of the CRD is served, and OLM waits for what is owned to be served: set `served: true` for a version \
                 and list that one under `spec.customresourcedefinitions.owned`, or remove the CRD"
            }
        };
        let finding = Finding::new(&RULE.code, format!("`{}` is in the bundle but not owned", version.gvk))
            .at(version.crd.place_at(version.span))
            .subject(version.gvk.to_string());
        findings.push(finding.help(help));
    }
}
