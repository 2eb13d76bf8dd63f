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

/// What a command says in the end, and how it ends.
#[track_caller]
fn ends(mut command: Command, code: i32) -> String {
    let output = command.output().expect("olmkit starts");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

fn write(at: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = at.join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    fs::write(path, text).expect("a file");
}

const BASE: &str = "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: echo-operator.v0.0.0, namespace: placeholder}
spec:
  displayName: Echo of the base
  installModes: [{type: OwnNamespace, supported: true}, {type: AllNamespaces, supported: false}]
  icon: [{base64data: PHN2Zy8+, mediatype: image/svg+xml}]
";

/// As operator-sdk does: `bases` in the kustomization, or in `config/manifests` beside `config/default`.
#[test]
fn a_base_beside_the_kustomization_is_used() {
    for (directory, base) in
        [("config/default", "config/manifests/bases"), ("config/manifests", "config/manifests/bases")]
    {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = dir.path();
        stand_in(at, "kubectl");
        write(at, &format!("{directory}/kustomization.yaml"), "");
        write(at, &format!("{base}/echo-operator.clusterserviceversion.yaml"), BASE);
        let mut command = generate(at, &["--kustomize", directory]);
        command.env("PATH", at.join("bin"));
        let said = ends(command, 0);
        assert!(said.contains(&format!("base: {base}/echo-operator.clusterserviceversion.yaml\n")), "{said}");
        let csv = csv(&at.join("bundle"));
        assert!(csv.contains("displayName: Echo of the base\n") && csv.contains("PHN2Zy8+"), "{csv}");
        // Two of them, and none is the package's.
        write(at, &format!("{base}/a.clusterserviceversion.yaml"), BASE);
        write(at, &format!("{base}/echo-operator.clusterserviceversion.yaml"), "");
        fs::rename(
            at.join(base).join("echo-operator.clusterserviceversion.yaml"),
            at.join(base).join("b.clusterserviceversion.yaml"),
        )
        .expect("a file");
        let mut command = generate(at, &["--kustomize", directory]);
        command.env("PATH", at.join("bin"));
        let said = ends(command, 2);
        assert!(said.contains("contains several bases") && said.contains("--base"), "{said}");
    }
}

#[test]
fn a_base_below_a_directory_of_manifests_is_used_whatever_its_name() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = dir.path();
    write(at, "config/all.yaml", stream());
    write(
        at,
        "config/manifests/bases/other.clusterserviceversion.yaml",
        BASE.replace("echo-operator.v", "other.v"),
    );
    let said = ends(generate(at, &["config"]), 0);
    assert!(
        said.contains("base: config/manifests/bases/other") && !said.contains("one ClusterServiceVersion"),
        "{said}"
    );
    assert!(csv(&at.join("bundle")).contains("displayName: Echo of the base\n"));
}

#[test]
fn helm_gets_its_flags_and_the_chart_says_what_the_operator_is() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = dir.path();
    stand_in(at, "helm");
    let chart = "name: echo-chart\nversion: 1.0.0\nappVersion: v2.3.4\ndescription: Says it again.\nkeywords: [echo]\n\
                 home: https://example.com\nsources: [https://example.com/git]\nkubeVersion: '>=1.29.0-0'\nicon: file://icon.svg\n\
                 maintainers: [{name: Somebody, email: somebody@example.com}, {name: Nobody}]\n";
    write(at, "chart/Chart.yaml", chart);
    write(at, "chart/icon.svg", "<svg/>");
    write(at, "olmkit.yaml", "helm: [chart]\nhelmSet: [a=1]\nhelmNamespace: echo-system\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.args([
        "bundle",
        "generate",
        "--helm-set",
        "b=2",
        "--helm-release",
        "mine",
        "--helm-kube-version",
        "1.33",
    ]);
    command.current_dir(at).env("PATH", at.join("bin")).stdin(Stdio::null());
    succeed(command);
    let called = fs::read_to_string(at.join("helm.args")).expect("it was called");
    assert_eq!(
        called,
        "# template mine chart --include-crds --set a=1 --set b=2 --namespace echo-system --kube-version 1.33\n"
    );
    let csv =
        fs::read_to_string(at.join("bundle/manifests/echo-chart.clusterserviceversion.yaml")).expect("a CSV");
    for line in [
        "name: echo-chart.v2.3.4",
        "description: Says it again.",
        "minKubeVersion: \"1.29.0\"",
        "email: somebody@example.com",
        "repository: https://example.com/git",
        "mediatype: image/svg+xml",
        "url: https://example.com",
    ] {
        assert!(csv.contains(&format!("{line}\n")), "{line}:\n{csv}");
    }
    assert!(!csv.contains("Nobody"));
    let refusal = "#!/bin/sh\necho 'Error: chart requires kubeVersion: >=1.29.0-0 which is incompatible with Kubernetes v1.20.0' >&2\nexit 1\n";
    write(at, "bin/helm", refusal);
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.args(["bundle", "generate"]).current_dir(at).env("PATH", at.join("bin")).stdin(Stdio::null());
    let said = ends(command, 3);
    assert!(
        said.contains("with Kubernetes v1.20.0\n") && said.contains("`--helm-kube-version 1.33`"),
        "{said}"
    );
    write(at, "empty.yaml", "");
    let command = generate(at, &["--package-file", "empty.yaml", "--helm-set", "a=b", "all.yaml"]);
    assert!(ends(command, 2).contains("--helm-set is given, and no chart"));
}

#[test]
fn descriptors_are_all_or_those_that_somebody_wrote_or_none() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = dir.path();
    write(at, "all.yaml", stream());
    write(at, "olmkit.yaml", "descriptors: [{kind: Echo, spec: [{path: mine, displayName: Mine}]}]\n");
    let count = |which: &str| {
        succeed(generate(at, &["all.yaml", "--descriptors", which]));
        let csv = csv(&at.join("bundle"));
        (csv.matches("path: ").count(), csv.contains("path: mine\n"), csv.contains("Descriptors:"))
    };
    let (all, mine, _) = count("all");
    assert!(all > 1 && mine);
    assert_eq!(count("annotated"), (2, true, true), "one for each version");
    assert_eq!(count("none"), (0, false, false));
}

/// Unknown keys, values of a wrong type, an icon that is not there and a value that does not fit, in one run.
#[test]
fn the_package_file_is_wrong_in_one_run() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = dir.path();
    write(at, "all.yaml", stream());
    let wrong =
        "chanel: stable\nskips: x\nicon: nowhere.png\ndescriptionFile: nowhere.md\ncapabilities: Basic\n";
    write(at, "olmkit.yaml", wrong);
    let said = ends(generate(at, &["all.yaml"]), 1);
    for expected in [
        "`chanel` is not a key here",
        "`skips`: expected a list, found a string",
        "cannot read `nowhere.png`",
        "cannot read `nowhere.md`",
        "`Basic` is not a capability level",
        "nothing was written because of 5 errors",
    ] {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
    write(at, "olmkit.yaml", "icon: all.yaml\nfoo: 1\n");
    let said = ends(generate(at, &["all.yaml"]), 1);
    assert!(said.contains("the icon is not a PNG") && said.contains("`foo` is not a key"), "{said}");
    // A value that cannot be read is not missing.
    write(at, "olmkit.yaml", "package: [x]\nversion: 0.1.0\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.args(["bundle", "generate", "all.yaml"]).current_dir(at).stdin(Stdio::null());
    let said = ends(command, 1);
    assert!(said.contains("expected a string") && !said.contains("missing"), "{said}");
    assert!(!said.lines().any(|line| line.trim() == "|" && line.starts_with(" |")), "{said}");
}

#[test]
fn a_finding_without_a_place_has_no_bar() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    write(dir.path(), "crd.yaml", fs::read_to_string(manifests().join("crd.yaml")).expect("a CRD"));
    let said = ends(generate(dir.path(), &["crd.yaml"]), 1);
    assert!(said.contains("there would be nothing to install\n = help: "), "{said}");
}

#[test]
fn a_line_that_is_cut_is_shown_below_its_file() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (before, after) = ("A".repeat(150), "B".repeat(150));
    let image =
        format!("{{name: manager, env: [{{name: {before}}}], image: 'controller:latest', args: [{after}]}}");
    let deployment = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a}}\nspec:\n  selector: {{matchLabels: {{a: b}}}}\n  \
         template:\n    metadata: {{labels: {{a: b}}}}\n    spec:\n      containers:\n      - {image}\n"
    );
    write(dir.path(), "a.yaml", deployment);
    let said = ends(generate(dir.path(), &["a.yaml"]), 0);
    assert!(said.contains("--> a.yaml:10:") && said.contains("\n10 | …") && !said.contains(":::"), "{said}");
}

fn utf16(text: &str, mark: &[u8], bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    mark.iter().copied().chain(text.encode_utf16().flat_map(bytes)).collect()
}

#[test]
fn utf16_is_named_and_among_samples_left_out() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = dir.path();
    for (name, mark, bytes) in [
        ("le.yaml", [].as_slice(), u16::to_le_bytes as fn(u16) -> [u8; 2]),
        ("be.yaml", &[0xfe, 0xff], u16::to_be_bytes),
        ("marked.yaml", &[0xff, 0xfe], u16::to_le_bytes),
    ] {
        write(at, &format!("samples/{name}"), utf16(&stream(), mark, bytes));
        let said = ends(generate(at, &[&format!("samples/{name}")]), 3);
        assert!(said.contains("is in UTF-16, not in UTF-8") && said.contains("iconv"), "{said}");
    }
    write(at, "samples/latin1.yaml", b"a: caf\xe9\n");
    write(at, "all.yaml", stream());
    let said = ends(generate(at, &["all.yaml", "--samples", "samples"]), 0);
    assert!(said.contains("4 files among the samples hold more than custom resources"), "{said}");
    assert_eq!(said.matches("samples/").count(), 4, "one line of three names, and its place: {said}");
}

#[test]
fn a_channel_or_a_catalog_that_is_not_there_is_an_error() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = dir.path();
    write(at, "all.yaml", stream());
    let with = |more: &[&str]| generate(at, &[&["all.yaml", "--channels", "stable"], more].concat());
    assert!(ends(with(&["--catalog", "catalog"]), 2).contains("there is no catalog `catalog`"));
    fs::create_dir(at.join("catalog")).expect("a directory");
    let said = ends(with(&["--catalog", "catalog"]), 2);
    assert!(
        said.contains("`catalog` contains no files of a catalog") && said.contains("--new-channel"),
        "{said}"
    );
    succeed(with(&["--catalog", "catalog", "--new-channel"]));
    let add = |bundle: &str| {
        let mut add = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        add.args(["catalog", "add", "catalog", bundle, "--embed"]).current_dir(at);
        ends(add, 0)
    };
    assert!(add("bundle").ends_with("next: run `olmkit catalog build catalog --to HOST/NAME:TAG`\n"));
    assert_eq!(add("bundle"), "echo-operator in stable: 0.1.0 already exists, nothing changed\n");
    let said = ends(with(&["--catalog", "catalogs"]), 2);
    assert!(said.contains("did you mean `catalog`?"), "{said}");
    let said = ends(with(&["--catalog", "catalog", "--channel", "stabel"]), 2);
    assert!(said.contains("has no channel `stabel`") && said.contains("did you mean `stable`?"), "{said}");
    let said = ends(with(&["--catalog", "catalog", "--channel", "nightly"]), 2);
    assert!(said.contains("its channels are `stable`"), "{said}");
    let next = |more: &[&str]| {
        let two = ["--version", "0.2.0", "--output-dir", "two", "--catalog", "catalog"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        command.args([
            "bundle",
            "generate",
            "all.yaml",
            "--package",
            "echo-operator",
            "--channels",
            "stable",
        ]);
        command.args(two).args(more).current_dir(at).stdin(Stdio::null());
        command
    };
    succeed(next(&["--channel", "nightly", "--new-channel"]));
    assert!(!csv(&at.join("two")).contains("replaces:"));
    succeed(next(&[]));
    assert!(csv(&at.join("two")).contains("replaces: echo-operator.v0.1.0\n"));
    add("two");
    // What is released is checked, and gets the place that it has.
    succeed(next(&["--check"]));
    succeed(with(&["--catalog", "catalog", "--check"]));
}

#[test]
fn init_takes_nothing_among_samples_for_manifests() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = &dir.path().join("echo-operator");
    write(at, "all.yaml", stream());
    write(
        at,
        "samples/echo.yaml",
        "apiVersion: example.com/v1\nkind: Echo\nmetadata: {name: a}\nspec: {text: hi}\n",
    );
    write(
        at,
        "samples/more/echo.yaml",
        "apiVersion: example.com/v1\nkind: Echo\nmetadata: {name: b}\nspec: {text: hi}\n",
    );
    write(at, "samples/dashboards/board.json", "{}");
    write(
        at,
        "samples/issuer/issuer.yaml",
        "apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: a}\n",
    );
    init(at);
    let text = fs::read_to_string(at.join("olmkit.yaml")).expect("a package file");
    assert!(
        text.contains("\nmanifests:\n- all.yaml\n\n") && text.contains("\nsamples:\n- samples\n\n"),
        "{text}"
    );
    let mut generate = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    generate.args(["bundle", "generate", "--version", "0.1.0"]).current_dir(at).stdin(Stdio::null());
    succeed(generate);
    assert!(csv(&at.join("bundle")).contains("\"name\": \"b\""));
}

#[test]
fn init_finds_the_operator_of_a_workspace() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = dir.path();
    write(
        at,
        "Cargo.toml",
        "[workspace]\nmembers = ['crates/*', 'tool']\n[workspace.package]\nversion = '0.7.0'\n",
    );
    write(
        at,
        "crates/echo/Cargo.toml",
        "[package]\nname = 'echo-operator'\nversion.workspace = true\n[dependencies]\nkube = '1'\n",
    );
    write(at, "crates/echo/src/main.rs", "");
    write(at, "crates/types/Cargo.toml", "[package]\nname = 'types'\n[dependencies]\nkube = '1'\n");
    write(at, "tool/Cargo.toml", "[package]\nname = 'tool'\n");
    write(at, "tool/src/main.rs", "");
    write(at, "deploy/all.yaml", stream());
    assert!(init(at).ends_with("run `olmkit bundle generate`\n"));
    let text = fs::read_to_string(at.join("olmkit.yaml")).expect("a package file");
    assert!(text.contains("\npackage: echo-operator\n") && text.contains("\nversion: \"0.7.0\"\n"), "{text}");
    let mut generate = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    generate.args(["bundle", "generate"]).current_dir(at).stdin(Stdio::null());
    succeed(generate);
}

/// What `operator install --simulate` says of a bundle after a change to one of its files.
fn simulated(change: impl FnOnce(&Path)) -> String {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = dir.path();
    write(at, "all.yaml", stream());
    succeed(generate(at, &["all.yaml"]));
    change(&at.join("bundle/manifests"));
    let mut install = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    install.args(["operator", "install", "-n", "echo", "--simulate", "cluster.json", "--bundle", "bundle"]);
    install.current_dir(at);
    ends(install, 1)
}

fn replace(path: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(path).expect("a file");
    assert!(text.contains(old), "{old}:\n{text}");
    fs::write(path, text.replacen(old, new, 1)).expect("a file");
}

#[test]
fn the_simulator_waits_for_a_version_that_is_not_served_as_olm_does() {
    let said = simulated(|manifests| {
        replace(&manifests.join("example.com_echoes.yaml"), "served: true", "served: false");
    });
    let expected = "error: `echo-operator.v0.1.0` owns a version of the CRD `echoes.example.com` that the CRD does not serve: CRD version not served [owned-crd-missing]\n";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn the_simulator_names_the_secret_that_a_deployment_waits_for() {
    let said = simulated(|manifests| {
        let variable =
            "- name: TOKEN\n                  valueFrom: {secretKeyRef: {name: api-token, key: token}}\n";
        let here = "- name: RELATED_IMAGE_ECHO\n";
        let csv = manifests.join("echo-operator.clusterserviceversion.yaml");
        replace(&csv, here, &format!("{variable}                {here}"));
    });
    let expected = "its deployment `echo-operator` is not available after five minutes: Secret `api-token` does not exist [not-ready]\n";
    assert!(said.contains(expected), "{said}");
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
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("next: run `olmkit bundle validate ") && said.lines().count() == 1, "{said}");
    let mut validate = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    validate.args(["bundle", "validate", "--suite", "all", "--output", "json"]).arg(directory.path());
    let output = succeed(validate);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = answer["findings"].as_array().expect("a list").iter();
    let codes: Vec<_> = findings.map(|finding| &finding["code"]).collect();
    assert!(codes.iter().all(|code| allowed.contains(code)), "{codes:?}");
    assert!(allowed.iter().all(|code| codes.contains(code)), "one is allowed and not there: {allowed:?}");
}

/// A program of that name with this script.
fn script(at: &Path, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    write(at, &format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(at.join("bin").join(name), fs::Permissions::from_mode(0o755)).expect("a script");
}

#[test]
fn programs_that_do_not_end_are_ended() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    write(at, "a b/kustomization.yaml", "resources: []\n");
    write(at, "chart/Chart.yaml", "name: echo\nversion: 0.1.0\n");
    // The program that it starts keeps the pipe open.
    script(at, "kustomize", "/bin/sleep 600 &\nwait");
    script(at, "helm", "exec /bin/sleep 600");
    for (args, said) in [
        (
            ["--kustomize", "a b"],
            "cannot build the kustomization `a b`: `kustomize build 'a b'` did not end within 1 s",
        ),
        (
            ["--helm", "chart"],
            "cannot read the chart `chart`: `helm template echo-operator chart --include-crds` did not end within 1 s",
        ),
    ] {
        let mut command = generate(at, &[&args[..], &["--timeout", "1s"]].concat());
        command.env("PATH", at.join("bin"));
        assert_eq!(ends(command, 4), format!("error: {said}\n  help: give it more time with `--timeout`\n"));
    }
}

#[test]
fn values_that_are_not_yaml_are_placed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    write(at, "chart/Chart.yaml", "name: echo\nversion: 0.1.0\n");
    write(at, "values.yaml", "image:\n  tag: [a\n");
    script(at, "helm", "echo 'Error: failed to parse values' >&2; exit 1");
    let mut command = generate(at, &["--helm", "chart", "--helm-values", "values.yaml"]);
    command.env("PATH", at.join("bin"));
    let said = ends(command, 1);
    assert!(
        said.contains("error: the values are not YAML: ") && said.contains("--> values.yaml:2:"),
        "{said}"
    );
}

#[test]
fn a_base_that_is_not_yaml_is_placed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    write(at, "all.yaml", stream());
    write(at, "base.yaml", "kind: ClusterServiceVersion\nspec: [\n");
    let said = ends(generate(at, &["all.yaml", "--base", "base.yaml"]), 1);
    assert!(said.contains("error[generate-yaml-syntax]") && said.contains("--> base.yaml:2:"), "{said}");
    let mut init = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    init.args(["bundle", "init", "--from-csv", "base.yaml"]).current_dir(at).stdin(Stdio::null());
    let said = ends(init, 1);
    assert!(said.contains("--> base.yaml:2:"), "{said}");
}

#[test]
fn a_sample_that_is_not_yaml_is_placed_and_left_out() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    write(at, "all.yaml", stream());
    write(at, "samples/a.yaml", "spec: [\n");
    write(at, "samples/b.yaml", "spec: {\n");
    let said = ends(generate(at, &["all.yaml", "--samples", "samples"]), 0);
    assert!(
        said.contains("warning[generate-yaml-syntax]: a sample that is not YAML is left out: "),
        "{said}"
    );
    assert!(said.contains("(and another among the samples)\n --> samples/a.yaml:1:"), "{said}");
}

#[test]
fn keys_that_stand_twice_are_said() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    let twice = stream().replacen("kind: Deployment\n", "kind: Deployment\nkind: Deployment\n", 1);
    write(at, "all.yaml", &twice);
    write(at, "base.yaml", BASE.replace("spec:\n", "spec:\n  displayName: First\n"));
    let said = ends(generate(at, &["all.yaml", "--base", "base.yaml"]), 0);
    let warning = "warning[generate-duplicate-key]: duplicate key `";
    assert!(said.contains(&format!("{warning}kind`: the last value is used\n  --> all.yaml:")), "{said}");
    assert!(
        said.contains(&format!("{warning}displayName`: the last value is used\n --> base.yaml:6:3")),
        "{said}"
    );
    assert!(csv(&at.join("bundle")).contains("displayName: Echo of the base"));
    // In a package file either may be meant.
    write(at, "olmkit.yaml", "manifests: [all.yaml]\nmaturity: alpha\nmaturity: stable\n");
    let said = ends(generate(at, &[]), 1);
    assert!(said.contains("duplicate key `maturity`\n --> olmkit.yaml:3:1"), "{said}");
}

#[test]
fn a_chart_is_no_manifests() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    write(at, "my chart/Chart.yaml", "name: echo\nversion: 0.1.0\n");
    write(at, "my chart/templates/echo.yaml", "kind: Deployment\nmetadata: {name: {{ .Release.Name }}}\n");
    let said = ends(generate(at, &["my chart"]), 2);
    assert!(said.contains("error: `my chart` is a Helm chart, not rendered manifests\n"), "{said}");
    assert!(said.contains("help: run `olmkit bundle generate --helm 'my chart'`"), "{said}");
    // Without templates its files are manifests as any others.
    write(at, "my chart/templates/echo.yaml", fs::read(manifests().join("operator.yaml")).unwrap());
    let said = ends(generate(at, &["my chart"]), 1);
    assert!(!said.contains("Helm chart"), "{said}");
}

#[test]
fn a_bundle_is_no_manifests() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    write(at, "all.yaml", stream());
    succeed(generate(at, &["all.yaml", "--output-dir", "old one"]));
    write(at, "old one/release-config.yaml", "catalog_templates: []\n");
    for input in ["old one", "old one/manifests", "./old one/"] {
        let bundle = input.trim_end_matches("/manifests");
        let base = Path::new(bundle).join("manifests/echo-operator.clusterserviceversion.yaml");
        let said = ends(generate(at, &[input, "--output-dir", "new"]), 2);
        assert_eq!(
            said,
            format!(
                "error: `{input}` is a bundle already, not the manifests of an operator\n  \
                 help: run `olmkit bundle validate '{bundle}'` to check it; to generate the next version, give the operator's own \
                 manifests, and `--base '{}'` to keep what its ClusterServiceVersion says\n",
                base.display()
            )
        );
    }
}

/// Also where the output directory of an earlier run was another one.
#[test]
fn a_bundle_beside_the_manifests_is_not_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    write(at, "deploy/all.yaml", stream());
    succeed(generate(at, &["deploy", "--output-dir", "deploy"]));
    for args in [["deploy", "--output-dir", "bundle"], [".", "--output-dir", "other"]] {
        succeed(generate(at, &args));
        assert_eq!(csv(&at.join(args[2])), csv(&at.join("deploy")));
    }
    assert_eq!(fs::read_to_string(at.join("deploy/all.yaml")).expect("a file"), stream());
}

#[test]
fn the_next_command_works_for_a_directory_with_a_space() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    write(at, "my operator/all.yaml", stream());
    let init = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        command.args(args).current_dir(at).stdin(Stdio::null());
        String::from_utf8_lossy(&succeed(command).stderr).into_owned()
    };
    let said = init(&["bundle", "init", "my operator"]);
    let bin = Path::new(env!("CARGO_BIN_EXE_olmkit")).parent().expect("a directory");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let next = |said: &str| {
        let next = said.lines().last().and_then(|line| line.split('`').nth(1)).expect("a command").to_owned();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &next]).current_dir(at).env("PATH", &path).stdin(Stdio::null());
        String::from_utf8_lossy(&succeed(shell).stderr).into_owned()
    };
    let said = next(&said);
    assert!(at.join("bundle/manifests").is_dir(), "{said}");
    next(&said);
    let said = init(&[
        "bundle",
        "generate",
        "my operator/all.yaml",
        "--package",
        "echo-operator",
        "--version",
        "0.1.0",
        "--output-dir",
        "a bundle",
    ]);
    assert!(said.ends_with("next: run `olmkit bundle validate 'a bundle'`\n"), "{said}");
    next(&said);
}

/// What is wrong with the bundle is said of the file or the flag that it comes from: the bundle is not there.
#[test]
fn what_is_wrong_with_the_bundle_is_said_of_the_input() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    write(at, "all.yaml", stream());
    let flag = ends(generate(at, &["all.yaml", "--set", "spec.minKubeVersion=1.30"]), 1);
    assert!(
        flag.contains("error[csv-min-kube-version-invalid]: `--set`: `1.30` is not a semantic version"),
        "{flag}"
    );
    write(at, "olmkit.yaml", "minKubeVersion: '1.30'\nmanifests: [all.yaml]\n");
    let file = ends(generate(at, &[]), 1);
    assert!(file.contains("olmkit.yaml:1:"), "{file}");
    let unnamed = stream().replacen("spec:\n  group:", "spec:\n  scope: Nowhere\n  group:", 1).replacen(
        "  scope: Namespaced\n",
        "",
        1,
    );
    write(at, "all.yaml", unnamed);
    write(at, "olmkit.yaml", "manifests: [all.yaml]\n");
    let manifest = ends(generate(at, &[]), 1);
    assert!(manifest.contains("--> all.yaml:"), "{manifest}");
    for said in [&flag, &file, &manifest] {
        assert!(!said.contains("echo-operator.v0.1.0/"), "{said}");
    }
}

#[test]
fn findings_of_generate_have_the_formats_of_findings() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    write(at, "all.yaml", stream());
    for (format, expected) in [
        ("sarif", "\"version\": \"2.1.0\""),
        ("junit", "<testsuite"),
        ("github", "::error"),
        ("json-alpha1", "\"passed\": false"),
    ] {
        let args = ["all.yaml", "--set", "spec.minKubeVersion=1.30", "--output", format];
        let output = generate(at, &args).output().expect("olmkit starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.code() == Some(1) && said.contains(expected), "{format}: {said}");
    }
}

#[test]
fn who_wants_quiet_gets_no_next_command() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    write(at, "all.yaml", stream());
    let said = |args: &[&str]| String::from_utf8(succeed(generate(at, args)).stderr).expect("text");
    assert!(said(&["all.yaml"]).contains("next: "));
    assert!(!said(&["all.yaml", "--quiet"]).contains("next: "));
}

/// A flag that does not fit is not shown as a line of the package file.
#[test]
fn what_a_flag_gives_is_said_of_the_flag() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    write(at, "all.yaml", stream());
    write(
        at,
        "olmkit.yaml",
        "manifests: [all.yaml]\nchannels: [stable]\ndefaultChannel: stable\nrelease: '1'\n",
    );
    for (args, said) in [
        (
            ["--channels", "a,a"],
            "error[package-value-invalid]: `--channels`: the channel `a` is given twice\n = help: ",
        ),
        (
            ["--default-channel", "x"],
            "error[package-value-invalid]: `--default-channel`: the default channel `x` is not among the channels\n = help: the channels are `stable`\n",
        ),
        (["--release", "_"], "error[package-value-invalid]: `--release`: `_` is not a release: "),
    ] {
        let all = ends(generate(at, &args), 1);
        assert!(all.contains(said) && !all.contains("olmkit.yaml:"), "{all}");
    }
}

/// A package file may come with a stranger's checkout: none of its values becomes an option of a program.
#[test]
fn no_value_of_a_package_file_is_an_option_of_a_program() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = dir.path();
    for program in ["helm", "kubectl", "kustomize"] {
        stand_in(at, program);
    }
    write(at, "chart/Chart.yaml", "name: echo\nversion: 1.0.0\n");
    for (text, expected) in [
        ("kustomize: ['--output=written']\n", "cannot build the kustomization `--output=written`"),
        (
            "helm: [chart]\nhelmRelease: --post-renderer=./program\n",
            "`--post-renderer=./program` would be an option of helm; it must not start with `-`",
        ),
        ("helm: [chart]\nhelmNamespace: --debug\n", "`--debug` would be an option of helm"),
        ("helm: [chart]\nhelmKubeVersion: '-x'\n", "`-x` would be an option of helm"),
        ("helm: [chart]\nhelmSet: ['-f']\n", "`-f` would be an option of helm"),
    ] {
        write(at, "olmkit.yaml", format!("package: echo\n{text}"));
        let mut command = generate(at, &[]);
        let output = command.env("PATH", at.join("bin")).output().expect("olmkit starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{text}: {said}");
        assert!(!at.join("written").exists() && !at.join("helm.args").exists(), "{text}");
    }
    // Paths are still paths.
    write(at, "olmkit.yaml", "package: echo\nhelm: ['--debug']\n");
    fs::rename(at.join("chart"), at.join("--debug")).expect("a directory");
    let mut command = generate(at, &[]);
    command.env("PATH", at.join("bin"));
    succeed(command);
    let called = fs::read_to_string(at.join("helm.args")).expect("it was called");
    assert_eq!(called, "# template echo-operator ./--debug --include-crds\n");
}

#[test]
fn remote_bases_are_named_before_they_are_fetched_and_refused_offline() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = dir.path();
    stand_in(at, "kustomize");
    write(at, "config/kustomization.yaml", "resources: ['https://example.com/org/repo?ref=v1']\n");
    let run = |flags: &[&str], code| {
        let mut command = generate(at, &[&["--kustomize", "config"], flags].concat());
        command.env("PATH", at.join("bin"));
        ends(command, code)
    };
    let refused = run(&["--offline"], 1);
    assert!(refused.contains("`https://example.com/org/repo?ref=v1` would be fetched"), "{refused}");
    assert!(refused.contains("named by `config/kustomization.yaml`"), "{refused}");
    assert!(!at.join("kustomize.args").exists(), "kustomize was called");
    let fetched = run(&[], 0);
    assert!(fetched.contains("fetching `https://example.com/org/repo?ref=v1`"), "{fetched}");
    write(at, "config/kustomization.yaml", "resources: [all.yaml]\nimages: [{name: github.com/a/b}]\n");
    run(&["--offline"], 0);
}
