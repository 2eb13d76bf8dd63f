//! The install modes that the manifests speak for: where the operator may read its custom resources, and which namespaces it
//! is told to watch.

use super::Compat;
use super::draft::{Draft, Origin};
use super::input::Objects;
use super::namespaces::is_group_of_accounts;
use super::rbac::Rbac;
use super::workload::{WATCH_NAMESPACE, Workload};
use crate::crd::Crd;
use crate::parse::Object;
use crate::yaml::{Node, steps};

/// What the manifests say of install modes.
pub(super) struct Modes<'m> {
    /// The modes that are supported.
    pub(super) supported: Vec<&'static str>,
    /// Why, in a clause.
    pub(super) why: String,
    pub(super) origin: Origin<'m>,
    /// Whether OLM tells the operator what to watch.
    pub(super) is_told: bool,
}

/// The modes of an operator that watches its own namespace; none when nothing speaks against all namespaces.
pub(super) fn derive<'m>(
    objects: &Objects<'m>,
    workload: &Workload<'m>,
    rbac: &Rbac<'m>,
    compat: Option<Compat>,
) -> Option<Modes<'m>> {
    if compat.is_some() {
        return None;
    }
    let variables = || {
        workload.deployments.iter().flat_map(|deployment| {
            let pod = deployment.at(&["spec", "template", "spec"]);
            let list = pod.and_then(|pod| pod.get("containers")).map(Draft::items).unwrap_or_default();
            list.iter().flat_map(|container| container.items_of("env"))
        })
    };
    let is_told = variables().any(|variable| variable.text("name") == WATCH_NAMESPACE);
    let supported = if is_told { vec!["OwnNamespace", "SingleNamespace"] } else { vec!["OwnNamespace"] };
    let own = variables().find(|variable| {
        let (name, from) = (variable.text("name"), variable.at(&["valueFrom", "fieldRef"]));
        let is_own = from.is_some_and(|from| from.text("fieldPath") == "metadata.namespace");
        is_own && name.contains("WATCH") && name.contains("NAMESPACE")
    });
    if let Some(variable) = own.filter(|_| !is_told) {
        let why = format!("`{}` tells the operator to watch its own namespace", variable.text("name"));
        return Some(Modes { supported, why, origin: variable.origin(), is_told });
    }
    let namespaced = |crd: &&Object<'m, 'm>| Crd::from(**crd).text(steps!("spec", "scope")) == "Namespaced";
    let groups: Vec<_> =
        objects.crds.iter().filter(namespaced).map(|crd| Crd::from(*crd).group().into_owned()).collect();
    // A role that is not here, such as `cluster-admin`, may allow anything.
    let unknown = rbac.leftovers.iter().filter(|own| own.kind() == "ClusterRoleBinding").any(|binding| {
        let subjects = binding.root.get("subjects").and_then(Node::as_sequence).unwrap_or(&[]);
        let text = |subject: &Node<'m>, key| subject.get(key).and_then(Node::as_str).unwrap_or("").to_owned();
        let known =
            objects.cluster_roles.iter().any(|role| role.name() == binding.text(steps!("roleRef", "name")));
        let is_account =
            |own: &Node<'m>| workload.account(&text(own, "name"), &text(own, "namespace")).is_some();
        // What a group of theirs may do is in no permission of the bundle.
        subjects.iter().any(|own| !known && is_account(own) || is_group_of_accounts(own, workload))
    });
    if unknown || reading(&rbac.cluster_permissions, &groups).is_some() {
        return None;
    }
    let rule = reading(&rbac.permissions, &groups)?;
    let why = "the operator may read its custom resources in its own namespace alone".to_owned();
    Some(Modes { supported, why, origin: rule.origin(), is_told })
}

/// A rule that lets one list or watch something of these groups.
fn reading<'d, 'm>(permissions: &'d [Draft<'m>], groups: &[String]) -> Option<&'d Draft<'m>> {
    let rules = permissions.iter().flat_map(|entry| entry.items_of("rules"));
    let mut rules = rules.filter(|rule| {
        let has = |key: &str, wanted: &dyn Fn(&str) -> bool| {
            let items = rule.items_of(key);
            items.iter().filter_map(Draft::as_str).any(|item| item == "*" || wanted(item))
        };
        has("apiGroups", &|own| groups.iter().any(|group| group == own))
            && has("verbs", &|verb| matches!(verb, "list" | "watch"))
    });
    rules.next()
}
