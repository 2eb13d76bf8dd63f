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
    /// One for every [`MILESTONE`]th byte; set when first asked for, since most files have nothing to report.
    milestones: OnceLock<Vec<Milestone>>,
}

/// What stands before a byte, so that lines and columns need not be counted from the text's start.
#[derive(Clone, Copy, Debug, Default)]
struct Milestone {
    breaks: u32,
    characters: u32,
}

/// Bytes between two milestones: a text of 100 MB has little of them, and they are counted many bytes at a time.
const MILESTONE: usize = 512;

impl<'a> Source<'a> {
    /// A text and the path people know it by.
    pub fn new(path: impl Into<String>, text: &'a str) -> Self {
        Self { path: path.into(), text, milestones: OnceLock::new() }
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
        let end = (offset as usize).min(self.text.len());
        let before = self.before(end);
        let start = self.behind_break(before.breaks).unwrap_or(0) as usize;
        let column = before.characters - self.before(start).characters;
        Position { line: before.breaks + 1, column: column + 1 }
    }

    /// The text of a line counted from 1, without its line break; empty beyond the end.
    pub fn line(&self, line: u32) -> &'a str {
        let Some(start) = self.line_start(line) else { return "" };
        // A file of one line may have a finding for every few bytes: its end is looked up, not searched for.
        let end = self.behind_break(line).map_or(self.text.len(), |next| next as usize - 1);
        self.text.get(start as usize..end).unwrap_or("").trim_end_matches('\r')
    }

    /// The offset of the first byte of a line counted from 1; none beyond the end.
    pub fn line_start(&self, line: u32) -> Option<u32> {
        self.behind_break(line.checked_sub(1)?)
    }

    /// Where the text goes on behind its nth line break; it starts behind none.
    fn behind_break(&self, nth: u32) -> Option<u32> {
        if nth == 0 {
            return Some(0);
        }
        let milestones = self.milestones();
        let at = milestones.partition_point(|milestone| milestone.breaks < nth) - 1;
        let part = self.text.as_bytes().get(at * MILESTONE..)?.iter().enumerate();
        let mut breaks = part.filter(|(_, byte)| **byte == b'\n');
        let (found, _) = breaks.nth((nth - milestones[at].breaks - 1) as usize)?;
        Some((at * MILESTONE + found + 1) as u32)
    }

    /// What stands before a byte.
    fn before(&self, end: usize) -> Milestone {
        let passed = end / MILESTONE;
        self.milestones()[passed].behind(&self.text.as_bytes()[passed * MILESTONE..end])
    }

    fn milestones(&self) -> &[Milestone] {
        self.milestones.get_or_init(|| {
            let mut last = Milestone::default();
            let next = |part: &[u8]| {
                last = last.behind(part);
                last
            };
            std::iter::once(Milestone::default())
                .chain(self.text.as_bytes().chunks_exact(MILESTONE).map(next))
                .collect()
        })
    }
}

impl Milestone {
    /// What stands before the end of a part that starts here.
    fn behind(self, part: &[u8]) -> Self {
        let breaks = count(part, |byte| byte == b'\n');
        let characters = count(part, |byte| byte & 0xc0 != 0x80);
        Self { breaks: self.breaks + breaks, characters: self.characters + characters }
    }
}

/// How many bytes are of a kind: counted in pieces whose number fits a byte, so that many are compared at a time.
fn count(part: &[u8], is_one: impl Fn(u8) -> bool) -> u32 {
    part.chunks(128)
        .map(|piece| u32::from(piece.iter().map(|byte| u8::from(is_one(*byte))).sum::<u8>()))
        .sum()
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
    fn lines_far_down() {
        let text: String = (0..20_000).map(|line| format!("{}\n", "ü".repeat(line % 7))).collect();
        let source = Source::new("x", &text);
        let mut start = 0;
        for (at, line) in text.split_terminator('\n').enumerate() {
            let number = at as u32 + 1;
            assert_eq!((source.line_start(number), source.line(number)), (Some(start), line));
            let end = source.position(start + line.len() as u32);
            assert_eq!((end.line, end.column as usize), (number, line.chars().count() + 1));
            start += line.len() as u32 + 1;
        }
        assert_eq!((source.line_start(20_001), source.line_start(20_002)), (Some(start), None));
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
