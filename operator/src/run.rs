//! The operator process: flags and environment, startup and shutdown.
//!
//! Every replica watches, and serves webhooks, metrics and probes; the one that holds the Lease reconciles. On SIGTERM,
//! running reconciles end and the Lease is released, so that the next leader starts at once. When the Lease is lost, the
//! process starts over, since another replica may be acting.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, extract::State, http::StatusCode, routing::get};
use clap::Args;
use kube::Client;
use operator_lease::{Leadership, Terms};
use operator_process::{Stop, block_on, connect, default_identity, lead, names, serve, status};
use tokio::{sync::watch, task::JoinSet};
use tracing::{info, warn};

use crate::{
    controller::{Context, Scope, cache::Caches, children, children::Defaults, upgradeable::Upgradeable},
    manifests::{NAME, NAMESPACE},
    metrics::Metrics,
    telemetry::chain,
    webhook::{self, tls},
};

pub use operator_process::RunError;

/// Run the operator
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// Namespaces to watch, separated by commas; empty for all
    #[arg(long, env = "WATCH_NAMESPACE", default_value = "", value_name = "NAMES")]
    watch_namespace: String,

    /// Namespace of the operator, for its Lease and its certificate
    #[arg(long, env = "POD_NAMESPACE", default_value = NAMESPACE, value_name = "NAME")]
    namespace: String,

    /// Unique identity of this replica, for the Lease
    #[arg(long, env = "POD_NAME", default_value_t = default_identity(), value_name = "NAME")]
    identity: String,

    /// Reconcile without a Lease; only for a single replica
    #[arg(long, env = "REDIS_OPERATOR_NO_LEADER_ELECTION")]
    no_leader_election: bool,

    /// Clusters to reconcile concurrently
    #[arg(long, env = "REDIS_OPERATOR_CONCURRENCY", default_value_t = 8, value_name = "N")]
    concurrency: u16,

    /// DNS domain of the Kubernetes cluster
    #[arg(
        long,
        env = "REDIS_OPERATOR_CLUSTER_DOMAIN",
        default_value = "cluster.local",
        value_name = "DOMAIN"
    )]
    cluster_domain: String,

    /// `cluster-node-timeout` of Redis: silence after which a node is marked as failed, in milliseconds
    #[arg(long, env = "REDIS_OPERATOR_NODE_TIMEOUT", default_value_t = Defaults::default().node_timeout_ms, value_name = "MS",
        value_parser = clap::value_parser!(u32).range(500..=600_000))]
    node_timeout: u32,

    /// Whether the Kubernetes cluster chooses the users of pods, as OpenShift does; asked of the API server when left out
    #[arg(long, env = "REDIS_OPERATOR_OPENSHIFT", value_name = "BOOL")]
    openshift: Option<bool>,

    /// Address of /metrics
    #[arg(
        long,
        env = "REDIS_OPERATOR_METRICS_ADDRESS",
        default_value = "0.0.0.0:8080",
        value_name = "IP:PORT"
    )]
    metrics_address: SocketAddr,

    /// Address of /healthz and /readyz
    #[arg(
        long,
        env = "REDIS_OPERATOR_HEALTH_ADDRESS",
        default_value = "0.0.0.0:8081",
        value_name = "IP:PORT"
    )]
    health_address: SocketAddr,

    /// Address of the webhooks
    #[arg(
        long,
        env = "REDIS_OPERATOR_WEBHOOK_ADDRESS",
        default_value = "0.0.0.0:9443",
        value_name = "IP:PORT"
    )]
    webhook_address: SocketAddr,

    /// Disable the webhooks, for example outside a cluster, where the API server cannot reach them
    #[arg(long, env = "REDIS_OPERATOR_NO_WEBHOOKS")]
    no_webhooks: bool,

    /// Directory with tls.crt and tls.key; without them, the operator creates a certificate
    #[arg(
        long,
        env = "REDIS_OPERATOR_CERTIFICATES",
        default_value = "/tmp/k8s-webhook-server/serving-certs",
        value_name = "DIR"
    )]
    certificates: PathBuf,

    /// Name of the OperatorCondition that tells OLM whether it may upgrade; set by OLM
    #[arg(long, env = "OPERATOR_CONDITION_NAME", value_name = "NAME")]
    operator_condition: Option<String>,

    /// Log filter: a level, or `target=level` separated by commas
    #[arg(long, env = "REDIS_OPERATOR_LOG", default_value = "info", value_name = "FILTER")]
    log: String,
}

const EXAMPLES: &str = "\
Every flag can also be set by its environment variable.

Examples:
  Run outside the cluster, on the current kubectl context:
    redis-operator run --no-webhooks --no-leader-election

  Watch two namespaces:
    redis-operator run --watch-namespace team-a,team-b";

/// State of the readiness probe.
#[derive(Clone)]
struct Readiness {
    synced: Arc<AtomicBool>,
    certificate: Option<tls::Current>,
}

/// Runs until SIGTERM or SIGINT. When the Lease is lost, the process starts over.
///
/// # Errors
/// When it cannot start.
pub fn run(args: RunArgs) -> Result<(), RunError> {
    let filter = args.log.clone();
    block_on(&filter, operate(args))
}

async fn operate(args: RunArgs) -> Result<(), RunError> {
    let (client, _) = connect().await?;
    let metrics = Arc::new(Metrics::default());
    let mut tasks = JoinSet::new();

    let readiness =
        Readiness { synced: Arc::default(), certificate: (!args.no_webhooks).then(tls::Current::default) };
    serve(args.health_address, probes(readiness.clone())).await?;
    serve(args.metrics_address, metrics_router(metrics.clone())).await?;
    if let Some(certificate) = &readiness.certificate {
        webhooks(&args, &client, certificate, &metrics, &mut tasks).await?;
    }

    let namespaces = names(&args.watch_namespace);
    let watched: Vec<Option<&str>> = if namespaces.is_empty() {
        vec![None]
    } else {
        namespaces.iter().map(|name| Some(&**name)).collect()
    };
    let caches: Vec<Arc<Caches>> =
        watched.iter().map(|namespace| Caches::start(&client, *namespace, &metrics, &mut tasks)).collect();
    info!(version = env!("CARGO_PKG_VERSION"), identity = args.identity, namespaces = ?namespaces, "started");
    // One waits for all: of two that wait for the same cache, one might not be woken.
    let (all_synced, synced_at_last) = watch::channel(false);
    {
        let (caches, synced) = (caches.clone(), readiness.synced.clone());
        tasks.spawn(async move {
            for caches in &caches {
                caches.synced().await;
            }
            synced.store(true, Ordering::Relaxed);
            all_synced.send_replace(true);
            info!("caches synced");
        });
    }
    let openshift = match args.openshift {
        Some(openshift) => openshift,
        None => is_openshift(&client).await,
    };
    let terms = Terms::new(&args.namespace, NAME, &args.identity);
    let election = (!args.no_leader_election).then_some(&terms);
    let led = lead(&client, election, |leadership, stop| {
        let context = Arc::new(context(&args, &client, leadership, metrics.clone(), openshift));
        reconcile(&args, context, caches, synced_at_last, stop, &mut tasks)
    })
    .await;
    metrics.leading(false);
    led
}

/// Whether the Kubernetes cluster is OpenShift. Asks until the API server answers.
async fn is_openshift(client: &Client) -> bool {
    loop {
        match client.list_api_groups().await {
            Ok(list) => return list.groups.iter().any(|group| group.name == "security.openshift.io"),
            Err(error) => warn!(error = chain(&error), "the API server does not say which APIs it has"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What every reconcile needs.
fn context(
    args: &RunArgs,
    client: &Client,
    leadership: Leadership,
    metrics: Arc<Metrics>,
    openshift: bool,
) -> Context {
    Context {
        client: client.clone(),
        installation: args.namespace.clone(),
        leadership,
        metrics,
        defaults: Defaults {
            cluster_domain: args.cluster_domain.clone(),
            node_timeout_ms: args.node_timeout,
            openshift,
        },
        port: children::PORT,
        recorder: status::recorder(client.clone(), NAME, &args.identity),
        upgradeable: Upgradeable::default(),
    }
}

/// Reconciles as the leader.
async fn reconcile(
    args: &RunArgs,
    context: Arc<Context>,
    caches: Vec<Arc<Caches>>,
    mut synced: watch::Receiver<bool>,
    stop: Stop,
    tasks: &mut JoinSet<()>,
) {
    context.metrics.leading(true);
    if let Some(name) = args.operator_condition.clone() {
        let (context, namespace) = (context.clone(), args.namespace.clone());
        tasks.spawn(async move {
            context.upgradeable.publish(context.client.clone(), &namespace, &name).await;
        });
    }
    // The sender goes only when the process ends.
    let _ = synced.wait_for(|synced| *synced).await;
    let mut scopes = JoinSet::new();
    for caches in caches {
        let scope = Scope::new(context.clone(), caches);
        scopes.spawn(scope.run(args.concurrency.max(1), stop.clone()));
    }
    scopes.join_all().await;
}

async fn webhooks(
    args: &RunArgs,
    client: &Client,
    certificate: &tls::Current,
    metrics: &Arc<Metrics>,
    tasks: &mut JoinSet<()>,
) -> Result<(), RunError> {
    let address = args.webhook_address;
    let listen = |source| RunError::Listen { address, source };
    let listener = tls::Listener::bind(address, certificate.clone()).await.map_err(listen)?;
    let router = webhook::router(client.clone(), metrics.clone());
    tasks.spawn(async move { axum::serve(listener, router).await.unwrap_or_default() });
    if args.certificates.join("tls.crt").exists() || args.operator_condition.is_some() {
        tasks.spawn(certificate.clone().follow(args.certificates.clone()));
    } else {
        let (client, namespace, certificate) = (client.clone(), args.namespace.clone(), certificate.clone());
        tasks.spawn(async move {
            while let Err(error) = certificate.make(&client, &namespace).await {
                warn!(error = chain(&error), "no certificate for the webhooks yet");
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            info!("serving webhooks with a certificate of the operator");
        });
    }
    Ok(())
}

/// Readiness does not depend on leadership: every replica serves webhooks.
fn probes(readiness: Readiness) -> Router {
    let ready = |State(readiness): State<Readiness>| async move {
        if !readiness.synced.load(Ordering::Relaxed) {
            return (StatusCode::SERVICE_UNAVAILABLE, "caches are not synced");
        }
        if readiness.certificate.is_some_and(|certificate| !certificate.is_loaded()) {
            return (StatusCode::SERVICE_UNAVAILABLE, "no webhook certificate");
        }
        (StatusCode::OK, "ok")
    };
    Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(ready)).with_state(readiness)
}

fn metrics_router(metrics: Arc<Metrics>) -> Router {
    let text = |State(metrics): State<Arc<Metrics>>| async move {
        ([("content-type", "application/openmetrics-text; version=1.0.0; charset=utf-8")], metrics.text())
    };
    Router::new().route("/metrics", get(text)).with_state(metrics)
}
