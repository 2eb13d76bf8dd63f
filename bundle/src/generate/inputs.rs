//! Places in a bundle that was made, as places in what it was made of: nobody can open a file that was not written.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::draft::{By, Draft, Value};
use super::output;
use super::package_file::PackageFile;
use crate::finding::{Finding, Place};
use crate::parse::Object;
use crate::source::Source;
use crate::yaml::{self, Document, Node, Step, Value as Yaml};

/// What a bundle was made of.
pub(super) struct Inputs<'d, 'm> {
    /// The bundle's name, which its paths begin with.
    pub(super) name: &'d str,
    /// Its texts by path.
    files: BTreeMap<&'d str, Text<'d, 'm>>,
    /// The ClusterServiceVersion with the origin of everything in it.
    draft: &'d Draft<'m>,
    /// The package file.
    file: Option<&'d PackageFile<'d>>,
}

/// A text of a bundle. There may be a finding for every line of it: it is read once, when the first one asks.
struct Text<'d, 'm> {
    source: Source<'d>,
    document: OnceCell<Option<Document<'d>>>,
    /// The manifest that it carries.
    object: Option<&'d Object<'m, 'm>>,
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

impl<'d, 'm> Inputs<'d, 'm> {
    pub(super) fn new(
        name: &'d str,
        files: &'d BTreeMap<String, String>,
        draft: &'d Draft<'m>,
        manifests: &output::Manifests<'d, 'm>,
        file: Option<&'d PackageFile<'d>>,
    ) -> Self {
        let text = |text: &'d String| Text {
            source: Source::new("", text),
            document: OnceCell::new(),
            object: None,
        };
        let mut files: BTreeMap<_, _> = files.iter().map(|(path, own)| (path.as_str(), text(own))).collect();
        for object in manifests.carried() {
            if let Some(text) = files.get_mut(format!("manifests/{}", output::file_name(object)).as_str()) {
                text.object.get_or_insert(object);
            }
        }
        Self { name, files, draft, file }
    }

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
        if let Some(object) = text.object {
            return Some(Input::Place(object.place(&text.steps(place))));
        }
        // Their lists are those of the package file.
        if let (true, Some(file)) = (output::LISTS.map(|(_, path)| path).contains(&path), self.file) {
            return Some(Input::Place(file.place(&text.steps(place))));
        }
        let is_csv = path.ends_with(output::CSV_ENDING);
        Some(if is_csv { origin(self.draft, &text.steps(place)) } else { Input::Nowhere })
    }
}

impl Text<'_, '_> {
    /// The path of the value that a place of the text marks.
    fn steps(&self, place: &Place) -> Vec<Step<'_>> {
        let document = self.document.get_or_init(|| yaml::first_document(self.source.text()).ok());
        let mut steps = Vec::new();
        if let (Some(document), Some(position)) = (document, place.position) {
            let start = self.source.line_start(position.line).unwrap_or(0) as usize;
            let rest = self.source.text()[start..].chars();
            let offset = start + rest.take(position.column as usize - 1).map(char::len_utf8).sum::<usize>();
            walk(&document.root, offset as u32, &mut steps);
        }
        steps
    }
}

/// The steps to the innermost value that a byte belongs to, its key included.
fn walk<'n>(node: &'n Node<'_>, offset: u32, steps: &mut Vec<Step<'n>>) {
    match &node.value {
        Yaml::Mapping(map) => {
            let entries = map.iter().as_slice();
            let behind = entries.partition_point(|entry| entry.key_span.start <= offset);
            if let Some(entry) = entries[..behind].last() {
                steps.push(Step::Key(&entry.key));
                if entry.value.span.start <= offset {
                    walk(&entry.value, offset, steps);
                }
            }
        }
        Yaml::Sequence(items) => {
            if let Some(index) = items.partition_point(|item| item.span.start <= offset).checked_sub(1) {
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
