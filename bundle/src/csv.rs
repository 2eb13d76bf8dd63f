//! The ClusterServiceVersion as OLM reads it: the manifest that says how an operator is installed and shown.
//!
//! These are wire types: open, with OLM's own names, every field optional in the way Go's zero values are. They
//! read what is there and check nothing; [`crate::validate`] does. Unknown fields are not kept here: code that
//! must keep them holds the document beside the typed view (see [`crate::parse::Csv`]).

pub mod types;

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The API version of ClusterServiceVersions.
pub const API_VERSION: &str = "operators.coreos.com/v1alpha1";
/// The kind of ClusterServiceVersions.
pub const KIND: &str = "ClusterServiceVersion";

/// Annotations that OLM or its tools give a meaning to.
pub mod annotation {
    /// Examples of custom resources, as a JSON list.
    pub const ALM_EXAMPLES: &str = "alm-examples";
    /// The newer name of [`ALM_EXAMPLES`]; where both are, the older one counts.
    pub const OLM_EXAMPLES: &str = "olm.examples";
    /// A version range: installed versions in it may jump to this bundle.
    pub const SKIP_RANGE: &str = "olm.skipRange";
    /// The bundle that this one stands in for, version for version.
    pub const SUBSTITUTES_FOR: &str = "olm.substitutesFor";
    /// A JSON list of properties; `metadata/properties.yaml` is the better place.
    pub const PROPERTIES: &str = "olm.properties";
    /// When the bundle was generated.
    pub const CREATED_AT: &str = "createdAt";
    /// One of five capability levels.
    pub const CAPABILITIES: &str = "capabilities";
    /// Categories, with commas between.
    pub const CATEGORIES: &str = "categories";
    /// The operator's main image.
    pub const CONTAINER_IMAGE: &str = "containerImage";
    /// Where the sources are.
    pub const REPOSITORY: &str = "repository";
    /// Who supports the operator.
    pub const SUPPORT: &str = "support";
    /// The namespace the console suggests.
    pub const SUGGESTED_NAMESPACE: &str = "operatorframework.io/suggested-namespace";
}

/// A ClusterServiceVersion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterServiceVersion {
    /// [`API_VERSION`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Name, annotations, labels.
    pub metadata: ObjectMeta,
    /// Everything else.
    pub spec: ClusterServiceVersionSpec,
}

/// What a ClusterServiceVersion says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterServiceVersionSpec {
    /// How the operator is installed.
    pub install: InstallStrategy,
    /// The version, a semantic one.
    pub version: String,
    /// A release of the same version, part of the name when set.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub release: String,
    /// Such as `alpha` or `stable`; free text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub maturity: String,
    /// Custom resources that the operator brings or needs.
    #[serde(rename = "customresourcedefinitions")]
    pub custom_resource_definitions: Definitions<CrdDescription>,
    /// Aggregated APIs that the operator brings or needs.
    #[serde(rename = "apiservicedefinitions")]
    pub api_service_definitions: Definitions<ApiServiceDescription>,
    /// Webhooks that OLM sets up, with certificates.
    #[serde(rename = "webhookdefinitions", skip_serializing_if = "Vec::is_empty")]
    pub webhook_definitions: Vec<WebhookDescription>,
    /// Kinds that the cluster itself must know.
    #[serde(rename = "nativeAPIs", skip_serializing_if = "Vec::is_empty")]
    pub native_apis: Vec<GroupVersionKind>,
    /// The oldest Kubernetes the operator runs on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_kube_version: String,
    /// The name people see.
    pub display_name: String,
    /// Markdown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Words to find the operator by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// Who maintains it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub maintainers: Vec<Maintainer>,
    /// Who provides it.
    pub provider: AppLink,
    /// Where to read on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<AppLink>,
    /// One icon.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub icon: Vec<Icon>,
    /// Which namespaces the operator can be made to watch.
    pub install_modes: Vec<InstallMode>,
    /// The ClusterServiceVersion that this one takes over from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub replaces: String,
    /// ClusterServiceVersions that may jump to this one and are no longer offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<String>,
    /// Labels for the operator's objects; free use.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations for the operator's objects; free use.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Images that must be mirrored along.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related_images: Vec<RelatedImage>,
}

/// How the operator is installed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallStrategy {
    /// `deployment`, the only one there is.
    pub strategy: String,
    /// What is deployed.
    pub spec: InstallStrategySpec,
}

/// What the `deployment` strategy deploys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstallStrategySpec {
    /// The operator's workloads.
    pub deployments: Vec<DeploymentDescription>,
    /// What service accounts may do in the watched namespaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Permissions>,
    /// What service accounts may do everywhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cluster_permissions: Vec<Permissions>,
}

/// A Deployment that OLM creates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeploymentDescription {
    /// Its name.
    pub name: String,
    /// Its labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub label: BTreeMap<String, String>,
    /// Its spec.
    pub spec: DeploymentSpec,
}

/// Rules of one service account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Permissions {
    /// The service account's name.
    pub service_account_name: String,
    /// What it may do.
    pub rules: Vec<PolicyRule>,
}

/// APIs that the operator brings or needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Definitions<T> {
    /// Those it brings; the CRDs of custom resources are in the bundle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owned: Vec<T>,
    /// Those it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<T>,
}

/// One version of a custom resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CrdDescription {
    /// The CRD's name, `plural.group`.
    pub name: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The name people see.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// A sentence about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Kinds that the operator makes for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceReference>,
    /// How consoles show fields of `spec`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spec_descriptors: Vec<Descriptor>,
    /// How consoles show fields of `status`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status_descriptors: Vec<Descriptor>,
    /// What consoles may do with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub action_descriptors: Vec<Descriptor>,
}

/// A kind that an operator makes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ResourceReference {
    /// The name, mostly empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The kind.
    pub kind: String,
    /// The version.
    pub version: String,
}

/// How a field is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Descriptor {
    /// The path below `spec` or `status`.
    pub path: String,
    /// The name people see.
    #[serde(rename = "displayName", skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// A sentence about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Hints for consoles, `urn:alm:descriptor:…`.
    #[serde(rename = "x-descriptors", skip_serializing_if = "Vec::is_empty")]
    pub x_descriptors: Vec<String>,
    /// A fixed value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<serde_json::Value>,
}

/// One version of an aggregated API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiServiceDescription {
    /// The plural name.
    pub name: String,
    /// The group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The Deployment that serves it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deployment_name: String,
    /// The port it listens on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_port: Option<i32>,
    /// The name people see.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// A sentence about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Kinds that the operator makes for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceReference>,
    /// How consoles show fields of `spec`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spec_descriptors: Vec<Descriptor>,
    /// How consoles show fields of `status`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status_descriptors: Vec<Descriptor>,
    /// What consoles may do with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub action_descriptors: Vec<Descriptor>,
}

/// A webhook that OLM sets up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookDescription {
    /// Its name, unique in the bundle.
    pub generate_name: String,
    /// `ValidatingAdmissionWebhook`, `MutatingAdmissionWebhook` or `ConversionWebhook`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The Deployment that serves it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deployment_name: String,
    /// The port of the service; 443 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_port: Option<i32>,
    /// The port of the container, by number or name; the service's when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_port: Option<k8s_openapi::apimachinery::pkg::util::intstr::IntOrString>,
    /// What it is asked about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<k8s_openapi::api::admissionregistration::v1::RuleWithOperations>,
    /// `Fail` or `Ignore`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<String>,
    /// `Exact` or `Equivalent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_policy: Option<String>,
    /// Which objects it is asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_selector: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector>,
    /// `None` or `NoneOnDryRun`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side_effects: Option<String>,
    /// Seconds to wait for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
    /// The versions of AdmissionReview or ConversionReview it understands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub admission_review_versions: Vec<String>,
    /// `Never` or `IfNeeded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reinvocation_policy: Option<String>,
    /// The path of its URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_path: Option<String>,
    /// The CRDs it converts.
    #[serde(rename = "conversionCRDs", skip_serializing_if = "Vec::is_empty")]
    pub conversion_crds: Vec<String>,
}

/// Group, version and kind of an API.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GroupVersionKind {
    /// The group; empty for the core one.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl GroupVersionKind {
    /// From an object's `apiVersion`, which is `GROUP/VERSION`, or `VERSION` alone for the core group; none when it has
    /// more than one slash.
    pub fn parse(api_version: &str, kind: &str) -> Option<Self> {
        let (group, version) = match api_version.split_once('/') {
            Some((_, version)) if version.contains('/') => return None,
            Some(parts) => parts,
            None => ("", api_version),
        };
        Some(Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() })
    }
}

impl fmt::Display for GroupVersionKind {
    /// `KIND.VERSION.GROUP`, which kubectl understands too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.kind, &self.version, &self.group].into_iter().filter(|part| !part.is_empty());
        f.write_str(&parts.map(String::as_str).collect::<Vec<_>>().join("."))
    }
}

/// Somebody to ask.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Maintainer {
    /// Their name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Their address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email: String,
}

/// A name with an address on the web.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AppLink {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// A picture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Icon {
    /// The picture's bytes in base64.
    #[serde(rename = "base64data")]
    pub data: String,
    /// Its media type, such as `image/svg+xml`.
    #[serde(rename = "mediatype")]
    pub media_type: String,
}

/// Whether the operator can be made to watch a certain set of namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallMode {
    /// `OwnNamespace`, `SingleNamespace`, `MultiNamespace` or `AllNamespaces`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it can.
    pub supported: bool,
}

/// An image that the operator uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RelatedImage {
    /// What it is for; may be empty.
    pub name: String,
    /// The reference.
    pub image: String,
}

impl CrdDescription {
    /// The group of the custom resource, which is what stands behind the first dot of the CRD's name.
    pub fn group(&self) -> Option<&str> {
        self.name.split_once('.').map(|(_, group)| group)
    }

    /// Group, version and kind. A name without a dot is taken for the group, as OLM's bundle validator takes it.
    pub fn gvk(&self) -> GroupVersionKind {
        let (version, kind) = (self.version.clone(), self.kind.clone());
        GroupVersionKind { group: self.group().unwrap_or(&self.name).to_owned(), version, kind }
    }
}

impl ClusterServiceVersion {
    /// The name; empty if missing.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or("")
    }

    /// An annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }
}
