//! The subjects of role bindings: which service account one names.

use crate::yaml::Node;

/// The name of a service account's user is this, its namespace and its name:
/// <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-subjects>.
const USER_PREFIX: &str = "system:serviceaccount:";

/// A service account as the subject of a binding names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServiceAccount<'n> {
    pub(crate) name: &'n str,
    /// Empty if the subject names no namespace.
    pub(crate) namespace: &'n str,
}

impl<'n> ServiceAccount<'n> {
    /// The service account that a subject names: as a `ServiceAccount`, or as the `User` that Kubernetes authenticates it as.
    pub(crate) fn of(subject: &'n Node<'_>) -> Option<Self> {
        let text = |key| subject.get(key).and_then(Node::as_str).unwrap_or("");
        match text("kind") {
            "ServiceAccount" => Some(Self { name: text("name"), namespace: text("namespace") }),
            "User" => {
                let (namespace, name) = text("name").strip_prefix(USER_PREFIX)?.split_once(':')?;
                let is_whole = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
                is_whole.then_some(Self { name, namespace })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_that_subjects_name() {
        for (subject, expected) in [
            ("{kind: ServiceAccount, name: op, namespace: sys}", Some(("op", "sys"))),
            ("{kind: ServiceAccount, name: op}", Some(("op", ""))),
            ("{kind: User, name: 'system:serviceaccount:sys:op'}", Some(("op", "sys"))),
            ("{kind: User, name: 'system:serviceaccount:sys'}", None),
            ("{kind: User, name: 'system:serviceaccount::op'}", None),
            ("{kind: User, name: 'system:serviceaccount:sys:op:x'}", None),
            ("{kind: User, name: op, namespace: sys}", None),
            ("{kind: Group, name: 'system:serviceaccount:sys:op'}", None),
        ] {
            let document = crate::yaml::first_document(subject).unwrap();
            let found = ServiceAccount::of(&document.root).map(|own| (own.name, own.namespace));
            assert_eq!(found, expected, "{subject}");
        }
    }
}
