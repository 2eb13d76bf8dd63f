//! What an expression costs at most, as clusters estimate it before they take a CRD: by the largest values that the schema allows
//! (cel-go `checker/cost.go`; apiserver `pkg/cel/library/cost.go`).
//!
//! Sums and products stay at the largest number instead of going beyond it. Where cel-go is odd, this is: a value that was
//! computed has the size of `self` when a field of it is taken.

use std::sync::Arc;

use super::size::{Entries, Origin, Size, TRAVERSAL, scaled};
use super::types::Type;
use super::value::Value;

/// What making a list or a map costs.
const LIST: u64 = 10;
const MAP: u64 = 30;
/// Comparing a character with one of a pattern costs a quarter.
const OF_PATTERN: f64 = 0.25;
/// The longest pattern behind a named format.
const NAMED_FORMAT: f64 = 128.0;

/// A part of an expression: its type, what it costs at most, and what is known of its size.
#[derive(Clone, Debug)]
pub(super) struct Part<'s> {
    pub(super) of: Type<'s>,
    pub(super) cost: u64,
    origin: Origin<'s>,
    computed: Option<Size>,
    /// The size of what a variable of a macro stands for, where its origin tells none.
    local: Option<Size>,
    entries: Option<Entries>,
    /// The text or the number that it is, as written.
    pub(super) literal: Option<Literal>,
}

/// A literal of an expression.
#[derive(Clone, Debug)]
pub(super) enum Literal {
    Text(Arc<str>),
    Number(i64),
}

impl<'s> Part<'s> {
    /// Something computed, of which only the type is known.
    pub(super) fn computed(of: Type<'s>, cost: u64) -> Self {
        Self { of, cost, origin: Origin::Computed, computed: None, local: None, entries: None, literal: None }
    }

    /// A variable for what comes from somewhere.
    pub(super) fn variable(of: Type<'s>, origin: Origin<'s>) -> Self {
        Self { origin, ..Self::computed(of, 1) }
    }

    pub(super) fn literal(value: &Value) -> Self {
        let (size, literal) = match value {
            Value::String(text) => (text.chars().count(), Some(Literal::Text(text.clone()))),
            Value::Bytes(bytes) => (bytes.len(), None),
            Value::Int(number) => (1, Some(Literal::Number(*number))),
            _ => (1, None),
        };
        let part = Self::computed(Type::Named(value.type_name()), 0);
        Self { computed: Some(Size::exactly(size)), literal, ..part }
    }

    /// A list of these items.
    pub(super) fn list(of: Type<'s>, items: &[Self]) -> Self {
        let cost = items.iter().fold(LIST, |sum, item| sum.saturating_add(item.cost));
        let values = items.iter().map(Self::size_or_unknown).reduce(Size::or).unwrap_or(Size::exactly(0));
        let entries = Entries { is_list: true, keys: Size::exactly(1), values };
        Self {
            computed: Some(Size::exactly(items.len())),
            entries: Some(entries),
            ..Self::computed(of, cost)
        }
    }

    /// A map of these keys and values, one after the other.
    pub(super) fn map(of: Type<'s>, entries: &[(Self, Self)]) -> Self {
        let cost = entries
            .iter()
            .fold(MAP, |sum, (key, value)| sum.saturating_add(key.cost).saturating_add(value.cost));
        let sizes = |part: fn(&(Self, Self)) -> &Self| {
            entries
                .iter()
                .map(|entry| part(entry).size_or_unknown())
                .reduce(Size::or)
                .unwrap_or(Size::exactly(0))
        };
        let of_entries =
            Entries { is_list: false, keys: sizes(|entry| &entry.0), values: sizes(|entry| &entry.1) };
        Self {
            computed: Some(Size::exactly(entries.len())),
            entries: Some(of_entries),
            ..Self::computed(of, cost)
        }
    }

    /// A field of it; `root` is where `self` comes from.
    pub(super) fn field(&self, of: Type<'s>, name: &str, root: Origin<'s>) -> Self {
        let is_selection = matches!(self.of, Type::Map(..) | Type::Object(_)) || self.of.is_metadata();
        let cost = self.cost.saturating_add(u64::from(is_selection));
        let origin = self.origin.step(root, |origin| origin.field(name));
        Self { origin, ..Self::computed(of, cost) }
    }

    /// What stands in it behind an index.
    pub(super) fn index(&self, of: Type<'s>, index: &Self, root: Origin<'s>) -> Self {
        let cost = self.cost.saturating_add(index.cost).saturating_add(1);
        if !matches!(self.of, Type::List(_) | Type::Map(..) | Type::Dyn) {
            return Self::computed(of, cost);
        }
        let origin = self.origin.step(root, Origin::items);
        Self { origin, computed: self.entries.map(|entries| entries.values), ..Self::computed(of, cost) }
    }

    /// The variables of a macro over it: the one for its items or keys, or those for keys and values.
    pub(super) fn macro_variables(&self, of: &[Type<'s>], root: Origin<'s>) -> Vec<Self> {
        let is_list = self.entries.map_or(matches!(self.of, Type::List(_)), |entries| entries.is_list);
        let keys = |of: &Type<'s>| {
            let origin = self.origin.step(root, |origin| if is_list { None } else { origin.keys() });
            Self { local: self.entries.map(|entries| entries.keys), ..Self::variable(of.clone(), origin) }
        };
        let values = |of: &Type<'s>| {
            let origin = self.origin.step(root, Origin::items);
            Self { local: self.entries.map(|entries| entries.values), ..Self::variable(of.clone(), origin) }
        };
        match of {
            [single] if is_list => vec![values(single)],
            [single] => vec![keys(single)],
            [key, value] => vec![keys(key), values(value)],
            _ => Vec::new(),
        }
    }

    /// The value of a binary or other operator, a function or a method with these operands.
    pub(super) fn call(of: Type<'s>, name: &str, operands: &[Self]) -> Self {
        let own = own_cost(name, operands);
        let below = match (name, operands) {
            ("?:", [condition, yes, no]) => condition.cost.saturating_add(yes.cost.max(no.cost)),
            _ => operands.iter().fold(0u64, |sum, operand| sum.saturating_add(operand.cost)),
        };
        let entries = match (name, operands) {
            ("?:", [_, a, b]) | ("+", [a, b]) => a.entries.zip(b.entries).map(|(a, b)| a.or(b)),
            ("dyn", [a]) => a.entries,
            _ => None,
        };
        Self { computed: own.size, entries, ..Self::computed(of, below.saturating_add(own.cost)) }
    }

    /// The value of a macro over `range`, by the expressions in it; `item` is the size of what its variable stands for.
    pub(super) fn macro_call(
        of: Type<'s>,
        name: &str,
        range: &Self,
        variable: Option<&Self>,
        body: &[Self],
    ) -> Self {
        let sum = |parts: &[u64]| parts.iter().fold(0u64, |sum, part| sum.saturating_add(*part));
        let costs = body.iter().map(|part| part.cost).collect::<Vec<_>>();
        let (condition, last) = match costs[..] {
            [condition, last] => (condition, last),
            [last] => (0, last),
            _ => (0, 0),
        };
        // An optional value is asked whether there is one, and taken.
        let bound = sum(&[range.cost, 1, LIST, range.cost, 1, last]);
        match name {
            "optMap" => return Self::computed(of, bound.saturating_add(1)),
            "optFlatMap" => return Self::computed(of, bound),
            _ => {}
        }
        let times = range.size_or_unknown();
        let (before, each, after) = match name {
            "all" => (0, sum(&[last, 3]), 1),
            "exists" => (0, sum(&[last, 4]), 1),
            "exists_one" | "existsOne" => (0, sum(&[last, 2]), 2),
            "filter" => (LIST, sum(&[last, LIST, 3]), 1),
            "transformMap" | "transformMapEntry" => (MAP, sum(&[condition, last, 3]), 1),
            _ => (LIST, sum(&[condition, last, LIST, 2]), 1),
        };
        let cost = sum(&[range.cost, before, times.most.saturating_mul(each), after]);
        let values = match (name, variable, body) {
            ("filter", Some(variable), _) => variable.size_or_unknown(),
            (_, _, [.., last]) => last.size_or_unknown(),
            _ => Size::UNKNOWN,
        };
        let entries = Entries {
            is_list: !name.starts_with("transformMap"),
            keys: Size::exactly(1),
            values: Size::exactly(0).or(values),
        };
        let makes_one = matches!(name, "all" | "exists" | "exists_one" | "existsOne");
        let made = Self::computed(of, cost);
        match makes_one {
            true => Self { computed: Some(Size::exactly(1)), ..made },
            false => Self { computed: Some(times), entries: Some(entries), ..made },
        }
    }

    fn size(&self) -> Option<Size> {
        let scalar = || is_scalar(&self.of).then_some(Size::exactly(1));
        self.computed.or_else(|| self.origin.size()).or_else(scalar).or(self.local)
    }

    fn size_or_unknown(&self) -> Size {
        self.size().unwrap_or(Size::UNKNOWN)
    }

    fn is(&self, names: &[&str]) -> bool {
        matches!(self.of, Type::Named(name) if names.contains(&name))
    }

    /// The size of the items of a list, as functions of lists ask for it.
    fn items(&self) -> Option<(&Type<'s>, Size)> {
        let Type::List(item) = &self.of else { return None };
        let origin = match self.origin {
            Origin::Computed => None,
            origin => origin.items(),
        };
        Some((item, origin.and_then(Origin::size).unwrap_or(Size::UNKNOWN)))
    }
}

/// Whether values of a type have a size of one, whatever they are.
fn is_scalar(of: &Type<'_>) -> bool {
    match of {
        Type::Named(name) => matches!(*name, "bool" | "double" | "Duration" | "int" | "Timestamp" | "uint"),
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}

/// What a call costs without its operands, and the size of what it gives.
struct Own {
    cost: u64,
    size: Option<Size>,
}

fn own_cost(name: &str, operands: &[Part<'_>]) -> Own {
    let size = |at: usize| operands.get(at).map_or(Size::UNKNOWN, Part::size_or_unknown);
    let is = |at: usize, names: &[&str]| operands.get(at).is_some_and(|operand| operand.is(names));
    let is_dyn = |at: usize| operands.get(at).is_some_and(|operand| matches!(operand.of, Type::Dyn));
    let cost = |cost: u64| Own { cost, size: None };
    let is_text = |at: usize| is(at, &["string", "bytes"]);
    match name {
        "==" if is(0, &["Quantity", "IP", "CIDR", "Semver"])
            && operands[0].of.to_string() == operands[1].of.to_string() =>
        {
            cost(1)
        }
        "==" | "!=" => cost(scaled(size(0).most.min(size(1).most), TRAVERSAL)),
        "<" | "<=" | ">" | ">=" => match (is_text(0) || is_text(1), is_dyn(0) && is_dyn(1)) {
            (true, _) => cost(scaled(size(0).most.min(size(1).most), TRAVERSAL)),
            (_, true) => cost(scaled(size(0).most.min(size(1).most), TRAVERSAL).max(1)),
            _ => cost(1),
        },
        "in" => match operands.get(1).map(|operand| &operand.of) {
            Some(Type::List(_)) => cost(size(1).most),
            Some(Type::Dyn) => cost(size(1).most.max(1)),
            _ => cost(1),
        },
        "+" => {
            let sum = size(0).plus(size(1));
            match &operands[0].of {
                _ if is_text(0) || is_text(1) => Own { cost: sum.traversal(), size: Some(sum) },
                Type::List(_) => Own { cost: 1, size: Some(sum) },
                Type::Dyn if is_dyn(1) => Own { cost: sum.traversal().max(1), size: Some(sum) },
                _ => cost(1),
            }
        }
        "&&" | "||" => cost(0),
        "?:" => Own { cost: 0, size: Some(size(1).or(size(2))) },
        "dyn" => Own { cost: 1, size: operands.first().and_then(Part::size) },
        // A value of any type may be one of these, and is no larger for it.
        "bytes" if is(0, &["string"]) || is_dyn(0) => Own {
            cost: size(0).traversal().max(is_dyn(0).into()),
            size: Some(Size { least: size(0).least, most: size(0).most.saturating_mul(4) }),
        },
        "string" if is(0, &["bytes"]) || is_dyn(0) => Own {
            cost: size(0).traversal().max(is_dyn(0).into()),
            size: Some(Size { least: size(0).least / 4, most: size(0).most }),
        },
        ".startsWith" | ".endsWith" => cost(size(1).traversal()),
        ".contains" => cost(size(0).traversal().saturating_mul(size(1).traversal())),
        ".matches" | ".find" | ".findAll" => {
            let text = scaled(size(0).most.saturating_add(1), TRAVERSAL);
            let found = (name != ".matches").then_some(Size::up_to(size(0).most));
            Own { cost: text.saturating_mul(scaled(size(1).most, OF_PATTERN)), size: found }
        }
        ".format" => cost(size(0).traversal()),
        ".lowerAscii" | ".upperAscii" | ".substring" | ".trim" | "url" => {
            Own { cost: size(0).traversal(), size: Some(size(0)) }
        }
        "strings.quote" => Own {
            cost: size(0).traversal(),
            size: Some(Size {
                least: size(0).least.saturating_add(2),
                most: size(0).most.saturating_mul(2).saturating_add(2),
            }),
        },
        ".replace" => Own {
            cost: scaled(size(0).most, 2.0 * TRAVERSAL),
            size: Some(replaced(size(0), size(1), size(2))),
        },
        ".split" => {
            let most = match operands.get(2).and_then(|operand| operand.literal.as_ref()) {
                Some(Literal::Number(most)) => *most as u64,
                _ => size(0).most,
            };
            Own { cost: scaled(size(0).most, 2.0 * TRAVERSAL), size: Some(Size::up_to(most)) }
        }
        ".join" => {
            let items = operands[0].items().map_or(Size::exactly(0), |(_, item)| size(0).times(item));
            let between = match operands.get(1) {
                None => Size::exactly(0),
                Some(_) => size(1).times(Size {
                    least: size(0).least.saturating_sub(1),
                    most: size(0).most.saturating_sub(1),
                }),
            };
            let joined = items.plus(between);
            Own { cost: joined.traversal(), size: Some(joined) }
        }
        ".isSorted" | ".sum" | ".max" | ".min" | ".indexOf" | ".lastIndexOf" => match operands[0].items() {
            Some((Type::Named("string" | "bytes"), item)) => {
                cost(size(0).most.saturating_mul(item.traversal().saturating_add(1)))
            }
            Some(_) => cost(size(0).most),
            None => cost(size(0).traversal()),
        },
        "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            cost(size(0).traversal())
        }
        "sets.contains" | "sets.intersects" => cost(size(0).times(size(1)).most.saturating_add(1)),
        "sets.equivalent" => cost(scaled(size(0).times(size(1)).most, 2.0).saturating_add(1)),
        "ip.isCanonical" => cost(scaled(size(0).most, 2.0 * TRAVERSAL)),
        // Addresses have 16 bytes at most, which are looked at twice.
        ".containsIP" => cost(4u64.saturating_add(if is(1, &["string"]) { size(1).traversal() } else { 0 })),
        ".containsCIDR" => {
            cost(7u64.saturating_add(if is(1, &["string"]) { size(1).traversal() } else { 0 }))
        }
        ".validate" => cost(scaled(size(1).traversal(), NAMED_FORMAT * OF_PATTERN)),
        _ => cost(1),
    }
}

/// The size of a text of which parts are replaced by others.
fn replaced(text: Size, old: Size, new: Size) -> Size {
    let (most, kept) = match old.least {
        // Nothing is replaced between all characters.
        0 => (text.most.saturating_add(1), text.most),
        _ if new.most <= old.least => (0, text.most),
        least => (text.most.div_ceil(least), 0),
    };
    let (least, kept_least) = match old.most {
        0 => (text.least.saturating_add(1), text.least),
        most if most <= new.least => (0, text.least),
        most => (text.least.div_ceil(most), 0),
    };
    Size { least, most }.times(new).plus(Size { least: kept_least, most: kept })
}
