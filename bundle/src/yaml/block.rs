//! Reads the block style that tools and people write Kubernetes' files in, four times faster than the parser.
//!
//! One pass over the lines: maps, lists, plain, quoted and block scalars, collections in brackets that end on their
//! line. Whatever else a text holds (anchors, tags, merge keys, keys that stand twice, tabs between words, a fault)
//! makes the whole document [`NeedsFullParser`], and the parser reads it; so what is read here needs no judgement, and
//! tests hold both readings equal, values and places.

use std::borrow::Cow;

use super::build::{MAX_DEPTH, Room};
use super::{Entry, LINEAR_KEYS, Mapping, Node, Value, resolve};
use crate::source::Span;

/// The text is not in the style that this reader knows.
pub(super) struct NeedsFullParser;

type Read<T> = Result<T, NeedsFullParser>;

/// Keys that are longer are no keys to YAML.
const MAX_KEY: usize = 1000;

/// Reads one document, which starts at byte `offset` of its file and holds no characters that YAML forbids; with the room that it
/// leaves.
pub(super) fn read(text: &str, offset: usize, room: Room) -> Read<(Node<'_>, Room)> {
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        offset,
        at: 0,
        line: 0,
        column: END,
        depth: 0,
        room,
        items: Vec::new(),
        entries: Vec::new(),
    };
    if text.starts_with("---") {
        reader.at = 3;
        reader.end_line()?;
    }
    reader.next_line()?;
    if reader.column == END {
        return Err(NeedsFullParser);
    }
    let root = match reader.collection()? {
        Some(root) => root,
        None => return Err(NeedsFullParser),
    };
    if reader.column == END { Ok((root, reader.room)) } else { Err(NeedsFullParser) }
}

/// The column of what stands behind the last line.
const END: isize = -1;

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// Where the text starts in its file.
    offset: usize,
    at: usize,
    /// Where the line of `at` starts.
    line: usize,
    /// The column of `at` once [`Reader::next_line`] went to the next line that says something.
    column: isize,
    depth: usize,
    room: Room,
    /// The values of lists that are not read to their end, the innermost last.
    items: Vec<Node<'a>>,
    /// The same of maps.
    entries: Vec<Entry<'a>>,
}

impl<'a> Reader<'a> {
    fn byte(&self, at: usize) -> u8 {
        // A text ends as a line does.
        self.bytes.get(at).copied().unwrap_or(b'\n')
    }

    fn span(&self, from: usize, to: usize) -> Span {
        Span::new(self.offset + from, self.offset + to)
    }

    fn is_blank(&self, at: usize) -> bool {
        matches!(self.byte(at), b' ' | b'\n')
    }

    fn at_dash(&self) -> bool {
        self.byte(self.at) == b'-' && self.is_blank(self.at + 1)
    }

    fn skip_spaces(&mut self) {
        while self.byte(self.at) == b' ' {
            self.at += 1;
        }
    }

    /// Goes from the start of a line to the first word at or behind it.
    fn next_line(&mut self) -> Read<()> {
        loop {
            self.line = self.at;
            if self.at >= self.bytes.len() {
                self.column = END;
                return Ok(());
            }
            self.skip_spaces();
            match self.byte(self.at) {
                b'\n' => self.at += 1,
                b'#' => self.skip_line(),
                b'\t' => return Err(NeedsFullParser),
                _ => break,
            }
        }
        self.column = (self.at - self.line) as isize;
        let mark = self.column == 0
            && matches!(self.bytes[self.at..], [b'-', b'-', b'-', ..] | [b'.', b'.', b'.', ..]);
        if mark { Err(NeedsFullParser) } else { Ok(()) }
    }

    /// Goes behind the end of the line.
    fn skip_line(&mut self) {
        self.at = line_end(self.bytes, self.at) + 1;
    }

    /// Goes behind the end of a line on which nothing but a comment may follow.
    fn end_line(&mut self) -> Read<()> {
        let spaces = self.at;
        self.skip_spaces();
        match self.byte(self.at) {
            b'\n' => self.at += 1,
            b'#' if self.at > spaces => self.skip_line(),
            _ => return Err(NeedsFullParser),
        }
        Ok(())
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= MAX_DEPTH {
            return Err(NeedsFullParser);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// The list or map that starts here; none where a scalar does.
    fn collection(&mut self) -> Read<Option<Node<'a>>> {
        let column = (self.at - self.line) as isize;
        if self.at_dash() {
            return self.deeper(|reader| reader.sequence(column)).map(Some);
        }
        match self.key()? {
            Some(key) => self.deeper(|reader| reader.mapping(column, key)).map(Some),
            None => Ok(None),
        }
    }

    fn sequence(&mut self, column: isize) -> Read<Node<'a>> {
        let (start, first) = (self.at, self.items.len());
        loop {
            self.at += 1;
            let behind_dash = self.at;
            self.skip_spaces();
            let item = match self.byte(self.at) {
                b'\n' | b'#' => self.on_next_line(column, behind_dash, false)?,
                _ => match self.collection()? {
                    Some(item) => item,
                    None => self.scalar(column)?,
                },
            };
            self.add_item(item)?;
            if self.column < column || self.column == column && !self.at_dash() {
                break;
            }
            if self.column > column {
                return Err(NeedsFullParser);
            }
        }
        let items: Vec<_> = self.items.drain(first..).collect();
        let end = items.last().map_or(start, |item| item.span.end as usize - self.offset).max(start);
        Ok(Node { value: Value::Sequence(items), span: self.span(start, end) })
    }

    fn mapping(&mut self, column: isize, key: Node<'a>) -> Read<Node<'a>> {
        let first = self.entries.len();
        let start = key.span;
        let mut end = key.span.end;
        let mut next = key;
        loop {
            let behind_key = self.at;
            self.skip_spaces();
            let value = match self.byte(self.at) {
                b'\n' | b'#' => self.on_next_line(column, behind_key, true)?,
                b'-' if self.at_dash() => return Err(NeedsFullParser),
                _ => self.scalar(column)?,
            };
            end = end.max(value.span.end).max(next.span.end);
            let key_span = next.span;
            let key = resolve::key(next).map_err(|_| NeedsFullParser)?;
            self.add(first, Entry { key, key_span, value })?;
            if self.column < column {
                break;
            }
            if self.column > column || self.at_dash() {
                return Err(NeedsFullParser);
            }
            next = self.key()?.ok_or(NeedsFullParser)?;
        }
        let mapping = self.close(first)?;
        Ok(Node { value: Value::Mapping(mapping), span: Span { start: start.start, end } })
    }

    /// Adds an item to the innermost list.
    fn add_item(&mut self, item: Node<'a>) -> Read<()> {
        if !self.room.take(1) {
            return Err(NeedsFullParser);
        }
        let rest = self.rest();
        grow(&mut self.items, &self.room, rest);
        self.items.push(item);
        Ok(())
    }

    /// Adds an entry to the map whose entries begin at `first`.
    fn add(&mut self, first: usize, entry: Entry<'a>) -> Read<()> {
        let small = self.entries.len() - first <= LINEAR_KEYS;
        if small && self.entries[first..].iter().any(|other| other.key == entry.key) {
            return Err(NeedsFullParser);
        }
        if !self.room.take(2) {
            return Err(NeedsFullParser);
        }
        let rest = self.rest();
        grow(&mut self.entries, &self.room, rest);
        self.entries.push(entry);
        Ok(())
    }

    /// The bytes that are not read yet. A text whose last line does not end with a line break is left one byte behind its end.
    fn rest(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    fn close(&mut self, first: usize) -> Read<Mapping<'a>> {
        let mapping = Mapping::new(self.entries.drain(first..).collect());
        let key = |at: u32| &mapping.entries[at as usize].key;
        let twice = mapping.by_key.windows(2).any(|pair| key(pair[0]) == key(pair[1]));
        if twice { Err(NeedsFullParser) } else { Ok(mapping) }
    }

    /// The value of a key or dash that ends its line: deeper, and for a key also a list at its own column, or null.
    fn on_next_line(&mut self, column: isize, behind: usize, of_key: bool) -> Read<Node<'a>> {
        if self.byte(self.at) == b'#' && self.at == behind {
            return Err(NeedsFullParser);
        }
        self.skip_line();
        self.next_line()?;
        if self.column > column {
            return match self.collection()? {
                Some(node) => Ok(node),
                None => self.scalar(column),
            };
        }
        if of_key && self.column == column && self.at_dash() {
            let line = line_end(self.bytes, self.at);
            let mut list = self.deeper(|reader| reader.sequence(column))?;
            // The parser sees no start of a list that is not indented, but its first value.
            let first = list.as_sequence().and_then(<[_]>::first).ok_or(NeedsFullParser)?;
            list.span.start = first.span.start;
            let on_line = (list.span.start as usize) < self.offset + line;
            return if on_line { Ok(list) } else { Err(NeedsFullParser) };
        }
        // The parser sees a key's null on the colon, and a list's in several places.
        let colon = behind - 1;
        if of_key {
            Ok(Node { value: Value::Null, span: self.span(colon, colon) })
        } else {
            Err(NeedsFullParser)
        }
    }

    /// The key that starts here, read to behind its colon; none where there is none on this line.
    fn key(&mut self) -> Read<Option<Node<'a>>> {
        let start = self.at;
        let (value, end, colon) = match self.byte(start) {
            quote @ (b'"' | b'\'') => {
                let Some((value, end)) = self.quoted_on_line(start, quote) else { return Ok(None) };
                let mut colon = end;
                while self.byte(colon) == b' ' {
                    colon += 1;
                }
                if self.byte(colon) != b':' {
                    return Ok(None);
                }
                (Value::String(value), end, colon)
            }
            first => {
                if !self.starts_plain(start, first) {
                    return Ok(None);
                }
                let Some(colon) = self.colon(start)? else { return Ok(None) };
                let key = self.text[start..colon].trim_end_matches(' ');
                if key == "<<" {
                    return Err(NeedsFullParser);
                }
                let value = resolve::scalar(Cow::Borrowed(key), true, None).map_err(|_| NeedsFullParser)?;
                (value, start + key.len(), colon)
            }
        };
        if !self.is_blank(colon + 1) || colon - start > MAX_KEY {
            return Err(NeedsFullParser);
        }
        self.at = colon + 1;
        Ok(Some(Node { value, span: self.span(start, end) }))
    }

    /// Whether a plain scalar may start with this byte.
    fn starts_plain(&self, at: usize, first: u8) -> bool {
        match first {
            b'-' | b':' => !self.is_blank(at + 1),
            b'?' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\''
            | b'"' => false,
            b'%' | b'@' | b'`' | b'\t' | b'\n' => false,
            _ => true,
        }
    }

    /// The colon that ends a plain key; none when the line or a comment comes first.
    fn colon(&self, start: usize) -> Read<Option<usize>> {
        let mut at = start;
        loop {
            match self.byte(at) {
                b':' if self.is_blank(at + 1) => return Ok(Some(at)),
                b'\n' => return Ok(None),
                b'#' if self.byte(at - 1) == b' ' => return Ok(None),
                b'\t' => return Err(NeedsFullParser),
                _ => at += 1,
            }
        }
    }

    /// The scalar, or the collection in brackets, that starts here as the value of what stands at `parent`; then the
    /// next line.
    fn scalar(&mut self, parent: isize) -> Read<Node<'a>> {
        let first = self.byte(self.at);
        match first {
            b'|' | b'>' => return self.block_scalar(parent, first == b'>'),
            b'"' | b'\'' => {
                let node = self.quoted(parent, first)?;
                self.end_line()?;
                self.next_line()?;
                return Ok(node);
            }
            b'[' | b'{' => {
                let node = self.flow()?;
                self.end_line()?;
                self.next_line()?;
                return Ok(node);
            }
            _ if self.starts_plain(self.at, first) => {}
            _ => return Err(NeedsFullParser),
        }
        self.plain(parent)
    }

    fn plain(&mut self, parent: isize) -> Read<Node<'a>> {
        let start = self.at;
        let mut end = self.plain_on_line()?;
        let mut value = Cow::Borrowed(&self.text[start..end]);
        // A comment ends the scalar; so does the end of the text.
        while self.at < self.bytes.len() && self.byte(self.at) == b'\n' {
            let mut breaks = 0;
            let mut line = self.at + 1;
            let next = loop {
                let next = line + spaces(&self.bytes[line.min(self.bytes.len())..]);
                if next < self.bytes.len() && self.bytes[next] == b'\n' {
                    breaks += 1;
                    line = next + 1;
                } else {
                    break next;
                }
            };
            let goes_on = next < self.bytes.len()
                && (next - line) as isize > parent
                && !matches!(self.bytes[next], b'#' | b'\t');
            if !goes_on {
                self.at = line.min(self.bytes.len());
                break;
            }
            self.at = next;
            end = self.plain_on_line()?;
            let text = value.to_mut();
            if breaks == 0 {
                text.push(' ');
            }
            text.extend(std::iter::repeat_n('\n', breaks));
            text.push_str(&self.text[next..end]);
        }
        if self.byte(self.at) == b'#' {
            self.skip_line();
        }
        self.next_line()?;
        let value = resolve::scalar(value, true, None).map_err(|_| NeedsFullParser)?;
        Ok(Node { value, span: self.span(start, end) })
    }

    /// Where the plain text from here to the end of the line ends; leaves `at` on the line's end or on a comment.
    fn plain_on_line(&mut self) -> Read<usize> {
        let mut last = self.at;
        loop {
            match self.byte(self.at) {
                b'\n' => return Ok(last),
                b' ' => {}
                b'\t' => return Err(NeedsFullParser),
                b':' if self.is_blank(self.at + 1) || self.byte(self.at + 1) == b'\t' => {
                    return Err(NeedsFullParser);
                }
                b'#' if self.byte(self.at - 1) == b' ' => return Ok(last),
                _ => last = self.at + 1,
            }
            self.at += 1;
        }
    }

    /// A quoted scalar without escapes on this line, as it stands, and where it ends.
    fn quoted_on_line(&self, start: usize, quote: u8) -> Option<(Cow<'a, str>, usize)> {
        let body = &self.bytes[start + 1..];
        let length = body.iter().position(|byte| *byte == quote || matches!(byte, b'\n' | b'\\'))?;
        let end = start + 1 + length;
        let ends = self.bytes[end] == quote && !(quote == b'\'' && self.byte(end + 1) == b'\'');
        // A backslash means nothing between single quotes, but is rare there.
        ends.then(|| (Cow::Borrowed(&self.text[start + 1..end]), end + 1))
    }

    fn quoted(&mut self, parent: isize, quote: u8) -> Read<Node<'a>> {
        let start = self.at;
        let value = match self.quoted_on_line(start, quote) {
            Some((value, end)) => {
                self.at = end;
                value
            }
            None => Cow::Owned(self.quoted_on_lines(parent, quote)?),
        };
        Ok(Node { value: Value::String(value), span: self.span(start, self.at) })
    }

    /// A quoted scalar with escapes or over several lines, which are folded.
    fn quoted_on_lines(&mut self, parent: isize, quote: u8) -> Read<String> {
        let mut text = String::new();
        let mut at = self.at + 1;
        let mut copied = at;
        loop {
            match *self.bytes.get(at).ok_or(NeedsFullParser)? {
                b'\'' if quote == b'\'' && self.byte(at + 1) == b'\'' => {
                    text.push_str(&self.text[copied..=at]);
                    at += 2;
                    copied = at;
                }
                byte if byte == quote => {
                    text.push_str(&self.text[copied..at]);
                    self.at = at + 1;
                    return Ok(text);
                }
                b'\\' if quote == b'"' && self.byte(at + 1) == b'\n' => {
                    text.push_str(&self.text[copied..at]);
                    let (breaks, next) = self.fold(at + 1, parent)?;
                    text.extend(std::iter::repeat_n('\n', breaks));
                    (at, copied) = (next, next);
                }
                b'\\' if quote == b'"' => {
                    text.push_str(&self.text[copied..at]);
                    let (escaped, length) = escape(&self.bytes[at + 1..])?;
                    text.push(escaped);
                    at += 1 + length;
                    copied = at;
                }
                b'\n' => {
                    text.push_str(self.text[copied..at].trim_end_matches([' ', '\t']));
                    let (breaks, next) = self.fold(at, parent)?;
                    if breaks == 0 {
                        text.push(' ');
                    }
                    text.extend(std::iter::repeat_n('\n', breaks));
                    (at, copied) = (next, next);
                }
                _ => at += 1,
            }
        }
    }

    /// From a line's end to the next word of a quoted scalar: the empty lines between, and where the word stands.
    fn fold(&self, end: usize, parent: isize) -> Read<(usize, usize)> {
        let mut breaks = 0;
        let mut line = end + 1;
        loop {
            let next = line + spaces(self.bytes.get(line..).ok_or(NeedsFullParser)?);
            match self.bytes.get(next).ok_or(NeedsFullParser)? {
                b'\n' => {
                    breaks += 1;
                    line = next + 1;
                }
                b'\t' => return Err(NeedsFullParser),
                _ if (next - line) as isize <= parent => return Err(NeedsFullParser),
                _ => return Ok((breaks, next)),
            }
        }
    }

    fn block_scalar(&mut self, parent: isize, folded: bool) -> Read<Node<'a>> {
        let mut start = self.at;
        self.at += 1;
        let (mut chomping, mut indent) = (b' ', None);
        loop {
            match self.byte(self.at) {
                sign @ (b'-' | b'+') if chomping == b' ' => chomping = sign,
                digit @ b'1'..=b'9' if indent.is_none() => indent = Some(usize::from(digit - b'0')),
                _ => break,
            }
            self.at += 1;
        }
        let header = self.at;
        self.end_line()?;
        let first = self.at.min(self.bytes.len());
        // Empty lines before the first word, whose column is that of all.
        let mut at = first;
        let mut breaks = 0;
        let mut widest = 0;
        let indent = loop {
            let width = spaces(&self.bytes[at..]);
            match self.bytes.get(at + width) {
                Some(b'\n') if indent.is_none_or(|given| width <= parent.max(0) as usize + given) => {
                    widest = widest.max(width);
                    breaks += 1;
                    at += width + 1;
                }
                Some(b'\t') => return Err(NeedsFullParser),
                None => return Err(NeedsFullParser),
                Some(_) => break indent.map_or(width, |given| parent.max(0) as usize + given),
            }
        };
        if indent as isize <= parent || widest > indent {
            return Err(NeedsFullParser);
        }
        let mut text = String::new();
        text.extend(std::iter::repeat_n('\n', breaks));
        let (mut last, mut ended, mut leading_blank) = (header, false, false);
        let mut breaks = 0;
        let mut first_line = true;
        loop {
            let width = spaces(&self.bytes[at..]);
            if width < indent {
                match self.bytes.get(at + width) {
                    Some(b'\n') => {
                        breaks += 1;
                        at += width + 1;
                        continue;
                    }
                    // What stands between the two columns is a fault, or something that only looks like a comment.
                    Some(_) if width as isize > parent => return Err(NeedsFullParser),
                    None if width > 0 => return Err(NeedsFullParser),
                    _ => break,
                }
            }
            if width == indent && self.bytes.get(at + width) == Some(&b'\n') {
                breaks += 1;
                at += width + 1;
                continue;
            }
            let content = at + indent;
            let end = line_end(self.bytes, content);
            let blank = matches!(self.byte(content), b' ' | b'\t');
            if first_line {
                // Where the parser says that the scalar starts: at its first word.
                start = content;
            }
            if !first_line {
                if !folded || leading_blank || blank {
                    text.push('\n');
                } else if breaks == 0 {
                    text.push(' ');
                }
                text.extend(std::iter::repeat_n('\n', breaks));
            } else if breaks > 0 {
                return Err(NeedsFullParser);
            }
            (breaks, first_line, leading_blank) = (0, false, blank);
            text.push_str(&self.text[content..end]);
            last = end;
            ended = end < self.bytes.len();
            at = (end + 1).min(self.bytes.len());
            if !ended {
                break;
            }
        }
        if !ended {
            return Err(NeedsFullParser);
        }
        if chomping != b'-' {
            text.push('\n');
        }
        if chomping == b'+' {
            text.extend(std::iter::repeat_n('\n', breaks));
        }
        let written = self.text[start..last].trim_ascii_end().len();
        self.at = at;
        self.next_line()?;
        Ok(Node { value: Value::String(text.into()), span: self.span(start, start + written) })
    }

    /// A collection in brackets that ends on this line.
    fn flow(&mut self) -> Read<Node<'a>> {
        self.deeper(|reader| {
            let start = reader.at;
            reader.at += 1;
            let value =
                if reader.bytes[start] == b'[' { reader.flow_sequence()? } else { reader.flow_mapping()? };
            Ok(Node { value, span: reader.span(start, reader.at) })
        })
    }

    fn flow_sequence(&mut self) -> Read<Value<'a>> {
        let first = self.items.len();
        loop {
            self.skip_spaces();
            if self.byte(self.at) != b']' {
                let item = self.flow_value()?;
                self.add_item(item)?;
            }
            if self.flow_ends(b']')? {
                return Ok(Value::Sequence(self.items.drain(first..).collect()));
            }
        }
    }

    fn flow_mapping(&mut self) -> Read<Value<'a>> {
        let first = self.entries.len();
        loop {
            self.skip_spaces();
            if self.byte(self.at) != b'}' {
                let key = match self.byte(self.at) {
                    b'[' | b'{' => return Err(NeedsFullParser),
                    _ => self.flow_value()?,
                };
                let quoted = matches!(self.byte(self.at - 1), b'"' | b'\'');
                let merges = !quoted && key.as_str() == Some("<<");
                if merges || self.byte(self.at) != b':' || !quoted && self.byte(self.at + 1) != b' ' {
                    return Err(NeedsFullParser);
                }
                self.at += 1;
                self.skip_spaces();
                let value = self.flow_value()?;
                let key_span = key.span;
                let key = resolve::key(key).map_err(|_| NeedsFullParser)?;
                self.add(first, Entry { key, key_span, value })?;
            }
            if self.flow_ends(b'}')? {
                return self.close(first).map(Value::Mapping);
            }
        }
    }

    /// Goes behind the comma or the closing bracket that must follow; whether it was the bracket.
    fn flow_ends(&mut self, bracket: u8) -> Read<bool> {
        self.skip_spaces();
        let byte = self.byte(self.at);
        self.at += 1;
        match byte {
            b',' => Ok(false),
            _ if byte == bracket => Ok(true),
            _ => Err(NeedsFullParser),
        }
    }

    fn flow_value(&mut self) -> Read<Node<'a>> {
        let start = self.at;
        match self.byte(start) {
            b'[' | b'{' => self.flow(),
            quote @ (b'"' | b'\'') => {
                let (value, end) = self.quoted_on_line(start, quote).ok_or(NeedsFullParser)?;
                self.at = end;
                Ok(Node { value: Value::String(value), span: self.span(start, end) })
            }
            first if first.is_ascii_alphanumeric() || matches!(first, b'_' | b'.' | b'/' | b'-') => {
                let word = |byte: u8| {
                    byte.is_ascii_alphanumeric()
                        || matches!(byte, b'_' | b'.' | b'/' | b'-' | b'=' | b'+' | b'@' | b'%')
                };
                while word(self.byte(self.at)) || self.byte(self.at) == b':' && word(self.byte(self.at + 1)) {
                    self.at += 1;
                }
                let text = &self.text[start..self.at];
                if text == "-" {
                    return Err(NeedsFullParser);
                }
                let value = resolve::scalar(Cow::Borrowed(text), true, None).map_err(|_| NeedsFullParser)?;
                Ok(Node { value, span: self.span(start, self.at) })
            }
            _ => Err(NeedsFullParser),
        }
    }
}

/// Makes room for one more. A list that gets long takes at once what the rest of the text could need, within what [`Room`] grants:
/// each time that it doubled, the allocator would keep the addresses of its earlier place.
fn grow<T>(list: &mut Vec<T>, room: &Room, rest: usize) {
    const LONG: usize = 1 << 18;
    // `1,` or `- `
    const SHORTEST: usize = 2;
    if list.len() == list.capacity() && list.len() >= LONG {
        list.reserve_exact((rest / SHORTEST).min(room.left() / size_of::<T>()) + 1);
    }
}

fn spaces(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| **byte == b' ').count()
}

/// Where the line of `at` ends.
fn line_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(bytes.len(), |length| at + length)
}

/// The character of an escape in double quotes, without its backslash, and its length.
fn escape(bytes: &[u8]) -> Read<(char, usize)> {
    let digits = match bytes.first().ok_or(NeedsFullParser)? {
        b'n' => return Ok(('\n', 1)),
        b't' | b'\t' => return Ok(('\t', 1)),
        b'r' => return Ok(('\r', 1)),
        byte @ (b'"' | b'\\' | b'/' | b' ') => return Ok((char::from(*byte), 1)),
        b'x' => 2,
        b'u' => 4,
        b'U' => 8,
        _ => return Err(NeedsFullParser),
    };
    let digits =
        bytes.get(1..=digits).and_then(|digits| str::from_utf8(digits).ok()).ok_or(NeedsFullParser)?;
    let all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16)
        .ok()
        .filter(|_| all)
        .and_then(char::from_u32)
        .ok_or(NeedsFullParser)?;
    Ok((code, 1 + digits.len()))
}
