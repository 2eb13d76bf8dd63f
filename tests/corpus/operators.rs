//! `bundle generate` on what real projects publish: a bundle that validates and that OLM installs and upgrades, in the
//! simulator, or errors that say what to change. `docs/real-operators.md` shows the result; this test keeps it true, and
//! writes it with `OLMKIT_GENERATE=1`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

const PAGE: &str = "docs/real-operators.md";
const TABLE: &str = "| operator | bundle | `bundle validate` | simulated OLM | findings of `bundle generate` |\n|---|---|---|---|---|\n";

/// A version of an operator: its name, its version, and the directory with its manifests.
struct Input {
    name: String,
    version: String,
    directory: PathBuf,
}

pub(crate) fn trials(corpus: &Path) -> Vec<Trial> {
    let operators = corpus.join("operators");
    vec![Trial::test("operators", move || page(&operators))]
}

fn page(operators: &Path) -> Result<(), Failed> {
    let mut by_name = BTreeMap::<String, Vec<Input>>::new();
    for directory in directories(operators)?.into_iter().filter(|path| !path.ends_with("mini")) {
        for version in directories(&directory)? {
            let name = file_name(&directory);
            let input = Input { name: name.clone(), version: file_name(&version), directory: version };
            by_name.entry(name).or_default().push(input);
        }
    }
    let rows = std::thread::scope(|scope| {
        let threads: Vec<_> = by_name.values().map(|inputs| scope.spawn(|| rows(inputs))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("it panicked".into())))
            .collect::<Vec<_>>()
    });
    let mut table = TABLE.to_owned();
    for rows in rows {
        table += &rows?;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let text = std::fs::read_to_string(&path)?;
    let (before, _) = text.split_once(TABLE).ok_or("the page has no table")?;
    let fresh = format!("{before}{table}");
    if std::env::var_os("OLMKIT_GENERATE").is_some() {
        std::fs::write(path, fresh)?;
    } else if fresh != text {
        return Err(
            format!("{PAGE} is stale; renew it with OLMKIT_GENERATE=1. It should say:\n{table}").into()
        );
    }
    Ok(())
}

/// The rows of one operator's versions, each installed over the one before.
fn rows(inputs: &[Input]) -> Result<String, Failed> {
    let directory = tempfile::tempdir()?;
    let at = directory.path();
    let mut rows = String::new();
    let mut former: Option<String> = None;
    for input in inputs {
        let bundle = at.join(&input.version);
        let generated = generate(input, &bundle, former.as_deref())?;
        let answer: Value = serde_json::from_slice(&generated.stdout)?;
        let findings = answer["findings"].as_array().ok_or("no findings")?;
        let (made, valid, installs) = if generated.status.success() {
            former = answer["csv"].as_str().map(str::to_owned);
            let valid = validate(&bundle)?;
            let count = answer["files"].as_array().map_or(0, Vec::len);
            (format!("{count} files"), valid, install(at, &bundle)?)
        } else {
            for error in findings.iter().filter(|finding| finding["level"] == "error") {
                if error["help"].as_str().is_none_or(str::is_empty) {
                    return Err(
                        format!("{} {}: an error without help: {error}", input.name, input.version).into()
                    );
                }
            }
            ("none".to_owned(), "-".to_owned(), "-".to_owned())
        };
        let mut counts = BTreeMap::<(String, String), usize>::new();
        for finding in findings.iter().filter(|finding| finding["level"] != "info") {
            let text = |key: &str| finding[key].as_str().unwrap_or("").to_owned();
            *counts.entry((text("level"), text("code"))).or_default() += 1;
        }
        let shown = |((level, code), count): (&(String, String), &usize)| match level.as_str() {
            "error" => format!("**error** {count} × `{code}`"),
            _ => format!("{count} × `{code}`"),
        };
        let counts = counts.iter().map(shown).collect::<Vec<_>>().join(", ");
        let counts = if counts.is_empty() { "none".to_owned() } else { counts };
        rows += &format!("| {} {} | {made} | {valid} | {installs} | {counts} |\n", input.name, input.version);
    }
    Ok(rows)
}

fn olmkit(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Makes the bundle, which takes over from the one before.
fn generate(input: &Input, bundle: &Path, former: Option<&str>) -> Result<Output, Failed> {
    let mut command = olmkit(&["bundle", "generate", "--output", "json", "--package", &input.name]);
    command.args(["--version", &input.version]).arg("--output-dir").arg(bundle);
    if let Some(former) = former {
        command.args(["--set", &format!("spec.replaces={former}")]);
    }
    let there = |name: &str| Some(input.directory.join(name)).filter(|path| path.exists());
    command.args(["manifests.yaml", "manifests", "crds.yaml"].into_iter().filter_map(there));
    for (flag, name) in [("--base", "base.yaml"), ("--samples", "samples")] {
        if let Some(path) = there(name) {
            command.arg(flag).arg(path);
        }
    }
    // Nothing of this directory counts.
    Ok(command.current_dir(bundle.parent().unwrap_or(bundle)).output()?)
}

fn validate(bundle: &Path) -> Result<String, Failed> {
    let output = olmkit(&["bundle", "validate", "--output", "json"]).arg(bundle).output()?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let count = |key: &str| answer["summary"][key].as_u64().unwrap_or(0);
    if count("errors") > 0 {
        return Err(format!("{}: {answer:#}", bundle.display()).into());
    }
    Ok(match count("warnings") {
        0 => "no findings".to_owned(),
        1 => "1 warning".to_owned(),
        warnings => format!("{warnings} warnings"),
    })
}

/// Installs a bundle on a simulated cluster, or upgrades to it what is there.
fn install(at: &Path, bundle: &Path) -> Result<String, Failed> {
    let output = olmkit(&["operator", "install", "-n", "operators", "--simulate"])
        .arg(at.join("cluster.json"))
        .arg("--bundle")
        .arg(bundle)
        .output()?;
    if output.status.success() {
        return Ok("installed".to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let first = said.lines().find(|line| line.starts_with("error")).unwrap_or("failed");
    Ok(first.replace('|', "\\|"))
}

fn directories(path: &Path) -> Result<Vec<PathBuf>, Failed> {
    let entries = std::fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
    let mut all: Vec<_> =
        entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    all.sort();
    Ok(all)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
