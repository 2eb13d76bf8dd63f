//! Volumes on a real API server: only those of drained nodes are deleted, they outlive a cluster that is to keep them, and they grow.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use redis_operator::{controller::children, crd::RedisCluster};
use serde_json::json;

use crate::{
    access_of, apply, create, eventually, namespace,
    node::{Node, RealRedis},
    replica::Replica,
    settled, writer,
};

/// Claims as the StatefulSet's controller makes them.
pub(crate) async fn claims_of(client: &Client, place: &str, count: u32) -> Api<PersistentVolumeClaim> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), place);
    for ordinal in 0..count {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": format!("data-rc-{ordinal}"), "labels": children::labels("rc")},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        let claim = serde_json::from_value(claim).unwrap();
        claims.create(&PostParams::default(), &claim).await.unwrap();
    }
    claims
}

pub(crate) async fn drained(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "drained").await;
    let claims = claims_of(&client, "drained", 5).await;
    let flags = ["--no-leader-election", "--namespace", "drained", "--watch-namespace", "drained"];
    let operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "drained", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, "drained", "rc", json!({"size": 3, "storage": {"size": "1Gi"}})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "drained");
    settled(&clusters, &mut node, 3).await;
    // The fifth is nobody's yet, and stays.
    let patch = Patch::Merge(json!({"spec": {"size": 4}}));
    clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    settled(&clusters, &mut node, 4).await;
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "drained");
    let policy = sets.get("rc").await.unwrap().spec.unwrap().persistent_volume_claim_retention_policy;
    assert_eq!(policy, Some(children::retain()));
    let patch = Patch::Merge(json!({"spec": {"size": 2}}));
    clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    settled(&clusters, &mut node, 2).await;
    let left = async || {
        let all = claims.list(&ListParams::default()).await.unwrap();
        // Nobody takes the finalizer that protects claims of pods from them here.
        let left = all.iter().filter(|claim| claim.metadata.deletion_timestamp.is_none());
        left.map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    let expected = ["data-rc-0", "data-rc-1", "data-rc-4"];
    eventually("the volumes of drained nodes are deleted", async || {
        node.turn().await;
        (left().await == expected).then_some(())
    })
    .await;
    assert_eq!(operator.log().matches("deleting the volume of a drained node").count(), 2);
}

/// Somebody deletes the claims of a cluster without replicas, one of which has no label, and then changes the image.
pub(crate) async fn deleted(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "deleted").await;
    let claims = claims_of(&client, "deleted", 3).await;
    let flags = ["--no-leader-election", "--namespace", "deleted", "--watch-namespace", "deleted"];
    let operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "deleted", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, "deleted", "rc", json!({"size": 3, "storage": {"size": "1Gi"}})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "deleted");
    settled(&clusters, &mut node, 3).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "deleted");
    let uids = async || {
        let all = pods.list(&ListParams::default()).await.unwrap();
        all.iter().map(|pod| pod.uid().unwrap()).collect::<BTreeSet<_>>()
    };
    let before = uids().await;
    let reported = async |node: &mut Node, kind: &str, note: &str| {
        eventually(&format!("{kind}: {note}"), async || {
            node.turn().await;
            let status = clusters.get("rc").await.unwrap().status?;
            let found = status.conditions.into_iter().find(|one| one.type_ == kind)?;
            (found.reason == "ClaimTerminating" && found.message.contains(note)).then_some(())
        })
        .await;
    };
    // The finalizer that protects claims of pods keeps them.
    let change = |image: &str| Patch::Merge(json!({"spec": {"image": image}}));
    let unlabelled = Patch::Merge(json!({"metadata": {"labels": null}}));
    claims.patch("data-rc-0", &PatchParams::default(), &unlabelled).await.unwrap();
    claims.delete("data-rc-0", &Default::default()).await.unwrap();
    clusters.patch("rc", &PatchParams::default(), &change("redis:other")).await.unwrap();
    eventually("the API server is asked", async || {
        node.turn().await;
        operator.log().contains("on data-rc-0, which is being deleted").then_some(())
    })
    .await;
    reported(&mut node, "Degraded", ": data-rc-0 of pod rc-0; ").await;
    reported(&mut node, "Ready", "the only copy of its keys").await;
    claims.delete("data-rc-1", &Default::default()).await.unwrap();
    reported(&mut node, "Degraded", ": data-rc-0 of pod rc-0, data-rc-1 of pod rc-1; ").await;
    assert_eq!(uids().await, before);
}

/// Without its label nobody watches it. Two things keep its pods: the operator asks the API server before it believes that there is
/// no StatefulSet, and it removes no pod that owned slots by the last status before every slot is served without it.
pub(crate) async fn unlabelled(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "unlabelled").await;
    let flags = ["--no-leader-election", "--namespace", "unlabelled", "--watch-namespace", "unlabelled"];
    let mut operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "unlabelled", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, "unlabelled", "rc", json!({"size": 5})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "unlabelled");
    settled(&clusters, &mut node, 5).await;
    operator.signal("STOP");
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "unlabelled");
    let patch = Patch::Merge(json!({"metadata": {"labels": {children::CONTROL_PLANE_LABEL: null}}}));
    sets.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"size": 3}}));
    clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    operator.signal("CONT");
    // Slots that are lost would be waited for.
    settled(&clusters, &mut node, 3).await;
    let set = sets.get("rc").await.unwrap();
    assert_eq!(set.labels()[children::CONTROL_PLANE_LABEL], children::CONTROL_PLANE);
}

/// Its StatefulSet was made by a release that told Kubernetes to delete the volumes with it.
pub(crate) async fn retained(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "retained").await;
    let claims = claims_of(&client, "retained", 3).await;
    let flags = ["--no-leader-election", "--namespace", "retained", "--watch-namespace", "retained"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let spec = json!({"size": 3, "storage": {"size": "1Gi", "deletionPolicy": "Delete"}});
    create(&client, "retained", "rc", spec).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "retained");
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "retained");
    eventually("there is a StatefulSet", async || sets.get_opt("rc").await.unwrap()).await;
    let paused = json!({"spec": {"paused": true, "storage": {"deletionPolicy": "Retain"}}});
    clusters.patch("rc", &PatchParams::default(), &Patch::Merge(paused)).await.unwrap();
    eventually("it is paused", async || {
        let cluster = clusters.get("rc").await.unwrap();
        let status = cluster.status?;
        (status.observed_generation == cluster.metadata.generation).then_some(())
    })
    .await;
    // The finalizer keeps what is deleted to look at.
    let policy = json!({"whenDeleted": "Delete", "whenScaled": "Retain"});
    let patch = json!({
        "metadata": {"finalizers": ["example.com/look"]}, "spec": {"persistentVolumeClaimRetentionPolicy": policy},
    });
    sets.patch("rc", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    clusters.delete("rc", &Default::default()).await.unwrap();
    let set = eventually("the StatefulSet is deleted", async || {
        sets.get("rc").await.ok().filter(|set| set.metadata.deletion_timestamp.is_some())
    })
    .await;
    assert_eq!(set.spec.unwrap().persistent_volume_claim_retention_policy, Some(children::retain()));
    eventually("the cluster is gone", async || clusters.get_opt("rc").await.unwrap().is_none().then_some(()))
        .await;
    let left = claims.list(&ListParams::default()).await.unwrap();
    let kept = left.iter().filter(|claim| {
        claim.metadata.deletion_timestamp.is_none()
            && claim.labels().get("cache.example.com/retained-from").is_some_and(|from| from == "rc")
    });
    assert_eq!(kept.count(), 3, "{left:?}");
}

/// Under a client's writes. The class is forbidden to grow, and then allowed to.
pub(crate) async fn volumes_grow(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "volumes").await;
    let class = async |grows: bool| {
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "grows"},
            "provisioner": "example.com/none", "allowVolumeExpansion": grows,
        });
        apply::<StorageClass>(&client, class).await;
    };
    class(true).await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), "volumes");
    let bind = async |name: &str, size: &str| {
        let bound = Patch::Merge(json!({"status": {"phase": "Bound", "capacity": {"storage": size}}}));
        claims.patch_status(name, &PatchParams::default(), &bound).await.unwrap();
    };
    for ordinal in 0..6 {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": format!("data-rc-{ordinal}"), "labels": children::labels("rc")},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "grows",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        let claim = serde_json::from_value(claim).unwrap();
        claims.create(&PostParams::default(), &claim).await.unwrap();
        bind(&format!("data-rc-{ordinal}"), "1Gi").await;
    }
    let flags = ["--no-leader-election", "--namespace", "volumes", "--watch-namespace", "volumes"];
    let mut operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "volumes", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    let storage = |size: &str| json!({"size": size, "storageClassName": "grows"});
    create(&client, "volumes", "rc", json!({"size": 6, "replicasPerShard": 1, "storage": storage("1Gi")}))
        .await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "volumes");
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "volumes");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "volumes");
    settled(&clusters, &mut node, 3).await;
    let condition = async |kind: &str| {
        let status = clusters.get("rc").await.unwrap().status?;
        let found = status.conditions.into_iter().find(|one| one.type_ == kind)?;
        Some((found.status == "True", found.reason, found.message))
    };
    let resize = async |size: &str| {
        let patch = Patch::Merge(json!({"spec": {"storage": storage(size)}}));
        clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    };
    let asked = async || {
        let all = claims.list(&ListParams::default()).await.unwrap();
        let size =
            |claim: &PersistentVolumeClaim| json!(claim.spec)["resources"]["requests"]["storage"].clone();
        all.iter().map(size).collect::<Vec<_>>()
    };
    let all = async || pods.list(&ListParams::default()).await.unwrap().items;
    let (before, old) = (all().await, sets.get("rc").await.unwrap());
    let first = before[0].status.clone().unwrap().pod_ip.unwrap().parse().unwrap();
    let access = access_of(&client, "volumes").await;
    let writer = writer::Writer::start(access.clone(), first, 100);

    resize("2Gi").await;
    eventually("the StatefulSet is deleted without its pods", async || {
        let set = sets.get("rc").await.unwrap();
        let deleted = set.metadata.deletion_timestamp.is_some();
        (deleted && set.finalizers() == ["orphan"]).then_some(())
    })
    .await;
    // The operator dies before it can make the new one.
    operator.signal("KILL");
    operator.ended(Duration::from_secs(15));
    node.turn().await;
    assert_eq!(sets.get_opt("rc").await.unwrap().map(|set| set.name_any()), None);
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let new = eventually("the StatefulSet is another", async || {
        node.turn().await;
        let status = clusters.get("rc").await.unwrap().status.unwrap();
        assert_eq!(status.nodes.len(), 6, "a pod is not seen: {status:?}");
        sets.get_opt("rc").await.unwrap().filter(|set| set.uid() != old.uid())
    })
    .await;
    assert_eq!(asked().await, vec![json!("2Gi"); 6]);
    let template =
        json!(new.spec)["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"].clone();
    assert_eq!(template, "2Gi");
    assert_eq!(json!(new.spec)["template"], json!(old.spec)["template"]);
    eventually("Kubernetes is waited for", async || {
        node.turn().await;
        let (is_true, reason, message) = condition("UpdatePending").await?;
        (is_true && reason == "VolumesGrowing" && message.starts_with("0 of 6 volumes")).then_some(())
    })
    .await;
    assert!(!condition("Ready").await.unwrap().0 && condition("Available").await.unwrap().0);
    for ordinal in 0..6 {
        bind(&format!("data-rc-{ordinal}"), "2Gi").await;
    }
    settled(&clusters, &mut node, 3).await;
    assert_eq!(condition("UpdatePending").await.unwrap().1, "UpToDate");
    let after = all().await;
    let uids = |pods: &[Pod]| pods.iter().map(|pod| pod.uid().unwrap()).collect::<BTreeSet<_>>();
    assert_eq!(uids(&before), uids(&after), "no pod was replaced");
    assert!(
        after.iter().all(|pod| Some(&pod.owner_references()[0].uid) == new.uid().as_ref()),
        "all are adopted"
    );

    class(false).await;
    resize("3Gi").await;
    let message = eventually("the condition names the class", async || {
        node.turn().await;
        let (is_true, reason, message) = condition("Degraded").await?;
        (is_true && reason == "VolumesNotResized").then_some(message)
    })
    .await;
    assert!(message.starts_with("volumes of StorageClass `grows` cannot grow (claim data-rc-"), "{message}");
    assert_eq!(condition("UpdatePending").await.unwrap().1, "VolumesNotResized");
    assert_eq!(asked().await, vec![json!("2Gi"); 6]);
    class(true).await;
    eventually("they grow once they may", async || {
        node.turn().await;
        (asked().await == vec![json!("3Gi"); 6]).then_some(())
    })
    .await;
    let written = writer.stop().await;
    let lost = written.lost(&access, first).await;
    assert_eq!((lost, written.errors), (vec![], Default::default()));
}
