//! Every rule's cases: the examples of its documentation.

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
