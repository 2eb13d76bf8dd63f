//! Removes a package, a channel or a version; the edges of what stays are joined.

use std::collections::BTreeSet;

use olmkit_bundle::suggest::some_of;
use olmkit_bundle::version::{Version, precedence};

use super::deprecate::nothing;
use super::draft::{Draft, Slot};
use super::{Change, EditError, backticked};
use crate::fbc::{Entry, Text};
use crate::graph::{self, GraphError, VersionRelease};
use crate::index::Index;
use crate::path::released::{stranded, unlisted};
use crate::path::{About, NextHops, Rules};

/// More are not all listed.
const LISTED: usize = 8;

/// Removes what is named; what is not there is removed already.
pub(super) fn remove(
    index: &Index<'_, '_>,
    package: &str,
    channel: Option<&str>,
    version: Option<&str>,
    way: OfClusters,
) -> Result<Change, EditError> {
    let keep_path = way.keep_path;
    let mut draft = match Draft::of(index, package) {
        Ok(draft) => draft,
        Err(EditError::NoPackage { known, .. }) => {
            // It may be gone already, or misspelled.
            let only = only(package, &known);
            return Ok(nothing(format!("the catalog has no package `{package}`{only}: nothing to remove")));
        }
        Err(error) => return Err(error),
    };
    let Some(version) = version else {
        return match channel {
            Some(channel) => remove_channel(draft, channel, way.strand),
            None => {
                draft.remove_all();
                draft.finish(vec![format!("removed the package `{package}`")])
            }
        };
    };
    let bundle = match draft.bundle(version) {
        Ok(bundle) => bundle,
        Err(EditError::NoVersion { known, .. }) => {
            let only = only(version, &known);
            return Ok(nothing(format!("`{package}` has no version `{version}`{only}: nothing to remove")));
        }
        Err(error) => return Err(error),
    };
    if let Some(channel) = channel
        && draft.channel(channel).is_err()
    {
        return Ok(no_channel(&draft, channel));
    }
    let (mut summary, mut stuck, mut can_keep) = (Vec::new(), Vec::new(), true);
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
        let is_head =
            draft.known.channels.get(at).is_some_and(|channel| {
                channel.linked.as_ref().is_ok_and(|linked| linked.head().name == *bundle)
            });
        if keep_path && is_head {
            return Err(EditError::NoSuccessor { bundle: bundle.to_owned(), channel: name.to_owned() });
        }
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
        let lost = without_upgrade(&draft, bundle, &blob.entries, &entries);
        if !lost.is_empty() {
            can_keep &= !is_head && !keep_path;
            stuck.push(format!("clusters that have {} from `{name}` cannot upgrade", alternatives(&lost)));
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
    let gone = draft.remove_unreferenced(false);
    if !gone.is_empty() || !found {
        summary.push(format!("removed the bundle `{bundle}`"));
    }
    if !stuck.is_empty() && !way.strand {
        return Err(EditError::Strands { removed: format!("`{bundle}`"), clusters: stuck, can_keep });
    }
    summary.append(&mut stuck);
    draft.finish(summary)
}

/// What becomes of clusters that a removal leaves without an upgrade.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfClusters {
    /// The next version takes over the edges, so that they keep one.
    pub(super) keep_path: bool,
    /// They may lose it.
    pub(super) strand: bool,
}

/// The removed bundle and what only it led from, as far as no entry follows them now. Of versions that only a range covers, the range.
fn without_upgrade(
    draft: &Draft<'_, '_, '_>,
    bundle: &str,
    before: &[Entry<'_>],
    after: &[Entry<'_>],
) -> Vec<String> {
    let (Ok(before_ways), Ok(ways)) = (ways(draft, before), ways(draft, after)) else { return Vec::new() };
    let version = |name: &str| draft.known.version(name);
    let covered = stranded(
        unlisted(draft.name, before, version),
        |from| from.next(&before_ways).is_some(),
        |from| from.next(&ways).is_some(),
    );
    let own = ways.next(bundle, version(bundle)).is_none().then(|| bundle.to_owned());
    covered.into_iter().map(|from| from.label).chain(own).collect()
}

fn ways(draft: &Draft<'_, '_, '_>, entries: &[Entry<'_>]) -> Result<NextHops, GraphError> {
    let about = |name: &str| About { version: draft.known.version(name).cloned(), deprecated: false };
    NextHops::of(entries, about, Rules::V0)
}

/// What is there instead; of many the nearest, and how many more.
fn only(name: &str, known: &[String]) -> String {
    match known.len() {
        0 => String::new(),
        1..=LISTED => format!(", only {}", backticked(known)),
        _ => format!(", only {}", some_of(name, known.iter().map(String::as_str))),
    }
}

/// `a`, `b` or `c`, the first few of them.
fn alternatives(names: &[String]) -> String {
    backticked(names).replacen(" and ", " or ", 1)
}

fn no_channel(draft: &Draft<'_, '_, '_>, channel: &str) -> Change {
    let package = draft.name;
    let known = draft.channels.iter().filter_map(Slot::get);
    let known: Vec<String> = known.map(|channel| channel.name.to_string()).collect();
    nothing(format!("`{package}` has no channel `{channel}`{}: nothing to remove", only(channel, &known)))
}

fn remove_channel(mut draft: Draft<'_, '_, '_>, channel: &str, strand: bool) -> Result<Change, EditError> {
    let package = draft.name;
    let Ok(at) = draft.channel(channel) else { return Ok(no_channel(&draft, channel)) };
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
    let gone = draft.remove_unreferenced(false);
    let mut summary = vec![format!("removed the channel `{channel}` of `{package}`")];
    if !gone.is_empty() {
        let bundles = if gone.len() == 1 { "bundle" } else { "bundles" };
        summary.push(format!("removed the {bundles} {}, which no other channel has", backticked(&gone)));
    }
    summary.push(format!("Subscriptions to `{channel}` no longer find it: change their `spec.channel`"));
    let stuck = in_no_other_channel(&draft, channel);
    if !stuck.is_empty() {
        let clusters = format!("no other channel upgrades clusters that have {}", alternatives(&stuck));
        if !strand {
            let removed = format!("the channel `{channel}`");
            return Err(EditError::Strands { removed, clusters: vec![clusters], can_keep: false });
        }
        summary.push(clusters);
    }
    draft.finish(summary)
}

/// The entries of a removed channel that no other channel has or leads on from.
fn in_no_other_channel(draft: &Draft<'_, '_, '_>, removed: &str) -> Vec<String> {
    let others: Vec<NextHops> = draft
        .channels
        .iter()
        .filter_map(Slot::get)
        .filter_map(|channel| ways(draft, &channel.entries).ok())
        .collect();
    let gone = draft.known.channels.iter().filter(|channel| *channel.blob.name == *removed);
    let mut names: Vec<&str> =
        gone.flat_map(|channel| &channel.blob.entries).map(|entry| entry.name.as_str()).collect();
    names.sort_by_key(|name| (draft.known.version(name), *name));
    let goes_on = |name: &str, ways: &NextHops| {
        ways.head() == name || ways.next(name, draft.known.version(name)).is_some()
    };
    let stuck = names.into_iter().filter(|name| !others.iter().any(|ways| goes_on(name, ways)));
    stuck.map(str::to_owned).collect()
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
/// would have no way any more, are skipped by its successor. To keep its path, its successor also skips it and all that it led from.
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
    let highest = below.max_by_key(|name| (version(name), *name)).unwrap_or(removed.replaces.as_str());
    let skipped: Vec<&Text<'a>> = removed.skips.iter().filter(|skip| here.contains(skip.as_str())).collect();
    // What is no entry was known to the removed one alone.
    let unlisted = removed
        .skips
        .iter()
        .chain([&removed.replaces])
        .filter(|name| !name.is_empty() && !here.contains(name.as_str()) && name.as_str() != highest);
    let unlisted: Vec<&Text<'a>> = if keep_path { unlisted.collect() } else { Vec::new() };
    let heirs = if keep_path { heirs(entries, removed, &version) } else { BTreeSet::new() };
    let join = |replaces: &str, and_skips: &[&Text<'a>]| -> Vec<Entry<'a>> {
        let join_one = |entry: &Entry<'a>| {
            let mut entry = entry.clone();
            let is_successor = *entry.replaces == *gone;
            let is_heir = heirs.contains(entry.name.as_str());
            if is_successor {
                let replaces = if *entry.name == *replaces { "" } else { replaces };
                entry.replaces.value = replaces.to_owned().into();
            }
            if !keep_path {
                entry.skips.retain(|skip| *skip.as_str() != *gone);
            }
            if is_heir {
                skip(&mut entry, gone);
                unlisted.iter().for_each(|name| skip(&mut entry, name));
                let range = union(&entry.skip_range, &removed.skip_range);
                if *entry.skip_range != *range {
                    entry.skip_range.value = range.into();
                }
            }
            if is_successor {
                and_skips.iter().for_each(|name| skip(&mut entry, name));
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

/// The entries that lead on from what the removed one led from: those that replace it, or the one that OLM installs over it.
fn heirs<'e, 'v>(
    entries: &'e [Entry<'_>],
    removed: &Entry<'_>,
    version: impl Fn(&str) -> Option<&'v VersionRelease>,
) -> BTreeSet<&'e str> {
    let names = entries.iter().filter(|entry| *entry.replaces == *removed.name);
    let heirs: BTreeSet<&str> = names.map(|entry| entry.name.as_str()).collect();
    if !heirs.is_empty() {
        return heirs;
    }
    let about = |name: &str| About { version: version(name).cloned(), deprecated: false };
    let ways = NextHops::of(entries, about, Rules::V0);
    let next = ways.as_ref().ok().and_then(|ways| ways.next(&removed.name, None));
    entries.iter().map(|entry| entry.name.as_str()).filter(|name| Some(*name) == next).collect()
}

/// Makes an entry skip a bundle, unless it leads from it already.
fn skip(entry: &mut Entry<'_>, name: &str) {
    let has = *entry.name == *name
        || *entry.replaces == *name
        || entry.skips.iter().any(|skip| skip.as_str() == name);
    if !has {
        entry.skips.push(name.to_owned().into());
    }
}

/// A range of the versions that one of two has.
fn union(range: &str, other: &str) -> String {
    let below =
        |range: &str| range.strip_prefix('<').and_then(|version| version.trim().parse::<Version>().ok());
    let is_wider = below(range).zip(below(other)).is_some_and(|(a, b)| precedence(&a, &b).is_ge());
    match (range, other) {
        (range, "") => range.to_owned(),
        ("", other) => other.to_owned(),
        _ if range == other || is_wider => range.to_owned(),
        _ => format!("{range} || {other}"),
    }
}
