//! Each exchange with an API server: the request gets the credentials and is told to [`crate::requests`]; the answer says what time it is,
//! ends somewhere, and is a Status if it is an error.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Request, Response};
use http_body::Body;
use kube::client::Body as Asked;
use tower_layer::Layer;
use tower_service::Service;

use super::as_status::{Answer, as_status};
use super::bounded::Ending;
use super::clock::ServerClock;
use super::credentials::Header;
use crate::requests;

/// What is done around the exchanges of a client.
#[derive(Clone)]
pub(super) struct Exchanges {
    /// The address of the server, which requests do not have yet here.
    pub(super) server: String,
    /// Learns the time.
    pub(super) clock: Arc<ServerClock>,
    /// The credentials.
    pub(super) header: Header,
}

impl<S> Layer<S> for Exchanges {
    type Service = Exchanging<S>;

    fn layer(&self, inner: S) -> Exchanging<S> {
        Exchanging { inner, exchanges: self.clone() }
    }
}

/// A client with that around its exchanges.
pub(super) struct Exchanging<S> {
    inner: S,
    exchanges: Exchanges,
}

impl<S, B> Service<Request<Asked>> for Exchanging<S>
where
    S: Service<Request<Asked>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Response<Answer<Ending<B>>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Asked>) -> Self::Future {
        let Exchanges { server, clock, header } = self.exchanges.clone();
        let (method, url) = (request.method().clone(), format!("{server}{}", request.uri()));
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        if let Some(header) = header.read().unwrap_or_else(PoisonError::into_inner).clone() {
            request.headers_mut().insert(AUTHORIZATION, header);
        }
        let begun = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let bounded = {
                let answer = answer.await;
                if let Ok(answer) = &answer {
                    clock.read(answer.headers());
                }
                let status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
                requests::tell(&method, &url, status, begun.elapsed());
                answer?.map(|body| Ending::of(body, is_watch))
            };
            Ok(as_status(bounded).await)
        })
    }
}
