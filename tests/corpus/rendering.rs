//! Plain manifests against those of operator-controller's own renderer: object by object, and refused where it refuses.

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use olmkit_bundle::load::{BundleFile, BundleFiles, Content};
use olmkit_bundle::manifests::{Certificates, Options, render};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The namespaces of the recorded answers.
const NAMESPACE: &str = "v1-install";
const OTHER: &str = "v1-watch";

/// The rows of a file with answers of OLM v1.
pub(crate) fn rows(corpus: &Path, name: &str) -> Result<Vec<Value>, Failed> {
    let text = std::fs::read_to_string(corpus.join("expected-v1").join(name))?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

pub(crate) fn trials(corpus: &Path) -> Vec<Trial> {
    let (bundles, made, config) = (corpus.to_owned(), corpus.to_owned(), corpus.to_owned());
    vec![
        Trial::test("rendering::bundles", move || of_bundles(&bundles)),
        Trial::test("rendering::made", move || of_made(&made)),
        Trial::test("rendering::configuration", move || of_configuration(&config)),
    ]
}

fn of_bundles(corpus: &Path) -> Result<(), Failed> {
    let (mut report, mut asked) = (String::new(), 0);
    let mut packages: Vec<_> =
        std::fs::read_dir(corpus.join("expected-v1/render"))?.collect::<Result<_, _>>()?;
    packages.sort_by_key(std::fs::DirEntry::path);
    for package in packages {
        let name = format!("render/{}", package.file_name().to_string_lossy());
        let rows = rows(corpus, &name)?;
        let mut last: Option<(String, BundleFiles)> = None;
        for row in &rows {
            let bundle = row["bundle"].as_str().unwrap_or_default();
            if last.as_ref().is_none_or(|(name, _)| name != bundle) {
                last = Some((bundle.to_owned(), BundleFiles::load(&corpus.join("bundles").join(bundle))?));
            }
            let Some((_, files)) = &last else { continue };
            // What is the same as another row is compared with it.
            let row = match row["sameAs"].as_str() {
                Some(case) => {
                    let same =
                        rows.iter().find(|other| other["bundle"] == row["bundle"] && other["case"] == case);
                    let mut same = same.cloned().unwrap_or_default();
                    same["case"] = row["case"].clone();
                    same
                }
                None => row.clone(),
            };
            asked += 1;
            report += &compare(&format!("{bundle} {}", row["case"]), files, &row);
        }
    }
    done(report, asked, 1_300)
}

fn of_made(corpus: &Path) -> Result<(), Failed> {
    let rows = rows(corpus, "render-made.jsonl")?;
    let mut report = String::new();
    for row in &rows {
        let files = row["files"].as_object().into_iter().flatten();
        let mut files: Vec<_> = files
            .map(|(path, text)| {
                let text = text.as_str().unwrap_or_default().to_owned();
                BundleFile { path: path.clone(), content: Content::Text(text) }
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        report += &compare(&row["case"].to_string(), &BundleFiles { name: "made".into(), files }, row);
    }
    done(report, rows.len(), 135)
}

fn of_configuration(corpus: &Path) -> Result<(), Failed> {
    let rows = rows(corpus, "config.jsonl")?;
    let (mut report, mut asked) = (String::new(), 0);
    for row in &rows {
        // Both gates are always open here; what a closed one refuses is no answer about the configuration.
        let closed = |gate: &str| row[gate] == false;
        if closed("singleOwnNamespace")
            || (closed("deploymentConfig") && !row["inline"]["deploymentConfig"].is_null())
        {
            continue;
        }
        let files =
            BundleFiles::load(&corpus.join("bundles").join(row["bundle"].as_str().unwrap_or_default()))?;
        let mut options = Options::new(NAMESPACE);
        options.certificates = Some(Certificates::CertManager);
        options.config = row.get("inline").cloned();
        asked += 1;
        let what = format!("{} {}", row["bundle"], row["inline"]);
        match (render(&files, &options), row["ok"] == true) {
            (Ok(objects), true) => {
                let of_template = |object: &Value| {
                    object.pointer("/spec/template/metadata/annotations/olm.targetNamespaces").cloned()
                };
                if let Some(found) = objects.iter().find_map(of_template)
                    && found != row["targetNamespaces"]
                {
                    report += &format!("{what}: watches {found}, not {}\n", row["targetNamespaces"]);
                }
            }
            (Err(_), false) => {}
            (Ok(_), false) => report += &format!("{what}: not refused: {}\n", row["error"]),
            (Err(error), true) => report += &format!("{what}: refused: {error}\n"),
        }
    }
    done(report, asked, 300)
}

fn done(report: String, asked: usize, least: usize) -> Result<(), Failed> {
    if report.is_empty() && asked >= least {
        return Ok(());
    }
    let lines = report.lines().count();
    let start: Vec<_> = report.lines().take(40).collect();
    Err(format!("{asked} asked, {lines} differences\n{}", start.join("\n")).into())
}

fn options(row: &Value) -> Options {
    let case = row["case"].as_str().unwrap_or_default();
    let mut options = Options::new(NAMESPACE);
    options.watch_namespace = match case {
        "own" => Some(NAMESPACE.to_owned()),
        "single" => Some(OTHER.to_owned()),
        _ => None,
    };
    options.certificates = match row["cert"].as_str().unwrap_or(case) {
        "" | "no-cert-provider" => None,
        "service-ca" => Some(Certificates::ServiceCa),
        _ => Some(Certificates::CertManager),
    };
    options.config = row.get("inline").cloned();
    options
}

/// A line for every difference from a row.
fn compare(what: &str, files: &BundleFiles, row: &Value) -> String {
    let rendered = render(files, &options(row));
    let (objects, error) = (row["objects"].as_array(), row["error"].as_str());
    match (rendered, objects, error) {
        (Err(_), None, Some(_)) => String::new(),
        (Ok(_), _, Some(error)) => format!("{what}: not refused: {error}\n"),
        (Err(error), _, None) => format!("{what}: refused: {error}\n"),
        (Ok(ours), Some(theirs), None) => {
            let only = row["case"] == "deployment-config";
            let ours = ours.into_iter().filter(|object| !only || object["kind"] == "Deployment");
            let ours: Vec<_> = ours.map(reduced).collect();
            let theirs: Vec<_> = theirs.iter().cloned().map(without_empty).collect();
            let mut report = String::new();
            for (at, (our, their)) in ours.iter().zip(&theirs).enumerate() {
                if our != their {
                    report += &format!("{what}: object {at}:\n  ours   {our}\n  theirs {their}\n");
                }
            }
            if ours.len() != theirs.len() {
                report += &format!("{what}: {} objects, not {}\n", ours.len(), theirs.len());
            }
            report
        }
        _ => format!("{what}: cannot be compared\n"),
    }
}

/// An object as it is recorded.
fn reduced(mut object: Value) -> Value {
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("creationTimestamp");
    }
    if object["kind"] != "CustomResourceDefinition" {
        return without_empty(object);
    }
    let hash = Sha256::digest(sorted(&object).to_string().as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut shown = json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "name": object["metadata"]["name"],
        "sha256": hash,
    });
    if let Some(conversion) = object["spec"].get("conversion") {
        shown["conversion"] = conversion.clone();
    }
    let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
    let injected = annotations.filter(|(key, _)| key.contains("/inject-"));
    shown["annotations"] = injected.map(|(key, value)| (key.clone(), value.clone())).collect();
    without_empty(shown)
}

/// The same with its keys in order, whatever order the map keeps.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

fn without_empty(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().map(|(key, value)| (key, without_empty(value)));
            kept.filter(|(_, value)| !is_empty(value)).collect()
        }
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        other => other,
    }
}
