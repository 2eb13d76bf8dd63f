//! The objects themselves, in the order of operator-controller's generators.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value as Json, json};

use super::checks::{CONVERSION, text};
use super::config::{Configuration, apply};
use super::go::{pod, typed};
use super::names::{certificate, go_text, hash, issuer, joined, service};
use super::source::Parts;
use super::{Certificate, Certificates, Options, RenderError};
use crate::crd::{Crd, types};
use crate::csv::{DeploymentDescription, WebhookDescription, annotation};
use crate::installed;
use crate::kinds::supported;
use crate::yaml::{Node, steps};

/// The port of a webhook that names none.
const PORT: i32 = 443;

const RBAC: &str = "rbac.authorization.k8s.io";
const RBAC_V1: &str = "rbac.authorization.k8s.io/v1";
const CERT_MANAGER_INJECT: &str = "cert-manager.io/inject-ca-from";
const SERVICE_CA_INJECT: &str = "service.beta.openshift.io/inject-cabundle";
const SERVICE_CA_SECRET: &str = "service.beta.openshift.io/serving-cert-secret-name";

pub(super) struct Renderer<'r, 'b, 'a> {
    pub(super) parts: &'r Parts<'b, 'a>,
    pub(super) options: &'r Options,
    pub(super) configuration: &'r Configuration,
}

impl Renderer<'_, '_, '_> {
    pub(super) fn objects(&self) -> Result<Vec<Json>, RenderError> {
        let mut objects = self.service_accounts();
        self.roles(&mut objects);
        self.crds(&mut objects)?;
        self.others(&mut objects);
        let deployments = &self.parts.csv.spec.install.spec.deployments;
        objects.extend(deployments.iter().map(|deployment| self.deployment(deployment)));
        for kind in ["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"] {
            let webhooks = self.webhooks().iter().filter(|webhook| webhook.kind == kind);
            for webhook in webhooks {
                objects.push(self.webhook(webhook)?);
            }
        }
        objects.extend(deployments.iter().filter_map(|deployment| self.service(deployment)));
        self.certificates(&mut objects)?;
        Ok(objects)
    }

    fn webhooks(&self) -> &[WebhookDescription] {
        &self.parts.csv.spec.webhook_definitions
    }

    /// The one namespace that is watched, none when all are.
    fn watched(&self) -> Option<&str> {
        self.configuration.watch_namespace.as_deref()
    }

    fn metadata(&self, name: &str) -> Json {
        json!({"name": name, "namespace": self.options.namespace})
    }

    fn service_accounts(&self) -> Vec<Json> {
        let spec = &self.parts.csv.spec.install.spec;
        let permissions = spec.permissions.iter().chain(&spec.cluster_permissions);
        let accounts: BTreeSet<_> = permissions.map(|one| account(&one.service_account_name)).collect();
        let accounts = accounts.into_iter().filter(|name| *name != "default");
        let account =
            |name| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.metadata(name)});
        accounts.map(account).collect()
    }

    fn roles(&self, objects: &mut Vec<Json>) {
        let list = |key: &str| {
            let path = steps!("spec", "install", "spec", key);
            self.parts.root.at(path).and_then(Node::as_sequence).unwrap_or(&[])
        };
        let (own, cluster) = (list("permissions"), list("clusterPermissions"));
        if let Some(watched) = self.watched() {
            for permission in own {
                self.role(permission, Some(watched), false, objects);
            }
        }
        for permission in cluster {
            self.role(permission, None, false, objects);
        }
        if self.watched().is_none() {
            for permission in own {
                self.role(permission, None, true, objects);
            }
        }
    }

    /// A role with its binding; `sees_namespaces` adds what an operator for all namespaces needs to find them.
    fn role(
        &self,
        permission: &Node<'_>,
        namespace: Option<&str>,
        sees_namespaces: bool,
        objects: &mut Vec<Json>,
    ) {
        let of = permission.get("serviceAccountName").and_then(Node::to_text).unwrap_or_default();
        let listed = permission.get("rules").and_then(Node::as_sequence);
        let mut rules: Vec<Rule> = listed.unwrap_or(&[]).iter().map(Rule::read).collect();
        if sees_namespaces {
            let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
            let verbs = texts(&["get", "list", "watch"]);
            rules.push(Rule([verbs, texts(&[""]), texts(&["namespaces"]), None, None]));
        }
        let written = match (listed, sees_namespaces) {
            (None, false) => "null".to_owned(),
            _ => format!("[{}]", rules.iter().map(Rule::written).collect::<Vec<_>>().join(",")),
        };
        let hashed = hash(&format!("{{\"serviceAccountName\":{},\"rules\":{written}}}", go_text(&of)));
        let account = account(&of);
        let name = joined(&format!("{}-{account}", self.parts.csv.name()), &hashed);
        let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
        let metadata = match namespace {
            Some(namespace) => json!({"name": name, "namespace": namespace}),
            None => json!({"name": name}),
        };
        let rules: Vec<_> = rules.iter().map(Rule::json).collect();
        objects.push(json!({"apiVersion": RBAC_V1, "kind": kind, "metadata": metadata, "rules": rules}));
        objects.push(json!({
            "apiVersion": RBAC_V1,
            "kind": format!("{kind}Binding"),
            "metadata": metadata,
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": self.options.namespace}],
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        }));
    }

    fn crds(&self, objects: &mut Vec<Json>) -> Result<(), RenderError> {
        let mut converting: BTreeMap<&str, &WebhookDescription> = BTreeMap::new();
        for webhook in self.webhooks().iter().filter(|webhook| webhook.kind == CONVERSION) {
            converting.extend(webhook.conversion_crds.iter().map(|crd| (crd.as_str(), webhook)));
        }
        for crd in &self.parts.crds {
            // Whatever the document says, it is read as one of v1.
            let mut json = typed(crd, &types::V1);
            if let Some(webhook) = converting.get(text(crd, "name")) {
                if Crd(crd).get(steps!("spec", "preserveUnknownFields")).and_then(Node::as_bool) == Some(true)
                {
                    return Err(RenderError::PreservesUnknownFields { name: text(crd, "name").to_owned() });
                }
                let authority = self.authority(&webhook.deployment_name)?;
                let mut client = json!({"service": {
                    "namespace": self.options.namespace,
                    "name": service(&webhook.deployment_name),
                    "path": webhook.webhook_path.as_deref().unwrap_or("/"),
                    "port": webhook.container_port.unwrap_or(0),
                }});
                if let Some(authority) = authority {
                    client["caBundle"] = authority;
                }
                json["spec"]["conversion"] = json!({
                    "strategy": "Webhook",
                    "webhook": {
                        "clientConfig": client,
                        "conversionReviewVersions": webhook.admission_review_versions,
                    },
                });
                self.inject(&mut json, &webhook.deployment_name);
            }
            objects.push(json);
        }
        Ok(())
    }

    fn others(&self, objects: &mut Vec<Json>) {
        for object in &self.parts.others {
            let mut json = object.to_json();
            let kind = object.get("kind").and_then(Node::as_str).unwrap_or_default();
            if supported(kind).is_some_and(|kind| kind.namespaced) {
                json["metadata"]["namespace"] = Json::from(self.options.namespace.as_str());
            }
            objects.push(json);
        }
    }

    fn deployment(&self, deployment: &DeploymentDescription) -> Json {
        let mut spec = deployment.spec.clone();
        let serves = self.webhooks().iter().any(|webhook| webhook.deployment_name == deployment.name);
        if let Some(pod) =
            spec.template.spec.as_mut().filter(|_| serves && self.options.certificates.is_some())
        {
            installed::replace_certificates(pod, &certificate(&deployment.name));
        }
        let mut spec = pod(serde_json::to_value(&spec).unwrap_or_default());
        spec["revisionHistoryLimit"] = Json::from(1);
        let of_template = spec.pointer("/template/metadata/annotations").and_then(Json::as_object).cloned();
        let mut annotations: Map<String, Json> = Map::new();
        let own = self.parts.csv.metadata.annotations.iter().flatten();
        annotations.extend(own.map(|(key, value)| (key.clone(), Json::from(value.as_str()))));
        if let Some(properties) = &self.parts.properties {
            annotations.insert(annotation::PROPERTIES.to_owned(), Json::from(properties.as_str()));
        }
        annotations.extend(of_template.unwrap_or_default());
        annotations.insert("olm.targetNamespaces".to_owned(), Json::from(self.watched().unwrap_or_default()));
        annotations.insert("olm.operatorNamespace".to_owned(), Json::from(self.options.namespace.as_str()));
        spec["template"]["metadata"]["annotations"] = Json::Object(annotations);
        let mut metadata = self.metadata(&deployment.name);
        if !deployment.label.is_empty() {
            metadata["labels"] = json!(deployment.label);
        }
        let mut json =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec});
        if let Some(config) = &self.configuration.deployment {
            apply(&mut json, config);
        }
        json
    }

    fn webhook(&self, webhook: &WebhookDescription) -> Result<Json, RenderError> {
        let name = webhook.generate_name.trim_end_matches('-');
        let mut client = json!({"service": {
            "namespace": self.options.namespace,
            "name": service(&webhook.deployment_name),
            "port": webhook.container_port.unwrap_or(0),
        }});
        if let Some(path) = &webhook.webhook_path {
            client["service"]["path"] = Json::from(path.as_str());
        }
        if let Some(authority) = self.authority(&webhook.deployment_name)? {
            client["caBundle"] = authority;
        }
        let mut json = json!({"name": name, "clientConfig": client});
        let mut set = |key: &str, value: Json| {
            if !value.is_null() {
                json[key] = value;
            }
        };
        set("rules", pod(json!(webhook.rules)));
        set("failurePolicy", json!(webhook.failure_policy));
        set("matchPolicy", json!(webhook.match_policy));
        set("objectSelector", json!(webhook.object_selector));
        set("sideEffects", json!(webhook.side_effects));
        set("timeoutSeconds", json!(webhook.timeout_seconds));
        set("admissionReviewVersions", json!(webhook.admission_review_versions));
        let kind = if webhook.kind == "MutatingAdmissionWebhook" {
            set("reinvocationPolicy", json!(webhook.reinvocation_policy));
            "MutatingWebhookConfiguration"
        } else {
            "ValidatingWebhookConfiguration"
        };
        if let Some(watched) = self.watched() {
            let only = json!([{"key": "kubernetes.io/metadata.name", "operator": "In", "values": [watched]}]);
            set("namespaceSelector", json!({"matchExpressions": only}));
        }
        let mut object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": self.metadata(name),
            "webhooks": [json],
        });
        self.inject(&mut object, &webhook.deployment_name);
        Ok(object)
    }

    /// Annotates the objects into which a controller injects the CA certificate.
    fn inject(&self, object: &mut Json, deployment: &str) {
        let (key, value) = match &self.options.certificates {
            Some(Certificates::CertManager) => {
                (CERT_MANAGER_INJECT, format!("{}/{}", self.options.namespace, certificate(deployment)))
            }
            Some(Certificates::ServiceCa) => (SERVICE_CA_INJECT, "true".to_owned()),
            _ => return,
        };
        object["metadata"]["annotations"][key] = Json::from(value);
    }

    /// The authority of a certificate that is brought along, as API objects have it.
    fn authority(&self, deployment: &str) -> Result<Option<Json>, RenderError> {
        let given = self.given(deployment)?;
        Ok(given.map(|given| Json::from(BASE64.encode(&given.authority))))
    }

    fn given(&self, deployment: &str) -> Result<Option<&Certificate>, RenderError> {
        let Some(Certificates::Given(given)) = &self.options.certificates else { return Ok(None) };
        let service = service(deployment);
        match given.get(&service) {
            Some(given) => Ok(Some(given)),
            None => Err(RenderError::NoCertificate { service }),
        }
    }

    fn service(&self, deployment: &DeploymentDescription) -> Option<Json> {
        let mut ports: BTreeMap<(i32, i64, String), Json> = BTreeMap::new();
        for webhook in self.webhooks().iter().filter(|webhook| webhook.deployment_name == deployment.name) {
            let port = webhook.container_port.filter(|port| *port > 0).unwrap_or(PORT);
            let target =
                webhook.target_port.as_ref().map_or_else(|| Json::from(port), |target| json!(target));
            let number = target.as_i64().or_else(|| target.as_str()?.parse().ok()).unwrap_or(0);
            let key = (port, number, target.to_string());
            ports.insert(key, json!({"name": port.to_string(), "port": port, "targetPort": target}));
        }
        if ports.is_empty() {
            return None;
        }
        let mut spec = json!({"ports": ports.into_values().collect::<Vec<_>>()});
        if let Some(labels) = &deployment.spec.selector.match_labels {
            spec["selector"] = json!(labels);
        }
        let mut metadata = self.metadata(&service(&deployment.name));
        if let Some(Certificates::ServiceCa) = &self.options.certificates {
            metadata["annotations"] = json!({SERVICE_CA_SECRET: certificate(&deployment.name)});
        }
        Some(json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}))
    }

    fn certificates(&self, objects: &mut Vec<Json>) -> Result<(), RenderError> {
        let deployments: BTreeSet<_> =
            self.webhooks().iter().map(|webhook| webhook.deployment_name.as_str()).collect();
        for deployment in deployments {
            let (name, issuer, service) = (certificate(deployment), issuer(deployment), service(deployment));
            if let Some(given) = self.given(deployment)? {
                let data = json!({"tls.crt": given.certificate, "tls.key": given.key});
                let metadata = self.metadata(&name);
                objects.push(json!({
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "type": "kubernetes.io/tls",
                    "metadata": metadata,
                    "stringData": data,
                }));
            }
            let Some(Certificates::CertManager) = &self.options.certificates else { continue };
            let host = format!("{service}.{}", self.options.namespace);
            objects.push(json!({
                "apiVersion": "cert-manager.io/v1",
                "kind": "Issuer",
                "metadata": self.metadata(&issuer),
                "spec": {"selfSigned": {}},
            }));
            objects.push(json!({
                "apiVersion": "cert-manager.io/v1",
                "kind": "Certificate",
                "metadata": self.metadata(&name),
                "spec": {
                    "secretName": name,
                    "commonName": host,
                    "usages": ["server auth"],
                    "dnsNames": [host, format!("{host}.svc"), format!("{host}.svc.cluster.local")],
                    "issuerRef": {"name": issuer},
                    "duration": "17520h0m0s",
                    "renewBefore": "24h0m0s",
                },
            }));
        }
        Ok(())
    }
}

fn account(name: &str) -> &str {
    if name.is_empty() { "default" } else { name }
}

/// A rule of a role: its lists in the order in which Go writes them; `None` for a missing list.
struct Rule([Option<Vec<String>>; 5]);

const RULE_FIELDS: [&str; 5] = ["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"];

impl Rule {
    fn read(node: &Node<'_>) -> Self {
        Self(RULE_FIELDS.map(|field| {
            let items = node.get(field)?.as_sequence()?;
            Some(items.iter().filter_map(Node::to_text).map(Into::into).collect())
        }))
    }

    /// As Go writes it, for the hash.
    fn written(&self) -> String {
        let fields = RULE_FIELDS.iter().zip(&self.0).filter_map(|(name, texts)| {
            let list = |texts: &[String]| {
                let texts = texts.iter().map(|text| go_text(text)).collect::<Vec<_>>().join(",");
                format!("\"{name}\":[{texts}]")
            };
            match texts {
                Some(texts) if *name == "verbs" || !texts.is_empty() => Some(list(texts)),
                None if *name == "verbs" => Some("\"verbs\":null".to_owned()),
                _ => None,
            }
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }

    fn json(&self) -> Json {
        let fields = RULE_FIELDS.iter().zip(&self.0);
        let fields = fields.filter_map(|(name, texts)| {
            texts.as_ref().filter(|texts| !texts.is_empty()).map(|texts| ((*name).to_owned(), json!(texts)))
        });
        Json::Object(fields.collect())
    }
}
