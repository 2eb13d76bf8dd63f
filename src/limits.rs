//! What ends work before it is done: its time is over, or the user interrupts it.
//!
//! A command has one deadline. Everything that waits for a cluster, a registry or a program is given [`Limits`], and waits by them.

use std::future::{Future, pending};
use std::time::{Duration, Instant};

use crate::interrupt;

/// The time that work may take, and whether a signal ends it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    begun: Instant,
    limit: Option<Duration>,
    heeds_signals: bool,
}

/// Why work ended before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Over {
    /// There was a signal.
    #[error("interrupted")]
    Interrupted,
    /// This was the time that it had.
    #[error("timed out after {}", span(*.0))]
    TimedOut(Duration),
}

impl Default for Limits {
    fn default() -> Self {
        Self::begin(None)
    }
}

impl Limits {
    /// Work begins now, and may take so long.
    pub fn begin(limit: impl Into<Option<Duration>>) -> Self {
        Self { begun: Instant::now(), limit: limit.into(), heeds_signals: true }
    }

    /// The same work, which goes on when there is a signal, or was one: cleaning up.
    #[must_use]
    pub fn ignoring_signals(self) -> Self {
        Self { heeds_signals: false, ..self }
    }

    /// The same work, which may take so long since it began.
    #[must_use]
    pub fn within(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { limit: limit.into(), ..self }
    }

    /// The time that the work may take.
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// The time since it began.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether the work may go on, for work that does not wait.
    ///
    /// # Errors
    /// It may not.
    pub fn check(&self) -> Result<(), Over> {
        if self.heeds_signals && interrupt::was_signalled() {
            return Err(Over::Interrupted);
        }
        match self.limit {
            Some(limit) if self.begun.elapsed() >= limit => Err(Over::TimedOut(limit)),
            _ => Ok(()),
        }
    }

    /// Does work until it is done, or may not go on.
    ///
    /// # Errors
    /// It was ended before.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Over> {
        let over = async {
            // A limit beyond what a clock can show is none.
            match self.limit.and_then(|limit| Some((self.begun.checked_add(limit)?, limit))) {
                Some((end, limit)) => {
                    tokio::time::sleep_until(end.into()).await;
                    limit
                }
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = interrupt::signalled(), if self.heeds_signals => Err(Over::Interrupted),
            limit = over => Err(Over::TimedOut(limit)),
            done = work => Ok(done),
        }
    }
}

/// A time limit as people give it: `10m`. A second begun counts: part of the time that was given is spent before a cluster is asked.
pub(crate) fn span(limit: Duration) -> String {
    match limit.as_secs() + u64::from(limit.subsec_nanos() > 0) {
        seconds @ 1.. if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        seconds @ 1.. if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_with_its_time_and_endless_time_is_none() {
        let over = Limits::begin(Duration::ZERO);
        assert_eq!(over.check(), Err(Over::TimedOut(Duration::ZERO)));
        assert_eq!(Limits::begin(Duration::MAX).check(), Ok(()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let waited = runtime.block_on(over.run(pending::<()>()));
        assert_eq!(waited, Err(Over::TimedOut(Duration::ZERO)));
        assert_eq!(runtime.block_on(Limits::begin(Duration::MAX).run(async { 1 })), Ok(1));
        assert_eq!(runtime.block_on(Limits::default().run(async { 1 })), Ok(1));
    }

    #[test]
    fn a_timeout_is_told_as_it_was_given() {
        let told = [600, 7_200, 90, 60, 15].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(told, ["10m", "2h", "90 s", "1m", "15 s"]);
        assert_eq!(span(Duration::from_millis(9_400)), "10 s");
    }
}
