//! Whether a compiled catalog speaks of the files that are there: one digest of their names and sizes, which costs a walk
//! through the directory, and one of their content.

use std::io::Read as _;
use std::path::Path;

use olmkit_bundle::load::Content;
use sha2::{Digest as _, Sha256};

use olmkit_catalog::load::{self, CatalogFiles, Found, LoadError};

/// What a catalog's files were when they were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Fingerprint {
    /// The SHA-256 of all paths, sizes and contents.
    pub content: [u8; 32],
    /// The SHA-256 of all paths and sizes.
    pub shape: [u8; 32],
}

impl Fingerprint {
    /// That of files in memory.
    pub fn of(files: &CatalogFiles) -> Self {
        let mut digests = Digests::default();
        for file in &files.files {
            let bytes = match &file.content {
                Content::Text(text) => text.as_bytes(),
                _ => &[],
            };
            digests.file(&file.path, bytes.len() as u64);
            digests.content.update(bytes);
        }
        digests.finish()
    }

    /// That of a directory, or of a single file, read piece by piece.
    ///
    /// # Errors
    /// The directory cannot be listed. Files that cannot be read count as empty, as they do for [`Fingerprint::of`].
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let mut digests = Digests::default();
        let mut piece = vec![0; 64 << 10];
        let (root, files) = load::list(path)?;
        for (path, found) in files {
            let opened = match found {
                Found::File(file) => load::open(&root, &file).ok().and_then(Result::ok),
                Found::Unread(_) => None,
            };
            let Some((file, size)) = opened else {
                digests.file(&path, 0);
                continue;
            };
            digests.file(&path, size);
            let mut file = file.take(size);
            while let Ok(read @ 1..) = file.read(&mut piece) {
                digests.content.update(&piece[..read]);
            }
        }
        Ok(digests.finish())
    }

    /// The shape alone, of paths and sizes in the order of the paths. Files that cannot be read are of no size.
    pub fn shape<'p>(files: impl IntoIterator<Item = (&'p str, u64)>) -> [u8; 32] {
        let mut digests = Digests::default();
        files.into_iter().for_each(|(path, size)| digests.file(path, size));
        digests.finish().shape
    }

    /// The content's digest as people write it.
    pub fn to_hex(self) -> String {
        self.content.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[derive(Default)]
struct Digests {
    content: Sha256,
    shape: Sha256,
}

impl Digests {
    fn file(&mut self, path: &str, size: u64) {
        for digest in [&mut self.content, &mut self.shape] {
            digest.update(path.as_bytes());
            digest.update([0]);
            digest.update(size.to_le_bytes());
        }
    }

    fn finish(self) -> Fingerprint {
        Fingerprint { content: self.content.finalize().into(), shape: self.shape.finalize().into() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_on_disk_and_in_memory_agree() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("a")).unwrap();
        for (path, text) in [(".indexignore", "*.md"), ("README.md", "no"), ("a/b.yaml", "x: 1"), ("c", "")] {
            fs::write(root.path().join(path), text).unwrap();
        }
        let of = || Fingerprint::of(&CatalogFiles::load(root.path()).unwrap());
        let before = of();
        assert_eq!(Fingerprint::read(root.path()).unwrap(), before);
        assert_eq!(Fingerprint::shape([("a/b.yaml", 4), ("c", 0)]), before.shape);

        fs::write(root.path().join("README.md"), "ignored").unwrap();
        assert_eq!(of(), before);
        fs::write(root.path().join("a/b.yaml"), "x: 2").unwrap();
        assert_eq!((of().shape, of().content == before.content), (before.shape, false));
        fs::rename(root.path().join("c"), root.path().join("d")).unwrap();
        assert_ne!(of().shape, before.shape);
        assert_eq!(Fingerprint::read(root.path()).unwrap(), of());
    }
}
