//! Cuts an expression into tokens.

use super::Result;
use super::value::Value;

/// A piece of an expression.
#[derive(Debug)]
pub(super) enum Token<'a> {
    /// A number, a text, `true`, `false`, `null`.
    Literal(Value),
    Name(&'a str),
    /// The name of a field in backquotes, as Kubernetes' rules may have it.
    Quoted(&'a str),
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
            Token::Literal(value) => match value {
                Value::Bool(_) => "a boolean",
                Value::Int(_) => "an int",
                Value::Uint(_) => "a uint",
                Value::Double(_) => "a double",
                Value::String(_) => "a string",
                Value::Bytes(_) => "bytes",
                _ => "`null`",
            }
            .to_owned(),
            Token::Name(name) | Token::Quoted(name) => format!("`{name}`"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".to_owned(),
        }
    }
}

/// The tokens of a text and where each starts, with the end as the last one.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>> {
    let mut lexer = Lexer { text, at: 0, start: 0 };
    let mut tokens = Vec::new();
    while !matches!(tokens.last(), Some((_, Token::End))) {
        let token = lexer.next()?;
        tokens.push((lexer.start, token));
    }
    Ok(tokens)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Where the last token starts.
    start: usize,
}

impl<'a> Lexer<'a> {
    /// The next token.
    fn next(&mut self) -> Result<Token<'a>> {
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
                "true" => Token::Literal(Value::Bool(true)),
                "false" => Token::Literal(Value::Bool(false)),
                "null" => Token::Literal(Value::Null),
                "in" => Token::Sign("in"),
                name => Token::Name(name),
            });
        }
        if let Some(quoted) = rest.strip_prefix('`') {
            let end = quoted.find('`').ok_or("a name in backquotes does not end")?;
            self.at += end + 2;
            return Ok(Token::Quoted(&quoted[..end]));
        }
        match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            Some(sign) => {
                self.at += sign.len();
                Ok(Token::Sign(sign))
            }
            None => {
                let column = self.text[..self.start].chars().count() + 1;
                Err(format!("`{}` has no meaning at its column {column}", first.escape_debug()))
            }
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
    fn number(&mut self) -> Result<Value> {
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
                let text = &self.text[start..self.at];
                let value = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
                return Ok(Value::Double(value));
            }
        }
        let value = u64::from_str_radix(digits, radix);
        let is_unsigned = self.text[self.at..].starts_with(['u', 'U']);
        self.at += usize::from(is_unsigned);
        match value {
            Ok(value) if is_unsigned => Ok(Value::Uint(value)),
            // One more than the largest may stand behind a minus, where it stands for the smallest.
            Ok(value) if value < (1 << 63) + u64::from(self.text[..start].ends_with('-')) => {
                Ok(Value::Int(value as i64))
            }
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
    fn string(&mut self) -> Result<Option<Value>> {
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
        let mut content = Content { is_bytes: prefix.contains('b'), bytes: Vec::new() };
        loop {
            let inside = chars.as_str();
            if inside.starts_with(quote) {
                self.at = self.text.len() - inside.len() + quote.len();
                return content.into_value().map(Some);
            }
            match chars.next().ok_or_else(unclosed)?.1 {
                '\n' | '\r' if triple.is_none() => return Err(unclosed()),
                '\\' if !prefix.contains('r') => {
                    let (at, letter) = chars.next().ok_or_else(unclosed)?;
                    let digits = match letter {
                        'a' => content.push('\x07'),
                        'b' => content.push('\x08'),
                        'f' => content.push('\x0c'),
                        'n' => content.push('\n'),
                        'r' => content.push('\r'),
                        't' => content.push('\t'),
                        'v' => content.push('\x0b'),
                        '\\' | '?' | '"' | '\'' | '`' => content.push(letter),
                        'x' | 'X' => 2,
                        'u' => 4,
                        'U' => 8,
                        '0'..='3' => 2,
                        _ => return Err(format!("`\\{}` means nothing in a text", letter.escape_debug())),
                    };
                    if digits > 0 {
                        let radix = if letter.is_ascii_digit() { 8 } else { 16 };
                        let code: String = chars.by_ref().take(digits).map(|(_, c)| c).collect();
                        let is_code =
                            code.chars().count() == digits && code.chars().all(|c| c.is_digit(radix));
                        let value = u32::from_str_radix(&code, radix).ok().filter(|_| is_code);
                        let value = value.ok_or_else(|| {
                            format!("`\\{letter}` wants {digits} digits behind it, at byte {at}")
                        })?;
                        content.push_code(value + letter.to_digit(8).unwrap_or(0) * 64)?;
                    }
                }
                c => {
                    content.push(c);
                }
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

/// What stands between quotes.
struct Content {
    is_bytes: bool,
    bytes: Vec<u8>,
}

impl Content {
    /// Adds a character; none of its digits are missing.
    fn push(&mut self, c: char) -> usize {
        self.bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        0
    }

    /// Adds what an escape stands for: a byte, or a character by its number.
    fn push_code(&mut self, code: u32) -> Result<()> {
        if let (true, Ok(byte)) = (self.is_bytes, u8::try_from(code)) {
            self.bytes.push(byte);
            return Ok(());
        }
        let c = char::from_u32(code).ok_or_else(|| format!("there is no character {code:#x}"))?;
        self.push(c);
        Ok(())
    }

    fn into_value(self) -> Result<Value> {
        if self.is_bytes {
            return Ok(Value::Bytes(self.bytes.into()));
        }
        let text = String::from_utf8(self.bytes).map_err(|_| "a text is not Unicode".to_owned())?;
        Ok(Value::String(text.into()))
    }
}
