//! Changes a document of YAML or JSON where it stands: comments, order and everything untouched stay as they are.
//!
//! A document is read as a tree with places; an [`Editor`] gathers changes to its text in the style it finds there: block or flow,
//! the indentation of the neighbours, quotes where they have quotes. What it cannot do in place it refuses, and whoever asked writes
//! the document anew. Whether the result means what it should is for the caller to check, and he does.

use olmkit_bundle::yaml::{self, Mapping, Node, Step};
use serde_json::Value as Json;

use crate::fbc::same_key;
use crate::json::{Layout, Tree};

/// Changes to one text, by byte offsets, applied together.
#[derive(Debug, Default)]
pub(super) struct Edits(Vec<(usize, usize, String)>);

impl Edits {
    pub(super) fn replace(&mut self, from: usize, to: usize, text: String) {
        self.0.push((from, to, text));
    }

    /// Takes over the changes of a part that starts at `offset`.
    pub(super) fn extend(&mut self, part: Self, offset: usize) {
        self.0.extend(part.0.into_iter().map(|(from, to, text)| (from + offset, to + offset, text)));
    }

    /// The text with all changes made. Line breaks are those of the text.
    pub(super) fn apply(&self, text: &str) -> String {
        let mut edits: Vec<_> = self.0.iter().collect();
        // Stable: what is inserted at one place stays in the order it came.
        edits.sort_by_key(|(from, ..)| *from);
        let crlf = text.contains("\r\n");
        let mut out =
            String::with_capacity(text.len() + edits.iter().map(|(.., new)| new.len()).sum::<usize>());
        let mut copied = 0;
        for (from, to, new) in edits {
            out += text.get(copied..*from).unwrap_or("");
            out += &if crlf { new.replace('\n', "\r\n") } else { new.clone() };
            copied = copied.max(*to);
        }
        out + text.get(copied..).unwrap_or("")
    }
}

/// A document under change.
pub(super) struct Editor<'t> {
    text: &'t str,
    root: Node<'t>,
    pub(super) edits: Edits,
}

impl<'t> Editor<'t> {
    /// Reads the one document in a text.
    pub(super) fn open(text: &'t str) -> Option<Self> {
        let root = yaml::first_document(text).ok()?.root;
        Some(Self { text, root, edits: Edits::default() })
    }

    /// Sets a field of the map at a path to a text, or to a list of texts when it is not there yet.
    pub(super) fn set(&mut self, path: &[Step<'_>], key: &str, value: &Json) -> Option<()> {
        let map_node = self.at(path)?;
        let map = map_node.as_mapping()?;
        let (from, to, new) = match member(map, key) {
            Some(old) if old.is_null() => return None,
            Some(old) => {
                let (from, to) = (old.span.start as usize, old.span.end as usize);
                let text = value.as_str()?;
                let new = match self.byte(from) {
                    Some(b'"') => Tree::from(text).to_text(&Layout::COMPACT),
                    Some(b'\'') if !text.contains('\n') => format!("'{}'", text.replace('\'', "''")),
                    _ => self.style_of(map_node).scalar(value)?,
                };
                (from, to, new)
            }
            None => self.new_member(map_node, map, key, value)?,
        };
        self.edits.replace(from, to, new);
        Some(())
    }

    /// Puts an item into the list at a path, so that it becomes the `at`-th.
    pub(super) fn insert(&mut self, path: &[Step<'_>], at: usize, item: &Tree<'_>) -> Option<()> {
        let (from, new) = self.new_item(self.at(path)?, at, item)?;
        self.edits.replace(from, from, new);
        Some(())
    }

    /// The value at a path, its keys matched as Go matches fields.
    fn at(&self, path: &[Step<'_>]) -> Option<&Node<'t>> {
        path.iter().try_fold(&self.root, |node, step| match step {
            Step::Key(key) => member(node.as_mapping()?, key),
            Step::Index(index) => node.as_sequence()?.get(*index),
        })
    }

    fn new_member(
        &self,
        node: &Node<'t>,
        map: &Mapping<'t>,
        key: &str,
        value: &Json,
    ) -> Option<(usize, usize, String)> {
        let before = map.iter().rfind(|entry| *entry.key < *key).or_else(|| map.iter().next_back())?;
        let end = before.value.span.end as usize;
        if let Style::Flow { quoted } = self.style_of(node) {
            let style = Style::Flow { quoted };
            let members: Vec<(usize, usize)> = map
                .iter()
                .map(|entry| (entry.key_span.start as usize, entry.value.span.end as usize))
                .collect();
            let between = self.between(node, &members)?;
            let key = style.scalar(&Json::from(key))?;
            let multi_line = between.contains('\n');
            let value = match value {
                Json::Array(_) if multi_line => {
                    let margin = between.rsplit('\n').next().unwrap_or("");
                    Tree::Leaf(value.clone())
                        .to_text(&Layout::Lines { unit: self.unit(node, margin), margin })
                }
                _ => style.line(&Tree::Leaf(value.clone()), self.space())?,
            };
            let colon = if multi_line { ": ".to_owned() } else { format!(":{}", self.space_in_flow(quoted)) };
            return Some((end, end, format!("{between}{key}{colon}{value}")));
        }
        let indent = " ".repeat(self.column(map.iter().next()?.key_span.start as usize));
        let member = Json::Object([(key.to_owned(), value.clone())].into_iter().collect());
        let (at, new) = self.lines_behind(end, &indented(&yaml_lines(&member)?, &indent, &indent));
        Some((at, at, new))
    }

    fn new_item(&self, list: &Node<'t>, at: usize, item: &Tree<'_>) -> Option<(usize, String)> {
        let items = list.as_sequence()?;
        let spans: Vec<(usize, usize)> =
            items.iter().map(|item| (item.span.start as usize, item.span.end as usize)).collect();
        if let Style::Flow { .. } = self.style_of(list) {
            let style = items.first().map_or(Style::Flow { quoted: self.text.contains("\":") }, |item| {
                match item.as_mapping() {
                    Some(_) => self.style_of(item),
                    None => Style::Flow { quoted: self.byte(item.span.start as usize) == Some(b'"') },
                }
            });
            if items.is_empty() {
                return Some((list.span.start as usize + 1, style.line(item, self.space())?));
            }
            let between = self.between(list, &spans)?;
            let (start, end) = spans[0];
            let item = if self.text.get(start..end)?.contains('\n') {
                let margin = between.rsplit('\n').next().unwrap_or("");
                item.to_text(&Layout::Lines { unit: self.unit(&items[0], margin), margin })
            } else {
                style.line(item, self.space())?
            };
            return Some(match at.checked_sub(1) {
                Some(before) => (spans[before].1, format!("{between}{item}")),
                None => (start, format!("{item}{between}")),
            });
        }
        let dash = self.dash(spans.get(at.saturating_sub(1))?.0)?;
        let indent = " ".repeat(self.column(dash));
        let lines =
            indented(&yaml_lines(&item.clone().into_json())?, &format!("{indent}- "), &format!("{indent}  "));
        match at.checked_sub(1) {
            Some(before) => Some(self.lines_behind(spans[before].1, &lines)),
            None => Some((dash - indent.len(), lines)),
        }
    }

    /// Lines to insert behind the line that `end` is in.
    fn lines_behind(&self, end: usize, lines: &str) -> (usize, String) {
        match self.text[end..].find('\n') {
            Some(newline) => (end + newline + 1, lines.to_owned()),
            None => (self.text.len(), format!("\n{}", lines.trim_end_matches('\n'))),
        }
    }

    /// What stands between the parts of a flow collection; none when comments do.
    fn between(&self, collection: &Node<'t>, parts: &[(usize, usize)]) -> Option<String> {
        let only = |text: &str, comma: usize| {
            text.chars().all(|c| c.is_ascii_whitespace() || c == ',') && text.matches(',').count() == comma
        };
        match parts {
            [(_, end), (start, _), ..] => {
                let text = self.text.get(*end..*start)?;
                only(text, 1).then(|| text.replace('\r', ""))
            }
            [(start, _)] => {
                let text = self.text.get(collection.span.start as usize + 1..*start)?;
                let space = if text.contains('\n') { text } else { self.space() };
                only(text, 0).then(|| format!(",{}", space.replace('\r', "")))
            }
            [] => None,
        }
    }

    /// How much deeper the members of a map stand than the map's own line.
    fn unit(&self, node: &Node<'t>, margin: &str) -> &'static str {
        let first = node.as_mapping().and_then(|map| map.iter().next());
        let depth = first.map_or(0, |entry| self.column(entry.key_span.start as usize));
        match depth.saturating_sub(margin.len()) {
            1 => " ",
            2 => "  ",
            3 => "   ",
            8 => "        ",
            _ => "    ",
        }
    }

    /// The column of an offset, in bytes from 0.
    fn column(&self, at: usize) -> usize {
        at - self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The dash of a block list's item, when nothing but spaces stands before it and between.
    fn dash(&self, item: usize) -> Option<usize> {
        let head = self.text.get(..item)?.trim_end_matches(' ');
        let dash = head.len().checked_sub(1).filter(|_| head.ends_with('-'))?;
        let line = self.text[..dash].rfind('\n').map_or(0, |newline| newline + 1);
        self.text[line..dash].bytes().all(|byte| byte == b' ').then_some(dash)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn style_of(&self, node: &Node<'t>) -> Style {
        match self.byte(node.span.start as usize) {
            Some(b'{' | b'[') => {
                let first = node.as_mapping().and_then(|map| map.iter().next());
                let quoted = first.is_none_or(|entry| self.byte(entry.key_span.start as usize) == Some(b'"'));
                Style::Flow { quoted }
            }
            _ => Style::Block,
        }
    }

    /// What stands behind `:` and `,` in one line of JSON.
    fn space(&self) -> &'static str {
        let colon = self.text.find("\":").map(|at| at + 2);
        match colon.and_then(|at| self.byte(at)) {
            Some(byte) if !byte.is_ascii_whitespace() => "",
            _ => " ",
        }
    }

    /// YAML wants a space behind a colon, JSON does not.
    fn space_in_flow(&self, quoted: bool) -> &'static str {
        if quoted { self.space() } else { " " }
    }
}

/// How a collection is written.
#[derive(Clone, Copy)]
enum Style {
    Block,
    /// With brackets; with quotes around keys and texts, as in JSON, or not.
    Flow {
        quoted: bool,
    },
}

impl Style {
    /// A text on one line.
    fn scalar(self, value: &Json) -> Option<String> {
        let text = value.as_str()?;
        match self {
            Self::Block => Some(yaml_lines(value)?.trim_end().to_owned()).filter(|text| !text.contains('\n')),
            Self::Flow { quoted: false } if is_plain(text) => Some(text.to_owned()),
            Self::Flow { .. } => Some(Tree::from(text).to_text(&Layout::COMPACT)),
        }
    }

    /// A value on one line of flow style.
    fn line(self, value: &Tree<'_>, space: &str) -> Option<String> {
        let Self::Flow { quoted: false } = self else {
            return Some(value.to_text(&Layout::Line { space }));
        };
        let item = |(key, value): &(std::borrow::Cow<'_, str>, Tree<'_>)| {
            Some(format!("{}: {}", self.scalar(&Json::from(&**key))?, self.line(value, space)?))
        };
        match value {
            Tree::Map(members) => {
                Some(format!("{{{}}}", members.iter().map(item).collect::<Option<Vec<_>>>()?.join(", ")))
            }
            Tree::List(items) => {
                let items: Option<Vec<_>> = items.iter().map(|item| self.line(item, space)).collect();
                Some(format!("[{}]", items?.join(", ")))
            }
            Tree::Leaf(Json::Array(items)) => {
                let items: Option<Vec<_>> = items.iter().map(|item| self.scalar(item)).collect();
                Some(format!("[{}]", items?.join(", ")))
            }
            Tree::Leaf(value) => self.scalar(value),
        }
    }
}

/// Whether a text needs no quotes in flow style.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'/'))
        && yaml::first_document(text).is_ok_and(|document| document.root.as_str() == Some(text))
}

fn yaml_lines(value: &Json) -> Option<String> {
    yaml::write::to_string(value).ok()
}

fn indented(lines: &str, first: &str, rest: &str) -> String {
    let line = |(at, line): (usize, &str)| format!("{}{line}\n", if at == 0 { first } else { rest });
    lines.lines().enumerate().map(line).collect()
}

/// The value of a field.
fn member<'n, 't>(map: &'n Mapping<'t>, key: &str) -> Option<&'n Node<'t>> {
    map.iter().find(|entry| same_key(&entry.key, key)).map(|entry| &entry.value)
}
