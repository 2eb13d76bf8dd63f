//! Real redis-server processes, each at an address of its own in 127/8, as the pods of a StatefulSet.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use k8s_openapi::{
    ByteString,
    api::core::v1::Secret,
    apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time},
    jiff::Timestamp,
};
use redis_operator::{
    controller::{
        children::{self, Defaults, Live, config_map},
        outsiders::Outsiders,
        passwords::Rotation,
        promotions::Promotions,
        tls,
    },
    crd::RedisCluster,
    metrics::Metrics,
    plan::{Action, Copies, Goal, NodeId, Observed, Plan, Pod, SLOTS, Step, Topology, Update, plan},
    server::{
        Access, Password,
        act::{ActError, Always, HOLD, Permit, act},
        observe::observe,
        passwords::{self, Allowed},
    },
};
use tokio::task::JoinHandle;

use crate::flavour::Flavour;

/// The password of every cluster here.
pub(crate) const PASSWORD: &str = "walrus";
/// Where every node listens.
pub(crate) const PORT: u16 = 17379;

/// Tests run side by side: each has a network of its own.
static NETWORKS: AtomicU8 = AtomicU8::new(1);

struct Server {
    uid: u32,
    ip: IpAddr,
    /// The template that its pod was made from.
    template: u32,
    process: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A StatefulSet of redis-servers.
pub(crate) struct Servers {
    pub(crate) goal: Goal,
    pub(crate) access: Access,
    persistent: bool,
    dir: tempfile::TempDir,
    network: u8,
    started: u32,
    replicas: u32,
    /// How many pods there were before all were stopped.
    before: u32,
    /// Since when clients cannot write, because all pods are to stop.
    held: Option<Instant>,
    servers: BTreeMap<u32, Server>,
    /// When slots were moved the last time.
    moved: Option<Instant>,
    /// Since when a replica should have been elected.
    electing: Option<Instant>,
    /// Since when the majority of the primaries has been missing.
    quorum_lost: Option<Instant>,
    /// Ordinals of those that owned slots at the last look.
    last_owners: BTreeSet<u32>,
    /// The node of each pod when it was last a member.
    known: BTreeMap<String, NodeId>,
    /// The Kubernetes node of each pod, where that matters.
    pub(crate) hosts: BTreeMap<u32, String>,
    /// Slots whose migration the operator interrupted.
    left_open: BTreeSet<u16>,
    /// Ordinals of pods that the kubelet reports as not ready, or whose Kubernetes node is lost.
    pub(crate) unready: BTreeSet<u32>,
    /// Ordinals of pods whose processes are confirmed to have ended.
    pub(crate) ended: BTreeSet<u32>,
    /// What was known of replicas at the last look.
    copies: Option<Copies>,
    /// The template that pods should have, and are made from.
    pub(crate) template: u32,
    /// The passwords in the Secret with which pods start: the present one, and the one before.
    pub(crate) secret: (String, Option<String>),
    /// Whether passwords that are not in the Secret may be removed; `None` where passwords are left alone.
    pub(crate) removal: Option<bool>,
    /// What the Secret of `spec.tls` has, for nodes with TLS.
    pub(crate) certificate: Option<Secret>,
    /// The nodes that have loaded it.
    loads: tls::Loads,
    /// How far nodes were with it at the last look.
    pub(crate) loaded: tls::Loaded,
    /// The template whose pods cannot start.
    pub(crate) broken: Option<u32>,
    promotions: Promotions,
    outsiders: Outsiders,
}

impl Servers {
    pub(crate) fn new(size: u32, replicas_per_shard: u32, persistent: bool) -> Self {
        Self {
            goal: Goal {
                size,
                replicas_per_shard,
                slots: SLOTS,
                update: Update { in_memory: !persistent, ..Update::default() },
                ..Goal::default()
            },
            template: 0,
            secret: (PASSWORD.into(), None),
            removal: None,
            certificate: None,
            loads: tls::Loads::default(),
            loaded: tls::Loaded::default(),
            broken: None,
            promotions: Promotions::new(Instant::now()),
            outsiders: Outsiders::default(),
            access: Access {
                port: PORT,
                host: Some(".rc-headless.ns.".into()),
                trust: None,
                password: Some(Password::new(PASSWORD.into())),
                previous: None,
                metrics: Arc::new(Metrics::default()),
            },
            persistent,
            dir: tempfile::tempdir().unwrap(),
            network: NETWORKS.fetch_add(1, Ordering::Relaxed),
            started: 0,
            replicas: 0,
            before: 0,
            held: None,
            servers: BTreeMap::new(),
            moved: None,
            electing: None,
            quorum_lost: None,
            last_owners: BTreeSet::new(),
            known: BTreeMap::new(),
            hosts: BTreeMap::new(),
            left_open: BTreeSet::new(),
            unready: BTreeSet::new(),
            ended: BTreeSet::new(),
            copies: None,
        }
    }

    /// Writes the Secret, which the operator and new processes read.
    pub(crate) fn write_secret(&mut self, password: &str, previous: Option<&str>) {
        let word = |word: &str| Password::new(word.into());
        self.secret = (password.into(), previous.map(str::to_owned));
        (self.access.password, self.access.previous) = (Some(word(password)), previous.map(word));
        self.removal.get_or_insert(true);
    }

    /// Writes the Secret with a certificate and its key, which the operator and new processes read. Files of running nodes stay.
    pub(crate) fn write_certificate(&mut self, authorities: &str, [certificate, key]: &[String; 2]) {
        let data = [("ca.crt", authorities), ("tls.crt", certificate), ("tls.key", key)];
        let bytes = |(key, text): (&str, &str)| (key.to_owned(), ByteString(text.into()));
        let mut secret = Secret { data: Some(data.map(bytes).into()), ..Secret::default() };
        secret.metadata.name = Some("rc-tls".into());
        let now = Some(Time(Timestamp::now()));
        secret.metadata.managed_fields =
            Some(vec![ManagedFieldsEntry { time: now, ..ManagedFieldsEntry::default() }]);
        self.access.trust = self.read_certificate(&secret).trust.or(self.access.trust.take());
        self.certificate = Some(secret);
    }

    fn read_certificate(&self, secret: &Secret) -> tls::Certificate {
        tls::Certificate::of(secret, Timestamp::now())
    }

    /// Two minutes pass, after which the Secret is in all files.
    pub(crate) fn age_certificate(&mut self) {
        let secret = self.certificate.as_mut().unwrap();
        let before = Timestamp::now() - Duration::from_secs(130);
        secret.metadata.managed_fields.as_mut().unwrap()[0].time = Some(Time(before));
    }

    /// Brings the Secret into the files of a node, as the kubelet does.
    pub(crate) fn refresh_files(&self, ordinal: u32) {
        let Some(secret) = &self.certificate else { return };
        let dir = self.tls_dir(ordinal);
        fs::create_dir_all(&dir).unwrap();
        for (key, value) in secret.data.iter().flatten() {
            fs::write(dir.join(key), &value.0).unwrap();
        }
    }

    /// Where a node has its certificate, if it has TLS.
    fn tls_dir(&self, ordinal: u32) -> PathBuf {
        self.dir.path().join(format!("tls-{ordinal}"))
    }

    /// Starts redis-server.
    fn launch(&self, ordinal: u32, ip: IpAddr) -> Child {
        self.refresh_files(ordinal);
        let dir = self.dir.path().join(ordinal.to_string());
        let tls = self.certificate.is_some().then(|| self.tls_dir(ordinal));
        launch(&dir, ip, &format!("rc-{ordinal}"), self.persistent, &self.secret, tls.as_deref())
    }

    /// How far nodes are with a change of the password.
    pub(crate) async fn rotation(&self) -> Rotation {
        Rotation::of(&self.access, &self.observe().await.pods)
    }

    /// Reconciles until nodes are as far as that with a change of the password.
    pub(crate) async fn rotate_until(&mut self, expected: &Rotation) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.rotation().await != *expected {
            assert!(Instant::now() < deadline, "{:?}: {:#?}", self.rotation().await, self.observe().await);
            let _ = self.reconcile(&Always).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Starts and stops processes until there are as many as `replicas`.
    pub(crate) fn scale(&mut self, replicas: u32) {
        self.replicas = replicas;
        let gone: Vec<u32> = self.servers.keys().copied().filter(|ordinal| *ordinal >= replicas).collect();
        for ordinal in gone {
            self.kill(ordinal);
            // The operator deletes the volume of a node that was drained.
            self.lose_volume(ordinal);
        }
        for ordinal in 0..replicas {
            if !self.servers.contains_key(&ordinal) {
                if !self.persistent {
                    self.lose_volume(ordinal);
                }
                self.start(ordinal);
            }
        }
    }

    /// Somebody else scales the StatefulSet to nothing. Volumes stay.
    pub(crate) fn scale_to_nothing(&mut self) {
        for ordinal in self.ordinals() {
            self.terminate(ordinal);
        }
        self.replicas = 0;
    }

    /// Stops all pods as Kubernetes does, at once: their last script, then SIGTERM. Volumes stay. How long each took.
    pub(crate) async fn stop_all(&mut self) -> Vec<Duration> {
        let scripts: Vec<_> =
            self.ordinals().into_iter().map(|ordinal| self.start_script("stop.sh", ordinal)).collect();
        let stops = std::mem::take(&mut self.servers).into_values().zip(scripts).map(
            |(mut server, script)| async move {
                let started = Instant::now();
                script.await.unwrap();
                crate::signal::send("TERM", server.process.id());
                let ended = move || server.process.wait().unwrap();
                let status = tokio::task::spawn_blocking(ended).await.unwrap();
                assert_eq!(status.code(), Some(0), "redis-server did not end in order");
                started.elapsed()
            },
        );
        self.replicas = 0;
        join_all(stops).await
    }

    pub(crate) fn ordinals(&self) -> Vec<u32> {
        self.servers.keys().copied().collect()
    }

    /// How many pods the StatefulSet has.
    pub(crate) fn replicas(&self) -> u32 {
        self.replicas
    }

    /// What a pod has on its volume is gone.
    pub(crate) fn lose_volume(&self, ordinal: u32) {
        let _ = fs::remove_dir_all(self.dir.path().join(ordinal.to_string()));
    }

    /// Copies of the volumes of a cluster that runs, as the pods of another RedisCluster start with them.
    pub(crate) fn copy_of(origin: &Self) -> Self {
        let mut copy = Self::new(origin.replicas, origin.goal.replicas_per_shard, true);
        copy.replicas = origin.replicas;
        for ordinal in 0..origin.replicas {
            let (from, to) =
                (origin.dir.path().join(ordinal.to_string()), copy.dir.path().join(ordinal.to_string()));
            let copied = Command::new("cp").arg("-r").arg(from).arg(&to).status().unwrap();
            assert!(copied.success());
            run_script("start.sh", &to, "127.0.0.1".parse().unwrap(), true);
            copy.start(ordinal);
        }
        copy
    }

    /// Runs a script of a pod beside its server: with these files of the Secret, and the password in the environment. Whether it
    /// succeeds.
    pub(crate) async fn run_script(
        &self,
        name: &'static str,
        ordinal: u32,
        files: &[(&str, &str)],
        password: &str,
    ) -> bool {
        let (dir, ip) = (self.dir.path().join(ordinal.to_string()), self.ip(ordinal));
        let _ = fs::remove_dir_all(dir.join("passwords"));
        fs::create_dir(dir.join("passwords")).unwrap();
        for (file, text) in files {
            fs::write(dir.join("passwords").join(file), text).unwrap();
        }
        let (persistent, password) = (self.persistent, password.to_owned());
        let tls = self.certificate.is_some().then(|| self.tls_dir(ordinal));
        let run = move || script_output(name, &dir, ip, persistent, &password, tls.as_deref());
        tokio::task::spawn_blocking(run).await.unwrap().status.success()
    }

    /// What the exporter of a pod reads, after its volume was made if it was not there.
    pub(crate) fn told_exporter(&self, ordinal: u32) -> String {
        let dir = self.dir.path().join(ordinal.to_string()).join("exporter");
        fs::create_dir_all(&dir).unwrap();
        fs::read_to_string(dir.join("passwords.json")).unwrap_or_default()
    }

    /// Starts a script of a pod beside its server.
    pub(crate) fn start_script(&self, name: &'static str, ordinal: u32) -> JoinHandle<()> {
        let (dir, ip) = (self.dir.path().join(ordinal.to_string()), self.ip(ordinal));
        let persistent = self.persistent;
        tokio::task::spawn_blocking(move || run_script(name, &dir, ip, persistent))
    }

    /// Sends a signal to a server.
    pub(crate) fn signal(&self, ordinal: u32, signal: &str) {
        crate::signal::send(signal, self.process(ordinal));
    }

    /// Process id of a server.
    pub(crate) fn process(&self, ordinal: u32) -> u32 {
        self.servers[&ordinal].process.id()
    }

    /// Process ids of all servers.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.servers.values().map(|server| server.process.id()).collect()
    }

    /// Kills a server as `kill -9` does. Its pod stays.
    pub(crate) fn kill_container(&mut self, ordinal: u32) {
        let server = self.servers.get_mut(&ordinal).unwrap();
        server.process.kill().unwrap();
        server.process.wait().unwrap();
        self.unready.insert(ordinal);
        self.ended.insert(ordinal);
    }

    /// Starts the server of a pod again, where it was.
    pub(crate) fn start_container(&mut self, ordinal: u32) {
        let ip = self.ip(ordinal);
        let process = self.launch(ordinal, ip);
        self.servers.get_mut(&ordinal).unwrap().process = process;
        self.unready.remove(&ordinal);
        self.ended.remove(&ordinal);
    }

    /// Starts a server at an address that nobody had before.
    pub(crate) fn start(&mut self, ordinal: u32) {
        let ip = Ipv4Addr::new(127, 77, self.network, u8::try_from(self.started + 1).unwrap());
        self.start_at(ordinal, ip.into());
    }

    pub(crate) fn start_at(&mut self, ordinal: u32, ip: IpAddr) {
        self.started += 1;
        let template = self.template;
        let process = if self.broken == Some(template) {
            self.unready.insert(ordinal);
            self.ended.insert(ordinal);
            Command::new("true").spawn().unwrap()
        } else {
            self.unready.remove(&ordinal);
            self.ended.remove(&ordinal);
            self.launch(ordinal, ip)
        };
        self.servers.insert(ordinal, Server { uid: self.started, ip, template, process });
    }

    /// Kills a server, and starts another at a new address: with its data where there is a volume.
    pub(crate) fn replace(&mut self, ordinal: u32) {
        self.kill(ordinal);
        if !self.persistent {
            fs::remove_dir_all(self.dir.path().join(ordinal.to_string())).unwrap();
        }
        self.start(ordinal);
    }

    /// Deletes a pod, as Kubernetes does, and makes another: with its data where there is a volume.
    pub(crate) fn restart(&mut self, ordinal: u32) {
        self.terminate(ordinal);
        if !self.persistent {
            self.lose_volume(ordinal);
        }
        self.start(ordinal);
    }

    /// What the operator and the StatefulSet make of pods with an older template.
    fn restart_outdated(&mut self, plan: &Plan) {
        let stuck =
            |server: &Server| self.broken == Some(server.template) && server.template != self.template;
        let mut ordinals: Vec<u32> =
            self.servers.iter().filter(|(_, server)| stuck(server)).map(|(ordinal, _)| *ordinal).collect();
        for action in &plan.actions {
            if let Action::Restart { pod, uid, .. } = action {
                let ordinal = pod.strip_prefix("rc-").unwrap().parse().unwrap();
                assert_eq!(self.servers[&ordinal].uid.to_string(), *uid);
                ordinals.push(ordinal);
            }
        }
        for ordinal in ordinals {
            self.restart(ordinal);
        }
    }

    /// Ends it without a word of farewell, as `kill -9` does.
    pub(crate) fn kill(&mut self, ordinal: u32) {
        drop(self.servers.remove(&ordinal));
    }

    /// Ends it as Kubernetes does: `kill -9` would take the last second of the append-only file with it.
    pub(crate) fn terminate(&mut self, ordinal: u32) {
        let mut server = self.servers.remove(&ordinal).unwrap();
        crate::signal::send("TERM", server.process.id());
        server.process.wait().unwrap();
    }

    pub(crate) fn ip(&self, ordinal: u32) -> IpAddr {
        self.servers[&ordinal].ip
    }

    pub(crate) async fn observe(&self) -> Observed {
        let mut pods: Vec<Pod> = self
            .servers
            .iter()
            .map(|(&ordinal, server)| Pod {
                ordinal,
                name: format!("rc-{ordinal}"),
                uid: server.uid.to_string(),
                ip: Some(server.ip),
                containers_ready: !self.unready.contains(&ordinal),
                ended: self.ended.contains(&ordinal),
                host: self.hosts.get(&ordinal).cloned(),
                outdated: server.template != self.template,
                ..Pod::default()
            })
            .collect();
        let open_keys = observe(&self.access, &Always, &mut pods).await;
        let replicas = if self.goal.hibernated { self.replicas } else { self.replicas.max(self.before) };
        let last_owners = self.last_owners.clone();
        Observed {
            pods,
            replicas: Some(replicas),
            open_keys,
            last_owners,
            known: self.known.clone(),
            keeps_volumes: true,
            ..Observed::default()
        }
    }

    /// One reconcile, and what the StatefulSet's controller makes of it.
    pub(crate) async fn reconcile(&mut self, permit: &dyn Permit) -> (Plan, Result<(), ActError>) {
        let (plan, done) = self.turn(permit).await;
        if plan.step == Step::Hibernate {
            if done.is_ok() {
                self.before = self.replicas;
                self.stop_all().await;
            }
            return (plan, done);
        }
        if !self.goal.hibernated {
            self.before = 0;
        }
        self.scale(plan.replicas);
        self.restart_outdated(&plan);
        (plan, done)
    }

    /// One reconcile, while pods neither come nor go.
    pub(crate) async fn turn(&mut self, permit: &dyn Permit) -> (Plan, Result<(), ActError>) {
        let holds = self.held.is_some_and(|since| since.elapsed() < HOLD / 2);
        let mut observed = Observed { holds, ..self.observe().await };
        if let Some(removal) = self.removal {
            let allowed = Allowed { all_known: observed.pods.len() >= self.replicas as usize, removal };
            passwords::change(&self.access, permit, &mut observed.pods, allowed).await;
        }
        if let Some(secret) = &self.certificate {
            let certificate = self.read_certificate(secret);
            let pods = &observed.pods;
            self.loaded = tls::load(&self.access, permit, &certificate, &mut self.loads, pods, true).await;
        }
        // The controller measures how long something has been so.
        let lasts = |since: &mut Option<Instant>, holds: bool| {
            *since = since.filter(|_| holds).or_else(|| holds.then(Instant::now));
            since.map_or(Duration::ZERO, |since| since.elapsed())
        };
        observed.promoted =
            self.promotions.see(&Topology::of(self.goal, &observed), 4 * NODE_TIMEOUT, Instant::now());
        let before = self.copies.take();
        let first = before.is_none();
        observed.copies = before.unwrap_or_default().next(&Topology::of(self.goal, &observed), first);
        self.copies = Some(observed.copies.clone());
        let topology = Topology::of(self.goal, &observed);
        let quorum_lost = self.goal.initialized && !topology.core.is_empty() && !topology.has_quorum();
        let electing = topology.awaits_election();
        let outside_lately = self.outsiders.see(&topology, Instant::now());
        observed.takeover_due = lasts(&mut self.quorum_lost, quorum_lost) >= 3 * NODE_TIMEOUT;
        observed.election_due = lasts(&mut self.electing, electing) >= 3 * NODE_TIMEOUT;
        let moved = *self.moved.get_or_insert_with(Instant::now);
        observed.leave_due = moved.elapsed() >= Duration::from_secs(2);
        observed.outside_lately = outside_lately;
        observed.left_open = std::mem::take(&mut self.left_open);
        let topology = Topology::of(self.goal, &observed);
        let plan = plan(&topology);
        if plan.step == Step::Move {
            self.moved = Some(Instant::now());
        }
        if topology.serves() {
            self.goal.initialized = true;
        }
        if !topology.core.is_empty() {
            self.last_owners = topology.owners().map(|owner| owner.pod.ordinal).collect();
            let members = topology.core.iter().filter(|member| !member.node.alone());
            self.known.extend(members.map(|member| (member.pod.name.clone(), member.node.id)));
        }
        let done = act(&self.access, permit, &plan.actions).await;
        let held = matches!(plan.step, Step::Hold | Step::Hibernate) && done.is_ok();
        self.held = held.then(Instant::now);
        let skipped = done.map(|done| {
            self.left_open = done.left_open;
            done.skipped
        });
        (plan, skipped.and_then(|skipped| skipped.map_or(Ok(()), Err)))
    }

    /// Reconciles until nothing is to be done. Returns the steps that it took, without repetitions.
    pub(crate) async fn settle(&mut self, within: Duration) -> Vec<Step> {
        let deadline = Instant::now() + within;
        let mut steps: Vec<Step> = vec![];
        let mut last = None;
        while Instant::now() < deadline {
            let (plan, done) = self.reconcile(&Always).await;
            if plan.step == Step::Settled {
                return steps;
            }
            if steps.last() != Some(&plan.step) {
                steps.push(plan.step);
            }
            // What Redis refuses while its nodes are still hearing of one another is asked again.
            last = done.err().map(|error| format!("{error}: {:?}", std::error::Error::source(&error)));
            if plan.actions.is_empty() || last.is_some() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        panic!("not settled after {within:?}: {steps:?}, last {last:?}\n{:#?}", self.observe().await);
    }

    /// The number of keys at the primaries.
    pub(crate) async fn keys(&self) -> u64 {
        let observed = self.observe().await;
        let nodes = observed.pods.iter().filter_map(|pod| pod.redis.as_ref());
        nodes.filter(|node| node.primary().is_none()).map(|node| node.keys).sum()
    }

    /// Waits until every replica has read all that its primary wrote before this: what is acknowledged later can be lost with the primary.
    pub(crate) async fn in_step(&self) {
        let deadline = Instant::now() + Duration::from_secs(120);
        let begun = self.observe().await;
        let begun: BTreeMap<_, _> = begun
            .pods
            .iter()
            .filter_map(|pod| pod.redis.as_ref())
            .map(|node| (node.id, node.offset))
            .collect();
        loop {
            let observed = self.observe().await;
            let nodes = observed.pods.iter().filter_map(|pod| pod.redis.as_ref());
            let behind = nodes.filter(|node| {
                node.primary()
                    .is_some_and(|primary| begun.get(&primary).is_none_or(|offset| node.offset < *offset))
            });
            let behind: Vec<_> = behind.collect();
            if behind.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "replicas stay behind: {behind:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Slots per primary, fewest first.
    pub(crate) async fn slots(&self) -> Vec<usize> {
        let observed = self.observe().await;
        let nodes = observed.pods.iter().filter_map(|pod| pod.redis.as_ref());
        let mut slots: Vec<_> =
            nodes.filter(|node| node.primary().is_none()).map(|node| node.slots().len()).collect();
        slots.sort_unstable();
        slots
    }
}

/// How long a node is silent before the others miss it.
pub(crate) const NODE_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts a server of the test's flavour with the directives that the operator gives it, and waits until it listens.
fn launch(
    dir: &Path,
    ip: IpAddr,
    name: &str,
    persistent: bool,
    (password, previous): &(String, Option<String>),
    tls: Option<&Path>,
) -> Child {
    fs::create_dir_all(dir).unwrap();
    let save = if persistent {
        "save \"\"\nappendonly yes\nappendfsync everysec"
    } else {
        "save \"\"\nappendonly no"
    };
    let user = previous.as_ref().map_or_else(String::new, |previous| {
        format!("user default on ~* &* +@all \">{password}\" \">{previous}\"\n")
    });
    let port = tls.map_or_else(
        || format!("port {PORT}\n"),
        |tls| {
            let conf = made("redis.conf", dir, persistent, Some(tls));
            let is_tls =
                |line: &&str| ["port", "tls-", "cluster-pref"].iter().any(|word| line.starts_with(word));
            let lines = conf.lines().filter(is_tls).map(|line| format!("{line}\n")).collect::<String>();
            lines.replace(&format!("tls-port {}", children::PORT), &format!("tls-port {PORT}"))
        },
    );
    let config = format!(
        "{port}bind {ip}\nbind-source-addr {ip}\ndir {}\n{save}\nrequirepass \"{password}\"\nmasterauth \"{password}\"\n{user}\
         cluster-enabled yes\ncluster-config-file nodes.conf\ncluster-node-timeout {}\ncluster-announce-ip {ip}\n\
         replica-announce-ip {ip}\n\
         cluster-announce-hostname {name}.rc-headless.ns.svc.cluster.local\n\
         cluster-allow-replica-migration no\ncluster-replica-validity-factor 4\nrepl-diskless-sync-delay 0\n",
        dir.display(),
        NODE_TIMEOUT.as_millis()
    );
    let mut process = Command::new(Flavour::present().program())
        .arg("-")
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(fs::File::create(dir.join("log")).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(config.as_bytes()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::net::TcpStream::connect((ip, PORT)).is_err() {
        if Instant::now() > deadline || process.try_wait().unwrap().is_some() {
            panic!("redis-server does not listen: {}", fs::read_to_string(dir.join("log")).unwrap());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    process
}

/// Runs a script that the operator gives its pods, where `dir` is the volume. Redis itself is not started.
fn run_script(name: &str, dir: &Path, ip: IpAddr, persistent: bool) {
    let output = script_output(name, dir, ip, persistent, PASSWORD, None);
    assert!(output.status.success(), "{name}: {output:?}");
}

/// A file of the ConfigMap. Certificates are in the directory `tls`, for nodes with TLS.
fn made(name: &str, dir: &Path, persistent: bool, tls: Option<&Path>) -> String {
    let mut object = serde_json::json!({
        "apiVersion": "cache.example.com/v1", "kind": "RedisCluster",
        "metadata": {"name": "rc", "namespace": "ns", "uid": dir},
        "spec": {"size": 3},
    });
    if persistent {
        object["spec"]["storage"] = serde_json::json!({"size": "1Gi"});
    }
    if tls.is_some() {
        object["spec"]["tls"] = serde_json::json!({"secretName": "rc-tls"});
    }
    let cluster: RedisCluster = serde_json::from_value(object).unwrap();
    let node_timeout_ms = u32::try_from(NODE_TIMEOUT.as_millis()).unwrap();
    let defaults = Defaults { node_timeout_ms, ..Defaults::default() };
    let file = config_map(&cluster, &defaults, None, Live::Spec, true).data.unwrap()[name].clone();
    file.replace("/etc/redis-tls", &tls.unwrap_or(Path::new("/nowhere")).display().to_string())
}

fn script_output(
    name: &str,
    dir: &Path,
    ip: IpAddr,
    persistent: bool,
    password: &str,
    tls: Option<&Path>,
) -> Output {
    let script = made(name, dir, persistent, tls);
    let place = dir.display().to_string();
    let script = script.replace(" /data", &format!(" {place}")).replace("/run/redis", &place);
    let script = script.replace("exec redis-server", "exec true");
    // Every server here has a port of its own making; in a pod all have the default one.
    let mut script = script.replace("redis-cli ", &format!("redis-cli -p {PORT} "));
    for own in ["", "--tls --insecure "] {
        let here = format!("redis-cli -p {PORT} {own}");
        for command in ["ping", "role", "config", "publish"] {
            script = script.replace(&format!("{here}{command}"), &format!("{here}-h {ip} {command}"));
        }
    }
    script = script.replace("/etc/redis-passwords", &format!("{place}/passwords"));
    script = script.replace("/run/exporter", &format!("{place}/exporter"));
    Command::new("sh")
        .args(["-c", &script])
        .envs([("POD_IP", ip.to_string().as_str()), ("POD_HOST", "rc"), ("REDISCLI_AUTH", password)])
        .output()
        .unwrap()
}
