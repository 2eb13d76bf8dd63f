//! `spec.hibernated` in Kubernetes: whether volumes are kept without their pods, and which pods come back. Pure functions.
//!
//! What happens to the nodes before is in `plan/hibernate.rs`.

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::PersistentVolumeClaim};
use kube::ResourceExt;

use super::children::retain;
use crate::crd::v1::{Phase, RedisClusterStatus};

/// Annotation of a StatefulSet whose pods were all stopped, until one of them responds again: how many it had. All of them come
/// back, also if fewer are wanted by then: their volumes may have slots.
pub const PODS_BEFORE: &str = "cache.example.com/pods-before-hibernation";

/// The annotation [`PODS_BEFORE`] of a StatefulSet.
pub fn pods_before(set: &StatefulSet) -> Option<u32> {
    set.annotations().get(PODS_BEFORE)?.parse().ok()
}

/// What the annotation [`PODS_BEFORE`] should be. If the StatefulSet was deleted, the status has the members.
pub fn record(found: Option<&StatefulSet>, replicas: Option<u32>, status: &RedisClusterStatus) -> u32 {
    let ordinals =
        status.members.iter().filter_map(|member| member.pod.rsplit_once('-')?.1.parse::<u32>().ok());
    let members = ordinals.map(|ordinal| ordinal + 1).max();
    let running = replicas.filter(|replicas| *replicas > 0);
    running.or_else(|| found.and_then(pods_before)).or(members).unwrap_or(0)
}

/// Whether Kubernetes keeps the volumes of pods that are scaled away: its controller has seen that it should, neither a pod nor the
/// StatefulSet owns a claim, and none is being deleted. With `whenScaled: Delete`, pods become owners of their claims when they are
/// to go, and the garbage collector deletes what a deleted pod owns. A claim that somebody deleted lasts as long as its pod.
pub fn keeps_volumes<'a>(
    set: &StatefulSet,
    claims: impl IntoIterator<Item = &'a PersistentVolumeClaim>,
) -> bool {
    let policy = set.spec.as_ref().and_then(|spec| spec.persistent_volume_claim_retention_policy.as_ref());
    let observed = set.status.as_ref().and_then(|status| status.observed_generation);
    let goes = |claim: &PersistentVolumeClaim| {
        let owned =
            claim.owner_references().iter().any(|owner| ["Pod", "StatefulSet"].contains(&&*owner.kind));
        owned || claim.metadata.deletion_timestamp.is_some()
    };
    // Without a policy, all are kept.
    policy.is_none_or(|policy| *policy == retain())
        && observed.is_some()
        && observed >= set.metadata.generation
        && !claims.into_iter().any(goes)
}

/// Whether the cluster was hibernated by its last status, and not all of its nodes are back.
pub fn was_hibernated(status: &RedisClusterStatus) -> bool {
    matches!(status.phase, Some(Phase::Hibernating | Phase::Hibernated | Phase::Waking))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn owner(kind: &str) -> Value {
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": "rc", "uid": "1"}]})
    }

    #[track_caller]
    fn check(policy: Value, observed: Value, claim: Value, expected: bool) {
        let set = json!({
            "metadata": {"name": "rc", "generation": 4},
            "spec": {
                "selector": {}, "serviceName": "rc", "template": {},
                "persistentVolumeClaimRetentionPolicy": policy,
            },
            "status": {"replicas": 3, "observedGeneration": observed},
        });
        let set: StatefulSet = serde_json::from_value(set).unwrap();
        let claims = [json!({}), claim].map(|metadata| -> PersistentVolumeClaim {
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        });
        assert_eq!(keeps_volumes(&set, &claims), expected);
    }

    #[test]
    fn volumes_are_kept_once_their_controller_says_so_and_nothing_owns_a_claim() {
        let retained = || json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
        check(retained(), json!(4), json!({}), true);
        check(retained(), json!(5), json!({}), true);
        check(Value::Null, json!(4), json!({}), true);
        check(retained(), json!(4), owner("Backup"), true);
        check(retained(), json!(3), json!({}), false);
        check(retained(), Value::Null, json!({}), false);
        check(retained(), json!(4), owner("Pod"), false);
        check(retained(), json!(4), owner("StatefulSet"), false);
        check(retained(), json!(4), json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), false);
        check(json!({"whenDeleted": "Retain", "whenScaled": "Delete"}), json!(4), json!({}), false);
        check(json!({"whenDeleted": "Delete", "whenScaled": "Retain"}), json!(4), json!({}), false);
    }

    #[test]
    fn the_record_survives_without_its_stateful_set() {
        let set = |annotations: Value| -> StatefulSet {
            serde_json::from_value(json!({"metadata": {"name": "rc", "annotations": annotations}})).unwrap()
        };
        let status: RedisClusterStatus =
            serde_json::from_value(json!({"members": [{"pod": "rc-0"}, {"pod": "rc-4"}]})).unwrap();
        let recorded = set(json!({PODS_BEFORE: "6"}));
        assert_eq!(record(Some(&recorded), Some(8), &status), 8);
        assert_eq!(record(Some(&recorded), Some(0), &status), 6);
        assert_eq!(record(Some(&set(json!({}))), Some(0), &status), 5);
        assert_eq!(record(None, None, &status), 5);
    }
}
