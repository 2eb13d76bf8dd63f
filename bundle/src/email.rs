//! Addresses of mail as Go reads them: OLM's tools judge maintainers by its `net/mail`, which follows RFC 5322.

use std::net::IpAddr;

/// Checks an address of mail, such as `a@example.com` or `A. Person <a@example.com>`.
///
/// ```
/// use olmkit_bundle::email::check_address;
/// assert_eq!(check_address("Redis Team <redis@example.com>"), Ok(()));
/// assert_eq!(check_address("redis at example.com"), Err("there is no `@`, and no `<…>` around an address"));
/// ```
///
/// # Errors
/// What is wrong with it.
pub fn check_address(text: &str) -> Result<()> {
    let mut reader = Reader { rest: text };
    reader.address(true).and_then(|count| {
        reader.skip_comments()?;
        match (reader.rest, count) {
            ("", 1) => Ok(()),
            ("", 0) => Err("it is an empty group"),
            ("", _) => Err("it is a group of several addresses"),
            _ => Err("something follows the address"),
        }
    })
}

struct Reader<'a> {
    rest: &'a str,
}

type Result<T> = std::result::Result<T, &'static str>;

impl<'a> Reader<'a> {
    /// Reads an address or a group; gives back how many addresses these are.
    fn address(&mut self, group: bool) -> Result<usize> {
        self.skip_space();
        if self.rest.is_empty() {
            return Err("it is empty");
        }
        let start = self.rest;
        if self.plain_address().is_ok() {
            self.skip_space();
            if self.rest.starts_with('(') {
                self.comment()?;
            }
            return Ok(1);
        }
        self.rest = start;
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if group && self.take(':') {
            return self.group();
        }
        if !self.take('<') {
            return Err("there is no `@`, and no `<…>` around an address");
        }
        self.plain_address()?;
        if self.take('>') { Ok(1) } else { Err("`>` is missing") }
    }

    fn group(&mut self) -> Result<usize> {
        let mut count = 0;
        self.skip_space();
        if self.take(';') {
            self.skip_comments()?;
            return Ok(0);
        }
        loop {
            self.skip_space();
            count += self.address(false)?;
            self.skip_comments()?;
            if self.take(';') {
                self.skip_comments()?;
                return Ok(count);
            }
            if !self.take(',') {
                return Err("a comma is missing");
            }
        }
    }

    /// `LOCAL@DOMAIN`
    fn plain_address(&mut self) -> Result<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            if self.quoted()?.is_empty() {
                return Err("the part before `@` is empty");
            }
        } else {
            self.atom(true)?;
        }
        if !self.take('@') {
            return Err("there is no `@`");
        }
        self.skip_space();
        if self.take('[') {
            let (literal, rest) = self.rest.split_once(']').ok_or("`]` is missing")?;
            self.rest = rest;
            literal.parse::<IpAddr>().map(drop).map_err(|_| "the part in brackets is not an IP address")
        } else {
            self.atom(true).map(drop)
        }
    }

    /// A name: words and quoted texts. Whatever ends it is looked at by the caller.
    fn phrase(&mut self) -> Result<()> {
        let mut words = 0;
        loop {
            if words > 0 {
                self.skip_comments()?;
            }
            self.skip_space();
            let before = self.rest;
            let read = match self.rest.chars().next() {
                None => break,
                Some('"') => self.quoted(),
                Some(_) => self.atom(false),
            };
            match read {
                Ok(_) => words += 1,
                Err(why) if words == 0 => return Err(why),
                Err(_) => {
                    self.rest = before;
                    break;
                }
            }
        }
        Ok(())
    }

    fn quoted(&mut self) -> Result<&'a str> {
        let inner = &self.rest[1..];
        let mut escaped = false;
        for (at, c) in inner.char_indices() {
            match c {
                '"' if !escaped => {
                    self.rest = &inner[at + 1..];
                    return Ok(&inner[..at]);
                }
                '\\' if !escaped => escaped = true,
                ' ' | '\t' | '!'..='~' | '\u{80}'.. => escaped = false,
                _ => return Err("a quoted text has a control character"),
            }
        }
        Err("a quoted text is not closed")
    }

    fn atom(&mut self, strict: bool) -> Result<&'a str> {
        let end = self.rest.find(|c| !is_atom(c) && c != '.').unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        if atom.is_empty() {
            return Err("a part is missing, or starts with a character that is not allowed there");
        }
        self.rest = rest;
        if strict && (atom.starts_with('.') || atom.ends_with('.') || atom.contains("..")) {
            return Err("a dot is at the start, at the end or next to another dot");
        }
        Ok(atom)
    }

    fn comment(&mut self) -> Result<()> {
        let mut depth = 0;
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => drop(chars.next()),
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[at + c.len_utf8()..];
                return Ok(());
            }
        }
        Err("a comment in parentheses is not closed")
    }

    fn skip_comments(&mut self) -> Result<()> {
        self.skip_space();
        while self.rest.starts_with('(') {
            self.comment()?;
            self.skip_space();
        }
        Ok(())
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, c: char) -> bool {
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

fn is_atom(c: char) -> bool {
    matches!(c, '!'..='~' | '\u{80}'..) && !"()<>[]:;@\\,\".".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in [
            "a@b",
            " a.b+c@example.com ",
            "Ä <ä@ö.example>",
            "\"A, B\" <a@b> (why (not))",
            "a@[127.0.0.1]",
            "\"a b\"@c",
            "A.. B <a@b>",
            "g: a@b;",
            "<a@b>",
        ] {
            assert_eq!(check_address(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "a",
            "a@",
            "@b",
            "a b",
            "a@b c@d",
            "a@b, c@d",
            "a..b@c",
            ".a@b",
            "a@b.",
            "A <a@b",
            "g: a@b, c@d;",
            "g:;",
            "a@[x]",
            "\"\"@b",
            "\"a@b",
            "a@b (",
            "<>",
            "https://example.com",
        ] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }
}
