//! What the bundles of a catalog require, held against all that the same catalog has.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::Unsatisfied;
use super::namespace::Facts;
use super::requirement::{Gvk, Requirement};
use crate::fbc;

/// More looks at bundles than any real catalog needs; beyond them requirements count as met.
const LOOKS: usize = 1_000_000;

/// The requirements of a catalog's bundles that none of its bundles meets, whatever their channels and order.
pub(super) fn unsatisfied(catalog: &fbc::Catalog<'_>) -> Vec<Unsatisfied> {
    let mut demand = Demand { looks_left: LOOKS, ..Demand::default() };
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
        let Wanted { words, is_met, .. } = &demand.wanted[wanted];
        let why = format!("a bundle that {words}, and there is none in the catalog");
        (!is_met).then_some(Unsatisfied { bundle, property, why })
    });
    found.collect()
}

/// Each requirement once, and by what a bundle must provide to be looked at for it. Of the bundles nothing is kept: there are many.
#[derive(Default)]
struct Demand {
    wanted: Vec<Wanted>,
    by_words: HashMap<String, usize>,
    by_api: HashMap<Gvk, Vec<usize>>,
    by_package: HashMap<String, Vec<usize>>,
    by_label: HashMap<String, Vec<usize>>,
    /// Those that any bundle may meet.
    by_anybody: Vec<usize>,
    unmet: usize,
    looks_left: usize,
}

struct Wanted {
    requirement: Requirement,
    words: String,
    is_met: bool,
}

impl Demand {
    /// The number of a requirement.
    fn add(&mut self, requirement: Requirement) -> usize {
        let words = requirement.to_string();
        if let Some(known) = self.by_words.get(&words) {
            return *known;
        }
        let number = self.wanted.len();
        if !self.expect(&requirement, number) {
            self.by_anybody.push(number);
        }
        self.by_words.insert(words.clone(), number);
        self.wanted.push(Wanted { requirement, words, is_met: false });
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
        let packages = facts.packages.iter().map(|(package, _)| package.as_str());
        let packages = std::iter::once(&*bundle.package).chain(packages);
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
            let Some(left) = self.looks_left.checked_sub(1) else {
                self.unmet = 0;
                return;
            };
            self.looks_left = left;
            if wanted.requirement.holds(&facts, &bundle.package).unwrap_or(true) {
                wanted.is_met = true;
                self.unmet -= 1;
            }
        }
    }
}
