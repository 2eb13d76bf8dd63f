//! The program as a process of this machine, that ends with the value.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// One replica of the operator.
pub(crate) struct Replica {
    process: Child,
    dir: TempDir,
    /// Where it serves its metrics.
    pub(crate) metrics: u16,
}

impl Replica {
    /// Starts `redis-operator run` without webhooks, which the API server could not reach.
    pub(crate) fn start(kubeconfig: &Path, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let metrics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // `make bench` names the one that is in images.
        let built = || env!("CARGO_BIN_EXE_redis-operator").into();
        let program = std::env::var_os("REDIS_OPERATOR").unwrap_or_else(built);
        let process = Command::new(program)
            .args(["run", "--no-webhooks", "--health-address", "127.0.0.1:0"])
            .args(["--metrics-address", &format!("127.0.0.1:{metrics}")])
            .args(flags)
            .env("KUBECONFIG", kubeconfig)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { process, dir, metrics }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap()
    }

    pub(crate) fn signal(&mut self, signal: &str) {
        crate::signal::send(signal, self.id());
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ended(&mut self, within: Duration) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < within, "it goes on: {}", self.log());
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
