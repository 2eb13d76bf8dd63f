//! Which bundles provide what others require.

use std::collections::{BTreeSet, HashMap};

use super::{Facts, Gvk, Requirement};

/// Bundles by what they provide.
#[derive(Default)]
pub(crate) struct Providers<'f> {
    by_api: HashMap<&'f Gvk, Vec<usize>>,
    by_package: HashMap<&'f str, Vec<usize>>,
    by_label: HashMap<&'f str, Vec<usize>>,
}

impl<'f> Providers<'f> {
    /// Of bundles with their packages; numbers are their places.
    pub(crate) fn of(bundles: impl Iterator<Item = (&'f str, &'f Facts<'f>)>) -> Self {
        let mut providers = Self::default();
        for (at, (package, facts)) in bundles.enumerate() {
            facts.gvks.iter().for_each(|gvk| providers.by_api.entry(gvk).or_default().push(at));
            facts.labels.iter().for_each(|label| providers.by_label.entry(label).or_default().push(at));
            let own = std::iter::once(package);
            let names: BTreeSet<&str> =
                own.chain(facts.packages.iter().map(|(name, _)| name.as_str())).collect();
            names.into_iter().for_each(|name| providers.by_package.entry(name).or_default().push(at));
        }
        providers
    }

    /// The bundles that may meet a requirement; none when any may.
    pub(crate) fn candidates(&self, requirement: &Requirement) -> Option<&[usize]> {
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
