//! What the operator needs to look after many clusters that are well, how soon slots are served again whose primary is lost,
//! and how long a cluster takes to grow and to replace its pods: `make bench` runs it, see `tests/bench/redis`.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams},
};
use redis::cmd;
use redis_operator::{
    controller::children::Defaults,
    crd::{
        RedisCluster,
        v1::{RedisClusterStatus, Role},
    },
};
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    PATIENCE, access_of, create, namespace,
    node::{Node, RealRedis},
    pretend::PretendedRedis,
    replica::Replica,
    settled, within,
    writer::ClusterClient,
};

/// How long is measured.
const MEASURED: Duration = Duration::from_secs(60);
/// How often a pod is lost.
const LOSSES: usize = 5;
/// How often a cluster grows, and replaces its pods.
const CHANGES: usize = 3;
/// Keys of a cluster that changes.
const KEYS: u32 = 30_000;

/// Real redis-servers, in memory: a primary's pod is lost, and comes back empty and elsewhere.
pub(crate) async fn losses(client: Client, kubeconfig: PathBuf) {
    let place = "bench-losses";
    namespace(&client, place).await;
    create(&client, place, "rc", json!({"size": 6, "replicasPerShard": 1})).await;
    let _operator = Replica::start(&kubeconfig, &["--no-leader-election", "--watch-namespace", place], &[]);
    let mut node = Node::new(&client, place, Box::new(RealRedis(tempfile::tempdir().unwrap())));
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), place);
    let status = async || clusters.get("rc").await.unwrap().status.unwrap_or_default();
    let holds = |status: &RedisClusterStatus, kind: &str| {
        status.conditions.iter().any(|one| one.type_ == kind && one.status == "True")
    };
    let mut times = vec![];
    for _ in 0..LOSSES {
        let before = within(PATIENCE, "every shard has its replica", async || {
            node.turn().await;
            let status = status().await;
            (holds(&status, "Available") && holds(&status, "Redundant")).then_some(status)
        })
        .await;
        let primary = before.members.iter().find(|member| member.role == Some(Role::Primary)).unwrap();
        let lost = Instant::now();
        node.lose(&primary.pod).await;
        within(PATIENCE, "the loss is seen", async || {
            (!holds(&status().await, "SlotsCovered")).then_some(())
        })
        .await;
        within(PATIENCE, "every slot is served", async || {
            node.turn().await;
            let status = status().await;
            (holds(&status, "Available") && holds(&status, "SlotsCovered")).then_some(())
        })
        .await;
        times.push(lost.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    eprintln!(
        "a primary's pod is lost: every slot is served again after {:.1} s ({:.1} to {:.1}), {} of them the node timeout",
        times[LOSSES / 2],
        times[0],
        times[LOSSES - 1],
        // Redis does not hold a node for dead before.
        Defaults::default().node_timeout_ms / 1000,
    );
}

/// A client that writes, one key after another.
struct Writing {
    stop: oneshot::Sender<()>,
    /// How long each acknowledged write took, and how many failed.
    task: JoinHandle<(Vec<Duration>, usize)>,
}

impl Writing {
    fn start(mut client: ClusterClient) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let (mut times, mut failed) = (vec![], 0);
            let mut begun = Instant::now();
            while stopped.try_recv().is_err() {
                let key = format!("key-{}", times.len() as u32 % KEYS);
                if client.send::<()>(&key, cmd("SET").arg(&key).arg("another value")).await.is_ok() {
                    // A client that has to try again waits as long.
                    times.push(begun.elapsed());
                    begun = Instant::now();
                } else {
                    failed += 1;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            (times, failed)
        });
        Self { stop, task }
    }

    /// Stops; the times in order.
    async fn stop(self) -> (Vec<Duration>, usize) {
        self.stop.send(()).unwrap();
        let (mut times, failed) = self.task.await.unwrap();
        times.sort();
        (times, failed)
    }
}

/// Real redis-servers with keys: a change of the spec is made while a client writes.
async fn change(
    client: &Client,
    kubeconfig: &Path,
    what: &str,
    place: &str,
    spec: Value,
    change: Value,
    shards: i32,
) {
    let (mut all, mut waits, mut writes, mut failures) = (vec![], vec![], 0, 0);
    for number in 0..CHANGES {
        let place = format!("{place}-{number}");
        namespace(client, &place).await;
        create(client, &place, "rc", spec.clone()).await;
        let _operator =
            Replica::start(kubeconfig, &["--no-leader-election", "--watch-namespace", &place], &[]);
        let mut node = Node::new(client, &place, Box::new(RealRedis(tempfile::tempdir().unwrap())));
        let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), &place);
        settled(&clusters, &mut node, 3).await;
        let pods: Api<Pod> = Api::namespaced(client.clone(), &place);
        let first = pods.get("rc-0").await.unwrap().status.unwrap().pod_ip.unwrap();
        let first: IpAddr = first.parse().unwrap();
        let mut filling = ClusterClient::new(access_of(client, &place).await, first);
        for number in 0..KEYS {
            let key = format!("key-{number}");
            filling.send::<()>(&key, cmd("SET").arg(&key).arg(number)).await.unwrap();
        }
        let writing = Writing::start(filling);
        let patch = Patch::Merge(json!({"spec": change}));
        let begun = Instant::now();
        clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
        settled(&clusters, &mut node, shards).await;
        all.push(begun.elapsed().as_secs_f64());
        let (times, failed) = writing.stop().await;
        waits.push(*times.last().unwrap());
        let p99 = times[times.len() * 99 / 100];
        (writes, failures) = (writes + times.len(), failures + failed);
        eprintln!("{what}: {:.1} s, p99 {:.1} ms", all[number], p99.as_secs_f64() * 1000.0);
    }
    all.sort_by(f64::total_cmp);
    eprintln!(
        "{what} in {:.1} s ({:.1} to {:.1}); the longest wait of a client {:.0} ms; {writes} writes, {failures} had to be repeated",
        all[CHANGES / 2],
        all[0],
        all[CHANGES - 1],
        waits.iter().max().unwrap().as_secs_f64() * 1000.0,
    );
}

pub(crate) async fn changes(client: Client, kubeconfig: PathBuf) {
    let what = "3 nodes with 30,000 keys become 5";
    change(&client, &kubeconfig, what, "bench-growth", json!({"size": 3}), json!({"size": 5}), 5).await;
    let spec = json!({"size": 6, "replicasPerShard": 1});
    let directive = json!({"config": {"tcp-backlog": "128"}});
    change(&client, &kubeconfig, "6 pods are replaced", "bench-update", spec, directive, 3).await;
}

pub(crate) async fn sizes(client: Client, kubeconfig: PathBuf) {
    eprintln!("clusters  memory MiB  CPU ms/s  reconciles/s  p50 ms  p99 ms  writes");
    for count in [10, 500] {
        measure(&client, &kubeconfig, count).await;
    }
}

async fn measure(client: &Client, kubeconfig: &Path, count: usize) {
    let place = format!("bench-{count}");
    namespace(client, &place).await;
    for number in 0..count {
        create(client, &place, &format!("rc-{number}"), json!({"size": 3})).await;
    }
    let operator = Replica::start(kubeconfig, &["--no-leader-election", "--watch-namespace", &place], &[]);
    let mut node = Node::new(client, &place, Box::new(PretendedRedis));
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), &place);
    within(Duration::from_secs(900), "every cluster is well", async || {
        node.turn().await;
        let all = clusters.list(&ListParams::default()).await.unwrap();
        let settled = all.iter().filter(|cluster| {
            let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
            let mut settled = conditions.filter(|one| one.type_ == "Progressing" && one.reason == "Settled");
            settled.next().is_some()
        });
        (settled.count() == count).then_some(())
    })
    .await;
    // Each has had its next look as well.
    tokio::time::sleep(Duration::from_secs(45)).await;
    let before = Sample::of(&operator);
    tokio::time::sleep(MEASURED).await;
    let after = Sample::of(&operator);
    let seconds = MEASURED.as_secs_f64();
    let reconciles = after.reconciles() - before.reconciles();
    let ticks = after.ticks - before.ticks;
    let [middle, most] = [0.5, 0.99].map(|share| quantile(&before.buckets, &after.buckets, share));
    eprintln!(
        "{count:>8}  {:>10.1}  {:>8.1}  {:>12.1}  {middle:>6}  {most:>6}  {:>6}",
        after.memory_kib / 1024.0,
        // Linux counts in hundredths of a second.
        ticks * 10.0 / seconds,
        reconciles / seconds,
        after.writes - before.writes,
    );
    assert_eq!(after.writes, before.writes, "a settled cluster is written to");
    assert!(reconciles > 0.0, "nothing was looked at");
}

/// What the process has used and counted so far.
struct Sample {
    memory_kib: f64,
    ticks: f64,
    writes: f64,
    /// Reconciles that took at most so many seconds: of both controllers.
    buckets: Vec<(f64, f64)>,
}

impl Sample {
    fn of(operator: &Replica) -> Self {
        let proc = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", operator.id())).unwrap();
        let status = proc("status");
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let stat = proc("stat");
        // After the name in brackets: user and system time are the 12th and 13th.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let metrics = metrics(operator.metrics);
        let mut buckets: Vec<(f64, f64)> = vec![];
        for line in metrics
            .lines()
            .filter(|line| line.starts_with("redis_operator_reconcile_duration_seconds_bucket"))
        {
            let most = line.split("le=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
            let most: f64 = most.trim_start_matches('+').parse().unwrap_or(f64::INFINITY);
            let count: f64 = value(line);
            match buckets.iter_mut().find(|(bound, _)| *bound == most) {
                Some((_, sum)) => *sum += count,
                None => buckets.push((most, count)),
            }
        }
        Self {
            memory_kib: memory.trim().trim_end_matches(" kB").parse().unwrap(),
            ticks: fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap(),
            writes: metrics
                .lines()
                .filter(|line| line.starts_with("redis_operator_api_writes_total"))
                .map(value)
                .sum(),
            buckets,
        }
    }

    fn reconciles(&self) -> f64 {
        self.buckets.last().map_or(0.0, |(_, count)| *count)
    }
}

fn value(line: &str) -> f64 {
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// The bound below which such a share of the reconciles ended, in milliseconds.
fn quantile(before: &[(f64, f64)], after: &[(f64, f64)], share: f64) -> String {
    let earlier =
        |bound: f64| before.iter().find(|(other, _)| *other == bound).map_or(0.0, |(_, count)| *count);
    let counts: Vec<(f64, f64)> =
        after.iter().map(|(bound, count)| (*bound, count - earlier(*bound))).collect();
    let all = counts.last().map_or(0.0, |(_, count)| *count);
    let bound =
        counts.iter().find(|(_, count)| *count >= all * share).map_or(f64::INFINITY, |(bound, _)| *bound);
    format!("≤ {}", bound * 1000.0)
}

pub(crate) fn metrics(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
