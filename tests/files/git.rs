//! Catalogs in git: revisions that are compared, and diffs that `git apply` takes.

use std::fs;
use std::process::Command;

use super::{REDIS, catalog_in_git, copy_catalog, run, said};

#[test]
fn a_catalog_is_compared_with_a_revision_of_git() {
    let root = tempfile::tempdir().unwrap();
    catalog_in_git(root.path());
    let same = run(root.path(), &["catalog", "diff", "git:HEAD:catalog", "catalog"], 0);
    assert_eq!(String::from_utf8_lossy(&same.stdout), "no differences\n");
    run(
        root.path(),
        &["catalog", "remove", "catalog", "--package", "redis-operator", "--version", "0.3.0", "--strand"],
        0,
    );
    let deny = ["--deny", "lost-paths", "--output", "json"];
    let lost =
        run(root.path(), &[&["catalog", "diff", "git:HEAD:catalog", "catalog"], &deny[..]].concat(), 1);
    let lost = String::from_utf8_lossy(&lost.stdout).into_owned();
    assert!(lost.contains("\"pathsLost\": [\n"), "{lost}");
    // A path is below the current directory, or below the top of the repository; a file is a catalog too.
    let below = root.path().join("catalog/redis-operator");
    let file = "git:HEAD:catalog.yaml";
    assert_eq!(
        run(&below, &["catalog", "diff", file, "git:HEAD:catalog/redis-operator/catalog.yaml"], 0).stdout,
        same.stdout
    );
    // From there, the whole directory is read, not what git shows of it below the current directory.
    let lost = run(&below, &["catalog", "diff", "git:HEAD:catalog", "..", "--deny", "lost-paths"], 1);
    assert!(String::from_utf8_lossy(&lost.stdout).contains("0.3.0"), "{}", said(&lost));
    let error = said(&run(root.path(), &["catalog", "diff", "git:nowhere:catalog", "catalog"], 3));
    assert!(error.contains("cannot read `git:nowhere:catalog`") && error.contains("git ls-tree"), "{error}");
}

#[test]
fn the_diff_of_a_dry_run_can_be_applied() {
    let root = tempfile::tempdir().unwrap();
    catalog_in_git(root.path());
    let path = root.path().join("catalog/redis-operator/catalog.yaml");
    let text = fs::read_to_string(&path).unwrap();
    for text in [text.clone(), text.replace('\n', "\r\n"), text.trim_end().to_owned()] {
        fs::write(&path, &text).unwrap();
        let args = ["catalog", "deprecate", "catalog", "--package", "redis-operator", "--message", "old"];
        let shown = run(root.path(), &[&args[..], &["--dry-run"]].concat(), 0);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let patch = root.path().join("patch");
        fs::write(&patch, &shown.stdout).unwrap();
        let applied = Command::new("git").args(["apply", "patch"]).current_dir(root.path()).output().unwrap();
        assert!(applied.status.success(), "{}", said(&applied));
        let by_patch = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text).unwrap();
        run(root.path(), &args, 0);
        assert_eq!(fs::read_to_string(&path).unwrap(), by_patch);
    }
}

#[test]
fn the_diff_of_a_catalog_beside_the_directory_can_be_applied() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    copy_catalog(&at.join("c"));
    fs::create_dir(at.join("work")).unwrap();
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(at).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", said(&output));
    };
    git(&["init", "--quiet"]);
    let edit = ["catalog", "set-default", "../c", "--channel", "fast"];
    let dry_run = run(&at.join("work"), &[&edit[..], &REDIS, &["--dry-run"]].concat(), 0);
    assert!(said(&dry_run).contains("apply the diff in `"), "{}", said(&dry_run));
    fs::write(at.join("patch"), &dry_run.stdout).unwrap();
    git(&["apply", "patch"]);
    let again = run(&at.join("work"), &[&edit[..], &REDIS].concat(), 0);
    assert!(String::from_utf8_lossy(&again.stdout).contains("nothing to change"));
}

#[test]
fn the_diff_of_a_catalog_behind_a_symbolic_link_can_be_applied() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    catalog_in_git(at);
    fs::rename(at.join("catalog"), at.join("real")).unwrap();
    std::os::unix::fs::symlink("real", at.join("catalog")).unwrap();
    let edit = ["catalog", "set-default", "catalog", "--channel", "fast"];
    let dry_run = run(at, &[&edit[..], &REDIS, &["--dry-run"]].concat(), 0);
    assert!(!said(&dry_run).contains("apply the diff in"), "{}", said(&dry_run));
    fs::write(at.join("patch"), &dry_run.stdout).unwrap();
    let applied = Command::new("git").args(["apply", "patch"]).current_dir(at).output().unwrap();
    assert!(applied.status.success(), "{}", said(&applied));
    let again = run(at, &[&edit[..], &REDIS].concat(), 0);
    assert!(String::from_utf8_lossy(&again.stdout).contains("nothing to change"));
}

#[test]
fn a_diff_beside_the_directory_starts_where_both_are_when_there_is_no_repository() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path().canonicalize().unwrap();
    copy_catalog(&at.join("c"));
    fs::create_dir(at.join("work")).unwrap();
    let edit = ["catalog", "set-default", "../c", "--channel", "fast", "--dry-run"];
    let dry_run = run(&at.join("work"), &[&edit[..], &REDIS].concat(), 0);
    assert!(String::from_utf8_lossy(&dry_run.stdout).starts_with("--- a/c/catalog.yaml"));
    assert!(said(&dry_run).contains(&format!("apply the diff in `{}`", at.display())), "{}", said(&dry_run));
}

/// A partial clone names a program for what it lacks; a stranger's checkout may name any.
#[test]
fn objects_that_are_elsewhere_are_not_fetched_by_a_program_of_the_checkout() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    catalog_in_git(at);
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(at).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let id = git(&["rev-parse", "HEAD:catalog/redis-operator/catalog.yaml"]);
    let object = at.join(".git/objects").join(&id[..2]).join(id[2..].trim());
    fs::remove_file(object).unwrap();
    for (key, value) in [
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", "ssh://elsewhere.example/x"),
        ("remote.origin.promisor", "true"),
        ("core.sshCommand", "touch started; false"),
    ] {
        git(&["config", key, value]);
    }
    let error = said(&run(at, &["catalog", "diff", "git:HEAD:catalog.yaml", "catalog"], 3));
    assert!(!at.join("started").exists(), "{error}");
    assert!(error.contains("cannot read `git:HEAD:catalog.yaml`"), "{error}");
}
