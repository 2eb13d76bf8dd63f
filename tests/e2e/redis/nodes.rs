//! Kubernetes nodes of a RedisCluster are lost and drained, one after another, while a client writes.
//!
//! A node that loses its power takes a third of the pods with it: their shards fail over, and `kubectl delete pod --force`
//! starts them elsewhere, as the page says. Then each node is drained as users do it: pods go one at a time, no shard is ever
//! without a copy, primaries fail over before they stop, and no acknowledged write is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use super::journal::{Entries, Journal, Stop};
use super::operator::Operator;
use super::rediscluster::{Redis, is, members};
use crate::cluster::{Namespace, PATIENCE, finished, message, within};
use crate::harness::{Company, cluster_from_parts, part, trial_with};
use crate::support::Part;

/// Keys in the cluster before something happens to it.
const KEYS: usize = 3000;
/// The node that has the control plane, where the client is as well. The others can be lost.
const FIRST: &str = "node";
const LOST: &str = "node-3";
/// Redis acknowledges before it replicates: what it did in this time before it was lost may be lost with it.
const UNREPLICATED: Duration = Duration::from_secs(1);

pub(super) fn trial() -> Trial {
    let missing =
        cluster_from_parts().is_none().then(|| "nodes are only added to a cluster from parts".to_owned());
    let needed = Part::new("nodes", missing);
    trial_with("a_redis_cluster_outlives_its_kubernetes_nodes", Company::Alone, Some(needed), outlives)
}

fn outlives(namespace: &Namespace) -> Result<(), Failed> {
    let nodes = Nodes::three()?;
    let operator = Operator::install(namespace.cluster)?;
    // A namespace that is gone when the operator goes, whose finalizers nobody else removes.
    let outcome = part("kubernetes_nodes_of_a_redis_cluster_are_lost_and_drained", |namespace| {
        lost_then_drained(&nodes, namespace)
    });
    let log = if outcome.is_ok() { String::new() } else { operator.log() };
    operator.uninstall()?;
    nodes.back()?;
    outcome.map_err(|failed| format!("{}\n{log}", message(&failed)).into())
}

fn lost_then_drained(nodes: &Nodes, namespace: &Namespace) -> Result<(), Failed> {
    let redis = Redis { namespace, name: "rc" };
    redis.create("size: 6, replicasPerShard: 1")?;
    redis.ready()?;
    redundant(&redis)?;
    let pods = places(&redis)?;
    for shard in shards(&redis.status()?).values() {
        let hosts: BTreeSet<_> = shard.iter().filter_map(|pod| pods.get(pod)).collect();
        assert_eq!(hosts.len(), 2, "both copies of a shard are on one node: {pods:?}");
    }
    redis.fill(KEYS)?;

    let journal = Journal::start(namespace, redis.name, FIRST)?;
    let lost = power_off(nodes, &redis, &pods)?;
    nodes.run(&["3"])?;
    let mut drains = vec![];
    for node in [FIRST, "node-2", LOST] {
        drains.push(drained(&redis, node)?);
    }
    let entries = journal.stop()?;

    let mut keys = vec![];
    for pod in primaries(&redis.status()?) {
        keys.push(namespace.kubectl(&["exec", &pod, "--", "redis-cli", "keys", &Journal::pattern()])?);
    }
    let missing = entries.lost(&keys);
    let excused = lost.from - UNREPLICATED..=lost.from;
    let unexcused: Vec<_> = missing.iter().filter(|(_, at)| !excused.contains(at)).collect();
    assert_eq!(
        unexcused.len(),
        0,
        "of {} acknowledged writes {} are lost",
        entries.acknowledged.len(),
        unexcused.len()
    );
    assert_eq!(redis.keys()?, KEYS + keys.iter().map(|list| list.lines().count()).sum::<usize>());
    say(&entries, &lost, &drains, missing.len());
    Ok(())
}

fn say(entries: &Entries, lost: &Stretch, drains: &[Stretch], missing: usize) {
    let pause = |stretch: &Stretch| entries.longest_pause(stretch.from, stretch.to);
    let took = |stretch: &Stretch| stretch.to - stretch.from;
    let drained: Vec<_> = drains
        .iter()
        .map(|drain| format!("{:.0?} ({:.1?} without a write)", took(drain), pause(drain)))
        .collect();
    eprintln!(
        "redis: a node was lost: all well {:.0?} later ({:.1?} without a write); three nodes were drained in {}; {} writes, {missing} lost",
        took(lost),
        pause(lost),
        drained.join(", "),
        entries.acknowledged.len(),
    );
}

/// From when to when something went on.
struct Stretch {
    from: Instant,
    to: Instant,
}

/// A node is lost with the pods on it; they are deleted as the page says, start elsewhere, and get in sync.
fn power_off(nodes: &Nodes, redis: &Redis<'_>, pods: &BTreeMap<String, String>) -> Result<Stretch, Failed> {
    let namespace = redis.namespace;
    let lost = pods.iter().filter(|(_, node)| *node == LOST);
    let gone: Vec<_> = lost.map(|(pod, _)| pod.clone()).collect();
    assert_eq!(gone.len(), 2, "{pods:?}");
    let before = redundant(redis)?;
    let from = Instant::now();
    nodes.run(&["--kill", LOST])?;
    namespace.cluster.kubectl(&["cordon", LOST])?;
    let names: Vec<_> = gone.iter().map(String::as_str).collect();
    namespace.kubectl(&[&["delete", "pod", "--force"], &names[..]].concat())?;
    let elsewhere = within(PATIENCE, || {
        let pods = places(redis)?;
        Ok((pods.len() == 6 && pods.values().all(|node| node != LOST)).then_some(()))
    })?;
    assert!(elsewhere.is_some(), "{:?}", places(redis)?);
    redundant_again(redis, &before, &gone)?;
    redis.ready()?;
    Ok(Stretch { from, to: Instant::now() })
}

/// A node is drained, and is there again.
fn drained(redis: &Redis<'_>, node: &str) -> Result<Stretch, Failed> {
    let (namespace, cluster) = (redis.namespace, redis.namespace.cluster);
    let before = redundant(redis)?;
    let pods = places(redis)?;
    let leaving: BTreeSet<_> =
        pods.iter().filter(|(_, on)| *on == node).map(|(pod, _)| pod.clone()).collect();
    let watch = Watch::start(namespace, redis.name);
    let from = Instant::now();
    let timeout = format!("--timeout={}s", PATIENCE.as_secs());
    let drain = cluster.kubectl(&["drain", node, "--ignore-daemonsets", "--delete-emptydir-data", &timeout]);
    let left = places(redis);
    cluster.kubectl(&["uncordon", node])?;
    drain?;
    let left = left?;
    assert!(left.values().all(|on| on != node), "{node} is drained, but {left:?}");
    redundant_again(redis, &before, &leaving)?;
    redis.ready()?;
    let to = Instant::now();
    watch.stop()?;
    // A primary that leaves asks a replica to take over. One that was lost would be replaced without being asked.
    let (were, are) = (primaries(&before), primaries(&redis.status()?));
    for primary in are.iter().filter(|pod| !were.contains(*pod) || leaving.contains(*pod)) {
        let log = namespace.kubectl(&["logs", primary, "--tail=-1"])?;
        assert!(
            log.contains("Manual failover user request accepted"),
            "{primary} was not asked to take over: {log}"
        );
    }
    Ok(Stretch { from, to })
}

/// Waits until every shard has its replica in sync.
fn redundant(redis: &Redis<'_>) -> Result<Value, Failed> {
    redundant_again(redis, &Value::Null, [])
}

/// The same after these pods were replaced. A node without a volume gets another id then; until the status says so it is one of before.
fn redundant_again<'a>(
    redis: &Redis<'_>,
    before: &Value,
    replaced: impl IntoIterator<Item = &'a String>,
) -> Result<Value, Failed> {
    let (before, replaced) = (ids(before), replaced.into_iter().collect::<Vec<_>>());
    let redundant = within(PATIENCE, || {
        let status = redis.status()?;
        let now = ids(&status);
        let known = replaced.iter().all(|pod| now.contains_key(*pod) && now.get(*pod) != before.get(*pod));
        Ok((known && is(&status, "Redundant")).then_some(status))
    })?;
    redundant.ok_or_else(|| format!("not redundant: {:?}", redis.status()).into())
}

/// The id of each pod's node.
fn ids(status: &Value) -> BTreeMap<String, String> {
    let text = |member: &Value, key: &str| member[key].as_str().map(str::to_owned);
    members(status).filter_map(|member| Some((text(member, "pod")?, text(member, "nodeId")?))).collect()
}

/// The Kubernetes node of each pod.
fn places(redis: &Redis<'_>) -> Result<BTreeMap<String, String>, Failed> {
    let selector = format!("app.kubernetes.io/instance={}", redis.name);
    let path = "jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{'\\n'}{end}";
    let pods = redis.namespace.kubectl(&["get", "pods", "--selector", &selector, "--output", path])?;
    let pair = |line: &str| line.split_once(' ').map(|(pod, node)| (pod.to_owned(), node.to_owned()));
    Ok(pods.lines().filter_map(pair).collect())
}

/// The pods that are primaries.
fn primaries(status: &Value) -> BTreeSet<String> {
    let primaries = members(status).filter(|member| member["role"] == "Primary");
    primaries.filter_map(|member| Some(member["pod"].as_str()?.to_owned())).collect()
}

/// The pods of each shard; a pod that has just started is in none.
fn shards(status: &Value) -> BTreeMap<String, Vec<String>> {
    let mut shards: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for member in members(status).filter(|member| member["shard"].is_number()) {
        if let Some(pod) = member["pod"].as_str() {
            shards.entry(member["shard"].to_string()).or_default().push(pod.to_owned());
        }
    }
    shards
}

/// Looks all the time which pods of a cluster serve.
struct Watch {
    stop: Stop,
    thread: JoinHandle<Result<(), Failed>>,
}

impl Watch {
    fn start(namespace: &Namespace, name: &'static str) -> Self {
        let namespace = Namespace { cluster: namespace.cluster, name: namespace.name.clone() };
        let stop = Stop::default();
        let told = stop.told();
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                let objects = namespace.kubectl(&["get", "pods,redisclusters", "--output", "json"])?;
                look(&serde_json::from_str(&objects)?, name);
                std::thread::park_timeout(Duration::from_millis(300));
            }
            Ok(())
        });
        Self { stop, thread }
    }

    fn stop(self) -> Result<(), Failed> {
        drop(self.stop);
        self.thread.join().map_err(|panic| crate::harness::said(panic.as_ref()))?
    }
}

/// Pods leave one at a time, and each shard has one that serves.
fn look(objects: &Value, name: &str) {
    let objects = || objects["items"].as_array().into_iter().flatten();
    let pods =
        || objects().filter(|object| object["metadata"]["labels"]["app.kubernetes.io/instance"] == name);
    let names = |pods: Vec<&Value>| -> BTreeSet<String> {
        pods.iter().filter_map(|pod| Some(pod["metadata"]["name"].as_str()?.to_owned())).collect()
    };
    let pods: Vec<_> = pods().filter(|object| object["kind"] == "Pod").collect();
    let leaving = names(pods.iter().copied().filter(|pod| leaves(pod)).collect());
    assert!(leaving.len() <= 1, "{leaving:?} leave at once");
    let serving = names(pods.iter().copied().filter(|pod| serves(pod)).collect());
    let status = objects().find(|object| object["kind"] == "RedisCluster").map(|cluster| &cluster["status"]);
    for (shard, pods) in shards(status.unwrap_or(&Value::Null)) {
        let copies = pods.iter().filter(|pod| serving.contains(*pod)).count();
        assert!(copies >= 1, "no copy of shard {shard} ({pods:?}) serves, only {serving:?}");
    }
}

fn leaves(pod: &Value) -> bool {
    pod["metadata"].get("deletionTimestamp").is_some()
}

/// Whether a pod is ready, which is to be in sync with its shard, and is not on its way out.
fn serves(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
    ready && !leaves(pod)
}

/// The cluster's nodes, of which there are three as long as this is there.
struct Nodes {
    script: PathBuf,
    back: bool,
}

impl Nodes {
    fn three() -> Result<Self, Failed> {
        let nodes =
            Self { script: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/nodes"), back: false };
        nodes.run(&["3"])?;
        Ok(nodes)
    }

    fn run(&self, words: &[&str]) -> Result<(), Failed> {
        let output = Command::new(&self.script).args(words).output()?;
        finished(&[&["nodes"], words].concat(), &output)?;
        Ok(())
    }

    /// As many as there were.
    fn back(mut self) -> Result<(), Failed> {
        self.back = true;
        self.run(&[])
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        if !self.back {
            // The failure that led here says more than this one could.
            let _ = self.run(&[]);
        }
    }
}
