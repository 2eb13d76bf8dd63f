//! When a bundle was made: `SOURCE_DATE_EPOCH`, the clock, and RFC 3339.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::exit::Failure;

/// The last second of the year 9999.
const LAST: i64 = 253_402_300_799;

/// `SOURCE_DATE_EPOCH` as the time of creation, so that builds which fix it get the same bytes.
pub(super) fn source_date() -> Result<Option<String>, Failure> {
    let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") else { return Ok(None) };
    let seconds = text.parse::<i64>().ok().filter(|seconds| (0..=LAST).contains(seconds));
    let Some(seconds) = seconds else {
        return Err(Failure::misuse(format!(
            "`SOURCE_DATE_EPOCH` is `{text}`, not a number of seconds since 1970"
        ))
        .help("unset it, or set it as `git log -1 --format=%ct` prints it"));
    };
    Ok(Some(rfc3339(seconds)))
}

/// The time by the clock.
pub(super) fn now() -> String {
    // A clock before 1970 says nothing that would be better than 1970.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    rfc3339(i64::try_from(since.as_secs()).unwrap_or(LAST).min(LAST))
}

/// Seconds since 1970 as `2026-01-31T00:00:00Z`; the calendar by Howard Hinnant's `civil_from_days`.
fn rfc3339(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year_of_era + era * 400 + carry;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3_600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (LAST, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), date);
        }
    }
}
