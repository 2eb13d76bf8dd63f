//! `bundle validate --suite install` and the simulator about every bundle: what one refuses, the other does not install.
//!
//! Every error of the suite on a published bundle, and every bundle that does not install in the simulator, is in
//! `known-installs.toml` with the reason.
//!
//! Asked are of each package the first bundle and the last one in the order of their names, and those that `known-installs.toml` names;
//! with `OLMKIT_EVERY_BUNDLE` set, all of the corpus.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use libtest_mimic::{Failed, Trial};
use olmkit_bundle::finding::Level;
use olmkit_bundle::load::BundleFiles;
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::validate::{INSTALL, validate};
use serde::Deserialize;

/// A reason why bundles do not install, or why the validator calls them broken.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    /// The bundles, as `PACKAGE/VERSION`, or `PACKAGE/*`.
    bundles: Vec<String>,
    /// The code of the error, or what the simulator says, from its start.
    says: String,
    /// Why it is right.
    reason: String,
}

impl Known {
    fn is_about(&self, bundle: &str) -> bool {
        let package = bundle.split('/').next().unwrap_or("");
        self.bundles.iter().any(|own| own == bundle || own.strip_suffix("/*") == Some(package))
    }
}

pub(crate) fn trials(corpus: &Path) -> Vec<Trial> {
    let corpus = corpus.to_owned();
    vec![Trial::test("installs::validator_and_simulator_agree", move || agree(&corpus))]
}

fn agree(corpus: &Path) -> Result<(), Failed> {
    #[derive(Deserialize)]
    struct File {
        known: Vec<Known>,
    }
    let File { known } = toml::from_str(include_str!("known-installs.toml"))?;
    if let Some(own) = known.iter().find(|own| own.reason.len() < 20) {
        return Err(format!("`{}` needs a reason", own.says).into());
    }
    let found = verdicts(bundles(corpus, &known)?)?;
    let mut lines = Vec::new();
    let mut used = BTreeSet::new();
    for (bundle, said) in &found {
        for line in said {
            match known.iter().position(|own| own.is_about(bundle) && line.starts_with(&own.says)) {
                Some(at) => drop(used.insert(at)),
                None => lines.push(format!("{bundle}: {line}")),
            }
        }
    }
    let unused = known.iter().enumerate().filter(|(at, _)| !used.contains(at));
    lines.extend(unused.map(|(_, own)| format!("no longer there: {} of {:?}", own.says, own.bundles)));
    let refused = found.values().filter(|said| !said.is_empty()).count();
    eprintln!("installs: {} of {} bundles install and have no errors", found.len() - refused, found.len());
    if lines.is_empty() && found.len() > 60 { Ok(()) } else { Err(lines.join("\n").into()) }
}

/// The bundles to ask about.
fn bundles(corpus: &Path, known: &[Known]) -> Result<Vec<PathBuf>, Failed> {
    let every = std::env::var_os("OLMKIT_EVERY_BUNDLE").is_some();
    let mut bundles = Vec::new();
    for package in std::fs::read_dir(corpus.join("bundles"))? {
        let versions = std::fs::read_dir(package?.path())?.map(|version| Ok(version?.path()));
        let mut versions = versions.collect::<Result<Vec<_>, std::io::Error>>()?;
        versions.retain(|version| version.join("manifests").is_dir());
        versions.sort();
        let count = versions.len();
        let is_named =
            |version: &Path| known.iter().flat_map(|own| &own.bundles).any(|own| *own == name(version));
        let chosen = versions.into_iter().enumerate();
        let chosen = chosen.filter(|(at, version)| every || *at == 0 || at + 1 == count || is_named(version));
        bundles.extend(chosen.map(|(_, version)| version));
    }
    Ok(bundles)
}

/// `PACKAGE/VERSION` of a bundle's directory.
fn name(bundle: &Path) -> String {
    let mut names = bundle.iter().rev().filter_map(|part| part.to_str());
    let (version, package) = (names.next().unwrap_or(""), names.next().unwrap_or(""));
    format!("{package}/{version}")
}

/// What either says against each bundle.
fn verdicts(bundles: Vec<PathBuf>) -> Result<BTreeMap<String, Vec<String>>, Failed> {
    let (waiting, found) = (Mutex::new(bundles), Mutex::new(BTreeMap::new()));
    let scratch = tempfile::tempdir()?;
    let work = |worker: usize| -> Result<(), String> {
        let state = scratch.path().join(format!("{worker}.json"));
        loop {
            let next = waiting.lock().map_err(|error| error.to_string())?.pop();
            let Some(bundle) = next else { return Ok(()) };
            let said = said(&bundle, &state)?;
            found.lock().map_err(|error| error.to_string())?.insert(name(&bundle), said);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
        all.into_iter().try_for_each(|one| one.join().map_err(|_| "a worker ended".to_owned())?)
    })?;
    Ok(found.into_inner()?)
}

/// The errors of the suite, and why the bundle does not install in the simulator.
fn said(bundle: &Path, state: &Path) -> Result<Vec<String>, String> {
    let files = BundleFiles::load(bundle).map_err(|error| error.to_string())?;
    let findings = validate(&Bundle::parse(&files), &[INSTALL]);
    let errors = findings.iter().filter(|finding| finding.level == Level::Error);
    let mut said: Vec<String> =
        errors.map(|finding| format!("{}: {}", finding.code.name, finding.message)).collect();
    // Every bundle gets a cluster of its own.
    if state.exists() {
        std::fs::remove_file(state).map_err(|error| error.to_string())?;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_olmkit"))
        .args(["operator", "install", "--namespace", "op", "--bundle"])
        .arg(bundle)
        .arg("--simulate")
        .arg(state)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("error: "));
        said.push(format!("simulator: {}", line.unwrap_or(text.trim())));
    }
    Ok(said)
}
