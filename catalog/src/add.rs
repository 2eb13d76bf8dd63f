//! Adds bundles to a catalog: their blobs, and their entries in channels, placed by a version policy.
//!
//! [`add`] is pure: it takes a catalog and rendered bundles, and gives the texts of the files that change and a report of what
//! was done. Files are edited where they stand; what others wrote keeps its form, its comments and its order. A bundle that is in the catalog
//! already is never touched: a late version changes entries of channels only.

mod error;
mod plan;
mod policy;
mod report;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use olmkit_bundle::finding::Place;
use olmkit_bundle::names::{ChannelName, PackageName};

use crate::fbc::write::Format;
use crate::fbc::{self, Catalog, Entry};
use crate::graph::{self, VersionRelease};
use crate::index::Index;
use crate::render::{CsvFacts, Rendered};
use plan::{Placing, Plan};
use policy::Versioned;

pub use error::AddError;
pub use policy::{Policy, UnknownPolicy};
pub use report::{AddReport, AddedBundle, ChangedChannel, ChangedEntry, FileChange};

/// What to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The channels that the bundles go into; those of `placements` when empty.
    pub channels: Vec<ChannelName>,
    /// How their places there are chosen; when absent by the policy in `placements`, else by the edges of the bundle's
    /// ClusterServiceVersion, else by [`Policy::Replaces`].
    pub policy: Option<Policy>,
    /// What single bundles ask for, by name, where the request leaves it open.
    pub placements: BTreeMap<String, Placement>,
    /// Whether a bundle that is in one of the channels already must have the edges that the policy gives.
    pub strict: bool,
    /// The package's default channel; a new package gets the first of `channels` when none is given.
    pub default_channel: Option<ChannelName>,
    /// How new files are written; files that are there keep what they have.
    pub format: Format,
}

impl Request {
    /// Into these channels by this policy; new files in YAML.
    pub fn new(channels: Vec<ChannelName>, policy: impl Into<Option<Policy>>) -> Self {
        Self {
            channels,
            policy: policy.into(),
            placements: BTreeMap::new(),
            strict: false,
            default_channel: None,
            format: Format::Yaml,
        }
    }

    /// The channels of a bundle.
    fn channels_of(&self, bundle: &Rendered) -> &[ChannelName] {
        match self.placements.get(&*bundle.blob.name) {
            Some(own) if self.channels.is_empty() => &own.channels,
            _ => &self.channels,
        }
    }

    /// What chooses a bundle's edges.
    fn placing(&self, bundle: &Rendered) -> Placing<'_> {
        let recorded = self.placements.get(&*bundle.blob.name).and_then(|own| own.policy);
        let policy = self.policy.or(recorded);
        let own = Edges::of_csv(&bundle.csv).filter(|_| policy.is_none());
        Placing { channels: self.channels_of(bundle), policy: policy.unwrap_or_default(), own }
    }
}

/// Where a bundle asks to be put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Its channels.
    pub channels: Vec<ChannelName>,
    /// The policy that chooses its edges.
    pub policy: Option<Policy>,
}

/// A change to a catalog, not made yet.
#[derive(Clone, Debug)]
pub struct Change {
    /// The files that are new or different, by path.
    pub files: Vec<ChangedFile>,
    /// What was done, for people and programs.
    pub report: AddReport,
    /// Where the channels differ from what the bundles say.
    pub notes: Vec<String>,
}

/// A file that is new or different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// The path below the catalog's directory; empty when the catalog is a single file.
    pub path: String,
    /// The whole text.
    pub text: String,
    /// Whether there was no such file.
    pub created: bool,
}

/// The edges that lead to an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edges {
    /// The bundle that it takes over from.
    pub replaces: Option<String>,
    /// Bundles that may jump to it.
    pub skips: Vec<String>,
    /// Installed versions in this range may jump to it.
    pub skip_range: Option<String>,
}

/// Adds bundles of one package to its channels, in the order of their versions.
///
/// ```
/// use olmkit_catalog::{add::{self, Policy, Request}, fbc::{self, Catalog}, load::CatalogFiles, render::Rendered};
/// let version = serde_json::json!({"packageName": "redis", "version": "1.0.0"});
/// let property = fbc::Property { kind: "olm.package".into(), value: Some(version.into()), ..Default::default() };
/// let blob = fbc::Bundle {
///     name: "redis.v1.0.0".into(),
///     package: "redis".into(),
///     image: "example.com/redis-bundle:v1.0.0".into(),
///     properties: vec![property],
///     ..Default::default()
/// };
/// let request = Request::new(vec!["stable".parse().unwrap()], Policy::SemverSkippatch);
/// let empty = CatalogFiles::default();
/// let change = add::add(&Catalog::parse(&empty), &[Rendered { blob, csv: Default::default() }], &request).unwrap();
/// assert_eq!(change.files[0].path, "redis/catalog.yaml");
/// assert!(change.files[0].text.starts_with("---\ndefaultChannel: stable\nname: redis\nschema: olm.package\n---\nentries:\n- name: redis.v1.0.0\n"));
/// ```
///
/// # Errors
/// When a bundle has no place in the catalog; then nothing of it is changed.
pub fn add(catalog: &Catalog<'_>, bundles: &[Rendered], request: &Request) -> Result<Change, AddError> {
    if bundles.iter().any(|bundle| request.channels_of(bundle).is_empty()) {
        return Err(AddError::Nothing("channel"));
    }
    let index = Index::new(catalog);
    let mut plan = Plan::new(&index, bundles, request)?;
    let mut sorted: Vec<(&Rendered, VersionRelease)> =
        bundles.iter().map(|bundle| Ok((bundle, version_of(bundle)?))).collect::<Result<_, AddError>>()?;
    sorted.sort_by(|a, b| a.1.cmp(&b.1).then_with(|| a.0.blob.name.cmp(&b.0.blob.name)));
    for (bundle, version) in sorted {
        plan.add(bundle, version, &request.placing(bundle))?;
    }
    plan.check_channels()?;
    plan.choose_default_channel(request)?;
    text::change(&plan, request.format)
}

/// The edges that a bundle would get in a channel, for the ClusterServiceVersion that is yet to be written; those that it has,
/// where it is in the channel already.
///
/// # Errors
/// When the bundle would have no place there.
pub fn edges(
    catalog: &Catalog<'_>,
    package: &PackageName,
    channel: &ChannelName,
    bundle: &str,
    version: &VersionRelease,
    policy: Policy,
) -> Result<Edges, AddError> {
    let index = Index::new(catalog);
    let mut plan = Plan::empty(&index, package.as_str())?;
    plan.open(channel)?;
    plan.enter(bundle, version, &Placing::by(policy, channel))?;
    plan.check_channels()?;
    let entries = plan.channels.first().map(|channel| channel.entries.as_slice()).unwrap_or_default();
    let entry = entries.iter().find(|entry| *entry.name == *bundle);
    Ok(entry.map(Edges::of).unwrap_or_default())
}

/// The entries of a channel with that of a bundle which the package has already, placed by a policy. In a channel that has it already it must
/// have the edges that the policy gives.
pub(crate) fn entries<'a>(
    index: &Index<'_, 'a>,
    package: &str,
    channel: &ChannelName,
    bundle: &str,
    policy: Policy,
) -> Result<Vec<Entry<'a>>, AddError> {
    let mut plan = Plan::empty(index, package)?;
    plan.open(channel)?;
    let version = plan.version(bundle).cloned().ok_or_else(|| AddError::UnknownVersion {
        entry: bundle.to_owned(),
        channel: channel.to_string(),
        place: Box::new(Place::file(index.catalog.name)),
    })?;
    plan.channels.iter().try_for_each(|channel| channel.check_edges(index, bundle, policy))?;
    plan.enter(bundle, &version, &Placing::by(policy, channel))?;
    plan.check_channels()?;
    Ok(plan.channels.into_iter().next().map(|channel| channel.entries).unwrap_or_default())
}

/// Entries with one more, in its place among them.
pub(crate) fn placed<'a, 'v>(
    entries: &[Entry<'a>],
    new: Entry<'a>,
    version: impl Fn(&str) -> Option<&'v VersionRelease>,
) -> Vec<Entry<'a>> {
    let mut entries = entries.to_vec();
    let known = entries.iter().map(|entry| {
        Some(Versioned { name: entry.name.to_string(), version: version(&entry.name)?.clone() })
    });
    let at = match (known.collect::<Option<Vec<_>>>(), version(&new.name)) {
        (Some(mut sorted), Some(own)) => {
            sorted.sort_by(|a, b| a.version.cmp(&b.version));
            let at = sorted.partition_point(|other| other.version < *own);
            policy::place(&entries, &sorted, at)
        }
        _ => entries.len(),
    };
    entries.insert(at, new);
    entries
}

impl Edges {
    fn of(entry: &Entry<'_>) -> Self {
        let some = |text: &fbc::Text<'_>| (!text.is_empty()).then(|| text.to_string());
        Self {
            replaces: some(&entry.replaces),
            skips: entry.skips.iter().map(ToString::to_string).collect(),
            skip_range: some(&entry.skip_range),
        }
    }

    /// Those that a ClusterServiceVersion names, if it names any.
    fn of_csv(csv: &CsvFacts) -> Option<Self> {
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let edges = Self {
            replaces: some(&csv.replaces),
            skips: csv.skips.clone(),
            skip_range: some(&csv.skip_range),
        };
        (edges != Self::default()).then_some(edges)
    }

    /// Whether the same versions lead to the entry, in whatever order they are listed.
    fn are_as(&self, other: &Self) -> bool {
        let sorted = |edges: &Self| edges.skips.iter().cloned().collect::<BTreeSet<_>>();
        self.replaces == other.replaces
            && self.skip_range == other.skip_range
            && sorted(self) == sorted(other)
    }
}

impl fmt::Display for Edges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.replaces.as_ref().map(|name| format!("replaces `{name}`")));
        if !self.skips.is_empty() {
            parts.push(format!("skips `{}`", self.skips.join("`, `")));
        }
        parts.extend(self.skip_range.as_ref().map(|range| format!("has the skipRange `{range}`")));
        if parts.is_empty() {
            parts.push("replaces nothing".to_owned());
        }
        f.write_str(&parts.join(" and "))
    }
}

fn version_of(bundle: &Rendered) -> Result<VersionRelease, AddError> {
    let packages = crate::property::packages(&bundle.blob);
    let text = packages.first().map(|(_, package)| package.version.clone()).unwrap_or_default();
    let fail = |why: String| AddError::Version {
        bundle: bundle.blob.name.to_string(),
        version: text.to_string(),
        why,
    };
    let version = text.parse().map_err(|error: semver::Error| fail(error.to_string()))?;
    let release = packages.first().map(|(_, package)| &*package.release).unwrap_or_default();
    let release = graph::Release::parse(release).map_err(|error| fail(error.to_string()))?;
    Ok(VersionRelease { version, release })
}

#[cfg(test)]
pub(crate) mod tests;
