//! What keeps OLM from installing a version is known before anything is touched, to every verb that decides, and stays named afterwards.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use olmkit::lifecycle::api::{Key, known};
use olmkit::lifecycle::decide::Accept;
use olmkit::lifecycle::doctor::{self, Scope, diagnose};
use olmkit::lifecycle::engine::Options;
use olmkit::lifecycle::install::Install;
use olmkit::lifecycle::offer::Offer;
use olmkit::lifecycle::upgrade::Upgrade;
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use serde_json::{Value, json};

use crate::world::{NS, World, accept, demo, told};

/// The first version of an operator, and the plan of a changed second one that waits for approval.
fn waiting(change: impl Fn(&mut World)) -> World {
    let mut world = World::of("01");
    change(&mut world);
    world.install(demo(Some("0.1.0"))).unwrap();
    let later = world.cluster.store().now() + Duration::from_secs(120);
    world.cluster.run_until(later);
    world.said.borrow_mut().clear();
    world
}

fn upgrade(accept: Accept) -> Upgrade {
    Upgrade {
        name: "demo".into(),
        namespace: Some(NS.into()),
        to: Some("0.2.0".into()),
        accept,
        ..Upgrade::default()
    }
}

/// Everybody who decides refuses a version with a code and changes nothing, until that is accepted.
#[track_caller]
fn check(code: &str, change: impl Fn(&mut World)) -> World {
    let mut world = waiting(change);
    let before = world.cluster.save();
    let said = told(world.run(|engine, _| engine.upgrade(&upgrade(Accept::default()))).unwrap_err());
    assert!(said.contains(&format!("pass `--accept {code}` to go on nevertheless")), "{said}");
    let (preview, _) = world.run(|engine, _| engine.preview("demo", Some(NS))).unwrap();
    let blockers: Vec<&str> = preview.csvs[0].blockers.iter().map(|one| one.code).collect();
    assert_eq!(blockers, [code]);
    let refused = world.run(|engine, _| engine.approve("demo", Some(NS), &Accept::default()));
    let same = told(refused.unwrap_err());
    assert_eq!(same, said);
    assert_eq!(world.cluster.save(), before, "something was changed");
    let named = look_ahead(&mut world);
    assert!(named.contains(&format!("[{code}]")), "the doctor does not name it: {named}");
    assert!(is_against(&named), "what is refused is not to be approved: {named}");
    // What comes of it is told by the cause.
    let _ = world.run(|engine, _| engine.approve("demo", Some(NS), &accept(&[code])));
    let plans = world.cluster.store().list(&known::INSTALL_PLAN, Some(NS));
    let is_approved = |plan: &Value| {
        plan["spec"]["clusterServiceVersionNames"] == json!(["demo.v0.2.0"])
            && plan["spec"]["approved"] == true
    };
    assert!(plans.into_iter().any(is_approved), "{code} cannot be accepted");
    world
}

/// `approve` names a missing image as `upgrade` does: with `strategy: Recreate` the old pods go first.
#[test]
fn an_image_that_does_not_exist_is_not_approved() {
    let mut world = waiting(|_| {});
    let csv = world.bundles["demo.v0.2.0"].iter().find(|one| one["kind"] == "ClusterServiceVersion").unwrap();
    let pod = csv.pointer("/spec/install/spec/deployments/0/spec/template/spec").unwrap();
    let image = pod["containers"][0]["image"].as_str().unwrap().to_owned();
    world.missing.insert(image.clone());
    let refused = world.run(|engine, _| engine.approve("demo", Some(NS), &Accept::default()));
    let expected = format!(
        "`demo.v0.2.0` cannot be installed: the image `{image}` does not exist\n\
         push it first\npass `--accept image-pull` to go on nevertheless"
    );
    assert_eq!(told(refused.unwrap_err()), expected);
    let (preview, _) = world.run(|engine, _| engine.preview("demo", Some(NS))).unwrap();
    assert_eq!(preview.csvs[0].blockers[0].code, "image-pull");
    world.run(|engine, _| engine.approve("demo", Some(NS), &accept(&["image-pull"]))).unwrap();
}

/// What the doctor says of the operator, with what it sees in the catalog and the plan.
fn look_ahead(world: &mut World) -> String {
    world.run(|engine, _| {
        let scope = Scope { name: None, namespace: Some(NS.into()) };
        let now = engine.cluster.time_of_day();
        let seen = doctor::observe(engine.cluster, &scope, Some(now)).unwrap();
        let mut diagnosis = diagnose(&seen, &scope);
        engine.look_ahead(&mut diagnosis).unwrap();
        let lines = diagnosis.causes.iter().map(|cause| {
            let repairs = cause.repair.iter().map(|repair| repair.command.to_string());
            let repairs = repairs.collect::<Vec<_>>().join("; ");
            format!("{}: {} {}: {repairs}\n", cause.code, cause.sentence, cause.consequences.join("; "))
        });
        lines.collect()
    })
}

/// Whether the printed repairs delete the plan, and none approves it.
fn is_against(named: &str) -> bool {
    !named.contains("olmkit operator approve")
        && named.matches("delete installplan.operators.coreos.com install-").count() == 1
}

#[test]
fn a_plan_that_the_catalog_has_left_behind_is_not_approved() {
    let mut world = waiting(|_| ());
    assert!(!is_against(&look_ahead(&mut world)));
    let offer = |newer: &str| {
        let bundles = ["0.1.0", "0.2.0", "0.3.0"].map(|version| {
            format!(
                "---\n{{schema: olm.bundle, package: demo, name: demo.v{version}, image: 'r/demo:{version}', \
                 properties: [{{type: olm.package, value: {{packageName: demo, version: {version}}}}}]}}\n"
            )
        });
        let channel = format!(
            "{{schema: olm.package, name: demo, defaultChannel: stable}}\n---\n\
             {{schema: olm.channel, package: demo, name: stable, entries: [{{name: demo.v0.1.0}}, {newer}]}}\n{}",
            bundles.concat()
        );
        Arc::new(Offer::of(&Catalog::parse(&CatalogFiles::from_text("catalog.yaml", &channel))))
    };
    // OLM's second choice, where it cannot install the first.
    world.offer = offer(
        "{name: demo.v0.2.0, replaces: demo.v0.1.0}, {name: demo.v0.3.0, replaces: demo.v0.2.0, skipRange: '<0.3.0'}",
    );
    assert!(!is_against(&look_ahead(&mut world)));
    world.offer = offer("{name: demo.v0.3.0, replaces: demo.v0.1.0, skips: [demo.v0.2.0]}");
    let named = look_ahead(&mut world);
    let why = "to which the catalog no longer goes from `demo.v0.1.0`: it goes to `demo.v0.3.0` now";
    assert!(named.contains(why) && is_against(&named), "{named}");
    // An upgrade does not wait for OLM to make another plan, and changes nothing.
    let before = world.cluster.save();
    refuses_to_approve(&mut world, "plan-superseded");
    let to_head = Upgrade { to: None, ..upgrade(Accept::default()) };
    let said = told(world.run(|engine, _| engine.upgrade(&to_head)).unwrap_err());
    assert!(
        said.contains(why) && said.contains("delete installplan.operators.coreos.com install-"),
        "{said}"
    );
    assert_eq!(world.cluster.save(), before, "something was changed");
    world.run(|engine, _| engine.approve("demo", Some(NS), &accept(&["plan-superseded"]))).unwrap();
}

/// `approve` names a code that can be accepted.
#[track_caller]
fn refuses_to_approve(world: &mut World, code: &str) {
    let said = told(world.run(|engine, _| engine.approve("demo", Some(NS), &Accept::default())).unwrap_err());
    assert!(said.contains(&format!("pass `--accept {code}` to go on nevertheless")), "{said}");
}

#[test]
fn the_version_that_a_rollback_has_left_is_not_approved() {
    let mut world = waiting(|_| ());
    let subscription = Key::of(&world.subscription());
    for (left, expected) in [("demo.v0.3.0", false), ("demo.v0.2.0", true)] {
        let patch = json!({"metadata": {"annotations": {"olmkit.io/rolled-back-from": left}}});
        world.cluster.store().patch(&subscription, &patch).unwrap();
        let named = look_ahead(&mut world);
        assert_eq!(is_against(&named), expected, "{left}: {named}");
    }
    refuses_to_approve(&mut world, "rolled-back");
    world.run(|engine, _| engine.approve("demo", Some(NS), &accept(&["rolled-back"]))).unwrap();
}

fn select(csv: &mut Value) {
    let labels = json!({"app": "demo-controller", "version": "new"});
    let deployment = &mut csv["spec"]["install"]["spec"]["deployments"][0]["spec"];
    deployment["selector"]["matchLabels"] = labels.clone();
    deployment["template"]["metadata"]["labels"] = labels;
}

#[test]
fn a_changed_selector_is_refused_before_and_named_steadily_afterwards() {
    let mut world = check("immutable-field", |world| world.change_csv("demo.v0.2.0", select));
    // OLM tries again and again, and the phase with it.
    let mut phases = BTreeSet::new();
    for look in 0..20 {
        let scope = Scope { name: None, namespace: Some(NS.into()) };
        let now = olmkit::lifecycle::cluster::Cluster::time_of_day(&world.cluster);
        let seen = doctor::observe(&mut world.cluster, &scope, Some(now)).unwrap();
        let codes: Vec<&str> = diagnose(&seen, &scope).causes.iter().map(|cause| cause.code).collect();
        assert_eq!(codes, ["immutable-field"], "at look {look}");
        let csv = world.cluster.store().get(&Key::new(&known::CSV, NS, "demo.v0.2.0")).unwrap();
        phases.insert(csv["status"]["phase"].as_str().unwrap().to_owned());
        let later = world.cluster.store().now() + Duration::from_millis(170);
        world.cluster.run_until(later);
    }
    assert!(phases.len() > 1, "the phase does not change: {phases:?}");
    let said = world.said.borrow();
    let states: Vec<&String> =
        said.iter().filter(|line| line.starts_with("clusterserviceversion/")).collect();
    let different: BTreeSet<&&String> = states.iter().collect();
    // Once while the upgrade was refused, and once for what was accepted.
    assert_eq!(states.len(), different.len(), "{states:#?}");
}

#[test]
fn a_version_that_needs_a_newer_kubernetes_is_refused() {
    check("kubernetes-too-old", |world| {
        world.change_csv("demo.v0.2.0", |csv| csv["spec"]["minKubeVersion"] = json!("1.99.0"));
    });
}

#[test]
fn a_version_that_the_operator_group_no_longer_fits_is_refused() {
    let mut world = check("unsupported-install-mode", |world| {
        world.change_csv("demo.v0.2.0", |csv| {
            for mode in csv["spec"]["installModes"].as_array_mut().unwrap() {
                mode["supported"] = json!(mode["type"] == "AllNamespaces");
            }
        });
    });
    let repairs = |world: &mut World| -> Vec<String> {
        let scope = Scope { name: Some("demo".into()), namespace: Some(NS.into()) };
        let now = olmkit::lifecycle::cluster::Cluster::time_of_day(&world.cluster);
        let seen = doctor::observe(&mut world.cluster, &scope, Some(now)).unwrap();
        let found = diagnose(&seen, &scope);
        assert_eq!(found.causes[0].code, "unsupported-install-mode", "{found:#?}");
        found.causes[0].repair.iter().map(|repair| repair.command.to_string()).collect()
    };
    let widens = |command: &String| command.contains("/spec/targetNamespaces");
    assert!(repairs(&mut world).iter().any(widens));
    // The package elsewhere would lose its Deployment by that, also where only one namespace is asked about.
    world.install(Install { namespace: "there".into(), ..demo(Some("0.1.0")) }).unwrap();
    let rest = repairs(&mut world);
    assert!(!rest.is_empty() && !rest.iter().any(widens), "{rest:?}");
}

#[test]
fn a_version_with_a_kind_that_olm_does_not_install_is_refused() {
    check("unsupported-kind", |world| {
        world.add_manifest("demo.v0.2.0", json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "10"}},
        }));
    });
}

#[test]
fn a_version_that_needs_an_api_that_is_not_served_is_refused() {
    check("required-api-missing", |world| {
        world.change_csv("demo.v0.2.0", |csv| {
            csv["spec"]["nativeAPIs"] =
                json!([{"group": "route.example.com", "version": "v1", "kind": "Route"}]);
        });
    });
}

/// Another installed operator, with what it requires.
fn user(namespace: &str, properties: &Value, required: Value) -> Value {
    json!({
        "apiVersion": known::CSV.api_version(), "kind": known::CSV.kind,
        "metadata": {
            "name": "user.v1.0.0", "namespace": namespace,
            "annotations": {"operatorframework.io/properties": json!({"properties": properties}).to_string()},
        },
        "spec": {"version": "1.0.0", "customresourcedefinitions": {"required": required}},
        "status": {"phase": "Succeeded"},
    })
}

#[test]
fn a_version_that_takes_an_api_version_from_another_operator_is_refused() {
    check("required-api-missing", |world| {
        world.change_crd("demo.v0.2.0", |crd| {
            let versions = crd["spec"]["versions"].as_array_mut().unwrap();
            let mut next = versions[0].clone();
            next["name"] = json!("v2");
            versions[0]["served"] = json!(false);
            versions[0]["storage"] = json!(false);
            versions.push(next);
        });
        world.change_csv("demo.v0.2.0", |csv| {
            csv["spec"]["customresourcedefinitions"]["owned"][0]["version"] = json!("v2");
        });
        let required = json!([{"name": "demos.t01.example.com", "version": "v1", "kind": "Demo"}]);
        world.cluster.store().create(user("elsewhere", &json!([]), required)).unwrap();
    });
}

/// A plan that is older than the operator which requires the version before it.
#[test]
fn a_plan_that_takes_the_version_from_an_operator_that_requires_it_is_not_approved() {
    let mut world = waiting(|_| {});
    let range = json!({"packageName": "demo", "versionRange": ">=0.1.0 <0.2.0"});
    let properties = json!([{"type": "olm.package.required", "value": range}]);
    world.cluster.store().create(user(NS, &properties, json!([]))).unwrap();
    let expected = "`demo.v0.2.0` takes away a version `>=0.1.0 <0.2.0` of the package `demo`, which `user.v1.0.0` in the namespace `ns` requires";
    let said = told(world.run(|engine, _| engine.upgrade(&upgrade(Accept::default()))).unwrap_err());
    assert!(said.starts_with(expected), "{said}");
    refuses_to_approve(&mut world, "dependency-missing");
}

fn causes(world: &mut World) -> Vec<&'static str> {
    let scope = Scope { name: None, namespace: Some(NS.into()) };
    let now = olmkit::lifecycle::cluster::Cluster::time_of_day(&world.cluster);
    let seen = doctor::observe(&mut world.cluster, &scope, Some(now)).unwrap();
    diagnose(&seen, &scope).causes.iter().map(|cause| cause.code).collect()
}

fn monitor(world: &mut World) {
    world.add_manifest(
        "demo.v0.2.0",
        json!({
            "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "demo-metrics"},
            "spec": {"endpoints": [{"port": "https"}], "selector": {"matchLabels": {"app": "demo"}}},
        }),
    );
}

#[test]
fn a_version_with_an_object_whose_api_is_not_served_is_refused() {
    let mut world = check("required-api-missing", monitor);
    assert_eq!(causes(&mut world), ["required-api-missing"]);
    let plans = world.cluster.store().list(&known::INSTALL_PLAN, Some(NS));
    let said: Vec<&str> = plans.filter_map(|plan| plan["status"]["message"].as_str()).collect();
    assert!(said.iter().any(|text| text.contains("api-server resource not found installing ServiceMonitor demo-metrics: GroupVersionKind monitoring.coreos.com/v1, Kind=ServiceMonitor not found")), "{said:?}");
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced",
            "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
            "versions": [{"name": "v1", "served": true, "storage": true}],
        },
    });
    let mut world = World::of("01").with(crd);
    monitor(&mut world);
    world.install(demo(Some("0.2.0"))).unwrap();
}

#[test]
fn a_version_that_ships_an_account_of_the_version_before_is_refused() {
    let account = |world: &mut World| {
        let objects = &world.bundles["demo.v0.2.0"];
        let csv = objects.iter().find(|object| object["kind"] == "ClusterServiceVersion").unwrap();
        let spec = &csv["spec"]["install"]["spec"];
        let name = ["clusterPermissions", "permissions"]
            .iter()
            .find_map(|list| spec[list][0]["serviceAccountName"].as_str());
        let name = name.unwrap().to_owned();
        world.add_manifest(
            "demo.v0.2.0",
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}),
        );
    };
    let mut world = check("requirement-missing", account);
    let later = world.cluster.store().now() + Duration::from_secs(9);
    world.cluster.run_until(later);
    assert_eq!(causes(&mut world), ["requirement-missing"]);
    // Where nothing was before nobody owns it.
    let mut world = World::of("01");
    account(&mut world);
    world.install(demo(Some("0.2.0"))).unwrap();
}

#[test]
fn a_version_with_a_webhook_that_kubernetes_refuses_is_refused() {
    let mut world = check("object-invalid", |world| {
        world.change_csv("demo.v0.2.0", |csv| {
            let deployment = csv["spec"]["install"]["spec"]["deployments"][0]["name"].clone();
            csv["spec"]["webhookdefinitions"] = json!([{
                "type": "ValidatingAdmissionWebhook", "generateName": "vdemo.example.com", "deploymentName": deployment,
                "admissionReviewVersions": ["v1"], "sideEffects": "Some", "containerPort": 443,
                "rules": [{"apiGroups": ["t01.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["demos"]}],
            }]);
        });
    });
    assert_eq!(causes(&mut world), ["object-invalid"]);
    let csv = world.cluster.store().get(&Key::new(&known::CSV, NS, "demo.v0.2.0")).unwrap();
    let text = csv["status"]["conditions"].to_string();
    assert!(text.contains("ValidatingWebhookConfiguration.admissionregistration.k8s.io"), "{text}");
    // A dry run beside it changes nothing, so it prints nothing else.
    world.said.borrow_mut().clear();
    let dry = Options { dry_run: true, ..Options::default() };
    world.run_with(dry, |engine, _| engine.install(&demo(Some("0.2.0")))).unwrap();
    let said = world.said.borrow();
    assert!(said.iter().any(|line| line.ends_with("[object-invalid]")), "{said:?}");
}

/// OLM stays where it is then, and does not say why.
#[test]
fn a_dependency_that_no_catalog_offers_is_named_to_upgrade_and_the_doctor() {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    let needed = json!({"type": "olm.package.required", "value": {"packageName": "nowhere", "versionRange": ">=1.0.0"}});
    let offer = Arc::make_mut(&mut world.offer);
    let bundles = &mut offer.packages.get_mut("demo").unwrap().bundles;
    bundles.get_mut("demo.v0.2.0").unwrap().properties.push(needed);
    let before = world.cluster.save();
    let said = told(world.run(|engine, _| engine.upgrade(&upgrade(Accept::default()))).unwrap_err());
    assert!(said.starts_with("`demo.v0.2.0` cannot be installed: it requires the package `nowhere` in the range `>=1.0.0`, which no catalog offers"), "{said}");
    assert_eq!(world.cluster.save(), before, "something was changed");
    // As OLM has it, which makes no plan of it.
    world.forget_open_plans();
    let named = look_ahead(&mut world);
    assert!(named.starts_with("upgrade-blocked: the Subscription `demo` stays at `demo.v0.1.0`: `demo.v0.2.0` cannot be installed: it requires the package `nowhere`"), "{named}");
    let rows = world.run(|engine, _| engine.list(Some(NS))).unwrap();
    assert_eq!(rows[0].cause.as_ref().map(|cause| cause.code), Some("upgrade-blocked"));
}

#[test]
fn a_head_without_an_edge_from_what_is_installed_is_named() {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    world.forget_open_plans();
    let text = "
{schema: olm.package, name: demo, defaultChannel: stable}
---
{schema: olm.channel, package: demo, name: stable, entries: [{name: demo.v0.3.0}]}
---
{schema: olm.bundle, package: demo, name: demo.v0.3.0, image: r/demo:3, properties: [{type: olm.package, value: {packageName: demo, version: 0.3.0}}]}";
    world.offer = Arc::new(Offer::of(&Catalog::parse(&CatalogFiles::from_text("catalog.yaml", text))));
    let named = look_ahead(&mut world);
    assert!(named.contains("has no edge from `demo.v0.1.0` to its head `demo.v0.3.0`"), "{named}");
}

#[test]
fn the_simulation_refuses_pods_that_a_quota_does_not_admit() {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": NS},
        "spec": {"hard": {"limits.cpu": "4", "pods": "10"}},
    });
    let mut world = World::of("01").with(quota);
    let said = told(world.install(demo(None)).unwrap_err());
    assert!(
        said.contains("failed quota: team: must specify limits.cpu for: manager [quota-exceeded]"),
        "{said}"
    );
}

#[test]
fn the_simulation_does_not_serve_a_crd_whose_names_are_taken() {
    let other = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "others.t01.example.com"},
        "spec": {
            "group": "t01.example.com", "scope": "Namespaced", "names": {"kind": "Demo", "plural": "others"},
            "versions": [{"name": "v1", "served": true, "storage": true}],
        },
        "status": {"storedVersions": ["v1"]},
    });
    let mut world = World::of("01").with(other);
    let said = told(world.install(demo(None)).unwrap_err());
    assert!(said.contains("another CRD of the group `t01.example.com` has its names"), "{said}");
    assert!(said.contains("[crd-names-taken]"), "{said}");
}
