//! Install over what is there: nothing is turned back, and no flag is ignored.

use olmkit::lifecycle::api::{Approval, Key, known};
use olmkit::lifecycle::install::Install;
use olmkit::lifecycle::upgrade::Upgrade;
use serde_json::{Value, json};

use crate::world::{NS, World, accept, demo, told};

fn key() -> Key {
    Key::new(&known::SUBSCRIPTION, NS, "demo")
}

/// The approval, and the one that is to be restored.
fn approval(world: &mut World) -> (String, Option<Value>) {
    let subscription = world.subscription();
    let before = subscription.pointer("/metadata/annotations/olmkit.io~1approval-before").cloned();
    (subscription["spec"]["installPlanApproval"].as_str().unwrap().to_owned(), before)
}

/// What a command says that is refused before it changes anything.
#[track_caller]
fn refused(world: &mut World, request: Install) -> String {
    let before = world.cluster.save();
    let said = told(world.install(request).unwrap_err());
    assert_eq!(world.cluster.save(), before, "something was changed: {said}");
    said
}

#[test]
fn another_version_than_the_installed_one_is_refused_before_anything_changes() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    insta::assert_snapshot!(refused(&mut world, demo(Some("0.1.0"))), @"
    subscription/demo already has `demo.v0.3.0` installed, which is newer than `demo.v0.1.0`
    `olmkit operator rollback demo -n ns --to 0.1.0` rolls it back
    ");
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    insta::assert_snapshot!(refused(&mut world, demo(Some("0.3.0"))), @"
    subscription/demo already has `demo.v0.1.0` installed, not `demo.v0.3.0`
    `olmkit operator upgrade demo -n ns --to 0.3.0` upgrades it
    ");
    // One that has begun with another version, and has not come far.
    let mut world = World::of("01");
    let options = olmkit::lifecycle::engine::Options { wait: false, ..Default::default() };
    world.run_with(options, |engine, _| engine.install(&demo(Some("0.1.0")))).unwrap();
    insta::assert_snapshot!(refused(&mut world, demo(Some("0.2.0"))), @"
    subscription/demo already exists, and starts with `demo.v0.1.0`
    run `olmkit operator uninstall demo -n ns` first, then this command again
    ");
    // Without a version it goes on where it was.
    assert_eq!(world.install(demo(None)).unwrap().installed_csv, "demo.v0.1.0");
}

#[test]
fn deleting_a_version_that_runs_without_a_subscription_is_said_to_take_it_down() {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    world.cluster.store().delete(&key());
    insta::assert_snapshot!(refused(&mut world, demo(None)), @"
    clusterserviceversion/demo.v0.1.0 is there without a Subscription, so OLM would resolve nothing
    delete it: `kubectl delete clusterserviceversion demo.v0.1.0 -n ns`; its operator runs, and is down until `install` has installed it again; custom resources stay
    ");
}

#[test]
fn install_without_a_version_leaves_an_older_one_that_waits_for_approval() {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    let operator = world.install(demo(None)).unwrap();
    assert_eq!((operator.installed_csv.as_str(), operator.approval.as_str()), ("demo.v0.1.0", "Manual"));
    let said = world.said.borrow().join("\n");
    assert!(
        said.contains("`demo.v0.1.0` is already installed: `olmkit operator upgrade demo -n ns` upgrades it to `demo.v0.3.0`"),
        "{said}"
    );
}

#[test]
fn the_configuration_of_an_existing_subscription_becomes_the_given_one() {
    let mut world = World::of("01");
    let config = |config: Value| Install { config: Some(config), ..demo(None) };
    let first = json!({"env": [{"name": "A", "value": "1"}], "nodeSelector": {"a": "b"}});
    world.install(config(first)).unwrap();
    let second = json!({"env": [{"name": "A", "value": "2"}]});
    world.install(config(second.clone())).unwrap();
    assert_eq!(world.subscription()["spec"]["config"], second);
    // Again, it is done already; without the flag it stays.
    for request in [config(second.clone()), demo(None)] {
        let writes = world.run(|engine, _| {
            engine.install(&request).unwrap();
            engine.planned.len()
        });
        assert_eq!(writes, 0);
    }
    assert_eq!(world.subscription()["spec"]["config"], second);
}

#[test]
fn the_approval_of_an_existing_subscription_becomes_the_given_one() {
    let with = |approval: Approval| Install { approval: Some(approval), ..demo(None) };
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    world.install(with(Approval::Manual)).unwrap();
    assert_eq!(approval(&mut world), ("Manual".into(), None));
    world.install(with(Approval::Automatic)).unwrap();
    assert_eq!(approval(&mut world), ("Automatic".into(), None));
    // Below the head OLM continues automatically then, which nobody waits for.
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    assert_eq!(world.install(with(Approval::Automatic)).unwrap().installed_csv, "demo.v0.1.0");
    assert_eq!(approval(&mut world), ("Automatic".into(), None));
}

#[test]
fn an_approval_that_is_given_counts_more_than_one_that_was_to_be_restored() {
    let interrupted = || {
        let mut world = World::of("01");
        world.install(demo(None)).unwrap();
        let left = json!({
            "metadata": {"annotations": {"olmkit.io/approval-before": "Automatic"}},
            "spec": {"installPlanApproval": "Manual"},
        });
        world.cluster.store().patch(&key(), &left).unwrap();
        world
    };
    let mut world = interrupted();
    world.install(Install { approval: Some(Approval::Manual), ..demo(None) }).unwrap();
    assert_eq!(approval(&mut world), ("Manual".into(), None));
    let upgrade = |to: Option<&str>| Upgrade {
        name: "demo".into(),
        to: to.map(Into::into),
        approval: Some(Approval::Manual),
        ..Upgrade::default()
    };
    for to in [None, Some("0.3.0")] {
        let mut world = interrupted();
        world.run(|engine, _| engine.upgrade(&upgrade(to))).unwrap();
        assert_eq!(approval(&mut world), ("Manual".into(), None), "{to:?}");
    }
    // What goes on without a flag restores it.
    let mut world = interrupted();
    world.install(demo(None)).unwrap();
    assert_eq!(approval(&mut world), ("Automatic".into(), None));
}

#[test]
fn an_upgrade_that_is_refused_leaves_the_approval_alone() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    let before = world.cluster.save();
    let request = Upgrade {
        name: "demo".into(),
        to: Some("0.9.9".into()),
        approval: Some(Approval::Manual),
        ..Upgrade::default()
    };
    world.run(|engine, _| engine.upgrade(&request)).unwrap_err();
    assert_eq!(world.cluster.save(), before);
}

/// During an upgrade the Subscription names the new version alone; the old one serves until that has come up.
#[test]
fn install_again_during_an_upgrade_that_is_stuck_calls_nothing_an_orphan() {
    let mut world = World::of("01");
    world.change("demo.v0.3.0", "ClusterServiceVersion", |csv| {
        csv["spec"]["minKubeVersion"] = json!("1.99.0")
    });
    world.install(demo(Some("0.2.0"))).unwrap();
    let options = olmkit::lifecycle::engine::Options { wait: false, ..Default::default() };
    world.run(|engine, _| engine.approve("demo", Some(NS), &accept(&["kubernetes-too-old"]))).unwrap_err();
    assert_eq!(world.names(&known::CSV), ["demo.v0.2.0", "demo.v0.3.0"]);
    for dry_run in [true, false] {
        let options = olmkit::lifecycle::engine::Options { dry_run, ..options.clone() };
        let again = world.run_with(options, |engine, _| engine.install(&demo(None)));
        let said = again.map(drop).map_err(told).err().unwrap_or_default() + &world.said.borrow().join("\n");
        assert!(!said.contains("without a Subscription") && !said.contains("delete"), "{said}");
        assert_eq!(world.names(&known::CSV), ["demo.v0.2.0", "demo.v0.3.0"]);
    }
}

#[test]
fn a_dependency_that_does_not_come_up_keeps_install_from_succeeding() {
    let mut world = World::of("19b");
    world.change("cache-db.v1.0.0", "ClusterServiceVersion", |csv| {
        let image = "/spec/install/spec/deployments/0/spec/template/spec/containers/0/image";
        *csv.pointer_mut(image).unwrap() = json!("r/lost:v1");
    });
    world.cluster.registry().missing_images.insert("r/lost:v1".into());
    let request = Install {
        accept: olmkit::lifecycle::decide::Accept { dependencies: true, ..Default::default() },
        ..demo(None)
    };
    let said = world.install(request).unwrap_err().to_string();
    assert!(said.contains("cache-db"), "{said}");
}

#[test]
fn an_older_crd_than_the_one_that_is_used_needs_a_flag() {
    let mut world = World::of("01");
    let crd = world.bundles["demo.v0.1.0"].iter().find(|object| object["kind"] == "CustomResourceDefinition");
    let mut newer = crd.unwrap().clone();
    let mut version = newer["spec"]["versions"][0].clone();
    version["name"] = json!("v2");
    version["storage"] = json!(false);
    newer["spec"]["versions"].as_array_mut().unwrap().push(version);
    world.cluster.store().create(newer).unwrap();
    // Nobody uses it yet.
    let fresh = world.cluster.clone();
    world.install(demo(Some("0.1.0"))).unwrap();
    world.cluster = fresh;
    world.make_demo("01", 3);
    insta::assert_snapshot!(refused(&mut world, demo(Some("0.1.0"))), @"
    `demo.v0.1.0` has an older CRD `demos.t01.example.com` than the one that demo/example in ns uses, and OLM puts it in its place, which loses the version v2
    install a version that has these, or pass --accept-crd-downgrade
    ");
    world.install(Install { accept_crd_downgrade: true, ..demo(Some("0.1.0")) }).unwrap();
}
