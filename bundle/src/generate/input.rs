//! The operator's manifests as objects, each with its place, sorted into what the generator makes of them.

use std::collections::BTreeMap;

use super::codes;
use crate::crd::Crd;
use crate::csv::{self, GroupVersionKind};
use crate::finding::{Finding, Findings, Place};
use crate::kinds;
use crate::parse::Object;
use crate::source::Source;
use crate::yaml::{self, Document, Node, SyntaxError};

/// Workloads that Kubernetes knows and OLM does not install.
const NOT_INSTALLABLE: [&str; 7] =
    ["StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet", "ReplicationController", "Pod"];

/// API groups that Kubernetes itself and the makers of bundle kinds own; an object of any other unknown kind is
/// taken for a custom resource.
const PLATFORM_GROUPS: [&str; 4] = ["", "apps", "batch", "extensions"];

/// The texts of an operator's manifests, read.
#[derive(Debug)]
pub struct Manifests<'a> {
    texts: Vec<Text<'a>>,
}

#[derive(Debug)]
struct Text<'a> {
    source: Source<'a>,
    documents: Vec<Result<Document<'a>, SyntaxError>>,
}

/// The objects of the input by what becomes of them, each list in an order that does not depend on the files'.
#[derive(Default)]
pub(super) struct Objects<'m, 'a> {
    pub(super) deployments: Vec<Object<'m, 'a>>,
    pub(super) service_accounts: Vec<Object<'m, 'a>>,
    pub(super) roles: Vec<Object<'m, 'a>>,
    pub(super) cluster_roles: Vec<Object<'m, 'a>>,
    pub(super) role_bindings: Vec<Object<'m, 'a>>,
    pub(super) cluster_role_bindings: Vec<Object<'m, 'a>>,
    pub(super) crds: Vec<Object<'m, 'a>>,
    /// Custom resources of these CRDs.
    pub(super) samples: Vec<Object<'m, 'a>>,
    /// Objects that go into the bundle as they are.
    pub(super) others: Vec<Object<'m, 'a>>,
}

impl<'a> Manifests<'a> {
    /// Reads every document of every text.
    pub fn parse(sources: Vec<Source<'a>>) -> Self {
        let read = |source: Source<'a>| Text { documents: yaml::documents(source.text()).collect(), source };
        Self { texts: sources.into_iter().map(read).collect() }
    }

    /// Sorts the objects, and reports what is none or has no place in a bundle.
    pub(super) fn classify<'m>(&'m self, findings: &mut Findings) -> Objects<'m, 'a> {
        let all = self.objects(findings);
        let defined: Vec<GroupVersionKind> = all
            .iter()
            .filter(|object| object.kind() == "CustomResourceDefinition")
            .flat_map(|crd| Crd::from(*crd).gvks().collect::<Vec<_>>())
            .collect();
        let mut objects = Objects::default();
        for object in all {
            match object.kind() {
                "Deployment" => objects.deployments.push(object),
                "ServiceAccount" => objects.service_accounts.push(object),
                "Role" => objects.roles.push(object),
                "ClusterRole" => objects.cluster_roles.push(object),
                "RoleBinding" => objects.role_bindings.push(object),
                "ClusterRoleBinding" => objects.cluster_role_bindings.push(object),
                "CustomResourceDefinition" => objects.crds.push(object),
                "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                    findings.push(webhook(&object, &["kind".into()]));
                }
                kind if NOT_INSTALLABLE.contains(&kind) && PLATFORM_GROUPS.contains(&group(&object)) => {
                    let message =
                        format!("OLM does not install a {kind}: `{}` would be missing", object.name());
                    let finding = object.finding(&codes::WORKLOAD_NOT_INSTALLABLE, message, &["kind".into()]);
                    findings.push(finding.help("make it a Deployment, or have the operator create it"));
                }
                _ if defined.contains(&gvk(&object)) => objects.samples.push(object),
                csv::KIND => {
                    let message =
                        format!("a bundle gets one ClusterServiceVersion: `{}` is left out", object.name());
                    let finding = object.finding(&codes::KIND_LEFT_OUT, message, &["kind".into()]);
                    findings.push(finding.help("say in the package file what it says"));
                }
                kind if kinds::supported(kind).is_some() => objects.others.push(object),
                kind => findings.push(left_out(&object, kind)),
            }
        }
        objects
    }

    /// Every object once, in the order of group, kind, namespace and name.
    fn objects<'m>(&'m self, findings: &mut Findings) -> Vec<Object<'m, 'a>> {
        let mut by_id = BTreeMap::<_, Object<'m, 'a>>::new();
        for text in &self.texts {
            for document in &text.documents {
                let root = match document {
                    Ok(document) => &document.root,
                    Err(error) => {
                        let place = Place::new(&text.source, error.span);
                        findings.push(Finding::new(&codes::SYNTAX, error.message.clone()).at(place));
                        continue;
                    }
                };
                for root in expand_list(root) {
                    let object = Object { source: &text.source, root };
                    if root.is_null() {
                        continue;
                    }
                    if let Some(finding) = incomplete(&object) {
                        findings.push(finding);
                        continue;
                    }
                    match by_id.get(&id(&object)) {
                        Some(first) if first.root.to_json() != root.to_json() => {
                            let message =
                                format!("`{}` stands twice in the input, and the two differ", object.id());
                            let finding = object.finding(
                                &codes::DUPLICATE_OBJECT,
                                message,
                                &["metadata".into(), "name".into()],
                            );
                            let first = first.place(&["metadata".into(), "name".into()]);
                            findings.push(finding.and(first).help("remove one of them"));
                        }
                        Some(_) => {}
                        None => {
                            by_id.insert(id(&object), object);
                        }
                    }
                }
            }
        }
        by_id.into_values().collect()
    }
}

/// The objects in a List, or the object itself.
fn expand_list<'m, 'a>(root: &'m Node<'a>) -> Vec<&'m Node<'a>> {
    let kind = root.get("kind").and_then(Node::as_str).unwrap_or("");
    match root.get("items").and_then(Node::as_sequence) {
        Some(items) if kind.ends_with("List") => items.iter().collect(),
        _ => vec![root],
    }
}

fn incomplete(object: &Object<'_, '_>) -> Option<Finding> {
    if object.root.as_mapping().is_none() {
        let place = Place::new(object.source, object.root.span);
        let message = format!("expected a Kubernetes object, found {}", object.root.value);
        return Some(Finding::new(&codes::NOT_AN_OBJECT, message).at(place));
    }
    let missing =
        [("apiVersion", object.api_version()), ("kind", object.kind()), ("metadata.name", object.name())];
    let (key, _) = missing.iter().find(|(_, value)| value.is_empty())?;
    Some(object.finding(
        &codes::NOT_AN_OBJECT,
        format!("`{key}` is missing: this is not a Kubernetes object"),
        &[],
    ))
}

fn id<'m>(object: &Object<'m, '_>) -> (&'m str, &'m str, &'m str, &'m str) {
    let namespace = object.text(&["metadata".into(), "namespace".into()]);
    (group(object), object.kind(), namespace, object.name())
}

/// The API group of an object, empty for the core one.
pub(super) fn group<'m>(object: &Object<'m, '_>) -> &'m str {
    object.api_version().split_once('/').map_or("", |(group, _)| group)
}

fn gvk(object: &Object<'_, '_>) -> GroupVersionKind {
    let (group, version) = object.api_version().split_once('/').unwrap_or(("", object.api_version()));
    GroupVersionKind { group: group.to_owned(), version: version.to_owned(), kind: object.kind().to_owned() }
}

/// The finding for anything that needs a webhook.
pub(super) fn webhook(object: &Object<'_, '_>, path: &[crate::yaml::Step<'_>]) -> Finding {
    let message = format!("`{}` needs a webhook, and webhooks are not supported yet", object.id());
    object.finding(&codes::WEBHOOK_UNSUPPORTED, message, path)
}

fn left_out(object: &Object<'_, '_>, kind: &str) -> Finding {
    let path = ["kind".into()];
    if PLATFORM_GROUPS.contains(&group(object)) || group(object).ends_with(".k8s.io") {
        let message = format!("a bundle cannot carry a {kind}: `{}` is left out", object.name());
        return object.finding(&codes::KIND_LEFT_OUT, message, &path);
    }
    let message = format!(
        "no CustomResourceDefinition for {} {kind}: `{}` is left out",
        object.api_version(),
        object.name()
    );
    object
        .finding(&codes::CUSTOM_RESOURCE_UNKNOWN, message, &path)
        .help("add the CRD to the manifests, or take the sample away")
}
