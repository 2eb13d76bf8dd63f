//! The catalog verbs.

use std::path::{Path, PathBuf};

use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use olmkit_catalog::path::{PathError, Query, Rules, paths};
use olmkit_catalog::validate;

use crate::exit::{Exit, Failure};
use crate::report::{FindingsAnswer, PathsAnswer};

fn load(path: &Path) -> Result<CatalogFiles, Failure> {
    CatalogFiles::load(path)
        .map_err(|error| Failure::unknown(error).help("give the directory that holds the catalog's files"))
}

/// Validates every catalog, and answers with all findings in the order of the catalogs.
///
/// # Errors
/// When a path cannot be read at all.
pub fn validate(catalogs: &[PathBuf]) -> Result<FindingsAnswer, Failure> {
    let mut findings = Vec::new();
    for path in catalogs {
        findings.extend(validate::validate(&Catalog::parse(&load(path)?)));
    }
    Ok(FindingsAnswer { what: "catalog", checked: catalogs.len(), findings })
}

/// Which ways to show.
#[derive(Debug)]
pub struct PathRequest {
    /// The catalog's directory.
    pub catalog: PathBuf,
    /// Of this package only.
    pub package: Option<String>,
    /// In this channel only.
    pub channel: Option<String>,
    /// From this ClusterServiceVersion only.
    pub from: Option<String>,
    /// Whose rules decide.
    pub rules: Rules,
}

/// Each version's way to the head of its channel.
///
/// # Errors
/// When the catalog cannot be read, what is asked about is not there, or a channel cannot be followed.
pub fn path(request: &PathRequest) -> Result<PathsAnswer, Failure> {
    let files = load(&request.catalog)?;
    let catalog = Catalog::parse(&files);
    let query = Query {
        package: request.package.as_deref(),
        channel: request.channel.as_deref(),
        from: request.from.as_deref(),
        rules: request.rules,
    };
    let paths = paths(&catalog, &query).map_err(|error| {
        let validate = format!("run `olmkit catalog validate {}`", request.catalog.display());
        match error {
            PathError::Graph { .. } => {
                Failure { exit: Exit::No, help: Some(validate), ..Failure::unknown(error) }
            }
            _ => Failure { exit: Exit::No, ..Failure::unknown(error) },
        }
    })?;
    Ok(PathsAnswer { paths })
}
