//! What waits in memory for clients, over all connections: a client that does not read keeps the piece of an answer that it was sent
//! last, and there may be many of both.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// The bytes that wait for clients, and those who wait for them to become fewer.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    bytes: AtomicUsize,
    waiting: Mutex<Vec<Waker>>,
}

impl Unread {
    /// Above this no answer goes on until others have been read, or their clients were disconnected.
    const MOST: usize = 64 << 20;
    /// From here on clients that do not read are disconnected soon.
    const MANY: usize = 16 << 20;

    /// Whether there is so much that clients that do not read are let go early.
    pub(crate) fn is_much(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= Self::MANY
    }

    /// Ready when there is room for another piece.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        if self.bytes.load(Ordering::SeqCst) < Self::MOST {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        // Room may have been made before the waker was there.
        if self.bytes.load(Ordering::SeqCst) < Self::MOST { Poll::Ready(()) } else { Poll::Pending }
    }

    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    fn remove(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::SeqCst);
        if before >= Self::MOST && before - bytes < Self::MOST {
            let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

/// The piece of an answer that its client was sent last and has not read yet.
#[derive(Debug)]
pub(crate) struct Piece {
    all: Arc<Unread>,
    bytes: usize,
}

impl Piece {
    pub(crate) fn none(all: Arc<Unread>) -> Self {
        Self { all, bytes: 0 }
    }

    /// The client has taken the last piece, and is sent one of so many bytes.
    pub(crate) fn replace(&mut self, bytes: usize) {
        self.all.remove(self.bytes);
        self.all.add(bytes);
        self.bytes = bytes;
    }

    pub(crate) fn all(&self) -> &Unread {
        &self.all
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.all.remove(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[test]
    fn answers_wait_until_others_are_read() {
        let all = Arc::new(Unread::default());
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let cx = Context::from_waker(&waker);
        let mut pieces: Vec<Piece> = (0..4).map(|_| Piece::none(all.clone())).collect();
        assert!(all.poll_room(&cx).is_ready() && !all.is_much());
        pieces.iter_mut().for_each(|piece| piece.replace(Unread::MOST / 4));
        assert!(all.poll_room(&cx).is_pending() && all.is_much());
        assert!(!woken.0.load(Ordering::SeqCst));
        // Taking the next piece gives the last one back, and so does the end of the connection.
        pieces[0].replace(0);
        assert!(woken.0.load(Ordering::SeqCst) && all.poll_room(&cx).is_ready());
        drop(pieces);
        assert!(!all.is_much());
        assert_eq!(all.bytes.load(Ordering::SeqCst), 0);
    }
}
