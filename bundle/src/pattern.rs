//! Regular expressions in Go's dialect of RE2, the one in which clusters read the patterns of schemas and rules.
//!
//! Go's dialect and that of the `regex` crate differ both ways: `^{{.*}}$`, `[^[\]]` and `\-` are Go's alone, `.{1,4096}`,
//! `\u0041`, `(?x)` and `[a&&b]` are not Go's at all, and `\d`, `\w` and `\b` know nothing but ASCII in Go. [`Pattern::parse`]
//! reads a pattern by Go's grammar (`regexp/syntax/parse.go`) and writes it again, in words that mean the same to the crate;
//! tests hold verdicts, reasons and matches against a recording of Go's. The crates that were looked at are a binding to
//! RE2's C++, whose dialect is another, and parsers that cannot match.

mod classes;

use std::fmt::Write as _;
use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

use classes::{PERL, POSIX};

/// A pattern that Go can compile.
///
/// ```
/// use olmkit_bundle::pattern::{Pattern, PatternError};
/// let pattern = Pattern::parse(r"^{{\d+}}$")?;
/// assert_eq!(pattern.is_match("{{12}}"), Some(true));
/// assert_eq!(pattern.is_match("{{١٢}}"), Some(false));
/// assert_eq!(Pattern::parse("^.{1,4096}$").unwrap_err(), PatternError::RepeatSize);
/// # Ok::<(), PatternError>(())
/// ```
#[derive(Debug)]
pub struct Pattern {
    /// The same pattern for the crate.
    translated: String,
    /// It compiled, which is not needed to know whether a pattern is one; none where that takes too much memory.
    compiled: OnceLock<Option<Regex>>,
}

/// Why Go cannot compile a pattern, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// A range whose end is before its start, or the name of a class that there is not.
    #[error("invalid character class range")]
    CharRange,
    /// A backslash before a letter or digit that means nothing there.
    #[error("invalid escape sequence")]
    Escape,
    /// The name of a group that has other characters than letters, digits and `_`.
    #[error("invalid named capture")]
    NamedCapture,
    /// `(?` and something that is not a flag, such as a look-ahead.
    #[error("invalid or unsupported Perl syntax")]
    PerlSyntax,
    /// A repetition of a repetition, such as `a**`.
    #[error("invalid nested repetition operator")]
    RepeatOperator,
    /// More than 1,000 repetitions, all levels taken together, or a maximum below the minimum.
    #[error("invalid repeat count")]
    RepeatSize,
    /// A class without its end.
    #[error("missing closing ]")]
    MissingBracket,
    /// A group without its end.
    #[error("missing closing )")]
    MissingParen,
    /// A repetition of nothing.
    #[error("missing argument to repetition operator")]
    MissingArgument,
    /// A backslash with nothing after it.
    #[error("trailing backslash at end of expression")]
    TrailingBackslash,
    /// The end of a group that was not begun.
    #[error("unexpected )")]
    UnexpectedParen,
    /// More than 1,000 levels.
    #[error("expression nests too deeply")]
    NestingDepth,
    /// A program of more than 128 MiB.
    #[error("expression too large")]
    Large,
}

use PatternError as Error;

/// What a compiled pattern may take. `.{1,1000}`, which is as much as most people write, takes a third of it.
const MAX_COMPILED: usize = 4 << 20;
/// Longer patterns are not matched: some take the crate long to compile.
const MAX_MATCHED: usize = 16 << 10;
/// The crate compiles level by level on the stack; deeper patterns are not matched.
const MAX_NESTING: u32 = 500;

const MAX_REPEAT: u32 = 1_000;
const MAX_HEIGHT: u32 = 1_000;
const MAX_SIZE: u64 = (128 << 20) / 40;

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When Go's `regexp.Compile` refuses it.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        Ok(Self { translated: Parser::new(text).parse()?, compiled: OnceLock::new() })
    }

    /// Whether a part of the text matches; none where finding out takes too much memory.
    pub fn is_match(&self, text: &str) -> Option<bool> {
        let compiled = self.compiled.get_or_init(|| {
            if self.translated.len() > MAX_MATCHED {
                return None;
            }
            let mut builder = RegexBuilder::new(&self.translated);
            builder.size_limit(MAX_COMPILED).nest_limit(MAX_NESTING).build().ok()
        });
        compiled.as_ref().map(|regex| regex.is_match(text))
    }
}

/// The flags that matter to what is matched.
#[derive(Clone, Copy, Default)]
struct Flags {
    fold: bool,
    multi_line: bool,
    dot_newline: bool,
}

/// What Go's limits look at in a part of a pattern.
#[derive(Clone, Copy)]
struct Shape {
    kind: Kind,
    height: u32,
    size: u64,
    /// How often the innermost thing is repeated.
    repeats: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// One or more characters as they are; Go keeps them in one node.
    Literal,
    /// A class of characters.
    Class,
    Concat,
    Alternate,
    Other,
}

impl Shape {
    const fn leaf(kind: Kind) -> Self {
        Self { kind, height: 1, size: 1, repeats: 1 }
    }

    fn is_char(self) -> bool {
        self.kind == Kind::Class || self.kind == Kind::Literal && self.size == 1
    }

    /// Parts in a row, or as alternatives.
    fn joined(self, other: Self, kind: Kind) -> Self {
        let size = self.size + other.size;
        let repeats = self.repeats.max(other.repeats);
        match kind {
            Kind::Concat if self.kind == Kind::Literal && other.kind == Kind::Literal => {
                Self { size, ..self }
            }
            Kind::Alternate if self.is_char() && other.is_char() => Self::leaf(Kind::Class),
            _ => {
                let below = |shape: Self| shape.height - u32::from(shape.kind == kind);
                let size = size + u64::from(kind == Kind::Alternate);
                Self { kind, height: 1 + below(self).max(below(other)), size, repeats }
            }
        }
    }
}

/// A group that is being read, or the whole pattern.
struct Group {
    is_capture: bool,
    /// The flags before it.
    flags: Flags,
    /// Where it starts in what is written.
    start: usize,
    alternatives: Option<Shape>,
    sequence: Option<Shape>,
    /// The last part of the sequence, which a repetition takes, and where it starts in what is written.
    last: Option<(Shape, usize)>,
}

struct Parser<'p> {
    rest: &'p str,
    flags: Flags,
    groups: Vec<Group>,
    written: String,
    /// Whether what was read last is a repetition.
    after_repeat: bool,
    /// Whether there is no `:]` any more, which is not looked for again and again.
    without_posix: bool,
}

impl<'p> Parser<'p> {
    fn new(rest: &'p str) -> Self {
        let whole = Group {
            is_capture: false,
            flags: Flags::default(),
            start: 0,
            alternatives: None,
            sequence: None,
            last: None,
        };
        let written = String::with_capacity(rest.len() + 8);
        Self {
            rest,
            flags: Flags::default(),
            groups: vec![whole],
            written,
            after_repeat: false,
            without_posix: false,
        }
    }

    fn parse(mut self) -> Result<String, Error> {
        while let Some(next) = self.rest.chars().next() {
            let is_repeat = self.part(next)?;
            self.after_repeat = is_repeat;
        }
        self.end_group()?;
        if self.groups.len() > 1 { Err(Error::MissingParen) } else { Ok(self.written) }
    }

    /// Reads one part of the pattern; whether it was a repetition.
    fn part(&mut self, next: char) -> Result<bool, Error> {
        match next {
            '(' if self.rest.starts_with("(?") => self.perl_group()?,
            '(' => {
                self.skip(1);
                self.begin_group(true);
            }
            ')' => {
                self.skip(1);
                self.close_group()?;
            }
            '|' => {
                self.skip(1);
                self.end_alternative()?;
                self.written.push('|');
            }
            '^' => self.look(1, if self.flags.multi_line { "(?m:^)" } else { "\\A" })?,
            '$' => self.look(1, if self.flags.multi_line { "(?m:$)" } else { "\\z" })?,
            '.' => {
                self.skip(1);
                let text = if self.flags.dot_newline { "(?s:.)" } else { "[^\\n]" };
                self.atom(Shape::leaf(Kind::Class), text)?;
            }
            '[' => {
                let class = self.class()?;
                self.atom(Shape::leaf(Kind::Class), &class)?;
            }
            '*' | '+' | '?' => {
                self.skip(1);
                let (least, most) = match next {
                    '*' => (0, None),
                    '+' => (1, None),
                    _ => (0, Some(1)),
                };
                return self.repeat(least, most, false).map(|()| true);
            }
            '{' => match repeat_counts(self.rest) {
                None => {
                    self.skip(1);
                    self.literal('{')?;
                }
                Some((least, most, length)) => {
                    self.skip(length);
                    if least > MAX_REPEAT || most.is_some_and(|most| most > MAX_REPEAT || least > most) {
                        return Err(Error::RepeatSize);
                    }
                    return self.repeat(least, most, true).map(|()| true);
                }
            },
            '\\' => self.backslash()?,
            _ => {
                self.skip(next.len_utf8());
                self.literal(next)?;
            }
        }
        Ok(false)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.skip(next.len_utf8());
        Some(next)
    }

    fn group(&mut self) -> &mut Group {
        // The whole pattern is never closed.
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    /// Something that a repetition may follow.
    fn atom(&mut self, shape: Shape, text: &str) -> Result<(), Error> {
        let start = self.written.len();
        self.written += text;
        self.push(shape, start)
    }

    fn push(&mut self, shape: Shape, start: usize) -> Result<(), Error> {
        let group = self.group();
        if let Some((before, _)) = group.last.replace((shape, start)) {
            group.sequence = Some(match group.sequence {
                None => before,
                Some(sequence) => sequence.joined(before, Kind::Concat),
            });
        }
        within_limits(shape)
    }

    fn look(&mut self, bytes: usize, text: &str) -> Result<(), Error> {
        self.skip(bytes);
        self.atom(Shape::leaf(Kind::Other), &format!("(?:{text})"))
    }

    fn literal(&mut self, c: char) -> Result<(), Error> {
        let mut text = String::new();
        write_char(&mut text, c.into());
        let text = if self.flags.fold { format!("(?i:{text})") } else { text };
        self.atom(Shape::leaf(Kind::Literal), &text)
    }

    fn begin_group(&mut self, is_capture: bool) {
        let start = self.written.len();
        self.written += "(?:";
        let flags = self.flags;
        self.groups.push(Group { is_capture, flags, start, alternatives: None, sequence: None, last: None });
    }

    /// Ends what is between two `|`.
    fn end_alternative(&mut self) -> Result<(), Error> {
        let group = self.group();
        let last = group.last.take().map(|(shape, _)| shape);
        let sequence = match (group.sequence.take(), last) {
            (Some(sequence), Some(last)) => sequence.joined(last, Kind::Concat),
            (sequence, last) => sequence.or(last).unwrap_or(Shape::leaf(Kind::Other)),
        };
        group.alternatives = Some(match group.alternatives {
            None => sequence,
            Some(alternatives) => alternatives.joined(sequence, Kind::Alternate),
        });
        within_limits(sequence)
    }

    fn end_group(&mut self) -> Result<Shape, Error> {
        self.end_alternative()?;
        let shape = self.group().alternatives.unwrap_or(Shape::leaf(Kind::Other));
        within_limits(shape)?;
        Ok(shape)
    }

    fn close_group(&mut self) -> Result<(), Error> {
        let mut shape = self.end_group()?;
        if self.groups.len() == 1 {
            return Err(Error::UnexpectedParen);
        }
        let Some(group) = self.groups.pop() else { return Err(Error::UnexpectedParen) };
        self.flags = group.flags;
        self.written.push(')');
        if group.is_capture {
            shape = Shape { kind: Kind::Other, height: shape.height + 1, size: shape.size + 2, ..shape };
        }
        self.push(shape, group.start)
    }

    fn repeat(&mut self, least: u32, most: Option<u32>, is_counted: bool) -> Result<(), Error> {
        if self.rest.starts_with('?') {
            // Whether it takes as much as it can is of no concern here.
            self.skip(1);
        }
        if self.after_repeat {
            return Err(Error::RepeatOperator);
        }
        let Some((inner, start)) = self.group().last.take() else { return Err(Error::MissingArgument) };
        let repeats = match most.unwrap_or(least) {
            0 if most == Some(0) => 1,
            times if is_counted => inner.repeats.saturating_mul(times.max(1)),
            _ => inner.repeats,
        };
        let size = match (most, least) {
            _ if !is_counted => inner.size + if most.is_none() && least == 0 { 2 } else { 1 },
            (None, 0) => inner.size + 2,
            (None, least) => 1 + u64::from(least) * inner.size,
            (Some(most), least) => u64::from(most) * inner.size + u64::from(most - least),
        };
        let shape = Shape { kind: Kind::Other, height: inner.height + 1, size: size.max(1), repeats };
        // `a*\Q\E?` and `a*(?i)?` repeat a repetition, which is something else than `a*?`.
        if self.written[start..].ends_with(['*', '+', '?', '}']) {
            self.written.insert_str(start, "(?:");
            self.written.push(')');
        }
        match (is_counted, least, most) {
            (false, 0, None) => self.written.push('*'),
            (false, _, None) => self.written.push('+'),
            (false, _, Some(_)) => self.written.push('?'),
            (true, least, None) => drop(write!(self.written, "{{{least},}}")),
            (true, least, Some(most)) => drop(write!(self.written, "{{{least},{most}}}")),
        }
        self.group().last = Some((shape, start));
        within_limits(shape)?;
        if repeats > MAX_REPEAT { Err(Error::RepeatSize) } else { Ok(()) }
    }

    /// A group that starts with `(?`, or flags alone.
    fn perl_group(&mut self) -> Result<(), Error> {
        let name = match self.rest.as_bytes() {
            [_, _, b'P', b'<', _, ..] => Some(4),
            [_, _, b'<', _, ..] => Some(3),
            _ => None,
        };
        if let Some(start) = name {
            let end = self.rest.find('>').ok_or(Error::NamedCapture)?;
            // `(?P<` may come behind the only `>`: there is no name then.
            let name = self.rest.get(start..end).unwrap_or_default();
            if name.is_empty() || !name.bytes().all(|c| c == b'_' || c.is_ascii_alphanumeric()) {
                return Err(Error::NamedCapture);
            }
            self.skip(end + 1);
            self.begin_group(true);
            return Ok(());
        }
        self.skip(2);
        let (mut flags, mut value, mut has_flag) = (self.flags, true, false);
        loop {
            match self.next() {
                Some('i') => flags.fold = value,
                Some('m') => flags.multi_line = value,
                Some('s') => flags.dot_newline = value,
                Some('U') => {}
                Some('-') if value => {
                    (value, has_flag) = (false, false);
                    continue;
                }
                Some(c @ (':' | ')')) if value || has_flag => {
                    if c == ':' {
                        self.begin_group(false);
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => return Err(Error::PerlSyntax),
            }
            has_flag = true;
        }
    }

    fn backslash(&mut self) -> Result<(), Error> {
        match self.rest[1..].chars().next() {
            Some('A') => self.look(2, "\\A"),
            Some('z') => self.look(2, "\\z"),
            Some('b') => self.look(2, "(?-u:\\b)"),
            Some('B') => self.look(2, "(?-u:\\B)"),
            Some('C') => Err(Error::Escape),
            Some('Q') => {
                self.skip(2);
                let (quoted, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.rest = rest;
                quoted.chars().try_for_each(|c| self.literal(c))
            }
            _ => {
                let mut class = String::new();
                if self.named_class(&mut class)? {
                    let class = self.folded(&format!("[{class}]"));
                    return self.atom(Shape::leaf(Kind::Class), &class);
                }
                match self.escape()? {
                    Some(c) => self.literal(c),
                    None => self.atom(Shape::leaf(Kind::Literal), NOTHING),
                }
            }
        }
    }

    fn folded(&self, class: &str) -> String {
        if self.flags.fold { format!("(?i:{class})") } else { class.to_owned() }
    }

    /// A class in brackets.
    fn class(&mut self) -> Result<String, Error> {
        self.skip(1);
        let mut written = String::from("[");
        if self.rest.starts_with('^') {
            self.skip(1);
            written.push('^');
        }
        let start = written.len();
        let mut is_first = true;
        while is_first || !self.rest.starts_with(']') {
            is_first = false;
            if self.posix_class(&mut written)? || self.named_class(&mut written)? {
                continue;
            }
            let low = self.class_char()?;
            let mut high = low;
            if self.rest.len() >= 2 && self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.skip(1);
                high = self.class_char()?;
                if high < low {
                    return Err(Error::CharRange);
                }
            }
            write_range(&mut written, low, high);
        }
        self.skip(1);
        if written.len() == start {
            // Nothing but surrogates, which no text has.
            written += NOTHING;
        }
        written.push(']');
        Ok(self.folded(&written))
    }

    /// A character of a class, as a number: surrogates may be named.
    fn class_char(&mut self) -> Result<u32, Error> {
        match self.rest.chars().next() {
            None => Err(Error::MissingBracket),
            Some('\\') => self.escaped_number(),
            Some(c) => {
                self.skip(c.len_utf8());
                Ok(c.into())
            }
        }
    }

    /// A class such as `[:alpha:]`, if one comes next.
    fn posix_class(&mut self, written: &mut String) -> Result<bool, Error> {
        let Some(inner) = self.rest.strip_prefix("[:") else { return Ok(false) };
        if self.without_posix {
            return Ok(false);
        }
        let Some(end) = inner.find(":]") else {
            self.without_posix = true;
            return Ok(false);
        };
        let name = &inner[..end];
        let (negated, name) = name.strip_prefix('^').map_or((false, name), |name| (true, name));
        let (_, class) = POSIX.iter().find(|(known, _)| *known == name).ok_or(Error::CharRange)?;
        let sign = if negated { "^" } else { "" };
        let _ = write!(written, "[{sign}{class}]");
        self.skip(2 + end + 2);
        Ok(true)
    }

    /// A class such as `\d` or `\p{Greek}`, if one comes next.
    fn named_class(&mut self, written: &mut String) -> Result<bool, Error> {
        let Some(after) = self.rest.strip_prefix('\\') else { return Ok(false) };
        let Some(letter) = after.chars().next() else { return Ok(false) };
        if let Some((_, class)) = PERL.iter().find(|(known, _)| *known == letter.to_ascii_lowercase()) {
            let sign = if letter.is_ascii_uppercase() { "^" } else { "" };
            let _ = write!(written, "[{sign}{class}]");
            self.skip(2);
            return Ok(true);
        }
        if !matches!(letter, 'p' | 'P') {
            return Ok(false);
        }
        let after = &after[1..];
        let (name, length) = match after.chars().next() {
            Some('{') => {
                let end = after.find('}').ok_or(Error::CharRange)?;
                (&after[1..end], end + 1)
            }
            Some(c) => (&after[..c.len_utf8()], c.len_utf8()),
            None => return Err(Error::CharRange),
        };
        let (mut negated, mut name) = (letter == 'P', name);
        if let Some(inner) = name.strip_prefix('^') {
            (negated, name) = (!negated, inner);
        }
        let class = classes::unicode(name).ok_or(Error::CharRange)?;
        let sign = if negated { "^" } else { "" };
        let _ = write!(written, "[{sign}{class}]");
        self.skip(2 + length);
        Ok(true)
    }

    /// A character behind a backslash; none for a surrogate, which no text has.
    fn escape(&mut self) -> Result<Option<char>, Error> {
        self.escaped_number().map(char::from_u32)
    }

    fn escaped_number(&mut self) -> Result<u32, Error> {
        self.skip(1);
        let Some(c) = self.next() else { return Err(Error::TrailingBackslash) };
        let is_octal = |rest: &str| rest.starts_with(|c: char| c.is_digit(8));
        Ok(match c {
            // A single digit would be a back-reference.
            '1'..='7' if !is_octal(self.rest) => return Err(Error::Escape),
            '0'..='7' => {
                let mut number = c.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(8)) else { break };
                    number = number * 8 + digit;
                    self.skip(1);
                }
                number
            }
            'x' => self.hexadecimal().ok_or(Error::Escape)?,
            'a' => 0x07,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'v' => 0x0b,
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => c.into(),
            _ => return Err(Error::Escape),
        })
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        let first = self.next()?;
        if first != '{' {
            return Some(first.to_digit(16)? * 16 + self.next()?.to_digit(16)?);
        }
        let (digits, rest) = self.rest.split_once('}')?;
        self.rest = rest;
        let number = |number: u32, c: char| {
            let number = number * 16 + c.to_digit(16)?;
            (number <= char::MAX.into()).then_some(number)
        };
        if digits.is_empty() { None } else { digits.chars().try_fold(0, number) }
    }
}

/// A class without characters, which stands in brackets of its own.
const NOTHING: &str = "[^\\x{0}-\\x{10FFFF}]";

fn within_limits(shape: Shape) -> Result<(), Error> {
    if shape.size > MAX_SIZE {
        Err(Error::Large)
    } else if shape.height > MAX_HEIGHT {
        Err(Error::NestingDepth)
    } else {
        Ok(())
    }
}

/// Minimum, maximum and text length of a repetition such as `{2,5}`. `None` if the text is not a repetition: Go then reads the
/// brace as a literal. Numbers that do not fit are returned as `u32::MAX`.
fn repeat_counts(text: &str) -> Option<(u32, Option<u32>, usize)> {
    let (least, rest) = number(text.strip_prefix('{')?)?;
    let (most, rest) = match rest.strip_prefix(',') {
        None => (Some(least), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => {
            let (most, rest) = number(rest)?;
            (Some(most), rest)
        }
    };
    let rest = rest.strip_prefix('}')?;
    Some((least, most, text.len() - rest.len()))
}

/// A number without leading zeros, and what comes after it.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}

/// A range of a class without the surrogates in it.
fn write_range(written: &mut String, low: u32, high: u32) {
    for (low, high) in [(low, high.min(0xd7ff)), (low.max(0xe000), high)] {
        if low <= high {
            write_char(written, low);
            written.push('-');
            write_char(written, high);
        }
    }
}

fn write_char(written: &mut String, c: u32) {
    match char::from_u32(c) {
        Some(c) if c.is_ascii_alphanumeric() => written.push(c),
        _ => drop(write!(written, "\\x{{{c:X}}}")),
    }
}

#[cfg(test)]
mod tests;
