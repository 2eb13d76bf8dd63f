//! `operator rollback`: OLM does not go back, so an older version is installed anew, if nothing that is stored would be lost.

use serde_json::{Value, json};

use super::api::{Approval, ClusterServiceVersion, Key, Named as _, Object, Resource, Subscription, known};
use super::checks;
use super::decide::Goal;
use super::engine::{Engine, EngineError};
use super::look::Operator;
use super::observe::Observed;
use super::offer::OfferedBundle;
use super::schema::judge;
use super::upgrade::{bundle_of, channel_of};

/// The annotation on an OperatorGroup that remembers a Subscription while it is away.
const UNDER_WAY: &str = "olmkit.io/rollback";
/// How long an operator is away, as it was seen.
const OUTAGE: &str = "about 30 s";

/// What to roll back, and how far.
#[derive(Clone, Debug, Default)]
pub struct Rollback {
    /// The Subscription, or its package.
    pub name: String,
    /// Its namespace; none to look everywhere.
    pub namespace: Option<String>,
    /// The version to go back to.
    pub to: String,
    /// Whether custom resources may be without the webhook that converts them meanwhile.
    pub accept_conversion_gap: bool,
    /// Whether schemas may have rules that are not evaluated here.
    pub accept_unchecked: bool,
}

/// Where what a rollback needs comes from and goes to.
pub trait Archive {
    /// The manifests of a bundle.
    ///
    /// # Errors
    /// It cannot be read.
    fn manifests(
        &self,
        name: &str,
        bundle: &OfferedBundle,
    ) -> Result<Vec<Value>, Box<dyn std::error::Error + Send + Sync>>;

    /// Keeps objects, and says where.
    ///
    /// # Errors
    /// They cannot be written.
    fn keep(&self, name: &str, objects: &[Value])
    -> Result<String, Box<dyn std::error::Error + Send + Sync>>;
}

impl Engine<'_> {
    /// Goes back to an older version.
    ///
    /// # Errors
    /// Something stored would be lost, which is said before anything is changed; or the old version does not come up.
    pub fn rollback(&mut self, request: &Rollback, archive: &dyn Archive) -> Result<Operator, EngineError> {
        if let Some((namespace, subscription)) = self.interrupted(request)? {
            self.say("an earlier rollback was interrupted: going on with it");
            return self.reinstall(&namespace, &subscription);
        }
        let subscription = self.expect(&request.name, request.namespace.as_deref())?;
        let (namespace, name) = (subscription.namespace().to_owned(), subscription.name().to_owned());
        let observed = self.look(&namespace, &name)?;
        let spec = &subscription.spec;
        let offer = self.offer(&subscription)?;
        let package = offer.packages.get(&spec.package).ok_or_else(|| {
            EngineError::refused(format!(
                "the catalog `{}` has no package `{}` any more",
                spec.source, spec.package
            ))
        })?;
        let channel = channel_of(package, &spec.package, &spec.channel)?;
        let target = bundle_of(package, channel, &request.to)?;
        let Some(installed) = observed.installed() else {
            return Err(EngineError::refused(format!("{} has nothing installed", subscription.key())));
        };
        if installed.name() == target {
            self.say(format!("`{target}` is what is installed"));
            return self.row(&subscription);
        }
        let bundle = package.bundles.get(&target).cloned().unwrap_or_default();
        let manifests = archive
            .manifests(&target, &bundle)
            .map_err(|error| EngineError::Catalog { name: spec.source.clone(), source: error })?;
        let backup = self.nothing_is_lost(request, installed, &manifests)?;
        if let Some(group) = observed.groups.first().filter(|_| observed.groups.len() == 1) {
            let place = archive
                .keep(&format!("{namespace}-{name}"), &backup)
                .map_err(|error| EngineError::Catalog { name: "backup".into(), source: error })?;
            self.say(format!("{} custom resources are kept in {place}", backup.len()));
            self.say(format!("the operator is away for {OUTAGE}; custom resources stay"));
            let fresh = again(&subscription, &target);
            let remember = json!({"metadata": {"annotations": {UNDER_WAY: fresh.to_string()}}});
            self.patch(&known::OPERATOR_GROUP, &group.key(), remember)?;
            return self.reinstall(&namespace, &fresh);
        }
        Err(EngineError::refused(format!("the namespace `{namespace}` has not exactly one OperatorGroup")))
    }

    /// A rollback that was interrupted: the Subscription as it is to be made again.
    fn interrupted(&mut self, request: &Rollback) -> Result<Option<(String, Value)>, EngineError> {
        for group in self.cluster.list(&known::OPERATOR_GROUP, request.namespace.as_deref())? {
            let noted = group.pointer("/metadata/annotations").and_then(|all| all.get(UNDER_WAY)?.as_str());
            let Some(fresh) = noted.and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
                continue;
            };
            let names = [&fresh["metadata"]["name"], &fresh["spec"]["name"]];
            if names.iter().any(|name| **name == request.name) {
                return Ok(Some((Key::of(&group).namespace, fresh)));
            }
        }
        Ok(None)
    }

    /// Refuses when something that is stored would be lost or could not be read; gives back all custom resources.
    fn nothing_is_lost(
        &mut self,
        request: &Rollback,
        installed: &ClusterServiceVersion,
        manifests: &[Value],
    ) -> Result<Vec<Value>, EngineError> {
        let hooks = installed.spec.webhook_definitions.iter().flat_map(|hook| &hook.conversion_crds);
        if let Some(crd) = hooks.into_iter().next().filter(|_| !request.accept_conversion_gap) {
            return Err(EngineError::refused_help(
                format!("`{crd}` is converted by a webhook, which goes while the operator is away"),
                "--accept-conversion-gap takes that: only the stored version can be read meanwhile",
            ));
        }
        let old_crds: Vec<&Value> =
            manifests.iter().filter(|object| object["kind"] == known::CRD.kind.as_str()).collect();
        let mut all = Vec::new();
        for owned in &installed.spec.custom_resource_definitions.owned {
            let Some(live) = self.cluster.get(&known::CRD, "", &owned.name)? else { continue };
            let Some(old) = old_crds.iter().find(|crd| Key::of(crd).name == owned.name) else { continue };
            let versions = |crd: &Value| {
                crd.pointer("/spec/versions").and_then(Value::as_array).cloned().unwrap_or_default()
            };
            let stored =
                live.pointer("/status/storedVersions").and_then(Value::as_array).cloned().unwrap_or_default();
            if let Some(lost) =
                stored.iter().find(|stored| !versions(old).iter().any(|version| version["name"] == **stored))
            {
                let lost = lost.as_str().unwrap_or("");
                return Err(EngineError::refused_help(
                    format!(
                        "objects of `{}` are stored at {lost}, which the old CRD does not have",
                        owned.name
                    ),
                    "migrate them to a version that it has, and take the other one out of `status.storedVersions`",
                ));
            }
            all.extend(self.judge_all(request, &owned.name, &live, old)?);
        }
        all.sort_by_key(Key::of);
        all.dedup_by_key(|object| Key::of(object));
        Ok(all)
    }

    /// Judges every custom resource of a CRD by the old schemas, at every version that both serve.
    fn judge_all(
        &mut self,
        request: &Rollback,
        crd: &str,
        live: &Value,
        old: &Value,
    ) -> Result<Vec<Value>, EngineError> {
        let mut all = Vec::new();
        let served: Vec<Resource> = checks::served(live);
        for resource in &served {
            let found = self.cluster.list(resource, None)?;
            let versions = old.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
            let version = versions.into_iter().find(|version| version["name"] == resource.version.as_str());
            if let Some(schema) = version.and_then(|version| version.pointer("/schema/openAPIV3Schema")) {
                for object in &found {
                    let judgement = judge(schema, object);
                    let key = Key::of(object);
                    let name = if key.namespace.is_empty() {
                        key.name
                    } else {
                        format!("{}/{}", key.namespace, key.name)
                    };
                    if let Some(fault) = judgement.faults.first() {
                        return Err(EngineError::refused_help(
                            format!("`{name}` of `{crd}` does not fit the old schema: {fault}"),
                            "change it so that it fits both",
                        ));
                    }
                    if let Some(unknown) = judgement.unknown.first().filter(|_| !request.accept_unchecked) {
                        return Err(EngineError::refused_help(
                            format!("the old schema of `{crd}` has what is not evaluated here: {unknown}"),
                            "look at it yourself, then go on with --accept-unchecked",
                        ));
                    }
                }
            }
            all.extend(found);
        }
        Ok(all)
    }

    /// Takes Subscription and ClusterServiceVersions away and installs the old version; goes on where it was interrupted.
    fn reinstall(&mut self, namespace: &str, fresh: &Value) -> Result<Operator, EngineError> {
        let target = fresh["spec"]["startingCSV"].as_str().unwrap_or("").to_owned();
        let name = Key::of(fresh).name;
        let observed = self.look(namespace, &name)?;
        let is_fresh = |found: &Object<Subscription>| {
            found.spec.starting_csv == target && owns_nothing_newer(&observed, found, &target)
        };
        if !observed.subscription.as_ref().is_some_and(is_fresh) {
            self.take_away(&observed, fresh)?;
            self.create(&known::SUBSCRIPTION, fresh.clone())?;
        }
        if self.options.dry_run {
            return Ok(Operator {
                subscription: name,
                namespace: namespace.to_owned(),
                ..Operator::default()
            });
        }
        let goal = Goal { way: vec![target], approve: true, ..Goal::default() };
        if self.options.wait {
            self.reach(namespace, &name, &goal)?;
            let forget = json!({"metadata": {"annotations": {UNDER_WAY: null}}});
            for group in &observed.groups {
                self.patch(&known::OPERATOR_GROUP, &group.key(), forget.clone())?;
            }
            self.say("the approval is Manual now: Automatic would go on to the channel's head again");
        } else {
            self.one_step(namespace, &name, &goal)?;
        }
        self.status(&name, Some(namespace))
    }

    fn take_away(&mut self, observed: &Observed, fresh: &Value) -> Result<(), EngineError> {
        if let Some(found) = &observed.subscription {
            self.delete(&known::SUBSCRIPTION, &found.key())?;
            self.gone(&known::SUBSCRIPTION, &found.key())?;
        }
        let package = fresh["spec"]["name"].as_str();
        for csv in &observed.csvs {
            if super::simulate::package_of(csv).as_deref() == package {
                self.delete(&known::CSV, &csv.key())?;
            }
        }
        for csv in &observed.csvs {
            if super::simulate::package_of(csv).as_deref() == package {
                self.gone(&known::CSV, &csv.key())?;
            }
        }
        Ok(())
    }
}

/// Whether a Subscription is the one that was made again already.
fn owns_nothing_newer(observed: &Observed, found: &Subscription, target: &str) -> bool {
    let installed = found.status.installed_csv.as_str();
    installed.is_empty() && observed.csvs.iter().all(|csv| csv.name() == target) || installed == target
}

/// A Subscription as it is made again: it begins with the old version and goes nowhere by itself.
fn again(subscription: &Object<Subscription>, target: &str) -> Value {
    let document = subscription.document();
    let mut spec = document["spec"].clone();
    spec["startingCSV"] = json!(target);
    spec["installPlanApproval"] = json!(Approval::Manual.as_str());
    let labels = document.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    json!({
        "apiVersion": document["apiVersion"], "kind": document["kind"], "spec": spec,
        "metadata": {"name": subscription.name(), "namespace": subscription.namespace(), "labels": labels},
    })
}
