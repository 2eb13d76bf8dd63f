//! Events of image transfers, for progress bars and logs.

use std::time::Duration;

use super::digest::Digest;

/// Is told what happens during a transfer, from several threads at once.
pub trait Progress: Send + Sync {
    /// Something happened.
    fn happened(&self, event: &Event<'_>);
}

/// Shows nothing.
impl Progress for () {
    fn happened(&self, _: &Event<'_>) {}
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'e> {
    /// The bytes of a blob start to move.
    Started {
        /// The blob.
        digest: Digest,
        /// How many bytes it has.
        size: u64,
        /// Where they go.
        direction: Direction,
    },
    /// This many bytes of a blob have moved, counted from its start: after a fault, fewer than before.
    Moved {
        /// The blob.
        digest: Digest,
        /// The bytes.
        bytes: u64,
    },
    /// A blob is in place.
    Ended {
        /// The blob.
        digest: Digest,
        /// How many bytes it has.
        size: u64,
        /// How it came there.
        outcome: Outcome,
    },
    /// A name in a registry leads to the image now.
    Tagged {
        /// The name.
        reference: &'e str,
    },
    /// Nothing moves any more, for a reason that is told elsewhere.
    Stopped,
    /// A fault that may pass; the next attempt comes after a pause.
    Waiting {
        /// What went wrong, and where.
        reason: &'e str,
        /// How long the pause is.
        pause: Duration,
    },
}

/// Where bytes move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To a registry.
    Up,
    /// From a registry.
    Down,
}

/// How a blob came to where it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It was sent.
    Uploaded,
    /// It would have been sent.
    WouldUpload,
    /// It was received.
    Downloaded,
    /// It was there.
    Exists,
    /// It was in the local cache, and need not be received.
    Cached,
    /// The registry took it from another repository of its own.
    Mounted,
}
