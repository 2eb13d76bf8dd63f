//! The dependencies of a bundle, as `metadata/dependencies.yaml` lists them.

use std::borrow::Cow;

use crate::finding::{Code, Finding};
use crate::generate::HEADER;
use crate::parse::{Bundle, File};
use crate::yaml::{Mapping, Node, Step};

/// An API that another operator provides.
pub(super) const GVK: &str = "olm.gvk";
/// Another package, in a range of versions.
pub(super) const PACKAGE: &str = "olm.package";
/// A label of another bundle.
pub(super) const LABEL: &str = "olm.label";
/// An expression over the properties of another bundle.
pub(super) const CONSTRAINT: &str = "olm.constraint";

/// The types of dependencies, with the paths of the texts they hold.
const TYPES: [(&str, &[&[&str]]); 4] = [
    (GVK, &[&["group"], &["version"], &["kind"]]),
    (PACKAGE, &[&["packageName"], &["version"]]),
    (LABEL, &[&["label"]]),
    (CONSTRAINT, &[&["failureMessage"], &["cel", "rule"]]),
];

/// One entry of the list.
pub(super) struct Dependency<'b, 'a> {
    file: &'b File<'a>,
    node: &'b Node<'a>,
    /// Such as [`PACKAGE`]; empty if missing.
    pub(super) kind: Cow<'b, str>,
    /// What stands under `value`, or why that cannot be read.
    pub(super) value: Result<Fields<'b, 'a>, Unreadable>,
}

/// The fields of a dependency, known to be text.
#[derive(Clone, Copy)]
pub(super) struct Fields<'b, 'a>(Option<&'b Mapping<'a>>);

/// Why a dependency cannot be read.
pub(super) struct Unreadable {
    pub(super) message: String,
    pub(super) path: Vec<&'static str>,
}

/// The dependencies in the first metadata file that lists some; it need not be named `dependencies.yaml`.
///
/// A file whose list cannot be read is passed over in silence by OLM's tools, and so it is here.
pub(super) fn read<'b, 'a>(bundle: &'b Bundle<'a>) -> Vec<Dependency<'b, 'a>> {
    let annotations = bundle.annotations().map(|annotations| annotations.file.path);
    let mut files = bundle.metadata().filter(|file| Some(file.path) != annotations);
    files.find_map(|file| read_file(file).ok().filter(|list| !list.is_empty())).unwrap_or_default()
}

/// The dependencies of one file, or the node that is no list of dependencies.
pub(super) fn read_file<'b, 'a>(file: &'b File<'a>) -> Result<Vec<Dependency<'b, 'a>>, &'b Node<'a>> {
    let root = file.root().and_then(Node::as_mapping);
    match root.and_then(|root| root.get_folded("dependencies")) {
        None => Ok(Vec::new()),
        Some(node) if node.is_null() => Ok(Vec::new()),
        Some(node) => {
            let items = node.as_sequence().ok_or(node)?;
            items.iter().map(|item| Dependency::read(file, item)).collect()
        }
    }
}

impl<'b, 'a> Dependency<'b, 'a> {
    fn read(file: &'b File<'a>, node: &'b Node<'a>) -> Result<Self, &'b Node<'a>> {
        let fields = Fields::of(node).ok_or(node)?;
        let kind = match fields.get("type") {
            Some(node) => node.to_text().ok_or(node)?,
            None => Cow::Borrowed(""),
        };
        Ok(Self { file, node, value: read_value(&kind, fields.get("value")), kind })
    }

    /// A finding about a path below the dependency.
    pub(super) fn finding(
        &self,
        code: &'static Code,
        message: impl Into<String>,
        path: &[Step<'_>],
    ) -> Finding {
        let is_generated = self.file.source.text().starts_with(HEADER);
        let key = is_generated.then_some("dependencies");
        let place = self.file.place_at(self.node.locate(path)).made_by(key);
        Finding::new(code, message).at(place).subject(self.file.path)
    }
}

fn read_value<'b, 'a>(kind: &str, value: Option<&'b Node<'a>>) -> Result<Fields<'b, 'a>, Unreadable> {
    let fail = |path: &[&'static str], message: String| Err(Unreadable { message, path: path.to_vec() });
    let Some((_, texts)) = TYPES.iter().find(|(name, _)| *name == kind) else {
        let message = match kind {
            "" => "a dependency has no `type`".into(),
            _ => format!("`{kind}` is not a type of dependency"),
        };
        return fail(&["type"], message);
    };
    let Some(node) = value else { return fail(&[], "a dependency has no `value`".into()) };
    let Some(fields) = Fields::of(node) else {
        return fail(&["value"], format!("`value` is {}, expected a map", node.value));
    };
    for path in *texts {
        let mut at = fields;
        for (depth, key) in path.iter().enumerate() {
            let Some(node) = at.get(key) else { break };
            let whole: Vec<_> = std::iter::once("value").chain(path[..=depth].iter().copied()).collect();
            if depth + 1 < path.len() {
                let Some(inner) = Fields::of(node) else {
                    return fail(&whole, format!("`{key}` is {}, expected a map", node.value));
                };
                at = inner;
            } else if !node.is_null() && node.as_str().is_none() {
                return fail(&whole, format!("`{key}` is {}, expected a string", node.value));
            }
        }
    }
    Ok(fields)
}

impl<'b, 'a> Fields<'b, 'a> {
    /// The fields of a map, none of null.
    fn of(node: &'b Node<'a>) -> Option<Self> {
        match node.as_mapping() {
            Some(mapping) => Some(Self(Some(mapping))),
            None => node.is_null().then_some(Self(None)),
        }
    }

    fn get(self, key: &str) -> Option<&'b Node<'a>> {
        self.0?.get_folded(key)
    }

    /// The text at a path; empty if missing.
    pub(super) fn text(self, path: &[&str]) -> &'b str {
        let Some((last, above)) = path.split_last() else { return "" };
        let inner = above.iter().try_fold(self, |at, key| Fields::of(at.get(key)?));
        inner.and_then(|at| at.get(last)).and_then(Node::as_str).unwrap_or("")
    }
}
