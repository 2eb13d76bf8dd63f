//! The value of a constraint, as cel-go finds it. What only rules have is not evaluated.
//!
//! Where the language says that something is an error, such as a field that is not there, `&&`, `||`, `all` and `exists` may
//! still have a value: that of the side which decides. The work is bounded, whatever the expression.

use super::tree::{Expr, Item, Step};
use super::types::TYPES;
use super::value::{Value, find};
use crate::go;
use crate::pattern::Pattern;
use crate::version::{parse_tolerant, precedence};

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

/// More steps than any sensible expression needs by far.
const MAX_STEPS: usize = 10_000_000;

/// Why there is no value.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// The language has none; an operator may do without it.
    NoValue,
    /// We have none.
    GiveUp(EvaluationError),
}

type Outcome = Result<Value, Stop>;

/// Evaluates one expression over some properties.
pub(super) struct Evaluation<'p> {
    properties: &'p Value,
    /// The values of the variables of macros, outermost first.
    scope: Vec<Value>,
    steps_left: usize,
}

impl<'p> Evaluation<'p> {
    pub(super) fn new(properties: &'p Value) -> Self {
        Self { properties, scope: Vec::new(), steps_left: MAX_STEPS }
    }

    pub(super) fn value(&mut self, expr: &Expr) -> Outcome {
        self.work(1)?;
        match expr {
            Expr::Literal(value) => Ok(value.clone()),
            Expr::Name(name) if name == "properties" => Ok(self.properties.clone()),
            Expr::Name(name) => {
                let of = TYPES.into_iter().find(|of| of == name);
                of.map(Value::Type).ok_or(Stop::NoValue)
            }
            Expr::Variable(at) => self.scope.get(*at).cloned().ok_or(Stop::NoValue),
            Expr::List(items) => {
                let values: Result<_, _> = items.iter().map(|item| self.value(&item.expr)).collect();
                values.map(Value::List)
            }
            Expr::Map(entries) => self.map(entries),
            Expr::Unary(operator, inner) => match (*operator, self.value(inner)?) {
                ("!", Value::Bool(value)) => Ok(Value::Bool(!value)),
                ("-", Value::Int(value)) => value.checked_neg().map(Value::Int).ok_or(Stop::NoValue),
                ("-", Value::Double(value)) => Ok(Value::Double(-value)),
                _ => Err(Stop::NoValue),
            },
            Expr::Chain(first, rest) => self.chain(first, rest),
            Expr::Conditional(parts) => {
                let [condition, yes, no] = &**parts;
                match self.value(condition)? {
                    Value::Bool(true) => self.value(yes),
                    Value::Bool(false) => self.value(no),
                    _ => Err(Stop::NoValue),
                }
            }
            Expr::Path(base, steps) => self.path(base, steps),
            Expr::Has(base, steps) => self.has(base, steps),
            Expr::Call(name, arguments) => {
                let arguments = self.values(arguments)?;
                self.call(name, arguments)
            }
        }
    }

    fn work(&mut self, steps: usize) -> Result<(), Stop> {
        self.steps_left =
            self.steps_left.checked_sub(steps).ok_or(Stop::GiveUp(EvaluationError::TooCostly))?;
        Ok(())
    }

    fn values(&mut self, exprs: &[Expr]) -> Result<Vec<Value>, Stop> {
        exprs.iter().map(|expr| self.value(expr)).collect()
    }

    fn map(&mut self, entries: &[(Expr, Item)]) -> Outcome {
        let mut map: Vec<(Value, Value)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let (key, value) = (self.value(key)?, self.value(&value.expr)?);
            self.work(map.len())?;
            match map.iter_mut().find(|(other, _)| other.type_name() == key.type_name() && other.equals(&key))
            {
                Some((_, other)) => *other = value,
                None => map.push((key, value)),
            }
        }
        Ok(Value::Map(map.into()))
    }

    /// Operands from left to right. Where the left side has no value, the right one may decide all the same.
    fn chain(&mut self, first: &Expr, rest: &[(&'static str, Expr)]) -> Outcome {
        let mut left = self.value(first);
        for (operator, right) in rest {
            if let Err(Stop::GiveUp(_)) = left {
                return left;
            }
            left = match (*operator, left) {
                ("&&", left) => self.logic(left, right, false),
                ("||", left) => self.logic(left, right, true),
                (_, Err(stop)) => Err(stop),
                (operator, Ok(left)) => {
                    self.value(right).and_then(|right| self.binary(operator, left, right))
                }
            };
        }
        left
    }

    /// `&&` and `||`: a side that is `decisive` settles it alone.
    fn logic(&mut self, left: Outcome, right: &Expr, decisive: bool) -> Outcome {
        let settles = |side: &Outcome| matches!(side, Ok(Value::Bool(value)) if *value == decisive);
        if settles(&left) {
            return left;
        }
        let right = self.value(right);
        match (&left, &right) {
            (_, Err(Stop::GiveUp(_))) => right,
            _ if settles(&right) => right,
            (Ok(Value::Bool(_)), Ok(Value::Bool(_))) => right,
            _ => Err(Stop::NoValue),
        }
    }

    fn binary(&mut self, operator: &str, left: Value, right: Value) -> Outcome {
        self.work(left.size() + right.size())?;
        match operator {
            "==" => self.equal(&left, &right).map(Value::Bool),
            "!=" => self.equal(&left, &right).map(|equal| Value::Bool(!equal)),
            "<" | "<=" | ">" | ">=" => {
                let order = left.order(&right).ok_or(Stop::NoValue)?;
                Ok(Value::Bool(match operator {
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    _ => order.is_ge(),
                }))
            }
            "in" => match &right {
                Value::List(items) => {
                    for item in items.iter() {
                        if self.equal(item, &left)? {
                            return Ok(Value::Bool(true));
                        }
                    }
                    Ok(Value::Bool(false))
                }
                Value::Map(entries) => Ok(Value::Bool(self.find(entries, &left)?.is_some())),
                _ => Err(Stop::NoValue),
            },
            _ => arithmetic(operator, &left, &right).ok_or(Stop::NoValue),
        }
    }

    /// Whether two values are equal; what is in them counts as work.
    fn equal(&mut self, left: &Value, right: &Value) -> Result<bool, Stop> {
        self.work(weight(left, self.steps_left).min(weight(right, self.steps_left)))?;
        Ok(left.equals(right))
    }

    fn find<'v>(&mut self, entries: &'v [(Value, Value)], key: &Value) -> Result<Option<&'v Value>, Stop> {
        self.work(entries.len())?;
        Ok(find(entries, key))
    }

    fn path(&mut self, base: &Expr, steps: &[Step]) -> Outcome {
        let mut value = self.value(base)?;
        for step in steps {
            value = self.step(value, step)?;
        }
        Ok(value)
    }

    fn has(&mut self, base: &Expr, steps: &[Step]) -> Outcome {
        let Some((Step::Field { name, .. }, before)) = steps.split_last() else { return Err(Stop::NoValue) };
        match self.path(base, before)? {
            Value::Map(entries) => Ok(Value::Bool(self.find(&entries, &text(name))?.is_some())),
            Value::List(_) => Err(Stop::NoValue),
            // What has no fields at all has not this one either (cel-go `interpreter/attributes.go`, `refQualify`).
            _ => Ok(Value::Bool(false)),
        }
    }

    fn step(&mut self, value: Value, step: &Step) -> Outcome {
        self.work(1)?;
        match step {
            Step::Field { name, .. } => match &value {
                Value::Map(entries) => self.find(entries, &text(name))?.cloned().ok_or(Stop::NoValue),
                _ => Err(Stop::NoValue),
            },
            Step::Index { index, .. } => {
                let index = self.value(index)?;
                match &value {
                    Value::Map(entries) => self.find(entries, &index)?.cloned().ok_or(Stop::NoValue),
                    Value::List(items) => {
                        let at = whole(&index).and_then(|at| usize::try_from(at).ok());
                        at.and_then(|at| items.get(at)).cloned().ok_or(Stop::NoValue)
                    }
                    _ => Err(Stop::NoValue),
                }
            }
            Step::Method(name, arguments) => {
                let mut operands = vec![value];
                operands.extend(self.values(arguments)?);
                self.call(name, operands)
            }
            Step::Macro { name, body, .. } => self.macro_over(name, &value, body),
        }
    }

    fn macro_over(&mut self, name: &str, range: &Value, body: &[Expr]) -> Outcome {
        let keys: Vec<Value>;
        let items: &[Value] = match range {
            Value::List(items) => items,
            Value::Map(entries) => {
                keys = entries.iter().map(|(key, _)| key.clone()).collect();
                &keys
            }
            _ => return Err(Stop::NoValue),
        };
        self.work(items.len())?;
        let (Some(first), Some(last)) = (body.first(), body.last()) else { return Err(Stop::NoValue) };
        let mut undecided = false;
        let mut found = Vec::new();
        for item in items {
            self.scope.push(item.clone());
            let condition = match name {
                "map" if body.len() == 1 => Ok(Value::Bool(true)),
                _ => self.value(first),
            };
            let result = match condition {
                Ok(Value::Bool(true)) if name == "map" => self.value(last).map(Some),
                Ok(Value::Bool(true)) if name == "filter" => Ok(Some(item.clone())),
                Ok(Value::Bool(true)) => Ok(Some(Value::Bool(true))),
                Ok(Value::Bool(false)) => Ok(None),
                Ok(_) => Err(Stop::NoValue),
                Err(stop) => Err(stop),
            };
            self.scope.pop();
            match (name, result) {
                (_, Err(Stop::GiveUp(why))) => return Err(Stop::GiveUp(why)),
                ("all", Ok(None)) => return Ok(Value::Bool(false)),
                ("exists", Ok(Some(_))) => return Ok(Value::Bool(true)),
                ("all" | "exists", Err(_)) => undecided = true,
                (_, Err(stop)) => return Err(stop),
                (_, Ok(result)) => found.extend(result),
            }
        }
        match name {
            "all" | "exists" if undecided => Err(Stop::NoValue),
            "all" => Ok(Value::Bool(true)),
            "exists" => Ok(Value::Bool(false)),
            "exists_one" => Ok(Value::Bool(found.len() == 1)),
            _ => Ok(Value::List(found.into())),
        }
    }

    fn call(&mut self, name: &str, arguments: Vec<Value>) -> Outcome {
        self.work(arguments.iter().map(Value::size).sum())?;
        let result = match (name, &arguments[..]) {
            ("size", [Value::String(text)]) => Some(Value::Int(text.chars().count() as i64)),
            ("size", [Value::Bytes(bytes)]) => Some(Value::Int(bytes.len() as i64)),
            ("size", [Value::List(items)]) => Some(Value::Int(items.len() as i64)),
            ("size", [Value::Map(entries)]) => Some(Value::Int(entries.len() as i64)),
            ("contains", [Value::String(text), Value::String(part)]) => {
                Some(Value::Bool(text.contains(&**part)))
            }
            ("startsWith", [Value::String(text), Value::String(part)]) => {
                Some(Value::Bool(text.starts_with(&**part)))
            }
            ("endsWith", [Value::String(text), Value::String(part)]) => {
                Some(Value::Bool(text.ends_with(&**part)))
            }
            ("matches", [Value::String(text), Value::String(pattern)]) => {
                self.work(pattern.len() * 100)?;
                let pattern = Pattern::parse(pattern).map_err(|_| Stop::NoValue)?;
                Some(Value::Bool(pattern.is_match(text).ok_or(Stop::GiveUp(EvaluationError::TooCostly))?))
            }
            ("semver_compare", [a, b]) => compare_versions(a, b),
            ("dyn", [value]) => Some(value.clone()),
            ("type", [value]) => Some(Value::Type(value.type_name())),
            ("bool" | "bytes" | "double" | "int" | "string" | "uint", [value]) => convert(name, value),
            ("duration" | "timestamp", _) => return Err(unsupported(name)),
            (name, _) if name.starts_with("get") => return Err(unsupported(name)),
            _ => None,
        };
        result.ok_or(Stop::NoValue)
    }
}

fn unsupported(function: &str) -> Stop {
    Stop::GiveUp(EvaluationError::Unsupported { function: function.to_owned() })
}

fn text(text: &str) -> Value {
    Value::String(text.into())
}

/// How many values are in a value, no further than a bound.
fn weight(value: &Value, bound: usize) -> usize {
    let mut weight = 0;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        weight += 1 + value.size();
        if weight > bound {
            break;
        }
        match value {
            Value::List(items) => left.extend(items.iter()),
            // A key is looked for among all others.
            Value::Map(entries) => {
                weight = weight.saturating_add(entries.len().saturating_mul(entries.len()));
                left.extend(entries.iter().map(|(_, value)| value));
            }
            _ => {}
        }
    }
    weight
}

/// A number without a fraction.
fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Int(value) => Some(*value),
        Value::Uint(value) => i64::try_from(*value).ok(),
        Value::Double(value) if value.fract() == 0.0 && value.abs() < 9e18 => Some(*value as i64),
        _ => None,
    }
}

fn arithmetic(operator: &str, left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => match operator {
            "+" => a.checked_add(*b),
            "-" => a.checked_sub(*b),
            "*" => a.checked_mul(*b),
            "/" => a.checked_div(*b),
            _ => a.checked_rem(*b),
        }
        .map(Value::Int),
        (Value::Uint(a), Value::Uint(b)) => match operator {
            "+" => a.checked_add(*b),
            "-" => a.checked_sub(*b),
            "*" => a.checked_mul(*b),
            "/" => a.checked_div(*b),
            _ => a.checked_rem(*b),
        }
        .map(Value::Uint),
        (Value::Double(a), Value::Double(b)) => match operator {
            "+" => Some(a + b),
            "-" => Some(a - b),
            "*" => Some(a * b),
            "/" => Some(a / b),
            _ => None,
        }
        .map(Value::Double),
        _ if operator != "+" => None,
        (Value::String(a), Value::String(b)) => Some(Value::String([&**a, &**b].concat().into())),
        (Value::Bytes(a), Value::Bytes(b)) => Some(Value::Bytes([&**a, &**b].concat().into())),
        (Value::List(a), Value::List(b)) => Some(Value::List([&**a, &**b].concat().into())),
        _ => None,
    }
}

/// -1, 0 or 1 by how two versions stand to each other, read as OLM reads `spec.version`.
fn compare_versions(a: &Value, b: &Value) -> Option<Value> {
    let version = |value: &Value| {
        let text = match value {
            Value::String(text) => text.to_string(),
            value => printed(value)?,
        };
        parse_tolerant(&text).ok()
    };
    Some(Value::Int(precedence(&version(a)?, &version(b)?) as i64))
}

/// A number or boolean as Go prints it.
fn printed(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(value.to_string()),
        Value::Int(value) => Some(value.to_string()),
        Value::Uint(value) => Some(value.to_string()),
        Value::Double(value) if value.is_finite() => Some(go::float_as_text(*value)),
        Value::String(text) => Some(text.to_string()),
        _ => None,
    }
}

fn convert(name: &str, value: &Value) -> Option<Value> {
    match (name, value) {
        ("bool", Value::Bool(_)) | ("bytes", Value::Bytes(_)) => Some(value.clone()),
        ("bool", Value::String(text)) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(Value::Bool(false)),
            _ => None,
        },
        ("bytes", Value::String(text)) => Some(Value::Bytes(text.as_bytes().into())),
        ("double", Value::Int(value)) => Some(Value::Double(*value as f64)),
        ("double", Value::Uint(value)) => Some(Value::Double(*value as f64)),
        ("double", Value::Double(_)) => Some(value.clone()),
        ("double", Value::String(text)) => text.parse().ok().map(Value::Double),
        ("int", Value::Int(_)) => Some(value.clone()),
        ("int", Value::Uint(value)) => i64::try_from(*value).ok().map(Value::Int),
        // Every double between these bounds has a whole number below it.
        ("int", Value::Double(value)) => {
            (value.abs() < i64::MAX as f64).then(|| Value::Int(value.trunc() as i64))
        }
        ("int", Value::String(text)) => text.parse().ok().map(Value::Int),
        ("uint", Value::Uint(_)) => Some(value.clone()),
        ("uint", Value::Int(value)) => u64::try_from(*value).ok().map(Value::Uint),
        ("uint", Value::Double(value)) => {
            (0.0..u64::MAX as f64).contains(value).then(|| Value::Uint(value.trunc() as u64))
        }
        ("uint", Value::String(text)) => text.parse().ok().map(Value::Uint),
        ("string", Value::Bytes(bytes)) => std::str::from_utf8(bytes).ok().map(self::text),
        ("string", value) => printed(value).map(|printed| text(&printed)),
        _ => None,
    }
}
