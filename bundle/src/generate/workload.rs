//! The Deployments of the install strategy, and the service accounts they run as.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::codes;
use super::input::Objects;
use crate::finding::{Finding, Findings};
use crate::parse::Object;

/// OLM writes the namespaces an operator is to watch into this annotation of its pods.
const TARGET_NAMESPACES: &str = "metadata.annotations['olm.targetNamespaces']";
/// The variable by which operators are commonly told the same.
const WATCH_NAMESPACE: &str = "WATCH_NAMESPACE";
/// The service account of a pod that names none.
const DEFAULT_SERVICE_ACCOUNT: &str = "default";

/// What is deployed.
pub(super) struct Workload {
    /// The entries of `spec.install.spec.deployments`.
    pub(super) deployments: Vec<Value>,
    /// The service accounts that the Deployments run as, by name and, where it is known, namespace.
    pub(super) service_accounts: BTreeSet<ServiceAccount>,
}

/// A service account by name; without a namespace it matches in any.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServiceAccount {
    pub(super) name: String,
    pub(super) namespace: String,
}

pub(super) fn derive(objects: &Objects<'_, '_>, findings: &mut Findings) -> Workload {
    let mut workload = Workload { deployments: Vec::new(), service_accounts: BTreeSet::new() };
    if objects.deployments.is_empty() {
        let message = "no Deployment among the manifests: there would be nothing to install";
        findings.push(
            Finding::new(&codes::NO_DEPLOYMENT, message).help("add the Deployment that runs the operator"),
        );
    }
    for object in &objects.deployments {
        if object.root.at(&["spec".into(), "template".into()]).is_none() {
            let message = format!("`{}` has no `spec.template`", object.id());
            findings.push(object.finding(&codes::DEPLOYMENT_INCOMPLETE, message, &["spec".into()]));
        }
        workload.deployments.push(deployment(object));
        let account =
            object.text(&["spec".into(), "template".into(), "spec".into(), "serviceAccountName".into()]);
        workload.service_accounts.insert(ServiceAccount {
            name: if account.is_empty() { DEFAULT_SERVICE_ACCOUNT } else { account }.to_owned(),
            namespace: object.text(&["metadata".into(), "namespace".into()]).to_owned(),
        });
    }
    workload
}

fn deployment(object: &Object<'_, '_>) -> Value {
    let manifest = object.root.to_json();
    let mut spec = manifest["spec"].clone();
    wire_namespaces(&mut spec);
    let mut entry = json!({ "name": object.name(), "spec": spec });
    if let labels @ Value::Object(_) = &manifest["metadata"]["labels"] {
        entry["label"] = labels.clone();
    }
    entry
}

/// Whatever value the manifest gives `WATCH_NAMESPACE`, under OLM the OperatorGroup decides.
fn wire_namespaces(spec: &mut Value) {
    for list in ["initContainers", "containers"] {
        let containers = spec.pointer_mut(&format!("/template/spec/{list}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
                if variable["name"] == WATCH_NAMESPACE {
                    *variable = json!({
                        "name": WATCH_NAMESPACE,
                        "valueFrom": { "fieldRef": { "fieldPath": TARGET_NAMESPACES } },
                    });
                }
            }
        }
    }
}
