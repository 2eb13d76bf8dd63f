//! What works only in the namespace that the manifests name. OLM installs into the namespace that users choose, and changes
//! neither the subjects of bindings nor what a container is told.

use std::collections::{BTreeMap, BTreeSet};

use super::codes;
use super::draft::Draft;
use super::input;
use super::workload::{self, Account, Workload};
use crate::finding::Finding;
use crate::parse::Object;
use crate::subject::ServiceAccount;
use crate::yaml::{Node, steps};

/// Every service account of the cluster is in this group; with `:NAMESPACE` behind it, every one of a namespace.
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// Roles that every cluster has, besides those that start with `system:`.
const BUILT_IN: [&str; 4] = ["admin", "cluster-admin", "edit", "view"];
/// OLM binds this one to the accounts of Deployments that serve webhooks or APIs.
const AUTH_DELEGATOR: &str = "system:auth-delegator";
/// More settings than this are counted in messages instead of listed.
const LISTED: usize = 3;

/// A binding that goes into the bundle as it is, and the subjects that it alone grants something.
pub(super) struct Kept<'k, 'm> {
    pub(super) binding: Object<'m, 'm>,
    /// Whether its role is among the manifests.
    pub(super) has_role: bool,
    /// Whether its role collects the rules of roles that are not among the manifests.
    pub(super) is_open: bool,
    pub(super) subjects: Vec<&'k Node<'m>>,
    /// The service accounts that the manifests make.
    pub(super) accounts: &'k [Object<'m, 'm>],
    /// The Deployments that OLM gives a Service, a certificate and the rights to authenticate requests.
    pub(super) serving: &'k BTreeSet<String>,
}

/// A service account that a binding names with its namespace, and that OLM makes in another one.
pub(super) struct Fixed<'m> {
    binding: Object<'m, 'm>,
    name: String,
    namespace: String,
    reason: Reason,
}

/// Why a binding grants something in one namespace alone.
#[derive(Clone, Copy)]
enum Reason {
    /// Its role is not among the manifests.
    Role,
    /// Its role collects the rules of roles that are not among the manifests.
    CollectedRoles,
    /// No Deployment runs as the service account.
    Account,
    /// The Deployment that runs as a service account of this name is in another namespace.
    Namespace,
}

/// What of a binding's rights is nobody's or everybody's; and the service accounts that have them in one namespace alone.
pub(super) fn of_binding<'m>(kept: &Kept<'_, 'm>, workload: &Workload<'_>) -> (Vec<Finding>, Vec<Fixed<'m>>) {
    let binding = kept.binding;
    let role = role_of(&binding);
    let name = binding.text(steps!("roleRef", "name"));
    let is_known_name = BUILT_IN.contains(&name) || name.starts_with("system:");
    let is_built_in = is_known_name && role.starts_with("ClusterRole/");
    if !kept.has_role && !is_built_in {
        let message = format!("`{}` refers to `{role}`, which is not among the manifests", binding.id());
        let finding = binding.finding(&codes::ROLE_UNKNOWN, message, steps!("roleRef", "name"));
        let help = "add the role to the manifests, or correct the name: the binding grants nothing while there is no such role";
        return (vec![finding.help(help)], Vec::new());
    }
    let groups = kept.subjects.iter().filter_map(|own| of_group(binding, own, &role, workload)).collect();
    let fixed = kept.subjects.iter().filter_map(|subject| of_subject(kept, subject, workload)).collect();
    (groups, fixed)
}

/// A service account that has the rights of a binding in one namespace alone.
fn of_subject<'m>(kept: &Kept<'_, 'm>, subject: &Node<'m>, workload: &Workload<'_>) -> Option<Fixed<'m>> {
    let ServiceAccount { name: account, namespace } = ServiceAccount::of(subject)?;
    if namespace.is_empty() {
        return None;
    }
    let binding = kept.binding;
    let own = workload.account(account, namespace);
    let reason = if workload.is_main(namespace) {
        let serves = own.is_some_and(|own| own.deployments.iter().any(|name| kept.serving.contains(*name)));
        let is_here =
            |made: &Object<'_, '_>| made.name() == account && workload.is_main(input::namespace(made));
        let is_made = own.is_some() || kept.accounts.iter().any(is_here);
        if !is_made || serves && binding.text(steps!("roleRef", "name")) == AUTH_DELEGATOR {
            return None;
        }
        match own {
            Some(_) if kept.is_open => Reason::CollectedRoles,
            Some(_) => Reason::Role,
            None => Reason::Account,
        }
    } else if own.is_none() && is_astray(kept, account, namespace, workload) {
        Reason::Namespace
    } else {
        return None;
    };
    Some(Fixed { binding, name: account.to_owned(), namespace: namespace.to_owned(), reason })
}

/// Whether a service account is probably that of a Deployment, in a wrong namespace: nothing makes it there, and the
/// binding does not name that of the Deployment.
fn is_astray(kept: &Kept<'_, '_>, account: &str, namespace: &str, workload: &Workload<'_>) -> bool {
    let is_deployed = workload.named(account).any(Account::is_deployed);
    let is_made = kept.accounts.iter().any(|own| own.name() == account && input::namespace(own) == namespace);
    let subjects = kept.binding.root.get("subjects").and_then(Node::as_sequence).unwrap_or(&[]);
    let names_own = subjects.iter().filter_map(ServiceAccount::of).any(|subject| {
        subject.name == account
            && workload.account(account, subject.namespace).is_some_and(Account::is_deployed)
    });
    // Every namespace has an account `default`.
    account != "default" && is_deployed && !is_made && !names_own
}

/// One finding for each service account.
pub(super) fn of_accounts(all: &[Fixed<'_>], workload: &Workload<'_>) -> Vec<Finding> {
    let mut by_account = BTreeMap::<_, Vec<&Fixed<'_>>>::new();
    for fixed in all {
        by_account.entry((&fixed.name, &fixed.namespace)).or_default().push(fixed);
    }
    let finding = |((name, namespace), fixed): ((&String, &String), Vec<&Fixed<'_>>)| {
        let first = fixed[0];
        let listed: Vec<_> = fixed.iter().take(LISTED).map(|own| format!("`{}`", own.binding.id())).collect();
        let more = match fixed.len().saturating_sub(LISTED) {
            0 => String::new(),
            1 => " and another binding".to_owned(),
            more => format!(" and {more} other bindings"),
        };
        let message = format!(
            "the service account `{name}` of the namespace `{namespace}` has the rights of {}{more} only where the operator is installed in that namespace",
            listed.join(", ")
        );
        let help = match first.reason {
            Reason::Role => format!(
                "bind a role that is among the manifests instead of `{}`: its rules become permissions of the bundle",
                role_of(&first.binding)
            ),
            Reason::CollectedRoles => format!(
                "add the ClusterRoles that `{}` collects to the manifests: their rules become permissions of the bundle",
                role_of(&first.binding)
            ),
            Reason::Account => format!(
                "pass `--extra-service-accounts {name}`: OLM then makes the account and grants its rights"
            ),
            Reason::Namespace => {
                let own = workload.namespace().map_or(String::new(), |own| format!(", `{own}`,"));
                format!(
                    "name the namespace of the Deployment{own} in the subject: the rights become permissions of the bundle"
                )
            }
        };
        let help = format!("{help}; or tell users to install into `{namespace}`");
        first.binding.finding(&codes::NAMESPACE_FIXED, message, steps!("subjects")).help(help)
    };
    by_account.into_iter().map(finding).collect()
}

fn role_of(binding: &Object<'_, '_>) -> String {
    let named = |key: &str| binding.text(steps!("roleRef", key));
    format!("{}/{}", named("kind"), named("name"))
}

/// Whether a subject is a group that the operator's service accounts are in, wherever it is installed or in its namespace.
pub(super) fn is_group_of_accounts(subject: &Node<'_>, workload: &Workload<'_>) -> bool {
    let text = |key| subject.get(key).and_then(Node::as_str).unwrap_or("");
    let Some(rest) = text("name").strip_prefix(SERVICE_ACCOUNTS).filter(|_| text("kind") == "Group") else {
        return false;
    };
    rest.is_empty() || rest.strip_prefix(':').is_some_and(|namespace| workload.is_main(namespace))
}

fn of_group(
    binding: Object<'_, '_>,
    subject: &Node<'_>,
    role: &str,
    workload: &Workload<'_>,
) -> Option<Finding> {
    if !is_group_of_accounts(subject, workload) {
        return None;
    }
    let group = subject.get("name").and_then(Node::as_str)?;
    let whom = match group.split(':').nth(2) {
        Some(namespace) => format!(
            "every service account of the namespace `{namespace}`, and the operator gets it only where it is installed there"
        ),
        None => "every service account, not only the operator's".to_owned(),
    };
    let message = format!("`{}` grants what `{role}` allows to {whom}", binding.id());
    let finding = Finding::new(&codes::SUBJECT_GROUP, message).at(binding.place_at(subject.span));
    Some(finding.help("name the service account of the operator instead of the group: its rights become permissions of the bundle"))
}

/// A Deployment that is told the namespace that its manifests name.
pub(super) fn of_deployment(deployment: &Draft<'_>, namespaces: &BTreeSet<&str>) -> Option<Finding> {
    let pod = deployment.at(&["spec", "template", "spec"])?;
    let containers = ["containers", "initContainers"].into_iter().flat_map(|list| pod.items_of(list));
    let settings = containers.flat_map(workload::settings);
    let told: Vec<_> = settings
        .filter_map(|setting| {
            let namespace = namespaces.iter().find(|own| names(setting.name, setting.value, own))?;
            Some((setting, *namespace))
        })
        .collect();
    let (first, namespace) = told.first()?;
    let listed =
        told.iter().take(LISTED).map(|(own, _)| format!("`{}={}`", own.name, own.value.replace('`', "'")));
    let more = if told.len() > LISTED { ", …" } else { "" };
    let message = format!(
        "`Deployment/{}` hard-codes the namespace `{namespace}` ({}{more}), but OLM installs it into the one that users choose",
        deployment.text("name"),
        listed.collect::<Vec<_>>().join(", "),
    );
    let finding = first.at.finding(&codes::NAMESPACE_FIXED, message);
    Some(finding.help("set a variable from `fieldRef: {fieldPath: metadata.namespace}`, and write `$(NAME)` instead of the namespace"))
}

/// Whether a setting names a namespace: it is called so, or the value is `NAMESPACE/NAME` or the host of a Service.
fn names(setting: &str, value: &str, namespace: &str) -> bool {
    let word = setting.to_ascii_lowercase().replace(['_', '-'], "");
    let is_called_so = word.contains("namespace") || word.ends_with("ns");
    if is_called_so && value.split([',', ' ']).any(|part| part == namespace) {
        return true;
    }
    let is_host = value.match_indices(namespace).any(|(at, _)| {
        let (before, after) = (&value[..at], &value[at + namespace.len()..]);
        before.ends_with('.')
            && (after == ".svc"
                || after.starts_with(".svc.")
                || after.starts_with(".svc:")
                || after.starts_with(".svc/"))
    });
    let is_object = value.split_once('/').is_some_and(|(first, name)| {
        first == namespace && crate::names::check_subdomain(name).is_ok() && !word.contains("image")
    });
    is_host || is_object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_name_a_namespace() {
        for (setting, value) in [
            ("--namespace", "system"),
            ("POD_NS", "system"),
            ("--watch-namespaces", "a,system"),
            ("--endpoint", "http://metrics.system.svc:8080"),
            ("URL", "metrics.system.svc.cluster.local"),
            ("--secret", "system/settings"),
        ] {
            assert!(names(setting, value, "system"), "{setting}={value}");
        }
        for (setting, value) in [
            ("--leader-election-id", "system"),
            ("--namespace", "$(POD_NAMESPACE)"),
            ("--namespace", "other-system"),
            ("URL", "http://system.example.com"),
            ("URL", "http://other-system.svc"),
            ("RELATED_IMAGE_X", "system/x"),
            ("--path", "system/x.y/z"),
        ] {
            assert!(!names(setting, value, "system"), "{setting}={value}");
        }
    }
}
