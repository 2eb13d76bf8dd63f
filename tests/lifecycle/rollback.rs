//! Rollbacks that are interrupted or do not wait: what they leave behind, and what the next one checks.

use std::path::Path;
use std::time::Duration;

use olmkit::lifecycle::api::{Key, known};
use olmkit::lifecycle::engine::{EngineError, Options};
use olmkit::lifecycle::operator::Operator;
use olmkit::lifecycle::rollback::Rollback;
use olmkit::shell::Reach;
use serde_json::{Value, json};

use crate::world::{Memory, NS, World, demo, told};

const NOTE: &str = "olmkit.io/rollback";

/// Installs the head, and makes a custom resource that the oldest version does not take.
fn world() -> World {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    world.make_demo("01", 50);
    world.limit_size("demo.v0.1.0", 9);
    world
}

fn rollback(world: &mut World, to: &str, options: Options) -> Result<Operator, EngineError> {
    let request = Rollback { name: "demo".into(), to: to.into(), ..Rollback::default() };
    world.run_with(options, |engine, world| engine.rollback(&request, &Memory(world)))
}

fn without_waiting() -> Options {
    Options { wait: false, ..Options::default() }
}

/// What the OperatorGroup remembers.
fn note(world: &mut World) -> Option<Value> {
    let group = world.cluster.store().list(&known::OPERATOR_GROUP, Some(NS)).next().unwrap().clone();
    group.pointer("/metadata/annotations").and_then(|all| all.get(NOTE)).cloned()
}

fn later(world: &mut World) {
    let later = world.cluster.store().now() + Duration::from_secs(60);
    world.cluster.run_until(later);
}

const MISFIT: &str = "\
`ns/example` of `demos.t01.example.com` does not fit the old schema: spec.size: 50 is greater than 9
change it so that it fits both";

#[test]
fn a_rollback_that_does_not_wait_leaves_no_note_and_the_next_one_is_checked() {
    let mut world = world();
    for _ in 0..3 {
        rollback(&mut world, "0.2.0", without_waiting()).unwrap();
        assert_eq!(note(&mut world), None);
        later(&mut world);
    }
    assert_eq!(world.names(&known::CSV), ["demo.v0.2.0"]);
    world.kept.borrow_mut().clear();
    let said = told(rollback(&mut world, "0.1.0", Options::default()).unwrap_err());
    assert_eq!(said, MISFIT);
    assert_eq!(world.names(&known::CSV), ["demo.v0.2.0"], "something was changed");
}

/// The pods that run were made while the image was there.
#[test]
fn a_version_whose_image_is_gone_is_not_gone_back_to() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    let csv = world.bundles["demo.v0.1.0"].iter().find(|one| one["kind"] == "ClusterServiceVersion").unwrap();
    let pod = csv.pointer("/spec/install/spec/deployments/0/spec/template/spec").unwrap();
    let image = pod["containers"][0]["image"].as_str().unwrap().to_owned();
    world.missing.insert(image.clone());
    let said = told(rollback(&mut world, "0.1.0", Options::default()).unwrap_err());
    let expected = format!(
        "`demo.v0.1.0` cannot be installed: the image `{image}` does not exist\n\
         push it first\npass `--accept image-pull` to go on nevertheless"
    );
    assert_eq!(said, expected);
    assert_eq!(world.names(&known::CSV), ["demo.v0.3.0"], "something was changed");
}

#[test]
fn a_note_of_an_older_version_of_ours_skips_no_check() {
    let mut world = world();
    let mut stale = world.subscription();
    stale["spec"]["startingCSV"] = json!("demo.v0.1.0");
    let group = Key::new(&known::OPERATOR_GROUP, NS, NS);
    let patch = json!({"metadata": {"annotations": {NOTE: stale.to_string()}}});
    world.cluster.store().patch(&group, &patch).unwrap();
    for to in ["0.1.0", "demo.v0.1.0"] {
        assert_eq!(told(rollback(&mut world, to, Options::default()).unwrap_err()), MISFIT);
    }
    // One that is allowed keeps the custom resources, and clears up.
    let operator = rollback(&mut world, "0.2.0", Options::default()).unwrap();
    assert_eq!(operator.installed_csv, "demo.v0.2.0");
    assert_eq!(world.kept.borrow().len(), 1);
    assert_eq!(note(&mut world), None);
}

/// A world in which a rollback to 0.2.0 was interrupted after it had deleted the Subscription.
fn interrupted() -> World {
    let mut world = world();
    let mut away = world.subscription();
    away["spec"]["startingCSV"] = json!("demo.v0.2.0");
    let group = Key::new(&known::OPERATOR_GROUP, NS, NS);
    let patch = json!({"metadata": {"annotations": {NOTE: away.to_string()}}});
    world.cluster.store().patch(&group, &patch).unwrap();
    world.cluster.store().delete(&Key::new(&known::SUBSCRIPTION, NS, "demo"));
    world
}

#[test]
fn an_interrupted_rollback_to_another_version_is_checked() {
    let mut world = interrupted();
    assert_eq!(told(rollback(&mut world, "0.1.0", Options::default()).unwrap_err()), MISFIT);
    // Even when nothing of it is left but the note.
    world.cluster.store().delete(&Key::new(&known::CSV, NS, "demo.v0.3.0"));
    later(&mut world);
    assert_eq!(world.names(&known::CSV), Vec::<String>::new());
    assert_eq!(told(rollback(&mut world, "0.1.0", Options::default()).unwrap_err()), MISFIT);
    let operator = rollback(&mut world, "0.2.0", Options::default()).unwrap();
    assert_eq!((operator.installed_csv.as_str(), operator.csv_phase.as_str()), ("demo.v0.2.0", "Succeeded"));
    assert_eq!(note(&mut world), None);
}

#[test]
fn a_rollback_to_what_is_installed_changes_nothing() {
    let mut world = world();
    let before = world.cluster.save();
    rollback(&mut world, "0.3.0", Options::default()).unwrap();
    assert_eq!(world.cluster.save(), before);
}

/// A rollback that has taken the operator away, while OLM does nothing.
fn stopped(world: &mut World, to: &str) {
    world.cluster.registry().catalogs.clear();
    let error =
        rollback(world, to, Options { timeout: Duration::from_secs(20), ..Options::default() }).unwrap_err();
    assert!(matches!(error, EngineError::TimedOut { .. } | EngineError::Stuck(_)), "{error}");
    assert_eq!(world.names(&known::CSV), Vec::<String>::new());
}

#[test]
fn after_a_rollback_that_timed_out_the_way_back_is_open() {
    let mut world = World::of("01");
    let catalogs = world.cluster.registry().catalogs.clone();
    world.install(demo(Some("0.2.0"))).unwrap();
    stopped(&mut world, "0.1.0");
    // Every verb says what is under way.
    let resume = "the rollback of subscription/demo to `demo.v0.1.0` is not finished: run `olmkit operator rollback demo -n ns \
                  --to demo.v0.1.0` to resume";
    assert_eq!(
        told(world.upgrade(None, None).unwrap_err()),
        format!("subscription/demo has nothing installed\n{resume}")
    );
    let status = world.run(|engine, _| engine.status("demo", None).unwrap());
    assert_eq!((status.is_well(), status.problems), (false, vec![resume.to_owned()]));
    // What is printed acts on the same cluster.
    let options = Options { reach: Reach::simulated(Some(Path::new("c.json"))), ..Options::default() };
    let status = world.run_with(options, |engine, _| engine.status("demo", None).unwrap());
    assert_eq!(
        status.problems,
        [resume.replace("demo.v0.1.0` to resume", "demo.v0.1.0 --simulate c.json` to resume")]
    );
    // Forward of what was there it does not go.
    let newer = told(rollback(&mut world, "0.3.0", Options::default()).unwrap_err());
    assert_eq!(
        newer,
        "`demo.v0.3.0` is newer than `demo.v0.2.0`, which was installed\na rollback goes to `demo.v0.2.0` or an older version"
    );
    world.cluster.registry().catalogs = catalogs;
    let operator = rollback(&mut world, "0.2.0", Options::default()).unwrap();
    assert_eq!((operator.installed_csv.as_str(), operator.is_well()), ("demo.v0.2.0", true));
}

#[test]
fn an_operator_whose_rollback_was_interrupted_is_not_invisible() {
    let mut world = interrupted();
    let listed = world.run(|engine, _| engine.list(None).unwrap());
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].problems.last().unwrap(), "its rollback to `demo.v0.2.0` was interrupted");
    let status = world.run(|engine, _| engine.status("demo", Some(NS)).map(drop).unwrap_err());
    insta::assert_snapshot!(told(status), @"
    there is no Subscription `demo` in the namespace `ns`: its rollback to `demo.v0.2.0` was interrupted
    run `olmkit operator rollback demo -n ns --to demo.v0.2.0` to resume
    ");
}

#[test]
fn the_kept_custom_resources_can_be_applied() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    world.make_demo("01", 5);
    rollback(&mut world, "0.2.0", Options::default()).unwrap();
    let kept = world.kept.borrow();
    let metadata = kept[0]["metadata"].as_object().unwrap();
    for field in ["resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"] {
        assert!(!metadata.contains_key(field), "{field}");
    }
    assert!(
        world.said.borrow().iter().any(|said| said.ends_with("; `kubectl apply -f ns-demo` restores them"))
    );
}

/// OLM before 0.18, and ClusterServiceVersions that were applied by hand, do not name their package.
#[test]
fn a_rollback_removes_what_the_subscription_installed_whatever_it_says_of_itself() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    let key = Key::new(&known::CSV, NS, "demo.v0.3.0");
    let annotations = json!({"operatorframework.io/properties": null, "olm.properties": null});
    world.cluster.store().patch(&key, &json!({"metadata": {"annotations": annotations}})).unwrap();
    rollback(&mut world, "0.2.0", Options::default()).unwrap();
    assert_eq!(world.names(&known::CSV), ["demo.v0.2.0"]);
}

#[test]
fn a_bundle_that_cannot_be_read_is_named_with_its_image_and_its_cause() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    let image = world.offer.packages["demo"].bundles["demo.v0.1.0"].image.clone();
    let causes = |error: EngineError| {
        let mut lines = vec![error.to_string()];
        let mut next = std::error::Error::source(&error);
        while let Some(cause) = next {
            lines.push(cause.to_string());
            next = cause.source();
        }
        lines
    };
    let before = world.cluster.save();
    world.unreachable.insert(image.clone());
    let told = causes(rollback(&mut world, "0.1.0", Options::default()).unwrap_err());
    let first = "cannot read the bundle `demo.v0.1.0`".to_owned();
    assert_eq!(told, [first.clone(), format!("cannot read `{image}`"), "cannot reach `registry`".to_owned()]);
    world.unreachable.clear();
    world.missing.insert(image.clone());
    let told = causes(rollback(&mut world, "0.1.0", Options::default()).unwrap_err());
    assert_eq!(told, [first, format!("the image `{image}` does not exist")]);
    assert_eq!(world.cluster.save(), before, "something was changed");
}

#[test]
fn a_dry_run_says_that_custom_resources_would_be_kept() {
    let mut world = world();
    let options = Options { dry_run: true, ..Options::default() };
    rollback(&mut world, "0.2.0", options).unwrap();
    let said = world.said.borrow().join("\n");
    assert!(said.contains("would back up 1 custom resources to ns-demo; "), "{said}");
    assert!(said.contains("would restore them") && !said.contains("backed up"), "{said}");
}
