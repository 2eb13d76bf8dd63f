//! The custom resources the operator owns, one file per API version.
//!
//! The types are the source of the CRD: schema, defaults, bounds and CEL rules are derived from them,
//! and a field's doc comment is its description. Start at [`v1::RedisClusterSpec`].

pub mod v1;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use v1::RedisCluster;

/// The CustomResourceDefinition with every version that is served.
pub fn definition() -> CustomResourceDefinition {
    RedisCluster::crd()
}
