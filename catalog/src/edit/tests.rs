//! Edits of catalogs as people write them, and what they change in the text.

mod finds;
mod formatting;
mod laws;
mod templates;
mod whole;

use olmkit_bundle::load::Content;

use super::*;
use crate::fbc::write;
use crate::load::CatalogFile;
use crate::testing::diff;

/// A package with comments, quotes and key orders of several people.
const CATALOG: &str = r#"# The catalog of redis.
name: redis   # the package
schema: olm.package
defaultChannel: stable
---
# Slow and safe.
schema: olm.channel
package: redis
name: stable
entries:
  # the first one
  - name: redis.v1.0.0
  - {name: "redis.v1.1.0", replaces: 'redis.v1.0.0'}   # in flow style
---
schema: olm.channel
package: redis
name: fast
entries:
- name: redis.v1.0.0
- name: redis.v1.1.0
  replaces: redis.v1.0.0
- name: redis.v1.1.1
  replaces: redis.v1.0.0
  skips:
  - redis.v1.1.0
- name: redis.v1.2.0 # new
  replaces: redis.v1.1.1
  skipRange: '>=1.0.0 <1.2.0'
# Bundles follow.
---
{schema: olm.bundle, package: redis, name: redis.v1.0.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.0.0}}]}
---
{schema: olm.bundle, package: redis, name: redis.v1.1.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.1.0}}]}
---
{schema: olm.bundle, package: redis, name: redis.v1.1.1, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.1.1}}]}
---
{schema: olm.bundle, package: redis, name: redis.v1.2.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.2.0}}]}
# The end.
"#;

fn promote(version: &str, to: &str) -> Request {
    let (package, version, to) = ("redis".into(), version.into(), to.parse().unwrap());
    Request::Promote { package, version, to, policy: None }
}

fn remove(channel: &str, version: &str) -> Request {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Request::Remove {
        package: "redis".into(),
        channel: some(channel),
        version: some(version),
        keep_path: false,
        strand: true,
    }
}

fn deprecate(target: Target, message: &str) -> Request {
    Request::Deprecate { package: "redis".into(), target, message: message.into() }
}

fn undeprecate(target: Target) -> Request {
    Request::Undeprecate { package: "redis".into(), target }
}

/// The text after an edit of a catalog of one text.
#[track_caller]
fn edited(text: &str, request: &Request) -> String {
    let files = CatalogFiles::from_text("catalog.yaml", text);
    let mut change = edit(&files, request)
        .unwrap_or_else(|error| panic!("{error}: {:?}", std::error::Error::source(&error)));
    let new = change.files.remove(0).new.unwrap();
    let again = edit(&CatalogFiles::from_text("catalog.yaml", new.as_str()), request).unwrap();
    assert!(again.files.is_empty(), "the same edit changes something again: {again:?}");
    assert!(again.summary[0].contains("nothing to "), "{:?}", again.summary);
    new
}

#[track_caller]
fn change_of(request: &Request) -> String {
    diff(CATALOG, &edited(CATALOG, request))
}

#[track_caller]
fn refused(text: &str, request: &Request) -> String {
    let error = edit(&CatalogFiles::from_text("catalog.yaml", text), request).unwrap_err();
    match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[track_caller]
fn help_of(text: &str, request: &Request) -> String {
    edit(&CatalogFiles::from_text("catalog.yaml", text), request).unwrap_err().help().unwrap_or_default()
}

#[test]
fn promoting_adds_an_entry_like_its_neighbours() {
    insta::assert_snapshot!(change_of(&promote("1.2.0", "stable")), @r#"
       - {name: "redis.v1.1.0", replaces: 'redis.v1.0.0'}   # in flow style
    +  - {name: redis.v1.2.0, replaces: redis.v1.1.0, skipRange: ">=1.0.0 <1.2.0"}
     ---
    "#);
    insta::assert_snapshot!(change_of(&promote("redis.v1.1.1", "stable")), @r#"
       - {name: "redis.v1.1.0", replaces: 'redis.v1.0.0'}   # in flow style
    +  - {name: redis.v1.1.1, replaces: redis.v1.0.0, skips: [redis.v1.1.0]}
     ---
    "#);
}

#[test]
fn promoting_to_a_new_channel_makes_it() {
    insta::assert_snapshot!(change_of(&promote("1.2.0", "candidate")), @r#"
     # The end.
    +---
    +entries:
    +- name: redis.v1.2.0
    +  replaces: redis.v1.1.1
    +  skipRange: ">=1.0.0 <1.2.0"
    +name: candidate
    +package: redis
    +schema: olm.channel
    "#);
}

#[test]
fn promoting_by_a_policy() {
    let policy = |policy| Request::Promote {
        package: "redis".into(),
        version: "1.2.0".into(),
        to: "stable".parse().unwrap(),
        policy: Some(policy),
    };
    insta::assert_snapshot!(change_of(&policy(Policy::Replaces)), @r#"
       - {name: "redis.v1.1.0", replaces: 'redis.v1.0.0'}   # in flow style
    +  - {name: redis.v1.2.0, replaces: redis.v1.1.0}
     ---
    "#);
    insta::assert_snapshot!(change_of(&policy(Policy::SkipRange)), @r#"
       - {name: "redis.v1.1.0", replaces: 'redis.v1.0.0'}   # in flow style
    +  - {name: redis.v1.2.0, replaces: redis.v1.1.0, skipRange: "<1.2.0"}
     ---
    "#);
}

#[test]
fn what_cannot_be_promoted() {
    let text = CATALOG.replace(
        "- name: redis.v1.0.0\n- name: redis.v1.1.0\n  replaces: redis.v1.0.0\n",
        "- name: redis.v1.1.0\n",
    );
    let text =
        text.replace("replaces: redis.v1.0.0\n  skips", "skips").replace("'>=1.0.0 <1.2.0'", "'<1.1.0'");
    assert_eq!(
        refused(&text.replace("    - redis.v1.1.0", ""), &promote("1.0.0", "fast")),
        "no upgrade path leads from `redis.v1.2.0`, the head of `fast`, to `redis.v1.0.0`"
    );
    assert_eq!(refused(CATALOG, &promote("1.3.0", "stable")), "`redis` has no version `1.3.0`");
    let mut other = promote("1.2.0", "stable");
    if let Request::Promote { package, .. } = &mut other {
        *package = "valkey".into();
    }
    assert_eq!(refused(CATALOG, &other), "the catalog has no package `valkey`");
    assert_eq!(help_of(CATALOG, &other), "its packages are `redis`");
    if let Request::Promote { package, .. } = &mut other {
        *package = "reids".into();
    }
    assert_eq!(help_of(CATALOG, &other), "did you mean `redis`?");
}

/// A version that no installed one of the channel leads to, by any channel of the package.
#[test]
fn promoting_without_a_path_is_refused() {
    let text = CATALOG
        .replace("  replaces: redis.v1.1.1\n  skipRange: '>=1.0.0 <1.2.0'\n", "  skips: [redis.v1.1.1]\n");
    let text = text.replace("- name: redis.v1.1.0\n  replaces: redis.v1.0.0\n", "- name: redis.v1.1.0\n");
    let text = text.replace(
        "  replaces: redis.v1.0.0\n  skips:\n  - redis.v1.1.0\n",
        "  skips: [redis.v1.0.0, redis.v1.1.0]\n",
    );
    let text =
        text.replace("fast\nentries:\n- name: redis.v1.0.0\n- name: redis.v1.1.0\n", "fast\nentries:\n");
    let text = text.replace("[redis.v1.0.0, redis.v1.1.0]", "[redis.v0.9.0]");
    assert_eq!(
        refused(&text, &promote("1.2.0", "stable")),
        "no upgrade path leads from `redis.v1.1.0`, the head of `stable`, to `redis.v1.2.0`"
    );
}

#[test]
fn deprecations_come_and_go() {
    let first = edited(CATALOG, &deprecate(Target::Version("1.0.0".into()), "Old: upgrade to 1.2.0."));
    insta::assert_snapshot!(diff(CATALOG, &first), @r#"
     # The end.
    +---
    +entries:
    +- message: "Old: upgrade to 1.2.0."
    +  reference:
    +    name: redis.v1.0.0
    +    schema: olm.bundle
    +package: redis
    +schema: olm.deprecations
    "#);
    let second = edited(&first, &deprecate(Target::Channel("fast".into()), "two\nlines"));
    insta::assert_snapshot!(diff(&first, &second), @r"
         schema: olm.bundle
    +- message: |-
    +    two
    +    lines
    +  reference:
    +    name: fast
    +    schema: olm.channel
     package: redis
    ");
    let third = edited(&second, &deprecate(Target::Package, "Gone."));
    insta::assert_snapshot!(diff(&second, &third), @r"
         schema: olm.channel
    +- message: Gone.
    +  reference:
    +    schema: olm.package
     package: redis
    ");
    let other = edited(&third, &deprecate(Target::Channel("fast".into()), "one line"));
    insta::assert_snapshot!(diff(&third, &other), @r"
         schema: olm.bundle
    -- message: |-
    -    two
    -    lines
    +- message: one line
       reference:
    ");
    assert_eq!(edited(&other, &deprecate(Target::Channel("fast".into()), "two\nlines")), third);
    assert_eq!(edited(&third, &undeprecate(Target::Package)), second);
    let none = edited(
        &edited(&second, &undeprecate(Target::Channel("fast".into()))),
        &undeprecate(Target::Version("v1.0.0".into())),
    );
    assert_eq!(none, CATALOG);
    assert_eq!(
        refused(CATALOG, &deprecate(Target::Package, " ")),
        "the message of a deprecation cannot be empty"
    );
    assert_eq!(
        refused(CATALOG, &deprecate(Target::Channel("slow".into()), "x")),
        "`redis` has no channel `slow`"
    );
}

#[test]
fn removing_joins_the_edges_of_what_stays() {
    insta::assert_snapshot!(change_of(&remove("", "1.1.1")), @r"
       replaces: redis.v1.0.0
    -- name: redis.v1.1.1
    -  replaces: redis.v1.0.0
    -  skips:
    -  - redis.v1.1.0
     - name: redis.v1.2.0 # new
    -  replaces: redis.v1.1.1
    +  replaces: redis.v1.1.0
       skipRange: '>=1.0.0 <1.2.0'
     ---
    -{schema: olm.bundle, package: redis, name: redis.v1.1.1, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.1.1}}]}
    ----
     {schema: olm.bundle, package: redis, name: redis.v1.2.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.2.0}}]}
    ");
    insta::assert_snapshot!(change_of(&remove("", "1.0.0")), @r#"
     entries:
    -  # the first one
    -  - name: redis.v1.0.0
    -  - {name: "redis.v1.1.0", replaces: 'redis.v1.0.0'}   # in flow style
    +  - {name: "redis.v1.1.0"}   # in flow style
     ---
     entries:
    -- name: redis.v1.0.0
     - name: redis.v1.1.0
    -  replaces: redis.v1.0.0
     - name: redis.v1.1.1
    -  replaces: redis.v1.0.0
       skips:
     ---
    -{schema: olm.bundle, package: redis, name: redis.v1.0.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.0.0}}]}
    ----
     {schema: olm.bundle, package: redis, name: redis.v1.1.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.1.0}}]}
    "#);
    insta::assert_snapshot!(change_of(&remove("", "1.2.0")), @r"
       - redis.v1.1.0
    -- name: redis.v1.2.0 # new
    -  replaces: redis.v1.1.1
    -  skipRange: '>=1.0.0 <1.2.0'
     # Bundles follow.
     {schema: olm.bundle, package: redis, name: redis.v1.1.1, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.1.1}}]}
    ----
    -{schema: olm.bundle, package: redis, name: redis.v1.2.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.2.0}}]}
     # The end.
    ");
    insta::assert_snapshot!(change_of(&remove("fast", "1.1.0")), @r"
     - name: redis.v1.0.0
    -- name: redis.v1.1.0
    -  replaces: redis.v1.0.0
     - name: redis.v1.1.1
       replaces: redis.v1.0.0
    -  skips:
    -  - redis.v1.1.0
     - name: redis.v1.2.0 # new
    ");
}

#[test]
fn removing_can_keep_the_path_of_those_who_have_it() {
    let request = Request::Remove {
        package: "redis".into(),
        channel: None,
        version: Some("1.1.1".into()),
        keep_path: true,
        strand: false,
    };
    insta::assert_snapshot!(change_of(&request), @r"
       replaces: redis.v1.0.0
    -- name: redis.v1.1.1
    -  replaces: redis.v1.0.0
    -  skips:
    -  - redis.v1.1.0
     - name: redis.v1.2.0 # new
    -  replaces: redis.v1.1.1
    +  replaces: redis.v1.1.0
       skipRange: '>=1.0.0 <1.2.0'
    +  skips:
    +  - redis.v1.1.1
     # Bundles follow.
     ---
    -{schema: olm.bundle, package: redis, name: redis.v1.1.1, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.1.1}}]}
    ----
     {schema: olm.bundle, package: redis, name: redis.v1.2.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.2.0}}]}
    ");
}

#[test]
fn removing_a_channel_and_a_package() {
    insta::assert_snapshot!(change_of(&remove("fast", "")), @r#"
       - {name: "redis.v1.1.0", replaces: 'redis.v1.0.0'}   # in flow style
    ----
    -schema: olm.channel
    -package: redis
    -name: fast
    -entries:
    -- name: redis.v1.0.0
    -- name: redis.v1.1.0
    -  replaces: redis.v1.0.0
    -- name: redis.v1.1.1
    -  replaces: redis.v1.0.0
    -  skips:
    -  - redis.v1.1.0
    -- name: redis.v1.2.0 # new
    -  replaces: redis.v1.1.1
    -  skipRange: '>=1.0.0 <1.2.0'
     # Bundles follow.
     {schema: olm.bundle, package: redis, name: redis.v1.1.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.1.0}}]}
    ----
    -{schema: olm.bundle, package: redis, name: redis.v1.1.1, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.1.1}}]}
    ----
    -{schema: olm.bundle, package: redis, name: redis.v1.2.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.2.0}}]}
     # The end.
    "#);
    assert_eq!(refused(CATALOG, &remove("stable", "")), "`stable` is the default channel of `redis`");
    let other = format!("{CATALOG}---\n{}", CATALOG.replace("redis", "valkey"));
    assert_eq!(
        edited(&other, &remove("", "")),
        format!(
            "# The catalog of redis.\n# Bundles follow.\n# The end.\n{}",
            CATALOG.replace("redis", "valkey")
        )
    );
}

#[test]
fn removing_what_others_need_is_refused() {
    let text =
        CATALOG.replace("  replaces: redis.v1.1.1\n", "  replaces: redis.v1.0.0\n  skips: [redis.v1.1.1]\n");
    // 1.1.1 is skipped, and 1.1.0 only by it.
    let text = text.replace("  skips: [redis.v1.1.1]\n", "  skips: [redis.v1.1.1] # x\n");
    assert!(
        refused(&text, &remove("", "1.1.1")).starts_with("the channel `fast` would be broken"),
        "{}",
        refused(&text, &remove("", "1.1.1"))
    );
    let only = "schema: olm.package\nname: redis\ndefaultChannel: c\n---\nschema: olm.channel\npackage: redis\nname: c\nentries: [{name: a}]\n---\n";
    let only = format!(
        "{only}{{schema: olm.bundle, package: redis, name: a, image: x/y, properties: [{{type: olm.package, value: {{packageName: redis, version: 1.0.0}}}}]}}\n"
    );
    assert_eq!(
        refused(&only, &remove("", "1.0.0")),
        "the default channel `c` of `redis` would have no version left"
    );
}

#[test]
fn the_default_channel_and_names_of_channels() {
    let request = Request::SetDefault { package: "redis".into(), channel: "fast".into() };
    insta::assert_snapshot!(change_of(&request), @r"
     schema: olm.package
    -defaultChannel: stable
    +defaultChannel: fast
     ---
    ");
    let request = |from: &str, to: &str| Request::RenameChannel {
        package: "redis".into(),
        channel: from.into(),
        to: to.parse().unwrap(),
    };
    let text = edited(CATALOG, &deprecate(Target::Channel("stable".into()), "Use lts."));
    insta::assert_snapshot!(diff(&text, &edited(&text, &request("stable", "lts"))), @r"
     schema: olm.package
    -defaultChannel: stable
    +defaultChannel: lts
     ---
     package: redis
    -name: stable
    +name: lts
     entries:
       reference:
    -    name: stable
    +    name: lts
         schema: olm.channel
    ");
    assert_eq!(refused(CATALOG, &request("fast", "stable")), "`redis` already has a channel `stable`");
}

#[test]
fn a_result_that_is_not_valid_is_refused() {
    let text = CATALOG.replace(
        "---\n{schema: olm.bundle, package: redis, name: redis.v1.1.1",
        "---\n{schema: olm.bundle, package: redis, name: odd",
    );
    let error = refused(&text, &deprecate(Target::Package, "x"));
    assert!(error.starts_with("the result would be invalid: "), "{error}");
    let error = refused(&text.replace("schema: olm.package", "schema: ["), &deprecate(Target::Package, "x"));
    assert!(error.starts_with("the catalog cannot be read completely: "), "{error}");
}

/// The catalog in another form, and what an edit may not change of it.
fn forms() -> Vec<(&'static str, String)> {
    let files = CatalogFiles::from_text("catalog.yaml", CATALOG);
    let catalog = Catalog::parse(&files);
    let json = write::to_text(&catalog, write::Format::Json).unwrap();
    let compact: String = catalog.blobs().map(|blob| format!("{blob}\n")).collect();
    let tabs = json.replace("    ", "\t");
    vec![
        ("comments", CATALOG.to_owned()),
        ("canonical", write::to_text(&catalog, write::Format::Yaml).unwrap()),
        ("without a final line break", CATALOG.trim_end().to_owned()),
        ("CRLF", CATALOG.replace('\n', "\r\n")),
        ("JSON", json.clone()),
        ("JSON without a final line break", json.trim_end().to_owned()),
        ("JSON with tabs", tabs),
        ("JSON on lines", compact.clone()),
        ("JSON on one line", compact.replace('\n', "")),
        ("JSON in YAML", catalog.blobs().map(|blob| format!("---\n{blob:#}\n")).collect()),
        ("CRLF JSON", json.replace('\n', "\r\n")),
    ]
}

/// What is added and then removed leaves the text as it was, whatever its form.
#[test]
fn the_undo_gives_the_first_bytes_back_in_every_form() {
    let policy = |version: &str, policy| Request::Promote {
        package: "redis".into(),
        version: version.into(),
        to: "stable".parse().unwrap(),
        policy: Some(policy),
    };
    let package = || Target::Package;
    let version = || Target::Version("1.1.0".into());
    let pairs = [
        (promote("1.2.0", "stable"), remove("stable", "1.2.0")),
        (promote("1.2.0", "new"), remove("new", "")),
        (policy("1.1.1", Policy::SemverSkippatch), remove("stable", "1.1.1")),
        (policy("1.2.0", Policy::SkipRange), remove("stable", "1.2.0")),
        (deprecate(package(), "x: y"), undeprecate(package())),
        (deprecate(version(), "several\nlines\n"), undeprecate(version())),
    ];
    for (form, text) in forms() {
        for (there, back) in &pairs {
            let new = edited(&text, there);
            assert_ne!(new, text);
            assert_eq!(edited(&new, back), text, "{form}: {there:?} made\n{new}");
            assert_eq!(text.ends_with('\n'), new.ends_with('\n'), "{form}");
            assert_eq!(new.contains("\r\n"), text.contains("\r\n"), "{form}");
            assert!(!text.contains("\r\n") || !new.replace("\r\n", "").contains('\n'), "{form}");
        }
    }
}

/// An edit changes only lines that speak of what it is about.
#[test]
fn an_edit_touches_only_what_it_is_about() {
    for (form, text) in forms().into_iter().filter(|(form, _)| !form.contains("one line")) {
        let other = text.replace("redis", "valkey");
        let separator = if text.contains("---") { "\n---\n" } else { "\n" };
        let both = format!("{other}{separator}{text}");
        for request in [
            promote("1.2.0", "stable"),
            remove("", "1.1.1"),
            remove("fast", ""),
            deprecate(Target::Package, "x"),
        ] {
            let new = edited(&both, &request);
            assert!(new.starts_with(&format!("{other}{separator}")), "{form}: {request:?}");
        }
    }
}

#[test]
fn anchors_are_changed_where_only_one_place_changes_and_refused_else() {
    let text = CATALOG.replace(
        "- name: redis.v1.0.0\n- name: redis.v1.1.0",
        "- name: redis.v1.0.0\n- name: &x redis.v1.1.0",
    );
    let text = text.replace("  skips:\n  - redis.v1.1.0", "  skips:\n  - *x");
    let new = edited(&text, &remove("fast", "1.2.0"));
    assert!(new.contains("&x") && new.contains("*x"));
    let new = edited(&text, &promote("1.1.1", "stable"));
    assert!(new.contains("- *x"));
    let new = edited(&text, &remove("fast", "1.1.0"));
    assert!(!new.contains("&x") && !new.contains("*x"));
    let text = CATALOG.replace("- name: redis.v1.1.1", "- name: &y redis.v1.1.1");
    let text = text.replace("replaces: redis.v1.1.1", "replaces: *y");
    let files = CatalogFiles::from_text("catalog.yaml", text.as_str());
    let error = edit(&files, &remove("fast", "1.1.1")).unwrap_err();
    assert!(matches!(error, EditError::Text(TextError::Document { .. })), "{error}");
}

#[test]
fn files_of_a_directory() {
    let file =
        |path: &str, text: &str| CatalogFile { path: path.into(), content: Content::Text(text.into()) };
    let other = CATALOG.replace("redis", "valkey");
    let files = CatalogFiles {
        name: "catalog".into(),
        files: vec![file("redis/catalog.yaml", CATALOG), file("valkey/catalog.yaml", &other)],
    };
    let change = edit(&files, &remove("", "")).unwrap();
    let gone = ChangedFile { path: "redis/catalog.yaml".into(), old: Some(CATALOG.into()), new: None };
    assert_eq!(change.files, [gone]);
    let again = edit(&changed(&files, &change.files), &remove("", "")).unwrap();
    assert_eq!(again.summary, ["the catalog has no package `redis`, only `valkey`: nothing to remove"]);
    let slip = edit(&files, &remove("", "9.9.9")).unwrap().summary;
    assert!(slip[0].starts_with("`redis` has no version `9.9.9`, only `"), "{slip:?}");
}

/// What a catalog of two packages keeps: `redis` requires `db`, which requires nothing.
fn pruned(keep: Keep) -> Change {
    let db = CATALOG.replace("redis", "db");
    let other = CATALOG.replace("redis", "other");
    let redis = CATALOG.replace(
        "{packageName: redis, version: 1.1.1}}]",
        "{packageName: redis, version: 1.1.1}}, {type: olm.package.required, value: {packageName: db, versionRange: '>=1.0.0'}}]",
    );
    let file =
        |path: &str, text: &str| CatalogFile { path: path.into(), content: Content::Text(text.into()) };
    let files = CatalogFiles {
        name: "catalog".into(),
        files: vec![file("db.yaml", &db), file("other.yaml", &other), file("redis.yaml", &redis)],
    };
    let request = Request::Prune(keep);
    let change = edit(&files, &request).unwrap();
    let again = edit(&changed(&files, &change.files), &request).unwrap();
    assert!(again.files.is_empty());
    change
}

#[test]
fn pruning_keeps_what_is_named_and_what_that_requires() {
    let keep = || Keep { packages: vec!["redis".into()], ..Keep::default() };
    let gone = |change: &Change| -> Vec<String> {
        change.files.iter().filter(|file| file.new.is_none()).map(|file| file.path.clone()).collect()
    };
    assert_eq!(gone(&pruned(keep())), ["db.yaml", "other.yaml"]);
    let change = pruned(Keep { with_dependencies: true, ..keep() });
    assert_eq!(gone(&change), ["other.yaml"]);
    assert_eq!(
        change.summary,
        ["kept the package `db`, which kept bundles require", "removed the package `other`"]
    );
    // The version that requires it is not kept, and so neither is what it requires.
    let change = pruned(Keep { with_dependencies: true, heads_only: true, ..keep() });
    assert_eq!(gone(&change), ["db.yaml", "other.yaml"]);
    let text = change.files[2].new.as_deref().unwrap();
    insta::assert_snapshot!(text, @r#"
    # The catalog of redis.
    name: redis   # the package
    schema: olm.package
    defaultChannel: stable
    ---
    # Slow and safe.
    schema: olm.channel
    package: redis
    name: stable
    entries:
      - {name: "redis.v1.1.0", replaces: 'redis.v1.0.0'}   # in flow style
    ---
    schema: olm.channel
    package: redis
    name: fast
    entries:
    - name: redis.v1.2.0 # new
      replaces: redis.v1.1.1
      skipRange: '>=1.0.0 <1.2.0'
    # Bundles follow.
    ---
    {schema: olm.bundle, package: redis, name: redis.v1.1.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.1.0}}]}
    ---
    {schema: olm.bundle, package: redis, name: redis.v1.2.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.2.0}}]}
    # The end.
    "#);
}

#[test]
fn pruning_by_channel_and_version() {
    let request = |keep: Keep| Request::Prune(Keep { packages: vec!["redis".into()], ..keep });
    let channels = |names: &[&str]| Keep {
        channels: names.iter().map(|name| (*name).into()).collect(),
        ..Keep::default()
    };
    assert_eq!(edited(CATALOG, &request(channels(&["redis/stable"]))), edited(CATALOG, &remove("fast", "")));
    assert_eq!(refused(CATALOG, &request(channels(&["fast"]))), "`stable` is the default channel of `redis`");
    assert_eq!(refused(CATALOG, &request(channels(&["stable", "slow"]))), "`redis` has no channel `slow`");
    let least =
        |version: &str| request(Keep { min_version: Some(version.parse().unwrap()), ..Keep::default() });
    insta::assert_snapshot!(diff(CATALOG, &edited(CATALOG, &least("1.1.0"))), @r#"
     entries:
    -  # the first one
    -  - name: redis.v1.0.0
       - {name: "redis.v1.1.0", replaces: 'redis.v1.0.0'}   # in flow style
     entries:
    -- name: redis.v1.0.0
     - name: redis.v1.1.0
     ---
    -{schema: olm.bundle, package: redis, name: redis.v1.0.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.0.0}}]}
    ----
     {schema: olm.bundle, package: redis, name: redis.v1.1.0, image: 'x/y:z', properties: [{type: olm.package, value: {packageName: redis, version: 1.1.0}}]}
    "#);
    assert_eq!(
        refused(CATALOG, &least("1.2.0")),
        "the default channel `stable` of `redis` has no version 1.2.0 or later"
    );
    assert_eq!(refused(CATALOG, &least("9.0.0")), "`redis` has no version 9.0.0 or later");
    let help = |version: &str| help_of(CATALOG, &least(version));
    assert_eq!(
        help("1.2.0"),
        "its highest version is `1.1.0`: pass a lower --min-version, or make another channel the default first, with \
         `olmkit catalog set-default`"
    );
    assert_eq!(help("9.0.0"), "its highest version is `1.2.0`: pass a lower --min-version");
}
