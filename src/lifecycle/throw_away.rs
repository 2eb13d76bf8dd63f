//! A catalog of a single bundle, made for one installation: what lets an author see a bundle run under OLM before there is a
//! catalog to put it into.
//!
//! Its CatalogSource is in the operator's own namespace, where nobody else's Subscriptions see it, and goes with the operator.
//! The image has no server: OLM takes the catalog out of it and serves it with its own.

use std::sync::Arc;

use olmkit_bundle::version::Version;
use olmkit_catalog::graph::VersionRelease;
use serde_json::{Value, json};

use super::api::{CatalogSource, Named as _, Object, known, label, made_here};
use super::engine::{Engine, EngineError};
use super::observe::Observed;
use super::offer::{Offer, OfferedChannel, OfferedPackage};
use super::upgrade::find_way;
use crate::sentence::Sentence;
use crate::shell::command;

/// A catalog of a single bundle.
#[derive(Clone, Debug)]
pub struct SingleBundleOffer {
    /// Its image, by digest: another bundle makes another one.
    pub image: String,
    /// What it offers.
    pub offer: Arc<Offer>,
}

/// What such a catalog's CatalogSource is called. A Service gets the same name, which must be a label of DNS.
pub(super) fn name_of(package: &str) -> String {
    let name: String = format!("olmkit-{package}").chars().take(63).collect();
    name.trim_end_matches('-').to_owned()
}

impl SingleBundleOffer {
    fn document(&self, package: &str, namespace: &str) -> Value {
        json!({
            "apiVersion": known::CATALOG_SOURCE.api_version(), "kind": known::CATALOG_SOURCE.kind,
            "metadata": {
                "name": name_of(package), "namespace": namespace, "labels": {label::CREATED_BY: label::OLMKIT},
            },
            "spec": {
                "sourceType": "grpc", "image": self.image, "displayName": format!("{package}, a single bundle"),
                "publisher": label::OLMKIT, "grpcPodConfig": {"extractContent": {"catalogDir": "/configs"}},
            },
        })
    }
}

impl Engine<'_> {
    /// The CatalogSource for a catalog as it should be, and as it is there, if it is.
    pub(super) fn throw_away(
        &mut self,
        package: &str,
        namespace: &str,
        made: &SingleBundleOffer,
    ) -> Result<(Object<CatalogSource>, Option<Object<CatalogSource>>), EngineError> {
        let misfit = |error: super::api::MisfitError| EngineError::refused(error.to_string());
        let wanted = Object::<CatalogSource>::read(made.document(package, namespace)).map_err(misfit)?;
        let there = self.cluster.get(&known::CATALOG_SOURCE, namespace, wanted.name())?;
        let there = there.map(Object::<CatalogSource>::read).transpose().map_err(misfit)?;
        if let Some(there) = there.as_ref().filter(|there| !made_here(there.document())) {
            return Err(EngineError::refused_help(
                format!("{} already exists and was not created by olmkit", there.key()),
                "install into another namespace",
            ));
        }
        Ok((wanted, there))
    }

    /// Makes OLM serve the catalog.
    pub(super) fn serve(
        &mut self,
        wanted: &Object<CatalogSource>,
        there: Option<&Object<CatalogSource>>,
    ) -> Result<(), EngineError> {
        match there {
            None => self.create(&known::CATALOG_SOURCE, wanted.document().clone()),
            Some(there) if there.spec.image != wanted.spec.image => {
                let patch = json!({"spec": {"image": wanted.spec.image}});
                self.patch(&known::CATALOG_SOURCE, &there.key(), patch)
            }
            Some(_) => Ok(()),
        }
    }
}

/// The bundles from what is installed to the one of the catalog; that one alone when nothing is.
pub(super) fn way_to_bundle(
    package: &OfferedPackage,
    channel: &OfferedChannel,
    csv: &str,
    observed: &Observed,
    changed: bool,
) -> Result<Vec<String>, EngineError> {
    match observed.installed() {
        Some(installed) if installed.name() == csv && changed => Err(EngineError::refused_help(
            format!("`{csv}` is already installed, and OLM does not reinstall a bundle with the same name"),
            {
                let name = observed.subscription.as_ref().map_or("", |found| found.name());
                let namespace = &observed.namespace;
                Sentence::from("give the bundle a new version that replaces this one, or run ")
                    + command!("olmkit operator uninstall {} -n {}", name, namespace)
                    + " first"
            },
        )),
        Some(installed) if installed.name() != csv => {
            let version = Version::parse(&installed.spec.version).ok().map(VersionRelease::from);
            Ok(find_way(package, channel, installed, version.as_ref(), None)?.bundles)
        }
        _ => Ok(vec![csv.to_owned()]),
    }
}
