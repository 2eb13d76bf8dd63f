//! Caches of the watched objects: the RedisClusters of one or all namespaces, and everything they own.
//!
//! Every replica of the operator keeps them up to date, so that a new leader can start at once. Each kind is watched once:
//! its stream fills the cache and tells the queue. The handles of kube's `store_shared` do not tell of deleted objects, and hold
//! up the watch where nobody reads them, as in a replica that does not lead.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Debug,
    future::Future,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{Stream, StreamExt, stream};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::StatefulSet,
        core::v1::{
            ConfigMap, Container, PersistentVolumeClaim, Pod, PodSpec, PodStatus, Secret, Service, Volume,
        },
        networking::v1::NetworkPolicy,
        policy::v1::PodDisruptionBudget,
    },
};
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{
        Predicate, WatchStreamExt, predicates,
        reflector::{self, ObjectRef, Store, store::Writer},
        utils::Backoff,
        watcher,
    },
};
use operator_process::backoff::jittered;
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, task::JoinSet};
use tracing::warn;

use super::{
    children::{CONTROL_PLANE, CONTROL_PLANE_LABEL, INSTANCE_LABEL, PASSWORD_FILES},
    intent::INTENT,
    packed::Packed,
};
use crate::{crd::RedisCluster, metrics::Metrics, telemetry::chain};

/// A RedisCluster by namespace and name.
pub type Key = (String, String);

/// The key of an object.
pub fn key(object: &impl ResourceExt) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// Clusters that wait to be reconciled. A cluster is queued at most once.
#[derive(Debug)]
pub struct Queue {
    metrics: Arc<Metrics>,
    waiting: Mutex<BTreeSet<Key>>,
    sender: mpsc::UnboundedSender<Key>,
    receiver: Mutex<Option<mpsc::UnboundedReceiver<Key>>>,
}

impl Queue {
    fn new(metrics: Arc<Metrics>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { metrics, waiting: Mutex::default(), sender, receiver: Mutex::new(Some(receiver)) }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeSet<Key>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a cluster.
    pub fn add(&self, key: &Key) {
        let mut waiting = self.waiting();
        if waiting.insert(key.clone()) {
            // The receiver lives as long as the process.
            let _ = self.sender.send(key.clone());
        }
        self.metrics.queue_depth(waiting.len());
    }

    /// Marks a cluster as no longer waiting.
    pub fn taken(&self, key: &Key) {
        let mut waiting = self.waiting();
        waiting.remove(key);
        self.metrics.queue_depth(waiting.len());
    }

    /// Whether a cluster waits: something about it changed since its last reconcile began.
    pub fn contains(&self, key: &Key) -> bool {
        self.waiting().contains(key)
    }

    /// The queued clusters. There is one stream; further ones are empty.
    pub fn stream(&self) -> impl Stream<Item = ObjectRef<RedisCluster>> + Send + 'static {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        stream::unfold(receiver, |receiver| async move {
            let mut receiver = receiver?;
            let (namespace, name) = receiver.recv().await?;
            Some((ObjectRef::new(&name).within(&namespace), Some(receiver)))
        })
    }
}

/// Everything of one or all namespaces.
#[derive(Debug)]
pub struct Caches {
    /// The clusters.
    pub clusters: Store<RedisCluster>,
    /// Their pods.
    pub pods: Store<Packed<Pod>>,
    /// Their StatefulSets.
    pub stateful_sets: Store<Packed<StatefulSet>>,
    /// Their Services.
    pub services: Store<Packed<Service>>,
    /// Their ConfigMaps.
    pub config_maps: Store<Packed<ConfigMap>>,
    /// The Secrets that the operator made.
    pub secrets: Store<Packed<Secret>>,
    /// Their PodDisruptionBudgets.
    pub budgets: Store<Packed<PodDisruptionBudget>>,
    /// Their NetworkPolicies.
    pub policies: Store<Packed<NetworkPolicy>>,
    /// The claims of their volumes.
    pub claims: Store<PersistentVolumeClaim>,
    /// The clusters about which something changed.
    pub queue: Queue,
}

impl Caches {
    /// Starts the watches, as tasks of `tasks`.
    pub fn start(
        client: &Client,
        namespace: Option<&str>,
        metrics: &Arc<Metrics>,
        tasks: &mut JoinSet<()>,
    ) -> Arc<Self> {
        let (clusters, clusters_writer) = reflector::store();
        let (pods, pods_writer) = reflector::store();
        let (stateful_sets, sets_writer) = reflector::store();
        let (services, services_writer) = reflector::store();
        let (config_maps, maps_writer) = reflector::store();
        let (secrets, secrets_writer) = reflector::store();
        let (budgets, budgets_writer) = reflector::store();
        let (policies, policies_writer) = reflector::store();
        let (claims, claims_writer) = reflector::store();
        let caches = Arc::new(Self {
            clusters,
            pods,
            stateful_sets,
            services,
            config_maps,
            secrets,
            budgets,
            policies,
            claims,
            queue: Queue::new(metrics.clone()),
        });
        tasks.spawn(watch_clusters(api(client, namespace), clusters_writer, caches.clone()));
        tasks.spawn(watch_children(api(client, namespace), pods_writer, &caches, |pod: &mut Packed<Pod>| {
            pod.change(prune_pod);
        }));
        tasks.spawn(watch_children(api(client, namespace), sets_writer, &caches, prune));
        tasks.spawn(watch_children(api(client, namespace), services_writer, &caches, prune));
        tasks.spawn(watch_children(api(client, namespace), maps_writer, &caches, prune));
        tasks.spawn(watch_children(api(client, namespace), secrets_writer, &caches, prune_secret));
        tasks.spawn(watch_children(api(client, namespace), budgets_writer, &caches, prune));
        tasks.spawn(watch_children(api(client, namespace), policies_writer, &caches, prune));
        tasks.spawn(watch_children(api(client, namespace), claims_writer, &caches, prune));
        caches
    }

    /// Returns once every cache is filled.
    pub async fn synced(&self) {
        // The writers live as long as the process.
        let _ = tokio::join!(
            self.clusters.wait_until_ready(),
            self.pods.wait_until_ready(),
            self.stateful_sets.wait_until_ready(),
            self.services.wait_until_ready(),
            self.config_maps.wait_until_ready(),
            self.secrets.wait_until_ready(),
            self.budgets.wait_until_ready(),
            self.policies.wait_until_ready(),
            self.claims.wait_until_ready(),
        );
    }

    /// A child of a cluster, by its name.
    pub fn child<K>(store: &Store<Packed<K>>, key: &Key, name: &str) -> Option<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
    {
        store.get(&ObjectRef::new(name).within(&key.0))?.unpack()
    }
}

fn api<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Queues a cluster when its spec, finalizers or annotations change or it is deleted, not when its status changes.
fn watch_clusters(
    api: Api<RedisCluster>,
    writer: Writer<RedisCluster>,
    caches: Arc<Caches>,
) -> impl Future<Output = ()> {
    let changes = predicates::generation.combine(predicates::finalizers).combine(predicates::annotations);
    let touched = watcher(api, watcher::Config::default())
        .backoff(WatchBackoff::default())
        .modify(|cluster| cluster.managed_fields_mut().clear())
        .reflect(writer)
        .touched_objects()
        .predicate_filter(changes, predicates_config());
    touched.for_each(move |cluster| {
        match cluster {
            Ok(cluster) => caches.queue.add(&key(&cluster)),
            Err(error) => warn!(error = chain(&error), "watching RedisClusters"),
        }
        std::future::ready(())
    })
}

/// When a failed watch starts again: after 1, 2, 4 s, then every 5 s. With kube's default of up to 30 s, nothing would be
/// reconciled for that long after the API server is back.
#[derive(Debug, Default)]
struct WatchBackoff {
    failures: u32,
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let wait = Duration::from_secs(2_u64.pow(self.failures).min(5));
        self.failures = (self.failures + 1).min(3);
        Some(jittered(wait))
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

fn predicates_config() -> kube::runtime::PredicateConfig {
    Default::default()
}

/// Drops what nobody asks for, to save memory.
fn prune(child: &mut impl ResourceExt) {
    child.managed_fields_mut().clear();
}

/// Keeps when a Secret was written.
fn prune_secret(secret: &mut impl ResourceExt) {
    for entry in secret.managed_fields_mut() {
        entry.fields_v1 = None;
    }
}

/// Keeps only the fields of a pod that are used, to save memory.
pub(super) fn prune_pod(pod: &mut Pod) {
    prune(pod);
    // Without the hash, the pod itself says whether it is outdated.
    let hashed = pod.annotations().contains_key(INTENT);
    if let Some(spec) = &mut pod.spec {
        let prune = |container: Container| Container {
            name: container.name,
            image: container.image,
            env: container.env.filter(|_| !hashed),
            resources: container.resources.filter(|_| !hashed),
            ..Container::default()
        };
        *spec = PodSpec {
            containers: std::mem::take(&mut spec.containers).into_iter().map(prune).collect(),
            node_name: spec.node_name.take(),
            readiness_gates: spec.readiness_gates.take(),
            volumes: spec.volumes.take().map(|volumes| {
                let files = volumes.into_iter().filter(|volume| volume.name == PASSWORD_FILES);
                files.map(|volume| Volume { name: volume.name, ..Volume::default() }).collect()
            }),
            ..PodSpec::default()
        };
    }
    if let Some(status) = &mut pod.status {
        *status = PodStatus {
            conditions: status.conditions.take(),
            container_statuses: status.container_statuses.take(),
            pod_ip: status.pod_ip.take(),
            ..PodStatus::default()
        };
    }
}

/// Tells changed children from those that a list only repeats.
#[derive(Debug, Default)]
struct Known {
    /// The version of each child that was seen, and its cluster.
    children: HashMap<Key, (Option<String>, Key)>,
    /// While a list is read: what was known before and was not told again yet.
    untold: HashMap<Key, (Option<String>, Key)>,
    /// While a list is read: the clusters whose children it shows otherwise than they were known.
    changed: BTreeSet<Key>,
}

impl Known {
    /// The clusters that are to be looked at now: after an event the store shows what it told, a list only at its end.
    fn changed_by(&mut self, event: &watcher::Event<impl ResourceExt>) -> BTreeSet<Key> {
        match event {
            // A list that was broken off has told only a part.
            watcher::Event::Init => self.untold.extend(self.children.drain()),
            watcher::Event::InitApply(child) => {
                let (name, seen) = (key(child), (child.resource_version(), cluster_of(child)));
                let known = self.untold.remove(&name);
                if known.as_ref() != Some(&seen) {
                    self.changed.insert(seen.1.clone());
                }
                self.children.insert(name, seen);
            }
            watcher::Event::InitDone => {
                let gone = self.untold.drain().map(|(_, (_, cluster))| cluster);
                self.changed.extend(gone);
                return std::mem::take(&mut self.changed);
            }
            watcher::Event::Apply(child) => {
                self.children.insert(key(child), (child.resource_version(), cluster_of(child)));
                return BTreeSet::from([cluster_of(child)]);
            }
            watcher::Event::Delete(child) => {
                self.children.remove(&key(child));
                return BTreeSet::from([cluster_of(child)]);
            }
        }
        BTreeSet::new()
    }
}

/// The cluster of a child, as its labels say.
fn cluster_of(child: &impl ResourceExt) -> Key {
    let name = child.labels().get(INSTANCE_LABEL).cloned().unwrap_or_default();
    (child.namespace().unwrap_or_default(), name)
}

fn watch_children<K>(
    api: Api<K>,
    writer: Writer<K>,
    caches: &Arc<Caches>,
    prune: fn(&mut K),
) -> impl Future<Output = ()> + use<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + Hash,
{
    let config = watcher::Config::default().labels(&format!("{CONTROL_PLANE_LABEL}={CONTROL_PLANE}"));
    let caches = Arc::clone(caches);
    let mut known = Known::default();
    let events = watcher(api, config)
        .backoff(WatchBackoff::default())
        .modify(move |child| {
            prune(child);
        })
        .reflect(writer);
    events.for_each(move |event| {
        match event {
            Ok(event) => known.changed_by(&event).iter().for_each(|cluster| caches.queue.add(cluster)),
            Err(error) => {
                let kind = K::kind(&());
                warn!(kind = %kind, error = chain(&error), "watching children");
            }
        }
        std::future::ready(())
    })
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};

    use super::*;

    fn child(name: &str, version: &str) -> ConfigMap {
        let labels = std::collections::BTreeMap::from([(INSTANCE_LABEL.to_owned(), name.to_owned())]);
        let mut child = ConfigMap::default();
        child.metadata.namespace = Some("shop".into());
        child.metadata.name = Some(format!("{name}-conf"));
        child.metadata.resource_version = Some(version.into());
        child.metadata.labels = Some(labels);
        child
    }

    /// The names of the clusters that events wake, one word for each event that wakes any.
    fn woken(known: &mut Known, events: Vec<watcher::Event<ConfigMap>>) -> Vec<String> {
        let woken = events.iter().map(|event| known.changed_by(event));
        let woken = woken.filter(|clusters| !clusters.is_empty());
        woken
            .map(|clusters| clusters.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join("+"))
            .collect()
    }

    /// That is what interrupts the migration of slots.
    #[test]
    fn a_change_during_a_reconcile_is_seen_at_once() {
        let (queue, key) = (Queue::new(Arc::default()), ("shop".to_owned(), "a".to_owned()));
        queue.add(&key);
        queue.taken(&key);
        assert!(!queue.contains(&key), "its reconcile began");
        queue.add(&key);
        queue.add(&key);
        assert!(queue.contains(&key));
        let mut queued = Box::pin(queue.stream());
        let next = || queued.next().now_or_never().flatten();
        assert_eq!(std::iter::from_fn(next).count(), 2, "once for each reconcile");
    }

    #[test]
    fn watches_start_again_within_seconds_of_an_api_server_that_was_away() {
        let mut backoff = WatchBackoff::default();
        let seconds: Vec<u64> =
            (0..50).map(|_| backoff.next().unwrap().as_secs_f64().round() as u64).collect();
        assert_eq!(seconds[..3], [1, 2, 4]);
        assert!(seconds[3..].iter().all(|wait| (4..=6).contains(wait)), "{seconds:?}");
        backoff.reset();
        assert!(backoff.next().unwrap() < Duration::from_secs(2));
    }

    #[test]
    fn a_list_wakes_whom_it_brings_news_once_it_is_whole() {
        let mut known = Known::default();
        let first = vec![Init, InitApply(child("a", "1")), InitApply(child("b", "2")), InitDone];
        assert_eq!(woken(&mut known, first), ["a+b"]);
        let same = vec![Init, InitApply(child("a", "1")), InitApply(child("b", "2")), InitDone];
        assert_eq!(woken(&mut known, same), [""; 0]);
        let watched = vec![Apply(child("a", "3")), Apply(child("c", "4")), Delete(child("b", "5"))];
        assert_eq!(woken(&mut known, watched), ["a", "c", "b"]);
        // "c" went while nobody watched, "a" changed, "d" is new; the first attempt broke off.
        let after = vec![
            Init,
            InitApply(child("a", "6")),
            Init,
            InitApply(child("a", "6")),
            InitApply(child("d", "7")),
            InitDone,
        ];
        assert_eq!(woken(&mut known, after), ["a+c+d"]);
        assert_eq!(
            woken(&mut known, vec![Init, InitApply(child("a", "6")), InitApply(child("d", "7")), InitDone]),
            [""; 0]
        );
    }
}
