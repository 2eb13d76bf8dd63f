//! Whether a rule of `x-kubernetes-validations` is one that clusters can compile: its syntax, its brackets and the names that it
//! uses. Types are not worked out.
//!
//! Our own reader instead of the `cel` crate's: that one overflows the stack at some fifty brackets, and knows no names.
//! The grammar is that of the language's definition (cel-spec `doc/langdef.md`), the functions are those of Kubernetes'
//! libraries (apiserver `pkg/cel/library`).

/// Deeper expressions are refused, as cel-go refuses them.
const MAX_DEPTH: usize = 250;
/// Clusters refuse longer ones for their cost long before.
const MAX_BYTES: usize = 64 << 10;

/// Why a rule cannot be compiled, if it cannot. `self` is the value, `oldSelf` what it was before.
///
/// ```
/// use olmkit_bundle::schema::rule::why_not_rule;
/// assert_eq!(why_not_rule("self.minReplicas <= self.replicas"), None);
/// assert_eq!(why_not_rule("sef.replicas > 0").as_deref(), Some("there is no variable `sef`"));
/// ```
pub fn why_not_rule(text: &str) -> Option<String> {
    if text.len() > MAX_BYTES {
        return Some(format!("it is longer than {MAX_BYTES} bytes"));
    }
    let tokens = match tokens(text) {
        Ok(tokens) => tokens,
        Err(why) => return Some(why),
    };
    let mut reader = Reader { tokens: &tokens, at: 0, depth: 0, variables: vec!["self", "oldSelf"] };
    match reader.expression() {
        Err(why) => Some(why),
        Ok(()) if reader.at < tokens.len() => Some(format!("{} is not expected here", reader.shown())),
        Ok(()) => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Name(&'a str),
    Literal,
    Sign(&'a str),
}

const SIGNS: [&str; 26] = [
    "&&", "||", "<=", ">=", "==", "!=", ".?", "[?", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", "(",
    ")", "[", "]", "{", "}", ".", ",",
];

fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
            continue;
        }
        let Some(first) = rest.chars().next() else { return Ok(tokens) };
        let length = if let Some(length) = string(rest)? {
            tokens.push(Token::Literal);
            length
        } else if first.is_ascii_digit()
            || first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())
        {
            tokens.push(Token::Literal);
            number(rest)
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(Token::Name(&rest[..end]));
            end
        } else if first == '`' {
            let end = rest[1..].find('`').ok_or("a name in backquotes is not closed")? + 2;
            tokens.push(Token::Name(&rest[..end]));
            end
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            // `a ? [b] : c` has no optional index.
            let sign = if *sign == "[?" && !rest[2..].trim_start().starts_with(|c: char| c != ']') {
                &"["
            } else {
                sign
            };
            tokens.push(Token::Sign(sign));
            sign.len()
        } else {
            return Err(format!("`{}` is not expected here", first.escape_default()));
        };
        rest = &rest[length..];
    }
}

/// The length of a string or of bytes at the start, with its prefix.
fn string(text: &str) -> Result<Option<usize>, String> {
    let start = text.find(|c: char| !matches!(c, 'r' | 'R' | 'b' | 'B')).unwrap_or(text.len());
    let (prefix, body) = text.split_at(start);
    let Some(quote) = body.chars().next().filter(|c| matches!(c, '"' | '\'')).filter(|_| prefix.len() <= 2)
    else {
        return Ok(None);
    };
    let raw = prefix.contains(['r', 'R']);
    let triple: String = [quote; 3].iter().collect();
    let mark = if body.starts_with(&triple) { triple } else { quote.to_string() };
    let mut at = mark.len();
    while let Some(c) = body[at..].chars().next() {
        if body[at..].starts_with(&mark) {
            return Ok(Some(start + at + mark.len()));
        }
        match c {
            '\n' if mark.len() == 1 => break,
            '\\' if !raw => {
                let escaped = body[at + 1..].chars().next().ok_or("a text is not closed")?;
                if !"abfnrtv\\?\"'`xXuU01234567".contains(escaped) {
                    return Err(format!("`\\{}` is not an escape", escaped.escape_default()));
                }
                at += 1 + escaped.len_utf8();
            }
            _ => at += c.len_utf8(),
        }
    }
    Err("a text is not closed".into())
}

fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    if text.starts_with("0x") || text.starts_with("0X") {
        let digits = bytes[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        return 2 + digits + usize::from(matches!(bytes.get(2 + digits), Some(b'u' | b'U')));
    }
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    end + usize::from(matches!(bytes.get(end), Some(b'u' | b'U')))
}

type Result<T, E = String> = std::result::Result<T, E>;

struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    depth: usize,
    variables: Vec<&'a str>,
}

/// Binary operators; how tightly they bind does not matter to whether there is a sense at all.
const BINARY: [&str; 13] = ["&&", "||", "<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "%"];
/// Macros that bind variables, with how many names they take at least and at most.
const MACROS: [(&str, usize, usize); 11] = [
    ("all", 1, 2),
    ("exists", 1, 2),
    ("exists_one", 1, 2),
    ("existsOne", 1, 2),
    ("filter", 1, 1),
    ("map", 1, 1),
    ("transformList", 2, 2),
    ("transformMap", 2, 2),
    ("sortBy", 1, 1),
    ("optMap", 1, 1),
    ("optFlatMap", 1, 1),
];
/// Functions that are called without a receiver, and names of types.
const FUNCTIONS: [&str; 31] = [
    "size",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "dyn",
    "type",
    "duration",
    "timestamp",
    "has",
    "matches",
    "url",
    "isURL",
    "quantity",
    "isQuantity",
    "ip",
    "isIP",
    "cidr",
    "isCIDR",
    "semver",
    "isSemver",
    "math",
    "sets",
    "optional",
    "format",
    "strings",
    "null_type",
    "list",
    "map",
];

impl<'a> Reader<'_, 'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(next)) if next == sign);
        self.at += usize::from(found);
        found
    }

    fn require(&mut self, sign: &str) -> Result<()> {
        if self.take(sign) { Ok(()) } else { Err(format!("expected `{sign}`, found {}", self.shown())) }
    }

    fn shown(&self) -> String {
        match self.peek() {
            None => "the end".into(),
            Some(Token::Name(name)) => format!("`{}`", name.trim_matches('`')),
            Some(Token::Sign(sign)) => format!("`{sign}`"),
            Some(Token::Literal) => "a literal".into(),
        }
    }

    fn expression(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("it is nested too deeply".into());
        }
        self.operands()?;
        if self.take("?") {
            self.operands()?;
            self.require(":")?;
            self.expression()?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn operands(&mut self) -> Result<()> {
        loop {
            while self.take("!") || self.take("-") {}
            self.operand()?;
            let is_operator = match self.peek() {
                Some(Token::Sign(sign)) => BINARY.contains(&sign),
                Some(Token::Name(name)) => name == "in",
                _ => false,
            };
            if !is_operator {
                return Ok(());
            }
            self.at += 1;
        }
    }

    fn operand(&mut self) -> Result<()> {
        let token = self.peek();
        let shown = self.shown();
        self.at += 1;
        match token {
            Some(Token::Literal) | Some(Token::Name("true" | "false" | "null")) => {}
            Some(Token::Name(name)) => self.name(name)?,
            Some(Token::Sign(".")) if matches!(self.peek(), Some(Token::Name(_))) => return self.operand(),
            Some(Token::Sign("(")) => {
                self.expression()?;
                self.require(")")?;
            }
            Some(Token::Sign("[" | "[?")) => self.list("]", |reader| reader.expression())?,
            Some(Token::Sign("{")) => self.list("}", |reader| {
                reader.take("?");
                reader.expression()?;
                reader.require(":")?;
                reader.expression()
            })?,
            _ => return Err(format!("{shown} is not expected here")),
        }
        self.members()
    }

    fn name(&mut self, name: &'a str) -> Result<()> {
        if self.take("(") {
            if !FUNCTIONS.contains(&name) {
                return Err(format!("there is no function `{}`", name.trim_matches('`')));
            }
            return self.list(")", |reader| reader.expression());
        }
        if self.variables.contains(&name) || FUNCTIONS.contains(&name) || name == "google" {
            return Ok(());
        }
        Err(format!("there is no variable `{}`", name.trim_matches('`')))
    }

    fn members(&mut self) -> Result<()> {
        loop {
            if self.take(".") || self.take(".?") {
                let shown = self.shown();
                let Some(Token::Name(name)) = self.peek() else {
                    return Err(format!("{shown} is not a field"));
                };
                self.at += 1;
                if self.take("(") {
                    self.call(name)?;
                }
            } else if self.take("[") || self.take("[?") {
                self.take("?");
                self.expression()?;
                self.require("]")?;
            } else {
                return Ok(());
            }
        }
    }

    /// The arguments of a method; macros bind the names that come first.
    fn call(&mut self, name: &str) -> Result<()> {
        let bound = self.variables.len();
        if let Some((_, _, most)) = MACROS.iter().find(|(known, ..)| *known == name) {
            for _ in 0..*most {
                if let (Some(Token::Name(variable)), Some(Token::Sign(","))) =
                    (self.peek(), self.tokens.get(self.at + 1))
                {
                    self.at += 2;
                    self.variables.push(variable);
                }
            }
            if self.variables.len() == bound {
                return Err(format!("`{name}` starts with the name of a variable"));
            }
        } else if name == "bind" {
            // cel.bind is not among Kubernetes' libraries.
            return Err("there is no function `bind`".into());
        }
        self.list(")", |reader| reader.expression())?;
        self.variables.truncate(bound);
        Ok(())
    }

    fn list(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        while !self.take(close) {
            self.take("?");
            item(self)?;
            if !self.take(",") {
                return self.require(close);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_rules() {
        for rule in [
            "self == oldSelf",
            "has(self.a) ? self.a.b > 0 : true",
            "self.all(x, x.startsWith('a') && !(x in ['b', \"c\"]))",
            "self.map(x, x.n > 1, x.n).sum() <= 10u",
            "self.x.matches(r'^\\d+$') || duration(self.d) < duration('1h')",
            "self.all(k, v, size(k) < 3)",
            "self.?a.orValue('') != ''",
            "quantity(self.cpu).isLessThan(quantity('1'))",
            "self.__namespace__ == 'a' // why",
            "{'a': 1}.a == 1 && -self.b < .5",
            "self[?'a'].hasValue()",
        ] {
            assert_eq!(why_not_rule(rule), None, "{rule}");
        }
    }

    #[test]
    fn rules_that_no_cluster_compiles() {
        for (rule, part) in [
            ("", "the end"),
            ("self.a >", "the end"),
            ("self.a == 'b", "not closed"),
            ("(self.a", "expected `)`"),
            ("self.a b", "`b` is not expected"),
            ("slef.a", "no variable `slef`"),
            ("self.all(x, y > 0)", "no variable `y`"),
            ("self.all(1, true)", "name of a variable"),
            ("hass(self.a)", "no function `hass`"),
            ("self.a = 1", "not expected"),
            ("self ? 1", "expected `:`"),
        ] {
            let why = why_not_rule(rule).unwrap_or_default();
            assert!(why.contains(part), "{rule}: {why}");
        }
    }

    #[test]
    fn hostile_rules_end() {
        for rule in [
            "(".repeat(60_000),
            "[".repeat(60_000),
            "self?1:".repeat(9_000),
            "!".repeat(60_000),
            "a.".repeat(30_000),
            ".".repeat(60_000),
        ] {
            assert!(why_not_rule(&rule).is_some());
        }
    }
}
