//! Expressions in the Common Expression Language over the properties of a bundle, as `olm.constraint` has them.
//!
//! OLM's tools compile such an expression with one variable, `properties`, a list of maps, and one function more than the
//! language has, `semver_compare`; its type must be a truth value (operator-framework/api `pkg/constraints/cel.go`).
//! [`why_not_constraint`] reads an expression and works out its type as it goes; nothing is evaluated. That is all a rule
//! needs, and it holds on hostile text, where the parser of the `cel` crate overflows the stack at some fifty brackets.
//!
//! Grammar and types are those of the language's definition (cel-spec `doc/langdef.md`); `lexer` cuts the text, `types`
//! knows what operators and functions take. Not looked at are the arguments of conversions such as `int(x)`.

mod lexer;
mod types;

use lexer::{Lexer, Token};
use types::Type;

/// Deeper expressions are refused, as cel-go refuses them.
const MAX_DEPTH: usize = 250;

/// Binary operators, from those that bind least to those that bind most.
const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["<", "<=", ">=", ">", "==", "!=", "in"], &["+", "-"], &["*", "/", "%"]];

/// Why an expression is no constraint, if it is none.
pub(super) fn why_not_constraint(rule: &str) -> Option<String> {
    match Reader::new(rule).and_then(Reader::whole) {
        Err(why) => Some(why),
        Ok(Type::Bool) => None,
        Ok(found) => Some(format!("it is {}, expected a truth value", found.name())),
    }
}

/// What went wrong, in words.
type Result<T> = std::result::Result<T, String>;

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

    fn whole(mut self) -> Result<Type> {
        let of = self.expression()?;
        if self.token == Token::End { Ok(of) } else { Err(self.unexpected("an operator")) }
    }

    /// `CONDITION ? EXPRESSION : EXPRESSION`, or what binds more.
    fn expression(&mut self) -> Result<Type> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} levels deep"));
        }
        let mut of = self.binary(0)?;
        if self.take("?")? {
            let yes = self.binary(0)?;
            self.expect(":")?;
            let no = self.expression()?;
            of = types::conditional(&of, yes, no)?;
            self.is_field = false;
        }
        self.depth -= 1;
        Ok(of)
    }

    /// Operands joined by operators that bind at least as much as those of a level.
    fn binary(&mut self, least: usize) -> Result<Type> {
        let mut left = self.unary()?;
        while let Token::Sign(operator) = self.token
            && let Some(level) = LEVELS.iter().position(|operators| operators.contains(&operator))
            && level >= least
        {
            self.advance()?;
            let right = self.binary(level + 1)?;
            left = types::binary(operator, &left, &right)?;
            self.is_field = false;
        }
        Ok(left)
    }

    /// Any number of `!` or of `-` before a member.
    fn unary(&mut self) -> Result<Type> {
        for operator in ["!", "-"] {
            let mut count = 0;
            while self.take(operator)? {
                count += 1;
            }
            if count > 0 {
                let of = self.member()?;
                // Two of them cancel each other, whatever stands behind.
                self.is_field &= count % 2 == 0;
                return if count % 2 == 0 { Ok(of) } else { types::unary(operator, of) };
            }
        }
        self.member()
    }

    /// Something with fields, calls and indices behind it.
    fn member(&mut self) -> Result<Type> {
        let mut of = self.primary()?;
        loop {
            if self.take(".")? {
                let name = self.name()?;
                let is_call = self.take("(")?;
                of = if is_call { self.method(of, name)? } else { types::field(&of, name)? };
                self.is_field = !is_call;
            } else if self.take("[")? {
                let index = self.expression()?;
                self.expect("]")?;
                of = types::index(&of, &index)?;
                self.is_field = false;
            } else {
                return Ok(of);
            }
        }
    }

    fn primary(&mut self) -> Result<Type> {
        self.is_field = false;
        if let Token::Literal(of) = &self.token {
            let of = of.clone();
            self.advance()?;
            Ok(of)
        } else if self.take("(")? {
            let of = self.expression()?;
            self.expect(")")?;
            Ok(of)
        } else if self.take("[")? {
            let items = self.list("]", Self::expression)?;
            self.is_field = false;
            Ok(Type::List(Box::new(types::common(items))))
        } else if self.take("{")? {
            let entries = self.list("}", |reader| {
                let key = reader.expression()?;
                reader.expect(":")?;
                Ok((key, reader.expression()?))
            })?;
            self.is_field = false;
            let (keys, values): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
            Ok(Type::Map(Box::new(types::common(keys)), Box::new(types::common(values))))
        } else {
            let is_rooted = self.take(".")?;
            self.variable_or_call(is_rooted)
        }
    }

    /// A variable, a function, or the macro `has`, which a dot in front turns into a function that nobody declared.
    fn variable_or_call(&mut self, is_rooted: bool) -> Result<Type> {
        let Token::Name(name) = self.token else { return Err(self.unexpected("an expression")) };
        self.advance()?;
        if types::is_reserved(name) {
            return Err(format!("`{name}` is a reserved word"));
        }
        if !self.take("(")? {
            let own = self.variables.iter().rev().find(|(variable, _)| *variable == name);
            return own.map_or_else(|| types::variable(name), |(_, of)| Ok(of.clone()));
        }
        if name == "has" && !is_rooted {
            self.expression()?;
            if !self.is_field {
                return Err("`has` takes a field, such as `p.value`".into());
            }
            self.expect(")")?;
            self.is_field = false;
            return Ok(Type::Bool);
        }
        let arguments = self.list(")", Self::expression)?;
        self.is_field = false;
        types::function(name, &arguments)
    }

    /// A method of a value, or a macro over a list or map; its `(` has been read.
    fn method(&mut self, of: Type, name: &'a str) -> Result<Type> {
        if !types::is_macro(name) {
            let mut operands = vec![of];
            operands.extend(self.list(")", Self::expression)?);
            return types::method(name, &operands);
        }
        let variable = self.name()?;
        self.expect(",")?;
        self.variables.push((variable, types::item(&of)?));
        let mut arguments = vec![self.expression()?];
        if name == "map" && self.take(",")? {
            arguments.push(self.expression()?);
        }
        self.variables.pop();
        self.expect(")")?;
        types::macro_result(name, &of, arguments)
    }

    /// Items with commas between, up to the closing sign; in lists and maps a comma may stand before that.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.take(close)? {
            items.push(item(self)?);
            if !self.take(",")? {
                self.expect(close)?;
                break;
            }
            if close == ")" && self.token == Token::Sign(")") {
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

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.take(sign)? { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn unexpected(&self, expected: &str) -> String {
        let column = self.lexer.column();
        format!("expected {expected} at its column {column}, found {}", self.token.describe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        true false  expected an operator at its column 6, found a truth value
        certified == 'x'  `certified` is not declared, only `properties` is
        properties  it is a list, expected a truth value
        properties[0].value  it is a value whose type is not known, expected a truth value
        'text'  it is a string, expected a truth value
        'text  a text that starts with `'` does not end
        '\q' == ''  `\q` means nothing in a text
        true & false  `&` has no meaning at its column 6
        99999999999999999999 > 1  `99999999999999999999` is not a number of 64 bits
        semver_compare('1', '2')  it is an int, expected a truth value
        propertie.size() > 0  `propertie` is not declared, only `properties` is
        compare(1, 2)  the function `compare` is not declared
        1 == 'a'  `==` does not take an int and a string
        properties && true  `&&` does not take a list and a truth value
        properties.type == 'a'  a list has no field `type`
        properties['a'] == 1  `[ ]` does not take a list and a string
        true + false  `+` does not take a truth value and a truth value
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
        ] {
            for depth in [100, 240, 300, 30_000] {
                why_not_constraint(&(open.repeat(depth) + "true" + &close.repeat(depth)));
            }
        }
        let deep = |levels| "(".repeat(levels) + "true" + &")".repeat(levels);
        assert_eq!(why_not_constraint(&deep(MAX_DEPTH - 1)), None);
        assert!(why_not_constraint(&deep(MAX_DEPTH)).is_some());
    }
}
