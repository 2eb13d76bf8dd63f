//! A cluster for one command: made by kind, given OLM, and a registry where images have to be pushed; and deleted again.

use std::env;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::actions::olm;
use crate::exit::{Exit, Failure};
use crate::image::Access;
use crate::interrupt;
use crate::lifecycle::engine::{Options, Progress};
use crate::lifecycle::kubernetes::Choice;
use crate::limits::{Limits, Over};
use crate::program::{self, CommandLine, Ended, Output};
use crate::sentence::Help;

use super::stock::{Stock, Stocked};

/// What the names of our clusters begin with.
const PREFIX: &str = "olmkit-test-";
/// How long kind may take to say which clusters there are.
const LISTING: Duration = Duration::from_secs(60);
/// How long deleting a cluster may take, after the time of the command.
const DELETING: Duration = Duration::from_secs(120);
/// Names of clusters are short; this is what is read of them, in bytes.
const MAX_NAMES: u64 = 1 << 20;
/// How long a registry may take to answer after its container has started.
const STARTING: Duration = Duration::from_secs(30);
/// The port of a registry in its container.
const PORT: u16 = 5000;
/// The network that kind puts its nodes on.
const NETWORK: &str = "kind";
/// The registry, where nobody names another image.
pub const REGISTRY: &str = "docker.io/library/registry:2";

/// kind's configuration for nodes that look for registries in files. Newer ones do so without it.
/// <https://kind.sigs.k8s.io/docs/user/local-registry/>
const LOOKS_IN_FILES: &str = "\
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
containerdConfigPatches:
  - |-
    [plugins.\"io.containerd.grpc.v1.cri\".registry]
      config_path = \"/etc/containerd/certs.d\"
";

/// What the cluster is made of.
#[derive(Clone, Debug)]
pub struct Kind {
    /// kind's own configuration, such as for a registry on this machine.
    pub config: Option<PathBuf>,
    /// OLM's manifests, and what is changed in them.
    pub olm: olm::Request,
    /// Whether the cluster stays.
    pub keep: bool,
    /// What is pushed to a registry of its own; there is none when that is nothing.
    pub stock: Stock,
    /// The image of that registry.
    pub registry_image: String,
}

/// What was made for a test, or asked for: a cluster or a registry.
struct TemporaryResource<'p> {
    /// What it is, and its name.
    what: String,
    /// How it is reached when it stays.
    reach: String,
    /// The command that removes it.
    remove: CommandLine,
    keep: bool,
    progress: &'p dyn Progress,
}

impl Drop for TemporaryResource<'_> {
    fn drop(&mut self) {
        let Self { what, reach, remove, .. } = self;
        if self.keep {
            let text = format!("{what} stays: {reach}, `{remove}` removes it");
            return self.progress.said(Duration::ZERO, &text);
        }
        self.progress.said(Duration::ZERO, &format!("deleting {what}"));
        if let Err(why) = delete(remove.clone()) {
            let text = format!("{what} could not be deleted ({why}); run `{remove}`");
            self.progress.said(Duration::ZERO, &text);
        }
    }
}

/// A registry in a container, for the images of a test.
struct Registry {
    container: String,
    /// Where it is reached from this machine.
    address: String,
}

/// Makes a cluster with OLM, and a registry where there is something to push; works on it by its kubeconfig, with what was pushed, for the
/// time that is left; and deletes both, however the work ends.
///
/// # Errors
/// kind is not there or fails, something cannot be pushed, OLM cannot be installed, or the work fails.
pub(super) fn on_cluster<T>(
    kind: &Kind,
    limit: Duration,
    access: &Access,
    progress: &dyn Progress,
    work: impl FnOnce(&Path, &Stocked, Duration) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // Held until the cluster is deleted: a signal ends the work, and the process after that.
    let _work = interrupt::work();
    // What the manifests lack is said before minutes are spent on a cluster.
    olm::check(&kind.olm, limit)?;
    let begun = Instant::now();
    let left = || limit.saturating_sub(begun.elapsed());
    let listed = kind_says(kind_line(&["get", "clusters"]), LISTING.min(limit))?;
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
        return Err(Failure::incomplete(format!("there is a kind cluster `{name}` already"))
            .help("run the command again"));
    }
    let directory = tempfile::tempdir().map_err(Failure::incomplete)?;
    let kubeconfig = directory.path().join("kubeconfig");

    // Before the cluster: what cannot be pushed is said before minutes are spent on it.
    let mut stocked = Stocked::default();
    let mut registry = None;
    let mut registry_made = None;
    if !kind.stock.is_empty() {
        progress.said(begun.elapsed(), &format!("starting the registry {name}-registry"));
        let (made, started) = start_registry(kind, &name, left(), progress)?;
        stocked = kind.stock.push(&started.address, access, progress)?;
        registry_made = Some(made);
        registry = Some(started);
    }

    progress.said(begun.elapsed(), &format!("making the kind cluster {name}"));
    let cluster = TemporaryResource {
        what: format!("the kind cluster {name}"),
        reach: format!("`kind export kubeconfig --name {name}` reaches it"),
        remove: kind_line(&["delete", "cluster"]).option("--name", &name),
        keep: kind.keep,
        progress,
    };
    let own = directory.path().join("kind.yaml");
    let config = match &kind.config {
        None if registry.is_some() => {
            fs::write(&own, LOOKS_IN_FILES).map_err(Failure::incomplete)?;
            Some(&own)
        }
        given => given.as_ref(),
    };
    let create = kind_line(&["create", "cluster"]).option("--name", &name).words(&["--wait", "5m"]);
    let mut create = create.words(&["--kubeconfig"]).path(&kubeconfig);
    if let Some(config) = config {
        create = create.words(&["--config"]).path(config);
    }
    kind_says(create, left())?;
    if let Some(registry) = &registry {
        connect(registry, &name, left())?;
    }

    progress.said(begun.elapsed(), "installing OLM on it");
    let choice = Choice { kubeconfig: Some(kubeconfig.clone()), ..Choice::default() };
    let options = Options { timeout: left(), wait: true, ..Options::default() };
    olm::run(&choice, &olm::Verb::Install(kind.olm.clone()), &options, progress)?;
    let done = work(&kubeconfig, &stocked, left());
    drop(cluster);
    drop(registry_made);
    done
}

/// The program that runs containers for kind.
fn containers() -> String {
    let given = env::var("KIND_EXPERIMENTAL_PROVIDER").unwrap_or_default();
    if given.is_empty() { "docker".to_owned() } else { given }
}

/// Starts a registry at a free port of this machine, and waits until it answers.
fn start_registry<'p>(
    kind: &Kind,
    name: &str,
    limit: Duration,
    progress: &'p dyn Progress,
) -> Result<(TemporaryResource<'p>, Registry), Failure> {
    let end = Instant::now() + limit;
    let left = || end.saturating_duration_since(Instant::now());
    let container = format!("{name}-registry");
    let made = TemporaryResource {
        what: format!("the registry {container}"),
        reach: format!("`{} port {container}` shows its address", containers()),
        remove: containers_line(&["rm", "--force", "--volumes"]).value(&container),
        keep: kind.keep,
        progress,
    };
    let publish = format!("127.0.0.1::{PORT}");
    let image = kind.registry_image.as_str();
    let run =
        containers_line(&["run", "--detach"]).option("--name", &container).option("--publish", &publish);
    containers_say(run.value(image), left())?;
    let port = containers_line(&["port"]).value(&container).value(format!("{PORT}/tcp"));
    let said = containers_say(port, left())?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let address = said.lines().map(str::trim).find(|line| line.starts_with("127.0.0.1:"));
    let Some(address) = address.map(str::to_owned) else {
        return Err(Failure::incomplete(format!(
            "the registry {container} has no port on this machine: {said}"
        )));
    };
    let limits = Limits::begin(STARTING.min(limit));
    while !answers(&address) {
        match limits.check() {
            Ok(()) => thread::sleep(Duration::from_millis(100)),
            Err(Over::Interrupted) => return Err(Failure::interrupted()),
            Err(Over::TimedOut(_)) => {
                let help = format!("see `{} logs {container}`, with --keep", containers());
                let error = format!("the registry {container} does not answer at {address}");
                return Err(Failure::incomplete(error).help(help));
            }
        }
    }
    Ok((made, Registry { container, address }))
}

/// Whether a registry answers.
fn answers(address: &str) -> bool {
    let ask = || -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        write!(stream, "GET /v2/ HTTP/1.0\r\n\r\n")?;
        let mut head = Vec::new();
        stream.take(12).read_to_end(&mut head)?;
        Ok(head)
    };
    ask().is_ok_and(|head| head.ends_with(b" 200"))
}

/// Lets the nodes of a cluster ask a registry for every image, before they ask the image's own.
fn connect(registry: &Registry, name: &str, limit: Duration) -> Result<(), Failure> {
    let end = Instant::now() + limit;
    let left = || end.saturating_duration_since(Instant::now());
    let Registry { container, .. } = registry;
    containers_say(containers_line(&["network", "connect", NETWORK]).value(container), left())?;
    let nodes = kind_says(kind_line(&["get", "nodes"]).option("--name", name), LISTING.min(left()))?;
    let script = format!(
        "mkdir -p /etc/containerd/certs.d/_default && echo '[host.\"http://{container}:{PORT}\"]' >/etc/containerd/certs.d/_default/hosts.toml"
    );
    for node in String::from_utf8_lossy(&nodes.stdout).split_whitespace() {
        let exec = containers_line(&["exec"]).value(node).words(&["sh", "-c"]).value(&script);
        containers_say(exec, left())?;
    }
    Ok(())
}

/// A command of kind.
fn kind_line(words: &[&'static str]) -> CommandLine {
    CommandLine::new("kind").words(words)
}

/// A command of docker, or of what kind uses in its place.
fn containers_line(words: &[&'static str]) -> CommandLine {
    CommandLine::new(containers()).words(words)
}

/// Runs docker, or what kind uses in its place, to its end.
fn containers_say(line: CommandLine, limit: Duration) -> Result<Output, Failure> {
    let program = containers();
    let help = format!(
        "the registry of the test runs in a container: `{program} info` shows whether {program} runs, and --registry-image names another image"
    );
    says(&program, line, limit).map_err(|failure| helped(failure, help))
}

/// Runs kind to its end.
fn kind_says(line: CommandLine, limit: Duration) -> Result<Output, Failure> {
    let help =
        "kind needs Docker, Podman or nerdctl, and room on the disk; `docker info` shows whether Docker runs";
    says("kind", line, limit).map_err(|failure| helped(failure, help))
}

/// A failure with a way out, where it has none.
fn helped(failure: Failure, help: impl Into<Help>) -> Failure {
    if !failure.help.is_empty() || failure.exit == Exit::Interrupted { failure } else { failure.help(help) }
}

/// Runs a program to its end.
fn says(program: &str, line: CommandLine, limit: Duration) -> Result<Output, Failure> {
    let shown = line.to_string();
    let mut command = line.command().map_err(Failure::usage)?;
    let command = command.stderr(Stdio::piped());
    let ended = program::run(command, Limits::begin(limit), MAX_NAMES).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            Failure::incomplete(format!("{program} is not installed")).help(
                "install kind (https://kind.sigs.k8s.io) and Docker; or name a cluster with --context, or test in memory with --simulate",
            )
        } else {
            Failure::incomplete(format!("cannot run `{shown}`: {error}"))
        }
    })?;
    match ended {
        Ended::Itself(output) if output.status.success() => Ok(output),
        Ended::Itself(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim();
            let why = if said.is_empty() { output.status.to_string() } else { said.to_owned() };
            Err(Failure::incomplete(format!("`{shown}` failed: {why}")))
        }
        Ended::TimedOut => Err(Failure::incomplete(format!("`{shown}` did not end in time"))
            .help("pass a longer --timeout; the first time, pulling the node's image takes most of it")),
        Ended::TooMuch => {
            Err(Failure::incomplete(format!("`{shown}` printed more than {} MiB", MAX_NAMES >> 20)))
        }
        Ended::Interrupted => Err(Failure { exit: Exit::Interrupted, ..Failure::interrupted() }),
    }
}

/// Deletes what was made, also after a signal: in a process group that the terminal's Ctrl-C does not reach.
fn delete(line: CommandLine) -> Result<(), String> {
    let mut command = line.command().map_err(|error| error.to_string())?;
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
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
                return Err(format!("it did not finish within {} s", DELETING.as_secs()));
            }
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
}
