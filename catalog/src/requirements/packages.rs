//! Which packages of a catalog others need: those that have bundles which meet the requirements of theirs.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::{Facts, Providers, Requirement};
use crate::fbc;

/// Adds to kept bundles every package that one of them requires, and so on. Gives the packages that were added.
///
/// Where several packages meet a requirement that no kept bundle meets, all of them are added: which one OLM takes depends on the
/// namespace.
pub(crate) fn required_packages<'c>(
    catalog: &'c fbc::Catalog<'_>,
    is_kept: impl Fn(&fbc::Bundle<'_>) -> bool,
) -> BTreeSet<&'c str> {
    let facts: Vec<Facts<'_>> = catalog.bundles.iter().map(Facts::of_bundle).collect();
    let names = catalog.bundles.iter().map(|bundle| bundle.package.as_str());
    let providers = Providers::of(names.zip(&facts));
    let mut kept: Vec<bool> = catalog.bundles.iter().map(&is_kept).collect();
    let mut open: Vec<usize> = (0..kept.len()).filter(|at| kept[*at]).collect();
    let mut added = BTreeSet::new();
    while let Some(at) = open.pop() {
        for requirement in requirements(&catalog.bundles[at]) {
            let candidates = providers.candidates(&requirement);
            let meets =
                |at: &usize| requirement.holds(&facts[*at], &catalog.bundles[*at].package).unwrap_or(false);
            let meeting: Vec<usize> = match &candidates {
                Some(some) => some.iter().copied().filter(meets).collect(),
                None => (0..facts.len()).filter(meets).collect(),
            };
            if meeting.iter().any(|at| kept[*at]) {
                continue;
            }
            let packages: BTreeSet<&str> =
                meeting.iter().map(|at| catalog.bundles[*at].package.as_str()).collect();
            for (other, bundle) in catalog.bundles.iter().enumerate() {
                if packages.contains(bundle.package.as_str()) && !kept[other] {
                    kept[other] = true;
                    open.push(other);
                }
            }
            added.extend(packages);
        }
    }
    added
}

fn requirements<'b>(bundle: &'b fbc::Bundle<'_>) -> impl Iterator<Item = Requirement> + 'b {
    let may_require = |kind: &str| kind.ends_with(".required") || kind == "olm.constraint";
    let properties = bundle.properties.iter().filter(move |property| may_require(&property.kind));
    properties.filter_map(|property| {
        let json = property.value.as_ref().map_or(Json::Null, fbc::Value::to_json);
        Requirement::of(&property.kind, &json).ok().flatten()
    })
}
