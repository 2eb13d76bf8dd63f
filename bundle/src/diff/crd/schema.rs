//! Reading two schemas side by side: their children, by the paths that OLM v1 names them with, and equality as Go's types
//! have it.

use std::fmt;

use crate::crd::types::SCHEMA;
use crate::source::Span;
use crate::yaml::fit::{Struct, Type};
use crate::yaml::{Entry, Node, Value};

/// One step from a schema to a schema below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segment<'b> {
    /// A property.
    Property(&'b str),
    /// The schema of all items.
    Items,
    /// The schema of one item.
    Item(usize),
    /// One of `allOf`, `anyOf` or `oneOf`.
    Branch(&'static str, usize),
    /// `not`, `additionalProperties` or `additionalItems`.
    Word(&'static str),
    /// One of `patternProperties`, `definitions` or `dependencies`.
    Named(&'static str, &'b str),
}

/// Writes a path as OLM v1 does: `^.spec.items.name`, `^.spec.anyOf[0]`.
pub(super) fn v1_path(path: &[Segment<'_>]) -> String {
    let mut text = String::from("^");
    for segment in path {
        text.push('.');
        text += &segment.to_string();
    }
    text
}

impl fmt::Display for Segment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Property(name) => f.write_str(name),
            Self::Items => f.write_str("items"),
            Self::Item(index) => write!(f, "items[{index}]"),
            Self::Branch(word, index) => write!(f, "{word}[{index}]"),
            Self::Word(word) => f.write_str(word),
            Self::Named(word, name) => write!(f, "{word}[{name}]"),
        }
    }
}

/// Writes a path for people: `spec.hosts[].name`.
pub(super) fn field_path(path: &[Segment<'_>]) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Items => text += "[]",
            Segment::Word("additionalProperties") => text += "{}",
            _ if text.is_empty() => text += &segment.to_string(),
            _ => {
                text.push('.');
                text += &segment.to_string();
            }
        }
    }
    if text.is_empty() { ".".to_owned() } else { text }
}

/// A schema below another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child<'b, 'a> {
    /// How it is reached.
    pub(super) segment: Segment<'b>,
    /// The key it stands under.
    pub(super) key: Span,
    /// The schema.
    pub(super) node: &'b Node<'a>,
}

const BRANCHES: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const NAMED: [&str; 3] = ["patternProperties", "definitions", "dependencies"];

/// The value of a field, none when it is null.
pub(super) fn field<'b, 'a>(schema: &'b Node<'a>, name: &str) -> Option<&'b Node<'a>> {
    schema.get(name).filter(|value| !value.is_null())
}

/// The text of a field; empty if missing.
pub(super) fn text<'b>(schema: &'b Node<'_>, name: &str) -> &'b str {
    field(schema, name).and_then(Node::as_str).unwrap_or("")
}

/// Whether a field is true.
pub(super) fn is_true(schema: &Node<'_>, name: &str) -> bool {
    field(schema, name).and_then(Node::as_bool) == Some(true)
}

/// The number of a field.
pub(super) fn number(schema: &Node<'_>, name: &str) -> Option<f64> {
    match field(schema, name)?.value {
        Value::Int(value) => Some(value as f64),
        Value::UInt(value) => Some(value as f64),
        Value::Float(value) => Some(value),
        _ => None,
    }
}

/// The list of a field; empty if missing.
pub(super) fn list<'b, 'a>(schema: &'b Node<'a>, name: &str) -> &'b [Node<'a>] {
    field(schema, name).and_then(Node::as_sequence).unwrap_or(&[])
}

/// The texts of a list.
pub(super) fn texts<'b>(schema: &'b Node<'_>, name: &str) -> Vec<&'b str> {
    list(schema, name).iter().filter_map(Node::as_str).collect()
}

/// The entries of a map, none when there is no map.
pub(super) fn entries<'b, 'a>(schema: &'b Node<'a>, name: &str) -> impl Iterator<Item = &'b Entry<'a>> {
    field(schema, name).and_then(Node::as_mapping).into_iter().flatten()
}

/// Where a field of a schema stands: its value, or the key of one that spans lines.
pub(super) fn span_of(schema: &Node<'_>, key: Span, name: &str) -> Span {
    let entry = schema.as_mapping().and_then(|map| map.entry(name));
    match entry.map(|entry| (&entry.value.value, entry)) {
        Some((Value::Mapping(_) | Value::Sequence(_) | Value::Null, entry)) => entry.key_span,
        Some((_, entry)) => entry.value.span,
        None => key,
    }
}

/// Every schema below a schema.
pub(super) fn children<'b, 'a>(schema: &'b Node<'a>) -> Vec<Child<'b, 'a>> {
    let mut children = Vec::new();
    let Some(map) = schema.as_mapping() else { return children };
    for entry in map {
        let key = entry.key_span;
        let mut add = |segment, key, node| children.push(Child { segment, key, node });
        match (entry.key.as_ref(), &entry.value.value) {
            (_, Value::Null) => {}
            ("properties", Value::Mapping(properties)) => {
                for entry in properties {
                    add(Segment::Property(&entry.key), entry.key_span, &entry.value);
                }
            }
            ("items", Value::Mapping(_)) => add(Segment::Items, key, &entry.value),
            ("items", Value::Sequence(items)) => {
                for (index, item) in items.iter().enumerate() {
                    add(Segment::Item(index), item.span, item);
                }
            }
            ("not", _) => add(Segment::Word("not"), key, &entry.value),
            ("additionalProperties", Value::Mapping(_)) => {
                add(Segment::Word("additionalProperties"), key, &entry.value);
            }
            ("additionalItems", Value::Mapping(_)) => {
                add(Segment::Word("additionalItems"), key, &entry.value)
            }
            (word, Value::Sequence(items)) => {
                let Some(word) = BRANCHES.into_iter().find(|branch| *branch == word) else { continue };
                for (index, item) in items.iter().enumerate() {
                    add(Segment::Branch(word, index), item.span, item);
                }
            }
            (word, Value::Mapping(map)) => {
                let Some(word) = NAMED.into_iter().find(|named| *named == word) else { continue };
                for entry in map.iter().filter(|entry| entry.value.as_mapping().is_some()) {
                    add(Segment::Named(word, &entry.key), entry.key_span, &entry.value);
                }
            }
            _ => {}
        }
    }
    children
}

/// The schema that a step leads to.
pub(super) fn child<'b, 'a>(schema: &'b Node<'a>, segment: Segment<'b>) -> Option<Child<'b, 'a>> {
    let map = schema.as_mapping()?;
    let of_entry = |entry: &'b Entry<'a>| Child { segment, key: entry.key_span, node: &entry.value };
    let of_item = |word: &str, index: usize| {
        let item = map.get(word)?.as_sequence()?.get(index)?;
        Some(Child { segment, key: item.span, node: item })
    };
    match segment {
        Segment::Property(name) => map.get("properties")?.as_mapping()?.entry(name).map(of_entry),
        Segment::Items => map.entry("items").filter(|entry| entry.value.as_mapping().is_some()).map(of_entry),
        Segment::Item(index) => of_item("items", index),
        Segment::Branch(word, index) => of_item(word, index),
        Segment::Word("not") => map.entry("not").filter(|entry| !entry.value.is_null()).map(of_entry),
        Segment::Word(word) => {
            map.entry(word).filter(|entry| entry.value.as_mapping().is_some()).map(of_entry)
        }
        Segment::Named(word, name) => {
            let entry = map.get(word)?.as_mapping()?.entry(name)?;
            entry.value.as_mapping().map(|_| of_entry(entry))
        }
    }
}

/// Fields that Go has pointers for: a zero value is not the same as none.
const POINTERS: &[&str] = &[
    "$ref",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "reason",
    "optionalOldSelf",
];

/// Whether two schemas are the same to Go: unknown fields do not count, nor does an empty list or text against none.
pub(super) fn same(old: &Node<'_>, new: &Node<'_>) -> bool {
    same_fields(&SCHEMA, old, new)
}

/// Whether a field of a schema is the same to Go in both.
pub(super) fn same_field(name: &str, old: Option<&Node<'_>>, new: Option<&Node<'_>>) -> bool {
    match SCHEMA.fields.iter().find(|field| field.name == name) {
        Some(field) => same_value(&field.of, POINTERS.contains(&name), old, new),
        None => true,
    }
}

fn same_fields(of: &'static Struct, old: &Node<'_>, new: &Node<'_>) -> bool {
    let (old, new) = (old.as_mapping(), new.as_mapping());
    let keys = |map: Option<&'_ crate::yaml::Mapping<'_>>| map.map_or(0, crate::yaml::Mapping::len);
    if keys(old) == 0 && keys(new) == 0 {
        return true;
    }
    let in_both = old.into_iter().flatten().all(|entry| {
        let other = new.and_then(|new| new.get(&entry.key));
        same_entry(of, &entry.key, Some(&entry.value), other)
    });
    in_both
        && new.into_iter().flatten().all(|entry| {
            old.is_some_and(|old| old.get(&entry.key).is_some())
                || same_entry(of, &entry.key, None, Some(&entry.value))
        })
}

fn same_entry(of: &'static Struct, key: &str, old: Option<&Node<'_>>, new: Option<&Node<'_>>) -> bool {
    match of.fields.iter().find(|field| field.name == key) {
        Some(field) => same_value(&field.of, POINTERS.contains(&key), old, new),
        None => true,
    }
}

fn same_value(of: &'static Type, pointer: bool, old: Option<&Node<'_>>, new: Option<&Node<'_>>) -> bool {
    let (old, new) = (old.filter(|old| !old.is_null()), new.filter(|new| !new.is_null()));
    let (Some(old), Some(new)) = (old, new) else {
        let Some(one) = old.or(new) else { return true };
        return match (of, &one.value) {
            (Type::Text, Value::String(text)) => !pointer && text.is_empty(),
            (Type::Bool, Value::Bool(value)) => !pointer && !value,
            (Type::List(_), Value::Sequence(items)) => items.is_empty(),
            (Type::Map(_), Value::Mapping(map)) => map.is_empty(),
            _ => false,
        };
    };
    match (of, &old.value, &new.value) {
        (Type::List(of), Value::Sequence(old), Value::Sequence(new)) => {
            old.len() == new.len()
                && old.iter().zip(new).all(|(old, new)| same_value(of, false, Some(old), Some(new)))
        }
        (Type::Map(of), Value::Mapping(a), Value::Mapping(b)) => {
            a.len() == b.len()
                && a.iter().all(|entry| {
                    b.get(&entry.key).is_some_and(|new| same_value(of, false, Some(&entry.value), Some(new)))
                })
        }
        (
            Type::Struct(of) | Type::StructOrBool(of) | Type::StructOrList(of) | Type::StructOrTexts(of),
            Value::Mapping(_),
            Value::Mapping(_),
        ) => same_fields(of, old, new),
        (Type::StructOrList(of), Value::Sequence(a), Value::Sequence(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(old, new)| same_fields(of, old, new))
        }
        _ => same_json(old, new),
    }
}

/// Whether two values are the same JSON.
pub(super) fn same_json(old: &Node<'_>, new: &Node<'_>) -> bool {
    match (&old.value, &new.value) {
        (Value::String(old), Value::String(new)) => old == new,
        (Value::Bool(old), Value::Bool(new)) => old == new,
        (Value::Int(old), Value::Int(new)) => old == new,
        _ => old.to_json() == new.to_json(),
    }
}
