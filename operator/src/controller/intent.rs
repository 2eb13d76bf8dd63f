//! The hash of what the spec wants of each pod, in the annotation [`INTENT`] of the pod template.
//!
//! Directives that Redis takes while it runs are not part of it. Only what users write counts: a new release of the operator that
//! changes the template otherwise must not replace pods. They get its template whenever they are replaced for another reason.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{live, names::Names};
use crate::{
    crd::{RedisCluster, pods::Pods, v1::Resources},
    quantity::amount,
};

/// Annotation of the pod template and its pods.
pub const INTENT: &str = "cache.example.com/intent";

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
    // What was not there when the first hashes were made is in them only if it says something.
    if let Some(pods) = spec.pods.as_ref().filter(|pods| **pods != Pods::default()) {
        wanted.insert("pods", json!(pods));
    }
    if let Some(tls) = &spec.tls {
        wanted.insert("tls", json!(tls.secret_name));
    }
    if let Some(exporter) = &spec.exporter {
        let Resources { requests, limits } = exporter.resources.clone().unwrap_or_default();
        let resources = [quantities(&requests), quantities(&limits)];
        wanted.insert("exporter", json!([exporter.image, resources]));
    }
    if removals > 0 {
        wanted.insert("removals", json!(removals));
    }
    let hash = Sha256::digest(json!(wanted).to_string());
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Equal for equal amounts: `1` and `1000m`.
fn quantities(map: &BTreeMap<String, Quantity>) -> BTreeMap<&str, String> {
    let text = |quantity: &Quantity| {
        amount(&quantity.0).map_or_else(|| quantity.0.clone(), |amount| amount.to_string())
    };
    map.iter().map(|(name, quantity)| (name.as_str(), text(quantity))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn cluster(spec: Value) -> RedisCluster {
        let object = json!({
            "apiVersion": "cache.example.com/v1", "kind": "RedisCluster",
            "metadata": {"name": "rc", "namespace": "ns"}, "spec": spec,
        });
        serde_json::from_value(object).unwrap()
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
        let empty = json!({"size": 3, "image": "redis:7", "pods": {"tolerations": []}});
        assert_eq!(intent(&cluster(empty), 0), "d04852a17059d887");
    }
}
