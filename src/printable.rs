//! Text from input, as a terminal may see it.

use std::io::{self, Write};

use olmkit_bundle::printable::{escaped, has_command, is_hidden};
pub(crate) use olmkit_bundle::printable::{json, one_line, printable};

/// What goes to a terminal or a log: hidden characters are shown as escapes, and no line is a command of a workflow. What is printed
/// here was made printable where it was put together; this holds where somebody forgot. Colours pass.
pub(crate) struct Guarded<W> {
    inner: W,
    /// The line that is not ended yet.
    line: Vec<u8>,
}

impl<W: Write> Guarded<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, line: Vec::new() }
    }

    /// The stream itself, for text that has been escaped as its format wants.
    pub(crate) fn raw(&mut self) -> io::Result<&mut W> {
        self.flush_line()?;
        Ok(&mut self.inner)
    }

    fn flush_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let plain = anstream::adapter::strip_str(&text).to_string();
        let text = match has_command(&plain) {
            true => printable(&plain).into_owned(),
            false => with_colours_alone(&text),
        };
        self.inner.write_all(text.as_bytes())
    }
}

impl<W: Write> Write for Guarded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend(part);
            if part.ends_with(b"\n") {
                self.flush_line()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_line()?;
        self.inner.flush()
    }
}

/// Text whose only control sequences are those of colours: `ESC [ NUMBERS m`. A line may end with CR LF: diffs are applied as printed.
fn with_colours_alone(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, end) = text.split_at(text.strip_suffix("\r\n").map_or(text.len(), str::len));
    while let Some(at) = rest.find(is_hidden) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let colour = rest.strip_prefix("\u{1b}[").and_then(|inner| {
            let end = inner.find(|c: char| !c.is_ascii_digit() && c != ';')?;
            inner[end..].starts_with('m').then_some(2 + end + 1)
        });
        let length = match colour {
            Some(length) => {
                out.push_str(&rest[..length]);
                length
            }
            None => {
                let c = rest.chars().next().unwrap_or_default();
                out.push_str(&escaped(c));
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    out + rest + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_colours_passes() {
        for (text, expected) in [
            ("\u{1b}[1;31merror\u{1b}[0m: a\n", "\u{1b}[1;31merror\u{1b}[0m: a\n"),
            ("\u{1b}[2J\u{1b}]0;t\u{7}\u{202e}", "\\u{1b}[2J\\u{1b}]0;t\\u{7}\\u{202e}"),
            ("\u{1b}[1m::add-mask::x\n", "\\u{3a}:add-mask::x\n"),
            ("+a\r\n+b\rc\r\n", "+a\r\n+b\\rc\r\n"),
            ("a\n  ::stop-commands::x\n", "a\n  \\u{3a}:stop-commands::x\n"),
        ] {
            let mut out = Guarded::new(Vec::new());
            // In pieces of a byte, as a formatter may.
            text.as_bytes().iter().for_each(|byte| out.write_all(&[*byte]).unwrap());
            out.flush().unwrap();
            assert_eq!(String::from_utf8(out.inner).unwrap(), expected);
        }
    }
}
