//! ClusterServiceVersions.

use serde_json::{Value, json};

use super::super::observation::KINDS;
use super::{
    NOW, OLM, Observation, Repair, Scope, State, around_pod, available, catalog, check, csv, diagnose, group,
    installed, look, merge, object, subscription,
};

#[test]
fn a_certificate_has_expired() {
    let mut up = csv("Succeeded", "InstallSucceeded", "");
    up["status"]["certsRotateAt"] = json!("2025-12-01T00:00:00Z");
    check(
        "certificate-expired",
        "clusterserviceversion/demo.v1",
        "expired",
        vec![installed(), group(), catalog("READY"), up, available()],
    );
}

#[test]
fn a_copy_is_taken_for_an_own_version() {
    let mut copy =
        csv("Succeeded", "Copied", "The operator is running in there but is managing this namespace");
    copy["metadata"]["labels"] = json!({"olm.copiedFrom": "there"});
    check("copied-csv", "subscription/demo", "`there`", vec![installed(), group(), catalog("READY"), copy]);
}

#[test]
fn an_aggregated_api_is_down() {
    let mut pending = csv("Pending", "RequirementsNotMet", "one or more requirements couldn't be found");
    pending["status"]["requirementStatus"] = json!([{
        "kind": "APIService", "name": "v1.metrics.example.com", "status": "NotPresent", "message": "APIService is not available",
    }]);
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.metrics.example.com"},
        "status": {"conditions": [{"type": "Available", "status": "False", "message": "no endpoints for service"}]},
    });
    check(
        "api-service-down",
        "apiservice/v1.metrics.example.com",
        "no endpoints",
        vec![installed(), group(), catalog("READY"), pending, service],
    );
}

#[test]
fn crds_are_missing() {
    let missing = |list: &str| {
        let mut pending = csv("Pending", "RequirementsNotMet", "one or more requirements couldn't be found");
        pending["spec"]["customresourcedefinitions"][list] =
            json!([{"name": "queues.example.com", "version": "v1"}]);
        pending["status"]["requirementStatus"] = json!([{
            "kind": "CustomResourceDefinition", "name": "queues.example.com", "status": "NotPresent", "message": "CRD is not present",
        }]);
        vec![installed(), group(), catalog("READY"), pending]
    };
    check("required-api-missing", "clusterserviceversion/demo.v1", "CRD is not present", missing("required"));
    check("owned-crd-missing", "clusterserviceversion/demo.v1", "CRD is not present", missing("owned"));
    let mut unserved = missing("required");
    unserved[3]["status"]["requirementStatus"][0]["message"] = json!("CRD version not served");
    let words = "requires the version v1 of the CRD `queues.example.com`, which the CRD does not serve";
    check("required-api-missing", "clusterserviceversion/demo.v1", words, unserved);
    // It is there by now: OLM looks again within half a minute.
    let mut created = missing("required");
    created.push(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "queues.example.com"},
        "spec": {"versions": [{"name": "v1", "served": true}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }));
    assert_eq!(look(created).state, State::Progressing);
}

#[test]
fn a_version_is_replaced_by_nothing() {
    let mut old = csv("Replacing", "BeingReplaced", "being replaced by csv: demo.v2");
    old["status"]["lastTransitionTime"] = json!("2026-01-01T00:30:00Z");
    let objects = vec![installed(), group(), catalog("READY"), old];
    check("replaced-by-nothing", "clusterserviceversion/demo.v1", "does not exist", objects);
}

#[test]
fn a_service_account_is_missing_for_good() {
    let mut pending = csv("Pending", "RequirementsNotMet", "one or more requirements couldn't be found");
    pending["status"]["requirementStatus"] = json!([{
        "kind": "ServiceAccount", "name": "demo", "status": "NotPresent", "message": "Service account does not exist",
    }]);
    let objects = vec![installed(), group(), catalog("READY"), pending];
    check("requirement-missing", "clusterserviceversion/demo.v1", "Service account does not exist", objects);
}

#[test]
fn a_service_account_stays_the_one_of_the_version_before() {
    let mut pending = csv("Pending", "RequirementsNotMet", "one or more requirements couldn't be found");
    pending["status"]["requirementStatus"] = json!([{
        "kind": "ServiceAccount", "name": "demo", "status": "PresentNotSatisfied",
        "message": "Service account is owned by another ClusterServiceVersion",
    }]);
    let at = |seconds: &str| {
        let mut pending = pending.clone();
        pending["status"]["lastTransitionTime"] = json!(format!("2026-01-01T00:59:{seconds}Z"));
        vec![installed(), group(), catalog("READY"), pending]
    };
    check("requirement-missing", "clusterserviceversion/demo.v1", "has as an object", at("50"));
    // OLM looks again a moment after the last step of the plan.
    assert_eq!(look(at("55")).state, State::Progressing);
}

#[test]
fn a_version_fails_for_a_reason_that_only_its_message_names() {
    let failed = csv("Failed", "InstallComponentFailed", "install strategy failed: something else");
    let objects = vec![installed(), group(), catalog("READY"), failed];
    check("csv-failed", "clusterserviceversion/demo.v1", "something else", objects);
}

#[test]
fn nothing_happens_to_a_version() {
    let mut pending = csv("Pending", "RequirementsUnknown", "requirements not yet checked");
    pending["status"]["lastTransitionTime"] = json!("2026-01-01T00:30:00Z");
    let objects = vec![installed(), group(), catalog("READY"), pending];
    check("no-progress", "clusterserviceversion/demo.v1", "more than ten minutes", objects);
}

#[test]
fn a_failure_is_named_between_two_attempts_of_olm_too() {
    let refused = "install strategy failed: Deployment.apps \"demo\" is invalid: spec.selector: Invalid value: {}: field is immutable";
    for (phase, reason) in [
        ("Failed", "InstallComponentFailed"),
        ("Pending", "NeedsReinstall"),
        ("Pending", "RequirementsUnknown"),
        ("InstallReady", "AllRequirementsMet"),
    ] {
        let mut one = csv(phase, reason, if phase == "Failed" { refused } else { "" });
        one["status"]["conditions"] = json!([
            {"phase": "Pending", "reason": "RequirementsUnknown"},
            {"phase": "Failed", "reason": "InstallComponentFailed", "message": refused},
            {"phase": phase, "reason": reason},
        ]);
        let objects = vec![installed(), group(), catalog("READY"), one];
        check("immutable-field", "clusterserviceversion/demo.v1", "field is immutable", objects);
    }
    // What has gone on since is over.
    let mut up = csv("Succeeded", "InstallSucceeded", "");
    up["status"]["conditions"] = json!([
        {"phase": "Failed", "reason": "InstallComponentFailed", "message": refused},
        {"phase": "Succeeded", "reason": "InstallSucceeded"},
    ]);
    assert_eq!(look(vec![installed(), group(), catalog("READY"), up, available()]).state, State::Healthy);
}

#[test]
fn the_names_of_a_crd_are_taken() {
    let mut pending = csv("Pending", "RequirementsNotMet", "one or more requirements couldn't be found");
    pending["spec"]["customresourcedefinitions"]["owned"] =
        json!([{"name": "queues.example.com", "version": "v1"}]);
    pending["status"]["requirementStatus"] = json!([{
        "kind": "CustomResourceDefinition", "name": "queues.example.com", "status": "NotAvailable",
        "message": "CRD is present but the Established condition is False (not available)",
    }]);
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "queues.example.com"},
        "spec": {"group": "example.com", "versions": [{"name": "v1", "served": true}]},
        "status": {"conditions": [
            {"type": "NamesAccepted", "status": "False", "reason": "KindConflict", "message": "\"Queue\" is already in use"},
            {"type": "Established", "status": "False", "reason": "NotAccepted", "message": "not all names are accepted"},
        ]},
    });
    check(
        "crd-names-taken",
        "customresourcedefinition/queues.example.com",
        "(KindConflict): \"Queue\" is already in use",
        vec![installed(), group(), catalog("READY"), pending.clone(), crd.clone()],
    );
    let plan = |status: &Value| {
        let spec = json!({"clusterServiceVersionNames": ["demo.v1"], "approved": true});
        object(OLM, "InstallPlan", "install-1", json!({"spec": spec, "status": status}))
    };
    // No later step of the plan changes it, so that it is said at once, and a wait does not wait for it.
    pending["status"]["lastTransitionTime"] = json!("2026-01-01T00:59:59Z");
    let plan_goes_on = plan(&json!({"phase": "Installing"}));
    let diagnosis =
        look(vec![installed(), group(), catalog("READY"), pending.clone(), crd.clone(), plan_goes_on]);
    assert_eq!(diagnosis.causes[0].code, "crd-names-taken");
    assert_eq!(diagnosis.causes[0].patience(), std::time::Duration::ZERO);
    // OLM calls it an error of custom resources, and gives the plan up after a minute.
    let said = "error validating existing CRs against new CRD's schema for \"queues.example.com\": the server could not find the requested resource";
    for (phase, message) in
        [("Installing", format!("retrying execution due to error: {said}")), ("Failed", said.to_owned())]
    {
        let plan = plan(&json!({"phase": phase, "message": message}));
        let objects = vec![installed(), group(), catalog("READY"), pending.clone(), crd.clone(), plan];
        let repairs = look(objects.clone()).causes[0].repair.clone();
        let is_again = |one: &Repair| one.command.to_string().contains("--subresource status");
        assert_eq!(repairs.iter().any(is_again), phase == "Failed", "{repairs:?}");
        let words = "another CRD of the group `example.com` has its names (KindConflict)";
        check("crd-names-taken", "customresourcedefinition/queues.example.com", words, objects);
    }
}

#[test]
fn a_service_account_that_was_deleted_is_named_in_the_first_minute() {
    let mut pending = csv("Pending", "RequirementsNotMet", "one or more requirements couldn't be found");
    pending["status"]["lastTransitionTime"] = json!("2026-01-01T00:59:40Z");
    pending["status"]["requirementStatus"] = json!([{
        "kind": "ServiceAccount", "name": "demo", "status": "NotPresent", "message": "Service account does not exist",
    }]);
    let objects = vec![installed(), group(), catalog("READY"), pending];
    check("requirement-missing", "clusterserviceversion/demo.v1", "Service account does not exist", objects);
}

#[test]
fn an_owner_conflict_names_the_other_operator() {
    let owning = |mut one: serde_json::Value, name: &str| {
        one["metadata"]["name"] = json!(name);
        one["spec"]["customresourcedefinitions"]["owned"] =
            json!([{"name": "queues.example.com", "version": "v1"}]);
        one
    };
    let failed = owning(csv("Failed", "OwnerConflict", "owner conflict"), "demo.v1");
    let other = owning(csv("Succeeded", "InstallSucceeded", ""), "rival.v1");
    check(
        "operator-group-conflict",
        "clusterserviceversion/demo.v1",
        "`rival.v1` of the same namespace own the same CRD, `queues.example.com`",
        vec![installed(), group(), catalog("READY"), failed, other, available()],
    );
}

/// The old version runs, and the same operator is installed in another namespace: an OperatorGroup for all namespaces would make OLM
/// delete the Deployment of one of the two.
#[test]
fn no_install_mode_is_worth_an_operator_that_runs() {
    let modes = |mode: &str| json!([{"type": mode, "supported": true}]);
    let crd = json!({"owned": [{"name": "demos.example.com", "version": "v1", "kind": "Demo"}]});
    let version = |name: &str, replaces: &str, mode: &str, status: Value| {
        let spec = json!({
            "version": name.trim_start_matches("demo.v"), "replaces": replaces, "installModes": modes(mode),
            "customresourcedefinitions": crd, "install": {"spec": {"deployments": [{"name": "demo"}]}},
        });
        object(OLM, "ClusterServiceVersion", name, json!({"spec": spec, "status": status}))
    };
    let failed = json!({"phase": "Failed", "reason": "UnsupportedOperatorGroup", "message": "OwnNamespace InstallModeType not supported", "lastTransitionTime": "2026-01-01T00:58:00Z"});
    let group = |namespace: &str| {
        let targets = json!({"metadata": {"namespace": namespace}, "spec": {"targetNamespaces": [namespace]}, "status": {"namespaces": [namespace]}});
        object("operators.coreos.com/v1", "OperatorGroup", namespace, targets)
    };
    let objects = |with_other: bool| {
        let mut objects = vec![
            subscription(
                json!({"currentCSV": "demo.v2", "installedCSV": "demo.v2", "state": "AtLatestKnown"}),
            ),
            group("here"),
            catalog("READY"),
            version("demo.v1", "", "OwnNamespace", json!({"phase": "Replacing", "reason": "BeingReplaced"})),
            version("demo.v2", "demo.v1", "AllNamespaces", failed.clone()),
            available(),
        ];
        if with_other {
            let elsewhere = json!({"metadata": {"namespace": "there"}});
            let mut other = version("demo.v1", "", "OwnNamespace", json!({"phase": "Succeeded"}));
            let mut deployment = available();
            merge(&mut other, elsewhere.clone());
            merge(&mut deployment, elsewhere);
            objects.extend([group("there"), other, deployment]);
        }
        objects
    };
    let commands = |with_other: bool| -> Vec<String> {
        let found = look(objects(with_other));
        assert_eq!(found.causes[0].code, "unsupported-install-mode", "{found:#?}");
        found.causes[0].repair.iter().map(|repair| repair.command.to_string()).collect()
    };
    let back = "olmkit operator rollback demo -n here --to 1";
    assert_eq!(commands(true), [back]);
    let alone = commands(false);
    assert!(alone[0] == back && alone[1].contains("/spec/targetNamespaces"), "{alone:?}");
    // Without a look at other namespaces, no patch of the OperatorGroup is printed.
    let unseen = unseen(objects(false));
    assert!(unseen[0] == back && unseen[1].contains(" -A ") && unseen.len() == 2, "{unseen:?}");
}

/// The commands for what was seen of one namespace.
fn unseen(objects: Vec<Value>) -> Vec<String> {
    let mut seen = Observation::new();
    objects.into_iter().for_each(|object| seen.add(object));
    KINDS.iter().for_each(|kind| seen.look_at(*kind));
    seen.at(crate::moment::parse(NOW).unwrap(), 0);
    let found = diagnose(&seen, &Scope { namespace: Some("here".into()), name: None });
    found.causes.iter().flat_map(|cause| &cause.repair).map(|repair| repair.command.to_string()).collect()
}

/// Every repair that changes what an OperatorGroup selects can take down an operator of another namespace, and is printed only by who
/// has looked there.
#[test]
fn no_operator_group_is_changed_by_who_has_not_looked_at_the_others() {
    let running = || {
        let mut running = csv("Failed", "NoOperatorGroup", "csv in namespace with no operatorgroups");
        running["spec"]["customresourcedefinitions"]["owned"] =
            json!([{"name": "demos.example.com", "version": "v1"}]);
        running
    };
    let second = || {
        let mut second = group();
        second["metadata"]["name"] = json!("second");
        second
    };
    let changes = |command: &&String| {
        command.contains("OperatorGroup") || command.contains("operatorgroup") && !command.contains(" get ")
    };
    for (code, groups) in
        [("no-operator-group", vec![]), ("several-operator-groups", vec![group(), second()])]
    {
        let objects =
            || [vec![installed(), catalog("READY"), running(), available()], groups.clone()].concat();
        let told = look(objects());
        let known: Vec<String> =
            told.causes[0].repair.iter().map(|repair| repair.command.to_string()).collect();
        assert_eq!((told.causes[0].code, known.iter().find(changes).is_some()), (code, true), "{told:#?}");
        let unseen = unseen(objects());
        assert!(!unseen.is_empty() && unseen.iter().find(changes).is_none(), "{code}: {unseen:?}");
    }
}

/// What is left of an operator that crashes, after its Subscription was deleted.
fn left() -> Vec<Value> {
    let crashed = json!({"phase": "Running", "containerStatuses": [{
        "name": "manager", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"reason": "Error", "exitCode": 1}},
    }]});
    let [_, rest @ ..] = &around_pod(crashed)[..] else { panic!("no Subscription") };
    let mut rest = rest.to_vec();
    let package = json!({"type": "olm.package", "value": {"packageName": "demo", "version": "1.0.0"}});
    let properties = json!({"properties": [package]}).to_string();
    rest[2]["metadata"]["annotations"] = json!({"operatorframework.io/properties": properties});
    rest
}

#[test]
fn a_version_that_crashes_is_left_without_a_subscription() {
    let removes = |objects: Vec<Value>| {
        let diagnosis = look(objects);
        let [cause] = &diagnosis.causes[..] else { panic!("{diagnosis:#?}") };
        assert_eq!((cause.code, diagnosis.operators[0].version.as_str()), ("crashing", "demo.v1"));
        let none = "clusterserviceversion/demo.v1 has no Subscription: OLM never upgrades it";
        assert!(cause.consequences.iter().any(|one| one == none), "{cause:#?}");
        let last = cause.repair.last().map(|repair| repair.command.to_string()).unwrap();
        let is_it = last.contains("uninstall") || last.contains("delete clusterserviceversion");
        is_it.then_some(last)
    };
    assert_eq!(removes(left()).unwrap(), "olmkit operator uninstall demo -n here");
    let mut unnamed = left();
    unnamed[2]["metadata"].as_object_mut().unwrap().remove("annotations");
    let deletes = "kubectl -n here delete clusterserviceversion.operators.coreos.com demo.v1";
    assert_eq!(removes(unnamed).unwrap(), deletes);
    // One that OLM has only not told yet.
    let diagnosis = look([&left()[..], &[subscription(json!({}))]].concat());
    let mut consequences = diagnosis.causes.iter().flat_map(|cause| &cause.consequences);
    assert!(consequences.all(|one| !one.contains("has no Subscription")), "{diagnosis:#?}");
    // The version that it replaces still serves: it would go too.
    let mut both = left();
    both[2]["spec"]["replaces"] = json!("demo.v0");
    let mut old = csv("Replacing", "BeingReplaced", "being replaced by csv: demo.v1");
    old["metadata"]["name"] = json!("demo.v0");
    let mut ready = both[4].clone();
    merge(
        &mut ready,
        json!({"metadata": {"name": "demo-4c8-x", "creationTimestamp": "2025-12-31T00:00:00Z",
            "labels": {"pod-template-hash": "4c8"}, "ownerReferences": [{"kind": "ReplicaSet", "name": "demo-4c8"}]}}),
    );
    ready["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "manager", "ready": true, "restartCount": 0, "state": {"running": {}}}]});
    both.extend([old, ready]);
    assert_eq!(removes(both), None);
}

#[test]
fn versions_that_need_no_subscription_are_left_alone() {
    let scope = |name: &str| Scope { name: Some(name.into()), namespace: None };
    let mut objects = left();
    // Whatever name it is asked for by.
    for name in ["demo", "demo.v1"] {
        let seen = Observation::complete(objects.clone(), NOW);
        assert_eq!(diagnose(&seen, &scope(name)).state, State::Broken, "{name}");
    }
    assert_eq!(diagnose(&Observation::complete(objects.clone(), NOW), &scope("other")).operators, []);
    objects[2]["metadata"]["labels"] = json!({"olm.copiedFrom": "there"});
    assert_eq!(look(objects).operators, []);
    // OLM's own.
    let mut server = csv("InstallReady", "AllRequirementsMet", "");
    server["spec"]["apiservicedefinitions"] = json!({"owned": [{"group": "packages.operators.coreos.com", "version": "v1", "name": "v1.packages.operators.coreos.com"}]});
    assert_eq!(look(vec![group(), server.clone()]).operators, []);
    server["status"]["phase"] = json!("Succeeded");
    assert_eq!(look(vec![group(), server]).operators, []);
    // One that runs.
    assert_eq!(look(vec![group(), csv("Succeeded", "InstallSucceeded", ""), available()]).operators, []);
    // One that is on its way.
    assert_eq!(look(vec![group(), csv("InstallReady", "AllRequirementsMet", "")]).state, State::Progressing);
}

/// A person begins with the first few of them, and each repair is tried on all of the namespace.
#[test]
fn of_hundreds_of_failed_versions_the_first_are_examined() {
    let mut failed = csv("Failed", "InstallComponentFailed", "boom");
    failed["spec"]["install"] = json!({});
    let failed = |at: usize| {
        let mut one = failed.clone();
        one["metadata"]["name"] = format!("failed-{at:03}.v1").into();
        one
    };
    let up = [installed(), group(), catalog("READY"), csv("Succeeded", "InstallSucceeded", ""), available()];
    let few = look(up.iter().cloned().chain((0..3).map(failed)).collect());
    assert_eq!((few.causes.len(), few.operators.len()), (3, 4));
    assert!(few.not_seen.is_empty() && few.causes.iter().all(|cause| cause.repair.len() == 2), "{few:#?}");
    let seen = Observation::complete(up.into_iter().chain((0..300).map(failed)), NOW);
    let many = diagnose(&seen, &Scope::default());
    assert_eq!((many.causes.len(), many.operators.len()), (50, 51));
    assert_eq!(many.causes[..3], few.causes);
    assert_eq!(
        many.not_seen[0].why,
        "only the first 50 without a Subscription in the namespace `here` are examined, and 250 more are there (250 Failed): \
         repair those, and run the command again"
    );
    // One that is asked for by name is among them.
    let scope = Scope { name: Some("failed-299.v1".into()), namespace: None };
    assert_eq!(diagnose(&seen, &scope).causes.len(), 1);
}
