//! What is looked at before anything is approved: what else a plan carries, CRDs, custom resources, images.

use olmkit::lifecycle::api::{Approval, Key, known};
use olmkit::lifecycle::decide::Accept;
use olmkit::lifecycle::engine::Options;
use olmkit::lifecycle::install::Install;
use olmkit::lifecycle::upgrade::Upgrade;
use serde_json::{Value, json};

use crate::world::{NS, World, accept, demo, told, without_random};

/// The operator of the first version, with a custom resource.
fn installed() -> World {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    world.make_demo("01", 50);
    world.said.borrow_mut().clear();
    world
}

fn upgrade() -> Upgrade {
    Upgrade { name: "demo".into(), namespace: Some(NS.into()), ..Upgrade::default() }
}

/// What an upgrade says that is refused before it changes anything.
#[track_caller]
fn refused(world: &mut World) -> String {
    let before = world.cluster.save();
    let said = told(world.run(|engine, _| engine.upgrade(&upgrade())).unwrap_err());
    assert_eq!(world.cluster.save(), before, "something was changed: {said}");
    said
}

#[test]
fn dependencies_are_listed_and_wait_for_being_accepted() {
    let manual = Install { approval: Some(Approval::Manual), ..demo(None) };
    let mut world = World::of("19b");
    let said = told(world.install(manual.clone()).unwrap_err());
    insta::assert_snapshot!(without_random(&said), @"
    installplan/install-RANDOM also contains `cache-db.v1.0.0`, which `demo.v0.1.0` depends on
    pass `--accept cache-db.v1.0.0`, or `--accept-dependencies` for all dependencies
    ");
    assert_eq!(world.names(&known::CSV), Vec::<String>::new());
    // `approve` says the same.
    let approve =
        |world: &mut World, accept: &Accept| world.run(|engine, _| engine.approve("demo", Some(NS), accept));
    assert_eq!(told(approve(&mut world, &Accept::default()).unwrap_err()), said);
    let all = Accept { dependencies: true, ..Accept::default() };
    approve(&mut world, &all).unwrap();
    assert_eq!(world.names(&known::CSV), ["cache-db.v1.0.0", "demo.v0.1.0"]);
    for accept in [all, accept(&["cache-db.v1.0.0"])] {
        let mut world = World::of("19b");
        world.install(Install { accept, ..manual.clone() }).unwrap();
        assert_eq!(world.names(&known::CSV), ["cache-db.v1.0.0", "demo.v0.1.0"]);
        let said = world.said.borrow().join("\n");
        assert!(without_random(&said).contains("install-"), "{said}");
        assert!(said.contains(": cache-db.v1.0.0 demo.v0.1.0"), "{said}");
    }
}

#[test]
fn a_dropped_stored_version_is_seen_before_the_plan_is_approved() {
    let mut world = installed();
    for bundle in ["demo.v0.2.0", "demo.v0.3.0"] {
        world.change_crd(bundle, |crd| crd["spec"]["versions"][0]["name"] = json!("v2"));
    }
    insta::assert_snapshot!(refused(&mut world), @"
    `demo.v0.2.0` cannot be installed: its CRD `demos.t01.example.com` does not have the version v1, at which objects are stored
    migrate the objects to another version, then remove v1 from `status.storedVersions` of customresourcedefinition/demos.t01.example.com
    pass `--accept crd-stored-version` to go on nevertheless
    ");
    assert_eq!(world.subscription()["spec"]["installPlanApproval"], "Manual");
}

#[test]
fn a_version_that_only_a_hop_stores_at_must_not_be_dropped_by_a_later_one() {
    let mut world = installed();
    world.change_crd("demo.v0.2.0", |crd| {
        let mut newer = crd["spec"]["versions"][0].clone();
        newer["name"] = json!("v2");
        crd["spec"]["versions"][0]["storage"] = json!(false);
        crd["spec"]["versions"].as_array_mut().unwrap().push(newer);
    });
    insta::assert_snapshot!(refused(&mut world), @"
    `demo.v0.3.0` cannot be installed: its CRD `demos.t01.example.com` does not have the version v2, at which objects are stored
    migrate the objects to another version, then remove v2 from `status.storedVersions` of customresourcedefinition/demos.t01.example.com; `--to 0.2.0` stops before it
    pass `--accept crd-stored-version` to go on nevertheless
    ");
}

#[test]
fn every_custom_resource_is_held_against_the_new_schema() {
    let mut world = installed();
    world.limit_size("demo.v0.3.0", 9);
    insta::assert_snapshot!(refused(&mut world), @"
    `ns/example` of `demos.t01.example.com` does not fit the schema of `demo.v0.3.0`: spec.size: 50 is greater than 9
    change it so that it fits both; `--to 0.2.0` stops before it
    pass `--accept crd-invalidates-resources` to go on nevertheless
    ");
    // As far as the hop before it nothing is in the way.
    assert_eq!(world.upgrade(Some("0.2.0"), None).unwrap().installed_csv, "demo.v0.2.0");
    // An install over custom resources that an earlier one has left is no different.
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    world.make_demo("01", 50);
    let request = olmkit::lifecycle::uninstall::Uninstall {
        name: "demo".into(),
        namespace: Some(NS.into()),
        ..Default::default()
    };
    world.run(|engine, _| engine.uninstall(&request)).unwrap();
    world.limit_size("demo.v0.3.0", 9);
    let before = world.cluster.save();
    let said = told(world.install(demo(None)).unwrap_err());
    assert!(said.starts_with("`ns/example` of `demos.t01.example.com` does not fit"), "{said}");
    assert_eq!(world.cluster.save(), before);
}

#[test]
fn a_version_that_is_no_longer_served_is_named() {
    let mut world = installed();
    let crd = Key::new(&known::CRD, "", "demos.t01.example.com");
    let mut versions = world.cluster.store().get(&crd).unwrap()["spec"]["versions"].clone();
    let mut old = versions[0].clone();
    old["name"] = json!("v1alpha1");
    old["storage"] = json!(false);
    versions.as_array_mut().unwrap().push(old);
    world.cluster.store().patch(&crd, &json!({"spec": {"versions": versions}})).unwrap();
    world.run(|engine, _| engine.upgrade(&upgrade())).unwrap();
    let said = world.said.borrow().join("\n");
    assert!(said.contains("`demo.v0.2.0` no longer serves `demos.t01.example.com` at v1alpha1"), "{said}");
}

#[test]
fn an_image_that_does_not_exist_is_seen_before_the_plan_is_approved() {
    const IMAGE: &str = "127.0.0.1:5000/pause:1";
    let mut world = installed();
    world.missing.insert(IMAGE.into());
    insta::assert_snapshot!(refused(&mut world), @"
    `demo.v0.2.0` cannot be installed: the image `127.0.0.1:5000/pause:1` does not exist
    push it first; if the nodes pull it from elsewhere, such as a mirror, pass --accept-missing-images
    ");
    let request = Upgrade { accept_missing_images: true, ..upgrade() };
    assert_eq!(world.run(|engine, _| engine.upgrade(&request)).unwrap().installed_csv, "demo.v0.3.0");
    // That of a bundle alike, and before an install.
    let mut world = World::of("01");
    world.missing.insert("127.0.0.1:5000/t01/demo-bundle:v0.3.0".into());
    let before = world.cluster.save();
    insta::assert_snapshot!(told(world.install(demo(None)).unwrap_err()), @"
    `demo.v0.3.0` cannot be installed: the image `127.0.0.1:5000/t01/demo-bundle:v0.3.0` does not exist
    push it first; if the nodes pull it from elsewhere, such as a mirror, pass --accept-missing-images
    ");
    assert_eq!(world.cluster.save(), before);
}

#[test]
fn a_registry_that_cannot_be_reached_is_no_obstacle_and_is_named_once() {
    let mut world = installed();
    let bundle = |version: &str| format!("127.0.0.1:5000/t01/demo-bundle:v{version}");
    world.unreachable = [bundle("0.2.0"), bundle("0.3.0"), "127.0.0.1:5000/pause:1".into()].into();
    assert_eq!(world.run(|engine, _| engine.upgrade(&upgrade())).unwrap().installed_csv, "demo.v0.3.0");
    let said = world.said.borrow();
    let unchecked: Vec<&String> = said.iter().filter(|line| line.starts_with("not checked")).collect();
    assert_eq!(
        unchecked,
        ["not checked: `127.0.0.1:5000/t01/demo-bundle:v0.2.0`, `127.0.0.1:5000/t01/demo-bundle:v0.3.0`: \
          cannot reach `registry`"]
    );
}

/// What OLM does when nobody looks: the recordings 22a and 22b.
#[test]
fn the_simulation_fails_a_plan_whose_crd_does_not_fit_what_is_stored() {
    let check = |change: &dyn Fn(&mut Value), expected: &str| {
        let mut world = World::of("01");
        world.change_crd("demo.v0.2.0", change);
        world.install(demo(Some("0.1.0"))).unwrap();
        world.make_demo("01", 50);
        let plans = world.names(&known::INSTALL_PLAN);
        for plan in plans {
            let key = Key::new(&known::INSTALL_PLAN, NS, &plan);
            world.cluster.store().patch(&key, &json!({"spec": {"approved": true}})).unwrap();
        }
        let later = world.cluster.store().now() + std::time::Duration::from_secs(90);
        world.cluster.run_until(later);
        let plans = world.cluster.store().list(&known::INSTALL_PLAN, None);
        let failed: Vec<String> = plans
            .filter(|plan| plan["status"]["phase"] == "Failed")
            .map(|plan| plan["status"]["message"].to_string())
            .collect();
        assert!(failed.len() == 1 && failed[0].contains(expected), "{failed:?}");
        let phase = |world: &mut World, csv: &str| {
            world.cluster.store().get(&Key::new(&known::CSV, NS, csv)).unwrap()["status"]["phase"].clone()
        };
        assert_eq!(phase(&mut world, "demo.v0.1.0"), "Replacing");
    };
    let size = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size";
    check(
        &|crd| crd.pointer_mut(size).unwrap()["maximum"] = json!(9),
        "updated validation is too restrictive",
    );
    check(&|crd| crd["spec"]["versions"][0]["name"] = json!("v2"), "risk of data loss updating");
}

/// OLM does not stop at what was approved then, and that is no failure.
#[test]
fn approve_follows_its_plan_though_olm_goes_on_by_itself() {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    world.install(Install { approval: Some(Approval::Automatic), ..demo(None) }).unwrap();
    let approve = |world: &mut World, options: Options| {
        world.run_with(options, |engine, _| engine.approve("demo", Some(NS), &Accept::default()))
    };
    // One that is approved already is followed too.
    approve(&mut world, Options { wait: false, ..Options::default() }).unwrap();
    approve(&mut world, Options::default()).unwrap();
    let said = world.said.borrow().join("\n");
    assert!(without_random(&said).contains("is approved already"), "{said}");
    assert!(said.contains("clusterserviceversion/demo.v0.2.0: Succeeded"), "{said}");
}

/// The old CRD may do for the new version, which is up before its plan has failed.
#[test]
fn a_version_that_is_up_is_no_success_while_its_plan_is_not_complete() {
    let mut world = World::of("01");
    world.change_crd("demo.v0.2.0", |crd| crd["spec"]["versions"][0]["name"] = json!("v2"));
    world.install(demo(Some("0.1.0"))).unwrap();
    let approved = world.run(|engine, _| engine.approve("demo", Some(NS), &accept(&["crd-stored-version"])));
    let said = told(approved.unwrap_err());
    assert!(said.contains("cannot install `demo.v0.2.0`: risk of data loss updating"), "{said}");
}
