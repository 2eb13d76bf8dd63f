//! Every rule's cases: the examples of its documentation.

use std::collections::BTreeSet;
use std::path::Path;

use olmkit_bundle::load::Content;

use super::*;
use crate::load::{CatalogFile, CatalogFiles};

/// The examples of a page: the word behind `yaml` (`bad` or `good`) and the text.
fn examples(docs: &str) -> Vec<(&str, &str)> {
    let mut examples = Vec::new();
    for block in docs.split("```yaml ").skip(1) {
        let (kind, rest) = block.split_once('\n').unwrap();
        examples.push((kind.trim(), rest.split_once("```").unwrap().0));
    }
    examples
}

/// An example as a catalog. A line `# NAME: unread` stands for a file that cannot be read.
fn example_catalog(text: &str) -> CatalogFiles {
    let mut files = CatalogFiles::from_text("example", text);
    if text.starts_with("# 4 MiB") {
        return CatalogFiles::from_text("example", text.replace('…', &"x".repeat(4 << 20)));
    }
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# ").and_then(|rest| rest.strip_suffix(": unread")) {
            files
                .files
                .push(CatalogFile { path: name.into(), content: Content::Unread("it is a picture".into()) });
        }
    }
    files
}

#[test]
fn the_examples_of_every_page_are_true() {
    for rule in rules().iter().chain(advice()) {
        let name = rule.code.name;
        let examples = examples(rule.code.docs);
        for kind in ["bad", "good"] {
            assert!(examples.iter().any(|(k, _)| *k == kind), "{name} has no {kind} example");
        }
        for (kind, text) in examples {
            let files = example_catalog(text);
            let found =
                advise(&Catalog::parse(&files)).iter().filter(|finding| finding.code == &rule.code).count();
            match kind {
                "bad" => assert_eq!(found, 1, "{name}: the bad example\n{text}"),
                "good" => assert_eq!(found, 0, "{name}: the good example\n{text}"),
                other => panic!("{name}: an example is `bad` or `good`, not `{other}`"),
            }
        }
    }
}

#[test]
fn codes_are_sorted_and_unique() {
    for table in [rules(), advice()] {
        let names: Vec<_> = table.iter().map(|rule| rule.code.name).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    }
}

#[test]
fn every_file_of_rules_is_in_its_table() {
    for (directory, table) in [("rules", rules()), ("advice", advice())] {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/validate").join(directory);
        let names = std::fs::read_dir(directory)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap());
        let files: BTreeSet<_> =
            names.filter_map(|name| name.strip_suffix(".rs").map(str::to_owned)).collect();
        let in_table: BTreeSet<_> = table.iter().map(|rule| rule.code.name.replace('-', "_")).collect();
        assert_eq!(files, in_table);
    }
}

/// A sound catalog of five lines.
const SOUND: &str = r#"{"schema": "olm.package", "name": "p", "defaultChannel": "a", "icon": {"base64data": "aWNvbg==", "mediatype": "image/png"}}
{"schema": "olm.channel", "package": "p", "name": "a", "entries": [{"name": "p.v1"}, {"name": "p.v2", "replaces": "p.v1"}, {"name": "p.v3", "replaces": "p.v2"}]}
{"schema": "olm.bundle", "package": "p", "name": "p.v1", "image": "x/p:1", "properties": [{"type": "olm.package", "value": {"packageName": "p", "version": "1.0.0"}}]}
{"schema": "olm.bundle", "package": "p", "name": "p.v2", "image": "x/p:2", "properties": [{"type": "olm.package", "value": {"packageName": "p", "version": "2.0.0"}}]}
{"schema": "olm.bundle", "package": "p", "name": "p.v3", "image": "x/p:3", "properties": [{"type": "olm.package", "value": {"packageName": "p", "version": "3.0.0"}}, {"type": "olm.bundle.object", "value": {"data": "e30="}}]}
"#;

/// What is said of a text: `LINE CODE` for each finding.
fn said(text: &str) -> Vec<String> {
    let findings = advise(&Catalog::parse(&CatalogFiles::from_text("catalog", text)));
    let line =
        |finding: &Finding| finding.place.as_ref().and_then(|place| place.position).map_or(0, |at| at.line);
    findings.iter().map(|finding| format!("{} {}", line(finding), finding.code.name)).collect()
}

#[test]
fn every_fault_is_reported_once() {
    let huge = "A".repeat(8 << 20);
    let (v1, v2) = (r#"{"name": "p.v1"}"#, r#"{"name": "p.v2", "replaces": "p.v1"}"#);
    let twice = format!("{v2}, {v2}");
    let another_package = "{\"schema\": \"olm.package\", \"name\": \"p\", \"defaultChannel\": \"a\"}\n{\"schema\": \"olm.channel\"";
    let broken_icon = format!("{huge}!");
    // Words of the sound catalog, what stands there instead, and what is said of that.
    let cases: [(&str, &str, &[&str]); 22] = [
        ("p", "p", &[]),
        // A circle of all entries, and one behind the head.
        (v1, r#"{"name": "p.v1", "replaces": "p.v3"}"#, &["2 channel-no-head", "2 channel-edge-backwards"]),
        (v1, r#"{"name": "p.v1", "replaces": "p.v2"}"#, &["2 channel-cycle", "2 channel-edge-backwards"]),
        // Two heads, and an entry that nobody comes from.
        (r#""p.v3", "replaces": "p.v2""#, r#""p.v3", "replaces": "p.v1""#, &["2 channel-several-heads"]),
        (r#""p.v3", "replaces": "p.v2""#, r#""p.v3", "skips": ["p.v2"]"#, &["2 channel-entry-stranded"]),
        // Names and versions that stand twice.
        (
            r#""name": "p.v2", "image""#,
            r#""name": "p.v1", "image""#,
            &["2 channel-entry-without-bundle", "4 fbc-bundle-duplicate"],
        ),
        ("{\"schema\": \"olm.channel\"", another_package, &["2 package-duplicate"]),
        (v2, &twice, &["2 channel-entry-duplicate"]),
        (r#""version": "2.0.0""#, r#""version": "1.0.0""#, &["4 fbc-bundle-version-duplicate"]),
        // No default channel, or one that is not there; a bundle in no channel.
        (r#""defaultChannel": "a""#, r#""defaultChannel": """#, &["1 default-channel-missing"]),
        (r#""defaultChannel": "a""#, r#""defaultChannel": "b""#, &["1 default-channel-unknown"]),
        (r#", {"name": "p.v3", "replaces": "p.v2"}"#, "", &["5 fbc-bundle-in-no-channel"]),
        // What cannot be decoded.
        ("e30=", "e30", &["5 fbc-bundle-object-invalid"]),
        ("e30=", "a!b=", &["5 fbc-bundle-object-invalid"]),
        ("aWNvbg==", "aWNvbg=", &["1 package-icon-invalid"]),
        (r#""2.0.0""#, r#""2.0""#, &["4 fbc-bundle-version-invalid"]),
        (r#""2.0.0""#, "2", &["4 fbc-bundle-property-invalid"]),
        (
            r#""p.v1"}, {"name": "p.v3""#,
            r#""p.v1", "skipRange": "> 1 <"}, {"name": "p.v3""#,
            &["2 channel-skip-range-invalid"],
        ),
        // An icon of megabytes, sound or not.
        ("aWNvbg==", &huge, &["1 package-large"]),
        ("aWNvbg==", &broken_icon, &["1 package-large", "1 package-icon-invalid"]),
        // JSON that is broken, or goes on with something else.
        ("x/p:3\", \"properties\": [", "x/p:3\", \"properties\": [[", &["5 fbc-syntax"]),
        ("e30=\"}}]}", "e30=\"}}]}]", &["5 fbc-syntax"]),
    ];
    let mut wrong = Vec::new();
    for (old, new, expected) in cases {
        assert!(SOUND.contains(old), "{old}");
        let text = SOUND.replacen(old, new, 1);
        // In YAML, which another parser reads, each stands in a document of its own.
        let documents: String = text.lines().map(|line| format!("---\n{line}\n")).collect();
        let halved = said(&documents).into_iter().map(|found| {
            let (line, code) = found.split_once(' ').unwrap();
            format!("{} {code}", line.parse::<u32>().unwrap() / 2)
        });
        for found in [said(&text), halved.collect()] {
            if found != expected {
                wrong.push((new.get(..60).unwrap_or(new), found));
            }
        }
    }
    assert_eq!(wrong, []);
    // In JSON alone: YAML's reader does not look behind the end of a value.
    assert_eq!(said(&format!("{SOUND}and so on")), ["6 fbc-syntax"]);
}

#[test]
fn an_empty_document_names_the_separator_to_remove() {
    let package = "schema: olm.package\nname: p\ndefaultChannel: s\n";
    let schema_missing = |text: &str| {
        let findings = validate(&Catalog::parse(&CatalogFiles::from_text("catalog", text)));
        findings.into_iter().find(|finding| finding.code.name == "fbc-schema-missing")
    };
    for (text, line) in [
        (format!("# a licence\n---\n{package}"), 2),
        (format!("# a licence\r\n---\r\n{package}"), 2),
        (format!("\n---\n{package}"), 2),
        (format!("---\n# a licence\n---\n{package}"), 3),
        (format!("--- # a\n# b\n--- # c\n{package}"), 3),
        (format!("---\n---\n{package}"), 2),
        (format!("{package}---\n# the end\n"), 4),
        (format!("{package}---\n---\n"), 5),
        (format!("{package}---\n# more\n---\n{package}"), 6),
    ] {
        let found = schema_missing(&text).unwrap();
        let help = format!("this document has no content: remove the `---` at line {line}");
        assert_eq!(found.help.as_deref(), Some(help.as_str()), "{text}");
        let lines = text.lines().enumerate().filter(|(at, _)| at + 1 != line);
        let mended: String = lines.map(|(_, text)| format!("{text}\n")).collect();
        assert_eq!(schema_missing(&mended), None, "{text}");
    }
    for text in ["# comments alone\n", "name: p\n", "{}\n", "null\n---\n{}\n"] {
        let help = schema_missing(text).unwrap().help.unwrap();
        assert!(help.starts_with("add `schema: olm.package`"), "{text}: {help}");
    }
}

#[test]
fn many_faults_stand_in_the_same_order_each_time() {
    let packages = (0..300).map(|at| {
        let text = SOUND.replace("\"p\"", &format!("\"p{at}\"")).replace("p.v", &format!("p{at}.v"));
        text.replace("v2\", \"replaces", "v2\", \"skips")
    });
    let text: String = packages.collect::<String>().replace("e30=", "e30");
    let files = CatalogFiles::from_text("catalog.json", text);
    let catalog = Catalog::parse(&files);
    let first = advise(&catalog);
    assert!(first.len() > 600);
    for _ in 0..3 {
        assert_eq!(advise(&Catalog::parse(&files)), first);
    }
}

/// Takes seconds where work grows with the catalog, and minutes where it grows with its square.
#[test]
fn large_catalogs_take_no_longer_than_they_are() {
    let started = std::time::Instant::now();
    let bundle = |package: &str, name: &str, minor: usize, needs: &str| {
        let version = format!(
            r#"{{"type": "olm.package", "value": {{"packageName": "{package}", "version": "1.{minor}.0"}}}}"#
        );
        let needs = format!(
            r#"{{"type": "olm.package.required", "value": {{"packageName": "{needs}", "versionRange": ">=1.0.0"}}}}"#
        );
        format!(
            r#"{{"schema": "olm.bundle", "package": "{package}", "name": "{name}", "image": "x/y:z", "properties": [{version}, {needs}]}}"#
        ) + "\n"
    };
    let package = |name: &str, entries: &str| {
        format!(
            r#"{{"schema": "olm.package", "name": "{name}", "defaultChannel": "a"}} {{"schema": "olm.channel", "package": "{name}", "name": "a", "entries": [{entries}]}}"#
        ) + "\n"
    };
    // Each requires a package of its own that is not there.
    let packages = (0..10_000).map(|at| {
        let name = format!("p{at}");
        package(&name, &format!(r#"{{"name": "{name}.v1"}}"#))
            + &bundle(&name, &format!("{name}.v1"), 0, &format!("q{at}"))
    });
    let found = said(&packages.collect::<String>());
    assert_eq!(
        (found.len(), found.iter().filter(|line| line.ends_with("dependency-unsatisfied")).count()),
        (10_000, 10_000)
    );

    let entry = |at: usize| {
        let before = at.saturating_sub(1);
        format!(
            r#"{{"name": "p.v{at}", "replaces": "p.v{before}", "skips": ["p.v{at}-rc"], "skipRange": "<1.{at}.0"}}"#
        )
    };
    let first = r#"{"name": "p.v0"}"#.to_owned();
    let entries: Vec<String> = std::iter::once(first).chain((1..5_000).map(entry)).collect();
    let bundles: String = (0..5_000).map(|at| bundle("p", &format!("p.v{at}"), at, "p")).collect();
    let sound = package("p", &entries.join(", ")) + &bundles;
    assert_eq!(said(&sound), [] as [&str; 0]);
    // Nobody goes on from any of them.
    let stranded = sound.replace(r#", "replaces": "p.v4998", "skips""#, r#", "skips": ["p.v4998"], "kept""#);
    assert_eq!(said(&stranded).iter().filter(|line| line.ends_with("channel-entry-stranded")).count(), 4_998);
    let separators = "---\n".repeat(80_000);
    assert!(said(&separators).len() >= 10_000);
    let refused = crate::edit::edit(&CatalogFiles::from_text("x", separators), &crate::edit::Request::Format);
    assert!(refused.is_err());
    assert!(started.elapsed().as_secs() < 120, "{:?}", started.elapsed());
}
