//! Registries: images over the network, behind calls that wait.
//!
//! [`Access`] is how registries are reached: credentials, TLS, the cache, patience. One serves for a whole run. The async
//! runtime is started by the first transfer and does not leave this room: [`super::Place::store`] and
//! [`super::Place::load`] are what the rest of the program sees.
//!
//! Start reading in `repository`; `push` and `pull` are the two directions, `http` what both stand on.

mod auth;
mod cache;
mod credentials;
pub(super) mod error;
mod http;
mod lookup;
pub(super) mod pull;
mod pulse;
mod push;
pub(super) mod repository;
mod trust;

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;
use oci_spec::distribution::Reference;
use oci_spec::image::Descriptor;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::blob::{Blob, BlobError};
use super::digest::Digest;
use super::manifest::{ImageError, Root};
use super::progress::{Event, Progress};
use crate::interrupt;

use crate::limits::{Limits, Over};
pub use cache::DEFAULT_LIMIT as DEFAULT_CACHE_LIMIT;
use cache::{Chosen, NotACache};
pub use credentials::{CredentialsError, GivenCredentials, GivenCredentialsError};
pub use error::{Fault, RegistryError};
pub use http::Patience;
use pull::Remote;
pub(super) use push::Pushed;
use repository::Repository;
pub use trust::Untrusted;

/// How registries are reached. The default is what docker and podman do.
#[derive(Debug, Clone)]
pub struct Options {
    /// Credentials that count more than those of any file.
    pub credentials: Vec<GivenCredentials>,
    /// The file with credentials, instead of podman's and docker's.
    pub auth_file: Option<PathBuf>,
    /// Files with certificates, in PEM form, that are trusted besides the system's.
    pub ca_files: Vec<PathBuf>,
    /// Hosts, with or without a port, that are spoken to in plain HTTP.
    pub plain_http: BTreeSet<String>,
    /// Hosts, with or without a port, whose certificates are not checked.
    pub insecure: BTreeSet<String>,
    /// How long all transfers together may take.
    pub timeout: Option<Duration>,
    /// How often and how long to try.
    pub patience: Patience,
    /// How many blobs move at once.
    pub parallel: usize,
    /// Where fetched blobs are kept; the user's cache directory when nothing is given.
    pub cache_dir: Option<PathBuf>,
    /// How many bytes are kept at most; none when 0.
    pub cache_limit: u64,
    /// Whether nothing is written to a registry, only asked.
    pub dry_run: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            credentials: Vec::new(),
            auth_file: None,
            ca_files: Vec::new(),
            plain_http: BTreeSet::new(),
            insecure: BTreeSet::new(),
            timeout: None,
            patience: Patience::default(),
            parallel: 4,
            cache_dir: None,
            cache_limit: DEFAULT_CACHE_LIMIT,
            dry_run: false,
        }
    }
}

/// How registries are reached, with what was learned of them so far. Clones share it.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

struct Inner {
    options: Options,
    limits: Limits,
    progress: Arc<dyn Progress>,
    /// One registry per host and one repository per name: tokens and connections are kept.
    repositories: Mutex<HashMap<(String, String), Arc<Repository>>>,
    registries: Mutex<HashMap<String, Arc<repository::Registry>>>,
    http: OnceLock<Arc<http::Http>>,
    credentials: OnceLock<Arc<credentials::CredentialStore>>,
    cache: OnceLock<Result<cache::Cache, NotACache>>,
    turns: Semaphore,
    runtime: Mutex<Option<Arc<Runtime>>>,
}

impl Default for Access {
    fn default() -> Self {
        Self::new(Options::default(), Arc::new(()))
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Access").field(&self.0.options).finish()
    }
}

impl Access {
    /// Access with these options. Nothing is read or contacted before it is needed.
    pub fn new(options: Options, progress: Arc<dyn Progress>) -> Self {
        let turns = Semaphore::new(at_once(&options));
        let limits = Limits::begin(options.timeout);
        Self(Arc::new(Inner {
            options,
            limits,
            progress,
            repositories: Mutex::default(),
            registries: Mutex::default(),
            http: OnceLock::new(),
            credentials: OnceLock::new(),
            cache: OnceLock::new(),
            turns,
            runtime: Mutex::default(),
        }))
    }

    /// The same access with other patience, for questions that may stay unanswered.
    #[must_use]
    pub fn with_patience(&self, patience: Patience) -> Self {
        Self::new(Options { patience, ..self.0.options.clone() }, Arc::clone(&self.0.progress))
    }

    /// Whether nothing is written.
    pub fn is_dry_run(&self) -> bool {
        self.0.options.dry_run
    }

    /// Reads an image's documents; its layers are fetched when they are needed.
    pub(super) fn load(&self, reference: &Reference) -> Result<Root, LoadError> {
        self.run(async { Ok(self.fetch_root(reference).await) })?
    }

    async fn fetch_root(&self, reference: &Reference) -> Result<Root, LoadError> {
        let repository = self.repository(reference);
        let top = repository.manifest(name_of(reference)).await?;
        self.root_of(&repository, top).await
    }

    /// The image or index of a manifest that was read.
    async fn root_of(&self, repository: &Arc<Repository>, top: Blob) -> Result<Root, LoadError> {
        let mut documents = HashMap::new();
        // An index names manifests, and they name configurations: two rounds, each at once.
        let mut open = vec![top.clone()];
        for _ in 0..2 {
            let named: Vec<Descriptor> = open.iter().flat_map(pull::documents_of).collect();
            open = try_join_all(
                named
                    .iter()
                    .filter(|named| pull::is_small(named))
                    .take(MAX_DOCUMENTS)
                    .map(|named| self.document(repository, named)),
            )
            .await?
            .into_iter()
            .flatten()
            .collect();
            documents.extend(open.iter().map(|blob| (blob.digest(), blob.clone())));
        }
        let descriptor = top.descriptor();
        let mut find = |named: &Descriptor| {
            if top.is_named_by(named) {
                return Ok(top.clone());
            }
            let digest = Digest::try_from(named.digest())?;
            match documents.get(&digest) {
                // What was read already must not be asked for again: here nobody may wait.
                Some(blob) => blob.named_as(named),
                None => Remote::blob(self, repository, named).ok_or(BlobError::Missing { digest }),
            }
        };
        Ok(Root::load(&descriptor, &mut find)?)
    }

    async fn document(
        &self,
        repository: &Arc<Repository>,
        named: &Descriptor,
    ) -> Result<Option<Blob>, RegistryError> {
        if super::media_types::is_manifest(named.media_type()) {
            let _turn = self.turn().await;
            return repository.manifest(named.digest().as_ref()).await.map(Some);
        }
        let Some(blob) = Remote::blob(self, repository, named) else { return Ok(None) };
        blob.fetch().await?;
        Ok(Some(blob))
    }

    /// Starts to send a blob of an image that is not yet complete. Faults are for [`Access::store`] to meet.
    pub(super) fn send_ahead(&self, reference: &Reference, blob: &Blob) {
        if let Ok(runtime) = self.runtime()
            && !self.is_dry_run()
        {
            self.repository(reference).send_ahead(self, &runtime, blob);
        }
    }

    /// Stores an image under a reference, and under other tags of the same repository.
    pub(super) fn store(
        &self,
        reference: &Reference,
        also: &[String],
        root: &Root,
        pushed: &Pushed,
    ) -> Result<(), RegistryError> {
        let repository = self.repository(reference);
        let first = match (reference.tag(), reference.digest()) {
            (Some(tag), _) => tag.to_owned(),
            (None, Some(_)) => root.digest().to_string(),
            (None, None) => "latest".to_owned(),
        };
        let others = also.iter().filter(|tag| **tag != first).cloned();
        let names: Vec<String> = std::iter::once(first.clone()).chain(others).collect();
        self.run(repository.push(self, root, &names, pushed))
    }

    fn repository(&self, reference: &Reference) -> Arc<Repository> {
        let inner = &self.0;
        let (host, name) = (reference.registry(), reference.repository());
        // Values are inserted whole, so a panic elsewhere leaves none half made.
        let mut registries = inner.registries.lock().unwrap_or_else(PoisonError::into_inner);
        let registry = registries.entry(host.into()).or_insert_with(|| {
            Arc::new(repository::Registry::new(host, Arc::clone(self.http()), Arc::clone(self.credentials())))
        });
        let mut repositories = inner.repositories.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(Repository::new(Arc::clone(registry), name, Arc::clone(&inner.progress)));
        Arc::clone(repositories.entry((host.into(), name.into())).or_insert_with(made))
    }

    fn http(&self) -> &Arc<http::Http> {
        let Options { ca_files, plain_http, insecure, patience, .. } = &self.0.options;
        self.0.http.get_or_init(|| {
            Arc::new(http::Http::new(
                ca_files.clone(),
                plain_http.clone(),
                insecure.clone(),
                *patience,
                Arc::clone(&self.0.progress),
            ))
        })
    }

    fn credentials(&self) -> &Arc<credentials::CredentialStore> {
        let Options { credentials, auth_file, .. } = &self.0.options;
        self.0.credentials.get_or_init(|| {
            let store = credentials::CredentialStore::new(credentials.clone(), auth_file.clone(), |name| {
                env::var_os(name)
            });
            Arc::new(store)
        })
    }

    /// The cache, which is opened when it is needed for the first time.
    ///
    /// # Errors
    /// The directory that the user gave holds something else.
    fn cache(&self) -> Result<&cache::Cache, RegistryError> {
        let Options { cache_dir, cache_limit, .. } = &self.0.options;
        let opened = self.0.cache.get_or_init(|| match cache_dir {
            Some(dir) => cache::Cache::new(Some(dir.clone()), Chosen::ByUser, *cache_limit),
            None => {
                let dir = cache::default_dir(|name| env::var_os(name));
                cache::Cache::new(dir, Chosen::ByDefault, *cache_limit)
            }
        });
        opened.as_ref().map_err(|NotACache(path)| RegistryError::NotACache { path: path.clone() })
    }

    fn parallel(&self) -> usize {
        at_once(&self.0.options)
    }

    /// Waits until another transfer may start.
    ///
    /// A transfer that has a turn must not wait for another one: when all turns are held by such transfers, none goes on.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed; without a permit the transfer would only start too early.
        self.0.turns.acquire().await.ok()
    }

    /// Does something on the runtime, until it is done, somebody interrupts, or the time is over.
    fn run<T>(&self, work: impl Future<Output = Result<T, RegistryError>>) -> Result<T, RegistryError> {
        let runtime = self.runtime()?;
        let _work = interrupt::work();
        let done = match runtime.block_on(self.0.limits.run(work)) {
            Ok(done) => done,
            Err(Over::Interrupted) => Err(RegistryError::Interrupted),
            Err(Over::TimedOut(limit)) => Err(RegistryError::TimedOut { limit }),
        };
        if done.is_err() {
            self.0.progress.happened(&Event::Stopped);
        }
        done
    }

    fn runtime(&self) -> Result<Arc<Runtime>, RegistryError> {
        let mut runtime = self.0.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*runtime {
            return Ok(Arc::clone(runtime));
        }
        // A program that embeds this library may have chosen another provider; that one serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let made = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let made = Arc::new(made.map_err(|source| RegistryError::Start { source })?);
        *runtime = Some(Arc::clone(&made));
        Ok(made)
    }
}

/// How many transfers there may be at once.
fn at_once(options: &Options) -> usize {
    options.parallel.clamp(1, 64)
}

/// What a reference is asked for by: its digest, else its tag.
fn name_of(reference: &Reference) -> &str {
    reference.digest().or(reference.tag()).unwrap_or("latest")
}

/// The most documents of one image that are read at once; more are refused when the image is put together.
const MAX_DOCUMENTS: usize = 256;

/// Why an image cannot be loaded from a registry.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Image(#[from] ImageError),
}
