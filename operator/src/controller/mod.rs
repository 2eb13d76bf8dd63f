//! The controllers: observe, plan, act, update the status.
//!
//! Two controllers manage every RedisCluster. Topology creates its objects, and forms and scales it; health repairs it.
//! Each has its own queue and workers, so that repairs do not wait for scaling. A lock per cluster keeps them from
//! working on it at once, and a repair interrupts slot migration. Start at
//! `reconcile`, and go on in `reconciler.rs`.

pub mod cache;
pub mod children;
mod error;
mod finalize;
pub mod problem;
mod reconciler;
pub mod status;
pub mod upgradeable;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use kube::{
    Api, Client, Resource,
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
    reconciler::Reconciler,
    status::Notice,
    upgradeable::Upgradeable,
};
use crate::{
    crd::{RedisCluster, v1::RedisClusterStatus},
    metrics::Metrics,
    plan::ControllerKind,
    server::{Password, act::ActError},
    telemetry::chain,
};

/// Shared by all controllers.
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
}

/// In-memory state of a cluster. A new leader starts without it.
#[derive(Default)]
struct Object {
    memory: tokio::sync::Mutex<Memory>,
    health: Backoff,
    topology: Backoff,
    repair_waits: AtomicBool,
}

#[derive(Default)]
struct Memory {
    /// The last status written: fresher than the cache.
    status: Option<RedisClusterStatus>,
    written: Option<Instant>,
    password: Option<Password>,
    /// Since when the majority of the primaries has been missing.
    quorum_lost: Option<Instant>,
    /// Since when Redis should have elected a replica.
    electing: Option<Instant>,
    /// Since when the nodes that leave have owned nothing.
    drained: Option<Instant>,
    /// Why the last migration skipped slots.
    skipped: Option<String>,
    /// Whether the Event about another installation that manages this cluster was published.
    told_of_other: bool,
}

/// For how long `holds` has been true, given when that was first observed.
fn lasts(since: &mut Option<Instant>, holds: bool) -> Duration {
    if !holds {
        *since = None;
        return Duration::ZERO;
    }
    since.get_or_insert_with(Instant::now).elapsed()
}

/// One of the two controllers of a scope.
struct Worker {
    scope: Arc<Scope>,
    controller: ControllerKind,
}

impl Scope {
    /// A scope over watched objects.
    pub fn new(context: Arc<Context>, caches: Arc<Caches>) -> Arc<Self> {
        Arc::new(Self { context, caches, objects: Mutex::default() })
    }

    /// Runs both controllers until they are to stop and running reconciles have ended.
    pub async fn run(self: Arc<Self>, concurrency: u16, stop: Stop) {
        for cluster in self.caches.clusters.state() {
            self.caches.topology.add(&key(&*cluster));
            self.caches.health.add(&key(&*cluster));
        }
        tokio::join!(
            self.clone().control(ControllerKind::Topology, concurrency, stop.clone()),
            self.clone().control(ControllerKind::Health, concurrency, stop),
        );
    }

    async fn control(self: Arc<Self>, controller: ControllerKind, concurrency: u16, stop: Stop) {
        let worker = Arc::new(Worker { scope: self.clone(), controller });
        Controller::for_stream(stream::pending(), self.caches.clusters.clone())
            .with_config(Config::default().concurrency(concurrency))
            .reconcile_on(self.caches.queue(controller).stream())
            .graceful_shutdown_on(stop.stopped())
            .run(reconcile, retry, worker)
            .for_each(|result| {
                match result {
                    Err(ControllerError::ObjectNotFound(gone)) => {
                        let gone = (gone.namespace.clone().unwrap_or_default(), gone.name.clone());
                        self.caches.queue(controller).taken(&gone);
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
        self.context.upgradeable.set(key, false);
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
async fn reconcile(cluster: Arc<RedisCluster>, worker: Arc<Worker>) -> Result<Action, ReconcileError> {
    let (scope, controller) = (&worker.scope, worker.controller);
    let key = key(&*cluster);
    scope.caches.queue(controller).taken(&key);
    if !scope.context.leadership.leads() {
        return Ok(Action::await_change());
    }
    let object = scope.object(&key);
    if controller == ControllerKind::Health {
        object.repair_waits.store(true, Ordering::Relaxed);
    }
    let mut memory = object.memory.lock().await;
    if controller == ControllerKind::Health {
        object.repair_waits.store(false, Ordering::Relaxed);
    }
    // The object may have changed while it was queued.
    let cluster = Caches::child(&scope.caches.clusters, &key, &key.1).unwrap_or(cluster);

    let name = if controller == ControllerKind::Health { "health" } else { "topology" };
    let span = info_span!(
        "reconcile",
        controller = name,
        namespace = key.0,
        name = key.1,
        id = NEXT_ID.fetch_add(1, Ordering::Relaxed)
    );
    let started = Instant::now();
    scope.context.metrics.reconcile_started(controller);
    let reconciler = Reconciler { scope, controller, cluster: &cluster, key: &key, object: &object };
    let result = async {
        let result = reconciler.reconcile(&mut memory).await;
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &result {
            Ok(_) => debug!(millis, "done"),
            Err(error) => {
                let class = error.class();
                warn!(millis, class, error = chain(error), "failed");
            }
        }
        result
    }
    .instrument(span)
    .await;
    scope.context.metrics.reconcile_ended(
        controller,
        started.elapsed(),
        result.as_ref().err().map(ReconcileError::class),
    );
    if result.is_ok() {
        reconciler.backoff().clear();
    }
    result
}

/// When to retry after an error.
fn retry(cluster: Arc<RedisCluster>, error: &ReconcileError, worker: Arc<Worker>) -> Action {
    if matches!(error, ReconcileError::Act(ActError::NotLeading)) {
        return Action::await_change();
    }
    let object = worker.scope.object(&key(&*cluster));
    let backoff = if worker.controller == ControllerKind::Health { &object.health } else { &object.topology };
    Action::requeue(backoff.failed(error.longest_wait()))
}
