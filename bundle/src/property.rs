//! What opm and OLM can read of the properties of a bundle.

use serde_json::Value as Json;

use crate::go;
use crate::version::{Version, VersionRange};
use crate::yaml::fit::is_base64;
use crate::yaml::json_kind;

/// The fields of the types that opm knows, all of them text; `olm.csv.metadata`, which opm writes itself, has others.
pub fn texts_of(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "olm.package" => &["packageName", "version", "release"],
        "olm.package.required" => &["packageName", "versionRange"],
        "olm.gvk" | "olm.gvk.required" => &["group", "version", "kind"],
        "olm.bundle.object" => &["data"],
        "olm.channel" => &["channelName"],
        _ => return None,
    })
}

/// What is wrong with a value whose fields are text, if anything is: the path to it and what was expected and found. Null fits
/// everywhere, and unknown fields do no harm.
pub fn type_mismatch(kind: &str, value: &Json) -> Option<String> {
    let texts = texts_of(kind)?;
    match value {
        Json::Null => None,
        Json::Object(map) => map.iter().find_map(|(key, value)| {
            let name = texts[go::field(key, texts.iter().copied())?];
            let fits = matches!(value, Json::Null | Json::String(_));
            (!fits).then(|| format!("`{name}`: expected a string, found {}", json_kind(value)))
        }),
        _ => Some(format!("expected a map, found {}", json_kind(value))),
    }
}

/// Why opm cannot take a property into a catalog, or OLM's resolver cannot read it there.
pub(crate) fn why_unreadable(item: &Json) -> Option<String> {
    let kind = go::value_of(item, "type").and_then(Json::as_str).unwrap_or("");
    if kind.is_empty() {
        return Some("a property has no `type`, or one that is not text".into());
    }
    let Some(value) = go::value_of(item, "value") else { return Some(format!("`{kind}` has no `value`")) };
    let text = |key: &str| go::value_of(value, key).and_then(Json::as_str).unwrap_or("");
    let has = |key: &&str| go::value_of(value, key).is_some_and(|part| !part.is_null());
    let wrong_value = || match kind {
        "olm.package" => text("version").parse::<Version>().err().map(|why| format!("`version`: {why}")),
        "olm.package.required" => {
            text("versionRange").parse::<VersionRange>().err().map(|why| why.to_string())
        }
        "olm.bundle.object" if !is_base64(text("data")) => Some("`data` is not in base64".into()),
        "olm.label.required" | "olm.constraint" if !value.is_object() => {
            Some(format!("expected a map, found {}", json_kind(value)))
        }
        "olm.constraint" if !CONSTRAINTS.iter().any(has) => {
            Some(format!("expected one of `{}`", CONSTRAINTS.join("`, `")))
        }
        _ => None,
    };
    type_mismatch(kind, value).or_else(wrong_value).map(|why| format!("`{kind}` cannot be read: {why}"))
}

/// The fields of a constraint that say something of another bundle.
const CONSTRAINTS: [&str; 6] = ["gvk", "package", "all", "any", "not", "cel"];
