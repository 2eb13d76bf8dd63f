//! The program against a real kube-apiserver with Kubernetes' own Job controller: one Job for each Echo, even when an operator is killed.
//!
//! Where the programs are missing (`make cluster` builds them), these tests are listed as not run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "one test prints its figures")]

#[path = "../../support/mod.rs"]
mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use k8s_openapi::api::{batch::v1::Job, coordination::v1::Lease, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use libtest_mimic::Arguments;
use serde_json::{Value, json};

use self::support::{Cluster, Kubelet, Replica, Seeded, Suite, eventually, object, within};

/// What the operator writes.
const WRITTEN: [&str; 3] = ["echoes", "jobs", "events"];

fn main() {
    let manifests = || template("crds/crd.yaml") + "\n---\n" + &template("templates/clusterrole.yaml");
    let suite = Suite::new(env!("CARGO_BIN_EXE_echo-operator"), manifests);
    let trials = vec![
        suite.trial("an_echo_becomes_a_job_that_prints_it_once", life),
        suite.trial("wrong_values_are_refused_with_the_name_of_the_field", wrong_values),
        suite.trial("a_job_of_the_same_name_is_left_alone", name_taken),
        suite.trial("no_two_workers_have_one_echo_at_once", single_flight),
        suite.trial("a_single_replica_asks_for_no_lease", standalone),
        suite.alone("a_restart_at_any_moment_creates_no_second_job", restarts),
        suite.alone("a_leader_that_dies_or_freezes_is_replaced_and_no_job_runs_twice", takeover),
        suite.alone("two_installations_do_not_fight", two_installations),
        suite.alone("a_hundred_settled_echoes_are_not_written_to", hundred),
    ];
    drop(suite);
    support::parts::run(&Arguments::from_args(), trials).exit();
}

/// A file of the chart, as helm renders it. `helm` itself renders it in `tests/machine`.
fn template(file: &str) -> String {
    let text = fs::read_to_string(format!("{}/chart/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("{{-")).map(|line| format!("{line}\n"));
    lines
        .collect::<String>()
        .replace("{{ .Release.Name }}", "echo")
        .replace("{{ .Release.Namespace }}", "echo")
}

fn echoes(cluster: &Cluster, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("echo.example.com", "v1", "Echo");
    let resource = ApiResource::from_gvk_with_plural(&kind, "echoes");
    Api::namespaced_with(cluster.client.clone(), namespace, &resource)
}

async fn create(cluster: &Cluster, namespace: &str, name: &str, spec: Value) -> Result<(), kube::Error> {
    let echo = json!({"apiVersion": "echo.example.com/v1", "kind": "Echo", "metadata": {"name": name}, "spec": spec});
    echoes(cluster, namespace).create(&PostParams::default(), &object(echo)).await.map(drop)
}

async fn hello(cluster: &Cluster, namespace: &str, name: &str) {
    create(cluster, namespace, name, json!({"message": "hello"})).await.unwrap();
}

/// A namespace in which the operator may hold a Lease.
async fn namespace(cluster: &Cluster, name: &str) {
    cluster.namespace(name, &template("templates/role.yaml")).await;
}

/// The operator, which watches this namespace alone: tests share the API server.
fn operator(cluster: &Cluster, namespace: &str, more: &[(&str, &str)]) -> Replica {
    cluster.operator(&[&[("POD_NAMESPACE", namespace), ("WATCH_NAMESPACE", namespace)], more].concat())
}

async fn status(cluster: &Cluster, namespace: &str, name: &str) -> Value {
    echoes(cluster, namespace).get(name).await.unwrap().data["status"].take()
}

fn holds(status: &Value, type_: &str) -> bool {
    let mut all = status["conditions"].as_array().into_iter().flatten();
    all.any(|one| one["type"] == type_ && one["status"] == "True")
}

async fn complete(cluster: &Cluster, namespace: &str, name: &str) {
    let what = format!("{name} is complete");
    eventually(&what, async || holds(&status(cluster, namespace, name).await, "Complete").then_some(()))
        .await;
}

async fn jobs(cluster: &Cluster, namespace: &str) -> Vec<Job> {
    cluster.api(namespace).list(&ListParams::default()).await.unwrap().items
}

/// Every Echo has one Job, which is its own, and each Job one pod; and no more were ever created than there are.
async fn each_has_one_job(cluster: &Cluster, namespace: &str, names: &[String], created_before: u64) {
    let jobs = jobs(cluster, namespace).await;
    let found: BTreeSet<String> = jobs.iter().map(ResourceExt::name_any).collect();
    assert_eq!(found, names.iter().cloned().collect());
    // The answer to a process that is killed meanwhile is not counted.
    let created = cluster.created("jobs").await - created_before;
    assert!(created <= names.len() as u64, "{created}");
    let pods: Api<Pod> = cluster.api(namespace);
    let pods = pods.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(pods.len(), names.len(), "each message is printed by one pod");
}

async fn life(cluster: Cluster) {
    let place = "life";
    namespace(&cluster, place).await;
    let _operator = operator(&cluster, place, &[]);
    create(&cluster, place, "e", json!({"message": "costs $(5)"})).await.unwrap();
    let job = eventually("there is a Job", async || jobs(&cluster, place).await.pop()).await;
    let command = job.spec.unwrap().template.spec.unwrap().containers.remove(0).command;
    assert_eq!(command.unwrap(), ["printf", "%s\\n", "costs $$(5)"]);
    eventually("the status names the Job", async || {
        let status = status(&cluster, place, "e").await;
        (status["job"] == "e" && !holds(&status, "Complete")).then_some(())
    })
    .await;
    let kubelet = Kubelet::finished(&cluster, place);
    complete(&cluster, place, "e").await;
    drop(kubelet);

    // What was printed is not printed again, also when its Job is gone and the operator starts again.
    let api: Api<Job> = cluster.api(place);
    api.delete("e", &DeleteParams::background()).await.unwrap();
    let _again = operator(&cluster, place, &[("LEADER_ELECTION", "false")]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(jobs(&cluster, place).await.len(), 0);

    hello(&cluster, place, "gone").await;
    eventually("there is a Job", async || jobs(&cluster, place).await.pop()).await;
    echoes(&cluster, place).delete("gone", &DeleteParams::default()).await.unwrap();
    eventually("the Job goes with its Echo", async || jobs(&cluster, place).await.is_empty().then_some(()))
        .await;
}

async fn wrong_values(cluster: Cluster) {
    namespace(&cluster, "wrong").await;
    for (name, spec, expected) in [
        ("e", json!({}), "spec.message: Required value"),
        ("e", json!({"message": ""}), "spec.message in body should be at least 1 chars long"),
        ("e", json!({"message": 5}), "spec.message in body must be of type string"),
        ("e", json!({"message": "m".repeat(4097)}), "spec.message: Too long: may not be more than 4096"),
        (&"e".repeat(64), json!({"message": "m"}), "metadata.name must have at most 63 characters"),
    ] {
        let said = create(&cluster, "wrong", name, spec.clone()).await.unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
    hello(&cluster, "wrong", "e").await;
    let patch = Patch::Merge(json!({"spec": {"message": "other"}}));
    let said =
        echoes(&cluster, "wrong").patch("e", &PatchParams::default(), &patch).await.unwrap_err().to_string();
    assert!(
        said.contains("spec.message: Invalid value") && said.contains("message cannot be changed"),
        "{said}"
    );
}

async fn name_taken(cluster: Cluster) {
    let place = "taken";
    namespace(&cluster, place).await;
    let theirs = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "e", "namespace": place},
        "spec": {"suspend": true, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}],
        }}},
    });
    cluster.apply_object(&theirs).await.unwrap();
    let _operator = operator(&cluster, place, &[]);
    let _kubelet = Kubelet::finished(&cluster, place);
    hello(&cluster, place, "e").await;
    let status = eventually("the user is told", async || {
        let status = status(&cluster, place, "e").await;
        holds(&status, "Degraded").then_some(status)
    })
    .await;
    let said = "Job e exists and is not controlled by this Echo: rename or delete it";
    assert_eq!(status["conditions"][1]["message"], said);
    let api: Api<Job> = cluster.api(place);
    assert!(api.get("e").await.unwrap().owner_references().is_empty());
    api.delete("e", &DeleteParams::background()).await.unwrap();
    complete(&cluster, place, "e").await;
}

/// Echoes change while they are worked on: each reconcile tells where it begins and ends.
async fn single_flight(cluster: Cluster) {
    let place = "flight";
    namespace(&cluster, place).await;
    let _kubelet = Kubelet::finished(&cluster, place);
    let replica = operator(&cluster, place, &[("LOG", "info,echo_operator=debug")]);
    let names: Vec<String> = (0..40).map(|number| format!("e-{number}")).collect();
    let annotate = async |name: &str, turn: u32| {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"turn": turn.to_string()}}}));
        echoes(&cluster, place).patch(name, &PatchParams::default(), &patch).await.unwrap();
    };
    for name in &names {
        hello(&cluster, place, name).await;
        for turn in 0..4 {
            annotate(name, turn).await;
        }
    }
    for name in &names {
        complete(&cluster, place, name).await;
    }
    let (mut working, mut most, mut reconciles) = (BTreeSet::new(), 0, 0);
    for line in replica.log().lines().filter(|line| line.contains("\"reconcile ")) {
        let line: Value = serde_json::from_str(line).unwrap();
        let uid = line["uid"].as_str().unwrap().to_owned();
        if line["message"] == "reconcile begins" {
            assert!(working.insert(uid), "an Echo is given to a second worker: {line}");
            reconciles += 1;
        } else {
            assert!(working.remove(&uid), "{line}");
        }
        most = most.max(working.len());
    }
    assert!(reconciles >= 2 * names.len(), "{reconciles}");
    assert!((2..=8).contains(&most), "{most} workers were at work at once");
}

async fn standalone(cluster: Cluster) {
    let place = "single";
    namespace(&cluster, place).await;
    let mut replica = operator(&cluster, place, &[("LEADER_ELECTION", "false")]);
    let _kubelet = Kubelet::finished(&cluster, place);
    hello(&cluster, place, "e").await;
    complete(&cluster, place, "e").await;
    let leases: Api<Lease> = cluster.api(place);
    assert_eq!(leases.list(&ListParams::default()).await.unwrap().items.len(), 0);
    replica.signal("TERM");
    assert_eq!(replica.ended().code(), Some(0), "{}", replica.log());
}

async fn restarts(cluster: Cluster) {
    let place = "restarts";
    namespace(&cluster, place).await;
    let _kubelet = Kubelet::finished(&cluster, place);
    let before = cluster.created("jobs").await;
    let (mut random, mut names) = (Seeded(23), vec![]);
    for round in 0..12 {
        let replica = operator(&cluster, place, &[("LEADER_ELECTION", "false")]);
        for number in 0..3 {
            let name = format!("e-{round}-{number}");
            hello(&cluster, place, &name).await;
            names.push(name);
        }
        tokio::time::sleep(Duration::from_millis(random.below(400))).await;
        replica.signal("KILL");
    }
    let _operator = operator(&cluster, place, &[("LEADER_ELECTION", "false")]);
    for name in &names {
        complete(&cluster, place, name).await;
    }
    each_has_one_job(&cluster, place, &names, before).await;
}

async fn takeover(cluster: Cluster) {
    let place = "takeover";
    namespace(&cluster, place).await;
    let _kubelet = Kubelet::finished(&cluster, place);
    let before = cluster.created("jobs").await;
    let start = |name: &str| {
        let replica = operator(&cluster, place, &[("POD_NAME", name), ("LEASE_SECONDS", "3")]);
        (name.to_owned(), replica)
    };
    let leases: Api<Lease> = cluster.api(place);
    let next = async |last: &str| {
        eventually("another replica leads", async || {
            let holder = leases.get_opt("echo-operator").await.unwrap()?.spec?.holder_identity?;
            (!holder.is_empty() && holder != last).then_some(holder)
        })
        .await
    };
    let mut replicas: BTreeMap<String, Replica> = ["a", "b"].map(start).into();
    let mut names = vec![];
    let mut some = async |prefix: &str| {
        for number in 0..6 {
            let name = format!("{prefix}-{number}");
            hello(&cluster, place, &name).await;
            names.push(name);
        }
    };
    let first = next("").await;
    // It is killed in the middle of them.
    some("first").await;
    replicas.remove(&first).unwrap().signal("KILL");
    let second = next(&first).await;
    replicas.extend([start("c")]);
    some("second").await;
    // Frozen, it does not know that its time is over.
    let frozen = replicas.remove(&second).unwrap();
    frozen.signal("STOP");
    some("third").await;
    next(&second).await;
    frozen.signal("CONT");
    some("fourth").await;
    eventually("it starts over", async || {
        let log = frozen.log();
        let (_, after) = log.split_once("the lease was lost")?;
        after.contains("started").then_some(())
    })
    .await;
    for name in &names {
        complete(&cluster, place, name).await;
    }
    each_has_one_job(&cluster, place, &names, before).await;
}

async fn two_installations(cluster: Cluster) {
    for name in ["shared", "install-a", "install-b"] {
        namespace(&cluster, name).await;
    }
    let _kubelet = Kubelet::finished(&cluster, "shared");
    let before = cluster.created("jobs").await;
    let start =
        |installation| cluster.operator(&[("POD_NAMESPACE", installation), ("WATCH_NAMESPACE", "shared")]);
    let _both = ["install-a", "install-b"].map(start);
    let names: Vec<String> = (0..8).map(|number| format!("e-{number}")).collect();
    for name in &names {
        hello(&cluster, "shared", name).await;
    }
    for name in &names {
        complete(&cluster, "shared", name).await;
        let echo = echoes(&cluster, "shared").get(name).await.unwrap();
        assert!(echo.annotations()["echo.example.com/operated-by"].starts_with("install-"));
    }
    settled(&cluster).await;
    each_has_one_job(&cluster, "shared", &names, before).await;
}

/// Waits for three seconds in which nobody writes.
async fn settled(cluster: &Cluster) {
    within(Duration::from_secs(90), "nothing is written for three seconds", async || {
        let before = cluster.writes(&WRITTEN).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        (cluster.writes(&WRITTEN).await == before).then_some(())
    })
    .await;
}

async fn hundred(cluster: Cluster) {
    let place = "hundred";
    namespace(&cluster, place).await;
    let _kubelet = Kubelet::finished(&cluster, place);
    let replica = operator(&cluster, place, &[]);
    for number in 0..100 {
        hello(&cluster, place, &format!("e-{number}")).await;
    }
    for number in 0..100 {
        complete(&cluster, place, &format!("e-{number}")).await;
    }
    settled(&cluster).await;
    let before = cluster.writes(&WRITTEN).await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(cluster.writes(&WRITTEN).await - before, 0, "{}", replica.log());
    let (resident, own) = replica.memory();
    eprintln!(
        "100 Echoes: {resident} KiB resident, {own} KiB of them not the program's file; 0 writes in 8 s"
    );
    assert!(own < 15 * 1024, "{own} KiB");
}
