//! Places in a bundle that was made, as places in what it was made of: nobody can open a file that was not written.

use std::collections::BTreeMap;

use super::draft::{By, Draft, Value};
use super::output;
use super::package_file::PackageFile;
use crate::finding::{Finding, Place};
use crate::source::Source;
use crate::yaml::{self, Node, Step, Value as Yaml};

/// What a bundle was made of.
pub(super) struct Inputs<'d, 'm> {
    /// The bundle's name, which its paths begin with.
    pub(super) name: &'d str,
    /// Its texts by path.
    pub(super) files: &'d BTreeMap<String, String>,
    /// The ClusterServiceVersion with the origin of everything in it.
    pub(super) draft: &'d Draft<'m>,
    /// What it carries of the manifests.
    pub(super) manifests: &'d output::Manifests<'d, 'm>,
    /// The package file.
    pub(super) file: Option<&'d PackageFile<'d>>,
}

/// Where something in a bundle comes from.
enum Input {
    /// Somewhere in a text.
    Place(Place),
    /// A flag or a variable, by its name.
    Named(&'static str),
    /// Nobody said it.
    Nowhere,
}

impl Inputs<'_, '_> {
    /// The finding at the place of the input that it is about.
    pub(super) fn moved(&self, mut finding: Finding) -> Finding {
        let Some(input) = finding.place.as_ref().and_then(|place| self.of(place)) else { return finding };
        finding.place = None;
        match input {
            Input::Place(place) => finding.place = Some(place),
            Input::Named(name) => finding.message = format!("`{name}`: {}", finding.message),
            Input::Nowhere => {}
        }
        finding.other = finding.other.and_then(|other| match self.of(&other) {
            Some(Input::Place(place)) => Some(place),
            Some(_) => None,
            None => Some(other),
        });
        finding
    }

    /// Where a place of the bundle comes from; none where it is no place of the bundle.
    fn of(&self, place: &Place) -> Option<Input> {
        let path = place.path.strip_prefix(self.name)?.strip_prefix('/')?;
        let text = self.files.get(path)?;
        let is_of = |object: &_| path == format!("manifests/{}", output::file_name(object));
        if let Some(object) = self.manifests.carried().find(|object| is_of(object)) {
            return Some(Input::Place(at_place(text, place, |steps| object.place(steps))));
        }
        // Their lists are those of the package file.
        if let (true, Some(file)) = (output::LISTS.map(|(_, path)| path).contains(&path), self.file) {
            return Some(Input::Place(at_place(text, place, |steps| file.place(steps))));
        }
        let is_csv = path.ends_with(output::CSV_ENDING);
        Some(if is_csv { at_place(text, place, |steps| origin(self.draft, steps)) } else { Input::Nowhere })
    }
}

/// Calls a function with the path of the value that a place of a text marks.
fn at_place<T>(text: &str, place: &Place, found: impl FnOnce(&[Step<'_>]) -> T) -> T {
    let document = yaml::first_document(text).ok();
    let mut steps = Vec::new();
    if let (Some(document), Some(position)) = (&document, place.position) {
        let start = Source::new("", text).line_start(position.line).unwrap_or(0) as usize;
        let before = text[start..].chars().take(position.column as usize - 1).map(char::len_utf8);
        let offset = start + before.sum::<usize>();
        walk(&document.root, offset as u32, &mut steps);
    }
    found(&steps)
}

/// The steps to the innermost value that a byte belongs to, its key included.
fn walk<'n>(node: &'n Node<'_>, offset: u32, steps: &mut Vec<Step<'n>>) {
    match &node.value {
        Yaml::Mapping(map) => {
            if let Some(entry) = map.iter().rfind(|entry| entry.key_span.start <= offset) {
                steps.push(Step::Key(&entry.key));
                if entry.value.span.start <= offset {
                    walk(&entry.value, offset, steps);
                }
            }
        }
        Yaml::Sequence(items) => {
            if let Some(index) = items.iter().rposition(|item| item.span.start <= offset) {
                steps.push(Step::Index(index));
                walk(&items[index], offset, steps);
            }
        }
        _ => {}
    }
}

/// Where a value of the ClusterServiceVersion comes from, or what it is in.
fn origin(draft: &Draft<'_>, steps: &[Step<'_>]) -> Input {
    let within = match (draft.value(), steps) {
        (Value::Map(map), [Step::Key(key), rest @ ..]) => map.get(*key).map(|item| origin(item, rest)),
        (Value::List(items), [Step::Index(index), rest @ ..]) => {
            items.get(*index).map(|item| origin(item, rest))
        }
        _ => None,
    };
    match (within, draft.origin().by, draft.origin().place()) {
        (Some(input @ (Input::Place(_) | Input::Named(_))), ..) => input,
        (_, By::Flag(name) | By::Environment(name), _) => Input::Named(name),
        (_, _, Some(place)) => Input::Place(place),
        (_, _, None) => Input::Nowhere,
    }
}
