//! A real kube-apiserver with its etcd on free ports of this machine, for as long as a test needs it.
//!
//! The programs are those that `tests/cluster/up` keeps in the user's cache, or others on PATH. There is no controller and no
//! node: what they would do is the test's to play.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long the server may take to come up.
const PATIENCE: Duration = Duration::from_secs(90);

/// Who may do everything.
pub(crate) const ADMIN: &str = "admin";

/// Where the programs are, if they are anywhere.
fn programs() -> Option<[PathBuf; 2]> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let kept = cache.and_then(|cache| fs::read_dir(cache.join("olmkit/cluster")).ok());
    let mut places: Vec<PathBuf> = kept.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    places.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    let both = |place: &PathBuf| ["etcd", "kube-apiserver"].map(|name| place.join(name));
    places.iter().map(both).find(|both| both.iter().all(|program| program.is_file()))
}

/// Another program that is kept with the server, such as `kube-controller-manager`.
#[allow(dead_code, reason = "of the programs that include this file, not every one asks")]
pub(crate) fn beside(name: &str) -> Option<PathBuf> {
    let [_, server] = programs()?;
    Some(server.with_file_name(name)).filter(|program| program.is_file())
}

/// Why tests cannot have a server, if they cannot.
pub(crate) fn missing() -> Option<String> {
    programs()
        .is_none()
        .then(|| "etcd and kube-apiserver are not installed (`tests/cluster/build` builds them)".into())
}

/// A server that runs. It ends with the value.
pub(crate) struct ApiServer {
    dir: TempDir,
    etcd: Child,
    api: Option<Child>,
    program: PathBuf,
    ports: [u16; 2],
}

impl ApiServer {
    /// Starts it. It knows `others` besides the administrator, and gives them no rights. `ready` asks it something, by the
    /// administrator's kubeconfig.
    pub(crate) fn start(others: &[&str], ready: impl Fn(&Path) -> bool) -> Self {
        let [etcd, program] = programs().expect("the programs were looked for before");
        let dir = tempfile::tempdir().unwrap();
        let [client, peer, secure] = [free_port(), free_port(), free_port()];
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let etcd = Command::new(etcd)
            .args(["--unsafe-no-fsync", "--log-level=error", "--data-dir"])
            .arg(dir.path().join("etcd"))
            .args(["--listen-client-urls", &url(client), "--advertise-client-urls", &url(client)])
            .args(["--listen-peer-urls", &url(peer), "--initial-advertise-peer-urls", &url(peer)])
            .args(["--initial-cluster", &format!("default={}", url(peer))])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        fs::write(dir.path().join("sa.key"), key.serialize_pem()).unwrap();
        fs::write(dir.path().join("sa.pub"), key.public_key_pem()).unwrap();
        let mut tokens = format!("{ADMIN}-token,{ADMIN},1,\"system:masters\"\n");
        for user in others {
            tokens += &format!("{user}-token,{user},{user}\n");
        }
        fs::write(dir.path().join("tokens.csv"), tokens).unwrap();
        for user in others.iter().chain(&[ADMIN]) {
            let text = format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
                 clusters: [{{name: test, cluster: {{server: 'https://127.0.0.1:{secure}', insecure-skip-tls-verify: true}}}}]\n\
                 users: [{{name: test, user: {{token: {user}-token}}}}]\n\
                 contexts: [{{name: test, context: {{cluster: test, user: test}}}}]\n"
            );
            fs::write(dir.path().join(user), text).unwrap();
        }
        let mut server = Self { dir, etcd, api: None, program, ports: [client, secure] };
        server.start_api(ready);
        server
    }

    fn start_api(&mut self, ready: impl Fn(&Path) -> bool) {
        let [client, secure] = self.ports;
        let at = |name: &str| self.dir.path().join(name).display().to_string();
        let log = fs::File::create(self.dir.path().join("apiserver.log")).unwrap();
        let child = Command::new(&self.program)
            .arg(format!("--etcd-servers=http://127.0.0.1:{client}"))
            .arg(format!("--secure-port={secure}"))
            .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
            .arg(format!("--cert-dir={}", at("certs")))
            .arg(format!("--token-auth-file={}", at("tokens.csv")))
            .args(["--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"])
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg(format!("--service-account-key-file={}", at("sa.pub")))
            .arg(format!("--service-account-signing-key-file={}", at("sa.key")))
            .arg("--service-cluster-ip-range=10.96.0.0/16")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.api = Some(child);
        let begun = Instant::now();
        while !ready(&self.kubeconfig(ADMIN)) {
            let log = || fs::read_to_string(self.dir.path().join("apiserver.log")).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "kube-apiserver does not come up:\n{}", log());
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }

    /// Stops the server; its data stay. `restart` starts it again.
    #[allow(dead_code, reason = "of the programs that include this file, not every one stops it")]
    pub(crate) fn stop(&mut self) {
        self.stop_api();
    }

    /// Stops the server and starts it again; its data stay.
    #[allow(dead_code, reason = "of the programs that include this file, not every one restarts it")]
    pub(crate) fn restart(&mut self, ready: impl Fn(&Path) -> bool) {
        self.stop_api();
        self.start_api(ready);
    }

    fn stop_api(&mut self) {
        if let Some(mut api) = self.api.take() {
            let _ = api.kill();
            let _ = api.wait();
        }
    }

    /// Where it listens.
    #[allow(dead_code, reason = "of the programs that include this file, not every one asks")]
    pub(crate) fn address(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports[1])
    }

    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.dir.path().join(user)
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.stop_api();
        let _ = self.etcd.kill();
        let _ = self.etcd.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
