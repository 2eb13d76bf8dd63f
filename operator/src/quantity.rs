//! Quantities of Kubernetes, such as `500m` and `1Gi`, as numbers that can be compared.

/// A quantity of bytes, rounded down; also with an exponent, as in `129e6`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let parts =
        text.split_once(['e', 'E']).and_then(|(number, exponent)| Some((number, exponent.parse().ok()?)));
    let thousandths = match parts {
        Some((number, exponent)) => amount(number)?.checked_mul(10_i128.checked_pow(exponent)?)?,
        None => amount(text)?,
    };
    u64::try_from(thousandths / 1000).ok()
}

/// A quantity in thousandths, if the text is one and exact in that unit.
pub(crate) fn amount(text: &str) -> Option<i128> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: i128 = match unit {
        "m" => 1,
        "" => 1000,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "T" => 1_000_000_000_000_000,
        "Ki" => 1000 << 10,
        "Mi" => 1000 << 20,
        "Gi" => 1000 << 30,
        "Ti" => 1000 << 40,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let scale = 10_i128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let whole: i128 = whole.parse().ok()?;
    let part: i128 = if part.is_empty() { 0 } else { part.parse().ok()? };
    let sum = whole.checked_mul(scale)?.checked_add(part)?.checked_mul(factor)?;
    (sum % scale == 0).then_some(sum / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_quantity() {
        for (text, expected) in [
            ("128974848", Some(128_974_848)),
            ("129e6", Some(129_000_000)),
            ("1.5E3", Some(1500)),
            ("129M", Some(129_000_000)),
            ("123Mi", Some(123 << 20)),
            ("1.5Gi", Some(3 << 29)),
            ("1500m", Some(1)),
            ("0", Some(0)),
            ("1e-3", None),
            ("1e99", None),
            ("1Ei", None),
            ("much", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
