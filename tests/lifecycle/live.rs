//! `bundle diff --live`: the custom resources of a cluster, page by page.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::dead::{Answer, StandIn, kubeconfig};

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/kettles.example.com";

fn diff(port: u16, words: &[&str]) -> Output {
    let (_dir, config) = kubeconfig(port);
    Command::new(env!("CARGO_BIN_EXE_olmkit"))
        .args(["bundle", "diff", "--live", "--kubeconfig"])
        .arg(config)
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/diff.in"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The messages of findings about the cluster, by code.
fn live(output: &Output) -> Vec<(String, String)> {
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(output)));
    let findings = found["findings"].as_array().unwrap().clone();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let of_cluster = findings.into_iter().filter(|finding| text(finding, "message").contains("cluster"));
    of_cluster.map(|finding| (text(&finding, "code"), text(&finding, "message"))).collect()
}

fn crd(stored: &[&str]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "kettles.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Kettle", "plural": "kettles"},
            "versions": [{"name": "v1", "served": true, "storage": true}],
        },
        "status": {"storedVersions": stored},
    })
}

/// Eleven hundred Kettles, of which every tenth holds eight cups and every hundredth has a colour.
fn kettles(from: usize, to: usize) -> Vec<Value> {
    let kettle = |at: usize| {
        let mut spec = json!({"cups": if at.is_multiple_of(10) { 8 } else { 4 }});
        if at.is_multiple_of(100) {
            spec["colour"] = "red".into();
        }
        json!({"metadata": {"name": format!("k{at}"), "namespace": "shop"}, "spec": spec})
    };
    (from..to).map(kettle).collect()
}

const ALL: usize = 1100;

#[test]
fn objects_of_all_pages_are_counted_once_though_a_list_begins_anew() {
    let has_expired = AtomicBool::new(false);
    let server = StandIn::start(move |path| {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        match path {
            CRD => Answer::Json(crd(&["v1"])),
            "/apis/example.com/v1/kettles" => {
                let from = query.split_once("continue=").map_or(0, |(_, rest)| {
                    rest.split('&').next().and_then(|token| token.parse().ok()).unwrap_or(0)
                });
                // What the third page goes on from is forgotten once.
                if from == 1000 && !has_expired.swap(true, Ordering::Relaxed) {
                    return Answer::Status(410);
                }
                let to = (from + 500).min(ALL);
                let next = if to < ALL { to.to_string() } else { String::new() };
                Answer::Json(json!({
                    "apiVersion": "example.com/v1", "kind": "KettleList", "metadata": {"continue": next},
                    "items": kettles(from, to),
                }))
            }
            _ => Answer::Status(404),
        }
    });
    let output = diff(server.port, &["old", "new", "--output", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let expected = [
        (
            "live-pruned",
            "11 objects of kind `Kettle` on the cluster lose a field at `spec`, in version `v1`: such as `shop/k0`: `colour` is \
             not a field of the schema",
        ),
        (
            "live-refused",
            "110 objects of kind `Kettle` on the cluster are no longer valid at `spec.cups`, in version `v1`: such as `shop/k0`: \
             8 is greater than 6",
        ),
    ];
    assert_eq!(live(&output), expected.map(|(code, message)| (code.to_owned(), message.to_owned())));
    let pages = server.paths().iter().filter(|path| path.contains("/kettles?")).count();
    assert_eq!(pages, 6);

    // The same for two files with a CRD each, and nothing where nothing changes.
    let files = ["new/manifests/kettles.yaml"; 2];
    let output = diff(server.port, &[&files[..], &["--output", "json"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(live(&output), []);
}

#[test]
fn a_stored_version_that_only_the_cluster_knows_is_found() {
    let server = StandIn::start(|path| match path.split('?').next() {
        Some(CRD) => Answer::Json(crd(&["v1alpha1", "v1"])),
        _ => Answer::Json(
            json!({"apiVersion": "example.com/v1", "kind": "KettleList", "metadata": {}, "items": []}),
        ),
    });
    let output = diff(server.port, &["old", "old", "--output", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let found = live(&output);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "crd-stored-version-removed");
}

#[test]
fn objects_that_may_not_be_listed_are_a_warning_and_a_new_crd_is_none() {
    let server = StandIn::start(|path| match path.split('?').next() {
        Some(CRD) => Answer::Json(crd(&["v1"])),
        _ => Answer::Status(403),
    });
    let output = diff(server.port, &["old", "old", "--output", "json"]);
    assert!(output.status.success(), "{}", said(&output));
    let found = live(&output);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == "live-not-checked" && found[0].1.contains("not allowed to list"), "{found:?}");

    let server = StandIn::start(|_| Answer::Status(404));
    let output = diff(server.port, &["old", "old"]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_cluster_that_does_not_answer_takes_no_longer_than_the_timeout() {
    for answer in [(|_: &str| Answer::Silence) as fn(&str) -> Answer, |_: &str| Answer::Half] {
        let server = StandIn::start(answer);
        let output = diff(server.port, &["old", "new", "--live-timeout", "1s"]);
        assert_eq!(output.status.code(), Some(4), "{}", said(&output));
        assert!(said(&output).contains("did not answer within 1 s"), "{}", said(&output));
    }
    let output = diff(1, &["old", "new"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let output = diff(1, &["--catalog", "catalog.yaml"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}
