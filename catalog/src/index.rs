//! The blobs of a catalog by package, with what they say of versions and edges: made once, for rules, edits and paths alike.
//!
//! ```
//! use olmkit_catalog::{fbc::Catalog, index::Index, load::CatalogFiles};
//! let files = CatalogFiles::from_text("catalog.yaml", "{schema: olm.channel, package: redis, name: stable, entries: [{name: redis.v1}]}");
//! let catalog = Catalog::parse(&files);
//! let index = Index::new(&catalog);
//! assert_eq!(index.packages["redis"].channels[0].linked.as_ref().unwrap().head().name, "redis.v1");
//! ```

use std::collections::{BTreeMap, HashMap};

use olmkit_bundle::finding::{Code, Finding};
use olmkit_bundle::parallel::in_parallel;

use crate::fbc::{self, At, Catalog, FaultKind};
use crate::graph::{self, GraphError, VersionRelease};
use crate::property;

/// A catalog by package.
pub struct Index<'c, 'a> {
    /// The catalog.
    pub catalog: &'c Catalog<'a>,
    /// Every package that a blob names, whether it has an `olm.package` or not.
    pub packages: BTreeMap<&'c str, Package<'c, 'a>>,
    /// Whether blobs may only seem to be missing, since something could not be read as one, or lacks the name it is
    /// referred to by.
    pub incomplete: bool,
    /// Where faults are, in order.
    faults: Vec<At>,
}

/// The blobs of one package.
#[derive(Default)]
pub struct Package<'c, 'a> {
    /// Its `olm.package`: one, in a sound catalog.
    pub blobs: Vec<&'c fbc::Package<'a>>,
    /// Its channels.
    pub channels: Vec<Channel<'c, 'a>>,
    /// Its bundles.
    pub bundles: Vec<Bundle<'c, 'a>>,
    /// Its deprecations.
    pub deprecations: Vec<&'c fbc::Deprecations<'a>>,
    /// The first bundle of each name.
    by_name: HashMap<&'c str, usize>,
}

/// A channel, and what linking it gave.
pub struct Channel<'c, 'a> {
    /// The channel as written.
    pub blob: &'c fbc::Channel<'a>,
    /// The channel as linked, or why its entries do not form one.
    pub linked: Result<graph::Channel, Vec<GraphError>>,
}

/// A bundle, and what its `olm.package` property says.
pub struct Bundle<'c, 'a> {
    /// The bundle as written.
    pub blob: &'c fbc::Bundle<'a>,
    /// The property, and its number: one, in a sound catalog.
    pub packages: Vec<(usize, property::Package<'a>)>,
    /// The version, when there is one property and it can be read.
    pub version: Option<VersionRelease>,
}

impl<'c, 'a> Index<'c, 'a> {
    /// Sorts the blobs of a catalog by package.
    pub fn new(catalog: &'c Catalog<'a>) -> Self {
        let mut packages: BTreeMap<&str, Package<'c, 'a>> = BTreeMap::new();
        for blob in &catalog.packages {
            packages.entry(&blob.name).or_default().blobs.push(blob);
        }
        for bundle in in_parallel(&catalog.bundles, Bundle::new) {
            let package = packages.entry(&bundle.blob.package).or_default();
            package.by_name.entry(&bundle.blob.name).or_insert(package.bundles.len());
            package.bundles.push(bundle);
        }
        let linked = in_parallel(&catalog.channels, |blob| {
            let package = packages.get(&*blob.package);
            graph::Channel::link(&blob.name, &blob.entries, |name| package?.version(name).cloned())
        });
        for (blob, linked) in catalog.channels.iter().zip(linked) {
            packages.entry(&blob.package).or_default().channels.push(Channel { blob, linked });
        }
        for blob in &catalog.deprecations {
            packages.entry(&blob.package).or_default().deprecations.push(blob);
        }
        let lost = |kind: &FaultKind| match kind {
            FaultKind::WrongType { field, .. } => field == "schema",
            _ => true,
        };
        let mut faults: Vec<_> = catalog.faults.iter().map(|fault| fault.at).collect();
        faults.sort_unstable();
        let nameless = packages.contains_key("")
            || catalog.channels.iter().any(|channel| channel.name.is_empty())
            || catalog.bundles.iter().any(|bundle| bundle.name.is_empty());
        let incomplete = nameless || catalog.faults.iter().any(|fault| lost(&fault.kind));
        Self { catalog, packages, incomplete, faults }
    }

    /// Whether a part of what stands at a place could not be read.
    pub fn is_faulty(&self, at: At) -> bool {
        let from =
            self.faults.partition_point(|fault| (fault.file, fault.span.start) < (at.file, at.span.start));
        self.faults.get(from).is_some_and(|fault| fault.file == at.file && fault.span.start < at.span.end)
    }

    /// A finding at a place.
    pub fn finding(&self, code: &'static Code, at: At, message: impl Into<String>) -> Finding {
        Finding::new(code, message).at(self.catalog.place(at))
    }

    /// Every channel.
    pub fn channels(&self) -> impl Iterator<Item = &Channel<'c, 'a>> {
        self.packages.values().flat_map(|package| &package.channels)
    }

    /// Every bundle.
    pub fn bundles(&self) -> impl Iterator<Item = &Bundle<'c, 'a>> {
        self.packages.values().flat_map(|package| &package.bundles)
    }
}

impl<'c, 'a> Package<'c, 'a> {
    /// The first bundle of a name.
    pub fn bundle(&self, name: &str) -> Option<&Bundle<'c, 'a>> {
        self.bundles.get(*self.by_name.get(name)?)
    }

    /// What is deprecated of it, of one of OLM's schemas: names, and what users are told.
    pub fn deprecated<'p>(&'p self, schema: &'static str) -> impl Iterator<Item = (&'c str, &'c str)> + 'p {
        let entries = self.deprecations.iter().flat_map(|blob| &blob.entries);
        let entries = entries.filter(move |entry| *entry.reference.schema == *schema);
        entries.map(|entry| (entry.reference.name.as_str(), entry.message.as_str()))
    }

    /// The version of a bundle.
    pub fn version(&self, name: &str) -> Option<&VersionRelease> {
        self.bundle(name)?.version.as_ref()
    }
}

impl<'c, 'a> Bundle<'c, 'a> {
    fn new(blob: &'c fbc::Bundle<'a>) -> Self {
        let packages = property::packages(blob);
        let version = match &packages[..] {
            [(_, package)] => package.version_release(),
            _ => None,
        };
        Self { blob, packages, version }
    }

    /// A field of the bundle, as a place.
    pub fn at(&self, text: &fbc::Text<'_>) -> At {
        self.blob.at.with(text.span)
    }

    /// One of its properties, as a place.
    pub fn property_at(&self, number: usize) -> At {
        let property = self.blob.properties.get(number);
        self.blob.at.with(property.map_or(self.blob.name.span, |property| property.span))
    }
}

impl Channel<'_, '_> {
    /// The errors of its graph.
    pub fn errors(&self) -> &[GraphError] {
        self.linked.as_ref().err().map_or(&[], Vec::as_slice)
    }

    /// The name, as a place.
    pub fn at(&self) -> At {
        self.blob.at.with(self.blob.name.span)
    }

    /// The name of an entry, as a place.
    pub fn entry_at(&self, entry: usize) -> At {
        self.blob.entries.get(entry).map_or(self.at(), |entry| self.blob.at.with(entry.name.span))
    }

    /// The name of an entry.
    pub fn entry_name(&self, entry: usize) -> &str {
        self.blob.entries.get(entry).map_or("", |entry| &entry.name)
    }

    /// `PACKAGE/CHANNEL`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.blob.package, self.blob.name)
    }

    /// The names of entries with ` -> ` between.
    pub fn way(&self, entries: &[usize]) -> String {
        entries.iter().map(|at| format!("`{}`", self.entry_name(*at))).collect::<Vec<_>>().join(" -> ")
    }
}
