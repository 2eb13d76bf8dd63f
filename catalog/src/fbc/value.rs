//! Values of a catalog file: JSON that stands as it was written, or nodes of a YAML tree, under one interface.
//!
//! JSON is taken apart only as deep as somebody looks, and what is not looked at stays a slice of the file: a
//! catalog of a hundred megabytes is mostly property values that nobody has to understand. Reading is as strict as Go's
//! encoding/json, which does not turn numbers into text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;

use olmkit_bundle::go;
use olmkit_bundle::source::Span;
use olmkit_bundle::yaml::{self, Node};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Value<'a>(Repr<'a>);

#[derive(Clone, Debug)]
enum Repr<'a> {
    /// JSON as written, and the offset of its first byte.
    Json(&'a str, u32),
    Yaml(Node<'a>),
    /// A value that stands in no file.
    Made(serde_json::Value),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The key.
    pub key: Cow<'a, str>,
    /// The value.
    pub value: Value<'a>,
}

/// A text and where it stands; empty, where its parent starts, when it is absent. Equal when the texts are.
#[derive(Clone, Debug, Default)]
pub struct Text<'a> {
    /// The text.
    pub value: Cow<'a, str>,
    /// Where it stands.
    pub span: Span,
}

impl<'a> Value<'a> {
    /// A JSON value that stands at `start` of its file, and has been checked to be one.
    pub(super) fn json(text: &'a str, start: usize) -> Self {
        Self(Repr::Json(text, Span::at(start).start))
    }

    /// A value of a YAML document.
    pub(super) fn yaml(node: Node<'a>) -> Self {
        Self(Repr::Yaml(node))
    }

    /// A value of a YAML document that is not a catalog's.
    pub(crate) fn of_node(node: Node<'a>) -> Self {
        Self::yaml(node)
    }

    /// A JSON text that is not a catalog's, and must be one value.
    pub(crate) fn of_json(text: &'a str) -> Result<Self, serde_json::Error> {
        let value = serde_json::from_str::<&RawValue>(text)?;
        Ok(Self::inside(text, 0, value))
    }

    /// The bytes it was written in; none for a value that stands in no file.
    pub fn span(&self) -> Span {
        match &self.0 {
            Repr::Json(text, start) => Span::new(*start as usize, *start as usize + text.len()),
            Repr::Yaml(node) => node.span,
            Repr::Made(_) => Span::default(),
        }
    }

    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.0 {
            Repr::Json(text, _) => match text.as_bytes().first() {
                Some(b'{') => "a map",
                Some(b'[') => "a list",
                Some(b'"') => "a string",
                Some(b't' | b'f') => "a boolean",
                Some(b'n') => "null",
                _ => "a number",
            },
            Repr::Yaml(node) => node.value.kind(),
            Repr::Made(value) => yaml::json_kind(value),
        }
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        self.kind() == "null"
    }

    /// The text, or the value again when it is none.
    ///
    /// # Errors
    /// The value, when it is not text.
    pub fn into_text(self) -> Result<Text<'a>, Self> {
        let span = self.span();
        let value = match self.0 {
            Repr::Json(text, _) if text.starts_with('"') => {
                // Without escapes it stands as it was written, between its quotes.
                let written = text.get(1..text.len() - 1).filter(|written| !written.contains('\\'));
                match written.map_or_else(|| serde_json::from_str(text), |text| Ok(JsonText(text.into()))) {
                    Ok(JsonText(value)) => value,
                    Err(_) => return Err(self),
                }
            }
            Repr::Yaml(Node { value: yaml::Value::String(value), .. }) => value,
            Repr::Made(serde_json::Value::String(value)) => Cow::Owned(value),
            _ => return Err(self),
        };
        Ok(Text { value, span })
    }

    /// The entries of a map, of equal keys the last one, in the order of the file.
    ///
    /// # Errors
    /// The value, when it is not a map.
    pub fn into_members(self) -> Result<Vec<Member<'a>>, Self> {
        match self.0 {
            Repr::Json(text, start) if text.starts_with('{') => {
                match serde_json::from_str::<JsonMap<'a>>(text) {
                    Ok(map) => Ok(map.members(text, start)),
                    Err(_) => Err(self),
                }
            }
            Repr::Yaml(Node { value: yaml::Value::Mapping(mapping), .. }) => {
                let member =
                    |entry: yaml::Entry<'a>| Member { key: entry.key, value: Self::yaml(entry.value) };
                Ok(mapping.into_iter().map(member).collect())
            }
            Repr::Made(serde_json::Value::Object(map)) => {
                let member = |(key, value)| Member { key: Cow::Owned(key), value: Self(Repr::Made(value)) };
                Ok(map.into_iter().map(member).collect())
            }
            _ => Err(self),
        }
    }

    /// The items of a list.
    ///
    /// # Errors
    /// The value, when it is not a list.
    pub fn into_items(self) -> Result<Vec<Self>, Self> {
        match self.0 {
            Repr::Json(text, start) if text.starts_with('[') => {
                match serde_json::from_str::<Vec<&'a RawValue>>(text) {
                    Ok(items) => Ok(items.into_iter().map(|item| Self::inside(text, start, item)).collect()),
                    Err(_) => Err(self),
                }
            }
            Repr::Yaml(Node { value: yaml::Value::Sequence(items), .. }) => {
                Ok(items.into_iter().map(Self::yaml).collect())
            }
            Repr::Made(serde_json::Value::Array(items)) => {
                Ok(items.into_iter().map(|item| Self(Repr::Made(item))).collect())
            }
            _ => Err(self),
        }
    }

    /// A part of a JSON text that stands at `start` of its file.
    fn inside(text: &'a str, start: u32, part: &'a RawValue) -> Self {
        Self::json(part.get(), start as usize + offset_in(text, part.get()))
    }

    /// The text that a map has under a key, which is matched as Go matches fields.
    pub(crate) fn text_of(&self, key: &str) -> Option<Cow<'_, str>> {
        match &self.0 {
            Repr::Json(..) => {
                let members = self.clone().into_members().ok()?;
                member_of(key, &members)?.value.clone().into_text().ok().map(|text| text.value)
            }
            Repr::Yaml(node) => node.as_mapping()?.get_folded(key)?.as_str().map(Cow::Borrowed),
            Repr::Made(value) => go::value_of(value, key)?.as_str().map(Cow::Borrowed),
        }
    }

    /// The same of several keys; empty where there is none.
    pub(crate) fn texts_of<const N: usize>(&self, keys: [&str; N]) -> [Cow<'a, str>; N] {
        let members = self.clone().into_members().unwrap_or_default();
        keys.map(|key| {
            let value = member_of(key, &members).map(|member| member.value.clone());
            value.and_then(|value| value.into_text().ok()).map(|text| text.value).unwrap_or_default()
        })
    }

    /// Lets a seed read the value as it goes by; none when it does not take it.
    pub fn read<'v, S: DeserializeSeed<'v>>(&'v self, seed: S) -> Option<S::Value> {
        match &self.0 {
            Repr::Json(text, _) => seed.deserialize(&mut serde_json::Deserializer::from_str(text)).ok(),
            Repr::Yaml(node) => yaml::decode::decode_seed(node, seed).ok(),
            Repr::Made(value) => seed.deserialize(value).ok(),
        }
    }

    /// The value as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.0 {
            // Checked when the file was read; what nests deeper than serde_json goes has no meaning in a catalog.
            Repr::Json(text, _) => serde_json::from_str(text).unwrap_or_default(),
            Repr::Yaml(node) => node.to_json(),
            Repr::Made(value) => value.clone(),
        }
    }
}

impl From<serde_json::Value> for Value<'_> {
    fn from(value: serde_json::Value) -> Self {
        Self(Repr::Made(value))
    }
}

/// The member that sets a field.
fn member_of<'m, 'a>(field: &str, members: &'m [Member<'a>]) -> Option<&'m Member<'a>> {
    go::entry_of(field, members, |member| &member.key)
}

/// Where `inner`, a slice of `outer`, starts in it.
fn offset_in(outer: &str, inner: &str) -> usize {
    (inner.as_ptr() as usize).saturating_sub(outer.as_ptr() as usize)
}

/// Text that borrows from the JSON where it has no escapes.
#[derive(Deserialize)]
struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);

/// The entries of a JSON map, in the order of the file, their values as they stand.
struct JsonMap<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> JsonMap<'a> {
    /// The members of a map that is a part of a text, which stands at `start` of its file.
    fn members(self, text: &'a str, start: u32) -> Vec<Member<'a>> {
        let member = |(key, value)| Member { key, value: Value::inside(text, start, value) };
        last_of_equal_keys(self.0.into_iter().map(member).collect())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonMap<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((JsonText(key), value)) = map.next_entry()? {
                    entries.push((key, value));
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_map(Entries).map(JsonMap)
    }
}

/// Keeps of members with equal keys the last, where the first one stands, as Go's maps do.
fn last_of_equal_keys(members: Vec<Member<'_>>) -> Vec<Member<'_>> {
    let twice = match members.len() {
        0 | 1 => false,
        count @ 2..=16 => (1..count).any(|at| members[..at].iter().any(|other| other.key == members[at].key)),
        _ => true,
    };
    if !twice {
        return members;
    }
    let mut first: HashMap<Cow<'_, str>, usize> = HashMap::with_capacity(members.len());
    let mut kept: Vec<Member<'_>> = Vec::with_capacity(members.len());
    for member in members {
        match first.get(&member.key) {
            Some(at) => kept[*at] = member,
            None => {
                first.insert(member.key.clone(), kept.len());
                kept.push(member);
            }
        }
    }
    kept
}

impl Text<'_> {
    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.value
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Text<'_> {}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.value == other
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self { value: Cow::Borrowed(text), span: Span::default() }
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self { value: Cow::Owned(text), span: Span::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_values_know_where_they_stand() {
        let text = r#"  {"a": [1, {"b\n": "x\ty"}], "a\u0062": null}"#;
        let members = Value::json(&text[2..], 2).into_members().unwrap();
        assert_eq!(members.iter().map(|member| &*member.key).collect::<Vec<_>>(), ["a", "ab"]);
        let [a, ab] = <[_; 2]>::try_from(members).unwrap();
        assert_eq!(ab.value.span().slice(text), "null");
        let inner = a.value.into_items().unwrap().remove(1);
        assert_eq!(inner.span().slice(text), r#"{"b\n": "x\ty"}"#);
        let b = inner.into_members().unwrap().remove(0);
        assert_eq!((&*b.key, b.value.clone().into_text().unwrap().as_str()), ("b\n", "x\ty"));
        assert_eq!(b.value.into_text().unwrap().span.slice(text), r#""x\ty""#);
    }

    #[test]
    fn of_equal_keys_the_last_counts() {
        for filler in [0, 20] {
            let filler: String = (0..filler).map(|at| format!(r#""k{at}": 0, "#)).collect();
            let text = format!(r#"{{"a": 1, {filler}"a": 2}}"#);
            let members = Value::json(&text, 0).into_members().unwrap();
            let values: Vec<_> = members
                .iter()
                .filter(|member| member.key == "a")
                .map(|member| member.value.to_json())
                .collect();
            assert_eq!(values, [2]);
        }
    }

    #[test]
    fn what_is_something_else_comes_back() {
        assert_eq!(Value::json("7", 0).into_text().unwrap_err().kind(), "a number");
        assert_eq!(Value::json("[]", 0).into_members().unwrap_err().kind(), "a list");
        assert_eq!(Value::json("{}", 0).into_items().unwrap_err().kind(), "a map");
        assert!(Value::from(serde_json::Value::Null).is_null());
    }
}
