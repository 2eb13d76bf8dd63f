use std::collections::BTreeMap;

use crate::finding::Findings;
use crate::kinds;
use crate::parse::Object;
use crate::validate::dependencies::GVK;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::{Node, steps};

rule!("manifest-needs-crd", Warning, INSTALL, "manifest_needs_crd.md");

/// By this property OLM goes on where an object cannot be created.
const OPTIONAL: &str = "olm.manifests.optional";

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let mut needing: BTreeMap<&str, Vec<Object<'_, '_>>> = BTreeMap::new();
    for object in facts.objects() {
        let Some(crd) = kinds::supported(object.kind()).and_then(|kind| kind.crd) else { continue };
        if !is_there(facts, crd, object.kind()) && !is_optional(facts, object) {
            needing.entry(crd).or_default().push(object);
        }
    }
    for (crd, objects) in needing {
        let Some((first, others)) = objects.split_first() else { continue };
        let more = match others.len() {
            0 => "needs".to_owned(),
            count => format!("and {count} more need"),
        };
        let message = format!(
            "`{}` {more} the CRD `{crd}`, which not every cluster has: OLM fails the InstallPlan without it",
            first.id()
        );
        let finding = first.finding(&RULE.code, message, steps!("kind"));
        findings.push(finding.help(
            "have the operator create it where the CRD exists, or list it under `olm.manifests.optional` in `metadata/properties.yaml`",
        ));
    }
}

/// Whether the bundle brings the CRD, or requires an operator that does.
fn is_there(facts: &Facts<'_, '_>, crd: &str, kind: &str) -> bool {
    let required =
        facts.csv().into_iter().flat_map(|csv| &csv.typed.spec.custom_resource_definitions.required);
    let group = crd.split_once('.').map_or("", |(_, group)| group);
    facts.crds().any(|own| own.name() == crd)
        || required.into_iter().any(|required| required.name == crd)
        || facts
            .dependencies_of(GVK)
            .any(|(_, fields)| fields.text(&["group"]) == group && fields.text(&["kind"]) == kind)
}

/// Whether a property of the bundle says that OLM can do without the object.
fn is_optional(facts: &Facts<'_, '_>, object: Object<'_, '_>) -> bool {
    let lists = facts.metadata().filter_map(|file| file.root()?.get("properties")?.as_sequence());
    let optional =
        lists.flatten().filter(|property| property.get("type").and_then(Node::as_str) == Some(OPTIONAL));
    let group = object.api_version().split_once('/').map_or("", |(group, _)| group);
    optional.filter_map(|property| property.at(steps!("value", "manifests"))?.as_sequence()).flatten().any(
        |listed| {
            let is = |key, wanted| listed.get(key).and_then(Node::as_str).unwrap_or("") == wanted;
            is("group", group) && is("kind", object.kind()) && is("name", object.name())
        },
    )
}
