//! The program against a real kube-apiserver, with real etcd members as processes: clusters form, grow and shrink while a client
//! writes, heal, go from 3.5 to 3.6, and come back from a snapshot.
//!
//! Where the programs are missing (`make cluster` and `tests/cluster/build` build them), these tests are listed as not run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "some tests print their figures")]

#[path = "../../../../tests/support/etcd.rs"]
mod etcd;
mod members;
mod settled;
#[path = "../../../support/mod.rs"]
mod support;
mod writer;

use std::{
    collections::BTreeSet,
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::api::{batch::v1::CronJob, core::v1::Pod, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use libtest_mimic::Arguments;
use serde_json::{Value, json};

use self::{
    members::{Members, ask},
    settled::Settled,
    support::{Cluster, Replica, Seeded, Suite, eventually, object, within},
    writer::Writer,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_etcd-operator");
/// What the operator writes.
const WRITTEN: [&str; 6] = ["etcdclusters", "pods", "services", "events", "poddisruptionbudgets", "cronjobs"];

fn main() {
    let suite = Suite::new(PROGRAM, || read("install/crd.yaml")).needing(&members::needed());
    let trials = vec![
        suite.trial("a_cluster_of_one_and_one_of_three_form", form),
        suite.trial("scaling_to_five_and_back_loses_no_acknowledged_write", scaled_under_writes),
        suite.trial("a_deleted_member_pod_is_replaced_and_has_the_data", replaced),
        suite.trial("without_a_quorum_nothing_is_done_and_the_user_is_told", quorum_lost),
        suite.trial("from_3_5_to_3_6_one_member_at_a_time", upgraded),
        suite.trial("a_snapshot_is_restored_into_another_cluster", restored),
        suite.trial("killed_at_any_moment_it_converges", killed),
        suite.trial("wrong_values_are_refused_with_the_name_of_the_field", wrong_values),
        suite.alone("two_installations_do_not_fight", two_installations),
        suite.trial("what_is_not_its_own_is_left_alone", name_taken),
        suite.alone("a_hundred_settled_clusters_are_not_written_to", hundred),
    ];
    drop(suite);
    support::parts::run(&Arguments::from_args(), trials).exit();
}

/// A file of this release.
fn read(file: &str) -> String {
    let path = format!("{}/deploy/{}/{file}", env!("CARGO_MANIFEST_DIR"), env!("CARGO_PKG_VERSION"));
    fs::read_to_string(&path).unwrap()
}

/// EtcdClusters, as a user without the types sees them.
fn clusters(cluster: &Cluster, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("etcd.example.com", "v1", "EtcdCluster");
    Api::namespaced_with(cluster.client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

async fn create(cluster: &Cluster, namespace: &str, name: &str, spec: Value) -> Result<(), kube::Error> {
    let wanted = json!({
        "apiVersion": "etcd.example.com/v1", "kind": "EtcdCluster", "metadata": {"name": name}, "spec": spec,
    });
    clusters(cluster, namespace).create(&PostParams::default(), &object(wanted)).await.map(drop)
}

async fn change(cluster: &Cluster, namespace: &str, name: &str, spec: Value) -> Result<(), kube::Error> {
    let patch = Patch::Merge(json!({"spec": spec}));
    clusters(cluster, namespace).patch(name, &PatchParams::default(), &patch).await.map(drop)
}

/// A namespace in which the operator has the rights that its manifests give, and its pods run.
async fn namespace(cluster: &Cluster, name: &str) -> Arc<Members> {
    cluster.namespace(name, &read("install/rbac.yaml")).await;
    Arc::new(Members::start(cluster, name))
}

fn operator(cluster: &Cluster, place: &str) -> Replica {
    cluster.operator(&[
        ("POD_NAMESPACE", place),
        ("LEADER_ELECTION", "false"),
        ("RELATED_IMAGE_ETCD_3_5", "etcd:3.5"),
        ("RELATED_IMAGE_ETCD_3_6", "etcd:3.6"),
    ])
}

async fn status(cluster: &Cluster, namespace: &str, name: &str) -> Value {
    clusters(cluster, namespace).get(name).await.unwrap().data["status"].take()
}

fn condition(status: &Value, type_: &str) -> Value {
    let all = status["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|one| one["type"] == type_).cloned().unwrap_or_default()
}

/// Waits until a cluster is as wanted with so many members of this version, and returns their names.
async fn settled(cluster: &Cluster, place: &str, name: &str, size: usize, minor: &str) -> Vec<String> {
    let what = format!("{name} has {size} members of {minor}");
    let asked = eventually(&what, async || {
        let status = status(cluster, place, name).await;
        let members: Vec<String> = serde_json::from_value(status["members"].clone()).unwrap_or_default();
        let version = status["version"].as_str().unwrap_or_default().starts_with(minor);
        let done = condition(&status, "Available")["status"] == "True"
            && condition(&status, "Progressing")["status"] == "False"
            && condition(&status, "Degraded")["status"] == "False";
        (members.len() == size && version && done).then_some(members)
    });
    asked.await
}

async fn pod_names(cluster: &Cluster, place: &str) -> Vec<String> {
    let pods: Api<Pod> = cluster.api(place);
    let mut names: Vec<String> =
        pods.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
    names.sort();
    names
}

async fn form(cluster: Cluster) {
    let place = "form";
    let members = namespace(&cluster, place).await;
    let _operator = operator(&cluster, place);
    create(&cluster, place, "one", json!({"size": 1, "version": "3.5"})).await.unwrap();
    create(&cluster, place, "three", json!({"size": 3, "version": "3.6"})).await.unwrap();
    assert_eq!(settled(&cluster, place, "one", 1, "3.5.").await, ["one-0"]);
    assert_eq!(settled(&cluster, place, "three", 3, "3.6.").await, ["three-0", "three-1", "three-2"]);
    assert_eq!(pod_names(&cluster, place).await, ["one-0", "three-0", "three-1", "three-2"]);
    // etcd itself says the same: three members with a vote.
    let address = &members.addresses("three")[0];
    let list = ask(address, "cluster/member/list", &json!({"linearizable": true})).unwrap();
    let voters = list["members"].as_array().unwrap().iter().filter(|member| member["isLearner"] != true);
    assert_eq!(voters.count(), 3);
    let events: Api<Event> = cluster.api(place);
    let events = events.list(&ListParams::default()).await.unwrap();
    let reasons: BTreeSet<String> = events.iter().filter_map(|one| one.reason.clone()).collect();
    for reason in ["Bootstrapping", "AddingMember", "QuorumAnswers"] {
        assert!(reasons.contains(reason), "no Event {reason}: {reasons:?}");
    }
    // What a cluster owns goes with it.
    clusters(&cluster, place).delete("three", &DeleteParams::default()).await.unwrap();
    eventually("the pods of the deleted cluster are gone", async || {
        (pod_names(&cluster, place).await == ["one-0"]).then_some(())
    })
    .await;
}

async fn scaled_under_writes(cluster: Cluster) {
    let place = "scaled";
    let members = namespace(&cluster, place).await;
    let _operator = operator(&cluster, place);
    create(&cluster, place, "e", json!({"size": 3, "version": "3.6"})).await.unwrap();
    settled(&cluster, place, "e", 3, "3.6.").await;
    let writer = Writer::start(&members, "e");
    let started = Instant::now();
    for size in [5, 3] {
        change(&cluster, place, "e", json!({"size": size})).await.unwrap();
        settled(&cluster, place, "e", size, "3.6.").await;
    }
    assert_eq!(pod_names(&cluster, place).await.len(), 3);
    let written = writer.stop();
    let (lost, count, pause) = (written.lost(&members, "e"), written.count(), written.longest_pause);
    eprintln!(
        "3 to 5 to 3 in {:.1?}: {lost} of {count} writes lost, longest pause {pause:.1?}",
        started.elapsed()
    );
    assert!(lost == 0 && count > 20, "{lost} of {count} acknowledged writes are lost");
}

async fn replaced(cluster: Cluster) {
    let place = "replaced";
    let members = namespace(&cluster, place).await;
    let _operator = operator(&cluster, place);
    create(&cluster, place, "e", json!({"size": 3, "version": "3.5"})).await.unwrap();
    settled(&cluster, place, "e", 3, "3.5.").await;
    let writer = Writer::start(&members, "e");
    let ids = |address: &str| -> BTreeSet<String> {
        let list = ask(address, "cluster/member/list", &json!({})).unwrap();
        let all = list["members"].as_array().unwrap().iter();
        all.map(|member| member["ID"].as_str().unwrap().to_owned()).collect()
    };
    let before = ids(&members.addresses("e")[0]);
    let pods: Api<Pod> = cluster.api(place);
    let uid = pods.get("e-1").await.unwrap().uid();
    pods.delete("e-1", &DeleteParams::default()).await.unwrap();
    eventually("another pod has the place of the deleted one", async || {
        pods.get_opt("e-1").await.unwrap().filter(|pod| pod.uid() != uid)
    })
    .await;
    settled(&cluster, place, "e", 3, "3.5.").await;
    let after = ids(&members.addresses("e")[0]);
    assert_eq!(after.intersection(&before).count(), 2, "one member is another one: {before:?}, {after:?}");
    // A process that ends by itself is no lost member: its pod starts it again with its data.
    members.kill("e-2");
    settled(&cluster, place, "e", 3, "3.5.").await;
    let written = writer.stop();
    assert_eq!(written.lost(&members, "e"), 0);
    assert_eq!(ids(&members.addresses("e")[0]), after);
}

async fn quorum_lost(cluster: Cluster) {
    let place = "lost";
    let _members = namespace(&cluster, place).await;
    let _operator = operator(&cluster, place);
    create(&cluster, place, "e", json!({"size": 3, "version": "3.5"})).await.unwrap();
    settled(&cluster, place, "e", 3, "3.5.").await;
    let pods: Api<Pod> = cluster.api(place);
    for name in ["e-0", "e-1"] {
        pods.delete(name, &DeleteParams::default()).await.unwrap();
    }
    let degraded = eventually("the user is told", async || {
        let degraded = condition(&status(&cluster, place, "e").await, "Degraded");
        (degraded["reason"] == "QuorumLost").then_some(degraded)
    })
    .await;
    let message = degraded["message"].as_str().unwrap();
    assert!(
        message.starts_with("no quorum of members answers, so nothing is changed: 1 of 1 pods answer"),
        "{message}"
    );
    assert_eq!(condition(&status(&cluster, place, "e").await, "Available")["status"], "False");
    pods.delete("e-2", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(8)).await;
    // No new, empty cluster takes the name of the lost one.
    assert_eq!(pod_names(&cluster, place).await, [""; 0]);
    assert_eq!(condition(&status(&cluster, place, "e").await, "Degraded")["reason"], "QuorumLost");
}

async fn upgraded(cluster: Cluster) {
    let place = "upgraded";
    let members = namespace(&cluster, place).await;
    let _operator = operator(&cluster, place);
    create(&cluster, place, "e", json!({"size": 3, "version": "3.5"})).await.unwrap();
    let before = settled(&cluster, place, "e", 3, "3.5.").await;
    let pods: Api<Pod> = cluster.api(place);
    let uids = async || -> BTreeSet<Option<String>> {
        pods.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::uid).collect()
    };
    let pods_before = uids().await;
    let writer = Writer::start(&members, "e");
    change(&cluster, place, "e", json!({"version": "3.6"})).await.unwrap();
    assert_eq!(settled(&cluster, place, "e", 3, "3.6.").await, before);
    assert_eq!(uids().await, pods_before, "the pods stay, and with them the data");
    for address in members.addresses("e") {
        let status = ask(&address, "maintenance/status", &json!({})).unwrap();
        assert!(status["version"].as_str().unwrap().starts_with("3.6."), "{status}");
    }
    let written = writer.stop();
    let (lost, count, pause) = (written.lost(&members, "e"), written.count(), written.longest_pause);
    eprintln!("3.5 to 3.6: {lost} of {count} writes lost, longest pause {pause:.1?}");
    assert!(lost == 0 && count > 20, "{lost} of {count} acknowledged writes are lost");
    let said = change(&cluster, place, "e", json!({"version": "3.5"})).await.unwrap_err().to_string();
    assert!(said.contains("etcd cannot be downgraded"), "{said}");
}

async fn restored(cluster: Cluster) {
    let place = "restored";
    let members = namespace(&cluster, place).await;
    let _operator = operator(&cluster, place);
    let backup = json!({"claimName": "snapshots", "schedule": "0 3 * * *"});
    create(&cluster, place, "e", json!({"size": 1, "version": "3.6", "backup": backup})).await.unwrap();
    settled(&cluster, place, "e", 1, "3.6.").await;
    // `a` and `b`, in base64.
    let put = |cluster: &str, key: &str| {
        let body = json!({"key": key, "value": key});
        ask(&members.addresses(cluster)[0], "kv/put", &body).unwrap();
    };
    let has = |cluster: &str, key: &str| {
        let answer = ask(&members.addresses(cluster)[0], "kv/range", &json!({"key": key})).unwrap();
        answer["kvs"][0]["value"] == key
    };
    put("e", "YQ==");
    let cronjobs: Api<CronJob> = cluster.api(place);
    let cronjob = serde_json::to_value(cronjobs.get("e-backup").await.unwrap()).unwrap();
    members.job(&cronjob, "first");
    put("e", "Yg==");
    let restore = json!({"claimName": "snapshots", "snapshot": "first.db"});
    create(&cluster, place, "again", json!({"size": 3, "version": "3.6", "restore": restore})).await.unwrap();
    settled(&cluster, place, "again", 3, "3.6.").await;
    assert!(has("again", "YQ=="), "what the snapshot has");
    assert!(!has("again", "Yg=="), "what came after it");
    let said = change(&cluster, place, "again", json!({"restore": null})).await.unwrap_err().to_string();
    assert!(said.contains("restore is read only when the cluster is created"), "{said}");
    // Without the field, the CronJob is deleted; an invalid schedule is named in the condition.
    change(&cluster, place, "e", json!({"backup": null})).await.unwrap();
    eventually("the CronJob is gone", async || {
        cronjobs.get_opt("e-backup").await.unwrap().is_none().then_some(())
    })
    .await;
    let backup = json!({"claimName": "snapshots", "schedule": "daily"});
    change(&cluster, place, "e", json!({"backup": backup})).await.unwrap();
    let degraded = eventually("the user is told", async || {
        let degraded = condition(&status(&cluster, place, "e").await, "Degraded");
        (degraded["status"] == "True").then_some(degraded)
    })
    .await;
    assert_eq!(degraded["reason"], "Refused");
    assert!(degraded["message"].as_str().unwrap().contains("spec.schedule"), "{degraded}");
}

/// It is killed while it forms, grows, shrinks, replaces and upgrades, and what is left undone the next process does.
async fn killed(cluster: Cluster) {
    let place = "killed";
    let members = namespace(&cluster, place).await;
    let mut random = Seeded(23);
    let pods: Api<Pod> = cluster.api(place);
    create(&cluster, place, "e", json!({"size": 3, "version": "3.5"})).await.unwrap();
    let mut writer = None;
    for round in 0..14 {
        let operator = operator(&cluster, place);
        match round {
            5 => {
                drop(operator);
                let operator = self::operator(&cluster, place);
                settled(&cluster, place, "e", 3, "3.5.").await;
                operator.signal("KILL");
                writer = Some(Writer::start(&members, "e"));
                change(&cluster, place, "e", json!({"size": 5})).await.unwrap();
                continue;
            }
            8 => change(&cluster, place, "e", json!({"size": 3, "version": "3.6"})).await.unwrap(),
            11 => {
                settled(&cluster, place, "e", 3, "3.6.").await;
                let name = pod_names(&cluster, place).await.swap_remove(1);
                pods.delete(&name, &DeleteParams::default()).await.unwrap();
            }
            _ => {}
        }
        tokio::time::sleep(Duration::from_millis(200 + random.below(3000))).await;
        operator.signal("KILL");
    }
    let _operator = operator(&cluster, place);
    settled(&cluster, place, "e", 3, "3.6.").await;
    assert_eq!(pod_names(&cluster, place).await.len(), 3);
    let written = writer.unwrap().stop();
    let (lost, count) = (written.lost(&members, "e"), written.count());
    assert!(lost == 0 && count > 20, "{lost} of {count} acknowledged writes are lost");
}

async fn wrong_values(cluster: Cluster) {
    let _members = namespace(&cluster, "wrong").await;
    let with = |size: i32, more: Value| {
        let mut spec = json!({"size": size, "version": "3.5"});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let snapshot = |name: &str| with(1, json!({"restore": {"claimName": "c", "snapshot": name}}));
    for (name, spec, expected) in [
        ("e", json!({"version": "3.5"}), "spec.size: Required value"),
        ("e", json!({"size": 3}), "spec.version: Required value"),
        ("e", with(0, json!({})), "spec.size in body should be greater than or equal to 1"),
        ("e", with(9, json!({})), "spec.size in body should be less than or equal to 7"),
        ("e", with(4, json!({})), "size must be odd: 1, 3, 5 or 7"),
        ("e", json!({"size": 3, "version": "3.4"}), "supported values: \"3.5\", \"3.6\""),
        ("e", with(1, json!({"backup": {"claimName": "c"}})), "spec.backup.schedule: Required value"),
        ("e", snapshot("../other"), "spec.restore.snapshot in body should match"),
        ("e", snapshot(""), "spec.restore.snapshot in body should be at least 1 chars long"),
        ("e.f", with(1, json!({})), "metadata.name must be a DNS label of at most 40 characters"),
        ("3", with(1, json!({})), "metadata.name must be a DNS label of at most 40 characters"),
        (&"e".repeat(41), with(1, json!({})), "metadata.name must be a DNS label of at most 40 characters"),
    ] {
        let said = create(&cluster, "wrong", name, spec.clone()).await.unwrap_err().to_string();
        assert!(said.contains(expected), "{name} {spec}: {said}");
    }
}

/// Waits for three seconds in which nobody writes.
async fn quiet(cluster: &Cluster) {
    within(Duration::from_secs(180), "nothing is written for three seconds", async || {
        let before = cluster.writes(&WRITTEN).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        (cluster.writes(&WRITTEN).await == before).then_some(())
    })
    .await;
}

async fn two_installations(cluster: Cluster) {
    let members = namespace(&cluster, "shared").await;
    for name in ["install-a", "install-b"] {
        cluster.namespace(name, &read("install/rbac.yaml")).await;
    }
    let start = |installation, image| {
        cluster.operator(&[
            ("POD_NAMESPACE", installation),
            ("WATCH_NAMESPACE", "shared"),
            ("RELATED_IMAGE_ETCD_3_5", image),
        ])
    };
    let (a, b) = (start("install-a", "a:3.5"), start("install-b", "b:3.5"));
    for number in 0..4 {
        create(&cluster, "shared", &format!("e{number}"), json!({"size": 1, "version": "3.5"}))
            .await
            .unwrap();
    }
    for number in 0..4 {
        settled(&cluster, "shared", &format!("e{number}"), 1, "3.5.").await;
    }
    quiet(&cluster).await;
    let pods: Api<Pod> = cluster.api("shared");
    for number in 0..4 {
        let found = clusters(&cluster, "shared").get(&format!("e{number}")).await.unwrap();
        let manager = &found.annotations()["etcd.example.com/operated-by"];
        let pod = serde_json::to_value(pods.get(&format!("e{number}-0")).await.unwrap()).unwrap();
        let image = pod["spec"]["containers"][0]["image"].as_str().unwrap();
        assert_eq!(format!("install-{}", image.trim_end_matches(":3.5")), *manager);
    }
    assert!(a.log().contains("another installation") || b.log().contains("another installation"));
    drop(members);
}

async fn name_taken(cluster: Cluster) {
    let place = "taken";
    let _members = namespace(&cluster, place).await;
    let theirs = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "e", "namespace": place},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "theirs"}},
    });
    cluster.apply_object(&theirs).await.unwrap();
    let _operator = operator(&cluster, place);
    create(&cluster, place, "e", json!({"size": 1, "version": "3.5"})).await.unwrap();
    let degraded = eventually("the user is told", async || {
        let degraded = condition(&status(&cluster, place, "e").await, "Degraded");
        (degraded["status"] == "True").then_some(degraded)
    })
    .await;
    assert_eq!(degraded["reason"], "NameTaken");
    assert_eq!(
        degraded["message"],
        "Service e exists and is not controlled by this EtcdCluster: rename or delete it"
    );
    assert_eq!(pod_names(&cluster, place).await, [""; 0]);
    let services: Api<k8s_openapi::api::core::v1::Service> = cluster.api(place);
    services.delete("e", &DeleteParams::default()).await.unwrap();
    settled(&cluster, place, "e", 1, "3.5.").await;
}

async fn hundred(cluster: Cluster) {
    let place = "hundred";
    cluster.namespace(place, &read("install/rbac.yaml")).await;
    let _members = Settled::start(&cluster, place);
    let operator = operator(&cluster, place);
    for number in 0..100 {
        let name = format!("e{number}");
        create(&cluster, place, &name, json!({"size": 1, "version": "3.6"})).await.unwrap();
    }
    for number in 0..100 {
        settled(&cluster, place, &format!("e{number}"), 1, "3.6.").await;
    }
    quiet(&cluster).await;
    let before = cluster.writes(&WRITTEN).await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(cluster.writes(&WRITTEN).await - before, 0, "{}", operator.log());
    let (resident, own) = operator.memory();
    eprintln!(
        "100 EtcdClusters: {resident} KiB resident, {own} KiB of them not the program's file; 0 writes in 8 s"
    );
    assert!(own < 15 * 1024, "{own} KiB");
}
