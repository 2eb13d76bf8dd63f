//! Growing volumes: what is to be done so that all volumes have the size of the spec. Pure functions.
//!
//! The claims grow first, where their StorageClass lets them; no pod notices. `volumeClaimTemplates` of a StatefulSet are immutable,
//! so it is then deleted without its pods and made anew, for the claims of later pods.

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{PersistentVolumeClaim, VolumeResourceRequirements},
};
use kube::ResourceExt;

use crate::crd::RedisCluster;
use crate::quantity::amount;

/// Why volumes do not have the size of the spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Volumes {
    /// They have.
    #[default]
    Sized,
    /// These claims are to ask for it.
    Grow(Vec<String>),
    /// All ask for it, and new claims would not: the StatefulSet is to be made anew.
    Recreate,
    /// Kubernetes is resizing them.
    Resizing {
        /// Those that have the size.
        done: usize,
        /// All.
        all: usize,
        /// What Kubernetes says about one that does not.
        says: Option<String>,
    },
    /// They are larger than the spec wants.
    Larger {
        /// What they ask for.
        found: String,
    },
}

/// Why the volumes of a cluster cannot grow, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotGrow {
    /// The class forbids it.
    #[error(
        "volumes of {class} cannot grow (claim {claim}): set its `allowVolumeExpansion` to true if its provisioner can, or move the data to a RedisCluster with larger volumes; if spec.storage.size is a mistake, delete the RedisCluster while spec.storage.deletionPolicy is Retain, and create it again with the former size"
    )]
    Class {
        /// The class, as the subject of the sentence.
        class: String,
        /// A claim of it.
        claim: String,
    },
    /// The API server refused for another reason, such as a quota.
    #[error("the API server refused to enlarge claim {claim}: {message}")]
    Refused {
        /// The claim.
        claim: String,
        /// What the API server said.
        message: String,
    },
}

impl CannotGrow {
    /// From what the API server said. Whether a class allows it is checked there, by admission.
    pub fn new(claim: &PersistentVolumeClaim, message: &str) -> Self {
        let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
        let class = class.filter(|class| !class.is_empty());
        let claim = claim.name_any();
        if message.contains("must support resize") {
            let class =
                class.map_or_else(|| "no StorageClass".into(), |class| format!("StorageClass `{class}`"));
            Self::Class { class, claim }
        } else {
            Self::Refused { claim, message: message.into() }
        }
    }
}

/// Compares the claims of existing pods, and the template for further ones, with the spec.
pub fn volumes<'a>(
    cluster: &RedisCluster,
    set: &StatefulSet,
    claims: impl IntoIterator<Item = &'a PersistentVolumeClaim>,
) -> Volumes {
    let Some(wanted) = cluster.spec.storage.as_ref().and_then(|storage| Bytes::of(&storage.size.0)) else {
        return Volumes::Sized;
    };
    let claims: Vec<&PersistentVolumeClaim> =
        claims.into_iter().filter(|claim| claim.metadata.deletion_timestamp.is_none()).collect();
    let template = set.spec.as_ref().and_then(|spec| spec.volume_claim_templates.as_ref()?.first());
    let requested = |claim: &PersistentVolumeClaim| request(claim.spec.as_ref()?.resources.as_ref()?);
    if let Some(found) = template.and_then(requested).filter(|found| *found > wanted) {
        return Volumes::Larger { found: found.text };
    }
    let small: Vec<_> =
        claims.iter().filter(|claim| requested(claim).is_some_and(|asked| asked < wanted)).collect();
    if !small.is_empty() {
        return Volumes::Grow(small.iter().map(|claim| claim.name_any()).collect());
    }
    if template.and_then(requested).is_some_and(|found| found < wanted) {
        return Volumes::Recreate;
    }
    let has = |claim: &PersistentVolumeClaim| {
        let status = claim.status.as_ref()?;
        Bytes::of(&status.capacity.as_ref()?.get("storage")?.0)
    };
    // One that is not bound yet gets the size that it asks for.
    let late: Vec<_> =
        claims.iter().filter(|claim| has(claim).is_some_and(|capacity| capacity < wanted)).collect();
    if late.is_empty() {
        return Volumes::Sized;
    }
    let says = late.iter().find_map(|claim| {
        let condition = claim.status.as_ref()?.conditions.as_ref()?.first()?;
        Some(format!(
            "{}: {} {}",
            claim.name_any(),
            condition.type_,
            condition.message.as_deref().unwrap_or_default()
        ))
    });
    Volumes::Resizing { done: claims.len() - late.len(), all: claims.len(), says }
}

fn request(resources: &VolumeResourceRequirements) -> Option<Bytes> {
    Bytes::of(&resources.requests.as_ref()?.get("storage")?.0)
}

/// A size, compared by its amount.
#[derive(Clone, Debug)]
struct Bytes {
    amount: i128,
    text: String,
}

impl Bytes {
    fn of(text: &str) -> Option<Self> {
        Some(Self { amount: amount(text)?, text: text.into() })
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        self.amount == other.amount
    }
}

impl PartialOrd for Bytes {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.amount.partial_cmp(&other.amount)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::children::{Defaults, stateful_set};

    fn cluster(size: &str) -> RedisCluster {
        let object = json!({
            "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": {"name": "rc"},
            "spec": {"size": 3, "storage": {"size": size}},
        });
        serde_json::from_value(object).unwrap()
    }

    /// Claims: what each asks for, and what it has.
    fn check(wanted: &str, template: &str, claims: &[(&str, &str)], expected: Volumes) {
        let set = stateful_set(&cluster(template), &Defaults::default(), 3, 0);
        let claims: Vec<PersistentVolumeClaim> = claims
            .iter()
            .enumerate()
            .map(|(ordinal, (asks, has))| {
                let capacity = if has.is_empty() { Value::Null } else { json!({"storage": has}) };
                serde_json::from_value(json!({
                    "metadata": {"name": format!("data-rc-{ordinal}")},
                    "spec": {"resources": {"requests": {"storage": asks}}},
                    "status": {"capacity": capacity},
                }))
                .unwrap()
            })
            .collect();
        assert_eq!(volumes(&cluster(wanted), &set, &claims), expected);
    }

    #[test]
    fn claims_grow_first_and_the_template_follows() {
        let both = vec!["data-rc-0".to_owned(), "data-rc-1".to_owned()];
        check("2Gi", "1Gi", &[("1Gi", "1Gi"), ("1Gi", "1Gi")], Volumes::Grow(both.clone()));
        check("2Gi", "1Gi", &[("2Gi", "1Gi"), ("1Gi", "1Gi")], Volumes::Grow(both[1..].to_vec()));
        check("2Gi", "1Gi", &[("2Gi", "1Gi"), ("2Gi", "1Gi")], Volumes::Recreate);
        let resizing = Volumes::Resizing { done: 1, all: 2, says: None };
        check("2Gi", "2Gi", &[("2Gi", "1Gi"), ("2Gi", "2Gi")], resizing);
        check("2Gi", "2Gi", &[("2Gi", "2Gi"), ("2Gi", "3Gi")], Volumes::Sized);
    }

    /// A claim of an earlier cluster that is used again after the size was raised.
    #[test]
    fn a_smaller_claim_that_comes_back_grows() {
        check("2Gi", "2Gi", &[("2Gi", "2Gi"), ("1Gi", "1Gi")], Volumes::Grow(vec!["data-rc-1".into()]));
    }

    #[test]
    fn the_same_size_in_other_words_changes_nothing() {
        check("1024Mi", "1Gi", &[("1Gi", "1Gi"), ("1Gi", "")], Volumes::Sized);
    }

    #[test]
    fn volumes_never_shrink() {
        check("1Gi", "2Gi", &[("2Gi", "2Gi")], Volumes::Larger { found: "2Gi".into() });
    }

    #[test]
    fn a_class_that_cannot_grow_is_named() {
        let claim = |class: Value| -> PersistentVolumeClaim {
            serde_json::from_value(
                json!({"metadata": {"name": "data-rc-0"}, "spec": {"storageClassName": class}}),
            )
            .unwrap()
        };
        // As the admission plugin PersistentVolumeClaimResize says it.
        const FIXED: &str = "persistentvolumeclaims \"data-rc-0\" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
        let said = CannotGrow::new(&claim(json!("fixed")), FIXED).to_string();
        assert!(
            said.starts_with("volumes of StorageClass `fixed` cannot grow (claim data-rc-0): set its"),
            "{said}"
        );
        let said = CannotGrow::new(&claim(json!("")), FIXED).to_string();
        assert!(said.starts_with("volumes of no StorageClass cannot grow"), "{said}");
        let said = CannotGrow::new(&claim(json!("slow")), "exceeded quota: small").to_string();
        assert_eq!(said, "the API server refused to enlarge claim data-rc-0: exceeded quota: small");
    }
}
