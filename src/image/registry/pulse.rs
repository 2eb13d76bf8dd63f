//! Whether a request still moves: a large body on a slow line takes long, and is no registry that does not answer.
//!
//! `reqwest` measures from the start of a request.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use reqwest::{Body, Request};

/// When a request moved last.
#[derive(Clone)]
pub(super) struct Pulse(Arc<Mutex<Instant>>);

impl Pulse {
    /// The pulse of a request that starts now.
    pub(super) fn of(request: &mut Request) -> Self {
        let pulse = Self(Arc::new(Mutex::new(Instant::now())));
        let body = request.body_mut();
        *body = body.take().map(|body| Body::wrap(Beating { body, pulse: pulse.clone() }));
        pulse
    }

    /// Waits until nothing has moved for so long.
    pub(super) async fn stops(&self, silence: Duration) {
        loop {
            let end = *self.last() + silence;
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end.into()).await;
        }
    }

    fn last(&self) -> MutexGuard<'_, Instant> {
        // A time is written whole, so a panic elsewhere leaves none half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request's body, whose pulse can be felt.
struct Beating {
    body: Body,
    pulse: Pulse,
}

impl http_body::Body for Beating {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        *self.pulse.last() = Instant::now();
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
