//! Deployments of operators.

use serde_json::{Value, json};

use super::{
    OLM, State, available, catalog, check, csv, deployment, group, installed, installing, look, object, pod,
    refused, subscription,
};

#[test]
fn an_operator_that_is_up_is_healthy() {
    let healthy =
        vec![installed(), group(), catalog("READY"), csv("Succeeded", "InstallSucceeded", ""), available()];
    assert_eq!(look(healthy).state, State::Healthy);
}

#[test]
fn pods_are_refused() {
    for (code, words, message) in [
        (
            "quota-exceeded",
            "exceeded quota",
            "pods \"demo-5d9-\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1",
        ),
        (
            "limit-range",
            "maximum cpu usage",
            "pods \"demo-5d9-\" is forbidden: maximum cpu usage per Container is 100m, but limit is 1",
        ),
        (
            "pod-security",
            "violates PodSecurity",
            "pods \"demo-5d9-\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true",
        ),
        (
            "webhook-unreachable",
            "failed calling webhook",
            "Internal error occurred: failed calling webhook \"v.example.com\": failed to call webhook: Post: connection refused",
        ),
        (
            "pods-refused",
            "not found",
            "pods \"demo-5d9-\" is forbidden: error looking up service account here/demo: serviceaccount \"demo\" not found",
        ),
    ] {
        check(
            code,
            "deployment/demo",
            words,
            vec![installed(), group(), catalog("READY"), installing(), refused(message)],
        );
    }
}

/// A Deployment that wants no pods, with which everything else is well.
fn scaled_to_zero(since: &str) -> Vec<Value> {
    let mut idle = deployment(json!([{"type": "Available", "status": "True", "lastTransitionTime": since}]));
    idle["spec"]["replicas"] = json!(0);
    vec![installed(), group(), catalog("READY"), csv("Succeeded", "InstallSucceeded", ""), idle]
}

#[test]
fn an_operator_that_was_scaled_to_zero_is_not_healthy() {
    let objects = scaled_to_zero("2026-01-01T00:30:00Z");
    assert_eq!(look(objects.clone()).state, State::Waiting);
    check("scaled-to-zero", "deployment/demo", "scaled to 0", objects);
    // In the first minute it may be scaled up again.
    assert_eq!(look(scaled_to_zero("2026-01-01T00:59:30Z")).state, State::Progressing);
    // An operator may want no pods itself.
    let mut objects = scaled_to_zero("2026-01-01T00:30:00Z");
    objects[3]["spec"]["install"]["spec"]["deployments"][0]["spec"]["replicas"] = json!(0);
    assert_eq!(look(objects).state, State::Healthy);
}

/// What is installed does not run, whatever the next plan waits for.
#[test]
fn a_plan_that_waits_for_approval_does_not_hide_that_the_operator_was_scaled_to_zero() {
    let mut objects = scaled_to_zero("2026-01-01T00:30:00Z");
    objects[0]["status"] = json!({
        "currentCSV": "demo.v2", "installedCSV": "demo.v1", "state": "UpgradePending",
        "installPlanRef": {"name": "install-2"},
    });
    let spec = json!({"approved": false, "clusterServiceVersionNames": ["demo.v2"]});
    objects.push(object(
        OLM,
        "InstallPlan",
        "install-2",
        json!({"spec": spec, "status": {"phase": "RequiresApproval"}}),
    ));
    let diagnosis = look(objects);
    let [cause] = &diagnosis.causes[..] else { panic!("{diagnosis:#?}") };
    assert_eq!((cause.code, diagnosis.operators[0].code), ("scaled-to-zero", Some("scaled-to-zero")));
    assert!(
        cause
            .consequences
            .iter()
            .any(|one| one.starts_with("also [approval-required]: installplan/install-2"))
    );
    let repairs: Vec<String> = cause.repair.iter().map(|one| one.command.to_string()).collect();
    assert!(repairs[0].contains("scale deployment demo"), "{repairs:#?}");
}

#[test]
fn an_installed_operator_without_its_deployment_is_not_healthy() {
    let gone = || vec![installed(), group(), catalog("READY"), csv("Succeeded", "InstallSucceeded", "")];
    check("deployment-missing", "clusterserviceversion/demo.v1", "does not exist", gone());
    // Its pods are still there: it was deleted a moment ago, and OLM makes it again within seconds.
    let mut just_now = gone();
    just_now.push(pod(json!({"status": {"phase": "Running"}})));
    assert_eq!(look(just_now).state, State::Progressing);
}

#[test]
fn kubernetes_gave_a_deployment_up() {
    let failed = csv(
        "Failed",
        "InstallCheckFailed",
        "install failed: deployment \"demo\" exceeded its progress deadline",
    );
    let message = "ReplicaSet \"demo-5d9\" has timed out progressing.";
    let stuck = deployment(
        json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": message}]),
    );
    let objects = vec![installed(), group(), catalog("READY"), failed, stuck];
    check("progress-deadline", "deployment/demo", "progress deadline", objects);
}

#[test]
fn what_pod_security_forbids_is_not_cut_off() {
    let long = "container \"m\" must set securityContext.allowPrivilegeEscalation=false, ".repeat(9);
    let message = format!(
        "pods \"demo-5d9-x\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false ({long})"
    );
    check(
        "pod-security",
        "deployment/demo",
        "are refused: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false",
        vec![installed(), group(), catalog("READY"), installing(), refused(&message)],
    );
}

/// An upgrade from 1 to 2 that does not come to its end, with the Deployment of a version, and whether its pods answer.
fn upgrade(owner: &str, phases: [&str; 2], conditions: Value, pods: Vec<Value>) -> Vec<Value> {
    let status = json!({"currentCSV": "demo.v2", "installedCSV": "demo.v2", "state": "AtLatestKnown"});
    let message = r#"install strategy failed: ValidatingWebhookConfiguration "v-1" is invalid: webhooks[0].sideEffects"#;
    let mut new = csv(phases[1], "InstallComponentFailed", message);
    new["metadata"]["name"] = json!("demo.v2");
    new["spec"]["replaces"] = json!("demo.v1");
    let mut found = deployment(conditions);
    found["metadata"]["labels"] = json!({"olm.owner": owner});
    found["status"]["availableReplicas"] = json!(1);
    let mut old = csv(phases[0], "", "");
    for (version, csv) in [("1", &mut old), ("2", &mut new)] {
        csv["spec"]["version"] = json!(version);
        csv["spec"]["installModes"] = json!([{"type": "OwnNamespace", "supported": true}]);
    }
    let mut group = group();
    group["status"] = json!({"namespaces": ["here"]});
    let mut all = vec![subscription(status), group, catalog("READY"), old, new, found];
    all.extend(pods);
    all
}

#[test]
fn what_still_runs_is_told_from_the_deployment() {
    let rollback = |owner: &str, available: &str| {
        let conditions = json!([{"type": "Available", "status": available}]);
        let diagnosis = look(upgrade(owner, ["Replacing", "Failed"], conditions, Vec::new()));
        diagnosis.causes[0].repair[0].effect.to_string()
    };
    assert!(rollback("demo.v1", "True").starts_with("goes back to `demo.v1`, which still runs: "));
    // Its pods were replaced already: only the webhook is missing.
    assert!(rollback("demo.v2", "True").starts_with("goes back to `demo.v1`, which ran before: "));
    assert!(rollback("demo.v2", "False").starts_with("goes back to `demo.v1`, which still runs: "));
}

/// Pods of the old version that need the same Secret run only because they were made before it was deleted.
#[test]
fn a_version_that_would_not_start_again_is_no_way_back() {
    let commands = |needed: &str| -> Vec<String> {
        let waiting =
            json!({"reason": "CreateContainerConfigError", "message": "secret \"token\" not found"});
        let ill = pod(json!({"status": {"phase": "Pending", "containerStatuses": [{
            "name": "manager", "ready": false, "restartCount": 0, "state": {"waiting": waiting},
        }]}}));
        let old = pod(json!({
            "metadata": {"name": "demo-4c8-x", "creationTimestamp": "2025-12-31T00:00:00Z",
                "labels": {"pod-template-hash": "4c8"}, "ownerReferences": [{"kind": "ReplicaSet", "name": "demo-4c8"}]},
            "spec": {"containers": [{"name": "manager", "envFrom": [{"secretRef": {"name": needed}}]}]},
            "status": {"phase": "Running", "containerStatuses": [{"name": "manager", "ready": true, "restartCount": 0}]},
        }));
        let conditions = json!([{"type": "Available", "status": "False"}]);
        let mut objects = upgrade("demo.v2", ["Replacing", "Installing"], conditions, vec![ill, old]);
        objects.iter_mut().for_each(super::super::lean::lean);
        let diagnosis = look(objects);
        assert_eq!(diagnosis.causes[0].code, "container-config", "{diagnosis:#?}");
        diagnosis.causes[0].repair.iter().map(|repair| repair.command.to_string()).collect()
    };
    assert!(commands("other")[0].starts_with("olmkit operator rollback demo"), "{:?}", commands("other"));
    assert!(commands("token").iter().all(|one| !one.contains("rollback")), "{:?}", commands("token"));
}

/// A node that takes no pods takes none of the old version either.
#[test]
fn a_cordoned_node_is_no_reason_to_go_back() {
    let commands = |why: &str| -> Vec<String> {
        let message = format!("0/1 nodes are available: 1 {why}.");
        let condition = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]);
        let ill = pod(json!({"status": {"phase": "Pending", "conditions": condition}}));
        let conditions = json!([{"type": "Available", "status": "False"}]);
        let objects = upgrade("demo.v2", ["Replacing", "Installing"], conditions, vec![ill]);
        look(objects).causes[0].repair.iter().map(|repair| repair.command.to_string()).collect()
    };
    let by_size = commands("Insufficient cpu");
    assert!(by_size[0].starts_with("olmkit operator rollback demo"), "{by_size:?}");
    let cordoned = commands("node(s) were unschedulable");
    assert!(cordoned.iter().all(|one| !one.contains("rollback")), "{cordoned:?}");
}

#[test]
fn a_pod_of_the_old_version_is_not_told_of_the_new_one() {
    let waiting = json!({"reason": "ImagePullBackOff", "message": "r/demo:1: not found"});
    let status = json!({"phase": "Pending", "containerStatuses": [{"name": "manager", "ready": false, "restartCount": 0, "state": {"waiting": waiting}}]});
    let pods = vec![pod(json!({"status": status}))];
    let mut objects = upgrade("demo.v1", ["Installing", "Pending"], json!([]), pods);
    objects[5]["status"]["availableReplicas"] = json!(0);
    objects[4]["status"]["reason"] = json!("RequirementsUnknown");
    let diagnosis = look(objects);
    let cause = &diagnosis.causes[0];
    assert!(cause.sentence.starts_with("`demo.v1` does not start"), "{cause:#?}");
    let waits =
        "clusterserviceversion/demo.v2, which replaces it, waits for it: Pending (RequirementsUnknown)";
    assert_eq!(cause.consequences.last().map(String::as_str), Some(waits));
    assert!(cause.repair[0].effect.to_string().contains("and `demo.v1` succeeds within"), "{cause:#?}");
    // A new installation of the head leaves the version out that never came up.
    let last = cause.repair.last().unwrap().command.to_string();
    assert!(last.contains("clusterserviceversion.operators.coreos.com/demo.v1 && echo"), "{last}");
}
