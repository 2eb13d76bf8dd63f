//! Cuts a file into its documents, each with the comments around it.

use super::separators;
use crate::fbc::At;

/// A file of YAML documents.
pub(crate) struct Cut<'t> {
    /// What stands before the first document, such as a licence.
    pub(crate) head: &'t str,
    /// The documents.
    pub(crate) documents: Vec<Part<'t>>,
}

/// A document and its comments.
pub(crate) struct Part<'t> {
    /// Comments of empty documents before it.
    pub(crate) before: &'t str,
    /// What stands between two separators.
    pub(crate) document: &'t str,
    /// The bytes of the file that hold it, the separator before it left out.
    pub(crate) span: (usize, usize),
}

impl Part<'_> {
    /// The whole text as it stands, with a line break at its end and none at its start.
    pub(crate) fn text(&self) -> String {
        let mut text = head(self.before);
        let document = self.document.trim_start_matches(['\n', '\r']);
        let trimmed = document.trim_end_matches(['\n', '\r']);
        if document.ends_with('\n') && keeps_line_breaks(document) {
            return text + document;
        }
        text += trimmed;
        text + "\n"
    }
}

/// Whether a text has a block scalar, such as `|+`, to which the empty lines after it belong.
pub(crate) fn keeps_line_breaks(text: &str) -> bool {
    let keeps = |line: &str| {
        let code = line.split(" #").next().unwrap_or_default().trim_end();
        let header = code.trim_end_matches(|c: char| c.is_ascii_digit() || c == '+');
        header.ends_with(['|', '>']) && code[header.len()..].contains('+')
    };
    text.lines().any(keeps)
}

/// Cuts a text with blobs at these places between its documents.
pub(crate) fn cut<'t>(text: &'t str, places: &[At]) -> Cut<'t> {
    let mut cut = Cut { head: "", documents: Vec::with_capacity(places.len()) };
    let mut behind = 0;
    for (number, at) in places.iter().enumerate() {
        let start = at.span.start as usize;
        let before: Vec<_> = separators(text, behind, start).map(|(separator, _)| separator).collect();
        let first = match before.first() {
            Some(separator) => *separator,
            None => {
                let line = text[..start].rfind('\n').map_or(0, |newline| newline + 1).max(behind);
                // A byte order mark is part of no document.
                if text[line..].starts_with('\u{feff}') { line + '\u{feff}'.len_utf8() } else { line }
            }
        };
        let after = |separator: &usize| separator + "---".len();
        let (from, inner) = (before.first().map_or(first, after), before.last().map_or(first, after));
        if number == 0 {
            cut.head = &text[..first];
        }
        let next = places.get(number + 1).map_or(text.len(), |at| at.span.start as usize);
        behind = at.span.end as usize;
        let end = separators(text, behind, next).next().map_or(next, |(separator, _)| separator);
        cut.documents.push(Part {
            before: &text[from..inner],
            document: &text[inner..end],
            span: (from, end),
        });
    }
    cut
}

impl Cut<'_> {
    /// The text without some of its documents and their comments.
    pub(crate) fn without(&self, text: &str, is_gone: impl Fn(usize) -> bool) -> String {
        let start = self.documents.first().map_or(0, |part| part.span.0);
        let mut out = text[..start].to_owned();
        let (mut behind, mut is_first) = (start, true);
        for (number, Part { span: (from, end), .. }) in self.documents.iter().enumerate() {
            if !is_gone(number) && is_first {
                let first = &text[*from..*end];
                out += if out.ends_with('-') { first } else { first.trim_start_matches(['\n', '\r']) };
                is_first = false;
            } else if !is_gone(number) {
                // With the separator before it.
                out += &text[behind..*end];
            }
            behind = *end;
        }
        out
    }
}

/// The comments that stand before a document, a line each.
pub(crate) fn head(text: &str) -> String {
    let text = text.trim_start_matches('\u{feff}');
    text.lines().map(str::trim).filter(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

/// Whether a text is JSON values, and nothing else.
pub(crate) fn is_json(text: &str) -> bool {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    values.all(|value| value.is_ok())
}
