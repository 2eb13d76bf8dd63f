//! The repairs that the doctor applies itself: that they help, and that they do nothing where they could do harm.

use std::time::Duration;

use olmkit::lifecycle::api::{Key, known};
use olmkit::lifecycle::cluster::Cluster as _;
use olmkit::lifecycle::doctor::{Diagnosis, Fix, Observation, Scope, diagnose, observe};
use olmkit::lifecycle::engine::Options;
use serde_json::{Value, json};

use crate::world::{NS, World, demo};

fn diagnosis(world: &mut World) -> Diagnosis {
    let now = world.cluster.time_of_day();
    let seen: Observation = observe(&mut world.cluster, &Scope::default(), Some(now)).unwrap();
    diagnose(&seen, &Scope::default())
}

fn fix(world: &mut World) -> Vec<Fix> {
    let diagnosis = diagnosis(world);
    let before = world.cluster.save();
    let dry = Options { dry_run: true, ..Options::default() };
    let planned = world.run_with(dry, |engine, _| engine.fix(&diagnosis)).unwrap();
    assert!(planned.iter().all(|fix| !fix.done));
    assert_eq!(world.cluster.save(), before, "a dry run has changed something");
    let fixes = world.run(|engine, _| engine.fix(&diagnosis)).unwrap();
    let said = |fixes: &[Fix]| fixes.iter().map(|fix| (fix.fits, fix.what.to_string())).collect::<Vec<_>>();
    assert_eq!(said(&planned), said(&fixes));
    fixes
}

fn later(world: &mut World, seconds: u64) {
    let at = world.cluster.store().now() + Duration::from_secs(seconds);
    world.cluster.run_until(at);
}

fn phase(world: &mut World, csv: &str) -> Value {
    let found = world.cluster.store().get(&Key::new(&known::CSV, NS, csv)).cloned().unwrap_or_default();
    found["status"]["phase"].clone()
}

fn delete_csv(world: &mut World, name: &str) {
    let key = Key::new(&known::CSV, NS, name);
    world.cluster.store().delete(&key);
    world.cluster.store().patch(&key, &json!({"metadata": {"finalizers": null}})).ok();
}

#[test]
fn a_subscription_that_remembers_a_deleted_version_is_made_anew() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    delete_csv(&mut world, "demo.v0.3.0");
    later(&mut world, 30);
    assert_eq!(diagnosis(&mut world).causes[0].code, "csv-deleted");
    let before = world.subscription();
    let fixes = fix(&mut world);
    assert!(fixes[0].done, "{fixes:?}");
    let after = world.subscription();
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    let mut expected = before["spec"].clone();
    expected["startingCSV"] = json!("demo.v0.3.0");
    assert_eq!((&expected, &before["metadata"]["labels"]), (&after["spec"], &after["metadata"]["labels"]));
    later(&mut world, 120);
    assert_eq!(phase(&mut world, "demo.v0.3.0"), "Succeeded");
}

/// Where it began is long past: OLM would go back to it, and its CRD with it.
#[test]
fn a_subscription_that_is_made_anew_does_not_go_back_to_where_it_began() {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    world.upgrade(None, None).unwrap();
    assert_eq!(world.subscription()["spec"]["startingCSV"], "demo.v0.1.0");
    delete_csv(&mut world, "demo.v0.3.0");
    later(&mut world, 30);
    let found = diagnosis(&mut world);
    let command = found.causes[0].repair.last().unwrap().command.to_string();
    assert!(command.contains("\"startingCSV\":\"demo.v0.3.0\"") && !command.contains("v0.1.0"), "{command}");
    let fixes = fix(&mut world);
    assert!(
        fixes[0].what.to_string().contains("you have to approve: `olmkit operator approve demo -n ns`"),
        "{fixes:?}"
    );
    later(&mut world, 120);
    assert_eq!(phase(&mut world, "demo.v0.1.0"), Value::Null);
    world.run(|engine, _| engine.approve("demo", Some(NS), &Default::default())).unwrap();
    assert_eq!(phase(&mut world, "demo.v0.3.0"), "Succeeded");
}

#[test]
fn a_failed_plan_is_retried_only_once_its_cause_is_gone() {
    let mut world = World::of("01");
    world.limit_size("demo.v0.2.0", 9);
    world.install(demo(Some("0.1.0"))).unwrap();
    world.make_demo("01", 50);
    let accepted = crate::world::accept(&["crd-invalidates-resources"]);
    let approved = world.run(|engine, _| engine.approve("demo", Some(NS), &accepted));
    assert!(approved.is_err());
    later(&mut world, 120);
    assert_eq!(diagnosis(&mut world).causes[0].code, "crd-invalidates-resources");
    let fixes = fix(&mut world);
    assert!(!fixes[0].fits, "{fixes:?}");
    assert!(fixes[0].what.to_string().starts_with("its cause is still there: `ns/example`"), "{fixes:?}");
    let example = Key {
        group: "t01.example.com".into(),
        kind: "Demo".into(),
        namespace: NS.into(),
        name: "example".into(),
    };
    world.cluster.store().patch(&example, &json!({"spec": {"size": 3}})).unwrap();
    let fixes = fix(&mut world);
    assert!(fixes[0].done, "{fixes:?}");
    later(&mut world, 120);
    assert_eq!(phase(&mut world, "demo.v0.2.0"), "Succeeded");
}

/// A Job that unpacks a bundle, with its ConfigMap; `failed` is its condition.
fn unpacking(failed: bool) -> [Value; 2] {
    let conditions = if failed {
        json!([{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long"}])
    } else {
        json!([])
    };
    let image = "registry.example.com/demo:v0.1.0";
    [
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": "0a1b", "namespace": "olm", "labels": {"operatorframework.io/bundle-unpack-ref": "0a1b"},
                "ownerReferences": [{"kind": "ConfigMap", "name": "0a1b"}],
            },
            "spec": {"template": {"spec": {"initContainers": [{"name": "pull", "image": image}]}}},
            "status": {"conditions": conditions},
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "0a1b", "namespace": "olm", "labels": {"olm.managed": "true"}},
        }),
    ]
}

/// A Subscription, and the Job that could not unpack its bundle.
pub(crate) fn failed_unpacking() -> Vec<Value> {
    let subscription = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "demo", "namespace": NS},
        "spec": {"name": "demo", "channel": "stable", "source": "catalog", "sourceNamespace": "olm"},
        "status": {"conditions": [{
            "type": "BundleUnpackFailed", "status": "True", "message": "Bundle unpacking failed - DeadlineExceeded",
        }]},
    });
    std::iter::once(subscription).chain(unpacking(true)).collect()
}

#[test]
fn a_failed_unpack_job_goes_with_its_configmap_and_one_that_still_tries_stays() {
    let mut world = World::of("01");
    world.cluster.store().create(crate::world::group("g", &[NS])).unwrap();
    for object in failed_unpacking() {
        world.cluster.store().create(object).unwrap();
    }
    assert_eq!(diagnosis(&mut world).causes[0].code, "unpack-failed");
    let fixes = fix(&mut world);
    assert!(
        fixes[0].done
            && fixes[0].what.to_string().starts_with("deletes job/0a1b in olm and configmap/0a1b in olm"),
        "{fixes:?}"
    );
    assert!(world.names(&known::JOB).is_empty() && world.names(&known::CONFIG_MAP).is_empty());
    // One whose image is being pulled is left alone.
    let [job, map] = unpacking(false);
    let image = "registry.example.com/demo:v0.1.0";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "0a1b-x", "namespace": "olm", "labels": {"job-name": "0a1b"}},
        "spec": {"initContainers": [{"name": "pull", "image": image}]},
        "status": {"phase": "Pending", "initContainerStatuses": [{
            "name": "pull", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}},
        }]},
    });
    for object in [job, map, pod] {
        world.cluster.store().create(object).unwrap();
    }
    assert_eq!(diagnosis(&mut world).causes[0].code, "bundle-image-pull");
    let fixes = fix(&mut world);
    assert!(!fixes[0].fits, "{fixes:?}");
    assert_eq!(world.names(&known::JOB), ["0a1b"]);
}

#[test]
fn somebody_elses_change_is_not_overwritten() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    delete_csv(&mut world, "demo.v0.3.0");
    later(&mut world, 30);
    let seen = world.subscription();
    let key = Key::new(&known::SUBSCRIPTION, NS, "demo");
    world.cluster.store().patch(&key, &json!({"metadata": {"annotations": {"somebody": "here"}}})).unwrap();
    assert!(world.cluster.delete_exactly(&known::SUBSCRIPTION, &seen).is_err());
    let seen = world.subscription();
    assert!(world.cluster.delete_exactly(&known::SUBSCRIPTION, &seen).is_ok());
}

#[test]
fn an_orphaned_version_is_adopted_by_the_subscription_of_its_package() {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    let spec = world.subscription()["spec"].clone();
    let key = Key::new(&known::SUBSCRIPTION, NS, "demo");
    world.cluster.store().delete(&key);
    let again = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "demo", "namespace": NS}, "spec": spec,
    });
    world.cluster.store().create(again).unwrap();
    let message = "constraints not satisfiable: @existing/ns//demo.v0.1.0 and catalog/olm/stable/demo.v0.1.0 provide Demo \
                   (t01.example.com/v1), clusterserviceversion demo.v0.1.0 exists and is not referenced by a subscription, \
                   subscription demo exists, subscription demo requires catalog/olm/stable/demo.v0.1.0";
    let failed = json!([{
        "type": "ResolutionFailed", "status": "True", "reason": "ConstraintsNotSatisfiable", "message": message,
    }]);
    world.cluster.store().patch(&key, &json!({"status": {"conditions": failed}})).unwrap();
    assert_eq!(diagnosis(&mut world).causes[0].code, "csv-orphaned");
    let fixes = fix(&mut world);
    assert!(fixes[0].done, "{fixes:?}");
    let status = &world.subscription()["status"];
    assert_eq!(
        (status["installedCSV"].as_str(), status["currentCSV"].as_str()),
        (Some("demo.v0.1.0"), Some("demo.v0.1.0"))
    );
    assert_eq!(phase(&mut world, "demo.v0.1.0"), "Succeeded");
}

#[test]
fn an_installed_operator_that_was_scaled_to_zero_is_found_and_left_to_somebody() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    later(&mut world, 300);
    assert!(diagnosis(&mut world).causes.is_empty());
    let key = Key::new(&known::DEPLOYMENT, NS, "demo-controller");
    world.cluster.store().patch(&key, &json!({"spec": {"replicas": 0}})).unwrap();
    later(&mut world, 300);
    let found = diagnosis(&mut world);
    assert_eq!(found.causes[0].code, "scaled-to-zero", "{found:#?}");
    assert!(fix(&mut world).iter().all(|fix| !fix.done));
}
