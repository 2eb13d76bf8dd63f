//! Values in the form that Kubernetes' Go types write them: unknown fields and empty values gone, quantities canonical.

use serde_json::{Map, Value as Json};

use crate::quantity::canonical;
use crate::yaml::fit::{Struct, Type};
use crate::yaml::{Node, Value};

/// A document as a type writes it back, without `status` and without the time of creation.
pub(super) fn typed(node: &Node<'_>, of: &'static Type) -> Json {
    let mut json = value(node, of, true).unwrap_or_default();
    if let Some(map) = json.as_object_mut() {
        map.remove("status");
        if let Some(metadata) = map.get_mut("metadata").and_then(Json::as_object_mut) {
            metadata.remove("creationTimestamp");
        }
    }
    json
}

/// Fields that are there also when they are false.
const ALWAYS: &[&str] = &["served", "storage"];
/// Fields that Go has pointers for, so that an empty value stays.
const POINTERS: &[&str] = &[
    "$ref",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "reason",
    "optionalOldSelf",
    "path",
    "port",
    "url",
    "controller",
    "blockOwnerDeletion",
];

/// A value as its type writes it; none when it is left out.
fn value(node: &Node<'_>, of: &'static Type, keep_empty: bool) -> Option<Json> {
    let json = match (of, &node.value) {
        (_, Value::Null) => return None,
        (Type::List(of), Value::Sequence(items)) => {
            let items: Vec<_> =
                items.iter().map(|item| value(item, of, true).unwrap_or_else(|| zero(of))).collect();
            if items.is_empty() && !keep_empty {
                return None;
            }
            Json::Array(items)
        }
        (Type::Map(of), Value::Mapping(map)) => {
            let entry = |entry: &crate::yaml::Entry<'_>| {
                (entry.key.to_string(), value(&entry.value, of, true).unwrap_or_else(|| zero(of)))
            };
            let map: Map<_, _> = map.iter().map(entry).collect();
            if map.is_empty() && !keep_empty {
                return None;
            }
            Json::Object(map)
        }
        (
            Type::Struct(of) | Type::StructOrBool(of) | Type::StructOrList(of) | Type::StructOrTexts(of),
            Value::Mapping(_),
        ) => fields(node, of),
        (Type::StructOrList(of), Value::Sequence(items)) => {
            items.iter().map(|item| fields(item, of)).collect::<Vec<_>>().into()
        }
        (Type::Text, Value::String(text)) if text.is_empty() && !keep_empty => return None,
        (Type::Text, _) => node.to_text().map_or_else(|| node.to_json(), |text| Json::from(text.as_ref())),
        (Type::Bool, Value::Bool(false)) if !keep_empty => return None,
        (Type::Int32, Value::Int(0)) if !keep_empty => return None,
        _ => node.to_json(),
    };
    Some(json)
}

fn zero(of: &Type) -> Json {
    match of {
        Type::Text => Json::from(""),
        Type::Bool => Json::from(false),
        Type::Struct(_) => Json::Object(Map::new()),
        _ => Json::Null,
    }
}

fn fields(node: &Node<'_>, of: &'static Struct) -> Json {
    let mut map = Map::new();
    for field in of.fields {
        let keep_empty = ALWAYS.contains(&field.name) || POINTERS.contains(&field.name);
        let found = node.get(field.name).and_then(|found| value(found, &field.of, keep_empty));
        match found {
            Some(found) => drop(map.insert(field.name.to_owned(), found)),
            None if ALWAYS.contains(&field.name) => {
                drop(map.insert(field.name.to_owned(), Json::from(false)))
            }
            // A list without a mark to leave it out.
            None if field.name == "versions" => drop(map.insert(field.name.to_owned(), Json::Null)),
            None => {}
        }
    }
    Json::Object(map)
}

/// Fields of pods and Deployments that Go has pointers for, or always writes: their zero values count.
const POD_KEPT: &[&str] = &[
    "activeDeadlineSeconds",
    "allowPrivilegeEscalation",
    "automountServiceAccountToken",
    "containerPort",
    "defaultMode",
    "enableServiceLinks",
    "expirationSeconds",
    "fsGroup",
    "hostProcess",
    "hostUsers",
    "maxSkew",
    "maxSurge",
    "maxUnavailable",
    "minDomains",
    "mode",
    "optional",
    "port",
    "priority",
    "privileged",
    "progressDeadlineSeconds",
    "readOnlyRootFilesystem",
    "replicas",
    "revisionHistoryLimit",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "storageClassName",
    "runtimeClassName",
    "targetPort",
    "terminationGracePeriodSeconds",
    "tolerationSeconds",
    "weight",
];
/// Maps whose values are the user's own.
const POD_MAPS: &[&str] = &["labels", "annotations", "matchLabels", "nodeSelector"];

/// The spec of a Deployment, or a part of it, as Go writes it: what is null, empty or nought without meaning is gone.
pub(super) fn pod(json: Json) -> Json {
    within(json, "").unwrap_or_default()
}

fn within(json: Json, key: &str) -> Option<Json> {
    match json {
        Json::Null => None,
        Json::Object(map) if POD_MAPS.contains(&key) => {
            Some(Json::Object(map)).filter(|map| map != &Json::Object(Map::new()))
        }
        Json::Object(map) if matches!(key, "limits" | "requests") => {
            let quantity = |(name, value): (String, Json)| {
                let text = value.as_str().map(str::to_owned);
                (name, text.and_then(|text| canonical(&text)).map_or(value, Json::from))
            };
            Some(map.into_iter().map(quantity).collect::<Map<_, _>>().into())
        }
        Json::Object(map) => {
            let mut kept = Map::new();
            let is_field_of_resource = map.contains_key("resource") && key == "resourceFieldRef";
            for (name, value) in map {
                if let Some(value) = within(value, &name) {
                    kept.insert(name, value);
                }
            }
            if is_field_of_resource && !kept.contains_key("divisor") {
                kept.insert("divisor".to_owned(), Json::from("0"));
            }
            Some(Json::Object(kept))
        }
        Json::Array(items) if items.is_empty() => None,
        // A text in a list counts, also an empty one.
        Json::Array(items) => Some(
            items
                .into_iter()
                .map(|item| match item {
                    Json::Object(_) | Json::Array(_) => within(item, "").unwrap_or_default(),
                    other => other,
                })
                .collect(),
        ),
        Json::String(text) if matches!(key, "sizeLimit" | "divisor") => {
            Some(Json::from(canonical(&text).unwrap_or(text)))
        }
        Json::String(text) if text.is_empty() && !matches!(key, "storageClassName" | "runtimeClassName") => {
            None
        }
        Json::Bool(false) if !POD_KEPT.contains(&key) => None,
        Json::Number(number) if number.as_i64() == Some(0) && !POD_KEPT.contains(&key) => None,
        other => Some(other),
    }
}
