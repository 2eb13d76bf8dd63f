//! Versions that clusters may have installed although a channel does not list them: its edges name them, or its skip ranges cover them.

use std::collections::BTreeSet;

use olmkit_bundle::version::{Version, VersionRange};

use super::NextHops;
use crate::fbc::Entry;
use crate::graph::VersionRelease;

/// An installed version that is no entry of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unlisted {
    /// The bundle's name; of versions that only a `skipRange` covers, that range.
    pub(crate) label: String,
    /// The version; none when nobody knows it.
    version: Option<VersionRelease>,
}

impl Unlisted {
    /// The entry that OLM installs over it.
    pub(crate) fn next<'w>(&self, ways: &'w NextHops) -> Option<&'w str> {
        ways.next(&self.label, self.version.as_ref())
    }

    /// The version, as far as it is known.
    pub(crate) fn version(&self) -> Option<&VersionRelease> {
        self.version.as_ref()
    }
}

/// What the edges of a channel lead from without listing it: the bundles in `replaces` and `skips`, and for each `skipRange` a few
/// versions in it, none of which is an entry's.
pub(crate) fn unlisted<'v>(
    package: &str,
    entries: &[Entry<'_>],
    version: impl Fn(&str) -> Option<&'v VersionRelease>,
) -> Vec<Unlisted> {
    let listed: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let known = |name: &str| {
        version(name).cloned().or_else(|| version_in_name(package, name).map(VersionRelease::from))
    };
    let edges = entries.iter().flat_map(|entry| entry.skips.iter().chain([&entry.replaces]));
    let names: BTreeSet<&str> = edges.map(|name| name.as_str()).filter(|name| !name.is_empty()).collect();
    let mut found: Vec<Unlisted> = names
        .difference(&listed)
        .map(|name| Unlisted { label: (*name).to_owned(), version: known(name) })
        .collect();
    let versions: BTreeSet<VersionRelease> = listed.iter().filter_map(|name| known(name)).collect();
    let ranges: BTreeSet<&str> = entries.iter().map(|entry| entry.skip_range.as_str()).collect();
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        let Ok(parsed) = range.parse::<VersionRange>() else { continue };
        let examples = parsed.examples().into_iter().map(VersionRelease::from);
        found.extend(
            examples
                .filter(|example| !versions.contains(example))
                .map(|example| Unlisted { label: range.to_owned(), version: Some(example) }),
        );
    }
    found.sort_by(|a, b| (&a.version, &a.label).cmp(&(&b.version, &b.label)));
    found
}

/// Those that had a way and have none now, each label once.
pub(crate) fn stranded(
    unlisted: Vec<Unlisted>,
    had_way: impl Fn(&Unlisted) -> bool,
    has_way: impl Fn(&Unlisted) -> bool,
) -> Vec<Unlisted> {
    let mut seen = BTreeSet::new();
    unlisted
        .into_iter()
        .filter(|unlisted| had_way(unlisted) && !has_way(unlisted) && seen.insert(unlisted.label.clone()))
        .collect()
}

/// The version in a bundle's name such as `redis.v1.0.0`.
pub(crate) fn version_in_name(package: &str, name: &str) -> Option<Version> {
    let version = name.strip_prefix(package).and_then(|rest| rest.strip_prefix('.'));
    let version = version.or(name.split_once('.').map(|(_, rest)| rest))?;
    version.trim_start_matches('v').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::entries;

    #[test]
    fn names_of_edges_and_examples_of_ranges() {
        let entries = entries(
            "p.v1.0.0 p.v0.9.0
             p.v1.1.0 p.v1.0.0 p.v0.8.0 >=0.1.0_<0.3.0",
        );
        let found = unlisted("p", &entries, |_| None);
        let found: Vec<_> = found
            .iter()
            .map(|found| format!("{} {}", found.label, found.version.as_ref().unwrap()))
            .collect();
        assert_eq!(
            found,
            [
                ">=0.1.0 <0.3.0 0.1.0",
                ">=0.1.0 <0.3.0 0.1.1",
                ">=0.1.0 <0.3.0 0.2.0",
                "p.v0.8.0 0.8.0",
                "p.v0.9.0 0.9.0"
            ]
        );
    }

    #[test]
    fn versions_in_names() {
        let version = |name| version_in_name("my.operator", name).map(|version| version.to_string());
        assert_eq!(version("my.operator.v1.2.3").as_deref(), Some("1.2.3"));
        assert_eq!(version("other.v1.2.3").as_deref(), Some("1.2.3"));
        assert_eq!(version("other"), None);
    }
}
