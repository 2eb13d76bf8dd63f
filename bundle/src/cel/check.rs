//! Works out the type of every part of an expression, and what it costs at most.

use super::cost::{Literal, Part};
use super::size::Origin;
use super::tree::{Expr, Item, Step};
use super::types::{BOOL, TYPES, Type};
use super::{Dialect, Result, declared};
use crate::pattern::Pattern;
use crate::schema::format;

/// Checks an expression.
pub(super) struct Checker<'s> {
    dialect: Dialect,
    /// What is known by a name wherever the expression asks for it.
    names: Vec<(&'static str, Type<'s>)>,
    /// Where those come from.
    root: Origin<'s>,
    /// Which of them the expression asks for.
    used: Vec<&'static str>,
    /// The variables of the macros around this place.
    variables: Vec<Part<'s>>,
}

impl<'s> Checker<'s> {
    pub(super) fn new(dialect: Dialect, names: Vec<(&'static str, Type<'s>)>, root: Origin<'s>) -> Self {
        Self { dialect, names, root, used: Vec::new(), variables: Vec::new() }
    }

    /// Whether what was checked asks for a name.
    pub(super) fn uses(&self, name: &str) -> bool {
        self.used.contains(&name)
    }

    /// A part of an expression.
    pub(super) fn part(&mut self, expr: &Expr) -> Result<Part<'s>> {
        let mut part = match expr {
            Expr::Literal(value) => Part::literal(value),
            Expr::Name(name) => self.name(name)?,
            Expr::Variable(at) => self.variables[*at].clone(),
            Expr::List(items) => self.list(items)?,
            Expr::Map(entries) => self.map(entries)?,
            Expr::Unary(operator, operand) => {
                let operand = self.part(operand)?;
                self.call(operator, &[operand])?
            }
            Expr::Chain(first, rest) => self.chain(first, rest)?,
            Expr::Conditional(parts) => {
                let parts = self.parts(&parts[..])?;
                self.call("?:", &parts)?
            }
            Expr::Path(base, steps) => self.path(base, steps)?,
            Expr::Has(base, steps) => self.has(base, steps)?,
            Expr::Call(name, arguments) => {
                let arguments = self.parts(arguments)?;
                self.call(name, &arguments)?
            }
        };
        part.of = part.of.bounded();
        Ok(part)
    }

    fn parts(&mut self, exprs: &[Expr]) -> Result<Vec<Part<'s>>> {
        exprs.iter().map(|expr| self.part(expr)).collect()
    }

    fn name(&mut self, name: &str) -> Result<Part<'s>> {
        if let Some((name, of)) = self.names.iter().find(|(known, _)| *known == name) {
            self.used.push(name);
            return Ok(Part::variable(of.clone(), self.root));
        }
        let is_qualified = name == "google" || name.starts_with("google.");
        if TYPES.contains(&name) || is_qualified && self.dialect == Dialect::Rule {
            return Ok(Part::variable(Type::Kind, self.root));
        }
        Err(match self.dialect {
            Dialect::Constraint => format!("there is no variable `{name}`, only `properties`"),
            Dialect::Rule => format!("there is no variable `{name}`"),
        })
    }

    fn list(&mut self, items: &[Item]) -> Result<Part<'s>> {
        let (mut of, mut parts) = (None, Vec::with_capacity(items.len()));
        for item in items {
            let part = self.part(&item.expr)?;
            of = Some(self.joined(of, unwrapped(part.of.clone(), item.is_optional)?)?);
            parts.push(part);
        }
        Ok(Part::list(Type::List(of.unwrap_or(Type::Dyn).into()), &parts))
    }

    fn map(&mut self, entries: &[(Expr, Item)]) -> Result<Part<'s>> {
        let (mut keys, mut values, mut parts) = (None, None, Vec::with_capacity(entries.len()));
        for (key, item) in entries {
            let (key, value) = (self.part(key)?, self.part(&item.expr)?);
            keys = Some(self.joined(keys, key.of.clone())?);
            values = Some(self.joined(values, unwrapped(value.of.clone(), item.is_optional)?)?);
            parts.push((key, value));
        }
        let of = Type::Map(keys.unwrap_or(Type::Dyn).into(), values.unwrap_or(Type::Dyn).into());
        Ok(Part::map(of, &parts))
    }

    /// The type of items of both types; clusters want those of a list or map to be of one.
    fn joined(&self, before: Option<Type<'s>>, of: Type<'s>) -> Result<Type<'s>> {
        match before {
            None => Ok(of),
            Some(before) if before.fits(&of) => Ok(before.join(of)),
            Some(_) if self.dialect == Dialect::Constraint => Ok(Type::Dyn),
            Some(before) => Err(format!("a list or map holds one type of values, found {before} and {of}")),
        }
    }

    fn chain(&mut self, first: &Expr, rest: &[(&'static str, Expr)]) -> Result<Part<'s>> {
        let mut left = self.part(first)?;
        for (operator, right) in rest {
            let right = self.part(right)?;
            left = self.call(operator, &[left, right])?;
        }
        Ok(left)
    }

    fn path(&mut self, base: &Expr, steps: &[Step]) -> Result<Part<'s>> {
        let mut part = self.part(base)?;
        for step in steps {
            part = self.step(part, step)?;
            part.of = part.of.bounded();
        }
        Ok(part)
    }

    /// Whether there is a field costs as much as what it is a field of.
    fn has(&mut self, base: &Expr, steps: &[Step]) -> Result<Part<'s>> {
        let Some((field, before)) = steps.split_last() else { return self.part(base) };
        let above = self.path(base, before)?;
        let cost = above.cost;
        self.step(above, field)?;
        Ok(Part::computed(BOOL, cost))
    }

    fn step(&mut self, part: Part<'s>, step: &Step) -> Result<Part<'s>> {
        match step {
            Step::Field { name, is_quoted, is_optional } => {
                let of = if *is_quoted { Type::Dyn } else { part.of.field(name)? };
                Ok(match (is_optional, of) {
                    (false, of) => part.field(of, name, self.root),
                    (true, of @ Type::Optional(_)) => Part::computed(of, part.cost.saturating_add(1)),
                    (true, of) => Part::computed(Type::Optional(of.into()), part.cost.saturating_add(1)),
                })
            }
            Step::Index { index, is_optional } => {
                let index = self.part(index)?;
                let name = if *is_optional { "[?]" } else { "[]" };
                let of = declared::result(self.dialect, name, &[part.of.clone(), index.of.clone()])?;
                Ok(part.index(of, &index, self.root))
            }
            Step::Method(name, arguments) => {
                let mut operands = vec![part];
                operands.extend(self.parts(arguments)?);
                self.call(&format!(".{name}"), &operands)
            }
            Step::Macro { name, variables, body } => self.macro_call(&part, name, *variables, body),
        }
    }

    /// A macro over `range` with as many variables.
    fn macro_call(
        &mut self,
        range: &Part<'s>,
        name: &str,
        variables: usize,
        body: &[Expr],
    ) -> Result<Part<'s>> {
        let is_optional = name.starts_with("opt");
        let (key, value) =
            if is_optional { (Type::Dyn, unwrapped(range.of.clone(), true)?) } else { range.of.items()? };
        let of = match variables {
            // With one variable, it is the item of a list or the key of a map.
            1 if matches!(range.of, Type::Map(..)) => vec![key.clone()],
            1 => vec![value],
            _ => vec![key.clone(), value],
        };
        let outside = self.variables.len();
        match is_optional {
            true => self.variables.extend(of.into_iter().map(|of| Part::computed(of, 1))),
            false => self.variables.extend(range.macro_variables(&of, self.root)),
        }
        let body = self.parts(body)?;
        let inner = self.variables.drain(outside..).next_back();
        let item = inner.as_ref().map_or(Type::Dyn, |variable| variable.of.clone());
        let types = body.iter().map(|part| part.of.clone()).collect();
        let of = self.macro_result(name, range.of.clone(), (key, item), types)?;
        Ok(Part::macro_call(of, name, range, inner.as_ref(), &body))
    }

    /// The type of a macro with the types of what it is called on, of its variables and of the expressions in it.
    fn macro_result(
        &self,
        name: &str,
        of: Type<'s>,
        (key, item): (Type<'s>, Type<'s>),
        mut body: Vec<Type<'s>>,
    ) -> Result<Type<'s>> {
        let (fewest, most) = match name {
            "map" | "transformList" | "transformMap" | "transformMapEntry" => (1, 2),
            _ => (1, 1),
        };
        let count = body.len();
        if !(fewest..=most).contains(&count) {
            return Err(format!("`{name}` has {count} expressions behind its variable, expected {most}"));
        }
        let Some(last) = body.pop() else { return Ok(Type::Dyn) };
        let conditions = match name {
            "all" | "exists" | "exists_one" | "existsOne" | "filter" => vec![&last],
            _ => body.iter().collect(),
        };
        if let Some(other) = conditions.into_iter().find(|of| !of.fits(&BOOL)) {
            return Err(format!("`{name}` wants a condition, found {other}"));
        }
        Ok(match name {
            "filter" => Type::List(item.into()),
            "map" | "transformList" => Type::List(last.into()),
            "transformMap" => Type::Map(key.into(), last.into()),
            "transformMapEntry" if last.fits(&Type::Map(Type::Dyn.into(), Type::Dyn.into())) => last,
            "transformMapEntry" => return Err(format!("`{name}` wants a map, found {last}")),
            "optMap" => Type::Optional(last.into()),
            "optFlatMap" => Type::Optional(unwrapped(last, true)?.into()),
            "sortBy" => return declared::result(self.dialect, ".sortBy", &[of, last]),
            _ => BOOL,
        })
    }

    /// The value of an operator, a function or a method with its operands.
    fn call(&self, name: &str, operands: &[Part<'s>]) -> Result<Part<'s>> {
        let types: Vec<_> = operands.iter().map(|operand| operand.of.clone()).collect();
        let of = declared::result(self.dialect, name, &types)?;
        if self.dialect == Dialect::Rule
            && let Some(Part { literal: Some(Literal::Text(text)), .. }) = operands.last()
        {
            check_literal(name, text)?;
        }
        Ok(Part::call(of, name, operands))
    }
}

/// Clusters look into some texts that are written out.
fn check_literal(name: &str, text: &str) -> Result<()> {
    match name {
        "matches" | ".matches" => Pattern::parse(text)
            .map_err(|why| format!("`{text}` is not a valid RE2 pattern: {why}"))
            .map(drop),
        "duration" if !format::is_go_duration(text) => {
            Err(format!("`{text}` is not a duration such as `1h30m`"))
        }
        "timestamp" if !format::is_timestamp(text) => {
            Err(format!("`{text}` is not a timestamp such as `2006-01-02T15:04:05Z`"))
        }
        _ => Ok(()),
    }
}

/// What is in an optional value.
fn unwrapped(of: Type<'_>, is_optional: bool) -> Result<Type<'_>> {
    match of {
        Type::Optional(inner) if is_optional => Ok(*inner),
        Type::Dyn => Ok(Type::Dyn),
        other if is_optional => Err(format!("an optional value is wanted, found {other}")),
        other => Ok(other),
    }
}
