//! OLM in memory: what OLM's two operators, the API server and the kubelet do about Subscriptions, as rules over the objects
//! that are there.
//!
//! [`rules::due`] looks at a state and names every change that is due, each with its delay; nothing else is remembered, as
//! OLM remembers nothing. [`Simulation`] does them one after another on a clock of its own, so an upgrade that takes OLM a
//! minute takes a millisecond. The rules are those of OLM 0.46's source and of what it was seen to do; `tests/lifecycle`
//! compares them with recordings of it, object by object.
//!
//! Not simulated: the scheduler and pods, the conditions of Subscriptions but for failed resolutions and images of bundles that cannot be
//! pulled, copies of ClusterServiceVersions in other namespaces, certificates of webhooks.

mod names;
mod plan;
pub mod rules;
mod scope;
mod store;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use olmkit_bundle::version::Version;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::api::{Key, Resource, known};
use super::cluster::{Cluster, ClusterError, Said};
use super::immutable;
use super::offer::Offer;
use super::patch::merge;
use super::schema;
use crate::limits::{Limits, Over};

pub(super) use names::unpack as unpack_name;
pub use rules::{Change, Write};
pub use store::{Event, EventKind, Store};

/// What is in registries: catalogs by image or address, and the manifests of bundles by name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// By image or address.
    pub catalogs: BTreeMap<String, Arc<Offer>>,
    /// By the name of the ClusterServiceVersion; the ClusterServiceVersion is among them.
    pub bundles: BTreeMap<String, Vec<Value>>,
    /// Whether a bundle that is not among these is in no registry; otherwise it is unknown, and taken for what the catalog says of it.
    pub is_complete: bool,
    /// Images that cannot be pulled.
    pub missing_images: std::collections::BTreeSet<String>,
    /// Catalogs that were made for a single installation, by image. They are nowhere else, so they are kept with the cluster.
    pub pushed: BTreeMap<String, Pushed>,
    resolved: RefCell<scope::Resolved>,
}

impl Registry {
    /// Whether the image of a bundle can be pulled.
    fn has(&self, csv: &str, image: &str) -> bool {
        !self.missing_images.contains(image) && (!self.is_complete || self.bundles.contains_key(csv))
    }
}

/// A catalog in a simulated registry, with its bundles.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pushed {
    /// Its text.
    pub catalog: String,
    /// The manifests of its bundles, by name.
    pub bundles: BTreeMap<String, Vec<Value>>,
}

/// A catalog as it is being served.
#[derive(Clone, Debug)]
pub struct Served {
    /// The image or address.
    pub source: String,
    /// What is offered.
    pub offer: Arc<Offer>,
}

/// A cluster with OLM on it.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    store: Store,
    registry: Registry,
    served: BTreeMap<Key, Served>,
    /// Since when each change has been due.
    pending: BTreeMap<String, Duration>,
    context: String,
    limits: Limits,
    /// When the command has to be over, by the simulated clock.
    deadline: Option<Duration>,
}

/// What of a simulation is kept between two commands.
#[derive(Serialize, Deserialize)]
struct Saved {
    schema: String,
    store: Store,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pushed: BTreeMap<String, Pushed>,
    /// What OLM waits for goes on waiting where it was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pending: BTreeMap<String, Duration>,
}

/// The schema of saved simulations.
const SCHEMA: &str = "olmkit.simulation/v1";

/// A text that is no saved simulation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// It cannot be read.
    #[error("it is not the whole state of a simulation")]
    Json(#[from] serde_json::Error),
    /// It was written by another version.
    #[error("it has the schema `{found}`, not `{SCHEMA}`")]
    Schema {
        /// The schema that it has.
        found: String,
    },
}

impl Simulation {
    /// A cluster with nothing on it but OLM.
    pub fn new(registry: Registry) -> Self {
        Self { registry, ..Self::default() }
    }

    /// Reads what [`Simulation::save`] wrote.
    ///
    /// # Errors
    /// It is something else.
    pub fn load(text: &str, registry: Registry) -> Result<Self, SavedError> {
        let saved: Saved = serde_json::from_str(text)?;
        if saved.schema != SCHEMA {
            return Err(SavedError::Schema { found: saved.schema });
        }
        let registry = Registry { pushed: saved.pushed, ..registry };
        Ok(Self { store: saved.store, registry, pending: saved.pending, ..Self::default() })
    }

    /// Bounds everything that is done on it: by our clock, and by the simulated one. A signal ends a wait.
    #[must_use]
    pub fn within(mut self, limit: Duration, simulated: Option<Duration>) -> Self {
        (self.limits, self.deadline) = (Limits::begin(limit), simulated);
        self
    }

    /// The state as text.
    pub fn save(&self) -> String {
        let (store, pushed) = (self.store.clone(), self.registry.pushed.clone());
        let saved = Saved { schema: SCHEMA.to_owned(), store, pushed, pending: self.pending.clone() };
        // Maps have text keys and numbers are finite: nothing can refuse.
        serde_json::to_string_pretty(&saved).unwrap_or_default() + "\n"
    }

    /// What is in registries, to be changed as somebody's push would.
    pub fn registry(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// The objects.
    pub fn store(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Keeps what happens from now on for [`Simulation::events`].
    pub fn keep_events(&mut self) {
        self.store.keep_events();
    }

    /// What happened since the last call, or since [`Simulation::keep_events`].
    pub fn events(&mut self) -> Vec<Event> {
        self.store.take_events()
    }

    /// Lets time pass up to the next change, at most until `deadline`; says whether there was one.
    pub fn step(&mut self, deadline: Duration) -> bool {
        let now = self.store.now();
        let due =
            rules::due(&rules::View { store: &self.store, served: &self.served, registry: &self.registry });
        self.pending.retain(|name, _| due.iter().any(|change| change.name == *name));
        for change in &due {
            self.pending.entry(change.name.clone()).or_insert(now);
        }
        // The earliest; of several the first that the rules named.
        let next = due.into_iter().map(|change| (self.pending[&change.name] + change.delay, change));
        let next = next.reduce(|first, other| if other.0 < first.0 { other } else { first });
        match next {
            Some((at, change)) if at <= deadline => {
                self.store.set_now(now.max(at));
                self.pending.remove(&change.name);
                for write in change.writes {
                    self.apply(write);
                }
                true
            }
            _ => {
                self.store.set_now(now.max(deadline));
                false
            }
        }
    }

    /// Moves the clock to the moment at which OLM stops retrying the steps of an InstallPlan.
    pub fn give_up_plans(&mut self) {
        let is_retried = |plan: &Value| {
            let message = plan["status"]["message"].as_str().unwrap_or_default();
            plan["status"]["phase"] == "Installing" && message.starts_with(rules::RETRYING)
        };
        if self.store.list(&known::INSTALL_PLAN, None).any(is_retried) {
            self.run_until(self.store.now() + Duration::from_millis(rules::RETRIED_MILLIS));
        }
    }

    /// Lets time pass until a moment.
    pub fn run_until(&mut self, deadline: Duration) {
        while self.step(deadline) {}
    }

    /// The CRD of a kind, if there is one.
    fn crd_of(&self, resource: &Resource) -> Option<&Value> {
        self.store.get(&Key::new(&known::CRD, "", &resource.full_name()))
    }

    /// Refuses a custom resource that does not fit the schema of its CRD, as an API server does.
    fn admit(&self, resource: &Resource, object: &Value) -> Result<(), ClusterError> {
        let crd = self.crd_of(resource);
        let Some(schema) = crd.and_then(|crd| schema::schema_of(crd, &resource.version)) else {
            return Ok(());
        };
        let faults = schema::judge(schema, object).faults;
        if faults.is_empty() {
            return Ok(());
        }
        Err(ClusterError::Refused { key: Key::of(object), message: faults.join("; ") })
    }

    /// An object without the fields that its CRD does not have. What a webhook would make of it at another version is not known here.
    fn pruned(&self, resource: &Resource, mut object: Value) -> Value {
        let Some(crd) = self.crd_of(resource) else { return object };
        let by_webhook = crd.pointer("/spec/conversion/strategy") == Some(&Value::from("Webhook"));
        if by_webhook && object["apiVersion"] != resource.api_version() {
            return object;
        }
        if let Some(schema) = schema::schema_of(crd, &resource.version) {
            schema::prune(schema, &mut object, true);
        }
        object
    }

    fn apply(&mut self, write: Write) {
        // Rules read what they change from this very store, so a write that is refused is one that another rule's write
        // has overtaken; it will be due again if it still is.
        let _ = match write {
            Write::Create(object) => self.store.create(object).map(drop),
            Write::Patch { key, patch, .. } => self.store.patch(&key, &patch).map(drop),
            Write::Delete(key) => {
                self.store.delete(&key);
                Ok(())
            }
            Write::Serve { key, source } => {
                if let Some(offer) = self.registry.catalogs.get(&source) {
                    self.served.insert(key, Served { source, offer: Arc::clone(offer) });
                }
                Ok(())
            }
        };
    }
}

impl Cluster for Simulation {
    fn context(&self) -> &str {
        &self.context
    }

    fn list(&mut self, resource: &Resource, namespace: Option<&str>) -> Result<Vec<Value>, ClusterError> {
        let found = self.store.list(resource, namespace).cloned();
        Ok(found.map(|object| self.pruned(resource, object)).collect())
    }

    fn get(
        &mut self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let found = self.store.get(&Key::new(resource, namespace, name)).cloned();
        Ok(found.map(|object| self.pruned(resource, object)))
    }

    fn create(&mut self, resource: &Resource, object: &Value) -> Result<Value, ClusterError> {
        self.admit(resource, object)?;
        self.store.create(self.pruned(resource, object.clone()))
    }

    fn patch(&mut self, _: &Resource, key: &Key, patch: &Value) -> Result<Value, ClusterError> {
        if let Some(live) = self.store.get(key) {
            let mut after = live.clone();
            merge(&mut after, patch);
            if let Some(changed) = immutable::changed(live, &after) {
                let message =
                    format!("{}: Invalid value: {:?}: field is immutable", changed.field, changed.new);
                return Err(ClusterError::Refused { key: key.clone(), message });
            }
        }
        self.store.patch(key, patch)
    }

    fn delete(&mut self, _: &Resource, key: &Key) -> Result<(), ClusterError> {
        self.store.delete(key);
        Ok(())
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, ClusterError> {
        match self.limits.check() {
            Ok(()) => {}
            Err(Over::Interrupted) => return Err(ClusterError::Interrupted),
            Err(Over::TimedOut(limit)) => {
                return Err(ClusterError::TimedOut {
                    server: String::new(),
                    limit,
                    doing: "simulate OLM".to_owned(),
                    is_answering: true,
                    last: Some(Said(format!("the simulated clock is at {} s", self.now().as_secs()))),
                });
            }
        }
        let deadline = self.store.now() + timeout;
        Ok(self.step(deadline))
    }

    fn now(&self) -> Duration {
        self.store.now()
    }

    fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    fn begin_cleanup(&mut self, limit: Duration) {
        self.deadline = self.deadline.map(|_| self.now() + limit);
        self.limits = Limits::begin(limit).ignoring_signals();
    }

    fn has_pods(&self) -> bool {
        self.store.list(&known::POD, None).next().is_some()
    }

    fn time_of_day(&self) -> i64 {
        self.store.time_of_day()
    }

    fn kubernetes_version(&mut self) -> Option<Version> {
        Some(rules::KUBERNETES)
    }
}
