//! The questions of `api.Registry`, answered with encoded messages.
//!
//! Which bundles an answer names, and what is left out of it, is opm's way (operator-registry `pkg/cache`): `ListBundles` leaves the
//! manifests out of bundles that have an image, and all others the edges. Where opm's order is that of a Go map, ours is sorted.

use std::ops::Range;

use prost::encoding::{WireType, encode_key, encode_varint};

use super::api;
use super::format::{NONE, Table};
use super::read::{Compiled, Corrupt, Window};

/// The fields of `api.Bundle` that hold manifests.
const CSV_JSON: u32 = 4;
const OBJECT: u32 = 5;

/// A question without an answer. The texts are opm's, to the letter: clients show them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// There is no such package.
    #[error("package {0:?} not found")]
    Package(String),
    /// There is no such package, for the one method that says it without quotes.
    #[error("package {0} not found")]
    PackageToReplaceIn(String),
    /// The package has no such channel.
    #[error("package {0:?}, channel {1:?} not found")]
    Channel(String, String),
    /// The channel has no such bundle.
    #[error("package {0:?}, channel {1:?}, bundle {2:?} not found")]
    Bundle(String, String, String),
    /// Nothing in the channel replaces or skips it.
    #[error("no entry found for package {0:?}, channel {1:?}")]
    NotReplacedIn(String, String),
    /// Nothing replaces or skips it.
    #[error("no channel entries found that replace {0}")]
    NotReplaced(String),
    /// Nothing provides the API.
    #[error("no channel entries found that provide group:{0:?} version:{1:?} kind:{2:?}")]
    NotProvided(String, String, String),
    /// No default channel provides the API.
    #[error("no entry found that provides group:{0:?} version:{1:?} kind:{2:?}")]
    NotProvidedByDefault(String, String, String),
    /// The compiled catalog is damaged.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
}

/// A row of [`Table::Entries`].
#[derive(Clone, Copy)]
struct Entry {
    channel: u32,
    bundle: u32,
    name: u32,
    part: u32,
    /// How much of the part comes before the edges, in bytes.
    place: u32,
    replaces: u32,
    first_skip: u32,
    skips: u32,
}

/// A row of [`Table::Channels`].
#[derive(Clone, Copy)]
struct Channel {
    package: u32,
    name: u32,
    first_entry: u32,
    entries: u32,
    head: u32,
}

/// What an encoded bundle holds besides what is the same everywhere.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trim {
    /// Edges, and manifests where there is no image.
    Listed,
    /// Manifests, but no edges.
    Single,
}

impl Compiled {
    /// The names of all packages, sorted.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn packages(&self) -> Result<Vec<&str>, Corrupt> {
        (0..self.rows(Table::Packages))
            .map(|number| self.text(self.row::<5>(Table::Packages, number)?[0]))
            .collect()
    }

    /// An `api.Package`.
    ///
    /// # Errors
    /// There is none, or the file is damaged.
    pub fn package(&self, name: &str) -> Result<Vec<u8>, AskError> {
        let number = self.find_package(name)?.ok_or_else(|| AskError::Package(name.into()))?;
        let [.., part] = self.row::<5>(Table::Packages, number)?;
        let mut message = Vec::new();
        self.append(self.part_row(part)?, &mut Window::default(), &mut message)?;
        Ok(message)
    }

    /// The `api.Bundle` of a bundle in a channel.
    ///
    /// # Errors
    /// There is none, or the file is damaged.
    pub fn bundle(&self, package: &str, channel: &str, csv: &str) -> Result<Vec<u8>, AskError> {
        let (_, found) = self.find_channel(package, channel)?;
        let number = match self.number(csv)? {
            Some(name) => {
                self.search(Table::Entries, self.entries_of(found), |at| Ok(self.entry(at)?.name.cmp(&name)))?
            }
            None => None,
        };
        let number = number.ok_or_else(|| AskError::Bundle(package.into(), channel.into(), csv.into()))?;
        Ok(self.single(number)?)
    }

    /// The `api.Bundle` at the head of a channel.
    ///
    /// # Errors
    /// There is none, or the file is damaged.
    pub fn head(&self, package: &str, channel: &str) -> Result<Vec<u8>, AskError> {
        let (_, found) = self.find_channel(package, channel)?;
        Ok(self.single(found.head)?)
    }

    /// The first `api.Bundle` of a channel, by name, that replaces or skips another.
    ///
    /// # Errors
    /// There is none, or the file is damaged.
    pub fn bundle_that_replaces(&self, csv: &str, package: &str, channel: &str) -> Result<Vec<u8>, AskError> {
        let (number, _) = self.find_channel(package, channel).map_err(|error| match error {
            AskError::Package(name) => AskError::PackageToReplaceIn(name),
            error => error,
        })?;
        for entry in self.replacers(csv)? {
            if self.entry(entry)?.channel == number {
                return Ok(self.single(entry)?);
            }
        }
        Err(AskError::NotReplacedIn(package.into(), channel.into()))
    }

    /// An entry for each bundle of each channel that replaces or skips one; it names what the bundle replaces, be that another.
    ///
    /// # Errors
    /// There is none, or the file is damaged.
    pub fn entries_that_replace(&self, csv: &str) -> Result<Vec<api::ChannelEntry>, AskError> {
        let entries = self.replacers(csv)?;
        let entries: Vec<_> =
            entries.map(|number| self.channel_entry(self.entry(number)?, None)).collect::<Result<_, _>>()?;
        if entries.is_empty() { Err(AskError::NotReplaced(csv.into())) } else { Ok(entries) }
    }

    /// An entry for each edge into a bundle that provides an API.
    ///
    /// # Errors
    /// There is none, or the file is damaged.
    pub fn entries_that_provide(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Vec<api::ChannelEntry>, AskError> {
        self.provided(group, version, kind, |_, _| Ok(true), |_, _| Ok(true))
    }

    /// An entry for each edge into a head of a channel that provides an API, as far as the edge comes from the same channel.
    ///
    /// # Errors
    /// There is none, or the file is damaged.
    pub fn heads_that_provide(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Vec<api::ChannelEntry>, AskError> {
        let is_head = |number, entry: Entry| Ok(self.channel(entry.channel)?.head == number);
        let is_inside = |entry: Entry, skip: u32| {
            let inside = self.entries_of(self.channel(entry.channel)?);
            Ok(self.search(Table::Entries, inside, |at| Ok(self.entry(at)?.name.cmp(&skip)))?.is_some())
        };
        self.provided(group, version, kind, is_head, is_inside)
    }

    /// The `api.Bundle` at the head of the default channel of the first package, by name, whose head there provides an API.
    ///
    /// # Errors
    /// There is none, or the file is damaged.
    pub fn default_that_provides(&self, group: &str, version: &str, kind: &str) -> Result<Vec<u8>, AskError> {
        let mut any = false;
        for number in self.providers(group, version, kind)? {
            let channel_number = self.entry(number)?.channel;
            let channel = self.channel(channel_number)?;
            any |= channel.head == number;
            let [_, default, ..] = self.row::<5>(Table::Packages, channel.package)?;
            if channel.head == number && default == channel_number {
                return Ok(self.single(number)?);
            }
        }
        let api = (group.into(), version.into(), kind.into());
        Err(if any {
            AskError::NotProvidedByDefault(api.0, api.1, api.2)
        } else {
            AskError::NotProvided(api.0, api.1, api.2)
        })
    }

    /// The blobs of a schema that is not OLM's, of one package or of none, as encoded `google.protobuf.Struct`s.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn customs(&self, schema: &str, package: &str) -> Result<Vec<Vec<u8>>, Corrupt> {
        let (Some(schema), Some(package)) = (self.number(schema)?, self.number(package)?) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for number in 0..self.rows(Table::Customs) {
            let [of_schema, of_package, part] = self.row(Table::Customs, number)?;
            if (of_schema, of_package) == (schema, package) {
                let mut message = Vec::new();
                self.append(self.part_row(part)?, &mut Window::default(), &mut message)?;
                found.push(message);
            }
        }
        Ok(found)
    }

    fn find_package(&self, name: &str) -> Result<Option<u32>, Corrupt> {
        let Some(name) = self.number(name)? else { return Ok(None) };
        self.search(Table::Packages, 0..NONE, |at| Ok(self.row::<5>(Table::Packages, at)?[0].cmp(&name)))
    }

    fn find_channel(&self, package: &str, channel: &str) -> Result<(u32, Channel), AskError> {
        let number = self.find_package(package)?.ok_or_else(|| AskError::Package(package.into()))?;
        let [_, _, first, count, _] = self.row::<5>(Table::Packages, number)?;
        let found = match self.number(channel)? {
            Some(name) => {
                self.search(Table::Channels, span(first, count), |at| Ok(self.channel(at)?.name.cmp(&name)))?
            }
            None => None,
        };
        let found = found.ok_or_else(|| AskError::Channel(package.into(), channel.into()))?;
        Ok((found, self.channel(found)?))
    }

    fn channel(&self, number: u32) -> Result<Channel, Corrupt> {
        let [package, name, first_entry, entries, head] = self.row(Table::Channels, number)?;
        Ok(Channel { package, name, first_entry, entries, head })
    }

    fn entry(&self, number: u32) -> Result<Entry, Corrupt> {
        let [channel, bundle, name, part, place, replaces, first_skip, skips] =
            self.row(Table::Entries, number)?;
        Ok(Entry { channel, bundle, name, part, place, replaces, first_skip, skips })
    }

    fn entries_of(&self, channel: Channel) -> Range<u32> {
        span(channel.first_entry, channel.entries)
    }

    /// The numbers of entries that replace or skip a bundle, in order.
    fn replacers(&self, csv: &str) -> Result<impl Iterator<Item = u32>, Corrupt> {
        let found = match self.number(csv)? {
            Some(name) => self.search(Table::Replaced, 0..NONE, |at| {
                Ok(self.row::<3>(Table::Replaced, at)?[0].cmp(&name))
            })?,
            None => None,
        };
        let (first, count) = match found {
            Some(number) => {
                let [_, first, count] = self.row(Table::Replaced, number)?;
                (first, count)
            }
            None => (0, 0),
        };
        self.listed(Table::Replacers, first, count)
    }

    /// The numbers of entries whose bundles provide an API, in order.
    fn providers(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<impl Iterator<Item = u32>, Corrupt> {
        let key = [self.number(group)?, self.number(version)?, self.number(kind)?];
        let found = self.search(Table::Apis, 0..NONE, |at| {
            let [group, version, kind, ..] = self.row::<5>(Table::Apis, at)?;
            let row = [Some(group), Some(version), Some(kind)];
            // A text that the catalog has nowhere comes before all others, and equals none.
            Ok(row.cmp(&key))
        })?;
        let (first, count) = match found {
            Some(number) => {
                let [.., first, count] = self.row::<5>(Table::Apis, number)?;
                (first, count)
            }
            None => (0, 0),
        };
        self.listed(Table::Providers, first, count)
    }

    /// Some rows of a table of numbers.
    fn listed(&self, table: Table, first: u32, count: u32) -> Result<impl Iterator<Item = u32>, Corrupt> {
        // All rows are there, or none is used.
        let numbers = span(first, count).map(|at| self.row::<1>(table, at).map(|[number]| number));
        Ok(numbers.collect::<Result<Vec<_>, _>>()?.into_iter())
    }

    fn provided(
        &self,
        group: &str,
        version: &str,
        kind: &str,
        takes_entry: impl Fn(u32, Entry) -> Result<bool, Corrupt>,
        takes_skip: impl Fn(Entry, u32) -> Result<bool, Corrupt>,
    ) -> Result<Vec<api::ChannelEntry>, AskError> {
        let mut found = Vec::new();
        for number in self.providers(group, version, kind)? {
            let entry = self.entry(number)?;
            if !takes_entry(number, entry)? {
                continue;
            }
            found.push(self.channel_entry(entry, None)?);
            for at in span(entry.first_skip, entry.skips) {
                let [skip] = self.row(Table::Skips, at)?;
                if skip != entry.replaces && takes_skip(entry, skip)? {
                    found.push(self.channel_entry(entry, Some(skip))?);
                }
            }
        }
        if found.is_empty() {
            return Err(AskError::NotProvided(group.into(), version.into(), kind.into()));
        }
        Ok(found)
    }

    fn channel_entry(&self, entry: Entry, replaces: Option<u32>) -> Result<api::ChannelEntry, Corrupt> {
        let channel = self.channel(entry.channel)?;
        let [package, ..] = self.row::<5>(Table::Packages, channel.package)?;
        Ok(api::ChannelEntry {
            package_name: self.text(package)?.to_owned(),
            channel_name: self.text(channel.name)?.to_owned(),
            bundle_name: self.text(entry.name)?.to_owned(),
            replaces: self.text(replaces.unwrap_or(entry.replaces))?.to_owned(),
        })
    }

    fn single(&self, entry: u32) -> Result<Vec<u8>, Corrupt> {
        let mut message = Vec::new();
        self.append_bundle(self.entry(entry)?, Trim::Single, &mut Window::default(), &mut message)?;
        Ok(message)
    }

    /// Appends the pieces of a bundle's message: protobuf lets them stand one behind the other.
    fn append_bundle(
        &self,
        entry: Entry,
        trim: Trim,
        window: &mut Window,
        out: &mut Vec<u8>,
    ) -> Result<(), Corrupt> {
        let [part, has_image, first, objects, csv] = self.row(Table::Bundles, entry.bundle)?;
        self.append(self.part_row(part)?, window, out)?;
        let before = out.len();
        self.append(self.part_row(entry.part)?, window, out)?;
        if trim == Trim::Single {
            out.truncate(before.saturating_add(entry.place as usize).min(out.len()));
        }
        if trim == Trim::Listed && has_image != 0 {
            return Ok(());
        }
        if csv != NONE {
            self.append_manifest(CSV_JSON, first.saturating_add(csv), window, out)?;
        }
        span(first, objects).try_for_each(|manifest| self.append_manifest(OBJECT, manifest, window, out))
    }

    fn append_manifest(
        &self,
        field: u32,
        number: u32,
        window: &mut Window,
        out: &mut Vec<u8>,
    ) -> Result<(), Corrupt> {
        let [first, count] = self.row(Table::Manifests, number)?;
        let segments = self.listed(Table::Segments, first, count)?;
        let segments: Vec<_> = segments.map(|part| self.part_row(part)).collect::<Result<_, _>>()?;
        let len: u64 = segments.iter().map(|segment| u64::from(segment.len())).sum();
        if out.len() as u64 + len > u64::from(super::format::MAX_PART) {
            return Err(self.corrupt(format!("the bundle with manifest {number} is too large")));
        }
        encode_key(field, WireType::LengthDelimited, out);
        encode_varint(len, out);
        segments.into_iter().try_for_each(|segment| self.append(segment, window, out))
    }
}

/// `count` numbers from `first` on; fewer at the end of all numbers.
fn span(first: u32, count: u32) -> Range<u32> {
    first..first.saturating_add(count)
}

/// Every bundle as an `api.Bundle`, by channel, package and name, read as one goes along.
#[derive(Debug, Default)]
pub struct Listing {
    next: u32,
    window: Window,
}

impl Listing {
    /// Appends the next message to `out`; `false` when there is none.
    ///
    /// # Errors
    /// The file is damaged; there may be half a message in `out`.
    pub fn next(&mut self, catalog: &Compiled, out: &mut Vec<u8>) -> Result<bool, Corrupt> {
        if self.next >= catalog.rows(Table::Listing) {
            return Ok(false);
        }
        let [entry] = catalog.row(Table::Listing, self.next)?;
        self.next += 1;
        catalog.append_bundle(catalog.entry(entry)?, Trim::Listed, &mut self.window, out)?;
        Ok(true)
    }
}
