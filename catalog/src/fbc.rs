//! File-based catalogs as they stand on disk: packages, channels, bundles, deprecations, and whatever else is there.
//!
//! These are wire types: open, with OLM's own names, read as opm reads them and checked no further than that each field has
//! the type it must have. Nothing is lost: fields that a schema does not have are kept in `unknown`, schemas that are not
//! OLM's in [`Catalog::others`], and every value knows the bytes it stands in. What does not fit is a [`Fault`], and the
//! rest of the catalog is read all the same.
//!
//! Start at [`Catalog`]; [`write`](mod@write) is the way back. [`crate::graph`] is the checked counterpart.

mod read;
mod stream;
mod value;
pub mod write;

use olmkit_bundle::finding::Place;
use olmkit_bundle::load::Content;
use olmkit_bundle::source::{Source, Span};

use crate::load::CatalogFiles;
use olmkit_bundle::parallel::in_parallel;

pub use value::{Member, Text, Value};

/// The schemas that OLM gives a meaning to.
pub mod schema {
    /// A package.
    pub const PACKAGE: &str = "olm.package";
    /// A channel of a package.
    pub const CHANNEL: &str = "olm.channel";
    /// A bundle of a package.
    pub const BUNDLE: &str = "olm.bundle";
    /// What of a package is deprecated.
    pub const DEPRECATIONS: &str = "olm.deprecations";
}

/// The types of properties that OLM gives a meaning to.
pub mod property {
    /// The bundle's package and version; exactly one for each bundle.
    pub const PACKAGE: &str = "olm.package";
    /// A package that must be installed as well.
    pub const PACKAGE_REQUIRED: &str = "olm.package.required";
    /// An API that the bundle provides.
    pub const GVK: &str = "olm.gvk";
    /// An API that must be provided by somebody.
    pub const GVK_REQUIRED: &str = "olm.gvk.required";
    /// A manifest of the bundle, in base64.
    pub const BUNDLE_OBJECT: &str = "olm.bundle.object";
    /// What consoles show of the ClusterServiceVersion.
    pub const CSV_METADATA: &str = "olm.csv.metadata";
    /// A channel; of old tools.
    pub const CHANNEL: &str = "olm.channel";
}

/// A catalog as far as it could be read, in the order of its files.
#[derive(Debug, Default)]
pub struct Catalog<'a> {
    /// The directory or reference as the user named it.
    pub name: &'a str,
    /// Its files.
    pub files: Vec<File<'a>>,
    /// Its `olm.package` blobs.
    pub packages: Vec<Package<'a>>,
    /// Its `olm.channel` blobs.
    pub channels: Vec<Channel<'a>>,
    /// Its `olm.bundle` blobs.
    pub bundles: Vec<Bundle<'a>>,
    /// Its `olm.deprecations` blobs.
    pub deprecations: Vec<Deprecations<'a>>,
    /// Blobs of other schemas.
    pub others: Vec<Other<'a>>,
    /// What could not be read.
    pub faults: Vec<Fault>,
}

/// A file of a catalog.
#[derive(Debug)]
pub struct File<'a> {
    /// The path below the catalog's directory.
    pub path: &'a str,
    /// The text; empty if missing.
    pub source: Source<'a>,
}

/// A place in a catalog: a file by its number in [`Catalog::files`], and the bytes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The file.
    pub file: u32,
    /// The bytes.
    pub span: Span,
}

/// An `olm.package` blob.
#[derive(Clone, Debug, Default)]
pub struct Package<'a> {
    /// Where it stands.
    pub at: At,
    /// Its name.
    pub name: Text<'a>,
    /// The channel that is subscribed to when none is named.
    pub default_channel: Text<'a>,
    /// The icon that consoles show.
    pub icon: Option<Icon<'a>>,
    /// Markdown that consoles show.
    pub description: Text<'a>,
    /// Properties; OLM uses none here.
    pub properties: Vec<Property<'a>>,
    /// Fields that the schema does not have.
    pub unknown: Vec<Member<'a>>,
}

/// A picture.
#[derive(Clone, Debug, Default)]
pub struct Icon<'a> {
    /// The picture's bytes in base64.
    pub data: Text<'a>,
    /// Its media type, such as `image/svg+xml`.
    pub media_type: Text<'a>,
    /// Fields that the schema does not have.
    pub unknown: Vec<Member<'a>>,
}

/// An `olm.channel` blob.
#[derive(Clone, Debug, Default)]
pub struct Channel<'a> {
    /// Where it stands.
    pub at: At,
    /// Its name.
    pub name: Text<'a>,
    /// The package it belongs to.
    pub package: Text<'a>,
    /// The bundles in it, and how one follows another.
    pub entries: Vec<Entry<'a>>,
    /// Properties; OLM uses none here.
    pub properties: Vec<Property<'a>>,
    /// Fields that the schema does not have.
    pub unknown: Vec<Member<'a>>,
}

/// A bundle's place in a channel.
#[derive(Clone, Debug, Default)]
pub struct Entry<'a> {
    /// The bytes it stands in.
    pub span: Span,
    /// The bundle's name.
    pub name: Text<'a>,
    /// The bundle that it takes over from.
    pub replaces: Text<'a>,
    /// Bundles that may jump to it and are no longer offered.
    pub skips: Vec<Text<'a>>,
    /// Installed versions in this range may jump to it.
    pub skip_range: Text<'a>,
    /// Fields that the schema does not have.
    pub unknown: Vec<Member<'a>>,
}

/// An `olm.bundle` blob.
#[derive(Clone, Debug, Default)]
pub struct Bundle<'a> {
    /// Where it stands.
    pub at: At,
    /// Its name, which is that of its ClusterServiceVersion.
    pub name: Text<'a>,
    /// The package it belongs to.
    pub package: Text<'a>,
    /// The image it is pulled from; without one its manifests are properties.
    pub image: Text<'a>,
    /// What it provides, requires, and is.
    pub properties: Vec<Property<'a>>,
    /// The images to mirror along.
    pub related_images: Vec<RelatedImage<'a>>,
    /// Fields that the schema does not have.
    pub unknown: Vec<Member<'a>>,
}

/// A property: a type, and a value of the shape that goes with it.
#[derive(Clone, Debug, Default)]
pub struct Property<'a> {
    /// The bytes it stands in.
    pub span: Span,
    /// The type, such as [`property::GVK`].
    pub kind: Text<'a>,
    /// The value; none when the field is absent.
    pub value: Option<Value<'a>>,
    /// Fields that the schema does not have.
    pub unknown: Vec<Member<'a>>,
}

/// An image that a bundle uses.
#[derive(Clone, Debug, Default)]
pub struct RelatedImage<'a> {
    /// What it is for; often empty.
    pub name: Text<'a>,
    /// The reference.
    pub image: Text<'a>,
    /// Fields that the schema does not have.
    pub unknown: Vec<Member<'a>>,
}

/// An `olm.deprecations` blob.
#[derive(Clone, Debug, Default)]
pub struct Deprecations<'a> {
    /// Where it stands.
    pub at: At,
    /// The package it speaks of.
    pub package: Text<'a>,
    /// What is deprecated.
    pub entries: Vec<Deprecation<'a>>,
    /// Fields that the schema does not have.
    pub unknown: Vec<Member<'a>>,
}

/// One deprecated thing.
#[derive(Clone, Debug, Default)]
pub struct Deprecation<'a> {
    /// The bytes it stands in.
    pub span: Span,
    /// What is deprecated.
    pub reference: Reference<'a>,
    /// What users are told.
    pub message: Text<'a>,
    /// Fields that the schema does not have.
    pub unknown: Vec<Member<'a>>,
}

/// A reference to a blob of the same package.
#[derive(Clone, Debug, Default)]
pub struct Reference<'a> {
    /// Its schema: that of packages, channels or bundles.
    pub schema: Text<'a>,
    /// Its name; empty for the package.
    pub name: Text<'a>,
    /// Fields that the schema does not have.
    pub unknown: Vec<Member<'a>>,
}

/// A blob of a schema that is not OLM's.
#[derive(Clone, Debug, Default)]
pub struct Other<'a> {
    /// Where it stands.
    pub at: At,
    /// Its schema.
    pub schema: Text<'a>,
    /// The package it belongs to, if any.
    pub package: Text<'a>,
    /// Its name, if any.
    pub name: Text<'a>,
    /// All its fields, those above among them.
    pub members: Vec<Member<'a>>,
}

/// Something in a file that could not be read as what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub at: At,
    /// What.
    pub kind: FaultKind,
}

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The file has no text; why not.
    NoText(String),
    /// It is neither YAML nor JSON; what the parser says.
    Syntax(String),
    /// A blob is not a map but something else.
    NotAMap(&'static str),
    /// A blob has no schema.
    NoSchema,
    /// Two keys of a blob differ in nothing but case.
    DuplicateKeys {
        /// The first of them.
        first: String,
        /// The other one.
        second: String,
    },
    /// A field holds another kind of value than it must.
    WrongType {
        /// The field, from the blob on: `entries[2].name`.
        field: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
}

impl<'a> Catalog<'a> {
    /// Reads the blobs of every file.
    ///
    /// ```
    /// use olmkit_catalog::{fbc::Catalog, load::CatalogFiles};
    /// let files = CatalogFiles::from_text("catalog.yaml", "schema: olm.package\nname: redis\n---\nschema: my.note\n");
    /// let catalog = Catalog::parse(&files);
    /// assert_eq!(catalog.packages[0].name.as_str(), "redis");
    /// assert_eq!(catalog.others[0].schema.as_str(), "my.note");
    /// ```
    pub fn parse(files: &'a CatalogFiles) -> Self {
        let mut catalog = Self { name: &files.name, ..Self::default() };
        let mut parts = Vec::new();
        for (number, file) in (0..).zip(&files.files) {
            let text = file.content.text().unwrap_or_default();
            catalog
                .files
                .push(File { path: &file.path, source: Source::new(files.display_path(file), text) });
            parts.extend(stream::parts(text).into_iter().map(|part| (number, part)));
        }
        let text = |number: u32| catalog.files[number as usize].source.text();
        let read = in_parallel(&parts, |(number, part)| {
            let values = stream::part_values(text(*number), part)?;
            let mut catalog = Self::default();
            values.into_iter().for_each(|value| read::blob(&mut catalog, *number, value));
            Some(catalog)
        });
        let mut read = parts.into_iter().map(|(number, _)| number).zip(read).peekable();
        for (number, file) in (0..).zip(&files.files) {
            let parts = std::iter::from_fn(|| read.next_if(|(of, _)| *of == number).map(|(_, part)| part));
            // All parts are taken, whether or not there is a fault in one of them.
            match parts.collect::<Vec<_>>().into_iter().collect::<Option<Vec<_>>>() {
                Some(parts) => parts.into_iter().for_each(|part| catalog.take(part)),
                None => catalog.read_whole(number),
            }
            if file.content.text().is_none() {
                let at = At { file: number, span: Span::default() };
                catalog.faults.push(Fault { at, kind: FaultKind::NoText(why_no_text(&file.content)) });
            }
        }
        catalog
    }

    /// Takes over the blobs and faults of a part.
    fn take(&mut self, mut part: Self) {
        self.faults.append(&mut part.faults);
        self.merge(part);
    }

    /// Reads a file that has a fault.
    fn read_whole(&mut self, number: u32) {
        for value in stream::values(self.files[number as usize].source.text()) {
            match value {
                Ok(value) => read::blob(self, number, value),
                Err(error) => {
                    let at = At { file: number, span: error.span };
                    self.faults.push(Fault { at, kind: FaultKind::Syntax(error.message) });
                }
            }
        }
    }

    /// A catalog of one file without any blobs.
    pub(crate) fn empty(name: &'a str, text: &'a str) -> Self {
        let file = File { path: "", source: Source::new(name.to_owned(), text) };
        Self { name, files: vec![file], ..Self::default() }
    }

    /// Reads a value of the last file as a blob.
    pub(crate) fn add(&mut self, value: Value<'a>) {
        let file = self.files.len().saturating_sub(1) as u32;
        read::blob(self, file, value);
    }

    /// Adds the blobs of another catalog, for writing: their places are no longer known.
    pub fn merge(&mut self, other: Self) {
        self.packages.extend(other.packages);
        self.channels.extend(other.channels);
        self.bundles.extend(other.bundles);
        self.deprecations.extend(other.deprecations);
        self.others.extend(other.others);
    }

    /// Where its blobs stand, by schema.
    pub(crate) fn places(&self) -> impl Iterator<Item = At> {
        let known = self.packages.iter().map(|blob| blob.at).chain(self.channels.iter().map(|blob| blob.at));
        let known = known.chain(self.bundles.iter().map(|blob| blob.at));
        known
            .chain(self.deprecations.iter().map(|blob| blob.at))
            .chain(self.others.iter().map(|blob| blob.at))
    }

    /// Its blobs with their fields in order and their places, by schema.
    pub(crate) fn trees(&self) -> impl Iterator<Item = (At, crate::json::Tree<'_>)> {
        let known = self.packages.iter().map(|blob| (blob.at, blob.tree()));
        let known = known.chain(self.channels.iter().map(|blob| (blob.at, blob.tree())));
        let known = known.chain(self.bundles.iter().map(|blob| (blob.at, blob.tree())));
        let known = known.chain(self.deprecations.iter().map(|blob| (blob.at, blob.tree())));
        known.chain(self.others.iter().map(|blob| (blob.at, blob.tree())))
    }

    /// Its blobs in JSON, in the same order.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = serde_json::Value> {
        self.trees().map(|(_, tree)| tree.into_json())
    }

    /// Where its blobs stand, and the packages that they belong to; empty for blobs of none.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (At, &str)> {
        let known = self.packages.iter().map(|blob| (blob.at, blob.name.as_str()));
        let known = known.chain(self.channels.iter().map(|blob| (blob.at, blob.package.as_str())));
        let known = known.chain(self.bundles.iter().map(|blob| (blob.at, blob.package.as_str())));
        let known = known.chain(self.deprecations.iter().map(|blob| (blob.at, blob.package.as_str())));
        known.chain(self.others.iter().map(|blob| (blob.at, blob.package.as_str())))
    }

    /// Whether all values can be written anew. In a file of JSON values that nobody looked at are not read: a number may be too
    /// large, a list may nest too deep, a text may hold half of a surrogate pair.
    ///
    /// ```
    /// use olmkit_catalog::{fbc::Catalog, load::CatalogFiles};
    /// let files = CatalogFiles::from_text("catalog.json", r#"{"schema": "my.note", "n": 1e400}"#);
    /// assert!(Catalog::parse(&files).check_values().is_err());
    /// ```
    ///
    /// # Errors
    /// The first value that would be lost.
    pub fn check_values(&self) -> Result<(), Fault> {
        let mut places: Vec<At> = self.places().collect();
        places.sort_unstable();
        let check = |at: &At| {
            let file = self.files.get(at.file as usize).filter(|file| stream::is_json(file.source.text()));
            file.map_or(Ok(()), |file| stream::check_value(file.source.text(), at.span))
        };
        in_parallel(&places, check).into_iter().zip(&places).try_for_each(|(checked, at)| {
            checked.map_err(|error| Fault { at: at.with(error.span), kind: FaultKind::Syntax(error.message) })
        })
    }

    /// The numbers in JSON that no 64-bit float holds; at most one of each blob.
    pub(crate) fn too_large_numbers(&self) -> Vec<At> {
        let mut places: Vec<At> = self.places().collect();
        places.sort_unstable();
        let check = |at: &At| {
            let file = self.files.get(at.file as usize).filter(|file| stream::is_json(file.source.text()))?;
            stream::too_large_number(file.source.text(), at.span).map(|span| at.with(span))
        };
        in_parallel(&places, check).into_iter().flatten().collect()
    }

    /// A place, as findings name it.
    pub fn place(&self, at: At) -> Place {
        match self.files.get(at.file as usize) {
            Some(file) if file.source.text().is_empty() => Place::file(file.source.path()),
            Some(file) => Place::new(&file.source, at.span),
            None => Place::file(self.name),
        }
    }

    /// The text that stands at a place.
    pub fn text(&self, at: At) -> &'a str {
        self.files.get(at.file as usize).map_or("", |file| at.span.slice(file.source.text()))
    }
}

impl At {
    /// Another span of the same file.
    #[must_use]
    pub fn with(self, span: Span) -> Self {
        Self { span, ..self }
    }
}

fn why_no_text(content: &Content) -> String {
    match content {
        Content::Binary { valid_up_to, .. } => format!("it is not text in UTF-8 (byte {valid_up_to})"),
        Content::Unread(why) => why.clone(),
        _ => "it is not a file".into(),
    }
}

#[cfg(test)]
mod tests;
