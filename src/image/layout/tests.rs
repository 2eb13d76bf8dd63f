use super::*;
use crate::image::{Access, Config, FileTree, Image, Index, Layer, Place, Platform, Root, Unpack};
use insta::assert_snapshot;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

fn image(content: &str) -> Root {
    for_platform("linux/amd64", content).into()
}

fn for_platform(platform: &str, content: &str) -> Image {
    let mut tree = FileTree::new();
    tree.add_file("manifests/service.yaml", content).unwrap();
    Image::new(&platform.parse().unwrap(), &Config::default(), &[Layer::build(&tree).unwrap()])
}

fn tag(text: &str) -> Tag {
    text.parse().unwrap()
}

fn layout() -> (tempfile::TempDir, Layout) {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::new(dir.path().join("images"));
    (dir, layout)
}

/// Every file of a layout with its content.
fn files(layout: &Layout) -> BTreeMap<String, Vec<u8>> {
    let tree = FileTree::from_dir(layout.dir()).unwrap();
    let file = |path: &str| Some((path.to_owned(), tree.file(path)?.read().unwrap()));
    tree.iter().filter_map(|(path, _)| file(path.as_str())).collect()
}

fn content_of(root: &Root) -> String {
    let tree = root.image(None).unwrap().unpack(&Unpack::default()).unwrap();
    String::from_utf8(tree.file("manifests/service.yaml").unwrap().read().unwrap()).unwrap()
}

fn told(layout: &Layout, error: &LayoutError) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    format!("{error}{source}").replace(layout.dir().to_str().unwrap(), "DIR")
}

#[test]
fn tags_by_the_specification() {
    for good in ["v1", "v1.0.0", "1.0.0+build-2_x", "a--b", "quay.io/example/bundle:v1", "a@sha256:00"] {
        assert_eq!(good.parse::<Tag>().unwrap().as_str(), good);
    }
    for bad in ["", "-a", "a-", "a..b", "a---b", "a//b", "/a", "a b", "ключ", "a\n", &"a".repeat(256)] {
        assert!(bad.parse::<Tag>().is_err(), "{bad}");
    }
}

#[test]
fn what_is_written_is_read() {
    let (_dir, layout) = layout();
    layout.write(&tag("v1"), &image("one\n")).unwrap();
    let root = layout.read(Some(&tag("v1"))).unwrap();
    assert_eq!(root.digest(), image("one\n").digest());
    assert_eq!(content_of(&root), "one\n");
    assert_eq!(files(&layout).len(), 5);
    let index = String::from_utf8(files(&layout)["index.json"].clone()).unwrap();
    assert_snapshot!(index.replace(&root.digest().to_string(), "DIGEST"), @r#"{"manifests":[{"annotations":{"org.opencontainers.image.ref.name":"v1"},"digest":"DIGEST","mediaType":"application/vnd.oci.image.manifest.v1+json","size":401}],"mediaType":"application/vnd.oci.image.index.v1+json","schemaVersion":2}"#);
}

#[test]
fn an_index_of_platforms_is_read_whole() {
    let (_dir, layout) = layout();
    let images = ["linux/amd64", "linux/arm64"].map(|platform| for_platform(platform, "same\n"));
    let root = Root::from(Index::new(images.into()).unwrap());
    layout.write(&tag("v1"), &root).unwrap();
    let again = layout.read(None).unwrap();
    assert_eq!(again.digest(), root.digest());
    let arm: Platform = "linux/arm64".parse().unwrap();
    assert_eq!(again.image(Some(&arm)).unwrap().platform(), Some(&arm));
    // A shared layer, two configurations, two manifests, the index; `oci-layout` and `index.json`.
    assert_eq!(files(&layout).len(), 8);
}

#[test]
fn two_tags_live_side_by_side_in_any_order() {
    let (_dir, one) = layout();
    one.write(&tag("v1"), &image("one\n")).unwrap();
    one.write(&tag("v2"), &image("two\n")).unwrap();
    assert_eq!(content_of(&one.read(Some(&tag("v1"))).unwrap()), "one\n");
    assert_eq!(content_of(&one.read(Some(&tag("v2"))).unwrap()), "two\n");
    let tags: Vec<String> = one.tags().unwrap().into_iter().map(|(tag, _)| tag).collect();
    assert_eq!(tags, ["v1", "v2"]);

    let (_dir, other) = layout();
    other.write(&tag("v2"), &image("two\n")).unwrap();
    other.write(&tag("v1"), &image("one\n")).unwrap();
    other.write(&tag("v1"), &image("one\n")).unwrap();
    assert_eq!(files(&one), files(&other));
}

#[test]
fn a_tag_written_again_lets_go_of_its_old_image_only() {
    let (_dir, twice) = layout();
    twice.write(&tag("v1"), &image("old\n")).unwrap();
    twice.write(&tag("same-as-old"), &image("old\n")).unwrap();
    twice.write(&tag("v1"), &image("new\n")).unwrap();
    assert_eq!(content_of(&twice.read(Some(&tag("same-as-old"))).unwrap()), "old\n");
    twice.write(&tag("same-as-old"), &image("new\n")).unwrap();

    let (_dir, once) = layout();
    once.write(&tag("v1"), &image("new\n")).unwrap();
    once.write(&tag("same-as-old"), &image("new\n")).unwrap();
    assert_eq!(files(&twice), files(&once));
}

#[test]
fn what_other_tools_left_stays() {
    let (_dir, layout) = layout();
    layout.write(&tag("theirs"), &image("theirs\n")).unwrap();
    let mut index: serde_json::Value =
        serde_json::from_slice(&fs::read(layout.index_path()).unwrap()).unwrap();
    index["annotations"] = serde_json::json!({"made.by": "another tool"});
    index["manifests"][0]["platform"] =
        serde_json::json!({"os": "linux", "architecture": "amd64", "os.version": "1"});
    fs::write(layout.index_path(), index.to_string()).unwrap();
    let stray = layout.blobs_path().join("0".repeat(64));
    fs::write(&stray, "nobody's").unwrap();

    layout.write(&tag("ours"), &image("old\n")).unwrap();
    layout.write(&tag("ours"), &image("new\n")).unwrap();
    let after: serde_json::Value = serde_json::from_slice(&fs::read(layout.index_path()).unwrap()).unwrap();
    assert_eq!(after["annotations"], index["annotations"]);
    assert_eq!(after["manifests"][1], index["manifests"][0]);
    assert!(stray.exists());
}

#[test]
fn nothing_is_removed_when_a_neighbour_cannot_be_understood() {
    let (_dir, layout) = layout();
    layout.write(&tag("v1"), &image("old\n")).unwrap();
    let mut index: serde_json::Value =
        serde_json::from_slice(&fs::read(layout.index_path()).unwrap()).unwrap();
    let unknown =
        serde_json::json!({"mediaType": "x/y", "size": 1, "digest": format!("sha256:{}", "0".repeat(64))});
    index["manifests"].as_array_mut().unwrap().push(unknown);
    fs::write(layout.index_path(), index.to_string()).unwrap();
    let before = files(&layout);
    layout.write(&tag("v1"), &image("new\n")).unwrap();
    let after = files(&layout);
    assert!(before.keys().all(|path| after.contains_key(path)));
}

#[test]
fn left_behind_temporary_files_are_removed_by_the_next_write() {
    let (_dir, layout) = layout();
    layout.write(&tag("v1"), &image("one\n")).unwrap();
    let before = files(&layout);
    fs::write(layout.blobs_path().join(".olmkit-dead"), "half").unwrap();
    layout.write(&tag("v1"), &image("one\n")).unwrap();
    assert_eq!(files(&layout), before);
}

/// As in any output directory: nothing is written, and nothing removed, where a link leads.
#[test]
fn links_of_a_layout_that_lead_out_of_it_are_refused() {
    for part in ["blobs", "blobs/sha256", "oci-layout", "index.json"] {
        let (dir, layout) = layout();
        layout.write(&tag("v1"), &image("one\n")).unwrap();
        let (path, outside) = (layout.dir().join(part), dir.path().join("outside"));
        fs::rename(&path, &outside).unwrap();
        std::os::unix::fs::symlink(&outside, &path).unwrap();
        let foreign = outside.join(".olmkit-foreign");
        if outside.is_dir() {
            fs::write(&foreign, "").unwrap();
        }
        let error = layout.write(&tag("v2"), &image("two\n")).unwrap_err().to_string();
        assert!(error.ends_with(&format!("`{part}` is a link that leads out of it")), "{error}");
        assert!(!outside.is_dir() || foreign.exists(), "{part}");
        // Inside of it, one is followed.
        fs::remove_file(&path).unwrap();
        fs::rename(&outside, layout.dir().join("inside")).unwrap();
        std::os::unix::fs::symlink(layout.dir().join("inside"), &path).unwrap();
        layout.write(&tag("v2"), &image("two\n")).unwrap();
    }
}

#[test]
fn a_layout_whose_writer_was_killed_at_the_start_is_completed() {
    let (_dir, layout) = layout();
    fs::create_dir_all(layout.dir()).unwrap();
    fs::write(layout.version_path(), "").unwrap();
    assert!(matches!(layout.read(None), Err(LayoutError::Missing { .. })));
    layout.write(&tag("v1"), &image("one\n")).unwrap();
    assert_eq!(content_of(&layout.read(None).unwrap()), "one\n");
}

#[test]
fn a_write_that_fails_changes_nothing() {
    let (_other_dir, other) = layout();
    other.write(&tag("v2"), &image("two\n")).unwrap();
    let broken = other.read(None).unwrap();
    // After it was opened, so that it is noticed while it is copied.
    let layer = other.blob_path(broken.images()[0].layers()[0].digest());
    let length = fs::metadata(&layer).unwrap().len();
    fs::write(&layer, vec![0; length as usize]).unwrap();

    let (_dir, layout) = layout();
    layout.write(&tag("v1"), &image("one\n")).unwrap();
    let before = files(&layout);
    let error = layout.write(&tag("v2"), &broken).unwrap_err();
    assert!(matches!(error, LayoutError::Blob { source: BlobError::Corrupted { .. }, .. }), "{error:?}");
    assert!(error.help().is_some());
    assert_eq!(files(&layout), before);

    // The configuration comes after the layer, which is new and goes again.
    let broken = {
        other.write(&tag("v2"), &image("two\n")).unwrap();
        let root = other.read(None).unwrap();
        let configuration = other.blob_path(root.images()[0].configuration().digest());
        let length = fs::metadata(&configuration).unwrap().len();
        fs::write(&configuration, vec![0; length as usize]).unwrap();
        root
    };
    layout.write(&tag("v2"), &broken).unwrap_err();
    assert_eq!(files(&layout), before);
}

#[test]
fn writing_again_mends_a_damaged_blob() {
    let (_dir, layout) = layout();
    layout.write(&tag("v1"), &image("one\n")).unwrap();
    let before = files(&layout);
    for path in before.keys().filter(|path| path.starts_with("blobs/")) {
        fs::write(layout.dir().join(path), "damaged").unwrap();
    }
    layout.write(&tag("v1"), &image("one\n")).unwrap();
    assert_eq!(files(&layout), before);
}

#[test]
fn an_image_that_was_read_outlives_its_layout() {
    let (_dir, layout) = layout();
    layout.write(&tag("v1"), &image("one\n")).unwrap();
    let root = layout.read(None).unwrap();
    fs::remove_dir_all(layout.dir()).unwrap();
    assert_eq!(content_of(&root), "one\n");
}

#[test]
fn an_image_can_be_copied_within_its_layout() {
    let (_dir, layout) = layout();
    layout.write(&tag("v1"), &image("one\n")).unwrap();
    let root = layout.read(None).unwrap();
    layout.write(&tag("v2"), &root).unwrap();
    assert_eq!(layout.read(Some(&tag("v2"))).unwrap().digest(), root.digest());
}

/// What reading says after something was done to a sound layout.
fn damaged(damage: impl FnOnce(&Layout, &Image)) -> String {
    let (_dir, layout) = layout();
    layout.write(&tag("v1"), &image("one\n")).unwrap();
    let root = layout.read(None).unwrap();
    let image = &root.images()[0];
    damage(&layout, image);
    let error = layout.read(Some(&tag("v1"))).unwrap_err();
    let text = told(&layout, &error);
    let text = text.replace(&image.digest().to_string(), "MANIFEST");
    let text = text.replace(&image.configuration().digest().to_string(), "CONFIG");
    let text = text.replace(&image.layers()[0].digest().to_string(), "LAYER");
    text.replace(&format!("{} bytes", image.layers()[0].size()), "SIZE bytes")
}

fn overwrite(layout: &Layout, digest: Digest) {
    let path = layout.blob_path(digest);
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn damage_is_noticed() {
    let manifest = damaged(|layout, image| overwrite(layout, image.digest()));
    assert!(
        manifest
            .starts_with("the layout `DIR` has an image that cannot be used: blob `MANIFEST` is corrupted")
    );
    let configuration = damaged(|layout, image| overwrite(layout, image.configuration().digest()));
    assert!(
        configuration
            .starts_with("the layout `DIR` has an image that cannot be used: blob `CONFIG` is corrupted")
    );
    assert_snapshot!(damaged(|layout, image| {
        fs::write(layout.blob_path(image.layers()[0].digest()), "short").unwrap();
    }), @"the layout `DIR` has an image that cannot be used: blob `LAYER` should have SIZE bytes and has 5");
    assert_snapshot!(damaged(|layout, image| {
        fs::remove_file(layout.blob_path(image.layers()[0].digest())).unwrap();
    }), @"the layout `DIR` has an image that cannot be used: blob `LAYER` is missing");
    assert_snapshot!(damaged(|layout, image| {
        let path = layout.blob_path(image.layers()[0].digest());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
    }), @"the layout `DIR` has an image that cannot be used: cannot read blob `LAYER`");
    assert_snapshot!(damaged(|layout, _| fs::write(layout.index_path(), "{").unwrap()), @"`DIR/index.json` is not a valid image index: EOF while parsing an object at line 1 column 1");
    assert_snapshot!(damaged(|layout, _| fs::remove_file(layout.index_path()).unwrap()), @"`DIR` is not an OCI image layout: it has no file `index.json`");
    assert_snapshot!(damaged(|layout, _| fs::remove_file(layout.version_path()).unwrap()), @"`DIR` is not an OCI image layout: it has no file `oci-layout`");
    assert_snapshot!(damaged(|layout, _| {
        fs::write(layout.version_path(), r#"{"imageLayoutVersion":"2.0.0"}"#).unwrap();
    }), @"`DIR` is not an OCI image layout: its version is `2.0.0`, expected `1.0.0`");
    assert_snapshot!(damaged(|layout, _| File::create(layout.index_path()).unwrap().set_len(MAX_INDEX + 1).unwrap()), @"cannot read `DIR/index.json`: it has more than 16777216 bytes");
    assert_snapshot!(damaged(|layout, image| {
        let index = fs::read_to_string(layout.index_path()).unwrap();
        let elsewhere = format!("sha512:{}", "0".repeat(128));
        fs::write(layout.index_path(), index.replace(&image.digest().to_string(), &elsewhere)).unwrap();
    }).replace(&"0".repeat(128), "ZEROS"), @"the layout `DIR` has an image that cannot be used: `sha512:ZEROS` is not a SHA-256 digest, the only kind that is supported: expected `sha256:` and 64 digits or letters from `a` to `f`");
    assert_snapshot!(damaged(|layout, image| {
        let index = fs::read_to_string(layout.index_path()).unwrap();
        fs::write(layout.index_path(), index.replace(&image.digest().to_string(), "sha256:../../../etc/passwd")).unwrap();
    }), @"`DIR/index.json` is not a valid image index: Invalid encoded value ../../../etc/passwd at line 1 column 109");
}

#[test]
fn a_damaged_layer_is_noticed_when_it_is_used() {
    let (_dir, layout) = layout();
    layout.write(&tag("v1"), &image("one\n")).unwrap();
    let digest = layout.read(None).unwrap().images()[0].layers()[0].digest();
    overwrite(&layout, digest);
    let root = layout.read(None).unwrap();
    let error = root.images()[0].unpack(&Unpack::default()).unwrap_err();
    assert!(error.to_string().starts_with(&format!("blob `{digest}` is corrupted")), "{error}");
}

#[test]
fn a_fifo_in_place_of_a_file_does_not_make_it_wait() {
    assert_snapshot!(damaged(|layout, image| {
        let path = layout.blob_path(image.digest());
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }), @"the layout `DIR` has an image that cannot be used: cannot read blob `MANIFEST`");
}

#[test]
fn the_image_that_is_meant_without_a_tag() {
    let (_dir, layout) = layout();
    assert_snapshot!(told(&layout, &layout.read(None).unwrap_err()), @"there is no OCI image layout at `DIR`");
    layout.write(&tag("v1"), &image("one\n")).unwrap();
    assert_eq!(content_of(&layout.read(None).unwrap()), "one\n");
    assert_snapshot!(told(&layout, &layout.read(Some(&tag("v9"))).unwrap_err()), @"the layout `DIR` has no image tagged `v9`; it has `v1`");
    layout.write(&tag("v2"), &image("two\n")).unwrap();
    let error = layout.read(None).unwrap_err();
    assert_snapshot!(told(&layout, &error), @"the layout `DIR` has 2 images and none is tagged `latest`; it has `v1`, `v2`");
    assert!(error.help().is_some());
    let place: Place = format!("oci:{}", layout.dir().display()).parse().unwrap();
    let stored = place.store(&image("three\n"), &Access::default()).unwrap();
    assert_eq!(stored.reference, format!("oci:{}:latest", layout.dir().display()));
    assert_eq!(content_of(&place.load(&Access::default()).unwrap()), "three\n");
}

#[test]
fn directories_with_other_things_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("Cargo.toml"), "").unwrap();
    let layout = Layout::new(dir.path());
    let error = layout.write(&tag("v1"), &image("one\n")).unwrap_err();
    assert_snapshot!(told(&layout, &error), @"`DIR` is not an OCI image layout: it has files, but no file `oci-layout`");
    assert!(error.help().is_some());
    assert_eq!(files(&layout).len(), 1);
    assert_snapshot!(told(&layout, &layout.read(None).unwrap_err()), @"`DIR` is not an OCI image layout: it has no file `oci-layout`");

    let file = Layout::new(dir.path().join("Cargo.toml"));
    assert_snapshot!(told(&file, &file.write(&tag("v1"), &image("one\n")).unwrap_err()), @"cannot create `DIR`: File exists (os error 17)");
    assert_snapshot!(told(&file, &file.read(None).unwrap_err()), @"`DIR` is not an OCI image layout: it has no file `oci-layout`");
}

#[test]
fn files_can_be_read_by_others() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, layout) = layout();
    layout.write(&tag("v1"), &image("one\n")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    // What the umask lets through shows on a file that is made without further ado.
    let plain = layout.dir().join("plain");
    fs::write(&plain, "").unwrap();
    assert_eq!(mode(&layout.index_path()), mode(&plain));
}

#[test]
fn writers_and_readers_at_once_see_whole_images_and_lose_none() {
    let (_dir, layout) = layout();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            loop {
                let last = done.load(Ordering::SeqCst);
                match layout.read(Some(&tag("shared"))) {
                    // Any writer's image, but whole: unpacking checks every digest.
                    Ok(root) => {
                        assert!(content_of(&root).starts_with("writer "));
                        seen += 1;
                    }
                    Err(LayoutError::Missing { .. } | LayoutError::NotALayout { .. }) => {}
                    Err(LayoutError::NoSuchTag { .. }) => {}
                    Err(error) => panic!("{}", told(&layout, &error)),
                }
                if last {
                    return seen;
                }
            }
        });
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let layout = &layout;
                scope.spawn(move || {
                    for round in 0..5 {
                        let root = image(&format!("writer {writer} round {round}\n"));
                        layout.write(&tag("shared"), &root).unwrap();
                        layout.write(&tag(&format!("own-{writer}")), &root).unwrap();
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::SeqCst);
        assert!(reader.join().unwrap() > 0);
    });
    let tags = layout.tags().unwrap();
    assert_eq!(tags.len(), 9);
    for (name, _) in tags {
        content_of(&layout.read(Some(&tag(&name))).unwrap());
    }
    // Eight images of three blobs, the last of which `shared` names too.
    assert_eq!(files(&layout).len(), 8 * 3 + 2);
}
