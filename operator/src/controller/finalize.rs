//! Lets a cluster go in order: its pods first, its volumes as its user chose, the RedisCluster last.
//!
//! Redis is not asked anything: a broken cluster must be deletable too.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::PersistentVolumeClaim};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy},
    runtime::controller::Action,
};
use serde_json::json;
use tracing::info;

use super::{
    Scope,
    cache::Key,
    children::{INSTANCE_LABEL, retain, selector},
    error::{ReconcileError, call},
    preconditions::exactly,
};
use crate::crd::{RedisCluster, v1::DeletionPolicy};

/// The finalizer that lets a cluster go in order.
pub(super) const FINALIZER: &str = "cache.example.com/cluster";

/// On volumes that outlive their cluster: its name.
pub(super) const RETAINED_LABEL: &str = "cache.example.com/retained-from";

pub(super) async fn finalize(
    scope: &Scope,
    cluster: &RedisCluster,
    key: &Key,
) -> Result<Action, ReconcileError> {
    if !cluster.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
        scope.forget(key);
        return Ok(Action::await_change());
    }
    // The garbage collector acts only once the cluster itself is gone, so waiting for it would be in vain.
    let sets: Api<StatefulSet> = scope.api(key);
    let leadership = &scope.context.leadership;
    let set = call("get", "StatefulSet", sets.get_opt(&key.1), leadership).await?;
    let owned = |set: &StatefulSet| {
        set.owner_references().iter().any(|owner| Some(&owner.uid) == cluster.uid().as_ref())
    };
    if let Some(set) = set.filter(owned)
        && set.metadata.deletion_timestamp.is_none()
    {
        if cluster.spec.storage.is_some() && !keeps_claims(scope, key, &set).await? {
            return Ok(Action::requeue(Duration::from_secs(1)));
        }
        info!("deleting the StatefulSet");
        scope.context.metrics.api_write("StatefulSet");
        let parameters =
            DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..exactly(&set) };
        unless_gone(call("delete", "StatefulSet", sets.delete(&key.1, &parameters), leadership).await)?;
    }
    let pods = scope.caches.pods.state();
    let left = pods.iter().filter(|pod| {
        pod.namespace().as_deref() == Some(&key.0) && pod.labels().get(INSTANCE_LABEL) == Some(&key.1)
    });
    if left.count() > 0 {
        return Ok(Action::requeue(Duration::from_secs(1)));
    }
    if let Some(storage) = &cluster.spec.storage {
        volumes(scope, key, storage.deletion_policy).await?;
    }
    let others: Vec<_> = cluster.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).collect();
    let patch = json!({"metadata": {"finalizers": others, "resourceVersion": cluster.resource_version()}});
    let clusters: Api<RedisCluster> = scope.api(key);
    scope.context.metrics.api_write("RedisCluster");
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
    unless_gone(
        call("patch", "RedisCluster", clusters.patch(&key.1, &parameters, &patch), leadership).await,
    )?;
    info!("gone");
    scope.forget(key);
    Ok(Action::await_change())
}

/// What is gone already is what was wanted: the cache may be behind.
fn unless_gone<T>(result: Result<T, ReconcileError>) -> Result<(), ReconcileError> {
    match result {
        Err(error) if matches!(error.answer(), Some((404, _))) => Ok(()),
        result => result.map(|_| ()),
    }
}

/// Whether the StatefulSet's volumes outlive it. One of an earlier release, or one that others changed, may have told
/// Kubernetes to delete them with it, whatever the RedisCluster says now.
async fn keeps_claims(scope: &Scope, key: &Key, set: &StatefulSet) -> Result<bool, ReconcileError> {
    let (sets, claims): (Api<StatefulSet>, Api<PersistentVolumeClaim>) = (scope.api(key), scope.api(key));
    let leadership = &scope.context.leadership;
    let retain = retain();
    let policy = |set: &StatefulSet| set.spec.as_ref()?.persistent_volume_claim_retention_policy.clone();
    if policy(set).is_some_and(|policy| policy != retain) {
        let patch = json!({
            "metadata": {"resourceVersion": set.resource_version(), "uid": set.uid()},
            "spec": {"persistentVolumeClaimRetentionPolicy": retain},
        });
        scope.context.metrics.api_write("StatefulSet");
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        unless_gone(call("patch", "StatefulSet", sets.patch(&key.1, &parameters, &patch), leadership).await)?;
        return Ok(false);
    }
    // Its controller takes the owner out of the claims by and by.
    let parameters = ListParams::default().labels(&selector(&key.1));
    let all = call("list", "PersistentVolumeClaim", claims.list(&parameters), leadership).await?;
    Ok(!all
        .iter()
        .any(|claim| claim.owner_references().iter().any(|owner| Some(&owner.uid) == set.uid().as_ref())))
}

async fn volumes(scope: &Scope, key: &Key, policy: DeletionPolicy) -> Result<(), ReconcileError> {
    let claims: Api<PersistentVolumeClaim> = scope.api(key);
    let leadership = &scope.context.leadership;
    let parameters = ListParams::default().labels(&selector(&key.1));
    for claim in call("list", "PersistentVolumeClaim", claims.list(&parameters), leadership).await? {
        let name = claim.name_any();
        match policy {
            DeletionPolicy::Delete if claim.metadata.deletion_timestamp.is_none() => {
                scope.context.metrics.api_write("PersistentVolumeClaim");
                let parameters = exactly(&claim);
                let deleted =
                    call("delete", "PersistentVolumeClaim", claims.delete(&name, &parameters), leadership);
                unless_gone(deleted.await)?;
            }
            DeletionPolicy::Retain if !claim.labels().contains_key(RETAINED_LABEL) => {
                let patch = json!({"metadata": {
                    "labels": {RETAINED_LABEL: key.1},
                    "resourceVersion": claim.resource_version(), "uid": claim.uid(),
                }});
                scope.context.metrics.api_write("PersistentVolumeClaim");
                let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
                let kept = call(
                    "patch",
                    "PersistentVolumeClaim",
                    claims.patch(&name, &parameters, &patch),
                    leadership,
                );
                unless_gone(kept.await)?;
            }
            _ => {}
        }
    }
    Ok(())
}
