//! The type of a scalar, as go-yaml v2 resolves it, and the text of a key or a number, as Go prints it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{Node, SyntaxError, Value};
use crate::go;

/// The tags that go-yaml resolves; any other makes a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Str,
    Bool,
    Int,
    Float,
    Null,
    Timestamp,
    Binary,
    Merge,
    Other,
}

/// The value of a scalar.
///
/// # Errors
/// When an explicit tag does not fit the text, or the value has no JSON form (`.nan`, `.inf`).
pub(super) fn scalar(text: Cow<'_, str>, plain: bool, tag: Option<Tag>) -> Result<Value<'_>, String> {
    match tag {
        None if !plain => Ok(Value::String(text)),
        None => finite(untagged(text)),
        Some(Tag::Str | Tag::Other | Tag::Merge) => Ok(Value::String(text)),
        Some(Tag::Binary) => binary(&text).map(|text| Value::String(text.into())),
        Some(Tag::Timestamp) => Ok(Value::String(text)),
        Some(tag) => {
            let value = finite(untagged(text.clone()))?;
            match (tag, value) {
                (Tag::Float, Value::Int(value)) => Ok(Value::Float(value as f64)),
                (Tag::Bool, value @ Value::Bool(_))
                | (Tag::Int, value @ (Value::Int(_) | Value::UInt(_)))
                | (Tag::Float, value @ Value::Float(_))
                | (Tag::Null, value @ Value::Null) => Ok(value),
                (_, value) => Err(format!("the tag does not fit: `{text}` is {value}")),
            }
        }
    }
}

/// JSON has no words for infinity and not-a-number, so Kubernetes cannot read them.
fn finite(value: Value<'_>) -> Result<Value<'_>, String> {
    match value {
        Value::Float(float) if !float.is_finite() => Err(format!("`{float}` has no JSON form")),
        value => Ok(value),
    }
}

/// The text that Kubernetes takes a plain scalar for where text is wanted: `1.10` is `1.1`, `yes` is `true`; none for null.
pub fn as_plain_text(text: &str) -> Option<String> {
    let value = untagged(Cow::Borrowed(text));
    let node = Node { value, span: crate::source::Span::default() };
    if node.is_null() { None } else { node.to_text().map(Cow::into_owned) }
}

fn untagged(text: Cow<'_, str>) -> Value<'_> {
    let Some(&first) = text.as_bytes().first() else { return Value::Null };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(&text),
        b'.' => special_float(&text).or_else(|| float(&text)).map(Value::Float),
        b'0'..=b'9' | b'+' | b'-' => special_float(&text).map(Value::Float).or_else(|| number(&text)),
        _ => None,
    }
    .unwrap_or(Value::String(text))
}

fn word(text: &str) -> Option<Value<'static>> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Some(Value::Bool(true))
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Some(Value::Bool(false))
        }
        "~" | "null" | "Null" | "NULL" => Some(Value::Null),
        _ => None,
    }
}

fn special_float(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn number(text: &str) -> Option<Value<'static>> {
    let plain: Cow<'_, str> = if text.contains('_') { text.replace('_', "").into() } else { text.into() };
    integer(&plain).or_else(|| float(&plain).map(Value::Float))
}

/// Go's `strconv.ParseInt(text, 0, 64)`, then `ParseUint`: `0x`, `0o`, `0b` and a bare leading zero choose the base.
fn integer(text: &str) -> Option<Value<'static>> {
    let (negative, signed, digits) = match text.as_bytes().first()? {
        b'-' => (true, true, &text[1..]),
        b'+' => (false, true, &text[1..]),
        _ => (false, false, text),
    };
    let bytes = digits.as_bytes();
    let (base, digits) = match (bytes.first()?, bytes.get(1).map(u8::to_ascii_lowercase)) {
        (b'0', Some(b'x')) => (16, &digits[2..]),
        (b'0', Some(b'o')) => (8, &digits[2..]),
        (b'0', Some(b'b')) => (2, &digits[2..]),
        (b'0', Some(_)) => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    let magnitude = u128::from_str_radix(digits, base).ok()?;
    let value = if negative { -i128::try_from(magnitude).ok()? } else { i128::try_from(magnitude).ok()? };
    match (i64::try_from(value), u64::try_from(value)) {
        (Ok(value), _) => Some(Value::Int(value)),
        (_, Ok(value)) if !signed => Some(Value::UInt(value)),
        _ => None,
    }
}

/// A float in YAML's style; one too large for 64 bits is text.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && all_digits(fraction),
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction),
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    if !mantissa_fits || !exponent_fits {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

fn binary(text: &str) -> Result<String, String> {
    // Go's decoder ignores line breaks.
    let packed: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    let bytes =
        BASE64.decode(packed).map_err(|error| format!("the `!!binary` value is not base64: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A key as text: JSON has no other keys, and Kubernetes refuses those that have no text.
pub(super) fn key(node: Node<'_>) -> Result<Cow<'_, str>, SyntaxError> {
    match node.value {
        Value::String(text) => Ok(text),
        Value::Bool(value) => Ok(Cow::Borrowed(if value { "true" } else { "false" })),
        Value::Int(value) => Ok(Cow::Owned(value.to_string())),
        Value::Float(value) => Ok(Cow::Owned(go::float_as_text(value as f32))),
        value => Err(SyntaxError::new(format!("{value} cannot be a key"), node.span)),
    }
}
