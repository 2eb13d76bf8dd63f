//! What in `docs/` is made from code is fresh, and links hold. `make generate` renews it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod links;
mod package_file;
mod security;
mod upgrades;

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

/// What the first repair of many causes costs.
const WAY_BACK: &str = "
**In an upgrade.** While the old version still runs, the first repair is `olmkit operator rollback`; it refuses if new pods of that version could not start. It costs an outage of about 30 seconds; custom resources stay.
";

#[test]
fn doctor() {
    use olmkit::lifecycle::doctor::{CODES, COLLECT, Level};
    let mut page = include_str!("../../src/lifecycle/doctor/handbook.md").to_owned();
    assert!(page.contains(COLLECT), "the page collects something else than the doctor asks for");
    page.push_str("\nThis page is generated from the doctor's own definitions: `make generate`.\n\n| code | what it is |\n|---|---|\n");
    for code in CODES {
        writeln!(page, "| [{}](#{}) | {} |", code.name, code.name, code.title).unwrap();
    }
    for code in CODES {
        let state = if code.level == Level::Error { "broken" } else { "waiting" };
        write!(page, "\n### {}\n\n*{state}: {}*\n\n{}", code.name, code.title, code.page).unwrap();
        if code.has_way_back() {
            page.push_str(WAY_BACK);
        }
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

/// The JSON documents in transcripts that are printed whole.
fn printed() -> Vec<(String, serde_json::Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "trycmd") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for part in text.split("\n{\n").skip(1) {
            let Some((body, _)) = part.split_once("\n}\n") else { continue };
            if let Ok(value) = serde_json::from_str(&format!("{{{body}}}")) {
                found.push((path.display().to_string(), value));
            }
        }
    }
    found
}

/// Why a value does not follow a schema: the types, and the fields that have to be there.
fn faults(
    root: &serde_json::Value,
    schema: &serde_json::Value,
    value: &serde_json::Value,
    at: &str,
) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return faults(root, &root["$defs"][name], value, at);
    }
    for any in ["anyOf", "oneOf"] {
        if let Some(all) = schema[any].as_array() {
            let fits = all.iter().any(|one| faults(root, one, value, at).is_empty());
            return if fits { Vec::new() } else { vec![format!("{at}: fits nothing of {any}")] };
        }
    }
    let types = match &schema["type"] {
        serde_json::Value::Array(all) => all.iter().filter_map(|one| one.as_str()).collect(),
        one => Vec::from_iter(one.as_str()),
    };
    let is = |kind: &str| match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    if !types.is_empty() && !types.into_iter().any(is) {
        return vec![format!("{at}: is no {}", schema["type"])];
    }
    let mut wrong = Vec::new();
    if let Some(fields) = value.as_object() {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(|one| one.as_str());
        wrong.extend(
            required.filter(|name| !fields.contains_key(*name)).map(|name| format!("{at}: lacks `{name}`")),
        );
        for (name, value) in fields {
            wrong.extend(faults(root, &schema["properties"][name], value, &format!("{at}.{name}")));
        }
    }
    for (number, value) in value.as_array().into_iter().flatten().enumerate() {
        wrong.extend(faults(root, &schema["items"], value, &format!("{at}[{number}]")));
    }
    wrong
}

#[test]
fn what_transcripts_print_follows_its_schema() {
    let mut seen = std::collections::BTreeSet::new();
    for (path, value) in printed() {
        let Some(name) = value["schema"].as_str().and_then(|name| name.strip_prefix("olmkit.")) else {
            continue;
        };
        let name = name.replace('/', "-");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schemas/{name}.json"));
        let schema: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(faults(&schema, &schema, &value, &name), [""; 0], "{path}");
        seen.insert(name);
    }
    assert!(seen.len() >= 8, "{seen:?}");
}

/// A field that is left out when it is empty has to be optional in its schema, and that is what `default` makes it.
#[test]
fn lists_that_may_be_left_out_are_optional() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["src/report", "src/lifecycle", "catalog/src"] {
        let files = olmkit::files::below(&root.join(folder), |_| false).unwrap();
        for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "rs")) {
            let text = std::fs::read_to_string(file).unwrap();
            if !text.contains("JsonSchema") {
                continue;
            }
            for line in text.lines().filter(|line| line.contains("skip_serializing_if")) {
                let is_optional = line.contains("Option::is_none") || line.contains("default");
                assert!(is_optional, "{}: {}", file.display(), line.trim());
            }
        }
    }
}
