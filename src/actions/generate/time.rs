//! When a bundle was made: `SOURCE_DATE_EPOCH`, the clock, and RFC 3339.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

use crate::exit::Failure;
use crate::moment;

/// `SOURCE_DATE_EPOCH` as the time of creation, so that builds which fix it get the same bytes.
pub(super) fn source_date() -> Result<Option<String>, Failure> {
    let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") else { return Ok(None) };
    let seconds =
        text.parse::<i64>().ok().filter(|seconds| (0..=Timestamp::MAX.as_second()).contains(seconds));
    let Some(seconds) = seconds else {
        return Err(Failure::usage(format!(
            "`SOURCE_DATE_EPOCH` is `{text}`, not a number of seconds since 1970"
        ))
        .help("unset it, or set it as `git log -1 --format=%ct` prints it"));
    };
    Ok(Some(moment::format(seconds * 1000)))
}

/// The time by the clock.
pub(super) fn now() -> String {
    // A clock before 1970 says nothing that would be better than 1970.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    moment::format(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
