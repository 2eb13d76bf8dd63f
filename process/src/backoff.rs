//! When an object is reconciled again after errors: later and later, for each object by itself.

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use kube::{ResourceExt, runtime::controller::Action};
use tracing::warn;

use crate::telemetry::chain;

/// The first retry comes after this.
pub const FIRST: Duration = Duration::from_secs(1);
/// And none later than this.
pub const LAST: Duration = Duration::from_secs(300);

/// The failures of one object in one controller.
#[derive(Debug, Default)]
pub struct Backoff(AtomicU32);

impl Backoff {
    /// It went well.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// It failed: how long to wait. Twice as long each time, up to `most`, give or take a tenth.
    pub fn failed(&self, most: Duration) -> Duration {
        let wait = FIRST * 2_u32.pow(self.0.load(Ordering::Relaxed));
        // Many failures that are retried soon do not delay the retry of one that is not.
        if wait < most {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        jittered(wait.min(most))
    }
}

/// The failures of all objects of a controller.
#[derive(Debug, Default)]
pub struct Backoffs(Mutex<HashMap<String, Backoff>>);

impl Backoffs {
    /// Forgets the failures of an object: it was reconciled, or is being deleted.
    pub fn clear(&self, object: &impl ResourceExt) {
        self.lock().remove(&object.uid().unwrap_or_default());
    }

    /// Logs the failure of a reconcile, and says when the next one is due: see [`Backoff::failed`].
    pub fn retry(&self, object: &impl ResourceExt, error: &dyn std::error::Error) -> Action {
        let (namespace, name) = (object.namespace(), object.name_any());
        let after = self.failed(&object.uid().unwrap_or_default());
        warn!(namespace, name, error = chain(error), seconds = after.as_secs_f32(), "will be retried");
        Action::requeue(after)
    }

    fn failed(&self, uid: &str) -> Duration {
        self.lock().entry(uid.to_owned()).or_default().failed(LAST)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Backoff>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Give or take a tenth, so that five hundred objects do not come due together.
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

    #[test]
    fn failures_that_are_retried_soon_delay_no_other() {
        let backoff = Backoff::default();
        let ten = Duration::from_secs(10);
        for _ in 0..100 {
            backoff.failed(ten);
        }
        assert!(backoff.failed(LAST) < Duration::from_secs(18));
    }

    #[test]
    fn each_object_has_its_own_failures() {
        let backoffs = Backoffs::default();
        backoffs.failed("a");
        assert!(backoffs.failed("a") > Duration::from_millis(1700));
        assert!(backoffs.failed("b") < Duration::from_millis(1300));
        let mut object = k8s_openapi::api::core::v1::Pod::default();
        object.metadata.uid = Some("a".into());
        backoffs.clear(&object);
        assert!(backoffs.failed("a") < Duration::from_millis(1300));
    }
}
