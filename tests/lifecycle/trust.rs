//! What use by hand broke: each test is named for the fault.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use olmkit::lifecycle::api::{Approval, Key, known};
use olmkit::lifecycle::cluster::Cluster;
use olmkit::lifecycle::decide::Accept;
use olmkit::lifecycle::doctor::{Diagnosis, Scope, State, diagnose_with_required, observe};
use olmkit::lifecycle::engine::{Engine, Options};
use olmkit::lifecycle::install::Install;
use olmkit::lifecycle::offer::Offer;
use olmkit::lifecycle::simulate::{Registry, Simulation};
use olmkit::lifecycle::upgrade::Upgrade;
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use serde_json::{Value, json};

use crate::disturbed::Disturbed;
use crate::world::{NS, World, demo, told};

/// A world with 0.1.0 installed, and no plan to go on from there.
fn settled() -> World {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    for name in world.names(&known::INSTALL_PLAN) {
        let key = Key::new(&known::INSTALL_PLAN, NS, &name);
        let plan = world.cluster.store().get(&key).unwrap();
        if plan.pointer("/status/phase").and_then(Value::as_str) != Some("Complete") {
            world.cluster.store().delete(&key);
        }
    }
    let at_rest = json!({"status": {"state": "AtLatestKnown", "currentCSV": "demo.v0.1.0"}});
    world.patch_subscription(at_rest);
    world
}

impl World {
    fn patch_subscription(&mut self, patch: Value) {
        self.cluster.store().patch(&Key::new(&known::SUBSCRIPTION, NS, "demo"), &patch).unwrap();
    }

    fn condition(&mut self, kind: &str, message: &str) {
        let condition = json!({"type": kind, "status": "True", "reason": "Because", "message": message});
        self.patch_subscription(json!({"status": {"conditions": [condition]}}));
    }
}

#[test]
fn a_failed_resolution_that_names_what_is_gone_is_stale() {
    let mut world = settled();
    // OLM complains in the first minute of every Subscription.
    world.patch_subscription(json!({"metadata": {"creationTimestamp": "2025-12-31T00:00:00Z"}}));
    // While a bundle is unpacked, nothing that OLM said before counts.
    for name in world.names(&known::JOB) {
        world.cluster.store().delete(&Key::new(&known::JOB, "olm", &name));
    }
    let mut suspected = |message: &str| {
        world.condition("ResolutionFailed", message);
        world.run(|engine, _| engine.status("demo", Some(NS))).unwrap().cause.is_some()
    };
    let gone = [
        "constraints not satisfiable: @existing/ns//demo.v0.0.9 and @existing/ns//demo.v0.1.0 originate from package \
         demo, clusterserviceversion demo.v0.0.9 exists and is not referenced by a subscription, subscription demo \
         exists, subscription demo requires @existing/ns//demo.v0.1.0",
        "constraints not satisfiable: clusterserviceversion demo.v0.0.9 exists and is not referenced by a subscription",
        "constraints not satisfiable: subscription demo exists, subscription other exists, subscription other requires \
         catalog/ns/stable/other.v1.0.0",
    ];
    for message in gone {
        assert!(!suspected(message), "{message}");
    }
    let there = [
        "constraints not satisfiable: @existing/ns//demo.v0.1.0 and catalog/ns/stable/rival.v0.1.0 provide Demo \
         (t01.example.com/v1), subscription demo exists, subscription demo requires @existing/ns//demo.v0.1.0",
        "constraints not satisfiable: no operators found in channel stable of package demo in the catalog referenced by \
         subscription demo, subscription demo exists",
    ];
    for message in there {
        assert!(suspected(message), "{message}");
    }
}

#[test]
fn what_was_accepted_is_not_waited_for_though_a_neighbour_is_manual() {
    let mut world = World::of("26");
    world.subscribe_to_cache_db();
    let request = Install {
        approval: Some(Approval::Automatic),
        accept: Accept { csvs: BTreeSet::from(["cache-db.v1.0.0".to_owned()]), ..Accept::default() },
        ..demo(None)
    };
    assert_eq!(world.install(request).unwrap().installed_csv, "demo.v0.1.0");
    assert_eq!(world.subscription()["spec"]["installPlanApproval"], "Automatic");
}

/// A Job that unpacks a bundle, and its pod, which waits for its image.
fn unpacking(reason: &str) -> [Value; 2] {
    let image = "registry.example.com/demo:v0.2.0";
    let containers = json!([{"name": "pull", "image": image}]);
    let waiting = json!({"reason": reason, "message": format!("{image}: not found")});
    [
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": "0a1b", "namespace": "olm", "labels": {"operatorframework.io/bundle-unpack-ref": "0a1b"},
            },
            "spec": {"template": {"spec": {"initContainers": containers}}},
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "0a1b-x", "namespace": "olm", "labels": {"job-name": "0a1b"}},
            "spec": {"initContainers": containers},
            "status": {"phase": "Pending", "initContainerStatuses": [{"name": "pull", "state": {"waiting": waiting}}]},
        }),
    ]
}

#[test]
fn status_tells_of_a_failed_plan_and_of_a_bundle_that_cannot_be_pulled() {
    let mut world = settled();
    let status = |world: &mut World| world.run(|engine, _| engine.status("demo", Some(NS))).unwrap();
    assert!(status(&mut world).is_well());
    // What a Subscription says of an unpack Job that does not exist is behind.
    world.condition("BundleUnpackFailed", "Bundle unpacking failed - DeadlineExceeded");
    assert!(status(&mut world).is_well());
    // What is installed is up, but what comes next cannot be had.
    for object in unpacking("ErrImagePull") {
        world.cluster.store().create(object).unwrap();
    }
    let operator = status(&mut world);
    assert!(!operator.is_well());
    let sentence = "the bundle `registry.example.com/demo:v0.2.0` for the Subscription `demo` cannot be unpacked: \
                    pod `0a1b-x` cannot pull the image `registry.example.com/demo:v0.2.0` (ErrImagePull): not found";
    assert_eq!(operator.problems, [sentence]);
    assert_eq!(operator.cause.unwrap().code, "bundle-image-pull");
    let listed = world.run(|engine, _| engine.list(None)).unwrap();
    assert_eq!(listed[0].problems, [sentence]);
    // It is being unpacked.
    for (kind, name) in [(&known::JOB, "0a1b"), (&known::POD, "0a1b-x")] {
        world.cluster.store().delete(&Key::new(kind, "olm", name));
    }
    assert!(status(&mut world).is_well());

    let plan = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
        "metadata": {"name": "install-bad", "namespace": NS},
        "spec": {"clusterServiceVersionNames": ["demo.v0.2.0"], "approved": true, "generation": 9},
        "status": {"phase": "Failed", "message": "risk of data loss"},
    });
    world.cluster.store().create(plan).unwrap();
    world.patch_subscription(json!({"status": {
        "state": "UpgradePending", "currentCSV": "demo.v0.2.0", "installPlanRef": {"name": "install-bad"},
    }}));
    let operator = status(&mut world);
    assert!(!operator.is_well());
    assert_eq!(
        operator.problems,
        ["installplan/install-bad cannot install `demo.v0.2.0`: risk of data loss"]
    );
    let listed = world.run(|engine, _| engine.list(None)).unwrap();
    assert_eq!(listed[0].problems, operator.problems);
}

#[test]
fn a_list_takes_a_handful_of_requests_however_many_operators_there_are() {
    let mut world = World::of("01");
    for number in 0..22 {
        let subscription = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": format!("demo-{number}"), "namespace": format!("ns-{}", number / 2)},
            "spec": {"name": "demo", "channel": "stable", "source": "catalog", "sourceNamespace": "olm"},
        });
        world.cluster.store().create(subscription).unwrap();
    }
    let mut cluster = std::mem::take(&mut world.cluster);
    let mut counted = Disturbed { calls: 1_000, ..Disturbed::not(&mut cluster) };
    let rows = Engine::new(&mut counted, &world, &world, Options::default()).list(None).unwrap();
    assert_eq!(rows.len(), 22);
    assert!(rows.iter().all(|row| row.head == "demo.v0.3.0"), "{rows:?}");
    // Those of each kind at once, from eleven namespaces.
    assert_eq!(1_000 - counted.calls, 13);
}

#[test]
fn a_catalog_is_named_as_it_is_printed() {
    let catalog = Some(("catalog".to_owned(), Some("olm".to_owned())));
    let operator = World::of("01").install(Install { catalog, ..demo(None) }).unwrap();
    assert_eq!(operator.catalog, "olm/catalog");
    let nowhere = Install { catalog: Some(("catalog".into(), Some("elsewhere".into()))), ..demo(None) };
    let said = told(World::of("01").install(nowhere).unwrap_err());
    insta::assert_snapshot!(said, @"there is no CatalogSource `catalog` in the namespace `elsewhere`");
}

#[test]
fn a_catalog_may_be_in_any_namespace_that_is_named() {
    let source = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "mine", "namespace": "my-olm"}, "spec": {"sourceType": "grpc", "image": "catalog"},
    });
    let mut world = World::of("01").with(source);
    let request = Install { catalog: Some(("mine".into(), Some("my-olm".into()))), ..demo(None) };
    let options = Options { dry_run: true, ..Options::default() };
    let made = world.run_with(options, |engine, _| {
        engine.install(&request).unwrap();
        engine.planned.last().unwrap().document.clone()
    });
    assert_eq!(
        (&made["spec"]["source"], &made["spec"]["sourceNamespace"]),
        (&json!("mine"), &json!("my-olm"))
    );
}

#[test]
fn a_verb_is_over_when_its_command_has_to_be() {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    let deadline = world.cluster.now() + Duration::from_secs(3);
    let mut cluster = std::mem::take(&mut world.cluster);
    let mut bounded = Disturbed { deadline: Some(deadline), ..Disturbed::not(&mut cluster) };
    let request = Upgrade { name: "demo".into(), namespace: Some(NS.into()), ..Upgrade::default() };
    let error = Engine::new(&mut bounded, &world, &world, Options::default()).upgrade(&request).unwrap_err();
    assert!(error.to_string().contains("timed out"), "{error}");
    assert_eq!(bounded.now(), deadline);
}

/// A cluster whose catalog is this text, with a Subscription to each of the packages one after another.
fn subscribed(catalog: &str, packages: &[&str]) -> Simulation {
    let files = CatalogFiles::from_text("catalog.yaml", catalog);
    let mut registry = Registry::default();
    registry.catalogs.insert("catalog".into(), Arc::new(Offer::of(&Catalog::parse(&files))));
    let mut cluster = Simulation::new(registry);
    for document in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}}),
        json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "all", "namespace": NS}, "spec": {},
        }),
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": "catalog", "namespace": "olm"}, "spec": {"sourceType": "grpc", "image": "catalog"},
        }),
    ] {
        cluster.store().create(document).unwrap();
    }
    for package in packages {
        let subscription = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": package, "namespace": NS},
            "spec": {"name": package, "channel": "stable", "source": "catalog", "sourceNamespace": "olm"},
        });
        cluster.store().create(subscription).unwrap();
        let later = cluster.now() + Duration::from_secs(120);
        cluster.run_until(later);
    }
    cluster
}

/// A package with one bundle.
fn package(name: &str, version: &str, requires: &str) -> String {
    format!(
        "---\n{{schema: olm.package, name: {name}, defaultChannel: stable}}\n\
         ---\n{{schema: olm.channel, package: {name}, name: stable, entries: [{{name: {name}.v{version}}}]}}\n\
         ---\n{{schema: olm.bundle, package: {name}, name: {name}.v{version}, properties: [\
         {{type: olm.package, value: {{packageName: {name}, version: {version}}}}}, {requires}]}}\n"
    )
}

fn csvs(cluster: &mut Simulation) -> Vec<String> {
    cluster.store().list(&known::CSV, None).map(|object| Key::of(object).name).collect()
}

#[test]
fn in_memory_an_installed_package_of_another_version_does_not_meet_a_requirement() {
    let needs = "{type: olm.package.required, value: {packageName: db, versionRange: '>=2.0.0'}}";
    let catalog = package("app", "1.0.0", needs) + &package("db", "1.0.0", "");
    let mut cluster = subscribed(&catalog, &["db", "app"]);
    assert_eq!(csvs(&mut cluster), ["db.v1.0.0"]);
    let app = cluster.store().get(&Key::new(&known::SUBSCRIPTION, NS, "app")).unwrap();
    let condition = app.pointer("/status/conditions/0").unwrap();
    assert_eq!(condition["reason"], "ConstraintsNotSatisfiable", "{app}");
    assert!(condition["message"].as_str().unwrap().contains(">=2.0.0"), "{app}");

    let catalog = package("app", "1.0.0", needs) + &package("db", "2.1.0", "");
    assert_eq!(csvs(&mut subscribed(&catalog, &["db", "app"])), ["app.v1.0.0", "db.v2.1.0"]);
}

#[test]
fn in_memory_a_constraint_brings_its_dependency() {
    let needs = "{type: olm.constraint, value: {failureMessage: needs db, all: {constraints: [\
                 {failureMessage: '', package: {packageName: db, versionRange: '>=2.0.0'}}]}}}";
    let catalog = package("app", "1.0.0", needs) + &package("db", "2.1.0", "");
    assert_eq!(csvs(&mut subscribed(&catalog, &["app"])), ["app.v1.0.0", "db.v2.1.0"]);
    let catalog = package("app", "1.0.0", needs) + &package("db", "1.0.0", "");
    assert_eq!(csvs(&mut subscribed(&catalog, &["app"])), Vec::<String>::new());
}

/// A program of OLM that has been down for some time.
fn down(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "olm"},
        "spec": {"replicas": 0},
    })
}

/// The same world, some minutes later.
fn minutes_later(mut world: World) -> World {
    let later = world.cluster.store().now() + Duration::from_secs(300);
    world.cluster.run_until(later);
    world
}

#[test]
fn nothing_is_changed_while_olm_is_down() {
    let mut world = minutes_later(World::of("01").with(down("catalog-operator")));
    let error = told(world.install(demo(None)).unwrap_err());
    assert!(error.starts_with("OLM does not run: deployment `catalog-operator`"), "{error}");
    assert!(error.contains("[olm-not-running]") && error.contains("`olmkit olm status`"), "{error}");
    for kind in [&known::SUBSCRIPTION, &known::OPERATOR_GROUP] {
        assert!(world.names(kind).is_empty(), "something was made");
    }
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    let mut world = minutes_later(world.with(down("olm-operator")));
    world.patch_subscription(json!({"spec": {"installPlanApproval": "Automatic"}}));
    let before = world.subscription();
    let error = told(world.upgrade(Some("0.2.0"), None).unwrap_err());
    assert!(error.starts_with("OLM does not run: deployment `olm-operator`"), "{error}");
    assert_eq!(world.subscription(), before);
}

#[test]
fn an_olm_that_is_just_starting_is_waited_for() {
    let mut world = minutes_later(World::of("01").with(down("catalog-operator")));
    let key = Key::new(&known::DEPLOYMENT, "olm", "catalog-operator");
    world.cluster.store().patch(&key, &json!({"spec": {"replicas": 1}})).unwrap();
    assert_eq!(world.install(demo(Some("0.1.0"))).unwrap().installed_csv, "demo.v0.1.0");
    let said = world.said.borrow().join("\n");
    assert!(said.contains("[olm-not-running]; waiting for it (up to 1m)"), "{said}");
}

#[test]
fn a_subscription_whose_catalog_is_gone_names_the_command_that_adds_it() {
    let mut world = settled();
    world.cluster.store().delete(&Key::new(&known::CATALOG_SOURCE, "olm", "catalog"));
    let error = told(world.upgrade(None, None).unwrap_err());
    assert_eq!(
        error,
        "the CatalogSource `catalog` is not in the namespace `olm`\n\
         add it again: `olmkit source add catalog CATALOG -n olm`"
    );
}

/// Lets the pod of a version crash that has one Deployment.
fn crash(world: &mut World, csv: &str) {
    let deployments = world.cluster.store().list(&known::DEPLOYMENT, Some(NS)).cloned().collect::<Vec<_>>();
    let own = deployments.iter().find(|one| one["metadata"]["labels"]["olm.owner"] == csv).unwrap();
    let key = Key::of(own);
    let name = &key.name;
    let down =
        json!({"status": {"availableReplicas": 0, "conditions": [{"type": "Available", "status": "False"}]}});
    world.cluster.store().patch(&key, &down).unwrap();
    let installing = json!({"status": {"phase": "Installing", "reason": "InstallWaiting"}});
    world.cluster.store().patch(&Key::new(&known::CSV, NS, csv), &installing).unwrap();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{name}-5d9-x"), "namespace": NS, "labels": {"pod-template-hash": "5d9"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{name}-5d9"), "uid": "1"}],
        },
        "spec": {"containers": [{"name": "manager", "image": "r/demo:3"}]},
        "status": {"phase": "Running", "containerStatuses": [{
            "name": "manager", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"reason": "Error", "exitCode": 1}},
        }]},
    });
    world.cluster.store().create(pod).unwrap();
}

fn diagnosis_of(world: &mut World, name: Option<&str>) -> Diagnosis {
    let scope = Scope { name: name.map(str::to_owned), namespace: Some(NS.into()) };
    let now = world.cluster.time_of_day();
    diagnose_with_required(&observe(&mut world.cluster, &scope, Some(now)).unwrap(), &scope)
}

/// Its Subscription was deleted, and it crashes: nobody named it.
#[test]
fn a_version_that_crashes_without_a_subscription_is_listed_and_diagnosed() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    world.cluster.store().delete(&Key::new(&known::SUBSCRIPTION, NS, "demo"));
    let list = |world: &mut World| world.run(|engine, _| engine.list(None)).unwrap();
    assert_eq!(list(&mut world), [], "it runs");
    crash(&mut world, "demo.v0.3.0");
    let rows = list(&mut world);
    let [row] = &rows[..] else { panic!("{rows:#?}") };
    assert_eq!(
        (row.title(), row.package.as_str(), row.csv_phase.as_str()),
        ("demo.v0.3.0", "demo", "Installing")
    );
    assert_eq!(row.cause.as_ref().map(|cause| cause.code), Some("crashing"));
    for name in [None, Some("demo"), Some("demo.v0.3.0")] {
        let diagnosis = diagnosis_of(&mut world, name);
        assert_eq!(diagnosis.causes.len(), 1, "{name:?}: {diagnosis:#?}");
        let last = diagnosis.causes[0].repair.last().unwrap().command.to_string();
        assert_eq!(last, "olmkit operator uninstall demo -n ns");
    }
}

/// It runs, and what it requires does not: it was called healthy.
#[test]
fn an_operator_whose_dependency_crashes_is_not_healthy() {
    let mut world = World::of("19b");
    world.install(Install { approval: Some(Approval::Automatic), ..demo(None) }).unwrap();
    let status = |world: &mut World| world.run(|engine, _| engine.status("demo", Some(NS))).unwrap();
    assert!(status(&mut world).is_well());
    let csvs = world.names(&known::CSV);
    let dependency = csvs.iter().find(|name| name.starts_with("cache-db.")).unwrap();
    crash(&mut world, dependency);
    let operator = status(&mut world);
    assert!(!operator.is_well());
    let start = format!("`{dependency}` does not start");
    assert!(operator.problems[0].starts_with(&start), "{operator:#?}");
    let diagnosis = diagnosis_of(&mut world, Some("demo"));
    let [cause] = &diagnosis.causes[..] else { panic!("{diagnosis:#?}") };
    assert_eq!((cause.code, cause.subscription.as_str()), ("crashing", "cache-db-stable-catalog-olm"));
    assert!(cause.consequences.contains(&"subscription/demo requires it".to_owned()), "{cause:#?}");
    assert_eq!(diagnosis.operators.len(), 2);
    // Each is asked for what it is when all are looked at, and it requires nothing of the other.
    let states: Vec<State> = diagnosis_of(&mut world, None).operators.iter().map(|one| one.state).collect();
    assert_eq!(states, [State::Broken, State::Healthy]);
    crash(&mut world, &csvs.iter().find(|name| name.starts_with("demo.")).unwrap().clone());
    assert_eq!(diagnosis_of(&mut world, Some("cache-db")).operators.len(), 1);
}
