//! Catalogs that differ, and what is said of it.

use super::*;
use crate::load::CatalogFiles;

fn catalog(entries: &str, bundles: &[&str]) -> CatalogFiles {
    let mut text = format!(
        "{{schema: olm.package, name: p, defaultChannel: c}}\n---\n{{schema: olm.channel, package: p, name: c, entries: [{entries}]}}\n"
    );
    for version in bundles {
        text += &format!(
            "---\n{{schema: olm.bundle, package: p, name: p.v{version}, image: x/y, properties: [{{type: olm.package, value: {{packageName: p, version: {version}}}}}]}}\n"
        );
    }
    CatalogFiles::from_text("catalog.yaml", text)
}

fn found(old: &CatalogFiles, new: &CatalogFiles) -> Diff {
    diff(&Catalog::parse(old), &Catalog::parse(new))
}

const TWO: &str = "{name: p.v1.0.0}, {name: p.v1.1.0, replaces: p.v1.0.0}";
const THREE: &str =
    "{name: p.v1.0.0}, {name: p.v1.1.0, replaces: p.v1.0.0}, {name: p.v1.2.0, replaces: p.v1.1.0}";

#[test]
fn a_release_gains_paths_and_loses_none() {
    let old = catalog(TWO, &["1.0.0", "1.1.0"]);
    let new = catalog(THREE, &["1.0.0", "1.1.0", "1.2.0"]);
    assert_eq!(found(&old, &old).packages, []);
    let there = found(&old, &new).packages.remove(0);
    let from = |paths: &[PathDiff]| paths.iter().map(|path| path.from.clone()).collect::<Vec<_>>();
    assert_eq!((from(&there.paths_gained), from(&there.paths_lost)), (vec!["p.v1.1.0".to_owned()], vec![]));
    assert_eq!(there.stranded, []);
    assert_eq!(there.bundles[0].name, "p.v1.2.0");
    let head = Texts { old: "p.v1.1.0".into(), new: "p.v1.2.0".into() };
    assert_eq!(there.channels[0].head, Some(head));
    let back = found(&new, &old).packages.remove(0);
    assert_eq!(back.paths_lost, there.paths_gained);
    assert_eq!(back.stranded[0].from, "p.v1.2.0");
}

#[test]
fn versions_that_are_removed_from_the_middle_are_stranded_unless_they_are_skipped() {
    let old = catalog(THREE, &["1.0.0", "1.1.0", "1.2.0"]);
    let without = |skips: &str| {
        let entries = format!("{{name: p.v1.0.0}}, {{name: p.v1.2.0, replaces: p.v1.0.0{skips}}}");
        found(&old, &catalog(&entries, &["1.0.0", "1.2.0"])).packages.remove(0)
    };
    let lost = without("");
    assert_eq!((lost.paths_lost.len(), lost.stranded.len()), (1, 1));
    assert_eq!(lost.paths_lost[0].hops, ["p.v1.2.0"]);
    assert_eq!(lost.stranded[0].stops_at, "p.v1.1.0");
    let kept = without(", skips: [p.v1.1.0]");
    assert_eq!((kept.paths_lost.len(), kept.stranded.len()), (0, 0));
    let range = without(", skipRange: '>=1.1.0 <1.2.0'");
    assert_eq!((range.paths_lost.len(), range.stranded.len()), (0, 0));
}

#[test]
fn packages_channels_and_bundles() {
    let old = catalog(TWO, &["1.0.0", "1.1.0"]);
    let empty = CatalogFiles::default();
    let added = found(&empty, &old).packages.remove(0);
    assert_eq!((added.change, added.bundles.len(), added.paths_gained.len()), (Kind::Added, 2, 1));
    let removed = found(&old, &empty).packages.remove(0);
    assert_eq!((removed.change, removed.stranded.len(), removed.paths_lost.len()), (Kind::Removed, 2, 1));
    // Another way to write the same is no difference.
    let text = old.files[0].content.text().unwrap();
    let same = CatalogFiles::from_text("catalog.yaml", text.replace(", image: x/y", ",   image: 'x/y'"));
    assert_eq!(found(&old, &same).packages, []);
    let other = text
        .replace("image: x/y", "image: x/z")
        .replace("defaultChannel: c", "defaultChannel: c, description: d");
    let changed = found(&old, &CatalogFiles::from_text("catalog.yaml", other)).packages.remove(0);
    assert_eq!(
        (&changed.fields[..], &changed.bundles[0].fields[..]),
        (&["description".to_owned()][..], &["image".to_owned()][..])
    );
    assert_eq!(changed.channels, []);
    let deprecated = format!(
        "{text}---\n{{schema: olm.deprecations, package: p, entries: [{{reference: {{schema: olm.package}}, message: old}}]}}\n"
    );
    let deprecated = found(&old, &CatalogFiles::from_text("catalog.yaml", deprecated)).packages.remove(0);
    assert_eq!(deprecated.deprecations[0].new.as_deref(), Some("old"));
}

#[test]
fn channel_properties_and_other_schemas_differ_too() {
    let old = catalog(TWO, &["1.0.0", "1.1.0"]);
    let text = old.files[0].content.text().unwrap();
    let with = |text: String| found(&old, &CatalogFiles::from_text("catalog.yaml", text));
    let properties =
        with(text.replace("name: c, entries", "name: c, properties: [{type: x, value: 1}], entries"));
    assert_eq!(properties.packages[0].channels[0].fields, ["properties"]);
    let entry = with(text.replace("{name: p.v1.0.0}", "{name: p.v1.0.0, note: x}"));
    assert_eq!(entry.packages[0].channels[0].fields, ["entries"]);
    let of_package =
        with(text.replace("defaultChannel: c", "defaultChannel: c, properties: [{type: x, value: 1}]"));
    assert_eq!(of_package.packages[0].fields, ["properties"]);
    let other = with(format!(
        "{text}---\n{{schema: olm.note, package: p, name: note, x: 1}}\n---\n{{schema: acme.note}}\n"
    ));
    let expected = |schema: &str, name: &str| OtherDiff {
        schema: schema.into(),
        name: name.into(),
        change: Kind::Added,
    };
    assert_eq!(other.packages[0].others, [expected("olm.note", "note")]);
    assert_eq!(other.others, [expected("acme.note", "")]);
    // The order of entries and blobs is no difference.
    let turned = catalog("{name: p.v1.1.0, replaces: p.v1.0.0}, {name: p.v1.0.0}", &["1.1.0", "1.0.0"]);
    assert_eq!(found(&old, &turned).packages, []);
}

#[test]
fn the_paths_of_a_long_channel_do_not_add_up_to_its_square() {
    let entry = |at: usize| match at {
        0 => "{name: p.v1.0.0}".to_owned(),
        at => format!(", {{name: p.v1.{at}.0, replaces: p.v1.{}.0}}", at - 1),
    };
    let chain = |length: usize| catalog(&(0..length).map(entry).collect::<String>(), &[]);
    let short = found(&CatalogFiles::default(), &chain(51)).packages.remove(0);
    assert_eq!((short.paths_gained[0].hops.len(), short.paths_gained[0].hops_left_out), (50, None));
    let long = found(&CatalogFiles::default(), &chain(10_000)).packages.remove(0);
    let path = &long.paths_gained[0];
    assert_eq!((path.from.as_str(), path.hops.len(), path.hops_left_out), ("p.v1.0.0", 50, Some(9_949)));
    assert_eq!(
        (path.hops[48].as_str(), path.hops[49].as_str(), path.to.as_str()),
        ("p.v1.49.0", "p.v1.9999.0", "p.v1.9999.0")
    );
    assert_eq!(long.paths_gained.len(), 9_999);
    // Each of them is looked for in a channel that has none of them.
    let other = catalog("{name: p.v2.0.0, skipRange: '<1.0.0'}", &[]);
    assert_eq!(found(&chain(10_000), &other).packages[0].stranded.len(), 10_000);
}
