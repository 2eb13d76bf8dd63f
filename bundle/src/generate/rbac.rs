//! What the operator's service accounts may do: roles joined to accounts through bindings.
//!
//! OLM makes the service accounts of the Deployments itself and grants them what `permissions` (in the watched
//! namespaces) and `clusterPermissions` (everywhere) say. Roles and bindings that serve those accounts alone
//! therefore turn into rules; all others stay manifests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::input::Objects;
use super::workload::ServiceAccount;
use crate::parse::Object;
use crate::yaml::Node;

/// What the service accounts may do, and what of the RBAC objects is left over.
pub(super) struct Rbac<'m, 'a> {
    /// The entries of `spec.install.spec.permissions`.
    pub(super) permissions: Vec<Value>,
    /// The entries of `spec.install.spec.clusterPermissions`.
    pub(super) cluster_permissions: Vec<Value>,
    /// Roles, bindings and service accounts that go into the bundle as manifests.
    pub(super) leftovers: Vec<Object<'m, 'a>>,
}

pub(super) fn derive<'m, 'a>(objects: &Objects<'m, 'a>, accounts: &BTreeSet<ServiceAccount>) -> Rbac<'m, 'a> {
    let mut join = Join { accounts, objects, used: Vec::new(), leftovers: Vec::new() };
    let permissions = join.bindings(&objects.role_bindings);
    let cluster_permissions = join.bindings(&objects.cluster_role_bindings);
    let Join { used, mut leftovers, .. } = join;
    let is_used = |role: &Object<'m, 'a>| used.iter().any(|used| std::ptr::eq(used.root, role.root));
    leftovers.extend(objects.roles.iter().chain(&objects.cluster_roles).filter(|role| !is_used(role)));
    let own = |object: &Object<'m, 'a>| accounts.iter().any(|own| own.is(object.name(), namespace(object)));
    leftovers.extend(objects.service_accounts.iter().filter(|account| !own(account)));
    Rbac { permissions, cluster_permissions, leftovers }
}

impl ServiceAccount {
    /// Whether a name and a namespace mean this account.
    fn is(&self, name: &str, namespace: &str) -> bool {
        self.name == name && same_namespace(&self.namespace, namespace)
    }
}

/// Where one side names no namespace, it is applied to whatever namespace the other names.
fn same_namespace(a: &str, b: &str) -> bool {
    a.is_empty() || b.is_empty() || a == b
}

fn namespace<'m>(object: &Object<'m, '_>) -> &'m str {
    object.text(&["metadata".into(), "namespace".into()])
}

struct Join<'o, 'm, 'a> {
    accounts: &'o BTreeSet<ServiceAccount>,
    objects: &'o Objects<'m, 'a>,
    /// The roles that turned into rules.
    used: Vec<Object<'m, 'a>>,
    leftovers: Vec<Object<'m, 'a>>,
}

impl<'o, 'm, 'a> Join<'o, 'm, 'a> {
    /// The rules that bindings give to the operator's accounts, an entry for each account.
    fn bindings(&mut self, bindings: &[Object<'m, 'a>]) -> Vec<Value> {
        let mut rules = BTreeMap::<&str, Vec<Value>>::new();
        for binding in bindings {
            let role = self.role(binding);
            let subjects = binding.root.get("subjects").and_then(Node::as_sequence).unwrap_or(&[]);
            let mine: Vec<_> = subjects.iter().filter_map(|subject| self.account(subject)).collect();
            if let Some(role) = role.filter(|_| !mine.is_empty()) {
                self.used.push(role);
                let granted = role.root.get("rules").and_then(Node::as_sequence).unwrap_or(&[]);
                for account in &mine {
                    let list = rules.entry(account).or_default();
                    for rule in granted.iter().map(Node::to_json) {
                        if !list.contains(&rule) {
                            list.push(rule);
                        }
                    }
                }
            }
            // A binding to somebody else's account, or to a role that is not here, still has work to do.
            if role.is_none() || mine.len() < subjects.len() {
                self.leftovers.push(*binding);
            }
        }
        let entry = |(account, rules)| json!({ "serviceAccountName": account, "rules": rules });
        rules.into_iter().map(entry).collect()
    }

    fn role(&self, binding: &Object<'m, 'a>) -> Option<Object<'m, 'a>> {
        let name = binding.text(&["roleRef".into(), "name".into()]);
        let objects = self.objects;
        let found = match binding.text(&["roleRef".into(), "kind".into()]) {
            "Role" => objects
                .roles
                .iter()
                .find(|role| role.name() == name && same_namespace(namespace(role), namespace(binding))),
            "ClusterRole" => objects.cluster_roles.iter().find(|role| role.name() == name),
            _ => None,
        };
        found.copied()
    }

    /// The name of the operator's account that a subject means, if it means one.
    fn account(&self, subject: &Node<'_>) -> Option<&'o str> {
        let text = |key| subject.get(key).and_then(Node::as_str).unwrap_or("");
        let account = self.accounts.iter().find(|own| own.is(text("name"), text("namespace")));
        account.filter(|_| text("kind") == "ServiceAccount").map(|own| own.name.as_str())
    }
}
