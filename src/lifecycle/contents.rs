//! What is in a namespace: everything that somebody has put there, and that would be lost with it.
//!
//! Left out is what every namespace has, what only reports (Events, Endpoints, Leases), and what belongs to another object of the
//! namespace: that one is found itself, or its parts are being removed.

use serde_json::Value;

use super::api::{Key, Resource, known};
use super::checks;
use super::cluster::{Cluster, ClusterError, Selection};

/// What is in a namespace.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Objects: kind, name, labels, annotations and owners.
    pub(super) objects: Vec<Value>,
    /// The kinds that could not be listed, with the reason.
    pub(super) unseen: Vec<String>,
}

/// Kinds that live in namespaces and are no custom resources: group, version, kind and plural.
const KINDS: [(&str, &str, &str, &str); 20] = [
    ("", "v1", "ConfigMap", "configmaps"),
    ("", "v1", "LimitRange", "limitranges"),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("", "v1", "Pod", "pods"),
    ("", "v1", "PodTemplate", "podtemplates"),
    ("", "v1", "ReplicationController", "replicationcontrollers"),
    ("", "v1", "ResourceQuota", "resourcequotas"),
    ("", "v1", "Secret", "secrets"),
    ("", "v1", "Service", "services"),
    ("", "v1", "ServiceAccount", "serviceaccounts"),
    ("apps", "v1", "DaemonSet", "daemonsets"),
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "ReplicaSet", "replicasets"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ("batch", "v1", "CronJob", "cronjobs"),
    ("batch", "v1", "Job", "jobs"),
    ("networking.k8s.io", "v1", "Ingress", "ingresses"),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
];

/// More of them, which OLM itself brings.
fn kinds() -> Vec<Resource> {
    let own = |(group, version, kind, plural): (&str, &str, &str, &str)| Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
    };
    let more = super::olm::kinds().into_iter().filter(|kind| kind.namespaced);
    let mut kinds: Vec<Resource> = KINDS.into_iter().map(own).chain(more).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

impl Contents {
    /// Looks into a namespace.
    ///
    /// # Errors
    /// There was a signal, the time is over, or the CRDs cannot be listed.
    pub(super) fn of(cluster: &mut dyn Cluster, namespace: &str) -> Result<Self, ClusterError> {
        let mut kinds = kinds();
        for crd in cluster.list(&known::CRD, None)? {
            // Each object is there at every version.
            kinds.extend(checks::served(&crd).into_iter().next().filter(|kind| kind.namespaced));
        }
        kinds.sort_by(|a, b| (&a.group, &a.kind).cmp(&(&b.group, &b.kind)));
        kinds.dedup_by(|a, b| (&a.group, &a.kind) == (&b.group, &b.kind));
        let mut contents = Self::default();
        let selection = Selection { metadata_only: true, ..Selection::default() };
        for kind in &kinds {
            let mut take = |object: Value| {
                if Key::of(&object).namespace == namespace && !comes_by_itself(&object) {
                    contents.objects.push(object);
                }
            };
            match cluster.each(kind, Some(namespace), &selection, &mut take) {
                Ok(()) | Err(ClusterError::NotServed { .. }) => {}
                Err(error @ (ClusterError::Interrupted | ClusterError::TimedOut { .. })) => {
                    return Err(error);
                }
                Err(error) => {
                    contents.unseen.push(format!("`{}` cannot be listed: {error}", kind.full_name()))
                }
            }
        }
        contents.objects.retain(|object| !has_owner(object, &kinds));
        contents.objects.sort_by_key(Key::of);
        contents.objects.dedup_by_key(|object| Key::of(object));
        Ok(contents)
    }
}

/// Whether every namespace has it, or it goes already.
fn comes_by_itself(object: &Value) -> bool {
    const CONFIG_MAPS: [&str; 2] = ["kube-root-ca.crt", "openshift-service-ca.crt"];
    const ACCOUNTS: [&str; 4] = ["builder", "default", "deployer", "pipeline"];
    let annotated = |name: &str| {
        object.pointer("/metadata/annotations").is_some_and(|annotations| !annotations[name].is_null())
    };
    let Key { kind, name, .. } = Key::of(object);
    let is_usual = match kind.as_str() {
        "ConfigMap" => {
            CONFIG_MAPS.contains(&name.as_str()) || annotated("control-plane.alpha.kubernetes.io/leader")
        }
        "ServiceAccount" => ACCOUNTS.contains(&name.as_str()),
        "Secret" => annotated("kubernetes.io/service-account.name"),
        "RoleBinding" => name.starts_with("system:"),
        _ => false,
    };
    let is_going = object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
    is_usual || is_going
}

/// Whether an object is part of another one in its namespace, be it there or gone already.
fn has_owner(object: &Value, kinds: &[Resource]) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| {
        let key = Key::of(owner);
        kinds.iter().any(|kind| kind.kind == key.kind && kind.group == key.group)
    })
}
