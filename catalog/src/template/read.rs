//! Reads the fields of templates, keys matched as in Go, and remembers where they stand.

use olmkit_bundle::finding::Place;
use olmkit_bundle::go::same_field;
use olmkit_bundle::source::{Source, Span};
use olmkit_bundle::suggest::did_you_mean;
use olmkit_bundle::yaml::{Entry, Node, Value};

use super::TemplateError;

/// The fields of a map.
pub(super) struct Fields<'n, 'a> {
    source: &'n Source<'a>,
    span: Span,
    entries: Vec<&'n Entry<'a>>,
}

impl<'n, 'a> Fields<'n, 'a> {
    /// The fields of a map; null has none.
    pub(super) fn of(source: &'n Source<'a>, node: &'n Node<'a>, what: &str) -> Result<Self, TemplateError> {
        let entries = match &node.value {
            Value::Mapping(mapping) => mapping.iter().collect(),
            Value::Null => Vec::new(),
            _ => return Err(fail(source, node.span, format!("{what} is not a map"))),
        };
        Ok(Self { source, span: node.span, entries })
    }

    /// The same fields once more.
    pub(super) fn again(&self) -> Self {
        Self { source: self.source, span: self.span, entries: self.entries.clone() }
    }

    /// Refuses fields that are not known, and two that differ in case alone, as a strict reader does.
    pub(super) fn only(self, known: &[&str]) -> Result<Self, TemplateError> {
        for (at, entry) in self.entries.iter().enumerate() {
            if !known.iter().any(|known| same_field(&entry.key, known)) {
                let near = did_you_mean(&entry.key, known.iter().copied());
                let near = near.map_or(String::new(), |near| format!(": {near}"));
                let why = format!("the field `{}` is not known{near}", entry.key);
                return Err(fail(self.source, entry.key_span, why));
            }
            if self.entries[..at].iter().any(|other| same_field(&other.key, &entry.key)) {
                return Err(fail(
                    self.source,
                    entry.key_span,
                    format!("the field `{}` is given twice", entry.key),
                ));
            }
        }
        Ok(self)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'n Node<'a>> {
        let entry = self.entries.iter().rfind(|entry| same_field(&entry.key, key))?;
        Some(&entry.value).filter(|value| !value.is_null())
    }

    /// A text; empty when it is absent.
    pub(super) fn text(&self, key: &str) -> Result<String, TemplateError> {
        match self.get(key) {
            None => Ok(String::new()),
            Some(node) => match node.as_str() {
                Some(text) => Ok(text.to_owned()),
                None => Err(fail(self.source, node.span, format!("`{key}` is not a text"))),
            },
        }
    }

    /// A boolean; false when it is absent.
    pub(super) fn flag(&self, key: &str) -> Result<bool, TemplateError> {
        match self.get(key) {
            None => Ok(false),
            Some(node) => node
                .as_bool()
                .ok_or_else(|| fail(self.source, node.span, format!("`{key}` is neither true nor false"))),
        }
    }

    /// The items of a list; none when it is absent.
    pub(super) fn list(&self, key: &str) -> Result<&'n [Node<'a>], TemplateError> {
        match self.get(key) {
            None => Ok(&[]),
            Some(node) => node
                .as_sequence()
                .ok_or_else(|| fail(self.source, node.span, format!("`{key}` is not a list"))),
        }
    }

    /// The maps of a list.
    pub(super) fn maps(&self, key: &str) -> Result<Vec<Self>, TemplateError> {
        let what = format!("an item of `{key}`");
        self.list(key)?.iter().map(|item| Fields::of(self.source, item, &what)).collect()
    }

    /// A map; empty when it is absent.
    pub(super) fn map(&self, key: &str) -> Result<Self, TemplateError> {
        match self.get(key) {
            None => Ok(Self { source: self.source, span: self.span, entries: Vec::new() }),
            Some(node) => Fields::of(self.source, node, &format!("`{key}`")),
        }
    }

    /// Where a field stands, or the map without it.
    pub(super) fn place(&self, key: &str) -> Place {
        Place::new(self.source, self.get(key).map_or(self.span, |node| node.span))
    }

    /// What is wrong with a field.
    pub(super) fn wrong(&self, key: &str, why: impl Into<String>) -> TemplateError {
        TemplateError::Field { place: Box::new(self.place(key)), why: why.into() }
    }
}

fn fail(source: &Source<'_>, span: Span, why: String) -> TemplateError {
    TemplateError::Field { place: Box::new(Place::new(source, span)), why }
}
