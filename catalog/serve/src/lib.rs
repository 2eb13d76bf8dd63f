//! The catalog server: `api.Registry` over gRPC for OLM v0 and JSON lines over HTTP for OLM v1, from one compiled catalog.
//!
//! It listens at once, is ready as soon as a compiled catalog is open, and holds no more of the catalog in memory than its index:
//! answers are slices of the file. When the catalog's files or the compiled catalog change, it opens the new one for new requests,
//! lets answers under way end with the old one, and asks clients to connect again, which is how OLM notices.
//!
//! - [`compiled`] makes that one file of a catalog, and answers from it; nothing in it is asynchronous;
//! - [`run`] is the server, as a [`Config`] or the [`Flags`] of a command line want it: `connection` has the way of a request,
//!   `registry` the answers, `reload` the catalog's life.
//!
//! The program `olmkit-serve` is this crate alone, for catalog images.
//!
//! ```no_run
//! #[derive(clap::Parser)]
//! struct Serve {
//!     #[command(flatten)]
//!     flags: olmkit_serve::Flags,
//! }
//!
//! let command = <Serve as clap::Parser>::parse_from(["serve", "catalog"]);
//! olmkit_serve::run(&command.flags.config(Vec::new()))?;
//! # Ok::<(), olmkit_serve::ServeError>(())
//! ```

pub mod compiled;
mod connection;
mod flags;
mod health;
mod http;
mod log;
mod metrics;
mod probe;
mod registry;
mod reload;
mod tls;
mod unread;

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, watch};
use tracing::{error, info, warn};

use crate::compiled::{BuildError, Compiled, OpenError};

pub use flags::Flags;
pub use log::start as start_log;
pub use probe::{is_probe, probe};
pub use registry::Raw;

/// How a catalog is served.
#[derive(Clone, Debug)]
pub struct Config {
    /// The catalog's directory, unless there is a compiled catalog alone.
    pub catalog: Option<PathBuf>,
    /// The compiled catalog. It is made when it is missing, or made anew when it is stale or damaged; without a path it is made
    /// in a temporary file.
    pub index: Option<PathBuf>,
    /// Whether a compiled catalog that is stale or damaged ends the program instead.
    pub enforce: bool,
    /// Where to listen for gRPC, and for HTTP unless that has an address of its own.
    pub address: SocketAddr,
    /// Where to listen for HTTP alone, in the clear.
    pub http_address: Option<SocketAddr>,
    /// The files with certificate chain and key in PEM; without them connections are in the clear.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// How often files are looked at for changes; never when zero.
    pub reload_interval: Duration,
    /// How long answers under way may take after the program was asked to end.
    pub grace: Duration,
    /// What clients may take.
    pub limits: Limits,
    /// The program that compiles catalogs: `CATALOG --to FILE` is added. Its memory ends with it. When empty, it is done here.
    pub builder: Vec<OsString>,
}

/// What clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many connections at once.
    pub connections: u32,
    /// How many requests at once on a connection.
    pub streams: u32,
    /// How long a client may leave an answer unread before its connection is closed.
    pub stall: Duration,
}

/// A server that could not start, or had to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is taken, or not one of this machine.
    #[error("cannot listen at `{address}`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The asynchronous runtime does not start.
    #[error("cannot start")]
    Start(#[source] io::Error),
    /// There is neither a catalog nor a compiled one.
    #[error("there is nothing to serve: neither a catalog nor a compiled one")]
    Nothing,
    /// The compiled catalog cannot be used, and there is no catalog to make one of, or it must not be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The compiled catalog is not of the catalog's files, and must not be made anew.
    #[error("the compiled catalog `{index}` is stale: it is not of the files in `{catalog}`")]
    Stale {
        /// The compiled catalog.
        index: PathBuf,
        /// The catalog's directory.
        catalog: PathBuf,
    },
    /// The catalog cannot be read.
    #[error(transparent)]
    Load(#[from] olmkit_catalog::load::LoadError),
    /// The catalog cannot be compiled.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The program that compiles catalogs says why not.
    #[error("cannot compile `{catalog}`: {message}")]
    Builder {
        /// The catalog.
        catalog: PathBuf,
        /// What it says.
        message: String,
    },
    /// Certificate or key cannot be used.
    #[error("cannot use the certificate `{path}`: {message}")]
    Tls {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
}

/// A catalog that is served.
#[derive(Debug)]
struct Serving {
    compiled: Compiled,
    /// When it came to be: the time of the file, or of its opening when that is an image's, which have none.
    since: SystemTime,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    /// The catalog, once there is one.
    catalog: watch::Sender<Option<Arc<Serving>>>,
    /// Set when the program is to end.
    ending: watch::Sender<bool>,
    /// Wakes who looks after the catalog: somebody found it damaged.
    damaged: Notify,
    metrics: metrics::Metrics,
    limits: Limits,
}

impl Shared {
    fn catalog(&self) -> Option<Arc<Serving>> {
        self.catalog.borrow().clone()
    }
}

/// Serves until the program is asked to end by SIGTERM or SIGINT.
///
/// # Errors
/// It cannot listen, or there is nothing that could be served.
pub fn run(config: &Config) -> Result<(), ServeError> {
    // What is idle costs nothing; two can answer while one of them waits for a disk.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(4)
        .enable_all()
        .build()
        .map_err(ServeError::Start)?;
    let result = runtime.block_on(serve(config));
    // Work on a catalog that nobody is going to see is not waited for.
    runtime.shutdown_background();
    result
}

async fn serve(config: &Config) -> Result<(), ServeError> {
    more_files();
    let tls = config.tls.as_ref().map(|(cert, key)| tls::Tls::load(cert, key)).transpose()?.map(Arc::new);
    let (listener, address) = listen(config.address)?;
    let http = config.http_address.map(listen).transpose()?;
    let http_address = http.as_ref().map_or(address, |(_, address)| *address);
    let shared = Arc::new(Shared {
        catalog: watch::Sender::new(None),
        ending: watch::Sender::new(false),
        damaged: Notify::new(),
        metrics: metrics::Metrics::default(),
        limits: config.limits,
    });
    let gate = connection::Acceptor::new(shared.clone())?;
    tokio::spawn(gate.clone().accept(listener, tls.clone(), connection::Speaks::Everything));
    if let Some((http, _)) = http {
        tokio::spawn(gate.clone().accept(http, None, connection::Speaks::Http));
    }
    let said = |serving: &Serving| {
        let (packages, bundles) = serving.compiled.counts();
        let digest = serving.compiled.fingerprint().to_hex();
        info!(msg = "serving", grpc = %address, http = %http_address, tls = tls.is_some(), packages, bundles, digest);
    };
    let mut keeper = reload::Reloader::new(config, shared.clone());
    let mut end = Signals::new().map_err(ServeError::Start)?;
    let hangup = signal(SignalKind::hangup()).map_err(ServeError::Start)?;
    tokio::select! {
        opened = keeper.open() => said(&*opened?),
        () = end.received() => return Ok(()),
    }
    tokio::select! {
        () = keeper.keep(tls.clone(), hangup) => {}
        () = end.received() => {}
    }
    info!(msg = "ending", grace_seconds = config.grace.as_secs());
    shared.ending.send_replace(true);
    if tokio::time::timeout(config.grace, gate.empty()).await.is_err() {
        warn!(msg = "some answers did not end in time");
    }
    Ok(())
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let open = || {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((TcpListener::from_std(listener)?, address))
    };
    open().map_err(|source| ServeError::Listen { address, source })
}

/// Allows as many open files as the system lets a program have: a thousand clients are as many sockets, and the usual limit for
/// programs that do not ask is 1,024.
fn more_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        warn!(msg = "cannot raise the number of open files", error = %error);
    }
}

/// The signals that end the program.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for one of them.
    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// An error with its causes, as one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// Says in the log that a part of the file is not what it was, and has it made anew.
fn report_damage(shared: &Shared, error: &crate::compiled::Corrupt) {
    error!(msg = "the compiled catalog is damaged", error = %error);
    shared.damaged.notify_one();
}
