//! From the start of an operator's process to its end: logs, a client, servers, the Lease, and signals.

use std::{io, net::SocketAddr, os::unix::process::CommandExt, process::Command, time::Duration};

use axum::Router;
use kube::{Client, Config};
use operator_lease::{End, Leadership, Terms, elect, release};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tracing::{error, info, warn};

use crate::telemetry::{self, chain};

/// How long reconciles that have begun may go on after SIGTERM. Kubernetes kills a pod after 30 seconds.
const GRACE: Duration = Duration::from_secs(20);

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

/// Tells controllers that the operator is to end.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Resolves when the operator is asked to end: finish what has begun, and begin nothing.
    pub async fn stopped(mut self) {
        // The sender is dropped only when the process ends.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}

/// A name for this replica, unique also where two processes of one machine try to lead.
pub fn default_identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}-{}", host.trim(), std::process::id())
}

/// Starts logging, and runs the operator until it ends. Where the Lease was lost, the process starts over.
///
/// # Errors
/// The log filter is invalid, the process gets no threads, or what the operator ended with.
pub fn block_on(filter: &str, operator: impl Future<Output = Result<(), RunError>>) -> Result<(), RunError> {
    telemetry::start(filter).map_err(|source| RunError::Filter { filter: filter.to_owned(), source })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(RunError::Process)?;
    let result = runtime.block_on(operator);
    // Watches never end by themselves.
    runtime.shutdown_background();
    if matches!(result, Err(RunError::LeaseLost)) {
        let error = start_over();
        error!(error = chain(&error), "cannot start over");
    }
    result
}

/// Runs this program anew in this process: whatever was going on has ended, as if the process had, and it waits for the Lease again.
/// Containers that end are started later and later by Kubernetes, and after the API server was away a few times, nobody would lead for
/// minutes when the other replica is lost. Returns only if that failed.
fn start_over() -> io::Error {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    match std::env::current_exe() {
        Ok(program) => Command::new(program).arg0(name).args(words).exec(),
        Err(error) => error,
    }
}

/// A client of the cluster that the environment names, and the namespace of the pod or of the current context.
///
/// # Errors
/// There is no such cluster, or its settings cannot be used.
pub async fn connect() -> Result<(Client, String), RunError> {
    // Fails only if one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = Config::infer().await.map_err(|error| RunError::Config(Box::new(error)))?;
    let namespace = config.default_namespace.clone();
    let client = Client::try_from(config).map_err(|error| RunError::Client(Box::new(error)))?;
    Ok((client, namespace))
}

/// Serves HTTP from now on, until the process ends.
///
/// # Errors
/// The port is taken.
pub async fn serve(address: SocketAddr, router: Router) -> Result<(), RunError> {
    let listener = TcpListener::bind(address).await.map_err(|source| RunError::Listen { address, source })?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(())
}

/// Waits for the Lease, runs the controllers while it is held, and releases it once they have ended after SIGTERM or SIGINT.
/// Without `terms` there is no election: the replica leads from the start.
///
/// # Errors
/// The process gets no signals, or the Lease was lost: the process must then end or start over at once, because another replica may
/// be acting.
pub async fn lead<W>(
    client: &Client,
    terms: Option<&Terms>,
    controllers: impl FnOnce(Leadership, Stop) -> W,
) -> Result<(), RunError>
where
    W: Future<Output = ()>,
{
    let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Process)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Process)?;
    let leadership = if terms.is_some() { Leadership::default() } else { Leadership::unopposed() };
    let (stop, stopped) = watch::channel(false);
    // The Lease is renewed until the controllers have ended.
    let (end_election, mut ended) = watch::channel(false);
    let election = {
        let (client, terms, leadership) = (client.clone(), terms.cloned(), leadership.clone());
        tokio::spawn(async move {
            let ended = async move {
                let _ = ended.wait_for(|ended| *ended).await;
            };
            match terms {
                Some(terms) => elect(client, &terms, &leadership, ended).await,
                None => {
                    ended.await;
                    End::Released
                }
            }
        })
    };
    let controllers = async {
        if terms.is_some() {
            leadership.acquired().await;
        }
        controllers(leadership.clone(), Stop(stopped)).await;
    };
    tokio::pin!(election, controllers);
    let mut grace = std::pin::pin!(tokio::time::sleep(Duration::MAX));
    loop {
        let asked = *stop.borrow();
        tokio::select! {
            _ = terminate.recv(), if !asked => {}
            _ = interrupt.recv(), if !asked => {}
            _ = &mut election => {
                error!("the lease was lost: starting over at once");
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
    if let (Ok(_), Some(terms)) = (election.await, terms) {
        release(client.clone(), terms, &leadership).await;
    }
    info!("stopped");
    Ok(())
}

/// Names joined by commas, as OLM joins them and as people do: sorted, each once.
pub fn names(joined: &str) -> Vec<String> {
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
