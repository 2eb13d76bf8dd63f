//! Where a new version goes in a channel, and which edges lead to it.
//!
//! Each policy but `replaces` gives an entry its edges from nothing but the versions in the channel. So it does not matter in which
//! order versions come: a late patch finds its place, and its neighbours get the edges they would have had. An edge that is not
//! what the policy would have given is somebody's own and stays.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::Edges;
use crate::fbc::{Entry, Text};
use crate::graph::VersionRelease;

/// How the place of a new version in a channel is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// It replaces the channel's head, and must be higher.
    #[default]
    Replaces,
    /// It replaces the highest lower version, and is replaced by the lowest higher one.
    Semver,
    /// It replaces the highest patch of the previous minor version, and skips the lower patches of its own: who is on an older
    /// minor version goes from minor to minor, who is on an older patch jumps to the latest.
    SemverSkippatch,
    /// As [`Policy::Semver`], with a `skipRange` of everything lower: who is on any older version jumps to the head.
    SkipRange,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Self; 4] = [Self::Replaces, Self::Semver, Self::SemverSkippatch, Self::SkipRange];

    /// The name on the command line and in package files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replaces => "replaces",
            Self::Semver => "semver",
            Self::SemverSkippatch => "semver-skippatch",
            Self::SkipRange => "skip-range",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version policy: use `replaces`, `semver`, `semver-skippatch` or `skip-range`")]
pub struct UnknownPolicy(pub String);

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL
            .into_iter()
            .find(|policy| policy.as_str() == text)
            .ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}

/// A bundle's name and version.
#[derive(Clone, Debug)]
pub(super) struct Versioned {
    pub(super) name: String,
    pub(super) version: VersionRelease,
}

impl Versioned {
    fn minor(&self) -> (u64, u64) {
        (self.version.version.major, self.version.version.minor)
    }
}

/// What a policy says leads to an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PolicyEdges {
    replaces: String,
    skips: Vec<String>,
    skip_range: String,
}

impl Policy {
    /// Puts `new` into the entries of a channel, whose versions are `sorted`. Its own version must not be among them.
    pub(super) fn insert(
        self,
        entries: &mut Vec<Entry<'_>>,
        sorted: &[Versioned],
        new: &Versioned,
        head: Option<&str>,
    ) {
        let at = sorted.partition_point(|other| other.version < new.version);
        let mut after = sorted.to_vec();
        after.insert(at, new.clone());
        for changed in self.neighbours(&after, at) {
            let before_at = changed - 1;
            let (before, now) = (self.given(sorted, before_at), self.given(&after, changed));
            if let Some(entry) = entries.iter_mut().find(|entry| *entry.name == *after[changed].name) {
                apply_edges(entry, &before, now);
            }
        }
        let given = match self {
            Self::Replaces => {
                PolicyEdges { replaces: head.unwrap_or("").to_owned(), ..PolicyEdges::default() }
            }
            _ => self.given(&after, at),
        };
        let entry = Entry {
            name: new.name.clone().into(),
            replaces: given.replaces.into(),
            skips: given.skips.into_iter().map(Text::from).collect(),
            skip_range: given.skip_range.into(),
            ..Entry::default()
        };
        entries.insert(place(entries, sorted, at), entry);
    }

    /// Whether the policy may have given an entry its edges. Names that are not in the channel any more are not held against it.
    pub(super) fn allows(self, entry: &Entry<'_>, sorted: &[Versioned]) -> bool {
        let Some(at) = sorted.iter().position(|other| *other.name == *entry.name) else { return true };
        let is_here = |name: &str| sorted.iter().any(|other| other.name == name);
        let replaces = Some(entry.replaces.as_str()).filter(|name| is_here(name));
        if self == Self::Replaces {
            let is_lowest = at == 0;
            return entry.skips.is_empty()
                && entry.skip_range.is_empty()
                && (is_lowest || !entry.replaces.is_empty());
        }
        let given = self.given(sorted, at);
        replaces.unwrap_or_default() == given.replaces
            && *entry.skip_range == *given.skip_range
            && given.skips.iter().all(|skip| entry.skips.iter().any(|own| own.as_str() == skip))
            && entry
                .skips
                .iter()
                .all(|own| !is_here(own) || given.skips.iter().any(|skip| own.as_str() == skip))
    }

    /// The edges of an entry among sorted versions.
    fn given(self, sorted: &[Versioned], at: usize) -> PolicyEdges {
        let own = &sorted[at];
        match self {
            Self::Replaces => PolicyEdges::default(),
            Self::Semver | Self::SkipRange => PolicyEdges {
                replaces: at.checked_sub(1).map(|below| sorted[below].name.clone()).unwrap_or_default(),
                skips: Vec::new(),
                skip_range: match self {
                    Self::SkipRange => format!("<{}", own.version.version),
                    _ => String::new(),
                },
            },
            Self::SemverSkippatch => {
                let patches = sorted[..at].partition_point(|other| other.minor() < own.minor());
                PolicyEdges {
                    replaces: patches
                        .checked_sub(1)
                        .map(|below| sorted[below].name.clone())
                        .unwrap_or_default(),
                    skips: sorted[patches..at].iter().map(|patch| patch.name.clone()).collect(),
                    skip_range: String::new(),
                }
            }
        }
    }

    /// The entries whose edges may be others once the one at `at` is there: those above it that look down to it.
    fn neighbours(self, after: &[Versioned], at: usize) -> Range<usize> {
        let above = at + 1;
        match self {
            Self::Replaces => above..above,
            Self::Semver | Self::SkipRange => above..(above + 1).min(after.len()),
            Self::SemverSkippatch => {
                let own = after[at].minor();
                let next_minor =
                    after[above..].iter().map(Versioned::minor).find(|minor| *minor > own).unwrap_or(own);
                above..above + after[above..].partition_point(|other| other.minor() <= next_minor)
            }
        }
    }
}

/// Puts `new` into the entries of a channel with edges that no policy chose; its neighbours keep theirs.
pub(super) fn insert_with(entries: &mut Vec<Entry<'_>>, sorted: &[Versioned], new: &Versioned, edges: Edges) {
    let entry = Entry {
        name: new.name.clone().into(),
        replaces: edges.replaces.unwrap_or_default().into(),
        skips: edges.skips.into_iter().map(Text::from).collect(),
        skip_range: edges.skip_range.unwrap_or_default().into(),
        ..Entry::default()
    };
    let at = sorted.partition_point(|other| other.version < new.version);
    entries.insert(place(entries, sorted, at), entry);
}

/// Gives an entry the edges that are new, where it has those it had before.
fn apply_edges(entry: &mut Entry<'_>, before: &PolicyEdges, now: PolicyEdges) {
    if *entry.replaces == *before.replaces && before.replaces != now.replaces {
        entry.replaces.value = now.replaces.into();
    }
    let has = |entry: &Entry<'_>, name: &str| entry.skips.iter().any(|skip| skip.as_str() == name);
    if !before.skips.iter().all(|name| has(entry, name)) {
        return;
    }
    let as_given = entry.skips.iter().map(Text::as_str).eq(before.skips.iter().map(String::as_str));
    for (at, name) in now.skips.into_iter().enumerate() {
        if !before.skips.contains(&name) && !has(entry, &name) {
            let at = if as_given { at } else { entry.skips.len() };
            entry.skips.insert(at, name.into());
        }
    }
}

/// Where the entry stands in the list: among neighbours when the list goes up or down, else at the end.
pub(super) fn place(entries: &[Entry<'_>], sorted: &[Versioned], at: usize) -> usize {
    let names = || entries.iter().map(|entry| entry.name.as_str());
    if names().eq(sorted.iter().map(|other| other.name.as_str())) {
        at
    } else if entries.len() > 1 && names().eq(sorted.iter().rev().map(|other| other.name.as_str())) {
        entries.len() - at
    } else {
        entries.len()
    }
}

#[cfg(test)]
mod tests {
    use olmkit_bundle::version::Version;
    use proptest::prelude::*;

    use super::*;
    use crate::graph::Channel;

    fn versioned(version: &str) -> Versioned {
        Versioned {
            name: format!("v{version}"),
            version: VersionRelease::from(version.parse::<Version>().unwrap()),
        }
    }

    /// The channel after versions have come in this order, as a table.
    fn channel(policy: Policy, versions: &[&str]) -> Vec<Entry<'static>> {
        let mut entries: Vec<Entry<'static>> = Vec::new();
        let mut sorted: Vec<Versioned> = Vec::new();
        for version in versions {
            let new = versioned(version);
            let head = Channel::link("c", &entries, |_| None).ok().map(|channel| channel.head().name.clone());
            policy.insert(&mut entries, &sorted, &new, head.as_deref());
            sorted.push(new);
            sorted.sort_by(|a, b| a.version.cmp(&b.version));
        }
        entries
    }

    fn table(entries: &[Entry<'_>]) -> String {
        let line = |entry: &Entry<'_>| {
            let skips: Vec<_> = entry.skips.iter().map(|skip| skip.as_str()).collect();
            let line =
                format!("{} {} [{}] {}", entry.name, entry.replaces, skips.join(" "), entry.skip_range);
            line.trim_end().to_owned()
        };
        entries.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn replaces_makes_a_chain() {
        insta::assert_snapshot!(table(&channel(Policy::Replaces, &["0.1.0", "0.2.0", "0.2.1"])), @r"
        v0.1.0  []
        v0.2.0 v0.1.0 []
        v0.2.1 v0.2.0 []
        ");
    }

    #[test]
    fn skippatch_goes_from_minor_to_minor() {
        let versions = ["0.1.0", "0.2.0", "0.2.1", "0.2.2", "0.4.0", "1.0.0"];
        insta::assert_snapshot!(table(&channel(Policy::SemverSkippatch, &versions)), @r"
        v0.1.0  []
        v0.2.0 v0.1.0 []
        v0.2.1 v0.1.0 [v0.2.0]
        v0.2.2 v0.1.0 [v0.2.0 v0.2.1]
        v0.4.0 v0.2.2 []
        v1.0.0 v0.4.0 []
        ");
    }

    #[test]
    fn a_late_patch_is_what_the_next_minor_replaces() {
        insta::assert_snapshot!(table(&channel(Policy::SemverSkippatch, &["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.2.1"])), @r"
        v0.1.0  []
        v0.2.0 v0.1.0 []
        v0.2.1 v0.1.0 [v0.2.0]
        v0.3.0 v0.2.1 []
        v0.3.1 v0.2.1 [v0.3.0]
        ");
    }

    #[test]
    fn semver_and_skip_range() {
        insta::assert_snapshot!(table(&channel(Policy::Semver, &["0.1.0", "0.3.0", "0.2.0"])), @r"
        v0.1.0  []
        v0.2.0 v0.1.0 []
        v0.3.0 v0.2.0 []
        ");
        insta::assert_snapshot!(table(&channel(Policy::SkipRange, &["0.1.0", "0.2.0"])), @r"
        v0.1.0  [] <0.1.0
        v0.2.0 v0.1.0 [] <0.2.0
        ");
    }

    #[test]
    fn edges_of_others_stay() {
        let mut entries = channel(Policy::Semver, &["0.1.0", "0.2.0", "0.3.0"]);
        entries[2].replaces = "v0.1.0".into();
        entries[2].skips = vec!["v0.2.0".into()];
        let sorted: Vec<_> = ["0.1.0", "0.2.0", "0.3.0"].map(versioned).into();
        Policy::Semver.insert(&mut entries, &sorted, &versioned("0.2.5"), None);
        insta::assert_snapshot!(table(&entries), @r"
        v0.1.0  []
        v0.2.0 v0.1.0 []
        v0.2.5 v0.2.0 []
        v0.3.0 v0.1.0 [v0.2.0]
        ");
    }

    #[test]
    fn lists_that_go_down_keep_going_down() {
        let mut entries = channel(Policy::Semver, &["0.1.0", "0.3.0"]);
        entries.reverse();
        Policy::Semver.insert(&mut entries, &["0.1.0", "0.3.0"].map(versioned), &versioned("0.2.0"), None);
        insta::assert_snapshot!(table(&entries), @r"
        v0.3.0 v0.2.0 []
        v0.2.0 v0.1.0 []
        v0.1.0  []
        ");
    }

    #[test]
    fn names_of_policies() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert!("Semver".parse::<Policy>().is_err());
    }

    proptest! {
        /// Whatever the order, the channel is the same, sound, and every version reaches the head.
        #[test]
        fn the_order_of_versions_does_not_matter(
            versions in prop::collection::btree_set((0..2u64, 0..4u64, 0..4u64), 1..9),
            seed in any::<u64>(),
            policy in prop::sample::select(vec![Policy::Semver, Policy::SemverSkippatch, Policy::SkipRange]),
        ) {
            let sorted: Vec<String> = versions.iter().map(|(a, b, c)| format!("{a}.{b}.{c}")).collect();
            let mut shuffled: Vec<&str> = sorted.iter().map(String::as_str).collect();
            let mut state = seed;
            for at in (1..shuffled.len()).rev() {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                shuffled.swap(at, (state >> 33) as usize % (at + 1));
            }
            let in_order: Vec<&str> = sorted.iter().map(String::as_str).collect();
            let expected = channel(policy, &in_order);
            prop_assert_eq!(table(&channel(policy, &shuffled)), table(&expected));
            let linked = Channel::link("c", &expected, |_| None).unwrap();
            prop_assert_eq!(&linked.head().name, &format!("v{}", sorted.last().unwrap()));
            let about = |name: &str| crate::path::About {
                version: Some(VersionRelease::from(name[1..].parse::<Version>().unwrap())),
                deprecated: false,
            };
            let ways = crate::path::NextHops::of(&expected, about, crate::path::Rules::V0).unwrap();
            for version in &sorted {
                let mut at = format!("v{version}");
                while let Some(next) = ways.next(&at, None) {
                    at = next.to_owned();
                }
                prop_assert_eq!(at.as_str(), ways.head());
            }
        }
    }
}
