//! `operator test` as a command on a simulated cluster: what it refuses before the first test, and where its report goes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{copy, olmkit, run, said};
use crate::signal;
use crate::world::inputs;

const TEST: [&str; 7] = ["test", "demo", "--simulate", "--catalog-from", "cat", "--bundles-from", "bundles"];
const HEADS: [&str; 3] = ["--edges", "heads", "--no-samples"];

/// A directory with a catalog and its bundles.
fn directory() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    copy(&inputs("01").join("catalog-1"), &root.path().join("cat"));
    copy(&inputs("01").join("bundles"), &root.path().join("bundles"));
    root
}

#[track_caller]
fn tested(root: &Path, words: &[&str], code: i32) -> String {
    run(root, &[&TEST[..], words].concat(), code)
}

fn heads<'w>(words: &[&'w str]) -> Vec<&'w str> {
    [&HEADS[..], words].concat()
}

#[track_caller]
fn json(root: &Path, words: &[&str]) -> Value {
    let output = olmkit(root, &[&TEST[..], words, &["--output", "json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(&output)))
}

#[test]
fn a_report_goes_to_a_file_of_its_own_and_to_no_stream() {
    let root = directory();
    let log = root.path().join("log.txt");
    for stream in ["/dev/stdout", "/dev/stderr", "/proc/self/fd/1", "-", "/dev/full", "log.txt"] {
        fs::write(&log, "before\n").unwrap();
        let out = fs::OpenOptions::new().append(true).open(&log).unwrap();
        let status = Command::new(env!("CARGO_BIN_EXE_olmkit"))
            .args(["operator"].iter().chain(&TEST).chain(&HEADS).chain(&["--junit", stream]))
            .current_dir(root.path())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(2), "{stream}");
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.starts_with("before\nerror: cannot write a report to"), "{stream}: {text}");
    }
    assert!(!root.path().join("-").exists());
}

#[test]
fn a_report_replaces_an_earlier_report_and_nothing_else() {
    let root = directory();
    let catalog = "cat/catalog.yaml";
    let before = fs::read(root.path().join(catalog)).unwrap();
    let told = tested(root.path(), &heads(&["--junit", catalog]), 2);
    assert!(told.contains("exists and is not a JUnit report"), "{told}");
    assert_eq!(fs::read(root.path().join(catalog)).unwrap(), before);
    let report = root.path().join("new/report.xml");
    tested(root.path(), &heads(&["--junit", "new/report.xml"]), 0);
    let first = fs::read_to_string(&report).unwrap();
    assert!(first.contains("skipped=\"0\""), "{first}");
    tested(root.path(), &heads(&["--junit", "new/report.xml", "--dry-run"]), 0);
    assert_eq!(fs::read_to_string(&report).unwrap(), first, "a dry run writes nothing");
    tested(root.path(), &heads(&["--junit", "new/report.xml"]), 0);
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_first_test() {
    let root = directory();
    fs::create_dir(root.path().join("directory")).unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    std::os::unix::fs::symlink("missing.xml", root.path().join("link.xml")).unwrap();
    for (place, why) in [("directory", "is a directory"), ("file/x.xml", ""), ("link.xml", "leads nowhere")] {
        let output = olmkit(root.path(), &[&TEST[..], &HEADS, &["--junit", place]].concat());
        let told = said(&output);
        assert_eq!(output.status.code(), Some(3), "{place}: {told}");
        assert!(told.starts_with(&format!("error: cannot write `{place}`")) && told.contains(why), "{told}");
    }
    // A link to a report is followed.
    fs::write(root.path().join("real.xml"), "").unwrap();
    std::os::unix::fs::symlink("real.xml", root.path().join("good.xml")).unwrap();
    tested(root.path(), &heads(&["--junit", "good.xml"]), 0);
    assert!(fs::read_to_string(root.path().join("real.xml")).unwrap().contains("<testsuites"));
    assert!(root.path().join("good.xml").is_symlink());
}

const SAMPLE: &str = "{apiVersion: t01.example.com/v1, kind: Demo, metadata: {name: a}, spec: {size: 3}}";

#[test]
fn samples_that_no_version_serves_are_refused() {
    let root = directory();
    let file = root.path().join("samples.yaml");
    for (from, to) in [("/v1,", "/v9,"), ("t01.", "t99.")] {
        // Beside a good one.
        fs::write(&file, format!("{SAMPLE}\n---\n{}", SAMPLE.replace(from, to))).unwrap();
        let told = tested(root.path(), &["--edges", "heads", "--samples", "samples.yaml"], 2);
        assert!(told.contains("which no version that is tested serves"), "{told}");
        assert!(told.contains("serve `Demo` at `t01.example.com/v1`"), "{told}");
    }
}

#[test]
fn samples_are_read_from_a_relative_directory_and_from_a_list() {
    let root = directory();
    fs::create_dir_all(root.path().join("s/below")).unwrap();
    fs::write(root.path().join("s/a.yaml"), SAMPLE).unwrap();
    let list = format!("{{apiVersion: v1, kind: List, items: [{}]}}", SAMPLE.replace("name: a", "name: b"));
    fs::write(root.path().join("s/below/b.yaml"), list).unwrap();
    let report = json(root.path(), &["--edges", "heads", "--samples", "s"]);
    let cases = report["cases"].as_array().unwrap();
    assert!(cases.iter().all(|case| case["samples"] == 2), "{report:#}");
}

#[test]
fn samples_without_a_good_name_are_refused_with_the_reason() {
    let root = directory();
    for (name, why) in [
        ("{name: BAD_NAME}", "named `BAD_NAME`"),
        ("{generateName: a-}", "with metadata.generateName"),
        ("{}", "without a name"),
    ] {
        fs::write(root.path().join("s.yaml"), SAMPLE.replace("{name: a}", name)).unwrap();
        let told = tested(root.path(), &["--edges", "heads", "--samples", "s.yaml"], 2);
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn a_directory_that_is_not_there_or_has_no_bundles_is_no_verdict_on_the_catalog() {
    let root = directory();
    fs::create_dir(root.path().join("empty")).unwrap();
    for (catalog, bundles, code) in
        [("cat", "nope", 3), ("nope", "bundles", 3), ("cat", "empty", 2), ("cat", "bundles/demo.v0.1.0", 2)]
    {
        let words =
            ["test", "demo", "--simulate", "--catalog-from", catalog, "--bundles-from", bundles, "--dry-run"];
        run(root.path(), &words, code);
    }
}

#[test]
fn an_image_that_is_missing_in_the_simulation_is_not_accepted_as_a_bundle_without_crds() {
    let root = directory();
    fs::remove_dir_all(root.path().join("bundles/demo.v0.3.0")).unwrap();
    tested(root.path(), &heads(&["--accept-missing-images"]), 2);
    let report = json(root.path(), &HEADS);
    let cause = &report["cases"][0]["cause"];
    assert_eq!(cause["code"], "preflight", "{report:#}");
    assert_eq!(
        cause["help"][0],
        "push it first, or put the bundle into the directory that --bundles-from names"
    );
}

#[test]
fn a_channel_without_a_name_is_refused_and_one_named_twice_is_tested_once() {
    let root = directory();
    tested(root.path(), &heads(&["--channel", ""]), 2);
    let once = json(root.path(), &heads(&[]));
    let channel = once["cases"][0]["channel"].as_str().unwrap();
    let twice = format!("{channel},{channel}");
    let report = json(root.path(), &heads(&["--channel", &twice]));
    assert_eq!(report["cases"].as_array().unwrap().len(), once["cases"].as_array().unwrap().len());
}

#[test]
fn the_timeout_bounds_a_simulated_run() {
    let root = directory();
    for (words, passed) in
        [(&["--timeout", "1s", "--step-timeout", "1s", "--settle", "0"][..], 0), (&["--timeout", "20s"], 1)]
    {
        let output = olmkit(root.path(), &[&TEST[..], &HEADS, words, &["--output", "json"]].concat());
        assert_eq!(output.status.code(), Some(4), "{words:?}: {}", said(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&report["passed"], &report["failed"]), (&passed.into(), &0.into()), "{report:#}");
    }
}

#[test]
fn a_signal_ends_a_simulated_run_with_its_report() {
    let root = directory();
    let words = ["--junit", "int.xml", "--output", "json"];
    // Too early, and the system ends it; too late, and it is done.
    let moments = (0..40).map(|step| Duration::from_millis(30 + 30 * step));
    let interrupted = moments.map(|moment| {
        let child = Command::new(env!("CARGO_BIN_EXE_olmkit"))
            .args(["operator"].iter().chain(&TEST).chain(&words))
            .current_dir(root.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::park_timeout(moment);
        signal::send("INT", child.id());
        child.wait_with_output().unwrap()
    });
    let mut interrupted = interrupted.filter(|output| output.status.code() == Some(130));
    let output = interrupted.find(|output| !output.stdout.is_empty()).expect("no run was interrupted");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "olmkit.channel-test/v1", "{report:#}");
    assert_eq!(report["error"], "interrupted", "{report:#}");
    assert!(report["skipped"].as_u64().unwrap() > 0, "{report:#}");
    assert!(fs::read_to_string(root.path().join("int.xml")).unwrap().contains("the run ended"));
}

#[test]
fn the_json_is_that_of_the_design() {
    let root = directory();
    let report = json(root.path(), &["--no-samples"]);
    assert_eq!(report["schema"], "olmkit.channel-test/v1");
    let cases = report["cases"].as_array().unwrap();
    let row = |case: &Value| {
        ["package", "channel", "from", "to", "result"]
            .map(|name| case[name].as_str().unwrap_or("-").to_owned())
            .join(" ")
    };
    let rows: Vec<String> = cases.iter().map(row).collect();
    assert!(rows.iter().any(|row| row.ends_with(" - demo.v0.3.0 passed")), "{rows:#?}");
    assert!(rows.iter().any(|row| row.ends_with(" demo.v0.1.0 demo.v0.2.0 passed")), "{rows:#?}");
    assert!(rows.iter().any(|row| row.ends_with(" demo.v0.1.0 demo.v0.3.0 passed")), "{rows:#?}");
    assert!(cases.iter().all(|case| case["seconds"].is_number() && case["cause"].is_null()), "{report:#}");
}

#[test]
fn every_form_of_the_report_says_what_was_not_tested() {
    let root = directory();
    for format in ["text", "markdown", "junit"] {
        let words = heads(&["--against", "cat", "--output", format]);
        let output = olmkit(root.path(), &[&TEST[..], &words].concat());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("nothing has changed in the channel"), "{format}: {text}{}", said(&output));
        assert!(!text.contains("0 passed"), "{format}: {text}");
    }
}

#[test]
fn flags_of_a_cluster_of_its_own_are_refused_on_another_one() {
    let root = directory();
    let kind_only = [
        &["--kind-config", "missing.yaml"][..],
        &["--kind-image", "kindest/node:v1.34.0"],
        &["--olm-manifests", "missing.yaml"],
        &["--olm-version", "0.46.0"],
        &["--registry-image", "registry:2"],
        &["--push-image", "r/app:v1=oci:missing:v1"],
        &["--keep"],
    ];
    for words in kind_only {
        let told = tested(root.path(), &heads(words), 2);
        assert!(told.contains("cannot be used with"), "{words:?}: {told}");
        let real = ["test", "demo", "--context", "team", "--kubeconfig", "missing"];
        let told = run(root.path(), &[&real[..], words].concat(), 2);
        assert!(told.contains("cannot be used with"), "{words:?}: {told}");
    }
}

#[test]
fn a_short_step_needs_no_settle_of_its_own() {
    let root = directory();
    tested(root.path(), &heads(&["--step-timeout", "1s", "--dry-run"]), 0);
    let told = tested(root.path(), &heads(&["--step-timeout", "1s", "--settle", "1s", "--dry-run"]), 2);
    assert!(told.starts_with("error: --settle must be shorter than --step-timeout\n"), "{told}");
}

#[test]
fn a_sample_with_a_misspelt_kind_or_field_is_refused_before_the_first_test() {
    let root = directory();
    let sampled = |kind: &str, field: &str| {
        let sample = format!(
            "apiVersion: t01.example.com/v1\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{{field}: 1}}\n"
        );
        fs::write(root.path().join("sample.yaml"), sample).unwrap();
        tested(
            root.path(),
            &["--edges", "heads", "--samples", "sample.yaml"],
            if field == "size" && kind == "Demo" { 0 } else { 2 },
        )
    };
    sampled("Demo", "size");
    let told = sampled("Demmo", "size");
    assert!(told.contains("the versions that are tested have no kind `Demmo`"), "{told}");
    assert!(told.contains("help: did you mean `Demo`?"), "{told}");
    let told = sampled("Demo", "sise");
    assert!(
        told.starts_with("error: the sample demo/a has fields that no version that is tested has: "),
        "{told}"
    );
    assert!(told.contains("sise"), "{told}");
}
