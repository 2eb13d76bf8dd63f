//! What other packages lose by an edit: bundles that they require and that are gone.

use std::collections::{BTreeMap, BTreeSet};

use super::backticked;
use crate::fbc::Catalog;
use crate::load::CatalogFiles;
use crate::requirements;

/// The bundles that could be installed before a change and lack a requirement after it, in a sentence for each requirement.
pub(super) fn newly_unmet(before: &Catalog<'_>, after: &Catalog<'_>) -> Vec<String> {
    let known: BTreeSet<(String, String)> = unmet(before).into_iter().collect();
    let mut by_requirement: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (bundle, requirement) in unmet(after) {
        if !known.contains(&(bundle.clone(), requirement.clone())) {
            by_requirement.entry(requirement).or_default().push(bundle);
        }
    }
    let sentence = |(requirement, mut bundles): (String, Vec<String>)| {
        bundles.sort();
        bundles.dedup();
        let they = if bundles.len() == 1 { "it requires" } else { "they require" };
        format!("{} can no longer be installed: {they} {requirement}", backticked(&bundles))
    };
    by_requirement.into_iter().map(sentence).collect()
}

/// The bundles whose requirements no bundle meets, and these.
fn unmet(catalog: &Catalog<'_>) -> Vec<(String, String)> {
    let missing = requirements::unmet(catalog).into_iter();
    missing
        .filter_map(|missing| Some((catalog.bundles.get(missing.bundle)?.name.to_string(), missing.why)))
        .collect()
}

/// The API groups that bundles of a package provide.
pub fn provided_groups(files: &CatalogFiles, package: &str) -> Vec<String> {
    let catalog = Catalog::parse(files);
    let bundles = catalog.bundles.iter().filter(|bundle| *bundle.package == *package);
    let apis = bundles.flat_map(|bundle| &bundle.properties).filter(|property| *property.kind == *"olm.gvk");
    let groups: BTreeSet<String> = apis
        .filter_map(|api| Some(api.value.as_ref()?.to_json().get("group")?.as_str()?.to_owned()))
        .filter(|group| !group.is_empty())
        .collect();
    groups.into_iter().collect()
}
