//! What an `olm.csv.metadata` shows of a ClusterServiceVersion, field by field as Go writes those types: unknown fields are left out,
//! some that are absent are written nevertheless (operator-framework/api `pkg/operators/v1alpha1`).

use std::fmt;

use olmkit_bundle::go;
use olmkit_catalog::json::push_text;
use olmkit_catalog::property::{CSV_METADATA_FIELDS as METADATA, Field, Shape};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::canonical::{Canonical, Key};

/// The fields of an `olm.csv.metadata` as JSON text.
pub(super) struct CsvMetadataJson {
    text: String,
    /// Where in it the values of the table's fields are.
    places: Places,
}

impl CsvMetadataJson {
    /// Reads the property's value, whose keys are sorted; none when it is not of its type.
    pub(super) fn read(metadata: &str) -> Option<Self> {
        let mut text = String::with_capacity(metadata.len());
        let mut deserializer = serde_json::Deserializer::from_str(metadata);
        let places = Fields { fields: METADATA, out: &mut text }.deserialize(&mut deserializer).ok()?;
        Some(Self { text, places })
    }

    /// A field's JSON; none when it is absent or empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let at = METADATA.iter().position(|field| field.name == name)?;
        self.places[at].as_ref().map(|place| &self.text[place.value..place.end - 1])
    }
}

/// What is written of nothing.
fn empty(shape: Shape) -> &'static str {
    match shape {
        Shape::Any => "null",
        Shape::Text => "\"\"",
        Shape::Bool => "false",
        Shape::Integer => "0",
        Shape::List(_) => "[]",
        Shape::Map(_) | Shape::Fields(_) => "{}",
    }
}

fn is_empty(json: &str) -> bool {
    matches!(json, "null" | "\"\"" | "0" | "[]" | "{}")
}

/// Where a member stands in the text, and its value; the comma behind it belongs to it.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    value: usize,
    end: usize,
}

/// The places of the fields of one table.
type Places = [Option<Place>; METADATA.len()];

/// Appends a value of some shape.
struct Filled<'o> {
    shape: Shape,
    out: &'o mut String,
}

impl<'de> DeserializeSeed<'de> for Filled<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.shape {
            Shape::Any => Canonical { out: self.out, escape_html: true }.deserialize(deserializer),
            Shape::Fields(fields) => {
                Fields { fields, out: self.out }.deserialize(deserializer).map(|_places| ())
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Filled<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.shape {
            Shape::Any => "a value",
            Shape::Text => "a string",
            Shape::Bool => "a boolean",
            Shape::Integer => "an integer",
            Shape::List(_) => "a list",
            Shape::Map(_) | Shape::Fields(_) => "a map",
        })
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.out.push_str(empty(self.shape));
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        match self.shape {
            Shape::Bool => Canonical { out: self.out, escape_html: true }.visit_bool(value),
            _ => Err(E::invalid_type(serde::de::Unexpected::Bool(value), &self)),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        match self.shape {
            Shape::Integer => Canonical { out: self.out, escape_html: true }.visit_i64(value),
            _ => Err(E::invalid_type(serde::de::Unexpected::Signed(value), &self)),
        }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.visit_i64(i64::try_from(value).unwrap_or(i64::MAX))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.shape {
            Shape::Text => Canonical { out: self.out, escape_html: true }.visit_str(text),
            _ => Err(E::invalid_type(serde::de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { shape: Shape::List(shape), out } = self else {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        };
        out.push('[');
        while items.next_element_seed(Filled { shape: *shape, out })?.is_some() {
            out.push(',');
        }
        end(out, ']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Self { shape: Shape::Map(shape), out } = self else {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self));
        };
        out.push('{');
        while let Some(key) = entries.next_key_seed(Key)? {
            push_text(out, &key, true);
            out.push(':');
            entries.next_value_seed(Filled { shape: *shape, out })?;
            out.push(',');
        }
        end(out, '}');
        Ok(())
    }
}

/// Appends the fields of a type, and tells where they are.
struct Fields<'o> {
    fields: &'static [Field],
    out: &'o mut String,
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = Places;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Places, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Places;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_unit<E>(self) -> Result<Places, E> {
        self.out.push('{');
        Ok(self.end([None; METADATA.len()]))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Places, A::Error> {
        self.out.push('{');
        let mut places: Places = [None; METADATA.len()];
        while let Some(key) = entries.next_key_seed(Key)? {
            let Some(at) = go::field(&key, self.fields.iter().map(|field| field.name)) else {
                entries.next_value::<IgnoredAny>()?;
                continue;
            };
            let Field { shape, name, always } = self.fields[at];
            let start = self.out.len();
            push_text(self.out, name, true);
            self.out.push(':');
            let value = self.out.len();
            entries.next_value_seed(Filled { shape, out: self.out })?;
            // What is absent and written nevertheless is added at the end.
            if !always && is_empty(&self.out[value..]) {
                self.out.truncate(start);
                continue;
            }
            self.out.push(',');
            let place = Place { start, value, end: self.out.len() };
            // Of two spellings of a field the last one counts.
            if let Some(before) = places[at].replace(place) {
                self.out.replace_range(before.start..before.end, "");
                let gone = before.end - before.start;
                for place in places.iter_mut().flatten().filter(|place| place.start > before.start) {
                    *place =
                        Place { start: place.start - gone, value: place.value - gone, end: place.end - gone };
                }
            }
        }
        Ok(self.end(places))
    }
}

impl Fields<'_> {
    fn end(self, places: Places) -> Places {
        for (field, place) in self.fields.iter().zip(places) {
            if field.always && place.is_none() {
                push_text(self.out, field.name, true);
                self.out.push(':');
                self.out.push_str(empty(field.shape));
                self.out.push(',');
            }
        }
        end(self.out, '}');
        places
    }
}

/// Ends a list or map whose members have a comma behind them.
fn end(out: &mut String, bracket: char) {
    if out.ends_with(',') {
        out.pop();
    }
    out.push(bracket);
}
