//! Pods of operators.

use serde_json::{Value, json};

use super::{around_pod, available, catalog, check, csv, group, installed, look, object, pod};
use crate::lifecycle::doctor::State;

#[test]
fn a_registry_wants_credentials() {
    let waiting = json!({"reason": "ImagePullBackOff", "message": "Back-off pulling image: pull access denied, authorization failed"});
    let status = json!({"phase": "Pending", "containerStatuses": [{"name": "manager", "ready": false, "restartCount": 0, "state": {"waiting": waiting}}]});
    check("image-pull-secret", "pod/demo-5d9-x", "credentials", around_pod(status));
}

#[test]
fn an_operator_is_out_of_memory() {
    let status = json!({"phase": "Running", "containerStatuses": [{
        "name": "manager", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
    }]});
    check("out-of-memory", "pod/demo-5d9-x", "OOMKilled", around_pod(status));
}

#[test]
fn nodes_are_under_pressure() {
    let message =
        "0/2 nodes are available: 2 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }";
    let condition =
        json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]);
    let status = json!({"phase": "Pending", "conditions": condition});
    check("node-pressure", "pod/demo-5d9-x", "disk-pressure", around_pod(status));
}

#[test]
fn a_secret_is_missing() {
    let waiting = json!({"reason": "CreateContainerConfigError", "message": "secret \"token\" not found"});
    let status = json!({"phase": "Pending", "containerStatuses": [{"name": "manager", "ready": false, "restartCount": 0, "state": {"waiting": waiting}}]});
    check("container-config", "pod/demo-5d9-x", "secret \"token\" not found", around_pod(status));
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
    let warned = |message: &str| [around_pod(status.clone()), vec![warning("FailedMount", message)]].concat();
    check("mount-failed", "pod/demo-5d9-x", "webhook-cert", warned(message));
    let late = "MountVolume.SetUp failed for volume \"cert\" : failed to sync secret cache: timed out waiting for the condition";
    assert_eq!(look(warned(late)).operators[0].state, State::Progressing);
}

#[test]
fn an_operator_runs_and_does_not_become_ready() {
    let status = json!({"phase": "Running", "containerStatuses": [{
        "name": "manager", "ready": false, "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:30:00Z"}},
    }]});
    let objects = [
        around_pod(status),
        vec![warning("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500")],
    ]
    .concat();
    check("not-ready", "pod/demo-5d9-x", "Readiness probe failed", objects);
}

/// Between two crashes it is ready for a moment; once it has run for longer than before, it is well.
#[test]
fn an_operator_that_crashes_again_and_again_is_not_healthy_in_between() {
    let objects = |started: &str, restarts: u8| {
        let last = json!({"reason": "Error", "exitCode": 1, "startedAt": "2026-01-01T00:58:00Z", "finishedAt": "2026-01-01T00:58:40Z"});
        let ill = pod(json!({"status": {"phase": "Running", "containerStatuses": [{
            "name": "manager", "ready": true, "restartCount": restarts, "state": {"running": {"startedAt": started}},
            "lastState": {"terminated": last},
        }]}}));
        vec![
            installed(),
            group(),
            catalog("READY"),
            csv("Succeeded", "InstallSucceeded", ""),
            available(),
            ill,
        ]
    };
    let words = "`demo.v1` does not keep running: container `manager` of pod `demo-5d9-x` crashes (Error): exit code 1";
    check("crashing", "pod/demo-5d9-x", words, objects("2026-01-01T00:59:00Z", 2));
    assert_eq!(look(objects("2026-01-01T00:59:00Z", 1)).state, State::Healthy);
    assert_eq!(look(objects("2026-01-01T00:58:40Z", 9)).state, State::Healthy);
}

#[test]
fn an_init_container_that_does_not_end_is_named() {
    let status = json!({"phase": "Pending", "initContainerStatuses": [{
        "name": "wait-db", "ready": false, "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:56:00Z"}},
    }], "containerStatuses": [{
        "name": "manager", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}},
    }]});
    let words = "init container `wait-db` of pod `demo-5d9-x` runs and does not end";
    check("not-ready", "pod/demo-5d9-x", words, around_pod(status.clone()));
    assert_eq!(
        look(around_pod(status)).causes[0].repair[0].command.to_string(),
        "kubectl -n here logs demo-5d9-x -c wait-db"
    );
}

#[test]
fn a_liveness_probe_that_ends_an_operator_is_named() {
    let status = json!({"phase": "Running", "containerStatuses": [{
        "name": "manager", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"reason": "Error", "exitCode": 137}},
    }]});
    let probe = warning("Unhealthy", "Liveness probe failed: connection refused");
    let objects = [around_pod(status), vec![probe]].concat();
    let words = "crashes (CrashLoopBackOff): exit code 137: Liveness probe failed: connection refused";
    check("crashing", "pod/demo-5d9-x", words, objects);
}

/// The pod that is the leader for life ends only after this one is ready.
#[test]
fn an_operator_that_waits_to_become_the_leader_waits_for_the_old_pod() {
    let status = |ready: bool| {
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
        "containerStatuses": [{
            "name": "manager", "ready": ready, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:30:00Z"}},
        }]})
    };
    let old = pod(json!({
        "metadata": {"name": "demo-4c8-x", "creationTimestamp": "2025-12-31T00:00:00Z",
            "labels": {"pod-template-hash": "4c8"}, "ownerReferences": [{"kind": "ReplicaSet", "name": "demo-4c8"}]},
        "status": status(true),
    }));
    let objects = |old: &[Value]| {
        let silent = vec![warning("Unhealthy", "Readiness probe failed: ")];
        [around_pod(status(false)), silent, old.to_vec()].concat()
    };
    let shows = |objects: Vec<Value>| {
        let diagnosis = look(objects);
        assert!(diagnosis.causes[0].sentence.ends_with("does not become ready: Readiness probe failed"));
        diagnosis.causes[0].repair[0].effect.to_string()
    };
    assert_eq!(shows(objects(&[])), "shows what the operator waits for");
    assert!(
        shows(objects(&[old])).contains("waits in vain, because Kubernetes keeps pod `demo-4c8-x` until")
    );
}

/// A pod that was created, scheduled and started a minute ago, on a node whose clock is off by some seconds.
fn unready(started: &str) -> Vec<Value> {
    let status = json!({
        "phase": "Running", "startTime": started,
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:59:00Z"}],
        "containerStatuses": [{
            "name": "manager", "ready": false, "restartCount": 0, "state": {"running": {"startedAt": started}},
        }],
    });
    let mut objects = around_pod(status);
    objects[5]["metadata"]["creationTimestamp"] = json!("2026-01-01T00:59:00Z");
    objects
}

#[test]
fn the_clock_of_a_node_that_is_behind_makes_no_container_late() {
    assert_eq!(look(unready("2026-01-01T00:47:00Z")).state, State::Progressing);
    assert_eq!(look(unready("2026-01-01T01:11:00Z")).state, State::Progressing);
    // Created and started an hour ago, by whatever clock.
    for started in ["2025-12-31T23:48:00Z", "2026-01-01T00:12:00Z"] {
        let mut objects = unready(started);
        objects[5]["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        objects[5]["status"]["conditions"][0]["lastTransitionTime"] = json!("2026-01-01T00:00:00Z");
        check("not-ready", "pod/demo-5d9-x", "does not become ready", objects);
    }
}
