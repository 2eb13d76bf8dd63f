//! Bundles in directories, and the manifests of one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use olmkit_bundle::parse::Bundle;
use serde_json::Value;

use crate::actions::output;
use crate::exit::Failure;
use crate::files;
use crate::image::Access;
use crate::input::Input;
use crate::lifecycle::api::Key;

/// The manifests of a bundle.
pub(super) fn manifests(input: &Input, access: &Access) -> Result<Vec<Value>, Failure> {
    let files = input.bundle(access)?;
    Ok(Bundle::parse(&files).objects().map(|object| object.root.to_json()).collect())
}

/// The bundles in the directories below a directory, by name: where they are, and their manifests.
pub(super) fn bundles_below(
    directory: &Path,
    access: &Access,
) -> Result<BTreeMap<String, (PathBuf, Vec<Value>)>, Failure> {
    let failed = |source| files::FileError::Read { path: directory.into(), source };
    let mut found = BTreeMap::new();
    let paths = std::fs::read_dir(directory).map_err(failed)?.map(|entry| Ok(entry?.path()));
    let mut paths = paths.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
    if output::is_bundle(directory) {
        return Err(Failure::usage(format!("`{}` is a bundle itself", directory.display()))
            .help("name the directory that has a subdirectory for each bundle"));
    }
    // So that of two bundles with one name the same one is taken on every machine.
    paths.sort();
    for path in paths {
        if !path.is_dir() {
            continue;
        }
        let manifests = manifests(&Input::Disk(path.clone()), access)?;
        let csv = manifests.iter().find(|object| object["kind"] == olmkit_bundle::csv::KIND);
        if let Some(name) = csv.map(|csv| Key::of(csv).name) {
            found.insert(name, (path, manifests));
        }
    }
    if found.is_empty() {
        return Err(Failure::usage(format!("`{}` has no bundles", directory.display()))
            .help("name the directory that has a subdirectory for each bundle"));
    }
    Ok(found)
}
