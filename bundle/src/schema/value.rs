//! Whether a value is one that a schema allows, as clusters decide it (apiextensions-apiserver
//! `pkg/apiserver/validation`, `pkg/apiserver/schema/pruning`), with the place of everything that is wrong.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::number::{Number, as_float};
use super::structural::Problem;
use super::{Additional, Schema, step_into};
use crate::pattern::Pattern;
use crate::source::Span;
use crate::yaml::{Mapping, Node, Value};

/// What a schema has to say about a value.
#[derive(Debug, Default)]
pub struct Checked {
    /// What the cluster refuses.
    pub problems: Vec<Problem>,
    /// Keys that the cluster drops, with the names that are there.
    pub unknown: Vec<(Problem, Vec<String>)>,
    /// What the cluster decides and this does not: rules in CEL, and patterns that cannot be read.
    pub unchecked: Vec<Problem>,
}

/// Holds a value against a schema. A whole resource has `apiVersion`, `kind` and `metadata` whatever the schema says.
///
/// ```
/// use olmkit_bundle::{schema::{Schema, value::check}, yaml::first_document};
/// let schema = first_document("{type: object, properties: {replicas: {type: integer, minimum: 1}}}").unwrap();
/// let value = first_document("{replicas: 0, replica: 3}").unwrap();
/// let found = check(&value.root, Schema(&schema.root), false);
/// assert_eq!(found.problems[0].message, "0 is less than 1");
/// assert_eq!(found.unknown[0].0.message, "`replica` is not a field of the schema");
/// ```
pub fn check(value: &Node<'_>, schema: Schema<'_, '_>, is_resource: bool) -> Checked {
    let (path, patterns, enums) = (String::new(), HashMap::new(), HashMap::new());
    let mut walk = Walk { found: Checked::default(), path, patterns, enums };
    walk.value(value, schema, is_resource);
    walk.prune(value, schema, is_resource);
    walk.found
}

/// How many patterns are kept compiled: each takes ten kilobytes and more.
const MOST_PATTERNS: usize = 1_000;

struct Walk {
    found: Checked,
    path: String,
    patterns: HashMap<String, Option<Pattern>>,
    /// The values of the lists of `enum` that were met, as JSON, by the place of the list in memory, which the schema keeps.
    enums: HashMap<*const Node<'static>, HashSet<String>>,
}

impl Walk {
    /// Whether an `enum` has the value. Every item of a list may be held against the same thousands of values.
    fn is_allowed(&mut self, value: &Node<'_>, allowed: &[Node<'_>]) -> bool {
        let texts = self.enums.entry(allowed.as_ptr().cast());
        let texts = texts.or_insert_with(|| allowed.iter().map(|one| one.to_json().to_string()).collect());
        texts.contains(&value.to_json().to_string())
    }

    fn value(&mut self, value: &Node<'_>, schema: Schema<'_, '_>, is_resource: bool) {
        if value.is_null() && schema.flag("nullable") {
            return;
        }
        if let Some(expected) = misfit(value, schema) {
            self.report(value.span, format!("expected {expected}, found {}", value.value));
            return;
        }
        if schema.get("x-kubernetes-validations").is_some() {
            self.leave(value.span, crate::cel::run::NOT_RUN.into());
        }
        self.conditions(value, schema);
        match &value.value {
            Value::Sequence(items) => {
                let Some(of) = schema.items() else { return };
                for (index, item) in items.iter().enumerate() {
                    self.below(&format!("[{index}]"), |walk| walk.value(item, of, false));
                }
            }
            Value::Mapping(map) => {
                for name in ["apiVersion", "kind"].into_iter().filter(|_| is_resource) {
                    if map.get(name).and_then(Node::as_str).is_none_or(str::is_empty) {
                        self.report(value.locate(&[]), format!("`{name}` is required"));
                    }
                }
                for entry in map {
                    if is_resource && is_of_every_object(&entry.key) {
                        continue;
                    }
                    let of = match (schema.property(&entry.key), schema.additional()) {
                        (Some(of), _) | (None, Additional::Schema(of)) => of,
                        _ => continue,
                    };
                    // A null that is not allowed is dropped, or gives way to the default.
                    if !entry.value.is_null() || of.flag("nullable") {
                        let embedded = of.flag("x-kubernetes-embedded-resource");
                        self.below(&entry.key, |walk| walk.value(&entry.value, of, embedded));
                    }
                }
                self.required(value, map, schema);
            }
            _ => {}
        }
    }

    fn required(&mut self, value: &Node<'_>, map: &Mapping<'_>, schema: Schema<'_, '_>) {
        for name in schema.list("required").iter().filter_map(Node::as_str) {
            let property = schema.property(name);
            let there = map.get(name).is_some_and(|value| {
                !value.is_null() || property.is_none_or(|property| property.flag("nullable"))
            });
            let has_default = property.is_some_and(|property| property.get("default").is_some());
            if !there && !has_default {
                self.report(value.locate(&[]), format!("`{}` is required", name.replace('`', "'")));
            }
        }
    }

    /// Everything but the type and what is below.
    fn conditions(&mut self, value: &Node<'_>, schema: Schema<'_, '_>) {
        let allowed = schema.list("enum");
        if !allowed.is_empty() && !self.is_allowed(value, allowed) {
            let words: Vec<_> =
                allowed.iter().take(12).map(|word| word.to_json().to_string().replace('`', "'")).collect();
            self.report(value.span, format!("{} is not one of {}", short(value), words.join(", ")));
        }
        match &value.value {
            Value::String(text) => self.text(value.span, text, schema),
            Value::Int(_) | Value::UInt(_) | Value::Float(_) => self.number(value, schema),
            Value::Sequence(items) => {
                self.count(value.span, items.len(), schema, ("minItems", "maxItems"), "items");
            }
            Value::Mapping(map) => {
                self.count(
                    value.locate(&[]),
                    map.len(),
                    schema,
                    ("minProperties", "maxProperties"),
                    "fields",
                );
            }
            _ => {}
        }
        self.logic(value, schema);
    }

    fn logic(&mut self, value: &Node<'_>, schema: Schema<'_, '_>) {
        for part in schema.list("allOf") {
            self.nested(value, Schema(part));
        }
        let holds = |walk: &mut Self, part: Schema<'_, '_>| {
            let before = walk.found.problems.len();
            walk.nested(value, part);
            let holds = walk.found.problems.len() == before;
            walk.found.problems.truncate(before);
            holds
        };
        for (keyword, most, what) in [("anyOf", usize::MAX, "any"), ("oneOf", 1, "exactly one")] {
            let parts = schema.list(keyword);
            let count = parts.iter().filter(|part| holds(self, Schema(part))).count();
            if !parts.is_empty() && !(1..=most).contains(&count) {
                self.report(
                    value.locate(&[]),
                    format!(
                        "the value fits {count} of the {} schemas of `{keyword}`, expected {what}",
                        parts.len()
                    ),
                );
            }
        }
        if let Some(not) = schema.schema("not")
            && holds(self, not)
        {
            self.report(value.locate(&[]), "the value is one that `not` excludes".into());
        }
    }

    /// A part of the logic, in which a missing type says nothing.
    fn nested(&mut self, value: &Node<'_>, schema: Schema<'_, '_>) {
        self.value(value, schema, false);
    }

    fn text(&mut self, span: Span, text: &str, schema: Schema<'_, '_>) {
        self.count(span, text.chars().count(), schema, ("minLength", "maxLength"), "characters");
        if let Some(expected) = super::format::misfit(&schema.text("format"), text) {
            self.report(span, format!("`{}` is not {expected}", excerpt(text)));
        }
        let pattern = schema.text("pattern");
        if pattern.is_empty() {
            return;
        }
        if self.patterns.len() == MOST_PATTERNS && !self.patterns.contains_key(&*pattern) {
            self.patterns.clear();
        }
        let compiled = self.patterns.entry(pattern.clone().into_owned()).or_insert_with(|| {
            // A schema with a wrong pattern is refused as it is.
            Pattern::parse(&pattern).ok()
        });
        let fits = compiled.as_ref().and_then(|compiled| compiled.is_match(text));
        let pattern = pattern.replace('`', "'").replace('\n', " ");
        match fits {
            Some(true) => {}
            Some(false) => self.report(span, format!("`{}` does not match `{pattern}`", excerpt(text))),
            None => self.leave(span, format!("the pattern `{pattern}`")),
        }
    }

    fn number(&mut self, value: &Node<'_>, schema: Schema<'_, '_>) {
        let Some(number) = Number::of(value) else { return };
        let limit = |keyword: &str| schema.get(keyword).and_then(as_float);
        if let Some(least) = limit("minimum") {
            let exclusive = schema.flag("exclusiveMinimum");
            let is_below = match number.compare(least) {
                Ordering::Less => true,
                Ordering::Equal => exclusive,
                Ordering::Greater => false,
            };
            if is_below {
                let how = if exclusive { "not greater than" } else { "less than" };
                self.report(value.span, format!("{number} is {how} {least}"));
            }
        }
        if let Some(most) = limit("maximum") {
            let exclusive = schema.flag("exclusiveMaximum");
            let is_above = match number.compare(most) {
                Ordering::Greater => true,
                Ordering::Equal => exclusive,
                Ordering::Less => false,
            };
            if is_above {
                let how = if exclusive { "not less than" } else { "greater than" };
                self.report(value.span, format!("{number} is {how} {most}"));
            }
        }
        if let Some(step) = limit("multipleOf").filter(|step| !number.is_multiple_of(*step)) {
            self.report(value.span, format!("{number} is not a multiple of {step}"));
        }
    }

    fn count(
        &mut self,
        span: Span,
        count: usize,
        schema: Schema<'_, '_>,
        (least, most): (&str, &str),
        what: &str,
    ) {
        let limit = |keyword: &str| schema.get(keyword).and_then(as_float);
        if let Some(least) = limit(least).filter(|least| (count as f64) < *least) {
            self.report(span, format!("there are {count} {what}, expected {least} or more"));
        }
        if let Some(most) = limit(most).filter(|most| count as f64 > *most) {
            self.report(span, format!("there are {count} {what}, expected {most} at most"));
        }
    }

    /// Finds what the cluster drops.
    fn prune(&mut self, value: &Node<'_>, schema: Schema<'_, '_>, is_resource: bool) {
        match &value.value {
            Value::Sequence(items) => {
                let Some(of) = schema.items() else { return };
                for (index, item) in items.iter().enumerate() {
                    self.below(&format!("[{index}]"), |walk| walk.prune(item, of, false));
                }
            }
            Value::Mapping(map) => {
                let keeps = schema.flag("x-kubernetes-preserve-unknown-fields");
                for entry in map {
                    if is_resource && is_of_every_object(&entry.key) {
                        continue;
                    }
                    match (schema.property(&entry.key), schema.additional()) {
                        (Some(of), _) | (None, Additional::Schema(of)) => {
                            let embedded = of.flag("x-kubernetes-embedded-resource");
                            self.below(&entry.key, |walk| walk.prune(&entry.value, of, embedded));
                        }
                        (None, Additional::Any) => {}
                        (None, Additional::None) if keeps => {}
                        (None, Additional::None) => {
                            let message =
                                format!("`{}` is not a field of the schema", entry.key.replace('`', "'"));
                            let problem = Problem { path: self.path.clone(), message, span: entry.key_span };
                            let names = schema.properties().map(|(entry, _)| entry.key.to_string()).collect();
                            self.found.unknown.push((problem, names));
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn report(&mut self, span: Span, message: String) {
        self.found.problems.push(Problem { path: self.path.clone(), message, span });
    }

    /// Notes what is not decided here.
    fn leave(&mut self, span: Span, message: String) {
        self.found.unchecked.push(Problem { path: self.path.clone(), message, span });
    }

    fn below(&mut self, step: &str, walk: impl FnOnce(&mut Self)) {
        let before = step_into(&mut self.path, step);
        walk(self);
        self.path.truncate(before);
    }
}

fn is_of_every_object(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}

/// What the schema wants instead of a value of this kind, if it does.
fn misfit(value: &Node<'_>, schema: Schema<'_, '_>) -> Option<&'static str> {
    let is_integer = || Number::of(value).is_some_and(Number::is_integer);
    if schema.flag("x-kubernetes-int-or-string") {
        let fits = matches!(value.value, Value::String(_)) || is_integer();
        return (!fits).then_some("an integer or a string");
    }
    let (fits, expected) = match schema.text("type").as_ref() {
        "object" => (value.as_mapping().is_some(), "a map"),
        "array" => (value.as_sequence().is_some(), "a list"),
        "string" => (value.as_str().is_some(), "a string"),
        "boolean" => (value.as_bool().is_some(), "a boolean"),
        "integer" => (is_integer(), "an integer"),
        "number" => (as_float(value).is_some(), "a number"),
        _ => return None,
    };
    (!fits).then_some(expected)
}

/// The beginning of a text, on one line.
fn excerpt(text: &str) -> String {
    text.chars().take(60).collect::<String>().replace('`', "'").replace('\n', " ")
}

fn short(value: &Node<'_>) -> String {
    let text = value.to_json().to_string().replace('`', "'");
    if text.chars().count() <= 60 { text } else { text.chars().take(60).collect::<String>() + "…" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::first_document;

    #[track_caller]
    fn found(schema: &str, value: &str, expected: &str) {
        let (schema, value) = (first_document(schema).unwrap(), first_document(value).unwrap());
        let checked = check(&value.root, Schema(&schema.root), false);
        let unknown = checked.unknown.iter().map(|(problem, _)| problem);
        let lines: Vec<_> =
            checked.problems.iter().chain(unknown).map(|p| format!("{}: {}", p.path, p.message)).collect();
        assert_eq!(lines.join("; "), expected, "{value:?}");
    }

    #[test]
    fn types() {
        let schema = "{type: object, properties: {i: {type: integer}, e: {x-kubernetes-int-or-string: true}, n: {type: string, nullable: true}}}";
        found(schema, "{i: 3.0, e: 5, n: ~}", "");
        found(
            schema,
            "{i: '3', e: 1.5}",
            "i: expected an integer, found a string; e: expected an integer or a string, found a number",
        );
        found(schema, "{i: ~}", "");
    }

    #[test]
    fn conditions() {
        found("{type: string, enum: [a, b]}", "c", ": \"c\" is not one of \"a\", \"b\"");
        found(
            "{type: string, pattern: '^a+$', maxLength: 2}",
            "aab",
            ": there are 3 characters, expected 2 at most; : `aab` does not match `^a+$`",
        );
        found("{type: integer, minimum: 1, exclusiveMinimum: true}", "1", ": 1 is not greater than 1");
        found("{type: string, pattern: '^\\d+$'}", "'٣'", ": `٣` does not match `^\\d+$`");
        found("{type: string, pattern: '^{{.*}}$'}", "a", ": `a` does not match `^{{.*}}$`");
        found(
            "{type: object, properties: {pod: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}",
            "{pod: {kind: Pod}}",
            "pod: `apiVersion` is required",
        );
        found(
            "{type: object, required: [a, b], properties: {b: {type: string, default: x}}}",
            "{}",
            ": `a` is required",
        );
        found(
            "{type: object, properties: {a: {type: string}}, oneOf: [{required: [a]}, {minProperties: 1}]}",
            "{a: x}",
            ": the value fits 2 of the 2 schemas of `oneOf`, expected exactly one",
        );
    }

    /// As Kubernetes 1.34 computes it, oddities included.
    #[test]
    fn multiples_are_those_of_kubernetes() {
        let check = |value: &str, step: &str, fits: bool| {
            let schema = format!("{{type: number, multipleOf: {step}}}");
            let expected =
                if fits { String::new() } else { format!(": {value} is not a multiple of {step}") };
            found(&schema, value, &expected);
        };
        for (value, step) in
            [("0.3", "0.1"), ("0.7", "0.1"), ("1.1", "0.1"), ("-0.5", "0.25"), ("7.5", "2.5")]
        {
            check(value, step, true);
        }
        // `1 / 0.01 * 0.29` is a little less than 29.
        for (value, step) in [
            ("0.25", "0.1"),
            ("0.29", "0.01"),
            ("7.6", "2.5"),
            ("5", "2"),
            ("5", "2.5"),
            ("3", "0.1"),
            ("2", "0"),
        ] {
            check(value, step, false);
        }
        for (value, step) in [("6", "2"), ("0", "7"), ("9007199254740993", "3")] {
            check(value, step, true);
        }
    }

    #[test]
    fn limits_of_integers_lose_their_fraction() {
        found("{type: number, minimum: 0.5}", "0", "");
        found("{type: number, minimum: 0.5}", "0.4", ": 0.4 is less than 0.5");
        found("{type: integer, maximum: 1.5, exclusiveMaximum: true}", "1", ": 1 is not less than 1.5");
        found("{type: integer, minimum: 1e30}", "1", "");
        found("{type: number, maximum: 1e30}", "1.5", "");
    }

    #[test]
    fn integers_beyond_64_bits_are_none() {
        found("{type: integer}", "9223372036854775807", "");
        found("{type: integer}", "9223372036854775808", ": expected an integer, found a number");
        found("{type: integer}", "1e300", ": expected an integer, found a number");
    }

    #[test]
    fn an_empty_enum_says_nothing() {
        found("{type: string, enum: []}", "a", "");
    }

    #[test]
    fn what_is_dropped() {
        let schema = "{type: object, properties: {a: {type: object, additionalProperties: {type: string}}, k: {type: object, x-kubernetes-preserve-unknown-fields: true}}}";
        found(schema, "{a: {x: text}, k: {z: 1}}", "");
        found(schema, "{b: 1}", ": `b` is not a field of the schema");
    }
}
