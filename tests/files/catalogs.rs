//! Verbs that write and edit catalogs.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::Stdio;

use super::{
    REDIS, TEMPLATE, add_to_stable, added, bundle_and_catalog, bundles, catalog_in_git, checkout,
    copy_catalog, generate, manifests, olmkit, run, said, tree,
};

#[test]
fn a_channel_a_package_or_a_bundle_that_stands_twice_gets_no_version() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0", "0.2.0"]);
    let add = |version: &str, code: i32| add_to_stable(at, version, code);
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
        assert!(refused.contains("`empty` contains no files of a catalog"), "{verb:?}: {refused}");
        assert!(refused.contains("`olmkit catalog add empty BUNDLE`"), "{verb:?}: {refused}");
    }
    run(at, &["catalog", "add", "empty", "bundle", "--channels", "stable", "--embed"], 0);
    run(at, &["catalog", "validate", "empty"], 0);
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
fn an_empty_variable_counts_as_unset() {
    let dir = bundle_and_catalog();
    run(dir.path(), &["bundle", "build", "bundle", "--to", "oci:image"], 0);
    let mut digest = olmkit(dir.path(), &["image", "digest", "oci:image"]);
    let output = digest.env("REGISTRY_AUTH_FILE", "").env("OLMKIT_CACHE_DIR", "").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
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
        assert!(said(&output).contains("contains no ClusterServiceVersion"), "{}", said(&output));
    }
    run(root.path(), &[&resolve[..], &["list"]].concat(), 0);
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

#[test]
fn a_number_that_cannot_be_written_is_refused_and_not_lost() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    let write = |directory: &str, number: &str| {
        fs::create_dir_all(at.join(directory)).unwrap();
        let odd = format!(r#"{{"schema":"acme.odd","name":"odd","value":{{"n":{number},"text":"kept"}}}}"#);
        let text = format!("{}\n{odd}\n", r#"{"schema":"acme.odd","name":"plain"}"#);
        fs::write(at.join(directory).join("catalog.json"), text).unwrap();
    };
    write("one", "1e400");
    write("two", "2e400");
    let place = |directory: &str| format!(" --> {directory}/catalog.json:2:");
    for args in [&["render", "one"][..], &["convert", "one", "--to", "substitutes"]] {
        let output = run(at, &[&["catalog"], args].concat(), 1);
        let said = said(&output);
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(said.contains("error: a value of `one` cannot be written: number out of range\n"), "{said}");
        assert!(said.contains(&place("one")) && said.contains("help: change the value"), "{said}");
    }
    let before = tree(at);
    let refused = said(&run(at, &["catalog", "merge", "two", "one"], 1));
    assert!(refused.contains("error: a value cannot be copied: number out of range\n"), "{refused}");
    assert!(refused.contains(&place("one")), "{refused}");
    assert_eq!(tree(at), before);
}

#[test]
fn what_keeps_a_catalog_from_being_read_is_named_first() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    let text = "schema: olm.package\nname: redis\ndefaultChannel: stable\n---\nschema: acme.odd\nname: 7\n";
    fs::write(at.join("catalog.yaml"), text).unwrap();
    // That the package has no channel stands before it, and keeps nobody from reading.
    for args in [&["fmt", "catalog.yaml"][..], &["prune", "catalog.yaml", "--packages", "redis"]] {
        let refused = said(&run(at, &[&["catalog"], args].concat(), 1));
        let expected =
            "error: the catalog cannot be read completely: `name` must be a string, found a number\n";
        assert!(refused.contains(expected) && refused.contains(" --> catalog.yaml:6:7"), "{refused}");
    }
}

/// Two edits that name the catalog differently guard the same files.
#[test]
fn an_edit_of_a_part_of_a_catalog_waits_for_an_edit_of_the_whole() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    for round in 0..4 {
        let directory = format!("c{round}");
        fs::create_dir_all(at.join(&directory).join("op")).unwrap();
        let mut text = "schema: olm.package\nname: op\ndefaultChannel: s\n---\nschema: olm.channel\npackage: op\nname: s\nentries:\n\
             - name: op.v0.1.0\n- name: op.v0.2.0\n  replaces: op.v0.1.0\n- name: op.v0.3.0\n  replaces: op.v0.2.0\n"
            .to_owned();
        for minor in 1..4 {
            text += &format!(
                "---\nschema: olm.bundle\npackage: op\nname: op.v0.{minor}.0\nimage: r.example.com/op:{minor}\nproperties:\n\
                 - type: olm.package\n  value: {{packageName: op, version: 0.{minor}.0}}\n"
            );
        }
        let file = at.join(&directory).join("op/catalog.yaml");
        fs::write(&file, text).unwrap();
        let names = [directory.clone(), format!("{directory}/op"), format!("{directory}/op/catalog.yaml")];
        let edits = names.iter().zip(["0.1.0", "0.2.0", "0.3.0"]).map(|(catalog, version)| {
            let words = [
                "catalog",
                "deprecate",
                catalog,
                "--package",
                "op",
                "--version",
                version,
                "--message",
                version,
            ];
            olmkit(at, &words).stderr(Stdio::null()).spawn().unwrap()
        });
        let edits: Vec<_> = edits.collect();
        for mut edit in edits {
            assert!(edit.wait().unwrap().success());
        }
        let messages = fs::read_to_string(&file).unwrap().matches("message: ").count();
        assert_eq!(messages, 3, "{directory}");
    }
}

#[test]
fn why_a_catalog_cannot_be_read_is_said_by_every_verb() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    fs::create_dir(at.join("my catalog")).unwrap();
    fs::write(at.join("my catalog/a.yaml"), "schema: olm.package\nname: x\n  a: b\n").unwrap();
    for words in [
        &["catalog", "list", "packages", "my catalog"][..],
        &["catalog", "path", "my catalog"],
        &["catalog", "set-default", "my catalog", "--package", "x", "--channel", "s"],
        &["catalog", "remove", "my catalog", "--package", "x"],
    ] {
        let refused = said(&run(at, words, 1));
        assert!(refused.contains("mapping values are not allowed"), "{refused}");
        let help = "run `olmkit catalog validate 'my catalog'` to list every problem";
        assert!(refused.contains(help), "{refused}");
    }
}

/// Every file of a catalog's directory is read as a part of the catalog, so its pages must not be written there.
#[test]
fn a_catalog_is_not_drawn_into_itself() {
    let root = bundle_and_catalog();
    let at = root.path();
    let old = tree(at);
    let graph = |at: &std::path::Path, catalog, to, code| {
        said(&run(at, &["catalog", "graph", catalog, "--output-dir", to], code))
    };
    for (to, place) in [
        ("catalog", "is the catalog's directory"),
        ("catalog/pages", "is in the catalog's directory"),
        ("catalog/a/b/pages", "is in the catalog's directory"),
        ("catalog/echo-operator", "is in the catalog's directory"),
    ] {
        let refused = graph(at, "catalog", to, 2);
        assert!(refused.contains(&format!("`{to}` {place}")), "{refused}");
        assert!(refused.contains("choose a directory outside of it"), "{refused}");
    }
    let refused = graph(&at.join("catalog"), ".", "pages", 2);
    assert!(refused.contains("`pages` is in the catalog's directory"), "{refused}");
    assert!(added(&old, at).is_empty());
    graph(at, "catalog", "pages", 0);
    graph(at, "catalog/echo-operator/catalog.yaml", "more/pages", 0);
    run(at, &["catalog", "validate", "catalog"], 0);
}

#[test]
fn a_link_out_of_a_catalog_says_what_to_do_instead() {
    let root = bundle_and_catalog();
    let at = root.path();
    fs::rename(at.join("catalog/echo-operator/catalog.yaml"), at.join("shared.yaml")).unwrap();
    symlink("../../shared.yaml", at.join("catalog/echo-operator/catalog.yaml")).unwrap();
    let output = run(at, &["catalog", "validate", "catalog"], 1);
    let found = format!("{}{}", String::from_utf8_lossy(&output.stdout), said(&output));
    assert!(found.contains("it is a link to a file outside of the catalog"), "{found}");
    assert!(found.contains("help: replace the link with a copy of the file, or name it in"), "{found}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let root = bundle_and_catalog();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let words = ["catalog", "browse", "catalog", "--port", &address.port().to_string()];
    let refused = said(&run(root.path(), &words, 3));
    assert!(
        refused.contains(&format!("error: cannot listen at `{address}`\n  caused by: Address already")),
        "{refused}"
    );
    assert!(refused.contains("help: choose another port with --port"), "{refused}");
}

/// A template that is too large must not be taken for its first part.
#[test]
fn a_template_on_standard_input_that_is_too_large_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let zero = fs::File::open("/dev/zero").unwrap();
    let output =
        olmkit(root.path(), &["catalog", "template", "-"]).stdin(Stdio::from(zero)).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("standard input: it is larger than 256 MiB"), "{}", said(&output));
}

/// A file of a composite's directory that is no catalog stays.
#[test]
fn a_template_replaces_no_file_that_is_no_catalog() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0"]);
    fs::create_dir_all(at.join("out/two/echo")).unwrap();
    fs::write(at.join("map.tsv"), format!("r.example.com/echo:v0.1.0\t{}\n", at.join("b/0.1.0").display()))
        .unwrap();
    fs::write(
        at.join("basic.yaml"),
        "schema: olm.template.basic\nentries:\n- {schema: olm.package, name: echo-operator, defaultChannel: s}\n\
         - {schema: olm.channel, package: echo-operator, name: s, entries: [{name: echo-operator.v0.1.0}]}\n\
         - {schema: olm.bundle, image: 'r.example.com/echo:v0.1.0'}\n",
    )
    .unwrap();
    fs::write(
        at.join("composite.yaml"),
        "schema: olm.composite\ncomponents:\n- name: two\n  destination: {path: echo}\n  strategy: {name: basic, template: \
         {schema: olm.builder.basic, config: {input: basic.yaml, output: catalog.yaml}}}\n",
    )
    .unwrap();
    let words = ["catalog", "template", "composite.yaml", "--bundles", "map.tsv", "--output-dir", "out"];
    fs::write(at.join("out/two/echo/catalog.yaml"), "my notes\n").unwrap();
    let refused = said(&run(at, &words, 2));
    assert!(refused.contains("`out/two/echo/catalog.yaml` exists and is not a catalog"), "{refused}");
    fs::remove_file(at.join("out/two/echo/catalog.yaml")).unwrap();
    // Twice: what it has written it replaces.
    run(at, &words, 0);
    run(at, &words, 0);
    let more = "---\nschema: olm.package\nname: shop-operator\ndefaultChannel: s\n";
    let catalog = fs::read_to_string(at.join("out/two/echo/catalog.yaml")).unwrap() + more;
    fs::write(at.join("out/two/echo/catalog.yaml"), &catalog).unwrap();
    let refused = said(&run(at, &words, 2));
    assert!(refused.contains("has the package `shop-operator`, which would be lost"), "{refused}");
    assert_eq!(fs::read_to_string(at.join("out/two/echo/catalog.yaml")).unwrap(), catalog);
}

#[test]
fn an_image_is_not_taken_for_a_directory() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    for words in [
        &["catalog", "init", "quay.io/example/catalog:v1", "--package", "a", "--default-channel", "b"][..],
        &["catalog", "merge", "oci:new:x", "catalog"],
        &["catalog", "fmt", "oci:new:x"],
    ] {
        let refused = said(&run(at, words, 2));
        assert!(refused.contains("is an image, which cannot be edited"), "{refused}");
    }
    assert!(tree(at).is_empty());
}
