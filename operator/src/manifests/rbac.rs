//! What the operator may do: the least that forming, scaling and healing clusters needs, and no wildcard.
//!
//! Children are made by server-side apply (`create` and `patch`) and go with their owner, so `delete` is given
//! only where the operator itself removes things.

use k8s_openapi::api::{
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject},
};

use super::{NAME, NAMESPACE, cluster_metadata, metadata};

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn service_account() -> ServiceAccount {
    ServiceAccount { metadata: metadata(NAME), ..Default::default() }
}

/// Cluster-wide, because a RedisCluster may be in any namespace.
pub(super) fn cluster_role() -> ClusterRole {
    ClusterRole {
        metadata: cluster_metadata(NAME),
        rules: Some(vec![
            rule("cache.example.com", &["redisclusters"], &["list", "patch", "watch"]),
            rule("cache.example.com", &["redisclusters/status"], &["patch"]),
            // Where OwnerReferencesPermissionEnforcement is on, setting an owner reference that blocks the
            // owner's deletion needs the right to set its finalizers.
            rule("cache.example.com", &["redisclusters/finalizers"], &["update"]),
            // Deleted in the finalizer: the garbage collector acts only once its owner is gone.
            rule("apps", &["statefulsets"], &["create", "delete", "get", "list", "patch", "watch"]),
            rule("", &["configmaps", "services"], &["create", "get", "list", "patch", "watch"]),
            // Secrets are read everywhere: a cluster's password is in a Secret that its user names.
            rule("", &["secrets"], &["create", "get", "list", "watch"]),
            // Deleted when they cannot start and their template was corrected.
            rule("", &["pods"], &["delete", "list", "watch"]),
            // Whether their nodes are in sync with their shards is part of their readiness.
            rule("", &["pods/status"], &["patch"]),
            // Their zones: the copies of a shard belong in different ones.
            rule("", &["nodes"], &["get"]),
            // Kept with a label, or deleted, when their cluster is; deleted when their node was drained.
            rule("", &["persistentvolumeclaims"], &["delete", "list", "patch", "watch"]),
            rule("networking.k8s.io", &["networkpolicies"], &["create", "get", "list", "patch", "watch"]),
            rule("policy", &["poddisruptionbudgets"], &["create", "get", "list", "patch", "watch"]),
            // Read while a pod is missing: why Kubernetes does not create it is nowhere else.
            rule("events.k8s.io", &["events"], &["create", "list", "patch"]),
            // Where nobody mounts a certificate for the webhooks, the operator makes one and announces it here.
            PolicyRule {
                resource_names: Some(vec!["redisclusters.cache.example.com".into()]),
                ..rule("apiextensions.k8s.io", &["customresourcedefinitions"], &["get", "patch"])
            },
            PolicyRule {
                resource_names: Some(vec![NAME.into()]),
                ..rule(
                    "admissionregistration.k8s.io",
                    &["validatingwebhookconfigurations"],
                    &["get", "patch"],
                )
            },
        ]),
        ..Default::default()
    }
}

pub(super) fn cluster_role_binding() -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: cluster_metadata(NAME),
        role_ref: RoleRef { api_group: RBAC.into(), kind: "ClusterRole".into(), name: NAME.into() },
        subjects: Some(vec![operator()]),
    }
}

/// In the operator's own namespace: the Lease that makes one of its pods the leader.
pub(super) fn role() -> Role {
    Role {
        metadata: metadata(NAME),
        rules: Some(vec![
            // A rule for `create` cannot name the object.
            rule("coordination.k8s.io", &["leases"], &["create"]),
            PolicyRule {
                resource_names: Some(vec![NAME.into()]),
                ..rule("coordination.k8s.io", &["leases"], &["get", "update"])
            },
        ]),
    }
}

pub(super) fn role_binding() -> RoleBinding {
    RoleBinding {
        metadata: metadata(NAME),
        role_ref: RoleRef { api_group: RBAC.into(), kind: "Role".into(), name: NAME.into() },
        subjects: Some(vec![operator()]),
    }
}

fn operator() -> Subject {
    Subject {
        kind: "ServiceAccount".into(),
        name: NAME.into(),
        namespace: Some(NAMESPACE.into()),
        ..Default::default()
    }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..Default::default()
    }
}
