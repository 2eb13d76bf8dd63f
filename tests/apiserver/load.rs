//! How long `operator doctor -A` takes, and how much memory, on a cluster with 200 operators and 10,000 pods. It is a measurement,
//! which takes minutes to prepare: it runs where `OLMKIT_MEASURE` is set, with the program that `OLMKIT_BINARY` names.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use olmkit::lifecycle::api::{Key, Resource, known};
use serde_json::{Value, json};

use crate::olm::prepare;
use crate::server::{ADMIN, Server, connect};

const OPERATORS: usize = 200;
const PODS: usize = 10_000;
/// Copies of operators for all namespaces.
const COPIES: usize = 1_000;
/// Operators of the first measurement that do not come up.
const ILL: usize = 10;
const WRITERS: usize = 4;

const TIME: Duration = Duration::from_secs(2);
const MEMORY: u64 = 100 << 20;

pub(super) fn the_doctor_takes_two_seconds_and_a_hundred_megabytes() {
    let server = Server::start();
    prepare(&server);
    fill(&server);
    let few = measure(&server, "10 of 200 operators broken");
    // A catalog that is down concerns all of them.
    set_status(
        &mut server.connect(),
        &known::CATALOG_SOURCE,
        "olm",
        "catalog",
        &json!({"connectionState": {"lastObservedState": "TRANSIENT_FAILURE", "lastConnect": "2020-01-01T00:00:00Z"}}),
    );
    for number in 0..OPERATORS {
        let failed = json!({"conditions": [{
            "type": "ResolutionFailed", "status": "True", "reason": "ErrorPreventedResolution",
            "message": "error using catalogsource olm/catalog: failed to list bundles: connection refused",
        }]});
        set_status(&mut server.connect(), &known::SUBSCRIPTION, &namespace(number), "demo", &failed);
    }
    let all = measure(&server, "all 200 operators concerned");
    for (time, memory) in [few, all] {
        assert!(time < TIME && memory < MEMORY, "{time:?}, {} MiB", memory >> 20);
    }
}

fn namespace(number: usize) -> String {
    format!("operators-{number:03}")
}

#[expect(clippy::print_stdout, reason = "a measurement prints its figures")]
fn measure(server: &Server, what: &str) -> (Duration, u64) {
    let binary = std::env::var("OLMKIT_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_olmkit").to_owned());
    let mut best = (Duration::MAX, 0);
    for _ in 0..5 {
        let begun = Instant::now();
        let mut child = Command::new(&binary)
            .args(["operator", "doctor", "-A", "--output", "json", "--kubeconfig"])
            .arg(server.kubeconfig(ADMIN))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let status = format!("/proc/{}/status", child.id());
        let mut peak = 0;
        while child.try_wait().unwrap().is_none() {
            peak = peak.max(high_water(Path::new(&status)));
            std::thread::park_timeout(Duration::from_millis(2));
        }
        let time = begun.elapsed();
        if time < best.0 {
            best = (time, peak);
        }
    }
    println!("{what}: {} ms, {} MiB", best.0.as_millis(), best.1 >> 20);
    best
}

/// The most memory that a process has had, in bytes.
fn high_water(status: &Path) -> u64 {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

fn set_status(
    cluster: &mut impl olmkit::lifecycle::cluster::Cluster,
    kind: &Resource,
    namespace: &str,
    name: &str,
    status: &Value,
) {
    cluster.patch_status(kind, &Key::new(kind, namespace, name), &json!({"status": status})).unwrap();
}

/// Creates an object, with its status where it has one.
fn make(cluster: &mut impl olmkit::lifecycle::cluster::Cluster, kind: &Resource, object: &Value) {
    cluster.create(kind, object).unwrap();
    if !object["status"].is_null() {
        let key = Key::of(object);
        cluster.patch_status(kind, &key, &json!({"status": object["status"]})).unwrap();
    }
}

fn fill(server: &Server) {
    let ready =
        json!({"connectionState": {"lastObservedState": "READY", "lastConnect": "2026-01-01T00:00:00Z"}});
    set_status(&mut server.connect(), &known::CATALOG_SOURCE, "olm", "catalog", &ready);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let kubeconfig = server.kubeconfig(ADMIN);
            scope.spawn(move || {
                let mut cluster = connect(&kubeconfig);
                for number in (writer..OPERATORS).step_by(WRITERS) {
                    operator(&mut cluster, number);
                }
            });
        }
    });
}

fn operator(cluster: &mut impl olmkit::lifecycle::cluster::Cluster, number: usize) {
    let within = namespace(number);
    let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": within}});
    make(cluster, &known::NAMESPACE, &own);
    let is_ill = number < ILL;
    make(
        cluster,
        &known::OPERATOR_GROUP,
        &json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "group", "namespace": within}, "spec": {"targetNamespaces": [within]},
            "status": {"namespaces": [within], "lastUpdated": "2026-01-01T00:00:00Z"},
        }),
    );
    make(
        cluster,
        &known::SUBSCRIPTION,
        &json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": "demo", "namespace": within},
            "spec": {"name": "demo", "channel": "stable", "source": "catalog", "sourceNamespace": "olm"},
            "status": {
                "state": "AtLatestKnown", "currentCSV": "demo.v1.0.0", "installedCSV": "demo.v1.0.0",
                "lastUpdated": "2026-01-01T00:00:00Z", "installPlanRef": {"name": "install-1"},
            },
        }),
    );
    let manifest = json!({"kind": "ClusterRole", "text": "x".repeat(2_000)}).to_string();
    let steps: Vec<Value> = (0..30)
        .map(|step| {
            json!({
                "resolving": "demo.v1.0.0", "status": "Present",
                "resource": {
                    "group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole",
                    "name": format!("demo-{step}"), "manifest": manifest,
                    "sourceName": "catalog", "sourceNamespace": "olm",
                },
            })
        })
        .collect();
    make(
        cluster,
        &known::INSTALL_PLAN,
        &json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": {"name": "install-1", "namespace": within},
            "spec": {"approval": "Automatic", "approved": true, "clusterServiceVersionNames": ["demo.v1.0.0"]},
            "status": {"phase": "Complete", "catalogSources": ["catalog"], "plan": steps},
        }),
    );
    make(cluster, &known::CSV, &csv(&within, "demo.v1.0.0", is_ill));
    for copy in 0..COPIES / OPERATORS {
        let mut copied = csv(&within, &format!("global-{copy}.v1.0.0"), false);
        copied["metadata"]["labels"] = json!({"olm.copiedFrom": "elsewhere"});
        copied["status"]["reason"] = json!("Copied");
        make(cluster, &known::CSV, &copied);
    }
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "demo", "namespace": within, "labels": {"olm.owner": "demo.v1.0.0"}},
        "spec": {
            "selector": {"matchLabels": {"app": "demo"}},
            "template": {
                "metadata": {"labels": {"app": "demo"}},
                "spec": {"containers": [{"name": "manager", "image": "registry.example.com/demo:1"}]},
            },
        },
        "status": {
            "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": i32::from(!is_ill),
            "availableReplicas": i32::from(!is_ill),
            "conditions": [{
                "type": "Available", "status": if is_ill { "False" } else { "True" },
                "reason": "x", "message": "Deployment does not have minimum availability.",
            }],
        },
    });
    make(cluster, &known::DEPLOYMENT, &deployment);
    for at in 0..PODS / OPERATORS {
        make(cluster, &known::POD, &pod(&within, at, is_ill && at == 0));
    }
}

/// A ClusterServiceVersion as large as real ones: examples, an icon, a description.
fn csv(namespace: &str, name: &str, is_ill: bool) -> Value {
    let (phase, reason) =
        if is_ill { ("Installing", "InstallWaiting") } else { ("Succeeded", "InstallSucceeded") };
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {
            "name": name, "namespace": namespace,
            "annotations": {"alm-examples": "e".repeat(20_000), "capabilities": "Full Lifecycle"},
        },
        "spec": {
            "version": "1.0.0", "displayName": "Demo", "description": "d".repeat(10_000),
            "icon": [{"base64data": "A".repeat(20_000), "mediatype": "image/svg+xml"}],
            "installModes": [{"type": "OwnNamespace", "supported": true}],
            "install": {"strategy": "deployment", "spec": {"deployments": [{
                "name": "demo",
                "spec": {
                    "selector": {"matchLabels": {"app": "demo"}},
                    "template": {
                        "metadata": {"labels": {"app": "demo"}},
                        "spec": {"containers": [{
                            "name": "manager", "image": "registry.example.com/demo:1", "args": ["x".repeat(5_000)],
                        }]},
                    },
                },
            }]}},
        },
        "status": {"phase": phase, "reason": reason, "message": "as it says", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    })
}

/// A pod as large as real ones.
fn pod(namespace: &str, at: usize, is_ill: bool) -> Value {
    let state = match is_ill {
        true => {
            json!({"waiting": {"reason": "ImagePullBackOff", "message": "registry.example.com/demo:1: not found"}})
        }
        false => json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}),
    };
    let set = if at == 0 { "demo-5d9c7b8f6d".to_owned() } else { format!("app-{at}-5d9c7b8f6d") };
    let word = if is_ill { "False" } else { "True" };
    let conditions: Vec<Value> = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
        .iter()
        .map(|kind| {
            let status = if kind.contains("eady") { word } else { "True" };
            json!({"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"})
        })
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{set}-{at:05}"), "namespace": namespace,
            "labels": {"app": "demo", "pod-template-hash": "5d9c7b8f6d"},
            "annotations": {"example.com/config": "c".repeat(1_500)},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set, "controller": true,
                "uid": "00000000-0000-4000-8000-000000000000",
            }],
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [{
                "name": "manager", "image": "registry.example.com/demo:1", "args": ["a".repeat(500)],
                "env": [{"name": "CONFIG", "value": "v".repeat(500)}],
            }],
        },
        "status": {
            "phase": if is_ill { "Pending" } else { "Running" }, "conditions": conditions,
            "containerStatuses": [{
                "name": "manager", "ready": !is_ill, "restartCount": 0, "image": "registry.example.com/demo:1",
                "imageID": "", "state": state,
            }],
        },
    })
}
