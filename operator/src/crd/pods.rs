//! `spec.pods`: where the pods of a RedisCluster run, and what pulls their image.
#![expect(unreachable_pub, reason = "`KubeSchema` copies each struct, with its `pub`, into a function")]

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{LocalObjectReference, Toleration as KubeToleration, TopologySpreadConstraint},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Where the pods run, and what pulls their image.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pods {
    /// Secrets with credentials for the registry of the image; they must be in the namespace of the RedisCluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub image_pull_secrets: Vec<PullSecret>,

    /// Labels that a Kubernetes node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "labels_schema")]
    #[x_kube(
        validation = Rule::new("self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))")
            .message("a label's key is a name of at most 63 letters, digits, `-`, `_` and `.`, after a domain and `/` or without one")
    )]
    pub node_selector: BTreeMap<String, String>,

    /// Taints of Kubernetes nodes that the pods accept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,

    /// How evenly the pods of the cluster are spread, in addition to the preference for different Kubernetes nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    pub topology_spread_constraints: Vec<Spread>,

    /// PriorityClass of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub priority_class_name: Option<String>,
}

/// A Secret with credentials for a registry.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PullSecret {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub name: String,
}

/// Taints that the pods accept.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.operator == 'Exists' ? !has(self.value) : has(self.key)")
        .message("with operator Exists there is no value, and with Equal there is a key"),
    validation = Rule::new("!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')")
        .message("tolerationSeconds needs the effect NoExecute")
)]
pub struct Toleration {
    /// Key of the taints; all keys when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 316),
        regex(
            pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
        )
    )]
    pub key: Option<String>,

    /// Exists accepts every value of the key, Equal only `value`.
    #[serde(default)]
    pub operator: TolerationOperator,

    /// Value of the taints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"))]
    pub value: Option<String>,

    /// Effect of the taints; all effects when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,

    /// Seconds that a pod stays on a node which has the taint, for the effect NoExecute; for ever when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub toleration_seconds: Option<i64>,
}

/// Which values of a taint are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TolerationOperator {
    /// One value.
    #[default]
    Equal,
    /// Every value.
    Exists,
}

/// What a taint does to pods that do not accept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// New pods are not scheduled there.
    NoSchedule,
    /// New pods are scheduled there if nothing else is left.
    PreferNoSchedule,
    /// Pods are evicted.
    NoExecute,
}

/// How evenly the pods of the cluster are spread over Kubernetes nodes or zones.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// Label of Kubernetes nodes by which they are grouped, such as `topology.kubernetes.io/zone`.
    #[schemars(
        length(min = 1, max = 316),
        regex(
            pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
        )
    )]
    pub topology_key: String,

    /// How many more pods one group may have than another.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 500))]
    pub max_skew: i32,

    /// DoNotSchedule lets a pod wait for a place that fits, ScheduleAnyway takes the best there is.
    #[serde(default)]
    pub when_unsatisfiable: Unsatisfiable,
}

/// What becomes of a pod that fits nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Unsatisfiable {
    /// It takes the best place there is.
    #[default]
    ScheduleAnyway,
    /// It waits.
    DoNotSchedule,
}

const fn one() -> i32 {
    1
}

fn labels_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": {
            "type": "string",
            "maxLength": 63,
            "pattern": r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
        },
    })
}

impl From<&PullSecret> for LocalObjectReference {
    fn from(secret: &PullSecret) -> Self {
        Self { name: secret.name.clone() }
    }
}

impl From<&Toleration> for KubeToleration {
    fn from(toleration: &Toleration) -> Self {
        Self {
            key: toleration.key.clone(),
            operator: Some(format!("{:?}", toleration.operator)),
            value: toleration.value.clone(),
            effect: toleration.effect.map(|effect| format!("{effect:?}")),
            toleration_seconds: toleration.toleration_seconds,
        }
    }
}

impl Spread {
    /// As Kubernetes has it, for the pods with these labels.
    pub fn of(&self, labels: BTreeMap<String, String>) -> TopologySpreadConstraint {
        TopologySpreadConstraint {
            topology_key: self.topology_key.clone(),
            max_skew: self.max_skew,
            when_unsatisfiable: format!("{:?}", self.when_unsatisfiable),
            label_selector: Some(LabelSelector { match_labels: Some(labels), ..Default::default() }),
            ..Default::default()
        }
    }
}
