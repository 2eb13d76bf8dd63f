//! What every operator needs around its controllers: a client, logs, probes, signals, and a Lease so that one replica acts.
//!
//! Start at [`main`], or at [`run`] for a program with more verbs. [`objects`] is for what controllers read and write, [`error`] for
//! requests that fail, [`status`] for what users are told: conditions and Events. This crate knows nothing of what is reconciled.

pub mod backoff;
mod cli;
pub mod error;
mod lifecycle;
pub mod objects;
pub mod status;
pub mod telemetry;

use std::{net::SocketAddr, time::Duration};

use axum::{Router, routing::get};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource, runtime::events::Recorder};
use operator_lease::{Leadership, Terms};
use tracing::info;

pub use cli::main;
pub use lifecycle::{RunError, Stop, block_on, connect, default_identity, lead, names, serve};

/// The flags of an operator. Each can be set by the environment, and so by a ConfigMap.
#[derive(Clone, Debug, clap::Args)]
pub struct ProcessArgs {
    /// Namespaces to watch, joined by commas
    #[arg(long, env = "WATCH_NAMESPACE", default_value = "", value_name = "NAMES")]
    pub watch_namespace: String,

    /// Namespace of the operator itself [default: that of the pod, or of the current context]
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAME")]
    pub namespace: Option<String>,

    /// Name of this replica; different for each
    #[arg(long, env = "POD_NAME", default_value_t = default_identity(), value_name = "NAME")]
    pub identity: String,

    /// Elect a leader among the replicas; `false` is for a single replica
    #[arg(long, env = "LEADER_ELECTION", default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    pub leader_election: bool,

    /// Seconds that other replicas wait after the leader's last sign of life
    #[arg(long, env = "LEASE_SECONDS", default_value_t = 15, value_name = "SECONDS",
        value_parser = clap::value_parser!(u32).range(3..=3600))]
    pub lease_seconds: u32,

    /// Address of /healthz and /readyz
    #[arg(long, env = "HEALTH_ADDRESS", default_value = "0.0.0.0:8081", value_name = "IP:PORT")]
    pub health_address: SocketAddr,

    /// What to log: a level, or `target=level` joined by commas
    #[arg(long, env = "LOG", default_value = "info", value_name = "FILTER")]
    pub log: String,
}

/// A running operator, as its controllers see it. Cheap to clone.
#[derive(Clone)]
pub struct Operator {
    /// Client of the API server.
    pub client: Client,
    /// Namespace of the operator itself.
    pub namespace: String,
    /// Namespaces to watch; empty when none are given.
    pub watched: Vec<String>,
    /// Whether this replica leads. Ask it before every write.
    pub leadership: Leadership,
    /// Publishes Events in the name of this replica.
    pub recorder: Recorder,
    stopped: Stop,
}

impl Operator {
    /// Objects of one kind in one namespace.
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Resolves when the operator is asked to end: finish what has begun, and begin nothing.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + Sync + 'static {
        self.stopped.clone().stopped()
    }
}

/// Runs the controllers while this replica leads, until SIGTERM or SIGINT. When the Lease named `name` is lost, the process starts
/// over at once, because another replica may be acting already.
///
/// # Errors
/// When the operator cannot start.
pub fn run<W>(name: &str, args: &ProcessArgs, controllers: impl FnOnce(Operator) -> W) -> Result<(), RunError>
where
    W: Future<Output = ()>,
{
    block_on(&args.log, operate(name, args, controllers))
}

async fn operate<W>(
    name: &str,
    args: &ProcessArgs,
    controllers: impl FnOnce(Operator) -> W,
) -> Result<(), RunError>
where
    W: Future<Output = ()>,
{
    let (client, default_namespace) = connect().await?;
    let namespace = args.namespace.clone().unwrap_or(default_namespace);
    serve(args.health_address, probes()).await?;

    let watched = names(&args.watch_namespace);
    info!(identity = args.identity, namespace, watched = ?watched, "started");

    let mut terms = Terms::new(&namespace, name, &args.identity);
    terms.duration = Duration::from_secs(args.lease_seconds.into());
    terms.renew_deadline = terms.duration.mul_f64(2.0 / 3.0);
    terms.retry = terms.retry.min(terms.duration / 5);
    let election = args.leader_election.then_some(&terms);
    lead(&client, election, |leadership, stopped| {
        controllers(Operator {
            client: client.clone(),
            namespace: namespace.clone(),
            watched,
            leadership,
            recorder: status::recorder(client.clone(), name, &args.identity),
            stopped,
        })
    })
    .await
}

/// Both answer as soon as the process runs: a replica that waits for the Lease is as healthy as the leader.
fn probes() -> Router {
    Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(|| async { "ok" }))
}
