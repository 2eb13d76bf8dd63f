//! What the spec wants of each pod, as one hash in the annotation [`INTENT`] of the pod template: a pod with another one is
//! outdated, and is replaced.
//!
//! Directives that Redis takes while it runs are not part of it. Only what users write counts: a new release of the operator that
//! changes the template otherwise must not replace pods. They get its template whenever they are replaced for another reason.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        core::v1::{ConfigMap, Container, Pod},
    },
    apimachinery::pkg::api::resource::Quantity,
};
use kube::ResourceExt;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    children::{self, Names},
    live,
};
use crate::crd::RedisCluster;

/// Annotation of the pod template and its pods.
pub const INTENT: &str = "cache.example.com/intent";

/// Annotation of a StatefulSet that release 0.5 or older made: the hash of its spec when a later release first saw it. Pods from
/// before that have no hash of their own.
pub const ADOPTED: &str = "cache.example.com/adopted-intent";

/// The annotation [`ADOPTED`]: of the StatefulSet, or of the ConfigMap, which keeps it when the StatefulSet is made anew.
pub fn annotated<'a>(set: Option<&'a StatefulSet>, config: Option<&'a ConfigMap>) -> Option<&'a String> {
    let own = set.and_then(|set| set.annotations().get(ADOPTED));
    own.or_else(|| config?.annotations().get(ADOPTED))
}

/// What the annotation [`ADOPTED`] of a StatefulSet should be.
pub fn adopted(cluster: &RedisCluster, removals: u64, found: &StatefulSet) -> Option<String> {
    let template = found.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
    let annotations = template.and_then(|metadata| metadata.annotations.as_ref());
    let hashed = annotations.is_some_and(|annotations| annotations.contains_key(INTENT));
    found.annotations().get(ADOPTED).cloned().or_else(|| (!hashed).then(|| intent(cluster, removals)))
}

/// The hash of what the spec wants of each pod, with the number of directives that were removed from running nodes' configuration.
pub fn intent(cluster: &RedisCluster, removals: u64) -> String {
    let spec = &cluster.spec;
    let resources = spec.resources.clone().unwrap_or_default();
    let (secret, key) = Names::of(cluster).auth;
    // Every word that is here is part of all hashes: changing one replaces the pods of all clusters.
    let mut wanted = BTreeMap::from([
        ("image", json!(spec.image)),
        ("config", json!(live::at_start(cluster))),
        ("requests", json!(quantities(&resources.requests))),
        ("limits", json!(quantities(&resources.limits))),
        ("auth", json!([secret, key])),
    ]);
    if removals > 0 {
        wanted.insert("removals", json!(removals));
    }
    let hash = Sha256::digest(json!(wanted).to_string());
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Equal for equal amounts: `1` and `1000m`.
fn quantities(map: &BTreeMap<String, Quantity>) -> BTreeMap<&str, String> {
    let text = |quantity: &Quantity| {
        children::amount(&quantity.0).map_or_else(|| quantity.0.clone(), |amount| amount.to_string())
    };
    map.iter().map(|(name, quantity)| (name.as_str(), text(quantity))).collect()
}

/// Whether a pod has another template than the spec wants. `adopted` is the annotation of its StatefulSet.
pub fn is_outdated(cluster: &RedisCluster, removals: u64, adopted: Option<&String>, pod: &Pod) -> bool {
    match pod.annotations().get(INTENT).or(adopted) {
        Some(found) if *found != intent(cluster, removals) => true,
        Some(_) if pod.annotations().contains_key(INTENT) => false,
        _ => !fits(cluster, pod),
    }
}

/// Whether a pod of release 0.5 or older, which has no hash, has the image, resources and Secret that the spec wants.
fn fits(cluster: &RedisCluster, pod: &Pod) -> bool {
    let wanted = children::container(cluster, &Names::of(cluster), &children::Defaults::default());
    let containers = pod.spec.as_ref().map(|spec| &spec.containers);
    let Some(found) = containers.into_iter().flatten().find(|container| container.name == wanted.name) else {
        return false;
    };
    let password = |container: &Container| {
        let variables = container.env.iter().flatten();
        variables.clone().find(|one| one.name == children::PASSWORD).and_then(|one| one.value_from.clone())
    };
    // The API server adds defaults of the namespace to resources.
    let resources = |container: &Container| json!(container.resources.clone().unwrap_or_default());
    found.image == wanted.image
        && password(found) == password(&wanted)
        && children::contains(&resources(&wanted), &resources(found))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::controller::{
        cache::prune_pod,
        children::{Defaults, stateful_set},
    };

    fn cluster(spec: Value) -> RedisCluster {
        let object = json!({
            "apiVersion": "cache.example.com/v1", "kind": "RedisCluster",
            "metadata": {"name": "rc", "namespace": "ns"}, "spec": spec,
        });
        serde_json::from_value(object).unwrap()
    }

    fn pod(template: &Value) -> Pod {
        let mut pod = json!({"metadata": {"name": "rc-0"}, "spec": template["spec"]});
        pod["metadata"]["annotations"] = template["metadata"]["annotations"].clone();
        // As the controller has it.
        let mut pod = serde_json::from_value(pod).unwrap();
        prune_pod(&mut pod);
        pod
    }

    fn made_from(cluster: &RedisCluster) -> Pod {
        let set = stateful_set(cluster, &Defaults::default(), 3, 0);
        pod(&serde_json::to_value(set.spec.unwrap().template).unwrap())
    }

    /// The hash of the same spec never changes: it would replace every pod of every cluster.
    #[test]
    fn a_new_release_of_the_operator_replaces_no_pod() {
        assert_eq!(intent(&cluster(json!({"size": 3, "image": "redis:7"})), 0), "d04852a17059d887");
        let full = json!({
            "size": 6, "replicasPerShard": 1, "image": "redis:7", "storage": {"size": "1Gi"},
            "config": {"maxmemory": "64mb", "io-threads": "2"}, "auth": {"secretName": "own", "key": "word"},
            "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
        });
        assert_eq!(intent(&cluster(full), 0), "7db1eec0c858a3ed");
    }

    /// The template of 0.5.0 has no hash. Its pods stay.
    #[test]
    fn pods_of_release_0_5_0_stay() {
        let template: Value =
            serde_json::from_str(include_str!("../../tests/pod-template-0.5.0.json")).unwrap();
        let of = |change: fn(&mut Value)| {
            let mut spec = json!({"size": 3, "storage": {"size": "1Gi"}});
            change(&mut spec);
            is_outdated(&cluster(spec), 0, None, &pod(&template))
        };
        assert!(!of(|_| {}));
        assert!(!of(|spec| spec["size"] = 5.into()));
        assert!(of(|spec| spec["image"] = "redis:8".into()));
        assert!(of(|spec| spec["resources"] = json!({"limits": {"memory": "1Gi"}})));
        assert!(of(|spec| spec["auth"] = json!({"secretName": "own"})));
    }

    /// What the spec was when a later release first saw them counts.
    #[test]
    fn pods_of_release_0_5_0_get_a_new_configuration() {
        let template: Value =
            serde_json::from_str(include_str!("../../tests/pod-template-0.5.0.json")).unwrap();
        let old = cluster(json!({"size": 3, "storage": {"size": "1Gi"}}));
        let mut set: StatefulSet =
            serde_json::from_value(json!({"metadata": {}, "spec": {"template": template}})).unwrap();
        set.metadata.annotations =
            adopted(&old, 0, &set).map(|hash| BTreeMap::from([(ADOPTED.to_owned(), hash)]));
        assert!(!is_outdated(&old, 0, set.annotations().get(ADOPTED), &pod(&template)));
        let config = json!({"size": 3, "storage": {"size": "1Gi"}, "config": {"io-threads": "2"}});
        let new = cluster(config);
        assert!(is_outdated(&new, 0, set.annotations().get(ADOPTED), &pod(&template)));
        assert_eq!(adopted(&new, 0, &set), Some(intent(&old, 0)), "it stays");
        assert_eq!(adopted(&new, 0, &stateful_set(&new, &Defaults::default(), 3, 0)), None);
    }

    #[test]
    fn what_replaces_pods() {
        let old = json!({
            "size": 3, "image": "redis:7", "config": {"io-threads": "2"}, "storage": {"size": "1Gi"},
            "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
        });
        let pod = made_from(&cluster(old.clone()));
        let replaces = |field: &str, value: Value| {
            let mut new = old.clone();
            new[field] = value;
            is_outdated(&cluster(new), 0, None, &pod)
        };
        assert!(replaces("image", json!("redis:8")));
        assert!(replaces("config", json!({"io-threads": "3"})));
        assert!(replaces("config", json!({})));
        assert!(
            !replaces("config", json!({"io-threads": "2", "maxmemory": "65mb"})),
            "Redis takes it while it runs"
        );
        assert!(replaces("resources", Value::Null), "what is no longer wanted is removed");
        assert!(!replaces(
            "resources",
            json!({"requests": {"cpu": "1000m"}, "limits": {"memory": "1024Mi"}})
        ));
        assert!(!replaces("size", json!(5)));
        assert!(!replaces("storage", json!({"size": "2Gi"})));
        assert!(!replaces("paused", json!(true)));
        assert!(!replaces("update", json!({"strategy": "Supervised"})));
    }
}
