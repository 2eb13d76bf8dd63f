//! A cluster that refuses, lets others write first, or takes a write without effect: the verbs say it in time, and begin nothing
//! that they could not end.

use std::time::Duration;

use olmkit::lifecycle::api::{Key, Resource, known};
use olmkit::lifecycle::cluster::{Cluster, ClusterError};
use olmkit::lifecycle::decide::Accept;
use olmkit::lifecycle::doctor::{Fix, Scope, diagnose, observe};
use olmkit::lifecycle::engine::{Engine, EngineError, Options};
use olmkit::lifecycle::install::Install;
use olmkit::lifecycle::policy::Policy;
use olmkit::lifecycle::rollback::Rollback;
use olmkit::lifecycle::simulate::Simulation;
use olmkit::lifecycle::uninstall::Uninstall;
use olmkit::lifecycle::upgrade::Upgrade;
use serde_json::{Value, json};

use crate::world::{Memory, NS, World, accept, demo, group, told, waiting};

/// The simulation, with faults.
#[derive(Default)]
struct Faulty {
    inner: Simulation,
    /// Rights that are missing, as verb and plural.
    missing: Vec<(&'static str, &'static str)>,
    /// Kinds that may not be read, by their plural.
    hidden: Vec<&'static str>,
    /// How many writes somebody else comes before.
    conflicts: u32,
    /// Whether patches of plans are taken and forgotten.
    deaf: bool,
    writes: u32,
    /// The version after which OLM does nothing any more until somebody changes the Subscription.
    dozes_after: Option<&'static str>,
    /// Since when it says meanwhile that it unpacks a bundle, if it does.
    unpacking_since: Option<&'static str>,
    /// How long it has done nothing.
    dozed: Duration,
    /// How often a Subscription that is created gets the status of the one that was deleted.
    inherited: u32,
    /// The status of that one.
    status: Value,
}

impl Faulty {
    /// Whether OLM has settled on the version after which it does nothing.
    fn dozes(&mut self) -> Result<bool, ClusterError> {
        let Some(csv) = self.dozes_after else { return Ok(false) };
        let subscription = self.inner.get(&known::SUBSCRIPTION, NS, "demo")?.unwrap_or_default();
        let phase = self.inner.get(&known::CSV, NS, csv)?.unwrap_or_default()["status"]["phase"].clone();
        let status = &subscription["status"];
        let settled = status["state"] == "AtLatestKnown" && status["installedCSV"] == csv;
        let before = self.inner.get(&known::CSV, NS, "demo.v0.1.0")?;
        let plans = self.inner.list(&known::INSTALL_PLAN, Some(NS))?;
        let over = before.is_none() && plans.iter().all(|plan| plan["status"]["phase"] == "Complete");
        Ok(settled && over && phase == "Succeeded")
    }

    /// What a Subscription says while OLM does nothing.
    fn told(&mut self, resource: &Resource, mut object: Value) -> Result<Value, ClusterError> {
        if let Some(since) = self.unpacking_since
            && *resource == *known::SUBSCRIPTION
            && self.dozes()?
        {
            let unpacking = json!({"type": "BundleUnpacking", "status": "True", "reason": "UnpackingInProgress", "lastTransitionTime": since});
            object["status"]["conditions"] = json!([unpacking]);
        }
        Ok(object)
    }

    fn read(&self, verb: &'static str, resource: &Resource) -> Result<(), ClusterError> {
        if !self.hidden.contains(&resource.plural.as_str()) {
            return Ok(());
        }
        let resource = resource.full_name();
        Err(ClusterError::Forbidden { verb, resource, namespace: None, source: None })
    }

    fn write(&mut self, key: &Key) -> Result<(), ClusterError> {
        self.writes += 1;
        if self.conflicts == 0 {
            return Ok(());
        }
        self.conflicts -= 1;
        Err(ClusterError::Conflict { key: key.clone() })
    }
}

impl Cluster for Faulty {
    fn context(&self) -> &str {
        ""
    }

    fn list(&mut self, resource: &Resource, namespace: Option<&str>) -> Result<Vec<Value>, ClusterError> {
        self.read("list", resource)?;
        let found = self.inner.list(resource, namespace)?;
        found.into_iter().map(|object| self.told(resource, object)).collect()
    }

    fn get(
        &mut self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        self.read("get", resource)?;
        let found = self.inner.get(resource, namespace, name)?;
        found.map(|object| self.told(resource, object)).transpose()
    }

    fn create(&mut self, resource: &Resource, object: &Value) -> Result<Value, ClusterError> {
        self.writes += 1;
        let created = self.inner.create(resource, object)?;
        if *resource == *known::SUBSCRIPTION && self.inherited > 0 && self.status.is_object() {
            self.inherited -= 1;
            self.inner.store().patch(&Key::of(&created), &json!({"status": self.status}))?;
        }
        Ok(created)
    }

    fn patch(&mut self, resource: &Resource, key: &Key, patch: &Value) -> Result<Value, ClusterError> {
        self.write(key)?;
        if *resource == *known::SUBSCRIPTION {
            self.dozes_after = None;
        }
        if self.deaf && *resource == *known::INSTALL_PLAN {
            return Ok(self.inner.get(resource, &key.namespace, &key.name)?.unwrap());
        }
        self.inner.patch(resource, key, patch)
    }

    fn delete(&mut self, resource: &Resource, key: &Key) -> Result<(), ClusterError> {
        self.write(key)?;
        if *resource == *known::SUBSCRIPTION {
            let found = self.inner.get(resource, &key.namespace, &key.name)?.unwrap_or_default();
            self.status = found["status"].clone();
        }
        self.inner.delete(resource, key)
    }

    fn may(&mut self, verb: &str, resource: &Resource, _: &str, _: &str) -> Result<bool, ClusterError> {
        Ok(!self.missing.iter().any(|(one, plural)| *one == verb && *plural == resource.plural))
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, ClusterError> {
        if self.dozes()? {
            self.dozed += timeout;
            return Ok(false);
        }
        self.inner.wait(timeout)
    }

    fn now(&self) -> Duration {
        self.inner.now() + self.dozed
    }

    fn time_of_day(&self) -> i64 {
        self.inner.time_of_day()
    }
}

impl World {
    /// Does something with an engine on the cluster as it is with faults.
    fn run_on<T>(
        &mut self,
        faulty: &mut Faulty,
        options: Options,
        work: impl FnOnce(&mut Engine<'_>, &World) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        faulty.inner = std::mem::take(&mut self.cluster);
        let done = work(&mut Engine::new(faulty, self, self, options), self);
        self.cluster = std::mem::take(&mut faulty.inner);
        done
    }
}

fn rollback(to: &str) -> Rollback {
    Rollback { name: "demo".into(), to: to.into(), ..Rollback::default() }
}

fn upgrade() -> Upgrade {
    Upgrade { name: "demo".into(), namespace: Some(NS.into()), ..Upgrade::default() }
}

fn short() -> Options {
    Options { timeout: Duration::from_secs(30), ..Options::default() }
}

fn help_of(error: &EngineError) -> String {
    match error {
        EngineError::Rights { missing } => {
            missing.iter().map(|right| right.rule()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[test]
fn rollback_and_uninstall_begin_nothing_when_a_right_for_a_later_step_is_missing() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    let before = world.cluster.save();
    let mut faulty = Faulty { missing: vec![("create", "subscriptions")], ..Faulty::default() };
    let error = world
        .run_on(&mut faulty, Options::default(), |engine, world| {
            engine.rollback(&rollback("0.1.0"), &Memory(world))
        })
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "not allowed to create `subscriptions.operators.coreos.com` in the namespace `ns`"
    );
    insta::assert_snapshot!(help_of(&error), @r#"the rule `{apiGroups: ["operators.coreos.com"], resources: ["subscriptions"], verbs: ["create"]}` is missing: add it to a Role there"#);
    assert!(world.kept.borrow().is_empty(), "a backup was written");
    faulty.missing = vec![("delete", "clusterroles"), ("delete", "operatorgroups")];
    let request = Uninstall { name: "demo".into(), namespace: Some(NS.into()), ..Uninstall::default() };
    let error =
        world.run_on(&mut faulty, Options::default(), |engine, _| engine.uninstall(&request)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not allowed to delete `operatorgroups.operators.coreos.com` in the namespace `ns`, \
         delete `clusterroles.rbac.authorization.k8s.io`"
    );
    assert_eq!(faulty.writes, 0);
    assert_eq!(world.cluster.save(), before, "something was changed");
    // A dry run shows what would be done all the same.
    let dry = Options { dry_run: true, ..Options::default() };
    world.run_on(&mut faulty, dry, |engine, _| engine.uninstall(&request)).unwrap();
    let said = world.said.borrow().join("\n");
    assert!(said.contains("not allowed to delete `clusterroles.rbac.authorization.k8s.io`"), "{said}");
}

#[test]
fn install_and_upgrade_ask_for_their_rights_first() {
    let mut world = World::of("01");
    let before = world.cluster.save();
    let mut faulty = Faulty { missing: vec![("create", "subscriptions")], ..Faulty::default() };
    let error =
        world.run_on(&mut faulty, Options::default(), |engine, _| engine.install(&demo(None))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not allowed to create `subscriptions.operators.coreos.com` in the namespace `ns`"
    );
    assert_eq!(world.cluster.save(), before, "something was changed");
    let mut world = waiting();
    let before = world.cluster.save();
    let mut faulty = Faulty { missing: vec![("patch", "installplans")], ..Faulty::default() };
    let error =
        world.run_on(&mut faulty, Options::default(), |engine, _| engine.upgrade(&upgrade())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not allowed to patch `installplans.operators.coreos.com` in the namespace `ns`"
    );
    assert_eq!(world.cluster.save(), before, "something was changed");
}

#[test]
fn writes_of_others_that_come_in_between_are_no_reason_to_give_up() {
    let mut world = waiting();
    let mut faulty = Faulty { conflicts: 3, ..Faulty::default() };
    let approved = world.run_on(&mut faulty, Options::default(), |engine, _| {
        engine.approve("demo", Some(NS), &Accept::default())
    });
    assert_eq!(approved.unwrap().installed_csv, "demo.v0.2.0");
    faulty.conflicts = 3;
    let request = Uninstall { name: "demo".into(), namespace: Some(NS.into()), ..Uninstall::default() };
    world.run_on(&mut faulty, Options::default(), |engine, _| engine.uninstall(&request)).unwrap();
    assert!(world.names(&known::SUBSCRIPTION).is_empty());
}

#[test]
fn writes_of_others_without_end_are_given_up_soon() {
    for verb in ["approve", "upgrade", "uninstall"] {
        let mut world = waiting();
        let mut faulty = Faulty { conflicts: u32::MAX, ..Faulty::default() };
        let error = world
            .run_on(&mut faulty, Options::default(), |engine, _| match verb {
                "approve" => engine.approve("demo", Some(NS), &Accept::default()).map(drop),
                "upgrade" => engine.upgrade(&upgrade()).map(drop),
                _ => engine
                    .uninstall(&Uninstall {
                        name: "demo".into(),
                        namespace: Some(NS.into()),
                        ..Uninstall::default()
                    })
                    .map(drop),
            })
            .unwrap_err();
        assert!(matches!(error, EngineError::Cluster(ClusterError::Conflict { .. })), "{verb}: {error}");
        assert!(faulty.writes < 20, "{verb}: {} writes", faulty.writes);
    }
}

#[test]
fn a_patch_that_is_taken_without_effect_is_not_repeated_for_ever_and_is_told() {
    let expected = |error: EngineError| {
        let said = error.to_string();
        assert!(
            said.starts_with("timed out after 30 s waiting for installplan/install-")
                && said.ends_with(" to be approved, although the server has accepted the patch"),
            "{said}"
        );
    };
    let mut world = waiting();
    let mut faulty = Faulty { deaf: true, ..Faulty::default() };
    let approve =
        world.run_on(&mut faulty, short(), |engine, _| engine.approve("demo", Some(NS), &Accept::default()));
    expected(approve.unwrap_err());
    let mut world = waiting();
    let mut faulty = Faulty { deaf: true, ..Faulty::default() };
    expected(world.run_on(&mut faulty, short(), |engine, _| engine.upgrade(&upgrade())).unwrap_err());
    assert!(faulty.writes < 10, "{} writes", faulty.writes);
}

#[test]
fn an_olm_that_missed_the_end_of_a_hop_is_made_to_look_again() {
    // `BundleUnpacking` stays when the unpacking is over: what was said before the newest plan is of no concern.
    let (before, after) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    for (unpacking_since, patience) in [(None, 20), (Some(before), 20), (Some(after), 60)] {
        let mut world = waiting();
        let mut faulty = Faulty { dozes_after: Some("demo.v0.2.0"), unpacking_since, ..Faulty::default() };
        let done = world.run_on(&mut faulty, Options::default(), |engine, _| engine.upgrade(&upgrade()));
        assert_eq!(done.unwrap().installed_csv, "demo.v0.3.0");
        let dozed = faulty.dozed.as_secs();
        assert!((patience..patience + 40).contains(&dozed), "{dozed} s");
        let said = world.said.borrow().join("\n");
        let touched = format!("OLM has done nothing for {patience} s; touching subscription/demo");
        assert!(said.contains(&touched), "{said}");
        let left = world.cluster.get(&known::SUBSCRIPTION, NS, "demo").unwrap().unwrap();
        assert_eq!(left.pointer("/metadata/annotations/olmkit.io~1look-again"), None);
    }
}

#[test]
fn what_is_waited_for_names_its_finalizer() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    world.make_demo("01", 3);
    hold(&mut world);
    let request = Uninstall { delete_crds: true, ..uninstall() };
    let error = world.run_with(short(), |engine, _| engine.uninstall(&request)).unwrap_err();
    assert_eq!(error.to_string(), "timed out after 30 s waiting for demo/example in ns to be deleted");
    let EngineError::TimedOut { suspicion: Some(stuck), .. } = error else { panic!("{error}") };
    assert_eq!(stuck.sentence, "its finalizer `example.com/hold` has to be removed by its controller");
    // Without waiting it is not called removed.
    let options = Options { wait: false, ..Options::default() };
    let removed = world.run_with(options, |engine, _| engine.uninstall(&request)).unwrap();
    let deleting: Vec<_> =
        removed.deleting.iter().map(|part| (part.name.as_str(), part.reason.to_string())).collect();
    assert_eq!(deleting, [("example", stuck.sentence)]);
    assert!(removed.removed.is_empty(), "{removed:?}");
    assert!(
        removed.kept.iter().any(|part| part.reason.to_string().contains("finalize demo/example in ns")),
        "{removed:?}"
    );
}

fn uninstall() -> Uninstall {
    Uninstall { name: "demo".into(), namespace: Some(NS.into()), ..Uninstall::default() }
}

/// A finalizer that nobody removes, on the custom resource.
fn hold(world: &mut World) {
    let mut key = Key::new(&known::SUBSCRIPTION, NS, "example");
    (key.group, key.kind) = ("t01.example.com".into(), "Demo".into());
    world.cluster.store().patch(&key, &json!({"metadata": {"finalizers": ["example.com/hold"]}})).unwrap();
}

#[test]
fn status_is_not_healthy_without_the_deployment_however_the_version_is_said_to_be() {
    let mut world = waiting();
    let name = world.names(&known::DEPLOYMENT).remove(0);
    world.cluster.store().delete(&Key::new(&known::DEPLOYMENT, NS, &name));
    let (status, described) = world.run(|engine, _| {
        (engine.status("demo", Some(NS)).unwrap(), engine.describe("demo", Some(NS)).unwrap())
    });
    assert_eq!(status.csv_phase, "Succeeded");
    assert!(!status.is_well());
    let [cause, state] = &status.problems[..] else { panic!("{:?}", status.problems) };
    assert!(cause.contains(&format!("its deployment `{name}` does not exist")), "{cause}");
    assert_eq!(*state, format!("deployment/{name}: not found"));
    assert_eq!(described.deployments, [format!("{name}: not found")]);
}

#[test]
fn two_operator_groups_are_a_problem_and_stop_upgrade_and_approve() {
    let mut world = waiting().with(group("other", &[NS]));
    let before = world.cluster.save();
    let problem = "the namespace `ns` has 2 OperatorGroups: `ns`, `other`, so OLM installs and upgrades nothing there \
                   (found 2 operatorGroups, expected 1)";
    let status = world.run(|engine, _| engine.status("demo", Some(NS)).unwrap());
    assert_eq!((status.is_well(), status.problems.join("")), (false, problem.to_owned()));
    let dry = Options { dry_run: true, ..Options::default() };
    let refused = format!("{problem} [several-operator-groups]\n`kubectl -n ns delete operatorgroup");
    let said = told(world.run_with(dry, |engine, _| engine.upgrade(&upgrade())).unwrap_err());
    assert!(said.starts_with(&refused), "{said}");
    let said = told(world.run(|engine, _| engine.approve("demo", Some(NS), &Accept::default())).unwrap_err());
    assert!(said.starts_with(&refused), "{said}");
    assert_eq!(world.cluster.save(), before, "something was changed");
}

#[test]
fn a_dry_run_refuses_a_plan_that_the_upgrade_would_refuse() {
    let mut world = waiting();
    let plan = world.names(&known::INSTALL_PLAN).into_iter().find_map(|name| {
        let key = Key::new(&known::INSTALL_PLAN, NS, &name);
        let found = world.cluster.store().get(&key)?;
        (found["spec"]["approved"] == false).then_some(key)
    });
    let patch = json!({"spec": {"clusterServiceVersionNames": ["demo.v0.2.0", "second.v1.0.0"]}});
    world.cluster.store().patch(&plan.unwrap(), &patch).unwrap();
    let dry = Options { dry_run: true, ..Options::default() };
    let said = told(world.run_with(dry, |engine, _| engine.upgrade(&upgrade())).unwrap_err());
    assert!(said.contains("also contains `second.v1.0.0`"), "{said}");
}

#[test]
fn a_subscription_that_is_being_deleted_is_not_alive() {
    let mut world = waiting();
    let key = Key::new(&known::SUBSCRIPTION, NS, "demo");
    world.cluster.store().patch(&key, &json!({"metadata": {"finalizers": ["example.com/hold"]}})).unwrap();
    world.cluster.store().delete(&key);
    let going = "subscription/demo is being deleted (finalizer `example.com/hold`)";
    let status = world.run(|engine, _| engine.status("demo", Some(NS)).unwrap());
    assert_eq!((status.is_well(), status.problems.join("")), (false, going.to_owned()));
    let refused = format!("{going}\nwait until it is gone, then run the command again");
    assert_eq!(told(world.upgrade(None, None).unwrap_err()), refused);
    assert_eq!(told(world.install(demo(None)).unwrap_err()), refused);
    let rolled = world.run(|engine, world| engine.rollback(&rollback("0.1.0"), &Memory(world)));
    assert_eq!(told(rolled.unwrap_err()), refused);
}

#[test]
fn a_version_that_somebody_deleted_is_told_by_every_verb() {
    let mut world = waiting();
    let subscription = Key::new(&known::SUBSCRIPTION, NS, "demo");
    world.cluster.store().delete(&Key::new(&known::CSV, NS, "demo.v0.1.0"));
    world
        .cluster
        .store()
        .patch(&Key::new(&known::CSV, NS, "demo.v0.1.0"), &json!({"metadata": {"finalizers": null}}))
        .ok();
    let lost = "the ClusterServiceVersion `demo.v0.1.0` was deleted, but the Subscription `demo` still records it as installed, so \
                OLM does not install it again [csv-deleted]\n`olmkit operator doctor demo -n ns --fix`: ";
    let is_told = |error: EngineError| {
        let said = told(error);
        assert!(said.starts_with(lost), "{said}");
    };
    assert!(world.cluster.store().get(&Key::new(&known::CSV, NS, "demo.v0.1.0")).is_none());
    assert!(world.cluster.store().get(&subscription).is_some());
    let dry = || Options { dry_run: true, ..Options::default() };
    is_told(world.upgrade(None, None).unwrap_err());
    is_told(world.run_with(dry(), |engine, _| engine.install(&demo(None))).unwrap_err());
    is_told(world.run(|engine, world| engine.rollback(&rollback("0.1.0"), &Memory(world))).unwrap_err());
}

#[test]
fn a_namespace_that_is_being_deleted_is_said_before_anything() {
    let mut world = World::of("01");
    let key = Key::new(&known::NAMESPACE, "", NS);
    world.cluster.store().patch(&key, &json!({"metadata": {"finalizers": ["example.com/hold"]}})).unwrap();
    world.cluster.store().delete(&key);
    let before = world.cluster.save();
    let said = told(world.install(Install { ..demo(None) }).unwrap_err());
    let named = "the namespace `ns` is being deleted, so nothing can be created in it: the finalizer `example.com/hold`";
    assert!(said.starts_with(named) && said.contains("[namespace-terminating]"), "{said}");
    assert_eq!(world.cluster.save(), before, "something was changed");
}

#[test]
fn what_is_accepted_and_not_carried_is_refused() {
    let mut world = waiting();
    let before = world.cluster.save();
    for names in [&["nope"][..], &["demo.v0.2.0", "nope"]] {
        let error = world.run(|engine, _| engine.approve("demo", Some(NS), &accept(names)).unwrap_err());
        let said = told(error);
        assert!(said.starts_with("--accept names `nope`, which installplan/install-"), "{said}");
        let help = "does not contain\nit contains only `demo.v0.2.0`: omit --accept";
        assert!(said.ends_with(help), "{said}");
        assert_eq!(world.cluster.save(), before, "something was changed");
    }
    world.run(|engine, _| engine.approve("demo", Some(NS), &accept(&["demo.v0.2.0"])).unwrap());
}

/// A plan that was approved is not approved again: OLM goes on with it, or says why not.
#[test]
fn after_an_approval_the_next_command_is_not_the_same_again() {
    let mut world = World::of("01");
    world.limit_size("demo.v0.2.0", 9);
    world.install(demo(Some("0.1.0"))).unwrap();
    world.make_demo("01", 50);
    world.run(|engine, _| {
        engine.approve("demo", Some(NS), &accept(&["crd-invalidates-resources"])).unwrap_err();
        let resume = engine.account().resume.unwrap();
        assert!(resume.to_string().contains("`olmkit operator doctor demo -n ns`"), "{resume}");
    });
}

/// Repairs everything with an engine whose rights are as they are in the cluster with faults.
fn fixed(world: &mut World, faulty: &mut Faulty) -> Result<Vec<Fix>, EngineError> {
    let now = world.cluster.time_of_day();
    let seen = observe(&mut world.cluster, &Scope::default(), Some(now)).unwrap();
    let diagnosis = diagnose(&seen, &Scope::default());
    world.run_on(faulty, Options::default(), |engine, _| engine.fix(&diagnosis))
}

#[test]
fn the_doctor_deletes_nothing_that_it_may_not_create_again() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    let key = Key::new(&known::CSV, NS, "demo.v0.3.0");
    world.cluster.store().delete(&key);
    world.cluster.store().patch(&key, &json!({"metadata": {"finalizers": null}})).ok();
    let later = world.cluster.store().now() + Duration::from_secs(30);
    world.cluster.run_until(later);
    let before = world.cluster.save();
    for verb in ["create", "delete"] {
        let mut faulty = Faulty { missing: vec![(verb, "subscriptions")], ..Faulty::default() };
        let error = fixed(&mut world, &mut faulty).unwrap_err();
        let expected =
            format!("not allowed to {verb} `subscriptions.operators.coreos.com` in the namespace `ns`");
        assert_eq!(error.to_string(), expected);
        assert_eq!(world.cluster.save(), before, "something was changed");
    }
    assert!(fixed(&mut world, &mut Faulty::default()).unwrap()[0].done);
}

#[test]
fn the_doctor_asks_for_the_rights_of_every_step_of_a_repair_first() {
    let mut world = World::of("01").with(group("g", &[NS]));
    for object in crate::fix::failed_unpacking() {
        world.cluster.store().create(object).unwrap();
    }
    let before = world.cluster.save();
    let mut faulty = Faulty { missing: vec![("delete", "configmaps")], ..Faulty::default() };
    let error = fixed(&mut world, &mut faulty).unwrap_err();
    assert_eq!(error.to_string(), "not allowed to delete `configmaps` in the namespace `olm`");
    assert_eq!(world.cluster.save(), before, "something was changed");
    // An InstallPlan is retried through its status.
    let mut world = World::of("01");
    world.limit_size("demo.v0.2.0", 9);
    world.install(demo(Some("0.1.0"))).unwrap();
    world.make_demo("01", 50);
    let accepted = accept(&["crd-invalidates-resources"]);
    world.run(|engine, _| engine.approve("demo", Some(NS), &accepted)).unwrap_err();
    let later = world.cluster.store().now() + Duration::from_secs(120);
    world.cluster.run_until(later);
    let mut example = Key::new(&known::SUBSCRIPTION, NS, "example");
    (example.group, example.kind) = ("t01.example.com".into(), "Demo".into());
    world.cluster.store().patch(&example, &json!({"spec": {"size": 3}})).unwrap();
    let mut faulty = Faulty { missing: vec![("patch", "installplans/status")], ..Faulty::default() };
    let error = fixed(&mut world, &mut faulty).unwrap_err();
    let expected = "not allowed to patch `installplans/status.operators.coreos.com` in the namespace `ns`";
    assert_eq!(error.to_string(), expected);
    insta::assert_snapshot!(help_of(&error), @r#"the rule `{apiGroups: ["operators.coreos.com"], resources: ["installplans/status"], verbs: ["patch"]}` is missing: add it to a Role there"#);
}

#[test]
fn a_description_without_the_right_to_see_events_shows_the_rest() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    let mut faulty = Faulty { hidden: vec!["events"], ..Faulty::default() };
    let shown =
        world.run_on(&mut faulty, Options::default(), |engine, _| engine.describe("demo", Some(NS))).unwrap();
    assert_eq!((shown.operator.installed_csv.as_str(), shown.events.len()), ("demo.v0.3.0", 0));
}

/// A gate stays shut when what it has to look at cannot be seen.
#[test]
fn a_plan_meets_no_policy_where_crds_or_custom_resources_cannot_be_read() {
    let mut world = waiting();
    let policy = Policy::parse("deny: [breaking-changes]").unwrap();
    for (hidden, expected) in [
        (vec![], vec![]),
        (vec!["customresourcedefinitions"], vec!["not-read", "not-read"]),
        (vec!["demos"], vec!["not-read"]),
    ] {
        let mut faulty = Faulty { hidden, ..Faulty::default() };
        let options = Options::default();
        let (preview, csv) =
            world.run_on(&mut faulty, options, |engine, _| engine.preview("demo", Some(NS))).unwrap();
        let found: Vec<_> = policy.check(&preview, &csv).into_iter().map(|one| one.rule).collect();
        assert_eq!(found, expected, "{preview:?}");
        let all = preview.csvs.iter().flat_map(|csv| &csv.findings);
        assert!(all.into_iter().all(|one| one.code != "crd-added"), "{preview:?}");
    }
}

/// OLM ends what it was resolving for a Subscription that was deleted by writing its status into the one that was created meanwhile.
#[test]
fn a_subscription_that_inherits_a_status_is_created_once_more() {
    let rollback = |world: &mut World, faulty: &mut Faulty| {
        let request = Rollback { name: "demo".into(), to: "0.2.0".into(), ..Rollback::default() };
        world.run_on(faulty, Options::default(), |engine, world| engine.rollback(&request, &Memory(world)))
    };
    let said =
        "OLM has given the new Subscription the status of the deleted one; creating the Subscription again";
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    let operator = rollback(&mut world, &mut Faulty { inherited: 1, ..Faulty::default() }).unwrap();
    assert_eq!(operator.installed_csv, "demo.v0.2.0");
    assert!(world.said.borrow().iter().any(|line| line == said), "{:?}", world.said);
    // Where it happens over and over, the command ends, and the next one begins anew.
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    let error = rollback(&mut world, &mut Faulty { inherited: 9, ..Faulty::default() }).unwrap_err();
    assert!(told(error).contains("[csv-deleted]"));
    let operator = rollback(&mut world, &mut Faulty::default()).unwrap();
    assert_eq!(operator.installed_csv, "demo.v0.2.0");
    // An install that follows an uninstall.
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    let status = world.subscription()["status"].clone();
    world
        .run(|engine, _| engine.uninstall(&Uninstall { name: "demo".into(), ..Uninstall::default() }))
        .unwrap();
    let mut faulty = Faulty { inherited: 1, status, ..Faulty::default() };
    let request = demo(Some("0.2.0"));
    let operator =
        world.run_on(&mut faulty, Options::default(), |engine, _| engine.install(&request)).unwrap();
    assert_eq!((operator.installed_csv.as_str(), faulty.inherited), ("demo.v0.2.0", 0));
}
