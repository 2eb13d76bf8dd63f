//! What testers found.

use super::*;
use crate::diff::diff as catalog_diff;

/// A package `p` whose channel `c` has these entries, with a bundle for each version.
fn package(entries: &str, versions: &[&str]) -> String {
    let bundle = |version: &&str| {
        format!(
            "---\n{{schema: olm.bundle, package: p, name: p.v{version}, image: 'x/p:v{version}', properties: [{{type: olm.package, value: {{packageName: p, version: {version}}}}}]}}\n"
        )
    };
    let bundles: String = versions.iter().map(bundle).collect();
    format!(
        "---\n{{schema: olm.package, name: p, defaultChannel: c}}\n---\nschema: olm.channel\npackage: p\nname: c\nentries:\n{entries}{bundles}"
    )
}

fn removal(channel: Option<&str>, version: Option<&str>, keep_path: bool) -> Request {
    Request::Remove {
        package: "p".into(),
        channel: channel.map(str::to_owned),
        version: version.map(str::to_owned),
        keep_path,
        strand: true,
    }
}

#[track_caller]
fn made(text: &str, request: &Request) -> Change {
    edit(&CatalogFiles::from_text("catalog.yaml", text), request).unwrap()
}

#[track_caller]
fn after(text: &str, request: &Request) -> String {
    made(text, request).files.remove(0).new.unwrap()
}

/// `0.9.0` is only in `skips` of the removed entry, `0.8.0` in nothing but its range.
const COVERING: &str = "- name: p.v1.0.0
- name: p.v1.1.0
  replaces: p.v1.0.0
  skips: [p.v0.9.0]
  skipRange: '>=0.8.0 <0.9.0'
- name: p.v1.2.0
  replaces: p.v1.1.0
";

#[test]
fn keeping_the_path_keeps_what_only_the_removed_entry_covered() {
    let text = package(COVERING, &["1.0.0", "1.1.0", "1.2.0"]);
    let new = after(&text, &removal(None, Some("1.1.0"), true));
    insta::assert_snapshot!(diff(&text, &new), @r#"
     - name: p.v1.0.0
    -- name: p.v1.1.0
    -  replaces: p.v1.0.0
    -  skips: [p.v0.9.0]
    -  skipRange: '>=0.8.0 <0.9.0'
     - name: p.v1.2.0
    -  replaces: p.v1.1.0
    +  replaces: p.v1.0.0
    +  skipRange: ">=0.8.0 <0.9.0"
    +  skips:
    +  - p.v1.1.0
    +  - p.v0.9.0
     ---
     ---
    -{schema: olm.bundle, package: p, name: p.v1.1.0, image: 'x/p:v1.1.0', properties: [{type: olm.package, value: {packageName: p, version: 1.1.0}}]}
    ----
     {schema: olm.bundle, package: p, name: p.v1.2.0, image: 'x/p:v1.2.0', properties: [{type: olm.package, value: {packageName: p, version: 1.2.0}}]}
    "#);
    let (old, new) = (CatalogFiles::from_text("", text), CatalogFiles::from_text("", new));
    let found = catalog_diff(&Catalog::parse(&old), &Catalog::parse(&new)).packages.remove(0);
    assert_eq!((found.paths_lost, found.stranded), (vec![], vec![]));
}

#[test]
fn removing_says_and_diff_sees_what_only_the_removed_entry_covered() {
    let text = package(COVERING, &["1.0.0", "1.1.0", "1.2.0"]);
    let change = made(&text, &removal(None, Some("1.1.0"), false));
    assert_eq!(
        change.summary.last().unwrap(),
        "clusters that have `>=0.8.0 <0.9.0`, `p.v0.9.0` or `p.v1.1.0` from `c` cannot upgrade"
    );
    let (old, new) = (
        CatalogFiles::from_text("", text),
        CatalogFiles::from_text("", change.files[0].new.clone().unwrap()),
    );
    let (old, new) = (Catalog::parse(&old), Catalog::parse(&new));
    let found = catalog_diff(&old, &new).packages.remove(0);
    let lost: Vec<_> = found.paths_lost.iter().map(|path| path.from.as_str()).collect();
    assert_eq!(lost, ["p.v1.1.0", ">=0.8.0 <0.9.0", "p.v0.9.0"]);
    let since = paths(&new, &Query { since: Some(&old), ..Query::default() }).unwrap();
    let without: Vec<String> =
        since.iter().filter(|path| !path.reaches_head).map(|path| path.from.to_owned()).collect();
    assert_eq!(without, ["p.v1.1.0", ">=0.8.0 <0.9.0", "p.v0.9.0"]);
}

#[test]
fn the_path_of_a_head_cannot_be_kept() {
    let text = package(COVERING, &["1.0.0", "1.1.0", "1.2.0"]);
    assert_eq!(
        refused(&text, &removal(None, Some("1.2.0"), true)),
        "`p.v1.2.0` is the head of `c`: no later version can skip it"
    );
}

#[test]
fn removing_a_package_names_who_requires_it() {
    let requires = CATALOG.replace(
        "{packageName: redis, version: 1.2.0}}]",
        "{packageName: redis, version: 1.2.0}}, {type: olm.package.required, value: {packageName: p, versionRange: '>=1.0.0'}}]",
    );
    let text = format!("{requires}{}", package("- name: p.v1.0.0\n", &["1.0.0"]));
    let change = made(&text, &removal(None, None, false));
    assert_eq!(
        change.summary,
        [
            "removed the package `p`",
            "`redis.v1.2.0` can no longer be installed: it requires package `p` in the range `>=1.0.0`, which the catalog does not have"
        ]
    );
}

#[test]
fn removing_a_channel_says_whose_clusters_stay_where_they_are() {
    let change = made(CATALOG, &remove("fast", ""));
    assert_eq!(
        change.summary,
        [
            "removed the channel `fast` of `redis`",
            "removed the bundles `redis.v1.1.1` and `redis.v1.2.0`, which no other channel has",
            "Subscriptions to `fast` no longer find it: change their `spec.channel`",
            "no other channel upgrades clusters that have `redis.v1.1.1` or `redis.v1.2.0`"
        ]
    );
}

#[test]
fn removing_a_version_with_its_channel_is_done_only_once() {
    let text = edited(CATALOG, &promote("1.2.0", "candidate"));
    let request = remove("candidate", "1.2.0");
    let new = edited(&text, &request);
    assert_eq!(new, CATALOG);
    let again = made(&new, &request);
    assert_eq!(
        again.summary,
        ["`redis` has no channel `candidate`, only `stable` and `fast`: nothing to remove"]
    );
}

#[test]
fn a_policy_that_an_entry_contradicts_is_refused() {
    let policy = |version: &str, policy| Request::Promote {
        package: "redis".into(),
        version: version.into(),
        to: "fast".parse().unwrap(),
        policy: Some(policy),
    };
    let wrong = |version, by| refused(CATALOG, &policy(version, by));
    assert!(
        wrong("1.1.1", Policy::Semver).starts_with(
            "`redis.v1.1.1` is already in the channel `fast`, with other edges than the policy `semver` gives"
        ),
        "{}",
        wrong("1.1.1", Policy::Semver)
    );
    assert!(wrong("1.1.0", Policy::SkipRange).contains("other edges"));
    for (version, by) in
        [("1.1.1", Policy::SemverSkippatch), ("1.1.0", Policy::Semver), ("1.1.0", Policy::Replaces)]
    {
        assert_eq!(made(CATALOG, &policy(version, by)).files, []);
    }
}

#[test]
fn a_wrong_old_name_of_a_channel_is_refused() {
    let rename = |from: &str, to: &str| Request::RenameChannel {
        package: "redis".into(),
        channel: from.into(),
        to: to.parse().unwrap(),
    };
    assert_eq!(refused(CATALOG, &rename("fsat", "stable")), "`redis` has no channel `fsat`");
    assert_eq!(
        made(CATALOG, &rename("alpha", "stable")).summary,
        ["`redis` has no channel `alpha`, and has the channel `stable` already: nothing to change"]
    );
}

#[test]
fn renaming_a_channel_goes_on_where_it_was_interrupted() {
    let rename = Request::RenameChannel {
        package: "redis".into(),
        channel: "stable".into(),
        to: "lts".parse().unwrap(),
    };
    let text = edited(CATALOG, &deprecate(Target::Channel("stable".into()), "Use fast."));
    let whole = edited(&text, &rename);
    for half in [
        whole.replace("defaultChannel: lts", "defaultChannel: stable"),
        whole.replace("    name: lts\n", "    name: stable\n"),
    ] {
        assert_ne!(half, whole);
        assert_eq!(edited(&half, &rename), whole);
    }
}

#[test]
fn comments_above_an_entry_go_with_it() {
    let text = package(
        "# Oldest first.

# the first release
- name: p.v1.0.0
# breaks backups
# (see 42)
- name: p.v1.1.0
  replaces: p.v1.0.0
  # still 1.1.0
# fixes them
- name: p.v1.2.0
  replaces: p.v1.1.0
",
        &["1.0.0", "1.1.0", "1.2.0"],
    );
    let new = after(&text, &removal(None, Some("1.1.0"), false));
    let entries = |text: &str| {
        text.split("entries:\n")
            .nth(1)
            .and_then(|rest| rest.split("---").next())
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(
        entries(&new),
        "# Oldest first.\n\n# the first release\n- name: p.v1.0.0\n# fixes them\n- name: p.v1.2.0\n  replaces: p.v1.0.0\n"
    );
    let new = after(&text, &removal(None, Some("1.0.0"), false));
    assert!(
        entries(&new).starts_with(
            "# Oldest first.\n\n# breaks backups\n# (see 42)\n- name: p.v1.1.0\n  # still 1.1.0\n"
        )
    );
}

#[test]
fn text_that_is_not_read_is_not_deleted() {
    let blobs =
        |package: &str| package_json(package).iter().map(|blob| format!("{blob}\n")).collect::<String>();
    for text in [
        format!("# generated by the pipeline\n{}{}", blobs("p"), blobs("q")),
        format!("\u{feff}{}{}", blobs("p"), blobs("q")),
        format!("schema: olm.package\nname: p\n...\n{CATALOG}"),
    ] {
        assert_eq!(
            refused(&text, &removal(None, None, false)),
            "the text from here on is not read: only the first document before a `---` is"
        );
    }
}

fn package_json(package: &str) -> Vec<serde_json::Value> {
    let name = format!("{package}.v1.0.0");
    let value = serde_json::json!({"packageName": package, "version": "1.0.0"});
    vec![
        serde_json::json!({"schema": "olm.package", "name": package, "defaultChannel": "a"}),
        serde_json::json!({"schema": "olm.channel", "package": package, "name": "a", "entries": [{"name": name}]}),
        serde_json::json!({"schema": "olm.bundle", "package": package, "name": name, "image": "x/y:z",
                           "properties": [{"type": "olm.package", "value": value}]}),
    ]
}

#[test]
fn a_default_channel_that_is_not_there_is_refused_by_init_too() {
    let init = Request::Init(Init {
        package: "redis".into(),
        default_channel: "no-such-channel".parse().unwrap(),
        description: None,
        icon: None,
        format: Format::Yaml,
    });
    let error = refused(CATALOG, &init);
    assert!(
        error.starts_with("the result would be invalid: ") && error.contains("no-such-channel"),
        "{error}"
    );
}

fn directory(files: &[(&str, &str)]) -> CatalogFiles {
    let file = |(path, text): &(&str, &str)| CatalogFile {
        path: (*path).into(),
        content: Content::Text((*text).into()),
    };
    CatalogFiles { name: "catalog".into(), files: files.iter().map(file).collect() }
}

fn paths_of(files: &CatalogFiles) -> Vec<&str> {
    files.files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn splitting_goes_on_where_it_was_interrupted() {
    let all = ["redis", "db", "zed"].map(|name| CATALOG.replace("redis", name)).join("---\n");
    let files = directory(&[("all.yaml", all.as_str())]);
    let change = edit(&files, &Request::Split).unwrap();
    let whole = changed(&files, &change.files);
    assert_eq!(paths_of(&whole), ["db/catalog.yaml", "redis/catalog.yaml", "zed/catalog.yaml"]);
    let mut half = whole.clone();
    half.files.insert(0, files.files[0].clone());
    half.files.pop();
    let change = edit(&half, &Request::Split).unwrap();
    let done = changed(&half, &change.files);
    assert_eq!(paths_of(&done), paths_of(&whole));
    for (a, b) in done.files.iter().zip(&whole.files) {
        assert_eq!(a.content.text(), b.content.text());
    }
}

#[test]
fn splitting_gives_a_directory_to_the_package_that_it_is_named_for() {
    let (redis, db) = (CATALOG, CATALOG.replace("redis", "db"));
    let files = directory(&[("db.yaml", db.as_str()), ("db/catalog.yaml", redis)]);
    let done = changed(&files, &edit(&files, &Request::Split).unwrap().files);
    assert_eq!(paths_of(&done), ["db/catalog.yaml", "redis/catalog.yaml"]);
    assert!(!done.files[0].content.text().unwrap().contains("redis"));
    assert_eq!(edit(&done, &Request::Split).unwrap().files, []);
}

#[test]
fn merging_takes_a_blob_of_no_package() {
    let files = directory(&[("catalog.yaml", CATALOG)]);
    let other = format!("{CATALOG}---\nschema: acme.thing\nname: x\n");
    let other = directory(&[("x.yaml", other.as_str())]);
    let change = merge(&files, &[other]).unwrap();
    assert_eq!(change.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["catalog.yaml"]);
}

#[test]
fn formatting_keeps_values_that_it_cannot_write() {
    let deep = format!("{}1{}", "[".repeat(128), "]".repeat(128));
    for value in
        ["1e400", "1.0", "1e2", r#""\ud800""#, &deep, r#"{"k":1,"k":2}"#, "123456789012345678901234567890"]
    {
        let odd = format!("{{\"schema\":\"acme.x\",\"name\":\"n\",\"a\":{value}}}\n");
        let text = format!("{{\"schema\":\"acme.y\"}}\n{odd}");
        let change = made(&text, &Request::Format);
        let new = change.files.first().map(|file| file.new.clone().unwrap()).unwrap();
        assert!(new.ends_with(&odd), "{value}: {new}");
        assert!(change.summary[1].contains("stays as it is"), "{:?}", change.summary);
    }
}

#[test]
fn splitting_keeps_line_breaks_that_belong_to_a_text() {
    for header in ["|+", ">2+ # kept", "|+2"] {
        let text = |name: &str| {
            let description = format!("description: {header}\n  text\n\n\n");
            CATALOG
                .replace("redis", name)
                .replace("defaultChannel: stable\n", &format!("defaultChannel: stable\n{description}"))
        };
        let files = directory(&[("all.yaml", [text("redis"), text("db")].join("---\n").as_str())]);
        let done = changed(&files, &edit(&files, &Request::Split).unwrap().files);
        assert_eq!(paths_of(&done), ["db/catalog.yaml", "redis/catalog.yaml"]);
        let descriptions = |files: &CatalogFiles| -> Vec<String> {
            let catalog = Catalog::parse(files);
            catalog.packages.iter().map(|package| package.description.to_string()).collect()
        };
        assert_eq!(descriptions(&done), descriptions(&files), "{header}");
        assert!(descriptions(&done)[0].ends_with("text\n\n\n"), "{header}");
    }
}

#[test]
fn a_byte_order_mark_is_part_of_no_document() {
    let text = format!("\u{feff}{CATALOG}");
    let change = made(&text, &Request::Format);
    let plain = made(CATALOG, &Request::Format);
    assert_eq!(change.files[0].new, plain.files[0].new);
    let both = format!("{text}---\n{}", CATALOG.replace("redis", "db"));
    let files = directory(&[("all.yaml", both.as_str())]);
    let done = changed(&files, &edit(&files, &Request::Split).unwrap().files);
    assert_eq!(paths_of(&done), ["db/catalog.yaml", "redis/catalog.yaml"]);
    assert!(done.files.iter().all(|file| !file.content.text().unwrap().contains('\u{feff}')));
}

#[test]
fn removing_the_last_document_keeps_line_breaks_that_belong_to_a_text() {
    let note = "schema: acme.note\npackage: redis\ntext: |+\n  kept\n\n\n";
    let other = CATALOG.replace("redis", "db").replace("\n# The end.\n", "");
    let text = format!("{CATALOG}---\n{note}---\n{other}");
    let request = Request::Remove {
        package: "db".into(),
        channel: None,
        version: None,
        keep_path: false,
        strand: true,
    };
    let new = after(&text, &request);
    let files = CatalogFiles::from_text("catalog.yaml", new.as_str());
    let catalog = Catalog::parse(&files);
    assert_eq!(catalog.others[0].to_json()["text"], "kept\n\n\n", "{new}");
    assert!(!new.contains("db"));
}

#[test]
fn merging_takes_documents_as_they_are_written() {
    let document = "\
# the new one
schema: acme.odd   # of ours
package: redis
name: odd
value: {n: 1e400, x: 0x1F, long: 123456789012345678901234567890}
# below
";
    let other = format!("{CATALOG}---\n{document}---\nschema: acme.odd\npackage: redis\nname: last\n");
    let other = directory(&[("x.yaml", other.as_str())]);
    let added = format!("---\n{document}---\nschema: acme.odd\npackage: redis\nname: last\n");
    let merged = |path: &str, text: &str| {
        let change = merge(&directory(&[(path, text)]), std::slice::from_ref(&other)).unwrap();
        change.files[0].new.clone().unwrap()
    };
    assert_eq!(merged("catalog.yaml", CATALOG), format!("{CATALOG}{added}"));
    let crlf = CATALOG.replace('\n', "\r\n");
    assert_eq!(merged("catalog.yaml", &crlf), format!("{crlf}{}", added.replace('\n', "\r\n")));
    // A file of JSON stays one.
    let files = CatalogFiles::from_text("catalog.yaml", CATALOG);
    let json = write::to_text(&Catalog::parse(&files), Format::Json).unwrap();
    let new = merged("catalog.json", &json);
    assert!(new.starts_with(&json) && new.contains("\"x\": 31") && !new.contains("---"), "{new}");
}

/// A prune that was killed after it has written the channel, and before it has removed the bundles.
#[test]
fn a_prune_that_was_interrupted_does_the_rest() {
    let half = package("- {name: p.v2.0.0, replaces: p.v1.0.0}\n", &["1.0.0", "2.0.0"]);
    let keep = Keep { packages: vec!["p".into()], heads_only: true, ..Keep::default() };
    let done = edited(&half, &Request::Prune(keep));
    assert!(done.contains("x/p:v2.0.0") && !done.contains("x/p:v1.0.0"), "{done}");
}

#[test]
fn comments_of_other_keys_stay_where_the_first_key_of_an_entry_goes() {
    let entries = "\
# the oldest
- name: p.v1.0.0
# the second release
- replaces: p.v1.0.0   # what it replaces
    # and why
  # how it is called
  name: p.v2.0.0
  # to be skipped
  skips: [p.v1.0.1]
- name: p.v3.0.0
  replaces: p.v2.0.0
";
    let text = package(entries, &["1.0.0", "2.0.0", "3.0.0"]);
    let request = removal(None, Some("1.0.0"), false);
    let new = edited(&text, &request);
    let expected = "\
# the second release
# how it is called
- name: p.v2.0.0
  # to be skipped
  skips: [p.v1.0.1]
- name: p.v3.0.0
";
    assert!(new.contains(expected), "{new}");
    // Of two keys that go, the first two.
    let both = entries.replace(
        "  # how it is called\n  name: p.v2.0.0\n  # to be skipped\n  skips: [p.v1.0.1]\n",
        "  skips: [p.v1.0.0]\n  # how it is called\n  name: p.v2.0.0\n",
    );
    let new = edited(&package(&both, &["1.0.0", "2.0.0", "3.0.0"]), &request);
    assert!(
        new.contains("# the second release\n# how it is called\n- name: p.v2.0.0\n- name: p.v3.0.0\n"),
        "{new}"
    );
}

#[test]
fn comments_of_other_keys_stay_in_brackets() {
    let entries = "\
- name: p.v1.0.0
- {replaces: p.v1.0.0, # what it replaces
   # how it is called
   name: p.v2.0.0}
- name: p.v3.0.0
  replaces: p.v2.0.0
  skips: [p.v2.0.1, # never released
    p.v1.0.0]
";
    let text = package(entries, &["1.0.0", "2.0.0", "3.0.0"]);
    let request = removal(None, Some("1.0.0"), false);
    let new = edited(&text, &request);
    assert!(new.contains("# how it is called") && new.contains("# never released"), "{new}");
    assert!(!new.contains("# what it replaces") && !new.contains("v1.0.0"), "{new}");
}

#[test]
fn a_removal_that_strands_clusters_is_refused() {
    let text = package(COVERING, &["1.0.0", "1.1.0", "1.2.0"]);
    let careful = |version: &str, keep_path| Request::Remove {
        package: "p".into(),
        channel: None,
        version: Some(version.into()),
        keep_path,
        strand: false,
    };
    let request = careful("1.1.0", false);
    assert_eq!(
        refused(&text, &request),
        "removing `p.v1.1.0` strands clusters: clusters that have `>=0.8.0 <0.9.0`, `p.v0.9.0` or `p.v1.1.0` from `c` cannot upgrade"
    );
    assert!(help_of(&text, &request).starts_with("pass --keep-path, "));
    assert!(!made(&text, &careful("1.1.0", true)).files.is_empty());
    // No later version can skip the head.
    assert!(help_of(&text, &careful("1.2.0", false)).starts_with("pass --strand "));
}
