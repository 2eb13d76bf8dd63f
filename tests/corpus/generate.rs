//! `bundle generate` on the manifests of real operators, held against `operator-sdk generate bundle` on the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use super::known::Known;

/// What operator-sdk writes of when and by what a bundle was made.
const OF_THE_TOOL: [&str; 5] = [
    "/metadata/annotations/createdAt",
    "/metadata/annotations/operators.operatorframework.io~1builder",
    "/metadata/annotations/operators.operatorframework.io~1project_layout",
    "/annotations/operators.operatorframework.io.metrics.builder",
    "/annotations/operators.operatorframework.io.metrics.project_layout",
];

pub(crate) fn trials(corpus: &Path) -> Vec<Trial> {
    let directories = std::fs::read_dir(corpus.join("manifests")).into_iter().flatten().flatten();
    let mut inputs: Vec<_> =
        directories.map(|entry| entry.path()).filter(|path| path.is_dir()).map(Input).collect();
    inputs.sort_by(|a, b| a.0.cmp(&b.0));
    let trials = |input: Input| {
        let (one, other, name) = (input.clone(), input.clone(), input.name());
        [
            Trial::test(format!("generate::{name}"), move || generates_and_validates(&one)),
            Trial::test(format!("generate::compat::{name}"), move || is_operator_sdks(&other)),
            Trial::test(format!("generate::improved::{name}"), move || differs_as_documented(&input)),
        ]
    };
    let found = inputs.len();
    let all_there = Trial::test("generate::inputs", move || match found {
        15.. => Ok(()),
        _ => Err(format!("{found} directories of manifests, expected at least 15").into()),
    });
    let corpus = corpus.to_owned();
    let convert = Trial::test("generate::convert", move || converts(&corpus.join("packagemanifests")));
    inputs.into_iter().flat_map(trials).chain([all_there, convert]).collect()
}

/// Every version of every package in the older layout becomes a bundle with its own bytes, in the channel that leads to it.
fn converts(packages: &Path) -> Result<(), Failed> {
    let mut versions = 0;
    for package in
        std::fs::read_dir(packages)?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir())
    {
        let directory = tempfile::tempdir()?;
        let output = Command::new(env!("CARGO_BIN_EXE_olmkit"))
            .args(["bundle", "convert", "--output", "json", "--output-dir"])
            .arg(directory.path().join("bundles"))
            .arg(&package)
            .output()?;
        let answer: Value = serde_json::from_slice(&output.stdout)?;
        for bundle in answer["bundles"].as_array().ok_or("no bundles")? {
            versions += 1;
            if bundle["channels"] != serde_json::json!(["alpha"]) {
                return Err(format!("{bundle:#}").into());
            }
            let made = tree(Path::new(bundle["directory"].as_str().unwrap_or("")))?;
            let version =
                Path::new(bundle["directory"].as_str().unwrap_or("")).file_name().unwrap_or_default();
            for (name, text) in tree(&package.join(version))? {
                if made.get(&format!("manifests/{name}")) != Some(&text) {
                    return Err(format!("{name} of {} is another", package.display()).into());
                }
            }
        }
    }
    if versions == 5 { Ok(()) } else { Err(format!("{versions} versions instead of 5").into()) }
}

/// The manifests of an operator, and how operator-sdk was called on them.
#[derive(Clone)]
struct Input(PathBuf);

impl Input {
    fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn text(&self, file: &str) -> Result<String, Failed> {
        Ok(std::fs::read_to_string(self.0.join(file))?)
    }

    /// The options of the recorded call; where it names no package, operator-sdk took the project's name.
    fn options(&self) -> Result<Vec<String>, Failed> {
        let call = self.text("CALL")?;
        let words = call.split_whitespace().skip_while(|word| !word.starts_with("--"));
        let mut options: Vec<_> = words.map(str::to_owned).collect();
        if !options.iter().any(|word| word == "--package") {
            let project = self.text("PROJECT")?;
            let name = project.lines().find_map(|line| line.strip_prefix("projectName: "));
            options.extend(["--package".into(), name.ok_or("PROJECT names no project")?.trim().to_owned()]);
        }
        Ok(options)
    }

    /// Generates with the input on standard input, as operator-sdk had it.
    fn generate(&self, bundle: &Path, more: &[&str]) -> Result<Output, Failed> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        command
            .args(["bundle", "generate", "-"])
            .args(self.options()?)
            .args(more)
            .arg("--output-dir")
            .arg(bundle);
        if self.0.join("base.yaml").exists() {
            command.arg("--base").arg(self.0.join("base.yaml"));
        }
        let input = std::fs::File::open(self.0.join("input.yaml"))?;
        Ok(command.stdin(Stdio::from(input)).current_dir(bundle.parent().unwrap_or(bundle)).output()?)
    }
}

/// The bundle made from an operator's manifests has no errors, and is the same when made again.
fn generates_and_validates(input: &Input) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let (bundle, again) = (directory.path().join("bundle"), directory.path().join("again"));
    for bundle in [&bundle, &again] {
        let output = input.generate(bundle, &[])?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
    }
    if tree(&bundle)? != tree(&again)? {
        return Err("two runs made different bytes".into());
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

/// With `--compat operator-sdk` every field of every file is what operator-sdk made it, but for what is recorded.
fn is_operator_sdks(input: &Input) -> Result<(), Failed> {
    Known::load("generate")?.hold(&input.name(), &differences(input, &["--compat", "operator-sdk"])?)
}

/// Without it every difference is one that `docs/generate-compat.md` lists as an improvement.
fn differs_as_documented(input: &Input) -> Result<(), Failed> {
    let page = include_str!("../../docs/generate-compat.md");
    let rows: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let mut unlisted = Vec::new();
    for line in differences(input, &[])? {
        let (file, rest) = line.split_once(".yaml").unwrap_or((line.as_str(), ""));
        let what = if file.ends_with(".clusterserviceversion") { rest.trim_start() } else { line.as_str() };
        let listed = |row: &&str| match row.strip_prefix('*') {
            Some(part) => what.contains(part),
            None => what.starts_with(*row),
        };
        if !rows.iter().any(listed) {
            unlisted.push(line);
        }
    }
    if unlisted.is_empty() { Ok(()) } else { Err(unlisted.join("\n").into()) }
}

/// The fields that differ from operator-sdk's bundle.
fn differences(input: &Input, options: &[&str]) -> Result<Vec<String>, Failed> {
    let directory = tempfile::tempdir()?;
    let bundle = directory.path().join("bundle");
    let output = input.generate(&bundle, options)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let (found, expected) = (meanings(&bundle)?, meanings(&input.0.join("expected-bundle"))?);
    let mut differences = Vec::new();
    for path in found.keys().chain(expected.keys()) {
        let none = Value::Null;
        let (found, expected) = (found.get(path).unwrap_or(&none), expected.get(path).unwrap_or(&none));
        differ(path, found, expected, &mut differences);
    }
    differences.sort();
    differences.dedup();
    Ok(differences)
}

/// What every file of a bundle says, without what is empty: Go leaves empty fields out in its own way.
pub(crate) fn meanings(bundle: &Path) -> Result<BTreeMap<String, Value>, Failed> {
    let mut meanings = BTreeMap::new();
    for (path, text) in tree(bundle)? {
        if path.ends_with(".yaml") {
            let document = olmkit_bundle::yaml::first_document(&text)?;
            let mut value = document.root.to_json();
            for path in OF_THE_TOOL {
                let (map, key) = path.rsplit_once('/').unwrap_or_default();
                if let Some(map) = value.pointer_mut(map).and_then(Value::as_object_mut) {
                    map.remove(&key.replace("~1", "/"));
                }
            }
            examples(&mut value);
            meanings.insert(path, without_empty(value));
        } else {
            meanings.insert(path, text.into());
        }
    }
    Ok(meanings)
}

/// The examples as what they say rather than as text, in an order that does not matter.
fn examples(value: &mut Value) {
    let text = value.pointer_mut("/metadata/annotations/alm-examples");
    if let Some(text) = text
        && let Ok(Value::Array(mut list)) = serde_json::from_str(text.as_str().unwrap_or(""))
    {
        list.sort_by_key(Value::to_string);
        *text = list.into();
    }
}

fn without_empty(value: Value) -> Value {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    match value {
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, item)| (key, without_empty(item)))
            .filter(|(_, item)| !empty(item))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}

/// The paths at which two values differ, with both.
pub(crate) fn differ(at: &str, found: &Value, expected: &Value, differences: &mut Vec<String>) {
    match (found, expected) {
        (Value::Object(one), Value::Object(other)) => {
            for key in one.keys().chain(other.keys().filter(|key| !one.contains_key(*key))) {
                let none = Value::Null;
                let (one, other) = (one.get(key).unwrap_or(&none), other.get(key).unwrap_or(&none));
                differ(&format!("{at} {key}"), one, other, differences);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differ(&format!("{at} {index}"), one, other, differences);
            }
        }
        _ if found == expected => {}
        _ => differences.push(format!("{at}: {found} instead of {expected}")),
    }
}

/// Every file below a directory as text.
pub(crate) fn tree(directory: &Path) -> Result<BTreeMap<String, String>, Failed> {
    let (mut files, mut open) = (BTreeMap::new(), vec![directory.to_owned()]);
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
        } else {
            let name = path.strip_prefix(directory)?.to_string_lossy().into_owned();
            files.insert(name, std::fs::read_to_string(&path)?);
        }
    }
    Ok(files)
}
