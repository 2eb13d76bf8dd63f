//! The operator verbs against a real kube-apiserver, on which the simulation's rules play OLM.
//!
//! Where the programs are not at hand (`make cluster` builds them), the tests are listed as not run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bundles;
mod channels;
mod contents;
mod crds;
mod doctor;
mod load;
mod olm;
mod proxy;
mod rights;
mod server;
#[path = "../support/signal.rs"]
mod signal;
mod signals;
#[path = "../support/mod.rs"]
mod support;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Arguments;
use olmkit::lifecycle::api::{Key, Resource, known};
use olmkit::lifecycle::cluster::Cluster as _;
use serde_json::{Value, json};

use olm::{Olm, inputs, prepare};
use proxy::Proxy;
use server::{ADMIN, Server, WEAK};
use support::Part;

fn main() {
    let parts = [Part::new("apiserver", server::missing())];
    let missing = "the corpus is not found (OLMKIT_CORPUS names its directory)";
    let corpus = Part::new("corpus", crds::corpus().is_none().then(|| missing.to_owned()));
    let of_corpus = [parts[0].clone(), corpus];
    let mut arguments = Arguments::from_args();
    // Each has a server of its own; several at once take more memory than they save time.
    arguments.test_threads = Some(1);
    let tests: [(&str, fn()); 15] = [
        ("an_operator_lives_its_life", an_operator_lives_its_life),
        ("a_missing_right_is_named", a_missing_right_is_named),
        ("writes_of_others_and_a_restart_do_no_harm", writes_of_others_and_a_restart_do_no_harm),
        ("a_subscription_that_olm_forgot_is_touched", a_subscription_that_olm_forgot_is_touched),
        ("faults_of_the_server_do_no_harm", faults_of_the_server_do_no_harm),
        ("a_list_whose_next_page_is_forgotten_begins_anew", a_list_whose_next_page_is_forgotten_begins_anew),
        ("each_verb_needs_just_the_rights_of_its_page", rights::each_verb_needs_just_the_rights_of_its_page),
        ("the_doctor_names_causes_and_repairs_them", doctor::the_doctor_names_causes_and_repairs_them),
        ("killed_at_fifty_moments_it_ends_at_the_goal", killed_at_fifty_moments_it_ends_at_the_goal),
        (
            "ctrl_c_at_any_moment_says_what_was_done_and_how_to_resume",
            signals::ctrl_c_at_any_moment_says_what_was_done_and_how_to_resume,
        ),
        ("a_channel_is_tested_and_nothing_is_left", channels::a_channel_is_tested_and_nothing_is_left),
        (
            "a_test_that_is_interrupted_removes_what_it_has_made",
            channels::a_test_that_is_interrupted_removes_what_it_has_made,
        ),
        ("catalogs_come_and_go", channels::catalogs_come_and_go),
        ("what_it_refuses_of_changed_crds_is_found", crds::what_it_refuses_of_changed_crds_is_found),
        ("what_it_refuses_of_other_objects_is_found", contents::what_it_refuses_of_other_objects_is_found),
    ];
    let trial = |(name, test): (&str, fn())| {
        support::trial_with(name, &parts, move || {
            test();
            Ok(())
        })
    };
    let mut trials: Vec<_> = tests.into_iter().map(trial).collect();
    trials.push(support::trial_with("what_it_refuses_of_real_crds_is_found", &of_corpus, || {
        crds::what_it_refuses_of_real_crds_is_found();
        Ok(())
    }));
    let missing = "OLM's CRDs are not found beside the corpus (../olm/crds)";
    let olm_crds = Part::new("corpus", bundles::olm_crds().is_none().then(|| missing.to_owned()));
    let of_operators = [of_corpus.to_vec(), vec![olm_crds]].concat();
    trials.push(support::trial_with("generated_bundles_are_taken", &of_operators, || {
        bundles::generated_bundles_are_taken();
        Ok(())
    }));
    if std::env::var_os("OLMKIT_MEASURE").is_some() {
        let name = "measured_the_doctor_takes_two_seconds_and_a_hundred_megabytes";
        trials.push(support::trial_with(name, &parts, || {
            load::the_doctor_takes_two_seconds_and_a_hundred_megabytes();
            Ok(())
        }));
    }
    support::run(&arguments, trials).exit();
}

/// `olmkit operator …` on a server.
fn command(server: &Server, user: &str, words: &[&str]) -> Command {
    command_as(&server.kubeconfig(user), words)
}

fn command_as(kubeconfig: &Path, words: &[&str]) -> Command {
    command_from(&inputs("01").join("catalog-1"), kubeconfig, words)
}

fn command_from(catalog: &Path, kubeconfig: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.arg("operator").args(words).arg("--kubeconfig").arg(kubeconfig);
    command.arg("--catalog-from").arg(catalog);
    command
}

#[track_caller]
fn run(server: &Server, words: &[&str]) -> String {
    let output = command(server, ADMIN, words).output().unwrap();
    assert!(output.status.success(), "{words:?}\n{}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn object(server: &Server, resource: &Resource, namespace: &str, name: &str) -> Option<Value> {
    server.connect().get(resource, namespace, name).unwrap()
}

fn installed(server: &Server, namespace: &str) -> String {
    let found = object(server, &known::SUBSCRIPTION, namespace, "demo").unwrap();
    found.pointer("/status/installedCSV").and_then(Value::as_str).unwrap_or("").to_owned()
}

fn an_operator_lives_its_life() {
    let server = Server::start();
    prepare(&server);
    let _olm = Olm::start(&server, "01");
    let quick = ["--settle", "1s"];
    let verb = |words: &[&str]| run(&server, &[words, &quick].concat());
    verb(&["install", "demo", "-n", "one", "--version", "0.1.0"]);
    assert_eq!(installed(&server, "one"), "demo.v0.1.0");
    let example = json!({
        "apiVersion": "t01.example.com/v1", "kind": "Demo", "metadata": {"name": "example", "namespace": "one"},
        "spec": {"size": 3},
    });
    let demos = Resource {
        group: "t01.example.com".into(),
        version: "v1".into(),
        kind: "Demo".into(),
        plural: "demos".into(),
        namespaced: true,
    };
    server.connect().create(&demos, &example).unwrap();
    verb(&["upgrade", "demo", "-n", "one"]);
    assert_eq!(installed(&server, "one"), "demo.v0.3.0");
    let listed = run(&server, &["list", "-A"]);
    assert!(listed.contains("0.3.0") && listed.contains("Succeeded"), "{listed}");
    let described = run(&server, &["describe", "demo"]);
    assert!(described.contains("demos.t01.example.com owned, v1, 1 custom resources"), "{described}");
    let removed = verb(&["uninstall", "demo", "-n", "one"]);
    assert!(removed.contains("kept customresourcedefinition/demos.t01.example.com"), "{removed}");
    assert!(object(&server, &demos, "one", "example").is_some());
    assert!(server.connect().list(&known::CSV, Some("one")).unwrap().is_empty());
    assert!(object(&server, &known::OPERATOR_GROUP, "one", "one").is_none());
}

fn a_missing_right_is_named() {
    let server = Server::start();
    prepare(&server);
    let output = command(&server, WEAK, &["list", "-n", "one"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let said = text(&output);
    let rule = "the rule `{apiGroups: [\"operators.coreos.com\"], resources: [\"subscriptions\"], verbs: [\"list\"]}` is missing";
    assert!(said.contains(rule), "{said}");
    // A server without OLM says so.
    let crd = Key::new(&known::CRD, "", "subscriptions.operators.coreos.com");
    let mut cluster = server.connect();
    cluster.delete(&known::CRD, &crd).unwrap();
    let begun = Instant::now();
    loop {
        let output = command(&server, ADMIN, &["list"]).output().unwrap();
        if text(&output).contains("there is no OLM on this cluster") {
            assert_eq!(output.status.code(), Some(3));
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(90), "{}", text(&output));
    }
}

/// Somebody changes what the tool writes to all the time, and the server goes away and comes back.
fn writes_of_others_and_a_restart_do_no_harm() {
    let mut server = Server::start();
    prepare(&server);
    let olm = Olm::start(&server, "01");
    run(&server, &["install", "demo", "-n", "two", "--version", "0.1.0", "--settle", "1s"]);
    let upgrade = command(&server, ADMIN, &["upgrade", "demo", "-n", "two", "--settle", "1s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut cluster = server.connect();
    for round in 0..30 {
        for resource in [&*known::SUBSCRIPTION, &*known::INSTALL_PLAN] {
            for object in cluster.list(resource, Some("two")).unwrap() {
                let patch = json!({"metadata": {"annotations": {"somebody": format!("{round}")}}});
                let _ = cluster.patch(resource, &Key::of(&object), &patch);
            }
        }
    }
    server.restart();
    let output = upgrade.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(installed(&server, "two"), "demo.v0.3.0");
    drop(olm);
}

/// OLM takes a Subscription for settled that has an upgrade, and makes no plan for it until it changes.
fn a_subscription_that_olm_forgot_is_touched() {
    let server = Server::start();
    prepare(&server);
    let olm = Olm::start(&server, "01");
    run(&server, &["install", "demo", "-n", "three", "--version", "0.1.0", "--settle", "1s"]);
    drop(olm);
    forget(&server, "three");
    let mut upgrade = command(&server, ADMIN, &["upgrade", "demo", "-n", "three", "--settle", "1s"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let mut said = BufReader::new(upgrade.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("OLM has done nothing for 20 s; touching subscription/demo")));
    assert!(begun.elapsed() < Duration::from_secs(30), "it was touched after {:?}", begun.elapsed());
    let _olm = Olm::start(&server, "01");
    let rest: Vec<String> = said.collect();
    assert!(upgrade.wait().unwrap().success(), "{rest:?}");
    assert_eq!(installed(&server, "three"), "demo.v0.3.0");
    let left = object(&server, &known::SUBSCRIPTION, "three", "demo").unwrap();
    assert_eq!(left.pointer("/metadata/annotations/olmkit.io~1look-again"), None);
}

/// Puts the Subscriptions of a namespace where OLM leaves them that made no plan for the next version.
fn forget(server: &Server, namespace: &str) {
    let mut cluster = server.connect();
    for plan in cluster.list(&known::INSTALL_PLAN, Some(namespace)).unwrap() {
        if plan.pointer("/spec/approved") == Some(&json!(false)) {
            cluster.delete(&known::INSTALL_PLAN, &Key::of(&plan)).unwrap();
        }
    }
    for subscription in cluster.list(&known::SUBSCRIPTION, Some(namespace)).unwrap() {
        let status = json!({"status": {"state": "AtLatestKnown", "currentCSV": "demo.v0.1.0"}});
        cluster.patch_status(&known::SUBSCRIPTION, &Key::of(&subscription), &status).unwrap();
    }
}

/// Requests that are refused or lost, watches that end or are too old: each verb ends at its goal all the same.
fn faults_of_the_server_do_no_harm() {
    let server = Server::start();
    prepare(&server);
    let _olm = Olm::start(&server, "01");
    std::thread::scope(|scope| {
        for seed in 1..=3 {
            let server = &server;
            scope.spawn(move || {
                let proxy = Proxy::start(&server.address(), "admin-token", seed);
                let namespace = format!("faults-{seed}");
                let verb = |words: &[&str]| {
                    let mut command = command_as(&proxy.kubeconfig(), words);
                    let output = command.args(["-n", &namespace]).output().unwrap();
                    assert!(output.status.success(), "seed {seed}: {words:?}\n{}", text(&output));
                };
                verb(&["install", "demo", "--version", "0.1.0", "--settle", "1s", "--watch", &namespace]);
                verb(&["upgrade", "demo", "--settle", "1s"]);
                assert_eq!(installed(server, &namespace), "demo.v0.3.0", "seed {seed}");
                verb(&["uninstall", "demo"]);
                assert!(object(server, &known::SUBSCRIPTION, &namespace, "demo").is_none(), "seed {seed}");
                assert!(proxy.faults() > 20, "only {} faults", proxy.faults());
            });
        }
    });
}

/// Three pages, of which the second and the third are often not to be had any more: every object is listed, and just once.
fn a_list_whose_next_page_is_forgotten_begins_anew() {
    let server = Server::start();
    let mut cluster = server.connect();
    let names: Vec<_> = (0..1_001).map(|number| format!("settings-{number:04}")).collect();
    for name in &names {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
        cluster.create(&known::CONFIG_MAP, &object).unwrap();
    }
    for seed in 1..=5 {
        let proxy = Proxy::start(&server.address(), "admin-token", seed);
        let listed = server::connect(&proxy.kubeconfig()).list(&known::CONFIG_MAP, None).unwrap();
        let all = listed.iter().map(|object| object["metadata"]["name"].as_str().unwrap());
        // The server has some of its own.
        let listed: Vec<_> = all.filter(|name| name.starts_with("settings-")).collect();
        assert_eq!(listed, names, "seed {seed}");
    }
}

/// Several upgrades side by side, each killed at moments of its own.
fn killed_at_fifty_moments_it_ends_at_the_goal() {
    const OPERATORS: u64 = 10;
    const KILLS: u64 = 5;
    let server = Server::start();
    prepare(&server);
    let _olm = Olm::start(&server, "01");
    std::thread::scope(|scope| {
        for operator in 0..OPERATORS {
            let server = &server;
            scope.spawn(move || killed(server, operator, KILLS));
        }
    });
}

fn killed(server: &Server, operator: u64, kills: u64) {
    let namespace = format!("kill-{operator}");
    let quick = ["-n", &namespace, "--settle", "1s"];
    // Each watches its own namespace, or they would be in each other's way.
    let install = ["install", "demo", "--version", "0.1.0", "--watch", &namespace];
    run(server, &[&install, &quick[..]].concat());
    let mut killed = 0;
    for kill in 0..kills {
        // Seeded: the same moments each time, all over the seconds that an upgrade takes here.
        let moment = Duration::from_millis((operator * 131 + kill * 277) % 1_500);
        let mut child = command(server, ADMIN, &[&["upgrade", "demo"], &quick[..]].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::park_timeout(moment);
        killed += u64::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(killed > 0, "all upgrades of {namespace} were over before they could be killed");
    run(server, &[&["upgrade", "demo"], &quick[..]].concat());
    assert_eq!(installed(server, &namespace), "demo.v0.3.0", "{namespace}");
    let subscription = object(server, &known::SUBSCRIPTION, &namespace, "demo").unwrap();
    let left = subscription.pointer("/metadata/annotations/olmkit.io~1approval-before");
    assert_eq!(left, None, "{namespace}");
    run(server, &["uninstall", "demo", "-n", &namespace]);
}
