//! Changes what a package says of its channels: its default, and their names.

use olmkit_bundle::names::ChannelName;
use olmkit_bundle::suggest::nearest;

use super::deprecate::nothing;
use super::draft::{Draft, Slot};
use super::{Change, EditError};
use crate::fbc::schema;
use crate::index::Index;

/// Makes a channel the default.
pub(super) fn set_default(index: &Index<'_, '_>, package: &str, channel: &str) -> Result<Change, EditError> {
    let mut draft = Draft::of(index, package)?;
    draft.channel(channel)?;
    let old = draft.default_channel();
    if old == channel {
        return Ok(nothing(format!(
            "`{channel}` is already the default channel of `{package}`: nothing to change"
        )));
    }
    if let Some(blob) = draft.packages.first_mut().and_then(|slot| slot.edit()) {
        blob.default_channel.value = channel.to_owned().into();
    }
    draft.finish(vec![format!("the default channel of `{package}` is `{channel}`; it was `{old}`")])
}

/// Renames a channel, wherever the package names it.
pub(super) fn rename_channel(
    index: &Index<'_, '_>,
    package: &str,
    channel: &str,
    to: &ChannelName,
) -> Result<Change, EditError> {
    let mut draft = Draft::of(index, package)?;
    let to = to.as_str();
    let new = || to.to_owned().into();
    let (from, taken) = (draft.channel(channel), draft.channel(to));
    if channel == to && from.is_ok() {
        return Ok(nothing(format!("`{package}` already calls the channel `{to}`: nothing to change")));
    }
    match (from, taken) {
        (Ok(from), Err(_)) => {
            if let Some(blob) = draft.channels[from].edit() {
                blob.name.value = new();
            }
        }
        (Ok(_), Ok(taken)) => {
            let blob = draft.channels.get(taken).and_then(|slot| slot.old);
            let at = blob.map(|blob| blob.at.with(blob.name.span)).unwrap_or_default();
            return Err(EditError::ChannelExists {
                package: package.to_owned(),
                channel: to.to_owned(),
                place: Box::new(index.catalog.place(at)),
            });
        }
        (Err(error), Err(_)) => return Err(error),
        // Renamed before, perhaps by a run that was interrupted; unless the old name is a misspelled word. Names with versions are alike.
        (Err(error), Ok(_)) => {
            let is_word = |name: &&str| !name.contains(|c: char| c.is_ascii_digit());
            let others = draft.channels.iter().filter_map(Slot::get).map(|known| known.name.as_str());
            let words = others.filter(|name| *name != to).filter(is_word);
            if is_word(&channel) && nearest(channel, words).is_some() {
                return Err(error);
            }
        }
    }
    if draft.default_channel() == channel
        && let Some(blob) = draft.packages.first_mut().and_then(|slot| slot.edit())
    {
        blob.default_channel.value = new();
    }
    for slot in &mut draft.deprecations {
        let is_it = |entry: &crate::fbc::Deprecation<'_>| {
            *entry.reference.schema == *schema::CHANNEL && *entry.reference.name == *channel
        };
        if slot.get().is_some_and(|blob| blob.entries.iter().any(is_it))
            && let Some(blob) = slot.edit()
        {
            blob.entries
                .iter_mut()
                .filter(|entry| is_it(entry))
                .for_each(|entry| entry.reference.name.value = new());
        }
    }
    let change = draft.finish(vec![
        format!("the channel `{channel}` of `{package}` is now `{to}`"),
        format!("Subscriptions to `{channel}` no longer find it: change their `spec.channel`"),
    ])?;
    if change.files.is_empty() {
        return Ok(nothing(format!(
            "`{package}` has no channel `{channel}`, and has the channel `{to}` already: nothing to change"
        )));
    }
    Ok(change)
}
