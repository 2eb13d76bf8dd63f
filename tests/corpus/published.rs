//! What we generate for real operators, held against the bundles that their authors publish, field by field.
//!
//! Published bundles were finished by hand, with operator-sdk or without: they are not always right. Every difference is in
//! `known-differences.toml`, area `published`, with who is right and why.

use std::collections::BTreeMap;
use std::path::Path;

use libtest_mimic::Failed;
use serde_json::{Map, Value};

use super::generate::{differ, meanings, tree};
use super::known::Known;

/// How operator-sdk and `olmkit` were called for a published bundle, as the bundle itself tells.
pub(crate) struct Published {
    csv: Value,
    annotations: Value,
}

impl Published {
    /// Of an operator that publishes none, none.
    pub(crate) fn read(operator: &Path) -> Result<Option<Self>, Failed> {
        let bundle = operator.join("published");
        if !bundle.is_dir() {
            return Ok(None);
        }
        let files = meanings(&bundle)?;
        let csv =
            files.values().find(|file| file["kind"] == "ClusterServiceVersion").ok_or("no CSV")?.clone();
        let annotations =
            files.get("metadata/annotations.yaml").ok_or("no annotations")?["annotations"].clone();
        Ok(Some(Self { csv, annotations }))
    }

    /// The flags that make the same choices: channels, and service accounts that no Deployment runs as.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        if let Some(channels) = self.annotations["operators.operatorframework.io.bundle.channels.v1"].as_str()
        {
            flags.extend(["--channels".to_owned(), channels.to_owned()]);
        }
        let install = &self.csv["spec"]["install"]["spec"];
        let list = |key: &str| install[key].as_array().cloned().unwrap_or_default();
        let runs = |account: &Value| {
            let deployments = list("deployments");
            deployments.iter().any(|own| own["spec"]["template"]["spec"]["serviceAccountName"] == *account)
        };
        let permissions = [list("permissions"), list("clusterPermissions")].concat();
        let extra = permissions.iter().map(|own| &own["serviceAccountName"]).filter(|account| !runs(account));
        let extra: std::collections::BTreeSet<_> = extra.filter_map(Value::as_str).collect();
        if !extra.is_empty() {
            let extra: Vec<_> = extra.into_iter().collect();
            flags.extend(["--extra-service-accounts".to_owned(), extra.join(",")]);
        }
        flags
    }
}

/// Passes when every difference between our bundle and the published one is recorded.
pub(crate) fn compare(name: &str, operator: &Path, bundle: &Path) -> Result<(), Failed> {
    let (found, expected) = (documents(bundle)?, documents(&operator.join("published"))?);
    let none = Value::Null;
    let mut lines = Vec::new();
    for key in found.keys().chain(expected.keys().filter(|key| !found.contains_key(*key))) {
        let (found, expected) = (found.get(key).unwrap_or(&none), expected.get(key).unwrap_or(&none));
        let mut differences = Vec::new();
        match (found, expected) {
            (Value::Null, _) => differences.push(format!("{key}: null instead of a file")),
            (_, Value::Null) => differences.push(format!("{key}: a file instead of null")),
            _ => differ(key, found, expected, &mut differences),
        }
        // What is only ours, only theirs, and in both with other content.
        lines.extend(differences.into_iter().map(|line| match line.as_str() {
            text if text.ends_with(" instead of null") => format!("+ {line}"),
            text if text.contains(": null instead of ") => format!("- {line}"),
            _ => format!("~ {line}"),
        }));
    }
    // What every version says of when it was made.
    lines.retain(|line| !line.contains(" spec replaces: "));
    Known::load("published")?.hold(name, &lines).map_err(|failed| {
        let message = failed.message().unwrap_or("");
        format!("{name} {}:\n{message}", operator.file_name().unwrap_or_default().to_string_lossy()).into()
    })
}

/// The documents of a bundle by what they are, whatever their files are called, with lists whose order says nothing as maps.
fn documents(bundle: &Path) -> Result<BTreeMap<String, Value>, Failed> {
    let mut documents = BTreeMap::new();
    for (path, mut value) in meanings(bundle)? {
        let name = value["metadata"]["name"].as_str().unwrap_or("").to_owned();
        let key = match value["kind"].as_str() {
            Some("ClusterServiceVersion") => {
                unordered(&mut value);
                "csv".to_owned()
            }
            Some(kind) if path.starts_with("manifests/") => format!("{kind}/{name}"),
            _ if path.starts_with("tests/") => continue,
            _ => path,
        };
        documents.insert(key, value);
    }
    // A published bundle may have its Dockerfile beside.
    documents.retain(|key, _| !key.ends_with("Dockerfile"));
    Ok(documents)
}

/// Rules, descriptors and owned APIs as maps by what they are about.
fn unordered(csv: &mut Value) {
    let by = |list: &mut Value, key: &dyn Fn(&Value) -> String| {
        if let Value::Array(items) = list {
            *list = items.drain(..).map(|item| (key(&item), item)).collect::<Map<_, _>>().into();
        }
    };
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or("").to_owned();
    let install = &mut csv["spec"]["install"]["spec"];
    for key in ["permissions", "clusterPermissions"] {
        for permission in install[key].as_array_mut().into_iter().flatten() {
            for rule in permission["rules"].as_array_mut().into_iter().flatten() {
                for list in rule.as_object_mut().into_iter().flat_map(Map::values_mut) {
                    if let Value::Array(items) = list {
                        items.sort_by_key(Value::to_string);
                    }
                }
            }
            by(&mut permission["rules"], &Value::to_string);
        }
        by(&mut install[key], &|own| text(own, "serviceAccountName"));
    }
    let owned = &mut csv["spec"]["customresourcedefinitions"]["owned"];
    for api in owned.as_array_mut().into_iter().flatten() {
        for key in ["specDescriptors", "statusDescriptors", "actionDescriptors"] {
            if api[key].is_array() {
                by(&mut api[key], &|own| text(own, "path"));
            }
        }
    }
    by(owned, &|own| format!("{} {}", text(own, "name").trim(), text(own, "version")));
}

/// How many fields of two bundles differ, for a table.
pub(crate) fn count(one: &Path, other: &Path) -> Result<usize, Failed> {
    let (one, other) = (documents(one)?, documents(other)?);
    let mut differences = Vec::new();
    differ(
        "",
        &one.into_iter().collect::<Map<_, _>>().into(),
        &other.into_iter().collect::<Map<_, _>>().into(),
        &mut differences,
    );
    Ok(differences.len())
}

/// Every document of the files of an operator as one stream, as operator-sdk reads it.
pub(crate) fn stream(paths: &[std::path::PathBuf]) -> Result<String, Failed> {
    let mut texts = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => texts.extend(
                tree(path)?.into_iter().filter(|(name, _)| name.ends_with("yaml")).map(|(_, text)| text),
            ),
            false => texts.push(std::fs::read_to_string(path)?),
        }
    }
    Ok(texts.join("\n---\n"))
}
