//! The objects of an EtcdCluster, as values. All that is said here is held; what is not said is left to Kubernetes and to users.

use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::{
    NAME,
    api::{Backup, EtcdCluster, Restore},
    plan::quorum,
};

/// Of the containers of the pods, that of etcd.
pub(crate) const CONTAINER: &str = "etcd";
/// The annotation of a pod that names the container which ran when the image was changed.
pub(crate) const REPLACES: &str = "etcd.example.com/replaces-container";
/// Port for clients, and for the operator.
pub(crate) const CLIENT_PORT: u16 = 2379;
const PEER_PORT: u16 = 2380;
/// Where the official images have their programs.
const PROGRAMS: &str = "/usr/local/bin";
const DATA: &str = "/var/lib/etcd";
const SNAPSHOTS: &str = "/snapshots";

/// The labels of all that belongs to a cluster.
pub(crate) fn labels(cluster: &EtcdCluster) -> Value {
    json!({
        "app.kubernetes.io/name": "etcd",
        "app.kubernetes.io/instance": cluster.name_any(),
        "app.kubernetes.io/managed-by": NAME,
    })
}

/// The labels of its pods, as a selector.
pub(crate) fn selector(cluster: &EtcdCluster) -> String {
    let labels = pod_labels(cluster);
    let pairs = labels.as_object().into_iter().flatten();
    let words: Vec<String> =
        pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    words.join(",")
}

fn pod_labels(cluster: &EtcdCluster) -> Value {
    let mut labels = labels(cluster);
    labels["app.kubernetes.io/component"] = json!("member");
    labels
}

/// Where the other members reach one. It must not change, so it is a name and not an address.
pub(crate) fn peer_url(cluster: &EtcdCluster, name: &str) -> String {
    let (service, namespace) = (cluster.name_any(), cluster.namespace().unwrap_or_default());
    format!("http://{name}.{service}.{namespace}.svc:{PEER_PORT}")
}

fn metadata(cluster: &EtcdCluster, name: &str) -> Value {
    // Kubernetes deletes the object with its owner.
    let owners = [cluster.controller_owner_ref(&())];
    json!({"name": name, "labels": labels(cluster), "ownerReferences": owners})
}

/// The Service that gives pods their names, also those that are not ready.
pub(crate) fn peer_service(cluster: &EtcdCluster) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(cluster, &cluster.name_any()),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": pod_labels(cluster),
            "ports": [{"name": "peer", "port": PEER_PORT}, {"name": "client", "port": CLIENT_PORT}],
        },
    })
}

/// The Service for clients: the members that are ready.
pub(crate) fn client_service(cluster: &EtcdCluster) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(cluster, &format!("{}-client", cluster.name_any())),
        "spec": {
            "selector": pod_labels(cluster),
            "ports": [{"name": "client", "port": CLIENT_PORT}],
        },
    })
}

/// Draining nodes leaves a quorum.
pub(crate) fn disruption_budget(cluster: &EtcdCluster) -> Value {
    let size = usize::try_from(cluster.spec.size).unwrap_or(1);
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(cluster, &cluster.name_any()),
        "spec": {"minAvailable": quorum(size), "selector": {"matchLabels": pod_labels(cluster)}},
    })
}

/// How a pod's member comes into the cluster.
pub(crate) enum Start<'a> {
    /// It makes the cluster.
    New,
    /// It joins these members, itself among them: `NAME=URL`, joined by commas.
    Join(&'a str),
}

/// The pod of a member. Its data go with it: a member whose pod is lost is replaced.
pub(crate) fn pod(cluster: &EtcdCluster, name: &str, image: &str, start: &Start<'_>) -> Value {
    let url = peer_url(cluster, name);
    let alone = format!("{name}={url}");
    let (state, members) = match start {
        Start::New => ("new", alone.as_str()),
        Start::Join(members) => ("existing", *members),
    };
    // Each cluster has its own: members of another one with the same name are not talked to.
    let token = cluster.uid().unwrap_or_default();
    let identity = [
        format!("--name={name}"),
        format!("--data-dir={DATA}/data"),
        format!("--initial-advertise-peer-urls={url}"),
        format!("--initial-cluster={members}"),
        format!("--initial-cluster-token={token}"),
    ];
    let mut command = vec![format!("{PROGRAMS}/etcd")];
    command.extend(identity.clone());
    command.extend([
        format!("--initial-cluster-state={state}"),
        format!("--listen-peer-urls=http://0.0.0.0:{PEER_PORT}"),
        format!("--listen-client-urls=http://0.0.0.0:{CLIENT_PORT}"),
        format!("--advertise-client-urls={}", url.replace(&PEER_PORT.to_string(), &CLIENT_PORT.to_string())),
    ]);
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "client"}, "periodSeconds": 5, "timeoutSeconds": 3});
    let mut mounts = vec![json!({"name": "data", "mountPath": DATA})];
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(cluster, name),
        "spec": {
            "hostname": name,
            "subdomain": cluster.name_any(),
            "automountServiceAccountToken": false,
            "securityContext": security(),
            // One member per node, where there are as many.
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
                "weight": 100,
                "podAffinityTerm": {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": pod_labels(cluster)},
                },
            }]}},
            "containers": [{
                "name": CONTAINER,
                "image": image,
                "command": command,
                "ports": [{"name": "client", "containerPort": CLIENT_PORT}, {"name": "peer", "containerPort": PEER_PORT}],
                "readinessProbe": probe("/readyz"),
                "volumeMounts": mounts,
                "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
                "securityContext": confined(),
            }],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    });
    pod["metadata"]["labels"] = pod_labels(cluster);
    if let (Start::New, Some(Restore { claim_name, snapshot })) = (start, &cluster.spec.restore) {
        let mut command = vec![format!("{PROGRAMS}/etcdutl"), "snapshot".into(), "restore".into()];
        command.push(format!("{SNAPSHOTS}/{snapshot}"));
        command.extend(identity);
        mounts.push(json!({"name": "snapshots", "mountPath": SNAPSHOTS, "readOnly": true}));
        pod["spec"]["initContainers"] = json!([{
            "name": "restore",
            "image": image,
            "command": command,
            "volumeMounts": mounts,
            "securityContext": confined(),
        }]);
        if let Some(volumes) = pod["spec"]["volumes"].as_array_mut() {
            volumes.push(claim(claim_name));
        }
    }
    pod
}

/// Snapshots at the times that the user wants. `kubectl create job --from=cronjob/NAME-backup` makes one at once.
pub(crate) fn backup(cluster: &EtcdCluster, backup: &Backup, image: &str) -> Value {
    let (name, namespace) = (cluster.name_any(), cluster.namespace().unwrap_or_default());
    json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata(cluster, &backup_name(cluster)),
        "spec": {
            "schedule": backup.schedule,
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": {
                "backoffLimit": 3,
                "template": {
                    "metadata": {"labels": labels(cluster)},
                    "spec": {
                        "restartPolicy": "Never",
                        "automountServiceAccountToken": false,
                        "securityContext": security(),
                        "containers": [{
                            "name": "snapshot",
                            "image": image,
                            "command": [
                                format!("{PROGRAMS}/etcdctl"),
                                format!("--endpoints=http://{name}-client.{namespace}.svc:{CLIENT_PORT}"),
                                "snapshot",
                                "save",
                                format!("{SNAPSHOTS}/$(JOB).db"),
                            ],
                            "env": [{
                                "name": "JOB",
                                "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}},
                            }],
                            "volumeMounts": [{"name": "snapshots", "mountPath": SNAPSHOTS}],
                            "securityContext": confined(),
                        }],
                        "volumes": [claim(&backup.claim_name)],
                    },
                },
            }},
        },
    })
}

/// Name of the CronJob.
pub(crate) fn backup_name(cluster: &EtcdCluster) -> String {
    format!("{}-backup", cluster.name_any())
}

fn claim(name: &str) -> Value {
    json!({"name": "snapshots", "persistentVolumeClaim": {"claimName": name}})
}

fn security() -> Value {
    json!({
        "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

fn confined() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
    })
}
