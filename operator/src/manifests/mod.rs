//! What a cluster is given to run the operator, as YAML: API, permissions, workload, and samples to try.
//!
//! The objects are built from types, so they cannot drift from the code that relies on them: `rbac` says
//! what the operator may do, `workload` how it runs. Same release, same bytes.

mod console;
mod rbac;
mod release;
mod workload;
mod write;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use crate::crd;

pub use release::{Release, ReleaseError};
pub use write::{WriteError, write};

/// The name of the operator's Deployment, of its ServiceAccount, and of everything that is bound to them.
pub const NAME: &str = "redis-operator";

/// The namespace that the manifests install into. OLM installs into the namespace of the Subscription instead.
pub const NAMESPACE: &str = "redis-operator";

/// The Service at which the API server reaches the webhooks.
pub const WEBHOOK_SERVICE: &str = "redis-operator-webhook";

/// One file of the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Its place in the release's directory, with `/`. `install/` is what `kubectl apply -f` takes as it is, and `olm/` is for
    /// bundles alone.
    pub path: &'static str,
    /// One YAML document.
    pub yaml: String,
}

/// A manifest could not be written as YAML.
#[derive(Debug, thiserror::Error)]
#[error("cannot write `{path}` as YAML")]
pub struct EncodeError {
    path: &'static str,
    source: serde_saphyr::ser::Error,
}

/// The files of a release. Those of `install/` and `samples/` are in an order that `kubectl apply` can take.
///
/// # Errors
/// When an object cannot be written as YAML.
pub fn manifests(release: &Release) -> Result<Vec<Manifest>, EncodeError> {
    let definition = crd::definition(workload::convert_service());
    Ok(vec![
        encode("install/customresourcedefinition.yaml", &definition)?,
        encode("install/serviceaccount.yaml", &rbac::service_account())?,
        encode("install/clusterrole.yaml", &rbac::cluster_role())?,
        encode("install/clusterrolebinding.yaml", &rbac::cluster_role_binding())?,
        encode("install/role.yaml", &rbac::role())?,
        encode("install/rolebinding.yaml", &rbac::role_binding())?,
        encode("install/service.yaml", &workload::metrics_service())?,
        encode("install/webhook-service.yaml", &workload::webhook_service())?,
        encode("install/validatingwebhookconfiguration.yaml", &workload::validating_webhooks())?,
        encode("install/deployment.yaml", &workload::deployment(release))?,
        // Samples are for people, so they are kept as text, with comments.
        text("samples/rediscluster.yaml", include_str!("../../samples/rediscluster.yaml")),
        text(
            "samples/rediscluster-persistent.yaml",
            include_str!("../../samples/rediscluster-persistent.yaml"),
        ),
        encode("olm/clusterserviceversion.yaml", &console::base(&definition))?,
    ])
}

/// The manifests as one YAML stream, without those that no cluster takes.
pub fn stream(manifests: &[Manifest]) -> String {
    let manifests = manifests.iter().filter(|manifest| !manifest.path.starts_with("olm/"));
    manifests.map(|manifest| manifest.yaml.as_str()).collect::<Vec<_>>().join("---\n")
}

/// Objects are written straight from their types: the order of the fields is the types', whatever features
/// `serde_json` is built with.
fn encode(path: &'static str, object: &impl Serialize) -> Result<Manifest, EncodeError> {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let yaml = serde_saphyr::to_string_with_options(object, options)
        .map_err(|source| EncodeError { path, source })?;
    Ok(Manifest { path, yaml })
}

fn text(path: &'static str, yaml: &str) -> Manifest {
    Manifest { path, yaml: yaml.into() }
}

/// Name, namespace and labels of the operator's own namespaced objects.
fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta { namespace: Some(NAMESPACE.into()), ..cluster_metadata(name) }
}

/// Name and labels of the operator's own cluster-wide objects.
fn cluster_metadata(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), labels: Some(workload::labels()), ..Default::default() }
}
