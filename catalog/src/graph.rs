//! The checked upgrade graph: what a channel's entries mean once they are known to fit together.
//!
//! [`Channel::link`] takes the entries of one `olm.channel` and gives either a channel with exactly one head, from which the
//! `replaces` chain reaches every entry that is not skipped, or every reason why they do not form one. The rules are those of opm
//! (operator-registry `alpha/model`); [`crate::path`] says what OLM makes of the result.

mod chain;

use std::collections::{BTreeSet, HashMap, HashSet};

use olmkit_bundle::version::VersionRange;

use crate::fbc;

pub(crate) use chain::{Links, chain};
pub use olmkit_bundle::version::{Release, ReleaseError, VersionRelease};

/// A channel whose upgrade graph has been checked: exactly one head, no cycle, no stranded entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    name: String,
    entries: Vec<Entry>,
    head: EntryId,
}

/// An entry of a channel, by its number in [`Channel::entries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(u32);

/// A bundle's place in a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The bundle's name.
    pub name: String,
    /// The bundle's version, where it is known.
    pub version: Option<VersionRelease>,
    /// The bundle that it takes over from. It need not be in the channel.
    pub replaces: Option<String>,
    /// Bundles that may jump to it and are no longer offered. They need not be in the channel.
    pub skips: Vec<String>,
    /// Installed versions in this range may jump to it.
    pub skip_range: Option<VersionRange>,
}

/// Why entries do not form a channel. Numbers count the entries as they were given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// There is nothing in the channel.
    #[error("it has no entries")]
    Empty,
    /// An entry names no bundle.
    #[error("entry {entry} has no name")]
    Unnamed {
        /// The entry.
        entry: usize,
    },
    /// Two entries name the same bundle.
    #[error("entries {first} and {second} have the same name")]
    Duplicate {
        /// The first of them.
        first: usize,
        /// The other one.
        second: usize,
    },
    /// An entry skips nothing by name.
    #[error("entry {entry} skips an empty name")]
    EmptySkip {
        /// The entry.
        entry: usize,
        /// Which of its skips.
        skip: usize,
    },
    /// An entry's `skipRange` is no range.
    #[error("entry {entry}: {why}")]
    SkipRange {
        /// The entry.
        entry: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Every entry is replaced or skipped by another one.
    #[error("every entry is replaced or skipped")]
    NoHead {
        /// Entries each of which is replaced or skipped by the next, and the last by the first.
        cycle: Vec<usize>,
    },
    /// Several entries are neither replaced nor skipped.
    #[error("it has several heads")]
    SeveralHeads {
        /// These.
        heads: Vec<usize>,
    },
    /// The chain of `replaces` comes back to an entry it has passed.
    #[error("the chain of `replaces` is a cycle")]
    Cycle {
        /// The entries of the circle, each of which replaces the next, and the last the first.
        cycle: Vec<usize>,
    },
    /// An entry is neither skipped nor on the chain of `replaces` from the head.
    #[error("entry {entry} is not reachable from the head and is not skipped")]
    Stranded {
        /// The entry.
        entry: usize,
    },
}

impl Channel {
    /// Links the entries of one `olm.channel`. Reports every problem, not only the first.
    ///
    /// `version` knows the versions of bundles by name.
    ///
    /// ```
    /// use olmkit_catalog::{fbc, graph::Channel};
    /// let entry = |name: &'static str, replaces: &'static str| fbc::Entry {
    ///     name: name.into(),
    ///     replaces: replaces.into(),
    ///     ..fbc::Entry::default()
    /// };
    /// let entries = [entry("redis.v2", "redis.v1"), entry("redis.v1", "redis.v0")];
    /// let channel = Channel::link("stable", &entries, |_| None).unwrap();
    /// assert_eq!(channel.head().name, "redis.v2");
    /// ```
    ///
    /// # Errors
    /// Every [`GraphError`]: first those of single entries, then those of the channel as a whole.
    pub fn link<'e, 'a: 'e>(
        name: &str,
        entries: impl IntoIterator<Item = &'e fbc::Entry<'a>>,
        mut version: impl FnMut(&str) -> Option<VersionRelease>,
    ) -> Result<Self, Vec<GraphError>> {
        let wire: Vec<&fbc::Entry<'_>> = entries.into_iter().collect();
        let mut errors = Vec::new();
        let mut entries = Vec::with_capacity(wire.len());
        for (at, entry) in wire.iter().enumerate() {
            entries.push(Entry {
                name: entry.name.to_string(),
                version: version(&entry.name),
                replaces: (!entry.replaces.is_empty()).then(|| entry.replaces.to_string()),
                skips: entry.skips.iter().map(ToString::to_string).collect(),
                skip_range: skip_range(at, entry, &mut errors),
            });
        }
        let names = Names::of(&wire, &mut errors);
        if wire.is_empty() {
            errors.push(GraphError::Empty);
            return Err(errors);
        }
        match names.head().and_then(|head| names.check_chain(head).map(|()| head)) {
            Ok(head) if errors.is_empty() => {
                Ok(Self { name: name.to_owned(), entries, head: EntryId(head as u32) })
            }
            Ok(_) => Err(errors),
            Err(chain) => {
                errors.extend(chain);
                Err(errors)
            }
        }
    }

    /// The channel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The entry that new installations get.
    pub fn head(&self) -> &Entry {
        self.entry(self.head)
    }

    /// The entries, in the order they were given.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// An entry by its number.
    pub fn entry(&self, id: EntryId) -> &Entry {
        // Numbers are made by this channel alone; one of another channel gives the head rather than a panic.
        self.entries.get(id.0 as usize).unwrap_or(&self.entries[self.head.0 as usize])
    }
}

fn skip_range(at: usize, entry: &fbc::Entry<'_>, errors: &mut Vec<GraphError>) -> Option<VersionRange> {
    if entry.skip_range.is_empty() {
        return None;
    }
    match entry.skip_range.parse() {
        Ok(range) => Some(range),
        Err(error) => {
            errors.push(GraphError::SkipRange { entry: at, why: error.to_string() });
            None
        }
    }
}

/// Entries by name, and which entries replace or skip which.
pub(crate) struct Names<'e, 'a> {
    entries: &'e [&'e fbc::Entry<'a>],
    by_name: HashMap<&'e str, usize>,
    skipped: HashSet<&'e str>,
}

impl<'e, 'a> Names<'e, 'a> {
    fn of(entries: &'e [&'e fbc::Entry<'a>], errors: &mut Vec<GraphError>) -> Self {
        let mut by_name = HashMap::with_capacity(entries.len());
        let mut skipped = HashSet::new();
        for (at, entry) in entries.iter().enumerate() {
            if entry.name.is_empty() {
                errors.push(GraphError::Unnamed { entry: at });
            }
            match by_name.get(entry.name.as_str()) {
                Some(&first) => errors.push(GraphError::Duplicate { first, second: at }),
                None => {
                    by_name.insert(entry.name.as_str(), at);
                }
            }
            for (skip, name) in entry.skips.iter().enumerate() {
                if name.is_empty() {
                    errors.push(GraphError::EmptySkip { entry: at, skip });
                }
                skipped.insert(name.as_str());
            }
        }
        Self { entries, by_name, skipped }
    }

    /// The entry that is neither replaced nor skipped by one of the channel.
    fn head(&self) -> Result<usize, Vec<GraphError>> {
        let replaced =
            self.entries.iter().map(|entry| entry.replaces.as_str()).filter(|name| !name.is_empty());
        let incoming: HashSet<&str> = replaced.chain(self.skipped.iter().copied()).collect();
        let heads = self.by_name.iter().filter(|(name, _)| !incoming.contains(*name)).map(|(_, at)| *at);
        let heads: BTreeSet<usize> = heads.collect();
        match heads.len() {
            1 => Ok(heads.into_iter().next().unwrap_or(0)),
            0 => Err(vec![GraphError::NoHead { cycle: self.any_cycle() }]),
            _ => Err(vec![GraphError::SeveralHeads { heads: heads.into_iter().collect() }]),
        }
    }

    /// Some entries each of which is replaced or skipped by the next, when there is no head: such there must be.
    fn any_cycle(&self) -> Vec<usize> {
        let mut next = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let below = std::iter::once(&entry.replaces).chain(&entry.skips);
            for old in below.filter_map(|name| self.by_name.get(name.as_str())) {
                next.entry(*old).or_insert(at);
            }
        }
        let mut passed: HashMap<usize, usize> = HashMap::new();
        let mut way = Vec::new();
        let mut at = 0;
        loop {
            if let Some(start) = passed.insert(at, way.len()) {
                return way.split_off(start);
            }
            way.push(at);
            match next.get(&at) {
                Some(newer) => at = *newer,
                None => return Vec::new(),
            }
        }
    }

    /// Follows `replaces` from the head, up to where it leaves the channel or comes to what is skipped.
    fn check_chain(&self, head: usize) -> Result<(), Vec<GraphError>> {
        let mut passed: HashMap<&str, usize> = HashMap::new();
        let mut chain = Vec::new();
        let mut at = Some(head);
        while let Some(entry) = at {
            let name = self.entries[entry].name.as_str();
            if let Some(start) = passed.insert(name, chain.len()) {
                return Err(vec![GraphError::Cycle { cycle: chain.split_off(start) }]);
            }
            chain.push(entry);
            let replaces = self.entries[entry].replaces.as_str();
            at = self.by_name.get(replaces).copied().filter(|_| !self.skipped.contains(replaces));
        }
        let stranded = self.entries.iter().enumerate().filter(|(_, entry)| {
            !passed.contains_key(entry.name.as_str()) && !self.skipped.contains(entry.name.as_str())
        });
        let errors: Vec<_> = stranded.map(|(entry, _)| GraphError::Stranded { entry }).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

#[cfg(test)]
mod tests;
