//! What uninstall leaves alone, since others need it, and what it tells of that.

use std::time::Duration;

use olmkit::lifecycle::api::{Approval, Key, known};
use olmkit::lifecycle::engine::Options;
use olmkit::lifecycle::install::Install;
use olmkit::lifecycle::uninstall::{Removed, Uninstall};
use olmkit::lifecycle::upgrade::Upgrade;
use serde_json::{Value, json};

use crate::engine::{NS, World, demo, told, without_random};

fn uninstall(world: &mut World, namespace: &str, delete_crds: bool, wait: bool) -> Removed {
    let request = Uninstall {
        name: "demo".into(),
        namespace: Some(namespace.into()),
        delete_crds,
        ..Uninstall::default()
    };
    world.run_with(Options { wait, ..Options::default() }, |engine, _| engine.uninstall(&request)).unwrap()
}

fn kept(removed: &Removed, kind: &str) -> Vec<String> {
    let kept = removed.kept.iter().filter(|part| part.kind == kind);
    kept.map(|part| without_random(&format!("{}: {}", part.name, part.reason))).collect()
}

/// Two operators of one catalog, in namespaces of their own, each with a plan that waits.
fn two() -> World {
    let mut world = World::of("01");
    for namespace in ["e1", "e2"] {
        let request = Install { namespace: namespace.into(), ..demo(Some("0.1.0")) };
        world.install(request).unwrap();
    }
    world
}

#[test]
fn uninstall_keeps_the_unpacked_bundles_that_plans_elsewhere_refer_to() {
    let mut world = two();
    let maps = world.names(&known::CONFIG_MAP);
    assert_eq!(maps.len(), 2);
    let removed = uninstall(&mut world, "e2", false, true);
    for kind in ["ConfigMap", "Job", "Role", "RoleBinding", "ServiceAccount"] {
        let kept = kept(&removed, kind);
        assert_eq!(kept.len(), 2, "{kind}: {kept:?}");
        assert!(
            kept.iter().all(|line| line.ends_with("installplan/install-RANDOM in e1 refers to it")),
            "{kept:?}"
        );
    }
    assert_eq!(world.names(&known::CONFIG_MAP), maps);
    let request = Upgrade { name: "demo".into(), namespace: Some("e1".into()), ..Upgrade::default() };
    assert_eq!(world.run(|engine, _| engine.upgrade(&request)).unwrap().installed_csv, "demo.v0.3.0");
    // With the last one they go.
    let removed = uninstall(&mut world, "e1", false, true);
    assert_eq!(kept(&removed, "ConfigMap"), Vec::<String>::new());
    assert_eq!(world.names(&known::CONFIG_MAP), Vec::<String>::new());
}

/// What the advice on a failed plan has to be when somebody else deleted the ConfigMap.
#[test]
fn a_plan_without_its_unpacked_bundle_is_to_be_deleted() {
    let mut world = two();
    for name in world.names(&known::CONFIG_MAP) {
        world.cluster.store().delete(&Key::new(&known::CONFIG_MAP, "olm", &name));
    }
    let request = Upgrade { name: "demo".into(), namespace: Some("e1".into()), ..Upgrade::default() };
    let said = told(world.run(|engine, _| engine.upgrade(&request)).unwrap_err());
    assert!(said.contains("error finding unpacked bundle configmap"), "{said}");
    let plan = said.split(' ').next().unwrap().trim_start_matches("installplan/").to_owned();
    assert!(
        said.contains(&format!("`kubectl delete installplan {plan} -n e1`, then run the command again")),
        "{said}"
    );
    assert!(!said.contains("patch"), "{said}");
}

#[test]
fn uninstall_keeps_a_crd_that_another_operator_needs() {
    let needs = |spec: Value, properties: Value| {
        let mut world = World::of("01").with(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {
                "name": "theirs.v1.0.0", "namespace": "elsewhere",
                "annotations": {"operatorframework.io/properties": properties.to_string()},
            },
            "spec": spec, "status": {"phase": "Succeeded"},
        }));
        world.install(demo(None)).unwrap();
        world.make_demo("01", 3);
        let removed = uninstall(&mut world, NS, true, true);
        assert_eq!(world.names(&known::CRD), ["demos.t01.example.com"]);
        assert_eq!(kept(&removed, "Demo"), ["example: its CRD stays"]);
        kept(&removed, "CustomResourceDefinition")
    };
    let expected = ["demos.t01.example.com: `elsewhere/theirs.v1.0.0` needs it"];
    let required = json!([{"name": "demos.t01.example.com", "kind": "Demo", "version": "v1"}]);
    assert_eq!(needs(json!({"customresourcedefinitions": {"required": required}}), json!({})), expected);
    let gvk = json!({"group": "t01.example.com", "version": "v1", "kind": "Demo"});
    let properties = json!({"properties": [{"type": "olm.gvk.required", "value": gvk}]});
    assert_eq!(needs(json!({}), properties), expected);
}

#[test]
fn uninstall_that_does_not_wait_leaves_the_operator_to_its_finalizers() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    world.make_demo("01", 3);
    let resource = olmkit::lifecycle::api::Resource {
        group: "t01.example.com".into(),
        version: "v1".into(),
        kind: "Demo".into(),
        plural: "demos".into(),
        namespaced: true,
    };
    let example = Key::new(&resource, NS, "example");
    let finalizer = json!({"metadata": {"finalizers": ["example.com/cleanup"]}});
    world.cluster.store().patch(&example, &finalizer).unwrap();
    let removed = uninstall(&mut world, NS, true, false);
    assert_eq!(removed.removed.len(), 1, "{removed:?}");
    assert_eq!(
        kept(&removed, "ClusterServiceVersion"),
        ["demo.v0.3.0: the operator still has to finalize demo/example: run the same command again"]
    );
    assert_eq!(world.names(&known::CSV), ["demo.v0.3.0"]);
    // Once the operator has done its part, the same command goes on.
    world.cluster.store().patch(&example, &json!({"metadata": {"finalizers": null}})).unwrap();
    let removed = uninstall(&mut world, NS, true, false);
    assert_eq!(removed.kept, []);
    let later = world.cluster.store().now() + Duration::from_secs(60);
    world.cluster.run_until(later);
    assert_eq!(world.names(&known::CRD), Vec::<String>::new());
    assert_eq!(world.names(&known::CSV), Vec::<String>::new());
}

#[test]
fn uninstall_tells_of_dependencies_and_of_what_install_made() {
    let mut world = World::of("19b");
    let request = Install { namespace: "fresh".into(), approval: Some(Approval::Automatic), ..demo(None) };
    world.install(request).unwrap();
    let removed = uninstall(&mut world, "fresh", false, true);
    assert_eq!(
        kept(&removed, "Subscription"),
        ["cache-db-stable-catalog-olm: it was installed as a dependency: `olmkit operator uninstall \
          cache-db-stable-catalog-olm -n fresh` removes it"]
    );
    assert_eq!(
        kept(&removed, "ClusterServiceVersion"),
        ["cache-db.v1.0.0: it belongs to subscription/cache-db-stable-catalog-olm"]
    );
    assert_eq!(
        kept(&removed, "OperatorGroup"),
        [
            "fresh: subscription/cache-db-stable-catalog-olm needs it: `kubectl delete operatorgroup fresh -n fresh` \
          removes it once that is gone"
        ]
    );
    assert_eq!(
        kept(&removed, "Namespace"),
        ["fresh: `kubectl delete namespace fresh` removes it, with everything in it"]
    );
    // The command that it names works.
    let request = Uninstall {
        name: "cache-db-stable-catalog-olm".into(),
        namespace: Some("fresh".into()),
        ..Uninstall::default()
    };
    world.run(|engine, _| engine.uninstall(&request)).unwrap();
    assert_eq!(world.names(&known::SUBSCRIPTION), Vec::<String>::new());
    assert_eq!(world.names(&known::CSV), Vec::<String>::new());
    assert_eq!(world.names(&known::OPERATOR_GROUP), Vec::<String>::new());
}
