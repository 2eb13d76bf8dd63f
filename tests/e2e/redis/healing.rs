//! What happens to data and to members when nodes are lost, with and without volumes.

use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use serde_json::Value;

use super::hand::Hand;
use super::operator::{NODE_TIMEOUT_MS, Operator};
use super::rediscluster::{Redis, condition, is, members};
use crate::cluster::{Namespace, PATIENCE, within};

/// Keys in a cluster before something happens to it.
const KEYS: usize = 3000;

/// In memory: processes of primaries are killed, and come back empty at once.
pub(super) fn without_volumes(operator: &Operator, namespace: &Namespace) -> Result<(), Failed> {
    let redis = Redis { namespace, name: "rc" };
    redis.create("size: 6, replicasPerShard: 1")?;
    redis.ready()?;
    redis.fill(KEYS)?;
    assert!(in_sync(&redis.status()?));
    let hand = Hand::of(namespace)?;
    // The second is one that the first kill made a primary.
    let mut last = String::new();
    for kill in ["a primary", "the primary that took its place"] {
        let before = redis.status()?;
        let primary = members(&before)
            .find(|member| member["role"] == "Primary" && (last.is_empty() || member["pod"] == last.as_str()))
            .ok_or("no primary")?;
        let replica = members(&before)
            .find(|member| member["role"] == "Replica" && member["shard"] == primary["shard"])
            .ok_or("no replica")?;
        let text = |member: &Value, field: &str| member[field].as_str().unwrap_or_default().to_owned();
        let (pod, old) = (text(primary, "pod"), text(primary, "nodeId"));
        let (heir, heir_id) = (text(replica, "pod"), text(replica, "nodeId"));
        let observed = failovers(operator, namespace)?;
        in_step(&redis)?;

        hand.redis("KILL", &pod)?;
        let started = Instant::now();
        // Redis takes the timeout, gossip among the majority and an election; the rest is for a busy node.
        let limit = Duration::from_millis(NODE_TIMEOUT_MS) + Duration::from_secs(10);
        let ordinal: usize = heir.rsplit_once('-').ok_or("an odd name")?.1.parse()?;
        redis.wait_table(ordinal, PATIENCE, |table| {
            table.lines().any(|line| line.starts_with(&heir_id) && line.contains("master"))
        })?;
        let promoted = started.elapsed();
        assert!(promoted <= limit, "promoted after {promoted:?}, expected at most {limit:?}");
        let back = within(PATIENCE, || {
            let status = redis.status()?;
            let member = members(&status).find(|member| member["pod"] == pod.as_str()).cloned();
            let member = member.ok_or("the pod is not among the members")?;
            Ok((member["role"] == "Replica" && member["nodeId"] != old.as_str()).then_some(()))
        })?;
        assert!(back.is_some(), "{pod} is no replica: {:#}", redis.status()?);
        redis.ready()?;
        let status = namespace.json(&format!("pod/{pod}"))?;
        assert_eq!(
            status["status"]["containerStatuses"][0]["restartCount"], 1,
            "the container was restarted"
        );
        assert_eq!(redis.keys()?, KEYS);
        let counted =
            within(PATIENCE, || Ok(Some(failovers(operator, namespace)?).filter(|now| *now > observed)))?;
        assert_eq!(counted, Some(observed + 1), "failovers counted");
        forgotten(&redis, &old)?;
        eprintln!("redis: {promoted:.1?} after {kill} was killed its replica served, every key was there");
        last = heir;
    }
    redis.wait_event("FailoverCompleted")?;
    Ok(())
}

/// Whether every shard has its replica in sync. Here all of them are on one Kubernetes node.
fn in_sync(status: &Value) -> bool {
    condition(status, "Redundant").is_some_and(|redundant| redundant["reason"] == "CopiesOnOneNode")
}

/// On volumes: one pod is lost with its volume, then all pods at once without.
pub(super) fn with_volumes(namespace: &Namespace) -> Result<(), Failed> {
    let redis = Redis { namespace, name: "rc" };
    redis.create("size: 6, replicasPerShard: 1, storage: {size: 1Gi, deletionPolicy: Retain}")?;
    redis.ready()?;
    redis.fill(KEYS)?;
    in_step(&redis)?;
    assert!(in_sync(&redis.status()?));

    let old = members(&redis.status()?).find(|member| member["pod"] == "rc-1").cloned().ok_or("no rc-1")?;
    let old = old["nodeId"].as_str().ok_or("no id")?.to_owned();
    let started = Instant::now();
    namespace.kubectl(&["delete", "persistentvolumeclaim/data-rc-1", "--wait=false"])?;
    namespace.kubectl(&["delete", "pod/rc-1", "--wait=false"])?;
    // Seconds may be all that it takes: that something was missing is seen by the id of the node.
    let again = within(PATIENCE, || {
        let status = redis.status()?;
        let joined = members(&status).any(|member| {
            member["pod"] == "rc-1" && member["nodeId"] != old.as_str() && member["role"] == "Replica"
        });
        Ok((joined && in_sync(&status)).then_some(()))
    })?;
    assert!(again.is_some(), "{old} was not replaced: {:#}", redis.status()?);
    redis.ready()?;
    let replaced = started.elapsed();
    redis.wait_event("MemberReplaced")?;
    assert_eq!(redis.events()?["MemberReplaced"], 1);
    forgotten(&redis, &old)?;
    assert_eq!(redis.keys()?, KEYS);

    let addresses = || {
        let words = ["get", "pods", "--selector", "app.kubernetes.io/instance=rc", "--output"];
        let path = "jsonpath={range .items[*]}{.metadata.uid} {.status.podIP}{'\\n'}{end}";
        Ok::<_, Failed>(
            namespace
                .kubectl(&[&words[..], &[path]].concat())?
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    };
    let before = addresses()?;
    let started = Instant::now();
    namespace.kubectl(&["delete", "pods", "--selector", "app.kubernetes.io/instance=rc", "--wait=false"])?;
    let all_new = within(PATIENCE, || {
        let now = addresses()?;
        let new = now.len() == 6 && now.iter().all(|pod| !before.contains(pod));
        Ok((new && is(&redis.status()?, "Available")).then_some(()))
    })?;
    assert!(all_new.is_some(), "{:#}", redis.status()?);
    redis.ready()?;
    let available = started.elapsed();
    assert!(available < Duration::from_secs(60), "available after {available:?}");
    assert_eq!(redis.keys()?, KEYS);
    redis.wait_event("AddressesHealed")?;
    in_step(&redis)?;
    eprintln!(
        "redis: redundant again {replaced:.1?} after a pod was lost with its volume, available {available:.1?} after all six got new addresses"
    );

    hibernates(&redis)?;

    // Volumes outlive their cluster, and say whose they were.
    namespace.kubectl(&["delete", &redis.object(), "--timeout=60s"])?;
    let label = ["--selector", "cache.example.com/retained-from=rc", "--output", "name"];
    let kept = namespace.kubectl(&[&["get", "persistentvolumeclaims"], &label[..]].concat())?;
    assert_eq!(kept.lines().count(), 6, "{kept}");
    Ok(())
}

/// All pods are stopped, and start again with the same volumes and all keys.
fn hibernates(redis: &Redis<'_>) -> Result<(), Failed> {
    let list = |kind: &str| {
        let path = "jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{'\\n'}{end}";
        redis.namespace.kubectl(&["get", kind, "--output", path])
    };
    let before = list("persistentvolumeclaims")?;
    assert_eq!(before.lines().count(), 6, "{before}");
    let started = Instant::now();
    redis.patch(r#"{"hibernated":true}"#)?;
    let stopped = within(PATIENCE, || {
        let status = redis.status()?;
        let pods = list("pods")?;
        let asleep = status["phase"] == "Hibernated" && !pods.lines().any(|pod| pod.starts_with("rc-"));
        Ok(asleep.then(|| started.elapsed()))
    })?
    .ok_or("its pods are not stopped")?;
    assert_eq!(list("persistentvolumeclaims")?, before);

    redis.patch(r#"{"hibernated":false}"#)?;
    let awake = redis.ready()?;
    assert_eq!(redis.keys()?, KEYS);
    assert_eq!(list("persistentvolumeclaims")?, before);
    eprintln!(
        "redis: all pods were stopped in {stopped:.1?} and ready again in {awake:.1?}, every key was there"
    );
    Ok(())
}

/// How many failovers the operator has seen here that it did not ask for.
fn failovers(operator: &Operator, namespace: &Namespace) -> Result<u64, Failed> {
    let metrics = operator.metrics()?;
    let label = format!("namespace=\"{}\"", namespace.name);
    let counted = metrics.lines().find(|line| {
        line.starts_with("redis_operator_failovers_total{")
            && line.contains(&label)
            && line.contains("kind=\"observed\"")
    });
    Ok(counted.and_then(|line| line.rsplit(' ').next()).map_or(Ok(0), str::parse)?)
}

/// Waits until every replica has what its primary has: what is acknowledged before that can be lost with the primary.
fn in_step(redis: &Redis<'_>) -> Result<(), Failed> {
    let links = within(PATIENCE, || {
        for ordinal in 0..6 {
            let info = redis.ask(ordinal, &["info", "replication"])?;
            let value = |field: &str| info.lines().find_map(|line| line.strip_prefix(field)).map(str::trim);
            let behind = match value("role:") {
                Some("slave") => value("master_link_status:") != Some("up"),
                // `slave0:ip=…,state=online,offset=…,lag=0`
                _ => !value("slave0:").is_some_and(|slave| {
                    let offset = slave.split(',').find_map(|field| field.strip_prefix("offset="));
                    slave.contains("state=online") && offset == value("master_repl_offset:")
                }),
            };
            if behind {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })?;
    links.ok_or_else(|| "a replica is not in step with its primary".into())
}

/// No node has this one in its table.
fn forgotten(redis: &Redis<'_>, id: &str) -> Result<(), Failed> {
    for ordinal in 0..6 {
        redis.wait_table(ordinal, Duration::from_secs(20), |table| !table.contains(id))?;
    }
    Ok(())
}
