//! Each exchange with an API server: the answer says what time it is, and the request is told to [`crate::requests`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{Request, Response};
use kube::client::Body as Asked;
use tower_layer::Layer;
use tower_service::Service;

use super::clock::ServerClock;
use crate::requests;

/// Looks at the exchanges of a client.
#[derive(Clone)]
pub(super) struct Exchanges {
    /// The address of the server, which requests do not have yet here; neither have they credentials.
    pub(super) server: String,
    /// Learns the time.
    pub(super) clock: Arc<ServerClock>,
}

impl<S> Layer<S> for Exchanges {
    type Service = Observed<S>;

    fn layer(&self, inner: S) -> Observed<S> {
        Observed { inner, exchanges: self.clone() }
    }
}

/// A client whose exchanges are looked at.
pub(super) struct Observed<S> {
    inner: S,
    exchanges: Exchanges,
}

impl<S, B> Service<Request<Asked>> for Observed<S>
where
    S: Service<Request<Asked>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Asked>) -> Self::Future {
        let Exchanges { server, clock } = self.exchanges.clone();
        let (method, url) = (request.method().clone(), format!("{server}{}", request.uri()));
        let begun = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if let Ok(answer) = &answer {
                clock.read(answer.headers());
            }
            let status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
            requests::tell(&method, &url, status, begun.elapsed());
            answer
        })
    }
}
