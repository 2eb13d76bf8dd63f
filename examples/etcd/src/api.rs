//! The API: EtcdCluster. A doc comment is the description that `kubectl explain` shows.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The etcd cluster that the user wants.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "etcd.example.com",
    version = "v1",
    kind = "EtcdCluster",
    namespaced,
    doc = "An etcd cluster: `spec.size` members that keep the same data and survive the loss of a minority.",
    derive = "PartialEq",
    status = "EtcdClusterStatus",
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.readyMembers",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyMembers"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    // It becomes the name of Services, of pods and of a CronJob.
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')")
        .message("metadata.name must be a DNS label of at most 40 characters that begins with a letter"),
    validation = Rule::new("has(self.spec.restore) == has(oldSelf.spec.restore)")
        .message("restore is read only when the cluster is created: create another EtcdCluster")
)]
pub(crate) struct EtcdClusterSpec {
    /// Number of members. An even number survives no more losses than the odd one below it.
    #[schemars(range(min = 1, max = 7))]
    #[x_kube(validation = Rule::new("self % 2 == 1").message("size must be odd: 1, 3, 5 or 7"))]
    pub(crate) size: i32,
    /// Minor version of etcd. From 3.5 to 3.6 the members are restarted one by one; there is no way back.
    #[x_kube(validation = Rule::new("self == oldSelf || self == '3.6'").message("etcd cannot be downgraded"))]
    pub(crate) version: Version,
    /// Snapshots on a volume, by a CronJob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) backup: Option<Backup>,
    /// The snapshot that the cluster begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("restore is read only when the cluster is created: create another EtcdCluster"))]
    pub(crate) restore: Option<Restore>,
}

/// A minor version of etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Version {
    #[serde(rename = "3.5")]
    V35,
    #[serde(rename = "3.6")]
    V36,
}

/// Where and when snapshots are kept.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Backup {
    /// Name of a PersistentVolumeClaim. Each snapshot becomes a file `JOB.db`.
    #[schemars(length(min = 1, max = 253))]
    pub(crate) claim_name: String,
    /// When, as a CronJob has it: `0 3 * * *` is every day at three.
    #[schemars(length(min = 1))]
    pub(crate) schedule: String,
}

/// A snapshot.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Restore {
    /// Name of a PersistentVolumeClaim.
    #[schemars(length(min = 1, max = 253))]
    pub(crate) claim_name: String,
    /// Name of the file.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"))]
    pub(crate) snapshot: String,
}

/// What the operator last saw of the etcd cluster.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EtcdClusterStatus {
    /// etcd's own id of the cluster. Once it is known, the cluster is never made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cluster_id: Option<String>,
    /// Names of the voting members, which are those of their pods.
    #[serde(default)]
    pub(crate) members: Vec<String>,
    /// Number of voting members that answer.
    #[serde(default)]
    pub(crate) ready_members: i32,
    /// The oldest version that a member runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// Label selector of the pods, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) selector: Option<String>,
    /// Conditions of the cluster: Available, Progressing, Degraded.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub(crate) conditions: Vec<Condition>,
}
