//! A catalog's files in several layers, so that a small change uploads a small layer.
//!
//! What a layer holds depends on the packages' names and sizes alone, and hardly on each other: a package of some size
//! has a layer of its own, the others are dealt to a fixed number of layers by their names. So a package that changes
//! changes its own layer, and one that is added or removed likewise.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::image::{FileTree, TreeError, TreePath};

/// Catalogs up to this many bytes are one layer: sending it again costs less than asking after several.
const WHOLE: u64 = 2 << 20;
/// A package of more bytes has its own layer.
const LARGE: u64 = 4 << 20;
/// How many packages have their own layer at most; beyond that, they have to be larger. Containers take about 120 layers,
/// and the base wants some.
const MAX_LARGE: usize = 48;
/// Among how many layers the small packages are dealt.
const SHARED: u8 = 8;

/// Parts what lies below `dir` by the directories in it, one for each package. Files beside those go with the small ones.
///
/// # Errors
/// Never: the parts of a tree fit into trees.
pub(super) fn by_package(tree: &FileTree, dir: &str) -> Result<Vec<FileTree>, TreeError> {
    if tree.size() <= WHOLE {
        return Ok(vec![tree.clone()]);
    }
    let mut packages: BTreeMap<&str, FileTree> = BTreeMap::new();
    for (path, node) in tree.iter() {
        if let Some(package) = package_of(path, dir) {
            packages.entry(package).or_default().insert(path.clone(), node.clone())?;
        }
    }
    let mut large = LARGE;
    while packages.values().filter(|package| package.size() > large).count() > MAX_LARGE {
        large *= 2;
    }
    let mut own = Vec::new();
    let mut shared: BTreeMap<u8, FileTree> = BTreeMap::new();
    for (name, package) in packages {
        if package.size() > large {
            own.push(package);
        } else {
            shared.entry(Sha256::digest(name)[0] % SHARED).or_default().add_tree(package)?;
        }
    }
    // The large ones change the least often in relation to their size; those below come first.
    own.extend(shared.into_values());
    Ok(own)
}

fn package_of<'p>(path: &'p TreePath, dir: &str) -> Option<&'p str> {
    path.as_str().strip_prefix(dir)?.strip_prefix('/')?.split('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Compression, Layer};

    fn catalog(packages: &[(&str, usize)]) -> FileTree {
        let mut tree = FileTree::new();
        for (name, size) in packages {
            tree.add_file(&format!("configs/{name}/catalog.yaml"), "x".repeat(*size)).unwrap();
        }
        tree
    }

    fn digests(tree: &FileTree) -> Vec<String> {
        let layers =
            Layer::build_all(&by_package(tree, "configs").unwrap(), Compression::Gzip, |_| {}).unwrap();
        layers.iter().map(|layer| layer.diff_id().to_string()).collect()
    }

    #[test]
    fn small_catalogs_are_one_layer() {
        assert_eq!(digests(&catalog(&[("a", 1 << 20), ("b", 1 << 20)])).len(), 1);
    }

    #[test]
    fn everything_is_in_one_layer_only() {
        let names: Vec<String> = (0..100).map(|n| format!("package-{n}")).collect();
        let sizes =
            names.iter().enumerate().map(|(n, name)| (name.as_str(), 100_000 * n)).collect::<Vec<_>>();
        let mut tree = catalog(&sizes);
        tree.add_file("configs/.indexignore", "x").unwrap();
        let parts = by_package(&tree, "configs").unwrap();
        assert!(parts.len() <= MAX_LARGE + usize::from(SHARED), "{}", parts.len());
        let mut files = 0;
        let mut whole = FileTree::new();
        for part in parts {
            files += part.iter().filter(|(path, _)| part.file(path.as_str()).is_some()).count();
            whole.add_tree(part).unwrap();
        }
        assert_eq!(files, 101);
        assert_eq!(whole.size(), tree.size());
    }

    #[test]
    fn a_package_that_changes_changes_one_layer() {
        let sizes = |changed: usize| -> Vec<(String, usize)> {
            (0..60)
                .map(|n| {
                    (
                        format!("p{n}"),
                        100_000 + usize::from(n == changed) + usize::from(n % 20 == 0) * 4_500_000,
                    )
                })
                .collect()
        };
        let digests = |changed| {
            let sizes = sizes(changed);
            digests(&catalog(&sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect::<Vec<_>>()))
        };
        let before = digests(usize::MAX);
        for changed in [3, 20, 59] {
            let after = digests(changed);
            assert_eq!(before.len(), after.len());
            assert_eq!(after.iter().filter(|digest| !before.contains(digest)).count(), 1, "{changed}");
        }
    }
}
