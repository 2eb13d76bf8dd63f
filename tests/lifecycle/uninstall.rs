//! What uninstall leaves alone, since others need it, and what it tells of that.

use std::time::Duration;

use olmkit::lifecycle::api::{Approval, Key, Resource, known};
use olmkit::lifecycle::cluster::ClusterError;
use olmkit::lifecycle::engine::{Engine, EngineError, Options};
use olmkit::lifecycle::install::Install;
use olmkit::lifecycle::uninstall::{Removed, Uninstall};
use olmkit::lifecycle::upgrade::Upgrade;
use serde_json::{Value, json};

use crate::disturbed::Disturbed;
use crate::world::{NS, World, demo, told, without_random};

fn uninstall(world: &mut World, namespace: &str, delete_crds: bool, wait: bool) -> Removed {
    let request = Uninstall {
        name: "demo".into(),
        namespace: Some(namespace.into()),
        delete_crds,
        accept_dependents: true,
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

/// The kind of the demo's custom resources.
fn demos() -> Resource {
    Resource {
        group: "t01.example.com".into(),
        version: "v1".into(),
        kind: "Demo".into(),
        plural: "demos".into(),
        namespaced: true,
    }
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
    assert!(said.contains(" cannot install `demo.v0.2.0`: configmap \""), "{said}");
    let plan = said.split(' ').next().unwrap().trim_start_matches("installplan/").to_owned();
    assert!(
        said.contains(&format!(
            "`kubectl -n e1 delete installplan.operators.coreos.com {plan}`: deletes the plan, whose unpacked bundle is gone"
        )),
        "{said}"
    );
    // What is installed runs on meanwhile: the way back costs more.
    assert!(said.contains("rollback demo -n e1 --to 0.1.0`: instead, goes back"), "{said}");
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
        let before = world.cluster.save();
        let request = Uninstall { name: "demo".into(), namespace: Some(NS.into()), ..Uninstall::default() };
        let said = told(world.run(|engine, _| engine.uninstall(&request)).unwrap_err());
        assert_eq!(world.cluster.save(), before, "something was changed");
        let first =
            "`elsewhere/theirs.v1.0.0` requires `demos.t01.example.com`, which `demo.v0.3.0` provides\n";
        assert!(said.starts_with(first) && said.contains("--accept-dependents"), "{said}");
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
    let resource = demos();
    let example = Key::new(&resource, NS, "example");
    let finalizer = json!({"metadata": {"finalizers": ["example.com/cleanup"]}});
    world.cluster.store().patch(&example, &finalizer).unwrap();
    let removed = uninstall(&mut world, NS, true, false);
    assert_eq!((removed.removed.len(), removed.deleting.len()), (0, 1), "{removed:?}");
    assert_eq!(
        kept(&removed, "ClusterServiceVersion"),
        ["demo.v0.3.0: the operator still has to finalize demo/example in ns: run the same command again"]
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

/// After `--delete-crds` was given up, without it: the custom resource would stay for good.
#[test]
fn uninstall_refuses_to_strand_custom_resources_that_wait_for_the_operator() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    world.make_demo("01", 3);
    let example = Key::new(&demos(), NS, "example");
    let finalizers = |names: Value| json!({"metadata": {"finalizers": names}});
    world.cluster.store().patch(&example, &finalizers(json!(["example.com/cleanup"]))).unwrap();
    let whole = Uninstall { name: "demo".into(), delete_crds: true, ..Uninstall::default() };
    let said = told(world.run(|engine, _| engine.uninstall(&whole)).unwrap_err());
    assert!(said.contains("waiting for demo/example in ns to be deleted"), "{said}");
    let before = world.cluster.save();
    let request = Uninstall { delete_crds: false, ..whole };
    let said = told(world.run(|engine, _| engine.uninstall(&request)).unwrap_err());
    assert_eq!(
        said,
        "demo/example in ns is being deleted: its finalizer `example.com/cleanup` has to be removed by its controller\n\
         `kubectl -n ns wait --for=delete demos.t01.example.com/example --timeout=10m` waits until `demo.v0.3.0` has done so: \
         then run the same command again; if it never does, pass --accept-finalizers, and remove `metadata.finalizers` by hand \
         afterwards"
    );
    assert_eq!(world.cluster.save(), before);
    let accepted = Uninstall { accept_finalizers: true, ..request.clone() };
    let dry = Options { dry_run: true, ..Options::default() };
    assert!(world.run_with(dry, |engine, _| engine.uninstall(&accepted)).is_ok());
    // What nobody has deleted, and what Kubernetes finalizes, stays as it is.
    world.cluster.store().patch(&example, &finalizers(json!(["foregroundDeletion"]))).unwrap();
    world.run(|engine, _| engine.uninstall(&request)).unwrap();
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

/// Interrupts an uninstall after each of its deletions, lets OLM go on, and runs `again`: nothing is left.
fn cut_off_after_each_deletion(install: Install, request: &Uninstall, again: &Uninstall) {
    let mut world = World::of("01");
    world.install(install).unwrap();
    world.make_demo("01", 3);
    let start = world.cluster.clone();
    let mut deletions = 0;
    loop {
        deletions += 1;
        world.cluster = start.clone();
        let mut cluster = std::mem::take(&mut world.cluster);
        let done = {
            let mut cut_off = Disturbed { deletions, ..Disturbed::not(&mut cluster) };
            Engine::new(&mut cut_off, &world, &world, Options::default()).uninstall(request)
        };
        world.cluster = cluster;
        let is_done = done.is_ok();
        match done {
            Ok(_) | Err(EngineError::Cluster(ClusterError::Interrupted)) => {}
            Err(error) => panic!("after {deletions} deletions: {error}"),
        }
        let later = world.cluster.store().now() + Duration::from_secs(60);
        world.cluster.run_until(later);
        if !is_done {
            match world.run(|engine, _| engine.uninstall(again)) {
                Ok(removed) => assert_eq!(removed.kept, [], "after {deletions} deletions"),
                // The last deletion was done before.
                Err(EngineError::Refused { what, .. }) => assert!(what.starts_with("there is no"), "{what}"),
                Err(error) => panic!("again after {deletions} deletions: {error}"),
            }
        }
        let left: Vec<String> = world.cluster.store().all().map(|(key, _)| key.to_string()).collect();
        assert_eq!(left, ["namespace/ns", "catalogsource/catalog"], "after {deletions} deletions");
        if is_done {
            break;
        }
    }
    assert!(deletions > 15, "only {deletions} deletions");
}

#[test]
fn uninstall_that_is_cut_off_after_any_deletion_leaves_nothing_when_it_is_run_again() {
    let request = Uninstall {
        name: "demo".into(),
        namespace: Some(NS.into()),
        delete_crds: true,
        ..Uninstall::default()
    };
    cut_off_after_each_deletion(demo(None), &request, &request);
    // Without the namespace, which was that of the Subscription.
    let everywhere = Uninstall { namespace: None, ..request.clone() };
    cut_off_after_each_deletion(demo(None), &everywhere, &request);
    // By the name of a Subscription that is gone then.
    let named = Uninstall { name: "mine".into(), ..everywhere };
    cut_off_after_each_deletion(Install { name: Some("mine".into()), ..demo(None) }, &named, &request);
}

#[test]
fn uninstall_that_is_cut_off_says_the_name_that_goes_on() {
    let mut world = World::of("01");
    world.install(Install { name: Some("mine".into()), ..demo(None) }).unwrap();
    let request = Uninstall { name: "mine".into(), ..Uninstall::default() };
    let resume = world.run(|engine, _| {
        engine.uninstall(&request).unwrap();
        engine.account().resume.map(|resume| resume.to_string())
    });
    assert_eq!(resume.as_deref(), Some("run the command again with `demo -n ns` to resume"));
}

/// Custom resources that wait for an operator that is gone would be waited for in vain.
#[test]
fn uninstall_refuses_to_wait_for_finalizers_without_an_operator() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    uninstall(&mut world, NS, false, true);
    world.make_demo("01", 3);
    let resource = demos();
    let finalizer = json!({"metadata": {"finalizers": ["example.com/cleanup"]}});
    world.cluster.store().patch(&Key::new(&resource, NS, "example"), &finalizer).unwrap();
    let request =
        Uninstall { name: "demo".into(), namespace: None, delete_crds: true, ..Uninstall::default() };
    let before = world.cluster.save();
    let said = told(world.run(|engine, _| engine.uninstall(&request)).unwrap_err());
    assert!(
        said.starts_with("demo/example has finalizers, but the operator that handles them is gone"),
        "{said}"
    );
    assert_eq!(world.cluster.save(), before);
    // Without them the CRDs go, also later.
    world
        .cluster
        .store()
        .patch(&Key::new(&resource, NS, "example"), &json!({"metadata": {"finalizers": null}}))
        .unwrap();
    assert_eq!(world.run(|engine, _| engine.uninstall(&request)).unwrap().kept, []);
    assert_eq!(world.names(&known::CRD), Vec::<String>::new());
    // CRDs of others stay, whatever label they have.
    let label = "operators.coreos.com/demo.ns";
    let mut world = World::of("01").with(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "demos.t01.example.com", "labels": {
            label: "", "olm.operatorframework.io/owner-kind": "ClusterExtension", "olm.operatorframework.io/owner-name": "demo",
        }},
        "spec": {"group": "t01.example.com", "names": {"kind": "Demo", "plural": "demos"}, "scope": "Namespaced", "versions": []},
    }));
    let request = Uninstall { namespace: Some(NS.into()), ..request };
    assert!(
        told(world.run(|engine, _| engine.uninstall(&request)).unwrap_err())
            .starts_with("there is no Subscription")
    );
    assert_eq!(world.names(&known::CRD), ["demos.t01.example.com"]);
}

#[test]
fn a_version_without_a_subscription_is_named_with_the_next_command() {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    let mut copy = world.cluster.store().get(&Key::new(&known::CSV, NS, "demo.v0.1.0")).unwrap().clone();
    copy["metadata"] = json!({
        "name": "demo.v0.1.0", "namespace": "elsewhere", "labels": {"olm.copiedFrom": NS},
        "annotations": copy["metadata"]["annotations"],
    });
    copy["status"]["reason"] = json!("Copied");
    let mut world = world.with(copy);
    let status = |world: &mut World, name: &str, namespace: &str| {
        told(world.run(|engine, _| engine.status(name, Some(namespace)).map(drop).unwrap_err()))
    };
    // By the package's name and by its own.
    for name in ["demo", "demo.v0.1.0"] {
        let copied = status(&mut world, name, "elsewhere");
        assert!(
            copied.starts_with(&format!("there is no Subscription `{name}` in the namespace `elsewhere`: ")),
            "{copied}"
        );
        let why = "clusterserviceversion/demo.v0.1.0 in `elsewhere` is a copy of the one in `ns`\nrun the command with `-n ns`";
        assert!(copied.ends_with(why), "{copied}");
    }
    let upgrade = Upgrade { name: "demo".into(), namespace: Some("elsewhere".into()), ..Upgrade::default() };
    let refused = told(world.run(|engine, _| engine.upgrade(&upgrade)).map(drop).unwrap_err());
    assert!(refused.contains("is a copy of the one in `ns`"), "{refused}");
    world.cluster.store().delete(&Key::new(&known::SUBSCRIPTION, NS, "demo"));
    let orphan = status(&mut world, "demo", NS);
    insta::assert_snapshot!(orphan, @"
    there is no Subscription `demo` in the namespace `ns`: clusterserviceversion/demo.v0.1.0 is installed in `ns` without one
    run `olmkit operator uninstall demo -n ns`, which keeps custom resources, then `olmkit operator install demo -n ns`
    ");
    uninstall(&mut world, NS, false, true);
    world.install(demo(Some("0.1.0"))).unwrap();
}

/// What `source add` makes is somebody's, however it is labelled.
#[test]
fn uninstall_keeps_a_catalog_of_the_namespace_that_was_not_made_for_the_operator() {
    let mut world = World::of("01").with(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "mine", "namespace": NS, "labels": {"app.kubernetes.io/created-by": "olmkit"}},
        "spec": {"sourceType": "grpc", "image": "catalog"},
    }));
    let request = Install { catalog: Some(("mine".into(), Some(NS.into()))), ..demo(Some("0.1.0")) };
    world.install(request).unwrap();
    let removed = uninstall(&mut world, NS, true, true);
    assert!(removed.removed.iter().all(|part| part.kind != "CatalogSource"), "{removed:?}");
    assert!(world.names(&known::CATALOG_SOURCE).contains(&"mine".to_owned()));
}
