//! How Go reads and writes values: which field of a type a key sets, and what numbers look like as text.
//!
//! OLM, its tools and clusters read YAML through JSON (sigs.k8s.io/yaml), with the keys of every map sorted, and encoding/json gives
//! each key to a field: the one with that name, else one whose name differs in case alone. When several keys set one field, the last
//! one counts. All of our readers ask here.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{Display, LowerExp};

use serde_json::Value as Json;

/// Whether two keys differ in nothing but case, so that they name the same field.
///
/// ```
/// use olmkit_bundle::go::same_field;
/// assert!(same_field("displayname", "displayName"));
/// // The long s and the Kelvin sign are an `s` and a `k`.
/// assert!(same_field("ſpec", "spec"));
/// assert!(!same_field("display-name", "displayName"));
/// ```
pub fn same_field(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || !(a.is_ascii() && b.is_ascii()) && fold(a) == fold(b)
}

/// A key without the difference of case: equal for keys that [`same_field`] finds the same.
pub fn fold(key: &str) -> Cow<'_, str> {
    if !key.is_ascii() {
        // Unicode's case folding as far as it concerns single letters.
        return key.chars().flat_map(char::to_lowercase).map(|c| if c == 'ſ' { 's' } else { c }).collect();
    }
    match key.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(key.to_ascii_lowercase()),
        false => Cow::Borrowed(key),
    }
}

/// The order of keys in which those that [`same_field`] finds the same stand side by side, in their own order.
pub(crate) fn by_field(a: &str, b: &str) -> Ordering {
    compare_folded(a, b).then_with(|| a.cmp(b))
}

/// Compares keys without the difference of case.
pub(crate) fn compare_folded(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        let lower = |byte: u8| byte.to_ascii_lowercase();
        return a.bytes().map(lower).cmp(b.bytes().map(lower));
    }
    fold(a).cmp(&fold(b))
}

/// The field of a type that a key sets, as its number: the one with that name, else the first that differs in case alone.
///
/// ```
/// use olmkit_bundle::go::field;
/// let of = |key| field(key, ["Name", "name", "kind"]);
/// assert_eq!([of("name"), of("NAME"), of("Kind"), of("other")], [Some(1), Some(0), Some(2), None]);
/// ```
pub fn field<'f, I: IntoIterator<Item = &'f str, IntoIter: Clone>>(key: &str, names: I) -> Option<usize> {
    let mut names = names.into_iter();
    names.clone().position(|name| name == key).or_else(|| names.position(|name| same_field(name, key)))
}

/// Of the entries of a map the one that sets a field: of several, the last in the order of keys.
///
/// ```
/// use olmkit_bundle::go::entry_of;
/// let entries = [("version", 1), ("name", 2), ("Version", 3)];
/// assert_eq!(entry_of("version", &entries, |(key, _)| key), Some(&("version", 1)));
/// ```
pub fn entry_of<'e, T, I: IntoIterator<Item = &'e T>>(
    field: &str,
    entries: I,
    key: impl Fn(&'e T) -> &'e str,
) -> Option<&'e T> {
    let same = entries.into_iter().filter(|entry| same_field(key(entry), field));
    same.max_by(|a, b| key(a).cmp(key(b)))
}

/// The value that sets a field of a JSON map.
///
/// ```
/// use olmkit_bundle::go::value_of;
/// let value = serde_json::json!({"Version": 1, "version": 2});
/// assert_eq!(value_of(&value, "version"), Some(&2.into()));
/// ```
pub fn value_of<'v>(value: &'v Json, field: &str) -> Option<&'v Json> {
    let same = value.as_object()?.iter().filter(|(key, _)| same_field(key, field));
    same.max_by_key(|(key, _)| *key).map(|(_, value)| value)
}

/// A float as `strconv.FormatFloat(value, 'g', -1, 64)` prints it, which is what a field of text gets: `1.1`, `1e+06`.
pub fn float_as_text(value: impl Display + LowerExp) -> String {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    // Rust prints what is between plainly, with the same digits.
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// A float as encoding/json writes it: with an exponent only when it is very large or very small.
pub fn float_as_json(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_as_text() {
        let texts = [1.1, 1.0, -0.5, 0.0001, 0.00001, 100_000.0, 123_456.75, 1e6, 1.25e7, -1e-7, 1e100, 0.0];
        assert_eq!(
            texts.map(float_as_text),
            [
                "1.1",
                "1",
                "-0.5",
                "0.0001",
                "1e-05",
                "100000",
                "123456.75",
                "1e+06",
                "1.25e+07",
                "-1e-07",
                "1e+100",
                "0"
            ]
        );
    }

    #[test]
    fn floats_as_json() {
        let texts = [0.5, 1e20, 1e21, 1.5e-6, 1.5e-7, -2.5e300];
        assert_eq!(
            texts.map(float_as_json),
            ["0.5", "100000000000000000000", "1e+21", "0.0000015", "1.5e-7", "-2.5e+300"]
        );
    }

    #[test]
    fn keys_that_differ_in_case_alone() {
        for (a, b, same) in [
            ("name", "name", true),
            ("NAME", "name", true),
            ("\u{212a}ind", "kind", true),
            ("É", "é", true),
            ("É", "e", false),
            ("ß", "ss", false),
        ] {
            assert_eq!((same_field(a, b), fold(a) == fold(b)), (same, same), "{a} {b}");
            assert_eq!(compare_folded(a, b).is_eq(), same, "{a} {b}");
        }
    }
}
