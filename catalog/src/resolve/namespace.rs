//! What there is to install from, and in which order OLM prefers it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use olmkit_bundle::go;
use olmkit_bundle::version::VersionRange;
use serde_json::Value as Json;

use super::{Question, ResolveError};
use crate::fbc::{self, property};
use crate::graph::{GraphError, Links, chain};
use crate::requirements::{Facts, Providers, Requirement};

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

    /// The entries of one channel from the head along `replaces`, without those that are skipped.
    pub(super) fn sorted(&self, entries: Vec<usize>) -> Result<Vec<usize>, ResolveError> {
        let Some(first) = entries.first().map(|at| &self.entries[*at]) else { return Ok(entries) };
        let fail = |why: String| ResolveError::Channel {
            package: first.package.to_owned(),
            channel: first.channel.to_owned(),
            why,
        };
        let links = entries.iter().map(|at| {
            let entry = &self.entries[*at];
            Links { name: entry.name, replaces: entry.replaces, skips: &entry.skips }
        });
        match chain(&links.collect::<Vec<_>>()) {
            Ok(chain) => Ok(chain.into_iter().map(|at| entries[at]).collect()),
            Err(GraphError::SeveralHeads { heads }) => {
                let names = heads.iter().map(|at| format!("`{}`", self.entries[entries[*at]].name));
                Err(fail(format!("it has several heads: {}", names.collect::<Vec<_>>().join(", "))))
            }
            Err(error) => Err(fail(error.to_string())),
        }
    }
}

/// Entries by what they provide and where they are.
pub(super) struct Index<'n> {
    namespace: &'n Namespace<'n>,
    providers: Providers<'n>,
    /// Those of each channel.
    channels: HashMap<(Home, &'n str, &'n str), Vec<usize>>,
}

impl<'n> Index<'n> {
    pub(super) fn of(namespace: &'n Namespace<'n>) -> Self {
        let numbers = 0..namespace.entries.len();
        let providers = numbers.map(|at| (namespace.entries[at].package, namespace.facts(at)));
        let mut channels: HashMap<_, Vec<usize>> = HashMap::new();
        for (at, entry) in namespace.entries.iter().enumerate() {
            channels.entry((entry.home, entry.package, entry.channel)).or_default().push(at);
        }
        Self { namespace, providers: Providers::of(providers), channels }
    }

    /// The entries that meet a requirement of a bundle from `own`, preferred ones first. Whole channels are put in
    /// order, then what does not meet it is left out, as is what another entry of its channel skips.
    pub(super) fn candidates(
        &self,
        requirement: &Requirement,
        own: Home,
    ) -> Result<Vec<usize>, CandidatesError> {
        let namespace = self.namespace;
        let mut meeting = match self.providers.candidates(requirement) {
            Some(some) => some.to_vec(),
            None => (0..namespace.entries.len()).collect(),
        };
        let mut failed = None;
        meeting.retain(|at| {
            let holds = requirement.holds(namespace.facts(*at), namespace.entries[*at].package);
            failed.is_none() && holds.unwrap_or_else(|error| failed.replace(error).is_some())
        });
        if let Some(error) = failed {
            return Err(CandidatesError::Expression(error));
        }
        // Of installed ones those alone that meet it; of catalogs the whole channels of those that do.
        let mut channels: BTreeSet<(Home, bool, &str, &str)> = BTreeSet::new();
        for entry in meeting.iter().map(|at| &namespace.entries[*at]) {
            channels.insert((entry.home, !entry.is_default_channel, entry.package, entry.channel));
        }
        let meeting: HashSet<usize> = meeting.into_iter().collect();
        let mut found = Vec::new();
        for home in namespace.homes(own) {
            for (_, _, package, channel) in channels.iter().filter(|(of, ..)| *of == home) {
                let mut of_channel = self.channels[&(home, *package, *channel)].clone();
                of_channel.retain(|at| home != Home::Existing || meeting.contains(at));
                let sorted = namespace.sorted(of_channel).map_err(CandidatesError::Channel)?;
                found.extend(sorted.into_iter().filter(|at| meeting.contains(at)));
            }
        }
        Ok(found)
    }
}

/// Why there are no candidates.
pub(super) enum CandidatesError {
    Channel(ResolveError),
    Expression(olmkit_bundle::cel::constraint::EvaluationError),
}
