//! Expressions over the properties of a bundle, as `olm.constraint` has them.
//!
//! OLM compiles such an expression with one variable, `properties`, a list of maps, and one function more than the language
//! has, `semver_compare`; its type must be a boolean (operator-framework/api `pkg/constraints/cel.go`).
//! [`Expression::parse`] reads an expression, [`Expression::holds`] evaluates it. Not evaluated are points in time and
//! durations, of which properties have none.

use std::hash::{Hash, Hasher};

use serde_json::Value as Json;

use super::check::Checker;
use super::cost::Part;
use super::evaluate::{Evaluation, Stop};
use super::parse::parse;
use super::size::Origin;
use super::tree::Expr;
use super::types::{BOOL, STRING, Type};
use super::value::Value;
use super::{Dialect, brackets, on_deep_stack};

pub use super::evaluate::EvaluationError;

/// What has more brackets could make values that are nested too deeply.
const MAX_BRACKETS: usize = 2_000;

/// An expression that is true or false of a bundle's properties.
///
/// ```
/// use olmkit_bundle::cel::constraint::{Expression, Properties};
/// let certified = Expression::parse("properties.exists(p, p.type == 'certified' && p.value)")?;
/// let value = serde_json::Value::from(true);
/// assert_eq!(certified.holds(&Properties::new([("certified", &value)])), Ok(true));
/// # Ok::<(), olmkit_bundle::cel::constraint::ExpressionError>(())
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

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// When OLM would refuse it: it is no expression, or not one of a boolean.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let expr =
            on_deep_stack(brackets(text), || read(text)).flatten().map_err(|why| ExpressionError { why })?;
        Ok(Self { text: text.to_owned(), expr })
    }

    /// Whether it is true of properties. Where the language has no value, such as for a field that is not there, it is
    /// not, by OLM's rule.
    ///
    /// # Errors
    /// When it cannot be found out here.
    pub fn holds(&self, properties: &Properties) -> Result<bool, EvaluationError> {
        let brackets = brackets(&self.text);
        if brackets > MAX_BRACKETS {
            return Err(EvaluationError::TooCostly);
        }
        let evaluate = || match Evaluation::new(&properties.0).value(&self.expr) {
            Ok(value) => Ok(matches!(value, Value::Bool(true))),
            Err(Stop::NoValue) => Ok(false),
            Err(Stop::GiveUp(why)) => Err(why),
        };
        on_deep_stack(brackets, evaluate).unwrap_or(Err(EvaluationError::TooCostly))
    }

    /// The text that it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn read(text: &str) -> super::Result<Expr> {
    let expr = parse(text, Dialect::Constraint)?;
    let property = Type::Map(STRING.into(), Type::Any.into());
    let properties = ("properties", Type::List(property.into()));
    match Checker::new(Dialect::Constraint, vec![properties], Origin::Unknown).part(&expr)? {
        Part { of: Type::Named("bool"), .. } => Ok(expr),
        Part { of, .. } => Err(format!("it gives {of}, expected {BOOL}")),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cel::MAX_DEPTH;

    fn rejection(rule: &str) -> Option<String> {
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
            assert_eq!(rejection(rule), None, "{rule}");
        }
    }

    #[test]
    fn what_cel_go_refuses() {
        let why = |rule: &str| format!("{rule}  {}", rejection(rule).unwrap_or_default());
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
                "properties[0].value.exists(p, true)",
                "[1, 'a'].exists(x, x.`b` == 1)",
                "{}.?a == 1",
                "1 < 1.5",
                "int(true) == 1",
                "'a'.charAt(0) == 'a'",
                "sets.contains([1], [1])",
            ]
            .map(why)
            .join("\n"),
            @r"
          expected an expression at its column 1, found the end
        properties.exists(p, p.type == )  expected an expression at its column 32, found `)`
        true false  expected an operator at its column 6, found a boolean
        certified == 'x'  there is no variable `certified`, only `properties`
        properties  it gives list(map(string, any)), expected bool
        properties[0].value  it gives any, expected bool
        'text'  it gives string, expected bool
        'text  a text that starts with `'` does not end
        '\q' == ''  `\q` means nothing in a text
        true & false  `&` has no meaning at its column 6
        99999999999999999999 > 1  `99999999999999999999` is not a number of 64 bits
        semver_compare('1', '2')  it gives int, expected bool
        propertie.size() > 0  there is no variable `propertie`, only `properties`
        compare(1, 2)  there is no function `compare`
        1 == 'a'  `==` does not take int and string
        properties && true  `&&` does not take list(map(string, any)) and bool
        properties.type == 'a'  list(map(string, any)) has no field `type`
        properties['a'] == 1  `[]` does not take list(map(string, any)) and string
        true + false  `+` does not take bool and bool
        size(properties, 1) > 0  `size` does not take list(map(string, any)) and int
        has(properties)  `has` takes a field, such as `a.b`
        properties.exists(1, true)  expected the name of a variable at its column 19, found an int
        1.exists(p, true)  int has no items to go through
        package == 1  `package` is a reserved word
        size(1,) > 0  expected an argument at its column 8, found `)`
        properties[0].value.exists(p, true)  any has no items to go through
        [1, 'a'].exists(x, x.`b` == 1)  expected a field at its column 22, found `b`
        {}.?a == 1  expected a field at its column 4, found `?`
        1 < 1.5  `<` does not take int and double
        int(true) == 1  `int` does not take bool
        'a'.charAt(0) == 'a'  there is no method `charAt`
        sets.contains([1], [1])  there is no variable `sets`, only `properties`
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
                "properties.exists(p, p.type == 'tier' && !has(p.value.nothing))",
                "has(properties[3].value.zones.first) || !has(properties[3].value.zones.first)",
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
        true  properties.exists(p, p.type == 'tier' && !has(p.value.nothing))
        false  has(properties[3].value.zones.first) || !has(properties[3].value.zones.first)
        true  properties.exists_one(p, has(p.value.kind))
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
        // Types and values that go deeper with each step.
        let lists = format!(".map(x, dyn({}x{}))", "[".repeat(200), "]".repeat(200));
        for (step, count) in
            [(".map(x, {x: x})", 6_000), (".map(x, [x])", 8_000), (".map(x, dyn([x]))", 150), (&lists, 230)]
        {
            let expression = Expression::parse(&format!("[1]{}.size() == 1", step.repeat(count)));
            let holds = expression.unwrap().holds(&Properties::new([]));
            assert!(matches!(holds, Ok(true) | Err(EvaluationError::TooCostly)), "{step}: {holds:?}");
        }
        assert_eq!(rejection(&("true".to_owned() + &" ".repeat(99_996))), None);
        assert!(rejection(&("true".to_owned() + &" ".repeat(99_997))).is_some());
        let deep = |levels| "(".repeat(levels) + "true" + &")".repeat(levels);
        assert_eq!(rejection(&deep(MAX_DEPTH - 1)), None);
        assert!(rejection(&deep(MAX_DEPTH)).is_some());
    }
}
