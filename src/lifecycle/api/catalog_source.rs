//! CatalogSource: where OLM gets its offers from.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::named;

/// A source of offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CatalogSource {
    /// Name and namespace.
    pub metadata: ObjectMeta,
    /// Where it is.
    pub spec: CatalogSourceSpec,
    /// Whether it answers.
    pub status: CatalogSourceStatus,
}

/// Where a catalog is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CatalogSourceSpec {
    /// `grpc`, `configmap` or `internal`.
    pub source_type: String,
    /// The image that serves it.
    pub image: String,
    /// The address that serves it; counts before the image.
    pub address: String,
    /// Higher ones are asked first.
    pub priority: i64,
    /// The name people see.
    pub display_name: String,
}

/// Whether a catalog answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CatalogSourceStatus {
    /// What OLM's client says.
    pub connection_state: Option<ConnectionState>,
    /// A sentence when the spec is wrong.
    pub message: String,
    /// A word for it.
    pub reason: String,
}

/// What OLM's client says of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConnectionState {
    /// Where it connects to.
    pub address: String,
    /// `READY` or not.
    pub last_observed_state: String,
}

impl CatalogSource {
    /// Whether it answers. The health that Subscriptions name says only that its pod exists.
    pub fn is_ready(&self) -> bool {
        self.connection() == "READY"
    }

    /// What OLM's client says, empty before it tried.
    pub fn connection(&self) -> &str {
        self.status.connection_state.as_ref().map_or("", |state| state.last_observed_state.as_str())
    }

    /// The address or image that it is served from.
    pub fn source(&self) -> &str {
        if self.spec.address.is_empty() { &self.spec.image } else { &self.spec.address }
    }
}

named!(CatalogSource);
