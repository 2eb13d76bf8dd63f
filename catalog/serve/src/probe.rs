//! The catalog server under the name `grpc_health_probe`: asks a server whether it is ready, and says so by its exit code.
//!
//! OLM's startup probe runs that program in the container of a catalog, so an image of ours carries the name as a link to the server.
//! Command line and exit codes are those of <https://github.com/grpc-ecosystem/grpc-health-probe>, without its TLS.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// The name that makes the catalog server its own probe.
const PROBE: &str = "grpc_health_probe";

/// Ask a gRPC server whether it is ready.
#[derive(Debug, Parser)]
#[command(name = PROBE, max_term_width = 100)]
struct Probe {
    /// The server's address; without a host it is this machine
    #[arg(long, value_name = "HOST:PORT")]
    addr: String,
    /// The service to ask about [default: the whole server]
    #[arg(long, default_value = "", hide_default_value = true)]
    service: String,
    /// How long to wait for a connection, such as `500ms` or `2s`
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    connect_timeout: Duration,
    /// How long to wait for the answer
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    rpc_timeout: Duration,
}

/// Why a server counts as not ready.
#[derive(Debug, thiserror::Error)]
enum NotReady {
    #[error("cannot start")]
    Start(#[from] io::Error),
    #[error("cannot connect to `{address}`")]
    Connect { address: String, source: tonic::transport::Error },
    #[error("no answer from `{address}`: {status}")]
    Answer { address: String, status: tonic::Status },
    #[error("`{address}` answers {status}")]
    Status { address: String, status: &'static str },
}

impl NotReady {
    fn code(&self) -> u8 {
        match self {
            Self::Start(_) => 1,
            Self::Connect { .. } => 2,
            Self::Answer { .. } => 3,
            Self::Status { .. } => 4,
        }
    }
}

/// Whether a command line, program name first, is that of the probe.
pub fn is_probe(args: &[OsString]) -> bool {
    args.first().is_some_and(|program| Path::new(program).file_name().is_some_and(|name| name == PROBE))
}

/// Runs the probe with a command line, program name first. The exit code is 0 when the server is ready, 1 for a wrong command line,
/// 2 without a connection, 3 without an answer, 4 when the server is not ready.
pub fn probe(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let probe = match Probe::try_parse_from(args.into_iter().map(with_two_dashes)) {
        Ok(probe) => probe,
        Err(error) => {
            // A stream that is gone cannot be told so.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(1) } else { ExitCode::SUCCESS };
        }
    };
    let asked = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(NotReady::from)
        .and_then(|runtime| runtime.block_on(ask(&probe)));
    // Neither can it be told here; the exit code counts.
    match asked {
        Ok(()) => {
            let _ = writeln!(io::stdout(), "status: SERVING");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {}", super::chain(&error));
            ExitCode::from(error.code())
        }
    }
}

async fn ask(probe: &Probe) -> Result<(), NotReady> {
    let address = match probe.addr.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}"),
        None => probe.addr.clone(),
    };
    let connect = |source| NotReady::Connect { address: address.clone(), source };
    let channel = Endpoint::from_shared(format!("http://{address}"))
        .map_err(connect)?
        .connect_timeout(probe.connect_timeout)
        .timeout(probe.rpc_timeout)
        .connect()
        .await
        .map_err(connect)?;
    let request = HealthCheckRequest { service: probe.service.clone() };
    let answer = HealthClient::new(channel).check(request).await;
    let status = answer.map_err(|status| NotReady::Answer { address: address.clone(), status })?.into_inner();
    match status.status() {
        ServingStatus::Serving => Ok(()),
        status => Err(NotReady::Status { address, status: status.as_str_name() }),
    }
}

/// Go's programs take long flags with one dash too.
fn with_two_dashes(argument: OsString) -> OsString {
    match argument.to_str().and_then(|text| text.strip_prefix('-')) {
        Some(flag) if flag.len() > 1 && !flag.starts_with('-') => format!("--{flag}").into(),
        _ => argument,
    }
}

/// A duration with one unit, as Go writes it: `500ms`, `2s`, `1.5m`.
fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0)];
    let seconds = units
        .iter()
        .find_map(|(unit, seconds)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * seconds));
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "expected a duration such as `500ms` or `2s`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Probe {
        Probe::try_parse_from(line.split(' ').map(|word| with_two_dashes(word.into()))).unwrap()
    }

    #[test]
    fn the_command_line_is_that_of_go() {
        let probe =
            parsed("grpc_health_probe -addr=:50051 -connect-timeout 250ms --rpc-timeout=1.5m -service x");
        assert_eq!((probe.addr.as_str(), probe.service.as_str()), (":50051", "x"));
        assert_eq!(
            (probe.connect_timeout, probe.rpc_timeout),
            (Duration::from_millis(250), Duration::from_secs(90))
        );
        assert!(["", "5", "s", "-1s", "x ms"].iter().all(|wrong| duration(wrong).is_err()));
    }
}
