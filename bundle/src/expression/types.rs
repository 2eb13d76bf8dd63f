//! Types of expressions, and what operators, functions and macros make of them.

use super::Result;

/// The type of an expression, as far as it matters.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    Bool,
    /// One of the three kinds of numbers, by its name.
    Number(&'static str),
    String,
    Bytes,
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    /// Types themselves, points in time, durations, null.
    Other,
    /// The value of a property, known only when the expression is evaluated.
    Value,
    /// What is in such a value, or is not known for another reason.
    Dynamic,
}

pub(super) const INT: Type = Type::Number("an int");
pub(super) const UINT: Type = Type::Number("a uint");
pub(super) const DOUBLE: Type = Type::Number("a double");

impl Type {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Bool => "a boolean",
            Self::Number(name) => name,
            Self::String => "a string",
            Self::Bytes => "bytes",
            Self::List(_) => "a list",
            Self::Map(..) => "a map",
            Self::Other => "a value of another type",
            Self::Value | Self::Dynamic => "a value whose type is not known",
        }
    }

    /// Whether a value of the one type may be one of the other.
    fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dynamic | Self::Value, _) | (_, Self::Dynamic | Self::Value) => true,
            (Self::List(a), Self::List(b)) => a.fits(b),
            (Self::Map(a, of_a), Self::Map(b, of_b)) => a.fits(b) && of_a.fits(of_b),
            (a, b) => a == b,
        }
    }
}

fn refuse<T>(what: &str, operands: &[&Type]) -> Result<T> {
    let operands: Vec<_> = operands.iter().map(|of| of.name()).collect();
    Err(format!("`{what}` does not take {}", operands.join(" and ")))
}

/// The type that all have; unknown where they differ or there are none.
pub(super) fn common(types: Vec<Type>) -> Type {
    let mut types = types.into_iter();
    let first = types.next().unwrap_or(Type::Dynamic);
    if types.all(|of| of == first) { first } else { Type::Dynamic }
}

/// The type of a name; and the name again when it is that of a type.
pub(super) fn variable(name: &str) -> Result<(Type, Option<&'static str>)> {
    if name == "properties" {
        let property = Type::Map(Box::new(Type::String), Box::new(Type::Value));
        return Ok((Type::List(Box::new(property)), None));
    }
    match TYPES.into_iter().find(|of| *of == name) {
        Some(of) => Ok((Type::Other, Some(of))),
        None => Err(format!("`{name}` is not declared, only `properties` is")),
    }
}

const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

pub(super) fn is_reserved(name: &str) -> bool {
    matches!(
        name,
        "as" | "break"
            | "const"
            | "continue"
            | "else"
            | "for"
            | "function"
            | "if"
            | "import"
            | "let"
            | "loop"
            | "namespace"
            | "package"
            | "return"
            | "var"
            | "void"
            | "while"
    )
}

pub(super) fn conditional(condition: &Type, yes: Type, no: Type) -> Result<Type> {
    if !condition.fits(&Type::Bool) || !yes.fits(&no) {
        return refuse("? :", &[condition, &yes, &no]);
    }
    Ok(common(vec![yes, no]))
}

pub(super) fn binary(operator: &str, left: &Type, right: &Type) -> Result<Type> {
    let of = match operator {
        "&&" | "||" => (left.fits(&Type::Bool) && right.fits(&Type::Bool)).then_some(Type::Bool),
        "==" | "!=" => left.fits(right).then_some(Type::Bool),
        "<" | "<=" | ">" | ">=" => {
            let ordered = |of: &Type| !matches!(of, Type::List(_) | Type::Map(..));
            (left.fits(right) && ordered(left) && ordered(right)).then_some(Type::Bool)
        }
        "in" => match right {
            Type::List(item) => left.fits(item).then_some(Type::Bool),
            Type::Map(key, _) => left.fits(key).then_some(Type::Bool),
            Type::Value | Type::Dynamic => Some(Type::Bool),
            _ => None,
        },
        _ => arithmetic(operator, left, right),
    };
    of.map_or_else(|| refuse(operator, &[left, right]), Ok)
}

fn arithmetic(operator: &str, left: &Type, right: &Type) -> Option<Type> {
    let takes = |of: &Type| match of {
        Type::Value | Type::Dynamic => true,
        Type::Number(_) => operator != "%" || *of != DOUBLE,
        Type::String | Type::Bytes | Type::List(_) => operator == "+",
        Type::Other => matches!(operator, "+" | "-"),
        Type::Bool | Type::Map(..) => false,
    };
    let known = if matches!(left, Type::Value | Type::Dynamic) { right } else { left };
    (takes(left) && takes(right) && left.fits(right)).then(|| known.clone())
}

pub(super) fn unary(operator: &str, of: Type) -> Result<Type> {
    let takes = match operator {
        "!" => of.fits(&Type::Bool),
        _ => of.fits(&INT) || of.fits(&DOUBLE),
    };
    if !takes {
        return refuse(operator, &[&of]);
    }
    Ok(if operator == "!" { Type::Bool } else { of })
}

pub(super) fn field(of: &Type, name: &str) -> Result<Type> {
    match of {
        Type::Map(_, value) => Ok(*value.clone()),
        Type::Value | Type::Dynamic => Ok(Type::Dynamic),
        other => Err(format!("{} has no field `{name}`", other.name())),
    }
}

pub(super) fn index(of: &Type, index: &Type) -> Result<Type> {
    match of {
        Type::List(item) if index.fits(&INT) => Ok(*item.clone()),
        Type::Map(key, value) if index.fits(key) => Ok(*value.clone()),
        Type::Value | Type::Dynamic => Ok(Type::Dynamic),
        _ => refuse("[ ]", &[of, index]),
    }
}

/// A function by its name and arguments.
pub(super) fn function(name: &str, arguments: &[Type]) -> Result<Type> {
    match name {
        "size" | "matches" => method(name, arguments),
        "semver_compare" => call(name, arguments, 2, INT),
        "bool" => match arguments {
            [of] if !of.fits(&Type::Bool) && !of.fits(&Type::String) => refuse(name, &[of]),
            _ => call(name, arguments, 1, Type::Bool),
        },
        "bytes" => call(name, arguments, 1, Type::Bytes),
        "double" => call(name, arguments, 1, DOUBLE),
        "dyn" => call(name, arguments, 1, Type::Dynamic),
        "duration" | "timestamp" | "type" => call(name, arguments, 1, Type::Other),
        "int" => call(name, arguments, 1, INT),
        "string" => call(name, arguments, 1, Type::String),
        "uint" => call(name, arguments, 1, UINT),
        _ => Err(format!("the function `{name}` is not declared")),
    }
}

/// A method by its name and operands, of which the first is what it is called on.
pub(super) fn method(name: &str, operands: &[Type]) -> Result<Type> {
    let all = operands.iter().collect::<Vec<_>>();
    match name {
        "size" => match operands.first() {
            Some(Type::Bool | Type::Number(_) | Type::Other) => refuse(name, &all),
            _ => call(name, operands, 1, INT),
        },
        "contains" | "endsWith" | "matches" | "startsWith" => {
            if !operands.iter().all(|of| of.fits(&Type::String)) {
                return refuse(name, &all);
            }
            call(name, operands, 2, Type::Bool)
        }
        "getDate" | "getDayOfMonth" | "getDayOfWeek" | "getDayOfYear" | "getFullYear" | "getHours"
        | "getMilliseconds" | "getMinutes" | "getMonth" | "getSeconds" => {
            let is_time = operands.first().is_some_and(|of| of.fits(&Type::Other));
            let is_zone = operands.get(1).is_none_or(|of| of.fits(&Type::String));
            if !is_time || !is_zone {
                return refuse(name, &all);
            }
            call(name, operands, operands.len().clamp(1, 2), INT)
        }
        _ => Err(format!("the method `{name}` is not declared")),
    }
}

fn call(name: &str, operands: &[Type], expected: usize, result: Type) -> Result<Type> {
    if operands.len() == expected {
        return Ok(result);
    }
    Err(format!("`{name}` takes {expected} operands, not {}", operands.len()))
}

pub(super) fn is_macro(name: &str) -> bool {
    matches!(name, "all" | "exists" | "exists_one" | "filter" | "map")
}

/// What the variable of a macro stands for: the items of a list, the keys of a map. cel-go does not go through the value of
/// a property itself, but through what is in it.
pub(super) fn item(of: &Type) -> Result<Type> {
    match of {
        Type::List(item) | Type::Map(item, _) => Ok(*item.clone()),
        Type::Dynamic => Ok(Type::Dynamic),
        other => Err(format!("{} has no items to go through", other.name())),
    }
}

/// The result of a macro over `of`, by the types of the expressions in it; all but the last of `map` are conditions.
pub(super) fn macro_result(name: &str, of: &Type, mut expressions: Vec<Type>) -> Result<Type> {
    let result = match name {
        "map" => Type::List(Box::new(expressions.pop().unwrap_or(Type::Dynamic))),
        "filter" => Type::List(Box::new(item(of)?)),
        _ => Type::Bool,
    };
    match expressions.iter().find(|of| !of.fits(&Type::Bool)) {
        Some(found) => refuse(name, &[found]),
        None => Ok(result),
    }
}
