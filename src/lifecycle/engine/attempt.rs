//! What a verb has seen on the way to its goal, and when it looks again though nothing is heard.

use std::time::Duration;

use super::super::decide::{Step, Stuck};

/// How often the state is looked at when nothing is heard.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// How often the doctor looks while something is waited for.
pub(super) const EXAMINE: Duration = Duration::from_secs(3);

/// How long before its end a verb looks at everything once more, as long as that is no large part of its time.
const LAST_LOOK: Duration = Duration::from_secs(5);

/// What may keep a verb from its goal.
#[derive(Clone, Debug)]
pub(super) struct Suspicion {
    pub(super) stuck: Stuck,
    /// How long it has to stand before the verb gives up.
    pub(super) patience: Duration,
}

/// The moments are those of the cluster's clock.
#[derive(Debug)]
pub(super) struct Attempt {
    /// When the time of the verb is over.
    pub(super) deadline: Duration,
    /// How long that was when it began.
    pub(super) time: Duration,
    /// When everything is asked for once more, because a watch may have been lost without a word; none once that was done.
    pub(super) last_look: Option<Duration>,
    /// What is suspected, and since when.
    suspected: Option<(Suspicion, Duration)>,
    /// Since when the last version has been up.
    pub(super) well_since: Option<Duration>,
    /// How long it has to stay up.
    pub(super) settle: Duration,
    /// The last version that passed the checks after its hop.
    pub(super) checked: String,
    /// The step that was done last, and when.
    pub(super) done: Option<(Step, Duration)>,
    /// Since when OLM has done nothing though it could, and how long it may.
    pub(super) idle: Option<(Duration, Duration)>,
    /// Whether the doctor looks while something is waited for.
    pub(super) is_examined: bool,
}

impl Attempt {
    pub(super) fn begin(now: Duration, deadline: Duration, settle: Duration) -> Self {
        let time = deadline.saturating_sub(now);
        Self {
            deadline,
            time,
            last_look: (!time.is_zero()).then(|| deadline - LAST_LOOK.min(time / 4)),
            suspected: None,
            well_since: None,
            settle,
            checked: String::new(),
            done: None,
            idle: None,
            is_examined: false,
        }
    }

    /// Keeps what is suspected now. The same cause stands since it was first seen, though its words change as pods come and go.
    pub(super) fn suspect(&mut self, suspicion: Option<Suspicion>, now: Duration) {
        self.suspected = suspicion.map(|new| match self.suspected.take() {
            Some((old, since)) if old.stuck.code == new.stuck.code => (new, since),
            _ => (new, now),
        });
    }

    /// What is suspected.
    pub(super) fn suspicion(&self) -> Option<Stuck> {
        self.suspected.as_ref().map(|(suspicion, _)| suspicion.stuck.clone())
    }

    /// What has stood for so long that the verb gives up.
    pub(super) fn given_up(&self, now: Duration) -> Option<Stuck> {
        let lasts =
            |(suspicion, since): &&(Suspicion, Duration)| now.saturating_sub(*since) >= suspicion.patience;
        self.suspected.as_ref().filter(lasts).map(|(suspicion, _)| suspicion.stuck.clone())
    }

    /// Whether a step was done just now, and shows no effect yet.
    pub(super) fn has_just_done(&self, step: &Step, now: Duration) -> bool {
        self.done.as_ref().is_some_and(|(last, at)| last == step && now < *at + LOOK_AGAIN)
    }

    /// How long to wait for a change before the next look.
    pub(super) fn next_wake(&self, now: Duration) -> Duration {
        let moments = [
            Some(now + LOOK_AGAIN),
            Some(self.deadline),
            self.last_look,
            self.suspected.as_ref().map(|(suspicion, since)| *since + suspicion.patience),
            self.is_examined.then(|| now + EXAMINE),
            // When it is over and something else is waited for meanwhile, nothing is done about it.
            self.idle.map(|(since, patience)| since + patience).filter(|at| *at > now),
            self.well_since.map(|since| since + self.settle),
        ];
        let next = moments.into_iter().flatten().min().unwrap_or(now);
        next.saturating_sub(now).max(Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentence::Help;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn suspicion(code: &'static str, patience: u64) -> Suspicion {
        let stuck = Stuck { code, sentence: code.to_owned(), help: Help::default() };
        Suspicion { stuck, patience: at(patience) }
    }

    #[test]
    fn the_first_moment_that_comes_wakes() {
        let mut attempt = Attempt::begin(at(100), at(400), at(10));
        assert_eq!(attempt.next_wake(at(100)), LOOK_AGAIN);
        attempt.idle = Some((at(95), at(20)));
        assert_eq!(attempt.next_wake(at(100)), at(15));
        attempt.well_since = Some(at(98));
        assert_eq!(attempt.next_wake(at(100)), at(8));
        attempt.is_examined = true;
        assert_eq!(attempt.next_wake(at(100)), EXAMINE);
        assert_eq!(
            attempt.next_wake(at(394)),
            Duration::from_millis(1),
            "the new version has been up for long"
        );
    }

    #[test]
    fn before_the_end_everything_is_looked_at_once_more() {
        let mut attempt = Attempt::begin(at(0), at(60), at(10));
        assert_eq!(attempt.next_wake(at(40)), at(15));
        attempt.last_look = None;
        assert_eq!(attempt.next_wake(at(55)), at(5));
        let short = Attempt::begin(at(0), at(4), at(10));
        assert_eq!(short.next_wake(at(0)), at(3), "at most a quarter of the time");
        let none = Attempt::begin(at(9), at(9), at(10));
        assert_eq!(none.next_wake(at(9)), Duration::from_millis(1));
    }

    #[test]
    fn what_was_idle_does_not_wake_again_and_again() {
        let mut attempt = Attempt::begin(at(0), at(600), at(10));
        attempt.idle = Some((at(0), at(20)));
        assert_eq!(attempt.next_wake(at(20)), LOOK_AGAIN);
    }

    #[test]
    fn the_same_cause_stands_since_it_was_first_seen() {
        let mut attempt = Attempt::begin(at(0), at(600), at(10));
        attempt.suspect(Some(suspicion("a", 60)), at(0));
        attempt.suspect(Some(suspicion("a", 60)), at(40));
        assert!(attempt.given_up(at(59)).is_none());
        assert_eq!(attempt.next_wake(at(50)), at(10));
        assert!(attempt.given_up(at(60)).is_some());
        attempt.suspect(Some(suspicion("b", 60)), at(60));
        assert!(attempt.given_up(at(61)).is_none() && attempt.suspicion().is_some());
        attempt.suspect(None, at(62));
        assert!(attempt.suspicion().is_none());
    }
}
