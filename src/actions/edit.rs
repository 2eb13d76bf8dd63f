//! Edits of catalogs in place.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use olmkit_bundle::finding::Finding;
use olmkit_catalog::edit::{self, Change, ChangedFile, EditError, Request};
use olmkit_catalog::load::CatalogFiles;

use super::catalog_files::{catalog_dir, check_visible, load_or_new};
use crate::exit::Failure;
use crate::files::OutputDir;
use crate::image::Access;
use crate::input::Input;
use crate::shell::argument;

/// A catalog, and what to change in it.
#[derive(Debug)]
pub struct EditRequest {
    /// The catalog's directory or file.
    pub catalog: PathBuf,
    /// What to change.
    pub request: Request,
    /// Whether to only say what would be changed.
    pub dry_run: bool,
}

/// A change to a catalog.
#[derive(Debug)]
pub struct Edited {
    /// The catalog as it was named.
    pub catalog: PathBuf,
    /// Where paths of its diff start, if not here.
    pub base: Option<DiffBase>,
    /// Whether the catalog is that file alone.
    pub is_file: bool,
    /// The change.
    pub change: Change,
    /// Whether it was not made.
    pub dry_run: bool,
    /// Whether it is a failure that something is to be changed.
    pub must_be_unchanged: bool,
}

/// A directory that has the catalog, and the catalog's path in it.
#[derive(Debug)]
pub struct DiffBase {
    /// The directory, unless it is the current one.
    pub root: Option<PathBuf>,
    /// The catalog below it.
    pub path: PathBuf,
}

/// Edits a catalog. Its files change only when the result is valid.
///
/// # Errors
/// When the catalog cannot be read or written, or the edit cannot be made.
pub fn edit(request: &EditRequest) -> Result<Edited, Failure> {
    let EditRequest { catalog, request, dry_run } = request;
    if let Request::Init(_) = request {
        check_new(catalog)?;
        return change_with(catalog, *dry_run, || {
            edit::edit(&load_or_new(catalog)?, request).map_err(|error| edit_failure(error, catalog))
        });
    }
    edit_with(catalog, *dry_run, || {
        let edited = match edit::edit(&load_for(catalog, request)?, request) {
            // Files that were left out may hold the rest of a package which is only mentioned, or the package that is meant.
            Err(EditError::Invalid { .. } | EditError::Unreadable { .. } | EditError::NoPackage { .. }) => {
                edit::edit(&load(catalog)?, request)
            }
            edited => edited,
        };
        edited.map_err(|error| edit_failure(error, catalog))
    })
}

/// Brings other catalogs into one, which need not be there yet.
///
/// # Errors
/// When a catalog cannot be read or written, or two do not go together.
pub fn merge(catalog: &Path, others: &[Input], dry_run: bool, access: &Access) -> Result<Edited, Failure> {
    check_new(catalog)?;
    let files: Vec<CatalogFiles> =
        others.iter().map(|other| other.catalog(access)).collect::<Result<_, _>>()?;
    // The fault may be in any of them.
    let at_fault = |error: &EditError| {
        let file = Path::new(&error.place()?.path);
        let mut directories = others.iter().filter_map(|other| match other {
            Input::Disk(path) => Some(path.as_path()),
            _ => None,
        });
        directories.find(|directory| file.starts_with(directory))
    };
    change_with(catalog, dry_run, || {
        edit::merge(&load_or_new(catalog)?, &files).map_err(|error| {
            let broken = at_fault(&error).unwrap_or(catalog);
            edit_failure(error, broken)
        })
    })
}

/// Refuses the name of a file for a new catalog, which is a directory.
fn check_new(catalog: &Path) -> Result<(), Failure> {
    check_is_no_image(catalog)?;
    let is_file = catalog.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
    if !is_file || catalog.exists() {
        return Ok(());
    }
    let directory = catalog.with_extension("");
    Err(Failure::usage(format!("`{}` does not exist, and a new catalog is a directory", catalog.display()))
        .help(format!("pass a directory, such as `{}`", argument(directory.display()))))
}

/// Refuses an image, which would become the name of a directory.
fn check_is_no_image(catalog: &Path) -> Result<(), Failure> {
    let name = catalog.to_string_lossy();
    match name.parse() {
        Ok(Input::Image(_)) => Err(Failure::usage(format!("`{name}` is an image, which cannot be edited")).help(
            format!(
                "write it to a directory, `mkdir catalog && olmkit catalog render {} > catalog/catalog.yaml`, edit it there, and \
                 build the image again",
                argument(&name)
            ),
        )),
        _ => Ok(()),
    }
}

/// Makes a change to a catalog while nobody else writes to it.
pub(super) fn edit_with(
    catalog: &Path,
    dry_run: bool,
    change: impl FnOnce() -> Result<Change, Failure>,
) -> Result<Edited, Failure> {
    if !catalog.exists() {
        check_is_no_image(catalog)?;
        load(catalog)?;
    }
    change_with(catalog, dry_run, change)
}

/// The same for a catalog that need not be there yet.
fn change_with(
    catalog: &Path,
    dry_run: bool,
    change: impl FnOnce() -> Result<Change, Failure>,
) -> Result<Edited, Failure> {
    // Others wait from before the catalog is read until it is written: of two edits at once, one would undo the other.
    let open = if dry_run { None } else { Some(catalog_dir(catalog)?) };
    let change = change()?;
    let created = change.files.iter().filter(|file| file.old.is_none());
    check_visible(catalog, created.map(|file| file.path.as_str()))?;
    if let Some((mut directory, file)) = open {
        write(&mut directory, &file, &change.files)?;
    }
    Ok(Edited {
        catalog: catalog.to_owned(),
        base: diff_base(catalog),
        is_file: catalog.is_file(),
        change,
        dry_run,
        must_be_unchanged: false,
    })
}

/// Where the paths of a diff of the catalog start, unless it is here: `git apply` takes none that lead out of a directory, or
/// through a symbolic link.
fn diff_base(catalog: &Path) -> Option<DiffBase> {
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok()?;
    let whole = catalog.canonicalize().ok()?;
    let leads_out = catalog.is_absolute() || catalog.components().any(|part| part == Component::ParentDir);
    if !leads_out && here.join(catalog) == whole {
        return None;
    }
    let below = |root: &Path| Some(whole.strip_prefix(root).ok()?.to_owned());
    if let Some(path) = below(&here) {
        return Some(DiffBase { root: None, path });
    }
    let repository = whole.ancestors().find(|above| above.join(".git").exists());
    let root = repository.or_else(|| whole.ancestors().find(|above| here.starts_with(above)))?;
    Some(DiffBase { root: Some(root.to_owned()), path: below(root)? })
}

/// Writes the files that are different, then removes those that are gone.
fn write(directory: &mut OutputDir, file: &str, changes: &[ChangedFile]) -> Result<(), Failure> {
    let path =
        |change: &ChangedFile| if change.path.is_empty() { file.to_owned() } else { change.path.clone() };
    let new: BTreeMap<String, Option<&str>> =
        changes.iter().filter_map(|change| Some((path(change), Some(change.new.as_deref()?)))).collect();
    let gone: Vec<String> = changes.iter().filter(|change| change.new.is_none()).map(path).collect();
    directory.write(&new)?;
    Ok(directory.remove(&gone)?)
}

/// The files of a catalog that an edit is about. Those that do not mention its package are left out, since to read a large catalog
/// takes longer than to edit it.
fn load_for(catalog: &Path, request: &Request) -> Result<CatalogFiles, Failure> {
    let Some(package) = request.package() else { return load(catalog) };
    let fail = |error| Failure::incomplete(error).help("give the directory that holds the catalog's files");
    let files = CatalogFiles::load_mentioning(catalog, &[package]).map_err(fail)?;
    if files.files.is_empty() {
        // What removed the last package leaves an empty directory.
        return if let Request::Remove { .. } = request { load_or_new(catalog) } else { load(catalog) };
    }
    // Others may require APIs of it without naming it.
    let groups = match request {
        Request::Remove { channel: None, .. } => edit::provided_groups(&files, package),
        _ => Vec::new(),
    };
    if groups.is_empty() {
        return Ok(files);
    }
    let words: Vec<&str> = groups.iter().map(String::as_str).chain([package]).collect();
    CatalogFiles::load_mentioning(catalog, &words).map_err(fail)
}

pub(super) fn load(catalog: &Path) -> Result<CatalogFiles, Failure> {
    Input::Disk(catalog.to_owned()).catalog(&Access::default())
}

/// A help in which the verbs that it names are whole commands.
fn spelled_out(help: &str, error: &EditError, catalog: &Path) -> String {
    let file = error.place().map_or_else(|| catalog.display().to_string(), |place| place.path.clone());
    let error = if let EditError::InTemplate { source, .. } = error { source } else { error };
    let catalog = argument(catalog.display());
    let package = match error {
        EditError::DefaultChannel { package, .. }
        | EditError::LastVersion { package, .. }
        | EditError::NoVersionFrom { package, .. } => argument(package),
        _ => "NAME".to_owned(),
    };
    let set_default = format!("`olmkit catalog set-default {catalog} --package {package} --channel CHANNEL`");
    help.replace("`olmkit catalog set-default`", &set_default)
        .replace("`olmkit catalog template`", &format!("`olmkit catalog template {}`", argument(file)))
}

fn edit_failure(error: EditError, catalog: &Path) -> Failure {
    let place = error.place().cloned();
    let help = error.help().map(|help| spelled_out(&help, &error, catalog));
    let is_broken = matches!(error, EditError::Unreadable { .. } | EditError::Broken { .. });
    let is_file = |finding: &Finding| finding.code.name == "fbc-file-unreadable";
    let is_unread = match &error {
        EditError::Unreadable { findings } => findings.first().is_some_and(is_file),
        _ => false,
    };
    let failure = if is_unread { Failure::incomplete(error) } else { Failure::failed(error) };
    let catalog = argument(catalog.display());
    let failure = match is_broken {
        true => failure.help(format!("run `olmkit catalog validate {catalog}` to list every problem")),
        false => failure.help(help),
    };
    failure.at(place)
}
