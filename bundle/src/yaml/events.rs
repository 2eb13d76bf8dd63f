//! Reads one document: in the plain style by `block`, in any other by the parser, whose events feed the tree builder.

use std::borrow::Cow;

use granit_parser as granit;

use super::block;
use super::build::{Builder, Event, MAX_DEPTH, Room};
use super::repair::Repair;
use super::resolve::Tag;
use super::{Node, Note, SyntaxError};
use crate::source::Span;

/// A document's values, what the reading left unsaid, and the room that is left for other documents.
type Tree<'a> = (Node<'a>, Vec<Note>, Room);

/// Reads the document at `span` of `text` into a tree.
pub(super) fn read(text: &str, span: Span, room: Room) -> Result<Tree<'_>, SyntaxError> {
    let mut start = span.start as usize;
    let mut part = &text[start..span.end as usize];
    if let Some(rest) = part.strip_prefix('\u{feff}') {
        start += '\u{feff}'.len_utf8();
        part = rest;
    }
    if characters(part, start)? == Characters::Ordinary
        && let Ok((root, room)) = block::read(part, start, room)
    {
        return Ok((root, Vec::new(), room));
    }
    parse(part, start, room)
}

/// Reads with the parser, which knows all of YAML.
pub(super) fn parse(part: &str, start: usize, room: Room) -> Result<Tree<'_>, SyntaxError> {
    let span_of = |from: usize, to: usize| Span::new(start + from, start + to);
    match run(part, room, |value| value, span_of) {
        Ok(tree) => Ok(tree),
        Err(Refusal::Other(error)) => Err(error),
        Err(Refusal::UnderIndented { after, error }) => read_repaired(part, start, room, after, error),
    }
}

/// Reads what YAML 1.2 forbids and Kubernetes' parser takes: quoted text that goes on at the left margin.
fn read_repaired<'a>(
    part: &str,
    start: usize,
    room: Room,
    after: usize,
    strict: SyntaxError,
) -> Result<Tree<'a>, SyntaxError> {
    let mut repair = Repair::new(part);
    let mut after = after;
    while repair.indent_quoted_after(after) {
        let span_of =
            |from: usize, to: usize| Span::new(start + repair.original(from), start + repair.original(to));
        match run(repair.text(), room, |value| Cow::Owned(value.into_owned()), span_of) {
            Ok((root, mut notes, room)) => {
                notes.push(Note::OldSyntax { message: strict.message, span: strict.span });
                return Ok((root, notes, room));
            }
            Err(Refusal::Other(error)) => return Err(error),
            Err(Refusal::UnderIndented { after: next, .. }) => after = next,
        }
    }
    Err(strict)
}

enum Refusal {
    /// A quoted scalar goes on with too little indentation; the event before it ended at byte `after`.
    UnderIndented {
        after: usize,
        error: SyntaxError,
    },
    Other(SyntaxError),
}

impl From<SyntaxError> for Refusal {
    fn from(error: SyntaxError) -> Self {
        Self::Other(error)
    }
}

/// Parses `part`; `keep` decides whether scalars borrow from it, `span_of` places its byte offsets in the file.
fn run<'p, 'a>(
    part: &'p str,
    room: Room,
    keep: impl Fn(Cow<'p, str>) -> Cow<'a, str>,
    span_of: impl Fn(usize, usize) -> Span,
) -> Result<Tree<'a>, Refusal> {
    let mut options = granit::Options::default();
    options.set_emit_comments(false);
    options.block_nesting_limit = MAX_DEPTH;
    options.flow_nesting_limit = MAX_DEPTH;
    let mut builder = Builder::new(room);
    let anchor = |id: usize| (id != 0).then_some(id);
    let mut after = 0;
    for event in granit::Parser::new_from_str_with_options(part, options) {
        let (event, span) = event.map_err(|error| {
            let at = error.marker().byte_offset().unwrap_or(0).min(part.len());
            let at = tab_after(part, at, &error.info()).unwrap_or(at);
            let under_indented = *error.kind() == granit::ErrorKind::InvalidQuotedScalarIndent;
            let error = SyntaxError::new(error.info(), span_of(at, at));
            if under_indented { Refusal::UnderIndented { after, error } } else { Refusal::Other(error) }
        })?;
        let range = span.byte_range().unwrap_or(0..0);
        after = range.end;
        // A block scalar's span takes in the blank lines behind it.
        let written = part.get(range.clone()).map_or(0, |text| text.trim_ascii_end().len());
        let span = span_of(range.start, range.start + written);
        let event = match event {
            granit::Event::Scalar(value, style, id, tag) => Event::Scalar {
                value: keep(value),
                plain: style == granit::ScalarStyle::Plain,
                tag: tag.map(|tag| self::tag(&tag)),
                anchor: anchor(id),
            },
            granit::Event::SequenceStart(_, id, _) => Event::SequenceStart { anchor: anchor(id) },
            granit::Event::MappingStart(_, id, _) => Event::MappingStart { anchor: anchor(id) },
            granit::Event::SequenceEnd | granit::Event::MappingEnd => Event::End,
            granit::Event::Alias(id) => Event::Alias(id),
            // go-yaml stops at the end of the first document, which `...` may bring before the cut does.
            granit::Event::DocumentEnd => break,
            _ => continue,
        };
        builder.event(event, span)?;
    }
    Ok(builder.finish(span_of(part.len(), part.len())))
}

/// The tab that the parser stumbled over where it names a place in the line before.
fn tab_after(part: &str, at: usize, message: &str) -> Option<usize> {
    let line = part.get(at..)?.lines().next()?;
    let at = if message.contains("tab") && !line.contains('\t') { at + line.len() } else { at };
    let rest = part.get(at..)?;
    let blank = rest.len() - rest.trim_start_matches([' ', '\r', '\n']).len();
    (rest.get(..blank)?.contains('\n') && rest.get(blank..)?.starts_with('\t')).then_some(at + blank)
}

fn tag(tag: &granit::Tag) -> Tag {
    match (tag.handle(), tag.suffix()) {
        ("tag:yaml.org,2002:", "str") => Tag::Str,
        ("tag:yaml.org,2002:", "bool") => Tag::Bool,
        ("tag:yaml.org,2002:", "int") => Tag::Int,
        ("tag:yaml.org,2002:", "float") => Tag::Float,
        ("tag:yaml.org,2002:", "null") => Tag::Null,
        ("tag:yaml.org,2002:", "timestamp") => Tag::Timestamp,
        ("tag:yaml.org,2002:", "binary") => Tag::Binary,
        ("tag:yaml.org,2002:", "merge") => Tag::Merge,
        _ => Tag::Other,
    }
}

#[derive(PartialEq)]
enum Characters {
    /// Lines end with line feeds alone.
    Ordinary,
    /// There are other line ends, or byte order marks.
    Rare,
}

/// What kinds of characters there are; what libyaml's reader calls control characters is refused, wherever it stands.
fn characters(text: &str, start: usize) -> Result<Characters, SyntaxError> {
    let ordinary = |byte: u8| matches!(byte, b'\t' | b'\n' | 0x20..=0x7e);
    // No early end within a piece, so that many bytes are looked at together.
    if text.as_bytes().chunks(64).all(|piece| piece.iter().fold(true, |all, byte| all & ordinary(*byte))) {
        return Ok(Characters::Ordinary);
    }
    let mut characters = Characters::Ordinary;
    for (at, c) in text.char_indices() {
        match c {
            '\t' | '\n' | '\u{20}'..='\u{7e}' => {}
            '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => characters = Characters::Rare,
            '\u{a0}'..='\u{fffd}' | '\u{10000}'.. => {}
            _ => {
                return Err(SyntaxError::new(
                    format!("control character U+{:04X} is not allowed", c as u32),
                    Span::new(start + at, start + at + c.len_utf8()),
                ));
            }
        }
    }
    Ok(characters)
}
