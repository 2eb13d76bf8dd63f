//! What was collected once: times that are wrong, and objects that are missing.

use serde_json::{Value, json};

use super::{
    Diagnosis, Observation, Scope, State, available, catalog, catalog_pod, csv, deployment, diagnose, group,
    installed, installing, look, object, pod, subscription,
};
use crate::lifecycle::doctor::read;

#[test]
fn kinds_that_were_not_looked_at_are_no_proof() {
    let mut seen = Observation::new();
    seen.add(installed());
    let diagnosis = diagnose(&seen, &Scope::default());
    assert!(diagnosis.causes.is_empty(), "{diagnosis:#?}");
    assert!(diagnosis.not_seen.iter().any(|one| one.what == "OperatorGroup"));
}

/// What a text holds that `kubectl get -o json` wrote.
fn collect(items: &[Value]) -> Diagnosis {
    let mut seen = Observation::new();
    read(&mut seen, &json!({"kind": "List", "apiVersion": "v1", "items": items}).to_string());
    seen.collected();
    diagnose(&seen, &Scope::default())
}

fn event(first: &str, last: &str) -> Value {
    object(
        "v1",
        "Event",
        "demo.1",
        json!({
            "involvedObject": {"kind": "Pod", "name": "elsewhere"}, "type": "Warning", "reason": "BackOff",
            "message": "Back-off restarting failed container", "firstTimestamp": first, "lastTimestamp": last,
        }),
    )
}

/// A fresh Subscription, which OLM has not looked at yet, and everything that was collected beside it.
fn fresh(event: Value) -> Vec<Value> {
    vec![subscription(json!({})), group(), catalog("READY"), catalog_pod(json!({"phase": "Running"})), event]
}

#[test]
fn an_event_with_a_wrong_clock_makes_nothing_old() {
    for (first, last) in [
        ("2026-01-01T00:00:10Z", "2036-01-01T00:00:00Z"),
        ("2036-01-01T00:00:00Z", "2036-01-01T00:00:00Z"),
        ("2026-01-01T00:40:00Z", "2026-01-01T00:40:10Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    ] {
        let mut objects = fresh(event(first, last));
        objects[2]["status"]["connectionState"]["lastConnect"] = json!("2026-01-01T00:00:20Z");
        let diagnosis = collect(&objects);
        assert_eq!(diagnosis.state, State::Progressing, "{last}: {diagnosis:#?}");
    }
}

#[test]
fn objects_without_times_are_not_old() {
    let mut objects = fresh(event("", ""));
    for object in &mut objects {
        object["metadata"]["creationTimestamp"] = Value::Null;
    }
    objects[2]["status"]["connectionState"]["lastConnect"] = Value::Null;
    let diagnosis = collect(&objects);
    assert_eq!(diagnosis.state, State::Progressing, "{diagnosis:#?}");
    assert!(diagnosis.not_seen.iter().any(|one| one.what == "times"), "{diagnosis:#?}");
    // A version without times is not stuck for more than ten minutes either.
    let mut pending = csv("Pending", "RequirementsUnknown", "requirements not yet checked");
    pending["metadata"]["creationTimestamp"] = Value::Null;
    pending["status"]["lastTransitionTime"] = Value::Null;
    let diagnosis = look(vec![installed(), group(), catalog("READY"), pending]);
    assert_eq!(diagnosis.state, State::Progressing, "{diagnosis:#?}");
}

#[test]
fn what_was_not_collected_is_not_progress() {
    let told = |objects: &[Value], kinds: &str| {
        let diagnosis = collect(objects);
        let [cause] = &diagnosis.causes[..] else { panic!("{diagnosis:#?}") };
        assert_eq!((cause.code, diagnosis.state), ("not-collected", State::Waiting), "{diagnosis:#?}");
        assert!(cause.sentence.contains(&format!("no {kinds} was collected")), "{}", cause.sentence);
    };
    let first = || vec![installed(), group(), catalog("READY"), installing()];
    told(&first(), "Deployment or Pod");
    told(&[first(), vec![deployment(json!([]))]].concat(), "Pod");
    let waiting = pod(json!({"status": {"phase": "Pending", "containerStatuses": [{
        "name": "manager", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}},
    }]}}));
    told(&[first(), vec![deployment(json!([])), waiting.clone()]].concat(), "Event");
    told(&[subscription(json!({})), group(), catalog("READY")], "Pod");
    told(&[installed(), group(), catalog("READY")], "ClusterServiceVersion or InstallPlan");
    // kubectl prints nothing for a kind that has no objects.
    let serving = catalog_pod(
        json!({"phase": "Running", "containerStatuses": [{"name": "registry-server", "ready": true}]}),
    );
    told(&[subscription(json!({})), catalog("READY"), serving.clone()], "OperatorGroup");
    let label = crate::lifecycle::api::label::UNPACK;
    let unpacked = |at: &str| {
        let complete = json!([{"type": "Complete", "status": "True", "lastTransitionTime": at}]);
        let job = json!({"metadata": {"labels": {label: "bundle"}}, "status": {"conditions": complete}});
        let job = object("batch/v1", "Job", "unpack", job);
        vec![
            subscription(json!({})),
            group(),
            catalog("READY"),
            serving.clone(),
            job,
            event("", "2026-01-01T00:10:00Z"),
        ]
    };
    told(&unpacked("2026-01-01T00:05:00Z"), "InstallPlan");
    assert_eq!(collect(&unpacked("2026-01-01T00:09:50Z")).state, State::Progressing);
    let commands = collect(&unpacked("2026-01-01T00:05:00Z")).causes.remove(0).repair;
    let list = "/apis/operators.coreos.com/v1alpha1/installplans";
    assert_eq!(
        commands[1].command.to_string(),
        format!("for list in {list}; do kubectl get --raw $list; done > missing.json")
    );
    let all = [
        first(),
        vec![deployment(json!([])), waiting, event("2026-01-01T00:58:10Z", "2026-01-01T00:58:10Z")],
    ];
    assert_eq!(collect(&all.concat()).state, State::Progressing);
}

/// OLM leaves the condition behind, but only the objects that it resolves show that it is over.
#[test]
fn a_failed_resolution_without_the_install_plans_is_not_healthy() {
    let failed = |message: &str| {
        let condition = json!({"type": "ResolutionFailed", "status": "True", "reason": "ConstraintsNotSatisfiable", "message": message});
        let mut subscription = installed();
        subscription["status"]["conditions"] = json!([condition]);
        subscription
    };
    let stale = "constraints not satisfiable: clusterserviceversion demo.v0 exists and is not referenced by a subscription";
    let around = |subscription: Value| {
        let running = csv("Succeeded", "InstallSucceeded", "install strategy completed");
        let serving = catalog_pod(
            json!({"phase": "Running", "containerStatuses": [{"name": "registry-server", "ready": true}]}),
        );
        let mut objects = vec![subscription, group(), catalog("READY"), running, serving, available()];
        objects.push(object("batch/v1", "Job", "backup", json!({})));
        objects
    };
    let partial = collect(&around(failed(stale)));
    let [cause] = &partial.causes[..] else { panic!("{partial:#?}") };
    assert_eq!((cause.code, partial.state), ("not-collected", State::Waiting), "{partial:#?}");
    assert!(cause.sentence.contains("demo.v0 exists"), "{}", cause.sentence);
    assert!(cause.sentence.ends_with("no InstallPlan was collected, so its state is unknown"));
    let command = cause.repair[1].command.to_string();
    assert!(command.contains("/apis/operators.coreos.com/v1alpha1/installplans"), "{command}");
    // Where everything was collected, the objects show that it is over; and without the condition nothing is in doubt.
    let plan = json!({"spec": {"clusterServiceVersionNames": ["demo.v1"]}, "status": {"phase": "Complete"}});
    let plan = object("operators.coreos.com/v1alpha1", "InstallPlan", "install-1", plan);
    assert_eq!(collect(&[around(failed(stale)), vec![plan]].concat()).state, State::Healthy);
    assert_eq!(collect(&around(installed())).state, State::Healthy);
}
