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
fn doctor() {
    use olmkit::lifecycle::doctor::{CODES, COLLECT, Level};
    let mut page = include_str!("../src/lifecycle/doctor/handbook.md").to_owned();
    assert!(page.contains(COLLECT), "the page collects something else than the doctor asks for");
    page.push_str("\nThis page is generated from the doctor's own definitions: `make generate`.\n\n| code | what it is |\n|---|---|\n");
    for code in CODES {
        writeln!(page, "| [{}](#{}) | {} |", code.name, code.name, code.title).unwrap();
    }
    for code in CODES {
        let state = if code.level == Level::Error { "broken" } else { "waiting" };
        write!(page, "\n### {}\n\n*{state}: {}*\n\n{}", code.name, code.title, code.page).unwrap();
    }
    fresh("docs/doctor.md", &page);
}

#[test]
fn every_cause_has_a_page() {
    let mut names: Vec<&str> = olmkit::lifecycle::doctor::CODES.iter().map(|code| code.name).collect();
    for code in olmkit::lifecycle::doctor::CODES {
        for section in ["What it means.", "How to see it.", "How to repair it.", "What it costs."] {
            assert!(code.page.contains(&format!("**{section}** ")), "{}: no section `{section}`", code.name);
        }
    }
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a code is used twice");
}

#[test]
fn schemas() {
    let package_file = olmkit_bundle::generate::package_file::schema();
    fresh("docs/schemas/package-file.json", &format!("{:#}\n", package_file.as_value()));
    for (name, schema) in olmkit::report::json::schemas() {
        fresh(&format!("docs/schemas/{name}.json"), &format!("{:#}\n", schema.as_value()));
    }
}
