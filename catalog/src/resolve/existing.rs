//! What OLM takes an installed ClusterServiceVersion to be.

use std::collections::BTreeSet;

use olmkit_bundle::csv;
use olmkit_bundle::version::{Version, parse_tolerant};
use serde_json::{Value as Json, json};

use super::Existing;
use crate::fbc::{self, Catalog, property};

/// Where OLM notes the properties that a bundle had in its catalog.
const PROPERTIES: &str = "operatorframework.io/properties";
/// OLM puts it on the copies it makes for other namespaces.
const COPIED_FROM: &str = "olm.copiedFrom";

impl Existing {
    /// A ClusterServiceVersion of the cluster; none for a copy of one from another namespace, and for other objects.
    ///
    /// Without the annotation that OLM puts on what it installs, its properties follow from the APIs that it owns and requires,
    /// and from the packages of the Subscriptions that have installed it, if that is one. A mere sketch, without an install
    /// strategy, has no properties at all: [`Existing::of_bundle`] knows more.
    pub fn of_manifest<'p>(manifest: &Json, packages: impl IntoIterator<Item = &'p str>) -> Option<Self> {
        let metadata = &manifest["metadata"];
        let name = metadata["name"].as_str().filter(|_| manifest["kind"] == csv::KIND)?;
        if !metadata["labels"][COPIED_FROM].is_null() || manifest["status"]["reason"] == "Copied" {
            return None;
        }
        let spec = &manifest["spec"];
        let text = spec["version"].as_str().unwrap_or("");
        let version = parse_tolerant(text).ok();
        let properties = match noted(&metadata["annotations"][PROPERTIES]) {
            Some(properties) => properties,
            None if spec["install"].is_null() => Vec::new(),
            None => inferred(spec, text, packages),
        };
        Some(Self { name: name.to_owned(), version: version.unwrap_or(Version::new(0, 0, 0)), properties })
    }

    /// A bundle of a catalog, once it is installed.
    pub fn of_bundle(catalog: &Catalog<'_>, name: &str) -> Option<Self> {
        let bundle = catalog.bundles.iter().find(|bundle| *bundle.name == *name)?;
        let properties: Vec<_> = bundle
            .properties
            .iter()
            .filter(|found| !matches!(&*found.kind, property::BUNDLE_OBJECT | property::CSV_METADATA))
            .map(|found| {
                (found.kind.to_string(), found.value.as_ref().map_or(Json::Null, fbc::Value::to_json))
            })
            .collect();
        let version = properties.iter().find(|(kind, _)| kind == property::PACKAGE);
        let version = version.and_then(|(_, value)| parse_tolerant(value["version"].as_str()?).ok());
        Some(Self { name: name.to_owned(), version: version.unwrap_or(Version::new(0, 0, 0)), properties })
    }

    /// One of which only the name is known. Such names mostly end in the version.
    pub fn of_name(name: &str) -> Self {
        let version = name.match_indices('.').find_map(|(at, _)| parse_tolerant(&name[at + 1..]).ok());
        Self {
            name: name.to_owned(),
            version: version.unwrap_or(Version::new(0, 0, 0)),
            properties: Vec::new(),
        }
    }
}

/// The properties in OLM's annotation.
fn noted(annotation: &Json) -> Option<Vec<(String, Json)>> {
    let noted: Json = serde_json::from_str(annotation.as_str()?).ok()?;
    let property = |property: &Json| Some((property["type"].as_str()?.to_owned(), property["value"].clone()));
    Some(noted["properties"].as_array()?.iter().filter_map(property).collect())
}

/// What OLM makes of a ClusterServiceVersion that it has not annotated.
fn inferred<'p>(
    spec: &Json,
    version: &str,
    packages: impl IntoIterator<Item = &'p str>,
) -> Vec<(String, Json)> {
    let mut properties = Vec::new();
    for (list, kind) in [("owned", property::GVK), ("required", property::GVK_REQUIRED)] {
        let crds = spec["customresourcedefinitions"][list].as_array().into_iter().flatten().map(|crd| {
            let group =
                crd["name"].as_str().and_then(|name| name.split_once('.')).map_or("", |(_, group)| group);
            json!({ "group": group, "kind": crd["kind"], "version": crd["version"] })
        });
        let services = spec["apiservicedefinitions"][list].as_array().into_iter().flatten();
        let services = services
            .map(|api| json!({ "group": api["group"], "kind": api["kind"], "version": api["version"] }));
        let mut values: Vec<Json> = crds.chain(services).collect();
        values.sort_by_key(ToString::to_string);
        values.dedup();
        properties.extend(values.into_iter().map(|value| (kind.to_owned(), value)));
    }
    let packages: BTreeSet<&str> = packages.into_iter().collect();
    if let [package] = packages.into_iter().collect::<Vec<_>>()[..] {
        let value = json!({ "packageName": package, "version": version });
        properties.push((property::PACKAGE.to_owned(), value));
    }
    properties
}
