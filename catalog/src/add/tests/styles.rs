//! What adding changes in texts of every style: block and flow, comments, line breaks, JSON.

use super::*;

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
        assert!(matches!(error, AddError::Text(crate::texts::TextError::Document { .. })), "{error}");
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
