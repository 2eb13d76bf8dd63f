//! Whether a value fits a type of Go: what Kubernetes refuses to read, found without reading it.
//!
//! Types are tables ([`Type`], [`Struct`]), walked together with the value. The rules are those of encoding/json behind
//! sigs.k8s.io/yaml: fields match without regard to case, null fits everything, and where text is wanted numbers and
//! booleans are taken for text. Below a type that reads its own JSON the last of these ends, since Go no longer knows
//! there what is wanted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{Node, Step, Value};
use crate::go;
use crate::source::Span;

/// A type of Go.
#[derive(Debug)]
pub enum Type {
    /// Anything at all.
    Any,
    /// `string`
    Text,
    /// `bool`
    Bool,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `float64`
    Float,
    /// `metav1.Time`
    Time,
    /// `[]byte`
    Bytes,
    /// `[]T`
    List(&'static Self),
    /// `map[string]T`
    Map(&'static Self),
    /// A struct.
    Struct(&'static Struct),
    /// A struct or a boolean, which read their own JSON.
    StructOrBool(&'static Struct),
    /// A struct or a list of them, which read their own JSON; anything else is passed over.
    StructOrList(&'static Struct),
    /// A struct or a list of texts, which read their own JSON; anything else is passed over.
    StructOrTexts(&'static Struct),
}

/// A struct of Go.
#[derive(Debug)]
pub struct Struct {
    /// Its fields by the names they have in JSON, those met most often first.
    pub fields: &'static [Field],
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// The name in JSON.
    pub name: &'static str,
    /// The type.
    pub of: Type,
    /// Whether it comes from an embedded struct: sigs.k8s.io/yaml does not turn numbers into text there.
    pub promoted: bool,
    /// Whether the API server wants it in every such struct. [`fit`] does not ask for it.
    pub required: bool,
}

impl Field {
    /// A field of the struct itself.
    pub const fn new(name: &'static str, of: Type) -> Self {
        Self { name, of, promoted: false, required: false }
    }

    /// A field of an embedded struct.
    pub const fn promoted(name: &'static str, of: Type) -> Self {
        Self { name, of, promoted: true, required: false }
    }

    /// A field that every such struct must have.
    pub const fn required(name: &'static str, of: Type) -> Self {
        Self { name, of, promoted: false, required: true }
    }
}

impl Struct {
    fn field(&self, key: &str) -> Option<&'static Field> {
        go::field(key, self.fields.iter().map(|field| field.name)).map(|at| &self.fields[at])
    }
}

/// What a walk over a value has found.
#[derive(Debug, Default)]
pub struct Fit {
    /// Values that do not fit.
    pub misfits: Vec<Misfit>,
    /// Keys that no field takes; Go ignores them.
    pub unknown: Vec<Unknown>,
    /// Numbers and booleans that are taken for text.
    pub as_text: Vec<Span>,
}

/// A value that does not fit.
#[derive(Debug)]
pub struct Misfit {
    /// What was expected and what was found.
    pub message: String,
    /// The path to it, such as `spec.versions[0].name`.
    pub path: String,
    /// Where it stands.
    pub span: Span,
}

/// A key that no field takes.
#[derive(Debug)]
pub struct Unknown {
    /// The key.
    pub key: String,
    /// The path to the map it stands in.
    pub path: String,
    /// Where it stands.
    pub span: Span,
    /// The struct that has no such field.
    pub within: &'static Struct,
}

/// Holds a value against a type.
///
/// ```
/// use olmkit_bundle::yaml::{first_document, fit::{Field, Struct, Type, fit}};
/// static SPEC: Struct = Struct { fields: &[Field::new("replicas", Type::Int32)] };
/// let document = first_document("{Replicas: many, repliacs: 3}").unwrap();
/// static OF: Type = Type::Struct(&SPEC);
/// let found = fit(&document.root, &OF);
/// assert_eq!(found.misfits[0].message, "expected an integer, found a string");
/// assert_eq!(found.unknown[0].key, "repliacs");
/// ```
pub fn fit<'a>(node: &Node<'a>, of: &'static Type) -> Fit {
    let mut walk = Walk { path: Vec::new(), raw: false, found: Fit::default() };
    walk.value(node, of);
    walk.found
}

struct Walk<'n> {
    path: Vec<Step<'n>>,
    /// Whether numbers are no longer taken for text.
    raw: bool,
    found: Fit,
}

impl<'n> Walk<'n> {
    fn value(&mut self, node: &'n Node<'_>, of: &'static Type) {
        let fits = |fits: bool, expected| if fits { None } else { Some(expected) };
        let misfit = match (of, &node.value) {
            (_, Value::Null) | (Type::Any, _) => None,
            (Type::Text, Value::String(_)) => None,
            (Type::Text, Value::Sequence(_) | Value::Mapping(_)) => Some("a string"),
            (Type::Text, _) => {
                self.found.as_text.push(node.span);
                fits(!self.raw, "a string")
            }
            (Type::Bool, value) => fits(matches!(value, Value::Bool(_)), "true or false"),
            (Type::Int32, value) => {
                fits(integer(value).is_some_and(|value| i32::try_from(value).is_ok()), "an integer")
            }
            (Type::Int64, value) => fits(integer(value).is_some(), "an integer"),
            (Type::Float, value) => {
                fits(matches!(value, Value::Int(_) | Value::UInt(_) | Value::Float(_)), "a number")
            }
            (Type::Time, value) => fits(is_time(value), "a time such as `2024-01-31T12:00:00Z`"),
            (Type::Bytes, value) => {
                fits(matches!(value, Value::String(text) if is_base64(text)), "bytes in base64")
            }
            (Type::List(of), Value::Sequence(items)) => return self.items(items, of),
            (Type::List(_), _) => Some("a list"),
            (Type::Map(of), Value::Mapping(map)) => {
                for entry in map {
                    self.within(Step::Key(&entry.key), &entry.value, of);
                }
                None
            }
            (Type::Struct(of), Value::Mapping(_)) => return self.fields(node, of),
            (Type::Map(_) | Type::Struct(_), _) => Some("a map"),
            (
                Type::StructOrBool(of) | Type::StructOrList(of) | Type::StructOrTexts(of),
                Value::Mapping(_),
            ) => {
                let raw = std::mem::replace(&mut self.raw, true);
                self.fields(node, of);
                self.raw = raw;
                None
            }
            (Type::StructOrBool(_), value) => fits(matches!(value, Value::Bool(_)), "true, false or a map"),
            (Type::StructOrList(of), Value::Sequence(items)) => {
                let raw = std::mem::replace(&mut self.raw, true);
                for (index, item) in items.iter().enumerate() {
                    self.path.push(Step::Index(index));
                    match item.value {
                        Value::Mapping(_) => self.fields(item, of),
                        Value::Null => {}
                        _ => self.misfit(item, "a map"),
                    }
                    self.path.pop();
                }
                self.raw = raw;
                None
            }
            (Type::StructOrTexts(_), Value::Sequence(items)) => {
                let raw = std::mem::replace(&mut self.raw, true);
                self.items(items, &Type::Text);
                self.raw = raw;
                None
            }
            (Type::StructOrList(_) | Type::StructOrTexts(_), _) => None,
        };
        if let Some(expected) = misfit {
            self.misfit(node, expected);
        }
    }

    fn items(&mut self, items: &'n [Node<'_>], of: &'static Type) {
        for (index, item) in items.iter().enumerate() {
            self.within(Step::Index(index), item, of);
        }
    }

    fn fields(&mut self, node: &'n Node<'_>, of: &'static Struct) {
        for entry in node.as_mapping().into_iter().flatten() {
            match of.field(&entry.key) {
                Some(field) if field.promoted => {
                    let raw = std::mem::replace(&mut self.raw, true);
                    self.within(Step::Key(&entry.key), &entry.value, &field.of);
                    self.raw = raw;
                }
                Some(field) => self.within(Step::Key(&entry.key), &entry.value, &field.of),
                None => self.found.unknown.push(Unknown {
                    key: entry.key.to_string(),
                    path: path(&self.path),
                    span: entry.key_span,
                    within: of,
                }),
            }
        }
    }

    fn within(&mut self, step: Step<'n>, node: &'n Node<'_>, of: &'static Type) {
        self.path.push(step);
        self.value(node, of);
        self.path.pop();
    }

    fn misfit(&mut self, node: &Node<'_>, expected: &str) {
        self.found.misfits.push(Misfit {
            message: format!("expected {expected}, found {}", node.value),
            path: path(&self.path),
            span: node.span,
        });
    }
}

/// A path as people write it: `spec.versions[0].name`.
pub fn path(steps: &[Step<'_>]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Index(index) => path += &format!("[{index}]"),
            Step::Key(key) if path.is_empty() => path += key,
            Step::Key(key) => {
                path.push('.');
                path += key;
            }
        }
    }
    path
}

fn integer(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(value) => Some(*value),
        Value::UInt(value) => i64::try_from(*value).ok(),
        // Go writes whole floats below 1e21 without a fraction, and reads them back as integers.
        Value::Float(value) if value.fract() == 0.0 && value.abs() < i64::MAX as f64 => Some(*value as i64),
        _ => None,
    }
}

fn is_time(value: &Value<'_>) -> bool {
    match value {
        Value::String(text) => text.parse::<k8s_openapi::jiff::Timestamp>().is_ok(),
        _ => false,
    }
}

/// Whether a text is base64 as Go's decoder reads it.
pub(crate) fn is_base64(text: &str) -> bool {
    if text.contains(['\n', '\r']) {
        // Go's decoder ignores line breaks.
        let text: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
        return BASE64.decode(text).is_ok();
    }
    BASE64.decode(text.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::first_document;

    static INNER: Struct = Struct {
        fields: &[
            Field::new("text", Type::Text),
            Field::new("either", Type::StructOrBool(&INNER)),
            Field::new("items", Type::StructOrList(&INNER)),
            Field::new("texts", Type::StructOrTexts(&INNER)),
            Field::new("map", Type::Map(&Type::Struct(&INNER))),
            Field::promoted("kind", Type::Text),
            Field::new("bytes", Type::Bytes),
            Field::new("time", Type::Time),
            Field::new("small", Type::Int32),
            Field::new("float", Type::Float),
            Field::new("list", Type::List(&Type::Text)),
        ],
    };

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let document = first_document(text).unwrap();
        static OF: Type = Type::Struct(&INNER);
        let found = fit(&document.root, &OF);
        let misfits = found.misfits.iter().map(|misfit| format!("{}: {}", misfit.path, misfit.message));
        let unknown = found.unknown.iter().map(|unknown| format!("{}.{}?", unknown.path, unknown.key));
        assert_eq!(misfits.chain(unknown).collect::<Vec<_>>().join("; "), expected, "{text}");
    }

    #[test]
    fn numbers_are_text_where_go_knows_that_text_is_wanted() {
        check("{text: 5, list: [1, yes]}", "");
        check("map: {a: {text: 5}}", "");
        check("kind: 5", "kind: expected a string, found a number");
        check("either: {text: 5}", "either.text: expected a string, found a number");
        check("items: {map: {a: {text: 5}}}", "items.map.a.text: expected a string, found a number");
        check("{items: {text: a}, text: 5}", "");
    }

    #[test]
    fn what_reads_its_own_json_takes_more_than_one_kind() {
        check("{either: true, items: [{text: a}], texts: [a]}", "");
        check("{either: [], items: 5, texts: 5}", "either: expected true, false or a map, found a list");
        check(
            "{items: [5], texts: [5]}",
            "items[0]: expected a map, found a number; texts[0]: expected a string, found a number",
        );
    }

    #[test]
    fn scalars() {
        check("{small: 3.0, float: 1, bytes: aGk=, time: '2024-01-31T12:00:00Z', text: ~}", "");
        check("small: 3000000000", "small: expected an integer, found a number");
        check("small: 1.5", "small: expected an integer, found a number");
        check("float: '1'", "float: expected a number, found a string");
        check("bytes: '?'", "bytes: expected bytes in base64, found a string");
        check("time: later", "time: expected a time such as `2024-01-31T12:00:00Z`, found a string");
        check("{Text: a, textt: a, map: {a: {b: c}}}", ".textt?; map.a.b?");
    }
}
