//! Cuts an expression into tokens.

use super::Result;
use super::types::{DOUBLE, INT, Type, UINT};

/// A piece of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A number, a text, `true`, `false`, `null`: only its type matters.
    Literal(Type),
    Name(&'a str),
    /// An operator or bracket; also `in`.
    Sign(&'static str),
    End,
}

/// Signs; of two that start alike the longer one comes first.
const SIGNS: [&str; 24] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "?", ":", ",", ".", "+", "-", "*", "/", "%", "(", ")",
    "[", "]", "{", "}",
];

impl Token<'_> {
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Literal(of) => of.name().to_owned(),
            Token::Name(name) => format!("`{name}`"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".to_owned(),
        }
    }
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Where the last token starts.
    start: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, start: 0 }
    }

    /// Where the last token starts, in characters from 1.
    pub(super) fn column(&self) -> usize {
        self.text[..self.start].chars().count() + 1
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Result<Token<'a>> {
        self.skip_blanks();
        self.start = self.at;
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        if let Some(string) = self.string()? {
            return Ok(Token::Literal(string));
        }
        let second = rest[first.len_utf8()..].bytes().next();
        if first.is_ascii_digit() || first == '.' && second.is_some_and(|byte| byte.is_ascii_digit()) {
            return self.number().map(Token::Literal);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return Ok(match self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                "true" | "false" => Token::Literal(Type::Bool),
                "null" => Token::Literal(Type::Other),
                "in" => Token::Sign("in"),
                name => Token::Name(name),
            });
        }
        match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            Some(sign) => {
                self.at += sign.len();
                Ok(Token::Sign(sign))
            }
            None => Err(format!("`{}` has no meaning at its column {}", first.escape_debug(), self.column())),
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            self.take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c'));
            if !self.text[self.at..].starts_with("//") {
                return;
            }
            self.take_while(|byte| byte != b'\n');
        }
    }

    /// A number: decimal or hexadecimal, `u` behind it when unsigned, a fraction or exponent when a double.
    fn number(&mut self) -> Result<Type> {
        let start = self.at;
        let rest = &self.text[start..];
        let (digits, radix) = match rest.strip_prefix("0x") {
            Some(_) => {
                self.at += 2;
                (self.take_while(|byte| byte.is_ascii_hexdigit()), 16)
            }
            None => (self.take_while(|byte| byte.is_ascii_digit()), 10),
        };
        if radix == 10 {
            let fraction = self.take_fraction();
            if self.take_exponent() || fraction {
                return Ok(DOUBLE);
            }
        }
        let value = u64::from_str_radix(digits, radix);
        let is_unsigned = self.text[self.at..].starts_with(['u', 'U']);
        self.at += usize::from(is_unsigned);
        match value {
            Ok(_) if is_unsigned => Ok(UINT),
            // One more than the largest may stand behind a minus.
            Ok(value) if value < (1 << 63) + u64::from(self.text[..start].ends_with('-')) => Ok(INT),
            _ => Err(format!("`{}` is not a number of 64 bits", &self.text[start..self.at])),
        }
    }

    fn take_fraction(&mut self) -> bool {
        let mut digits = self.text[self.at..].strip_prefix('.').unwrap_or("").bytes();
        let is_fraction = digits.next().is_some_and(|byte| byte.is_ascii_digit());
        if is_fraction {
            self.at += 1;
            self.take_while(|byte| byte.is_ascii_digit());
        }
        is_fraction
    }

    fn take_exponent(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let Some(exponent) = rest.strip_prefix(['e', 'E']) else { return false };
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let is_exponent = digits.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        if is_exponent {
            self.at += rest.len() - digits.len();
            self.take_while(|byte| byte.is_ascii_digit());
        }
        is_exponent
    }

    /// A text or bytes in quotes, if there are any: `'…'` or `"…"`, tripled to go over lines, `r` in front for raw.
    fn string(&mut self) -> Result<Option<Type>> {
        let rest = &self.text[self.at..];
        let quoted = rest.trim_start_matches(['r', 'R', 'b', 'B']);
        let prefix = rest[..rest.len() - quoted.len()].to_ascii_lowercase();
        if !matches!(prefix.as_str(), "" | "r" | "b" | "br" | "rb") || !quoted.starts_with(['\'', '"']) {
            return Ok(None);
        }
        let triple = ["'''", "\"\"\""].into_iter().find(|quotes| quoted.starts_with(quotes));
        let quote = triple.unwrap_or(&quoted[..1]);
        let mut chars = quoted[quote.len()..].char_indices();
        let unclosed = || format!("a text that starts with `{quote}` does not end");
        loop {
            let inside = chars.as_str();
            if inside.starts_with(quote) {
                self.at = self.text.len() - inside.len() + quote.len();
                return Ok(Some(if prefix.contains('b') { Type::Bytes } else { Type::String }));
            }
            match chars.next().ok_or_else(unclosed)?.1 {
                '\n' | '\r' if triple.is_none() => return Err(unclosed()),
                '\\' if !prefix.contains('r') => {
                    let (at, letter) = chars.next().ok_or_else(unclosed)?;
                    let digits = match letter {
                        'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '\\' | '?' | '"' | '\'' | '`' => continue,
                        'x' | 'X' => 2,
                        'u' => 4,
                        'U' => 8,
                        '0'..='3' => 2,
                        _ => return Err(format!("`\\{}` means nothing in a text", letter.escape_debug())),
                    };
                    let octal = letter.is_ascii_digit();
                    let code: String = chars.by_ref().take(digits).map(|(_, c)| c).collect();
                    let of_base = |c: char| c.is_digit(if octal { 8 } else { 16 });
                    if code.chars().count() < digits || !code.chars().all(of_base) {
                        return Err(format!("`\\{letter}` wants {digits} digits behind it, at byte {at}"));
                    }
                }
                _ => {}
            }
        }
    }

    fn take_while(&mut self, mut wanted: impl FnMut(u8) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        // Only ASCII is ever wanted or, in a comment, everything up to a line break: both end between characters.
        let length = rest.bytes().position(|byte| !wanted(byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }
}
