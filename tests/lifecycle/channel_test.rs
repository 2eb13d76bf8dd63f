//! `operator test` on simulated clusters: what it finds, what it refuses, and that it leaves a cluster as it was.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use olmkit::lifecycle::api::{Key, known};
use olmkit::lifecycle::channel_test::{
    Edges, Outcome, Report, Samples, Settings, Spectator, TestResult, prepare, run,
};
use olmkit::lifecycle::cluster::{Cluster, ClusterError};
use olmkit::lifecycle::engine::{EngineError, Options, Progress};
use olmkit::lifecycle::simulate::Simulation;
use serde_json::{Value, json};

use crate::disturbed::Disturbed;
use crate::world::{NS, World, group, told};

/// The namespace of the tests.
const OWN: &str = "channel-test";

/// Remembers the lines of the table.
#[derive(Default)]
struct Table(RefCell<Vec<String>>);

impl Progress for Table {
    fn state(&self, _: Duration, _: &str, _: &str) {}

    fn said(&self, _: Duration, _: &str) {}
}

impl Spectator for Table {
    fn begins(&self, _: usize, _: usize, _: &str, _: &str) {}

    fn ends(&self, result: &TestResult) {
        let why = match (&result.failure, &result.reason) {
            (Some(failure), _) => format!(": {} [{}]", failure.sentence, failure.code),
            (None, Some(reason)) => format!(": {reason}"),
            (None, None) => String::new(),
        };
        self.0.borrow_mut().push(format!("{}: {}{why}", result.name, result.outcome.as_str()));
    }
}

fn settings() -> Settings {
    Settings {
        package: "demo".into(),
        catalog: None,
        catalog_image: None,
        catalog_dir: None,
        channels: Vec::new(),
        namespace: OWN.into(),
        edges: Edges::All,
        against: None,
        adopt: false,
        samples: Samples::Given(vec![sample("t01.example.com/v1")]),
        sample_timeout: Duration::from_secs(60),
        step: Options {
            timeout: Duration::from_secs(900),
            settle: Duration::from_secs(5),
            ..Options::default()
        },
        accept_missing_images: false,
        keep_failed: false,
        simulated: true,
    }
}

fn sample(api_version: &str) -> Value {
    json!({"apiVersion": api_version, "kind": "Demo", "metadata": {"name": "example"}, "spec": {"size": 3}})
}

/// Objects by name, without what OLM keeps of groups that are gone.
fn keys(cluster: &mut Simulation) -> BTreeSet<Key> {
    cluster.store().all().map(|(key, _)| key.clone()).collect()
}

/// Runs the tests; the table, the report and what ended it early.
fn tested(
    world: &mut World,
    cluster: &mut dyn Cluster,
    settings: &Settings,
) -> Result<(String, Report, Option<EngineError>), EngineError> {
    let table = Table::default();
    let prepared = prepare(cluster, world, &table, settings)?;
    let (report, ended) = run(cluster, world, &table, settings, &prepared);
    Ok((table.0.take().join("\n"), report, ended))
}

/// On the simulation of a world itself.
fn tested_in(
    world: &mut World,
    settings: &Settings,
) -> Result<(String, Report, Option<EngineError>), EngineError> {
    let mut cluster = std::mem::take(&mut world.cluster);
    let done = tested(world, &mut cluster, settings);
    world.cluster = cluster;
    done
}

#[test]
fn every_version_and_every_edge_and_nothing_is_left() {
    let mut world = World::of("01");
    let before = keys(&mut world.cluster);
    let (table, report, ended) = tested_in(&mut world, &settings()).unwrap();
    insta::assert_snapshot!(table, @"
    install 0.3.0: passed
    install 0.2.0: passed
    0.2.0 → 0.3.0: passed
    install 0.1.0: passed
    0.1.0 → 0.2.0: passed
    0.1.0 → 0.2.0 → 0.3.0: passed
    ");
    assert!(ended.is_none() && report.left.is_empty(), "{ended:?} {:?}", report.left);
    assert!(report.tests.iter().all(|test| test.samples == 1), "{report:?}");
    assert_eq!(keys(&mut world.cluster), before);
}

#[test]
fn an_operator_that_crashes_is_named_and_blocks_what_leads_over_it() {
    let mut world = World::of("01");
    let before = keys(&mut world.cluster);
    let image = "/spec/install/spec/deployments/0/spec/template/spec/containers/0/image";
    world.change("demo.v0.2.0", "ClusterServiceVersion", |csv| {
        *csv.pointer_mut(image).unwrap() = json!("r/crash:v2")
    });
    world.cluster.registry().missing_images.insert("r/crash:v2".into());
    let (table, report, ended) = tested_in(&mut world, &settings()).unwrap();
    insta::assert_snapshot!(table, @"
    install 0.3.0: passed
    install 0.2.0: failed: `demo.v0.2.0` does not start, its deployment `demo-controller` is not available after five minutes, and no pod of it can be seen [not-ready]
    0.2.0 → 0.3.0: not run: `install 0.2.0` failed
    install 0.1.0: passed
    0.1.0 → 0.2.0: failed: `demo.v0.2.0` does not start, its deployment `demo-controller` is not available after five minutes, and no pod of it can be seen [not-ready]
    0.1.0 → 0.2.0 → 0.3.0: not run: `0.1.0 → 0.2.0` failed
    ");
    assert!(ended.is_none() && report.left.is_empty(), "{ended:?} {:?}", report.left);
    assert_eq!(keys(&mut world.cluster), before);
    let failed = report.tests.iter().find(|test| test.outcome == Outcome::Failed).unwrap();
    assert!(failed.log.iter().any(|line| line.contains("0 of 1 available")), "{:?}", failed.log);
}

#[test]
fn a_run_that_keeps_what_failed_ends_with_the_first_failure() {
    let mut world = World::of("01");
    world.cluster.registry().missing_images.insert("r/crash:v2".into());
    let image = "/spec/install/spec/deployments/0/spec/template/spec/containers/0/image";
    world.change("demo.v0.2.0", "ClusterServiceVersion", |csv| {
        *csv.pointer_mut(image).unwrap() = json!("r/crash:v2")
    });
    let keeping = Settings { keep_failed: true, ..settings() };
    let (table, report, ended) = tested_in(&mut world, &keeping).unwrap();
    insta::assert_snapshot!(table, @"
    install 0.3.0: passed
    install 0.2.0: failed: `demo.v0.2.0` does not start, its deployment `demo-controller` is not available after five minutes, and no pod of it can be seen [not-ready]
    0.2.0 → 0.3.0: not run: the cluster is kept as `install 0.2.0` has left it
    install 0.1.0: not run: the cluster is kept as `install 0.2.0` has left it
    0.1.0 → 0.2.0: not run: the cluster is kept as `install 0.2.0` has left it
    0.1.0 → 0.2.0 → 0.3.0: not run: the cluster is kept as `install 0.2.0` has left it
    ");
    assert!(ended.is_none() && report.left.is_empty(), "{ended:?} {:?}", report.left);
    assert!(keys(&mut world.cluster).iter().any(|key| key.name == "demo.v0.2.0"));
}

#[test]
fn a_run_that_keeps_what_failed_keeps_what_a_signal_has_ended() {
    let keeping = Settings { keep_failed: true, ..settings() };
    let mut kept = 0;
    for calls in moments() {
        let mut world = World::of("01");
        let mut inner = std::mem::take(&mut world.cluster);
        let mut cluster = Disturbed { calls, is_signal: true, ..Disturbed::not(&mut inner) };
        let Ok((_, report, Some(_))) = tested(&mut world, &mut cluster, &keeping) else { continue };
        assert!(report.left.is_empty(), "after {calls}: {:?}", report.left);
        let keys = keys(&mut inner);
        assert!(
            keys.iter().any(|key| key.kind == "Namespace" && key.name == "channel-test"),
            "after {calls}"
        );
        kept += usize::from(keys.iter().any(|key| key.kind == "ClusterServiceVersion"));
    }
    assert!(kept > 5, "only {kept} runs were interrupted with something installed");
}

#[test]
fn a_custom_resource_that_the_new_schema_refuses_is_found() {
    let mut world = World::of("01");
    world.limit_size("demo.v0.3.0", 2);
    let (table, _, _) = tested_in(&mut world, &settings()).unwrap();
    insta::assert_snapshot!(table, @"
    install 0.3.0: failed: the sample demo/example was refused while `demo.v0.3.0` is installed: spec.size: 3 is greater than 2 [sample-refused]
    install 0.2.0: passed
    0.2.0 → 0.3.0: failed: `channel-test/example` of `demos.t01.example.com` does not fit the schema of `demo.v0.3.0`: spec.size: 3 is greater than 2 [crd-invalidates-resources]
    install 0.1.0: passed
    0.1.0 → 0.2.0: passed
    0.1.0 → 0.2.0 → 0.3.0: not run: `0.2.0 → 0.3.0` failed
    ");
}

#[test]
fn a_version_that_is_no_longer_served_is_found_after_the_hop() {
    let mut world = World::of("01");
    world.change_crd("demo.v0.3.0", |crd| {
        let versions = crd.pointer_mut("/spec/versions").unwrap().as_array_mut().unwrap();
        let mut newer = versions[0].clone();
        newer["name"] = json!("v2");
        newer["storage"] = json!(false);
        versions[0]["served"] = json!(false);
        versions.push(newer);
    });
    world.change("demo.v0.3.0", "ClusterServiceVersion", |csv| {
        csv["spec"]["customresourcedefinitions"]["owned"][0]["version"] = json!("v2");
    });
    let (table, _, _) = tested_in(&mut world, &settings()).unwrap();
    insta::assert_snapshot!(table, @"
    install 0.3.0: passed
    install 0.2.0: passed
    0.2.0 → 0.3.0: failed: `demos.t01.example.com` is no longer served at v1, only at v2: clients of demo/example in channel-test fail [version-not-served]
    install 0.1.0: passed
    0.1.0 → 0.2.0: passed
    0.1.0 → 0.2.0 → 0.3.0: not run: `0.2.0 → 0.3.0` failed
    ");
}

#[test]
fn a_cluster_that_has_the_package_is_refused_and_nothing_is_changed() {
    let mut world = World::of("01");
    world.install(crate::world::demo(None)).unwrap();
    world.make_demo("01", 7);
    let before = world.cluster.save();
    let used = told(tested_in(&mut world, &settings()).unwrap_err());
    let request = olmkit::lifecycle::uninstall::Uninstall { name: "demo".into(), ..Default::default() };
    assert_eq!(world.cluster.save(), before);
    world.run(|engine, _| engine.uninstall(&request)).unwrap();
    let left = told(tested_in(&mut world, &settings()).unwrap_err());
    insta::assert_snapshot!(format!("{used}\n\n{left}"), @"
    the cluster has an operator of the package already: subscription/demo in ns
    use a cluster without it, or pass --adopt to install beside it, in other namespaces

    the cluster has a CRD of the package already: `demos.t01.example.com`
    use a cluster without it, or pass --adopt: the CRD and its custom resources then stay, and the tests update it
    ");
    // What was there stays, and its custom resources with it.
    let adopting = Settings { adopt: true, ..settings() };
    let (_, report, ended) = tested_in(&mut world, &adopting).unwrap();
    assert!(ended.is_none() && report.failed == 0 && report.left.is_empty(), "{ended:?} {report:?}");
    let names = world.names(&known::CRD);
    assert_eq!(names, ["demos.t01.example.com"]);
    let demos: Vec<Key> = keys(&mut world.cluster).into_iter().filter(|key| key.kind == "Demo").collect();
    assert_eq!(demos.iter().map(Key::placed).collect::<Vec<_>>(), ["demo/example in ns"]);
}

/// The moments at which a run is cut: all through it, at steps that share no factor with what it does.
fn moments() -> impl Iterator<Item = usize> {
    (0..20).map(|moment| 20 + moment * 131)
}

#[test]
fn a_signal_at_any_moment_leaves_the_cluster_as_it_was() {
    let mut cut_short = 0;
    for calls in moments() {
        let mut world = World::of("01");
        let before = keys(&mut world.cluster);
        let mut inner = std::mem::take(&mut world.cluster);
        let mut cluster = Disturbed { calls, is_signal: true, ..Disturbed::not(&mut inner) };
        match tested(&mut world, &mut cluster, &settings()) {
            Ok((_, report, ended)) => {
                assert_eq!(report.left, Vec::<String>::new(), "after {calls}");
                cut_short += usize::from(ended.is_some());
            }
            Err(error) => assert!(matches!(error, EngineError::Cluster(ClusterError::Interrupted))),
        }
        assert_eq!(keys(&mut inner), before, "after {calls}");
    }
    assert!(cut_short > 10, "only {cut_short} runs were interrupted");
}

#[test]
fn what_a_run_that_was_killed_has_left_is_removed_by_the_next_one() {
    for calls in moments().step_by(2) {
        let mut world = World::of("01");
        let before = keys(&mut world.cluster);
        let mut inner = std::mem::take(&mut world.cluster);
        let mut cluster = Disturbed { calls, ..Disturbed::not(&mut inner) };
        let _ = tested(&mut world, &mut cluster, &settings());
        world.cluster = inner;
        let (table, report, ended) =
            tested_in(&mut world, &settings()).unwrap_or_else(|error| panic!("{calls}: {error}"));
        assert!(ended.is_none() && report.failed + report.not_run == 0, "after {calls}: {ended:?}\n{table}");
        assert_eq!(keys(&mut world.cluster), before, "after {calls}");
    }
}

#[test]
fn a_namespace_that_somebody_uses_is_refused() {
    let mut world = World::of("01").with(group("theirs", &[OWN]));
    let error = told(tested_in(&mut world, &Settings { namespace: NS.into(), ..settings() }).unwrap_err());
    insta::assert_snapshot!(error, @"
    the namespace `ns` is in use: operatorgroup/theirs in ns
    name an empty namespace with -n, or one that does not exist yet
    ");
}

#[test]
fn a_namespace_that_holds_anything_is_not_empty() {
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password", "namespace": NS}});
    let mut world = World::of("01").with(secret);
    let error = told(tested_in(&mut world, &Settings { namespace: NS.into(), ..settings() }).unwrap_err());
    assert!(error.starts_with("the namespace `ns` is in use: secret/password in ns\n"), "{error}");
    // What every namespace has does not count.
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt", "namespace": NS}});
    let mut world = World::of("01").with(map);
    let (_, report, _) = tested_in(&mut world, &Settings { namespace: NS.into(), ..settings() }).unwrap();
    assert_eq!(report.passed, 6);
}

#[test]
fn a_field_of_a_custom_resource_that_the_new_schema_drops_is_named() {
    let mut world = World::of("01");
    world.change_crd("demo.v0.3.0", |crd| {
        let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
        *crd.pointer_mut(spec).unwrap() =
            json!({"type": "object", "properties": {"count": {"type": "integer"}}});
    });
    let (table, _, _) = tested_in(&mut world, &settings()).unwrap();
    insta::assert_snapshot!(table, @"
    install 0.3.0: passed
    install 0.2.0: passed
    0.2.0 → 0.3.0: failed: the schema of `demos.t01.example.com` drops fields of demo/example in channel-test: spec: `size` is not a field of the schema [sample-pruned]
    install 0.1.0: passed
    0.1.0 → 0.2.0: passed
    0.1.0 → 0.2.0 → 0.3.0: not run: `0.2.0 → 0.3.0` failed
    ");
}

#[test]
fn a_crd_that_changes_its_scope_is_named() {
    for (path, to) in [("/spec/scope", "Cluster"), ("/spec/names/kind", "Other")] {
        let mut world = World::of("01");
        world.change_crd("demo.v0.3.0", |crd| *crd.pointer_mut(path).unwrap() = json!(to));
        let settings = Settings { samples: Samples::None, ..settings() };
        let (table, _, _) = tested_in(&mut world, &settings).unwrap();
        let field = path.trim_start_matches('/').replace('/', ".");
        let expected = format!(
            "0.2.0 → 0.3.0: failed: `demo.v0.3.0` cannot be installed: its CRD `demos.t01.example.com` changes `{field}`"
        );
        assert!(table.contains(&expected), "{table}");
    }
}

/// What a run has left that was killed in the middle.
fn killed() -> World {
    let mut world = World::of("01");
    let mut inner = std::mem::take(&mut world.cluster);
    let mut cluster = Disturbed { calls: 900, ..Disturbed::not(&mut inner) };
    let _ = tested(&mut world, &mut cluster, &settings());
    world.cluster = inner;
    assert!(world.names(&known::CONFIG_MAP).contains(&"olmkit-operator-test".to_owned()), "it left no note");
    world
}

/// As on a cluster that others use too.
fn shared() -> Settings {
    Settings { simulated: false, ..settings() }
}

#[test]
fn a_run_that_was_killed_locks_nobody_out_for_long() {
    let mut world = killed();
    let begun = world.cluster.now();
    let mut cluster = std::mem::take(&mut world.cluster);
    let prepared = prepare(&mut cluster, &world, &Table::default(), &shared());
    prepared.unwrap_or_else(|error| panic!("{error}"));
    let waited = cluster.now() - begun;
    assert!(waited <= Duration::from_secs(60), "{waited:?}");
    world.cluster = cluster;
    let (table, report, ended) = tested_in(&mut world, &shared()).unwrap();
    assert!(ended.is_none() && report.passed == 6, "{ended:?}\n{table}");
}

/// What somebody else who is at work on the cluster does: it says so.
fn renew(cluster: &mut Simulation) {
    let key = Key::new(&known::CONFIG_MAP, OWN, "olmkit-operator-test");
    let renewed = cluster.time_of_day().to_string();
    cluster.store().patch(&key, &json!({"data": {"renewed": renewed}})).unwrap();
}

#[test]
fn a_run_that_is_at_work_is_left_alone() {
    let mut world = killed();
    let mut inner = std::mem::take(&mut world.cluster);
    let before = keys(&mut inner);
    let mut cluster = Disturbed { neighbour: renew, ..Disturbed::not(&mut inner) };
    let error = told(tested(&mut world, &mut cluster, &shared()).unwrap_err());
    assert!(
        error.starts_with("another run of `operator test` works in the namespace `channel-test`"),
        "{error}"
    );
    assert_eq!(keys(&mut inner), before);
}

#[test]
fn a_run_whose_place_another_one_has_taken_ends_and_removes_nothing() {
    let mut world = World::of("01");
    let mut cluster = std::mem::take(&mut world.cluster);
    let table = Table::default();
    let settings = shared();
    let prepared = prepare(&mut cluster, &world, &table, &settings).unwrap();
    // The other one has begun since.
    let note = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"package": "demo", "holder": "other", "renewed": "1"},
        "metadata": {"name": "olmkit-operator-test", "namespace": OWN, "labels": {"app.kubernetes.io/created-by": "olmkit"}},
    });
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": OWN, "labels": {"app.kubernetes.io/created-by": "olmkit"}},
    });
    for object in [namespace, note] {
        cluster.store().create(object).unwrap();
    }
    let before = keys(&mut cluster);
    let (report, ended) = run(&mut cluster, &world, &table, &settings, &prepared);
    let error = told(ended.unwrap());
    assert!(
        error.starts_with("another run of `operator test` works in the namespace `channel-test`"),
        "{error}"
    );
    assert!(report.passed == 0 && report.left.is_empty(), "{report:?}");
    assert_eq!(keys(&mut cluster), before);
}

/// OLM behind its time: it takes the first Subscription after a clean-up for the one that was there, with a version that is gone.
/// Seen on OLM 0.46 under load.
fn confuse(cluster: &mut Simulation) {
    let (sub, told) =
        (Key::new(&known::SUBSCRIPTION, OWN, "demo"), Key::new(&known::CONFIG_MAP, OWN, "told"));
    let store = cluster.store();
    let count = store.get(&sub).and_then(|found| found.pointer("/metadata/uid")).cloned();
    let Some(uid) = count.filter(|_| store.get(&told).is_none()) else { return };
    let csv = json!({"installedCSV": "demo.v0.9.9", "currentCSV": "demo.v0.9.9", "state": "UpgradePending"});
    store.patch(&sub, &json!({"status": csv})).unwrap();
    let told = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "told", "namespace": OWN}, "data": {"uid": uid},
    });
    store.create(told).unwrap();
}

#[test]
fn an_install_that_olm_takes_for_the_one_before_is_done_again() {
    let mut world = World::of("01");
    let mut inner = std::mem::take(&mut world.cluster);
    let mut cluster = Disturbed { neighbour: confuse, ..Disturbed::not(&mut inner) };
    let (table, report, ended) = tested(&mut world, &mut cluster, &settings()).unwrap();
    assert!(ended.is_none() && report.failed == 0 && report.passed == 6, "{ended:?}\n{table}");
    let told = Key::new(&known::CONFIG_MAP, OWN, "told");
    assert!(inner.store().get(&told).is_some(), "OLM was not confused");
}

#[test]
fn the_catalog_of_a_run_stays_until_its_last_test() {
    let mut world = World::of("01");
    let before = keys(&mut world.cluster);
    let settings = Settings { catalog_image: Some("catalog".into()), ..settings() };
    let (table, report, ended) = tested_in(&mut world, &settings).unwrap();
    assert!(ended.is_none() && report.passed == 6, "{ended:?}\n{table}");
    assert_eq!(report.catalog, format!("{OWN}/olmkit-test"));
    assert_eq!(keys(&mut world.cluster), before);
}

/// What the cluster of a run has whose nodes cannot pull the image that serves the catalog.
fn without_server(cluster: &mut Simulation) {
    cluster.registry().catalogs.clear();
    let waiting = json!({"reason": "ErrImagePull", "message": "r/opm:v1: not found"});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "olmkit-test-abcde", "namespace": OWN, "labels": {"olm.catalogSource": "olmkit-test"}},
        "spec": {
            "initContainers": [{"name": "extract-content", "image": "catalog"}],
            "containers": [{"name": "registry-server", "image": "r/opm:v1"}],
        },
        "status": {"phase": "Pending", "containerStatuses": [
            {"name": "registry-server", "image": "r/opm:v1", "ready": false, "restartCount": 0, "state": {"waiting": waiting}},
        ]},
    });
    // It is there already after the first time.
    let _ = cluster.store().create(pod);
}

#[test]
fn a_catalog_whose_server_cannot_be_pulled_is_named_with_its_image() {
    let mut world = World::of("01");
    let dir = Some("/configs".to_owned());
    let settings = Settings { catalog_image: Some("catalog".into()), catalog_dir: dir, ..settings() };
    let mut inner = std::mem::take(&mut world.cluster);
    let mut cluster = Disturbed { neighbour: without_server, ..Disturbed::not(&mut inner) };
    let (_, report, ended) = tested(&mut world, &mut cluster, &settings).unwrap();
    assert!(report.passed == 0 && report.failed == 0, "{report:?}");
    let said = told(ended.unwrap());
    assert!(
        said.contains("cannot pull the image `r/opm:v1`") && said.contains("[catalog-image-pull]"),
        "{said}"
    );
}

#[test]
fn a_run_with_a_catalog_of_its_own_that_was_killed_is_taken_over() {
    let mut world = World::of("01");
    // An image that has no server.
    let dir = Some("/configs".to_owned());
    let settings = Settings { catalog_image: Some("catalog".into()), catalog_dir: dir, ..settings() };
    let mut inner = std::mem::take(&mut world.cluster);
    let before = keys(&mut inner);
    let mut cluster = Disturbed { calls: 900, ..Disturbed::not(&mut inner) };
    let _ = tested(&mut world, &mut cluster, &settings);
    world.cluster = inner;
    let left = world.cluster.store().get(&Key::new(&known::CATALOG_SOURCE, OWN, "olmkit-test"));
    let extract = left.and_then(|left| left.pointer("/spec/grpcPodConfig/extractContent/catalogDir"));
    assert_eq!(extract, Some(&json!("/configs")), "it left no catalog, or one without a server");
    let (table, report, ended) = tested_in(&mut world, &settings).unwrap();
    assert!(ended.is_none() && report.passed == 6, "{ended:?}\n{table}");
    assert_eq!(keys(&mut world.cluster), before);
}

#[test]
fn who_waits_for_an_earlier_run_says_so_when_that_ends_early() {
    let mut world = killed();
    let mut inner = std::mem::take(&mut world.cluster);
    let awaited = "the earlier run in `channel-test`, which takes up to 40 s";
    let mut cluster = Disturbed { calls: 60, ..Disturbed::not(&mut inner) };
    let interrupted = prepare(&mut cluster, &world, &Table::default(), &shared()).unwrap_err();
    assert!(matches!(*interrupted.error, EngineError::Cluster(ClusterError::Interrupted)), "{interrupted}");
    assert_eq!(interrupted.awaited, awaited);
    let mut inner = inner.within(Duration::ZERO, None);
    let late = prepare(&mut inner, &world, &Table::default(), &shared()).unwrap_err();
    assert_eq!(late.to_string(), format!("timed out after 0 s waiting for {awaited}"));
}
