//! What the API server says when it refuses something, wherever OLM quotes it: in a plan, a version, a Deployment or an event.

use super::codes::{self, Code};

/// The cause that a message names, if it is one of the API server's own.
pub(super) fn code(message: &str) -> Option<&'static Code> {
    let has = |word: &str| message.contains(word);
    Some(if has("error validating existing CRs") || has("updated validation is too restrictive") {
        &codes::CRD_INVALIDATES_RESOURCES
    } else if has("risk of data loss") || has("listed as a stored version") || has("storedVersions") {
        &codes::CRD_STORED_VERSION
    } else if has("conversion webhook for") {
        &codes::CONVERSION_WEBHOOK
    } else if has("failed calling webhook") || has("failed to call webhook") {
        &codes::WEBHOOK_UNREACHABLE
    } else if has("unable to retrieve the complete list of server APIs")
        || has("the server is currently unable to handle the request")
    {
        &codes::API_SERVICE_DOWN
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
    } else {
        return None;
    })
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
    let words = ["new CRD's schema for \"", "risk of data loss updating \"", "conversion webhook for \""];
    let (_, rest) = words.iter().find_map(|word| message.split_once(word))?;
    rest.split_once('"').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn messages_of_the_api_server_are_told_apart() {
        let code = |message: &str| super::code(message).map(|code| code.name);
        for (message, expected) in [
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
        ] {
            assert_eq!(code(message), Some(expected), "{message}");
        }
        assert_eq!(code("the InstallPlan contains invalid data"), None);
    }
}
