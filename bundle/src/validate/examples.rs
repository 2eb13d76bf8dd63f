//! The examples of custom resources, which a ClusterServiceVersion carries as JSON in an annotation.

use serde::de::IgnoredAny;

use super::embedded;
use crate::csv::{GroupVersionKind, annotation};
use crate::finding::Place;
use crate::parse::Csv;
use crate::source::{Source, Span};
use crate::yaml::{self, Node, steps};

/// The examples of a ClusterServiceVersion.
pub(super) struct Examples<'b> {
    /// The annotation they stand in.
    pub(super) key: &'static str,
    text: Source<'b>,
    /// The examples, or why they cannot be read.
    pub(super) list: Result<Vec<Example>, Unreadable>,
}

/// One example.
pub(super) struct Example {
    /// What it is an example of.
    pub(super) gvk: GroupVersionKind,
    /// Where it stands in the annotation's text.
    pub(super) span: Span,
}

/// Why examples cannot be read.
pub(super) enum Unreadable {
    /// The text is not JSON.
    NotJson(Problem),
    /// The JSON is not a list of objects with a kind.
    NotObjects(Vec<Problem>),
}

/// Something wrong at a place in the annotation's text.
pub(super) struct Problem {
    pub(super) message: String,
    pub(super) span: Span,
}

impl<'b> Examples<'b> {
    /// Reads the examples; none when there is no annotation for them. Where there are two, the older one counts.
    pub(super) fn read(csv: Csv<'b, '_>) -> Option<Self> {
        let keys = [annotation::ALM_EXAMPLES, annotation::OLM_EXAMPLES];
        let (key, text) = keys.into_iter().find_map(|key| Some((key, csv.typed.annotation(key)?)))?;
        let text = Source::new("", text);
        let list = match json_problem(&text) {
            Some(problem) => Err(Unreadable::NotJson(problem)),
            None => read_objects(text.text()).map_err(Unreadable::NotObjects),
        };
        Some(Self { key, text, list })
    }

    /// The annotation's text.
    pub(super) fn text(&self) -> &'b str {
        self.text.text()
    }

    /// A place in the annotation's text: the very line where the annotation is written in literal style, the whole
    /// annotation elsewhere.
    pub(super) fn place(&self, csv: Csv<'_, '_>, span: Span) -> Place {
        let object = csv.object;
        let path = steps!("metadata", "annotations", self.key);
        match object.root.at(path) {
            Some(node) => object.place_at(embedded::locate(object.source, node, &self.text, span)),
            None => object.place(path),
        }
    }
}

/// Why a text is not JSON, if it is not. An empty one passes, as it does in operator-sdk.
fn json_problem(text: &Source<'_>) -> Option<Problem> {
    if text.text().is_empty() {
        return None;
    }
    let error = serde_json::from_str::<IgnoredAny>(text.text()).err()?;
    let message = error.to_string();
    // The position is told apart from the message, as a place in the file.
    let message =
        message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message).to_owned();
    let line_start = text.line_start(error.line() as u32).unwrap_or(0) as usize;
    let at = (line_start + error.column().saturating_sub(1)).min(text.text().len());
    Some(Problem { message, span: Span::new(at, at + 1) })
}

/// The objects of a JSON list. They are read as YAML because operator-sdk does so, and because that tells places.
fn read_objects(text: &str) -> Result<Vec<Example>, Vec<Problem>> {
    let document = yaml::first_document(text)
        .map_err(|error| vec![Problem { message: error.message.clone(), span: error.span }])?;
    let root = &document.root;
    let items = match root.as_sequence() {
        Some(items) => items,
        None if root.is_null() => &[],
        None => {
            let message = format!("expected a list of objects, found {}", root.value);
            return Err(vec![Problem { message, span: root.span }]);
        }
    };
    let (mut examples, mut problems) = (Vec::new(), Vec::new());
    for item in items {
        let span = item.span;
        let text = |key| item.get(key).and_then(Node::as_str).unwrap_or("");
        if item.as_mapping().is_none() {
            problems.push(Problem { message: format!("expected an object, found {}", item.value), span });
        } else if text("kind").is_empty() {
            problems.push(Problem { message: "an example has no `kind`".into(), span });
        } else {
            let gvk = GroupVersionKind::parse(text("apiVersion"), text("kind")).unwrap_or_default();
            examples.push(Example { gvk, span });
        }
    }
    if problems.is_empty() { Ok(examples) } else { Err(problems) }
}
