//! Operators as people ask about them: one row of a table, or everything there is to say about one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::api::{
    ClusterServiceVersion, InstallModeKind, Key, Named as _, Object, OperatorGroup, PackageManifest,
    Subscription, known,
};
use super::checks;
use super::cluster::ClusterError;
use super::doctor::{self, Diagnosis, Observation, Scope, State, diagnose};
use super::engine::{Engine, EngineError};
use super::health;
use super::observe::Observed;
use super::offer::Offer;
use super::rollback::taken_away;

/// An operator: a Subscription and what has become of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operator {
    /// The Subscription.
    pub subscription: String,
    /// Its namespace.
    pub namespace: String,
    /// The package.
    pub package: String,
    /// The channel; empty for the package's default.
    pub channel: String,
    /// The CatalogSource, as `NAMESPACE/NAME`.
    pub catalog: String,
    /// `Automatic` or `Manual`.
    pub approval: String,
    /// The Subscription's state.
    pub state: String,
    /// What OLM resolved last.
    #[serde(rename = "currentCSV")]
    pub current_csv: String,
    /// What is installed, healthy or not.
    #[serde(rename = "installedCSV")]
    pub installed_csv: String,
    /// How that is doing, in a word; empty when it is not there.
    pub csv_phase: String,
    /// How that is doing, in two.
    pub csv_reason: String,
    /// The channel's head; empty when the catalog cannot be read.
    pub head: String,
    /// The plan that is not over.
    pub pending_plan: Option<PendingPlan>,
    /// Which namespaces it watches, as install modes name it; empty without an OperatorGroup.
    pub install_mode: String,
    /// These namespaces; one empty name means all.
    pub target_namespaces: Vec<String>,
    /// What is wrong besides the phase of what is installed: the sentence of the doctor's root cause, a Deployment that is
    /// missing, a rollback that was interrupted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// How it is doing, as the doctor says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<State>,
    /// Why it does not go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<RootCause>,
}

/// Why an operator does not go on, in brief.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RootCause {
    /// The code; `docs/doctor.md` has a section for each.
    pub code: &'static str,
    /// What failed, where, and why.
    pub sentence: String,
}

/// A plan that is not over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PendingPlan {
    /// Its name.
    pub name: String,
    /// What it brings.
    pub csvs: Vec<String>,
    /// Whether it was approved.
    pub approved: bool,
}

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

impl Operator {
    /// The row of a Subscription; `head` is the channel's.
    pub fn of(observed: &Observed, subscription: &Object<Subscription>, head: String) -> Self {
        let spec = &subscription.spec;
        let status = &subscription.status;
        let csv = observed.csv(&status.installed_csv);
        let targets = observed.groups.first().map(targets).unwrap_or_default();
        let plan = observed.plans.iter().find(|plan| {
            let owners = plan.metadata.owner_references.iter().flatten();
            let mut owners = owners.map(|owner| owner.name.as_str());
            !plan.is_over()
                && (plan.name() == status.plan() || owners.any(|name| name == subscription.name()))
        });
        let mode = match observed.groups.len() {
            1 => InstallModeKind::of(&observed.namespace, &targets).to_string(),
            _ => String::new(),
        };
        Self {
            subscription: subscription.name().to_owned(),
            namespace: subscription.namespace().to_owned(),
            package: spec.package.clone(),
            channel: spec.channel.clone(),
            catalog: format!("{}/{}", spec.source_namespace, spec.source),
            approval: spec.install_plan_approval.to_string(),
            state: status.state.to_string(),
            current_csv: status.current_csv.clone(),
            installed_csv: status.installed_csv.clone(),
            csv_phase: csv.map(|csv| csv.status.phase.to_string()).unwrap_or_default(),
            csv_reason: csv.map(|csv| csv.status.reason.clone()).unwrap_or_default(),
            head,
            pending_plan: plan.map(|plan| PendingPlan {
                name: plan.name().to_owned(),
                csvs: plan.spec.cluster_service_version_names.clone(),
                approved: plan.spec.approved,
            }),
            install_mode: mode,
            target_namespaces: targets,
            problems: health::problems(observed),
            health: None,
            cause: None,
        }
    }

    /// Adds what the doctor says. What waits for somebody is no problem.
    fn examined(mut self, diagnosis: &Diagnosis) -> Self {
        let mut all = diagnosis.operators.iter();
        let own =
            all.find(|one| (&one.subscription, &one.namespace) == (&self.subscription, &self.namespace));
        let Some(own) = own else { return self };
        self.health = Some(own.state);
        self.cause = own.code.zip(own.sentence.clone()).map(|(code, sentence)| RootCause { code, sentence });
        let problem = self.cause.as_ref().filter(|_| own.state == State::Broken);
        self.problems.splice(0..0, problem.map(|cause| cause.sentence.clone()));
        self
    }

    /// Whether it is healthy: installed and up, and nothing failed on the way to a newer version. A plan that waits for
    /// approval is no fault.
    pub fn is_well(&self) -> bool {
        self.csv_phase == "Succeeded" && self.problems.is_empty()
    }
}

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
fn known_or_over<T>(found: Result<T, EngineError>) -> Result<Option<T>, EngineError> {
    match found {
        Err(error @ EngineError::Cluster(ClusterError::Interrupted | ClusterError::TimedOut { .. })) => {
            Err(error)
        }
        found => Ok(found.ok()),
    }
}

/// The namespaces that a group is about, as far as it says.
pub(super) fn targets(group: &Object<OperatorGroup>) -> Vec<String> {
    let found = &group.status.namespaces;
    match (found.is_empty(), group.spec.target_namespaces.is_empty()) {
        (false, _) => found.clone(),
        (true, false) => group.spec.target_namespaces.clone(),
        (true, true) if group.spec.selector.is_none() => vec![String::new()],
        (true, true) => Vec::new(),
    }
}

impl Engine<'_> {
    /// The row of one operator.
    ///
    /// # Errors
    /// There is none of the name, or the cluster does not answer.
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
        let diagnosis = diagnose(&doctor::complete(self.cluster, seen, &scope, Some(now))?, &scope);
        let mut operator = Operator::of(&observed, &fresh, head).examined(&diagnosis);
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
            if !self.progress.operators("", &rows) || !self.progress.is_watched() {
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
            rows.push(Operator::of(&observed, subscription, head));
        }
        let scope = Scope { name: None, namespace: namespace.map(str::to_owned) };
        let now = self.cluster.time_of_day();
        let diagnosis = diagnose(&doctor::complete(self.cluster, seen, &scope, Some(now))?, &scope);
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
            rows.push(Operator { problems: vec![problem], ..Operator::of(&observed, &away, head) });
        }
        rows.sort_by(|a, b| (&a.namespace, &a.subscription).cmp(&(&b.namespace, &b.subscription)));
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
    /// There is none of the name, or the cluster does not answer.
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
