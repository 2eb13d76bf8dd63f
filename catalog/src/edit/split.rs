//! Gives each package a directory of its own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::deprecate::nothing;
use super::{Change, ChangedFile, EditError, FORMAT, backticked};
use crate::fbc::{At, Catalog};
use crate::texts::Texts;
use crate::texts::documents::{cut, head, is_json};

/// A blob, and the package it belongs to; empty if it belongs to none.
type Owned<'c> = (At, &'c str);

/// Moves the blobs of each package to `PACKAGE/catalog.yaml`, unless they have a directory of their own already. Those of no package stay.
pub(super) fn split(catalog: &Catalog<'_>) -> Result<Change, EditError> {
    if catalog.files.iter().any(|file| file.path.is_empty()) {
        return Err(EditError::SingleFile { path: catalog.name.to_owned() });
    }
    let mut blobs: Vec<Owned<'_>> = catalog.owners().collect();
    blobs.sort_unstable();
    let of_file = |number: u32| {
        let from = blobs.partition_point(|(at, _)| at.file < number);
        let to = blobs.partition_point(|(at, _)| at.file <= number);
        &blobs[from..to]
    };
    // What the directories hold, those below them included.
    let mut holds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (number, file) in (0..).zip(&catalog.files) {
        for (at, _) in file.path.match_indices('/') {
            let packages = of_file(number).iter().map(|(_, package)| *package);
            holds.entry(&file.path[..at]).or_default().extend(packages);
        }
    }
    let directory = |path: &'_ str| path.rfind('/').map_or(0, |slash| slash);
    let all: BTreeSet<&str> = blobs.iter().map(|(_, package)| *package).collect();
    let own_directory = |path: &str, package: &str| {
        let directory = &path[..directory(path)];
        // One that is named for another package is where that one goes.
        let is_other = directory != package && all.contains(directory);
        !is_other && holds.get(directory).is_some_and(|packages| packages.iter().eq([&package]))
    };
    let mut homes: BTreeMap<&str, &str> = BTreeMap::new();
    for (at, package) in &blobs {
        let path = catalog.files[at.file as usize].path;
        if own_directory(path, package) {
            homes.entry(package).or_insert(&path[..directory(path)]);
        }
    }
    // What a run that was interrupted has copied already.
    let owner = |at: At| blobs.binary_search_by_key(&at, |(at, _)| *at).map_or("", |found| blobs[found].1);
    let is_home = |at: At| own_directory(catalog.files[at.file as usize].path, owner(at));
    let is_divided = blobs.iter().any(|(at, package)| homes.contains_key(package) && !is_home(*at));
    let with_home = catalog.trees().filter(|(at, _)| is_divided && homes.contains_key(owner(*at)));
    let json: BTreeMap<At, Json> = with_home.map(|(at, tree)| (at, tree.into_json())).collect();
    let is_copied = |at: At| {
        let copies = json.iter().filter(|(other, blob)| is_home(**other) && json.get(&at) == Some(*blob));
        json.contains_key(&at) && copies.count() > 0
    };
    let mut texts = Texts::new(catalog, FORMAT);
    let mut rest = Vec::new();
    let mut moved: BTreeMap<String, String> = BTreeMap::new();
    let mut packages = BTreeSet::new();
    for (number, file) in (0..).zip(&catalog.files) {
        let all = of_file(number);
        let moves = |owned: &Owned<'_>| !owned.1.is_empty() && !own_directory(file.path, owned.1);
        if !all.iter().any(moves) {
            continue;
        }
        let text = file.source.text();
        let json = is_json(text);
        let places: Vec<At> = all.iter().map(|(at, _)| *at).collect();
        let cut = (!json).then(|| cut(text, &places));
        let is_emptied = all.iter().all(moves);
        if let Some(cut) = cut.as_ref().filter(|_| !is_emptied) {
            let new = cut.without(text, |number| all.get(number).is_some_and(moves));
            rest.push(ChangedFile { path: file.path.to_owned(), old: Some(text.to_owned()), new: Some(new) });
        }
        for (place, owned) in all.iter().enumerate().filter(|(_, owned)| moves(owned)) {
            let (at, package) = *owned;
            if json || is_emptied {
                texts.remove(at);
            }
            packages.insert(package.to_owned());
            if is_copied(at) {
                continue;
            }
            let home = homes.get(package).copied().unwrap_or(package);
            let extension = if json { "json" } else { "yaml" };
            let new = moved.entry(format!("{home}/catalog.{extension}")).or_default();
            match cut.as_ref().and_then(|cut| Some((cut.head, cut.documents.get(place)?))) {
                Some((comments, part)) => {
                    let is_first = new.is_empty();
                    *new += "---\n";
                    // A licence belongs to every file that comes of this one.
                    if is_emptied && is_first {
                        *new += &head(comments);
                    }
                    *new += &part.text();
                }
                None => {
                    *new += catalog.text(at);
                    *new += "\n";
                }
            }
        }
    }
    if packages.is_empty() {
        return Ok(nothing("every package has its own directory: nothing to change".into()));
    }
    let mut files = texts.finish()?;
    files.extend(rest);
    for (path, text) in moved {
        let old = catalog.files.iter().find(|file| file.path == path).map(|file| file.source.text());
        let changed = files.iter_mut().find(|file| file.path == path);
        let kept = match &changed {
            Some(file) => file.new.clone().unwrap_or_default(),
            None => old.unwrap_or_default().to_owned(),
        };
        let line_break = if kept.is_empty() || kept.ends_with('\n') { "" } else { "\n" };
        let new = Some(format!("{kept}{line_break}{text}"));
        match changed {
            Some(file) => file.new = new,
            None => files.push(ChangedFile { path, old: old.map(str::to_owned), new }),
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let packages: Vec<String> = packages.into_iter().collect();
    let have = if packages.len() == 1 { "has its own directory" } else { "have their own directories" };
    Ok(Change { files, summary: vec![format!("{} {have}", backticked(&packages))] })
}
