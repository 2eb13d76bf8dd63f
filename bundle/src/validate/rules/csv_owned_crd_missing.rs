use std::collections::BTreeSet;

use crate::crd::Crd;
use crate::csv::GroupVersionKind;
use crate::finding::{Code, Findings, Level};
use crate::parse::Bundle;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-owned-crd-missing",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("csv_owned_crd_missing.md"),
    },
    check,
};

fn check(bundle: &Bundle<'_>, findings: &mut Findings) {
    let Some(csv) = bundle.csv() else { return };
    let present: BTreeSet<_> = bundle.crds().flat_map(|crd| Crd::from(crd).gvks().collect::<Vec<_>>()).collect();
    for (index, owned) in csv.typed.spec.custom_resource_definitions.owned.iter().enumerate() {
        let Some(group) = owned.group() else { continue };
        let gvk = GroupVersionKind {
            group: group.to_owned(),
            version: owned.version.clone(),
            kind: owned.kind.clone(),
        };
        if present.contains(&gvk) {
            continue;
        }
        let path = ["spec".into(), "customresourcedefinitions".into(), "owned".into(), index.into(), "name".into()];
        let message = format!("`{}` {} `{}` is owned but not in the bundle", owned.kind, owned.version, owned.name);
        let mut finding = csv.object.finding(&RULE.code, message, &path);
        finding.place = finding.place.map(|place| place.label("owned here"));
        findings.push(finding.help(
            "add the CRD to `manifests/`, or remove it from `spec.customresourcedefinitions.owned`",
        ));
    }
}
