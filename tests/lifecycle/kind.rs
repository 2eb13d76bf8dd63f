//! `operator test --kind`, with a stand-in that writes down what kind is asked to do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::command::said;
use crate::release::manifests;
use crate::signal;

/// Writes a kubeconfig for an API server that is not there, unless told otherwise.
const KIND: &str = r#"#!/bin/sh
echo "$*" >>"$HOME/asked"
case "$1" in
get) [ ! -e "$HOME/clusters" ] || cat "$HOME/clusters" ;;
create)
    [ ! -e "$HOME/broken" ] || { echo "Creating cluster" >&2; echo "ERROR: no space left on device" >&2; exit 1; }
    [ ! -e "$HOME/slow" ] || sleep 60
    while [ "$1" != --kubeconfig ]; do shift; done
    cat >"$2" <<'END'
apiVersion: v1
kind: Config
current-context: kind
clusters: [{name: kind, cluster: {server: 'http://127.0.0.1:9'}}]
users: [{name: kind, user: {}}]
contexts: [{name: kind, context: {cluster: kind, user: kind}}]
END
    ;;
delete) [ ! -e "$HOME/undying" ] || { echo "ERROR: docker is away" >&2; exit 1; } ;;
esac
"#;

/// A home with the stand-in in `bin` and manifests of OLM.
fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("bin")).unwrap();
    fs::create_dir(home.path().join("tmp")).unwrap();
    let kind = home.path().join("bin/kind");
    fs::write(&kind, KIND).unwrap();
    fs::set_permissions(&kind, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(home.path().join("olm.yaml"), manifests("0.46.0")).unwrap();
    home
}

fn command(home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    let path = format!("{}:/usr/bin:/bin", home.join("bin").display());
    command.args(["operator", "test", "demo", "--kind", "--catalog-image", "127.0.0.1:9/catalog:v1"]);
    command.args(["--olm-manifests", "olm.yaml"]).args(words);
    command.env_clear().env("PATH", path).env("HOME", home).env("TMPDIR", home.join("tmp")).current_dir(home);
    command
}

fn test(home: &Path, words: &[&str]) -> Output {
    command(home, words).stdin(Stdio::null()).output().unwrap()
}

/// What kind was asked, the name of the cluster as NAME and the kubeconfig left out.
fn asked(home: &Path) -> Vec<String> {
    let asked = fs::read_to_string(home.join("asked")).unwrap_or_default();
    let name = asked.split_whitespace().skip_while(|word| *word != "--name").nth(1);
    let words = |line: &str| {
        let words = line.split_whitespace().map(|word| if Some(word) == name { "NAME" } else { word });
        let mut words: Vec<&str> = words.collect();
        if let Some(at) = words.iter().position(|word| *word == "--kubeconfig") {
            words.drain(at..at + 2);
        }
        words.join(" ")
    };
    asked.lines().map(words).collect()
}

const CREATED: [&str; 2] =
    ["get clusters", "create cluster --name NAME --wait 5m --image docker.io/kindest/node:v1.34.0"];
/// Waits until a cluster is being made.
fn created(home: &Path) {
    let begun = Instant::now();
    while !asked(home).contains(&CREATED[1].to_owned()) {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", asked(home));
        std::thread::sleep(Duration::from_millis(10));
    }
}

const DELETED: &str = "delete cluster --name NAME";

#[test]
fn a_cluster_is_deleted_when_olm_cannot_be_installed_on_it() {
    let home = home();
    let output = test(home.path(), &[]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("cannot reach the cluster"), "{}", said(&output));
    assert_eq!(asked(home.path()), [CREATED[0], CREATED[1], DELETED]);
    assert_eq!(fs::read_dir(home.path().join("tmp")).unwrap().count(), 0);
}

#[test]
fn a_cluster_that_is_kept_is_named_with_the_commands_for_it() {
    let home = home();
    fs::write(home.path().join("with space.yaml"), "kind: Cluster\n").unwrap();
    let output = test(home.path(), &["--keep", "--kind-config", "with space.yaml"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let said = said(&output);
    assert!(said.contains("kind export kubeconfig --name olmkit-test-"), "{said}");
    assert!(said.contains("kind delete cluster --name olmkit-test-"), "{said}");
    // Such a configuration names its own nodes.
    let created = "create cluster --name NAME --wait 5m --config with space.yaml";
    assert_eq!(asked(home.path()), [CREATED[0], created]);
    // The next run leaves it alone.
    let first = fs::read_to_string(home.path().join("asked")).unwrap();
    let kept = first.split_whitespace().skip_while(|word| *word != "--name").nth(1).unwrap();
    fs::write(home.path().join("clusters"), kept).unwrap();
    let said = self::said(&test(home.path(), &[]));
    assert!(said.contains(&format!("the kind cluster {kept} of another run exists")), "{said}");
    let asked = fs::read_to_string(home.path().join("asked")).unwrap();
    assert!(!asked.contains(&format!("delete cluster --name {kept}")), "{asked}");
}

#[test]
fn a_cluster_that_was_not_made_is_not_kept() {
    let home = home();
    fs::write(home.path().join("broken"), "").unwrap();
    let said = said(&test(home.path(), &["--keep"]));
    assert!(!said.contains("stays"), "{said}");
    assert_eq!(asked(home.path()), [CREATED[0], CREATED[1], DELETED]);
}

#[test]
fn what_kind_says_when_it_fails_is_passed_on_and_nothing_stays() {
    let home = home();
    fs::write(home.path().join("broken"), "").unwrap();
    let output = test(home.path(), &[]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let said = said(&output);
    assert!(
        said.contains("` failed: ERROR: no space left on device") && said.contains("make room"),
        "{said}"
    );
    assert_eq!(asked(home.path()), [CREATED[0], CREATED[1], DELETED]);
}

#[test]
fn a_cluster_that_cannot_be_deleted_is_named() {
    let home = home();
    fs::write(home.path().join("undying"), "").unwrap();
    let said = said(&test(home.path(), &[]));
    assert!(said.contains("could not be deleted (ERROR: docker is away)"), "{said}");
    assert!(said.contains("run `kind delete cluster --name olmkit-test-"), "{said}");
}

#[test]
fn clusters_of_others_are_left_alone_and_those_of_killed_runs_are_deleted() {
    let home = home();
    // A run that is killed while it makes its cluster.
    fs::write(home.path().join("slow"), "").unwrap();
    let mut child = command(home.path(), &[]).stderr(Stdio::piped()).spawn().unwrap();
    created(home.path());
    child.kill().unwrap();
    child.wait().unwrap();
    let first = fs::read_to_string(home.path().join("asked")).unwrap();
    let killed = first.split_whitespace().skip_while(|word| *word != "--name").nth(1).unwrap().to_owned();
    assert!(home.path().join("tmp").join(&killed).is_dir());
    fs::remove_file(home.path().join("slow")).unwrap();
    fs::remove_file(home.path().join("asked")).unwrap();
    fs::write(home.path().join("clusters"), format!("kind\nolmkit-test-19a-7\n{killed}\n")).unwrap();
    let said = said(&test(home.path(), &[]));
    assert!(said.contains("`kind delete cluster --name olmkit-test-19a-7`"), "{said}");
    let asked = fs::read_to_string(home.path().join("asked")).unwrap();
    let deleted: Vec<_> = asked.lines().filter(|line| line.starts_with("delete")).collect();
    assert_eq!(deleted.len(), 2, "{asked}");
    assert!(deleted[0].ends_with(&killed), "{asked}");
    assert!(!deleted[1].ends_with("kind") && !deleted[1].ends_with("19a-7"), "{asked}");
    assert!(said.contains(&format!("deleting the kind cluster {killed} of a run that was killed")), "{said}");
    assert_eq!(fs::read_dir(home.path().join("tmp")).unwrap().count(), 0);
}

#[test]
fn an_interrupted_run_deletes_its_cluster() {
    let home = home();
    fs::write(home.path().join("slow"), "").unwrap();
    let begun = Instant::now();
    let mut child = command(home.path(), &[]).stderr(Stdio::piped()).spawn().unwrap();
    created(home.path());
    signal::send("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(asked(home.path()), [CREATED[0], CREATED[1], DELETED]);
}

#[test]
fn nothing_is_made_for_what_cannot_begin() {
    let home = home();
    let without_kind = command(home.path(), &[]).env("PATH", "/nonexistent").output().unwrap();
    assert_eq!(without_kind.status.code(), Some(3));
    assert!(said(&without_kind).contains("kind is not installed"), "{}", said(&without_kind));
    fs::write(home.path().join("olm.yaml"), "kind: ConfigMap\n").unwrap();
    assert_ne!(test(home.path(), &[]).status.code(), Some(0));
    for flags in [
        ["--context", "a"],
        ["--kubeconfig", "a"],
        ["--adopt", "--no-samples"],
        ["--dry-run", "--no-samples"],
    ] {
        assert_eq!(test(home.path(), &flags).status.code(), Some(2), "{flags:?}");
    }
    assert_eq!(asked(home.path()), Vec::<String>::new());
}
