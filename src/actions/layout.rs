//! A catalog's files as images hold them: a directory for each package, so that one can change without the others.

use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::fbc::write::{Format, to_files};
use olmkit_catalog::load::CatalogFiles;

use crate::exit::Failure;
use crate::image::{FileTree, Node};

/// Whether a catalog has files beside the directories of its packages. Hidden ones, such as `.indexignore`, do not count.
pub(super) fn is_mixed(tree: &FileTree) -> bool {
    let is_beside = |path: &str| !path.contains('/') && !path.starts_with('.');
    tree.iter().any(|(path, node)| matches!(node, Node::File(_)) && is_beside(path.as_str()))
}

/// A catalog with a directory for each package; in JSON when all of it was. `None` when a part of it cannot be read: then
/// it goes into the image as it is, and its server judges it.
///
/// # Errors
/// A package has a name that no directory can have.
pub(super) fn by_package(files: &CatalogFiles) -> Result<Option<FileTree>, Failure> {
    let catalog = Catalog::parse(files);
    if !catalog.faults.is_empty() {
        return Ok(None);
    }
    let is_json = catalog.files.iter().all(|file| file.source.text().trim_start().starts_with('{'));
    let format = if is_json { Format::Json } else { Format::Yaml };
    let mut tree = FileTree::new();
    for (path, text) in to_files(&catalog, format).map_err(Failure::incomplete)? {
        tree.add_file(&path, text)?;
    }
    Ok(Some(tree))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "\
schema: olm.package
name: one
defaultChannel: stable
---
schema: olm.package
name: two
defaultChannel: stable
";

    fn parted(text: &str) -> Option<Vec<String>> {
        let tree = by_package(&CatalogFiles::from_text("catalog.yaml", text)).unwrap()?;
        let files = tree.iter().filter(|(_, node)| matches!(node, Node::File(_)));
        Some(files.map(|(path, _)| path.to_string()).collect())
    }

    #[test]
    fn a_file_of_several_packages_is_parted() {
        assert_eq!(parted(TWO).unwrap(), ["one/catalog.yaml", "two/catalog.yaml"]);
        let json = r#"{"schema": "olm.package", "name": "one"} {"schema": "olm.package", "name": "two"}"#;
        assert_eq!(parted(json).unwrap(), ["one/catalog.json", "two/catalog.json"]);
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_is() {
        assert_eq!(parted("schema: [olm.package"), None);
    }

    #[test]
    fn names_cannot_lead_out() {
        assert!(by_package(&CatalogFiles::from_text("x", "schema: olm.package\nname: ../../etc\n")).is_err());
    }

    #[test]
    fn only_files_beside_directories_count() {
        let mut tree = FileTree::new();
        tree.add_file("one/catalog.yaml", "").unwrap();
        tree.add_file(".indexignore", "").unwrap();
        assert!(!is_mixed(&tree));
        tree.add_file("catalog.yaml", "").unwrap();
        assert!(is_mixed(&tree));
    }
}
