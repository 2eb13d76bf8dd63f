//! The value of `olm.csv.metadata`: the parts of a ClusterServiceVersion that consoles show.

use olmkit_bundle::csv::ClusterServiceVersion;
use serde::Serialize;
use serde_json::{Map, Value as Json};

/// The value, without fields that are empty, but for the three that Go always writes.
pub(super) fn value(csv: &ClusterServiceVersion) -> Json {
    let spec = &csv.spec;
    let mut fields = Map::new();
    let mut add = |key: &str, value: Json| {
        if !is_empty(&value) {
            fields.insert(key.to_owned(), value);
        }
    };
    add("annotations", json(&csv.metadata.annotations));
    add("description", json(&spec.description));
    add("displayName", json(&spec.display_name));
    add("installModes", json(&spec.install_modes));
    add("keywords", json(&spec.keywords));
    add("labels", json(&csv.metadata.labels));
    add("links", json(&spec.links));
    add("maintainers", json(&spec.maintainers));
    add("maturity", json(&spec.maturity));
    add("minKubeVersion", json(&spec.min_kube_version));
    add("nativeAPIs", json(&spec.native_apis));
    fields.insert("apiServiceDefinitions".into(), complete(json(&spec.api_service_definitions)));
    fields.insert("crdDescriptions".into(), complete(json(&spec.custom_resource_definitions)));
    fields.insert("provider".into(), json(&spec.provider));
    Json::Object(fields)
}

fn json(value: &impl Serialize) -> Json {
    // Only maps whose keys are no text have no JSON form, and there are none.
    serde_json::to_value(value).unwrap_or_default()
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Owned and required APIs as Go writes them: a resource always has a name, and a container port of 0 is none.
fn complete(mut lists: Json) -> Json {
    let items =
        lists.as_object_mut().into_iter().flat_map(Map::values_mut).filter_map(Json::as_array_mut).flatten();
    for description in items.filter_map(Json::as_object_mut) {
        if description.get("containerPort") == Some(&Json::from(0)) {
            description.remove("containerPort");
        }
        let resources = description.get_mut("resources").and_then(Json::as_array_mut).into_iter().flatten();
        for resource in resources.filter_map(Json::as_object_mut) {
            resource.entry("name").or_insert_with(|| Json::from(""));
        }
    }
    lists
}
