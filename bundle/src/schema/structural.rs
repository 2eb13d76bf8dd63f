//! Whether a schema is structural, as clusters demand (apiextensions-apiserver `pkg/apiserver/schema/validation.go` and
//! `pkg/apis/apiextensions/validation/validation.go`): every value has a type, logic adds conditions and nothing else, and what
//! cannot be pruned or merged is not there.

use crate::crd::types::SCHEMA;
use crate::go::same_field;
use crate::pattern::Pattern;
use crate::source::Span;
use crate::yaml::{Mapping, Node, Value};

use super::{Additional, Schema, step_into};

/// Something that is wrong with a schema, a value or a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: a path such as `spec.replicas`, empty at the root.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// The bytes that are meant.
    pub span: Span,
}

impl Problem {
    /// The path for a message, as in "does not fit its schema at `spec.size`"; empty at the root.
    pub fn place(&self) -> String {
        if self.path.is_empty() { String::new() } else { format!(" at `{}`", self.path.replace('`', "'")) }
    }
}

/// Everything that keeps a schema from being structural.
///
/// ```
/// use olmkit_bundle::schema::{Schema, structural::problems};
/// let document = olmkit_bundle::yaml::first_document("{type: object, properties: {spec: {}}}").unwrap();
/// let found = problems(Schema(&document.root));
/// assert_eq!((found[0].path.as_str(), found[0].message.as_str()), ("spec", "there is no `type`"));
/// ```
pub fn problems(schema: Schema<'_, '_>) -> Vec<Problem> {
    let mut walk = Walk { found: Vec::new(), path: String::new() };
    walk.schema(schema, true);
    walk.found
}

/// The first keyword at the root of a schema that cannot stand there beside a status subresource, with its place.
pub fn problem_beside_status(schema: Schema<'_, '_>) -> Option<Problem> {
    let allowed = |key: &str| BESIDE_STATUS.iter().any(|allowed| same_field(allowed, key));
    let mut entries = schema.0.as_mapping()?.iter();
    let entry = entries.find(|entry| {
        // An empty list or map stands there too.
        let stands_there = matches!(entry.value.value, Value::Sequence(_) | Value::Mapping(_));
        is_keyword(&entry.key) && !allowed(&entry.key) && (stands_there || !is_empty(&entry.value))
    })?;
    let message =
        format!("`{}` is not allowed at the root with a status subresource", entry.key.replace('`', "'"));
    Some(Problem { path: String::new(), message, span: entry.key_span })
}

/// Whether a key is one of a schema; clusters pass over others.
fn is_keyword(key: &str) -> bool {
    SCHEMA.fields.iter().any(|field| same_field(field.name, key))
}

/// What may stand at the root beside a status subresource.
const BESIDE_STATUS: [&str; 22] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];
/// Keywords that clusters do not accept anywhere.
const NEVER: [&str; 7] =
    ["definitions", "dependencies", "id", "patternProperties", "$ref", "additionalItems", "$schema"];
/// Of those, the ones that are not even empty.
const NOT_EVEN_EMPTY: [&str; 3] = ["dependencies", "$ref", "additionalItems"];
/// Keywords that logic must not use: they say what a value is, not which values are allowed.
const NOT_IN_LOGIC: [&str; 13] = [
    "type",
    "default",
    "title",
    "description",
    "nullable",
    "additionalProperties",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
];
/// The logic, and the keywords in which it is a list.
const LOGIC: [&str; 3] = ["allOf", "anyOf", "oneOf"];

struct Walk {
    found: Vec<Problem>,
    path: String,
}

impl Walk {
    fn schema(&mut self, schema: Schema<'_, '_>, root: bool) {
        let kind = schema.text("type");
        let (either, keeps) =
            (schema.flag("x-kubernetes-int-or-string"), schema.flag("x-kubernetes-preserve-unknown-fields"));
        let embedded = schema.flag("x-kubernetes-embedded-resource");
        match kind.as_ref() {
            "object" => {}
            _ if embedded => self.at(schema, "type", "an embedded resource has the type `object`"),
            "" if !either && !keeps => self.at(schema, "type", "there is no `type`"),
            "" => {}
            _ if root => self.at(schema, "type", "the type at the root is `object`"),
            "array" | "boolean" | "integer" | "number" | "string" => {}
            other => {
                let message = format!("`{}` is not a type", other.replace('`', "'"));
                self.at(schema, "type", &message);
            }
        }
        if kind == "array" && schema.items().is_none() && schema.list("items").is_empty() {
            self.at(schema, "type", "a list has `items`");
        }
        if !schema.list("items").is_empty() {
            self.at(schema, "items", "`items` is one schema for all of them");
        }
        self.never(schema);
        if either && (keeps || embedded) {
            self.at(
                schema,
                "x-kubernetes-int-or-string",
                "what is an integer or a string has no fields to keep",
            );
        }
        if schema.get("x-kubernetes-preserve-unknown-fields").and_then(Node::as_bool) == Some(false) {
            let keyword = "x-kubernetes-preserve-unknown-fields";
            self.at(schema, keyword, &format!("`{keyword}` is true or absent"));
        }
        if root && schema.flag("nullable") {
            self.at(schema, "nullable", "a resource is not null");
        }
        self.additional(schema, root, embedded);
        self.lists_and_maps(schema, &kind);
        if root || embedded {
            self.metadata(schema, root);
        }
        if embedded && !keeps && schema.properties().next().is_none() {
            self.at(
                schema,
                "x-kubernetes-embedded-resource",
                "an embedded resource has properties, or keeps unknown fields",
            );
        }
        // Clusters ask for descriptions of what the logic at the root speaks of, and nowhere else.
        self.logic_of(schema, true, root.then_some(schema));
        for (entry, property) in schema.properties() {
            self.below(&entry.key, |walk| walk.schema(property, false));
        }
        if let Some(items) = schema.items() {
            self.below("[]", |walk| walk.schema(items, false));
        }
        if let Additional::Schema(values) = schema.additional() {
            self.below("*", |walk| walk.schema(values, false));
        }
    }

    fn never(&mut self, schema: Schema<'_, '_>) {
        for keyword in NEVER {
            let stands_there = |node: &Node<'_>| !is_empty(node) || NOT_EVEN_EMPTY.contains(&keyword);
            if schema.get(keyword).is_some_and(stands_there) {
                self.at(schema, keyword, &format!("clusters do not accept `{keyword}`"));
            }
        }
        if schema.flag("uniqueItems") {
            self.at(schema, "uniqueItems", "`uniqueItems` cannot be true; use `x-kubernetes-list-type: set`");
        }
    }

    fn additional(&mut self, schema: Schema<'_, '_>, root: bool, embedded: bool) {
        let Some(additional) = schema.get("additionalProperties") else { return };
        let message = if root {
            "`additionalProperties` is not allowed at the root"
        } else if embedded {
            "`additionalProperties` is not allowed at an embedded resource"
        } else if schema.properties().next().is_some() && additional.as_bool() != Some(true) {
            "`additionalProperties` and `properties` exclude each other"
        } else {
            return;
        };
        self.at(schema, "additionalProperties", message);
    }

    fn lists_and_maps(&mut self, schema: Schema<'_, '_>, kind: &str) {
        let (list, map) = (schema.text("x-kubernetes-list-type"), schema.text("x-kubernetes-map-type"));
        match list.as_ref() {
            "" if schema.get("x-kubernetes-list-type").is_none() => {}
            "atomic" | "set" | "map" if kind == "array" => {}
            "atomic" | "set" | "map" => {
                self.at(schema, "x-kubernetes-list-type", "only a list has a list type")
            }
            _ => self.at(schema, "x-kubernetes-list-type", "a list type is `atomic`, `set` or `map`"),
        }
        match map.as_ref() {
            "" if schema.get("x-kubernetes-map-type").is_none() => {}
            "atomic" | "granular" if kind == "object" => {}
            "atomic" | "granular" => {
                self.at(schema, "x-kubernetes-map-type", "only an object has a map type")
            }
            _ => self.at(schema, "x-kubernetes-map-type", "a map type is `atomic` or `granular`"),
        }
        let keys = schema.list("x-kubernetes-list-map-keys");
        match (list == "map", keys.is_empty()) {
            (true, true) => self.at(
                schema,
                "x-kubernetes-list-type",
                "a list of type `map` has `x-kubernetes-list-map-keys`",
            ),
            (false, false) => {
                self.at(schema, "x-kubernetes-list-map-keys", "only a list of type `map` has keys")
            }
            _ => {}
        }
        let Some(items) = schema.items() else { return };
        if matches!(list.as_ref(), "set" | "map") && items.flag("nullable") {
            self.at(items, "nullable", "an item of a set or map is not null");
        }
        match list.as_ref() {
            "set" => self.items_of_set(items),
            "map" => self.items_of_map(schema, items),
            _ => {}
        }
    }

    fn items_of_set(&mut self, items: Schema<'_, '_>) {
        let is_whole = match items.text("type").as_ref() {
            "array" => matches!(items.text("x-kubernetes-list-type").as_ref(), "" | "atomic"),
            "object" => items.text("x-kubernetes-map-type") == "atomic",
            _ => true,
        };
        if !is_whole {
            self.at(
                items,
                "type",
                "an item of a set is compared as a whole: its list or map type is `atomic`",
            );
        }
    }

    fn items_of_map(&mut self, schema: Schema<'_, '_>, items: Schema<'_, '_>) {
        let keyword = "x-kubernetes-list-map-keys";
        if items.text("type") != "object" {
            self.at(items, "type", "an item of a list of type `map` is an object");
            return;
        }
        let keys: Vec<_> = schema.list(keyword).iter().filter_map(Node::as_str).collect();
        for (index, key) in keys.iter().enumerate() {
            let shown = key.replace('`', "'");
            let Some(property) = items.property(key) else {
                self.at(schema, keyword, &format!("the items have no property `{shown}`"));
                continue;
            };
            if keys[..index].contains(key) {
                self.at(schema, keyword, &format!("`{shown}` is there twice"));
            }
            if matches!(property.text("type").as_ref(), "array" | "object") {
                self.at(schema, keyword, &format!("`{shown}` is not a scalar"));
            }
            if property.flag("nullable") {
                self.at(property, "nullable", "a key of a list of type `map` is not null");
            }
            let is_required = items.list("required").iter().any(|name| name.as_str() == Some(key));
            if !is_required && property.get("default").is_none() {
                self.at(schema, keyword, &format!("`{shown}` is neither required, nor has it a default"));
            }
        }
    }

    /// `apiVersion`, `kind` and `metadata` are what they are in every object.
    fn metadata(&mut self, schema: Schema<'_, '_>, root: bool) {
        for name in ["apiVersion", "kind"] {
            if let Some(property) = schema.property(name).filter(|property| property.text("type") != "string")
            {
                self.below(name, |walk| walk.at(property, "type", "the type is `string` in every object"));
            }
        }
        for name in ["apiVersion", "kind", "metadata"].into_iter().filter(|_| root) {
            if let Some(property) = schema.property(name).filter(|property| property.has_defaults()) {
                self.below(name, |walk| walk.at(property, "default", "there are no defaults in it"));
            }
        }
        let Some(metadata) = schema.property("metadata") else { return };
        if metadata.text("type") != "object" {
            self.below("metadata", |walk| walk.at(metadata, "type", "the type is `object` in every object"));
        }
        let others =
            metadata.properties().any(|(entry, _)| !matches!(entry.key.as_ref(), "name" | "generateName"))
                || metadata.0.as_mapping().into_iter().flatten().any(|entry| {
                    const OTHERS: [&str; 5] = ["type", "properties", "default", "externalDocs", "example"];
                    is_keyword(&entry.key) && !OTHERS.contains(&entry.key.as_ref()) && !is_empty(&entry.value)
                });
        if root && others {
            self.below("metadata", |walk| {
                walk.at(metadata, "properties", "only `name` and `generateName` can be described")
            });
        }
    }

    /// The logic that stands at `logic`; `top` when that is a schema itself. What it speaks of has to be described in `of`,
    /// where anybody asks.
    fn logic_of(&mut self, logic: Schema<'_, '_>, top: bool, of: Option<Schema<'_, '_>>) {
        self.pattern(logic);
        for keyword in LOGIC {
            // The two forms in which types are named, for what is an integer or a string.
            if top && keyword == "anyOf" && is_either(logic) {
                logic.list(keyword).iter().for_each(|part| self.never(Schema(part)));
                continue;
            }
            for (index, part) in logic.list(keyword).iter().map(Schema).enumerate() {
                let skips = top && keyword == "allOf" && index == 0 && is_either(part);
                self.below(&format!("{keyword}[{index}]"), |walk| walk.logic(part, of, skips));
            }
        }
        if let Some(not) = logic.schema("not") {
            self.below("not", |walk| walk.logic(not, of, false));
        }
    }

    fn pattern(&mut self, schema: Schema<'_, '_>) {
        if let Err(why) = Pattern::parse(&schema.text("pattern")) {
            self.at(schema, "pattern", &format!("not a valid RE2 pattern: {why}"));
        }
    }

    /// One part of the logic; `skips` when its own `anyOf` names the types of what is an integer or a string.
    fn logic(&mut self, logic: Schema<'_, '_>, of: Option<Schema<'_, '_>>, skips: bool) {
        let says_something =
            |keyword: &&str| logic.get(keyword).is_some_and(|node| says_something(keyword, node));
        for keyword in NOT_IN_LOGIC.into_iter().filter(says_something) {
            self.at(
                logic,
                keyword,
                &format!("`{keyword}` is only allowed outside of `allOf`, `anyOf`, `oneOf` and `not`"),
            );
        }
        self.never(logic);
        let additional = logic.get("additionalProperties");
        if additional.and_then(Node::as_bool) == Some(false) && logic.properties().next().is_some() {
            self.at(
                logic,
                "additionalProperties",
                "`additionalProperties` and `properties` exclude each other",
            );
        }
        if !skips {
            self.logic_of(logic, false, of);
        }
        if let Some(metadata) = logic.property("metadata") {
            self.at(metadata, "", "`metadata` has no place in the logic");
        }
        for (entry, part) in logic.properties() {
            let described = of.and_then(|of| of.property(&entry.key));
            if of.is_some() && described.is_none() {
                let name = entry.key.replace('`', "'");
                let message = format!("`{name}` is not described outside of the logic");
                self.found.push(Problem { path: self.path.clone(), message, span: entry.key_span });
            }
            self.below(&entry.key, |walk| walk.logic(part, described, false));
        }
        if !logic.list("items").is_empty() {
            self.at(logic, "items", "`items` is one schema for all of them");
        }
        if let Some(items) = logic.items() {
            let described = of.and_then(Schema::items);
            if of.is_some() && described.is_none() {
                self.at(logic, "items", "the items are not described outside of the logic");
            }
            self.below("[]", |walk| walk.logic(items, described, false));
        }
    }

    fn at(&mut self, schema: Schema<'_, '_>, keyword: &str, message: &str) {
        let entry = schema.0.as_mapping().and_then(|mapping| mapping.entry_folded(keyword));
        let span = entry.map_or_else(|| schema.0.locate(&[]), |entry| entry.key_span);
        self.found.push(Problem { path: self.path.clone(), message: message.to_owned(), span });
    }

    fn below(&mut self, step: &str, walk: impl FnOnce(&mut Self)) {
        let before = step_into(&mut self.path, step);
        walk(self);
        self.path.truncate(before);
    }
}

/// Whether a value is what Go's type has without one.
fn is_empty(node: &Node<'_>) -> bool {
    match &node.value {
        Value::String(text) => text.is_empty(),
        Value::Bool(value) => !value,
        Value::Sequence(items) => items.is_empty(),
        Value::Mapping(map) => map.is_empty(),
        Value::Null => true,
        _ => false,
    }
}

/// Whether a keyword with this value stands there: of some it matters that they do, whatever they say.
fn says_something(keyword: &str, node: &Node<'_>) -> bool {
    !is_empty(node)
        || match keyword {
            "additionalProperties" => node.as_mapping().is_some(),
            "default"
            | "x-kubernetes-list-type"
            | "x-kubernetes-map-type"
            | "x-kubernetes-preserve-unknown-fields" => !node.is_null(),
            _ => false,
        }
}

/// Whether `anyOf` of a schema is `[{type: integer}, {type: string}]`.
fn is_either(schema: Schema<'_, '_>) -> bool {
    let [first, second] = schema.list("anyOf") else { return false };
    let is_only = |node: &Node<'_>, of: &str| {
        let says = |mapping: &Mapping<'_>| {
            let entries = mapping.iter().filter(|entry| match entry.key.as_ref() {
                "example" | "externalDocs" => false,
                "x-kubernetes-list-map-keys" => !entry.value.is_null(),
                key => says_something(key, &entry.value),
            });
            entries.count()
        };
        node.as_mapping().is_some_and(|mapping| says(mapping) == 1) && Schema(node).text("type") == of
    };
    is_only(first, "integer") && is_only(second, "string")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let document = crate::yaml::first_document(text).unwrap();
        let found = problems(Schema(&document.root));
        let lines: Vec<_> =
            found.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect();
        assert_eq!(lines.join("; "), expected, "{text}");
    }

    #[test]
    fn every_value_has_a_type() {
        check(
            "{type: object, properties: {a: {type: array, items: {type: string}}, b: {x-kubernetes-int-or-string: true}}}",
            "",
        );
        check("{properties: {a: {type: string}}}", ": there is no `type`");
        check("{type: object, properties: {a: {type: array}}}", "a: a list has `items`");
        check("{type: object, properties: {a: {type: array, items: {}}}}", "a[]: there is no `type`");
        check("{type: object, properties: {a: {type: text}}}", "a: `text` is not a type");
    }

    #[test]
    fn logic_adds_conditions_alone() {
        check("{type: object, anyOf: [{required: [a]}], properties: {a: {type: string}}}", "");
        check(
            "{type: object, properties: {a: {type: object, oneOf: [{type: string}], not: {properties: {b: {title: x}}}}}}",
            "a.oneOf[0]: `type` is only allowed outside of `allOf`, `anyOf`, `oneOf` and `not`; \
             a.not.b: `title` is only allowed outside of `allOf`, `anyOf`, `oneOf` and `not`",
        );
        check(
            "{type: object, properties: {a: {type: object}}, anyOf: [{properties: {a: {properties: {b: {}}}, c: {}}, items: {}}]}",
            "anyOf[0].a: `b` is not described outside of the logic; anyOf[0]: `c` is not described outside of the logic; \
             anyOf[0]: the items are not described outside of the logic",
        );
        check(
            "{type: object, properties: {a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}}",
            "",
        );
    }

    #[test]
    fn patterns_and_what_logic_must_not_say() {
        check(
            "{type: object, properties: {a: {type: string, pattern: '^a(b$'}}}",
            "a: not a valid RE2 pattern: missing closing )",
        );
        for pattern in ["^{{.*}}$", "^[^[\\]]+$", "\\<", "\\pN\\Q..\\E\\z", "(?<name>a)(?<name>b)", "[a&&b]"]
        {
            check(
                &format!("{{type: object, properties: {{a: {{type: string, pattern: '{pattern}'}}}}}}"),
                "",
            );
        }
        for (pattern, why) in [
            ("^.{1,4096}$", "invalid repeat count"),
            ("\\u0041", "invalid escape sequence"),
            ("(?x)a", "invalid or unsupported Perl syntax"),
            ("\\p{Script=Greek}", "invalid character class range"),
        ] {
            check(
                &format!("{{type: object, properties: {{a: {{type: string, pattern: '{pattern}'}}}}}}"),
                &format!("a: not a valid RE2 pattern: {why}"),
            );
        }
        check(
            "{type: object, properties: {a: {allOf: [{anyOf: [{type: integer}, {type: string}]}, {pattern: x}], x-kubernetes-int-or-string: true}}}",
            "",
        );
        check(
            "{type: object, anyOf: [{nullable: false, x-kubernetes-validations: [{rule: 'true'}], properties: {metadata: {}}}], \
             properties: {metadata: {type: object, description: x}}, nullable: true}",
            ": a resource is not null; metadata: only `name` and `generateName` can be described; \
             anyOf[0]: `x-kubernetes-validations` is only allowed outside of `allOf`, `anyOf`, `oneOf` and `not`; \
             anyOf[0]: `metadata` has no place in the logic",
        );
        let beside_status = |text: &str| {
            problem_beside_status(Schema(&crate::yaml::first_document(text).unwrap().root))
                .map(|problem| problem.message)
        };
        assert_eq!(beside_status("{type: object, required: [a], nullable: false}"), None);
        assert_eq!(
            beside_status("{type: object, oneOf: [{required: [a]}]}").as_deref(),
            Some("`oneOf` is not allowed at the root with a status subresource")
        );
    }

    #[test]
    fn lists_maps_and_metadata() {
        check(
            "{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object}}}}",
            "a: the items have no property `name`",
        );
        check(
            "{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name, name], items: {type: object, properties: {name: {type: string}}, nullable: true}}}}",
            "a: an item of a set or map is not null; a: `name` is neither required, nor has it a default; a: `name` is there twice; \
             a: `name` is neither required, nor has it a default",
        );
        check(
            "{type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: object}}}}",
            "a: an item of a set is compared as a whole: its list or map type is `atomic`",
        );
        check(
            "{type: object, properties: {metadata: {type: object, properties: {name: {type: string, maxLength: 9}}}}}",
            "",
        );
        check(
            "{type: object, properties: {kind: {type: object}, metadata: {type: object, properties: {labels: {type: object}}}}}",
            "kind: the type is `string` in every object; metadata: only `name` and `generateName` can be described",
        );
        check(
            "{type: object, properties: {a: {type: string, additionalItems: false, definitions: {}}}}",
            "a: clusters do not accept `additionalItems`",
        );
        check("{type: object, x-kubernetes-map-type: ''}", ": a map type is `atomic` or `granular`");
        check(
            "{type: object, properties: {a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer, nullable: false}, {type: string}]}}}",
            "",
        );
        check("{type: object, not: {dependencies: {}}}", "not: clusters do not accept `dependencies`");
        check(
            "{type: object, not: {uniqueItems: true}}",
            "not: `uniqueItems` cannot be true; use `x-kubernetes-list-type: set`",
        );
        check("{type: object, items: []}", "");
        check("{type: object, properties: {a: {type: array, items: text}}}", "a: a list has `items`");
        check(
            "{type: object, not: {default: []}}",
            "not: `default` is only allowed outside of `allOf`, `anyOf`, `oneOf` and `not`",
        );
        check(
            "{type: object, properties: {a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer, example: 1}, {type: string}]}}}",
            "",
        );
        check(
            "{type: object, allOf: [{x-kubernetes-map-type: ''}]}",
            "allOf[0]: `x-kubernetes-map-type` is only allowed outside of `allOf`, `anyOf`, `oneOf` and `not`",
        );
        check(
            "{type: object, not: {items: [{}], additionalProperties: {}}}",
            "not: `additionalProperties` is only allowed outside of `allOf`, `anyOf`, `oneOf` and `not`; not: `items` is one schema for all of them",
        );
        check(
            "{type: object, properties: {a: {type: array, items: []}, metadata: {type: object, externalDocs: {url: x}, other: 1}}}",
            "a: a list has `items`",
        );
        // Null is what Go has without it.
        check("{type: object, properties: {metadata: {type: object, description: null}}}", "");
    }
}
