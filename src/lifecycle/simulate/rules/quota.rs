//! What a ResourceQuota keeps a Deployment from: pods that it does not admit are not created.

use serde_json::Value;

use super::super::store::Store;
use crate::lifecycle::api::{Key, known};

/// What the API server says when it refuses the pods of a Deployment because of a quota of the namespace (Kubernetes
/// `plugin/pkg/admission/resourcequota`): a quota of processors or memory wants every container to name them, and one of pods counts
/// those that run.
pub(super) fn refusal(store: &Store, deployment: &Value) -> Option<String> {
    let key = Key::of(deployment);
    let pods = format!("pods \"{}-\" is forbidden: ", key.name);
    store.list(&known::RESOURCE_QUOTA, Some(&key.namespace)).find_map(|quota| {
        let name = Key::of(quota).name;
        let hard = quota.pointer("/spec/hard")?;
        if let Some(missing) = unnamed(hard, deployment) {
            return Some(format!("{pods}failed quota: {name}: must specify {missing}"));
        }
        let limit: u64 = hard["pods"].as_str()?.parse().ok()?;
        let others = store.list(&known::DEPLOYMENT, Some(&key.namespace));
        let running = others.filter_map(|one| one.pointer("/status/replicas")?.as_u64());
        let (used, wanted) = (running.sum::<u64>(), replicas(deployment));
        let own = deployment.pointer("/status/replicas").and_then(Value::as_u64).unwrap_or(0);
        (used - own.min(used) + wanted > limit).then(|| {
            format!(
                "{pods}exceeded quota: {name}, requested: pods=1, used: pods={used}, limited: pods={limit}"
            )
        })
    })
}

fn replicas(deployment: &Value) -> u64 {
    deployment.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1)
}

/// The first resource that a quota limits and a container does not name, with the container.
fn unnamed(hard: &Value, deployment: &Value) -> Option<String> {
    const NAMED: [(&str, &str); 4] = [
        ("limits.cpu", "/resources/limits/cpu"),
        ("limits.memory", "/resources/limits/memory"),
        ("requests.cpu", "/resources/requests/cpu"),
        ("requests.memory", "/resources/requests/memory"),
    ];
    let containers = deployment.pointer("/spec/template/spec/containers")?.as_array()?;
    NAMED.iter().filter(|(limit, _)| !hard[*limit].is_null()).find_map(|(limit, path)| {
        // A container with a limit alone requests as much.
        let same = path.replace("requests", "limits");
        let lacks = |one: &&Value| one.pointer(path).is_none() && one.pointer(&same).is_none();
        let container = containers.iter().find(lacks)?;
        Some(format!("{limit} for: {}", container["name"].as_str().unwrap_or("")))
    })
}
