//! Brings the packages of other catalogs into one.

use std::collections::BTreeMap;

use olmkit_bundle::finding::Place;
use olmkit_bundle::load::Content;

use super::blob_id::{BlobId, describe, id, is_unique, package};
use super::template;
use super::{Change, ChangedFile, EditError, FORMAT, changed, readable};
use crate::fbc::{At, Catalog, FaultKind};
use crate::json::Tree;
use crate::load::{CatalogFile, CatalogFiles};
use crate::texts::Texts;
use crate::texts::documents::{cut, is_json};

/// A blob that two catalogs have, and not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// What it is, such as ``the channel `stable` of `redis` ``.
    pub what: String,
    /// Where the first of them stands.
    pub first: Place,
    /// Where the second stands.
    pub second: Place,
}

/// A catalog with the blobs of others that it does not have, in their files with all their comments where these are free.
///
/// # Errors
/// When a catalog cannot be read, or two have a blob in different versions, or the result would be invalid.
pub fn merge(files: &CatalogFiles, others: &[CatalogFiles]) -> Result<Change, EditError> {
    let mut merged = files.clone();
    let mut summary = Vec::new();
    for other in others {
        let changes = add(&merged, other, &mut summary)?;
        merged = changed(&merged, &changes);
    }
    let old: BTreeMap<&str, &CatalogFile> =
        files.files.iter().map(|file| (file.path.as_str(), file)).collect();
    let change = |file: &CatalogFile| {
        let before = old.get(file.path.as_str()).and_then(|file| file.content.text());
        let text = file.content.text()?;
        (before != Some(text)).then(|| ChangedFile {
            path: file.path.clone(),
            old: before.map(str::to_owned),
            new: Some(text.to_owned()),
        })
    };
    let mut changes: Vec<ChangedFile> = merged.files.iter().filter_map(change).collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    let change = Change { files: changes, summary };
    super::check(files, &Catalog::parse(files), &change, &[])?;
    Ok(change)
}

/// The changes that bring one catalog into another.
fn add(
    files: &CatalogFiles,
    other: &CatalogFiles,
    summary: &mut Vec<String>,
) -> Result<Vec<ChangedFile>, EditError> {
    let (ours, theirs) = (Catalog::parse(files), Catalog::parse(other));
    for catalog in [&ours, &theirs] {
        readable(catalog)?;
        template::refuse_single(catalog)?;
    }
    // Two that cannot be read would look the same, and one that is written anew would be lost.
    theirs.check_values().map_err(|fault| EditError::Value {
        place: Box::new(theirs.place(fault.at)),
        why: match fault.kind {
            FaultKind::Syntax(why) => why,
            _ => "it cannot be read".to_owned(),
        },
    })?;
    let mut known: BTreeMap<BlobId, Vec<(At, Tree<'_>)>> = BTreeMap::new();
    for (at, tree) in ours.trees() {
        known.entry(id(&tree)).or_default().push((at, tree));
    }
    let mut conflicts = Vec::new();
    let mut new: BTreeMap<At, Tree<'_>> = BTreeMap::new();
    let mut packages: BTreeMap<String, usize> = BTreeMap::new();
    for (at, tree) in theirs.trees() {
        let id = id(&tree);
        let json = tree.clone().into_json();
        let same =
            known.get(&id).map(|known| known.iter().any(|(_, known)| known.clone().into_json() == json));
        match (same, known.get(&id).and_then(|known| known.first())) {
            (Some(true), _) => continue,
            (Some(false), Some((first, _))) if is_unique(&id) => {
                let (first, second) = (ours.place(*first), theirs.place(at));
                conflicts.push(Conflict { what: describe(&id), first, second });
            }
            _ => {
                *packages.entry(package(&id).to_owned()).or_default() += 1;
                new.insert(at, tree);
            }
        }
    }
    if !conflicts.is_empty() {
        return Err(EditError::Conflicts { conflicts });
    }
    let blobs = |count: usize| if count == 1 { "1 blob".to_owned() } else { format!("{count} blobs") };
    for (package, count) in &packages {
        let of = if package.is_empty() { String::new() } else { format!(" of `{package}`") };
        summary.push(format!("took {}{of} from `{}`", blobs(*count), other.name));
    }
    if packages.is_empty() {
        summary.push(format!("the catalog has everything of `{}`: nothing to change", other.name));
    }
    let mut texts = Texts::new(&ours, FORMAT);
    let mut copied = Vec::new();
    let is_single = files.files.iter().any(|file| file.path.is_empty());
    for (number, file) in (0..).zip(&theirs.files) {
        let places: Vec<At> = theirs.places().filter(|at| at.file == number).collect();
        let wanted: Vec<(&At, &Tree<'_>)> = new.iter().filter(|(at, _)| at.file == number).collect();
        if wanted.is_empty() {
            continue;
        }
        if wanted.len() == places.len() && !is_single {
            let is_free = |path: &str| {
                files.files.iter().all(|file| file.path != path)
                    && copied.iter().all(|file: &ChangedFile| file.path != path)
            };
            let path = free_path(other, file.path, &wanted, is_free);
            copied.push(ChangedFile { path, old: None, new: Some(file.source.text().to_owned()) });
            continue;
        }
        let text = file.source.text();
        let mut in_order = places;
        in_order.sort_unstable();
        let cut = (!is_json(text)).then(|| cut(text, &in_order));
        for (at, tree) in wanted {
            let number = in_order.binary_search(at).ok();
            let document = cut.as_ref().zip(number).map(|(cut, number)| cut.documents[number].text());
            let package = package(&id(tree)).to_owned();
            let first = ours.packages.iter().find(|blob| *blob.name == *package).map(|blob| blob.at);
            let home = texts.home(&package, first);
            texts.append_document(&home, tree.clone(), document);
        }
    }
    let mut changes = texts.finish()?;
    for file in copied {
        // A file that blobs of others go to as well.
        match changes.iter_mut().find(|change| change.path == file.path) {
            Some(change) => {
                let (a, b) = (file.new.unwrap_or_default(), change.new.take().unwrap_or_default());
                let line_break = if a.ends_with('\n') { "" } else { "\n" };
                change.new = Some(format!("{a}{line_break}{b}"));
            }
            None => changes.push(file),
        }
    }
    Ok(changes)
}

/// A path for a file of another catalog that no file has: its own, or one in the directory of its package.
fn free_path(
    other: &CatalogFiles,
    path: &str,
    blobs: &[(&At, &Tree<'_>)],
    is_free: impl Fn(&str) -> bool,
) -> String {
    let text = other.files.iter().find(|file| file.path == path).and_then(|file| file.content.text());
    let extension = if text.is_some_and(is_json) { "json" } else { "yaml" };
    let ids: Vec<BlobId> = blobs.iter().map(|(_, tree)| id(tree)).collect();
    let mut packages: Vec<&str> = ids.iter().map(package).collect();
    packages.dedup();
    let own = match packages[..] {
        [package] if !package.is_empty() => Some(format!("{package}/catalog.{extension}")),
        _ => None,
    };
    let root = format!("catalog.{extension}");
    let first = match (path.contains('/'), &own) {
        (false, Some(own)) => own,
        _ if path.is_empty() => &root,
        _ => path,
    };
    if is_free(first) {
        return first.to_owned();
    }
    if let Some(own) = own.as_ref().filter(|own| is_free(own)) {
        return own.clone();
    }
    let stem = first.strip_suffix(&format!(".{extension}")).unwrap_or(first);
    // There are fewer files than numbers.
    (2_usize..)
        .map(|number| format!("{stem}-{number}.{extension}"))
        .find(|path| is_free(path))
        .unwrap_or_default()
}

/// A file of a catalog with this text.
pub(super) fn file(path: String, text: String) -> CatalogFile {
    CatalogFile { path, content: Content::Text(text) }
}
