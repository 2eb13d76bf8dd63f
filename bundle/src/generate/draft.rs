//! Values that know where they come from: the ClusterServiceVersion while it is put together.
//!
//! A [`Draft`] is a tree like JSON's, with an [`Origin`] on every node. There is no way to make a node without one, so
//! nothing gets into the bundle that could not be explained.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde_json::Value as Json;

use crate::finding::{Code, Finding, Place};
use crate::parse::Object;
use crate::source::{Source, Span};
use crate::yaml::{Node, Step, Value as Yaml};

/// A step of a path as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// The key of a map.
    Key(String),
    /// The position in a list, counted from 0.
    Index(usize),
}

impl From<&str> for PathStep {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

/// Where a value comes from: who said it, and where that is written.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Which source.
    pub by: By,
    at: Option<(&'a Source<'a>, Span)>,
}

/// The source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum By {
    /// One of the operator's manifests.
    Manifest,
    /// The base ClusterServiceVersion.
    Base,
    /// The package file.
    PackageFile,
    /// What Cargo.toml says of the crate.
    Cargo,
    /// What Chart.yaml says of the Helm chart.
    Chart,
    /// An option of the command line.
    Flag(&'static str),
    /// A variable of the environment.
    Environment(&'static str),
    /// The catalog that the bundle is made for.
    Catalog,
    /// The registry that the image is in.
    Registry,
    /// A rule of ours, in a few words; the origin's place is what it was applied to.
    Rule(&'static str),
}

impl By {
    /// One word for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Base => "base",
            Self::PackageFile => "packageFile",
            Self::Cargo => "cargo",
            Self::Chart => "chart",
            Self::Flag(_) => "flag",
            Self::Environment(_) => "environment",
            Self::Catalog => "catalog",
            Self::Registry => "registry",
            Self::Rule(_) => "rule",
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Manifest => "manifest",
            Self::Base => "base",
            Self::PackageFile => "package file",
            Self::Cargo => "Cargo",
            Self::Chart => "chart",
            Self::Flag(name) | Self::Environment(name) | Self::Rule(name) => name,
            Self::Catalog => "catalog",
            Self::Registry => "registry",
        })
    }
}

impl<'a> Origin<'a> {
    /// Something that is written in a text.
    pub fn written(by: By, source: &'a Source<'a>, span: Span) -> Self {
        Self { by, at: Some((source, span)) }
    }

    /// Something that is written nowhere: an option, a default.
    pub fn unwritten(by: By) -> Self {
        Self { by, at: None }
    }

    /// What a rule makes of a value at this place.
    pub fn by_rule(self, rule: &'static str) -> Self {
        Self { by: By::Rule(rule), ..self }
    }

    /// What stands at a path in a manifest.
    pub(super) fn manifest(object: &Object<'a, 'a>, path: &[Step<'_>]) -> Self {
        Self::written(By::Manifest, object.source, object.root.locate(path))
    }

    /// The place, when it is written down.
    pub fn place(&self) -> Option<Place> {
        self.at.map(|(source, span)| Place::new(source, span))
    }
}

/// A value with its origin, and that of every value in it.
#[derive(Clone, Debug)]
pub struct Draft<'a> {
    value: Value<'a>,
    origin: Origin<'a>,
    related: Vec<(Relation, Origin<'a>)>,
}

/// What else there is to say about a value's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The value stands where another one would have stood.
    InsteadOf,
    /// The value was made of this too.
    MadeOf,
}

/// What a draft holds; the same kinds as JSON.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Scalar(Json),
    List(Vec<Draft<'a>>),
    /// Boxed, because the nodes of such a map have room for many entries, and most maps have few.
    Map(BTreeMap<String, Box<Draft<'a>>>),
}

impl<'a> Draft<'a> {
    fn of(value: Value<'a>, origin: Origin<'a>) -> Self {
        Self { value, origin, related: Vec::new() }
    }

    /// A value that has one origin altogether.
    pub(super) fn new(json: impl Into<Json>, origin: Origin<'a>) -> Self {
        let value = match json.into() {
            Json::Array(items) => {
                Value::List(items.into_iter().map(|item| Self::new(item, origin)).collect())
            }
            Json::Object(map) => {
                let entry = |(key, item)| (key, Box::new(Self::new(item, origin)));
                Value::Map(map.into_iter().map(entry).collect())
            }
            scalar => Value::Scalar(scalar),
        };
        Self::of(value, origin)
    }

    /// An empty map.
    pub(super) fn map(origin: Origin<'a>) -> Self {
        Self::of(Value::Map(BTreeMap::new()), origin)
    }

    /// A list of values.
    pub(super) fn list(items: Vec<Self>, origin: Origin<'a>) -> Self {
        Self::of(Value::List(items), origin)
    }

    /// What stands in a text, value by value.
    pub(super) fn node<'n>(node: &'a Node<'n>, source: &'a Source<'n>, by: By) -> Self {
        let value = match &node.value {
            Yaml::Sequence(items) => {
                Value::List(items.iter().map(|item| Self::node(item, source, by)).collect())
            }
            Yaml::Mapping(map) => Value::Map(
                map.iter()
                    .map(|entry| (entry.key.to_string(), Box::new(Self::node(&entry.value, source, by))))
                    .collect(),
            ),
            _ => Value::Scalar(node.to_json()),
        };
        Self::of(value, Origin::written(by, source, node.span))
    }

    /// Adds what the value was made of besides.
    #[must_use]
    pub(super) fn made_of(mut self, origins: impl IntoIterator<Item = Origin<'a>>) -> Self {
        self.related.extend(origins.into_iter().map(|origin| (Relation::MadeOf, origin)));
        self
    }

    /// A finding about the value, at its place.
    pub(super) fn finding(&self, code: &'static Code, message: impl Into<String>) -> Finding {
        let finding = Finding::new(code, message);
        match self.origin.place() {
            Some(place) => finding.at(place),
            None => finding,
        }
    }

    /// The same without what has nothing in it, so that it can be laid over something.
    pub(super) fn without_empty(mut self) -> Self {
        if let Value::Map(map) = &mut self.value {
            map.retain(|_, item| !item.is_empty());
        }
        self
    }

    /// The same with numbers and booleans as texts, for fields that hold texts alone.
    pub(super) fn texts(mut self) -> Self {
        self.value = match self.value {
            Value::Scalar(json @ (Json::Number(_) | Json::Bool(_))) => Value::Scalar(json.to_string().into()),
            Value::List(items) => Value::List(items.into_iter().map(Self::texts).collect()),
            Value::Map(map) => {
                Value::Map(map.into_iter().map(|(key, item)| (key, Box::new(item.texts()))).collect())
            }
            scalar => scalar,
        };
        self
    }

    /// Remembers one more thing that the value was made of.
    pub(super) fn add_origin(&mut self, origin: Origin<'a>) {
        self.related.push((Relation::MadeOf, origin));
    }

    /// Where the value comes from.
    pub fn origin(&self) -> Origin<'a> {
        self.origin
    }

    /// What else there is to say about that.
    pub fn related(&self) -> &[(Relation, Origin<'a>)] {
        &self.related
    }

    pub(super) fn value(&self) -> &Value<'a> {
        &self.value
    }

    /// The value without its origins.
    pub fn to_json(&self) -> Json {
        match &self.value {
            Value::Scalar(json) => json.clone(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(map) => {
                let entries = map.iter().map(|(key, item)| (key.clone(), item.to_json()));
                entries.collect::<serde_json::Map<_, _>>().into()
            }
        }
    }

    /// Whether there is nothing in it: null, or an empty text, list or map.
    pub(super) fn is_empty(&self) -> bool {
        match &self.value {
            Value::Scalar(Json::Null) => true,
            Value::Scalar(Json::String(text)) => text.is_empty(),
            Value::Scalar(_) => false,
            Value::List(items) => items.is_empty(),
            Value::Map(map) => map.is_empty(),
        }
    }

    /// The text, if this is one.
    pub(super) fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub(super) fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The items, if this is a list.
    pub(super) fn items_mut(&mut self) -> &mut [Self] {
        match &mut self.value {
            Value::List(items) => items,
            _ => &mut [],
        }
    }

    /// The items, taken out of the list.
    pub(super) fn into_items(self) -> Vec<Self> {
        match self.value {
            Value::List(items) => items,
            _ => Vec::new(),
        }
    }

    /// The value under a key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(map) => map.get(key).map(Box::as_ref),
            _ => None,
        }
    }

    /// The items of the list under a key.
    pub(super) fn items_of(&self, key: &str) -> &[Self] {
        self.get(key).map(Self::items).unwrap_or_default()
    }

    /// The text under a key; empty if missing.
    pub(super) fn text(&self, key: &str) -> &str {
        self.get(key).and_then(Self::as_str).unwrap_or("")
    }

    /// The value at a path of keys.
    pub(super) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |draft, key| draft.get(key))
    }

    /// The value at a path, or what there is nearest above it.
    pub(super) fn nearest(&self, path: &[Step<'_>]) -> &Self {
        let mut nearest = self;
        for step in path {
            let below = match step {
                Step::Key(key) => nearest.get(key),
                Step::Index(index) => nearest.items().get(*index),
            };
            match below {
                Some(below) => nearest = below,
                None => break,
            }
        }
        nearest
    }

    /// The value at a path of keys.
    pub(super) fn at_mut(&mut self, path: &[&str]) -> Option<&mut Self> {
        path.iter().try_fold(self, |draft, key| match &mut draft.value {
            Value::Map(map) => map.get_mut(*key).map(Box::as_mut),
            _ => None,
        })
    }

    /// Sets a value under a path of keys, over what was there; maps on the way are made where they are missing.
    pub(super) fn set(&mut self, path: &[&str], item: Self) {
        let Some((key, rest)) = path.split_first() else {
            let former = std::mem::replace(self, item);
            self.record_override(former);
            return;
        };
        if !matches!(self.value, Value::Map(_)) {
            let former = std::mem::replace(self, Self::map(item.origin));
            self.record_override(former);
        }
        let Value::Map(map) = &mut self.value else { return };
        match map.entry((*key).to_owned()) {
            Entry::Occupied(mut entry) => entry.get_mut().set(rest, item),
            Entry::Vacant(entry) if rest.is_empty() => drop(entry.insert(Box::new(item))),
            Entry::Vacant(entry) => entry.insert(Box::new(Self::map(item.origin))).set(rest, item),
        }
    }

    /// Sets a value under a path of keys and positions. The position behind the last item adds one, and a list that is not
    /// there is made.
    ///
    /// # Errors
    /// The length of a list that has no such position.
    pub(super) fn assign(&mut self, path: &[PathStep], item: Self) -> Result<(), usize> {
        let Some((step, rest)) = path.split_first() else {
            self.set(&[], item);
            return Ok(());
        };
        let origin = item.origin;
        match step {
            PathStep::Key(key) => {
                if self.get(key).is_none() {
                    self.set(&[key], Self::map(origin));
                }
                self.at_mut(&[key]).map_or(Ok(()), |below| below.assign(rest, item))
            }
            PathStep::Index(index) => {
                if !matches!(self.value, Value::List(_)) {
                    self.set(&[], Self::list(Vec::new(), origin));
                }
                let Value::List(items) = &mut self.value else { return Ok(()) };
                if *index == items.len() {
                    items.push(Self::map(origin));
                }
                let length = items.len();
                items.get_mut(*index).map_or(Err(length), |below| below.assign(rest, item))
            }
        }
    }

    /// Sets a value unless it is empty.
    pub(super) fn set_some(&mut self, path: &[&str], item: Self) {
        if !item.is_empty() {
            self.set(path, item);
        }
    }

    /// Sets a value where there is none, or an empty one.
    pub(super) fn set_default(&mut self, path: &[&str], item: Self) {
        if self.at(path).is_none_or(Self::is_empty) {
            self.set_some(path, item);
        }
    }

    /// Takes the value under a key away.
    pub(super) fn remove(&mut self, key: &str) -> Option<Self> {
        match &mut self.value {
            Value::Map(map) => map.remove(key).map(|item| *item),
            _ => None,
        }
    }

    /// Keeps the items of a list for which `keep` says so.
    pub(super) fn retain(&mut self, keep: impl FnMut(&Self) -> bool) {
        if let Value::List(items) = &mut self.value {
            items.retain(keep);
        }
    }

    /// Appends to a list.
    pub(super) fn push(&mut self, item: Self) {
        if let Value::List(items) = &mut self.value {
            items.push(item);
        }
    }

    /// Lays another value over this one: maps are merged, anything else takes the place of what was there.
    pub(super) fn merge(&mut self, over: Self) {
        match (&mut self.value, over) {
            (Value::Map(map), Self { value: Value::Map(others), .. }) => {
                for (key, item) in others {
                    match map.entry(key) {
                        Entry::Occupied(mut entry) => entry.get_mut().merge(*item),
                        Entry::Vacant(entry) => drop(entry.insert(item)),
                    }
                }
            }
            (_, over) => self.set(&[], over),
        }
    }

    /// Remembers what this value took the place of, when that said something else.
    fn record_override(&mut self, former: Self) {
        if former.is_empty() || former.to_json() == self.to_json() {
            return;
        }
        self.related.push((Relation::InsteadOf, former.origin));
        self.related.extend(former.related.into_iter().filter(|(how, _)| *how == Relation::InsteadOf));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FLAG: Origin<'static> = Origin { by: By::Flag("--set"), at: None };
    const CARGO: Origin<'static> = Origin { by: By::Cargo, at: None };

    #[test]
    fn what_is_overwritten_is_remembered() {
        let mut draft = Draft::new(json!({"spec": {"a": 1, "b": [1]}}), CARGO);
        draft.set(&["spec", "a"], Draft::new(2, FLAG));
        draft.set(&["spec", "b"], Draft::new(json!([1]), FLAG));
        draft.merge(Draft::new(json!({"spec": {"c": {"d": 4}}}), FLAG));
        assert_eq!(draft.to_json(), json!({"spec": {"a": 2, "b": [1], "c": {"d": 4}}}));
        let related = |key| draft.at(&["spec", key]).unwrap().related().len();
        assert_eq!([related("a"), related("b"), related("c")], [1, 0, 0]);
    }

    #[test]
    fn positions_in_lists_are_set_and_added() {
        let mut draft = Draft::new(json!({"a": [{"b": 1, "c": 2}]}), CARGO);
        let path = |index| ["a".into(), PathStep::Index(index), "b".into()];
        assert_eq!(draft.assign(&path(0), Draft::new(3, FLAG)), Ok(()));
        assert_eq!(draft.assign(&path(1), Draft::new(4, FLAG)), Ok(()));
        assert_eq!(draft.assign(&path(3), Draft::new(5, FLAG)), Err(2));
        assert_eq!(draft.assign(&["d".into(), PathStep::Index(0)], Draft::new("x", FLAG)), Ok(()));
        assert_eq!(draft.to_json(), json!({"a": [{"b": 3, "c": 2}, {"b": 4}], "d": ["x"]}));
    }

    #[test]
    fn empty_values_do_not_count() {
        let mut draft = Draft::new(json!({"a": null, "b": "x"}), CARGO);
        draft.set_default(&["a"], Draft::new("new", FLAG));
        draft.set_default(&["b"], Draft::new("new", FLAG));
        draft.set_some(&["c"], Draft::new(json!([]), FLAG));
        draft.set(&["a", "deep"], Draft::new(1, FLAG));
        assert_eq!(draft.to_json(), json!({"a": {"deep": 1}, "b": "x"}));
    }
}
