//! What becomes of an object that exists when OLM applies a manifest over it.
//!
//! OLM updates objects as a whole: what the manifest does not have is gone afterwards. So an object is kept only where the cluster has
//! nothing besides the manifest but what the API server or OLM adds again. Of kinds whose defaults are not known here, a field that only
//! the cluster has may be such a default: then the answer is [`Change::Unknown`].

use serde_json::{Value, json};

use super::api::known;
use super::patch::difference;
use super::preview::Change;

/// Kinds whose defaults [`is_default`] knows all.
const KNOWN: [&str; 12] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "CustomResourceDefinition",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PriorityClass",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
];

/// Labels and annotations that OLM, the control plane or kubectl writes.
const FOREIGN_KEYS: [&str; 5] =
    ["olm.", "operators.coreos.com/", "operatorframework.io/", "kubectl.kubernetes.io/", "openshift.io/"];

/// The patch that makes of an object of the cluster what OLM makes of it: the manifest, with what the API server, the control plane or
/// OLM writes again.
pub(super) fn patch(manifest: &Value, live: &Value) -> Value {
    let mut after = manifest.clone();
    carry_over(manifest["kind"].as_str().unwrap_or_default(), "", &mut after, live);
    after["metadata"] = live["metadata"].clone();
    for key in ["labels", "annotations"] {
        let mut all = entries(&manifest["metadata"][key]);
        all.extend(entries(&live["metadata"][key]).into_iter().filter(|(key, _)| is_foreign(key)));
        all.extend(entries(&manifest["metadata"][key]));
        after["metadata"][key] = if all.is_empty() { Value::Null } else { Value::Object(all) };
    }
    if let Some(owners) = manifest["metadata"].get("ownerReferences") {
        after["metadata"]["ownerReferences"] = owners.clone();
    }
    if let Some(status) = live.get("status") {
        after["status"] = status.clone();
    }
    difference(live, &after)
}

/// Puts what only the cluster has and [`is_default`] into the manifest.
fn carry_over(kind: &str, path: &str, manifest: &mut Value, live: &Value) {
    match (manifest, live) {
        (Value::Object(wanted), Value::Object(had)) => {
            for (key, had) in had {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match wanted.get_mut(key) {
                    Some(wanted) => carry_over(kind, &path, wanted, had),
                    None if is_default(kind, &path, had) => {
                        wanted.insert(key.clone(), had.clone());
                    }
                    None => {}
                }
            }
        }
        (Value::Array(wanted), Value::Array(had)) if wanted.len() == had.len() => {
            wanted.iter_mut().zip(had).for_each(|(wanted, had)| carry_over(kind, path, wanted, had));
        }
        _ => {}
    }
}

/// Compares a manifest with the object of the cluster that it replaces.
pub(super) fn compare(manifest: &Value, live: &Value) -> Change {
    let kind = manifest["kind"].as_str().unwrap_or_default();
    if kind == known::CSV.kind {
        // OLM leaves a ClusterServiceVersion that exists as it is.
        return Change::Keep;
    }
    let keys = |object: &Value| {
        object.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect::<Vec<_>>()
    };
    let fields = [keys(manifest), keys(live)].concat();
    let fields =
        fields.iter().filter(|key| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
    let of_fields = fields.map(|key| field(kind, key, manifest.get(key), live.get(key)));
    let of_metadata =
        ["labels", "annotations"].map(|key| texts(&manifest["metadata"][key], &live["metadata"][key]));
    of_fields.chain(of_metadata).max_by_key(|change| severity(*change)).unwrap_or(Change::Keep)
}

fn severity(change: Change) -> u8 {
    match change {
        Change::Keep => 0,
        Change::Unknown => 1,
        Change::Create | Change::Change => 2,
    }
}

/// One field, `path` without the indices of lists.
fn field(kind: &str, path: &str, manifest: Option<&Value>, live: Option<&Value>) -> Change {
    match (manifest, live) {
        (Some(Value::Object(wanted)), Some(Value::Object(had))) => {
            let keys = wanted.keys().chain(had.keys().filter(|key| !wanted.contains_key(*key)));
            let all = keys.map(|key| field(kind, &format!("{path}.{key}"), wanted.get(key), had.get(key)));
            all.max_by_key(|change| severity(*change)).unwrap_or(Change::Keep)
        }
        (Some(Value::Array(wanted)), Some(Value::Array(had))) if wanted.len() == had.len() => {
            let all = wanted.iter().zip(had).map(|(wanted, had)| field(kind, path, Some(wanted), Some(had)));
            all.max_by_key(|change| severity(*change)).unwrap_or(Change::Keep)
        }
        (Some(wanted), Some(had)) if wanted == had => Change::Keep,
        // The API server leaves out what is empty, and encodes `stringData` into `data`.
        (Some(_), None) if path == "stringData" => Change::Unknown,
        (Some(one), None) | (None, Some(one)) if is_empty(one) => Change::Keep,
        (None, Some(had)) if is_default(kind, path, had) => Change::Keep,
        (None, Some(_)) if !KNOWN.contains(&kind) => Change::Unknown,
        _ => Change::Change,
    }
}

/// Labels or annotations. Those of OLM and of the control plane are written again.
fn texts(manifest: &Value, live: &Value) -> Change {
    let (wanted, had) = (entries(manifest), entries(live));
    let changed = wanted.iter().any(|(key, value)| had.get(key) != Some(value));
    let lost = had.keys().any(|key| !wanted.contains_key(key) && !is_foreign(key));
    if changed || lost { Change::Change } else { Change::Keep }
}

fn entries(value: &Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn is_foreign(key: &str) -> bool {
    FOREIGN_KEYS.iter().any(|prefix| key.starts_with(prefix))
}

/// Whether the API server gives a field this value where a manifest has none, or OLM carries it over.
fn is_default(kind: &str, path: &str, value: &Value) -> bool {
    match (kind, path) {
        ("CustomResourceDefinition", "spec.conversion") => *value == json!({"strategy": "None"}),
        ("CustomResourceDefinition", "spec.names.singular" | "spec.names.listKind") => true,
        ("CustomResourceDefinition", "spec.conversion.webhook.clientConfig.service.port") => *value == 443,
        ("RoleBinding" | "ClusterRoleBinding", "subjects.apiGroup" | "roleRef.apiGroup") => true,
        ("Secret", "type") => value == "Opaque",
        ("ServiceAccount", "secrets" | "imagePullSecrets") => true,
        ("PriorityClass", "preemptionPolicy") => value == "PreemptLowerPriority",
        ("NetworkPolicy", "spec.policyTypes") => true,
        ("NetworkPolicy" | "Service", _) if path.ends_with("ports.protocol") => value == "TCP",
        ("Service", "spec.type") => value == "ClusterIP",
        ("Service", "spec.sessionAffinity") => value == "None",
        ("Service", "spec.internalTrafficPolicy" | "spec.externalTrafficPolicy") => value == "Cluster",
        (
            "Service",
            "spec.clusterIP"
            | "spec.clusterIPs"
            | "spec.ipFamilies"
            | "spec.ipFamilyPolicy"
            | "spec.allocateLoadBalancerNodePorts"
            | "spec.healthCheckNodePort"
            | "spec.ports.targetPort"
            | "spec.ports.nodePort",
        ) => true,
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        Value::Number(_) | Value::Bool(true) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::patch::merge;
    use super::*;

    /// What happens when the second is applied over the first, and the reverse.
    #[track_caller]
    fn check(kind: &str, old: Value, new: Value, expected: [Change; 2]) {
        let object = |rest: &Value| {
            let mut object = json!({"kind": kind, "metadata": {"name": "a"}});
            object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            object
        };
        let (old, new) = (object(&old), object(&new));
        assert_eq!([compare(&new, &old), compare(&old, &new)], expected);
        for (manifest, live) in [(&new, &old), (&old, &new)] {
            let mut after = live.clone();
            merge(&mut after, &patch(manifest, live));
            assert_eq!(compare(manifest, &after), Change::Keep, "{after}");
        }
    }

    #[test]
    fn what_only_the_cluster_has_is_removed() {
        use super::Change::{Change, Keep, Unknown};
        check(
            "ConfigMap",
            json!({"data": {"a": "1", "b": "2"}}),
            json!({"data": {"a": "1"}}),
            [Change, Change],
        );
        check(
            "ConfigMap",
            json!({"metadata": {"name": "a", "labels": {"x": "y", "olm.managed": "true"}}}),
            json!({}),
            [Change, Change],
        );
        check(
            "ConfigMap",
            json!({"metadata": {"labels": {"olm.managed": "true"}}}),
            json!({}),
            [Keep, Change],
        );
        let rule = |resource: &str| json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]});
        check(
            "ClusterRole",
            json!({"rules": [rule("pods"), rule("secrets")]}),
            json!({"rules": [rule("pods")]}),
            [Change, Change],
        );
        check("Kettle", json!({"spec": {"a": 1, "b": 2}}), json!({"spec": {"a": 1}}), [Unknown, Change]);
    }

    #[test]
    fn what_the_server_adds_is_kept() {
        use super::Change::{Change, Keep};
        let crd = |names: Value, more: Value| {
            let mut spec = json!({"names": names, "versions": [{"name": "v1", "schema": {"properties": {"status": {"type": "object"}}}}]});
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "spec": spec })
        };
        let small = crd(json!({"kind": "A", "plural": "as"}), json!({}));
        let served = crd(
            json!({"kind": "A", "plural": "as", "singular": "a", "listKind": "AList"}),
            json!({"conversion": {"strategy": "None"}, "preserveUnknownFields": false}),
        );
        check("CustomResourceDefinition", served.clone(), small.clone(), [Keep, Change]);
        let webhook =
            crd(json!({"kind": "A", "plural": "as"}), json!({"conversion": {"strategy": "Webhook"}}));
        check("CustomResourceDefinition", webhook, small.clone(), [Change, Change]);
        // A field of a schema may be called like one of the object's own.
        let mut other = small.clone();
        other["spec"]["versions"][0]["schema"]["properties"]["status"]["type"] = json!("string");
        check("CustomResourceDefinition", small, other, [Change, Change]);
        check(
            "Service",
            json!({"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}}),
            json!({"spec": {"ports": [{"port": 80}]}}),
            [Keep, Change],
        );
        check("ServiceAccount", json!({"secrets": [{"name": "a-token"}]}), json!({}), [Keep, Change]);
    }
}
