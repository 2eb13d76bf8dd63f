//! Edits catalogs in place: comments, key order, quotes and everything that an edit does not change stay as they are.
//!
//! [`edit`] is pure: it takes a catalog and a [`Request`], and gives the files that change. The result has been validated: an
//! edit that `opm validate` would refuse, or after which a version no longer reaches the head of its channel, is an error.
//!
//! A `draft` holds the blobs of a package under change, `crate::texts` turns it into texts. Each verb has a module of its own.

mod blob_id;
mod comments;
mod deprecate;
mod draft;
mod format;
mod init;
mod merge;
mod migrate;
mod package;
mod promote;
mod prune;
mod remove;
mod requirements;
mod spelling;
mod split;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use olmkit_bundle::finding::{Finding, Level, Place};
use olmkit_bundle::names::ChannelName;
use olmkit_bundle::suggest::did_you_mean;

use crate::add::Policy;
use crate::fbc::Catalog;
use crate::fbc::write::Format;
use crate::graph::GraphError;
use crate::index::Index;
use crate::load::CatalogFiles;
use crate::path::{Query, paths};
use crate::render::MigrateError;
use crate::texts::unread::{UNREAD_HELP, unread};
use crate::validate::{self, first_message};

pub use init::{Icon, Init};
pub use merge::{Conflict, merge};
pub use prune::Keep;
pub use requirements::provided_groups;

pub use crate::texts::{ChangedFile, TextError};

/// What to edit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Request {
    /// Put a version into a further channel.
    Promote {
        /// The package.
        package: String,
        /// The version, or the bundle's name.
        version: String,
        /// The channel it goes into, which need not exist.
        to: ChannelName,
        /// How its place there is chosen; by the edges it has in its other channels when none is given.
        policy: Option<Policy>,
    },
    /// Tell users that something is deprecated.
    Deprecate {
        /// The package.
        package: String,
        /// What of it.
        target: Target,
        /// What users are told.
        message: String,
    },
    /// Take a deprecation back.
    Undeprecate {
        /// The package.
        package: String,
        /// What of it.
        target: Target,
    },
    /// Remove a package, a channel, a version, or a version from one channel.
    Remove {
        /// The package.
        package: String,
        /// The channel.
        channel: Option<String>,
        /// The version, or the bundle's name.
        version: Option<String>,
        /// Whether its successors skip it from now on, so that clusters which have it installed can still upgrade.
        keep_path: bool,
        /// Whether clusters may be left without an upgrade.
        strand: bool,
    },
    /// Keep some packages, channels and versions, and remove everything else.
    Prune(Keep),
    /// Choose the channel that a Subscription without one gets.
    SetDefault {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
    },
    /// Give a channel another name.
    RenameChannel {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
        /// Its new name.
        to: ChannelName,
    },
    /// Make a package that has no channels yet, or change what it shows.
    Init(Init),
    /// Give every file the layout of opm and `catalog render`.
    Format,
    /// Replace the manifests in bundles' blobs by the metadata that consoles show.
    Migrate,
    /// Give each package a directory of its own.
    Split,
}

impl Request {
    /// The package that it is about, if it is about one.
    pub fn package(&self) -> Option<&str> {
        match self {
            Self::Prune(_) | Self::Format | Self::Migrate | Self::Split => None,
            Self::Init(Init { package, .. })
            | Self::Promote { package, .. }
            | Self::Deprecate { package, .. }
            | Self::Undeprecate { package, .. }
            | Self::Remove { package, .. }
            | Self::SetDefault { package, .. }
            | Self::RenameChannel { package, .. } => Some(package),
        }
    }
}

/// A part of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The package itself.
    Package,
    /// A channel.
    Channel(String),
    /// A version, or a bundle's name.
    Version(String),
}

/// A change to a catalog, not made yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The files that are different, new or gone, by path; none when there is nothing to change.
    pub files: Vec<ChangedFile>,
    /// What was done, or why there was nothing to do, in sentences.
    pub summary: Vec<String>,
}

/// An edit that cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// Parts of the catalog cannot be read.
    #[error("the catalog cannot be read completely: {}", first_message(.findings))]
    Unreadable {
        /// What is wrong with it.
        findings: Vec<Finding>,
    },
    /// A part of a file is text that no blob is read from; it would be lost or contradict the edit.
    #[error("the text from here on is not read: only the first document before a `---` is")]
    Unread {
        /// Where it starts.
        place: Box<Place>,
    },
    /// A value of another catalog cannot be copied.
    #[error("a value cannot be copied: {why}")]
    Value {
        /// Where it stands.
        place: Box<Place>,
        /// Why not.
        why: String,
    },
    /// The catalog does not have the package.
    #[error("the catalog has no package `{package}`")]
    NoPackage {
        /// The package.
        package: String,
        /// Those it has.
        known: Vec<String>,
    },
    /// No version is as new as those to keep.
    #[error("{} has no version {least} or later", TooNew(.package, .default_channel.as_deref()))]
    NoVersionFrom {
        /// The package.
        package: String,
        /// The default channel, where others have such a version.
        default_channel: Option<String>,
        /// The lowest version to keep.
        least: String,
        /// The highest that is there.
        highest: Option<String>,
    },
    /// The package does not have the channel.
    #[error("`{package}` has no channel `{channel}`")]
    NoChannel {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
        /// Those it has.
        known: Vec<String>,
    },
    /// The package does not have the version.
    #[error("`{package}` has no version `{version}`")]
    NoVersion {
        /// The package.
        package: String,
        /// The version.
        version: String,
        /// Those it has.
        known: Vec<String>,
    },
    /// Several bundles differ in build metadata or release alone.
    #[error("`{version}` is ambiguous: {}", .bundles.join(", "))]
    Ambiguous {
        /// The version.
        version: String,
        /// The bundles.
        bundles: Vec<String>,
    },
    /// A channel of that name exists.
    #[error("`{package}` already has a channel `{channel}`")]
    ChannelExists {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
        /// Where.
        place: Box<Place>,
    },
    /// The default channel would be gone.
    #[error("`{channel}` is the default channel of `{package}`")]
    DefaultChannel {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
        /// Where the package says so.
        place: Option<Box<Place>>,
    },
    /// Clusters would be left without an upgrade.
    #[error("removing {removed} strands clusters: {}", .clusters.join("; "))]
    Strands {
        /// What was to be removed.
        removed: String,
        /// Which clusters, and in which channels.
        clusters: Vec<String>,
        /// Whether all of them can upgrade with `keep_path`.
        can_keep: bool,
    },
    /// A channel would be left without entries.
    #[error("the default channel `{channel}` of `{package}` would have no version left")]
    LastVersion {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
    },
    /// No version can skip the head of a channel.
    #[error("`{bundle}` is the head of `{channel}`: no later version can skip it")]
    NoSuccessor {
        /// The bundle.
        bundle: String,
        /// The channel.
        channel: String,
    },
    /// No version of the channel leads to the bundle.
    #[error("no upgrade path leads from `{head}`, the head of `{channel}`, to `{bundle}`")]
    NoPath {
        /// The bundle.
        bundle: String,
        /// The channel.
        channel: String,
        /// Its head.
        head: String,
        /// The head's entry.
        place: Option<Box<Place>>,
    },
    /// The bundle cannot be placed by a policy.
    #[error("`{bundle}` has no place in the channel `{channel}`")]
    Policy {
        /// The bundle.
        bundle: String,
        /// The channel.
        channel: String,
        /// Why not.
        #[source]
        source: Box<crate::add::AddError>,
    },
    /// The bundle is in the channel already, with edges that the policy does not give.
    #[error(transparent)]
    OtherEdges {
        /// What differs.
        source: Box<crate::add::AddError>,
    },
    /// A channel of the package is broken as it is.
    #[error("the channel `{channel}` is broken")]
    Broken {
        /// The channel.
        channel: String,
        /// Its place.
        place: Box<Place>,
        /// What is wrong with it.
        #[source]
        source: GraphError,
    },
    /// A channel would be broken.
    #[error("the channel `{channel}` would be broken")]
    Breaks {
        /// The channel.
        channel: String,
        /// Its place.
        place: Box<Place>,
        /// What would be wrong with it, by the names of entries.
        #[source]
        source: BrokenChannel,
    },
    /// A version would no longer reach the head of a channel.
    #[error("{} could no longer upgrade to the head of `{channel}`", backticked(.bundles))]
    Stranded {
        /// The channel.
        channel: String,
        /// The bundles.
        bundles: Vec<String>,
    },
    /// The result would not be valid.
    #[error("the result would be invalid: {}", first_message(.findings))]
    Invalid {
        /// What would be wrong with it.
        findings: Vec<Finding>,
    },
    /// It is a template.
    #[error("this is a template (`{schema}`), not a catalog")]
    Template {
        /// Where it says so.
        place: Box<Place>,
        /// Its schema.
        schema: String,
    },
    /// The edit takes something that the template does not say.
    #[error("the template does not say {what}")]
    NotInTemplate {
        /// The template.
        place: Box<Place>,
        /// What it does not say.
        what: String,
        /// Its schema.
        schema: String,
    },
    /// A template would be left without bundles.
    #[error("the template would have no version left")]
    EmptyTemplate {
        /// The template.
        place: Box<Place>,
    },
    /// The entries of a template cannot be edited so.
    #[error("cannot edit the entries of the template")]
    InTemplate {
        /// The template.
        place: Box<Place>,
        /// Why not.
        #[source]
        source: Box<EditError>,
    },
    /// A bundle cannot be migrated.
    #[error("cannot migrate a bundle")]
    Migrate {
        /// The bundle.
        place: Box<Place>,
        /// Why.
        #[source]
        source: MigrateError,
    },
    /// A catalog in a single file has no directories.
    #[error("`{path}` is a single file")]
    SingleFile {
        /// The file.
        path: String,
    },
    /// Two catalogs have something, and not the same.
    #[error("{}", differences(.conflicts))]
    Conflicts {
        /// What they have; at least one.
        conflicts: Vec<Conflict>,
    },
    /// The text of a deprecation is empty.
    #[error("the message of a deprecation cannot be empty")]
    NoMessage,
    /// A text cannot be changed.
    #[error(transparent)]
    Text(#[from] TextError),
}

/// The package, or its default channel, that has no version that is new enough.
struct TooNew<'n>(&'n str, Option<&'n str>);

impl fmt::Display for TooNew<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(channel) => write!(f, "the default channel `{channel}` of `{}`", self.0),
            None => write!(f, "`{}`", self.0),
        }
    }
}

/// What would be wrong with a channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BrokenChannel(pub String);

impl EditError {
    /// Where the trouble is.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Unreadable { findings } | Self::Invalid { findings } => findings.first()?.place.as_ref(),
            Self::ChannelExists { place, .. } | Self::Broken { place, .. } | Self::Breaks { place, .. } => {
                Some(place)
            }
            Self::Value { place, .. }
            | Self::Unread { place }
            | Self::NotInTemplate { place, .. }
            | Self::EmptyTemplate { place } => Some(place),
            Self::Migrate { place, .. } | Self::Template { place, .. } | Self::InTemplate { place, .. } => {
                Some(place)
            }
            Self::Conflicts { conflicts } => Some(&conflicts.first()?.second),
            Self::DefaultChannel { place, .. } | Self::NoPath { place, .. } => place.as_deref(),
            Self::Policy { source, .. } | Self::OtherEdges { source } => source.place(),
            Self::Text(error) => error.place(),
            _ => None,
        }
    }

    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        let some = |text: &str| Some(text.to_owned());
        let known = |known: &[String], what: &str| match known {
            [] => None,
            _ => Some(format!("its {what} are {}", backticked(known))),
        };
        match self {
            Self::Unreadable { .. } | Self::Broken { .. } => {
                some("run `olmkit catalog validate` to list every problem")
            }
            Self::Unread { .. } => Some(UNREAD_HELP.to_owned()),
            Self::Value { .. } => some(VALUE_HELP),
            Self::NoPackage { known: all, package } => {
                let near = did_you_mean(package, all.iter().map(String::as_str));
                near.or_else(|| known(all, "packages"))
            }
            Self::NoVersionFrom { default_channel, highest, .. } => {
                let lower = highest.as_ref().map(|highest| {
                    format!("its highest version is `{highest}`: pass a lower --min-version")
                })?;
                let other = "make another channel the default first, with `olmkit catalog set-default`";
                Some(default_channel.as_ref().map_or(lower.clone(), |_| format!("{lower}, or {other}")))
            }
            Self::NoChannel { known: all, channel, .. } => {
                let near = did_you_mean(channel, all.iter().map(String::as_str));
                match (near, known(all, "channels")) {
                    (Some(near), Some(known)) => Some(format!("{near} {known}")),
                    (_, known) => known,
                }
            }
            Self::NoVersion { known: all, .. } => known(all, "versions"),
            Self::Ambiguous { .. } => some("pass the bundle's name instead"),
            Self::ChannelExists { .. } => some("choose another name"),
            Self::DefaultChannel { .. } => some(
                "make another channel the default first, with `olmkit catalog set-default`, or remove the whole package",
            ),
            Self::LastVersion { .. } => some(
                "omit --version to remove the whole package, or make another channel the default first, with `olmkit catalog set-default`",
            ),
            Self::Strands { can_keep: true, .. } => some(
                "pass --keep-path, and the next version takes over the upgrade edges; or pass --strand to remove it all the same",
            ),
            Self::Strands { .. } => some(
                "pass --strand to remove it all the same; or announce the removal first with `olmkit catalog deprecate`",
            ),
            Self::NoSuccessor { .. } => {
                some("omit --keep-path, name another channel with --channel, or add a later version first")
            }
            Self::NoPath { .. } => some(
                "promote a version in between first, or pass --policy replaces to add an edge from the head",
            ),
            Self::Policy { source, .. } | Self::OtherEdges { source } => source.help().map(str::to_owned),
            Self::Breaks { .. } | Self::Stranded { .. } => {
                some("change the edges of its neighbors first, or remove them too")
            }
            Self::Invalid { findings } => findings.first()?.help.clone(),
            Self::InTemplate { source, .. } => source.help(),
            Self::Template { schema, .. } => Some(template_help(schema).to_owned()),
            Self::NotInTemplate { .. } => some(
                "expand it with `olmkit catalog template` and edit the result, or change this file by hand",
            ),
            Self::EmptyTemplate { .. } => some("remove the file, and what names it"),
            Self::SingleFile { .. } => some("move it into a directory, and pass the directory"),
            Self::Conflicts { .. } => {
                some("make them the same, or remove one of them, then run the command again")
            }
            Self::Text(error) => error.help().map(str::to_owned),
            _ => None,
        }
    }
}

/// What to do about a value that cannot be written.
pub const VALUE_HELP: &str = "change the value, such as to a text in quotes";

/// Where to make an edit that a template cannot have.
fn template_help(of: &str) -> &'static str {
    match of {
        crate::template::schema::SEMVER => {
            "its channels follow from versions: change its `bundles` in this file, then run `olmkit catalog template`"
        }
        crate::template::schema::COMPOSITE => {
            "change the files that its components name as `input`, then run `olmkit catalog template`"
        }
        _ => "change its `entries` in this file, then run `olmkit catalog template`",
    }
}

fn differences(conflicts: &[Conflict]) -> String {
    let what: Vec<_> = conflicts.iter().map(|conflict| conflict.what.as_str()).collect();
    match conflicts {
        [only] => format!("{} differs from the one in {}", only.what, only.first),
        _ => format!("{} differ from what the catalog has", what.join(", ")),
    }
}

/// `a`, `b` and `c`, the first few of them.
fn backticked(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<_> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    if names.len() > SHOWN {
        shown.push(format!("{} more", names.len() - SHOWN));
    }
    match shown.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => shown.join(""),
    }
}

/// Edits a catalog.
///
/// ```
/// use olmkit_catalog::{edit::{self, Request, Target}, load::CatalogFiles};
/// let files = CatalogFiles::from_text("catalog.yaml", "
/// {schema: olm.package, name: redis, defaultChannel: stable}
/// ---
/// schema: olm.channel
/// package: redis
/// name: stable
/// entries:
/// - name: redis.v1.0.0 # the first one
/// - name: redis.v1.1.0
///   replaces: redis.v1.0.0
/// ---
/// {schema: olm.bundle, package: redis, name: redis.v1.0.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.0.0}}]}
/// ---
/// {schema: olm.bundle, package: redis, name: redis.v1.1.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.1.0}}]}
/// ");
/// let request =
///     Request::Remove { package: "redis".into(), channel: None, version: Some("1.1.0".into()), keep_path: false, strand: true };
/// let change = edit::edit(&files, &request).unwrap();
/// let text = change.files[0].new.as_ref().unwrap();
/// assert!(text.contains("- name: redis.v1.0.0 # the first one\n---\n") && !text.contains("1.1.0"));
/// ```
///
/// # Errors
/// When the edit cannot be made, or its result would be invalid.
pub fn edit(files: &CatalogFiles, request: &Request) -> Result<Change, EditError> {
    let catalog = Catalog::parse(files);
    let index = readable(&catalog)?;
    // A package that only a template has.
    let is_missing = |package: &str| index.packages.get(package).is_none_or(|known| known.blobs.is_empty());
    match crate::template::find(&catalog) {
        Some(_) if matches!(request, Request::Init(_)) => {
            template::refuse_single(&catalog)?;
            change(&index, files, request)
        }
        Some(found) if template::is_target(request, is_missing) => template::edit(&catalog, found, request),
        _ => change(&index, files, request),
    }
}

/// The change that a request asks for, of a result that is valid.
fn change(index: &Index<'_, '_>, files: &CatalogFiles, request: &Request) -> Result<Change, EditError> {
    let catalog = index.catalog;
    let mut change = match request {
        Request::Promote { package, version, to, policy } => {
            promote::promote(index, package, version, to, *policy)
        }
        Request::Deprecate { package, target, message } => {
            deprecate::deprecate(index, package, target, Some(message))
        }
        Request::Undeprecate { package, target } => deprecate::deprecate(index, package, target, None),
        Request::Remove { package, channel, version, keep_path, strand } => {
            let way = remove::OfClusters { keep_path: *keep_path, strand: *strand };
            remove::remove(index, package, channel.as_deref(), version.as_deref(), way)
        }
        Request::Prune(keep) => prune::prune(index, keep),
        Request::SetDefault { package, channel } => package::set_default(index, package, channel),
        Request::RenameChannel { package, channel, to } => {
            package::rename_channel(index, package, channel, to)
        }
        Request::Init(init) => init::init(index, init),
        // The blobs stay the same, so what is wrong with them stays, too.
        Request::Format => return format::format(catalog),
        Request::Migrate => migrate::migrate(catalog),
        Request::Split => split::split(catalog),
    }?;
    let has_channels = |package| {
        index
            .packages
            .get(package)
            .is_some_and(|known: &crate::index::Package<'_, '_>| !known.channels.is_empty())
    };
    let tolerated = match request {
        Request::Init(init) if !has_channels(init.package.as_str()) => {
            &["package-without-channels", "default-channel-unknown"][..]
        }
        _ => &[],
    };
    let unmet = check(files, catalog, &change, tolerated)?;
    if let Request::Remove { .. } | Request::Prune(_) = request {
        change.summary.extend(unmet);
    }
    Ok(change)
}

/// The catalog by package, if all of it could be read.
fn readable<'c, 'a>(catalog: &'c Catalog<'a>) -> Result<Index<'c, 'a>, EditError> {
    let index = Index::new(catalog);
    if !catalog.faults.is_empty() {
        return Err(EditError::Unreadable { findings: validate::faults_first(&index) });
    }
    match unread(catalog) {
        Some(place) => Err(EditError::Unread { place: Box::new(place) }),
        None => Ok(index),
    }
}

/// Refuses a change after which opm would refuse the catalog, or a version that is still in its channel no longer reaches its head.
/// Says which bundles lack a requirement after it.
fn check(
    files: &CatalogFiles,
    catalog: &Catalog<'_>,
    change: &Change,
    tolerated: &[&str],
) -> Result<Vec<String>, EditError> {
    if change.files.is_empty() {
        return Ok(Vec::new());
    }
    let after = changed(files, &change.files);
    let new = Catalog::parse(&after);
    let mut findings = validate::validate(&new);
    findings.retain(|finding| finding.level == Level::Error && !tolerated.contains(&finding.code.name));
    if !findings.is_empty() {
        return Err(EditError::Invalid { findings });
    }
    let reaching = |catalog: &Catalog<'_>| -> BTreeSet<(String, String, String)> {
        let Ok(paths) = paths(catalog, &Query::default()) else { return BTreeSet::new() };
        let reaching = paths.iter().filter(|path| path.reaches_head);
        reaching.map(|path| (path.package.into(), path.channel.into(), path.from.into())).collect()
    };
    let (before, now) = (reaching(catalog), reaching(&new));
    let lost: Vec<_> = before.difference(&now).collect();
    for channel in &new.channels {
        let is_here = |lost: &&&(String, String, String)| {
            let (package, name, from) = **lost;
            *package == *channel.package
                && *name == *channel.name
                && channel.entries.iter().any(|entry| *entry.name == **from)
        };
        let bundles: Vec<String> = lost.iter().filter(is_here).map(|(.., from)| from.clone()).collect();
        if !bundles.is_empty() {
            return Err(EditError::Stranded { channel: channel.name.to_string(), bundles });
        }
    }
    Ok(requirements::newly_unmet(catalog, &new))
}

/// The files of a catalog after a change.
pub fn changed(files: &CatalogFiles, changes: &[ChangedFile]) -> CatalogFiles {
    let by_path: BTreeMap<&str, &ChangedFile> =
        changes.iter().map(|change| (change.path.as_str(), change)).collect();
    let change_of = |path: &str| by_path.get(path).copied();
    let file = |path: &str, text: &String| merge::file(path.to_owned(), text.clone());
    let kept = files.files.iter().filter_map(|old| match change_of(&old.path) {
        None => Some(old.clone()),
        Some(change) => Some(file(&old.path, change.new.as_ref()?)),
    });
    let created = changes.iter().filter(|change| change.old.is_none());
    let created = created.filter_map(|change| Some(file(&change.path, change.new.as_ref()?)));
    let mut all: Vec<_> = kept.chain(created).collect();
    all.sort_by(|a, b| a.path.cmp(&b.path));
    CatalogFiles { name: files.name.clone(), files: all }
}

/// New files get this format.
const FORMAT: Format = Format::Yaml;

#[cfg(test)]
mod tests;
