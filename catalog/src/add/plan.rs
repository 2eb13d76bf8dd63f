//! What a package is going to be once bundles are added to it.

use std::collections::BTreeMap;

use olmkit_bundle::finding::Place;
use olmkit_bundle::names::{ChannelName, PackageName};

use super::policy::{self, Versioned};
use super::{AddError, Edges, Policy, Request};
use crate::base64;
use crate::fbc::{self, Entry, Icon};
use crate::graph::{self, GraphError, VersionRelease};
use crate::index::{self, Index};
use crate::render::Rendered;
use crate::template::single_template;
use crate::texts::unread::unread;
use crate::validate;

/// What the catalog is going to be.
pub(super) struct Plan<'p, 'c, 'a> {
    pub(super) index: &'p Index<'c, 'a>,
    pub(super) package: String,
    pub(super) channels: Vec<ChannelPlan<'c, 'a>>,
    /// Bundles that are new to the catalog, in the order of their versions.
    pub(super) new: Vec<&'p Rendered>,
    /// Every bundle that was asked for, and whether it is new.
    pub(super) asked: Vec<(&'p Rendered, bool)>,
    /// The versions of the bundles that are new.
    pub(super) versions: BTreeMap<String, VersionRelease>,
    /// The `olm.package` blob, when it is new.
    pub(super) new_package: Option<fbc::Package<'static>>,
    /// The default channel, when it changes in a package that is there.
    pub(super) new_default_channel: Option<String>,
    /// Whether entries that are there must have the edges that the policy gives.
    pub(super) is_strict: bool,
}

/// What a channel is going to be.
pub(super) struct ChannelPlan<'c, 'a> {
    pub(super) name: String,
    /// The blob, when the channel is there.
    pub(super) blob: Option<&'c fbc::Channel<'a>>,
    pub(super) entries: Vec<Entry<'a>>,
    /// The same by version.
    pub(super) sorted: Vec<Versioned>,
    /// The head, as of the last time that the channel was sound.
    pub(super) head: Option<String>,
    /// The bundle with which the channel stopped being sound, and why, unless a later one repaired that.
    broken: Option<(String, GraphError)>,
}

/// Where a bundle goes, and what chooses its edges there.
pub(super) struct Placing<'r> {
    pub(super) channels: &'r [ChannelName],
    pub(super) policy: Policy,
    /// The edges that its author wrote; none where a policy was named.
    pub(super) own: Option<Edges>,
}

impl<'r> Placing<'r> {
    pub(super) fn by(policy: Policy, channel: &'r ChannelName) -> Self {
        Self { channels: std::slice::from_ref(channel), policy, own: None }
    }

    fn has(&self, channel: &ChannelPlan<'_, '_>) -> bool {
        self.channels.iter().any(|name| *name.as_str() == *channel.name)
    }
}

impl<'p, 'c, 'a> Plan<'p, 'c, 'a> {
    pub(super) fn empty(index: &'p Index<'c, 'a>, package: &str) -> Result<Self, AddError> {
        if !index.catalog.faults.is_empty() {
            return Err(AddError::Unreadable { findings: validate::faults_first(index) });
        }
        if let Some(place) = unread(index.catalog) {
            return Err(AddError::Unread { place: Box::new(place) });
        }
        if let Some((template, place)) = single_template(index.catalog) {
            return Err(AddError::Template { place: Box::new(place), schema: template.schema.to_string() });
        }
        let blobs = index.packages.get(package).map(|package| package.blobs.as_slice()).unwrap_or_default();
        if let [_, second, ..] = blobs {
            return Err(AddError::Twice {
                what: format!("the package `{package}`"),
                place: Box::new(index.catalog.place(second.at.with(second.name.span))),
            });
        }
        Ok(Self {
            index,
            package: package.to_owned(),
            channels: Vec::new(),
            new: Vec::new(),
            asked: Vec::new(),
            versions: BTreeMap::new(),
            new_package: None,
            new_default_channel: None,
            is_strict: false,
        })
    }

    pub(super) fn new(
        index: &'p Index<'c, 'a>,
        bundles: &'p [Rendered],
        request: &Request,
    ) -> Result<Self, AddError> {
        let first = bundles.first().ok_or(AddError::Nothing("bundle"))?;
        let package = &first.blob.package;
        for bundle in bundles {
            if bundle.blob.package != *package {
                return Err(AddError::Packages {
                    bundle: bundle.blob.name.to_string(),
                    package: bundle.blob.package.to_string(),
                    other: package.to_string(),
                });
            }
        }
        if let Err(source) = package.parse::<PackageName>() {
            return Err(AddError::PackageName { bundle: first.blob.name.to_string(), source });
        }
        let mut plan = Self::empty(index, package)?;
        plan.is_strict = request.strict;
        for channel in bundles.iter().flat_map(|bundle| request.channels_of(bundle)) {
            if !plan.channels.iter().any(|open| open.name == channel.as_str()) {
                plan.open(channel)?;
            }
        }
        Ok(plan)
    }

    pub(super) fn blobs(&self) -> Option<&'p index::Package<'c, 'a>> {
        self.index.packages.get(self.package.as_str())
    }

    pub(super) fn version(&self, name: &str) -> Option<&VersionRelease> {
        self.versions.get(name).or_else(|| self.blobs()?.version(name))
    }

    /// Takes up a channel, which need not be there yet.
    pub(super) fn open(&mut self, name: &ChannelName) -> Result<(), AddError> {
        let mut found = self
            .blobs()
            .into_iter()
            .flat_map(|package| &package.channels)
            .filter(|channel| *channel.blob.name == *name.as_str());
        let first = found.next();
        if let Some(second) = found.next() {
            return Err(AddError::Twice {
                what: format!("the channel `{name}` of `{}`", self.package),
                place: Box::new(self.index.catalog.place(second.at())),
            });
        }
        let Some(channel) = first else {
            self.channels.push(ChannelPlan {
                name: name.to_string(),
                blob: None,
                entries: Vec::new(),
                sorted: Vec::new(),
                head: None,
                broken: None,
            });
            return Ok(());
        };
        let linked = channel.linked.as_ref().map_err(|errors| AddError::Channel {
            channel: name.to_string(),
            place: Box::new(self.index.catalog.place(channel.at())),
            source: errors.first().cloned().unwrap_or(GraphError::Empty),
        })?;
        let mut sorted = Vec::new();
        for (at, entry) in channel.blob.entries.iter().enumerate() {
            let version = self.version(&entry.name).cloned().ok_or_else(|| AddError::UnknownVersion {
                entry: entry.name.to_string(),
                channel: name.to_string(),
                place: Box::new(self.index.catalog.place(channel.entry_at(at))),
            })?;
            sorted.push(Versioned { name: entry.name.to_string(), version });
        }
        sorted.sort_by(|a, b| a.version.cmp(&b.version));
        self.channels.push(ChannelPlan {
            name: name.to_string(),
            blob: Some(channel.blob),
            entries: channel.blob.entries.clone(),
            sorted,
            head: Some(linked.head().name.clone()),
            broken: None,
        });
        Ok(())
    }

    pub(super) fn add(
        &mut self,
        bundle: &'p Rendered,
        version: VersionRelease,
        placing: &Placing<'_>,
    ) -> Result<(), AddError> {
        let name = bundle.blob.name.as_str();
        let known = self.check_bundle(bundle, &version)?;
        if self.asked.iter().any(|(other, _)| *other.blob.name == *name) {
            return Err(AddError::GivenTwice { bundle: name.to_owned() });
        }
        if !known {
            self.check_image(bundle)?;
            let mut channels = self.channels.iter().filter(|channel| placing.has(channel));
            channels.try_for_each(|channel| self.check_absent(channel, name))?;
        }
        if self.is_strict {
            let mut channels = self.channels.iter().filter(|channel| placing.has(channel));
            channels.try_for_each(|channel| channel.check_edges(self.index, name, placing.policy))?;
        }
        self.enter(name, &version, placing)?;
        self.asked.push((bundle, !known));
        if !known {
            self.new.push(bundle);
            self.versions.insert(name.to_owned(), version);
        }
        Ok(())
    }

    fn check_absent(&self, channel: &ChannelPlan<'_, '_>, name: &str) -> Result<(), AddError> {
        if !channel.entries.iter().any(|entry| *entry.name == *name) {
            return Ok(());
        }
        let place = channel.place_of(self.index, name);
        Err(AddError::InChannel { bundle: name.to_owned(), channel: channel.name.clone(), place })
    }

    /// Whether the bundle is in the catalog already, as it is.
    fn check_bundle(&self, bundle: &Rendered, version: &VersionRelease) -> Result<bool, AddError> {
        let name = bundle.blob.name.as_str();
        let catalog = self.index.catalog;
        let mut same = self
            .blobs()
            .into_iter()
            .flat_map(|package| &package.bundles)
            .filter(|bundle| *bundle.blob.name == *name);
        let known = same.next();
        if let Some(second) = same.next() {
            return Err(AddError::Twice {
                what: format!("the bundle `{name}`"),
                place: Box::new(catalog.place(second.at(&second.blob.name))),
            });
        }
        if let Some(known) = known {
            if let Some(difference) = difference(&known.blob.to_json(), &bundle.blob.to_json(), "") {
                let place = Some(Box::new(catalog.place(known.at(&known.blob.name))));
                let is_embedded = known.blob.image.is_empty();
                return Err(AddError::BundleDiffers {
                    bundle: name.to_owned(),
                    difference,
                    is_embedded,
                    place,
                });
            }
            return Ok(true);
        }
        let text = version.to_string();
        let taken = |other: &str, place| AddError::VersionTaken {
            bundle: name.to_owned(),
            version: text.clone(),
            other: other.to_owned(),
            place,
        };
        for other in self.blobs().into_iter().flat_map(|package| &package.bundles) {
            if other.version.as_ref().is_some_and(|version| version.to_string() == text) {
                let place =
                    other.packages.first().map(|(at, _)| Box::new(catalog.place(other.property_at(*at))));
                return Err(taken(&other.blob.name, place));
            }
        }
        match self.versions.iter().find(|(_, version)| version.to_string() == text) {
            Some((other, _)) if other != name => Err(taken(other, None)),
            _ => Ok(false),
        }
    }

    /// Refuses the image of another bundle.
    fn check_image(&self, bundle: &Rendered) -> Result<(), AddError> {
        let image = bundle.blob.image.as_str();
        let taken = |other: &fbc::Bundle<'_>, place| AddError::ImageTaken {
            bundle: bundle.blob.name.to_string(),
            image: image.to_owned(),
            other: other.name.to_string(),
            place,
        };
        if image.is_empty() {
            return Ok(());
        }
        let catalog = self.index.catalog;
        if let Some(other) = catalog.bundles.iter().find(|other| *other.image == *image) {
            return Err(taken(other, Some(Box::new(catalog.place(other.at.with(other.image.span))))));
        }
        match self.new.iter().find(|other| *other.blob.image == *image) {
            Some(other) => Err(taken(&other.blob, None)),
            None => Ok(()),
        }
    }

    /// Gives a bundle its entry in each of its channels that does not have it yet.
    pub(super) fn enter(
        &mut self,
        name: &str,
        version: &VersionRelease,
        placing: &Placing<'_>,
    ) -> Result<(), AddError> {
        let new = Versioned { name: name.to_owned(), version: version.clone() };
        let index = self.index;
        let mut channels = self.channels.iter_mut().filter(|channel| placing.has(channel));
        channels.try_for_each(|channel| channel.enter(index, &new, placing))
    }

    /// Refuses channels that the bundles, once all are there, would have broken.
    pub(super) fn check_channels(&self) -> Result<(), AddError> {
        let broken = self.channels.iter().find_map(|channel| Some((channel, channel.broken.clone()?)));
        broken.map_or(Ok(()), |(channel, (bundle, source))| {
            let place =
                channel.blob.map(|blob| Box::new(self.index.catalog.place(blob.at.with(blob.name.span))));
            Err(AddError::Breaks { bundle, channel: channel.name.clone(), place, source })
        })
    }

    /// Where the channels differ from what the ClusterServiceVersions say, and where no version says which bundle comes first.
    pub(super) fn differences(&self) -> Vec<String> {
        let asked = self.asked.iter().flat_map(|(bundle, _)| {
            let of = |channel: &ChannelPlan<'_, '_>| {
                [channel.difference_of(bundle), channel.equal_of(bundle)].into_iter().flatten()
            };
            self.channels.iter().flat_map(of)
        });
        asked.collect()
    }

    pub(super) fn choose_default_channel(&mut self, request: &Request) -> Result<(), AddError> {
        let package = self.blobs();
        let blob = package.and_then(|package| package.blobs.first());
        let wanted = request.default_channel.as_ref().map(ChannelName::as_str);
        if let Some(wanted) = wanted {
            let there = package.into_iter().flat_map(|package| &package.channels);
            let known = there
                .map(|channel| channel.blob.name.as_str())
                .chain(self.channels.iter().map(|c| c.name.as_str()));
            if !known.into_iter().any(|known| known == wanted) {
                return Err(AddError::DefaultChannel {
                    package: self.package.clone(),
                    channel: wanted.to_owned(),
                });
            }
        }
        match blob {
            Some(blob) => {
                self.new_default_channel =
                    wanted.filter(|wanted| *blob.default_channel != **wanted).map(str::to_owned);
            }
            None => {
                let newest = self.asked.last().map(|(bundle, _)| *bundle);
                let first = newest.and_then(|bundle| request.channels_of(bundle).first());
                let first = first.map(ChannelName::as_str).unwrap_or_default();
                let newest = newest.map(|bundle| &bundle.csv);
                // One that is not in base64 would spoil the catalog; it is the bundle's validator that speaks of it.
                let icon =
                    newest.and_then(|csv| csv.icon.clone()).filter(|(data, _)| base64::decode(data).is_ok());
                self.new_package = Some(fbc::Package {
                    name: self.package.clone().into(),
                    default_channel: wanted.unwrap_or(first).to_owned().into(),
                    description: newest.map(|csv| csv.description.clone()).unwrap_or_default().into(),
                    icon: icon.map(|(data, media_type)| Icon {
                        data: data.into(),
                        media_type: media_type.into(),
                        unknown: Vec::new(),
                    }),
                    ..fbc::Package::default()
                });
            }
        }
        Ok(())
    }
}

impl ChannelPlan<'_, '_> {
    /// Gives a bundle its entry, unless it has one.
    ///
    /// The channel need not be sound yet: edges that the authors wrote may lead to a bundle that comes next.
    fn enter(
        &mut self,
        index: &Index<'_, '_>,
        new: &Versioned,
        placing: &Placing<'_>,
    ) -> Result<(), AddError> {
        if self.entries.iter().any(|entry| *entry.name == *new.name) {
            return Ok(());
        }
        match &placing.own {
            Some(own) => {
                let mut edges = own.clone();
                if let Some(head) = self.head.as_ref().filter(|head| !own.skips.contains(head))
                    && own.replaces.is_none()
                {
                    self.check_higher(index, new)?;
                    edges.replaces = Some(head.clone());
                }
                policy::insert_with(&mut self.entries, &self.sorted, new, edges);
            }
            None => {
                if placing.policy == Policy::Replaces {
                    self.check_higher(index, new)?;
                } else {
                    self.check_order(index, new)?;
                }
                placing.policy.insert(&mut self.entries, &self.sorted, new, self.head.as_deref());
            }
        }
        let at = self.sorted.partition_point(|other| other.version <= new.version);
        self.sorted.insert(at, new.clone());
        match graph::Channel::link(&self.name, &self.entries, |_| None) {
            Ok(linked) => {
                self.head = Some(linked.head().name.clone());
                self.broken = None;
            }
            Err(errors) => {
                let error = errors.into_iter().next().unwrap_or(GraphError::Empty);
                self.broken.get_or_insert((new.name.clone(), error));
            }
        }
        Ok(())
    }

    /// Refuses a bundle that is to replace the head but is older.
    fn check_higher(&self, index: &Index<'_, '_>, new: &Versioned) -> Result<(), AddError> {
        let Some(head) = &self.head else { return Ok(()) };
        let older = |other: &Versioned| other.name == *head && other.version > new.version;
        if !self.sorted.iter().any(older) {
            return Ok(());
        }
        Err(AddError::NotHigher {
            bundle: new.name.clone(),
            channel: self.name.clone(),
            place: self.place_of(index, head),
            head: head.clone(),
        })
    }

    /// Refuses a bundle of the same precedence as another, told apart by build metadata alone: a policy cannot put them in order.
    fn check_order(&self, index: &Index<'_, '_>, new: &Versioned) -> Result<(), AddError> {
        let Some(other) = self.sorted.iter().find(|other| other.version == new.version) else {
            return Ok(());
        };
        Err(AddError::VersionTaken {
            bundle: new.name.clone(),
            version: new.version.to_string(),
            other: other.name.clone(),
            place: self.place_of(index, &other.name),
        })
    }

    /// What there is to say about a bundle that the channel gives other edges than its ClusterServiceVersion.
    pub(super) fn difference_of(&self, bundle: &Rendered) -> Option<String> {
        let own = Edges::of_csv(&bundle.csv)?;
        let name = bundle.blob.name.as_str();
        let entry = self.entries.iter().find(|entry| *entry.name == *name)?;
        let edges = Edges::of(entry);
        let channel = &self.name;
        (!edges.are_as(&own)).then(|| {
            format!(
                "`{name}` {edges} in `{channel}`, which is what OLM follows; its ClusterServiceVersion {own}"
            )
        })
    }

    /// A note if the version of a bundle and that of the one before it differ in build metadata alone: semver gives them no order.
    fn equal_of(&self, bundle: &Rendered) -> Option<String> {
        let at = self.sorted.iter().position(|other| other.name == *bundle.blob.name)?;
        let (own, before) = (&self.sorted[at], &self.sorted[at.checked_sub(1)?]);
        (own.version == before.version).then(|| {
            format!(
                "`{}` follows `{}` in `{}` by name alone: build metadata, which is all that tells {} from {}, has no \
                 precedence",
                own.name, before.name, self.name, own.version, before.version
            )
        })
    }

    /// Refuses an entry that is there with edges that the policy does not give.
    pub(super) fn check_edges(
        &self,
        index: &Index<'_, '_>,
        name: &str,
        policy: Policy,
    ) -> Result<(), AddError> {
        match self.entries.iter().find(|entry| *entry.name == *name) {
            Some(entry) if !policy.allows(entry, &self.sorted) => Err(AddError::OtherEdges {
                bundle: name.to_owned(),
                channel: self.name.clone(),
                policy,
                place: self.place_of(index, name),
            }),
            _ => Ok(()),
        }
    }

    /// Where an entry stands, when it is in the catalog already.
    fn place_of(&self, index: &Index<'_, '_>, entry: &str) -> Option<Box<Place>> {
        let blob = self.blob?;
        let entry = blob.entries.iter().find(|other| *other.name == *entry)?;
        Some(Box::new(index.catalog.place(blob.at.with(entry.name.span))))
    }
}

/// The first field in which two blobs differ.
fn difference(ours: &serde_json::Value, theirs: &serde_json::Value, path: &str) -> Option<String> {
    use serde_json::Value as Json;
    if ours == theirs {
        return None;
    }
    let inner = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (ours, theirs) {
        (Json::Object(a), Json::Object(b)) => {
            let keys = a.keys().chain(b.keys());
            let mut different = keys.filter(|key| a.get(*key) != b.get(*key));
            let key = different.next()?;
            difference(a.get(key).unwrap_or(&Json::Null), b.get(key).unwrap_or(&Json::Null), &inner(key))
        }
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            let at = a.iter().zip(b).position(|(a, b)| a != b)?;
            difference(&a[at], &b[at], &format!("{path}[{at}]"))
        }
        _ => Some(format!("they differ in `{path}`")),
    }
}
