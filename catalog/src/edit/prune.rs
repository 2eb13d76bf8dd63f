//! Keeps some packages of a catalog, or some of their channels and versions, and removes everything else.

use std::collections::{BTreeMap, BTreeSet};

use olmkit_bundle::version::Version;

use super::draft::{Draft, Slot};
use super::remove::without;
use super::{Change, EditError, FORMAT, backticked};
use crate::fbc::{self, Entry};
use crate::graph;
use crate::index::Index;
use crate::requirements;
use crate::texts::Texts;

/// What to keep.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    /// These packages.
    pub packages: Vec<String>,
    /// Of them these channels, as `CHANNEL` or `PACKAGE/CHANNEL`; all when there are none.
    pub channels: Vec<String>,
    /// Of these the versions from this one on.
    pub min_version: Option<Version>,
    /// Of these the heads of channels alone.
    pub heads_only: bool,
    /// Also the packages that they require, whole.
    pub with_dependencies: bool,
}

pub(super) fn prune(index: &Index<'_, '_>, keep: &Keep) -> Result<Change, EditError> {
    let mut drafts = BTreeMap::new();
    for package in &keep.packages {
        let mut draft = Draft::of(index, package)?;
        prune_package(&mut draft, keep)?;
        drafts.insert(draft.name, draft);
    }
    check_channels(index, keep)?;
    let mut required = BTreeSet::new();
    if keep.with_dependencies {
        let kept: BTreeSet<(&str, &str)> = drafts
            .iter()
            .flat_map(|(name, draft)| {
                draft.bundles.iter().filter_map(Slot::get).map(|bundle| (*name, bundle.name.as_str()))
            })
            .collect();
        let is_kept =
            |bundle: &fbc::Bundle<'_>| kept.contains(&(bundle.package.as_str(), bundle.name.as_str()));
        required = requirements::required_packages(index.catalog, is_kept);
    }
    // A package of which only some versions are kept is kept whole when one of the others is required.
    for package in &required {
        if drafts.contains_key(package) {
            drafts.insert(package, Draft::of(index, package)?);
        }
    }
    let mut gone = Vec::new();
    for (name, known) in &index.packages {
        if !drafts.contains_key(name) && !required.contains(name) && !known.blobs.is_empty() {
            let mut draft = Draft::of(index, name)?;
            draft.remove_all();
            gone.push((*name).to_owned());
            drafts.insert(name, draft);
        }
    }
    let mut texts = Texts::new(index.catalog, FORMAT);
    for draft in drafts.values() {
        draft.write(&mut texts)?;
    }
    let files = texts.finish()?;
    let mut summary = Vec::new();
    if files.is_empty() {
        summary.push("the catalog has nothing else: nothing to remove".to_owned());
    }
    let is_new = |package: &&&str| !keep.packages.iter().any(|kept| kept == **package);
    let required: Vec<String> = required.iter().filter(is_new).map(|package| (*package).to_owned()).collect();
    if !required.is_empty() {
        summary.push(format!("kept {}, which kept bundles require", packages(&required)));
    }
    if !gone.is_empty() {
        summary.push(format!("removed {}", packages(&gone)));
    }
    for draft in drafts.values().filter(|draft| !gone.iter().any(|gone| gone == draft.name)) {
        let channels: Vec<String> = draft
            .channels
            .iter()
            .filter(|slot| slot.get().is_none())
            .filter_map(|slot| Some(slot.old?.name.to_string()))
            .collect();
        if !channels.is_empty() {
            let what = if channels.len() == 1 { "channel" } else { "channels" };
            summary.push(format!("removed the {what} {} of `{}`", backticked(&channels), draft.name));
        }
        let count = draft.bundles.iter().filter(|slot| slot.get().is_none()).count();
        if count > 0 {
            let bundles = if count == 1 { "bundle" } else { "bundles" };
            summary.push(format!("removed {count} {bundles} of `{}`", draft.name));
        }
    }
    Ok(Change { files, summary })
}

/// the package `a`; the packages `a` and `b`
fn packages(names: &[String]) -> String {
    format!("the package{} {}", if names.len() == 1 { "" } else { "s" }, backticked(names))
}

/// Whether a channel is one of those to keep.
fn is_wanted(keep: &Keep, package: &str, channel: &str) -> bool {
    let is_it = |wanted: &String| {
        *wanted == *channel
            || wanted.split_once('/').is_some_and(|(of, name)| of == package && name == channel)
    };
    keep.channels.is_empty() || keep.channels.iter().any(is_it)
}

/// Refuses names of channels that no kept package has.
fn check_channels(index: &Index<'_, '_>, keep: &Keep) -> Result<(), EditError> {
    for wanted in &keep.channels {
        let only = Keep { channels: vec![wanted.clone()], ..Keep::default() };
        let packages = keep.packages.iter().filter_map(|name| index.packages.get_key_value(name.as_str()));
        let mut channels =
            packages.flat_map(|(name, package)| package.channels.iter().map(move |channel| (name, channel)));
        if !channels.any(|(package, channel)| is_wanted(&only, package, &channel.blob.name)) {
            return Err(EditError::NoChannel {
                package: keep.packages.join(", "),
                channel: wanted.clone(),
                known: Vec::new(),
            });
        }
    }
    Ok(())
}

/// The error that no version of channels is new enough, if there are channels.
fn too_new(
    draft: &Draft<'_, '_, '_>,
    channels: &[&fbc::Channel<'_>],
    default_channel: Option<&str>,
    least: &Version,
) -> Option<EditError> {
    let entries = channels.iter().flat_map(|blob| &blob.entries);
    let highest = entries.filter_map(|entry| draft.known.version(&entry.name)).max();
    if channels.is_empty() || highest.is_some_and(|highest| highest.version >= *least) {
        return None;
    }
    Some(EditError::NoVersionFrom {
        package: draft.name.to_owned(),
        default_channel: default_channel.map(str::to_owned),
        least: least.to_string(),
        highest: highest.map(ToString::to_string),
    })
}

fn prune_package(draft: &mut Draft<'_, '_, '_>, keep: &Keep) -> Result<(), EditError> {
    let default = draft.default_channel();
    let is_named = |slot: &Slot<'_, fbc::Channel<'_>>| {
        slot.old.is_some_and(|blob| is_wanted(keep, draft.name, &blob.name))
    };
    if !draft.channels.is_empty() && !draft.channels.iter().any(is_named) {
        let known = draft.channels.iter().filter_map(Slot::get).map(|channel| channel.name.to_string());
        return Err(EditError::NoChannel {
            package: draft.name.to_owned(),
            channel: keep.channels.join(", "),
            known: known.collect(),
        });
    }
    if let Some(least) = &keep.min_version {
        let named = draft.channels.iter().filter(|slot| is_named(slot)).filter_map(|slot| slot.old);
        let named: Vec<&fbc::Channel<'_>> = named.collect();
        let own: Vec<_> = named.iter().copied().filter(|blob| *blob.name == *default).collect();
        let is_too_new = |channels: &[_], of| too_new(draft, channels, of, least).map_or(Ok(()), Err);
        is_too_new(&named, None)?;
        is_too_new(&own, Some(default))?;
    }
    for at in 0..draft.channels.len() {
        let Some(blob) = draft.channels[at].old else { continue };
        let entries = match is_named(&draft.channels[at]) {
            true => kept_entries(draft, at, blob, keep)?,
            false => Vec::new(),
        };
        if entries.len() == blob.entries.len() {
            continue;
        }
        if !entries.is_empty() {
            if let Some(channel) = draft.channels[at].edit() {
                channel.entries = entries;
            }
            continue;
        }
        if *blob.name == *default {
            let place = draft.known.blobs.first();
            let place = place
                .map(|blob| Box::new(draft.index.catalog.place(blob.at.with(blob.default_channel.span))));
            return Err(EditError::DefaultChannel {
                package: draft.name.to_owned(),
                channel: default.to_owned(),
                place,
            });
        }
        draft.channels[at].remove();
    }
    // What is kept are channels. A catalog of which bundles alone are there has others elsewhere.
    let has_channels = draft.channels.iter().any(|slot| slot.get().is_some());
    draft.remove_unreferenced(has_channels);
    Ok(())
}

/// The entries of a channel that are kept. Their edges to what is removed stay: who has that installed can still upgrade.
fn kept_entries<'a>(
    draft: &Draft<'_, '_, 'a>,
    at: usize,
    blob: &fbc::Channel<'a>,
    keep: &Keep,
) -> Result<Vec<Entry<'a>>, EditError> {
    if !keep.heads_only && keep.min_version.is_none() {
        return Ok(blob.entries.clone());
    }
    let head = draft.sound(&blob.name)?.head().name.as_str();
    let is_high_enough = |entry: &Entry<'_>| {
        let version = draft.known.version(&entry.name);
        keep.min_version.as_ref().is_none_or(|least| version.is_some_and(|version| version.version >= *least))
    };
    let is_kept = |entry: &&Entry<'_>| is_high_enough(entry) && (!keep.heads_only || *entry.name == *head);
    let entries: Vec<Entry<'a>> = blob.entries.iter().filter(is_kept).cloned().collect();
    if entries.is_empty() || graph::Channel::link(&blob.name, &entries, |_| None).is_ok() {
        return Ok(entries);
    }
    // Versions in between are gone: the edges of the others are joined, from the lowest on.
    let mut gone: Vec<&Entry<'_>> = blob.entries.iter().filter(|entry| !is_kept(entry)).collect();
    gone.sort_by_key(|entry| draft.known.version(&entry.name));
    let mut entries = blob.entries.clone();
    for entry in gone {
        entries = without(&entries, &entry.name, |name| draft.known.version(name), true)
            .map_err(|(entries, errors)| draft.breaks(at, &entries, &errors))?;
    }
    Ok(entries)
}
