//! The blobs of one package under change.

use serde_json::Value as Json;

use super::{BrokenChannel, Change, EditError, FORMAT};
use crate::fbc::{self, At, Entry};
use crate::graph::{self, GraphError, VersionRelease};
use crate::index::{self, Index};
use crate::json::Tree;
use crate::texts::{TextError, Texts};

/// A package's blobs: what they are, and what they are going to be.
pub(super) struct Draft<'i, 'c, 'a> {
    pub(super) index: &'i Index<'c, 'a>,
    pub(super) name: &'i str,
    pub(super) known: &'i index::Package<'c, 'a>,
    pub(super) packages: Vec<Slot<'c, fbc::Package<'a>>>,
    pub(super) channels: Vec<Slot<'c, fbc::Channel<'a>>>,
    pub(super) bundles: Vec<Slot<'c, fbc::Bundle<'a>>>,
    pub(super) deprecations: Vec<Slot<'c, fbc::Deprecations<'a>>>,
    others: Vec<Slot<'c, fbc::Other<'a>>>,
}

/// A blob before and after.
pub(super) struct Slot<'c, T> {
    pub(super) old: Option<&'c T>,
    after: After<T>,
}

enum After<T> {
    Same,
    Changed(T),
    Gone,
}

impl<'c, T: Clone> Slot<'c, T> {
    fn of(old: &'c T) -> Self {
        Self { old: Some(old), after: After::Same }
    }

    /// A blob that is new.
    pub(super) fn new(blob: T) -> Self {
        Self { old: None, after: After::Changed(blob) }
    }

    /// What it is going to be, unless it is removed.
    pub(super) fn get(&self) -> Option<&T> {
        match &self.after {
            After::Same => self.old,
            After::Changed(new) => Some(new),
            After::Gone => None,
        }
    }

    /// What it is going to be, to be changed.
    pub(super) fn edit(&mut self) -> Option<&mut T> {
        if let (After::Same, Some(old)) = (&self.after, self.old) {
            self.after = After::Changed(old.clone());
        }
        match &mut self.after {
            After::Changed(new) => Some(new),
            _ => None,
        }
    }

    pub(super) fn remove(&mut self) {
        self.after = After::Gone;
    }
}

/// What all blobs have.
pub(super) trait Blob {
    fn at(&self) -> At;
    fn json(&self) -> Json;
    fn as_tree(&self) -> Tree<'_>;
}

macro_rules! blob {
    ($($blob:ident)*) => {$(
        impl Blob for fbc::$blob<'_> {
            fn at(&self) -> At {
                self.at
            }

            fn json(&self) -> Json {
                self.to_json()
            }

            fn as_tree(&self) -> Tree<'_> {
                self.tree()
            }
        }
    )*};
}

blob! { Package Channel Bundle Deprecations Other }

impl<'i, 'c, 'a> Draft<'i, 'c, 'a> {
    /// The blobs of a package as they are.
    pub(super) fn of(index: &'i Index<'c, 'a>, package: &str) -> Result<Self, EditError> {
        let found = index.packages.get_key_value(package).filter(|(_, package)| !package.blobs.is_empty());
        let (name, known) = found.ok_or_else(|| {
            let known = index.packages.iter().filter(|(_, package)| !package.blobs.is_empty());
            EditError::NoPackage {
                package: package.to_owned(),
                known: known.map(|(name, _)| (*name).to_owned()).collect(),
            }
        })?;
        let others = index.catalog.others.iter().filter(|other| *other.package == **name);
        Ok(Self {
            index,
            name,
            known,
            packages: known.blobs.iter().copied().map(Slot::of).collect(),
            channels: known.channels.iter().map(|channel| Slot::of(channel.blob)).collect(),
            bundles: known.bundles.iter().map(|bundle| Slot::of(bundle.blob)).collect(),
            deprecations: known.deprecations.iter().copied().map(Slot::of).collect(),
            others: others.map(Slot::of).collect(),
        })
    }

    /// Removes the whole package.
    pub(super) fn remove_all(&mut self) {
        self.packages.iter_mut().for_each(Slot::remove);
        self.channels.iter_mut().for_each(Slot::remove);
        self.bundles.iter_mut().for_each(Slot::remove);
        self.deprecations.iter_mut().for_each(Slot::remove);
        self.others.iter_mut().for_each(Slot::remove);
    }

    pub(super) fn default_channel(&self) -> &'c str {
        self.known.blobs.first().map_or("", |blob| &blob.default_channel)
    }

    /// The channel of a name.
    pub(super) fn channel(&self, name: &str) -> Result<usize, EditError> {
        let of_name =
            |slot: &Slot<'_, fbc::Channel<'_>>| slot.get().is_some_and(|channel| *channel.name == *name);
        self.channels.iter().position(of_name).ok_or_else(|| EditError::NoChannel {
            package: self.name.to_owned(),
            channel: name.to_owned(),
            known: self
                .channels
                .iter()
                .filter_map(Slot::get)
                .map(|channel| channel.name.to_string())
                .collect(),
        })
    }

    /// The name of the bundle that has a version, or that name.
    pub(super) fn bundle(&self, version: &str) -> Result<&'c str, EditError> {
        let all = || self.known.bundles.iter();
        let text = version.strip_prefix('v').unwrap_or(version);
        let same = |bundle: &index::Bundle<'_, '_>| {
            bundle.version.as_ref().is_some_and(|version| version.to_string() == text)
        };
        let exact =
            all().find(|bundle| *bundle.blob.name == *version).or_else(|| all().find(|bundle| same(bundle)));
        if let Some(bundle) = exact {
            return Ok(&bundle.blob.name);
        }
        // Without build metadata or release, where there is one such version.
        let wanted = text.parse::<olmkit_bundle::version::Version>().ok();
        let like = |bundle: &&index::Bundle<'_, '_>| {
            let version = bundle.version.as_ref().map(|version| &version.version);
            version.zip(wanted.as_ref()).is_some_and(|(a, b)| {
                (a.major, a.minor, a.patch, &a.pre) == (b.major, b.minor, b.patch, &b.pre)
                    && b.build.is_empty()
            })
        };
        match all().filter(like).collect::<Vec<_>>()[..] {
            [bundle] => Ok(&bundle.blob.name),
            [] => {
                let mut known: Vec<_> = all().filter_map(|bundle| bundle.version.clone()).collect();
                known.sort_by(|a, b| b.cmp(a));
                let known = known.iter().map(VersionRelease::to_string).collect();
                Err(EditError::NoVersion {
                    package: self.name.to_owned(),
                    version: version.to_owned(),
                    known,
                })
            }
            ref several => Err(EditError::Ambiguous {
                version: version.to_owned(),
                bundles: several.iter().map(|bundle| bundle.blob.name.to_string()).collect(),
            }),
        }
    }

    /// Removes bundles that are in no channel any more, and what is deprecated of what is gone. Gives the bundles' names.
    /// With `all` also those that were in no channel before: an edit that was interrupted may have left them.
    pub(super) fn remove_unreferenced(&mut self, all: bool) -> Vec<String> {
        let was_in_channel = |name: &str| {
            let mut entries = self.known.channels.iter().flat_map(|channel| &channel.blob.entries);
            entries.any(|entry| *entry.name == *name)
        };
        let entries = || self.channels.iter().filter_map(Slot::get).flat_map(|channel| &channel.entries);
        let names: std::collections::HashSet<&str> = entries().map(|entry| entry.name.as_str()).collect();
        let mut gone = Vec::new();
        for slot in &mut self.bundles {
            if let Some(bundle) = slot.get()
                && !names.contains(bundle.name.as_str())
                && (all || was_in_channel(&bundle.name))
            {
                gone.push(bundle.name.to_string());
                slot.remove();
            }
        }
        let channels: Vec<String> =
            self.channels.iter().filter_map(Slot::get).map(|channel| channel.name.to_string()).collect();
        let bundles: std::collections::HashSet<&str> =
            self.bundles.iter().filter_map(Slot::get).map(|bundle| bundle.name.as_str()).collect();
        let known_channel =
            |name: &str| all || self.known.channels.iter().any(|channel| *channel.blob.name == *name);
        let known_bundle = |name: &str| all || self.known.bundle(name).is_some();
        let is_stale = |entry: &fbc::Deprecation<'_>| {
            let name = entry.reference.name.as_str();
            match entry.reference.schema.as_str() {
                fbc::schema::CHANNEL => {
                    known_channel(name) && !channels.iter().any(|channel| channel == name)
                }
                fbc::schema::BUNDLE => known_bundle(name) && !bundles.contains(name),
                _ => false,
            }
        };
        for slot in &mut self.deprecations {
            if !slot.get().is_some_and(|blob| blob.entries.iter().any(is_stale)) {
                continue;
            }
            let is_empty = slot.edit().is_none_or(|blob| {
                blob.entries.retain(|entry| !is_stale(entry));
                blob.entries.is_empty()
            });
            if is_empty {
                slot.remove();
            }
        }
        gone
    }

    /// Refuses to go on when a channel is not sound as it is: its edges mean nothing then.
    pub(super) fn sound(&self, channel: &str) -> Result<&'i graph::Channel, EditError> {
        let found = self.known.channels.iter().find(|found| *found.blob.name == *channel);
        let Some(found) = found else {
            return Err(EditError::NoChannel {
                package: self.name.to_owned(),
                channel: channel.to_owned(),
                known: Vec::new(),
            });
        };
        found.linked.as_ref().map_err(|errors| EditError::Broken {
            channel: channel.to_owned(),
            place: Box::new(self.index.catalog.place(found.at())),
            source: errors.first().cloned().unwrap_or(GraphError::Empty),
        })
    }

    /// The error that a channel would be with these entries.
    pub(super) fn breaks(&self, channel: usize, entries: &[Entry<'_>], errors: &[GraphError]) -> EditError {
        let old = self.channels.get(channel).and_then(|slot| slot.old);
        EditError::Breaks {
            channel: old.map(|blob| blob.name.to_string()).unwrap_or_default(),
            place: Box::new(old.map_or_else(
                || self.index.catalog.place(At { file: u32::MAX, ..At::default() }),
                |blob| self.index.catalog.place(blob.at.with(blob.name.span)),
            )),
            source: broken(entries, errors),
        }
    }

    /// The files that change.
    pub(super) fn finish(&self, summary: Vec<String>) -> Result<Change, EditError> {
        let mut texts = Texts::new(self.index.catalog, FORMAT);
        self.write(&mut texts)?;
        Ok(Change { files: texts.finish()?, summary })
    }

    /// Adds the changes to those of other packages.
    pub(super) fn write<'d>(&'d self, texts: &mut Texts<'c, 'a, 'd>) -> Result<(), TextError> {
        let first = self.known.blobs.first().map(|blob| blob.at);
        let home = texts.home(self.name, first);
        write_slots(&self.packages, &home, texts)?;
        write_slots(&self.channels, &home, texts)?;
        write_slots(&self.bundles, &home, texts)?;
        write_slots(&self.deprecations, &home, texts)?;
        write_slots(&self.others, &home, texts)
    }
}

fn write_slots<'c, 'a, 'd, T: Blob + Clone>(
    slots: &'d [Slot<'c, T>],
    home: &str,
    texts: &mut Texts<'c, 'a, 'd>,
) -> Result<(), TextError> {
    let last = slots.iter().filter_map(|slot| slot.old).next_back().map(Blob::at);
    let target = texts.target(last, home);
    for slot in slots {
        match (slot.old, &slot.after) {
            (_, After::Same) | (None, After::Gone) => {}
            (Some(old), After::Changed(new)) => texts.set(old.at(), &old.json(), &new.json())?,
            (Some(old), After::Gone) => texts.remove(old.at()),
            (None, After::Changed(new)) => texts.append(&target, new.as_tree()),
        }
    }
    Ok(())
}

/// What is wrong with entries, in words that name them.
fn broken(entries: &[Entry<'_>], errors: &[GraphError]) -> BrokenChannel {
    let name = |at: &usize| format!("`{}`", entries.get(*at).map_or("", |entry| entry.name.as_str()));
    let names = |all: &[usize]| all.iter().map(name).collect::<Vec<_>>().join(", ");
    BrokenChannel(match errors.first() {
        Some(GraphError::SeveralHeads { heads }) => format!("it would have several heads: {}", names(heads)),
        Some(GraphError::Cycle { cycle } | GraphError::NoHead { cycle }) => {
            format!("its edges would form a cycle: {}", names(cycle))
        }
        Some(GraphError::Stranded { entry }) => format!("{} would be stranded", name(entry)),
        Some(GraphError::Empty) | None => "it would be empty".into(),
        Some(other) => other.to_string(),
    })
}
