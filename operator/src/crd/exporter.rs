//! `spec.exporter`: metrics of every Redis node for Prometheus.
#![expect(unreachable_pub, reason = "`KubeSchema` copies each struct, with its `pub`, into a function")]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::v1::Resources;

/// A second container in each pod, which serves metrics of its Redis node to Prometheus.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exporter {
    /// Image of redis_exporter; version 1.83.0 or later.
    #[serde(default = "default_image")]
    #[schemars(length(min = 1, max = 512))]
    pub image: String,

    /// CPU and memory of each exporter. Kubernetes' own defaults apply when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

fn default_image() -> String {
    "docker.io/oliver006/redis_exporter:v1.88.0".into()
}
