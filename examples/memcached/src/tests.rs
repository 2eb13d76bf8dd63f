use kube::CustomResourceExt;

use super::*;

fn memcached(size: i32) -> Memcached {
    let mut memcached = Memcached::new("cache", MemcachedSpec { size });
    memcached.metadata.uid = Some("uid".into());
    memcached.metadata.generation = Some(1);
    memcached
}

fn pod(name: &str, ready: bool, leaving: bool) -> Pod {
    let status = if ready { "True" } else { "False" };
    let mut pod =
        json!({"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": status}]}});
    if leaving {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    serde_json::from_value(pod).unwrap()
}

/// What `status` says in short: nodes, ready ones, and the conditions with their reasons.
fn said(size: i32, pods: &[Pod], problem: Option<Problem>) -> String {
    let status = status_of(&memcached(size), &MemcachedStatus::default(), String::new(), pods, problem);
    let conditions =
        status.conditions.iter().map(|one| format!(" {}={} {}", one.type_, one.status, one.reason));
    format!("{} {}{}", status.nodes.join(","), status.ready_nodes, conditions.collect::<String>())
}

#[test]
fn available_means_that_all_pods_are_there_and_ready() {
    let three = [pod("b", true, false), pod("a", true, false), pod("c", true, false)];
    assert_eq!(said(3, &three, None), "a,b,c 3 Available=True PodsReady Degraded=False AsExpected");
    assert_eq!(said(4, &three, None), "a,b,c 3 Available=False WaitingForPods Degraded=False AsExpected");
    let one_waits = [pod("a", true, false), pod("b", false, false)];
    assert_eq!(said(2, &one_waits, None), "a,b 1 Available=False WaitingForPods Degraded=False AsExpected");
}

#[test]
fn a_pod_that_is_being_deleted_is_not_named() {
    let pods = [pod("a", true, false), pod("old", true, true)];
    assert_eq!(said(1, &pods, None), "a 1 Available=True PodsReady Degraded=False AsExpected");
}

#[test]
fn what_only_a_user_can_change_makes_it_degraded() {
    let problem = Problem { reason: "NameTaken", message: "Deployment cache exists".into() };
    assert_eq!(said(1, &[], Some(problem)), " 0 Available=False WaitingForPods Degraded=True NameTaken");
}

#[test]
fn a_status_that_says_nothing_new_is_equal_to_the_one_before() {
    let (memcached, pods) = (memcached(1), [pod("a", true, false)]);
    let first = status_of(&memcached, &MemcachedStatus::default(), "a=b".into(), &pods, None);
    assert_eq!(status_of(&memcached, &first, "a=b".into(), &pods, None), first);
}

#[test]
fn a_deployment_that_cannot_create_pods_is_a_problem() {
    let problem = |type_: &str, status: &str| {
        let conditions = json!([{"type": type_, "status": status, "message": "exceeded quota"}]);
        let object = json!({"status": {"conditions": conditions}});
        deployment_problem(&serde_json::from_value(object).unwrap()).map(|problem| problem.message)
    };
    let said = Some("the Deployment does not progress: exceeded quota".to_owned());
    assert_eq!(problem("ReplicaFailure", "True"), said);
    assert_eq!(problem("Progressing", "False"), said);
    assert_eq!(problem("Progressing", "True"), None);
    assert_eq!(problem("Available", "False"), None);
}

/// The program prints the CRD that is checked in; `make manifests` renews it.
#[test]
fn the_crd_of_this_release_is_fresh() {
    let path =
        format!("{}/deploy/{}/install/crd.yaml", env!("CARGO_MANIFEST_DIR"), env!("CARGO_PKG_VERSION"));
    let kept: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(kept, serde_json::to_value(Memcached::crd()).unwrap(), "run `make manifests`");
}
