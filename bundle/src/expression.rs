//! Expressions in the Common Expression Language over the properties of a bundle, as `olm.constraint` has them.
//!
//! OLM compiles such an expression with one variable, `properties`, a list of maps, and one function more than the language
//! has, `semver_compare`; its type must be a boolean (operator-framework/api `pkg/constraints/cel.go`).
//! [`Expression::parse`] reads an expression and works out its type as it goes, [`Expression::holds`] evaluates it. Both stand
//! hostile text, where the parser of the `cel` crate overflows the stack at some fifty brackets.
//!
//! Grammar, types and values are those of the language's definition (cel-spec `doc/langdef.md`); `lexer` cuts the text, `types`
//! knows what operators and functions take, `tree` is what was read, `evaluate` and `value` say what it is worth. Not looked at
//! while reading are the arguments of conversions such as `int(x)`; not evaluated are points in time and durations, of which
//! properties have none.

mod evaluate;
pub(crate) mod lexer;
mod tree;
mod types;
pub(crate) mod value;

use std::hash::{Hash, Hasher};

use serde_json::Value as Json;

use evaluate::{Evaluation, Stop};
use lexer::{Lexer, Token};
use tree::{Expr, Step};
use types::Type;
use value::Value;

/// Deeper expressions are refused, as cel-go refuses them.
pub(crate) const MAX_DEPTH: usize = 250;

/// Binary operators, from those that bind least to those that bind most.
const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["<", "<=", ">=", ">", "==", "!=", "in"], &["+", "-"], &["*", "/", "%"]];

/// An expression that is true or false of a bundle's properties.
///
/// ```
/// use olmkit_bundle::expression::{Expression, Properties};
/// let certified = Expression::parse("properties.exists(p, p.type == 'certified' && p.value)")?;
/// let value = serde_json::Value::from(true);
/// assert_eq!(certified.holds(&Properties::new([("certified", &value)])), Ok(true));
/// # Ok::<(), olmkit_bundle::expression::ExpressionError>(())
/// ```
///
/// Two of them are equal when they are written the same.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    expr: Expr,
}

/// The properties of a bundle, as expressions see them.
#[derive(Clone, Debug)]
pub struct Properties(Value);

/// A text that is no such expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct ExpressionError {
    /// What is wrong with it.
    pub why: String,
}

/// Why it is not known whether an expression holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// It calls what is not evaluated here.
    #[error("`{function}` cannot be evaluated without OLM")]
    Unsupported {
        /// The function.
        function: String,
    },
    /// It takes more work than any constraint should.
    #[error("it takes too many steps")]
    TooCostly,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// When OLM would refuse it: it is no expression, or not one of a boolean.
    pub fn parse(text: &str) -> std::result::Result<Self, ExpressionError> {
        match Reader::new(text).and_then(Reader::whole) {
            Err(why) => Err(ExpressionError { why }),
            Ok(Part { of: Type::Bool, expr }) => Ok(Self { text: text.to_owned(), expr }),
            Ok(Part { of, .. }) => {
                Err(ExpressionError { why: format!("it is {}, expected a boolean", of.name()) })
            }
        }
    }

    /// Whether it is true of properties. Where the language has no value, such as for a field that is not there, it is
    /// not, by OLM's rule.
    ///
    /// # Errors
    /// When it cannot be found out here.
    pub fn holds(&self, properties: &Properties) -> std::result::Result<bool, EvaluationError> {
        match Evaluation::new(&properties.0).value(&self.expr) {
            Ok(value) => Ok(matches!(value, Value::Bool(true))),
            Err(Stop::NoValue) => Ok(false),
            Err(Stop::GiveUp(why)) => Err(why),
        }
    }
}

impl Expression {
    /// The text that it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl Hash for Expression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl Properties {
    /// The properties of a bundle: type and value of each, in order.
    pub fn new<'v>(properties: impl IntoIterator<Item = (&'v str, &'v Json)>) -> Self {
        let property = |(kind, value): (&str, &Json)| {
            let entries = [("type", Value::String(kind.into())), ("value", Value::from_json(value))];
            Value::Map(entries.into_iter().map(|(key, value)| (Value::String(key.into()), value)).collect())
        };
        Self(Value::List(properties.into_iter().map(property).collect()))
    }
}

/// What went wrong, in words.
type Result<T> = std::result::Result<T, String>;

/// A part of an expression, with its type.
struct Part {
    of: Type,
    expr: Expr,
}

/// Reads an expression.
struct Reader<'a> {
    lexer: Lexer<'a>,
    /// The next token, not yet consumed.
    token: Token<'a>,
    /// The variables of the macros around this place.
    variables: Vec<(&'a str, Type)>,
    /// Whether what was read last is a field of something, as `has` wants it.
    is_field: bool,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let token = lexer.next()?;
        Ok(Self { lexer, token, variables: Vec::new(), is_field: false, depth: 0 })
    }

    fn whole(mut self) -> Result<Part> {
        let part = self.expression()?;
        if matches!(self.token, Token::End) { Ok(part) } else { Err(self.unexpected("an operator")) }
    }

    /// `CONDITION ? EXPRESSION : EXPRESSION`, or what binds more.
    ///
    /// What is on the way into brackets is kept apart from what is not: small frames let the stack hold [`MAX_DEPTH`] of them.
    fn expression(&mut self) -> Result<Part> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} levels deep"));
        }
        let part = self.binary(0)?;
        let part = if self.take("?")? { self.conditional(part)? } else { part };
        self.depth -= 1;
        Ok(part)
    }

    /// What stands behind a condition and its `?`.
    fn conditional(&mut self, condition: Part) -> Result<Part> {
        let yes = self.binary(0)?;
        self.require(":")?;
        let no = self.expression()?;
        self.is_field = false;
        let of = types::conditional(&condition.of, yes.of, no.of)?;
        Ok(Part { of, expr: Expr::Conditional(Box::new([condition.expr, yes.expr, no.expr])) })
    }

    /// Operands joined by operators that bind at least as much as those of a level.
    fn binary(&mut self, least: usize) -> Result<Part> {
        let first = self.unary()?;
        if self.operator(least).is_some() { self.chain(first, least) } else { Ok(first) }
    }

    /// The operator that comes next, if it binds at least as much as those of a level, and its own level.
    fn operator(&self, least: usize) -> Option<(&'static str, usize)> {
        let Token::Sign(operator) = self.token else { return None };
        let level = LEVELS.iter().position(|operators| operators.contains(&operator))?;
        (level >= least).then_some((operator, level))
    }

    /// What stands behind the first operand.
    fn chain(&mut self, first: Part, least: usize) -> Result<Part> {
        let mut of = first.of;
        let mut rest = Vec::new();
        while let Some((operator, level)) = self.operator(least) {
            self.advance()?;
            let right = self.binary(level + 1)?;
            of = types::binary(operator, &of, &right.of)?;
            rest.push((operator, right.expr));
            self.is_field = false;
        }
        Ok(Part { of, expr: Expr::Chain(Box::new(first.expr), rest) })
    }

    /// Any number of `!` or of `-` before a member.
    fn unary(&mut self) -> Result<Part> {
        for operator in ["!", "-"] {
            let mut count = 0;
            while self.take(operator)? {
                count += 1;
            }
            if count > 0 {
                let part = self.member()?;
                // Two of them cancel each other, whatever stands behind.
                self.is_field &= count % 2 == 0;
                return if count % 2 == 0 { Ok(part) } else { signed(operator, part) };
            }
        }
        self.member()
    }

    /// Something with fields, calls and indices behind it.
    fn member(&mut self) -> Result<Part> {
        let base = self.primary()?;
        if matches!(self.token, Token::Sign("." | "[")) { self.path(base) } else { Ok(base) }
    }

    /// The steps into a value.
    fn path(&mut self, base: Part) -> Result<Part> {
        let mut of = base.of;
        let mut steps = Vec::new();
        loop {
            let step;
            (of, step) = if self.take(".")? {
                self.field_or_method(of)?
            } else if self.take("[")? {
                let index = self.expression()?;
                self.require("]")?;
                self.is_field = false;
                (types::index(&of, &index.of)?, Step::Index(index.expr))
            } else {
                return Ok(Part { of, expr: Expr::Path(Box::new(base.expr), steps) });
            };
            steps.push(step);
        }
    }

    fn field_or_method(&mut self, of: Type) -> Result<(Type, Step)> {
        let name = self.name()?;
        self.is_field = !self.take("(")?;
        if self.is_field {
            return Ok((types::field(&of, name)?, Step::Field(name.to_owned())));
        }
        let found = if types::is_macro(name) { self.macro_call(of, name) } else { self.method(of, name) };
        self.is_field = false;
        found
    }

    fn primary(&mut self) -> Result<Part> {
        self.is_field = false;
        if let Token::Literal(_) = &self.token {
            self.literal()
        } else if self.take("(")? {
            let part = self.expression()?;
            self.require(")")?;
            Ok(part)
        } else if self.take("[")? {
            self.list_literal()
        } else if self.take("{")? {
            self.map_literal()
        } else {
            self.variable_or_call()
        }
    }

    fn literal(&mut self) -> Result<Part> {
        let Token::Literal(value) = &self.token else { return Err(self.unexpected("a value")) };
        let part = Part { of: value.literal_type(), expr: Expr::Literal(value.clone()) };
        self.advance()?;
        Ok(part)
    }

    fn list_literal(&mut self) -> Result<Part> {
        let (types, items) = unzip(self.list("]", Self::expression)?);
        self.is_field = false;
        Ok(Part { of: Type::List(Box::new(types::common(types))), expr: Expr::List(items) })
    }

    fn map_literal(&mut self) -> Result<Part> {
        let entries = self.list("}", |reader| {
            let key = reader.expression()?;
            reader.require(":")?;
            Ok((key, reader.expression()?))
        })?;
        self.is_field = false;
        let (keys, values): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        let ((key_types, keys), (value_types, values)) = (unzip(keys), unzip(values));
        let of = Type::Map(Box::new(types::common(key_types)), Box::new(types::common(value_types)));
        Ok(Part { of, expr: Expr::Map(keys.into_iter().zip(values).collect()) })
    }

    /// A variable, a function, or the macro `has`, which a dot in front turns into a function that nobody declared.
    fn variable_or_call(&mut self) -> Result<Part> {
        let is_rooted = self.take(".")?;
        let Token::Name(name) = self.token else { return Err(self.unexpected("an expression")) };
        self.advance()?;
        if types::is_reserved(name) {
            return Err(format!("`{name}` is a reserved word"));
        }
        if !self.take("(")? {
            self.variable(name)
        } else if name == "has" && !is_rooted {
            self.has()
        } else {
            let (types, arguments) = unzip(self.list(")", Self::expression)?);
            self.is_field = false;
            Ok(Part { of: types::function(name, &types)?, expr: Expr::Call(name.to_owned(), arguments) })
        }
    }

    fn variable(&self, name: &str) -> Result<Part> {
        if let Some(at) = self.variables.iter().rposition(|(variable, _)| *variable == name) {
            return Ok(Part { of: self.variables[at].1.clone(), expr: Expr::Variable(at) });
        }
        let (of, type_name) = types::variable(name)?;
        Ok(Part { of, expr: type_name.map_or(Expr::Properties, |name| Expr::Literal(Value::Type(name))) })
    }

    /// The argument of the macro `has`; its `(` has been read.
    fn has(&mut self) -> Result<Part> {
        let part = self.expression()?;
        let expr = match part.expr {
            Expr::Path(base, mut steps) if self.is_field => match steps.pop() {
                Some(Step::Field(field)) if steps.is_empty() => Expr::Has(base, field),
                Some(Step::Field(field)) => Expr::Has(Box::new(Expr::Path(base, steps)), field),
                _ => return Err(HAS_TAKES.into()),
            },
            _ => return Err(HAS_TAKES.into()),
        };
        self.require(")")?;
        self.is_field = false;
        Ok(Part { of: Type::Bool, expr })
    }

    /// A method of a value; its `(` has been read.
    fn method(&mut self, of: Type, name: &str) -> Result<(Type, Step)> {
        let (mut types, arguments) = unzip(self.list(")", Self::expression)?);
        types.insert(0, of);
        Ok((types::method(name, &types)?, Step::Method(name.to_owned(), arguments)))
    }

    /// A macro over a list or map; its `(` has been read.
    fn macro_call(&mut self, of: Type, name: &str) -> Result<(Type, Step)> {
        let variable = self.name()?;
        self.require(",")?;
        self.variables.push((variable, types::item(&of)?));
        let mut body = vec![self.expression()?];
        if name == "map" && self.take(",")? {
            body.push(self.expression()?);
        }
        self.variables.pop();
        self.require(")")?;
        let (types, body) = unzip(body);
        Ok((types::macro_result(name, &of, types)?, Step::Macro(name.to_owned(), body)))
    }

    /// Items with commas between, up to the closing sign; in lists and maps a comma may stand before that.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.take(close)? {
            items.push(item(self)?);
            if !self.take(",")? {
                self.require(close)?;
                break;
            }
            if close == ")" && matches!(self.token, Token::Sign(")")) {
                return Err(self.unexpected("an argument"));
            }
        }
        Ok(items)
    }

    fn name(&mut self) -> Result<&'a str> {
        let Token::Name(name) = self.token else { return Err(self.unexpected("a name")) };
        self.advance()?;
        Ok(name)
    }

    fn advance(&mut self) -> Result<()> {
        self.token = self.lexer.next()?;
        Ok(())
    }

    /// Consumes the next token if it is this sign.
    fn take(&mut self, sign: &str) -> Result<bool> {
        let found = matches!(self.token, Token::Sign(found) if found == sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn require(&mut self, sign: &str) -> Result<()> {
        if self.take(sign)? { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn unexpected(&self, expected: &str) -> String {
        let column = self.lexer.column();
        format!("expected {expected} at its column {column}, found {}", self.token.describe())
    }
}

const HAS_TAKES: &str = "`has` takes a field, such as `p.value`";

/// An operand with an odd number of signs in front.
fn signed(operator: &str, Part { of, expr }: Part) -> Result<Part> {
    let expr = match expr {
        // The sign belongs to the number: the smallest one has no counterpart without.
        Expr::Literal(Value::Int(value)) if operator == "-" => {
            Expr::Literal(Value::Int(value.wrapping_neg()))
        }
        expr if operator == "-" => Expr::Minus(Box::new(expr)),
        expr => Expr::Not(Box::new(expr)),
    };
    Ok(Part { of: types::unary(operator, of)?, expr })
}

fn unzip(parts: Vec<Part>) -> (Vec<Type>, Vec<Expr>) {
    parts.into_iter().map(|part| (part.of, part.expr)).unzip()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn why_not_constraint(rule: &str) -> Option<String> {
        Expression::parse(rule).err().map(|error| error.why)
    }

    #[test]
    fn what_cel_go_takes() {
        for rule in [
            "true",
            "properties.exists(p, p.type == \"certified\")",
            "properties.exists(p, p.type == 'a' && p.value.x >= 3) // why",
            "properties.all(p, has(p.value)) ? properties.size() > 0 : false",
            "properties.exists_one(p, semver_compare(p.value, '1.0.0') > 0)",
            "size(properties.filter(p, p.type.startsWith('olm.'))) == 1",
            "'x' in properties.map(p, p.type != '', p.type)",
            "properties[0].value == 3 || !(1 + 2 < -4) && \"\"\"a\"b\"\"\" != r'\\'",
            "{'a': 1, 'b': 2,}.b == [1, 2,][0] && 'a' in {'a': 1u}",
            "b'\\xff' != b'' && 0x1Fu > 1u && 1.5e3 > .5",
        ] {
            assert_eq!(why_not_constraint(rule), None, "{rule}");
        }
    }

    #[test]
    fn what_cel_go_refuses() {
        let why = |rule: &str| format!("{rule}  {}", why_not_constraint(rule).unwrap_or_default());
        insta::assert_snapshot!(
            [
                "",
                "properties.exists(p, p.type == )",
                "true false",
                "certified == 'x'",
                "properties",
                "properties[0].value",
                "'text'",
                "'text",
                "'\\q' == ''",
                "true & false",
                "99999999999999999999 > 1",
                "semver_compare('1', '2')",
                "propertie.size() > 0",
                "compare(1, 2)",
                "1 == 'a'",
                "properties && true",
                "properties.type == 'a'",
                "properties['a'] == 1",
                "true + false",
                "size(properties, 1) > 0",
                "has(properties)",
                "properties.exists(1, true)",
                "1.exists(p, true)",
                "package == 1",
                "size(1,) > 0",
            ]
            .map(why)
            .join("\n"),
            @r"
          expected an expression at its column 1, found the end
        properties.exists(p, p.type == )  expected an expression at its column 32, found `)`
        true false  expected an operator at its column 6, found a boolean
        certified == 'x'  `certified` is not declared, only `properties` is
        properties  it is a list, expected a boolean
        properties[0].value  it is a value whose type is not known, expected a boolean
        'text'  it is a string, expected a boolean
        'text  a text that starts with `'` does not end
        '\q' == ''  `\q` means nothing in a text
        true & false  `&` has no meaning at its column 6
        99999999999999999999 > 1  `99999999999999999999` is not a number of 64 bits
        semver_compare('1', '2')  it is an int, expected a boolean
        propertie.size() > 0  `propertie` is not declared, only `properties` is
        compare(1, 2)  the function `compare` is not declared
        1 == 'a'  `==` does not take an int and a string
        properties && true  `&&` does not take a list and a boolean
        properties.type == 'a'  a list has no field `type`
        properties['a'] == 1  `[ ]` does not take a list and a string
        true + false  `+` does not take a boolean and a boolean
        size(properties, 1) > 0  `size` takes 1 operands, not 2
        has(properties)  `has` takes a field, such as `p.value`
        properties.exists(1, true)  expected a name at its column 19, found an int
        1.exists(p, true)  an int has no items to go through
        package == 1  `package` is a reserved word
        size(1,) > 0  expected an argument at its column 8, found `)`
        "
        );
    }

    #[test]
    fn what_expressions_are_worth() {
        let values = [
            ("olm.package", json!({"packageName": "redis", "version": "1.10.0"})),
            ("olm.gvk", json!({"group": "example.com", "kind": "Redis", "version": "v1"})),
            ("tier", json!("gold")),
            ("size", json!({"replicas": 3, "zones": ["a", "b"], "spare": null})),
        ];
        let properties = Properties::new(values.iter().map(|(kind, value)| (*kind, value)));
        let check = |rule: &str| match Expression::parse(rule).map(|found| found.holds(&properties)) {
            Ok(Ok(holds)) => format!("{holds}  {rule}"),
            Ok(Err(why)) => format!("{why}  {rule}"),
            Err(why) => format!("refused: {why}  {rule}"),
        };
        insta::assert_snapshot!(
            [
                "properties.exists(p, p.type == 'tier' && p.value == 'gold')",
                "properties.all(p, p.type != 'tier')",
                "properties.exists(p, p.type == 'olm.package' && semver_compare(p.value.version, '1.9') > 0)",
                "properties.exists(p, p.value.packageName == 'redis')",
                "properties.exists(p, p.value.nothing == 1)",
                "!properties.exists(p, p.value.nothing == 1)",
                "properties.exists_one(p, has(p.value.kind))",
                "properties.exists_one(p, p.type.startsWith('olm.'))",
                "properties.filter(p, p.type == 'size')[0].value.replicas >= 3",
                "properties.filter(p, p.type == 'size')[0].value.replicas == 3",
                "'b' in properties[3].value.zones && !('c' in properties[3].value.zones)",
                "properties[3].value.spare == null && properties[9].type == ''",
                "properties[9].type == '' || true",
                "properties.map(p, size(p.type)) == [11, 7, 4, 4]",
                "properties.map(p, p.type.matches('^olm'), p.type).size() == 2",
                "-9223372036854775808 < 0 && 9223372036854775807 + 1 > 0",
                "1 / 0 == 1 ? true : true",
                "type(1) == int && type('') != bytes && string(1.5) == '1.5' && int('7') == 7",
                "b'\\xff' == b'\\377' && '\\xe9' == '\\u00e9'",
                "{'a': 1, 'b': 2}.exists(key, key == 'b') && {'a': {'b': 2}}.a.b == dyn(2.0)",
                "timestamp('2026-01-01T00:00:00Z') < timestamp('2027-01-01T00:00:00Z')",
            ]
            .map(check)
            .join("\n"),
            @r"
        true  properties.exists(p, p.type == 'tier' && p.value == 'gold')
        false  properties.all(p, p.type != 'tier')
        true  properties.exists(p, p.type == 'olm.package' && semver_compare(p.value.version, '1.9') > 0)
        true  properties.exists(p, p.value.packageName == 'redis')
        false  properties.exists(p, p.value.nothing == 1)
        false  !properties.exists(p, p.value.nothing == 1)
        false  properties.exists_one(p, has(p.value.kind))
        false  properties.exists_one(p, p.type.startsWith('olm.'))
        true  properties.filter(p, p.type == 'size')[0].value.replicas >= 3
        true  properties.filter(p, p.type == 'size')[0].value.replicas == 3
        true  'b' in properties[3].value.zones && !('c' in properties[3].value.zones)
        false  properties[3].value.spare == null && properties[9].type == ''
        true  properties[9].type == '' || true
        true  properties.map(p, size(p.type)) == [11, 7, 4, 4]
        true  properties.map(p, p.type.matches('^olm'), p.type).size() == 2
        false  -9223372036854775808 < 0 && 9223372036854775807 + 1 > 0
        false  1 / 0 == 1 ? true : true
        true  type(1) == int && type('') != bytes && string(1.5) == '1.5' && int('7') == 7
        true  b'\xff' == b'\377' && '\xe9' == '\u00e9'
        true  {'a': 1, 'b': 2}.exists(key, key == 'b') && {'a': {'b': 2}}.a.b == dyn(2.0)
        `timestamp` cannot be evaluated without OLM  timestamp('2026-01-01T00:00:00Z') < timestamp('2027-01-01T00:00:00Z')
        "
        );
    }

    #[test]
    fn costly_expressions_end() {
        let properties = Properties::new([("a", &json!("x".repeat(1000)))]);
        let nested = |depth: usize| {
            let (open, close) = ("[1,2,3,4,5,6,7,8,9].all(x, ".repeat(depth), ")".repeat(depth));
            format!("{open}true{close}")
        };
        let doubled = |depth: usize| {
            let (open, close) = ("[".repeat(depth), "].map(x, x + x)[0]".repeat(depth));
            format!("{open}properties[0].value{close} == ''")
        };
        for rule in [nested(40), doubled(60)] {
            assert_eq!(Expression::parse(&rule).unwrap().holds(&properties), Err(EvaluationError::TooCostly));
        }
    }

    #[test]
    fn hostile_expressions_end() {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("!", ""),
            ("-", ""),
            ("size(", ")"),
            ("a.", ""),
            ("{1:", "}"),
            ("true?true:", ""),
            ("1+", ""),
            ("[].all(x,", ")"),
            ("[1].all(x,", ")"),
            ("[true].map(x,", ")[0]"),
            ("[", "][0]"),
        ] {
            for depth in [100, 240, 300, 30_000] {
                let rule = open.repeat(depth) + "true" + &close.repeat(depth);
                if let Ok(expression) = Expression::parse(&rule) {
                    let _ = expression.holds(&Properties::new([]));
                }
            }
        }
        let deep = |levels| "(".repeat(levels) + "true" + &")".repeat(levels);
        assert_eq!(why_not_constraint(&deep(MAX_DEPTH - 1)), None);
        assert!(why_not_constraint(&deep(MAX_DEPTH)).is_some());
    }
}
