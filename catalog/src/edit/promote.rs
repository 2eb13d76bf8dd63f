//! Puts a version into a further channel, with edges that lead to it from there.

use olmkit_bundle::names::ChannelName;
use olmkit_bundle::suggest::did_you_mean;

use super::deprecate::nothing;
use super::draft::{Draft, Slot};
use super::{Change, EditError};
use crate::add::{self, AddError, Policy};
use crate::fbc::{Channel, Entry};
use crate::graph;
use crate::index::{self, Index};
use crate::path::{About, NextHops, Rules};

/// Adds the entry of a bundle to a channel.
///
/// Without a policy it keeps the edges that it has in a channel it is in already, as far as they connect to the new one; where they do
/// not, it replaces the new channel's head, if one of its channels has a path from there to it.
pub(super) fn promote(
    index: &Index<'_, '_>,
    package: &str,
    version: &str,
    to: &ChannelName,
    policy: Option<Policy>,
) -> Result<Change, EditError> {
    let mut draft = Draft::of(index, package)?;
    let bundle = draft.bundle(version)?;
    let to_name = to.as_str();
    let target = draft.channels.iter().position(|slot| slot.old.is_some_and(|blob| *blob.name == *to_name));
    let Some(target) = target else {
        let entries = match policy {
            None => {
                let source = source_entries(&draft, bundle).into_iter().next().unwrap_or_default();
                vec![Entry { name: bundle.to_owned().into(), ..source }]
            }
            Some(policy) => by_policy(&draft, bundle, to, policy)?,
        };
        let others = draft.channels.iter().filter_map(Slot::get).map(|channel| &*channel.name);
        let near = did_you_mean(to_name, others).map(|near| format!("; {near}")).unwrap_or_default();
        draft.channels.push(Slot::new(Channel {
            name: to_name.to_owned().into(),
            package: package.to_owned().into(),
            entries,
            ..Channel::default()
        }));
        return draft.finish(vec![format!("`{bundle}` is in the new channel `{to_name}`{near}")]);
    };
    let Some(blob) = draft.channels[target].old else { return Ok(Change::default()) };
    if blob.entries.iter().any(|entry| *entry.name == *bundle) {
        if let Some(policy) = policy {
            by_policy(&draft, bundle, to, policy)?;
        }
        return Ok(nothing(format!("`{bundle}` is already in `{to_name}`: nothing to change")));
    }
    let head = draft.sound(to_name)?.head().name.clone();
    let entries = match policy {
        Some(policy) => by_policy(&draft, bundle, to, policy)?,
        None => by_own_edges(&draft, bundle, blob, &head)?,
    };
    let old_head = head;
    let linked = graph::Channel::link(to_name, &entries, |_| None);
    let linked = linked.map_err(|errors| draft.breaks(target, &entries, &errors))?;
    let new_head = linked.head().name.clone();
    let edges = entries.iter().find(|entry| *entry.name == *bundle).map(describe).unwrap_or_default();
    if let Some(channel) = draft.channels[target].edit() {
        channel.entries = entries;
    }
    let mut summary = vec![format!("`{bundle}` is in `{to_name}`{edges}")];
    if new_head != old_head {
        summary.push(format!("the head of `{to_name}` is `{new_head}`; it was `{old_head}`"));
    }
    draft.finish(summary)
}

/// What leads to an entry, such as ` and replaces X`.
fn describe(entry: &Entry<'_>) -> String {
    let mut edges = Vec::new();
    if !entry.replaces.is_empty() {
        edges.push(format!("replaces `{}`", entry.replaces));
    }
    if !entry.skips.is_empty() {
        let skips: Vec<_> = entry.skips.iter().map(|skip| format!("`{skip}`")).collect();
        edges.push(format!("skips {}", skips.join(", ")));
    }
    if !entry.skip_range.is_empty() {
        edges.push(format!("skips all of `{}`", entry.skip_range));
    }
    if edges.is_empty() { String::new() } else { format!(" and {}", edges.join(", ")) }
}

/// The bundle's entries in its channels, that of the default channel first.
fn source_entries<'a>(draft: &Draft<'_, '_, 'a>, bundle: &str) -> Vec<Entry<'a>> {
    let default = draft.default_channel();
    let mut channels: Vec<&index::Channel<'_, 'a>> = draft.known.channels.iter().collect();
    channels.sort_by_key(|channel| *channel.blob.name != *default);
    let entries = channels.into_iter().flat_map(|channel| &channel.blob.entries);
    entries.filter(|entry| *entry.name == *bundle).map(Entry::clone).collect()
}

/// The channel's entries with the bundle's, placed by a policy.
fn by_policy<'a>(
    draft: &Draft<'_, '_, 'a>,
    bundle: &str,
    to: &ChannelName,
    policy: Policy,
) -> Result<Vec<Entry<'a>>, EditError> {
    add::entries(draft.index, draft.name, to, bundle, policy).map_err(|source| match source {
        AddError::OtherEdges { .. } => EditError::OtherEdges { source: Box::new(source) },
        _ => {
            EditError::Policy { bundle: bundle.to_owned(), channel: to.to_string(), source: Box::new(source) }
        }
    })
}

/// The channel's entries with the bundle's, which keeps its own edges where they connect.
fn by_own_edges<'a>(
    draft: &Draft<'_, '_, 'a>,
    bundle: &str,
    blob: &Channel<'a>,
    head: &str,
) -> Result<Vec<Entry<'a>>, EditError> {
    let sources = source_entries(draft, bundle);
    let with =
        |entry: &Entry<'a>| add::placed(&blob.entries, entry.clone(), |name| draft.known.version(name));
    let is_sound = |entries: &[Entry<'a>]| {
        graph::Channel::link(&blob.name, entries, |_| None).is_ok() && leads(draft, entries, head, bundle)
    };
    for entry in &sources {
        let entries = with(entry);
        if is_sound(&entries) {
            return Ok(entries);
        }
    }
    // A path through versions that this channel does not have counts too: the versions in between have been released that way.
    let is_known =
        draft.known.channels.iter().any(|channel| leads(draft, &channel.blob.entries, head, bundle));
    if is_known {
        let here = |name: &str| blob.entries.iter().any(|entry| *entry.name == *name);
        for entry in &sources {
            let mut entry = entry.clone();
            entry.replaces.value = head.to_owned().into();
            let entries = with(&entry);
            if is_sound(&entries) {
                return Ok(entries);
            }
            entry.skips.retain(|skip| !here(skip));
            let entries = with(&entry);
            if is_sound(&entries) {
                return Ok(entries);
            }
        }
    }
    let at =
        blob.entries.iter().find(|entry| *entry.name == *head).map(|entry| blob.at.with(entry.name.span));
    Err(EditError::NoPath {
        bundle: bundle.to_owned(),
        channel: blob.name.to_string(),
        head: head.to_owned(),
        place: at.map(|at| Box::new(draft.index.catalog.place(at))),
    })
}

/// Whether an installed bundle comes to another one in a channel, under the rules of OLM v0, before or at its head.
fn leads(draft: &Draft<'_, '_, '_>, entries: &[Entry<'_>], from: &str, to: &str) -> bool {
    // What is above the goal is of no account: it may skip it.
    let below = |entry: &&Entry<'_>| {
        *entry.name == *to || draft.known.version(&entry.name) <= draft.known.version(to)
    };
    let entries: Vec<&Entry<'_>> = entries.iter().filter(below).collect();
    let about = |name: &str| About { version: draft.known.version(name).cloned(), deprecated: false };
    let Ok(ways) = NextHops::of(entries.iter().copied(), about, Rules::V0) else { return false };
    let mut at = from.to_owned();
    for _ in 0..=entries.len() {
        if at == to {
            return true;
        }
        match ways.next(&at, draft.known.version(&at)) {
            Some(next) => at = next.to_owned(),
            None => return false,
        }
    }
    false
}
