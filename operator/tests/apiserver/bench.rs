//! What the operator needs to look after many clusters that are well: `make bench` runs it, see `tests/bench/redis`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use kube::{Api, Client, api::ListParams};
use redis_operator::crd::RedisCluster;
use serde_json::json;

use crate::{create, namespace, node::Node, pretend::PretendedRedis, replica::Replica, within};

/// How long is measured.
const MEASURED: Duration = Duration::from_secs(60);

pub(crate) async fn clusters(client: Client, kubeconfig: PathBuf) {
    eprintln!("clusters  memory MiB  CPU ms/s  reconciles/s  p50 ms  p99 ms  writes");
    for (network, count) in [(80, 10), (81, 500)] {
        measure(&client, &kubeconfig, network, count).await;
    }
}

async fn measure(client: &Client, kubeconfig: &std::path::Path, network: u8, count: usize) {
    let place = format!("bench-{count}");
    namespace(client, &place).await;
    for number in 0..count {
        create(client, &place, &format!("rc-{number}"), json!({"size": 3})).await;
    }
    let operator = Replica::start(kubeconfig, &["--no-leader-election", "--watch-namespace", &place], &[]);
    let mut node = Node::new(client, &place, network, Box::new(PretendedRedis));
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

fn metrics(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
