//! The readings that were compared with go-yaml v2 behind sigs.k8s.io/yaml, case by case.

use super::*;

/// The documents of `text` as JSON, or `! message`, one a line.
fn read(text: &str) -> String {
    let show = |document: Result<Document<'_>, SyntaxError>| match document {
        Ok(document) => document.root.to_json().to_string(),
        Err(error) => format!("! {error}"),
    };
    documents(text).map(show).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(read(text), expected, "{text:?}");
}

#[test]
fn words_of_yaml_1_1() {
    check("[y, Yes, on, TRUE, n, No, off, False]", "[true,true,true,true,false,false,false,false]");
    check("[~, null, NULL, '', 'yes', \"on\"]", r#"[null,null,null,"","yes","on"]"#);
    check("[yEs, nuLL, tRUE, oN]", r#"["yEs","nuLL","tRUE","oN"]"#);
}

#[test]
fn numbers() {
    check("[010, 0o10, 0x1F, 0b101, -0b11, 08, 1_000, +5]", "[8,8,31,5,-3,8,1000,5]");
    check("[1.10, .5, 1., 1e3, 1E+2, 1.5e-7, -.5]", "[1.1,0.5,1,1000,100,1.5e-7,-0.5]");
    check(
        "[18446744073709551615, 18446744073709551616, -9223372036854775808]",
        "[18446744073709551615,1.8446744073709552e+19,-9223372036854775808]",
    );
    check("[1e400, 0x, 0b2, 1:30, 1.2.3, ., _1, e5]", r#"["1e400","0x","0b2","1:30","1.2.3",".","_1","e5"]"#);
    check("[.inf]", "! `inf` has no JSON form");
}

#[test]
fn tags() {
    check("[!!str 5, !!int '5', !!float 5, !!bool yes, !own 5, ! 5]", r#"["5",5,5,true,"5","5"]"#);
    check("!!int abc", "! the tag does not fit: `abc` is a string");
    check("!!binary aGVsbG8=", r#""hello""#);
}

#[test]
fn keys_become_text() {
    check("{1: a, true: b, 1.5: c, 010: d, yes: e}", r#"{"1":"a","1.5":"c","8":"d","true":"e"}"#);
    check("~: a", "! null cannot be a key");
    check("[a]: b", "! a list or a map cannot be a key");
}

#[test]
fn the_last_of_two_equal_keys_counts() {
    let document = first_document("a: 1\nb: 2\na: 3\n").unwrap();
    assert_eq!(document.root.to_json().to_string(), r#"{"a":3,"b":2}"#);
    let [Note::DuplicateKey { key, first, second }] = document.notes.as_slice() else {
        panic!("{:?}", document.notes)
    };
    assert_eq!((key.as_str(), first.start, second.start), ("a", 0, 10));
}

#[test]
fn merge_keys() {
    check("x: &x {a: 1, b: 2}\nz: {<<: *x, b: 3}", r#"{"x":{"a":1,"b":2},"z":{"a":1,"b":3}}"#);
    // What comes after a key overwrites it: a quirk of go-yaml v2.
    check("x: &x {a: 1, b: 2}\nz: {b: 3, <<: *x}", r#"{"x":{"a":1,"b":2},"z":{"a":1,"b":2}}"#);
    check("z: {<<: [{a: 1}, {a: 2, b: 2}]}", r#"{"z":{"a":1,"b":2}}"#);
    check("'<<': {a: 1}", r#"{"<<":{"a":1}}"#);
    check("<<: 1", "! `<<` takes a map or a list of maps");
}

#[test]
fn documents_are_read_one_by_one() {
    check("a: 1\n---\nb: [\n---\nc: 3\n", "{\"a\":1}\n! unclosed bracket '['\n{\"c\":3}");
    check("# only a comment\n", "null");
    check("a: 1\n...\nb: 2\n", r#"{"a":1}"#);
}

#[test]
fn what_yaml_1_2_forbids_and_libyaml_takes() {
    let text = "a: # 'why'\n  \"one\ntw\\\"o\n\n three\"\nb: 'it''s\n\nü'\nc: [x, \"y\nz\"]\nd: 1\n";
    let document = first_document(text).unwrap();
    assert_eq!(
        document.root.to_json().to_string(),
        r#"{"a":"one tw\"o\nthree","b":"it's\nü","c":["x","y z"],"d":1}"#
    );
    assert!(matches!(document.notes.as_slice(), [Note::OldSyntax { .. }]));
    let written = |key| document.root.get(key).unwrap().span.slice(text);
    assert_eq!(
        [written("a"), written("b"), written("d")],
        ["\"one\ntw\\\"o\n\n three\"", "'it''s\n\nü'", "1"]
    );
    check("a: 'x\ny\n", "! invalid indentation in multiline quoted scalar");
}

#[test]
fn spans_point_at_the_text() {
    let text = "# ü\na:\n  - b: 'x y'   # why\n    c: |\n      z\n\n\nd: {e: f}\n";
    let document = first_document(text).unwrap();
    let at = |path: &[Step<'_>]| document.root.at(path).unwrap().span.slice(text);
    assert_eq!(at(&["a".into(), 0.into(), "b".into()]), "'x y'");
    assert_eq!(at(&["d".into()]), "{e: f}");
    assert_eq!(at(&["a".into(), 0.into(), "c".into()]), "z");
    assert!(at(&["a".into()]).ends_with("z"));
    assert_eq!(document.root.as_mapping().unwrap().entry("d").unwrap().key_span.slice(text), "d");
}

#[test]
fn hostile_input_is_refused_within_bounds() {
    let deep = "[".repeat(100_000);
    assert!(first_document(&deep).is_err());
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let previous = format!("*a{}", i - 1);
        bomb += &format!("a{i}: &a{i} [{}]\n", vec![previous; 10].join(", "));
    }
    check(&bomb, "! aliases multiply the document beyond what Kubernetes reads");
    check("a: &a [*a]", "! an anchor's value may not contain itself");
    check("a: \u{0}", "! control character U+0000 is not allowed");
    let open: String = (0..200).map(|depth| format!("&a{depth} [")).collect();
    let anchors = format!("{open}{}{}", "1,".repeat(20_000), "]".repeat(200));
    let error = first_document(&anchors).unwrap_err().to_string();
    assert_eq!(error, "the values up to here need more than 48 MiB of memory");
    assert!(first_document(&format!("[{}]", "1,".repeat(2 << 20))).is_err());
    // What documents take together counts, however little each takes.
    let texts = format!("a: [{}]\n---\n", "1,".repeat(400_000)).repeat(6);
    let read: Vec<_> = documents(&texts).map(|document| document.is_ok()).collect();
    assert!(read[0] && read[2] && !read[5], "{read:?}");
    // Spaces that a repair adds are bounded too.
    let text = format!("m:\n  k:{}\"x\n{} y\"\n", " ".repeat(20_000), " y\n".repeat(5_000));
    assert!(first_document(&text).is_err());
    check("%YAML 1.2\n---\na: 1", "! did not find expected <document start>\n{\"a\":1}");
}

/// Where `block` reads a text, the parser reads the same from it, values and places.
#[track_caller]
fn check_both(text: &str) -> bool {
    let room = build::Room::of(text.len());
    let Ok((read, _)) = block::read(text, 3, room) else { return false };
    let (parsed, notes, _) = events::parse(text, 3, room).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    assert!(parsed == read && notes.is_empty(), "{text:?}\n{parsed:?}\n{read:?}\n{notes:?}");
    true
}

const STYLES: &str = r#"---
apiVersion: v1
"quoted key" : 'it''s' # why
'a: b': "\"x\"\t\u00fc"
empty:
list:
- a
- - b
  - c: 1
    d: [x, {e: "f", g: -1}, [], {}]
-   h: |

      text
        deeper

      # no comment
    i: >+
      folded
      text

       more
      less

    j: |2-
       x
    k: >
      one

      two
other:
  - plain text
    over lines

    of #no comment
  # comment
  - 'quoted

    text'
  - "quoted \
    text
    more  \n
    end"
010: 0x1f
yes: ~
last: http://x:80/a?b=c
"#;

#[test]
fn the_usual_style_is_read_as_the_parser_reads_it() {
    assert!(check_both(STYLES));
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut usual = 0;
    for directory in std::fs::read_dir(data).unwrap() {
        for file in std::fs::read_dir(directory.unwrap().path()).unwrap() {
            let Ok(text) = std::fs::read_to_string(file.unwrap().path()) else { continue };
            usual += usize::from(check_both(&text));
        }
    }
    assert!(usual > 20, "{usual}");
}

#[test]
fn what_almost_is_the_usual_style_is_read_as_the_parser_reads_it() {
    const PIECES: [&str; 40] = [
        " ", "  ", "\n", "\n\n", "\n ", "\n  ", "\n- ", ":", ": ", ":\n", "-", "- ", "#", " #", "\"", "'",
        "''", "\\", "\\n", "|", "|+\n", "|-", ">", ">1", "[", "]", "{", "}", ",", "&a ", "*a", "!", "?",
        "? ", "<<: ", "\t", "...", "---", "%", "x",
    ];
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    let lines: Vec<_> = STYLES.split_inclusive('\n').collect();
    let mut usual = 0;
    let rounds = 20_000;
    for _ in 0..rounds {
        let from = random(lines.len());
        let mut text: String = lines[from..(from + 1 + random(9)).min(lines.len())].concat();
        for _ in 0..random(4) {
            let at = text.floor_char_boundary(random(text.len() + 1));
            let to = text.floor_char_boundary((at + random(4)).min(text.len()));
            text.replace_range(at..to, PIECES[random(PIECES.len())]);
        }
        usual += usize::from(check_both(&text));
    }
    assert!(usual > rounds / 10, "{usual}");
}

/// Go reads the keys in their order and gives each to the field that it names, whatever the case.
#[test]
fn of_two_spellings_of_a_field_the_last_in_order_counts() {
    for (text, field, expected) in [
        ("{version: a, Version: b}", "version", "a"),
        ("{Version: b, version: a}", "version", "a"),
        ("{displayName: a, displayname: b}", "displayName", "b"),
        ("{DISPLAYNAME: a, displayName: b}", "displayName", "b"),
    ] {
        // Large maps are searched in another way.
        let others: String = (0..30).map(|at| format!(", Key{at}: x, v{at}: x")).collect();
        for text in [text.to_owned(), text.replace('}', &format!("{others}}}"))] {
            let document = first_document(&text).unwrap();
            let mapping = document.root.as_mapping().unwrap();
            assert_eq!(mapping.get_folded(field).and_then(Node::as_str), Some(expected), "{text}");
            assert_eq!(mapping.get_folded("key"), None);
            assert!(mapping.iter().all(|entry| mapping.entry(&entry.key) == Some(entry)), "{text}");
        }
    }
}

#[test]
fn a_tab_is_reported_in_its_own_line() {
    for (text, at) in
        [("a:\n  b: 1\n\tc: 2\n", "\tc: 2"), ("name: a\n\tb: c\n", "\tb: c"), ("a:\n\t- b\n", "\t- b")]
    {
        let error = first_document(text).unwrap_err();
        let start = error.span.start as usize;
        assert!(text[start..].trim_start_matches('\t').starts_with(at.trim_start()), "{text:?} at {start}");
    }
}
