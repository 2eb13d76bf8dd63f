//! What was done to a catalog, for people and programs.

use schemars::JsonSchema;
use serde::Serialize;

use super::Edges;
use super::plan::{ChannelPlan, Plan};

/// `olmkit.added/v1`: what `catalog add` did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Account")]
pub struct AddReport {
    /// `olmkit.added/v1`
    pub schema: &'static str,
    /// The package.
    pub package: String,
    /// Its default channel.
    pub default_channel: String,
    /// What its default channel was before, if that was another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_default_channel: Option<String>,
    /// The bundles that were asked for, by version.
    pub bundles: Vec<AddedBundle>,
    /// The channels they went into, in the order they were asked for.
    pub channels: Vec<ChangedChannel>,
    /// The files that change, by path.
    pub files: Vec<FileChange>,
}

/// A bundle that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddedBundle {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its image; empty when it has none.
    pub image: String,
    /// Whether it is new to the catalog; otherwise it only went into further channels.
    pub added: bool,
}

/// A channel with what is new in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedChannel {
    /// Its name.
    pub name: String,
    /// Whether it is new.
    pub added: bool,
    /// The bundle that new installations get now.
    pub head: String,
    /// The entries that are new or have new edges, in the order of the channel.
    pub entries: Vec<ChangedEntry>,
}

/// An entry that is new or has new edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedEntry {
    /// The bundle.
    pub name: String,
    /// Whether it is new.
    pub added: bool,
    /// The bundle it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// The bundles it skips.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub skips: Vec<String>,
    /// The versions that may jump to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_range: Option<String>,
}

/// A file that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// The path below the catalog's directory.
    pub path: String,
    /// Whether it is new.
    pub added: bool,
}

impl AddReport {
    pub(super) fn of(plan: &Plan<'_, '_, '_>, files: Vec<FileChange>) -> Self {
        let bundle = |(bundle, added): &(&crate::render::Rendered, bool)| AddedBundle {
            name: bundle.blob.name.to_string(),
            version: plan.version(&bundle.blob.name).map(ToString::to_string).unwrap_or_default(),
            image: bundle.blob.image.to_string(),
            added: *added,
        };
        let channel = |channel: &ChannelPlan<'_, '_>| ChangedChannel {
            name: channel.name.clone(),
            added: channel.blob.is_none(),
            head: channel.head.clone().unwrap_or_default(),
            entries: channel.changes().map(|(_, entry, added)| changed(entry, added)).collect(),
        };
        let there = plan
            .blobs()
            .and_then(|package| package.blobs.first())
            .map(|blob| blob.default_channel.to_string());
        let made = plan.new_package.as_ref().map(|blob| blob.default_channel.to_string());
        Self {
            schema: "olmkit.added/v1",
            package: plan.package.clone(),
            previous_default_channel: there.clone().filter(|_| plan.new_default_channel.is_some()),
            default_channel: plan.new_default_channel.clone().or(made).or(there).unwrap_or_default(),
            bundles: plan.asked.iter().map(bundle).collect(),
            channels: plan.channels.iter().map(channel).collect(),
            files,
        }
    }
}

fn changed(entry: &crate::fbc::Entry<'_>, added: bool) -> ChangedEntry {
    let Edges { replaces, skips, skip_range } = Edges::of(entry);
    ChangedEntry { name: entry.name.to_string(), added, replaces, skips, skip_range }
}
