//! What the values of OLM's properties look like, and what the properties of a bundle say.
//!
//! opm decodes the values of the types it knows and refuses what does not fit; all other values are nobody's business but
//! their owner's. `shape` has the types.

mod shape;

use std::borrow::Cow;
use std::fmt;

use olmkit_bundle::version::Version;
use olmkit_bundle::yaml::{Node, Value, json_kind};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use crate::fbc::{self, property};
use crate::graph::{Release, VersionRelease};
use shape::{BUNDLE_OBJECT, CHANNEL, CSV_METADATA, GVK, PACKAGE, PACKAGE_REQUIRED, field};

pub use shape::{CSV_METADATA_FIELDS, Field, Shape};

/// The value of an `olm.package` property.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package<'a> {
    /// Of which package.
    pub name: Cow<'a, str>,
    /// In which version.
    pub version: Cow<'a, str>,
    /// And which release of that, if it says so.
    pub release: Cow<'a, str>,
}

impl Package<'_> {
    /// The version with its release, when both can be read.
    pub fn version_release(&self) -> Option<VersionRelease> {
        let version: Version = self.version.parse().ok()?;
        Some(VersionRelease { version, release: Release::parse(&self.release).ok()? })
    }
}

/// The `olm.package` properties of a bundle whose values can be read, with their numbers.
pub fn packages<'a>(bundle: &fbc::Bundle<'a>) -> Vec<(usize, Package<'a>)> {
    let properties =
        bundle.properties.iter().enumerate().filter(|(_, found)| found.kind.as_str() == property::PACKAGE);
    properties
        .filter_map(|(at, found)| {
            let value = found.value.as_ref()?;
            let is_right = fits(property::PACKAGE, value)
                || type_mismatch(property::PACKAGE, &value.to_json()).is_none();
            let [name, version, release] = value.texts_of(["packageName", "version", "release"]);
            is_right.then_some((at, Package { name, version, release }))
        })
        .collect()
}

/// Whether the value of a property is surely right. It is looked at as it stands, and nothing is made of it.
pub fn fits(kind: &str, value: &fbc::Value<'_>) -> bool {
    let Some(shape) = shape(kind) else { return true };
    if kind == property::BUNDLE_OBJECT && value.only_text("data").is_some() {
        return true;
    }
    if let Some(json) = value.as_written() {
        return Fit(shape).deserialize(&mut serde_json::Deserializer::from_str(json)).unwrap_or(false);
    }
    value.as_node().is_some_and(|node| shape.fits(node))
}

/// What is wrong with the value of a property, if anything is: the path to it and what was expected and found.
pub fn type_mismatch(kind: &str, value: &Json) -> Option<String> {
    shape(kind)?.type_mismatch(value, "")
}

/// What the values of a type of properties look like, if opm knows it.
fn shape(kind: &str) -> Option<Shape> {
    Some(match kind {
        property::PACKAGE => PACKAGE,
        property::PACKAGE_REQUIRED => PACKAGE_REQUIRED,
        property::GVK | property::GVK_REQUIRED => GVK,
        property::BUNDLE_OBJECT => BUNDLE_OBJECT,
        property::CHANNEL => CHANNEL,
        property::CSV_METADATA => CSV_METADATA,
        _ => return None,
    })
}

/// Looks at JSON as it goes by.
struct Fit(Shape);

impl<'de> DeserializeSeed<'de> for Fit {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        match self.0 {
            Shape::List(_) | Shape::Map(_) | Shape::Fields(_) => deserializer.deserialize_any(self),
            // Most of it is long texts: what they begin with is enough.
            leaf => <&RawValue>::deserialize(deserializer).map(|value| leaf.fits_json(value.get())),
        }
    }
}

impl<'de> Visitor<'de> for Fit {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let (shape, mut fits) = match self.0 {
            Shape::List(shape) => (*shape, true),
            _ => (Shape::Any, false),
        };
        while let Some(item) = items.next_element_seed(Fit(shape))? {
            fits &= item;
        }
        Ok(fits)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<bool, A::Error> {
        let mut fits = matches!(self.0, Shape::Map(_) | Shape::Fields(_));
        while let Some(shape) = entries.next_key_seed(Key(self.0))? {
            fits &= entries.next_value_seed(Fit(shape))?;
        }
        Ok(fits)
    }
}

/// The shape of what stands behind a key.
struct Key(Shape);

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Shape;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Shape, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Shape, E> {
        Ok(match self.0 {
            Shape::Map(shape) => *shape,
            Shape::Fields(fields) => field(fields, key).map_or(Shape::Any, |field| field.shape),
            _ => Shape::Any,
        })
    }
}

impl Shape {
    /// Whether JSON that is no list and no map, or may be anything, is of this shape.
    fn fits_json(self, json: &str) -> bool {
        match json.as_bytes().first() {
            Some(b'n') => true,
            Some(b'"') => matches!(self, Self::Any | Self::Text),
            Some(b't' | b'f') => matches!(self, Self::Any | Self::Bool),
            Some(b'{' | b'[') => matches!(self, Self::Any),
            _ => matches!(self, Self::Any) || matches!(self, Self::Integer) && json.parse::<i64>().is_ok(),
        }
    }

    fn fits(self, node: &Node<'_>) -> bool {
        match (self, &node.value) {
            (Self::Any, _)
            | (_, Value::Null)
            | (Self::Text, Value::String(_))
            | (Self::Bool, Value::Bool(_))
            | (Self::Integer, Value::Int(_)) => true,
            (Self::List(shape), Value::Sequence(items)) => items.iter().all(|item| shape.fits(item)),
            (Self::Map(shape), Value::Mapping(map)) => map.iter().all(|entry| shape.fits(&entry.value)),
            (Self::Fields(fields), Value::Mapping(map)) => map
                .iter()
                .all(|entry| field(fields, &entry.key).is_none_or(|field| field.shape.fits(&entry.value))),
            _ => false,
        }
    }

    fn type_mismatch(self, value: &Json, path: &str) -> Option<String> {
        let inner = |step: &str| if path.is_empty() { step.to_owned() } else { format!("{path}.{step}") };
        match (self, value) {
            (Self::Any, _)
            | (_, Json::Null)
            | (Self::Text, Json::String(_))
            | (Self::Bool, Json::Bool(_)) => None,
            (Self::Integer, Json::Number(number)) if number.is_i64() => None,
            (Self::List(shape), Json::Array(items)) => {
                let mut items = items.iter().enumerate();
                items.find_map(|(at, item)| shape.type_mismatch(item, &format!("{path}[{at}]")))
            }
            (Self::Map(shape), Json::Object(map)) => {
                map.iter().find_map(|(key, value)| shape.type_mismatch(value, &inner(key)))
            }
            (Self::Fields(fields), Json::Object(map)) => map.iter().find_map(|(key, value)| {
                let Field { name, shape, .. } = field(fields, key)?;
                shape.type_mismatch(value, &inner(name))
            }),
            _ => {
                let field = if path.is_empty() { String::new() } else { format!("`{path}`: ") };
                Some(format!("{field}expected {}, found {}", self.name(), json_kind(value)))
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Any => "anything",
            Self::Text => "a string",
            Self::Bool => "a boolean",
            Self::Integer => "an integer",
            Self::List(_) => "a list",
            Self::Map(_) | Self::Fields(_) => "a map",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::load::CatalogFiles;

    #[test]
    fn values_that_do_not_fit() {
        let why = |kind: &str, value: Json| {
            let why = type_mismatch(kind, &value).unwrap_or_default();
            for start in ["", "# YAML\n"] {
                let blob = json!({"schema": "olm.bundle", "properties": [{"type": kind, "value": value}]});
                let files = CatalogFiles::from_text("catalog", format!("{start}{blob}"));
                let catalog = fbc::Catalog::parse(&files);
                let value = catalog.bundles[0].properties[0].value.as_ref().unwrap();
                assert_eq!(why.is_empty(), fits(kind, value), "{kind} {blob}");
            }
            why
        };
        assert_eq!(
            why(property::PACKAGE, json!({"packagename": "a", "version": 1.0})),
            "`version`: expected a string, found a number"
        );
        assert_eq!(why(property::GVK, json!([])), "expected a map, found a list");
        assert_eq!(
            why(property::CSV_METADATA, json!({"annotations": {"a": true}})),
            "`annotations.a`: expected a string, found a boolean"
        );
        let resources = json!({"crdDescriptions": {"owned": [{"resources": [{"kind": "Pod"}, 7]}]}});
        assert_eq!(
            why(property::CSV_METADATA, resources),
            "`crdDescriptions.owned[0].resources[1]`: expected a map, found a number"
        );
        assert_eq!(why(property::GVK, json!(null)), "");
        assert_eq!(why("my.own", json!([7])), "");
    }
}
