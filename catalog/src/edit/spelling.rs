//! Keeps the spelling of numbers, booleans, nulls and dates when a document is written anew.
//!
//! Kubernetes reads YAML 1.1 with 64-bit numbers; other programs read YAML 1.2. `0o17`, `1e400`, `yes` and `2024-01-01` mean
//! different things to them, and a long number loses digits when it is read and written. So what is not plainly a text stays
//! as its author wrote it.

use olmkit_bundle::source::Span;
use olmkit_bundle::yaml::{self, Node, Value};

use crate::texts::document::Edits;

/// The new text of a document with the spelling of the old one; none when one of them cannot be read.
pub(super) fn keep(old: &str, new: &str) -> Option<String> {
    let (old_document, new_document) = (yaml::first_document(old).ok()?, yaml::first_document(new).ok()?);
    let mut spelling = Spelling { old, new, edits: Edits::default() };
    spelling.walk(&old_document.root, &new_document.root);
    Some(spelling.edits.apply(new))
}

struct Spelling<'t> {
    old: &'t str,
    new: &'t str,
    edits: Edits,
}

impl Spelling<'_> {
    /// Goes over what both documents have: a blob that is written anew has no empty lists, and all fields that it must have.
    fn walk(&mut self, old: &Node<'_>, new: &Node<'_>) {
        match (&old.value, &new.value) {
            (Value::Mapping(old), Value::Mapping(new)) => {
                for entry in new {
                    let same = old.entry(&entry.key);
                    // A field that is known is written in the case of its schema.
                    let Some(other) = same.or_else(|| old.entry_folded(&entry.key)) else { continue };
                    self.key(&other.key, other.key_span, entry.key_span);
                    self.walk(&other.value, &entry.value);
                }
            }
            (Value::Sequence(old), Value::Sequence(new)) => {
                old.iter().zip(new).for_each(|(old, new)| self.walk(old, new));
            }
            (Value::Mapping(_) | Value::Sequence(_), _) | (_, Value::Mapping(_) | Value::Sequence(_)) => {}
            (Value::String(text), _) => {
                if is_ambiguous(text) && !self.is_block_scalar(old.span.start as usize) {
                    self.spell(old.span, new.span);
                }
            }
            _ => self.spell(old.span, new.span),
        }
    }

    fn key(&mut self, key: &str, old: Span, new: Span) {
        let written = old.slice(self.old);
        if is_ambiguous(key) || (written != key && is_value(written)) {
            self.spell(old, new);
        }
    }

    /// Writes a scalar without quotes as it was written.
    fn spell(&mut self, old: Span, new: Span) {
        let written = old.slice(self.old);
        let is_plain = !written.is_empty() && !written.starts_with(['"', '\'']) && !written.contains('\n');
        if is_plain && written != new.slice(self.new) {
            self.edits.replace(new.start as usize, new.end as usize, written.to_owned());
        }
    }

    /// Whether a text that starts here, on a line of its own, has `|` or `>` above it.
    fn is_block_scalar(&self, start: usize) -> bool {
        let before = &self.old[..start];
        let line = before.rfind('\n').map_or(0, |newline| newline + 1);
        if !before[line..].trim_start().is_empty() {
            return false;
        }
        let above = before.trim_end().lines().last().unwrap_or_default();
        let header = above.split(" #").next().unwrap_or_default().trim_end();
        header.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-')).ends_with(['|', '>'])
    }
}

/// Whether a text without quotes is a number or a date to some reader of YAML 1.1 or 1.2.
fn is_ambiguous(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    let digits = text.replace('_', "");
    let based = |prefixes: [&str; 2], base: u32| {
        let rest = prefixes.iter().find_map(|prefix| digits.strip_prefix(prefix));
        rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_digit(base)))
    };
    let is_float = digits.contains(|c: char| c.is_ascii_digit()) && digits.parse::<f64>().is_ok();
    let is_based = based(["0x", "0X"], 16) || based(["0o", "0O"], 8) || based(["0b", "0B"], 2);
    // `1:30` is 90 in YAML 1.1.
    let is_sexagesimal = digits.contains(':')
        && digits
            .split(':')
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    is_float || is_based || is_sexagesimal || is_date(text)
}

/// Whether a text is a date, perhaps with a time.
fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut number = |digits: std::ops::RangeInclusive<usize>| {
        let part = parts.next().unwrap_or_default();
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        (digits.contains(&end), &part[end..])
    };
    number(4..=4) == (true, "")
        && number(1..=2) == (true, "")
        && matches!(number(1..=2), (true, rest) if rest.is_empty() || rest.starts_with(['t', 'T', ' ', '\t']))
}

/// Whether a text without quotes is a boolean or a number in YAML 1.1.
fn is_value(written: &str) -> bool {
    let is_value = |value: &Value<'_>| {
        matches!(value, Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_))
    };
    yaml::first_document(written).is_ok_and(|document| is_value(&document.root.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_some_reader_takes_for_a_number_or_a_date() {
        for text in [
            "1e400",
            "-.5e999",
            "1_0e999",
            "0xFFFFFFFFFFFFFFFFFF",
            "0o7777777777777777777777777",
            "1:30",
            "12:30:45.1",
            "2024-01-01",
            "2024-1-1",
            "2001-12-14t21:59:43.10-05:00",
            "2001-12-14 21:59:43",
        ] {
            assert!(is_ambiguous(text), "{text}");
        }
        for text in [
            "1.2.3",
            "v1",
            "1.0.0-rc.1",
            "2024-01-01-beta",
            "0x",
            "1:",
            "20240101-1-1",
            "1-2-3",
            "",
            "-",
            ".",
        ] {
            assert!(!is_ambiguous(text), "{text}");
        }
    }
}
