//! What a plan will change, and policies that it has to meet.

use std::collections::BTreeSet;

use olmkit::lifecycle::api::{Key, Resource, known};
use olmkit::lifecycle::decide::Accept;
use olmkit::lifecycle::engine::{EngineError, Options};
use olmkit::lifecycle::patch::merge;
use olmkit::lifecycle::policy::Policy;
use olmkit::lifecycle::preview::{Change, Preview};
use serde_json::{Value, json};

use crate::world::{NS, World, demo, told, waiting};

fn preview(world: &mut World) -> Preview {
    world.run(|engine, _| engine.preview("demo", Some(NS))).unwrap().0
}

fn violations(world: &mut World, policy: &str) -> Vec<String> {
    let (preview, csv) = world.run(|engine, _| engine.preview("demo", Some(NS))).unwrap();
    let found = Policy::parse(policy).unwrap().check(&preview, &csv);
    found.into_iter().map(|one| format!("{}: {}", one.rule, one.sentence)).collect()
}

/// The plan that waits.
fn pending(world: &mut World) -> Key {
    let all: Vec<Value> = world.cluster.store().list(&known::INSTALL_PLAN, Some(NS)).cloned().collect();
    Key::of(all.iter().find(|plan| plan["spec"]["approved"] == false).unwrap())
}

#[test]
fn a_plan_shows_its_version_and_what_happens_to_each_object() {
    let mut world = waiting();
    let before = world.cluster.save();
    let found = preview(&mut world);
    assert_eq!(world.cluster.save(), before, "something was changed");
    assert!(!found.approved && found.not_read.is_empty(), "{found:?}");
    let [csv] = &found.csvs[..] else { panic!("{found:?}") };
    assert_eq!((csv.name.as_str(), csv.version.as_str()), ("demo.v0.2.0", "0.2.0"));
    assert_eq!((csv.replaces.as_str(), csv.replaces_version.as_str()), ("demo.v0.1.0", "0.1.0"));
    assert_eq!(csv.subscription, "demo");
    let change = |kind: &str| found.steps.iter().find(|step| step.kind == kind).map(|step| step.change);
    assert_eq!(change("ClusterServiceVersion"), Some(Change::Create));
    assert_eq!(change("CustomResourceDefinition"), Some(Change::Keep));
    assert_eq!(change("ServiceAccount"), Some(Change::Keep));
}

/// The preview and the simulated upgrade agree: what the new version leaves out is gone.
#[test]
fn what_a_version_only_removes_changes_its_objects() {
    let mut world = World::of("01");
    let rule = |resource: &str| json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]});
    let config = |more: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fruit"}, "data": {"a": "1"}});
        merge(&mut object, &more);
        object
    };
    let role = |rules: Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "fruit-viewer"},
            "rules": rules,
        })
    };
    world.add_manifest(
        "demo.v0.1.0",
        config(json!({"metadata": {"labels": {"x": "y"}}, "data": {"b": "2"}, "immutable": false})),
    );
    world.add_manifest("demo.v0.1.0", role(json!([rule("pods"), rule("secrets")])));
    world.add_manifest("demo.v0.2.0", config(json!({})));
    world.add_manifest("demo.v0.2.0", role(json!([rule("pods")])));
    world.change_crd("demo.v0.1.0", |crd| {
        let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        crd.pointer_mut(spec).unwrap()["gone"] = json!({"type": "string"});
    });
    world.change_csv("demo.v0.1.0", |csv| {
        let pod = "/spec/install/spec/deployments/0/spec/template/spec";
        csv.pointer_mut(pod).unwrap()["nodeSelector"] = json!({"disk": "fast"});
    });
    world.install(demo(Some("0.1.0"))).unwrap();
    let found = preview(&mut world);
    for kind in ["ConfigMap", "ClusterRole", "CustomResourceDefinition"] {
        let step = found.steps.iter().find(|step| step.kind == kind && !step.name.starts_with("demo."));
        assert_eq!(step.map(|step| step.change), Some(Change::Change), "{kind}");
    }
    world.upgrade(Some("0.2.0"), None).unwrap();
    let mut one = |resource: &Resource, start: &str| {
        let mut all = world.cluster.store().list(resource, None);
        all.find(|object| Key::of(object).name.starts_with(start)).cloned().unwrap()
    };
    let config = one(&known::CONFIG_MAP, "fruit");
    assert_eq!((&config["data"], &config["metadata"]["labels"]), (&json!({"a": "1"}), &Value::Null));
    assert_eq!(config["immutable"], Value::Null);
    assert_eq!(one(&known::CLUSTER_ROLE, "fruit-viewer")["rules"], json!([rule("pods")]));
    assert!(!one(&known::CRD, "demos.").to_string().contains("gone"));
    assert!(!one(&known::DEPLOYMENT, "demo-controller").to_string().contains("nodeSelector"));
}

#[test]
fn what_changes_in_a_version_is_told_as_by_bundle_diff() {
    let mut world = World::of("01");
    let bundle = world.cluster.registry().bundles.get_mut("demo.v0.2.0").unwrap();
    let csv = bundle.iter_mut().find(|object| object["kind"] == "ClusterServiceVersion").unwrap();
    csv["spec"]["install"]["spec"]["clusterPermissions"] = json!([{
        "serviceAccountName": "demo-controller",
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}],
    }]);
    let containers = "/spec/install/spec/deployments/0/spec/template/spec/containers/0/image";
    *csv.pointer_mut(containers).unwrap() = json!("registry.example.com/demo:2");
    csv["spec"]["webhookdefinitions"] =
        json!([{"type": "ValidatingAdmissionWebhook", "generateName": "v.example.com"}]);
    world.install(demo(Some("0.1.0"))).unwrap();
    let found = preview(&mut world);
    let csv = &found.csvs[0];
    assert_eq!(csv.new_images, ["registry.example.com/demo:2"]);
    assert_eq!(
        csv.new_cluster_rules,
        ["`demo-controller` may now do more in all namespaces: `secrets` (list)"]
    );
    assert_eq!(csv.new_webhooks, ["ValidatingAdmissionWebhook v.example.com"]);
    assert!(csv.findings.iter().any(|one| one.code == "permission-escalates"), "{csv:?}");
    let denied = violations(&mut world, "deny: [new-cluster-rules, new-webhooks]\nupgrade: patch");
    assert_eq!(
        denied,
        [
            "upgrade: `demo.v0.2.0` goes from 0.1.0 to 0.2.0, and only patch versions are allowed",
            "new-cluster-rules: `demo-controller` may now do more in all namespaces: `secrets` (list)",
            "new-webhooks: `demo.v0.2.0` has the new webhook ValidatingAdmissionWebhook v.example.com",
        ]
    );
}

#[test]
fn a_plan_that_several_subscriptions_share_shows_all_of_them() {
    let mut world = World::of("26");
    for (name, approval) in [("demo", "Automatic"), ("cache-db", "Manual")] {
        let subscription = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": name, "namespace": NS},
            "spec": {
                "name": name, "channel": "stable", "source": "catalog", "sourceNamespace": "olm",
                "installPlanApproval": approval,
            },
        });
        world.cluster.store().create(subscription).unwrap();
    }
    world.cluster.store().create(crate::world::group("g", &[NS])).unwrap();
    world.cluster.run_until(std::time::Duration::from_secs(120));
    let found = preview(&mut world);
    let mut names: Vec<(&str, &str)> =
        found.csvs.iter().map(|csv| (csv.name.as_str(), csv.subscription.as_str())).collect();
    names.sort_unstable();
    assert_eq!(names, [("cache-db.v1.0.0", "cache-db"), ("demo.v0.1.0", "demo")]);
    assert_eq!(
        violations(&mut world, "deny: [other-operators]"),
        ["other-operators: the plan also installs `cache-db.v1.0.0`"]
    );
}

/// On a cluster a plan names the ConfigMap that its bundle was unpacked into.
#[test]
fn manifests_are_read_from_the_unpacked_bundle_and_what_cannot_be_read_meets_no_policy() {
    let mut world = waiting();
    let plan = pending(&mut world);
    let mut document = world.cluster.store().get(&plan).unwrap().clone();
    let mut texts = serde_json::Map::new();
    for (at, step) in document["status"]["plan"].as_array_mut().unwrap().iter_mut().enumerate() {
        let manifest = step["resource"]["manifest"].as_str().unwrap().to_owned();
        texts.insert(format!("{at}.yaml"), json!(manifest));
        let reference = json!({"kind": "ConfigMap", "name": "unpacked", "namespace": "olm"});
        step["resource"]["manifest"] = json!(reference.to_string());
    }
    world.cluster.store().patch(&plan, &json!({"status": document["status"]})).unwrap();
    let expected = ["configmap/unpacked in olm does not exist"];
    let found = violations(&mut world, "{}");
    assert!(found.iter().all(|one| one.starts_with("not-read: ") && one.contains(expected[0])), "{found:?}");
    assert!(!found.is_empty());
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unpacked", "namespace": "olm"}, "data": texts,
    });
    world.cluster.store().create(map).unwrap();
    assert_eq!(violations(&mut world, "{}"), Vec::<String>::new());
    assert_eq!(preview(&mut world).csvs[0].version, "0.2.0");
}

/// OLM makes accounts and roles of a ClusterServiceVersion's permissions. Its plan names the ConfigMap for them too, which does not
/// have them.
#[test]
fn what_olm_makes_of_permissions_is_in_no_unpacked_bundle_and_no_reason_to_refuse_a_plan() {
    let mut world = World::of("01");
    let bundle = world.cluster.registry().bundles.get_mut("demo.v0.2.0").unwrap();
    let csv = bundle.iter_mut().find(|object| object["kind"] == "ClusterServiceVersion").unwrap();
    for list in ["permissions", "clusterPermissions"] {
        csv["spec"]["install"]["spec"][list] = json!([{
            "serviceAccountName": "demo-controller",
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}],
        }]);
    }
    world.install(demo(Some("0.1.0"))).unwrap();
    let plan = pending(&mut world);
    let mut document = world.cluster.store().get(&plan).unwrap().clone();
    let mut texts = serde_json::Map::new();
    let made = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
    let mut seen = BTreeSet::new();
    for (at, step) in document["status"]["plan"].as_array_mut().unwrap().iter_mut().enumerate() {
        let kind = step["resource"]["kind"].as_str().unwrap().to_owned();
        if made.contains(&kind.as_str()) {
            seen.insert(kind);
        } else {
            texts.insert(format!("{at}.yaml"), step["resource"]["manifest"].clone());
        }
        let reference = json!({"kind": "ConfigMap", "name": "unpacked", "namespace": "olm"});
        step["resource"]["manifest"] = json!(reference.to_string());
    }
    assert_eq!(seen.len(), made.len(), "{seen:?}");
    // Somebody else's role is not OLM's.
    let foreign = json!({
        "resolving": "demo.v0.2.0", "status": "Unknown",
        "resource": {
            "group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "other-admin",
            "sourceName": "catalog", "sourceNamespace": "olm",
            "manifest": json!({"kind": "ConfigMap", "name": "unpacked", "namespace": "olm"}).to_string(),
        },
    });
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unpacked", "namespace": "olm"}, "data": texts,
    });
    world.cluster.store().create(map).unwrap();
    world.cluster.store().patch(&plan, &json!({"status": document["status"]})).unwrap();
    let found = preview(&mut world);
    assert_eq!(found.not_read, Vec::<String>::new());
    let change = |kind: &str| found.steps.iter().find(|step| step.kind == kind).map(|step| step.change);
    assert_eq!(change("ServiceAccount"), Some(Change::Keep));
    assert_eq!(change("Role"), Some(Change::Create));
    assert_eq!(change("ClusterRoleBinding"), Some(Change::Create));
    assert_eq!(
        violations(&mut world, "deny: [new-cluster-rules]"),
        ["new-cluster-rules: `demo-controller` may now do more in all namespaces: `secrets` (list)"]
    );
    document["status"]["plan"].as_array_mut().unwrap().push(foreign);
    world.cluster.store().patch(&plan, &json!({"status": document["status"]})).unwrap();
    let found = violations(&mut world, "{}");
    assert!(matches!(&found[..], [one] if one.contains("clusterrole/other-admin of")), "{found:?}");
}

#[test]
fn a_custom_resource_that_the_new_schema_rejects_blocks_the_plan() {
    let mut world = World::of("01");
    world.limit_size("demo.v0.2.0", 9);
    world.install(demo(Some("0.1.0"))).unwrap();
    world.make_demo("01", 50);
    let found = preview(&mut world);
    assert_eq!(found.csvs[0].blockers.len(), 1, "{found:?}");
    assert!(
        found.csvs[0].blockers[0].sentence.contains("does not fit the schema of `demo.v0.2.0`"),
        "{found:?}"
    );
    let denied = violations(&mut world, "deny: [breaking-changes]");
    assert!(denied.iter().any(|one| one.contains("does not fit")), "{denied:?}");
}

#[test]
fn a_plan_that_does_not_meet_the_policy_is_not_approved() {
    let mut world = waiting();
    let before = world.cluster.save();
    let approve = |world: &mut World, policy: &str| {
        let policy = Policy::parse(policy).unwrap();
        world.run_with(Options::default(), |engine, _| {
            engine.approve_if("demo", Some(NS), &Accept::default(), Some(&policy))
        })
    };
    let error = approve(&mut world, "upgrade: patch").unwrap_err();
    assert!(matches!(&error, EngineError::Stuck(stuck) if stuck.code == "policy"), "{error}");
    let said = told(error);
    assert!(said.contains("only patch versions are allowed [upgrade]"), "{said}");
    assert!(said.contains("see all that it changes with `olmkit operator plan demo -n ns`"), "{said}");
    assert_eq!(world.cluster.save(), before, "something was changed");
    let approved =
        approve(&mut world, "{upgrade: minor, deny: [new-cluster-rules, other-operators]}").unwrap();
    assert_eq!(approved.installed_csv, "demo.v0.2.0");
}
