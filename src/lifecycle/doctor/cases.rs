//! Causes that no recording has: each with a small observation made by hand. Here is what they are made of.

mod catalogs;
mod collected;
mod deletions;
mod namespaces;
mod plans;
mod pods;
mod unpack;
mod versions;
mod workloads;

use serde_json::{Value, json};

use super::{Diagnosis, Observation, Outage, Repair, Scope, State, diagnose, outage};

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

/// An operator that does not come up, and its pod with a status.
fn around_pod(status: Value) -> Vec<Value> {
    let ill = pod(json!({"status": status}));
    vec![installed(), group(), catalog("READY"), installing(), deployment(json!([])), ill]
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

/// The diagnosis, of which no repair takes down what serves.
fn look(objects: Vec<Value>) -> Diagnosis {
    let seen = Observation::complete(objects, NOW);
    let diagnosis = diagnose(&seen, &Scope::default());
    for Repair { command, effect, .. } in diagnosis.causes.iter().flat_map(|cause| &cause.repair) {
        let outage = outage(&seen, command);
        assert_ne!(outage, Outage::Lasting, "{command}");
        assert!(outage == Outage::None || effect.to_string().contains("down"), "{command}: {effect}");
    }
    diagnosis
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
