//! A kubelet for members of etcd: each pod's own command runs as a process of this machine, at an address of its own.
//!
//! Pods have addresses in 127.0.0.0/8. The names that the pods have in a cluster are in a hosts file, which each process sees
//! as /etc/hosts: it is mounted there in a namespace of its own.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    etcd,
    support::{Cluster, parts::Part, signal},
};

/// Whether the machine has both minor versions, and can mount a hosts file.
pub(crate) fn needed() -> [Part; 2] {
    let hosts = tempfile::NamedTempFile::new().unwrap();
    let mounts = apart(hosts.path(), Path::new("true")).output();
    let refused = !mounts.is_ok_and(|output| output.status.success());
    let refused = refused.then(|| "cannot mount a hosts file in a namespace of its own".to_owned());
    [Part::new("etcd", etcd::missing()), Part::new("mounts", refused)]
}

/// A program that sees this file as /etc/hosts.
fn apart(hosts: &Path, program: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c"]);
    command.arg("mount --bind \"$0\" /etc/hosts && exec \"$@\"").arg(hosts).arg(program);
    command
}

/// A pod's process.
struct Running {
    process: Child,
    image: String,
    ip: String,
    dir: TempDir,
    number: u32,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Addresses, and ids of containers: no two are the same.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Runs the pods of one namespace for as long as the value lives.
pub(crate) struct Members {
    task: tokio::task::JoinHandle<()>,
    inside: Arc<Inside>,
}

struct Inside {
    namespace: String,
    /// By pod, with its uid: one of the same name is another one.
    pods: Mutex<BTreeMap<(String, String), Running>>,
    hosts: tempfile::NamedTempFile,
    /// The volume with the snapshots.
    volume: TempDir,
}

impl Members {
    pub(crate) fn start(cluster: &Cluster, namespace: &str) -> Self {
        let mut hosts = tempfile::NamedTempFile::new().unwrap();
        writeln!(hosts, "127.0.0.1 localhost").unwrap();
        let inside = Arc::new(Inside {
            namespace: namespace.into(),
            pods: Mutex::default(),
            hosts,
            volume: tempfile::tempdir().unwrap(),
        });
        let api: Api<Pod> = cluster.api(namespace);
        let task = tokio::spawn({
            let inside = inside.clone();
            async move {
                loop {
                    inside.sync(&api).await;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        });
        Self { task, inside }
    }

    /// Addresses of the pods of a cluster.
    pub(crate) fn addresses(&self, cluster: &str) -> Vec<String> {
        let pods = self.inside.lock();
        let of = |name: &str| name.rsplit_once('-').is_some_and(|(prefix, _)| prefix == cluster);
        pods.iter().filter(|((name, _), _)| of(name)).map(|(_, running)| running.ip.clone()).collect()
    }

    /// Kills a member's process. Its pod stays, and the process is started again.
    pub(crate) fn kill(&self, name: &str) {
        let pods = self.inside.lock();
        let running = pods.iter().find(|((pod, _), _)| pod == name).unwrap().1;
        signal::send("KILL", running.process.id());
    }

    /// Runs the pod of a CronJob to its end, as a Job of this name.
    pub(crate) fn job(&self, cronjob: &Value, job: &str) {
        let container = &cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0];
        let words = container["command"].as_array().unwrap().iter();
        let words: Vec<String> = words.map(|word| word.as_str().unwrap().replace("$(JOB)", job)).collect();
        // A Service that leads to any of the members.
        let cluster = cronjob["metadata"]["name"].as_str().unwrap().strip_suffix("-backup").unwrap();
        let service = format!("{cluster}-client.{}.svc", self.inside.namespace);
        self.inside.host(&self.addresses(cluster)[0], &service);
        let image = container["image"].as_str().unwrap();
        let output = self.inside.command(&words, image, "", Path::new("")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.task.abort();
        self.inside.lock().clear();
    }
}

impl Inside {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, String), Running>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a name to an address. Of several, the last one counts.
    fn host(&self, ip: &str, name: &str) {
        let path = self.hosts.path();
        let kept: Vec<String> = fs::read_to_string(path)
            .unwrap()
            .lines()
            .filter(|line| line.split(' ').nth(1) != Some(name))
            .map(str::to_owned)
            .collect();
        // In place: the file is mounted.
        fs::write(path, format!("{}\n{ip} {name}\n", kept.join("\n"))).unwrap();
    }

    /// A container's command, with what is different on this machine.
    fn command(&self, words: &[String], image: &str, ip: &str, data: &Path) -> Command {
        let minor = if image.contains("3.5") { "3.5" } else { "3.6" };
        let here = |word: &String| {
            word.replace("0.0.0.0", ip)
                .replace("/var/lib/etcd", &data.display().to_string())
                .replace("/snapshots", &self.volume.path().display().to_string())
        };
        let program = words[0].rsplit('/').next().unwrap();
        let program = etcd::program(minor, program).expect("it was looked for before");
        let mut command = apart(self.hosts.path(), &program);
        command.args(words[1..].iter().map(here)).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn spawn(&self, container: &Value, ip: &str, dir: &Path) -> Child {
        let log = fs::File::options().create(true).append(true).open(dir.join("log")).unwrap();
        let mut command = self.command(&words(container), container["image"].as_str().unwrap(), ip, dir);
        command.args(["--unsafe-no-fsync", "--log-level=warn"]).stderr(log).spawn().unwrap()
    }

    /// What a kubelet does: starts pods, restarts what has ended or has another image, ends what is gone, and says so.
    async fn sync(&self, api: &Api<Pod>) {
        let Ok(list) = api.list(&ListParams::default()).await else { return };
        let known = |pod: &Pod| (pod.name_any(), pod.uid().unwrap());
        self.lock().retain(|key, _| list.items.iter().any(|pod| known(pod) == *key));
        for pod in &list.items {
            let all = serde_json::to_value(pod).unwrap();
            let container = &all["spec"]["containers"][0];
            let status = {
                let mut pods = self.lock();
                let running = pods.entry(known(pod)).or_insert_with(|| self.first(&all));
                let image = container["image"].as_str().unwrap();
                if running.image != image {
                    // As a kubelet: it asks first.
                    signal::send("TERM", running.process.id());
                    let _ = running.process.wait();
                }
                if running.process.try_wait().unwrap().is_some() {
                    running.process = self.spawn(container, &running.ip, running.dir.path());
                    running.image = image.to_owned();
                    running.number = NEXT.fetch_add(1, Ordering::Relaxed);
                }
                status(running.number, &running.image, &running.ip)
            };
            if all["status"]["containerStatuses"][0]["containerID"]
                != status["containerStatuses"][0]["containerID"]
            {
                let patch = Patch::Merge(json!({"status": status}));
                // It may be gone by now.
                let _ = api.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await;
            }
        }
    }

    fn first(&self, pod: &Value) -> Running {
        let (number, ip) = next();
        let dir = tempfile::tempdir().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (name, subdomain) = (text(&pod["spec"]["hostname"]), text(&pod["spec"]["subdomain"]));
        self.host(&ip, &format!("{name}.{subdomain}.{}.svc", self.namespace));
        let container = &pod["spec"]["containers"][0];
        for init in pod["spec"]["initContainers"].as_array().into_iter().flatten() {
            let mut command = self.command(&words(init), init["image"].as_str().unwrap(), &ip, dir.path());
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let process = self.spawn(container, &ip, dir.path());
        Running { process, image: text(&container["image"]), ip, dir, number }
    }
}

/// A number that no other pod of this program has, and an address that none of another program has either.
pub(crate) fn next() -> (u32, String) {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    (number, format!("127.{}.{}.{}", 16 + std::process::id() % 200, number / 250, number % 250 + 1))
}

/// The status of a pod that runs.
pub(crate) fn status(number: u32, image: &str, ip: &str) -> Value {
    json!({
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{
            "name": "etcd", "containerID": format!("process://{number}"), "image": image,
            "imageID": image, "ready": true, "restartCount": 0,
        }],
    })
}

fn words(container: &Value) -> Vec<String> {
    let words = container["command"].as_array().unwrap().iter();
    words.map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// What a member answers to a request of a client.
pub(crate) fn ask(ip: &str, path: &str, body: &Value) -> Option<Value> {
    let patience = Duration::from_secs(3);
    let mut stream = TcpStream::connect_timeout(&format!("{ip}:2379").parse().unwrap(), patience).ok()?;
    stream.set_read_timeout(Some(patience)).unwrap();
    let body = body.to_string();
    let length = body.len();
    write!(stream, "POST /v3/{path} HTTP/1.0\r\nHost: {ip}\r\nContent-Length: {length}\r\n\r\n{body}")
        .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let ok = head.split(' ').nth(1) == Some("200");
    ok.then(|| serde_json::from_str(body).ok()).flatten()
}
