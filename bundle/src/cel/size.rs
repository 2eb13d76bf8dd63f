//! How large values can be: what was computed of them, and by the schema that they come from (apiserver
//! `pkg/cel/common/schemas.go`).

use super::types::property;
use crate::schema::number::Number;
use crate::schema::{Additional, Schema};

/// What a request to the API server may have.
const REQUEST: u64 = 3 << 20;
/// Reading a character costs a tenth.
pub(super) const TRAVERSAL: f64 = 0.1;

/// The fewest and the most characters, bytes or items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Size {
    pub(super) const UNKNOWN: Self = Self { least: 0, most: u64::MAX };

    pub(super) fn exactly(count: usize) -> Self {
        Self { least: count as u64, most: count as u64 }
    }

    pub(super) fn up_to(most: u64) -> Self {
        Self { least: 0, most }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { least: self.least.saturating_add(other.least), most: self.most.saturating_add(other.most) }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self { least: self.least.saturating_mul(other.least), most: self.most.saturating_mul(other.most) }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// What it costs to go through all of it.
    pub(super) fn traversal(self) -> u64 {
        scaled(self.most, TRAVERSAL)
    }
}

pub(super) fn scaled(count: u64, factor: f64) -> u64 {
    // Conversions of floats stay at the largest number.
    (count as f64 * factor).ceil() as u64
}

/// The sizes of the keys and values of a list or map that was computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries {
    pub(super) is_list: bool,
    pub(super) keys: Size,
    pub(super) values: Size,
}

impl Entries {
    pub(super) fn or(self, other: Self) -> Self {
        Self { is_list: self.is_list, keys: self.keys.or(other.keys), values: self.values.or(other.values) }
    }
}

/// Where a value comes from in the data.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin<'s> {
    /// It was computed.
    Computed,
    /// From somewhere that the schema says nothing of.
    Unknown,
    /// From where this is the schema.
    Schema(Schema<'s, 's>, Resource),
    /// From the metadata of an object.
    Metadata,
    /// A text without limits, as names are.
    Text,
    /// The key of a map.
    Key,
}

/// Whether a schema is one of an object with `apiVersion`, `kind` and `metadata` whatever it says.
pub(super) type Resource = bool;

impl<'s> Origin<'s> {
    fn of_inner(schema: Schema<'s, 's>) -> Self {
        Self::Schema(schema, schema.flag("x-kubernetes-embedded-resource"))
    }

    /// The largest that a value from there can be.
    pub(super) fn size(self) -> Option<Size> {
        Some(Size::up_to(match self {
            Self::Computed | Self::Unknown => return None,
            Self::Schema(schema, _) => most_elements(schema),
            Self::Text => REQUEST - 2,
            Self::Metadata | Self::Key => 0,
        }))
    }

    pub(super) fn items(self) -> Option<Self> {
        let Self::Schema(schema, _) = self else { return None };
        match (schema.text("type").as_ref(), schema.additional()) {
            ("array", _) => schema.items().map(Self::of_inner),
            ("object", Additional::Schema(values)) => Some(Self::of_inner(values)),
            _ => None,
        }
    }

    pub(super) fn keys(self) -> Option<Self> {
        let Self::Schema(schema, _) = self else { return None };
        let is_map = schema.text("type") == "object" && matches!(schema.additional(), Additional::Schema(_));
        is_map.then_some(Self::Key)
    }

    pub(super) fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::Schema(schema, is_resource) => match name {
                "apiVersion" | "kind" if is_resource => Some(Self::Text),
                "metadata" if is_resource => Some(Self::Metadata),
                _ => property(schema, name).map(Self::of_inner),
            },
            Self::Metadata => Some(Self::Text),
            _ => None,
        }
    }

    /// One step further; `root` is where `self` comes from.
    pub(super) fn step(self, root: Self, step: impl Fn(Self) -> Option<Self>) -> Self {
        match self {
            Self::Computed => root,
            Self::Unknown => Self::Unknown,
            known => step(known).unwrap_or(Self::Unknown),
        }
    }
}

fn limit(schema: Schema<'_, '_>, keyword: &str) -> Option<u64> {
    match Number::of(schema.get(keyword)?)? {
        Number::Int(limit) => Some(u64::try_from(limit).unwrap_or(0)),
        Number::Float(_) => None,
    }
}

fn most_elements(schema: Schema<'_, '_>) -> u64 {
    let length = || limit(schema, "maxLength").map(|length| length.saturating_mul(4));
    if schema.flag("x-kubernetes-int-or-string") {
        return length().unwrap_or(REQUEST - 2);
    }
    match (schema.text("type").as_ref(), schema.text("format").as_ref()) {
        ("array", _) => limit(schema, "maxItems")
            .unwrap_or_else(|| (REQUEST - 2) / (schema.items().map_or(0, least_bytes) + 1)),
        ("object", _) => match schema.additional() {
            Additional::Schema(values) => {
                limit(schema, "maxProperties").unwrap_or_else(|| (REQUEST - 2) / (least_bytes(values) + 6))
            }
            _ => 0,
        },
        ("string", "byte") => limit(schema, "maxLength").unwrap_or(REQUEST - 2),
        ("string", "duration" | "date-time") => 32,
        ("string", "date") => 12,
        ("string", _) => length().unwrap_or_else(|| {
            let longest = schema.list("enum").iter().filter_map(|word| word.as_str()).map(str::len).max();
            match schema.list("enum") {
                [] => REQUEST - 2,
                _ => longest.unwrap_or(0) as u64,
            }
        }),
        _ => 0,
    }
}

/// The fewest bytes that a value takes in JSON.
fn least_bytes(schema: Schema<'_, '_>) -> u64 {
    if schema.flag("x-kubernetes-int-or-string") {
        return 1;
    }
    match (schema.text("type").as_ref(), schema.text("format").as_ref()) {
        ("object", _) if !matches!(schema.additional(), Additional::Schema(_)) => {
            let mut bytes = 2;
            for name in schema.list("required").iter().filter_map(|name| name.as_str()) {
                let property = schema.property(name).filter(|property| property.get("default").is_none());
                bytes += property.map_or(0, |property| name.len() as u64 + least_bytes(property) + 4);
            }
            bytes
        }
        ("string", "duration") => 3,
        ("string", "date") => 12,
        ("string", "date-time") => 21,
        ("boolean", _) => 4,
        ("integer" | "number", _) => 1,
        _ => 2,
    }
}

/// How often a value of a schema can be in one request, where nothing bounds the lists and maps around it.
pub(super) fn most_times(schema: Schema<'_, '_>) -> u64 {
    REQUEST / (least_bytes(schema) + 1)
}
