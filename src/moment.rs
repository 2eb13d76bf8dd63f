//! Moments as Kubernetes writes them, in milliseconds since 1970.

use olmkit_bundle::calendar::has_day;

/// Reads `2026-11-21T10:26:04Z`, with or without a fraction of a second or an offset.
///
/// ```
/// use olmkit::moment::parse;
/// assert_eq!(parse("1970-01-02T00:00:01Z"), Some(86_401_000));
/// assert_eq!(parse("1970-01-01T01:00:00.5+01:00"), Some(500));
/// assert_eq!(parse("yesterday"), None);
/// assert_eq!(parse("2026-02-31T00:00:00Z"), None);
/// ```
pub fn parse(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = time.split_at(zone);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.splitn(3, ':').map(str::parse::<i64>);
    let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    let number = |value: i64| u32::try_from(value).unwrap_or_default();
    let sane = (1..=9999).contains(&year)
        && has_day(number(year), number(month), number(day))
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !sane {
        return None;
    }
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    let milliseconds: i64 = digits.parse().ok()?;
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(zone)?;
    Some(seconds * 1000 + milliseconds)
}

/// Writes a moment as Kubernetes does.
pub fn format(at: i64) -> String {
    let (day, rest) = (at.div_euclid(86_400_000), at.rem_euclid(86_400_000) / 1000);
    let since = day + 719_468;
    let (era, of_era) = (since.div_euclid(146_097), since.rem_euclid(146_097));
    let of_year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day = of_era - (365 * of_year + of_year / 4 - of_year / 100);
    let month = (5 * day + 2) / 153;
    let (date, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + of_year + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The seconds that a zone is ahead.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return Some(0),
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60))
}

/// The days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2000-02-29T12:34:56Z",
            "2024-02-29T23:59:59Z",
            "2026-11-21T10:26:04Z",
            "2100-03-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
        ] {
            assert_eq!(parse(text).map(format).as_deref(), Some(text));
        }
    }

    #[test]
    fn moments_are_read() {
        assert_eq!(parse("2026-11-21T10:26:04Z"), Some(1_795_256_764_000));
        assert_eq!(parse("2024-02-29T23:59:59.250Z"), Some(1_709_251_199_250));
        assert_eq!(parse("2026-11-21T10:26:04.123456Z"), Some(1_795_256_764_123));
        for bad in [
            "",
            "T",
            "2026-13-01T00:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T25:00:00Z",
            "2026-01-01T00:00:00+1",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
