//! Which packages of a catalog others need: those that have bundles which meet the requirements of theirs.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value as Json;

use super::{Facts, Gvk, Requirement};
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
    let providers = Providers::of(catalog, &facts);
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

/// Bundles by what they provide.
#[derive(Default)]
struct Providers<'f> {
    by_api: HashMap<&'f Gvk, Vec<usize>>,
    by_package: HashMap<&'f str, Vec<usize>>,
    by_label: HashMap<&'f str, Vec<usize>>,
}

impl<'f> Providers<'f> {
    fn of(catalog: &'f fbc::Catalog<'_>, facts: &'f [Facts<'_>]) -> Self {
        let mut providers = Self::default();
        for (at, (bundle, facts)) in catalog.bundles.iter().zip(facts).enumerate() {
            facts.gvks.iter().for_each(|gvk| providers.by_api.entry(gvk).or_default().push(at));
            facts.labels.iter().for_each(|label| providers.by_label.entry(label).or_default().push(at));
            let own = std::iter::once(bundle.package.as_str());
            let names: BTreeSet<&str> =
                own.chain(facts.packages.iter().map(|(name, _)| name.as_str())).collect();
            names.into_iter().for_each(|name| providers.by_package.entry(name).or_default().push(at));
        }
        providers
    }

    /// The bundles that may meet a requirement; none when any may.
    fn candidates(&self, requirement: &Requirement) -> Option<&[usize]> {
        match requirement {
            Requirement::Api(gvk) => Some(self.by_api.get(gvk).map_or(&[], Vec::as_slice)),
            Requirement::Package { name, .. } => {
                Some(self.by_package.get(name.as_str()).map_or(&[], Vec::as_slice))
            }
            Requirement::Label(label) => Some(self.by_label.get(label.as_str()).map_or(&[], Vec::as_slice)),
            _ => None,
        }
    }
}
