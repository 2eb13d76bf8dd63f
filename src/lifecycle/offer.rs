//! What a catalog offers, as far as upgrades are concerned: packages, channels with their edges, and what bundles provide
//! and need. Owned, so that it can outlive the text it was read from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use olmkit_bundle::csv::GroupVersionKind;
use olmkit_bundle::version::{Version, VersionRange};
use olmkit_catalog::fbc::{self, Catalog, property};
use olmkit_catalog::graph::{GraphError, Release, VersionRelease};
use olmkit_catalog::path::{About, NextHops, Rules};
use serde_json::Value;

/// The packages of a catalog.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// By name.
    pub packages: BTreeMap<String, OfferedPackage>,
    /// The same for OLM's resolver, once that was asked for.
    resolvable: OnceLock<Arc<Catalog<'static>>>,
}

/// A package.
#[derive(Clone, Debug, Default)]
pub struct OfferedPackage {
    /// The channel that is taken when none is named.
    pub default_channel: String,
    /// By name.
    pub channels: BTreeMap<String, OfferedChannel>,
    /// By name.
    pub bundles: BTreeMap<String, OfferedBundle>,
}

/// A channel.
#[derive(Clone, Debug)]
pub struct OfferedChannel {
    /// Its entries, in the catalog's order.
    pub entries: Vec<OfferedEntry>,
    /// What comes next after each entry, or why nobody can say.
    ways: Result<NextHops, GraphError>,
}

/// A bundle's place in a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedEntry {
    /// The bundle.
    pub name: String,
    /// What it takes over from, empty for nothing.
    pub replaces: String,
    /// What may jump to it and is no longer offered.
    pub skips: Vec<String>,
    /// Which versions may jump to it, empty for none.
    pub skip_range: String,
}

/// A bundle.
#[derive(Clone, Debug, Default)]
pub struct OfferedBundle {
    /// Its version, where it has one.
    pub version: Option<VersionRelease>,
    /// Its image; empty when its manifests are in the catalog.
    pub image: String,
    /// Its properties without those that carry manifests, each with `type` and `value`.
    pub properties: Vec<Value>,
    /// Its manifests, where they are in the catalog.
    pub manifests: Vec<Value>,
    /// What consoles show of its ClusterServiceVersion.
    pub csv_metadata: Option<Value>,
}

/// What a bundle needs from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// An API.
    Api(GroupVersionKind),
    /// A package.
    Package {
        /// Its name.
        name: String,
        /// Which versions will do.
        range: String,
    },
}

impl Offer {
    /// What a catalog offers. What could not be read of it is not offered.
    pub fn of(catalog: &Catalog<'_>) -> Self {
        let mut packages: BTreeMap<String, OfferedPackage> = BTreeMap::new();
        for package in &catalog.packages {
            packages.entry(package.name.to_string()).or_default().default_channel =
                package.default_channel.to_string();
        }
        for bundle in &catalog.bundles {
            let package = packages.entry(bundle.package.to_string()).or_default();
            package.bundles.entry(bundle.name.to_string()).or_insert_with(|| OfferedBundle::of(bundle));
        }
        for channel in &catalog.channels {
            let package = packages.entry(channel.package.to_string()).or_default();
            let about = |name: &str| About {
                version: package.bundles.get(name).and_then(|bundle| bundle.version.clone()),
                deprecated: false,
            };
            let offered = OfferedChannel {
                entries: channel.entries.iter().map(OfferedEntry::of).collect(),
                ways: NextHops::of(&channel.entries, about, Rules::V0),
            };
            package.channels.insert(channel.name.to_string(), offered);
        }
        Self { packages, resolvable: OnceLock::new() }
    }

    /// The catalog as OLM's resolver reads it: without manifests, and without what consoles show.
    pub(super) fn resolvable(&self) -> Arc<Catalog<'static>> {
        Arc::clone(self.resolvable.get_or_init(|| Arc::new(resolvable(&self.packages))))
    }
}

fn resolvable(packages: &BTreeMap<String, OfferedPackage>) -> Catalog<'static> {
    let mut catalog = Catalog::default();
    for (name, package) in packages {
        catalog.packages.push(fbc::Package {
            name: name.clone().into(),
            default_channel: package.default_channel.clone().into(),
            ..fbc::Package::default()
        });
        let entry = |entry: &OfferedEntry| fbc::Entry {
            name: entry.name.clone().into(),
            replaces: entry.replaces.clone().into(),
            skips: entry.skips.iter().map(|skip| skip.clone().into()).collect(),
            skip_range: entry.skip_range.clone().into(),
            ..fbc::Entry::default()
        };
        catalog.channels.extend(package.channels.iter().map(|(channel, found)| fbc::Channel {
            name: channel.clone().into(),
            package: name.clone().into(),
            entries: found.entries.iter().map(entry).collect(),
            ..fbc::Channel::default()
        }));
        let property = |found: &Value| fbc::Property {
            kind: found["type"].as_str().unwrap_or_default().to_owned().into(),
            value: Some(found["value"].clone().into()),
            ..fbc::Property::default()
        };
        catalog.bundles.extend(package.bundles.iter().map(|(bundle, found)| fbc::Bundle {
            name: bundle.clone().into(),
            package: name.clone().into(),
            image: found.image.clone().into(),
            properties: found.properties.iter().map(property).collect(),
            ..fbc::Bundle::default()
        }));
    }
    catalog
}

impl OfferedPackage {
    /// A channel by name; no name means the default channel.
    pub fn channel(&self, name: &str) -> Option<&OfferedChannel> {
        let name = if name.is_empty() { self.default_channel.as_str() } else { name };
        self.channels.get(name)
    }

    /// The bundle of a channel that a version means: its name, or the version in it.
    pub fn find(&self, channel: &OfferedChannel, version: &str) -> Option<String> {
        let wanted = Version::parse(version.trim_start_matches('v')).ok();
        let means = |entry: &&OfferedEntry| {
            let own = self.bundles.get(&entry.name).and_then(|bundle| bundle.version.as_ref());
            entry.name == version || wanted.is_some() && own.map(|own| &own.version) == wanted.as_ref()
        };
        channel.entries.iter().find(means).map(|entry| entry.name.clone())
    }

    /// The version of a bundle as people write it; its name when nobody knows.
    pub fn version(&self, name: &str) -> String {
        let version = self.bundles.get(name).and_then(|bundle| bundle.version.as_ref());
        version.map_or_else(|| name.to_owned(), ToString::to_string)
    }
}

impl OfferedChannel {
    /// What OLM installs when nothing is installed.
    pub fn head(&self) -> Option<&str> {
        self.ways.as_ref().ok().map(NextHops::head)
    }

    /// Why the channel cannot be followed, when it cannot.
    pub fn fault(&self) -> Option<&GraphError> {
        self.ways.as_ref().err()
    }

    /// What OLM installs over something; none when it stays.
    pub fn next(&self, installed: &str, version: Option<&VersionRelease>) -> Option<&str> {
        self.ways.as_ref().ok()?.next(installed, version)
    }

    /// Whether OLM may install a bundle over an installed one: an edge leads there, and no other bundle skips it. It need not be OLM's first
    /// choice, which it may not be able to install.
    pub fn leads(&self, installed: &str, version: Option<&Version>, to: &str) -> bool {
        let is_skipped =
            self.entries.iter().any(|other| other.name != to && other.skips.iter().any(|skip| skip == to));
        let Some(entry) = self.entry(to).filter(|_| !is_skipped) else { return false };
        let range: Option<VersionRange> =
            entry.skip_range.parse().ok().filter(|_| !entry.skip_range.is_empty());
        entry.replaces == installed
            || entry.skips.iter().any(|skip| skip == installed)
            || version.zip(range).is_some_and(|(version, range)| range.contains(version))
    }

    /// The bundles that OLM installs one after another, from an installed one up to where it stays or has been.
    pub fn way(&self, installed: &str, version: Option<&VersionRelease>) -> Vec<String> {
        let mut way: Vec<String> = Vec::new();
        let mut seen = BTreeSet::from([installed.to_owned()]);
        let mut next = self.next(installed, version).map(str::to_owned);
        while let Some(name) = next {
            if !seen.insert(name.clone()) {
                break;
            }
            next = self.next(&name, None).map(str::to_owned);
            way.push(name);
        }
        way
    }

    /// A bundle's place.
    pub fn entry(&self, name: &str) -> Option<&OfferedEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }
}

impl OfferedEntry {
    fn of(entry: &fbc::Entry<'_>) -> Self {
        Self {
            name: entry.name.to_string(),
            replaces: entry.replaces.to_string(),
            skips: entry.skips.iter().map(ToString::to_string).collect(),
            skip_range: entry.skip_range.to_string(),
        }
    }

    /// The edge by which something that is installed may jump here, in words.
    pub fn edge_from(&self, installed: &str) -> String {
        if self.replaces == installed {
            format!("`{}` replaces `{installed}`", self.name)
        } else if self.skips.iter().any(|skip| skip == installed) {
            format!("`{}` skips `{installed}`", self.name)
        } else if self.skip_range.is_empty() {
            format!("`{}` has no edge from `{installed}`", self.name)
        } else {
            format!("`{}` has the skipRange `{}`", self.name, self.skip_range)
        }
    }
}

impl OfferedBundle {
    fn of(bundle: &fbc::Bundle<'_>) -> Self {
        let mut offered = Self { image: bundle.image.to_string(), ..Self::default() };
        for found in &bundle.properties {
            let Some(value) = found.value.as_ref().map(fbc::Value::to_json) else { continue };
            match found.kind.as_str() {
                property::BUNDLE_OBJECT => offered.manifests.extend(manifest(&value)),
                property::CSV_METADATA => offered.csv_metadata = Some(value),
                kind => offered.properties.push(serde_json::json!({"type": kind, "value": value})),
            }
        }
        let version = offered.values(property::PACKAGE).find_map(|value| {
            let version = Version::parse(value["version"].as_str()?).ok()?;
            let release = Release::parse(value["release"].as_str().unwrap_or("")).ok()?;
            Some(VersionRelease { version, release })
        });
        offered.version = version;
        offered
    }

    fn values<'b>(&'b self, kind: &'b str) -> impl Iterator<Item = &'b Value> {
        self.properties.iter().filter(move |found| found["type"] == kind).map(|found| &found["value"])
    }

    /// The APIs that it provides.
    pub fn provides(&self) -> BTreeSet<GroupVersionKind> {
        self.values(property::GVK).map(gvk).collect()
    }
}

/// What properties say that their bundle needs.
pub fn needs(properties: &[Value]) -> Vec<Need> {
    let need = |found: &Value| match found["type"].as_str()? {
        property::GVK_REQUIRED => Some(Need::Api(gvk(&found["value"]))),
        property::PACKAGE_REQUIRED => Some(Need::Package {
            name: found["value"]["packageName"].as_str()?.to_owned(),
            range: found["value"]["versionRange"].as_str().unwrap_or("").to_owned(),
        }),
        _ => None,
    };
    properties.iter().filter_map(need).collect()
}

/// The objects that a bundle can do without, by kind and name: OLM goes on where their API does not exist.
pub fn optional(properties: &[Value]) -> BTreeSet<(String, String)> {
    let lists = properties.iter().filter(|found| found["type"] == "olm.manifests.optional");
    let all = lists.filter_map(|found| found.pointer("/value/manifests")?.as_array()).flatten();
    let text = |found: &Value, key: &str| found[key].as_str().unwrap_or("").to_owned();
    all.map(|found| (text(found, "kind"), text(found, "name"))).collect()
}

/// A group, version and kind of a property.
pub fn gvk(value: &Value) -> GroupVersionKind {
    let text = |key: &str| value[key].as_str().unwrap_or("").to_owned();
    GroupVersionKind { group: text("group"), version: text("version"), kind: text("kind") }
}

/// A manifest that stands in a catalog, in base64.
fn manifest(value: &Value) -> Option<Value> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(value["data"].as_str()?).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let document = olmkit_bundle::yaml::first_document(&text).ok()?;
    Some(document.root.to_json())
}
