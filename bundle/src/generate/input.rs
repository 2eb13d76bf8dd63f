//! The operator's manifests as objects, each with its place, sorted into what the generator makes of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::IgnoredAny;

use super::{Compat, codes, package_file};
use crate::crd::{self, Crd};
use crate::csv::{self, GroupVersionKind};
use crate::finding::{Finding, Findings, Level, Place};
use crate::kinds;
use crate::parse::Object;
use crate::source::{Source, Span};
use crate::yaml::{self, Document, Entry, Node, Note, SyntaxError, Value, steps};

/// Workloads that Kubernetes knows and OLM does not install.
const NOT_INSTALLABLE: [&str; 7] =
    ["StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet", "ReplicationController", "Pod"];

/// API groups that Kubernetes itself and the makers of bundle kinds own; an object of any other unknown kind is
/// taken for a custom resource.
const PLATFORM_GROUPS: [&str; 6] = ["", "apps", "autoscaling", "batch", "extensions", "policy"];

/// More files than this are counted in messages instead of listed.
const LISTED_FILES: usize = 3;

/// The annotation by which Helm keeps an object out of the release and runs it at some other time.
const HELM_HOOK: &str = "helm.sh/hook";

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// The texts of an operator's manifests, read.
#[derive(Debug)]
pub struct Manifests<'a> {
    texts: Vec<Text<'a>>,
    /// Files among the samples that are not text.
    unread: Vec<String>,
}

#[derive(Debug)]
struct Text<'a> {
    source: Source<'a>,
    /// Whether only the examples in it count.
    samples: bool,
    documents: Vec<Result<Document<'a>, SyntaxError>>,
}

/// The objects of the input by what becomes of them, each list in an order that does not depend on the files'.
#[derive(Debug, Default)]
pub(super) struct Objects<'m> {
    pub(super) deployments: Vec<Object<'m, 'm>>,
    pub(super) service_accounts: Vec<Object<'m, 'm>>,
    pub(super) roles: Vec<Object<'m, 'm>>,
    pub(super) cluster_roles: Vec<Object<'m, 'm>>,
    pub(super) role_bindings: Vec<Object<'m, 'm>>,
    pub(super) cluster_role_bindings: Vec<Object<'m, 'm>>,
    pub(super) crds: Vec<Object<'m, 'm>>,
    pub(super) services: Vec<Object<'m, 'm>>,
    pub(super) validating_webhooks: Vec<Object<'m, 'm>>,
    pub(super) mutating_webhooks: Vec<Object<'m, 'm>>,
    pub(super) api_services: Vec<Object<'m, 'm>>,
    /// Certificates and issuers of cert-manager.
    pub(super) certificates: Vec<Object<'m, 'm>>,
    pub(super) namespaces: Vec<Object<'m, 'm>>,
    pub(super) csvs: Vec<Object<'m, 'm>>,
    /// Configurations of operator-sdk's scorecard.
    pub(super) scorecards: Vec<Object<'m, 'm>>,
    /// Custom resources of these CRDs.
    pub(super) samples: Vec<Object<'m, 'm>>,
    /// Workloads that OLM does not install.
    pub(super) not_installed: Vec<Object<'m, 'm>>,
    /// Objects that go into the bundle as they are.
    pub(super) others: Vec<Object<'m, 'm>>,
}

impl<'a> Manifests<'a> {
    /// Reads every document of every text.
    pub fn parse(sources: Vec<Source<'a>>) -> Self {
        let texts = sources.into_iter().map(|source| Text::read(source, false));
        Self { texts: texts.collect(), unread: Vec::new() }
    }

    /// Adds texts of which only the examples of custom resources count.
    #[must_use]
    pub fn with_samples(mut self, sources: Vec<Source<'a>>) -> Self {
        self.texts.extend(sources.into_iter().map(|source| Text::read(source, true)));
        self
    }

    /// Names files among the samples that are not text, and so no examples.
    #[must_use]
    pub fn with_unread_samples(mut self, paths: Vec<String>) -> Self {
        self.unread = paths;
        self
    }

    /// Sorts the objects, and reports what is none or has no place in a bundle.
    pub(super) fn classify<'m>(&'m self, compat: Option<Compat>, findings: &mut Findings) -> Objects<'m> {
        let (all, mut no_samples) = self.each_once(findings);
        let defined: Vec<GroupVersionKind> = all
            .iter()
            .filter(|(object, _)| object.kind() == "CustomResourceDefinition" && group(object) == crd::GROUP)
            .flat_map(|(crd, _)| Crd::from(*crd).gvks().collect::<Vec<_>>())
            .collect();
        let mut objects = Objects::default();
        for (object, only_samples) in all {
            if defined.contains(&gvk(&object)) {
                objects.samples.push(object);
            } else if only_samples && is_platform(&object) {
                no_samples.push(object.place(steps!("kind")));
            } else if only_samples {
                findings.push(left_out(&object));
            } else if let Some(list) = objects.list(&object) {
                list.push(object);
            } else if NOT_INSTALLABLE.contains(&object.kind()) && PLATFORM_GROUPS.contains(&group(&object)) {
                match helm_test(&object) {
                    Some(finding) => findings.push(finding),
                    None => objects.not_installed.push(object),
                }
            } else if carried(&object, compat) {
                objects.others.push(object);
            } else {
                findings.push(left_out(&object));
            }
        }
        report_no_samples(no_samples, findings);
        objects
    }

    /// Whether a part of a text is not YAML.
    pub fn has_errors(&self) -> bool {
        self.texts.iter().flat_map(|text| &text.documents).any(Result::is_err)
    }

    /// The first part of a text that is not YAML, if there is one.
    pub(super) fn first_error(&self) -> Option<Finding> {
        let errors = self.texts.iter().flat_map(|text| {
            text.documents.iter().filter_map(|document| Some(text.not_yaml(document.as_ref().err()?)))
        });
        errors.into_iter().next()
    }

    /// Reports duplicate keys in a map: the last value is used and the earlier ones are ignored.
    pub(super) fn duplicate_keys(&self) -> Vec<Finding> {
        self.texts.iter().flat_map(Text::duplicate_keys).collect()
    }

    /// The objects as they stand, without regard to whether they are sound.
    pub fn objects<'m>(&'m self) -> impl Iterator<Item = Object<'m, 'm>> {
        self.texts.iter().flat_map(|text| {
            let roots = text.documents.iter().flatten().flat_map(|document| expand_list(&document.root));
            roots.map(|root| Object { source: &text.source, root })
        })
    }

    /// Every object once, in the order of [`id`], and whether it counts as an example alone; and what of the texts with
    /// examples is no object.
    fn each_once<'m>(&'m self, findings: &mut Findings) -> (Vec<(Object<'m, 'm>, bool)>, Vec<Place>) {
        let mut by_id = BTreeMap::<_, (Object<'m, 'm>, bool)>::new();
        let mut same_name = BTreeMap::<_, Vec<Object<'m, 'm>>>::new();
        let mut no_samples: Vec<_> = self.unread.iter().map(Place::file).collect();
        let samples = self.texts.iter().filter(|text| text.samples);
        let samples: BTreeSet<&str> = samples.map(|text| text.source.path()).collect();
        let mut broken_samples = Vec::new();
        for text in &self.texts {
            findings.extend(text.duplicate_keys());
            for document in &text.documents {
                let root = match document {
                    Ok(document) => &document.root,
                    Err(error) if text.samples => {
                        broken_samples.push(text.not_yaml(error));
                        continue;
                    }
                    Err(error) => {
                        findings.push(text.not_yaml(error));
                        continue;
                    }
                };
                for root in expand_list(root) {
                    let object = Object { source: &text.source, root };
                    if root.is_null() {
                        continue;
                    }
                    let kustomization = kustomization(&object);
                    // One among the samples is how projects list them.
                    if kustomization.is_some() && samples.contains(text.source.path()) {
                        continue;
                    }
                    let no_object = kustomization.or_else(|| package_file(&object));
                    if let Some(finding) = no_object.or_else(|| incomplete(&object)) {
                        // A directory of manifests may have that of the samples in it.
                        if samples.contains(text.source.path()) {
                            no_samples.extend(finding.place);
                        } else {
                            findings.push(finding);
                        }
                        continue;
                    }
                    match by_id.get_mut(&id(&object)) {
                        Some((first, only_sample)) if first.root.to_json() != root.to_json() => {
                            if is_platform(&object) {
                                let kind = steps!("kind");
                                if text.samples {
                                    no_samples.push(object.place(kind));
                                } else if *only_sample {
                                    no_samples.push(first.place(kind));
                                    (*first, *only_sample) = (object, false);
                                } else {
                                    findings.push(duplicate(&object, first));
                                }
                                continue;
                            }
                            // Which one is kept does not depend on the order of the input.
                            let order = |object: &Object<'_, '_>| {
                                (object.source.path().to_owned(), object.root.to_json().to_string())
                            };
                            *only_sample &= text.samples;
                            let mut other = object;
                            if order(&other) < order(first) {
                                std::mem::swap(first, &mut other);
                            }
                            same_name.entry(id(&object)).or_default().push(other);
                        }
                        Some((_, only_sample)) => *only_sample &= text.samples,
                        None => {
                            by_id.insert(id(&object), (object, text.samples));
                        }
                    }
                }
            }
        }
        findings.extend(same_named(&same_name));
        findings.extend(not_yaml_samples(broken_samples));
        (by_id.into_values().collect(), no_samples)
    }
}

impl<'a> Text<'a> {
    fn read(source: Source<'a>, samples: bool) -> Self {
        let text = source.text();
        let mut documents = json_values(text).unwrap_or_else(|| yaml::documents(text).collect());
        documents.iter_mut().flatten().for_each(|document| complete_items(&mut document.root));
        Self { source, samples, documents }
    }

    fn not_yaml(&self, error: &SyntaxError) -> Finding {
        Finding::new(&codes::SYNTAX, error.message.clone()).at(Place::new(&self.source, error.span))
    }

    fn duplicate_keys(&self) -> Vec<Finding> {
        let notes = self.documents.iter().flatten().flat_map(|document| &document.notes);
        let finding = |note: &Note| {
            let Note::DuplicateKey { key, first, second } = note else { return None };
            let message = format!("duplicate key `{}`: the last value is used", key.replace('`', "'"));
            let finding = Finding::new(&codes::DUPLICATE_KEY, message);
            let finding = finding.at(Place::new(&self.source, *second).label("this counts"));
            let finding = finding.and(Place::new(&self.source, *first).label("this is overwritten"));
            Some(finding.subject(self.source.path()).help("remove one of them"))
        };
        notes.filter_map(finding).collect()
    }
}

/// JSON values that stand one after another, if the text is that.
fn json_values(text: &str) -> Option<Vec<Result<Document<'_>, SyntaxError>>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let (mut spans, mut start) = (Vec::new(), 0);
    while let Some(value) = stream.next() {
        value.ok()?;
        let end = stream.byte_offset();
        spans.push(Ok(Span::new(start, end)));
        start = end;
    }
    Some(yaml::documents_at(text, spans.into_iter()).collect())
}

impl<'m> Objects<'m> {
    /// The list for objects of this kind, if there is one.
    fn list(&mut self, object: &Object<'m, 'm>) -> Option<&mut Vec<Object<'m, 'm>>> {
        Some(match (group(object), object.kind()) {
            ("apps" | "extensions", "Deployment") => &mut self.deployments,
            ("", "ServiceAccount") => &mut self.service_accounts,
            ("", "Service") => &mut self.services,
            ("", "Namespace") => &mut self.namespaces,
            (RBAC, "Role") => &mut self.roles,
            (RBAC, "ClusterRole") => &mut self.cluster_roles,
            (RBAC, "RoleBinding") => &mut self.role_bindings,
            (RBAC, "ClusterRoleBinding") => &mut self.cluster_role_bindings,
            (crd::GROUP, "CustomResourceDefinition") => &mut self.crds,
            (ADMISSION, "ValidatingWebhookConfiguration") => &mut self.validating_webhooks,
            (ADMISSION, "MutatingWebhookConfiguration") => &mut self.mutating_webhooks,
            ("apiregistration.k8s.io", "APIService") => &mut self.api_services,
            ("cert-manager.io", _) => &mut self.certificates,
            ("operators.coreos.com", csv::KIND) => &mut self.csvs,
            ("scorecard.operatorframework.io", "Configuration") => &mut self.scorecards,
            _ => return None,
        })
    }
}

/// The objects in a List, or the object itself.
fn expand_list<'m>(root: &'m Node<'m>) -> Vec<&'m Node<'m>> {
    let kind = root.get("kind").and_then(Node::as_str).unwrap_or("");
    match root.get("items").and_then(Node::as_sequence) {
        Some(items) if kind.ends_with("List") && root.get("spec").is_none() => items.iter().collect(),
        _ => vec![root],
    }
}

/// The items of a typed list, such as a `ClusterRoleBindingList`, need not say what they are: as kubectl does, takes it from the list.
/// <https://github.com/kubernetes/apimachinery/blob/master/pkg/apis/meta/v1/unstructured/helpers.go>: `decodeToList`
fn complete_items(root: &mut Node<'_>) {
    let text = |key| root.get(key).and_then(Node::as_str).unwrap_or("");
    let item_kind = text("kind").strip_suffix("List").unwrap_or("").to_owned();
    if item_kind.is_empty() || text("apiVersion").is_empty() || root.get("spec").is_some() {
        return;
    }
    let Value::Mapping(list) = &mut root.value else { return };
    let (Some(api_version), Some(kind)) = (list.entry("apiVersion").cloned(), list.entry("kind").cloned())
    else {
        return;
    };
    let kind_value = Node { value: Value::String(item_kind.into()), span: kind.value.span };
    let own = [api_version, Entry { value: kind_value, ..kind }];
    let Some(Value::Sequence(items)) = list.get_mut("items").map(|items| &mut items.value) else { return };
    for item in items {
        if let Value::Mapping(item) = &mut item.value
            && own.iter().all(|entry| item.get(&entry.key).is_none())
        {
            item.prepend(own.to_vec());
        }
    }
}

/// A kustomization is instructions for a tool, not an object of the operator.
fn kustomization(object: &Object<'_, '_>) -> Option<Finding> {
    let file = object.source.path().rsplit('/').next().unwrap_or("");
    let is_one = matches!(object.kind(), "Kustomization" | "Component")
        && group(object).starts_with("kustomize.config.k8s.io")
        || matches!(file, "kustomization.yaml" | "kustomization.yml" | "Kustomization");
    let message = "a kustomization is left out: its changes are not applied";
    let finding = || object.finding(&codes::KIND_LEFT_OUT, message, steps!("kind"));
    is_one.then(|| finding().help("give its directory with `--kustomize`"))
}

/// A package file below a directory of manifests says something to us alone.
fn package_file(object: &Object<'_, '_>) -> Option<Finding> {
    let is_one = package_file::is_one(object.source.path(), object.root);
    let message = "a package file is left out: package files are not manifests";
    let finding = || object.finding(&codes::KIND_LEFT_OUT, message, &[]);
    let help = "pass it with `--package-file` to generate its bundle";
    is_one.then(|| Finding { level: Level::Info, ..finding().help(help) })
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
    let generated = steps!("metadata", "generateName");
    if *key == "metadata.name" && object.root.at(generated).is_some() {
        let message = "the object has only `metadata.generateName`, but OLM needs a fixed name";
        let finding = object.finding(&codes::NOT_AN_OBJECT, message, generated);
        return Some(finding.help("write `metadata.name`"));
    }
    let message = format!("`{key}` is missing: this is not a Kubernetes object");
    Some(object.finding(&codes::NOT_AN_OBJECT, message, &[]))
}

fn duplicate(object: &Object<'_, '_>, first: &Object<'_, '_>) -> Finding {
    let name = steps!("metadata", "name");
    let message = format!("`{}` is defined twice in the input, with different content", object.id());
    let finding = object.finding(&codes::DUPLICATE_OBJECT, message, name);
    finding.and(first.place(name)).help("remove one of them")
}

/// The examples that are left out because others of the same version, kind and name say something else, in one finding.
fn same_named<K>(groups: &BTreeMap<K, Vec<Object<'_, '_>>>) -> Option<Finding> {
    let first = groups.values().flatten().next()?;
    let count: usize = groups.values().map(Vec::len).sum();
    let names = groups.values().flat_map(|others| others.first());
    let names: Vec<_> = names.map(|object| format!("`{}`", object.id())).collect();
    let more = if names.len() > LISTED_FILES { ", …" } else { "" };
    let listed = names.iter().take(LISTED_FILES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let examples = if count == 1 { "an example is" } else { "examples are" };
    let count = if count == 1 { String::new() } else { format!("{count} ") };
    let message = format!(
        "{count}{examples} left out, because another of the same version, kind and name is kept: {listed}{more}"
    );
    let finding = first.finding(&codes::DUPLICATE_OBJECT, message, steps!("metadata", "name"));
    Some(Finding { level: Level::Warning, ..finding.help("give the examples different names") })
}

/// What identifies an object: group, kind, namespace and name. A custom resource is an example of one version.
fn id<'m>(object: &Object<'m, '_>) -> (&'m str, &'m str, &'m str, &'m str) {
    let group = if is_platform(object) { group(object) } else { object.api_version() };
    (group, object.kind(), namespace(object), object.name())
}

/// The API group of an object, empty for the core one.
pub(super) fn group<'m>(object: &Object<'m, '_>) -> &'m str {
    object.api_version().split_once('/').map_or("", |(group, _)| group)
}

/// The namespace of an object, empty when it names none.
pub(super) fn namespace<'m>(object: &Object<'m, '_>) -> &'m str {
    object.text(steps!("metadata", "namespace"))
}

/// Group, version and kind of an object.
pub(super) fn gvk(object: &Object<'_, '_>) -> GroupVersionKind {
    let (group, version) = object.api_version().split_once('/').unwrap_or(("", object.api_version()));
    GroupVersionKind { group: group.to_owned(), version: version.to_owned(), kind: object.kind().to_owned() }
}

/// Whether bundles carry such objects: of the kinds that they may have, those of the groups that are meant.
fn carried(object: &Object<'_, '_>, compat: Option<Compat>) -> bool {
    let home = match object.kind() {
        "ConfigMap" | "Secret" => "",
        "PodMonitor" | "PrometheusRule" | "ServiceMonitor" => "monitoring.coreos.com",
        "NetworkPolicy" => "networking.k8s.io",
        "PodDisruptionBudget" => "policy",
        "PriorityClass" => "scheduling.k8s.io",
        "VerticalPodAutoscaler" => "autoscaling.k8s.io",
        kind if kind.starts_with("Console") => "console.openshift.io",
        _ => return compat.is_some() && kinds::supported(object.kind()).is_some(),
    };
    kinds::supported(object.kind()).is_some() && (group(object) == home || compat.is_some())
}

/// A finding about an object that only tests the release of a chart.
fn helm_test(object: &Object<'_, '_>) -> Option<Finding> {
    let hook = object.text(steps!("metadata", "annotations", HELM_HOOK));
    let is_test = !hook.is_empty() && hook.split(',').all(|hook| hook.trim().starts_with("test"));
    let message = format!("a test of the Helm chart is left out: `{}`", object.id());
    let finding = object.finding(&codes::KIND_LEFT_OUT, message, steps!("kind"));
    is_test.then_some(Finding { level: Level::Info, ..finding })
}

/// What of the texts with examples is not an example, in one finding.
fn report_no_samples(places: Vec<Place>, findings: &mut Findings) {
    let mut paths: Vec<_> = places.iter().map(|place| format!("`{}`", place.path)).collect();
    paths.sort();
    paths.dedup();
    let Some(place) = places.into_iter().next() else { return };
    let more = if paths.len() > LISTED_FILES { ", …" } else { "" };
    let listed = paths.iter().take(LISTED_FILES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let files = if paths.len() == 1 { "1 file".to_owned() } else { format!("{} files", paths.len()) };
    let hold = if paths.len() == 1 { "holds" } else { "hold" };
    let message = format!(
        "{files} among the samples {hold} more than custom resources, and that is left out: {listed}{more}"
    );
    let finding = Finding::new(&codes::KIND_LEFT_OUT, message).at(place);
    findings.push(Finding { level: Level::Info, ..finding });
}

/// What of the texts with examples is not YAML, in one finding: the operator is whole without it.
fn not_yaml_samples(mut broken: Vec<Finding>) -> Option<Finding> {
    let more = broken.len().saturating_sub(1);
    let first = (!broken.is_empty()).then(|| broken.swap_remove(0))?;
    let more = match more {
        0 => String::new(),
        1 => " (and another among the samples)".to_owned(),
        more => format!(" (and {more} others among the samples)"),
    };
    let message = format!("a sample that is not YAML is left out: {}{more}", first.message);
    Some(Finding { level: Level::Warning, message, ..first })
}

fn is_platform(object: &Object<'_, '_>) -> bool {
    let group = group(object);
    PLATFORM_GROUPS.contains(&group)
        || group.ends_with(".k8s.io")
        || kinds::supported(object.kind()).is_some()
}

fn left_out(object: &Object<'_, '_>) -> Finding {
    let (kind, name) = (object.kind(), object.name());
    if is_platform(object) {
        let message = format!("a bundle cannot contain kind `{kind}`: `{name}` is left out");
        return object.finding(&codes::KIND_LEFT_OUT, message, steps!("kind"));
    }
    let message =
        format!("no CustomResourceDefinition for {} {kind}: `{name}` is left out", object.api_version());
    object.finding(&codes::CUSTOM_RESOURCE_UNKNOWN, message, steps!("kind")).help(
        "add the CRD if it is of this operator; what the operator needs from another one has to be created beside the bundle",
    )
}
