//! Schemas of custom resources, as views of the documents they stand in.
//!
//! A [`Schema`] is what Kubernetes calls `JSONSchemaProps`. It is not decoded: every look-up goes to the document, by Go's
//! rules for field names, so that whatever is found has its place.

pub mod rule;
pub mod structural;
pub mod value;

use std::borrow::Cow;

use crate::yaml::{Entry, Mapping, Node};

/// A schema, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'b, 'a>(pub &'b Node<'a>);

/// What is around a schema, as far as its rules are concerned.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Whether its values have `apiVersion`, `kind` and `metadata` whatever it says.
    pub is_resource: bool,
    /// Whether clusters can tell which value was there before a change: not within lists and maps that change as a whole.
    pub can_correlate: bool,
}

impl At {
    /// The schema of a resource itself.
    pub const ROOT: Self = Self { is_resource: true, can_correlate: true };
}

/// What a schema says of properties that it does not name.
#[derive(Clone, Copy, Debug)]
pub enum Additional<'b, 'a> {
    /// Nothing, or that there may be none.
    None,
    /// That there may be any.
    Any,
    /// That they follow a schema.
    Schema(Schema<'b, 'a>),
}

/// Adds a key or an index in brackets to the path that problems show; the length to cut it to on the way back.
fn step_into(path: &mut String, step: &str) -> usize {
    let before = path.len();
    if !path.is_empty() && !step.starts_with('[') {
        path.push('.');
    }
    *path += step;
    before
}

/// The keywords under which a single schema stands.
const SINGLE: [&str; 4] = ["items", "not", "additionalProperties", "additionalItems"];
/// Those with a list of schemas; `items` may be one too.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "items"];
/// Those with a map of schemas.
const MAPS: [&str; 4] = ["properties", "patternProperties", "definitions", "dependencies"];

impl<'b, 'a> Schema<'b, 'a> {
    /// The value of a keyword, none when it is null.
    pub fn get(self, keyword: &str) -> Option<&'b Node<'a>> {
        self.0.as_mapping()?.get_folded(keyword).filter(|node| !node.is_null())
    }

    /// A text, empty when there is none.
    pub fn text(self, keyword: &str) -> Cow<'b, str> {
        self.get(keyword).and_then(Node::to_text).unwrap_or_default()
    }

    /// A truth value, false when there is none.
    pub fn flag(self, keyword: &str) -> bool {
        self.get(keyword).and_then(Node::as_bool) == Some(true)
    }

    /// A list, empty when there is none.
    pub fn list(self, keyword: &str) -> &'b [Node<'a>] {
        self.get(keyword).and_then(Node::as_sequence).unwrap_or(&[])
    }

    /// The schema under a keyword, such as `not`.
    pub fn schema(self, keyword: &str) -> Option<Self> {
        self.get(keyword).filter(|node| node.as_mapping().is_some()).map(Self)
    }

    /// The schema of the items of a list.
    pub fn items(self) -> Option<Self> {
        self.schema("items")
    }

    /// The schemas of the named properties.
    pub fn properties(self) -> impl Iterator<Item = (&'b Entry<'a>, Self)> {
        let map = self.get("properties").and_then(Node::as_mapping);
        map.into_iter().flatten().map(|entry| (entry, Self(&entry.value)))
    }

    /// The schema of one property.
    pub fn property(self, name: &str) -> Option<Self> {
        self.get("properties")?.get(name).map(Self)
    }

    /// What holds for properties without a name.
    pub fn additional(self) -> Additional<'b, 'a> {
        match self.get("additionalProperties") {
            None => Additional::None,
            Some(node) if node.as_mapping().is_some() => Additional::Schema(Self(node)),
            Some(node) if node.as_bool() == Some(true) => Additional::Any,
            Some(_) => Additional::None,
        }
    }

    /// Whether this schema or one within it holds for a condition.
    pub fn any(self, condition: &impl Fn(Self) -> bool) -> bool {
        condition(self) || self.inner().any(|schema| schema.any(condition))
    }

    /// Visits this schema and every one within it.
    pub fn each(self, visit: &mut impl FnMut(Self)) {
        visit(self);
        self.inner().for_each(|schema| schema.each(visit));
    }

    /// Visits this schema and every one within it that describes values rather than adding conditions: the parts that a
    /// structural schema may have rules in.
    pub fn each_described(self, at: At, visit: &mut impl FnMut(Self, At)) {
        visit(self, at);
        let below = |inner: Self, can_correlate| At {
            is_resource: inner.flag("x-kubernetes-embedded-resource"),
            can_correlate: at.can_correlate && can_correlate,
        };
        let is_granular = self.text("x-kubernetes-map-type") != "atomic";
        for (_, property) in self.properties() {
            property.each_described(below(property, is_granular), visit);
        }
        if let Additional::Schema(values) = self.additional() {
            values.each_described(below(values, true), visit);
        }
        if let Some(items) = self.items() {
            items.each_described(below(items, self.text("x-kubernetes-list-type") == "map"), visit);
        }
    }

    /// Whether a default stands anywhere in it.
    pub fn has_defaults(self) -> bool {
        self.any(&|schema| schema.get("default").is_some())
    }

    /// The schemas right within this one.
    fn inner(self) -> impl Iterator<Item = Self> {
        let single = SINGLE.into_iter().filter_map(move |keyword| self.schema(keyword));
        let lists = LISTS.into_iter().flat_map(move |keyword| self.list(keyword)).map(Self);
        let maps = MAPS.into_iter().filter_map(move |keyword| self.get(keyword)?.as_mapping());
        let maps = maps.flat_map(Mapping::iter).map(|entry| Self(&entry.value));
        single.chain(lists).chain(maps)
    }

    /// The schema at a path such as `.spec.zone`.
    pub fn at_path(self, path: &str) -> Option<Self> {
        path.strip_prefix('.')?.split('.').try_fold(self, |schema, name| match schema.additional() {
            _ if schema.get("properties").is_some() => schema.property(name),
            Additional::Schema(schema) => Some(schema),
            _ => None,
        })
    }
}
