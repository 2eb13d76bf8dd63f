//! Schemas of custom resources, as views of the documents they stand in.
//!
//! A [`Schema`] is what Kubernetes calls `JSONSchemaProps`. It is not decoded: every look-up goes to the document, by Go's
//! rules for field names, so that whatever is found has its place.

pub mod defaults;
pub mod format;
pub mod number;
pub mod structural;
pub mod value;

use std::borrow::Cow;

use crate::yaml::{Entry, Mapping, Node};
use number::Number;

/// A schema, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'b, 'a>(pub &'b Node<'a>);

/// What is around a schema, as far as its rules are concerned.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Whether its values have `apiVersion`, `kind` and `metadata` whatever it says.
    pub is_resource: bool,
    /// Whether clusters can tell which value was there before a change: not within lists that change as a whole.
    pub can_correlate: bool,
    /// How many of its values an object has at most; none where a list or map around it may have any number.
    pub most_times: Option<u64>,
}

impl At {
    /// The schema of a resource itself.
    pub const ROOT: Self = Self { is_resource: true, can_correlate: true, most_times: Some(1) };
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

    /// A text; empty if missing.
    pub fn text(self, keyword: &str) -> Cow<'b, str> {
        self.get(keyword).and_then(Node::to_text).unwrap_or_default()
    }

    /// A boolean; false if missing.
    pub fn flag(self, keyword: &str) -> bool {
        self.get(keyword).and_then(Node::as_bool) == Some(true)
    }

    /// A list; empty if missing.
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

    /// Visits this schema and every one within it that describes values rather than adding conditions: the parts that a
    /// structural schema may have rules in.
    pub fn each_described(self, at: At, visit: &mut impl FnMut(Self, At)) {
        visit(self, at);
        let times = at.most_times.zip(self.most_values()).map(|(times, values)| times.saturating_mul(values));
        let below = |inner: Self, can_correlate| At {
            is_resource: inner.flag("x-kubernetes-embedded-resource"),
            can_correlate: at.can_correlate && can_correlate,
            most_times: times,
        };
        for (_, property) in self.properties() {
            // Of maps of both types.
            property.each_described(below(property, true), visit);
        }
        if let Additional::Schema(values) = self.additional() {
            values.each_described(below(values, true), visit);
        }
        if let Some(items) = self.items() {
            items.each_described(below(items, self.text("x-kubernetes-list-type") == "map"), visit);
        }
    }

    /// Visits the schemas whose defaults clusters look at: not those of maps without names, nor of the logic.
    pub fn each_with_default(self, visit: &mut impl FnMut(Self)) {
        if self.get("default").is_some() {
            visit(self);
        }
        self.properties().for_each(|(_, property)| property.each_with_default(visit));
        if let Some(items) = self.items() {
            items.each_with_default(visit);
        }
    }

    /// How many values of the schemas right within it one of its own has at most; none where there is no limit.
    fn most_values(self) -> Option<u64> {
        let limit = |keyword| match Number::of(self.get(keyword)?)? {
            Number::Int(limit) => Some(u64::try_from(limit).unwrap_or(0)),
            Number::Float(_) => None,
        };
        match self.text("type").as_ref() {
            "object" if self.get("additionalProperties").is_some() => limit("maxProperties"),
            "array" => limit("maxItems"),
            _ => Some(1),
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

    /// The schema at a path such as `.spec.zone`, and `.spec.labels['a.b']` where brackets are allowed (apiextensions-apiserver
    /// `pkg/apiserver/schema/cel/validation.go`).
    ///
    /// None where there is no such field; none in it where it may have any value.
    pub fn at_path(self, path: &str, brackets: bool) -> Option<Option<Self>> {
        let (mut schema, mut rest) = (Some(self), path);
        while !rest.is_empty() {
            let mut next = || {
                let (token, behind) = path_token(rest);
                rest = behind;
                (!token.is_empty()).then_some(token)
            };
            let name = match next()? {
                "." => Cow::Borrowed(next()?),
                "[" if brackets => {
                    let quoted = next()?.strip_prefix('\'')?.strip_suffix('\'')?;
                    next().filter(|token| *token == "]")?;
                    Cow::Owned(quoted.replace("\\'", "'").replace("\\\\", "\\"))
                }
                _ => return None,
            };
            let above = schema?;
            schema = match above.additional() {
                _ if above.properties().next().is_some() => Some(above.property(&name)?),
                Additional::Schema(schema) => Some(schema),
                _ => {
                    above.get("additionalProperties")?;
                    None
                }
            };
        }
        Some(schema)
    }
}

/// The next part of a path: a sign, a text in quotes, or a name.
fn path_token(path: &str) -> (&str, &str) {
    const SIGNS: [char; 3] = ['.', '[', ']'];
    let end = match path.chars().next() {
        Some('\'') => {
            let mut quotes = path.match_indices('\'').skip(1).map(|(at, _)| at);
            quotes.find(|at| !path[..*at].ends_with('\\')).map_or(path.len(), |at| at + 1)
        }
        Some(c) if SIGNS.contains(&c) => 1,
        _ => path.find(SIGNS).unwrap_or(path.len()),
    };
    path.split_at(end)
}
