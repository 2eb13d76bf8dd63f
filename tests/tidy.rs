//! House rules as tests: who may depend on whom, which licences come along, what must be fresh.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Everything cargo knows of the workspace and its dependencies.
fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--all-features"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The strings of a list in `deny.toml`, whose form is ours: one quoted string a line.
fn denied_list(section: &str, key: &str) -> BTreeSet<String> {
    let text = read("deny.toml");
    let section = text.split(&format!("[{section}]")).nth(1).unwrap();
    let list = section.split(&format!("{key} = [")).nth(1).unwrap().split("\n]").next().unwrap();
    list.lines().filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
}

/// Whether an SPDX expression can be met with the allowed licences.
fn allowed(expression: &str, allow: &BTreeSet<String>) -> bool {
    let alternatives = expression.replace('/', " OR ").replace(['(', ')'], " ");
    // Every term joined by AND must be allowed in at least one of its OR-alternatives; real expressions do not nest deeper.
    alternatives.split(" AND ").all(|term| term.split(" OR ").any(|licence| allow.contains(licence.trim())))
}

#[test]
fn licences_bans_and_sources() {
    let metadata = metadata();
    let allow = denied_list("licenses", "allow");
    let deny = denied_list("bans", "deny");
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(allowed(licence, &allow), "{name} comes under {licence}, which deny.toml does not allow");
        assert!(!deny.contains(name), "{name} is banned in deny.toml");
        let source = package["source"].as_str().unwrap_or("workspace");
        assert!(source == "workspace" || source.starts_with("registry+"), "{name} comes from {source}");
    }
}

#[test]
fn arrows_between_crates_never_turn_back() {
    let metadata = metadata();
    let direct = |name: &str| -> BTreeSet<String> {
        let packages = metadata["packages"].as_array().unwrap();
        let package =
            packages.iter().find(|package| package["name"] == name && package["source"].is_null()).unwrap();
        let normal = package["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"].is_null());
        normal.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect()
    };
    let never = |name: &str, others: &[&str]| {
        let found = direct(name);
        for other in others {
            assert!(!found.contains(*other), "{name} must not depend on {other}");
        }
    };
    never(
        "olmkit-bundle",
        &["olmkit-catalog", "olmkit", "redis-operator", "kube", "tokio", "reqwest", "oci-client"],
    );
    never("olmkit-catalog", &["olmkit", "redis-operator", "kube", "reqwest", "oci-client"]);
    never("redis-operator", &["olmkit-bundle", "olmkit-catalog", "olmkit"]);
    never("olmkit", &["redis-operator"]);
}

#[test]
fn the_changelog_knows_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(read("CHANGELOG.md").contains(&format!("## {version}")), "CHANGELOG.md has no section {version}");
}

#[test]
fn every_target_of_the_makefile_is_explained() {
    let makefile = read("Makefile");
    let phony: BTreeSet<_> = makefile
        .lines()
        .filter_map(|line| line.strip_prefix(".PHONY:"))
        .flat_map(str::split_whitespace)
        .collect();
    for target in phony {
        let explained =
            makefile.lines().any(|line| line.starts_with(&format!("{target}:")) && line.contains("## "));
        assert!(explained, "`make help` does not explain {target}");
    }
}

#[test]
fn nothing_prints_outside_the_report() {
    // clippy's print lints see macros; this sees the streams themselves.
    let mut open = vec![root().join("src"), root().join("bundle/src"), root().join("catalog/src")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|e| e == "rs") {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            let text = std::fs::read_to_string(&path).unwrap();
            let prints = text.contains("io::stdout()") || text.contains("io::stderr()");
            assert!(
                !prints || name.starts_with("src/report") || name.starts_with("src/progress"),
                "{name} opens a standard stream"
            );
        }
    }
}
