//! `maxmemory` of a cluster that has a memory limit, and no `maxmemory` in `spec.config`: [`SHARE`] of the limit.
//!
//! Without it, a Redis that grows is killed at the limit (OOMKilled); with it, Redis evicts keys or refuses writes before that. A
//! node that uses more already would do so at once, so it is left as it is, and its pod is named in the condition UpdatePending.

use k8s_openapi::api::core::v1::ConfigMap;

use crate::{
    crd::RedisCluster,
    plan::{Observed, Pod},
    quantity::bytes,
    server::configure::Directives,
};

/// The part of the limit that is for keys, in percent. The rest is for what Redis does not count: buffers of replicas and clients,
/// fragmentation, and pages that change while a child writes a file.
pub const SHARE: u64 = 75;

/// The directive.
const DIRECTIVE: &str = "maxmemory";

/// `maxmemory` in bytes, if it follows from the limit.
pub fn maxmemory(cluster: &RedisCluster) -> Option<u64> {
    let spec = &cluster.spec;
    let limit = spec.resources.as_ref().and_then(|resources| resources.limits.get("memory"));
    let bytes = limit.filter(|_| !spec.config.contains_key(DIRECTIVE)).and_then(|limit| bytes(&limit.0));
    bytes.map(|bytes| bytes / 100 * SHARE).filter(|bytes| *bytes > 0)
}

/// The line of redis.conf.
pub fn line(cluster: &RedisCluster) -> String {
    maxmemory(cluster).map_or_else(String::new, |bytes| format!("{DIRECTIVE} {bytes}\n"))
}

/// The directive as running nodes get it.
pub fn directives(maxmemory: u64) -> Directives {
    Directives::from([(DIRECTIVE.to_owned(), maxmemory.to_string())])
}

/// The nodes that do not have it.
#[derive(Debug, Default)]
pub struct Lacking<'a> {
    /// They can have it.
    pub ready: Vec<&'a Pod>,
    /// They use more memory.
    pub above: Vec<&'a Pod>,
}

/// The nodes that responded and do not have it.
pub fn lacking(maxmemory: u64, observed: &Observed) -> Lacking<'_> {
    let nodes = observed.pods.iter().filter_map(|pod| Some((pod, pod.redis.as_ref()?.memory)));
    let nodes = nodes.filter(|(_, (_, limit))| *limit != maxmemory);
    let mut lacking = Lacking::default();
    for (pod, (used, limit)) in nodes {
        let lowers = limit == 0 || limit > maxmemory;
        if lowers && used > maxmemory { lacking.above.push(pod) } else { lacking.ready.push(pod) }
    }
    lacking
}

/// Whether redis.conf has the directive: it did before, or every node responds and has room for it. A node that restarts with less
/// memory than it needs would refuse writes.
pub fn goes_to_file(cluster: &RedisCluster, found: Option<&ConfigMap>, observed: &Observed) -> bool {
    let Some(maxmemory) = maxmemory(cluster) else { return false };
    let Some(found) = found else { return true };
    let conf = found.data.as_ref().and_then(|data| data.get("redis.conf"));
    let had = conf.is_some_and(|conf| conf.lines().any(|line| line.starts_with("maxmemory ")));
    let all = observed.pods.iter().all(|pod| pod.redis.is_some());
    had || all && !observed.pods.is_empty() && lacking(maxmemory, observed).above.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cluster(limit: Value, config: Value) -> RedisCluster {
        let object = json!({
            "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": {"name": "rc"},
            "spec": {"size": 3, "resources": {"limits": limit}, "config": config},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn it_follows_from_the_limit_alone() {
        let check = |limit: Value, config: Value, expected: Option<u64>| {
            assert_eq!(maxmemory(&cluster(limit.clone(), config.clone())), expected, "{limit} {config}");
        };
        let none = || json!({});
        check(json!({"memory": "1Gi"}), none(), Some((1 << 30) / 100 * 75));
        check(json!({"memory": "1G"}), none(), Some(750_000_000));
        check(json!({"memory": "100e6"}), none(), Some(75_000_000));
        check(json!({"memory": "1000"}), none(), Some(750));
        check(json!({"memory": "0"}), none(), None);
        check(json!({"cpu": "1"}), none(), None);
        check(json!({"memory": "1Gi"}), json!({"maxmemory": "100mb"}), None);
        check(json!({"memory": "1Gi"}), json!({"maxmemory": "0"}), None);
        check(
            json!({"memory": "1Gi"}),
            json!({"maxmemory-policy": "allkeys-lru"}),
            Some((1 << 30) / 100 * 75),
        );
    }

    /// Used memory and limit of each node, and whether it gets 100 bytes.
    #[test]
    fn a_node_that_uses_more_is_left_as_it_is() {
        let check = |used: u64, limit: u64, expected: &str| {
            let info = format!("used_memory:{used}\nmaxmemory:{limit}");
            let table = format!("{} :0@0 myself,master - 0 0 0 connected", "0".repeat(40));
            let redis = crate::server::parse::node(&table, "", &info, 0).ok();
            let observed = Observed { pods: vec![Pod { redis, ..Pod::default() }], ..Observed::default() };
            let lacking = lacking(100, &observed);
            let found = match (lacking.ready.len(), lacking.above.len()) {
                (0, 0) => "has it",
                (1, 0) => "gets it",
                (0, 1) => "is above",
                _ => "",
            };
            assert_eq!(found, expected, "{used} of {limit}");
        };
        check(90, 100, "has it");
        check(110, 100, "has it");
        check(100, 0, "gets it");
        check(101, 0, "is above");
        check(101, 200, "is above");
        check(90, 200, "gets it");
        check(110, 50, "gets it");
    }
}
