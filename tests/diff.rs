//! `bundle diff` and `bundle manifests` on what users give them: pipes, revisions, duplicates, private keys.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn olmkit(directory: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.arg("bundle").args(words).current_dir(directory).stdin(Stdio::null());
    command.output().unwrap()
}

#[track_caller]
fn run(directory: &Path, words: &[&str], code: i32) -> (String, String) {
    let output = olmkit(directory, words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    (String::from_utf8(output.stdout).unwrap(), said)
}

/// Two versions of a bundle, and their catalog.
fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/diff.in")
}

/// A copy of a bundle with another text in its ClusterServiceVersion, and with files beside it.
fn changed(to: &Path, name: &str, changes: &[(&str, &str)], more: &[(&str, &str)]) {
    let from = inputs().join("old");
    for directory in ["manifests", "metadata"] {
        fs::create_dir_all(to.join(name).join(directory)).unwrap();
        for entry in fs::read_dir(from.join(directory)).unwrap() {
            let entry = entry.unwrap();
            let mut text = fs::read_to_string(entry.path()).unwrap();
            changes.iter().for_each(|(before, after)| text = text.replace(before, after));
            fs::write(to.join(name).join(directory).join(entry.file_name()), text).unwrap();
        }
    }
    for (file, text) in more {
        fs::write(to.join(name).join("manifests").join(file), text).unwrap();
    }
}

#[test]
fn pipes_of_a_shell_are_files() {
    let line = format!(
        "'{}' bundle diff <(cat old/manifests/kettles.yaml) <(cat new/manifests/kettles.yaml) --samples <(cat kettle.yaml)",
        env!("CARGO_BIN_EXE_olmkit")
    );
    let output = Command::new("bash").args(["-c", &line]).current_dir(inputs()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        text.contains("error[schema-bound-narrowed]") && text.contains("error[sample-refused]"),
        "{text}"
    );
}

#[test]
fn a_revision_without_a_path_says_how_to_write_one() {
    for (side, example) in
        [("git:HEAD", "git:HEAD:bundle"), ("git:v1.0", "git:v1.0:bundle"), ("git:", "git:HEAD:bundle")]
    {
        let (_, said) = run(&inputs(), &["diff", side, "new"], 2);
        assert!(said.contains(&format!("expected `git:REV:PATH`, such as `{example}`")), "{side}: {said}");
    }
}

#[test]
fn two_bundles_of_one_name_are_refused() {
    let root = tempfile::tempdir().unwrap();
    changed(root.path(), "first", &[], &[]);
    changed(root.path(), "second", &[("--leader-elect", "--other")], &[]);
    let catalog = inputs().join("catalog.yaml").display().to_string();
    let words = ["diff", "--catalog", &catalog, "--bundles", "first", "second"];
    let (_, said) = run(root.path(), &words, 2);
    assert!(said.contains("`first` and `second` are both bundles of `kettle-operator.v0.1.0`"), "{said}");
}

#[test]
fn a_changelog_of_a_channel_has_a_section_for_each_upgrade() {
    let root = tempfile::tempdir().unwrap();
    let version = |version: &str, image: &str| {
        let (name, number, image) =
            (format!("operator.v{version}"), format!("version: {version}"), format!("operator:{image}"));
        let changes =
            [("operator.v0.1.0", name.as_str()), ("version: 0.1.0", &number), ("operator:v0.1.0", &image)];
        changed(root.path(), version, &changes, &[]);
    };
    version("0.1.0", "v0.1.0");
    version("0.2.0", "v0.2.0");
    version("0.10.0", "v0.10.0");
    let bundle = |version: &str| {
        format!(
            "---\nschema: olm.bundle\nname: kettle-operator.v{version}\npackage: kettle-operator\nimage: example.com/b:v{version}\n\
             properties: [{{type: olm.package, value: {{packageName: kettle-operator, version: {version}}}}}]\n"
        )
    };
    let text = format!(
        "schema: olm.package\nname: kettle-operator\ndefaultChannel: stable\n---\nschema: olm.channel\nname: stable\n\
         package: kettle-operator\nentries:\n- {{name: kettle-operator.v0.1.0}}\n\
         - {{name: kettle-operator.v0.2.0, replaces: kettle-operator.v0.1.0}}\n\
         - {{name: kettle-operator.v0.10.0, replaces: kettle-operator.v0.2.0}}\n{}{}{}",
        bundle("0.1.0"),
        bundle("0.2.0"),
        bundle("0.10.0")
    );
    fs::write(root.path().join("catalog.yaml"), text).unwrap();
    let words = ["diff", "--catalog", "catalog.yaml", "--bundles", "0.1.0", "0.2.0", "0.10.0", "--changelog"];
    let (text, _) = run(root.path(), &words, 0);
    let titles: Vec<_> = text.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        titles,
        ["# kettle-operator", "## 0.10.0", "### Changes", "## 0.2.0", "### Changes"],
        "{text}"
    );
    assert!(text.contains("Changes since 0.2.0.\n\n### Changes\n\n- the container `manager`"), "{text}");
    // One format, and no other is passed over in silence.
    let (_, said) = run(root.path(), &[&words[..], &["--output", "sarif"]].concat(), 2);
    assert!(said.contains("--changelog prints Markdown"), "{said}");
    assert_eq!(run(root.path(), &[&words[..], &["--output", "markdown"]].concat(), 0).0, text);
}

const WEBHOOK: &str = "  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: kettles.example.com
    deploymentName: kettle-operator
    admissionReviewVersions: [v1]
    sideEffects: None
  install:
";

#[test]
fn private_keys_are_for_their_owner_alone_and_never_in_a_chart() {
    let root = tempfile::tempdir().unwrap();
    changed(root.path(), "bundle", &[("  install:\n", WEBHOOK)], &[]);
    let words = ["manifests", "bundle", "--namespace", "kitchen", "--webhook-certs", "self-signed"];
    let watched = ["--watch-namespace", "kitchen"];
    let words = [&words[..], &watched].concat();
    run(root.path(), &[&words[..], &["--kustomize", "deploy"]].concat(), 0);
    let mut keys = 0;
    for entry in fs::read_dir(root.path().join("deploy")).unwrap() {
        let path = entry.unwrap().path();
        if fs::read_to_string(&path).unwrap().contains("PRIVATE KEY") {
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600,
                "{}",
                path.display()
            );
            keys += 1;
        }
    }
    assert_eq!(keys, 1);
    let (_, said) = run(root.path(), &[&words[..], &["--helm-chart", "chart"]].concat(), 2);
    assert!(
        said.contains("valid in one namespace") && said.contains("--webhook-certs cert-manager"),
        "{said}"
    );
    assert!(!root.path().join("chart").exists());
}

#[test]
fn objects_twice_and_objects_without_a_name_are_told() {
    let root = tempfile::tempdir().unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n";
    let more =
        [("a.yaml", map), ("b.yaml", map), ("c.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n")];
    changed(root.path(), "bundle", &[], &more);
    let words = ["manifests", "bundle", "--namespace", "kitchen", "--watch-namespace", "kitchen"];
    let (text, said) = run(root.path(), &words, 0);
    assert_eq!(text.matches("kind: ConfigMap").count(), 3, "{text}");
    let expected = "warning: an object of kind `ConfigMap` has no name\nwarning: `ConfigMap/settings` is in the bundle 2 times\n";
    assert_eq!(said, expected);
    for flag in ["--kustomize", "--helm-chart"] {
        let (_, said) = run(root.path(), &[&words[..], &[flag, "out"]].concat(), 1);
        assert!(said.contains("`ConfigMap/settings` is in the bundle 2 times"), "{said}");
        assert!(!root.path().join("out").exists());
    }
}

#[test]
fn leases_that_only_the_watched_namespace_has_are_told() {
    let root = tempfile::tempdir().unwrap();
    let leases = (
        "        - apiGroups: [\"\"]\n",
        "        - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: ['*']}\n        - apiGroups: [\"\"]\n",
    );
    changed(root.path(), "bundle", &[leases], &[]);
    let words = ["manifests", "bundle", "--namespace", "kitchen", "--watch-namespace"];
    let (_, said) = run(root.path(), &[&words[..], &["shop"]].concat(), 0);
    assert!(
        said.starts_with("warning: the operator may use Leases in the namespace that it watches"),
        "{said}"
    );
    assert_eq!(run(root.path(), &[&words[..], &["kitchen"]].concat(), 0).1, "");
}

#[test]
fn a_namespace_to_watch_that_contradicts_the_configuration_is_refused() {
    let root = tempfile::tempdir().unwrap();
    changed(root.path(), "bundle", &[], &[]);
    let words = ["manifests", "bundle", "--namespace", "kitchen", "--config", "config.yaml"];
    let with = |config: &str, more: &[&str], code: i32| {
        fs::write(root.path().join("config.yaml"), config).unwrap();
        run(root.path(), &[&words[..], more].concat(), code)
    };
    let watch = ["--watch-namespace", "shop"];
    let variable =
        |value: &str| format!("deploymentConfig: {{env: [{{name: WATCH_NAMESPACE, value: {value}}}]}}\n");
    for (config, why) in [
        ("watchNamespace: kitchen\n".to_owned(), "its `watchNamespace` is `kitchen`"),
        (variable("kitchen"), "it sets the variable `WATCH_NAMESPACE` to `kitchen`"),
    ] {
        let (_, said) = with(&config, &watch, 2);
        assert!(said.contains("`--watch-namespace shop` contradicts the configuration"), "{said}");
        assert!(said.contains(why) && said.contains("help: pass one of the two"), "{said}");
    }
    with(&variable("shop"), &watch, 0);
    with("watchNamespace: shop\n", &watch, 0);
    with("watchNamespace:\n", &watch, 0);
    let (_, said) = with("watchNamespace: 7\n", &watch, 1);
    assert!(said.contains("`watchNamespace`: expected a string"), "{said}");
    // A Subscription's `spec.config` as it is.
    let (_, said) = with("env: []\n", &watch, 1);
    assert!(said.contains("unknown field `env`: it belongs below `deploymentConfig`"), "{said}");
}

/// docs/diff.md: ten lines at most, and they do what they are there for.
#[test]
fn the_check_of_pull_requests_runs_as_the_page_shows_it() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/diff.md");
    let page = fs::read_to_string(page).unwrap();
    let check = page.split("```yaml\n").find(|block| block.starts_with("on: pull_request")).unwrap();
    let check = check.split("```").next().unwrap();
    assert!(check.lines().count() <= 10, "{check}");
    let command = check.lines().find_map(|line| line.trim().strip_prefix("- run: ")).unwrap();

    let root = tempfile::tempdir().unwrap();
    changed(root.path(), "bundle", &[], &[]);
    let bash = |line: &str| {
        let program = Path::new(env!("CARGO_BIN_EXE_olmkit")).parent().unwrap().display().to_string();
        let path = format!("{program}:{}", std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.args(["-ec", line]).current_dir(root.path()).env("PATH", path).env("GITHUB_BASE_REF", "main");
        command.env("HOME", root.path()).env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
        command.output().unwrap()
    };
    // As `actions/checkout` leaves a checkout: the base is a branch of `origin`.
    let commit = "git init -q . && git add bundle && git -c user.name=a -c user.email=a@example.com commit -qm base && \
                  git update-ref refs/remotes/origin/main HEAD";
    assert!(bash(commit).status.success());
    assert_eq!(bash(command).status.code(), Some(0));
    changed(
        root.path(),
        "bundle",
        &[("maximum: 8", "maximum: 6"), ("v0.1.0", "v0.2.0"), ("version: 0.1.0", "version: 0.2.0")],
        &[],
    );
    let output = bash(command);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("::error file=bundle/manifests/kettles.yaml,line=20"), "{text}");
}
