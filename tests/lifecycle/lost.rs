//! What is lost without a word: connections that stay open and tell nothing, readers who have gone; and what a command says that is ended
//! in the middle of its work.

use std::io::{BufRead as _, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::dead::{Answer, SOON, StandIn, interrupt, run, said, spawn, with_a_subscription};

/// An object of OLM's.
fn object(version: &str, kind: &str, name: &str, spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": format!("operators.coreos.com/{version}"), "kind": kind, "spec": spec, "status": status,
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": "7"},
    })
}

fn list(items: Vec<Value>) -> Answer {
    Answer::Json(
        json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "7"}, "items": items}),
    )
}

/// An OLM with a plan that waits for approval, and carries it out as soon as it has that, or never does; its watches never tell anything.
fn mute(carries_out: bool) -> StandIn {
    let is_approved = Arc::new(AtomicBool::new(false));
    StandIn::start_by_verb(move |verb, path| {
        if path.contains("watch=true") {
            return Answer::Silence;
        }
        let approved = is_approved.load(Ordering::Relaxed);
        let plan = |approved: bool, phase: &str| {
            let spec = json!({
                "approval": "Manual", "approved": approved, "clusterServiceVersionNames": ["demo.v1"], "generation": 1,
            });
            object("v1alpha1", "InstallPlan", "install-1", spec, json!({"phase": phase}))
        };
        let path = path.split('?').next().unwrap();
        match path.rsplit('/').next().unwrap() {
            "install-1" => {
                is_approved.store(verb == "PATCH" && carries_out, Ordering::Relaxed);
                Answer::Json(plan(true, "Installing"))
            }
            "installplans" if approved => list(vec![plan(true, "Complete")]),
            "installplans" => list(vec![plan(false, "RequiresApproval")]),
            "subscriptions" => {
                let spec = json!({"name": "demo", "channel": "stable", "source": "catalog", "sourceNamespace": "olm"});
                let installed = if approved { "demo.v1" } else { "" };
                let state = if approved { "AtLatestKnown" } else { "UpgradePending" };
                let status = json!({"currentCSV": "demo.v1", "installedCSV": installed, "state": state});
                list(vec![object("v1alpha1", "Subscription", "demo", spec, status)])
            }
            "clusterserviceversions" if approved => {
                let status = json!({"phase": "Succeeded", "lastTransitionTime": "2020-01-01T00:00:00Z"});
                list(vec![object("v1alpha1", "ClusterServiceVersion", "demo.v1", json!({}), status)])
            }
            "operatorgroups" => list(vec![object("v1", "OperatorGroup", "ns", json!({}), json!({}))]),
            "clusterserviceversions"
            | "operatorconditions"
            | "deployments"
            | "pods"
            | "catalogsources"
            | "jobs"
            | "configmaps"
            | "events" => list(Vec::new()),
            _ => Answer::Status(404),
        }
    })
}

#[test]
fn an_operator_that_is_up_is_seen_though_the_watch_has_fallen_silent() {
    let server = mute(true);
    let output = run(server.port, &["approve", "demo", "-n", "ns", "--timeout", "12s", "--settle", "5s"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("ns/demo: demo.v1 Succeeded"), "{output:?}");
    assert!(server.paths().iter().any(|path| path.contains("watch=true")), "it was not watched");
}

#[test]
fn a_watch_whose_reader_has_gone_ends() {
    let server = with_a_subscription(String::new(), |_| Answer::Status(404));
    let (_dir, mut child) = spawn(server.port, &["watch", "-n", "team-a", "--interval", "10m"]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with("team-a/demo nothing installed"), "{line}");
    drop(out);
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > SOON {
            child.kill().unwrap();
            panic!("it goes on");
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
}

/// An operator with many custom resources, each of which takes a while to be deleted.
fn with_many_resources(count: usize, took: Duration) -> StandIn {
    let deleted = Arc::new(AtomicUsize::new(0));
    StandIn::start_by_verb(move |verb, path| {
        if path.contains("watch=true") {
            return Answer::Silence;
        }
        let path = path.split('?').next().unwrap();
        let (parent, last) = path.rsplit_once('/').unwrap();
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "kettles.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"kind": "Kettle", "plural": "kettles"},
                "versions": [{"name": "v1", "served": true, "storage": true}],
            },
            "status": {"storedVersions": ["v1"]},
        });
        if parent.ends_with("/kettles") {
            if verb == "DELETE" {
                deleted.fetch_add(1, Ordering::Relaxed);
                std::thread::park_timeout(took);
                return Answer::Json(json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}));
            }
            return Answer::Status(404);
        }
        match last {
            "kettles" => list(
                (0..count)
                    .map(|at| json!({"apiVersion": "example.com/v1", "kind": "Kettle", "metadata": {"name": format!("k{at}"), "namespace": "ns"}}))
                    .collect(),
            ),
            "kettles.example.com" => Answer::Json(crd),
            "subscriptions" => {
                let spec = json!({"name": "demo", "channel": "stable", "source": "catalog", "sourceNamespace": "olm"});
                let status = json!({"currentCSV": "demo.v1", "installedCSV": "demo.v1", "state": "AtLatestKnown"});
                list(vec![object("v1alpha1", "Subscription", "demo", spec, status)])
            }
            "clusterserviceversions" => {
                let owned = json!([{"name": "kettles.example.com", "kind": "Kettle", "version": "v1"}]);
                let spec = json!({"customresourcedefinitions": {"owned": owned}});
                list(vec![object("v1alpha1", "ClusterServiceVersion", "demo.v1", spec, json!({"phase": "Succeeded"}))])
            }
            "selfsubjectaccessreviews" => Answer::Json(
                json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {}, "spec": {}, "status": {"allowed": true}}),
            ),
            "installplans" | "operatorgroups" | "operatorconditions" | "deployments" | "pods" | "clusterroles" => {
                list(Vec::new())
            }
            _ => Answer::Status(404),
        }
    })
}

#[test]
fn a_deadline_in_the_middle_of_many_deletions_is_no_trouble_of_the_network() {
    let server = with_many_resources(400, Duration::from_millis(50));
    let words = ["uninstall", "demo", "-n", "ns", "--delete-crds", "--timeout", "4s"];
    for wait in ["--wait=true", "--wait=false"] {
        let output = run(server.port, &[&words[..], &[wait]].concat());
        let told = said(&output);
        assert_eq!(output.status.code(), Some(4), "{told}");
        assert!(told.contains("error: timed out after 4 s "), "{told}");
        assert!(!told.contains("network") && !told.contains("did not answer"), "{told}");
        assert!(told.contains("help: done: deleted kettle/k0 in ns, deleted kettle/k1 in ns, "), "{told}");
        assert!(told.contains("help: left: delete kettle/k") && told.contains(" more\n"), "{told}");
        assert!(told.ends_with("help: changes were kept; run the same command again to resume\n"), "{told}");
        assert!(wait == "--wait=true" || told.contains("pass a longer --timeout"), "{told}");
    }
}

#[test]
fn ctrl_c_in_the_middle_of_many_deletions_says_what_is_done_and_what_is_left() {
    let server = with_many_resources(40, Duration::from_millis(100));
    let (_dir, child) =
        spawn(server.port, &["uninstall", "demo", "-n", "ns", "--delete-crds", "--wait=false"]);
    server.until("/kettles/k3");
    interrupt(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let told = said(&output);
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.contains("error: interrupted\n  help: done: deleted kettle/k0 in ns, "), "{told}");
    assert!(told.contains("\n  help: left: delete kettle/k"), "{told}");
    assert!(told.ends_with("help: changes were kept; run the same command again to resume\n"), "{told}");
}

#[test]
fn ctrl_c_while_an_operator_is_waited_for_says_what_is_left() {
    let server = mute(false);
    let (_dir, child) = spawn(server.port, &["approve", "demo", "-n", "ns", "--settle", "1s"]);
    // It is watched only once it is waited for.
    let begun = Instant::now();
    while !server.heads().iter().any(|head| head.contains("watch=true")) {
        assert!(begun.elapsed() < SOON, "nothing is waited for");
        std::thread::park_timeout(Duration::from_millis(10));
    }
    interrupt(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let told = said(&output);
    assert_eq!(output.status.code(), Some(130), "{told}");
    let expected = "error: interrupted\n  help: done: changed installplan/install-1 in ns\n  help: left: wait for \
                    installplan/install-1 to be approved, although the server has accepted the patch, install `demo.v1`\n  \
                    help: changes were kept; approving it again does nothing: ";
    assert!(told.contains(expected), "{told}");
}

/// A version without Deployments.
const CSV: &str = r#"{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "demo.v1"},
    "spec": {"version": "1.0.0", "installModes": [{"type": "AllNamespaces", "supported": true}]}}"#;

#[test]
fn ctrl_c_between_two_writes_says_what_is_done_and_what_is_left() {
    let server = StandIn::start_by_verb(|verb, path| {
        let path = path.split('?').next().unwrap();
        match (verb, path.rsplit('/').next().unwrap()) {
            ("POST", "subscriptions") => Answer::Silence,
            ("POST", "selfsubjectaccessreviews") => Answer::Json(
                json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {}, "spec": {}, "status": {"allowed": true}}),
            ),
            ("POST", _) => Answer::Json(object("v1", "OperatorGroup", "ns", json!({}), json!({}))),
            (_, "catalogsources") if path.contains("/namespaces/olm/") => {
                let mut source = object(
                    "v1alpha1",
                    "CatalogSource",
                    "catalog",
                    json!({"sourceType": "grpc", "image": "x"}),
                    json!({}),
                );
                source["metadata"]["namespace"] = json!("olm");
                list(vec![source])
            }
            (_, "ns") => {
                Answer::Json(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}))
            }
            (
                _,
                "catalogsources"
                | "subscriptions"
                | "installplans"
                | "clusterserviceversions"
                | "operatorgroups"
                | "operatorconditions"
                | "deployments"
                | "pods"
                | "jobs"
                | "configmaps"
                | "events"
                | "namespaces",
            ) => list(Vec::new()),
            _ => Answer::Status(404),
        }
    });
    let catalog = tempfile::tempdir().unwrap();
    let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, CSV);
    let text = format!(
        "{{schema: olm.package, name: demo, defaultChannel: stable}}\n---\n\
         {{schema: olm.channel, package: demo, name: stable, entries: [{{name: demo.v1}}]}}\n---\n\
         {{schema: olm.bundle, package: demo, name: demo.v1, image: '127.0.0.1:1/x/y:v1', properties: [\
         {{type: olm.package, value: {{packageName: demo, version: 1.0.0}}}}, {{type: olm.bundle.object, value: {{data: {data}}}}}]}}\n"
    );
    std::fs::write(catalog.path().join("catalog.yaml"), text).unwrap();
    let from = catalog.path().to_str().unwrap();
    let (_dir, child) = spawn(server.port, &["install", "demo", "-n", "ns", "--catalog-from", from]);
    let begun = Instant::now();
    while !server.heads().iter().any(|head| head.starts_with("POST ") && head.contains("/subscriptions")) {
        assert!(begun.elapsed() < SOON, "nothing is created: {:#?}", server.heads());
        std::thread::park_timeout(Duration::from_millis(10));
    }
    interrupt(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let expected = "error: interrupted\n  help: done: created operatorgroup/ns in ns\n  help: left: create subscription/demo in ns, \
                    install `demo.v1`\n  help: changes were kept; run the same command again to resume\n";
    assert!(said(&output).ends_with(expected), "{}", said(&output));
    assert_eq!(output.status.code(), Some(130));
}
