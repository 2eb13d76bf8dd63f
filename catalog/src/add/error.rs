//! Why a bundle cannot be added, and what to do about it.

use olmkit_bundle::finding::{Finding, Place, summary};

use super::Policy;
use crate::graph::GraphError;
use crate::texts::TextError;
use crate::texts::unread::UNREAD_HELP;
use crate::validate::first_message;

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
        /// Whether the one in the catalog has no image.
        is_embedded: bool,
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
    /// The default channel is not one of the package's.
    #[error("`{package}` has no channel `{channel}` to be its default")]
    DefaultChannel {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
    },
    /// opm would refuse the catalog, because of the bundles.
    #[error("opm would refuse the catalog: {}", summary(.findings))]
    Invalid {
        /// What would be wrong with it.
        findings: Vec<Finding>,
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
                "omit --policy to keep its edges, or remove it from the channel first with `olmkit catalog remove`"
            }
            Self::ImageTaken { .. } => {
                "an image contains one bundle: name it by tag or digest, such as `:v{{.Version}}`"
            }
            Self::Unread { .. } => UNREAD_HELP,
            Self::Template { .. } => {
                "add the bundle's image to this file by hand, or expand it with `olmkit catalog template` and pass the result"
            }
            Self::BundleDiffers { is_embedded: true, difference, .. } if difference.ends_with("`image`") => {
                "the catalog contains the bundle's manifests and names no image: to refer to its image, remove the bundle with `olmkit catalog remove` (the package, if it is its only version) and add it again; to leave it as it is, pass --embed"
            }
            Self::BundleDiffers { difference, .. } if difference.ends_with("`image`") => {
                "pass the --image-ref-template, or the reference, that names the same image as before; a new image needs a new version"
            }
            Self::BundleDiffers { .. } => {
                "a published bundle does not change: give the new one another version"
            }
            Self::NotHigher { .. } => "use the policy `semver` or `semver-skippatch`, which find its place",
            Self::UnknownVersion { .. } | Self::Channel { .. } => "`catalog validate` lists what is wrong",
            Self::Twice { .. } => "merge them into one and remove the other, then run the command again",
            Self::Breaks { source: GraphError::SkipRange { .. }, .. } => {
                "write `olm.skipRange` in the ClusterServiceVersion as a range of versions, such as `>=1.0.0 <1.2.0`"
            }
            Self::Breaks { .. } => {
                "its edges and those of its neighbours do not fit together: choose a version policy with --policy, or edit the channel by hand"
            }
            Self::Invalid { .. } => {
                "nothing was written: correct the bundle, and add it again; `olmkit bundle validate --suite install` names the places"
            }
            Self::Text(error) => return error.help(),
            Self::DefaultChannel { .. } => "name a channel that the package has, or one the bundle goes into",
            _ => return None,
        })
    }
}
