//! What the operator needs to look after many clusters that are well, and how soon slots are served again whose primary is
//! lost: `make bench` runs it, see `tests/bench/redis`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kube::{Api, Client, api::ListParams};
use redis_operator::{
    controller::children::Defaults,
    crd::{
        RedisCluster,
        v1::{RedisClusterStatus, Role},
    },
};
use serde_json::json;

use crate::{
    PATIENCE, create, namespace,
    node::{Node, RealRedis},
    pretend::PretendedRedis,
    replica::Replica,
    within,
};

/// How long is measured.
const MEASURED: Duration = Duration::from_secs(60);
/// How often a pod is lost.
const LOSSES: usize = 5;

/// Real redis-servers, in memory: a primary's pod is lost, and comes back empty and elsewhere.
async fn losses(client: &Client, kubeconfig: &Path) {
    let place = "bench-losses";
    namespace(client, place).await;
    create(client, place, "rc", json!({"size": 6, "replicasPerShard": 1})).await;
    let _operator = Replica::start(kubeconfig, &["--no-leader-election", "--watch-namespace", place], &[]);
    let mut node = Node::new(client, place, Box::new(RealRedis(tempfile::tempdir().unwrap())));
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

pub(crate) async fn figures(client: Client, kubeconfig: PathBuf) {
    losses(&client, &kubeconfig).await;
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
