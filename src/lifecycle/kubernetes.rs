//! A cluster behind a Kubernetes API server.
//!
//! Kinds that the engine looks at in a namespace are watched from the first look on, and read from memory afterwards; all else
//! is asked for. The client is asynchronous and has a runtime of its own, so that nobody else needs to be: a call blocks until
//! it is answered. What may pass by itself (a server that restarts, too many requests) is tried again for a while.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backon::ExponentialBuilder;
use futures_util::StreamExt as _;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Status;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::ResetTimerBackoff;
use kube::runtime::watcher::{self, Event, ExponentialBackoff, watcher};
use kube::{Client, Config};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::api::{Key, Resource};
use super::cluster::{Cluster, ClusterError};
use super::observe;

/// How many objects are asked for at once.
const PAGE: u32 = 500;
/// How long what may pass by itself is tried again.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pauses between two tries begin with this and double.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longer than this no pause gets.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long changes are gathered before they are looked at, so that a burst is one change.
const GATHER: Duration = Duration::from_millis(20);

/// Which cluster is meant.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The file; none for `KUBECONFIG`, then `~/.kube/config`, then the pod's own account.
    pub kubeconfig: Option<PathBuf>,
    /// The context; none for the current one.
    pub context: Option<String>,
}

/// A cluster that cannot be reached, before anything was asked of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The kubeconfig cannot be read, or does not have the context.
    #[error("cannot read the kubeconfig")]
    Config(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No client can be made of it.
    #[error("cannot make a client for the cluster")]
    Client(#[source] kube::Error),
    /// The machine gives us no threads.
    #[error("cannot start the client")]
    Runtime(#[source] std::io::Error),
}

/// A cluster behind an API server.
pub struct Kubernetes {
    context: String,
    client: Client,
    watched: BTreeMap<(String, String), Arc<Mutex<Watched>>>,
    /// Counts changes of what is watched.
    changes: watch::Sender<u64>,
    seen: watch::Receiver<u64>,
    begun: Instant,
    runtime: Runtime,
}

/// The objects of a kind in a namespace, as the watch tells them.
#[derive(Default)]
struct Watched {
    objects: BTreeMap<Key, Value>,
    /// Those of a list that is being told.
    fresh: BTreeMap<Key, Value>,
}

impl Kubernetes {
    /// A client for a cluster; nothing is asked of it yet.
    ///
    /// # Errors
    /// The kubeconfig cannot be used.
    pub fn connect(choice: &Choice) -> Result<Self, ConnectError> {
        // Whoever uses this as a library may have chosen another provider before; that one serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(ConnectError::Runtime)?;
        let config = runtime.block_on(config(choice))?;
        let _inside = runtime.enter();
        let client = Client::try_from(config).map_err(ConnectError::Client)?;
        let (changes, seen) = watch::channel(0);
        drop(_inside);
        Ok(Self {
            context: choice.context.clone().unwrap_or_default(),
            client,
            watched: BTreeMap::new(),
            changes,
            seen,
            begun: Instant::now(),
            runtime,
        })
    }

    /// Merges a patch into the status of an object, which is what OLM does and its users do not.
    ///
    /// # Errors
    /// As [`Cluster::patch`].
    pub fn patch_status(&self, resource: &Resource, key: &Key, patch: &Value) -> Result<(), ClusterError> {
        let api = self.api(resource, Some(&key.namespace));
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let answer = self.ask(|| api.patch_status(&key.name, &parameters, &patch))?;
        answer.map_err(|error| fault(error, "patch", resource, Some(&key.namespace), Some(key))).map(drop)
    }

    fn api(&self, resource: &Resource, namespace: Option<&str>) -> Api<DynamicObject> {
        let kind = ApiResource {
            group: resource.group.clone(),
            version: resource.version.clone(),
            api_version: resource.api_version(),
            kind: resource.kind.clone(),
            plural: resource.plural.clone(),
        };
        match namespace.filter(|namespace| resource.namespaced && !namespace.is_empty()) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind),
            None => Api::all_with(self.client.clone(), &kind),
        }
    }

    /// Waits for an answer, unless somebody presses Ctrl-C; asks again what may pass by itself.
    fn ask<T, F: Future<Output = kube::Result<T>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<kube::Result<T>, ClusterError> {
        self.runtime.block_on(async {
            let answered = async {
                let begun = Instant::now();
                let mut pause = FIRST_PAUSE;
                loop {
                    match call().await {
                        Err(error) if passes(&error) && begun.elapsed() < PATIENCE => {
                            tokio::time::sleep(pause.max(asked_for(&error)).min(PATIENCE)).await;
                            pause = (pause * 2).min(LONGEST_PAUSE);
                        }
                        answer => return answer,
                    }
                }
            };
            tokio::select! {
                answer = answered => Ok(answer),
                pressed = tokio::signal::ctrl_c() => match pressed {
                    Ok(()) => Err(ClusterError::Interrupted),
                    // Without signals nobody can press anything.
                    Err(error) => Err(ClusterError::Unreachable { source: error.into() }),
                },
            }
        })
    }

    fn list_now(&self, resource: &Resource, namespace: Option<&str>) -> Result<Vec<Value>, ClusterError> {
        let api = self.api(resource, namespace);
        let mut found = Vec::new();
        let mut page = ListParams::default().limit(PAGE);
        let begun = Instant::now();
        loop {
            let answer = self.ask(|| api.list(&page))?;
            let list = match answer {
                // What the next page would go on from is no longer known: all of them again.
                Err(kube::Error::Api(status)) if status.code == 410 && begun.elapsed() < PATIENCE => {
                    found.clear();
                    page = ListParams::default().limit(PAGE);
                    continue;
                }
                answer => answer.map_err(|error| fault(error, "list", resource, namespace, None))?,
            };
            found.extend(list.items.into_iter().map(|object| document(object, resource)));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = ListParams::default().limit(PAGE).continue_token(&token),
                None => break,
            }
        }
        found.sort_by_key(Key::of);
        Ok(found)
    }

    /// Begins to watch a kind, with what is there now.
    fn watch(&mut self, resource: &Resource, namespace: &str) -> Result<Arc<Mutex<Watched>>, ClusterError> {
        let name = (resource.full_name(), namespace.to_owned());
        if let Some(watched) = self.watched.get(&name) {
            return Ok(Arc::clone(watched));
        }
        // Asked for once, so that a right that is missing is told rather than tried again for ever.
        let objects = self.list_now(resource, Some(namespace))?;
        let objects = objects.into_iter().map(|object| (Key::of(&object), object)).collect();
        let watched = Arc::new(Mutex::new(Watched { objects, ..Watched::default() }));
        let pauses: ExponentialBackoff = ExponentialBuilder::default()
            .with_min_delay(FIRST_PAUSE)
            .with_max_delay(LONGEST_PAUSE)
            .with_jitter()
            .without_max_times()
            .into();
        let mut events = watcher(self.api(resource, Some(namespace)), watcher::Config::default())
            .backoff(ResetTimerBackoff::new(pauses, PATIENCE))
            .boxed();
        let (shared, changes, kind) = (Arc::clone(&watched), self.changes.clone(), resource.clone());
        self.runtime.spawn(async move {
            while let Some(event) = events.next().await {
                // The watcher starts over by itself after an error.
                if let Ok(event) = event {
                    lock(&shared).apply(event, &kind);
                    changes.send_modify(|count| *count += 1);
                }
            }
        });
        self.watched.insert(name, Arc::clone(&watched));
        Ok(watched)
    }

    /// What was written is seen at once, not only when the watch tells it.
    fn wrote(&self, resource: &Resource, object: &Value) {
        let key = Key::of(object);
        if let Some(watched) = self.watched.get(&(resource.full_name(), key.namespace.clone())) {
            lock(watched).put(key, object.clone());
        }
    }
}

impl Watched {
    fn apply(&mut self, event: Event<DynamicObject>, resource: &Resource) {
        match event {
            Event::Init => self.fresh.clear(),
            Event::InitApply(object) => {
                let object = document(object, resource);
                self.fresh.insert(Key::of(&object), object);
            }
            Event::InitDone => self.objects = std::mem::take(&mut self.fresh),
            Event::Apply(object) => {
                let object = document(object, resource);
                self.put(Key::of(&object), object);
            }
            Event::Delete(object) => {
                self.objects.remove(&Key::of(&document(object, resource)));
            }
        }
    }

    /// Stores an object, unless a newer state of it is there.
    fn put(&mut self, key: Key, object: Value) {
        let version = |object: &Value| {
            object.pointer("/metadata/resourceVersion").and_then(Value::as_str)?.parse::<u64>().ok()
        };
        let older = self.objects.get(&key).is_some_and(|known| version(&object) < version(known));
        if !older {
            self.objects.insert(key, object);
        }
    }
}

fn lock(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    // Objects are put in whole, so a panic elsewhere leaves nothing half made.
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn config(choice: &Choice) -> Result<Config, ConnectError> {
    let failed = |error: kube::config::KubeconfigError| ConnectError::Config(error.into());
    let options = KubeConfigOptions { context: choice.context.clone(), ..KubeConfigOptions::default() };
    match &choice.kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)
        }
        None if choice.context.is_some() => Config::from_kubeconfig(&options).await.map_err(failed),
        None => Config::infer().await.map_err(|error| ConnectError::Config(error.into())),
    }
}

/// An object as the server sends it alone: in lists it leaves kind and version out. Managed fields are left out here.
fn document(mut object: DynamicObject, resource: &Resource) -> Value {
    object.metadata.managed_fields = None;
    object.types =
        Some(kube::core::TypeMeta { api_version: resource.api_version(), kind: resource.kind.clone() });
    // Its keys are text and its numbers finite: nothing can refuse.
    serde_json::to_value(object).unwrap_or_default()
}

/// Whether what went wrong may pass by itself.
fn passes(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 429 | 502..=504),
        kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => true,
        _ => false,
    }
}

/// How long the server asks to be left alone.
fn asked_for(error: &kube::Error) -> Duration {
    let kube::Error::Api(status) = error else { return Duration::ZERO };
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    Duration::from_secs(seconds.into())
}

/// What an error means.
fn fault(
    error: kube::Error,
    verb: &'static str,
    resource: &Resource,
    namespace: Option<&str>,
    key: Option<&Key>,
) -> ClusterError {
    let about = || key.cloned().unwrap_or_else(|| Key::new(resource, namespace.unwrap_or(""), "*"));
    let kube::Error::Api(status) = error else { return ClusterError::Unreachable { source: error.into() } };
    let Status { code, reason, message, .. } = *status;
    match code {
        401 => ClusterError::Unreachable { source: message.into() },
        403 => ClusterError::Forbidden {
            verb,
            resource: resource.full_name(),
            namespace: namespace.filter(|_| resource.namespaced).map(str::to_owned),
        },
        404 if key.is_none() => ClusterError::NotServed { resource: resource.full_name() },
        404 => ClusterError::NotFound { key: about() },
        409 if reason == "AlreadyExists" => ClusterError::Exists { key: about() },
        409 => ClusterError::Conflict { key: about() },
        _ => ClusterError::Refused { key: about(), message },
    }
}

impl Cluster for Kubernetes {
    fn context(&self) -> &str {
        &self.context
    }

    fn list(&mut self, resource: &Resource, namespace: Option<&str>) -> Result<Vec<Value>, ClusterError> {
        match namespace {
            Some(namespace) if observe::kinds().contains(&resource) => {
                let watched = self.watch(resource, namespace)?;
                let found = lock(&watched).objects.values().cloned().collect();
                Ok(found)
            }
            _ => self.list_now(resource, namespace),
        }
    }

    fn get(
        &mut self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let api = self.api(resource, Some(namespace));
        let answer = self.ask(|| api.get_opt(name))?;
        let key = Key::new(resource, namespace, name);
        let found = answer.map_err(|error| fault(error, "get", resource, Some(namespace), Some(&key)))?;
        Ok(found.map(|object| document(object, resource)))
    }

    fn create(&mut self, resource: &Resource, object: &Value) -> Result<Value, ClusterError> {
        let key = Key::of(object);
        let refused =
            |error: serde_json::Error| ClusterError::Refused { key: key.clone(), message: error.to_string() };
        let typed: DynamicObject = serde_json::from_value(object.clone()).map_err(refused)?;
        let api = self.api(resource, Some(&key.namespace));
        let parameters = PostParams::default();
        let answer = self.ask(|| api.create(&parameters, &typed))?;
        let made =
            answer.map_err(|error| fault(error, "create", resource, Some(&key.namespace), Some(&key)))?;
        let made = document(made, resource);
        self.wrote(resource, &made);
        Ok(made)
    }

    fn patch(&mut self, resource: &Resource, key: &Key, patch: &Value) -> Result<Value, ClusterError> {
        let api = self.api(resource, Some(&key.namespace));
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let answer = self.ask(|| api.patch(&key.name, &parameters, &patch))?;
        let changed =
            answer.map_err(|error| fault(error, "patch", resource, Some(&key.namespace), Some(key)))?;
        let changed = document(changed, resource);
        self.wrote(resource, &changed);
        Ok(changed)
    }

    fn delete(&mut self, resource: &Resource, key: &Key) -> Result<(), ClusterError> {
        let api = self.api(resource, Some(&key.namespace));
        let parameters = DeleteParams::background();
        let answer = self.ask(|| api.delete(&key.name, &parameters))?;
        match answer.map_err(|error| fault(error, "delete", resource, Some(&key.namespace), Some(key))) {
            Ok(_) | Err(ClusterError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, ClusterError> {
        let mut seen = self.seen.clone();
        let changed = self.runtime.block_on(async {
            let something = async {
                // The sender lives as long as this cluster.
                let _ = seen.changed().await;
                tokio::time::sleep(GATHER.min(timeout)).await;
            };
            tokio::select! {
                () = something => Ok(true),
                () = tokio::time::sleep(timeout) => Ok(false),
                _ = tokio::signal::ctrl_c() => Err(ClusterError::Interrupted),
            }
        });
        seen.mark_unchanged();
        self.seen = seen;
        changed
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }
}
