//! The program against a real kube-apiserver: which namespaces it watches, who leads, what it tells OLM, and what five
//! hundred clusters cost.
//!
//! Where the programs are not at hand (`make cluster` builds them), the tests are listed as not run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "the benchmark prints its figures")]

#[path = "../../../tests/support/apiserver.rs"]
mod api;
mod bench;
#[path = "../../../tests/support/client.rs"]
mod client;
mod migration;
mod node;
mod outage;
mod pretend;
mod replica;
#[path = "../../../tests/support/signal.rs"]
mod signal;
#[path = "../../../tests/support/mod.rs"]
mod support;
#[path = "../processes/writer.rs"]
mod writer;

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        coordination::v1::Lease,
        core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod, Secret, Service},
        policy::v1::PodDisruptionBudget,
        storage::v1::StorageClass,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use libtest_mimic::Arguments;
use redis_operator::{
    controller::{children, intent, outdated},
    crd::{self, RedisCluster, v1::Role},
    metrics::Metrics,
    server::{Access, Password},
};
use serde_json::{Value, json};

use self::{
    api::{ADMIN, ApiServer},
    client::{connect, ready},
    node::{Node, RealRedis},
    replica::Replica,
    support::Part,
};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// A Lease is held for 15 s, and looked at every 2 s. The rest is this test's own way of looking.
const TAKEN_OVER: Duration = Duration::from_secs(15 + 2 + 2);

fn main() {
    let api = Part::new("apiserver", api::missing());
    let redis = [api.clone(), Part::program("redis-server")];
    let api = [api];
    // The tests share a server, which ends with the last of them.
    let server: Arc<OnceLock<ApiServer>> = Arc::default();
    let trial = |name: &str, parts: &[Part], test: fn(World)| {
        let server = server.clone();
        let test = move || {
            let server = server.get_or_init(|| ApiServer::start(&[], ready));
            test(World::of(server));
            Ok(())
        };
        support::trial_with(name, parts, test)
    };
    let mut trials = vec![
        trial("it_watches_the_namespaces_that_it_is_told", &api, |world| world.run(namespaces)),
        trial("one_leads_whoever_dies_or_freezes", &api, |world| world.run(one_leads)),
        trial("what_users_change_is_changed_back", &api, |world| world.run(changed_back)),
        trial("a_wrong_value_of_any_field_is_refused", &api, |world| world.run(wrong_values)),
        trial("two_installations_never_manage_one_cluster", &api, |world| world.run(two_installations)),
        trial("only_volumes_of_drained_nodes_are_deleted", &redis, |world| world.run(drained)),
        trial("a_stateful_set_that_is_in_no_cache_is_not_cut", &redis, |world| world.run(unlabelled)),
        trial("volumes_outlive_a_cluster_that_was_told_so_while_paused", &api, |world| world.run(retained)),
        trial("a_changed_password_removes_nothing", &redis, |world| world.run(changed_password)),
        trial("a_pending_pod_does_not_hold_up_shrinking", &redis, |world| world.run(pending)),
        trial("a_pod_is_ready_once_its_node_is_in_sync", &redis, |world| world.run(readiness)),
        trial("copies_of_a_shard_are_on_different_nodes_and_zones", &redis, |world| world.run(placement)),
        trial("a_new_configuration_reaches_every_pod_and_a_broken_image_only_one", &redis, |world| {
            world.run(updates)
        }),
        trial("a_directive_reaches_running_nodes_and_one_that_redis_refuses_none", &redis, |world| {
            world.run(live_configuration)
        }),
        trial("volumes_grow_without_losing_a_pod_and_a_class_that_cannot_is_named", &redis, |world| {
            world.run(volumes_grow)
        }),
        trial("olm_does_not_upgrade_while_slots_move", &redis, |world| world.run(slots_move)),
    ];
    trials.push(migration::trial(&api));
    trials.extend(outage::trials(&redis));
    // It is about figures, and takes minutes.
    if std::env::var("OLMKIT_BENCH").is_ok_and(|value| value == "1") {
        trials = vec![trial("what_clusters_cost", &redis, |world| world.run(bench::figures))];
    }
    drop(server);
    support::run(&Arguments::from_args(), trials).exit();
}

/// The API server, and who speaks with it.
struct World {
    runtime: tokio::runtime::Runtime,
    kubeconfig: std::path::PathBuf,
}

impl World {
    fn of(server: &ApiServer) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { runtime, kubeconfig: server.kubeconfig(ADMIN) }
    }

    fn run<F: Future<Output = ()>>(self, test: fn(Client, std::path::PathBuf) -> F) {
        self.runtime.block_on(async {
            let client = connect(&self.kubeconfig).await;
            install(&client).await;
            test(client, self.kubeconfig.clone()).await;
        });
    }
}

/// The APIs. Nobody converts here, so only one version is served.
async fn install(client: &Client) {
    let mut definition = serde_json::to_value(crd::definition(Default::default())).unwrap();
    definition["spec"]["conversion"] = json!({"strategy": "None"});
    apply::<CustomResourceDefinition>(client, definition).await;
    let olm = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/olm-crds/crds.yaml");
    let olm = std::fs::read_to_string(olm).unwrap();
    let condition = olm.split("\n---\n").find(|text| text.contains("plural: operatorconditions")).unwrap();
    apply::<CustomResourceDefinition>(client, serde_saphyr::from_str(condition).unwrap()).await;
    let clusters: Api<RedisCluster> = Api::all(client.clone());
    let conditions: Api<DynamicObject> = Api::all_with(client.clone(), &condition_kind());
    eventually("the APIs are served", async || {
        let served = clusters.list(&ListParams::default()).await.is_ok()
            && conditions.list(&ListParams::default()).await.is_ok();
        served.then_some(())
    })
    .await;
}

async fn apply<K>(client: &Client, object: Value)
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let parameters = PatchParams::apply("test").force();
    Api::<K>::all(client.clone()).patch(&name, &parameters, &Patch::Apply(object)).await.unwrap();
}

async fn namespace(client: &Client, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    apply::<Namespace>(client, object).await;
}

async fn create(client: &Client, namespace: &str, name: &str, spec: Value) {
    let object = json!({
        "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": {"name": name}, "spec": spec,
    });
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), namespace);
    clusters.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// Asks until there is an answer.
async fn eventually<T>(what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    within(PATIENCE, what, ask).await
}

async fn within<T>(time: Duration, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(started.elapsed() < time, "not within {time:?}: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn namespaces(client: Client, kubeconfig: std::path::PathBuf) {
    const ALL: [&str; 3] = ["watched-c", "watched-b", "watched-a"];
    for name in ALL {
        namespace(&client, name).await;
    }
    for (number, (told, watched)) in [
        ("watched-a", &["watched-a"][..]),
        // As OLM joins them, and as people do.
        ("watched-a,watched-b", &["watched-a", "watched-b"]),
        (" watched-a , watched-b ,", &["watched-a", "watched-b"]),
        ("", &ALL),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("rc-{number}");
        for place in ALL {
            create(&client, place, &name, json!({"size": 3})).await;
        }
        let _operator = Replica::start(&kubeconfig, &["--no-leader-election"], &[("WATCH_NAMESPACE", told)]);
        for place in watched {
            let sets: Api<StatefulSet> = Api::namespaced(client.clone(), place);
            eventually(&format!("{place} is looked after with `{told}`"), async || {
                sets.get_opt(&name).await.unwrap()
            })
            .await;
        }
        for place in ALL.iter().filter(|place| !watched.contains(place)) {
            let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), place);
            let cluster = clusters.get(&name).await.unwrap();
            assert!(cluster.finalizers().is_empty(), "{place} is looked after with `{told}`");
        }
    }
}

async fn one_leads(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "led").await;
    let start = |identity: &str| {
        let flags = ["--identity", identity, "--namespace", "led", "--watch-namespace", "led"];
        Replica::start(&kubeconfig, &flags, &[])
    };
    let leases: Api<Lease> = Api::namespaced(client.clone(), "led");
    let holder = async || leases.get_opt("redis-operator").await.unwrap()?.spec?.holder_identity;
    let next = async |dead: &str| {
        let started = Instant::now();
        let holder = eventually("another leads", async || {
            holder().await.filter(|holder| !holder.is_empty() && holder != dead)
        })
        .await;
        (holder, started.elapsed())
    };
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "led");
    let cared_for = async |name: &str| {
        create(&client, "led", name, json!({"size": 1})).await;
        eventually(name, async || sets.get_opt(name).await.unwrap()).await;
    };

    let mut replicas: std::collections::BTreeMap<String, Replica> =
        ["a", "b"].map(|name| (name.to_owned(), start(name))).into();
    let (first, _) = next("").await;
    cared_for("first").await;
    replicas.remove(&first).unwrap().signal("KILL");
    let (second, took) = next(&first).await;
    assert!(took < TAKEN_OVER, "{second} leads after {took:?}");
    cared_for("second").await;

    // Frozen, it does not know that its time is over.
    replicas.insert("c".into(), start("c"));
    let mut frozen = replicas.remove(&second).unwrap();
    frozen.signal("STOP");
    let (third, took) = next(&second).await;
    assert!(took < TAKEN_OVER, "{third} leads after {took:?}");
    cared_for("third").await;
    let before = frozen.log().lines().count();
    frozen.signal("CONT");
    let status = frozen.ended(Duration::from_secs(15));
    assert_eq!(status.code(), Some(1), "{}", frozen.log());
    let log = frozen.log();
    let thawed: Vec<_> = log.lines().skip(before).collect();
    assert!(thawed.iter().any(|line| line.contains("the lease was")), "{thawed:?}");
    let did = ["\"apply\"", "\"acted\"", "\"event\""];
    assert!(!thawed.iter().any(|line| did.iter().any(|word| line.contains(word))), "{thawed:?}");

    // Asked to end, it gives the Lease back, and the next need not wait.
    replicas.insert("d".into(), start("d"));
    let mut asked = replicas.remove(&third).unwrap();
    asked.signal("TERM");
    let (fourth, took) = next(&third).await;
    assert!(took < Duration::from_secs(5), "{fourth} leads after {took:?}");
    assert_eq!(asked.ended(Duration::from_secs(25)).code(), Some(0), "{}", asked.log());
    cared_for("fourth").await;
}

/// Server-side apply leaves what others put into a list beside what we put there: two ports of one name even, which the API
/// server then refuses.
async fn changed_back(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "changed").await;
    let _operator =
        Replica::start(&kubeconfig, &["--no-leader-election", "--watch-namespace", "changed"], &[]);
    create(&client, "changed", "rc", json!({"size": 1})).await;
    let services: Api<Service> = Api::namespaced(client.clone(), "changed");
    let ports = async || {
        let service = services.get_opt("rc").await.unwrap()?;
        let ports = service.spec.unwrap_or_default().ports.unwrap_or_default();
        Some(ports.into_iter().map(|port| port.port).collect::<Vec<_>>())
    };
    let as_made = async || {
        eventually("the Service is as it was made", async || ports().await.filter(|ports| *ports == [6379]))
            .await
    };
    as_made().await;
    for changed in [
        json!([{"name": "redis", "port": 6380, "targetPort": 6379}]),
        json!([{"name": "redis", "port": 6379}, {"name": "more", "port": 1234}]),
    ] {
        let patch = Patch::Merge(json!({"spec": {"ports": changed}}));
        services.patch("rc", &PatchParams::default(), &patch).await.unwrap();
        as_made().await;
    }
    services.delete("rc", &Default::default()).await.unwrap();
    as_made().await;
}

/// By the schema or its rules, with a sentence that names the field.
async fn wrong_values(client: Client, _: std::path::PathBuf) {
    namespace(&client, "wrong").await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cache.example.com", "v1", "RedisCluster"));
    let clusters: Api<DynamicObject> = Api::namespaced_with(client.clone(), "wrong", &kind);
    let create = async |name: &str, spec: Value| {
        let mut object = DynamicObject::new(name, &kind);
        object.data = json!({"spec": spec});
        let parameters = PostParams { dry_run: true, ..PostParams::default() };
        clusters.create(&parameters, &object).await.err().map(|error| error.to_string())
    };
    assert_eq!(create("rc", json!({"size": 3, "recovery": {"quorumLoss": "Manual"}})).await, None);
    let storage = |field: &str, value: Value| {
        let mut storage = json!({"size": "1Gi"});
        storage[field] = value;
        json!({"size": 3, "storage": storage})
    };
    let with = |field: &str, value: Value| json!({"size": 3, field: value});
    for (spec, field) in [
        (json!({}), "spec.size: Required value"),
        (json!({"size": 0}), "spec.size in body should be greater than or equal to 1"),
        (json!({"size": 501}), "spec.size in body should be less than or equal to 500"),
        (json!({"size": "three"}), "spec.size in body must be of type integer"),
        (
            with("replicasPerShard", json!(-1)),
            "spec.replicasPerShard in body should be greater than or equal to 0",
        ),
        (
            with("replicasPerShard", json!(6)),
            "spec.replicasPerShard in body should be less than or equal to 5",
        ),
        (with("replicasPerShard", json!(1)), "size must be a multiple of 1 + replicasPerShard"),
        (with("image", json!("")), "spec.image in body should be at least 1 chars long"),
        (with("config", json!({"Maxmemory": "1gb"})), "a directive is written in lower case letters"),
        (with("config", json!({"maxmemory": "1gb\nsave 1 1"})), "spec.config.maxmemory in body should match"),
        (with("config", json!({"appendonly": "no"})), "the operator sets this directive itself"),
        (
            with("resources", json!({"limits": {"memory": "much"}})),
            "spec.resources.limits.memory in body should match",
        ),
        (storage("size", json!("0")), "spec.storage.size in body should match"),
        (
            storage("storageClassName", json!("")),
            "spec.storage.storageClassName in body should be at least 1",
        ),
        (
            storage("deletionPolicy", json!("Never")),
            "spec.storage.deletionPolicy: Unsupported value: \"Never\"",
        ),
        (
            with("auth", json!({"secretName": ""})),
            "spec.auth.secretName in body should be at least 1 chars long",
        ),
        (with("auth", json!({"secretName": "a", "key": "a b"})), "spec.auth.key in body should match"),
        (
            with("recovery", json!({"quorumLoss": "Maybe"})),
            "spec.recovery.quorumLoss: Unsupported value: \"Maybe\"",
        ),
        (
            with("recovery", json!({"lostSlots": "Maybe"})),
            "spec.recovery.lostSlots: Unsupported value: \"Maybe\"",
        ),
        (with("update", json!({"strategy": "Never"})), "spec.update.strategy: Unsupported value: \"Never\""),
        (
            with("update", json!({"allowDowngrade": "yes"})),
            "spec.update.allowDowngrade in body must be of type boolean",
        ),
        (with("paused", json!("yes")), "spec.paused in body must be of type boolean"),
    ] {
        let refused = create("rc", spec.clone()).await.unwrap_or_else(|| panic!("{spec} is accepted"));
        assert!(refused.contains(field), "{spec}: {refused}");
    }
    let long = "x".repeat(53);
    assert!(create(&long, json!({"size": 3})).await.unwrap().contains("at most 52 characters"));
}

/// Each in a namespace of its own, as two teams might install them.
async fn two_installations(client: Client, kubeconfig: std::path::PathBuf) {
    for name in ["shared", "first", "second"] {
        namespace(&client, name).await;
    }
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "shared");
    let operated_by = async || {
        let cluster = clusters.get("rc").await.unwrap();
        cluster.annotations().get("cache.example.com/operated-by").cloned()
    };
    let start = |namespace: &str| {
        let flags = ["--no-leader-election", "--namespace", namespace, "--watch-namespace", "shared"];
        Replica::start(&kubeconfig, &flags, &[])
    };
    let (first, second) = (start("first"), start("second"));
    create(&client, "shared", "rc", json!({"size": 3})).await;
    let owner = eventually("one takes it", async || operated_by().await).await;
    let (owning, other, other_name) =
        if owner == "first" { (&first, &second, "second") } else { (&second, &first, "first") };
    let services: Api<Service> = Api::namespaced(client.clone(), "shared");
    eventually("it is cared for", async || services.get_opt("rc").await.unwrap()).await;
    assert!(owning.log().contains("\"apply\""), "{}", owning.log());
    let events: Api<DynamicObject> = Api::namespaced_with(client.clone(), "shared", &event_kind());
    eventually("the other says that it leaves it alone", async || {
        let events = events.list(&ListParams::default()).await.unwrap();
        events.iter().any(|event| event.data["reason"] == "OperatedByOther").then_some(())
    })
    .await;
    let did = ["\"apply\"", "\"acted\""];
    assert!(!did.iter().any(|word| other.log().contains(word)), "{}", other.log());
    // It is given to the other, which then goes on.
    let patch = json!({"metadata": {"annotations": {"cache.example.com/operated-by": other_name}}});
    clusters.patch("rc", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    services.delete("rc", &Default::default()).await.unwrap();
    eventually("the other cares for it", async || other.log().contains("\"apply\"").then_some(())).await;
    assert_eq!(operated_by().await.as_deref(), Some(other_name));
}

fn event_kind() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("events.k8s.io", "v1", "Event"))
}

/// The fourth pod of a cluster fits on no node, and its user goes back to three.
async fn pending(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "pending").await;
    let flags = ["--no-leader-election", "--namespace", "pending", "--watch-namespace", "pending"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "pending", 85, Box::new(RealRedis(tempfile::tempdir().unwrap())));
    node.unschedulable.insert("rc-3".into());
    create(&client, "pending", "rc", json!({"size": 3})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "pending");
    settled(&clusters, &mut node, 3).await;
    let resize = async |size: i32| {
        let patch = Patch::Merge(json!({"spec": {"size": size}}));
        clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    };
    resize(4).await;
    eventually("the condition says why", async || {
        node.turn().await;
        let status = clusters.get("rc").await.unwrap().status?;
        let degraded = status.conditions.into_iter().find(|one| one.type_ == "Degraded")?;
        (degraded.reason == "PodTrouble" && degraded.message.contains("Insufficient memory")).then_some(())
    })
    .await;
    resize(3).await;
    settled(&clusters, &mut node, 3).await;
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "pending");
    assert_eq!(sets.get("rc").await.unwrap().spec.unwrap().replicas, Some(3));
}

/// Claims as the StatefulSet's controller makes them.
async fn claims_of(client: &Client, place: &str, count: u32) -> Api<PersistentVolumeClaim> {
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

async fn settled(clusters: &Api<RedisCluster>, node: &mut Node, size: i32) {
    eventually(&format!("{size} nodes are ready"), async || {
        node.turn().await;
        let cluster = clusters.get("rc").await.unwrap();
        let status = cluster.status?;
        let ready = status.conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True");
        let current = status.observed_generation == cluster.metadata.generation;
        (current && ready && status.shards == Some(size)).then_some(())
    })
    .await;
}

async fn drained(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "drained").await;
    let claims = claims_of(&client, "drained", 5).await;
    let flags = ["--no-leader-election", "--namespace", "drained", "--watch-namespace", "drained"];
    let operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "drained", 79, Box::new(RealRedis(tempfile::tempdir().unwrap())));
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

/// Without its label nobody watches it. Two things keep its pods: the operator asks the API server before it believes that there is
/// no StatefulSet, and it removes no pod that owned slots by the last status before every slot is served without it.
async fn unlabelled(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "unlabelled").await;
    let flags = ["--no-leader-election", "--namespace", "unlabelled", "--watch-namespace", "unlabelled"];
    let mut operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "unlabelled", 88, Box::new(RealRedis(tempfile::tempdir().unwrap())));
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
async fn retained(client: Client, kubeconfig: std::path::PathBuf) {
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
async fn volumes_grow(client: Client, kubeconfig: std::path::PathBuf) {
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
    let mut node = Node::new(&client, "volumes", 91, Box::new(RealRedis(tempfile::tempdir().unwrap())));
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
    let access = Access {
        port: children::PORT,
        password: Some(Password::new(secret_of(&client, "volumes").await)),
        metrics: Arc::new(Metrics::default()),
    };
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

/// The configuration is changed, then the image to one that cannot be pulled, then that is taken back.
async fn updates(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "updates").await;
    // Four node timeouts after it began to lead, an operator promotes its first replica.
    let flags = ["--no-leader-election", "--namespace", "updates", "--watch-namespace", "updates"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "updates", 85, Box::new(RealRedis(tempfile::tempdir().unwrap())));
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
async fn live_configuration(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "live").await;
    let flags = ["--no-leader-election", "--namespace", "live", "--watch-namespace", "live"];
    let mut operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "live", 90, Box::new(RealRedis(tempfile::tempdir().unwrap())));
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
    let access = Access {
        port: children::PORT,
        password: Some(Password::new(password.clone())),
        metrics: Arc::new(Metrics::default()),
    };
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

async fn secret_of(client: &Client, place: &str) -> String {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), place);
    let secret = secrets.get("rc-auth").await.unwrap();
    String::from_utf8(secret.data.unwrap()["password"].0.clone()).unwrap()
}

/// The nodes refuse the operator while a cluster shrinks: it does not know what they have.
async fn changed_password(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "password").await;
    let flags = ["--no-leader-election", "--namespace", "password", "--watch-namespace", "password"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "password", 83, Box::new(RealRedis(tempfile::tempdir().unwrap())));
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
    eventually("the condition says why", async || {
        let status = clusters.get("rc").await.unwrap().status?;
        let degraded = status.conditions.into_iter().find(|one| one.type_ == "Degraded")?;
        (degraded.status == "True" && degraded.reason == "PasswordRejected").then_some(())
    })
    .await;
    assert_eq!(replicas().await, Some(3));
    set(json!(password)).await;
    settled(&clusters, &mut node, 1).await;
    assert_eq!(replicas().await, Some(1));
}

/// The kubelet takes the word of the operator for it, also for the first pods of a cluster and while it is paused.
async fn readiness(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "readiness").await;
    let flags = ["--no-leader-election", "--namespace", "readiness", "--watch-namespace", "readiness"];
    let mut operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "readiness", 84, Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, "readiness", "rc", json!({"size": 4, "replicasPerShard": 1})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "readiness");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "readiness");
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), "readiness");
    let ready = async || {
        let all = pods.list(&ListParams::default()).await.unwrap();
        let ready = all.iter().filter(|pod| node::holds(pod, "Ready"));
        ready.map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    let may_evict = async || {
        let budget = budgets.get("rc").await.unwrap().spec.unwrap();
        budget.max_unavailable == Some(IntOrString::Int(1))
    };
    let all = ["rc-0", "rc-1", "rc-2", "rc-3"];
    eventually("all pods of a new cluster are ready, and one may be evicted", async || {
        node.turn().await;
        (ready().await == all && may_evict().await).then_some(())
    })
    .await;
    // Neither waits for pods that are not ready.
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "readiness");
    let set = sets.get("rc").await.unwrap().spec.unwrap();
    assert_eq!(set.pod_management_policy.as_deref(), Some("Parallel"));
    assert_eq!(set.update_strategy.unwrap().type_.as_deref(), Some("OnDelete"));

    // A pod that was just made answers, but has nothing.
    let members = clusters.get("rc").await.unwrap().status.unwrap().members;
    let replica = members.iter().find(|member| member.role == Some(Role::Replica)).unwrap().pod.clone();
    let changes = async || budgets.get("rc").await.unwrap().metadata.generation.unwrap();
    let before = changes().await;
    operator.signal("STOP");
    node.lose(&replica).await;
    for _ in 0..3 {
        node.turn().await;
        assert!(!ready().await.contains(&replica), "{replica} is ready, and nobody has looked at it");
    }
    operator.signal("CONT");
    eventually("the replica is in sync again", async || {
        node.turn().await;
        (ready().await == all && may_evict().await).then_some(())
    })
    .await;
    assert!(changes().await >= before + 2, "a pod could be evicted while a shard lacked its replica");

    let patch = Patch::Merge(json!({"spec": {"paused": true}}));
    clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    let condition = json!({"type": children::IN_SYNC, "status": "False"});
    let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
    pods.patch_status("rc-0", &PatchParams::default(), &patch).await.unwrap();
    eventually("a paused cluster has ready pods", async || {
        node.turn().await;
        (ready().await == all).then_some(())
    })
    .await;
}

/// Six Kubernetes nodes in three zones; then a replica's pod is recreated on the node of its primary.
async fn placement(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "placed").await;
    let hosts: Api<k8s_openapi::api::core::v1::Node> = Api::all(client.clone());
    let zone = |ordinal: usize| ["a", "b", "c"][ordinal % 3];
    for ordinal in 0..6 {
        let labels = json!({"topology.kubernetes.io/zone": zone(ordinal)});
        let host = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("placed-{ordinal}"), "labels": labels},
        });
        hosts.create(&PostParams::default(), &serde_json::from_value(host).unwrap()).await.unwrap();
    }
    let flags = ["--no-leader-election", "--namespace", "placed", "--watch-namespace", "placed"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "placed", 87, Box::new(RealRedis(tempfile::tempdir().unwrap())));
    node.hosts = (0..6).map(|ordinal| (format!("rc-{ordinal}"), format!("placed-{ordinal}"))).collect();
    create(&client, "placed", "rc", json!({"size": 6, "replicasPerShard": 1})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "placed");
    let redundant = async |node: &mut Node| {
        eventually("every shard has its replica on another node", async || {
            node.turn().await;
            let status = clusters.get("rc").await.unwrap().status?;
            let holds =
                |kind: &str| status.conditions.iter().any(|one| one.type_ == kind && one.status == "True");
            (holds("Ready") && holds("Redundant")).then_some(status.members)
        })
        .await
    };
    let shards = |members: &[redis_operator::crd::v1::Member]| {
        let pods = |shard: i32| {
            let own = members.iter().filter(|member| member.shard == Some(shard));
            own.map(|member| member.pod.clone()).collect::<Vec<_>>()
        };
        [0, 1, 2].map(pods)
    };
    let members = redundant(&mut node).await;
    for pods in shards(&members) {
        let zones: Vec<_> = pods.iter().map(|pod| zone(pod[3..].parse().unwrap())).collect();
        assert!(zones.len() == 2 && zones[0] != zones[1], "{pods:?} are in {zones:?}");
    }

    let replica = members.iter().find(|member| member.role == Some(Role::Replica)).unwrap();
    let primary =
        members.iter().find(|member| member.shard == replica.shard && member.pod != replica.pod).unwrap();
    let host = node.hosts[&primary.pod].clone();
    node.hosts.insert(replica.pod.clone(), host);
    let old = replica.node_id.clone();
    node.lose(&replica.pod).await;
    eventually("the replica is another node", async || {
        node.turn().await;
        let members = clusters.get("rc").await.unwrap().status?.members;
        members.iter().any(|now| now.pod == replica.pod && now.node_id != old).then_some(())
    })
    .await;
    let shards = shards(&redundant(&mut node).await);
    let together = |pods: &Vec<String>| pods.iter().all(|pod| node.hosts[pod] == node.hosts[&pods[0]]);
    assert!(!shards.iter().any(together), "{shards:?}");
}

fn condition_kind() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("operators.coreos.com", "v2", "OperatorCondition"))
}

async fn slots_move(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "moving").await;
    let conditions: Api<DynamicObject> = Api::namespaced_with(client.clone(), "moving", &condition_kind());
    let object = DynamicObject::new("redis-operator.v0.5.0", &condition_kind());
    conditions.create(&PostParams::default(), &object).await.unwrap();
    let flags = ["--no-leader-election", "--namespace", "moving", "--watch-namespace", "moving"];
    let _operator =
        Replica::start(&kubeconfig, &flags, &[("OPERATOR_CONDITION_NAME", "redis-operator.v0.5.0")]);
    let said = async || {
        let object = conditions.get("redis-operator.v0.5.0").await.unwrap();
        let condition = object.data.pointer("/spec/conditions/0")?.clone();
        assert_eq!(condition["type"], "Upgradeable");
        Some(format!("{} {}", condition["status"], condition["reason"]).replace('"', ""))
    };
    let mut node = Node::new(&client, "moving", 78, Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, "moving", "rc", json!({"size": 2})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "moving");
    let mut settle = async |size: i32| {
        let mut all = vec![];
        eventually(&format!("{size} nodes share the slots"), async || {
            node.turn().await;
            all.extend(said().await);
            let cluster = clusters.get("rc").await.unwrap();
            let status = cluster.status?;
            let current = status.observed_generation == cluster.metadata.generation;
            let settled =
                status.conditions.iter().any(|one| one.type_ == "Progressing" && one.reason == "Settled");
            (current && settled && status.shards == Some(size)).then_some(())
        })
        .await;
        all.dedup();
        all
    };
    assert_eq!(settle(2).await, ["True Settled"], "a cluster that forms holds up no upgrade");
    let patch = Patch::Merge(json!({"spec": {"size": 3}}));
    clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    let all = settle(3).await;
    assert!(all.contains(&"False MovingSlots".into()), "{all:?}");
    let last =
        eventually("it may be upgraded again", async || said().await.filter(|said| said == "True Settled"))
            .await;
    assert_eq!(last, "True Settled");
}
