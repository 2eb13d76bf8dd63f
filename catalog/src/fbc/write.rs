//! Blobs to text, as opm writes them: YAML with sorted keys, or JSON in the order of the schemas; packages by name, in a package
//! first itself, then its channels, its bundles, everything else.
//!
//! What a [`Fault`](super::Fault) kept from being read is not there to be written: look at [`Catalog::faults`] first.

use std::borrow::Cow;
use std::collections::BTreeMap;

use olmkit_bundle::printable;
use olmkit_bundle::yaml::write::{self, WriteError};
use serde_json::Value as Json;

use super::{
    Bundle, Catalog, Channel, Deprecation, Deprecations, Entry, Icon, Member, Other, Package, Property,
    Reference, RelatedImage, Text, schema,
};
use crate::json::{Layout, Tree};

/// How a catalog is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// YAML documents.
    #[default]
    Yaml,
    /// JSON values, indented.
    Json,
}

impl Format {
    /// The ending of files of this format, with the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Yaml => ".yaml",
            Self::Json => ".json",
        }
    }

    pub(crate) fn text(self, tree: Tree<'_>) -> Result<String, WriteError> {
        match self {
            Self::Yaml => Ok(format!("---\n{}", write::to_string(&tree.into_json())?)),
            Self::Json => Ok(printable::json(tree.to_text(&Layout::OPM)) + "\n"),
        }
    }
}

/// A whole catalog as one text.
///
/// ```
/// use olmkit_catalog::{fbc::{Catalog, write::{self, Format}}, load::CatalogFiles};
/// let files = CatalogFiles::from_text("catalog.json", r#"{"schema": "olm.package", "name": "redis", "defaultChannel": "stable"}"#);
/// let text = write::to_text(&Catalog::parse(&files), Format::Yaml).unwrap();
/// assert_eq!(text, "---\ndefaultChannel: stable\nname: redis\nschema: olm.package\n");
/// ```
///
/// # Errors
/// When a value has no YAML form.
pub fn to_text(catalog: &Catalog<'_>, format: Format) -> Result<String, WriteError> {
    let (packages, rest) = by_package(catalog);
    packages.into_values().flatten().chain(rest).map(|tree| format.text(tree())).collect()
}

/// A catalog as the files of a directory, one for each package: path below the directory, and text.
///
/// # Errors
/// When a value has no YAML form.
pub fn to_files(catalog: &Catalog<'_>, format: Format) -> Result<Vec<(String, String)>, WriteError> {
    let (packages, rest) = by_package(catalog);
    let mut files = Vec::new();
    for (package, trees) in packages {
        let text = trees.into_iter().map(|tree| format.text(tree())).collect::<Result<_, _>>()?;
        files.push((format!("{package}/catalog{}", format.extension()), text));
    }
    if !rest.is_empty() {
        let text = rest.into_iter().map(|tree| format.text(tree())).collect::<Result<_, _>>()?;
        files.push((format!("catalog{}", format.extension()), text));
    }
    Ok(files)
}

/// Makes the tree of a blob, when it is written: all of them would be a second catalog in memory.
type Blob<'c> = Box<dyn Fn() -> Tree<'c> + 'c>;

/// The blobs of each package in opm's order, and those of no package.
fn by_package<'c>(catalog: &'c Catalog<'_>) -> (BTreeMap<&'c str, Vec<Blob<'c>>>, Vec<Blob<'c>>) {
    fn sorted<T>(blobs: &[T], key: impl Fn(&T) -> &str) -> Vec<&T> {
        let mut blobs: Vec<_> = blobs.iter().collect();
        blobs.sort_by(|a, b| key(a).cmp(key(b)));
        blobs
    }
    let mut packages: BTreeMap<&str, Vec<Blob<'_>>> = BTreeMap::new();
    let mut rest = Vec::new();
    let mut add = |package: &'c str, tree: Blob<'c>| match package {
        "" => rest.push(tree),
        package => packages.entry(package).or_default().push(tree),
    };
    for package in &catalog.packages {
        add(&package.name, Box::new(|| package.tree()));
    }
    for channel in sorted(&catalog.channels, |channel| &channel.name) {
        add(&channel.package, Box::new(|| channel.tree()));
    }
    for bundle in sorted(&catalog.bundles, |bundle| &bundle.name) {
        add(&bundle.package, Box::new(|| bundle.tree()));
    }
    for other in sorted(&catalog.others, |other| &other.schema) {
        add(&other.package, Box::new(|| other.tree()));
    }
    for deprecations in &catalog.deprecations {
        add(&deprecations.package, Box::new(|| deprecations.tree()));
    }
    (packages, rest)
}

/// The fields of a map in the making, in the order of their schema.
#[derive(Default)]
struct Fields<'a>(Vec<(Cow<'a, str>, Tree<'a>)>);

impl<'a> Fields<'a> {
    fn of(schema: &'static str) -> Self {
        Self::default().text("schema", schema)
    }

    fn text(mut self, key: &'static str, text: impl Into<Tree<'a>>) -> Self {
        self.0.push((key.into(), text.into()));
        self
    }

    /// A text, unless it is empty.
    fn some_text(self, key: &'static str, text: &'a Text<'_>) -> Self {
        if text.is_empty() { self } else { self.text(key, text.as_str()) }
    }

    /// A list, unless it is empty.
    fn some_list(mut self, key: &'static str, items: impl Iterator<Item = Tree<'a>>) -> Self {
        let items: Vec<_> = items.collect();
        if !items.is_empty() {
            self.0.push((key.into(), Tree::List(items)));
        }
        self
    }

    fn list(mut self, key: &'static str, items: impl Iterator<Item = Tree<'a>>) -> Self {
        self.0.push((key.into(), Tree::List(items.collect())));
        self
    }

    fn tree(mut self, key: &'static str, tree: Tree<'a>) -> Self {
        self.0.push((key.into(), tree));
        self
    }

    /// The map, with the fields that its schema does not have behind the others.
    fn with(mut self, unknown: &'a [Member<'_>]) -> Tree<'a> {
        let member =
            |member: &'a Member<'_>| (Cow::Borrowed(&*member.key), Tree::Leaf(member.value.to_json()));
        self.0.extend(unknown.iter().map(member));
        Tree::Map(self.0)
    }
}

macro_rules! to_json {
    ($($blob:ident)*) => {$(
        impl $blob<'_> {
            /// The same in JSON.
            pub fn to_json(&self) -> Json {
                self.tree().into_json()
            }
        }
    )*};
}

to_json! { Package Channel Entry Bundle Property Deprecations Other }

impl Package<'_> {
    pub(crate) fn tree(&self) -> Tree<'_> {
        let mut fields = Fields::of(schema::PACKAGE)
            .text("name", self.name.as_str())
            .text("defaultChannel", self.default_channel.as_str());
        if let Some(icon) = &self.icon {
            fields = fields.tree("icon", icon.tree());
        }
        fields
            .some_text("description", &self.description)
            .some_list("properties", self.properties.iter().map(Property::tree))
            .with(&self.unknown)
    }
}

impl Icon<'_> {
    fn tree(&self) -> Tree<'_> {
        Fields::default()
            .text("base64data", self.data.as_str())
            .text("mediatype", self.media_type.as_str())
            .with(&self.unknown)
    }
}

impl Channel<'_> {
    pub(crate) fn tree(&self) -> Tree<'_> {
        Fields::of(schema::CHANNEL)
            .text("name", self.name.as_str())
            .text("package", self.package.as_str())
            .list("entries", self.entries.iter().map(Entry::tree))
            .some_list("properties", self.properties.iter().map(Property::tree))
            .with(&self.unknown)
    }
}

impl Entry<'_> {
    pub(crate) fn tree(&self) -> Tree<'_> {
        Fields::default()
            .text("name", self.name.as_str())
            .some_text("replaces", &self.replaces)
            .some_list("skips", self.skips.iter().map(|skip| skip.as_str().into()))
            .some_text("skipRange", &self.skip_range)
            .with(&self.unknown)
    }
}

impl Bundle<'_> {
    pub(crate) fn tree(&self) -> Tree<'_> {
        Fields::of(schema::BUNDLE)
            .some_text("name", &self.name)
            .some_text("package", &self.package)
            .text("image", self.image.as_str())
            .some_list("properties", self.properties.iter().map(Property::tree))
            .some_list("relatedImages", self.related_images.iter().map(RelatedImage::tree))
            .with(&self.unknown)
    }
}

impl Property<'_> {
    fn tree(&self) -> Tree<'_> {
        let fields = Fields::default().text("type", self.kind.as_str());
        match &self.value {
            Some(value) => fields.tree("value", Tree::Leaf(value.to_json())),
            None => fields,
        }
        .with(&self.unknown)
    }
}

impl RelatedImage<'_> {
    fn tree(&self) -> Tree<'_> {
        Fields::default()
            .text("name", self.name.as_str())
            .text("image", self.image.as_str())
            .with(&self.unknown)
    }
}

impl Deprecations<'_> {
    pub(crate) fn tree(&self) -> Tree<'_> {
        Fields::of(schema::DEPRECATIONS)
            .text("package", self.package.as_str())
            .list("entries", self.entries.iter().map(Deprecation::tree))
            .with(&self.unknown)
    }
}

impl Deprecation<'_> {
    fn tree(&self) -> Tree<'_> {
        Fields::default()
            .tree("reference", self.reference.tree())
            .text("message", self.message.as_str())
            .with(&self.unknown)
    }
}

impl Reference<'_> {
    fn tree(&self) -> Tree<'_> {
        Fields::default()
            .text("schema", self.schema.as_str())
            .some_text("name", &self.name)
            .with(&self.unknown)
    }
}

impl Other<'_> {
    /// Its keys are sorted, as in a map of Go's: opm knows no schema that would order them.
    pub(crate) fn tree(&self) -> Tree<'_> {
        let Tree::Map(mut members) = Fields::default().with(&self.members) else {
            return Tree::Map(Vec::new());
        };
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
        Tree::Map(members)
    }
}
