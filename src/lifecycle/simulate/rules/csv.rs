//! The olm-operator's state machine of a ClusterServiceVersion (operator-lifecycle-manager
//! `pkg/controller/operators/olm/operator.go`, `transitionCSVState`).

use olmkit_bundle::csv::DeploymentDescription;
use olmkit_bundle::installed;
use olmkit_bundle::version::{Version, parse_min_kube};
use serde_json::{Value, json};

use super::super::names;
use super::super::scope::Scope;
use super::plans::{quoted, refused};
use super::{Change, View, Write};
use crate::lifecycle::api::{
    ClusterServiceVersion, CsvPhase, InstallModeKind, Key, Named as _, Object, OperatorCondition,
    Subscription, known, label,
};
use crate::lifecycle::component::component_label;
use crate::lifecycle::patch::merge;
use crate::lifecycle::properties::package_of;
use crate::lifecycle::{admission, immutable, replace};

/// How long deployments may take before OLM installs them anew.
const INSTALL_MILLIS: u64 = 300_000;
/// How many conditions a ClusterServiceVersion remembers.
const HISTORY: usize = 20;
/// Why a version fails that provides what an operator of another namespace provides to the same namespaces.
const INTER_GROUP_CONFLICT: &str = "InterOperatorGroupOwnerConflict";
/// The version of the simulated cluster.
pub(in super::super) const KUBERNETES: Version = Version::new(1, 34, 0);

type Csv = Object<ClusterServiceVersion>;

/// What is due for the ClusterServiceVersions of a namespace.
pub(super) fn due(view: &View<'_>, scope: &Scope<'_>) -> Vec<Change> {
    scope.csvs.iter().flat_map(|csv| Operator { view, scope, csv }.due()).collect()
}

/// A ClusterServiceVersion among the others of its namespace.
#[derive(Clone, Copy)]
struct Operator<'o, 'v> {
    view: &'o View<'v>,
    scope: &'o Scope<'v>,
    csv: &'o Csv,
}

/// How the deployments are.
enum Health {
    Well,
    Waits(String),
    Missing(String),
    GivenUp(String),
}

impl<'o> Operator<'o, '_> {
    fn due(self) -> Vec<Change> {
        if self.csv.is_being_deleted() {
            return vec![self.clean_up()];
        }
        let phase = self.transition();
        phase.into_iter().chain(self.operator_condition()).chain(self.roles()).chain(self.adopt()).collect()
    }

    fn name(self, what: &str) -> String {
        format!("{what} {}/{}", self.scope.namespace, self.csv.name())
    }

    /// The next phase.
    fn transition(self) -> Option<Change> {
        let phase = &self.csv.status.phase;
        if let Some(change) = self.group_fault() {
            return Some(change).filter(|_| *phase != CsvPhase::Failed);
        }
        let reason = self.csv.status.reason.as_str();
        match phase {
            CsvPhase::None => Some(self.first_seen()),
            CsvPhase::Pending => self.pending(),
            CsvPhase::InstallReady => Some(self.install()),
            CsvPhase::Installing => self.installing(),
            CsvPhase::Succeeded => match (self.successor(), self.health()) {
                (Some(next), _) => {
                    let message = format!("being replaced by csv: {}", next.name());
                    Some(self.to(CsvPhase::Replacing, "BeingReplaced", &message, 60))
                }
                (None, Health::Missing(message)) => Some(self.to(
                    CsvPhase::Failed,
                    "ComponentUnhealthy",
                    &format!("installing: {message}"),
                    200,
                )),
                _ => None,
            },
            CsvPhase::Replacing => {
                let next = self.successor().filter(|next| next.status.phase == CsvPhase::Succeeded)?;
                let message = format!("has been replaced by a newer ClusterServiceVersion {}", next.name());
                Some(self.to(CsvPhase::Deleting, "Replaced", &message, 80))
            }
            CsvPhase::Deleting => {
                Some(Change::new(self.name("delete"), 20, vec![Write::Delete(self.csv.key())]))
            }
            CsvPhase::Failed => match (reason, self.health()) {
                (
                    "UnsupportedOperatorGroup"
                    | "NoOperatorGroup"
                    | "TooManyOperatorGroups"
                    | INTER_GROUP_CONFLICT,
                    _,
                ) => {
                    let message = "InstallModes now support target namespaces";
                    Some(self.to(CsvPhase::Pending, "RequirementsUnknown", message, 200))
                }
                (_, Health::GivenUp(_)) => None,
                ("InstallCheckFailed" | "ComponentUnhealthy", Health::Well) => {
                    Some(self.to(CsvPhase::Succeeded, "InstallSucceeded", INSTALLED, 200))
                }
                ("InstallCheckFailed" | "ComponentUnhealthy" | "InstallComponentFailed", _) => {
                    let message = "installing: deployments are to be created again";
                    Some(self.to(CsvPhase::Pending, "NeedsReinstall", message, 200))
                }
                _ => None,
            },
            CsvPhase::Unknown | CsvPhase::Other(_) => None,
        }
    }

    fn pending(self) -> Option<Change> {
        let predecessor = self.predecessor();
        if let Some(why) = predecessor.and_then(|old| self.not_upgradeable(old)) {
            let message = format!("operator is not upgradeable: the operator is not upgradeable: {why}");
            let known = self.csv.status.message == message;
            let reason = "OperatorConditionNotUpgradeable";
            return (!known).then(|| self.to(CsvPhase::Pending, reason, &message, 100));
        }
        let (met, requirements) = self.requirements();
        if !met {
            let told = self.csv.status.reason == "RequirementsNotMet"
                && self.csv.document().pointer("/status/requirementStatus") == Some(&requirements);
            let message = "one or more requirements couldn't be found";
            return (!told).then(|| {
                let mut patch = self.phase(CsvPhase::Pending, "RequirementsNotMet", message);
                patch["requirementStatus"] = requirements;
                Change::status(self.name("unmet"), 60, self.csv.key(), patch)
            });
        }
        if predecessor.is_some_and(|old| old.status.phase != CsvPhase::Replacing) {
            return None;
        }
        let owner = self.other_owner(predecessor);
        if let Some(other) = owner {
            let message = format!("owner conflict: {other} provides the same APIs");
            return Some(self.to(CsvPhase::Failed, "OwnerConflict", &message, 100));
        }
        let message = "all requirements found, attempting install";
        let mut patch = self.phase(CsvPhase::InstallReady, "AllRequirementsMet", message);
        patch["requirementStatus"] = requirements;
        Some(Change::status(self.name("ready"), 300, self.csv.key(), patch))
    }

    fn installing(self) -> Option<Change> {
        match self.health() {
            Health::Well => Some(self.to(CsvPhase::Succeeded, "InstallSucceeded", INSTALLED, 100)),
            Health::GivenUp(name) => {
                let message = format!(
                    "install failed: deployment {name} not ready before timeout: deployment {name:?} exceeded its \
                     progress deadline"
                );
                Some(self.to(CsvPhase::Failed, "InstallCheckFailed", &message, 100))
            }
            Health::Missing(message) | Health::Waits(message) => {
                if self.csv.status.reason != "InstallWaiting" {
                    let message = format!("installing: {message}");
                    return Some(self.to(CsvPhase::Installing, "InstallWaiting", &message, 100));
                }
                Some(self.to(CsvPhase::Failed, "InstallCheckFailed", "install timeout", INSTALL_MILLIS))
            }
        }
    }

    /// The patch that a change of phase is.
    fn phase(self, phase: CsvPhase, reason: &str, message: &str) -> Value {
        let now = self.view.store.timestamp();
        let history = self.csv.document().pointer("/status/conditions").and_then(Value::as_array);
        let mut conditions = history.cloned().unwrap_or_default();
        conditions.push(json!({
            "phase": phase.as_str(), "reason": reason, "message": message, "lastTransitionTime": now,
            "lastUpdateTime": now,
        }));
        conditions.drain(..conditions.len().saturating_sub(HISTORY));
        json!({
            "phase": phase.as_str(), "reason": reason, "message": message, "lastTransitionTime": now,
            "lastUpdateTime": now, "conditions": conditions,
        })
    }

    fn to(self, phase: CsvPhase, reason: &str, message: &str, millis: u64) -> Change {
        let name = self.name(&format!("{phase} {reason}"));
        Change::status(name, millis, self.csv.key(), self.phase(phase, reason, message))
    }

    fn first_seen(self) -> Change {
        // Called with one group alone; see `group_fault`.
        let group = self.scope.groups.first();
        let annotations = json!({
            "olm.operatorGroup": group.map(|group| group.name()), "olm.operatorNamespace": self.scope.namespace,
            "olm.targetNamespaces": group.map(|group| group.status.namespaces.join(",")),
        });
        let mut change =
            self.to(CsvPhase::Pending, "RequirementsUnknown", "requirements not yet checked", 50);
        let patch = json!({"metadata": {"annotations": annotations}});
        change.writes.insert(0, Write::Patch { key: self.csv.key(), patch, status: false });
        change
    }

    /// What is wrong with the OperatorGroup, as the phase that it leads to.
    fn group_fault(self) -> Option<Change> {
        let fail = |reason: &str, message: &str| self.to(CsvPhase::Failed, reason, message, 100);
        let group = match &self.scope.groups[..] {
            [] => return Some(fail("NoOperatorGroup", "csv in namespace with no operatorgroups")),
            [group] => group,
            _ => {
                let message =
                    "csv created in namespace with multiple operatorgroups, can't pick one automatically";
                return Some(fail("TooManyOperatorGroups", message));
            }
        };
        let targets = &group.status.namespaces;
        if targets.is_empty() {
            return None;
        }
        if self.has_rival(targets) {
            let mut change = fail(INTER_GROUP_CONFLICT, "intersecting operatorgroups provide the same apis");
            // OLM takes away what runs.
            let own = self.own_deployments().map(|found| Write::Delete(Key::of(found)));
            change.writes.extend(own);
            return Some(change);
        }
        let supported = |mode: InstallModeKind| {
            self.csv.install_modes().iter().any(|found| found.kind == mode.as_str() && found.supported)
        };
        let missing = InstallModeKind::needed(self.scope.namespace, targets)
            .into_iter()
            .find(|mode| !supported(*mode))?;
        let what = match missing {
            InstallModeKind::AllNamespaces => "all namespaces",
            InstallModeKind::OwnNamespace => "own namespace",
            InstallModeKind::SingleNamespace => "one namespace",
            InstallModeKind::MultiNamespace => "multiple namespaces",
        };
        let message = format!("{missing} InstallModeType not supported, cannot configure to watch {what}");
        Some(fail("UnsupportedOperatorGroup", &message))
    }

    /// Whether an operator of another namespace provides one of our APIs to the same namespaces, and was there first.
    fn has_rival(self, targets: &[String]) -> bool {
        let store = self.view.store;
        let apis = |csv: &Value| -> Vec<(Value, Value)> {
            let owned = csv.pointer("/spec/customresourcedefinitions/owned").and_then(Value::as_array);
            owned.into_iter().flatten().map(|crd| (crd["name"].clone(), crd["version"].clone())).collect()
        };
        let own = apis(self.csv.document());
        let age = |csv: &Value| {
            let since = csv.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
            (since.unwrap_or_default().to_owned(), Key::of(csv).namespace)
        };
        let is_older = |other: &&Value| {
            let key = Key::of(other);
            let is_copy =
                other.pointer("/metadata/labels").is_some_and(|all| all.get(label::COPIED_FROM).is_some());
            key.namespace != self.scope.namespace
                && !is_copy
                && other.pointer("/status/reason") != Some(&json!(INTER_GROUP_CONFLICT))
                && apis(other).iter().any(|api| own.contains(api))
                && age(other) < age(self.csv.document())
        };
        let watches = |namespace: &str| {
            let groups = store.list(&known::OPERATOR_GROUP, Some(namespace));
            let watched: Vec<&str> = groups
                .filter_map(|group| group.pointer("/status/namespaces")?.as_array())
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let all = |one: &str| one.is_empty();
            watched.iter().any(|one| all(one) || targets.iter().any(|own| all(own) || own == one))
        };
        !own.is_empty()
            && store.list(&known::CSV, None).filter(is_older).any(|other| watches(&Key::of(other).namespace))
    }

    /// The Deployments that carry our label.
    fn own_deployments(self) -> impl Iterator<Item = &'o Value> {
        let found = self.view.store.list(&known::DEPLOYMENT, Some(self.scope.namespace));
        found.filter(move |found| {
            found.pointer("/metadata/labels").is_some_and(|labels| labels[label::OWNER] == self.csv.name())
        })
    }

    fn predecessor(self) -> Option<&'o Csv> {
        let replaces = self.csv.spec.replaces.as_str();
        self.scope.csvs.iter().find(|other| !replaces.is_empty() && other.name() == replaces)
    }

    fn successor(self) -> Option<&'o Csv> {
        self.scope.csvs.iter().find(|other| other.spec.replaces == self.csv.name())
    }

    /// Another operator that owns one of our CRDs and is not being replaced.
    fn other_owner(self, predecessor: Option<&Csv>) -> Option<String> {
        fn owns(csv: &Csv) -> impl Iterator<Item = &str> {
            csv.spec.custom_resource_definitions.owned.iter().map(|crd| crd.name.as_str())
        }
        let own: Vec<&str> = owns(self.csv).collect();
        let rival = self.scope.csvs.iter().find(|other| {
            other.name() != self.csv.name()
                && predecessor.is_none_or(|old| old.name() != other.name())
                && !matches!(other.status.phase, CsvPhase::Replacing | CsvPhase::Deleting)
                && owns(other).any(|crd| own.contains(&crd))
        });
        rival.map(|rival| rival.name().to_owned())
    }

    fn not_upgradeable(self, old: &Csv) -> Option<String> {
        let key = Key::new(&known::OPERATOR_CONDITION, self.scope.namespace, old.name());
        let found = Object::<OperatorCondition>::read(self.view.store.get(&key)?.clone()).ok()?;
        found.not_upgradeable().map(|condition| condition.message.clone())
    }

    /// Whether everything that it needs is there, and what that is.
    fn requirements(self) -> (bool, Value) {
        let mut met = true;
        let mut list = Vec::new();
        let mut need = |group: &str, kind: &str, name: &str, present: bool, message: &str| {
            met &= present;
            let status = if present { "Present" } else { "NotPresent" };
            let message = if present { "" } else { message };
            list.push(json!({"group": group, "kind": kind, "name": name, "status": status, "message": message, "version": "v1"}));
        };
        let store = self.view.store;
        let spec = &self.csv.spec;
        if !spec.min_kube_version.is_empty() {
            let (fits, message) = match parse_min_kube(&spec.min_kube_version) {
                Ok(wanted) => (
                    wanted <= KUBERNETES,
                    "CSV version requirement not met: minKubeVersion is higher than the server's version",
                ),
                Err(_) => (false, "CSV version parsing error"),
            };
            need("operators.coreos.com", olmkit_bundle::csv::KIND, self.csv.name(), fits, message);
        }
        let crds = &spec.custom_resource_definitions;
        for crd in crds.owned.iter().chain(&crds.required) {
            let found = store.get(&Key::new(&known::CRD, "", &crd.name));
            let versions = found.and_then(|crd| crd.pointer("/spec/versions")).and_then(Value::as_array);
            let served = versions.is_some_and(|versions| {
                versions.iter().any(|version| version["name"] == crd.version && version["served"] == true)
            });
            let conditions = found.and_then(|crd| crd.pointer("/status/conditions")?.as_array());
            let is_established = |one: &Value| one["type"] == "Established" && one["status"] == "True";
            let established = conditions.is_some_and(|all| all.iter().any(is_established));
            let message = match found {
                None => "CRD is not present",
                Some(_) if !served => "CRD version not served",
                Some(_) => "CRD is present but the Established condition is False (not available)",
            };
            let kind = "CustomResourceDefinition";
            need("apiextensions.k8s.io", kind, &crd.name, served && established, message);
        }
        for native in &spec.native_apis {
            let built_in = !native.group.contains('.') || native.group.ends_with(".k8s.io");
            let crd = store.list(&known::CRD, None).any(|crd| {
                crd.pointer("/spec/group") == Some(&json!(native.group))
                    && crd.pointer("/spec/names/kind") == Some(&json!(native.kind))
            });
            need(&native.group, &native.kind, &native.kind, built_in || crd, "Native API does not exist");
        }
        for (account, is_met, message) in self.accounts() {
            need("", "ServiceAccount", account, is_met, message);
        }
        (met, Value::Array(list))
    }

    /// The accounts that it needs, whether they are there with their rights, and what OLM says otherwise.
    fn accounts(self) -> Vec<(&'o str, bool, &'static str)> {
        let (store, namespace, name) = (self.view.store, self.scope.namespace, self.csv.name());
        let strategy = &self.csv.spec.install.spec;
        let roles = strategy.permissions.iter().map(|permission| {
            let role = Key::new(&known::ROLE_BINDING, namespace, &names::role(name, permission));
            (permission.service_account_name.as_str(), role)
        });
        let cluster_roles = strategy.cluster_permissions.iter().map(|permission| {
            let role = names::cluster_role(name, namespace, permission);
            (permission.service_account_name.as_str(), Key::new(&known::CLUSTER_ROLE_BINDING, "", &role))
        });
        let judged = roles.chain(cluster_roles).map(|(account, binding)| {
            let found = store.get(&Key::new(&known::SERVICE_ACCOUNT, namespace, account));
            if found.is_some_and(|found| self.is_owned_by_other(found)) {
                return (account, false, "Service account is owned by another ClusterServiceVersion");
            }
            let is_met = (account == "default" || found.is_some()) && store.get(&binding).is_some();
            (account, is_met, "Policy rule not satisfied for service account")
        });
        judged.collect()
    }

    /// Whether an object is owned by other versions alone.
    fn is_owned_by_other(self, object: &Value) -> bool {
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let owners = owners.into_iter().flatten().filter(|one| one["kind"] == known::CSV.kind.as_str());
        let names: Vec<&Value> = owners.map(|one| &one["name"]).collect();
        !names.is_empty() && names.iter().all(|name| **name != self.csv.name())
    }

    fn deployments(self) -> &'o [DeploymentDescription] {
        &self.csv.spec.install.spec.deployments
    }

    fn health(self) -> Health {
        for description in self.deployments() {
            let name = &description.name;
            let key = Key::new(&known::DEPLOYMENT, self.scope.namespace, name);
            let found = self.view.store.get(&key).filter(|found| {
                found
                    .pointer("/metadata/labels")
                    .is_some_and(|labels| labels[label::OWNER] == self.csv.name())
            });
            let Some(found) = found else {
                return Health::Missing(format!("missing deployment with name={name}"));
            };
            let conditions = found.pointer("/status/conditions").and_then(Value::as_array);
            let mut conditions = conditions.into_iter().flatten();
            if conditions.any(|condition| condition["reason"] == "ProgressDeadlineExceeded") {
                return Health::GivenUp(name.clone());
            }
            let number = |path: &str| found.pointer(path).and_then(Value::as_u64).unwrap_or(0);
            let seen = number("/status/observedGeneration") >= number("/metadata/generation");
            let wants_none = number("/status/replicas") == 0 && number("/status/unavailableReplicas") == 0;
            let available = number("/status/availableReplicas") > 0 || wants_none;
            if !seen || !available {
                return Health::Waits(format!(
                    "waiting for deployment {name} to become ready: deployment {name:?} not available: Deployment does \
                     not have minimum availability."
                ));
            }
        }
        Health::Well
    }

    /// The install strategy is run: deployments and webhooks are made, or taken over from the predecessor.
    fn install(self) -> Change {
        let mut writes = Vec::new();
        let failed = |why: &str| {
            let message = format!("install strategy failed: {why}");
            self.to(CsvPhase::Failed, "InstallComponentFailed", &message, 100)
        };
        if let Some(why) = admission::deployments(self.csv.document()) {
            return failed(&quoted(&why));
        }
        for description in self.deployments() {
            let object = self.deployment(description);
            let key = Key::of(&object);
            let existing = self.view.store.get(&key);
            if let Some(changed) = existing.and_then(|existing| immutable::changed(existing, &object)) {
                return failed(&refused(&key, &changed));
            }
            match existing {
                Some(existing) => {
                    let patch = replace::patch(&object, existing);
                    writes.push(Write::Patch { key, patch, status: false });
                }
                None => writes.push(Write::Create(object)),
            }
        }
        let mut change = match self.refused_webhook() {
            Some(why) => failed(&why),
            None => {
                writes.extend(self.webhooks());
                let message = "waiting for install components to report healthy";
                self.to(CsvPhase::Installing, "InstallSucceeded", message, 50)
            }
        };
        writes.append(&mut change.writes);
        Change { writes, ..change }
    }

    fn owned(self) -> Value {
        json!({
            label::MANAGED: "true", label::OWNER: self.csv.name(), label::OWNER_NAMESPACE: self.scope.namespace,
            label::OWNER_KIND: olmkit_bundle::csv::KIND,
        })
    }

    fn owner(self, controller: bool) -> Value {
        json!([{
            "apiVersion": olmkit_bundle::csv::API_VERSION, "kind": olmkit_bundle::csv::KIND, "name": self.csv.name(),
            "uid": self.csv.metadata.uid, "controller": controller, "blockOwnerDeletion": false,
        }])
    }

    /// A Deployment as OLM makes it, with its owner.
    fn deployment(self, description: &DeploymentDescription) -> Value {
        let subscription = self.subscription();
        let config = subscription.and_then(|found| found.spec.config.as_ref()?.as_object());
        let serving = installed::serving(&self.csv.spec);
        let owner = installed::Owner {
            csv: self.csv.name(),
            annotations: self.csv.metadata.annotations.as_ref(),
            is_serving: serving.contains(description.name.as_str()),
            config,
        };
        let mut object = installed::deployment(description, owner);
        let mut labels = self.owned();
        labels["olm.deployment-spec-hash"] = json!(names::hash(&object["spec"].to_string()));
        merge(
            &mut object,
            &json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {
                    "namespace": self.scope.namespace, "labels": labels, "ownerReferences": self.owner(false),
                },
            }),
        );
        object
    }

    fn subscription(self) -> Option<&'o Object<Subscription>> {
        self.scope.subscriptions.iter().find(|found| found.status.installed_csv == self.csv.name())
    }

    /// What the API server says of the first webhook that it does not take; the Deployments are there by then.
    fn refused_webhook(self) -> Option<String> {
        let csv = self.csv.document();
        let all = csv.pointer("/spec/webhookdefinitions").and_then(Value::as_array);
        all.into_iter().flatten().find_map(|one| {
            let why = quoted(&admission::webhook(csv, one)?);
            let kind = if one["type"] == "MutatingAdmissionWebhook" { "Mutating" } else { "Validating" };
            let name = one["generateName"].as_str().unwrap_or("");
            Some(format!(
                "{kind}WebhookConfiguration.admissionregistration.k8s.io \"{name}-\" is invalid: {why}"
            ))
        })
    }

    /// The configurations of admission webhooks, and conversion by the new operator.
    fn webhooks(self) -> Vec<Write> {
        let mut writes = Vec::new();
        for webhook in &self.csv.spec.webhook_definitions {
            let (kind, resource) = match webhook.kind.as_str() {
                "ValidatingAdmissionWebhook" => {
                    ("ValidatingWebhookConfiguration", &*known::VALIDATING_WEBHOOK)
                }
                "MutatingAdmissionWebhook" => ("MutatingWebhookConfiguration", &*known::MUTATING_WEBHOOK),
                _ => {
                    let service = format!("{}-service", webhook.deployment_name);
                    let path = webhook.webhook_path.as_deref().unwrap_or("/");
                    let conversion = json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": {
                        "clientConfig": {"service": {
                            "name": service, "namespace": self.scope.namespace, "path": path,
                            "port": webhook.container_port.unwrap_or(443),
                        }},
                        "conversionReviewVersions": webhook.admission_review_versions,
                    }}}});
                    writes.extend(webhook.conversion_crds.iter().map(|crd| Write::Patch {
                        key: Key::new(&known::CRD, "", crd),
                        patch: conversion.clone(),
                        status: false,
                    }));
                    continue;
                }
            };
            let mut labels = self.owned();
            labels["olm.webhook-description-generate-name"] = json!(webhook.generate_name);
            let mine = |object: &&Value| {
                let own = object.pointer("/metadata/labels");
                own.is_some_and(|own| {
                    own["olm.webhook-description-generate-name"] == webhook.generate_name.as_str()
                })
            };
            match self.view.store.list(resource, None).find(mine) {
                Some(found) => writes.push(Write::Patch {
                    key: Key::of(found),
                    patch: json!({"metadata": {"labels": labels}}),
                    status: false,
                }),
                None => writes.push(Write::Create(json!({
                    "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                    "metadata": {"generateName": format!("{}-", webhook.generate_name), "labels": labels},
                    "webhooks": [{"name": webhook.generate_name, "rules": webhook.rules}],
                }))),
            }
        }
        writes
    }

    /// Every ClusterServiceVersion has an OperatorCondition.
    fn operator_condition(self) -> Option<Change> {
        let key = Key::new(&known::OPERATOR_CONDITION, self.scope.namespace, self.csv.name());
        if self.view.store.get(&key).is_some() {
            return None;
        }
        let strategy = &self.csv.spec.install.spec;
        let permissions = strategy.permissions.iter().chain(&strategy.cluster_permissions);
        let accounts: std::collections::BTreeSet<_> =
            permissions.map(|permission| &permission.service_account_name).collect();
        let deployments: Vec<_> = self.deployments().iter().map(|deployment| &deployment.name).collect();
        let object = json!({
            "apiVersion": "operators.coreos.com/v2", "kind": "OperatorCondition",
            "metadata": {
                "name": self.csv.name(), "namespace": self.scope.namespace, "ownerReferences": self.owner(true),
            },
            "spec": {"deployments": deployments, "serviceAccounts": accounts},
        });
        Some(Change::new(self.name("condition"), 30, vec![Write::Create(object)]))
    }

    /// The aggregated roles of the APIs that a healthy operator provides.
    fn roles(self) -> Option<Change> {
        if self.csv.status.phase != CsvPhase::Succeeded {
            return None;
        }
        let owned = &self.csv.spec.custom_resource_definitions.owned;
        let roles = owned.iter().flat_map(|crd| {
            ["admin", "crdview", "edit", "view"].map(|level| format!("{}-{}-{level}", crd.name, crd.version))
        });
        let missing =
            roles.filter(|name| self.view.store.get(&Key::new(&known::CLUSTER_ROLE, "", name)).is_none());
        let create = |name: String| {
            Write::Create(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": name, "labels": {label::MANAGED: "true"}},
            }))
        };
        let writes: Vec<Write> = missing.map(create).collect();
        (!writes.is_empty()).then(|| Change::new(self.name("roles"), 100, writes))
    }

    /// OLM marks the CRDs of an operator as its own.
    fn adopt(self) -> Option<Change> {
        let label = component_label(&package_of(self.csv)?, self.scope.namespace);
        let owned = self.csv.spec.custom_resource_definitions.owned.iter();
        let unmarked = owned.filter_map(|crd| {
            let key = Key::new(&known::CRD, "", &crd.name);
            let labels = self.view.store.get(&key)?.pointer("/metadata/labels");
            labels.is_none_or(|labels| labels.get(&label).is_none()).then_some(key)
        });
        let patch = json!({"metadata": {"labels": {label.as_str(): ""}}});
        let writes: Vec<Write> =
            unmarked.map(|key| Write::Patch { key, patch: patch.clone(), status: false }).collect();
        (!writes.is_empty()).then(|| Change::new(self.name("adopt"), 100, writes))
    }

    /// The finalizer takes away what garbage collection does not reach, and gives the object free.
    fn clean_up(self) -> Change {
        let mut writes = Vec::new();
        for resource in [
            &*known::CLUSTER_ROLE,
            &*known::CLUSTER_ROLE_BINDING,
            &*known::VALIDATING_WEBHOOK,
            &*known::MUTATING_WEBHOOK,
        ] {
            let mine = |object: &&Value| {
                object.pointer("/metadata/labels").is_some_and(|labels| {
                    labels[label::OWNER] == self.csv.name()
                        && labels[label::OWNER_NAMESPACE] == self.scope.namespace
                })
            };
            writes.extend(
                self.view
                    .store
                    .list(resource, None)
                    .filter(mine)
                    .map(|object| Write::Delete(Key::of(object))),
            );
        }
        if self.successor().is_none() {
            for webhook in &self.csv.spec.webhook_definitions {
                writes.extend(webhook.conversion_crds.iter().map(|crd| Write::Patch {
                    key: Key::new(&known::CRD, "", crd),
                    patch: json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}}),
                    status: false,
                }));
            }
        }
        let release = json!({"metadata": {"finalizers": null}});
        writes.push(Write::Patch { key: self.csv.key(), patch: release, status: false });
        Change::new(self.name("release"), 100, writes)
    }
}

const INSTALLED: &str = "install strategy completed with no errors";
