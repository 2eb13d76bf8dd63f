//! The operator verbs as commands on simulated clusters: what they refuse before anything is changed, and what they say.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::world::inputs;

pub(crate) fn olmkit(directory: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_olmkit"))
        .args((words.first() != Some(&"source")).then_some("operator"))
        .args(words)
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("HOME", directory)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub(crate) fn run(directory: &Path, words: &[&str], code: i32) -> String {
    let output = olmkit(directory, words);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {}", said(&output));
    said(&output)
}

/// A directory with a catalog and its bundles, and a simulated cluster with the oldest version.
pub(crate) fn installed() -> TempDir {
    installed_with(|_| ())
}

/// The same with changed bundles.
fn installed_with(change: impl FnOnce(&Path)) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    copy(&inputs("01").join("catalog-1"), &root.path().join("cat"));
    copy(&inputs("01").join("bundles"), &root.path().join("bundles"));
    change(&root.path().join("bundles"));
    let words = ["install", "demo", "-n", "ns", "--version", "0.1.0", "--simulate", "c.json"];
    let from = ["--catalog-from", "cat", "--bundles-from", "bundles"];
    run(root.path(), &[&words[..], &from].concat(), 0);
    root
}

pub(crate) fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        copy(&from.join(&name), &to.join(&name));
    }
}

#[test]
fn a_simulated_cluster_means_the_same_from_every_directory() {
    let root = installed();
    let sub = root.path().join("sub");
    // Another catalog of the same name is not that of the cluster.
    fs::create_dir_all(sub.join("cat")).unwrap();
    fs::write(sub.join("cat/catalog.yaml"), "schema: olm.package\nname: other\n").unwrap();
    run(&sub, &["upgrade", "demo", "--simulate", "../c.json"], 0);
    let list = olmkit(&sub, &["list", "--simulate", "../c.json"]);
    assert!(String::from_utf8_lossy(&list.stdout).contains("0.3.0    Succeeded"), "{list:?}");
    fs::rename(root.path().join("cat"), root.path().join("moved")).unwrap();
    let told = run(root.path(), &["list", "--simulate", "c.json"], 3);
    assert!(told.contains("name it again with `--catalog-from CATALOG`"), "{told}");
}

#[test]
fn a_misspelt_or_damaged_state_is_named() {
    let root = installed();
    for verb in [&["list"][..], &["status", "demo"], &["upgrade", "demo"], &["uninstall", "demo"]] {
        let told = run(root.path(), &[verb, &["--simulate", "d.json"]].concat(), 2);
        assert!(told.starts_with("error: `d.json` does not exist\n"), "{told}");
    }
    assert!(!root.path().join("d.json").exists());
    let text = fs::read_to_string(root.path().join("c.json")).unwrap();
    fs::write(root.path().join("half.json"), &text[..text.len() / 2]).unwrap();
    let told = run(root.path(), &["list", "--simulate", "half.json"], 3);
    assert!(told.contains("cannot use `half.json`") && told.contains("it is damaged"), "{told}");
}

#[test]
fn a_simulated_cluster_that_does_not_exist_is_named() {
    let root = installed();
    let told = run(root.path(), &["uninstall", "demo", "-n", "ns", "--simulate", "typo.json"], 2);
    assert!(told.starts_with("error: `typo.json` does not exist\n"), "{told}");
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let root = installed();
    let before = fs::read(root.path().join("c.json")).unwrap();
    let simulate = ["--simulate", "c.json"];
    for words in [
        &["list", "-A", "-n", "x"][..],
        &["status", "demo", "-A", "-n", "ns"],
        &["install", "demo", "-n", "KG_2"],
        &["install", "demo", "-n", ""],
        &["uninstall", "demo", "-n", ""],
        &["install", "demo", "-n", "ns", "--name", "BAD_name"],
        &["install", "demo", "-n", "ns", "--watch", "A_B"],
        &["install", "demo", "-n", "ns", "--watch", "*,ns"],
        &["install", "demo", "-n", "ns", "--push-to", "127.0.0.1:1/x"],
        &["install", "demo", "-n", "ns", "--timeout", "5s", "--settle", "10s"],
    ] {
        run(root.path(), &[words, &simulate].concat(), 2);
    }
    run(root.path(), &["list", "--kubeconfig", "x", "--bundles-from", "bundles"], 2);
    assert_eq!(fs::read(root.path().join("c.json")).unwrap(), before);
}

#[test]
fn an_argument_that_is_empty_is_refused() {
    let root = installed();
    let before = fs::read(root.path().join("c.json")).unwrap();
    for words in [
        &["install", "", "-n", "ns"][..],
        &["install", "demo", "-n", "ns", "--channel", ""],
        &["install", "demo", "-n", "ns", "--version", ""],
        &["install", "demo", "-n", "ns", "--accept", ""],
        &["install", "demo", "-n", "ns", "--catalog-from", ""],
        &["upgrade", "demo", "--channel", ""],
        &["upgrade", "demo", "--to", ""],
        &["upgrade", "demo", "--accept", "a,"],
        &["upgrade", ""],
        &["approve", ""],
        &["plan", ""],
        &["status", ""],
        &["describe", ""],
        &["doctor", ""],
        &["uninstall", ""],
        &["rollback", "demo", "--to", ""],
        &["source", "remove", "", "-n", "olm"],
    ] {
        let told = run(root.path(), &[words, &["--simulate", "c.json"]].concat(), 2);
        assert!(told.starts_with("error: "), "{told}");
    }
    run(root.path(), &["test", "", "--dry-run"], 2);
    run(root.path(), &["test", "demo", "--dry-run", "--context", ""], 2);
    assert_eq!(fs::read(root.path().join("c.json")).unwrap(), before);
}

#[test]
fn without_a_kubeconfig_that_is_what_is_said() {
    let root = tempfile::tempdir().unwrap();
    let told = run(root.path(), &["list"], 3);
    assert!(
        told.starts_with("error: no kubeconfig: KUBECONFIG is not set and ~/.kube/config does not exist\n"),
        "{told}"
    );
}

#[test]
fn a_rollback_does_not_go_forward() {
    let root = installed();
    let before = fs::read(root.path().join("c.json")).unwrap();
    let told = run(root.path(), &["rollback", "demo", "--to", "0.3.0", "--simulate", "c.json"], 1);
    assert!(told.contains("`demo.v0.3.0` is newer than `demo.v0.1.0`, which is installed"), "{told}");
    assert!(told.contains("run `olmkit operator upgrade demo -n ns --to 0.3.0 --simulate c.json`"), "{told}");
    let after = fs::read_to_string(root.path().join("c.json")).unwrap();
    // Time may pass in a simulation, and nothing else.
    assert_eq!(
        after.matches("demo.v0.3.0").count(),
        String::from_utf8(before).unwrap().matches("demo.v0.3.0").count()
    );
    assert!(!root.path().join("olmkit-backup").exists());
}

#[test]
fn the_next_command_of_a_simulated_cluster_reaches_no_other_one() {
    let root = installed();
    let doctor = olmkit(root.path(), &["doctor", "-n", "ns", "--simulate", "c.json", "--output", "json"]);
    let found: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let repairs: Vec<_> = found["causes"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|one| one["repair"].as_array().unwrap())
        .collect();
    assert!(!repairs.is_empty(), "{found:#}");
    for repair in repairs {
        let (command, effect) = (repair["command"].as_str().unwrap(), repair["effect"].as_str().unwrap());
        let is_of_kubectl = command.contains("kubectl");
        assert_eq!(is_of_kubectl, effect.starts_with("on a real cluster: "), "{found:#}");
    }
    let told = run(root.path(), &["upgrade", "demo", "--simulate", "c.json", "--to", "0.2.0"], 0);
    assert!(!told.contains("kubectl"), "{told}");
    let command = "`olmkit operator plan demo -n ns --simulate c.json`";
    fs::write(root.path().join("policy.yaml"), "upgrade: patch\n").unwrap();
    let words = ["approve", "demo", "-n", "ns", "--simulate", "c.json", "--policy", "policy.yaml"];
    let told = run(root.path(), &words, 1);
    assert!(told.contains(command), "{told}");
}

/// What is not fixed refers to the commands that are printed.
#[test]
fn repairs_that_cost_something_are_printed_for_a_simulated_cluster() {
    let root = installed();
    let state = root.path().join("c.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
    let objects = json["store"]["objects"].as_array_mut().unwrap();
    objects.retain(|object| object["kind"] != "OperatorGroup");
    fs::write(&state, json.to_string()).unwrap();
    let words = ["doctor", "demo", "-n", "ns", "--simulate", "c.json", "--fix"];
    for words in [&words[..], &[&words[..], &["--dry-run"]].concat()] {
        let output = olmkit(root.path(), words);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let (before, after) =
            told.split_once("not fixed[no-operator-group]: ").unwrap_or_else(|| panic!("{told}"));
        assert!(after.contains("run one of the commands above"), "{told}");
        assert!(before.contains("  repair: on a real cluster: ") && before.contains("\n    echo "), "{told}");
    }
}

#[test]
fn a_bundle_that_a_simulated_registry_does_not_have_is_not_installed() {
    let root = installed();
    fs::remove_dir_all(root.path().join("bundles/demo.v0.2.0")).unwrap();
    let told = run(root.path(), &["upgrade", "demo", "--simulate", "c.json"], 1);
    assert!(
        told.contains("`demo.v0.2.0` cannot be installed: the image ") && told.contains(" does not exist"),
        "{told}"
    );
    let words = ["install", "demo", "-n", "other", "--simulate", "other.json", "--catalog-from", "cat"];
    let told = run(root.path(), &words, 1);
    assert!(told.contains("put the bundle into the directory that --bundles-from names"), "{told}");
}

#[test]
fn a_simulated_plan_that_has_failed_does_not_succeed_by_itself() {
    let root = installed_with(|bundles| {
        let crd = bundles.join("demo.v0.2.0/manifests/demos.t01.example.com.yaml");
        let text = fs::read_to_string(&crd).unwrap();
        fs::write(&crd, text.replace("type: integer", "type: integer\n                maximum: 9")).unwrap();
    });
    let state = root.path().join("c.json");
    let edit = |change: &dyn Fn(&mut Vec<serde_json::Value>)| {
        let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
        change(json["store"]["objects"].as_array_mut().unwrap());
        fs::write(&state, json.to_string()).unwrap();
    };
    edit(&|objects| {
        objects.push(serde_json::json!({
            "apiVersion": "t01.example.com/v1", "kind": "Demo",
            "metadata": {"name": "example", "namespace": "ns", "uid": "1"}, "spec": {"size": 50},
        }));
    });
    let approve = ["approve", "demo", "-n", "ns", "--simulate", "c.json"];
    let refused = run(root.path(), &approve, 1);
    assert!(refused.contains("pass `--accept crd-invalidates-resources` to go on nevertheless"), "{refused}");
    let accept = [&approve[..], &["--accept", "crd-invalidates-resources"]].concat();
    let told = run(root.path(), &accept, 1);
    assert!(told.contains("updated validation is too restrictive"), "{told}");
    let next = "changes were kept; approving it again does nothing: see how far OLM is with `olmkit operator doctor demo -n ns --simulate c.json`";
    assert!(told.contains(next) && !told.contains("the same command"), "{told}");
    edit(&|objects| {
        let demo = objects.iter_mut().find(|object| object["kind"] == "Demo").unwrap();
        demo["spec"]["size"] = serde_json::json!(3);
    });
    let told = run(root.path(), &approve, 1);
    assert!(told.contains(" has failed, and there is nothing to approve"), "{told}");
    run(root.path(), &["doctor", "demo", "-n", "ns", "--fix", "--simulate", "c.json"], 0);
    let told = run(root.path(), &["upgrade", "demo", "-n", "ns", "--simulate", "c.json"], 0);
    assert!(told.contains("demo.v0.3.0: Succeeded"), "{told}");
}

#[test]
fn what_was_named_wrongly_is_named_rightly() {
    let root = installed();
    let install = |words: &[&str]| {
        run(root.path(), &[&["install"], words, &["-n", "ns", "--simulate", "c.json"]].concat(), 1)
    };
    let told = install(&["demo.v0.2.0"]);
    assert!(
        told.contains("`demo.v0.2.0` is a bundle: run `olmkit operator install demo -n ns --version 0.2.0 --simulate c.json`"),
        "{told}"
    );
    let told = install(&["demo", "--catalog", "nope"]);
    assert!(told.contains("there are `olm/catalog`"), "{told}");
}

#[test]
fn a_bundle_is_pushed_to_a_registry_alone() {
    let root = installed();
    for place in ["oci:x", "oci-archive:x.tar", "docker-archive:x.tar"] {
        let words =
            ["install", "--bundle", "bundles/demo.v0.2.0", "-n", "other", "--push-to", place, "--dry-run"];
        let told = run(root.path(), &words, 2);
        assert!(told.contains("expected a repository of a registry"), "{told}");
    }
}

#[test]
fn two_commands_on_one_simulated_cluster_lose_nothing() {
    let root = installed();
    std::thread::scope(|scope| {
        for to in ["0.2.0", "0.3.0"] {
            let root = &root;
            // Whichever is first: the other one sees what it has done.
            scope
                .spawn(move || olmkit(root.path(), &["upgrade", "demo", "--to", to, "--simulate", "c.json"]));
        }
    });
    let listed = olmkit(root.path(), &["list", "--simulate", "c.json"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("0.3.0    Succeeded"), "{listed}");
}

#[test]
fn scripts_that_do_not_wait_come_to_an_end_in_the_simulation() {
    let root = installed();
    run(root.path(), &["upgrade", "demo", "--simulate", "c.json"], 0);
    for _ in 0..4 {
        run(root.path(), &["rollback", "demo", "--to", "0.1.0", "--wait=false", "--simulate", "c.json"], 0);
    }
    run(root.path(), &["status", "demo", "--simulate", "c.json"], 0);
}

#[test]
fn a_catalog_at_an_address_does_not_spoil_a_simulated_cluster() {
    let root = installed();
    let add = ["source", "add", "far", "--address", "127.0.0.1:50051", "-n", "olm", "--simulate", "c.json"];
    let told = run(root.path(), &add, 2);
    assert!(told.contains("--address cannot be used"), "{told}");
    // One that an earlier version has put there.
    let state = root.path().join("c.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
    json["store"]["objects"].as_array_mut().unwrap().push(serde_json::json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "far", "namespace": "olm"}, "spec": {"sourceType": "grpc", "address": "127.0.0.1:50051"},
    }));
    fs::write(&state, json.to_string()).unwrap();
    for words in [&["list"][..], &["source", "list", "-A"], &["source", "remove", "far", "-n", "olm"]] {
        run(root.path(), &[words, &["--simulate", "c.json"]].concat(), 0);
    }
}

#[test]
fn a_simulated_cluster_without_its_catalog_is_diagnosed_and_left_as_it_is() {
    let root = installed();
    run(root.path(), &["upgrade", "demo", "--simulate", "c.json"], 0);
    run(root.path(), &["source", "remove", "catalog", "-n", "olm", "--force", "--simulate", "c.json"], 0);
    let before = fs::read(root.path().join("c.json")).unwrap();
    for from in [&[][..], &["--catalog-from", "cat"]] {
        let doctor = olmkit(root.path(), &[&["doctor", "--simulate", "c.json"], from].concat());
        let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
        assert!(text.contains("catalog-not-found"), "{text}{}", said(&doctor));
        run(root.path(), &[&["list", "--simulate", "c.json"], from].concat(), 0);
    }
    assert_eq!(fs::read(root.path().join("c.json")).unwrap(), before, "verbs that read write nothing");
    let told = run(root.path(), &["install", "other", "-n", "ns", "--simulate", "c.json"], 2);
    assert!(told.contains("the simulated cluster has no catalog"), "{told}");
}

#[test]
fn a_directory_without_bundles_is_refused() {
    let root = installed();
    fs::create_dir(root.path().join("empty")).unwrap();
    for directory in ["empty", "bundles/demo.v0.2.0"] {
        let words =
            ["install", "demo", "-n", "b", "--simulate", "b.json", "--catalog-from", "cat", "--bundles-from"];
        let told = run(root.path(), &[&words[..], &[directory]].concat(), 2);
        assert!(told.contains("name the directory that has a subdirectory for each bundle"), "{told}");
    }
}

#[test]
fn an_image_of_a_catalog_that_is_none_is_refused() {
    let root = installed();
    let told = run(root.path(), &["source", "add", "z", "not a ref!!", "-n", "olm", "--dry-run"], 2);
    assert!(told.contains("`not a ref!!`"), "{told}");
    run(root.path(), &["test", "demo", "--catalog-image", "not a ref!!"], 2);
}

#[test]
fn settings_of_pods_that_the_server_would_drop_are_refused() {
    let root = installed();
    let before = fs::read(root.path().join("c.json")).unwrap();
    for (text, why) in [
        ("spec:\n  config:\n    env: []\n", "unknown field `spec`"),
        ("enf: []\n", "did you mean `env`?"),
        ("env: hello\n", "invalid field `env`"),
    ] {
        fs::write(root.path().join("config.yaml"), text).unwrap();
        let words = ["install", "demo", "-n", "ns", "--simulate", "c.json", "--config", "config.yaml"];
        let told = run(root.path(), &words, 2);
        assert!(told.contains(why), "{told}");
    }
    let words =
        ["source", "add", "x", "cat", "-n", "olm", "--simulate", "c.json", "--pod-config", "config.yaml"];
    let told = run(root.path(), &words, 2);
    assert!(told.contains("unknown field `env`"), "{told}");
    assert_eq!(fs::read(root.path().join("c.json")).unwrap(), before);
}

#[test]
fn flags_that_a_simulated_cluster_cannot_honour_are_refused() {
    let root = installed();
    let bundle = ["install", "--bundle", "bundles/demo.v0.2.0", "-n", "b", "--simulate", "b.json"];
    let told = run(root.path(), &[&bundle[..], &["--push-to", "reg.example.com/x"]].concat(), 2);
    assert!(told.contains("--push-to cannot be used"), "{told}");
    let add = ["source", "add", "x", "cat", "-n", "olm", "--simulate", "c.json", "--accept-missing-images"];
    let told = run(root.path(), &add, 2);
    assert!(told.contains("omit --accept-missing-images"), "{told}");
}

#[test]
fn a_version_that_was_accepted_and_no_plan_carried_is_named() {
    let root = installed();
    let words = ["upgrade", "demo", "--accept", "nonsense.v1", "--simulate", "c.json"];
    let told = run(root.path(), &words, 0);
    assert!(
        told.contains("--accept nonsense.v1: no InstallPlan in the namespace `ns` contains it"),
        "{told}"
    );
}

/// What `--fix` prints to run next works as it is printed, though OLM creates the plan only some seconds later.
#[test]
fn the_plan_of_a_subscription_that_the_doctor_created_again_can_be_approved() {
    let root = installed();
    let state = root.path().join("c.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
    let objects = json["store"]["objects"].as_array_mut().unwrap();
    objects.retain(|object| object["kind"] != "ClusterServiceVersion");
    for object in objects.iter_mut().filter(|object| object["kind"] == "Subscription") {
        object["spec"]["installPlanApproval"] = "Manual".into();
    }
    fs::write(&state, json.to_string()).unwrap();
    let fixed = olmkit(root.path(), &["doctor", "demo", "-n", "ns", "--fix", "--simulate", "c.json"]);
    let told = String::from_utf8_lossy(&fixed.stdout).into_owned();
    let (_, command) =
        told.split_once("you have to approve: `olmkit operator ").unwrap_or_else(|| panic!("{told}"));
    let words: Vec<&str> = command.split('`').next().unwrap().split(' ').collect();
    let told = run(root.path(), &words, 0);
    assert!(told.contains("demo.v0.1.0: Succeeded"), "{told}");
}

#[test]
fn an_operator_that_is_in_the_way_is_uninstalled_on_the_same_cluster() {
    let root = installed();
    let simulate = ["--simulate", "c.json"];
    let uninstall = "`olmkit operator uninstall demo -n ns --simulate c.json`";
    for what in [&["demo"][..], &["--bundle", "bundles/demo.v0.2.0"]] {
        let words = [&["install", "-n", "other", "--watch", "ns"], what, &simulate].concat();
        let told = run(root.path(), &words, 1);
        assert!(told.contains(uninstall), "{told}");
    }
}

#[test]
fn a_pending_plan_of_a_simulated_cluster_is_approved_by_a_command_of_ours() {
    let root = installed();
    let doctor = olmkit(root.path(), &["doctor", "-n", "ns", "--simulate", "c.json"]);
    let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(told.contains("olmkit operator approve demo -n ns --simulate c.json"), "{told}");
    assert!(told.contains("olmkit operator plan demo -n ns --simulate c.json"), "{told}");
    assert!(!told.contains("kubectl"), "{told}");
}

#[test]
fn a_reference_to_push_to_is_refused_on_a_simulated_cluster() {
    let root = installed();
    let words = ["source", "add", "mine", "cat", "-n", "olm", "--to", "r/c:v1", "--simulate", "c.json"];
    let told = run(root.path(), &words, 2);
    assert!(told.contains("so --to cannot be used"), "{told}");
}
