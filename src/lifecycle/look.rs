//! Operators as people ask about them: one row of a table, or everything there is to say about one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::api::{ClusterServiceVersion, Key, Named as _, Object, PackageManifest, Subscription, known};
use super::checks;
use super::cluster::ClusterError;
use super::doctor::{self, Diagnosis, Observation, OperatorState, Scope, diagnose};
use super::engine::{Engine, EngineError};
use super::health;
use super::observe::Observed;
use super::offer::Offer;
use super::operator::Operator;
use super::rollback::taken_away;

/// Everything there is to say about an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// The row.
    #[serde(flatten)]
    pub operator: Operator,
    /// The conditions of the Subscription that hold, as `TYPE: REASON: MESSAGE`.
    pub conditions: Vec<String>,
    /// The CRDs that it owns or needs.
    pub crds: Vec<CrdUse>,
    /// Its deployments, as `NAME: AVAILABLE of WANTED`.
    pub deployments: Vec<String>,
    /// The newest events about its objects, oldest first.
    pub events: Vec<String>,
}

/// A CRD that an operator has to do with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrdUse {
    /// Its name.
    pub name: String,
    /// Whether the operator brings it; otherwise it needs it.
    pub owned: bool,
    /// The versions that are served; none when the CRD is not there.
    pub versions: Vec<String>,
    /// How many custom resources there are; none when they may not be read.
    pub resources: Option<usize>,
}

/// How often a watch looks whether anybody still reads it.
const STILL_WATCHED: Duration = Duration::from_secs(1);
/// The events that a description shows at most.
const EVENTS: usize = 10;

/// The heads of channels, each catalog and each package asked for once.
#[derive(Default)]
struct Heads {
    offers: BTreeMap<(String, String), Option<Arc<Offer>>>,
    manifests: BTreeMap<(String, String, String), Option<Object<PackageManifest>>>,
}

impl Heads {
    /// The head of a Subscription's channel; empty when nobody can say.
    fn of(
        &mut self,
        engine: &mut Engine<'_>,
        subscription: &Object<Subscription>,
    ) -> Result<String, EngineError> {
        let spec = &subscription.spec;
        let catalog = (spec.source_namespace.clone(), spec.source.clone());
        let offer = match self.offers.get(&catalog) {
            Some(offer) => offer.clone(),
            None => {
                let offer = known_or_over(engine.offer(subscription))?;
                self.offers.insert(catalog.clone(), offer.clone());
                offer
            }
        };
        let offered = offer.and_then(|offer| {
            let package = offer.packages.get(&spec.package)?;
            package.channel(&spec.channel)?.head().map(str::to_owned)
        });
        if let Some(head) = offered {
            return Ok(head);
        }
        // OLM's own API of packages says it too.
        let name = (catalog.0, catalog.1, spec.package.clone());
        let manifest = match self.manifests.get(&name) {
            Some(manifest) => manifest.clone(),
            None => {
                let found =
                    engine.cluster.get(&known::PACKAGE_MANIFEST, subscription.namespace(), &spec.package);
                let found = known_or_over(found.map_err(EngineError::from))?.flatten();
                let manifest = found.and_then(|found| Object::<PackageManifest>::read(found).ok());
                self.manifests.insert(name, manifest.clone());
                manifest
            }
        };
        let head = manifest.and_then(|manifest| {
            let status = &manifest.status;
            let channel = if spec.channel.is_empty() { &status.default_channel } else { &spec.channel };
            status.channels.iter().find(|found| found.name == *channel).map(|found| found.current_csv.clone())
        });
        Ok(head.unwrap_or_default())
    }
}

/// What was found out; nothing when it could not be, unless nothing more can be, for there was a signal or the time is over.
pub(super) fn known_or_over<T>(found: Result<T, EngineError>) -> Result<Option<T>, EngineError> {
    match found {
        Err(error @ EngineError::Cluster(ClusterError::Interrupted | ClusterError::TimedOut { .. })) => {
            Err(error)
        }
        found => Ok(found.ok()),
    }
}

/// The rows of versions that are left without a Subscription, and do not run. OLM's own needs none.
fn without_subscription<'d>(
    documents: &'d BTreeMap<String, Vec<Value>>,
    diagnosis: &'d Diagnosis,
) -> impl Iterator<Item = Operator> + use<'d> {
    let left = diagnosis.operators.iter().filter(|one| !one.version.is_empty());
    left.filter_map(|one| {
        let observed = Observed::of(documents.get(&one.namespace)?.iter(), &one.namespace, "");
        let csv = observed.csv(&one.version)?;
        (!doctor::is_of_olm(doctor::Doc(csv.document())))
            .then(|| Operator::without_subscription(&observed, csv))
    })
}

impl Engine<'_> {
    /// The row of one operator.
    ///
    /// # Errors
    /// No such Subscription, or the cluster does not answer.
    pub fn status(&mut self, name: &str, namespace: Option<&str>) -> Result<Operator, EngineError> {
        let subscription = self.expect(name, namespace)?;
        self.row(&subscription)
    }

    /// The row of a Subscription.
    pub(super) fn row(&mut self, subscription: &Object<Subscription>) -> Result<Operator, EngineError> {
        let (namespace, name) = (subscription.namespace(), subscription.name());
        let mut seen = Observation::new();
        for kind in [
            &known::SUBSCRIPTION,
            &known::INSTALL_PLAN,
            &known::CSV,
            &known::OPERATOR_GROUP,
            &known::OPERATOR_CONDITION,
            &known::DEPLOYMENT,
        ] {
            doctor::list(self.cluster, &mut seen, kind, Some(namespace))?;
        }
        let scope = Scope { name: Some(name.to_owned()), namespace: Some(namespace.to_owned()) };
        let observed = Observed::of(seen.objects(), namespace, name);
        let fresh = observed.subscription.clone().unwrap_or_else(|| subscription.clone());
        let head = Heads::default().of(self, &fresh)?;
        let now = self.cluster.time_of_day();
        let seen = doctor::complete(self.cluster, seen, &scope, Some(now))?;
        let mut diagnosis = doctor::diagnose_with_required(&seen, &scope);
        self.look_ahead(&mut diagnosis)?;
        let mut operator = Operator::of(&observed, &fresh, head, &self.options.reach).examined(&diagnosis);
        operator.problems.extend(health::deployments(&observed));
        Ok(operator)
    }

    /// The rows of a namespace, or of all.
    ///
    /// # Errors
    /// The cluster does not answer, or has no OLM.
    pub fn list(&mut self, namespace: Option<&str>) -> Result<Vec<Operator>, EngineError> {
        self.rows(namespace, Some(&mut Heads::default()))
    }

    /// Shows the rows of a namespace, or of all, again and again until Ctrl-C, or until nobody looks any more.
    ///
    /// # Errors
    /// The cluster does not answer, or has no OLM.
    pub fn watch(&mut self, namespace: Option<&str>, interval: Duration) -> Result<(), EngineError> {
        let is_interrupt =
            |error: &EngineError| matches!(error, EngineError::Cluster(ClusterError::Interrupted));
        loop {
            let rows = match self.rows(namespace, None) {
                Err(error) if is_interrupt(&error) => return Ok(()),
                rows => rows?,
            };
            if !self.progress.operators(&rows) || !self.progress.is_watched() {
                return Ok(());
            }
            let next = self.cluster.now() + interval;
            loop {
                let pause = next.saturating_sub(self.cluster.now());
                match self.cluster.wait(pause.min(STILL_WATCHED)) {
                    Err(ClusterError::Interrupted) => return Ok(()),
                    Ok(false) if pause > STILL_WATCHED && self.progress.is_watched() => {}
                    waited => {
                        waited?;
                        break;
                    }
                }
            }
        }
    }

    /// The rows, with the heads of their channels where they are wanted: those are read from catalogs.
    fn rows(
        &mut self,
        namespace: Option<&str>,
        mut heads: Option<&mut Heads>,
    ) -> Result<Vec<Operator>, EngineError> {
        let mut subscriptions: Vec<Object<Subscription>> = Vec::new();
        let mut documents: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let mut seen = Observation::new();
        for kind in [&known::SUBSCRIPTION, &known::INSTALL_PLAN, &known::CSV, &known::OPERATOR_GROUP] {
            doctor::list(self.cluster, &mut seen, kind, namespace)?;
            for document in seen.of(&kind.kind).map(|found| found.0) {
                if kind.kind == known::SUBSCRIPTION.kind {
                    subscriptions.extend(Object::read(document.clone()).ok());
                }
                documents.entry(Key::of(document).namespace).or_default().push(document.clone());
            }
        }
        let mut rows = Vec::new();
        for subscription in &subscriptions {
            let beside = documents.get(subscription.namespace()).into_iter().flatten();
            let observed = Observed::of(beside, subscription.namespace(), subscription.name());
            let head = self.head(&mut heads, subscription)?;
            rows.push(Operator::of(&observed, subscription, head, &self.options.reach));
        }
        let scope = Scope { name: None, namespace: namespace.map(str::to_owned) };
        let now = self.cluster.time_of_day();
        let mut diagnosis = diagnose(&doctor::complete(self.cluster, seen, &scope, Some(now))?, &scope);
        // A watch looks again and again, and reads no catalogs.
        if heads.is_some() {
            let behind = |one: &OperatorState| {
                let is_it = |row: &&Operator| {
                    (&row.subscription, &row.namespace) == (&one.subscription, &one.namespace)
                };
                rows.iter()
                    .find(is_it)
                    .is_some_and(|row| !row.head.is_empty() && row.head != row.installed_csv)
            };
            self.look_ahead_of(&mut diagnosis, behind)?;
        }
        rows.extend(without_subscription(&documents, &diagnosis));
        rows = rows.into_iter().map(|row| row.examined(&diagnosis)).collect();
        let groups =
            documents.values().flatten().filter(|found| found["kind"] == known::OPERATOR_GROUP.kind.as_str());
        let is_there =
            |away: &Object<Subscription>| subscriptions.iter().any(|found| found.key() == away.key());
        let away: Vec<_> = taken_away(groups).filter(|away| !is_there(away)).collect();
        for away in away {
            let beside = documents.get(away.namespace()).into_iter().flatten();
            let observed = Observed::of(beside, away.namespace(), away.name());
            let head = self.head(&mut heads, &away)?;
            let problem = format!("its rollback to `{}` was interrupted", away.spec.starting_csv);
            rows.push(Operator {
                problems: vec![problem],
                ..Operator::of(&observed, &away, head, &self.options.reach)
            });
        }
        rows.sort_by(|a, b| (&a.namespace, a.title()).cmp(&(&b.namespace, b.title())));
        Ok(rows)
    }

    fn head(
        &mut self,
        heads: &mut Option<&mut Heads>,
        subscription: &Object<Subscription>,
    ) -> Result<String, EngineError> {
        match heads {
            Some(heads) => heads.of(self, subscription),
            None => Ok(String::new()),
        }
    }

    /// Everything about one operator.
    ///
    /// # Errors
    /// No such Subscription, or the cluster does not answer.
    pub fn describe(&mut self, name: &str, namespace: Option<&str>) -> Result<Description, EngineError> {
        let subscription = self.expect(name, namespace)?;
        let observed = Observed::look(self.cluster, subscription.namespace(), subscription.name())?;
        let operator = self.row(&subscription)?;
        let holding = subscription.status.conditions.iter().filter(|condition| condition.is_true());
        let conditions =
            holding.map(|found| format!("{}: {}: {}", found.kind, found.reason, found.message)).collect();
        let csv = observed.csv(&operator.installed_csv);
        let mut crds = Vec::new();
        if let Some(csv) = csv {
            crds = self.crds(csv)?;
        }
        let deployments = csv.map(|csv| health::states(&observed, csv)).unwrap_or_default();
        let deployments = deployments.into_iter().map(|(state, _)| state).collect();
        let events = self.events(&observed)?;
        Ok(Description { operator, conditions, crds, deployments, events })
    }

    /// The CRDs of an operator, by name, with how many custom resources there are.
    pub(super) fn crds(&mut self, csv: &ClusterServiceVersion) -> Result<Vec<CrdUse>, EngineError> {
        let definitions = &csv.spec.custom_resource_definitions;
        let owned = definitions.owned.iter().map(|crd| (crd.name.clone(), true));
        let required = definitions.required.iter().map(|crd| (crd.name.clone(), false));
        let mut names: Vec<(String, bool)> = owned.chain(required).collect();
        names.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        names.dedup_by(|a, b| a.0 == b.0);
        let mut crds = Vec::new();
        for (name, owned) in names {
            let mut versions = Vec::new();
            let mut resources = None;
            if let Some(crd) = self.cluster.get(&known::CRD, "", &name)? {
                let served = checks::served(&crd);
                versions = served.iter().map(|resource| resource.version.clone()).collect();
                if let Some(resource) = served.first() {
                    resources = match self.cluster.list(resource, None) {
                        Ok(found) => Some(found.len()),
                        Err(ClusterError::Forbidden { .. }) => None,
                        Err(error) => return Err(error.into()),
                    };
                }
            }
            crds.push(CrdUse { name, owned, versions, resources });
        }
        Ok(crds)
    }

    /// The newest events about an operator's objects.
    fn events(&mut self, observed: &Observed) -> Result<Vec<String>, EngineError> {
        let mut about: Vec<String> = observed.csvs.iter().map(|csv| csv.name().to_owned()).collect();
        about.extend(observed.plans.iter().map(|plan| plan.name().to_owned()));
        about.extend(observed.deployments.iter().map(|found| found.name.clone()));
        let listed = match self.cluster.list(&known::EVENT, Some(&observed.namespace)) {
            Err(error @ ClusterError::Forbidden { .. }) => {
                self.say(format!("events are not shown: {error}"));
                return Ok(Vec::new());
            }
            listed => listed?,
        };
        let mut events: Vec<(String, String)> = listed
            .iter()
            .filter_map(|event| {
                let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or("");
                let name = text("/involvedObject/name");
                about.iter().any(|own| name == own || name.starts_with(&format!("{own}-"))).then(|| {
                    let kind = text("/involvedObject/kind").to_lowercase();
                    let line = format!("{kind}/{name}: {}: {}", text("/reason"), text("/message"));
                    (text("/lastTimestamp").to_owned(), line)
                })
            })
            .collect();
        events.sort();
        let skip = events.len().saturating_sub(EVENTS);
        Ok(events.into_iter().skip(skip).map(|(_, line)| line).collect())
    }
}
