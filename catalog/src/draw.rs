//! Upgrade graphs as pictures: Mermaid, as opm draws it, Graphviz' DOT, and SVG that needs nothing else.
//!
//! [`Drawing::of`] says what is drawn, [`Drawing::text`] draws it.

mod dot;
mod mermaid;
pub(crate) mod svg;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use olmkit_bundle::version::{Version, VersionRange, precedence};

use crate::fbc::{self, Catalog, schema};
use crate::graph;
use crate::index::{self, Index};

/// What a picture is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Mermaid, the same as `opm alpha render-graph` writes.
    #[default]
    Mermaid,
    /// The language of Graphviz.
    Dot,
    /// A picture that needs no other file.
    Svg,
}

/// What to draw.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options<'o> {
    /// Filter by package.
    pub package: Option<&'o str>,
    /// Of this channel only.
    pub channel: Option<&'o str>,
    /// Only edges from this version of a package on.
    pub minimum_edge: Option<&'o str>,
    /// Mark in Mermaid what OLM v0 does not go through, because it is skipped.
    pub v0_semantics: bool,
}

/// Nothing to draw.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// What is asked for is not there.
    #[error("`{catalog}` has no {what} `{name}`")]
    Missing {
        /// The catalog.
        catalog: String,
        /// What it should have.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The picture would be larger than any program shows: a `skipRange` is an edge from every version in it.
    #[error("the graph has {edges} edges, which need more than {} MiB", MOST_TEXT >> 20)]
    TooLarge {
        /// How many edges it has.
        edges: usize,
    },
}

/// The largest picture, in bytes of Mermaid.
const MOST_TEXT: usize = 64 << 20;
/// The bytes of an edge beside its names: an arrow, its label, brackets, a line break.
const ARROW: usize = 40;

/// Packages with their channels, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Drawing {
    packages: BTreeMap<String, Package>,
    v0_semantics: bool,
}

#[derive(Clone, Debug, Default)]
struct Package {
    is_deprecated: bool,
    channels: Vec<Channel>,
}

#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) name: String,
    pub(crate) is_deprecated: bool,
    pub(crate) is_default: bool,
    /// The highest version first.
    pub(crate) entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) is_head: bool,
    is_skipped: bool,
    is_deprecated: bool,
    /// Whether no upgrade path leads from it to the head; told on pages alone.
    pub(crate) is_stranded: bool,
    replaces: Option<String>,
    skips: Vec<String>,
    range: Option<VersionRange>,
    /// The rows of the channel whose versions are in the range: stretches that do not overlap, in order.
    in_range: Vec<Range<usize>>,
}

impl Drawing {
    /// Chooses what is drawn.
    ///
    /// # Errors
    /// When what is asked for is not there, or too large.
    pub fn of(catalog: &Catalog<'_>, options: &Options<'_>) -> Result<Self, DrawError> {
        let index = Index::new(catalog);
        let missing = |what, name: &str| DrawError::Missing {
            catalog: catalog.name.to_owned(),
            what,
            name: name.to_owned(),
        };
        let floor = match options.minimum_edge {
            None => None,
            Some(edge) => Some(Floor::of(&index, edge).ok_or_else(|| missing("bundle", edge))?),
        };
        let mut packages: BTreeMap<String, Package> = BTreeMap::new();
        for (name, package) in &index.packages {
            let is_asked_for = options.package.is_none_or(|wanted| wanted == *name)
                && floor.as_ref().is_none_or(|floor| floor.package == *name);
            if !is_asked_for {
                continue;
            }
            let channels = channels(package, options, floor.as_ref());
            if !channels.is_empty() {
                let is_deprecated = package.deprecated(schema::PACKAGE).next().is_some();
                packages.insert((*name).to_owned(), Package { is_deprecated, channels });
            }
        }
        match (options.package, options.channel) {
            (Some(package), _) if !index.packages.contains_key(package) => Err(missing("package", package)),
            (_, Some(channel)) if packages.is_empty() => Err(missing("channel", channel)),
            _ => Self { packages, v0_semantics: options.v0_semantics }.bounded(),
        }
    }

    fn bounded(self) -> Result<Self, DrawError> {
        let channels = self.packages.values().flat_map(|package| &package.channels);
        let (edges, text) = channels
            .map(Channel::size)
            .fold((0, 0), |(edges, text), channel| (edges + channel.0, text + channel.1));
        if text > MOST_TEXT { Err(DrawError::TooLarge { edges }) } else { Ok(self) }
    }

    /// The picture.
    pub fn text(&self, format: Format) -> String {
        match format {
            Format::Mermaid => mermaid::text(self),
            Format::Dot => dot::text(self),
            Format::Svg => svg::text(self),
        }
    }
}

/// What of a schema is deprecated in a package, by name.
/// The channels of a package as they are drawn, by name.
pub(crate) fn channels(
    package: &index::Package<'_, '_>,
    options: &Options<'_>,
    floor: Option<&Floor<'_>>,
) -> Vec<Channel> {
    let names = |schema| package.deprecated(schema).map(|(name, _)| name).collect::<HashSet<&str>>();
    let bundles = names(schema::BUNDLE);
    let deprecated = names(schema::CHANNEL);
    let default = package.blobs.first().map_or("", |blob| &*blob.default_channel);
    let mut channels = Vec::new();
    for channel in &package.channels {
        if options.channel.is_some_and(|wanted| wanted != &*channel.blob.name) {
            continue;
        }
        let mut wire: Vec<_> =
            channel.blob.entries.iter().filter_map(|entry| Edges::of(entry, floor, package)).collect();
        if wire.is_empty() && !channel.blob.entries.is_empty() {
            continue;
        }
        let head = channel.linked.as_ref().ok().map(graph::Channel::head);
        let skipped: HashSet<&str> = wire.iter().flat_map(|entry| &entry.skips).copied().collect();
        let version = |name: &str| package.version(name).map(|version| &version.version);
        wire.sort_by(|a, b| match (version(a.name), version(b.name)) {
            (Some(a), Some(b)) => precedence(b, a),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        // Those of which no version is known stand last, and in no range.
        let ascending: Vec<Version> =
            wire.iter().rev().filter_map(|entry| version(entry.name)).cloned().collect();
        let known = ascending.len();
        let entry = |entry: &Edges<'_>| {
            let matching_ranges = entry.range.iter().flat_map(|range| range.matching_ranges(&ascending));
            let in_range = matching_ranges.map(|stretch| known - stretch.end..known - stretch.start);
            Entry {
                name: entry.name.to_owned(),
                is_head: head.is_some_and(|head| head.name == entry.name),
                is_skipped: skipped.contains(entry.name),
                is_deprecated: bundles.contains(entry.name),
                is_stranded: false,
                replaces: entry.replaces.map(str::to_owned),
                skips: entry.skips.iter().map(|skip| (*skip).to_owned()).collect(),
                range: entry.range.clone(),
                in_range: without_overlaps(in_range.collect()),
            }
        };
        let entries = wire.iter().map(entry).collect();
        channels.push(Channel {
            name: channel.blob.name.to_string(),
            is_deprecated: deprecated.contains(&*channel.blob.name),
            is_default: *channel.blob.name == *default,
            entries,
        });
    }
    channels.sort_by(|a, b| a.name.cmp(&b.name));
    channels
}

/// The same positions, each in one stretch, in order.
fn without_overlaps(mut stretches: Vec<Range<usize>>) -> Vec<Range<usize>> {
    stretches.sort_by_key(|stretch| stretch.start);
    let mut end = 0;
    for stretch in &mut stretches {
        stretch.start = stretch.start.max(end);
        end = end.max(stretch.end);
    }
    stretches.retain(|stretch| !stretch.is_empty());
    stretches
}

/// A version below which nothing is drawn.
pub(crate) struct Floor<'e> {
    name: &'e str,
    package: &'e str,
    version: Version,
}

impl<'e> Floor<'e> {
    fn of(index: &Index<'e, '_>, name: &'e str) -> Option<Self> {
        let (package, found) =
            index.packages.iter().find_map(|(at, package)| Some((at, package.version(name)?)))?;
        Some(Self { name, package, version: found.version.clone() })
    }

    /// A bundle of which no version is known counts as the lowest there is.
    fn is_below(&self, version: Option<&graph::VersionRelease>) -> bool {
        version.is_none_or(|version| precedence(&version.version, &self.version).is_lt())
    }
}

/// The edges of an entry that are drawn.
struct Edges<'e> {
    name: &'e str,
    replaces: Option<&'e str>,
    skips: Vec<&'e str>,
    range: Option<VersionRange>,
}

impl<'e> Edges<'e> {
    /// By opm's rules: with a floor, an entry that has edges is drawn when one of them is.
    fn of(
        entry: &'e fbc::Entry<'_>,
        floor: Option<&Floor<'_>>,
        package: &index::Package<'_, '_>,
    ) -> Option<Self> {
        let mut edges = Self {
            name: &entry.name,
            replaces: Some(&*entry.replaces).filter(|name| !name.is_empty()),
            skips: entry.skips.iter().map(|skip| &**skip).collect(),
            range: entry.skip_range.parse().ok(),
        };
        let Some(floor) = floor else { return Some(edges) };
        if edges.name == floor.name {
            return Some(Self { replaces: None, skips: Vec::new(), range: None, ..edges });
        }
        let has_edges =
            |edges: &Self| edges.replaces.is_some() || !edges.skips.is_empty() || edges.range.is_some();
        let had_edges = has_edges(&edges);
        let is_drawn = |name: &&str| !floor.is_below(package.version(name));
        edges.replaces = edges.replaces.filter(is_drawn);
        edges.skips.retain(is_drawn);
        edges.range = edges.range.filter(|range| range.contains(&floor.version));
        let is_kept = has_edges(&edges) || !had_edges && is_drawn(&edges.name);
        is_kept.then_some(edges)
    }
}

impl Channel {
    /// The names of rows.
    fn named<'c>(&'c self, rows: &'c [Range<usize>]) -> impl Iterator<Item = &'c str> {
        let entries = rows.iter().filter_map(|rows| self.entries.get(rows.clone())).flatten();
        entries.map(|entry| entry.name.as_str())
    }

    /// How many edges it has, and about how many bytes they take in Mermaid, which names both ends of each twice.
    fn size(&self) -> (usize, usize) {
        let name = |name: &str| 2 * name.len() + self.name.len();
        // Of the names of all rows above each: ranges over each other make edges between any two.
        let mut above = vec![0];
        above.extend(self.entries.iter().scan(0, |sum, entry| {
            *sum += name(&entry.name);
            Some(*sum)
        }));
        let (mut edges, mut bytes) = (0, 0);
        for entry in &self.entries {
            let range = entry.range.as_ref().map_or(0, |range| range.as_str().len());
            let listed = entry.skips.iter().chain(&entry.replaces);
            let count = listed.clone().count() + entry.in_range.iter().map(Range::len).sum::<usize>();
            let of_range = |rows: &Range<usize>| above[rows.end] - above[rows.start] + rows.len() * range;
            bytes += listed.map(|old| name(old)).sum::<usize>()
                + entry.in_range.iter().map(of_range).sum::<usize>()
                + count * (name(&entry.name) + ARROW);
            edges += count;
        }
        (edges, bytes)
    }

    /// The entries by name, as rows.
    fn rows(&self) -> HashMap<&str, usize> {
        self.entries.iter().enumerate().map(|(row, entry)| (entry.name.as_str(), row)).collect()
    }
}

#[cfg(test)]
mod tests;
