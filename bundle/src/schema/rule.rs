//! Whether a rule of `x-kubernetes-validations` is one that clusters can compile: its syntax, its names, and its types by the
//! schema that it stands in.
//!
//! Our own reader instead of the `cel` crate's: that one overflows the stack at some fifty brackets, and knows neither names
//! nor types. The grammar is that of the language's definition (cel-spec `doc/langdef.md`). What is known only when a rule
//! runs is not judged, as cel-go does not. What a rule costs at most is worked out along the way (`cost`).

mod cost;
mod functions;
mod types;

use super::{At, Schema, format};
use crate::expression::MAX_DEPTH;
use crate::expression::lexer::{Lexer, Token};
use crate::expression::value::Value;
use crate::pattern::Pattern;
use cost::{Literal, Origin, Part};
use types::{BOOL, Type};

/// Clusters refuse longer ones for their cost long before.
const MAX_BYTES: usize = 64 << 10;

/// What may be nested deeper than this is read on a stack of its own, which holds all that clusters take.
const DEEP: usize = 40;
const STACK: usize = 16 << 20;

/// What an expression is about: `self`, and what was there before.
#[derive(Clone, Debug)]
pub struct Scope<'s> {
    of: Type<'s>,
    origin: Origin<'s>,
    old: Old,
}

/// What is known of `oldSelf`.
#[derive(Clone, Copy, Debug)]
pub struct Old {
    /// Whether clusters can tell which value it is.
    pub can_correlate: bool,
    /// What the rule says of `optionalOldSelf`: when true, it runs without an old value too.
    pub optional: Option<bool>,
}

impl Old {
    /// It is there whenever a rule runs that asks for it.
    pub const THERE: Self = Self { can_correlate: true, optional: None };
}

/// What an expression is to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A boolean, as a rule.
    Truth,
    /// A text, as the expression of a message.
    Text,
}

impl Wanted {
    fn name(self) -> &'static str {
        match self {
            Self::Truth => "bool",
            Self::Text => "string",
        }
    }
}

impl<'s> Scope<'s> {
    /// The scope of the expressions in a schema, none where clusters do not look at them. The values of a resource have
    /// `apiVersion`, `kind` and `metadata` whatever the schema says.
    pub fn new(schema: Schema<'s, 's>, is_resource: bool, old: Old) -> Option<Self> {
        let origin = Origin::Schema(schema, is_resource);
        Some(Self { of: Type::of(schema, is_resource)?, origin, old })
    }

    /// How often its expressions may have to be evaluated for one object.
    pub fn most_times(&self, at: At) -> u64 {
        match (at.most_times, self.origin) {
            (Some(times), _) => times,
            (None, Origin::Schema(schema, _)) => cost::most_times(schema),
            _ => 1,
        }
    }

    /// The scope of expressions about something of which nothing is known.
    pub fn unknown() -> Self {
        Self { of: Type::Dyn, origin: Origin::Unknown, old: Old::THERE }
    }
}

/// What clusters let one rule of a CRD cost, and all those of a version together.
pub const MAX_COST: u64 = 10_000_000;
/// See [`MAX_COST`].
pub const MAX_COST_OF_ALL: u64 = 100_000_000;

/// Reads an expression, and says what evaluating it once costs at most. `self` is the value, `oldSelf` what it was before.
///
/// ```
/// use olmkit_bundle::schema::{Schema, rule::{Old, Scope, Wanted, check_rule}};
/// let text = "{type: object, properties: {replicas: {type: integer}, name: {type: string}}}";
/// let document = olmkit_bundle::yaml::first_document(text).unwrap();
/// let scope = Scope::new(Schema(&document.root), true, Old::THERE).unwrap();
/// let check = |rule| check_rule(rule, &scope, Wanted::Truth);
/// assert_eq!(check("self.replicas > 0"), Ok(3));
/// assert_eq!(check("sef.replicas > 0"), Err("there is no variable `sef`".into()));
/// assert_eq!(check("self.replicas > self.name"), Err("`>` does not take int and string".into()));
/// ```
///
/// # Errors
/// When clusters cannot compile it.
pub fn check_rule(text: &str, scope: &Scope<'_>, wanted: Wanted) -> std::result::Result<u64, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    if text.matches(['(', '[', '{', '?']).count() < DEEP {
        return check_on_this_stack(text, scope, wanted);
    }
    std::thread::scope(|threads| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let check = thread.spawn_scoped(threads, || check_on_this_stack(text, scope, wanted));
        match check.map(|check| check.join()) {
            Ok(Ok(checked)) => checked,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(format!("there is no memory to read it: {error}")),
        }
    })
}

fn check_on_this_stack(text: &str, scope: &Scope<'_>, wanted: Wanted) -> std::result::Result<u64, String> {
    match read(text, scope, wanted)? {
        Part { of: Type::Named(name), cost, .. } if name == wanted.name() => Ok(cost),
        Part { of, .. } => Err(format!("it gives {of}, expected {}", wanted.name())),
    }
}

type Result<T, E = String> = std::result::Result<T, E>;

fn read<'s>(text: &str, scope: &Scope<'s>, wanted: Wanted) -> Result<Part<'s>> {
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::new();
    loop {
        match lexer.next()? {
            Token::End => break,
            token => tokens.push(token),
        }
    }
    let old = match scope.old.optional {
        Some(true) => Type::Optional(scope.of.clone().into()),
        _ => scope.of.clone(),
    };
    let variable = |of| Part::variable(of, scope.origin);
    let variables = vec![("self", variable(scope.of.clone())), (OLD_SELF, variable(old))];
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        depth: 0,
        variables,
        root: scope.origin,
        is_field: false,
        cost_above: 0,
        uses_old: false,
    };
    let part = reader.expression()?;
    if reader.at < tokens.len() {
        return Err(format!("{} is not expected here", reader.shown()));
    }
    if wanted == Wanted::Truth && reader.uses_old && !scope.old.can_correlate {
        return Err("within a list that changes as a whole there is no `oldSelf`".into());
    }
    if wanted == Wanted::Truth && !reader.uses_old && scope.old.optional.is_some() {
        return Err("`optionalOldSelf` is set, and the rule has no `oldSelf`".into());
    }
    Ok(part)
}

struct Reader<'t, 'a, 's> {
    tokens: &'t [Token<'a>],
    at: usize,
    depth: usize,
    variables: Vec<(&'a str, Part<'s>)>,
    /// Where `self` comes from.
    root: Origin<'s>,
    /// Whether what was read last is a field of something, as `has` wants it.
    is_field: bool,
    /// What that something costs.
    cost_above: u64,
    uses_old: bool,
}

/// The variable of what was there before.
const OLD_SELF: &str = "oldSelf";
/// Binary operators, from those that bind least to those that bind most.
const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["<", "<=", ">=", ">", "==", "!=", "in"], &["+", "-"], &["*", "/", "%"]];
/// Names of types, which are values too.
const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];
/// What the names of some functions start with, up to the dot.
const FAMILIES: [&str; 6] = ["format", "ip", "lists", "optional", "sets", "strings"];

impl<'a, 's> Reader<'_, 'a, 's> {
    fn peek(&self) -> &Token<'a> {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(next) if *next == sign);
        self.at += usize::from(found);
        found
    }

    fn require(&mut self, sign: &str) -> Result<()> {
        if self.take(sign) { Ok(()) } else { Err(format!("expected `{sign}`, found {}", self.shown())) }
    }

    fn shown(&self) -> String {
        self.peek().describe()
    }

    /// `CONDITION ? EXPRESSION : EXPRESSION`, or what binds more.
    fn expression(&mut self) -> Result<Part<'s>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("it is nested too deeply".into());
        }
        let mut part = self.binary(0)?;
        if self.take("?") {
            let yes = self.binary(0)?;
            self.require(":")?;
            let no = self.expression()?;
            self.is_field = false;
            part = call("?:", &[part, yes, no])?;
        }
        self.depth -= 1;
        Ok(part)
    }

    /// Operands joined by operators that bind at least as much as those of a level.
    fn binary(&mut self, least: usize) -> Result<Part<'s>> {
        let mut left = self.unary()?;
        while let Some((operator, level)) = self.operator(least) {
            self.at += 1;
            let right = self.binary(level + 1)?;
            self.is_field = false;
            left = call(operator, &[left, right])?;
        }
        Ok(left)
    }

    /// The operator that comes next, if it binds at least as much as those of a level, and its own level.
    fn operator(&self, least: usize) -> Option<(&'static str, usize)> {
        let Token::Sign(operator) = *self.peek() else { return None };
        let level = LEVELS.iter().position(|operators| operators.contains(&operator))?;
        (level >= least).then_some((operator, level))
    }

    /// Any number of `!` or of `-` before an operand; two of them cancel each other.
    fn unary(&mut self) -> Result<Part<'s>> {
        for operator in ["!", "-"] {
            let mut count = 0;
            while self.take(operator) {
                count += 1;
            }
            if count > 0 {
                let is_number = matches!(self.peek(), Token::Literal(Value::Int(_) | Value::Double(_)));
                let part = self.operand()?;
                self.is_field &= count % 2 == 0;
                return match count % 2 {
                    0 => Ok(part),
                    // The sign of a number is a part of it.
                    _ if is_number && count == 1 && part.cost == 0 => Ok(part),
                    _ => call(operator, &[part]),
                };
            }
        }
        self.operand()
    }

    fn operand(&mut self) -> Result<Part<'s>> {
        self.is_field = false;
        let part = match self.peek() {
            Token::Literal(value) => {
                let part = Part::literal(value);
                self.at += 1;
                part
            }
            Token::Sign("(") => {
                self.at += 1;
                let part = self.expression()?;
                self.require(")")?;
                part
            }
            Token::Sign("[") => self.list_literal()?,
            Token::Sign("{") => self.map_literal()?,
            _ => self.name()?,
        };
        self.members(part)
    }

    fn list_literal(&mut self) -> Result<Part<'s>> {
        self.at += 1;
        let (mut of, mut items) = (None, Vec::new());
        self.list("]", |reader| {
            let is_optional = reader.take("?");
            let item = reader.expression()?;
            of = Some(joined(of.take(), unwrapped(item.of.clone(), is_optional)?)?);
            items.push(item);
            Ok(())
        })?;
        self.is_field = false;
        Ok(Part::list(Type::List(of.unwrap_or(Type::Dyn).into()), &items))
    }

    fn map_literal(&mut self) -> Result<Part<'s>> {
        self.at += 1;
        let (mut keys, mut values, mut entries) = (None, None, Vec::new());
        self.list("}", |reader| {
            let is_optional = reader.take("?");
            let key = reader.expression()?;
            keys = Some(joined(keys.take(), key.of.clone())?);
            reader.require(":")?;
            let value = reader.expression()?;
            values = Some(joined(values.take(), unwrapped(value.of.clone(), is_optional)?)?);
            entries.push((key, value));
            Ok(())
        })?;
        self.is_field = false;
        let of = Type::Map(keys.unwrap_or(Type::Dyn).into(), values.unwrap_or(Type::Dyn).into());
        Ok(Part::map(of, &entries))
    }

    /// A variable, a function or the name of a type.
    fn name(&mut self) -> Result<Part<'s>> {
        self.take(".");
        let &Token::Name(name) = self.peek() else {
            return Err(format!("{} is not expected here", self.shown()));
        };
        self.at += 1;
        if self.take("(") {
            return if name == "has" { self.has() } else { self.function(name) };
        }
        if let Some(at) = self.variables.iter().rposition(|(variable, _)| *variable == name) {
            // A macro's own variable may have the same name.
            self.uses_old |= at == 1;
            return Ok(self.variables[at].1.clone());
        }
        if FAMILIES.contains(&name)
            && let [Token::Sign("."), Token::Name(member), Token::Sign("("), ..] = self.tokens[self.at..]
        {
            self.at += 3;
            return self.function(&format!("{name}.{member}"));
        }
        match name {
            "google" => self.qualified(),
            _ if TYPES.contains(&name) => Ok(Part::variable(Type::Kind, self.root)),
            _ => Err(format!("there is no variable `{name}`")),
        }
    }

    /// The rest of the name of a type such as `google.protobuf.Duration`.
    fn qualified(&mut self) -> Result<Part<'s>> {
        while let [Token::Sign("."), Token::Name(_), ..] = self.tokens[self.at..] {
            self.at += 2;
        }
        Ok(Part::variable(Type::Kind, self.root))
    }

    fn has(&mut self) -> Result<Part<'s>> {
        self.expression()?;
        if !self.is_field {
            return Err("`has` takes a field, such as `self.a`".into());
        }
        self.require(")")?;
        self.is_field = false;
        Ok(Part::computed(BOOL, self.cost_above))
    }

    /// A function whose `(` has been read.
    fn function(&mut self, name: &str) -> Result<Part<'s>> {
        if !functions::is_declared(name) {
            return Err(format!("there is no function `{name}`"));
        }
        let operands = self.arguments(Vec::new())?;
        call(name, &operands)
    }

    /// The fields, indices and calls behind a value.
    fn members(&mut self, mut part: Part<'s>) -> Result<Part<'s>> {
        loop {
            part.of = part.of.bounded();
            if self.take(".") {
                let is_optional = self.take("?");
                let (name, is_quoted) = match *self.peek() {
                    Token::Name(name) => (name, false),
                    Token::Quoted(name) => (name, true),
                    _ => return Err(format!("{} is not a field", self.shown())),
                };
                self.at += 1;
                if self.take("(") {
                    part = self.call(part, name)?;
                    self.is_field = false;
                    continue;
                }
                let mut of = if is_quoted { Type::Dyn } else { part.of.field(name)? };
                if is_optional && !matches!(of, Type::Optional(_)) {
                    of = Type::Optional(of.into());
                }
                self.cost_above = part.cost;
                part = match is_optional {
                    true => Part::computed(of, part.cost.saturating_add(1)),
                    false => part.field(of, name, self.root),
                };
                self.is_field = !is_optional;
            } else if self.take("[") {
                let name = if self.take("?") { "[?]" } else { "[]" };
                let index = self.expression()?;
                self.require("]")?;
                let of = functions::result(name, &[part.of.clone(), index.of.clone()])?;
                part = part.index(of, &index, self.root);
                self.is_field = false;
            } else {
                return Ok(part);
            }
        }
    }

    /// A method or macro of a value; its `(` has been read.
    fn call(&mut self, part: Part<'s>, name: &'a str) -> Result<Part<'s>> {
        let most = match name {
            "all" | "exists" | "exists_one" | "existsOne" => 2,
            "transformList" | "transformMap" | "transformMapEntry" => 2,
            "filter" | "map" | "optFlatMap" | "optMap" | "sortBy" => 1,
            _ => {
                let operands = self.arguments(vec![part])?;
                return call(&format!(".{name}"), &operands);
            }
        };
        let mut names = Vec::new();
        while let [Token::Name(variable), Token::Sign(","), ..] = self.tokens[self.at..]
            && names.len() < most
        {
            self.at += 2;
            names.push(variable);
        }
        if names.is_empty() || (name.starts_with("transform") || name == "existsOne") && names.len() < 2 {
            return Err(format!("`{name}` starts with the name of a variable"));
        }
        let outside = self.variables.len();
        let is_optional = name.starts_with("opt");
        let (key, value) =
            if is_optional { (Type::Dyn, unwrapped(part.of.clone(), true)?) } else { part.of.items()? };
        let of = match names[..] {
            // With one variable, it is the item of a list or the key of a map.
            [_] if matches!(part.of, Type::Map(..)) => vec![key.clone()],
            [_] => vec![value],
            _ => vec![key.clone(), value],
        };
        let variables = match is_optional {
            true => of.into_iter().map(|of| Part::computed(of, 1)).collect(),
            false => part.macro_variables(&of, self.root),
        };
        self.variables.extend(names.into_iter().zip(variables));
        let body = self.arguments(Vec::new())?;
        let inner = self.variables.drain(outside..).next_back().map(|(_, variable)| variable);
        let item = inner.as_ref().map_or(Type::Dyn, |variable| variable.of.clone());
        let of = macro_result(
            name,
            part.of.clone(),
            (key, item),
            body.iter().map(|part| part.of.clone()).collect(),
        )?;
        Ok(Part::macro_call(of, name, &part, inner.as_ref(), &body))
    }

    /// The arguments of a call, behind those that are known.
    fn arguments(&mut self, mut operands: Vec<Part<'s>>) -> Result<Vec<Part<'s>>> {
        self.list(")", |reader| {
            operands.push(reader.expression()?);
            Ok(())
        })?;
        self.is_field = false;
        Ok(operands)
    }

    fn list(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        while !self.take(close) {
            item(self)?;
            if !self.take(",") {
                return self.require(close);
            }
            if close == ")" && matches!(self.peek(), Token::Sign(")")) {
                return Err("`)` is not expected here".into());
            }
        }
        Ok(())
    }
}

/// The value of an operator, a function or a method with its operands.
fn call<'s>(name: &str, operands: &[Part<'s>]) -> Result<Part<'s>> {
    let types: Vec<_> = operands.iter().map(|operand| operand.of.clone()).collect();
    let of = functions::result(name, &types)?;
    if let Some(Part { literal: Some(Literal::Text(text)), .. }) = operands.last() {
        check_literal(name, text)?;
    }
    Ok(Part::call(of, name, operands))
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

/// The type of a macro with the types of what it is called on, of its variables and of the expressions in it.
fn macro_result<'s>(
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
        "sortBy" => return functions::result(".sortBy", &[of, last]),
        _ => BOOL,
    })
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

/// The type of items of both types; clusters want those of a list or map to be of one.
fn joined<'s>(before: Option<Type<'s>>, of: Type<'s>) -> Result<Type<'s>> {
    match before {
        None => Ok(of),
        Some(before) if before.fits(&of) => Ok(before.join(of)),
        Some(before) => Err(format!("a list or map holds one type of values, found {before} and {of}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::first_document;

    const SCHEMA: &str = "
        type: object
        properties:
          number: {type: integer}
          text: {type: string}
          when: {type: string, format: date-time}
          either: {x-kubernetes-int-or-string: true}
          list: {type: array, items: {type: object, properties: {name: {type: string}, a-b: {type: integer}}}}
          words: {type: array, items: {type: string}}
          labels: {type: object, additionalProperties: {type: string}}
          inner: {type: object, properties: {flag: {type: boolean}, namespace: {type: string}}}
          open: {type: object, x-kubernetes-preserve-unknown-fields: true}
    ";

    fn why_not(rule: &str, wanted: Wanted, old: Old) -> Option<String> {
        let document = first_document(SCHEMA).unwrap();
        check_rule(rule, &Scope::new(Schema(&document.root), true, old).unwrap(), wanted).err()
    }

    #[test]
    fn sound_rules() {
        for rule in [
            "self == oldSelf",
            "has(self.inner) ? self.inner.flag : true",
            "self.list.all(x, x.name.startsWith('a') && !(x.name in ['b', \"c\"]))",
            "self.list.map(x, x.name != '', x.a__dash__b).sum() <= 10",
            "self.text.matches(r'^\\d+$') || duration(self.text) < duration('1h')",
            "self.labels.all(k, v, size(k) < 3 && v != '')",
            "self.labels.all(k, self.labels[k] != '') && 'a' in self.labels",
            "self.?text.orValue('') != ''",
            "quantity(self.text).isLessThan(quantity('1'))",
            "self.inner.__namespace__ == 'a' // why",
            "{'a': 1}.a == 1 && -self.number < .5",
            "self.labels[?'a'].hasValue() && self.labels.?a.optMap(a, a + 'b').orValue('') == ''",
            "self.list[0].`a-b` > 0x1f && [?self.?text].size() < 2",
            "self.metadata.name.size() < 64 && self.kind == 'A' && self.inner != null",
            "type(self.either) == int ? self.either > 1 : self.either.contains('%')",
            "self.when > timestamp('2024-01-01T00:00:00Z') && self.number < 1.5",
            "sets.contains(self.words, ['a']) && self.words.exists_one(w, w == self.text)",
            "self.labels.transformList(k, v, k + v).join(',') == '' && optional.of(1).value() == 1",
            "self.words.exists(oldSelf, oldSelf == 'a') && dyn(self.text) == 1 && [].size() == 0",
        ] {
            assert_eq!(why_not(rule, Wanted::Truth, Old::THERE), None, "{rule}");
        }
    }

    #[test]
    fn rules_that_no_cluster_compiles() {
        for (rule, part) in [
            ("", "the end"),
            ("self.number >", "the end"),
            ("self.text == 'b", "does not end"),
            ("(self.number", "expected `)`"),
            ("self.text b", "`b` is not expected"),
            ("slef.a", "no variable `slef`"),
            ("self.words.all(x, y > 0)", "no variable `y`"),
            ("self.words.all(1, true)", "name of a variable"),
            ("hass(self.text)", "no function `hass`"),
            ("self.text.startWith('a')", "no method `startWith`"),
            ("self.number = 1", "has no meaning"),
            ("self.number > 0 ? true", "expected `:`"),
            ("self.numbr > 0", "no field `numbr` here; did you mean `number`?"),
            ("self.list[0].names == ''", "no field `names`"),
            ("self.list.name == ''", "list(object) has no field `name`"),
            ("self.open.a == 1", "no field `a`"),
            ("self.metadata.labels.size() > 0", "no field `labels`"),
            ("self.number == '1'", "`==` does not take int and string"),
            ("self.text + 1 == ''", "`+` does not take string and int"),
            ("self.number == null", "`==` does not take int and null"),
            ("1 in self.words", "`in` does not take int and list(string)"),
            ("self.words.all(x, x)", "`all` wants a condition, found string"),
            ("self.number.all(x, true)", "int has no items"),
            ("self.text", "it gives string, expected bool"),
            ("[1, 'a'].size() > 0", "one type of values, found int and string"),
            ("has(self)", "`has` takes a field"),
            ("self.text.orValue('') == ''", "`orValue` cannot be called on string with string"),
            ("self.?text == ''", "`==` does not take optional(string) and string"),
            ("self.words.map(x, size(x)) == self.words", "`==` does not take list(int) and list(string)"),
            ("size(self.number) > 1", "`size` does not take int"),
            ("math.greatest(1, 2) > 1", "no variable `math`"),
            ("self.text.matches('(')", "not a valid RE2 pattern: missing closing )"),
            ("matches(self.text, '^.{1,4096}$')", "invalid repeat count"),
            ("duration('1 hour') == duration('1h')", "`1 hour` is not a duration"),
            ("self.when < timestamp('tomorrow')", "`tomorrow` is not a timestamp"),
        ] {
            let why = why_not(rule, Wanted::Truth, Old::THERE).unwrap_or_default();
            assert!(why.contains(part), "{rule}: {why}");
        }
    }

    #[test]
    fn what_rules_cost_at_most() {
        let cost = |schema: &str, rule: &str| {
            let document = first_document(schema).unwrap();
            check_rule(rule, &Scope::new(Schema(&document.root), true, Old::THERE).unwrap(), Wanted::Truth)
        };
        for (rule, expected) in [
            ("self.number > 0", 3),
            ("has(self.text)", 1),
            ("self.text == 'abc'", 3),
            // A request of 3 MiB has 1,048,575 empty texts, or 393,215 of them with keys.
            ("self.words.all(w, w == 'a')", 5 * 1_048_575 + 3),
            ("self.labels.all(k, k != '')", 4 * 393_215 + 3),
            ("self.number > -1 && !self.inner.flag", 7),
            // The name of a type has the size of `self`, which is an object.
            ("type(self.either) == int", 4),
        ] {
            assert_eq!(cost(SCHEMA, rule), Ok(expected), "{rule}");
        }
        let bounded = SCHEMA.replace("words: {type: array,", "words: {type: array, maxItems: 10,");
        assert_eq!(cost(&bounded, "self.words.all(w, w == 'a')"), Ok(53));
        let all_pairs = "self.words.all(v, self.words.all(w, v != w))";
        assert!(cost(SCHEMA, all_pairs).unwrap() > MAX_COST_OF_ALL);
        // What is nested as deep as that costs more than can be counted.
        assert_eq!(cost(SCHEMA, &(all_pairs.replacen("v != w", all_pairs, 1))), Ok(u64::MAX));
    }

    #[test]
    fn messages_and_what_was_there_before() {
        let text = "'is ' + string(self.number)";
        let unknown = Old { can_correlate: false, optional: None };
        let optional = Old { can_correlate: true, optional: Some(true) };
        assert_eq!(why_not(text, Wanted::Text, unknown), None);
        assert_eq!(why_not(text, Wanted::Truth, Old::THERE).unwrap(), "it gives string, expected bool");
        let rule = "!oldSelf.hasValue() || oldSelf.value().number == self.number";
        assert_eq!(why_not(rule, Wanted::Truth, optional), None);
        assert!(why_not(rule, Wanted::Truth, Old::THERE).is_some());
        assert!(why_not("self == oldSelf", Wanted::Truth, unknown).unwrap().contains("no `oldSelf`"));
        assert!(why_not("self.number > 1", Wanted::Truth, optional).unwrap().contains("optionalOldSelf"));
    }

    /// Each name was compared with every property once, for each rule.
    #[test]
    fn many_rules_over_many_properties_end_soon() {
        let properties: Vec<_> = (0..3_000).map(|number| format!("p{number}: {{type: string}}")).collect();
        let text = format!("{{type: object, properties: {{{}}}}}", properties.join(", "));
        let document = first_document(&text).unwrap();
        let scope = Scope::new(Schema(&document.root), false, Old::THERE).unwrap();
        let start = std::time::Instant::now();
        for number in 0..3_000 {
            let rule = format!("self.p{number} != self.p{}", 2_999 - number);
            assert!(check_rule(&rule, &scope, Wanted::Truth).is_ok(), "{rule}");
        }
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }

    #[test]
    fn hostile_rules_end() {
        let lists = "[".repeat(200) + &"]".repeat(200);
        for rule in [
            "(".repeat(60_000),
            "[".repeat(60_000),
            "self?1:".repeat(9_000),
            "!".repeat(60_000),
            "a.".repeat(30_000),
            ".".repeat(60_000),
            "self.?words".to_owned() + &".?a".repeat(20_000),
            "1+".repeat(30_000),
            "[self.words].map(x,".repeat(3_000),
            format!("{lists} == {lists}") + &" + [x]".repeat(100),
            "[1]".to_owned() + &".map(a, {a: a})".repeat(3_000),
            "[1]".to_owned() + &".map(a, [a])".repeat(4_000),
        ] {
            assert!(why_not(&rule, Wanted::Truth, Old::THERE).is_some());
            let _ = check_rule(&rule, &Scope::unknown(), Wanted::Text);
        }
    }
}
