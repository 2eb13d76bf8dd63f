//! The controllers: look, plan, act, and say how it is.
//!
//! Two controllers look after every RedisCluster. Topology makes its objects and forms, scales and shrinks it; health
//! repairs. Each has a queue and workers of its own, so that repairs do not wait behind growth; a lock for each
//! cluster keeps them from working on the same one at once, and a slot move makes way for a repair. Start at
//! `reconcile`, and go on in `turn.rs`.

pub mod cache;
pub mod children;
mod error;
mod finalize;
pub mod problem;
pub mod status;
mod turn;
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
use operator_process::backoff::Backoff;
use tracing::{Instrument, debug, error, info_span, warn};

pub use self::error::ReconcileError;
use self::{
    cache::{Caches, Key, key},
    children::Defaults,
    status::News,
    turn::Turn,
    upgradeable::Upgradeable,
};
use crate::{
    crd::{RedisCluster, v1::RedisClusterStatus},
    metrics::Metrics,
    plan::Lane,
    server::{Password, act::ActError},
    telemetry::chain,
};

/// What all controllers share.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// The namespace of this installation of the operator.
    pub installation: String,
    /// Whether this replica may act.
    pub leadership: Leadership,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Settings for every cluster.
    pub defaults: Defaults,
    /// Where Redis listens.
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

/// What is remembered of a cluster: nothing that could not be found out again.
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
    /// Why slots that are to be moved stay where they are, as of the last move.
    skipped: Option<String>,
    /// The user was told that another installation of the operator looks after it.
    told_of_other: bool,
}

/// For how long something has been so, by when it was first seen.
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
    lane: Lane,
}

impl Scope {
    /// A scope over what is watched.
    pub fn new(context: Arc<Context>, caches: Arc<Caches>) -> Arc<Self> {
        Arc::new(Self { context, caches, objects: Mutex::default() })
    }

    /// Runs both controllers until `stop` resolves and what was begun is done.
    pub async fn run(self: Arc<Self>, concurrency: u16, stop: tokio::sync::watch::Receiver<bool>) {
        for cluster in self.caches.clusters.state() {
            self.caches.topology.add(&key(&*cluster));
            self.caches.health.add(&key(&*cluster));
        }
        tokio::join!(
            self.clone().control(Lane::Topology, concurrency, stop.clone()),
            self.clone().control(Lane::Health, concurrency, stop),
        );
    }

    async fn control(
        self: Arc<Self>,
        lane: Lane,
        concurrency: u16,
        mut stop: tokio::sync::watch::Receiver<bool>,
    ) {
        let worker = Arc::new(Worker { scope: self.clone(), lane });
        Controller::for_stream(stream::pending(), self.caches.clusters.clone())
            .with_config(Config::default().concurrency(concurrency))
            .reconcile_on(self.caches.queue(lane).stream())
            .graceful_shutdown_on(async move {
                // Whoever could say stop is gone: then it is time as well.
                let _ = stop.wait_for(|stop| *stop).await;
            })
            .run(reconcile, retry, worker)
            .for_each(|result| {
                match result {
                    Err(ControllerError::ObjectNotFound(gone)) => {
                        let gone = (gone.namespace.clone().unwrap_or_default(), gone.name.clone());
                        self.caches.queue(lane).taken(&gone);
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

    async fn publish(&self, cluster: &RedisCluster, news: News) {
        let event = Event {
            type_: news.event_type(),
            reason: news.reason.into(),
            // Events may have a kilobyte.
            note: Some(news.note.chars().take(900).collect()),
            // Equal events are merged and keep the first note, so what differs is said here as well.
            action: news.note.chars().take(100).collect(),
            secondary: None,
        };
        self.context.metrics.api_write("Event");
        if let Err(error) = self.context.recorder.publish(&event, &cluster.object_ref(&())).await {
            warn!(reason = news.reason, error = chain(&error), "could not publish an event");
        }
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Looks after one cluster. Called again and again; whatever it was in the middle of, it begins with looking.
async fn reconcile(cluster: Arc<RedisCluster>, worker: Arc<Worker>) -> Result<Action, ReconcileError> {
    let (scope, lane) = (&worker.scope, worker.lane);
    let key = key(&*cluster);
    scope.caches.queue(lane).taken(&key);
    if !scope.context.leadership.leads() {
        return Ok(Action::await_change());
    }
    let object = scope.object(&key);
    if lane == Lane::Health {
        object.repair_waits.store(true, Ordering::Relaxed);
    }
    let mut memory = object.memory.lock().await;
    if lane == Lane::Health {
        object.repair_waits.store(false, Ordering::Relaxed);
    }
    // The queue may have held it for a while.
    let cluster = Caches::child(&scope.caches.clusters, &key, &key.1).unwrap_or(cluster);

    let controller = if lane == Lane::Health { "health" } else { "topology" };
    let span = info_span!(
        "reconcile",
        controller,
        namespace = key.0,
        name = key.1,
        id = NEXT_ID.fetch_add(1, Ordering::Relaxed)
    );
    let started = Instant::now();
    scope.context.metrics.reconcile_started(lane);
    let turn = Turn { scope, lane, cluster: &cluster, key: &key, object: &object };
    let result = async {
        let result = turn.take(&mut memory).await;
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
        lane,
        started.elapsed(),
        result.as_ref().err().map(ReconcileError::class),
    );
    if result.is_ok() {
        turn.backoff().clear();
    }
    result
}

/// What is tried again, and when.
fn retry(cluster: Arc<RedisCluster>, error: &ReconcileError, worker: Arc<Worker>) -> Action {
    if matches!(error, ReconcileError::Act(ActError::NotLeading)) {
        return Action::await_change();
    }
    let object = worker.scope.object(&key(&*cluster));
    let backoff = if worker.lane == Lane::Health { &object.health } else { &object.topology };
    Action::requeue(backoff.failed(error.longest_wait()))
}
