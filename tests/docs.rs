//! What in `docs/` is made from code is fresh. `make generate` renews it.

use std::fmt::Write as _;
use std::path::Path;

use olmkit::actions::findings::codes;

/// Compares a file with what it should be, or writes it when asked to.
#[track_caller]
fn fresh(path: &str, expected: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("OLMKIT_GENERATE").is_some() {
        let directory = file.parent().expect("a file has a directory");
        std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&file, expected)).expect(path);
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "{path} is stale: run `make generate`");
}

#[test]
fn findings() {
    let codes = codes();
    assert!(codes.windows(2).all(|pair| pair[0].name != pair[1].name), "a code is used twice");
    let mut page = String::from(
        "# Findings\n\nEvery kind of finding, by suite; `olmkit bundle validate` and the other verbs name the code in brackets.\n\
         Errors make a command exit with 1, warnings alone do not. This page is generated from the rules: `make generate`.\n",
    );
    let mut suite = "";
    for code in codes {
        if code.suite != suite {
            suite = code.suite;
            write!(page, "\n## Suite `{suite}`\n").unwrap();
        }
        let docs = code.markdown();
        write!(page, "\n### {}\n\n*{}*\n\n{docs}\n", code.name, code.level).unwrap();
    }
    fresh("docs/findings.md", &page);
}

#[test]
fn schemas() {
    let package_file = olmkit_bundle::generate::package_file::schema();
    fresh("docs/schemas/package-file.json", &format!("{:#}\n", package_file.as_value()));
    for (name, schema) in olmkit::report::json::schemas() {
        fresh(&format!("docs/schemas/{name}.json"), &format!("{:#}\n", schema.as_value()));
    }
}
