//! What the API server of a simulation refuses to store: what the rules of `bundle validate --suite install` find in the object alone.

use olmkit_bundle::finding::Level;
use olmkit_bundle::load::{BundleFile, BundleFiles, Content};
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::validate::validate_by;
use serde_json::{Value, json};

/// What is wrong with an object of a bundle.
pub(super) fn object(object: &Value) -> Option<String> {
    // Schemas are large, and other rules look at them.
    if object["kind"] == "CustomResourceDefinition" {
        let bare =
            json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": {"name": "crd"}});
        return first(&bare, &["manifest-api-removed"]);
    }
    first(object, &["access-rule-invalid", "manifest-api-removed", "manifest-content-invalid"])
}

/// What is wrong with the Deployments of a ClusterServiceVersion; also with the name of an image, which is found out on a node.
pub(super) fn deployments(csv: &Value) -> Option<String> {
    let spec = &csv["spec"];
    let all = spec.pointer("/install/spec/deployments").and_then(Value::as_array);
    // The doctor keeps nothing of them but the number of replicas: what is not known is not refused.
    let is_known = |deployment: &&Value| deployment["spec"].get("template").is_some();
    let known: Vec<&Value> = all.into_iter().flatten().filter(is_known).collect();
    // Without descriptions, schemas and examples: this is asked at each attempt.
    let csv = json!({
        "apiVersion": csv["apiVersion"], "kind": csv["kind"], "metadata": {"name": csv["metadata"]["name"]},
        "spec": {
            "install": {"strategy": "deployment", "spec": {"deployments": known}},
            "webhookdefinitions": spec["webhookdefinitions"], "apiservicedefinitions": spec["apiservicedefinitions"],
        },
    });
    if known.is_empty() { None } else { first(&csv, &["deployment-invalid"]) }
}

/// The first error of some rules.
fn first(object: &Value, codes: &[&str]) -> Option<String> {
    let file =
        BundleFile { path: "manifests/object.json".into(), content: Content::Text(object.to_string()) };
    let files = BundleFiles { name: String::new(), files: vec![file] };
    let found = validate_by(&Bundle::parse(&files), codes);
    let error = found.into_iter().find(|finding| finding.level == Level::Error)?;
    Some(error.message.replace('`', "\""))
}
