//! What a catalog holds, as lists.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::fbc::{self, Catalog, schema};
use crate::graph;
use crate::index::{self, Index};

/// A package of a catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageItem<'c> {
    /// Its name.
    pub name: &'c str,
    /// The channel that a Subscription without one gets.
    pub default_channel: &'c str,
    /// Its channels, sorted.
    pub channels: Vec<&'c str>,
    /// What users are told when it is deprecated.
    pub deprecation: Option<&'c str>,
}

/// A channel of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelItem<'c> {
    /// Its package.
    pub package: &'c str,
    /// Its name.
    pub name: &'c str,
    /// Its head; none when it has not exactly one.
    pub head: Option<String>,
    /// Its entries, the lowest version first.
    pub entries: Vec<&'c str>,
    /// What users are told when it is deprecated.
    pub deprecation: Option<&'c str>,
}

/// A bundle of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleItem<'c> {
    /// Its package.
    pub package: &'c str,
    /// Its name.
    pub name: &'c str,
    /// Its version, with the release where it has one.
    pub version: Option<String>,
    /// Its image; empty when its manifests are in the catalog.
    pub image: &'c str,
    /// The channels it is in, sorted.
    pub channels: Vec<&'c str>,
    /// What it replaces in the default channel, or else in the first of its channels.
    pub replaces: Option<&'c str>,
    /// What it skips there.
    pub skips: Vec<&'c str>,
    /// Its `skipRange` there.
    pub skip_range: Option<&'c str>,
    /// Whether it is deprecated.
    pub deprecated: bool,
    /// What users are told when it is.
    pub deprecation: Option<&'c str>,
}

/// The packages of a catalog, by name.
///
/// ```
/// use olmkit_catalog::{fbc::Catalog, list::packages, load::CatalogFiles};
/// let files = CatalogFiles::from_text("catalog.yaml", "{schema: olm.package, name: redis, defaultChannel: stable}");
/// assert_eq!(packages(&Catalog::parse(&files), None)[0].default_channel, "stable");
/// ```
pub fn packages<'c>(catalog: &'c Catalog<'_>, only: Option<&str>) -> Vec<PackageItem<'c>> {
    let item = |name, package: &index::Package<'c, '_>| {
        let default = package.blobs.first().map_or("", |blob| blob.default_channel.as_str());
        let channels: BTreeSet<&str> =
            package.channels.iter().map(|channel| channel.blob.name.as_str()).collect();
        vec![PackageItem {
            name,
            default_channel: default,
            channels: channels.into_iter().collect(),
            deprecation: package.deprecated(schema::PACKAGE).collect::<BTreeMap<_, _>>().get("").copied(),
        }]
    };
    of_packages(catalog, only, item)
}

/// The channels of a catalog, by package and name.
pub fn channels<'c>(catalog: &'c Catalog<'_>, only: Option<&str>) -> Vec<ChannelItem<'c>> {
    of_packages(catalog, only, |name, package| {
        let deprecations = package.deprecated(schema::CHANNEL).collect::<BTreeMap<_, _>>();
        let mut items: Vec<_> = package
            .channels
            .iter()
            .map(|channel| {
                let mut entries: Vec<&str> =
                    channel.blob.entries.iter().map(|entry| entry.name.as_str()).collect();
                entries.sort_by_key(|name| (package.version(name), *name));
                ChannelItem {
                    package: name,
                    name: &channel.blob.name,
                    head: channel
                        .linked
                        .as_ref()
                        .ok()
                        .map(graph::Channel::head)
                        .map(|head| head.name.clone()),
                    entries,
                    deprecation: deprecations.get(&*channel.blob.name).copied(),
                }
            })
            .collect();
        items.sort_by_key(|item| item.name);
        items
    })
}

/// The bundles of a catalog, by package, version and name.
pub fn bundles<'c>(catalog: &'c Catalog<'_>, only: Option<&str>) -> Vec<BundleItem<'c>> {
    of_packages(catalog, only, |name, package| {
        let deprecations = package.deprecated(schema::BUNDLE).collect::<BTreeMap<_, _>>();
        let default = package.blobs.first().map_or("", |blob| blob.default_channel.as_str());
        let mut places: BTreeMap<&str, Vec<(&'c str, &'c fbc::Entry<'_>)>> = BTreeMap::new();
        for channel in &package.channels {
            for entry in &channel.blob.entries {
                places.entry(&entry.name).or_default().push((&channel.blob.name, entry));
            }
        }
        places.values_mut().for_each(|places| places.sort_by_key(|(channel, _)| *channel));
        let mut bundles: Vec<_> = package.bundles.iter().collect();
        bundles.sort_by_key(|bundle| (bundle.version.as_ref(), bundle.blob.name.as_str()));
        let item = |bundle: &index::Bundle<'c, '_>| {
            let places = places.get(&*bundle.blob.name).map_or(&[][..], Vec::as_slice);
            let place = places.iter().find(|(channel, _)| *channel == default).or(places.first());
            let entry = place.map(|(_, entry)| *entry);
            let text = |text: &'c fbc::Text<'_>| Some(text.as_str()).filter(|text| !text.is_empty());
            let deprecation = deprecations.get(&*bundle.blob.name).copied();
            BundleItem {
                package: name,
                name: &bundle.blob.name,
                version: bundle.version.as_ref().map(ToString::to_string),
                image: &bundle.blob.image,
                channels: places.iter().map(|(channel, _)| *channel).collect(),
                replaces: entry.and_then(|entry| text(&entry.replaces)),
                skips: entry
                    .map(|entry| entry.skips.iter().map(fbc::Text::as_str).collect())
                    .unwrap_or_default(),
                skip_range: entry.and_then(|entry| text(&entry.skip_range)),
                deprecated: deprecation.is_some(),
                deprecation,
            }
        };
        bundles.into_iter().map(item).collect()
    })
}

fn of_packages<'c, 'a: 'c, T>(
    catalog: &'c Catalog<'a>,
    only: Option<&str>,
    mut items: impl FnMut(&'c str, &index::Package<'c, 'a>) -> Vec<T>,
) -> Vec<T> {
    let index = Index::new(catalog);
    let wanted = index.packages.iter().filter(|(name, _)| only.is_none_or(|only| only == **name));
    wanted.flat_map(|(name, package)| items(name, package)).collect()
}
