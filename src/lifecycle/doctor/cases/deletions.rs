//! Objects that are being deleted and do not go.

use serde_json::{Value, json};

use super::{State, available, catalog, check, csv, group, installed, look};

fn deleted(mut object: Value, at: &str, finalizers: &[&str]) -> Value {
    object["metadata"]["deletionTimestamp"] = json!(at);
    object["metadata"]["finalizers"] = json!(finalizers);
    object
}

#[test]
fn a_subscription_with_a_finalizer_is_not_progressing_for_ever() {
    let with =
        |at: &str, finalizers: &[&str]| vec![deleted(installed(), at, finalizers), group(), catalog("READY")];
    let old = "2026-01-01T00:30:00Z";
    for (finalizer, owner) in [
        ("example.com/cleanup", "the controller for `example.com`"),
        ("operators.coreos.com/x", "OLM (olm-operator)"),
        ("foregroundDeletion", "garbage collector"),
        ("cleanup", "a controller that it does not name"),
    ] {
        check("deletion-blocked", "subscription/demo", owner, with(old, &[finalizer]));
        check("deletion-blocked", "subscription/demo", &format!("`{finalizer}`"), with(old, &[finalizer]));
    }
    assert_eq!(look(with("2026-01-01T00:59:45Z", &["example.com/cleanup"])).state, State::Progressing);
    // Without finalizers it is as good as gone.
    assert_eq!(look(with(old, &[])).state, State::Progressing);
}

#[test]
fn a_finalizer_is_of_who_set_it() {
    let mut going = deleted(installed(), "2026-01-01T00:30:00Z", &["cleanup"]);
    going["metadata"]["managedFields"] = json!([{
        "manager": "backup-agent", "fieldsV1": {"f:metadata": {"f:finalizers": {"v:\"cleanup\"": {}}}},
    }]);
    check("deletion-blocked", "subscription/demo", "of the controller `backup-agent`", vec![going, group()]);
}

#[test]
fn a_version_or_a_group_with_a_finalizer_is_not_progressing_for_ever() {
    let old = "2026-01-01T00:30:00Z";
    let going = deleted(csv("Succeeded", "InstallSucceeded", ""), old, &["example.com/cleanup"]);
    let objects = vec![installed(), group(), catalog("READY"), going.clone(), available()];
    check("deletion-blocked", "clusterserviceversion/demo.v1", "example.com", objects);
    check("deletion-blocked", "clusterserviceversion/demo.v1", "example.com", vec![group(), going]);
    let going = deleted(group(), old, &["example.com/cleanup"]);
    check(
        "deletion-blocked",
        "operatorgroup/here",
        "example.com",
        vec![installed(), going, catalog("READY")],
    );
}

#[test]
fn a_namespace_that_does_not_go_is_named_with_its_finalizers() {
    let going = || deleted(installed(), "2026-01-01T00:30:00Z", &[]);
    let namespace = |at: &str| {
        json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "here", "deletionTimestamp": at},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Terminating", "conditions": [{
                "type": "NamespaceFinalizersRemaining", "status": "True",
                "message": "Some content in the namespace has finalizers remaining: demos.example.com/cleanup in 1 resource instances",
            }]},
        })
    };
    let old = vec![going(), group(), namespace("2026-01-01T00:30:00Z")];
    check("namespace-terminating", "namespace/here", "is of the controller for `demos.example.com`", old);
    let new = vec![going(), group(), namespace("2026-01-01T00:59:30Z")];
    assert_eq!(look(new).state, State::Progressing);
    // What keeps the namespace is the root.
    let stuck = deleted(installed(), "2026-01-01T00:30:00Z", &["example.com/cleanup"]);
    let objects = vec![stuck, group(), namespace("2026-01-01T00:30:00Z")];
    check("deletion-blocked", "subscription/demo", "example.com", objects.clone());
    assert_eq!(look(objects).causes[0].consequences, ["namespace/here stays Terminating"]);
}

/// OLM resolves nothing new for the operator until it is gone.
#[test]
fn a_version_that_was_replaced_and_stays_is_not_healthy() {
    let old = deleted(csv("Replacing", "", ""), "2026-01-01T00:59:00Z", &["example.com/cleanup"]);
    let mut new = csv("Succeeded", "InstallSucceeded", "");
    new["metadata"]["name"] = json!("demo.v2");
    new["spec"]["replaces"] = json!("demo.v1");
    let mut subscription = installed();
    for field in ["currentCSV", "installedCSV"] {
        subscription["status"][field] = json!("demo.v2");
    }
    let objects = vec![subscription, group(), catalog("READY"), old, new, available()];
    check("deletion-blocked", "clusterserviceversion/demo.v1", "example.com", objects.clone());
    let effects: Vec<String> =
        look(objects).causes[0].repair.iter().map(|repair| repair.effect.to_string()).collect();
    assert!(effects.iter().all(|effect| !effect.contains("down")), "{effects:?}");
}
