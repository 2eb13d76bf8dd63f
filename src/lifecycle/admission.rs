//! What the API server refuses to store, whatever else there is: what the rules of `bundle validate` find in an object alone.

use olmkit_bundle::finding::Level;
use olmkit_bundle::load::{BundleFile, BundleFiles, Content};
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::validate::validate_by;
use serde_json::{Value, json};

/// What is wrong with an object of a bundle, on any version of Kubernetes.
pub(super) fn object(object: &Value) -> Option<String> {
    // Schemas are large, and other rules look at them.
    let is_crd = object["kind"] == "CustomResourceDefinition";
    if is_crd { None } else { first(object, &["access-rule-invalid", "manifest-content-invalid"]) }
}

/// The version of Kubernetes that removed the API of an object.
pub(super) fn removed(object: &Value) -> Option<String> {
    let bare = json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": {"name": object["metadata"]["name"]},
    });
    first(&bare, &["manifest-api-removed"])
}

/// What is wrong with the Deployments of a ClusterServiceVersion; also with the name of an image, which is found out on a node.
pub(super) fn deployments(csv: &Value) -> Option<String> {
    let all = csv.pointer("/spec/install/spec/deployments").and_then(Value::as_array);
    // The doctor keeps nothing of them but the number of replicas: what is not known is not refused.
    let is_known = |deployment: &&Value| deployment["spec"].get("template").is_some();
    let known: Vec<&Value> = all.into_iter().flatten().filter(is_known).collect();
    if known.is_empty() {
        return None;
    }
    first(&bare(csv, &json!(known), &csv["spec"]["webhookdefinitions"]), &["deployment-invalid"])
}

/// What is wrong with a webhook of a ClusterServiceVersion.
pub(super) fn webhook(csv: &Value, webhook: &Value) -> Option<String> {
    let deployments = csv.pointer("/spec/install/spec/deployments").and_then(Value::as_array);
    let names = deployments.into_iter().flatten().map(|one| json!({"name": one["name"]}));
    first(&bare(csv, &names.collect::<Value>(), &json!([webhook])), &["webhook-invalid"])
}

/// A ClusterServiceVersion without descriptions, schemas and examples: this is asked at each attempt.
fn bare(csv: &Value, deployments: &Value, webhooks: &Value) -> Value {
    json!({
        "apiVersion": csv["apiVersion"], "kind": csv["kind"], "metadata": {"name": csv["metadata"]["name"]},
        "spec": {
            "install": {"strategy": "deployment", "spec": {"deployments": deployments}},
            "webhookdefinitions": webhooks, "apiservicedefinitions": csv["spec"]["apiservicedefinitions"],
        },
    })
}

/// The first error of some rules.
fn first(object: &Value, codes: &[&str]) -> Option<String> {
    let file =
        BundleFile { path: "manifests/object.json".into(), content: Content::Text(object.to_string()) };
    let files = BundleFiles { name: String::new(), files: vec![file] };
    let found = validate_by(&Bundle::parse(&files), codes);
    found.into_iter().find(|finding| finding.level == Level::Error).map(|error| error.message)
}
