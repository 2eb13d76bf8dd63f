//! A bundle's manifests as opm's server has them: those that stand in the catalog, else a ClusterServiceVersion made of what
//! the catalog says of it (operator-registry `pkg/api/model_to_api.go`).

use olmkit_bundle::{csv, go, yaml};
use olmkit_catalog::base64;
use olmkit_catalog::fbc::{Bundle, Package, RelatedImage, property};
use olmkit_catalog::json::{marshal, push_text};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::canonical::list;
use super::csv_metadata::CsvMetadataJson;

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
    /// Those of a bundle that [`olmkit_catalog::validate`](mod@olmkit_catalog::validate) found sound; what does not decode is left out.
    /// `values` are its properties' types, and their values as JSON whose keys are sorted.
    pub(super) fn of(
        package: &Package<'_>,
        bundle: &Bundle<'_>,
        version: &str,
        values: &[(&str, &str)],
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
fn object(value: &str) -> Option<String> {
    let value: Json = serde_json::from_str(value).ok()?;
    let data = go::value_of(&value, "data").and_then(Json::as_str).unwrap_or("");
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
fn stub(package: &Package<'_>, bundle: &Bundle<'_>, version: &str, metadata: &str) -> Option<Vec<String>> {
    let shown = CsvMetadataJson::read(metadata)?;
    let mut meta = Fields::default();
    meta.text("name", &bundle.name);
    meta.some("labels", shown.get("labels"));
    meta.some("annotations", shown.get("annotations"));
    let mut head = Fields { text: String::with_capacity(metadata.len() + 1024) };
    head.json("install", r#"{"strategy":"deployment","spec":{"deployments":null}}"#);
    head.text("version", version);
    head.some("maturity", shown.get("maturity"));
    head.json("customresourcedefinitions", shown.get("crdDescriptions").unwrap_or("{}"));
    head.json("apiservicedefinitions", shown.get("apiServiceDefinitions").unwrap_or("{}"));
    head.some("nativeAPIs", shown.get("nativeAPIs"));
    head.some("minKubeVersion", shown.get("minKubeVersion"));
    head.json("displayName", shown.get("displayName").unwrap_or("\"\""));
    match shown.get("description") {
        Some(own) => head.json("description", own),
        None if package.description.is_empty() => {}
        None => head.text("description", &package.description),
    }
    head.some("keywords", shown.get("keywords"));
    head.some("maintainers", shown.get("maintainers"));
    head.json("provider", shown.get("provider").unwrap_or("{}"));
    head.some("links", shown.get("links"));
    let mut tail = Fields::default();
    tail.some("installModes", shown.get("installModes"));
    tail.json("cleanup", r#"{"enabled":false}"#);
    let image = |image: &RelatedImage<'_>| {
        let mut fields = Fields::default();
        fields.text("name", &image.name);
        fields.text("image", &image.image);
        format!("{{{}}}", fields.text)
    };
    if !bundle.related_images.is_empty() {
        tail.json("relatedImages", &list(bundle.related_images.iter().map(image)));
    }
    let (kind, api_version) = (csv::KIND, csv::API_VERSION);
    let head = format!(
        r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{{}}},"spec":{{{}"#,
        meta.text, head.text
    );
    let tail = format!(r#",{}}},"status":{{"cleanup":{{}}}}}}"#, tail.text);
    let Some(icon) = &package.icon else { return Some(vec![head, tail]) };
    let icon = json!({"base64data": icon_data(&icon.data), "mediatype": icon.media_type.as_str()});
    Some(vec![head, format!(r#","icon":[{}]"#, marshal(&icon)), tail])
}

/// Members of a JSON map in the making, as text with commas between.
#[derive(Default)]
struct Fields {
    text: String,
}

impl Fields {
    fn json(&mut self, key: &str, json: &str) {
        if !self.text.is_empty() {
            self.text.push(',');
        }
        push_text(&mut self.text, key, true);
        self.text.push(':');
        self.text.push_str(json);
    }

    fn some(&mut self, key: &str, json: Option<&str>) {
        if let Some(json) = json {
            self.json(key, json);
        }
    }

    fn text(&mut self, key: &str, text: &str) {
        self.json(key, "");
        push_text(&mut self.text, text, true);
    }
}

/// The icon's base64 without line breaks, as Go writes what it has read.
fn icon_data(data: &str) -> String {
    base64::decode(data).map_or_else(|_| data.to_owned(), |bytes| base64::encode(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::canonical;
    use olmkit_catalog::fbc::Catalog;
    use olmkit_catalog::load::CatalogFiles;

    /// The manifests of a package's only bundle, whose properties are given: `*` the ClusterServiceVersion.
    fn manifests(properties: &str) -> String {
        let text = format!(
            r#"{{"schema": "olm.package", "name": "p", "description": "of the package", "icon": {{"base64data": "aWNv\nbg==", "mediatype": "image/x"}}}}
            {{"schema": "olm.bundle", "package": "p", "name": "p.v1", "image": "r/i", "relatedImages": [{{"image": "r/o"}}], "properties": {properties}}}"#
        );
        let files = CatalogFiles::from_text("c", text);
        let catalog = Catalog::parse(&files);
        assert_eq!(catalog.faults, []);
        let properties = catalog.bundles[0].properties.iter();
        let values: Vec<_> = properties
            .map(|found| (found.kind.as_str(), canonical::text(found.value.as_ref().unwrap())))
            .collect();
        let values: Vec<_> = values.iter().map(|(kind, value)| (*kind, value.as_str())).collect();
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
        insta::assert_snapshot!(manifests(metadata), @r#"* object {"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"name":"p.v1","annotations":{"k":"v"}},"spec":{"install":{"strategy":"deployment","spec":{"deployments":null}},"version":"1.0.0","customresourcedefinitions":{"owned":[{"kind":"Thing","name":"things.p","resources":[{"kind":"Pod","name":"","version":""}],"version":"v1"}]},"apiservicedefinitions":{},"minKubeVersion":"1.20.0","displayName":"P","description":"of the package","provider":{"name":"x"}|,"icon":[{"base64data":"aWNvbg==","mediatype":"image/x"}]|,"cleanup":{"enabled":false},"relatedImages":[{"name":"","image":"r/o"}]},"status":{"cleanup":{}}}"#);
    }

    #[test]
    fn nothing_to_show() {
        assert_eq!(manifests("[]"), "");
        assert_eq!(manifests(r#"[{"type": "olm.csv.metadata", "value": {"keywords": 7}}]"#), "");
    }
}
