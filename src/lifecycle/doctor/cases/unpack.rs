//! Jobs that unpack bundles. They lie beside the catalog, and do not say which operator waits for them.

use serde_json::{Value, json};

use super::{OLM, State, available, catalog, check, csv, group, look, object, subscription};
use crate::lifecycle::api::label::UNPACK;

/// OLM 0.46 on a bundle whose image cannot be pulled.
const PULL: &str = "Bundle image pull failed. Common causes: Missing ICSP (ppc64le/s390x/arm64), auth failure, invalid image. Job will retry until timeout (~10 min), then auto-cleanup and retry in ~5 min.";

/// A Job whose image is not there, and its pod.
fn job() -> [Value; 2] {
    let spec = json!({"template": {"spec": {"initContainers": [{"name": "pull", "image": "r/bundle:v2"}]}}});
    let job = json!({"metadata": {"labels": {UNPACK: "bundle"}}, "spec": spec});
    let waiting =
        json!({"reason": "ImagePullBackOff", "message": "Back-off pulling image \"r/bundle:v2\": not found"});
    let pod = json!({
        "metadata": {"labels": {"job-name": "bundle"}, "ownerReferences": [{"kind": "Job", "name": "bundle"}]},
        "spec": {"initContainers": [{"name": "pull", "image": "r/bundle:v2"}], "containers": []},
        "status": {"phase": "Pending", "initContainerStatuses": [{
            "name": "pull", "ready": false, "restartCount": 0, "state": {"waiting": waiting},
        }]},
    });
    [object("batch/v1", "Job", "bundle", job), object("v1", "Pod", "bundle-x", pod)]
}

fn unpacking(message: &str) -> Value {
    json!([{"type": "BundleUnpacking", "status": "True", "reason": "UnpackingInProgress", "message": message}])
}

#[test]
fn a_bundle_that_cannot_be_pulled_is_named_to_whoever_waits_for_it() {
    let objects = |conditions: Value, more: Option<Value>| {
        let [job, pod] = job();
        let objects = [subscription(json!({"conditions": conditions})), group(), catalog("READY"), job, pod];
        objects.into_iter().chain(more).collect::<Vec<_>>()
    };
    let named = "`r/bundle:v2` for the Subscription `demo`";
    check("bundle-image-pull", "pod/bundle-x", named, objects(unpacking(PULL), None));
    // OLM looks at the pod some seconds later; there is no other Job.
    check("bundle-image-pull", "pod/bundle-x", named, objects(unpacking(""), None));
    // Another operator of the same catalog waits for it: this one for its own Job, which goes well, or for nothing.
    let own = object("batch/v1", "Job", "own", json!({"metadata": {"labels": {UNPACK: "own"}}}));
    for (conditions, more) in
        [(unpacking("unpack job not completed"), None), (unpacking(""), Some(own)), (json!([]), None)]
    {
        let found = look(objects(conditions, more));
        assert!(found.causes.iter().all(|cause| cause.code != "bundle-image-pull"), "{found:#?}");
    }
}

#[test]
fn a_job_that_failed_for_another_operator_is_not_blamed() {
    let objects = |conditions: Value| {
        let [mut job, _] = job();
        job["status"] = json!({"conditions": [{
            "type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long",
        }]});
        vec![subscription(json!({"conditions": conditions})), group(), catalog("READY"), job]
    };
    let failed = json!([{"type": "BundleUnpackFailed", "status": "True", "message": "DeadlineExceeded"}]);
    check("unpack-failed", "job/bundle", "`r/bundle:v2`", objects(failed));
    let found = look(objects(json!([])));
    assert!(found.causes.iter().all(|cause| cause.code != "unpack-failed"), "{found:#?}");
}

#[test]
fn an_upgrade_to_a_bundle_that_was_tried_before_the_last_plan_is_not_healthy() {
    let objects = |conditions: Value| {
        let [job, pod] = job();
        let status = json!({
            "currentCSV": "demo.v1", "installedCSV": "demo.v1", "state": "AtLatestKnown",
            "installPlanRef": {"name": "install-1"}, "conditions": conditions,
        });
        let plan = json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:30:00Z"},
            "spec": {"approved": true, "clusterServiceVersionNames": ["demo.v1"]}, "status": {"phase": "Complete"},
        });
        let plan = object(OLM, "InstallPlan", "install-1", plan);
        let up = csv("Succeeded", "InstallSucceeded", "install strategy completed with no errors");
        vec![subscription(status), group(), catalog("READY"), plan, up, available(), job, pod]
    };
    check("bundle-image-pull", "pod/bundle-x", "not found", objects(unpacking(PULL)));
    let found = look(objects(json!([])));
    assert_eq!(found.operators[0].state, State::Healthy, "{found:#?}");
}

#[test]
fn a_job_whose_pods_a_quota_refuses_is_named_though_it_has_none() {
    let [job, _] = job();
    let event = object(
        "v1",
        "Event",
        "bundle.1",
        json!({
            "type": "Warning", "reason": "FailedCreate", "involvedObject": {"kind": "Job", "name": "bundle"},
            "message": "Error creating: pods \"bundle-x\" is forbidden: failed quota: team: must specify limits.cpu for: extract,pull,util",
        }),
    );
    let check = |job: Value, others: Vec<Value>| {
        let objects = vec![group(), catalog("READY"), job, event.clone()];
        let sentence =
            "refuses the pods of its unpack Job: pods \"bundle-x\" is forbidden: failed quota: team";
        check("quota-exceeded", "job/bundle", sentence, [objects, others].concat());
    };
    let waiting = subscription(json!({"conditions": unpacking("unpack job not completed")}));
    check(job.clone(), vec![waiting]);
    // OLM has not said that much; the Job of the version before is planned.
    let status = json!({
        "currentCSV": "demo.v1", "installedCSV": "demo.v1", "state": "AtLatestKnown",
        "installPlanRef": {"name": "install-1"}, "conditions": unpacking(""),
    });
    let before = json!({
        "metadata": {"labels": {UNPACK: "before"}},
        "status": {"conditions": [{"type": "Complete", "status": "True"}]},
    });
    let plan = json!({
        "metadata": {"creationTimestamp": "2026-01-01T00:10:00Z"},
        "spec": {"approved": true, "clusterServiceVersionNames": ["demo.v1"]}, "status": {"phase": "Complete"},
    });
    let mut job = job;
    job["metadata"]["creationTimestamp"] = json!("2026-01-01T00:20:00Z");
    let before = object("batch/v1", "Job", "before", before);
    let plan = object(OLM, "InstallPlan", "install-1", plan);
    let up = csv("Succeeded", "InstallSucceeded", "install strategy completed with no errors");
    check(job, vec![subscription(status), before, plan, up, available()]);
}
