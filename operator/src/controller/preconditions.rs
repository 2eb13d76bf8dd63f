//! Preconditions of deletions.

use kube::{
    ResourceExt,
    api::{DeleteParams, Preconditions},
};

/// Deletes exactly this object: uid and resourceVersion must match.
pub(super) fn exactly(object: &impl ResourceExt) -> DeleteParams {
    let preconditions = Preconditions { uid: object.uid(), resource_version: object.resource_version() };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}
