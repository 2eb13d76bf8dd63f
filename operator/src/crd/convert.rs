//! Conversion between the versions of the API, without loss: what the other version has no word for travels in an
//! annotation.
//!
//! Objects are taken as the JSON that they are, not as types, so that fields this program does not know survive.

use serde_json::{Map, Value};

/// On an object in v1alpha1: the fields of v1 that it has no words for, as JSON.
pub const V1_SPEC: &str = "cache.example.com/v1-spec";
/// On an object in v1: the fields of v1alpha1 that it has no words for, as JSON.
pub const V1ALPHA1_SPEC: &str = "cache.example.com/v1alpha1-spec";

const GROUP: &str = "cache.example.com";

/// Why an object cannot be converted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConvertError {
    /// Not a RedisCluster of a version that is served.
    #[error("cannot convert `{from}` to `{to}`: expected cache.example.com/v1 or cache.example.com/v1alpha1")]
    Version {
        /// What it is.
        from: String,
        /// What it should be.
        to: String,
    },
    /// `spec` is not an object.
    #[error("spec must be an object")]
    Spec,
    /// An annotation that we wrote was changed.
    #[error("annotation `{0}` is not a JSON object: remove or restore it")]
    Annotation(&'static str),
}

/// Converts an object to the version `to`, such as `cache.example.com/v1`.
///
/// # Errors
/// When it is not a RedisCluster, or an annotation that holds the rest of it was damaged.
pub fn convert(mut object: Value, to: &str) -> Result<Value, ConvertError> {
    let from = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    if from == to {
        return Ok(object);
    }
    let (v1, v1alpha1) = (format!("{GROUP}/v1"), format!("{GROUP}/v1alpha1"));
    let spec = match object.get_mut("spec").map(Value::take) {
        Some(Value::Object(spec)) => spec,
        None => Map::new(),
        Some(_) => return Err(ConvertError::Spec),
    };
    let spec = if from == v1alpha1 && to == v1 {
        let rest = take(&mut object, V1_SPEC)?;
        let (spec, rest) = to_v1(spec, rest);
        put(&mut object, V1ALPHA1_SPEC, rest);
        spec
    } else if from == v1 && to == v1alpha1 {
        let rest = take(&mut object, V1ALPHA1_SPEC)?;
        let (spec, rest) = to_v1alpha1(spec, rest);
        put(&mut object, V1_SPEC, rest);
        spec
    } else {
        return Err(ConvertError::Version { from, to: to.into() });
    };
    object["spec"] = Value::Object(spec);
    object["apiVersion"] = to.into();
    Ok(object)
}

/// What both have in common counts as the object says it; the rest comes from the annotation.
fn to_v1(
    mut old: Map<String, Value>,
    mut spec: Map<String, Value>,
) -> (Map<String, Value>, Map<String, Value>) {
    for key in ["size", "image"] {
        if let Some(value) = old.remove(key) {
            spec.insert(key.into(), value);
        }
    }
    // What is no text, or has no place there, stays with the rest.
    let place = spec.get("config").is_none_or(Value::is_object);
    if place
        && old.get("maxMemory").is_some_and(Value::is_string)
        && let Some(memory) = old.remove("maxMemory")
        && let Value::Object(config) = spec.entry("config").or_insert_with(|| Value::Object(Map::new()))
    {
        config.insert("maxmemory".into(), memory);
    }
    (spec, old)
}

fn to_v1alpha1(
    mut spec: Map<String, Value>,
    mut old: Map<String, Value>,
) -> (Map<String, Value>, Map<String, Value>) {
    for key in ["size", "image"] {
        if let Some(value) = spec.remove(key) {
            old.insert(key.into(), value);
        }
    }
    if let Some(Value::Object(config)) = spec.get_mut("config")
        && config.get("maxmemory").is_some_and(Value::is_string)
        && let Some(memory) = config.remove("maxmemory")
    {
        old.insert("maxMemory".into(), memory);
        // It comes back with what was the only thing in it.
        if config.is_empty() {
            spec.remove("config");
        }
    }
    (old, spec)
}

/// Takes the rest out of an annotation.
fn take(object: &mut Value, annotation: &'static str) -> Result<Map<String, Value>, ConvertError> {
    let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") else {
        return Ok(Map::new());
    };
    let Some(text) = annotations.remove(annotation) else { return Ok(Map::new()) };
    if annotations.is_empty()
        && let Some(Value::Object(metadata)) = object.get_mut("metadata")
    {
        metadata.remove("annotations");
    }
    match text.as_str().map(serde_json::from_str) {
        Some(Ok(Value::Object(rest))) => Ok(rest),
        _ => Err(ConvertError::Annotation(annotation)),
    }
}

/// Puts the rest into an annotation, when there is any.
fn put(object: &mut Value, annotation: &'static str, rest: Map<String, Value>) {
    if rest.is_empty() {
        return;
    }
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = Value::Object(Map::new());
    }
    object["metadata"]["annotations"][annotation] = Value::Object(rest).to_string().into();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const V1: &str = "cache.example.com/v1";
    const V1ALPHA1: &str = "cache.example.com/v1alpha1";

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn spec() -> impl Strategy<Value = Value> {
        let names = "size|image|config|maxMemory|maxmemory|description|storage|[a-z]{1,8}";
        let config = prop::collection::btree_map("maxmemory|[a-z]{1,5}", "[a-z0-9]{0,5}", 0..3)
            .prop_map(|map| json!(map));
        (prop::collection::btree_map(names, json(), 0..7), prop::option::of(config)).prop_map(
            |(map, config)| {
                let mut spec: Map<String, Value> = map.into_iter().collect();
                if let Some(config) = config {
                    spec.insert("config".into(), config);
                }
                Value::Object(spec)
            },
        )
    }

    fn object(version: &str, spec: Value, status: Value, annotated: bool) -> Value {
        let mut object = json!({
            "apiVersion": version, "kind": "RedisCluster", "spec": spec, "status": status,
            "metadata": { "name": "example", "uid": "1", "finalizers": ["x"] },
        });
        if annotated {
            object["metadata"]["annotations"] = json!({"team": "cache"});
        }
        object
    }

    proptest! {
        /// There and back again is the same object, from either version, whatever is in it.
        #[test]
        fn nothing_is_lost(spec in spec(), status in json(), annotated in any::<bool>()) {
            for (from, to) in [(V1, V1ALPHA1), (V1ALPHA1, V1)] {
                let object = object(from, spec.clone(), status.clone(), annotated);
                let there = convert(object.clone(), to).unwrap();
                // Kubernetes lets a conversion change nothing of the metadata but labels and annotations.
                let mut metadata = there["metadata"].clone();
                metadata["annotations"] = object["metadata"]["annotations"].clone();
                let mut before = object["metadata"].clone();
                before["annotations"] = object["metadata"]["annotations"].clone();
                prop_assert_eq!(metadata, before);
                prop_assert_eq!(&there["status"], &object["status"]);
                prop_assert_eq!(convert(there, from).unwrap(), object);
            }
        }
    }

    #[test]
    fn a_v1alpha1_object_with_a_field_that_v1_lacks() {
        let old = object(
            V1ALPHA1,
            json!({"size": 3, "maxMemory": "64mb", "description": "sessions"}),
            json!({}),
            false,
        );
        let new = convert(old, V1).unwrap();
        assert_eq!(new["spec"], json!({"size": 3, "config": {"maxmemory": "64mb"}}));
        assert_eq!(new["metadata"]["annotations"], json!({V1ALPHA1_SPEC: r#"{"description":"sessions"}"#}));
    }

    #[test]
    fn an_old_client_changes_the_size_of_a_new_object() {
        let new = object(V1, json!({"size": 6, "replicasPerShard": 1}), json!({}), false);
        let mut old = convert(new, V1ALPHA1).unwrap();
        old["spec"]["size"] = 8.into();
        assert_eq!(convert(old, V1).unwrap()["spec"], json!({"size": 8, "replicasPerShard": 1}));
    }

    #[test]
    fn what_cannot_be_converted() {
        let damaged =
            json!({"apiVersion": V1ALPHA1, "spec": {}, "metadata": {"annotations": {V1_SPEC: "[]"}}});
        assert_eq!(convert(damaged, V1), Err(ConvertError::Annotation(V1_SPEC)));
        let other = json!({"apiVersion": "apps/v1", "spec": {}});
        assert!(matches!(convert(other, V1), Err(ConvertError::Version { .. })));
        assert_eq!(convert(json!({"apiVersion": V1ALPHA1, "spec": 3}), V1), Err(ConvertError::Spec));
    }
}
