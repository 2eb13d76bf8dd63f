//! Requests to the API server that failed.

use std::borrow::Cow;

/// A request to the API server failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}")]
pub struct ApiError {
    what: Cow<'static, str>,
    source: Box<kube::Error>,
}

/// For `map_err`: says what failed, as in `during("create the Job")`.
pub fn during(what: impl Into<Cow<'static, str>>) -> impl FnOnce(kube::Error) -> ApiError {
    move |source| ApiError { what: what.into(), source: Box::new(source) }
}

impl ApiError {
    /// What the API server says of an object that it refuses as invalid.
    pub fn invalid(&self) -> Option<&str> {
        match &*self.source {
            kube::Error::Api(status) if status.code == 422 => Some(&status.message),
            _ => None,
        }
    }
}
