//! `bundle generate` on the manifests of real operators.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

/// Operators without webhooks, which the generator does not take yet.
const WITHOUT_WEBHOOKS: [&str; 8] = [
    "controller-rs",
    "derived-headscale-operator",
    "derived-shipwright-operator",
    "etcd-operator",
    "memcached-operator-ansible",
    "memcached-operator-helm",
    "redis-operator",
    "valkey-operator",
];

pub(crate) fn trials(corpus: &Path) -> Vec<Trial> {
    let trial = |name: &str| {
        let input = corpus.join("manifests").join(name).join("input.yaml");
        let name = name.to_owned();
        Trial::test(format!("generate::{name}"), move || generates_and_validates(&name, input))
    };
    WITHOUT_WEBHOOKS.iter().map(|name| trial(name)).collect()
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
