//! A bundle's files as operator-controller reads them: every document of every file in `manifests/`, lists taken apart,
//! and told apart by kind alone (`internal/operator-controller/rukpak/bundle/source`).

use serde_json::value::RawValue;

use super::RenderError;
use super::names::escaped;
use crate::annotations;
use crate::csv::{self, ClusterServiceVersion};
use crate::load::{BundleFiles, Content};
use crate::yaml::{Document, Node, Value, decode, documents, steps};

/// The documents of a bundle's manifests and metadata.
#[derive(Debug)]
pub(super) struct Files<'a> {
    manifests: Vec<(&'a str, Vec<Document<'a>>)>,
    annotations: Document<'a>,
    properties: Option<Document<'a>>,
}

/// A bundle, read.
#[derive(Debug)]
pub(super) struct Parts<'b, 'a> {
    pub(super) package: String,
    pub(super) csv: ClusterServiceVersion,
    /// The document of the ClusterServiceVersion.
    pub(super) root: &'b Node<'a>,
    /// `olm.properties`, when `metadata/properties.yaml` adds to it.
    pub(super) properties: Option<String>,
    pub(super) crds: Vec<&'b Node<'a>>,
    pub(super) others: Vec<&'b Node<'a>>,
}

/// A property with its value as it was written.
#[derive(serde::Deserialize)]
struct Property<'a> {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
}

impl<'a> Files<'a> {
    pub(super) fn read(files: &'a BundleFiles) -> Result<Self, RenderError> {
        let first = |path: &str| -> Result<Option<Document<'a>>, RenderError> {
            let Some(file) = files.files.iter().find(|file| file.path == path) else { return Ok(None) };
            let text = file.content.text().unwrap_or_default();
            documents(text).next().transpose().map_err(|error| RenderError::unreadable(path, error.message))
        };
        let annotations = first("metadata/annotations.yaml")?.ok_or(RenderError::NoAnnotations)?;
        let properties = first("metadata/properties.yaml")?;
        let mut manifests = Vec::new();
        let mut is_there = false;
        for file in &files.files {
            if file.path == annotations::MANIFESTS_DIR.trim_end_matches('/') {
                is_there = true;
            }
            let Some(name) = file.path.strip_prefix(annotations::MANIFESTS_DIR) else { continue };
            is_there = true;
            if name.contains('/') || matches!(file.content, Content::Directory) {
                let directory = name.split('/').next().unwrap_or(name);
                return Err(RenderError::Subdirectory { path: format!("manifests/{directory}") });
            }
            let text = match &file.content {
                Content::Text(text) => text,
                Content::Binary { .. } => {
                    return Err(RenderError::unreadable(&file.path, "not text in UTF-8"));
                }
                Content::Unread(why) => return Err(RenderError::unreadable(&file.path, why)),
                Content::Directory => continue,
            };
            let read: Result<Vec<_>, _> = documents(text).collect();
            let read = read.map_err(|error| RenderError::unreadable(&file.path, error.message))?;
            manifests.push((file.path.as_str(), read));
        }
        if !is_there {
            return Err(RenderError::NoManifests);
        }
        Ok(Self { manifests, annotations, properties })
    }

    pub(super) fn parts(&self) -> Result<Parts<'_, 'a>, RenderError> {
        let (mut found, mut crds, mut others) = (None, Vec::new(), Vec::new());
        for (path, documents) in &self.manifests {
            for document in documents.iter().filter(|document| !document.root.is_null()) {
                for object in objects(&document.root) {
                    match object.get("kind").and_then(Node::as_str) {
                        Some(csv::KIND) => {
                            let read: ClusterServiceVersion = decode::decode(object)
                                .map_err(|error| RenderError::unreadable(path, error.to_string()))?;
                            found = Some((read, object));
                        }
                        Some("CustomResourceDefinition") => crds.push(object),
                        Some(kind) if !kind.is_empty() => others.push(object),
                        _ => return Err(RenderError::unreadable(path, "an object has no kind")),
                    }
                }
            }
        }
        let Some((csv, root)) = found else { return Err(RenderError::NoCsv) };
        let package = self.annotations.root.at(steps!("annotations", annotations::PACKAGE));
        let package = package.and_then(Node::to_text).unwrap_or_default().into_owned();
        let properties = self.merged_properties(&csv)?;
        Ok(Parts { package, csv, root, properties, crds, others })
    }

    /// The properties of the annotation and those of `metadata/properties.yaml`, as one annotation.
    fn merged_properties(&self, csv: &ClusterServiceVersion) -> Result<Option<String>, RenderError> {
        let mut all = Vec::new();
        if let Some(text) = csv.annotation(csv::annotation::PROPERTIES) {
            let fail = |error: serde_json::Error| RenderError::Properties {
                path: format!("annotation `{}`", csv::annotation::PROPERTIES),
                why: error.to_string(),
            };
            let own: Option<Vec<Property<'_>>> = serde_json::from_str(text).map_err(fail)?;
            for Property { kind, value } in own.unwrap_or_default() {
                let value = value.map_or("null".to_owned(), |value| escaped(&compact(value.get())));
                all.push((kind, value));
            }
        }
        let Some(document) = &self.properties else { return Ok(None) };
        let fail =
            |why: &str| RenderError::Properties { path: "metadata/properties.yaml".into(), why: why.into() };
        if !matches!(document.root.value, Value::Mapping(_) | Value::Null) {
            return Err(fail("expected a map"));
        }
        let listed = document.root.get("properties").filter(|listed| !listed.is_null());
        let items = match listed
            .map(|listed| listed.as_sequence().ok_or_else(|| fail("`properties` is not a list")))
        {
            Some(items) => items?,
            None => &[],
        };
        for item in items {
            let kind =
                item.get("type").and_then(Node::as_str).ok_or_else(|| fail("a property has no type"))?;
            let value = item.get("value").map_or("null".to_owned(), |value| value.to_json().to_string());
            all.push((kind.to_owned(), escaped(&value)));
        }
        let written = all
            .iter()
            .map(|(kind, value)| format!("{{\"type\":{},\"value\":{value}}}", super::names::go_text(kind)));
        Ok(Some(if all.is_empty() {
            "null".to_owned()
        } else {
            format!("[{}]", written.collect::<Vec<_>>().join(","))
        }))
    }
}

/// An object, or the items of a list.
fn objects<'b, 'a>(root: &'b Node<'a>) -> Vec<&'b Node<'a>> {
    match root.get("items").and_then(Node::as_sequence) {
        Some(items) if root.get("kind").and_then(Node::as_str).is_some_and(|kind| kind.ends_with("List")) => {
            items.iter().flat_map(objects).collect()
        }
        _ => vec![root],
    }
}

/// JSON without the white space between its parts.
fn compact(json: &str) -> String {
    let (mut text, mut within, mut escape) = (String::with_capacity(json.len()), false, false);
    for c in json.chars() {
        if within {
            (within, escape) = (escape || c != '"', c == '\\' && !escape);
        } else if c.is_ascii_whitespace() {
            continue;
        } else {
            within = c == '"';
        }
        text.push(c);
    }
    text
}
