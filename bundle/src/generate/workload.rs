//! The Deployments of the install strategy, the service accounts they run as, and the platforms they run on.

use std::collections::BTreeSet;

use serde_json::json;

use super::draft::{By, Draft, Origin};
use super::input::{self, Objects};
use super::package::Package;
use super::{Compat, codes};
use crate::finding::{Finding, Findings};
use crate::parse::Object;
use crate::yaml::{Node, steps};

/// OLM writes the namespaces an operator is to watch into this annotation of its pods.
const TARGET_NAMESPACES: &str = "metadata.annotations['olm.targetNamespaces']";
/// The variable by which operators are commonly told the same.
const WATCH_NAMESPACE: &str = "WATCH_NAMESPACE";
/// The service account of a pod that names none.
const DEFAULT_SERVICE_ACCOUNT: &str = "default";

/// The labels of nodes that say what they run on, and the labels of ClusterServiceVersions that say the same.
const PLATFORM_LABELS: [(&str, &str); 2] =
    [("kubernetes.io/arch", "operatorframework.io/arch."), ("kubernetes.io/os", "operatorframework.io/os.")];

/// What is deployed.
pub(super) struct Workload<'m> {
    /// The entries of `spec.install.spec.deployments`.
    pub(super) deployments: Vec<Draft<'m>>,
    /// The service accounts that get their rights from OLM, each once.
    pub(super) accounts: Vec<Account<'m>>,
    /// The namespaces of the Deployments, those that name one.
    pub(super) namespaces: BTreeSet<&'m str>,
}

/// A service account by name; without a namespace it matches in any.
#[derive(Clone, Debug)]
pub(super) struct Account<'m> {
    pub(super) name: String,
    pub(super) namespace: String,
    /// Whether a Deployment runs as it.
    pub(super) deployed: bool,
    pub(super) origin: Origin<'m>,
}

impl Account<'_> {
    /// Whether a name and a namespace mean this account.
    pub(super) fn is(&self, name: &str, namespace: &str) -> bool {
        let anywhere = self.namespace.is_empty() || namespace.is_empty();
        self.name == name && (anywhere || self.namespace == namespace)
    }
}

pub(super) fn derive<'m>(
    objects: &Objects<'m>,
    package: &Package<'m>,
    compat: Option<Compat>,
    findings: &mut Findings,
) -> Workload<'m> {
    let mut workload =
        Workload { deployments: Vec::new(), accounts: Vec::new(), namespaces: BTreeSet::new() };
    if objects.deployments.is_empty() {
        let message = "no Deployment among the manifests: there would be nothing to install";
        findings.push(
            Finding::new(&codes::NO_DEPLOYMENT, message).help("add the Deployment that runs the operator"),
        );
    }
    for object in &objects.deployments {
        if object.root.at(steps!("spec", "template")).is_none() {
            let message = format!("`{}` has no `spec.template`", object.id());
            findings.push(object.finding(&codes::DEPLOYMENT_INCOMPLETE, message, steps!("spec")));
        }
        workload.deployments.push(deployment(object, compat));
        let path = steps!("spec", "template", "spec", "serviceAccountName");
        let name = Some(object.text(path)).filter(|name| !name.is_empty());
        let namespace = input::namespace(object);
        workload.add(Account {
            name: name.unwrap_or(DEFAULT_SERVICE_ACCOUNT).to_owned(),
            // operator-sdk knows accounts by name alone.
            namespace: if compat.is_some() { "" } else { namespace }.to_owned(),
            deployed: true,
            origin: Origin::manifest(object, path),
        });
        workload.namespaces.extend(Some(namespace).filter(|namespace| !namespace.is_empty()));
    }
    for name in &package.extra_service_accounts {
        let origin = package.origin_of_extra_account(name);
        workload.add(Account { name: name.clone(), namespace: String::new(), deployed: false, origin });
    }
    workload
}

impl<'m> Workload<'m> {
    fn add(&mut self, account: Account<'m>) {
        if !self.accounts.iter().any(|own| own.name == account.name && own.namespace == account.namespace) {
            self.accounts.push(account);
        }
    }

    /// The one namespace that all Deployments are in, if they name one.
    pub(super) fn namespace(&self) -> Option<&'m str> {
        let mut namespaces = self.namespaces.iter();
        namespaces.next().copied().filter(|_| namespaces.next().is_none())
    }
}

fn deployment<'m>(object: &Object<'m, 'm>, compat: Option<Compat>) -> Draft<'m> {
    let mut entry = Draft::map(Origin::manifest(object, &[]));
    let mut take = |key: &str, node: Option<&'m Node<'m>>| {
        if let Some(node) = node {
            entry.set_some(&[key], Draft::node(node, object.source, By::Manifest));
        }
    };
    take("name", object.root.at(steps!("metadata", "name")));
    take("label", object.root.at(steps!("metadata", "labels")));
    take("spec", object.root.get("spec"));
    entry.set_default(&["spec"], Draft::map(Origin::manifest(object, steps!("spec"))));
    if let Some(spec) = entry.at_mut(&["spec"]) {
        wire_namespaces(spec, compat);
    }
    entry
}

/// Whatever value the manifest gives `WATCH_NAMESPACE`, under OLM the OperatorGroup decides.
fn wire_namespaces(spec: &mut Draft<'_>, compat: Option<Compat>) {
    let lists: &[&str] = if compat.is_some() { &["containers"] } else { &["containers", "initContainers"] };
    for list in lists {
        let containers = spec.at_mut(&["template", "spec", list]).map(Draft::items_mut).unwrap_or_default();
        for container in containers {
            for variable in container.at_mut(&["env"]).map(Draft::items_mut).unwrap_or_default() {
                if variable.text("name") == WATCH_NAMESPACE {
                    let origin = variable.origin().by_rule("the OperatorGroup decides what is watched");
                    let wired = json!({
                        "name": WATCH_NAMESPACE,
                        "valueFrom": { "fieldRef": { "fieldPath": TARGET_NAMESPACES } },
                    });
                    variable.set(&[], Draft::new(wired, origin));
                }
            }
        }
    }
}

/// The labels for the architectures and operating systems that every Deployment can run on, where they say so.
pub(super) fn platforms<'m>(objects: &Objects<'m>) -> Vec<(String, Origin<'m>)> {
    let mut labels = Vec::new();
    for (node_label, prefix) in PLATFORM_LABELS {
        let mut common: Option<Vec<(&str, Origin<'m>)>> = None;
        for object in &objects.deployments {
            let Some(own) = required(object, node_label) else { continue };
            common = Some(match common {
                None => own,
                Some(mut common) => {
                    common.retain(|(value, _)| own.iter().any(|(own, _)| own == value));
                    common
                }
            });
        }
        let values = common.into_iter().flatten();
        labels.extend(values.map(|(value, origin)| (format!("{prefix}{value}"), origin)));
    }
    labels
}

/// The values of a node label that a Deployment's pods ask for; none when they do not care. Where there are several terms,
/// any of them may be met.
fn required<'m>(object: &Object<'m, 'm>, label: &str) -> Option<Vec<(&'m str, Origin<'m>)>> {
    let rule = |node: &Node<'_>| {
        let origin = Origin::written(By::Manifest, object.source, node.span);
        origin.by_rule("the nodes that the Deployment asks for")
    };
    let pod = object.root.at(steps!("spec", "template", "spec"))?;
    if let Some(node) = pod.at(steps!("nodeSelector", label)) {
        return Some(vec![(node.as_str()?, rule(node))]);
    }
    let path = steps!(
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms"
    );
    let mut values = Vec::new();
    for term in pod.at(path)?.as_sequence()? {
        let expressions = term.get("matchExpressions").and_then(Node::as_sequence)?;
        let of_label = |expression: &&Node<'_>| {
            let text = |key| expression.get(key).and_then(Node::as_str);
            text("key") == Some(label) && text("operator") == Some("In")
        };
        let expression = expressions.iter().find(of_label)?;
        for value in expression.get("values").and_then(Node::as_sequence)? {
            let text = value.as_str()?;
            if values.iter().all(|(known, _)| *known != text) {
                values.push((text, rule(value)));
            }
        }
    }
    Some(values)
}
