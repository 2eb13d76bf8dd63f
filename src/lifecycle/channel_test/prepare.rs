//! What a run is about, and what is looked at before it begins: the catalog, the plan, and whether the cluster is free for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use olmkit_bundle::suggest::did_you_mean;
use serde_json::{Value, json};

use super::cleanup;
use super::marker::{self, LEASE, Marker};
use super::plan::{Edges, MOST_INSTALLS, Plan, Subject, TooLong, plan};
use super::result::{Report, TestResult};
use super::samples;
use crate::lifecycle::api::{
    CatalogSource, ClusterServiceVersion, InstallModeKind, Key, Named as _, Object, Subscription, known,
    label, made_here,
};
use crate::lifecycle::blockers::lacking;
use crate::lifecycle::cluster::{Cluster, ClusterError};
use crate::lifecycle::contents::Contents;
use crate::lifecycle::engine::{Catalogs, Engine, EngineError, Options, Progress};
use crate::lifecycle::install::{Install, modes};
use crate::lifecycle::offer::{Offer, OfferedBundle, OfferedPackage, needs};
use crate::lifecycle::properties::package_of;
use crate::lifecycle::upgrade::channel_of;
use crate::sentence::Sentence;
use crate::shell::command;

/// Custom resources that go through the upgrades.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Samples {
    /// Those that the bundles carry in `alm-examples`.
    #[default]
    Examples,
    /// These.
    Given(Vec<Value>),
    /// None.
    None,
}

/// What is tested, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The package.
    pub package: String,
    /// The CatalogSource, and its namespace where that is named; none for the only one that offers the package.
    pub catalog: Option<(String, Option<String>)>,
    /// An image to make a CatalogSource of, for the run alone.
    pub catalog_image: Option<String>,
    /// Where the catalog is in that image, if the image has no server: OLM then takes the catalog out of it.
    pub catalog_dir: Option<String>,
    /// The channels; none for the package's default.
    pub channels: Vec<String>,
    /// Where operators are installed: a namespace that is made for the run, or an empty one.
    pub namespace: String,
    /// Which upgrades.
    pub edges: Edges,
    /// An older catalog: only what has changed since is tested.
    pub against: Option<Arc<Offer>>,
    /// Whether CRDs and operators of the package may be there already. Such CRDs stay.
    pub adopt: bool,
    /// The custom resources.
    pub samples: Samples,
    /// How long custom resources may take to settle.
    pub sample_timeout: Duration,
    /// How long an install or a hop may take, and how long it must stay healthy.
    pub step: Options,
    /// Whether images may be missing where they are looked for.
    pub accept_missing_images: bool,
    /// Whether the run ends with the first failure and leaves everything as it is then.
    pub keep_failed: bool,
    /// Whether OLM is simulated, and nobody else is at work.
    pub simulated: bool,
}

/// What the CatalogSource of a run is called.
const CATALOG: &str = "olmkit-test";

impl Settings {
    /// The CatalogSource that is made for the run.
    pub(super) fn catalog_source(&self) -> Option<Value> {
        let image = self.catalog_image.as_ref()?;
        let mut source = json!({
            "apiVersion": known::CATALOG_SOURCE.api_version(), "kind": known::CATALOG_SOURCE.kind,
            "metadata": {
                "name": CATALOG, "namespace": self.namespace, "labels": {label::CREATED_BY: label::OLMKIT},
            },
            "spec": {"sourceType": "grpc", "image": image, "displayName": "A catalog under test", "publisher": label::OLMKIT},
        });
        if let Some(dir) = &self.catalog_dir {
            source["spec"]["grpcPodConfig"] = json!({"extractContent": {"catalogDir": dir}});
        }
        Some(source)
    }
}

/// A run that can begin.
#[derive(Debug)]
pub struct Prepared {
    /// What is done.
    pub plan: Plan,
    /// The CatalogSource: its namespace and name.
    pub(super) catalog: (String, String),
    /// Groups and kinds that the package's bundles provide.
    pub(super) provided: BTreeSet<(String, String)>,
    /// What bundles need and the catalog does not offer, in words.
    pub(super) unmet: BTreeMap<String, String>,
    /// What is to be said besides.
    notes: Vec<String>,
    /// The note of an earlier run that was killed.
    pub(super) note: Option<Marker>,
}

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Unprepared {
    /// Why.
    pub error: Box<EngineError>,
    /// What was waited for; empty when nothing was.
    pub awaited: String,
}

impl From<EngineError> for Unprepared {
    fn from(error: EngineError) -> Self {
        Self { error: error.into(), awaited: String::new() }
    }
}

impl From<Unprepared> for EngineError {
    fn from(unprepared: Unprepared) -> Self {
        *unprepared.error
    }
}

/// The note that a run has left which was killed; none where there was none.
fn left_note(
    cluster: &mut dyn Cluster,
    progress: &dyn Progress,
    settings: &Settings,
) -> Result<Option<Marker>, Unprepared> {
    let namespace = settings.namespace.as_str();
    let look = |cluster: &mut dyn Cluster| -> Result<Option<Marker>, EngineError> {
        let found = cluster.get(&known::CONFIG_MAP, namespace, marker::NAME)?;
        Ok(found.as_ref().and_then(Marker::read))
    };
    let first = look(cluster)?;
    let Some(note) = first.as_ref().filter(|_| !settings.simulated) else { return Ok(first) };
    let begun = cluster.now();
    let earlier = format!("the earlier run in `{namespace}`");
    progress.said(
        Duration::ZERO,
        &format!("waiting for {earlier} (up to {} s): it was killed, or is still at work", LEASE.as_secs()),
    );
    let while_waiting = |error: EngineError| {
        let awaited = format!("{earlier}, which takes up to {} s", LEASE.as_secs());
        let error = match error {
            EngineError::Cluster(ClusterError::TimedOut { limit, .. }) => {
                EngineError::TimedOut { after: limit, awaited: awaited.clone(), suspicion: None }
            }
            error => error,
        };
        Unprepared { error: error.into(), awaited }
    };
    loop {
        match look(cluster).map_err(while_waiting)? {
            // It came to its end meanwhile.
            None => return Ok(None),
            Some(found) if (&found.holder, found.renewed) != (&note.holder, note.renewed) => {
                return Err(marker::at_work(namespace).into());
            }
            Some(_) if cluster.now().saturating_sub(begun) >= LEASE => return Ok(first),
            Some(_) => {
                cluster.wait(Duration::from_secs(1)).map_err(|error| while_waiting(error.into()))?;
            }
        }
    }
}

/// Finds the catalog, makes the plan, and refuses a cluster that the tests would get in the way of.
///
/// # Errors
/// The package or a channel is not there; the cluster has the package's CRDs or operators; the namespace is not empty.
pub fn prepare(
    cluster: &mut dyn Cluster,
    catalogs: &dyn Catalogs,
    progress: &dyn Progress,
    settings: &Settings,
) -> Result<Prepared, Unprepared> {
    let mut engine = Engine::new(cluster, catalogs, progress, settings.step.clone());
    let request = Install {
        package: settings.package.clone(),
        namespace: settings.namespace.clone(),
        catalog: settings.catalog.clone(),
        ..Install::default()
    };
    let (catalog, offer) = match settings.catalog_source().map(Object::<CatalogSource>::read).transpose() {
        Ok(Some(made)) => (made.key(), engine.offer_of(&made)?),
        Ok(None) => {
            let source = engine.source(&request)?;
            (source.catalog.key(), source.offer)
        }
        Err(misfit) => return Err(EngineError::refused(misfit.to_string()).into()),
    };
    let catalog = (catalog.namespace, catalog.name);
    let package = offer.packages.get(&settings.package);
    let package = package.ok_or_else(|| EngineError::Refused {
        what: format!("the catalog has no package `{}`", settings.package),
        help: did_you_mean(&settings.package, offer.packages.keys().map(String::as_str)).into(),
    })?;
    let channels = match &settings.channels[..] {
        [] => vec![package.default_channel.clone()],
        named => named.to_vec(),
    };
    let old = settings.against.as_ref().and_then(|offer| offer.packages.get(&settings.package));
    let empty = OfferedPackage::default();
    // A package that the older catalog does not have is new as a whole.
    let against = settings.against.as_ref().map(|_| old.unwrap_or(&empty));
    let (mut whole, mut notes) = (Plan::default(), Vec::new());
    let mut seen = BTreeSet::new();
    for name in channels.iter().filter(|name| seen.insert(*name)) {
        let channel = channel_of(package, &settings.package, name)?;
        let entries = channel.entries.iter().map(|entry| entry.name.as_str());
        let modes = supported_modes(catalogs, package, entries);
        let subject = Subject { package, name, channel, against, modes: &modes };
        let part = plan(subject, settings.edges).map_err(|TooLong| too_long(name))?;
        if part.walks.is_empty() {
            notes.push(format!("nothing has changed in the channel `{name}`"));
        }
        whole.walks.extend(part.walks);
        whole.untaken.extend(part.untaken);
    }
    if let Samples::Given(objects) = &settings.samples {
        let tested: BTreeSet<&String> = whole.walks.iter().flat_map(|walk| &walk.way).collect();
        samples::check_served(catalogs, package, &tested, objects)?;
    }
    let provided = package.bundles.values().flat_map(|bundle| bundle.provides());
    let provided = provided.map(|api| (api.group, api.kind)).collect();
    let unmet = unmet(&offer, package);
    let note = left_note(cluster, progress, settings)?;
    let prepared = Prepared { plan: whole, catalog, provided, unmet, notes, note };
    prepared.check(cluster, package, settings)?;
    Ok(prepared)
}

/// Every version is installed on the way from each version before it, so that a test grows with the square of the channel.
fn too_long(channel: &str) -> EngineError {
    EngineError::refused_help(
        format!(
            "the tests of the channel `{channel}` would install more than {MOST_INSTALLS} versions one after another"
        ),
        "pass `--edges adjacent` for one hop from each version, `--edges heads` for the head alone, or --against with an older catalog for what has changed",
    )
}

/// The first thing that each bundle needs and that no bundle of the catalog provides.
fn unmet(offer: &Offer, package: &OfferedPackage) -> BTreeMap<String, String> {
    let first = |(csv, bundle): (&String, &OfferedBundle)| {
        let what = needs(&bundle.properties).iter().find_map(|need| lacking(need, offer))?;
        Some((csv.clone(), format!("`{csv}` requires {what}")))
    };
    package.bundles.iter().filter_map(first).collect()
}

/// The install modes of bundles: by the catalog, or by the bundle itself where the catalog does not say.
fn supported_modes<'n>(
    catalogs: &dyn Catalogs,
    package: &OfferedPackage,
    names: impl Iterator<Item = &'n str>,
) -> BTreeMap<String, BTreeSet<InstallModeKind>> {
    const ALL: [InstallModeKind; 4] = [
        InstallModeKind::OwnNamespace,
        InstallModeKind::SingleNamespace,
        InstallModeKind::MultiNamespace,
        InstallModeKind::AllNamespaces,
    ];
    let mut supported = BTreeMap::new();
    for name in names {
        let Some(bundle) = package.bundles.get(name) else { continue };
        let mut words = modes(package, name);
        if words.is_empty()
            && let Ok(manifests) = catalogs.manifests(name, bundle)
        {
            let csv = manifests.iter().find(|object| object["kind"] == olmkit_bundle::csv::KIND);
            let listed = csv.and_then(|csv| csv.pointer("/spec/installModes")).and_then(Value::as_array);
            let listed = listed.into_iter().flatten().filter(|mode| mode["supported"] == true);
            words.extend(listed.filter_map(|mode| mode["type"].as_str().map(str::to_owned)));
        }
        let known: BTreeSet<_> = ALL.into_iter().filter(|mode| words.contains(mode.as_str())).collect();
        if !known.is_empty() {
            supported.insert(name.to_owned(), known);
        }
    }
    supported
}

impl Prepared {
    /// Refuses a cluster where the package is in use, and a namespace where something is.
    fn check(
        &self,
        cluster: &mut dyn Cluster,
        package: &OfferedPackage,
        settings: &Settings,
    ) -> Result<(), EngineError> {
        let namespace = settings.namespace.as_str();
        let note = self.note.as_ref();
        if let Some(note) = note.filter(|note| note.package != settings.package) {
            return Err(EngineError::refused_help(
                format!("a test of `{}` was killed in the namespace `{namespace}`", note.package),
                Sentence::from("run ")
                    + command!("olmkit operator test {} -n {}", note.package, namespace)
                    + " again, or name another namespace",
            ));
        }
        // What an earlier run has left is removed before anything begins.
        let is_left = |found: &Key| note.is_some() && found.namespace == namespace;
        let subscriptions = cluster.list(&known::SUBSCRIPTION, None)?;
        let subscriptions: Vec<Object<Subscription>> =
            subscriptions.into_iter().filter_map(|found| Object::read(found).ok()).collect();
        let csvs = cluster.list(&known::CSV, None)?;
        let csvs: Vec<Object<ClusterServiceVersion>> =
            csvs.into_iter().filter_map(|found| Object::read(found).ok()).collect();
        let mut rivals = subscriptions
            .iter()
            .filter(|found| found.spec.package == settings.package)
            .map(|found| found.key())
            .chain(
                csvs.iter()
                    .filter(|csv| {
                        !csv.is_copied() && {
                            package.bundles.contains_key(csv.name())
                                || package_of(csv).as_deref() == Some(&settings.package)
                        }
                    })
                    .map(|csv| csv.key()),
            );
        if let Some(rival) = rivals.find(|rival| !is_left(rival) && !settings.adopt) {
            return Err(EngineError::refused_help(
                format!("the cluster has an operator of the package already: {}", rival.placed()),
                "use a cluster without it, or pass --adopt to install beside it, in other namespaces",
            ));
        }
        let crds = cluster.list(&known::CRD, None)?;
        let there = cleanup::of_package(&crds, &self.provided);
        let kept = |name: &&String| note.is_none_or(|note| note.kept.contains(*name));
        if let Some(name) = there.iter().find(kept).filter(|_| !settings.adopt) {
            return Err(EngineError::refused_help(
                format!("the cluster has a CRD of the package already: `{name}`"),
                "use a cluster without it, or pass --adopt: the CRD and its custom resources then stay, and the tests update it",
            ));
        }
        // What an earlier run has left is its package, and what that depends on.
        let is_left = |found: &&Object<Subscription>| {
            note.is_some()
                && (found.spec.package == settings.package || found.annotation(label::GENERATED_BY).is_some())
        };
        let others = subscriptions.iter().filter(|found| !is_left(found)).map(|found| found.key());
        let lone = csvs.iter().filter(|csv| note.is_none() && !csv.is_copied()).map(|csv| csv.key());
        let mut other = others.chain(lone).find(|found| found.namespace == namespace);
        let group = cluster.list(&known::OPERATOR_GROUP, Some(namespace))?;
        let group = group.iter().find(|group| note.is_none() || !made_here(group));
        other = other.or_else(|| group.map(Key::of));
        // One that is going is waited for when the tests begin.
        let is_there = cluster
            .get(&known::NAMESPACE, "", namespace)?
            .is_some_and(|found| found.pointer("/metadata/deletionTimestamp").is_none());
        if other.is_none() && note.is_none() && is_there {
            other = Contents::of(cluster, namespace)?.objects.first().map(Key::of);
        }
        if let Some(other) = other {
            return Err(EngineError::refused_help(
                format!("the namespace `{namespace}` is in use: {}", other.placed()),
                "name an empty namespace with -n, or one that does not exist yet",
            ));
        }
        Ok(())
    }

    /// What would be tested.
    pub fn dry_run(&self, settings: &Settings) -> Report {
        let mut report = self.report(settings);
        report.dry_run = true;
        for walk in &self.plan.walks {
            for test in &walk.tests {
                let result = TestResult::not_run(walk, test, &settings.package);
                report.tests.push(TestResult { reason: Some("dry run".to_owned()), ..result });
            }
        }
        report.count();
        report
    }

    pub(super) fn report(&self, settings: &Settings) -> Report {
        let (namespace, name) = &self.catalog;
        Report {
            package: settings.package.clone(),
            catalog: format!("{namespace}/{name}"),
            namespace: settings.namespace.clone(),
            simulated: settings.simulated,
            untaken: self.plan.untaken.clone(),
            notes: self.notes.clone(),
            ..Report::default()
        }
    }
}
