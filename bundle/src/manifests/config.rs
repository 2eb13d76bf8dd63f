//! `spec.config.inline` of a ClusterExtension: the namespace to watch, and what to change in the Deployments
//! (`internal/operator-controller/config`, `rukpak/bundle/registryv1.go`).

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Affinity, EnvFromSource, EnvVar, ResourceRequirements, Toleration, Volume, VolumeMount,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use super::go::pod;
use crate::quantity::canonical;
use crate::yaml::json_kind;

/// What a configuration says of a bundle, once it is checked.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    pub(super) watch_namespace: Option<String>,
    pub(super) deployment: Option<Map<String, Json>>,
}

/// The install modes that a bundle supports.
pub(super) type Modes = BTreeSet<String>;

const MOST_BYTES: usize = 63;

/// What a Subscription has in `spec.config`, and a ClusterExtension below `deploymentConfig`.
const DEPLOYMENT_FIELDS: [&str; 9] = [
    "affinity",
    "annotations",
    "env",
    "envFrom",
    "nodeSelector",
    "resources",
    "tolerations",
    "volumeMounts",
    "volumes",
];

/// Checks a configuration; the errors are all that is wrong with it.
pub(super) fn read(
    inline: Option<&Json>,
    modes: &Modes,
    namespace: &str,
) -> Result<Configuration, Vec<String>> {
    let empty = Map::new();
    let map = match inline {
        None => &empty,
        Some(Json::Object(map)) => map,
        Some(other) => return Err(vec![format!("expected a map, found {}", json_kind(other))]),
    };
    let mut errors = Vec::new();
    for key in map.keys().filter(|key| !matches!(key.as_str(), "watchNamespace" | "deploymentConfig")) {
        let is_of_subscription = DEPLOYMENT_FIELDS.contains(&key.as_str());
        let help = if is_of_subscription { ": it belongs below `deploymentConfig`" } else { "" };
        errors.push(format!("unknown field `{key}`{help}"));
    }
    let mut configuration = Configuration::default();
    match watch_namespace(map.get("watchNamespace"), modes, namespace) {
        Ok(watched) => configuration.watch_namespace = watched,
        Err(error) => errors.push(error),
    }
    match map.get("deploymentConfig") {
        None => {}
        Some(Json::Object(map)) => {
            check_deployment(map, &mut errors);
            configuration.deployment = Some(map.clone());
        }
        Some(other) => errors.push(format!("`deploymentConfig`: expected a map, found {}", json_kind(other))),
    }
    if errors.is_empty() { Ok(configuration) } else { Err(errors) }
}

fn watch_namespace(value: Option<&Json>, modes: &Modes, namespace: &str) -> Result<Option<String>, String> {
    let has = |mode: &str| modes.contains(mode);
    let (all, own, single) = (has("AllNamespaces"), has("OwnNamespace"), has("SingleNamespace"));
    if !own && !single {
        return match value {
            None => Ok(None),
            Some(_) => Err("the operator watches all namespaces, and cannot be told to watch one".to_owned()),
        };
    }
    let Some(value) = value.filter(|value| !value.is_null()) else {
        let missing = "no namespace to watch given: the operator does not support watching all namespaces";
        return if all { Ok(None) } else { Err(missing.to_owned()) };
    };
    let Json::String(watched) = value else {
        return Err(format!("`watchNamespace`: expected a string, found {}", json_kind(value)));
    };
    if !is_namespace(watched) {
        return Err(format!("`watchNamespace`: `{watched}` is not the name of a namespace"));
    }
    match watched == namespace {
        false if own && !single => {
            Err(format!("the operator can only watch its own namespace `{namespace}`, not `{watched}`"))
        }
        true if single && !own => {
            Err(format!("the operator cannot watch its own namespace `{namespace}`; name another one"))
        }
        _ => Ok(Some(watched.clone())),
    }
}

/// Whether a text can be the name of a namespace.
pub(super) fn is_namespace(name: &str) -> bool {
    let sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty()
        && name.len() <= MOST_BYTES
        && name.chars().all(sound)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

fn check_deployment(map: &Map<String, Json>, errors: &mut Vec<String>) {
    for (key, value) in map {
        let path = format!("deploymentConfig.{key}");
        let list = |required: &[&str]| match value {
            Json::Array(items) => items.iter().all(|item| has_all(item, required)),
            _ => false,
        };
        let sound = match key.as_str() {
            "env" => list(&["name"]) && fits::<Vec<EnvVar>>(value),
            "envFrom" => list(&[]) && fits::<Vec<EnvFromSource>>(value),
            "volumes" => list(&["name"]) && fits::<Vec<Volume>>(value),
            "volumeMounts" => list(&["name", "mountPath"]) && fits::<Vec<VolumeMount>>(value),
            "tolerations" => list(&[]) && fits::<Vec<Toleration>>(value),
            "resources" => value.is_object() && fits::<ResourceRequirements>(value) && quantities(value),
            "affinity" => value.is_object() && fits::<Affinity>(value),
            "nodeSelector" | "annotations" => {
                value.as_object().is_some_and(|map| map.values().all(Json::is_string))
            }
            _ => {
                errors.push(format!("unknown field `{path}`"));
                continue;
            }
        };
        if !sound {
            errors.push(format!("`{path}` is not what a pod has there"));
        }
    }
}

fn has_all(item: &Json, required: &[&str]) -> bool {
    item.is_object() && required.iter().all(|key| item.get(key).is_some())
}

/// Whether a value is of a type. One with a `null` in it is of no type.
fn fits<T: DeserializeOwned>(value: &Json) -> bool {
    !has_null(value) && serde_json::from_value::<T>(value.clone()).is_ok()
}

fn has_null(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(items) => items.iter().any(has_null),
        Json::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

fn quantities(resources: &Json) -> bool {
    ["limits", "requests"].iter().all(|part| {
        let amounts = resources.get(part).and_then(Json::as_object);
        amounts.is_none_or(|map| {
            map.values().all(|amount| match amount {
                Json::String(text) => canonical(text).is_some(),
                other => other.is_number(),
            })
        })
    })
}

/// Applies a configuration to a Deployment, as OLM v1 does, and OLM v0 with `spec.config` of a Subscription.
pub(crate) fn apply(deployment: &mut Json, config: &Map<String, Json>) {
    let list = |key: &str| match config.get(key) {
        Some(Json::Array(items)) => items.iter().cloned().map(pod).collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    let (env, env_from, mounts) = (list("env"), list("envFrom"), list("volumeMounts"));
    let resources = config.get("resources").cloned().map(|resources| within_pod("resources", resources));
    let annotations = config.get("annotations").and_then(Json::as_object);
    let Some(template) = deployment.pointer_mut("/spec/template").and_then(Json::as_object_mut) else {
        return;
    };
    if let Some(annotations) = annotations {
        let metadata = object(template, "metadata");
        add_missing(object(metadata, "annotations"), annotations);
    }
    let spec = object(template, "spec");
    if let Some(Json::Array(containers)) = spec.get_mut("containers") {
        for container in containers.iter_mut().filter_map(Json::as_object_mut) {
            merge_by_name(container, "env", &env);
            add_new(container, "envFrom", &env_from);
            merge_by_name(container, "volumeMounts", &mounts);
            if let Some(resources) = &resources {
                container.insert("resources".to_owned(), resources.clone());
            }
        }
    }
    merge_by_name(spec, "volumes", &list("volumes"));
    add_new(spec, "tolerations", &list("tolerations"));
    if let Some(selector) = config.get("nodeSelector") {
        spec.insert("nodeSelector".to_owned(), selector.clone());
    }
    if let Some(Json::Object(affinity)) = config.get("affinity") {
        apply_affinity(spec, affinity);
    }
    if let Some(annotations) = annotations
        && let Some(deployment) = deployment.as_object_mut()
    {
        let metadata = object(deployment, "metadata");
        add_missing(object(metadata, "annotations"), annotations);
    }
}

fn within_pod(key: &str, value: Json) -> Json {
    let wrapped: Map<_, _> = [(key.to_owned(), value)].into_iter().collect();
    pod(Json::Object(wrapped)).get(key).cloned().unwrap_or_default()
}

/// The map under a key; created if missing.
fn object<'m>(map: &'m mut Map<String, Json>, key: &str) -> &'m mut Map<String, Json> {
    let value = map.entry(key).or_insert_with(|| Json::Object(Map::new()));
    if !value.is_object() {
        *value = Json::Object(Map::new());
    }
    match value {
        Json::Object(map) => map,
        _ => unreachable!("it was made a map above"),
    }
}

fn add_missing(map: &mut Map<String, Json>, more: &Map<String, Json>) {
    for (key, value) in more {
        map.entry(key.clone()).or_insert_with(|| value.clone());
    }
}

fn items<'m>(map: &'m mut Map<String, Json>, key: &str) -> &'m mut Vec<Json> {
    let value = map.entry(key).or_insert_with(|| Json::Array(Vec::new()));
    if !value.is_array() {
        *value = Json::Array(Vec::new());
    }
    match value {
        Json::Array(items) => items,
        _ => unreachable!("it was made a list above"),
    }
}

/// Replaces what has the same name, and adds the rest.
fn merge_by_name(map: &mut Map<String, Json>, key: &str, more: &[Json]) {
    if more.is_empty() {
        return;
    }
    let list = items(map, key);
    // Only what was there before is replaced; of several with one name the last.
    let before = list.len();
    for item in more {
        match (0..before).rev().find(|at| list[*at].get("name") == item.get("name")) {
            Some(at) => list[at] = item.clone(),
            None => list.push(item.clone()),
        }
    }
}

fn add_new(map: &mut Map<String, Json>, key: &str, more: &[Json]) {
    if more.is_empty() {
        return;
    }
    let list = items(map, key);
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

const AFFINITIES: [&str; 3] = ["nodeAffinity", "podAffinity", "podAntiAffinity"];

fn apply_affinity(spec: &mut Map<String, Json>, config: &Map<String, Json>) {
    if AFFINITIES.iter().all(|part| config.get(*part).is_none()) {
        spec.remove("affinity");
        return;
    }
    let affinity = object(spec, "affinity");
    for part in AFFINITIES {
        let Some(value) = config.get(part) else { continue };
        if is_empty_affinity(value) {
            affinity.remove(part);
        } else {
            affinity.insert(part.to_owned(), pod(value.clone()));
        }
    }
    if affinity.values().all(is_empty_affinity) {
        spec.remove("affinity");
    }
}

fn is_empty_affinity(affinity: &Json) -> bool {
    let is_empty = |key: &str| match affinity.get(key) {
        None | Some(Json::Null) => true,
        Some(Json::Array(items)) => items.is_empty(),
        Some(terms) => terms.get("nodeSelectorTerms").and_then(Json::as_array).is_none_or(Vec::is_empty),
    };
    is_empty("requiredDuringSchedulingIgnoredDuringExecution")
        && is_empty("preferredDuringSchedulingIgnoredDuringExecution")
}
