//! What a reconcile does to the claims of a cluster's volumes: lets them grow, and deletes those of drained nodes.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::PersistentVolumeClaim};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy},
};
use serde_json::json;
use tracing::{debug, info};

use super::{
    children::{self, DRAINED_ANNOTATION},
    error::{ReconcileError, call},
    hibernate::keeps_volumes,
    preconditions::exactly,
    reconciler::Reconciler,
    volumes::{CannotGrow, Volumes, volumes},
};
use crate::{
    plan::{Plan, Topology},
    server::act::ActError,
    telemetry::chain,
};

impl Reconciler<'_> {
    /// How the volumes of the pods compare with the spec.
    pub(super) fn volumes(&self, set: &StatefulSet) -> Volumes {
        let claims = self.used_claims(set);
        volumes(self.cluster, set, claims.iter().map(|claim| &**claim))
    }

    /// Whether Kubernetes keeps the volumes of pods that are scaled away, as far as watches have it.
    pub(super) fn seems_to_keep_volumes(&self, set: &StatefulSet) -> bool {
        let claims = self.used_claims(set);
        keeps_volumes(set, claims.iter().map(|claim| &**claim))
    }

    /// The same by what the API server has now, also of claims without the label.
    pub(super) async fn keeps_volumes(&self, set: &StatefulSet) -> Result<bool, ReconcileError> {
        let claims: Api<PersistentVolumeClaim> = self.scope.api(self.key);
        let (parameters, leadership) = (ListParams::default(), &self.scope.context.leadership);
        let all = call("list", "PersistentVolumeClaim", claims.list(&parameters), leadership).await?;
        let used =
            |claim: &&PersistentVolumeClaim| self.ordinal(claim).is_some_and(|ordinal| is_used(set, ordinal));
        Ok(keeps_volumes(set, all.iter().filter(used)))
    }

    /// Which of these pods have no claim any more by what the API server has now: what they had is gone. If claims cannot be read, all
    /// may be there.
    pub(super) async fn without_claim(&self, ordinals: &BTreeSet<u32>) -> BTreeSet<u32> {
        if self.cluster.spec.storage.is_none() || ordinals.is_empty() {
            return BTreeSet::new();
        }
        let claims: Api<PersistentVolumeClaim> = self.scope.api(self.key);
        let (parameters, leadership) = (ListParams::default(), &self.scope.context.leadership);
        match call("list", "PersistentVolumeClaim", claims.list(&parameters), leadership).await {
            Ok(found) => {
                let names: BTreeSet<String> = found.iter().map(ResourceExt::name_any).collect();
                let is_gone = |ordinal: &u32| !names.contains(&children::claim_name(&self.key.1, *ordinal));
                ordinals.iter().copied().filter(is_gone).collect()
            }
            Err(error) => {
                debug!(error = chain(&error), "cannot read the claims of pods that are waited for");
                BTreeSet::new()
            }
        }
    }

    /// Ordinals of the pods whose claims are being deleted.
    pub(super) fn ending_claims(&self) -> BTreeSet<u32> {
        let ending = self.claims().filter(|(_, claim)| claim.metadata.deletion_timestamp.is_some());
        ending.map(|(ordinal, _)| ordinal).collect()
    }

    /// Fails if the claim of a pod is being deleted by what the API server has now: watches lag, and have only claims with the label. One
    /// without it gets it, so that the status names this claim.
    pub(super) async fn claim_stays(&self, pod: &str) -> Result<(), ReconcileError> {
        let ordinal = pod.rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse().ok());
        let Some(ordinal) = ordinal.filter(|_| self.cluster.spec.storage.is_some()) else { return Ok(()) };
        let claims: Api<PersistentVolumeClaim> = self.scope.api(self.key);
        let name = children::claim_name(&self.key.1, ordinal);
        let (parameters, leadership) =
            (ListParams::default().fields(&format!("metadata.name={name}")), &self.scope.context.leadership);
        let found = call("list", "PersistentVolumeClaim", claims.list(&parameters), leadership).await?;
        let mut ending = found.iter().filter(|claim| claim.metadata.deletion_timestamp.is_some());
        if let Some(claim) = ending.next() {
            self.label(&claims, claim).await?;
            let (expected, found) =
                ("on a volume that stays".into(), format!("on {name}, which is being deleted,"));
            return Err(ActError::Changed { pod: pod.into(), expected, found }.into());
        }
        Ok(())
    }

    /// Gives a claim the labels that the controller of the StatefulSet gives to those that it makes.
    async fn label(
        &self,
        claims: &Api<PersistentVolumeClaim>,
        claim: &PersistentVolumeClaim,
    ) -> Result<(), ReconcileError> {
        let labels = children::labels(&self.key.1);
        if labels.iter().all(|(key, value)| claim.labels().get(key) == Some(value)) {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"metadata": {"uid": claim.uid(), "labels": labels}}));
        self.scope.context.metrics.api_write("PersistentVolumeClaim");
        let (name, parameters) = (claim.name_any(), PatchParams::default());
        let leadership = &self.scope.context.leadership;
        call("patch", "PersistentVolumeClaim", claims.patch(&name, &parameters, &patch), leadership).await?;
        Ok(())
    }

    /// Lets the claims of pods grow, and then makes the StatefulSet anew, for those of later pods.
    pub(super) async fn grow(
        &self,
        set: &StatefulSet,
        plan: &Plan,
        sizes: &Volumes,
    ) -> Result<Option<CannotGrow>, ReconcileError> {
        let leadership = &self.scope.context.leadership;
        let wanted = self.cluster.spec.storage.as_ref().map(|storage| storage.size.clone());
        let grow = if let Volumes::Grow(claims) = sizes { claims.as_slice() } else { &[] };
        for (_, claim) in self.claims().filter(|(_, claim)| grow.contains(&claim.name_any())) {
            let (api, name): (Api<PersistentVolumeClaim>, _) = (self.scope.api(self.key), claim.name_any());
            let patch = json!({
                "metadata": {"uid": claim.uid()},
                "spec": {"resources": {"requests": {"storage": wanted}}},
            });
            info!(claim = name, "letting a volume grow");
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
            self.scope.context.metrics.api_write("PersistentVolumeClaim");
            let grown =
                call("patch", "PersistentVolumeClaim", api.patch(&name, &parameters, &patch), leadership);
            if let Err(error) = grown.await {
                match error.answer() {
                    Some((403 | 422, said)) => return Ok(Some(CannotGrow::new(&claim, said))),
                    // Gone or replaced in the meantime.
                    Some((404 | 409, _)) => {}
                    _ => return Err(error),
                }
            }
        }
        let replicas = set.spec.as_ref().and_then(|spec| spec.replicas);
        let settled =
            replicas == i32::try_from(plan.replicas).ok() && set.metadata.deletion_timestamp.is_none();
        if *sizes == Volumes::Recreate && settled {
            info!("making the StatefulSet anew, without its pods: its volume claim templates are immutable");
            let sets: Api<StatefulSet> = self.scope.api(self.key);
            let parameters =
                DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..exactly(set) };
            self.scope.context.metrics.api_write("StatefulSet");
            let deleted = call("delete", "StatefulSet", sets.delete(&self.key.1, &parameters), leadership);
            match deleted.await {
                Err(error) if matches!(error.answer(), Some((404 | 409, _))) => {}
                result => drop(result?),
            }
        }
        Ok(None)
    }

    /// The claims of the pods that the StatefulSet has.
    fn used_claims(&self, set: &StatefulSet) -> Vec<Arc<PersistentVolumeClaim>> {
        self.claims().filter(|(ordinal, _)| is_used(set, *ordinal)).map(|(_, claim)| claim).collect()
    }

    /// The PersistentVolumeClaims of this cluster, with the ordinals of their pods.
    fn claims(&self) -> impl Iterator<Item = (u32, Arc<PersistentVolumeClaim>)> {
        let claims = self.scope.caches.claims.state().into_iter();
        claims
            .filter(|claim| claim.namespace().as_deref() == Some(&*self.key.0))
            .filter_map(|claim| Some((self.ordinal(&claim)?, claim)))
    }

    /// The ordinal of the pod that a claim is for.
    fn ordinal(&self, claim: &PersistentVolumeClaim) -> Option<u32> {
        let first = children::claim_name(&self.key.1, 0);
        claim.name_any().strip_prefix(first.trim_end_matches('0'))?.parse().ok()
    }

    /// Before scaling down: annotates the claims of pods whose nodes responded and were reset, and no others. Before scaling
    /// up: removes the annotation from claims that are used again.
    pub(super) async fn mark_drained(
        &self,
        topology: &Topology<'_>,
        plan: &Plan,
    ) -> Result<(), ReconcileError> {
        for (ordinal, claim) in self.claims() {
            let marked = claim.annotations().contains_key(DRAINED_ANNOTATION);
            let mark = match should_be_marked(topology, plan, ordinal) {
                Some(true) if !marked => json!("true"),
                Some(false) if marked => serde_json::Value::Null,
                _ => continue,
            };
            let patch = json!({"metadata": {
                "annotations": {DRAINED_ANNOTATION: mark},
                "resourceVersion": claim.resource_version(),
                "uid": claim.uid(),
            }});
            let api: Api<PersistentVolumeClaim> = self.scope.api(self.key);
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
            self.scope.context.metrics.api_write("PersistentVolumeClaim");
            let (name, leadership) = (claim.name_any(), &self.scope.context.leadership);
            call("patch", "PersistentVolumeClaim", api.patch(&name, &parameters, &patch), leadership).await?;
        }
        Ok(())
    }

    /// Deletes the claims of drained nodes once their pods are gone.
    pub(super) async fn delete_drained(
        &self,
        topology: &Topology<'_>,
        plan: &Plan,
    ) -> Result<(), ReconcileError> {
        let observed = topology.observed;
        let Some(replicas) = observed.replicas else { return Ok(()) };
        for (ordinal, claim) in self.claims() {
            let used = ordinal < plan.replicas.max(replicas)
                || observed.pods.iter().any(|pod| pod.ordinal == ordinal);
            let marked = claim.annotations().contains_key(DRAINED_ANNOTATION);
            if used || !marked || claim.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let (api, name): (Api<PersistentVolumeClaim>, _) = (self.scope.api(self.key), claim.name_any());
            info!(claim = name, "deleting the volume of a drained node");
            self.scope.context.metrics.api_write("PersistentVolumeClaim");
            let (parameters, leadership) = (exactly(&*claim), &self.scope.context.leadership);
            let deleted =
                call("delete", "PersistentVolumeClaim", api.delete(&name, &parameters), leadership).await;
            match deleted {
                Err(error) if matches!(error.answer(), Some((404, _))) => {}
                result => drop(result?),
            }
        }
        Ok(())
    }
}

/// Whether a StatefulSet has a pod of this ordinal.
fn is_used(set: &StatefulSet, ordinal: u32) -> bool {
    let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
    i64::from(ordinal) < replicas.into()
}

/// Whether the claim of a pod is that of a drained node; `None` keeps what was known. A pod that has just been scaled away may
/// still be in the last look at the cluster, and does not respond any more: its claim keeps its mark.
fn should_be_marked(topology: &Topology<'_>, plan: &Plan, ordinal: u32) -> Option<bool> {
    let mut nodes = topology.observed.pods.iter().filter(|pod| pod.ordinal == ordinal);
    let is_drained =
        ordinal >= plan.replicas && nodes.any(|pod| pod.redis.as_ref().is_some_and(|node| node.blank()));
    if is_drained { Some(true) } else { (ordinal < topology.nodes()).then_some(false) }
}

#[cfg(test)]
mod tests {
    use super::should_be_marked;
    use crate::plan::{Goal, Node, Observed, Plan, Pod, Step, Topology};

    #[test]
    fn a_drained_claim_stays_marked_while_its_pod_ends() {
        let pod = |ordinal, redis| Pod { ordinal, redis, ..Pod::default() };
        let responds = |ordinal| pod(ordinal, Some(Node::default()));
        let marks = |size, replicas, pods: Vec<Pod>| {
            let observed = Observed { pods, replicas: Some(4), ..Observed::default() };
            let topology = Topology::of(Goal { size, ..Goal::default() }, &observed);
            let plan = Plan { replicas, step: Step::Shrink, actions: vec![] };
            [2, 3].map(|ordinal| should_be_marked(&topology, &plan, ordinal))
        };
        assert_eq!(marks(2, 2, vec![responds(2), responds(3)]), [Some(true), Some(true)]);
        // The StatefulSet of the last look still has both, and a pod that does not respond holds it.
        assert_eq!(marks(2, 4, vec![responds(2), pod(3, None)]), [None, None]);
        assert_eq!(marks(2, 3, vec![pod(2, None), responds(3)]), [None, Some(true)]);
        assert_eq!(marks(4, 4, vec![responds(2), responds(3)]), [Some(false), Some(false)]);
    }
}
