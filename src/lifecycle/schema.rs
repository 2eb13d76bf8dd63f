//! Live custom resources against the schema of another version of their CRD: would the API server take them?
//!
//! They are judged as the examples of a bundle are (`olmkit_bundle::schema::value`). Two things are not evaluated and are named
//! instead: rules in CEL, and patterns in a dialect that cannot be read here.

use olmkit_bundle::schema::Schema;
use olmkit_bundle::schema::structural::Problem;
use olmkit_bundle::schema::value::check;
use olmkit_bundle::yaml::Node;
use serde_json::Value;

/// What is wrong with an object, and what could not be found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Each fault with its path: `spec.size: 50 is greater than 9`.
    pub faults: Vec<String>,
    /// What was not evaluated, with its path.
    pub unknown: Vec<String>,
    /// Fields that the API server drops, with the path of what has them.
    pub dropped: Vec<String>,
}

/// The faults that are told at most.
const MAX_FAULTS: usize = 20;

/// Judges an object by a schema.
///
/// ```
/// use olmkit::lifecycle::schema::judge;
/// use serde_json::json;
/// let schema = json!({"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}}});
/// let object = json!({"apiVersion": "example.com/v1", "kind": "Demo", "size": 50});
/// assert_eq!(judge(&schema, &object).faults, ["size: 50 is greater than 9"]);
/// ```
pub fn judge(schema: &Value, object: &Value) -> Judgement {
    let found = check(&Node::from(object), Schema(&Node::from(schema)), true);
    let line = |problem: &Problem| {
        let path = if problem.path.is_empty() { "the object" } else { &problem.path };
        format!("{path}: {}", problem.message)
    };
    Judgement {
        faults: found.problems.iter().take(MAX_FAULTS).map(line).collect(),
        unknown: found.unchecked.iter().map(line).collect(),
        dropped: found.unknown.iter().take(MAX_FAULTS).map(|(problem, _)| line(problem)).collect(),
    }
}

/// Drops the fields that a schema does not have, as an API server does when it stores an object and when it reads it (apiextensions-apiserver
/// `pkg/apiserver/schema/pruning`). A whole resource keeps `apiVersion`, `kind` and `metadata`.
///
/// ```
/// use olmkit::lifecycle::schema::prune;
/// use serde_json::json;
/// let schema = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
/// let mut object = json!({"kind": "Demo", "size": 3, "color": "red"});
/// prune(&schema, &mut object, true);
/// assert_eq!(object, json!({"kind": "Demo", "size": 3}));
/// ```
pub fn prune(schema: &Value, value: &mut Value, is_resource: bool) {
    match value {
        Value::Array(items) => {
            let Some(of) = schema.get("items") else { return };
            items.iter_mut().for_each(|item| prune(of, item, false));
        }
        Value::Object(fields) => {
            let keeps = schema["x-kubernetes-preserve-unknown-fields"] == true;
            let additional = &schema["additionalProperties"];
            fields.retain(|name, value| {
                if is_resource && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                    return true;
                }
                let property = schema["properties"].get(name);
                let Some(of) = property.or(Some(additional).filter(|one| one.is_object())) else {
                    return keeps || *additional == true;
                };
                prune(of, value, of["x-kubernetes-embedded-resource"] == true);
                true
            });
        }
        _ => {}
    }
}

/// A version at which objects of a CRD are stored, and which another form of the CRD does not have.
pub fn lost_version<'c>(live: &'c Value, other: &Value) -> Option<&'c str> {
    let stored = live.pointer("/status/storedVersions").and_then(Value::as_array);
    let mut stored = stored.into_iter().flatten().filter_map(Value::as_str);
    stored.find(|stored| versions(other).all(|version| version["name"] != **stored))
}

/// The schema of a CRD's version, where that version is served.
pub fn schema_of<'c>(crd: &'c Value, version: &str) -> Option<&'c Value> {
    let mut served = versions(crd).filter(|found| found["served"] == true);
    served.find(|found| found["name"] == version)?.pointer("/schema/openAPIV3Schema")
}

/// The versions of a CRD.
pub fn versions(crd: &Value) -> impl Iterator<Item = &Value> {
    crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Judges an object that has a kind, as every custom resource has.
    fn judged(schema: &Value, mut object: Value) -> Judgement {
        if let Some(object) = object.as_object_mut() {
            object.insert("apiVersion".into(), "example.com/v1".into());
            object.insert("kind".into(), "Demo".into());
        }
        judge(schema, &object)
    }

    #[track_caller]
    fn check(schema: Value, object: Value, expected: &[&str]) {
        assert_eq!(judged(&schema, object).faults, expected);
    }

    #[test]
    fn fields_by_path() {
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object", "required": ["size", "mode"],
            "properties": {
                "size": {"type": "integer"}, "mode": {"type": "string", "default": "x"},
                "hosts": {"type": "array", "maxItems": 2, "items": {"type": "string", "minLength": 1}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }}});
        let object = json!({
            "metadata": 4,
            "spec": {"hosts": ["", "b", "c"], "labels": {"a": 1}, "unknown": {}},
        });
        check(
            schema,
            object,
            &[
                "spec.hosts: there are 3 items, expected 2 at most",
                "spec.hosts[0]: there are 0 characters, expected 1 or more",
                "spec.labels.a: expected a string, found a number",
                "spec: `size` is required",
            ],
        );
    }

    #[test]
    fn a_format_is_judged_as_clusters_do() {
        let schema =
            json!({"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}});
        check(schema.clone(), json!({"at": "2024-02-29T12:00:00Z"}), &[]);
        check(
            schema,
            json!({"at": "yesterday"}),
            &["at: `yesterday` is not a date and time such as `2006-01-02T15:04:05Z`"],
        );
    }

    #[test]
    fn three_tenths_are_a_multiple_of_one_tenth() {
        check(json!({"type": "number", "multipleOf": 0.1}), json!(0.3), &[]);
    }

    #[test]
    fn what_is_not_evaluated_is_named() {
        let schema = json!({"type": "object", "properties": {"a": {
            "type": "string", "pattern": "(?=x)", "x-kubernetes-validations": [{"rule": "true"}],
        }}});
        assert_eq!(judged(&schema, json!({"a": "x"})).unknown, ["a: rules in CEL", "a: the pattern `(?=x)`"]);
    }

    #[test]
    fn text_that_only_json_can_hold_is_read() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}}});
        for text in ["\u{7f}", "\u{0}", "\u{2028}", "\u{feff}", "☃", "\u{10ffff}", "\"", "\t"] {
            assert_eq!(judged(&schema, json!({"a": text})), Judgement::default(), "{text:?}");
        }
    }
}
