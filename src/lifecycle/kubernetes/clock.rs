//! The time of day by the clock of the API server: it says so in every answer. The clock of this machine may be wrong.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use http::header::{DATE, HeaderMap};

/// Clocks that differ by less, in milliseconds, are the same: an answer says the second, and takes its time.
const SAME: i64 = 2_000;

/// How far the API server's clock is ahead of ours.
#[derive(Debug, Default)]
pub(super) struct ServerClock {
    ahead: AtomicI64,
    is_known: AtomicBool,
    was_asked: AtomicBool,
    has_begun: AtomicBool,
}

impl ServerClock {
    /// Whether the server has not said what time it is, and this is the first question about it.
    pub(super) fn is_worth_asking(&self) -> bool {
        !self.is_known.load(Ordering::Relaxed) && !self.was_asked.swap(true, Ordering::Relaxed)
    }

    /// Whether an answer has begun to arrive, whatever it says.
    pub(super) fn has_begun_to_answer(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Milliseconds since 1970, by the server's clock; by our own as long as that is not known.
    pub(super) fn now(&self) -> i64 {
        own() + self.ahead.load(Ordering::Relaxed)
    }

    /// Reads the time from the headers of an answer that has just come.
    pub(super) fn read(&self, headers: &HeaderMap) {
        self.has_begun.store(true, Ordering::Relaxed);
        self.hear(headers, own());
    }

    fn hear(&self, headers: &HeaderMap, own: i64) {
        let Some(date) = headers.get(DATE).and_then(|date| date.to_str().ok()) else { return };
        let Ok(date) = httpdate::parse_http_date(date) else { return };
        let ahead = milliseconds(date) - own;
        self.ahead.store(if ahead.abs() < SAME { 0 } else { ahead }, Ordering::Relaxed);
        self.is_known.store(true, Ordering::Relaxed);
    }
}

/// The time by our own clock.
fn own() -> i64 {
    milliseconds(SystemTime::now())
}

fn milliseconds(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_time_is_that_of_the_server() {
        let clock = ServerClock::default();
        let hear = |date: &'static str, own: i64| {
            clock.hear(&HeaderMap::from_iter([(DATE, HeaderValue::from_static(date))]), own);
            clock.ahead.load(Ordering::Relaxed)
        };
        assert_eq!(hear("yesterday", 0), 0);
        assert!(clock.is_worth_asking() && !clock.is_worth_asking());
        assert_eq!(hear("Thu, 01 Jan 1970 00:20:00 GMT", 1_200_900), 0);
        assert!(clock.is_known.load(Ordering::Relaxed));
        assert_eq!(hear("Thu, 01 Jan 1970 00:20:00 GMT", 480_000), 720_000);
        assert_eq!(hear("Thu, 01 Jan 1970 00:20:00 GMT", 1_920_000), -720_000);
    }
}
