//! The moment of a collection: it is as old as the newest time in it. Events carry the clocks of nodes, which go wrong, so one of
//! them does not decide it alone.

use std::collections::BTreeMap;

use serde_json::Value;

use super::moment;
use super::observation::Doc;

/// How long Kubernetes keeps an Event that is not repeated, in milliseconds: a single one that is this much later than everything
/// else in a collection has a wrong clock.
const KEPT: i64 = 3_600_000;
/// How far the clocks of a cluster may be apart.
const SKEW: i64 = 60_000;

/// The times that the objects of a collection mention.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// The newest time of an object that is no Event.
    objects: i64,
    /// When each Event was seen last, and when the API server stored it, by namespace and name: collections have them twice.
    events: BTreeMap<(String, String), (i64, i64)>,
}

impl Clock {
    /// Remembers the times of an object.
    pub(super) fn add(&mut self, object: &Value) {
        if object["kind"] == "Event" {
            let object = Doc(object);
            self.events.insert((object.namespace().to_owned(), object.name().to_owned()), event(object));
        } else {
            self.objects = self.objects.max(latest(object));
        }
    }

    /// The newest time that can be believed; 0 if there is none.
    pub(super) fn newest(&self) -> i64 {
        let mut events: Vec<(i64, i64)> = self.events.values().copied().collect();
        events.sort_unstable();
        let mut newest = self.objects;
        while let Some((seen, stored)) = events.pop() {
            let next = events.last().map_or(0, |(seen, _)| *seen).max(newest);
            if next == 0 || seen - next <= KEPT {
                return newest.max(seen);
            }
            if stored - next <= KEPT {
                newest = newest.max(stored);
            }
        }
        newest
    }
}

/// When an Event was seen last, by the clock of the API server, and when it was stored.
fn event(event: Doc<'_>) -> (i64, i64) {
    let first_of = |paths: &[&str]| paths.iter().filter_map(|path| event.moment(path)).max();
    let stored = event.created().unwrap_or(0);
    let first = first_of(&["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let last =
        first_of(&["/lastTimestamp", "/deprecatedLastTimestamp", "/series/lastObservedTime"]).or(first);
    // It is stored as soon as it happens: a component with a clock that is ahead is ahead by the difference.
    let ahead = first.filter(|_| stored > 0).map_or(0, |first| first - stored);
    let last = last.unwrap_or(0) - if ahead > SKEW { ahead } else { 0 };
    (last.max(stored), stored)
}

/// The newest time in a document.
fn latest(value: &Value) -> i64 {
    match value {
        // Anything longer is text, and not a time.
        Value::String(text) if (20..=35).contains(&text.len()) && text.as_bytes()[4] == b'-' => {
            moment::parse(text).unwrap_or(0)
        }
        Value::Array(all) => all.iter().map(latest).max().unwrap_or(0),
        Value::Object(all) => {
            // Certificates and leases name moments to come.
            let past = all
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "certsRotateAt" | "notAfter" | "spec"));
            past.map(|(_, value)| latest(value)).max().unwrap_or(0)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(objects: &[Value], expected: &str) {
        let mut clock = Clock::default();
        objects.iter().for_each(|object| clock.add(object));
        assert_eq!(moment::format(clock.newest()), expected);
    }

    fn pod() -> Value {
        json!({"kind": "Pod", "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}})
    }

    fn event(name: &str, stored: &str, first: &str, last: &str) -> Value {
        let metadata = json!({"name": name, "creationTimestamp": stored});
        json!({"kind": "Event", "metadata": metadata, "firstTimestamp": first, "lastTimestamp": last})
    }

    #[test]
    fn events_say_when_a_collection_was_made() {
        let seen = event("a", "2026-01-01T00:01:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:40:00Z");
        check(&[pod(), seen], "2026-01-01T00:40:00Z");
        // They are all that is left of what happened: two of them agree.
        let late = |name| event(name, "2026-01-09T00:01:00Z", "2026-01-09T00:01:00Z", "2026-01-09T00:40:00Z");
        check(&[pod(), late("a"), late("b")], "2026-01-09T00:40:00Z");
    }

    #[test]
    fn the_clock_of_a_component_that_is_ahead_is_put_right() {
        let ahead = event("a", "2026-01-01T00:01:00Z", "2026-01-01T00:31:00Z", "2026-01-01T00:35:00Z");
        check(&[pod(), ahead], "2026-01-01T00:05:00Z");
    }

    #[test]
    fn one_event_in_the_future_or_the_far_past_moves_nothing() {
        let future = event("a", "2026-01-01T00:01:00Z", "2026-01-01T00:01:00Z", "2036-01-01T00:00:00Z");
        check(&[pod(), future], "2026-01-01T00:01:00Z");
        let unstored = event("a", "", "2036-01-01T00:00:00Z", "2036-01-01T00:00:00Z");
        check(&[pod(), unstored], "2026-01-01T00:00:00Z");
        let past = event("a", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z");
        check(&[pod(), past], "2026-01-01T00:00:00Z");
    }
}
