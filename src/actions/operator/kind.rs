//! A cluster for one command: made by kind, given OLM, and deleted again.

use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::actions::olm;
use crate::actions::program::{self, Ended, Output};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::lifecycle::engine::{Options, Progress};
use crate::lifecycle::kubernetes::Choice;

/// What the names of our clusters begin with.
const PREFIX: &str = "olmkit-test-";
/// How long kind may take to say which clusters there are.
const LISTING: Duration = Duration::from_secs(60);
/// How long deleting a cluster may take, after the time of the command.
const DELETING: Duration = Duration::from_secs(120);
/// Names of clusters are short; this is what is read of them, in bytes.
const MAX_NAMES: u64 = 1 << 20;

/// What the cluster is made of.
#[derive(Clone, Debug)]
pub struct Kind {
    /// kind's own configuration, such as for a registry on this machine.
    pub config: Option<PathBuf>,
    /// OLM's manifests, and what is changed in them.
    pub olm: olm::Request,
    /// Whether the cluster stays.
    pub keep: bool,
}

/// A cluster that exists, or that kind was asked to make.
struct Made<'p> {
    name: String,
    keep: bool,
    progress: &'p dyn Progress,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        let name = &self.name;
        if self.keep {
            self.progress.said(Duration::ZERO, &format!("the cluster stays: `kind export kubeconfig --name {name}` reaches it, `kind delete cluster --name {name}` removes it"));
            return;
        }
        self.progress.said(Duration::ZERO, &format!("deleting the kind cluster {name}"));
        if let Err(why) = delete(name) {
            let text = format!(
                "the kind cluster {name} could not be deleted ({why}); run `kind delete cluster --name {name}`"
            );
            self.progress.said(Duration::ZERO, &text);
        }
    }
}

/// Makes a cluster with OLM, works on it by its kubeconfig for the time that is left, and deletes it, however the work ends.
///
/// # Errors
/// kind is not there or fails, OLM cannot be installed, or the work fails.
pub fn on_cluster<T>(
    kind: &Kind,
    limit: Duration,
    progress: &dyn Progress,
    work: impl FnOnce(&Path, Duration) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // Held until the cluster is deleted: a signal ends the work, and the process after that.
    let _work = interrupt::work();
    // What the manifests lack is said before minutes are spent on a cluster.
    olm::check(&kind.olm, limit)?;
    let begun = Instant::now();
    let left = || limit.saturating_sub(begun.elapsed());
    let listed = kind_says(&["get", "clusters"], LISTING.min(limit))?;
    let there = String::from_utf8_lossy(&listed.stdout).into_owned();
    for old in there.lines().filter(|name| name.starts_with(PREFIX)) {
        let text = format!(
            "the kind cluster {old} of another run exists; if that has ended, `kind delete cluster --name {old}` removes it"
        );
        progress.said(begun.elapsed(), &text);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let name = format!("{PREFIX}{now:x}-{}", std::process::id());
    if there.lines().any(|line| line == name) {
        return Err(Failure::unknown(format!("there is a kind cluster `{name}` already"))
            .help("run the command again"));
    }
    let directory = tempfile::tempdir().map_err(Failure::unknown)?;
    let kubeconfig = directory.path().join("kubeconfig");

    progress.said(begun.elapsed(), &format!("making the kind cluster {name}"));
    let cluster = Made { name: name.clone(), keep: kind.keep, progress };
    let mut words = vec!["create".as_ref(), "cluster".as_ref(), "--name".as_ref(), name.as_ref()];
    words.extend(["--wait".as_ref(), "5m".as_ref(), "--kubeconfig".as_ref(), kubeconfig.as_os_str()]);
    if let Some(config) = &kind.config {
        words.extend(["--config".as_ref(), config.as_os_str()]);
    }
    kind_says(&words, left())?;

    progress.said(begun.elapsed(), "installing OLM on it");
    let choice = Choice { kubeconfig: Some(kubeconfig.clone()), ..Choice::default() };
    let options = Options { timeout: left(), wait: true, ..Options::default() };
    olm::run(&choice, &olm::Verb::Install(kind.olm.clone()), &options, progress)?;
    let done = work(&kubeconfig, left());
    drop(cluster);
    done
}

/// Runs kind to its end.
fn kind_says<S: AsRef<std::ffi::OsStr>>(words: &[S], limit: Duration) -> Result<Output, Failure> {
    let shown: Vec<_> = words.iter().map(|word| word.as_ref().to_string_lossy()).collect();
    let shown = format!("kind {}", shown.join(" "));
    let mut command = Command::new("kind");
    command.args(words).stderr(Stdio::piped());
    let ended = program::run(&mut command, Instant::now().checked_add(limit), MAX_NAMES).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            Failure::unknown("kind is not installed").help(
                "install kind (https://kind.sigs.k8s.io) and Docker; or name a cluster with --context, or test in memory with --simulate",
            )
        } else {
            Failure::unknown(format!("cannot run `{shown}`: {error}"))
        }
    })?;
    match ended {
        Ended::Itself(output) if output.status.success() => Ok(output),
        Ended::Itself(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim();
            let why = if said.is_empty() { output.status.to_string() } else { said.to_owned() };
            Err(Failure::unknown(format!("`{shown}` failed: {why}"))
                .help("kind needs Docker, Podman or nerdctl, and room on the disk; `docker info` says whether Docker runs"))
        }
        Ended::TimedOut => Err(Failure::unknown(format!("`{shown}` did not end in time"))
            .help("give more --timeout; pulling the node's image takes most of it the first time")),
        Ended::TooMuch => {
            Err(Failure::unknown(format!("`{shown}` printed more than {} MiB", MAX_NAMES >> 20)))
        }
        Ended::Interrupted => Err(Failure { exit: Exit::Interrupted, ..Failure::interrupted() }),
    }
}

/// Deletes a cluster, also after a signal: in a process group that the terminal's Ctrl-C does not reach.
fn delete(name: &str) -> Result<(), String> {
    let mut command = Command::new("kind");
    command.args(["delete", "cluster", "--name", name]).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let end = Instant::now() + DELETING;
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                let mut said = String::new();
                if let Some(pipe) = child.stderr.take() {
                    // What it said is a help, not more.
                    let _ = pipe.take(MAX_NAMES).read_to_string(&mut said);
                }
                return Err(if said.trim().is_empty() { status.to_string() } else { said.trim().to_owned() });
            }
            None if Instant::now() >= end => {
                let _ = child.kill();
                return Err(format!("it takes longer than {} s", DELETING.as_secs()));
            }
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
}
