//! What is looked at after a hop, one fault at a time.

use olmkit::lifecycle::checks;
use olmkit::lifecycle::observe::Observed;
use olmkit::lifecycle::simulate::{Registry, Simulation};
use serde_json::{Value, json};

const NS: &str = "ns";

/// Everything of an operator that is well, by a name of its own.
fn well() -> Vec<(&'static str, Value)> {
    let labels = |hook: &str| json!({"olm.owner": "op.v2", "olm.webhook-description-generate-name": hook});
    let meta = |name: &str| json!({"name": name, "namespace": NS});
    vec![
        (
            "csv",
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": meta("op.v2"),
                "spec": {
                    "replaces": "op.v1",
                    "install": {"strategy": "deployment", "spec": {"deployments": [{"name": "op", "spec": {
                        "selector": {}, "template": {"spec": {"containers": [{"name": "op", "image": "r/op:2"}]}},
                    }}]}},
                    "customresourcedefinitions": {"owned": [{"name": "things.example.com", "kind": "Thing", "version": "v1"}]},
                    "apiservicedefinitions": {"owned": [{
                        "name": "views", "group": "views.example.com", "version": "v1", "kind": "View", "deploymentName": "op",
                    }]},
                    "webhookdefinitions": [
                        {"type": "ValidatingAdmissionWebhook", "generateName": "v.example.com", "deploymentName": "op",
                         "admissionReviewVersions": ["v1"], "sideEffects": "None"},
                        {"type": "MutatingAdmissionWebhook", "generateName": "m.example.com", "deploymentName": "op",
                         "admissionReviewVersions": ["v1"], "sideEffects": "None"},
                        {"type": "ConversionWebhook", "generateName": "c.example.com", "deploymentName": "op",
                         "admissionReviewVersions": ["v1"], "sideEffects": "None", "conversionCRDs": ["things.example.com"]},
                    ],
                },
                "status": {"phase": "Succeeded", "requirementStatus": [
                    {"kind": "ServiceAccount", "name": "op", "status": "Present"},
                ]},
            }),
        ),
        (
            "subscription",
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": meta("op"),
                "spec": {"name": "op"}, "status": {"installedCSV": "op.v2"},
            }),
        ),
        (
            "deployment",
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "op", "namespace": NS, "labels": {"olm.owner": "op.v2"}},
                "spec": {"template": {"spec": {"containers": [{"name": "op", "image": "r/op:2"}]}}},
                "status": {"updatedReplicas": 1, "availableReplicas": 1, "observedGeneration": 1},
            }),
        ),
        (
            "validating",
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "v.example.com-x", "labels": labels("v.example.com")},
            }),
        ),
        (
            "mutating",
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": "m.example.com-x", "labels": labels("m.example.com")},
            }),
        ),
        (
            "crd",
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "things.example.com"},
                "spec": {
                    "group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
                    "versions": [{"name": "v1", "served": true, "storage": true}],
                    "conversion": {"strategy": "Webhook"},
                },
            }),
        ),
        (
            "apiservice",
            json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.views.example.com"},
                "status": {"conditions": [{"type": "Available", "status": "True"}]},
            }),
        ),
    ]
}

/// What is wrong when one object is changed by a merge, or is not there.
fn check(name: &str, change: Option<Value>) -> String {
    let mut cluster = Simulation::new(Registry::default());
    assert!(name.is_empty() || well().iter().any(|(own, _)| *own == name), "there is no `{name}` to change");
    for (own, mut document) in well() {
        if own == name {
            let Some(change) = &change else { continue };
            olmkit::lifecycle::patch::merge(&mut document, change);
        }
        cluster.store().create(document).unwrap();
    }
    let observed = Observed::look(&mut cluster, NS, "op").unwrap();
    let csv = observed.csvs.iter().find(|csv| csv.document()["metadata"]["name"] == "op.v2").unwrap().clone();
    let found = checks::after_hop(&mut cluster, &observed, &csv).unwrap();
    let faults = found.into_iter().filter_map(|check| Some(format!("{}: {}", check.what, check.fault?)));
    faults.collect::<Vec<_>>().join("; ")
}

#[test]
fn what_is_well_passes() {
    assert_eq!(check("", None), "");
}

/// OLM 0.46 went from Succeeded to Failed and back within a second, when the rights of the predecessor went, and left the list as
/// it was in between.
#[test]
fn what_was_missing_for_a_moment_is_not_missing() {
    let stale = json!([{"kind": "ServiceAccount", "name": "op", "status": "PresentNotSatisfied"}]);
    assert_eq!(check("csv", Some(json!({"status": {"requirementStatus": stale}}))), "");
}

#[test]
fn each_fault_is_named() {
    let old = json!({"metadata": {"labels": {"olm.owner": "op.v1"}}});
    let unnamed = json!({"status": {"conditions": [{"type": "NamesAccepted", "status": "False"}]}});
    let said = [
        check("csv", Some(json!({"status": {"phase": "Installing"}}))),
        check(
            "csv",
            Some(json!({"status": {"phase": "Failed", "requirementStatus": [
                {"kind": "PolicyRule", "name": "r", "status": "NotSatisfied"},
            ]}})),
        ),
        check("deployment", None),
        check("deployment", Some(old.clone())),
        check("deployment", Some(json!({"status": {"availableReplicas": 0}}))),
        check(
            "deployment",
            Some(
                json!({"spec": {"template": {"spec": {"containers": [{"name": "op", "image": "r/op:1"}]}}}}),
            ),
        ),
        check("validating", None),
        // That of the predecessor does not count.
        check("validating", Some(old.clone())),
        check("mutating", None),
        check("crd", Some(json!({"spec": {"conversion": {"strategy": "None"}}}))),
        check("crd", Some(unnamed.clone())),
        check("apiservice", None),
        check(
            "apiservice",
            Some(json!({"status": {"conditions": [{"type": "Available", "status": "False"}]}})),
        ),
        check("subscription", Some(json!({"status": {"installedCSV": "op.v1"}}))),
    ];
    let mut crd = json!({"spec": {"versions": [{"name": "v1", "served": true}]}});
    assert_eq!(checks::served(&crd).len(), 1);
    crd["status"] = unnamed["status"].clone();
    assert_eq!(checks::served(&crd), []);
    insta::assert_snapshot!(said.join("\n"), @"
    the ClusterServiceVersion succeeded: `op.v2` is Installing
    the ClusterServiceVersion succeeded: `op.v2` is Failed; its requirements are met: PolicyRule `r` is NotSatisfied
    its deployments run its images: deployment/op does not exist
    its deployments run its images: deployment/op belongs to `op.v1`; its predecessor is gone: deployment/op still belongs to `op.v1`
    its deployments run its images: 0 of 1 pods of deployment/op are available
    its deployments run its images: deployment/op does not run `r/op:2`
    its webhooks are registered: the webhook `v.example.com` is not registered
    its webhooks are registered: the webhook `v.example.com` is not registered
    its webhooks are registered: the webhook `m.example.com` is not registered
    its webhooks are registered: `things.example.com` is not converted by the webhook
    custom resources can be read: `things.example.com` is not served, because another CRD has its names
    its APIs are served: apiservice/v1.views.example.com is not available
    its APIs are served: apiservice/v1.views.example.com is not available
    the Subscription reports it as installed: subscription/op reports `op.v1`
    ");
}
