//! What operators, functions and methods make of their operands, by the table of those that clusters declare.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Result;
use super::types::{Bound, Type};

/// A declaration: what is wanted, and what comes of it.
struct Declared {
    operands: Vec<Type<'static>>,
    result: Type<'static>,
}

/// The declarations by their names, as the table has them.
static DECLARED: LazyLock<HashMap<&'static str, Vec<Declared>>> = LazyLock::new(|| {
    let mut declared: HashMap<_, Vec<_>> = HashMap::new();
    for line in lines() {
        for (name, declaration) in declarations(line) {
            declared.entry(name).or_default().push(declaration);
        }
    }
    declared
});

/// Whether there is a function of that name.
pub(super) fn is_declared(name: &str) -> bool {
    DECLARED.contains_key(name)
}

/// The type of an operator, a function or a method with its operands.
pub(super) fn result<'s>(name: &str, operands: &[Type<'s>]) -> Result<Type<'s>> {
    let method = name.strip_prefix('.');
    let Some(declared) = DECLARED.get(name) else {
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
                // Which of several it is shows when the rule runs.
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

/// The lines of the table that declare something.
fn lines() -> impl Iterator<Item = &'static str> {
    include_str!("functions.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
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
        for line in lines() {
            let expected: usize = line.split(" ; ").skip(1).map(|part| part.split(' ').count() - 1).product();
            let names = line.split(" : ").next().unwrap().split(' ').count();
            assert_eq!(declarations(line).len(), names * expected, "{line}");
        }
    }
}
