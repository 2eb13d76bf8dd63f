//! Causes that no recording has: each with a small observation made by hand.

use serde_json::{Value, json};

use super::{Diagnosis, Observation, Scope, State, diagnose};

const NOW: &str = "2026-01-01T01:00:00Z";
const OLM: &str = "operators.coreos.com/v1alpha1";

fn object(api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "namespace": "here", "creationTimestamp": "2026-01-01T00:00:00Z"},
    });
    merge(&mut object, rest);
    object
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn subscription(status: Value) -> Value {
    let spec = json!({"name": "demo", "channel": "stable", "source": "catalog", "sourceNamespace": "here"});
    object(OLM, "Subscription", "demo", json!({"spec": spec, "status": status}))
}

fn installed() -> Value {
    subscription(json!({"currentCSV": "demo.v1", "installedCSV": "demo.v1", "state": "AtLatestKnown"}))
}

fn group() -> Value {
    object(
        "operators.coreos.com/v1",
        "OperatorGroup",
        "here",
        json!({"spec": {"targetNamespaces": ["here"]}}),
    )
}

fn catalog(state: &str) -> Value {
    let status =
        json!({"connectionState": {"lastObservedState": state, "lastConnect": "2026-01-01T00:10:00Z"}});
    object(OLM, "CatalogSource", "catalog", json!({"spec": {"image": "r/catalog:1"}, "status": status}))
}

fn csv(phase: &str, reason: &str, message: &str) -> Value {
    let spec = json!({"install": {"spec": {"deployments": [{"name": "demo"}]}}});
    let status = json!({"phase": phase, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:58:00Z"});
    object(OLM, "ClusterServiceVersion", "demo.v1", json!({"spec": spec, "status": status}))
}

fn installing() -> Value {
    csv("Installing", "InstallWaiting", "installing: waiting for deployment demo to become ready")
}

fn deployment(conditions: Value) -> Value {
    let status = json!({"replicas": 1, "updatedReplicas": 1, "conditions": conditions});
    object("apps/v1", "Deployment", "demo", json!({"status": status}))
}

fn available() -> Value {
    deployment(json!([{"type": "Available", "status": "True"}]))
}

fn refused(message: &str) -> Value {
    deployment(
        json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}]),
    )
}

fn pod(rest: Value) -> Value {
    let mut pod = object(
        "v1",
        "Pod",
        "demo-5d9-x",
        json!({
            "metadata": {"labels": {"pod-template-hash": "5d9"}, "ownerReferences": [{"kind": "ReplicaSet", "name": "demo-5d9"}]},
            "spec": {"containers": [{"name": "manager", "image": "r/demo:1"}]},
        }),
    );
    merge(&mut pod, rest);
    pod
}

fn catalog_pod(status: Value) -> Value {
    object(
        "v1",
        "Pod",
        "catalog-x",
        json!({
            "metadata": {"labels": {"olm.catalogSource": "catalog"}},
            "spec": {"containers": [{"name": "registry-server", "image": "r/catalog:1"}]},
            "status": status,
        }),
    )
}

fn look(objects: Vec<Value>) -> Diagnosis {
    diagnose(&Observation::complete(objects, NOW), &Scope::default())
}

/// The one cause of an observation: its code and its object.
#[track_caller]
fn check(code: &str, short: &str, words: &str, objects: Vec<Value>) {
    let diagnosis = look(objects);
    let [cause] = &diagnosis.causes[..] else { panic!("{diagnosis:#?}") };
    assert_eq!((cause.code, cause.object.short().as_str()), (code, short), "{diagnosis:#?}");
    assert!(cause.sentence.contains(words), "no `{words}` in {}", cause.sentence);
    assert!(!cause.evidence.is_empty(), "{cause:#?}");
    assert!(!cause.repair.is_empty() || code == "namespace-terminating", "{cause:#?}");
}

#[test]
fn an_operator_that_is_up_is_healthy() {
    let healthy =
        vec![installed(), group(), catalog("READY"), csv("Succeeded", "InstallSucceeded", ""), available()];
    assert_eq!(look(healthy).state, State::Healthy);
}

#[test]
fn a_catalog_pod_is_out_of_memory() {
    let status = json!({"phase": "Running", "containerStatuses": [{
        "name": "registry-server", "ready": false, "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-01-01T00:50:00Z"}},
    }]});
    let objects = vec![subscription(json!({})), group(), catalog("TRANSIENT_FAILURE"), catalog_pod(status)];
    check("catalog-out-of-memory", "pod/catalog-x", "OOMKilled", objects);
}

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

#[test]
fn a_plan_fails() {
    let plan = |message: &str| {
        object(
            OLM,
            "InstallPlan",
            "install-1",
            json!({
                "spec": {"approved": true, "clusterServiceVersionNames": ["demo.v1"], "generation": 1},
                "status": {"phase": "Failed", "message": message},
            }),
        )
    };
    for (code, message) in [
        (
            "crd-stored-version",
            "risk of data loss updating \"demos.example.com\": new CRD removes version v1alpha1 that is listed as a stored version on the existing CRD",
        ),
        (
            "conversion-webhook",
            "conversion webhook for example.com/v1, Kind=Demo failed: Post \"https://demo.here.svc:443/convert\": connection refused",
        ),
        (
            "webhook-unreachable",
            "failed calling webhook \"v.example.com\": failed to call webhook: Post: no endpoints available",
        ),
        (
            "rights-missing",
            "roles.rbac.authorization.k8s.io is forbidden: User \"system:serviceaccount:here:installer\" cannot create resource \"roles\"",
        ),
        ("plan-failed", "something else"),
    ] {
        let status = json!({"currentCSV": "demo.v1", "installedCSV": "demo.v1", "installPlanRef": {"name": "install-1"}});
        let pending = csv("Pending", "RequirementsNotMet", "one or more requirements couldn't be found");
        let objects = vec![subscription(status), group(), catalog("READY"), pending, plan(message)];
        check(code, "installplan/install-1", message, objects);
    }
}

#[test]
fn a_plan_was_deleted_before_it_was_complete() {
    let mut pending = csv("Pending", "RequirementsNotMet", "one or more requirements couldn't be found");
    pending["status"]["requirementStatus"] = json!([{
        "kind": "CustomResourceDefinition", "name": "demos.example.com", "status": "PresentNotSatisfied",
        "message": "CRD installed alongside other CSV(s): demo.v0",
    }]);
    let status =
        json!({"currentCSV": "demo.v1", "installedCSV": "demo.v1", "installPlanRef": {"name": "install-1"}});
    check(
        "plan-deleted",
        "subscription/demo",
        "installplan/install-1",
        vec![subscription(status), group(), catalog("READY"), pending],
    );
}

#[test]
fn a_namespace_is_being_deleted() {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "here"},
        "status": {"phase": "Terminating", "conditions": [{
            "type": "NamespaceFinalizersRemaining", "status": "True", "message": "demos.example.com in 1 resource instances",
        }]},
    });
    check(
        "namespace-terminating",
        "namespace/here",
        "demos.example.com",
        vec![subscription(json!({})), group(), namespace],
    );
}

#[test]
fn a_certificate_has_expired() {
    let mut up = csv("Succeeded", "InstallSucceeded", "");
    up["status"]["certsRotateAt"] = json!("2025-12-01T00:00:00Z");
    check(
        "certificate-expired",
        "clusterserviceversion/demo.v1",
        "expired",
        vec![installed(), group(), catalog("READY"), up, available()],
    );
}

#[test]
fn a_copy_is_taken_for_an_own_version() {
    let mut copy =
        csv("Succeeded", "Copied", "The operator is running in there but is managing this namespace");
    copy["metadata"]["labels"] = json!({"olm.copiedFrom": "there"});
    check("copied-csv", "subscription/demo", "`there`", vec![installed(), group(), catalog("READY"), copy]);
}

#[test]
fn a_starting_version_is_in_no_channel() {
    let message = "constraints not satisfiable: no operators found with name demo.v9 in channel stable of package demo in the catalog referenced by subscription demo, subscription demo exists";
    let mut pinned = subscription(json!({"conditions": [{
        "type": "ResolutionFailed", "status": "True", "reason": "ConstraintsNotSatisfiable", "message": message,
    }]}));
    pinned["spec"]["startingCSV"] = json!("demo.v9");
    let serving = catalog_pod(
        json!({"phase": "Running", "containerStatuses": [{"name": "registry-server", "ready": true}]}),
    );
    check(
        "starting-csv-not-found",
        "subscription/demo",
        "no operators found with name demo.v9",
        vec![pinned.clone(), group(), catalog("READY"), serving.clone()],
    );
    // What was corrected since is no cause any more.
    pinned["spec"]["startingCSV"] = json!("demo.v1");
    pinned["status"]["lastUpdated"] = json!("2026-01-01T00:59:30Z");
    assert!(look(vec![pinned, group(), catalog("READY"), serving]).causes.is_empty());
}

#[test]
fn an_aggregated_api_is_down() {
    let mut pending = csv("Pending", "RequirementsNotMet", "one or more requirements couldn't be found");
    pending["status"]["requirementStatus"] = json!([{
        "kind": "APIService", "name": "v1.metrics.example.com", "status": "NotPresent", "message": "APIService is not available",
    }]);
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.metrics.example.com"},
        "status": {"conditions": [{"type": "Available", "status": "False", "message": "no endpoints for service"}]},
    });
    check(
        "api-service-down",
        "apiservice/v1.metrics.example.com",
        "no endpoints",
        vec![installed(), group(), catalog("READY"), pending, service],
    );
}

#[test]
fn crds_are_missing() {
    let missing = |list: &str| {
        let mut pending = csv("Pending", "RequirementsNotMet", "one or more requirements couldn't be found");
        pending["spec"]["customresourcedefinitions"][list] =
            json!([{"name": "queues.example.com", "version": "v1"}]);
        pending["status"]["requirementStatus"] = json!([{
            "kind": "CustomResourceDefinition", "name": "queues.example.com", "status": "NotPresent", "message": "CRD is not present",
        }]);
        vec![installed(), group(), catalog("READY"), pending]
    };
    check("required-api-missing", "clusterserviceversion/demo.v1", "CRD is not present", missing("required"));
    check("owned-crd-missing", "clusterserviceversion/demo.v1", "CRD is not present", missing("owned"));
    // It is there by now: OLM looks again within half a minute.
    let mut created = missing("required");
    created.push(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "queues.example.com"},
        "spec": {"versions": [{"name": "v1", "served": true}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }));
    assert_eq!(look(created).state, State::Progressing);
}

#[test]
fn another_catalog_blocks_all() {
    let mut other = catalog("TRANSIENT_FAILURE");
    other["metadata"]["name"] = json!("other");
    other["spec"]["image"] = json!("r/other:1");
    let mut down = catalog_pod(json!({"phase": "Pending", "containerStatuses": [{
        "name": "registry-server", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": "ErrImagePull", "message": "r/other:1: not found"}},
    }]}));
    down["metadata"]["name"] = json!("other-x");
    down["metadata"]["labels"] = json!({"olm.catalogSource": "other"});
    down["spec"]["containers"][0]["image"] = json!("r/other:1");
    let blocked = subscription(json!({"conditions": [{
        "type": "ResolutionFailed", "status": "True", "reason": "ErrorPreventedResolution",
        "message": "error using catalogsource here/other: failed to list bundles: connection refused",
    }]}));
    check(
        "catalog-image-pull",
        "pod/other-x",
        "r/other:1",
        vec![blocked, group(), catalog("READY"), other, down],
    );
}

#[test]
fn olm_does_not_run() {
    let mut olm = object("apps/v1", "Deployment", "catalog-operator", json!({"status": {}}));
    olm["metadata"]["namespace"] = json!("olm");
    check(
        "olm-not-running",
        "deployment/catalog-operator",
        "no available pod",
        vec![subscription(json!({})), group(), catalog("READY"), olm],
    );
}

#[test]
fn kinds_that_were_not_looked_at_are_no_proof() {
    let mut seen = Observation::new();
    seen.add(installed());
    let diagnosis = diagnose(&seen, &Scope::default());
    assert!(diagnosis.causes.is_empty(), "{diagnosis:#?}");
    assert!(diagnosis.not_seen.iter().any(|one| one.what == "OperatorGroup"));
}
