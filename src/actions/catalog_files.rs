//! Where a catalog is written, and what its `.indexignore` hides.

use std::fs;
use std::path::{Path, PathBuf};

use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::{CatalogFiles, hidden_by};

use crate::exit::Failure;
use crate::files::{FileError, OutputDir};
use crate::image::Access;
use crate::input::Input;
use crate::shell::argument;

/// The directory that a catalog is written to, and the file's name in it if the catalog is one file.
pub(super) fn catalog_dir(catalog: &Path) -> Result<(OutputDir, String), Failure> {
    if !catalog.is_file() {
        // A file there may be is one; a directory of such a name is hardly meant.
        let is_named_file =
            catalog.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
        if is_named_file && !catalog.exists() {
            let name = catalog.display();
            let touched = argument(&name);
            let help = format!("name a directory, or run `touch {touched}` for a catalog of one file");
            return Err(
                Failure::usage(format!("`{name}` does not exist, and would become a directory")).help(help)
            );
        }
        return Ok((OutputDir::open_tree(catalog)?, String::new()));
    }
    let fail = |source| FileError::Read { path: catalog.to_owned(), source };
    let file = catalog.canonicalize().map_err(fail)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((OutputDir::open_tree(file.parent().unwrap_or(Path::new("/")))?, name))
}

/// A catalog, or an empty one where there is none yet.
pub(super) fn load_or_new(path: &Path) -> Result<CatalogFiles, Failure> {
    let is_empty = || path.is_dir() && CatalogFiles::load(path).is_ok_and(|files| files.files.is_empty());
    if path.exists() && !is_empty() {
        Input::Disk(path.to_owned()).catalog(&Access::default())
    } else {
        Ok(CatalogFiles { name: path.display().to_string(), files: Vec::new() })
    }
}

/// Refuses a package that the catalog does not show, although files that `.indexignore` hides from it have it: what is new would
/// contradict them as soon as they are shown again.
pub(super) fn check_not_hidden(path: &Path, catalog: &Catalog<'_>, package: &str) -> Result<(), Failure> {
    if !path.is_dir() || catalog.packages.iter().any(|blob| *blob.name == *package) {
        return Ok(());
    }
    let hidden = CatalogFiles::load_hidden_mentioning(path, package).map_err(Failure::incomplete)?;
    let parsed = Catalog::parse(&hidden);
    let Some(blob) = parsed.packages.iter().find(|blob| *blob.name == *package) else { return Ok(()) };
    let place = parsed.place(blob.at.with(blob.name.span));
    let error = HiddenError::Package { package: package.to_owned(), catalog: path.to_owned() };
    Err(Failure::failed(error).at(Some(place)).help(SHOW_HELP))
}

/// Refuses new files that would not belong to the catalog, or replace files that do not.
pub(super) fn check_visible<'p>(
    catalog: &Path,
    created: impl IntoIterator<Item = &'p str>,
) -> Result<(), Failure> {
    for path in created.into_iter().filter(|path| !path.is_empty()) {
        let file = catalog.join(path);
        if let Some(by) = hidden_by(catalog, path) {
            return Err(Failure::failed(HiddenError::File { file, by }).help(SHOW_HELP));
        }
        if fs::symlink_metadata(&file).is_ok() {
            return Err(FileError::Exists { path: file }.into());
        }
    }
    Ok(())
}

/// The way on for what is hidden.
const SHOW_HELP: &str =
    "remove the pattern from `.indexignore`, or the hidden file, then run the command again";

/// What an `.indexignore` hides.
#[derive(Debug, thiserror::Error)]
enum HiddenError {
    #[error("the package `{package}` is hidden in `{}` by `.indexignore`", .catalog.display())]
    Package { package: String, catalog: PathBuf },
    #[error("`{}` would not be part of the catalog: `{}` hides it", .file.display(), .by.display())]
    File { file: PathBuf, by: PathBuf },
}
