//! `make demo`: prints what the README says, and makes the same bytes each time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What stands around the transcript in the README.
const START: &str = "<!-- demo -->\n```console\n";
const END: &str = "```\n<!-- /demo -->\n";

/// Runs the demo in a directory that looks like the checkout, and gives back its output and the tree it made.
fn demo() -> (String, BTreeMap<PathBuf, Vec<u8>>) {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    for part in ["operator", "demo"] {
        std::os::unix::fs::symlink(checkout.join(part), directory.path().join(part)).expect(part);
    }
    let output = Command::new("demo/run")
        .args([env!("CARGO_BIN_EXE_olmkit"), "target/demo"])
        .env_remove("SOURCE_DATE_EPOCH")
        .current_dir(&directory)
        .output()
        .expect("demo/run starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let mut tree = BTreeMap::new();
    read(&directory.path().join("target/demo"), Path::new(""), &mut tree);
    (String::from_utf8(output.stdout).expect("UTF-8"), tree)
}

fn read(root: &Path, below: &Path, tree: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(root.join(below)).expect("a directory") {
        let entry = entry.expect("an entry");
        let path = below.join(entry.file_name());
        if entry.path().is_dir() {
            read(root, &path, tree);
        } else {
            tree.insert(path, std::fs::read(entry.path()).expect("a file"));
        }
    }
}

#[test]
fn prints_what_the_readme_says_and_makes_the_same_bytes_twice() {
    let started = Instant::now();
    let (transcript, tree) = demo();
    assert!(started.elapsed() < Duration::from_secs(10), "the demo took {:?}", started.elapsed());
    assert!(transcript.contains("0.1.0 → 0.2.1 → 0.3.0\n"), "{transcript}");
    let (again, other) = demo();
    assert_eq!(transcript, again);
    assert!(tree.len() > 20 && tree == other, "two runs made different trees");

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(&path).expect("README.md");
    let (before, rest) = readme.split_once(START).expect("the README has a demo");
    let (shown, after) = rest.split_once(END).expect("the demo has an end");
    if std::env::var_os("OLMKIT_GENERATE").is_some() {
        let fresh = format!("{before}{START}{}{END}{after}", transcript.trim_start());
        std::fs::write(&path, fresh).expect("README.md can be written");
    } else {
        assert!(shown == transcript.trim_start(), "README.md shows another demo: run `make generate`");
    }
}
