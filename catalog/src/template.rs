//! Templates of catalogs: short files that name bundles by reference, and the catalogs they stand for.
//!
//! `olm.template.basic` is a catalog whose bundles are references; `olm.semver` makes channels from versions;
//! `olm.template.substitutes` puts bundles in the place of others; `olm.composite` names several of these. What comes out is what
//! `opm alpha render-template` makes of them (operator-registry `alpha/template`); composites, which opm has dropped, as it made them
//! before. The bundles come from a [`BundleSource`], all at once, so that it can fetch them side by side.
//!
//! Start at [`Template::parse`]; [`convert()`] is the way back.

mod composite;
mod convert;
mod read;
mod semver;
mod substitutes;

use std::collections::HashMap;
use std::error::Error;

use olmkit_bundle::finding::{Level, Place};
use olmkit_bundle::source::{Source, Span};
use olmkit_bundle::yaml::{self, Document};

use crate::fbc::{self, Catalog, Value};
use crate::render::Rendered;
use crate::texts::unread::in_gap;
use crate::validate::validate;

pub use composite::{Component, Composite, Strategy};
pub use convert::{ConvertError, Target, convert};
pub use semver::{ChannelKind, Semver};
pub use substitutes::{Substitutes, Substitution};

/// The schemas of templates.
pub mod schema {
    /// A catalog whose bundles are references.
    pub const BASIC: &str = "olm.template.basic";
    /// Channels by version.
    pub const SEMVER: &str = "olm.semver";
    /// Bundles in the place of others.
    pub const SUBSTITUTES: &str = "olm.template.substitutes";
    /// Several templates.
    pub const COMPOSITE: &str = "olm.composite";
}

/// Who has bundles, by reference.
pub trait BundleSource {
    /// The bundles behind references, rendered under these references, in their order.
    ///
    /// # Errors
    /// When one of them cannot be had or rendered; the error names it.
    fn bundles(&self, references: &[&str]) -> Result<Vec<Rendered>, Box<dyn Error + Send + Sync>>;
}

/// A template.
#[derive(Debug)]
pub enum Template<'a> {
    /// A catalog whose bundles are references.
    Basic(Basic<'a>),
    /// Channels by version.
    Semver(Semver),
    /// Bundles in the place of others.
    Substitutes(Substitutes<'a>),
    /// Several templates.
    Composite(Composite),
}

/// A catalog whose `olm.bundle` blobs have an image and nothing else.
#[derive(Debug)]
pub struct Basic<'a> {
    catalog: Catalog<'a>,
}

/// Why a template is none, or stands for no catalog.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// It is neither YAML nor JSON.
    #[error("not valid YAML or JSON: {why}")]
    Syntax {
        /// Where.
        place: Box<Place>,
        /// What the parser says.
        why: String,
    },
    /// Its first document, which is the one that counts, is empty.
    #[error("the first document of the template is empty")]
    Empty {
        /// Where it ends.
        place: Box<Place>,
    },
    /// Something follows its first document.
    #[error("a template is a single document, and another one follows")]
    More {
        /// Where that starts.
        place: Box<Place>,
    },
    /// It has no schema that is a template's.
    #[error("{}", if .schema.is_empty() { "the template has no `schema`".into() } else { format!("`{schema}` is not a template schema") })]
    Schema {
        /// Where.
        place: Box<Place>,
        /// What it has.
        schema: String,
    },
    /// A field is not what it must be.
    #[error("{why}")]
    Field {
        /// Where.
        place: Box<Place>,
        /// What is wrong with it.
        why: String,
    },
    /// The entries are no catalog, or what comes of them is none.
    #[error("{what} no valid catalog: {why}")]
    Catalog {
        /// Where the first fault is.
        place: Option<Box<Place>>,
        /// What is none.
        what: String,
        /// The first fault.
        why: String,
    },
    /// The bundles do not go together.
    #[error("{why}")]
    Bundles {
        /// Why.
        why: String,
    },
    /// A bundle cannot be had.
    #[error("cannot get the bundles of the template")]
    Source(#[source] Box<dyn Error + Send + Sync>),
    /// There are several catalogs in it.
    #[error("a composite template expands to several catalogs")]
    Several,
}

impl TemplateError {
    /// Where the trouble is.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Syntax { place, .. } | Self::Schema { place, .. } | Self::Field { place, .. } => {
                Some(place)
            }
            Self::Empty { place } | Self::More { place } => Some(place),
            Self::Catalog { place, .. } => place.as_deref(),
            _ => None,
        }
    }

    /// The way out.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Empty { .. } => {
                Some("put the template before the first `---`, with the comments that belong to it")
            }
            Self::More { .. } => {
                Some("move it to a separate file; an `olm.composite` template names several templates")
            }
            Self::Schema { schema, .. } if is_of_catalog(schema) => {
                Some("this is already a catalog; `olmkit catalog convert` converts one to a template")
            }
            Self::Schema { .. } => Some(
                "expected `olm.template.basic`, `olm.semver`, `olm.template.substitutes` or `olm.composite`",
            ),
            _ => None,
        }
    }
}

impl<'a> Template<'a> {
    /// Reads a template.
    ///
    /// ```
    /// use olmkit_catalog::template::Template;
    /// let text = "schema: olm.semver\nstable: {bundles: [{image: example.com/redis-bundle:v1.0.0}]}\n";
    /// let template = Template::parse("template.yaml", text).unwrap();
    /// assert_eq!(template.references(), ["example.com/redis-bundle:v1.0.0"]);
    /// ```
    ///
    /// # Errors
    /// The text is not a template, or a second document follows, which opm ignores.
    pub fn parse(name: &'a str, text: &'a str) -> Result<Self, TemplateError> {
        let source = Source::new(name.to_owned(), text);
        let document = yaml::first_document(text).map_err(|error| TemplateError::Syntax {
            place: Box::new(Place::new(&source, error.span)),
            why: error.message.clone(),
        })?;
        let schema = document.root.get("schema").and_then(yaml::Node::as_str).unwrap_or_default();
        if is_of_catalog(schema) {
            let place = Box::new(Place::new(&source, document.root.locate(&[yaml::Step::Key("schema")])));
            return Err(TemplateError::Schema { place, schema: schema.to_owned() });
        }
        check_single(&source, text, &document)?;
        let fields = read::Fields::of(&source, &document.root, "the template")?;
        let schema = fields.text("schema")?;
        match schema.as_str() {
            schema::BASIC => Ok(Self::Basic(Basic::parse(&fields, name, text)?)),
            schema::SEMVER => Ok(Self::Semver(Semver::parse(&fields)?)),
            schema::SUBSTITUTES => Ok(Self::Substitutes(Substitutes::parse(&fields, name, text)?)),
            schema::COMPOSITE => Ok(Self::Composite(Composite::parse(&fields)?)),
            _ => Err(TemplateError::Schema { place: Box::new(fields.place("schema")), schema }),
        }
    }

    /// The references of its bundles, each once; none for a composite, whose parts stand in other files.
    pub fn references(&self) -> Vec<&str> {
        let mut references: Vec<&str> = match self {
            Self::Basic(basic) => basic.catalog.bundles.iter().map(|bundle| &*bundle.image).collect(),
            Self::Semver(semver) => semver.references().collect(),
            Self::Substitutes(substitutes) => substitutes.references().collect(),
            Self::Composite(_) => Vec::new(),
        };
        let mut seen = std::collections::HashSet::new();
        references.retain(|reference| seen.insert(*reference));
        references
    }

    /// The catalog that it stands for.
    ///
    /// # Errors
    /// When a bundle cannot be had, or the bundles do not go together.
    pub fn render(self, source: &impl BundleSource) -> Result<Catalog<'a>, TemplateError> {
        let references = self.references();
        let bundles = source.bundles(&references).map_err(TemplateError::Source)?;
        let references: Vec<String> = references.into_iter().map(str::to_owned).collect();
        let bundles: HashMap<String, Rendered> = references.into_iter().zip(bundles).collect();
        match self {
            Self::Basic(basic) => basic.render(&bundles),
            Self::Semver(semver) => semver.render(&bundles),
            Self::Substitutes(substitutes) => substitutes.render(&bundles),
            Self::Composite(_) => Err(TemplateError::Several),
        }
    }
}

/// Whether a blob of a catalog has this schema.
fn is_of_catalog(schema: &str) -> bool {
    [fbc::schema::PACKAGE, fbc::schema::CHANNEL, fbc::schema::BUNDLE, fbc::schema::DEPRECATIONS]
        .contains(&schema)
}

/// Refuses a text of which something is not read: of several documents the first counts, and in it the first value.
fn check_single(source: &Source<'_>, text: &str, first: &Document<'_>) -> Result<(), TemplateError> {
    let place = |span| Box::new(Place::new(source, span));
    let has_more =
        |document: &Result<Document<'_>, _>| !matches!(document, Ok(document) if document.root.is_null());
    let mut others = yaml::documents(text).skip(1).filter(has_more);
    let (from, to) = (first.root.span.end as usize, first.span.end as usize);
    match others.next() {
        Some(_) if first.root.is_null() => Err(TemplateError::Empty { place: place(first.root.span) }),
        Some(Ok(document)) => Err(TemplateError::More { place: place(document.root.span) }),
        Some(Err(error)) => Err(TemplateError::More { place: place(error.span) }),
        None => match in_gap(text, from, to) {
            Some(at) => Err(TemplateError::More { place: place(Span::at(at)) }),
            None => Ok(()),
        },
    }
}

/// A rendered bundle by its reference.
fn bundle<'b>(
    bundles: &'b HashMap<String, Rendered>,
    reference: &str,
) -> Result<&'b Rendered, TemplateError> {
    bundles
        .get(reference)
        .ok_or_else(|| TemplateError::Bundles { why: format!("the bundle `{reference}` was not found") })
}

impl<'a> Basic<'a> {
    fn parse(fields: &read::Fields<'_, 'a>, name: &'a str, text: &'a str) -> Result<Self, TemplateError> {
        let catalog = entries(fields, name, text)?;
        for bundle in &catalog.bundles {
            let has_more = !bundle.package.is_empty()
                || !bundle.properties.is_empty()
                || !bundle.related_images.is_empty();
            let why = match bundle.image.is_empty() {
                true => "a bundle of a basic template has no `image`",
                false if has_more => "a bundle of a basic template has more than an `image`",
                false => continue,
            };
            return Err(TemplateError::Field { place: Box::new(catalog.place(bundle.at)), why: why.into() });
        }
        Ok(Self { catalog })
    }

    fn render(mut self, bundles: &HashMap<String, Rendered>) -> Result<Catalog<'a>, TemplateError> {
        self.check_once(bundles)?;
        for blob in &mut self.catalog.bundles {
            *blob = bundle(bundles, &blob.image)?.blob.clone();
        }
        Ok(self.catalog)
    }

    /// Refuses a bundle that is listed again: no catalog has it twice.
    fn check_once(&self, bundles: &HashMap<String, Rendered>) -> Result<(), TemplateError> {
        let mut seen = HashMap::new();
        for listed in &self.catalog.bundles {
            let blob = &bundle(bundles, &listed.image)?.blob;
            let Some(first) = seen.insert((&*blob.package, &*blob.name), &*listed.image) else { continue };
            let why = match first == &*listed.image {
                true => format!("`{first}` is given twice"),
                false => format!("`{first}` and `{}` are both the bundle `{}`", listed.image, blob.name),
            };
            return Err(TemplateError::Field { place: Box::new(self.catalog.place(listed.at)), why });
        }
        Ok(())
    }
}

/// The `entries` of a template as a catalog.
fn entries<'a>(
    fields: &read::Fields<'_, 'a>,
    name: &'a str,
    text: &'a str,
) -> Result<Catalog<'a>, TemplateError> {
    // Without them the catalog would be empty: the field is misspelt, or the template is not finished.
    if fields.get("entries").is_none() {
        return Err(fields.wrong("entries", "the template has no `entries`"));
    }
    let mut catalog = Catalog::empty(name, text);
    for entry in fields.list("entries")? {
        catalog.add(Value::of_node(entry.clone()));
    }
    match catalog.faults.first() {
        None => Ok(catalog),
        Some(fault) => Err(TemplateError::Field {
            place: Box::new(catalog.place(fault.at)),
            why: match &fault.kind {
                fbc::FaultKind::NoSchema => "an entry has no schema".into(),
                fbc::FaultKind::NotAMap(found) => format!("an entry is {found}, expected a map"),
                fbc::FaultKind::DuplicateKeys { first, second } => {
                    format!("`{first}` and `{second}` differ in nothing but case")
                }
                fbc::FaultKind::WrongType { field, expected, found } => {
                    format!("`{field}`: expected {expected}, found {found}")
                }
                _ => "an entry cannot be read".into(),
            },
        }),
    }
}

/// Refuses what opm would not serve.
fn check(catalog: &Catalog<'_>, what: &str) -> Result<(), TemplateError> {
    let findings = validate(catalog);
    match findings.into_iter().find(|finding| finding.level == Level::Error) {
        None => Ok(()),
        Some(finding) => Err(TemplateError::Catalog {
            place: finding.place.map(Box::new),
            what: what.to_owned(),
            why: finding.message,
        }),
    }
}

/// The template in a catalog's files, if there is one.
pub(crate) fn find<'c, 'a>(catalog: &'c Catalog<'a>) -> Option<&'c fbc::Other<'a>> {
    let known = [schema::BASIC, schema::COMPOSITE, schema::SEMVER, schema::SUBSTITUTES];
    catalog.others.iter().find(|other| known.contains(&other.schema.as_str()))
}

/// The template that a catalog of a single file is.
pub(crate) fn single_template<'c, 'a>(catalog: &'c Catalog<'a>) -> Option<(&'c fbc::Other<'a>, Place)> {
    let template = find(catalog)?;
    let file = catalog.files.get(template.at.file as usize)?;
    file.path.is_empty().then(|| (template, catalog.place(template.at.with(template.schema.span))))
}

#[cfg(test)]
mod tests;
