//! Objects on the API server: who manages them, and whether they are as wanted.

use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tracing::info;

use crate::{
    Operator,
    error::{ApiError, during},
    status::Problem,
};

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

/// What [`apply`] did.
#[derive(Debug)]
pub enum Applied<K> {
    /// Nothing: the object is as wanted.
    Unchanged(K),
    /// It was created.
    Created,
    /// It was changed; this is what it was before.
    Changed(K),
    /// Nothing: an object of this name exists that the owner does not control.
    NameTaken(Problem),
}

/// Creates an object of `owner`'s namespace, or changes it back to what is wanted, in the name of `manager`.
///
/// # Errors
/// When the API server cannot be asked, or refuses the object.
pub async fn apply<K>(
    owner: &impl Resource<DynamicType = ()>,
    operator: &Operator,
    manager: &str,
    wanted: &Value,
) -> Result<Applied<K>, ApiError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize,
{
    let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
    let api: Api<K> = operator.api(&owner.namespace().unwrap_or_default());
    let found = api.get_opt(name).await.map_err(during(format!("get {} {name}", K::kind(&()))))?;
    match found {
        Some(found) if !is_controlled_by(&found, owner) => Ok(Applied::NameTaken(name_taken(&found, owner))),
        Some(found)
            if holds(wanted, &serde_json::to_value(&found).unwrap_or_default())
                && !drops_any(wanted, &found, manager) =>
        {
            Ok(Applied::Unchanged(found))
        }
        found => {
            let apply = PatchParams::apply(manager).force();
            api.patch(name, &apply, &Patch::Apply(wanted))
                .await
                .map_err(during(format!("apply {} {name}", K::kind(&()))))?;
            Ok(found.map_or(Applied::Created, Applied::Changed))
        }
    }
}

/// Why an object of this name is not touched.
fn name_taken<K, O>(found: &K, _: &O) -> Problem
where
    K: Resource<DynamicType = ()>,
    O: Resource<DynamicType = ()>,
{
    let (kind, owner) = (K::kind(&()), O::kind(&()));
    let name = found.name_any();
    let message = format!("{kind} {name} exists and is not controlled by this {owner}: rename or delete it");
    Problem { reason: "NameTaken", message }
}

/// Whether `owner` controls `object`, by the uid: one that was deleted and created again has another.
pub fn is_controlled_by(object: &impl ResourceExt, owner: &impl ResourceExt) -> bool {
    let mut owners = object.owner_references().iter().filter(|one| one.controller == Some(true));
    owners.any(|one| Some(&one.uid) == owner.meta().uid.as_ref())
}

/// Whether all that is wanted is found. What Kubernetes and others have added beside it does not count, so that nobody fights. A
/// list of texts or numbers, such as arguments, is one value; of a list of objects, others may have added some.
pub fn holds(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            wanted.iter().all(|(key, value)| found.get(key).is_some_and(|found| holds(value, found)))
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.iter().all(Value::is_object) => {
            wanted.iter().all(|value| found.iter().any(|found| holds(value, found)))
        }
        _ => wanted == found,
    }
}

/// Whether `manager` applied something to the object that is not wanted any more, such as the environment variable of an earlier
/// release: only then applying what is wanted removes it.
fn drops_any(wanted: &Value, found: &impl ResourceExt, manager: &str) -> bool {
    let ours = found.managed_fields().iter().filter(|entry| {
        entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().is_none_or(str::is_empty)
    });
    ours.filter_map(|entry| entry.fields_v1.as_ref()).any(|fields| drops(wanted, &fields.0))
}

/// Whether a field of this set is not wanted. Kubernetes writes `f:KEY` for the fields of an object, and `k:KEYS` or `v:VALUE` for
/// the items of a list that has several managers.
fn drops(wanted: &Value, owned: &Value) -> bool {
    let owned = owned.as_object().into_iter().flatten();
    owned.filter_map(|(path, below)| Some((path.split_once(':')?, below))).any(|((kind, name), below)| {
        let items = || wanted.as_array().into_iter().flatten();
        let wanted = match kind {
            "f" => wanted.get(name),
            "k" => {
                let keys: Value = serde_json::from_str(name).unwrap_or_default();
                // A key that was left out has its default.
                let is_it = |item: &&Value| {
                    keys.as_object().is_some_and(|keys| {
                        keys.iter().all(|(key, value)| item.get(key).is_none_or(|own| own == value))
                    })
                };
                items().find(is_it)
            }
            "v" => {
                let value: Value = serde_json::from_str(name).unwrap_or_default();
                items().find(|item| **item == value)
            }
            // By position, which says nothing.
            _ => return false,
        };
        wanted.is_none_or(|wanted| drops(wanted, below))
    })
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

    /// A release without an argument, or with another order of them.
    #[test]
    fn a_dropped_argument_is_a_difference() {
        let pod = |arguments: Value| json!({"containers": [{"name": "a", "args": arguments}]});
        let found = pod(json!(["--verbose", "--port=1"]));
        assert!(holds(&pod(json!(["--verbose", "--port=1"])), &found));
        assert!(!holds(&pod(json!(["--port=1"])), &found));
        assert!(!holds(&pod(json!(["--port=1", "--verbose"])), &found));
    }

    /// What the API server notes after an apply of two containers, one of them with a port and variables.
    #[test]
    fn what_a_release_drops_is_a_difference() {
        let owned = json!({
            "f:metadata": {"f:labels": {"f:app.example.com/name": {}}, "f:finalizers": {"v:\"a/b\"": {}}},
            "f:spec": {"f:containers": {
                "k:{\"name\":\"a\"}": {
                    ".": {}, "f:name": {}, "f:args": {},
                    "f:env": {"k:{\"name\":\"LOG\"}": {".": {}, "f:name": {}, "f:value": {}}},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                },
            }},
        });
        let wanted = json!({
            "metadata": {"labels": {"app.example.com/name": "x"}, "finalizers": ["a/b"]},
            "spec": {"containers": [{
                "name": "a", "args": ["--port=1"], "env": [{"name": "LOG", "value": "info"}],
                "ports": [{"containerPort": 80}],
            }]},
        });
        assert!(!drops(&wanted, &owned));
        for dropped in [
            "/metadata/labels/app.example.com~1name",
            "/metadata/finalizers",
            "/spec/containers/0/args",
            "/spec/containers/0/env",
            "/spec/containers/0/ports",
            "/spec/containers",
        ] {
            let mut less = wanted.clone();
            let (parent, key) = dropped.rsplit_once('/').unwrap();
            less.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(&key.replace("~1", "/"));
            assert!(drops(&less, &owned), "{dropped}");
        }
        let mut less = wanted.clone();
        less["spec"]["containers"][0]["env"][0]["name"] = json!("LEVEL");
        assert!(drops(&less, &owned), "a variable with another name");
    }
}
