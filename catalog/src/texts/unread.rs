//! Text of a file that no blob is read from. As opm does, a file is read as YAML from its first document that is not JSON on, and of what
//! stands between two separators the first value counts: a stream of JSON values after a comment or a byte order mark has only one.

use std::collections::BTreeMap;

use olmkit_bundle::finding::Place;
use olmkit_bundle::source::Span;

use crate::fbc::{At, Catalog};

/// How to make a file readable from its first to its last line.
pub(crate) const UNREAD_HELP: &str =
    "separate documents with `---`; in a file of JSON values remove comments and a byte order mark";

/// Where the first text starts that is not read.
pub(crate) fn unread(catalog: &Catalog<'_>) -> Option<Place> {
    let mut ends: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
    for at in catalog.places() {
        ends.entry(at.file).or_default().push((at.span.start as usize, at.span.end as usize));
    }
    ends.into_iter().find_map(|(number, mut spans)| {
        spans.sort_unstable();
        let text = catalog.files.get(number as usize)?.source.text();
        let starts = spans.iter().skip(1).map(|(start, _)| *start).chain([text.len()]);
        let offset = spans.iter().zip(starts).find_map(|((_, end), next)| in_gap(text, *end, next))?;
        Some(catalog.place(At { file: number, span: Span::at(offset) }))
    })
}

/// The first thing between two values that is a value itself, or stands after the end of a document.
pub(crate) fn in_gap(text: &str, from: usize, to: usize) -> Option<usize> {
    let gap = text.get(from..to)?;
    let mut is_ended = false;
    let mut at = from;
    for line in gap.split_inclusive('\n') {
        let content = line.trim();
        let start = at + line.len() - line.trim_start().len();
        at += line.len();
        if content.starts_with("---") {
            is_ended = false;
        } else if content == "..." || content.starts_with("... ") {
            is_ended = true;
        } else if content.starts_with('{') || is_ended && !content.is_empty() && !content.starts_with('#') {
            return Some(start);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::CatalogFiles;

    #[track_caller]
    fn check(text: &str, line: Option<u32>) {
        let files = CatalogFiles::from_text("catalog.yaml", text);
        let place = unread(&Catalog::parse(&files));
        assert_eq!(place.and_then(|place| place.position).map(|position| position.line), line, "{text}");
    }

    #[test]
    fn json_behind_a_comment_and_documents_behind_an_end_are_not_read() {
        let (a, b) = (r#"{"schema": "a"}"#, r#"{"schema": "b"}"#);
        check(&format!("{a}\n{b}\n"), None);
        check(&format!("# x\n{a}\n---\n{b} # y\n# z\n"), None);
        check(&format!("# x\n{a}\n{b}\n"), Some(3));
        check(&format!("# x\n{a}{b}\n"), Some(2));
        check(&format!("\u{feff}{a}\n{b}\n"), Some(2));
        check("schema: a\n...\nschema: b\n", Some(3));
        check("schema: a\n...\n# x\n---\nschema: b\n...\n", None);
        check("schema: a\nx: &x [1]\ny:\n- *x\n---\nschema: b\n", None);
    }
}
