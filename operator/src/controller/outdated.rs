//! Which pods are outdated: their hash of what the spec wants is not that of today, so they are replaced.

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, Container, Pod},
};
use kube::ResourceExt;
use serde_json::json;

use super::{
    children,
    intent::{INTENT, intent},
    names::Names,
};
use crate::crd::RedisCluster;

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

/// Whether a pod has another template than the spec wants. `adopted` is the annotation of its StatefulSet.
pub fn is_outdated(cluster: &RedisCluster, removals: u64, adopted: Option<&String>, pod: &Pod) -> bool {
    match pod.annotations().get(INTENT).or(adopted) {
        Some(found) if *found != intent(cluster, removals) => true,
        Some(_) if pod.annotations().contains_key(INTENT) => false,
        _ => !fits(cluster, pod),
    }
}

/// Whether a pod has the passwords as files. One of release 0.5 or older has only those with which its container started, so it is
/// outdated while the password changes.
pub fn has_password_files(pod: &Pod) -> bool {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.into_iter().any(|volume| volume.name == children::PASSWORD_FILES)
}

/// Whether a pod of release 0.5 or older, which has no hash and no exporter, has the image, resources and Secret that the spec wants.
fn fits(cluster: &RedisCluster, pod: &Pod) -> bool {
    if cluster.spec.exporter.is_some() {
        return false;
    }
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
    use std::collections::BTreeMap;

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
        assert!(!has_password_files(&pod(&template)));
        assert!(has_password_files(&made_from(&cluster(json!({"size": 3})))));
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
    fn what_replaces_pods_with_an_exporter() {
        let with = |exporter: Value| cluster(json!({"size": 3, "exporter": exporter}));
        let pod = made_from(&with(json!({"image": "exporter:1", "resources": {"limits": {"cpu": "1"}}})));
        let replaces = |exporter: Value| is_outdated(&with(exporter), 0, None, &pod);
        assert!(replaces(json!({"image": "exporter:2", "resources": {"limits": {"cpu": "1"}}})));
        assert!(replaces(json!({"image": "exporter:1", "resources": {"limits": {"cpu": "2"}}})));
        assert!(replaces(json!({"image": "exporter:1"})) && replaces(Value::Null));
        assert!(!replaces(json!({"image": "exporter:1", "resources": {"limits": {"cpu": "1000m"}}})));
    }

    /// Also if it is wanted before the operator first saw them.
    #[test]
    fn pods_of_release_0_5_0_get_an_exporter() {
        let template: Value =
            serde_json::from_str(include_str!("../../tests/pod-template-0.5.0.json")).unwrap();
        let spec = json!({"size": 3, "storage": {"size": "1Gi"}, "exporter": {}});
        assert!(is_outdated(&cluster(spec), 0, None, &pod(&template)));
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
        assert!(replaces("pods", json!({"imagePullSecrets": [{"name": "registry"}]})));
        assert!(replaces("exporter", json!({})));
        assert!(!replaces("size", json!(5)));
        assert!(!replaces("storage", json!({"size": "2Gi"})));
        assert!(!replaces("paused", json!(true)));
        assert!(!replaces("update", json!({"strategy": "Supervised"})));
    }
}
