//! Whether a rule of `x-kubernetes-validations` is one that clusters can compile: its syntax, its names, and its types by the
//! schema that it stands in; and what it costs at most.
//!
//! What is known only when a rule runs is not judged, as cel-go does not.

use super::check::Checker;
use super::cost::Part;
use super::parse::parse;
use super::size::{Origin, most_times};
use super::types::Type;
use super::{Dialect, Result, brackets, on_deep_stack};
use crate::schema::{At, Schema};

/// Clusters refuse longer ones for their cost long before.
const MAX_BYTES: usize = 64 << 10;

/// The variable of what was there before.
const OLD_SELF: &str = "oldSelf";

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
            (None, Origin::Schema(schema, _)) => most_times(schema),
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
/// use olmkit_bundle::cel::rule::{Old, Scope, Wanted, check_rule};
/// use olmkit_bundle::schema::Schema;
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
pub fn check_rule(text: &str, scope: &Scope<'_>, wanted: Wanted) -> Result<u64> {
    if text.len() > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    on_deep_stack(brackets(text), || check_on_this_stack(text, scope, wanted))?
}

fn check_on_this_stack(text: &str, scope: &Scope<'_>, wanted: Wanted) -> Result<u64> {
    let old = match scope.old.optional {
        Some(true) => Type::Optional(scope.of.clone().into()),
        _ => scope.of.clone(),
    };
    let variables = vec![("self", scope.of.clone()), (OLD_SELF, old)];
    let expr = parse(text, Dialect::Rule)?;
    let mut checker = Checker::new(Dialect::Rule, variables, scope.origin);
    let Part { of, cost, .. } = checker.part(&expr)?;
    if wanted == Wanted::Truth {
        let uses_old = checker.uses(OLD_SELF);
        if uses_old && !scope.old.can_correlate {
            return Err("within a list that changes as a whole there is no `oldSelf`".into());
        }
        if !uses_old && scope.old.optional.is_some() {
            return Err("`optionalOldSelf` is set, and the rule has no `oldSelf`".into());
        }
    }
    match of {
        Type::Named(name) if name == wanted.name() => Ok(cost),
        of => Err(format!("it gives {of}, expected {}", wanted.name())),
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
            ("self.text b", "expected an operator at its column 11, found `b`"),
            ("slef.a", "no variable `slef`"),
            ("self.words.all(x, y > 0)", "no variable `y`"),
            ("self.words.all(1, true)", "name of a variable"),
            ("hass(self.text)", "no function `hass`"),
            ("self.text.startWith('a')", "no method `startWith`"),
            ("self.number = 1", "has no meaning"),
            ("self.number > 0 ? true", "expected `:`"),
            ("self.words.all(package, package == '')", "`package` is a reserved word"),
            (".has(self.text)", "no function `has`"),
            ("!1 == 1", "`!` does not take int"),
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
        // What may be a text or a number is no larger as a text: quantities are written so.
        for rule in [
            "quantity(string(self.either)).isGreaterThan(quantity('0'))",
            "string(self.either).matches('^[0-9]+')",
        ] {
            assert!(cost(SCHEMA, rule).unwrap() < MAX_COST, "{rule}");
        }
        // To clusters, -1 is the largest number of parts.
        assert_eq!(cost(SCHEMA, "self.text.split(',', -1).all(w, w != '')"), Ok(u64::MAX));
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
