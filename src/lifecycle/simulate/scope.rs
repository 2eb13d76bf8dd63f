//! What the Subscriptions of a namespace lead to: OLM's own choice, as `olmkit_catalog::resolve` makes it of what is in the
//! namespace and what it may choose from.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use olmkit_catalog::resolve::{self, Existing, Question, ResolveError};
use serde_json::Value;

use super::{Registry, Served};
use crate::lifecycle::api::{
    CatalogSource, ClusterServiceVersion, Key, Named as _, Object, OperatorGroup, Subscription, known,
};
use crate::lifecycle::offer::OfferedBundle;

/// The namespace whose catalogs every other one sees.
pub(super) const GLOBAL: &str = "olm";
/// Keeps a namespace from seeing them.
const EXCLUDE_GLOBAL: &str = "olm.operatorframework.io/exclude-global-namespace-resolution";

/// What is in a namespace, and what its Subscriptions may choose from.
pub(super) struct Scope<'v> {
    pub(super) namespace: &'v str,
    pub(super) subscriptions: Vec<Object<Subscription>>,
    pub(super) csvs: Vec<Object<ClusterServiceVersion>>,
    pub(super) groups: Vec<Object<OperatorGroup>>,
    /// In OLM's order of preference.
    pub(super) catalogs: Vec<(Object<CatalogSource>, Option<&'v Served>)>,
    registry: &'v Registry,
}

/// A bundle that is to be installed.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) csv: String,
    pub(super) package: String,
    pub(super) channel: String,
    /// The CatalogSource and its namespace.
    pub(super) catalog: (String, String),
    pub(super) replaces: String,
    pub(super) bundle: OfferedBundle,
    /// The Subscription that asks for it; none for a dependency.
    pub(super) subscription: Option<String>,
}

/// Why nothing can be resolved, as OLM says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failed {
    /// Nothing but a change of the input helps.
    Constraints(String),
    /// A catalog does not answer, or cannot be used; tried again.
    Prevented(String),
}

/// The last resolution of each namespace, with what it was made of: it is asked for at every step.
pub(super) type Resolved = BTreeMap<String, (String, Result<Vec<Chosen>, Failed>)>;

impl Scope<'_> {
    /// Whether a ClusterServiceVersion exists.
    pub(super) fn exists(&self, name: &str) -> bool {
        self.csvs.iter().any(|csv| csv.name() == name)
    }

    /// Whether a Subscription's channel has a bundle.
    pub(super) fn offers(&self, subscription: &Subscription, csv: &str) -> bool {
        let spec = &subscription.spec;
        let served = self.catalog_of(subscription).and_then(|at| self.catalogs[at].1);
        let package = served.and_then(|served| served.offer.packages.get(&spec.package));
        package.is_some_and(|package| match spec.channel.as_str() {
            "" => package.bundles.contains_key(csv),
            channel => package.channel(channel).is_some_and(|channel| channel.entry(csv).is_some()),
        })
    }

    fn catalog_of(&self, subscription: &Subscription) -> Option<usize> {
        let spec = &subscription.spec;
        self.catalogs.iter().position(|(catalog, _)| {
            catalog.name() == spec.source && catalog.namespace() == spec.source_namespace
        })
    }

    /// Everything that is to be installed now; empty when all stay as they are.
    pub(super) fn resolve(&self) -> Result<Vec<Chosen>, Failed> {
        let chosen = self.choose()?;
        let moves = |chosen: &Chosen| {
            self.subscriptions.iter().any(|subscription| {
                Some(subscription.name()) == chosen.subscription.as_deref()
                    && subscription.status.current_csv != chosen.csv
            })
        };
        Ok(if chosen.iter().any(moves) { chosen } else { Vec::new() })
    }

    /// Everything that is not installed yet and is to be, also what there is a plan for.
    pub(super) fn choose(&self) -> Result<Vec<Chosen>, Failed> {
        let made_of = self.made_of();
        if let Some((known, resolved)) = self.registry.resolved.borrow().get(self.namespace)
            && *known == made_of
        {
            return resolved.clone();
        }
        let resolved = self.choose_anew();
        self.registry.resolved.borrow_mut().insert(self.namespace.to_owned(), (made_of, resolved.clone()));
        resolved
    }

    /// All that a resolution depends on, as text.
    fn made_of(&self) -> String {
        let mut text = String::new();
        let version = |metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
            (metadata.uid.clone().unwrap_or_default(), metadata.resource_version.clone().unwrap_or_default())
        };
        // Writing to a text cannot fail.
        for (catalog, served) in &self.catalogs {
            let offer = served.map(|served| std::sync::Arc::as_ptr(&served.offer));
            let _ = write!(text, "{} {} {offer:?} ", catalog.key(), catalog.namespace());
            let _ = write!(text, "{} {};", catalog.spec.priority, catalog.is_ready());
        }
        for found in &self.subscriptions {
            let _ = write!(text, "{} {:?};", found.name(), version(found.metadata()));
        }
        for found in &self.csvs {
            let _ = write!(text, "{} {:?};", found.name(), version(found.metadata()));
        }
        text
    }

    fn choose_anew(&self) -> Result<Vec<Chosen>, Failed> {
        let mut catalogs = Vec::new();
        for (catalog, served) in &self.catalogs {
            let Some(served) = served.filter(|_| catalog.is_ready()) else {
                return Err(Failed::Prevented(format!(
                    "error using catalogsource {}/{}: no registry client established for catalogsource {0}/{1}",
                    catalog.namespace(),
                    catalog.name()
                )));
            };
            catalogs.push((format!("{}/{}", catalog.namespace(), catalog.name()), served.offer.resolvable()));
        }
        let offers = catalogs.iter().zip((i32::MIN..0).rev()).map(|((name, catalog), priority)| {
            // They are in order already.
            resolve::Offer { name, catalog, priority }
        });
        let filled = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let mut subscriptions = Vec::new();
        for subscription in &self.subscriptions {
            let (spec, who) = (&subscription.spec, subscription.name());
            let Some(catalog) = self.catalog_of(subscription) else {
                return Err(Failed::Constraints(format!(
                    "constraints not satisfiable: no operators found from catalog {} in namespace {} referenced by \
                     subscription {who}, subscription {who} exists",
                    spec.source, spec.source_namespace
                )));
            };
            subscriptions.push(resolve::Subscription {
                package: spec.package.clone(),
                channel: filled(&spec.channel),
                catalog,
                starting_csv: filled(&spec.starting_csv),
                installed: filled(&subscription.status.installed_csv),
            });
        }
        let existing = self.csvs.iter().filter_map(|csv| {
            let owners = self.subscriptions.iter().filter(|found| found.status.installed_csv == csv.name());
            Existing::of_manifest(csv.document(), owners.map(|found| found.spec.package.as_str()))
        });
        let question = Question { catalogs: offers.collect(), subscriptions, existing: existing.collect() };
        let resolution = resolve::resolve(&question).map_err(|error| match error {
            ResolveError::Unsatisfiable { constraints } => self.unsatisfiable(constraints),
            error => Failed::Prevented(error.to_string()),
        })?;
        // What is needed comes before what needs it.
        let (needed, asked): (Vec<_>, Vec<_>) =
            resolution.install.into_iter().partition(|install| install.dependency);
        Ok(needed.into_iter().chain(asked).filter_map(|install| self.chosen(install)).collect())
    }

    fn chosen(&self, install: resolve::Install) -> Option<Chosen> {
        let (catalog, served) = self
            .catalogs
            .iter()
            .find(|(catalog, _)| install.catalog == format!("{}/{}", catalog.namespace(), catalog.name()))?;
        let package = served.as_ref()?.offer.packages.get(&install.package)?;
        let asking = self.subscriptions.iter().find(|found| {
            let spec = &found.spec;
            !install.dependency
                && (spec.package.as_str(), spec.source.as_str(), spec.source_namespace.as_str())
                    == (install.package.as_str(), catalog.name(), catalog.namespace())
                && (spec.channel.is_empty() || spec.channel == install.channel)
        });
        Some(Chosen {
            bundle: package.bundles.get(&install.csv).cloned().unwrap_or_default(),
            csv: install.csv,
            package: install.package,
            channel: install.channel,
            catalog: (catalog.name().to_owned(), catalog.namespace().to_owned()),
            replaces: install.replaces.unwrap_or_default(),
            subscription: asking.map(|found| found.name().to_owned()),
        })
    }

    /// The constraints, and what OLM says of objects besides: what is installed, and who refers to it.
    fn unsatisfiable(&self, constraints: Vec<String>) -> Failed {
        let installed: BTreeSet<&str> =
            self.subscriptions.iter().map(|found| found.status.installed_csv.as_str()).collect();
        let strangers = self.csvs.iter().map(|csv| csv.name()).filter(|name| !installed.contains(name));
        let strangers: Vec<String> = strangers
            .map(|name| {
                format!("clusterserviceversion {name} exists and is not referenced by a subscription")
            })
            .collect();
        let existing = self.csvs.iter().map(|csv| format!("@existing/{}//{}", self.namespace, csv.name()));
        let existing: Vec<String> = existing.filter(|_| !strangers.is_empty()).collect();
        let subscriptions =
            self.subscriptions.iter().map(|found| format!("subscription {} exists", found.name()));
        let parts: Vec<String> =
            constraints.into_iter().chain(existing).chain(strangers).chain(subscriptions).collect();
        Failed::Constraints(format!("constraints not satisfiable: {}", parts.join(", ")))
    }
}

/// What is in a namespace.
pub(super) fn scope<'v>(
    store: &super::Store,
    served: &'v BTreeMap<Key, Served>,
    registry: &'v Registry,
    namespace: &'v str,
) -> Scope<'v> {
    let groups: Vec<Object<OperatorGroup>> = read(store.list(&known::OPERATOR_GROUP, Some(namespace)));
    let excluded = groups.iter().any(|group| group.annotation(EXCLUDE_GLOBAL) == Some("true"));
    let mut csvs: Vec<Object<ClusterServiceVersion>> = read(store.list(&known::CSV, Some(namespace)));
    csvs.retain(|csv| !csv.is_copied());
    let visible = |source: &Object<CatalogSource>| {
        source.namespace() == namespace || source.namespace() == GLOBAL && !excluded
    };
    let mut catalogs: Vec<Object<CatalogSource>> = read(store.list(&known::CATALOG_SOURCE, None));
    catalogs.retain(visible);
    catalogs.sort_by_key(|source| {
        (-source.spec.priority, source.namespace() != namespace, source.name().to_owned())
    });
    Scope {
        namespace,
        subscriptions: read(store.list(&known::SUBSCRIPTION, Some(namespace))),
        csvs,
        groups,
        catalogs: catalogs
            .into_iter()
            .map(|source| {
                let served = served.get(&source.key());
                (source, served)
            })
            .collect(),
        registry,
    }
}

/// Typed views of documents; OLM does not see what does not fit its types, and neither does this.
pub(super) fn read<'o, T: serde::de::DeserializeOwned>(
    documents: impl Iterator<Item = &'o Value>,
) -> Vec<Object<T>> {
    documents.filter_map(|document| Object::read(document.clone()).ok()).collect()
}
