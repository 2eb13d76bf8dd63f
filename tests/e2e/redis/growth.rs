//! A cluster's life under load: it forms, grows, shrinks and goes, and stays quiet in between.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use serde_json::Value;

use super::operator::Operator;
use super::rediscluster::{Redis, condition, is};
use super::writer::Writer;
use crate::cluster::{Namespace, within};

/// Everything that a RedisCluster brings with it.
const CHILDREN: &str =
    "statefulsets,services,configmaps,secrets,poddisruptionbudgets,pods,persistentvolumeclaims";
/// How long a settled cluster is watched for writes.
const QUIET: Duration = Duration::from_secs(300);
/// A node that was forgotten and is still alive comes back, if it does, when the others let it in again after a minute.
const BAN: Duration = Duration::from_secs(90);

/// Of nothing: to be run while the machine has nothing else to do.
pub(super) fn forms(namespace: &Namespace) -> Result<(), Failed> {
    let redis = Redis { namespace, name: "rc" };
    redis.create("size: 3")?;
    let formed = redis.ready()?;
    assert!(formed < Duration::from_secs(20), "formed in {formed:?}");
    assert_eq!(redis.shares()?, [5461, 5461, 5462]);
    assert_eq!(redis.status()?["nodes"], names(3));
    redis.wait_event("ClusterCreated")?;
    assert_eq!(redis.events()?["ClusterCreated"], 1);
    eprintln!("redis: formed in {formed:.1?}");
    Ok(())
}

fn names(count: usize) -> Value {
    (0..count).map(|ordinal| format!("rc-{ordinal}")).collect()
}

/// Three nodes become five and three again while a client writes; then all of it is deleted.
pub(super) fn lives(operator: &Operator, namespace: &Namespace) -> Result<(), Failed> {
    let redis = Redis { namespace, name: "rc" };
    redis.create("size: 3, storage: {size: 1Gi, deletionPolicy: Delete}")?;
    redis.ready()?;
    redis.fill(30_000)?;
    let writer = Writer::start(namespace, "rc")?;
    redis.patch("{\"size\":5}")?;
    let grown = redis.ready()?;
    assert_eq!(redis.shares()?, [3276, 3277, 3277, 3277, 3277]);
    let set = namespace.json("statefulset/rc")?;
    assert_eq!((&set["spec"]["replicas"], &set["status"]["readyReplicas"]), (&5.into(), &5.into()));
    assert_eq!(redis.status()?["nodes"], names(5));
    let growth = writer.stop()?;
    assert!(growth.errors.is_empty(), "{:?}", growth.errors);
    assert!(growth.redirections > 0 && growth.count > 500, "{growth:?}");
    let keys = 30_000 + growth.acknowledged.len();
    assert_eq!(redis.keys()?, keys);

    let writer = Writer::start(namespace, "rc")?;
    redis.patch("{\"size\":3}")?;
    let shrunk = redis.ready()?;
    let shrinking = writer.stop()?;
    assert!(shrinking.errors.is_empty(), "{:?}", shrinking.errors);
    assert_eq!(redis.shares()?, [5461, 5461, 5462]);
    assert_eq!(redis.keys()?, keys);
    assert_eq!(namespace.json("statefulset/rc")?["spec"]["replicas"], 3);
    let claims = || {
        let claims = namespace.kubectl(&["get", "persistentvolumeclaims", "--output", "name"])?;
        Ok::<_, Failed>(claims.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    let kept = within(Duration::from_secs(30), || Ok(Some(claims()?).filter(|claims| claims.len() == 3)))?;
    assert!(kept.is_some(), "{:?}", claims()?);
    eprintln!(
        "redis: {} writes acknowledged while 3 became 5 in {grown:.1?}, {} while 5 became 3 in {shrunk:.1?}",
        growth.count, shrinking.count
    );

    let until = Instant::now() + BAN;
    loop {
        for ordinal in 0..3 {
            let info = redis.ask(ordinal, &["cluster", "info"])?;
            assert!(info.contains("cluster_known_nodes:3\r\n"), "a ghost is back: {info}");
        }
        if Instant::now() > until {
            break;
        }
        std::thread::park_timeout(Duration::from_secs(10));
    }
    deleted(operator, namespace, &redis)
}

/// Nothing is made again while it goes, and nothing stays.
fn deleted(operator: &Operator, namespace: &Namespace, redis: &Redis<'_>) -> Result<(), Failed> {
    let children = || {
        let path = "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid}{'\\n'}{end}";
        let selector = ["--selector", "control-plane=redis-operator", "--output", path];
        let children = namespace.kubectl(&[&["get", CHILDREN], &selector[..]].concat())?;
        Ok::<_, Failed>(children.lines().map(str::to_owned).collect::<BTreeSet<_>>())
    };
    let series = || {
        let metrics = operator.metrics()?;
        let label = format!("namespace=\"{}\"", namespace.name);
        Ok::<_, Failed>(metrics.lines().filter(|line| line.contains(&label)).count())
    };
    let before = children()?;
    assert!(before.len() >= 12, "{before:?}");
    assert!(series()? > 0);
    let started = Instant::now();
    namespace.kubectl(&["delete", &redis.object(), "--cascade=foreground", "--wait=false"])?;
    let gone = within(Duration::from_secs(60), || {
        let left = children()?;
        let new: Vec<_> = left.difference(&before).collect();
        assert!(new.is_empty(), "made again: {new:?}");
        let itself =
            namespace.kubectl(&["get", &redis.object(), "--ignore-not-found", "--output", "name"])?;
        Ok((left.is_empty() && itself.is_empty()).then_some(()))
    })?;
    assert!(gone.is_some(), "still there: {:?}", children()?);
    let took = started.elapsed();
    assert_eq!(series()?, 0, "its metrics are still there");
    assert!(children()?.is_empty());
    eprintln!("redis: deleted in {took:.1?}");
    Ok(())
}

/// While nothing changes, nothing is written.
pub(super) fn quiet(namespace: &Namespace) -> Result<(), Failed> {
    let redis = Redis { namespace, name: "rc" };
    redis.create("size: 3")?;
    redis.ready()?;
    // A kubelet's Events tell of a busy machine, on which a probe took too long.
    let versions = || {
        let all = namespace.kubectl(&[
            "get",
            "redisclusters,statefulsets,services,configmaps,secrets,poddisruptionbudgets,events.events.k8s.io",
            "--output",
            "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion} {.reportingController}{'\\n'}{end}",
        ])?;
        Ok::<_, Failed>(all.lines().filter(|line| !line.ends_with(" kubelet")).collect::<Vec<_>>().join("\n"))
    };
    // Pods get ready one after another, and the status follows.
    let settled = within(Duration::from_secs(120), || {
        let before = versions()?;
        std::thread::park_timeout(Duration::from_secs(10));
        let ready = namespace.json("statefulset/rc")?["status"]["readyReplicas"] == 3;
        Ok(Some(before.clone()).filter(|_| ready && versions().is_ok_and(|now| now == before)))
    })?;
    let before = settled.ok_or("it does not come to rest")?;
    let until = Instant::now() + QUIET;
    while Instant::now() < until {
        assert_eq!(versions()?, before);
        std::thread::park_timeout(Duration::from_secs(10));
    }
    let status = redis.status()?;
    assert!(is(&status, "Available") && !is(&status, "Progressing"));
    assert_eq!(condition(&status, "Progressing").ok_or("no condition")?["reason"], "Settled");
    Ok(())
}
