//! What every operator needs around its controllers: a client, logs, probes, signals, and a Lease so that one replica acts.
//!
//! Start at [`run`]. [`objects`] is for what controllers read and write, [`status`] for what they tell users: conditions and
//! Events. This crate knows nothing of what is reconciled.

pub mod backoff;
pub mod objects;
pub mod status;
pub mod telemetry;

use std::{io, net::SocketAddr, time::Duration};

use axum::{Router, routing::get};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Config, Resource, runtime::events::Recorder};
use operator_lease::{End, Leadership, Terms, elect, release};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tracing::{error, info, warn};

/// How long reconciles that have begun may go on after SIGTERM. Kubernetes kills a pod after 30 seconds.
const GRACE: Duration = Duration::from_secs(20);

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

/// Unique also where two processes of one machine try to lead.
fn default_identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}-{}", host.trim(), std::process::id())
}

/// Why an operator could not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The log filter cannot be parsed.
    #[error("invalid log filter `{filter}`")]
    Filter {
        /// The filter that was given.
        filter: String,
        /// What is wrong with it.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Neither a kubeconfig nor a service account was found.
    #[error("no cluster to connect to: set KUBECONFIG, or run in a pod")]
    Config(#[source] Box<kube::config::InferConfigError>),
    /// The kubeconfig or service account cannot be used.
    #[error("cannot create a client for the API server")]
    Client(#[source] Box<kube::Error>),
    /// The port is taken, for example.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address that was given.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// No threads or no signals.
    #[error("cannot set up the process")]
    Process(#[source] io::Error),
    /// Another replica leads, or may lead soon.
    #[error("the lease was lost: another replica may be the leader")]
    LeaseLost,
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
    stopped: watch::Receiver<bool>,
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
        let mut stopped = self.stopped.clone();
        async move {
            // The sender is dropped only when the process ends.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }
    }
}

/// Runs the controllers while this replica leads, until SIGTERM, SIGINT, or the loss of the Lease named `name`.
///
/// # Errors
/// When the operator cannot start, or has lost the Lease. The process must then end at once, because another replica may
/// be acting already.
pub fn run<W>(name: &str, args: &ProcessArgs, controllers: impl FnOnce(Operator) -> W) -> Result<(), RunError>
where
    W: Future<Output = ()>,
{
    telemetry::start(&args.log).map_err(|source| RunError::Filter { filter: args.log.clone(), source })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(RunError::Process)?;
    let result = runtime.block_on(operate(name, args, controllers));
    // Watches never end by themselves.
    runtime.shutdown_background();
    result
}

async fn operate<W>(
    name: &str,
    args: &ProcessArgs,
    controllers: impl FnOnce(Operator) -> W,
) -> Result<(), RunError>
where
    W: Future<Output = ()>,
{
    // Fails only if one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = Config::infer().await.map_err(|error| RunError::Config(Box::new(error)))?;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = Client::try_from(config).map_err(|error| RunError::Client(Box::new(error)))?;
    serve_probes(args.health_address).await?;

    let (stop, stopped) = watch::channel(false);
    let operator = Operator {
        client: client.clone(),
        namespace: namespace.clone(),
        watched: names(&args.watch_namespace),
        leadership: if args.leader_election { Leadership::default() } else { Leadership::unopposed() },
        recorder: status::recorder(client.clone(), name, &args.identity),
        stopped,
    };
    info!(identity = args.identity, namespace, watched = ?operator.watched, "started");

    let mut terms = Terms::new(&namespace, name, &args.identity);
    terms.duration = Duration::from_secs(args.lease_seconds.into());
    terms.renew_deadline = terms.duration.mul_f64(2.0 / 3.0);
    terms.retry = terms.retry.min(terms.duration / 5);
    lead(args.leader_election, &terms, operator, &stop, controllers).await
}

/// Waits for the Lease, runs the controllers while it is held, and gives it back.
async fn lead<W>(
    election_wanted: bool,
    terms: &Terms,
    operator: Operator,
    stop: &watch::Sender<bool>,
    controllers: impl FnOnce(Operator) -> W,
) -> Result<(), RunError>
where
    W: Future<Output = ()>,
{
    let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Process)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Process)?;
    let (client, leadership) = (operator.client.clone(), operator.leadership.clone());
    // The Lease is renewed until the controllers have ended.
    let (end_election, mut ended) = watch::channel(false);
    let election = {
        let (client, terms, leadership) = (client.clone(), terms.clone(), leadership.clone());
        tokio::spawn(async move {
            let ended = async move {
                let _ = ended.wait_for(|ended| *ended).await;
            };
            if election_wanted {
                elect(client, &terms, &leadership, ended).await
            } else {
                ended.await;
                End::Released
            }
        })
    };
    let controllers = async {
        if election_wanted {
            leadership.acquired().await;
        }
        controllers(operator).await;
    };
    tokio::pin!(election, controllers);
    let mut grace = std::pin::pin!(tokio::time::sleep(Duration::MAX));
    loop {
        let asked = *stop.borrow();
        tokio::select! {
            _ = terminate.recv(), if !asked => {}
            _ = interrupt.recv(), if !asked => {}
            _ = &mut election => {
                error!("the lease was lost: ending at once");
                return Err(RunError::LeaseLost);
            }
            () = &mut controllers => break,
            () = &mut grace => {
                warn!("reconciles did not end in time");
                break;
            }
        }
        info!("stopping");
        stop.send_replace(true);
        grace.as_mut().reset(tokio::time::Instant::now() + GRACE);
        // A replica that only waits has nothing to finish.
        if !leadership.leads() {
            break;
        }
    }
    end_election.send_replace(true);
    if election.await.is_ok() && election_wanted {
        release(client, terms, &leadership).await;
    }
    info!("stopped");
    Ok(())
}

/// Both answer as soon as the process runs: a replica that waits for the Lease is as healthy as the leader.
async fn serve_probes(address: SocketAddr) -> Result<(), RunError> {
    let listener = TcpListener::bind(address).await.map_err(|source| RunError::Listen { address, source })?;
    let router =
        Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(|| async { "ok" }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(())
}

/// Names joined by commas, as OLM joins them and as people do.
fn names(joined: &str) -> Vec<String> {
    let mut names: Vec<String> =
        joined.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_read_as_olm_and_people_write_them() {
        assert_eq!(names(""), [""; 0]);
        assert_eq!(names("a"), ["a"]);
        assert_eq!(names(" b , a ,,b"), ["a", "b"]);
    }
}
