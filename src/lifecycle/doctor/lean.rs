//! Objects without what no cause is read from: the icons and examples of ClusterServiceVersions, the manifests in InstallPlans, most of
//! the spec of pods. A cluster has thousands of these, and they are looked at together.

use olmkit_bundle::pod::needed;
use serde_json::{Map, Value, json};

use super::doc::Doc;
use super::pods::{has_restarted, is_ready};
use crate::lifecycle::api::label;

/// The longest annotation that is kept, in bytes, but for the properties of a bundle.
const LONGEST: usize = 1024;

/// What `kubectl apply` leaves behind: the object again.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Takes away what the doctor does not read.
pub(super) fn lean(object: &mut Value) {
    let kind = object["kind"].as_str().unwrap_or("").to_owned();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        stamp(metadata);
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            // A Subscription may have to be created again as it was.
            let is_kept =
                |name: &str| name == label::PROPERTIES || kind == "Subscription" && name != LAST_APPLIED;
            annotations.retain(|name, value| {
                is_kept(name) || value.as_str().is_some_and(|text| text.len() <= LONGEST)
            });
        }
    }
    match kind.as_str() {
        "ClusterServiceVersion" => version(object),
        "InstallPlan" => plan(object),
        "Pod" => pod(object),
        "Deployment" => keep(object.get_mut("spec"), &["replicas"]),
        "CustomResourceDefinition" => definition(object),
        "PackageManifest" => {
            keep(
                object.get_mut("status"),
                &["catalogSource", "catalogSourceNamespace", "channels", "defaultChannel"],
            );
            keep_each(object.pointer_mut("/status/channels"), &["name"]);
        }
        "ConfigMap" => bundle(object),
        "Job" => job(object),
        "Event" => {
            let names = [
                "apiVersion",
                "kind",
                "metadata",
                "involvedObject",
                "reason",
                "message",
                "type",
                "source",
                "firstTimestamp",
                "lastTimestamp",
                "eventTime",
                "series",
                "reportingComponent",
                "reportingInstance",
            ];
            keep(Some(&mut *object), &names);
            keep(object.get_mut("involvedObject"), &["kind", "name", "namespace"]);
        }
        "Node" => keep(object.get_mut("status"), &["conditions"]),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            keep_each(object.get_mut("webhooks"), &["name", "clientConfig"]);
            for webhook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
                keep(webhook.get_mut("clientConfig"), &["service"]);
            }
        }
        _ => {}
    }
}

/// A CRD without its schemas.
fn definition(crd: &mut Value) {
    keep(crd.get_mut("spec"), &["group", "names", "versions"]);
    keep_each(crd.pointer_mut("/spec/versions"), &["name", "served", "storage"]);
}

/// The data of a ConfigMap, unless it is an unpacked bundle: only the names of its keys.
fn bundle(map: &mut Value) {
    let is_bundle = !Doc(map).annotation(super::unpack::PACKAGE).is_empty();
    for field in ["data", "binaryData"] {
        let values = map.get_mut(field).and_then(Value::as_object_mut);
        for value in values.filter(|_| !is_bundle).into_iter().flat_map(|all| all.values_mut()) {
            *value = Value::Null;
        }
    }
}

/// A Job with the images of its pods alone.
fn job(job: &mut Value) {
    keep(job.get_mut("spec"), &["template"]);
    keep(job.pointer_mut("/spec/template"), &["spec"]);
    keep(job.pointer_mut("/spec/template/spec"), &["containers", "initContainers"]);
    for list in ["containers", "initContainers"] {
        keep_each(job.pointer_mut(&format!("/spec/template/spec/{list}")), &["name", "image"]);
    }
}

/// Keeps of the managed fields only when the object was last written, and who set its finalizers.
fn stamp(metadata: &mut Map<String, Value>) {
    const FINALIZERS: &str = "/fieldsV1/f:metadata/f:finalizers";
    let Some(fields) = metadata.remove("managedFields") else { return };
    let all = || fields.as_array().into_iter().flatten();
    // They are all written alike, in UTC.
    let newest = all().filter_map(|one| one["time"].as_str()).max().map(|time| json!({"time": time}));
    let setters = all().filter_map(|one| {
        let finalizers = one.pointer(FINALIZERS)?;
        Some(json!({"manager": one["manager"], "fieldsV1": {"f:metadata": {"f:finalizers": finalizers}}}))
    });
    let kept: Vec<Value> = newest.into_iter().chain(setters).collect();
    if !kept.is_empty() {
        metadata.insert("managedFields".into(), kept.into());
    }
}

/// Keeps these fields of an object.
fn keep(object: Option<&mut Value>, names: &[&str]) {
    if let Some(fields) = object.and_then(Value::as_object_mut) {
        fields.retain(|name, _| names.contains(&name.as_str()));
    }
}

/// Keeps these fields of every object in a list.
fn keep_each(list: Option<&mut Value>, names: &[&str]) {
    list.and_then(Value::as_array_mut).into_iter().flatten().for_each(|one| keep(Some(one), names));
}

fn version(csv: &mut Value) {
    if Doc(csv).is_copy() {
        // The original has the rest.
        keep(Some(&mut *csv), &["apiVersion", "kind", "metadata", "status"]);
        keep(csv.get_mut("status"), &["phase", "reason"]);
        return;
    }
    let Some(spec) = csv.get_mut("spec") else { return };
    keep(
        Some(&mut *spec),
        &[
            "replaces",
            "version",
            "minKubeVersion",
            "installModes",
            "customresourcedefinitions",
            "apiservicedefinitions",
            "install",
        ],
    );
    for (kind, names) in [
        ("customresourcedefinitions", &["name", "version", "kind"][..]),
        ("apiservicedefinitions", &["name", "version", "group", "kind", "deploymentName"]),
    ] {
        for list in ["owned", "required"] {
            keep_each(spec.pointer_mut(&format!("/{kind}/{list}")), names);
        }
    }
    keep(spec.pointer_mut("/install/spec"), &["deployments"]);
    let deployments = spec.pointer_mut("/install/spec/deployments").and_then(Value::as_array_mut);
    for one in deployments.into_iter().flatten() {
        keep(Some(&mut *one), &["name", "spec"]);
        keep(one.get_mut("spec"), &["replicas"]);
    }
}

fn plan(plan: &mut Value) {
    keep_each(plan.pointer_mut("/status/plan"), &["resolving", "resource", "status"]);
    for step in plan.pointer_mut("/status/plan").and_then(Value::as_array_mut).into_iter().flatten() {
        keep(step.get_mut("resource"), &["kind", "name", "group", "version"]);
    }
    if let Some(status) = plan.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("bundleLookups");
    }
}

/// A pod that serves has nothing to tell but that and what it needs, unless it serves a catalog or was restarted.
fn pod(pod: &mut Value) {
    if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("annotations");
    }
    let doc = Doc(pod);
    if is_ready(doc) && !has_restarted(doc) && doc.label("olm.catalogSource").is_empty() {
        let needs = needed(&pod["spec"]).into_iter().filter_map(|one| match one.kind {
            "Secret" => Some(json!({"secretRef": {"name": one.name}})),
            "ConfigMap" => Some(json!({"configMapRef": {"name": one.name}})),
            _ => None,
        });
        pod["spec"] = json!({"containers": [{"envFrom": needs.collect::<Vec<_>>()}]});
        pod["status"] = json!({"phase": "Running", "containerStatuses": [{"ready": true}]});
        keep(Some(pod), &["apiVersion", "kind", "metadata", "spec", "status"]);
        return;
    }
    let names = ["containers", "initContainers", "restartPolicy", "serviceAccountName", "nodeName"];
    keep(pod.get_mut("spec"), &names);
    for list in ["containers", "initContainers"] {
        keep_each(pod.pointer_mut(&format!("/spec/{list}")), &["name", "image"]);
    }
    let names = [
        "phase",
        "reason",
        "message",
        "conditions",
        "containerStatuses",
        "initContainerStatuses",
        "startTime",
    ];
    keep(pod.get_mut("status"), &names);
}

/// An object of metadata alone, for kinds of which only it matters.
pub(super) fn metadata_of(object: Value) -> Value {
    let Value::Object(fields) = object else { return object };
    let kept =
        fields.into_iter().filter(|(name, _)| matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
    Value::Object(kept.collect::<Map<String, Value>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::doctor::{Observation, Recorder, Scope, diagnose};

    /// Objects that were made lean are diagnosed like whole ones, at some moments of every recording.
    #[test]
    fn nothing_is_left_out_that_a_cause_is_read_from() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/olm-traces");
        let mut moments = 0;
        for entry in std::fs::read_dir(root).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "jsonl") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let mut recorder = Recorder::new();
            for (number, line) in text.lines().filter(|line| line.contains("\"type\":\"")).enumerate() {
                recorder.feed(line, None).unwrap();
                if number % 20 != 0 {
                    continue;
                }
                let whole: &Observation = recorder.observation();
                let mut thin = whole.clone();
                for object in whole.objects() {
                    let mut object = object.clone();
                    lean(&mut object);
                    thin.put(object);
                }
                let all = Scope::default();
                assert_eq!(diagnose(&thin, &all), diagnose(whole, &all), "{}, line {number}", path.display());
                moments += 1;
            }
        }
        assert!(moments > 200, "{moments}");
    }
}
