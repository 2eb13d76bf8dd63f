//! `bundle convert`: a directory of package manifests becomes a directory of bundles.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use olmkit_bundle::convert::{self, PackageFiles};
use olmkit_bundle::source::Source;

use super::output::Output;
use crate::exit::Failure;
use crate::files::{self, OutputDir};
use olmkit_bundle::convert::Conversion;

/// What to convert, and where to.
#[derive(Debug)]
pub struct Request {
    /// The directory with the package's file and a directory for each version.
    pub directory: PathBuf,
    /// Where the bundles go: a directory for each, new or empty.
    pub output_dir: PathBuf,
}

/// Bundles made of package manifests, or the findings that prevented them.
#[derive(Debug)]
pub struct Converted {
    /// The directory of the bundles.
    pub output_dir: PathBuf,
    /// What was made.
    pub conversion: Conversion,
}

/// Makes the bundles. The output directory and other bundles below the input are not input.
///
/// # Errors
/// When the package cannot be read, or the output not be written.
pub fn run(request: Request) -> Result<Converted, Failure> {
    let directory = &request.directory;
    let list = |source| files::FileError::List { path: directory.clone(), source };
    let (mut manifest, mut versions) =
        (None::<(PathBuf, String)>, BTreeMap::<String, Vec<(String, String)>>::new());
    let output = Output::of(&request.output_dir);
    for path in files::below(directory, |below| output.contains(below)).map_err(list)? {
        let below = path.strip_prefix(directory).unwrap_or(&path).to_string_lossy().into_owned();
        if !path.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json") {
            continue;
        }
        let text = files::read_text(&path)?;
        match below.split_once('/') {
            Some((version, file)) => versions.entry(version.into()).or_default().push((file.into(), text)),
            None if is_package(&text) => {
                if let Some((first, _)) = &manifest {
                    let error = format!("two package files: `{}` and `{}`", first.display(), path.display());
                    return Err(Failure::usage(error).help("remove one of them"));
                }
                manifest = Some((path, text));
            }
            None => {}
        }
    }
    let Some((path, text)) = &manifest else {
        return Err(Failure::usage(format!(
            "`{}` is not a directory of package manifests",
            directory.display()
        ))
        .help("give the directory that holds `NAME.package.yaml` and a directory for each version"));
    };
    let shown = |path: &Path| path.display().to_string();
    let mut package = PackageFiles { manifest: Source::new(shown(path), text), versions: BTreeMap::new() };
    for (version, files) in &versions {
        let files = files.iter().map(|(file, text)| read(directory, version, file, text));
        package.versions.insert(version.clone(), files.collect());
    }
    let conversion = convert::convert(&package);
    if !conversion.bundles.is_empty() {
        let mut tree = BTreeMap::<String, Option<Vec<u8>>>::new();
        for bundle in &conversion.bundles {
            for (path, text) in &bundle.files {
                let path = format!("{}/{path}", bundle.directory);
                for (at, _) in path.match_indices('/') {
                    tree.insert(path[..at].to_owned(), None);
                }
                tree.insert(path, Some(text.clone().into_bytes()));
            }
        }
        OutputDir::open(&request.output_dir)?.fill(&tree)?;
    }
    Ok(Converted { output_dir: request.output_dir, conversion })
}

/// Whether a file says what a package has: by its key, for the word stands in other files too.
fn is_package(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("packageName")) || text.contains("\"packageName\"")
}

fn read<'t>(directory: &Path, version: &str, file: &str, text: &'t str) -> (String, Source<'t>) {
    let path = directory.join(version).join(file).display().to_string();
    (file.to_owned(), Source::new(path, text))
}
