//! Objects on the API server: who manages them, whether they are as wanted, and what failed.

use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::info;

use crate::Operator;

/// A request to the API server failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}")]
pub struct ApiError {
    what: &'static str,
    source: Box<kube::Error>,
}

/// For `map_err`: says what failed, as in `during("create the Job")`.
pub fn during(what: &'static str) -> impl FnOnce(kube::Error) -> ApiError {
    move |source| ApiError { what, source: Box::new(source) }
}

/// Whether this installation of the operator manages an object. Of two that watch one namespace, the first one to write its
/// namespace into the object's annotation does.
///
/// # Errors
/// When the annotation cannot be written, also because somebody has changed the object since `object` was read.
pub async fn claim<K>(object: &K, annotation: &str, operator: &Operator) -> Result<bool, ApiError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    if let Some(manager) = object.annotations().get(annotation) {
        if *manager != operator.namespace {
            info!(object = object.name_any(), manager, "managed by another installation");
        }
        return Ok(*manager == operator.namespace);
    }
    let patch = json!({"metadata": {
        "resourceVersion": object.resource_version(),
        "annotations": {annotation: operator.namespace},
    }});
    let api: Api<K> = operator.api(&object.namespace().unwrap_or_default());
    let patched = api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.map_err(during("annotate the object"))?;
    Ok(true)
}

/// Whether `owner` controls `object`, by the uid: one that was deleted and created again has another.
pub fn is_controlled_by(object: &impl ResourceExt, owner: &impl ResourceExt) -> bool {
    let mut owners = object.owner_references().iter().filter(|one| one.controller == Some(true));
    owners.any(|one| Some(&one.uid) == owner.meta().uid.as_ref())
}

/// Whether all that is wanted is found. What Kubernetes and others have added beside it does not count, so that nobody fights.
pub fn holds(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            wanted.iter().all(|(key, value)| found.get(key).is_some_and(|found| holds(value, found)))
        }
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.iter().all(|value| found.iter().any(|found| holds(value, found)))
        }
        _ => wanted == found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_add_is_no_difference_and_what_they_change_is() {
        let wanted = json!({"replicas": 3, "containers": [{"name": "a", "image": "a:1"}]});
        let mut found = json!({
            "replicas": 3, "paused": false,
            "containers": [{"name": "proxy"}, {"name": "a", "image": "a:1", "tty": false}],
        });
        assert!(holds(&wanted, &found));
        found["containers"][1]["image"] = json!("a:2");
        assert!(!holds(&wanted, &found));
        assert!(!holds(&wanted, &json!({"replicas": 3})));
    }
}
