//! Small catalogs to serve.

use std::fs;
use std::path::{Path, PathBuf};

/// A catalog of one package with some versions, each replacing the one before.
pub(crate) fn package(name: &str, versions: usize) -> String {
    let csv = |version: usize| format!("{name}.v{version}.0.0");
    let entry = |version: usize| match version {
        1 => format!("{{name: {}}}", csv(1)),
        _ => format!("{{name: {}, replaces: {}}}", csv(version), csv(version - 1)),
    };
    let entries: Vec<_> = (1..=versions).map(entry).collect();
    let mut text = format!(
        "schema: olm.package\nname: {name}\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: {name}\nname: stable\nentries: [{}]\n",
        entries.join(", ")
    );
    for version in 1..=versions {
        text += &format!(
            "---\nschema: olm.bundle\npackage: {name}\nname: {}\nimage: registry.example.com/{name}:v{version}\nproperties:\n\
             - {{type: olm.package, value: {{packageName: {name}, version: {version}.0.0}}}}\n\
             - {{type: olm.gvk, value: {{group: {name}.example.com, version: v1, kind: Thing}}}}\n\
             - {{type: example.note, value: {}}}\n",
            csv(version),
            "lorem-ipsum-".repeat(20)
        );
    }
    text
}

/// A directory with a catalog of one file for each package; the directory goes with the value.
pub(crate) struct Catalog {
    dir: tempfile::TempDir,
}

impl Catalog {
    pub(crate) fn new(packages: &[(&str, usize)]) -> Self {
        let catalog = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(catalog.path()).unwrap();
        for (name, versions) in packages {
            catalog.put(name, *versions);
        }
        catalog
    }

    /// The catalog's directory.
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("catalog")
    }

    /// Where a compiled catalog may be.
    pub(crate) fn index(&self) -> PathBuf {
        self.dir.path().join("catalog.olmkit")
    }

    /// Writes a package, as one that appears whole.
    pub(crate) fn put(&self, name: &str, versions: usize) {
        let beside = self.dir.path().join("new");
        fs::write(&beside, package(name, versions)).unwrap();
        fs::rename(beside, self.file(name)).unwrap();
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(format!("{name}.yaml"))
    }
}

impl AsRef<Path> for Catalog {
    fn as_ref(&self) -> &Path {
        self.dir.path()
    }
}
