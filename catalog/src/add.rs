//! Adds bundles to a catalog: their blobs, and their entries in channels, placed by a version policy.
//!
//! [`add`] is pure: it takes a catalog and rendered bundles, and gives the texts of the files that change and an account of what
//! was done. Files are edited where they stand; what others wrote keeps its form, its comments and its order. A bundle that is in the catalog
//! already is never touched: a late version changes entries of channels only.

mod account;
mod policy;
mod text;

use std::collections::BTreeMap;

use olmkit_bundle::finding::{Finding, Place};
use olmkit_bundle::names::{ChannelName, PackageName};

use crate::base64;
use crate::edit::unread::unread;
use crate::edit::{TextError, fault_findings};
use crate::fbc::write::Format;
use crate::fbc::{self, Catalog, Entry, Icon};
use crate::graph::{self, GraphError, VersionRelease};
use crate::index::{self, Index};
use crate::render::Rendered;
use policy::Versioned;

pub use account::{Account, AddedBundle, ChangedChannel, ChangedEntry, FileChange};
pub use policy::{Policy, UnknownPolicy};

/// What to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The channels that the bundles go into.
    pub channels: Vec<ChannelName>,
    /// How their places there are chosen.
    pub policy: Policy,
    /// Whether a bundle that is in one of the channels already must have the edges that the policy gives.
    pub strict: bool,
    /// The package's default channel; a new package gets the first of `channels` when none is given.
    pub default_channel: Option<ChannelName>,
    /// How new files are written; files that are there keep what they have.
    pub format: Format,
}

impl Request {
    /// Into these channels by this policy; new files in YAML.
    pub fn new(channels: Vec<ChannelName>, policy: Policy) -> Self {
        Self { channels, policy, strict: false, default_channel: None, format: Format::Yaml }
    }
}

/// A change to a catalog, not made yet.
#[derive(Clone, Debug)]
pub struct Change {
    /// The files that are new or different, by path.
    pub files: Vec<ChangedFile>,
    /// What was done, for people and programs.
    pub account: Account,
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

/// A bundle that cannot be added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// There is nothing to add, or nowhere to add it.
    #[error("no {0} to add")]
    Nothing(&'static str),
    /// Parts of the catalog cannot be read, so that nobody knows what is in it.
    #[error("the catalog cannot be read completely: {}", first_message(.findings))]
    Unreadable {
        /// What is wrong with it.
        findings: Vec<Finding>,
    },
    /// Bundles of several packages at once.
    #[error("`{bundle}` belongs to the package `{package}`, the bundles before it to `{other}`")]
    Packages {
        /// The bundle.
        bundle: String,
        /// Its package.
        package: String,
        /// The package of the others.
        other: String,
    },
    /// The package has a name that no catalog may have.
    #[error("`{bundle}` cannot be added")]
    PackageName {
        /// The bundle.
        bundle: String,
        /// What is wrong with the name.
        #[source]
        source: olmkit_bundle::names::NameError,
    },
    /// Not a semantic version.
    #[error("`{bundle}` has the version `{version}`, which is not semantic: {why}")]
    Version {
        /// The bundle.
        bundle: String,
        /// Its version.
        version: String,
        /// What is wrong with it.
        why: String,
    },
    /// The bundle was named more than once.
    #[error("`{bundle}` is given twice")]
    GivenTwice {
        /// The bundle.
        bundle: String,
    },
    /// The bundle is in the channel already.
    #[error("`{bundle}` is already in the channel `{channel}`")]
    InChannel {
        /// The bundle.
        bundle: String,
        /// The channel.
        channel: String,
        /// Its entry; none when it was given twice.
        place: Option<Box<Place>>,
    },
    /// The bundle is in the channel already, with edges that the policy does not give.
    #[error(
        "`{bundle}` is already in the channel `{channel}`, with other edges than the policy `{policy}` gives"
    )]
    OtherEdges {
        /// The bundle.
        bundle: String,
        /// The channel.
        channel: String,
        /// The policy.
        policy: Policy,
        /// Its entry.
        place: Option<Box<Place>>,
    },
    /// Another bundle has the image.
    #[error("`{bundle}` has the image `{image}`, which `{other}` has already")]
    ImageTaken {
        /// The bundle.
        bundle: String,
        /// Its image.
        image: String,
        /// The bundle that has it.
        other: String,
        /// Where that stands; none when it was given along with the other.
        place: Option<Box<Place>>,
    },
    /// A part of a file is text that no blob is read from.
    #[error("the text from here on is not read: only the first document before a `---` is")]
    Unread {
        /// Where it starts.
        place: Box<Place>,
    },
    /// The catalog is a template.
    #[error("this is a template (`{schema}`), not a catalog")]
    Template {
        /// Where it says so.
        place: Box<Place>,
        /// Its schema.
        schema: String,
    },
    /// The package has another bundle of that version.
    #[error("`{bundle}` has the version {version}, which `{other}` has already")]
    VersionTaken {
        /// The bundle.
        bundle: String,
        /// Its version.
        version: String,
        /// The bundle that has it.
        other: String,
        /// Where that stands; none when it was given along with the other.
        place: Option<Box<Place>>,
    },
    /// The package has the bundle, with other contents.
    #[error("the catalog has another `{bundle}`: {difference}")]
    BundleDiffers {
        /// The bundle.
        bundle: String,
        /// In which field they differ first.
        difference: String,
        /// The bundle in the catalog.
        place: Option<Box<Place>>,
    },
    /// By policy `replaces` the channel would go backwards.
    #[error("`{bundle}` is not higher than the head of the channel `{channel}`, `{head}`")]
    NotHigher {
        /// The bundle.
        bundle: String,
        /// The channel.
        channel: String,
        /// Its head.
        head: String,
        /// The head's entry.
        place: Option<Box<Place>>,
    },
    /// The channel has entries whose versions nobody knows.
    #[error("the version of `{entry}` in the channel `{channel}` is not known")]
    UnknownVersion {
        /// The entry.
        entry: String,
        /// The channel.
        channel: String,
        /// The entry's place.
        place: Box<Place>,
    },
    /// A blob that there can be only one of is there again: whichever is changed, the other one contradicts it.
    #[error("{what} is defined twice")]
    Twice {
        /// What it is.
        what: String,
        /// The second one.
        place: Box<Place>,
    },
    /// The channel is not sound as it is.
    #[error("the channel `{channel}` is invalid")]
    Channel {
        /// The channel.
        channel: String,
        /// The channel's place.
        place: Box<Place>,
        /// The first thing that is wrong with it.
        #[source]
        source: GraphError,
    },
    /// The channel would be invalid any more.
    #[error("with `{bundle}` the channel `{channel}` would be invalid")]
    Breaks {
        /// The bundle.
        bundle: String,
        /// The channel.
        channel: String,
        /// The channel's place.
        place: Option<Box<Place>>,
        /// The first thing that would be wrong with it.
        #[source]
        source: GraphError,
    },
    /// The default channel is none of the package's.
    #[error("`{package}` has no channel `{channel}` to be its default")]
    DefaultChannel {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
    },
    /// A file cannot be changed as it should.
    #[error(transparent)]
    Text(#[from] TextError),
}

impl AddError {
    /// Where the trouble is.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::InChannel { place, .. }
            | Self::OtherEdges { place, .. }
            | Self::ImageTaken { place, .. }
            | Self::VersionTaken { place, .. }
            | Self::BundleDiffers { place, .. }
            | Self::NotHigher { place, .. }
            | Self::Breaks { place, .. } => place.as_deref(),
            Self::UnknownVersion { place, .. }
            | Self::Twice { place, .. }
            | Self::Channel { place, .. }
            | Self::Unread { place }
            | Self::Template { place, .. } => Some(place),
            Self::Text(error) => error.place(),
            Self::Unreadable { findings } => findings.first()?.place.as_ref(),
            _ => None,
        }
    }

    /// The way out, where there is one.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unreadable { .. } => "`catalog validate` lists every place",
            Self::Packages { .. } => "add the bundles of one package at a time",
            Self::Version { .. } => "write `spec.version` as `MAJOR.MINOR.PATCH`, without `v`",
            Self::GivenTwice { .. } => "name every bundle once",
            Self::InChannel { .. } => "leave it out, or name another channel",
            Self::VersionTaken { .. } => "give the bundle another version",
            Self::OtherEdges { .. } => {
                "leave out --policy to keep its edges, or remove it from the channel first with `olmkit catalog remove`"
            }
            Self::ImageTaken { .. } => {
                "an image holds one bundle: name it by tag or digest, such as `:v{{.Version}}`"
            }
            Self::Unread { .. } => crate::edit::UNREAD_HELP,
            Self::Template { .. } => {
                "add the bundle's image to this file by hand, or pass the catalog that `olmkit catalog template` makes of it"
            }
            Self::BundleDiffers { .. } => {
                "a published bundle does not change: give the new one another version"
            }
            Self::NotHigher { .. } => "use the policy `semver` or `semver-skippatch`, which find its place",
            Self::UnknownVersion { .. } | Self::Channel { .. } => "`catalog validate` lists what is wrong",
            Self::Twice { .. } => {
                "put what both say into one of them and remove the other, then run the command again"
            }
            Self::Breaks { .. } => {
                "the edges of its neighbours are not those of the policy: edit the channel by hand"
            }
            Self::Text(error) => return error.help(),
            Self::DefaultChannel { .. } => "name a channel that the package has, or one the bundle goes into",
            _ => return None,
        })
    }
}

fn first_message(findings: &[Finding]) -> &str {
    findings.first().map_or("", |finding| &finding.message)
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
    if request.channels.is_empty() {
        return Err(AddError::Nothing("channel"));
    }
    let index = Index::new(catalog);
    let mut plan = Plan::new(&index, bundles, request)?;
    let mut sorted: Vec<(&Rendered, VersionRelease)> =
        bundles.iter().map(|bundle| Ok((bundle, version_of(bundle)?))).collect::<Result<_, AddError>>()?;
    sorted.sort_by(|a, b| a.1.cmp(&b.1).then_with(|| a.0.blob.name.cmp(&b.0.blob.name)));
    for (bundle, version) in sorted {
        plan.add(bundle, version)?;
    }
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
    plan.open(channel, policy)?;
    plan.enter(bundle, version)?;
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
    plan.open(channel, policy)?;
    let version = plan.version(bundle).cloned().ok_or_else(|| AddError::UnknownVersion {
        entry: bundle.to_owned(),
        channel: channel.to_string(),
        place: Box::new(Place::file(index.catalog.name)),
    })?;
    plan.channels.iter().try_for_each(|channel| channel.check_edges(index, bundle))?;
    plan.enter(bundle, &version)?;
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

/// What the catalog is going to be.
struct Plan<'p, 'c, 'a> {
    index: &'p Index<'c, 'a>,
    package: String,
    channels: Vec<ChannelPlan<'c, 'a>>,
    /// Bundles that are new to the catalog, in the order of their versions.
    new: Vec<&'p Rendered>,
    /// Every bundle that was asked for, and whether it is new.
    asked: Vec<(&'p Rendered, bool)>,
    /// The versions of the bundles that are new.
    versions: BTreeMap<String, VersionRelease>,
    /// The `olm.package` blob, when it is new.
    new_package: Option<fbc::Package<'static>>,
    /// The default channel, when it changes in a package that is there.
    new_default_channel: Option<String>,
    /// Whether entries that are there must have the edges that the policy gives.
    is_strict: bool,
}

/// What a channel is going to be.
struct ChannelPlan<'c, 'a> {
    name: String,
    /// The blob, when the channel is there.
    blob: Option<&'c fbc::Channel<'a>>,
    policy: Policy,
    entries: Vec<Entry<'a>>,
    /// The same by version.
    sorted: Vec<Versioned>,
    head: Option<String>,
}

impl<'p, 'c, 'a> Plan<'p, 'c, 'a> {
    fn empty(index: &'p Index<'c, 'a>, package: &str) -> Result<Self, AddError> {
        if !index.catalog.faults.is_empty() {
            return Err(AddError::Unreadable { findings: fault_findings(index) });
        }
        if let Some(place) = unread(index.catalog) {
            return Err(AddError::Unread { place: Box::new(place) });
        }
        if let Some((template, place)) = crate::edit::single_template(index.catalog) {
            return Err(AddError::Template { place: Box::new(place), schema: template.schema.to_string() });
        }
        let blobs = index.packages.get(package).map(|package| package.blobs.as_slice()).unwrap_or_default();
        if let [_, second, ..] = blobs {
            return Err(AddError::Twice {
                what: format!("the package `{package}`"),
                place: Box::new(index.catalog.place(second.at.with(second.name.span))),
            });
        }
        Ok(Self {
            index,
            package: package.to_owned(),
            channels: Vec::new(),
            new: Vec::new(),
            asked: Vec::new(),
            versions: BTreeMap::new(),
            new_package: None,
            new_default_channel: None,
            is_strict: false,
        })
    }

    fn new(index: &'p Index<'c, 'a>, bundles: &'p [Rendered], request: &Request) -> Result<Self, AddError> {
        let first = bundles.first().ok_or(AddError::Nothing("bundle"))?;
        let package = &first.blob.package;
        for bundle in bundles {
            if bundle.blob.package != *package {
                return Err(AddError::Packages {
                    bundle: bundle.blob.name.to_string(),
                    package: bundle.blob.package.to_string(),
                    other: package.to_string(),
                });
            }
        }
        if let Err(source) = package.parse::<PackageName>() {
            return Err(AddError::PackageName { bundle: first.blob.name.to_string(), source });
        }
        let mut plan = Self::empty(index, package)?;
        plan.is_strict = request.strict;
        for channel in &request.channels {
            if !plan.channels.iter().any(|open| open.name == channel.as_str()) {
                plan.open(channel, request.policy)?;
            }
        }
        Ok(plan)
    }

    fn blobs(&self) -> Option<&'p index::Package<'c, 'a>> {
        self.index.packages.get(self.package.as_str())
    }

    fn version(&self, name: &str) -> Option<&VersionRelease> {
        self.versions.get(name).or_else(|| self.blobs()?.version(name))
    }

    /// Takes up a channel, which need not be there yet.
    fn open(&mut self, name: &ChannelName, policy: Policy) -> Result<(), AddError> {
        let mut found = self
            .blobs()
            .into_iter()
            .flat_map(|package| &package.channels)
            .filter(|channel| *channel.blob.name == *name.as_str());
        let first = found.next();
        if let Some(second) = found.next() {
            return Err(AddError::Twice {
                what: format!("the channel `{name}` of `{}`", self.package),
                place: Box::new(self.index.catalog.place(second.at())),
            });
        }
        let Some(channel) = first else {
            self.channels.push(ChannelPlan {
                name: name.to_string(),
                blob: None,
                policy,
                entries: Vec::new(),
                sorted: Vec::new(),
                head: None,
            });
            return Ok(());
        };
        let linked = channel.linked.as_ref().map_err(|errors| AddError::Channel {
            channel: name.to_string(),
            place: Box::new(self.index.catalog.place(channel.at())),
            source: errors.first().cloned().unwrap_or(GraphError::Empty),
        })?;
        let mut sorted = Vec::new();
        for (at, entry) in channel.blob.entries.iter().enumerate() {
            let version = self.version(&entry.name).cloned().ok_or_else(|| AddError::UnknownVersion {
                entry: entry.name.to_string(),
                channel: name.to_string(),
                place: Box::new(self.index.catalog.place(channel.entry_at(at))),
            })?;
            sorted.push(Versioned { name: entry.name.to_string(), version });
        }
        sorted.sort_by(|a, b| a.version.cmp(&b.version));
        self.channels.push(ChannelPlan {
            name: name.to_string(),
            blob: Some(channel.blob),
            policy,
            entries: channel.blob.entries.clone(),
            sorted,
            head: Some(linked.head().name.clone()),
        });
        Ok(())
    }

    fn add(&mut self, bundle: &'p Rendered, version: VersionRelease) -> Result<(), AddError> {
        let name = bundle.blob.name.as_str();
        let known = self.check_bundle(bundle, &version)?;
        if self.asked.iter().any(|(other, _)| *other.blob.name == *name) {
            return Err(AddError::GivenTwice { bundle: name.to_owned() });
        }
        if !known {
            self.check_image(bundle)?;
            self.channels.iter().try_for_each(|channel| self.check_absent(channel, name))?;
        }
        if self.is_strict {
            self.channels.iter().try_for_each(|channel| channel.check_edges(self.index, name))?;
        }
        self.enter(name, &version)?;
        self.asked.push((bundle, !known));
        if !known {
            self.new.push(bundle);
            self.versions.insert(name.to_owned(), version);
        }
        Ok(())
    }

    fn check_absent(&self, channel: &ChannelPlan<'_, '_>, name: &str) -> Result<(), AddError> {
        if !channel.entries.iter().any(|entry| *entry.name == *name) {
            return Ok(());
        }
        let place = channel.place_of(self.index, name);
        Err(AddError::InChannel { bundle: name.to_owned(), channel: channel.name.clone(), place })
    }

    /// Whether the bundle is in the catalog already, as it is.
    fn check_bundle(&self, bundle: &Rendered, version: &VersionRelease) -> Result<bool, AddError> {
        let name = bundle.blob.name.as_str();
        let catalog = self.index.catalog;
        let mut same = self
            .blobs()
            .into_iter()
            .flat_map(|package| &package.bundles)
            .filter(|bundle| *bundle.blob.name == *name);
        let known = same.next();
        if let Some(second) = same.next() {
            return Err(AddError::Twice {
                what: format!("the bundle `{name}`"),
                place: Box::new(catalog.place(second.at(&second.blob.name))),
            });
        }
        if let Some(known) = known {
            if let Some(difference) = difference(&known.blob.to_json(), &bundle.blob.to_json(), "") {
                let place = Some(Box::new(catalog.place(known.at(&known.blob.name))));
                return Err(AddError::BundleDiffers { bundle: name.to_owned(), difference, place });
            }
            return Ok(true);
        }
        let text = version.to_string();
        let taken = |other: &str, place| AddError::VersionTaken {
            bundle: name.to_owned(),
            version: text.clone(),
            other: other.to_owned(),
            place,
        };
        for other in self.blobs().into_iter().flat_map(|package| &package.bundles) {
            if other.version.as_ref().is_some_and(|version| version.to_string() == text) {
                let place =
                    other.packages.first().map(|(at, _)| Box::new(catalog.place(other.property_at(*at))));
                return Err(taken(&other.blob.name, place));
            }
        }
        match self.versions.iter().find(|(_, version)| version.to_string() == text) {
            Some((other, _)) if other != name => Err(taken(other, None)),
            _ => Ok(false),
        }
    }

    /// Refuses the image of another bundle.
    fn check_image(&self, bundle: &Rendered) -> Result<(), AddError> {
        let image = bundle.blob.image.as_str();
        let taken = |other: &fbc::Bundle<'_>, place| AddError::ImageTaken {
            bundle: bundle.blob.name.to_string(),
            image: image.to_owned(),
            other: other.name.to_string(),
            place,
        };
        if image.is_empty() {
            return Ok(());
        }
        let catalog = self.index.catalog;
        if let Some(other) = catalog.bundles.iter().find(|other| *other.image == *image) {
            return Err(taken(other, Some(Box::new(catalog.place(other.at.with(other.image.span))))));
        }
        match self.new.iter().find(|other| *other.blob.image == *image) {
            Some(other) => Err(taken(&other.blob, None)),
            None => Ok(()),
        }
    }

    /// Gives a bundle its entry in every channel that does not have it yet.
    fn enter(&mut self, name: &str, version: &VersionRelease) -> Result<(), AddError> {
        let index = self.index;
        let new = Versioned { name: name.to_owned(), version: version.clone() };
        for channel in &mut self.channels {
            if channel.entries.iter().any(|entry| *entry.name == *name) {
                continue;
            }
            let place_of = |entry: &str| channel.place_of(index, entry);
            if channel.policy == Policy::Replaces
                && let Some(head) = &channel.head
                && channel.sorted.iter().any(|other| other.name == *head && other.version > *version)
            {
                return Err(AddError::NotHigher {
                    bundle: name.to_owned(),
                    channel: channel.name.clone(),
                    place: place_of(head),
                    head: head.clone(),
                });
            }
            let same = channel.sorted.iter().find(|other| other.version == *version);
            if let Some(other) = same.filter(|_| channel.policy != Policy::Replaces) {
                // Of the same precedence, told apart by build metadata alone: a policy cannot put them in order.
                let (version, place) = (version.to_string(), place_of(&other.name));
                return Err(AddError::VersionTaken {
                    bundle: name.to_owned(),
                    version,
                    other: other.name.clone(),
                    place,
                });
            }
            channel.policy.insert(&mut channel.entries, &channel.sorted, &new, channel.head.as_deref());
            let at = channel.sorted.partition_point(|other| other.version <= new.version);
            channel.sorted.insert(at, new.clone());
            let linked = graph::Channel::link(&channel.name, &channel.entries, |_| None);
            let linked = linked.map_err(|errors| AddError::Breaks {
                bundle: name.to_owned(),
                channel: channel.name.clone(),
                place: channel.blob.map(|blob| Box::new(index.catalog.place(blob.at.with(blob.name.span)))),
                source: errors.into_iter().next().unwrap_or(GraphError::Empty),
            })?;
            channel.head = Some(linked.head().name.clone());
        }
        Ok(())
    }

    fn choose_default_channel(&mut self, request: &Request) -> Result<(), AddError> {
        let package = self.blobs();
        let blob = package.and_then(|package| package.blobs.first());
        let wanted = request.default_channel.as_ref().map(ChannelName::as_str);
        if let Some(wanted) = wanted {
            let there = package.into_iter().flat_map(|package| &package.channels);
            let known = there
                .map(|channel| channel.blob.name.as_str())
                .chain(self.channels.iter().map(|c| c.name.as_str()));
            if !known.into_iter().any(|known| known == wanted) {
                return Err(AddError::DefaultChannel {
                    package: self.package.clone(),
                    channel: wanted.to_owned(),
                });
            }
        }
        match blob {
            Some(blob) => {
                self.new_default_channel =
                    wanted.filter(|wanted| *blob.default_channel != **wanted).map(str::to_owned);
            }
            None => {
                let first = request.channels.first().map(ChannelName::as_str).unwrap_or_default();
                let newest = self.asked.last().map(|(bundle, _)| &bundle.csv);
                // One that is not in base64 would spoil the catalog; it is the bundle's validator that speaks of it.
                let icon =
                    newest.and_then(|csv| csv.icon.clone()).filter(|(data, _)| base64::decode(data).is_ok());
                self.new_package = Some(fbc::Package {
                    name: self.package.clone().into(),
                    default_channel: wanted.unwrap_or(first).to_owned().into(),
                    description: newest.map(|csv| csv.description.clone()).unwrap_or_default().into(),
                    icon: icon.map(|(data, media_type)| Icon {
                        data: data.into(),
                        media_type: media_type.into(),
                        unknown: Vec::new(),
                    }),
                    ..fbc::Package::default()
                });
            }
        }
        Ok(())
    }
}

impl ChannelPlan<'_, '_> {
    /// Refuses an entry that is there with edges that the policy does not give.
    fn check_edges(&self, index: &Index<'_, '_>, name: &str) -> Result<(), AddError> {
        match self.entries.iter().find(|entry| *entry.name == *name) {
            Some(entry) if !self.policy.allows(entry, &self.sorted) => Err(AddError::OtherEdges {
                bundle: name.to_owned(),
                channel: self.name.clone(),
                policy: self.policy,
                place: self.place_of(index, name),
            }),
            _ => Ok(()),
        }
    }

    /// Where an entry stands, when it is in the catalog already.
    fn place_of(&self, index: &Index<'_, '_>, entry: &str) -> Option<Box<Place>> {
        let blob = self.blob?;
        let entry = blob.entries.iter().find(|other| *other.name == *entry)?;
        Some(Box::new(index.catalog.place(blob.at.with(entry.name.span))))
    }
}

/// The first field in which two blobs differ.
fn difference(ours: &serde_json::Value, theirs: &serde_json::Value, path: &str) -> Option<String> {
    use serde_json::Value as Json;
    if ours == theirs {
        return None;
    }
    let inner = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (ours, theirs) {
        (Json::Object(a), Json::Object(b)) => {
            let keys = a.keys().chain(b.keys());
            let mut different = keys.filter(|key| a.get(*key) != b.get(*key));
            let key = different.next()?;
            difference(a.get(key).unwrap_or(&Json::Null), b.get(key).unwrap_or(&Json::Null), &inner(key))
        }
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            let at = a.iter().zip(b).position(|(a, b)| a != b)?;
            difference(&a[at], &b[at], &format!("{path}[{at}]"))
        }
        _ => Some(format!("they differ in `{path}`")),
    }
}

#[cfg(test)]
pub(crate) mod tests;
