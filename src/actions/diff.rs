//! `bundle diff`: reads two versions of a bundle or of a CRD, from disk, from images or from git, and compares them.

mod edges;

use std::path::PathBuf;

use olmkit_bundle::diff::{Comparison, bundles_with, files_with};
use olmkit_bundle::finding::Levels;
use olmkit_bundle::load::{BundleFile, BundleFiles, Content, MAX_BUNDLE_BYTES, MAX_FILES};
use olmkit_bundle::parse::{Bundle, Texts};
use olmkit_bundle::source::Source;

pub use self::edges::{EdgesRequest, edges};
use crate::exit::Failure;
use crate::files::{self, read_text};
use crate::git::{Entry, Kind, Limits, Object};
use crate::image::Access;
use crate::input::{Input, Side};
use crate::report::FindingsAnswer;

/// What to compare, and how.
#[derive(Debug)]
pub struct Request {
    /// The old version.
    pub old: Side,
    /// The new version.
    pub new: Side,
    /// Files and directories with custom resources.
    pub samples: Vec<PathBuf>,
    /// What findings weigh.
    pub levels: Levels,
}

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
        Side::Input(Input::Disk(path)) if path.is_file() => {
            return Ok(Loaded::File(single(&path.display().to_string(), read_text(path)?)));
        }
        Side::Input(input) => return input.bundle(access).map(Loaded::Bundle),
        Side::Git(revision) => revision,
    };
    let name = revision.to_string();
    match revision.read(Limits { files: MAX_FILES, bytes: MAX_BUNDLE_BYTES })? {
        Object::File(bytes) => {
            let text = String::from_utf8(bytes)
                .map_err(|_| Failure::unknown(format!("`{name}` is not text in UTF-8")))?;
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
                return Err(Failure::misuse(error).help("pass files or directories with custom resources"));
            }
            found
        } else {
            vec![path.clone()]
        };
        for file in found {
            texts.push((file.display().to_string(), read_text(&file)?));
        }
    }
    Ok(texts)
}

/// Compares the two versions.
///
/// # Errors
/// When one cannot be read, or they cannot be compared: a bundle with a file, or bundles of two packages.
pub fn run(request: &Request, access: &Access) -> Result<FindingsAnswer, Failure> {
    let (old, new) = (load(&request.old, access)?, load(&request.new, access)?);
    let samples = read_samples(&request.samples)?;
    let samples: Vec<_> = samples.iter().map(|(path, text)| Source::new(path, text)).collect();
    let Comparison { findings } = match (&old, &new) {
        (Loaded::Bundle(old), Loaded::Bundle(new)) => {
            let mut texts = Texts::default();
            let (old, new) = (Bundle::parse_sharing(old, &mut texts), Bundle::parse_sharing(new, &mut texts));
            bundles_with(&old, &new, &samples)
        }
        (Loaded::File(old), Loaded::File(new)) => files_with(old, new, &samples),
        _ => {
            let error = format!(
                "cannot compare `{}` with `{}`: one is a bundle, the other a file",
                request.old, request.new
            );
            return Err(Failure::misuse(error).help("give two bundles, or two files with a CRD each"));
        }
    }
    .map_err(|error| {
        let help = error.help();
        Failure { help: Some(help.to_owned()), ..Failure::unknown(error) }
    })?;
    let mut answer = FindingsAnswer::new("upgrade");
    answer.inputs.push(request.new.to_string());
    answer.findings = request.levels.apply(findings);
    Ok(answer)
}
