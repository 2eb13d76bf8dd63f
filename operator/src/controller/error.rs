//! Why a reconcile failed, and the door by which controllers ask the API server: every call names its verb and its kind, and has
//! to end in time.

use std::time::Duration;

use operator_lease::Leadership;

use crate::server::act::ActError;
use operator_process::backoff::{FIRST, LAST};

/// How long one call of the API server may take.
const API_DEADLINE: Duration = Duration::from_secs(5);
/// The longest wait for an API server or a Redis that does not answer: nothing tells when it is back.
const LONGEST_UNAVAILABLE: Duration = Duration::from_secs(10);

/// Why a reconcile failed. The class decides when it is tried again: see the table in docs/redis-operator.md.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReconcileError {
    /// The API server refused, or could not be reached.
    #[error("the API server refused to {verb} {kind}")]
    Api {
        /// What was tried.
        verb: &'static str,
        /// With what.
        kind: &'static str,
        /// What it said.
        source: Box<kube::Error>,
    },
    /// The API server did not answer.
    #[error("the API server did not answer in time to {verb} {kind}")]
    ApiTimeout {
        /// What was tried.
        verb: &'static str,
        /// With what.
        kind: &'static str,
    },
    /// A plan was broken off.
    #[error("could not apply the plan")]
    Act(#[from] ActError),
    /// An object cannot be written as JSON.
    #[error("cannot write {kind} as JSON")]
    Encode {
        /// What it is.
        kind: &'static str,
        /// Why.
        source: serde_json::Error,
    },
}

impl ReconcileError {
    /// What the API server answered: a code of HTTP, and a sentence.
    pub(super) fn answer(&self) -> Option<(u16, &str)> {
        match self {
            Self::Api { source, .. } => match &**source {
                kube::Error::Api(status) => Some((status.code, &status.message)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether an object has changed since it was read.
    pub fn is_conflict(&self) -> bool {
        self.answer().is_some_and(|(code, _)| code == 409)
    }

    /// The class, as metrics have it.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Api { .. } => match self.answer() {
                Some((409, _)) => "conflict",
                Some(_) => "api_refused",
                None => "api_unreachable",
            },
            Self::ApiTimeout { .. } => "api_timeout",
            Self::Act(ActError::NotLeading) => "not_leading",
            Self::Act(ActError::Replaced { .. }) => "member_replaced",
            Self::Act(ActError::Changed { .. }) => "member_changed",
            Self::Act(ActError::Unreachable { .. }) => "redis_unreachable",
            Self::Act(_) => "redis_refused",
            Self::Encode { .. } => "encode",
        }
    }

    /// The longest wait before the next try. Nodes that have not heard of each other's news yet refuse what they would
    /// take a moment later, so that is short.
    pub fn longest_wait(&self) -> Duration {
        match self {
            Self::Act(ActError::Replaced { .. } | ActError::Changed { .. } | ActError::Refused { .. }) => {
                FIRST
            }
            Self::Act(_) | Self::ApiTimeout { .. } => LONGEST_UNAVAILABLE,
            Self::Api { .. } => match self.answer() {
                Some((409, _)) => FIRST,
                None | Some((429 | 500.., _)) => LONGEST_UNAVAILABLE,
                Some(_) => LAST,
            },
            Self::Encode { .. } => LAST,
        }
    }
}

/// A call of the API server, which has to answer in time. A write needs the same permit as a command to Redis: it does not
/// begin if the lease could be lost before it is answered.
pub(super) async fn call<T>(
    verb: &'static str,
    kind: &'static str,
    work: impl Future<Output = Result<T, kube::Error>>,
    leadership: &Leadership,
) -> Result<T, ReconcileError> {
    let reads = ["get", "list"].contains(&verb);
    if !reads && !leadership.holds_for(API_DEADLINE) {
        return Err(ActError::NotLeading.into());
    }
    match tokio::time::timeout(API_DEADLINE, work).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(ReconcileError::Api { verb, kind, source: Box::new(source) }),
        Err(_) => Err(ReconcileError::ApiTimeout { verb, kind }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_the_lease_nothing_is_written() {
        let answer = async { Ok(()) };
        let refused = call("delete", "Pod", answer, &Leadership::default()).await.unwrap_err();
        assert!(matches!(refused, ReconcileError::Act(ActError::NotLeading)), "{refused}");
        assert!(call("get", "Pod", async { Ok(()) }, &Leadership::default()).await.is_ok());
        assert!(call("delete", "Pod", async { Ok(()) }, &Leadership::unopposed()).await.is_ok());
    }

    #[test]
    fn an_api_server_that_was_away_is_asked_again_within_ten_seconds() {
        let api = |source: kube::Error| ReconcileError::Api {
            verb: "patch",
            kind: "RedisCluster/status",
            source: Box::new(source),
        };
        let answered = |code: u16| {
            let status = kube::core::Status { code, ..kube::core::Status::default() };
            api(kube::Error::Api(Box::new(status)))
        };
        let timeout = ReconcileError::ApiTimeout { verb: "patch", kind: "RedisCluster/status" };
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let unreachable = api(kube::Error::ReadEvents(refused));
        for error in [timeout, unreachable, answered(429), answered(500), answered(503)] {
            assert_eq!(error.longest_wait(), Duration::from_secs(10), "{error:?}");
        }
        assert_eq!(answered(403).longest_wait(), LAST);
        assert_eq!(answered(409).longest_wait(), FIRST);
    }
}
