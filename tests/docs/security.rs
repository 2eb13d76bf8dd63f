//! `docs/security.md`: every threat names tests, and the tests exist.

use std::collections::BTreeSet;
use std::path::Path;

/// The names after `fn `, and those that tests which list themselves have as text.
fn test_names() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = BTreeSet::new();
    for folder in
        ["src", "bundle/src", "catalog/src", "catalog/serve/src", "operator/src", "operator/tests", "tests"]
    {
        let files = olmkit::files::below(&root.join(folder), |_| false).unwrap();
        for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "rs")) {
            let text = std::fs::read_to_string(file).unwrap();
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            for part in text.split("#[test]").chain(text.split("::test]")).skip(1) {
                let function = part.split_once("fn ").map(|(_, rest)| rest).unwrap_or_default();
                names.extend(function.split(|letter| !is_part(letter)).next().map(ToOwned::to_owned));
            }
            // `trial("name", …)`, and lists of `("name", test)`.
            for part in text.split("(\"").skip(1) {
                names.extend(part.split_once('"').map(|(name, _)| name.to_owned()));
            }
        }
    }
    names
}

#[test]
fn every_threat_has_a_test_that_exists() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/security.md")).unwrap();
    let names = test_names();
    let mut threats = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| threat |")) {
        let cell = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let tests: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test for: {row}");
        for test in tests {
            assert!(names.contains(test), "`{test}` is no test: {row}");
        }
        threats += 1;
    }
    assert!(threats >= 30, "only {threats} threats were read");
}
