//! `catalog diff`: reads two catalogs, from disk, from images or from git, and compares them.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use olmkit_catalog::diff::{self, Diff};
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::{CatalogFiles, MAX_BYTES, MAX_FILES};

use super::absent::{What, Within};
use super::readable::check_readable;
use crate::exit::Failure;
use crate::git::{Kind, Limits, Object};
use crate::image::Access;
use crate::side::Side;
use clap::ValueEnum;
use olmkit_catalog::diff::{Kind as Change, PackageDiff};

/// Reads a catalog.
///
/// # Errors
/// It cannot be read.
pub(super) fn load(side: &Side, access: &Access) -> Result<CatalogFiles, Failure> {
    let revision = match side {
        Side::Input(input) => return input.catalog(access),
        Side::Git(revision) => revision,
    };
    let object = revision.read(Limits { files: MAX_FILES, bytes: MAX_BYTES })?;
    // By way of a directory: which files count is the catalog's own business.
    let dir = tempfile::tempdir().map_err(Failure::incomplete)?;
    let root = dir.path().join("catalog");
    write(&object, &root).map_err(Failure::incomplete)?;
    let files = CatalogFiles::load(&root).map_err(Failure::incomplete)?;
    Ok(CatalogFiles { name: revision.to_string(), ..files })
}

fn write(object: &Object, root: &Path) -> io::Result<()> {
    let entries = match object {
        Object::File(bytes) => return fs::write(root, bytes),
        Object::Directory(entries) => entries,
    };
    fs::create_dir(root)?;
    // Links last, so that nothing is written through one; the reader follows none that leads out.
    for kind in [Kind::File, Kind::Link] {
        for entry in entries.iter().filter(|entry| entry.kind == kind) {
            let target = root.join(&entry.path);
            fs::create_dir_all(target.parent().unwrap_or(root))?;
            match kind {
                Kind::Link => symlink(OsStr::from_bytes(&entry.content), &target)?,
                Kind::File | Kind::Other => fs::write(&target, &entry.content)?,
            }
        }
    }
    Ok(())
}

/// What to compare.
#[derive(Debug)]
pub struct Request {
    /// The old catalog.
    pub old: Side,
    /// The new catalog.
    pub new: Side,
    /// Filter by package.
    pub package: Option<String>,
    /// Differences that are failures.
    pub deny: Vec<Denied>,
    /// Whether people read it as Markdown.
    pub markdown: bool,
}

/// The differences, and which of them are failures.
#[derive(Debug)]
pub struct Compared {
    /// The differences.
    pub diff: Diff,
    /// Those that are failures.
    pub deny: Vec<Denied>,
    /// Whether text is Markdown.
    pub markdown: bool,
    /// The old and the new catalog, as they were named.
    pub sides: (String, String),
}

/// A difference that is a failure where it is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Denied {
    /// A version can no longer upgrade to the head of its channel
    LostPaths,
    /// Clusters with a version no longer reach the head of its channel
    Stranded,
    /// A package is gone
    RemovedPackages,
    /// A channel is gone
    RemovedChannels,
    /// A bundle is gone
    RemovedBundles,
    /// A published bundle is not what it was
    ChangedBundles,
    /// The default channel of a package is another one
    DefaultChannel,
    /// Anything differs
    Any,
}

impl Denied {
    /// How many of these differences a package has, and what they are called.
    pub fn count(self, package: &PackageDiff) -> usize {
        let bundles = |change| package.bundles.iter().filter(|bundle| bundle.change == change).count();
        match self {
            Self::LostPaths => package.paths_lost.len(),
            Self::Stranded => package.stranded.len(),
            Self::RemovedPackages => usize::from(package.change == Change::Removed),
            Self::RemovedChannels => {
                package.channels.iter().filter(|channel| channel.change == Change::Removed).count()
            }
            Self::RemovedBundles => bundles(Change::Removed),
            Self::ChangedBundles => bundles(Change::Changed),
            Self::DefaultChannel => usize::from(package.default_channel.is_some()),
            Self::Any => 1,
        }
    }

    /// What one of them is called.
    pub fn noun(self) -> &'static str {
        match self {
            Self::LostPaths => "lost upgrade path",
            Self::Stranded => "stranded version",
            Self::RemovedPackages => "removed package",
            Self::RemovedChannels => "removed channel",
            Self::RemovedBundles => "removed bundle",
            Self::ChangedBundles => "changed bundle",
            Self::DefaultChannel => "changed default channel",
            Self::Any => "difference",
        }
    }
}

/// Compares the two catalogs.
///
/// # Errors
/// When one cannot be read completely: what is missing would look removed.
pub fn run(request: &Request, access: &Access) -> Result<Compared, Failure> {
    let (old, new) = (load(&request.old, access)?, load(&request.new, access)?);
    let (before, after) = (Catalog::parse(&old), Catalog::parse(&new));
    for (side, catalog) in [(&request.old, &before), (&request.new, &after)] {
        check_readable(catalog, side)?;
    }
    let Diff { schema, mut packages, mut others, .. } = diff::diff(&before, &after);
    if let Some(package) = &request.package {
        let is_known = |catalog: &Catalog<'_>| catalog.packages.iter().any(|found| *found.name == **package);
        if !is_known(&before) && !is_known(&after) {
            let input: &dyn std::fmt::Display = match (&request.new, &request.old) {
                (Side::Input(input), _) | (_, Side::Input(input)) => input,
                _ => &"CATALOG",
            };
            let within = Within { catalog: &after, input, package: None };
            let error = format!("neither catalog has a package `{package}`");
            return Err(Failure::failed(error).help(within.help(What::Package, package)));
        }
        packages.retain(|found| found.name == *package);
        others.clear();
    }
    Ok(Compared {
        diff: Diff { schema, packages, others, denied: Vec::new() },
        sides: (request.old.to_string(), request.new.to_string()),
        deny: request.deny.clone(),
        markdown: request.markdown,
    })
}
