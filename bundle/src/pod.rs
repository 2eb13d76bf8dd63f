//! What a pod needs of its namespace before its containers can start.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::yaml::{Step, steps};

/// A ConfigMap, Secret, PersistentVolumeClaim or PriorityClass that a pod cannot start without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    /// `ConfigMap`, `Secret`, [`CLAIM`] or [`PRIORITY`].
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Where the pod's `spec` names it.
    pub path: Vec<Step<'static>>,
}

/// The kind of claims of storage, which no bundle can carry.
pub const CLAIM: &str = "PersistentVolumeClaim";

/// The kind of what `priorityClassName` names.
pub const PRIORITY: &str = "PriorityClass";

/// The PriorityClasses of every cluster, and the one of OpenShift for what users need.
const PRIORITIES_OF_CLUSTERS: [&str; 3] =
    ["system-cluster-critical", "system-node-critical", "openshift-user-critical"];

/// ConfigMaps that clusters put into every namespace.
const IN_EVERY_NAMESPACE: [&str; 2] = ["kube-root-ca.crt", "openshift-service-ca.crt"];

/// Everything that the `spec` of a pod mounts or reads and does not call optional, each object once.
///
/// ```
/// use olmkit_bundle::pod::needed;
/// use serde_json::json;
///
/// let pod = json!({"volumes": [
///     {"name": "cert", "secret": {"secretName": "serving-cert"}},
///     {"name": "extra", "configMap": {"name": "extra", "optional": true}},
/// ]});
/// let needed = needed(&pod);
/// assert_eq!((needed[0].kind, needed[0].name.as_str(), needed.len()), ("Secret", "serving-cert", 1));
/// ```
pub fn needed(pod: &Value) -> Vec<Needed> {
    let mut all = Vec::new();
    let mut add = |reference: &Value, key: &'static str, kind, path: &[Step<'static>]| {
        let name = reference.get(key).and_then(Value::as_str).unwrap_or("");
        let everywhere = match kind {
            "ConfigMap" => IN_EVERY_NAMESPACE.contains(&name),
            PRIORITY => PRIORITIES_OF_CLUSTERS.contains(&name),
            _ => false,
        };
        if !name.is_empty() && !everywhere && reference.get("optional") != Some(&Value::Bool(true)) {
            let path = path.iter().copied().chain([Step::Key(key)]).collect();
            all.push(Needed { kind, name: name.to_owned(), path });
        }
    };
    add(pod, "priorityClassName", PRIORITY, &[]);
    for (at, volume) in list(pod, "volumes") {
        add(&volume["secret"], "secretName", "Secret", steps!("volumes", at, "secret"));
        add(&volume["configMap"], "name", "ConfigMap", steps!("volumes", at, "configMap"));
        let claim = steps!("volumes", at, "persistentVolumeClaim");
        add(&volume["persistentVolumeClaim"], "claimName", CLAIM, claim);
        for (index, source) in list(&volume["projected"], "sources") {
            let path = |key| {
                [steps!("volumes", at, "projected", "sources", index) as &[_], &[Step::Key(key)]].concat()
            };
            add(&source["secret"], "name", "Secret", &path("secret"));
            add(&source["configMap"], "name", "ConfigMap", &path("configMap"));
        }
    }
    for containers in ["initContainers", "containers"] {
        for (at, container) in list(pod, containers) {
            for (index, variable) in list(container, "env") {
                let path = |key| {
                    [steps!(containers, at, "env", index, "valueFrom") as &[_], &[Step::Key(key)]].concat()
                };
                let from = &variable["valueFrom"];
                add(&from["secretKeyRef"], "name", "Secret", &path("secretKeyRef"));
                add(&from["configMapKeyRef"], "name", "ConfigMap", &path("configMapKeyRef"));
            }
            for (index, from) in list(container, "envFrom") {
                let path =
                    |key| [steps!(containers, at, "envFrom", index) as &[_], &[Step::Key(key)]].concat();
                add(&from["secretRef"], "name", "Secret", &path("secretRef"));
                add(&from["configMapRef"], "name", "ConfigMap", &path("configMapRef"));
            }
        }
    }
    let mut seen = BTreeSet::new();
    all.retain(|needed| seen.insert((needed.kind, needed.name.clone())));
    all
}

/// The Secret with the certificate that OLM issues for a Deployment that serves webhooks or APIs.
pub fn certificate_of(deployment: &str) -> String {
    format!("{deployment}-service-cert")
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = (usize, &'v Value)> {
    value.get(key).and_then(Value::as_array).into_iter().flatten().enumerate()
}
