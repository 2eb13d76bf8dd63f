//! `cache.example.com/v1alpha1`: what the first users wrote. Stored as v1.
//!
//! Deprecated since 0.5.0. docs/version-policy.md promises two minor versions of notice, so 0.7.0 is the first that may set
//! `served = false`; a later one drops it from the CRD, once `migrate-storage` has run (docs/redis-storage-migration.md).
#![expect(unreachable_pub, reason = "`KubeSchema` copies each struct, with its `pub`, into a function")]

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::v1::RedisClusterStatus;

/// The Redis Cluster that the user wants, in the words of the first version.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cache.example.com",
    version = "v1alpha1",
    kind = "RedisCluster",
    plural = "redisclusters",
    shortname = "rdc",
    namespaced,
    storage = false,
    deprecated = "cache.example.com/v1alpha1 RedisCluster is deprecated, and no longer served from release 0.7.0 on; use cache.example.com/v1",
    doc = "A Redis Cluster: `spec.size` Redis nodes that share 16384 hash slots.",
    derive = "PartialEq",
    status = "RedisClusterStatus",
    printcolumn(
        name = "Size",
        type_ = "integer",
        json_path = ".spec.size",
        description = "Redis nodes wanted"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct RedisClusterSpec {
    /// Number of Redis nodes in the whole cluster; each node is one pod.
    #[schemars(range(min = 1, max = 500))]
    pub size: i32,

    /// Image that runs Redis; version 7.0 or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,

    /// The most memory that each node may use for data. In v1 it is `spec.config.maxmemory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[0-9]+(b|kb?|mb?|gb?)?$"))]
    pub max_memory: Option<String>,

    /// What the cluster is for. v1 has no such field; it is kept in an annotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub description: Option<String>,
}
