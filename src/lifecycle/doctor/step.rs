//! How a part of an operator is doing.

use super::Cause;

/// Done, on its way, or stuck for a cause.
pub(super) enum Step {
    Done,
    Progressing,
    Found(Box<Cause>),
}

impl Step {
    pub(super) fn found(cause: Cause) -> Self {
        Self::Found(Box::new(cause))
    }

    pub(super) fn cause(self) -> Option<Cause> {
        match self {
            Self::Found(cause) => Some(*cause),
            _ => None,
        }
    }
}
