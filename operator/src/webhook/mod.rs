//! Webhooks for the API server: conversion between versions, and validation of new objects.
//!
//! Every replica serves them, whether it is the leader or not.

pub mod tls;

use std::{sync::Arc, time::Instant};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    routing::post,
};
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{
    Api, Client, ResourceExt,
    core::{
        DynamicObject, Status,
        admission::{AdmissionRequest, AdmissionResponse, AdmissionReview},
        conversion::{ConversionRequest, ConversionResponse, ConversionReview},
        response::StatusSummary,
    },
};
use serde_json::Value;

use crate::{
    crd::{
        check::{surprising_values, wrong_changes, wrong_values},
        convert::convert,
        v1::RedisClusterSpec,
    },
    metrics::Metrics,
};

/// Path of the conversion webhook.
pub const CONVERT: &str = "/convert";
/// Path of the validating webhook.
pub const VALIDATE: &str = "/validate";

/// Request size limit: many large objects are converted in one request.
const MOST_BYTES: usize = 64 << 20;

#[derive(Clone)]
struct WebhookState {
    client: Client,
    metrics: Arc<Metrics>,
}

/// The webhooks.
pub fn router(client: Client, metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route(CONVERT, post(convert_objects))
        .route(VALIDATE, post(validate))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state(WebhookState { client, metrics })
}

async fn convert_objects(
    State(state): State<WebhookState>,
    Json(review): Json<ConversionReview>,
) -> Json<ConversionReview> {
    let started = Instant::now();
    let (review, result) = converted(review);
    state.metrics.webhook("convert", started.elapsed(), result);
    Json(review)
}

/// Converts all objects of a review, in order, or none.
pub fn converted(review: ConversionReview) -> (ConversionReview, &'static str) {
    let request = match ConversionRequest::from_review(review) {
        Ok(request) => request,
        Err(error) => {
            return (ConversionResponse::invalid(failure(&error.to_string())).into_review(), "invalid");
        }
    };
    let version = request.desired_api_version.clone();
    let objects: Result<Vec<Value>, _> =
        request.objects.iter().map(|object| convert(object.clone(), &version)).collect();
    let response = ConversionResponse::for_request(request);
    match objects {
        Ok(objects) => (response.success(objects).into_review(), "converted"),
        Err(error) => (response.failure(failure(&error.to_string())).into_review(), "refused"),
    }
}

fn failure(message: &str) -> Status {
    Status {
        status: Some(StatusSummary::Failure),
        message: message.into(),
        code: 400,
        reason: "Invalid".into(),
        ..Default::default()
    }
}

async fn validate(
    State(state): State<WebhookState>,
    Json(review): Json<AdmissionReview<DynamicObject>>,
) -> Json<AdmissionReview<DynamicObject>> {
    let started = Instant::now();
    let request: Result<AdmissionRequest<DynamicObject>, _> = review.try_into();
    let response = match request {
        Ok(request) => admitted(&state.client, &request).await,
        Err(error) => AdmissionResponse::invalid(error.to_string()),
    };
    let result = if response.allowed { "allowed" } else { "refused" };
    state.metrics.webhook("validate", started.elapsed(), result);
    Json(response.into_review())
}

/// Checks what the schema does not: wrong values, whether a name is taken, and warnings.
async fn admitted(client: &Client, request: &AdmissionRequest<DynamicObject>) -> AdmissionResponse {
    let mut response = AdmissionResponse::from(request);
    let Some(object) = &request.object else { return response };
    response.warnings = warnings(&object.data["spec"]);
    let wrong = newly_wrong(
        &object.data["spec"],
        request.old_object.as_ref().map_or(&Value::Null, |old| &old.data["spec"]),
    );
    if !wrong.is_empty() {
        return response.deny(wrong.join("; "));
    }
    if request.old_object.is_none() {
        let namespace = request.namespace.clone().unwrap_or_default();
        let sets: Api<StatefulSet> = Api::namespaced(client.clone(), &namespace);
        // If this request fails, the controller reports the conflict later.
        if let Ok(Some(set)) = sets.get_opt(&request.name).await
            && !set
                .owner_references()
                .iter()
                .any(|owner| owner.kind == "RedisCluster" && owner.name == request.name)
        {
            let name = &request.name;
            return response.deny(format!(
                "StatefulSet `{name}` exists and is not controlled by this RedisCluster: delete it, or choose another name for this RedisCluster"
            ));
        }
    }
    response
}

/// The wrong values that were not there before: old ones do not stop a change of something else.
fn newly_wrong(spec: &Value, old: &Value) -> Vec<String> {
    let typed = |spec: &Value| serde_json::from_value::<RedisClusterSpec>(spec.clone()).ok();
    let (spec, old) = (typed(spec), typed(old));
    let before = old.as_ref().map(wrong_values).unwrap_or_default();
    let mut wrong = spec.as_ref().map(wrong_values).unwrap_or_default();
    wrong.retain(|sentence| !before.contains(sentence));
    wrong.extend(old.zip(spec).into_iter().flat_map(|(old, spec)| wrong_changes(&old, &spec)));
    wrong
}

fn warnings(spec: &Value) -> Option<Vec<String>> {
    let number = |field: &str| spec[field].as_i64().unwrap_or(0);
    let replicas = number("replicasPerShard");
    let shards = number("size") / (1 + replicas.max(0));
    let mut warnings = vec![];
    if replicas > 0 && (1..3).contains(&shards) {
        warnings.push(format!("with {shards} shards Redis cannot fail over by itself: use three or more"));
    }
    if spec["image"].as_str().is_some_and(|image| image.ends_with(":latest")) {
        warnings.push("the tag `:latest` in spec.image can change between pods: use a version".into());
    }
    let typed = serde_json::from_value::<RedisClusterSpec>(spec.clone());
    warnings.extend(typed.iter().flat_map(surprising_values));
    (!warnings.is_empty()).then_some(warnings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::check::TLS_FIXED;

    fn ask(objects: Value, version: &str) -> Value {
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "7", "desiredAPIVersion": version, "objects": objects},
        });
        serde_json::to_value(converted(serde_json::from_value(review).unwrap()).0).unwrap()
    }

    #[test]
    fn objects_come_back_in_their_order() {
        let object = |name: &str| json!({"apiVersion": "cache.example.com/v1", "spec": {"size": 3}, "metadata": {"name": name}});
        let answer = ask(json!([object("b"), object("a")]), "cache.example.com/v1alpha1");
        assert_eq!(answer["response"]["uid"], "7");
        assert_eq!(answer["response"]["result"]["status"], "Success");
        let names: Vec<_> =
            (0..2).map(|i| &answer["response"]["convertedObjects"][i]["metadata"]["name"]).collect();
        assert_eq!(names, ["b", "a"]);
    }

    #[test]
    fn one_that_cannot_be_converted_refuses_all() {
        let answer = ask(json!([{"apiVersion": "apps/v1"}]), "cache.example.com/v1");
        assert_eq!(answer["response"]["result"]["status"], "Failure");
        let review = serde_json::from_value(
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}),
        );
        assert_eq!(converted(review.unwrap()).1, "invalid");
    }

    #[test]
    fn a_wrong_value_is_refused_when_it_is_new() {
        let spec = |image: &str, size: i32| json!({"size": size, "image": image});
        let sentence = newly_wrong(&spec("Redis:7", 3), &Value::Null);
        assert!(sentence[0].starts_with("spec.image must be an image reference"), "{sentence:?}");
        assert_eq!(newly_wrong(&spec("Redis:7", 5), &spec("Redis:7", 3)), [""; 0]);
        assert_eq!(newly_wrong(&spec("Redis:7", 3), &spec("redis:7", 3)).len(), 1);
        let with = |tls: Value| json!({"size": 3, "tls": tls});
        let secret = |name: &str| json!({"secretName": name});
        assert_eq!(newly_wrong(&with(secret("a")), &Value::Null), [""; 0]);
        assert_eq!(newly_wrong(&with(secret("a")), &with(secret("b"))), [""; 0]);
        assert_eq!(newly_wrong(&with(secret("a")), &with(Value::Null)), [TLS_FIXED]);
        assert_eq!(newly_wrong(&with(Value::Null), &with(secret("a"))), [TLS_FIXED]);
        // The older version has other fields.
        assert_eq!(newly_wrong(&json!({"size": 3, "unknown": 1}), &Value::Null), [""; 0]);
    }

    #[test]
    fn what_is_allowed_but_unwise() {
        assert_eq!(warnings(&json!({"size": 3})), None);
        assert_eq!(warnings(&json!({"size": 6, "replicasPerShard": 1})), None);
        assert!(warnings(&json!({"size": 4, "replicasPerShard": 1})).is_some());
        assert!(warnings(&json!({"size": 3, "image": "redis:latest"})).is_some());
        let config = json!({"maxmemory": "512m", "repl-backlog-size": "1mb", "maxclients": "5"});
        assert_eq!(
            warnings(&json!({"size": 3, "config": config})).unwrap(),
            [
                "spec.config.maxmemory: to Redis, `512m` is 512 * 1000 * 1000 bytes; write `512mb` for powers of 1024"
            ]
        );
    }
}
