//! What the operator's service accounts may do: roles joined to accounts through bindings.
//!
//! OLM makes the service accounts of the Deployments itself and grants them what `permissions` (in the watched
//! namespaces) and `clusterPermissions` (everywhere) say. Roles and bindings that serve those accounts alone
//! therefore turn into rules; all others stay manifests.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use super::draft::{By, Draft, Origin};
use super::input::{self, Objects};
use super::workload::{Account, Workload};
use super::{Compat, codes};
use crate::finding::Findings;
use crate::kinds;
use crate::parse::Object;
use crate::yaml::{Node, steps};

/// What the service accounts may do, and what of the RBAC objects is left over.
pub(super) struct Rbac<'m> {
    /// The entries of `spec.install.spec.permissions`.
    pub(super) permissions: Vec<Draft<'m>>,
    /// The entries of `spec.install.spec.clusterPermissions`.
    pub(super) cluster_permissions: Vec<Draft<'m>>,
    /// Roles, bindings and service accounts that go into the bundle as manifests.
    pub(super) leftovers: Vec<Object<'m, 'm>>,
}

pub(super) fn derive<'m>(
    objects: &Objects<'m>,
    workload: &Workload<'m>,
    compat: Option<Compat>,
    findings: &mut Findings,
) -> Rbac<'m> {
    let mut join =
        Join { accounts: &workload.accounts, objects, compat, used: Vec::new(), leftovers: Vec::new() };
    let mut permissions = join.bindings(&objects.role_bindings, findings);
    let cluster_permissions = join.bindings(&objects.cluster_role_bindings, findings);
    let Join { used, mut leftovers, .. } = join;
    let is_used = |role: &Object<'m, 'm>| used.iter().any(|used| std::ptr::eq(used.root, role.root));
    leftovers.extend(objects.roles.iter().chain(&objects.cluster_roles).filter(|role| !is_used(role)));
    let granted = |name: &str| {
        permissions.iter().chain(&cluster_permissions).any(|entry| entry.text("serviceAccountName") == name)
    };
    // OLM makes the accounts that it grants something to, and no others.
    let made = |account: &Account<'_>| compat.is_some() || account.deployed || granted(&account.name);
    let own = |object: &Object<'m, 'm>| {
        let mut accounts = workload.accounts.iter();
        accounts.any(|account| account.is(object.name(), input::namespace(object)) && made(account))
    };
    leftovers.extend(objects.service_accounts.iter().filter(|account| !own(account)));
    if compat.is_none() {
        let powerless: Vec<_> = workload
            .accounts
            .iter()
            .filter(|account| account.deployed && account.name != "default" && !granted(&account.name))
            .map(|account| {
                let rule =
                    account.origin.by_rule("OLM makes the service accounts that it grants something to");
                entry(account, Draft::list(Vec::new(), rule))
            })
            .collect();
        permissions.extend(powerless);
        report_lost_namespaces(&leftovers, objects, workload, findings);
    }
    Rbac { permissions, cluster_permissions, leftovers }
}

fn entry<'m>(account: &Account<'m>, rules: Draft<'m>) -> Draft<'m> {
    let mut entry = Draft::map(account.origin);
    entry.set(&["serviceAccountName"], Draft::new(account.name.as_str(), account.origin));
    entry.set(&["rules"], rules);
    entry
}

/// OLM puts every object into the operator's own namespace.
fn report_lost_namespaces(
    leftovers: &[Object<'_, '_>],
    objects: &Objects<'_>,
    workload: &Workload<'_>,
    findings: &mut Findings,
) {
    let Some(own) = workload.namespace() else { return };
    let carried = leftovers.iter().chain(&objects.others).chain(&objects.services);
    for object in carried {
        let namespace = input::namespace(object);
        let namespaced = kinds::supported(object.kind()).is_some_and(|kind| kind.namespaced);
        if namespaced && !namespace.is_empty() && namespace != own {
            let message = format!(
                "`{}` is to be in the namespace `{namespace}`, and OLM will put it where the operator is",
                object.id()
            );
            let finding = object.finding(&codes::NAMESPACE_LOST, message, steps!("metadata", "namespace"));
            findings.push(finding.help("have the operator create it, or make do with a cluster-wide role"));
        }
    }
}

struct Join<'o, 'm> {
    accounts: &'o [Account<'m>],
    objects: &'o Objects<'m>,
    compat: Option<Compat>,
    /// The roles that turned into rules.
    used: Vec<Object<'m, 'm>>,
    leftovers: Vec<Object<'m, 'm>>,
}

impl<'o, 'm> Join<'o, 'm> {
    /// The rules that bindings give to the operator's accounts, an entry for each account.
    fn bindings(&mut self, bindings: &[Object<'m, 'm>], findings: &mut Findings) -> Vec<Draft<'m>> {
        let mut rules = BTreeMap::<&'o str, Granted<'o, 'm>>::new();
        for binding in bindings {
            let role = self.role(binding);
            let subjects = binding.root.get("subjects").and_then(Node::as_sequence).unwrap_or(&[]);
            let mine: Vec<_> = subjects.iter().filter_map(|subject| self.account(subject)).collect();
            if self.compat.is_none() {
                self.report_unknown(binding, subjects, findings);
            }
            if let Some(role) = role.filter(|_| !mine.is_empty()) {
                self.used.push(role);
                let granted = role.root.get("rules").and_then(Node::as_sequence).unwrap_or(&[]);
                for account in &mine {
                    let grants = rules.entry(&account.name).or_insert_with(|| Granted::to(account));
                    for rule in granted {
                        let rule = Draft::node(rule, role.source, By::Manifest);
                        let bound = [Origin::manifest(binding, steps!("subjects"))];
                        grants.add(rule.made_of(bound), self.compat.is_none());
                    }
                }
            }
            // A binding to somebody else's account, or to a role that is not here, still has work to do.
            if role.is_none() || mine.len() < subjects.len() {
                self.leftovers.push(*binding);
            }
        }
        let granted = rules.into_values().filter(|granted| !granted.rules.is_empty());
        granted.map(|granted| entry(granted.to, Draft::list(granted.rules, granted.to.origin))).collect()
    }

    /// Subjects that should be accounts of this operator, and are not among its manifests.
    fn report_unknown(&self, binding: &Object<'m, 'm>, subjects: &[Node<'_>], findings: &mut Findings) {
        for (at, subject) in subjects.iter().enumerate() {
            let text = |key| subject.get(key).and_then(Node::as_str).unwrap_or("");
            let (name, namespace) = (text("name"), text("namespace"));
            let elsewhere = !namespace.is_empty()
                && self.accounts.iter().all(|own| !own.namespace.is_empty() && own.namespace != namespace);
            let known = |account: &Object<'_, '_>| {
                let own = input::namespace(account);
                account.name() == name && (own.is_empty() || namespace.is_empty() || own == namespace)
            };
            if text("kind") != "ServiceAccount"
                || elsewhere
                || self.account(subject).is_some()
                || self.objects.service_accounts.iter().any(known)
            {
                continue;
            }
            let message = format!(
                "`{}` grants rights to the service account `{name}`, which no Deployment runs as and no manifest makes",
                binding.id()
            );
            let finding = binding.finding(&codes::SUBJECT_UNKNOWN, message, steps!("subjects", at, "name"));
            findings.push(finding.help("add the ServiceAccount, correct the name, or remove the subject"));
        }
    }

    fn role(&self, binding: &Object<'m, 'm>) -> Option<Object<'m, 'm>> {
        let name = binding.text(steps!("roleRef", "name"));
        let objects = self.objects;
        let (own, compat) = (input::namespace(binding), self.compat.is_some());
        let same = |role: &Object<'_, '_>| {
            let other = input::namespace(role);
            compat || own.is_empty() || other.is_empty() || own == other
        };
        let found = match binding.text(steps!("roleRef", "kind")) {
            "Role" => objects.roles.iter().find(|role| role.name() == name && same(role)),
            "ClusterRole" => objects.cluster_roles.iter().find(|role| role.name() == name),
            _ => None,
        };
        found.copied()
    }

    /// The operator's account that a subject means, if it means one.
    fn account(&self, subject: &Node<'_>) -> Option<&'o Account<'m>> {
        let text = |key| subject.get(key).and_then(Node::as_str).unwrap_or("");
        let account = self.accounts.iter().find(|own| own.is(text("name"), text("namespace")));
        account.filter(|_| text("kind") == "ServiceAccount")
    }
}

/// What one account is granted.
struct Granted<'o, 'm> {
    to: &'o Account<'m>,
    rules: Vec<Draft<'m>>,
    /// The position of each rule.
    known: HashMap<String, usize>,
}

impl<'o, 'm> Granted<'o, 'm> {
    fn to(account: &'o Account<'m>) -> Self {
        Self { to: account, rules: Vec::new(), known: HashMap::new() }
    }

    /// Adds a rule; one that is there already is not added again, only remembered.
    fn add(&mut self, rule: Draft<'m>, once: bool) {
        match self.known.entry(rule.to_json().to_string()) {
            Entry::Occupied(at) if once => self.rules[*at.get()].add_origin(rule.origin()),
            Entry::Occupied(_) => self.rules.push(rule),
            Entry::Vacant(at) => {
                at.insert(self.rules.len());
                self.rules.push(rule);
            }
        }
    }
}
