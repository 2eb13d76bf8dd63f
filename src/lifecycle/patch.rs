//! Merge patches (RFC 7386).

use serde_json::Value;

/// Merges a patch into a document by RFC 7386: null takes a field away, a map is merged, all else replaces.
pub fn merge(document: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *document = patch.clone();
        return;
    };
    if !document.is_object() {
        *document = Value::Object(serde_json::Map::new());
    }
    let Some(fields) = document.as_object_mut() else { return };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

/// The patch that makes one document of another: what [`merge`] needs to get there.
pub fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (from, to) else { return to.clone() };
    let removed = old.keys().filter(|name| !new.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let changed = new.iter().filter(|(name, value)| old.get(*name) != Some(value)).map(|(name, value)| {
        let change = old.get(name).map_or_else(|| value.clone(), |old| difference(old, value));
        (name.clone(), change)
    });
    Value::Object(removed.chain(changed).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merging_follows_the_rfc() {
        let mut document = json!({"a": 1, "b": {"c": [1, 2], "d": 3}, "e": "x"});
        merge(&mut document, &json!({"a": null, "b": {"c": [3], "f": {"g": null, "h": 1}}, "e": {"i": 2}}));
        assert_eq!(document, json!({"b": {"c": [3], "d": 3, "f": {"h": 1}}, "e": {"i": 2}}));
    }

    #[test]
    fn a_difference_leads_from_one_to_the_other() {
        let documents = [
            json!({}),
            json!({"env": [{"name": "A"}], "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}),
            json!({"env": [{"name": "B"}], "resources": {"limits": {"cpu": "1"}}}),
            json!({"env": "text", "nodeSelector": {"a": "b"}}),
        ];
        for from in &documents {
            for to in &documents {
                let mut merged = from.clone();
                merge(&mut merged, &difference(from, to));
                assert_eq!(merged, *to, "from {from}");
            }
        }
        assert_eq!(difference(&documents[1], &documents[1]), json!({}));
    }
}
