//! Text to a bundle: every file's documents, the ClusterServiceVersion, the annotations. Pure, and never refuses.
//!
//! A broken bundle is still a [`Bundle`]: what could not be read is kept as the error it is, and the rules of
//! [`crate::validate`] report it. Code that needs a sound bundle asks for its parts and gets none.

use std::collections::HashMap;
use std::sync::Arc;

use crate::annotations;
use crate::csv::{self, ClusterServiceVersion};
use crate::finding::{Code, Finding, MadeBy, Place};
use crate::generate::{HEADER, keys};
use crate::load::{BundleFile, BundleFiles, Content};
use crate::source::{Source, Span};
use crate::yaml::decode::{self, DecodeError, Noted, UnknownField};
use crate::yaml::{self, Document, Mapping, Node, Step, SyntaxError};

/// A bundle as far as it could be read.
#[derive(Debug)]
pub struct Bundle<'a> {
    /// The directory or reference as the user named it.
    pub name: &'a str,
    /// Every file, sorted by path.
    pub files: Vec<File<'a>>,
    /// The first ClusterServiceVersion of the manifests.
    csv: Option<CsvFile>,
}

/// A file of a bundle.
#[derive(Debug)]
pub struct File<'a> {
    /// The path below the bundle's directory.
    pub path: &'a str,
    /// What the file is there for.
    pub role: Role,
    /// The text; empty if missing.
    pub source: Source<'a>,
    /// What was read of it.
    pub content: &'a Content,
    /// Its YAML documents; none are read of files that are neither manifests nor metadata.
    pub documents: Documents<'a>,
}

/// The documents of a text, each read or not. Files with the same text share them.
pub type Documents<'a> = Arc<[Result<Document<'a>, SyntaxError>]>;

/// Texts that were read already: versions of one operator have most of their files in common.
#[derive(Debug, Default)]
pub struct Texts<'a>(HashMap<usize, Vec<(&'a str, Documents<'a>)>>);

impl<'a> Texts<'a> {
    fn read(&mut self, text: &'a str) -> Documents<'a> {
        // Comparing is ten times as fast as hashing, and texts of one length are few.
        let same_length = self.0.entry(text.len()).or_default();
        if let Some((_, documents)) = same_length.iter().find(|(other, _)| *other == text) {
            return documents.clone();
        }
        let documents: Documents<'a> = yaml::documents(text).collect();
        same_length.push((text, documents.clone()));
        documents
    }
}

/// What a file of a bundle is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A file in `manifests/`.
    Manifest,
    /// A file in `metadata/`.
    Metadata,
    /// Anything else.
    Other,
}

/// The ClusterServiceVersion as a typed value, beside its document.
#[derive(Debug)]
struct CsvFile {
    file: usize,
    typed: Result<(ClusterServiceVersion, Noted), DecodeError>,
}

/// The ClusterServiceVersion of a bundle: the typed value, the document, the file.
#[derive(Clone, Copy, Debug)]
pub struct Csv<'b, 'a> {
    /// The typed value.
    pub typed: &'b ClusterServiceVersion,
    /// Keys that the type does not have.
    pub unknown: &'b [UnknownField],
    /// Numbers and booleans that were taken for text.
    pub as_text: &'b [Span],
    /// The object it was read from.
    pub object: Object<'b, 'a>,
}

/// A Kubernetes object: a document that is a map, and the text it stands in.
#[derive(Clone, Copy, Debug)]
pub struct Object<'b, 'a> {
    /// The text.
    pub source: &'b Source<'a>,
    /// The document's value, a map.
    pub root: &'b Node<'a>,
}

/// The annotations of a bundle.
#[derive(Clone, Copy, Debug)]
pub struct Annotations<'b, 'a> {
    /// The file.
    pub file: &'b File<'a>,
    /// The map under `annotations`.
    pub map: &'b Mapping<'a>,
}

impl<'a> Bundle<'a> {
    /// Reads the documents of every manifest and metadata file.
    ///
    /// ```
    /// use olmkit_bundle::{load::{BundleFile, BundleFiles, Content}, parse::Bundle};
    /// let text = "kind: ClusterServiceVersion\nmetadata: {name: redis.v1.0.0}\n";
    /// let files = BundleFiles {
    ///     name: "bundle".into(),
    ///     files: vec![BundleFile { path: "manifests/redis.yaml".into(), content: Content::Text(text.into()) }],
    /// };
    /// assert_eq!(Bundle::parse(&files).csv().unwrap().typed.name(), "redis.v1.0.0");
    /// ```
    pub fn parse(files: &'a BundleFiles) -> Self {
        Self::parse_sharing(files, &mut Texts::default())
    }

    /// As [`Bundle::parse`], reading no text twice that `texts` knows.
    pub fn parse_sharing(files: &'a BundleFiles, texts: &mut Texts<'a>) -> Self {
        let parsed: Vec<_> =
            files.files.iter().map(|file| File::parse(file, files.display_path(file), texts)).collect();
        let csv = parsed.iter().enumerate().find_map(|(at, file)| {
            let object = file.object().filter(|_| file.is_manifest())?;
            (object.kind() == csv::KIND)
                .then(|| CsvFile { file: at, typed: decode::decode_noting(object.root) })
        });
        Self { name: &files.name, files: parsed, csv }
    }

    /// The ClusterServiceVersion, if there is one that fits its type.
    pub fn csv(&self) -> Option<Csv<'_, 'a>> {
        let CsvFile { file, typed } = self.csv.as_ref()?;
        let (typed, Noted { unknown, as_text, .. }) = typed.as_ref().ok()?;
        Some(Csv { typed, unknown, as_text, object: self.files[*file].object()? })
    }

    /// The object that should be the ClusterServiceVersion, whether it fits the type or not.
    pub fn csv_object(&self) -> Option<Object<'_, 'a>> {
        self.files[self.csv.as_ref()?.file].object()
    }

    /// Why the ClusterServiceVersion does not fit its type, if it does not.
    pub fn csv_error(&self) -> Option<(Object<'_, 'a>, &DecodeError)> {
        let CsvFile { file, typed } = self.csv.as_ref()?;
        Some((self.files[*file].object()?, typed.as_ref().err()?))
    }

    /// The objects in `manifests/` itself: the first document of each file there.
    pub fn objects(&self) -> impl Iterator<Item = Object<'_, 'a>> {
        self.manifests().filter_map(File::object)
    }

    /// The CustomResourceDefinitions among [`Bundle::objects`].
    pub fn crds(&self) -> impl Iterator<Item = Object<'_, 'a>> {
        self.objects().filter(|object| object.kind() == "CustomResourceDefinition")
    }

    /// The annotations: of the files in `metadata/` the first that has a map of that name.
    pub fn annotations(&self) -> Option<Annotations<'_, 'a>> {
        self.metadata().find_map(|file| {
            let map = file.root()?.as_mapping()?.get_folded("annotations")?.as_mapping()?;
            Some(Annotations { file, map })
        })
    }

    /// The files in `manifests/` itself, where OLM looks.
    pub fn manifests(&self) -> impl Iterator<Item = &File<'a>> {
        self.files.iter().filter(|file| file.is_manifest())
    }

    /// The files in `metadata/` itself, where OLM looks.
    pub fn metadata(&self) -> impl Iterator<Item = &File<'a>> {
        self.files.iter().filter(|file| file.is_metadata())
    }

    /// The directory itself, as a place for findings that have no file.
    pub fn place(&self) -> Place {
        Place::file(self.name)
    }
}

impl<'a> File<'a> {
    fn parse(file: &'a BundleFile, display_path: String, texts: &mut Texts<'a>) -> Self {
        let role = match file.path.split_once('/') {
            Some(("manifests", _)) => Role::Manifest,
            Some(("metadata", _)) => Role::Metadata,
            _ => Role::Other,
        };
        let text = file.content.text().unwrap_or("");
        let documents = if role == Role::Other { Arc::default() } else { texts.read(text) };
        Self {
            path: &file.path,
            role,
            source: Source::new(display_path, text),
            content: &file.content,
            documents,
        }
    }

    /// The value of the first document, if it could be read.
    pub fn root(&self) -> Option<&Node<'a>> {
        self.documents.first()?.as_ref().ok().map(|document| &document.root)
    }

    /// The first document as an object, if it is a map.
    pub fn object(&self) -> Option<Object<'_, 'a>> {
        let root = self.root().filter(|root| root.as_mapping().is_some())?;
        Some(Object { source: &self.source, root })
    }

    /// Whether it lies in `manifests/` itself and is not hidden.
    pub fn is_manifest(&self) -> bool {
        self.name_in(annotations::MANIFESTS_DIR).is_some_and(|name| !name.starts_with('.'))
    }

    /// Whether it lies in `metadata/` itself, hidden or not.
    pub fn is_metadata(&self) -> bool {
        self.name_in(annotations::METADATA_DIR).is_some()
    }

    /// The name of a file that lies in a directory itself.
    fn name_in(&self, directory: &str) -> Option<&'a str> {
        let name = self.path.strip_prefix(directory)?;
        (!name.contains('/') && !matches!(self.content, Content::Directory)).then_some(name)
    }

    /// The file as a whole, as a place.
    pub fn place(&self) -> Place {
        Place::file(self.source.path())
    }

    /// A span of the file, as a place.
    pub fn place_at(&self, span: Span) -> Place {
        Place::new(&self.source, span)
    }
}

impl<'b, 'a> Object<'b, 'a> {
    /// The kind; empty if missing.
    pub fn kind(&self) -> &'b str {
        self.text(&["kind".into()])
    }

    /// Group and version, empty when there are none.
    pub fn api_version(&self) -> &'b str {
        self.text(&["apiVersion".into()])
    }

    /// `metadata.name`; empty if missing.
    pub fn name(&self) -> &'b str {
        self.text(&["metadata".into(), "name".into()])
    }

    /// `Kind/name`, for messages.
    pub fn id(&self) -> String {
        format!("{}/{}", self.kind(), self.name())
    }

    /// What findings about the object name as their subject: a ClusterServiceVersion's name, `Kind/name` of others, and
    /// the file of an object without a name.
    pub fn subject(&self) -> String {
        match (self.kind(), self.name()) {
            (_, "") => self.source.path().to_owned(),
            (csv::KIND, name) => name.to_owned(),
            _ => self.id(),
        }
    }

    /// The text at a path; empty if missing.
    pub fn text(&self, path: &[Step<'_>]) -> &'b str {
        self.root.at(path).and_then(Node::as_str).unwrap_or("")
    }

    /// A span of the text, as a place.
    pub fn place_at(&self, span: Span) -> Place {
        let place = Place::new(self.source, span);
        if self.is_generated() { place.made_by(keys::of(&self.root.path_to(span))) } else { place }
    }

    /// A path in the object, as a place: the value where there is one, else the last key on the way to it.
    pub fn place(&self, path: &[Step<'_>]) -> Place {
        self.place_at(self.root.locate(path)).made_by(self.made_by(path))
    }

    /// What `bundle generate` made a field of the object from.
    pub(crate) fn made_by(&self, path: &[Step<'_>]) -> MadeBy {
        if self.is_generated() { keys::of(path) } else { MadeBy::default() }
    }

    /// Whether it is a ClusterServiceVersion that `bundle generate` wrote.
    fn is_generated(&self) -> bool {
        self.source.text().starts_with(HEADER) && self.kind() == csv::KIND
    }

    /// A finding about a path in the object.
    pub fn finding(&self, code: &'static Code, message: impl Into<String>, path: &[Step<'_>]) -> Finding {
        Finding::new(code, message).at(self.place(path)).subject(self.subject())
    }
}

impl Object<'_, '_> {
    /// A finding about a key of a map in the object, rather than its value.
    pub fn finding_at_key(
        &self,
        code: &'static Code,
        message: impl Into<String>,
        map: &[&str],
        key: &str,
    ) -> Finding {
        let map: Vec<_> = map.iter().map(|key| Step::from(*key)).collect();
        let finding = self.finding(code, message, &map);
        match self.root.at(&map).and_then(|node| node.as_mapping()?.entry(key)) {
            Some(entry) => finding.at(self.place_at(entry.key_span)),
            None => finding,
        }
    }
}

impl Annotations<'_, '_> {
    /// The value of a key as text.
    pub fn get(&self, key: &str) -> Option<String> {
        self.map.get(key).and_then(Node::to_text).map(Into::into)
    }

    /// The package; empty if missing.
    pub fn package(&self) -> String {
        self.get(annotations::PACKAGE).unwrap_or_default()
    }

    /// The channels, without blanks and empty names.
    pub fn channels(&self) -> Vec<String> {
        let channels = self.get(annotations::CHANNELS).unwrap_or_default();
        channels.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// A key, as a place; the map itself when the key is absent.
    pub fn place(&self, key: &str) -> Place {
        let span = match self.map.entry(key) {
            Some(entry) => entry.value.span,
            None => self.file.root().map_or(Span::at(0), |root| root.locate(&["annotations".into()])),
        };
        let is_generated = self.file.source.text().starts_with(HEADER);
        self.file.place_at(span).made_by(is_generated.then(|| keys::of_bundle_annotation(key)).flatten())
    }
}
