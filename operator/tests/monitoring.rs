//! The alerts and the dashboard in `monitoring/`: they ask for series that the operator has, and each alert says what to do.
#![expect(clippy::unwrap_used, reason = "what the tests share is a test as well")]

use std::{collections::BTreeSet, fs};

use redis_operator::{
    controller::{children, status::CONDITIONS},
    metrics::{ClusterGauges, Metrics},
};
use serde_json::Value;

fn file(name: &str) -> String {
    fs::read_to_string(format!("{}/monitoring/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The series of an operator that did everything once.
fn series() -> String {
    let metrics = Metrics::default();
    let conditions = CONDITIONS.iter().map(|kind| ((*kind).to_owned(), true)).collect();
    metrics.cluster("ns", "rc", &ClusterGauges { conditions, ..ClusterGauges::default() });
    metrics.reconcile_started();
    metrics.reconcile_ended(Default::default(), Some("conflict"));
    metrics.phases([("Ready", 1)]);
    metrics.redis_command("PING", Default::default(), Some("timeout"));
    metrics.api_write("Pod");
    metrics.webhook("convert", Default::default(), "invalid");
    metrics.text()
}

/// The series of redis_exporter 1.88.0 that are used here, besides those of the operator.
const OF_THE_EXPORTER: [&str; 10] = [
    "redis_commands_processed_total",
    "redis_connected_clients",
    "redis_evicted_keys_total",
    "redis_keyspace_hits_total",
    "redis_keyspace_misses_total",
    "redis_master_link_up",
    "redis_memory_max_bytes",
    "redis_memory_used_bytes",
    "redis_rejected_connections_total",
    "redis_up",
];

/// Words of an expression that name a series.
fn names(expression: &str) -> BTreeSet<&str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("redis_")).collect()
}

/// The labels that an expression asks of series, such as `type="Available"`.
fn matchers(expression: &str) -> Vec<String> {
    let inside = expression.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let all = inside.flat_map(|(inside, _)| inside.split(',').map(str::to_owned).collect::<Vec<_>>());
    all.filter(|matcher| !matcher.contains("=~")).collect()
}

#[track_caller]
fn check(expression: &str) {
    let series = series();
    let names = names(expression);
    assert!(!names.is_empty(), "{expression}");
    for name in names.into_iter().filter(|name| !OF_THE_EXPORTER.contains(name)) {
        let has = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        assert!(series.lines().any(has), "{name}: no such series in\n{series}");
    }
    for matcher in matchers(expression) {
        assert!(series.contains(&matcher), "{matcher}: no such label in\n{series}");
    }
}

#[test]
fn every_alert_asks_for_series_that_exist_and_says_what_to_do() {
    let rule: Value = serde_saphyr::from_str(&file("prometheusrule.yaml")).unwrap();
    let mut alerts = BTreeSet::new();
    for alert in
        rule["spec"]["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap())
    {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        assert!(alerts.insert(text(&alert["alert"])), "{alert}");
        check(&text(&alert["expr"]));
        assert!(["critical", "warning"].contains(&&*text(&alert["labels"]["severity"])), "{alert}");
        for annotation in ["summary", "runbook"] {
            assert!(text(&alert["annotations"][annotation]).len() > 20, "{annotation} of {alert}");
        }
    }
    assert_eq!(alerts.len(), 15);
}

#[test]
fn every_panel_shows_series_that_exist() {
    let dashboard: Value = serde_json::from_str(&file("grafana-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(!panels.is_empty());
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap()) {
        check(target["expr"].as_str().unwrap());
    }
}

/// The port and the labels of the Deployment of this release.
#[test]
fn the_pod_monitor_finds_the_operator() {
    let monitor: Value = serde_saphyr::from_str(&file("podmonitor.yaml")).unwrap();
    let deployment = redis_operator::manifests::manifests(&Default::default())
        .unwrap()
        .into_iter()
        .find(|manifest| manifest.path == "install/deployment.yaml")
        .unwrap();
    let deployment: Value = serde_saphyr::from_str(&deployment.yaml).unwrap();
    let template = &deployment["spec"]["template"];
    for (name, value) in monitor["spec"]["selector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(&template["metadata"]["labels"][name], value);
    }
    let port = &monitor["spec"]["podMetricsEndpoints"][0]["port"];
    let ports = template["spec"]["containers"][0]["ports"].as_array().unwrap();
    assert!(ports.iter().any(|found| found["name"] == *port), "{ports:?}");
}

/// The port and the labels of the pods of a RedisCluster with an exporter.
#[test]
fn the_pod_monitor_of_nodes_finds_their_exporters() {
    let monitor: Value = serde_saphyr::from_str(&file("podmonitor-redis.yaml")).unwrap();
    let cluster = serde_json::json!({
        "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": {"name": "rc"},
        "spec": {"size": 3, "exporter": {}},
    });
    let set = children::stateful_set(&serde_json::from_value(cluster).unwrap(), &Default::default(), 3, 0);
    let template = serde_json::to_value(set.spec.unwrap().template).unwrap();
    for (name, value) in monitor["spec"]["selector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(&template["metadata"]["labels"][name], value);
    }
    let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
    let containers = template["spec"]["containers"].as_array().unwrap();
    let ports = containers.iter().flat_map(|container| container["ports"].as_array().unwrap());
    assert!(ports.into_iter().any(|port| port["name"] == endpoint["port"]), "{containers:?}");
    let label =
        "__meta_kubernetes_pod_label_".to_owned() + &children::INSTANCE_LABEL.replace(['.', '/'], "_");
    assert_eq!(endpoint["relabelings"][0]["sourceLabels"][0], label);
}
