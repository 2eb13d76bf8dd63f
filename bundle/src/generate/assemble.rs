//! Puts the ClusterServiceVersion together from its parts.

use serde_json::{Map, Value, json};

use super::Request;
use super::api::Api;
use super::package_file::INSTALL_MODES;
use super::rbac::Rbac;
use super::workload::Workload;
use crate::csv::{API_VERSION, KIND, annotation};

pub(super) fn csv(request: &Request<'_>, workload: &Workload, rbac: &Rbac<'_, '_>, api: &Api) -> Value {
    let package = request.package;
    let settings = &package.settings;
    let edge = &request.edge;

    let mut strategy = Map::new();
    strategy.insert("deployments".into(), workload.deployments.clone().into());
    set(&mut strategy, "permissions", rbac.permissions.clone());
    set(&mut strategy, "clusterPermissions", rbac.cluster_permissions.clone());

    let mut definitions = Map::new();
    set(&mut definitions, "owned", api.owned.clone());

    let modes = INSTALL_MODES
        .map(|mode| json!({ "type": mode, "supported": package.install_modes.iter().any(|m| m == mode) }));

    let mut spec = Map::new();
    spec.insert("apiservicedefinitions".into(), json!({}));
    spec.insert("customresourcedefinitions".into(), definitions.into());
    spec.insert("displayName".into(), json!(package.display_name));
    spec.insert("install".into(), json!({ "strategy": "deployment", "spec": strategy }));
    spec.insert("installModes".into(), json!(modes));
    spec.insert("provider".into(), json!(settings.provider));
    spec.insert("version".into(), json!(package.version.to_string()));
    set(&mut spec, "description", package.description.as_str());
    set(&mut spec, "icon", package.icon.iter().map(|icon| json!(icon)).collect::<Vec<_>>());
    set(&mut spec, "keywords", settings.keywords.clone());
    set(&mut spec, "links", settings.links.iter().map(|link| json!(link)).collect::<Vec<_>>());
    set(&mut spec, "maintainers", settings.maintainers.iter().map(|who| json!(who)).collect::<Vec<_>>());
    set(&mut spec, "maturity", settings.maturity.as_str());
    set(&mut spec, "minKubeVersion", settings.min_kube_version.as_str());
    set(&mut spec, "replaces", edge.replaces.as_deref().unwrap_or(""));
    set(&mut spec, "skips", edge.skips.clone());

    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": { "name": package.csv_name(), "annotations": annotations(request, api) },
        "spec": spec,
    })
}

fn annotations(request: &Request<'_>, api: &Api) -> Map<String, Value> {
    let settings = &request.package.settings;
    let mut annotations: Map<String, Value> =
        settings.annotations.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    // Pretty-printed, so that a change to one example is a change to a few lines; without examples still JSON.
    let examples = format!("{:#}", Value::from(api.examples.clone()));
    annotations.insert(annotation::ALM_EXAMPLES.into(), json!(examples));
    annotations.insert(annotation::CAPABILITIES.into(), json!(request.package.capabilities));
    set(&mut annotations, annotation::CATEGORIES, settings.categories.join(", "));
    set(&mut annotations, annotation::CREATED_AT, request.created_at.as_deref().unwrap_or(""));
    set(&mut annotations, annotation::SKIP_RANGE, request.edge.skip_range.as_deref().unwrap_or(""));
    annotations
}

/// Sets a key unless the value is empty.
fn set(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    let value = value.into();
    let empty = match &value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if !empty {
        map.insert(key.to_owned(), value);
    }
}
