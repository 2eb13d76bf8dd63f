//! What the tests of the examples share: an API server with Kubernetes' own controllers, the operator as a process, and waiting.
//!
//! There is no node. Pods are created by the real controllers, and a [`Kubelet`] says of them what a test wants said.

#[path = "../../tests/support/apiserver.rs"]
mod api;
#[path = "../../tests/support/client.rs"]
mod client;
#[path = "../../tests/support/mod.rs"]
pub(crate) mod parts;
#[path = "../../tests/support/signal.rs"]
pub(crate) mod signal;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::{Duration, Instant},
};

use k8s_openapi::{NamespaceResourceScope, api::core::v1::Pod};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams},
    core::DynamicObject,
    discovery,
};
use libtest_mimic::Trial;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::{
    api::{ADMIN, ApiServer},
    client::{connect, ready},
    parts::Part,
};

/// How long anything may take before a test fails: machines that test are busy.
const PATIENCE: Duration = Duration::from_secs(120);
/// The user that the operator is to the API server. It has the rights that the manifests give, and no others.
const OPERATOR: &str = "operator";

/// Whether the machine has what [`Cluster`] needs.
pub(crate) fn apiserver() -> Part {
    let controllers = api::beside("kube-controller-manager").is_none();
    let missing = controllers
        .then(|| "kube-controller-manager is not installed (`tests/cluster/build` builds it)".into());
    Part::new("apiserver", api::missing().or(missing))
}

/// An API server with the controllers of Deployments, Jobs and owner references. It ends with the value.
struct Servers {
    api: ApiServer,
    controllers: Child,
}

impl Servers {
    fn start() -> Self {
        let api = ApiServer::start(&[OPERATOR], ready);
        let program = api::beside("kube-controller-manager").expect("it was looked for before");
        let controllers = Command::new(program)
            .arg(format!("--kubeconfig={}", api.kubeconfig(ADMIN).display()))
            .args(["--controllers=deployment-controller,replicaset-controller,job-controller,garbage-collector-controller"])
            .args(["--leader-elect=false", "--secure-port=0", "--authentication-skip-lookup=true"])
            .args(["--kube-api-qps=500", "--kube-api-burst=1000"])
            .args(["--concurrent-deployment-syncs=20", "--concurrent-replicaset-syncs=20", "--concurrent-job-syncs=20"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { api, controllers }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = self.controllers.kill();
        let _ = self.controllers.wait();
    }
}

/// What a test gets: a client that may do everything, and where the operator finds the API server.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    kubeconfig: PathBuf,
    program: PathBuf,
}

/// Tests of one operator, which share an API server that ends with the last of them. `manifests` are applied before each: with
/// the operator's rights as its user has them.
pub(crate) struct Suite {
    pub(crate) program: &'static str,
    pub(crate) manifests: fn() -> String,
    /// What the machine needs besides an API server.
    parts: Vec<Part>,
    servers: Arc<OnceLock<Servers>>,
    /// Tests share it; one that counts what is written has it alone.
    company: Arc<RwLock<()>>,
}

impl Suite {
    /// `program` is the debug build, unless the variable names another, as `tests/bench/examples` does.
    pub(crate) fn new(program: &'static str, manifests: fn() -> String) -> Self {
        let program = env::var("EXAMPLE_OPERATOR").map_or(program, |other| &*other.leak());
        Self { program, manifests, parts: vec![], servers: Arc::default(), company: Arc::default() }
    }

    /// The same for tests that need more of the machine.
    #[allow(dead_code, reason = "not every program that includes this file needs more")]
    pub(crate) fn needing(mut self, parts: &[Part]) -> Self {
        self.parts.extend_from_slice(parts);
        self
    }

    /// A test that counts the writes of the whole API server, and so runs alone.
    pub(crate) fn alone<F: Future<Output = ()> + 'static>(
        &self,
        name: &str,
        test: fn(Cluster) -> F,
    ) -> Trial {
        self.run(name, true, test)
    }

    /// A test of which the name says what it shows.
    pub(crate) fn trial<F: Future<Output = ()> + 'static>(
        &self,
        name: &str,
        test: fn(Cluster) -> F,
    ) -> Trial {
        self.run(name, false, test)
    }

    fn run<F>(&self, name: &str, alone: bool, test: fn(Cluster) -> F) -> Trial
    where
        F: Future<Output = ()> + 'static,
    {
        let (servers, program, manifests) = (self.servers.clone(), self.program, self.manifests);
        let company = self.company.clone();
        let mut parts = vec![apiserver()];
        parts.extend_from_slice(&self.parts);
        parts::trial_with(name, &parts, move || {
            // Another test's panic is that test's alone.
            let _shared = (!alone).then(|| company.read().unwrap_or_else(PoisonError::into_inner));
            let _alone = alone.then(|| company.write().unwrap_or_else(PoisonError::into_inner));
            let servers = servers.get_or_init(Servers::start);
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            runtime.block_on(async {
                let client = connect(&servers.api.kubeconfig(ADMIN)).await;
                let kubeconfig = servers.api.kubeconfig(OPERATOR);
                let cluster = Cluster { client, kubeconfig, program: program.into() };
                cluster.apply(&manifests()).await;
                test(cluster).await;
            });
            Ok(())
        })
    }
}

impl Cluster {
    pub(crate) fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Applies a YAML stream. The subjects of bindings become the operator's user. Objects of new kinds are taken a moment after
    /// their CRDs, so each is tried again.
    pub(crate) async fn apply(&self, yaml: &str) {
        for document in yaml.split("\n---").map(str::trim).filter(|document| !document.is_empty()) {
            let mut object: Value = serde_saphyr::from_str(document).unwrap();
            if object["kind"].as_str().is_some_and(|kind| kind.ends_with("Binding")) {
                let user = json!({"kind": "User", "name": OPERATOR, "apiGroup": "rbac.authorization.k8s.io"});
                object["subjects"] = json!([user]);
            }
            eventually(document, async || self.apply_object(&object).await.ok()).await;
        }
    }

    /// Applies one object, of any kind.
    pub(crate) async fn apply_object(&self, object: &Value) -> Result<DynamicObject, kube::Error> {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        let kind = kube::core::GroupVersionKind::gvk(group, version, text("kind"));
        let (resource, capabilities) = discovery::pinned_kind(&self.client, &kind).await?;
        let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
            Some(namespace) if capabilities.scope == discovery::Scope::Namespaced => {
                Api::namespaced_with(self.client.clone(), namespace, &resource)
            }
            _ => Api::all_with(self.client.clone(), &resource),
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(object)).await
    }

    /// Creates a namespace in which the operator has its rights: those of `role` in its manifests.
    pub(crate) async fn namespace(&self, name: &str, role: &str) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.apply_object(&object).await.unwrap();
        for document in role.split("\n---").map(str::trim).filter(|one| one.contains("\nkind: Role")) {
            let mut object: Value = serde_saphyr::from_str(document).unwrap();
            object["metadata"]["namespace"] = json!(name);
            self.apply(&serde_json::to_string(&object).unwrap()).await;
        }
    }

    /// Starts the operator, with these variables.
    pub(crate) fn operator(&self, environment: &[(&str, &str)]) -> Replica {
        Replica::start(&self.program, &self.kubeconfig, environment)
    }

    /// Requests that would change objects of these resources, as the API server has counted them so far, refused ones included.
    pub(crate) async fn writes(&self, resources: &[&str]) -> u64 {
        let one_of = |line: &str, key: &str, values: &[&str]| {
            values.iter().any(|value| line.contains(&format!("{key}=\"{value}\"")))
        };
        let verbs = ["POST", "PUT", "PATCH", "APPLY", "DELETE"];
        self.requests(|line| one_of(line, "verb", &verbs) && one_of(line, "resource", resources)).await
    }

    /// Objects of a resource that the API server has created so far.
    #[allow(dead_code, reason = "not every program that includes this file asks")]
    pub(crate) async fn created(&self, resource: &str) -> u64 {
        let words = [format!("resource=\"{resource}\""), "verb=\"POST\"".into(), "code=\"201\"".into()];
        self.requests(|line| words.iter().all(|word| line.contains(word))).await
    }

    async fn requests(&self, counts: impl Fn(&str) -> bool) -> u64 {
        let request = http::Request::get("/metrics").body(vec![]).unwrap();
        let metrics = self.client.request_text(request).await.unwrap();
        let counted =
            metrics.lines().filter(|line| line.starts_with("apiserver_request_total{") && counts(line));
        counted.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64).sum()
    }
}

/// Asks until there is an answer.
pub(crate) async fn eventually<T>(what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    within(PATIENCE, what, ask).await
}

/// Asks until there is an answer, for at most so long.
pub(crate) async fn within<T>(time: Duration, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(started.elapsed() < time, "not within {time:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Says of every pod in a namespace that it is as `status` says, for as long as the value lives.
pub(crate) struct Kubelet(tokio::task::JoinHandle<()>);

impl Kubelet {
    /// Pods that run and are ready.
    #[allow(dead_code, reason = "not every program that includes this file has such pods")]
    pub(crate) fn running(cluster: &Cluster, namespace: &str) -> Self {
        let ready = json!({"type": "Ready", "status": "True"});
        Self::start(cluster, namespace, json!({"phase": "Running", "conditions": [ready]}))
    }

    /// Pods that have done their work.
    #[allow(dead_code, reason = "not every program that includes this file has such pods")]
    pub(crate) fn finished(cluster: &Cluster, namespace: &str) -> Self {
        Self::start(cluster, namespace, json!({"phase": "Succeeded"}))
    }

    fn start(cluster: &Cluster, namespace: &str, status: Value) -> Self {
        let pods: Api<Pod> = cluster.api(namespace);
        Self(tokio::spawn(async move {
            loop {
                let all = pods.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
                for pod in all {
                    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                    if phase != status["phase"].as_str() && phase != Some("Failed") {
                        let patch = Patch::Merge(json!({"status": status}));
                        // It may be gone by now.
                        let _ = pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await;
                    }
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }))
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The operator as a process of this machine. It is killed with the value.
pub(crate) struct Replica {
    process: Child,
    dir: TempDir,
}

impl Replica {
    fn start(program: &Path, kubeconfig: &Path, environment: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let process = Command::new(program)
            .args(["run", "--health-address", "127.0.0.1:0"])
            .env("KUBECONFIG", kubeconfig)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { process, dir }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap()
    }

    pub(crate) fn signal(&self, signal: &str) {
        signal::send(signal, self.process.id());
    }

    /// Waits until the process has ended by itself.
    #[allow(dead_code, reason = "not every program that includes this file waits for an end")]
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < Duration::from_secs(40), "it has not ended: {}", self.log());
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }

    /// Resident memory in KiB: all of it, and what is not backed by the program's file.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        };
        (field("VmRSS:"), field("RssAnon:"))
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Seeded(pub(crate) u64);

impl Seeded {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// An object from JSON.
pub(crate) fn object<K: DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).unwrap()
}
