//! Our verdict on new versions of CRDs against operator-controller's own, on real pairs and on one change at a time.

use std::collections::BTreeSet;
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use olmkit_bundle::crd::Crd;
use olmkit_bundle::diff;
use olmkit_bundle::diff::crd::{compare, safety};
use olmkit_bundle::load::BundleFiles;
use olmkit_bundle::parse::{Bundle, Object};
use olmkit_bundle::source::Source;
use olmkit_bundle::version::parse_tolerant;
use olmkit_bundle::yaml::{Node, documents};
use serde_json::Value;

use crate::rendering::rows;

pub(crate) fn trials(corpus: &Path) -> Vec<Trial> {
    let (pairs, mutations, versions) = (corpus.to_owned(), corpus.to_owned(), corpus.to_owned());
    vec![
        Trial::test("upgrade_safety::consecutive_versions", move || of_versions(&versions)),
        Trial::test("upgrade_safety::pairs", move || of_pairs(&pairs)),
        Trial::test("upgrade_safety::mutations", move || of_mutations(&mutations)),
    ]
}

fn of_pairs(corpus: &Path) -> Result<(), Failed> {
    let mut report = String::new();
    let rows = rows(corpus, "crd-safety/pairs.jsonl")?;
    for row in &rows {
        let read = |key: &str| -> Result<String, Failed> {
            let path = corpus.join("bundles").join(row[key].as_str().ok_or("a path")?);
            Ok(std::fs::read_to_string(path)?)
        };
        let (old, new) = (read("old")?, read("new")?);
        let index = |key: &str| row[key].as_u64().unwrap_or(0) as usize;
        let parse = |text: &'static str, at: usize| documents(text).nth(at);
        // Documents borrow their text, and there are few of these.
        let (old, new): (&'static str, &'static str) = (old.leak(), new.leak());
        let (Some(Ok(old_doc)), Some(Ok(new_doc))) =
            (parse(old, index("oldIndex")), parse(new, index("newIndex")))
        else {
            return Err(format!("{}: no such object", row["crd"]).into());
        };
        report += &differences(&row["crd"].to_string(), row, &old_doc.root, &new_doc.root);
    }
    if report.is_empty() && rows.len() >= 60 { Ok(()) } else { Err(report.into()) }
}

fn of_mutations(corpus: &Path) -> Result<(), Failed> {
    let mut report = String::new();
    let rows = rows(corpus, "crd-safety/mutations.jsonl")?;
    for row in &rows {
        let base = row["base"].as_str().ok_or("a base")?;
        let text = std::fs::read_to_string(corpus.join("expected-v1/crd-safety/base").join(base))?;
        let old: Value = serde_json::from_str(&text)?;
        let mut new = old.clone();
        for operation in row["patch"].as_array().ok_or("a patch")? {
            patch(&mut new, operation).ok_or_else(|| format!("cannot apply {operation}"))?;
        }
        let what = format!("{base}: {} {}", row["what"], row["patch"]);
        report += &differences(&what, row, &Node::from(&old), &Node::from(&new));
    }
    if report.is_empty() && rows.len() >= 600 { Ok(()) } else { Err(report.into()) }
}

/// Consecutive versions of every package can be compared, and a version with itself has no findings.
fn of_versions(corpus: &Path) -> Result<(), Failed> {
    let mut compared = 0;
    for package in std::fs::read_dir(corpus.join("bundles"))? {
        let mut versions = Vec::new();
        for version in std::fs::read_dir(package?.path())? {
            let path = version?.path();
            if !path.is_dir() {
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            versions.push((parse_tolerant(&name).ok(), name, BundleFiles::load(&path)?));
        }
        versions.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        let bundles: Vec<_> = versions.iter().map(|(.., files)| Bundle::parse(files)).collect();
        for pair in bundles.windows(2) {
            // Bundles that cannot be compared say why.
            compared += usize::from(diff::bundles(&pair[0], &pair[1]).is_ok());
        }
        for bundle in &bundles {
            let Ok(same) = diff::bundles(bundle, bundle) else { continue };
            if let Some(finding) = same.findings.first() {
                return Err(format!("{}: differs from itself: {}", bundle.name, finding.message).into());
            }
        }
    }
    if compared >= 200 { Ok(()) } else { Err(format!("only {compared} pairs were compared").into()) }
}

/// Applies one operation of a JSON Patch.
fn patch(document: &mut Value, operation: &Value) -> Option<()> {
    let (parent, last) = operation["path"].as_str()?.rsplit_once('/')?;
    let last = last.replace("~1", "/").replace("~0", "~");
    match (document.pointer_mut(parent)?, operation["op"].as_str()?) {
        (Value::Object(map), "remove") => drop(map.remove(&last)?),
        (Value::Object(map), _) => drop(map.insert(last, operation["value"].clone())),
        (Value::Array(list), "remove") => drop(list.remove(last.parse().ok()?)),
        (Value::Array(list), "replace") => list[last.parse::<usize>().ok()?] = operation["value"].clone(),
        (Value::Array(list), _) if last == "-" => list.push(operation["value"].clone()),
        (Value::Array(list), _) => list.insert(last.parse().ok()?, operation["value"].clone()),
        _ => return None,
    }
    Some(())
}

/// One line for every result that is only ours or only theirs.
fn differences(what: &str, row: &Value, old: &Node<'_>, new: &Node<'_>) -> String {
    let ours: BTreeSet<String> = safety::refusals(Crd(old), Crd(new)).0.iter().map(shown).collect();
    let theirs: BTreeSet<String> = row["findings"].as_array().into_iter().flatten().map(recorded).collect();
    let mut report = String::new();
    for only in theirs.difference(&ours) {
        report += &format!("{what}: only theirs: {only}\n");
    }
    let count = row["count"].as_u64().unwrap_or(theirs.len() as u64) as usize;
    // Of more than sixty results only the first sixty are recorded.
    if count == theirs.len() {
        for only in ours.difference(&theirs) {
            report += &format!("{what}: only ours: {only}\n");
        }
    } else if count != ours.len() {
        report += &format!("{what}: {count} theirs, {} ours\n", ours.len());
    }
    let source = Source::new("crd", "");
    let findings = compare(Object { source: &source, root: old }, Object { source: &source, root: new });
    let marked = findings.iter().filter(|finding| finding.v1.is_some()).count();
    if marked != ours.len() {
        report += &format!("{what}: {} refusals, {marked} findings that carry one\n", ours.len());
    }
    report
}

fn shown(refusal: &safety::Refusal) -> String {
    match &refusal.removed {
        Some((version, path)) => format!("{} {version}.{path}", refusal.check),
        None => {
            let text = |part: &Option<String>| part.clone().unwrap_or_default();
            format!("{} {} {}", refusal.check, text(&refusal.version), text(&refusal.property))
        }
    }
}

fn recorded(finding: &Value) -> String {
    let text = |key: &str| finding[key].as_str().unwrap_or_default();
    match text("message").strip_prefix("removed field : ") {
        Some(field) => format!("{} {field}", text("check")),
        None => format!("{} {} {}", text("check"), text("version"), text("property")),
    }
}
