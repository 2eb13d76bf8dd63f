//! What a bundle provides, requires and is: from `metadata/properties.yaml`, the ClusterServiceVersion, the CRDs and
//! `metadata/dependencies.yaml`, in opm's order.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use olmkit_bundle::crd::Crd;
use olmkit_bundle::csv::{ApiServiceDescription, GroupVersionKind, annotation};
use olmkit_bundle::finding::Place;
use olmkit_bundle::go;
use olmkit_bundle::parse::{Bundle, Csv};
use olmkit_bundle::yaml::Node;
use serde_json::{Value as Json, json};

use super::RenderError;
use crate::fbc::{self, property};
use crate::json::marshal;
use crate::property::type_mismatch_of_json;

/// A property in the making, ordered by type and then by the text of its value.
#[derive(Clone, Debug)]
pub(super) struct Property {
    kind: String,
    /// The value as Go writes it, which is what opm sorts by.
    text: String,
    value: Json,
}

impl Property {
    pub(super) fn new(kind: &str, value: Json) -> Self {
        Self { kind: kind.to_owned(), text: marshal(&value), value }
    }

    fn key(&self) -> (&str, &str) {
        (&self.kind, &self.text)
    }
}

impl PartialEq for Property {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Property {}

impl PartialOrd for Property {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Property {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl From<Property> for fbc::Property<'static> {
    fn from(property: Property) -> Self {
        Self { kind: property.kind.into(), value: Some(property.value.into()), ..Self::default() }
    }
}

/// The properties of a bundle but for its manifests, sorted.
pub(super) fn of(
    bundle: &Bundle<'_>,
    csv: &Csv<'_, '_>,
    package: &str,
) -> Result<Vec<Property>, RenderError> {
    let mut provided = provided(bundle, csv)?;
    let mut required = required(csv)?;
    let mut own_package = json!({ "packageName": package, "version": csv.typed.spec.version });
    if !csv.typed.spec.release.is_empty() {
        own_package["release"] = json!(csv.typed.spec.release);
    }
    let mut own_package = Property::new(property::PACKAGE, own_package);
    let mut all = BTreeSet::new();
    let mut given = listed(bundle, "properties")?;
    given.extend(annotated(csv)?);
    for given in given {
        match given.kind.as_str() {
            property::GVK => {
                provided.insert(gvk(&given.value));
            }
            property::PACKAGE => own_package = given,
            _ => {
                all.insert(given);
            }
        }
    }
    let mut all: Vec<Property> = all.into_iter().collect();
    for dependency in listed(bundle, "dependencies")? {
        match dependency.kind.as_str() {
            property::GVK => {
                required.insert(gvk(&dependency.value));
            }
            property::PACKAGE => {
                // A dependency calls its range `version`, where the property calls a version so.
                let (name, range) =
                    (text(&dependency.value, "packageName"), text(&dependency.value, "version"));
                let value = json!({ "packageName": name, "versionRange": range });
                all.push(Property::new(property::PACKAGE_REQUIRED, value));
            }
            _ => all.push(dependency),
        }
    }
    all.push(own_package);
    let property = |kind: &str, GroupVersionKind { group, version, kind: name }| {
        Property::new(kind, json!({ "group": group, "kind": name, "version": version }))
    };
    all.extend(provided.into_iter().map(|gvk| property(property::GVK, gvk)));
    all.extend(required.into_iter().map(|gvk| property(property::GVK_REQUIRED, gvk)));
    all.sort();
    Ok(all)
}

fn text(value: &Json, key: &str) -> String {
    go::value_of(value, key).and_then(Json::as_str).unwrap_or("").to_owned()
}

fn gvk(value: &Json) -> GroupVersionKind {
    GroupVersionKind {
        group: text(value, "group"),
        version: text(value, "version"),
        kind: text(value, "kind"),
    }
}

fn api_gvk(api: &ApiServiceDescription) -> GroupVersionKind {
    GroupVersionKind { group: api.group.clone(), version: api.version.clone(), kind: api.kind.clone() }
}

/// The APIs of the bundle's CRDs and the aggregated ones it brings; every owned CRD must be among them.
fn provided(bundle: &Bundle<'_>, csv: &Csv<'_, '_>) -> Result<BTreeSet<GroupVersionKind>, RenderError> {
    let mut provided = BTreeSet::new();
    let mut crds = BTreeSet::new();
    for object in bundle.crds() {
        let old = match object.api_version().rsplit('/').next() {
            Some("v1") => "",
            Some("v1beta1") => object.text(&["spec".into(), "version".into()]),
            _ => continue,
        };
        let crd = Crd::from(object);
        let plural = object.text(&["spec".into(), "names".into(), "plural".into()]);
        let listed = crd.versions().into_iter().map(|version| version.name.into_owned());
        for version in listed.chain((!old.is_empty()).then(|| old.to_owned())) {
            let (group, kind) = (crd.group().into_owned(), crd.kind().into_owned());
            let gvk = GroupVersionKind { group, version, kind };
            crds.insert((plural.to_owned(), gvk.clone()));
            provided.insert(gvk);
        }
    }
    for (at, owned) in csv.typed.spec.custom_resource_definitions.owned.iter().enumerate() {
        let (plural, group) = owned.name.split_once('.').unwrap_or((&owned.name, ""));
        let (version, kind) = (owned.version.clone(), owned.kind.clone());
        let gvk = GroupVersionKind { group: group.to_owned(), version, kind };
        if !crds.contains(&(plural.to_owned(), gvk)) {
            let place = place_of_crd(csv, "owned", at);
            let (name, version, kind) = (owned.name.clone(), owned.version.clone(), owned.kind.clone());
            return Err(RenderError::OwnedCrd { place, name, version, kind });
        }
    }
    provided.extend(csv.typed.spec.api_service_definitions.owned.iter().map(api_gvk));
    Ok(provided)
}

/// The place of a CRD's name in a list of the ClusterServiceVersion.
fn place_of_crd(csv: &Csv<'_, '_>, list: &'static str, at: usize) -> Box<Place> {
    let path = ["spec".into(), "customresourcedefinitions".into(), list.into(), at.into(), "name".into()];
    Box::new(csv.object.place(&path))
}

/// The APIs that the ClusterServiceVersion requires.
fn required(csv: &Csv<'_, '_>) -> Result<BTreeSet<GroupVersionKind>, RenderError> {
    let mut required = BTreeSet::new();
    for (at, crd) in csv.typed.spec.custom_resource_definitions.required.iter().enumerate() {
        let Some(group) = crd.group().map(str::to_owned) else {
            let why = format!("`{}` is not the name of a CRD, which is `PLURAL.GROUP`", crd.name);
            return Err(RenderError::File { place: place_of_crd(csv, "required", at), why });
        };
        required.insert(GroupVersionKind { group, version: crd.version.clone(), kind: crd.kind.clone() });
    }
    required.extend(csv.typed.spec.api_service_definitions.required.iter().map(api_gvk));
    Ok(required)
}

/// The properties in the annotation `olm.properties`.
fn annotated(csv: &Csv<'_, '_>) -> Result<Vec<Property>, RenderError> {
    let Some(text) = csv.typed.annotation(annotation::PROPERTIES) else { return Ok(Vec::new()) };
    let fail = |why: String| {
        let path = ["metadata".into(), "annotations".into(), annotation::PROPERTIES.into()];
        let why = format!("`{}` {why}", annotation::PROPERTIES);
        RenderError::File { place: Box::new(csv.object.place(&path)), why }
    };
    let items: Vec<Json> =
        serde_json::from_str(text).map_err(|error| fail(format!("is not a JSON list: {error}")))?;
    items.iter().map(|item| from_json(item).map_err(|why| fail(format!("has {why}")))).collect()
}

/// The items of a list in `metadata/`: of the files there the first with a list of that name that is not empty.
fn listed(bundle: &Bundle<'_>, key: &str) -> Result<Vec<Property>, RenderError> {
    for file in bundle.metadata() {
        let fail = |place: Place, why: String| RenderError::File { place: Box::new(place), why };
        let root = match file.documents.first() {
            Some(Err(error)) => return Err(fail(file.place_at(error.span), error.message.clone())),
            Some(Ok(document)) => &document.root,
            None => continue,
        };
        let list = root.as_mapping().and_then(|map| map.get_folded(key));
        let Some(list) = list.filter(|list| !list.is_null()) else { continue };
        let items = list.as_sequence();
        let items = items.ok_or_else(|| fail(file.place_at(list.span), format!("`{key}` is not a list")))?;
        if items.is_empty() {
            continue;
        }
        let read = |item: &Node<'_>| {
            from_json(&item.to_json())
                .map_err(|why| fail(file.place_at(item.span), format!("`{key}` has {why}")))
        };
        return items.iter().map(read).collect();
    }
    Ok(Vec::new())
}

/// A property from `{type, value}`, or what the item is instead.
fn from_json(item: &Json) -> Result<Property, String> {
    let kind = go::value_of(item, "type").and_then(Json::as_str).ok_or("an item without type")?;
    let value = go::value_of(item, "value").ok_or_else(|| format!("a `{kind}` without value"))?;
    match type_mismatch_of_json(kind, value) {
        Some(why) => Err(format!("a `{kind}` that does not fit: {why}")),
        None => Ok(Property::new(kind, value.clone())),
    }
}
