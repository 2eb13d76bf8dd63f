//! The subjects of RoleBindings and ClusterRoleBindings.

use k8s_openapi::api::rbac::v1::Subject;

use crate::refused::{Check, plain};
use crate::yaml::steps;

const KINDS: [&str; 3] = ["ServiceAccount", "User", "Group"];
const NAMESPACE_HELP: &str = "set the namespace of the ServiceAccount; rights of the operator's own ServiceAccount follow it to the \
                              namespace of the operator under `permissions` and `clusterPermissions` of the ClusterServiceVersion";

/// In a namespace, an account without one is of that namespace.
pub(super) fn check(check: &mut Check<'_>, subjects: Option<&[Subject]>, is_namespaced: bool) {
    for (at, subject) in subjects.into_iter().flatten().enumerate() {
        check.one_of(steps!("subjects", at, "kind"), Some(&subject.kind), &KINDS);
        if subject.name.is_empty() {
            check.push(steps!("subjects", at, "name"), "a subject has no `name`", "name who gets the rights");
        }
        let is_account = subject.kind == "ServiceAccount" && !is_namespaced;
        if is_account && subject.namespace.as_deref().unwrap_or("").is_empty() {
            let message = format!("the ServiceAccount `{}` has no `namespace`", plain(&subject.name));
            check.push(steps!("subjects", at, "namespace"), message, NAMESPACE_HELP);
        }
    }
}
