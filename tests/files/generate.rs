//! `bundle generate`, `init` and `convert`: the directories they write.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use super::{
    add_to_stable, added, bundle_and_catalog, bundles, checkout, generate, inode, manifests, olmkit, run,
    said, tree,
};

/// Puts the operator's manifests into a directory.
fn copy_manifests(to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in ["crd.yaml", "operator.yaml", "webhook.yaml"] {
        fs::copy(manifests().join(file), to.join(file)).unwrap();
    }
}

#[test]
fn a_directory_that_is_something_else_is_refused() {
    let (root, input) = (tempfile::tempdir().unwrap(), manifests().display().to_string());
    let at = root.path();
    let command = |output: &str, code: i32| {
        let mut command = olmkit(at, &generate("0.1.0", &[&input, "--output-dir", output]));
        let ended = command.env("HOME", at.join("home")).output().unwrap();
        assert_eq!(ended.status.code(), Some(code), "{output}: {}", said(&ended));
        said(&ended)
    };
    fs::create_dir_all(at.join("home")).unwrap();
    fs::create_dir_all(at.join("chart")).unwrap();
    fs::write(at.join("chart/Chart.yaml"), "name: echo\nversion: 0.1.0\n").unwrap();
    symlink("home", at.join("link")).unwrap();
    let before = tree(at);
    for (output, expected) in [
        ("/", "`/` is not a bundle: it is the root directory"),
        ("home", "`home` is not a bundle: it is your home directory"),
        ("link", "`link` is not a bundle: it is your home directory"),
        ("chart", "`chart` is not a bundle: it contains `Chart.yaml`"),
    ] {
        let refused = command(output, 2);
        assert!(refused.contains(expected) && refused.contains("--force"), "{refused}");
    }
    assert_eq!(added(&before, at), [""; 0]);
    // What is below them is fine, and so is a bundle that is there already.
    command("home/bundle", 0);
    fs::write(at.join("home/bundle/Chart.yaml"), "name: echo\nversion: 0.1.0\n").unwrap();
    command("home/bundle", 0);
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
    // The same content is no loss, whatever wrote it.
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
    let add = |version: &str, code: i32| add_to_stable(at, version, code);
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

#[test]
fn a_package_file_that_cannot_be_read_is_not_left_out() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    std::os::unix::fs::symlink("nowhere", at.join("olmkit.yaml")).unwrap();
    let input = manifests().display().to_string();
    let command = ["bundle", "generate", &input, "--package", "echo-operator", "--version", "0.1.0"];
    let refused = said(&run(at, &command, 3));
    assert!(refused.contains("olmkit.yaml"), "{refused}");
    assert!(!at.join("bundle").exists());
}

/// Two operators, and one default output directory.
#[test]
fn a_bundle_of_another_package_is_replaced_only_on_demand() {
    let (root, input) = (tempfile::tempdir().unwrap(), manifests().display().to_string());
    let at = root.path();
    let of = |package: &'static str, more: &[&'static str]| {
        [&["bundle", "generate", input.as_str(), "--package", package, "--version", "0.1.0"], more].concat()
    };
    run(at, &of("echo-operator", &[]), 0);
    let before = tree(at);
    for _ in ["olmkit's", "another tool's"] {
        let before = tree(at);
        let refused = said(&run(at, &of("shop-operator", &[]), 2));
        assert!(refused.contains("`bundle` holds a bundle of the package `echo-operator`"), "{refused}");
        assert!(refused.contains("`--output-dir shop-operator-bundle`"), "{refused}");
        assert!(refused.contains("pass --force to replace the bundle of `echo-operator`"), "{refused}");
        assert!(added(&before, at).is_empty());
        // What says that olmkit made it.
        for file in fs::read_dir(at.join("bundle/manifests")).unwrap() {
            let path = file.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.trim_start_matches(|c| c != '\n').trim_start()).unwrap();
        }
    }
    run(at, &of("shop-operator", &["--output-dir", "shop-operator-bundle"]), 0);
    fs::remove_dir_all(at.join("bundle")).unwrap();
    run(at, &of("echo-operator", &[]), 0);
    assert!(before.iter().all(|(name, content)| tree(at).get(name) == Some(content)));
    run(at, &of("shop-operator", &["--force"]), 0);
    let names: Vec<_> = tree(&at.join("bundle/manifests")).into_keys().collect();
    assert_eq!(names, ["example.com_echoes.yaml", "shop-operator.clusterserviceversion.yaml"]);
    // What olmkit did not write stays, so a second ClusterServiceVersion would be in the bundle.
    let own = at.join("bundle/manifests/shop-operator.clusterserviceversion.yaml");
    let text = fs::read_to_string(&own).unwrap();
    fs::write(&own, text.trim_start_matches(|c| c != '\n').trim_start()).unwrap();
    let before = tree(at);
    let refused = said(&run(at, &of("echo-operator", &["--force"]), 2));
    assert!(refused.contains("is another ClusterServiceVersion, and olmkit did not write it"), "{refused}");
    assert!(added(&before, at).is_empty());
}

#[test]
fn the_package_file_decides_on_policy_and_image_for_catalogs_too() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    copy_manifests(&at.join("config"));
    let settings = "package: echo\nchannels: [stable]\nversionPolicy: semver-skippatch\nmanifests: [config]\n\
                    imageRefTemplate: 'example.com/{{.Package}}:v{{.Version}}'\n";
    fs::write(at.join("olmkit.yaml"), settings).unwrap();
    for version in ["1.0.0", "1.0.1", "1.0.2"] {
        let bundle = format!("b/{version}");
        run(at, &["bundle", "generate", "--version", version, "--output-dir", &bundle], 0);
        let talk = said(&run(at, &["catalog", "add", "catalog", &bundle], 0));
        assert!(talk.contains("the version policy is `semver-skippatch`, as the bundle's"), "{talk}");
        assert!(talk.contains("the template of image references is `example.com/"), "{talk}");
    }
    let catalog = fs::read_to_string(at.join("catalog/echo/catalog.yaml")).unwrap();
    assert!(
        catalog.contains("- name: echo.v1.0.2\n  skips:\n  - echo.v1.0.0\n  - echo.v1.0.1\n"),
        "{catalog}"
    );
    assert!(catalog.contains("image: example.com/echo:v1.0.2\n"), "{catalog}");
    // What generate would write for the catalog is what the catalog has.
    let check = ["bundle", "generate", "--version", "1.0.2", "--catalog", "catalog", "--output-dir", "c"];
    run(at, &check, 0);
    let talk = said(&run(at, &["catalog", "add", "catalog", "c", "--policy", "semver"], 1));
    assert!(talk.contains("error"), "{talk}");
}

#[test]
fn a_bundle_without_an_image_is_embedded_only_when_that_is_meant() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0"]);
    let add = ["catalog", "add", "catalog", "b/0.1.0", "--channels", "stable"];
    let refused = said(&run(at, &add, 2));
    assert!(refused.contains("no image reference for `b/0.1.0`") && refused.contains("--embed"), "{refused}");
    assert!(!at.join("catalog").exists());
    run(at, &[&add[..], &["--embed"]].concat(), 0);
    let refused = add_to_stable(at, "0.1.0", 1);
    assert!(refused.contains("remove the bundle with `olmkit catalog remove`"), "{refused}");
}

#[test]
fn annotations_of_others_stay_in_a_bundle() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    copy_manifests(&at.join("config"));
    let settings = "package: echo\nmanifests: [config]\nannotations: {com.redhat.openshift.versions: v4.14}\n\
                    bundleAnnotations: {example.com/team: things}\n";
    fs::write(at.join("olmkit.yaml"), settings).unwrap();
    fs::write(
        at.join("bundle.Dockerfile"),
        "FROM scratch\nLABEL example.com/tier=\"gold\"\nLABEL example.com/team=stuff\n",
    )
    .unwrap();
    let generate = ["bundle", "generate", "--version", "1.0.0"];
    let talk = said(&run(at, &generate, 0));
    assert!(talk.contains("has the label `example.com/tier=gold`, which the bundle does not have"), "{talk}");
    assert!(talk.contains("has the label `example.com/team=stuff`, and the bundle has `things`"), "{talk}");
    let file = at.join("bundle/metadata/annotations.yaml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("com.redhat.openshift.versions: v4.14\n")
            && text.contains("example.com/team: things\n")
    );
    fs::write(&file, format!("{text}  example.com/own: kept\n")).unwrap();
    run(at, &generate, 0);
    run(at, &[&generate[..], &["--check"]].concat(), 0);
    assert!(fs::read_to_string(&file).unwrap().contains("example.com/own: kept\n"));
    let settings = "package: echo\nmanifests: [config]\nbundleAnnotations: {olmkit.x: y}\n";
    fs::write(at.join("olmkit.yaml"), settings).unwrap();
    assert!(said(&run(at, &generate, 1)).contains("`olmkit.x` is generated"));
}

#[test]
fn init_takes_over_the_metadata_of_a_bundle() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    copy_manifests(&at.join("deploy"));
    fs::create_dir_all(at.join("bundle/manifests")).unwrap();
    fs::create_dir_all(at.join("bundle/metadata")).unwrap();
    let csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: store.v0.9.0}\nspec: {displayName: Store}\n";
    fs::write(at.join("bundle/manifests/store.clusterserviceversion.yaml"), csv).unwrap();
    let annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: shop\n  \
                       operators.operatorframework.io.bundle.channels.v1: stable,v1\n  \
                       operators.operatorframework.io.bundle.channel.default.v1: v1\n  \
                       com.redhat.openshift.versions: v4.12-v4.16\n";
    fs::write(at.join("bundle/metadata/annotations.yaml"), annotations).unwrap();
    let csv = "bundle/manifests/store.clusterserviceversion.yaml";
    for (name, more) in [("a.yaml", &[][..]), ("b.yaml", &["--from-csv", csv][..])] {
        run(at, &[&["bundle", "init", "--package-file", name], more].concat(), 0);
        let text = fs::read_to_string(at.join(name)).unwrap();
        for line in [
            "package: shop\n",
            "- stable\n",
            "defaultChannel: v1\n",
            "  com.redhat.openshift.versions: v4.12-v4.16\n",
        ] {
            assert!(text.contains(line), "{line} {text}");
        }
    }
}

#[test]
fn init_leaves_the_base_to_a_kustomization_that_patches_it() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    copy_manifests(&at.join("config/default"));
    fs::write(
        at.join("config/default/kustomization.yaml"),
        "resources: [crd.yaml, operator.yaml, webhook.yaml]\n",
    )
    .unwrap();
    fs::create_dir_all(at.join("config/manifests/bases")).unwrap();
    let base = "config/manifests/bases/echo.clusterserviceversion.yaml";
    let csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: echo.v0.0.0}\nspec: {displayName: Echo}\n";
    fs::write(at.join(base), csv).unwrap();
    let resources = "resources: [bases/echo.clusterserviceversion.yaml, ../default]\n";
    let file = at.join("config/manifests/kustomization.yaml");
    for (name, text, is_base) in [
        ("plain.yaml", resources.to_owned(), true),
        ("patched.yaml", format!("{resources}patches: [{{path: patch.yaml}}]\n"), false),
    ] {
        fs::write(&file, text).unwrap();
        run(at, &["bundle", "init", "--package-file", name], 0);
        let text = fs::read_to_string(at.join(name)).unwrap();
        assert!(text.contains("\n- config/manifests\n"), "{text}");
        assert_eq!(text.contains(&format!("\nbase: {base}\n")), is_base, "{text}");
        assert!(text.contains("\npackage: echo\n"), "{text}");
    }
}
