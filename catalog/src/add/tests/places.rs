//! Where blobs and entries go, and what has no place.

use olmkit_bundle::load::Content;

use super::*;
use crate::load::CatalogFile;

#[test]
fn blobs_go_where_those_of_their_kind_are() {
    let file =
        |path: &str, text: &str| CatalogFile { path: path.into(), content: Content::Text(text.into()) };
    let channel = "schema: olm.channel\npackage: redis\nname: stable\nentries:\n- name: redis.v0.1.0\n";
    let files = CatalogFiles {
        name: "catalog".into(),
        files: vec![
            file("redis/bundles/a.json", &format!("{}\n", rendered("0.1.0").blob.to_json())),
            file("redis/channels.yaml", channel),
            file("redis/package.yaml", "schema: olm.package\nname: redis\ndefaultChannel: stable\n"),
        ],
    };
    let catalog = Catalog::parse(&files);
    let change = add(&catalog, &[rendered("0.2.0")], &request("stable,fast", Policy::Semver)).unwrap();
    let paths: Vec<_> = change.files.iter().map(|file| (file.path.as_str(), file.created)).collect();
    assert_eq!(paths, [("redis/bundles/a.json", false), ("redis/channels.yaml", false)]);
    insta::assert_snapshot!(diff(channel, &change.files[1].text), @r"
     - name: redis.v0.1.0
    +- name: redis.v0.2.0
    +  replaces: redis.v0.1.0
    +---
    +entries:
    +- name: redis.v0.2.0
    +name: fast
    +package: redis
    +schema: olm.channel
    ");
}

#[test]
fn a_bundle_that_is_there_goes_into_further_channels() {
    let text = added("", &["0.1.0", "0.2.0"], &request("fast", Policy::Semver));
    let new = added(&text, &["0.1.0"], &request("stable", Policy::Semver));
    insta::assert_snapshot!(diff(&text, &new), @r"
     schema: olm.bundle
    +---
    +entries:
    +- name: redis.v0.1.0
    +name: stable
    +package: redis
    +schema: olm.channel
    ");
}

#[test]
fn the_default_channel_can_be_moved() {
    let text = added("", &["0.1.0"], &request("fast", Policy::Semver));
    let request =
        Request { default_channel: Some("stable".parse().unwrap()), ..request("stable", Policy::Semver) };
    let new = added(&text, &["0.2.0"], &request);
    let files = one_file(&text);
    let report = add(&Catalog::parse(&files), &[rendered("0.2.0")], &request).unwrap().report;
    assert_eq!(
        (report.default_channel.as_str(), report.previous_default_channel.as_deref()),
        ("stable", Some("fast"))
    );
    assert!(diff(&text, &new).starts_with(" ---\n-defaultChannel: fast\n+defaultChannel: stable\n"));
}

#[test]
fn edges_before_there_is_a_bundle() {
    let text = added("", &["0.1.0", "0.2.0"], &request("fast", Policy::Semver));
    let files = one_file(&text);
    let catalog = Catalog::parse(&files);
    let package = "redis".parse().unwrap();
    let version = VersionRelease::from(semver::Version::new(0, 2, 1));
    let ask = |channel: &str, policy| {
        edges(&catalog, &package, &channel.parse().unwrap(), "redis.v0.2.1", &version, policy)
    };
    assert_eq!(ask("stable", Policy::Semver).unwrap(), Edges::default());
    let edges = ask("fast", Policy::SemverSkippatch).unwrap();
    assert_eq!(
        (edges.replaces.as_deref(), edges.skips),
        (Some("redis.v0.1.0"), vec!["redis.v0.2.0".to_owned()])
    );
}

#[test]
fn what_is_there_already_stays_and_goes_into_further_channels() {
    let text = added("", &["0.1.0", "0.2.0"], &request("stable", Policy::Replaces));
    let files = one_file(&text);
    let catalog = Catalog::parse(&files);
    for version in ["0.1.0", "0.2.0"] {
        let change = add(&catalog, &[rendered(version)], &request("stable", Policy::Replaces)).unwrap();
        assert!(change.files.is_empty(), "{version}");
        assert_eq!(change.report.bundles.iter().map(|own| own.added).collect::<Vec<_>>(), [false]);
    }
    let both = Request {
        channels: vec!["stable".parse().unwrap(), "fast".parse().unwrap()],
        ..request("stable", Policy::Replaces)
    };
    let change = add(&catalog, &[rendered("0.2.0")], &both).unwrap();
    let entries = |at: usize| change.report.channels[at].entries.len();
    assert_eq!((change.files.len(), entries(0), entries(1)), (1, 0, 1));
    // What it has there is what a bundle yet to be made would get.
    let package = "redis".parse().unwrap();
    let (stable, version) = ("stable".parse().unwrap(), "0.2.0".parse::<semver::Version>().unwrap().into());
    let own = edges(&catalog, &package, &stable, "redis.v0.2.0", &version, Policy::Replaces).unwrap();
    assert_eq!(own.replaces.as_deref(), Some("redis.v0.1.0"));
}

#[test]
fn what_has_no_place_in_the_catalog() {
    let text = added("", &["0.1.0", "0.2.0"], &request("stable", Policy::Semver));
    let check = |text: &str, bundles: &[Rendered], request: &Request| {
        let files = one_file(text);
        let error = add(&Catalog::parse(&files), bundles, request).unwrap_err();
        let place = error.place().map(|place| format!("{place}: "));
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        let help = error.help().map(|help| format!(" (help: {help})")).unwrap_or_default();
        format!("{}{error}{cause}{help}", place.unwrap_or_default())
    };
    let stable = request("stable", Policy::Semver);
    let named = |version: &str, name: &'static str| {
        let mut bundle = rendered(version);
        bundle.blob.name = name.into();
        bundle
    };
    let mut other_package = rendered("0.3.0");
    other_package.blob.package = "valkey".into();
    let mut other_image = rendered("0.2.0");
    other_image.blob.image = "example.com/redis-bundle:latest".into();
    let answers = [
        check(&text, &[], &stable),
        check(&text, &[rendered("0.3.0")], &Request { channels: Vec::new(), ..stable.clone() }),
        check(&text, &[rendered("0.3.0"), rendered("0.3.0")], &stable),
        check(&text, &[named("0.2.0", "redis.other")], &stable),
        check(&text, &[named("0.2.0+2", "redis.v0.2.0-2")], &stable),
        check(&text, &[rendered("0.3.0"), named("0.3.0", "redis.other")], &stable),
        check(&text, &[other_image], &request("fast", Policy::Semver)),
        check(&text, &[rendered("0.1.5")], &request("stable", Policy::Replaces)),
        check(&text, &[rendered("v1")], &stable),
        check(&text, &[rendered("0.3.0"), other_package], &stable),
        check(
            &text,
            &[rendered("0.3.0")],
            &Request { default_channel: Some("beta".parse().unwrap()), ..stable.clone() },
        ),
        check(&(text.clone() + "---\n- a\n"), &[rendered("0.3.0")], &stable),
        check(&text.replace("  replaces: redis.v0.1.0\n", ""), &[rendered("0.3.0")], &stable),
        check(&text.replace("version: \"0.1.0\"", "version: x"), &[rendered("0.3.0")], &stable),
        check(
            &text.replace("- name: redis.v0.1.0\n", "- name: redis.v0.1.0\n  skips: [redis.v0.3.0]\n"),
            &[rendered("0.3.0")],
            &stable,
        ),
    ];
    insta::assert_snapshot!(answers.join("\n"), @r"
    no bundle to add
    no channel to add
    `redis.v0.3.0` is given twice (help: name every bundle once)
    catalog.yaml:32:3: `redis.other` has the version 0.2.0, which `redis.v0.2.0` has already (help: give the bundle another version)
    catalog.yaml:12:9: `redis.v0.2.0-2` has the version 0.2.0+2, which `redis.v0.2.0` has already (help: give the bundle another version)
    `redis.v0.3.0` has the version 0.3.0, which `redis.other` has already (help: give the bundle another version)
    catalog.yaml:29:7: the catalog has another `redis.v0.2.0`: they differ in `image` (help: pass the --image-ref-template, or the reference, that names the same image as before; a new image needs a new version)
    catalog.yaml:12:9: `redis.v0.1.5` is not higher than the head of the channel `stable`, `redis.v0.2.0` (help: use the policy `semver` or `semver-skippatch`, which find its place)
    `redis.vv1` has the version `v1`, which is not semantic: unexpected character 'v' while parsing major version number (help: write `spec.version` as `MAJOR.MINOR.PATCH`, without `v`)
    `redis.v0.3.0` belongs to the package `valkey`, the bundles before it to `redis` (help: add the bundles of one package at a time)
    `redis` has no channel `beta` to be its default (help: name a channel that the package has, or one the bundle goes into)
    catalog.yaml:38:1: the catalog cannot be read completely: a blob of a catalog is a map, found a list (help: `catalog validate` lists every place)
    catalog.yaml:13:7: the channel `stable` is invalid: it has several heads (help: `catalog validate` lists what is wrong)
    catalog.yaml:11:9: the version of `redis.v0.1.0` in the channel `stable` is not known (help: `catalog validate` lists what is wrong)
    catalog.yaml:15:7: with `redis.v0.3.0` the channel `stable` would be invalid: every entry is replaced or skipped (help: its edges and those of its neighbours do not fit together: choose a version policy with --policy, or edit the channel by hand)
    ");
}

#[test]
fn two_bundles_never_have_one_image() {
    let text = added("", &["0.1.0"], &request("stable", Policy::Semver));
    let files = one_file(&text);
    let error = |bundles: &[Rendered]| {
        add(&Catalog::parse(&files), bundles, &request("stable", Policy::Semver)).unwrap_err().to_string()
    };
    let with_image = |version: &str, image: &str| {
        let mut bundle = rendered(version);
        bundle.blob.image = image.to_owned().into();
        bundle
    };
    assert_eq!(
        error(&[with_image("0.2.0", "example.com/redis-bundle:v0.1.0")]),
        "`redis.v0.2.0` has the image `example.com/redis-bundle:v0.1.0`, which `redis.v0.1.0` has already"
    );
    assert_eq!(
        error(&[with_image("0.2.0", "example.com/x:y"), with_image("0.3.0", "example.com/x:y")]),
        "`redis.v0.3.0` has the image `example.com/x:y`, which `redis.v0.2.0` has already"
    );
}

#[test]
fn a_policy_that_was_asked_for_is_not_ignored() {
    let text = added("", &["0.1.0", "0.1.1"], &request("stable", Policy::SemverSkippatch));
    let files = one_file(&text);
    let again = |policy| {
        let request = Request { strict: true, ..request("stable", policy) };
        add(&Catalog::parse(&files), &[rendered("0.1.1")], &request).map(|change| change.files.len())
    };
    assert_eq!(again(Policy::SemverSkippatch).unwrap(), 0);
    assert_eq!(
        again(Policy::SkipRange).unwrap_err().to_string(),
        "`redis.v0.1.1` is already in the channel `stable`, with other edges than the policy `skip-range` gives"
    );
}

#[test]
fn a_template_is_not_added_to() {
    let files = one_file("schema: olm.template.basic\nentries: []\n");
    let error =
        add(&Catalog::parse(&files), &[rendered("0.1.0")], &request("stable", Policy::Semver)).unwrap_err();
    assert!(matches!(error, AddError::Template { .. }), "{error}");
}

#[test]
fn what_opm_would_refuse_is_not_written() {
    let with = |kind: &str, value: serde_json::Value, image: &str| {
        let mut bundle = rendered("0.2.0");
        let property =
            fbc::Property { kind: kind.to_owned().into(), value: Some(value.into()), ..Default::default() };
        bundle.blob.properties.push(property);
        let image = fbc::RelatedImage { image: image.to_owned().into(), ..Default::default() };
        bundle.blob.related_images.push(image);
        bundle
    };
    // What is wrong with the catalog already is not the bundle's.
    let broken = with_bundles(
        "{schema: olm.channel, package: redis, name: stable, entries: [{name: redis.v0.1.0}]}\n",
        &["0.1.0"],
    );
    let broken = format!("{broken}---\n{{schema: olm.bundle, package: other, name: other.v1, image: 'A'}}\n");
    for text in ["", &broken] {
        let files = one_file(text);
        let add = |bundle| add(&Catalog::parse(&files), &[bundle], &request("stable", Policy::Semver));
        let refused = |bundle| add(bundle).unwrap_err().to_string();
        assert_eq!(add(with("example.com/x", json!(5), "example.com/redis:v1")).unwrap().files.len(), 1);
        let package = json!({ "packageName": "redis", "version": "0.2.0" });
        let twice = "opm would refuse the catalog: the bundle `redis.v0.2.0` has 2 `olm.package` properties instead of one [fbc-bundle-package-property]";
        assert_eq!(refused(with("olm.package", package, "redis")), twice);
        let object = refused(with("olm.bundle.object", json!({"data": "!!"}), "redis"));
        assert!(object.ends_with(" [fbc-bundle-object-invalid]") && !object.contains(';'), "{object}");
        let two = refused(with("olm.gvk", json!(5), "${IMAGE}"));
        assert!(two.contains(" [fbc-bundle-image-invalid]"), "{two}");
        assert!(two.contains("; ") && two.contains(" [fbc-bundle-property-invalid]"), "{two}");
    }
}
