//! PackageManifest: what a catalog offers, as OLM's aggregated API tells it. It knows versions, but no edges.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use olmkit_bundle::csv::InstallMode;
use serde::{Deserialize, Serialize};

use super::named;

/// A package of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PackageManifest {
    /// The package's name.
    pub metadata: ObjectMeta,
    /// What is offered.
    pub status: PackageManifestStatus,
}

/// What is offered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PackageManifestStatus {
    /// The package.
    pub package_name: String,
    /// The CatalogSource.
    pub catalog_source: String,
    /// Its namespace.
    pub catalog_source_namespace: String,
    /// The channel that is taken when none is named.
    pub default_channel: String,
    /// The channels.
    pub channels: Vec<PackageChannel>,
}

/// A channel of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PackageChannel {
    /// Its name.
    pub name: String,
    /// Its head.
    #[serde(rename = "currentCSV")]
    pub current_csv: String,
    /// About the head.
    #[serde(rename = "currentCSVDesc")]
    pub head: HeadDescription,
    /// Its bundles.
    pub entries: Vec<PackageEntry>,
}

/// About the head of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeadDescription {
    /// The version.
    pub version: String,
    /// Which namespaces it can watch.
    pub install_modes: Vec<InstallMode>,
}

/// A bundle of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PackageEntry {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

named!(PackageManifest);
