//! A full disk: no file is left half written, and the error says so.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use libtest_mimic::{Failed, Trial};

use crate::fixture::Catalog;
use crate::support::{Part, trial_with};

pub(crate) fn trials() -> Vec<Trial> {
    let parts = [Part::new("mounts", missing())];
    vec![
        trial_with("a_full_disk_keeps_the_compiled_catalog_of_before", &parts, compiled_catalog),
        trial_with("on_a_full_disk_an_image_archive_is_whole_or_not_there", &parts, image_archive),
    ]
}

/// Runs a shell script with a tiny disk of its own at `$DISK`.
fn on_tiny_disk(disk: &Path, script: &str) -> Command {
    let script = format!("mount -t tmpfs -o size=16k tmpfs \"$DISK\" && {{ {script}\n}}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script]).env("DISK", disk);
    command
}

/// Why there can be no such disk, if there cannot.
fn missing() -> Option<String> {
    let disk = tempfile::tempdir().unwrap();
    let why = match on_tiny_disk(disk.path(), "true").output() {
        Ok(Output { status, .. }) if status.success() => return None,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!("cannot mount a file system in a namespace of its own: {}", why.replace('\n', "; ")))
}

/// What olmkit says when a shell script runs it on a full disk with a catalog that does not fit.
fn said(script: &str) -> String {
    let catalog = Catalog::new(&[("alpha", 3000)]);
    let disk = catalog.as_ref().join("disk");
    fs::create_dir_all(&disk).unwrap();
    let mut command = on_tiny_disk(&disk, script);
    command.env("OLMKIT", env!("CARGO_BIN_EXE_olmkit")).env("CATALOG", catalog.path());
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn compiled_catalog() -> Result<(), Failed> {
    let said = said(
        r#"echo old >"$DISK/catalog.olmkit"
        "$OLMKIT" catalog build-index "$CATALOG" --to "$DISK/catalog.olmkit"
        echo "exit code $?, left: $(ls -A "$DISK"): $(cat "$DISK/catalog.olmkit")""#,
    );
    assert!(said.contains("exit code 3, left: catalog.olmkit: old"), "{said}");
    assert!(said.contains("No space left on device") && said.contains("cannot write"), "{said}");
    Ok(())
}

fn image_archive() -> Result<(), Failed> {
    let said = said(
        r#""$OLMKIT" catalog build "$CATALOG" --data-only --to "oci-archive:$DISK/image.tar"
        echo "exit code $?, left: $(ls -A "$DISK")""#,
    );
    assert!(said.contains("exit code 3, left: \n") && said.contains("No space left on device"), "{said}");
    Ok(())
}
