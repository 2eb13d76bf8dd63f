//! Which bundle OLM would install over which entry of a channel.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use olmkit_bundle::version::{Version, VersionRange, precedence};

use super::claim::FirstClaim;
use crate::fbc::{self, schema};
use crate::graph::{GraphError, Links, VersionRelease, chain};
use crate::index;

/// OLM version whose rules apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// OLM v0: the entry nearest to the head of the chain of `replaces`.
    #[default]
    V0,
    /// OLM v1: the highest version, deprecated ones last.
    V1,
}

/// What has to be known of an entry's bundle.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Its version.
    pub version: Option<VersionRelease>,
    /// Whether it is deprecated, which only v1 asks.
    pub deprecated: bool,
}

impl About {
    /// What a catalog says of the bundles of a package, by their names.
    pub(crate) fn in_package<'p>(package: &'p index::Package<'_, '_>) -> impl Fn(&str) -> Self + 'p {
        let deprecated: BTreeSet<&str> = package.deprecated(schema::BUNDLE).map(|(name, _)| name).collect();
        move |name| Self { version: package.version(name).cloned(), deprecated: deprecated.contains(name) }
    }
}

/// What comes next after each entry of a channel.
#[derive(Clone, Debug)]
pub struct NextHops {
    entries: Vec<Entry>,
    pub(super) names: HashMap<String, usize>,
    /// The entries that may be next, first choice first.
    order: Vec<usize>,
    /// What comes after each entry; none where OLM stays.
    pub(super) next: Vec<Option<usize>>,
    pub(super) head: usize,
    rules: Rules,
}

#[derive(Clone, Debug)]
struct Entry {
    wire: Edges,
    about: About,
}

impl NextHops {
    /// Finds out what comes next after each entry. Unlike [`crate::graph::Channel::link`] this takes stranded entries, as OLM does.
    ///
    /// `about` knows the bundles by name.
    ///
    /// # Errors
    /// Under v0, when there is no head, or several, or `replaces` is a cycle.
    pub fn of<'e, 'a: 'e>(
        entries: impl IntoIterator<Item = &'e fbc::Entry<'a>>,
        about: impl Fn(&str) -> About,
        rules: Rules,
    ) -> Result<Self, GraphError> {
        let entries: Vec<Entry> = entries
            .into_iter()
            .map(|entry| Entry { wire: Edges::of(entry), about: about(&entry.name) })
            .collect();
        if entries.is_empty() {
            return Err(GraphError::Empty);
        }
        let mut names = HashMap::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            names.entry(entry.wire.name.clone()).or_insert(at);
        }
        let order = match rules {
            Rules::V0 => {
                let skips: Vec<Vec<&str>> = entries
                    .iter()
                    .map(|entry| entry.wire.skips.iter().map(String::as_str).collect())
                    .collect();
                let links = entries.iter().zip(&skips).map(|(Entry { wire, .. }, skips)| Links {
                    name: &wire.name,
                    replaces: wire.replaces.as_deref().unwrap_or(""),
                    skips,
                });
                chain(&links.collect::<Vec<_>>())?
            }
            Rules::V1 => by_version(&entries),
        };
        // A head is never skipped, so the chain is not empty.
        let head = order.first().copied().unwrap_or(0);
        let next = vec![None; entries.len()];
        let mut ways = Self { entries, names, order, next, head, rules };
        ways.find_next();
        Ok(ways)
    }

    /// The channel's head.
    pub fn head(&self) -> &str {
        self.name(self.head)
    }

    /// The bundle that OLM would install over an installed one, which need not be in the channel.
    pub fn next(&self, installed: &str, version: Option<&VersionRelease>) -> Option<&str> {
        let next = match self.names.get(installed) {
            Some(entry) => self.next[*entry],
            None => self.next_of(installed, version),
        };
        next.map(|entry| self.name(entry))
    }

    /// The entries from which no way leads to the head, by their numbers.
    pub(crate) fn unreachable(&self) -> Vec<usize> {
        let reaches = self.reaches();
        (0..self.entries.len())
            .filter(|at| !reaches[*at] && self.names.get(self.name(*at)) == Some(at))
            .collect()
    }

    pub(super) fn name(&self, entry: usize) -> &str {
        &self.entries[entry].wire.name
    }

    /// For every entry the first in the order that may follow it. Edges are looked up by name; ranges claim the matching_ranges of
    /// the sorted versions that nobody before them has claimed. So the work does not grow with the square of the entries.
    fn find_next(&mut self) {
        let mut by_edge: HashMap<&str, usize> = HashMap::new();
        for (place, entry) in self.order.iter().map(|at| &self.entries[*at]).enumerate() {
            for name in entry.wire.replaces.iter().chain(&entry.wire.skips) {
                by_edge.entry(name).or_insert(place);
            }
        }
        let mut versions: Vec<(&Version, usize)> = self
            .entries
            .iter()
            .enumerate()
            .filter_map(|(at, entry)| Some((&entry.about.version.as_ref()?.version, at)))
            .collect();
        versions.sort_by(|a, b| precedence(a.0, b.0));
        let sorted: Vec<Version> = versions.iter().map(|(version, _)| (*version).clone()).collect();
        let mut by_range = FirstClaim::new(versions.len());
        for (place, entry) in self.order.iter().map(|at| &self.entries[*at]).enumerate() {
            for stretch in entry.wire.skip_range.iter().flat_map(|range| range.matching_ranges(&sorted)) {
                by_range.claim(stretch, place);
            }
        }
        let mut first: Vec<Option<usize>> =
            self.entries.iter().map(|entry| by_edge.get(entry.wire.name.as_str()).copied()).collect();
        for (at, (_, entry)) in versions.iter().enumerate() {
            first[*entry] = [first[*entry], by_range.of(at)].into_iter().flatten().min();
        }
        let mut stays = vec![None; self.entries.len()];
        if self.rules == Rules::V1 {
            // The installed version is always among those that may follow.
            for (place, at) in self.order.iter().enumerate() {
                stays[*at] = Some(place);
            }
        }
        self.next = (0..self.entries.len())
            .map(|entry| {
                let place = first[entry].filter(|place| stays[entry].is_none_or(|own| *place < own))?;
                Some(self.order[place]).filter(|next| *next != entry)
            })
            .collect();
    }

    /// What comes after a bundle that is not in the channel.
    pub(super) fn next_of(&self, name: &str, version: Option<&VersionRelease>) -> Option<usize> {
        let as_v1 = |version: &VersionRelease| version.clone().with_build_as_release();
        let installed = version.map(as_v1).filter(|_| self.rules == Rules::V1);
        self.order.iter().copied().find(|at| {
            let Entry { wire, about } = &self.entries[*at];
            wire.replaces.as_deref() == Some(name)
                || wire.skips.iter().any(|skip| skip == name)
                || version.is_some_and(|version| {
                    wire.skip_range.as_ref().is_some_and(|range| range.contains(&version.version))
                })
                || installed.is_some() && about.version.as_ref().map(as_v1) == installed
        })
    }

    /// The entries from one on, up to the head, to where OLM stays, or to where it has been.
    pub(super) fn follow(&self, first: Option<usize>) -> impl Iterator<Item = usize> {
        let mut left = self.entries.len();
        std::iter::successors(first, move |at| {
            left = left.checked_sub(1)?;
            self.next[*at].filter(|_| *at != self.head)
        })
    }

    /// For every entry whether its way ends at the head.
    pub(super) fn reaches(&self) -> Vec<bool> {
        let mut known: Vec<Option<bool>> = vec![None; self.entries.len()];
        known[self.head] = Some(true);
        for entry in 0..self.entries.len() {
            let mut way = Vec::new();
            let mut at = entry;
            let answer = loop {
                if let Some(answer) = known[at] {
                    break answer;
                }
                // Until it is known better: who comes back here is a cycle.
                known[at] = Some(false);
                way.push(at);
                match self.next[at] {
                    Some(next) => at = next,
                    None => break false,
                }
            };
            for at in way {
                known[at] = Some(answer);
            }
        }
        known.into_iter().map(|answer| answer == Some(true)).collect()
    }

    /// The entries by version and name.
    pub(super) fn by_version(&self) -> Vec<usize> {
        let mut entries: Vec<usize> =
            (0..self.entries.len()).filter(|at| self.names[self.name(*at)] == *at).collect();
        entries.sort_by(|a, b| {
            let version = |at: usize| self.entries[at].about.version.as_ref();
            version(*a).cmp(&version(*b)).then_with(|| self.name(*a).cmp(self.name(*b)))
        });
        entries
    }
}

/// The edges of an entry as OLM reads them: an invalid range is ignored.
#[derive(Clone, Debug)]
struct Edges {
    name: String,
    replaces: Option<String>,
    skips: Vec<String>,
    skip_range: Option<VersionRange>,
}

impl Edges {
    fn of(entry: &fbc::Entry<'_>) -> Self {
        Self {
            name: entry.name.to_string(),
            replaces: (!entry.replaces.is_empty()).then(|| entry.replaces.to_string()),
            skips: entry.skips.iter().map(ToString::to_string).collect(),
            skip_range: entry.skip_range.parse().ok(),
        }
    }
}

/// OLM v1's order: the highest version first, deprecated ones behind all others.
fn by_version(entries: &[Entry]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_cached_key(|at| {
        let about = &entries[*at].about;
        (about.deprecated, Reverse(about.version.clone().map(VersionRelease::with_build_as_release)))
    });
    order
}
