use std::fs;
use std::io::Read as _;
use std::path::Path;

use olmkit_catalog::load::CatalogFiles;
use proptest::prelude::*;
use prost::Message as _;

use super::*;

/// A catalog of two packages: channels, skips, deprecations, manifests, a schema of somebody.
const TWO: &str = r#"
{"schema": "olm.package", "name": "b", "defaultChannel": "stable"}
{"schema": "olm.channel", "package": "b", "name": "stable", "entries": [{"name": "b.v1"}, {"name": "b.v2", "replaces": "b.v1"}, {"name": "b.v3", "replaces": "b.v1", "skips": ["b.v2"], "skipRange": "<3.0.0"}]}
{"schema": "olm.channel", "package": "b", "name": "fast", "entries": [{"name": "b.v3", "replaces": "b.v0"}]}
{"schema": "olm.bundle", "package": "b", "name": "b.v1", "image": "r/b:1", "properties": [{"type": "olm.package", "value": {"packageName": "b", "version": "1.0.0"}}]}
{"schema": "olm.bundle", "package": "b", "name": "b.v2", "image": "r/b:2", "properties": [{"type": "olm.package", "value": {"packageName": "b", "version": "2.0.0"}}]}
{"schema": "olm.bundle", "package": "b", "name": "b.v3", "image": "r/b:3", "properties": [{"type": "olm.package", "value": {"packageName": "b", "version": "3.0.0"}}, {"type": "olm.gvk", "value": {"group": "g", "version": "v1", "kind": "K"}}, {"type": "olm.csv.metadata", "value": {"displayName": "B"}}]}
{"schema": "olm.package", "name": "a", "defaultChannel": "only"}
{"schema": "olm.channel", "package": "a", "name": "only", "entries": [{"name": "a.v1"}]}
{"schema": "olm.bundle", "package": "a", "name": "a.v1", "image": "", "properties": [{"type": "olm.package", "value": {"packageName": "a", "version": "1.0.0"}}, {"type": "olm.bundle.object", "value": {"data": "eyJraW5kIjogIkNsdXN0ZXJTZXJ2aWNlVmVyc2lvbiJ9"}}]}
{"schema": "olm.deprecations", "package": "b", "entries": [{"reference": {"schema": "olm.channel", "name": "fast"}, "message": "use stable"}]}
{"schema": "my.note", "package": "b", "text": "n", "list": [1, null, {"x": true}]}
"#;

fn compiled(text: &str) -> (tempfile::TempDir, Compiled) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    build(&CatalogFiles::from_text("c", text), &path).unwrap();
    let compiled = Compiled::open(&path).unwrap();
    (dir, compiled)
}

fn listing(catalog: &Compiled) -> Vec<api::Bundle> {
    let mut listing = Listing::default();
    let mut bundles = Vec::new();
    let mut message = Vec::new();
    while listing.next(catalog, &mut message).unwrap() {
        bundles.push(api::Bundle::decode(message.as_slice()).unwrap());
        message.clear();
    }
    bundles
}

#[test]
fn bundles_are_listed_by_channel_package_and_name() {
    let (_dir, catalog) = compiled(TWO);
    let line = |bundle: &api::Bundle| {
        let api::Bundle { channel_name, csv_name, replaces, skips, skip_range, csv_json, object, .. } =
            bundle;
        format!(
            "{channel_name} {csv_name} replaces={replaces} skips={skips:?} range={skip_range} csv={csv_json} objects={object:?}"
        )
    };
    let lines: Vec<_> = listing(&catalog).iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    fast b.v3 replaces=b.v0 skips=[] range= csv= objects=[]
    only a.v1 replaces= skips=[] range= csv={"kind": "ClusterServiceVersion"} objects=["{\"kind\": \"ClusterServiceVersion\"}"]
    stable b.v1 replaces= skips=[] range= csv= objects=[]
    stable b.v2 replaces=b.v1 skips=[] range= csv= objects=[]
    stable b.v3 replaces=b.v1 skips=["b.v2"] range=<3.0.0 csv= objects=[]
    "#);
}

#[test]
fn single_bundles_have_manifests_and_no_edges() {
    let (_dir, catalog) = compiled(TWO);
    let decode = |message: Vec<u8>| api::Bundle::decode(message.as_slice()).unwrap();
    let bundle = decode(catalog.bundle("b", "stable", "b.v3").unwrap());
    assert_eq!((bundle.replaces.as_str(), bundle.skips.len(), bundle.skip_range.as_str()), ("", 0, "<3.0.0"));
    assert!(bundle.csv_json.contains(r#""displayName":"B""#), "{}", bundle.csv_json);
    assert_eq!(bundle.object, std::slice::from_ref(&bundle.csv_json));
    assert_eq!(decode(catalog.head("b", "stable").unwrap()), bundle);
    assert_eq!(decode(catalog.default_that_provides("g", "v1", "K").unwrap()), bundle);
    assert_eq!(decode(catalog.bundle_that_replaces("b.v2", "b", "stable").unwrap()), bundle);
    assert_eq!(decode(catalog.bundle_that_replaces("b.v1", "b", "stable").unwrap()).csv_name, "b.v2");
}

#[test]
fn entries() {
    let (_dir, catalog) = compiled(TWO);
    let lines = |entries: Result<Vec<api::ChannelEntry>, AskError>| match entries {
        Ok(entries) => {
            let line = |entry: &api::ChannelEntry| {
                format!("{} {} <- {}", entry.channel_name, entry.bundle_name, entry.replaces)
            };
            entries.iter().map(line).collect::<Vec<_>>().join(", ")
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(lines(catalog.entries_that_replace("b.v2")), "stable b.v3 <- b.v1");
    assert_eq!(lines(catalog.entries_that_replace("b.v1")), "stable b.v2 <- b.v1, stable b.v3 <- b.v1");
    assert_eq!(lines(catalog.entries_that_replace("")), "only a.v1 <- , stable b.v1 <- ");
    assert_eq!(lines(catalog.entries_that_replace("x")), "no channel entries found that replace x");
    let all = "fast b.v3 <- b.v0, stable b.v3 <- b.v1, stable b.v3 <- b.v2";
    assert_eq!(lines(catalog.entries_that_provide("g", "v1", "K")), all);
    assert_eq!(lines(catalog.heads_that_provide("g", "v1", "K")), all);
    let none = r#"no channel entries found that provide group:"g" version:"v2" kind:"K""#;
    assert_eq!(lines(catalog.heads_that_provide("g", "v2", "K")), none);
}

#[test]
fn what_is_not_there() {
    let (_dir, catalog) = compiled(TWO);
    let says = |answer: Result<Vec<u8>, AskError>| answer.unwrap_err().to_string();
    assert_eq!(says(catalog.package("B\"")), r#"package "B\"" not found"#);
    assert_eq!(says(catalog.bundle("x", "stable", "b.v1")), r#"package "x" not found"#);
    assert_eq!(says(catalog.bundle("b", "only", "b.v1")), r#"package "b", channel "only" not found"#);
    assert_eq!(
        says(catalog.bundle("b", "fast", "b.v1")),
        r#"package "b", channel "fast", bundle "b.v1" not found"#
    );
    assert_eq!(says(catalog.bundle_that_replaces("b.v1", "x", "fast")), "package x not found");
    assert_eq!(
        says(catalog.bundle_that_replaces("b.v1", "b", "fast")),
        r#"no entry found for package "b", channel "fast""#
    );
}

#[test]
fn packages_and_custom_blobs() {
    let (_dir, catalog) = compiled(TWO);
    assert_eq!(catalog.packages().unwrap(), ["a", "b"]);
    assert_eq!(catalog.counts(), (2, 4));
    let package = api::Package::decode(catalog.package("b").unwrap().as_slice()).unwrap();
    let channel = |channel: &api::Channel| {
        format!("{} {} {}", channel.name, channel.csv_name, channel.deprecation.is_some())
    };
    let channels: Vec<_> = package.channels.iter().map(channel).collect();
    assert_eq!(channels, ["fast b.v3 true", "stable b.v3 false"]);
    assert_eq!(catalog.customs("my.note", "b").unwrap().len(), 1);
    assert_eq!(catalog.customs("my.note", "a").unwrap().len(), 0);
    assert_eq!(catalog.customs("olm.bundle", "a").unwrap().len(), 0);
}

#[test]
fn blobs_as_json_lines_and_as_gzip() {
    let (_dir, catalog) = compiled(TWO);
    let read = |filter: &BlobFilter, gzip: bool| {
        let mut blobs = catalog.blobs(filter).unwrap();
        if gzip {
            blobs = blobs.gzipped();
        }
        let mut bytes = Vec::new();
        let len = blobs.len();
        while let Some(piece) = blobs.next(&catalog).unwrap() {
            bytes.extend(piece);
        }
        assert_eq!(bytes.len() as u64, len);
        bytes
    };
    let filter = |schema: &str, package: &str, name: &str| BlobFilter {
        schema: schema.into(),
        package: package.into(),
        name: name.into(),
    };
    for (filter, lines) in [
        (BlobFilter::default(), 11),
        (filter("olm.bundle", "", ""), 4),
        (filter("", "b", ""), 7),
        (filter("", "b", "b.v2"), 1),
        (filter("olm.package", "", "b"), 1),
        (filter("nothing", "", ""), 0),
    ] {
        let plain = read(&filter, false);
        assert_eq!(plain.iter().filter(|byte| **byte == b'\n').count(), lines, "{filter:?}");
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(read(&filter, true).as_slice()).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain, "{filter:?}");
    }
    let first = String::from_utf8(read(&filter("olm.package", "", "b"), false)).unwrap();
    assert_eq!(first, "{\"defaultChannel\":\"stable\",\"name\":\"b\",\"schema\":\"olm.package\"}\n");
}

#[test]
fn the_same_catalog_gives_the_same_bytes() {
    let (dir, first) = compiled(TWO);
    let (_other, second) = compiled(TWO);
    assert_eq!(fs::read(first.path()).unwrap(), fs::read(second.path()).unwrap());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn catalogs_with_errors_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let files = CatalogFiles::from_text("c", r#"{"schema": "olm.package", "name": "x"}"#);
    let error = build(&files, &dir.path().join("out")).unwrap_err();
    assert_eq!(error.to_string(), "cannot compile `c`: it has 2 errors");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_place_that_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = build(&CatalogFiles::from_text("c", TWO), &dir.path().join("file/out")).unwrap_err();
    assert!(matches!(error, BuildError::Write { .. }), "{error:?}");
    // A directory takes no file's place.
    fs::create_dir(dir.path().join("out")).unwrap();
    assert!(build(&CatalogFiles::from_text("c", TWO), &dir.path().join("out")).is_err());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left beside it");
}

#[test]
fn files_that_are_something_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let says = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Compiled::open(&path).unwrap_err().to_string().replace(&path.display().to_string(), "x")
    };
    let (_dir, catalog) = compiled(TWO);
    let good = fs::read(catalog.path()).unwrap();
    assert_eq!(says(b""), "`x` is not a compiled catalog");
    assert_eq!(says(&[0; 500]), "`x` is not a compiled catalog");
    assert_eq!(
        says(&good[..good.len() - 1]),
        "the compiled catalog `x` is damaged: it is cut off, or something follows its index"
    );
    let mut other = good.clone();
    other[16] = 9;
    assert_eq!(says(&other), "`x` is a compiled catalog of format 9; this program reads format 1");
    let mut other = good.clone();
    other[40] ^= 1;
    assert_eq!(says(&other), "the compiled catalog `x` is damaged: its header has another digest");
    let mut other = good.clone();
    *other.last_mut().unwrap() ^= 1;
    assert_eq!(says(&other), "the compiled catalog `x` is damaged: its index has another digest");
    assert!(matches!(Compiled::open(Path::new("/does/not/exist")), Err(OpenError::Read { .. })));
}

#[test]
fn every_changed_byte_of_the_parts_is_seen() {
    let (dir, catalog) = compiled(TWO);
    catalog.verify().unwrap();
    let good = fs::read(catalog.path()).unwrap();
    let index_at = u64::from_le_bytes(good[96..104].try_into().unwrap()) as usize;
    for at in format::HEADER..index_at {
        let mut bytes = good.clone();
        bytes[at] ^= 0x20;
        let path = dir.path().join("changed");
        fs::write(&path, &bytes).unwrap();
        let error = Compiled::open(&path).unwrap().verify().unwrap_err().to_string();
        assert!(error.ends_with("has another digest"), "{error}");
    }
}

/// Asks everything; nothing may panic or take memory that the file does not have.
fn ask_everything(catalog: &Compiled) {
    let names = [
        "a", "b", "stable", "fast", "only", "b.v1", "b.v2", "b.v3", "a.v1", "", "x", "my.note", "g", "v1",
        "K",
    ];
    let _ = (catalog.packages(), catalog.verify(), catalog.counts());
    for a in names {
        let _ = (catalog.package(a), catalog.entries_that_replace(a), catalog.customs("my.note", a));
        for b in names {
            let _ = (catalog.head(a, b), catalog.bundle("b", a, b), catalog.bundle_that_replaces(a, "b", b));
        }
    }
    let _ = catalog.entries_that_provide("g", "v1", "K");
    let _ = catalog.heads_that_provide("g", "v1", "K");
    let _ = catalog.default_that_provides("g", "v1", "K");
    let (mut listing, mut message) = (Listing::default(), Vec::new());
    while let Ok(true) = listing.next(catalog, &mut message) {
        message.clear();
    }
    for gzip in [false, true] {
        let Ok(blobs) = catalog.blobs(&BlobFilter::default()) else { continue };
        let mut blobs = if gzip { blobs.gzipped() } else { blobs };
        while let Ok(Some(_)) = blobs.next(catalog) {}
    }
}

/// A file whose digests are right and whose index is not: what somebody would send who means harm.
fn forged(good: &[u8], changes: &[(usize, u32)]) -> Vec<u8> {
    use sha2::{Digest as _, Sha256};
    let mut bytes = good.to_vec();
    let index_at = u64::from_le_bytes(good[96..104].try_into().unwrap()) as usize;
    let words = (bytes.len() - index_at) / 4;
    for (word, value) in changes {
        let at = index_at + word % words * 4;
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    let digest: [u8; 32] = Sha256::digest(&bytes[index_at..]).into();
    bytes[112..144].copy_from_slice(&digest);
    let digest: [u8; 32] = Sha256::digest(&bytes[..144]).into();
    bytes[144..176].copy_from_slice(&digest);
    bytes
}

#[test]
fn forged_files_do_no_harm() {
    let (dir, catalog) = compiled(TWO);
    let good = fs::read(catalog.path()).unwrap();
    let path = dir.path().join("forged");
    let open = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Compiled::open(&path)
    };
    ask_everything(&open(&forged(&good, &[])).unwrap());
    let index_at = u64::from_le_bytes(good[96..104].try_into().unwrap()) as usize;
    // Every word of the index, with values at the edges.
    for word in 0..(good.len() - index_at) / 4 {
        for value in [0, 1, 0x7fff_ffff, u32::MAX] {
            if let Ok(catalog) = open(&forged(&good, &[(word, value)])) {
                ask_everything(&catalog);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn arbitrary_changes_do_no_harm(changes in prop::collection::vec((any::<usize>(), prop_oneof![any::<u32>(), 0..64_u32]), 1..12)) {
        let (dir, catalog) = compiled(TWO);
        let path = dir.path().join("forged");
        fs::write(&path, forged(&fs::read(catalog.path()).unwrap(), &changes)).unwrap();
        if let Ok(catalog) = Compiled::open(&path) {
            ask_everything(&catalog);
        }
    }
}
