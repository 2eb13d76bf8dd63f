//! Warnings about rendered objects, for those who apply them. operator-controller renders the same objects without a warning.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// Objects that are there twice, and objects without a name: each a sentence. `kubectl apply` takes the last of two alike and
/// refuses one without a name; kustomize and Helm refuse both.
///
/// ```
/// use olmkit_bundle::manifests::unsound;
/// let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
/// assert_eq!(unsound(&[map.clone(), map]), ["`ConfigMap/a` is in the bundle 2 times"]);
/// ```
pub fn unsound(objects: &[Json]) -> Vec<String> {
    let mut times: BTreeMap<[&str; 4], usize> = BTreeMap::new();
    for object in objects {
        let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
        let version = text("/apiVersion");
        // One object can be written at several versions of its group.
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let key = [group, text("/kind"), text("/metadata/namespace"), text("/metadata/name")];
        *times.entry(key).or_default() += 1;
    }
    let sentence = |([_, kind, _, name], count): ([&str; 4], usize)| match (name, count) {
        ("", 1) => Some(format!("an object of kind `{kind}` has no name")),
        ("", count) => Some(format!("{count} objects of kind `{kind}` have no name")),
        (_, 1) => None,
        (name, count) => Some(format!("`{kind}/{name}` is in the bundle {count} times")),
    };
    times.into_iter().filter_map(sentence).collect()
}

/// Whether the operator may use Leases in the namespace that it watches, and not in its own, where leader election keeps them.
pub fn lacks_own_leases(objects: &[Json], namespace: &str) -> bool {
    let is_about_leases = |object: &&Json| {
        object["rules"].as_array().into_iter().flatten().any(|rule| {
            let names = |key: &str, name: &str| {
                let mut listed = rule[key].as_array().into_iter().flatten().filter_map(Json::as_str);
                listed.any(|one| one == name || one == "*")
            };
            names("apiGroups", "coordination.k8s.io") && names("resources", "leases")
        })
    };
    let mut elsewhere = false;
    for object in objects.iter().filter(is_about_leases) {
        match (object["kind"].as_str(), object.pointer("/metadata/namespace").and_then(Json::as_str)) {
            (Some("Role"), Some(other)) if other != namespace => elsewhere = true,
            (Some("Role" | "ClusterRole"), _) => return false,
            _ => {}
        }
    }
    elsewhere
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_told_apart_by_group_kind_namespace_and_name() {
        let object = |version: &str, kind: &str, namespace: &str, name: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"namespace": namespace, "name": name}});
        let all = [
            object("v1", "Service", "a", "s"),
            object("v1", "Service", "b", "s"),
            object("serving.knative.dev/v1", "Service", "a", "s"),
            object("policy/v1", "PodDisruptionBudget", "a", "p"),
            object("policy/v1beta1", "PodDisruptionBudget", "a", "p"),
            object("v1", "ConfigMap", "a", ""),
        ];
        assert_eq!(
            unsound(&all),
            ["an object of kind `ConfigMap` has no name", "`PodDisruptionBudget/p` is in the bundle 2 times"]
        );
    }

    #[test]
    fn leases_are_looked_for_where_the_operator_runs() {
        let role = |kind: &str, namespace: &str, resources: &str| {
            json!({
                "kind": kind, "metadata": {"namespace": namespace},
                "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": [resources], "verbs": ["*"]}],
            })
        };
        let watched = role("Role", "shop", "leases");
        assert!(lacks_own_leases(std::slice::from_ref(&watched), "kitchen"));
        assert!(!lacks_own_leases(std::slice::from_ref(&watched), "shop"));
        assert!(!lacks_own_leases(&[watched.clone(), role("ClusterRole", "", "*")], "kitchen"));
        assert!(!lacks_own_leases(&[watched, role("Role", "kitchen", "leases")], "kitchen"));
        assert!(!lacks_own_leases(&[role("Role", "shop", "configmaps")], "kitchen"));
    }
}
