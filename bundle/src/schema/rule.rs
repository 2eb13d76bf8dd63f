//! Whether a rule of `x-kubernetes-validations` is one that clusters can compile: its syntax, its brackets and the names that it
//! uses. Types are not worked out.
//!
//! Our own reader instead of the `cel` crate's: that one overflows the stack at some fifty brackets, and knows no names.
//! The grammar is that of the language's definition (cel-spec `doc/langdef.md`), the functions are those of Kubernetes'
//! libraries (apiserver `pkg/cel/library`).

use crate::expression::MAX_DEPTH;
use crate::expression::lexer::{Lexer, Token};

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
    read(text).err()
}

type Result<T, E = String> = std::result::Result<T, E>;

fn read(text: &str) -> Result<()> {
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::new();
    loop {
        match lexer.next()? {
            Token::End => break,
            token => tokens.push(token),
        }
    }
    let mut reader = Reader { tokens: &tokens, at: 0, depth: 0, variables: vec!["self", "oldSelf"] };
    reader.expression()?;
    if reader.at < tokens.len() { Err(format!("{} is not expected here", reader.shown())) } else { Ok(()) }
}

struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    depth: usize,
    variables: Vec<&'a str>,
}

/// Binary operators; how tightly they bind does not matter to whether there is a sense at all.
const BINARY: [&str; 14] = ["&&", "||", "<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "%", "in"];
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
    fn peek(&self) -> &Token<'a> {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(next) if *next == sign);
        self.at += usize::from(found);
        found
    }

    fn require(&mut self, sign: &str) -> Result<()> {
        if self.take(sign) { Ok(()) } else { Err(format!("expected `{sign}`, found {}", self.shown())) }
    }

    fn shown(&self) -> String {
        self.peek().describe()
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
                Token::Sign(sign) => BINARY.contains(sign),
                _ => false,
            };
            if !is_operator {
                return Ok(());
            }
            self.at += 1;
        }
    }

    fn operand(&mut self) -> Result<()> {
        let token = self.peek().clone();
        let shown = self.shown();
        self.at += 1;
        match token {
            Token::Literal(_) => {}
            Token::Name(name) => self.name(name)?,
            Token::Sign(".") if matches!(self.peek(), Token::Name(_)) => return self.operand(),
            Token::Sign("(") => {
                self.expression()?;
                self.require(")")?;
            }
            Token::Sign("[") => self.list("]", |reader| reader.expression())?,
            Token::Sign("{") => self.list("}", |reader| {
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
                return Err(format!("there is no function `{name}`"));
            }
            return self.list(")", |reader| reader.expression());
        }
        if self.variables.contains(&name) || FUNCTIONS.contains(&name) || name == "google" {
            return Ok(());
        }
        Err(format!("there is no variable `{name}`"))
    }

    fn members(&mut self) -> Result<()> {
        loop {
            if self.take(".") {
                self.take("?");
                let shown = self.shown();
                let (Token::Name(name) | Token::Quoted(name)) = *self.peek() else {
                    return Err(format!("{shown} is not a field"));
                };
                self.at += 1;
                if self.take("(") {
                    self.call(name)?;
                }
            } else if self.take("[") {
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
                if let (&Token::Name(variable), Some(Token::Sign(","))) =
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
            "self.`a-b` > 0x1f && [?self.?a].size() < 2",
        ] {
            assert_eq!(why_not_rule(rule), None, "{rule}");
        }
    }

    #[test]
    fn rules_that_no_cluster_compiles() {
        for (rule, part) in [
            ("", "the end"),
            ("self.a >", "the end"),
            ("self.a == 'b", "does not end"),
            ("(self.a", "expected `)`"),
            ("self.a b", "`b` is not expected"),
            ("slef.a", "no variable `slef`"),
            ("self.all(x, y > 0)", "no variable `y`"),
            ("self.all(1, true)", "name of a variable"),
            ("hass(self.a)", "no function `hass`"),
            ("self.a = 1", "has no meaning"),
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
