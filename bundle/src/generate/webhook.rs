//! Webhooks: admission configurations and CRD conversions as OLM sets them up, and what of the manifests OLM makes itself.
//!
//! OLM gives every Deployment that serves webhooks a Service and a certificate of its own. The Services that only lead to
//! webhooks, and cert-manager's certificates for them, have nothing left to do, and the Deployments must not wait for them
//! (operator-lifecycle-manager `pkg/controller/install/{webhook,certresources}.go`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::draft::{By, Draft, Origin};
use super::input::{self, Objects};
use super::workload::{self, Setting};
use super::{Compat, codes};
use crate::crd::Crd;
use crate::finding::{Finding, Findings, Level};
use crate::installed::{self, CERTIFICATE_KEYS};
use crate::parse::Object;
use crate::suggest::some_of;
use crate::yaml::{Node, Step, steps};

/// Where OLM mounts the certificate; whatever is mounted there makes room.
const OLM_MOUNT: &str = installed::WEBHOOK_CERTIFICATE.path;
/// The port of a webhook's Service that names none.
const DEFAULT_PORT: i64 = 443;
/// By this annotation cert-manager writes into CRDs.
const INJECT_CA: &str = "cert-manager.io/inject-ca-from";

/// What a webhook configuration says that has no place in a ClusterServiceVersion.
const NOT_CARRIED: [&str; 2] = ["namespaceSelector", "matchConditions"];

/// What becomes of the webhooks.
pub(super) struct Webhooks<'m> {
    /// The entries of `spec.webhookdefinitions`.
    pub(super) definitions: Vec<Draft<'m>>,
    /// The Services that stay manifests.
    pub(super) services: Vec<Object<'m, 'm>>,
    /// A webhook that converts custom resources, if there is one.
    pub(super) conversion: Option<Origin<'m>>,
}

pub(super) fn derive<'m>(
    objects: &Objects<'m>,
    deployments: &mut [Draft<'m>],
    compat: Option<Compat>,
    findings: &mut Findings,
) -> Webhooks<'m> {
    let mut derivation = Derivation {
        objects,
        compat,
        findings,
        definitions: Vec::new(),
        used: BTreeMap::new(),
        serving: BTreeSet::new(),
    };
    for config in &objects.validating_webhooks {
        derivation.admission(config, "ValidatingAdmissionWebhook");
    }
    for config in &objects.mutating_webhooks {
        derivation.admission(config, "MutatingAdmissionWebhook");
    }
    let conversion = derivation.conversions();
    let services = derivation.services();
    derivation.certificates(deployments);
    let mut definitions = derivation.definitions;
    definitions
        .sort_by_cached_key(|entry| (entry.text("generateName").to_owned(), entry.text("type").to_owned()));
    Webhooks { definitions, services, conversion }
}

struct Derivation<'o, 'm> {
    objects: &'o Objects<'m>,
    compat: Option<Compat>,
    findings: &'o mut Findings,
    definitions: Vec<Draft<'m>>,
    /// The ports of the Services that webhooks use, by the Service's place among all of them.
    used: BTreeMap<usize, BTreeSet<i64>>,
    /// The names of the Deployments that serve webhooks.
    serving: BTreeSet<&'m str>,
}

/// What serves a webhook, and at which ports.
struct Server<'m> {
    deployment: Draft<'m>,
    /// The port that OLM's Service is to have.
    port: Option<Draft<'m>>,
    /// The port of the container.
    target: Option<Draft<'m>>,
}

impl<'m> Derivation<'_, 'm> {
    fn admission(&mut self, config: &Object<'m, 'm>, kind: &'static str) {
        let webhooks = config.root.get("webhooks").and_then(Node::as_sequence).unwrap_or(&[]);
        self.not_carried(config, webhooks);
        for (at, webhook) in webhooks.iter().enumerate() {
            let origin = Origin::written(By::Manifest, config.source, webhook.span);
            let rule = origin.by_rule("what OLM's webhooks are when they do not say");
            let mut entry = Draft::map(origin);
            let mut take = |key: &str, from: &str| {
                if let Some(node) = webhook.get(from) {
                    entry.set_some(&[key], Draft::node(node, config.source, By::Manifest));
                }
            };
            take("generateName", "name");
            for key in [
                "rules",
                "failurePolicy",
                "matchPolicy",
                "objectSelector",
                "sideEffects",
                "timeoutSeconds",
                "admissionReviewVersions",
            ] {
                take(key, key);
            }
            if kind == "MutatingAdmissionWebhook" {
                take("reinvocationPolicy", "reinvocationPolicy");
            }
            let kind_origin =
                Origin::manifest(config, steps!("kind")).by_rule("the kind of the configuration");
            entry.set(&["type"], Draft::new(kind, kind_origin));
            let review = if self.compat.is_some() { "v1beta1" } else { "v1" };
            entry.set_default(&["admissionReviewVersions"], Draft::new(json!([review]), rule));
            entry.set_default(&["sideEffects"], Draft::new("None", rule));
            match webhook.at(steps!("clientConfig", "service")) {
                Some(service) => {
                    if let Some(node) = service.get("path") {
                        entry.set_some(&["webhookPath"], Draft::node(node, config.source, By::Manifest));
                    }
                    let Some(server) = self.server(config, service, steps!("webhooks", at, "name")) else {
                        continue;
                    };
                    serve(&mut entry, server);
                }
                None if self.compat.is_some() => {}
                None => {
                    let message =
                        format!("OLM cannot set up a webhook by URL: one of `{}` is left out", config.id());
                    let finding = config.finding(
                        &codes::WEBHOOK_LEFT_OUT,
                        message,
                        steps!("webhooks", at, "clientConfig"),
                    );
                    self.findings.push(finding.help("have the webhook served by a Deployment of the operator, or set it up apart from OLM"));
                    continue;
                }
            }
            self.definitions.push(entry);
        }
    }

    /// One finding for each field, whatever the number of webhooks that have it.
    fn not_carried(&mut self, config: &Object<'m, 'm>, webhooks: &[Node<'m>]) {
        let said = |webhook: &Node<'m>, key: &str| {
            let node = webhook.get(key);
            node.is_some_and(|node| node.as_mapping().map_or(!node.is_null(), |map| !map.is_empty()))
        };
        for key in NOT_CARRIED {
            let mut with = webhooks.iter().enumerate().filter(|(_, webhook)| said(webhook, key)).peekable();
            let Some((first, _)) = with.peek().copied() else { continue };
            let names: Vec<String> = with
                .map(|(_, webhook)| {
                    webhook.get("name").and_then(Node::as_str).unwrap_or("").replace('`', "'")
                })
                .collect();
            let which = match &names[..] {
                [name] => format!("of the webhook `{name}`"),
                _ => format!("of {} webhooks", names.len()),
            };
            let why = match key {
                "namespaceSelector" => "OLM sets it to the namespaces of the OperatorGroup",
                _ => "a ClusterServiceVersion has no such field",
            };
            let message = format!("`{key}` {which} of `{}` is lost: {why}", config.id());
            let path = steps!("webhooks", first, key);
            let finding = config.finding(&codes::WEBHOOK_FIELD_LOST, message, path);
            // A ClusterServiceVersion never has what operator-sdk leaves out in silence.
            self.findings.push(finding.help(match names.len() {
                1 => "have the webhook filter requests itself".to_owned(),
                _ => format!(
                    "have these webhooks filter requests themselves: {}",
                    some_of("", names.iter().map(String::as_str))
                ),
            }));
        }
    }

    /// Conversion webhooks: one for all CRDs that are converted at the same port and path.
    fn conversions(&mut self) -> Option<Origin<'m>> {
        let mut groups = BTreeMap::<_, Vec<(&Object<'m, 'm>, &'m Node<'m>, &'m Node<'m>)>>::new();
        for crd in &self.objects.crds {
            let Some(conversion) = crd.root.at(steps!("spec", "conversion")) else { continue };
            if conversion.get("strategy").and_then(Node::as_str) != Some("Webhook") {
                continue;
            }
            // v1, or v1beta1.
            let webhook = conversion.get("webhook").unwrap_or(conversion);
            let client = webhook.get("clientConfig").or_else(|| conversion.get("webhookClientConfig"));
            let Some(service) = client.and_then(|client| client.get("service")) else {
                let message = format!("`{}` is converted by a webhook without a Service", crd.id());
                let finding = crd.finding(
                    &codes::WEBHOOK_WITHOUT_WORKLOAD,
                    message,
                    steps!("spec", "conversion", "strategy"),
                );
                self.findings.push(finding.help("name the Service that selects the operator's Deployment"));
                continue;
            };
            let text = |key| service.get(key).and_then(Node::as_str).unwrap_or("");
            if self.compat.is_some() && !self.is_known(service) {
                continue;
            }
            if self.compat.is_none() && Crd::from(*crd).versions().len() < 2 && !self.is_known(service) {
                let message = format!(
                    "`{}` has one version, which nothing converts: its webhook is left out",
                    crd.id()
                );
                let at = steps!("spec", "conversion", "strategy");
                self.findings.push(crd.finding(&codes::WEBHOOK_LEFT_OUT, message, at));
                continue;
            }
            let key = (text("namespace"), text("name"), port_number(service), text("path"));
            groups.entry(key).or_default().push((crd, webhook, service));
        }
        let mut first = None;
        for ((_, _, _, path), mut group) in groups {
            group.sort_by_key(|(crd, _, _)| crd.name());
            let [(crd, webhook, service), ..] = group[..] else { continue };
            let at = steps!("spec", "conversion", "strategy");
            let Some(server) = self.server(crd, service, at) else { continue };
            let origin = Origin::manifest(crd, at);
            first = first.or(Some(origin));
            let rule = origin.by_rule("the CRDs that are converted at one place");
            let name = |(crd, _, _): &(&Object<'m, 'm>, _, _)| {
                let name = crd.root.at(steps!("metadata", "name"));
                name.map(|name| Draft::node(name, crd.source, By::Manifest))
            };
            let plurals: String =
                group.iter().map(|(crd, _, _)| crd.name().split('.').next().unwrap_or("")).collect();
            let mut entry = Draft::map(origin);
            entry.set(
                &["type"],
                Draft::new("ConversionWebhook", origin.by_rule("the CRD's conversion strategy")),
            );
            entry.set(&["generateName"], Draft::new(format!("c{plurals}.kb.io"), rule));
            entry.set(&["conversionCRDs"], Draft::list(group.iter().filter_map(name).collect(), rule));
            entry.set(&["sideEffects"], Draft::new("None", rule));
            let versions = webhook.get("conversionReviewVersions");
            if let Some(versions) = versions {
                entry.set_some(&["admissionReviewVersions"], Draft::node(versions, crd.source, By::Manifest));
            }
            entry.set_default(&["admissionReviewVersions"], Draft::new(json!(["v1"]), rule));
            match service.get("path") {
                Some(node) => entry.set(&["webhookPath"], Draft::node(node, crd.source, By::Manifest)),
                None => {
                    entry.set(&["webhookPath"], Draft::new(if path.is_empty() { "/" } else { path }, rule))
                }
            }
            serve(&mut entry, server);
            self.definitions.push(entry);
        }
        first
    }

    /// Whether the Service that a webhook names is among the manifests.
    fn is_known(&self, reference: &Node<'m>) -> bool {
        let name = reference.get("name").and_then(Node::as_str).unwrap_or("");
        self.objects.services.iter().any(|service| service.name() == name)
    }

    /// The Deployment behind a webhook's Service, by the Service's selector or its name.
    fn server(
        &mut self,
        object: &Object<'m, 'm>,
        reference: &Node<'m>,
        path: &[Step<'_>],
    ) -> Option<Server<'m>> {
        let text = |key| reference.get(key).and_then(Node::as_str).unwrap_or("");
        let (name, namespace) = (text("name"), text("namespace"));
        let origin = Origin::written(By::Manifest, object.source, reference.span);
        let port = port_number(reference);
        let services = &self.objects.services;
        let found = services.iter().position(|service| {
            let own = input::namespace(service);
            let same = own.is_empty() || namespace.is_empty() || own == namespace;
            service.name() == name && (same || self.compat.is_some())
        });
        let service = found.map(|at| services[at]);
        let deployment = service.and_then(|service| self.selected(&service)).or_else(|| {
            let stem = name.strip_suffix("-service").unwrap_or(name);
            let found = self.objects.deployments.iter().find(|deployment| deployment.name() == stem).copied();
            found.filter(|_| {
                service.is_none_or(|service| service.root.at(steps!("spec", "selector")).is_none())
            })
        });
        let service_port = service.and_then(|service| {
            let ports = service.root.at(steps!("spec", "ports"))?.as_sequence()?;
            let found = ports.iter().find(|own| number(own.get("port")) == Some(port))?;
            Some((service, found))
        });
        if let Some(at) = found {
            self.used.entry(at).or_default().insert(port);
        }
        let rule = origin.by_rule("the Deployment behind the webhook's Service");
        let Some(deployment) = deployment else {
            if self.compat.is_some() {
                let name = Draft::new(name.strip_suffix("-service").unwrap_or(name), rule);
                let (port, target) = as_in_service(service_port);
                return Some(Server { deployment: name, port, target });
            }
            if self.objects.deployments.is_empty() {
                return None;
            }
            let why = match service {
                Some(_) => format!("the Service `{name}` selects no Deployment in the manifests"),
                None => format!(
                    "neither the Service `{name}` nor a Deployment named after it is among the manifests"
                ),
            };
            let finding = object.finding(
                &codes::WEBHOOK_WITHOUT_WORKLOAD,
                format!("nothing serves a webhook of `{}`: {why}", object.id()),
                path,
            );
            self.findings.push(
                finding.help("add the Service and the Deployment that serve it, or remove the webhook"),
            );
            return None;
        };
        self.serving.insert(deployment.name());
        let mut served_by = Draft::new(deployment.name(), rule);
        served_by.add_origin(Origin::manifest(&deployment, steps!("metadata", "name")));
        if self.compat.is_some() {
            let (port, target) = as_in_service(service_port);
            return Some(Server { deployment: served_by, port, target });
        }
        let container_port = self.container_port(&deployment, service_port, port, origin);
        Some(Server {
            deployment: served_by,
            port: Some(container_port.clone()),
            target: Some(container_port),
        })
    }

    /// The Deployment whose pods a Service selects.
    fn selected(&self, service: &Object<'m, 'm>) -> Option<Object<'m, 'm>> {
        let selector = service.root.at(steps!("spec", "selector"))?.as_mapping()?;
        let selects = |deployment: &&Object<'m, 'm>| {
            let labels = deployment.root.at(steps!("spec", "template", "metadata", "labels"));
            let same = |key: &str, value: &Node<'_>| {
                labels.and_then(|labels| labels.get(key)?.as_str()) == value.as_str()
            };
            let (own, its) = (input::namespace(service), input::namespace(deployment));
            let near = own.is_empty() || its.is_empty() || own == its || self.compat.is_some();
            near && selector.iter().all(|entry| same(&entry.key, &entry.value))
        };
        self.objects
            .deployments
            .iter()
            .find(|deployment| !selector.is_empty() && selects(deployment))
            .copied()
    }

    /// The number of the container's port that requests arrive at.
    fn container_port(
        &mut self,
        deployment: &Object<'m, 'm>,
        service_port: Option<(Object<'m, 'm>, &'m Node<'m>)>,
        port: i64,
        origin: Origin<'m>,
    ) -> Draft<'m> {
        let all = steps!("spec", "template", "spec", "containers");
        let containers = deployment.root.at(all).and_then(Node::as_sequence).unwrap_or(&[]);
        let ports: Vec<_> = containers
            .iter()
            .flat_map(|container| container.get("ports").and_then(Node::as_sequence).unwrap_or(&[]))
            .collect();
        let named = |wanted: &dyn Fn(&str) -> bool| {
            let mut ports = ports.iter();
            ports.find(|own| own.get("name").and_then(Node::as_str).is_some_and(wanted)).and_then(|own| {
                let node = own.get("containerPort")?;
                Some(Draft::new(
                    number(Some(node))?,
                    Origin::written(By::Manifest, deployment.source, node.span),
                ))
            })
        };
        let Some((service, found)) = service_port else {
            // Nobody says which port; the container may.
            return named(&|name| name.contains("webhook")).unwrap_or_else(|| {
                Draft::new(port, origin.by_rule("the port of a webhook that names none"))
            });
        };
        let target = found.get("targetPort");
        let written = |node: &Node<'_>| Origin::written(By::Manifest, service.source, node.span);
        match target {
            Some(node) => match (number(Some(node)), node.as_str()) {
                (Some(number), _) => Draft::new(number, written(node)),
                (None, Some(name)) => {
                    named(&|own| own == name).map(|port| port.made_of([written(node)])).unwrap_or_else(|| {
                        let message =
                            format!("no container of `{}` has a port named `{name}`", deployment.id());
                        let finding = Finding::new(&codes::WEBHOOK_PORT_UNKNOWN, message);
                        let finding = finding.at(service.place_at(node.span)).subject(service.subject());
                        self.findings
                            .push(finding.help("name the port of the container, or give its number"));
                        Draft::new(
                            port,
                            origin.by_rule("the Service's port, since the container's is unknown"),
                        )
                    })
                }
                (None, None) => Draft::new(port, written(node)),
            },
            None => Draft::new(
                port,
                written(found).by_rule("a Service's port is the container's when it names no other"),
            ),
        }
    }

    /// The Services that have something left to do.
    fn services(&mut self) -> Vec<Object<'m, 'm>> {
        let mut kept = Vec::new();
        for (at, service) in self.objects.services.iter().enumerate() {
            let ports = service.root.at(steps!("spec", "ports")).and_then(Node::as_sequence).unwrap_or(&[]);
            let used = self.used.get(&at);
            let only_webhooks = used.is_some_and(|used| {
                ports.iter().all(|port| number(port.get("port")).is_some_and(|port| used.contains(&port)))
            });
            let name = service.name();
            let olms = name.strip_suffix("-service").is_some_and(|stem| self.serving.contains(stem));
            let is_named = || !olms && self.objects.deployments.iter().any(|own| names(own, name));
            if self.compat.is_some() || !(only_webhooks || olms) || is_named() {
                kept.push(*service);
                continue;
            }
            let why = if only_webhooks { "it only serves webhooks" } else { "it has the name of OLM's" };
            let message =
                format!("`{}` is left out: {why}, and OLM makes a Service for those itself", service.id());
            self.replaced(service, message, !only_webhooks);
        }
        kept
    }

    fn replaced(&mut self, object: &Object<'m, 'm>, message: String, matters: bool) {
        let level = if matters { Level::Warning } else { Level::Info };
        let finding = object.finding(&codes::REPLACED_BY_OLM, message, steps!("metadata", "name"));
        self.findings.push(Finding { level, ..finding });
    }

    /// Leaves cert-manager's certificates for webhooks out, and the Deployments' mounts of them.
    fn certificates(&mut self, deployments: &mut [Draft<'m>]) {
        if self.compat.is_some() {
            return;
        }
        let webhook_hosts: Vec<String> =
            self.used.keys().map(|at| self.objects.services[*at].name().to_owned()).collect();
        let for_webhooks = |certificate: &Object<'m, 'm>| {
            let names =
                certificate.root.at(steps!("spec", "dnsNames")).and_then(Node::as_sequence).unwrap_or(&[]);
            let serves = |name: &Node<'_>| {
                let host = name.as_str().and_then(|name| name.split('.').next());
                host.is_some_and(|host| webhook_hosts.iter().any(|own| own == host))
            };
            !names.is_empty() && names.iter().all(serves)
        };
        let (mine, others): (Vec<_>, Vec<_>) = self
            .objects
            .certificates
            .iter()
            .partition(|object| object.kind() == "Certificate" && for_webhooks(object));
        let issuer = |certificate: &&Object<'m, 'm>| certificate.text(steps!("spec", "issuerRef", "name"));
        for object in &others {
            let issues_mine = mine.iter().any(|own| issuer(own) == object.name());
            let issues_others =
                others.iter().any(|other| other.kind() == "Certificate" && issuer(other) == object.name());
            if object.kind().ends_with("Issuer") && issues_mine && !issues_others {
                let message =
                    format!("`{}` is left out: OLM issues the certificates of webhooks itself", object.id());
                self.replaced(object, message, false);
            } else {
                let message = format!(
                    "a bundle cannot contain kind `{}`: `{}` is left out",
                    object.kind(),
                    object.name()
                );
                let finding = object.finding(&codes::KIND_LEFT_OUT, message, steps!("kind"));
                self.findings.push(finding.help("have users create it, or the operator itself"));
            }
        }
        let mut secrets = BTreeMap::new();
        for object in mine {
            secrets.insert(object.text(steps!("spec", "secretName")), *object);
            let message =
                format!("`{}` is left out: OLM issues the certificates of webhooks itself", object.id());
            self.replaced(object, message, false);
        }
        let is_made = |secret: &str| {
            self.objects.others.iter().any(|object| object.kind() == "Secret" && object.name() == secret)
        };
        for deployment in deployments {
            if self.serving.contains(deployment.text("name")) {
                remount(deployment, &secrets, is_made);
                self.findings.extend(elsewhere(deployment));
                self.findings.extend(self.made_by_itself(deployment));
            }
        }
    }
}

impl<'m> Derivation<'_, 'm> {
    /// The finding about an operator that issues the certificate of its webhooks: it mounts a Secret that the manifests leave empty,
    /// and may write an authority into webhook configurations.
    fn made_by_itself(&self, deployment: &Draft<'m>) -> Option<Finding> {
        const WRITES: [&str; 3] = ["update", "patch", "*"];
        let texts = |rule: &'m Node<'m>, key| rule.get(key).and_then(Node::as_sequence).unwrap_or(&[]).iter();
        let writes_configurations = |rule: &&'m Node<'m>| {
            texts(rule, "resources")
                .filter_map(Node::as_str)
                .any(|own| own.ends_with("webhookconfigurations"))
                && texts(rule, "verbs").filter_map(Node::as_str).any(|own| WRITES.contains(&own))
        };
        let roles = self.objects.roles.iter().chain(&self.objects.cluster_roles);
        let mut rules =
            roles.flat_map(|role| role.root.get("rules").and_then(Node::as_sequence).unwrap_or(&[]));
        rules.find(writes_configurations)?;
        let is_empty = |name: &str| {
            let mut others = self.objects.others.iter();
            let found = others.find(|own| own.kind() == "Secret" && own.name() == name);
            found.is_some_and(|own| own.root.get("data").or(own.root.get("stringData")).is_none())
        };
        let volumes = deployment.at(&["spec", "template", "spec"])?.items_of("volumes");
        let secret =
            |volume: &'_ Draft<'m>| volume.at(&["secret"]).map(|own| own.text("secretName").to_owned());
        let volume = volumes.iter().find(|own| secret(own).is_some_and(|name| is_empty(&name)))?;
        let message = format!(
            "`Deployment/{}` keeps a certificate for its webhooks in the Secret `{}` itself, and the API server will trust only the one that OLM issues",
            deployment.text("name"),
            secret(volume).unwrap_or_default()
        );
        let help = format!(
            "have it read `{OLM_MOUNT}/tls.crt` and `tls.key`, and turn off what issues the certificate and changes webhook configurations"
        );
        Some(volume.finding(&codes::CERTIFICATE_ELSEWHERE, message).help(help))
    }
}

/// Whether the arguments or variables of a Deployment name a Service, alone or as the first part of a host name.
fn names(deployment: &Object<'_, '_>, service: &str) -> bool {
    words(deployment).iter().any(|text| {
        let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.')));
        words.any(|word| word.split('.').next() == Some(service))
    })
}

/// The commands, arguments and variables' values of a Deployment's containers.
pub(super) fn words(deployment: &Object<'_, '_>) -> Vec<String> {
    let list = |node: &Node<'_>, key: &str| -> Vec<String> {
        let items = node.get(key).and_then(Node::as_sequence).unwrap_or(&[]);
        let text = |item: &Node<'_>| {
            item.as_str().or_else(|| item.get("value").and_then(Node::as_str)).unwrap_or("").to_owned()
        };
        items.iter().map(text).collect()
    };
    let pod = deployment.root.at(steps!("spec", "template", "spec"));
    let containers = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|key| pod.and_then(|pod| pod.get(key)?.as_sequence()).unwrap_or(&[]));
    containers.flat_map(|own| ["command", "args", "env"].map(|key| list(own, key))).flatten().collect()
}

/// What makes a Deployment that serves webhooks use another certificate than OLM's.
fn elsewhere(deployment: &Draft<'_>) -> Vec<Finding> {
    let name = deployment.text("name");
    let olms = installed::certificate_of(name);
    let Some(spec) = deployment.at(&["spec", "template", "spec"]) else { return Vec::new() };
    let volumes = spec.items_of("volumes");
    let is_olms = |mount: &Draft<'_>| {
        let secret = |volume: &Draft<'_>| volume.get("secret").map(|own| own.text("secretName") == olms);
        volumes.iter().any(|own| own.text("name") == mount.text("name") && secret(own) == Some(true))
    };
    let mut findings = missing_keys(name, volumes);
    for container in spec.items_of("containers") {
        let mounts = container.items_of("volumeMounts");
        let mounts = mounts.iter().filter(|mount| is_olms(mount)).map(|mount| mount.text("mountPath"));
        let mut trusted: Vec<&str> = vec![OLM_MOUNT, installed::API_CERTIFICATE.path];
        trusted.extend(mounts);
        let is_trusted = |path: &str| {
            let directory = path.trim_end_matches('/');
            trusted.iter().any(|own| directory.starts_with(own.trim_end_matches('/')))
        };
        let settings = workload::settings(container);
        if let Some(Setting { name: flag, at, .. }) =
            settings.iter().find(|own| own.name.starts_with("--dynamic-serving-"))
        {
            let message = format!(
                "`Deployment/{name}` issues the certificate of its webhooks itself (`{flag}`), and the API server will trust only the one that OLM issues"
            );
            let help = format!(
                "replace the `--dynamic-serving-` flags by those that name `{OLM_MOUNT}/tls.crt` and `{OLM_MOUNT}/tls.key`"
            );
            findings.push(at.finding(&codes::CERTIFICATE_ELSEWHERE, message).help(help));
        }
        for Setting { name: setting, value, at } in settings {
            let Some(olms) = certificate_setting(setting).filter(|_| value.starts_with('/')) else {
                continue;
            };
            if is_trusted(value) {
                continue;
            }
            let message = format!(
                "`Deployment/{name}` serves its webhooks with the certificate at `{value}` (`{setting}`), and OLM puts the one that the API server trusts at `{OLM_MOUNT}`"
            );
            let help = format!("set `{setting}={olms}`");
            findings.push(at.finding(&codes::CERTIFICATE_ELSEWHERE, message).help(help));
        }
    }
    findings
}

/// The keys that volumes take of OLM's Secret and that it does not have: such pods never start.
fn missing_keys(deployment: &str, volumes: &[Draft<'_>]) -> Vec<Finding> {
    let olms = installed::certificate_of(deployment);
    let mut findings = Vec::new();
    for volume in volumes {
        let Some(secret) = volume.get("secret").filter(|own| own.text("secretName") == olms) else {
            continue;
        };
        if secret.get("optional").is_some_and(|own| own.to_json() == true) {
            continue;
        }
        let unknown = |item: &&Draft<'_>| !CERTIFICATE_KEYS.contains(&item.text("key"));
        for item in secret.items_of("items").iter().filter(unknown) {
            let key = item.text("key");
            let message = format!(
                "the volume `{}` of `Deployment/{deployment}` takes the key `{key}` of the Secret with the certificate of its webhooks, and OLM makes that Secret with `tls.crt`, `tls.key` and `olmCAKey` only: the pods never start",
                volume.text("name")
            );
            let help = match key {
                "ca.crt" => {
                    "remove the item; where the operator reads the authority, take the key `olmCAKey`"
                        .to_owned()
                }
                _ => {
                    format!("have the operator read `{OLM_MOUNT}/tls.crt` and `tls.key`, and remove the item")
                }
            };
            findings.push(item.finding(&codes::CERTIFICATE_ELSEWHERE, message).help(help));
        }
    }
    findings
}

/// What a flag or variable would say to use OLM's certificate, if it names the one that webhooks are served with.
fn certificate_setting(name: &str) -> Option<String> {
    let word = name.trim_start_matches('-').to_ascii_lowercase().replace('_', "-");
    if ["metrics", "client", "ca-"].iter().any(|other| word.contains(other)) {
        return None;
    }
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| word.ends_with(suffix));
    if ends(&["cert-dir", "certs-dir", "cert-path", "certificate-dir"]) {
        Some(OLM_MOUNT.to_owned())
    } else if ends(&["tls-cert-file", "cert-file"]) {
        Some(format!("{OLM_MOUNT}/tls.crt"))
    } else if ends(&["private-key-file", "key-file"]) {
        Some(format!("{OLM_MOUNT}/tls.key"))
    } else {
        None
    }
}

/// Makes a Deployment take the certificate from OLM: what would be mounted where OLM mounts it goes, unless it is among the
/// manifests, and other mounts of a certificate get OLM's Secret.
fn remount<'m>(
    deployment: &mut Draft<'m>,
    secrets: &BTreeMap<&str, Object<'m, 'm>>,
    is_made: impl Fn(&str) -> bool,
) {
    let olms = installed::certificate_of(deployment.text("name"));
    let Some(pod) = deployment.at_mut(&["spec", "template", "spec"]) else { return };
    let mut gone = Vec::new();
    let volumes = pod.at(&["volumes"]).map(Draft::items).unwrap_or_default();
    let containers = pod.at(&["containers"]).map(Draft::items).unwrap_or_default();
    let at_olms = |volume: &Draft<'_>| {
        let mounts = containers.iter().flat_map(|own| own.items_of("volumeMounts"));
        let mut own = mounts.filter(|mount| mount.text("name") == volume.text("name")).peekable();
        own.peek().is_some() && own.all(|mount| installed::is_certificate_path(mount.text("mountPath")))
    };
    let mine: Vec<(String, Origin<'m>)> = volumes
        .iter()
        .filter_map(|volume| {
            let secret = volume.at(&["secret"])?.text("secretName");
            let origin = match secrets.get(secret) {
                Some(certificate) => Origin::manifest(certificate, steps!("spec", "secretName")),
                None if at_olms(volume) && !is_made(secret) => volume.origin(),
                None => return None,
            };
            Some((volume.text("name").to_owned(), origin.by_rule("OLM issues the certificates of webhooks")))
        })
        .collect();
    for (name, rule) in mine {
        let mut elsewhere = false;
        for list in ["containers", "initContainers"] {
            for container in pod.at_mut(&[list]).map(Draft::items_mut).unwrap_or_default() {
                let Some(mounts) = container.at_mut(&["volumeMounts"]) else { continue };
                mounts.retain(|mount| {
                    let own = mount.text("name") == name;
                    let at_olms = installed::is_certificate_path(mount.text("mountPath"));
                    elsewhere |= own && !at_olms;
                    !(own && at_olms)
                });
                if mounts.is_empty() {
                    container.remove("volumeMounts");
                }
            }
        }
        if !elsewhere {
            gone.push(name);
            continue;
        }
        let volumes = pod.at_mut(&["volumes"]).map(Draft::items_mut).unwrap_or_default();
        for volume in volumes.iter_mut().filter(|volume| volume.text("name") == name) {
            volume.set(&["secret", "secretName"], Draft::new(olms.as_str(), rule));
        }
    }
    if let Some(volumes) = pod.at_mut(&["volumes"]) {
        volumes.retain(|volume| !gone.iter().any(|name| name == volume.text("name")));
        if volumes.is_empty() {
            pod.remove("volumes");
        }
    }
}

/// Removes from a CRD's manifest what asks cert-manager for a certificate that is not there any more.
pub(super) fn without_injection(manifest: &mut serde_json::Value) {
    if let Some(annotations) =
        manifest.pointer_mut("/metadata/annotations").and_then(|value| value.as_object_mut())
    {
        annotations.remove(INJECT_CA);
    }
}

fn serve<'m>(entry: &mut Draft<'m>, server: Server<'m>) {
    entry.set(&["deploymentName"], server.deployment);
    if let Some(port) = server.port {
        entry.set(&["containerPort"], port);
    }
    if let Some(target) = server.target {
        entry.set(&["targetPort"], target);
    }
}

/// The ports as operator-sdk takes them: those of the Service.
fn as_in_service<'m>(
    service_port: Option<(Object<'m, 'm>, &'m Node<'m>)>,
) -> (Option<Draft<'m>>, Option<Draft<'m>>) {
    let Some((service, port)) = service_port else { return (None, None) };
    let take = |key| port.get(key).map(|node| Draft::node(node, service.source, By::Manifest));
    let zero =
        || Draft::new(0, Origin::written(By::Manifest, service.source, port.span).by_rule("Go's zero"));
    (take("port"), Some(take("targetPort").unwrap_or_else(zero)))
}

fn port_number(reference: &Node<'_>) -> i64 {
    number(reference.get("port")).unwrap_or(DEFAULT_PORT)
}

fn number(node: Option<&Node<'_>>) -> Option<i64> {
    match node?.value {
        crate::yaml::Value::Int(number) => Some(number),
        _ => None,
    }
}
