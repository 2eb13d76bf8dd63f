//! Images, archives and layouts: what is pushed, unpacked and replaced.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{TEMPLATE, added, bundle_and_catalog, bundles, inode, olmkit, run, said, tree};

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
    let talk =
        said(&run(at, &["catalog", "add", "catalog", "b/0.1.0", "--channels", "stable", "--embed"], 0));
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
fn the_only_image_is_pushed_to_its_own_name() {
    let root = bundle_and_catalog();
    let at = root.path();
    // Nobody listens there: that the push fails shows where it goes.
    let name = "127.0.0.1:1/hs:v1";
    for place in ["oci:one", "oci-archive:one.tar", "docker-archive:docker.tar"] {
        run(at, &["bundle", "build", "bundle", "--to", &format!("{place}:{name}")], 0);
        let refused = said(&run(at, &["bundle", "push", place], 3));
        assert!(refused.contains(&format!("cannot push to `{name}`")), "{place}: {refused}");
        let refused = said(&run(at, &["bundle", "build", place, "--push"], 3));
        assert!(refused.contains(&format!("cannot push to `{name}`")), "{place}: {refused}");
    }
    run(at, &["bundle", "build", "bundle", "--to", "oci:one:127.0.0.1:1/hs:v2"], 0);
    run(at, &["bundle", "build", "bundle", "--to", "oci-archive:tag.tar:v1"], 0);
    for (place, shown) in [("oci:one", "oci:one"), ("oci-archive:tag.tar", "oci-archive:tag.tar:v1")] {
        let refused = said(&run(at, &["bundle", "push", place], 2));
        assert!(refused.contains(&format!("`{shown}` has no registry reference")), "{refused}");
        assert!(refused.contains(&format!("`olmkit bundle push {place} HOST/NAME:TAG`")), "{refused}");
        let refused = said(&run(at, &["bundle", "build", place, "--push"], 2));
        assert!(refused.contains("help: name the destination: `--to HOST/NAME:TAG`"), "{refused}");
    }
    // A destination without a tag is not named by what is there.
    let refused = said(&run(at, &["bundle", "build", "bundle", "--to", "oci-archive:one.tar", "--push"], 2));
    assert!(refused.contains("`oci-archive:one.tar` has no registry reference"), "{refused}");
    let refused = said(&run(at, &["bundle", "push", "oci:nowhere"], 3));
    assert!(refused.contains("there is no OCI image layout at `nowhere`"), "{refused}");
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
    assert!(said(&run(&empty, &unpack, 3)).contains("the directory `.` is not empty"));
    // A killed run leaves some of the files, and those that it was writing.
    fs::remove_file(empty.join("metadata/annotations.yaml")).unwrap();
    fs::create_dir(empty.join(".olmkit-new-x")).unwrap();
    fs::write(empty.join(".olmkit-new-x/0"), "annotat").unwrap();
    run(&empty, &unpack, 0);
    assert_eq!(tree(&empty), whole);
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

/// `latest` is nobody's choice where no tag was given.
#[test]
fn an_archive_without_a_tag_is_replaced_by_the_same_image_alone() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0", "0.2.0"]);
    let build = |version: &str, to: &str, code: i32| {
        said(&run(at, &["bundle", "build", &format!("b/{version}"), "--to", to], code))
    };
    for to in ["oci-archive:my image.tar", "docker-archive:docker.tar"] {
        let file = at.join(to.split_once(':').unwrap().1);
        build("0.1.0", to, 0);
        build("0.1.0", to, 0);
        let before = fs::read(&file).unwrap();
        let refused = build("0.2.0", to, 3);
        assert!(refused.contains("already has another image, `sha256:"), "{refused}");
        let dry = ["image", "copy", to, to, "--dry-run"];
        run(at, &dry, 0);
        assert_eq!(fs::read(&file).unwrap(), before);
    }
    // What the help names replaces it.
    let refused = build("0.2.0", "oci-archive:my image.tar", 3);
    assert!(refused.contains("name its tag: `'oci-archive:my image.tar:latest'`"), "{refused}");
    build("0.2.0", "oci-archive:my image.tar:latest", 0);
    // A copy of what has no name in its archive.
    run(at, &["image", "copy", "oci-archive:my image.tar", "docker-archive:nameless.tar"], 0);
    build("0.1.0", "docker-archive:nameless.tar:example.com/echo:v1", 3);
}

/// Every command that is printed can be pasted into a shell, whatever directories and archives are called.
#[test]
fn hints_are_quoted_for_a_shell_and_name_places_whole() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0"]);
    for name in ["-b", "my bundle"] {
        Command::new("cp").args(["-r", "--", "b/0.1.0", name]).current_dir(at).status().unwrap();
    }
    run(
        at,
        &["catalog", "add", "my catalog", "b/0.1.0", "--channels", "stable", TEMPLATE[0], TEMPLATE[1]],
        0,
    );
    // The first command between backticks, run by a shell as it stands.
    let pasted = |talk: &str| {
        let command = talk.split('`').find(|part| part.starts_with("olmkit ")).expect(talk).to_owned();
        let command = command.replace("olmkit ", concat!(env!("CARGO_BIN_EXE_olmkit"), " "));
        let command =
            command.replace("HOST/NAME:TAG", "oci:pasted:v1").replace(" --to oci", " --data-only --to oci");
        let command =
            if command.contains("bundle build") { command.replace(" --data-only", "") } else { command };
        let output = Command::new("sh").args(["-c", &command]).current_dir(at).output().unwrap();
        (output.status.code().unwrap(), format!("{command}: {}", said(&output)))
    };
    for (args, code) in [
        (&["bundle", "validate", "--", "-b"][..], 0),
        (&["bundle", "validate", "my bundle"], 0),
        (&["catalog", "add", "my catalog", "my bundle", "--channels", "fast", TEMPLATE[0], TEMPLATE[1]], 0),
        (&["catalog", "path", "my catalog", "--package", "nothing-like-it-at-all", "--from", "x"], 1),
    ] {
        let talk = said(&run(at, args, code));
        if talk.contains('`') && talk.contains("olmkit ") {
            assert_eq!(pasted(&talk).0, 0, "{talk}");
        }
    }
    run(at, &["bundle", "build", "my bundle", "--to", "oci:my images:v1"], 0);
    run(at, &["bundle", "build", "my bundle", "--to", "oci:my images:v2"], 0);
    let talk = said(&run(at, &["image", "inspect", "oci:my images"], 3));
    assert!(talk.contains("name one: `'oci:my images:TAG'`"), "{talk}");
    let talk = said(&run(at, &["image", "inspect", "my images"], 2));
    assert!(talk.contains("`'oci:my images:TAG'`") && talk.contains("`v1`, `v2`"), "{talk}");
    let talk = said(&run(at, &["catalog", "push", "oci:my images:v1", "127.0.0.1:1/a/b:v1"], 1));
    assert!(talk.contains("`olmkit bundle push 'oci:my images:v1' HOST/NAME:TAG`"), "{talk}");
    assert!(talk.contains("`olmkit image copy 'oci:my images:v1' HOST/NAME:TAG`"), "{talk}");
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
    for to in ["catalog/index.olmkit", "catalog/echo-operator/index.olmkit"] {
        let refused = said(&run(dir.path(), &["catalog", "build-index", "catalog", "--to", to], 2));
        assert!(refused.contains(&format!("`{to}` is in the catalog's directory")), "{refused}");
    }
    assert!(added(&old, dir.path()).is_empty());
    // A device or a pipe is not replaced by a file, nor waited for.
    assert!(std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap().success());
    let refused = said(&run(dir.path(), &["catalog", "build-index", "catalog", "--to", "pipe"], 2));
    assert!(refused.contains("`pipe` exists and is not a compiled catalog"), "{refused}");
    assert!(fs::metadata(dir.path().join("pipe")).unwrap().file_type().is_fifo());
    let serve = ["catalog", "serve", "--index", "pipe", "--port", "0"];
    let refused = olmkit(dir.path(), &serve).output().unwrap();
    assert!(!refused.status.success() && said(&refused).contains("`pipe`"), "{refused:?}");
    fs::write(dir.path().join("index"), "").unwrap();
    for _ in 0..2 {
        run(dir.path(), &["catalog", "build-index", "catalog", "--to", "index"], 0);
    }
}

#[test]
fn a_link_to_write_through_is_kept_and_one_that_leads_nowhere_is_refused() {
    let dir = bundle_and_catalog();
    let at = dir.path();
    run(at, &["catalog", "build-index", "catalog", "--to", "real.olmkit"], 0);
    let old = inode(&at.join("real.olmkit"));
    symlink("real.olmkit", at.join("link.olmkit")).unwrap();
    run(at, &["catalog", "build-index", "catalog", "--to", "link.olmkit"], 0);
    assert!(fs::symlink_metadata(at.join("link.olmkit")).unwrap().is_symlink());
    assert_ne!(inode(&at.join("real.olmkit")), old, "it was written");
    symlink("nowhere", at.join("dangling")).unwrap();
    for command in [
        &["catalog", "build-index", "catalog", "--to", "dangling"][..],
        &["bundle", "build", "bundle", "--to", "oci-archive:dangling"],
        &["bundle", "build", "bundle", "--to", "docker-archive:dangling"],
    ] {
        let refused = said(&run(at, command, 3));
        assert!(refused.contains("it is a link that leads nowhere"), "{refused}");
        assert!(fs::symlink_metadata(at.join("dangling")).unwrap().is_symlink());
    }
}

#[test]
fn a_layout_that_somebody_keeps_to_himself_is_not_waited_for_without_end() {
    let dir = bundle_and_catalog();
    let at = dir.path();
    run(at, &["bundle", "build", "bundle", "--to", "oci:layout:v1"], 0);
    let kept = fs::File::open(at.join("layout/oci-layout")).unwrap();
    kept.lock().unwrap();
    let begun = Instant::now();
    let reading = olmkit(at, &["image", "digest", "oci:layout:v1"]).spawn().unwrap();
    let writing = said(&run(at, &["bundle", "build", "bundle", "--to", "oci:layout:v2"], 4));
    assert!(writing.contains("timed out waiting for another writer of `layout`"), "{writing}");
    assert_eq!(reading.wait_with_output().unwrap().status.code(), Some(4));
    assert!(begun.elapsed() < Duration::from_secs(60));
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
    fs::create_dir(at(".olmkit-new-x")).unwrap();
    fs::write(at(".olmkit-new-x/0"), "half").unwrap();
    let install =
        ["operator", "install", "--bundle", "bundle", "--namespace", "op", "--simulate", "cluster.json"];
    run(root.path(), &install, 0);
    assert!(!at(".olmkit-new-x").exists());
}

/// Whoever ships a bundle says what Kubernetes refuses of it, and nobody ships what is no bundle.
#[test]
fn errors_of_a_bundle_are_said_where_it_is_shipped() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    bundles(at, &["0.1.0"]);
    let manifests = at.join("b/0.1.0/manifests");
    let bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name, labels: {x: true}}\n";
    fs::write(manifests.join("bad.yaml"), bad).unwrap();
    let build: &[&str] = &["bundle", "build", "b/0.1.0", "--to", "oci:images:v1"];
    let add: &[&str] = &["catalog", "add", "catalog", "b/0.1.0", "--channels", "stable", "--embed"];
    let json: &[&str] = &["--output", "json"];
    for args in [build.to_vec(), [build, json].concat(), add.to_vec(), [add, json].concat()] {
        let talk = said(&run(at, &args, 0));
        assert!(talk.contains("`b/0.1.0` has 2 errors, and OLM may not install it"), "{talk}");
        assert!(talk.contains("`Bad_Name` cannot name a ConfigMap"), "{talk}");
        assert!(talk.contains("expected a string in `metadata.labels.x`, found a boolean"), "{talk}");
    }
    fs::remove_file(manifests.join("echo-operator.clusterserviceversion.yaml")).unwrap();
    let catalog = tree(&at.join("catalog"));
    // Nobody listens there: what is refused is refused before.
    let push: &[&str] = &["bundle", "push", "b/0.1.0", "127.0.0.1:1/a/b:v1"];
    for args in [build, push, add] {
        let refused = said(&run(at, args, 1));
        assert!(refused.contains("has no ClusterServiceVersion in"), "{args:?}: {refused}");
    }
    assert_eq!(tree(&at.join("catalog")), catalog);
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
fn certificates_are_read_from_plain_files_alone() {
    let dir = tempfile::tempdir().unwrap();
    assert!(std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap().success());
    for file in ["pipe", "/dev/zero"] {
        let inspect = ["image", "inspect", "registry.invalid/a", "--ca-file", file, "--timeout", "20s"];
        let refused = said(&run(dir.path(), &inspect, 3));
        assert!(refused.contains("not a plain file"), "{refused}");
    }
}

#[test]
fn a_credentials_file_that_is_none_is_refused_by_every_verb() {
    let dir = bundle_and_catalog();
    fs::write(dir.path().join("mine"), "user: me\n").unwrap();
    for (file, expected) in
        [("missing", "cannot read `missing`"), ("mine", "`mine` is not a credentials file")]
    {
        let words = ["catalog", "path", "catalog", "--authfile", file];
        let refused = olmkit(dir.path(), &words).output().unwrap();
        assert!(!refused.status.success() && said(&refused).contains(expected), "{refused:?}");
    }
}

/// A bundle where a catalog is needed, and the other way round.
#[test]
fn the_other_kind_is_named_with_the_command_for_it() {
    let root = bundle_and_catalog();
    let at = root.path();
    run(at, &["bundle", "build", "bundle", "--to", "oci:images:bundle"], 0);
    run(at, &["catalog", "build", "catalog", "--data-only", "--to", "oci:images:catalog"], 0);
    for (args, code, error, help) in [
        (
            &["catalog", "build", "bundle", "--to", "oci:x"][..],
            1,
            "`bundle` is a bundle, not a catalog",
            "`olmkit catalog add CATALOG bundle`",
        ),
        (&["catalog", "path", "bundle"], 1, "`bundle` is a bundle, not a catalog", "`olmkit catalog add"),
        (
            &["bundle", "validate", "oci:images:catalog"],
            1,
            "is the image of a catalog, not of a bundle",
            "`olmkit catalog render oci:images:catalog`",
        ),
        (
            &["catalog", "validate", "oci:images:bundle"],
            1,
            "is the image of a bundle, not of a catalog",
            "`olmkit bundle unpack oci:images:bundle`",
        ),
        (&["bundle", "validate", "catalog"], 1, "checked 1 bundle", "`olmkit catalog validate catalog`"),
        (
            &["catalog", "push", "catalog"],
            2,
            "no registry reference given for `catalog`",
            "`olmkit catalog push catalog HOST/NAME:TAG`",
        ),
        (
            &["bundle", "push", "oci:images:bundle"],
            2,
            "`oci:images:bundle` has no registry reference",
            "`olmkit bundle push oci:images:bundle HOST/NAME:TAG`",
        ),
        (
            &["image", "digest", "oci:bundle:v1"],
            3,
            "`bundle` is not an OCI image layout",
            "name a directory with images",
        ),
        (
            &["image", "copy", "oci:images:bundle", "oci-archive:new/x.tar"],
            3,
            "cannot write `new/x.tar`",
            "`mkdir -p new`",
        ),
        (
            &["catalog", "template", "catalog/echo-operator/catalog.yaml"],
            1,
            "`olm.package` is not a template schema",
            "this is already a catalog",
        ),
    ] {
        let output = run(at, args, code);
        let text = said(&output) + &String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(error) && text.contains(help), "{args:?}: {text}");
        assert!(!text.contains(".olmkit-"), "{text}");
    }
}
