//! Files of bundles that are left out of images and catalogs.

use crate::sentence::first_of;

/// Which files of a bundle were left out of something, if any were.
pub(super) fn note(paths: &[String], of: &str) -> Option<String> {
    const SHOWN: usize = 5;
    let paths: Vec<_> = paths.iter().map(|path| format!("`{path}`")).collect();
    let why = "OLM would read backups and notes as manifests";
    (!paths.is_empty()).then(|| format!("{} left out of {of}: {why}", first_of(&paths, SHOWN)))
}
