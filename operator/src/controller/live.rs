//! Directives of `spec.config` that Redis takes while it runs (`CONFIG SET`). All others reach a pod only when it is replaced.
//!
//! What running nodes have taken goes into redis.conf afterwards, for restarts: a value that Redis refuses would keep every pod
//! that restarts from starting. A directive that is removed from the spec gets its default by replacing pods, since Redis cannot
//! be asked for it: [`Record`] remembers that there was one.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{crd::RedisCluster, server::configure::Directives};

/// Annotation of the ConfigMap: the [`Record`].
pub const RECORD: &str = "cache.example.com/live-config";

/// What Redis 7.0 and later take by CONFIG SET, but for what the operator sets itself. A newer Redis may take more: what is not
/// here replaces pods, which is always right.
pub const LIVE: [&str; 95] = [
    "acllog-max-len",
    "active-defrag-cycle-max",
    "active-defrag-cycle-min",
    "active-defrag-ignore-bytes",
    "active-defrag-max-scan-fields",
    "active-defrag-threshold-lower",
    "active-defrag-threshold-upper",
    "active-expire-effort",
    "activedefrag",
    "activerehashing",
    "aof-rewrite-incremental-fsync",
    "aof-timestamp-enabled",
    "appendfsync",
    "auto-aof-rewrite-min-size",
    "auto-aof-rewrite-percentage",
    "busy-reply-threshold",
    "client-output-buffer-limit",
    "client-query-buffer-limit",
    "crash-log-enabled",
    "crash-memcheck-enabled",
    "dynamic-hz",
    "hash-max-listpack-entries",
    "hash-max-listpack-value",
    "hash-max-ziplist-entries",
    "hash-max-ziplist-value",
    "hll-sparse-max-bytes",
    "hz",
    "jemalloc-bg-thread",
    "latency-monitor-threshold",
    "latency-tracking",
    "latency-tracking-info-percentiles",
    "lazyfree-lazy-eviction",
    "lazyfree-lazy-expire",
    "lazyfree-lazy-server-del",
    "lazyfree-lazy-user-del",
    "lazyfree-lazy-user-flush",
    "lfu-decay-time",
    "lfu-log-factor",
    "list-compress-depth",
    "list-max-listpack-size",
    "list-max-ziplist-size",
    "loglevel",
    "lua-time-limit",
    "maxclients",
    "maxmemory",
    "maxmemory-clients",
    "maxmemory-eviction-tenacity",
    "maxmemory-policy",
    "maxmemory-samples",
    "min-replicas-max-lag",
    "min-replicas-to-write",
    "min-slaves-max-lag",
    "min-slaves-to-write",
    "no-appendfsync-on-rewrite",
    "notify-keyspace-events",
    "proc-title-template",
    "propagation-error-behavior",
    "proto-max-bulk-len",
    "rdb-save-incremental-fsync",
    "rdbcompression",
    "repl-backlog-size",
    "repl-backlog-ttl",
    "repl-disable-tcp-nodelay",
    "repl-diskless-load",
    "repl-diskless-sync",
    "repl-diskless-sync-max-replicas",
    "repl-ping-replica-period",
    "repl-ping-slave-period",
    "repl-timeout",
    "replica-ignore-disk-write-errors",
    "replica-ignore-maxmemory",
    "replica-lazy-flush",
    "replica-priority",
    "replica-serve-stale-data",
    "sanitize-dump-payload",
    "set-max-intset-entries",
    "shutdown-on-sigint",
    "shutdown-on-sigterm",
    "shutdown-timeout",
    "slave-ignore-maxmemory",
    "slave-lazy-flush",
    "slave-priority",
    "slave-serve-stale-data",
    "slowlog-log-slower-than",
    "slowlog-max-len",
    "stop-writes-on-bgsave-error",
    "stream-node-max-bytes",
    "stream-node-max-entries",
    "tcp-keepalive",
    "timeout",
    "tracking-table-max-keys",
    "zset-max-listpack-entries",
    "zset-max-listpack-value",
    "zset-max-ziplist-entries",
    "zset-max-ziplist-value",
];

/// Whether Redis takes the directive while it runs.
pub fn is_live(directive: &str) -> bool {
    LIVE.binary_search(&directive).is_ok()
}

/// The directives of the spec that running nodes are given.
pub fn wanted(cluster: &RedisCluster) -> Directives {
    let live = cluster.spec.config.iter().filter(|(directive, _)| is_live(directive));
    live.map(|(directive, value)| (directive.clone(), argument(value))).collect()
}

/// The directives of the spec that a pod gets when it starts, and not later.
pub fn at_start(cluster: &RedisCluster) -> BTreeMap<&str, &str> {
    let config = cluster.spec.config.iter().filter(|(directive, _)| !is_live(directive));
    config.map(|(directive, value)| (directive.as_str(), value.as_str())).collect()
}

/// Equal for equal directives, to remember which node was given what.
pub fn hash(directives: &Directives) -> String {
    let mut hash = Sha256::new();
    for (directive, value) in directives {
        hash.update(format!("{} {directive} {value}\n", value.len()));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is known of directives that were given to running nodes: their names, and how often one was removed since. A pod that
/// started before the last removal may still have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Directives that nodes may have been given.
    names: BTreeSet<String>,
    /// Part of the hash of what pods should have.
    #[serde(default)]
    pub removals: u64,
}

impl Record {
    /// As the ConfigMap should have it.
    pub fn next(cluster: &RedisCluster, found: Option<&ConfigMap>) -> Self {
        let names: BTreeSet<String> = wanted(cluster).into_keys().collect();
        let Some(before) = found.and_then(Self::of) else { return Self { names, removals: 0 } };
        let removed = before.names.iter().any(|name| !names.contains(name));
        Self { names, removals: before.removals + u64::from(removed) }
    }

    /// As the ConfigMap has it. One that was damaged is made anew, as for a ConfigMap of release 0.5.
    pub fn of(found: &ConfigMap) -> Option<Self> {
        serde_json::from_str(found.annotations().get(RECORD)?).ok()
    }

    /// Whether all these are in it. Nothing is given to a node before: it could not be taken back.
    pub fn covers(&self, directives: &Directives) -> bool {
        directives.keys().all(|name| self.names.contains(name))
    }

    /// The text of the annotation.
    pub fn text(&self) -> String {
        serde_json::json!({"names": self.names, "removals": self.removals}).to_string()
    }
}

/// The lines of a redis.conf for these directives, as they were before: what running nodes have taken.
pub fn kept_lines<'a>(found: &'a str, wanted: &'a Directives) -> impl Iterator<Item = &'a str> {
    // The operator's own directives follow those of the user.
    let users = found.lines().take_while(|line| !line.starts_with("port "));
    users.filter(|line| line.split_once(' ').is_some_and(|(name, _)| wanted.contains_key(name)))
}

/// A value of redis.conf as the one argument that CONFIG SET takes: its words, without their quotes.
fn argument(value: &str) -> String {
    words(value).join(" ")
}

/// Splits by Redis' rules: words in quotes keep their spaces, and in double quotes a backslash takes the next character.
fn words(value: &str) -> Vec<String> {
    let mut words = vec![];
    let mut letters = value.chars().peekable();
    loop {
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        if letters.peek().is_none() {
            return words;
        }
        let mut word = String::new();
        while let Some(letter) = letters.next_if(|letter| !letter.is_whitespace()) {
            match letter {
                '"' => quoted(&mut letters, &mut word),
                '\'' => {
                    while let Some(letter) = letters.next() {
                        match letter {
                            '\'' => break,
                            '\\' if letters.next_if_eq(&'\'').is_some() => word.push('\''),
                            letter => word.push(letter),
                        }
                    }
                }
                letter => word.push(letter),
            }
        }
        words.push(word);
    }
}

fn quoted(letters: &mut std::iter::Peekable<std::str::Chars<'_>>, word: &mut String) {
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return,
            '\\' => match letters.next() {
                Some('n') => word.push('\n'),
                Some('r') => word.push('\r'),
                Some('t') => word.push('\t'),
                Some('b') => word.push('\u{8}'),
                Some('a') => word.push('\u{7}'),
                Some('x') => {
                    let digits: String = letters.clone().take(2).collect();
                    match u8::from_str_radix(&digits, 16) {
                        Ok(byte) if digits.len() == 2 => {
                            letters.nth(1);
                            word.push(byte.into());
                        }
                        _ => word.push('x'),
                    }
                }
                Some(other) => word.push(other),
                None => return,
            },
            letter => word.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::children::{Defaults, Live, config_map};

    fn cluster(config: Value) -> RedisCluster {
        let object = json!({
            "apiVersion": "cache.example.com/v1", "kind": "RedisCluster",
            "metadata": {"name": "rc", "namespace": "ns"}, "spec": {"size": 3, "config": config},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn the_list_can_be_searched() {
        assert!(LIVE.is_sorted());
        assert!(
            is_live("maxmemory") && !is_live("io-threads") && !is_live("appendonly") && !is_live("unknown")
        );
    }

    /// As redis.conf has it, and as CONFIG SET takes it.
    #[test]
    fn a_value_is_given_as_redis_would_read_it_from_its_file() {
        for (written, given) in [
            ("512mb", "512mb"),
            (r#""""#, ""),
            ("''", ""),
            ("normal 0 0  0", "normal 0 0 0"),
            (r#""{title} {listen-addr}""#, "{title} {listen-addr}"),
            (r#""a\"b\\c\x41""#, r#"a"b\cA"#),
            (r"'it\'s'", "it's"),
        ] {
            assert_eq!(argument(written), given, "{written}");
        }
    }

    /// Each is asked by the next: whether pods are to be replaced.
    #[test]
    fn removing_a_directive_counts_and_adding_or_changing_one_does_not() {
        let defaults = Defaults::default();
        let mut found: Option<ConfigMap> = None;
        let mut removals = vec![];
        for config in [
            json!({}),
            json!({"maxmemory": "1mb"}),
            json!({"maxmemory": "2mb", "timeout": "9"}),
            json!({"timeout": "9"}),
            json!({"timeout": "9"}),
            json!({"timeout": "9", "maxmemory": "1mb", "io-threads": "2"}),
            json!({"maxmemory": "1mb"}),
        ] {
            let cluster = cluster(config);
            removals.push(Record::next(&cluster, found.as_ref()).removals);
            found = Some(config_map(&cluster, &defaults, found.as_ref(), Live::Spec, true));
        }
        assert_eq!(removals, [0, 0, 0, 1, 1, 1, 2]);
    }

    #[test]
    fn what_was_not_recorded_is_given_to_no_node() {
        let old = cluster(json!({"timeout": "9"}));
        let record = Record::next(&old, None);
        assert!(record.covers(&wanted(&old)));
        assert!(!record.covers(&wanted(&cluster(json!({"timeout": "9", "maxmemory": "1mb"})))));
        let found = config_map(&old, &Defaults::default(), None, Live::Spec, true);
        assert_eq!(Record::of(&found), Some(record));
    }
}
