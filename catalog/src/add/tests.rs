//! Catalogs as people write them, and what adding a bundle changes in their text.

use olmkit_bundle::load::Content;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::load::{CatalogFile, CatalogFiles};
use crate::render::CsvFacts;
use crate::testing::diff;

/// A rendered bundle `redis.vVERSION`.
fn rendered(version: &str) -> Rendered {
    let value = json!({ "packageName": "redis", "version": version });
    let property =
        fbc::Property { kind: "olm.package".into(), value: Some(value.into()), ..fbc::Property::default() };
    let blob = fbc::Bundle {
        name: format!("redis.v{version}").into(),
        package: "redis".into(),
        image: format!("example.com/redis-bundle:v{version}").into(),
        properties: vec![property],
        ..fbc::Bundle::default()
    };
    let csv = CsvFacts {
        description: "A cache.".into(),
        icon: Some(("AA==".into(), "image/png".into())),
        ..CsvFacts::default()
    };
    Rendered { blob, csv }
}

fn request(channels: &str, policy: Policy) -> Request {
    let channels = channels.split(',').map(|name| name.parse().unwrap()).collect();
    Request { channels, policy, default_channel: None, format: Format::Yaml }
}

fn one_file(text: &str) -> CatalogFiles {
    CatalogFiles::from_text("catalog.yaml", text)
}

/// Adds versions to a catalog of one text and gives the text, which must be sound.
#[track_caller]
fn added(text: &str, versions: &[&str], request: &Request) -> String {
    let files = one_file(text);
    let bundles: Vec<_> = versions.iter().map(|version| rendered(version)).collect();
    let mut change = add(&Catalog::parse(&files), &bundles, request).unwrap();
    let new = change.files.remove(0).text;
    assert!(change.files.is_empty());
    sound(&new);
    new
}

#[track_caller]
fn sound(text: &str) {
    let files = one_file(text);
    let findings = validate::validate(&Catalog::parse(&files));
    assert!(findings.is_empty(), "{}\n{text}", first_message(&findings));
}

/// A catalog of the package `redis` with these versions in the channel `stable`, added in this order.
pub(crate) fn catalog_of(versions: &[&String], policy: Policy) -> String {
    let versions: Vec<&str> = versions.iter().map(|version| version.as_str()).collect();
    let files = CatalogFiles::default();
    let bundles: Vec<_> = versions.iter().map(|version| rendered(version)).collect();
    let mut change = add(&Catalog::parse(&files), &bundles, &request("stable", policy)).unwrap();
    change.files.remove(0).text
}

/// What adding versions to the channel `stable` changes in a text.
#[track_caller]
fn change_of(text: &str, versions: &[&str], policy: Policy) -> String {
    diff(text, &added(text, versions, &request("stable", policy)))
}

/// The blobs of bundles, as lines of flow YAML, behind a document of the package's own.
fn with_bundles(head: &str, versions: &[&str]) -> String {
    let package = "schema: olm.package\nname: redis\ndefaultChannel: stable\n";
    let bundles: String =
        versions.iter().map(|version| format!("---\n{}\n", rendered(version).blob.to_json())).collect();
    format!("{package}---\n{head}{bundles}")
}

#[test]
fn a_new_catalog() {
    let files = CatalogFiles { name: "catalog".into(), files: Vec::new() };
    let catalog = Catalog::parse(&files);
    let bundles = ["0.2.0", "0.1.0"].map(rendered);
    let change = add(&catalog, &bundles, &request("stable,fast", Policy::SemverSkippatch)).unwrap();
    assert_eq!(change.files.len(), 1);
    sound(&change.files[0].text);
    insta::assert_snapshot!(change.files[0].text, @r#"
    ---
    defaultChannel: stable
    description: A cache.
    icon:
      base64data: AA==
      mediatype: image/png
    name: redis
    schema: olm.package
    ---
    entries:
    - name: redis.v0.1.0
    - name: redis.v0.2.0
      replaces: redis.v0.1.0
    name: stable
    package: redis
    schema: olm.channel
    ---
    entries:
    - name: redis.v0.1.0
    - name: redis.v0.2.0
      replaces: redis.v0.1.0
    name: fast
    package: redis
    schema: olm.channel
    ---
    image: example.com/redis-bundle:v0.1.0
    name: redis.v0.1.0
    package: redis
    properties:
    - type: olm.package
      value:
        packageName: redis
        version: "0.1.0"
    schema: olm.bundle
    ---
    image: example.com/redis-bundle:v0.2.0
    name: redis.v0.2.0
    package: redis
    properties:
    - type: olm.package
      value:
        packageName: redis
        version: "0.2.0"
    schema: olm.bundle
    "#);
    insta::assert_snapshot!(serde_json::to_string_pretty(&change.account).unwrap(), @r#"
    {
      "schema": "olmkit.added/v1",
      "package": "redis",
      "defaultChannel": "stable",
      "bundles": [
        {
          "name": "redis.v0.1.0",
          "version": "0.1.0",
          "image": "example.com/redis-bundle:v0.1.0",
          "added": true
        },
        {
          "name": "redis.v0.2.0",
          "version": "0.2.0",
          "image": "example.com/redis-bundle:v0.2.0",
          "added": true
        }
      ],
      "channels": [
        {
          "name": "stable",
          "added": true,
          "head": "redis.v0.2.0",
          "entries": [
            {
              "name": "redis.v0.1.0",
              "added": true
            },
            {
              "name": "redis.v0.2.0",
              "added": true,
              "replaces": "redis.v0.1.0"
            }
          ]
        },
        {
          "name": "fast",
          "added": true,
          "head": "redis.v0.2.0",
          "entries": [
            {
              "name": "redis.v0.1.0",
              "added": true
            },
            {
              "name": "redis.v0.2.0",
              "added": true,
              "replaces": "redis.v0.1.0"
            }
          ]
        }
      ],
      "files": [
        {
          "path": "redis/catalog.yaml",
          "added": true
        }
      ]
    }
    "#);
}

#[test]
fn a_new_catalog_in_json() {
    let files = CatalogFiles { name: "catalog".into(), files: Vec::new() };
    let request = Request { format: Format::Json, ..request("stable", Policy::Replaces) };
    let change = add(&Catalog::parse(&files), &[rendered("0.1.0")], &request).unwrap();
    assert_eq!(change.files[0].path, "redis/catalog.json");
    sound(&change.files[0].text);
    assert!(
        change.files[0].text.starts_with("{\n    \"schema\": \"olm.package\",\n    \"name\": \"redis\",\n")
    );
}

#[test]
fn comments_and_order_stay() {
    let channel = "\
# What users get.
schema: olm.channel
package: redis
name: stable # the one
entries:
  # The first.
  - name: redis.v0.1.0

  # Then this.
  - name: redis.v0.2.0   # a minor one
    replaces: redis.v0.1.0
  - name: \"redis.v0.3.0\"
    replaces: \"redis.v0.2.0\"
x-note: kept
";
    let text = with_bundles(channel, &["0.1.0", "0.2.0", "0.3.0"]);
    insta::assert_snapshot!(change_of(&text, &["0.2.1"], Policy::SemverSkippatch), @r#"
         replaces: redis.v0.1.0
    +  - name: redis.v0.2.1
    +    replaces: redis.v0.1.0
    +    skips:
    +    - redis.v0.2.0
       - name: "redis.v0.3.0"
    -    replaces: "redis.v0.2.0"
    +    replaces: "redis.v0.2.1"
     x-note: kept
     {"image":"example.com/redis-bundle:v0.3.0","name":"redis.v0.3.0","package":"redis","properties":[{"type":"olm.package","value":{"packageName":"redis","version":"0.3.0"}}],"schema":"olm.bundle"}
    +---
    +image: example.com/redis-bundle:v0.2.1
    +name: redis.v0.2.1
    +package: redis
    +properties:
    +- type: olm.package
    +  value:
    +    packageName: redis
    +    version: "0.2.1"
    +schema: olm.bundle
    "#);
}

#[test]
fn entries_in_every_style() {
    let check = |channel: &str| {
        let text = with_bundles(channel, &["0.1.0", "0.2.0", "0.3.0"]);
        change_of(&text, &["0.2.1"], Policy::SemverSkippatch)
    };
    insta::assert_snapshot!(check("\
schema: olm.channel
package: redis
name: stable
entries: [{name: redis.v0.1.0}, {name: redis.v0.2.0, replaces: redis.v0.1.0}, {name: redis.v0.3.0, replaces: redis.v0.2.0}]
"), @r#"
     name: stable
    -entries: [{name: redis.v0.1.0}, {name: redis.v0.2.0, replaces: redis.v0.1.0}, {name: redis.v0.3.0, replaces: redis.v0.2.0}]
    +entries: [{name: redis.v0.1.0}, {name: redis.v0.2.0, replaces: redis.v0.1.0}, {name: redis.v0.2.1, replaces: redis.v0.1.0, skips: [redis.v0.2.0]}, {name: redis.v0.3.0, replaces: redis.v0.2.1}]
     ---
     {"image":"example.com/redis-bundle:v0.3.0","name":"redis.v0.3.0","package":"redis","properties":[{"type":"olm.package","value":{"packageName":"redis","version":"0.3.0"}}],"schema":"olm.bundle"}
    +---
    +image: example.com/redis-bundle:v0.2.1
    +name: redis.v0.2.1
    +package: redis
    +properties:
    +- type: olm.package
    +  value:
    +    packageName: redis
    +    version: "0.2.1"
    +schema: olm.bundle
    "#);
    insta::assert_snapshot!(check(r#"{"schema":"olm.channel","package":"redis","name":"stable","entries":[{"name":"redis.v0.1.0"},{"name":"redis.v0.2.0","replaces":"redis.v0.1.0"},{"name":"redis.v0.3.0","replaces":"redis.v0.2.0"}]}
"#), @r#"
     ---
    -{"schema":"olm.channel","package":"redis","name":"stable","entries":[{"name":"redis.v0.1.0"},{"name":"redis.v0.2.0","replaces":"redis.v0.1.0"},{"name":"redis.v0.3.0","replaces":"redis.v0.2.0"}]}
    +{"schema":"olm.channel","package":"redis","name":"stable","entries":[{"name":"redis.v0.1.0"},{"name":"redis.v0.2.0","replaces":"redis.v0.1.0"},{"name":"redis.v0.2.1","replaces":"redis.v0.1.0","skips":["redis.v0.2.0"]},{"name":"redis.v0.3.0","replaces":"redis.v0.2.1"}]}
     ---
     {"image":"example.com/redis-bundle:v0.3.0","name":"redis.v0.3.0","package":"redis","properties":[{"type":"olm.package","value":{"packageName":"redis","version":"0.3.0"}}],"schema":"olm.bundle"}
    +---
    +image: example.com/redis-bundle:v0.2.1
    +name: redis.v0.2.1
    +package: redis
    +properties:
    +- type: olm.package
    +  value:
    +    packageName: redis
    +    version: "0.2.1"
    +schema: olm.bundle
    "#);
    insta::assert_snapshot!(check(r#"{
  "schema": "olm.channel",
  "package": "redis",
  "name": "stable",
  "entries": [
    {
      "name": "redis.v0.3.0",
      "replaces": "redis.v0.2.0"
    },
    {
      "name": "redis.v0.2.0",
      "replaces": "redis.v0.1.0"
    },
    {
      "name": "redis.v0.1.0"
    }
  ]
}
"#), @r#"
           "name": "redis.v0.3.0",
    -      "replaces": "redis.v0.2.0"
    +      "replaces": "redis.v0.2.1"
         },
         {
    +      "name": "redis.v0.2.1",
    +      "replaces": "redis.v0.1.0",
    +      "skips": [
    +        "redis.v0.2.0"
    +      ]
    +    },
    +    {
           "name": "redis.v0.2.0",
     {"image":"example.com/redis-bundle:v0.3.0","name":"redis.v0.3.0","package":"redis","properties":[{"type":"olm.package","value":{"packageName":"redis","version":"0.3.0"}}],"schema":"olm.bundle"}
    +---
    +image: example.com/redis-bundle:v0.2.1
    +name: redis.v0.2.1
    +package: redis
    +properties:
    +- type: olm.package
    +  value:
    +    packageName: redis
    +    version: "0.2.1"
    +schema: olm.bundle
    "#);
}

#[test]
fn skips_in_every_style() {
    let check = |skips: &str| {
        let channel = format!(
            "\
schema: olm.channel
package: redis
name: stable
entries:
- name: redis.v0.1.0
- name: redis.v0.2.0
  replaces: redis.v0.1.0
- name: redis.v0.2.2
  replaces: redis.v0.1.0
  skips:{skips}
"
        );
        change_of(&with_bundles(&channel, &["0.1.0", "0.2.0", "0.2.2"]), &["0.2.1"], Policy::SemverSkippatch)
    };
    insta::assert_snapshot!(check(" [redis.v0.2.0]"), @r#"
       replaces: redis.v0.1.0
    +- name: redis.v0.2.1
    +  replaces: redis.v0.1.0
    +  skips:
    +  - redis.v0.2.0
     - name: redis.v0.2.2
       replaces: redis.v0.1.0
    -  skips: [redis.v0.2.0]
    +  skips: [redis.v0.2.0, redis.v0.2.1]
     ---
     {"image":"example.com/redis-bundle:v0.2.2","name":"redis.v0.2.2","package":"redis","properties":[{"type":"olm.package","value":{"packageName":"redis","version":"0.2.2"}}],"schema":"olm.bundle"}
    +---
    +image: example.com/redis-bundle:v0.2.1
    +name: redis.v0.2.1
    +package: redis
    +properties:
    +- type: olm.package
    +  value:
    +    packageName: redis
    +    version: "0.2.1"
    +schema: olm.bundle
    "#);
    insta::assert_snapshot!(check("\n  - redis.v0.2.0 # gone"), @r#"
       replaces: redis.v0.1.0
    +- name: redis.v0.2.1
    +  replaces: redis.v0.1.0
    +  skips:
    +  - redis.v0.2.0
     - name: redis.v0.2.2
       - redis.v0.2.0 # gone
    +  - redis.v0.2.1
     ---
     {"image":"example.com/redis-bundle:v0.2.2","name":"redis.v0.2.2","package":"redis","properties":[{"type":"olm.package","value":{"packageName":"redis","version":"0.2.2"}}],"schema":"olm.bundle"}
    +---
    +image: example.com/redis-bundle:v0.2.1
    +name: redis.v0.2.1
    +package: redis
    +properties:
    +- type: olm.package
    +  value:
    +    packageName: redis
    +    version: "0.2.1"
    +schema: olm.bundle
    "#);
    insta::assert_snapshot!(check(" [ 'redis.v0.2.0' ]"), @r#"
       replaces: redis.v0.1.0
    +- name: redis.v0.2.1
    +  replaces: redis.v0.1.0
    +  skips:
    +  - redis.v0.2.0
     - name: redis.v0.2.2
       replaces: redis.v0.1.0
    -  skips: [ 'redis.v0.2.0' ]
    +  skips: [ 'redis.v0.2.0', redis.v0.2.1 ]
     ---
     {"image":"example.com/redis-bundle:v0.2.2","name":"redis.v0.2.2","package":"redis","properties":[{"type":"olm.package","value":{"packageName":"redis","version":"0.2.2"}}],"schema":"olm.bundle"}
    +---
    +image: example.com/redis-bundle:v0.2.1
    +name: redis.v0.2.1
    +package: redis
    +properties:
    +- type: olm.package
    +  value:
    +    packageName: redis
    +    version: "0.2.1"
    +schema: olm.bundle
    "#);
}

/// The document of the channel `stable` after a version was added between 0.1.0 and 0.3.0.
#[track_caller]
fn edited(channel: &str, policy: Policy) -> String {
    let text = with_bundles(channel, &["0.1.0", "0.3.0"]);
    let new = added(&text, &["0.2.0"], &request("stable", policy));
    let start = text.find(channel).unwrap();
    let end = new[start..].find("---\n{").unwrap();
    new[start..start + end].to_owned()
}

const HEAD: &str = "schema: olm.channel\npackage: redis\nname: stable\n";

#[test]
fn comments_and_keys_of_flow_entries_stay() {
    let check = |old: &str, new: &str| {
        let result = edited(&format!("{HEAD}{old}"), Policy::Semver);
        assert_eq!(result.strip_prefix(HEAD).unwrap(), new);
    };
    check(
        "entries:
  # the oldest
  - {name: redis.v0.1.0}  # first
  # the newest
  - {replaces: redis.v0.1.0, name: redis.v0.3.0}  # third
",
        "entries:
  # the oldest
  - {name: redis.v0.1.0}  # first
  - {name: redis.v0.2.0, replaces: redis.v0.1.0}
  # the newest
  - {replaces: redis.v0.2.0, name: redis.v0.3.0}  # third
",
    );
    check(
        "entries:
  [ {name: redis.v0.1.0}, # first
    # the newest
    {replaces: \"redis.v0.1.0\",
     name: 'redis.v0.3.0'}]  # third
",
        "entries:
  [ {name: redis.v0.1.0}, # first
    {name: redis.v0.2.0, replaces: redis.v0.1.0},
    # the newest
    {replaces: \"redis.v0.2.0\",
     name: 'redis.v0.3.0'}]  # third
",
    );
    check(
        "entries: [{name: redis.v0.3.0, # the newest
  replaces: redis.v0.1.0 # until 0.2.0
  }, {name: redis.v0.1.0} # the oldest
  ]
",
        "entries: [{name: redis.v0.3.0, # the newest
  replaces: redis.v0.2.0 # until 0.2.0
  }, {name: redis.v0.2.0, replaces: redis.v0.1.0}, {name: redis.v0.1.0} # the oldest
  ]
",
    );
}

#[test]
fn a_whole_document_in_flow_style_keeps_its_comments() {
    let channel = "{schema: olm.channel, name: stable, # the one
 package: redis,
 entries: [
  {name: redis.v0.1.0}, # first
  # the newest
  {name: redis.v0.3.0, replaces: redis.v0.1.0}, # third
 ]}  # end
";
    assert_eq!(
        edited(channel, Policy::Semver),
        "{schema: olm.channel, name: stable, # the one
 package: redis,
 entries: [
  {name: redis.v0.1.0}, # first
  {name: redis.v0.2.0, replaces: redis.v0.1.0},
  # the newest
  {name: redis.v0.3.0, replaces: redis.v0.2.0}, # third
 ]}  # end
"
    );
}

#[test]
fn new_keys_of_flow_entries() {
    // The head gets `skips`. Without comments the faster reader of YAML is at work.
    let check = |old: &str, new: &str| {
        let text =
            with_bundles(&format!("{HEAD}entries:\n- {{name: redis.v0.1.0}}\n{old}"), &["0.1.0", "0.2.2"]);
        let result = added(&text, &["0.2.1"], &request("stable", Policy::SemverSkippatch));
        let (start, end) = (text.find(old).unwrap(), result.find("---\n{").unwrap());
        assert_eq!(&result[start..end], format!("- {{name: redis.v0.2.1, replaces: redis.v0.1.0}}\n{new}"));
    };
    check(
        "- {name: redis.v0.2.2, replaces: redis.v0.1.0}\n",
        "- {name: redis.v0.2.2, replaces: redis.v0.1.0, skips: [redis.v0.2.1]}\n",
    );
    check(
        "- {name: redis.v0.2.2, replaces: redis.v0.1.0} # b\n",
        "- {name: redis.v0.2.2, replaces: redis.v0.1.0, skips: [redis.v0.2.1]} # b\n",
    );
    check(
        "- {
    name: redis.v0.2.2, # named
    skips: [], # none
    replaces: redis.v0.1.0 # last
  }
",
        "- {
    name: redis.v0.2.2, # named
    skips: [redis.v0.2.1], # none
    replaces: redis.v0.1.0 # last
  }
",
    );
    check(
        "- {
    name: redis.v0.2.2, # named
    replaces: redis.v0.1.0 # last
  }
",
        "- {
    name: redis.v0.2.2, # named
    replaces: redis.v0.1.0, # last
    skips: [redis.v0.2.1]
  }
",
    );
}

#[test]
fn two_new_entries_at_one_place_of_a_flow_list() {
    let text = with_bundles(&format!("{HEAD}entries: [\n  {{name: redis.v0.1.0}} # first\n]\n"), &["0.1.0"]);
    let new = added(&text, &["0.2.0", "0.3.0"], &request("stable", Policy::Semver));
    let expected = "entries: [
  {name: redis.v0.1.0}, # first
  {name: redis.v0.2.0, replaces: redis.v0.1.0},
  {name: redis.v0.3.0, replaces: redis.v0.2.0}
]
";
    assert!(new.contains(expected), "{new}");
}

#[test]
fn block_entries_keep_what_belongs_to_them() {
    let check = |old: &str, new: &str| {
        let result = edited(&format!("{HEAD}{old}"), Policy::Semver);
        assert_eq!(result.strip_prefix(HEAD).unwrap(), new);
    };
    check(
        "entries:
- name: redis.v0.1.0
  x-note: |
    several
    lines
  # still the first
# the newest
- # a comment before the first key
  name: redis.v0.3.0
  replaces: redis.v0.1.0
  skips:
x: 1
",
        "entries:
- name: redis.v0.1.0
  x-note: |
    several
    lines
  # still the first
- name: redis.v0.2.0
  replaces: redis.v0.1.0
# the newest
- # a comment before the first key
  name: redis.v0.3.0
  replaces: redis.v0.2.0
  skips:
x: 1
",
    );
    check(
        "x-first: &first redis.v0.1.0
entries:
- &oldest
  name: redis.v0.1.0
- replaces: redis.v0.1.0
  name: redis.v0.3.0
  x-note: *first
",
        "x-first: &first redis.v0.1.0
entries:
- &oldest
  name: redis.v0.1.0
- name: redis.v0.2.0
  replaces: redis.v0.1.0
- replaces: redis.v0.2.0
  name: redis.v0.3.0
  x-note: *first
",
    );
}

#[test]
fn a_value_that_aliases_repeat_is_refused() {
    let check = |entries: &str| {
        let text = with_bundles(&format!("{HEAD}{entries}"), &["0.1.0", "0.3.0"]);
        let files = one_file(&text);
        let error = add(&Catalog::parse(&files), &[rendered("0.2.0")], &request("stable", Policy::Semver));
        let error = error.unwrap_err();
        assert!(matches!(error, AddError::Text(TextError::Document { .. })), "{error}");
        assert!(error.place().is_some() && error.help().is_some());
    };
    check(
        "entries:\n- name: redis.v0.1.0\n- name: redis.v0.3.0\n  replaces: &old redis.v0.1.0\nx-note: *old\n",
    );
    check("entries:\n- name: &old redis.v0.1.0\n- name: redis.v0.3.0\n  replaces: *old\n");
}

#[test]
fn line_breaks_and_a_missing_last_one() {
    let channel = "schema: olm.channel\npackage: redis\nname: stable\nentries:\n- name: redis.v0.1.0\n";
    let text = with_bundles(channel, &["0.1.0"]).replace('\n', "\r\n");
    let new = added(text.trim_end(), &["0.2.0"], &request("stable", Policy::Semver));
    assert_eq!(new.matches('\n').count(), new.matches("\r\n").count());
    assert!(new.starts_with(&text[..text.find("---").unwrap()]));
    let text = with_bundles("", &["0.1.0"]) + "---\n" + channel.trim_end();
    assert!(
        added(&text, &["0.2.0"], &request("stable", Policy::Semver))
            .contains("- name: redis.v0.2.0\n  replaces: redis.v0.1.0")
    );
}

#[test]
fn json_goes_on_as_json() {
    let lines = |space: &str| {
        let channel = json!({"schema": "olm.channel", "package": "redis", "name": "stable", "entries": [{"name": "redis.v0.1.0"}]});
        let package = json!({"schema": "olm.package", "name": "redis", "defaultChannel": "stable"});
        [package, channel, rendered("0.1.0").blob.to_json()]
            .map(|blob| crate::json::Tree::Leaf(blob).to_text(&crate::json::Layout::Line { space }) + "\n")
            .concat()
    };
    for space in ["", " "] {
        let new = added(&lines(space), &["0.2.0"], &request("stable", Policy::Semver));
        assert_eq!(new.lines().count(), 4);
        let first = format!("\"schema\":{space}\"olm.bundle\"");
        assert!(new.lines().last().unwrap().contains(&first), "{new}");
    }
}

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
        assert_eq!(change.account.bundles.iter().map(|own| own.added).collect::<Vec<_>>(), [false]);
    }
    let both = Request {
        channels: vec!["stable".parse().unwrap(), "fast".parse().unwrap()],
        ..request("stable", Policy::Replaces)
    };
    let change = add(&catalog, &[rendered("0.2.0")], &both).unwrap();
    let entries = |at: usize| change.account.channels[at].entries.len();
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
    catalog.yaml:29:7: the catalog has another `redis.v0.2.0`: they differ in `image` (help: a published bundle does not change: give the new one another version)
    catalog.yaml:12:9: `redis.v0.1.5` is not higher than the head of the channel `stable`, `redis.v0.2.0` (help: use the policy `semver` or `semver-skippatch`, which find its place)
    `redis.vv1` has the version `v1`, which is not semantic: unexpected character 'v' while parsing major version number (help: write `spec.version` as `MAJOR.MINOR.PATCH`, without `v`)
    `redis.v0.3.0` belongs to the package `valkey`, the bundles before it to `redis` (help: add the bundles of one package at a time)
    `redis` has no channel `beta` to be its default (help: name a channel that the package has, or one the bundle goes into)
    catalog.yaml:38:1: the catalog cannot be read completely: a blob of a catalog is a map, found a list (help: `catalog validate` lists every place)
    catalog.yaml:13:7: the channel `stable` is invalid: it has several heads (help: `catalog validate` lists what is wrong)
    catalog.yaml:11:9: the version of `redis.v0.1.0` in the channel `stable` is not known (help: `catalog validate` lists what is wrong)
    catalog.yaml:15:7: with `redis.v0.3.0` the channel `stable` would be invalid: every entry is replaced or skipped (help: the edges of its neighbours are not those of the policy: edit the channel by hand)
    ");
}

/// A catalog of versions in one of several styles, made by hand.
fn hand_made(versions: &[String], style: usize) -> String {
    let entries: Vec<_> = versions
        .iter()
        .enumerate()
        .map(|(at, version)| match at {
            0 => json!({ "name": format!("redis.v{version}") }),
            _ => json!({ "name": format!("redis.v{version}"), "replaces": format!("redis.v{}", versions[at - 1]) }),
        })
        .collect();
    let channel =
        json!({ "schema": "olm.channel", "package": "redis", "name": "stable", "entries": entries });
    let block = || olmkit_bundle::yaml::write::to_string(&channel).unwrap();
    let head = match style {
        0 => block(),
        1 => format!("# top\n{}# end\n", block().replace("\n-", "\n\n# an entry\n-")),
        2 => {
            let lines = versions.iter().enumerate().map(|(at, version)| match at {
                0 => format!("    -   name: redis.v{version}\n"),
                _ => format!(
                    "    -   name: redis.v{version}\n        replaces:  redis.v{}\n",
                    versions[at - 1]
                ),
            });
            format!(
                "schema: olm.channel\npackage: redis\nname: stable\nentries:\n{}",
                lines.collect::<String>()
            )
        }
        3 => format!("{channel}\n"),
        4 => format!("{channel:#}\n"),
        5 => block().replace('\n', " # note\n"),
        6 => {
            let flow = |entry: &serde_json::Value| {
                let text = entry.to_string().replace('"', "");
                text.replace(':', ": ").replace(',', ", ")
            };
            let lines: Vec<_> = entries.iter().map(|entry| format!("  {}, # note\n", flow(entry))).collect();
            format!("schema: olm.channel\npackage: redis\nname: stable\nentries: [\n{}]\n", lines.concat())
        }
        _ => block().replace("redis.v", "'redis.v").replace("0\n", "0'\n"),
    };
    with_bundles(&head, &versions.iter().map(String::as_str).collect::<Vec<_>>())
}

proptest! {
    /// Whatever the style: the result is sound, and every line with a comment or of another document is still there.
    #[test]
    fn adding_keeps_what_others_wrote(
        minors in prop::collection::btree_set(0..12u64, 1..6),
        new in 0..12u64,
        style in 0..8usize,
        policy in prop::sample::select(Policy::ALL.to_vec()),
    ) {
        let versions: Vec<String> = minors.iter().map(|minor| format!("0.{minor}.0")).collect();
        let text = hand_made(&versions, style);
        let files = one_file(&text);
        let catalog = Catalog::parse(&files);
        prop_assert!(catalog.faults.is_empty(), "{:?}\n{}", catalog.faults, text);
        let new = format!("0.{new}.0");
        match add(&catalog, &[rendered(&new)], &request("stable", policy)) {
            Err(AddError::NotHigher { .. }) => prop_assert!(policy == Policy::Replaces),
            Err(other) => prop_assert!(false, "{other}\n{text}"),
            Ok(change) if versions.contains(&new) => prop_assert!(change.files.is_empty(), "{text}"),
            Ok(change) => {
                let result = &change.files[0].text;
                sound(result);
                let files = one_file(result);
                let after = Catalog::parse(&files);
                prop_assert_eq!(after.bundles.len(), versions.len() + 1);
                prop_assert_eq!(after.channels[0].entries.len(), versions.len() + 1);
                let mut lines = result.lines();
                // Of entries on one line the comment counts.
                let kept = |line: &str| line[if line.contains('{') { line.find('#') } else { None }.unwrap_or(0)..].to_owned();
                for line in text.lines().filter(|line| line.contains('#') && !line.contains("replaces")) {
                    prop_assert!(lines.any(|other| kept(other) == kept(line)), "lost {line:?} of\n{text}\nin\n{result}");
                }
            }
        }
    }
}
