//! Answers of an API server that end: what is larger than any sensible list is not read into memory.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use kube::client::Body as Asked;
use tower_layer::Layer;
use tower_service::Service;

/// The largest answer that is read, and the largest event of a watch, in bytes. A page of a list has 500 objects at most, and etcd none that is
/// larger than 1.5 MiB.
const MAX_ANSWER: usize = 256 << 20;

/// An answer that is larger.
#[derive(Debug, thiserror::Error)]
#[error("its answer is larger than {} MiB", MAX_ANSWER >> 20)]
pub(super) struct TooLarge;

/// Bounds the answers of a client.
pub(super) struct Bound;

impl<S> Layer<S> for Bound {
    type Service = Bounded<S>;

    fn layer(&self, inner: S) -> Bounded<S> {
        Bounded(inner)
    }
}

/// A client with bounded answers.
pub(super) struct Bounded<S>(S);

impl<S, B> Service<Request<Asked>> for Bounded<S>
where
    S: Service<Request<Asked>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<Ending<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Asked>) -> Self::Future {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let answer = self.0.call(request);
        Box::pin(async move { Ok(answer.await?.map(|body| Ending { body, read: 0, is_watch })) })
    }
}

/// A body that is read up to the largest size; of a watch, each line.
pub(super) struct Ending<B> {
    body: B,
    read: usize,
    is_watch: bool,
}

impl<B> Body for Ending<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            let line = data.iter().rev().position(|byte| *byte == b'\n').filter(|_| self.is_watch);
            self.read = line.unwrap_or_else(|| self.read.saturating_add(data.len()));
            if self.read > MAX_ANSWER {
                return Poll::Ready(Some(Err(Box::new(TooLarge))));
            }
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }
}
