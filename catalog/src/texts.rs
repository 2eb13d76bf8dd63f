//! The texts of a catalog's files after blobs have changed, gone and come: only the lines of those blobs differ.

pub(crate) mod document;
pub(crate) mod documents;
pub(crate) mod unread;

use std::collections::{BTreeMap, BTreeSet};

use olmkit_bundle::finding::Place;
use olmkit_bundle::yaml::write::WriteError;
use serde_json::Value as Json;

use crate::fbc::write::Format;
use crate::fbc::{At, Catalog};
use crate::json::{Layout, Tree};
use crate::load::CatalogFiles;
use document::{Editor, Edits};
use documents::keeps_line_breaks;

/// A text that cannot be changed as it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// A blob has no YAML form.
    #[error("cannot write the catalog")]
    Write(#[source] WriteError),
    /// A document cannot be changed in place, such as a value that aliases repeat elsewhere.
    #[error("cannot edit this document without changing other parts of it")]
    Document {
        /// The document.
        place: Box<Place>,
    },
    /// A file cannot take more documents, or lose some, such as one that ends in the middle of a value.
    #[error("cannot add or remove documents in `{path}`: the rest would be read as something else")]
    Documents {
        /// The file.
        path: String,
    },
}

impl TextError {
    /// Where the trouble is.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Document { place } => Some(place),
            _ => None,
        }
    }

    /// The way out, where there is one.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Document { .. } => {
                Some("replace its anchors and aliases with plain values, then run the command again")
            }
            _ => None,
        }
    }
}

/// A file that is different, new or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// The path below the catalog's directory; empty when the catalog is a single file.
    pub path: String,
    /// The text as it was; none for a new file.
    pub old: Option<String>,
    /// The text as it is going to be; none for a file that is removed.
    pub new: Option<String>,
}

/// The files of a catalog with what is to be changed in them.
pub(crate) struct Texts<'c, 'a, 'p> {
    catalog: &'c Catalog<'a>,
    format: Format,
    edits: BTreeMap<u32, Edits>,
    removed: BTreeMap<u32, BTreeSet<At>>,
    /// By path.
    more: BTreeMap<String, Vec<NewBlob<'p>>>,
}

/// A blob that a file gets.
struct NewBlob<'p> {
    tree: Tree<'p>,
    /// The document that it comes from, for files of YAML: its comments and the spelling of its values stay.
    document: Option<String>,
}

impl<'c, 'a, 'p> Texts<'c, 'a, 'p> {
    /// No change yet; new files get this format.
    pub(crate) fn new(catalog: &'c Catalog<'a>, format: Format) -> Self {
        Self { catalog, format, edits: BTreeMap::new(), removed: BTreeMap::new(), more: BTreeMap::new() }
    }

    /// The file that a package's blobs go to: that of its `olm.package`, or a file of its own, as opm lays catalogs out. Blobs of no package
    /// go to a file at the top.
    pub(crate) fn home(&self, package: &str, blob: Option<At>) -> String {
        let single = self.catalog.files.iter().find(|file| file.path.is_empty()).map(|_| String::new());
        let directory = if package.is_empty() { String::new() } else { format!("{package}/") };
        let own = || format!("{directory}catalog{}", self.format.extension());
        self.path(blob).or(single).unwrap_or_else(own)
    }

    /// The file that more blobs of a kind go to: where the last of them stands.
    pub(crate) fn target(&self, last: Option<At>, home: &str) -> String {
        self.path(last).unwrap_or_else(|| home.to_owned())
    }

    fn path(&self, at: Option<At>) -> Option<String> {
        Some(self.catalog.files.get(at?.file as usize)?.path.to_owned())
    }

    /// Adds a blob to a file, which need not exist.
    pub(crate) fn append(&mut self, path: &str, tree: Tree<'p>) {
        self.more.entry(path.to_owned()).or_default().push(NewBlob { tree, document: None });
    }

    /// The same with the document of another file that it comes from, if that is YAML.
    pub(crate) fn append_document(&mut self, path: &str, tree: Tree<'p>, document: Option<String>) {
        self.more.entry(path.to_owned()).or_default().push(NewBlob { tree, document });
    }

    /// Removes a blob.
    pub(crate) fn remove(&mut self, at: At) {
        self.removed.entry(at.file).or_default().insert(at);
    }

    /// Changes a blob's document in place from one value to another. It is read again, and has to be the new one: a change to a
    /// value that has aliases is refused, rather than the document written anew without its comments.
    ///
    /// # Errors
    /// When the document cannot be changed in place.
    pub(crate) fn set(&mut self, at: At, old: &Json, new: &Json) -> Result<(), TextError> {
        if old == new {
            return Ok(());
        }
        let Some(file) = self.catalog.files.get(at.file as usize) else { return Ok(()) };
        let text = file.source.text();
        let (from, to) = document(text, at);
        let part = &text[from..to];
        let edited = Editor::open(part).and_then(|mut editor| {
            editor.reconcile(old, new)?;
            reads_as(&editor.edits.apply(part), new).then_some(editor.edits)
        });
        let Some(edits) = edited else {
            return Err(TextError::Document { place: Box::new(self.catalog.place(at)) });
        };
        self.edits.entry(at.file).or_default().extend(edits, from);
        Ok(())
    }

    /// The files that are different, new or gone, by path.
    ///
    /// # Errors
    /// When a file would not be read as it should.
    pub(crate) fn finish(self) -> Result<Vec<ChangedFile>, TextError> {
        let mut changed = Vec::new();
        let mut blobs: BTreeMap<u32, Vec<At>> = BTreeMap::new();
        for at in self.catalog.places() {
            blobs.entry(at.file).or_default().push(at);
        }
        let paths: BTreeMap<&str, u32> =
            self.catalog.files.iter().zip(0..).map(|(file, number)| (file.path, number)).collect();
        let new_paths = self.more.keys().map(String::as_str).filter(|path| !paths.contains_key(path));
        let touched = self.edits.keys().chain(self.removed.keys()).copied();
        let touched = touched.chain(self.more.keys().filter_map(|path| paths.get(path.as_str()).copied()));
        let files: BTreeSet<u32> = touched.collect();
        let files = files.into_iter().map(|number| {
            let file = &self.catalog.files[number as usize];
            (file.path, Some(file.source.text()), Some(number))
        });
        for (path, text, number) in files.chain(new_paths.map(|path| (path, None, None))) {
            let old = text.unwrap_or_default();
            let all = number.and_then(|number| blobs.get(&number)).map_or(&[][..], Vec::as_slice);
            let gone = number.and_then(|number| self.removed.get(&number));
            let more = self.more.get(path).map_or(&[][..], Vec::as_slice);
            let path = path.to_owned();
            let kept = all.len() - gone.map_or(0, BTreeSet::len);
            if kept == 0 && more.is_empty() && !path.is_empty() {
                changed.push(ChangedFile { path, old: text.map(str::to_owned), new: None });
                continue;
            }
            if kept == 0 && more.is_empty() {
                changed.push(ChangedFile { path, old: text.map(str::to_owned), new: Some(String::new()) });
                continue;
            }
            let mut edits = number.and_then(|number| self.edits.get(&number)).cloned().unwrap_or_default();
            if let Some(gone) = gone {
                remove_documents(old, all, gone, &mut edits);
            }
            let mut new = edits.apply(old);
            if gone.is_some() && !old.ends_with('\n') && !keeps_line_breaks(&new) {
                new.truncate(new.trim_end_matches(['\n', '\r']).len());
            }
            append(&mut new, more, self.format).map_err(TextError::Write)?;
            if gone.is_some() || !more.is_empty() {
                let files = CatalogFiles::from_text(path.as_str(), new.as_str());
                let read = Catalog::parse(&files);
                if !read.faults.is_empty() || read.places().count() != kept + more.len() {
                    return Err(TextError::Documents { path });
                }
            }
            if text != Some(new.as_str()) {
                changed.push(ChangedFile { path, old: text.map(str::to_owned), new: Some(new) });
            }
        }
        changed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changed)
    }
}

/// The bytes of the document that a blob stands in. In block style that is from its first line, so that its indentation is
/// seen, up to the next document, since an alias at the end does not tell where it stands.
fn document(text: &str, at: At) -> (usize, usize) {
    let (start, end) = (at.span.start as usize, at.span.end as usize);
    if text[start..].starts_with('{') {
        return (start, end);
    }
    let line = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[start..].find("\n---").map_or(text.len(), |newline| start + newline + 1);
    (line, end)
}

/// Removes blobs of a file: in YAML with the separator before them, in JSON with the space between them. Comments at the start of the file and
/// behind documents stay, unless they are indented.
fn remove_documents(text: &str, all: &[At], gone: &BTreeSet<At>, edits: &mut Edits) {
    let mut all = all.to_vec();
    all.sort_unstable();
    let spans: Vec<(usize, usize, bool)> =
        all.iter().map(|at| (at.span.start as usize, at.span.end as usize, gone.contains(at))).collect();
    let mut from = 0;
    while let Some(first) = spans[from..].iter().position(|(.., gone)| *gone).map(|at| from + at) {
        let behind = spans[first..].iter().position(|(.., gone)| !*gone).map_or(spans.len(), |at| first + at);
        from = behind;
        let before_end = first.checked_sub(1).map_or(0, |before| spans[before].1);
        let next_start = spans.get(behind).map(|(start, ..)| *start);
        let (start, end) = (spans[first].0, spans[behind - 1].1);
        let before = separators(text, before_end, start).last();
        let after = separators(text, end, next_start.unwrap_or(text.len())).next();
        let is_stream = before.is_none() && after.is_none();
        if is_stream && (first > 0 || next_start.is_some()) {
            match next_start {
                Some(next) => edits.replace(start, next, String::new()),
                None => edits.replace(before_end, end, String::new()),
            }
            continue;
        }
        let (from, to) = match (before, after) {
            // Comments that stay go to the document before, which is there, or else to the next.
            (Some((from, _)), Some((to, _))) if first > 0 => (from, to),
            (Some((from, _)), None) => (from, text.len()),
            (before, Some((_, to))) => (before.map_or(0, |(_, behind)| behind), to),
            (None, None) => (0, text.len()),
        };
        // What stands before the first document speaks of the file, and what stands after a document perhaps of the next.
        let head = if first == 0 { comments(text, from, start.max(from)).collect() } else { Vec::new() };
        let tails = (first..behind).flat_map(|at| {
            let next = spans.get(at + 1).map_or(text.len(), |(next, ..)| *next);
            let end = separators(text, spans[at].1, next).next().map_or(next, |(separator, _)| separator);
            comments(text, spans[at].1, end)
        });
        let kept: Vec<&str> = head.into_iter().chain(tails).collect();
        edits.replace(from, to, kept.concat());
    }
}

/// The lines between two places that separate documents: where each starts, and where the next line does.
pub(crate) fn separators(text: &str, from: usize, to: usize) -> impl Iterator<Item = (usize, usize)> {
    lines(text, from, to).filter(|(_, line)| line.starts_with("---")).map(|(at, line)| (at, at + line.len()))
}

/// The comments between two places that have lines of their own and are not indented.
fn comments(text: &str, from: usize, to: usize) -> impl Iterator<Item = &str> {
    lines(text, from, to).map(|(_, line)| line).filter(|line| line.starts_with('#'))
}

/// The lines that start between two places, with their line breaks.
fn lines(text: &str, from: usize, to: usize) -> impl Iterator<Item = (usize, &str)> {
    let is_start = from == 0 || text.as_bytes()[from - 1] == b'\n';
    let mut at = if is_start {
        from
    } else {
        text[from..].find('\n').map_or(text.len(), |newline| from + newline + 1)
    };
    std::iter::from_fn(move || {
        let line = text[at..].split_inclusive('\n').next().filter(|_| at < to)?;
        at += line.len();
        Some((at - line.len(), line))
    })
}

/// Whether a text is one blob, and this one.
fn reads_as(text: &str, wanted: &Json) -> bool {
    let files = CatalogFiles::from_text("", text);
    let catalog = Catalog::parse(&files);
    catalog.faults.is_empty()
        && catalog.places().count() == 1
        && catalog.blobs().next().as_ref() == Some(wanted)
}

/// Writes blobs behind a text, in the way the text is written.
fn append(text: &mut String, blobs: &[NewBlob<'_>], format: Format) -> Result<(), WriteError> {
    if blobs.is_empty() {
        return Ok(());
    }
    let crlf = text.contains("\r\n");
    let newline = if crlf { "\r\n" } else { "\n" };
    let is_open = !text.is_empty() && !text.ends_with('\n');
    if is_open {
        *text += newline;
    }
    let layout = match text.trim_start().starts_with('{') && !text.contains("\n---") {
        true => Some(layout_of(text)),
        false if text.is_empty() && format == Format::Json => Some(Layout::OPM),
        false => None,
    };
    for NewBlob { tree, document } in blobs {
        let blob = match (&layout, document) {
            (Some(layout), _) => tree.to_text(layout) + "\n",
            (None, Some(document)) => format!("---\n{}", document.replace("\r\n", "\n")),
            (None, None) => Format::Yaml.text(tree.clone())?,
        };
        *text += &if crlf { blob.replace('\n', newline) } else { blob };
    }
    if is_open {
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
    }
    Ok(())
}

/// The white space that JSON has: a line for each blob, or lines for all, as the first of them.
fn layout_of(text: &str) -> Layout<'static> {
    let text = text.trim_start();
    match text.as_bytes().get(1) {
        Some(b'\n' | b'\r') => {
            match text.find('"').map(|quote| quote - text[..quote].rfind('\n').map_or(0, |at| at + 1)) {
                Some(2) => Layout::Lines { unit: "  ", margin: "" },
                _ => Layout::OPM,
            }
        }
        _ if text.find("\":").is_some_and(|at| text[at + 2..].starts_with(' ')) => {
            Layout::Line { space: " " }
        }
        _ => Layout::COMPACT,
    }
}
