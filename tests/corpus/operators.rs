//! `bundle generate` on what real projects publish: a bundle that validates and that OLM installs and upgrades, in the
//! simulator, or errors that say what to change. `docs/real-operators.md` shows the result; this test keeps it true, and
//! writes it with `OLMKIT_GENERATE=1`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use libtest_mimic::{Failed, Trial};

use super::published::{self, Published};
use super::support::{Part, trial_with};
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
    let (all, beside, copy) = (operators.clone(), operators.clone(), operators.clone());
    vec![
        Trial::test("operators", move || page(&operators)),
        Trial::test("operators::published", move || like_published(&all)),
        trial_with("operators::operator_sdk", &[Part::program("operator-sdk")], move || {
            for verdict in beside_operator_sdk(&beside, Path::new("operator-sdk"))? {
                eprintln!("{verdict}");
            }
            Ok(())
        }),
        Trial::test("operators::operator_sdk_stand_in", move || stand_in(&copy)),
    ]
}

/// Every operator's versions, by name.
fn inputs(operators: &Path) -> Result<BTreeMap<String, Vec<Input>>, Failed> {
    let mut by_name = BTreeMap::<String, Vec<Input>>::new();
    for directory in directories(operators)?.into_iter().filter(|path| !path.ends_with("mini")) {
        for version in directories(&directory)? {
            let name = file_name(&directory);
            let input = Input { name: name.clone(), version: file_name(&version), directory: version };
            by_name.entry(name).or_default().push(input);
        }
    }
    Ok(by_name)
}

/// What differs from the bundles that projects publish is recorded, with who is right.
fn like_published(operators: &Path) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut compared = 0;
    for input in inputs(operators)?.into_values().flatten() {
        let Some(published) = Published::read(&input.directory)? else { continue };
        let bundle = directory.path().join(format!("{}-{}", input.name, input.version));
        let output = generate(&input, &bundle, None, &published.flags())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        published::compare(&input.name, &input.directory, &bundle)?;
        compared += 1;
    }
    if compared < 8 { Err(format!("{compared} published bundles, expected 8").into()) } else { Ok(()) }
}

/// A program that stands in for operator-sdk, where that is not to be had: ours, told to make the same. So what calls it and
/// compares the bundles is tested everywhere.
fn stand_in(operators: &Path) -> Result<(), Failed> {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir()?;
    let program = directory.path().join("operator-sdk");
    let script = format!(
        "#!/bin/sh\n[ \"$1 $2\" = 'generate bundle' ] || exit 64\nshift 2\nexec '{}' bundle generate - --compat operator-sdk \"$@\"\n",
        env!("CARGO_BIN_EXE_olmkit")
    );
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    let verdicts = beside_operator_sdk(operators, &program)?;
    let is_same = |verdict: &String| verdict.ends_with(": 0 fields differ with --compat operator-sdk");
    let (same, others): (Vec<_>, Vec<_>) = verdicts.into_iter().partition(is_same);
    // A pipe has no samples apart: where files that are no objects are among them, ours makes nothing of it.
    let odd = others.iter().any(|verdict| !verdict.ends_with(": operator-sdk makes none"));
    if same.len() < 12 || odd {
        return Err(format!("{} bundles are the same, and not: {others:#?}", same.len()).into());
    }
    Ok(())
}

/// operator-sdk on the same input, a line for each: it never makes a bundle where we neither make one nor say why.
fn beside_operator_sdk(operators: &Path, program: &Path) -> Result<Vec<String>, Failed> {
    let directory = tempfile::tempdir()?;
    let at = directory.path();
    let mut verdicts = Vec::new();
    for input in inputs(operators)?.into_values().flatten() {
        let name = format!("{}-{}", input.name, input.version);
        let (ours, theirs) = (at.join(&name), at.join(format!("{name}-operator-sdk")));
        let generated = generate(&input, &ours, None, &["--compat".into(), "operator-sdk".into()])?;
        let mut paths = input.paths();
        paths.extend(
            ["base.yaml", "samples"]
                .map(|name| input.directory.join(name))
                .into_iter()
                .filter(|path| path.exists()),
        );
        // It reads a pipe, and no file.
        let text = published::stream(&paths)?;
        let mut child = Command::new(program)
            .args([
                "generate",
                "bundle",
                "--package",
                &input.name,
                "--version",
                &input.version,
                "--output-dir",
            ])
            .arg(&theirs)
            .current_dir(at)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().ok_or("no pipe")?;
        // One that ends early closes the pipe.
        let writer = std::thread::spawn(move || drop(std::io::Write::write_all(&mut stdin, text.as_bytes())));
        let output = child.wait_with_output()?;
        drop(writer.join());
        let verdict = match (generated.status.success(), output.status.success()) {
            (true, true) => {
                format!("{} fields differ with --compat operator-sdk", published::count(&ours, &theirs)?)
            }
            (true, false) => "operator-sdk makes none".to_owned(),
            (false, _) if errors_without_help(&generated)?.is_empty() => "none, with findings".to_owned(),
            (false, _) => return Err(format!("{name}: no bundle, and no help").into()),
        };
        verdicts.push(format!("{name}: {verdict}"));
    }
    Ok(verdicts)
}

/// The errors that do not say what to change.
fn errors_without_help(generated: &Output) -> Result<Vec<String>, Failed> {
    let answer: Value = serde_json::from_slice(&generated.stdout)?;
    let findings = answer["findings"].as_array().ok_or("no findings")?;
    let errors = findings.iter().filter(|finding| finding["level"] == "error");
    let silent = errors.filter(|error| error["help"].as_str().is_none_or(str::is_empty));
    Ok(silent.map(Value::to_string).collect())
}

impl Input {
    /// The files and directories with its manifests.
    fn paths(&self) -> Vec<PathBuf> {
        let there = |name: &str| Some(self.directory.join(name)).filter(|path| path.exists());
        ["manifests.yaml", "manifests", "crds.yaml"].into_iter().filter_map(there).collect()
    }
}

fn page(operators: &Path) -> Result<(), Failed> {
    let by_name = inputs(operators)?;
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
        let generated = generate(input, &bundle, former.as_deref(), &[])?;
        let answer: Value = serde_json::from_slice(&generated.stdout)?;
        let findings = answer["findings"].as_array().ok_or("no findings")?;
        let (made, valid, installs) = if generated.status.success() {
            former = answer["csv"].as_str().map(str::to_owned);
            let valid = validate(&bundle)?;
            let count = answer["files"].as_array().map_or(0, Vec::len);
            (format!("{count} files"), valid, install(at, &bundle)?)
        } else {
            if let Some(error) = errors_without_help(&generated)?.first() {
                return Err(
                    format!("{} {}: an error without help: {error}", input.name, input.version).into()
                );
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
fn generate(input: &Input, bundle: &Path, former: Option<&str>, more: &[String]) -> Result<Output, Failed> {
    let mut command = olmkit(&["bundle", "generate", "--output", "json", "--package", &input.name]);
    command.args(["--version", &input.version]).arg("--output-dir").arg(bundle);
    if let Some(former) = former {
        command.args(["--set", &format!("spec.replaces={former}")]);
    }
    let there = |name: &str| Some(input.directory.join(name)).filter(|path| path.exists());
    command.args(input.paths()).args(more);
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
