//! The package file, `olmkit.yaml`: what an operator's manifests cannot say, as it is written.
//!
//! These are the keys and their meaning; what becomes of them is decided in [`super::package`] and `assemble`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::codes;
use super::draft::{By, Draft, Origin};
use crate::csv::{
    ApiServiceDescription, AppLink, CrdDescription, Descriptor, GroupVersionKind, Maintainer, RelatedImage,
    ResourceReference,
};
use crate::diff::policy::PolicySettings;
use crate::finding::{Finding, Place};
use crate::source::{Source, Span};
use crate::suggest::did_you_mean;
use crate::yaml::{self, Node, Step, decode};

/// The sets of namespaces an operator can be made to watch.
pub const INSTALL_MODES: [&str; 4] = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];

/// The capability levels, lowest first.
pub const CAPABILITIES: [&str; 5] =
    ["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"];

/// How a version finds its place in a channel; catalogs know what each of them means.
pub const VERSION_POLICIES: [&str; 4] = ["replaces", "semver", "semver-skippatch", "skip-range"];

/// The channel of a bundle that names none.
pub const DEFAULT_CHANNEL: &str = "alpha";

/// The package file as it is written. Paths are relative to the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(title = "olmkit's package file")]
pub struct PackageSettings {
    /// The package's name. Default: Cargo's.
    pub package: String,
    /// The version, a semantic one; usually given on the command line instead. Default: Cargo's.
    pub version: String,
    /// The release of a version that is packaged again: dot-separated words and numbers, at most 20 characters.
    pub release: String,
    /// The name people see. Default: made from the package's name.
    pub display_name: String,
    /// What the operator does, in Markdown. Default: Cargo's description.
    pub description: String,
    /// A Markdown file with the same.
    pub description_file: String,
    /// An image file: PNG, JPEG, GIF or SVG.
    pub icon: String,
    /// Who provides the operator.
    pub provider: AppLink,
    /// Who maintains it. Default: Cargo's authors.
    pub maintainers: Vec<Maintainer>,
    /// Where to read on. Default: Cargo's homepage and documentation.
    pub links: Vec<AppLink>,
    /// Words to find it by. Default: Cargo's.
    pub keywords: Vec<String>,
    /// Categories it is listed under.
    pub categories: Vec<String>,
    /// How much the operator does by itself. Default: `Basic Install`.
    #[schemars(extend("enum" = CAPABILITIES))]
    pub capabilities: String,
    /// Such as `alpha` or `stable`; free text.
    pub maturity: String,
    /// The oldest Kubernetes it runs on, a semantic version.
    pub min_kube_version: String,
    /// The install modes that are supported. Default: `AllNamespaces`.
    #[schemars(extend("items" = { "type": "string", "enum": INSTALL_MODES }))]
    pub install_modes: Vec<String>,
    /// The licence, an SPDX expression. Default: Cargo's. Becomes the annotation `license`.
    pub license: String,
    /// Where the sources are. Default: Cargo's repository.
    pub repository: String,
    /// Who supports the operator.
    pub support: String,
    /// The operator's main image. Default: that of the first Deployment.
    pub container_image: String,
    /// The namespace that consoles suggest. Default: that of the Deployments.
    pub suggested_namespace: String,
    /// Operating systems and architectures, such as `linux/arm64`. Default: what the Deployments ask of nodes.
    pub platforms: Vec<String>,

    /// What every version promises; `bundle diff --package-file` holds new versions against it.
    pub policy: PolicySettings,

    /// The channels the bundle is meant for. Default: `alpha`.
    pub channels: Vec<String>,
    /// The channel to subscribe to. Default: the first of `channels`.
    pub default_channel: String,
    /// How the edges of a version in a channel are chosen. Default: `replaces`.
    #[schemars(extend("enum" = VERSION_POLICIES))]
    pub version_policy: String,
    /// The template of the bundle images' references, with `{{.Package}}`, `{{.Name}}` and `{{.Version}}`, for `catalog add`.
    pub image_ref_template: String,
    /// The ClusterServiceVersion that this version takes over from, where no catalog decides.
    pub replaces: String,
    /// ClusterServiceVersions that may jump to this version and are no longer offered, where no catalog decides.
    pub skips: Vec<String>,
    /// Installed versions in this range may jump to this version, where no catalog decides.
    pub skip_range: String,

    /// Files and directories with the operator's manifests.
    pub manifests: Vec<String>,
    /// Directories with a kustomization, built by kustomize or kubectl.
    pub kustomize: Vec<String>,
    /// Helm charts, rendered by helm.
    pub helm: Vec<String>,
    /// Values for the charts.
    pub helm_values: Vec<String>,
    /// Single values for the charts, such as `crds.enabled=true`, over those of the files.
    pub helm_set: Vec<String>,
    /// The name of the charts' release. Default: the package's.
    pub helm_release: String,
    /// The namespace of the charts' release. Default: helm's.
    pub helm_namespace: String,
    /// The Kubernetes that the charts are rendered for. Default: helm's.
    pub helm_kube_version: String,
    /// Files and directories with examples of custom resources, for `alm-examples` alone.
    pub samples: Vec<String>,
    /// A base ClusterServiceVersion, as operator-sdk keeps it in `config/manifests/bases`.
    pub base: String,
    /// Service accounts that get their rights from OLM though no Deployment runs as them.
    pub extra_service_accounts: Vec<String>,

    /// How consoles show the custom resources that the operator owns.
    pub descriptors: Vec<ApiSettings>,
    /// Custom resources that the operator needs and does not bring.
    pub required_crds: Vec<CrdDescription>,
    /// Aggregated APIs that the operator brings: what their APIService does not say, such as the kind.
    pub api_services: Vec<ApiServiceDescription>,
    /// Aggregated APIs that the operator needs and does not bring.
    pub required_api_services: Vec<ApiServiceDescription>,
    /// Kinds that the cluster itself must know.
    #[serde(rename = "nativeAPIs")]
    pub native_apis: Vec<GroupVersionKind>,
    /// Images to mirror along, besides those that the Deployments name.
    pub related_images: Vec<RelatedImage>,
    /// What the bundle depends on, for `metadata/dependencies.yaml`.
    pub dependencies: Vec<Property>,
    /// Properties of the bundle, for `metadata/properties.yaml`.
    pub properties: Vec<Property>,
    /// Further annotations of the ClusterServiceVersion.
    pub annotations: BTreeMap<String, String>,
    /// Further annotations of the bundle, for `metadata/annotations.yaml` and the labels of its image.
    pub bundle_annotations: BTreeMap<String, String>,
    /// Further labels of the ClusterServiceVersion.
    pub labels: BTreeMap<String, String>,
    /// Anything else that a ClusterServiceVersion can say: laid over the generated one, and it has the last word.
    pub csv: Map<String, Json>,
    /// Findings that are known and meant.
    pub allow: Vec<Allowed>,
}

/// How consoles show one kind of custom resource. What is not said here comes from the CRD's schema.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiSettings {
    /// The kind.
    pub kind: String,
    /// The version. Default: every one.
    pub version: String,
    /// The name people see.
    pub display_name: String,
    /// A sentence about it.
    pub description: String,
    /// Kinds that the operator makes for it.
    pub resources: Vec<ResourceReference>,
    /// Fields of `spec`.
    pub spec: Vec<Descriptor>,
    /// Fields of `status`.
    pub status: Vec<Descriptor>,
    /// What consoles may do with it.
    pub actions: Vec<Descriptor>,
    /// Fields of `spec` and `status` that are not shown, such as `spec.image`.
    pub hide: Vec<String>,
}

/// A dependency or a property: its type decides what the value is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Property {
    /// Such as `olm.package` or `olm.gvk`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it says.
    pub value: Json,
}

/// A kind of finding that is known and meant.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Allowed {
    /// The code, such as `csv-api-without-example`.
    pub code: String,
    /// Why it is meant.
    pub reason: String,
}

/// The JSON Schema of package files, for editors.
pub fn schema() -> Schema {
    // Every key may be absent; what that means is in its description. There are no others.
    let strict = schemars::transform::RecursiveTransform(|schema: &mut Schema| {
        schema.remove("default");
        if schema.get("properties").is_some() {
            schema.insert("additionalProperties".into(), false.into());
        }
    });
    let settings = schemars::generate::SchemaSettings::draft2020_12().with_transform(strict);
    settings.into_generator().into_root_schema_for::<PackageSettings>()
}

/// The package file that `bundle generate` finds by itself.
pub const FILE_NAME: &str = "olmkit.yaml";

/// Whether a document is a package file, and so no manifest: by the file's name, or by its keys.
pub(super) fn is_one(path: &str, root: &Node<'_>) -> bool {
    let is_object = ["apiVersion", "kind"].iter().any(|key| root.get(key).is_some());
    if root.as_mapping().is_none() || is_object {
        return false;
    }
    let sources = ["package", "manifests", "kustomize", "helm", "samples"];
    let is_named = path.rsplit('/').next() == Some(FILE_NAME);
    let has_keys = || {
        decode::decode_strict::<PackageSettings>(root).is_ok_and(|(_, unknown)| unknown.is_empty())
            && sources.iter().any(|key| root.get(key).is_some())
    };
    is_named || has_keys()
}

/// A package file that was read: its settings, and where each of them stands.
#[derive(Debug)]
pub struct PackageFile<'a> {
    source: Source<'a>,
    root: Node<'a>,
    /// What it says.
    pub settings: PackageSettings,
    /// Keys with values that cannot be read.
    broken: Vec<String>,
}

/// A package file as far as it can be read, and what is wrong with the rest; or why nothing of it can be read.
pub type PartlyRead<'a> = Result<(PackageFile<'a>, Vec<Finding>), Vec<Finding>>;

impl<'a> PackageFile<'a> {
    /// Reads a package file.
    ///
    /// # Errors
    /// Findings: a syntax error, a value of a wrong type, and every key that does not exist.
    pub fn parse(source: Source<'a>) -> Result<Self, Vec<Finding>> {
        match yaml::first_document(source.text()) {
            Ok(document) => Self::new(source, document.root),
            Err(error) => {
                let place = Place::new(&source, error.span);
                Err(vec![Finding::new(&codes::SYNTAX, error.message).at(place)])
            }
        }
    }

    /// Reads what can be read of a package file, and says what cannot: so that everything that is wrong is found in one run.
    ///
    /// # Errors
    /// When nothing of it can be read.
    pub fn parse_part(source: Source<'a>) -> PartlyRead<'a> {
        match yaml::first_document(source.text()) {
            Ok(document) => {
                let twice: Vec<_> =
                    document.notes.iter().filter_map(|note| duplicate_key(&source, note)).collect();
                let (file, findings) = Self::part(source, document.root)?;
                Ok((file, [twice, findings].concat()))
            }
            Err(error) => {
                let place = Place::new(&source, error.span);
                Err(vec![Finding::new(&codes::SYNTAX, error.message).at(place)])
            }
        }
    }

    /// Settings from a value that stands in a text.
    pub(super) fn new(source: Source<'a>, root: Node<'a>) -> Result<Self, Vec<Finding>> {
        let (file, findings) = Self::part(source, root)?;
        if findings.is_empty() { Ok(file) } else { Err(findings) }
    }

    /// The settings that can be read, and what is wrong with the others, key by key: decoding stops at the first value that
    /// does not fit.
    pub(super) fn part(source: Source<'a>, root: Node<'a>) -> PartlyRead<'a> {
        let invalid = |error: &decode::DecodeError, span| {
            let place = Place::new(&source, error.span.unwrap_or(span));
            Finding::new(&codes::PACKAGE_VALUE_INVALID, error.to_string()).at(place)
        };
        let Some(map) = root.as_mapping() else {
            return match decode::decode::<PackageSettings>(&root) {
                Ok(settings) => Ok((Self { source, root, settings, broken: Vec::new() }, Vec::new())),
                Err(error) => Err(vec![invalid(&error, root.span)]),
            };
        };
        let whole =
            |entries| Node { value: yaml::Value::Mapping(yaml::Mapping::new(entries)), span: root.span };
        let (mut sound, mut broken, mut findings) = (Vec::new(), Vec::new(), Vec::new());
        let mut texts = texts_of_csv(&root);
        for entry in map {
            match decode::decode_noting::<PackageSettings>(&whole(vec![entry.clone()])) {
                Ok((_, noted)) => {
                    findings.extend(noted.unknown.iter().map(|key| unknown_key(&source, key)));
                    texts.extend(noted.as_text);
                    sound.push(entry.clone());
                }
                Err(error) => {
                    findings.push(invalid(&error, entry.value.span));
                    broken.push(entry.key.to_string());
                }
            }
        }
        // Where a text belongs, `1.10` is not the number 1.1, and `N` not false.
        let (mut sound, span) = (whole(sound), root.span);
        let mut root = root;
        if !texts.is_empty() {
            (sound, root) =
                (with_texts(&sound, &texts, source.text()), with_texts(&root, &texts, source.text()));
        }
        let settings = match decode::decode_strict::<PackageSettings>(&sound) {
            Ok((settings, _)) => settings,
            Err(error) => return Err(vec![invalid(&error, span)]),
        };
        Ok((Self { source, root, settings, broken }, findings))
    }

    /// Whether a value is there and cannot be read.
    pub(super) fn is_broken(&self, key: &str) -> bool {
        self.broken.iter().any(|broken| broken == key)
    }

    /// What is wrong with the value at a path.
    pub fn invalid(&self, message: impl Into<String>, path: &[Step<'_>]) -> Finding {
        Finding::new(&codes::PACKAGE_VALUE_INVALID, message).at(self.place(path))
    }

    /// The place of a path.
    pub fn place(&self, path: &[Step<'_>]) -> Place {
        Place::new(&self.source, self.root.locate(path))
    }

    /// The origin of a value at a path.
    pub(super) fn origin(&self, path: &[Step<'_>]) -> Origin<'_> {
        Origin::written(By::PackageFile, &self.source, self.root.locate(path))
    }

    /// A value as it is written.
    pub(super) fn free(&self, key: &str) -> Option<Draft<'_>> {
        Some(Draft::node(self.node(key)?, &self.source, By::PackageFile))
    }

    /// An item of a list as it is written.
    pub(super) fn item(&self, key: &str, at: usize) -> Option<Draft<'_>> {
        let item = self.node(key)?.as_sequence()?.get(at)?;
        Some(Draft::node(item, &self.source, By::PackageFile))
    }

    /// Every item of a list as it is written.
    pub(super) fn items(&self, key: &str) -> Vec<Draft<'_>> {
        self.free(key).map(Draft::into_items).unwrap_or_default()
    }

    /// Whether there is nothing under a key.
    pub(super) fn item_is_empty(&self, key: &str) -> bool {
        self.free(key).is_none_or(|draft| draft.is_empty())
    }

    pub(super) fn node(&self, key: &str) -> Option<&Node<'a>> {
        self.root.as_mapping()?.get_folded(key)
    }
}

/// Where annotations and labels of the ClusterServiceVersion stand, which are texts in a part that has no types.
fn texts_of_csv(root: &Node<'_>) -> BTreeSet<Span> {
    let metadata = root.get("csv").and_then(|csv| csv.get("metadata"));
    let maps = ["annotations", "labels"].into_iter().filter_map(|key| metadata?.get(key)?.as_mapping());
    maps.flatten().map(|entry| entry.value.span).collect()
}

/// A node in which the numbers and booleans at these places are the texts that stand there.
fn with_texts<'a>(node: &Node<'a>, spans: &BTreeSet<Span>, text: &'a str) -> Node<'a> {
    use yaml::Value;
    let value = match &node.value {
        Value::Sequence(items) => {
            Value::Sequence(items.iter().map(|item| with_texts(item, spans, text)).collect())
        }
        Value::Mapping(map) => {
            let entries = map
                .iter()
                .map(|entry| yaml::Entry { value: with_texts(&entry.value, spans, text), ..entry.clone() });
            Value::Mapping(yaml::Mapping::new(entries.collect()))
        }
        Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) if spans.contains(&node.span) => {
            let written = text.get(node.span.start as usize..node.span.end as usize).unwrap_or("");
            // The source of an alias or a tagged scalar is not its value.
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-._:".contains(c);
            match !written.is_empty() && written.chars().all(is_plain) {
                true => Value::String(written.into()),
                false => node.value.clone(),
            }
        }
        other => other.clone(),
    };
    Node { value, span: node.span }
}

/// Reports a duplicate key: the package file does not say which of the two values is meant.
fn duplicate_key(source: &Source<'_>, note: &yaml::Note) -> Option<Finding> {
    let yaml::Note::DuplicateKey { key, first, second } = note else { return None };
    let message = format!("duplicate key `{}`", key.replace('`', "'"));
    let finding = Finding::new(&codes::PACKAGE_VALUE_INVALID, message).at(Place::new(source, *second));
    Some(finding.and(Place::new(source, *first).label("first here")).help("remove one of them"))
}

fn unknown_key(source: &Source<'_>, key: &decode::UnknownField) -> Finding {
    let mut expected = key.expected.to_vec();
    expected.sort_unstable();
    let help = did_you_mean(&key.key, key.expected.iter().copied())
        .unwrap_or_else(|| format!("the keys here are `{}`", expected.join("`, `")));
    Finding::new(&codes::PACKAGE_KEY_UNKNOWN, format!("`{}` is not a key here", key.key))
        .at(Place::new(source, key.span))
        .help(help)
}
