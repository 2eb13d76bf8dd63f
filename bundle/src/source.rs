//! Where something stands in a file: byte spans, and the lines and columns people read.

use std::sync::OnceLock;

/// A half-open range of bytes in one source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes from `start` up to `end`; offsets beyond 4 GiB are cut there (no text is that long, see
    /// [`crate::load::MAX_FILE_BYTES`]).
    pub fn new(start: usize, end: usize) -> Self {
        let cut = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: cut(start), end: cut(end.max(start)) }
    }

    /// An empty span at `offset`.
    pub fn at(offset: usize) -> Self {
        Self::new(offset, offset)
    }

    /// The text this span covers, or nothing when it does not lie in `text`.
    pub fn slice<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

/// A place as people name it: both count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

/// A text with a name, able to turn byte offsets into lines and columns.
///
/// ```
/// use olmkit_bundle::source::Source;
/// let source = Source::new("a.yaml", "one\ntwo: ü x\n");
/// let position = source.position(11);
/// assert_eq!((position.line, position.column), (2, 7));
/// ```
#[derive(Debug)]
pub struct Source<'a> {
    path: String,
    text: &'a str,
    line_starts: OnceLock<Vec<u32>>,
    /// How many characters stand before every [`MILESTONE`]th byte; built for texts with long lines only.
    milestones: OnceLock<Vec<u32>>,
}

/// Bytes between two counts of characters, so that a place far along a line is not counted from the line's start.
const MILESTONE: usize = 4096;

impl<'a> Source<'a> {
    /// A text and the path people know it by.
    pub fn new(path: impl Into<String>, text: &'a str) -> Self {
        Self { path: path.into(), text, line_starts: OnceLock::new(), milestones: OnceLock::new() }
    }

    /// The path people know the text by.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The whole text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The line and column of a byte offset; an offset past the end gives the end.
    pub fn position(&self, offset: u32) -> Position {
        let starts = self.line_starts();
        let line = starts.partition_point(|&start| start <= offset).max(1);
        let start = starts[line - 1] as usize;
        let end = (offset as usize).min(self.text.len());
        let column = if end.saturating_sub(start) <= MILESTONE {
            characters(&self.text.as_bytes()[start.min(end)..end])
        } else {
            self.characters_before(end) - self.characters_before(start)
        };
        Position { line: line as u32, column: column + 1 }
    }

    fn characters_before(&self, end: usize) -> u32 {
        let milestones = self.milestones.get_or_init(|| {
            let mut before = 0;
            let count = |part: &[u8]| {
                before += characters(part);
                before
            };
            std::iter::once(0).chain(self.text.as_bytes().chunks_exact(MILESTONE).map(count)).collect()
        });
        let passed = end / MILESTONE;
        milestones[passed] + characters(&self.text.as_bytes()[passed * MILESTONE..end])
    }

    /// The text of a line counted from 1, without its line break; empty beyond the end.
    pub fn line(&self, line: u32) -> &'a str {
        let starts = self.line_starts();
        let Some(start) = self.line_start(line) else { return "" };
        let end = starts.get(line as usize).map_or(self.text.len(), |&next| next as usize);
        self.text.get(start as usize..end).unwrap_or("").trim_end_matches(['\n', '\r'])
    }

    /// The offset of the first byte of a line counted from 1; none beyond the end.
    pub fn line_start(&self, line: u32) -> Option<u32> {
        self.line_starts().get(line.checked_sub(1)? as usize).copied()
    }

    /// The first byte of each line; built when first asked for, since most files have nothing to report.
    fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| {
            let newlines = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(newlines.map(|(at, _)| at as u32 + 1)).collect()
        })
    }
}

/// How many characters start in a part of a text.
fn characters(part: &[u8]) -> u32 {
    part.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_far_along_a_line() {
        let text = format!("x\n{}", "aü…".repeat(5000));
        let source = Source::new("x", &text);
        for at in (0..15_000).step_by(997) {
            let offset = 2 + text[2..].char_indices().nth(at).unwrap().0;
            let Position { line, column } = source.position(offset as u32);
            assert_eq!((line, column as usize), (2, at + 1));
        }
        assert_eq!(source.position(text.len() as u32).column, 15_001);
    }

    #[test]
    fn positions_at_the_edges() {
        let source = Source::new("x", "ab\n\ncd");
        let at = |offset| {
            let Position { line, column } = source.position(offset);
            (line, column)
        };
        assert_eq!(
            [at(0), at(2), at(3), at(4), at(6), at(99)],
            [(1, 1), (1, 3), (2, 1), (3, 1), (3, 3), (3, 3)]
        );
        assert_eq!([source.line(1), source.line(2), source.line(3), source.line(4)], ["ab", "", "cd", ""]);
        assert_eq!([0, 1, 3, 4].map(|line| source.line_start(line)), [None, Some(0), Some(4), None]);
    }
}
