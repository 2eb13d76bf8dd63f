//! House rules as tests: which crate may depend on which, which licences come along, what must be fresh.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use libtest_mimic::{Arguments, Trial};
use serde_json::Value;
use support::Part;

fn main() {
    let everything = metadata(&["--all-features"]);
    let missing = everything.as_ref().err().cloned();
    let parts = [Part::new("crates", missing)];
    let rules: [(&str, fn()); 11] = [
        ("bans_and_sources", bans_and_sources),
        ("arrows_between_crates_never_turn_back", arrows_between_crates_never_turn_back),
        ("the_libraries_build_without_flags", the_libraries_build_without_flags),
        ("the_changelog_knows_this_version", the_changelog_knows_this_version),
        ("every_target_of_the_makefile_is_explained", every_target_of_the_makefile_is_explained),
        ("no_room_outgrows_its_ceiling", no_room_outgrows_its_ceiling),
        ("nothing_prints_outside_the_report", nothing_prints_outside_the_report),
        ("programs_are_started_by_one_builder", programs_are_started_by_one_builder),
        ("no_recipe_knows_where_cargo_puts_programs", no_recipe_knows_where_cargo_puts_programs),
        ("missing_crates_are_not_run_or_a_failure", missing_crates_are_not_run_or_a_failure),
        ("counts_fail_where_a_test_failed_or_none_ran", counts_fail_where_a_test_failed_or_none_ran),
    ];
    let mut trials: Vec<Trial> = rules
        .into_iter()
        .map(|(name, rule)| {
            Trial::test(name, move || {
                rule();
                Ok(())
            })
        })
        .collect();
    trials.push(support::trial("a_checkout_with_a_space_in_its_path_is_built_elsewhere", &["make"], || {
        a_checkout_with_a_space_in_its_path_is_built_elsewhere();
        Ok(())
    }));
    trials.push(support::trial_with("licences", &parts, move || {
        licences(&everything?);
        Ok(())
    }));
    support::run(&Arguments::from_args(), trials).exit();
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What cargo knows of the workspace and its dependencies; or why it does not, where crates are not on this machine: cargo
/// downloads only those that this platform compiles.
fn metadata(options: &[&str]) -> Result<Value, String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(options)
        .current_dir(root())
        .output()
        .unwrap();
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout).unwrap());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("offline"), "cargo metadata failed:\n{said}");
    let first = said.lines().next().unwrap_or_default().trim_start_matches("error: ");
    Err(format!("crates are missing; `cargo fetch` downloads them ({first})"))
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

fn licences(metadata: &Value) {
    let allow = denied_list("licenses", "allow");
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(allowed(licence, &allow), "{name} comes under {licence}, which deny.toml does not allow");
    }
}

/// Of every crate in the lock file, also those that only other platforms compile.
fn bans_and_sources() {
    let deny = denied_list("bans", "deny");
    let lock: toml::Table = toml::from_str(&read("Cargo.lock")).unwrap();
    let packages = lock["package"].as_array().unwrap();
    assert!(packages.len() > 300, "{} crates are not all of them", packages.len());
    for package in packages {
        let name = package["name"].as_str().unwrap();
        assert!(!deny.contains(name), "{name} is banned in deny.toml");
        let source = package.get("source").map_or("workspace", |source| source.as_str().unwrap());
        assert!(source == "workspace" || source.starts_with("registry+"), "{name} comes from {source}");
    }
}

fn arrows_between_crates_never_turn_back() {
    let metadata = metadata(&["--no-deps"]).unwrap();
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
        &[
            "olmkit-catalog",
            "olmkit-serve",
            "olmkit",
            "redis-operator",
            "kube",
            "tokio",
            "reqwest",
            "oci-client",
        ],
    );
    never(
        "olmkit-catalog",
        &["olmkit-serve", "olmkit", "redis-operator", "kube", "tokio", "reqwest", "oci-client"],
    );
    never("olmkit-serve", &["olmkit", "redis-operator", "kube", "reqwest", "oci-client"]);
    never("redis-operator", &["olmkit-bundle", "olmkit-catalog", "olmkit-serve", "olmkit"]);
    never("redis-operator-plan", &["kube", "k8s-openapi", "redis", "tokio", "redis-operator"]);
    never("olmkit", &["redis-operator"]);
    // Operators to copy, and what they share, are ordinary kube-rs operators.
    for name in ["operator-lease", "operator-process", "memcached-operator", "echo-operator", "etcd-operator"]
    {
        never(name, &["olmkit-bundle", "olmkit-catalog", "olmkit-serve", "olmkit", "redis-operator"]);
    }
}

/// k8s-openapi does not build before someone has chosen a version of Kubernetes.
fn the_libraries_build_without_flags() {
    for library in ["olmkit-bundle", "olmkit-catalog", "olmkit-serve"] {
        let output = Command::new(env!("CARGO"))
            .args([
                "tree",
                "--locked",
                "--offline",
                "--edges",
                "normal,features",
                "--invert",
                "k8s-openapi",
                "-p",
                library,
            ])
            .current_dir(root())
            .output()
            .unwrap();
        let tree = String::from_utf8_lossy(&output.stdout);
        assert!(tree.contains("k8s-openapi feature \"v1_"), "{library}\n{tree}");
    }
}

fn the_changelog_knows_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(read("CHANGELOG.md").contains(&format!("## {version}")), "CHANGELOG.md has no section {version}");
}

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

/// A ceiling is at most this many lines above what is there, so that what was deleted does not grow again.
const ROOM_TO_GROW: u64 = 100;

/// The ceilings in `tests/budgets.toml` only go down; a commit that raises one says why.
fn no_room_outgrows_its_ceiling() {
    let budgets: toml::Table = toml::from_str(&read("tests/budgets.toml")).unwrap();
    let mut ceilings = budgets["lines"].as_table().unwrap().clone();
    let counted = Command::new(root().join("tests/size")).arg("--rooms").output().unwrap();
    assert!(counted.status.success(), "{counted:?}");
    for line in String::from_utf8(counted.stdout).unwrap().lines() {
        let (room, lines) = line.split_once(' ').unwrap();
        let lines: u64 = lines.parse().unwrap();
        let ceiling = ceilings.remove(room).and_then(|ceiling| ceiling.as_integer()?.try_into().ok());
        let ceiling: u64 = ceiling.unwrap_or_else(|| panic!("tests/budgets.toml has no ceiling for {room}"));
        assert!(
            lines <= ceiling,
            "{room} has {lines} lines, and tests/budgets.toml allows {ceiling}: delete some"
        );
        let lower = lines + ROOM_TO_GROW;
        assert!(
            ceiling <= lower,
            "{room} has {lines} lines: lower its ceiling of {ceiling} in tests/budgets.toml"
        );
    }
    assert!(ceilings.is_empty(), "tests/budgets.toml has rooms that are not there: {ceilings:?}");
}

/// The files of the program and its libraries: the name of each, and its text.
fn sources() -> Vec<(String, String)> {
    let mut open: Vec<_> = ["src", "bundle/src", "catalog/src", "catalog/serve/src"]
        .map(|directory| root().join(directory))
        .into();
    let mut sources = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|e| e == "rs") {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            sources.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    sources
}

fn nothing_prints_outside_the_report() {
    // clippy's print lints see macros; this sees the streams themselves.
    for (name, text) in sources() {
        let prints = text.contains("io::stdout()") || text.contains("io::stderr()");
        // The probe is a program of its own, whose answer is a line and an exit code. Files of reports are compared with the
        // streams, which nothing is written to there.
        let own = ["src/report", "src/progress", "src/files/report.rs", "catalog/serve/src/probe.rs"];
        assert!(!prints || own.iter().any(|own| name.starts_with(own)), "{name} opens a standard stream");
    }
}

/// `CommandLine` keeps values from becoming options. No other code makes a command or adds arguments to one.
fn programs_are_started_by_one_builder() {
    // The server's compiler is a program that its operator names, with our own options and absolute paths.
    let own = ["src/program.rs", "src/program/line.rs", "catalog/serve/src/reload.rs"];
    let mut started = 0;
    for (name, text) in sources() {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
        started += code.matches("CommandLine::new(").count();
        let makes = ["process::Command::new(", " Command::new(", "(Command::new(", ".arg("];
        let made = makes.iter().find(|word| code.contains(**word));
        let is_own = own.contains(&name.as_str()) || is_test;
        assert!(made.is_none() || is_own, "{name} has `{}`: use program::CommandLine", made.unwrap());
    }
    assert!(started >= 6, "only {started} uses of the builder");
}

/// CARGO_TARGET_DIR and cargo's configuration move what is built, so `tests/built` asks cargo where it is.
fn no_recipe_knows_where_cargo_puts_programs() {
    let mut recipes =
        ["Makefile", "operator/Makefile", "examples/operator.mk", "examples/manifests.mk", ".ci/run"]
            .map(str::to_owned)
            .to_vec();
    for directory in
        ["demo", "tests/bench", "tests/cluster", "tests/cluster/kind", "tests/cluster/lib", "tests/e2e"]
    {
        let entries = std::fs::read_dir(root().join(directory)).unwrap().map(|entry| entry.unwrap().path());
        let scripts =
            entries.filter(|path| path.is_file() && path.extension().is_none_or(|ending| ending == "bash"));
        recipes.extend(scripts.map(|path| path.strip_prefix(root()).unwrap().display().to_string()));
    }
    assert!(recipes.len() > 15, "{recipes:?}");
    for recipe in recipes {
        for (number, line) in read(&recipe).lines().enumerate() {
            let knows = line.contains("target/") && (line.contains("/debug") || line.contains("/release"));
            assert!(!knows, "{recipe}:{}: {line}", number + 1);
        }
    }
}

/// On a fresh machine this program must not end with the first missing crate, and where it must not lack any, it must fail.
fn missing_crates_are_not_run_or_a_failure() {
    let empty = tempfile::tempdir().unwrap();
    let licences = |required: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "licences"]).env("CARGO_HOME", empty.path()).env("OLMKIT_REQUIRE", required);
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (output.status.success(), said)
    };
    let (passed, said) = licences("");
    assert!(passed && said.contains("0 passed; 0 failed; 1 ignored"), "{said}");
    assert!(said.contains("not run: crates are missing; `cargo fetch` downloads them"), "{said}");
    let (passed, said) = licences("crates");
    assert!(!passed && said.contains("OLMKIT_REQUIRE lists `crates`"), "{said}");
    let (passed, said) = licences("crats");
    assert!(!passed && said.contains("OLMKIT_REQUIRE lists `crats`; expected any of"), "{said}");
}

fn counts_fail_where_a_test_failed_or_none_ran() {
    let counts = |log: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), log).unwrap();
        let output = Command::new(root().join("tests/counts")).arg(file.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let passed = "\
test one ... ok
test two                ... ignored
not run: helm is not installed: 1 test
test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
    let lines = "test two                ... ignored\nnot run: helm is not installed: 1 test\n";
    let expected = format!("{lines}tests: 6 passed, 0 failed, 1 not run\n");
    assert_eq!(counts(passed), (Some(0), expected));
    let failed = "\
test one ... FAILED
test two          ... FAILED
test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
    let expected = "failed: one\nfailed: two\ntests: 5 passed, 2 failed, 0 not run\n".to_owned();
    assert_eq!(counts(failed), (Some(1), expected));
    let flaky = "\
test one, Valkey ... FAILED
test result: FAILED. 5 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
test one, Valkey ... ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out; finished in 0.00s
FLAKY: one, Valkey passed when it ran once more, alone; at first it said:
";
    let expected = "tests: 6 passed, 0 failed, 0 not run\nFLAKY: one, Valkey\n".to_owned();
    assert_eq!(counts(flaky), (Some(0), expected));
    assert_eq!(counts("error: could not compile\n").0, Some(1));
}

/// The configure script of jemalloc refuses to build below a directory with a space in its name.
fn a_checkout_with_a_space_in_its_path_is_built_elsewhere() {
    let target = |checkout: &str, directory: &str| {
        let parent = tempfile::tempdir().unwrap();
        let top = parent.path().join(checkout);
        for file in ["Makefile", "operator/Makefile", "tests/target-dir"] {
            std::fs::create_dir_all(top.join(file).parent().unwrap()).unwrap();
            std::fs::copy(root().join(file), top.join(file)).unwrap();
        }
        let mut command = Command::new("make");
        command.args(["--silent", "--eval", "show: ; @echo \"$${CARGO_TARGET_DIR-}\"", "show"]);
        command.env_remove("CARGO_TARGET_DIR").env_remove("MAKEFLAGS").env("XDG_CACHE_HOME", "/cache");
        let output = command.current_dir(top.join(directory)).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for directory in ["", "operator"] {
        assert_eq!(target("olmkit", directory), "\n", "cargo decides");
        let elsewhere = target("a b/olmkit", directory);
        assert!(elsewhere.starts_with("/cache/olmkit/target-"), "{elsewhere}");
    }
}
