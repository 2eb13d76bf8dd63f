//! A node to a typed value through serde, by the rules of Go's encoding/json that Kubernetes types live by.
//!
//! - A field is matched without regard to case when nothing matches exactly.
//! - Null leaves the field at its default.
//! - A string field takes numbers and booleans as text, an integer field takes `3.0`.
//! - Unknown fields are passed over, and remembered with the names they might have meant.
//!
//! An error knows the place and the path of the value that did not fit.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::{Entry, Mapping, Node, Value};
use crate::go;
use crate::source::Span;

/// The type of `resources.limits`, which Kubernetes reads from a text or a number.
const QUANTITY: &str = "Quantity";
/// Bytes that the entries of lists and maps may take as their types, however short their text is: `- {}` is five bytes, and
/// a `Volume` of Kubernetes more than 3,000.
const ROOM: usize = 32 << 20;
/// The same for each byte of text.
const ROOM_PER_BYTE: usize = 4;
/// What a map in a list takes at least: rules that look at it as JSON make a node of a tree of it.
const LEAST_OF_A_MAP: usize = 640;

/// A value that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// What was expected and found.
    pub message: String,
    /// The value that did not fit.
    pub span: Option<Span>,
    /// The path to it from where decoding began, such as `install.spec.deployments[0].name`; empty at the top.
    pub path: String,
    /// It has more entries than are read; with fewer it might fit.
    pub too_large: bool,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "`{}`: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for DecodeError {}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), span: None, path: String::new(), too_large: false }
    }
}

impl DecodeError {
    /// Adds what the caller knows: where the value stands and how it was reached.
    fn within(mut self, node: &Node<'_>, step: impl fmt::Display) -> Self {
        self.span.get_or_insert(node.span);
        let step = step.to_string();
        self.path = match self.path.as_str() {
            "" => step,
            rest if rest.starts_with('[') => format!("{step}{rest}"),
            rest => format!("{step}.{rest}"),
        };
        self
    }
}

/// A field that its type does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownField {
    /// The key as written.
    pub key: String,
    /// Where the key stands.
    pub span: Span,
    /// The fields that the type has.
    pub expected: &'static [&'static str],
}

/// What decoding has seen and passed over.
#[derive(Debug, Default)]
pub struct Noted {
    /// Fields that types do not have.
    pub unknown: Vec<UnknownField>,
    /// Numbers and booleans that were taken for text.
    pub as_text: Vec<Span>,
    /// Those of them that are quantities, which Kubernetes takes as numbers too.
    pub quantities: Vec<Span>,
}

/// Decodes a node.
///
/// ```
/// #[derive(serde::Deserialize)]
/// struct Spec { version: String, replicas: i32 }
/// let document = olmkit_bundle::yaml::first_document("{Version: 1.10, replicas: 3.0}").unwrap();
/// let spec: Spec = olmkit_bundle::yaml::decode::decode(&document.root).unwrap();
/// assert_eq!((spec.version.as_str(), spec.replicas), ("1.1", 3));
/// ```
///
/// # Errors
/// When a value does not fit its type.
pub fn decode<'de, T: de::Deserialize<'de>>(node: &'de Node<'de>) -> Result<T, DecodeError> {
    decode_strict(node).map(|(value, _)| value)
}

/// Like [`decode`], and tells which fields the type does not have.
///
/// # Errors
/// When a value does not fit its type.
pub fn decode_strict<'de, T: de::Deserialize<'de>>(
    node: &'de Node<'de>,
) -> Result<(T, Vec<UnknownField>), DecodeError> {
    decode_noting(node).map(|(value, noted)| (value, noted.unknown))
}

/// Like [`decode`], and tells what was passed over.
///
/// # Errors
/// When a value does not fit its type.
pub fn decode_noting<'de, T: de::Deserialize<'de>>(node: &'de Node<'de>) -> Result<(T, Noted), DecodeError> {
    let run = Run { least_of_a_map: LEAST_OF_A_MAP, ..Run::over(node) };
    let value = T::deserialize(Decoder { node, run: &run }).map_err(|mut error| {
        error.span.get_or_insert(node.span);
        error
    })?;
    Ok((value, run.noted.into_inner()))
}

/// Decodes a node with a seed, which may be one that keeps nothing but looks at what goes by.
///
/// # Errors
/// When a value does not fit what the seed expects.
pub fn decode_seed<'de, S: DeserializeSeed<'de>>(
    node: &'de Node<'de>,
    seed: S,
) -> Result<S::Value, DecodeError> {
    seed.deserialize(Decoder { node, run: &Run::over(node) })
}

/// What all values of one decoding share.
struct Run {
    noted: RefCell<Noted>,
    /// Bytes that entries may take at most.
    room: usize,
    /// Bytes that entries took so far.
    taken: Cell<usize>,
    /// What a map in a list counts at least.
    least_of_a_map: usize,
}

impl Run {
    fn over(node: &Node<'_>) -> Self {
        let length = node.span.end.saturating_sub(node.span.start) as usize;
        let room = ROOM.saturating_add(length.saturating_mul(ROOM_PER_BYTE));
        Self { noted: RefCell::default(), room, taken: Cell::new(0), least_of_a_map: 0 }
    }

    /// Takes the room of one more value.
    fn take(&self, bytes: usize) -> Result<(), DecodeError> {
        self.taken.set(self.taken.get().saturating_add(bytes));
        if self.taken.get() <= self.room {
            return Ok(());
        }
        let room = self.room >> 20;
        let message = format!("the entries up to here need more than {room} MiB of memory");
        Err(DecodeError { message, span: None, path: String::new(), too_large: true })
    }
}

#[derive(Clone, Copy)]
struct Decoder<'de, 'c> {
    node: &'de Node<'de>,
    run: &'c Run,
}

impl<'de, 'c> Decoder<'de, 'c> {
    fn child(self, node: &'de Node<'de>) -> Self {
        Self { node, ..self }
    }

    fn mismatch<T>(self, expected: &str) -> Result<T, DecodeError> {
        let mut error = <DecodeError as de::Error>::custom(format_args!(
            "expected {expected}, found {}",
            self.node.value
        ));
        error.span = Some(self.node.span);
        Err(error)
    }

    fn entries(self, mapping: &'de Mapping<'de>) -> Entries<'de, 'c> {
        Entries {
            decoder: self,
            entries: mapping.iter().map(|entry| (entry.key.as_ref(), entry)).collect(),
            at: 0,
        }
    }
}

macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            match self.node.value {
                Value::Null => visitor.visit_u64(0),
                Value::Int(value) => visitor.visit_i64(value),
                Value::UInt(value) => visitor.visit_u64(value),
                Value::Float(value) if value.fract() == 0.0 && value.abs() < 9.0e15 => visitor.visit_i64(value as i64),
                _ => self.mismatch("an integer"),
            }
        }
    )*};
}

macro_rules! floats {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            match self.node.value {
                Value::Null => visitor.visit_f64(0.0),
                Value::Int(value) => visitor.visit_f64(value as f64),
                Value::UInt(value) => visitor.visit_f64(value as f64),
                Value::Float(value) => visitor.visit_f64(value),
                _ => self.mismatch("a number"),
            }
        }
    )*};
}

macro_rules! strings {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            if let Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) = self.node.value {
                self.run.noted.borrow_mut().as_text.push(self.node.span);
            }
            match self.node.to_text() {
                Some(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
                Some(Cow::Owned(text)) => visitor.visit_string(text),
                None => self.mismatch("a string"),
            }
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Decoder<'de, '_> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value) => visitor.visit_i64(*value),
            Value::UInt(value) => visitor.visit_u64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Sequence(items) => {
                visitor.visit_seq(Items { decoder: self, items: items.iter().enumerate() })
            }
            Value::Mapping(mapping) => visitor.visit_map(self.entries(mapping)),
        }
    }

    integers! { deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }
    floats! { deserialize_f32 deserialize_f64 }
    strings! { deserialize_str deserialize_string deserialize_char deserialize_identifier }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.node.value {
            Value::Null => visitor.visit_bool(false),
            Value::Bool(value) => visitor.visit_bool(value),
            _ => self.mismatch("true or false"),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        if name == QUANTITY && !matches!(self.node.value, Value::String(_)) {
            self.run.noted.borrow_mut().quantities.push(self.node.span);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.value {
            Value::Null => visitor.visit_seq(Items { decoder: self, items: [].iter().enumerate() }),
            Value::Sequence(items) => {
                visitor.visit_seq(Items { decoder: self, items: items.iter().enumerate() })
            }
            _ => self.mismatch("a list"),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.value {
            Value::Null => visitor.visit_map(Entries { decoder: self, entries: Vec::new(), at: 0 }),
            Value::Mapping(mapping) => visitor.visit_map(self.entries(mapping)),
            _ => self.mismatch("a map"),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match &self.node.value {
            Value::Null => visitor.visit_map(Entries { decoder: self, entries: Vec::new(), at: 0 }),
            Value::Mapping(mapping) => {
                let entries = match_fields(mapping, fields, &self.run.noted);
                visitor.visit_map(Entries { decoder: self, entries, at: 0 })
            }
            _ => self.mismatch("a map"),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.node.to_text() {
            Some(text) => visitor.visit_enum(text.as_ref().into_deserializer()),
            None => self.mismatch("a string"),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { bytes byte_buf unit unit_struct tuple tuple_struct }
}

/// Gives each entry the name of the field it sets, drops nulls, and remembers what no field takes.
fn match_fields<'de>(
    mapping: &'de Mapping<'de>,
    fields: &'static [&'static str],
    noted: &RefCell<Noted>,
) -> Vec<(&'de str, &'de Entry<'de>)> {
    let mut matched: Vec<(&'de str, &'de Entry<'de>)> = Vec::with_capacity(mapping.len());
    for entry in mapping {
        let Some(field) = go::field(&entry.key, fields.iter().copied()).map(|at| fields[at]) else {
            noted.borrow_mut().unknown.push(UnknownField {
                key: entry.key.to_string(),
                span: entry.key_span,
                expected: fields,
            });
            continue;
        };
        if entry.value.is_null() {
            continue;
        }
        // Two spellings of one field: Go sorts the keys first, and the last one assigned stays.
        match matched.iter_mut().find(|(name, _)| *name == field) {
            Some((_, other)) if other.key < entry.key => *other = entry,
            Some(_) => {}
            None => matched.push((field, entry)),
        }
    }
    matched
}

struct Items<'de, 'c> {
    decoder: Decoder<'de, 'c>,
    items: std::iter::Enumerate<std::slice::Iter<'de, Node<'de>>>,
}

impl<'de> de::SeqAccess<'de> for Items<'de, '_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let Some((index, node)) = self.items.next() else { return Ok(None) };
        let decoder = self.decoder.child(node);
        let least = if node.as_mapping().is_some() { decoder.run.least_of_a_map } else { 0 };
        let value =
            decoder.run.take(size_of::<T::Value>().max(least)).and_then(|()| seed.deserialize(decoder));
        value.map(Some).map_err(|error| error.within(node, format_args!("[{index}]")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries<'de, 'c> {
    decoder: Decoder<'de, 'c>,
    entries: Vec<(&'de str, &'de Entry<'de>)>,
    at: usize,
}

impl<'de> de::MapAccess<'de> for Entries<'de, '_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        match self.entries.get(self.at) {
            Some((name, _)) => seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DecodeError> {
        let Some((_, entry)) = self.entries.get(self.at) else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        self.at += 1;
        let decoder = self.decoder.child(&entry.value);
        let value = decoder.run.take(size_of::<V::Value>()).and_then(|()| seed.deserialize(decoder));
        value.map_err(|error| error.within(&entry.value, &entry.key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len() - self.at)
    }
}
