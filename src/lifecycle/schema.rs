//! Live custom resources against the schema of another version of their CRD: would the API server take them?
//!
//! Structural schemas as Kubernetes reads them. Two things are not evaluated and are named instead: rules in CEL, and patterns
//! in a dialect that Rust's regular expressions do not have.

use regex::Regex;
use serde_json::Value;

/// What is wrong with an object, and what could not be found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Each fault with its path: `spec.size: 50 is more than 9`.
    pub faults: Vec<String>,
    /// What was not evaluated, with its path.
    pub unknown: Vec<String>,
}

/// The faults after which nobody reads on.
const MAX_FAULTS: usize = 20;
/// How deep objects are looked into.
const MAX_DEPTH: usize = 64;

/// Judges an object by a schema.
///
/// ```
/// use olmkit::lifecycle::schema::judge;
/// use serde_json::json;
/// let schema = json!({"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}}});
/// assert_eq!(judge(&schema, &json!({"size": 50})).faults, ["size: 50 is more than 9"]);
/// ```
pub fn judge(schema: &Value, object: &Value) -> Judgement {
    let mut judgement = Judgement::default();
    judgement.visit(schema, object, "", 0);
    judgement.faults.truncate(MAX_FAULTS);
    judgement
}

impl Judgement {
    fn fault(&mut self, path: &str, what: impl std::fmt::Display) {
        let path = if path.is_empty() { "the object" } else { path };
        self.faults.push(format!("{path}: {what}"));
    }

    fn visit(&mut self, schema: &Value, value: &Value, path: &str, depth: usize) {
        if depth > MAX_DEPTH || self.faults.len() > MAX_FAULTS {
            return;
        }
        if value.is_null() && schema["nullable"] == true {
            return;
        }
        if !self.has_type(schema, value, path) {
            return;
        }
        if schema.get("x-kubernetes-validations").is_some() {
            self.unknown.push(format!("{path}: rules in CEL"));
        }
        if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
            let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
            self.fault(path, format_args!("{value} is none of {}", allowed.join(", ")));
        }
        match value {
            Value::Number(_) => self.number(schema, value, path),
            Value::String(text) => self.text(schema, text, path),
            Value::Array(items) => self.array(schema, items, path, depth),
            Value::Object(fields) => self.object(schema, fields, path, depth),
            _ => {}
        }
        self.combined(schema, value, path, depth);
    }

    fn has_type(&mut self, schema: &Value, value: &Value, path: &str) -> bool {
        if schema["x-kubernetes-int-or-string"] == true {
            let fits = value.is_i64() || value.is_u64() || value.is_string();
            if !fits {
                self.fault(path, "is neither an integer nor a string");
            }
            return fits;
        }
        let Some(wanted) = schema["type"].as_str() else { return true };
        let fits = match wanted {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            "number" => value.is_number(),
            _ => true,
        };
        if !fits {
            self.fault(path, format_args!("{value} is not of the type {wanted}"));
        }
        fits
    }

    fn number(&mut self, schema: &Value, value: &Value, path: &str) {
        let Some(number) = value.as_f64() else { return };
        if let Some(least) = schema["minimum"].as_f64() {
            let exclusive = schema["exclusiveMinimum"] == true;
            if number < least || exclusive && number == least {
                self.fault(path, format_args!("{value} is less than {}", schema["minimum"]));
            }
        }
        if let Some(most) = schema["maximum"].as_f64() {
            let exclusive = schema["exclusiveMaximum"] == true;
            if number > most || exclusive && number == most {
                self.fault(path, format_args!("{value} is more than {}", schema["maximum"]));
            }
        }
        if let Some(step) = schema["multipleOf"].as_f64().filter(|step| *step > 0.0)
            && (number / step).fract() != 0.0
        {
            self.fault(path, format_args!("{value} is not a multiple of {}", schema["multipleOf"]));
        }
    }

    fn text(&mut self, schema: &Value, text: &str, path: &str) {
        let length = text.chars().count() as u64;
        if schema["minLength"].as_u64().is_some_and(|least| length < least) {
            self.fault(path, format_args!("is shorter than {}", schema["minLength"]));
        }
        if schema["maxLength"].as_u64().is_some_and(|most| length > most) {
            self.fault(path, format_args!("is longer than {}", schema["maxLength"]));
        }
        if let Some(pattern) = schema["pattern"].as_str() {
            match Regex::new(pattern) {
                Ok(regex) if regex.is_match(text) => {}
                Ok(_) => self.fault(path, format_args!("{text:?} does not match `{pattern}`")),
                Err(_) => self.unknown.push(format!("{path}: the pattern `{pattern}`")),
            }
        }
    }

    fn array(&mut self, schema: &Value, items: &[Value], path: &str, depth: usize) {
        let count = items.len() as u64;
        if schema["minItems"].as_u64().is_some_and(|least| count < least) {
            self.fault(path, format_args!("has fewer than {} items", schema["minItems"]));
        }
        if schema["maxItems"].as_u64().is_some_and(|most| count > most) {
            self.fault(path, format_args!("has more than {} items", schema["maxItems"]));
        }
        if schema["items"].is_object() {
            for (at, item) in items.iter().enumerate() {
                self.visit(&schema["items"], item, &format!("{path}[{at}]"), depth + 1);
            }
        }
    }

    /// Fields that a schema does not name are dropped by the server, not refused.
    fn object(&mut self, schema: &Value, fields: &serde_json::Map<String, Value>, path: &str, depth: usize) {
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            // What has a default is filled in before it is looked for.
            let default = schema["properties"][name].get("default");
            if !fields.contains_key(name) && default.is_none() {
                self.fault(&below(name), "is required");
            }
        }
        let count = fields.len() as u64;
        if schema["minProperties"].as_u64().is_some_and(|least| count < least) {
            self.fault(path, format_args!("has fewer than {} fields", schema["minProperties"]));
        }
        if schema["maxProperties"].as_u64().is_some_and(|most| count > most) {
            self.fault(path, format_args!("has more than {} fields", schema["maxProperties"]));
        }
        for (name, value) in fields {
            // The server knows these itself.
            if path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                continue;
            }
            if let Some(own) = schema["properties"].get(name) {
                self.visit(own, value, &below(name), depth + 1);
            } else if schema["additionalProperties"].is_object() {
                self.visit(&schema["additionalProperties"], value, &below(name), depth + 1);
            }
        }
    }

    fn combined(&mut self, schema: &Value, value: &Value, path: &str, depth: usize) {
        let fits = |schema: &Value| {
            let mut one = Self::default();
            one.visit(schema, value, path, depth + 1);
            one.faults.is_empty()
        };
        let list = |keyword: &str| schema[keyword].as_array().cloned().unwrap_or_default();
        for part in list("allOf") {
            self.visit(&part, value, path, depth + 1);
        }
        let any = list("anyOf");
        if !any.is_empty() && !any.iter().any(fits) {
            self.fault(path, "fits none of `anyOf`");
        }
        let one = list("oneOf");
        if !one.is_empty() && one.iter().filter(|part| fits(part)).count() != 1 {
            self.fault(path, "does not fit exactly one of `oneOf`");
        }
        if schema["not"].is_object() && fits(&schema["not"]) {
            self.fault(path, "fits what it must not");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Value, object: Value, expected: &[&str]) {
        assert_eq!(judge(&schema, &object).faults, expected);
    }

    #[test]
    fn types_bounds_and_words() {
        check(json!({"type": "string"}), json!(7), &["the object: 7 is not of the type string"]);
        check(json!({"type": "integer"}), json!(3.0), &[]);
        check(json!({"x-kubernetes-int-or-string": true}), json!("5%"), &[]);
        check(json!({"maximum": 9, "exclusiveMaximum": true}), json!(9), &["the object: 9 is more than 9"]);
        check(json!({"enum": ["a", "b"]}), json!("c"), &["the object: \"c\" is none of \"a\", \"b\""]);
        check(json!({"pattern": "^a+$"}), json!("aab"), &["the object: \"aab\" does not match `^a+$`"]);
        check(json!({"type": "string", "nullable": true}), json!(null), &[]);
        check(
            json!({"oneOf": [{"minimum": 1}, {"maximum": 5}]}),
            json!(3),
            &["the object: does not fit exactly one of `oneOf`"],
        );
        check(json!({"not": {"enum": [3]}}), json!(3), &["the object: fits what it must not"]);
    }

    #[test]
    fn fields_by_path() {
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object", "required": ["size", "mode"],
            "properties": {
                "size": {"type": "integer"}, "mode": {"default": "x"},
                "hosts": {"type": "array", "maxItems": 2, "items": {"type": "string", "minLength": 1}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }}});
        let object = json!({
            "apiVersion": "v1", "kind": 3, "metadata": 4,
            "spec": {"hosts": ["", "b", "c"], "labels": {"a": 1}, "unknown": {}},
        });
        check(
            schema,
            object,
            &[
                "spec.size: is required",
                "spec.hosts: has more than 2 items",
                "spec.hosts[0]: is shorter than 1",
                "spec.labels.a: 1 is not of the type string",
            ],
        );
    }

    #[test]
    fn what_is_not_evaluated_is_named() {
        let schema =
            json!({"type": "string", "pattern": "(?=x)", "x-kubernetes-validations": [{"rule": "true"}]});
        assert_eq!(judge(&schema, &json!("x")).unknown, [": rules in CEL", ": the pattern `(?=x)`"]);
    }
}
