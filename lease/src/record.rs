//! The holder of the Lease, and when others may take it: pure, with the time given.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;

/// What a Lease says; any change of it is a sign of life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    holder: String,
    duration: Duration,
    version: String,
}

impl Record {
    /// What this Lease says.
    pub fn of(lease: &Lease) -> Self {
        let spec = lease.spec.as_ref();
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds).and_then(|s| u64::try_from(s).ok());
        Self {
            holder: spec.and_then(|spec| spec.holder_identity.clone()).unwrap_or_default(),
            duration: Duration::from_secs(seconds.unwrap_or(0)),
            version: lease.metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}

/// What one may do with the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is one's own, or nobody's, or has expired.
    Take,
    /// Somebody holds it.
    Wait,
}

/// The last record seen, and when it was first seen.
#[derive(Clone, Debug, Default)]
pub struct Seen(Option<(Record, Instant)>);

impl Seen {
    /// Looks at the record as it is now.
    pub fn look(&mut self, record: Record, now: Instant) {
        if self.0.as_ref().is_none_or(|(seen, _)| *seen != record) {
            self.0 = Some((record, now));
        }
    }

    /// Who holds it, as far as is known; empty when nobody does.
    pub fn holder(&self) -> &str {
        self.0.as_ref().map_or("", |(record, _)| &record.holder)
    }

    /// Whether `identity` may take it. A holder that asked for a longer duration than `duration` gets it.
    pub fn verdict(&self, identity: &str, duration: Duration, now: Instant) -> Verdict {
        match &self.0 {
            None => Verdict::Take,
            Some((record, _)) if record.holder.is_empty() || record.holder == identity => Verdict::Take,
            Some((record, since)) if now.duration_since(*since) > record.duration.max(duration) => {
                Verdict::Take
            }
            Some(_) => Verdict::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DURATION: Duration = Duration::from_secs(15);

    fn record(holder: &str, version: u32) -> Record {
        Record { holder: holder.into(), duration: DURATION, version: version.to_string() }
    }

    #[test]
    fn a_lease_that_was_given_back_is_free_at_once() {
        let now = Instant::now();
        let mut seen = Seen::default();
        seen.look(record("other", 1), now);
        assert_eq!(seen.verdict("me", DURATION, now), Verdict::Wait);
        seen.look(record("", 2), now);
        assert_eq!(seen.verdict("me", DURATION, now), Verdict::Take);
    }

    #[test]
    fn a_lease_whose_holder_died_is_free_after_its_duration_as_seen_here() {
        let now = Instant::now();
        let mut seen = Seen::default();
        seen.look(record("other", 1), now);
        assert_eq!(seen.verdict("me", DURATION, now + DURATION), Verdict::Wait);
        assert_eq!(seen.verdict("me", DURATION, now + DURATION + Duration::from_millis(1)), Verdict::Take);
    }

    proptest! {
        /// Three replicas look, take, renew, freeze and thaw at any times: never do two believe that they lead.
        #[test]
        fn never_two_leaders(turns in prop::collection::vec((0usize..3, 0u64..9000), 1..400)) {
            let start = Instant::now();
            let mut now = start;
            // The Lease itself, and what each replica has seen and believes.
            let (mut lease, mut version) = (record("", 0), 0);
            let mut seen = vec![Seen::default(); 3];
            let mut until: Vec<Option<Instant>> = vec![None; 3];
            let names = ["a", "b", "c"];
            for (replica, pause) in turns {
                now += Duration::from_millis(pause);
                seen[replica].look(lease.clone(), now);
                if seen[replica].verdict(names[replica], DURATION, now) == Verdict::Take {
                    version += 1;
                    lease = record(names[replica], version);
                    seen[replica].look(lease.clone(), now);
                    until[replica] = Some(now + DURATION);
                }
                let leaders = until.iter().filter(|until| until.is_some_and(|until| now < until)).count();
                prop_assert!(leaders <= 1);
            }
        }
    }
}
