//! What an upgrade changes: two versions of a CRD or of a bundle, compared as what they mean.
//!
//! Order, descriptions and equivalent forms make no difference. Every difference that somebody should know of is a
//! [`Finding`] with the place in the new version, the place in the old one beside it, and a code of [`codes`].
//! Start at [`bundles`], or at [`crd::compare`] for one CRD.

mod broken;
pub mod codes;
pub mod crd;
pub mod live;
mod objects;
mod operator;
pub mod policy;
mod rights;
mod samples;
#[cfg(test)]
mod tests;
mod workloads;

use std::collections::BTreeMap;

use crate::finding::{Finding, Findings, Level, Place};
use crate::load::BundleFiles;
use crate::parse::{Bundle, Object};
use crate::source::{Source, Span};
use crate::yaml::{Document, documents};
use policy::Policy;

pub use rights::gained_in_all_namespaces;

/// What comparing two versions has found.
#[derive(Debug)]
pub struct Comparison {
    /// All findings, sorted.
    pub findings: Vec<Finding>,
}

/// Two versions that cannot be compared.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompareError {
    /// They are of two packages.
    #[error("`{old}` is a bundle of the package `{old_package}`, and `{new}` of `{new_package}`")]
    Packages {
        /// The old bundle.
        old: String,
        /// Its package.
        old_package: String,
        /// The new bundle.
        new: String,
        /// Its package.
        new_package: String,
    },
    /// A bundle has no ClusterServiceVersion that could be read.
    #[error("`{bundle}` has no ClusterServiceVersion that can be read")]
    NoCsv {
        /// The bundle.
        bundle: String,
    },
    /// A file has no CRD.
    #[error("`{path}` contains no CustomResourceDefinition")]
    NoCrd {
        /// The file.
        path: String,
    },
    /// A file cannot be read.
    #[error("`{path}` is not valid YAML: {message}")]
    Syntax {
        /// The file, with line and column.
        path: String,
        /// What is wrong.
        message: String,
    },
}

impl CompareError {
    /// The way out.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Packages { .. } => "compare two versions of one operator",
            Self::NoCsv { .. } => "`olmkit bundle validate` says what is wrong with it",
            Self::NoCrd { .. } => "give two files with a CRD each, or two bundles",
            Self::Syntax { .. } => "correct the file, or give another one",
        }
    }
}

/// Compares two bundles of one package.
///
/// # Errors
/// When they are of two packages, or one has no ClusterServiceVersion.
pub fn bundles(old: &Bundle<'_>, new: &Bundle<'_>) -> Result<Comparison, CompareError> {
    bundles_with(old, new, &Beside::default())
}

/// What is known beside two bundles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'o, 'a> {
    /// Custom resources, which the new schemas have to take.
    pub samples: &'o [Source<'a>],
    /// What the package promises.
    pub policy: Option<&'o Policy>,
    /// Bundles of the package: in those before the old version it is looked up how long something was deprecated.
    pub history: &'o [&'o Bundle<'a>],
}

/// As [`bundles`], with what is known beside them.
///
/// # Errors
/// As [`bundles`].
pub fn bundles_with(
    old: &Bundle<'_>,
    new: &Bundle<'_>,
    beside: &Beside<'_, '_>,
) -> Result<Comparison, CompareError> {
    let package = |bundle: &Bundle<'_>| {
        bundle.annotations().map(|annotations| annotations.package()).unwrap_or_default()
    };
    let (old_package, new_package) = (package(old), package(new));
    if old_package != new_package && !old_package.is_empty() && !new_package.is_empty() {
        let (old, new) = (old.name.to_owned(), new.name.to_owned());
        return Err(CompareError::Packages { old, old_package, new, new_package });
    }
    let csv = |bundle: &Bundle<'_>| CompareError::NoCsv { bundle: bundle.name.to_owned() };
    let old_csv = old.csv().ok_or_else(|| csv(old))?;
    let new_csv = new.csv().ok_or_else(|| csv(new))?;
    let mut findings = Findings::new();
    operator::compare(&old_csv, &new_csv, &mut findings);
    rights::compare((old, &old_csv), (new, &new_csv), &mut findings);
    workloads::compare(&old_csv, &new_csv, &mut findings);
    operator::compare_bundles(old, new, &mut findings);
    let broken = broken::check(old, new);
    let partial = Partial { old: broken.old_is_partial, new: broken.new_is_partial };
    findings.extend(broken.findings);
    if !partial.old && !partial.new {
        objects::compare(old, new, &mut findings);
    }
    let objects = |bundle| {
        let bundle: &Bundle<'_> = bundle;
        bundle.crds().collect::<Vec<_>>()
    };
    let (olds, news) = (objects(old), objects(new));
    let places = (&old.place(), &new.place());
    crds(&olds, &news, places, &partial, &mut findings);
    let crds = samples::Crds { old: &olds, new: &news };
    samples::examples(&old_csv, &crds, &mut findings);
    hold(beside.samples, &crds, &mut findings)?;
    let bump = if beside.policy.is_some() { Level::Error } else { Level::Warning };
    policy::check_bump(&old_csv, &new_csv, bump, &mut findings);
    if let Some(policy) = beside.policy {
        policy::check(policy, (old, &old_csv), (new, &new_csv), beside.history, &mut findings);
    }
    Ok(Comparison { findings: findings.into_sorted(new.name) })
}

/// Compares two files with CRDs; one CRD with one, whatever their names, else those of one name.
///
/// # Errors
/// When a file cannot be read, or has no CRD.
pub fn files(old: &BundleFiles, new: &BundleFiles) -> Result<Comparison, CompareError> {
    files_with(old, new, &[])
}

/// As [`files`], and holds the custom resources of `given` against the new schemas.
///
/// # Errors
/// As [`files`].
pub fn files_with(
    old: &BundleFiles,
    new: &BundleFiles,
    given: &[Source<'_>],
) -> Result<Comparison, CompareError> {
    let (old_text, new_text) = (CrdFile::parse(old)?, CrdFile::parse(new)?);
    let (olds, news) = (old_text.crds()?, new_text.crds()?);
    let mut findings = Findings::new();
    match (olds.as_slice(), news.as_slice()) {
        ([old], [new]) => findings.extend(crd::compare(*old, *new)),
        _ => {
            let place = |text: &CrdFile<'_>| Place::file(text.source.path());
            let places = (&place(&old_text), &place(&new_text));
            crds(&olds, &news, places, &Partial::default(), &mut findings);
        }
    }
    findings.extend(broken::crds_of_file(old, new));
    hold(given, &samples::Crds { old: &olds, new: &news }, &mut findings)?;
    Ok(Comparison { findings: findings.into_sorted(new_text.source.path()) })
}

/// Checks custom resources against the new schemas.
fn hold(
    given: &[Source<'_>],
    crds: &samples::Crds<'_, '_, '_>,
    findings: &mut Findings,
) -> Result<(), CompareError> {
    for file in given {
        for document in documents(file.text()) {
            let document = document.map_err(|error| syntax(file, error.span, error.message))?;
            let place = Place::new(file, document.root.locate(&["kind".into()]));
            if let Some(unknown) = samples::sample(&document.root, &place, crds, findings) {
                let message = format!("{unknown} is of no version of a CRD here, so it was not checked");
                findings.push(Finding::new(&codes::SAMPLE_NOT_CHECKED, message).at(place));
            }
        }
    }
    Ok(())
}

fn syntax(source: &Source<'_>, span: Span, message: String) -> CompareError {
    CompareError::Syntax { path: Place::new(source, span).to_string(), message }
}

/// A file with CRDs.
#[derive(Debug)]
pub struct CrdFile<'a> {
    source: Source<'a>,
    documents: Vec<Document<'a>>,
}

impl<'a> CrdFile<'a> {
    /// Reads the file.
    ///
    /// # Errors
    /// When it is not YAML.
    pub fn parse(files: &'a BundleFiles) -> Result<Self, CompareError> {
        let file = files.files.first();
        let path = file.map(|file| files.display_path(file)).unwrap_or_default();
        let text = file.and_then(|file| file.content.text()).unwrap_or_default();
        let source = Source::new(path.strip_prefix("./").unwrap_or(&path), text);
        let documents: Result<_, _> = documents(text).collect();
        let documents = documents.map_err(|error| syntax(&source, error.span, error.message))?;
        Ok(Self { source, documents })
    }

    /// Its CRDs.
    ///
    /// # Errors
    /// When it has none.
    pub fn crds(&self) -> Result<Vec<Object<'_, 'a>>, CompareError> {
        let objects =
            self.documents.iter().map(|document| Object { source: &self.source, root: &document.root });
        let crds: Vec<_> = objects.filter(|object| object.kind() == "CustomResourceDefinition").collect();
        match crds.is_empty() {
            true => Err(CompareError::NoCrd { path: self.source.path().to_owned() }),
            false => Ok(crds),
        }
    }
}

/// Which versions have files that could not be read: what seems to be missing may be in them.
#[derive(Debug, Default)]
struct Partial {
    old: bool,
    new: bool,
}

/// Compares CRDs by their names.
fn crds(
    olds: &[Object<'_, '_>],
    news: &[Object<'_, '_>],
    (old, new): (&Place, &Place),
    partial: &Partial,
    findings: &mut Findings,
) {
    let by_name = |crds: &[Object<'_, '_>]| {
        crds.iter().enumerate().map(|(at, crd)| (crd.name().to_owned(), at)).collect::<BTreeMap<_, _>>()
    };
    let (old_names, new_names) = (by_name(olds), by_name(news));
    for (name, at) in &old_names {
        let crd = olds[*at];
        match new_names.get(name) {
            Some(next) => findings.extend(crd::compare(crd, news[*next])),
            None if partial.new => {}
            None => findings.push(
                Finding::new(&codes::CRD_REMOVED, format!("the CRD `{name}` is removed"))
                    .at(new.clone())
                    .and(crd.place(&["metadata".into(), "name".into()]).label("before"))
                    .subject(crd.id())
                    .help("keep the CRD, and stop serving its versions first"),
            ),
        }
    }
    for (name, at) in &new_names {
        if !old_names.contains_key(name) && !partial.old {
            let crd = news[*at];
            findings.push(
                Finding::new(&codes::CRD_ADDED, format!("the CRD `{name}` is new"))
                    .at(crd.place(&["metadata".into(), "name".into()]))
                    .and(old.clone())
                    .subject(crd.id()),
            );
        }
    }
}
