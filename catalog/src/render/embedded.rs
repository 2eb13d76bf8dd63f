//! The ClusterServiceVersion among the manifests in a blob.

use olmkit_bundle::csv;

use super::CsvFacts;
use crate::base64;
use crate::fbc::{self, property};

/// The edges that the ClusterServiceVersion in the blob of a bundle speaks of; none when it is not there.
pub(crate) fn edges(bundle: &fbc::Bundle<'_>) -> Option<CsvFacts> {
    let objects = bundle.properties.iter().filter(|found| *found.kind == *property::BUNDLE_OBJECT);
    objects.filter_map(|object| csv_edges(object.value.as_ref()?.text_of("data")?.as_ref())).next()
}

/// What a manifest in base64 says of edges, if it is a ClusterServiceVersion. Of JSON only that is looked at.
fn csv_edges(data: &str) -> Option<CsvFacts> {
    let text = String::from_utf8(base64::decode(data).ok()?).ok()?;
    if !text.contains(csv::KIND) {
        return None;
    }
    let manifest = match fbc::Value::of_json(&text) {
        Ok(json) => json,
        Err(_) => fbc::Value::of_node(olmkit_bundle::yaml::first_document(&text).ok()?.root),
    };
    let mut manifest = Members::of(Some(manifest));
    if manifest.text("kind") != csv::KIND {
        return None;
    }
    let mut spec = Members::of(manifest.take("spec"));
    let mut annotations = Members::of(Members::of(manifest.take("metadata")).take("annotations"));
    let skips = spec.take("skips").and_then(|skips| skips.into_items().ok()).unwrap_or_default();
    Some(CsvFacts {
        replaces: spec.text("replaces"),
        skips: skips.into_iter().map(text_of).collect(),
        skip_range: annotations.text(csv::annotation::SKIP_RANGE),
        ..CsvFacts::default()
    })
}

/// The members of a map; none of what is no map.
struct Members<'a>(Vec<fbc::Member<'a>>);

impl<'a> Members<'a> {
    fn of(value: Option<fbc::Value<'a>>) -> Self {
        Self(value.and_then(|value| value.into_members().ok()).unwrap_or_default())
    }

    fn take(&mut self, key: &str) -> Option<fbc::Value<'a>> {
        let at = self.0.iter().position(|member| member.key == key)?;
        Some(self.0.swap_remove(at).value)
    }

    fn text(&mut self, key: &str) -> String {
        self.take(key).map(text_of).unwrap_or_default()
    }
}

/// The text that a value is; empty when it is none.
fn text_of(value: fbc::Value<'_>) -> String {
    value.into_text().map(|text| text.value.into_owned()).unwrap_or_default()
}

/// The ClusterServiceVersion among the manifests in a blob, if there is one.
pub(crate) fn csv_of(bundle: &fbc::Bundle<'_>) -> Option<serde_json::Value> {
    let objects = bundle.properties.iter().filter(|found| *found.kind == *property::BUNDLE_OBJECT);
    objects.filter_map(decoded).find(|object| object["kind"] == csv::KIND)
}

/// The manifest in a property.
fn decoded(object: &fbc::Property<'_>) -> Option<serde_json::Value> {
    let data = object.value.as_ref()?.text_of("data")?;
    let text = String::from_utf8(base64::decode(&data).ok()?).ok()?;
    Some(olmkit_bundle::yaml::first_document(&text).ok()?.root.to_json())
}
