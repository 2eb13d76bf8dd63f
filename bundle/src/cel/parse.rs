//! Reads the tree of an expression.
//!
//! What is on the way into brackets is kept apart from what is not: small frames let the stack hold [`MAX_DEPTH`] of them.

use super::lexer::{Token, tokens};
use super::tree::{Expr, Item, Step};
use super::value::Value;
use super::{Dialect, MAX_DEPTH, Result};

/// Binary operators, from those that bind least to those that bind most.
const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["<", "<=", ">=", ">", "==", "!=", "in"], &["+", "-"], &["*", "/", "%"]];

/// What the names of some functions of rules start with, up to the dot.
const FAMILIES: [&str; 6] = ["format", "ip", "lists", "optional", "sets", "strings"];

/// Words of the language that cannot be names (cel-go `parser/parser.go`, apiserver `pkg/cel/escaping.go`).
pub(super) const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The most characters of an expression, as cel-go has it.
const MAX_CHARS: usize = 100_000;

/// Reads an expression.
pub(super) fn parse(text: &str, dialect: Dialect) -> Result<Expr> {
    if text.chars().nth(MAX_CHARS).is_some() {
        return Err(format!("it is longer than {MAX_CHARS} characters"));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { text, tokens: &tokens, at: 0, dialect, variables: Vec::new(), depth: 0 };
    let expr = parser.expression()?;
    if matches!(parser.peek(), Token::End) { Ok(expr) } else { Err(parser.unexpected("an operator")) }
}

struct Parser<'t, 'a> {
    text: &'a str,
    /// The tokens and where they start; the last one is the end.
    tokens: &'t [(usize, Token<'a>)],
    at: usize,
    dialect: Dialect,
    /// The variables of the macros around this place.
    variables: Vec<&'a str>,
    depth: usize,
}

impl<'a> Parser<'_, 'a> {
    fn peek(&self) -> &Token<'a> {
        &self.tokens[self.at].1
    }

    /// Consumes the next token if it is this sign.
    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(next) if *next == sign);
        self.at += usize::from(found);
        found
    }

    fn require(&mut self, sign: &str) -> Result<()> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn unexpected(&self, expected: &str) -> String {
        let (start, token) = &self.tokens[self.at];
        let column = self.text[..*start].chars().count() + 1;
        format!("expected {expected} at its column {column}, found {}", token.describe())
    }

    /// Consumes the `?` before what may be missing.
    fn take_optional(&mut self) -> bool {
        self.dialect == Dialect::Rule && self.take("?")
    }

    /// `CONDITION ? EXPRESSION : EXPRESSION`, or what binds more.
    fn expression(&mut self) -> Result<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} levels deep"));
        }
        let expr = self.binary(0)?;
        let expr = if self.take("?") { self.conditional(expr)? } else { expr };
        self.depth -= 1;
        Ok(expr)
    }

    /// What stands after a condition and its `?`.
    fn conditional(&mut self, condition: Expr) -> Result<Expr> {
        let yes = self.binary(0)?;
        self.require(":")?;
        Ok(Expr::Conditional(Box::new([condition, yes, self.expression()?])))
    }

    /// Operands joined by operators that bind at least as much as those of a level.
    fn binary(&mut self, least: usize) -> Result<Expr> {
        let first = self.unary()?;
        if self.operator(least).is_some() { self.chain(first, least) } else { Ok(first) }
    }

    /// The operator that comes next, if it binds at least as much as those of a level, and its own level.
    fn operator(&self, least: usize) -> Option<(&'static str, usize)> {
        let Token::Sign(operator) = *self.peek() else { return None };
        let level = LEVELS.iter().position(|operators| operators.contains(&operator))?;
        (level >= least).then_some((operator, level))
    }

    /// What stands after the first operand.
    fn chain(&mut self, first: Expr, least: usize) -> Result<Expr> {
        let mut rest = Vec::new();
        while let Some((operator, level)) = self.operator(least) {
            self.at += 1;
            rest.push((operator, self.binary(level + 1)?));
        }
        Ok(Expr::Chain(Box::new(first), rest))
    }

    fn unary(&mut self) -> Result<Expr> {
        match *self.peek() {
            Token::Sign(operator @ ("!" | "-")) => self.signed(operator),
            _ => self.member(),
        }
    }

    /// Any number of `!` or of `-` before a member; two of them cancel each other.
    fn signed(&mut self, operator: &'static str) -> Result<Expr> {
        let mut count = 0;
        while self.take(operator) {
            count += 1;
        }
        let is_number = matches!(self.peek(), Token::Literal(Value::Int(_) | Value::Double(_)));
        let is_literal = is_number && operator == "-" && count == 1;
        Ok(match self.member()? {
            expr if count % 2 == 0 => expr,
            // The sign belongs to the number: the smallest one has no counterpart without.
            Expr::Literal(Value::Int(value)) if is_literal => Expr::Literal(Value::Int(value.wrapping_neg())),
            Expr::Literal(Value::Double(value)) if is_literal => Expr::Literal(Value::Double(-value)),
            expr => Expr::Unary(operator, Box::new(expr)),
        })
    }

    /// Something with fields, calls and indices after it.
    fn member(&mut self) -> Result<Expr> {
        let base = self.primary()?;
        if matches!(self.peek(), Token::Sign("." | "[")) { self.path(base) } else { Ok(base) }
    }

    /// The steps into a value.
    fn path(&mut self, base: Expr) -> Result<Expr> {
        let mut steps = Vec::new();
        loop {
            let step = if self.take(".") {
                self.field_or_call()?
            } else if self.take("[") {
                self.index()?
            } else {
                return Ok(Expr::Path(Box::new(base), steps));
            };
            steps.push(step);
        }
    }

    fn index(&mut self) -> Result<Step> {
        let is_optional = self.take_optional();
        let index = self.expression()?;
        self.require("]")?;
        Ok(Step::Index { index, is_optional })
    }

    fn field_or_call(&mut self) -> Result<Step> {
        let is_optional = self.take_optional();
        let (name, is_quoted) = match *self.peek() {
            Token::Name(name) => (name, false),
            Token::Quoted(name) if self.dialect == Dialect::Rule => (name, true),
            _ => return Err(self.unexpected("a field")),
        };
        self.at += 1;
        if is_optional || is_quoted || !self.take("(") {
            return Ok(Step::Field { name: name.to_owned(), is_quoted, is_optional });
        }
        match self.variables_of_macro(name) {
            Some(count) => self.macro_call(name, count),
            None => Ok(Step::Method(name.to_owned(), self.arguments()?)),
        }
    }

    /// How many variables a macro has, at least and at most; none for a method.
    fn variables_of_macro(&self, name: &str) -> Option<(usize, usize)> {
        let is_rule = self.dialect == Dialect::Rule;
        match name {
            "all" | "exists" | "exists_one" => Some((1, if is_rule { 2 } else { 1 })),
            "filter" | "map" => Some((1, 1)),
            "optFlatMap" | "optMap" | "sortBy" if is_rule => Some((1, 1)),
            "existsOne" | "transformList" | "transformMap" | "transformMapEntry" if is_rule => Some((2, 2)),
            _ => None,
        }
    }

    /// A macro; its `(` has been read.
    fn macro_call(&mut self, name: &str, (fewest, most): (usize, usize)) -> Result<Step> {
        let outside = self.variables.len();
        while let [(_, Token::Name(variable)), (_, Token::Sign(",")), ..] = self.tokens[self.at..]
            && self.variables.len() < outside + most
        {
            refuse_reserved(variable)?;
            self.variables.push(variable);
            self.at += 2;
        }
        let variables = self.variables.len() - outside;
        if variables < fewest {
            return Err(self.unexpected("the name of a variable"));
        }
        let body = self.arguments()?;
        self.variables.truncate(outside);
        Ok(Step::Macro { name: name.to_owned(), variables, body })
    }

    fn primary(&mut self) -> Result<Expr> {
        match self.peek() {
            Token::Literal(value) => {
                let value = value.clone();
                self.at += 1;
                Ok(Expr::Literal(value))
            }
            Token::Sign("(") => {
                self.at += 1;
                let expr = self.expression()?;
                self.require(")")?;
                Ok(expr)
            }
            Token::Sign("[") => {
                self.at += 1;
                Ok(Expr::List(self.list("]", Self::item)?))
            }
            Token::Sign("{") => {
                self.at += 1;
                Ok(Expr::Map(self.list("}", Self::entry)?))
            }
            _ => self.name_or_call(),
        }
    }

    fn item(&mut self) -> Result<Item> {
        let is_optional = self.take_optional();
        Ok(Item { expr: self.expression()?, is_optional })
    }

    fn entry(&mut self) -> Result<(Expr, Item)> {
        let is_optional = self.take_optional();
        let key = self.expression()?;
        self.require(":")?;
        Ok((key, Item { expr: self.expression()?, is_optional }))
    }

    /// A variable, the name of a type, a function, or the macro `has`, which a dot in front turns into a function.
    fn name_or_call(&mut self) -> Result<Expr> {
        let is_rooted = self.take(".");
        let Token::Name(name) = *self.peek() else { return Err(self.unexpected("an expression")) };
        self.at += 1;
        refuse_reserved(name)?;
        if self.take("(") {
            if name == "has" && !is_rooted {
                return self.has();
            }
            return Ok(Expr::Call(name.to_owned(), self.arguments()?));
        }
        match self.variables.iter().rposition(|variable| *variable == name) {
            Some(at) => Ok(Expr::Variable(at)),
            None if self.dialect == Dialect::Rule => self.qualified(name),
            None => Ok(Expr::Name(name.to_owned())),
        }
    }

    /// A name that may go on: a function such as `sets.contains`, a type such as `google.protobuf.Duration`.
    fn qualified(&mut self, first: &str) -> Result<Expr> {
        if FAMILIES.contains(&first)
            && let [(_, Token::Sign(".")), (_, Token::Name(member)), (_, Token::Sign("(")), ..] =
                self.tokens[self.at..]
        {
            self.at += 3;
            return Ok(Expr::Call(format!("{first}.{member}"), self.arguments()?));
        }
        let mut name = first.to_owned();
        while first == "google"
            && let [(_, Token::Sign(".")), (_, Token::Name(part)), ..] = self.tokens[self.at..]
        {
            self.at += 2;
            name = format!("{name}.{part}");
        }
        Ok(Expr::Name(name))
    }

    /// The argument of the macro `has`; its `(` has been read.
    fn has(&mut self) -> Result<Expr> {
        let is_field = |step: &Step| matches!(step, Step::Field { is_optional: false, .. });
        match self.expression()? {
            Expr::Path(base, steps) if steps.last().is_some_and(is_field) => {
                self.require(")")?;
                Ok(Expr::Has(base, steps))
            }
            _ => Err("`has` takes a field, such as `a.b`".into()),
        }
    }

    /// The arguments of a call whose `(` has been read.
    fn arguments(&mut self) -> Result<Vec<Expr>> {
        self.list(")", Self::expression)
    }

    /// Items with commas between, up to the closing sign; in lists and maps a comma may stand before that.
    fn list<T>(&mut self, close: &str, item: fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(item(self)?);
            if !self.take(",") {
                self.require(close)?;
                break;
            }
            if close == ")" && matches!(self.peek(), Token::Sign(")")) {
                return Err(self.unexpected("an argument"));
            }
        }
        Ok(items)
    }
}

fn refuse_reserved(name: &str) -> Result<()> {
    if RESERVED.contains(&name) { Err(format!("`{name}` is a reserved word")) } else { Ok(()) }
}
