//! `bundle diff`: reads two versions of a bundle or of a CRD, from disk, from images or from git, and compares them.

mod edges;
pub mod live;
mod policy;

use std::path::PathBuf;
use std::time::Duration;

use olmkit_bundle::diff::{Beside, CompareError, CrdFile, bundles_with, files_with};
use olmkit_bundle::finding::{Finding, Levels};
use olmkit_bundle::load::{BundleFile, BundleFiles, Content, MAX_BUNDLE_BYTES, MAX_FILES};
use olmkit_bundle::parse::{Bundle, Object as Manifest, Texts};
use olmkit_bundle::source::Source;

pub use self::edges::{EdgesRequest, edges};
use crate::actions::results::Checked;
use crate::exit::Failure;
use crate::files::{self, read_text_or_pipe};
use crate::git::{Entry, Kind, Limits, Object};
use crate::image::Access;
use crate::input::Input;
use crate::limits;
use crate::shell::argument;
use crate::side::Side;

/// What to compare, and how.
#[derive(Debug)]
pub struct Request {
    /// The old version.
    pub old: Side,
    /// The new version.
    pub new: Side,
    /// Files and directories with custom resources.
    pub samples: Vec<PathBuf>,
    /// A cluster with custom resources.
    pub live: Option<live::Request>,
    /// The package file, or a Cargo.toml, that states the policy.
    pub package_file: Option<PathBuf>,
    /// What findings weigh.
    pub levels: Levels,
}

/// What was found, and between which versions.
#[derive(Debug)]
pub struct Compared {
    /// The findings.
    pub answer: Checked,
    /// The upgrades that were compared; of each package the newest first.
    pub upgrades: Vec<Upgrade>,
}

/// Time limit for reading a pipe.
const PIPE_PATIENCE: Duration = Duration::from_secs(60);

/// What a version is, once it is read.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// The files of a bundle.
    Bundle(BundleFiles),
    /// One file with CRDs.
    File(BundleFiles),
}

/// Reads one of the two versions.
fn load(side: &Side, access: &Access) -> Result<Loaded, Failure> {
    let revision = match side {
        Side::Input(Input::Disk(path)) if path.exists() && !path.is_dir() => {
            return Ok(Loaded::File(single(
                &path.display().to_string(),
                read_text_or_pipe(path, limits::Limits::begin(PIPE_PATIENCE))?,
            )));
        }
        Side::Input(input) => return input.bundle(access).map(Loaded::Bundle),
        Side::Git(revision) => revision,
    };
    let name = revision.to_string();
    match revision.read(Limits { files: MAX_FILES, bytes: MAX_BUNDLE_BYTES })? {
        Object::File(bytes) => {
            let text = String::from_utf8(bytes)
                .map_err(|_| Failure::incomplete(format!("`{name}` is not text in UTF-8")))?;
            Ok(Loaded::File(single(&name, text)))
        }
        Object::Directory(entries) => {
            let files = entries.into_iter().map(bundle_file).collect();
            Ok(Loaded::Bundle(BundleFiles { name, files }))
        }
    }
}

fn bundle_file(entry: Entry) -> BundleFile {
    let content = match entry.kind {
        Kind::File => Content::from_bytes(entry.content),
        Kind::Link => Content::Unread("it is a symbolic link".into()),
        Kind::Other => Content::Unread("it is not a plain file".into()),
    };
    BundleFile { path: entry.path, content }
}

/// A file as the only one of its input.
fn single(name: &str, text: String) -> BundleFiles {
    let (directory, file) = name.rsplit_once('/').unwrap_or((".", name));
    let directory = if directory.is_empty() { "/" } else { directory };
    let file = BundleFile { path: file.to_owned(), content: Content::Text(text) };
    BundleFiles { name: directory.to_owned(), files: vec![file] }
}

/// The texts of files, and of the YAML and JSON files below directories.
fn read_samples(paths: &[PathBuf]) -> Result<Vec<(String, String)>, Failure> {
    let mut texts = Vec::new();
    for path in paths {
        let found = if path.is_dir() {
            let list = |source| files::FileError::List { path: path.clone(), source };
            let mut found = files::below(path, |_| false).map_err(list)?;
            found.retain(|file| file.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json"));
            if found.is_empty() {
                let error = format!("no YAML or JSON file in `{}`", path.display());
                return Err(Failure::usage(error).help("pass files or directories with custom resources"));
            }
            found
        } else {
            vec![path.clone()]
        };
        for file in found {
            let text = read_text_or_pipe(&file, limits::Limits::begin(PIPE_PATIENCE))?;
            texts.push((file.display().to_string(), text));
        }
    }
    Ok(texts)
}

/// An upgrade that notes are written for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// The input of its findings.
    pub input: String,
    /// The package; the names of CRDs where two files are compared.
    pub package: String,
    /// The versions; none where two files are compared.
    pub versions: Option<(String, String)>,
}

/// Compares the two versions.
///
/// # Errors
/// When one cannot be read, or they cannot be compared: a bundle with a file, or bundles of two packages.
pub fn run(request: &Request, access: &Access) -> Result<Compared, Failure> {
    let policy = request.package_file.as_deref().map(policy::read).transpose()?;
    let (old, new) = (load(&request.old, access)?, load(&request.new, access)?);
    let samples = read_samples(&request.samples)?;
    let samples: Vec<_> = samples.iter().map(|(path, text)| Source::new(path, text)).collect();
    let mut upgrade = Upgrade { input: request.new.to_string(), package: String::new(), versions: None };
    let mut findings;
    match (&old, &new) {
        (Loaded::Bundle(old), Loaded::Bundle(new)) => {
            let mut texts = Texts::default();
            let (old, new) = (Bundle::parse_sharing(old, &mut texts), Bundle::parse_sharing(new, &mut texts));
            let beside = Beside { samples: &samples, policy: policy.as_ref(), history: &[] };
            findings = bundles_with(&old, &new, &beside).map_err(cannot_compare)?.findings;
            (upgrade.package, upgrade.versions) = names(&old, &new);
            let (olds, news): (Vec<_>, Vec<_>) = (old.crds().collect(), new.crds().collect());
            findings.extend(of_cluster(request, &findings, &olds, &news)?);
        }
        (Loaded::File(_), Loaded::File(_)) if policy.is_some() => {
            let error = "--package-file sets the policy of a package, but CRDs have no versions";
            return Err(Failure::usage(error).help("give two bundles, or omit --package-file"));
        }
        (Loaded::File(old), Loaded::File(new)) => {
            findings = files_with(old, new, &samples).map_err(cannot_compare)?.findings;
            let (old, new) = (CrdFile::parse(old), CrdFile::parse(new));
            let (old, new) = (old.map_err(cannot_compare)?, new.map_err(cannot_compare)?);
            let (olds, news) = (old.crds().map_err(cannot_compare)?, new.crds().map_err(cannot_compare)?);
            upgrade.package = news.iter().map(|crd| crd.name()).collect::<Vec<_>>().join(", ");
            findings.extend(of_cluster(request, &findings, &olds, &news)?);
        }
        _ => {
            let error = format!(
                "cannot compare `{}` with `{}`: one is a bundle, the other a file",
                request.old, request.new
            );
            return Err(Failure::usage(error).help("give two bundles, or two files with a CRD each"));
        }
    }
    let mut answer = Checked::new("upgrade");
    answer.inputs.push(request.new.to_string());
    answer.findings = request.levels.apply(findings);
    Ok(Compared { answer, upgrades: vec![upgrade] })
}

/// What the cluster adds, where one is to be asked.
fn of_cluster(
    request: &Request,
    known: &[Finding],
    olds: &[Manifest<'_, '_>],
    news: &[Manifest<'_, '_>],
) -> Result<Vec<Finding>, Failure> {
    let Some(cluster) = &request.live else { return Ok(Vec::new()) };
    let mut found = live::check(cluster, olds, news)?;
    let input = known.first().map(|finding| finding.input.clone());
    let input = input.unwrap_or_else(|| request.new.to_string());
    found.iter_mut().for_each(|finding| finding.input.clone_from(&input));
    Ok(found)
}

fn cannot_compare(error: CompareError) -> Failure {
    let help = match &error {
        CompareError::NoCsv { bundle } => format!("run `olmkit bundle validate {}`", argument(bundle)),
        error => error.help().to_owned(),
    };
    let failure = match error {
        CompareError::Packages { .. } => Failure::usage(error),
        error => Failure::incomplete(error),
    };
    failure.help(help)
}

/// The package of two bundles, and their versions.
fn names(old: &Bundle<'_>, new: &Bundle<'_>) -> (String, Option<(String, String)>) {
    let version = |bundle: &Bundle<'_>| bundle.csv().map(|csv| csv.typed.spec.version.clone());
    let package = new.annotations().map(|annotations| annotations.package()).unwrap_or_default();
    let package = match package.as_str() {
        "" => new.csv().map(|csv| csv.typed.name().to_owned()).unwrap_or_default(),
        _ => package,
    };
    (package, version(old).zip(version(new)))
}
