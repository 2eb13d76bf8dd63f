//! `bundle generate` on the manifests of real operators.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

pub(crate) fn trials(corpus: &Path) -> Vec<Trial> {
    let trial = |directory: PathBuf| {
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let input = directory.join("input.yaml");
        Trial::test(format!("generate::{name}"), move || generates_and_validates(&name, input))
    };
    let directories = std::fs::read_dir(corpus.join("manifests")).into_iter().flatten().flatten();
    let mut directories: Vec<_> =
        directories.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    directories.sort();
    directories.into_iter().map(trial).collect()
}

/// The bundle made from an operator's manifests alone has no errors, and is the same when made again.
fn generates_and_validates(name: &str, input: PathBuf) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let bundle = directory.path().join("bundle");
    for _ in 0..2 {
        let output = Command::new(env!("CARGO_BIN_EXE_olmkit"))
            .args(["bundle", "generate", "--package", name, "--version", "1.2.3", "--output-dir"])
            .args([&bundle, &input])
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
    }
    let output = Command::new(env!("CARGO_BIN_EXE_olmkit"))
        .args(["bundle", "validate", "--output", "json"])
        .arg(&bundle)
        .output()?;
    let findings: Value = serde_json::from_slice(&output.stdout)?;
    match findings["summary"]["errors"].as_u64() {
        Some(0) => Ok(()),
        _ => Err(format!("{findings:#}").into()),
    }
}
