//! What the values of OLM's properties look like, and what the properties of a bundle say.
//!
//! opm decodes the values of the types it knows and refuses what does not fit; all other values are nobody's business but
//! their owner's. `shape` has the fields of `olm.csv.metadata`, `olmkit_bundle::property` those of the other types.

mod shape;

use std::borrow::Cow;

use olmkit_bundle::property::texts_of;
use olmkit_bundle::version::Version;
use olmkit_bundle::yaml::json_kind;
use serde_json::Value as Json;

use crate::fbc::{self, property};
use crate::graph::{Release, VersionRelease};
use shape::{CSV_METADATA, field};

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
            let is_right = type_mismatch(property::PACKAGE, value).is_none();
            let [name, version, release] = value.texts_of(["packageName", "version", "release"]);
            is_right.then_some((at, Package { name, version, release }))
        })
        .collect()
}

/// What is wrong with the value of a property, if anything is: the path to it and what was expected and found.
pub fn type_mismatch(kind: &str, value: &fbc::Value<'_>) -> Option<String> {
    let is_known = kind == property::CSV_METADATA || texts_of(kind).is_some();
    is_known.then(|| type_mismatch_of_json(kind, &value.to_json()))?
}

/// [`type_mismatch`] of a value that stands in no catalog.
pub(crate) fn type_mismatch_of_json(kind: &str, value: &Json) -> Option<String> {
    if kind == property::CSV_METADATA {
        return CSV_METADATA.type_mismatch(value, "");
    }
    olmkit_bundle::property::type_mismatch(kind, value)
}

impl Shape {
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
            let why = type_mismatch_of_json(kind, &value).unwrap_or_default();
            for start in ["", "# YAML\n"] {
                let blob = json!({"schema": "olm.bundle", "properties": [{"type": kind, "value": value}]});
                let files = CatalogFiles::from_text("catalog", format!("{start}{blob}"));
                let catalog = fbc::Catalog::parse(&files);
                let value = catalog.bundles[0].properties[0].value.as_ref().unwrap();
                assert_eq!(type_mismatch(kind, value).unwrap_or_default(), why, "{kind} {blob}");
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
