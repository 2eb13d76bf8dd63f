//! Verbs that write files, in directories that hold more than those: what else is there stays as it is.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod awkward;
mod catalogs;
mod generate;
mod git;
mod images;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn olmkit(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.args(args).env_remove("SOURCE_DATE_EPOCH").current_dir(directory).stdin(Stdio::null());
    command
}

#[track_caller]
fn run(directory: &Path, args: &[&str], code: i32) -> Output {
    let output = olmkit(directory, args).output().expect("olmkit starts");
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", said(&output));
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The arguments that generate the echo operator's bundle.
fn generate<'a>(version: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["bundle", "generate", "--package", "echo-operator", "--version", version], more].concat()
}

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/generate.in/config")
}

/// Everything below a directory: what it is, its mode, and its content.
fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else if metadata.is_dir() {
                open.push(path.clone());
                "directory".to_owned()
            } else {
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
            };
            let name = path.strip_prefix(root).unwrap().display().to_string();
            found.insert(name, format!("{:o} {content}", metadata.mode()));
        }
    }
    found
}

/// What is below a directory and was not in `old`; what was has to be there unchanged.
#[track_caller]
fn added(old: &BTreeMap<String, String>, root: &Path) -> Vec<String> {
    let mut new = tree(root);
    for (name, content) in old {
        assert_eq!(new.remove(name).as_ref(), Some(content), "{name}");
    }
    new.into_keys().collect()
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

/// A source tree with everything that a bundle does not have.
fn checkout(root: &Path) {
    for directory in [".git/refs", ".github/workflows", "empty", "src"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    for (file, text) in [
        (".git/HEAD", "ref"),
        (".github/workflows/ci.yaml", "on: push"),
        (".gitignore", "target"),
        ("run.sh", "#!"),
    ] {
        fs::write(root.join(file), text).unwrap();
    }
    fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("run.sh", root.join("link")).unwrap();
}

/// Bundles of the echo operator in `b/VERSION`.
fn bundles(at: &Path, versions: &[&str]) {
    let input = manifests().display().to_string();
    for version in versions {
        run(at, &generate(version, &[&input, "--output-dir", &format!("b/{version}")]), 0);
    }
}

const TEMPLATE: [&str; 2] = ["--image-ref-template", "example.com/{{.Package}}:v{{.Version}}"];

/// Adds a bundle to the channel `stable` of the catalog, and returns what was said.
fn add_to_stable(at: &Path, version: &str, code: i32) -> String {
    let bundle = format!("b/{version}");
    let args = ["catalog", "add", "catalog", &bundle, "--channels", "stable"];
    said(&run(at, &[args.as_slice(), &TEMPLATE].concat(), code))
}

/// A directory with the bundle and the catalog of the echo operator.
fn bundle_and_catalog() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let manifests = manifests().display().to_string();
    run(dir.path(), &generate("0.1.0", &[&manifests, "--output-dir", "bundle"]), 0);
    run(dir.path(), &["catalog", "add", "catalog", "bundle", "--channels", "stable", "--embed"], 0);
    dir
}

/// A repository with one commit of a catalog, and a later state of it in the work tree.
fn catalog_in_git(root: &Path) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/edit.in/catalog");
    for file in ["redis-operator/catalog.yaml", "etcd-operator/catalog.json"] {
        let to = root.join("catalog").join(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(fixture.join(file), to).unwrap();
    }
    let git = |args: &[&str]| {
        let names = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
        let output = Command::new("git").args(names).args(args).current_dir(root).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "first"]);
}

/// A catalog in a directory, such as the transcripts edit.
fn copy_catalog(to: &Path) {
    let from =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/edit.in/old/redis-operator/catalog.yaml");
    fs::create_dir_all(to).unwrap();
    fs::copy(from, to.join("catalog.yaml")).unwrap();
}

const REDIS: [&str; 2] = ["--package", "redis-operator"];
