//! Objects of Kubernetes' own kinds, read into their types to see which keys no field takes.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::api::scheduling::v1::PriorityClass;

use crate::parse::Object;
use crate::yaml::decode::{UnknownField, decode_strict};

/// The keys that no field takes; none for kinds of others, and for objects that do not fit their type at all.
pub(super) fn unknown_fields(object: Object<'_, '_>) -> Vec<UnknownField> {
    macro_rules! read {
        ($($api_version:literal $kind:ident)*) => {
            match (object.api_version(), object.kind()) {
                $(($api_version, stringify!($kind)) => decode_strict::<$kind>(object.root).map(|(_, unknown)| unknown),)*
                _ => return Vec::new(),
            }
        };
    }
    // These implementations expect their own `apiVersion` and `kind`, which are checked above.
    let unknown = read! {
        "v1" ConfigMap
        "v1" Secret
        "v1" Service
        "v1" ServiceAccount
        "networking.k8s.io/v1" NetworkPolicy
        "policy/v1" PodDisruptionBudget
        "rbac.authorization.k8s.io/v1" ClusterRole
        "rbac.authorization.k8s.io/v1" ClusterRoleBinding
        "rbac.authorization.k8s.io/v1" Role
        "rbac.authorization.k8s.io/v1" RoleBinding
        "scheduling.k8s.io/v1" PriorityClass
    };
    unknown.unwrap_or_default()
}
