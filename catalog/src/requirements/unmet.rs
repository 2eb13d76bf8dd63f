//! What the bundles of a catalog require, held against all that the same catalog has.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::{Facts, Gvk, Needed, Requirement};
use crate::fbc;

/// More evaluations than any real catalog needs; beyond them requirements count as met.
const MAX_EVALUATIONS: usize = 1_000_000;

/// A requirement that nothing in a catalog meets.
#[derive(Debug)]
pub(crate) struct Unmet {
    /// The bundle, by its number in the catalog.
    pub(crate) bundle: usize,
    /// Which of its properties says so.
    pub(crate) property: usize,
    /// What it requires, in words.
    pub(crate) why: String,
}

/// The requirements of a catalog's bundles that none of its bundles meets, whatever their channels and order. Those that cannot be
/// read are left out.
pub(crate) fn unmet(catalog: &fbc::Catalog<'_>) -> Vec<Unmet> {
    unmet_in(catalog, MAX_EVALUATIONS)
}

fn unmet_in(catalog: &fbc::Catalog<'_>, evaluations: usize) -> Vec<Unmet> {
    let mut demand = Demand { evaluations_left: evaluations, ..Demand::default() };
    let mut asked = Vec::new();
    for (bundle, blob) in catalog.bundles.iter().enumerate() {
        for (property, value) in blob.properties.iter().enumerate() {
            if value.kind.ends_with(".required") || *value.kind == *"olm.constraint" {
                let json = value.value.as_ref().map_or(Json::Null, fbc::Value::to_json);
                let requirement = Requirement::of(&value.kind, &json).ok().flatten();
                asked.extend(requirement.map(|requirement| (bundle, property, demand.add(requirement))));
            }
        }
    }
    for bundle in &catalog.bundles {
        if demand.unmet == 0 {
            return Vec::new();
        }
        demand.offer(bundle);
    }
    let found = asked.into_iter().filter_map(|(bundle, property, wanted)| {
        let Wanted { requirement, is_met } = &demand.wanted[wanted];
        let why = format!("{}, which the catalog does not have", Needed(requirement));
        (!is_met).then_some(Unmet { bundle, property, why })
    });
    found.collect()
}

/// Each requirement once, and by what a bundle must provide to be looked at for it. Of the bundles nothing is kept: there are many.
#[derive(Default)]
struct Demand {
    wanted: Vec<Wanted>,
    known: HashMap<Requirement, usize>,
    by_api: HashMap<Gvk, Vec<usize>>,
    by_package: HashMap<String, Vec<usize>>,
    by_label: HashMap<String, Vec<usize>>,
    /// Those that any bundle may meet.
    by_anybody: Vec<usize>,
    unmet: usize,
    evaluations_left: usize,
}

struct Wanted {
    requirement: Requirement,
    is_met: bool,
}

impl Demand {
    /// The number of a requirement.
    fn add(&mut self, requirement: Requirement) -> usize {
        if let Some(known) = self.known.get(&requirement) {
            return *known;
        }
        let number = self.wanted.len();
        if !self.expect(&requirement, number) {
            self.by_anybody.push(number);
        }
        self.known.insert(requirement.clone(), number);
        self.wanted.push(Wanted { requirement, is_met: false });
        self.unmet += 1;
        number
    }

    /// Notes what a bundle that meets a requirement provides, and says whether all such bundles are known by it.
    fn expect(&mut self, requirement: &Requirement, number: usize) -> bool {
        match requirement {
            Requirement::Api(gvk) => self.by_api.entry(gvk.clone()).or_default().push(number),
            Requirement::Package { name, .. } => {
                self.by_package.entry(name.clone()).or_default().push(number);
            }
            Requirement::Label(label) => self.by_label.entry(label.clone()).or_default().push(number),
            Requirement::All(parts) => return parts.iter().any(|part| self.expect(part, number)),
            Requirement::Any(parts) => return parts.iter().all(|part| self.expect(part, number)),
            Requirement::Not(_) | Requirement::Holds { .. } => return false,
        }
        true
    }

    /// Looks whether a bundle meets requirements that nobody met before.
    fn offer(&mut self, bundle: &fbc::Bundle<'_>) {
        let facts = Facts::of_bundle(bundle);
        // Its property says the same, in a sound catalog.
        let others = facts.packages.iter().map(|(package, _)| package.as_str());
        let packages =
            std::iter::once(&*bundle.package).chain(others.filter(|other| *other != &*bundle.package));
        let by_package = packages.filter_map(|package| self.by_package.get(package));
        let by_api = facts.gvks.iter().filter_map(|gvk| self.by_api.get(gvk));
        let by_label = facts.labels.iter().filter_map(|label| self.by_label.get(label));
        let numbers = by_package.chain(by_api).chain(by_label).chain([&self.by_anybody]).flatten();
        for number in numbers {
            let wanted = &mut self.wanted[*number];
            if wanted.is_met {
                continue;
            }
            // What cannot be found out here is not held against anybody.
            let may_look = self.evaluations_left > 0;
            self.evaluations_left = self.evaluations_left.saturating_sub(1);
            if !may_look || wanted.requirement.holds(&facts, &bundle.package).unwrap_or(true) {
                wanted.is_met = true;
                self.unmet -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::CatalogFiles;

    /// Both are shown as `K` (a/b/c).
    #[test]
    fn a_requirement_that_reads_like_another_is_not_met_by_it() {
        let files = CatalogFiles::from_text(
            "catalog.yaml",
            r#"
{schema: olm.bundle, package: a, name: a.v1, properties: [
  {type: olm.gvk.required, value: {group: a, version: b/c, kind: K}},
  {type: olm.gvk.required, value: {group: a/b, version: c, kind: K}}]}
---
{schema: olm.bundle, package: b, name: b.v1, properties: [{type: olm.gvk, value: {group: a, version: b/c, kind: K}}]}"#,
        );
        let found = unmet(&fbc::Catalog::parse(&files));
        assert_eq!(found.iter().map(|missing| missing.property).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn what_is_not_looked_at_counts_as_met() {
        let files = CatalogFiles::from_text(
            "catalog.yaml",
            r#"
{schema: olm.bundle, package: a, name: a.v1, properties: [
  {type: olm.constraint, value: {cel: {rule: "false"}}},
  {type: olm.constraint, value: {any: {constraints: [{package: {packageName: c, versionRange: ">=1.0.0"}}, {cel: {rule: "1 == 2"}}]}}},
  {type: olm.package.required, value: {packageName: c, versionRange: ">=1.0.0"}},
  {type: olm.package.required, value: {packageName: b, versionRange: ">=2.0.0"}}]}
---
{schema: olm.bundle, package: b, name: b.v1, properties: [{type: olm.package, value: {packageName: b, version: 1.0.0}}]}"#,
        );
        let catalog = fbc::Catalog::parse(&files);
        let properties = |evaluations| {
            let found = unmet_in(&catalog, evaluations);
            found.iter().map(|missing| missing.property).collect::<Vec<_>>()
        };
        assert_eq!(properties(MAX_EVALUATIONS), [0, 1, 2, 3]);
        // Two for each bundle, and one for the package that is there.
        assert_eq!(properties(5), [0, 1, 2, 3]);
        assert_eq!(properties(4).len(), 3);
        // Nobody is of the package that is not there: nobody has to be looked at.
        assert_eq!(properties(0), [2]);
    }
}
