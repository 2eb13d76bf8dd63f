//! Whether a text has the `format` of a schema, as clusters decide it: the formats of apiextensions-apiserver
//! `pkg/apiserver/validation/formats.go`, judged as kube-openapi `pkg/validation/strfmt` does. Other formats say nothing there,
//! those of numbers neither.

use std::net::Ipv6Addr;
use std::str::FromStr as _;
use std::sync::LazyLock;

use jiff::civil::Date;
use regex::Regex;

use crate::email::check_address;
use crate::url::Url;

/// What a text of a format looks like, when this one does not; none for a format that clusters do not judge.
///
/// ```
/// use olmkit_bundle::schema::format::misfit;
/// assert_eq!(misfit("date-time", "yesterday"), Some("a date and time such as `2006-01-02T15:04:05Z`"));
/// assert_eq!(misfit("int-or-string", "yesterday"), None);
/// ```
pub fn misfit(format: &str, text: &str) -> Option<&'static str> {
    // Clusters know `date-time` and `datetime` as one.
    let (fits, expected) = match format.replace('-', "").as_str() {
        "bsonobjectid" => (matches(&BSON, text), "24 hexadecimal digits"),
        "uri" => (Url::parse_request(text).is_ok(), "an absolute URI"),
        "email" => (check_address(text).is_ok(), "an email address"),
        "hostname" => (is_hostname(text), "a host name"),
        "ipv4" => (is_ip(text) && text.contains('.'), "an IPv4 address"),
        "ipv6" => (is_ip(text) && text.contains(':'), "an IPv6 address"),
        "cidr" => (is_cidr(text), "an address with a prefix such as `10.0.0.0/8`"),
        "mac" => (is_mac(text), "a MAC address"),
        "uuid" => (matches(&UUID, text), "a UUID"),
        "uuid3" => (matches(&UUID3, text), "a UUID of version 3"),
        "uuid4" => (matches(&UUID4, text), "a UUID of version 4"),
        "uuid5" => (matches(&UUID5, text), "a UUID of version 5"),
        "isbn" => (is_isbn10(text) || is_isbn13(text), "an ISBN"),
        "isbn10" => (is_isbn10(text), "an ISBN of 10 digits"),
        "isbn13" => (is_isbn13(text), "an ISBN of 13 digits"),
        "creditcard" => (is_credit_card(text), "a credit card number"),
        "ssn" => (text.len() == 11 && matches(&SSN, text), "a social security number"),
        "hexcolor" => (matches(&HEX_COLOR, text), "a colour such as `#ffffff`"),
        "rgbcolor" => (matches(&RGB_COLOR, text), "a colour such as `rgb(255,255,255)`"),
        "byte" => (matches(&BASE64, text), "base64"),
        "date" => (is_date(text), "a date such as `2006-01-02`"),
        "datetime" => (is_date_time(text), "a date and time such as `2006-01-02T15:04:05Z`"),
        "duration" => (is_duration(text), "a duration such as `22s`"),
        "k8sshortname" => (text.len() <= 63 && matches(&SHORT_NAME, text), "a name of 63 characters at most"),
        "k8slongname" => (text.len() <= 253 && matches(&LONG_NAME, text), "a name of 253 characters at most"),
        _ => return None,
    };
    (!fits).then_some(expected)
}

/// Whether clusters judge texts of a format at all.
pub fn is_checked(format: &str) -> bool {
    // No text has every format.
    ["", "\n"].iter().any(|text| misfit(format, text).is_some())
}

macro_rules! patterns {
    ($($name:ident = $pattern:literal;)+) => {$(
        static $name: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new($pattern).ok());
    )+
        #[cfg(test)]
        static ALL: &[&LazyLock<Option<Regex>>] = &[$(&$name),+];
    };
}

patterns! {
    BSON = "^[0-9a-fA-F]{24}$";
    UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID3 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID4 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    UUID5 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    CREDIT_CARD = "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$";
    SSN = "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    HEX_COLOR = "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOR = r"^rgb\([ \t\n\f\r]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[ \t\n\f\r]*,[ \t\n\f\r]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[ \t\n\f\r]*,[ \t\n\f\r]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[ \t\n\f\r]*\)$";
    BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
    TIME = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
    GO_DURATION = "^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))*$";
    SPAN = "([0-9]+)[ \t\n\x0c\r]*([A-Za-zµ]+)";
    SYMBOL = r"^[a-zA-Z0-9\p{S}\p{L}]$";
    SHORT_NAME = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
    LONG_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
}

/// A test sees that every pattern is one, so that nothing fits by accident.
fn matches(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
}

/// A single label, or several of which the last has letters alone. Symbols and letters of all scripts are allowed.
fn is_hostname(text: &str) -> bool {
    let is_sign = |sign: char| matches(&SYMBOL, sign.encode_utf8(&mut [0; 4]));
    let is_label = |label: &str| {
        let count = label.chars().count();
        (1..=63).contains(&count)
            && label.chars().all(|sign| sign == '-' || is_sign(sign))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_last = |label: &str| {
        (2..=63).contains(&label.chars().count())
            && label.chars().all(|sign| sign.is_ascii_alphabetic() || sign.is_alphabetic() && is_sign(sign))
    };
    let fits = match text.rsplit_once('.') {
        Some((labels, last)) => labels.split('.').all(is_label) && is_last(last),
        // One dash at most, as the second character.
        None => {
            let mut signs = text.chars();
            let first = signs.next().is_some_and(is_sign);
            let rest = signs.as_str();
            let rest = rest.strip_prefix('-').unwrap_or(rest);
            first && rest.chars().count() <= 62 && rest.chars().all(is_sign)
        }
    };
    fits && text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

/// Zeros in front are allowed, unlike in Rust.
fn is_ipv4(text: &str) -> bool {
    let is_number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|digit| digit.is_ascii_digit())
            && part.parse::<u32>().is_ok_and(|number| number <= 255)
    };
    text.split('.').count() == 4 && text.split('.').all(is_number)
}

fn is_ip(text: &str) -> bool {
    is_ipv4(text) || Ipv6Addr::from_str(text).is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else { return false };
    let most = if is_ipv4(address) { 32 } else { 128 };
    let is_number = !prefix.is_empty() && prefix.bytes().all(|digit| digit.is_ascii_digit());
    is_ip(address) && is_number && prefix.parse::<u32>().is_ok_and(|prefix| prefix <= most)
}

/// 6, 8 or 20 bytes: in pairs of digits with `:` or `-` between, or in groups of four with `.`.
fn is_mac(text: &str) -> bool {
    let groups = |mark: char, digits: usize, counts: [usize; 3]| {
        let parts: Vec<&str> = text.split(mark).collect();
        let is_group =
            |part: &&str| part.len() == digits && part.bytes().all(|digit| digit.is_ascii_hexdigit());
        counts.contains(&parts.len()) && parts.iter().all(is_group)
    };
    groups(':', 2, [6, 8, 20]) || groups('-', 2, [6, 8, 20]) || groups('.', 4, [3, 4, 10])
}

/// The digits of an ISBN without what stands between them.
fn isbn(text: &str) -> Vec<u8> {
    let stays = |byte: &u8| !matches!(byte, b'-' | b' ' | b'\t' | b'\n' | 0x0c | b'\r');
    text.bytes().filter(stays).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn(text);
    let Some((last, first)) = digits.split_last().filter(|_| digits.len() == 10) else { return false };
    if !first.iter().all(u8::is_ascii_digit) || !(last.is_ascii_digit() || *last == b'X') {
        return false;
    }
    let last = if *last == b'X' { 10 } else { u32::from(last - b'0') };
    let sum: u32 = (1..).zip(first).map(|(place, digit)| place * u32::from(digit - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weights = [1, 3].iter().cycle();
    digits
        .iter()
        .zip(weights)
        .map(|(digit, weight)| u32::from(digit - b'0') * weight)
        .sum::<u32>()
        .is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, digit)| match u32::from(digit - b'0') {
            number if at % 2 == 0 => number,
            number if number < 5 => number * 2,
            number => number * 2 - 9,
        })
        .sum();
    matches(&CREDIT_CARD, &digits) && sum.is_multiple_of(10)
}

fn is_date(text: &str) -> bool {
    let shape = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    shape && text.parse::<Date>().is_ok()
}

/// What comes after a second `t` is not checked.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let in_range = || {
        let part = |at: usize| time.get(at..at + 2).unwrap_or("99");
        part(0) <= "23" && part(3) <= "59" && part(6) <= "59"
    };
    is_date(date) && matches(&TIME, time) && in_range()
}

/// A duration as Go writes it, such as `1h30m`.
pub(crate) fn is_go_duration(text: &str) -> bool {
    let unsigned = text.trim_start_matches(['-', '+']);
    unsigned == "0" && text.len() - unsigned.len() <= 1 || matches(&GO_DURATION, text)
}

/// A point in time as Go reads RFC 3339.
pub(crate) fn is_timestamp(text: &str) -> bool {
    let at = |index: usize| text.as_bytes().get(index).copied().unwrap_or(0);
    is_date_time(text) && at(10) == b'T' && b"Z+-.,".contains(&at(19)) && !text.ends_with('z')
}

/// As Go writes it, or any text with a number and a unit from nanoseconds to weeks in it.
fn is_duration(text: &str) -> bool {
    if is_go_duration(text) {
        return true;
    }
    let Some(span) = SPAN.as_ref() else { return true };
    let (mut is_any, mut is_number) = (false, true);
    for found in span.captures_iter(text) {
        is_number &= found[1].parse::<i64>().is_ok();
        is_any |= is_unit(&found[2].to_lowercase());
    }
    is_any && is_number
}

fn is_unit(unit: &str) -> bool {
    const EXACT: [&str; 12] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk", "μs"];
    const BEGIN: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    EXACT.contains(&unit) || BEGIN.iter().any(|begin| unit.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_one() {
        assert!(ALL.iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn literals_of_rules() {
        for (text, expected) in [
            ("2030-01-01T00:00:00Z", true),
            ("2030-01-01T00:00:00.5+02:00", true),
            ("2030-01-01t00:00:00Z", false),
            ("2030-01-01T00:00:00z", false),
            ("tomorrow", false),
        ] {
            assert_eq!(is_timestamp(text), expected, "{text}");
        }
    }

    /// As Kubernetes 1.34 judges them.
    #[test]
    fn formats_are_those_of_kubernetes() {
        let check = |format: &str, good: &[&str], bad: &[&str]| {
            for text in good {
                assert_eq!(misfit(format, text), None, "{format}: {text}");
            }
            for text in bad {
                assert!(misfit(format, text).is_some(), "{format}: {text}");
            }
        };
        check("uri", &["https://example.com/a?b=c", "/a/b", "urn:x"], &["example.com", "", "a b"]);
        check("email", &["a@example.com", "A <a@example.com>"], &["a", "@", ""]);
        check(
            "hostname",
            &["example", "a.example.com", "1.example.com", "a-b", "☃.example"],
            &["", "-a", "a.b", "a.example.c", "a_b.com", "a..com", "a-b-c", "a.example.1"],
        );
        check(
            "ipv4",
            &["10.0.0.1", "010.1.2.3", "::ffff:1.2.3.4"],
            &["10.0.0", "10.0.0.256", "::1", "a.b.c.d"],
        );
        check("ipv6", &["::1", "fe80::1", "::ffff:1.2.3.4"], &["10.0.0.1", "fe80::1%eth0", ":::"]);
        check(
            "cidr",
            &["10.0.0.0/8", "fd00::/8", "10.1.2.3/32"],
            &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "::/129"],
        );
        check(
            "mac",
            &["00:00:5e:00:53:01", "0000.5e00.5301", "02-00-5e-10-00-00-00-01"],
            &["00:00:5e", "0:0:5e:0:53:1"],
        );
        check(
            "uuid",
            &["6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B8109DAD11D180B400C04FD430C8"],
            &["6ba7b810"],
        );
        check("uuid4", &["f47ac10b-58cc-4372-a567-0e02b2c3d479"], &["6ba7b810-9dad-11d1-80b4-00c04fd430c8"]);
        check("isbn", &["0321751043", "978-0321751041"], &["0321751044", "978-0321751042", "1"]);
        check("isbn10", &["080442957X"], &["978-0321751041"]);
        check("creditcard", &["4111-1111-1111-1111"], &["4111-1111-1111-1112", "1"]);
        check("ssn", &["111-11-1111"], &["111111111", "11-111-1111"]);
        check("hexcolor", &["#FFFFFF", "fff"], &["#ffff", "red"]);
        check("rgbcolor", &["rgb(255,255, 25)"], &["rgb(256,0,0)", "rgb(1,2)"]);
        check("byte", &["aGVsbG8=", "aGVs"], &["", "aGVsbG8", "a b="]);
        check("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]);
        check("date", &["2024-02-29", "2006-01-02"], &["2023-02-29", "2006-13-01", "2006-1-2", ""]);
        check(
            "date-time",
            &["2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20z", "2014-12-15T19:30:20+01:00"],
            &["2014-12-15", "2014-12-15 19:30:20Z", "2014-12-15T24:30:20Z", "2014-12-15T19:30:20"],
        );
        check("duration", &["22 ns", "1h30m", "0", "-1.5h", "3 weeks", "1 hour"], &["", "h", "1", "1 x"]);
        check("k8s-short-name", &["a", "a-1"], &["A", "-a", "a.b", ""]);
        check("k8s-long-name", &["a.b-1"], &["a..b", "A"]);
        check("password", &["", "x"], &[]);
        check("int32", &["x"], &[]);
    }
}
