//! The commands of `docs/tutorial.md` print what it shows, and its code is that of the example.

#[path = "support/walk.rs"]
mod walk;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use walk::Walk;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_commands_of_the_tutorial_print_what_it_shows() {
    let dir = tempfile::tempdir().unwrap();
    let programs = dir.path().join("programs");
    fs::create_dir(&programs).unwrap();
    symlink(root(), dir.path().join("olmkit")).unwrap();
    symlink(env!("CARGO_BIN_EXE_olmkit"), programs.join("olmkit")).unwrap();
    // `cargo run` would compile for minutes what is built already.
    let here = std::env::current_exe().unwrap();
    let built = here.ancestors().nth(2).unwrap().join("memcached-operator");
    assert!(built.is_file(), "{} is not there: run `cargo build -p memcached-operator`", built.display());
    let cargo = programs.join("cargo");
    let script = format!(
        "#!/bin/sh\ncase \"$1 $2 $3\" in 'run --quiet --') shift 3; exec '{}' \"$@\";; esac\nexec '{}' \"$@\"\n",
        built.display(),
        env!("CARGO"),
    );
    fs::write(&cargo, script).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let walk = Walk {
        directory: dir.path(),
        environment: vec![
            ("PATH", path),
            ("HOME", dir.path().display().to_string()),
            ("COLUMNS", "130".into()),
        ],
        meaning: vec![],
        asks: &[],
        patience: Duration::ZERO,
    };
    let outcome = walk.through(&read("docs/tutorial.md"), "console");
    assert!(outcome.is_ok(), "{}", outcome.unwrap_err().message().unwrap());
}

/// What a reader copies from the page is what the tests compile and run.
#[test]
fn the_tutorial_shows_the_code_of_the_example() {
    let (page, code) = (read("docs/tutorial.md"), read("examples/memcached/src/main.rs"));
    let blocks = walk::blocks(&page, "rust");
    assert!(blocks.len() > 1);
    for block in blocks {
        assert!(code.contains(block), "examples/memcached/src/main.rs has no such lines:\n{block}");
    }
    let manifest = read("examples/memcached/deploy/0.1.0/install/operator.yaml");
    for block in walk::blocks(&page, "yaml") {
        assert!(manifest.contains(block), "operator.yaml has no such lines:\n{block}");
    }
    // The dependencies are those of the example, in the workspace's versions.
    let table = |text: &str| -> toml::Table { toml::from_str(text).unwrap() };
    let shown = table(walk::blocks(&page, "toml")[0])["dependencies"].as_table().unwrap().clone();
    let names = |table: &toml::Table| table.keys().cloned().collect::<Vec<_>>();
    let example = table(&read("examples/memcached/Cargo.toml"))["dependencies"].as_table().unwrap().clone();
    assert_eq!(names(&shown), names(&example));
    let workspace = table(&read("Cargo.toml"))["workspace"]["dependencies"].as_table().unwrap().clone();
    let version =
        |value: &toml::Value| value.as_str().or_else(|| value.get("version")?.as_str()).map(str::to_owned);
    for (name, value) in shown.iter().filter(|(name, _)| *name != "operator-process") {
        assert_eq!(version(value), version(&workspace[name]), "{name}");
    }
}
