//! Makes one kind of old YAML readable to a YAML 1.2 parser without changing its meaning.
//!
//! In a quoted scalar the white space at the start of a line is folded away. libyaml therefore does not ask
//! how deep the line is indented; YAML 1.2 demands that it be deeper than the block it stands in, and so does
//! the parser. Of 22,594 real files 29 need this: adding spaces at the start of such lines costs nothing in meaning,
//! and positions can be translated back.

/// Bytes parsed again in all, and bytes of spaces added, so that a file made of nothing but such scalars ends in bounded time and
/// memory: this, and so many times what the file is long.
const LEAST: usize = 16 << 20;
const TIMES: usize = 2;

/// A text with spaces added at the start of some lines.
pub(super) struct Repair {
    text: String,
    /// Where spaces were added, as offsets into `text`, with how many were added up to and including there.
    added: Vec<(usize, usize)>,
    parsed: usize,
    most: usize,
}

impl Repair {
    pub(super) fn new(text: &str) -> Self {
        let most = text.len().saturating_mul(TIMES).saturating_add(LEAST);
        Self { text: text.to_owned(), added: Vec::new(), parsed: 0, most }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The offset in the original text of an offset in the repaired one.
    pub(super) fn original(&self, offset: usize) -> usize {
        match self.added.partition_point(|(at, _)| *at < offset) {
            0 => offset,
            count => {
                let (at, total) = self.added[count - 1];
                let here = total - count.checked_sub(2).map_or(0, |before| self.added[before].1);
                // Inside the added spaces themselves: the start of the line.
                offset - (total - here) - here.min(offset - at)
            }
        }
    }

    /// Indents every line of the first quoted scalar behind `after`; false when there is nothing to indent
    /// or the bounds are reached.
    pub(super) fn indent_quoted_after(&mut self, after: usize) -> bool {
        self.parsed += self.text.len();
        let Some((open, close)) = quoted_scalar(&self.text, after) else { return false };
        let line_start = self.text[..open].rfind('\n').map_or(0, |at| at + 1);
        // Where the quote stands is always deeper than the block around it.
        let wanted = self.text[line_start..open].chars().count();
        let mut out = String::with_capacity(self.text.len() + 256);
        let mut changed = false;
        let mut total = self.added.last().map_or(0, |(_, total)| *total);
        let mut copied = 0;
        for (newline, _) in self.text[open..close].match_indices('\n') {
            let line = open + newline + 1;
            let present = self.text[line..].bytes().take_while(|byte| *byte == b' ').count();
            if present < wanted {
                out.push_str(&self.text[copied..line]);
                copied = line;
                total += wanted - present;
                if total > self.most {
                    return false;
                }
                self.added.push((out.len(), total));
                out.extend(std::iter::repeat_n(' ', wanted - present));
                changed = true;
            }
        }
        out.push_str(&self.text[copied..]);
        self.text = out;
        changed && self.parsed <= self.most
    }
}

/// The first quoted scalar behind `after`, where only white space, comments, indicators and properties stand:
/// the offsets of its quotes.
fn quoted_scalar(text: &str, after: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut at = after;
    let open = loop {
        match bytes.get(at)? {
            b'"' | b'\'' => break at,
            b'#' if at == 0 || bytes[at - 1].is_ascii_whitespace() => at += text[at..].find('\n')?,
            _ => at += 1,
        }
    };
    let quote = bytes[open];
    let mut at = open + 1;
    loop {
        match bytes.get(at)? {
            b'\\' if quote == b'"' => at += 2,
            byte if *byte == quote && quote == b'\'' && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if *byte == quote => return Some((open, at)),
            _ => at += 1,
        }
    }
}
