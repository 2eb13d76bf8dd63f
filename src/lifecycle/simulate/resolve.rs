//! What the Subscriptions of a namespace lead to: OLM's selection, all of them together, one hop at a time.
//!
//! OLM asks a solver; here the same preferences are followed without one, which differs only where two operators of a
//! namespace exclude each other in ways that another choice of versions would mend.

use std::collections::{BTreeMap, BTreeSet};

use olmkit_bundle::csv::GroupVersionKind;
use olmkit_bundle::version::Version;
use olmkit_catalog::graph::VersionRelease;
use serde_json::Value;

use super::Served;
use crate::lifecycle::api::{
    CatalogSource, ClusterServiceVersion, Key, Named as _, Object, OperatorGroup, Subscription, known, label,
};
use crate::lifecycle::offer::{Need, Offer, OfferedBundle, OfferedPackage};

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
    /// A catalog does not answer; tried again.
    Prevented(String),
}

impl<'v> Scope<'v> {
    pub(super) fn catalog(
        &self,
        subscription: &Subscription,
    ) -> Option<&(Object<CatalogSource>, Option<&'v Served>)> {
        let spec = &subscription.spec;
        self.catalogs.iter().find(|(catalog, _)| {
            catalog.name() == spec.source && catalog.namespace() == spec.source_namespace
        })
    }

    fn installed(&self, subscription: &Subscription) -> Option<&Object<ClusterServiceVersion>> {
        let name = &subscription.status.installed_csv;
        self.csvs.iter().find(|csv| !name.is_empty() && csv.name() == name)
    }

    /// Whether a ClusterServiceVersion exists.
    pub(super) fn exists(&self, name: &str) -> bool {
        self.csvs.iter().any(|csv| csv.name() == name)
    }

    /// Where a Subscription's next hop leads, whatever else is in the namespace; none when it stays.
    pub(super) fn target(&self, subscription: &Subscription) -> Result<Option<Chosen>, String> {
        let spec = &subscription.spec;
        let who = subscription.name();
        let Some((catalog, served)) = self.catalog(subscription) else {
            return Err(format!(
                "no operators found from catalog {} in namespace {} referenced by subscription {who}",
                spec.source, spec.source_namespace
            ));
        };
        let Some(served) = served else { return Ok(None) };
        let Some(package) = served.offer.packages.get(&spec.package) else {
            return Err(format!(
                "no operators found in package {} in the catalog referenced by subscription {who}",
                spec.package
            ));
        };
        let Some(channel) = package.channel(&spec.channel) else {
            return Err(format!(
                "no operators found in channel {} of package {} in the catalog referenced by subscription {who}",
                spec.channel, spec.package
            ));
        };
        let choose = |name: &str, replaces: &str| {
            let bundle = package.bundles.get(name).cloned().unwrap_or_default();
            Chosen {
                csv: name.to_owned(),
                package: spec.package.clone(),
                channel: if spec.channel.is_empty() {
                    package.default_channel.clone()
                } else {
                    spec.channel.clone()
                },
                catalog: (catalog.name().to_owned(), catalog.namespace().to_owned()),
                replaces: replaces.to_owned(),
                bundle,
                subscription: Some(who.to_owned()),
            }
        };
        if let Some(installed) = self.installed(subscription) {
            let version = Version::parse(&installed.spec.version).ok().map(VersionRelease::from);
            let next = channel.next(installed.name(), version.as_ref());
            return Ok(next.map(|next| choose(next, installed.name())));
        }
        let first =
            if spec.starting_csv.is_empty() { channel.head() } else { Some(spec.starting_csv.as_str()) };
        match first.and_then(|first| channel.entry(first)) {
            Some(entry) => Ok(Some(choose(&entry.name, &entry.replaces))),
            None => Err(format!(
                "no operators found with name {} in channel {} of package {} in the catalog referenced by subscription {who}",
                spec.starting_csv, spec.channel, spec.package
            )),
        }
    }

    /// Everything that is to be installed now; empty when all stay as they are.
    pub(super) fn resolve(&self) -> Result<Vec<Chosen>, Failed> {
        for (catalog, served) in &self.catalogs {
            if served.is_none() || !catalog.is_ready() {
                return Err(Failed::Prevented(format!(
                    "error using catalogsource {}/{}: no registry client established for catalogsource {0}/{1}",
                    catalog.namespace(),
                    catalog.name()
                )));
            }
        }
        let mut chosen = Vec::new();
        for subscription in &self.subscriptions {
            let target = self.target(subscription).map_err(|why| {
                Failed::Constraints(format!(
                    "constraints not satisfiable: {why}, subscription {} exists",
                    subscription.name()
                ))
            })?;
            if let Some(target) = target {
                chosen.push(target);
            }
        }
        self.no_stranger(&chosen)?;
        let moves = |chosen: &Chosen| {
            self.subscriptions.iter().any(|subscription| {
                Some(subscription.name()) == chosen.subscription.as_deref()
                    && subscription.status.current_csv != chosen.csv
            })
        };
        if !chosen.iter().any(moves) {
            return Ok(Vec::new());
        }
        let dependencies = self.dependencies(&chosen)?;
        Ok(dependencies.into_iter().chain(chosen).collect())
    }

    /// A ClusterServiceVersion that no Subscription has installed stays where it is, and excludes others of its package and
    /// others that provide what it provides.
    fn no_stranger(&self, chosen: &[Chosen]) -> Result<(), Failed> {
        let installed: BTreeSet<&str> =
            self.subscriptions.iter().map(|found| found.status.installed_csv.as_str()).collect();
        for stranger in self.csvs.iter().filter(|csv| !installed.contains(csv.name())) {
            let package = package_of(stranger);
            let provides = provided(stranger);
            let subscribed = self.subscriptions.iter().find(|found| {
                package.as_deref() == Some(found.spec.package.as_str())
                    || self
                        .installed(found)
                        .is_some_and(|own| provided(own).intersection(&provides).next().is_some())
            });
            let rival = chosen
                .iter()
                .find(|chosen| chosen.bundle.provides().intersection(&provides).next().is_some());
            let who =
                subscribed.map(|found| (found.name(), found.status.current_csv.as_str())).or_else(|| {
                    rival.map(|rival| (rival.subscription.as_deref().unwrap_or(""), rival.csv.as_str()))
                });
            if let Some((subscription, other)) = who {
                let ns = self.namespace;
                let name = stranger.name();
                return Err(Failed::Constraints(format!(
                    "constraints not satisfiable: @existing/{ns}//{name} and {other} originate from package {}, \
                     clusterserviceversion {name} exists and is not referenced by a subscription, subscription \
                     {subscription} exists",
                    package.unwrap_or_default()
                )));
            }
        }
        Ok(())
    }

    /// What the chosen bundles need and nobody provides, first those that need nothing themselves.
    pub(super) fn dependencies(&self, chosen: &[Chosen]) -> Result<Vec<Chosen>, Failed> {
        let mut added: Vec<Chosen> = Vec::new();
        let mut open: Vec<Chosen> = chosen.to_vec();
        while let Some(who) = open.pop() {
            for need in who.bundle.needs() {
                let met = |bundle: &OfferedBundle, package: &str| meets(bundle, package, &need);
                let by_plan = chosen.iter().chain(&added).any(|other| met(&other.bundle, &other.package));
                let by_cluster = self.csvs.iter().any(|csv| match &need {
                    Need::Api(api) => provided(csv).contains(api),
                    Need::Package { name, .. } => package_of(csv).as_deref() == Some(name),
                });
                if by_plan || by_cluster {
                    continue;
                }
                let Some(dependency) = self.provider(&who, &need) else {
                    return Err(Failed::Constraints(format!(
                        "constraints not satisfiable: bundle {} requires an operator {}",
                        who.csv,
                        needed(&need)
                    )));
                };
                open.push(dependency.clone());
                added.insert(0, dependency);
            }
        }
        Ok(added)
    }

    /// The best bundle that meets a need: of the same catalog first, then in order of the catalogs; of the default channel.
    fn provider(&self, who: &Chosen, need: &Need) -> Option<Chosen> {
        let own = |catalog: &Object<CatalogSource>| {
            (catalog.name(), catalog.namespace()) == (who.catalog.0.as_str(), who.catalog.1.as_str())
        };
        let mut catalogs: Vec<_> = self.catalogs.iter().collect();
        catalogs.sort_by_key(|(catalog, _)| !own(catalog));
        catalogs.into_iter().find_map(|(catalog, served)| {
            let offer: &Offer = &served.as_ref()?.offer;
            offer.packages.iter().find_map(|(name, package)| {
                let (csv, replaces, bundle) = offered(package, name, need)?;
                Some(Chosen {
                    csv,
                    package: name.clone(),
                    channel: package.default_channel.clone(),
                    catalog: (catalog.name().to_owned(), catalog.namespace().to_owned()),
                    replaces,
                    bundle,
                    subscription: None,
                })
            })
        })
    }
}

/// The bundle of a package's default channel, from the head down, that meets a need.
fn offered(package: &OfferedPackage, name: &str, need: &Need) -> Option<(String, String, OfferedBundle)> {
    let channel = package.channel("")?;
    let mut at = channel.head().map(str::to_owned);
    for _ in 0..=channel.entries.len() {
        let entry = channel.entry(&at?)?;
        let bundle = package.bundles.get(&entry.name)?;
        if meets(bundle, name, need) {
            return Some((entry.name.clone(), entry.replaces.clone(), bundle.clone()));
        }
        at = Some(entry.replaces.clone());
    }
    None
}

fn meets(bundle: &OfferedBundle, package: &str, need: &Need) -> bool {
    match need {
        Need::Api(api) => bundle.provides().contains(api),
        Need::Package { name, range } => name == package && bundle.is_in(range),
    }
}

fn needed(need: &Need) -> String {
    match need {
        Need::Api(api) => {
            format!(
                "providing an API with group: {}, version: {}, kind: {}",
                api.group, api.version, api.kind
            )
        }
        Need::Package { name, range } => format!("with package: {name} and with version in range: {range}"),
    }
}

/// The APIs that an installed operator provides.
fn provided(csv: &ClusterServiceVersion) -> BTreeSet<GroupVersionKind> {
    csv.spec.custom_resource_definitions.owned.iter().map(|owned| owned.gvk()).collect()
}

/// The package of an installed operator, by the properties that OLM wrote into it.
pub(in crate::lifecycle) fn package_of(csv: &ClusterServiceVersion) -> Option<String> {
    let properties: Value = serde_json::from_str(csv.annotation(label::PROPERTIES)?).ok()?;
    let package = properties["properties"].as_array()?.iter().find(|found| found["type"] == "olm.package")?;
    package["value"]["packageName"].as_str().map(str::to_owned)
}

/// What is in a namespace.
pub(super) fn scope<'v>(
    store: &super::Store,
    served: &'v BTreeMap<Key, Served>,
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
    }
}

/// Typed views of documents; OLM does not see what does not fit its types, and neither does this.
pub(super) fn read<'o, T: serde::de::DeserializeOwned>(
    documents: impl Iterator<Item = &'o Value>,
) -> Vec<Object<T>> {
    documents.filter_map(|document| Object::read(document.clone()).ok()).collect()
}
