//! Fields that the API server lets nobody change once an object exists: it refuses the object with another value.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

/// A field of an object that another form of the object has otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The field, as a path.
    pub field: &'static str,
    /// What it is.
    pub old: String,
    /// What it would be.
    pub new: String,
}

/// The first immutable field that another form of an object changes; a field that it does not have stays as it is. The rules are those of
/// Kubernetes' `pkg/apis/*/validation` for the kinds that bundles contain.
///
/// ```
/// use olmkit::lifecycle::immutable::changed;
/// use serde_json::json;
/// let form = |app: &str| json!({"kind": "Deployment", "spec": {"selector": {"matchLabels": {"app": app}}}});
/// assert_eq!(changed(&form("a"), &form("b")).unwrap().field, "spec.selector");
/// assert_eq!(changed(&form("a"), &form("a")), None);
/// ```
pub fn changed(live: &Value, other: &Value) -> Option<Changed> {
    let fields: &[(&str, &str)] = match other["kind"].as_str()? {
        "CustomResourceDefinition" => {
            &[("spec.scope", "/spec/scope"), ("spec.names.kind", "/spec/names/kind")]
        }
        "Deployment" => &[("spec.selector", "/spec/selector")],
        "RoleBinding" | "ClusterRoleBinding" => {
            &[("roleRef.kind", "/roleRef/kind"), ("roleRef.name", "/roleRef/name")]
        }
        "PriorityClass" => &[("value", "/value"), ("preemptionPolicy", "/preemptionPolicy")],
        "Secret" if live["immutable"] == true => &[("type", "/type"), ("data", "/data")],
        "Secret" => &[("type", "/type")],
        "ConfigMap" if live["immutable"] == true => &[("data", "/data"), ("binaryData", "/binaryData")],
        _ => &[],
    };
    fields.iter().find_map(|(field, path)| {
        let (old, new) = (live.pointer(path)?, other.pointer(path)?);
        let same = old == new || *field == "spec.selector" && selector(old) == selector(new);
        (!same).then(|| Changed { field, old: shown(old), new: shown(new) })
    })
}

/// A selector without the difference between what is empty and what is not there.
fn selector(value: &Value) -> LabelSelector {
    let mut read: LabelSelector = serde_json::from_value(value.clone()).unwrap_or_default();
    read.match_labels = read.match_labels.filter(|labels| !labels.is_empty());
    read.match_expressions = read.match_expressions.filter(|all| !all.is_empty());
    read
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(live: Value, other: Value, field: Option<&str>) {
        assert_eq!(changed(&live, &other).map(|found| found.field), field);
    }

    #[test]
    fn a_field_that_is_left_out_stays_as_it_is() {
        let crd = |scope: &str| json!({"kind": "CustomResourceDefinition", "spec": {"scope": scope}});
        check(crd("Cluster"), crd("Namespaced"), Some("spec.scope"));
        check(crd("Cluster"), json!({"kind": "CustomResourceDefinition"}), None);
        check(json!({"kind": "CustomResourceDefinition"}), crd("Cluster"), None);
    }

    #[test]
    fn an_empty_part_of_a_selector_is_none() {
        let form = |selector: Value| json!({"kind": "Deployment", "spec": {"selector": selector}});
        let plain = form(json!({"matchLabels": {"app": "a"}}));
        check(plain.clone(), form(json!({"matchLabels": {"app": "a"}, "matchExpressions": []})), None);
        check(plain, form(json!({"matchLabels": {"app": "a", "version": "2"}})), Some("spec.selector"));
    }

    #[test]
    fn only_an_immutable_config_map_keeps_its_data() {
        let map = |immutable: bool, value: &str| json!({"kind": "ConfigMap", "immutable": immutable, "data": {"a": value}});
        check(map(false, "1"), map(false, "2"), None);
        check(map(true, "1"), map(true, "2"), Some("data"));
    }

    #[test]
    fn a_binding_keeps_its_role_and_a_secret_its_type() {
        let binding = |role: &str| json!({"kind": "RoleBinding", "roleRef": {"kind": "Role", "name": role}});
        check(binding("a"), binding("b"), Some("roleRef.name"));
        let secret = |kind: &str| json!({"kind": "Secret", "type": kind});
        check(secret("Opaque"), secret("kubernetes.io/tls"), Some("type"));
        check(
            json!({"kind": "PriorityClass", "value": 1}),
            json!({"kind": "PriorityClass", "value": 2}),
            Some("value"),
        );
    }
}
