//! What a new schema does to objects that the old one admitted: what it refuses, what it drops, what it adds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::safety::wordless;
use super::schema::{
    Segment, entries, field, field_path, is_true, list, number, same, same_json, span_of, text, texts,
    v1_path,
};
use crate::cel::run::is_about_new_fields;
use crate::diff::codes;
use crate::finding::{Code, Level};
use crate::schema::Schema;
use crate::schema::format::is_checked;
use crate::source::Span;
use crate::yaml::{Document, Entry, Node, Value, first_document};

/// Values of an enum that a sentence names.
const MOST_VALUES: usize = 20;

/// One change of a schema.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) code: &'static Code,
    pub(super) level: Level,
    pub(super) message: String,
    /// The check of OLM v1 that would look at it, and the property as that check names it.
    pub(super) check: &'static str,
    pub(super) property: String,
    pub(super) old: Span,
    pub(super) new: Span,
}

/// Every change from one schema to another.
pub(super) fn changes(old: &Node<'_>, new: &Node<'_>) -> Vec<Change> {
    walked(old, new, false)
}

/// Every change from one schema to another; in logic, a property that is not named may be anything.
fn walked(old: &Node<'_>, new: &Node<'_>, in_logic: bool) -> Vec<Change> {
    let mut walk = Walk { path: Vec::new(), changes: Vec::new(), in_logic };
    if !same(old, new) {
        walk.schema(Pair { old, old_key: old.span, new, new_key: new.span }, false);
    }
    walk.changes
}

/// A schema before and after, and the keys they stand under.
#[derive(Clone, Copy)]
struct Pair<'b, 'a> {
    old: &'b Node<'a>,
    old_key: Span,
    new: &'b Node<'a>,
    new_key: Span,
}

struct Walk<'b> {
    path: Vec<Segment<'b>>,
    changes: Vec<Change>,
    in_logic: bool,
}

impl<'b> Walk<'b> {
    fn push(
        &mut self,
        pair: Pair<'_, '_>,
        code: &'static Code,
        name: &str,
        check: &'static str,
        message: String,
    ) {
        self.changes.push(Change {
            code,
            level: code.level,
            message,
            check,
            property: v1_path(&self.path),
            old: span_of(pair.old, pair.old_key, name),
            new: span_of(pair.new, pair.new_key, name),
        });
    }

    fn here(&self) -> String {
        field_path(&self.path)
    }

    /// `required` says whether the object above needs the field.
    fn schema(&mut self, pair: Pair<'b, '_>, required: bool) {
        if self.types(pair) {
            return;
        }
        self.defaults(pair, required);
        self.values(pair);
        self.bounds(pair);
        self.texts(pair);
        self.lists(pair);
        self.rules(pair);
        self.combinations(pair);
        self.required(pair);
        self.properties(pair);
        self.filled_in(pair);
        self.maps(pair);
        if let (Some(old), Some(new)) = (field(pair.old, "items"), field(pair.new, "items"))
            && let (Value::Mapping(_), Value::Mapping(_)) = (&old.value, &new.value)
        {
            let (old_key, new_key) = (key_of(pair.old, "items"), key_of(pair.new, "items"));
            self.below(Segment::Items, Pair { old, old_key, new, new_key }, false);
        }
    }

    fn below(&mut self, segment: Segment<'b>, pair: Pair<'b, '_>, required: bool) {
        self.path.push(segment);
        self.schema(pair, required);
        self.path.pop();
    }

    /// Whether the type is another one, which makes any other comparison idle.
    fn types(&mut self, pair: Pair<'_, '_>) -> bool {
        let (from, to) = (type_of(pair.old), type_of(pair.new));
        let path = self.here();
        if is_true(pair.old, EMBEDDED) != is_true(pair.new, EMBEDDED) {
            let keeps = |name: &&str| property(pair.new, name).is_some() || keeps_unknown(pair.new);
            let (code, rest) = match is_true(pair.new, EMBEDDED) {
                true => (&codes::SCHEMA_TYPE_CHANGED, "now has to be a Kubernetes object"),
                false if ROOT_FIELDS.iter().all(keeps) => {
                    (&codes::SCHEMA_WIDENED, "no longer has to be a Kubernetes object")
                }
                false => (
                    &codes::SCHEMA_FIELD_REMOVED,
                    "is no longer a Kubernetes object, and loses its `apiVersion`, `kind` and `metadata`",
                ),
            };
            self.push(pair, code, EMBEDDED, "unhandled", format!("`{path}` {rest}"));
        }
        if from == to {
            return false;
        }
        let widened =
            matches!((from, to), ("integer", "number" | INT_OR_STRING) | ("string", INT_OR_STRING) | (_, ""));
        let check = if text(pair.old, "type") == text(pair.new, "type") { "unhandled" } else { "type" };
        let (name, code) = match widened {
            true => ("type", &codes::SCHEMA_WIDENED),
            false => ("type", &codes::SCHEMA_TYPE_CHANGED),
        };
        let message = match (from, to) {
            ("", to) => format!("`{path}` was of any type, and is now of type `{to}`"),
            (from, "") => format!("`{path}` was of type `{from}`, and is now of any type"),
            (from, to) => format!("`{path}` was of type `{from}`, and is now of type `{to}`"),
        };
        self.push(pair, code, name, check, message);
        true
    }

    fn defaults(&mut self, pair: Pair<'_, '_>, required: bool) {
        let path = self.here();
        let (from, to) = (field(pair.old, "default"), field(pair.new, "default"));
        let (message, level) = match (from.map(Node::to_json), to.map(Node::to_json)) {
            (None, Some(to)) => (format!("`{path}` now has the default `{to}`"), Level::Warning),
            (Some(from), None) if required => {
                (format!("`{path}` is required, and its default `{from}` is removed"), Level::Error)
            }
            (Some(from), None) => (format!("the default `{from}` of `{path}` is removed"), Level::Warning),
            (Some(from), Some(to)) if from != to => {
                (format!("the default of `{path}` was `{from}`, and is now `{to}`"), Level::Warning)
            }
            _ => return,
        };
        self.push(pair, &codes::SCHEMA_DEFAULT_CHANGED, "default", "default", message);
        if let Some(change) = self.changes.last_mut() {
            change.level = level;
        }
    }

    fn values(&mut self, pair: Pair<'_, '_>) {
        let path = self.here();
        let values = |node: &Node<'_>| {
            let values: BTreeSet<_> =
                list(node, "enum").iter().map(|value| value.to_json().to_string()).collect();
            // `[true, false]` of a boolean is no limit.
            let is_all = type_of(node) == "boolean" && values.contains("true") && values.contains("false");
            if is_all { BTreeSet::new() } else { values }
        };
        let (from, to) = (values(pair.old), values(pair.new));
        let show = |values: Vec<&String>| {
            let shown = values.iter().take(MOST_VALUES).map(|value| format!("`{value}`"));
            let more = values.len().checked_sub(MOST_VALUES).filter(|more| *more > 0);
            let more = more.map(|more| format!(" and {more} more values")).unwrap_or_default();
            shown.collect::<Vec<_>>().join(", ") + &more
        };
        let removed: Vec<_> = from.difference(&to).collect();
        let added: Vec<_> = to.difference(&from).collect();
        let (code, message) = match (from.is_empty(), to.is_empty()) {
            (true, true) => return self.nullable(pair),
            (true, false) => {
                (&codes::SCHEMA_ENUM_NARROWED, format!("`{path}` now only accepts {}", show(added)))
            }
            (false, true) => (&codes::SCHEMA_WIDENED, format!("`{path}` now accepts any value")),
            _ if !removed.is_empty() => {
                (&codes::SCHEMA_ENUM_NARROWED, format!("`{path}` no longer accepts {}", show(removed)))
            }
            _ if !added.is_empty() => {
                (&codes::SCHEMA_WIDENED, format!("`{path}` now also accepts {}", show(added)))
            }
            _ => return self.nullable(pair),
        };
        self.push(pair, code, "enum", "enum", message);
        self.nullable(pair);
    }

    fn nullable(&mut self, pair: Pair<'_, '_>) {
        let path = self.here();
        match (is_true(pair.old, "nullable"), is_true(pair.new, "nullable")) {
            (true, false) => {
                let message = format!("`{path}` can no longer be `null`");
                self.push(pair, &codes::SCHEMA_NULLABLE_REMOVED, "nullable", "nullable", message);
            }
            (false, true) => {
                let message = format!("`{path}` can now be `null`");
                self.push(pair, &codes::SCHEMA_WIDENED, "nullable", "nullable", message);
            }
            _ => {}
        }
    }

    fn bounds(&mut self, pair: Pair<'_, '_>) {
        let path = self.here();
        for (name, exclusive, is_maximum) in BOUNDS {
            let (from, to) = (Bound::of(pair.old, name), Bound::of(pair.new, name));
            let narrowed = match (from, to) {
                (None, None) => continue,
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (Some(from), Some(to)) if from == to => continue,
                (Some(from), Some(to)) if from.value == to.value => to.is_exclusive,
                (Some(from), Some(to)) => (to.value < from.value) == is_maximum,
            };
            let code = if narrowed { &codes::SCHEMA_BOUND_NARROWED } else { &codes::SCHEMA_WIDENED };
            // The number stays, and whether it is included changes.
            let same_number = number(pair.old, name) == number(pair.new, name);
            let message = match (from, to) {
                (Some(_), Some(_)) if same_number && narrowed => {
                    format!("`{path}` can no longer be equal to its bound")
                }
                (Some(_), Some(_)) if same_number => format!("`{path}` can now be equal to its bound"),
                (Some(from), Some(to)) => {
                    format!("the {name} of `{path}` was {}, and is now {}", from.value, to.value)
                }
                (None, Some(to)) => format!("`{path}` now has the {name} {}", to.value),
                (from, None) => {
                    format!("`{path}` no longer has the {name} {}", from.map_or(0.0, |from| from.value))
                }
            };
            let (field, check) = if same_number { (exclusive, "unhandled") } else { (name, name) };
            self.push(pair, code, field, check, message);
        }
        let multiple = |node: &Node<'_>| {
            let of = number(node, "multipleOf").filter(|_| applies("multipleOf", node));
            // Every integer is a multiple of 1.
            of.filter(|of| type_of(node) != "integer" || *of != 1.0)
        };
        let (from, to) = (multiple(pair.old), multiple(pair.new));
        if from != to {
            let looser = to.is_none_or(|to| from.is_some_and(|from| (from / to).fract() == 0.0));
            let code = if looser { &codes::SCHEMA_WIDENED } else { &codes::SCHEMA_BOUND_NARROWED };
            let message = match (from, to) {
                (_, Some(to)) => format!("`{path}` now has to be a multiple of {to}"),
                (from, None) => {
                    format!("`{path}` no longer has to be a multiple of {}", from.unwrap_or_default())
                }
            };
            self.push(pair, code, "multipleOf", "unhandled", message);
        }
        match (is_true(pair.old, "uniqueItems"), is_true(pair.new, "uniqueItems")) {
            (false, true) => {
                let message = format!("the items of `{path}` now have to be unique");
                self.push(pair, &codes::SCHEMA_BOUND_NARROWED, "uniqueItems", "unhandled", message);
            }
            (true, false) => {
                let message = format!("the items of `{path}` no longer have to be unique");
                self.push(pair, &codes::SCHEMA_WIDENED, "uniqueItems", "unhandled", message);
            }
            _ => {}
        }
    }

    fn texts(&mut self, pair: Pair<'_, '_>) {
        let path = self.here();
        let pattern = |node| if applies("pattern", node) { text(node, "pattern") } else { "" };
        let (from, to) = (pattern(pair.old), pattern(pair.new));
        if from != to {
            let (code, message) = match (from, to) {
                (_, "") => (&codes::SCHEMA_WIDENED, format!("`{path}` no longer has to match `{from}`")),
                ("", _) => (&codes::SCHEMA_PATTERN_NARROWED, format!("`{path}` now has to match `{to}`")),
                _ => (
                    &codes::SCHEMA_PATTERN_NARROWED,
                    format!("`{path}` had to match `{from}`, and now `{to}`"),
                ),
            };
            self.push(pair, code, "pattern", "pattern", message);
        }
        // Of numbers, and of formats that clusters do not know, they check nothing.
        let checked = |node| Some(text(node, "format")).filter(|format| is_checked(format)).unwrap_or("");
        let (from, to) = (checked(pair.old), checked(pair.new));
        if from.replace('-', "") != to.replace('-', "") {
            let (code, message) = match (from, to) {
                (_, "") => (&codes::SCHEMA_WIDENED, format!("`{path}` no longer has the format `{from}`")),
                ("", _) => (&codes::SCHEMA_FORMAT_NARROWED, format!("`{path}` now has the format `{to}`")),
                _ => (
                    &codes::SCHEMA_FORMAT_NARROWED,
                    format!("`{path}` had the format `{from}`, and now `{to}`"),
                ),
            };
            self.push(pair, code, "format", "unhandled", message);
        }
    }

    fn lists(&mut self, pair: Pair<'_, '_>) {
        let path = self.here();
        let code = &codes::SCHEMA_LIST_TYPE_CHANGED;
        for (name, default, of) in [(LIST_TYPE, "atomic", "list"), (MAP_TYPE, "granular", "map")] {
            let of_type = |node| match text(node, name) {
                "" => default.to_owned(),
                other => other.to_owned(),
            };
            let (from, to) = (of_type(pair.old), of_type(pair.new));
            if from != to {
                let message = format!("the {of} `{path}` was of type `{from}`, and is now of type `{to}`");
                self.push(pair, code, name, "unhandled", message);
                // Nothing is refused then that was taken before.
                if to == default
                    && let Some(change) = self.changes.last_mut()
                {
                    change.level = Level::Warning;
                }
                return;
            }
        }
        let keys = |node| texts(node, MAP_KEYS).into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
        let (from, to) = (keys(pair.old), keys(pair.new));
        if from != to {
            let show =
                |keys: &BTreeSet<String>| keys.iter().map(String::as_str).collect::<Vec<_>>().join("`, `");
            let message =
                format!("the keys of the list `{path}` were `{}`, and are now `{}`", show(&from), show(&to));
            self.push(pair, code, MAP_KEYS, "unhandled", message);
        }
    }

    fn rules(&mut self, pair: Pair<'_, '_>) {
        let path = self.here();
        let of = |node| {
            let rules = list(node, RULES).iter().map(|rule| text(rule, "rule").trim());
            rules.map(|rule| (without_spaces(rule), rule.to_owned())).collect::<BTreeMap<_, _>>()
        };
        let (from, to) = (of(pair.old), of(pair.new));
        for (_, rule) in to.iter().filter(|(key, _)| !from.contains_key(*key)) {
            // No object of yesterday breaks it. OLM v1 refuses it all the same, and is told so elsewhere.
            if is_about_new_fields(rule, Schema(pair.old), Schema(pair.new)) {
                continue;
            }
            let message = format!("`{path}` now has to keep the rule `{rule}`");
            self.push(pair, &codes::SCHEMA_RULE_NARROWED, RULES, "unhandled", message);
        }
        for (_, rule) in from.iter().filter(|(key, _)| !to.contains_key(*key)) {
            let message = format!("`{path}` no longer has to keep the rule `{rule}`");
            self.push(pair, &codes::SCHEMA_WIDENED, RULES, "unhandled", message);
        }
    }

    fn combinations(&mut self, pair: Pair<'_, '_>) {
        let path = self.here();
        for name in ["allOf", "anyOf", "oneOf"] {
            let (olds, news) = (branches(pair.old, name), branches(pair.new, name));
            let of = |branches: &[&Node<'_>]| {
                branches.iter().map(|one| wordless(one).to_string()).collect::<BTreeSet<_>>()
            };
            let (from, to) = (of(&olds), of(&news));
            // A branch of `oneOf` that stands twice is never the only one that fits.
            if from == to && (name != "oneOf" || olds.len() == news.len()) {
                continue;
            }
            let added = |branch: &&&Node<'_>| !from.contains(&wordless(branch).to_string());
            let removed = from.difference(&to).count();
            // Each branch admits all that its predecessor does.
            let pairwise =
                olds.len() == news.len() && olds.iter().zip(&news).all(|(old, new)| admits_all(old, new));
            let looser = match name {
                "allOf" => pairwise || news.iter().filter(added).all(|branch| is_repeated(branch, pair.old)),
                _ if to.is_empty() => true,
                "anyOf" => pairwise || (removed == 0 && !from.is_empty()),
                _ => false,
            };
            let (code, word) = match looser {
                true => (&codes::SCHEMA_WIDENED, "more"),
                false => (&codes::SCHEMA_COMBINATION_NARROWED, "other values"),
            };
            let check = if name == "oneOf" { "oneOf" } else { "unhandled" };
            self.push(pair, code, name, check, format!("`{name}` of `{path}` admits {word} than before"));
        }
        let (code, message) = match (field(pair.old, "not"), field(pair.new, "not")) {
            (Some(_), None) => (&codes::SCHEMA_WIDENED, format!("`not` of `{path}` is removed")),
            (Some(from), Some(to)) if wordless(from) == wordless(to) => return,
            // What is excluded now was excluded before.
            (Some(from), Some(to)) if admits_all(to, from) => {
                (&codes::SCHEMA_WIDENED, format!("`not` of `{path}` excludes less than before"))
            }
            (_, Some(_)) => (
                &codes::SCHEMA_COMBINATION_NARROWED,
                format!("`not` of `{path}` excludes other values than before"),
            ),
            (None, None) => return,
        };
        self.push(pair, code, "not", "unhandled", message);
    }

    fn required(&mut self, pair: Pair<'_, '_>) {
        let path = self.here();
        let of = |node| texts(node, "required").into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
        let (from, to) = (of(pair.old), of(pair.new));
        let within = |name: &str| if path == "." { name.to_owned() } else { format!("{path}.{name}") };
        let is_root = self.path.is_empty();
        for name in to.difference(&from).filter(|name| !(is_root && ROOT_FIELDS.contains(&name.as_str()))) {
            // Where it is missing, it gets its default.
            if property(pair.new, name).is_some_and(|new| field(new, "default").is_some()) {
                continue;
            }
            let message = format!("`{}` is now required", within(name));
            self.push(pair, &codes::SCHEMA_REQUIRED_ADDED, "required", "required", message);
        }
        for name in from.difference(&to) {
            if property(pair.new, name).is_some() {
                let message = format!("`{}` is no longer required", within(name));
                self.push(pair, &codes::SCHEMA_WIDENED, "required", "required", message);
            }
        }
    }

    fn properties(&mut self, pair: Pair<'b, '_>) {
        let required = texts(pair.new, "required");
        let keeps = keeps_unknown(pair.new);
        for entry in entries(pair.old, "properties") {
            let segment = Segment::Property(&entry.key);
            let next = field(pair.new, "properties").and_then(|map| map.as_mapping()?.entry(&entry.key));
            if let Some(next) = next {
                let pair = Pair {
                    old: &entry.value,
                    old_key: entry.key_span,
                    new: &next.value,
                    new_key: next.key_span,
                };
                self.below(segment, pair, required.contains(&entry.key.as_ref()));
                continue;
            }
            // Kubernetes adds these to every schema, and logic does not say which fields there are.
            if self.path.is_empty() && ROOT_FIELDS.contains(&entry.key.as_ref()) || self.in_logic {
                continue;
            }
            // It is one of the keys of a map now.
            if let Additional::Schema(new) = Additional::of(pair.new) {
                let new_key = key_of(pair.new, "additionalProperties");
                let pair = Pair { old: &entry.value, old_key: entry.key_span, new, new_key };
                self.below(segment, pair, false);
                continue;
            }
            self.path.push(segment);
            let (level, message) = match keeps {
                true => (
                    Level::Warning,
                    format!("`{}` is removed from the schema, and no longer checked", self.here()),
                ),
                false => (Level::Error, format!("`{}` is removed", self.here())),
            };
            self.changes.push(Change {
                code: &codes::SCHEMA_FIELD_REMOVED,
                level,
                message,
                check: "existingFieldRemoval",
                property: v1_path(&self.path),
                old: entry.key_span,
                new: span_of(pair.new, pair.new_key, "properties"),
            });
            self.path.pop();
        }
        for entry in entries(pair.new, "properties") {
            if property(pair.old, &entry.key).is_some() {
                continue;
            }
            let segment = Segment::Property(&entry.key);
            // Objects may have had the field already.
            let before = match Additional::of(pair.old) {
                Additional::Schema(schema) => Some(schema),
                _ if self.in_logic => anything(),
                _ => implied(&self.path, &entry.key),
            };
            if let Some(old) = before {
                let pair = Pair { old, old_key: pair.old_key, new: &entry.value, new_key: entry.key_span };
                self.below(segment, pair, required.contains(&entry.key.as_ref()));
                continue;
            }
            let kept = is_true(pair.old, PRESERVE) || matches!(Additional::of(pair.old), Additional::Any);
            self.path.push(segment);
            let (property, here) = (v1_path(&self.path), self.here());
            self.path.pop();
            let (code, message) = match type_of(&entry.value) {
                of if kept && !of.is_empty() => (
                    &codes::SCHEMA_TYPE_CHANGED,
                    format!("`{here}` accepted any value, and is now of type `{of}`"),
                ),
                _ => (&codes::SCHEMA_FIELD_ADDED, format!("`{here}` is new")),
            };
            self.changes.push(Change {
                code,
                level: code.level,
                message,
                check: "",
                property,
                old: span_of(pair.old, pair.old_key, "properties"),
                new: entry.key_span,
            });
        }
    }

    /// A default that is filled in counts among the keys of its object.
    fn filled_in(&mut self, pair: Pair<'b, '_>) {
        let name = "maxProperties";
        let (Some(from), Some(to)) = (Bound::of(pair.old, name), Bound::of(pair.new, name)) else { return };
        let is_filled_in = |entry: &&Entry<'_>| {
            property(pair.old, &entry.key).is_none_or(|old| field(old, "default").is_none())
                && field(&entry.value, "default").is_some()
        };
        let filled: Vec<_> = entries(pair.new, "properties").filter(is_filled_in).collect();
        if let [first, ..] = filled[..]
            && to.value < from.value + filled.len() as f64
        {
            let path = self.here();
            let message = format!(
                "`{path}` has {} fields at most, and one of them is now filled in: the default of `{}`",
                to.value, first.key
            );
            self.push(pair, &codes::SCHEMA_BOUND_NARROWED, "properties", "", message);
        }
    }

    fn maps(&mut self, pair: Pair<'b, '_>) {
        let path = self.here();
        match (is_true(pair.old, PRESERVE), is_true(pair.new, PRESERVE)) {
            (true, false) => {
                let message = format!("`{path}` no longer preserves unknown fields");
                self.push(pair, &codes::SCHEMA_UNKNOWN_FIELDS_PRUNED, PRESERVE, "unhandled", message);
            }
            (false, true) => {
                let message = format!("`{path}` now preserves unknown fields");
                self.push(pair, &codes::SCHEMA_WIDENED, PRESERVE, "unhandled", message);
            }
            _ => {}
        }
        let name = "additionalProperties";
        let (mut from, mut to) = (Additional::of(pair.old), Additional::of(pair.new));
        // What is kept as unknown is as good as any key.
        if matches!(to, Additional::None) && is_true(pair.new, PRESERVE) {
            to = Additional::Any;
        } else if matches!(from, Additional::None) && is_true(pair.old, PRESERVE) {
            from = Additional::Any;
        }
        let (code, message) = match (from, to) {
            (Additional::Any, Additional::None) if is_true(pair.old, PRESERVE) => return,
            (Additional::None, Additional::Any) if is_true(pair.new, PRESERVE) => return,
            (Additional::Schema(old), Additional::Schema(new)) => {
                let (old_key, new_key) = (key_of(pair.old, name), key_of(pair.new, name));
                return self.below(Segment::Word(name), Pair { old, old_key, new, new_key }, false);
            }
            (Additional::None, Additional::None) | (Additional::Any, Additional::Any) => return,
            (_, Additional::None) => (
                &codes::SCHEMA_MAP_NARROWED,
                format!("`{path}` no longer accepts keys that are not in the schema"),
            ),
            (Additional::Any, _) => {
                (&codes::SCHEMA_MAP_NARROWED, format!("the values of `{path}` now have to fit a schema"))
            }
            (_, Additional::Any) => {
                (&codes::SCHEMA_WIDENED, format!("the values of `{path}` can now be anything"))
            }
            (Additional::None, _) => (&codes::SCHEMA_WIDENED, format!("`{path}` now accepts any key")),
        };
        self.push(pair, code, name, "unhandled", message);
    }
}

/// Fields of every object, which Kubernetes adds to every schema.
const ROOT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// What every object has, whether its schema says so or not.
fn implied(path: &[Segment<'_>], name: &str) -> Option<&'static Node<'static>> {
    static TEXT: LazyLock<Option<Document<'static>>> =
        LazyLock::new(|| first_document("{type: string}").ok());
    static MAP: LazyLock<Option<Document<'static>>> = LazyLock::new(|| first_document("{type: object}").ok());
    let document = match (path, name) {
        ([], "apiVersion" | "kind") | ([Segment::Property("metadata")], "name" | "generateName") => &TEXT,
        ([], "metadata") => &MAP,
        _ => return None,
    };
    document.as_ref().map(|document| &document.root)
}

/// The schema that says nothing.
fn anything() -> Option<&'static Node<'static>> {
    static ANYTHING: LazyLock<Option<Document<'static>>> = LazyLock::new(|| first_document("{}").ok());
    ANYTHING.as_ref().map(|document| &document.root)
}

/// Whether fields that a schema does not name are kept.
fn keeps_unknown(schema: &Node<'_>) -> bool {
    is_true(schema, PRESERVE) || field(schema, "additionalProperties").is_some()
}

/// A bound of a schema, as far as it limits anything.
#[derive(Clone, Copy, PartialEq)]
struct Bound {
    value: f64,
    is_exclusive: bool,
}

impl Bound {
    fn of(schema: &Node<'_>, name: &str) -> Option<Self> {
        let value = number(schema, name).filter(|_| applies(name, schema))?;
        let exclusive = BOUNDS.iter().find(|bound| bound.0 == name).map_or("", |bound| bound.1);
        let is_exclusive = !exclusive.is_empty() && is_true(schema, exclusive);
        // Of integers, the next one is the bound.
        if is_exclusive && type_of(schema) == "integer" {
            let value = if name == "minimum" { value + 1.0 } else { value - 1.0 };
            return Some(Self { value, is_exclusive: false });
        }
        // No length and no count is negative.
        let limits = matches!(name, "maximum" | "minimum") || name.starts_with("max") || value > 0.0;
        limits.then_some(Self { value, is_exclusive })
    }
}

/// Whether a keyword limits values of the schema's type.
fn applies(name: &str, schema: &Node<'_>) -> bool {
    let of = type_of(schema);
    let types: &[&str] = match name {
        "maximum" | "minimum" | "multipleOf" => &["integer", "number"],
        "maxLength" | "minLength" | "pattern" => &["string"],
        "maxItems" | "minItems" => &["array"],
        _ => &["object"],
    };
    let any = of.is_empty()
        || (of == INT_OR_STRING
            && !matches!(name, "maxItems" | "minItems" | "maxProperties" | "minProperties"));
    any || types.contains(&of)
}

/// Branches of a combination that limit anything: `anyOf` of an integer or string may list these two types.
fn branches<'b, 'a>(schema: &'b Node<'a>, name: &str) -> Vec<&'b Node<'a>> {
    let branches: Vec<_> = list(schema, name).iter().collect();
    let types: BTreeSet<_> = branches.iter().map(|branch| wordless(branch).to_string()).collect();
    let is_spelled_out = name == "anyOf"
        && is_true(schema, "x-kubernetes-int-or-string")
        && types.iter().map(String::as_str).eq([r#"{"type":"integer"}"#, r#"{"type":"string"}"#]);
    if is_spelled_out { Vec::new() } else { branches }
}

/// Whether a branch of logic admits every value that another one does, as far as that is known.
fn admits_all(old: &Node<'_>, new: &Node<'_>) -> bool {
    walked(old, new, true).iter().all(|change| change.level == Level::Info)
}

/// Whether a branch of `allOf` only repeats what the schema around it says.
fn is_repeated(branch: &Node<'_>, schema: &Node<'_>) -> bool {
    branch.as_mapping().is_some_and(|map| {
        map.iter().all(|entry| field(schema, &entry.key).is_some_and(|value| same_json(value, &entry.value)))
    })
}

/// A CEL rule without the spaces that mean nothing.
fn without_spaces(rule: &str) -> String {
    let mut text = String::with_capacity(rule.len());
    let (mut quote, mut escaped) = (None, false);
    let mut rest = rule.chars().peekable();
    while let Some(c) = rest.next() {
        if quote.is_none() && c.is_whitespace() {
            while rest.next_if(|next| next.is_whitespace()).is_some() {}
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            if text.ends_with(is_word) && rest.peek().copied().is_some_and(is_word) {
                text.push(' ');
            }
            continue;
        }
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            _ => {}
        }
        text.push(c);
    }
    text
}

const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "integer or string";
const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const RULES: &str = "x-kubernetes-validations";

/// Bounds: the name, the word that makes it exclusive, whether it is an upper one.
const BOUNDS: [(&str, &str, bool); 8] = [
    ("maximum", "exclusiveMaximum", true),
    ("minimum", "exclusiveMinimum", false),
    ("maxItems", "", true),
    ("minItems", "", false),
    ("maxLength", "", true),
    ("minLength", "", false),
    ("maxProperties", "", true),
    ("minProperties", "", false),
];

fn type_of<'b>(schema: &'b Node<'_>) -> &'b str {
    if is_true(schema, "x-kubernetes-int-or-string") { INT_OR_STRING } else { text(schema, "type") }
}

fn property<'b, 'a>(schema: &'b Node<'a>, name: &str) -> Option<&'b Node<'a>> {
    field(schema, "properties")?.get(name)
}

fn key_of(schema: &Node<'_>, name: &str) -> Span {
    schema.as_mapping().and_then(|map| map.entry(name)).map_or(schema.span, |entry| entry.key_span)
}

/// What an object may have besides its properties.
enum Additional<'b, 'a> {
    None,
    Any,
    Schema(&'b Node<'a>),
}

impl<'b, 'a> Additional<'b, 'a> {
    fn of(schema: &'b Node<'a>) -> Self {
        match field(schema, "additionalProperties") {
            Some(node) => match &node.value {
                Value::Bool(true) => Self::Any,
                Value::Mapping(map) if map.is_empty() => Self::Any,
                Value::Mapping(_) => Self::Schema(node),
                _ => Self::None,
            },
            None => Self::None,
        }
    }
}
