//! What is due in a state: one function for each thing that OLM, the API server or the kubelet would do about it.
//!
//! A rule reads objects and names the writes that come next. It is due as long as the state stays as it is, and happens
//! once its delay is over; the delays keep the orders that OLM was seen to keep.

mod csv;
mod plans;
mod quota;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use olmkit_bundle::pod::Available;
use olmkit_bundle::{annotations, installed, pod};
use serde_json::{Value, json};

use super::scope::{self, Chosen, Failed, Scope};
use super::store::Store;
use super::{Registry, Served, names};
pub(super) use csv::KUBERNETES;
pub(super) use plans::{RETRIED_MILLIS, RETRYING};

use crate::lifecycle::api::{
    CatalogSource, Key, Named as _, Object, OperatorGroup, Subscription, SubscriptionState, condition, known,
    label,
};

/// How long a Job that unpacks a bundle may take.
const UNPACKED_MILLIS: u64 = 600_000;

/// What rules look at.
pub struct View<'v> {
    /// The objects.
    pub store: &'v Store,
    /// The catalogs that are being served.
    pub served: &'v BTreeMap<Key, Served>,
    /// What is in registries.
    pub registry: &'v Registry,
}

/// Something that is due.
#[derive(Clone, Debug)]
pub struct Change {
    /// Tells it apart from other changes of this state, and stays the same while it waits.
    pub name: String,
    /// How long it has to be due before it happens.
    pub delay: Duration,
    /// What is written, in this order.
    pub writes: Vec<Write>,
}

/// A write.
#[derive(Clone, Debug)]
pub enum Write {
    /// A new object.
    Create(Value),
    /// A change of an object.
    Patch {
        /// The object.
        key: Key,
        /// What is merged into it.
        patch: Value,
        /// Whether it goes to the status.
        status: bool,
    },
    /// A deletion.
    Delete(Key),
    /// A catalog begins to be served from a source. No object changes.
    Serve {
        /// The CatalogSource.
        key: Key,
        /// The image or address.
        source: String,
    },
}

impl Change {
    fn new(name: impl Into<String>, millis: u64, writes: Vec<Write>) -> Self {
        Self { name: name.into(), delay: Duration::from_millis(millis), writes }
    }

    /// A change that is one patch of a status.
    fn status(name: impl Into<String>, millis: u64, key: Key, patch: Value) -> Self {
        Self::new(name, millis, vec![Write::Patch { key, patch: json!({"status": patch}), status: true }])
    }
}

/// Everything that is due.
pub fn due(view: &View<'_>) -> Vec<Change> {
    let mut due = Vec::new();
    for source in scope::read::<CatalogSource>(view.store.list(&known::CATALOG_SOURCE, None)) {
        due.extend(catalog(view, &source));
    }
    for group in scope::read::<OperatorGroup>(view.store.list(&known::OPERATOR_GROUP, None)) {
        due.extend(operator_group(view, &group));
    }
    let mut namespaces = BTreeSet::new();
    for resource in [&*known::SUBSCRIPTION, &*known::CSV, &*known::INSTALL_PLAN] {
        namespaces.extend(view.store.list(resource, None).map(|object| Key::of(object).namespace));
    }
    for namespace in &namespaces {
        let scope = scope::scope(view.store, view.served, view.registry, namespace);
        due.extend(subscriptions(view, &scope));
        due.extend(resolution(view, &scope));
        due.extend(plans::due(view, &scope));
        due.extend(csv::due(view, &scope));
    }
    for object in view.store.list(&known::DEPLOYMENT, None) {
        due.extend(deployment(view, object));
    }
    for object in view.store.list(&known::CRD, None) {
        due.extend(crd(view, object));
    }
    due
}

/// The catalog-operator starts a catalog's pod and connects to it; with an address it connects alone.
fn catalog(view: &View<'_>, source: &Object<CatalogSource>) -> Option<Change> {
    let key = source.key();
    let name = |what: &str| format!("{what} {}/{}", source.namespace(), source.name());
    let by_address = !source.spec.address.is_empty();
    if source.document().pointer("/status/registryService").is_none() {
        let mut service = json!({"protocol": "grpc", "createdAt": view.store.timestamp()});
        if !by_address {
            service["serviceName"] = json!(source.name());
            service["serviceNamespace"] = json!(source.namespace());
            service["port"] = json!("50051");
        }
        return Some(Change::status(name("register"), 300, key, json!({"registryService": service})));
    }
    let state = |state: &str| {
        let host = format!("{}.{}.svc:50051", source.name(), source.namespace());
        let address = if by_address { source.spec.address.clone() } else { host };
        json!({"connectionState": {"address": address, "lastConnect": view.store.timestamp(), "lastObservedState": state}})
    };
    let wanted = source.source();
    let Some(fresh) = view.registry.catalogs.get(wanted) else {
        let fails = source.connection() != "TRANSIENT_FAILURE";
        return fails.then(|| Change::status(name("fail"), 2_000, key, state("TRANSIENT_FAILURE")));
    };
    let served = view.served.get(&key);
    let current = served.filter(|served| served.source == wanted);
    match current {
        None if served.is_some() && source.connection() == "READY" => {
            Some(Change::status(name("reconnect"), 500, key, state("IDLE")))
        }
        None => {
            let mut change = Change::status(
                name("connect"),
                if by_address { 1_000 } else { 3_000 },
                key.clone(),
                state("READY"),
            );
            change.writes.insert(0, Write::Serve { key, source: wanted.to_owned() });
            Some(change)
        }
        Some(_) if !source.is_ready() => Some(Change::status(name("ready"), 500, key, state("READY"))),
        Some(served) => {
            // A moved tag is seen by polling alone.
            let polls = source.document().pointer("/spec/updateStrategy/registryPoll").is_some();
            let stale = polls && !std::sync::Arc::ptr_eq(&served.offer, fresh);
            stale.then(|| {
                Change::new(name("poll"), 20_000, vec![Write::Serve { key, source: wanted.to_owned() }])
            })
        }
    }
}

/// The olm-operator finds out which namespaces a group is about, and makes the roles that go with it.
fn operator_group(view: &View<'_>, group: &Object<OperatorGroup>) -> Option<Change> {
    let mut namespaces = group.spec.target_namespaces.clone();
    if let (true, Some(selector)) = (namespaces.is_empty(), &group.spec.selector) {
        let labels = selector.match_labels.clone().unwrap_or_default();
        let matches = |namespace: &&Value| {
            let own = namespace.pointer("/metadata/labels");
            labels.iter().all(|(key, value)| {
                own.and_then(|own| own.get(key)).and_then(Value::as_str) == Some(value.as_str())
            })
        };
        let found = view.store.list(&known::NAMESPACE, None).filter(matches);
        namespaces.extend(found.map(|namespace| Key::of(namespace).name));
    } else if namespaces.is_empty() {
        namespaces.push(String::new());
    }
    namespaces.sort();
    if group.status.namespaces == namespaces {
        return None;
    }
    let mut change = Change::status(
        format!("target {}/{}", group.namespace(), group.name()),
        10,
        group.key(),
        json!({"namespaces": namespaces, "lastUpdated": view.store.timestamp()}),
    );
    for level in ["admin", "edit", "view"] {
        let hash = names::hash(&format!("{}/{}/{level}", group.namespace(), group.name()));
        let name = format!("olm.og.{}.{level}-{hash}", group.name());
        if view.store.get(&Key::new(&known::CLUSTER_ROLE, "", &name)).is_none() {
            change.writes.push(Write::Create(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": name, "labels": {
                    label::MANAGED: "true", label::OWNER: group.name(), label::OWNER_NAMESPACE: group.namespace(),
                    label::OWNER_KIND: "OperatorGroup",
                }},
            })));
        }
    }
    Some(change)
}

/// The catalog-operator keeps Subscriptions in step with plans and ClusterServiceVersions.
fn subscriptions(view: &View<'_>, scope: &Scope<'_>) -> Vec<Change> {
    let plans = plans::newest_first(view, scope.namespace);
    scope
        .subscriptions
        .iter()
        .filter_map(|subscription| {
            let name = subscription.name();
            let status = &subscription.status;
            let follows = |plan: &str, csv: &str| {
                let reference = json!({
                    "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan", "name": plan,
                    "namespace": scope.namespace,
                });
                Change::status(
                    format!("follow {}/{name} {csv}", scope.namespace),
                    150,
                    subscription.key(),
                    json!({
                        "state": "UpgradePending", "currentCSV": csv, "installPlanRef": reference,
                        "installplan": reference, "lastUpdated": view.store.timestamp(),
                    }),
                )
            };
            // One that a plan made refers to that plan.
            if let Some(plan) =
                subscription.annotation(label::GENERATED_BY).filter(|_| status.plan().is_empty())
            {
                return Some(follows(plan, &subscription.spec.starting_csv));
            }
            // One that a plan was made for goes where the plan goes.
            let uid = subscription.metadata.uid.as_deref();
            let made_for = plans.iter().filter(|plan| {
                let owners = plan.metadata.owner_references.iter().flatten();
                let mut owners = owners.map(|owner| owner.uid.as_str());
                !plan.is_over() && owners.any(|owner| Some(owner) == uid)
            });
            let goes = made_for.into_iter().find_map(|plan| {
                let names = &plan.spec.cluster_service_version_names;
                Some((plan, names.iter().find(|name| scope.offers(subscription, name))?))
            });
            if let Some((plan, csv)) = goes.filter(|(_, csv)| **csv != status.current_csv) {
                return Some(follows(plan.name(), csv));
            }
            if status.current_csv.is_empty() {
                return None;
            }
            let (state, installed) = if scope.exists(&status.current_csv) {
                (SubscriptionState::AtLatestKnown, &status.current_csv)
            } else {
                (SubscriptionState::UpgradePending, &status.installed_csv)
            };
            (status.state != state).then(|| {
                let mut patch = json!({"state": state.as_str(), "lastUpdated": view.store.timestamp()});
                if !installed.is_empty() {
                    patch["installedCSV"] = json!(installed);
                }
                let name = format!("state {}/{name} {state}", scope.namespace);
                Change::status(name, 1_000, subscription.key(), patch)
            })
        })
        .collect()
}

/// The catalog-operator resolves all Subscriptions of a namespace together, unpacks what is new, and makes a plan.
fn resolution(view: &View<'_>, scope: &Scope<'_>) -> Vec<Change> {
    let waits = |subscription: &Object<Subscription>| {
        subscription.status.state == SubscriptionState::UpgradePending
            && !subscription.status.plan().is_empty()
    };
    if scope.groups.len() != 1 || scope.subscriptions.iter().all(waits) {
        return Vec::new();
    }
    let chosen = match scope.resolve() {
        Ok(chosen) => chosen,
        Err(Failed::Constraints(message)) => {
            let why = (condition::RESOLUTION_FAILED, "ConstraintsNotSatisfiable", &*message);
            return conditions(view, scope, Some(why));
        }
        Err(Failed::Prevented(message)) => {
            let why = (condition::RESOLUTION_FAILED, "ErrorPreventedResolution", &*message);
            return conditions(view, scope, Some(why));
        }
    };
    let packed = chosen.iter().filter(|one| one.bundle.manifests.is_empty() && !one.bundle.image.is_empty());
    let jobs: Vec<Unpacking> = packed.map(|one| unpack(view, one)).collect();
    let told = jobs.iter().find_map(|job| match job {
        Unpacking::Failed => Some((UNPACKING[1], "BundleUnpackFailed", "bundle unpacking failed. Reason: DeadlineExceeded, and Message: Job was active longer than specified deadline")),
        Unpacking::Hopeless(_) => Some((UNPACKING[0], "UnpackingInProgress", "Bundle image pull failed. Common causes: the image does not exist, or its registry needs credentials")),
        Unpacking::Done | Unpacking::Due(_) => None,
    });
    let mut due = conditions(view, scope, told);
    if !chosen.is_empty() && jobs.iter().all(|job| matches!(job, Unpacking::Done)) {
        due.extend(plans::create(view, scope, &chosen));
    }
    due.extend(jobs.into_iter().filter_map(|job| match job {
        Unpacking::Due(change) | Unpacking::Hopeless(change) => Some(change),
        Unpacking::Done | Unpacking::Failed => None,
    }));
    due
}

/// The conditions that say how the unpacking goes, and how it went.
const UNPACKING: [&str; 2] = ["BundleUnpacking", "BundleUnpackFailed"];

/// Why no plan is made comes and goes on every Subscription of the namespace: the type of a condition, its reason and its message.
fn conditions(view: &View<'_>, scope: &Scope<'_>, wanted: Option<(&str, &str, &str)>) -> Vec<Change> {
    // How unpacking goes is told only where it is known what can be unpacked.
    let is_told = |kind: &str| {
        kind == condition::RESOLUTION_FAILED || view.registry.is_complete && UNPACKING.contains(&kind)
    };
    let change = |subscription: &Object<Subscription>| {
        let (found, others): (Vec<_>, Vec<_>) =
            subscription.status.conditions.iter().partition(|one| is_told(&one.kind));
        let found: Vec<(&str, &str, &str)> =
            found.into_iter().map(|one| (&*one.kind, &*one.reason, &*one.message)).collect();
        if found == wanted.as_slice() {
            return None;
        }
        let mut conditions: Vec<Value> = others
            .into_iter()
            .map(|other| json!({"type": other.kind, "status": other.status, "reason": other.reason, "message": other.message}))
            .collect();
        conditions.extend(wanted.map(|(kind, reason, message)| {
            json!({"type": kind, "status": "True", "reason": reason, "message": message})
        }));
        let reason = wanted.map_or("resolved", |(_, reason, _)| reason);
        let name = format!("{reason} {}/{}", scope.namespace, subscription.name());
        // OLM's resolver runs every now and then; it is not caught by what passes.
        let is_failed = wanted.is_some_and(|(kind, ..)| kind == condition::RESOLUTION_FAILED);
        let delay = if is_failed { 15_000 } else { 1_000 };
        let patch = json!({"conditions": conditions, "lastUpdated": view.store.timestamp()});
        Some(Change::status(name, delay, subscription.key(), patch))
    };
    scope.subscriptions.iter().filter_map(change).collect()
}

/// How far a bundle is unpacked. Until all are, there is no plan.
enum Unpacking {
    Done,
    /// This comes next.
    Due(Change),
    /// The image cannot be pulled; this comes next, unless that changes.
    Hopeless(Change),
    /// Nothing comes next, until somebody deletes the Job.
    Failed,
}

/// A Job that unpacks a bundle's image into a ConfigMap, with the rights it needs. One whose image cannot be pulled fails at its deadline.
fn unpack(view: &View<'_>, chosen: &Chosen) -> Unpacking {
    let (image, namespace) = (&chosen.bundle.image, &chosen.catalog.1);
    let has_image = view.registry.has(&chosen.csv, image);
    let key = Key::new(&known::JOB, namespace, &names::unpack(image));
    let Some(job) = view.store.get(&key) else {
        return new_job(view, chosen, has_image).map_or(Unpacking::Done, Unpacking::Due);
    };
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let holds = |kind: &str| conditions.clone().any(|one| one["type"] == kind && one["status"] == "True");
    let is_tried = job.pointer("/status/active").is_some();
    if holds("Failed") {
        return Unpacking::Failed;
    } else if holds("Complete") || has_image && !is_tried {
        return Unpacking::Done;
    }
    let name = |what: &str| format!("{what} {namespace}/{}", key.name);
    if has_image {
        let patch =
            json!({"active": null, "succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]});
        return Unpacking::Due(Change::status(name("unpacked"), 20_000, key.clone(), patch));
    }
    let patch = json!({"active": null, "failed": 1, "conditions": [{
        "type": "Failed", "status": "True", "reason": "DeadlineExceeded",
        "message": "Job was active longer than specified deadline", "lastTransitionTime": view.store.timestamp(),
    }]});
    Unpacking::Hopeless(Change::status(name("not unpacked"), UNPACKED_MILLIS, key.clone(), patch))
}

/// The Job and what goes with it; none where the catalog is gone.
fn new_job(view: &View<'_>, chosen: &Chosen, has_image: bool) -> Option<Change> {
    let (catalog, namespace) = &chosen.catalog;
    let (image, package) = (&chosen.bundle.image, &chosen.package);
    let name = names::unpack(image);
    let source = view.store.get(&Key::new(&known::CATALOG_SOURCE, namespace, catalog))?;
    let owner = |kind: &str, api_version: &str, name: &str, uid: &Value| {
        json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": false,
                "blockOwnerDeletion": false}])
    };
    let by_catalog =
        owner("CatalogSource", "operators.coreos.com/v1alpha1", catalog, &source["metadata"]["uid"]);
    let labels = json!({label::MANAGED: "true", label::UNPACK: name});
    let object = |api_version: &str, kind: &str| {
        json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": by_catalog},
        })
    };
    let mut job = object("batch/v1", "Job");
    job["spec"] = json!({"ttlSecondsAfterFinished": 300, "backoffLimit": 3});
    job["status"] = if has_image {
        json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]})
    } else {
        job["spec"]["template"]["spec"]["initContainers"] = json!([{"name": "pull", "image": image}]);
        json!({"active": 1, "startTime": view.store.timestamp()})
    };
    let rbac = "rbac.authorization.k8s.io/v1";
    let mut map = object("v1", "ConfigMap");
    map["metadata"]["annotations"] = json!({annotations::PACKAGE: package});
    let writes =
        [map, object("v1", "ServiceAccount"), object(rbac, "Role"), object(rbac, "RoleBinding"), job];
    // A Job that was cleaned up leaves the rest behind.
    let new = writes.into_iter().filter(|object| view.store.get(&Key::of(object)).is_none());
    Some(Change::new(format!("unpack {namespace}/{name}"), 2_000, new.map(Write::Create).collect()))
}

/// The deployment controller and the kubelet bring a Deployment up, unless its image cannot be pulled, or its pods need a
/// Secret or a ConfigMap that is not there.
fn deployment(view: &View<'_>, object: &Value) -> Option<Change> {
    let key = Key::of(object);
    let generation = object.pointer("/metadata/generation")?.as_u64()?;
    let observed = object.pointer("/status/observedGeneration").and_then(Value::as_u64).unwrap_or(0);
    let containers = object.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    let images = containers.into_iter().flatten().filter_map(|container| container["image"].as_str());
    let unpullable = images.into_iter().any(|image| view.registry.missing_images.contains(image));
    let trouble = lacking(view, object);
    let over_quota = quota::refusal(view.store, object);
    let broken = unpullable || trouble.is_some() || over_quota.is_some();
    let unavailable = |mut condition: Value| {
        if let Some(trouble) = &trouble {
            condition["message"] = trouble.as_str().into();
        }
        condition
    };
    let available = object.pointer("/status/availableReplicas").and_then(Value::as_u64).unwrap_or(0) > 0;
    let replicas = object.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({"type": kind, "status": status, "reason": reason, "lastUpdateTime": view.store.timestamp(),
               "lastTransitionTime": view.store.timestamp()})
    };
    // One that was scaled to zero has nothing to wait for.
    if observed == generation && (available || broken || replicas == 0) {
        let progressing = object.pointer("/status/conditions/0")?;
        let deadline = object.pointer("/spec/progressDeadlineSeconds").and_then(Value::as_u64).unwrap_or(600);
        let exceeded = progressing["reason"] == "ProgressDeadlineExceeded";
        return (broken && !exceeded).then(|| {
            let patch = json!({"conditions": [
                condition("Progressing", "False", "ProgressDeadlineExceeded"),
                unavailable(condition("Available", "False", "MinimumReplicasUnavailable")),
            ]});
            Change::status(format!("deadline {}/{}", key.namespace, key.name), deadline * 1_000, key, patch)
        });
    }
    if let Some(message) = over_quota {
        let mut failure = condition("ReplicaFailure", "True", "FailedCreate");
        failure["message"] = message.into();
        let patch = json!({
            "observedGeneration": generation, "replicas": 0, "updatedReplicas": 0, "unavailableReplicas": replicas,
            "availableReplicas": 0, "readyReplicas": 0,
            "conditions": [
                condition("Progressing", "True", "NewReplicaSetCreated"),
                condition("Available", "False", "MinimumReplicasUnavailable"), failure,
            ],
        });
        return Some(Change::status(format!("quota {}/{}", key.namespace, key.name), 300, key, patch));
    }
    if broken {
        let patch = json!({
            "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
            "unavailableReplicas": replicas, "availableReplicas": 0, "readyReplicas": 0,
            "conditions": [
                condition("Progressing", "True", "ReplicaSetUpdated"),
                unavailable(condition("Available", "False", "MinimumReplicasUnavailable")),
            ],
        });
        return Some(Change::status(format!("pull {}/{}", key.namespace, key.name), 300, key, patch));
    }
    let patch = json!({
        "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
        "unavailableReplicas": null, "availableReplicas": replicas, "readyReplicas": replicas,
        "conditions": [
            condition("Progressing", "True", "NewReplicaSetAvailable"),
            condition("Available", "True", "MinimumReplicasAvailable"),
        ],
    });
    Some(Change::status(format!("roll {}/{} {generation}", key.namespace, key.name), 600, key, patch))
}

/// What keeps the pods of a Deployment from starting: something that they mount or read and that is not there.
fn lacking(view: &View<'_>, object: &Value) -> Option<String> {
    let key = Key::of(object);
    let pod = object.pointer("/spec/template/spec")?;
    let needed = pod::needed(pod);
    if needed.is_empty() {
        return None;
    }
    let mut available = Available::default();
    let namespaced =
        [&*known::SECRET, &*known::CONFIG_MAP, &*known::PERSISTENT_VOLUME_CLAIM, &*known::SERVICE];
    for resource in namespaced {
        view.store.list(resource, Some(&key.namespace)).for_each(|own| available.add(own));
    }
    view.store.list(&known::PRIORITY_CLASS, None).for_each(|own| available.add(own));
    // The Secret is not simulated; only OLM makes a volume of it.
    let certificate = installed::certificate_of(&key.name);
    let volumes = pod.get("volumes").and_then(Value::as_array);
    let is_olms = |volume: &Value| {
        volume["name"] == installed::API_CERTIFICATE.name
            && volume["secret"]["secretName"] == certificate.as_str()
    };
    if volumes.into_iter().flatten().any(is_olms) {
        available.add_certificate_of(&key.name);
    }
    needed.iter().find_map(|needed| {
        let (kind, name) = (needed.kind, &needed.name);
        Some(match available.lacks(needed)? {
            pod::Lack::Object => format!("{kind} `{name}` does not exist"),
            pod::Lack::Key { key, .. } => format!("{kind} `{name}` has no key `{key}`"),
        })
    })
}

/// The API server begins to serve a CRD, and remembers the versions that objects are stored at.
fn crd(view: &View<'_>, object: &Value) -> Option<Change> {
    let versions = object.pointer("/spec/versions")?.as_array()?;
    let storage = versions.iter().find(|version| version["storage"] == true)?["name"].clone();
    let mut stored =
        object.pointer("/status/storedVersions").and_then(Value::as_array).cloned().unwrap_or_default();
    if stored.contains(&storage) {
        return None;
    }
    let key = Key::of(object);
    if let Some((other, name)) = rival(view, object) {
        let told = object.pointer("/status/conditions").is_some();
        let message = format!("{name:?} is already in use");
        let patch = json!({"conditions": [
            {"type": "NamesAccepted", "status": "False", "reason": "KindConflict", "message": message},
            {"type": "Established", "status": "False", "reason": "NotAccepted", "message": "not all names are accepted"},
        ]});
        return (!told).then(|| Change::status(format!("refuse {} {other}", key.name), 20, key, patch));
    }
    stored.push(storage);
    let patch = json!({
        "storedVersions": stored,
        "acceptedNames": object.pointer("/spec/names"),
        "conditions": [
            {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts"},
            {"type": "Established", "status": "True", "reason": "InitialNamesAccepted"},
        ],
    });
    Some(Change::status(format!("serve {}", key.name), 20, key, patch))
}

/// The CRD of the same group that was there before and has the kind or another name of this one, and that name.
fn rival<'v>(view: &View<'v>, object: &Value) -> Option<(String, &'v str)> {
    const NAMES: [&str; 3] = ["/spec/names/kind", "/spec/names/listKind", "/spec/names/singular"];
    let own = Key::of(object);
    view.store.list(&known::CRD, None).find_map(|other| {
        let key = Key::of(other);
        let is_served = other.pointer("/status/storedVersions").is_some();
        if key.name == own.name || !is_served || other.pointer("/spec/group") != object.pointer("/spec/group")
        {
            return None;
        }
        let mut names = NAMES.iter().filter(|path| object.pointer(path).is_some());
        let same = names.find(|path| other.pointer(path) == object.pointer(path))?;
        Some((key.name, other.pointer(same)?.as_str()?))
    })
}
