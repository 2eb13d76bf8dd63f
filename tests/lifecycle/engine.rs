//! The engine on a simulated cluster: the verbs, what they refuse, and that they go on where they were interrupted.

use std::time::Duration;

use olmkit::lifecycle::api::{Approval, Key, known};
use olmkit::lifecycle::cluster::{Cluster, ClusterError};
use olmkit::lifecycle::engine::{Engine, EngineError, Options};
use olmkit::lifecycle::install::Install;
use olmkit::lifecycle::operator::Operator;
use olmkit::lifecycle::rollback::Rollback;
use olmkit::lifecycle::uninstall::Uninstall;
use olmkit::lifecycle::upgrade::Upgrade;
use serde_json::{Value, json};

use crate::disturbed::Disturbed;
use crate::world::{Memory, NS, World, accept, demo, group, told, without_random};

#[test]
fn installs_the_head_and_leaves_the_approval_automatic() {
    let mut world = World::of("01");
    let operator = world.install(demo(None)).unwrap();
    assert_eq!((operator.installed_csv.as_str(), operator.csv_phase.as_str()), ("demo.v0.3.0", "Succeeded"));
    assert_eq!((operator.approval.as_str(), operator.install_mode.as_str()), ("Automatic", "OwnNamespace"));
    // Again, it is done already.
    let writes = world.run(|engine, _| {
        engine.install(&demo(None)).unwrap();
        engine.planned.len()
    });
    assert_eq!(writes, 0);
}

#[test]
fn upgrades_hop_by_hop_and_restores_the_approval() {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    // Below the head it is Manual, or OLM would go on by itself.
    assert_eq!(world.subscription()["spec"]["installPlanApproval"], "Manual");
    let patch = json!({"spec": {"installPlanApproval": "Automatic"}});
    world.cluster.store().patch(&Key::new(&known::SUBSCRIPTION, NS, "demo"), &patch).unwrap();
    world.said.borrow_mut().clear();
    let operator = world.upgrade(None, None).unwrap();
    assert_eq!((operator.installed_csv.as_str(), operator.approval.as_str()), ("demo.v0.3.0", "Automatic"));
    let subscription = world.subscription();
    assert_eq!(subscription.pointer("/metadata/annotations/olmkit.io~1approval-before"), None);
    let said = world.said.borrow().join("\n");
    let at = |what: &str| said.find(what).unwrap_or_else(|| panic!("{what}\n{said}"));
    assert!(at("demo.v0.2.0: Succeeded") < at("clusterserviceversion/demo.v0.3.0: created"), "{said}");
    assert!(at("2 hops: demo.v0.1.0 → demo.v0.2.0 → demo.v0.3.0") < at("demo.v0.2.0: Succeeded"));
}

#[test]
fn says_before_anything_else_that_olm_passes_over_a_version() {
    let mut world = World::of("04");
    world.install(demo(Some("0.1.0"))).unwrap();
    let before = world.cluster.save();
    insta::assert_snapshot!(told(world.upgrade(Some("0.2.0"), None).unwrap_err()), @"no upgrade path stops at `demo.v0.2.0`: OLM goes from `demo.v0.1.0` to `demo.v0.3.0`, since `demo.v0.3.0` skips `demo.v0.1.0`");
    insta::assert_snapshot!(told(world.upgrade(Some("0.9.9"), None).unwrap_err()), @"
    the channel `stable` has no version `0.9.9`
    it has 0.1.0, 0.2.0, 0.3.0
    ");
    insta::assert_snapshot!(told(world.upgrade(None, Some("stabel")).unwrap_err()), @"
    `demo` has no channel `stabel`
    did you mean `stable`?
    ");
    assert_eq!(world.cluster.save(), before, "something was changed");
    assert_eq!(world.upgrade(None, None).unwrap().installed_csv, "demo.v0.3.0");
    insta::assert_snapshot!(told(world.upgrade(Some("0.1.0"), None).unwrap_err()), @"
    `demo.v0.1.0` is older than what is installed, and OLM does not go back
    `olmkit operator rollback demo -n ns --to 0.1.0` installs it again
    ");
}

#[test]
fn a_channel_without_an_edge_is_refused_where_olm_is_silent() {
    let mut world = World::of("06b");
    world.install(demo(None)).unwrap();
    insta::assert_snapshot!(told(world.upgrade(None, Some("preview")).unwrap_err()), @"
    OLM stays at `demo.v0.2.0`: the channel has no edge from there to its head `demo.v0.9.0`
    ask its publisher for an edge (`replaces`, `skips` or `olm.skipRange`), or choose another channel
    ");
}

#[test]
fn bad_input_is_said_before_anything_is_changed() {
    let check = |mut world: World, request: Install| {
        let before = world.cluster.save();
        let said = told(world.install(request).unwrap_err());
        assert_eq!(world.cluster.save(), before, "something was changed: {said}");
        said
    };
    let misspelt = Install { package: "demmo".into(), ..demo(None) };
    let channel = Install { channel: Some("stabel".into()), ..demo(None) };
    let catalog = Install { catalog: Some(("katalog".into(), None)), ..demo(None) };
    let everywhere = Install { watch: Some(Vec::new()), ..demo(None) };
    let elsewhere = Install { watch: Some(vec!["other".into()]), ..demo(None) };
    let said = [
        check(World::of("01"), misspelt),
        check(World::of("01"), channel),
        check(World::of("01"), demo(Some("0.1.1"))),
        check(World::of("01"), catalog),
        check(World::of("01"), everywhere),
        check(World::of("01").with(group("a", &[NS])), elsewhere),
        check(World::of("01").with(group("a", &[])), demo(None)),
        check(World::of("01").with(group("a", &[NS])).with(group("b", &[NS])), demo(None)),
        check(World::of("01").with(foreign("ns,more")), demo(None)),
        check(World::of("01").with(foreign("")), demo(None)),
        check(World::of("01").with(rival("other")), Install { name: Some("mine".into()), ..demo(None) }),
        check(World::of("01").with(rival("demo")), demo(None)),
    ];
    insta::assert_snapshot!(said.join("\n\n"), @"
    no catalog offers a package `demmo`
    did you mean `demo`?

    `demo` has no channel `stabel`
    did you mean `stable`?

    the channel `stable` has no version `0.1.1`
    it has 0.1.0, 0.2.0, 0.3.0

    no CatalogSource `katalog` can be seen from the namespace `ns`
    did you mean `catalog`?

    the operator does not support the install mode AllNamespaces, only OwnNamespace, SingleNamespace
    choose the namespaces with --watch, or the operator's own with -n

    operatorgroup/a of the namespace selects ns
    choose another namespace for the operator with -n, or omit --watch if the operator supports what this OperatorGroup selects

    operatorgroup/a of the namespace selects all namespaces, and the operator supports only OwnNamespace, SingleNamespace
    choose another namespace for the operator with -n: a namespace has one OperatorGroup, which counts for all of its operators

    the namespace `ns` has 2 OperatorGroups: `a`, `b`, so OLM installs and upgrades nothing there (found 2 operatorGroups, expected 1) [several-operator-groups]
    `kubectl -n ns delete operatorgroup.operators.coreos.com a`: deletes `a` and keeps the OperatorGroup `b`, which is for ns: OLM continues within 10 seconds
    `kubectl -n ns delete operatorgroup.operators.coreos.com b`: instead, deletes `b` and keeps the OperatorGroup `a`, which is for ns: OLM continues within 10 seconds
    `olmkit operator doctor -n ns`: shows what the cause was seen by, and every repair

    the CRD `demos.t01.example.com` belongs to `elsewhere/theirs.v1.0.0`, which watches the same namespaces
    uninstall that operator first, or choose other namespaces with --watch

    the CRD `demos.t01.example.com` belongs to `elsewhere/theirs.v1.0.0`, which watches the same namespaces
    uninstall that operator first, or choose other namespaces with --watch

    subscription/other is for `demo` already; two in one namespace exclude each other
    `olmkit operator upgrade other -n ns` upgrades that one

    subscription/demo already exists, for `demo` from `beta`
    `olmkit operator upgrade demo -n ns --channel stable` changes the channel, `olmkit operator uninstall demo -n ns` removes it
    ");
}

#[test]
fn a_catalog_that_olm_does_not_reach_is_waited_for_and_then_refused() {
    let catalog = Key::new(&known::CATALOG_SOURCE, "olm", "catalog");
    let failing =
        json!({"status": {"connectionState": {"address": "x", "lastObservedState": "TRANSIENT_FAILURE"}}});
    // Its pod comes up after a while.
    let mut world = World::of("01");
    world.cluster.store().patch(&catalog, &failing).unwrap();
    assert_eq!(world.install(demo(None)).unwrap().csv_phase, "Succeeded");
    // Its image is nowhere.
    let mut world = World::of("01");
    world.cluster.store().patch(&catalog, &failing).unwrap();
    world.cluster.registry().catalogs.clear();
    insta::assert_snapshot!(told(world.install(demo(None)).unwrap_err()), @"
    OLM does not reach the catalog `catalog`: its connection is TRANSIENT_FAILURE
    see `kubectl get pods -n olm -l olm.catalogSource=catalog`
    ");
    assert!(world.names(&known::SUBSCRIPTION).is_empty());
    assert!(world.names(&known::OPERATOR_GROUP).is_empty());
}

/// An operator of another namespace that owns the same CRD.
fn foreign(targets: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "theirs.v1.0.0", "namespace": "elsewhere", "annotations": {"olm.targetNamespaces": targets}},
        "spec": {"customresourcedefinitions": {"owned": [
            {"name": "demos.t01.example.com", "kind": "Demo", "version": "v1"},
        ]}},
        "status": {"phase": "Succeeded"},
    })
}

/// A Subscription for the same package.
fn rival(name: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": name, "namespace": NS},
        "spec": {"name": "demo", "channel": "beta", "source": "catalog", "sourceNamespace": "olm"},
    })
}

#[test]
fn the_same_crd_is_allowed_where_nobody_watches_the_same_namespaces() {
    let mut world = World::of("01").with(foreign("elsewhere"));
    assert_eq!(world.install(demo(None)).unwrap().csv_phase, "Succeeded");
}

#[test]
fn without_waiting_the_rest_is_left_to_olm() {
    let options = || Options { wait: false, ..Options::default() };
    let mut world = World::of("01");
    let begun = world.cluster.now();
    world.run_with(options(), |engine, _| engine.install(&demo(Some("0.1.0")))).unwrap();
    assert_eq!(world.cluster.now(), begun, "it has waited");
    assert_eq!(world.subscription()["spec"]["startingCSV"], "demo.v0.1.0");
    assert!(world.names(&known::CSV).is_empty());

    // Each further call does what is due by then, and does not wait either.
    let minute = Duration::from_secs(60);
    for expected in ["plan approved", "installed"] {
        let later = world.cluster.now() + minute;
        world.cluster.run_until(later);
        world.run_with(options(), |engine, _| engine.install(&demo(Some("0.1.0")))).unwrap();
        assert_eq!(world.cluster.now(), later, "{expected}: it has waited");
    }
    assert_eq!(world.names(&known::CSV), ["demo.v0.1.0"]);

    let request = Upgrade { name: "demo".into(), namespace: Some(NS.into()), ..Upgrade::default() };
    for _ in 0..3 {
        world.run_with(options(), |engine, _| engine.upgrade(&request)).unwrap();
        let later = world.cluster.now() + minute;
        world.cluster.run_until(later);
    }
    assert_eq!(world.names(&known::CSV), ["demo.v0.3.0"]);

    let request = Uninstall { name: "demo".into(), namespace: Some(NS.into()), ..Uninstall::default() };
    world.run_with(options(), |engine, _| engine.uninstall(&request)).unwrap();
    assert!(world.names(&known::SUBSCRIPTION).is_empty());
}

#[test]
fn a_plan_that_carries_more_than_was_expected_is_not_approved() {
    let mut world = World::of("26");
    world.subscribe_to_cache_db();
    let request = Install { approval: Some(Approval::Manual), ..demo(None) };
    let said = told(world.install(request.clone()).unwrap_err());
    insta::assert_snapshot!(without_random(&said), @"
    installplan/install-RANDOM also contains `cache-db.v1.0.0`: approving it approves everything
    pass `--accept cache-db.v1.0.0`, or use a separate namespace for the other Subscription
    ");
    assert_eq!(world.names(&known::CSV), Vec::<String>::new());
    let accepting = Install { accept: accept(&["cache-db.v1.0.0"]), ..request };
    assert_eq!(world.install(accepting).unwrap().installed_csv, "demo.v0.1.0");
}

#[test]
fn an_operator_that_never_comes_up_is_named_and_left_as_it_is() {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    world.cluster.registry().missing_images.insert("127.0.0.1:5000/pause:1".into());
    let said = told(world.upgrade(Some("0.2.0"), None).unwrap_err());
    insta::assert_snapshot!(said, @"
    `demo.v0.2.0` does not start, its deployment `demo-controller` is not available after five minutes, and no pod of it can be seen [not-ready]
    `kubectl -n ns describe deployment/demo-controller`: shows its pods and events: they show what it is waiting for
    `olmkit operator rollback demo -n ns --to 0.1.0`: instead, goes back to `demo.v0.1.0`, which still runs: the operator is down for about 30 seconds, custom resources stay, and the approval becomes Manual
    `olmkit operator doctor demo -n ns`: shows what the cause was seen by, and every repair
    ");
    // Once the image is there, the same command goes on.
    world.cluster.registry().missing_images.clear();
    assert_eq!(world.upgrade(Some("0.2.0"), None).unwrap().installed_csv, "demo.v0.2.0");
}

#[test]
fn uninstall_names_what_it_keeps_and_why() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    world.make_demo("01", 3);
    let request = Uninstall { name: "demo".into(), namespace: Some(NS.into()), ..Uninstall::default() };
    let removed = world.run(|engine, _| engine.uninstall(&request)).unwrap();
    let kept: Vec<String> =
        removed.kept.iter().map(|part| format!("{} {}: {}", part.kind, part.name, part.reason)).collect();
    insta::assert_snapshot!(kept.join("\n"), @"
    Demo example: its CRD stays
    ClusterRole demos.t01.example.com-v1-admin: the CRD `demos.t01.example.com` stays
    ClusterRole demos.t01.example.com-v1-crdview: the CRD `demos.t01.example.com` stays
    ClusterRole demos.t01.example.com-v1-edit: the CRD `demos.t01.example.com` stays
    ClusterRole demos.t01.example.com-v1-view: the CRD `demos.t01.example.com` stays
    CustomResourceDefinition demos.t01.example.com: without it its custom resources go too; --delete-crds removes both
    ");
    assert_eq!(world.names(&known::DEPLOYMENT), Vec::<String>::new());
    assert_eq!(world.names(&known::OPERATOR_GROUP), Vec::<String>::new());
    assert_eq!(world.names(&known::CRD), ["demos.t01.example.com"]);
    assert_eq!(world.names(&known::JOB), Vec::<String>::new());
}

#[test]
fn uninstall_with_the_crds_leaves_nothing() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    world.make_demo("01", 3);
    let request = Uninstall {
        name: "demo".into(),
        namespace: Some(NS.into()),
        delete_crds: true,
        ..Uninstall::default()
    };
    let removed = world.run(|engine, _| engine.uninstall(&request)).unwrap();
    assert_eq!(removed.kept, []);
    let left: Vec<Key> = world.cluster.store().all().map(|(key, _)| key.clone()).collect();
    let left: Vec<String> = left.iter().map(ToString::to_string).collect();
    assert_eq!(left, ["namespace/ns", "catalogsource/catalog"]);
}

#[test]
fn rollback_keeps_custom_resources_and_installs_the_old_version() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    world.make_demo("01", 3);
    let request = Rollback { name: "demo".into(), to: "0.2.0".into(), ..Rollback::default() };
    let operator = world.run(|engine, world| engine.rollback(&request, &Memory(world))).unwrap();
    assert_eq!((operator.installed_csv.as_str(), operator.approval.as_str()), ("demo.v0.2.0", "Manual"));
    assert_eq!(world.kept.borrow().len(), 1);
    let said = world.said.borrow().join("\n");
    assert!(said.contains("the operator is down for about 30 s"), "{said}");
    // The custom resource was not touched, and nothing of the rollback is remembered.
    let groups: Vec<Value> = world.cluster.store().list(&known::OPERATOR_GROUP, None).cloned().collect();
    assert_eq!(groups[0].pointer("/metadata/annotations/olmkit.io~1rollback"), None);
    assert!(world.cluster.store().all().any(|(key, _)| key.kind == "Demo"));
}

#[test]
fn rollback_refuses_what_would_be_lost() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    world.make_demo("01", 50);
    let request = Rollback { name: "demo".into(), to: "0.2.0".into(), ..Rollback::default() };
    let before = world.cluster.save();
    let mut said = Vec::new();
    let mut refused = |world: &mut World| {
        said.push(told(world.run(|engine, world| engine.rollback(&request, &Memory(world))).unwrap_err()));
    };
    // The old schema allows less than what is stored.
    world.limit_size("demo.v0.2.0", 9);
    refused(&mut world);
    // The old CRD does not have the version that is stored.
    world.change_crd("demo.v0.2.0", |crd| crd["spec"]["versions"][0]["name"] = json!("v1alpha1"));
    refused(&mut world);
    insta::assert_snapshot!(said.join("\n"), @"
    `ns/example` of `demos.t01.example.com` does not fit the old schema: spec.size: 50 is greater than 9
    change it so that it fits both
    objects of `demos.t01.example.com` are stored at v1, which the old CRD does not have
    migrate them to a version that it has, and remove the other one from `status.storedVersions`
    ");
    assert_eq!(world.cluster.save(), before);
}

/// Kills a verb at seeded moments, runs it again each time, and expects it to end at the goal.
fn killed_and_run_again(
    mut world: World,
    verb: impl Fn(&mut Engine<'_>, &World) -> Result<Operator, EngineError>,
    goal: &str,
) {
    let mut interrupted = 0;
    let start = world.cluster.clone();
    for seed in 0..50_usize {
        world.cluster = start.clone();
        let mut left = 4;
        let operator = loop {
            // Early and late moments, some of them right after another.
            let calls = if left == 0 { usize::MAX } else { (seed * 37 + left * 101) % 150 };
            left = left.saturating_sub(1);
            let mut cluster = std::mem::take(&mut world.cluster);
            let done = {
                let mut killed = Disturbed { calls, ..Disturbed::not(&mut cluster) };
                verb(&mut Engine::new(&mut killed, &world, &world, Options::default()), &world)
            };
            world.cluster = cluster;
            match done {
                Ok(operator) => break operator,
                Err(EngineError::Cluster(ClusterError::Interrupted)) => interrupted += 1,
                Err(error) => panic!("seed {seed}: {error}"),
            }
        };
        assert_eq!(operator.installed_csv, goal, "seed {seed}");
        assert_eq!(operator.csv_phase, "Succeeded", "seed {seed}");
        let annotations = world.subscription().pointer("/metadata/annotations").cloned().unwrap_or_default();
        assert_eq!(annotations.get("olmkit.io/approval-before"), None, "seed {seed}");
    }
    assert!(interrupted >= 50, "only {interrupted} interruptions");
}

#[test]
fn an_upgrade_that_is_killed_goes_on_when_it_is_run_again() {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    let patch = json!({"spec": {"installPlanApproval": "Automatic"}});
    world.cluster.store().patch(&Key::new(&known::SUBSCRIPTION, NS, "demo"), &patch).unwrap();
    let request = Upgrade { name: "demo".into(), namespace: Some(NS.into()), ..Upgrade::default() };
    killed_and_run_again(world, |engine, _| engine.upgrade(&request), "demo.v0.3.0");
}

#[test]
fn an_install_that_is_killed_goes_on_when_it_is_run_again() {
    let request = demo(Some("0.2.0"));
    killed_and_run_again(World::of("01"), |engine, _| engine.install(&request), "demo.v0.2.0");
}

#[test]
fn a_rollback_that_is_killed_goes_on_when_it_is_run_again() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    let request = Rollback { name: "demo".into(), to: "0.1.0".into(), ..Rollback::default() };
    let verb = |engine: &mut Engine<'_>, world: &World| engine.rollback(&request, &Memory(world));
    killed_and_run_again(world, verb, "demo.v0.1.0");
}

/// Without a readiness probe Kubernetes counts a container that crashes again and again as available whenever it runs.
#[test]
fn a_version_that_has_crashed_must_stay_up_for_longer() {
    let installed_in = |exit: i64| {
        let mut world = World::of("01").with(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "demo-controller-5f-x", "namespace": NS, "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "demo-controller-5f", "uid": "1"},
            ]},
            "status": {"phase": "Running", "containerStatuses": [
                {"name": "manager", "ready": true, "lastState": {"terminated": {"exitCode": exit}}},
            ]},
        }));
        let begun = world.cluster.now();
        let options = Options { settle: Duration::from_secs(1), ..Options::default() };
        world.run_with(options, |engine, _| engine.install(&demo(None))).unwrap();
        world.cluster.now() - begun
    };
    assert_eq!(installed_in(1) - installed_in(0), Duration::from_secs(14));
}
