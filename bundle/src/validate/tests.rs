//! Every rule's cases: the examples of its documentation, and bundles in `testdata/CODE/CASE/`, whose findings
//! stand beside them in `CASE.snap`.

use std::path::Path;

use super::*;
use crate::load::{BundleFile, BundleFiles, Content};

/// A finding as a line, with the path below the case's directory.
fn line(finding: &Finding, root: &str) -> String {
    let place = finding.place.as_ref().map(|place| {
        let path = place.path.strip_prefix(root).unwrap_or(&place.path).trim_start_matches('/');
        match place.position {
            Some(position) => format!(" {path}:{}:{}", position.line, position.column),
            None => format!(" {path}"),
        }
    });
    format!("{}[{}]{}: {}", finding.level, finding.code.name, place.unwrap_or_default(), finding.message)
}

/// The findings of one rule, a line each.
fn run(rule: &Rule, files: &BundleFiles) -> String {
    let own = validate(&Bundle::parse(files)).into_iter().filter(|finding| finding.code == &rule.code);
    own.map(|finding| line(&finding, &files.name)).collect::<Vec<_>>().join("\n")
}

/// The examples of a page: the word behind `yaml` (`bad` or `good`) and the text.
fn examples(docs: &str) -> Vec<(&str, &str)> {
    let mut examples = Vec::new();
    for block in docs.split("```yaml ").skip(1) {
        let (kind, rest) = block.split_once('\n').unwrap();
        examples.push((kind.trim(), rest.split_once("```").unwrap().0));
    }
    examples
}

/// An example as a bundle. A line `# manifests/NAME` or `# metadata/NAME` starts a file; what stands before the first
/// such line is the ClusterServiceVersion, and gets its kind where the example leaves it out.
fn example_bundle(text: &str) -> BundleFiles {
    let mut files = vec![("manifests/operator.clusterserviceversion.yaml".to_owned(), String::new())];
    for line in text.lines() {
        match line
            .strip_prefix("# ")
            .filter(|rest| rest.starts_with("manifests/") || rest.starts_with("metadata/"))
        {
            Some(path) => files.push((path.trim().to_owned(), String::new())),
            None => files.last_mut().unwrap().1 += &format!("{line}\n"),
        }
    }
    let csv = &mut files[0].1;
    if !csv.is_empty() && !csv.contains("kind: ClusterServiceVersion") {
        csv.insert_str(0, "kind: ClusterServiceVersion\n");
    }
    files.retain(|(_, text)| !text.is_empty());
    let files = files.into_iter().map(|(path, text)| BundleFile { path, content: Content::Text(text) });
    BundleFiles { name: "example".into(), files: files.collect() }
}

#[test]
fn the_examples_of_every_page_are_true() {
    for rule in rules() {
        let examples = examples(rule.code.docs);
        for kind in ["bad", "good"] {
            assert!(examples.iter().any(|(k, _)| *k == kind), "{} has no {kind} example", rule.code.name);
        }
        for (kind, text) in examples {
            let found = run(rule, &example_bundle(text));
            match kind {
                "bad" => {
                    assert!(!found.is_empty(), "{}: the bad example is not found\n{text}", rule.code.name)
                }
                "good" => assert_eq!(found, "", "{}: the good example is found\n{text}", rule.code.name),
                other => panic!("{}: an example is `bad` or `good`, not `{other}`", rule.code.name),
            }
        }
    }
}

#[test]
fn further_cases() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    for entry in std::fs::read_dir(&testdata).unwrap() {
        let code = entry.unwrap().file_name().into_string().unwrap();
        let Some(rule) = rules().iter().find(|rule| rule.code.name == code) else {
            panic!("testdata/{code} belongs to no rule");
        };
        for case in std::fs::read_dir(testdata.join(&code)).unwrap().map(|case| case.unwrap().path()) {
            if !case.is_dir() {
                continue;
            }
            let name = case.file_name().unwrap().to_str().unwrap().to_owned();
            let found = run(rule, &BundleFiles::load(&case).unwrap());
            insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => testdata.join(&code), omit_expression => true }, {
                insta::assert_snapshot!(name, found);
            });
        }
    }
}

#[test]
fn codes_are_sorted_and_unique() {
    let names: Vec<_> = rules().iter().map(|rule| rule.code.name).collect();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
}
