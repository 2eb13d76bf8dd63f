//! What clusters fill in where an object says nothing (apiextensions-apiserver `pkg/apiserver/schema/defaulting`).

use serde_json::Value as Json;

use super::{Additional, Schema};
use crate::yaml::{Node, Value};

/// An object with the defaults of a schema. Where null is not allowed, it is replaced by the default, or dropped if there is none.
///
/// ```
/// use olmkit_bundle::{schema::{Schema, defaults::defaulted}, yaml::first_document};
/// let schema = first_document("{properties: {size: {default: {cups: 2}, properties: {pots: {default: 1}}}}}").unwrap();
/// let value = first_document("{}").unwrap();
/// let whole = defaulted(&value.root, Schema(&schema.root));
/// assert_eq!(whole, serde_json::json!({"size": {"cups": 2, "pots": 1}}));
/// ```
pub fn defaulted(value: &Node<'_>, schema: Schema<'_, '_>) -> Json {
    match &value.value {
        Value::Mapping(map) => {
            let mut whole = serde_json::Map::new();
            for entry in map {
                let of = match (schema.property(&entry.key), schema.additional()) {
                    (Some(of), _) | (None, Additional::Schema(of)) => Some(of),
                    _ => None,
                };
                let below = match of {
                    Some(of) if entry.value.is_null() && !of.flag("nullable") => {
                        let Some(default) = of.get("default") else { continue };
                        defaulted(default, of)
                    }
                    Some(of) => defaulted(&entry.value, of),
                    None => entry.value.to_json(),
                };
                whole.insert(entry.key.to_string(), below);
            }
            for (entry, of) in schema.properties() {
                if map.get(&entry.key).is_none()
                    && let Some(default) = of.get("default")
                {
                    whole.insert(entry.key.to_string(), defaulted(default, of));
                }
            }
            Json::Object(whole)
        }
        Value::Sequence(items) => match schema.items() {
            Some(of) => items.iter().map(|item| defaulted(item, of)).collect(),
            None => value.to_json(),
        },
        _ => value.to_json(),
    }
}
