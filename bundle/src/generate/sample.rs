//! Examples of custom resources, held against the schema of their CRD.
//!
//! What the API server would refuse is reported, and fields that it would drop; not what only CEL rules or patterns say.

use super::codes;
use crate::finding::{Finding, Findings};
use crate::parse::Object;
use crate::suggest::did_you_mean;
use crate::yaml::{Node, Value, steps};

/// More findings than this about one example are one fault repeated.
const MOST: usize = 20;
/// Deeper than this nothing is checked; Kubernetes' own objects are far less deep.
const DEPTH: usize = 64;

/// Reports where an example does not fit the schema.
pub(super) fn check(sample: &Object<'_, '_>, schema: &Node<'_>, findings: &mut Findings) {
    let mut check = Check { sample, found: Vec::new() };
    check.properties(sample.root, schema, "", 0, true);
    findings.extend(check.found);
}

struct Check<'c, 'm> {
    sample: &'c Object<'m, 'm>,
    found: Vec<Finding>,
}

impl Check<'_, '_> {
    fn fail(&mut self, node: &Node<'_>, message: String, help: Option<String>) {
        if self.found.len() < MOST {
            let finding = Finding::new(&codes::SAMPLE_INVALID, message);
            let finding = finding.at(self.sample.place_at(node.span)).subject(self.sample.subject());
            self.found.push(Finding { help, ..finding });
        }
    }

    fn value(&mut self, value: &Node<'_>, schema: &Node<'_>, at: &str, depth: usize) {
        let flag = |key: &str| schema.get(key).and_then(Node::as_bool) == Some(true);
        // The API server drops nulls before it validates, unless they are allowed.
        if value.is_null() || depth > DEPTH {
            return;
        }
        let int_or_string = flag("x-kubernetes-int-or-string");
        let expected = schema.get("type").and_then(Node::as_str).unwrap_or("");
        let fits = match (&value.value, expected) {
            (Value::Int(_) | Value::UInt(_) | Value::String(_), _) if int_or_string => true,
            (_, "") => true,
            (Value::Bool(_), "boolean") | (Value::String(_), "string") => true,
            (Value::Int(_) | Value::UInt(_), "integer" | "number") | (Value::Float(_), "number") => true,
            (Value::Float(number), "integer") => number.fract() == 0.0,
            (Value::Sequence(_), "array") | (Value::Mapping(_), "object") => true,
            _ => false,
        };
        if !fits {
            let article = if matches!(expected, "integer" | "array" | "object") { "an" } else { "a" };
            self.fail(value, format!("`{at}`: expected {article} {expected}, found {}", value.value), None);
            return;
        }
        self.limits(value, schema, at);
        match &value.value {
            Value::Mapping(_) => self.properties(value, schema, at, depth, false),
            Value::Sequence(items) => {
                if let Some(schema) = schema.get("items") {
                    for (index, item) in items.iter().enumerate() {
                        self.value(item, schema, &format!("{at}[{index}]"), depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn properties(&mut self, value: &Node<'_>, schema: &Node<'_>, at: &str, depth: usize, root: bool) {
        let Some(map) = value.as_mapping() else { return };
        let properties = schema.get("properties").and_then(Node::as_mapping);
        let additional = schema.get("additionalProperties");
        let flag = |key: &str| schema.get(key).and_then(Node::as_bool) == Some(true);
        let embedded = flag("x-kubernetes-embedded-resource");
        for entry in map {
            let known =
                (root || embedded) && matches!(entry.key.as_ref(), "apiVersion" | "kind" | "metadata");
            let path = if at.is_empty() { entry.key.to_string() } else { format!("{at}.{}", entry.key) };
            match properties.and_then(|properties| properties.get(&entry.key)) {
                _ if known => {}
                Some(schema) => self.value(&entry.value, schema, &path, depth + 1),
                None => match additional {
                    Some(schema) if schema.as_mapping().is_some() => {
                        self.value(&entry.value, schema, &path, depth + 1)
                    }
                    Some(_) => {}
                    None if flag("x-kubernetes-preserve-unknown-fields") || properties.is_none() => {}
                    None => {
                        let names = properties.into_iter().flatten().map(|entry| entry.key.as_ref());
                        let help = did_you_mean(&entry.key, names);
                        let message = format!("the CRD's schema has no `{path}`: it would be dropped");
                        self.fail(&entry.value, message, help);
                    }
                },
            }
        }
        let defaults = |key: &str| schema.at(steps!("properties", key, "default")).is_some();
        for required in schema.get("required").and_then(Node::as_sequence).unwrap_or(&[]) {
            let Some(key) = required.as_str() else { continue };
            if map.get(key).is_none_or(Node::is_null) && !defaults(key) {
                let path = if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
                self.fail(value, format!("`{path}` is missing, which the CRD's schema requires"), None);
            }
        }
    }

    fn limits(&mut self, value: &Node<'_>, schema: &Node<'_>, at: &str) {
        let limit = |key: &str| schema.get(key).and_then(as_f64);
        let length = match &value.value {
            Value::String(text) => Some((text.chars().count(), "minLength", "maxLength", "characters")),
            Value::Sequence(items) => Some((items.len(), "minItems", "maxItems", "items")),
            Value::Mapping(map) => Some((map.len(), "minProperties", "maxProperties", "keys")),
            _ => None,
        };
        if let Some((length, least, most, what)) = length {
            if limit(least).is_some_and(|least| (length as f64) < least) {
                self.fail(
                    value,
                    format!("`{at}` has {length} {what}, fewer than the CRD's schema allows"),
                    None,
                );
            }
            if limit(most).is_some_and(|most| length as f64 > most) {
                self.fail(
                    value,
                    format!("`{at}` has {length} {what}, more than the CRD's schema allows"),
                    None,
                );
            }
        }
        if let Some(number) = as_f64(value) {
            let strict = |key: &str| schema.get(key).and_then(Node::as_bool) == Some(true);
            let low = |least: f64| number < least || (number == least && strict("exclusiveMinimum"));
            let high = |most: f64| number > most || (number == most && strict("exclusiveMaximum"));
            if let Some(least) = limit("minimum").filter(|least| low(*least)) {
                self.fail(
                    value,
                    format!("`{at}` is {number}, and the CRD's schema wants {least} or more"),
                    None,
                );
            }
            if let Some(most) = limit("maximum").filter(|most| high(*most)) {
                self.fail(
                    value,
                    format!("`{at}` is {number}, and the CRD's schema wants {most} or less"),
                    None,
                );
            }
        }
        if let Some(values) = schema.get("enum").and_then(Node::as_sequence)
            && !values.iter().any(|allowed| allowed.to_json() == value.to_json())
        {
            let words: Vec<_> = values.iter().filter_map(Node::to_text).collect();
            let help = format!("one of `{}`", words.join("`, `"));
            let found = value.to_text().unwrap_or_default().into_owned();
            self.fail(
                value,
                format!("`{at}` is `{found}`, which the CRD's schema does not allow"),
                Some(help),
            );
        }
    }
}

fn as_f64(node: &Node<'_>) -> Option<f64> {
    match node.value {
        Value::Int(number) => Some(number as f64),
        Value::UInt(number) => Some(number as f64),
        Value::Float(number) => Some(number),
        _ => None,
    }
}
