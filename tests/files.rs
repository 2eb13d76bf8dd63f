//! Verbs that write files, in directories that hold more than those: what else is there stays as it is.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn olmkit(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.args(args).env_remove("SOURCE_DATE_EPOCH").current_dir(directory).stdin(Stdio::null());
    command
}

#[track_caller]
fn run(directory: &Path, args: &[&str], code: i32) -> Output {
    let output = olmkit(directory, args).output().expect("olmkit starts");
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", said(&output));
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The arguments that generate the echo operator's bundle.
fn generate<'a>(version: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["bundle", "generate", "--package", "echo-operator", "--version", version], more].concat()
}

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/generate.in/config")
}

/// Puts the operator's manifests into a directory.
fn copy_manifests(to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in ["crd.yaml", "operator.yaml", "webhook.yaml"] {
        fs::copy(manifests().join(file), to.join(file)).unwrap();
    }
}

/// Everything below a directory: what it is, its mode, and its content.
fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else if metadata.is_dir() {
                open.push(path.clone());
                "directory".to_owned()
            } else {
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
            };
            let name = path.strip_prefix(root).unwrap().display().to_string();
            found.insert(name, format!("{:o} {content}", metadata.mode()));
        }
    }
    found
}

/// What is below a directory and was not in `old`; what was has to be there unchanged.
#[track_caller]
fn added(old: &BTreeMap<String, String>, root: &Path) -> Vec<String> {
    let mut new = tree(root);
    for (name, content) in old {
        assert_eq!(new.remove(name).as_ref(), Some(content), "{name}");
    }
    new.into_keys().collect()
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

/// A source tree with everything that a bundle does not have.
fn checkout(root: &Path) {
    for directory in [".git/refs", ".github/workflows", "empty", "src"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    for (file, text) in [
        (".git/HEAD", "ref"),
        (".github/workflows/ci.yaml", "on: push"),
        (".gitignore", "target"),
        ("run.sh", "#!"),
    ] {
        fs::write(root.join(file), text).unwrap();
    }
    fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("run.sh", root.join("link")).unwrap();
}

#[test]
fn a_git_checkout_as_the_output_directory_keeps_everything() {
    let (root, input) = (tempfile::tempdir().unwrap(), manifests().display().to_string());
    let at = root.path();
    checkout(at);
    // A bundle of an older version, which carries our mark.
    run(at, &generate("0.1.0", &[&input, "--output-dir", "bundles/0.1.0"]), 0);
    let (before, directory) = (tree(at), inode(at));
    let refused = run(at, &generate("0.2.0", &[&input, "--output-dir", "."]), 2);
    assert!(said(&refused).contains("`.` is not a bundle: it contains `.git`"), "{}", said(&refused));
    assert!(said(&refused).contains("--force"));
    assert_eq!(added(&before, at), [""; 0]);
    run(at, &generate("0.2.0", &[&input, "--output-dir", at.to_str().unwrap(), "--force"]), 0);
    assert_eq!(
        added(&before, at),
        [
            "manifests",
            "manifests/echo-operator.clusterserviceversion.yaml",
            "manifests/example.com_echoes.yaml",
            "metadata",
            "metadata/annotations.yaml"
        ]
    );
    assert_eq!(inode(at), directory, "the directory is the same");
    // From now on it is a bundle.
    let (before, csv) = (tree(at), at.join("manifests/echo-operator.clusterserviceversion.yaml"));
    let written = inode(&csv);
    run(at, &generate("0.2.0", &[&input, "--output-dir", "."]), 0);
    assert_eq!(added(&before, at), [""; 0]);
    assert_eq!(inode(&csv), written, "what is up to date is not written");
}

#[test]
fn stale_files_go_in_place_and_the_modes_of_others_stay() {
    let (root, input) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (at, config) = (root.path(), input.path().join("all files"));
    copy_manifests(&config);
    let more = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n";
    fs::write(config.join("more.yaml"), more).unwrap();
    fs::create_dir(at.join("real")).unwrap();
    symlink("real", at.join("the bundle")).unwrap();
    let args = generate("0.1.0", &[config.to_str().unwrap(), "--output-dir", "the bundle"]);
    run(at, &args, 0);
    let csv = at.join("real/manifests/echo-operator.clusterserviceversion.yaml");
    fs::set_permissions(&csv, fs::Permissions::from_mode(0o600)).unwrap();
    let changed = fs::read_to_string(&csv).unwrap().replace("0.1.0", "0.0.9");
    fs::write(&csv, changed).unwrap();
    fs::write(at.join("real/manifests/mine.yaml"), "kind: Mine\n").unwrap();
    fs::remove_file(config.join("more.yaml")).unwrap();
    let output = run(at, &args, 0);
    assert!(said(&output).contains("kept manifests/mine.yaml: olmkit did not write it"), "{}", said(&output));
    let names: Vec<_> = tree(at).into_keys().collect();
    assert_eq!(
        names,
        [
            "real",
            "real/manifests",
            "real/manifests/echo-operator.clusterserviceversion.yaml",
            "real/manifests/example.com_echoes.yaml",
            "real/manifests/mine.yaml",
            "real/metadata",
            "real/metadata/annotations.yaml",
            "the bundle"
        ]
    );
    assert_eq!(fs::metadata(&csv).unwrap().mode() & 0o777, 0o600);
    assert!(fs::symlink_metadata(at.join("the bundle")).unwrap().is_symlink());
}

#[test]
fn a_file_that_olmkit_did_not_write_is_replaced_by_force_only() {
    let (root, input) = (tempfile::tempdir().unwrap(), manifests().display().to_string());
    let at = root.path();
    let csv = "bundle/manifests/echo-operator.clusterserviceversion.yaml";
    let annotations = "bundle/metadata/annotations.yaml";
    for (hand_written, names) in [
        (&[csv][..], format!("`{csv}` was not written by olmkit")),
        (&[annotations], format!("`{annotations}` was not written by olmkit")),
        (&[csv, annotations], format!("`{csv}` and another file were not written by olmkit")),
    ] {
        let _ = fs::remove_dir_all(at.join("bundle"));
        for path in hand_written {
            fs::create_dir_all(at.join(path).parent().unwrap()).unwrap();
            fs::write(at.join(path), "kind: Mine\n").unwrap();
        }
        let before = tree(at);
        let refused = said(&run(at, &generate("0.1.0", &[&input]), 2));
        assert!(refused.contains(&names) && refused.contains("pass --force"), "{refused}");
        let keeps = format!("move `{csv}` elsewhere and pass it with --base");
        assert_eq!(refused.contains(&keeps), hand_written.contains(&csv), "{refused}");
        assert_eq!(tree(at), before);
        run(at, &generate("0.1.0", &[&input, "--force"]), 0);
        run(at, &generate("0.2.0", &[&input]), 0);
        assert!(fs::read_to_string(at.join(csv)).unwrap().contains("name: echo-operator.v0.2.0"));
    }
    // The same content is no loss, whoever wrote it.
    let text = fs::read_to_string(at.join(csv)).unwrap();
    fs::write(at.join(csv), text.split_once('\n').unwrap().1).unwrap();
    run(at, &generate("0.2.0", &[&input]), 0);
    assert_eq!(fs::read_to_string(at.join(csv)).unwrap(), text);
    // What is written for those who know operator-sdk carries the mark too.
    for version in ["0.1.0", "0.2.0"] {
        run(at, &generate(version, &[&input, "--compat", "operator-sdk", "--output-dir", "sdk"]), 0);
    }
}

#[test]
fn manifests_in_the_output_directory_are_not_left_out_in_silence() {
    for (from, to, unread) in
        [("one", "one", "one/manifests/crd.yaml"), ("two", "two/bundle", "two/bundle/crd.yaml")]
    {
        let root = tempfile::tempdir().unwrap();
        let at = root.path();
        copy_manifests(&at.join(from));
        fs::create_dir_all(at.join(unread).parent().unwrap()).unwrap();
        fs::rename(at.join(from).join("crd.yaml"), at.join(unread)).unwrap();
        let before = tree(at);
        let args = generate("0.1.0", &[from, "--output-dir", to]);
        let refused = said(&run(at, &args, 2));
        assert!(refused.contains(&format!("`{unread}` would not be read")), "{refused}");
        assert_eq!(tree(at), before);
        run(at, &[args.as_slice(), &["--force"]].concat(), 0);
        // Now it is a bundle, whose files nobody expects to be read.
        run(at, &args, 0);
        added(&before, at);
    }
}

#[test]
fn what_an_ignore_file_hides_is_not_contradicted() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0", "0.2.0"]);
    let add = |version: &str, code: i32| {
        let bundle = format!("b/{version}");
        let args = ["catalog", "add", "catalog", &bundle, "--channels", "stable"];
        said(&run(at, &[args.as_slice(), &TEMPLATE].concat(), code))
    };
    let (file, ignore) = (at.join("catalog/echo-operator/catalog.yaml"), at.join("catalog/.indexignore"));
    // Nothing is there yet, and what is new would be hidden.
    fs::create_dir(at.join("catalog")).unwrap();
    fs::write(&ignore, "echo-operator/\n").unwrap();
    let refused = add("0.1.0", 1);
    let names = "`catalog/echo-operator/catalog.yaml` would not be part of the catalog: `catalog/.indexignore` hides it";
    assert!(refused.contains(names) && refused.contains("remove the pattern"), "{refused}");
    assert!(!file.exists());
    fs::remove_file(&ignore).unwrap();
    add("0.1.0", 0);
    // The package is there, hidden: in the file that it would be written to, or in another one.
    for name in ["catalog.yaml", "older.yaml"] {
        let hidden = file.with_file_name(name);
        fs::rename(&file, &hidden).unwrap();
        fs::write(&ignore, format!("{name}\n")).unwrap();
        let before = tree(&at.join("catalog"));
        let refused = add("0.2.0", 1);
        assert!(
            refused.contains("the package `echo-operator` is hidden in `catalog` by `.indexignore`"),
            "{refused}"
        );
        assert!(refused.contains(&format!("catalog/echo-operator/{name}:3:7")), "{refused}");
        let input = manifests().display().to_string();
        let edges = generate("0.2.0", &[&input, "--catalog", "catalog", "--channel", "stable"]);
        assert!(said(&run(at, &edges, 1)).contains("is hidden"), "{refused}");
        assert_eq!(tree(&at.join("catalog")), before);
        fs::rename(&hidden, &file).unwrap();
    }
    // A copy that is hidden beside the package is nobody's business.
    fs::write(&ignore, "*.bak\n").unwrap();
    fs::copy(&file, file.with_extension("yaml.bak")).unwrap();
    add("0.2.0", 0);
    run(at, &["catalog", "validate", "catalog"], 0);
}

#[test]
fn a_channel_a_package_or_a_bundle_that_stands_twice_gets_no_version() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0", "0.2.0"]);
    let add = |version: &str, code: i32| {
        let bundle = format!("b/{version}");
        let args = ["catalog", "add", "catalog", &bundle, "--channels", "stable"];
        said(&run(at, &[args.as_slice(), &TEMPLATE].concat(), code))
    };
    add("0.1.0", 0);
    let again = at.join("catalog/echo-operator/z.yaml");
    let channel = "schema: olm.channel\npackage: echo-operator\nname: stable\nentries: [{name: echo-operator.v0.1.0}]\n";
    let package = "schema: olm.package\nname: echo-operator\ndefaultChannel: stable\n";
    for (text, what, version) in [
        (channel, "the channel `stable` of `echo-operator` is defined twice", "0.2.0"),
        (package, "the package `echo-operator` is defined twice", "0.2.0"),
        (
            "schema: olm.bundle\npackage: echo-operator\nname: echo-operator.v0.1.0\nimage: a/b:c\n",
            "the bundle `echo-operator.v0.1.0` is defined twice",
            "0.1.0",
        ),
    ] {
        fs::write(&again, text).unwrap();
        let before = tree(at);
        let refused = add(version, 1);
        assert!(refused.contains(what) && refused.contains("catalog/echo-operator/z.yaml:"), "{refused}");
        assert_eq!(tree(at), before);
    }
    fs::remove_file(&again).unwrap();
    add("0.2.0", 0);
}

#[test]
fn backups_and_notes_are_left_out_of_the_image_and_the_catalog() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0"]);
    let digest = |tag: &str| {
        let output = run(at, &["bundle", "build", "b/0.1.0", "--to", &format!("oci:images:{tag}")], 0);
        let digest = String::from_utf8(output.stdout.clone()).unwrap().rsplit_once(' ').unwrap().1.to_owned();
        (digest, said(&output))
    };
    let before = digest("before").0;
    let manifests = at.join("b/0.1.0/manifests");
    let csv = fs::read_to_string(manifests.join("echo-operator.clusterserviceversion.yaml")).unwrap();
    let leftovers = ["x.yaml.bak", "x.yaml~", "x.orig", "#x#", ".x.swp", "README.md", ".DS_Store", "x.rej"];
    for name in leftovers {
        fs::write(manifests.join(name), &csv).unwrap();
    }
    fs::write(at.join("b/0.1.0/metadata/annotations.yaml.bak"), "annotations: {a: b}\n").unwrap();
    let (after, talk) = digest("after");
    assert_eq!(after, before);
    assert!(talk.contains("`manifests/#x#`") && talk.contains("left out of the image"), "{talk}");
    let talk = said(&run(at, &["catalog", "add", "catalog", "b/0.1.0", "--channels", "stable"], 0));
    assert!(talk.contains("left out of the catalog"), "{talk}");
    let validated = String::from_utf8(run(at, &["bundle", "validate", "b/0.1.0"], 1).stdout).unwrap();
    assert!(validated.contains("remove `manifests/x.yaml.bak`, which looks like a backup"), "{validated}");
    assert!(
        !validated.contains("--> b/0.1.0/manifests/echo-operator.clusterserviceversion.yaml:3"),
        "{validated}"
    );
}

#[test]
fn an_image_of_the_other_kind_is_not_pushed() {
    let root = bundle_and_catalog();
    let at = root.path();
    run(at, &["bundle", "build", "bundle", "--to", "oci:images:bundle"], 0);
    run(at, &["catalog", "build", "catalog", "--data-only", "--to", "oci:images:catalog"], 0);
    // Nobody listens there: what is refused is refused before.
    for (verb, other) in [("bundle", "catalog"), ("catalog", "bundle")] {
        let image = format!("oci:images:{other}");
        let refused = said(&run(at, &[verb, "push", &image, "127.0.0.1:1/a/b:v1"], 1));
        let names = format!("`{image}` is the image of a {other}, not of a {verb}");
        assert!(refused.contains(&names), "{refused}");
        assert!(refused.contains(&format!("`olmkit {other} push {image} HOST/NAME:TAG`")), "{refused}");
        assert!(refused.contains("`olmkit image copy"), "{refused}");
    }
}

#[test]
fn of_thousands_of_manifests_the_number_is_said() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    copy_manifests(&at.join("config"));
    for number in 0..4000 {
        // Nothing in them packs well.
        let noise: String = (0..40)
            .map(|part: u64| format!("{:x}", (number * 40 + part).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect();
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}}}\ndata: {{a: '{noise}'}}\n"
        );
        fs::write(at.join(format!("config/{number}.yaml")), map).unwrap();
    }
    let refused = run(at, &generate("0.1.0", &["config"]), 1);
    let talk = String::from_utf8_lossy(&refused.stdout).into_owned() + &said(&refused);
    assert!(talk.contains("leave some of its 4002 manifests out"), "{talk}");
    fs::create_dir_all(at.join("bundle/manifests")).unwrap();
    for number in 0..10_001 {
        fs::write(at.join(format!("bundle/manifests/{number}.yaml")), "").unwrap();
    }
    let refused = said(&run(at, &["bundle", "validate", "bundle"], 3));
    assert!(refused.contains("more than 10000 files") && refused.contains("far fewer files"), "{refused}");
}

#[test]
fn adding_says_what_is_new_and_what_is_given_twice() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0", "0.2.0"]);
    let add = |catalog: &str, bundles: &[&str], more: &[&str], code: i32| {
        let args = [&["catalog", "add", catalog][..], bundles, &TEMPLATE, more].concat();
        said(&run(at, &args, code))
    };
    let refused = add("catalog", &["b/0.1.0", "b/0.1.0"], &["--channels", "stable"], 1);
    assert!(refused.contains("`echo-operator.v0.1.0` is given twice"), "{refused}");
    let refused = add("catalog.yaml", &["b/0.1.0"], &["--channels", "stable"], 2);
    assert!(
        refused.contains("would become a directory") && refused.contains("`touch catalog.yaml`"),
        "{refused}"
    );
    assert!(!at.join("catalog.yaml").exists());
    let first = add("catalog", &["b/0.1.0"], &["--channels", "stable"], 0);
    assert!(!first.contains("is new"), "{first}");
    let second = add("catalog", &["b/0.2.0"], &["--channels", "stabel"], 0);
    assert!(
        second.contains("the channel `stabel` of `echo-operator` is new; did you mean `stable`?"),
        "{second}"
    );
}

#[test]
fn the_default_channel_that_a_user_set_stays() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    let input = manifests().display().to_string();
    for version in ["0.1.0", "0.2.0"] {
        let bundle = format!("b/{version}");
        let channels = ["--channels", "stable,fast", "--default-channel", "stable", "--output-dir", &bundle];
        run(at, &[generate(version, &[&input]).as_slice(), &channels].concat(), 0);
    }
    let add = |version: &str, more: &[&str]| {
        let bundle = format!("b/{version}");
        said(&run(at, &[&["catalog", "add", "catalog", &bundle][..], &TEMPLATE, more].concat(), 0))
    };
    let default = || {
        let text = fs::read_to_string(at.join("catalog/echo-operator/catalog.yaml")).unwrap();
        text.lines().find_map(|line| line.strip_prefix("defaultChannel: ")).unwrap().to_owned()
    };
    add("0.1.0", &[]);
    assert_eq!(default(), "stable");
    let set = ["catalog", "set-default", "catalog", "--package", "echo-operator", "--channel", "fast"];
    run(at, &set, 0);
    for version in ["0.1.0", "0.2.0"] {
        let talk = add(version, &[]);
        assert!(talk.contains("the default channel is still `fast`; the bundle names `stable`"), "{talk}");
        assert_eq!(default(), "fast");
    }
    let talk = add("0.2.0", &["--default-channel", "stable"]);
    assert!(talk.contains("the default channel is `stable`; it was `fast`"), "{talk}");
    assert_eq!(default(), "stable");
}

#[test]
fn a_directory_without_files_is_no_catalog_for_any_verb() {
    let root = bundle_and_catalog();
    let at = root.path();
    fs::create_dir(at.join("empty")).unwrap();
    for verb in [
        &["validate", "empty"][..],
        &["list", "packages", "empty"],
        &["list", "bundles", "empty"],
        &["graph", "empty"],
        &["path", "empty"],
        &["path", "catalog", "--since", "empty"],
        &["render", "empty"],
        &["diff", "empty", "catalog"],
        &["diff", "catalog", "empty"],
        &["build", "empty", "--to", "oci:x:v1"],
        &["push", "empty", "127.0.0.1:1/a/b:v1"],
        &["build-index", "empty", "--to", "index"],
        &["set-default", "empty", "--package", "a", "--channel", "b"],
        &["prune", "empty", "--packages", "a"],
        &["resolve", "--catalog", "a=empty", "--subscription", "a"],
    ] {
        let refused = said(&run(at, &[&["catalog"][..], verb].concat(), 1));
        assert!(refused.contains("`empty` holds no files of a catalog"), "{verb:?}: {refused}");
        assert!(refused.contains("`olmkit catalog add empty BUNDLE`"), "{verb:?}: {refused}");
    }
    run(at, &["catalog", "add", "empty", "bundle", "--channels", "stable"], 0);
    run(at, &["catalog", "validate", "empty"], 0);
}

#[test]
fn platforms_and_fields_that_nobody_has_are_named() {
    let root = bundle_and_catalog();
    let at = root.path();
    let build = |platforms: &str| {
        let args =
            ["catalog", "build", "catalog", "--data-only", "--platform", platforms, "--to", "oci:x:v1"];
        said(&run(at, &args, 2))
    };
    let refused = build("linux/amd64,linux/arm64,linux/amd64");
    assert!(refused.contains("the platform `linux/amd64` is given twice"), "{refused}");
    let refused = build("linux/amd46");
    assert!(
        refused.contains("unknown platform `linux/amd46`") && refused.contains("did you mean `amd64`?"),
        "{refused}"
    );
    let add = |template: &str| {
        let args = ["catalog", "add", "other", "bundle", "--channels", "a", "--image-ref-template", template];
        said(&run(at, &args, 2))
    };
    let refused = add("example.com/{{.Packge}}:v{{ .Version }}");
    assert!(refused.contains("`--image-ref-template` has no field `{{.Packge}}`"), "{refused}");
    assert!(refused.contains("did you mean `{{.Package}}`?"), "{refused}");
    assert!(add("example.com/{{.Package").contains("has a field without `}}`: `{{.Package`"));
    let refused = said(&run(at, &generate("v0.1.0", &["-"]), 2));
    assert!(refused.contains("not a semantic version: write it as 0.1.0"), "{refused}");
}

#[test]
fn a_base_that_cannot_serve_a_catalog_is_refused() {
    let root = bundle_and_catalog();
    let at = root.path();
    run(at, &["bundle", "build", "bundle", "--to", "oci:images:bundle"], 0);
    run(at, &["catalog", "build", "catalog", "--data-only", "--to", "oci:images:catalog"], 0);
    let build = |base: &str, more: &[&str], code: i32| {
        let args = ["catalog", "build", "catalog", "--base", base, "--to", "oci:out:v1"];
        said(&run(at, &[&args, more].concat(), code))
    };
    let refused = build("oci:images:bundle", &[], 2);
    assert!(refused.contains("cannot serve a catalog: it has no entrypoint"), "{refused}");
    assert!(refused.contains("quay.io/operator-framework/opm:latest"), "{refused}");
    let refused = build("oci:images:catalog", &[], 2);
    assert!(refused.contains("is a catalog image itself"), "{refused}");
    assert!(!at.join("out").exists());
    build("oci:images:bundle", &["--entrypoint", "/bin/opm", "--cmd", "serve", "--cmd", "/configs"], 0);
    // Of the image that was just built, the entrypoint is opm's; but it has a catalog.
    let refused = build("oci:out:v1", &[], 2);
    assert!(refused.contains("is a catalog image itself"), "{refused}");
}

#[test]
fn a_link_in_the_output_directory_is_not_followed_out_of_it() {
    let (root, input) = (tempfile::tempdir().unwrap(), manifests().display().to_string());
    let at = root.path();
    fs::create_dir_all(at.join("bundle")).unwrap();
    fs::create_dir_all(at.join("elsewhere")).unwrap();
    symlink("../elsewhere", at.join("bundle/manifests")).unwrap();
    let before = tree(at);
    let refused = run(at, &generate("0.1.0", &[&input]), 3);
    assert!(said(&refused).contains("`bundle/manifests` points outside `bundle`"), "{}", said(&refused));
    assert_eq!(added(&before, at), [""; 0]);
}

#[test]
fn the_output_directory_is_never_input() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    copy_manifests(&at.join("config"));
    fs::write(at.join("olmkit.yaml"), "package: echo-operator\n").unwrap();
    // Each generates from everything here, which holds the bundles of the ones before.
    fs::create_dir(at.join("real")).unwrap();
    symlink("real", at.join("linked")).unwrap();
    let mut first = None;
    for output_dir in ["bundle", "./bundle", "bundles/0.1.0", "bundles/../bundles/0.2.0", "linked", "real/"] {
        for input in [".", "./", at.to_str().unwrap()] {
            let output =
                run(at, &["bundle", "generate", input, "--version", "0.1.0", "--output-dir", output_dir], 0);
            let talk = said(&output).replace(&format!("{}/", at.display()), "./");
            // The next step names the directory as it was given.
            let talk = talk.replace(&format!("validate {output_dir}`"), "validate DIR`");
            let result = (talk, tree(&at.join(output_dir)));
            assert_eq!(*first.get_or_insert_with(|| result.clone()), result, "{input} to {output_dir}");
        }
    }
    // Here the output is beside the input.
    for _ in 0..2 {
        run(at, &["bundle", "generate", ".", "--version", "0.1.0", "--output-dir", "."], 0);
        let csv = "manifests/echo-operator.clusterserviceversion.yaml";
        assert_eq!(fs::read(at.join(csv)).unwrap(), fs::read(at.join("bundle").join(csv)).unwrap());
    }
    for input in ["bundle", "bundle/manifests", "./bundle/manifests/example.com_echoes.yaml"] {
        let refused = run(at, &["bundle", "generate", input, "--version", "0.1.0"], 2);
        assert!(said(&refused).contains("is the output, and cannot be input too"), "{}", said(&refused));
    }
    let samples = ["bundle", "generate", "config", "--samples", "bundle", "--version", "0.1.0"];
    assert!(said(&run(at, &samples, 2)).contains("is the output"));
}

/// Bundles of the echo operator in `b/VERSION`.
fn bundles(at: &Path, versions: &[&str]) {
    let input = manifests().display().to_string();
    for version in versions {
        run(at, &generate(version, &[&input, "--output-dir", &format!("b/{version}")]), 0);
    }
}

const TEMPLATE: [&str; 2] = ["--image-ref-template", "example.com/{{.Package}}:v{{.Version}}"];

#[test]
fn an_image_is_unpacked_where_one_is_and_what_was_interrupted_is_finished() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0"]);
    run(at, &["bundle", "build", "b/0.1.0", "--to", "oci:images:v1"], 0);
    let empty = at.join("empty");
    fs::create_dir(&empty).unwrap();
    let directory = inode(&empty);
    let unpack = ["bundle", "unpack", "oci:../images:v1", "--output-dir", "."];
    run(&empty, &unpack, 0);
    assert_eq!(inode(&empty), directory, "the directory is the same");
    let whole = tree(&empty);
    assert_eq!(whole, tree(&at.join("b/0.1.0")));
    assert!(said(&run(&empty, &unpack, 3)).contains("`.` already exists"));
    // A killed run leaves some of the files, and those that it was writing.
    fs::remove_file(empty.join("metadata/annotations.yaml")).unwrap();
    fs::create_dir(empty.join(".olmkit-new-x")).unwrap();
    fs::write(empty.join(".olmkit-new-x/0"), "annotat").unwrap();
    run(&empty, &unpack, 0);
    assert_eq!(tree(&empty), whole);
}

#[test]
fn bundles_beside_package_manifests_are_not_converted() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path().join("echo");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/generate.in/packages/echo");
    for (name, content) in tree(&source) {
        let (_, content) = content.split_once(' ').unwrap();
        match content {
            "directory" => fs::create_dir_all(at.join(name)).unwrap(),
            _ => {
                fs::create_dir_all(at.join(&name).parent().unwrap()).unwrap();
                fs::write(at.join(name), content).unwrap();
            }
        }
    }
    run(&at, &["bundle", "convert", "."], 0);
    run(&at, &["bundle", "convert", ".", "--output-dir", "again"], 0);
    assert_eq!(tree(&at.join("again")), tree(&at.join("bundles")));
}

#[test]
fn what_a_killed_process_was_writing_is_no_part_of_anything() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0", "0.2.0"]);
    let add = |version: &str| {
        let bundle = format!("b/{version}");
        run(
            at,
            &[&["catalog", "add", "catalog", &bundle, "--channels", "stable"], TEMPLATE.as_slice()].concat(),
            0,
        );
    };
    add("0.1.0");
    let digest = |bundle: &str, tag: &str| {
        let output = run(at, &["bundle", "build", bundle, "--to", &format!("oci:images:{tag}")], 0);
        String::from_utf8(output.stdout).unwrap().rsplit_once(' ').unwrap().1.to_owned()
    };
    let before = digest("b/0.1.0", "before");
    for directory in ["catalog", "b/0.1.0", "b/0.1.0/manifests"] {
        fs::create_dir(at.join(directory).join(".olmkit-new-x")).unwrap();
        fs::write(at.join(directory).join(".olmkit-new-x/0"), "half: [").unwrap();
        fs::write(at.join(directory).join(".olmkit-x"), "half: [").unwrap();
    }
    run(at, &["catalog", "validate", "catalog"], 0);
    run(at, &["bundle", "validate", "b/0.1.0"], 0);
    assert_eq!(digest("b/0.1.0", "after"), before);
    add("0.2.0");
    assert!(!at.join("catalog/.olmkit-new-x").exists(), "the next writer removes it");
}

#[test]
fn several_who_add_to_a_catalog_at_once_all_do() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    let versions = ["0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0"];
    bundles(at, &versions);
    let add = |version: &&str| {
        let bundle = format!("b/{version}");
        let args = ["catalog", "add", "catalog", &bundle, "--channels", "stable", "--policy", "semver"];
        olmkit(at, &[args.as_slice(), &TEMPLATE].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("olmkit starts")
    };
    let running: Vec<_> = versions.iter().map(add).collect();
    for process in running {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    let text = fs::read_to_string(at.join("catalog/echo-operator/catalog.yaml")).unwrap();
    for version in versions {
        assert!(text.contains(&format!("image: example.com/echo-operator:v{version}\n")), "{version}");
    }
    run(at, &["catalog", "validate", "catalog"], 0);
}

#[test]
fn a_catalog_file_keeps_its_mode_and_the_link_that_leads_to_it() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0", "0.2.0"]);
    let add = |catalog: &str, version: &str| {
        let bundle = format!("b/{version}");
        run(
            at,
            &[&["catalog", "add", catalog, &bundle, "--channels", "stable"], TEMPLATE.as_slice()].concat(),
            0,
        )
    };
    add("catalog", "0.1.0");
    let file = at.join("catalog/echo-operator/catalog.yaml");
    let data = at.join("catalog/echo-operator/data.yaml");
    fs::rename(&file, &data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o604)).unwrap();
    fs::write(at.join("catalog/.indexignore"), "data.yaml\n").unwrap();
    symlink("data.yaml", &file).unwrap();
    // As a directory, then as a file that a link leads to.
    add("catalog", "0.2.0");
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    assert_eq!(fs::metadata(&data).unwrap().mode() & 0o777, 0o604);
    assert!(fs::read_to_string(&data).unwrap().contains("echo-operator.v0.2.0"));
    // A failure leaves no directory behind.
    let failed =
        [&["catalog", "add", "new", "b/0.1.0", "--default-channel", "none"], TEMPLATE.as_slice()].concat();
    run(at, &failed, 1);
    assert!(!at.join("new").exists());
}

#[test]
fn a_template_replaces_its_own_files_alone() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    checkout(at);
    let raw = "schema: olm.package\nname: echo\ndefaultChannel: stable\n";
    fs::write(at.join("raw.yaml"), raw).unwrap();
    let component = |output: &str| {
        format!(
            "- {{name: v4, destination: {{path: echo}}, strategy: {{name: raw, template: {{schema: olm.builder.raw, config: {{input: raw.yaml, output: {output}}}}}}}}}\n"
        )
    };
    let composite = |outputs: &[&str]| {
        let components: String = outputs.iter().map(|output| component(output)).collect();
        fs::write(at.join("composite.yaml"), format!("schema: olm.composite\ncomponents:\n{components}"))
            .unwrap();
    };
    composite(&["a.yaml", "b.yaml"]);
    let before = tree(at);
    let template = ["catalog", "template", "composite.yaml", "--output-dir", "."];
    run(at, &template, 0);
    assert_eq!(added(&before, at), ["v4", "v4/echo", "v4/echo/a.yaml", "v4/echo/b.yaml"]);
    composite(&["a.yaml", "a.yaml"]);
    assert!(said(&run(at, &template, 1)).contains("two components of the composite make `v4/echo/a.yaml`"));
}

#[test]
fn an_archive_keeps_its_mode_and_the_link_that_leads_to_it() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0", "0.2.0"]);
    let build = |version: &str| {
        run(at, &["bundle", "build", &format!("b/{version}"), "--to", "oci-archive:link.tar:v1"], 0);
        fs::read(at.join("real.tar")).unwrap()
    };
    fs::write(at.join("real.tar"), "").unwrap();
    fs::set_permissions(at.join("real.tar"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real.tar", at.join("link.tar")).unwrap();
    assert_ne!(build("0.1.0"), build("0.2.0"));
    assert_eq!(fs::metadata(at.join("real.tar")).unwrap().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(at.join("link.tar")).unwrap().is_symlink());
}

#[test]
fn init_finishes_what_an_interrupted_run_began() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    let text =
        "kind: ClusterServiceVersion\nmetadata: {name: echo.v0.1.0}\nspec: {description: Says it again.}\n";
    let input = tempfile::tempdir().unwrap();
    let csv = input.path().join("csv.yaml");
    fs::write(&csv, format!("apiVersion: operators.coreos.com/v1alpha1\n{text}")).unwrap();
    let csv = csv.to_str().unwrap();
    run(at, &["bundle", "init", "--from-csv", csv], 0);
    let whole = tree(at);
    assert!(whole.len() > 1, "files beside the package file: {:?}", whole.keys());
    let again = run(at, &["bundle", "init", "--from-csv", csv], 1);
    assert!(said(&again).contains("already exists"), "{}", said(&again));
    // The package file is written last.
    fs::remove_file(at.join("olmkit.yaml")).unwrap();
    run(at, &["bundle", "init", "--from-csv", csv], 0);
    assert_eq!(tree(at), whole);
    // A file of the user's is not replaced.
    fs::remove_file(at.join("olmkit.yaml")).unwrap();
    let other = whole.keys().find(|name| *name != "olmkit.yaml").unwrap();
    fs::write(at.join(other), "mine").unwrap();
    let before = tree(at);
    run(at, &["bundle", "init", "--from-csv", csv], 1);
    assert_eq!(added(&before, at), [""; 0]);
}

/// A directory with the bundle and the catalog of the echo operator.
fn bundle_and_catalog() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let manifests = manifests().display().to_string();
    run(dir.path(), &generate("0.1.0", &[&manifests, "--output-dir", "bundle"]), 0);
    run(dir.path(), &["catalog", "add", "catalog", "bundle", "--channels", "stable"], 0);
    dir
}

#[test]
fn an_archive_replaces_only_an_archive_without_other_images() {
    let dir = bundle_and_catalog();
    let build = |to: &str, code| run(dir.path(), &["bundle", "build", "bundle", "--to", to], code);
    fs::write(dir.path().join("notes.md"), "mine").unwrap();
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for (to, why) in [("notes.md", "is not an archive of images"), ("fifo", "is not a regular file")] {
        for kind in ["oci-archive", "docker-archive"] {
            let refused = said(&build(&format!("{kind}:{to}"), 3));
            assert!(refused.contains(&format!("`{to}` exists and {why}")), "{refused}");
        }
    }
    assert_eq!(fs::read_to_string(dir.path().join("notes.md")).unwrap(), "mine");
    assert!(!fs::metadata(&fifo).unwrap().is_file());

    fs::write(dir.path().join("one.tar"), "").unwrap();
    build("oci-archive:one.tar:v1", 0);
    build("oci-archive:one.tar:v1", 0);
    let refused = said(&build("oci-archive:one.tar:v2", 3));
    assert!(refused.contains("`one.tar` already has the image `v1`, which would be lost"), "{refused}");
    run(dir.path(), &["image", "digest", "oci-archive:one.tar:v1"], 0);

    build("docker-archive:docker.tar:quay.io/example/echo:v1", 0);
    build("docker-archive:docker.tar:quay.io/example/echo:v1", 0);
    let refused = said(&build("docker-archive:docker.tar:quay.io/example/echo:v2", 3));
    assert!(refused.contains("already has the image `quay.io/example/echo:v1`"), "{refused}");
}

#[test]
fn an_image_is_not_written_into_what_it_is_made_of() {
    let dir = bundle_and_catalog();
    let old = tree(dir.path());
    let catalog = ["catalog", "build", "catalog", "--data-only", "--to"];
    for to in ["oci:catalog/image", "oci-archive:catalog/new.tar", "docker-archive:catalog/new.tar"] {
        let refused = said(&run(dir.path(), &[&catalog[..], &[to]].concat(), 2));
        assert!(refused.contains("is inside of `catalog`"), "{refused}");
    }
    let to = "oci:bundle/manifests/image";
    let refused = said(&run(dir.path(), &["bundle", "build", "bundle", "--to", to], 2));
    assert!(refused.contains("is inside of `bundle`"), "{refused}");
    assert!(added(&old, dir.path()).is_empty());
}

#[test]
fn what_is_no_catalog_or_no_bundle_is_refused() {
    let dir = bundle_and_catalog();
    fs::create_dir(dir.path().join("empty")).unwrap();
    let old = tree(dir.path());
    let build = ["catalog", "build", "bundle", "--data-only", "--to", "oci:image"];
    run(dir.path(), &build, 1);
    let unpack =
        |what, code| said(&run(dir.path(), &["bundle", "unpack", what, "--output-dir", "out"], code));
    assert!(unpack("missing", 3).contains("cannot read the directory `missing`"));
    for what in ["empty", "catalog"] {
        let refused = unpack(what, 1);
        assert!(refused.contains(&format!("`{what}` is not a bundle")), "{refused}");
    }
    for image in ["oci:catalog", "quay.io/example/catalog:v1"] {
        let refused = said(&run(dir.path(), &["catalog", "add", image, "bundle"], 2));
        assert!(refused.contains("an image cannot be edited"), "{refused}");
    }
    assert!(added(&old, dir.path()).is_empty());
}

#[test]
fn a_compiled_catalog_replaces_only_a_compiled_catalog() {
    let dir = bundle_and_catalog();
    fs::write(dir.path().join("notes.md"), "mine").unwrap();
    let old = tree(dir.path());
    let file = "catalog/echo-operator/catalog.yaml";
    for (catalog, to) in [("catalog", "notes.md"), (file, file)] {
        let refused = said(&run(dir.path(), &["catalog", "build-index", catalog, "--to", to], 2));
        assert!(refused.contains("exists and is not a compiled catalog"), "{refused}");
    }
    let serve = ["catalog", "serve", "catalog", "--cache-only", "--index", "notes.md"];
    let refused = olmkit(dir.path(), &serve).output().unwrap();
    assert!(!refused.status.success() && said(&refused).contains("is not a compiled catalog"), "{refused:?}");
    assert!(added(&old, dir.path()).is_empty());
    fs::write(dir.path().join("index"), "").unwrap();
    for _ in 0..2 {
        run(dir.path(), &["catalog", "build-index", "catalog", "--to", "index"], 0);
    }
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let dir = bundle_and_catalog();
    run(dir.path(), &["bundle", "build", "bundle", "--to", "oci:image"], 0);
    let mut digest = olmkit(dir.path(), &["image", "digest", "oci:image"]);
    let output = digest.env("REGISTRY_AUTH_FILE", "").env("OLMKIT_CACHE_DIR", "").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_platform_that_a_single_image_is_not_for_is_refused() {
    let dir = bundle_and_catalog();
    run(dir.path(), &["bundle", "build", "bundle", "--to", "oci:image"], 0);
    let copy = |platform| ["image", "copy", "oci:image", "oci:copied", "--platform", platform];
    let refused = said(&run(dir.path(), &copy("linux/arm64"), 3));
    assert!(refused.contains("is for linux/amd64 only, not for linux/arm64"), "{refused}");
    run(dir.path(), &copy("linux/amd64"), 0);
}

#[test]
fn flags_that_cannot_be_honoured_are_refused() {
    let dir = bundle_and_catalog();
    let template = "schema: olm.template.basic\nentries:\n- {schema: olm.bundle, image: r.example/echo:v1}\n";
    fs::write(dir.path().join("basic.yaml"), template).unwrap();
    fs::write(dir.path().join("typo.yaml"), template.replace("entries", "entrys")).unwrap();
    fs::write(dir.path().join("bundles.tsv"), "\u{feff}r.example/echo:v1\tbundle\n").unwrap();
    let twice = "r.example/echo:v1\tbundle\nr.example/echo:v1\tother\n";
    fs::write(dir.path().join("twice.tsv"), twice).unwrap();
    run(dir.path(), &["catalog", "template", "basic.yaml", "--bundles", "bundles.tsv"], 0);
    let old = tree(dir.path());
    let label = "operators.operatorframework.io.index.configs.v1=/x";
    let refused: [(&[&str], i32, &str); 9] = [
        (&["catalog", "graph", "catalog", "--output", "json"], 2, "no such output format"),
        (&["catalog", "add", "new", "bundle", "--image-ref-template", ""], 2, "image-ref-template"),
        (&["catalog", "render", "bundle", "--image-ref-template", ""], 2, "image-ref-template"),
        (&["catalog", "template", "basic.yaml", "--bundles", "twice.tsv"], 2, "`twice.tsv`:2 names"),
        (&["catalog", "template", "typo.yaml", "--bundles", "bundles.tsv"], 1, "has no `entries`"),
        (
            &["catalog", "template", "basic.yaml", "--bundles", "bundles.tsv", "--output-dir", "out"],
            2,
            "`--output-dir` needs a composite",
        ),
        (
            &["catalog", "build", "catalog", "--data-only", "--label", label, "--to", "oci:image"],
            2,
            "is set by olmkit",
        ),
        (&["bundle", "init", "--package-file", ""], 2, "is not the name of a file"),
        (&["bundle", "init", "--package-file", "../olmkit.yaml"], 2, "is not the name of a file"),
    ];
    for (args, code, why) in refused {
        let output = run(dir.path(), args, code);
        let refused = format!("{}{}", said(&output), String::from_utf8_lossy(&output.stdout));
        assert!(refused.contains(why), "{args:?}: {refused}");
    }
    assert!(added(&old, dir.path()).is_empty());
}

#[test]
fn what_a_killed_writer_of_an_archive_or_an_index_left_is_removed() {
    let root = bundle_and_catalog();
    let at = |path: &str| root.path().join(path);
    for left in [".olmkit-archive-x", ".olmkit-index-x"] {
        fs::write(at(left), "half").unwrap();
    }
    // Somebody who still writes has the lock of the file.
    let living = fs::File::create(at(".olmkit-index-y")).unwrap();
    fs::write(at(".olmkit-index-y"), "half").unwrap();
    living.lock().unwrap();
    run(root.path(), &["bundle", "build", "bundle", "--to", "oci-archive:a.tar"], 0);
    run(root.path(), &["catalog", "build-index", "catalog", "--to", "catalog.olmkit"], 0);
    assert!(!at(".olmkit-archive-x").exists() && !at(".olmkit-index-x").exists());
    assert!(at(".olmkit-index-y").exists());
}

#[test]
fn image_flags_that_cannot_be_honoured_are_refused() {
    let root = bundle_and_catalog();
    run(root.path(), &["bundle", "build", "bundle", "--to", "oci:image"], 0);
    run(root.path(), &["bundle", "build", "bundle", "--to", "docker-archive:d.tar:app:v1"], 0);
    let before = tree(root.path());
    for words in [
        ["image", "copy", "oci:image", "127.0.0.1:1/a/b:v1", "--authfile", ""].as_slice(),
        &["image", "copy", "oci:image", "127.0.0.1:1/a/b:v1", "--also-tag", "bad/tag"],
        // Docker's archives mean Docker Hub by `app:v1`; nobody who pushes does.
        &["bundle", "push", "docker-archive:d.tar:app:v1"],
        &["bundle", "build", "bundle", "--to", "docker-archive:d.tar:app:v1", "--push"],
        &[
            "catalog",
            "build",
            "catalog",
            "--base",
            "oci:image",
            "--platform",
            "linux/s390x,linux/s390x",
            "--to",
            "oci:b",
        ],
    ] {
        let output = olmkit(root.path(), words).output().unwrap();
        assert!(matches!(output.status.code(), Some(2 | 3)), "{words:?}: {}", said(&output));
    }
    assert_eq!(tree(root.path()), before);
}

#[test]
fn a_file_of_installed_versions_without_any_is_refused() {
    let root = bundle_and_catalog();
    let at = |path: &str| root.path().join(path);
    fs::write(at("none"), "").unwrap();
    fs::write(at("other"), "kind: Pod\napiVersion: v1\nmetadata: {name: a}\n").unwrap();
    fs::write(at("list"), "kind: List\napiVersion: v1\nitems: []\n").unwrap();
    let resolve =
        ["catalog", "resolve", "--catalog", "a=catalog", "--subscription", "echo-operator", "--existing"];
    for file in ["none", "other"] {
        let output = run(root.path(), &[&resolve[..], &[file]].concat(), 2);
        assert!(said(&output).contains("holds no ClusterServiceVersion"), "{}", said(&output));
    }
    run(root.path(), &[&resolve[..], &["list"]].concat(), 0);
}

/// A repository with one commit of a catalog, and a later state of it in the work tree.
fn catalog_in_git(root: &Path) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/edit.in/catalog");
    for file in ["redis-operator/catalog.yaml", "etcd-operator/catalog.json"] {
        let to = root.join("catalog").join(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(fixture.join(file), to).unwrap();
    }
    let git = |args: &[&str]| {
        let names = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
        let output = Command::new("git").args(names).args(args).current_dir(root).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "first"]);
}

#[test]
fn a_catalog_is_compared_with_a_revision_of_git() {
    let root = tempfile::tempdir().unwrap();
    catalog_in_git(root.path());
    let same = run(root.path(), &["catalog", "diff", "git:HEAD:catalog", "catalog"], 0);
    assert_eq!(String::from_utf8_lossy(&same.stdout), "no differences\n");
    run(
        root.path(),
        &["catalog", "remove", "catalog", "--package", "redis-operator", "--version", "0.3.0"],
        0,
    );
    let deny = ["--deny", "lost-paths", "--output", "json"];
    let lost =
        run(root.path(), &[&["catalog", "diff", "git:HEAD:catalog", "catalog"], &deny[..]].concat(), 1);
    let lost = String::from_utf8_lossy(&lost.stdout).into_owned();
    assert!(lost.contains("\"pathsLost\": [\n"), "{lost}");
    // A path is below the current directory, or below the top of the repository; a file is a catalog too.
    let below = root.path().join("catalog/redis-operator");
    let file = "git:HEAD:catalog.yaml";
    assert_eq!(
        run(&below, &["catalog", "diff", file, "git:HEAD:catalog/redis-operator/catalog.yaml"], 0).stdout,
        same.stdout
    );
    // From there, the whole directory is read, not what git shows of it below the current directory.
    let lost = run(&below, &["catalog", "diff", "git:HEAD:catalog", "..", "--deny", "lost-paths"], 1);
    assert!(String::from_utf8_lossy(&lost.stdout).contains("0.3.0"), "{}", said(&lost));
    let error = said(&run(root.path(), &["catalog", "diff", "git:nowhere:catalog", "catalog"], 3));
    assert!(error.contains("cannot read `git:nowhere:catalog`") && error.contains("git ls-tree"), "{error}");
}

#[test]
fn the_diff_of_a_dry_run_can_be_applied() {
    let root = tempfile::tempdir().unwrap();
    catalog_in_git(root.path());
    let path = root.path().join("catalog/redis-operator/catalog.yaml");
    let text = fs::read_to_string(&path).unwrap();
    for text in [text.clone(), text.replace('\n', "\r\n"), text.trim_end().to_owned()] {
        fs::write(&path, &text).unwrap();
        let args = ["catalog", "deprecate", "catalog", "--package", "redis-operator", "--message", "old"];
        let shown = run(root.path(), &[&args[..], &["--dry-run"]].concat(), 0);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let patch = root.path().join("patch");
        fs::write(&patch, &shown.stdout).unwrap();
        let applied = Command::new("git").args(["apply", "patch"]).current_dir(root.path()).output().unwrap();
        assert!(applied.status.success(), "{}", said(&applied));
        let by_patch = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text).unwrap();
        run(root.path(), &args, 0);
        assert_eq!(fs::read_to_string(&path).unwrap(), by_patch);
    }
}

/// Nothing of a catalog changes when an edit is refused, and a removed package leaves no empty directory.
#[test]
fn edits_of_a_catalog_touch_only_its_files() {
    let root = tempfile::tempdir().unwrap();
    catalog_in_git(root.path());
    let before = tree(root.path());
    run(
        root.path(),
        &["catalog", "remove", "catalog", "--package", "redis-operator", "--channel", "stable"],
        1,
    );
    assert_eq!(tree(root.path()), before);
    run(root.path(), &["catalog", "remove", "catalog", "--package", "etcd-operator"], 0);
    let after = tree(root.path());
    let gone: Vec<&String> = before.keys().filter(|path| !after.contains_key(*path)).collect();
    assert_eq!(gone, ["catalog/etcd-operator", "catalog/etcd-operator/catalog.json"]);
    run(root.path(), &["catalog", "remove", "nowhere", "--package", "p"], 3);
    assert!(!root.path().join("nowhere").exists());
}

/// A catalog in a directory, such as the transcripts edit.
fn copy_catalog(to: &Path) {
    let from =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/edit.in/old/redis-operator/catalog.yaml");
    fs::create_dir_all(to).unwrap();
    fs::copy(from, to.join("catalog.yaml")).unwrap();
}

const REDIS: [&str; 2] = ["--package", "redis-operator"];

#[test]
fn the_diff_of_a_catalog_beside_the_directory_can_be_applied() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    copy_catalog(&at.join("c"));
    fs::create_dir(at.join("work")).unwrap();
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(at).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", said(&output));
    };
    git(&["init", "--quiet"]);
    let edit = ["catalog", "set-default", "../c", "--channel", "fast"];
    let dry_run = run(&at.join("work"), &[&edit[..], &REDIS, &["--dry-run"]].concat(), 0);
    assert!(said(&dry_run).contains("apply the diff in `"), "{}", said(&dry_run));
    fs::write(at.join("patch"), &dry_run.stdout).unwrap();
    git(&["apply", "patch"]);
    let again = run(&at.join("work"), &[&edit[..], &REDIS].concat(), 0);
    assert!(String::from_utf8_lossy(&again.stdout).contains("nothing to change"));
}

#[test]
fn what_a_link_in_a_catalog_leads_to_is_not_deleted() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    copy_catalog(&at.join("c/src"));
    fs::write(at.join("c/.indexignore"), "src\n").unwrap();
    fs::write(at.join("c/other.yaml"), "schema: acme.note\n").unwrap();
    symlink("src/catalog.yaml", at.join("c/catalog.yaml")).unwrap();
    run(at, &[&["catalog", "remove", "c"][..], &REDIS].concat(), 0);
    assert!(fs::symlink_metadata(at.join("c/catalog.yaml")).is_err());
    assert!(at.join("c/src/catalog.yaml").is_file());
    run(at, &["catalog", "validate", "c"], 0);
}

#[test]
fn removing_the_last_package_again_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    copy_catalog(&at.join("c"));
    let remove = [&["catalog", "remove", "c"][..], &REDIS].concat();
    run(at, &remove, 0);
    let again = run(at, &remove, 0);
    assert!(String::from_utf8_lossy(&again.stdout).contains("nothing to remove"));
}

#[test]
fn paths_of_a_catalog_that_cannot_be_read_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    copy_catalog(&at.join("new"));
    copy_catalog(&at.join("old"));
    let broken = "---\nschema: olm.channel\npackage: redis-operator\nname: beta\nentries:\n- {name: x\n";
    let text = fs::read_to_string(at.join("old/catalog.yaml")).unwrap() + broken;
    fs::write(at.join("old/catalog.yaml"), text).unwrap();
    for args in [&["old"][..], &["new", "--since", "old"]] {
        let refused = said(&run(at, &[&["catalog", "path"][..], args].concat(), 1));
        assert!(refused.contains("a part of `old` cannot be read"), "{refused}");
    }
    let by_version = run(at, &["catalog", "path", "new", "--from", "0.1.0", "--channel", "stable"], 0);
    assert!(String::from_utf8_lossy(&by_version.stdout).contains("0.1.0 → 0.2.0"));
}
