//! `maxmemory` of a cluster that has a memory limit, and no `maxmemory` in `spec.config`: [`SHARE`] of the limit.
//!
//! Without it, a Redis that grows is killed at the limit (OOMKilled); with it, Redis evicts keys or refuses writes before that. A
//! node that uses more already would do so at once, so it is left as it is, and its pod is named in the condition UpdatePending.

use k8s_openapi::api::core::v1::ConfigMap;

use crate::{
    crd::RedisCluster,
    plan::{Node, Observed, Pod},
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
    /// They use more memory, or another node of their shard does.
    pub above: Vec<&'a Pod>,
}

/// The nodes that responded and do not have it. A replica holds, as soon as it is in sync, what its primary does, so it is not
/// limited while that does not respond.
pub fn lacking(maxmemory: u64, observed: &Observed) -> Lacking<'_> {
    let nodes = || observed.pods.iter().filter_map(|pod| Some((pod, pod.redis.as_ref()?)));
    let shard = |node: &Node| node.primary().unwrap_or(node.id);
    let mut lacking = Lacking::default();
    for (pod, node) in nodes().filter(|(_, node)| node.memory.1 != maxmemory) {
        let limit = node.memory.1;
        if limit != 0 && limit < maxmemory {
            lacking.ready.push(pod);
            continue;
        }
        let copies = || nodes().map(|(_, copy)| copy).filter(|copy| shard(copy) == shard(node));
        if copies().any(|copy| copy.memory.0 > maxmemory) {
            lacking.above.push(pod);
        } else if copies().any(|copy| copy.primary().is_none()) {
            lacking.ready.push(pod);
        }
    }
    lacking
}

/// Whether redis.conf gets the directive: every node responds and has room for it. A node that restarts with less memory than it
/// needs would refuse writes.
pub fn goes_to_file(cluster: &RedisCluster, found: Option<&ConfigMap>, observed: &Observed) -> bool {
    let Some(maxmemory) = maxmemory(cluster) else { return false };
    let all = observed.pods.iter().all(|pod| pod.redis.is_some());
    found.is_none() || all && !observed.pods.is_empty() && lacking(maxmemory, observed).above.is_empty()
}

/// The line that redis.conf has until then: the one that it had.
pub fn kept_line(cluster: &RedisCluster, found: Option<&ConfigMap>) -> String {
    let conf = found.and_then(|found| found.data.as_ref()?.get("redis.conf"));
    let mut lines = conf.into_iter().flat_map(|conf| conf.lines());
    let line = lines.rfind(|line| line.split(' ').next() == Some(DIRECTIVE));
    line.filter(|_| maxmemory(cluster).is_some()).map_or_else(String::new, |line| format!("{line}\n"))
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

    /// A node that uses so much of its limit.
    fn pod(role: &str, used: u64, limit: u64) -> Pod {
        let id = |digit: &str| digit.repeat(40);
        let own = if role == "master" { "master -".into() } else { format!("slave {}", id("0")) };
        let table =
            format!("{} :0@0 myself,{own} 0 0 0 connected", id(if role == "master" { "0" } else { "1" }));
        let info = format!("used_memory:{used}\nmaxmemory:{limit}");
        let redis = crate::server::parse::node(&table, "", &info, 0).ok();
        Pod { name: role.into(), redis, ..Pod::default() }
    }

    /// One that took over would refuse writes.
    #[test]
    fn a_replica_is_limited_as_its_primary_is() {
        let check = |pods: Vec<Pod>, ready: &[&str], above: &[&str]| {
            let observed = Observed { pods, ..Observed::default() };
            let lacking = lacking(100, &observed);
            let names = |pods: &[&Pod]| pods.iter().map(|pod| pod.name.clone()).collect::<Vec<_>>();
            assert_eq!((names(&lacking.ready), names(&lacking.above)), (names_of(ready), names_of(above)));
        };
        fn names_of(names: &[&str]) -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        }
        check(vec![pod("master", 90, 0), pod("slave", 1, 0)], &["master", "slave"], &[]);
        check(vec![pod("master", 110, 0), pod("slave", 1, 0)], &[], &["master", "slave"]);
        check(vec![pod("master", 90, 0), pod("slave", 110, 0)], &[], &["master", "slave"]);
        check(vec![pod("slave", 1, 0)], &[], &[]);
        check(vec![pod("slave", 1, 50)], &["slave"], &[]);
    }

    #[test]
    fn redis_conf_keeps_its_line_while_nodes_use_more() {
        let map = |conf: &str| {
            let data = [("redis.conf".to_owned(), conf.to_owned())];
            ConfigMap { data: Some(data.into()), ..ConfigMap::default() }
        };
        let small = cluster(json!({"memory": "1000"}), json!({}));
        let check = |conf: &str, used: u64, goes: bool, kept: &str| {
            let observed = Observed { pods: vec![pod("master", used, 900)], ..Observed::default() };
            let found = map(conf);
            assert_eq!(goes_to_file(&small, Some(&found), &observed), goes);
            assert_eq!(kept_line(&small, Some(&found)), kept);
        };
        check("hz 10\nmaxmemory 900\n", 700, true, "maxmemory 900\n");
        check("hz 10\nmaxmemory 900\n", 800, false, "maxmemory 900\n");
        check("maxmemory 900b\nmaxmemory-policy noeviction\n", 800, false, "maxmemory 900b\n");
        check("hz 10\n", 800, false, "");
        let unlimited = cluster(json!({}), json!({}));
        assert_eq!(kept_line(&unlimited, Some(&map("maxmemory 900\n"))), "");
        assert!(goes_to_file(&small, None, &Observed::default()));
    }

    /// Used memory and limit of each node, and whether it gets 100 bytes.
    #[test]
    fn a_node_that_uses_more_is_left_as_it_is() {
        let check = |used: u64, limit: u64, expected: &str| {
            let observed = Observed { pods: vec![pod("master", used, limit)], ..Observed::default() };
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
