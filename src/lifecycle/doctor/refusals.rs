//! What the API server says when it refuses something, wherever OLM quotes it: in a plan, a version, a Deployment or an event.

use super::codes::{self, Code};

/// The cause that a message names, if it is one of the API server's own.
pub(super) fn code(message: &str) -> Option<&'static Code> {
    let has = |word: &str| message.contains(word);
    // Custom resources that cannot even be listed are not at fault themselves.
    let is_unlisted = has("error listing resources in GroupVersionResource");
    Some(if has("conversion webhook for") {
        &codes::CONVERSION_WEBHOOK
    } else if has("updated validation is too restrictive")
        || has("error validating existing CRs") && !is_unlisted && !is_not_served(message)
    {
        &codes::CRD_INVALIDATES_RESOURCES
    } else if has("risk of data loss") || has("listed as a stored version") || has("storedVersions") {
        &codes::CRD_STORED_VERSION
    } else if has("failed calling webhook") || has("failed to call webhook") {
        &codes::WEBHOOK_UNREACHABLE
    } else if has("unable to retrieve the complete list of server APIs")
        || has("the server is currently unable to handle the request")
    {
        &codes::API_SERVICE_DOWN
    } else if has("field is immutable") || has("cannot change roleRef") {
        &codes::IMMUTABLE_FIELD
    } else if has("exceeded quota") || has("failed quota") {
        &codes::QUOTA_EXCEEDED
    } else if has("violates PodSecurity") {
        &codes::POD_SECURITY
    } else if is_limit_range(message) {
        &codes::LIMIT_RANGE
    } else if has("because it is being terminated") {
        &codes::NAMESPACE_TERMINATING
    } else if has("is forbidden: User ") || has("is attempting to grant RBAC permissions not currently held")
    {
        &codes::RIGHTS_MISSING
    } else if has("api-server resource not found installing") {
        &codes::REQUIRED_API_MISSING
    } else if has("\" is invalid: ") && !has("Pod \"") {
        &codes::OBJECT_INVALID
    } else {
        return None;
    })
}

/// Whether OLM could not list the custom resources of a CRD because Kubernetes does not serve it.
pub(super) fn is_not_served(message: &str) -> bool {
    message.contains("error validating existing CRs")
        && message.contains("the server could not find the requested resource")
}

/// `maximum cpu usage per Container is 1, but limit is 2`
fn is_limit_range(message: &str) -> bool {
    let bound = message.contains("maximum ")
        || message.contains("minimum ")
        || message.contains("limit to request ratio per ");
    bound && (message.contains(" usage per ") || message.contains("limit to request ratio per "))
}

/// The webhook that a message complains of.
pub(super) fn webhook(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("failed calling webhook \"")?;
    rest.split_once('"').map(|(name, _)| name)
}

/// The CRD that a message is about.
pub(super) fn crd(message: &str) -> Option<&str> {
    let words = ["new CRD's schema for \"", "risk of data loss updating \""];
    let (_, rest) = words.iter().find_map(|word| message.split_once(word))?;
    rest.split_once('"').map(|(name, _)| name).filter(|name| is_object_name(name))
}

/// Group and kind of the objects that a conversion webhook does not convert.
pub(super) fn unconverted(message: &str) -> Option<(&str, &str)> {
    let (_, rest) = message.split_once("conversion webhook for ")?;
    let (version, rest) = rest.split_once(", Kind=")?;
    Some((version.split_once('/')?.0, rest.split_whitespace().next()?))
}

/// Namespace and name of the custom resource that a new schema rejects; the namespace is empty for objects of the cluster.
pub(super) fn custom_resource(message: &str) -> Option<(&str, &str)> {
    let (_, rest) = message.split_once("Kind=")?;
    let (_, rest) = rest.split_once(" \"")?;
    let (namespace, name) = rest.split_once('"')?.0.split_once('/')?;
    (is_object_name(name) && (namespace.is_empty() || is_object_name(namespace))).then_some((namespace, name))
}

/// Whether a word of a message can be the name of an object: such names are printed in commands.
pub(super) fn is_object_name(word: &str) -> bool {
    let is_sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_label = |label: &str| {
        label.starts_with(is_sound)
            && label.ends_with(is_sound)
            && label.chars().all(|c| is_sound(c) || c == '-')
    };
    word.len() <= 253 && word.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    #[test]
    fn messages_of_the_api_server_are_told_apart() {
        let code = |message: &str| super::code(message).map(|code| code.name);
        for (message, expected) in [
            (
                "install strategy failed: Deployment.apps \"a\" is invalid: spec.selector: Invalid value: {}: field is immutable",
                "immutable-field",
            ),
            (
                "pods \"x\" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=5, limited: pods=5",
                "quota-exceeded",
            ),
            (
                "pods \"x\" is forbidden: maximum cpu usage per Container is 500m, but limit is 1",
                "limit-range",
            ),
            (
                "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false",
                "pod-security",
            ),
            (
                "Internal error occurred: failed calling webhook \"v.example.com\": failed to call webhook: Post",
                "webhook-unreachable",
            ),
            (
                "conversion webhook for a.example.com/v1, Kind=A failed: Post \"https://a.b.svc:443/convert\"",
                "conversion-webhook",
            ),
            (
                "error validating existing CRs against new CRD's schema for \"a.example.com\": error listing resources in GroupVersionResource schema.GroupVersionResource{}: conversion webhook for a.example.com/v1, Kind=A failed: Post",
                "conversion-webhook",
            ),
            (
                "error validating existing CRs against new CRD's schema for \"a.example.com\": error listing resources in GroupVersionResource schema.GroupVersionResource{}: the server is currently unable to handle the request",
                "api-service-down",
            ),
            (
                "error validating existing CRs against new CRD's schema for \"a.example.com\": error validating a.example.com/v1, Kind=A \"b/c\": updated validation is too restrictive: []",
                "crd-invalidates-resources",
            ),
            (
                "roles is forbidden: User \"system:serviceaccount:a:b\" cannot create resource \"roles\"",
                "rights-missing",
            ),
            (
                "unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: the server is currently unable to handle the request",
                "api-service-down",
            ),
            (
                "unable to create new content in namespace a because it is being terminated",
                "namespace-terminating",
            ),
            (
                "api-server resource not found installing ServiceMonitor a: GroupVersionKind monitoring.coreos.com/v1, Kind=ServiceMonitor not found on the cluster.",
                "required-api-missing",
            ),
            (
                "install strategy failed: ValidatingWebhookConfiguration.admissionregistration.k8s.io \"a.example.com-x\" is invalid: webhooks[0].sideEffects: Unsupported value: \"Some\"",
                "object-invalid",
            ),
        ] {
            assert_eq!(code(message), Some(expected), "{message}");
        }
        assert_eq!(code("the InstallPlan contains invalid data"), None);
        let unserved = "error validating existing CRs against new CRD's schema for \"a.example.com\": the server could not find the requested resource";
        assert_eq!((code(unserved), super::crd(unserved)), (None, Some("a.example.com")));
    }

    #[test]
    fn names_in_messages_are_names_of_objects() {
        use super::{crd, custom_resource};
        let rejected = |name: &str| format!("error validating a.example.com/v1, Kind=A \"{name}\": updated");
        assert_eq!(custom_resource(&rejected("here/b.c-1")), Some(("here", "b.c-1")));
        assert_eq!(custom_resource(&rejected("/whole")), Some(("", "whole")));
        for name in ["https://a.b.svc:443/convert", "here/$(id)", "here/-o", "a b/c", "here/", "here"] {
            assert_eq!(custom_resource(&rejected(name)), None, "{name}");
        }
        let dropped =
            |name: &str| format!("risk of data loss updating \"{name}\": new CRD removes version v1");
        assert_eq!(crd(&dropped("demos.example.com")), Some("demos.example.com"));
        for name in ["", "demos; id", "--all", "Demos.example.com"] {
            assert_eq!(crd(&dropped(name)), None, "{name}");
        }
    }
}
