//! The names that OLM v1 gives to what it makes: long ones are cut, and roles end in a hash of what they allow.

use sha2::{Digest as _, Sha224};

/// A name is not longer than a label's value.
const MOST_BYTES: usize = 63;

/// `BASE-SUFFIX`, the base cut when both are too long.
pub(super) fn joined(base: &str, suffix: &str) -> String {
    if base.len() + suffix.len() <= MOST_BYTES {
        return format!("{base}-{suffix}");
    }
    let end = base.floor_char_boundary(MOST_BYTES.saturating_sub(suffix.len() + 1));
    format!("{}-{suffix}", &base[..end])
}

/// The Service in front of a Deployment's webhooks.
pub(super) fn service(deployment: &str) -> String {
    joined(&deployment.replace('.', "-"), "service")
}

/// The Secret with the certificate of that Service; cert-manager's Certificate has the same name.
pub(super) fn certificate(deployment: &str) -> String {
    joined(&service(deployment), "cert")
}

/// The issuer of that certificate.
pub(super) fn issuer(deployment: &str) -> String {
    joined(&certificate(deployment), "selfsigned-issuer")
}

/// SHA-224 of a text and a line break, in base 36.
pub(super) fn hash(text: &str) -> String {
    let mut hasher = Sha224::new();
    hasher.update(text.as_bytes());
    hasher.update(b"\n");
    base36(&hasher.finalize())
}

fn base36(bytes: &[u8]) -> String {
    let mut number = bytes.to_vec();
    let mut digits = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0_u32;
        for byte in &mut number {
            let value = rest << 8 | u32::from(*byte);
            *byte = (value / 36) as u8;
            rest = value % 36;
        }
        digits.push(char::from_digit(rest, 36).unwrap_or('0'));
    }
    if digits.is_empty() { "0".to_owned() } else { digits.into_iter().rev().collect() }
}

/// A text as Go writes it to JSON, where `<`, `>` and `&` are escaped.
pub(super) fn go_text(text: &str) -> String {
    let plain = serde_json::Value::from(text).to_string();
    escaped(&plain)
}

/// JSON with the characters escaped that Go escapes in it.
pub(super) fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => text += &format!("\\u{:04x}", c as u32),
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut() {
        assert_eq!(joined("a", "b"), "a-b");
        assert_eq!(joined(&"a".repeat(70), "service").len(), 63);
        assert_eq!(service("a.b"), "a-b-service");
        assert_eq!(certificate("a.b"), "a-b-service-cert");
    }

    #[test]
    fn base_36_of_bytes() {
        assert_eq!(base36(&[0, 0]), "0");
        assert_eq!(base36(&[0, 35]), "z");
        assert_eq!(base36(&[1, 0]), "74");
    }
}
