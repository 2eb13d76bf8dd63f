//! Settings of pods: what OLM and Kubernetes know is taken, all else is refused before a server drops it.

use olmkit::lifecycle::api::pod_config::{CATALOG_SOURCE, PodConfig, PodConfigError, SUBSCRIPTION};
use serde_json::{Value, json};

fn told(config: PodConfig, settings: &Value) -> String {
    match config.check(settings) {
        Ok(()) => String::new(),
        Err(PodConfigError::Unknown { path, help }) => format!("unknown {path}: {help}"),
        Err(PodConfigError::Type { name, source }) => format!("{name}: {source}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn settings_that_an_api_server_would_drop_are_refused() {
    let told = |settings: Value| told(SUBSCRIPTION, &settings);
    assert_eq!(
        told(json!({
            "env": [{"name": "A", "value": "b"}, {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            "resources": {"limits": {"cpu": 1, "memory": "1Gi"}},
            "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": 1000}}],
            "nodeSelector": null,
        })),
        ""
    );
    assert_eq!(told(json!({"resources": {"limits": {"cpu": 1}}, "env": []})), "");
    assert_eq!(told(json!({"volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": 1000}}]})), "");
    assert!(told(json!({"spec": {"config": {}}})).starts_with("unknown spec: write what is below"));
    assert_eq!(told(json!({"enf": []})), "unknown enf: did you mean `env`?");
    assert!(told(json!({"env": "hello"})).starts_with("env: invalid type"));
    assert!(told(json!({"resources": [1]})).starts_with("resources: "));
    assert!(told(json!({"env": [{"name": "A", "vaule": "b"}]})).starts_with("unknown env[0].vaule"));
}

#[test]
fn settings_of_a_catalogs_pod_are_others() {
    assert_eq!(told(CATALOG_SOURCE, &json!({"memoryTarget": "30Mi", "priorityClassName": "high"})), "");
    assert!(told(CATALOG_SOURCE, &json!({"env": []})).starts_with("unknown env: "));
    assert!(told(CATALOG_SOURCE, &json!({"foo": 1})).starts_with("unknown foo: "));
}
