//! Requests to an API server are told to [`crate::requests`].

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{Request, Response};
use kube::client::Body as Asked;
use tower_layer::Layer;
use tower_service::Service;

use crate::requests;

/// Shows the requests of a client, where the user wants to see them; with the address of the server, which requests do not
/// have yet here, and neither have they credentials.
pub(super) struct Shown(pub(super) String);

impl<S> Layer<S> for Shown {
    type Service = Showing<S>;

    fn layer(&self, inner: S) -> Showing<S> {
        Showing { inner, server: self.0.clone() }
    }
}

/// A client that shows its requests.
pub(super) struct Showing<S> {
    inner: S,
    server: String,
}

impl<S, B> Service<Request<Asked>> for Showing<S>
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
        let (method, url) = (request.method().clone(), format!("{}{}", self.server, request.uri()));
        let begun = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
            requests::tell(&method, &url, status, begun.elapsed());
            answer
        })
    }
}
