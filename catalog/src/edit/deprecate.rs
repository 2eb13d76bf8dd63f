//! Marks a package, a channel or a bundle as deprecated, and takes it back.

use super::draft::{Draft, Slot};
use super::{Change, EditError, Target};
use crate::fbc::{Deprecation, Deprecations, Reference, schema};
use crate::index::Index;

/// Sets the message of a deprecation, or removes it when there is none.
pub(super) fn deprecate(
    index: &Index<'_, '_>,
    package: &str,
    target: &Target,
    message: Option<&str>,
) -> Result<Change, EditError> {
    if message.is_some_and(|message| message.trim().is_empty()) {
        return Err(EditError::NoMessage);
    }
    let mut draft = Draft::of(index, package)?;
    let (of, name) = match target {
        Target::Package => (schema::PACKAGE, ""),
        Target::Channel(channel) => {
            draft.channel(channel)?;
            (schema::CHANNEL, channel.as_str())
        }
        Target::Version(version) => (schema::BUNDLE, draft.bundle(version)?),
    };
    let shown = format!("`{}`", if name.is_empty() { package } else { name });
    let is_it = |entry: &Deprecation<'_>| *entry.reference.schema == *of && *entry.reference.name == *name;
    let found = draft
        .deprecations
        .iter()
        .position(|slot| slot.get().is_some_and(|blob| blob.entries.iter().any(is_it)));
    let Some(message) = message else {
        let Some(blob) = found.and_then(|at| draft.deprecations.get_mut(at)) else {
            return Ok(nothing(format!("{shown} is not deprecated: nothing to change")));
        };
        let is_empty = blob.edit().is_none_or(|blob| {
            blob.entries.retain(|entry| !is_it(entry));
            blob.entries.is_empty()
        });
        if is_empty {
            blob.remove();
        }
        return draft.finish(vec![format!("{shown} is no longer deprecated")]);
    };
    if let Some(blob) = found.and_then(|at| draft.deprecations.get_mut(at)) {
        let old = blob.get().and_then(|blob| blob.entries.iter().find(|entry| is_it(entry)));
        if old.is_some_and(|old| *old.message == *message) {
            return Ok(nothing(format!(
                "{shown} is already deprecated with this message: nothing to change"
            )));
        }
        let entry = blob.edit().and_then(|blob| blob.entries.iter_mut().find(|entry| is_it(entry)));
        if let Some(entry) = entry {
            entry.message.value = message.to_owned().into();
        }
        return draft.finish(vec![format!("{shown} is deprecated with a new message")]);
    }
    let entry = Deprecation {
        reference: Reference { schema: of.into(), name: name.to_owned().into(), ..Reference::default() },
        message: message.to_owned().into(),
        ..Deprecation::default()
    };
    match draft.deprecations.first_mut().and_then(Slot::edit) {
        Some(blob) => blob.entries.push(entry),
        None => draft.deprecations.push(Slot::new(Deprecations {
            package: package.to_owned().into(),
            entries: vec![entry],
            ..Deprecations::default()
        })),
    }
    draft.finish(vec![format!("{shown} is deprecated")])
}

/// No change, and why.
pub(super) fn nothing(why: String) -> Change {
    Change { files: Vec::new(), summary: vec![why] }
}
