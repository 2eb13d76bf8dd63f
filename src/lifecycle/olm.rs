//! OLM itself on a cluster: [installed](install) from the manifests of a release, [looked at](status), and [removed](uninstall).
//!
//! Whatever is made here carries two labels, so that nothing else is ever taken away: that olmkit made it, and that it is a
//! part of OLM. Where to start reading: [`manifests::Release`].

mod cleanup;
pub mod install;
pub mod manifests;
mod probe;
pub mod status;
pub mod uninstall;

use std::sync::Arc;

use serde_json::Value;

use super::api::{CatalogSource, Key, Object, Resource, known, label, made_here};
use super::engine::{Catalogs, ContentError};
use super::offer::{Offer, OfferedBundle};

/// The value of [`label::PART_OF`] on what OLM consists of.
pub const OLM: &str = "operator-lifecycle-manager";
/// The Deployment that installs ClusterServiceVersions; where it is, OLM is.
pub const OLM_OPERATOR: &str = "olm-operator";
/// The Deployment that serves catalogs and resolves Subscriptions.
pub const CATALOG_OPERATOR: &str = "catalog-operator";
/// The ClusterServiceVersion of OLM's own API of packages.
pub const PACKAGE_SERVER: &str = "packageserver";
/// The group of OLM's custom resources.
pub const GROUP: &str = "operators.coreos.com";

/// The kinds that OLM's releases consist of.
pub(super) fn kinds() -> Vec<Resource> {
    let more = |group: &str, version: &str, kind: &str, plural: &str| Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
    };
    let mut kinds = vec![
        more("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
        more("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ];
    let own = [
        &known::NAMESPACE,
        &known::CRD,
        &known::CONFIG_MAP,
        &known::SECRET,
        &known::SERVICE_ACCOUNT,
        &known::SERVICE,
        &known::ROLE,
        &known::ROLE_BINDING,
        &known::CLUSTER_ROLE,
        &known::CLUSTER_ROLE_BINDING,
        &known::DEPLOYMENT,
        &known::API_SERVICE,
        &known::OLM_CONFIG,
        &known::OPERATOR_GROUP,
        &known::CSV,
        &known::CATALOG_SOURCE,
    ];
    kinds.extend(own.into_iter().map(|kind| (**kind).clone()));
    kinds
}

/// Whether an object is a part of OLM that was made here.
fn is_own(object: &Value) -> bool {
    made_here(object)
        && object.pointer("/metadata/labels").is_some_and(|labels| labels[label::PART_OF] == OLM)
}

/// Whether an object belongs to OLM's own API server of packages, which is no operator of a user.
fn is_package_server(key: &Key) -> bool {
    key.kind == known::CSV.kind && key.name == PACKAGE_SERVER
}

/// Text of a document; empty where there is none.
fn text<'d>(document: &'d Value, pointer: &str) -> &'d str {
    document.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The condition of a type in an object's status, if it has one.
fn condition<'d>(document: &'d Value, kind: &str) -> Option<&'d Value> {
    let conditions = document.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)
}

/// No catalogs are read: OLM itself is in none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCatalogs;

impl Catalogs for NoCatalogs {
    fn offer(
        &self,
        _: &Object<CatalogSource>,
    ) -> Result<Arc<Offer>, Box<dyn std::error::Error + Send + Sync>> {
        Err("no catalogs are read".into())
    }

    fn manifests(&self, name: &str, _: &OfferedBundle) -> Result<Vec<Value>, ContentError> {
        Err(ContentError::NotFound { reference: name.to_owned() })
    }

    fn image(&self, reference: &str) -> Result<(), ContentError> {
        Err(ContentError::NotFound { reference: reference.to_owned() })
    }
}
