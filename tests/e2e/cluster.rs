//! The cluster that the tests run on, as `tests/cluster/up` named it in the environment, and a namespace of it.

use std::env;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use serde_json::Value;

use crate::program;

/// How long anything on a cluster may take before a test fails: machines that test are busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// A cluster that has answered.
pub(crate) struct Cluster {
    kubectl: PathBuf,
    /// The registry: the same name for pushes from here and for pulls of the nodes.
    pub(crate) registry: String,
    probe: OnceLock<Result<String, String>>,
}

impl Cluster {
    /// The cluster of `KUBECONFIG`, found once.
    pub(crate) fn get() -> Result<&'static Self, Failed> {
        static CLUSTER: OnceLock<Result<Cluster, String>> = OnceLock::new();
        CLUSTER
            .get_or_init(|| Self::connect().map_err(|failed| message(&failed)))
            .as_ref()
            .map_err(Failed::from)
    }

    fn connect() -> Result<Self, Failed> {
        let kubectl = env::var_os("KUBECTL").map_or_else(|| PathBuf::from("kubectl"), PathBuf::from);
        let mut cluster = Self { kubectl, registry: String::new(), probe: OnceLock::new() };
        cluster.kubectl(&["get", "--raw", "/readyz", "--request-timeout=10s"]).map_err(|failed| {
            Failed::from(format!("the cluster does not answer, see docs/cluster.md: {}", message(&failed)))
        })?;
        cluster.registry = if let Ok(registry) = env::var("E2E_REGISTRY") {
            registry
        } else {
            // Where clusters for development say it: KEP-1755.
            let path = "jsonpath={.data.localRegistryHosting\\.v1}";
            let said = cluster
                .kubectl(&["get", "configmap", "local-registry-hosting", "-n", "kube-public", "-o", path])
                .map_err(|failed| {
                    format!(
                        "the cluster names no registry, and E2E_REGISTRY is not set: {}",
                        message(&failed)
                    )
                })?;
            let host = said.lines().find_map(|line| line.trim().strip_prefix("host:"));
            host.ok_or("the ConfigMap local-registry-hosting has no `host`")?
                .trim()
                .trim_matches('"')
                .to_owned()
        };
        Ok(cluster)
    }

    /// Runs kubectl and gives back what it printed.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String, Failed> {
        finished(arguments, &self.command(arguments).output()?)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// The image of `tests/cluster/probe.rs`, built and pushed once.
    pub(crate) fn probe(&self) -> Result<&str, Failed> {
        let made = self.probe.get_or_init(|| {
            let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
            let file = dir.path().join("probe");
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/build-probe");
            let output = Command::new(script).arg(&file).output().map_err(|error| error.to_string())?;
            finished(&["build-probe"], &output).map_err(|failed| message(&failed))?;
            let reference = format!("{}/e2e/probe:latest", self.registry);
            program::push(&reference, &file, &[]).map_err(|error| error.to_string())?;
            Ok(reference)
        });
        made.as_deref().map_err(|error| Failed::from(format!("the image `probe` cannot be made: {error}")))
    }

    /// The answer of the registry to a request, status line first.
    pub(crate) fn ask_registry(&self, method: &str, path: &str) -> Result<String, Failed> {
        let address: SocketAddr = self.registry.replace("localhost", "127.0.0.1").parse()?;
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let host = &self.registry;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Accept: application/vnd.oci.image.manifest.v1+json\r\n\r\n"
        )?;
        Ok(std::io::read_to_string(stream)?)
    }
}

/// A namespace of one test.
pub(crate) struct Namespace {
    pub(crate) cluster: &'static Cluster,
    pub(crate) name: String,
}

impl Namespace {
    /// Runs kubectl in the namespace.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String, Failed> {
        self.cluster.kubectl(&[&["--namespace", &self.name], arguments].concat())
    }

    /// Applies a manifest; `{namespace}`, `{registry}` and `{probe}` in it stand for what they name.
    pub(crate) fn apply(&self, manifest: &str) -> Result<(), Failed> {
        let mut manifest =
            manifest.replace("{namespace}", &self.name).replace("{registry}", &self.cluster.registry);
        if manifest.contains("{probe}") {
            manifest = manifest.replace("{probe}", self.cluster.probe()?);
        }
        let arguments = ["--namespace", &self.name, "apply", "--filename", "-"];
        let mut child = self
            .cluster
            .command(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        child.stdin.take().unwrap().write_all(manifest.as_bytes())?;
        finished(&arguments, &child.wait_with_output()?)?;
        Ok(())
    }

    /// Waits for a condition as `kubectl wait` knows it: `condition=Ready`, `jsonpath={.status.phase}=Succeeded`, `delete`.
    pub(crate) fn wait(&self, object: &str, condition: &str) -> Result<(), Failed> {
        let timeout = format!("--timeout={}s", PATIENCE.as_secs());
        self.kubectl(&["wait", object, &format!("--for={condition}"), &timeout])?;
        Ok(())
    }

    /// Runs a pod of one container to its end and gives back what it printed. `pod` is its `spec`, in YAML on one line.
    pub(crate) fn run(&self, name: &str, spec: &str) -> Result<String, Failed> {
        self.apply(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{restartPolicy: Never, {spec}}}}}"
        ))?;
        self.ended(name)?;
        self.kubectl(&["logs", name])
    }

    /// Waits until a pod has succeeded. One that has failed is not waited for.
    fn ended(&self, name: &str) -> Result<(), Failed> {
        let phase = || self.kubectl(&["get", "pod", name, "-o", "jsonpath={.status.phase}"]);
        let last =
            within(
                PATIENCE,
                || Ok(Some(phase()?).filter(|phase| phase == "Succeeded" || phase == "Failed")),
            )?;
        match last {
            Some(phase) if phase == "Succeeded" => Ok(()),
            Some(_) => {
                let said = self.kubectl(&["logs", name, "--all-containers"]).unwrap_or_default();
                Err(format!("pod {name} has failed; it said:\n{said}").into())
            }
            None => Err(format!("pod {name} has not ended within {PATIENCE:?}; it is {}", phase()?).into()),
        }
    }

    /// Sends a text to an address from a pod, and gives back the answer. The server may not listen yet, and the
    /// name may not be known yet: it is tried again until there is an answer.
    pub(crate) fn ask(&self, address: &str, text: &str) -> Result<String, Failed> {
        if self.kubectl(&["get", "pod", "asker"]).is_err() {
            self.apply(
                "{apiVersion: v1, kind: Pod, metadata: {name: asker}, spec: {terminationGracePeriodSeconds: 0, \
                 containers: [{name: probe, image: '{probe}', command: [/probe, pause]}]}}",
            )?;
            self.wait("pod/asker", "condition=Ready")?;
        }
        let mut last = String::new();
        let answer = within(PATIENCE, || {
            match self.kubectl(&["exec", "asker", "--", "/probe", "ask", address, text]) {
                Ok(answer) => Ok(Some(answer)),
                Err(failed) => {
                    last = message(&failed);
                    Ok(None)
                }
            }
        })?;
        answer.ok_or_else(|| format!("{address} does not answer within {PATIENCE:?}: {last}").into())
    }

    /// The JSON of an object.
    pub(crate) fn json(&self, object: &str) -> Result<Value, Failed> {
        Ok(serde_json::from_str(&self.kubectl(&["get", object, "--output", "json"])?)?)
    }

    /// A name in the registry that no other test uses.
    pub(crate) fn image(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.cluster.registry, self.name)
    }
}

/// Calls a function until it gives a value, or time is over.
pub(crate) fn within<T>(
    time: Duration,
    mut look: impl FnMut() -> Result<Option<T>, Failed>,
) -> Result<Option<T>, Failed> {
    let deadline = Instant::now() + time;
    loop {
        if let Some(value) = look()? {
            return Ok(Some(value));
        }
        if Instant::now() > deadline {
            return Ok(None);
        }
        thread::park_timeout(Duration::from_millis(200));
    }
}

/// What a program printed, if it went well.
pub(crate) fn finished(what: &[&str], output: &Output) -> Result<String, Failed> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{}`: {}: {}", what.join(" "), output.status, said.trim()).into())
}

/// What a failure says.
pub(crate) fn message(failed: &Failed) -> String {
    failed.message().unwrap_or("failed").to_owned()
}
