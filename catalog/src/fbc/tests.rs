//! Blobs as they are read, what is said of those that cannot be, and that writing loses nothing.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::write::{self, Format};
use super::*;
use crate::load::CatalogFile;

/// The faults of a text, a line each, with the text they stand at.
fn faults(text: &str) -> String {
    let files = CatalogFiles::from_text("catalog.yaml", text);
    let catalog = Catalog::parse(&files);
    let line = |fault: &Fault| format!("{:?} at {:?}", fault.kind, catalog.text(fault.at));
    catalog.faults.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_does_not_fit() {
    insta::assert_snapshot!(faults("
schema: olm.channel
package: redis
name: 4.20
entries:
- name: [a]
  skips: b
  skipRange: 7
- c
properties: {}
---
- schema: olm.package
---
schema: olm.package
name: null
icon: x
---
name: a
---
schema: 7
---
# nothing
---
schema: my.own
name: true
---
schema: olm.package
name: a
Name: b
---
schema: olm.deprecations
entries:
- reference: {schema: 1}
"), @r#"
    WrongType { field: "name", expected: "a string", found: "a number" } at "4.20"
    WrongType { field: "entries[0].name", expected: "a string", found: "a list" } at "[a]"
    WrongType { field: "entries[0].skipRange", expected: "a string", found: "a number" } at "7"
    WrongType { field: "entries[0].skips", expected: "a list", found: "a string" } at "b"
    WrongType { field: "entries[1]", expected: "a map", found: "a string" } at "c"
    WrongType { field: "properties", expected: "a list", found: "a map" } at "{}"
    NotAMap("a list") at "- schema: olm.package"
    WrongType { field: "name", expected: "a string", found: "null" } at "null"
    WrongType { field: "icon", expected: "a map", found: "a string" } at "x"
    NoSchema at "name: a"
    WrongType { field: "schema", expected: "a string", found: "a number" } at "7"
    NoSchema at ""
    WrongType { field: "name", expected: "a string", found: "a boolean" } at "true"
    DuplicateKeys { first: "name", second: "Name" } at "b"
    WrongType { field: "entries[0].reference.schema", expected: "a string", found: "a number" } at "1"
    "#);
}

#[test]
fn values_that_cannot_be_written_are_found() {
    let (deep, long) = (format!("{}1{}", "[".repeat(128), "]".repeat(128)), "9".repeat(400));
    let found = |text: &str| {
        let files = CatalogFiles::from_text("catalog.json", text);
        let catalog = Catalog::parse(&files);
        assert_eq!(catalog.faults, [], "{text}");
        catalog.check_values().map_err(|fault| {
            let position = catalog.place(fault.at).position.unwrap();
            let FaultKind::Syntax(message) = fault.kind else { panic!("{:?}", fault.kind) };
            format!("{}: {message}", position.line)
        })
    };
    for (value, message) in [
        ("1e400", "2: number out of range"),
        (&*long, "2: number out of range"),
        (&*deep, "2: recursion limit exceeded"),
        (r#""\ud800""#, "2: unexpected end of hex escape"),
    ] {
        let text = format!("{{\"schema\":\"a\"}}\n{{\"schema\":\"b\",\"v\":{{\"n\":{value}}}}}\n");
        assert_eq!(found(&text), Err(message.to_owned()), "{value}");
    }
    assert_eq!(found(r#"{"schema":"a","n":[1e308,0.1,"1e400",12345678901234567890123]}"#), Ok(()));
    assert_eq!(found("schema: a\nn: 1e400\n"), Ok(()));
    // Where YAML follows JSON, and in YAML braces, it is a text.
    assert_eq!(found("{\"schema\":\"a\"}\n---\n{schema: b, n: 1e400}\n"), Ok(()));
}

#[test]
fn numbers_that_are_too_large_are_found_where_they_stand() {
    let found = |text: &str| -> Vec<String> {
        let files = CatalogFiles::from_text("catalog.json", text);
        let catalog = Catalog::parse(&files);
        assert_eq!(catalog.faults, [], "{text}");
        catalog.too_large_numbers().into_iter().map(|at| catalog.text(at).to_owned()).collect()
    };
    let (long, small) = ("9".repeat(400), format!("0.{}1", "0".repeat(400)));
    let mixed = format!("{}e120", "9".repeat(250));
    for number in ["1e400", "-1E+400", "1.5e0309", "2e308", &long, &mixed] {
        for text in [
            format!(r#"{{"schema":"a","n":{number}}}"#),
            format!(
                r#"{{"schema":"olm.bundle","properties":[{{"type":"x","value":{{"n":[0,{number} ]}}}}]}}"#
            ),
            format!(
                "{{\"schema\":\"a\"}}\n{{\"schema\":\"b\",\"t\":\"a \\\\\\\" 3e400\",\n\"n\":{number}\n}}"
            ),
        ] {
            assert_eq!(found(&text), [number], "{text}");
        }
        assert_eq!(found(&format!(r#"{{"schema":"a","n":"{number}, {number}"}}"#)), [""; 0]);
        // Where YAML follows JSON, and in YAML, it is a text.
        assert_eq!(found(&format!("{{\"schema\":\"a\"}}\n---\n{{schema: b, n: {number}}}\n")), [""; 0]);
    }
    for number in ["1e308", "1.7976931348623157e308", "1e-400", "12345678901234567890123", "100", &small] {
        assert_eq!(found(&format!(r#"{{"schema":"a","n":{number}}}"#)), [""; 0], "{number}");
    }
}

#[test]
fn what_is_not_text() {
    let file = |path: &str, content| CatalogFile { path: path.into(), content };
    let files = CatalogFiles {
        name: "catalog".into(),
        files: vec![
            file("a", Content::Binary { bytes: 9, valid_up_to: 3 }),
            file("b", Content::Unread("it is not a plain file".into())),
            file("c", Content::Text("schema: x\n".into())),
        ],
    };
    let catalog = Catalog::parse(&files);
    let places: Vec<_> = catalog.faults.iter().map(|fault| catalog.place(fault.at).path).collect();
    assert_eq!(places, ["catalog/a", "catalog/b"]);
    assert_eq!(catalog.place(catalog.others[0].at).path, "catalog/c");
}

#[test]
fn keys_match_without_regard_to_case_and_null_is_nothing() {
    let text = "{Schema: olm.channel, PACKAGE: a, name: b, Entries: [{NAME: v2, Replaces: v1, name: v3, skips: null, \u{17f}kipRange: '1.x'}]}";
    let files = CatalogFiles::from_text("catalog.yaml", text);
    let catalog = Catalog::parse(&files);
    let channel = &catalog.channels[0];
    // Of keys that differ in case the last in order counts, as in Go.
    let entry = &channel.entries[0];
    assert_eq!(
        (&*channel.package, &*entry.name, &*entry.replaces, &*entry.skip_range),
        ("a", "v3", "v1", "1.x")
    );
    assert_eq!(entry.name.span.slice(text), "v3");
}

#[test]
fn strings_of_json_are_not_copied() {
    let text =
        r#"{"schema": "olm.bundle", "name": "redis.v1", "properties": [{"type": "a", "value": {"b": "c"}}]}"#;
    let files = CatalogFiles::from_text("catalog.json", text);
    let catalog = Catalog::parse(&files);
    assert!(matches!(catalog.bundles[0].name.value, std::borrow::Cow::Borrowed("redis.v1")));
    assert_eq!(catalog.bundles[0].properties[0].value.as_ref().unwrap().span().slice(text), r#"{"b": "c"}"#);
}

#[test]
fn written_as_opm_writes_it() {
    let text = r#"
{"schema": "my.own", "x": 1}
{"schema": "olm.bundle", "package": "b", "name": "b.v2", "image": "i", "extra": {"z": 1, "a": "<"}}
{"schema": "olm.bundle", "package": "b", "name": "b.v1", "image": "i"}
{"schema": "olm.deprecations", "package": "b", "entries": [{"reference": {"schema": "olm.package"}, "message": "m"}]}
{"schema": "olm.channel", "package": "b", "name": "c", "entries": [{"name": "b.v2", "skipRange": "<2.0.0", "skips": ["b.v0"], "replaces": "b.v1"}]}
{"schema": "olm.package", "name": "b", "defaultChannel": "c", "icon": {"mediatype": "image/png", "base64data": "AA=="}}
{"schema": "olm.package", "name": "a", "defaultChannel": ""}"#;
    let files = CatalogFiles::from_text("catalog.json", text);
    let catalog = Catalog::parse(&files);
    insta::assert_snapshot!(write::to_text(&catalog, Format::Yaml).unwrap(), @r#"
    ---
    defaultChannel: ""
    name: a
    schema: olm.package
    ---
    defaultChannel: c
    icon:
      base64data: AA==
      mediatype: image/png
    name: b
    schema: olm.package
    ---
    entries:
    - name: b.v2
      replaces: b.v1
      skipRange: <2.0.0
      skips:
      - b.v0
    name: c
    package: b
    schema: olm.channel
    ---
    image: i
    name: b.v1
    package: b
    schema: olm.bundle
    ---
    extra:
      a: <
      z: 1
    image: i
    name: b.v2
    package: b
    schema: olm.bundle
    ---
    entries:
    - message: m
      reference:
        schema: olm.package
    package: b
    schema: olm.deprecations
    ---
    schema: my.own
    x: 1
    "#);
    insta::assert_snapshot!(write::to_files(&catalog, Format::Json).unwrap()[1].1, @r#"
    {
        "schema": "olm.package",
        "name": "b",
        "defaultChannel": "c",
        "icon": {
            "base64data": "AA==",
            "mediatype": "image/png"
        }
    }
    {
        "schema": "olm.channel",
        "name": "c",
        "package": "b",
        "entries": [
            {
                "name": "b.v2",
                "replaces": "b.v1",
                "skips": [
                    "b.v0"
                ],
                "skipRange": "<2.0.0"
            }
        ]
    }
    {
        "schema": "olm.bundle",
        "name": "b.v1",
        "package": "b",
        "image": "i"
    }
    {
        "schema": "olm.bundle",
        "name": "b.v2",
        "package": "b",
        "image": "i",
        "extra": {
            "a": "<",
            "z": 1
        }
    }
    {
        "schema": "olm.deprecations",
        "package": "b",
        "entries": [
            {
                "reference": {
                    "schema": "olm.package"
                },
                "message": "m"
            }
        ]
    }
    "#);
    let names: Vec<_> =
        write::to_files(&catalog, Format::Json).unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a/catalog.json", "b/catalog.json", "catalog.json"]);
}

/// Every blob as JSON, in an order of its own.
fn blobs(catalog: &Catalog<'_>) -> Vec<String> {
    let mut blobs: Vec<_> = catalog
        .packages
        .iter()
        .map(Package::to_json)
        .chain(catalog.channels.iter().map(Channel::to_json))
        .chain(catalog.bundles.iter().map(Bundle::to_json))
        .chain(catalog.deprecations.iter().map(Deprecations::to_json))
        .chain(catalog.others.iter().map(Other::to_json))
        .map(|blob| crate::json::marshal(&blob))
        .collect();
    blobs.sort();
    blobs
}

/// Any value, with texts that YAML has to be careful with.
fn any_value() -> impl Strategy<Value = Json> {
    let text =
        prop_oneof!["[ -~\n\t]{0,12}", "\\PC{0,6}", "yes|on|null|1\\.0|~|<<|010|", "-- ?[a-z]|# a|a: b"];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        text.prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map("[a-zA-Z.-]{1,6}", inner, 0..4)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

fn any_blob() -> impl Strategy<Value = Json> {
    let text = || prop_oneof!["[a-z.-]{1,8}", "\\PC{0,4}", "1\\.0|yes|null"];
    let property = (text(), any_value()).prop_map(|(kind, value)| json!({ "type": kind, "value": value }));
    let properties = prop::collection::vec(property, 0..3);
    let entry = (text(), text(), prop::collection::vec(text(), 0..3), text())
        .prop_map(|(name, replaces, skips, range)| json!({ "name": name, "replaces": replaces, "skips": skips, "skipRange": range }));
    let image = (text(), text()).prop_map(|(name, image)| json!({ "name": name, "image": image }));
    prop_oneof![
        (text(), text(), any_value()).prop_map(|(name, channel, extra)| {
            json!({ "schema": "olm.package", "name": name, "defaultChannel": channel, "description": channel, "x-extra": extra })
        }),
        (text(), text(), prop::collection::vec(entry, 0..3)).prop_map(|(package, name, entries)| {
            json!({ "schema": "olm.channel", "package": package, "name": name, "entries": entries })
        }),
        (text(), text(), properties, prop::collection::vec(image, 0..3)).prop_map(|(package, name, properties, images)| {
            json!({ "schema": "olm.bundle", "package": package, "name": name, "image": name, "properties": properties, "relatedImages": images })
        }),
        (text(), text(), text()).prop_map(|(package, name, message)| {
            json!({ "schema": "olm.deprecations", "package": package,
                "entries": [{ "reference": { "schema": "olm.channel", "name": name }, "message": message }] })
        }),
        (text(), any_value()).prop_map(|(package, value)| json!({ "schema": "my.own", "package": package, "value": value })),
    ]
}

proptest! {
    #[test]
    fn writing_then_reading_is_the_identity(blobs_in in prop::collection::vec(any_blob(), 0..6), from_json in any::<bool>()) {
        let text: String = match from_json {
            true => blobs_in.iter().map(|blob| format!("{blob}\n")).collect(),
            false => blobs_in
                .iter()
                .map(|blob| format!("---\n{}", olmkit_bundle::yaml::write::to_string(blob).unwrap()))
                .collect(),
        };
        let files = CatalogFiles::from_text("catalog", text);
        let catalog = Catalog::parse(&files);
        prop_assert_eq!(&catalog.faults, &[]);
        for format in [Format::Yaml, Format::Json] {
            let files = CatalogFiles::from_text("catalog", write::to_text(&catalog, format).unwrap());
            let again = Catalog::parse(&files);
            prop_assert_eq!(&again.faults, &[]);
            prop_assert_eq!(blobs(&again), blobs(&catalog));
            prop_assert_eq!(write::to_text(&again, format).unwrap(), files.files[0].content.text().unwrap());
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "([{}\\[\\]\",:&*!|>#a-z0-9 -]|\n|schema: olm\\.(package|channel|bundle)\n|---\n){0,60}") {
        let files = CatalogFiles::from_text("catalog", text);
        let catalog = Catalog::parse(&files);
        crate::validate::validate(&catalog);
    }
}
