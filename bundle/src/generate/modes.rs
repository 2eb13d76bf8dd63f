//! The install modes that the manifests speak for: where the operator may read its custom resources, and which namespaces it
//! is told to watch.
//!
//! What OLM really demands is little: a conversion webhook takes `AllNamespaces` alone, and CRDs of the whole cluster go with
//! every mode. The rest is what the operator can do with the rights and the namespaces that OLM gives it.

use super::draft::{Draft, Origin};
use super::input::{self, Objects};
use super::namespaces::is_group_of_accounts;
use super::rbac::Rbac;
use super::workload::{self, WATCH_NAMESPACE, Workload};
use super::{Compat, codes};
use crate::crd::Crd;
use crate::finding::{Finding, Findings, Level};
use crate::parse::Object;
use crate::subject::ServiceAccount;
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
    /// An owned API that belongs to the whole cluster, whichever namespace the operator watches.
    pub(super) cluster_wide: Option<String>,
}

impl Modes<'_> {
    /// What the bundle supports, and why.
    pub(super) fn message(&self) -> String {
        let names: Vec<_> = self.supported.iter().map(|mode| format!("`{mode}`")).collect();
        let (last, others) =
            names.split_last().map_or(("", [].as_slice()), |(last, own)| (last.as_str(), own));
        let names = match others {
            [] => last.to_owned(),
            others => format!("{} and {last}", others.join(", ")),
        };
        let not_all = if self.supports_all() { "" } else { ", and not `AllNamespaces`" };
        format!("{}: the bundle supports {names}{not_all}", self.why)
    }

    /// What to do where that is not right.
    pub(super) fn help(&self) -> String {
        let decide = "list the modes under `installModes` in the package file to decide otherwise";
        let doubt = match &self.cluster_wide {
            _ if self.supports_all() => {
                "; `AllNamespaces` works if the operator watches all namespaces where `WATCH_NAMESPACE` is empty".into()
            }
            Some(name) => format!(
                "; `{name}` belongs to the whole cluster, so that operators in two namespaces would both work on it"
            ),
            None => String::new(),
        };
        format!("{decide}{doubt}")
    }

    /// Whether the operator can watch all namespaces.
    pub(super) fn supports_all(&self) -> bool {
        self.supported.contains(&ALL)
    }
}

pub(super) const ALL: &str = "AllNamespaces";

/// The modes of an operator that watches its own namespace; none when nothing speaks against all namespaces.
pub(super) fn derive<'m>(
    objects: &Objects<'m>,
    workload: &Workload<'m>,
    rbac: &Rbac<'m>,
    compat: Option<Compat>,
    findings: &mut Findings,
) -> Option<Modes<'m>> {
    if compat.is_some() {
        return None;
    }
    let (namespaced, cluster_wide): (Vec<_>, Vec<_>) =
        objects.crds.iter().map(Api::of).partition(|api| api.is_namespaced);
    let is_unknown = has_unknown_role(objects, workload, rbac);
    if !is_unknown {
        report_cluster_wide(&cluster_wide, rbac, findings);
    }
    let containers = || {
        workload.deployments.iter().flat_map(|deployment| {
            let pod = deployment.at(&["spec", "template", "spec"]);
            pod.and_then(|pod| pod.get("containers")).map(Draft::items).unwrap_or_default()
        })
    };
    let mut variables = containers().flat_map(|container| container.items_of("env"));
    let told = variables.find(|variable| variable.text("name") == WATCH_NAMESPACE).map(Draft::origin);
    let cluster_wide = cluster_wide.first().map(|api| api.name.clone());
    let is_told = told.is_some();
    let supported = if is_told { vec!["OwnNamespace", "SingleNamespace"] } else { vec!["OwnNamespace"] };
    let modes = |supported, why, origin| Some(Modes { supported, why, origin, is_told, cluster_wide });
    let own =
        |name: &str| format!("`{}` tells the operator to watch its own namespace", name.replace('`', "'"));
    if let Some((name, origin)) = containers().find_map(own_namespace).filter(|_| !is_told) {
        return modes(supported, own(name), origin);
    }
    let reads_all = is_unknown || reading(&rbac.cluster_permissions, &namespaced).is_some();
    if reads_all {
        // OLM puts the namespaces there that the operator watches; all of them are an empty value.
        let origin = told.filter(|_| objects.deployments.iter().any(watches_own))?;
        let why = format!("{}, and its rights hold in all", own(WATCH_NAMESPACE));
        return modes([supported, vec![ALL]].concat(), why, origin);
    }
    let rule = reading(&rbac.permissions, &namespaced)?;
    let why = "the operator may read its custom resources only in its own namespace".to_owned();
    modes(supported, why, rule.origin())
}

/// A kind that a CRD defines.
struct Api {
    group: String,
    plural: String,
    /// `PLURAL.GROUP`.
    name: String,
    is_namespaced: bool,
}

impl Api {
    fn of(object: &Object<'_, '_>) -> Self {
        let crd = Crd::from(*object);
        Self {
            group: crd.group().into_owned(),
            plural: crd.text(steps!("spec", "names", "plural")).into_owned(),
            name: object.name().replace('`', "'"),
            is_namespaced: crd.text(steps!("spec", "scope")) == "Namespaced",
        }
    }
}

/// Whether the operator has a role that is not here, such as `cluster-admin`, which may allow anything.
fn has_unknown_role(objects: &Objects<'_>, workload: &Workload<'_>, rbac: &Rbac<'_>) -> bool {
    rbac.leftovers.iter().filter(|own| own.kind() == "ClusterRoleBinding").any(|binding| {
        let subjects = binding.root.get("subjects").and_then(Node::as_sequence).unwrap_or(&[]);
        let known =
            objects.cluster_roles.iter().any(|role| role.name() == binding.text(steps!("roleRef", "name")));
        let is_account = |own: &Node<'_>| {
            ServiceAccount::of(own).is_some_and(|own| workload.account(own.name, own.namespace).is_some())
        };
        // What a group of theirs may do is in no permission of the bundle.
        subjects.iter().any(|own| !known && is_account(own) || is_group_of_accounts(own, workload))
    })
}

/// Reports what a Role grants on the custom resources of the whole cluster: nothing.
fn report_cluster_wide(cluster_wide: &[Api], rbac: &Rbac<'_>, findings: &mut Findings) {
    for api in cluster_wide {
        let api = std::slice::from_ref(api);
        if reading(&rbac.cluster_permissions, api).is_some() {
            continue;
        }
        let Some(rule) = reading(&rbac.permissions, api) else { continue };
        let message = format!(
            "`{}` belongs to the whole cluster, and a Role grants nothing there: the operator cannot read it in any install mode",
            api[0].name
        );
        let finding = rule.finding(&codes::INSTALL_MODE_DERIVED, message);
        let finding = finding.help("grant the rights on it by a ClusterRole and a ClusterRoleBinding");
        findings.push(Finding { level: Level::Warning, ..finding });
    }
}

/// Whether the manifest gives `WATCH_NAMESPACE` the namespace that the Deployment is in.
fn watches_own(deployment: &Object<'_, '_>) -> bool {
    let containers = deployment.root.at(steps!("spec", "template", "spec", "containers"));
    let containers = containers.and_then(Node::as_sequence).into_iter().flatten();
    let lists = containers.filter_map(|container| container.get("env")?.as_sequence());
    lists.flatten().any(|variable| {
        let text = |path: &[_]| variable.at(path).and_then(Node::as_str).unwrap_or("");
        let namespace = input::namespace(deployment);
        let is_own = text(steps!("valueFrom", "fieldRef", "fieldPath")) == "metadata.namespace"
            || !namespace.is_empty() && text(steps!("value")) == namespace;
        text(steps!("name")) == WATCH_NAMESPACE && is_own
    })
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

/// A rule that lets one list or watch one of these kinds.
fn reading<'d, 'm>(permissions: &'d [Draft<'m>], apis: &[Api]) -> Option<&'d Draft<'m>> {
    let rules = permissions.iter().flat_map(|entry| entry.items_of("rules"));
    let mut rules = rules.filter(|rule| {
        let has = |key: &str, wanted: &str| {
            let items = rule.items_of(key);
            items.iter().filter_map(Draft::as_str).any(|item| item == "*" || item == wanted)
        };
        let is_of = |api: &Api| has("apiGroups", &api.group) && has("resources", &api.plural);
        (has("verbs", "list") || has("verbs", "watch")) && apis.iter().any(is_of)
    });
    rules.next()
}
