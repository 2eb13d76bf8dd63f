//! What keeps pods and objects from being made or from running, and what the status says meanwhile.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration,
    apps::v1::StatefulSet,
    core::v1::{Event, Pod, Secret, Service},
    networking::v1::NetworkPolicy,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use redis_operator::crd::RedisCluster;
use serde_json::{Value, json};

use crate::{
    apply, create, eventually, namespace,
    node::{self, Node, RealRedis},
    replica::Replica,
    settled,
};

async fn condition(clusters: &Api<RedisCluster>, kind: &str) -> Option<(bool, String, String)> {
    let status = clusters.get("rc").await.unwrap().status?;
    let found = status.conditions.into_iter().find(|one| one.type_ == kind)?;
    Some((found.status == "True", found.reason, found.message))
}

async fn change(clusters: &Api<RedisCluster>, spec: Value) {
    let patch = Patch::Merge(json!({"spec": spec}));
    clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
}

/// An exporter is added whose image cannot be pulled; then it is corrected, and removed.
pub(crate) async fn exporter(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "exporter").await;
    let flags = ["--no-leader-election", "--namespace", "exporter", "--watch-namespace", "exporter"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "exporter", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, "exporter", "rc", json!({"size": 6, "replicasPerShard": 1})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "exporter");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "exporter");
    let policies: Api<NetworkPolicy> = Api::namespaced(client.clone(), "exporter");
    settled(&clusters, &mut node, 3).await;
    let uids = async || {
        let all = pods.list(&ListParams::default()).await.unwrap();
        all.iter().map(|pod| pod.uid().unwrap()).collect::<BTreeSet<_>>()
    };
    let images = async || {
        let all = pods.list(&ListParams::default()).await.unwrap();
        let second = |pod: &Pod| pod.spec.as_ref()?.containers.get(1)?.image.clone();
        all.iter().map(second).collect::<BTreeSet<_>>()
    };
    let ports = async || {
        let policy = policies.get("rc").await.unwrap();
        json!(policy.spec)["ingress"].as_array().unwrap().len()
    };
    let before = uids().await;

    change(&clusters, json!({"exporter": {"image": node::NO_IMAGE}})).await;
    let message = eventually("the condition says why", async || {
        node.turn().await;
        let (is_true, reason, message) = condition(&clusters, "Degraded").await?;
        (is_true && reason == "RolloutFailed").then_some(message)
    })
    .await;
    let expected = format!(
        "cannot start: container `exporter` with image `{}`: ErrImagePull: not found; 5 pods keep the older one; correct or revert spec.exporter",
        node::NO_IMAGE
    );
    assert!(message.contains(&expected), "{message}");
    assert_eq!(before.intersection(&uids().await).count(), 5, "no other pod was replaced");
    assert!(condition(&clusters, "Available").await.unwrap().0, "its Redis serves");
    assert_eq!(ports().await, 3);

    change(&clusters, json!({"exporter": {"image": "registry.example.com/exporter:1"}})).await;
    settled(&clusters, &mut node, 3).await;
    assert_eq!(images().await, [Some("registry.example.com/exporter:1".to_owned())].into());
    change(&clusters, json!({"exporter": null})).await;
    eventually("no pod has an exporter", async || {
        node.turn().await;
        (images().await == [None].into()).then_some(())
    })
    .await;
    settled(&clusters, &mut node, 3).await;
    assert_eq!(ports().await, 2);
}

/// The StatefulSet controller says so in Events alone.
pub(crate) async fn not_created(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "missing").await;
    let flags = ["--no-leader-election", "--namespace", "missing", "--watch-namespace", "missing"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "missing", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, "missing", "rc", json!({"size": 1})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "missing");
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "missing");
    let events: Api<Event> = Api::namespaced(client.clone(), "missing");
    settled(&clusters, &mut node, 1).await;
    node.refused.insert("rc-1".into());
    change(&clusters, json!({"size": 2})).await;
    let set = sets.get("rc").await.unwrap();
    for (name, pod, why) in [("a", "rc-10", "something else"), ("b", "rc-1", "exceeded quota: small")] {
        let event = json!({
            "metadata": {"name": name}, "reason": "FailedCreate", "type": "Warning", "count": 3,
            "involvedObject": {
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "rc", "namespace": "missing", "uid": set.uid(),
            },
            "message": format!("create Pod {pod} in StatefulSet rc failed error: pods \"{pod}\" is forbidden: {why}"),
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:05Z",
        });
        events.create(&PostParams::default(), &serde_json::from_value(event).unwrap()).await.unwrap();
    }
    let message = eventually("the condition says why", async || {
        node.turn().await;
        let (is_true, reason, message) = condition(&clusters, "Degraded").await?;
        (is_true && reason == "FailedCreate").then_some(message)
    })
    .await;
    let expected = "Kubernetes does not create pod rc-1: pods \"rc-1\" is forbidden: exceeded quota: small; ";
    assert!(message.starts_with(expected), "{message}");
    node.refused.clear();
    settled(&clusters, &mut node, 2).await;
    assert_eq!(condition(&clusters, "Degraded").await.unwrap().1, "AllMembersWell");
}

/// An admission webhook of another product fails, and the API server refuses every write of a Service.
pub(crate) async fn objects_fail(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "failing").await;
    let flags = ["--no-leader-election", "--namespace", "failing", "--watch-namespace", "failing"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "failing", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, "failing", "rc", json!({"size": 1})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "failing");
    let services: Api<Service> = Api::namespaced(client.clone(), "failing");
    settled(&clusters, &mut node, 1).await;
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "failing"},
        "webhooks": [{
            "name": "failing.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 1, "clientConfig": {"url": "https://127.0.0.1:1/"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "failing"}},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["services"],
            }],
        }],
    });
    apply::<ValidatingWebhookConfiguration>(&client, webhook).await;
    eventually("the webhook fails", async || {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"changed": "yes"}}}));
        services.patch("rc", &PatchParams::default(), &patch).await.err()
    })
    .await;
    services.delete("rc", &Default::default()).await.unwrap();
    change(&clusters, json!({"size": 2})).await;
    eventually("the status is about this spec", async || {
        node.turn().await;
        let cluster = clusters.get("rc").await.unwrap();
        let status = cluster.status?;
        let is_new = status.observed_generation == cluster.metadata.generation;
        let ready = status.conditions.iter().find(|one| one.type_ == "Ready")?;
        (is_new && ready.status == "False").then_some(())
    })
    .await;
    assert!(condition(&clusters, "Available").await.unwrap().0);
    assert_eq!(services.get_opt("rc").await.unwrap(), None);
    let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    webhooks.delete("failing", &Default::default()).await.unwrap();
    settled(&clusters, &mut node, 2).await;
}

/// Objects of a RedisCluster that was deleted are there when the next one of its name is created.
pub(crate) async fn leftovers(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "leftovers").await;
    let owner = json!({
        "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "name": "rc", "controller": true,
        "uid": "00000000-0000-0000-0000-000000000000",
    });
    let metadata = |name: &str| json!({"name": name, "ownerReferences": [owner]});
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "leftovers");
    let services: Api<Service> = Api::namespaced(client.clone(), "leftovers");
    let secret = json!({"metadata": metadata("rc-auth"), "stringData": {"password": "of an earlier one"}});
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    let service = json!({"metadata": metadata("rc"), "spec": {"ports": [{"port": 6379}]}});
    services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    let flags = ["--no-leader-election", "--namespace", "leftovers", "--watch-namespace", "leftovers"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "leftovers", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, "leftovers", "rc", json!({"size": 1})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "leftovers");
    let reported = async |start: &str| {
        let is_about = |message: &String| message.starts_with(start);
        eventually(&format!("a message begins with {start}"), async || {
            let (is_true, reason, message) = condition(&clusters, "Degraded").await?;
            (is_true && reason == "NameTaken").then_some(message).filter(is_about)
        })
        .await
    };
    let message = reported("Secret `rc-auth` is of an earlier RedisCluster").await;
    assert!(message.ends_with("Kubernetes removes it soon; if it does not, delete it"), "{message}");
    let status = clusters.get("rc").await.unwrap().status.unwrap();
    assert_eq!(json!(status.phase), "Creating");
    secrets.delete("rc-auth", &Default::default()).await.unwrap();
    reported("Service `rc` is of an earlier RedisCluster").await;
    services.delete("rc", &Default::default()).await.unwrap();
    settled(&clusters, &mut node, 1).await;
}
