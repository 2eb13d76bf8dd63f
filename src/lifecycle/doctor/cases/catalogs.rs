//! What keeps OLM from finding a version.

use serde_json::json;

use super::{catalog, catalog_pod, check, group, look, subscription};

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

/// OLM serves it with an image of its own, which nobody can correct in the CatalogSource.
#[test]
fn the_image_of_a_catalog_server_is_not_corrected_in_the_catalog() {
    let pulled = |image: &str| {
        let mut extracted = catalog("TRANSIENT_FAILURE");
        extracted["spec"]["grpcPodConfig"] = json!({"extractContent": {"catalogDir": "/configs"}});
        let mut down = catalog_pod(json!({"phase": "Pending", "containerStatuses": [{
            "name": "registry-server", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "ErrImagePull", "message": "i/o timeout"}},
        }]}));
        down["spec"]["initContainers"] = json!([{"name": "extract-content", "image": "r/catalog:1"}]);
        down["spec"]["containers"][0]["image"] = json!(image);
        let diagnosis = look(vec![subscription(json!({})), group(), extracted, down]);
        let cause = &diagnosis.causes[0];
        assert_eq!(cause.code, "catalog-image-pull", "{diagnosis:#?}");
        cause.repair[0].command.to_string()
    };
    assert!(pulled("mirror.lab:5000/opm:v1").starts_with("kubectl get mutatingwebhookconfigurations "));
    assert!(pulled("r/catalog:1").starts_with("kubectl -n here edit catalogsource"));
}

#[test]
fn a_catalog_elsewhere_blocks_all_in_the_words_of_any_olm() {
    let elsewhere = |mut object: serde_json::Value| {
        object["metadata"]["namespace"] = json!("elsewhere");
        object
    };
    let mut other = elsewhere(catalog("TRANSIENT_FAILURE"));
    other["metadata"]["name"] = json!("other");
    let mut down = elsewhere(catalog_pod(json!({"phase": "Pending", "containerStatuses": [{
        "name": "registry-server", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": "ErrImagePull", "message": "r/catalog:1: not found"}},
    }]})));
    down["metadata"]["labels"] = json!({"olm.catalogSource": "other"});
    for message in [
        "error using catalogsource elsewhere/other: failed to list bundles: connection refused",
        "failed to populate resolver cache from source other/elsewhere: failed to list bundles: connection refused",
    ] {
        let blocked = subscription(json!({"conditions": [{
            "type": "ResolutionFailed", "status": "True", "reason": "ErrorPreventedResolution", "message": message,
        }]}));
        let objects = vec![blocked, group(), catalog("READY"), other.clone(), down.clone()];
        check("catalog-image-pull", "pod/catalog-x", "the CatalogSource `other`", objects);
    }
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
fn a_catalog_has_neither_image_nor_address() {
    let mut invalid = catalog("");
    invalid["status"] = json!({"reason": "SpecInvalidError", "message": "image and address unset: at least one must be set for sourcetype: grpc"});
    check(
        "catalog-invalid",
        "catalogsource/catalog",
        "image and address unset",
        vec![subscription(json!({})), group(), invalid],
    );
}

#[test]
fn a_catalog_pod_finds_no_node() {
    let message = "0/1 nodes are available: 1 Insufficient memory";
    let condition =
        json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]);
    let pending = catalog_pod(json!({"phase": "Pending", "conditions": condition}));
    let objects = vec![subscription(json!({})), group(), catalog("TRANSIENT_FAILURE"), pending];
    check("catalog-pod-pending", "pod/catalog-x", message, objects);
}

#[test]
fn a_catalog_with_an_address_does_not_answer() {
    let mut away = catalog("TRANSIENT_FAILURE");
    away["spec"] = json!({"address": "192.0.2.2:50051"});
    let objects = vec![subscription(json!({})), group(), away];
    check("catalog-unreachable", "catalogsource/catalog", "does not answer", objects);
}

#[test]
fn olm_cannot_resolve_for_a_reason_that_only_it_knows() {
    let message = "failed to populate resolver cache: invalid metadata of a bundle";
    let failed = subscription(json!({"conditions": [{
        "type": "ResolutionFailed", "status": "True", "reason": "ErrorPreventedResolution", "message": message,
    }]}));
    let serving = catalog_pod(
        json!({"phase": "Running", "containerStatuses": [{"name": "registry-server", "ready": true}]}),
    );
    let objects = vec![failed, group(), catalog("READY"), serving];
    check("resolution-failed", "subscription/demo", message, objects);
}

#[test]
fn a_catalog_without_a_pod_has_none_to_delete() {
    let objects = vec![subscription(json!({})), group(), catalog("TRANSIENT_FAILURE")];
    let diagnosis = look(objects);
    let cause = &diagnosis.causes[0];
    assert_eq!(cause.code, "catalog-unreachable", "{diagnosis:#?}");
    assert!(cause.sentence.ends_with("it has no pod"), "{}", cause.sentence);
    let commands: Vec<String> = cause.repair.iter().map(|one| one.command.to_string()).collect();
    assert_eq!(commands, ["olmkit olm status", "olmkit source refresh catalog -n here"]);
}

#[test]
fn the_pod_of_a_catalog_is_refused() {
    for (code, refusal) in [
        ("pod-security", "violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false"),
        ("quota-exceeded", "exceeded quota: team, requested: pods=1, used: pods=5, limited: pods=5"),
    ] {
        let message = format!(
            "couldn't ensure registry server - error ensuring pod: : error creating new pod: catalog-: pods \"catalog-x\" is forbidden: {refusal}"
        );
        let mut refused = catalog("");
        refused["status"] = json!({"message": message, "reason": "RegistryServerError"});
        check(
            code,
            "catalogsource/catalog",
            "its pod is refused",
            vec![subscription(json!({})), group(), refused],
        );
    }
}

#[test]
fn a_webhook_has_changed_the_image_of_a_catalog_pod() {
    let mut pod = catalog_pod(json!({"phase": "Pending"}));
    pod["spec"]["containers"][0]["image"] = json!("mirror.example.com/catalog:1");
    let objects =
        |pod: serde_json::Value| vec![subscription(json!({})), group(), catalog("TRANSIENT_FAILURE"), pod];
    check(
        "catalog-pod-changed",
        "pod/catalog-x",
        "runs the image `mirror.example.com/catalog:1`, not `r/catalog:1`",
        objects(pod.clone()),
    );
    // OLM replaces it again and again, so it is always new.
    pod["metadata"]["creationTimestamp"] = json!("2026-01-01T00:59:59Z");
    check("catalog-pod-changed", "pod/catalog-x", "mutating webhook", objects(pod.clone()));
    // The one that it deletes is not replaced yet, and OLM has not noticed.
    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
    let mut ending = objects(pod.clone());
    ending[2] = catalog("READY");
    check("catalog-pod-changed", "pod/catalog-x", "mutating webhook", ending);
    pod["metadata"]["deletionTimestamp"] = json!(null);
    // One of an older image is replaced by OLM.
    pod["spec"]["containers"][0]["image"] = json!("r/catalog:0");
    let found = look(objects(pod));
    assert!(found.causes.iter().all(|cause| cause.code != "catalog-pod-changed"), "{found:#?}");
}
