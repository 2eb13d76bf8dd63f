//! The custom resources the operator owns, one file per API version.
//!
//! The types are the source of the CRD: schema, defaults, bounds and CEL rules are derived from them,
//! and a field's doc comment is its description. Start at [`v1::RedisClusterSpec`].

pub mod check;
pub mod convert;
pub mod exporter;
pub mod pods;
pub mod user;
pub mod v1;
pub mod v1alpha1;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, ServiceReference, WebhookClientConfig,
    WebhookConversion,
};
use kube::CustomResourceExt;

pub use v1::RedisCluster;

/// The CustomResourceDefinition with every version that is served: v1, which is stored, and v1alpha1, which is
/// converted by the operator at `service`.
pub fn definition(service: ServiceReference) -> CustomResourceDefinition {
    let mut definition = RedisCluster::crd();
    definition.spec.versions.extend(v1alpha1::RedisCluster::crd().spec.versions);
    definition.spec.conversion = Some(CustomResourceConversion {
        strategy: "Webhook".into(),
        webhook: Some(WebhookConversion {
            client_config: Some(WebhookClientConfig { service: Some(service), ..Default::default() }),
            conversion_review_versions: vec!["v1".into()],
        }),
    });
    definition
}
