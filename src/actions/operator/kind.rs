//! A cluster for one command: made by kind, given OLM, and a registry where images have to be pushed; and deleted again.

use std::env;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::actions::olm;
use crate::exit::{Exit, Failure};
use crate::image::Access;
use crate::interrupt;
use crate::lifecycle::engine::{Options, Progress};
use crate::lifecycle::kubernetes::Choice;
use crate::limits::{Limits, Over};
use crate::program::{self, CommandLine, Ended, Output};
use crate::sentence::Help;
use crate::shell::Reach;

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
/// The nodes, where neither a flag nor a configuration names another image: of the newest minor version of Kubernetes that is tested, and
/// not of the one that a release of kind takes.
pub const NODE: &str = "docker.io/kindest/node:v1.34.0";
/// What the name of a registry adds to that of its cluster.
const OF_REGISTRY: &str = "-registry";

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
    /// The image of its nodes.
    pub image: Option<String>,
    /// OLM's manifests, and what is changed in them.
    pub olm: olm::Request,
    /// Whether the cluster stays.
    pub keep: bool,
    /// What is pushed to a registry of its own; there is none when that is nothing.
    pub stock: Stock,
    /// The image of that registry.
    pub registry_image: String,
}

impl Kind {
    /// The image of the nodes; `None` if the configuration names it.
    fn node_image(&self) -> Option<&str> {
        self.image.as_deref().or(self.config.is_none().then_some(NODE))
    }
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

/// What the work on a cluster is given.
pub(super) struct Made<'m> {
    /// How it is reached, while the work goes on.
    pub(super) kubeconfig: &'m Path,
    /// How commands that are printed reach it after that.
    pub(super) reach: Reach,
    /// What was pushed.
    pub(super) stocked: &'m Stocked,
    /// The time that is left.
    pub(super) left: Duration,
}

/// Makes a cluster with OLM, and a registry where there is something to push; works on it; and deletes both, however the work ends.
///
/// # Errors
/// kind is not there or fails, something cannot be pushed, OLM cannot be installed, or the work fails.
pub(super) fn on_cluster<T>(
    kind: &Kind,
    limit: Duration,
    access: &Access,
    progress: &dyn Progress,
    work: impl FnOnce(&Made<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // Held until the cluster is deleted: a signal ends the work, and the process after that.
    let _work = interrupt::work();
    // What the manifests lack is said before minutes are spent on a cluster.
    olm::check(&kind.olm, limit)?;
    let begun = Instant::now();
    let left = || limit.saturating_sub(begun.elapsed());
    clear_earlier(limit, progress)?;
    let run = Run::current();
    let name = run.name();
    let directory = run.make_directory().map_err(Failure::incomplete)?;
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

    let of = kind.node_image().map(|image| format!(" of {image}")).unwrap_or_default();
    progress.said(begun.elapsed(), &format!("making the kind cluster {name}{of}"));
    let cluster = create(kind, &name, &kubeconfig, registry.is_some(), left(), progress)?;
    if let Some(version) = version(&name, left()) {
        progress.said(begun.elapsed(), &format!("it runs Kubernetes {version}"));
    }
    if let Some(registry) = &registry {
        connect(registry, &name, left())?;
    }

    progress.said(begun.elapsed(), "installing OLM on it");
    let choice = Choice { kubeconfig: Some(kubeconfig.clone()), ..Choice::default() };
    let options = Options { timeout: left(), wait: true, ..Options::default() };
    olm::run(&choice, &olm::Verb::Install(kind.olm.clone()), &options, progress)?;
    let reach = match kind.keep {
        true => Reach::real(vec![("context", format!("kind-{name}"))]),
        false => Reach::deleted(),
    };
    let done = work(&Made { kubeconfig: &kubeconfig, reach, stocked: &stocked, left: left() });
    drop(cluster);
    drop(registry_made);
    done
}

/// Lets kind create a cluster.
fn create<'p>(
    kind: &Kind,
    name: &str,
    kubeconfig: &Path,
    has_registry: bool,
    limit: Duration,
    progress: &'p dyn Progress,
) -> Result<TemporaryResource<'p>, Failure> {
    let mut cluster = TemporaryResource {
        what: format!("the kind cluster {name}"),
        reach: format!("`kind export kubeconfig --name {name}` reaches it"),
        remove: remove_cluster(name),
        keep: false,
        progress,
    };
    let own = kubeconfig.with_file_name("kind.yaml");
    let config = match &kind.config {
        None if has_registry => {
            fs::write(&own, LOOKS_IN_FILES).map_err(Failure::incomplete)?;
            Some(&own)
        }
        given => given.as_ref(),
    };
    let create = kind_line(&["create", "cluster"]).option("--name", name).words(&["--wait", "5m"]);
    let mut create = create.words(&["--kubeconfig"]).path(kubeconfig);
    if let Some(config) = config {
        create = create.words(&["--config"]).path(config);
    }
    if let Some(image) = kind.node_image() {
        create = create.option("--image", image);
    }
    kind_says(create, limit)?;
    cluster.keep = kind.keep;
    Ok(cluster)
}

/// The version of Kubernetes on the nodes, from where every node image has it. No test depends on it.
fn version(cluster: &str, limit: Duration) -> Option<String> {
    let node = format!("{cluster}-control-plane");
    let exec = containers_line(&["exec"]).value(node).words(&["cat", "/kind/version"]);
    let said = containers_say(exec, LISTING.min(limit)).ok()?;
    let version = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    (!version.is_empty()).then_some(version)
}

/// A run, as the names of its cluster and its registry tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    /// The start, in milliseconds since 1970.
    begun: u128,
    /// The `host()` of that process; `None` in a name that does not have it.
    host: Option<u32>,
    process: u32,
}

impl Run {
    /// The run of this process.
    fn current() -> Self {
        let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        Self { begun, host: host(), process: std::process::id() }
    }

    /// The run with a cluster or a registry of this name.
    fn of(name: &str) -> Option<Self> {
        let name = name.strip_suffix(OF_REGISTRY).unwrap_or(name);
        let parts: Vec<&str> = name.strip_prefix(PREFIX)?.split('-').collect();
        let (begun, host, process) = match parts[..] {
            [begun, process] => (begun, None, process),
            [begun, host, process] => (begun, Some(u32::from_str_radix(host, 16).ok()?), process),
            _ => return None,
        };
        Some(Self { begun: u128::from_str_radix(begun, 16).ok()?, host, process: process.parse().ok()? })
    }

    /// The name of its cluster.
    fn name(&self) -> String {
        let Self { begun, host, process } = self;
        let host = host.map(|host| format!("{host:08x}-")).unwrap_or_default();
        format!("{PREFIX}{begun:x}-{host}{process}")
    }

    /// Where its files are as long as it goes on.
    fn directory(&self) -> PathBuf {
        env::temp_dir().join(self.name())
    }

    fn make_directory(&self) -> io::Result<TempDir> {
        tempfile::Builder::new().prefix(&self.name()).rand_bytes(0).tempdir()
    }

    /// Whether its process has ended without removing its directory; one that keeps its cluster removes it. `false` for a run of another
    /// machine, and if another process has the same id now.
    fn was_killed(&self) -> bool {
        let process = format!("/proc/{}", self.process);
        self.host.is_some()
            && self.host == host()
            && !Path::new(&process).exists()
            && self.directory().is_dir()
    }
}

/// A number that is the same wherever a process id means the same process: on this boot, in this PID namespace.
fn host() -> Option<u32> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let boot = u32::from_str_radix(boot.get(..8)?, 16).ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    let digits: String = namespace.to_str()?.chars().filter(char::is_ascii_digit).collect();
    Some(boot ^ digits.parse::<u32>().ok()?)
}

/// Removes the clusters, registries and directories of runs that were killed, and names what others may still need.
fn clear_earlier(limit: Duration, progress: &dyn Progress) -> Result<(), Failure> {
    let limit = LISTING.min(limit);
    let clusters = kind_says(kind_line(&["get", "clusters"]), limit)?;
    let names = containers_line(&["ps", "--all", "--filter", "name=olmkit-test-", "--format", "{{.Names}}"]);
    // Without an answer there is no cluster either, and kind says more about it.
    let registries = containers_say(names, limit).map(|output| output.stdout).unwrap_or_default();
    let lines = |said: &[u8]| String::from_utf8_lossy(said).lines().map(str::to_owned).collect::<Vec<_>>();
    let clusters = lines(&clusters.stdout).into_iter().filter(|name| name.starts_with(PREFIX));
    let clusters = clusters.map(|name| ("kind cluster", remove_cluster(&name), name));
    let registries = lines(&registries).into_iter().filter(|name| name.starts_with(PREFIX));
    let registries = registries.filter(|name| name.ends_with(OF_REGISTRY));
    let registries = registries.map(|name| ("registry", remove_registry(&name), name));
    let mut is_all = true;
    for (what, remove, name) in clusters.chain(registries) {
        if !Run::of(&name).is_some_and(|run| run.was_killed()) {
            let text =
                format!("the {what} {name} of another run exists; if that has ended, `{remove}` removes it");
            progress.said(Duration::ZERO, &text);
            continue;
        }
        progress.said(Duration::ZERO, &format!("deleting the {what} {name} of a run that was killed"));
        if let Err(why) = delete(remove.clone()) {
            let text = format!("the {what} {name} could not be deleted ({why}); run `{remove}`");
            progress.said(Duration::ZERO, &text);
            is_all = false;
        }
    }
    // At last: they tell the next run what to delete.
    if is_all {
        clear_directories();
    }
    Ok(())
}

/// Removes the directories of runs that were killed: they have kubeconfigs.
fn clear_directories() {
    for entry in fs::read_dir(env::temp_dir()).into_iter().flatten().flatten() {
        if Run::of(&entry.file_name().to_string_lossy()).is_some_and(|run| run.was_killed()) {
            // A directory of another user cannot be removed, and stays.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The command that removes a cluster.
fn remove_cluster(name: &str) -> CommandLine {
    kind_line(&["delete", "cluster"]).option("--name", name)
}

/// The command that removes a registry.
fn remove_registry(container: &str) -> CommandLine {
    containers_line(&["rm", "--force", "--volumes"]).value(container)
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
    let container = format!("{name}{OF_REGISTRY}");
    let mut made = TemporaryResource {
        what: format!("the registry {container}"),
        reach: format!("`{} port {container}` shows its address", containers()),
        remove: remove_registry(&container),
        keep: false,
        progress,
    };
    let publish = format!("127.0.0.1:{}:{PORT}", free_port().map_err(Failure::incomplete)?);
    let image = kind.registry_image.as_str();
    let run =
        containers_line(&["run", "--detach"]).option("--name", &container).option("--publish", &publish);
    containers_say(run.value(image), left())?;
    made.keep = kind.keep;
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

/// A port of this machine that nobody uses. One that Docker chooses is another one once the container joins a network with IPv6, as kind makes it.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
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
    says("kind", line, limit).map_err(|failure| {
        let help = kind_help(&failure.to_string());
        helped(failure, help)
    })
}

/// What to do about what kind said.
fn kind_help(said: &str) -> &'static str {
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if says(&["no space left"]) {
        "make room on the disk of the containers: a node needs about 3 GB; `docker system df` shows what is used"
    } else if says(&["failed to pull image", "pull access denied", "manifest unknown", "manifest for"]) {
        "name an image of nodes that can be pulled, or is there, with --kind-image: `docker images kindest/node` lists those that are there"
    } else if says(&["too many open files", "inotify"]) {
        "raise the limits that many nodes need: `sysctl fs.inotify.max_user_instances=512`"
    } else if says(&["Cannot connect to the Docker daemon", "failed to list clusters", "docker: not found"]) {
        "start Docker: `docker info` shows whether it runs; KIND_EXPERIMENTAL_PROVIDER selects podman or nerdctl"
    } else {
        "kind needs Docker, Podman or nerdctl, and room on the disk; `docker info` shows whether Docker runs"
    }
}

/// What a program said of its failure: of kind, what comes after the list of what has worked, without the stack of its code.
fn reason(said: &str) -> &str {
    let said = said.trim();
    let said = said.find("ERROR: ").map_or(said, |at| &said[at..]);
    said.find("\nStack Trace:").map_or(said, |at| said[..at].trim_end())
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
            let said = reason(&said);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_of_here_that_has_left_its_directory_was_killed() {
        let run = Run::current();
        let name = run.name();
        assert_eq!(Run::of(&name), Some(run.clone()));
        assert_eq!(Run::of(&format!("{name}-registry")), Some(run.clone()));
        let _own = run.make_directory().unwrap();
        assert!(!run.was_killed());
        // Larger than any process number of Linux.
        let gone = Run { process: 1 << 22, ..run };
        assert!(!gone.was_killed());
        let _left = gone.make_directory().unwrap();
        assert_eq!(gone.was_killed(), host().is_some());
        let elsewhere = Run { host: gone.host.map(|host| host ^ 1), ..gone.clone() };
        let _elsewhere = elsewhere.make_directory().unwrap();
        assert!(!elsewhere.was_killed());
        for name in ["kind", "olmkit-test-", "olmkit-test-x-1", "olmkit-test-1-2-3-4"] {
            assert_eq!(Run::of(name), None, "{name}");
        }
    }

    #[test]
    fn kind_is_cited_from_its_error_on() {
        let said = "Creating cluster \"a\" ...\n • Preparing nodes 📦  ...\n ✗ Preparing nodes 📦 \nDeleted nodes: []\n\
                    ERROR: failed to create cluster: command \"docker run\" failed with error: exit status 125\n\
                    Command Output: no space left on device\nStack Trace: \nsigs.k8s.io/kind/pkg/errors";
        let reason = reason(said);
        assert!(
            reason.starts_with("ERROR: failed to create") && reason.ends_with("no space left on device"),
            "{reason}"
        );
        assert!(kind_help(reason).starts_with("make room"));
        for (said, help) in [
            ("ERROR: failed to pull image \"kindest/node:v1.99.0\"", "--kind-image"),
            (
                "ERROR: failed to list clusters: Cannot connect to the Docker daemon at unix:///",
                "start Docker",
            ),
            ("ERROR: something else", "kind needs Docker"),
        ] {
            assert!(kind_help(said).contains(help), "{said}");
        }
    }
}
