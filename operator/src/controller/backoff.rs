//! When a cluster is looked at again: after errors later and later, for each cluster by itself.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// The first retry comes after this.
pub const FIRST: Duration = Duration::from_secs(1);
/// And none later than this.
pub const LAST: Duration = Duration::from_secs(300);

/// The failures of one cluster in one controller.
#[derive(Debug, Default)]
pub struct Backoff(AtomicU32);

impl Backoff {
    /// It went well.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// It failed: how long to wait. Twice as long each time, up to `most`, give or take a tenth.
    pub fn failed(&self, most: Duration) -> Duration {
        let failures = self.0.fetch_add(1, Ordering::Relaxed).min(16);
        jittered((FIRST * 2_u32.pow(failures)).min(most))
    }
}

/// Give or take a tenth, so that five hundred clusters do not come due together.
pub fn jittered(time: Duration) -> Duration {
    // The keys of the standard hasher are random for each state: luck enough for this.
    let luck = RandomState::new().hash_one(0) % 2001;
    time.mul_f64(0.9 + luck as f64 / 10_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_last_and_starts_again() {
        let backoff = Backoff::default();
        let near = |time: Duration, seconds: u64| {
            let expected = Duration::from_secs(seconds);
            assert!(
                time >= expected.mul_f64(0.9) && time <= expected.mul_f64(1.1001),
                "{time:?} for {seconds}"
            );
        };
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            near(backoff.failed(LAST), seconds);
        }
        backoff.clear();
        near(backoff.failed(LAST), 1);
        near(backoff.failed(FIRST), 1);
    }
}
