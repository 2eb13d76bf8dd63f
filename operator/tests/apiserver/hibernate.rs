//! A hibernated cluster on a real API server: Kubernetes may delete no volume when pods stop, nothing is written while they are
//! stopped, and all of them come back before fewer are wanted.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use futures_util::StreamExt;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams},
};
use redis::cmd;
use redis_operator::{
    controller::children,
    crd::{RedisCluster, v1::Phase},
};
use serde_json::{Value, json};

use crate::{
    access_of,
    bench::metrics,
    create, eventually, namespace,
    node::{Node, RealRedis},
    replica::Replica,
    settled,
    volumes::claims_of,
    writer::ClusterClient,
};

const PLACE: &str = "hibernated";

/// Its StatefulSet was told to delete volumes of pods that are scaled away, and claims have owners.
pub(crate) async fn hibernated(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, PLACE).await;
    let claims = claims_of(&client, PLACE, 4).await;
    let flags = ["--no-leader-election", "--namespace", PLACE, "--watch-namespace", PLACE];
    let mut operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, PLACE, Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, PLACE, "rc", json!({"size": 4, "replicasPerShard": 1, "storage": {"size": "1Gi"}})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), PLACE);
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), PLACE);
    let pods: Api<Pod> = Api::namespaced(client.clone(), PLACE);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), PLACE);
    let change = async |spec: Value| {
        let patch = Patch::Merge(json!({"spec": spec}));
        clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    };
    let condition = async |kind: &str| {
        let status = clusters.get("rc").await.unwrap().status?;
        let found = status.conditions.into_iter().find(|one| one.type_ == kind)?;
        Some((found.status == "True", found.reason, found.message))
    };
    let phase = async || clusters.get("rc").await.unwrap().status?.phase;
    settled(&clusters, &mut node, 2).await;
    let ids = async || -> Vec<_> {
        let members = clusters.get("rc").await.unwrap().status.unwrap().members;
        members.into_iter().map(|member| (member.pod, member.node_id)).collect()
    };
    let known = ids().await;
    assert!(known.iter().all(|(_, id)| id.is_some()), "{known:?}");
    let access = access_of(&client, PLACE).await;
    let first = async || {
        let pod = pods.get("rc-0").await.unwrap();
        pod.status.unwrap().pod_ip.unwrap().parse().unwrap()
    };
    let mut redis = ClusterClient::new(access.clone(), first().await);
    for key in 0..300 {
        let key = format!("key-{key}");
        redis.send::<()>(&key, cmd("SET").arg(&key).arg(&key)).await.unwrap();
    }
    let seen = versions(&sets).await;

    operator.signal("STOP");
    let policy = json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
    let patch = json!({"spec": {"persistentVolumeClaimRetentionPolicy": policy}});
    let set = sets.patch("rc", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let own = async |owners: Value| {
        for claim in claims.list(&ListParams::default()).await.unwrap() {
            let patch = Patch::Merge(json!({"metadata": {"ownerReferences": owners}}));
            claims.patch(&claim.name_any(), &PatchParams::default(), &patch).await.unwrap();
        }
    };
    own(json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "rc", "uid": set.uid()}])).await;
    change(json!({"hibernated": true})).await;
    operator.signal("CONT");
    eventually("claims without owners are waited for", async || {
        node.turn().await;
        let retained = children::retain();
        let set = sets.get("rc").await.unwrap().spec.unwrap();
        let waits = condition("Progressing").await?.1 == "KeepingVolumes";
        (waits && set.persistent_volume_claim_retention_policy == Some(retained)).then_some(())
    })
    .await;
    assert_eq!(sets.get("rc").await.unwrap().spec.unwrap().replicas, Some(4));
    assert_eq!(phase().await, Some(Phase::Hibernating));
    own(Value::Null).await;
    eventually("all pods are stopped", async || {
        node.turn().await;
        (phase().await == Some(Phase::Hibernated)).then_some(())
    })
    .await;
    assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 0);
    let versions = seen.lock().unwrap().clone();
    let expected = ["4 Retain", "4 Delete", "4 Retain", "0 Retain"].map(str::to_owned);
    assert_eq!(versions, expected, "replicas and whenScaled");
    let all = claims.list(&ListParams::default()).await.unwrap();
    let kept = |claim: &PersistentVolumeClaim| {
        claim.metadata.deletion_timestamp.is_none()
            && !claim.annotations().contains_key(children::DRAINED_ANNOTATION)
    };
    assert_eq!(all.iter().filter(|claim| kept(claim)).count(), 4);
    for (kind, expected) in [
        ("Ready", "False Hibernated"),
        ("Available", "False Hibernated"),
        ("Progressing", "False Hibernated"),
        ("Degraded", "False Hibernated"),
        ("UpdatePending", "False Hibernated"),
        ("Initialized", "True Formed"),
    ] {
        let (is_true, reason, _) = condition(kind).await.unwrap();
        assert_eq!(format!("{} {reason}", if is_true { "True" } else { "False" }), expected, "{kind}");
    }
    let status = clusters.get("rc").await.unwrap().status.unwrap();
    assert_eq!((ids().await, status.ready_nodes, status.initialized), (known.clone(), Some(0), Some(true)));
    assert!(condition("Available").await.unwrap().2.contains("set it to false"));

    // Whatever makes it look, it writes nothing.
    let counts = |name: &str| -> BTreeMap<String, u64> {
        let text = metrics(operator.metrics);
        let lines =
            text.lines().filter(|line| line.starts_with(name)).filter_map(|line| line.rsplit_once(' '));
        lines.map(|(name, count)| (name.to_owned(), count.parse().unwrap())).collect()
    };
    let looked = || counts("redis_operator_reconcile_total").values().sum::<u64>();
    let (written, before) = (counts("redis_operator_api_writes_total"), looked());
    let mut round = 0;
    eventually("it looked three times", async || {
        round += 1;
        let patch =
            Patch::Merge(json!({"metadata": {"annotations": {"example.com/round": round.to_string()}}}));
        clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
        (looked() >= before + 3).then_some(())
    })
    .await;
    assert_eq!(counts("redis_operator_api_writes_total"), written);
    let text = metrics(operator.metrics);
    for line in [
        "redis_operator_cluster_nodes{namespace=\"hibernated\",name=\"rc\",state=\"desired\"} 0",
        "redis_operator_cluster_slots{namespace=\"hibernated\",name=\"rc\",state=\"lost\"} 0",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), PLACE);
    assert!(budgets.get_opt("rc").await.unwrap().is_some());

    // No node could refuse it, so pods start without it.
    let conf = async || maps.get("rc-config").await.unwrap().data.unwrap()["redis.conf"].clone();
    let old = conf().await;
    let generation = async || clusters.get("rc").await.unwrap().status.unwrap().observed_generation;
    let before = generation().await;
    change(json!({"config": {"maxmemory-policy": "volatile-ttl"}})).await;
    eventually("the change is seen", async || (generation().await != before).then_some(())).await;
    assert_eq!(conf().await, old);

    // A Secret that is missing when they are to start does not make the operator forget that they were stopped.
    change(json!({"auth": {"secretName": "missing"}})).await;
    eventually("the Secret is missed", async || (phase().await == Some(Phase::Failed)).then_some(())).await;
    let before = generation().await;
    change(json!({"hibernated": false, "size": 2})).await;
    eventually("the change is seen", async || (generation().await != before).then_some(())).await;
    assert_eq!(phase().await, Some(Phase::Failed));
    assert_eq!(sets.get("rc").await.unwrap().spec.unwrap().replicas, Some(0));
    let why = condition("Available").await.unwrap().2;
    assert!(why.contains("no pod runs: Secret `missing` not found"), "{why}");

    // Half of the pods are wanted, and all come back first.
    change(json!({"auth": null})).await;
    eventually("all pods start", async || {
        let spec = sets.get("rc").await.unwrap().spec.unwrap();
        (spec.replicas == Some(4)).then_some(())
    })
    .await;
    eventually("their last status says so", async || (phase().await == Some(Phase::Waking)).then_some(()))
        .await;
    let (degraded, reason, _) = condition("Degraded").await.unwrap();
    assert_eq!((degraded, reason.as_str()), (false, "WaitingForPods"));
    assert_eq!(ids().await, known, "so that a node is recognized that others are told to forget");
    assert_eq!(conf().await, old, "no node has seen the directive yet");
    settled(&clusters, &mut node, 1).await;
    let versions = seen.lock().unwrap().clone();
    let (woken, last) = (&versions[4], versions.last().unwrap());
    assert_eq!((woken.as_str(), last.as_str()), ("4 Retain", "2 Retain"), "{versions:?}");
    assert!(
        !sets
            .get("rc")
            .await
            .unwrap()
            .annotations()
            .contains_key("cache.example.com/pods-before-hibernation")
    );
    let mut redis = ClusterClient::new(access.clone(), first().await);
    for key in 0..300 {
        let key = format!("key-{key}");
        let found: Option<String> = redis.send(&key, cmd("GET").arg(&key)).await.unwrap();
        assert_eq!(found.as_ref(), Some(&key));
    }
    let mut connection = access.connect(first().await).await.unwrap();
    for (directive, expected) in [("maxmemory-policy", "volatile-ttl"), ("cluster-replica-no-failover", "no")]
    {
        let found: Vec<String> =
            connection.send("CONFIG", cmd("CONFIG").arg("GET").arg(directive)).await.unwrap();
        assert_eq!(found[1], expected, "{directive}");
    }
    assert!(conf().await.contains("maxmemory-policy volatile-ttl\n"));

    // One that Redis refuses, given together with the hibernation, keeps no pod from starting. Once pods respond, nothing says that
    // they were stopped.
    let old = conf().await;
    let config =
        |refused: Value| json!({"maxmemory-policy": "volatile-ttl", "notify-keyspace-events": refused});
    change(json!({"hibernated": true, "config": config(json!("QQQ"))})).await;
    eventually("all pods are stopped", async || {
        node.turn().await;
        (phase().await == Some(Phase::Hibernated)).then_some(())
    })
    .await;
    assert_eq!(conf().await, old);
    change(json!({"hibernated": false})).await;
    eventually("the directive is refused", async || {
        node.turn().await;
        (condition("Degraded").await?.1 == "ConfigRefused").then_some(())
    })
    .await;
    assert_eq!(conf().await, old);
    eventually("it is forgotten that they were stopped", async || {
        let set = sets.get("rc").await.unwrap();
        (!set.annotations().contains_key("cache.example.com/pods-before-hibernation")).then_some(())
    })
    .await;
    change(json!({"config": config(Value::Null)})).await;
    settled(&clusters, &mut node, 1).await;

    // It can be deleted while it is hibernated, and volumes stay.
    change(json!({"hibernated": true})).await;
    eventually("all pods are stopped again", async || {
        node.turn().await;
        (phase().await == Some(Phase::Hibernated)).then_some(())
    })
    .await;
    clusters.delete("rc", &Default::default()).await.unwrap();
    eventually("the cluster is gone", async || clusters.get_opt("rc").await.unwrap().is_none().then_some(()))
        .await;
    let all = claims.list(&ListParams::default()).await.unwrap();
    let names: Vec<_> = all.iter().filter(|claim| kept(claim)).map(ResourceExt::name_any).collect();
    assert_eq!(names, ["data-rc-0", "data-rc-1"]);
}

/// Replicas and whenScaled in each version of the StatefulSet, from now on, without repetitions.
async fn versions(sets: &Api<StatefulSet>) -> Arc<Mutex<Vec<String>>> {
    let words = |set: &StatefulSet| {
        let spec = set.spec.as_ref().unwrap();
        let policy = spec.persistent_volume_claim_retention_policy.clone().unwrap_or_else(children::retain);
        format!("{} {}", spec.replicas.unwrap(), policy.when_scaled.unwrap())
    };
    let now = sets.get("rc").await.unwrap();
    let seen = Arc::new(Mutex::new(vec![words(&now)]));
    let (all, sets) = (seen.clone(), sets.clone());
    tokio::spawn(async move {
        let parameters = WatchParams::default().timeout(280);
        let mut events = sets.watch(&parameters, &now.resource_version().unwrap()).await.unwrap().boxed();
        while let Some(event) = events.next().await {
            let Ok(WatchEvent::Modified(set)) = event else { continue };
            let mut all = all.lock().unwrap();
            if all.last() != Some(&words(&set)) {
                all.push(words(&set));
            }
        }
    });
    seen
}
