//! The Deployments of the install strategy, the service accounts they run as, and the platforms they run on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::draft::{By, Draft, Origin};
use super::input::{self, Objects};
use super::package::Package;
use super::{Compat, codes};
use crate::deployment;
use crate::finding::{Finding, Findings, Level};
use crate::installed;
use crate::parse::Object;
use crate::subject::ServiceAccount;
use crate::suggest::did_you_mean;
use crate::validate::objects;
use crate::yaml::{Node, first_document, steps, write};

/// OLM writes the namespaces an operator is to watch into this annotation of its pods.
const TARGET_NAMESPACES: &str = "metadata.annotations['olm.targetNamespaces']";
/// The variable by which operators are commonly told the same.
pub(super) const WATCH_NAMESPACE: &str = "WATCH_NAMESPACE";
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
    /// Which of them have a name.
    named: BTreeMap<String, Vec<usize>>,
    /// The namespaces of the Deployments, those that name one; else those of their service accounts.
    pub(super) namespaces: BTreeSet<&'m str>,
    /// The namespace with the most Deployments, taken for the one that OLM installs into.
    main: Option<&'m str>,
    compat: Option<Compat>,
}

/// A service account by name; without a namespace it matches in any.
#[derive(Clone, Debug)]
pub(super) struct Account<'m> {
    pub(super) name: String,
    pub(super) namespace: String,
    /// The Deployments that run as it.
    pub(super) deployments: Vec<&'m str>,
    pub(super) origin: Origin<'m>,
}

impl Account<'_> {
    /// Whether a Deployment runs as it.
    pub(super) fn is_deployed(&self) -> bool {
        !self.deployments.is_empty()
    }
}

pub(super) fn derive<'m>(
    objects: &Objects<'m>,
    package: &Package<'m>,
    compat: Option<Compat>,
    findings: &mut Findings,
) -> Workload<'m> {
    let mut workload = Workload {
        deployments: Vec::new(),
        accounts: Vec::new(),
        named: BTreeMap::new(),
        namespaces: BTreeSet::new(),
        main: None,
        compat,
    };
    // Without a Deployment the workload that OLM does not install is the cause.
    if objects.deployments.is_empty() && objects.not_installed.is_empty() {
        let message = "no Deployment among the manifests: there would be nothing to install";
        let finding = Finding::new(&codes::NO_DEPLOYMENT, message);
        findings.push(match objects.csvs.first() {
            None => finding.help("add the Deployment that runs the operator"),
            Some(csv) => finding.at(csv.place(steps!("metadata", "name"))).help(format!(
                "`{}` is already a bundle: pass the manifests that it was generated from, and the bundle as `--base`",
                csv.name()
            )),
        });
    }
    if compat.is_none() {
        findings.extend(same_named(&objects.deployments));
    }
    for object in &objects.deployments {
        if object.root.at(steps!("spec", "template")).is_none() {
            let message = format!("`{}` has no `spec.template`", object.id());
            findings.push(object.finding(&codes::DEPLOYMENT_INCOMPLETE, message, steps!("spec")));
        }
        workload.deployments.push(entry(object, compat));
        let path = steps!("spec", "template", "spec", service_account_key(object, compat));
        let name = Some(object.text(path)).filter(|name| !name.is_empty());
        let namespace = input::namespace(object);
        workload.add(Account {
            name: name.unwrap_or(DEFAULT_SERVICE_ACCOUNT).to_owned(),
            // operator-sdk knows accounts by name alone.
            namespace: if compat.is_some() { "" } else { namespace }.to_owned(),
            deployments: vec![object.name()],
            origin: Origin::manifest(object, path),
        });
        workload.namespaces.extend(Some(namespace).filter(|namespace| !namespace.is_empty()));
    }
    if workload.namespaces.is_empty() && compat.is_none() {
        let deployed = |object: &&Object<'m, 'm>| workload.named.contains_key(object.name());
        let namespaces = objects.service_accounts.iter().filter(deployed).map(input::namespace);
        workload.namespaces = namespaces.filter(|namespace| !namespace.is_empty()).collect();
    }
    let mut counts = BTreeMap::new();
    for namespace in objects.deployments.iter().map(input::namespace) {
        *counts.entry(namespace).or_insert(0) += 1;
    }
    workload.main = workload.namespaces.iter().rev().max_by_key(|namespace| counts.get(*namespace)).copied();
    for (name, origin) in package.extra_accounts() {
        workload.add(Account {
            name: name.clone(),
            namespace: String::new(),
            deployments: Vec::new(),
            origin,
        });
    }
    workload
}

/// Why there is no bundle of so many Deployments: clusters could hardly store it.
pub(super) fn too_many(objects: &Objects<'_>) -> Option<Finding> {
    let count = objects.deployments.len();
    let first_left = objects.deployments.get(MOST_DEPLOYMENTS)?;
    let message =
        format!("the manifests have {count} Deployments, and a bundle gets {MOST_DEPLOYMENTS} at most");
    let finding = first_left.finding(objects::TOO_LARGE, message, steps!("metadata", "name"));
    Some(finding.help(
        "clusters store ClusterServiceVersions of up to 1.5 MiB, which a few hundred Deployments fill: make several bundles",
    ))
}

/// Of Deployments as people write them, several times what a cluster can store as one object.
const MOST_DEPLOYMENTS: usize = 1000;

/// The Deployments whose name one of another namespace has too.
fn same_named(deployments: &[Object<'_, '_>]) -> Vec<Finding> {
    let path = steps!("metadata", "name");
    let mut named = BTreeMap::new();
    let again = deployments.iter().filter_map(|object| {
        let first = *named.entry(object.name()).or_insert(object);
        if std::ptr::eq(first, object) {
            return None;
        }
        let message = format!("two namespaces have a `{}`, but a bundle can contain only one", object.id());
        let finding = object.finding(&codes::DUPLICATE_OBJECT, message, path);
        Some(finding.and(first.place(path)).help("give one of them another name"))
    });
    again.collect()
}

/// The field by which a Deployment names its service account: `serviceAccount` is an old name, which Kubernetes still reads.
fn service_account_key(object: &Object<'_, '_>, compat: Option<Compat>) -> &'static str {
    let named = |key: &str| !object.text(steps!("spec", "template", "spec", key)).is_empty();
    let only_old = compat.is_none() && !named("serviceAccountName") && named("serviceAccount");
    if only_old { "serviceAccount" } else { "serviceAccountName" }
}

impl<'m> Workload<'m> {
    fn add(&mut self, account: Account<'m>) {
        let named = self.named.entry(account.name.clone()).or_default();
        match named.iter().find(|at| self.accounts[**at].namespace == account.namespace) {
            Some(at) => self.accounts[*at].deployments.extend(account.deployments),
            None => {
                named.push(self.accounts.len());
                self.accounts.push(account);
            }
        }
    }

    /// The accounts of a name.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = &Account<'m>> {
        self.named.get(name).into_iter().flatten().map(move |at| &self.accounts[*at])
    }

    /// The namespace that OLM installs into, if the Deployments name one; of several that of most of them.
    pub(super) fn namespace(&self) -> Option<&'m str> {
        self.main
    }

    /// Whether objects of a namespace are in one of the operator's. Without a name they are, and where nothing of the
    /// operator names one, every namespace is taken for it that is not the cluster's own.
    pub(super) fn is_own(&self, namespace: &str) -> bool {
        match namespace {
            "" => true,
            _ if self.compat.is_some() => true,
            _ if self.namespaces.is_empty() => !namespace.starts_with("kube-"),
            _ => self.namespaces.contains(namespace),
        }
    }

    /// Whether objects of a namespace stay in it when OLM puts everything into one.
    pub(super) fn is_main(&self, namespace: &str) -> bool {
        namespace.is_empty() || self.main.map_or_else(|| self.is_own(namespace), |main| main == namespace)
    }

    /// The account that a name and a namespace mean; without a namespace the first of that name.
    pub(super) fn account(&self, name: &str, namespace: &str) -> Option<&Account<'m>> {
        let is = |own: &&Account<'m>| {
            let unsaid = namespace.is_empty() || own.namespace.is_empty() && self.is_own(namespace);
            unsaid || own.namespace == namespace
        };
        self.named(name).find(is)
    }
}

/// Reports the workloads that OLM does not install, with the service accounts and roles that go with each.
pub(super) fn report_not_installed(
    objects: &Objects<'_>,
    gone: &[(String, Vec<String>)],
    compat: Option<Compat>,
    findings: &mut Findings,
) {
    for object in &objects.not_installed {
        let kind = object.kind();
        let own =
            gone.iter().find(|(id, _)| *id == object.id()).map(|(_, ids)| ids.as_slice()).unwrap_or(&[]);
        let with = match own {
            [] => String::new(),
            own => format!(", and {} of it would be left out", own.join(", ")),
        };
        let message = format!("OLM does not install a {kind}: `{}` would be missing{with}", object.name());
        let finding = object.finding(&codes::WORKLOAD_NOT_INSTALLABLE, message, steps!("kind")).help(
            "make it a Deployment, have the operator create it, or leave it out: `--allow generate-workload-not-installable`, or `allow` in the package file with a reason",
        );
        findings.push(match compat {
            Some(Compat::OperatorSdk) => Finding { level: Level::Warning, ..finding },
            None => finding,
        });
    }
}

/// Reports extra service accounts that nothing of the input knows: OLM would grant them nothing. `base` are those of the base.
pub(super) fn report_unknown_accounts<'b>(
    objects: &Objects<'_>,
    package: &Package<'_>,
    base: impl Iterator<Item = &'b str>,
    compat: Option<Compat>,
    findings: &mut Findings,
) {
    let bindings = objects.role_bindings.iter().chain(&objects.cluster_role_bindings);
    let subjects =
        bindings.flat_map(|binding| binding.root.get("subjects").and_then(Node::as_sequence).unwrap_or(&[]));
    let subjects = subjects.filter_map(ServiceAccount::of).map(|subject| subject.name.to_owned());
    let pods = objects.deployments.iter().chain(&objects.not_installed).map(|own| account_of(own).to_owned());
    let made = objects.service_accounts.iter().map(|own| own.name().to_owned());
    // Every namespace has this one.
    let made = made.chain([DEFAULT_SERVICE_ACCOUNT.to_owned()]);
    let known: BTreeSet<String> = made.chain(subjects).chain(pods).chain(base.map(str::to_owned)).collect();
    for (name, origin) in package.extra_accounts().filter(|(name, _)| !known.contains(*name)) {
        findings.push_with(&codes::PACKAGE_VALUE_INVALID, || {
            let flag = match origin.by {
                By::Flag(flag) => format!("`{flag}`: "),
                _ => String::new(),
            };
            let message =
                format!("{flag}no ServiceAccount, binding or pod of the manifests has the name `{name}`");
            let help = did_you_mean(name, known.iter().map(String::as_str));
            let help = help.unwrap_or_else(|| {
                "add its ServiceAccount and its bindings to the manifests, or remove the name".to_owned()
            });
            let mut finding = Finding::new(&codes::PACKAGE_VALUE_INVALID, message).help(help);
            finding.place = origin.place();
            match compat {
                Some(Compat::OperatorSdk) => Finding { level: Level::Warning, ..finding },
                None => finding,
            }
        });
    }
}

/// Reports Deployments that name no service account, where roles are bound to one that no pod runs as: it is the one that was meant.
pub(super) fn report_default_accounts(
    objects: &Objects<'_>,
    package: &Package<'_>,
    compat: Option<Compat>,
    findings: &mut Findings,
) {
    if compat.is_some() {
        return;
    }
    let pods = objects.deployments.iter().chain(&objects.not_installed).map(account_of);
    let pods: BTreeSet<_> = pods.collect();
    let bindings = objects.role_bindings.iter().chain(&objects.cluster_role_bindings);
    let subjects =
        bindings.flat_map(|binding| binding.root.get("subjects").and_then(Node::as_sequence).unwrap_or(&[]));
    let mut bound: BTreeSet<_> =
        subjects.filter_map(ServiceAccount::of).map(|subject| subject.name).collect();
    if bound.contains(DEFAULT_SERVICE_ACCOUNT) {
        return;
    }
    let extra = |name: &str| package.extra_service_accounts.iter().any(|extra| extra == name);
    bound.retain(|name| !pods.contains(name) && !extra(name));
    let Some(meant) = bound.first() else { return };
    for object in objects.deployments.iter().filter(|own| account_of(own) == DEFAULT_SERVICE_ACCOUNT) {
        let message = format!(
            "`{}` has no `serviceAccountName`: it runs as `default`, to which the manifests bind no rights",
            object.id()
        );
        let path = steps!("spec", "template", "spec");
        let finding = object.finding(&codes::SERVICE_ACCOUNT_MISSING, message, path);
        findings.push(finding.help(format!("set `serviceAccountName: {meant}` in `spec.template.spec`")));
    }
}

/// Reports what Kubernetes refuses of the Deployments as they are in the bundle. Without a pod template there is nothing
/// else to say.
pub(super) fn report_refused(
    csv: &Draft<'_>,
    objects: &Objects<'_>,
    compat: Option<Compat>,
    findings: &mut Findings,
) {
    // operator-sdk looks at nothing of it.
    if compat.is_some() {
        return;
    }
    for object in objects.deployments.iter().filter(|own| own.api_version() != "apps/v1") {
        let message = format!(
            "`{}` is written for `{}`, which Kubernetes no longer serves: OLM creates it as `apps/v1`",
            object.id(),
            object.api_version()
        );
        let finding = object.finding(&codes::DEPLOYMENT_INVALID, message, steps!("apiVersion"));
        let help = "set `apiVersion: apps/v1`, and `spec.selector`, which has no default there";
        findings.push(Finding { level: Level::Warning, ..finding.help(help) });
    }
    let webhooks = csv.at(&["spec"]).map(|own| own.items_of("webhookdefinitions"));
    let services = csv.at(&["spec", "apiservicedefinitions"]).map(|own| own.items_of("owned"));
    let entries = webhooks.into_iter().chain(services).flatten();
    let serving: BTreeSet<_> = entries.map(|entry| entry.text("deploymentName")).collect();
    let deployments = csv.at(&["spec", "install", "spec"]).map(|own| own.items_of("deployments"));
    for deployment in deployments.unwrap_or_default() {
        let Some(spec) = deployment.get("spec").filter(|spec| spec.get("template").is_some()) else {
            continue;
        };
        let Ok(text) = write::to_string(&spec.to_json()) else { continue };
        let Ok(document) = first_document(&text) else { continue };
        let name = deployment.text("name");
        let certificate = serving.contains(name).then(|| installed::certificate_of(name));
        for refused in deployment::refused(&document.root, certificate.as_deref()) {
            let message = format!("`Deployment/{name}`: {}", refused.message);
            let finding = spec.nearest(&refused.path).finding(&codes::DEPLOYMENT_INVALID, message);
            findings.push(finding.help(refused.help));
        }
    }
}

/// The service account that the pods of a workload run as.
pub(super) fn account_of<'m>(object: &Object<'m, 'm>) -> &'m str {
    let pods = [
        steps!("spec", "template", "spec") as &[_],
        steps!("spec", "jobTemplate", "spec", "template", "spec"),
        steps!("spec"),
    ];
    let mut names = pods.iter().filter_map(|path| object.root.at(path)).flat_map(|pod| {
        ["serviceAccountName", "serviceAccount"].into_iter().filter_map(|key| pod.get(key)?.as_str())
    });
    names.next().unwrap_or(DEFAULT_SERVICE_ACCOUNT)
}

/// What a container is told: the value of a flag or of a variable.
pub(super) struct Setting<'d, 'm> {
    /// The flag with its dashes, or the variable.
    pub(super) name: &'d str,
    pub(super) value: &'d str,
    /// Where it is said.
    pub(super) at: &'d Draft<'m>,
}

/// The flags and variables of a container. The value of a flag stands after `=`, or in the next argument.
pub(super) fn settings<'d, 'm>(container: &'d Draft<'m>) -> Vec<Setting<'d, 'm>> {
    let arguments: Vec<_> = container.items_of("command").iter().chain(container.items_of("args")).collect();
    let mut settings = Vec::new();
    for (index, at) in arguments.iter().enumerate() {
        let Some(text) = at.as_str().filter(|text| text.starts_with('-')) else { continue };
        let next = arguments.get(index + 1).and_then(|next| next.as_str()).unwrap_or("");
        let (name, value) = text.split_once('=').unwrap_or((text, next));
        settings.push(Setting { name, value, at });
    }
    let variables = container.items_of("env").iter();
    settings.extend(variables.map(|at| Setting { name: at.text("name"), value: at.text("value"), at }));
    settings
}

fn entry<'m>(object: &Object<'m, 'm>, compat: Option<Compat>) -> Draft<'m> {
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
