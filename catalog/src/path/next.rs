//! Which bundle OLM would install over which entry of a channel.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::claim::FirstRange;
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
    /// The first place in the order with an edge from a bundle, by its name.
    by_edge: HashMap<String, usize>,
    /// The first place in the order with a range that has a version.
    by_range: FirstRange,
    /// Under v1 the first place in the order of a version and release.
    by_release: BTreeMap<VersionRelease, usize>,
    /// What comes after each entry; none where OLM stays.
    pub(super) next: Vec<Option<usize>>,
    /// Where the upgrades from each entry end.
    ends: Vec<End>,
    pub(super) head: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    about: About,
}

/// Where upgrades end, and after how many hops: at the head, where OLM stays, or before one that has been installed already.
#[derive(Clone, Copy, Debug)]
struct End {
    hops: usize,
    entry: usize,
}

/// The upgrades of an installed bundle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    /// How many hops they have.
    pub(crate) hops: usize,
    first: Option<usize>,
    last: Option<usize>,
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
        let wire: Vec<&fbc::Entry<'_>> = entries.into_iter().collect();
        if wire.is_empty() {
            return Err(GraphError::Empty);
        }
        let entries: Vec<Entry> = wire
            .iter()
            .map(|entry| Entry { name: entry.name.to_string(), about: about(&entry.name) })
            .collect();
        let mut names = HashMap::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            names.entry(entry.name.clone()).or_insert(at);
        }
        let order = match rules {
            Rules::V0 => by_chain(&wire)?,
            Rules::V1 => by_version(&entries),
        };
        // A head is never skipped, so the chain is not empty.
        let head = order.first().copied().unwrap_or(0);
        let mut by_edge: HashMap<String, usize> = HashMap::new();
        let mut ranges = Vec::new();
        for (place, entry) in order.iter().map(|at| wire[*at]).enumerate() {
            let replaces = Some(&entry.replaces).filter(|name| !name.is_empty());
            for name in replaces.into_iter().chain(&entry.skips) {
                if !by_edge.contains_key(name.as_str()) {
                    by_edge.insert(name.to_string(), place);
                }
            }
            // As OLM does: an invalid range is ignored.
            ranges.extend(entry.skip_range.parse().ok().map(|range| (place, range)));
        }
        let by_range = FirstRange::new(&ranges);
        let (by_release, next, ends) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut ways = Self { entries, names, order, by_edge, by_range, by_release, next, ends, head };
        ways.find_next(rules);
        ways.ends = ways.find_ends();
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
        (0..self.entries.len())
            .filter(|at| {
                !self.reaches_head(self.course_of(*at)) && self.names.get(self.name(*at)) == Some(at)
            })
            .collect()
    }

    pub(super) fn name(&self, entry: usize) -> &str {
        &self.entries[entry].name
    }

    /// For every entry the first in the order that may follow it. Edges and ranges are looked up, so the work does not grow with the
    /// square of the entries.
    fn find_next(&mut self, rules: Rules) {
        let mut stays = vec![None; self.entries.len()];
        if rules == Rules::V1 {
            // The installed version is always among those that may follow.
            for (place, at) in self.order.iter().enumerate() {
                stays[*at] = Some(place);
                if let Some(version) = self.entries[*at].about.version.clone() {
                    self.by_release.entry(version.with_build_as_release()).or_insert(place);
                }
            }
        }
        let next = |(entry, known): (usize, &Entry)| {
            let place = self.first_place(&known.name, known.about.version.as_ref());
            let place = place.filter(|place| stays[entry].is_none_or(|own| *place < own))?;
            Some(self.order[place]).filter(|next| *next != entry)
        };
        self.next = self.entries.iter().enumerate().map(next).collect();
    }

    /// The first place in the order with an edge from a bundle.
    fn first_place(&self, name: &str, version: Option<&VersionRelease>) -> Option<usize> {
        let by_edge = self.by_edge.get(name).copied();
        let by_range = version.and_then(|version| self.by_range.of(&version.version));
        by_edge.into_iter().chain(by_range).min()
    }

    /// What comes after a bundle that is not in the channel.
    pub(super) fn next_of(&self, name: &str, version: Option<&VersionRelease>) -> Option<usize> {
        let same = version.filter(|_| !self.by_release.is_empty());
        let same = same.and_then(|version| self.by_release.get(&version.clone().with_build_as_release()));
        let first = self.first_place(name, version).into_iter().chain(same.copied()).min();
        first.map(|place| self.order[place])
    }

    /// The upgrades of a bundle, which need not be in the channel.
    pub(crate) fn course(&self, installed: &str, version: Option<&VersionRelease>) -> Course {
        match self.names.get(installed) {
            Some(entry) => self.course_of(*entry),
            None => self.course_through(self.next_of(installed, version)),
        }
    }

    /// The upgrades of an entry.
    pub(super) fn course_of(&self, entry: usize) -> Course {
        let End { hops, entry: last } = self.ends[entry];
        Course { hops, first: self.next[entry].filter(|_| hops > 0), last: Some(last) }
    }

    /// The upgrades of a bundle that is not in the channel and goes to this entry first.
    pub(super) fn course_through(&self, first: Option<usize>) -> Course {
        let end = first.map(|first| self.ends[first]);
        Course { hops: end.map_or(0, |end| end.hops + 1), first, last: end.map(|end| end.entry) }
    }

    /// Whether upgrades end at the head.
    pub(crate) fn reaches_head(&self, course: Course) -> bool {
        course.last == Some(self.head)
    }

    /// The bundle that is installed when no upgrade is left; none when there is no upgrade.
    pub(crate) fn last(&self, course: Course) -> Option<&str> {
        course.last.filter(|_| course.hops > 0).map(|entry| self.name(entry))
    }

    /// The bundles that are installed one after another: of more than `most` the first ones and the last.
    pub(crate) fn hops(&self, course: Course, most: usize) -> Vec<&str> {
        let in_order = std::iter::successors(course.first, |at| self.next[*at]);
        let in_order = in_order.map(|entry| self.name(entry));
        if course.hops <= most {
            return in_order.take(course.hops).collect();
        }
        in_order.take(most.saturating_sub(1)).chain(self.last(course)).collect()
    }

    /// For every entry where its upgrades end.
    fn find_ends(&self) -> Vec<End> {
        let mut known: Vec<Option<End>> = vec![None; self.entries.len()];
        // The place of an entry on the way that is followed.
        let mut passed: Vec<Option<usize>> = vec![None; self.entries.len()];
        known[self.head] = Some(End { hops: 0, entry: self.head });
        for start in 0..self.entries.len() {
            let mut way = Vec::new();
            let mut at = start;
            let mut end = loop {
                if let Some(end) = known[at] {
                    break Some(end);
                }
                if let Some(place) = passed[at] {
                    // A cycle: from each of its entries the way ends at the one before it.
                    let cycle = way.split_off(place);
                    let before = cycle.iter().skip(cycle.len() - 1).chain(&cycle);
                    for (entry, before) in cycle.iter().zip(before) {
                        known[*entry] = Some(End { hops: cycle.len() - 1, entry: *before });
                    }
                    break known[at];
                }
                passed[at] = Some(way.len());
                way.push(at);
                match self.next[at] {
                    Some(next) => at = next,
                    None => break None,
                }
            };
            for at in way.into_iter().rev() {
                end = Some(end.map_or(End { hops: 0, entry: at }, |end| End { hops: end.hops + 1, ..end }));
                known[at] = end;
            }
        }
        let stays = |(entry, end): (usize, Option<End>)| end.unwrap_or(End { hops: 0, entry });
        known.into_iter().enumerate().map(stays).collect()
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

/// OLM v0's order: along the chain of `replaces`.
fn by_chain(entries: &[&fbc::Entry<'_>]) -> Result<Vec<usize>, GraphError> {
    let skips: Vec<Vec<&str>> =
        entries.iter().map(|entry| entry.skips.iter().map(|name| name.as_str()).collect()).collect();
    let links = entries.iter().zip(&skips).map(|(entry, skips)| Links {
        name: &entry.name,
        replaces: &entry.replaces,
        skips,
    });
    chain(&links.collect::<Vec<_>>())
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
