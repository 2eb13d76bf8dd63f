//! What a cluster does around the operator, played: the StatefulSet controller, and a kubelet whose containers are whatever
//! a test makes of them, each at an address of its own in 127/8.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

use futures_util::{StreamExt, stream};
use k8s_openapi::ByteString;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, Pod, Secret},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use redis_operator::controller::children::PORT;
use serde_json::json;

/// An image that cannot be pulled.
pub(crate) const NO_IMAGE: &str = "registry.example.com/redis:none";
/// Calls of the API server at once.
const AT_ONCE: usize = 16;

/// Runs containers.
pub(crate) trait Runtime: Send + Sync {
    /// Starts the container of a pod; it runs as long as what is given back.
    fn start(&self, settings: &RedisSettings) -> Box<dyn Send>;
}

/// What a container is told.
pub(crate) struct RedisSettings {
    pub(crate) pod: String,
    pub(crate) ordinal: u32,
    pub(crate) ip: IpAddr,
    pub(crate) redis_conf: String,
    pub(crate) password: String,
    pub(crate) previous: Option<String>,
    /// The files of the certificate, for nodes with TLS.
    pub(crate) certificate: BTreeMap<String, ByteString>,
    pub(crate) namespace: String,
}

impl RedisSettings {
    /// The host name of a pod of the same cluster.
    pub(crate) fn hostname(&self, pod: &str) -> String {
        let cluster = pod.rsplit_once('-').unwrap().0;
        format!("{pod}.{cluster}-headless.{}.svc.cluster.local", self.namespace)
    }
}

/// The pods of one namespace.
pub(crate) struct Node {
    client: Client,
    namespace: String,
    runtime: Box<dyn Runtime>,
    /// Second number of the addresses: each namespace has its own.
    network: u8,
    started: u16,
    pods: BTreeMap<String, Box<dyn Send>>,
    /// Pods that do not fit on any node.
    pub(crate) unschedulable: BTreeSet<String>,
    /// Pods that the API server refuses, for example because of a quota.
    pub(crate) refused: BTreeSet<String>,
    /// Pods that are made without the files of passwords, as by release 0.5.
    pub(crate) without_files: BTreeSet<String>,
    /// The Kubernetes nodes of pods, where that matters.
    pub(crate) hosts: BTreeMap<String, String>,
}

impl Node {
    pub(crate) fn new(client: &Client, namespace: &str, runtime: Box<dyn Runtime>) -> Self {
        // Tests that run at the same time have different addresses.
        static NETWORK: AtomicU8 = AtomicU8::new(78);
        let (client, namespace) = (client.clone(), namespace.to_owned());
        let network = NETWORK.fetch_add(1, Ordering::Relaxed);
        Self {
            client,
            namespace,
            runtime,
            network,
            started: 0,
            pods: BTreeMap::new(),
            unschedulable: BTreeSet::new(),
            refused: BTreeSet::new(),
            without_files: BTreeSet::new(),
            hosts: BTreeMap::new(),
        }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Makes and removes pods until there are as many as wanted.
    pub(crate) async fn turn(&mut self) {
        // Without a kubelet, pods that are deleted are gone at once.
        let there = self.api::<Pod>().list(&ListParams::default()).await.unwrap();
        self.pods.retain(|name, _| there.iter().any(|pod| pod.name_any() == *name));
        let sets = self.api::<StatefulSet>().list(&ListParams::default()).await.unwrap();
        let mut wanted = BTreeSet::new();
        let mut new = vec![];
        for pod in &there {
            // Nobody's: a StatefulSet that is made anew adopts it.
            if pod.owner_references().is_empty() {
                wanted.insert(pod.name_any());
                let prefix = |set: &&StatefulSet| pod.name_any().starts_with(&format!("{}-", set.name_any()));
                let adopts = |set: &&StatefulSet| set.metadata.deletion_timestamp.is_none() && prefix(set);
                if let Some(set) = sets.iter().find(adopts) {
                    self.own(&pod.name_any(), Some(set)).await;
                }
            }
        }
        for set in &sets {
            if set.metadata.deletion_timestamp.is_some() {
                self.orphan(set, &there.items).await;
                wanted.extend(there.iter().map(|pod| pod.name_any()));
                continue;
            }
            let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
            self.see(set, replicas).await;
            for ordinal in 0..u32::try_from(replicas).unwrap() {
                let pod = format!("{}-{ordinal}", set.name_any());
                if !self.pods.contains_key(&pod) && !self.refused.contains(&pod) {
                    self.started += 1;
                    let [high, low] = self.started.to_be_bytes();
                    new.push((set, pod.clone(), ordinal, Ipv4Addr::new(127, self.network, high, low).into()));
                }
                wanted.insert(pod);
            }
        }
        let made = stream::iter(new).map(|(set, pod, ordinal, ip)| self.make(set, pod, ordinal, ip));
        let made: Vec<_> = made.buffer_unordered(AT_ONCE).collect().await;
        self.pods.extend(made);
        let gone: Vec<String> = self.pods.keys().filter(|pod| !wanted.contains(*pod)).cloned().collect();
        for pod in gone {
            self.lose(&pod).await;
        }
        self.set_ready().await;
    }

    /// The controller says which version of the StatefulSet it has seen.
    async fn see(&self, set: &StatefulSet, replicas: i32) {
        let seen = set.status.as_ref().and_then(|status| status.observed_generation);
        if seen != set.metadata.generation {
            let status = json!({"observedGeneration": set.metadata.generation, "replicas": replicas});
            let (sets, parameters) = (self.api::<StatefulSet>(), PatchParams::default());
            let patch = Patch::Merge(json!({"status": status}));
            sets.patch_status(&set.name_any(), &parameters, &patch).await.unwrap();
        }
    }

    /// A pod is ready when its containers and all its readiness gates are.
    async fn set_ready(&self) {
        for pod in self.api::<Pod>().list(&ListParams::default()).await.unwrap() {
            let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.clone()).unwrap_or_default();
            let mut kinds = gates.into_iter().map(|gate| gate.condition_type);
            let ready = holds(&pod, "ContainersReady") && kinds.all(|kind| holds(&pod, &kind));
            if holds(&pod, "Ready") != ready {
                let status = if ready { "True" } else { "False" };
                let patch = json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
                let (pods, parameters) = (self.api::<Pod>(), PatchParams::default());
                pods.patch_status(&pod.name_any(), &parameters, &Patch::Strategic(patch)).await.unwrap();
            }
        }
    }

    /// What the garbage collector does with a StatefulSet that is deleted without its pods.
    async fn orphan(&self, set: &StatefulSet, pods: &[Pod]) {
        for pod in pods
            .iter()
            .filter(|pod| pod.owner_references().iter().any(|owner| Some(&owner.uid) == set.uid().as_ref()))
        {
            self.own(&pod.name_any(), None).await;
        }
        if set.finalizers() == ["orphan"] {
            let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let (sets, parameters) = (self.api::<StatefulSet>(), PatchParams::default());
            sets.patch(&set.name_any(), &parameters, &patch).await.unwrap();
        }
    }

    /// Sets the owner of a pod.
    async fn own(&self, pod: &str, set: Option<&StatefulSet>) {
        let owners: Vec<OwnerReference> = set.map(owner).into_iter().collect();
        let patch = Patch::Merge(json!({"metadata": {"ownerReferences": owners}}));
        self.api::<Pod>().patch(pod, &PatchParams::default(), &patch).await.unwrap();
    }

    /// A pod is gone, with its process. The next turn makes another.
    pub(crate) async fn lose(&mut self, pod: &str) {
        self.pods.remove(pod);
        self.api::<Pod>().delete(pod, &DeleteParams::default().grace_period(0)).await.unwrap();
    }

    async fn make(
        &self,
        set: &StatefulSet,
        pod: String,
        ordinal: u32,
        ip: IpAddr,
    ) -> (String, Box<dyn Send>) {
        let name = set.name_any();
        let config = self.api::<ConfigMap>().get(&format!("{name}-config")).await.unwrap();
        let secret = self.api::<Secret>().get(&format!("{name}-auth")).await.unwrap();
        let word = |key: &str| {
            let value = secret.data.as_ref()?.get(key)?;
            Some(String::from_utf8(value.0.clone()).unwrap())
        };
        let volumes = set.spec.as_ref().unwrap().template.spec.as_ref().unwrap().volumes.clone();
        let mounted = volumes.unwrap_or_default().into_iter().find(|volume| volume.name == "tls");
        let certificate = match mounted.and_then(|volume| volume.secret?.secret_name) {
            Some(name) => self.api::<Secret>().get(&name).await.unwrap().data.unwrap(),
            None => BTreeMap::new(),
        };
        let settings = RedisSettings {
            pod: pod.clone(),
            ordinal,
            ip,
            redis_conf: config.data.unwrap()["redis.conf"].clone(),
            password: word("password").unwrap(),
            previous: word("previousPassword"),
            certificate,
            namespace: self.namespace.clone(),
        };
        let scheduled = !self.unschedulable.contains(&pod);
        let template = &set.spec.as_ref().unwrap().template;
        let mut spec = template.spec.clone().unwrap();
        spec.node_name = self.hosts.get(&pod).cloned();
        if self.without_files.contains(&pod) {
            spec.volumes.get_or_insert_default().retain(|volume| volume.name != "passwords");
            let mounts = spec.containers[0].volume_mounts.get_or_insert_default();
            mounts.retain(|mount| mount.name != "passwords");
        }
        let pulled = spec.containers[0].image.as_deref() != Some(NO_IMAGE);
        let others = spec.containers[1..].iter();
        let failing = others.clone().find(|container| container.image.as_deref() == Some(NO_IMAGE));
        let failing = failing.map(|container| container.name.clone());
        let running: Box<dyn Send> =
            if scheduled && pulled { self.runtime.start(&settings) } else { Box::new(()) };
        if set.spec.as_ref().unwrap().volume_claim_templates.is_some() {
            let claim =
                json!({"name": "data", "persistentVolumeClaim": {"claimName": format!("data-{pod}")}});
            spec.volumes.get_or_insert_default().push(serde_json::from_value(claim).unwrap());
        }
        let object = Pod {
            metadata: ObjectMeta {
                name: Some(pod.clone()),
                labels: template.metadata.as_ref().unwrap().labels.clone(),
                annotations: template.metadata.as_ref().unwrap().annotations.clone(),
                owner_references: Some(vec![owner(set)]),
                ..Default::default()
            },
            spec: Some(spec),
            status: None,
        };
        let pods = self.api::<Pod>();
        pods.create(&PostParams::default(), &object).await.unwrap();
        let waiting = || json!({"reason": "ErrImagePull", "message": "not found"});
        let status = if let Some(failing) = failing {
            json!({"status": {
                "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
                "conditions": [{"type": "ContainersReady", "status": "False"}],
                "containerStatuses": [{
                    "name": failing, "image": NO_IMAGE, "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"waiting": waiting()},
                }, {
                    "name": "redis", "image": "redis", "imageID": "", "ready": true, "restartCount": 0,
                    "state": {"running": {}},
                }],
            }})
        } else if scheduled && !pulled {
            json!({"status": {
                "phase": "Pending", "podIP": ip, "podIPs": [{"ip": ip}],
                "conditions": [{"type": "ContainersReady", "status": "False"}],
                "containerStatuses": [{
                    "name": "redis", "image": NO_IMAGE, "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"waiting": waiting()},
                }],
            }})
        } else if scheduled {
            json!({"status": {
                "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
                "conditions": [{"type": "ContainersReady", "status": "True"}],
            }})
        } else {
            let why = json!({
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/3 nodes are available: 3 Insufficient memory.",
            });
            json!({"status": {"phase": "Pending", "conditions": [why]}})
        };
        pods.patch_status(&pod, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
        (pod, running)
    }
}

fn owner(set: &StatefulSet) -> OwnerReference {
    OwnerReference {
        api_version: "apps/v1".into(),
        kind: "StatefulSet".into(),
        name: set.name_any(),
        uid: set.uid().unwrap(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Whether a condition of a pod is True.
pub(crate) fn holds(pod: &Pod, kind: &str) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == kind && one.status == "True")
}

/// Real redis-servers, with the configuration that the operator made. A pod on a volume has the data of the one before.
pub(crate) struct RealRedis(pub(crate) tempfile::TempDir);

struct Server {
    process: Child,
    on_volume: bool,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Gone already is as good.
        if self.on_volume {
            crate::signal::send("TERM", self.process.id());
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
            // It cannot end in order once its directory is gone, at the end of a test.
            while std::time::Instant::now() < deadline && matches!(self.process.try_wait(), Ok(None)) {
                std::thread::park_timeout(std::time::Duration::from_millis(10));
            }
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Runtime for RealRedis {
    fn start(&self, settings: &RedisSettings) -> Box<dyn Send> {
        let on_volume = settings.redis_conf.contains("appendonly yes");
        let place = if on_volume { settings.pod.clone() } else { settings.ip.to_string() };
        let dir = self.0.path().join(place);
        fs::create_dir_all(&dir).unwrap();
        let conf = settings.redis_conf.replace("dir /data", &format!("dir {}", dir.display()));
        let conf = conf.replace("/etc/redis-tls", &dir.display().to_string());
        write_files(&dir, &settings.certificate);
        let RedisSettings { ip, pod, password, previous, .. } = settings;
        let user = previous.as_ref().map_or_else(String::new, |previous| {
            format!("user default on ~* &* +@all \">{password}\" \">{previous}\"\n")
        });
        let own = format!(
            "bind {ip}\ncluster-announce-ip {ip}\ncluster-announce-hostname {}\n\
             requirepass \"{password}\"\nmasterauth \"{password}\"\n{user}",
            settings.hostname(pod)
        );
        let file = dir.join("redis.conf");
        fs::write(&file, conf + &own).unwrap();
        let log = fs::File::create(dir.join("log")).unwrap();
        let process =
            Command::new("redis-server").arg(&file).stdout(log).stderr(Stdio::null()).spawn().unwrap();
        let server = Server { process, on_volume };
        wait(&dir, *ip);
        Box::new(server)
    }
}

/// Brings a Secret into the files of a pod, as the kubelet does.
pub(crate) fn write_files(dir: &Path, secret: &BTreeMap<String, ByteString>) {
    for (key, value) in secret {
        fs::write(dir.join(key), &value.0).unwrap();
    }
}

fn wait(dir: &Path, ip: IpAddr) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while std::net::TcpStream::connect((ip, PORT)).is_err() {
        let log = || fs::read_to_string(dir.join("log")).unwrap();
        assert!(std::time::Instant::now() < deadline, "redis-server does not listen: {}", log());
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
}
