//! Problems that only the user can resolve: each is reported in a condition and an Event, with what to do.

use k8s_openapi::jiff::Timestamp;

use super::volumes::CannotGrow;
use crate::server::configure::Refusal;

/// Reason of Degraded and of UpdatePending.
pub const CONFIG_REFUSED: &str = "ConfigRefused";
/// The same, about volumes.
pub const NOT_RESIZED: &str = "VolumesNotResized";

/// The first of these pods, in a sentence.
pub(super) fn names(pods: &[String]) -> String {
    let first = pods.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    if pods.len() > 5 { format!("{first} and {} more", pods.len() - 5) } else { first }
}

/// Something that keeps the operator from managing a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// An object with a name that the operator needs exists and is not controlled by this RedisCluster.
    #[error(
        "{kind} `{name}` exists and is not controlled by this RedisCluster: delete or rename it, or choose another name for this RedisCluster"
    )]
    NameTaken {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// An object with a name that the operator needs is of a RedisCluster that was deleted.
    #[error(
        "{kind} `{name}` is of an earlier RedisCluster with this name, which was deleted: Kubernetes removes it soon; if it does not, delete it"
    )]
    Leftover {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// The Secret does not exist.
    #[error("Secret `{name}` not found: create it with the password under the key `{key}`")]
    SecretMissing {
        /// Its name.
        name: String,
        /// The key that should be in it.
        key: String,
    },
    /// The Secret that the operator created was deleted. The operator does not adopt another one with its name.
    #[error(
        "Secret `{name}` was deleted: create a Secret with {} under the key `{key}`, and set spec.auth.secretName to its name",
        if *.stopped { "a password, which may be a new one because no pod runs," } else { "the password that the pods have" }
    )]
    OwnSecretMissing {
        /// Its name.
        name: String,
        /// The key that was in it.
        key: String,
        /// Whether there are no pods.
        stopped: bool,
    },
    /// A Secret with the name of the operator's own.
    #[error(
        "Secret `{name}` exists and is not controlled by this RedisCluster: set spec.auth.secretName to `{name}` if it has the password, or else delete or rename it"
    )]
    SecretTaken {
        /// Its name.
        name: String,
    },
    /// The Secret lacks the key.
    #[error("Secret `{name}` has no key `{key}`: add it, or name another key in spec.auth")]
    KeyMissing {
        /// Its name.
        name: String,
        /// The key that should be in it.
        key: String,
    },
    /// The password cannot be written to redis.conf.
    #[error(
        "the password in Secret `{name}` must be 8 to 512 printable ASCII characters without `\"` and `\\`"
    )]
    PasswordUnusable {
        /// The Secret.
        name: String,
    },
    /// The previous password cannot be used.
    #[error(
        "the key `previousPassword` of Secret `{name}` {why}: put the password that clients used before there, or remove the key; until then nodes keep the passwords that they have"
    )]
    PreviousPasswordUnusable {
        /// The Secret.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The API server rejected an object that is derived from the spec.
    #[error("the API server rejected {kind} `{name}`: {message}; correct the spec")]
    Refused {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// What the API server said.
        message: String,
    },
    /// The stored spec is invalid: it was stored while no webhook was there to refuse it, or before there was this rule.
    #[error("invalid spec: {0}")]
    InvalidSpec(String),
    /// Redis rejects the password.
    #[error(
        "Redis in {pods} pods rejects the password in Secret `{name}`{}: put the password that the pods have at the key `previousPassword` of the Secret, and it is changed while they run",
        if *.both { " and its `previousPassword`" } else { "" }
    )]
    PasswordRejected {
        /// How many pods.
        pods: usize,
        /// The Secret.
        name: String,
        /// Whether the Secret has a previous password too.
        both: bool,
    },
    /// The Secret of `spec.tls` does not exist.
    #[error(
        "Secret `{name}` not found: create it with the keys `tls.crt`, `tls.key` and `ca.crt`, or set spec.tls.secretName"
    )]
    CertificateMissing {
        /// Its name.
        name: String,
    },
    /// The Secret of `spec.tls` lacks a key.
    #[error("Secret `{name}` has no key `{key}`: it must have the keys `tls.crt`, `tls.key` and `ca.crt`")]
    CertificateKeyMissing {
        /// Its name.
        name: String,
        /// The key.
        key: &'static str,
    },
    /// Nodes could not work with the certificate.
    #[error(
        "Secret `{name}` cannot be used for TLS: {why}; running nodes keep the certificate that they have"
    )]
    CertificateUnusable {
        /// The Secret.
        name: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// Redis refuses the certificate.
    #[error(
        "Redis in pod {pod} refused the certificate in Secret `{name}` ({answer}): correct the Secret; the node keeps the certificate that it has"
    )]
    CertificateRefused {
        /// The Secret.
        name: String,
        /// The pod.
        pod: String,
        /// What Redis said.
        answer: String,
    },
    /// The certificate is no longer valid.
    #[error(
        "the certificate in Secret `{name}`, or the CA that signed it, expired at {at}: renew it, and nodes load it while they run; until then, they refuse connections to each other"
    )]
    CertificateExpired {
        /// The Secret.
        name: String,
        /// When.
        at: Timestamp,
    },
    /// Nodes present a certificate of another CA.
    #[error("{}", untrusted(.name, .pods, .why))]
    CertificateUntrusted {
        /// The Secret.
        name: String,
        /// The pods.
        pods: Vec<String>,
        /// What is wrong with the first.
        why: String,
    },
    /// Redis refuses a directive.
    #[error("{0}; correct or remove the directive: nodes keep the values that they had")]
    ConfigRefused(Refusal),
    /// Volumes stay smaller than the spec wants.
    #[error("{0}")]
    CannotGrow(CannotGrow),
    /// A key cannot be moved without stalling its clients.
    #[error("{0}; split or delete the key, and the slot is migrated")]
    KeyTooLarge(String),
    /// The user paused reconciliation.
    #[error("spec.paused is true: nothing changes until it is set to false")]
    Paused,
}

fn untrusted(name: &str, pods: &[String], why: &str) -> String {
    let pods = names(pods);
    if why.contains("UnknownIssuer") {
        format!(
            "`ca.crt` in Secret `{name}` has no CA that signed the certificate of {pods}: {why}; add the CA that signed it to `ca.crt`, beside the new one"
        )
    } else {
        format!(
            "the certificate of {pods} is not valid: {why}; delete these pods one after another, and they start with the certificate in Secret `{name}`"
        )
    }
}

/// What the conditions report if several things are wrong: what stops the operator, then what clients notice first.
pub fn reported(
    stops: Option<Problem>,
    access: Option<Problem>,
    refused: Option<Refusal>,
    cannot_grow: Option<CannotGrow>,
) -> Option<Problem> {
    let config = || refused.map(Problem::ConfigRefused);
    stops.or(access).or_else(config).or_else(|| cannot_grow.map(Problem::CannotGrow))
}

impl Problem {
    /// Whether there is no password for pods that start, although running ones have theirs.
    pub fn is_missing_secret(&self) -> bool {
        matches!(self, Self::SecretMissing { .. } | Self::OwnSecretMissing { .. } | Self::KeyMissing { .. })
    }

    /// The reason of the condition and of the Event.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NameTaken { .. } | Self::SecretTaken { .. } | Self::Leftover { .. } => "NameTaken",
            Self::SecretMissing { .. }
            | Self::OwnSecretMissing { .. }
            | Self::KeyMissing { .. }
            | Self::CertificateMissing { .. }
            | Self::CertificateKeyMissing { .. } => "SecretMissing",
            Self::CertificateUnusable { .. } | Self::CertificateRefused { .. } => "CertificateUnusable",
            Self::CertificateExpired { .. } => "CertificateExpired",
            Self::CertificateUntrusted { .. } => "CertificateUntrusted",
            Self::PasswordUnusable { .. } => "PasswordUnusable",
            Self::PreviousPasswordUnusable { .. } => "PreviousPasswordUnusable",
            Self::Refused { .. } | Self::InvalidSpec(_) => "InvalidSpec",
            Self::PasswordRejected { .. } => "PasswordRejected",
            Self::ConfigRefused(_) => CONFIG_REFUSED,
            Self::CannotGrow(_) => NOT_RESIZED,
            Self::KeyTooLarge(_) => "KeyTooLarge",
            Self::Paused => "Paused",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_problems_the_gravest_is_reported() {
        let name = || "rc-auth".to_owned();
        let password = || Some(Problem::PasswordRejected { pods: 3, name: name(), both: false });
        let refused = || {
            Some(Refusal {
                pod: "rc-0".into(),
                directive: "hz".into(),
                value: "fast".into(),
                answer: "no".into(),
            })
        };
        let small = || Some(CannotGrow::Refused { claim: "data-rc-0".into(), message: "quota".into() });
        let reason = |problem: Option<Problem>| problem.map(|problem| problem.reason());
        let paused = Some(Problem::Paused);
        assert_eq!(reason(reported(paused, password(), refused(), small())), Some("Paused"));
        assert_eq!(reason(reported(None, password(), refused(), small())), Some("PasswordRejected"));
        assert_eq!(reason(reported(None, None, refused(), small())), Some(CONFIG_REFUSED));
        assert_eq!(reason(reported(None, None, None, small())), Some(NOT_RESIZED));
        assert_eq!(reason(reported(None, None, None, None)), None);
        assert_eq!(Problem::PasswordUnusable { name: name() }.reason(), "PasswordUnusable");
    }
}
