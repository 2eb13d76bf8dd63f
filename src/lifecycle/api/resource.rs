//! Kinds of objects as the API server serves them, and the names of single objects.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A kind of objects, with the path it is served under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Resource {
    /// The group, empty for the core one.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural name, as in paths and rights.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// What one object is called. The version that it is served at is no part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The group of its kind.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, empty where it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// The name of the object that a document is.
    pub fn of(document: &Value) -> Self {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
        let api_version = text("/apiVersion");
        Self {
            group: api_version.split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default(),
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
        }
    }

    /// The name of an object of a kind.
    pub fn new(resource: &Resource, namespace: &str, name: &str) -> Self {
        let namespace = if resource.namespaced { namespace } else { "" };
        Self {
            group: resource.group.clone(),
            kind: resource.kind.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Its name and where it is: `demo/example in ns`.
    pub fn placed(&self) -> String {
        if self.namespace.is_empty() { self.to_string() } else { format!("{self} in {}", self.namespace) }
    }
}

impl fmt::Display for Key {
    /// `installplan/install-x7k2p`: the full name, since the short one means another kind on newer clusters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.to_lowercase(), self.name)
    }
}

impl Resource {
    /// `GROUP/VERSION`, or `VERSION` in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `PLURAL.GROUP`, or `PLURAL` in the core group: how rights name it.
    pub fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// The kinds that the lifecycle of an operator has to do with.
pub mod known {
    use std::sync::LazyLock;

    use super::Resource;

    macro_rules! resources {
        ($($name:ident = $group:literal $version:literal $kind:literal $plural:literal $namespaced:literal;)+) => {
            $(
                #[doc = $kind]
                pub static $name: LazyLock<Resource> = LazyLock::new(|| Resource {
                    group: $group.to_owned(),
                    version: $version.to_owned(),
                    kind: $kind.to_owned(),
                    plural: $plural.to_owned(),
                    namespaced: $namespaced,
                });
            )+

            /// All of them.
            pub fn all() -> Vec<&'static Resource> {
                vec![$(&$name),+]
            }
        };
    }

    resources! {
        SUBSCRIPTION = "operators.coreos.com" "v1alpha1" "Subscription" "subscriptions" true;
        INSTALL_PLAN = "operators.coreos.com" "v1alpha1" "InstallPlan" "installplans" true;
        CSV = "operators.coreos.com" "v1alpha1" "ClusterServiceVersion" "clusterserviceversions" true;
        CATALOG_SOURCE = "operators.coreos.com" "v1alpha1" "CatalogSource" "catalogsources" true;
        OPERATOR_GROUP = "operators.coreos.com" "v1" "OperatorGroup" "operatorgroups" true;
        OPERATOR_CONDITION = "operators.coreos.com" "v2" "OperatorCondition" "operatorconditions" true;
        OLM_CONFIG = "operators.coreos.com" "v1" "OLMConfig" "olmconfigs" false;
        PACKAGE_MANIFEST = "packages.operators.coreos.com" "v1" "PackageManifest" "packagemanifests" true;
        NAMESPACE = "" "v1" "Namespace" "namespaces" false;
        POD = "" "v1" "Pod" "pods" true;
        EVENT = "" "v1" "Event" "events" true;
        CONFIG_MAP = "" "v1" "ConfigMap" "configmaps" true;
        SECRET = "" "v1" "Secret" "secrets" true;
        PERSISTENT_VOLUME_CLAIM = "" "v1" "PersistentVolumeClaim" "persistentvolumeclaims" true;
        SERVICE = "" "v1" "Service" "services" true;
        SERVICE_ACCOUNT = "" "v1" "ServiceAccount" "serviceaccounts" true;
        DEPLOYMENT = "apps" "v1" "Deployment" "deployments" true;
        RESOURCE_QUOTA = "" "v1" "ResourceQuota" "resourcequotas" true;
        JOB = "batch" "v1" "Job" "jobs" true;
        ROLE = "rbac.authorization.k8s.io" "v1" "Role" "roles" true;
        ROLE_BINDING = "rbac.authorization.k8s.io" "v1" "RoleBinding" "rolebindings" true;
        CLUSTER_ROLE = "rbac.authorization.k8s.io" "v1" "ClusterRole" "clusterroles" false;
        CLUSTER_ROLE_BINDING = "rbac.authorization.k8s.io" "v1" "ClusterRoleBinding" "clusterrolebindings" false;
        PRIORITY_CLASS = "scheduling.k8s.io" "v1" "PriorityClass" "priorityclasses" false;
        CRD = "apiextensions.k8s.io" "v1" "CustomResourceDefinition" "customresourcedefinitions" false;
        VALIDATING_WEBHOOK = "admissionregistration.k8s.io" "v1" "ValidatingWebhookConfiguration"
            "validatingwebhookconfigurations" false;
        MUTATING_WEBHOOK = "admissionregistration.k8s.io" "v1" "MutatingWebhookConfiguration"
            "mutatingwebhookconfigurations" false;
        API_SERVICE = "apiregistration.k8s.io" "v1" "APIService" "apiservices" false;
    }
}

/// The kind of a document, if it is one that [`known`] has.
pub fn resource_of(document: &Value) -> Option<&'static Resource> {
    let key = Key::of(document);
    known::all().into_iter().find(|known| known.group == key.group && known.kind == key.kind)
}
