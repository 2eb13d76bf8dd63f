//! The program against a real kube-apiserver: which namespaces it watches, who leads, what it tells OLM, and what five
//! hundred clusters cost.
//!
//! Where the programs are not at hand (`make cluster` builds them), the tests are listed as not run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "the benchmark prints its figures")]

#[path = "../../../tests/support/apiserver.rs"]
mod api;
#[path = "../support/authority.rs"]
mod authority;
mod bench;
mod changes;
#[path = "../../../tests/support/client.rs"]
mod client;
mod hibernate;
mod migration;
mod node;
mod outage;
mod pretend;
mod replica;
#[path = "../../../tests/support/signal.rs"]
mod signal;
#[path = "../../../tests/support/mod.rs"]
mod support;
mod tls;
mod trouble;
mod users;
mod volumes;
#[path = "../processes/writer.rs"]
mod writer;

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        coordination::v1::Lease,
        core::v1::{Namespace, Pod, Secret, Service},
        policy::v1::PodDisruptionBudget,
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
    controller::children,
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
const PATIENCE: Duration = Duration::from_secs(300);
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
        trial("only_volumes_of_drained_nodes_are_deleted", &redis, |world| world.run(volumes::drained)),
        trial("a_pod_whose_claim_is_being_deleted_is_not_replaced", &redis, |world| {
            world.run(volumes::deleted)
        }),
        trial("a_stateful_set_that_is_in_no_cache_is_not_cut", &redis, |world| {
            world.run(volumes::unlabelled)
        }),
        trial("volumes_outlive_a_cluster_that_was_told_so_while_paused", &api, |world| {
            world.run(volumes::retained)
        }),
        trial("a_changed_password_removes_nothing", &redis, |world| world.run(changes::changed_password)),
        trial("a_password_changes_without_replacing_pods_that_have_it_as_files", &redis, |world| {
            world.run(changes::rotated_password)
        }),
        trial("users_of_the_spec_are_on_all_nodes", &redis, |world| world.run(users::declared)),
        trial("a_pending_pod_does_not_hold_up_shrinking", &redis, |world| world.run(pending)),
        trial("a_pod_is_ready_once_its_node_is_in_sync", &redis, |world| world.run(readiness)),
        trial("copies_of_a_shard_are_on_different_nodes_and_zones", &redis, |world| world.run(placement)),
        trial("a_new_configuration_reaches_every_pod_and_a_broken_image_only_one", &redis, |world| {
            world.run(changes::updates)
        }),
        trial("a_directive_reaches_running_nodes_and_one_that_redis_refuses_none", &redis, |world| {
            world.run(changes::live_configuration)
        }),
        trial("what_somebody_sets_by_hand_is_set_back_or_named", &redis, |world| world.run(changes::by_hand)),
        trial("maxmemory_follows_from_the_memory_limit", &redis, |world| world.run(changes::memory_limit)),
        trial("volumes_grow_without_losing_a_pod_and_a_class_that_cannot_is_named", &redis, |world| {
            world.run(volumes::volumes_grow)
        }),
        trial("a_certificate_is_renewed_without_replacing_pods_and_a_wrong_one_is_named", &redis, |world| {
            world.run(tls::certificate)
        }),
        trial("a_hibernated_cluster_keeps_its_volumes_and_wakes_with_all_pods", &redis, |world| {
            world.run(hibernate::hibernated)
        }),
        trial("an_exporter_that_cannot_start_stops_the_update", &redis, |world| world.run(trouble::exporter)),
        trial("a_pod_that_kubernetes_does_not_create_is_named", &redis, |world| {
            world.run(trouble::not_created)
        }),
        trial("the_status_is_written_while_objects_cannot_be_made", &redis, |world| {
            world.run(trouble::objects_fail)
        }),
        trial("a_cluster_waits_for_what_an_earlier_one_of_its_name_left", &redis, |world| {
            world.run(trouble::leftovers)
        }),
        trial("olm_does_not_upgrade_while_slots_move", &redis, |world| world.run(slots_move)),
    ];
    trials.push(migration::trial(&api));
    trials.extend(outage::trials(&redis));
    // It is about figures, and takes minutes.
    if std::env::var("OLMKIT_BENCH").is_ok_and(|value| value == "1") {
        trials = vec![
            trial("how_long_changes_take", &redis, |world| world.run(bench::changes)),
            trial("how_long_a_lost_node_is_felt", &redis, |world| world.run(bench::losses)),
            trial("what_clusters_cost", &redis, |world| world.run(bench::sizes)),
        ];
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

/// How a client without TLS reaches the nodes of `rc`.
async fn access_of(client: &Client, place: &str) -> Access {
    Access {
        host: None,
        port: children::PORT,
        trust: None,
        password: Some(Password::new(secret_of(client, place).await)),
        previous: None,
        metrics: Arc::new(Metrics::default()),
    }
}

async fn secret_of(client: &Client, place: &str) -> String {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), place);
    let secret = secrets.get("rc-auth").await.unwrap();
    String::from_utf8(secret.data.unwrap()["password"].0.clone()).unwrap()
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
    let thawed: Vec<String> = within(Duration::from_secs(15), "it starts over", async || {
        let thawed: Vec<_> = frozen.log().lines().skip(before).map(str::to_owned).collect();
        let lost = thawed.iter().position(|line| line.contains("the lease was lost"))?;
        thawed[lost..].iter().any(|line| line.contains("\"started\"")).then_some(thawed)
    })
    .await;
    assert!(!frozen.has_ended());
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
            with("exporter", json!({"image": ""})),
            "spec.exporter.image in body should be at least 1 chars long",
        ),
        (
            with("resources", json!({"limits": {"memory": "much"}})),
            "spec.resources.limits.memory in body should match",
        ),
        (
            with("pods", json!({"tolerations": [{"operator": "Exists", "value": "a"}]})),
            "with operator Exists there is no value",
        ),
        (
            with(
                "pods",
                json!({"topologySpreadConstraints": [{"topologyKey": "a", "whenUnsatisfiable": "x"}]}),
            ),
            "spec.pods.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"x\"",
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
        (with("tls", json!({})), "spec.tls.secretName: Required value"),
        (
            with("tls", json!({"secretName": ""})),
            "spec.tls.secretName in body should be at least 1 chars long",
        ),
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
        (with("hibernated", json!("yes")), "spec.hibernated in body must be of type boolean"),
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
    let mut node = Node::new(&client, "pending", Box::new(RealRedis(tempfile::tempdir().unwrap())));
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

/// The kubelet takes the word of the operator for it, also for the first pods of a cluster and while it is paused.
async fn readiness(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "readiness").await;
    let flags = ["--no-leader-election", "--namespace", "readiness", "--watch-namespace", "readiness"];
    let mut operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "readiness", Box::new(RealRedis(tempfile::tempdir().unwrap())));
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
    let mut node = Node::new(&client, "placed", Box::new(RealRedis(tempfile::tempdir().unwrap())));
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
    let mut node = Node::new(&client, "moving", Box::new(RealRedis(tempfile::tempdir().unwrap())));
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
