//! The flags of `olmkit catalog serve` and `olmkit-serve`. They are here and not with the other commands' because both programs have
//! them, and the second must not bring the first along.
//!
//! Those that `opm serve` has are taken as well, so that a pod's or a script's command line still works.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::compiled::FILE_NAME;
use crate::{Config, Limits};

/// How a catalog is served.
#[derive(Debug, Args)]
pub struct Flags {
    /// Directory of the catalog; not needed with a compiled catalog
    #[arg(value_name = "CATALOG", required_unless_present_any = ["index", "cache_dir"])]
    pub catalog: Option<PathBuf>,
    /// Compiled catalog, created if it is missing, stale or damaged [default: a temporary file]
    #[arg(long, value_name = "FILE", conflicts_with = "cache_dir")]
    pub index: Option<PathBuf>,
    /// Port to listen on; 0 chooses a free one, which the log names
    #[arg(short, long, value_name = "PORT", default_value_t = 50051)]
    pub port: u16,
    /// Address to listen on [default: all addresses of the machine]
    #[arg(long, value_name = "IP")]
    pub address: Option<IpAddr>,
    /// Separate port for HTTP without TLS; otherwise HTTP shares the gRPC port
    #[arg(long, value_name = "PORT")]
    pub http_port: Option<u16>,
    /// Certificate chain in PEM format, reloaded when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key in PEM format
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Seconds between checks for changed files; 0 disables them, and SIGHUP checks at once
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub reload_interval: Duration,
    /// Seconds that running requests may take at shutdown
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    pub grace: Duration,
    /// Maximum number of connections
    #[arg(long, value_name = "COUNT", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections: u32,
    /// Maximum number of concurrent requests per connection
    #[arg(long, value_name = "COUNT", default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_streams: u32,
    /// Seconds that a client may leave an answer unread before its connection is closed
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub stall_timeout: Duration,
    /// Log debugging details
    #[arg(long)]
    pub debug: bool,
    /// Directory with the compiled catalog, `catalog.olmkit`
    #[arg(long, value_name = "DIR", help_heading = "Flags of opm serve")]
    pub cache_dir: Option<PathBuf>,
    /// Create the compiled catalog and exit
    #[arg(long, help_heading = "Flags of opm serve")]
    pub cache_only: bool,
    /// Exit with an error if the compiled catalog is stale or damaged, instead of recreating it
    #[arg(long, help_heading = "Flags of opm serve", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = clap::ArgAction::Set)]
    pub cache_enforce_integrity: bool,
    /// File that receives the reason for the exit, in addition to the log
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "/dev/termination-log",
        help_heading = "Flags of opm serve"
    )]
    pub termination_log: PathBuf,
    /// Ignored
    #[arg(long, value_name = "ADDRESS", hide = true)]
    pub pprof_addr: Option<String>,
    /// Ignored
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub pprof_capture_profiles: Option<bool>,
}

impl Flags {
    /// The compiled catalog that the flags name.
    pub fn index(&self) -> Option<PathBuf> {
        self.index.clone().or_else(|| Some(self.cache_dir.as_ref()?.join(FILE_NAME)))
    }

    /// What the flags say; `builder` is [`Config::builder`].
    pub fn config(&self, builder: Vec<OsString>) -> Config {
        // All addresses of both families, where the machine has both.
        let address = |port| match self.address {
            Some(ip) => SocketAddr::new(ip, port),
            None if has_ipv6() => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
            None => SocketAddr::from(([0, 0, 0, 0], port)),
        };
        Config {
            catalog: self.catalog.clone(),
            index: self.index(),
            enforce: self.cache_enforce_integrity,
            address: address(self.port),
            http_address: self.http_port.map(address),
            tls: self.tls_cert.clone().zip(self.tls_key.clone()),
            reload_interval: self.reload_interval,
            grace: self.grace,
            limits: Limits {
                connections: self.max_connections,
                streams: self.max_streams,
                stall: self.stall_timeout,
            },
            builder,
        }
    }

    /// Says why the program ends where Kubernetes looks for it. Where there is no such place, the log has it.
    pub fn write_termination_log(&self, message: &str) {
        // It is there in a pod, and must not be made anywhere else.
        if self.termination_log.exists() {
            let _ = std::fs::write(&self.termination_log, message);
        }
    }
}

fn has_ipv6() -> bool {
    std::net::UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok()
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected a number of seconds".into())
}
