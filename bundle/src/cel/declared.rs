//! What operators, functions and methods make of their operands, by the table of those that clusters and OLM declare.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::types::{Bound, Type};
use super::{Dialect, Result};

/// A declaration: what is wanted, and what comes of it.
struct Declared {
    operands: Vec<Type<'static>>,
    result: Type<'static>,
}

/// The declarations by their names.
type Table = HashMap<&'static str, Vec<Declared>>;

static CONSTRAINTS: LazyLock<Table> = LazyLock::new(|| table(Dialect::Constraint));
static RULES: LazyLock<Table> = LazyLock::new(|| table(Dialect::Rule));

fn table(dialect: Dialect) -> Table {
    let mut table = Table::new();
    for (name, declared) in lines(dialect).flat_map(declarations) {
        table.entry(name).or_default().push(declared);
    }
    table
}

impl Dialect {
    fn declared(self) -> &'static Table {
        match self {
            Self::Constraint => &CONSTRAINTS,
            Self::Rule => &RULES,
        }
    }
}

/// The type of an operator, a function or a method with its operands.
pub(super) fn result<'s>(dialect: Dialect, name: &str, operands: &[Type<'s>]) -> Result<Type<'s>> {
    let method = name.strip_prefix('.');
    let Some(declared) = dialect.declared().get(name) else {
        let what = if method.is_some() { "method" } else { "function" };
        return Err(format!("there is no {what} `{}`", method.unwrap_or(name)));
    };
    let mut found: Option<Type<'s>> = None;
    for declared in declared.iter().filter(|declared| declared.operands.len() == operands.len()) {
        let mut bound = Bound::default();
        let mut pairs = operands.iter().zip(&declared.operands);
        if pairs.all(|(operand, wanted)| operand.fits_declared(wanted, &mut bound)) {
            let result = declared.result.filled_in(&bound);
            found = Some(match found {
                // Which of several it is shows when it is evaluated.
                Some(before) if before.to_string() != result.to_string() => Type::Dyn,
                _ => result,
            });
        }
    }
    found.ok_or_else(|| {
        let shown: Vec<_> = operands.iter().map(Type::to_string).collect();
        match (method, &shown[..]) {
            (Some(method), [on]) => format!("`{method}` cannot be called on {on}"),
            (Some(method), [on, rest @ ..]) => {
                format!("`{method}` cannot be called on {on} with {}", rest.join(" and "))
            }
            (_, []) => format!("`{name}` wants something to work with"),
            _ => format!("`{name}` does not take {}", shown.join(" and ")),
        }
    })
}

/// The lines of the file that declare something in a dialect.
fn lines(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    let mut section = None;
    include_str!("declared.txt").lines().filter(move |line| {
        match *line {
            "[constraints]" => section = Some(Dialect::Constraint),
            "[rules]" => section = Some(Dialect::Rule),
            _ if line.is_empty() || line.starts_with('#') => {}
            _ => return section.is_none_or(|section| section == dialect),
        }
        false
    })
}

/// What a line declares: every name with every choice. A test sees to it that every line can be read.
fn declarations(line: &'static str) -> Vec<(&'static str, Declared)> {
    let mut parts = line.split(" ; ");
    let Some((names, types)) = parts.next().and_then(|head| head.split_once(" : ")) else {
        return Vec::new();
    };
    let Some((operands, result)) = types.split_once("-> ") else { return Vec::new() };
    let mut choices = vec![Vec::new()];
    for part in parts {
        let mut words = part.split(' ');
        let Some(word) = words.next() else { continue };
        let words: Vec<_> = words.collect();
        choices = choices
            .iter()
            .flat_map(|before| words.iter().map(|choice| [&before[..], &[(word, *choice)]].concat()))
            .collect();
    }
    let declared = |choices: &Vec<(&'static str, &'static str)>| {
        let operands = operands.split_whitespace().map(|text| parse(text, choices)).collect::<Option<_>>()?;
        Some(Declared { operands, result: parse(result, choices)? })
    };
    let each = |name| choices.iter().filter_map(declared).map(move |declared| (name, declared));
    names.split(' ').flat_map(each).collect()
}

fn parse(text: &'static str, choices: &[(&str, &'static str)]) -> Option<Type<'static>> {
    if let Some((_, choice)) = choices.iter().find(|(word, _)| *word == text) {
        return parse(choice, &[]);
    }
    let Some((outer, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
        return Some(match text {
            "dyn" => Type::Dyn,
            "type" => Type::Kind,
            "A" => Type::Parameter(0),
            "B" => Type::Parameter(1),
            name if name.chars().all(|c| c.is_ascii_alphabetic()) => Type::Named(name),
            _ => return None,
        });
    };
    Some(match outer {
        "list" => Type::List(parse(inner, choices)?.into()),
        "optional" => Type::Optional(parse(inner, choices)?.into()),
        "map" => {
            let (key, value) = inner.split_once(',')?;
            Type::Map(parse(key, choices)?.into(), parse(value, choices)?.into())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        for line in lines(Dialect::Rule).chain(lines(Dialect::Constraint)) {
            let expected: usize = line.split(" ; ").skip(1).map(|part| part.split(' ').count() - 1).product();
            let names = line.split(" : ").next().unwrap().split(' ').count();
            assert_eq!(declarations(line).len(), names * expected, "{line}");
        }
    }
}
