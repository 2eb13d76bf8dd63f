//! Quantities such as `500m` and `1Gi` in the one form that Kubernetes writes them in (apimachinery `pkg/api/resource`).

/// A quantity in its canonical form; none when the text is not a quantity, or needs more than 38 digits.
///
/// ```
/// use olmkit_bundle::quantity::canonical;
/// assert_eq!(canonical("0.5").as_deref(), Some("500m"));
/// assert_eq!(canonical("1024Mi").as_deref(), Some("1Gi"));
/// assert_eq!(canonical("1.5Gi").as_deref(), Some("1536Mi"));
/// assert_eq!(canonical("much"), None);
/// ```
pub fn canonical(text: &str) -> Option<String> {
    let (negative, value, form) = read(text)?;
    let sign = if negative && value != 0 { "-" } else { "" };
    Some(format!("{sign}{}", write(value, form)))
}

/// Checks a quantity by its grammar alone, whatever its size.
///
/// # Errors
/// What is wrong with it.
pub fn check(text: &str) -> Result<(), &'static str> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let unit = unsigned.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &unsigned[..unsigned.len() - unit.len()];
    let exponent = unit.strip_prefix(['e', 'E']).filter(|digits| !digits.is_empty());
    let exponent = exponent.map(|digits| digits.strip_prefix(['+', '-']).unwrap_or(digits));
    let is_exponent = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_unit = BINARY.contains(&unit) || DECIMAL.iter().any(|(known, _)| *known == unit);
    if number.is_empty() || number.matches('.').count() > 1 {
        Err("it does not start with a number")
    } else if !is_unit && !exponent.is_some_and(is_exponent) {
        Err(
            "its unit is unknown; expected one of `n`, `u`, `m`, `k`, `M`, `G`, `T`, `P`, `E`, `Ki`, `Mi`, `Gi`, `Ti`, `Pi`, `Ei`",
        )
    } else {
        Ok(())
    }
}

/// The value in billionths, rounded away from zero; none when the text is not a quantity, or too large.
pub(crate) fn billionths(text: &str) -> Option<i128> {
    let (negative, value, _) = read(text)?;
    let value = i128::try_from(value).ok()?;
    Some(if negative { -value } else { value })
}

/// Whether it is negative, the value in billionths, and how it is written.
fn read(text: &str) -> Option<(bool, u128, Form)> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let form = Form::parse(suffix)?;
    Some((negative, nanos(whole, fraction, form)?, form))
}

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Powers of 1024.
    Binary(u32),
    /// Powers of ten with a suffix.
    Decimal(i32),
    /// Powers of ten with an exponent.
    Exponent(i32),
}

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// The smallest part of a quantity is a billionth.
const NANO: u128 = 1_000_000_000;

impl Form {
    fn parse(suffix: &str) -> Option<Self> {
        if let Some(power) = BINARY.iter().skip(1).position(|known| *known == suffix) {
            return Some(Self::Binary(power as u32 + 1));
        }
        if let Some((_, exponent)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
            return Some(Self::Decimal(*exponent));
        }
        let exponent = suffix.strip_prefix(['e', 'E'])?;
        exponent.parse().ok().filter(|exponent: &i32| exponent.abs() < 100).map(Self::Exponent)
    }
}

/// The value in billionths, rounded up.
fn nanos(whole: &str, fraction: &str, form: Form) -> Option<u128> {
    let fraction = fraction.trim_end_matches('0');
    let mantissa: u128 = match format!("{whole}{fraction}").trim_start_matches('0') {
        "" => 0,
        digits => digits.parse().ok()?,
    };
    let below = i32::try_from(fraction.len()).ok()?;
    let (factor, exponent) = match form {
        Form::Binary(power) => (1024_u128.checked_pow(power)?, 9 - below),
        Form::Decimal(exponent) | Form::Exponent(exponent) => (1, 9 - below + exponent),
    };
    let value = mantissa.checked_mul(factor)?;
    match u32::try_from(exponent) {
        Ok(exponent) => value.checked_mul(10_u128.checked_pow(exponent)?),
        Err(_) => Some(match 10_u128.checked_pow(exponent.unsigned_abs()) {
            Some(divisor) => value.div_ceil(divisor),
            None => u128::from(value > 0),
        }),
    }
}

fn write(value: u128, form: Form) -> String {
    match form {
        // Small and broken numbers have no binary form.
        Form::Binary(_) if value >= 1024 * NANO => {
            let mut number = value.div_ceil(NANO);
            let mut power = 0;
            while number != 0 && number.is_multiple_of(1024) && power + 1 < BINARY.len() {
                number /= 1024;
                power += 1;
            }
            format!("{number}{}", BINARY[power])
        }
        Form::Binary(_) | Form::Decimal(_) => {
            let (number, exponent) = in_thousands(value);
            let suffix =
                DECIMAL.iter().find(|(_, known)| *known == exponent).map_or("", |(suffix, _)| suffix);
            format!("{number}{suffix}")
        }
        Form::Exponent(_) => match in_thousands(value) {
            (number, 0) => number.to_string(),
            (number, exponent) => format!("{number}e{exponent}"),
        },
    }
}

/// The number without its factors of a thousand, and their power of ten.
fn in_thousands(value: u128) -> (u128, i32) {
    let (mut number, mut exponent) = (value, -9);
    if number == 0 {
        return (0, 0);
    }
    while number % 1000 == 0 && exponent < 18 {
        number /= 1000;
        exponent += 3;
    }
    (number, exponent)
}

#[cfg(test)]
mod tests {
    use super::{canonical, check};

    #[test]
    fn as_kubernetes_writes_them() {
        for (text, expected) in [
            ("0", "0"),
            ("0Mi", "0"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.1", "100m"),
            (".5", "500m"),
            ("1.", "1"),
            ("100Mi", "100Mi"),
            ("0.5Gi", "512Mi"),
            ("1000Mi", "1000Mi"),
            ("1000M", "1G"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e6", "12e6"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("1k", "1k"),
            ("64E", "64E"),
            ("1.0000000001", "1000000001n"),
            ("-2000m", "-2"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "Mi", "1Xi", "1.2.3", "1 Gi", "e3", "--1"] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    #[test]
    fn quantities() {
        for good in ["1", "0.5", "-1", "+1.", ".5", "100m", "1Ki", "1E", "1e3", "1E-3", "1.5Gi"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", "m", "1 Gi", "1GB", "1mi", "1e", "1e+", "1.2.3", "--1", "1Kii", "ten"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
