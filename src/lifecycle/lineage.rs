//! Which versions belong to a Subscription: those that its status names, and what these replace.
//!
//! During an upgrade the status names the new version alone, from the moment that its ClusterServiceVersion exists, while the old one is
//! `Replacing` and serves until the new one has succeeded. Every question whether a Subscription has a version is answered here.

use std::collections::BTreeSet;

/// The names of versions and of what they replace, each once, a version before what it replaces. `replaces` says what a version
/// replaces; none for one that does not exist.
pub(super) fn lineage<'n>(
    named: impl IntoIterator<Item = &'n str>,
    replaces: impl Fn(&str) -> Option<&'n str>,
) -> Vec<&'n str> {
    let (mut names, mut known) = (Vec::new(), BTreeSet::new());
    for name in named {
        let mut next = Some(name);
        while let Some(name) = next.filter(|name| !name.is_empty() && known.insert(*name)) {
            names.push(name);
            next = replaces(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_replaced_belongs_to_it() {
        let replaces = |name: &str| match name {
            "v3" => Some("v2"),
            "v2" => Some("v1"),
            "round" => Some("round"),
            _ => None,
        };
        assert_eq!(lineage(["v3", "v2"], replaces), ["v3", "v2", "v1"]);
        assert_eq!(lineage(["", "v1"], replaces), ["v1"]);
        assert_eq!(lineage(["round"], replaces), ["round"]);
    }
}
