//! Each version's way to the head of its channel: which bundle OLM would install next, and next, and next.
//!
//! [`paths`] answers for a catalog, [`NextHops`] for one channel. Under OLM v0 the way leads along the channel's chain; under v1 the
//! highest version that may follow wins. One hop is taken at a time: an installed version says which entries may follow it
//! (they replace it, skip it, or have a `skipRange` that its version is in), and the first of them in a fixed order is next.

mod claim;
mod next;
pub(crate) mod released;

use std::collections::{BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::fbc::{self, Catalog};
use crate::graph::GraphError;
use crate::index::{self, Index};

pub(crate) use next::Course;
pub use next::{About, NextHops, Rules};

/// Which ways are asked for.
#[derive(Clone, Debug, Default)]
pub struct Query<'q> {
    /// Filter by package.
    pub package: Option<&'q str>,
    /// In this channel only.
    pub channel: Option<&'q str>,
    /// From this bundle only. In a channel that is named here it need not be: then this is where a switch to it leads.
    pub from: Option<&'q str>,
    /// By these rules.
    pub rules: Rules,
    /// Also from what this older catalog released and the new one no longer has.
    pub since: Option<&'q Catalog<'q>>,
}

/// A version's way to the head of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Path")]
pub struct UpgradePath<'p> {
    /// The package.
    pub package: &'p str,
    /// The channel.
    pub channel: &'p str,
    /// The installed bundle.
    pub from: &'p str,
    /// The bundles that are installed one after another, `from` not among them. Where several ways of a channel are listed, of more
    /// than a hundred hops the first ones and the last.
    pub hops: Vec<&'p str>,
    /// How many hops are left out before the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hops_left_out: Option<usize>,
    /// The channel's head; empty when the channel is gone.
    pub head: &'p str,
    /// Whether the way ends there.
    pub reaches_head: bool,
}

/// Why there is nothing to say about ways.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The catalog does not have the package.
    #[error("`{catalog}` has no package `{package}`")]
    Package {
        /// The catalog.
        catalog: String,
        /// The package.
        package: String,
    },
    /// The channel is not there.
    #[error("`{within}` has no channel `{channel}`")]
    Channel {
        /// The package, or the catalog when any package would do.
        within: String,
        /// The channel.
        channel: String,
    },
    /// No channel has the bundle.
    #[error("no channel of `{within}` has the bundle `{from}`")]
    From {
        /// The package, or the catalog when any package would do.
        within: String,
        /// The bundle.
        from: String,
    },
    /// A channel leads nowhere.
    #[error("the channel `{channel}` of `{package}` cannot be followed")]
    Graph {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
        /// Why.
        #[source]
        source: GraphError,
    },
}

/// As many hops are listed of one of several ways: all those of a long channel would add up to its square.
const MAX_HOPS: usize = 100;

/// The ways that were asked for, sorted by package, channel and version, made one at a time.
#[derive(Clone, Debug)]
pub struct UpgradePaths {
    ways: Vec<ChannelPaths>,
}

#[derive(Clone, Debug)]
struct ChannelPaths {
    package: String,
    channel: String,
    /// None when the channel is gone.
    ways: Option<NextHops>,
    from: Vec<Start>,
}

/// Where a way starts.
#[derive(Clone, Debug)]
enum Start {
    Entry(usize),
    /// A bundle that is not in the channel, and the entry it goes to.
    Outside(String, Option<usize>),
}

/// The ways that a query asks for.
///
/// ```
/// use olmkit_catalog::{fbc::Catalog, load::CatalogFiles, path::{Query, paths}};
/// let files = CatalogFiles::from_text("catalog.yaml", "
/// {schema: olm.channel, package: redis, name: stable, entries: [{name: v1}, {name: v2, replaces: v1}, {name: v3, replaces: v2}]}");
/// let catalog = Catalog::parse(&files);
/// let paths = paths(&catalog, &Query { from: Some("v1"), ..Query::default() }).unwrap();
/// assert_eq!(paths.iter().next().unwrap().hops, ["v2", "v3"]);
/// ```
///
/// # Errors
/// When what is asked about is not there, or a channel has no head or several of them.
pub fn paths(catalog: &Catalog<'_>, query: &Query<'_>) -> Result<UpgradePaths, PathError> {
    let index = Index::new(catalog);
    let older = query.since.map(Index::new);
    let within = || query.package.unwrap_or(catalog.name).to_owned();
    let is_known = |package: &str| {
        let indices = std::iter::once(&index).chain(&older);
        indices.into_iter().any(|index| index.packages.contains_key(package))
    };
    if let Some(package) = query.package.filter(|package| !is_known(package)) {
        return Err(PathError::Package { catalog: catalog.name.to_owned(), package: package.to_owned() });
    }
    let none = index::Package::default();
    let released = older.iter().flat_map(|older| older.packages.keys());
    let names: BTreeSet<&str> = index.packages.keys().chain(released).copied().collect();
    let mut ways = Vec::new();
    let mut channel_found = false;
    for name in names {
        if query.package.is_some_and(|wanted| wanted != name) {
            continue;
        }
        let package = index.packages.get(name).unwrap_or(&none);
        let older = older.as_ref().and_then(|older| older.packages.get(name)).unwrap_or(&none);
        let (channels, released) = (by_name(package), by_name(older));
        let names: BTreeSet<&str> = channels.keys().chain(released.keys()).copied().collect();
        for channel in names {
            if query.channel.is_some_and(|wanted| wanted != channel) {
                continue;
            }
            channel_found = true;
            let mut found = match channels.get(channel).and_then(|found| found.first()) {
                Some(found) => ChannelPaths::of(name, package, found, query)?,
                None => {
                    let (package, channel) = (name.to_owned(), channel.to_owned());
                    ChannelPaths { package, channel, ways: None, from: Vec::new() }
                }
            };
            found.add_released(older, released.get(channel).map_or(&[], Vec::as_slice), query);
            if !found.from.is_empty() {
                ways.push(found);
            }
        }
    }
    match (query.channel, query.from) {
        (Some(channel), _) if !channel_found => {
            Err(PathError::Channel { within: within(), channel: channel.to_owned() })
        }
        (_, Some(from)) if ways.is_empty() => {
            Err(PathError::From { within: within(), from: from.to_owned() })
        }
        _ => Ok(UpgradePaths { ways }),
    }
}

/// The channels of a package by name. A sound catalog has one of each.
fn by_name<'p>(package: &'p index::Package<'_, 'p>) -> HashMap<&'p str, Vec<&'p fbc::Channel<'p>>> {
    let mut channels: HashMap<&str, Vec<_>> = HashMap::new();
    for channel in &package.channels {
        channels.entry(&*channel.blob.name).or_default().push(channel.blob);
    }
    channels
}

impl ChannelPaths {
    fn of(
        name: &str,
        package: &index::Package<'_, '_>,
        channel: &fbc::Channel<'_>,
        query: &Query<'_>,
    ) -> Result<Self, PathError> {
        let about = About::in_package(package);
        let ways = NextHops::of(&channel.entries, about, query.rules).map_err(|source| PathError::Graph {
            package: name.to_owned(),
            channel: channel.name.to_string(),
            source,
        })?;
        let from = match query.from {
            None => ways.by_version().into_iter().map(Start::Entry).collect(),
            Some(from) => match ways.names.get(from) {
                Some(entry) => vec![Start::Entry(*entry)],
                None if query.channel.is_some()
                    && (query.package.is_some() || package.bundle(from).is_some()) =>
                {
                    vec![Start::Outside(from.to_owned(), ways.next_of(from, package.version(from)))]
                }
                None => Vec::new(),
            },
        };
        Ok(Self { package: name.to_owned(), channel: channel.name.to_string(), ways: Some(ways), from })
    }

    /// Adds what an older state of the package had in the channel, and this one has not; of what its edges led from and no entry was,
    /// that which has no way any more.
    fn add_released(
        &mut self,
        older: &index::Package<'_, '_>,
        channels: &[&fbc::Channel<'_>],
        query: &Query<'_>,
    ) {
        let lost = self.lost_edges(older, channels, query);
        let ways = self.ways.as_ref();
        let mut released: Vec<&str> = channels
            .iter()
            .flat_map(|channel| &channel.entries)
            .map(|entry| &*entry.name)
            .filter(|name| query.from.is_none_or(|from| from == *name))
            .filter(|name| ways.is_none_or(|ways| !ways.names.contains_key(*name)))
            .collect();
        released.sort_by_key(|name| (older.version(name), *name));
        released.dedup();
        // A query from one of them may have found it already, without its version.
        self.from
            .retain(|start| !matches!(start, Start::Outside(name, _) if released.contains(&name.as_str())));
        let start = |name: &str| {
            Start::Outside(name.to_owned(), ways.and_then(|ways| ways.next_of(name, older.version(name))))
        };
        let starts: Vec<_> = released.into_iter().map(start).chain(lost).collect();
        self.from.splice(0..0, starts);
    }

    /// What the edges of the older channel led from to its head, was no entry, and has no way now.
    fn lost_edges(
        &self,
        older: &index::Package<'_, '_>,
        channels: &[&fbc::Channel<'_>],
        query: &Query<'_>,
    ) -> Vec<Start> {
        let Some(channel) = channels.first() else { return Vec::new() };
        let entries = &channel.entries;
        let about = |name: &str| About { version: older.version(name).cloned(), deprecated: false };
        let Ok(before) = NextHops::of(entries, about, query.rules) else { return Vec::new() };
        let Some(now) = &self.ways else { return Vec::new() };
        let unlisted: Vec<_> = released::unlisted(&self.package, entries, |name| older.version(name))
            .into_iter()
            .filter(|unlisted| query.from.is_none_or(|from| from == unlisted.label))
            .filter(|unlisted| !now.names.contains_key(&unlisted.label))
            .collect();
        let lost = released::stranded(
            unlisted,
            |unlisted| before.reaches_head(before.course(&unlisted.label, unlisted.version())),
            |unlisted| unlisted.next(now).is_some(),
        );
        lost.into_iter().map(|unlisted| Start::Outside(unlisted.label, None)).collect()
    }

    fn path<'p>(&'p self, start: &'p Start) -> UpgradePath<'p> {
        let Some(ways) = &self.ways else {
            let from = match start {
                Start::Outside(name, _) => name.as_str(),
                Start::Entry(_) => "",
            };
            let (package, channel) = (&self.package, &self.channel);
            let (hops, hops_left_out) = (Vec::new(), None);
            return UpgradePath {
                package,
                channel,
                from,
                hops,
                hops_left_out,
                head: "",
                reaches_head: false,
            };
        };
        let from = match start {
            Start::Entry(entry) => ways.name(*entry),
            Start::Outside(name, _) => name,
        };
        let course = start.course(ways);
        let hops = ways.hops(course, if self.from.len() == 1 { usize::MAX } else { MAX_HOPS });
        UpgradePath {
            package: &self.package,
            channel: &self.channel,
            from,
            hops_left_out: (course.hops > hops.len()).then(|| course.hops - hops.len()),
            hops,
            head: ways.head(),
            reaches_head: ways.reaches_head(course),
        }
    }
}

impl Start {
    fn course(&self, ways: &NextHops) -> Course {
        match self {
            Self::Entry(entry) => ways.course_of(*entry),
            Self::Outside(_, next) => ways.course_through(*next),
        }
    }
}

impl UpgradePaths {
    /// The ways, one at a time.
    pub fn iter(&self) -> impl Iterator<Item = UpgradePath<'_>> {
        self.ways.iter().flat_map(|channel| channel.from.iter().map(move |start| channel.path(start)))
    }

    /// Whether every one of them ends at a head.
    pub fn all_reach_the_head(&self) -> bool {
        self.ways.iter().all(|channel| {
            let Some(ways) = &channel.ways else { return false };
            channel.from.iter().all(|start| ways.reaches_head(start.course(ways)))
        })
    }
}

/// `olmkit.path/v1`
impl Serialize for UpgradePaths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct List<'p>(&'p UpgradePaths);
        impl Serialize for List<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.0.iter())
            }
        }
        #[derive(Serialize)]
        struct Report<'p> {
            schema: &'static str,
            paths: List<'p>,
        }
        Report { schema: "olmkit.path/v1", paths: List(self) }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
