//! Answers of an API server that end: what is larger than any sensible list is not read into memory.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};

/// The largest answer that is read, and the largest event of a watch, in bytes. A page of a list has 500 objects at most, and etcd none that is
/// larger than 1.5 MiB.
const MAX_ANSWER: usize = 256 << 20;

/// An answer that is larger.
#[derive(Debug, thiserror::Error)]
#[error("its answer is larger than {} MiB", MAX_ANSWER >> 20)]
pub(super) struct TooLarge;

/// A body that is read up to the largest size; of a watch, each line.
pub(super) struct Ending<B> {
    body: B,
    read: usize,
    is_watch: bool,
}

impl<B> Ending<B> {
    pub(super) fn of(body: B, is_watch: bool) -> Self {
        Self { body, read: 0, is_watch }
    }
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
