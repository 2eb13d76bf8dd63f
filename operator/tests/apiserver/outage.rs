//! The API server is away for a minute while slots move: no command changes Redis once the Lease has expired, and the move goes
//! on soon after the server is back.
//!
//! It takes minutes, so only `make chaos` runs it.

use std::{
    net::IpAddr,
    path::PathBuf,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use libtest_mimic::Trial;
use redis::cmd;
use redis_operator::{crd::RedisCluster, server::Access};
use serde_json::json;

use crate::{
    access_of,
    api::{ADMIN, ApiServer},
    bench::metrics,
    client::{connect, ready},
    create, event_kind, eventually, install, namespace,
    node::{Node, RealRedis},
    replica::Replica,
    settled,
    support::{self, Part},
    within,
    writer::{ClusterClient, Writer},
};

/// How long it is away.
const AWAY: Duration = Duration::from_secs(60);
/// When nobody may be acting any more: the leader gives up 10 s after its last renewal, which was at most 2 s ago. The rest
/// is for a command under way.
const LEASE_OVER: Duration = Duration::from_secs(16);
/// How soon the move has to go on.
const RESUMED: Duration = Duration::from_secs(20);
/// Values in the cluster.
const VALUES: u32 = 400;

/// Whether replicas are elected, or there is one that acts without a Lease.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Election {
    Lease,
    None,
}

pub(crate) fn trials(parts: &[Part]) -> Vec<Trial> {
    let seeds = std::env::var("OLMKIT_CHAOS_SEEDS").ok().map_or(0, |seeds| seeds.parse::<u64>().unwrap());
    let all = [Election::Lease, Election::None].into_iter();
    let all = all.flat_map(|election| (1..=seeds).map(move |seed| (election, seed)));
    all.map(|(election, seed)| {
        let name = format!("chaos: {}, seed {seed}", election.name());
        support::trial_with(&name, parts, move || {
            run(election, seed);
            Ok(())
        })
    })
    .collect()
}

impl Election {
    fn name(self) -> &'static str {
        match self {
            Self::Lease => "the API server is away for 60 s",
            Self::None => "the API server is away for 60 s (`--no-leader-election`)",
        }
    }
}

/// A cluster whose slots move.
struct Moving {
    client: Client,
    clusters: Api<RedisCluster>,
    node: Node,
    replicas: Vec<Replica>,
    access: Access,
    ips: Vec<IpAddr>,
}

#[expect(clippy::print_stdout, reason = "`make chaos` prints a table")]
fn run(election: Election, seed: u64) {
    // Its own, since it is stopped.
    let mut server = ApiServer::start(&[], ready);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let kubeconfig = server.kubeconfig(ADMIN);
    let (mut moving, writer) = runtime.block_on(Moving::start(kubeconfig, election, seed));
    server.stop();
    let before = runtime.block_on(moving.outage(election));
    server.restart(ready);
    let started = Instant::now();
    let (missing, lost, all) = runtime.block_on(moving.ends_well(before, seed, writer));
    let (name, took) = (election.name(), started.elapsed().as_secs_f64());
    println!("| {name} | {seed} | {took:.1} s | {missing} of {VALUES} | {lost} of {all} |");
    assert_eq!((missing, lost), (0, 0));
}

impl Moving {
    async fn start(kubeconfig: PathBuf, election: Election, seed: u64) -> (Self, Writer) {
        let client = connect(&kubeconfig).await;
        install(&client).await;
        namespace(&client, "away").await;
        let mut flags = vec!["--namespace", "away", "--watch-namespace", "away"];
        let names: &[&str] = if election == Election::Lease {
            &["a", "b"]
        } else {
            flags.push("--no-leader-election");
            &["a"]
        };
        let start =
            |name: &&str| Replica::start(&kubeconfig, &[&flags[..], &["--identity", *name]].concat(), &[]);
        let replicas = names.iter().map(start).collect();
        let mut node = Node::new(&client, "away", Box::new(RealRedis(tempfile::tempdir().unwrap())));
        create(&client, "away", "rc", json!({"size": 3})).await;
        let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "away");
        settled(&clusters, &mut node, 3).await;

        let access = access_of(&client, "away").await;
        let first = ips(&client).await[0];
        let mut values = ClusterClient::new(access.clone(), first);
        for number in 0..VALUES {
            let key = format!("value-{number}");
            values.send::<()>(&key, cmd("SET").arg(&key).arg(format!("{seed}-{number}"))).await.unwrap();
        }
        let writer = Writer::start(access.clone(), first, 100);
        let patch = Patch::Merge(json!({"spec": {"size": 5}}));
        clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
        let mut moving = Self { client, clusters, node, replicas, access, ips: vec![first] };
        eventually("slots move", async || {
            moving.node.turn().await;
            (moving.commands().await > 0 && ips(&moving.client).await.len() == 5).then_some(())
        })
        .await;
        moving.ips = ips(&moving.client).await;
        let before = moving.commands().await;
        eventually("slots move", async || (moving.commands().await > before).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(200 * seed)).await;
        (moving, writer)
    }

    /// A figure of all replicas together.
    fn sum(&self, name: &str) -> u64 {
        let texts: Vec<String> = self.replicas.iter().map(|replica| metrics(replica.metrics)).collect();
        let lines = texts.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
    }

    /// Where a container ends, Kubernetes starts it later each time.
    fn none_has_ended(&mut self) {
        assert!(!self.replicas.iter_mut().any(Replica::has_ended));
    }

    /// How many commands that open or assign slots the nodes have executed.
    async fn commands(&self) -> u64 {
        let mut all = 0;
        for ip in &self.ips {
            let mut connection = self.access.connect(*ip).await.unwrap();
            let info: String = connection.send("INFO", cmd("INFO").arg("commandstats")).await.unwrap();
            let calls = |line: &str| -> Option<u64> {
                let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
                let changes =
                    ["setslot", "meet", "forget", "reset", "replicate", "failover", "addslotsrange"];
                let changes = changes.map(|command| format!("cluster|{command}"));
                (name == "migrate" || changes.iter().any(|change| change == name))
                    .then(|| rest.split(',').next()?.parse().ok())?
            };
            all += info.lines().filter_map(calls).sum::<u64>();
        }
        all
    }

    /// Until the server comes back. Returns how many commands were executed by then.
    async fn outage(&mut self, election: Election) -> u64 {
        let began = Instant::now();
        let mut over = None;
        while began.elapsed() < AWAY {
            self.none_has_ended();
            let now = self.commands().await;
            if began.elapsed() > LEASE_OVER && election == Election::Lease {
                assert_eq!(*over.get_or_insert(now), now, "Redis was changed without a Lease");
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        self.commands().await
    }

    /// Returns the values and the writes that are missing, and how many writes there were.
    async fn ends_well(mut self, before: u64, seed: u64, writer: Writer) -> (u32, usize, usize) {
        within(RESUMED, "slots move again", async || (self.commands().await > before).then_some(())).await;
        self.none_has_ended();
        settled(&self.clusters, &mut self.node, 5).await;
        let written = writer.stop().await;
        let lost = written.lost(&self.access, self.ips[0]).await.len();
        let mut client = ClusterClient::new(self.access.clone(), self.ips[0]);
        let mut missing = 0;
        for number in 0..VALUES {
            let key = format!("value-{number}");
            let found: Option<String> = client.send(&key, cmd("GET").arg(&key)).await.unwrap();
            missing += u32::from(found != Some(format!("{seed}-{number}")));
        }
        self.three_looks().await;
        let events: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), "away", &event_kind());
        let events = events.list(&ListParams::default()).await.unwrap().items.len();
        assert!(events < 20, "{events} events");
        (missing, lost, written.acknowledged.len())
    }
}

impl Moving {
    /// The operator looks at the settled cluster three more times, and writes nothing, neither to Redis nor to the API server.
    async fn three_looks(&mut self) {
        let writes = "redis_operator_api_writes_total";
        // Pods become ready one after another, and the status follows.
        let before = eventually("it comes to rest", async || {
            self.node.turn().await;
            let before = (self.sum(writes), self.commands().await);
            tokio::time::sleep(Duration::from_secs(5)).await;
            ((self.sum(writes), self.commands().await) == before).then_some(before)
        })
        .await;
        let reconciles = self.sum("redis_operator_reconcile_total");
        let mut look = 0;
        eventually("three looks", async || {
            look += 1;
            let patch = Patch::Merge(json!({"metadata": {"annotations": {"look": look.to_string()}}}));
            self.clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
            (self.sum("redis_operator_reconcile_total") >= reconciles + 3).then_some(())
        })
        .await;
        assert_eq!((self.sum(writes), self.commands().await), before);
    }
}

async fn ips(client: &Client) -> Vec<IpAddr> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "away");
    let pods = pods.list(&ListParams::default()).await.unwrap();
    pods.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()).collect()
}
