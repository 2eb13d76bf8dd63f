//! Files of bundles that are left out of images and catalogs.

/// Which files of a bundle were left out of something, if any were.
pub(super) fn note(paths: &[String], of: &str) -> Option<String> {
    const SHOWN: usize = 5;
    let shown: Vec<_> = paths.iter().take(SHOWN).map(|path| format!("`{path}`")).collect();
    let more = match paths.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let why = "OLM would read backups and notes as manifests";
    (!paths.is_empty()).then(|| format!("{}{more} left out of {of}: {why}", shown.join(", ")))
}
