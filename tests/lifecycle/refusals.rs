//! What the simulated OLM and its API server do not let pass, as the real ones do not.

use std::time::Duration;

use olmkit::lifecycle::api::{Resource, known};
use olmkit::lifecycle::cluster::Cluster as _;
use olmkit::lifecycle::doctor::{Scope, diagnose, observe};
use olmkit::lifecycle::engine::EngineError;
use olmkit::lifecycle::install::Install;
use serde_json::{Value, json};

use crate::world::{NS, World, accept, demo, told};

/// With 0.1.0 installed, and a plan for a changed 0.2.0 that waits.
fn waiting(change: impl FnOnce(&mut World)) -> World {
    let mut world = World::of("01");
    change(&mut world);
    world.install(demo(Some("0.1.0"))).unwrap();
    later(&mut world);
    world
}

fn later(world: &mut World) {
    let later = world.cluster.store().now() + Duration::from_secs(120);
    world.cluster.run_until(later);
}

/// An API server drops fields that the schema does not have, when it stores an object and when it reads it again.
#[test]
fn fields_that_a_new_schema_does_not_have_are_gone_with_it() {
    let mut world = waiting(|world| {
        world.change_crd("demo.v0.2.0", |crd| {
            let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
            *crd.pointer_mut(spec).unwrap() =
                json!({"type": "object", "properties": {"count": {"type": "integer"}}});
        });
    });
    world.make_demo("01", 3);
    let [group, version, kind, plural] = ["t01.example.com", "v1", "Demo", "demos"].map(str::to_owned);
    let resource = Resource { group, version, kind, plural, namespaced: true };
    assert_eq!(world.cluster.get(&resource, NS, "example").unwrap().unwrap()["spec"], json!({"size": 3}));
    world.run(|engine, _| engine.approve("demo", Some(NS), &Default::default())).unwrap();
    assert_eq!(world.cluster.get(&resource, NS, "example").unwrap().unwrap()["spec"], json!({}));
    assert_eq!(world.cluster.list(&resource, None).unwrap()[0]["spec"], json!({}));
}

#[test]
fn a_plan_that_changes_the_scope_of_a_crd_fails() {
    let mut world = waiting(|world| {
        world.change_crd("demo.v0.2.0", |crd| crd["spec"]["scope"] = json!("Cluster"));
    });
    world.run(|engine, _| engine.approve("demo", Some(NS), &accept(&["immutable-field"]))).unwrap_err();
    later(&mut world);
    let plans = world.cluster.list(&known::INSTALL_PLAN, Some(NS)).unwrap();
    let failed = plans.iter().find(|plan| plan["status"]["phase"] == "Failed").expect("no plan has failed");
    let message = failed["status"]["message"].as_str().unwrap();
    assert!(message.ends_with("spec.scope: Invalid value: \"Cluster\": field is immutable"), "{message}");
}

#[test]
fn a_plan_that_has_failed_is_not_approved_again() {
    let mut world = waiting(|world| world.limit_size("demo.v0.2.0", 9));
    world.make_demo("01", 50);
    let accepted = accept(&["crd-invalidates-resources"]);
    world.run(|engine, _| engine.approve("demo", Some(NS), &accepted)).unwrap_err();
    later(&mut world);
    let error =
        told(world.run(|engine, _| engine.approve("demo", Some(NS), &Default::default())).unwrap_err());
    assert!(
        error.contains(" has failed, and there is nothing to approve: error validating existing CRs"),
        "{error}"
    );
    assert!(error.contains("`olmkit operator doctor demo -n ns --fix`"), "{error}");
}

#[test]
fn a_bundle_that_is_in_no_registry_is_not_unpacked_and_gets_no_plan() {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    let registry = world.cluster.registry();
    registry.is_complete = true;
    registry.bundles.remove("demo.v0.3.0");
    let error = world.upgrade(None, None).unwrap_err();
    assert!(matches!(error, EngineError::TimedOut { .. } | EngineError::Stuck(_)), "{error}");
    let carries = |plan: &Value| plan.to_string().contains("demo.v0.3.0");
    assert!(!world.cluster.list(&known::INSTALL_PLAN, None).unwrap().iter().any(carries));
    for _ in 0..6 {
        later(&mut world);
    }
    let now = world.cluster.time_of_day();
    let seen = observe(&mut world.cluster, &Scope::default(), Some(now)).unwrap();
    let diagnosis = diagnose(&seen, &Scope::default());
    let codes: Vec<_> = diagnosis.causes.iter().map(|cause| cause.code).collect();
    assert_eq!(codes, ["unpack-failed"], "{diagnosis:#?}");
    // Once it is there, and the Job is deleted, OLM goes on.
    let manifests = world.bundles["demo.v0.3.0"].clone();
    world.cluster.registry().bundles.insert("demo.v0.3.0".into(), manifests);
    assert!(world.run(|engine, _| engine.fix(&diagnosis)).unwrap()[0].done);
    assert_eq!(world.upgrade(None, None).unwrap().installed_csv, "demo.v0.3.0");
}

/// What `bundle validate --suite install` calls an error is not installed by the simulator either.
#[test]
fn what_kubernetes_refuses_is_not_installed() {
    let in_pod = |change: fn(&mut Value)| {
        move |world: &mut World| {
            world.change_csv("demo.v0.1.0", |csv| {
                let container = "/spec/install/spec/deployments/0/spec/template/spec/containers/0";
                change(csv.pointer_mut(container).unwrap());
            });
        }
    };
    let rule_without_verbs = |world: &mut World| {
        world.add_manifest(
            "demo.v0.1.0",
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "viewer"},
                "rules": [{"apiGroups": [""], "resources": ["pods"]}],
            }),
        );
    };
    let twice = |world: &mut World| {
        world.change_csv("demo.v0.1.0", |csv| {
            let all = csv.pointer_mut("/spec/install/spec/deployments").unwrap().as_array_mut().unwrap();
            all.push(all[0].clone());
        });
    };
    let old_budget = |world: &mut World| {
        world.add_manifest(
            "demo.v0.1.0",
            json!({
                "apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "demo"},
                "spec": {"minAvailable": 1},
            }),
        );
    };
    let port = in_pod(|container| container["ports"] = json!([{"containerPort": 99999}]));
    let quantity = in_pod(|container| container["resources"] = json!({"requests": {"cpu": "1x"}}));
    let image = in_pod(|container| container["image"] = json!("registry.example.com/demo: 1"));
    type Fault<'f> = &'f dyn Fn(&mut World);
    let cases: [(Fault<'_>, &str); 6] = [
        (&rule_without_verbs, "is invalid: \"rules[0]\" has no verbs"),
        (&old_budget, "\"PodDisruptionBudget\" of \"policy/v1beta1\" was removed in Kubernetes 1.25"),
        (
            &twice,
            "install strategy failed: \"demo-controller\" cannot name a deployment: another one has the name",
        ),
        (&port, "install strategy failed: 99999 is not a port"),
        (&quantity, "install strategy failed: \"cpu: 1x\" is not a quantity"),
        (&image, "install strategy failed: \"registry.example.com/demo: 1\" is not an image"),
    ];
    for (change, why) in cases {
        let mut world = World::of("01");
        change(&mut world);
        let request = Install { accept: accept(&["object-invalid"]), ..demo(Some("0.1.0")) };
        let error = told(world.install(request).unwrap_err());
        assert!(error.contains(why), "{why}: {error}");
    }
}
