//! The base ClusterServiceVersion that nobody named: operator-sdk keeps it in `bases`, beside the kustomization.

use std::path::{Path, PathBuf};

use super::{Inputs, Output};
use crate::exit::Failure;
use crate::files;

/// The directory of bases, and how their files end.
const BASES: &str = "bases";
const ENDING: &str = ".clusterserviceversion.yaml";

/// The base of the inputs: that of the package where there are several.
///
/// For `--kustomize DIR` it is in `DIR/bases`, as for operator-sdk's `--kustomize-dir`, or in `bases` of the `manifests` beside
/// `DIR`, where operator-sdk's projects have it; for a directory of manifests in any `bases` below it.
///
/// # Errors
/// When there are several, and none is the package's.
pub(super) fn find(
    inputs: &Inputs,
    package: Option<&str>,
    output: &Output,
) -> Result<Option<PathBuf>, Failure> {
    let beside = |directory: &PathBuf| {
        let parent = directory.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        [directory.join(BASES), parent.join("manifests").join(BASES)]
    };
    let mut directories: Vec<PathBuf> = inputs.kustomize.iter().flat_map(beside).collect();
    for path in inputs.paths.iter().filter(|path| path.is_dir()) {
        let below = files::below(path, |below| output.contains(below)).unwrap_or_default();
        let parents = below.iter().filter_map(|file| file.parent());
        let bases = parents.filter(|parent| parent.file_name().is_some_and(|name| name == BASES));
        directories.extend(bases.map(Path::to_owned));
    }
    directories.dedup();
    for directory in directories.iter().filter(|directory| directory.is_dir()) {
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut found = files::below(directory, |_| true).unwrap_or_default();
        found.retain(|path| name(path).ends_with(ENDING));
        let own = found.iter().find(|path| package.is_some_and(|own| name(path) == format!("{own}{ENDING}")));
        match (own, found.as_slice()) {
            (Some(own), _) => return Ok(Some(own.clone())),
            (None, [only]) => return Ok(Some(only.clone())),
            (None, []) => {}
            (None, several) => {
                let names: Vec<_> = several.iter().map(|path| format!("`{}`", name(path))).collect();
                let error = format!("`{}` contains several bases: {}", directory.display(), names.join(", "));
                return Err(Failure::usage(error).help("name the operator's with --base"));
            }
        }
    }
    Ok(None)
}
