//! What the simulated OLM and its API server do not let pass, as the real ones do not.

use std::time::Duration;

use olmkit::lifecycle::api::{Resource, known};
use olmkit::lifecycle::cluster::Cluster as _;
use serde_json::json;

use crate::world::{NS, World, demo};

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
    world.run(|engine, _| engine.approve("demo", Some(NS), &Default::default())).unwrap_err();
    later(&mut world);
    let plans = world.cluster.list(&known::INSTALL_PLAN, Some(NS)).unwrap();
    let failed = plans.iter().find(|plan| plan["status"]["phase"] == "Failed").expect("no plan has failed");
    let message = failed["status"]["message"].as_str().unwrap();
    assert!(message.ends_with("spec.scope: Invalid value: \"Cluster\": field is immutable"), "{message}");
}
