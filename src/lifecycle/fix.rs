//! The repairs that the doctor applies itself: those that worked on real OLM, interrupt nothing that runs and lose nothing.
//!
//! Each looks at its objects again, does nothing when the cause is still there or somebody else was at work, asks for the rights of
//! all its steps before the first one, and writes with the resource version that it has looked at. What is not done says why.

use olmkit_bundle::version::Version;
use olmkit_catalog::graph::VersionRelease;
use serde_json::{Value, json};

use super::api::{
    Approval, ClusterServiceVersion, CsvPhase, InstallPlan, InstallPlanPhase, Key, Named as _, Object,
    Resource, Subscription, known,
};
use super::cluster::ClusterError;
use super::doctor::{self, Cause, Diagnosis, Fix, ObjectRef};
use super::engine::{Engine, EngineError};
use super::properties::package_of;
use super::rights::Right;
use crate::sentence::Sentence;
use crate::shell::command;

/// The result of a repair.
enum Outcome {
    /// It was done, or would be.
    Done(Sentence),
    /// It was not, and why.
    Left(Sentence),
}

use Outcome::{Done, Left};

impl Engine<'_> {
    /// Applies the repairs of a diagnosis that are safe, one after another; with `dry_run` says which it would.
    ///
    /// # Errors
    /// The cluster does not answer or does not allow it.
    pub fn fix(&mut self, diagnosis: &Diagnosis) -> Result<Vec<Fix>, EngineError> {
        let mut fixes = Vec::new();
        for cause in &diagnosis.causes {
            let outcome = match cause.code {
                "bundle-image-pull" | "bundle-invalid" | "unpack-failed" => self.unpack_again(cause),
                "crd-invalidates-resources" | "crd-stored-version" => self.retry(cause),
                "csv-orphaned" => self.adopt(cause),
                doctor::CSV_DELETED => self.recreate(cause),
                // These are the codes of `FIXABLE`.
                _ => Ok(Left(
                    "its repairs cost something or need a choice: run one of the commands above".into(),
                )),
            };
            let (fits, what) = match outcome {
                Ok(Done(what)) => (true, what),
                Ok(Left(why)) => (false, why),
                Err(EngineError::Cluster(
                    ClusterError::Conflict { key } | ClusterError::NotFound { key },
                )) => {
                    (false, format!("{} was changed meanwhile: run the command again", key.placed()).into())
                }
                Err(error) => return Err(error),
            };
            let done = fits && !self.options.dry_run;
            fixes.push(Fix { code: cause.code, object: cause.object.clone(), done, what, fits });
        }
        Ok(fixes)
    }

    /// Deletes a failed unpack Job with its ConfigMap: OLM unpacks the bundle again.
    fn unpack_again(&mut self, cause: &Cause) -> Result<Outcome, EngineError> {
        if cause.object.kind == known::INSTALL_PLAN.kind {
            return Ok(Left("its InstallPlan has failed for good: run one of the commands above".into()));
        }
        let Some(reference) = named(cause, &known::JOB) else {
            return Ok(Left(
                "its unpack Job still tries: OLM gives it up at its deadline, ten minutes by default".into(),
            ));
        };
        let Some(job) = self.cluster.get(&known::JOB, &reference.namespace, &reference.name)? else {
            return Ok(Left("its unpack Job is gone: OLM unpacks the bundle again".into()));
        };
        let conditions = job.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let mut failed = conditions.filter(|one| one["type"] == "Failed" && one["status"] == "True");
        if failed.next().is_none() {
            return Ok(Left(
                format!(
                    "job/{} still tries: OLM gives it up at its deadline, ten minutes by default",
                    reference.name
                )
                .into(),
            ));
        }
        let owners = job.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
        let owner = owners.into_iter().find(|owner| owner["kind"] == known::CONFIG_MAP.kind.as_str());
        let map = owner.and_then(|owner| owner["name"].as_str()).unwrap_or(&reference.name).to_owned();
        let map = self.cluster.get(&known::CONFIG_MAP, &reference.namespace, &map)?;
        let rights = [(&known::JOB, Some(&job)), (&known::CONFIG_MAP, map.as_ref())].into_iter();
        let rights = rights.filter_map(|(kind, object)| Some((kind, Key::of(object?))));
        self.need(rights.map(|(kind, key)| Right::new("delete", kind, &key.namespace, &key.name)))?;
        self.delete_exactly(&known::JOB, &job)?;
        let mut what = Key::of(&job).placed();
        if let Some(map) = map {
            self.delete_exactly(&known::CONFIG_MAP, &map)?;
            what = format!("{what} and {}", Key::of(&map).placed());
        }
        Ok(Done(format!("deletes {what}: OLM unpacks the bundle again within 30 seconds").into()))
    }

    /// Runs a failed plan again whose cause is gone.
    fn retry(&mut self, cause: &Cause) -> Result<Outcome, EngineError> {
        let ObjectRef { namespace, name, .. } = &cause.object;
        let found = self.cluster.get(&known::INSTALL_PLAN, namespace, name)?;
        let Some(plan) = found.and_then(|found| Object::<InstallPlan>::read(found).ok()) else {
            return Ok(Left(format!("installplan/{name} is gone").into()));
        };
        if plan.status.phase != InstallPlanPhase::Failed {
            return Ok(Left(
                format!("installplan/{name} has not failed yet: OLM itself retries for a minute").into(),
            ));
        }
        if let Some(blocker) = self.crd_blockers_of(&plan)?.first() {
            return Ok(Left(format!("its cause is still there: {blocker}").into()));
        }
        self.need([Right::of_status(&known::INSTALL_PLAN, namespace, name)])?;
        let patch = json!({
            "metadata": {"resourceVersion": plan.metadata.resource_version},
            "status": {"phase": InstallPlanPhase::Installing.as_str()},
        });
        self.patch_status(&known::INSTALL_PLAN, &plan.key(), patch)?;
        Ok(Done(format!("sets {} to Installing: OLM runs it again", plan.key().placed()).into()))
    }

    /// Lets the Subscription of its package know a version that it has forgotten.
    fn adopt(&mut self, cause: &Cause) -> Result<Outcome, EngineError> {
        let ObjectRef { namespace, name, .. } = &cause.object;
        let csv = self.cluster.get(&known::CSV, namespace, name)?;
        let Some(csv) = csv.and_then(|found| Object::<ClusterServiceVersion>::read(found).ok()) else {
            return Ok(Left(format!("clusterserviceversion/{name} is gone").into()));
        };
        let Some(subscription) = named(cause, &known::SUBSCRIPTION) else {
            return Ok(Left("no Subscription is there to adopt it".into()));
        };
        let Some(subscription) = self.subscription(namespace, &subscription.name)? else {
            return Ok(Left(format!("subscription/{} is gone", subscription.name).into()));
        };
        let package = package_of(&csv).unwrap_or_default();
        if package != subscription.spec.package {
            return Ok(Left(
                format!(
                    "`{name}` is of the package `{package}`, and no Subscription of the namespace is for that"
                )
                .into(),
            ));
        }
        let installed = subscription.status.installed_csv.as_str();
        if !installed.is_empty() && self.cluster.get(&known::CSV, namespace, installed)?.is_some() {
            return Ok(Left(format!("{} has `{installed}` installed", subscription.key()).into()));
        }
        self.record(&subscription, name)?;
        Ok(Done(
            format!("{} records `{name}` as installed: nothing is restarted", subscription.key().placed())
                .into(),
        ))
    }

    /// Recreates a Subscription that records a version which was deleted; or carries an upgrade on that failed half-way, from the
    /// version that is still there.
    fn recreate(&mut self, cause: &Cause) -> Result<Outcome, EngineError> {
        let ObjectRef { namespace, name, .. } = &cause.object;
        let Some(subscription) = self.subscription(namespace, name)? else {
            return Ok(Left(format!("subscription/{name} is gone").into()));
        };
        let csvs = self.cluster.list(&known::CSV, Some(namespace))?;
        let csvs: Vec<Object<ClusterServiceVersion>> =
            csvs.into_iter().filter_map(|csv| Object::read(csv).ok()).collect();
        let own = csvs.iter().filter(|csv| !csv.is_copied());
        let own: Vec<_> =
            own.filter(|csv| package_of(csv).as_deref() == Some(&subscription.spec.package)).collect();
        let status = &subscription.status;
        if own.iter().any(|csv| csv.name() == status.installed_csv || csv.name() == status.current_csv) {
            return Ok(Left("its ClusterServiceVersion is there again".into()));
        }
        match &own[..] {
            [] => self.create_again(&subscription),
            [old] if old.status.phase == CsvPhase::Replacing => self.carry_on(&subscription, old),
            _ => Ok(Left(
                format!(
                    "{} of its package are left in the namespace: run one of the commands above",
                    own.iter().map(|csv| format!("`{}`", csv.name())).collect::<Vec<_>>().join(", ")
                )
                .into(),
            )),
        }
    }

    fn create_again(&mut self, subscription: &Object<Subscription>) -> Result<Outcome, EngineError> {
        let key = subscription.key();
        let Some(document) = self.cluster.get(&known::SUBSCRIPTION, &key.namespace, &key.name)? else {
            return Ok(Left(format!("{key} is gone").into()));
        };
        let field = |path: &str| document.pointer(path).cloned().unwrap_or(Value::Null);
        let mut again = json!({
            "apiVersion": known::SUBSCRIPTION.api_version(), "kind": known::SUBSCRIPTION.kind,
            "metadata": {
                "name": key.name, "namespace": key.namespace,
                "labels": field("/metadata/labels"), "annotations": field("/metadata/annotations"),
            },
            "spec": document["spec"],
        });
        // Where it began is long past: OLM would go back to it.
        let installed = subscription.status.installed_csv.as_str();
        if !installed.is_empty() {
            again["spec"]["startingCSV"] = installed.into();
        }
        let right = |verb, name| Right::new(verb, &known::SUBSCRIPTION, &key.namespace, name);
        // The right to create cannot be limited to a name.
        self.need([right("delete", key.name.as_str()), right("create", "")])?;
        self.delete_exactly(&known::SUBSCRIPTION, &document)?;
        let created = self
            .gone(&known::SUBSCRIPTION, &key)
            .and_then(|()| self.create(&known::SUBSCRIPTION, again.clone()));
        // It must not be lost.
        let by_hand = || Sentence::from("create it: ") + command!("echo {} | kubectl create -f -", again);
        match created {
            Ok(()) if subscription.spec.install_plan_approval == Approval::Manual => Ok(Done(
                Sentence::from(format!(
                    "recreates {}: OLM creates an InstallPlan for `{installed}` within about 10 seconds, which you have to approve: ",
                    key.placed()
                )) + command!("olmkit operator approve {} -n {}", key.name, key.namespace),
            )),
            Ok(()) => Ok(Done(
                format!("recreates {}: OLM installs `{installed}` within about 10 seconds", key.placed())
                    .into(),
            )),
            // How the command ends says more than that this is undone.
            Err(
                error @ (EngineError::TimedOut { .. }
                | EngineError::Cluster(ClusterError::Interrupted | ClusterError::TimedOut { .. })),
            ) => {
                let what = format!("{} was deleted and not created again; ", key.placed());
                self.say(Sentence::from(what) + by_hand());
                Err(error)
            }
            Err(error) => Err(EngineError::refused_help(
                format!("{} was deleted and could not be created again: {error}", key.placed()),
                by_hand(),
            )),
        }
    }

    /// Records the old version as installed, if the channel has a way from it that avoids the one that failed.
    fn carry_on(
        &mut self,
        subscription: &Object<Subscription>,
        old: &Object<ClusterServiceVersion>,
    ) -> Result<Outcome, EngineError> {
        let offer = match self.offer(subscription) {
            Err(EngineError::Catalog { .. } | EngineError::Refused { .. }) => {
                return Ok(Left("its catalog cannot be read from here: name it with --catalog-from".into()));
            }
            offer => offer?,
        };
        let package = offer.packages.get(&subscription.spec.package);
        let channel = package.and_then(|package| package.channel(&subscription.spec.channel));
        let version = Version::parse(&old.spec.version).ok().map(VersionRelease::from);
        let next = channel.and_then(|channel| channel.next(old.name(), version.as_ref()));
        let failed = subscription.status.current_csv.as_str();
        match next {
            Some(next) if next != failed => {
                self.record(subscription, old.name())?;
                Ok(Done(format!(
                    "{} records `{}` as installed: OLM upgrades to `{next}` about 10 seconds later",
                    subscription.key().placed(),
                    old.name()
                ).into()))
            }
            _ => Ok(Left(format!(
                "no upgrade path from `{}` avoids `{failed}`: publish one, or run one of the commands above",
                old.name()
            ).into())),
        }
    }

    /// Writes into the status of a Subscription what is installed.
    fn record(&mut self, subscription: &Object<Subscription>, csv: &str) -> Result<(), EngineError> {
        let key = subscription.key();
        self.need([Right::of_status(&known::SUBSCRIPTION, &key.namespace, &key.name)])?;
        let now = doctor::format_time(self.cluster.time_of_day());
        let patch = json!({
            "metadata": {"resourceVersion": subscription.metadata.resource_version},
            "status": {"installedCSV": csv, "currentCSV": csv, "state": "AtLatestKnown", "lastUpdated": now},
        });
        self.patch_status(&known::SUBSCRIPTION, &key, patch)
    }

    fn subscription(
        &mut self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Object<Subscription>>, EngineError> {
        let found = self.cluster.get(&known::SUBSCRIPTION, namespace, name)?;
        Ok(found.and_then(|found| Object::read(found).ok()))
    }
}

/// The object of a kind that a cause is about, or that shows it.
fn named(cause: &Cause, kind: &Resource) -> Option<ObjectRef> {
    let all = std::iter::once(&cause.object).chain(cause.evidence.iter().map(|one| &one.object));
    all.into_iter().find(|one| one.kind == kind.kind).cloned()
}
