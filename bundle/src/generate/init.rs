//! A package file to start from: every key with what it means, those filled in that something is known of.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value as Json, json};

use super::base::Base;
use super::cargo::CargoFile;
use super::icon;
use super::keys::{self, ANNOTATIONS, OF_ONE_NAME};
use super::package_file::{self, VERSION_POLICIES};
use crate::csv::annotation;
use crate::yaml::write;

/// What was found where the package file is to be.
#[derive(Debug, Default)]
pub struct Found<'f> {
    /// The crate.
    pub cargo: Option<&'f CargoFile<'f>>,
    /// A ClusterServiceVersion, such as a base of operator-sdk's or that of an earlier bundle.
    pub csv: Option<&'f Base<'f>>,
    /// The path of the ClusterServiceVersion, where it is to stay the base.
    pub base: Option<String>,
    /// Whether the manifests contain the ClusterServiceVersion, with changes that its file does not have.
    pub has_csv_in_manifests: bool,
    /// The package's name, where neither the crate nor the ClusterServiceVersion has it.
    pub package: Option<String>,
    /// The version, where the crate does not have it.
    pub version: Option<String>,
    /// Further keys of the package file, which a crate elsewhere has values for.
    pub fields: Vec<(&'static str, String)>,
    /// The channels, and the default among them.
    pub channels: Vec<String>,
    /// The default channel.
    pub default_channel: Option<String>,
    /// The package that the annotations of an earlier bundle name.
    pub annotated_package: Option<String>,
    /// Further annotations of an earlier bundle.
    pub bundle_annotations: BTreeMap<String, String>,
    /// What Chart.yaml says.
    pub chart: Option<Json>,
    /// Files and directories with manifests.
    pub manifests: Vec<String>,
    /// Files and directories with examples of custom resources.
    pub samples: Vec<String>,
    /// Directories with a kustomization.
    pub kustomize: Vec<String>,
    /// Helm charts.
    pub helm: Vec<String>,
    /// The kinds that the CRDs define, by name.
    pub kinds: Vec<String>,
}

/// The keys in the order in which people fill them in, each with an example.
pub(super) const KEYS: [(&str, &str); 54] = [
    ("package", "my-operator"),
    ("version", "0.1.0"),
    ("release", "'1'"),
    ("displayName", "My Operator"),
    ("description", "Runs things."),
    ("descriptionFile", "README.md"),
    ("icon", "icon.svg"),
    ("provider", "{name: Example, url: 'https://example.com'}"),
    ("maintainers", "[{name: Somebody, email: somebody@example.com}]"),
    ("links", "[{name: Documentation, url: 'https://example.com/docs'}]"),
    ("keywords", "[things]"),
    ("categories", "[Database]"),
    ("capabilities", "Basic Install"),
    ("maturity", "alpha"),
    ("minKubeVersion", "1.28.0"),
    ("installModes", "[AllNamespaces]"),
    ("license", "Apache-2.0"),
    ("repository", "https://github.com/example/my-operator"),
    ("support", "Example"),
    ("containerImage", "quay.io/example/my-operator:v0.1.0"),
    ("suggestedNamespace", "my-operator-system"),
    ("platforms", "[linux/amd64, linux/arm64]"),
    ("policy", "{kubernetes: '>=1.28.0 <1.36.0', deprecationNotice: 2}"),
    ("channels", "[stable]"),
    ("defaultChannel", "stable"),
    ("versionPolicy", VERSION_POLICIES[0]),
    ("imageRefTemplate", "'quay.io/example/{{.Package}}-bundle:v{{.Version}}'"),
    ("replaces", "my-operator.v0.0.9"),
    ("skips", "[my-operator.v0.0.8]"),
    ("skipRange", "'>=0.0.1 <0.1.0'"),
    ("manifests", "[deploy]"),
    ("kustomize", "[config/default]"),
    ("helm", "[chart]"),
    ("helmValues", "[values.yaml]"),
    ("helmSet", "[crds.enabled=true]"),
    ("helmRelease", "my-operator"),
    ("helmNamespace", "my-operator-system"),
    ("helmKubeVersion", "1.33.0"),
    ("samples", "[config/samples]"),
    ("base", "config/manifests/bases/my-operator.clusterserviceversion.yaml"),
    ("extraServiceAccounts", "[helper]"),
    ("descriptors", "[{kind: Thing, spec: [{path: size, displayName: Size}], hide: [spec.debug]}]"),
    ("requiredCrds", "[{name: stores.example.com, version: v1, kind: Store}]"),
    ("apiServices", "[{group: metrics.example.com, version: v1, kind: Metric, name: metrics}]"),
    ("requiredApiServices", "[{group: metrics.example.com, version: v1, kind: Metric, name: metrics}]"),
    ("nativeAPIs", "[{group: apps, version: v1, kind: Deployment}]"),
    ("relatedImages", "[{name: cache, image: 'quay.io/example/cache:v1'}]"),
    ("dependencies", "[{type: olm.package, value: {packageName: cert-manager, version: '>=1.0.0'}}]"),
    ("properties", "[{type: olm.maxOpenShiftVersion, value: '4.20'}]"),
    ("annotations", "{example.com/team: things}"),
    ("bundleAnnotations", "{com.redhat.openshift.versions: v4.14}"),
    ("labels", "{example.com/team: things}"),
    ("csv", "{spec: {cleanup: {enabled: true}}}"),
    ("allow", "[{code: csv-min-kube-version-missing, reason: it runs on every Kubernetes}]"),
];

/// A package file and the files that it names, by path.
#[derive(Debug, Default)]
pub struct Initial {
    /// The package file's text.
    pub text: String,
    /// Texts and pictures that were taken out of the ClusterServiceVersion.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Writes a package file from what was found.
pub fn package_file(found: &Found<'_>) -> Initial {
    let mut values = Map::new();
    let mut files = BTreeMap::new();
    set(&mut values, "package", json!(found.package));
    set(&mut values, "version", json!(found.version));
    set(&mut values, "channels", json!(found.channels));
    set(&mut values, "defaultChannel", json!(found.default_channel));
    for (key, value) in &found.fields {
        set(&mut values, key, json!(value));
    }
    if let Some(chart) = &found.chart {
        from_chart(chart, &mut values);
    }
    if let Some(csv) = found.csv {
        let stays = found.base.is_some() || found.has_csv_in_manifests;
        from_csv(&csv.object.root.to_json(), stays, &mut values, &mut files);
    }
    set(&mut values, "package", json!(found.annotated_package));
    set(&mut values, "bundleAnnotations", json!(found.bundle_annotations));
    for (key, list) in [
        ("manifests", &found.manifests),
        ("samples", &found.samples),
        ("kustomize", &found.kustomize),
        ("helm", &found.helm),
    ] {
        let known = values.remove(key).and_then(|value| value.as_array().cloned()).unwrap_or_default();
        let all: Vec<Json> = list.iter().map(|path| json!(path)).chain(known).collect();
        set(&mut values, key, all.into());
    }
    set(&mut values, "base", json!(found.base.as_deref().unwrap_or("")));
    let schema = package_file::schema();
    let described = |key: &str| {
        let text = schema.pointer(&format!("/properties/{key}/description")).and_then(Json::as_str);
        text.unwrap_or("").to_owned()
    };
    let mut text = String::from(
        "# What the operator's manifests cannot say: `olmkit bundle generate` reads it.\n\
         # A key that is commented out shows a possible value.\n",
    );
    for (key, example) in KEYS {
        let of_crate = found.cargo.and_then(|cargo| cargo.initial(key));
        text.push('\n');
        for line in described(key).lines() {
            text += &format!("# {line}\n");
        }
        match (values.get(key), of_crate) {
            (Some(value), _) => match write::to_string(&json!({ key: value })) {
                Ok(yaml) => text += &yaml,
                Err(_) => text += &format!("# {key}: {example}\n"),
            },
            (None, Some(of_crate)) => text += &format!("# {key}: {of_crate}\n"),
            (None, None) if key == "descriptors" && !found.kinds.is_empty() => {
                text += &format!("# {key}: {}\n", example.replacen("Thing", &found.kinds[0], 1));
            }
            (None, None) => text += &format!("# {key}: {example}\n"),
        }
    }
    Initial { text, files }
}

fn set(values: &mut Map<String, Json>, key: &str, value: Json) {
    let empty = match &value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(map) => map.is_empty(),
        _ => false,
    };
    if !empty {
        values.insert(key.to_owned(), value);
    }
}

/// What Chart.yaml says, as settings.
fn from_chart(chart: &Json, values: &mut Map<String, Json>) {
    for key in ["description", "keywords"] {
        set(values, key, chart[key].clone());
    }
    let maintainers = chart["maintainers"].as_array().into_iter().flatten();
    let person = |own: &Json| {
        let mut person = Map::new();
        set(&mut person, "name", own["name"].clone());
        set(&mut person, "email", own["email"].clone());
        (person.len() == 2).then(|| Json::from(person))
    };
    set(values, "maintainers", maintainers.filter_map(person).collect());
    if let Some(home) = chart["home"].as_str() {
        set(values, "links", json!([{"name": "Homepage", "url": home}]));
    }
    set(values, "repository", chart["sources"][0].clone());
}

/// What a ClusterServiceVersion says, as settings. One that stays the base needs none of it repeated but what decides on
/// the package.
fn from_csv(csv: &Json, stays: bool, values: &mut Map<String, Json>, files: &mut BTreeMap<String, Vec<u8>>) {
    let name = csv.pointer("/metadata/name").and_then(Json::as_str).unwrap_or("");
    if let Some((package, _)) = name.split_once(".v").or_else(|| name.split_once('.')) {
        set(values, "package", json!(package));
    }
    if stays {
        return;
    }
    let spec = &csv["spec"];
    for key in OF_ONE_NAME {
        set(values, key, spec[key].clone());
    }
    if let Some(description) = spec["description"].as_str().filter(|text| !text.is_empty()) {
        files.insert("description.md".into(), format!("{}\n", description.trim_end()).into_bytes());
        set(values, "descriptionFile", json!("description.md"));
    }
    let picture = spec["icon"][0]["base64data"].as_str().and_then(|text| BASE64.decode(text.trim()).ok());
    if let Some((bytes, extension)) =
        picture.and_then(|bytes| icon::extension(&bytes).map(|extension| (bytes, extension)))
    {
        files.insert(format!("icon.{extension}"), bytes);
        set(values, "icon", json!(format!("icon.{extension}")));
    }
    let modes = spec["installModes"].as_array().into_iter().flatten();
    let modes: Vec<_> =
        modes.filter(|mode| mode["supported"] == true).map(|mode| mode["type"].clone()).collect();
    set(values, "installModes", modes.into());
    set(values, "requiredCrds", spec["customresourcedefinitions"]["required"].clone());
    set(values, "requiredApiServices", spec["apiservicedefinitions"]["required"].clone());
    set(values, "apiServices", spec["apiservicedefinitions"]["owned"].clone());
    let owned = spec["customresourcedefinitions"]["owned"].as_array().into_iter().flatten();
    let descriptors: Vec<Json> =
        owned.map(api_settings).filter(|api| api.as_object().is_some_and(|api| api.len() > 2)).collect();
    set(values, "descriptors", descriptors.into());
    annotations(csv, values, files);
    set(values, "labels", csv["metadata"]["labels"].clone());
    // Everything else stays as it is.
    let rest = spec.as_object().into_iter().flatten().filter(|(key, _)| !keys::is_known(key));
    let rest: Map<String, Json> = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
    if !rest.is_empty() {
        set(values, "csv", json!({ "spec": rest }));
    }
}

/// How an owned kind is shown, as the package file says it.
fn api_settings(owned: &Json) -> Json {
    let mut api = Map::new();
    for (key, from) in [
        ("kind", "kind"),
        ("version", "version"),
        ("displayName", "displayName"),
        ("description", "description"),
        ("resources", "resources"),
        ("spec", "specDescriptors"),
        ("status", "statusDescriptors"),
        ("actions", "actionDescriptors"),
    ] {
        set(&mut api, key, owned[from].clone());
    }
    api.into()
}

fn annotations(csv: &Json, values: &mut Map<String, Json>, files: &mut BTreeMap<String, Vec<u8>>) {
    let mut rest = BTreeMap::new();
    for (key, value) in csv["metadata"]["annotations"].as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or("");
        match key.as_str() {
            annotation::CREATED_AT | annotation::SKIP_RANGE => {}
            annotation::CATEGORIES => {
                let categories: Vec<_> =
                    text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
                set(values, "categories", json!(categories));
            }
            annotation::ALM_EXAMPLES | annotation::OLM_EXAMPLES => {
                let examples = serde_json::from_str::<Vec<Json>>(text).unwrap_or_default();
                let documents: Vec<_> =
                    examples.iter().filter_map(|example| write::to_string(example).ok()).collect();
                if !documents.is_empty() {
                    files.insert("samples.yaml".into(), documents.join("---\n").into_bytes());
                    set(values, "samples", json!(["samples.yaml"]));
                }
            }
            key if key.starts_with("operators.operatorframework.io/") => {}
            key => match ANNOTATIONS.into_iter().find(|(known, _)| *known == key) {
                Some((_, setting)) => set(values, setting, value.clone()),
                None => drop(rest.insert(key.to_owned(), text.to_owned())),
            },
        }
    }
    set(values, "annotations", json!(rest));
}

#[cfg(test)]
mod tests {
    use super::super::{Manifests, PackageFile};
    use super::*;
    use crate::source::Source;

    const CSV: &str = "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: echo.v1.2.3
  annotations:
    alm-examples: '[{\"apiVersion\": \"example.com/v1\", \"kind\": \"Echo\", \"metadata\": {\"name\": \"a\"}}]'
    capabilities: Deep Insights
    categories: Database, Monitoring
    createdAt: '2020-01-01'
    console.example.com/own: kept
spec:
  displayName: 'Echo: again'
  description: |
    # Echo

    Says it again.
  icon: [{base64data: PHN2Zy8+, mediatype: image/svg+xml}]
  installModes: [{type: OwnNamespace, supported: true}, {type: AllNamespaces, supported: false}]
  customresourcedefinitions:
    owned: [{name: echoes.example.com, version: v1, kind: Echo, specDescriptors: [{path: text, x-descriptors: [a]}]}]
  cleanup: {enabled: true}
";

    #[test]
    fn every_key_is_there_and_every_example_fits() {
        let text = package_file(&Found::default()).text;
        PackageFile::parse(Source::new("olmkit.yaml", &text)).unwrap();
        let schema = package_file::schema();
        let keys = schema.pointer("/properties").and_then(Json::as_object).unwrap();
        for key in keys.keys() {
            assert!(text.contains(&format!("\n# {key}: ")), "{key}");
        }
        // With the examples in force it is a package file too.
        let keyed = |line: &str| keys.keys().any(|key| line.starts_with(&format!("# {key}: ")));
        let lines = text.lines().map(|line| if keyed(line) { &line[2..] } else { line });
        let whole: String = lines.map(|line| format!("{line}\n")).collect();
        let file = PackageFile::parse(Source::new("olmkit.yaml", &whole)).unwrap();
        assert_eq!((file.settings.package.as_str(), file.settings.allow.len()), ("my-operator", 1));
        // Of an operator with custom resources, an example is about one of them.
        let found = Found { kinds: vec!["Echo".into()], ..Found::default() };
        let own =
            "# descriptors: [{kind: Echo, spec: [{path: size, displayName: Size}], hide: [spec.debug]}]\n";
        assert!(package_file(&found).text.contains(own));
    }

    #[test]
    fn a_csv_becomes_a_package_file_and_what_it_names() {
        let manifests = Manifests::parse(vec![Source::new("csv.yaml", CSV)]);
        let csv = Base::of(&manifests).unwrap();
        let initial = package_file(&Found { csv: Some(&csv), ..Found::default() });
        let names: Vec<_> = initial.files.keys().map(String::as_str).collect();
        assert_eq!(names, ["description.md", "icon.svg", "samples.yaml"]);
        let settings = PackageFile::parse(Source::new("olmkit.yaml", &initial.text)).unwrap().settings;
        assert_eq!(settings.package, "echo");
        assert_eq!(settings.display_name, "Echo: again");
        assert_eq!(settings.categories, ["Database", "Monitoring"]);
        assert_eq!(settings.install_modes, ["OwnNamespace"]);
        assert_eq!(settings.descriptors[0].spec[0].path, "text");
        assert_eq!(settings.annotations["console.example.com/own"], "kept");
        assert_eq!(settings.csv["spec"]["cleanup"]["enabled"], true);
        assert!(!initial.text.contains("2020-01-01"));
    }
}
