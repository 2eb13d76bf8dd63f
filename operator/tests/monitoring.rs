//! The alerts and the dashboard in `monitoring/`: they ask for series that the operator has, and each alert says what to do.
#![expect(clippy::unwrap_used, reason = "what the tests share is a test as well")]

use std::{collections::BTreeSet, fs};

use redis_operator::{
    controller::status::CONDITIONS,
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

/// Words of an expression that name a series.
fn names(expression: &str) -> BTreeSet<&str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("redis_operator_")).collect()
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
    for name in names {
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
    assert_eq!(alerts.len(), 11);
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
