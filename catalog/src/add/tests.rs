//! Catalogs as people write them, and what adding a bundle changes in their text.

mod author;
mod laws;
mod places;
mod styles;

use serde_json::json;

use super::*;
use crate::load::CatalogFiles;
use crate::render::CsvFacts;
use crate::testing::diff;

/// A rendered bundle `redis.vVERSION`.
pub(crate) fn rendered(version: &str) -> Rendered {
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

pub(crate) fn request(channels: &str, policy: Policy) -> Request {
    let channels = channels.split(',').map(|name| name.parse().unwrap()).collect();
    Request::new(channels, policy)
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
    let findings = crate::validate::validate(&Catalog::parse(&files));
    assert!(findings.is_empty(), "{}\n{text}", crate::validate::first_message(&findings));
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
    insta::assert_snapshot!(serde_json::to_string_pretty(&change.report).unwrap(), @r#"
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

/// A catalog of versions in one of several styles, made by hand.
pub(crate) fn hand_made(versions: &[String], style: usize) -> String {
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
