//! A bundle's manifests as opm's server has them: those that stand in the catalog, else a ClusterServiceVersion made of what
//! the catalog says of it (operator-registry `pkg/api/model_to_api.go`).

use olmkit_bundle::csv;
use olmkit_bundle::yaml::{self, decode};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use crate::base64;
use crate::fbc::{Bundle, Package, property};
use crate::json::marshal;
use crate::property::folded;
use crate::render::complete;

/// A bundle's manifests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Manifests {
    /// Each of them as pieces of JSON text. What many bundles share is a piece of its own.
    pub(super) texts: Vec<Vec<String>>,
    /// How many of them are objects of the bundle; one may follow that is its ClusterServiceVersion alone.
    pub(super) objects: usize,
    /// Which of them is the ClusterServiceVersion.
    pub(super) csv: Option<usize>,
}

impl Manifests {
    /// Those of a bundle that [`crate::validate`](mod@crate::validate) found sound; what does not decode is left out.
    /// `values` are its properties' types and values.
    pub(super) fn of(
        package: &Package<'_>,
        bundle: &Bundle<'_>,
        version: &str,
        values: &[(&str, &Json)],
    ) -> Self {
        let values = |kind| values.iter().filter(move |(found, _)| *found == kind).map(|(_, value)| *value);
        let objects = values(property::BUNDLE_OBJECT).filter_map(object);
        let mut texts: Vec<Vec<String>> = objects.map(|text| vec![text]).collect();
        let objects = texts.len();
        let csv = texts.iter().flatten().position(|text| is_csv(text));
        let mut metadata = values(property::CSV_METADATA);
        let stub = match (csv, metadata.next(), metadata.next()) {
            (None, Some(only), None) => stub(package, bundle, version, only),
            _ => None,
        };
        match stub {
            Some(stub) => {
                texts.push(stub);
                Self { texts, objects: objects.max(1), csv: Some(objects) }
            }
            None => Self { texts, objects, csv },
        }
    }
}

/// A manifest from an `olm.bundle.object`: JSON as it stands, YAML as JSON.
fn object(value: &Json) -> Option<String> {
    let data = folded(value, "data").and_then(Json::as_str).unwrap_or("");
    let text = String::from_utf8(base64::decode(data).ok()?).ok()?;
    if text.trim_start().starts_with('{') {
        return Some(text);
    }
    Some(marshal(&yaml::first_document(&text).ok()?.root.to_json()))
}

fn is_csv(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow, default)]
        kind: Option<std::borrow::Cow<'a, str>>,
    }
    let kind = match serde_json::from_str::<Object<'_>>(text) {
        Ok(object) => object.kind.map(|kind| kind == csv::KIND),
        // Text that begins as JSON and goes on as YAML.
        Err(_) => yaml::first_document(text)
            .ok()
            .and_then(|document| Some(document.root.get("kind")?.as_str()? == csv::KIND)),
    };
    kind.unwrap_or(false)
}

/// The ClusterServiceVersion that consoles are shown: in pieces, with the package's icon between.
fn stub(package: &Package<'_>, bundle: &Bundle<'_>, version: &str, metadata: &Json) -> Option<Vec<String>> {
    let shown = Shown::read(metadata)?;
    let spec = &shown.spec;
    let mut meta = Fields::default();
    meta.add("name", json!(bundle.name.as_str()));
    meta.some("labels", shown.labels.into());
    meta.some("annotations", shown.annotations.into());
    let mut head = Fields::default();
    head.add("install", json!({"strategy": "deployment", "spec": {"deployments": null}}));
    head.add("version", json!(version));
    head.some("maturity", json!(spec.maturity));
    head.add("customresourcedefinitions", complete(json!(spec.custom_resource_definitions)));
    head.add("apiservicedefinitions", complete(json!(spec.api_service_definitions)));
    head.some("nativeAPIs", json!(spec.native_apis));
    head.some("minKubeVersion", json!(spec.min_kube_version));
    head.add("displayName", json!(spec.display_name));
    let own = !spec.description.is_empty();
    head.some("description", json!(if own { &spec.description } else { package.description.as_str() }));
    head.some("keywords", json!(spec.keywords));
    head.some("maintainers", json!(spec.maintainers));
    head.add("provider", json!(spec.provider));
    head.some("links", json!(spec.links));
    let mut tail = Fields::default();
    tail.some("installModes", json!(spec.install_modes));
    tail.add("cleanup", json!({"enabled": false}));
    let images = bundle.related_images.iter();
    let images = images.map(|image| json!({"name": image.name.as_str(), "image": image.image.as_str()}));
    tail.some("relatedImages", images.collect());
    let (kind, api_version) = (csv::KIND, csv::API_VERSION);
    let head = format!(
        r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{{}}},"spec":{{{}"#,
        meta.0, head.0
    );
    let tail = format!(r#",{}}},"status":{{"cleanup":{{}}}}}}"#, tail.0);
    let Some(icon) = &package.icon else { return Some(vec![head, tail]) };
    let icon = json!({"base64data": icon_data(&icon.data), "mediatype": icon.media_type.as_str()});
    Some(vec![head, format!(r#","icon":[{}]"#, marshal(&icon)), tail])
}

/// Members of a JSON map in the making, as text with commas between.
#[derive(Default)]
struct Fields(String);

impl Fields {
    fn add(&mut self, key: &str, value: Json) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0 += &format!("\"{key}\":{}", marshal(&value));
    }

    /// Adds a value, unless it is empty.
    fn some(&mut self, key: &str, value: Json) {
        let empty = match &value {
            Json::String(text) => text.is_empty(),
            Json::Array(items) => items.is_empty(),
            Json::Object(map) => map.is_empty(),
            _ => false,
        };
        if !empty {
            self.add(key, value);
        }
    }
}

/// The icon's base64 without line breaks, as Go writes what it has read.
fn icon_data(data: &str) -> String {
    base64::decode(data).map_or_else(|_| data.to_owned(), |bytes| base64::encode(&bytes))
}

/// The value of an `olm.csv.metadata` as types of a ClusterServiceVersion.
struct Shown {
    labels: Map<String, Json>,
    annotations: Map<String, Json>,
    spec: csv::ClusterServiceVersionSpec,
}

impl Shown {
    fn read(metadata: &Json) -> Option<Self> {
        let map = |key| folded(metadata, key).and_then(Json::as_object).cloned().unwrap_or_default();
        // The names of a spec's fields, where they differ; labels and annotations are the metadata's.
        let mut spec = Map::new();
        for (key, value) in metadata.as_object()? {
            let key = match key.to_lowercase().as_str() {
                "crddescriptions" => "customresourcedefinitions",
                "labels" | "annotations" => continue,
                _ => key,
            };
            spec.insert(key.to_owned(), value.clone());
        }
        // JSON is YAML, and that reader has Go's rules for fields.
        let text = Json::Object(spec).to_string();
        let document = yaml::first_document(&text).ok()?;
        let spec = decode::decode(&document.root).ok()?;
        Some(Self { labels: map("labels"), annotations: map("annotations"), spec })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fbc::Catalog;
    use crate::load::CatalogFiles;

    /// The manifests of a package's only bundle, whose properties are given: `*` the ClusterServiceVersion.
    fn manifests(properties: &str) -> String {
        let text = format!(
            r#"{{"schema": "olm.package", "name": "p", "description": "of the package", "icon": {{"base64data": "aWNv\nbg==", "mediatype": "image/x"}}}}
            {{"schema": "olm.bundle", "package": "p", "name": "p.v1", "image": "r/i", "relatedImages": [{{"image": "r/o"}}], "properties": {properties}}}"#
        );
        let files = CatalogFiles::from_text("c", text);
        let catalog = Catalog::parse(&files);
        assert_eq!(catalog.faults, []);
        let json = catalog.bundles[0].to_json();
        let values = json["properties"].as_array().into_iter().flatten();
        let values: Vec<_> = values.map(|found| (found["type"].as_str().unwrap(), &found["value"])).collect();
        let found = Manifests::of(&catalog.packages[0], &catalog.bundles[0], "1.0.0", &values);
        let line = |(at, text): (usize, &Vec<String>)| {
            let mark = if found.csv == Some(at) { "* " } else { "" };
            let object = if at < found.objects { "object " } else { "" };
            format!("{mark}{object}{}", text.join("|"))
        };
        found.texts.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }

    fn object_property(text: &str) -> String {
        format!(
            r#"{{"type": "olm.bundle.object", "value": {{"data": "{}"}}}}"#,
            base64::encode(text.as_bytes())
        )
    }

    #[test]
    fn objects_stay_as_they_are() {
        let objects = [
            object_property(r#"{"kind": "Service", "a":  "<"}"#),
            object_property("kind: ClusterServiceVersion\nb: <\n---\nkind: Other\n"),
            object_property("kind: ClusterServiceVersion\n"),
        ];
        insta::assert_snapshot!(manifests(&format!("[{}]", objects.join(", "))), @r#"
        object {"kind": "Service", "a":  "<"}
        * object {"b":"\u003c","kind":"ClusterServiceVersion"}
        object {"kind":"ClusterServiceVersion"}
        "#);
    }

    #[test]
    fn metadata_becomes_what_consoles_read() {
        let metadata = r#"[{"type": "olm.csv.metadata", "value": {"DisplayName": "P", "annotations": {"k": "v"},
            "crdDescriptions": {"owned": [{"name": "things.p", "kind": "Thing", "version": "v1", "resources": [{"kind": "Pod"}]}]},
            "minKubeVersion": "1.20.0", "provider": {"name": "x"}, "strange": 1}}]"#;
        insta::assert_snapshot!(manifests(metadata), @r#"* object {"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"name":"p.v1","annotations":{"k":"v"}},"spec":{"install":{"spec":{"deployments":null},"strategy":"deployment"},"version":"1.0.0","customresourcedefinitions":{"owned":[{"kind":"Thing","name":"things.p","resources":[{"kind":"Pod","name":"","version":""}],"version":"v1"}]},"apiservicedefinitions":{},"minKubeVersion":"1.20.0","displayName":"P","description":"of the package","provider":{"name":"x"}|,"icon":[{"base64data":"aWNvbg==","mediatype":"image/x"}]|,"cleanup":{"enabled":false},"relatedImages":[{"image":"r/o","name":""}]},"status":{"cleanup":{}}}"#);
    }

    #[test]
    fn nothing_to_show() {
        assert_eq!(manifests("[]"), "");
        assert_eq!(manifests(r#"[{"type": "olm.csv.metadata", "value": {"keywords": 7}}]"#), "");
    }
}
