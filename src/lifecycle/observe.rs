//! What is there: the objects of one namespace that an operator's life hangs on, at one moment.

use serde_json::Value;

use super::api::{
    CatalogSource, ClusterServiceVersion, InstallPlan, Key, Named as _, Object, OperatorCondition,
    OperatorGroup, Resource, StepStatus, Subscription, SubscriptionState, known, label,
};
use super::cluster::{Cluster, ClusterError};
use super::lineage::lineage;

/// The objects of a namespace.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The namespace.
    pub namespace: String,
    /// The Subscription that it is about, when it is there.
    pub subscription: Option<Object<Subscription>>,
    /// The other Subscriptions.
    pub others: Vec<Object<Subscription>>,
    /// The InstallPlans, the newest first.
    pub plans: Vec<Object<InstallPlan>>,
    /// The ClusterServiceVersions, copies not among them.
    pub csvs: Vec<Object<ClusterServiceVersion>>,
    /// The OperatorGroups.
    pub groups: Vec<Object<OperatorGroup>>,
    /// What operators say of themselves.
    pub conditions: Vec<Object<OperatorCondition>>,
    /// The CatalogSource of the Subscription, when it is there.
    pub catalog: Option<Object<CatalogSource>>,
    /// The Deployments that ClusterServiceVersions own.
    pub deployments: Vec<Workload>,
    /// Their pods, where they may be looked at.
    pub pods: Vec<Pod>,
}

/// A line of what is told of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// How far below the Subscription it belongs.
    pub level: usize,
    /// The object, as `KIND/NAME`.
    pub object: String,
    /// How it is, in a few words.
    pub state: String,
    /// How far it has come meanwhile.
    pub detail: String,
    /// Whether nothing more is to come of it.
    pub done: bool,
}

impl Row {
    /// The level of pods.
    pub const POD: usize = 3;
}

/// A pod of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// The Deployment that it is of.
    pub deployment: String,
    /// How it is, in a word or two.
    pub state: String,
    /// Whether it serves.
    pub ready: bool,
    /// Whether one of its containers has ended with an error and was started again.
    pub crashed: bool,
}

/// A Deployment, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// The ClusterServiceVersion that owns it.
    pub owner: String,
    /// The images of its containers.
    pub images: Vec<String>,
    /// How many pods there should be.
    pub wanted: u64,
    /// How many of them are of the newest template.
    pub updated: u64,
    /// How many are available.
    pub available: u64,
    /// Whether all of this is about the newest spec.
    pub current: bool,
    /// Why it is not available, where it says more than that.
    pub trouble: String,
}

/// The kinds that are looked at, all of them in the Subscription's namespace but CatalogSources.
pub fn kinds() -> [&'static Resource; 8] {
    [
        &known::SUBSCRIPTION,
        &known::INSTALL_PLAN,
        &known::CSV,
        &known::OPERATOR_GROUP,
        &known::OPERATOR_CONDITION,
        &known::CATALOG_SOURCE,
        &known::DEPLOYMENT,
        &known::POD,
    ]
}

impl Observed {
    /// The namespaces that the OperatorGroup selects; empty without an OperatorGroup, and with several.
    pub fn targets(&self) -> Vec<String> {
        match &self.groups[..] {
            [group] => group.target_namespaces(),
            _ => Vec::new(),
        }
    }

    /// Looks at a namespace of a cluster.
    ///
    /// # Errors
    /// The cluster does not answer, has no OLM, or does not allow it.
    pub fn look(
        cluster: &mut dyn Cluster,
        namespace: &str,
        subscription: &str,
    ) -> Result<Self, ClusterError> {
        let mut documents = Vec::new();
        for kind in kinds() {
            if kind.kind == known::CATALOG_SOURCE.kind {
                continue;
            }
            match cluster.list(kind, Some(namespace)) {
                Ok(found) => documents.extend(found),
                // Nothing is decided by pods; who may not look at them sees less, that is all.
                Err(ClusterError::Forbidden { .. }) if kind.kind == known::POD.kind => {}
                Err(error) => return Err(error),
            }
        }
        let is_it = |document: &&Value| {
            document["kind"] == known::SUBSCRIPTION.kind.as_str()
                && document["metadata"]["name"] == subscription
        };
        if !documents.iter().any(|document| is_it(&document)) {
            // A watch may be behind what was written, for one whose answer was lost or which a list was too early for.
            documents.extend(cluster.get(&known::SUBSCRIPTION, namespace, subscription)?);
        }
        let source = documents.iter().find(is_it);
        let text =
            |path: &str| source.and_then(|found| found.pointer(path)).and_then(Value::as_str).unwrap_or("");
        let (name, within) = (text("/spec/source").to_owned(), text("/spec/sourceNamespace").to_owned());
        if !name.is_empty() {
            documents.extend(cluster.get(&known::CATALOG_SOURCE, &within, &name)?);
        }
        Ok(Self::of(documents.iter(), namespace, subscription))
    }

    /// Sorts documents. What does not fit its type is passed over: OLM does not see it either.
    pub fn of<'d>(documents: impl Iterator<Item = &'d Value>, namespace: &str, subscription: &str) -> Self {
        let mut observed = Self { namespace: namespace.to_owned(), ..Self::default() };
        let mut catalogs: Vec<Object<CatalogSource>> = Vec::new();
        for document in documents {
            let key = Key::of(document);
            let here = key.namespace == namespace;
            match key.kind.as_str() {
                "Subscription" if here && key.name == subscription => {
                    observed.subscription = Object::read(document.clone()).ok();
                }
                "Subscription" if here => push(&mut observed.others, document),
                "InstallPlan" if here => push(&mut observed.plans, document),
                "ClusterServiceVersion" if here => push(&mut observed.csvs, document),
                "OperatorGroup" if here => push(&mut observed.groups, document),
                "OperatorCondition" if here => push(&mut observed.conditions, document),
                "Deployment" if here => observed.deployments.extend(Workload::of(document)),
                "Pod" if here => observed.pods.extend(Pod::of(document)),
                "CatalogSource" => push(&mut catalogs, document),
                _ => {}
            }
        }
        let deployments = &observed.deployments;
        observed.pods.retain(|pod| deployments.iter().any(|found| found.name == pod.deployment));
        observed.csvs.retain(|csv| !csv.is_copied());
        observed.plans.sort_by_key(|plan| -plan.spec.generation);
        let wanted = observed.subscription.as_ref().map(|found| &found.spec);
        observed.catalog = catalogs.into_iter().find(|catalog| {
            wanted.is_some_and(|spec| {
                (catalog.name(), catalog.namespace())
                    == (spec.source.as_str(), spec.source_namespace.as_str())
            })
        });
        observed
    }

    /// A ClusterServiceVersion by name.
    pub fn csv(&self, name: &str) -> Option<&Object<ClusterServiceVersion>> {
        self.csvs.iter().find(|csv| csv.name() == name)
    }

    /// The ClusterServiceVersion that the Subscription has installed, when it is there.
    pub fn installed(&self) -> Option<&Object<ClusterServiceVersion>> {
        self.csv(&self.subscription.as_ref()?.status.installed_csv)
    }

    /// The names of the versions of a Subscription of the namespace: those that it names, and what they replace.
    pub fn versions_of<'o>(&'o self, subscription: &'o Subscription) -> Vec<&'o str> {
        let named = [subscription.status.current_csv.as_str(), &subscription.status.installed_csv];
        lineage(named, |name| Some(self.csv(name)?.spec.replaces.as_str()))
    }

    /// Whether a version belongs to a Subscription of the namespace.
    pub fn is_named(&self, csv: &str) -> bool {
        let mut all = self.others.iter().chain(&self.subscription);
        all.any(|found| self.versions_of(found).contains(&csv))
    }

    /// Whether a version belongs to a Subscription of the namespace, or to a plan that is about to tell one.
    pub fn is_subscribed(&self, csv: &str) -> bool {
        self.is_named(csv) || self.open_plan(csv).is_some()
    }

    /// Whether a container of a version has crashed. Without a readiness probe it counts as available in every moment between a
    /// start and the next crash.
    pub fn has_crashed(&self, csv: &str) -> bool {
        let own = self.deployments.iter().filter(|found| found.owner == csv);
        let mut pods = own.flat_map(|found| self.pods.iter().filter(|pod| pod.deployment == found.name));
        pods.any(|pod| pod.crashed)
    }

    /// The plan that is not over and carries something.
    pub fn open_plan(&self, csv: &str) -> Option<&Object<InstallPlan>> {
        self.plans.iter().find(|plan| {
            !plan.is_over() && plan.spec.cluster_service_version_names.iter().any(|name| name == csv)
        })
    }

    /// How everything is, in the order of OLM's work.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        if let Some(subscription) = &self.subscription {
            let status = &subscription.status;
            let state = match (status.state.as_str(), status.current_csv.as_str()) {
                ("", _) => "created".to_owned(),
                (state, csv) => format!("{state} {csv}"),
            };
            let done = status.state == SubscriptionState::AtLatestKnown;
            rows.push(Row { object: subscription.key().to_string(), state, done, ..Row::default() });
        }
        for plan in self.plans.iter().rev() {
            let phase = match plan.status.phase.as_str() {
                "" => "Planning",
                phase => phase,
            };
            let state = format!("{phase} {}", plan.spec.cluster_service_version_names.join(" "));
            let steps = &plan.status.plan;
            let taken =
                steps.iter().filter(|step| matches!(step.status, StepStatus::Created | StepStatus::Present));
            let detail = if steps.is_empty() || plan.waits_for_approval() {
                String::new()
            } else {
                format!("{} of {} steps", taken.count(), steps.len())
            };
            rows.push(Row { level: 1, object: plan.key().to_string(), state, detail, done: plan.is_over() });
        }
        for csv in &self.csvs {
            let status = &csv.status;
            let state = match status.phase.as_str() {
                "" => "created".to_owned(),
                phase if phase == "Succeeded" => phase.to_owned(),
                phase => format!("{phase} ({})", status.reason),
            };
            rows.push(Row {
                level: 1,
                object: csv.key().to_string(),
                state,
                done: csv.succeeded(),
                ..Row::default()
            });
        }
        for workload in &self.deployments {
            let object = format!("deployment/{}", workload.name);
            let state = format!("{} of {} available", workload.available, workload.wanted);
            rows.push(Row { level: 2, object, state, done: workload.is_well(), ..Row::default() });
            for pod in self.pods.iter().filter(|pod| pod.deployment == workload.name) {
                let (object, state) = (format!("pod/{}", pod.name), pod.state.clone());
                rows.push(Row { level: Row::POD, object, state, done: pod.ready, ..Row::default() });
            }
        }
        rows
    }
}

fn push<T: serde::de::DeserializeOwned>(list: &mut Vec<Object<T>>, document: &Value) {
    list.extend(Object::read(document.clone()).ok());
}

impl Workload {
    fn of(document: &Value) -> Option<Self> {
        let owner = document.pointer("/metadata/labels")?.get(label::OWNER)?.as_str()?;
        let number = |path: &str| document.pointer(path).and_then(Value::as_u64);
        let containers = document.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        let images = containers.into_iter().flatten().filter_map(|container| container["image"].as_str());
        Some(Self {
            name: Key::of(document).name,
            owner: owner.to_owned(),
            images: images.map(str::to_owned).collect(),
            wanted: number("/spec/replicas").unwrap_or(1),
            updated: number("/status/updatedReplicas").unwrap_or(0),
            available: number("/status/availableReplicas").unwrap_or(0),
            trouble: trouble(document),
            current: number("/status/observedGeneration").unwrap_or(0)
                >= number("/metadata/generation").unwrap_or(0),
        })
    }

    /// Whether every pod is there and of the newest template.
    pub fn is_well(&self) -> bool {
        self.current && self.updated >= self.wanted && self.available >= self.wanted
    }
}

/// What a Deployment says of why it is not available, where that is more than that it is not.
fn trouble(document: &Value) -> String {
    const NOTHING_NEW: &str = "Deployment does not have minimum availability.";
    let conditions = document.pointer("/status/conditions").and_then(Value::as_array);
    let available = conditions.into_iter().flatten().find(|condition| condition["type"] == "Available");
    let message =
        available.filter(|condition| condition["status"] == "False").and_then(|own| own["message"].as_str());
    message.filter(|message| *message != NOTHING_NEW).unwrap_or_default().to_owned()
}

impl Pod {
    fn of(document: &Value) -> Option<Self> {
        let name = Key::of(document).name;
        let owners = document.pointer("/metadata/ownerReferences")?.as_array()?;
        let set = owners.iter().find(|owner| owner["kind"] == "ReplicaSet")?["name"].as_str()?;
        let (deployment, _) = set.rsplit_once('-')?;
        let (state, ready) = pod_state(document);
        let containers = document.pointer("/status/containerStatuses").and_then(Value::as_array);
        let crashed = containers.into_iter().flatten().any(|status| {
            let before = status.pointer("/lastState/terminated/exitCode").and_then(Value::as_i64);
            before.is_some_and(|code| code != 0)
        });
        Some(Self { name, deployment: deployment.to_owned(), state, ready, crashed })
    }
}

/// How a pod is, in a word or two, and whether it serves.
pub(super) fn pod_state(document: &Value) -> (String, bool) {
    let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let statuses: Vec<&Value> =
        statuses.iter().filter_map(|path| document.pointer(path)?.as_array()).flatten().collect();
    let waiting = statuses.iter().find_map(|status| status.pointer("/state/waiting/reason")?.as_str());
    let conditions = document.pointer("/status/conditions").and_then(Value::as_array);
    let ready =
        conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"));
    let phase = document.pointer("/status/phase").and_then(Value::as_str).unwrap_or("Pending");
    let state = match waiting {
        _ if document.pointer("/metadata/deletionTimestamp").is_some() => "Terminating".to_owned(),
        Some(reason) => format!("{phase} ({reason})"),
        None if ready => format!("{phase}, ready"),
        None => phase.to_owned(),
    };
    (state, ready)
}
