//! `cache.example.com/v1`: the RedisCluster that is served and stored.
//!
//! Once released, this API only grows by optional fields. A rule that is added later would refuse objects that exist, and OLM v1
//! refuses every change of `x-kubernetes-validations`, so what later fields need is checked in [`super::check`].
#![expect(unreachable_pub, reason = "`KubeSchema` copies each struct, with its `pub`, into a function")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::Condition};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{exporter::Exporter, pods::Pods, user::User};

/// The Redis Cluster that the user wants.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cache.example.com",
    version = "v1",
    kind = "RedisCluster",
    plural = "redisclusters",
    shortname = "rdc",
    namespaced,
    doc = "A Redis Cluster: `spec.size` Redis nodes that share 16384 hash slots.",
    derive = "PartialEq",
    status = "RedisClusterStatus",
    // `kubectl scale --timeout` waits for the status path to reach the wanted number: ready nodes are what
    // its user waits for.
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.readyNodes",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size", description = "Redis nodes wanted"),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyNodes",
        description = "Redis nodes that answer and are part of the cluster"
    ),
    printcolumn(
        name = "Shards",
        type_ = "integer",
        json_path = ".status.shards",
        description = "Primaries that own slots"
    ),
    // With `-o wide` only.
    printcolumn(
        name = "Slots",
        type_ = "integer",
        json_path = ".status.slotsCovered",
        description = "Slots that are served, of 16384",
        priority = 1
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#,
        description = "Whether every slot is served"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "What the operator is doing"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    // The longest names derived from it are the label `<name>-<revision hash>` and the Service
    // `<name>-headless`, both limited to 63 characters.
    validation = Rule::new("size(self.metadata.name) <= 52")
        .message("metadata.name must have at most 52 characters: names of pods and labels are derived from it"),
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("metadata.name must start with a letter and hold only lower case letters, digits and `-`: a Service gets this name"),
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.size % (1 + self.replicasPerShard) == 0")
        .message("size must be a multiple of 1 + replicasPerShard: a shard is one primary and its replicas")
        .field_path(".size"),
    // New pods would have to take the place of all old ones, data included; nothing does that.
    validation = Rule::new("has(self.storage) == has(oldSelf.storage)")
        .message("storage can be neither added to a cluster nor taken away: create another RedisCluster and move the data")
)]
pub struct RedisClusterSpec {
    /// Number of Redis nodes in the whole cluster, replicas included; each node is one pod. The cluster has size / (1 + replicasPerShard) shards.
    #[schemars(range(min = 1, max = 500))]
    pub size: i32,

    /// Number of replicas of each primary. With 0 every node is a primary, and a node that is lost takes its slots with it until it is back.
    #[serde(default)]
    #[schemars(range(min = 0, max = 5))]
    pub replicas_per_shard: i32,

    /// Image that runs Redis; version 7.0 or later.
    #[serde(default = "default_image")]
    #[schemars(length(min = 1, max = 512))]
    pub image: String,

    /// Directives for redis.conf, for example `maxmemory: 512mb`. A new value of a directive that Redis takes while it runs reaches all nodes at once; other directives, and removing one, replace pods. Directives that decide how nodes find and trust each other belong to the operator and are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "config_schema")]
    #[x_kube(
        validation = Rule::new("self.all(k, k.matches('^[a-z][a-z0-9-]*$'))")
            .message("a directive is written in lower case letters, digits and `-`"),
        validation = Rule::new(
            "self.all(k, !k.startsWith('cluster-') && !k.startsWith('tls-') && !(k in ['aclfile', 'appenddirname', 'appendfilename', 'appendonly', 'bind', 'bind-source-addr', 'daemonize', 'dbfilename', 'dir', 'enable-debug-command', 'enable-module-command', 'enable-protected-configs', 'include', 'loadmodule', 'logfile', 'masterauth', 'masteruser', 'pidfile', 'port', 'protected-mode', 'rename-command', 'replica-announce-ip', 'replica-announce-port', 'replica-read-only', 'replicaof', 'repl-diskless-sync-delay', 'requirepass', 'save', 'slave-announce-ip', 'slave-announce-port', 'slave-read-only', 'slaveof', 'supervised', 'unixsocket', 'user']))"
        )
        .message("the operator sets this directive itself: leave out `cluster-*`, `tls-*`, and directives for addresses, files, persistence, passwords, modules and replication")
    )]
    pub config: BTreeMap<String, String>,

    /// CPU and memory of each Redis container. Kubernetes' own defaults apply when it is left out. Without `config.maxmemory`, `maxmemory` is 75 % of the memory limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,

    /// Where the pods run, and what pulls their image. A change replaces all pods, one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<Pods>,

    /// Metrics of every Redis node for Prometheus: each pod gets a second container that serves them at port 9121. There are none when it is left out. A change replaces all pods, one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exporter: Option<Exporter>,

    /// A volume for each node, which keeps its data when its pod is replaced. When it is left out, data is kept in memory only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,

    /// Where the password of the cluster comes from. When it is left out, the operator makes a password and keeps it in the Secret `<name>-auth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,

    /// Encrypts the connections of clients, of replicas and of the cluster bus. Redis then accepts TLS only, at the same ports. TLS can be neither added to a cluster nor taken away. When it is left out, no connection is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,

    /// What the operator does when Redis cannot recover by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,

    /// How running pods get a new image, configuration or resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<Update>,

    /// Stops the operator from changing this cluster. Redis goes on serving, but nothing is scaled or repaired until it is false again.
    #[serde(default)]
    pub paused: bool,

    /// Stops all pods and keeps their volumes, for a cluster with `spec.storage`. When it is false again, which is the default, the pods start with all keys.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hibernated: bool,
}

/// What each Redis container asks for and may use.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// What the scheduler sets aside for the container, by resource name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub requests: BTreeMap<String, Quantity>,

    /// The most the container may use, by resource name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub limits: BTreeMap<String, Quantity>,
}

/// The volume of each node.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0")
        .message("a volume can grow but not shrink")
        .field_path(".size"),
    // A bound PersistentVolumeClaim never changes its class.
    validation = Rule::new("has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)")
        .message("the storage class of a volume cannot be changed")
        .field_path(".storageClassName")
)]
pub struct Storage {
    /// Size of each volume, for example `10Gi`. It can grow later, where the StorageClass allows volumes to grow, and never shrinks.
    #[schemars(schema_with = "volume_size_schema")]
    pub size: Quantity,

    /// StorageClass of the volumes; the default of the Kubernetes cluster when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub storage_class_name: Option<String>,

    /// What becomes of the volumes when the RedisCluster is deleted: kept (Retain) or deleted with it (Delete). The volume of a node that is scaled away is always deleted, once its slots have moved and it was reset.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

/// What becomes of the volumes when the RedisCluster is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// The volumes stay, for a later cluster or a rescue.
    #[default]
    Retain,
    /// The volumes go with the cluster.
    Delete,
}

/// What the operator does when Redis cannot recover by itself.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// What happens when the majority of the primaries is lost, so that Redis elects no successors: Automatic promotes a replica of each lost primary that was in sync with it, once that has been down for three node timeouts and its process is confirmed to be stopped: its pod or Kubernetes node was deleted, its node has the taint `node.kubernetes.io/out-of-service`, its kubelet reports it, or `stoppedPods` names it. Manual waits for the primaries.
    #[serde(default)]
    pub quorum_loss: QuorumLoss,

    /// What happens to slots that are lost with the only node that had them, or whose primary is down while no replica is known to have all of its writes: Manual waits until the node is back; AcceptDataLoss assigns them to other nodes without their keys, or promotes the best replica without the writes that it lacks.
    #[serde(default)]
    pub lost_slots: LostSlots,

    /// For how many node timeouts a replica may have heard nothing from its primary and still be elected by Redis: 4 when it is left out; Redis adds the 10 seconds between two pings. A replica that the operator knows to have been in sync is promoted also after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20000))]
    pub replica_validity_factor: Option<i32>,

    /// UIDs of pods that you know to be stopped, for example because their machines are off, although Kubernetes cannot confirm it. Their replicas may then be promoted. If such a process still runs and serves clients, their writes are lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), inner(length(min = 1, max = 64)))]
    pub stopped_pods: Vec<String>,
}

/// How running pods get a new image, configuration or resources: one at a time, replicas first, and a replica takes over before the pod of its primary is replaced.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Update {
    /// Auto replaces all pods; Supervised replaces replicas and stops before primaries until it is Auto, or until you make another node the primary of a shard with `CLUSTER FAILOVER`.
    #[serde(default)]
    pub strategy: UpdateStrategy,

    /// Whether nodes in memory without replicas are replaced at once, although their keys are lost, and slots whose keys were lost that way are served again. By default an additional pod takes over from each of them in turn.
    #[serde(default)]
    pub allow_data_loss: bool,

    /// Whether the image may have a server that cannot read the data of the one that runs, because it is older or of another flavour.
    #[serde(default)]
    pub allow_downgrade: bool,
}

/// Which pods are replaced without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateStrategy {
    /// All.
    #[default]
    Auto,
    /// Those of replicas.
    Supervised,
}

/// What happens when the majority of the primaries is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QuorumLoss {
    /// Replicas take over.
    #[default]
    Automatic,
    /// The operator waits for the primaries.
    Manual,
}

/// What happens to slots that are lost with the only node that had them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LostSlots {
    /// The operator waits until the node is back.
    #[default]
    Manual,
    /// The slots are assigned to other nodes, without their keys.
    AcceptDataLoss,
}

/// A password in a Secret of the cluster's namespace.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Auth {
    /// Name of the Secret; it must be in the namespace of the RedisCluster.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,

    /// Key in the Secret whose value is the password.
    #[serde(default = "default_key")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,

    /// Users that clients log in as, beside `default`. Every node has them within seconds, also after it restarted. One that is removed here is removed from all nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub users: Vec<User>,
}

/// The certificate of all nodes, in a Secret of the cluster's namespace.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Name of the Secret; it must be in the namespace of the RedisCluster, and have the keys `tls.crt`, `tls.key` and `ca.crt`, as cert-manager writes them. Nodes load a renewed certificate while they run; another name replaces all pods, one after another.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,
}

/// What the operator last saw of the cluster.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RedisClusterStatus {
    /// Names of the pods of the cluster that exist and are not being deleted, in the order of their ordinals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,

    /// Each node of the cluster as the operator last saw it, in the order of their pods' ordinals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["pod".into()]))]
    pub members: Vec<Member>,

    /// Number of Redis nodes that answer and are part of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_nodes: Option<i32>,

    /// Number of primaries that own slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<i32>,

    /// Number of the 16384 slots that a reachable primary serves. Anything less means that some keys cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots_covered: Option<i32>,

    /// Label selector of the cluster's pods, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,

    /// What the operator is doing, in one word; `conditions` say it in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,

    /// Users of `spec.auth.users` that nodes may have. One that is no longer in the spec stays here until no node has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,

    /// Whether the cluster was formed once. After that it is only ever repaired, never formed anew, so that lost slots cannot hide lost data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialized: Option<bool>,

    /// The `metadata.generation` that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Conditions of the cluster: Ready, Available, Progressing, Degraded, Redundant, SlotsCovered, UpdatePending, Initialized.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// One node of the cluster.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Name of the pod that the node runs in.
    pub pod: String,

    /// The id by which the other nodes know it; it changes when the node loses its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,

    /// Whether it owns slots or copies a primary. A node that has not joined yet has no role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,

    /// Number of the shard that it belongs to, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<i32>,

    /// The slots that it owns, as ranges: `0-5460`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<String>,

    /// For a replica, whether its connection to the primary is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_up: Option<bool>,

    /// For a replica, the id of its primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_id: Option<String>,

    /// For a replica, whether it had all writes of its primary when the operator last saw that primary. Only such a replica is promoted without the user: not known means no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_sync: Option<bool>,

    /// For a replica whose primary does not respond, its replication offset when the operator last saw that primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i64>,

    /// Revision of the pod template that its pod was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// Whether it owns slots or copies a primary. A node that has not joined yet has no role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Role {
    /// Owns slots, or may: a node that was just added owns none yet.
    Primary,
    /// Copies a primary, and takes its place when that fails.
    Replica,
}

/// What the operator is doing, in one word; `conditions` say it in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// The cluster is being formed for the first time.
    Creating,
    /// Nothing to do.
    Ready,
    /// Nodes are being added or removed, or slots moved between them.
    Scaling,
    /// Pods are being replaced to take a new image or configuration.
    Updating,
    /// Addresses, memberships or replication are being repaired.
    Healing,
    /// The cluster serves, but less than wanted, and the operator waits.
    Degraded,
    /// The operator cannot go on without the user.
    Failed,
    /// The cluster is being taken down.
    Deleting,
    /// All pods are being stopped, and their volumes kept.
    Hibernating,
    /// All pods are stopped, and their volumes kept.
    Hibernated,
    /// The pods of a hibernated cluster start again.
    Waking,
}

fn default_image() -> String {
    "docker.io/library/redis:7.2.5".into()
}

pub(super) fn default_key() -> String {
    "password".into()
}

/// A line break in a value would smuggle in further directives, past the rules on the keys.
fn config_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": { "type": "string", "maxLength": 1024, "pattern": r"^[^\r\n]*$" },
    })
}

/// A quantity that is not zero, as the rule that compares two of them needs it: a string, and short.
fn volume_size_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 20,
        "pattern": r"^[1-9][0-9]*(\.[0-9]+)?([KMGTPE]i|[kMGTPE])?$",
    })
}

/// Kubernetes quantities by name, as in a container's `resources`.
fn quantities_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": {
            "x-kubernetes-int-or-string": true,
            "maxLength": 32,
            "pattern": r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$",
        },
    })
}
