use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::csv;
use crate::finding::Findings;
use crate::kinds;
use crate::parse::Object;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::steps;

rule!("manifest-duplicate", Warning, INSTALL, "manifest_duplicate.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let mut seen: BTreeMap<(&str, &str, &str), Object<'_, '_>> = BTreeMap::new();
    for object in facts.objects() {
        // Two of these are `csv-multiple` and `crd-duplicate`.
        let is_other = !matches!(object.kind(), csv::KIND | "CustomResourceDefinition");
        if !is_other || kinds::supported(object.kind()).is_none() || object.name().is_empty() {
            continue;
        }
        let group = object.api_version().rsplit_once('/').map_or("", |(group, _)| group);
        match seen.entry((group, object.kind(), object.name())) {
            Entry::Vacant(entry) => drop(entry.insert(object)),
            Entry::Occupied(first) => {
                let name = steps!("metadata", "name");
                let message = format!("a second `{}` is in the bundle", object.id().replace('`', "'"));
                let finding = object.finding(&RULE.code, message, name).and(first.get().place(name));
                findings.push(finding.help("remove one of them, or give it another name"));
            }
        }
    }
}
