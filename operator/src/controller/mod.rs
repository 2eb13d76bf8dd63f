//! The controller: observe, plan, act, update the status.
//!
//! One queue has every RedisCluster about which something changed, whichever watched object it was. If that is one whose slots
//! are migrating, the migration stops after the current batch of keys, so that repairs do not wait. Start at
//! `reconcile`, and go on in `reconciler.rs`.

pub mod cache;
pub mod children;
mod claims;
pub mod creation;
pub mod downgrade;
mod error;
pub mod exporter;
mod finalize;
pub mod hibernate;
pub mod intent;
mod known;
pub mod live;
pub mod memory;
pub mod names;
pub mod notices;
pub mod outdated;
pub mod outsiders;
pub mod packed;
pub mod passwords;
mod preconditions;
pub mod problem;
pub mod promotions;
mod reconciler;
mod scripts;
pub mod status;
pub mod tls;
mod trouble;
mod unrest;
pub mod upgradeable;
pub mod users;
pub mod volumes;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{
        Controller,
        controller::{Action, Config, Error as ControllerError},
        events::{Event, Recorder},
    },
};
use operator_lease::Leadership;
use operator_process::{Stop, backoff::Backoff};
use tracing::{Instrument, debug, error, info_span, warn};

pub use self::error::ReconcileError;
use self::{
    cache::{Caches, Key, key},
    children::Defaults,
    creation::NotCreated,
    error::call,
    notices::Notice,
    outsiders::Outsiders,
    passwords::Credentials,
    promotions::Promotions,
    reconciler::Reconciler,
    tls::Loads,
    unrest::Unrest,
    upgradeable::{Upgradeable, Work},
    users::Users,
};
use crate::{
    crd::{RedisCluster, v1::RedisClusterStatus},
    metrics::Metrics,
    plan::{Action as PlanAction, Copies, NodeId, Plan},
    server::{act::ActError, tls::Trust},
    telemetry::chain,
};

/// What every reconcile needs.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// The namespace of this installation of the operator.
    pub installation: String,
    /// Whether this replica may act.
    pub leadership: Leadership,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Settings for every cluster.
    pub defaults: Defaults,
    /// The port of Redis.
    pub port: u16,
    /// Events.
    pub recorder: Recorder,
    /// Whether OLM may upgrade.
    pub upgradeable: Upgradeable,
}

/// One namespace, or all.
pub struct Scope {
    context: Arc<Context>,
    caches: Arc<Caches>,
    objects: Mutex<HashMap<Key, Arc<Object>>>,
    /// The zones of Kubernetes nodes, and when they were read.
    zones: Mutex<HashMap<String, (Instant, Option<String>)>>,
}

/// In-memory state of a cluster. A new leader starts without it.
#[derive(Default)]
struct Object {
    /// Locked by its reconcile; there is one at a time.
    memory: tokio::sync::Mutex<Memory>,
    backoff: Backoff,
}

#[derive(Default)]
struct Memory {
    /// The last status written: fresher than the cache.
    status: Option<RedisClusterStatus>,
    written: Option<Instant>,
    /// Since when clients cannot write, because all pods are to stop.
    held: Option<Instant>,
    /// Since when that has been so, over all looks.
    holding: Option<Instant>,
    /// When clients could write again because it took too long.
    let_go: Option<Instant>,
    /// The last passwords that a Secret had.
    credentials: Option<Credentials>,
    /// Since when the majority of the primaries has been missing.
    quorum_lost: Option<Instant>,
    /// Since when Redis should have elected a replica.
    electing: Option<Instant>,
    /// When slots were moved the last time, or this was first asked.
    moved: Option<Instant>,
    /// Since when a node has responded that is no member.
    outside: Option<Instant>,
    outsiders: Outsiders,
    /// Since when a pod of the StatefulSet has not existed.
    pod_missing: Option<Instant>,
    /// When Events were last read, and what they say of that pod.
    not_created: Option<(Instant, Option<NotCreated>)>,
    /// What was known of replicas when their primaries were last observed.
    copies: Option<Copies>,
    /// When replicas became primaries.
    promotions: Option<Promotions>,
    /// When pods last came, went or were not ready.
    unrest: Unrest,
    /// The runs of redis-server that have taken the directives with this hash.
    configured: (String, BTreeSet<String>),
    /// The CAs that the Secret of `spec.tls` last had.
    trust: Option<Trust>,
    /// The nodes that have loaded its certificate.
    loads: Loads,
    /// The users that nodes should have.
    users: Users,
    /// Why the last migration skipped slots.
    skipped: Option<String>,
    /// The slots that it left open when it was interrupted.
    left_open: BTreeSet<u16>,
    /// Nodes that the operator has reset, and that still are in the status.
    reset: BTreeSet<NodeId>,
    /// Whether the Event about another installation that manages this cluster was published.
    told_of_other: bool,
}

impl Memory {
    /// Remembers which nodes a plan resets, for as long as the status has them.
    fn remember_resets(&mut self, old: &RedisClusterStatus, plan: &Plan) {
        self.reset.extend(plan.actions.iter().filter_map(|action| match action {
            PlanAction::Reset { node } => Some(node.id),
            _ => None,
        }));
        let listed = old.members.iter().filter_map(|member| member.node_id.as_deref()?.parse().ok());
        let listed: BTreeSet<NodeId> = listed.collect();
        self.reset.retain(|id| listed.contains(id));
    }
}

/// What is known of the processes on a Kubernetes node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostState {
    /// It was deleted, or its administrator has marked it as out of service: nothing runs there.
    Gone,
    /// Its kubelet reports.
    Responds,
    /// Its kubelet does not report: processes may run, and serve those who reach them.
    Unknown,
}

/// The taint with which administrators confirm that a Kubernetes node is shut down.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

impl HostState {
    fn of(node: Option<&Node>) -> Self {
        let Some(node) = node else { return Self::Gone };
        let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        if taints.into_iter().any(|taint| taint.key == OUT_OF_SERVICE) {
            return Self::Gone;
        }
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready");
        if ready.is_some_and(|ready| ready.status != "Unknown") { Self::Responds } else { Self::Unknown }
    }
}

/// The label of a Kubernetes node that names its zone.
const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
/// How long the zone of a Kubernetes node is taken for granted.
const ZONE_AGE: Duration = Duration::from_secs(600);

/// For how long `holds` has been true, given when that was first observed.
fn lasts(since: &mut Option<Instant>, holds: bool) -> Duration {
    if !holds {
        *since = None;
        return Duration::ZERO;
    }
    since.get_or_insert_with(Instant::now).elapsed()
}

impl Scope {
    /// A scope over watched objects.
    pub fn new(context: Arc<Context>, caches: Arc<Caches>) -> Arc<Self> {
        Arc::new(Self { context, caches, objects: Mutex::default(), zones: Mutex::default() })
    }

    /// Reconciles clusters until it is to stop and running reconciles have ended.
    pub async fn run(self: Arc<Self>, concurrency: u16, stop: Stop) {
        let caches = self.caches.clone();
        for cluster in caches.clusters.state() {
            caches.queue.add(&key(&*cluster));
        }
        Controller::for_stream(stream::pending(), caches.clusters.clone())
            .with_config(Config::default().concurrency(concurrency))
            .reconcile_on(caches.queue.stream())
            .graceful_shutdown_on(stop.stopped())
            .run(reconcile, retry, self)
            .for_each(|result| {
                match result {
                    Err(ControllerError::ObjectNotFound(gone)) => {
                        let gone = (gone.namespace.clone().unwrap_or_default(), gone.name.clone());
                        caches.queue.taken(&gone);
                    }
                    // Logged where it happened.
                    Err(ControllerError::ReconcilerFailed(..)) | Ok(_) => {}
                    Err(failed) => error!(error = chain(&failed), "queue"),
                }
                std::future::ready(())
            })
            .await;
    }

    fn object(&self, key: &Key) -> Arc<Object> {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.entry(key.clone()).or_default().clone()
    }

    fn forget(&self, key: &Key) {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        self.context.metrics.cluster_gone(&key.0, &key.1, &status::CONDITIONS);
        self.context.upgradeable.see(key, Work::Rests);
    }

    /// The zone of a Kubernetes node, from its label. Without one, or without the right to read nodes, placement does without.
    async fn zone(&self, node: Option<&str>) -> Option<String> {
        let node = node?;
        let known = |zones: &HashMap<String, (Instant, Option<String>)>| {
            zones.get(node).filter(|(read, _)| read.elapsed() < ZONE_AGE).map(|(_, zone)| zone.clone())
        };
        let zones = || self.zones.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = known(&zones()) {
            return zone;
        }
        let api: Api<Node> = Api::all(self.context.client.clone());
        let found = call("get", "Node", api.get_metadata_opt(node), &self.context.leadership).await;
        let found = found.inspect_err(|error| debug!(node, error = chain(error), "no zone"));
        let zone = found.ok().flatten().and_then(|found| found.labels().get(ZONE_LABEL).cloned());
        zones().insert(node.to_owned(), (Instant::now(), zone.clone()));
        zone
    }

    /// Whether the processes on a Kubernetes node may run. Without the right to read nodes, they may. A pod without a node has none.
    async fn host_state(&self, host: Option<&str>) -> HostState {
        let Some(host) = host else { return HostState::Gone };
        let api: Api<Node> = Api::all(self.context.client.clone());
        match call("get", "Node", api.get_opt(host), &self.context.leadership).await {
            Ok(found) => HostState::of(found.as_ref()),
            Err(error) => {
                debug!(node = host, error = chain(&error), "cannot read the node");
                HostState::Unknown
            }
        }
    }

    fn api<K>(&self, key: &Key) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.context.client.clone(), &key.0)
    }

    async fn publish(&self, cluster: &RedisCluster, notice: Notice) {
        let event = Event {
            type_: notice.event_type(),
            reason: notice.reason.into(),
            // The API server limits notes to 1 KiB.
            note: Some(notice.note.chars().take(900).collect()),
            // Events that are equal but for their note are merged, so the note is part of the action.
            action: notice.note.chars().take(100).collect(),
            secondary: None,
        };
        self.context.metrics.api_write("Event");
        if let Err(error) = self.context.recorder.publish(&event, &cluster.object_ref(&())).await {
            warn!(reason = notice.reason, error = chain(&error), "could not publish an event");
        }
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Reconciles one cluster. Every call starts by observing the cluster, whatever an earlier call was doing.
async fn reconcile(cluster: Arc<RedisCluster>, scope: Arc<Scope>) -> Result<Action, ReconcileError> {
    let key = key(&*cluster);
    scope.caches.queue.taken(&key);
    if !scope.context.leadership.leads() {
        return Ok(Action::await_change());
    }
    let object = scope.object(&key);
    let mut memory = object.memory.lock().await;
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let span = info_span!("reconcile", namespace = key.0, name = key.1, id);
    let started = Instant::now();
    scope.context.metrics.reconcile_started();
    let reconciler = Reconciler { scope: &scope, cluster: &cluster, key: &key };
    let result = async {
        let result = reconciler.reconcile(&mut memory).await;
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &result {
            Ok(_) => debug!(millis, "done"),
            // The object has changed since it was read: the next reconcile sees it, a moment later.
            Err(error) if error.is_conflict() => debug!(millis, error = chain(error), "conflict"),
            Err(error) => {
                let class = error.class();
                warn!(millis, class, error = chain(error), "failed");
            }
        }
        result
    }
    .instrument(span)
    .await;
    scope
        .context
        .metrics
        .reconcile_ended(started.elapsed(), result.as_ref().err().map(ReconcileError::class));
    if result.is_ok() {
        object.backoff.clear();
    }
    result
}

/// When to retry after an error.
fn retry(cluster: Arc<RedisCluster>, error: &ReconcileError, scope: Arc<Scope>) -> Action {
    if matches!(error, ReconcileError::Act(ActError::NotLeading)) {
        return Action::await_change();
    }
    Action::requeue(scope.object(&key(&*cluster)).backoff.failed(error.longest_wait()))
}
