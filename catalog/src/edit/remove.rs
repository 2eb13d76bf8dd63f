//! Removes a package, a channel or a version; the edges of what stays are joined.

use std::collections::BTreeSet;

use super::deprecate::nothing;
use super::draft::Draft;
use super::{Change, EditError, backticked};
use crate::fbc::{Entry, Text};
use crate::graph::{self, GraphError, VersionRelease};
use crate::index::Index;
use crate::path::{About, Rules, Ways};

/// Removes what is named; what is not there is removed already.
pub(super) fn remove(
    index: &Index<'_, '_>,
    package: &str,
    channel: Option<&str>,
    version: Option<&str>,
    keep_path: bool,
) -> Result<Change, EditError> {
    let mut draft = match Draft::of(index, package) {
        Ok(draft) => draft,
        Err(EditError::NoPackage { .. }) => {
            return Ok(nothing(format!("the catalog has no package `{package}`: nothing to remove")));
        }
        Err(error) => return Err(error),
    };
    let Some(version) = version else {
        return match channel {
            Some(channel) => remove_channel(draft, channel),
            None => {
                draft.remove_all();
                draft.finish(vec![format!("removed the package `{package}`")])
            }
        };
    };
    let bundle = match draft.bundle(version) {
        Ok(bundle) => bundle,
        Err(EditError::NoVersion { .. }) => {
            return Ok(nothing(format!("`{package}` has no version `{version}`: nothing to remove")));
        }
        Err(error) => return Err(error),
    };
    if let Some(channel) = channel {
        draft.channel(channel)?;
    }
    let (mut summary, mut stuck) = (Vec::new(), Vec::new());
    let default = draft.default_channel();
    let mut found = false;
    for at in 0..draft.channels.len() {
        let Some(blob) = draft.channels[at].old else { continue };
        let name = blob.name.as_str();
        if channel.is_some_and(|channel| channel != name)
            || !blob.entries.iter().any(|entry| *entry.name == *bundle)
        {
            continue;
        }
        found = true;
        if blob.entries.len() == 1 {
            if name == default {
                return Err(EditError::LastVersion { package: package.to_owned(), channel: name.to_owned() });
            }
            draft.channels[at].remove();
            summary.push(format!("removed the channel `{name}`, which had no other version"));
            continue;
        }
        draft.sound(name)?;
        let versions = |name: &str| draft.known.version(name);
        let entries = without(&blob.entries, bundle, versions, keep_path)
            .map_err(|(entries, errors)| draft.breaks(at, &entries, &errors))?;
        summary.push(format!("removed `{bundle}` from `{name}`{}", joined(&blob.entries, &entries)));
        let about = |name: &str| About { version: versions(name).cloned(), deprecated: false };
        let ways = Ways::of(&entries, about, Rules::V0);
        if ways.is_ok_and(|ways| ways.next(bundle, versions(bundle)).is_none()) {
            let way_out = if keep_path { "" } else { "; --keep-path keeps their upgrade path" };
            stuck.push(format!("clusters that have `{bundle}` from `{name}` cannot upgrade{way_out}"));
        }
        if let Some(channel) = draft.channels[at].edit() {
            channel.entries = entries;
        }
    }
    if let (false, Some(channel)) = (found, channel) {
        return Ok(nothing(format!("`{bundle}` is not in `{channel}`: nothing to remove")));
    }
    if !found {
        // In no channel, which no sound catalog has: then it is the blob alone.
        draft
            .bundles
            .iter_mut()
            .filter(|slot| slot.old.is_some_and(|blob| *blob.name == *bundle))
            .for_each(|slot| slot.remove());
    }
    let gone = draft.remove_unreferenced();
    if !gone.is_empty() || !found {
        summary.push(format!("removed the bundle `{bundle}`"));
    }
    summary.append(&mut stuck);
    draft.finish(summary)
}

fn remove_channel(mut draft: Draft<'_, '_, '_>, channel: &str) -> Result<Change, EditError> {
    let package = draft.name;
    let at = match draft.channel(channel) {
        Ok(at) => at,
        Err(_) => {
            return Ok(nothing(format!("`{package}` has no channel `{channel}`: nothing to remove")));
        }
    };
    if draft.default_channel() == channel {
        let place = draft
            .known
            .blobs
            .first()
            .map(|blob| Box::new(draft.index.catalog.place(blob.at.with(blob.default_channel.span))));
        return Err(EditError::DefaultChannel {
            package: package.to_owned(),
            channel: channel.to_owned(),
            place,
        });
    }
    draft.channels[at].remove();
    let gone = draft.remove_unreferenced();
    let mut summary = vec![format!("removed the channel `{channel}` of `{package}`")];
    if !gone.is_empty() {
        summary.push(format!("removed {}, which no other channel has", backticked(&gone)));
    }
    draft.finish(summary)
}

/// The new edges of entries that stay, such as `; X now replaces Y`.
fn joined(before: &[Entry<'_>], after: &[Entry<'_>]) -> String {
    let changed = after.iter().filter(|entry| {
        let old = before.iter().find(|old| old.name == entry.name);
        old.is_some_and(|old| old.replaces != entry.replaces)
    });
    let sentence = |entry: &Entry<'_>| match entry.replaces.as_str() {
        "" => format!("`{}` now replaces nothing", entry.name),
        replaces => format!("`{}` now replaces `{replaces}`", entry.name),
    };
    let all: Vec<_> = changed.map(sentence).collect();
    if all.is_empty() { String::new() } else { format!("; {}", all.join(", ")) }
}

/// What entries are that cannot be joined, and what is wrong with them.
pub(super) type Unjoined<'a> = (Vec<Entry<'a>>, Vec<GraphError>);

/// The entries without one of them: what it led from now leads to what it led to.
///
/// Its successor replaces the highest of what it replaced and skipped, as if it had never been there. Entries that only it skipped, and that
/// would have no way any more, are skipped by its successor.
pub(super) fn without<'a, 'v>(
    entries: &[Entry<'a>],
    gone: &str,
    version: impl Fn(&str) -> Option<&'v VersionRelease>,
    keep_path: bool,
) -> Result<Vec<Entry<'a>>, Unjoined<'a>> {
    let Some(removed) = entries.iter().find(|entry| *entry.name == *gone) else {
        return Ok(entries.to_vec());
    };
    let rest = || entries.iter().filter(|entry| *entry.name != *gone);
    let here: BTreeSet<&str> = rest().map(|entry| entry.name.as_str()).collect();
    let below =
        removed.skips.iter().chain([&removed.replaces]).map(Text::as_str).filter(|name| here.contains(name));
    let highest = below.max_by_key(|name| (version(name), *name)).unwrap_or(&removed.replaces);
    let skipped: Vec<&Text<'a>> = removed.skips.iter().filter(|skip| here.contains(skip.as_str())).collect();
    let join = |replaces: &str, and_skips: &[&Text<'a>]| -> Vec<Entry<'a>> {
        let join_one = |entry: &Entry<'a>| {
            let mut entry = entry.clone();
            let is_successor = *entry.replaces == *gone;
            if is_successor {
                let replaces = if *entry.name == *replaces { "" } else { replaces };
                entry.replaces.value = replaces.to_owned().into();
            }
            if !keep_path {
                entry.skips.retain(|skip| *skip.as_str() != *gone);
            } else if is_successor && !entry.skips.iter().any(|skip| *skip.as_str() == *gone) {
                entry.skips.push(gone.to_owned().into());
            }
            if is_successor {
                let has = |entry: &Entry<'_>, name: &str| {
                    *entry.name == *name
                        || *entry.replaces == *name
                        || entry.skips.iter().any(|skip| *skip.as_str() == *name)
                };
                for skip in and_skips {
                    if !has(&entry, skip) {
                        entry.skips.push(skip.as_str().to_owned().into());
                    }
                }
            }
            entry
        };
        rest().map(join_one).collect()
    };
    let link = |entries: &[Entry<'a>]| graph::Channel::link("", entries, |_| None);
    let simple = join(highest, &[]);
    let Err(errors) = link(&simple) else { return Ok(simple) };
    let taken_over = join(&removed.replaces, &skipped);
    if link(&taken_over).is_ok() {
        return Ok(taken_over);
    }
    Err((simple, errors))
}
