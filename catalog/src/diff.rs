//! What differs between two catalogs: packages, channels, entries, edges, bundles, deprecations, and upgrade paths.
//!
//! [`diff`] is pure. An upgrade path leads from a version to the head of a channel by one hop or more, as OLM v0 takes them;
//! [`crate::path`] shows each. A version is stranded when clusters that have it installed were at the head of its channel or could get
//! there, and now neither is so.

use std::collections::{BTreeMap, BTreeSet};

use olmkit_bundle::parallel::in_parallel;
use schemars::JsonSchema;
use serde::Serialize;

use crate::fbc::{self, At, Catalog};
use crate::graph::VersionRelease;
use crate::index::{self, Index};
use crate::path::released::{Unlisted, stranded, unlisted};
use crate::path::{About, Course, NextHops, Rules};

/// `olmkit.catalog-diff/v1`: what differs between two catalogs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diff {
    /// `olmkit.catalog-diff/v1`
    pub schema: &'static str,
    /// The packages that differ, by name.
    pub packages: Vec<PackageDiff>,
    /// The blobs of other schemas that differ and belong to no package.
    pub others: Vec<OtherDiff>,
    /// The differences that are denied, such as `1 removed channel`.
    pub denied: Vec<String>,
}

/// How something differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// Only the new catalog has it.
    Added,
    /// Only the old catalog has it.
    Removed,
    /// Both have it, and it is not the same.
    Changed,
}

/// A package that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageDiff {
    /// Its name.
    pub name: String,
    /// How it differs.
    pub change: Kind,
    /// The default channel, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_channel: Option<Texts>,
    /// Other fields of the package that differ, such as `description`.
    pub fields: Vec<String>,
    /// The channels that differ, by name.
    pub channels: Vec<ChannelDiff>,
    /// The bundles that differ, by version.
    pub bundles: Vec<BundleDiff>,
    /// The deprecations that differ.
    pub deprecations: Vec<DeprecationDiff>,
    /// The blobs of other schemas that differ.
    pub others: Vec<OtherDiff>,
    /// The versions that can now upgrade to the head of a channel and could not before, by channel and version.
    pub paths_gained: Vec<PathDiff>,
    /// The versions that could upgrade to the head of a channel and no longer can.
    pub paths_lost: Vec<PathDiff>,
    /// The versions whose clusters no longer reach the head of their channel.
    pub stranded: Vec<Stranded>,
}

/// A text before and after; empty where it is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Texts {
    /// In the old catalog.
    pub old: String,
    /// In the new one.
    pub new: String,
}

/// A channel that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelDiff {
    /// Its name.
    pub name: String,
    /// How it differs.
    pub change: Kind,
    /// The head, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<Texts>,
    /// The entries that differ, by version.
    pub entries: Vec<EntryDiff>,
    /// Other fields that differ, such as `properties`; `entries` when entries differ in more than edges.
    pub fields: Vec<String>,
}

/// An entry of a channel that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryDiff {
    /// The bundle.
    pub name: String,
    /// How it differs.
    pub change: Kind,
    /// Its edges in the old catalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Edges>,
    /// Its edges in the new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Edges>,
}

/// The edges that lead to an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Edges {
    /// The bundle it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// The bundles it skips.
    pub skips: Vec<String>,
    /// The versions that may jump to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_range: Option<String>,
}

/// A bundle that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleDiff {
    /// Its name.
    pub name: String,
    /// Its version; none when it cannot be read.
    pub version: Option<String>,
    /// How it differs.
    pub change: Kind,
    /// The fields that differ: `image`, `relatedImages`, `properties` and others.
    pub fields: Vec<String>,
}

/// A deprecation that differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeprecationDiff {
    /// What is deprecated: `olm.package`, `olm.channel` or `olm.bundle`.
    pub schema: String,
    /// Its name; empty for the package.
    pub name: String,
    /// What users are told in the old catalog.
    pub old: Option<String>,
    /// What they are told in the new one.
    pub new: Option<String>,
}

/// Blobs of a schema that olmkit does not know, which differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OtherDiff {
    /// Their schema.
    pub schema: String,
    /// Their name; empty when they have none.
    pub name: String,
    /// How they differ.
    pub change: Kind,
}

/// An upgrade path from a version to the head of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathDiff {
    /// The channel.
    pub channel: String,
    /// The installed bundle; of versions that only a `skipRange` covered, that range.
    pub from: String,
    /// The channel's head, where the path ends.
    pub to: String,
    /// The bundles that are installed one after another, `from` not among them: of more than fifty the first ones and the last.
    pub hops: Vec<String>,
    /// How many hops are left out before the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hops_left_out: Option<usize>,
}

/// A version whose clusters no longer reach the head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stranded {
    /// The channel.
    pub channel: String,
    /// The installed bundle; of versions that only a `skipRange` covered, that range.
    pub from: String,
    /// Where its upgrades end now; `from` itself when there are none.
    pub stops_at: String,
}

/// Compares two catalogs.
///
/// ```
/// use olmkit_catalog::{diff::diff, fbc::Catalog, load::CatalogFiles};
/// let text = |entries: &str| CatalogFiles::from_text("catalog.yaml", format!("
/// {{schema: olm.package, name: redis, defaultChannel: stable}}
/// ---
/// {{schema: olm.channel, package: redis, name: stable, entries: [{entries}]}}"));
/// let (old, new) = (text("{name: v1}, {name: v2, replaces: v1}"), text("{name: v1}, {name: v3}, {name: v4, replaces: v3}"));
/// let found = diff(&Catalog::parse(&old), &Catalog::parse(&old));
/// assert!(found.packages.is_empty());
/// let found = diff(&Catalog::parse(&old), &Catalog::parse(&text("{name: v1}, {name: v3, replaces: v2}")));
/// assert_eq!(found.packages[0].paths_lost[0].from, "v1");
/// ```
pub fn diff(old: &Catalog<'_>, new: &Catalog<'_>) -> Diff {
    let (before, after) = (Index::new(old), Index::new(new));
    let others = (others(old), others(new));
    let names = before.packages.keys().chain(after.packages.keys());
    let names: BTreeSet<&str> = names
        .chain(others.0.keys().chain(others.1.keys()).filter(|name| !name.is_empty()))
        .copied()
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    let sides = Sides { before: &before, after: &after, others: &others };
    let packages = in_parallel(&names, |name| sides.package(name));
    Diff {
        schema: "olmkit.catalog-diff/v1",
        packages: packages.into_iter().flatten().collect(),
        others: sides.others(""),
        denied: Vec::new(),
    }
}

/// The blobs of other schemas, by package, schema and name.
type Others<'c> = BTreeMap<&'c str, BTreeMap<(&'c str, &'c str), Vec<serde_json::Value>>>;

fn others<'c>(catalog: &'c Catalog<'_>) -> Others<'c> {
    let mut others = Others::new();
    for blob in &catalog.others {
        let of_package = others.entry(blob.package.as_str()).or_default();
        of_package.entry((blob.schema.as_str(), blob.name.as_str())).or_default().push(blob.to_json());
    }
    others
}

struct Sides<'i, 'o, 'a, 'n, 'b> {
    before: &'i Index<'o, 'a>,
    after: &'i Index<'n, 'b>,
    others: &'i (Others<'o>, Others<'n>),
}

impl Sides<'_, '_, '_, '_, '_> {
    fn package(&self, name: &str) -> Option<PackageDiff> {
        let none = index::Package::default();
        let (old, new) = (self.before.packages.get(name), self.after.packages.get(name));
        let others = self.others(name);
        let change = kind(
            old.is_some() || self.others.0.contains_key(name),
            new.is_some() || self.others.1.contains_key(name),
        );
        let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
        let bundles = self.bundles(old, new);
        let channels = self.channels(old, new);
        let (old_blob, new_blob) = (old.blobs.first(), new.blobs.first());
        let (mut default_channel, mut fields) = (None, Vec::new());
        if let (Some(a), Some(b)) = (old_blob, new_blob) {
            if a.default_channel != b.default_channel {
                default_channel =
                    Some(Texts { old: a.default_channel.to_string(), new: b.default_channel.to_string() });
            }
            fields = self.fields(a.at, || a.to_json(), b.at, || b.to_json());
            fields.retain(|field| field != "defaultChannel");
        }
        let deprecations = deprecations(old, new);
        let same = change == Kind::Changed
            && bundles.is_empty()
            && channels.is_empty()
            && deprecations.is_empty()
            && others.is_empty()
            && default_channel.is_none()
            && fields.is_empty();
        if same {
            return None;
        }
        let mut found = PackageDiff {
            name: name.to_owned(),
            change,
            default_channel,
            fields,
            channels,
            bundles,
            deprecations,
            others,
            paths_gained: Vec::new(),
            paths_lost: Vec::new(),
            stranded: Vec::new(),
        };
        compare_paths(old, new, &mut found);
        Some(found)
    }

    /// The fields in which two blobs differ. Blobs that are written in the same way are the same.
    fn fields(
        &self,
        old: At,
        old_json: impl FnOnce() -> serde_json::Value,
        new: At,
        new_json: impl FnOnce() -> serde_json::Value,
    ) -> Vec<String> {
        if self.before.catalog.text(old) == self.after.catalog.text(new) {
            return Vec::new();
        }
        let (old, new) = (old_json(), new_json());
        let empty = serde_json::Map::new();
        let (old, new) = (old.as_object().unwrap_or(&empty), new.as_object().unwrap_or(&empty));
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        keys.into_iter().filter(|key| old.get(*key) != new.get(*key)).cloned().collect()
    }

    fn channels(&self, old: &index::Package<'_, '_>, new: &index::Package<'_, '_>) -> Vec<ChannelDiff> {
        let mut found = Vec::new();
        for (name, (a, b)) in pairs(old, new) {
            let head = |channel: Option<&index::Channel<'_, '_>>| {
                channel
                    .and_then(|channel| channel.linked.as_ref().ok())
                    .map(|linked| linked.head().name.clone())
            };
            let (old_head, new_head) = (head(a).unwrap_or_default(), head(b).unwrap_or_default());
            let mut names: BTreeMap<&str, (Option<Edges>, Option<Edges>)> = BTreeMap::new();
            for entry in a.into_iter().flat_map(|channel| &channel.blob.entries) {
                names.entry(entry.name.as_str()).or_default().0 = Some(Edges::of(entry));
            }
            for entry in b.into_iter().flat_map(|channel| &channel.blob.entries) {
                names.entry(entry.name.as_str()).or_default().1 = Some(Edges::of(entry));
            }
            let mut entries: Vec<_> = names.into_iter().filter(|(_, (old, new))| old != new).collect();
            let version = |name: &str| new.version(name).or(old.version(name));
            entries.sort_by(|(a, _), (b, _)| version(a).cmp(&version(b)).then_with(|| a.cmp(b)));
            let entries: Vec<EntryDiff> = entries
                .into_iter()
                .map(|(name, (old, new))| EntryDiff {
                    name: name.to_owned(),
                    change: kind(old.is_some(), new.is_some()),
                    old,
                    new,
                })
                .collect();
            let fields = match (a, b) {
                (Some(a), Some(b)) => self.channel_fields(a.blob, b.blob, entries.is_empty()),
                _ => Vec::new(),
            };
            if a.is_some() && b.is_some() && entries.is_empty() && fields.is_empty() {
                continue;
            }
            found.push(ChannelDiff {
                name: name.to_owned(),
                change: kind(a.is_some(), b.is_some()),
                head: (old_head != new_head).then_some(Texts { old: old_head, new: new_head }),
                entries,
                fields,
            });
        }
        found
    }

    /// The fields of a channel that differ; its entries among them where only more than edges differs.
    fn channel_fields(
        &self,
        old: &fbc::Channel<'_>,
        new: &fbc::Channel<'_>,
        has_same_edges: bool,
    ) -> Vec<String> {
        let mut fields = self.fields(old.at, || old.to_json(), new.at, || new.to_json());
        let entries = |channel: serde_json::Value| channel["entries"].as_array().cloned().unwrap_or_default();
        fields.retain(|field| {
            field != "entries"
                || has_same_edges && !same_values(&entries(old.to_json()), &entries(new.to_json()))
        });
        fields
    }

    /// The blobs of other schemas of a package that differ.
    fn others(&self, package: &str) -> Vec<OtherDiff> {
        let (old, new) = (self.others.0.get(package), self.others.1.get(package));
        let keys = old.into_iter().flat_map(BTreeMap::keys).map(|(schema, name)| (*schema, *name));
        let new_keys = new.into_iter().flat_map(BTreeMap::keys).map(|(schema, name)| (*schema, *name));
        let keys: BTreeSet<(&str, &str)> = keys.chain(new_keys).collect();
        let of = |(schema, name): (&str, &str)| {
            let (a, b) =
                (old.and_then(|old| old.get(&(schema, name))), new.and_then(|new| new.get(&(schema, name))));
            let is_same = a.zip(b).is_some_and(|(a, b)| same_values(a, b));
            (!is_same).then(|| OtherDiff {
                schema: schema.to_owned(),
                name: name.to_owned(),
                change: kind(a.is_some(), b.is_some()),
            })
        };
        keys.into_iter().filter_map(of).collect()
    }

    fn bundles(&self, old: &index::Package<'_, '_>, new: &index::Package<'_, '_>) -> Vec<BundleDiff> {
        let mut found: Vec<(Option<&VersionRelease>, BundleDiff)> = Vec::new();
        let diff = |bundle: &index::Bundle<'_, '_>, change, fields| BundleDiff {
            name: bundle.blob.name.to_string(),
            version: bundle.version.as_ref().map(ToString::to_string),
            change,
            fields,
        };
        for bundle in &new.bundles {
            let Some(before) = old.bundle(&bundle.blob.name) else {
                found.push((bundle.version.as_ref(), diff(bundle, Kind::Added, Vec::new())));
                continue;
            };
            let (a, b) = (before.blob, bundle.blob);
            let fields = self.fields(a.at, || a.to_json(), b.at, || b.to_json());
            if !fields.is_empty() {
                found.push((bundle.version.as_ref(), diff(bundle, Kind::Changed, fields)));
            }
        }
        for bundle in old.bundles.iter().filter(|bundle| new.bundle(&bundle.blob.name).is_none()) {
            found.push((bundle.version.as_ref(), diff(bundle, Kind::Removed, Vec::new())));
        }
        found.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.name.cmp(&y.name)));
        found.into_iter().map(|(_, diff)| diff).collect()
    }
}

/// Whether two lists have the same values, in any order.
fn same_values(a: &[serde_json::Value], b: &[serde_json::Value]) -> bool {
    let sorted = |values: &[serde_json::Value]| {
        let mut texts: Vec<String> = values.iter().map(ToString::to_string).collect();
        texts.sort();
        texts
    };
    a == b || sorted(a) == sorted(b)
}

fn kind(is_old: bool, is_new: bool) -> Kind {
    match (is_old, is_new) {
        (false, _) => Kind::Added,
        (_, false) => Kind::Removed,
        _ => Kind::Changed,
    }
}

/// The names of the channels of both sides, and the first channel of each name.
fn pairs<'p, 'o, 'a, 'n, 'b>(
    old: &'p index::Package<'o, 'a>,
    new: &'p index::Package<'n, 'b>,
) -> BTreeMap<&'p str, (Option<&'p index::Channel<'o, 'a>>, Option<&'p index::Channel<'n, 'b>>)> {
    let mut pairs: BTreeMap<&str, (Option<_>, Option<_>)> = BTreeMap::new();
    for channel in &old.channels {
        pairs.entry(channel.blob.name.as_str()).or_default().0.get_or_insert(channel);
    }
    for channel in &new.channels {
        pairs.entry(channel.blob.name.as_str()).or_default().1.get_or_insert(channel);
    }
    pairs
}

impl Edges {
    fn of(entry: &fbc::Entry<'_>) -> Self {
        let some = |text: &fbc::Text<'_>| (!text.is_empty()).then(|| text.to_string());
        Self {
            replaces: some(&entry.replaces),
            skips: entry.skips.iter().map(ToString::to_string).collect(),
            skip_range: some(&entry.skip_range),
        }
    }
}

fn deprecations(old: &index::Package<'_, '_>, new: &index::Package<'_, '_>) -> Vec<DeprecationDiff> {
    let all = |package: &index::Package<'_, '_>| -> BTreeMap<(String, String), String> {
        let entries = package.deprecations.iter().flat_map(|blob| &blob.entries);
        let item = |entry: &fbc::Deprecation<'_>| {
            let reference = &entry.reference;
            ((reference.schema.to_string(), reference.name.to_string()), entry.message.to_string())
        };
        entries.map(item).collect()
    };
    let (mut before, mut after) = (all(old), all(new));
    let keys: BTreeSet<(String, String)> = before.keys().chain(after.keys()).cloned().collect();
    let diff = |key: (String, String)| {
        let (old, new) = (before.remove(&key), after.remove(&key));
        (old != new).then_some(DeprecationDiff { schema: key.0, name: key.1, old, new })
    };
    keys.into_iter().filter_map(diff).collect()
}

/// As many hops of a path are listed: all those of a long channel would add up to its square.
const MAX_HOPS: usize = 50;

/// Where a channel leads each version, under the rules of OLM v0.
struct Leads<'p, 'c, 'a> {
    ways: Option<NextHops>,
    package: &'p index::Package<'c, 'a>,
}

/// Where a channel leads an installed bundle; none when it leads nobody.
struct Lead<'l>(Option<(&'l NextHops, Course)>);

impl<'p, 'c, 'a> Leads<'p, 'c, 'a> {
    fn of(package: &'p index::Package<'c, 'a>, channel: Option<&index::Channel<'_, '_>>) -> Self {
        let about = About::in_package(package);
        let ways = channel.and_then(|channel| NextHops::of(&channel.blob.entries, about, Rules::V0).ok());
        Self { ways, package }
    }

    /// Of a bundle whose version may be unknown here.
    fn from(&self, from: &str, version: Option<&VersionRelease>) -> Lead<'_> {
        let version = self.package.version(from).or(version);
        Lead(self.ways.as_ref().map(|ways| (ways, ways.course(from, version))))
    }
}

impl Lead<'_> {
    fn reaches_head(&self) -> bool {
        self.0.is_some_and(|(ways, course)| ways.reaches_head(course))
    }

    /// Whether there is something to upgrade to, and it leads to the head.
    fn is_path(&self) -> bool {
        self.reaches_head() && self.0.is_some_and(|(_, course)| course.hops > 0)
    }

    fn path(&self, channel: &str, from: &str) -> PathDiff {
        let hops = self.0.map(|(ways, course)| ways.hops(course, MAX_HOPS)).unwrap_or_default();
        let all = self.0.map_or(0, |(_, course)| course.hops);
        PathDiff {
            channel: channel.to_owned(),
            from: from.to_owned(),
            to: hops.last().copied().unwrap_or_default().to_owned(),
            hops_left_out: (all > hops.len()).then(|| all - hops.len()),
            hops: hops.into_iter().map(str::to_owned).collect(),
        }
    }

    fn stranded(&self, channel: &str, from: &str) -> Stranded {
        let last = self.0.and_then(|(ways, course)| ways.last(course));
        Stranded {
            channel: channel.to_owned(),
            from: from.to_owned(),
            stops_at: last.unwrap_or(from).to_owned(),
        }
    }
}

fn compare_paths(old: &index::Package<'_, '_>, new: &index::Package<'_, '_>, found: &mut PackageDiff) {
    let version = |name: &str| new.version(name).or(old.version(name));
    for (name, (a, b)) in pairs(old, new) {
        let names = |channel: Option<&index::Channel<'_, '_>>| -> BTreeSet<String> {
            let entries = channel.into_iter().flat_map(|channel| &channel.blob.entries);
            entries.map(|entry| entry.name.to_string()).collect()
        };
        let (before, after) = (Leads::of(old, a), Leads::of(new, b));
        let (released, listed) = (names(a), names(b));
        let mut all: Vec<&String> = released.union(&listed).collect();
        all.sort_by(|a, b| version(a).cmp(&version(b)).then_with(|| a.cmp(b)));
        for from in all {
            let (had, has) = (before.from(from, version(from)), after.from(from, version(from)));
            match (had.is_path(), has.is_path()) {
                (false, true) => found.paths_gained.push(has.path(name, from)),
                (true, false) => found.paths_lost.push(had.path(name, from)),
                _ => {}
            }
            if released.contains(from) && had.reaches_head() && !has.reaches_head() {
                found.stranded.push(has.stranded(name, from));
            }
        }
        // What only edges led from: a removed entry takes them along.
        let (Some(channel), Some(_)) = (a, b) else { continue };
        let mut unlisted = unlisted(&found.name, &channel.blob.entries, version);
        unlisted.retain(|unlisted| !listed.contains(&unlisted.label));
        let reaches = |leads: &Leads<'_, '_, '_>, from: &Unlisted| {
            leads.from(&from.label, from.version()).reaches_head()
        };
        for lost in stranded(unlisted, |from| reaches(&before, from), |from| reaches(&after, from)) {
            found.paths_lost.push(before.from(&lost.label, lost.version()).path(name, &lost.label));
            found.stranded.push(after.from(&lost.label, lost.version()).stranded(name, &lost.label));
        }
    }
}

#[cfg(test)]
mod tests;
