//! Pods of operators.

use serde_json::{Value, json};

use super::{catalog, check, deployment, group, installed, installing, object, pod};

#[test]
fn a_registry_wants_credentials() {
    let waiting = json!({"reason": "ImagePullBackOff", "message": "Back-off pulling image: pull access denied, authorization failed"});
    let status = json!({"phase": "Pending", "containerStatuses": [{"name": "manager", "ready": false, "restartCount": 0, "state": {"waiting": waiting}}]});
    let objects = vec![
        installed(),
        group(),
        catalog("READY"),
        installing(),
        deployment(json!([])),
        pod(json!({"status": status})),
    ];
    check("image-pull-secret", "pod/demo-5d9-x", "credentials", objects);
}

#[test]
fn an_operator_is_out_of_memory() {
    let status = json!({"phase": "Running", "containerStatuses": [{
        "name": "manager", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
    }]});
    let objects = vec![
        installed(),
        group(),
        catalog("READY"),
        installing(),
        deployment(json!([])),
        pod(json!({"status": status})),
    ];
    check("out-of-memory", "pod/demo-5d9-x", "OOMKilled", objects);
}

#[test]
fn nodes_are_under_pressure() {
    let message =
        "0/2 nodes are available: 2 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }";
    let condition =
        json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]);
    let ill = pod(json!({"status": {"phase": "Pending", "conditions": condition}}));
    let objects = vec![installed(), group(), catalog("READY"), installing(), deployment(json!([])), ill];
    check("node-pressure", "pod/demo-5d9-x", "disk-pressure", objects);
}

#[test]
fn a_secret_is_missing() {
    let waiting = json!({"reason": "CreateContainerConfigError", "message": "secret \"token\" not found"});
    let status = json!({"phase": "Pending", "containerStatuses": [{"name": "manager", "ready": false, "restartCount": 0, "state": {"waiting": waiting}}]});
    let objects = vec![
        installed(),
        group(),
        catalog("READY"),
        installing(),
        deployment(json!([])),
        pod(json!({"status": status})),
    ];
    check("container-config", "pod/demo-5d9-x", "secret \"token\" not found", objects);
}

/// A Warning about the operator's pod.
fn warning(reason: &str, message: &str) -> Value {
    object(
        "v1",
        "Event",
        "demo-5d9-x.1",
        json!({
            "involvedObject": {"kind": "Pod", "name": "demo-5d9-x"}, "type": "Warning", "reason": reason,
            "message": message, "lastTimestamp": "2026-01-01T00:59:00Z",
        }),
    )
}

#[test]
fn a_volume_cannot_be_mounted() {
    let status = json!({"phase": "Pending", "containerStatuses": [{
        "name": "manager", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}},
    }]});
    let message = "MountVolume.SetUp failed for volume \"cert\": secret \"webhook-cert\" not found";
    let objects = vec![
        installed(),
        group(),
        catalog("READY"),
        installing(),
        deployment(json!([])),
        pod(json!({"status": status})),
        warning("FailedMount", message),
    ];
    check("mount-failed", "pod/demo-5d9-x", "webhook-cert", objects);
}

#[test]
fn an_operator_runs_and_does_not_become_ready() {
    let status = json!({"phase": "Running", "containerStatuses": [{
        "name": "manager", "ready": false, "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:30:00Z"}},
    }]});
    let objects = vec![
        installed(),
        group(),
        catalog("READY"),
        installing(),
        deployment(json!([])),
        pod(json!({"status": status})),
        warning("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500"),
    ];
    check("not-ready", "pod/demo-5d9-x", "Readiness probe failed", objects);
}
