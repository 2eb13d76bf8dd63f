//! Cuts a text into documents where apimachinery's `YAMLReader` does: at lines that start with `---`.
//!
//! The cut is made on text, before YAML is understood. A separator that follows nothing stays in front of the
//! document it opens, where the parser takes it for a document start.

use memchr::{memchr, memmem};

use super::SyntaxError;
use crate::source::Span;

/// The spans of the documents of `text`; an item is an error where a separator line carries anything but
/// space or a comment, and is then the last.
pub(super) fn split(text: &str) -> impl Iterator<Item = Result<Span, SyntaxError>> + '_ {
    let mut next = 0;
    let mut stopped = false;
    std::iter::from_fn(move || {
        let start = next;
        if stopped {
            return None;
        }
        let mut from = start;
        while let Some(line_start) = separator(text, from) {
            let line_end = memchr(b'\n', &text.as_bytes()[line_start..]);
            let line_end = line_end.map_or(text.len(), |length| line_start + length + 1);
            let line = &text[line_start..line_end];
            let rest = line["---".len()..].trim();
            if !rest.is_empty() && !rest.starts_with('#') {
                stopped = true;
                let span = Span::new(line_start, line_start + line.trim_end().len());
                return Some(Err(SyntaxError::new(
                    format!("nothing but a comment may follow `---` on its line, found `{rest}`"),
                    span,
                )));
            }
            if line_start > start {
                next = line_end;
                return Some(Ok(Span::new(start, line_start)));
            }
            from = line_end;
        }
        next = text.len();
        (start < text.len()).then(|| Ok(Span::new(start, text.len())))
    })
}

/// The first line from `from` on, where a line starts, that starts with `---`.
fn separator(text: &str, from: usize) -> Option<usize> {
    if text[from..].starts_with("---") {
        return Some(from);
    }
    memmem::find(&text.as_bytes()[from..], b"\n---").map(|at| from + at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let parts: Vec<_> = split(text).map(|part| part.map_or("!", |span| span.slice(text))).collect();
        assert_eq!(parts, expected, "{text:?}");
    }

    #[test]
    fn cuts_where_apimachinery_cuts() {
        check("", &[]);
        check("a: 1", &["a: 1"]);
        check("---\na: 1\n---\nb: 2\n", &["---\na: 1\n", "b: 2\n"]);
        check("a: 1\n--- # next\nb: 2\n---\n", &["a: 1\n", "b: 2\n"]);
        check("---\n---\na: 1\n", &["---\n", "a: 1\n"]);
        check("a: 1\n--- b: 2\n---\nc: 3\n", &["!"]);
        check("a: |\n  ---\n  x\n", &["a: |\n  ---\n  x\n"]);
        check("a: 1\r\n---\r\nb: 2\r\n", &["a: 1\r\n", "b: 2\r\n"]);
    }
}
