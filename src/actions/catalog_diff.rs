//! `catalog diff`: reads two catalogs, from disk, from images or from git, and compares them.

mod git;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use olmkit_catalog::diff::{self, Diff};
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;

use self::git::Revision;
use crate::exit::Failure;
use crate::image::{Access, PlaceError};
use crate::input::Input;
use crate::report::{CatalogDiffAnswer, Denied};

/// One of the two catalogs.
#[derive(Clone, Debug)]
pub enum Side {
    /// A directory, a file or an image.
    Input(Input),
    /// What a revision of a git repository has: `git:REV:PATH`.
    Git(Revision),
}

impl FromStr for Side {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        match Revision::parse(text) {
            Some(revision) if !Path::new(text).exists() => Ok(Self::Git(revision)),
            _ => text.parse().map(Self::Input),
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(input) => input.fmt(f),
            Self::Git(revision) => revision.fmt(f),
        }
    }
}

impl Side {
    fn load(&self, access: &Access) -> Result<CatalogFiles, Failure> {
        match self {
            Self::Input(input) => input.catalog(access),
            Self::Git(revision) => revision.catalog(),
        }
    }
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

/// Compares the two catalogs.
///
/// # Errors
/// When one cannot be read completely: what is missing would look removed.
pub fn run(request: &Request, access: &Access) -> Result<CatalogDiffAnswer, Failure> {
    let (old, new) = (request.old.load(access)?, request.new.load(access)?);
    let (before, after) = (Catalog::parse(&old), Catalog::parse(&new));
    for (side, catalog) in [(&request.old, &before), (&request.new, &after)] {
        if let Some(fault) = catalog.faults.first() {
            let error = format!("a part of `{side}` cannot be read");
            let help = format!("run `olmkit catalog validate {side}`");
            return Err(Failure::no(error).at(Some(catalog.place(fault.at))).help(help));
        }
    }
    let Diff { schema, mut packages } = diff::diff(&before, &after);
    if let Some(package) = &request.package {
        let is_known = |catalog: &Catalog<'_>| catalog.packages.iter().any(|found| *found.name == **package);
        if !is_known(&before) && !is_known(&after) {
            return Err(Failure::no(format!("neither catalog has a package `{package}`")));
        }
        packages.retain(|found| found.name == *package);
    }
    Ok(CatalogDiffAnswer {
        diff: Diff { schema, packages },
        deny: request.deny.clone(),
        markdown: request.markdown,
    })
}
