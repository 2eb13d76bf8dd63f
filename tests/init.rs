//! `bundle init` on the layouts that projects have, and `bundle generate` after it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: echoes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Echo, plural: echoes, singular: echo, listKind: EchoList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";
const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo, namespace: echo-system}
spec:
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec: {containers: [{name: manager, image: 'quay.io/example/echo:v1'}]}
";

/// A directory of this name with these files.
fn project(name: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path().join(name);
    for (path, text) in files {
        let path = at.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    (directory, at)
}

fn olmkit(at: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.args(arguments).current_dir(at).stdin(Stdio::null()).env_remove("SOURCE_DATE_EPOCH");
    command.output().expect("olmkit starts")
}

/// Runs `bundle init`, then the command that it names: what init said, and the name of the bundle.
#[track_caller]
fn init_and_generate(at: &Path) -> (String, String) {
    let output = olmkit(at, &["bundle", "init"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let next = said.lines().last().and_then(|line| line.split('`').nth(1)).expect("the next command");
    let output = olmkit(at, &next.split(' ').skip(1).collect::<Vec<_>>());
    let made = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{next}: {made}");
    let line = made.lines().find(|line| line.contains(" in bundle ")).expect("a bundle");
    (said, line.split(' ').next().unwrap_or("").to_owned())
}

#[test]
fn two_sources_of_one_operator_are_not_taken_both() {
    let whole = format!("{CRD}---\n{}", DEPLOYMENT.replace("v1'", "v2'"));
    let files =
        [("deploy/crd.yaml", CRD), ("deploy/echo.yaml", DEPLOYMENT), ("dist/install.yaml", whole.as_str())];
    let (_keep, at) = project("echo", &files);
    let (said, name) = init_and_generate(&at);
    assert_eq!(name, "echo.v0.1.0");
    assert!(said.contains("also found, not used: manifests: [dist]\n"), "{said}");
    let text = fs::read_to_string(at.join("olmkit.yaml")).expect("a package file");
    assert!(text.contains("\nmanifests:\n- deploy\n"), "{text}");
}

#[test]
fn fields_that_a_crate_inherits_are_resolved() {
    let root = "[workspace]\nmembers = ['op']\n[workspace.package]\nversion = '1.2.3'\ndescription = 'Says it again.'\nlicense = 'MIT'\n";
    let member = "[package]\nname = 'echo_op'\nversion.workspace = true\ndescription.workspace = true\nlicense.workspace = true\n[dependencies]\nkube = '1'\n";
    let files = [
        ("Cargo.toml", root),
        ("op/Cargo.toml", member),
        ("op/src/main.rs", "fn main() {}\n"),
        ("op/deploy/all.yaml", DEPLOYMENT),
        ("op/deploy/crd.yaml", CRD),
    ];
    let (_keep, at) = project("work", &files);
    // In the crate's own directory the values stay in Cargo.toml.
    let (said, name) = init_and_generate(&at.join("op"));
    assert_eq!(name, "echo-op.v1.2.3");
    assert!(said.ends_with("then run `olmkit bundle generate`\n"), "{said}");
    let text = fs::read_to_string(at.join("op/olmkit.yaml")).expect("a package file");
    for line in [
        "package: echo-op",
        "# version: \"1.2.3\"",
        "# description: \"Says it again.\"",
        "# license: \"MIT\"",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}:\n{text}");
    }
    // In the workspace they are written down.
    fs::remove_file(at.join("op/olmkit.yaml")).expect("a package file");
    fs::remove_dir_all(at.join("op/bundle")).expect("a bundle");
    let (_, name) = init_and_generate(&at);
    assert_eq!(name, "echo-op.v1.2.3");
    let text = fs::read_to_string(at.join("olmkit.yaml")).expect("a package file");
    for line in ["version: \"1.2.3\"", "description: Says it again.", "license: MIT"] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}:\n{text}");
    }
}

#[test]
fn a_directory_whose_name_is_no_package_name() {
    for (directory, name) in [("My_Operator v2", "my-operator-v2.v0.1.0"), ("__", "my-operator.v0.1.0")] {
        let (_keep, at) = project(directory, &[("crd.yaml", CRD), ("echo.yaml", DEPLOYMENT)]);
        let (said, made) = init_and_generate(&at);
        assert_eq!(made, name);
        let asked = said.contains("still missing in the package file: `package`");
        assert_eq!(asked, directory == "__", "{said}");
    }
}

#[test]
fn the_package_file_is_no_file_of_another_tool() {
    let (_keep, at) = project("echo", &[("deploy/all.yaml", DEPLOYMENT)]);
    for name in ["Cargo.toml", "PROJECT", "kustomization.yaml", "Chart.yaml", "deploy/olmkit.json"] {
        let output = olmkit(&at, &["bundle", "init", "--package-file", name]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("`{name}` cannot be the package file")) && said.contains("help: "),
            "{said}"
        );
        assert!(!at.join(name).exists());
    }
}

#[test]
fn another_package_file_below_the_manifests_is_left_out() {
    let other = "package: other\nversion: 1.0.0\nmanifests: [.]\n";
    let files =
        [("deploy/crd.yaml", CRD), ("deploy/echo.yaml", DEPLOYMENT), ("deploy/old/olmkit.yaml", other)];
    let (_keep, at) = project("echo", &files);
    let arguments = ["bundle", "generate", "deploy", "--package", "echo", "--version", "0.1.0"];
    let output = olmkit(&at, &arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("a package file is left out"), "{said}");
}

#[test]
fn a_base_beside_the_manifests_is_used() {
    let base = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: echo.v0.0.0}\nspec: {displayName: By hand}\n";
    let manifests = format!("{CRD}---\n{DEPLOYMENT}");
    let (_keep, at) = project("echo", &[("manifests.yaml", &manifests), ("base.yaml", base)]);
    init_and_generate(&at);
    let csv = fs::read_to_string(at.join("bundle/manifests/echo.clusterserviceversion.yaml")).expect("a CSV");
    assert!(csv.contains("displayName: By hand\n"), "{csv}");
    // Of two nobody knows which.
    fs::remove_file(at.join("olmkit.yaml")).expect("a package file");
    fs::write(at.join("other.yaml"), base).expect("a file");
    let (said, _) = init_and_generate(&at);
    assert_eq!(said.matches("also found, not used: base: ").count(), 2, "{said}");
}

/// The values of a key of the package file that `bundle init` wrote.
#[track_caller]
fn listed(at: &Path, key: &str) -> Vec<String> {
    let text = fs::read_to_string(at.join("olmkit.yaml")).expect("a package file");
    let document = olmkit_bundle::yaml::first_document(&text).expect("YAML").root.to_json();
    let list = document[key].as_array().cloned().unwrap_or_default();
    list.iter().map(|value| value.as_str().expect("a text").to_owned()).collect()
}

const SAMPLE: &str = "apiVersion: example.com/v1\nkind: Echo\nmetadata: {name: hello}\n";

/// A directory is read with everything in it, so one that also holds something else is not named.
#[test]
fn what_is_beside_the_manifests_is_not_read() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: only-for-the-example}\n";
    let files = [
        ("deploy/crds/echo.yaml", CRD),
        ("deploy/echo.yaml", DEPLOYMENT),
        ("deploy/docker-compose.yml", "services: {db: {image: redis}}\n"),
        ("deploy/kind.yaml", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: worker}]\n"),
        ("deploy/dashboard.json", "{\"title\": \"Echo\"}"),
        ("deploy/examples/echo.yaml", SAMPLE),
        ("deploy/examples/secret.yaml", secret),
        ("deploy/test/echo.yaml", secret),
        ("deploy/chart/Chart.yaml", "name: echo\nversion: 0.1.0\n"),
        ("skaffold.yaml", "apiVersion: skaffold/v4beta11\nkind: Config\nbuild: {}\n"),
    ];
    let (_keep, at) = project("echo", &files);
    // The chart goes first where there is one.
    fs::remove_dir_all(at.join("deploy/chart")).expect("a chart");
    init_and_generate(&at);
    assert_eq!(listed(&at, "manifests"), ["deploy/crds", "deploy/echo.yaml"]);
    assert_eq!(listed(&at, "samples"), ["deploy/examples"]);
    let made: Vec<_> = fs::read_dir(at.join("bundle/manifests")).expect("a bundle").collect();
    assert_eq!(made.len(), 2, "{made:?}");
}

#[test]
fn a_sample_beside_the_manifests_is_named_alone() {
    let files = [("crd.yaml", CRD), ("echo.yaml", DEPLOYMENT), ("sample.yaml", SAMPLE), ("a/b.json", "{}")];
    let (_keep, at) = project("echo", &files);
    init_and_generate(&at);
    assert_eq!(listed(&at, "manifests"), ["crd.yaml", "echo.yaml"]);
    assert_eq!(listed(&at, "samples"), ["sample.yaml"]);
    let csv = fs::read_to_string(at.join("bundle/manifests/echo.clusterserviceversion.yaml")).expect("a CSV");
    assert!(csv.contains("\"name\": \"hello\""), "{csv}");
    // In one directory they are read together.
    let files = [("deploy/crd.yaml", CRD), ("deploy/echo.yaml", DEPLOYMENT), ("deploy/sample.yaml", SAMPLE)];
    let (_keep, at) = project("echo", &files);
    init_and_generate(&at);
    assert_eq!((listed(&at, "manifests"), listed(&at, "samples")), (vec!["deploy".to_owned()], Vec::new()));
}

#[test]
fn a_directory_that_is_named_as_a_version_is_not_the_name_of_the_package() {
    for version in ["1.2.3", "v1.2.3"] {
        let (keep, at) = project("echo", &[(&format!("{version}/all.yaml"), DEPLOYMENT)]);
        let (said, name) = init_and_generate(&at.join(version));
        assert_eq!(name, "echo.v1.2.3");
        assert!(said.ends_with("run `olmkit bundle generate --version 1.2.3`\n"), "{said}");
        drop(keep);
    }
}

#[test]
fn a_chart_keeps_its_crds_apart() {
    let files = [
        ("chart/Chart.yaml", "name: echo\nversion: 0.1.0\n"),
        ("chart/crds/echo.yaml", CRD),
        ("chart/templates/echo.yaml", "apiVersion: {{ .Values.api }}\n"),
        ("cr/hello.yaml", SAMPLE),
    ];
    let (_keep, at) = project("work", &files);
    let said = olmkit(&at, &["bundle", "init"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!((listed(&at, "helm"), listed(&at, "samples")), (vec!["chart".into()], vec!["cr".into()]));
    let text = fs::read_to_string(at.join("olmkit.yaml")).expect("a package file");
    assert!(text.contains("\n# descriptors: [{kind: Echo, "), "{text}");
}

#[test]
fn one_kustomization_is_the_operator() {
    let part = "resources: [all.yaml]\n";
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: []\n";
    for (paths, expected) in [
        (["config/certmanager", "config/manager", "config/default"], "config/default"),
        (
            ["deploy/kustomize/addons", "deploy/kustomize/base", "deploy/kustomize/overlays/dev"],
            "deploy/kustomize/base",
        ),
        (["config/certmanager", "config/operator", "config/webhook"], "config/operator"),
    ] {
        let files: Vec<_> = paths.iter().map(|path| format!("{path}/kustomization.yaml")).collect();
        let mut files: Vec<_> = files.iter().map(|path| (path.as_str(), part)).collect();
        files.push(("a/kustomization.yaml", component));
        let (_keep, at) = project("echo", &files);
        let said = olmkit(&at, &["bundle", "init"]);
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        assert_eq!(listed(&at, "kustomize"), [expected]);
        assert!(!String::from_utf8_lossy(&said.stderr).contains("[a]"));
    }
}

/// `make bundle` of operator-sdk's projects builds `config/manifests`, which may name another kustomization than `config/default`.
#[test]
fn what_the_project_makes_its_bundle_of_is_chosen() {
    let manifests =
        "resources: [bases/echo.clusterserviceversion.yaml, ../deployments/default, ../samples]\n";
    let scaffold = "resources: [bases/echo.clusterserviceversion.yaml, ../samples, ../scorecard]\n";
    for (text, kustomize, samples) in [
        (manifests, "config/manifests", Vec::new()),
        (scaffold, "config/default", vec!["config/samples".to_owned()]),
    ] {
        let files = [
            ("config/manifests/kustomization.yaml", text),
            ("config/default/kustomization.yaml", "resources: [all.yaml]\n"),
            ("config/default/all.yaml", DEPLOYMENT),
            ("config/crd/crd.yaml", CRD),
            ("config/deployments/default/kustomization.yaml", "resources: [all.yaml]\n"),
            ("config/deployments/default/all.yaml", DEPLOYMENT),
            ("config/samples/kustomization.yaml", "resources: [hello.yaml]\n"),
            ("config/samples/hello.yaml", SAMPLE),
            ("config/scorecard/kustomization.yaml", "resources: []\n"),
            ("e2e-tests/hello/hello.yaml", SAMPLE),
            ("demos/hello.yaml", SAMPLE),
        ];
        let (_keep, at) = project("echo", &files);
        let said = olmkit(&at, &["bundle", "init"]);
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        assert_eq!((listed(&at, "kustomize"), listed(&at, "samples")), (vec![kustomize.to_owned()], samples));
        assert!(!String::from_utf8_lossy(&said.stderr).contains("e2e-tests"));
    }
}

/// Some projects build a bundle for each platform from one base.
#[test]
fn the_base_that_several_bundles_are_made_of_is_chosen() {
    let base = "resources: [bases/echo.clusterserviceversion.yaml, ../../default, ../../samples]\n";
    let files = [
        ("config/manifests/base/kustomization.yaml", base),
        ("config/manifests/ocp/kustomization.yaml", "resources: [../base]\n"),
        ("config/default/kustomization.yaml", "resources: [all.yaml]\n"),
        ("config/default/all.yaml", DEPLOYMENT),
        ("config/crd/crd.yaml", CRD),
        ("config/samples/kustomization.yaml", "resources: [hello.yaml]\n"),
        ("config/samples/hello.yaml", SAMPLE),
        ("site/static/v0.1/examples/hello.yaml", SAMPLE),
    ];
    let (_keep, at) = project("echo", &files);
    let said = olmkit(&at, &["bundle", "init"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(listed(&at, "kustomize"), ["config/manifests/base"]);
    assert_eq!(listed(&at, "samples"), Vec::<String>::new());
}

#[test]
fn of_two_bases_none_is_taken_in_silence() {
    let base = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: echo.v0.0.0}\nspec: {}\n";
    let bases =
        ["echo", "other"].map(|name| format!("config/manifests/bases/{name}.clusterserviceversion.yaml"));
    let files = [
        ("config/default/kustomization.yaml", "resources: [all.yaml]\n"),
        ("config/default/all.yaml", DEPLOYMENT),
        (bases[0].as_str(), base),
        (bases[1].as_str(), base),
    ];
    // One may have the name of the package.
    for (name, unused) in [("echo", 1), ("work", 2)] {
        let (_keep, at) = project(name, &files);
        let said = olmkit(&at, &["bundle", "init"]);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.matches("also found, not used: base: ").count(), unused, "{said}");
    }
}

#[test]
fn a_crate_with_a_program_of_another_name_is_an_operator() {
    for (path, more) in
        [("src/bin/operator.rs", ""), ("program.rs", "[[bin]]\nname = 'op'\npath = 'program.rs'\n")]
    {
        let member = format!(
            "[package]\nname = 'echo'\nversion = '1.2.3'\n[dependencies]\nkube.workspace = true\n{more}"
        );
        let path = format!("op/{path}");
        let files = [
            ("Cargo.toml", "[workspace]\nmembers = ['o*']\nexclude = ['old']\n"),
            ("op/Cargo.toml", member.as_str()),
            (path.as_str(), "fn main() {}\n"),
            ("old/Cargo.toml", "[package]\nname = 'old'\n[dependencies]\nkube = '1'\n"),
            ("old/src/main.rs", "fn main() {}\n"),
            ("deploy/all.yaml", DEPLOYMENT),
        ];
        let (_keep, at) = project("work", &files);
        let (_, name) = init_and_generate(&at);
        assert_eq!(name, "echo.v1.2.3");
    }
}

/// Each is a package of its own.
#[test]
fn operators_of_a_workspace_are_not_merged() {
    let member =
        |name: &str| format!("[package]\nname = '{name}'\nversion = '1.2.3'\n[dependencies]\nkube = '1'\n");
    let (one, two) = (member("one"), member("two"));
    let other = DEPLOYMENT.replace("name: echo,", "name: two,");
    let mut files = vec![
        ("Cargo.toml", "[workspace]\nmembers = ['one', 'two']\n"),
        ("one/Cargo.toml", one.as_str()),
        ("one/src/main.rs", "fn main() {}\n"),
        ("one/deploy/all.yaml", DEPLOYMENT),
        ("two/Cargo.toml", two.as_str()),
        ("two/src/main.rs", "fn main() {}\n"),
    ];
    // The manifests of one alone are that operator's.
    let (_keep, at) = project("work", &files);
    let (said, _) = init_and_generate(&at);
    assert_eq!(listed(&at, "manifests"), ["one/deploy"], "{said}");
    files.push(("two/deploy/all.yaml", &other));
    let (_keep, at) = project("work", &files);
    let output = olmkit(&at, &["bundle", "init"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(
        said,
        "error: the workspace has 2 operators with manifests of their own: `one`, `two`\n  \
         help: run `olmkit bundle init` in the directory of one, `one` or `two`; if they are one package, write `manifests: [one/deploy, two/deploy]` into `olmkit.yaml`\n"
    );
    assert!(!at.join("olmkit.yaml").exists());
    let (_, name) = init_and_generate(&at.join("two"));
    assert_eq!(name, "two.v1.2.3");
}

#[test]
fn what_cannot_be_read_is_said() {
    let files = [
        ("crd.yaml", CRD),
        ("echo.yaml", DEPLOYMENT),
        ("broken.yaml", "a: [\n"),
        ("page.json", "{{ .Title }}"),
        ("empty.yaml", "# nothing yet\n"),
    ];
    let (_keep, at) = project("echo", &files);
    let (said, _) = init_and_generate(&at);
    assert!(said.contains("also found, not used: broken.yaml, page.json (not YAML)\n"), "{said}");
    // Among the manifests of a directory it is for `bundle generate` to say what is wrong.
    let files =
        [("deploy/crd.yaml", CRD), ("deploy/echo.yaml", DEPLOYMENT), ("deploy/broken.yaml", "a: [\n")];
    let (_keep, at) = project("echo", &files);
    let init = olmkit(&at, &["bundle", "init"]);
    assert!(!String::from_utf8_lossy(&init.stderr).contains("not YAML"));
    let output = olmkit(&at, &["bundle", "generate", "--version", "0.1.0"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("error[generate-yaml-syntax]") && said.contains("deploy/broken.yaml:"), "{said}");
}

/// A kustomization of the Deployment alone does not bring the CRDs and roles beside it.
#[test]
fn parts_that_no_kustomization_names_are_said() {
    let part = "resources: [all.yaml]\n";
    let files = [
        ("config/crd/kustomization.yaml", part),
        ("config/crd/all.yaml", CRD),
        ("config/rbac/kustomization.yaml", part),
        ("config/manager/kustomization.yaml", part),
        ("config/manager/all.yaml", DEPLOYMENT),
        ("config/samples/kustomization.yaml", part),
        ("config/samples/all.yaml", SAMPLE),
    ];
    let (_keep, at) = project("echo", &files);
    let said = olmkit(&at, &["bundle", "init"]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(listed(&at, "kustomize"), ["config/manager"]);
    for part in ["config/crd", "config/rbac"] {
        assert!(said.contains(&format!("also found, not used: kustomize: [{part}]\n")), "{said}");
    }
    assert_eq!(said.matches("not used").count(), 2, "{said}");
    // Where there is none for the Deployment, all of them are read as files.
    fs::remove_file(at.join("olmkit.yaml")).expect("a package file");
    fs::remove_file(at.join("config/manager/kustomization.yaml")).expect("a kustomization");
    let (said, _) = init_and_generate(&at);
    assert!(!said.contains("not used"), "{said}");
    assert_eq!(listed(&at, "manifests"), ["config/crd/all.yaml", "config/manager"]);
}

#[test]
fn a_bundle_instead_of_manifests_is_said() {
    let annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: echo}\n";
    let files = [("old/manifests/crd.yaml", CRD), ("old/metadata/annotations.yaml", annotations)];
    let (_keep, at) = project("echo", &files);
    let said = olmkit(&at, &["bundle", "init"]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("also found, not used: old (a bundle)\nstill missing"), "{said}");
    // There is nothing yet to generate from.
    let last =
        "next: name the operator's manifests in `olmkit.yaml`, under `manifests`, `kustomize` or `helm`\n";
    assert!(said.ends_with(last), "{said}");
}

#[test]
fn of_several_versions_the_highest_is_taken_with_its_samples() {
    let files = [
        ("deploy/0.9.0/install/all.yaml", &format!("{CRD}---\n{DEPLOYMENT}")),
        ("deploy/0.9.0/samples/a.yaml", &SAMPLE.replace("hello", "old")),
        ("deploy/0.10.0/install/all.yaml", &format!("{CRD}---\n{DEPLOYMENT}")),
        ("deploy/0.10.0/samples/a.yaml", &SAMPLE.to_owned()),
        ("samples/b.yaml", &SAMPLE.replace("hello", "more")),
    ];
    let (_keep, at) = project("echo", &files.map(|(path, text)| (path, text.as_str())));
    let (said, _) = init_and_generate(&at);
    assert!(said.contains("also found, not used: manifests: [deploy/0.9.0/install]\n"), "{said}");
    assert_eq!(listed(&at, "manifests"), ["deploy/0.10.0/install"]);
    assert_eq!(listed(&at, "samples"), ["deploy/0.10.0/samples", "samples"]);
}

#[test]
fn channels_of_the_makefile_are_taken() {
    let makefile = "VERSION ?= 1.2.3\nCHANNELS = \"stable,candidate\"\nDEFAULT_CHANNEL = \"stable\"\n\
                    ifneq ($(origin CHANNELS), undefined)\nBUNDLE_CHANNELS := --channels=$(CHANNELS)\nendif\n";
    let files = [("Makefile", makefile), ("deploy/crd.yaml", CRD), ("deploy/echo.yaml", DEPLOYMENT)];
    let (_keep, at) = project("echo", &files);
    let (_, name) = init_and_generate(&at);
    assert_eq!(name, "echo.v1.2.3");
    assert_eq!(listed(&at, "channels"), ["stable", "candidate"]);
    let annotations = fs::read_to_string(at.join("bundle/metadata/annotations.yaml")).expect("annotations");
    assert!(annotations.contains("bundle.channels.v1: stable,candidate\n"), "{annotations}");
    assert!(annotations.contains("bundle.channel.default.v1: stable\n"), "{annotations}");
}

/// CRDs are what makes an operator: a chart without any is not all of it.
#[test]
fn a_chart_without_a_crd_is_not_preferred() {
    let chart = [
        ("chart/Chart.yaml", "name: echo\nversion: 0.1.0\n"),
        ("chart/templates/echo.yaml", "apiVersion: apps/v1\nkind: Deployment\n"),
    ];
    let whole = [("deploy/crd.yaml", CRD), ("deploy/echo.yaml", DEPLOYMENT)];
    let (_keep, at) = project("echo", &[chart.as_slice(), &whole].concat());
    let (said, _) = init_and_generate(&at);
    assert_eq!(listed(&at, "manifests"), ["deploy"]);
    assert!(said.contains("also found, not used: helm: [chart]\n"), "{said}");
    // Where only the CRDs stand beside it, they belong together.
    let (_keep, at) = project("echo", &[chart.as_slice(), &whole[..1]].concat());
    let said = olmkit(&at, &["bundle", "init"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(
        (listed(&at, "helm"), listed(&at, "manifests")),
        (vec!["chart".into()], vec!["deploy".into()])
    );
    // A chart with CRDs is the operator.
    let with = [chart.as_slice(), &[("chart/crds/echo.yaml", CRD)], &whole].concat();
    let (_keep, at) = project("echo", &with);
    assert!(olmkit(&at, &["bundle", "init"]).status.success());
    assert_eq!((listed(&at, "helm"), listed(&at, "manifests")), (vec!["chart".to_owned()], Vec::new()));
}

#[test]
fn many_sources_are_counted() {
    let paths: Vec<_> = (0..130).map(|at| format!("d{at}/echo.yaml")).collect();
    let mut files: Vec<_> = paths.iter().map(|path| (path.as_str(), DEPLOYMENT)).collect();
    files.push(("crd.yaml", CRD));
    let (_keep, at) = project("echo", &files);
    let said = olmkit(&at, &["bundle", "init"]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.matches("also found, not used: manifests: ").count(), 20, "{said}");
    assert!(said.contains("also found, not used: 109 more; `--output json` lists all\n"), "{said}");
    assert_eq!(listed(&at, "manifests").len(), 2, "{said}");
}

/// The ClusterServiceVersion that `kustomize build config/manifests` prints with the rest is the base of its package alone.
#[test]
fn a_base_among_the_manifests_names_the_package() {
    let base = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: echo-operator.v0.0.0}\nspec: {displayName: By hand}\n";
    let all = format!("{CRD}---\n{DEPLOYMENT}---\n{base}");
    let (_keep, at) = project("my-clone", &[("all.yaml", &all)]);
    let (_, name) = init_and_generate(&at);
    assert_eq!(name, "echo-operator.v0.1.0");
    let csv = fs::read_to_string(at.join("bundle/manifests/echo-operator.clusterserviceversion.yaml"));
    assert!(csv.expect("a CSV").contains("displayName: By hand\n"));
}

#[test]
fn a_package_file_in_a_subdirectory_names_what_is_above_it() {
    let cargo = "[package]\nname = 'echo_op'\nversion = '1.2.3'\ndescription = 'Says it again.'\n";
    let base = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: echo.v0.0.0}\nspec: {displayName: By hand, description: Long.}\n";
    let files = [
        ("Cargo.toml", cargo),
        ("csv/base.yaml", base),
        ("deploy/crd.yaml", CRD),
        ("deploy/echo.yaml", DEPLOYMENT),
        ("samples/echo.yaml", SAMPLE),
    ];
    for arguments in [&["--from-csv", "csv/base.yaml"][..], &[]] {
        let (_keep, at) = project("echo", &files);
        let arguments = [&["bundle", "init", "--package-file", "olm/a/package.yaml"], arguments].concat();
        let output = olmkit(&at, &arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let next = said.lines().last().and_then(|line| line.split('`').nth(1)).expect("the next command");
        assert_eq!(next, "olmkit bundle generate --package-file olm/a/package.yaml");
        let output = olmkit(&at, &next.split(' ').skip(1).collect::<Vec<_>>());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let csv =
            fs::read_to_string(at.join("bundle/manifests/echo.clusterserviceversion.yaml")).expect("a CSV");
        for part in ["name: echo.v1.2.3\n", "displayName: By hand\n", "\"name\": \"hello\""] {
            assert!(csv.contains(part), "{part}: {csv}");
        }
    }
}

#[test]
fn the_next_command_proposes_the_version_of_the_csv() {
    for (version, proposed) in [("1.4.2", "1.4.2"), ("0.0.0", "0.1.0"), ("''", "0.1.0")] {
        let csv = format!(
            "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {{name: echo.v1.4.2}}\nspec: {{version: {version}}}\n"
        );
        let (_keep, at) = project("echo", &[("csv.yaml", &csv), ("deploy/all.yaml", DEPLOYMENT)]);
        let said = olmkit(&at, &["bundle", "init", "--from-csv", "csv.yaml"]);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.contains(&format!(" --version {proposed}`")), "{version}: {said}");
    }
}

#[test]
fn a_package_file_that_is_a_broken_link_is_named() {
    let (_keep, at) = project("echo", &[("all.yaml", DEPLOYMENT)]);
    std::os::unix::fs::symlink("nowhere", at.join("olmkit.yaml")).unwrap();
    let output = olmkit(&at, &["bundle", "init"]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = "error: `./olmkit.yaml` is a symbolic link to `nowhere`, which does not exist\n  help: remove the link";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let (_keep, at) = project("echo", &[("x", "")]);
    let output = olmkit(&at, &["bundle", "init", "nowhere"]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.starts_with("error: there is no directory `nowhere`\n"), "{said}");
}

#[test]
fn a_directory_that_is_named_by_dots_has_a_name() {
    let (_keep, at) = project("echo", &[("all.yaml", DEPLOYMENT), ("sub/x", "")]);
    let output = olmkit(&at.join("sub"), &["bundle", "init", ".."]);
    assert!(output.status.success());
    let text = fs::read_to_string(at.join("olmkit.yaml")).expect("a package file");
    assert!(text.contains("\npackage: echo\n"), "{text}");
}

#[test]
fn a_chart_of_crds_goes_with_the_chart_of_the_operator() {
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}}\n";
    let files = [
        ("charts/a-crds/Chart.yaml", "name: a-crds\nversion: 0.1.0\n"),
        ("charts/a-crds/templates/echo.yaml", CRD),
        ("charts/op/Chart.yaml", "name: op\nversion: 0.1.0\n"),
        ("charts/op/charts/part/Chart.yaml", "name: part\nversion: 0.1.0\n"),
        ("charts/op/templates/op.yaml", deployment),
        ("examples/Chart.yaml", "name: example\nversion: 0.1.0\n"),
        ("examples/templates/all.yaml", deployment),
    ];
    let (_keep, at) = project("echo", &files);
    let said = olmkit(&at, &["bundle", "init"]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(listed(&at, "helm"), ["charts/op", "charts/a-crds"], "{said}");
    assert!(!said.contains("not used"), "{said}");
    let text = fs::read_to_string(at.join("olmkit.yaml")).expect("a package file");
    assert!(text.contains("\npackage: op\n"), "{text}");
}

/// Where another tool's bundle is, `bundle generate` would refuse to write.
#[test]
fn the_next_command_leaves_a_bundle_of_others_alone() {
    let annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: echo}\n";
    let files = [
        ("deploy/crd.yaml", CRD),
        ("deploy/echo.yaml", DEPLOYMENT),
        ("bundle/manifests/echo.clusterserviceversion.yaml", "kind: ClusterServiceVersion\n"),
        ("bundle/metadata/annotations.yaml", annotations),
    ];
    let (_keep, at) = project("echo", &files);
    let output = olmkit(&at, &["bundle", "init"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("also found, not used: bundle (a bundle by another tool)\n"), "{said}");
    let next = said.lines().last().and_then(|line| line.split('`').nth(1)).expect("the next command");
    assert!(next.ends_with(" --output-dir bundle-olmkit"), "{next}");
    let output = olmkit(&at, &next.split(' ').skip(1).collect::<Vec<_>>());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_next_command_leaves_the_bundle_alone_of_which_the_package_is_taken() {
    let annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: other, operators.operatorframework.io.bundle.manifests.v1: manifests/}\n";
    let files = [
        ("deploy/crd.yaml", CRD),
        ("deploy/deployment.yaml", DEPLOYMENT),
        ("bundle/metadata/annotations.yaml", annotations),
        ("bundle/manifests/other.yaml", CRD),
    ];
    let (_directory, at) = project("echo", &files);
    let output = olmkit(&at, &["bundle", "init"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("bundle (a bundle by another tool)"), "{said}");
    let text = fs::read_to_string(at.join("olmkit.yaml")).expect("a package file");
    assert!(text.contains("\npackage: other\n"), "{text}");
    let next = said.lines().last().and_then(|line| line.split('`').nth(1)).expect("the next command");
    assert!(next.ends_with(" --output-dir bundle-olmkit"), "{next}");
    let output = olmkit(&at, &next.split(' ').skip(1).collect::<Vec<_>>());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_to_string(at.join("bundle/manifests/other.yaml")).expect("it is there"), CRD);
}

#[test]
fn samples_are_those_that_the_project_keeps_as_such() {
    let sample = |name: &str| SAMPLE.replace("hello", name);
    let (a, b, c) = (sample("a"), sample("b"), sample("c"));
    let mut files = vec![
        ("deploy/crd.yaml", CRD),
        ("deploy/echo.yaml", DEPLOYMENT),
        ("docs/blog/echo.yaml", a.as_str()),
        ("site/static/echo.yaml", a.as_str()),
        ("examples/echo.yaml", b.as_str()),
    ];
    let (_keep, at) = project("echo", &files);
    let (said, _) = init_and_generate(&at);
    assert_eq!(listed(&at, "samples"), ["examples"]);
    assert!(said.contains("also found, not used: samples: [docs/blog, site/static]\n"), "{said}");
    files.push(("config/samples/echo.yaml", c.as_str()));
    let (_keep, at) = project("echo", &files);
    let (said, _) = init_and_generate(&at);
    assert_eq!(listed(&at, "samples"), ["config/samples"]);
    assert!(said.contains("also found, not used: samples: [docs/blog, examples, site/static]\n"), "{said}");
}

#[test]
fn snippets_of_a_handbook_are_no_samples() {
    for (count, taken) in [(10, 10), (11, 0)] {
        let paths: Vec<_> = (0..count).map(|at| format!("docs/{at}/echo.yaml")).collect();
        let mut files: Vec<_> = paths.iter().map(|path| (path.as_str(), SAMPLE)).collect();
        files.extend([("deploy/crd.yaml", CRD), ("deploy/echo.yaml", DEPLOYMENT)]);
        let (_keep, at) = project("echo", &files);
        let (said, _) = init_and_generate(&at);
        assert_eq!(listed(&at, "samples").len(), taken, "{said}");
        assert_eq!(said.contains("not used: samples: [docs/0, docs/1, docs/10, …]"), taken == 0, "{said}");
    }
}
