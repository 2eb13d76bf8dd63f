//! What a spec and a Secret change on a real API server, with real redis-servers: pods are replaced, nodes are configured, and a
//! wrong password removes nothing.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, Pod, Secret},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use redis::cmd;
use redis_operator::{
    controller::{children, intent, outdated},
    crd::RedisCluster,
    metrics::Metrics,
    server::{Access, Password},
};
use serde_json::{Value, json};

use crate::{
    access_of, create, eventually, namespace,
    node::{self, Node, RealRedis},
    replica::Replica,
    secret_of, settled, writer,
};

/// The configuration is changed, then the image to one that cannot be pulled, then that is taken back.
pub(crate) async fn updates(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "updates").await;
    // Four node timeouts after it began to lead, an operator promotes its first replica.
    let flags = ["--no-leader-election", "--namespace", "updates", "--watch-namespace", "updates"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "updates", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    let spec = json!({"size": 6, "replicasPerShard": 1, "resources": {"requests": {"cpu": "1m"}}});
    create(&client, "updates", "rc", spec).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "updates");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "updates");
    let condition = async |kind: &str| {
        let status = clusters.get("rc").await.unwrap().status?;
        let found = status.conditions.into_iter().find(|one| one.type_ == kind)?;
        Some((found.status == "True", found.reason, found.message))
    };
    let change = async |spec: Value| {
        let patch = Patch::Merge(json!({"spec": spec}));
        clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    };
    settled(&clusters, &mut node, 3).await;
    let uids = async || {
        let all = pods.list(&ListParams::default()).await.unwrap();
        all.iter().map(|pod| pod.uid().unwrap()).collect::<std::collections::BTreeSet<_>>()
    };
    let before = uids().await;

    // As release 0.5.0 made them: a new release replaces no pod.
    let unhashed = Patch::Merge(json!({"metadata": {"annotations": {intent::INTENT: null}}}));
    for pod in pods.list(&ListParams::default()).await.unwrap() {
        pods.patch(&pod.name_any(), &PatchParams::default(), &unhashed).await.unwrap();
    }
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "updates");
    let template = json!({"spec": {"template": {"metadata": {"annotations": {intent::INTENT: null}}}}});
    eventually("the StatefulSet is adopted", async || {
        // A reconcile that began before may still have put the hash back.
        sets.patch("rc", &PatchParams::default(), &Patch::Merge(&template)).await.unwrap();
        node.turn().await;
        sets.get("rc").await.unwrap().annotations().get(outdated::ADOPTED).cloned()
    })
    .await;
    settled(&clusters, &mut node, 3).await;
    assert_eq!(before, uids().await);

    change(json!({"config": {"tcp-backlog": "128"}, "resources": null})).await;
    eventually("the update is pending", async || {
        node.turn().await;
        condition("UpdatePending").await.filter(|(is_true, ..)| *is_true)
    })
    .await;
    settled(&clusters, &mut node, 3).await;
    let after = uids().await;
    assert_eq!(before.intersection(&after).count(), 0, "every pod is another");
    assert_eq!(condition("UpdatePending").await.unwrap().1, "UpToDate");
    for pod in pods.list(&ListParams::default()).await.unwrap() {
        let resources = pod.spec.unwrap().containers[0].resources.clone().unwrap_or_default();
        assert_eq!(resources, Default::default(), "what the spec dropped is dropped");
        let ip = pod.status.unwrap().pod_ip.unwrap();
        let password = secret_of(&client, "updates").await;
        let mut redis = redis::Client::open(format!("redis://:{password}@{ip}:6379/")).unwrap();
        let set: Vec<String> = redis::cmd("CONFIG").arg("GET").arg("tcp-backlog").query(&mut redis).unwrap();
        assert_eq!(set[1], "128");
    }

    change(json!({"image": node::NO_IMAGE})).await;
    let message = eventually("the condition says why", async || {
        node.turn().await;
        let (is_true, reason, message) = condition("Degraded").await?;
        (is_true && reason == "RolloutFailed").then_some(message)
    })
    .await;
    assert!(message.contains("ErrImagePull: not found; 5 pods keep the older one"), "{message}");
    assert!(condition("Available").await.unwrap().0);
    assert_eq!(after.intersection(&uids().await).count(), 5, "no other pod was replaced");
    change(json!({"image": "docker.io/library/redis:7.2.5"})).await;
    settled(&clusters, &mut node, 3).await;
    assert_eq!(after.intersection(&uids().await).count(), 5);

    change(json!({"image": "docker.io/library/redis:6.2.14"})).await;
    eventually("an older Redis is refused", async || {
        node.turn().await;
        condition("UpdatePending").await.filter(|(_, reason, _)| reason == "DowngradeRefused")
    })
    .await;
    let template = sets.get("rc").await.unwrap().spec.unwrap().template.spec.unwrap();
    assert_eq!(template.containers[0].image.as_deref(), Some("docker.io/library/redis:7.2.5"));
}

/// Directives that Redis takes while it runs: set under a client's writes, refused, corrected, and removed.
pub(crate) async fn live_configuration(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "live").await;
    let flags = ["--no-leader-election", "--namespace", "live", "--watch-namespace", "live"];
    let mut operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "live", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, "live", "rc", json!({"size": 6, "replicasPerShard": 1})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "live");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "live");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "live");
    settled(&clusters, &mut node, 3).await;
    let password = secret_of(&client, "live").await;
    let condition = async |kind: &str| {
        let status = clusters.get("rc").await.unwrap().status?;
        let found = status.conditions.into_iter().find(|one| one.type_ == kind)?;
        Some((found.status == "True", found.reason, found.message))
    };
    let change = async |config: Value| {
        let patch = Patch::Merge(json!({"spec": {"config": config}}));
        clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    };
    let all = async || pods.list(&ListParams::default()).await.unwrap().items;
    let uids = async || all().await.iter().map(|pod| pod.uid().unwrap()).collect::<BTreeSet<_>>();
    let values = async |directive: &str| {
        let mut values = BTreeSet::new();
        for pod in all().await {
            let ip = pod.status.unwrap().pod_ip.unwrap();
            let mut redis = redis::Client::open(format!("redis://:{password}@{ip}:6379/")).unwrap();
            let found: Vec<String> =
                redis::cmd("CONFIG").arg("GET").arg(directive).query(&mut redis).unwrap();
            values.insert(found[1].clone());
        }
        values
    };
    let conf = async || maps.get("rc-config").await.unwrap().data.unwrap()["redis.conf"].clone();
    let before = uids().await;
    let first = all().await[0].status.clone().unwrap().pod_ip.unwrap().parse().unwrap();
    let access = access_of(&client, "live").await;
    let writer = writer::Writer::start(access.clone(), first, 100);

    change(json!({"maxmemory": "100mb", "notify-keyspace-events": "\"\""})).await;
    settled(&clusters, &mut node, 3).await;
    assert_eq!(values("maxmemory").await, BTreeSet::from(["104857600".to_owned()]));
    assert!(conf().await.contains("maxmemory 100mb\n"), "{}", conf().await);

    // The webhook is not there, and the schema knows no values.
    change(json!({"maxmemory": "200mb", "hz": "fast"})).await;
    let message = eventually("the condition says why", async || {
        node.turn().await;
        let (is_true, reason, message) = condition("Degraded").await?;
        (is_true && reason == "ConfigRefused").then_some(message)
    })
    .await;
    assert!(message.contains("refused spec.config.hz `fast`: ") && message.contains("integer"), "{message}");
    assert_eq!(condition("UpdatePending").await.unwrap().1, "ConfigRefused");
    assert!(condition("Available").await.unwrap().0);
    assert_eq!(values("maxmemory").await, BTreeSet::from(["104857600".to_owned()]));
    let kept = conf().await;
    assert!(kept.contains("maxmemory 100mb\n") && !kept.contains("hz fast"), "{kept}");

    // A new leader gives them to all once more, and one that is removed replaces pods.
    operator.signal("TERM");
    operator.ended(Duration::from_secs(25));
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    change(json!({"hz": "20"})).await;
    settled(&clusters, &mut node, 3).await;
    assert_eq!(values("hz").await, BTreeSet::from(["20".to_owned()]));
    assert_eq!(values("maxmemory").await, BTreeSet::from(["209715200".to_owned()]));
    assert_eq!(before, uids().await, "no pod was replaced");
    let written = writer.stop().await;
    let lost = written.lost(&access, first).await;
    assert_eq!((lost, written.errors), (vec![], Default::default()));

    // While it is paused, the condition says what is missing.
    let pause = async |paused: bool, memory: &str| {
        let patch = Patch::Merge(json!({"spec": {"paused": paused, "config": {"maxmemory": memory}}}));
        clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    };
    pause(true, "250mb").await;
    eventually("the change is pending", async || {
        node.turn().await;
        condition("UpdatePending").await.filter(|(is_true, reason, _)| *is_true && reason == "ConfigPending")
    })
    .await;
    assert_eq!(values("maxmemory").await, BTreeSet::from(["209715200".to_owned()]));
    pause(false, "250mb").await;
    settled(&clusters, &mut node, 3).await;
    assert_eq!(values("maxmemory").await, BTreeSet::from(["262144000".to_owned()]));
    assert_eq!(before, uids().await);

    change(json!({"maxmemory": null})).await;
    eventually("every pod is another", async || {
        node.turn().await;
        before.is_disjoint(&uids().await).then_some(())
    })
    .await;
    settled(&clusters, &mut node, 3).await;
    assert_eq!(values("maxmemory").await, BTreeSet::from(["0".to_owned()]));
    assert_eq!(condition("UpdatePending").await.unwrap().1, "UpToDate");
}

/// What the operator sets itself is set back. What is the user's stays, and is named if it keeps clients from writing.
pub(crate) async fn by_hand(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "hand").await;
    let flags = ["--no-leader-election", "--namespace", "hand", "--watch-namespace", "hand"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "hand", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, "hand", "rc", json!({"size": 1})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "hand");
    settled(&clusters, &mut node, 1).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "hand");
    let ip = pods.get("rc-0").await.unwrap().status.unwrap().pod_ip.unwrap().parse().unwrap();
    let mut redis = access_of(&client, "hand").await.connect(ip).await.unwrap();
    let by_hand = [
        ("appendonly", "yes", "no"),
        ("cluster-node-timeout", "600000", "5000"),
        ("cluster-allow-replica-migration", "yes", "no"),
    ];
    for (directive, value, own) in by_hand {
        redis.send::<()>("CONFIG", cmd("CONFIG").arg("SET").arg(directive).arg(value)).await.unwrap();
        look(&clusters, directive).await;
        eventually(directive, async || {
            let found = cmd("CONFIG").arg("GET").arg(directive).take();
            let found: Vec<String> = redis.send("CONFIG", &found).await.unwrap();
            (found[1] == own).then_some(())
        })
        .await;
    }
    for (replicas, expected) in [("3", "WritesRefused"), ("0", "AllMembersWell")] {
        let set = cmd("CONFIG").arg("SET").arg("min-replicas-to-write").arg(replicas).take();
        redis.send::<()>("CONFIG", &set).await.unwrap();
        look(&clusters, replicas).await;
        let written = redis.send::<()>("SET", cmd("SET").arg("key").arg("value")).await;
        assert_eq!(written.is_ok(), replicas == "0");
        eventually(expected, async || {
            let status = clusters.get("rc").await.unwrap().status?;
            status.conditions.into_iter().find(|one| one.type_ == "Degraded" && one.reason == expected)
        })
        .await;
    }
    settled(&clusters, &mut node, 1).await;
}

/// The operator looks at a cluster that changes.
async fn look(clusters: &Api<RedisCluster>, what: &str) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"look": what}}}));
    clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
}

/// The nodes refuse the operator while a cluster shrinks: it does not know what they have.
pub(crate) async fn changed_password(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "password").await;
    let flags = ["--no-leader-election", "--namespace", "password", "--watch-namespace", "password"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "password", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, "password", "rc", json!({"size": 3})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "password");
    settled(&clusters, &mut node, 3).await;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "password");
    let password = secrets.get("rc-auth").await.unwrap().data.unwrap()["password"].clone();
    let set = async |value: Value| {
        let patch = Patch::Merge(json!({"data": {"password": value}}));
        secrets.patch("rc-auth", &PatchParams::default(), &patch).await.unwrap();
    };
    set(json!(k8s_openapi::ByteString(b"another password".to_vec()))).await;
    let patch = Patch::Merge(json!({"spec": {"size": 1}}));
    clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "password");
    let replicas = async || sets.get("rc").await.unwrap().spec.unwrap().replicas;
    let condition = async |kind: &str, reason: &str| {
        eventually(&format!("{kind} is True with the reason {reason}"), async || {
            let status = clusters.get("rc").await.unwrap().status?;
            let found = status.conditions.into_iter().find(|one| one.type_ == kind)?;
            (found.status == "True" && found.reason == reason).then_some(found.message)
        })
        .await
    };
    condition("Degraded", "PasswordRejected").await;
    condition("UpdatePending", "PasswordPending").await;
    assert_eq!(replicas().await, Some(3));
    // Clients that have the old password are served, for all that the operator knows.
    let status = clusters.get("rc").await.unwrap().status.unwrap();
    let unknown: Vec<_> = status.conditions.iter().filter(|one| one.status == "Unknown").collect();
    assert_eq!(
        unknown.iter().map(|one| (&*one.type_, &*one.reason)).collect::<Vec<_>>(),
        ["Available", "Redundant", "SlotsCovered"].map(|kind| (kind, "PasswordRejected"))
    );
    assert_eq!((status.slots_covered, status.ready_nodes), (Some(16384), Some(3)));
    set(json!(k8s_openapi::ByteString(b"short".to_vec()))).await;
    let message = condition("Degraded", "PasswordUnusable").await;
    assert!(message.contains("Secret `rc-auth` must be 8 to 512 printable ASCII characters"), "{message}");
    set(json!(password)).await;
    settled(&clusters, &mut node, 1).await;
    assert_eq!(replicas().await, Some(1));

    // The Secret is deleted. Following the messages makes the cluster manageable again.
    secrets.delete("rc-auth", &DeleteParams::default()).await.unwrap();
    let message = condition("Degraded", "SecretMissing").await;
    assert!(message.contains("and set spec.auth.secretName to its name"), "{message}");
    let again = json!({"metadata": {"name": "rc-auth"}, "data": {"password": password}});
    let again: Secret = serde_json::from_value(again).unwrap();
    secrets.create(&PostParams::default(), &again).await.unwrap();
    let message = condition("Degraded", "NameTaken").await;
    assert!(message.contains("set spec.auth.secretName to `rc-auth` if it has the password"), "{message}");
    let patch = Patch::Merge(json!({"spec": {"auth": {"secretName": "rc-auth"}}}));
    clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    settled(&clusters, &mut node, 1).await;
}

/// The password changes while a client writes. Pods that have it as files stay; one of an older template is replaced first.
pub(crate) async fn rotated_password(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "rotation").await;
    let flags = ["--no-leader-election", "--namespace", "rotation", "--watch-namespace", "rotation"];
    let mut operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "rotation", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    node.without_files.insert("rc-5".into());
    create(&client, "rotation", "rc", json!({"size": 6, "replicasPerShard": 1})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "rotation");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "rotation");
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "rotation");
    settled(&clusters, &mut node, 3).await;
    node.without_files.clear();
    let uids = async || {
        let all = pods.list(&ListParams::default()).await.unwrap();
        all.iter().map(|pod| (pod.name_any(), pod.uid().unwrap())).collect::<BTreeSet<_>>()
    };
    let condition = async |kind: &str| {
        let status = clusters.get("rc").await.unwrap().status?;
        let found = status.conditions.into_iter().find(|one| one.type_ == kind)?;
        Some((found.status == "True", found.reason, found.message))
    };
    let write = async |password: &str, previous: Option<&str>| {
        let patch = match previous {
            Some(previous) => json!({"stringData": {"password": password, "previousPassword": previous}}),
            None => json!({"stringData": {"password": password}, "data": {"previousPassword": null}}),
        };
        secrets.patch("rc-auth", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    };
    let accepts = async |password: &str| {
        let mut accepts = BTreeSet::new();
        for pod in pods.list(&ListParams::default()).await.unwrap() {
            let ip = pod.status.unwrap().pod_ip.unwrap().parse().unwrap();
            let password = Some(Password::new(password.into()));
            let metrics = Arc::new(Metrics::default());
            let access =
                Access { port: children::PORT, host: None, trust: None, password, previous: None, metrics };
            accepts.insert(access.connect(ip).await.is_ok());
        }
        accepts
    };
    let (before, old, new) = (uids().await, secret_of(&client, "rotation").await, "the next password");

    // Not usable, so nothing changes.
    write(&old, Some("short")).await;
    let message = eventually("the condition says why", async || {
        let (is_true, reason, message) = condition("Degraded").await?;
        (is_true && reason == "PreviousPasswordUnusable").then_some(message)
    })
    .await;
    assert!(message.contains("`previousPassword` of Secret `rc-auth` is not 8 to 512"), "{message}");
    // The operator cannot log in.
    write(new, None).await;
    let message = eventually("the condition says what to do", async || {
        let (is_true, reason, message) = condition("Degraded").await?;
        (is_true && reason == "PasswordRejected").then_some(message)
    })
    .await;
    assert!(
        message.contains("put the password that the pods have at the key `previousPassword`"),
        "{message}"
    );
    assert!(condition("UpdatePending").await.unwrap().0);

    let written = std::time::Instant::now();
    write(new, Some(&old)).await;
    eventually("all nodes accept both", async || {
        node.turn().await;
        condition("UpdatePending").await.filter(|(_, reason, _)| reason == "PreviousPasswordAccepted")
    })
    .await;
    settled(&clusters, &mut node, 3).await;
    let replaced: Vec<_> = before.difference(&uids().await).map(|(pod, _)| pod.clone()).collect();
    assert_eq!(replaced, ["rc-5"], "it has only the environment");
    assert_eq!((accepts(&old).await, accepts(new).await), ([true].into(), [true].into()));

    // Files have the new one since it was written, to which the removal of the old one adds nothing. Another operator does not wait less.
    let before = uids().await;
    write(new, None).await;
    eventually("the old one is to be removed", async || {
        condition("UpdatePending").await.filter(|(_, reason, _)| reason == "OldPasswordAccepted")
    })
    .await;
    operator.signal("TERM");
    operator.ended(Duration::from_secs(25));
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    crate::within(Duration::from_secs(400), "the old one is removed", async || {
        node.turn().await;
        condition("UpdatePending").await.filter(|(_, reason, _)| reason == "UpToDate")
    })
    .await;
    assert!(written.elapsed() > Duration::from_secs(119), "{:?}", written.elapsed());
    assert_eq!((accepts(&old).await, accepts(new).await), ([false].into(), [true].into()));
    settled(&clusters, &mut node, 3).await;
    assert_eq!(before, uids().await, "no pod was replaced");
}

/// `maxmemory` follows from the memory limit: of new clusters, when the limit changes, and of those that an earlier release made.
pub(crate) async fn memory_limit(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "limits").await;
    let flags = ["--no-leader-election", "--namespace", "limits", "--watch-namespace", "limits"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "limits", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    let limit = |memory: &str| json!({"limits": {"memory": memory}});
    let spec = json!({"size": 3, "storage": {"size": "1Gi"}, "resources": limit("400Mi")});
    create(&client, "limits", "rc", spec).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "limits");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "limits");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "limits");
    settled(&clusters, &mut node, 3).await;
    let password = secret_of(&client, "limits").await;
    let all = async || pods.list(&ListParams::default()).await.unwrap().items;
    let uids = async || all().await.iter().map(|pod| pod.uid().unwrap()).collect::<BTreeSet<_>>();
    let connect = |pod: &Pod| {
        let ip = pod.status.clone().unwrap().pod_ip.unwrap();
        redis::Client::open(format!("redis://:{password}@{ip}:6379/")).unwrap()
    };
    let has = async |bytes: &str| {
        let given = |pod: &Pod| -> bool {
            let found: Vec<String> =
                redis::cmd("CONFIG").arg("GET").arg("maxmemory").query(&mut connect(pod)).unwrap();
            found[1] == bytes
        };
        let conf = maps.get("rc-config").await.unwrap().data.unwrap()["redis.conf"].clone();
        let in_file = conf.lines().any(|line| line == format!("maxmemory {bytes}"));
        (all().await.iter().all(given) && in_file).then_some(())
    };
    let first = "314572800";
    eventually("nodes have 75 % of the limit", async || has(first).await).await;

    let before = uids().await;
    let map = maps.get("rc-config").await.unwrap();
    let conf = map.data.unwrap()["redis.conf"].replace(&format!("maxmemory {first}\n"), "");
    for pod in all().await {
        redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(0).exec(&mut connect(&pod)).unwrap();
    }
    let patch = Patch::Merge(json!({"data": {"redis.conf": conf}}));
    maps.patch("rc-config", &PatchParams::default(), &patch).await.unwrap();
    eventually("nodes of an earlier release have it", async || has(first).await).await;
    assert_eq!(uids().await, before, "no pod was replaced");

    let patch = Patch::Merge(json!({"spec": {"resources": limit("800Mi")}}));
    clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    settled(&clusters, &mut node, 3).await;
    eventually("nodes have 75 % of the new limit", async || has("629145600").await).await;
    assert_eq!(uids().await.intersection(&before).count(), 0, "every pod is another");
}
