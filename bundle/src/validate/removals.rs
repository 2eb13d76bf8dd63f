//! API versions that Kubernetes has removed, from 1.16 to 1.35 (k8s.io/api, `zz_generated.prerelease-lifecycle.go`).

use super::facts::Facts;
use crate::finding::Level;
use crate::version::{Version, parse_tolerant, precedence};

/// A kind in a version that is no longer served.
#[derive(Debug)]
pub(super) struct Removal {
    pub(super) group: &'static str,
    version: &'static str,
    pub(super) kind: &'static str,
    /// The minor version of Kubernetes 1 that was the first without it.
    minor: u64,
    pub(super) table: Table,
}

/// Which of operator-sdk's tables a removal is in (operator-framework/api `pkg/validation/internal/removed_apis.go`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// Objects alone are held against it.
    V1_22,
    /// Objects and kinds that custom resources name are held against it.
    V1_25,
    /// Objects alone are held against it.
    V1_26,
    /// In none of them.
    Wider,
}

/// The resources of operator-sdk's table for 1.25, which it also holds permissions against.
pub(super) const OLD_IN_1_25: [(&str, &str); 7] = [
    ("autoscaling", "horizontalpodautoscalers"),
    ("batch", "cronjobs"),
    ("discovery.k8s.io", "endpointslices"),
    ("events.k8s.io", "events"),
    ("node.k8s.io", "runtimeclasses"),
    ("policy", "poddisruptionbudgets"),
    ("policy", "podsecuritypolicies"),
];

const REMOVALS: &[Removal] = &[
    removal("apps", "v1beta1", "ControllerRevision", 16, Table::Wider),
    removal("apps", "v1beta1", "Deployment", 16, Table::Wider),
    removal("apps", "v1beta1", "StatefulSet", 16, Table::Wider),
    removal("apps", "v1beta2", "ControllerRevision", 16, Table::Wider),
    removal("apps", "v1beta2", "DaemonSet", 16, Table::Wider),
    removal("apps", "v1beta2", "Deployment", 16, Table::Wider),
    removal("apps", "v1beta2", "ReplicaSet", 16, Table::Wider),
    removal("apps", "v1beta2", "StatefulSet", 16, Table::Wider),
    removal("extensions", "v1beta1", "DaemonSet", 16, Table::Wider),
    removal("extensions", "v1beta1", "Deployment", 16, Table::Wider),
    removal("extensions", "v1beta1", "NetworkPolicy", 16, Table::Wider),
    removal("extensions", "v1beta1", "PodSecurityPolicy", 16, Table::Wider),
    removal("extensions", "v1beta1", "ReplicaSet", 16, Table::Wider),
    removal("admissionregistration.k8s.io", "v1beta1", "MutatingWebhookConfiguration", 22, Table::V1_22),
    removal("admissionregistration.k8s.io", "v1beta1", "ValidatingWebhookConfiguration", 22, Table::V1_22),
    removal("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition", 22, Table::V1_22),
    removal("apiregistration.k8s.io", "v1beta1", "APIService", 22, Table::V1_22),
    removal("authentication.k8s.io", "v1beta1", "TokenReview", 22, Table::V1_22),
    removal("authorization.k8s.io", "v1beta1", "LocalSubjectAccessReview", 22, Table::V1_22),
    removal("authorization.k8s.io", "v1beta1", "SelfSubjectAccessReview", 22, Table::V1_22),
    removal("authorization.k8s.io", "v1beta1", "SelfSubjectRulesReview", 22, Table::Wider),
    removal("authorization.k8s.io", "v1beta1", "SubjectAccessReview", 22, Table::V1_22),
    removal("certificates.k8s.io", "v1beta1", "CertificateSigningRequest", 22, Table::V1_22),
    removal("coordination.k8s.io", "v1beta1", "Lease", 22, Table::V1_22),
    removal("extensions", "v1beta1", "Ingress", 22, Table::V1_22),
    removal("networking.k8s.io", "v1beta1", "Ingress", 22, Table::V1_22),
    removal("networking.k8s.io", "v1beta1", "IngressClass", 22, Table::V1_22),
    removal("rbac.authorization.k8s.io", "v1beta1", "ClusterRole", 22, Table::V1_22),
    removal("rbac.authorization.k8s.io", "v1beta1", "ClusterRoleBinding", 22, Table::V1_22),
    removal("rbac.authorization.k8s.io", "v1beta1", "Role", 22, Table::V1_22),
    removal("rbac.authorization.k8s.io", "v1beta1", "RoleBinding", 22, Table::V1_22),
    removal("scheduling.k8s.io", "v1beta1", "PriorityClass", 22, Table::V1_22),
    removal("storage.k8s.io", "v1beta1", "CSIDriver", 22, Table::V1_22),
    removal("storage.k8s.io", "v1beta1", "CSINode", 22, Table::V1_22),
    removal("storage.k8s.io", "v1beta1", "StorageClass", 22, Table::V1_22),
    removal("storage.k8s.io", "v1beta1", "VolumeAttachment", 22, Table::V1_22),
    removal("storage.k8s.io", "v1alpha1", "CSIStorageCapacity", 24, Table::Wider),
    removal("storage.k8s.io", "v1alpha1", "VolumeAttachment", 24, Table::Wider),
    removal("autoscaling", "v2beta1", "HorizontalPodAutoscaler", 25, Table::V1_25),
    removal("batch", "v1beta1", "CronJob", 25, Table::V1_25),
    removal("discovery.k8s.io", "v1beta1", "EndpointSlice", 25, Table::V1_25),
    removal("events.k8s.io", "v1beta1", "Event", 25, Table::V1_25),
    removal("node.k8s.io", "v1beta1", "RuntimeClass", 25, Table::V1_25),
    removal("policy", "v1beta1", "Eviction", 25, Table::Wider),
    removal("policy", "v1beta1", "PodDisruptionBudget", 25, Table::V1_25),
    removal("policy", "v1beta1", "PodSecurityPolicy", 25, Table::V1_25),
    removal("autoscaling", "v2beta2", "HorizontalPodAutoscaler", 26, Table::V1_26),
    removal("flowcontrol.apiserver.k8s.io", "v1beta1", "FlowSchema", 26, Table::Wider),
    removal("flowcontrol.apiserver.k8s.io", "v1beta1", "PriorityLevelConfiguration", 26, Table::Wider),
    removal("storage.k8s.io", "v1beta1", "CSIStorageCapacity", 27, Table::Wider),
    removal("flowcontrol.apiserver.k8s.io", "v1beta2", "FlowSchema", 29, Table::Wider),
    removal("flowcontrol.apiserver.k8s.io", "v1beta2", "PriorityLevelConfiguration", 29, Table::Wider),
    removal("admissionregistration.k8s.io", "v1alpha1", "ValidatingAdmissionPolicy", 32, Table::Wider),
    removal("admissionregistration.k8s.io", "v1alpha1", "ValidatingAdmissionPolicyBinding", 32, Table::Wider),
    removal("authentication.k8s.io", "v1alpha1", "SelfSubjectReview", 32, Table::Wider),
    removal("flowcontrol.apiserver.k8s.io", "v1beta3", "FlowSchema", 32, Table::Wider),
    removal("flowcontrol.apiserver.k8s.io", "v1beta3", "PriorityLevelConfiguration", 32, Table::Wider),
    removal("authentication.k8s.io", "v1beta1", "SelfSubjectReview", 33, Table::Wider),
    removal("admissionregistration.k8s.io", "v1beta1", "ValidatingAdmissionPolicy", 34, Table::Wider),
    removal("admissionregistration.k8s.io", "v1beta1", "ValidatingAdmissionPolicyBinding", 34, Table::Wider),
    removal("storage.k8s.io", "v1alpha1", "VolumeAttributesClass", 35, Table::Wider),
];

const fn removal(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    minor: u64,
    table: Table,
) -> Removal {
    Removal { group, version, kind, minor, table }
}

/// The removal of a kind in an `apiVersion`, if it was removed.
pub(super) fn find(api_version: &str, kind: &str) -> Option<&'static Removal> {
    let (group, version) = api_version.split_once('/')?;
    REMOVALS
        .iter()
        .find(|removal| removal.group == group && removal.version == version && removal.kind == kind)
}

/// The minor version of Kubernetes 1 that was the first without a kind in an `apiVersion`.
pub(crate) fn removed_in(api_version: &str, kind: &str) -> Option<u64> {
    find(api_version, kind).map(|removal| removal.minor)
}

/// The removal of a resource, such as `ingresses` or `ingresses/status`.
pub(super) fn find_resource(group: &str, version: &str, resource: &str) -> Option<&'static Removal> {
    let resource = resource.split('/').next().unwrap_or(resource);
    let of_version = REMOVALS.iter().filter(|removal| removal.group == group && removal.version == version);
    of_version.into_iter().find(|removal| plural(removal.kind) == resource)
}

/// Whether a resource once was in the group `extensions`, of which nothing is left.
pub(super) fn is_in_extensions(resource: &str) -> bool {
    find_resource("extensions", "v1beta1", resource).is_some()
}

fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) if kind.ends_with("policy") || kind.ends_with("capacity") => format!("{stem}ies"),
        _ if kind.ends_with('s') => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

impl Removal {
    pub(super) fn message(&self) -> String {
        let Self { group, version, kind, minor, .. } = self;
        format!("`{kind}` of `{group}/{version}` was removed in Kubernetes 1.{minor}")
    }

    pub(super) fn help(&self) -> String {
        format!(
            "move to a version that is served; see https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-{}",
            self.minor
        )
    }

    /// An error where the bundle is meant for clusters without it alone.
    pub(super) fn level(&self, facts: &Facts<'_, '_>) -> Level {
        let minimum = facts.csv().and_then(|csv| parse_tolerant(&csv.typed.spec.min_kube_version).ok());
        let removed_in = Version::new(1, self.minor, 0);
        let is_meant = |version: &Version| precedence(version, &removed_in).is_ge();
        if minimum.iter().chain(&facts.options.kubernetes).any(is_meant) {
            Level::Error
        } else {
            Level::Warning
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_resources() {
        let found = |api_version, kind| find(api_version, kind).map(|removal| removal.minor);
        assert_eq!(found("extensions/v1beta1", "Ingress"), Some(22));
        assert_eq!(found("autoscaling/v2beta2", "HorizontalPodAutoscaler"), Some(26));
        assert_eq!(found("networking.k8s.io/v1", "Ingress"), None);
        let found = |resource| find_resource("extensions", "v1beta1", resource).map(|removal| removal.minor);
        assert_eq!(
            ["ingresses", "ingresses/status", "networkpolicies", "deployments/scale", "pods"].map(found),
            [Some(22), Some(22), Some(16), Some(16), None]
        );
    }
}
