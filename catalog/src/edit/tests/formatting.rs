//! One layout, and where comments go in it.

use super::*;

#[track_caller]
fn formatted(text: &str) -> String {
    let files = CatalogFiles::from_text("catalog.yaml", text);
    let change = edit(&files, &Request::Format).unwrap();
    let new = change.files.into_iter().next().and_then(|file| file.new).unwrap_or_else(|| text.to_owned());
    let again = edit(&CatalogFiles::from_text("catalog.yaml", new.as_str()), &Request::Format).unwrap();
    assert!(again.files.is_empty(), "formatting again changes something:\n{new}\n{:?}", again.files[0].new);
    new
}

#[test]
fn comments_stay_with_what_they_speak_of() {
    insta::assert_snapshot!(formatted(CATALOG), @r#"
    ---
    # The catalog of redis.
    defaultChannel: stable
    name: redis # the package
    schema: olm.package
    ---
    # Slow and safe.
    entries:
    # the first one
    - name: redis.v1.0.0
    - name: redis.v1.1.0 # in flow style
      replaces: redis.v1.0.0
    name: stable
    package: redis
    schema: olm.channel
    ---
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
      skipRange: ">=1.0.0 <1.2.0"
    name: fast
    package: redis
    schema: olm.channel
    # Bundles follow.
    ---
    image: x/y:z
    name: redis.v1.0.0
    package: redis
    properties:
    - type: olm.package
      value:
        packageName: redis
        version: "1.0.0"
    schema: olm.bundle
    ---
    image: x/y:z
    name: redis.v1.1.0
    package: redis
    properties:
    - type: olm.package
      value:
        packageName: redis
        version: "1.1.0"
    schema: olm.bundle
    ---
    image: x/y:z
    name: redis.v1.1.1
    package: redis
    properties:
    - type: olm.package
      value:
        packageName: redis
        version: "1.1.1"
    schema: olm.bundle
    ---
    image: x/y:z
    name: redis.v1.2.0
    package: redis
    properties:
    - type: olm.package
      value:
        packageName: redis
        version: "1.2.0"
    schema: olm.bundle
    # The end.
    "#);
}

#[test]
fn what_opm_writes_is_formatted() {
    let files = CatalogFiles::from_text("catalog.yaml", CATALOG);
    let catalog = Catalog::parse(&files);
    for format in [Format::Yaml, Format::Json] {
        let text = write::to_text(&catalog, format).unwrap();
        assert_eq!(formatted(&text), text);
    }
    let json = write::to_text(&catalog, Format::Json).unwrap();
    for (form, text) in forms() {
        let new = formatted(&text);
        match form {
            "CRLF" => assert_eq!(new, formatted(CATALOG).replace('\n', "\r\n")),
            "CRLF JSON" => assert_eq!(new, json.replace('\n', "\r\n")),
            "JSON with tabs" | "JSON without a final line break" => assert_eq!(new, json, "{form}"),
            "without a final line break" => assert_eq!(new, formatted(CATALOG)),
            // The order of blobs stays.
            _ => assert_eq!(new.matches("schema").count(), 7, "{form}"),
        }
    }
}

#[test]
fn comments_in_every_place() {
    let text = "\
# A licence.

# The package.
schema: olm.package
# of the name
name:   'redis'
defaultChannel: stable # of the channel
description: |  # of the text
  # Not a comment.
  Text.

# last
--- # second
schema: olm.channel
package: redis
name: stable
entries:    # all of them
  - # of an item
    name: redis.v1
  # commented out:
  # - name: redis.v0
  - {name: redis.v2, # of a member
     replaces: redis.v1, skips: [redis.v0, # of an item in brackets
       redis.v00]} # of the whole
  - skips:
      # of the skip
      - a # beside the skip
      # below the skip
    # below the skips
    name: redis.v3
    replaces: redis.v2
    # below the entry
# below the entries
";
    insta::assert_snapshot!(formatted(text), @"
    ---
    # A licence.
    # The package.
    defaultChannel: stable # of the channel
    description: | # of the text
      # Not a comment.
      Text.
    # of the name
    name: redis
    schema: olm.package
    # last
    ---
    # second
    entries: # all of them
    # of an item
    - name: redis.v1
    # commented out:
    # - name: redis.v0
    # of the whole
    - name: redis.v2 # of a member
      replaces: redis.v1
      skips:
      - redis.v0 # of an item in brackets
      - redis.v00
    # below the skips
    - name: redis.v3
      replaces: redis.v2
      # below the entry
      skips:
      # of the skip
      - a # beside the skip
      # below the skip
    name: stable
    package: redis
    schema: olm.channel
    # below the entries
    ");
}

#[test]
fn documents_with_anchors_and_tags_stay_as_they_are() {
    let text = CATALOG.replace("name: redis   # the package", "name: &x redis   # the package");
    let files = CatalogFiles::from_text("catalog.yaml", text.as_str());
    let change = edit(&files, &Request::Format).unwrap();
    let new = change.files[0].new.as_deref().unwrap();
    assert!(new.starts_with("---\n# The catalog of redis.\nname: &x redis   # the package\nschema"), "{new}");
    assert_eq!(
        change.summary,
        [
            "formatted `catalog.yaml`",
            "`catalog.yaml:2:1` stays as it is: it has anchors, tags, duplicate keys or values that would change"
        ]
    );
    formatted(&text);
    formatted(&CATALOG.replace("name: redis.v1.1.1", "name: !!str redis.v1.1.1"));
    formatted(&CATALOG.replace("  skipRange", "  skipRange: '#1' # lost\n  skipRange"));
}

#[test]
fn formatting_keeps_the_spelling_of_numbers_words_and_dates() {
    let values = [
        "1e400",
        "-1e400",
        ".5e999",
        "0x1F",
        "0xFFFFFFFFFFFFFFFFFFFFFFFFFF",
        "0o17",
        "0b11",
        "010",
        "1_000",
        "+5",
        "1.0",
        "1.10",
        "1e3",
        "-.5",
        "0.1e1",
        "123456789012345678901234567890",
        "18446744073709551615",
        "-9223372036854775809",
        "~",
        "Null",
        "yes",
        "No",
        "on",
        "OFF",
        "y",
        "True",
        "1:30",
        "2024-01-01",
        "2001-12-14t21:59:43.10-05:00",
    ];
    for value in values {
        let text =
            format!("schema: acme.x\nname: a\nlist: [{value}, b]\nmap: {{a: {value}}}\nown:\n  {value}\n");
        let new = formatted(&text);
        let layout = "---\nlist:\n- V\n- b\nmap:\n  a: V\nname: a\nown: V\nschema: acme.x\n";
        assert_eq!(new, layout.replace('V', value));
    }
    for key in ["yes", "0x10", "1.0", "2024-01-01", "1e400"] {
        assert_eq!(
            formatted(&format!("schema: acme.x\nmap: {{{key}: 1}}\n")),
            format!("---\nmap:\n  {key}: 1\nschema: acme.x\n")
        );
    }
}

#[test]
fn formatting_keeps_texts_that_look_like_numbers_texts() {
    for (value, expected) in [
        ("'1e400'", "\"1e400\""),
        ("\"2024-01-01\"", "\"2024-01-01\""),
        ("|-\n  2024-01-01", "\"2024-01-01\""),
        ("'yes'", "\"yes\""),
        ("1.2.3", "\"1.2.3\""),
        ("'text'", "text"),
        ("", "null"),
    ] {
        assert_eq!(
            formatted(&format!("schema: acme.x\na: {value}\n")),
            format!("---\na: {expected}\nschema: acme.x\n")
        );
    }
}

/// Takes seconds where work grows with the file, and minutes where it grows with its square.
#[test]
fn a_map_of_many_keys_takes_no_longer_than_it_is() {
    let started = std::time::Instant::now();
    let keys = (0..50_000).rev().map(|at| format!("# above\nk{at:05}: {at} # beside\n"));
    let text = format!("schema: x\n{}", keys.collect::<String>());
    let new = formatted(&text);
    assert!(
        new.starts_with("---\n# above\nk00000: 0 # beside\n# above\nk00001: 1 # beside\n"),
        "{}",
        &new[..200]
    );
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}
