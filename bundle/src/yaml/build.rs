//! Parser events to a tree: keys become text, merge keys are applied, aliases expanded within bounds.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::resolve::{self, Tag};
use super::{Entry, LINEAR_KEYS, Mapping, Node, Note, SyntaxError, Value};
use crate::source::Span;

/// How deep collections may nest; real files stay below 60. Bounds every recursion over the tree.
pub(super) const MAX_DEPTH: usize = 255;

/// More notes than this are not kept: a file that is nothing but one key should cost no more than any other.
const MAX_NOTES: usize = 1000;

/// The memory that the values of a text may take, in bytes, those of all its documents together, so that no text takes many times its
/// size: a value is many times longer than `1,` or `- `, and an anchor keeps a copy of what it names.
#[derive(Clone, Copy)]
pub(super) struct Room {
    left: usize,
    whole: usize,
}

impl Room {
    /// The values of any text may take this.
    const LEAST: usize = 48 << 20;
    /// And so many times what it is long.
    const TIMES: usize = 8;

    /// For a text of so many bytes.
    pub(super) fn of(length: usize) -> Self {
        let whole = length.saturating_mul(Self::TIMES).saturating_add(Self::LEAST);
        Self { left: whole, whole }
    }

    /// The bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Takes what so many values need; false when there is too little.
    pub(super) fn take(&mut self, values: usize) -> bool {
        let left = self.left.checked_sub(values.saturating_mul(size_of::<Node<'_>>()));
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

/// What the builder needs to know of the parser's events.
pub(super) enum Event<'a> {
    /// A scalar; `plain` when unquoted, so that its text decides its type.
    Scalar {
        value: Cow<'a, str>,
        plain: bool,
        tag: Option<Tag>,
        anchor: Option<usize>,
    },
    SequenceStart {
        anchor: Option<usize>,
    },
    MappingStart {
        anchor: Option<usize>,
    },
    /// The end of the innermost sequence or mapping.
    End,
    /// A reference to the value of an anchor.
    Alias(usize),
}

/// Grows one document's tree from events.
pub(super) struct Builder<'a> {
    root: Option<Node<'a>>,
    open: Vec<Frame<'a>>,
    anchors: HashMap<usize, Node<'a>>,
    notes: Vec<Note>,
    nodes: Nodes,
    room: Room,
}

/// A collection whose end has not come yet.
struct Frame<'a> {
    start: u32,
    anchor: Option<usize>,
    items: Items<'a>,
}

enum Items<'a> {
    Sequence(Vec<Node<'a>>),
    Mapping { entries: Entries<'a>, key: Option<Key<'a>> },
}

enum Key<'a> {
    Text(Cow<'a, str>, Span),
    Merge(Span),
}

impl<'a> Builder<'a> {
    pub(super) fn new(room: Room) -> Self {
        let (open, notes, nodes) = (Vec::new(), Vec::new(), Nodes::default());
        Self { root: None, open, anchors: HashMap::new(), notes, nodes, room }
    }

    pub(super) fn event(&mut self, event: Event<'a>, span: Span) -> Result<(), SyntaxError> {
        match event {
            Event::Scalar { value, plain, tag, anchor } => {
                self.nodes.count(1);
                self.take(1, span)?;
                let untagged_plain = plain && tag.is_none();
                if self.expects_key() && value == "<<" && (untagged_plain || tag == Some(Tag::Merge)) {
                    self.set_key(Key::Merge(span));
                    return Ok(());
                }
                let value =
                    resolve::scalar(value, plain, tag).map_err(|message| SyntaxError::new(message, span))?;
                let node = Node { value, span };
                self.define(anchor, &node)?;
                self.node(node)
            }
            Event::SequenceStart { anchor } => self.open(Items::Sequence(Vec::new()), anchor, span),
            Event::MappingStart { anchor } => {
                self.open(Items::Mapping { entries: Entries::default(), key: None }, anchor, span)
            }
            Event::End => self.close(span),
            Event::Alias(id) => {
                let Some(target) = self.anchors.get(&id) else {
                    return Err(SyntaxError::new("an anchor's value may not contain itself", span));
                };
                let values = count(target);
                self.nodes.expand(values).map_err(|message| SyntaxError::new(message, span))?;
                let depth = self.open.len() + depth(target);
                if depth > MAX_DEPTH {
                    return Err(too_deep(span));
                }
                if !self.room.take(values as usize) {
                    return Err(self.too_large(span));
                }
                let node = target.clone();
                self.node(node)
            }
        }
    }

    /// The tree, null when no value came, and the room that it leaves.
    pub(super) fn finish(self, end: Span) -> (Node<'a>, Vec<Note>, Room) {
        (self.root.unwrap_or(Node { value: Value::Null, span: end }), self.notes, self.room)
    }

    fn open(&mut self, items: Items<'a>, anchor: Option<usize>, span: Span) -> Result<(), SyntaxError> {
        self.nodes.count(1);
        self.take(1, span)?;
        if self.expects_key() {
            return Err(SyntaxError::new("a list or a map cannot be a key", span));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(span));
        }
        self.open.push(Frame { start: span.start, anchor, items });
        Ok(())
    }

    fn close(&mut self, span: Span) -> Result<(), SyntaxError> {
        let Some(frame) = self.open.pop() else { return Ok(()) };
        // A block collection has no closing mark: it ends with its last value, not with the blank lines after it.
        let (value, last) = match frame.items {
            Items::Sequence(items) => {
                let last = items.last().map(|node| node.span.end);
                (Value::Sequence(items), last)
            }
            Items::Mapping { entries, .. } => {
                let last =
                    entries.list.iter().map(|entry| entry.value.span.end.max(entry.key_span.end)).max();
                (Value::Mapping(Mapping::new(entries.list)), last)
            }
        };
        let closes_itself = span.end > span.start;
        let end = if closes_itself { span.end } else { last.unwrap_or(frame.start).max(frame.start) };
        let node = Node { value, span: Span { start: frame.start, end } };
        self.define(frame.anchor, &node)?;
        self.node(node)
    }

    fn define(&mut self, anchor: Option<usize>, node: &Node<'a>) -> Result<(), SyntaxError> {
        if let Some(id) = anchor {
            self.take(count(node) as usize, node.span)?;
            self.anchors.insert(id, node.clone());
        }
        Ok(())
    }

    fn take(&mut self, values: usize, span: Span) -> Result<(), SyntaxError> {
        if self.room.take(values) { Ok(()) } else { Err(self.too_large(span)) }
    }

    fn too_large(&self, span: Span) -> SyntaxError {
        let most = self.room.whole >> 20;
        SyntaxError::new(format!("the values up to here need more than {most} MiB of memory"), span)
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Frame { items: Items::Mapping { key: None, .. }, .. }))
    }

    fn set_key(&mut self, new: Key<'a>) {
        if let Some(Frame { items: Items::Mapping { key, .. }, .. }) = self.open.last_mut() {
            *key = Some(new);
        }
    }

    /// Puts a finished node where it belongs: the root, a list, a key or a value.
    fn node(&mut self, node: Node<'a>) -> Result<(), SyntaxError> {
        let Some(frame) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut frame.items {
            Items::Sequence(items) => items.push(node),
            Items::Mapping { key: key @ None, .. } => {
                let span = node.span;
                *key = Some(Key::Text(resolve::key(node)?, span));
            }
            Items::Mapping { entries, key } => match key.take() {
                Some(Key::Text(key, key_span)) => {
                    let entry = Entry { key, key_span, value: node };
                    if let Some(old) = entries.set(entry)
                        && self.notes.len() < MAX_NOTES
                    {
                        let (key, second) = (old.key.into_owned(), key_span);
                        self.notes.push(Note::DuplicateKey { key, first: old.key_span, second });
                    }
                }
                Some(Key::Merge(span)) => merge(entries, node, span)?,
                None => {}
            },
        }
        Ok(())
    }
}

/// Applies `<<: node`: what it brings overwrites earlier keys, and of a list the first map wins, as in go-yaml.
fn merge<'a>(entries: &mut Entries<'a>, node: Node<'a>, key_span: Span) -> Result<(), SyntaxError> {
    let wants_map = || SyntaxError::new("`<<` takes a map or a list of maps", key_span);
    match node.value {
        Value::Mapping(mapping) => {
            for entry in mapping.entries {
                entries.set(entry);
            }
            Ok(())
        }
        Value::Sequence(items) => items.into_iter().rev().try_for_each(|item| match item.value {
            Value::Mapping(_) => merge(entries, item, key_span),
            _ => Err(wants_map()),
        }),
        _ => Err(wants_map()),
    }
}

fn too_deep(span: Span) -> SyntaxError {
    SyntaxError::new(format!("nested more than {MAX_DEPTH} levels deep"), span)
}

/// The entries of a map under construction, each key once.
#[derive(Default)]
struct Entries<'a> {
    list: Vec<Entry<'a>>,
    index: HashMap<Cow<'a, str>, usize>,
}

impl<'a> Entries<'a> {
    /// Sets a key and gives back the entry that stood there.
    fn set(&mut self, entry: Entry<'a>) -> Option<Entry<'a>> {
        match self.find(&entry.key) {
            Some(at) => Some(std::mem::replace(&mut self.list[at], entry)),
            None => {
                if !self.index.is_empty() {
                    self.index.insert(entry.key.clone(), self.list.len());
                }
                self.list.push(entry);
                None
            }
        }
    }

    fn find(&mut self, key: &str) -> Option<usize> {
        if self.list.len() < LINEAR_KEYS {
            return self.list.iter().position(|entry| entry.key == key);
        }
        if self.index.is_empty() {
            self.index = self.list.iter().enumerate().map(|(at, entry)| (entry.key.clone(), at)).collect();
        }
        self.index.get(key).copied()
    }
}

/// go-yaml's guard against aliases that multiply: beyond a small size the share of values that come from
/// aliases may not pass a limit that falls from 99 % to 10 %.
#[derive(Default)]
struct Nodes {
    all: u64,
    from_aliases: u64,
}

impl Nodes {
    const RANGE: Range<u64> = 400_000..4_000_000;

    fn count(&mut self, nodes: u64) {
        self.all += nodes;
    }

    fn expand(&mut self, nodes: u64) -> Result<(), &'static str> {
        self.all += nodes;
        self.from_aliases += nodes;
        let share = self.from_aliases as f64 / self.all as f64;
        if self.from_aliases > 100 && self.all > 1000 && share > self.allowed_share() {
            return Err("aliases multiply the document beyond what Kubernetes reads");
        }
        Ok(())
    }

    fn allowed_share(&self) -> f64 {
        let Range { start, end } = Self::RANGE;
        if self.all <= start {
            0.99
        } else if self.all >= end {
            0.10
        } else {
            0.99 - 0.89 * ((self.all - start) as f64 / (end - start) as f64)
        }
    }
}

fn count(node: &Node<'_>) -> u64 {
    1 + match &node.value {
        Value::Sequence(items) => items.iter().map(count).sum(),
        Value::Mapping(mapping) => mapping.iter().map(|entry| 1 + count(&entry.value)).sum(),
        _ => 0,
    }
}

fn depth(node: &Node<'_>) -> usize {
    let inner = match &node.value {
        Value::Sequence(items) => items.iter().map(depth).max(),
        Value::Mapping(mapping) => mapping.iter().map(|entry| depth(&entry.value)).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}
