//! What a walk has made is removed again, and nothing else: the namespace was empty, and CRDs that were there before stay.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::marker::Marker;
use super::samples::{self, Sample};
use crate::lifecycle::api::{
    ClusterServiceVersion, Key, Named as _, Object, Resource, Subscription, known, made_here,
};
use crate::lifecycle::cluster::{Cluster, ClusterError};
use crate::lifecycle::engine::{Catalogs, Engine, EngineError, Options, Progress};
use crate::lifecycle::uninstall::Uninstall;

/// How long finalizers of samples, and each part of an operator, may take.
const FINALIZERS: Duration = Duration::from_secs(60);
/// How long the removal of an operator may take.
const REMOVAL: Duration = Duration::from_secs(180);

/// What is cleaned up, and with what.
pub(super) struct Cleanup<'c> {
    pub(super) cluster: &'c mut dyn Cluster,
    pub(super) catalogs: &'c dyn Catalogs,
    pub(super) progress: &'c dyn Progress,
    pub(super) namespace: &'c str,
    pub(super) marker: &'c Marker,
    /// Groups and kinds that the package's bundles provide.
    pub(super) provided: &'c BTreeSet<(String, String)>,
}

impl Cleanup<'_> {
    /// Removes operators, their CRDs and the samples. Returns what is still there.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(super) fn operators(&mut self, samples: &mut Vec<Sample>) -> Result<Vec<String>, EngineError> {
        samples::remove(self.cluster, samples, FINALIZERS)?;
        let mut crds = self.owned_crds()?;
        crds.extend(self.provided_crds()?);
        // What was asked for goes before what it needs.
        let mut subscriptions = self.subscriptions()?;
        subscriptions.sort_by_key(|found| found.spec.package != self.marker.package);
        for subscription in &subscriptions {
            self.uninstall(subscription.name(), &crds)?;
        }
        // What is left where there was no Subscription any more, or no plan yet.
        self.uninstall(&self.marker.package, &crds)?;
        // Where OLM was stuck, the parts go one by one.
        for resource in [&*known::SUBSCRIPTION, &*known::INSTALL_PLAN, &*known::CSV, &*known::OPERATOR_GROUP]
        {
            for found in self.own(resource)? {
                self.delete(resource, &found)?;
            }
        }
        for name in &crds {
            if self.marker.kept.contains(name) {
                continue;
            }
            self.delete(&known::CRD, &Key::new(&known::CRD, "", name))?;
        }
        samples.clear();
        self.left(&crds)
    }

    /// Removes the CatalogSources that were made for the run.
    pub(super) fn catalog_sources(&mut self) -> Result<(), EngineError> {
        for found in self.cluster.list(&known::CATALOG_SOURCE, Some(self.namespace))? {
            if made_here(&found) {
                self.delete(&known::CATALOG_SOURCE, &Key::of(&found))?;
            }
        }
        Ok(())
    }

    /// Removes them, the note, and the namespaces.
    pub(super) fn the_rest(&mut self) -> Result<(), EngineError> {
        self.catalog_sources()?;
        for name in &self.marker.namespaces {
            if name != self.namespace {
                self.cluster.delete(&known::NAMESPACE, &Key::new(&known::NAMESPACE, "", name))?;
            }
        }
        // Last: until then the next run can go on from here.
        self.cluster.delete(&known::CONFIG_MAP, &Marker::key(self.namespace))?;
        if self.marker.namespaces.contains(self.namespace) {
            self.cluster.delete(&known::NAMESPACE, &Key::new(&known::NAMESPACE, "", self.namespace))?;
        }
        Ok(())
    }

    fn engine(&mut self) -> Engine<'_> {
        let options = Options { timeout: REMOVAL, settle: Duration::ZERO, wait: true, ..Options::default() };
        Engine::new(self.cluster, self.catalogs, self.progress, options)
    }

    /// Removes one operator, as far as the verb can.
    fn uninstall(&mut self, name: &str, crds: &BTreeSet<String>) -> Result<(), EngineError> {
        let request = Uninstall {
            name: name.to_owned(),
            namespace: Some(self.namespace.to_owned()),
            delete_crds: crds.iter().all(|crd| !self.marker.kept.contains(crd)),
            accept_conversion_gap: true,
            accept_dependents: true,
            accept_finalizers: true,
        };
        match self.engine().uninstall(&request) {
            Ok(_) => Ok(()),
            Err(
                EngineError::Refused { .. }
                | EngineError::Stuck(_)
                | EngineError::Cluster(ClusterError::Refused { .. } | ClusterError::Failed { .. }),
            ) => Ok(()),
            // The time of the command itself is another matter.
            Err(EngineError::TimedOut { .. }) if !self.is_over() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn is_over(&self) -> bool {
        self.cluster.deadline().is_some_and(|deadline| self.cluster.now() >= deadline)
    }

    fn subscriptions(&mut self) -> Result<Vec<Object<Subscription>>, ClusterError> {
        let found = self.cluster.list(&known::SUBSCRIPTION, Some(self.namespace))?;
        Ok(found.into_iter().filter_map(|found| Object::read(found).ok()).collect())
    }

    fn csvs(&mut self) -> Result<Vec<Object<ClusterServiceVersion>>, ClusterError> {
        let found = self.cluster.list(&known::CSV, Some(self.namespace))?;
        let found = found.into_iter().filter_map(|found| Object::<ClusterServiceVersion>::read(found).ok());
        Ok(found.filter(|csv| !csv.is_copied()).collect())
    }

    /// The CRDs that the namespace's operators own, what they depend on among them.
    fn owned_crds(&mut self) -> Result<BTreeSet<String>, ClusterError> {
        let csvs = self.csvs()?;
        let owned = csvs.iter().flat_map(|csv| &csv.spec.custom_resource_definitions.owned);
        Ok(owned.map(|crd| crd.name.clone()).collect())
    }

    /// The CRDs of the package that the cluster has, whatever created them.
    fn provided_crds(&mut self) -> Result<BTreeSet<String>, ClusterError> {
        let found = self.cluster.list(&known::CRD, None)?;
        Ok(of_package(&found, self.provided))
    }

    /// What of a kind is in the namespace and belongs there.
    fn own(&mut self, resource: &Resource) -> Result<Vec<Key>, ClusterError> {
        if *resource == *known::CSV {
            return Ok(self.csvs()?.iter().map(|csv| csv.key()).collect());
        }
        let found = self.cluster.list(resource, Some(self.namespace))?;
        let is_ours = |found: &&Value| resource.kind != known::OPERATOR_GROUP.kind || made_here(found);
        Ok(found.iter().filter(is_ours).map(Key::of).collect())
    }

    /// Deletes something and waits a while until it is gone.
    fn delete(&mut self, resource: &Resource, key: &Key) -> Result<(), EngineError> {
        let mut engine = self.engine();
        engine.options.timeout = FINALIZERS;
        engine.delete(resource, key)?;
        match engine.gone(resource, key) {
            Err(EngineError::TimedOut { .. }) if !self.is_over() => Ok(()),
            done => done,
        }
    }

    /// What should be gone and is not.
    fn left(&mut self, crds: &BTreeSet<String>) -> Result<Vec<String>, EngineError> {
        let mut left = Vec::new();
        for resource in [&*known::SUBSCRIPTION, &*known::CSV] {
            for key in self.own(resource)? {
                // A list may be a moment older than the deletion.
                if self.cluster.get(resource, &key.namespace, &key.name)?.is_some() {
                    left.push(key.placed());
                }
            }
        }
        for name in crds.iter().filter(|name| !self.marker.kept.contains(*name)) {
            if self.cluster.get(&known::CRD, "", name)?.is_some() {
                left.push(Key::new(&known::CRD, "", name).placed());
            }
        }
        Ok(left)
    }
}

/// The names of the CRDs that have one of these groups and kinds.
pub(super) fn of_package(crds: &[Value], provided: &BTreeSet<(String, String)>) -> BTreeSet<String> {
    let text = |crd: &Value, path: &str| crd.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
    let is_provided =
        |crd: &&Value| provided.contains(&(text(crd, "/spec/group"), text(crd, "/spec/names/kind")));
    crds.iter().filter(is_provided).map(|crd| Key::of(crd).name).collect()
}
