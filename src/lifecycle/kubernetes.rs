//! A cluster behind a Kubernetes API server.
//!
//! Kinds that the engine looks at in a namespace are watched from the first wait on, and read from memory afterwards; all else
//! is asked for. The client is asynchronous and has a runtime of its own, so that nobody else needs to be: a call blocks until
//! it is answered. What may pass by itself (a server that restarts, rate limits, a new leader of etcd) is tried again for a while, but not a
//! server that was never reached; and nothing goes on after the deadline of the command.

mod answer;
mod as_status;
mod bounded;
mod clock;
mod credentials;
mod exchange;
mod kubeconfig;
mod renew;
mod watch;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBuilder, Retryable as _};
use hyper_util::client::proxy::matcher::Matcher;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use kube::client::ClientBuilder;
use kube::config::KubeConfigOptions;
use kube::core::PartialObjectMeta;
use kube::{Client, Config};
use olmkit_bundle::version::{Version, parse_tolerant};
use serde_json::{Value, json};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch::{Receiver, Sender};
use tokio::task::AbortHandle;

use super::api::{Key, Resource, known, label};
use super::cluster::{Cluster, ClusterError, Said, Selection};
use super::observe;
use crate::files::FileError;
use crate::limits::{Limits, Over, span};
use crate::shell::Reach;
use answer::{Asked, Passing, Silent, asked_for, heard, is_about_reaching, is_answer, is_too_large, passing};
use clock::ServerClock;
use credentials::{Credentials, CredentialsError};
use exchange::Exchanges;
use kubeconfig::{chosen, cluster_of};
use watch::{WATCH, Watched, lock};

/// How many objects are asked for at once.
const PAGE: u32 = 500;
/// How long a server that was never reached may say nothing.
const FIRST_ANSWER: Duration = Duration::from_secs(15);
/// How long a request may go without an answer; servers themselves give up after 60 s.
const SILENCE: Duration = Duration::from_secs(70);
/// A server that has answered before and takes no longer than this for an answer is not silent.
const SLOW: Duration = Duration::from_secs(5);
/// How long what may pass by itself is tried again.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a server error that says nothing of its cause is tried again.
const MOMENT: Duration = Duration::from_secs(10);
/// The pauses between two tries begin with this and double.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longer than this no pause gets.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The pauses between tries, which end with the time of the command or with what is known of the failure.
fn pauses() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .without_max_times()
}

/// How long changes are gathered before they are looked at, so that a burst is one change.
const GATHER: Duration = Duration::from_millis(20);

impl Choice {
    /// How commands that are printed reach the cluster.
    pub fn reach(&self) -> Reach {
        let flag = |name, value: &str| (name, value.to_owned());
        let context = self.context.iter().map(|context| flag("context", context));
        let kubeconfig = self.kubeconfig.iter().map(|path| flag("kubeconfig", &path.to_string_lossy()));
        let user = self.impersonation.user.iter().map(|user| flag("as", user));
        let groups = self.impersonation.groups.iter().map(|group| flag("as-group", group));
        Reach::real(context.chain(kubeconfig).chain(user).chain(groups).collect())
    }
}

/// Which cluster is meant.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The file; none for `KUBECONFIG`, then `~/.kube/config`, then the pod's own account.
    pub kubeconfig: Option<PathBuf>,
    /// The context; none for the current one.
    pub context: Option<String>,
    /// The user to impersonate, if not the user of the context.
    pub impersonation: Impersonation,
    /// Whether nobody is there to answer a credential plugin, or to read what it says.
    pub is_unattended: bool,
}

/// The user that requests impersonate, as with `kubectl --as`. The user of the context needs the right to `impersonate`.
#[derive(Clone, Debug, Default)]
pub struct Impersonation {
    /// The user, such as `system:serviceaccount:NAMESPACE:NAME`; none for that of the context.
    pub user: Option<String>,
    /// The groups of this user.
    pub groups: Vec<String>,
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
    /// The program that the kubeconfig names for credentials has none. What it printed may be a secret.
    #[error("{what}")]
    Credentials {
        /// What failed, with the name of the program.
        what: String,
        /// How the kubeconfig says that it is installed.
        hint: Option<String>,
    },
    /// The time for the whole command is over.
    #[error("timed out after {}: {doing}", span(*.limit))]
    TimedOut {
        /// The time that was given.
        limit: Duration,
        /// What was waited for.
        doing: String,
        /// What to do.
        help: &'static str,
    },
    /// Somebody pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The machine gives us no threads.
    #[error("cannot start the client")]
    Runtime(#[source] std::io::Error),
}

impl From<FileError> for ConnectError {
    fn from(error: FileError) -> Self {
        match &error {
            FileError::Read { path, source } => match over(source) {
                Some(Over::Interrupted) => Self::Interrupted,
                Some(Over::TimedOut(limit)) => {
                    let doing = format!("nothing has written to the pipe `{}` to its end", path.display());
                    let help = "check what writes to it, or pass a longer --timeout";
                    Self::TimedOut { limit, doing, help }
                }
                None => Self::Config(error.into()),
            },
            _ => Self::Config(error.into()),
        }
    }
}

/// What ended the reading of a file before its end, if something did.
fn over(error: &std::io::Error) -> Option<Over> {
    error.get_ref()?.downcast_ref::<Over>().copied()
}

impl From<CredentialsError> for ConnectError {
    fn from(error: CredentialsError) -> Self {
        let doing = error.to_string();
        match error {
            CredentialsError::File(error) => error.into(),
            CredentialsError::Over { over: Over::Interrupted, .. } => Self::Interrupted,
            CredentialsError::Over { over: Over::TimedOut(limit), .. } => {
                let help = "run it directly to see what it is waiting for, or pass a longer --timeout";
                Self::TimedOut { limit, doing, help }
            }
            CredentialsError::Failed { hint, .. } => Self::Credentials { what: doing, hint },
            CredentialsError::Token(_) => Self::Credentials { what: doing, hint: None },
        }
    }
}

/// An address without the user and password that a kubeconfig may have put in it.
fn without_user(server: &str) -> String {
    match server.split_once("://") {
        Some((scheme, rest)) => {
            format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, host)| host))
        }
        None => server.to_owned(),
    }
}

/// Whether nothing says where a cluster is: no variable, no file, and no account of a pod.
pub fn no_kubeconfig() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let file = std::env::home_dir().map(|home| home.join(".kube/config"));
    !is_set("KUBECONFIG") && !is_set("KUBERNETES_SERVICE_HOST") && !file.is_some_and(|file| file.exists())
}

/// A cluster behind an API server.
pub struct Kubernetes {
    context: String,
    /// The namespace of the context, where it has one.
    namespace: Option<String>,
    /// The address of the API server.
    server: String,
    client: Client,
    /// What time it is there.
    clock: Arc<ServerClock>,
    /// Whether the server has ever answered.
    reached: AtomicBool,
    /// The user to impersonate.
    credentials: Credentials,
    /// What ends the command.
    limits: Limits,
    /// What was listed, by kind and namespace.
    watched: BTreeMap<(String, String), Listed>,
    /// Counts changes of what is watched.
    changes: Sender<u64>,
    seen: Receiver<u64>,
    /// Where requests are made.
    runtime: Handle,
    /// The same, to be ended with this.
    threads: Option<Runtime>,
}

impl Drop for Kubernetes {
    /// Nobody waits for what still goes on, such as the question of a name that no server answers.
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

/// A kind in a namespace that was listed. It is watched once somebody waits for a change.
struct Listed {
    resource: Resource,
    objects: Arc<Mutex<Watched>>,
    /// The watch, once there is one.
    watch: Option<AbortHandle>,
}

impl Kubernetes {
    /// A client for a cluster; nothing is asked of it yet.
    ///
    /// # Errors
    /// The kubeconfig cannot be used.
    pub fn connect(choice: &Choice) -> Result<Self, ConnectError> {
        Self::connect_within(choice, Limits::default())
    }

    /// As [`Kubernetes::connect`], for so long from now on: that is the time for a credential plugin, and for everything that is asked of
    /// the cluster later.
    ///
    /// # Errors
    /// As [`Kubernetes::connect`], and when the time is over.
    pub fn connect_within(choice: &Choice, limits: Limits) -> Result<Self, ConnectError> {
        // A program that embeds this library may have chosen another provider; that one serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(ConnectError::Runtime)?;
        let (mut config, namespace) = runtime.block_on(config(choice, limits))?;
        if config.auth_info.auth_provider.as_ref().is_some_and(|provider| {
            provider.name == "gcp"
                && provider.config.contains_key("cmd-path")
                && !provider.config.contains_key("id-token")
        }) {
            return Err(ConnectError::Credentials {
                what: "the kubeconfig gets its credentials from the auth provider `gcp`, which kubectl no longer supports either".into(),
                hint: Some("use the credential plugin `gke-gcloud-auth-plugin` instead: `gcloud container clusters get-credentials` sets it up".into()),
            });
        }
        let credentials = Credentials::take(&mut config.auth_info, choice.is_unattended);
        credentials.renew(limits, Some(&mut config.auth_info))?;
        // What may pass by itself is tried again here, where it is known for a message what was heard last.
        config.default_retry = false;
        if let Some(user) = &choice.impersonation.user {
            // A kubeconfig may impersonate somebody else, and nothing of that may be left.
            config.auth_info.impersonate = Some(user.clone());
            config.auth_info.impersonate_uid = None;
            config.auth_info.impersonate_groups = Some(choice.impersonation.groups.clone());
            config.auth_info.impersonate_user_extra = None;
        }
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let _inside = runtime.enter();
        let client = ClientBuilder::try_from(config).map_err(ConnectError::Client)?;
        let clock = Arc::new(ServerClock::default());
        let client = client
            .with_layer(&Exchanges {
                server: without_user(&server),
                clock: Arc::clone(&clock),
                header: credentials.header(),
            })
            .build();
        let (changes, seen) = tokio::sync::watch::channel(0);
        drop(_inside);
        Ok(Self {
            context: choice.context.clone().unwrap_or_default(),
            namespace,
            server,
            client,
            clock,
            reached: AtomicBool::new(false),
            credentials,
            limits,
            watched: BTreeMap::new(),
            changes,
            seen,
            runtime: runtime.handle().clone(),
            threads: Some(runtime),
        })
    }

    /// Bounds everything that is asked of the cluster, from its connection on.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limits = self.limits.within(limit);
        self
    }

    /// The namespace of the context; none where it says nothing.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Merges a patch into the status of an object, which is what OLM does and its users do not.
    ///
    /// # Errors
    /// As [`Cluster::patch`].
    pub fn patch_status(&self, resource: &Resource, key: &Key, patch: &Value) -> Result<(), ClusterError> {
        let api = self.api(resource, Some(&key.namespace));
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let asked = Asked { verb: "patch", resource, namespace: Some(&key.namespace), key: Some(key) };
        let answer = self.ask(asked, || api.patch_status(&key.name, &parameters, &patch))?;
        answer.map_err(|error| self.fault(error, asked)).map(drop)
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

    /// Waits for an answer, until there is a signal or the time is over; asks again what may pass by itself.
    fn ask<T, F: Future<Output = kube::Result<T>>>(
        &self,
        asked: Asked<'_>,
        call: impl Fn() -> F,
    ) -> Result<kube::Result<T>, ClusterError> {
        self.renew(asked)?;
        let last: RefCell<Option<Said>> = RefCell::default();
        let once = || async {
            let limit = if self.reached.load(Ordering::Relaxed) { SILENCE } else { FIRST_ANSWER };
            let mut call = pin!(call());
            let mut answer = tokio::time::timeout(limit, &mut call).await;
            // The first answer may be a long one.
            if answer.is_err() && limit == FIRST_ANSWER && self.clock.has_begun_to_answer() {
                answer = tokio::time::timeout(SILENCE - FIRST_ANSWER, &mut call).await;
            }
            let answer = answer.unwrap_or_else(|_| Err(kube::Error::Service(Box::new(Silent(limit)))));
            if !matches!(&answer, Err(error) if !is_answer(error)) {
                self.reached.store(true, Ordering::Relaxed);
            }
            answer
        };
        let begun = Instant::now();
        let answered = once
            .retry(pauses())
            .when(|error| begun.elapsed() < self.patience(error))
            .adjust(|error, pause| pause.map(|pause| pause.max(asked_for(error)).min(PATIENCE)))
            .notify(|error, _| drop(last.replace(heard(&self.server, error))));
        match self.runtime.block_on(self.limits.run(answered.into_future())) {
            Ok(answer) => Ok(answer),
            Err(Over::Interrupted) => Err(ClusterError::Interrupted),
            Err(Over::TimedOut(limit)) => Err(ClusterError::TimedOut {
                server: self.server.clone(),
                limit,
                doing: format!("{} `{}`", asked.verb, asked.resource.full_name()),
                is_answering: self.reached.load(Ordering::Relaxed) && begun.elapsed() < SLOW,
                last: last.take(),
            }),
        }
    }

    /// Has credentials that are about to expire renewed.
    fn renew(&self, asked: Asked<'_>) -> Result<(), ClusterError> {
        let Err(error) = self.credentials.renew(self.limits, None) else { return Ok(()) };
        Err(match error.into() {
            ConnectError::Interrupted => ClusterError::Interrupted,
            ConnectError::TimedOut { limit, doing, .. } => ClusterError::TimedOut {
                server: self.server.clone(),
                limit,
                doing: format!("{} `{}`", asked.verb, asked.resource.full_name()),
                is_answering: false,
                last: Some(Said(doing)),
            },
            error => ClusterError::Credentials { source: error.into() },
        })
    }

    /// How long what went wrong is tried again. A server that was never reached is not waited for.
    fn patience(&self, error: &kube::Error) -> Duration {
        match error {
            kube::Error::Api(status) => match passing(status) {
                Passing::No => Duration::ZERO,
                Passing::Moment => MOMENT,
                Passing::While => PATIENCE,
            },
            error if is_answer(error) || is_too_large(error) => Duration::ZERO,
            error if !self.reached.load(Ordering::Relaxed) && is_about_reaching(error) => Duration::ZERO,
            _ => PATIENCE,
        }
    }

    /// What an error means.
    fn fault(&self, error: kube::Error, asked: Asked<'_>) -> ClusterError {
        answer::fault(error, &self.server, &self.context, asked)
    }

    fn post(&self, resource: &Resource, object: &Value, dry_run: bool) -> Result<Value, ClusterError> {
        let key = Key::of(object);
        let refused =
            |error: serde_json::Error| ClusterError::Refused { key: key.clone(), message: error.to_string() };
        let typed: DynamicObject = serde_json::from_value(object.clone()).map_err(refused)?;
        let api = self.api(resource, Some(&key.namespace));
        let parameters = PostParams { dry_run, ..PostParams::default() };
        let asked = Asked { verb: "create", resource, namespace: Some(&key.namespace), key: Some(&key) };
        let answer = self.ask(asked, || api.create(&parameters, &typed))?;
        let made = answer.map_err(|error| self.fault(error, asked))?;
        Ok(document(made, resource))
    }

    fn list_now(&self, resource: &Resource, namespace: Option<&str>) -> Result<Vec<Value>, ClusterError> {
        let mut found = Vec::new();
        self.pages(resource, namespace, &Selection::default(), &mut |page| match page {
            Page::Anew => found.clear(),
            Page::Object(object) => found.push(object),
        })?;
        found.sort_by_key(Key::of);
        Ok(found)
    }

    /// Reads a list page by page.
    fn pages(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selection: &Selection<'_>,
        take: &mut dyn FnMut(Page),
    ) -> Result<(), ClusterError> {
        let api = self.api(resource, namespace);
        let asked = Asked { verb: "list", resource, namespace, key: None };
        let mut tokens = BTreeSet::new();
        let size = if selection.page == 0 { PAGE } else { selection.page };
        let mut first = ListParams::default().limit(size);
        if !selection.labels.is_empty() {
            first = first.labels(selection.labels);
        }
        if !selection.fields.is_empty() {
            first = first.fields(selection.fields);
        }
        let mut page = first.clone();
        let begun = Instant::now();
        let mut pauses = pauses().build();
        let mut expired: Option<Said> = None;
        loop {
            let answer = match self.ask(asked, || read_page(&api, &page, selection.metadata_only)) {
                Err(ClusterError::TimedOut { server, limit, doing, is_answering, last }) => {
                    let last = last.or(expired);
                    return Err(ClusterError::TimedOut { server, limit, doing, is_answering, last });
                }
                answer => answer?,
            };
            let (items, next) = match answer {
                // What the next page would go on from is no longer known: all of them again.
                Err(error @ kube::Error::Api(_))
                    if matches!(&error, kube::Error::Api(status) if status.code == 410)
                        && begun.elapsed() < PATIENCE =>
                {
                    expired = heard(&self.server, &error);
                    self.rest(pauses.next().unwrap_or(LONGEST_PAUSE))?;
                    take(Page::Anew);
                    tokens.clear();
                    page = first.clone();
                    continue;
                }
                answer => answer.map_err(|error| self.fault(error, asked))?,
            };
            items.into_iter().for_each(|object| take(Page::Object(document(object, resource))));
            match next.filter(|token| !token.is_empty()) {
                Some(token) if tokens.insert(token.clone()) => {
                    page = first.clone().continue_token(&token);
                }
                Some(_) => {
                    let source = Said(
                        "the pages of the list are a cycle: a page names one that was read before".into(),
                    );
                    let resource = resource.full_name();
                    return Err(ClusterError::Failed { verb: "list", resource, source });
                }
                None => return Ok(()),
            }
        }
    }

    /// Asks nothing for a while; not for longer than the command has.
    fn rest(&self, pause: Duration) -> Result<(), ClusterError> {
        match self.runtime.block_on(self.limits.run(async { tokio::time::sleep(pause).await })) {
            Err(Over::Interrupted) => Err(ClusterError::Interrupted),
            // That the time is over is told by the next question.
            Ok(()) | Err(Over::TimedOut(_)) => Ok(()),
        }
    }

    /// Begins to watch a kind that was listed.
    fn watch(&self, listed: &Listed, namespace: &str) -> AbortHandle {
        let api = self.api(&listed.resource, Some(namespace));
        let (objects, changes) = (Arc::clone(&listed.objects), self.changes.clone());
        self.runtime
            .spawn(watch::follow(api, listed.resource.clone(), objects, changes, WATCH))
            .abort_handle()
    }

    /// What was written is seen at once, not only when the watch tells it.
    fn wrote(&self, resource: &Resource, object: &Value) {
        let key = Key::of(object);
        if let Some(listed) = self.watched.get(&(resource.full_name(), key.namespace.clone())) {
            lock(&listed.objects).put(key, object.clone());
        }
    }
}

/// The client's configuration, and the namespace of the context where it has one.
async fn config(choice: &Choice, limits: Limits) -> Result<(Config, Option<String>), ConnectError> {
    let failed = |error: kube::config::KubeconfigError| ConnectError::Config(error.into());
    let options = KubeConfigOptions { context: choice.context.clone(), ..KubeConfigOptions::default() };
    let is_chosen = choice.kubeconfig.is_some() || choice.context.is_some();
    let kubeconfig = match kubeconfig::read(choice.kubeconfig.as_deref(), limits) {
        Ok(kubeconfig) => kubeconfig,
        Err(ConnectError::Config(_))
            if !is_chosen && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() =>
        {
            // In a pod: its own.
            let config = Config::incluster().map_err(|error| ConnectError::Config(error.into()))?;
            let namespace = Some(config.default_namespace.clone());
            return Ok((config, namespace));
        }
        Err(error) => return Err(error),
    };
    let (namespace, has_proxy) = match chosen(&kubeconfig, choice.context.as_deref()) {
        Some(context) => {
            kubeconfig::check_files(&kubeconfig, context)?;
            let has_proxy = cluster_of(&kubeconfig, context).and_then(|cluster| cluster.proxy_url.as_ref());
            (context.namespace.clone(), has_proxy.is_some_and(|url| !url.is_empty()))
        }
        None => (None, false),
    };
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)?;
    if !has_proxy {
        // Where NO_PROXY excludes the server, it is reached without one; kube holds it against the proxy's own address.
        let proxy = Matcher::from_env().intercept(&config.cluster_url);
        config.proxy_url = config.proxy_url.filter(|_| proxy.is_some());
    }
    Ok((config, namespace.filter(|namespace| !namespace.is_empty())))
}

/// The names of the contexts of a kubeconfig; without a path, of that of the environment.
///
/// # Errors
/// It cannot be read.
pub fn contexts(path: Option<&Path>, limits: Limits) -> Result<Vec<String>, ConnectError> {
    let kubeconfig = kubeconfig::read(path, limits)?;
    Ok(kubeconfig.contexts.into_iter().map(|context| context.name).collect())
}

/// A part of a list.
enum Page {
    /// The list begins anew: what came before does not count.
    Anew,
    Object(Value),
}

/// A page of a list, and where the next one begins.
async fn read_page(
    api: &Api<DynamicObject>,
    page: &ListParams,
    metadata_only: bool,
) -> kube::Result<(Vec<DynamicObject>, Option<String>)> {
    if !metadata_only {
        let list = api.list(page).await?;
        return Ok((list.items, list.metadata.continue_));
    }
    let list = api.list_metadata(page).await?;
    let whole = |partial: PartialObjectMeta<DynamicObject>| DynamicObject {
        types: partial.types,
        metadata: partial.metadata,
        data: Value::Null,
    };
    Ok((list.items.into_iter().map(whole).collect(), list.metadata.continue_))
}

/// An object as the server sends it alone: in lists it leaves kind and version out. Managed fields are left out here.
fn document(mut object: DynamicObject, resource: &Resource) -> Value {
    object.metadata.managed_fields = None;
    let mut fields = serde_json::Map::new();
    fields.insert("apiVersion".into(), resource.api_version().into());
    fields.insert("kind".into(), resource.kind.clone().into());
    // Its keys are text: nothing can refuse.
    fields.insert("metadata".into(), serde_json::to_value(object.metadata).unwrap_or_default());
    if let Value::Object(data) = object.data {
        fields.extend(data);
    }
    Value::Object(fields)
}

impl Cluster for Kubernetes {
    fn context(&self) -> &str {
        &self.context
    }

    fn list(&mut self, resource: &Resource, namespace: Option<&str>) -> Result<Vec<Value>, ClusterError> {
        match namespace {
            Some(namespace) if observe::kinds().contains(&resource) => {
                let name = (resource.full_name(), namespace.to_owned());
                if let Some(listed) = self.watched.get(&name).filter(|listed| listed.watch.is_some()) {
                    return Ok(lock(&listed.objects).objects.values().cloned().collect());
                }
                let found = self.list_now(resource, Some(namespace))?;
                let objects = found.iter().map(|object| (Key::of(object), object.clone())).collect();
                let objects = Arc::new(Mutex::new(Watched { objects }));
                let listed = Listed { resource: resource.clone(), objects, watch: None };
                self.watched.insert(name, listed);
                Ok(found)
            }
            _ => self.list_now(resource, namespace),
        }
    }

    fn each(
        &mut self,
        resource: &Resource,
        namespace: Option<&str>,
        selection: &Selection<'_>,
        take: &mut dyn FnMut(Value),
    ) -> Result<(), ClusterError> {
        let name = (resource.full_name(), namespace.unwrap_or_default().to_owned());
        if let Some(listed) = self.watched.get(&name).filter(|listed| listed.watch.is_some()) {
            lock(&listed.objects).objects.values().cloned().for_each(take);
            return Ok(());
        }
        self.pages(resource, namespace, selection, &mut |page| {
            if let Page::Object(object) = page {
                take(object);
            }
        })
    }

    fn get(
        &mut self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let api = self.api(resource, Some(namespace));
        let key = Key::new(resource, namespace, name);
        let asked = Asked { verb: "get", resource, namespace: Some(namespace), key: Some(&key) };
        let found = self.ask(asked, || api.get_opt(name))?.map_err(|error| self.fault(error, asked))?;
        Ok(found.map(|object| document(object, resource)))
    }

    fn create(&mut self, resource: &Resource, object: &Value) -> Result<Value, ClusterError> {
        let made = self.post(resource, object, false)?;
        self.wrote(resource, &made);
        Ok(made)
    }

    fn would_create(&mut self, resource: &Resource, object: &Value) -> Result<(), ClusterError> {
        self.post(resource, object, true).map(drop)
    }

    fn patch(&mut self, resource: &Resource, key: &Key, patch: &Value) -> Result<Value, ClusterError> {
        let api = self.api(resource, Some(&key.namespace));
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let asked = Asked { verb: "patch", resource, namespace: Some(&key.namespace), key: Some(key) };
        let answer = self.ask(asked, || api.patch(&key.name, &parameters, &patch))?;
        let changed = answer.map_err(|error| self.fault(error, asked))?;
        let changed = document(changed, resource);
        self.wrote(resource, &changed);
        Ok(changed)
    }

    /// Applies on the server's side: the annotation of a client that applies is too small for OLM's CRDs.
    fn apply(&mut self, resource: &Resource, object: &Value) -> Result<Value, ClusterError> {
        let key = Key::of(object);
        let api = self.api(resource, Some(&key.namespace));
        let (parameters, patch) = (PatchParams::apply(label::OLMKIT).force(), Patch::Apply(object));
        let asked = Asked { verb: "patch", resource, namespace: Some(&key.namespace), key: Some(&key) };
        let answer = self.ask(asked, || api.patch(&key.name, &parameters, &patch))?;
        let made = document(answer.map_err(|error| self.fault(error, asked))?, resource);
        self.wrote(resource, &made);
        Ok(made)
    }

    fn delete(&mut self, resource: &Resource, key: &Key) -> Result<(), ClusterError> {
        let api = self.api(resource, Some(&key.namespace));
        let parameters = DeleteParams::background();
        let asked = Asked { verb: "delete", resource, namespace: Some(&key.namespace), key: Some(key) };
        match self
            .ask(asked, || api.delete(&key.name, &parameters))?
            .map_err(|error| self.fault(error, asked))
        {
            Ok(_) | Err(ClusterError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn patch_status(&mut self, resource: &Resource, key: &Key, patch: &Value) -> Result<(), ClusterError> {
        Self::patch_status(self, resource, key, patch)
    }

    fn delete_exactly(&mut self, resource: &Resource, object: &Value) -> Result<(), ClusterError> {
        let key = Key::of(object);
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let preconditions =
            Preconditions { uid: text("/metadata/uid"), resource_version: text("/metadata/resourceVersion") };
        let api = self.api(resource, Some(&key.namespace));
        let parameters = DeleteParams::background().preconditions(preconditions);
        let asked = Asked { verb: "delete", resource, namespace: Some(&key.namespace), key: Some(&key) };
        match self
            .ask(asked, || api.delete(&key.name, &parameters))?
            .map_err(|error| self.fault(error, asked))
        {
            Ok(_) | Err(ClusterError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Asks the server itself, by a SelfSubjectAccessReview.
    fn may(
        &mut self,
        verb: &str,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<bool, ClusterError> {
        let reviews = Resource {
            group: "authorization.k8s.io".into(),
            version: "v1".into(),
            kind: "SelfSubjectAccessReview".into(),
            plural: "selfsubjectaccessreviews".into(),
            namespaced: false,
        };
        let namespace = if resource.namespaced { namespace } else { "" };
        let (plural, subresource) = resource.plural.split_once('/').unwrap_or((&resource.plural, ""));
        let review = json!({
            "apiVersion": reviews.api_version(), "kind": reviews.kind, "metadata": {},
            "spec": {"resourceAttributes": {
                "verb": verb, "group": resource.group, "version": resource.version, "resource": plural,
                "subresource": subresource, "namespace": namespace, "name": name,
            }},
        });
        match self.create(&reviews, &review) {
            // If the review fails, the verb is tried nevertheless.
            Ok(answer) => Ok(answer.pointer("/status/allowed") != Some(&Value::Bool(false))),
            Err(error @ (ClusterError::Interrupted | ClusterError::TimedOut { .. })) => Err(error),
            Err(_) => Ok(true),
        }
    }

    /// The next question lists anew, and the next wait watches anew.
    fn look_again(&mut self) {
        let lost = std::mem::take(&mut self.watched);
        lost.into_values().filter_map(|listed| listed.watch).for_each(|watch| watch.abort());
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, ClusterError> {
        let begins = self.watched.iter().filter(|(_, listed)| listed.watch.is_none());
        let begun: Vec<_> =
            begins.map(|(name, listed)| (name.clone(), self.watch(listed, &name.1))).collect();
        for (name, watch) in begun {
            if let Some(listed) = self.watched.get_mut(&name) {
                listed.watch = Some(watch);
            }
        }
        let mut seen = self.seen.clone();
        let something = async {
            // The sender lives as long as this cluster.
            let _ = seen.changed().await;
            tokio::time::sleep(GATHER.min(timeout)).await;
        };
        let changed = async { tokio::time::timeout(timeout, something).await.is_ok() };
        let changed = self.runtime.block_on(self.limits.run(changed));
        seen.mark_unchanged();
        self.seen = seen;
        match changed {
            Ok(changed) => Ok(changed),
            Err(Over::TimedOut(_)) => Ok(false),
            Err(Over::Interrupted) => Err(ClusterError::Interrupted),
        }
    }

    fn now(&self) -> Duration {
        self.limits.elapsed()
    }

    fn time_of_day(&self) -> i64 {
        if self.clock.is_worth_asking() {
            // Any answer tells it, and that there is none is told by the next question.
            let limit = Duration::from_secs(5);
            let asked = async { tokio::time::timeout(limit, self.client.apiserver_version()).await };
            let _ = self.runtime.block_on(self.limits.run(asked));
        }
        self.clock.now()
    }

    fn kubernetes_version(&mut self) -> Option<Version> {
        let asked = self.limits.run(self.client.apiserver_version());
        let text = self.runtime.block_on(asked).ok()?.ok()?.git_version;
        parse_tolerant(text.split(['-', '+']).next()?).ok()
    }

    fn deadline(&self) -> Option<Duration> {
        self.limits.limit()
    }

    fn renew(&mut self, note: &Key, holder: &str, every: Duration) {
        let api = self.api(&known::CONFIG_MAP, Some(&note.namespace));
        self.runtime.spawn(renew::keep(
            api,
            note.name.clone(),
            holder.to_owned(),
            every,
            Arc::clone(&self.clock),
        ));
    }

    fn begin_cleanup(&mut self, limit: Duration) {
        self.limits = self.limits.within(self.now() + limit).ignoring_signals();
    }
}
