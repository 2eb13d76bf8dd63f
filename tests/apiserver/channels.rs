//! `operator test` and `source …` on a real API server: what is found, and that nothing is left, also after Ctrl-C.

use std::process::Stdio;
use std::time::{Duration, Instant};

use olmkit::lifecycle::api::{Key, known};
use olmkit::lifecycle::cluster::Cluster as _;
use serde_json::Value;

use crate::olm::{Olm, inputs, prepare};
use crate::server::{ADMIN, Server};
use crate::{command, signal, text};

/// Quick enough for a server on which OLM is played twenty times as fast.
const QUICK: [&str; 4] = ["--settle", "1s", "--sample-timeout", "10s"];

/// Nothing of the tests is left but a namespace that nobody finishes here: there is no controller for that.
#[track_caller]
fn nothing_is_left(server: &Server, namespace: &str) {
    let mut cluster = server.connect();
    for resource in [&*known::SUBSCRIPTION, &known::CSV, &known::OPERATOR_GROUP, &known::CONFIG_MAP] {
        let left = cluster.list(resource, Some(namespace)).unwrap();
        let left: Vec<Key> = left.iter().map(Key::of).filter(|key| key.name != "kube-root-ca.crt").collect();
        assert!(left.is_empty(), "{left:?}");
    }
    let crds = cluster.list(&known::CRD, None).unwrap();
    let left = crds.iter().map(|crd| Key::of(crd).name).find(|name| name.ends_with("t01.example.com"));
    assert_eq!(left, None);
    let found = cluster.get(&known::NAMESPACE, "", namespace).unwrap();
    let is_going = |found: &Value| found.pointer("/metadata/deletionTimestamp").is_some();
    assert!(found.as_ref().is_none_or(is_going), "{found:?}");
}

pub(super) fn a_channel_is_tested_and_nothing_is_left() {
    let server = Server::start();
    prepare(&server);
    let _olm = Olm::start(&server, "01");
    let samples = inputs("01").join("sample.json");
    let sample = r#"{"apiVersion": "t01.example.com/v1", "kind": "Demo", "metadata": {"name": "example"}, "spec": {"size": 3}}"#;
    std::fs::write(&samples, sample).unwrap();
    let words = ["test", "demo", "-n", "tested", "--samples", samples.to_str().unwrap(), "--output", "json"];
    let output = command(&server, ADMIN, &[&words[..], &QUICK].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["passed"], &report["failed"], &report["skipped"]), (&6.into(), &0.into(), &0.into()));
    let tests = report["cases"].as_array().unwrap();
    assert!(tests.iter().all(|test| test["samples"] == 1), "{report:#}");
    nothing_is_left(&server, "tested");
    // A sample that the server refuses fails the installs and nothing else.
    std::fs::write(&samples, sample.replace("\"spec\": {\"size\": 3}", "\"spec\": {\"size\": \"three\"}"))
        .unwrap();
    let words = ["test", "demo", "-n", "refused", "--edges", "heads", "--samples", samples.to_str().unwrap()];
    let output = command(&server, ADMIN, &[&words[..], &QUICK].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("the sample demo/example was refused"), "{}", text(&output));
    nothing_is_left(&server, "refused");
}

pub(super) fn a_test_that_is_interrupted_removes_what_it_has_made() {
    let server = Server::start();
    prepare(&server);
    let _olm = Olm::start(&server, "01");
    let mut interrupted = 0;
    for (round, moment) in [50, 300, 800, 1_500, 2_500, 4_000].into_iter().enumerate() {
        let namespace = format!("cut-{round}");
        let words = ["test", "demo", "-n", &namespace, "--no-samples"];
        let child = command(&server, ADMIN, &[&words[..], &QUICK].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::park_timeout(Duration::from_millis(moment));
        signal::send(if round % 2 == 0 { "INT" } else { "TERM" }, child.id());
        let begun = Instant::now();
        let output = child.wait_with_output().unwrap();
        match output.status.code() {
            Some(130) => interrupted += 1,
            // Before the program has asked to be told, the system ends it.
            None if text(&output).is_empty() => {}
            code => panic!("after {moment} ms: {code:?}: {}", text(&output)),
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "after {moment} ms: {}", text(&output));
        nothing_is_left(&server, &namespace);
    }
    assert!(interrupted >= 4, "only {interrupted} runs were interrupted");
}

pub(super) fn catalogs_come_and_go() {
    let server = Server::start();
    prepare(&server);
    let _olm = Olm::start(&server, "01");
    let source = |words: &[&str], code: i32| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_olmkit"));
        command.arg("source").args(words).arg("--kubeconfig").arg(server.kubeconfig(ADMIN));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", text(&output));
        text(&output)
    };
    // It is reached by its address alone; nobody starts pods here.
    let added = source(&["add", "second", "--address", "catalog", "-n", "olm"], 2);
    assert!(added.contains("expected `HOST:PORT`"), "{added}");
    let waits = ["add", "second", "--address", "nowhere:50051", "-n", "olm", "--timeout", "5s"];
    let told = source(&waits, 4);
    assert!(told.contains("waiting for catalogsource/second in olm to be READY"), "{told}");
    source(
        &["add", "second", "--address", "nowhere:50051", "-n", "olm", "--priority", "7", "--wait=false"],
        0,
    );
    let found = server.connect().get(&known::CATALOG_SOURCE, "olm", "second").unwrap().unwrap();
    assert_eq!((&found["spec"]["priority"], &found["spec"]["address"]), (&7.into(), &"nowhere:50051".into()));
    let told = source(&["add", "catalog", "--address", "nowhere:50051", "-n", "olm", "--wait=false"], 1);
    assert!(told.contains("was not created by olmkit"), "{told}");
    let image = format!("127.0.0.1:1/c@sha256:{}", "0".repeat(64));
    let told = source(&["add", "third", &image, "-n", "nowhere", "--wait=false"], 1);
    assert!(told.contains("the namespace `nowhere` does not exist"), "{told}");
    let listed = source(&["list", "-A"], 0);
    assert!(listed.contains("second") && listed.contains("nowhere:50051"), "{listed}");
    let told = source(&["refresh", "second", "-n", "olm"], 1);
    assert!(told.contains("it has no pod"), "{told}");
    source(&["remove", "second"], 0);
    assert!(server.connect().get(&known::CATALOG_SOURCE, "olm", "second").unwrap().is_none());
}
