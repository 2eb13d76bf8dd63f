//! The manifests of an OLM release: read, checked, and put into the order in which a cluster takes them. Pure.

use std::collections::{BTreeMap, BTreeSet};

use olmkit_bundle::yaml;
use serde_json::{Value, json};

use super::{CATALOG_OPERATOR, GROUP, OLM, OLM_OPERATOR, PACKAGE_SERVER, kinds, text};
use crate::lifecycle::api::{Key, Resource, known, label};

/// An image that is pulled from somewhere else than the manifests say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The image, or its repository: then whatever its tag and digest.
    pub image: String,
    /// What is pulled instead.
    pub with: String,
}

/// The objects of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// All of them, in the order in which they are applied.
    pub objects: Vec<Part>,
    /// Where OLM runs.
    pub namespace: String,
    /// The version of OLM; empty where the manifests do not say it.
    pub version: String,
}

/// An object of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its kind, at the version of the manifest.
    pub resource: Resource,
    /// Its name.
    pub key: Key,
    /// When it is applied.
    pub stage: Stage,
    /// The object.
    pub document: Value,
}

/// What is applied before what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Namespaces, which others are in.
    Namespaces,
    /// CustomResourceDefinitions, without which OLM does not begin to work.
    Crds,
    /// Accounts, rights and whatever else Deployments need.
    Rights,
    /// OLM's Deployments.
    Deployments,
    /// OLM's configuration and OperatorGroups.
    Settings,
    /// ClusterServiceVersions: OLM's API of packages.
    Packages,
    /// CatalogSources.
    Catalogs,
}

/// Manifests that OLM cannot be installed from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// A document is not YAML.
    #[error("`{file}` cannot be read: {message} (line {line})")]
    Syntax {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// Why.
        message: String,
    },
    /// A document is no object.
    #[error("document {number} of `{file}` has no apiVersion, kind and name")]
    NoObject {
        /// The file.
        file: String,
        /// Which of its documents, from 1.
        number: usize,
    },
    /// An object that OLM's releases do not have.
    #[error("`{file}` contains {object}, which is not part of an OLM release")]
    Kind {
        /// The file.
        file: String,
        /// The object.
        object: String,
    },
    /// An object of a kind with namespaces has none.
    #[error("{object} in `{file}` has no namespace")]
    NoNamespace {
        /// The file.
        file: String,
        /// The object.
        object: String,
    },
    /// There are two of a name that differ.
    #[error("`{file}` contains {object} again, and differently")]
    Twice {
        /// The file.
        file: String,
        /// The object.
        object: String,
    },
    /// What OLM cannot do without is missing.
    #[error("the manifests do not contain {0}")]
    Missing(String),
    /// An image to be replaced is not there.
    #[error("the manifests use no image `{image}`")]
    NoImage {
        /// The image.
        image: String,
        /// Those that they use.
        used: Vec<String>,
    },
}

impl ReleaseError {
    /// The way out.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Kind { .. } => {
                Some("leave it out, and apply it with kubectl after the installation".into())
            }
            Self::Missing(what) if what.contains("CustomResourceDefinition") => {
                Some("pass `crds.yaml` of the release as well, or the directory that holds both files".into())
            }
            Self::Missing(_) => Some("pass `crds.yaml` and `olm.yaml` of an OLM release".into()),
            Self::NoImage { used, .. } => Some(format!("they use {}", used.join(", "))),
            _ => None,
        }
    }
}

/// The CRDs without which OLM does not work, `OLMConfig` among them: without that olm-operator waits for ever.
pub(super) const CRDS: [&str; 7] = [
    "catalogsources",
    "clusterserviceversions",
    "installplans",
    "olmconfigs",
    "operatorconditions",
    "operatorgroups",
    "subscriptions",
];

impl Release {
    /// Reads manifests: names of files and their texts.
    ///
    /// # Errors
    /// They are not the manifests of an OLM.
    pub fn parse(files: &[(String, String)]) -> Result<Self, ReleaseError> {
        let known = kinds();
        let mut parts: BTreeMap<(Stage, usize, Key), Part> = BTreeMap::new();
        for (file, content) in files {
            for (number, document) in yaml::documents(content).enumerate() {
                let document = document.map_err(|error| ReleaseError::Syntax {
                    file: file.clone(),
                    line: 1 + content[..content.floor_char_boundary(error.span.start as usize)]
                        .matches('\n')
                        .count(),
                    message: error.to_string(),
                })?;
                for object in objects(document.root.to_json()) {
                    let part = part(&known, file, number + 1, object)?;
                    let at = known.iter().position(|kind| kind.kind == part.key.kind).unwrap_or_default();
                    let place = (part.stage, at, part.key.clone());
                    match parts.get(&place) {
                        Some(there) if there.document != part.document => {
                            let object = part.key.placed();
                            return Err(ReleaseError::Twice { file: file.clone(), object });
                        }
                        Some(_) => {}
                        None => drop(parts.insert(place, part)),
                    }
                }
            }
        }
        let objects: Vec<Part> = parts.into_values().collect();
        let names: BTreeSet<&str> = objects
            .iter()
            .filter(|part| part.stage == Stage::Crds)
            .map(|part| part.key.name.as_str())
            .collect();
        if let Some(crd) = CRDS.iter().find(|name| !names.contains(format!("{name}.{GROUP}").as_str())) {
            return Err(ReleaseError::Missing(format!("the CustomResourceDefinition `{crd}.{GROUP}`")));
        }
        let deployment = |name: &str| {
            let mut found = objects.iter();
            found
                .find(|part| part.key.kind == known::DEPLOYMENT.kind && part.key.name == name)
                .ok_or_else(|| ReleaseError::Missing(format!("the Deployment `{name}`")))
        };
        deployment(CATALOG_OPERATOR)?;
        let namespace = deployment(OLM_OPERATOR)?.key.namespace.clone();
        let version = version(objects.iter().map(|part| &part.document));
        Ok(Self { objects, namespace, version })
    }

    /// Leaves out the CatalogSources, such as that of OperatorHub.io, which a cluster without a way out cannot pull.
    #[must_use]
    pub fn without_catalogs(mut self) -> Self {
        self.objects.retain(|part| part.stage != Stage::Catalogs);
        self
    }

    /// Replaces images, also where they are arguments of OLM's programs.
    ///
    /// # Errors
    /// An image is used nowhere.
    pub fn replace_images(&mut self, overrides: &[Override]) -> Result<(), ReleaseError> {
        let used = self.images();
        for Override { image, .. } in overrides {
            if !used.iter().any(|used| is_meant(image, used)) {
                return Err(ReleaseError::NoImage { image: image.clone(), used });
            }
        }
        for part in &mut self.objects {
            if let Some(spec) = part.document.get_mut("spec").filter(|_| has_images(&part.key.kind)) {
                replace(spec, overrides);
            }
        }
        Ok(())
    }

    /// The images of OLM's own programs and those that it starts, sorted.
    pub fn images(&self) -> Vec<String> {
        let mut images = BTreeSet::new();
        for part in self.objects.iter().filter(|part| has_images(&part.key.kind)) {
            collect(&part.document["spec"], &mut images);
        }
        images.into_iter().collect()
    }

    /// The objects as they are applied: with the labels by which they are found again.
    pub fn labelled(&self) -> Vec<Part> {
        let mut parts = self.objects.clone();
        for part in &mut parts {
            let labels = &mut part.document["metadata"]["labels"];
            if !labels.is_object() {
                *labels = json!({});
            }
            labels[label::CREATED_BY] = json!(label::OLMKIT);
            labels[label::PART_OF] = json!(OLM);
        }
        parts
    }
}

/// What a document contains: itself, or the items of a List. An empty one contains nothing.
fn objects(document: Value) -> Vec<Value> {
    match document {
        Value::Null => Vec::new(),
        Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => {
            match list.remove("items") {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            }
        }
        one => vec![one],
    }
}

fn part(known: &[Resource], file: &str, number: usize, mut object: Value) -> Result<Part, ReleaseError> {
    let mut key = Key::of(&object);
    let api_version = text(&object, "/apiVersion").to_owned();
    if api_version.is_empty() || key.kind.is_empty() || key.name.is_empty() {
        return Err(ReleaseError::NoObject { file: file.to_owned(), number });
    }
    let Some(resource) = known.iter().find(|kind| kind.kind == key.kind && kind.group == key.group) else {
        return Err(ReleaseError::Kind { file: file.to_owned(), object: key.placed() });
    };
    if resource.namespaced && key.namespace.is_empty() {
        return Err(ReleaseError::NoNamespace { file: file.to_owned(), object: key.to_string() });
    }
    if !resource.namespaced {
        key.namespace.clear();
    }
    // A manifest need not say what a server writes itself.
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let version = api_version.rsplit('/').next().unwrap_or_default().to_owned();
    let resource = Resource { version, ..resource.clone() };
    Ok(Part { stage: stage(&key.kind), resource, key, document: object })
}

fn stage(kind: &str) -> Stage {
    match kind {
        "Namespace" => Stage::Namespaces,
        "CustomResourceDefinition" => Stage::Crds,
        "Deployment" => Stage::Deployments,
        "OLMConfig" | "OperatorGroup" => Stage::Settings,
        "ClusterServiceVersion" | "APIService" => Stage::Packages,
        "CatalogSource" => Stage::Catalogs,
        _ => Stage::Rights,
    }
}

fn has_images(kind: &str) -> bool {
    matches!(kind, "Deployment" | "ClusterServiceVersion" | "CatalogSource")
}

/// The version of OLM that objects are of: what its release writes on the API of packages, else the tag of its image.
pub(super) fn version<'d>(documents: impl Iterator<Item = &'d Value> + Clone) -> String {
    let named = |kind: &'static str, name: &'static str| {
        documents
            .clone()
            .find(move |document| document["kind"] == kind && document["metadata"]["name"] == name)
    };
    let tag = named("Deployment", OLM_OPERATOR).and_then(|deployment| {
        let image = text(deployment, "/spec/template/spec/containers/0/image");
        let (_, tag) = image.split('@').next()?.rsplit_once(':')?;
        is_version(tag).then(|| tag.to_owned())
    });
    let written = named("ClusterServiceVersion", PACKAGE_SERVER).map(|csv| {
        let label = text(csv, "/metadata/labels/olm.version");
        if label.is_empty() { text(csv, "/spec/version").to_owned() } else { label.to_owned() }
    });
    let version = tag.or(written).unwrap_or_default();
    version.strip_prefix('v').unwrap_or(&version).to_owned()
}

fn is_version(tag: &str) -> bool {
    olmkit_bundle::version::Version::parse(tag.strip_prefix('v').unwrap_or(tag)).is_ok()
}

/// The image that a text of a manifest names: it may be the value of a program's argument.
fn image_in(text: &str) -> (&str, &str) {
    match text.split_once('=') {
        Some((flag, image)) if flag.starts_with('-') => text.split_at(text.len() - image.len()),
        _ => ("", text),
    }
}

/// An image without tag and digest.
fn repository(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or(image);
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}

fn is_meant(wanted: &str, image: &str) -> bool {
    wanted == image || wanted == repository(image)
}

fn replace(value: &mut Value, overrides: &[Override]) {
    match value {
        Value::String(text) => {
            let (flag, image) = image_in(text);
            if let Some(found) = overrides.iter().find(|one| is_meant(&one.image, image)) {
                *text = format!("{flag}{}", found.with);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| replace(value, overrides)),
        Value::Object(fields) => fields.values_mut().for_each(|value| replace(value, overrides)),
        _ => {}
    }
}

/// Images: the field of a container or catalog, and arguments such as `--opmImage=IMAGE` and `--util-image IMAGE`.
fn collect(value: &Value, images: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(image) if name == "image" && !image.is_empty() => {
                        images.insert(image.clone());
                    }
                    value => collect(value, images),
                }
            }
        }
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                let Value::String(word) = value else {
                    collect(value, images);
                    continue;
                };
                let (flag, image) = image_in(word);
                let before = at.checked_sub(1).and_then(|at| values[at].as_str()).unwrap_or_default();
                if is_image_flag(flag.trim_end_matches('=')) || flag.is_empty() && is_image_flag(before) {
                    images.insert(image.to_owned());
                }
            }
        }
        _ => {}
    }
}

fn is_image_flag(flag: &str) -> bool {
    flag.starts_with('-') && flag.to_ascii_lowercase().ends_with("image")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least that counts as an OLM.
    pub(crate) fn manifests() -> String {
        let crds = CRDS.map(|name| {
            format!("---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {name}.{GROUP}}}\n")
        });
        let rest = "\
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: hub, namespace: olm}
spec: {sourceType: grpc, image: 'quay.io/hub/catalog:latest'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: catalog-operator, namespace: olm}
spec:
  template:
    spec:
      containers:
      - name: catalog-operator
        image: quay.io/of/olm@sha256:0123
        args: [--namespace, olm, '--opmImage=quay.io/of/opm:v1', --util-image, 'quay.io/of/olm@sha256:0123']
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: olm-operator, namespace: olm}
spec: {template: {spec: {containers: [{name: olm-operator, image: 'quay.io/of/olm@sha256:0123', args: []}]}}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: packageserver, namespace: olm, labels: {olm.version: v0.46.0}}
spec: {version: 0.18.3}
---
apiVersion: v1
kind: Namespace
metadata: {name: olm}
";
        [&crds.concat(), rest].concat()
    }

    fn parse(text: &str) -> Result<Release, ReleaseError> {
        Release::parse(&[("olm.yaml".to_owned(), text.to_owned())])
    }

    #[test]
    fn objects_are_in_the_order_in_which_a_cluster_takes_them() {
        let release = parse(&manifests()).unwrap();
        let names: Vec<String> = release.objects.iter().map(|part| part.key.to_string()).collect();
        assert_eq!(names[0], "namespace/olm");
        assert_eq!(
            names[8..],
            [
                "deployment/catalog-operator",
                "deployment/olm-operator",
                "clusterserviceversion/packageserver",
                "catalogsource/hub"
            ]
        );
        assert_eq!((release.namespace.as_str(), release.version.as_str()), ("olm", "0.46.0"));
        assert!(release.without_catalogs().objects.iter().all(|part| part.stage != Stage::Catalogs));
    }

    #[test]
    fn images_are_replaced_by_repository_also_as_arguments() {
        let mut release = parse(&manifests()).unwrap();
        let with = |image: &str, with: &str| Override { image: image.into(), with: with.into() };
        release
            .replace_images(&[
                with("quay.io/of/olm", "r:5000/olm:v1"),
                with("quay.io/of/opm:v1", "r:5000/opm:v2"),
            ])
            .unwrap();
        assert_eq!(release.images(), ["quay.io/hub/catalog:latest", "r:5000/olm:v1", "r:5000/opm:v2"]);
        let arguments = release.objects.iter().find(|part| part.key.name == CATALOG_OPERATOR).unwrap();
        assert_eq!(
            arguments.document.pointer("/spec/template/spec/containers/0/args").unwrap(),
            &json!(["--namespace", "olm", "--opmImage=r:5000/opm:v2", "--util-image", "r:5000/olm:v1"])
        );
        let error = release.replace_images(&[with("quay.io/of/operator", "x")]).unwrap_err();
        assert_eq!(error.to_string(), "the manifests use no image `quay.io/of/operator`");
    }

    #[test]
    fn what_is_no_release_is_refused() {
        let refused = |text: &str| parse(text).unwrap_err().to_string();
        let without = manifests().replace("name: olmconfigs.", "name: others.");
        assert_eq!(
            refused(&without),
            "the manifests do not contain the CustomResourceDefinition `olmconfigs.operators.coreos.com`"
        );
        let without = manifests().replace("name: olm-operator, namespace", "name: other, namespace");
        assert_eq!(refused(&without), "the manifests do not contain the Deployment `olm-operator`");
        let issuer = manifests()
            + "---\napiVersion: cert-manager.io/v1\nkind: Issuer\nmetadata: {name: a, namespace: olm}\n";
        assert_eq!(
            refused(&issuer),
            "`olm.yaml` contains issuer/a in olm, which is not part of an OLM release"
        );
        let placeless = manifests().replace("name: hub, namespace: olm", "name: hub");
        assert_eq!(refused(&placeless), "catalogsource/hub in `olm.yaml` has no namespace");
        let twice =
            manifests() + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: olm, labels: {a: b}}\n";
        assert_eq!(refused(&twice), "`olm.yaml` contains namespace/olm again, and differently");
        assert!(parse(&(manifests() + &manifests())).is_ok(), "the same again does no harm");
        assert_eq!(refused("a: 1\n"), "document 1 of `olm.yaml` has no apiVersion, kind and name");
    }
}
