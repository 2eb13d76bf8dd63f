//! Moments as Kubernetes writes them, in milliseconds since 1970.

use jiff::Timestamp;

/// Reads `2026-11-21T10:26:04Z`, with or without a fraction of a second or an offset.
///
/// ```
/// use olmkit::moment::parse;
/// assert_eq!(parse("1970-01-02T00:00:01Z"), Some(86_401_000));
/// assert_eq!(parse("1970-01-01T01:00:00.5+01:00"), Some(500));
/// assert_eq!(parse("2026-11-21T10:26:04"), None);
/// assert_eq!(parse("2026-02-31T00:00:00Z"), None);
/// ```
pub fn parse(text: &str) -> Option<i64> {
    text.parse().ok().map(Timestamp::as_millisecond)
}

/// Writes a moment as Kubernetes does, without its fraction of a second; one that is too late for the calendar as the last that it has.
///
/// ```
/// use olmkit::moment::format;
/// assert_eq!(format(86_401_999), "1970-01-02T00:00:01Z");
/// ```
pub fn format(at: i64) -> String {
    let seconds = at.div_euclid(1000).clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).to_string()
}
