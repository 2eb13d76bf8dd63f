//! When pods last came, went or were not ready.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use crate::plan::Pod;

/// Between two pods of a drain or of a rolling update there is less time than this.
const QUIET: Duration = Duration::from_secs(60);

/// What was seen of the pods of one cluster since this process leads.
#[derive(Debug, Default)]
pub(super) struct Unrest {
    ready: BTreeSet<String>,
    since: Option<Instant>,
}

impl Unrest {
    /// Whether pods came, went or were not ready less than a minute before `now`. A new leader does not know what happened before it.
    pub(super) fn lasts(&mut self, pods: &[Pod], now: Instant) -> bool {
        let ready = pods.iter().filter(|pod| pod.containers_ready && !pod.terminating);
        let ready: BTreeSet<String> = ready.map(|pod| pod.uid.clone()).collect();
        if self.ready != ready {
            (self.ready, self.since) = (ready, Some(now));
        }
        let since = *self.since.get_or_insert(now);
        self.ready.len() < pods.len() || now.duration_since(since) < QUIET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_quiet_a_minute_after_the_last_of_them_changed() {
        let pod = |uid: &str| Pod { uid: uid.into(), containers_ready: true, ..Pod::default() };
        let (mut unrest, begun) = (Unrest::default(), Instant::now());
        let mut lasts = |pods: &[Pod], second| unrest.lasts(pods, begun + Duration::from_secs(second));
        let (both, replaced) = ([pod("a"), pod("b")], [pod("a"), pod("c")]);
        assert!(lasts(&both, 0) && lasts(&both, 59), "what was before is not known");
        assert!(!lasts(&both, 60));
        let leaving = [pod("a"), Pod { terminating: true, ..pod("b") }];
        assert!(lasts(&leaving, 100) && lasts(&leaving, 200));
        assert!(lasts(&replaced, 201) && lasts(&replaced, 260) && !lasts(&replaced, 261));
        let starting = [pod("a"), Pod { containers_ready: false, ..pod("c") }];
        assert!(lasts(&starting, 300) && lasts(&starting, 400));
        assert!(lasts(&replaced, 401) && !lasts(&replaced, 461));
    }
}
