use super::*;
use crate::image::{Compression, Config, Layer, Platform};
use flate2::write::GzEncoder;
use insta::assert_snapshot;
use proptest::prelude::*;
use std::io::Write;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// One entry of a tar, with a path that no writer would let through.
fn entry(kind: EntryType, path: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..path.len()].copy_from_slice(path);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(path: &str, content: &str) -> Vec<u8> {
    entry(EntryType::Regular, path.as_bytes(), content.as_bytes())
}

fn dir(path: &str) -> Vec<u8> {
    entry(EntryType::Directory, path.as_bytes(), b"")
}

/// A pax record that is counted right.
fn pax(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let length = (rest..).find(|length| length.to_string().len() + rest == *length).unwrap();
    let mut record = format!("{length} {key}=").into_bytes();
    record.extend(value);
    record.push(b'\n');
    entry(EntryType::XHeader, b"pax", &record)
}

fn end() -> Vec<u8> {
    vec![0; 1024]
}

fn image_of(layers: &[Vec<Vec<u8>>]) -> Image {
    let layer = |entries: &Vec<Vec<u8>>| {
        let tar = [entries.concat(), end()].concat();
        Layer::of_blob(Blob::from_bytes(MediaType::ImageLayerGzip, gzip(&tar)), Digest::of(&tar))
    };
    let layers: Vec<Layer> = layers.iter().map(layer).collect();
    Image::new(&Platform::default(), &Config::default(), &layers)
}

fn listing(tree: &FileTree) -> String {
    let line = |(path, node): (&TreePath, &Node)| match node {
        Node::Dir => format!("{path}/\n"),
        Node::File(file) => {
            let content = String::from_utf8(file.read().unwrap()).unwrap();
            format!("{path}{} = {content}\n", if file.is_executable() { "*" } else { "" })
        }
        Node::Link(name) => format!("{path} -> {name}\n"),
    };
    tree.iter().map(line).collect()
}

fn unpacked(layers: &[Vec<Vec<u8>>]) -> String {
    listing(&image_of(layers).unpack(&Unpack::default()).unwrap())
}

fn told(error: &UnpackError) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    let text = format!("{error}{source}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    // Digests differ between cases and say nothing.
    let mut parts = text.split("sha256:");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |told, part| told + "DIGEST" + &part[64..])
}

fn refused(entries: Vec<Vec<u8>>) -> String {
    told(&image_of(&[entries]).unpack(&Unpack::default()).unwrap_err())
}

#[test]
fn upper_layers_win_and_remove() {
    let lower = vec![
        dir("a/"),
        file("a/kept", "1"),
        file("a/changed", "1"),
        file("a/removed", "1"),
        file("b/gone/with/all", "1"),
        file("c/old", "1"),
        file("file-to-dir", "1"),
        file("dir-to-file/x", "1"),
        file("dir-to-file0", "neighbour in sorting order"),
    ];
    let upper = vec![
        file("a/.wh.removed", ""),
        file("a/changed", "2"),
        file(".wh.b", ""),
        file("c/.wh..wh..opq", ""),
        file("c/new", "2"),
        file("file-to-dir/x", "2"),
        file("dir-to-file", "2"),
    ];
    assert_snapshot!(unpacked(&[lower, upper]), @r"
    a/
    a/changed = 2
    a/kept = 1
    c/
    c/new = 2
    dir-to-file = 2
    dir-to-file0 = neighbour in sorting order
    file-to-dir/
    file-to-dir/x = 2
    ");
}

#[test]
fn a_removal_concerns_only_the_layers_below() {
    assert_snapshot!(unpacked(&[vec![file("x", "1")], vec![file("x", "2"), file(".wh.x", "")]]), @"x = 2");
    assert_snapshot!(unpacked(&[vec![file("x", "1")], vec![file("y", "2"), file(".wh..wh..opq", "")]]), @"y = 2");
}

#[test]
fn paths_as_other_tools_write_them() {
    let entries = vec![dir("./"), dir("./d/"), file("./d/f", "1"), dir("d/"), dir("e")];
    assert_snapshot!(unpacked(&[entries]), @r"
    d/
    d/f = 1
    e/
    ");
}

#[test]
fn records_before_an_entry_are_read() {
    let long = "n".repeat(150);
    let text = unpacked(&[vec![
        entry(EntryType::GNULongName, b"././@LongLink", format!("{long}\0").as_bytes()),
        file("short", "gnu"),
        // A value with a line feed, as binary attributes have.
        [pax("SCHILY.xattr.security.capability", b"\x01\n\x02"), file("capable", "1")].concat(),
        [pax("path", "ключ".as_bytes()), file("key", "pax")].concat(),
        [entry(EntryType::XGlobalHeader, b"g", b"13 comment=x\n"), file("after-global", "1")].concat(),
        file("after", "own name"),
    ]]);
    assert_snapshot!(text.replace(&long, "LONG"), @r"
    after = own name
    after-global = 1
    capable = 1
    LONG = gnu
    ключ = pax
    ");
}

#[test]
fn executables_stay_executable() {
    let mut tree = FileTree::new();
    tree.add_executable("bin/run", "#!").unwrap();
    let image = Image::new(&Platform::default(), &Config::default(), &[Layer::build(&tree).unwrap()]);
    assert_snapshot!(listing(&image.unpack(&Unpack::default()).unwrap()), @r"
    bin/
    bin/run* = #!
    ");
}

#[test]
fn paths_that_lead_out_are_refused() {
    assert_snapshot!(refused(vec![file("../etc/passwd", "")]), @"layer `DIGEST` has a bad entry: `../etc/passwd` cannot be a path in an image: it points outside the image through `..`");
    assert_snapshot!(refused(vec![file("a/../../b", "")]), @"layer `DIGEST` has a bad entry: `a/../../b` cannot be a path in an image: it points outside the image through `..`");
    assert_snapshot!(refused(vec![file("/etc/passwd", "")]), @"layer `DIGEST` has a bad entry: `/etc/passwd` cannot be a path in an image: it is absolute");
    assert_snapshot!(refused(vec![dir("/")]), @"layer `DIGEST` has a bad entry: `/` cannot be a path in an image: it is absolute");
    assert_snapshot!(refused(vec![dir("..")]), @"layer `DIGEST` has a bad entry: `..` cannot be a path in an image: it points outside the image through `..`");
    assert_snapshot!(refused(vec![file("a/.wh...", "")]), @"layer `DIGEST` has a bad entry: `a/..` cannot be a path in an image: it points outside the image through `..`");
    assert_snapshot!(refused(vec![file("../.wh.x", "")]), @"layer `DIGEST` has a bad entry: `../x` cannot be a path in an image: it points outside the image through `..`");
    assert_snapshot!(refused(vec![file("../.wh..wh..opq", "")]), @"layer `DIGEST` has a bad entry: `..` cannot be a path in an image: it points outside the image through `..`");
    assert_snapshot!(refused(vec![pax("path", b"../../x"), file("harmless", "")]), @"layer `DIGEST` has a bad entry: `../../x` cannot be a path in an image: it points outside the image through `..`");
    assert_snapshot!(refused(vec![entry(EntryType::GNULongName, b"", b"/abs\0"), file("harmless", "")]), @"layer `DIGEST` has a bad entry: `/abs` cannot be a path in an image: it is absolute");
}

#[test]
fn paths_that_are_none_are_refused() {
    assert_snapshot!(refused(vec![file("", "")]), @"layer `DIGEST` has a bad entry: `` cannot be a path in an image: it is empty");
    assert_snapshot!(refused(vec![file("a//b", "")]), @"layer `DIGEST` has a bad entry: `a//b` cannot be a path in an image: it has an empty component or a `.`");
    assert_snapshot!(refused(vec![file("file/", "")]), @"layer `DIGEST` has a bad entry: `file/` cannot be a path in an image: it has an empty component or a `.`");
    assert_snapshot!(refused(vec![file("a\u{1b}[31m", "")]), @r"layer `DIGEST` has a bad entry: `a\u{1b}[31m` cannot be a path in an image: it has a control character");
    assert_snapshot!(refused(vec![entry(EntryType::Regular, b"caf\xe9", b"")]), @"layer `DIGEST` has a bad entry: `caf�` cannot be a path in an image: it is not UTF-8");
    assert_snapshot!(refused(vec![pax("path", b"a\0b"), file("harmless", "")]), @r"layer `DIGEST` has a bad entry: `a\0b` cannot be a path in an image: it has a control character");
}

#[test]
fn links_and_devices_are_refused() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::GNUSparse,
        EntryType::new(b'V'),
    ] {
        let text = refused(vec![entry(kind, b"dir/x", b"")]);
        assert_eq!(
            text,
            format!(
                "layer `DIGEST` has `dir/x`, a {}; expected regular files and directories",
                name_of(kind)
            )
        );
    }
    assert_snapshot!(refused(vec![pax("GNU.sparse.major", b"1"), file("x", "")]), @"layer `DIGEST` has `x`, a sparse file; expected regular files and directories");
}

#[test]
fn contradictions_are_refused() {
    assert_snapshot!(refused(vec![file("x", "1"), file("x", "2")]), @"layer `DIGEST` has a bad entry: `x` is in the image twice");
    assert_snapshot!(refused(vec![file("x", "1"), file("x/y", "2")]), @"layer `DIGEST` has a bad entry: `x/y` cannot be in the image: `x` is a file, not a directory");
    assert_snapshot!(refused(vec![file("x/y", "1"), file("x", "2")]), @"layer `DIGEST` has a bad entry: `x` is in the image twice");
    assert_snapshot!(refused(vec![pax("size", b"99"), file("x", "1")]), @"layer `DIGEST` is not a valid archive: a pax record contradicts an entry's size");
}

#[test]
fn broken_archives_are_refused() {
    let mut bad_checksum = file("x", "1");
    bad_checksum[0] = b'y';
    assert_snapshot!(refused(vec![bad_checksum]), @"layer `DIGEST` is not a valid archive: archive header checksum mismatch");
    // Something else in place of a header: the bytes are not shown.
    assert_snapshot!(refused(vec![vec![0xff; 512]]), @"layer `DIGEST` is not a valid archive: the header of an entry is not one of a tar");
    assert_snapshot!(refused(vec![entry(EntryType::XHeader, b"", b"no record"), file("x", "")]), @"layer `DIGEST` is not a valid archive: a pax record is malformed");
    assert_snapshot!(refused(vec![entry(EntryType::XHeader, b"", b"99 path=x\n"), file("x", "")]), @"layer `DIGEST` is not a valid archive: a pax record is malformed");
    assert_snapshot!(refused(vec![entry(EntryType::XHeader, b"", b"0 path=x\n"), file("x", "")]), @"layer `DIGEST` is not a valid archive: a pax record is malformed");

    let not_gzip =
        Layer::of_blob(Blob::from_bytes(MediaType::ImageLayerGzip, b"plain".to_vec()), Digest::of(b""));
    let image = Image::new(&Platform::default(), &Config::default(), &[not_gzip]);
    assert_snapshot!(told(&image.unpack(&Unpack::default()).unwrap_err()), @"layer `DIGEST` is not a valid archive: unexpected end of file");
}

#[test]
fn content_that_ends_early_is_refused() {
    let whole = file("x", &"c".repeat(600));
    let tar = &whole[..900];
    let layer = Layer::of_blob(Blob::from_bytes(MediaType::ImageLayer, tar.to_vec()), Digest::of(tar));
    let image = Image::new(&Platform::default(), &Config::default(), &[layer]);
    assert_snapshot!(told(&image.unpack(&Unpack::default()).unwrap_err()), @"layer `DIGEST` is not a valid archive: unexpected end of file");
}

#[test]
fn a_layer_that_is_not_what_the_configuration_says_is_refused() {
    let tar = [file("x", "1"), end()].concat();
    let layer = Layer::of_blob(Blob::from_bytes(MediaType::ImageLayerGzip, gzip(&tar)), Digest::of(b"other"));
    let image = Image::new(&Platform::default(), &Config::default(), &[layer]);
    assert_snapshot!(told(&image.unpack(&Unpack::default()).unwrap_err()), @"layer `DIGEST` unpacks to the diff ID `DIGEST`, the image's configuration says `DIGEST`");
}

#[test]
fn bytes_after_the_archive_belong_to_the_diff_id() {
    let tar = [file("x", "1"), end(), vec![0; 9000], b"trailer".to_vec()].concat();
    let layer = Layer::of_blob(Blob::from_bytes(MediaType::ImageLayerGzip, gzip(&tar)), Digest::of(&tar));
    let image = Image::new(&Platform::default(), &Config::default(), &[layer]);
    assert_snapshot!(listing(&image.unpack(&Unpack::default()).unwrap()), @"x = 1");
}

#[test]
fn gzip_in_several_members_is_one_stream() {
    let tar = [file("x", "1"), end()].concat();
    let members = [gzip(&tar[..300]), gzip(&tar[300..])].concat();
    let layer = Layer::of_blob(Blob::from_bytes(MediaType::ImageLayerGzip, members), Digest::of(&tar));
    let image = Image::new(&Platform::default(), &Config::default(), &[layer]);
    assert_snapshot!(listing(&image.unpack(&Unpack::default()).unwrap()), @"x = 1");
}

#[test]
fn zstd_layers_are_read() {
    let mut tree = FileTree::new();
    tree.add_file("x", "1").unwrap();
    let layers = [Compression::Gzip, Compression::Zstd].map(|kind| Layer::build_with(&tree, kind).unwrap());
    assert_eq!(layers[0].diff_id(), layers[1].diff_id());
    let image = Image::new(&Platform::default(), &Config::default(), &layers[1..]);
    assert_snapshot!(listing(&image.unpack(&Unpack::default()).unwrap()), @"x = 1");
}

#[test]
fn layers_of_unknown_kinds_are_named() {
    let kind = MediaType::Other("application/vnd.example.layer.v1.tar+brotli".into());
    let layer = Layer::of_blob(Blob::from_bytes(kind, b"x".to_vec()), Digest::of(b""));
    let error = Image::new(&Platform::default(), &Config::default(), &[layer])
        .unpack(&Unpack::default())
        .unwrap_err();
    assert_snapshot!(told(&error), @"layer `DIGEST` has the media type `application/vnd.example.layer.v1.tar+brotli`, expected a tar, plain or with gzip or zstd");
    assert_snapshot!(error.help().unwrap(), @"build the image with gzip layers");
}

/// The refusal of two files of ten bytes, under these limits.
fn limited(limits: Limits) -> String {
    let image = image_of(&[vec![file("x", "0123456789")], vec![file("y", "0123456789")]]);
    told(&image.unpack(&Unpack { limits, ..Unpack::default() }).unwrap_err())
}

#[test]
fn limits_hold_across_layers() {
    // A file and the end of a layer's tar are 512 * 4 bytes.
    // A file of ten bytes with a path of one costs eleven.
    let enough = Limits { kept: 22, total: 4096, entries: 2 };
    let image = image_of(&[vec![file("x", "0123456789")], vec![file("y", "0123456789")]]);
    image.unpack(&Unpack { limits: enough, ..Unpack::default() }).unwrap();

    assert_snapshot!(limited(Limits { kept: 21, ..enough }), @"layer `DIGEST` exceeds the limit of 21 bytes of files");
    assert_snapshot!(limited(Limits { total: 4095, ..enough }), @"layer `DIGEST` exceeds the limit of 4095 bytes after decompression");
    assert_snapshot!(limited(Limits { entries: 1, ..enough }), @"layer `DIGEST` exceeds the limit of 1 entries");
}

#[test]
fn a_bomb_is_given_up_on_early() {
    let limits = Limits { kept: 1 << 20, total: 1 << 20, entries: 10 };
    let zeros = "\0".repeat(8 << 20);
    for bomb in [
        // A large file; one that hides behind the end of the archive; records before an entry.
        vec![file("bomb", &zeros)],
        vec![end(), zeros.clone().into_bytes()],
        vec![entry(EntryType::GNULongName, b"", zeros.as_bytes()), file("x", "")],
        vec![entry(EntryType::XHeader, b"", zeros.as_bytes()), file("x", "")],
    ] {
        let error = image_of(&[bomb]).unpack(&Unpack { limits, ..Unpack::default() }).unwrap_err();
        assert!(matches!(error, UnpackError::TooLarge { limit: 0x10_0000, .. }), "{error}");
    }
}

/// A small image does not take what a large one may, however it is cut into files and layers.
#[test]
fn an_image_that_unpacks_to_very_many_times_its_size_is_refused() {
    let layer = |numbers: std::ops::Range<u32>, size: usize| {
        let mut tree = FileTree::new();
        numbers.for_each(|number| tree.add_file(&format!("f{number}"), vec![0; size]).unwrap());
        Layer::build_with(&tree, Compression::Zstd).unwrap()
    };
    let image_of = |layers: &[Layer]| Image::new(&Platform::default(), &Config::default(), layers);
    for layers in [vec![layer(0..4, 1 << 20)], vec![layer(0..2, 1 << 20), layer(2..4, 1 << 20)]] {
        let image = image_of(&layers);
        let packed: u64 = image.layers().iter().map(Blob::size).sum();
        let limit = packed * 100 + (1 << 20);
        let expected = format!(
            "layer `DIGEST` unpacks to too much: {packed} bytes of layers may unpack to {limit} bytes, 1 MiB and 100 times their size"
        );
        assert_eq!(told(&image.unpack(&Unpack::default()).unwrap_err()), expected);
        // Also what nobody asked for takes time.
        let only = vec!["other".parse().unwrap()];
        assert_eq!(told(&image.unpack(&Unpack { only, ..Unpack::default() }).unwrap_err()), expected);
    }
    // A mebibyte is always free.
    image_of(&[layer(0..1, 1_000_000)]).unpack(&Unpack::default()).unwrap();
}

/// A frame of zstd that needs a window of 2 GiB.
#[test]
fn a_layer_that_needs_too_much_memory_is_not_called_invalid() {
    let frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 1, 0, 0];
    let layer = Layer::of_blob(Blob::from_bytes(MediaType::ImageLayerZstd, frame), Digest::of(b""));
    let image = Image::new(&Platform::default(), &Config::default(), &[layer]);
    assert_snapshot!(told(&image.unpack(&Unpack::default()).unwrap_err()), @"not enough memory to unpack layer `DIGEST`: Frame requires too much memory for decoding");
}

/// A path of 2,000 directories takes four megabytes as a tree, and a few bytes in an archive.
#[test]
fn deep_paths_are_paid_for() {
    let limits = Limits { kept: 1 << 20, ..Limits::default() };
    for name in ["x", ".wh.x", ".wh..wh..opq"] {
        let deep = |n: i32| {
            [pax("path", format!("{n}/{}{name}", "d/".repeat(2000)).as_bytes()), file("x", "")].concat()
        };
        let error = image_of(&[(0..100).map(deep).collect()])
            .unpack(&Unpack { limits, ..Unpack::default() })
            .unwrap_err();
        assert!(matches!(error, UnpackError::TooLarge { unit: "bytes of files", .. }), "{error}");
    }
}

#[test]
fn a_size_that_is_only_claimed_takes_no_memory() {
    let mut claim = Header::new_gnu();
    claim.set_path("x").unwrap();
    claim.set_mode(0o644);
    claim.set_size(u64::MAX / 2);
    claim.set_cksum();
    // The little that it is packed may not unpack to so much.
    assert!(refused(vec![claim.as_bytes().to_vec()]).contains("layer `DIGEST` unpacks to too much: "));
    claim.set_size(1 << 20);
    claim.set_cksum();
    assert_snapshot!(refused(vec![claim.as_bytes().to_vec()]), @"layer `DIGEST` is not a valid archive: unexpected end of file");
}

#[test]
fn what_is_not_asked_for_is_passed_over() {
    let layers = [
        vec![entry(EntryType::Symlink, b"bin", b""), file("etc/passwd", "1"), file("configs/p/c.yaml", "1")],
        vec![entry(EntryType::Char, b"dev/null", b""), file("configsx", "2"), file("configs/p/d.yaml", "2")],
    ];
    let only = |path: &str| Unpack { only: vec![path.parse().unwrap()], ..Unpack::default() };
    assert_snapshot!(listing(&image_of(&layers).unpack(&only("configs")).unwrap()), @r"
    configs/
    configs/p/
    configs/p/c.yaml = 1
    configs/p/d.yaml = 2
    ");

    // A link at the path, above it or below it would change what lies there.
    let link = |path: &str| image_of(&[vec![entry(EntryType::Symlink, path.as_bytes(), b"")]]);
    for path in ["a", "a/b", "a/b/c"] {
        assert!(matches!(link(path).unpack(&only("a/b")), Err(UnpackError::Kind { .. })), "{path}");
    }
    assert!(link("a/c").unpack(&only("a/b")).unwrap().is_empty());

    let removals =
        [vec![file("a/b", "1"), file("a/c", "1")], vec![file(".wh.other", ""), file("a/.wh.b", "")]];
    assert_snapshot!(listing(&image_of(&removals).unpack(&only("a")).unwrap()), @r"
    a/
    a/c = 1
    ");
}

/// Work stays in proportion to the input: 50,000 removals over 50,000 files take well under a second.
#[test]
fn many_removals_are_cheap() {
    let names = 0..50_000;
    let lower = names.clone().map(|n| file(&format!("d/{n}"), "")).collect();
    let upper = names.map(|n| file(&format!("d/.wh.{n}"), "")).collect();
    assert_eq!(unpacked(&[lower, upper]), "d/\n");
}

proptest! {
    #[test]
    fn a_tree_survives_being_packed(
        files in prop::collection::btree_map("[a-c]{1,3}(/[d-fж]{1,90}){0,3}", "[a-z]{0,600}", 0..6),
    ) {
        let mut tree = FileTree::new();
        for (path, content) in files {
            // A file may lie where another needs a directory; such a name is left out.
            let _ = tree.add_file(&path, content);
        }
        let image = Image::new(&Platform::default(), &Config::default(), &[Layer::build(&tree).unwrap()]);
        prop_assert_eq!(listing(&image.unpack(&Unpack::default()).unwrap()), listing(&tree));
    }

    #[test]
    fn no_bytes_make_it_panic(tar in prop::collection::vec(any::<u8>(), 0..3000), at in 0usize..2000, byte: u8) {
        let of = |tar: Vec<u8>| {
            let layer = Layer::of_blob(Blob::from_bytes(MediaType::ImageLayer, tar.clone()), Digest::of(&tar));
            let _ = Image::new(&Platform::default(), &Config::default(), &[layer]).unpack(&Unpack::default());
        };
        of(tar);
        let mut nearly = [pax("path", b"long"), file("x", "content"), end()].concat();
        nearly[at] = byte;
        of(nearly);
    }
}
