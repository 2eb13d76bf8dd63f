//! The doctor on a real API server: what it says, and that its repairs are taken.

use std::time::{Duration, Instant};

use olmkit::lifecycle::api::{Key, known};
use olmkit::lifecycle::cluster::Cluster as _;
use serde_json::{Value, json};

use super::{command, installed, object, run, text};
use crate::olm::{Olm, prepare};
use crate::server::{ADMIN, Server};

/// What the doctor says, by its exit code.
#[track_caller]
fn doctor(server: &Server, words: &[&str], code: i32) -> String {
    let words = [&["doctor", "-n", "ward"], words].concat();
    let output = command(server, ADMIN, &words).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{words:?}\n{}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn phase(server: &Server, csv: &str) -> String {
    let found = object(server, &known::CSV, "ward", csv).unwrap_or_default();
    found.pointer("/status/phase").and_then(Value::as_str).unwrap_or("").to_owned()
}

pub(super) fn the_doctor_names_causes_and_repairs_them() {
    let server = Server::start();
    prepare(&server);
    let _olm = Olm::start(&server, "01");
    run(&server, &["install", "demo", "-n", "ward", "--settle", "1s"]);
    let csv = installed(&server, "ward");
    assert_eq!(doctor(&server, &[], 0), "operators: 1 healthy\n");

    // A namespace that is misspelled has no operators, and is none.
    for verb in ["doctor", "list"] {
        let output = command(&server, ADMIN, &[verb, "-n", "wrad"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains("there is no namespace `wrad`"), "{}", text(&output));
        assert!(text(&output).contains("did you mean `ward`?"), "{}", text(&output));
    }
    assert_eq!(run(&server, &["doctor", "-n", "default"]), "no operators\n");

    // A second OperatorGroup stops everything, and only somebody can say which one goes.
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "second", "namespace": "ward"}, "spec": {"targetNamespaces": ["ward"]},
    });
    server.connect().create(&known::OPERATOR_GROUP, &group).unwrap();
    let said = doctor(&server, &["--fix"], 1);
    assert!(said.starts_with("broken[several-operator-groups]: the namespace `ward` has 2"), "{said}");
    assert!(said.contains("not fixed[several-operator-groups]: its repairs cost something"), "{said}");
    let listed = run(&server, &["list", "-A"]);
    assert!(listed.contains("ward/demo broken[several-operator-groups]: "), "{listed}");
    let status = command(&server, ADMIN, &["status", "demo", "-n", "ward"]).output().unwrap();
    assert_eq!(status.status.code(), Some(1), "{}", text(&status));
    let upgrade = command(&server, ADMIN, &["upgrade", "demo", "-n", "ward"]).output().unwrap();
    assert_eq!(upgrade.status.code(), Some(1), "{}", text(&upgrade));
    assert!(text(&upgrade).contains("[several-operator-groups]"), "{}", text(&upgrade));
    let second = Key::new(&known::OPERATOR_GROUP, "ward", "second");
    server.connect().delete(&known::OPERATOR_GROUP, &second).unwrap();
    until(&server, &csv);

    // Somebody deletes the version: OLM does not install it again by itself.
    let key = Key::new(&known::CSV, "ward", &csv);
    let mut cluster = server.connect();
    cluster.delete(&known::CSV, &key).unwrap();
    let _ = cluster.patch(&known::CSV, &key, &json!({"metadata": {"finalizers": null}}));
    let begun = Instant::now();
    while object(&server, &known::CSV, "ward", &csv).is_some() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is still there");
    }
    let before = object(&server, &known::SUBSCRIPTION, "ward", "demo").unwrap();
    let said = doctor(&server, &["--fix", "--dry-run"], 1);
    assert!(said.contains("would fix[csv-deleted]: recreates subscription/demo in ward"), "{said}");
    let uid = |found: &Value| found["metadata"]["uid"].clone();
    assert_eq!(uid(&object(&server, &known::SUBSCRIPTION, "ward", "demo").unwrap()), uid(&before));
    let said = doctor(&server, &["--fix"], 0);
    assert!(said.contains("fixed[csv-deleted]: recreates subscription/demo in ward"), "{said}");
    let after = object(&server, &known::SUBSCRIPTION, "ward", "demo").unwrap();
    assert_ne!(uid(&after), uid(&before));
    let mut expected = before["spec"].clone();
    expected["startingCSV"] = json!(csv);
    assert_eq!(after["spec"], expected);
    until(&server, &csv);
}

/// Waits until a version is up, and the doctor has nothing to say.
fn until(server: &Server, csv: &str) {
    let begun = Instant::now();
    while phase(server, csv) != "Succeeded" {
        assert!(begun.elapsed() < Duration::from_secs(90), "{csv} is {}", phase(server, csv));
        std::thread::park_timeout(Duration::from_millis(200));
    }
    while !command(server, ADMIN, &["doctor", "-n", "ward"]).output().unwrap().status.success() {
        assert!(begun.elapsed() < Duration::from_secs(90), "the doctor finds {}", doctor(server, &[], 0));
    }
}
