//! Values of expressions: how they compare, and what they are made of.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value as Json;

/// A value. Copies are cheap.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Arc<[Value]>),
    Map(Arc<[(Value, Value)]>),
    /// A type by its name.
    Type(&'static str),
}

impl Value {
    /// JSON as Go reads it: every number is a double.
    pub(super) fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            Json::String(text) => Self::String(text.as_str().into()),
            Json::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            Json::Object(map) => {
                let entry = |(key, value): (&String, &Json)| {
                    (Self::String(key.as_str().into()), Self::from_json(value))
                };
                Self::Map(map.iter().map(entry).collect())
            }
        }
    }

    /// The name of the type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
        }
    }

    /// How much work it is to look at all of it, roughly; not deeper than one level.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::String(text) => text.len() / 16,
            Self::Bytes(bytes) => bytes.len() / 16,
            Self::List(items) => items.len(),
            Self::Map(entries) => entries.len(),
            _ => 0,
        }
    }

    /// Numbers are equal whatever their kind; values of different types are not.
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Type(a), Self::Type(b)) => a == b,
            (Self::List(a), Self::List(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.equals(b))
            }
            (Self::Map(a), Self::Map(b)) => {
                let same =
                    |(key, value): &(Self, Self)| find(b, key).is_some_and(|other| value.equals(other));
                a.len() == b.len() && a.iter().all(same)
            }
            _ => self.order(other) == Some(Ordering::Equal),
        }
    }

    /// The order of two values; none where there is none.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Some(a.cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Uint(a), Self::Uint(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Uint(b)) => Some(u64::try_from(*a).map_or(Ordering::Less, |a| a.cmp(b))),
            (Self::Uint(a), Self::Int(b)) => Some(u64::try_from(*b).map_or(Ordering::Greater, |b| a.cmp(&b))),
            // As cel-go does: what a double cannot hold exactly is rounded to one.
            (Self::Double(a), _) => a.partial_cmp(&other.as_double()?),
            (_, Self::Double(b)) => self.as_double()?.partial_cmp(b),
            _ => None,
        }
    }

    fn as_double(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Uint(value) => Some(*value as f64),
            Self::Double(value) => Some(*value),
            _ => None,
        }
    }
}

/// The value of a key.
pub(super) fn find<'v>(entries: &'v [(Value, Value)], key: &Value) -> Option<&'v Value> {
    entries.iter().find(|(other, _)| other.equals(key)).map(|(_, value)| value)
}
