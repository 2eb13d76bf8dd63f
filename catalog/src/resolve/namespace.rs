//! What there is to install from, and in which order OLM prefers it.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use olmkit_bundle::cel::constraint::Properties;
use olmkit_bundle::go;
use olmkit_bundle::version::{Version, VersionRange, parse_tolerant};
use serde_json::Value as Json;

use super::requirement::{Gvk, Requirement};
use super::{Question, ResolveError};
use crate::fbc::{self, property};

/// Everything that may be part of an answer.
pub(super) struct Namespace<'q> {
    /// The bundles of each channel, and the installed ones.
    pub(super) entries: Vec<Entry<'q>>,
    /// What is known of bundles, whatever channels they are in.
    pub(super) facts: Vec<Facts<'q>>,
    /// Homes, those first that are preferred when nothing else is said.
    homes: Vec<Home>,
}

/// Where a bundle comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Home {
    /// It is installed.
    Existing,
    /// A catalog by its number.
    Catalog(usize),
}

/// A bundle in a channel, or an installed one.
#[derive(Clone, Debug)]
pub(super) struct Entry<'q> {
    pub(super) name: &'q str,
    pub(super) package: &'q str,
    /// Empty for an installed one.
    pub(super) channel: &'q str,
    pub(super) home: Home,
    pub(super) is_default_channel: bool,
    pub(super) replaces: &'q str,
    pub(super) skips: Vec<&'q str>,
    pub(super) skip_range: Option<VersionRange>,
    /// Its number in [`Namespace::facts`].
    facts: usize,
}

/// What is known of a bundle.
#[derive(Debug, Default)]
pub(super) struct Facts<'q> {
    pub(super) version: Option<Version>,
    /// Packages and versions by `olm.package` properties.
    pub(super) packages: Vec<(String, Option<Version>)>,
    pub(super) gvks: Vec<Gvk>,
    pub(super) labels: Vec<String>,
    pub(super) requirements: Vec<Result<Requirement, String>>,
    pub(super) is_deprecated: bool,
    /// All properties that expressions may ask about.
    all: Vec<(&'q str, Json)>,
    /// The same as expressions see them, once one has asked.
    seen: OnceCell<Properties>,
}

impl<'q> Namespace<'q> {
    pub(super) fn new(question: &'q Question<'_, '_>) -> Result<Self, ResolveError> {
        let mut homes: Vec<_> = (0..question.catalogs.len()).collect();
        homes.sort_by_key(|at| (Reverse(question.catalogs[*at].priority), question.catalogs[*at].name));
        let mut namespace = Self {
            entries: Vec::new(),
            facts: Vec::new(),
            homes: std::iter::once(Home::Existing).chain(homes.into_iter().map(Home::Catalog)).collect(),
        };
        for installed in &question.existing {
            let properties = installed.properties.iter();
            let properties = properties.map(|(kind, value)| (kind.as_str(), value.clone()));
            let facts = Facts::new(Some(installed.version.clone()), properties);
            let package = installed.properties.iter().rfind(|(kind, _)| kind == property::PACKAGE);
            let package =
                package.and_then(|(_, value)| go::value_of(value, "packageName")).and_then(Json::as_str);
            namespace.entries.push(Entry {
                name: &installed.name,
                package: package.unwrap_or(""),
                channel: "",
                home: Home::Existing,
                is_default_channel: false,
                replaces: "",
                skips: Vec::new(),
                skip_range: None,
                facts: namespace.facts.len(),
            });
            namespace.facts.push(facts);
        }
        for (at, offer) in question.catalogs.iter().enumerate() {
            namespace.add(Home::Catalog(at), offer.catalog);
        }
        Ok(namespace)
    }

    fn add(&mut self, home: Home, catalog: &'q fbc::Catalog<'_>) {
        let defaults: HashMap<&str, &str> =
            catalog.packages.iter().map(|package| (&*package.name, &*package.default_channel)).collect();
        let mut bundles: HashMap<(&str, &str), usize> = HashMap::with_capacity(catalog.bundles.len());
        for bundle in &catalog.bundles {
            bundles.insert((&bundle.package, &bundle.name), self.facts.len());
            self.facts.push(Facts::of_bundle(bundle));
        }
        for channel in &catalog.channels {
            for entry in &channel.entries {
                let Some(facts) = bundles.get(&(&*channel.package, &*entry.name)) else { continue };
                self.entries.push(Entry {
                    name: &entry.name,
                    package: &channel.package,
                    channel: &channel.name,
                    home,
                    is_default_channel: defaults.get(&*channel.package) == Some(&&*channel.name),
                    replaces: &entry.replaces,
                    skips: entry.skips.iter().map(|skip| &**skip).collect(),
                    skip_range: entry.skip_range.parse().ok(),
                    facts: *facts,
                });
            }
        }
    }

    pub(super) fn facts(&self, entry: usize) -> &Facts<'q> {
        &self.facts[self.entries[entry].facts]
    }

    /// An installed ClusterServiceVersion by its name.
    pub(super) fn existing(&self, name: &str) -> Option<usize> {
        let installed = self.entries.iter().take_while(|entry| entry.home == Home::Existing);
        installed.enumerate().find(|(_, entry)| entry.name == name).map(|(at, _)| at)
    }

    /// Homes in the order in which a bundle of `own` would rather have its requirements met.
    fn homes(&self, own: Home) -> impl Iterator<Item = Home> {
        let rest = self.homes.iter().copied().filter(move |home| *home != own && *home != Home::Existing);
        let own = Some(own).filter(|own| *own != Home::Existing);
        std::iter::once(Home::Existing).chain(own).chain(rest)
    }

    /// The entries that meet a requirement of a bundle from `own`, preferred ones first. Whole channels are put in
    /// order, then what does not meet it is left out, as is what another entry of its channel skips.
    pub(super) fn candidates(
        &self,
        requirement: &Requirement,
        own: Home,
    ) -> Result<Vec<usize>, CandidatesError> {
        let mut meets = Vec::with_capacity(self.entries.len());
        for entry in 0..self.entries.len() {
            let holds = requirement.holds(self.facts(entry), self.entries[entry].package);
            meets.push(holds.map_err(CandidatesError::Expression)?);
        }
        // Of installed ones those alone that meet it; of catalogs the whole channels of those that do.
        let mut channels: BTreeSet<(Home, bool, &str, &str)> = BTreeSet::new();
        for (entry, _) in self.entries.iter().zip(&meets).filter(|(_, meets)| **meets) {
            channels.insert((entry.home, !entry.is_default_channel, entry.package, entry.channel));
        }
        let mut found = Vec::new();
        for home in self.homes(own) {
            for (_, _, package, channel) in channels.iter().filter(|(of, ..)| *of == home) {
                let of_channel = (0..self.entries.len()).filter(|at| {
                    let entry = &self.entries[*at];
                    let is_taken = home != Home::Existing || meets[*at];
                    is_taken && entry.home == home && entry.package == *package && entry.channel == *channel
                });
                let sorted = self.sorted(of_channel.collect()).map_err(CandidatesError::Channel)?;
                found.extend(sorted.into_iter().filter(|at| meets[*at]));
            }
        }
        Ok(found)
    }

    /// The entries of one channel from the head along `replaces`, without those that are skipped.
    pub(super) fn sorted(&self, entries: Vec<usize>) -> Result<Vec<usize>, ResolveError> {
        let Some(first) = entries.first().map(|at| &self.entries[*at]) else { return Ok(entries) };
        let fail = |why: String| ResolveError::Channel {
            package: first.package.to_owned(),
            channel: first.channel.to_owned(),
            why,
        };
        let by_name: HashMap<&str, usize> = entries.iter().map(|at| (self.entries[*at].name, *at)).collect();
        let mut replaced: BTreeSet<usize> = BTreeSet::new();
        let mut skipped: BTreeSet<&str> = BTreeSet::new();
        for entry in entries.iter().map(|at| &self.entries[*at]) {
            replaced.extend(by_name.get(entry.replaces));
            for skip in &entry.skips {
                if let Some(at) = by_name.get(skip) {
                    replaced.insert(*at);
                    skipped.insert(skip);
                }
            }
        }
        let heads: Vec<usize> = entries.iter().copied().filter(|at| !replaced.contains(at)).collect();
        let head = match heads[..] {
            [head] => head,
            [] => return Err(fail("every entry is replaced or skipped".into())),
            _ => {
                let names: Vec<_> = heads.iter().map(|at| format!("`{}`", self.entries[*at].name)).collect();
                return Err(fail(format!("it has several heads: {}", names.join(", "))));
            }
        };
        let mut passed = BTreeSet::new();
        let mut chain = Vec::new();
        let mut next = Some(head);
        while let Some(at) = next {
            if !passed.insert(at) {
                return Err(fail("the chain of `replaces` is a cycle".into()));
            }
            let entry = &self.entries[at];
            if !skipped.contains(entry.name) {
                chain.push(at);
            }
            next = by_name.get(entry.replaces).copied();
        }
        Ok(chain)
    }
}

/// Why there are no candidates.
pub(super) enum CandidatesError {
    Channel(ResolveError),
    Expression(olmkit_bundle::cel::constraint::EvaluationError),
}

/// Manifests and what consoles show never reach the resolver.
fn is_of_account(kind: &str) -> bool {
    kind != property::BUNDLE_OBJECT && kind != property::CSV_METADATA
}

impl<'q> Facts<'q> {
    pub(super) fn of_bundle(bundle: &'q fbc::Bundle<'_>) -> Self {
        let properties = bundle.properties.iter().filter(|property| is_of_account(&property.kind));
        let json =
            |found: &'q fbc::Property<'_>| found.value.as_ref().map_or(Json::Null, fbc::Value::to_json);
        Self::new(None, properties.map(|found| (&*found.kind, json(found))))
    }

    fn new(version: Option<Version>, properties: impl Iterator<Item = (&'q str, Json)>) -> Self {
        let mut facts = Self { version, all: properties.collect(), ..Self::default() };
        for (kind, value) in &facts.all {
            let text = |key: &str| go::value_of(value, key).and_then(Json::as_str).unwrap_or("").to_owned();
            match *kind {
                property::PACKAGE => {
                    let version = text("version");
                    facts.packages.push((text("packageName"), version.parse().ok()));
                    facts.version = facts.version.or_else(|| parse_tolerant(&version).ok());
                }
                property::GVK => facts.gvks.push(Gvk::of(value)),
                "olm.label" => facts.labels.push(text("label")),
                "olm.deprecated" => facts.is_deprecated = true,
                kind => facts.requirements.extend(Requirement::of(kind, value).transpose()),
            }
        }
        facts
    }

    /// The properties, as expressions see them.
    pub(super) fn properties(&self) -> &Properties {
        self.seen.get_or_init(|| Properties::new(self.all.iter().map(|(kind, value)| (*kind, value))))
    }
}
