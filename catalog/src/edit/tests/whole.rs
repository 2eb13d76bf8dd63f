//! Edits of whole catalogs: packages made, manifests migrated, files split and merged.

use super::*;

fn directory(files: &[(&str, &str)]) -> CatalogFiles {
    let file = |(path, text): &(&str, &str)| merge::file((*path).to_owned(), (*text).to_owned());
    CatalogFiles { name: "catalog".into(), files: files.iter().map(file).collect() }
}

/// The files after an edit, which changes nothing more when it is made again.
#[track_caller]
fn after(files: &CatalogFiles, request: &Request) -> Vec<(String, String)> {
    let change = edit(files, request)
        .unwrap_or_else(|error| panic!("{error}: {:?}", std::error::Error::source(&error)));
    let new = changed(files, &change.files);
    assert!(edit(&new, request).unwrap().files.is_empty());
    texts(&new)
}

fn texts(files: &CatalogFiles) -> Vec<(String, String)> {
    let text = |file: &CatalogFile| file.content.text().unwrap_or_default().to_owned();
    files.files.iter().map(|file| (file.path.clone(), text(file))).collect()
}

fn init(description: Option<&str>, icon: Option<Icon>) -> Request {
    Request::Init(Init {
        package: "redis".into(),
        default_channel: "stable".parse().unwrap(),
        description: description.map(str::to_owned),
        icon,
        format: Format::Yaml,
    })
}

#[test]
fn a_package_is_made_and_bundles_can_be_added_to_it() {
    let svg = || Icon::new(b"<?xml version=\"1.0\"?>\n<!-- x -->\n<svg/>".to_vec());
    let files = after(&directory(&[]), &init(Some("# Redis\n\nA cache.\n"), svg()));
    insta::assert_snapshot!(files[0].1, @"
    ---
    defaultChannel: stable
    description: |
      # Redis

      A cache.
    icon:
      base64data: PD94bWwgdmVyc2lvbj0iMS4wIj8+CjwhLS0geCAtLT4KPHN2Zy8+
      mediatype: image/svg+xml
    name: redis
    schema: olm.package
    ");
    assert_eq!(files[0].0, "redis/catalog.yaml");
    // What is not given stays.
    let known = directory(&[("redis/catalog.yaml", &files[0].1)]);
    assert_eq!(after(&known, &init(None, None)), files);
    assert_eq!(
        diff(&files[0].1, &after(&known, &init(Some("A store."), None))[0].1),
        " defaultChannel: stable\n-description: |\n-  # Redis\n-\n-  A cache.\n+description: A store.\n icon:"
    );
    let gif = Icon::new(b"GIF89a".to_vec());
    insta::assert_snapshot!(diff(&files[0].1, &after(&known, &init(None, gif))[0].1), @"
     icon:
    -  base64data: PD94bWwgdmVyc2lvbj0iMS4wIj8+CjwhLS0geCAtLT4KPHN2Zy8+
    -  mediatype: image/svg+xml
    +  base64data: R0lGODlh
    +  mediatype: image/gif
     name: redis
    ");
    let bundle = crate::add::tests::rendered("1.0.0");
    let request = crate::add::tests::request("stable", Policy::Replaces);
    let change = crate::add::add(&Catalog::parse(&known), &[bundle], &request).unwrap();
    let text = &change.files[0].text;
    assert!(text.starts_with(&files[0].1), "{text}");
    assert!(validate::validate(&Catalog::parse(&CatalogFiles::from_text("", text.as_str()))).is_empty());
    let bad = Request::Init(Init { package: "Redis_".into(), ..init_of(&init(None, None)) });
    assert!(edit(&directory(&[]), &bad).unwrap_err().to_string().starts_with("the result would be invalid"));
}

fn init_of(request: &Request) -> Init {
    match request {
        Request::Init(init) => init.clone(),
        _ => unreachable!("it is one"),
    }
}

#[test]
fn pictures_that_consoles_show() {
    for (bytes, is_icon) in [
        (&b"\x89PNG\r\n\x1a\n..."[..], true),
        (b"\xff\xd8\xff\xe0", true),
        (b"GIF87a", true),
        (b"\xef\xbb\xbf <!DOCTYPE svg>\n<svg xmlns='x'>", true),
        (b"<html><svg/></html>", false),
        (b"<?xml", false),
        (b"BM", false),
        (b"", false),
    ] {
        assert_eq!(Icon::new(bytes.to_vec()).is_some(), is_icon, "{bytes:?}");
    }
}

/// Manifests of a bundle in its blob; its ClusterServiceVersion has a description.
fn with_manifests() -> String {
    use base64::Engine as _;
    let csv = r#"{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "redis.v1.0.0"}, "spec": {"description": "A cache."}}"#;
    let object = |json: &str| {
        let data = base64::engine::general_purpose::STANDARD.encode(json);
        format!("- type: olm.bundle.object\n  value: {{data: {data}}}\n")
    };
    let properties = format!(
        "# Properties.\nproperties:\n{}# The version.\n- type: olm.package\n  value: {{packageName: redis, version: 1.0.0}}\n{}",
        object(csv),
        object(r#"{"kind": "Service"}"#)
    );
    let first = "{schema: olm.bundle, package: redis, name: redis.v1.0.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.0.0}}]}\n";
    assert!(CATALOG.contains(first));
    CATALOG.replace(
        first,
        &format!("schema: olm.bundle\npackage: redis\nname: redis.v1.0.0\nimage: 'x/y:z'\n{properties}"),
    )
}

#[test]
fn manifests_are_replaced_by_metadata() {
    let text = with_manifests();
    let files = directory(&[("catalog.yaml", &text)]);
    let new = after(&files, &Request::Migrate);
    insta::assert_snapshot!(diff(&text, &new[0].1), @"
     properties:
    -- type: olm.bundle.object
    -  value: {data: eyJhcGlWZXJzaW9uIjogIm9wZXJhdG9ycy5jb3Jlb3MuY29tL3YxYWxwaGExIiwgImtpbmQiOiAiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIiwgIm1ldGFkYXRhIjogeyJuYW1lIjogInJlZGlzLnYxLjAuMCJ9LCAic3BlYyI6IHsiZGVzY3JpcHRpb24iOiAiQSBjYWNoZS4ifX0=}
     # The version.
       value: {packageName: redis, version: 1.0.0}
    -- type: olm.bundle.object
    -  value: {data: eyJraW5kIjogIlNlcnZpY2UifQ==}
    +- type: olm.csv.metadata
    +  value:
    +    apiServiceDefinitions: {}
    +    crdDescriptions: {}
    +    description: A cache.
    +    provider: {}
     ---
    ");
    let without = text.replace("name: redis.v1.0.0\nimage: 'x/y:z'", "name: redis.v1.0.0\nimage: ''");
    let change = edit(&directory(&[("catalog.yaml", &without)]), &Request::Migrate).unwrap();
    assert_eq!(
        change.summary,
        [
            "no bundle has manifests that can be replaced: nothing to change",
            "manifests stay in 1 bundle without an image, since OLM installs them from there"
        ]
    );
}

#[test]
fn each_package_gets_a_directory() {
    let other = CATALOG.replace("redis", "valkey");
    let both = format!("{CATALOG}---\n{other}");
    let files = directory(&[("README.yaml", "schema: my.note\n"), ("catalog.yaml", &both)]);
    let new = after(&files, &Request::Split);
    let paths: Vec<&str> = new.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["README.yaml", "redis/catalog.yaml", "valkey/catalog.yaml"]);
    insta::assert_snapshot!(diff(CATALOG, &new[1].1), @"
    +---
     # The catalog of redis.
    ");
    insta::assert_snapshot!(diff(&other, &new[2].1), @"
    +---
    +# The catalog of redis.
     # The catalog of valkey.
    ");
    // What is of no package stays, in its file.
    let mixed = directory(&[("a/all.yaml", &format!("schema: my.note\n---\n{both}"))]);
    let new = after(&mixed, &Request::Split);
    let paths: Vec<&str> = new.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["a/all.yaml", "redis/catalog.yaml", "valkey/catalog.yaml"]);
    assert_eq!(new[0].1, "schema: my.note\n");
    // JSON stays JSON, and goes to the directory that its package has.
    let catalog = CatalogFiles::from_text("", CATALOG);
    let json = write::to_text(&Catalog::parse(&catalog), Format::Json).unwrap();
    let (package, rest) = json.split_at(json.find("}\n{").unwrap() + 2);
    let json = directory(&[("db/package.json", package), ("rest.json", rest)]);
    let new = after(&json, &Request::Split);
    assert_eq!(new[0].0, "db/catalog.json");
    assert_eq!(new[0].1.matches("\"schema\"").count(), 6);
    let error = edit(&CatalogFiles::from_text("catalog.yaml", CATALOG), &Request::Split).unwrap_err();
    assert_eq!(error.to_string(), "`catalog.yaml` is a single file");
}

#[test]
fn catalogs_are_merged_with_their_comments() {
    let other = CATALOG.replace("redis", "valkey");
    let one = directory(&[("catalog.yaml", CATALOG)]);
    let two = CatalogFiles { name: "two".into(), ..directory(&[("catalog.yaml", &other)]) };
    let change = merge(&one, std::slice::from_ref(&two)).unwrap();
    assert_eq!(change.summary, ["took 7 blobs of `valkey` from `two`"]);
    let new = changed(&one, &change.files);
    assert_eq!(
        texts(&new),
        [("catalog.yaml".to_owned(), CATALOG.to_owned()), ("valkey/catalog.yaml".to_owned(), other.clone())]
    );
    let again = merge(&new, &[two]).unwrap();
    assert!(again.files.is_empty());
    assert_eq!(again.summary, ["the catalog has everything of `two`: nothing to change"]);
    // Into an empty directory, from single files.
    let single = |text: &str| CatalogFiles::from_text("one.yaml", text);
    let change = merge(&directory(&[]), &[single(CATALOG), single(&other)]).unwrap();
    let paths: Vec<&str> = change.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["redis/catalog.yaml", "valkey/catalog.yaml"]);
    assert_eq!(change.files[0].new.as_deref(), Some(CATALOG));
    // Into a single file.
    let change = merge(&single(CATALOG), &[single(&other)]).unwrap();
    assert!(change.files[0].new.as_deref().unwrap().starts_with(CATALOG));
}

#[test]
fn a_package_of_two_catalogs_is_joined_unless_they_disagree() {
    let stable = edited(CATALOG, &remove("fast", ""));
    let one = directory(&[("redis/catalog.yaml", &stable)]);
    let two = CatalogFiles { name: "two".into(), ..directory(&[("redis/catalog.yaml", CATALOG)]) };
    let change = merge(&one, std::slice::from_ref(&two)).unwrap();
    assert_eq!(change.summary, ["took 3 blobs of `redis` from `two`"]);
    let new = changed(&one, &change.files);
    assert!(texts(&new)[0].1.starts_with(&stable));
    let joined = crate::diff::diff(&Catalog::parse(&two), &Catalog::parse(&new));
    assert!(joined.packages.is_empty(), "{joined:?}");
    let changed_text = CATALOG
        .replace("x/y:z", "x/y:other")
        .replace("# new\n  replaces: redis.v1.1.1", "# new\n  replaces: redis.v1.1.0");
    let two = CatalogFiles { name: "two".into(), ..directory(&[("redis/catalog.yaml", &changed_text)]) };
    let error = merge(&directory(&[("redis/catalog.yaml", CATALOG)]), &[two]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the channel `fast` of `redis`, the bundle `redis.v1.0.0` of `redis`, the bundle `redis.v1.1.0` of `redis`, \
         the bundle `redis.v1.1.1` of `redis`, the bundle `redis.v1.2.0` of `redis` differ from what the catalog has"
    );
    assert_eq!(error.place().unwrap().to_string(), "two/redis/catalog.yaml:15:1");
}

/// A template is refused with its name, rather than as a catalog that lacks the package.
#[test]
fn a_template_whose_channels_follow_from_versions_is_refused() {
    let text = "schema: olm.semver\nstable: {bundles: [{image: 'x/redis:v1'}]}\n";
    let request = Request::SetDefault { package: "redis".into(), channel: "stable-v1".into() };
    let error = edit(&CatalogFiles::from_text("semver.yaml", text), &request).unwrap_err();
    assert_eq!(error.to_string(), "this is a template (`olm.semver`), not a catalog");
    assert_eq!(error.place().unwrap().to_string(), "semver.yaml:1:9");
    assert!(error.help().unwrap().contains("change its `bundles` in this file"));
}

/// The entries of a basic template are a catalog of which the bundles are not there.
#[test]
fn entries_of_a_template_are_edited_in_place() {
    let text = "\
# For every release.
schema: olm.template.basic
entries:
- schema: olm.package   # ours
  name: redis
  defaultChannel: stable
- schema: olm.channel
  package: redis
  name: stable
  entries:
  - name: redis.v1.0.0
- schema: olm.channel
  package: redis
  name: fast
  entries:
  - name: redis.v1.0.0
  - name: redis.v1.1.0   # new
    replaces: redis.v1.0.0
- schema: olm.bundle
  image: x/redis:v1.0.0
- schema: olm.bundle   # not out yet
  image: x/redis:v1.1.0
";
    insta::assert_snapshot!(diff(text, &edited(text, &promote("1.1.0", "stable"))), @"
       - name: redis.v1.0.0
    +  - name: redis.v1.1.0
    +    replaces: redis.v1.0.0
     - schema: olm.channel
    ");
    let without = text
        .replace("  - name: redis.v1.1.0   # new\n    replaces: redis.v1.0.0\n", "")
        .replace("- schema: olm.bundle   # not out yet\n  image: x/redis:v1.1.0\n", "");
    assert_eq!(edited(text, &remove("", "1.1.0")), without);
    let (package, channel) = (|| "redis".to_owned(), || "fast".to_owned());
    let to = "candidate".parse().unwrap();
    let rename = Request::RenameChannel { package: package(), channel: channel(), to };
    assert_eq!(edited(text, &rename), text.replace("name: fast", "name: candidate"));
    let default = Request::SetDefault { package: package(), channel: channel() };
    assert_eq!(edited(text, &default), text.replace("defaultChannel: stable", "defaultChannel: fast"));
    let deprecated = edited(text, &deprecate(Target::Version("1.0.0".into()), "Old."));
    assert!(deprecated.starts_with(text), "{deprecated}");
    assert_eq!(edited(&deprecated, &undeprecate(Target::Version("1.0.0".into()))), text);
    assert_eq!(
        refused(text, &promote("2.0.0", "stable")),
        "cannot edit the entries of the template: `redis` has no version `2.0.0`"
    );
    let digest = text.replace("x/redis:v1.1.0", "x/redis@sha256:12");
    let error = refused(&digest, &remove("", "1.1.0"));
    assert_eq!(error, "the template does not say which images are those of `1.1.0`: no tags tell");
}
