//! Which Subscription and which version belong together.

use super::doc::Doc;
use super::observation::Observation;
use crate::lifecycle::lineage::lineage;

/// A version that is Replacing for one that a Subscription knows, and that may be gone.
pub(super) fn left_behind<'o>(seen: &'o Observation, subscription: Doc<'o>) -> Option<Doc<'o>> {
    let known = ["currentCSV", "installedCSV"].map(|field| subscription.text(&format!("/status/{field}")));
    let mut all = seen.within("ClusterServiceVersion", subscription.namespace());
    all.find(|csv| {
        let mut words = csv.text("/status/message").split_whitespace();
        csv.text("/status/phase") == "Replacing"
            && !csv.is_copy()
            && words.any(|word| known.contains(&word.trim_end_matches(['.', ','])))
    })
}

/// The names of the versions of a Subscription: those that it names, and what they replace.
pub(super) fn versions_of<'o>(seen: &'o Observation, subscription: Doc<'o>) -> Vec<&'o str> {
    let named = ["currentCSV", "installedCSV"].map(|field| subscription.text(&format!("/status/{field}")));
    lineage(named, |name| {
        Some(seen.get("ClusterServiceVersion", subscription.namespace(), name)?.text("/spec/replaces"))
    })
}

/// The Subscription of a version.
pub(super) fn subscription_of<'o>(seen: &'o Observation, csv: Doc<'o>) -> Option<Doc<'o>> {
    let mut all = seen.within("Subscription", csv.namespace());
    all.find(|one| versions_of(seen, *one).contains(&csv.name()))
}

/// The CRDs that a version owns.
pub(super) fn owned_crds<'o>(csv: Doc<'o>) -> impl Iterator<Item = &'o str> {
    csv.list("/spec/customresourcedefinitions/owned").filter_map(|one| one["name"].as_str())
}

/// How long ago a version was created at most that a Subscription, read in the same look, may not know yet.
const UNKNOWN_YET: i64 = 120_000;

/// Whether another version of the namespace has just replaced this one. What is missing then was upgraded and not lost: the
/// Subscription was read before OLM had written that down.
pub(super) fn is_replaced(seen: &Observation, namespace: &str, name: &str) -> bool {
    let mut all = seen.within("ClusterServiceVersion", namespace);
    all.any(|other| {
        !other.is_copy() && other.text("/spec/replaces") == name && seen.age(other.created()) < UNKNOWN_YET
    })
}
