//! The objects that a RedisCluster owns, and how they are compared with existing ones.
//!
//! A new release of the operator must not replace all pods, so a test compares the pod template with a snapshot.

use std::{
    collections::{BTreeMap, BTreeSet},
    slice,
};

use k8s_openapi::{
    api::{
        apps::v1::{
            StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec,
            StatefulSetUpdateStrategy,
        },
        core::v1::{
            Affinity, Capabilities, ConfigMap, ConfigMapVolumeSource, Container, ContainerPort,
            EmptyDirVolumeSource, EnvVar, EnvVarSource, ExecAction, KeyToPath, Lifecycle, LifecycleHandler,
            ObjectFieldSelector, PersistentVolumeClaim, PersistentVolumeClaimSpec, PodAffinityTerm,
            PodAntiAffinity, PodReadinessGate, PodSecurityContext, PodSpec, PodTemplateSpec, Probe,
            ProjectedVolumeSource, ResourceRequirements, SeccompProfile, Secret, SecretKeySelector,
            SecretProjection, SecurityContext, Service, ServicePort, ServiceSpec, TopologySpreadConstraint,
            Volume, VolumeMount, VolumeProjection, VolumeResourceRequirements, WeightedPodAffinityTerm,
        },
        networking::v1::{
            NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
        },
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference},
        util::intstr::IntOrString,
    },
};
use kube::{Resource, ResourceExt};
use serde_json::Value;

use super::{
    ZONE_LABEL,
    exporter::{self, METRICS_PORT},
    intent::{INTENT, intent},
    live::{RECORD, Record},
    memory,
    names::Names,
    passwords::PREVIOUS,
    scripts, tls,
};
use crate::{
    crd::{
        RedisCluster,
        pods::{Spread, Unsatisfiable},
        v1::{Resources, Storage},
    },
    quantity::amount,
};

/// The label that every child carries, with [`CONTROL_PLANE`] as its value.
pub const CONTROL_PLANE_LABEL: &str = "control-plane";
/// The operator, as the value of that label.
pub const CONTROL_PLANE: &str = "redis-operator";
/// The label with the name of the RedisCluster of a child.
pub const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
/// Pod condition: its node is a member of the cluster and in sync with its shard.
pub const IN_SYNC: &str = "cache.example.com/in-sync";
/// The container of Redis.
pub(super) const CONTAINER: &str = "redis";
/// The variable with the password, from which redis-cli takes it too.
pub(super) const PASSWORD: &str = "REDISCLI_AUTH";
/// The volume with the passwords as files, which running pods get anew when the Secret changes.
pub(super) const PASSWORD_FILES: &str = "passwords";
/// The port of Redis.
pub const PORT: u16 = 6379;

/// Settings of the operator that apply to every cluster.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// The DNS domain of the Kubernetes cluster.
    pub cluster_domain: String,
    /// `cluster-node-timeout` in milliseconds: silence after which a node is marked as failed.
    pub node_timeout_ms: u32,
    /// Whether the Kubernetes cluster is OpenShift, which chooses the user of each pod itself.
    pub openshift: bool,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { cluster_domain: "cluster.local".into(), node_timeout_ms: 5000, openshift: false }
    }
}

/// Labels of a cluster's children.
pub fn labels(name: &str) -> BTreeMap<String, String> {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    BTreeMap::from([
        label(CONTROL_PLANE_LABEL, CONTROL_PLANE),
        label("app.kubernetes.io/name", "redis"),
        label(INSTANCE_LABEL, name),
        label("app.kubernetes.io/managed-by", CONTROL_PLANE),
    ])
}

/// The labels as a selector.
pub fn selector(name: &str) -> String {
    labels(name).into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

fn metadata(cluster: &RedisCluster, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: cluster.namespace(),
        labels: Some(labels(&cluster.name_any())),
        owner_references: Some(vec![owner(cluster)]),
        ..Default::default()
    }
}

fn owner(cluster: &RedisCluster) -> OwnerReference {
    OwnerReference {
        api_version: RedisCluster::api_version(&()).into(),
        kind: RedisCluster::kind(&()).into(),
        name: cluster.name_any(),
        uid: cluster.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The Secret of a cluster without `spec.auth`.
pub fn auth_secret(cluster: &RedisCluster, password: &str) -> Secret {
    let (name, key) = Names::of(cluster).auth;
    Secret {
        metadata: metadata(cluster, name),
        string_data: Some(BTreeMap::from([(key, password.into())])),
        ..Default::default()
    }
}

/// Which directives redis.conf has, of those that Redis can change while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// Those of the spec: all running nodes have taken them.
    Spec,
    /// Those that it had: a node could refuse those of the spec, and a pod that restarts meanwhile starts.
    Before,
    /// What is the same in both: Redis ended with those that it had, and no node has seen those of the spec.
    Common,
}

/// redis.conf and the scripts, without the password. What redis.conf had is in `found`, the ConfigMap that exists. If nodes are to be
/// `limited`, it has the `maxmemory` that follows from the memory limit, or else the one that it had.
pub fn config_map(
    cluster: &RedisCluster,
    defaults: &Defaults,
    found: Option<&ConfigMap>,
    live: Live,
    limited: bool,
) -> ConfigMap {
    let conf = |found: &'_ ConfigMap| found.data.as_ref()?.get("redis.conf").cloned();
    let before = found.and_then(conf).filter(|_| live != Live::Spec);
    let record = Record::next(cluster, found);
    let mut metadata = metadata(cluster, Names::of(cluster).config);
    metadata.annotations = Some(BTreeMap::from([(RECORD.to_owned(), record.text())]));
    if let Some(found) = found.filter(|found| Record::of(found).is_some_and(|before| before != record)) {
        // It counts on from this one.
        metadata.resource_version = found.resource_version();
    }
    let limit = if limited { memory::line(cluster) } else { memory::kept_line(cluster, found) };
    let files = |before: Option<&str>| scripts::files(cluster, defaults, before, &limit);
    let common = before.as_ref().filter(|_| live == Live::Common).map(|before| {
        let wanted = files(None);
        let wanted: BTreeSet<&str> = wanted.iter().flat_map(|(_, text)| text.lines()).collect();
        before.lines().filter(|line| wanted.contains(line)).collect::<Vec<_>>().join("\n")
    });
    let data = files(common.or(before).as_deref());
    ConfigMap {
        metadata,
        data: Some(data.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ..Default::default()
    }
}

/// The Services: a headless one for the names of pods, also before they are ready, and one for clients.
pub fn services(cluster: &RedisCluster) -> [Service; 2] {
    let names = Names::of(cluster);
    let port = |name: &str, port: i32| ServicePort {
        name: Some(name.into()),
        port,
        target_port: Some(IntOrString::Int(port)),
        protocol: Some("TCP".into()),
        ..Default::default()
    };
    let redis = port("redis", PORT.into());
    let headless = ServiceSpec {
        cluster_ip: Some("None".into()),
        publish_not_ready_addresses: Some(true),
        selector: Some(labels(&names.cluster)),
        ports: Some(vec![redis.clone(), port("bus", i32::from(PORT) + 10000)]),
        ..Default::default()
    };
    let client = ServiceSpec {
        selector: Some(labels(&names.cluster)),
        ports: Some(vec![redis]),
        ..Default::default()
    };
    [
        Service { metadata: metadata(cluster, names.headless), spec: Some(headless), ..Default::default() },
        Service { metadata: metadata(cluster, names.cluster), spec: Some(client), ..Default::default() },
    ]
}

/// One for the whole cluster: with one per role, a drain could evict both copies of a shard. No pod may be evicted while a
/// shard lacks a replica.
pub fn disruption_budget(cluster: &RedisCluster, all_in_sync: bool) -> PodDisruptionBudget {
    let names = Names::of(cluster);
    PodDisruptionBudget {
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(all_in_sync.into())),
            selector: Some(LabelSelector {
                match_labels: Some(labels(&names.cluster)),
                ..Default::default()
            }),
            ..Default::default()
        }),
        metadata: metadata(cluster, names.cluster),
        ..Default::default()
    }
}

/// Only pods of this cluster reach the cluster bus, so that nodes of another cluster, such as a restored copy, cannot join.
/// Clients reach the other port from everywhere, and so does Prometheus the port of the exporters.
pub fn network_policy(cluster: &RedisCluster) -> NetworkPolicy {
    let names = Names::of(cluster);
    let pods = || LabelSelector { match_labels: Some(labels(&names.cluster)), ..Default::default() };
    let port = |port: i32| NetworkPolicyPort {
        port: Some(IntOrString::Int(port)),
        protocol: Some("TCP".into()),
        ..Default::default()
    };
    let rule = |number: i32, from: Option<Vec<NetworkPolicyPeer>>| NetworkPolicyIngressRule {
        from,
        ports: Some(vec![port(number)]),
    };
    let own = NetworkPolicyPeer { pod_selector: Some(pods()), ..Default::default() };
    let mut ingress = vec![rule(PORT.into(), None), rule(i32::from(PORT) + 10000, Some(vec![own]))];
    if cluster.spec.exporter.is_some() {
        // Nobody knows where Prometheus is.
        ingress.push(rule(METRICS_PORT.into(), None));
    }
    NetworkPolicy {
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(pods()),
            policy_types: Some(vec!["Ingress".into()]),
            ingress: Some(ingress),
            ..Default::default()
        }),
        metadata: metadata(cluster, names.cluster.clone()),
    }
}

/// The StatefulSet, with this number of replicas. `removals` is that of the [`Record`].
pub fn stateful_set(
    cluster: &RedisCluster,
    defaults: &Defaults,
    replicas: u32,
    removals: u64,
) -> StatefulSet {
    let names = Names::of(cluster);
    let storage = cluster.spec.storage.as_ref();
    StatefulSet {
        spec: Some(StatefulSetSpec {
            replicas: i32::try_from(replicas).ok(),
            service_name: Some(names.headless.clone()),
            selector: LabelSelector { match_labels: Some(labels(&names.cluster)), ..Default::default() },
            // With OrderedReady, a pod that cannot start would block all later ones.
            pod_management_policy: Some("Parallel".into()),
            // The operator decides when pods are replaced.
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("OnDelete".into()),
                ..Default::default()
            }),
            // Kubernetes must not delete volumes when somebody else scales down: the operator deletes those of drained nodes.
            persistent_volume_claim_retention_policy: Some(retain()),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels(&names.cluster)),
                    annotations: Some(BTreeMap::from([(INTENT.into(), intent(cluster, removals))])),
                    ..Default::default()
                }),
                spec: Some(pod(cluster, &names, defaults)),
            },
            volume_claim_templates: storage.map(|storage| vec![claim(&names.cluster, storage)]),
            ..Default::default()
        }),
        metadata: metadata(cluster, names.cluster),
        ..Default::default()
    }
}

/// Kubernetes never deletes volumes by itself.
pub fn retain() -> StatefulSetPersistentVolumeClaimRetentionPolicy {
    StatefulSetPersistentVolumeClaimRetentionPolicy {
        when_deleted: Some("Retain".into()),
        when_scaled: Some("Retain".into()),
    }
}

/// Annotation on the claim of a drained and reset node: it can be deleted once its pod is gone.
pub const DRAINED_ANNOTATION: &str = "cache.example.com/drained";

/// The name of the claim of a pod.
pub fn claim_name(cluster: &str, ordinal: u32) -> String {
    format!("data-{cluster}-{ordinal}")
}

fn claim(name: &str, storage: &Storage) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        metadata: ObjectMeta { name: Some("data".into()), labels: Some(labels(name)), ..Default::default() },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".into()]),
            storage_class_name: storage.storage_class_name.clone(),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".into(), storage.size.clone())])),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn pod(cluster: &RedisCluster, names: &Names, defaults: &Defaults) -> PodSpec {
    let empty = |name: &str, medium: Option<&str>| Volume {
        name: name.into(),
        empty_dir: Some(EmptyDirVolumeSource { medium: medium.map(Into::into), ..Default::default() }),
        ..Default::default()
    };
    let mut volumes = vec![
        Volume {
            name: "config".into(),
            config_map: Some(ConfigMapVolumeSource { name: names.config.clone(), ..Default::default() }),
            ..Default::default()
        },
        empty("run", Some("Memory")),
        password_files(names),
    ];
    if cluster.spec.storage.is_none() {
        volumes.push(empty("data", None));
    }
    volumes.extend(cluster.spec.tls.as_ref().map(tls::volume));
    let mut containers = vec![container(cluster, names, defaults)];
    if let Some(wanted) = &cluster.spec.exporter {
        volumes.push(exporter::volume());
        containers.push(exporter::container(wanted, cluster.spec.tls.is_some()));
    }
    let pods = cluster.spec.pods.clone().unwrap_or_default();
    // The user of the official Redis images. OpenShift gives each namespace a user of its own, and refuses others.
    let user = (!defaults.openshift).then_some(999);
    PodSpec {
        image_pull_secrets: some(pods.image_pull_secrets.iter().map(Into::into).collect()),
        node_selector: (!pods.node_selector.is_empty()).then_some(pods.node_selector),
        tolerations: some(pods.tolerations.iter().map(Into::into).collect()),
        topology_spread_constraints: Some(spread_constraints(
            &pods.topology_spread_constraints,
            labels(&names.cluster),
        )),
        priority_class_name: pods.priority_class_name,
        containers,
        volumes: Some(volumes),
        // Responding is not enough: while a replica is syncing, no other pod of its shard may be evicted.
        readiness_gates: Some(vec![PodReadinessGate { condition_type: IN_SYNC.into() }]),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        termination_grace_period_seconds: Some(60),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: user,
            run_as_group: user,
            fs_group: user,
            // Changing the owner of every file delays each start.
            fs_group_change_policy: user.map(|_| "OnRootMismatch".into()),
            seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".into(), ..Default::default() }),
            ..Default::default()
        }),
        affinity: Some(Affinity {
            pod_anti_affinity: Some(PodAntiAffinity {
                preferred_during_scheduling_ignored_during_execution: Some(vec![WeightedPodAffinityTerm {
                    weight: 100,
                    pod_affinity_term: PodAffinityTerm {
                        topology_key: "kubernetes.io/hostname".into(),
                        label_selector: Some(LabelSelector {
                            match_labels: Some(labels(&names.cluster)),
                            ..Default::default()
                        }),
                        ..Default::default()
                    },
                }]),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Those of the spec; without any, the pods are spread over zones. Kubernetes nodes are a matter of the affinity.
fn spread_constraints(wanted: &[Spread], labels: BTreeMap<String, String>) -> Vec<TopologySpreadConstraint> {
    let zones = Spread {
        topology_key: ZONE_LABEL.into(),
        max_skew: 1,
        when_unsatisfiable: Unsatisfiable::ScheduleAnyway,
    };
    let spreads = if wanted.is_empty() { slice::from_ref(&zones) } else { wanted };
    spreads.iter().map(|spread| spread.of(labels.clone())).collect()
}

/// The password and the previous one, and no other key of the user's Secret. If the Secret is deleted, the files stay as they are.
fn password_files(names: &Names) -> Volume {
    let (secret, key) = &names.auth;
    let file = |key: &str, path: &str, optional: Option<bool>| VolumeProjection {
        secret: Some(SecretProjection {
            name: secret.clone(),
            items: Some(vec![KeyToPath { key: key.into(), path: path.into(), ..Default::default() }]),
            optional,
        }),
        ..Default::default()
    };
    let sources = vec![file(key, "password", None), file(PREVIOUS, "previousPassword", Some(true))];
    Volume {
        name: PASSWORD_FILES.into(),
        projected: Some(ProjectedVolumeSource { sources: Some(sources), ..Default::default() }),
        ..Default::default()
    }
}

/// Nothing, if there is nothing in it.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

pub(super) fn container(cluster: &RedisCluster, names: &Names, defaults: &Defaults) -> Container {
    let mount = |name: &str, path: &str| VolumeMount {
        name: name.into(),
        mount_path: path.into(),
        ..Default::default()
    };
    let field = |name: &str, path: &str| EnvVar {
        name: name.into(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector { field_path: path.into(), ..Default::default() }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let script = |name: &str| vec!["sh".to_owned(), format!("/etc/redis-operator/{name}")];
    let probe = |name: &str, period: i32, failures: i32| Probe {
        exec: Some(ExecAction { command: Some(script(name)) }),
        period_seconds: Some(period),
        timeout_seconds: Some(5),
        failure_threshold: Some(failures),
        ..Default::default()
    };
    let namespace = cluster.namespace().unwrap_or_default();
    let domain = &defaults.cluster_domain;
    let host = format!("$(POD_NAME).{}.{namespace}.svc.{domain}", names.headless);
    let password = EnvVar {
        name: PASSWORD.into(),
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: names.auth.0.clone(),
                key: names.auth.1.clone(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let mut mounts = vec![
        mount("config", "/etc/redis-operator"),
        mount("run", "/run/redis"),
        mount(PASSWORD_FILES, "/etc/redis-passwords"),
        mount("data", "/data"),
    ];
    mounts.extend(cluster.spec.tls.as_ref().map(|_| mount(tls::FILES, tls::DIRECTORY)));
    if cluster.spec.exporter.is_some() {
        mounts.push(exporter::mount(None));
    }
    Container {
        name: CONTAINER.into(),
        image: Some(cluster.spec.image.clone()),
        command: Some(script("start.sh")),
        env: Some(vec![
            field("POD_NAME", "metadata.name"),
            field("POD_IP", "status.podIP"),
            EnvVar { name: "POD_HOST".into(), value: Some(host), ..Default::default() },
            password,
        ]),
        ports: Some(vec![
            ContainerPort { name: Some("redis".into()), container_port: PORT.into(), ..Default::default() },
            ContainerPort {
                name: Some("bus".into()),
                container_port: i32::from(PORT) + 10000,
                ..Default::default()
            },
        ]),
        readiness_probe: Some(probe("ready.sh", 5, 2)),
        liveness_probe: Some(probe("live.sh", 10, 6)),
        lifecycle: Some(Lifecycle {
            pre_stop: Some(LifecycleHandler {
                exec: Some(ExecAction { command: Some(script("stop.sh")) }),
                ..Default::default()
            }),
            ..Default::default()
        }),
        // Loading an append-only file of many gigabytes takes long.
        startup_probe: Some(probe("live.sh", 2, 900)),
        resources: Some(resources(cluster.spec.resources.clone().unwrap_or_default())),
        security_context: Some(restricted()),
        volume_mounts: Some(mounts),
        ..Default::default()
    }
}

/// As a container has them.
pub(super) fn resources(wanted: Resources) -> ResourceRequirements {
    let some = |map: BTreeMap<String, Quantity>| (!map.is_empty()).then_some(map);
    ResourceRequirements {
        requests: some(wanted.requests),
        limits: some(wanted.limits),
        ..Default::default()
    }
}

/// With the security context of the pod, what the Pod Security Standard `restricted` asks of a container, and more.
pub(super) fn restricted() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), ..Default::default() }),
        read_only_root_filesystem: Some(true),
        ..Default::default()
    }
}

/// Whether `found` contains everything of `wanted`. Defaults that the API server filled in are ignored, and quantities are
/// compared by value.
pub fn contains(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            wanted.iter().all(|(key, value)| found.get(key).is_some_and(|found| contains(value, found)))
        }
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.len() == found.len()
                && wanted.iter().zip(found).all(|(wanted, found)| contains(wanted, found))
        }
        (Value::String(wanted), Value::String(found)) => {
            wanted == found || matches!((amount(wanted), amount(found)), (Some(a), Some(b)) if a == b)
        }
        _ => wanted == found,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A new release of the operator must not replace pods without a reason: say it in the changelog.
    #[test]
    fn the_pod_template() {
        let object = json!({
            "apiVersion": "cache.example.com/v1", "kind": "RedisCluster",
            "metadata": {"name": "rc", "namespace": "ns"},
            "spec": {"size": 3, "storage": {"size": "1Gi"}},
        });
        let cluster: RedisCluster = serde_json::from_value(object).unwrap();
        let set = stateful_set(&cluster, &Defaults::default(), 3, 0);
        let template = serde_json::to_string_pretty(&set.spec.unwrap().template).unwrap() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pod-template.json");
        if std::env::var_os("OLMKIT_GENERATE").is_some() {
            std::fs::write(path, &template).unwrap();
        }
        assert_eq!(template, std::fs::read_to_string(path).unwrap());
    }

    #[test]
    fn what_the_spec_says_of_pods_is_in_the_template() {
        let pods = json!({
            "imagePullSecrets": [{"name": "registry"}],
            "nodeSelector": {"example.com/disk": "fast"},
            "tolerations": [
                {"key": "redis", "value": "only", "effect": "NoSchedule"},
                {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
            ],
            "topologySpreadConstraints": [{"topologyKey": "topology.kubernetes.io/zone"}],
            "priorityClassName": "high",
        });
        let object = json!({
            "apiVersion": "cache.example.com/v1", "kind": "RedisCluster",
            "metadata": {"name": "rc", "namespace": "ns"}, "spec": {"size": 3, "pods": pods},
        });
        let cluster: RedisCluster = serde_json::from_value(object).unwrap();
        let set = stateful_set(&cluster, &Defaults::default(), 3, 0);
        let found = serde_json::to_value(set.spec.unwrap().template.spec).unwrap();
        for key in ["imagePullSecrets", "nodeSelector", "priorityClassName"] {
            assert_eq!(found[key], pods[key], "{key}");
        }
        assert_eq!(
            found["tolerations"],
            json!([
                {"key": "redis", "operator": "Equal", "value": "only", "effect": "NoSchedule"},
                {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
            ])
        );
        assert_eq!(
            found["topologySpreadConstraints"],
            json!([{
                "topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels("rc")},
            }])
        );
    }

    /// Its rules for pods refuse a user that is not of the namespace.
    #[test]
    fn on_openshift_no_user_is_fixed() {
        let object = json!({
            "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": {"name": "rc"},
            "spec": {"size": 3},
        });
        let cluster: RedisCluster = serde_json::from_value(object).unwrap();
        let context = |openshift| {
            let defaults = Defaults { openshift, ..Defaults::default() };
            let set = stateful_set(&cluster, &defaults, 3, 0);
            serde_json::to_value(set.spec.unwrap().template.spec.unwrap().security_context).unwrap()
        };
        let always = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
        assert_eq!(context(true), always);
        assert_eq!(context(false)["runAsUser"], 999);
    }

    /// It would keep every pod that restarts from starting.
    #[test]
    fn a_value_that_redis_has_not_taken_is_not_in_redis_conf() {
        let cluster = |config: Value| -> RedisCluster {
            let object = json!({
                "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": {"name": "rc"},
                "spec": {"size": 3, "config": config},
            });
            serde_json::from_value(object).unwrap()
        };
        let defaults = Defaults::default();
        let users = |map: &ConfigMap| {
            let conf = &map.data.as_ref().unwrap()["redis.conf"];
            conf.lines().take_while(|line| !line.starts_with("port")).collect::<Vec<_>>().join("; ")
        };
        let old = json!({"maxmemory": "1mb", "timeout": "9", "io-threads": "2"});
        let found = config_map(&cluster(old), &defaults, None, Live::Spec, true);
        assert_eq!(users(&found), "io-threads 2; maxmemory 1mb; timeout 9");
        // One was removed, one is refused, one is new, and the last replaces pods.
        let new = cluster(json!({"maxmemory": "0.5mb", "hz": "20", "io-threads": "4"}));
        let meanwhile = config_map(&new, &defaults, Some(&found), Live::Before, true);
        assert_eq!(users(&meanwhile), "io-threads 4; maxmemory 1mb");
        assert_eq!(
            users(&config_map(&new, &defaults, Some(&found), Live::Spec, true)),
            "hz 20; io-threads 4; maxmemory 0.5mb"
        );
        let same = cluster(json!({"maxmemory": "1mb", "hz": "20", "timeout": "8"}));
        assert_eq!(users(&config_map(&same, &defaults, Some(&found), Live::Common, true)), "maxmemory 1mb");
    }

    /// Volumes are deleted by the operator alone.
    #[test]
    fn kubernetes_deletes_no_volume_by_itself() {
        for policy in ["Retain", "Delete"] {
            let object = json!({
                "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": {"name": "rc"},
                "spec": {"size": 3, "storage": {"size": "1Gi", "deletionPolicy": policy}},
            });
            let cluster: RedisCluster = serde_json::from_value(object).unwrap();
            let set = stateful_set(&cluster, &Defaults::default(), 3, 0).spec.unwrap();
            assert_eq!(set.persistent_volume_claim_retention_policy, Some(retain()));
        }
    }

    #[test]
    fn what_the_api_server_adds_is_no_change() {
        let wanted = json!({"spec": {"cpu": "1000m", "list": [{"a": 1}]}});
        assert!(contains(&wanted, &json!({"spec": {"cpu": "1", "list": [{"a": 1, "b": 2}]}, "status": {}})));
        assert!(!contains(&wanted, &json!({"spec": {"cpu": "2", "list": [{"a": 1}]}})));
        assert!(!contains(&wanted, &json!({"spec": {"cpu": "1", "list": [{"a": 1}, {"a": 2}]}})));
        assert!(contains(&json!("1.5Gi"), &json!("1536Mi")));
        assert!(!contains(&json!("1.5G"), &json!("1536Mi")));
    }
}
