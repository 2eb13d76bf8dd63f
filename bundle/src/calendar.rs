//! The Gregorian calendar.

/// Whether the calendar has this day.
///
/// ```
/// use olmkit_bundle::calendar::has_day;
/// assert!(has_day(2024, 2, 29) && !has_day(2026, 2, 29));
/// ```
pub fn has_day(year: u32, month: u32, day: u32) -> bool {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}
