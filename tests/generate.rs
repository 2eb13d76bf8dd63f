//! `bundle generate` with the world around it: standard input, other programs, the clock, the directory on disk.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const MANIFESTS: &str = "docs/generate.in/config";

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(MANIFESTS)
}

/// Every manifest as one stream.
fn stream() -> String {
    let file = |name| fs::read_to_string(manifests().join(name)).expect(name);
    [file("crd.yaml"), file("operator.yaml"), file("webhook.yaml")].join("---\n")
}

fn generate(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.args(["bundle", "generate", "--package", "echo-operator", "--version", "0.1.0"]).args(args);
    command.env_remove("SOURCE_DATE_EPOCH").current_dir(directory).stdin(Stdio::null());
    command
}

#[track_caller]
fn succeed(mut command: Command) -> Output {
    let output = command.output().expect("olmkit starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn csv(bundle: &Path) -> String {
    fs::read_to_string(bundle.join("manifests/echo-operator.clusterserviceversion.yaml")).expect("a CSV")
}

#[test]
fn a_pipe_and_a_redirection_are_the_same() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    fs::write(at.join("all.yaml"), stream()).expect("a file");
    let open = || Stdio::from(File::open(at.join("all.yaml")).expect("a file"));
    let mut redirected = generate(at, &["--output-dir", "one"]);
    redirected.stdin(open());
    succeed(redirected);
    let mut cat = Command::new("cat").stdin(open()).stdout(Stdio::piped()).spawn().expect("cat starts");
    let mut piped = generate(at, &["-", "--output-dir", "two"]);
    piped.stdin(cat.stdout.take().expect("a pipe"));
    succeed(piped);
    assert!(cat.wait().expect("cat ends").success());
    assert_eq!(csv(&at.join("one")), csv(&at.join("two")));
    let nothing = generate(at, &[]).output().expect("olmkit starts");
    assert_eq!(nothing.status.code(), Some(2));
}

/// What `bundle init` says in a directory.
fn init(directory: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.args(["bundle", "init"]).current_dir(directory).stdin(Stdio::null());
    String::from_utf8_lossy(&succeed(command).stderr).into_owned()
}

#[test]
fn after_init_in_a_directory_of_manifests_generate_works() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path().join("echo-operator");
    fs::create_dir(&at).expect("a directory");
    fs::write(at.join("all.yaml"), stream()).expect("a file");
    let said = init(&at);
    let next = said.lines().last().and_then(|line| line.split('`').nth(1)).expect("the next command");
    assert_eq!(next, "olmkit bundle generate --version 0.1.0");
    let mut generate = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    generate.args(next.split(' ').skip(1)).current_dir(&at).stdin(Stdio::null());
    succeed(generate);
    assert!(csv(&at.join("bundle")).contains("name: echo-operator.v0.1.0"));
}

#[test]
fn init_chooses_one_source_and_names_the_others() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    let write = |path: &str, text: &str| {
        let path = at.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    };
    write("PROJECT", "projectName: echo-operator\nversion: '3'\n");
    write("Makefile", "VERSION ?= 0.3.0\nIMG ?= x\n");
    write("config/default/kustomization.yaml", "resources: [../manager]\n");
    write("config/manager/kustomization.yaml", "resources: [all.yaml]\n");
    write("config/manager/all.yaml", &stream());
    write("chart/Chart.yaml", "name: echo\nversion: 0.2.0\n");
    let said = init(at);
    assert!(said.contains("also found, not used: helm: [chart]\n"), "{said}");
    assert_eq!(said.matches("not used").count(), 1, "{said}");
    assert!(said.ends_with("then run `olmkit bundle generate`\n"), "{said}");
    let text = fs::read_to_string(at.join("olmkit.yaml")).expect("a package file");
    for line in ["package: echo-operator", "version: \"0.3.0\"", "kustomize:\n- config/default"] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}:\n{text}");
    }
}

#[test]
fn the_time_changes_when_the_content_does_or_when_it_is_given() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (at, bundle) = (directory.path(), directory.path().join("bundle"));
    let input = manifests().display().to_string();
    let run = |more: &[&str], epoch: Option<&str>| {
        let mut command = generate(at, &[&[input.as_str()], more].concat());
        command.envs(epoch.map(|epoch| ("SOURCE_DATE_EPOCH", epoch)));
        succeed(command);
        let csv = csv(&bundle);
        csv.lines()
            .find_map(|line| line.trim().strip_prefix("createdAt: "))
            .map(|time| time.trim_matches('"').to_owned())
    };
    assert_eq!(run(&[], None), None);
    assert_eq!(run(&[], Some("86400")).as_deref(), Some("1970-01-02T00:00:00Z"));
    assert_eq!(run(&[], None).as_deref(), Some("1970-01-02T00:00:00Z"), "nothing has changed");
    assert_eq!(
        run(&["--created-at", "now"], None).as_deref(),
        Some("1970-01-02T00:00:00Z"),
        "nothing has changed"
    );
    let changed = run(&["--set", "spec.maturity=beta"], None).expect("it had a time");
    assert!(changed.as_str() > "2020", "{changed}");
    let given = run(&["--created-at", "2001-02-03T04:05:06Z", "--set", "spec.maturity=beta"], Some("1"));
    assert_eq!(given.as_deref(), Some("2001-02-03T04:05:06Z"));
}

#[test]
fn stale_files_go_and_files_of_others_stay() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    fs::write(at.join("all.yaml"), stream()).expect("a file");
    let more = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n";
    fs::write(at.join("more.yaml"), more).expect("a file");
    succeed(generate(at, &["all.yaml", "more.yaml"]));
    fs::write(at.join("bundle/NOTES.md"), "mine").expect("a file");
    let settings = at.join("bundle/manifests/settings_v1_configmap.yaml");
    assert!(settings.exists());

    let check = generate(at, &["all.yaml", "--check"]).output().expect("olmkit starts");
    assert_eq!(check.status.code(), Some(1));
    let diff = String::from_utf8_lossy(&check.stdout);
    assert!(diff.contains("--- a/bundle/manifests/settings_v1_configmap.yaml\n+++ /dev/null\n"), "{diff}");
    assert!(settings.exists(), "--check writes nothing");

    let output = succeed(generate(at, &["all.yaml"]));
    assert!(String::from_utf8_lossy(&output.stderr).contains("kept NOTES.md"));
    assert!(!settings.exists() && at.join("bundle/NOTES.md").exists());
    succeed(generate(at, &["all.yaml", "--check"]));

    // With an error everything stays as it was.
    fs::write(at.join("more.yaml"), "a: [").expect("a file");
    let before = csv(&at.join("bundle"));
    let refused = generate(at, &["all.yaml", "more.yaml"]).output().expect("olmkit starts");
    assert_eq!((refused.status.code(), csv(&at.join("bundle"))), (Some(1), before));
}

#[test]
fn what_is_not_installed_is_said() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (flag, message) in [
        ("--kustomize", "cannot build the kustomization `x`: neither kustomize nor kubectl is installed"),
        ("--helm", "cannot read the chart `x`: helm is not installed"),
    ] {
        let mut command = generate(directory.path(), &[flag, "x"]);
        let output = command.env("PATH", "").output().expect("olmkit starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(3) && said.contains(message) && said.contains("help: "),
            "{said}"
        );
    }
}

/// A program of that name which prints its arguments as comments, then the manifests.
fn stand_in(directory: &Path, name: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(directory.join("all.yaml"), stream()).expect("a file");
    let script = format!(
        "#!/bin/sh\n[ -e \"$2\" ] || [ -e \"$3\" ] || {{ echo 'no such chart' >&2; exit 1; }}\necho \"# $*\" > {name}.args\n/bin/cat all.yaml\n"
    );
    let path = directory.join("bin").join(name);
    fs::create_dir_all(directory.join("bin")).and_then(|()| fs::write(&path, script)).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script");
}

#[test]
fn helm_and_kustomize_are_called_as_they_want_to_be() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    fs::create_dir(at.join("chart")).expect("a directory");
    for (program, args, called) in [
        ("helm", ["--helm", "chart"].as_slice(), "# template echo-operator chart --include-crds\n"),
        ("kubectl", &["--kustomize", "chart"], "# kustomize chart\n"),
        ("kustomize", &["--kustomize", "chart"], "# build chart\n"),
    ] {
        stand_in(at, program);
        let mut command = generate(at, args);
        command.env("PATH", at.join("bin"));
        succeed(command);
        let args_seen = fs::read_to_string(at.join(format!("{program}.args"))).expect("it was called");
        assert_eq!(args_seen, called);
        assert!(csv(&at.join("bundle")).contains("vecho.example.com"));
    }
    let mut command = generate(at, &["--helm", "nowhere"]);
    let output = command.env("PATH", at.join("bin")).output().expect("olmkit starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && said.contains("helm says: no such chart"), "{said}");
}

/// Under every suite the RedisCluster bundle has only the warnings that its package file allows, each with a reason.
#[test]
fn the_package_file_of_redis_cluster_names_its_warnings() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let operator = Path::new(env!("CARGO_MANIFEST_DIR")).join("operator");
    let settings = fs::read_to_string(operator.join("olmkit.yaml")).expect("a package file");
    let settings = olmkit_bundle::yaml::first_document(&settings).expect("YAML").root.to_json();
    let allowed: Vec<_> =
        settings["allow"].as_array().expect("a list").iter().map(|allowed| &allowed["code"]).collect();
    let mut generate = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    generate
        .args(["bundle", "generate", "--version", "0.4.0", "--package-file"])
        .arg(operator.join("olmkit.yaml"));
    generate.arg("--output-dir").arg(directory.path()).current_dir(directory.path());
    let output = succeed(generate);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let mut validate = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    validate.args(["bundle", "validate", "--suite", "all", "--output", "json"]).arg(directory.path());
    let output = succeed(validate);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = answer["findings"].as_array().expect("a list").iter();
    let codes: Vec<_> = findings.map(|finding| &finding["code"]).collect();
    assert!(codes.iter().all(|code| allowed.contains(code)), "{codes:?}");
    assert!(allowed.iter().all(|code| codes.contains(code)), "one is allowed and not there: {allowed:?}");
}
