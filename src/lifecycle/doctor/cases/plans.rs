//! InstallPlans.

use serde_json::json;

use super::{
    OLM, Observation, Scope, catalog, check, csv, diagnose, group, installed, look, object, subscription,
};
use crate::lifecycle::doctor::read;

#[test]
fn a_plan_fails() {
    let plan = |message: &str| {
        object(
            OLM,
            "InstallPlan",
            "install-1",
            json!({
                "spec": {"approved": true, "clusterServiceVersionNames": ["demo.v1"], "generation": 1},
                "status": {"phase": "Failed", "message": message},
            }),
        )
    };
    for (code, message) in [
        (
            "crd-stored-version",
            "risk of data loss updating \"demos.example.com\": new CRD removes version v1alpha1 that is listed as a stored version on the existing CRD",
        ),
        (
            "conversion-webhook",
            "conversion webhook for example.com/v1, Kind=Demo failed: Post \"https://demo.here.svc:443/convert\": connection refused",
        ),
        (
            "webhook-unreachable",
            "failed calling webhook \"v.example.com\": failed to call webhook: Post: no endpoints available",
        ),
        (
            "rights-missing",
            "roles.rbac.authorization.k8s.io is forbidden: User \"system:serviceaccount:here:installer\" cannot create resource \"roles\"",
        ),
        (
            "required-api-missing",
            "api-server resource not found installing ServiceMonitor demo: GroupVersionKind monitoring.coreos.com/v1, Kind=ServiceMonitor not found on the cluster.",
        ),
        (
            "object-invalid",
            "error creating role demo: Role.rbac.authorization.k8s.io \"demo\" is invalid: metadata.labels: Invalid value: \"demo\": must be no more than 63 characters",
        ),
        ("plan-failed", "something else"),
    ] {
        let status = json!({"currentCSV": "demo.v1", "installedCSV": "demo.v1", "installPlanRef": {"name": "install-1"}});
        let pending = csv("Pending", "RequirementsNotMet", "one or more requirements couldn't be found");
        let objects = vec![subscription(status), group(), catalog("READY"), pending, plan(message)];
        check(code, "installplan/install-1", message, objects);
    }
}

#[test]
fn a_plan_was_deleted_before_it_was_complete() {
    let mut pending = csv("Pending", "RequirementsNotMet", "one or more requirements couldn't be found");
    pending["status"]["requirementStatus"] = json!([{
        "kind": "CustomResourceDefinition", "name": "demos.example.com", "status": "PresentNotSatisfied",
        "message": "CRD installed alongside other CSV(s): demo.v0",
    }]);
    let status =
        json!({"currentCSV": "demo.v1", "installedCSV": "demo.v1", "installPlanRef": {"name": "install-1"}});
    check(
        "plan-deleted",
        "subscription/demo",
        "installplan/install-1",
        vec![subscription(status), group(), catalog("READY"), pending],
    );
}

#[test]
fn a_subscription_is_made_anew_with_its_labels_and_annotations() {
    let mut lost = installed();
    lost["metadata"]["labels"] = json!({"team": "storage"});
    lost["metadata"]["annotations"] = json!({
        "example.com/note": "n".repeat(2_000), "kubectl.kubernetes.io/last-applied-configuration": "{}",
    });
    let mut seen = Observation::new();
    let list = json!({"kind": "List", "apiVersion": "v1", "items": [lost, group(), catalog("READY")]});
    read(&mut seen, &list.to_string());
    seen.look_at("ClusterServiceVersion");
    seen.collected();
    let diagnosis = diagnose(&seen, &Scope::default());
    let cause = &diagnosis.causes[0];
    assert_eq!(cause.code, "csv-deleted", "{diagnosis:#?}");
    let command = cause.repair.last().unwrap().command.to_string();
    assert!(command.contains("\"labels\":{\"team\":\"storage\"}"), "{command}");
    assert!(command.contains("\"example.com/note\":\"nnn") && !command.contains("last-applied"), "{command}");
}

#[test]
fn a_version_that_was_upgraded_after_the_subscription_was_read_is_not_lost() {
    let (now, before) = ("2026-01-01T01:00:00Z", "2026-01-01T00:00:00Z");
    for (replaced, created, expected) in
        [("demo.v1", now, false), ("demo.v1", before, true), ("demo.v0", now, true)]
    {
        let next = json!({
            "metadata": {"creationTimestamp": created},
            "spec": {"replaces": replaced}, "status": {"phase": "Succeeded", "lastTransitionTime": now},
        });
        let next = object(OLM, "ClusterServiceVersion", "demo.v2", next);
        let mut seen = Observation::new();
        let objects = json!([installed(), group(), catalog("READY"), next]);
        read(&mut seen, &json!({"kind": "List", "apiVersion": "v1", "items": objects}).to_string());
        seen.collected();
        let diagnosis = diagnose(&seen, &Scope::default());
        let is_lost = diagnosis.causes.iter().any(|cause| cause.code == "csv-deleted");
        assert_eq!(is_lost, expected, "{replaced} {created}: {diagnosis:#?}");
    }
}

#[test]
fn an_aggregated_api_that_is_down_stops_a_plan() {
    let message = "retrying execution due to error: unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: the server is currently unable to handle the request";
    let plan = object(
        OLM,
        "InstallPlan",
        "install-1",
        json!({
            "spec": {"approved": true, "clusterServiceVersionNames": ["demo.v1"], "generation": 1},
            "status": {"phase": "Installing", "message": message},
        }),
    );
    let status = json!({"currentCSV": "demo.v1", "installPlanRef": {"name": "install-1"}});
    let objects = vec![subscription(status), group(), catalog("READY"), plan];
    check("api-service-down", "installplan/install-1", "metrics.k8s.io/v1beta1", objects);
}

#[test]
fn a_conversion_webhook_that_is_down_names_its_crd() {
    let down = "conversion webhook for example.com/v1alpha1, Kind=Demo failed: Post \"https://conv.here.svc:443/convert?timeout=30s\": connection refused";
    let listing = format!(
        "error validating existing CRs against new CRD's schema for \"demos.example.com\": error listing resources in GroupVersionResource schema.GroupVersionResource{{Group:\"example.com\", Version:\"v1\", Resource:\"demos\"}}: {down}"
    );
    let updating = format!("error updating CRD: {down}");
    let step = |name: &str| json!({"resource": {"kind": "CustomResourceDefinition", "name": name}, "status": "Unknown"});
    let crd = json!({"spec": {"group": "example.com", "names": {"kind": "Demo", "plural": "demos"}}});
    let crd = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "demos.example.com", crd);
    let found =
        "kubectl get crd demos.example.com -o jsonpath='{.spec.conversion.webhook.clientConfig.service}'";
    let unknown = "kubectl get crds -o 'custom-columns=NAME:.metadata.name,SERVICE:.spec.conversion.webhook.clientConfig.service.name'";
    for (message, steps, crd, expected) in [
        (&listing, json!([]), None, found),
        (&updating, json!([step("demos.example.com"), step("others.elsewhere.com")]), None, found),
        (&updating, json!([]), Some(crd), found),
        (&updating, json!([step("demos.example.com"), step("others.example.com")]), None, unknown),
        (&updating, json!([step("$(id).example.com")]), None, unknown),
        (&updating, json!([]), None, unknown),
    ] {
        let plan = object(
            OLM,
            "InstallPlan",
            "install-1",
            json!({
                "spec": {"approved": true, "clusterServiceVersionNames": ["demo.v1"], "generation": 1},
                "status": {
                    "phase": "Installing", "plan": steps,
                    "message": format!("retrying execution due to error: {message}"),
                },
            }),
        );
        let status = json!({"currentCSV": "demo.v1", "installPlanRef": {"name": "install-1"}});
        let objects = vec![subscription(status), group(), catalog("READY"), plan];
        let diagnosis = look(objects.into_iter().chain(crd).collect());
        let [cause] = &diagnosis.causes[..] else { panic!("{diagnosis:#?}") };
        assert_eq!(cause.code, "conversion-webhook", "{message}");
        assert!(cause.sentence.ends_with(&format!("`demo.v1`: {down}")), "{}", cause.sentence);
        assert_eq!(cause.repair[0].command.to_string(), expected, "{message}");
    }
}

/// An older OLM unpacks after it has made the plan, and says why it failed in a condition alone.
#[test]
fn a_plan_that_failed_to_unpack_says_so_in_its_condition() {
    let message = "bundle unpacking failed. Reason: DeadlineExceeded, and Message: Job was active longer than specified deadline";
    let plan = |message: &str| {
        object(
            OLM,
            "InstallPlan",
            "install-1",
            json!({
                "spec": {"approved": true, "clusterServiceVersionNames": ["demo.v1"]},
                "status": {"phase": "Failed", "conditions": [{
                    "type": "Installed", "status": "False", "reason": "InstallCheckFailed", "message": message,
                }]},
            }),
        )
    };
    let diagnosis = |message: &str| {
        let status = json!({"currentCSV": "demo.v1", "installPlanRef": {"name": "install-1"}});
        look(vec![subscription(status), group(), catalog("READY"), plan(message)])
    };
    let found = diagnosis(message);
    let [cause] = &found.causes[..] else { panic!("{found:#?}") };
    assert_eq!((cause.code, cause.object.short().as_str()), ("unpack-failed", "installplan/install-1"));
    assert!(cause.sentence.ends_with(message), "{}", cause.sentence);
    assert_eq!(cause.evidence[0].field, "status.conditions[Installed].message");
    let commands: Vec<String> = cause.repair.iter().map(|one| one.command.to_string()).collect();
    assert!(commands[0].starts_with("kubectl -n here get jobs"), "{commands:#?}");
    assert!(commands[1].contains("delete subscription.operators.coreos.com/demo &&"), "{commands:#?}");
    assert!(!commands.iter().any(|one| one.contains("\"phase\":\"Installing\"")), "{commands:#?}");
    let silent = diagnosis("");
    assert!(silent.causes[0].sentence.ends_with("and OLM does not say why"), "{silent:#?}");
}
