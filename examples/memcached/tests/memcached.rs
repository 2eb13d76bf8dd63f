//! The program against a real kube-apiserver with Kubernetes' own controllers: what it creates, what it changes back, what it
//! leaves alone, and what a hundred Memcacheds cost.
//!
//! Where the programs are missing (`make cluster` builds them), these tests are listed as not run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "one test prints its figures")]

#[path = "../../support/mod.rs"]
mod support;

use std::{fs, process::Command, time::Duration};

use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease, core::v1::Pod, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use libtest_mimic::{Arguments, Trial};
use serde_json::{Value, json};

use self::support::{Cluster, Kubelet, Seeded, Suite, eventually, object, within};

const PROGRAM: &str = env!("CARGO_BIN_EXE_memcached-operator");
/// What the operator writes.
const WRITTEN: [&str; 4] = ["memcacheds", "deployments", "events", "pods"];

fn main() {
    let suite = Suite::new(PROGRAM, || read("install/crd.yaml"));
    let trials = vec![
        suite.trial("a_memcached_becomes_a_deployment_and_names_its_pods", life),
        suite.trial("wrong_values_are_refused_with_the_name_of_the_field", wrong_values),
        suite.alone("what_users_change_is_changed_back_and_what_they_add_stays", changed_back),
        suite.trial("a_deployment_of_the_same_name_is_left_alone", name_taken),
        suite.alone("two_installations_do_not_fight", two_installations),
        suite.trial("killed_at_any_moment_it_converges", killed),
        suite.trial("it_watches_the_namespaces_that_it_is_told", namespaces),
        suite.trial("asked_to_end_it_gives_the_lease_back", ended),
        suite.alone("a_hundred_settled_memcacheds_are_not_written_to", hundred),
        Trial::test("what_it_cannot_start_with_is_named", || {
            cannot_start();
            Ok(())
        }),
    ];
    drop(suite);
    support::parts::run(&Arguments::from_args(), trials).exit();
}

/// A file of this release.
fn read(file: &str) -> String {
    let path = format!("{}/deploy/{}/{file}", env!("CARGO_MANIFEST_DIR"), env!("CARGO_PKG_VERSION"));
    fs::read_to_string(&path).unwrap()
}

/// Memcacheds, as a user without the types sees them.
fn memcacheds(cluster: &Cluster, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("cache.example.com", "v1alpha1", "Memcached");
    Api::namespaced_with(cluster.client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

async fn create(cluster: &Cluster, namespace: &str, name: &str, spec: Value) -> Result<(), kube::Error> {
    let memcached = json!({
        "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": name}, "spec": spec,
    });
    memcacheds(cluster, namespace).create(&PostParams::default(), &object(memcached)).await.map(drop)
}

async fn resize(cluster: &Cluster, namespace: &str, name: &str, size: u64) {
    let patch = Patch::Merge(json!({"spec": {"size": size}}));
    memcacheds(cluster, namespace).patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// A namespace in which the operator has the rights that its manifests give.
async fn namespace(cluster: &Cluster, name: &str) {
    cluster.namespace(name, &read("install/rbac.yaml")).await;
}

/// Waits until a Memcached is Available with so many pods, and returns its status.
async fn available(cluster: &Cluster, namespace: &str, name: &str, size: usize) -> Value {
    let mut last = Value::Null;
    let what = format!("{name} has {size} pods");
    let asked = eventually(&what, async || {
        last = memcacheds(cluster, namespace).get(name).await.unwrap().data["status"].take();
        let nodes = last["nodes"].as_array().map_or(0, Vec::len);
        (nodes == size && condition(&last, "Available")["status"] == "True").then(|| last.clone())
    });
    asked.await
}

fn condition(status: &Value, type_: &str) -> Value {
    let all = status["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|one| one["type"] == type_).cloned().unwrap_or_default()
}

async fn reasons(cluster: &Cluster, namespace: &str) -> Vec<String> {
    let events: Api<Event> = cluster.api(namespace);
    let events = events.list(&ListParams::default()).await.unwrap();
    let ours = events.iter().filter(|one| one.reporting_controller.as_deref() == Some("memcached-operator"));
    ours.filter_map(|one| one.reason.clone()).collect()
}

async fn life(cluster: Cluster) {
    let place = "life";
    namespace(&cluster, place).await;
    let _kubelet = Kubelet::running(&cluster, place);
    let _operator = cluster.operator(&[("POD_NAMESPACE", place)]);
    create(&cluster, place, "sample", json!({"size": 3})).await.unwrap();
    let pods: Api<Pod> = cluster.api(place);
    for size in [3, 5, 1] {
        resize(&cluster, place, "sample", size).await;
        let size = usize::try_from(size).unwrap();
        let status = available(&cluster, place, "sample", size).await;
        assert_eq!(status["readyNodes"], size);
        assert_eq!(condition(&status, "Degraded")["status"], "False");
        let named: Vec<String> = serde_json::from_value(status["nodes"].clone()).unwrap();
        let mut there: Vec<String> =
            pods.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
        there.sort();
        assert_eq!(named, there);
    }
    // A pod that is lost is replaced, and the status follows.
    let lost = pods.list(&ListParams::default()).await.unwrap().items[0].name_any();
    pods.delete(&lost, &DeleteParams::default()).await.unwrap();
    eventually("the new pod is named", async || {
        let status = memcacheds(&cluster, place).get("sample").await.unwrap().data["status"].take();
        let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
        (nodes.len() == 1 && nodes[0] != *lost && condition(&status, "Available")["status"] == "True")
            .then_some(())
    })
    .await;
    let reasons = reasons(&cluster, place).await;
    for reason in ["Created", "Updated", "PodsReady", "WaitingForPods"] {
        assert!(reasons.iter().any(|one| one == reason), "no Event {reason}: {reasons:?}");
    }
    // `kubectl scale` works on it.
    let scaled = Patch::Merge(json!({"spec": {"replicas": 2}}));
    memcacheds(&cluster, place).patch_scale("sample", &PatchParams::default(), &scaled).await.unwrap();
    available(&cluster, place, "sample", 2).await;

    memcacheds(&cluster, place).delete("sample", &DeleteParams::default()).await.unwrap();
    let deployments: Api<Deployment> = cluster.api(place);
    eventually("what the Memcached owned is gone", async || {
        let deployments = deployments.list(&ListParams::default()).await.unwrap().items.len();
        let pods = pods.list(&ListParams::default()).await.unwrap().items.len();
        (deployments + pods == 0).then_some(())
    })
    .await;
}

async fn wrong_values(cluster: Cluster) {
    namespace(&cluster, "wrong").await;
    for (name, spec, expected) in [
        ("m", json!({}), "spec.size: Required value"),
        ("m", json!({"size": 0}), "spec.size in body should be greater than or equal to 1"),
        ("m", json!({"size": 6}), "spec.size in body should be less than or equal to 5"),
        ("m", json!({"size": "three"}), "spec.size in body must be of type integer"),
        (&"m".repeat(64), json!({"size": 1}), "metadata.name must have at most 63 characters"),
    ] {
        let said = create(&cluster, "wrong", name, spec.clone()).await.unwrap_err().to_string();
        assert!(said.contains(expected), "{spec}: {said}");
    }
}

async fn changed_back(cluster: Cluster) {
    let place = "changed";
    namespace(&cluster, place).await;
    let _kubelet = Kubelet::running(&cluster, place);
    let _operator = cluster.operator(&[("POD_NAMESPACE", place)]);
    create(&cluster, place, "m", json!({"size": 2})).await.unwrap();
    available(&cluster, place, "m", 2).await;
    let deployments: Api<Deployment> = cluster.api(place);
    let get = async || serde_json::to_value(deployments.get("m").await.unwrap()).unwrap();
    let image = get().await["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    let patch = async |patch: Value| {
        deployments.patch("m", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    };
    let template = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    for change in [
        json!({"spec": {"replicas": 4}}),
        template(json!({"containers": [{"name": "memcached", "image": "other"}]})),
    ] {
        patch(change.clone()).await;
        eventually(&format!("{change} is changed back"), async || {
            let now = get().await;
            let back = now["spec"]["replicas"] == 2
                && now["spec"]["template"]["spec"]["containers"][0]["image"] == image;
            back.then_some(())
        })
        .await;
    }
    deployments.delete("m", &DeleteParams::default()).await.unwrap();
    eventually("the Deployment is there again", async || deployments.get_opt("m").await.unwrap()).await;
    available(&cluster, place, "m", 2).await;

    // What others add stays, and nobody fights over it.
    patch(template(json!({"containers": [{"name": "exporter", "image": "exporter:1"}]}))).await;
    patch(json!({"metadata": {"labels": {"team": "a"}}})).await;
    available(&cluster, place, "m", 2).await;
    settled(&cluster, &WRITTEN).await;
    let now = get().await;
    assert_eq!(now["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 2);
    assert_eq!(now["metadata"]["labels"]["team"], "a");
}

/// Waits for three seconds in which nobody writes.
async fn settled(cluster: &Cluster, resources: &[&str]) {
    within(Duration::from_secs(90), "nothing is written for three seconds", async || {
        let before = cluster.writes(resources).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        (cluster.writes(resources).await == before).then_some(())
    })
    .await;
}

async fn name_taken(cluster: Cluster) {
    let place = "taken";
    namespace(&cluster, place).await;
    let labels = json!({"app": "theirs"});
    let theirs = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m", "namespace": place},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
        },
    });
    cluster.apply_object(&theirs).await.unwrap();
    let _kubelet = Kubelet::running(&cluster, place);
    let _operator = cluster.operator(&[("POD_NAMESPACE", place)]);
    create(&cluster, place, "m", json!({"size": 1})).await.unwrap();
    let degraded = eventually("the user is told", async || {
        let status = memcacheds(&cluster, place).get("m").await.unwrap().data["status"].take();
        Some(condition(&status, "Degraded")).filter(|one| one["status"] == "True")
    })
    .await;
    assert_eq!(degraded["reason"], "NameTaken");
    assert_eq!(
        degraded["message"],
        "Deployment m exists and is not controlled by this Memcached: rename or delete it"
    );
    let deployments: Api<Deployment> = cluster.api(place);
    let found = deployments.get("m").await.unwrap();
    assert_eq!((found.labels().len(), found.owner_references().len()), (0, 0));
    // The user follows the advice. Nobody tells the operator of a Deployment that is not its own, so a retry has to see it.
    deployments.delete("m", &DeleteParams::default()).await.unwrap();
    available(&cluster, place, "m", 1).await;
}

async fn two_installations(cluster: Cluster) {
    for name in ["shared", "install-a", "install-b"] {
        namespace(&cluster, name).await;
    }
    let _kubelet = Kubelet::running(&cluster, "shared");
    let start = |installation, image| {
        let environment = [
            ("POD_NAMESPACE", installation),
            ("WATCH_NAMESPACE", "shared"),
            ("RELATED_IMAGE_MEMCACHED", image),
        ];
        cluster.operator(&environment)
    };
    let (a, b) = (start("install-a", "memcached:a"), start("install-b", "memcached:b"));
    for number in 0..5 {
        create(&cluster, "shared", &format!("m-{number}"), json!({"size": 1})).await.unwrap();
    }
    for number in 0..5 {
        available(&cluster, "shared", &format!("m-{number}"), 1).await;
    }
    settled(&cluster, &WRITTEN).await;
    let deployments: Api<Deployment> = cluster.api("shared");
    let mut images = vec![];
    for number in 0..5 {
        let name = format!("m-{number}");
        let memcached = memcacheds(&cluster, "shared").get(&name).await.unwrap();
        let manager = memcached.annotations()["cache.example.com/operated-by"].clone();
        let found = serde_json::to_value(deployments.get(&name).await.unwrap()).unwrap();
        let image = found["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
        assert_eq!(image.replace("memcached:", "install-"), manager, "{name}");
        // It was written once: a Deployment that two change has a second generation.
        assert_eq!(found["metadata"]["generation"], 1, "{name}");
        images.push(image);
    }
    assert!(
        a.log().contains("another installation") || b.log().contains("another installation"),
        "{images:?}"
    );
}

/// It is killed while it creates, scales and deletes, and what is left undone the next process does.
async fn killed(cluster: Cluster) {
    let place = "killed";
    namespace(&cluster, place).await;
    let _kubelet = Kubelet::running(&cluster, place);
    let mut random = Seeded(23);
    let mut sizes = [0; 4];
    for _ in 0..12 {
        let operator = cluster.operator(&[("POD_NAMESPACE", place), ("LEADER_ELECTION", "false")]);
        for (number, size) in sizes.iter_mut().enumerate() {
            let (name, before) = (format!("m-{number}"), *size);
            *size = random.below(6);
            match (before, *size) {
                (0, 0) => {}
                (0, size) => create(&cluster, place, &name, json!({"size": size})).await.unwrap(),
                (_, 0) => {
                    drop(memcacheds(&cluster, place).delete(&name, &DeleteParams::default()).await.unwrap())
                }
                (_, size) => resize(&cluster, place, &name, size).await,
            }
        }
        tokio::time::sleep(Duration::from_millis(random.below(400))).await;
        operator.signal("KILL");
    }
    let _operator = cluster.operator(&[("POD_NAMESPACE", place), ("LEADER_ELECTION", "false")]);
    let mut expected = vec![];
    for (number, size) in sizes.into_iter().enumerate().filter(|(_, size)| *size > 0) {
        let name = format!("m-{number}");
        available(&cluster, place, &name, usize::try_from(size).unwrap()).await;
        expected.push(name);
    }
    let deployments: Api<Deployment> = cluster.api(place);
    eventually("there are the Deployments that are wanted, and no others", async || {
        let all = deployments.list(&ListParams::default()).await.unwrap();
        (all.iter().map(ResourceExt::name_any).collect::<Vec<_>>() == expected).then_some(())
    })
    .await;
}

async fn namespaces(cluster: Cluster) {
    let all = ["watch-a", "watch-b", "watch-c"];
    for name in all {
        namespace(&cluster, name).await;
        create(&cluster, name, "m", json!({"size": 1})).await.unwrap();
    }
    // As OLM joins them, and as people do; and the operator's own namespace when none are given.
    for (told, watched) in [(" watch-a ,watch-b,", &all[..2]), ("", &all[2..])] {
        let _operator = cluster.operator(&[("POD_NAMESPACE", "watch-c"), ("WATCH_NAMESPACE", told)]);
        for name in watched {
            let deployments: Api<Deployment> = cluster.api(name);
            eventually(name, async || deployments.get_opt("m").await.unwrap()).await;
        }
        for name in all.iter().filter(|name| !told.is_empty() && !watched.contains(name)) {
            let deployments: Api<Deployment> = cluster.api(name);
            assert!(deployments.get_opt("m").await.unwrap().is_none(), "{name} is not watched");
        }
    }
}

async fn ended(cluster: Cluster) {
    let place = "ended";
    namespace(&cluster, place).await;
    let mut operator = cluster.operator(&[("POD_NAMESPACE", place), ("POD_NAME", "one")]);
    let leases: Api<Lease> = cluster.api(place);
    let holder = async || leases.get_opt("memcached-operator").await.unwrap()?.spec?.holder_identity;
    eventually("it leads", async || holder().await.filter(|holder| holder == "one")).await;
    operator.signal("TERM");
    assert_eq!(operator.ended().code(), Some(0), "{}", operator.log());
    assert_eq!(holder().await.as_deref(), Some(""));
}

async fn hundred(cluster: Cluster) {
    let place = "hundred";
    namespace(&cluster, place).await;
    let _kubelet = Kubelet::running(&cluster, place);
    let operator = cluster.operator(&[("POD_NAMESPACE", place)]);
    for number in 0..100 {
        create(&cluster, place, &format!("m-{number}"), json!({"size": 1})).await.unwrap();
    }
    for number in 0..100 {
        available(&cluster, place, &format!("m-{number}"), 1).await;
    }
    settled(&cluster, &WRITTEN).await;
    let before = cluster.writes(&WRITTEN).await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(cluster.writes(&WRITTEN).await - before, 0, "{}", operator.log());
    let (resident, own) = operator.memory();
    eprintln!(
        "100 Memcacheds: {resident} KiB resident, {own} KiB of them not the program's file; 0 writes in 8 s"
    );
    assert!(own < 15 * 1024, "{own} KiB");
}

fn cannot_start() {
    let dir = tempfile::tempdir().unwrap();
    let broken = dir.path().join("broken");
    fs::write(&broken, "clusters: 3").unwrap();
    let said = |kubeconfig: &str, arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.arg("run").args(arguments).env("KUBECONFIG", kubeconfig).env("HOME", dir.path());
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), stderr)
    };
    let (code, text) = said(broken.to_str().unwrap(), &[]);
    assert_eq!(code, Some(1));
    assert!(text.starts_with("error: no cluster to connect to: set KUBECONFIG, or run in a pod: "), "{text}");
    let (code, text) = said("/none", &["--log", "a=b=c"]);
    assert_eq!(code, Some(1));
    assert!(text.starts_with("error: invalid log filter `a=b=c`: "), "{text}");
    assert_eq!(said("/none", &["--lease-seconds", "1"]).0, Some(2));
    assert_eq!(said("/none", &["--health-address", "here"]).0, Some(2));
}
