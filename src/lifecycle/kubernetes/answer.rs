//! What the answers of an API server mean, and what comes instead of one.

use std::error::Error;
use std::time::Duration;

use http::StatusCode;
use kube::core::Status;
use rustls::CertificateError;
use rustls::pki_types::UnixTime;

use super::bounded::TooLarge;
use crate::lifecycle::api::{Key, Resource};
use crate::lifecycle::cluster::{BadCertificate, ClusterError, Said};
use crate::moment;

/// Nothing came back for a request.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", .0.as_secs())]
pub(super) struct Silent(pub(super) Duration);

/// A request.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// The verb of the rule that allows it.
    pub(super) verb: &'static str,
    pub(super) resource: &'a Resource,
    pub(super) namespace: Option<&'a str>,
    /// The object; none for a list.
    pub(super) key: Option<&'a Key>,
}

/// How long what went wrong may pass by itself.
pub(super) enum Passing {
    /// It does not.
    No,
    /// For a moment.
    Moment,
    /// For a while.
    While,
}

/// Whether the server has said something, be it that it refuses.
pub(super) fn is_answer(error: &kube::Error) -> bool {
    !matches!(error, kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_))
}

/// Whether the server could not even be reached: nobody listens, it has no address, it shows no certificate that is trusted,
/// or it says nothing.
pub(super) fn is_about_reaching(error: &kube::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        let connecting = error
            .downcast_ref::<hyper_util::client::legacy::Error>()
            .is_some_and(hyper_util::client::legacy::Error::is_connect);
        if connecting || error.is::<Silent>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// Whether the answer did not end.
pub(super) fn is_too_large(error: &kube::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.is::<TooLarge>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// Whether what the server says may pass by itself. A webhook that it cannot ask is named by a 500 too, and does not.
pub(super) fn passing(status: &Status) -> Passing {
    match status.code {
        429 | 502..=504 => Passing::While,
        500 if status.message.contains("etcdserver: ") => Passing::While,
        500 if !status.message.contains("webhook") => Passing::Moment,
        _ => Passing::No,
    }
}

/// What is wrong with the certificate of a server, if that is why no answer came.
fn bad_certificate(error: &kube::Error) -> Option<BadCertificate> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(rustls::Error::InvalidCertificate(fault)) = error.downcast_ref() {
            return Some(judged(fault));
        }
        // TLS faults come wrapped in `io::Error`s, whose `source` skips what they wrap.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match wrapped {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn judged(fault: &CertificateError) -> BadCertificate {
    const RENEW: &str =
        "ask the administrator of the cluster to renew the certificate, and check the clock of this machine";
    const TRUST: &str = "check `certificate-authority` of the cluster in the kubeconfig: it must be the CA that signed the server's certificate";
    let at = |time: &UnixTime| {
        moment::format(i64::try_from(time.as_secs()).unwrap_or(i64::MAX / 1_000).saturating_mul(1_000))
    };
    let (what, help) = match fault {
        CertificateError::Expired => ("the server's certificate has expired".to_owned(), RENEW),
        CertificateError::ExpiredContext { not_after, .. } => {
            (format!("the server's certificate expired on {}", at(not_after)), RENEW)
        }
        CertificateError::NotValidYet => ("the server's certificate is not valid yet".to_owned(), RENEW),
        CertificateError::NotValidYetContext { not_before, .. } => {
            (format!("the server's certificate is not valid before {}", at(not_before)), RENEW)
        }
        CertificateError::UnknownIssuer => (
            "the server's certificate is signed by an authority that the kubeconfig does not name".to_owned(),
            TRUST,
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            format!("the server's {fault}"),
            "name the server in the kubeconfig as its certificate does, or set `tls-server-name` there",
        ),
        // It has no variant of its own, and its type is not shown.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => (
            "the server's certificate is a CA certificate: it must be a server certificate that the CA signed"
                .to_owned(),
            "have a certificate for the server signed by that CA, which the kubeconfig then names as `certificate-authority`",
        ),
        other => (format!("the server's certificate is not accepted: {other}"), TRUST),
    };
    BadCertificate { what, help }
}

/// The innermost reason: those around it only say that something went wrong.
fn innermost(error: &kube::Error) -> String {
    if let Some(bad) = bad_certificate(error) {
        return bad.what;
    }
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// An answer in a line.
fn line(status: &Status) -> String {
    let known = StatusCode::from_u16(status.code).ok().and_then(|code| code.canonical_reason());
    let words = match (status.code, status.reason.as_str()) {
        (429, _) => "rate limited (429)".to_owned(),
        (code, "") => format!("{code} {}", known.unwrap_or_default()),
        (code, reason) => format!("{code} {reason}"),
    };
    match status.message.trim() {
        "" => words.trim().to_owned(),
        message => format!("{}: {message}", words.trim()),
    }
}

/// What was heard last, for a message that the time is over; none when nothing was.
pub(super) fn heard(server: &str, error: &kube::Error) -> Option<Said> {
    match error {
        kube::Error::Api(status) if status.code == 429 => {
            Some(Said(format!("`{server}` answers: {}", line(status))))
        }
        kube::Error::Api(status) => Some(Said(format!("`{server}` answers {}", line(status)))),
        error if is_about_reaching(error) => None,
        error => Some(Said(format!("the connection to `{server}` broke: {}", innermost(error)))),
    }
}

/// How long the server asks to be left alone.
pub(super) fn asked_for(error: &kube::Error) -> Duration {
    let kube::Error::Api(status) = error else { return Duration::ZERO };
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    Duration::from_secs(seconds.into())
}

/// What an error means.
pub(super) fn fault(error: kube::Error, server: &str, context: &str, asked: Asked<'_>) -> ClusterError {
    let Asked { verb, resource, namespace, key } = asked;
    let about = || key.cloned().unwrap_or_else(|| Key::new(resource, namespace.unwrap_or(""), "*"));
    let server = server.to_owned();
    if is_too_large(&error) {
        let source = Said(innermost(&error));
        return ClusterError::Failed { verb, resource: resource.full_name(), source };
    }
    if let kube::Error::SerdeError(error) = &error {
        // Without the place in the text, and the names of our types.
        let what =
            if error.is_data() { "it has other fields than those of Kubernetes" } else { "it is not JSON" };
        return ClusterError::Invalid { server, source: Said(what.to_owned()) };
    }
    let kube::Error::Api(status) = error else {
        let source = match bad_certificate(&error) {
            Some(bad) => bad.into(),
            None => innermost(&error).into(),
        };
        return ClusterError::Unreachable { server, source };
    };
    let said = Said(line(&status));
    let Status { code, reason, message, .. } = *status;
    match code {
        401 => ClusterError::Unauthorized { server, context: context.to_owned(), source: said },
        // A namespace that goes, a quota and an admission plugin are told by the same code.
        403 if is_about_rights(verb, &message) => ClusterError::Forbidden {
            verb,
            resource: resource.full_name(),
            namespace: namespace.filter(|_| resource.namespaced).map(str::to_owned),
            source: Some(Said(message)),
        },
        404 if key.is_none() => ClusterError::NotServed { resource: resource.full_name() },
        404 => ClusterError::NotFound { key: about() },
        409 if reason == "AlreadyExists" => ClusterError::Exists { key: about() },
        409 => ClusterError::Conflict { key: about() },
        410 | 429 => ClusterError::Failed { verb, resource: resource.full_name(), source: said },
        // What is about one object and came from its webhooks is a refusal, whatever the code.
        400..=499 => ClusterError::Refused { key: about(), message },
        _ if message.contains("webhook") => ClusterError::Refused { key: about(), message },
        _ => ClusterError::Failed { verb, resource: resource.full_name(), source: said },
    }
}

/// Whether a 403 is about a missing rule: authorizers say who cannot do what. A reader is refused for nothing else.
fn is_about_rights(verb: &str, message: &str) -> bool {
    message.contains(&format!(" cannot {verb} ")) || matches!(verb, "get" | "list")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::api::known;

    fn told(code: u16, verb: &'static str, message: &str) -> String {
        let status = Status::failure(message, "Forbidden").with_code(code).boxed();
        let key = Key::new(&known::SUBSCRIPTION, "kg", "demo");
        let asked = Asked { verb, resource: &known::SUBSCRIPTION, namespace: Some("kg"), key: Some(&key) };
        let error = fault(kube::Error::Api(status), "https://server", "team", asked);
        format!("{error}\n{}", error.help().unwrap_or_default()).trim_end().to_owned()
    }

    #[test]
    fn a_rate_limit_and_a_status_without_words_are_told_by_their_code() {
        let said = |code, message: &str| line(&Status::failure(message, "").with_code(code));
        assert_eq!(said(429, ""), "rate limited (429)");
        assert_eq!(said(429, "try again later"), "rate limited (429): try again later");
        assert_eq!(said(503, ""), "503 Service Unavailable");
        assert!(matches!(passing(&Status::failure("", "").with_code(429)), Passing::While));
    }

    #[test]
    fn a_bad_certificate_is_told_without_the_words_of_our_library() {
        let seconds = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let (time, not_after) = (seconds(1_795_663_284), seconds(1_609_459_200));
        let expired = judged(&CertificateError::ExpiredContext { time, not_after });
        assert_eq!(expired.what, "the server's certificate expired on 2021-01-01T00:00:00Z");
        #[derive(Debug, thiserror::Error)]
        #[error("CaUsedAsEndEntity")]
        struct CaUsedAsEndEntity;
        let other = rustls::OtherError(std::sync::Arc::new(CaUsedAsEndEntity));
        let io = std::io::Error::other(rustls::Error::InvalidCertificate(CertificateError::Other(other)));
        let key = Key::new(&known::SUBSCRIPTION, "kg", "demo");
        let asked = Asked { verb: "get", resource: &known::SUBSCRIPTION, namespace: None, key: Some(&key) };
        let error = fault(kube::Error::Service(Box::new(io)), "https://server", "", asked);
        assert_eq!(
            error.source().unwrap().to_string(),
            "the server's certificate is a CA certificate: it must be a server certificate that the CA signed"
        );
        assert!(error.help().unwrap().starts_with("have a certificate for the server signed"));
    }

    #[test]
    fn a_403_is_told_by_its_reason() {
        let rbac = "subscriptions.operators.coreos.com is forbidden: User \"weak\" cannot create resource \"subscriptions\" \
                    in API group \"operators.coreos.com\" in the namespace \"kg\"";
        let going = "subscriptions \"demo\" is forbidden: unable to create new content in namespace kg because it is being \
                     terminated";
        let quota = "subscriptions \"demo\" is forbidden: exceeded quota: few, requested: count/x=1, used: 1, limited: 1";
        let webhook = "admission webhook \"policy.example.com\" denied the request: not on Fridays";
        let said = [rbac, going, quota, webhook].map(|message| told(403, "create", message));
        insta::assert_snapshot!(said.join("\n\n"), @r#"
        not allowed to create `subscriptions.operators.coreos.com` in the namespace `kg`
        the rule `{apiGroups: ["operators.coreos.com"], resources: ["subscriptions"], verbs: ["create"]}` is missing: add it to a Role there

        subscription/demo was refused: subscriptions "demo" is forbidden: unable to create new content in namespace kg because it is being terminated
        wait until the namespace is gone, or choose another one

        subscription/demo was refused: subscriptions "demo" is forbidden: exceeded quota: few, requested: count/x=1, used: 1, limited: 1
        free some of the namespace's quota, or have it raised

        subscription/demo was refused: admission webhook "policy.example.com" denied the request: not on Fridays
        ask the owner of the webhook for its rules
        "#);
    }

    #[test]
    fn wrong_credentials_are_no_network_problem() {
        insta::assert_snapshot!(told(401, "list", "Unauthorized"), @"
        the cluster at `https://server` rejected the credentials of the context `team`
        log in again, or choose another context with --context
        ");
    }

    #[test]
    fn a_server_error_that_stays_is_told_by_its_reason() {
        insta::assert_snapshot!(told(500, "list", "etcd down"), @"
        the cluster failed to list `subscriptions.operators.coreos.com`
        try again later
        ");
        assert!(matches!(
            passing(&Status::failure("etcdserver: leader changed", "").with_code(500)),
            Passing::While
        ));
        assert!(matches!(
            passing(&Status::failure("etcd down", "InternalError").with_code(500)),
            Passing::Moment
        ));
        let webhook = "failed calling webhook \"x\": connection refused";
        assert!(matches!(passing(&Status::failure(webhook, "InternalError").with_code(500)), Passing::No));
    }
}
