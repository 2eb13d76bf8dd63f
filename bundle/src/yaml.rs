//! The one door to YAML: text to a tree of values with their places, read as Kubernetes reads it.
//!
//! Kubernetes reads YAML with go-yaml v2 behind apimachinery: YAML 1.1 words (`yes` is true), octal `010`,
//! merge keys, the last of two equal keys, documents cut at lines that start with `---`. [`documents`] gives
//! exactly those values (measured on 22,594 real files, no difference), and every node knows where it stands.
//!
//! Start at [`Document`] and [`Node`]; [`decode`] turns a node into a typed value through serde, with Go's
//! rules for field names and strings; [`write`](mod@write) is the way back. What happens inside: `split` cuts documents,
//! `block` reads those in the usual style, `events` runs the parser over the others, `resolve` gives plain scalars their types, `build` makes the tree.

mod block;
mod build;
pub mod decode;
mod events;
pub mod fit;
mod repair;
mod resolve;
mod split;
pub mod write;

use std::borrow::Cow;
use std::fmt;

use crate::go;
use crate::source::Span;

pub use resolve::as_plain_text;

/// One YAML document.
#[derive(Debug, Clone)]
pub struct Document<'a> {
    /// The value of the document; null when there is none.
    pub root: Node<'a>,
    /// The bytes the document was cut from.
    pub span: Span,
    /// What the reading left unsaid: keys that were overwritten, syntax that only older parsers take.
    pub notes: Vec<Note>,
}

/// Something a strict reader would object to, found while reading.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// A duplicate key in a mapping; the last value is used.
    DuplicateKey {
        /// The key's text.
        key: String,
        /// The place that lost.
        first: Span,
        /// The place that counts.
        second: Span,
    },
    /// YAML 1.2 forbids this syntax; Kubernetes' parser takes it.
    OldSyntax {
        /// What a strict parser says.
        message: String,
        /// Where it says so.
        span: Span,
    },
}

/// A value and the bytes it was written in.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<'a> {
    /// The value as Kubernetes reads it.
    pub value: Value<'a>,
    /// Where it stands; for an alias, where its anchor stands.
    pub span: Span,
}

/// What a node holds; the same kinds as JSON, integers told apart from floats.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// Nothing, `~` or `null`.
    Null,
    /// `true`, and in YAML 1.1 also `yes`, `on`, `y`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number above `i64::MAX`.
    UInt(u64),
    /// A finite float.
    Float(f64),
    /// Text.
    String(Cow<'a, str>),
    /// A list.
    Sequence(Vec<Node<'a>>),
    /// A map.
    Mapping(Mapping<'a>),
}

/// The entries of a map, each key once, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mapping<'a> {
    entries: Vec<Entry<'a>>,
    /// The positions of the entries in the order of their keys, by [`go::by_field`]; empty for small maps, which are searched one by one.
    by_key: Box<[u32]>,
}

/// Maps with more keys than this get an index, so that many look-ups do not cost the square of the keys.
const LINEAR_KEYS: usize = 16;

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<'a> {
    /// The key as text, since JSON has no other.
    pub key: Cow<'a, str>,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub value: Node<'a>,
}

/// A document that is not YAML, or has no JSON form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// What was expected and what was found.
    pub message: String,
    /// Where.
    pub span: Span,
}

impl SyntaxError {
    fn new(message: impl Into<String>, span: Span) -> Self {
        Self { message: message.into(), span }
    }
}

/// The documents of a text, each read on its own: a broken one does not hide the next.
///
/// ```
/// let texts: Vec<_> = olmkit_bundle::yaml::documents("a: yes\n---\na: 010\n")
///     .map(|document| document.unwrap().root.to_json().to_string())
///     .collect();
/// assert_eq!(texts, [r#"{"a":true}"#, r#"{"a":8}"#]);
/// ```
///
/// # Errors
/// Each item is an error when its document cannot be read. After a line that starts with `---` and goes on
/// with anything but space or a comment nothing more is read, as in apimachinery.
pub fn documents(text: &str) -> impl Iterator<Item = Result<Document<'_>, SyntaxError>> {
    documents_at(text, split::split(text))
}

/// The documents of what stands behind byte `offset` of a text, for streams that begin otherwise; spans count from the
/// text's start.
///
/// # Errors
/// As [`documents`].
pub fn documents_from(text: &str, offset: usize) -> impl Iterator<Item = Result<Document<'_>, SyntaxError>> {
    let offset = text.floor_char_boundary(offset);
    let shift = move |span: Span| Span::new(span.start as usize + offset, span.end as usize + offset);
    let shifted = split::split(&text[offset..]).map(move |part| match part {
        Ok(span) => Ok(shift(span)),
        Err(error) => Err(SyntaxError { span: shift(error.span), ..error }),
    });
    documents_at(text, shifted)
}

/// The documents at these places of a text, whose values take together no more memory than a text of its length may.
pub(crate) fn documents_at<'a>(
    text: &'a str,
    spans: impl Iterator<Item = Result<Span, SyntaxError>>,
) -> impl Iterator<Item = Result<Document<'a>, SyntaxError>> {
    let mut room = build::Room::of(text.len());
    spans.map(move |span| {
        let span = span?;
        let (root, notes, left) = events::read(text, span, room)?;
        room = left;
        Ok(Document { root, span, notes })
    })
}

/// The first document of a text; null when there is none. This is all that OLM's bundle readers look at.
///
/// # Errors
/// When the first document cannot be read.
pub fn first_document(text: &str) -> Result<Document<'_>, SyntaxError> {
    documents(text).next().unwrap_or_else(|| {
        Ok(Document {
            root: Node { value: Value::Null, span: Span::at(0) },
            span: Span::at(0),
            notes: Vec::new(),
        })
    })
}

impl<'a> Node<'a> {
    /// The map, if this is one.
    pub fn as_mapping(&self) -> Option<&Mapping<'a>> {
        match &self.value {
            Value::Mapping(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// The list, if this is one.
    pub fn as_sequence(&self) -> Option<&[Node<'a>]> {
        match &self.value {
            Value::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The text, if this is text.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// Whether there is no value.
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The text a Kubernetes field of type string gets from this value: numbers and booleans become
    /// text (`1.10` becomes `1.1`), null becomes empty; lists and maps have none.
    pub fn to_text(&self) -> Option<Cow<'_, str>> {
        match &self.value {
            Value::Null => Some(Cow::Borrowed("")),
            Value::Bool(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
            Value::Int(value) => Some(Cow::Owned(value.to_string())),
            Value::UInt(value) => Some(Cow::Owned(value.to_string())),
            Value::Float(value) => Some(Cow::Owned(go::float_as_text(*value))),
            Value::String(text) => Some(Cow::Borrowed(text)),
            Value::Sequence(_) | Value::Mapping(_) => None,
        }
    }

    /// The value under `key`, when this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.as_mapping()?.get(key)
    }

    /// The value at a path of keys and list positions.
    ///
    /// ```
    /// let document = olmkit_bundle::yaml::first_document("spec: {icon: [{mediatype: image/png}]}").unwrap();
    /// let node = document.root.at(&["spec".into(), "icon".into(), 0.into(), "mediatype".into()]);
    /// assert_eq!(node.unwrap().as_str(), Some("image/png"));
    /// ```
    pub fn at(&self, path: &[Step<'_>]) -> Option<&Node<'a>> {
        path.iter().try_fold(self, |node, step| match step {
            Step::Key(key) => node.get(key),
            Step::Index(index) => node.as_sequence()?.get(*index),
        })
    }

    /// The value at a path, whose keys may be in another case in the document, as in what Go reads into a type.
    pub fn at_folded(&self, path: &[Step<'_>]) -> Option<&Node<'a>> {
        path.iter().try_fold(self, |node, step| match step {
            Step::Key(key) => node.as_mapping()?.get_folded(key),
            Step::Index(index) => node.as_sequence()?.get(*index),
        })
    }

    /// Where a path stands: a plain value's own span, a list's or map's key, and for what is absent the last key
    /// on the way that is there.
    pub fn locate(&self, path: &[Step<'_>]) -> Span {
        let mut node = self;
        let mut span = match &self.value {
            Value::Mapping(mapping) => mapping.entries.first().map_or(self.span, |entry| entry.key_span),
            _ => self.span,
        };
        for step in path {
            let next = match step {
                Step::Key(key) => node
                    .as_mapping()
                    .and_then(|mapping| mapping.entry_folded(key))
                    .map(|entry| (entry.key_span, &entry.value)),
                Step::Index(index) => {
                    node.as_sequence().and_then(|items| items.get(*index)).map(|item| (item.span, item))
                }
            };
            let Some((key, value)) = next else { return span };
            (span, node) = (key, value);
        }
        match node.value {
            Value::Mapping(_) | Value::Sequence(_) | Value::Null => span,
            _ => node.span,
        }
    }

    /// The path to the innermost value that a span is in, or is the key of.
    pub(crate) fn path_to(&self, span: Span) -> Vec<Step<'_>> {
        let holds = |outer: Span| outer.start <= span.start && span.end <= outer.end;
        let (mut node, mut path) = (self, vec![]);
        loop {
            let next = match &node.value {
                Value::Mapping(mapping) => mapping
                    .iter()
                    .find(|entry| holds(entry.key_span) || holds(entry.value.span))
                    .map(|entry| (Step::Key(&entry.key), &entry.value)),
                Value::Sequence(items) => items
                    .iter()
                    .enumerate()
                    .find(|(_, item)| holds(item.span))
                    .map(|(index, item)| (Step::Index(index), item)),
                _ => None,
            };
            let Some((step, value)) = next else { return path };
            path.push(step);
            node = value;
        }
    }

    /// How many bytes the value takes in JSON without white space.
    pub fn json_bytes(&self) -> u64 {
        match &self.value {
            Value::Null => 4,
            Value::Bool(value) => 5 - u64::from(*value),
            Value::String(text) => json_text_bytes(text),
            Value::Sequence(items) => 1 + items.iter().map(|item| item.json_bytes() + 1).sum::<u64>().max(1),
            Value::Mapping(mapping) => {
                let entry = |entry: &Entry<'_>| json_text_bytes(&entry.key) + entry.value.json_bytes() + 2;
                1 + mapping.iter().map(entry).sum::<u64>().max(1)
            }
            Value::Int(_) | Value::UInt(_) | Value::Float(_) => self.to_json().to_string().len() as u64,
        }
    }

    /// The same value as JSON, with the numbers Kubernetes would see.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::from(*value),
            Value::Int(value) => Json::from(*value),
            Value::UInt(value) => Json::from(*value),
            Value::Float(value) => go_number(*value),
            Value::String(text) => Json::from(text.as_ref()),
            Value::Sequence(items) => items.iter().map(Node::to_json).collect(),
            Value::Mapping(mapping) => mapping
                .iter()
                .map(|entry| (entry.key.to_string(), entry.value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

/// The same value as if it had been read; it stands nowhere.
impl<'a> From<&'a serde_json::Value> for Node<'a> {
    fn from(json: &'a serde_json::Value) -> Self {
        use serde_json::Value as Json;
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Value::Int(value),
                (None, Some(value)) => Value::UInt(value),
                // A number of JSON is an integer or a float.
                (None, None) => Value::Float(number.as_f64().unwrap_or_default()),
            },
            Json::String(text) => Value::String(text.into()),
            Json::Array(items) => Value::Sequence(items.iter().map(Node::from).collect()),
            Json::Object(fields) => {
                let entry = |(key, value): (&'a String, &'a Json)| Entry {
                    key: key.into(),
                    key_span: Span::default(),
                    value: Node::from(value),
                };
                Value::Mapping(Mapping::new(fields.iter().map(entry).collect()))
            }
        };
        Self { value, span: Span::default() }
    }
}

/// How many bytes a text takes in JSON, with its quotes.
fn json_text_bytes(text: &str) -> u64 {
    let bytes = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..=31 => 6,
        _ => 1,
    };
    2 + text.bytes().map(bytes).sum::<u64>()
}

/// A float as Go writes it to JSON: whole numbers below 1e21 have no fraction.
fn go_number(value: f64) -> serde_json::Value {
    if value.fract() == 0.0 && value.abs() < 9.0e15 { (value as i64).into() } else { value.into() }
}

/// One step of a path into a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// Into a map.
    Key(&'a str),
    /// Into a list.
    Index(usize),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => f.write_str(key),
            Self::Index(index) => write!(f, "{index}"),
        }
    }
}

impl<'a> From<&'a str> for Step<'a> {
    fn from(key: &'a str) -> Self {
        Self::Key(key)
    }
}

impl From<usize> for Step<'_> {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// A path of keys and list positions: `steps!("spec", "icon", 0)`.
macro_rules! steps {
    ($($step:expr),+ $(,)?) => { &[$($crate::yaml::Step::from($step)),+] };
}
pub(crate) use steps;

impl<'a> Mapping<'a> {
    /// A map of entries whose keys are distinct.
    pub(crate) fn new(entries: Vec<Entry<'a>>) -> Self {
        let mut by_key = Vec::new();
        if entries.len() > LINEAR_KEYS {
            // Fewer than 4 billion: every entry takes a byte of a text that is shorter.
            by_key.extend(0..entries.len() as u32);
            by_key
                .sort_unstable_by(|a, b| go::by_field(&entries[*a as usize].key, &entries[*b as usize].key));
        }
        Self { entries, by_key: by_key.into() }
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The value under `key`, to change it.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node<'a>> {
        self.entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value)
    }

    /// Puts entries whose keys the map does not have before the others.
    pub(crate) fn prepend(&mut self, mut entries: Vec<Entry<'a>>) {
        entries.append(&mut self.entries);
        *self = Self::new(entries);
    }

    /// The key as it stands, with its value.
    pub fn entry(&self, key: &str) -> Option<&Entry<'a>> {
        if self.by_key.is_empty() {
            return self.entries.iter().find(|entry| entry.key == key);
        }
        let found = self.by_key.binary_search_by(|at| go::by_field(&self.entries[*at as usize].key, key));
        found.ok().map(|at| &self.entries[self.by_key[at] as usize])
    }

    /// The value under `key`, or under a key that differs from it in case alone, as [`go`] matches fields.
    pub fn get_folded(&self, key: &str) -> Option<&Node<'a>> {
        self.entry_folded(key).map(|entry| &entry.value)
    }

    /// The key as it stands, in whatever case, with its value.
    pub fn entry_folded(&self, key: &str) -> Option<&Entry<'a>> {
        if self.by_key.is_empty() {
            return go::entry_of(key, &self.entries, |entry| &entry.key);
        }
        let of = |at: &u32| &self.entries[*at as usize];
        let end = self.by_key.partition_point(|at| go::compare_folded(&of(at).key, key).is_le());
        let last = self.by_key[..end].last().map(of)?;
        go::same_field(&last.key, key).then_some(last)
    }

    /// Every entry, in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Entry<'a>> {
        self.entries.iter()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<'a> IntoIterator for Mapping<'a> {
    type Item = Entry<'a>;
    type IntoIter = std::vec::IntoIter<Entry<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'m, 'a> IntoIterator for &'m Mapping<'a> {
    type Item = &'m Entry<'a>;
    type IntoIter = std::slice::Iter<'m, Entry<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// What kind of value a JSON value is, for messages.
pub fn json_kind(value: &serde_json::Value) -> &'static str {
    use serde_json::Value as Json;
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "a map",
    }
}

impl Value<'_> {
    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::UInt(_) | Value::Float(_) => "a number",
            Value::String(_) => "a string",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a map",
        }
    }
}

impl fmt::Display for Value<'_> {
    /// [`Value::kind`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

#[cfg(test)]
mod tests;
