//! The install modes that the manifests speak for: where the operator may read its custom resources, and which namespaces it
//! is told to watch.

use super::Compat;
use super::draft::{Draft, Origin};
use super::input::Objects;
use super::namespaces::is_group_of_accounts;
use super::rbac::Rbac;
use super::workload::{self, WATCH_NAMESPACE, Workload};
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
    let containers = || {
        workload.deployments.iter().flat_map(|deployment| {
            let pod = deployment.at(&["spec", "template", "spec"]);
            pod.and_then(|pod| pod.get("containers")).map(Draft::items).unwrap_or_default()
        })
    };
    let mut variables = containers().flat_map(|container| container.items_of("env"));
    let is_told = variables.any(|variable| variable.text("name") == WATCH_NAMESPACE);
    let supported = if is_told { vec!["OwnNamespace", "SingleNamespace"] } else { vec!["OwnNamespace"] };
    if let Some((name, origin)) = containers().find_map(own_namespace).filter(|_| !is_told) {
        let why = format!("`{}` tells the operator to watch its own namespace", name.replace('`', "'"));
        return Some(Modes { supported, why, origin, is_told });
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

/// The variable or the flag that tells a container to watch the namespace that it runs in.
fn own_namespace<'d, 'm>(container: &'d Draft<'m>) -> Option<(&'d str, Origin<'m>)> {
    let is_watched = |name: &str| {
        let name = name.to_ascii_uppercase();
        name.contains("WATCH") && name.contains("NAMESPACE")
    };
    let is_own = |variable: &&Draft<'m>| {
        let from = variable.at(&["valueFrom", "fieldRef"]);
        from.is_some_and(|from| from.text("fieldPath") == "metadata.namespace")
    };
    let own: Vec<_> = container.items_of("env").iter().filter(is_own).collect();
    if let Some(variable) = own.iter().find(|variable| is_watched(variable.text("name"))) {
        return Some((variable.text("name"), variable.origin()));
    }
    // Kubernetes puts the value of a variable where `$(NAME)` stands.
    let takes_own = |value: &str| {
        let name = value.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
        name.is_some_and(|name| own.iter().any(|variable| variable.text("name") == name))
    };
    let settings = workload::settings(container);
    let found = settings.iter().find(|setting| is_watched(setting.name) && takes_own(setting.value))?;
    Some((found.name, found.at.origin()))
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
