//! A bundle's directory to its `olm.bundle` blob, the same that `opm render` makes of it.
//!
//! The properties come from the ClusterServiceVersion, the CRDs and `metadata/`; `properties` says which. How much of the manifests
//! goes into the blob is a [`Form`]. Where opm skips what it cannot decode, rendering fails and names it: what is left out of a
//! catalog nobody would miss in time. [`migrate()`] gives bundles that are in a catalog another form, by the manifests in their blobs,
//! which `embedded` reads.

mod csv_metadata;
mod embedded;
mod migrate;
mod properties;

use std::collections::BTreeSet;

use olmkit_bundle::csv::ClusterServiceVersion;
use olmkit_bundle::finding::Place;
use olmkit_bundle::load::Content;
use olmkit_bundle::parse::{Bundle, Csv, File, Object};
use olmkit_bundle::yaml::Value;
use olmkit_bundle::yaml::decode::DecodeError;

use crate::base64;
use crate::fbc::{self, property};
use crate::json::marshal;
use properties::Property;

pub(crate) use embedded::{csv_of, edges};
pub(crate) use migrate::migrated;
pub use migrate::{MigrateError, migrate};

/// How a bundle is rendered.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The reference of the bundle's image; empty for a bundle that is installed from its blob.
    pub image: String,
    /// What becomes of the manifests.
    pub form: Form,
}

impl Options {
    /// A bundle with an image, and what becomes of its manifests.
    pub fn new(image: impl Into<String>, form: Form) -> Self {
        Self { image: image.into(), form }
    }
}

/// What becomes of a bundle's manifests in its blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// What consoles show, as one `olm.csv.metadata` property, which OpenShift reads from 4.17 on; without an image the
    /// manifests all the same, since there is nowhere else to install from.
    #[default]
    Metadata,
    /// Every manifest, as an `olm.bundle.object` property: what opm does unless told otherwise.
    Objects,
}

/// A rendered bundle.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The blob.
    pub blob: fbc::Bundle<'static>,
    /// What its ClusterServiceVersion says of the package and of its place in channels.
    pub csv: CsvFacts,
}

/// What a ClusterServiceVersion says that is not in its blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvFacts {
    /// `spec.version`.
    pub version: String,
    /// `spec.release`.
    pub release: String,
    /// `spec.replaces`.
    pub replaces: String,
    /// `spec.skips`.
    pub skips: Vec<String>,
    /// The annotation `olm.skipRange`.
    pub skip_range: String,
    /// `spec.description`, Markdown.
    pub description: String,
    /// The first of `spec.icon`: base64 and media type.
    pub icon: Option<(String, String)>,
}

/// A bundle that cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// A file is not what it has to be.
    #[error("cannot read a file of the bundle: {why}")]
    File {
        /// The file, and the place in it.
        place: Box<Place>,
        /// What is wrong with it.
        why: String,
    },
    /// There is no ClusterServiceVersion.
    #[error("`{bundle}` has no ClusterServiceVersion in `manifests/`")]
    NoCsv {
        /// The bundle's directory.
        bundle: String,
    },
    /// The ClusterServiceVersion does not fit its type.
    #[error("the ClusterServiceVersion cannot be read")]
    Csv {
        /// The value that does not fit.
        place: Box<Place>,
        /// Why.
        #[source]
        source: DecodeError,
    },
    /// The annotations do not say which package the bundle belongs to.
    #[error("`{bundle}` does not name its package")]
    NoPackage {
        /// The bundle's directory.
        bundle: String,
    },
    /// A CRD that the ClusterServiceVersion owns is not in the bundle.
    #[error("`{kind}` {version} `{name}` is owned but not in the bundle")]
    OwnedCrd {
        /// Where it is owned.
        place: Box<Place>,
        /// The CRD's name.
        name: String,
        /// The version.
        version: String,
        /// The kind.
        kind: String,
    },
}

impl RenderError {
    /// Where the trouble is.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::File { place, .. } | Self::Csv { place, .. } | Self::OwnedCrd { place, .. } => Some(place),
            _ => None,
        }
    }
}

/// Renders a bundle.
///
/// ```
/// use olmkit_bundle::{load::{BundleFile, BundleFiles, Content}, parse::Bundle};
/// use olmkit_catalog::render::{self, Form, Options};
/// let file = |path: &str, text: &str| BundleFile { path: path.into(), content: Content::Text(text.into()) };
/// let files = BundleFiles { name: "bundle".into(), files: vec![
///     file("manifests/csv.yaml", "kind: ClusterServiceVersion\nmetadata: {name: redis.v1.0.0}\nspec: {version: 1.0.0}"),
///     file("metadata/annotations.yaml", "annotations: {operators.operatorframework.io.bundle.package.v1: redis}"),
/// ]};
/// let options = Options::new("example.com/redis-bundle:v1.0.0", Form::default());
/// let blob = render::bundle(&Bundle::parse(&files), &options).unwrap().blob;
/// assert_eq!(blob.to_json()["properties"][0]["value"]["version"], "1.0.0");
/// ```
///
/// # Errors
/// When a part of the bundle cannot be read, or an owned CRD is missing.
pub fn bundle(bundle: &Bundle<'_>, options: &Options) -> Result<Rendered, RenderError> {
    let objects = objects(bundle)?;
    let csv = csv(bundle)?;
    let package = bundle.annotations().map(|annotations| annotations.package()).unwrap_or_default();
    if package.is_empty() {
        return Err(RenderError::NoPackage { bundle: bundle.name.to_owned() });
    }
    let mut properties = properties::of(bundle, &csv, &package)?;
    if options.form == Form::Objects || options.image.is_empty() {
        let mut objects: Vec<_> = objects.iter().map(|object| bundle_object(object)).collect();
        objects.sort();
        properties.extend(objects);
    } else {
        properties.push(Property::new(property::CSV_METADATA, csv_metadata::value(csv.typed)));
    }
    let blob = fbc::Bundle {
        name: csv.typed.name().to_owned().into(),
        package: package.into(),
        image: options.image.clone().into(),
        properties: properties.into_iter().map(Into::into).collect(),
        related_images: related_images(csv.typed, &options.image),
        ..fbc::Bundle::default()
    };
    Ok(Rendered { blob, csv: CsvFacts::of(csv.typed) })
}

impl CsvFacts {
    fn of(csv: &ClusterServiceVersion) -> Self {
        use olmkit_bundle::csv::annotation;
        let spec = &csv.spec;
        Self {
            version: spec.version.clone(),
            release: spec.release.clone(),
            replaces: spec.replaces.clone(),
            skips: spec.skips.clone(),
            skip_range: csv.annotation(annotation::SKIP_RANGE).unwrap_or_default().to_owned(),
            description: spec.description.clone(),
            icon: spec.icon.first().map(|icon| (icon.data.clone(), icon.media_type.clone())),
        }
    }
}

/// The objects in `manifests/`: the first document of each file, of ClusterServiceVersions only the first.
fn objects<'b, 'a>(bundle: &'b Bundle<'a>) -> Result<Vec<Object<'b, 'a>>, RenderError> {
    let mut objects: Vec<Object<'_, '_>> = Vec::new();
    for file in bundle.manifests() {
        let Some(object) = object(file)? else { continue };
        let second_csv = object.kind() == olmkit_bundle::csv::KIND
            && objects.iter().any(|other| other.kind() == olmkit_bundle::csv::KIND);
        if second_csv {
            let place = Box::new(object.place(&["kind".into()]));
            return Err(RenderError::File { place, why: "it is a second ClusterServiceVersion".into() });
        }
        objects.push(object);
    }
    Ok(objects)
}

/// The object in a file; none in a file without any value.
fn object<'b, 'a>(file: &'b File<'a>) -> Result<Option<Object<'b, 'a>>, RenderError> {
    let fail =
        |place: Place, why: &str| Err(RenderError::File { place: Box::new(place), why: why.to_owned() });
    match file.content {
        Content::Text(_) => {}
        Content::Unread(why) => return fail(file.place(), why),
        _ => return fail(file.place(), "it is not text in UTF-8"),
    }
    match file.documents.first() {
        None => Ok(None),
        Some(Err(error)) => fail(file.place_at(error.span), &error.message),
        Some(Ok(document)) => match (&document.root.value, file.object()) {
            (Value::Null, _) => Ok(None),
            (_, Some(object)) if !object.kind().is_empty() => Ok(Some(object)),
            (_, Some(_)) => fail(file.place_at(document.root.locate(&[])), "the object has no kind"),
            _ => fail(file.place_at(document.root.span), "it is not a Kubernetes object"),
        },
    }
}

fn csv<'b, 'a>(bundle: &'b Bundle<'a>) -> Result<Csv<'b, 'a>, RenderError> {
    if let Some((object, error)) = bundle.csv_error() {
        let place = object.place_at(error.span.unwrap_or(object.root.span));
        return Err(RenderError::Csv { place: Box::new(place), source: error.clone() });
    }
    bundle.csv().ok_or_else(|| RenderError::NoCsv { bundle: bundle.name.to_owned() })
}

fn bundle_object(object: &Object<'_, '_>) -> Property {
    let text = marshal(&object.root.to_json());
    Property::new(property::BUNDLE_OBJECT, serde_json::json!({ "data": base64::encode(text.as_bytes()) }))
}

/// The images of the ClusterServiceVersion, the bundle's own and those of its Deployments, sorted by reference.
fn related_images(csv: &ClusterServiceVersion, image: &str) -> Vec<fbc::RelatedImage<'static>> {
    let own = csv.spec.related_images.iter().map(|related| (related.image.clone(), related.name.clone()));
    let mut images: Vec<(String, String)> = own.collect();
    let mut known: BTreeSet<String> = images.iter().map(|(image, _)| image.clone()).collect();
    let mut add = |image: &str| {
        if known.insert(image.to_owned()) {
            images.push((image.to_owned(), String::new()));
        }
    };
    if !image.is_empty() {
        add(image);
    }
    if csv.spec.install.strategy == "deployment" {
        for deployment in &csv.spec.install.spec.deployments {
            let Some(pod) = &deployment.spec.template.spec else { continue };
            for container in pod.containers.iter().chain(pod.init_containers.iter().flatten()) {
                add(container.image.as_deref().unwrap_or(""));
            }
        }
    }
    images.sort_by(|a, b| a.0.cmp(&b.0));
    let related = |(image, name): (String, String)| fbc::RelatedImage {
        name: name.into(),
        image: image.into(),
        ..fbc::RelatedImage::default()
    };
    images.into_iter().map(related).collect()
}

#[cfg(test)]
mod tests;
