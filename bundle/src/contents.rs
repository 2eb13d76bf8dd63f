//! What Kubernetes refuses of the objects that a bundle carries beside the ClusterServiceVersion and the CRDs: the rules of
//! `pkg/apis/{core,networking,policy,rbac,scheduling}/validation` that people run into.
//!
//! OLM copies such objects to the cluster as they are, and its InstallPlan fails where the API server does not take one.

mod bindings;
mod configuration;
mod disruption;
mod metadata;
mod network_policy;
mod priority;
mod service;
#[cfg(test)]
mod tests;

use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use serde::de::DeserializeOwned;

use crate::crd::{self, Crd};
use crate::parse::Object;
use crate::refused::{Check, Refused};
use crate::source::Span;
use crate::yaml::{Node, Step, Value, decode, fit};

/// Everything that Kubernetes refuses of an object, whatever else is there; of kinds that are not known here its metadata only.
pub(crate) fn refused<'n>(object: Object<'n, '_>) -> Vec<Refused<'n>> {
    let mut check = Check::default();
    match (object.api_version(), object.kind()) {
        ("v1", "ConfigMap") => configuration::config_map(&mut check, object.root),
        ("v1", "Secret") => configuration::secret(&mut check, object.root),
        ("v1", "Service") => typed(&mut check, object.root, service::check),
        ("networking.k8s.io/v1", "NetworkPolicy") => typed(&mut check, object.root, network_policy::check),
        ("policy/v1", "PodDisruptionBudget") => typed(&mut check, object.root, disruption::check),
        ("rbac.authorization.k8s.io/v1", "RoleBinding") => {
            typed(&mut check, object.root, |check, own: &RoleBinding| {
                bindings::check(check, own.subjects.as_deref(), true);
            });
        }
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding") => {
            typed(&mut check, object.root, |check, own: &ClusterRoleBinding| {
                bindings::check(check, own.subjects.as_deref(), false);
            });
        }
        ("scheduling.k8s.io/v1", "PriorityClass") => typed(&mut check, object.root, priority::check),
        (crd::V1, "CustomResourceDefinition") => {
            // Its types are held in tables, and what does not fit them is said elsewhere.
            let noted = fit::fit(object.root, Crd::from(object).of());
            check.unquoted(object.root, &noted.as_text.into_iter().collect());
        }
        _ => {}
    }
    metadata::check(&mut check, object);
    check.refused
}

/// Checks an object as the type that it is to be, and then the numbers and booleans where a string is expected.
fn typed<'n, T: DeserializeOwned>(
    check: &mut Check<'n>,
    root: &'n Node<'_>,
    rules: impl FnOnce(&mut Check<'n>, &T),
) {
    match decode::decode_noting::<T>(root) {
        Ok((object, noted)) => {
            rules(check, &object);
            check.unquoted(root, &noted.as_text.into_iter().collect());
        }
        Err(error) => {
            let mut path = Vec::new();
            if let Some(span) = error.span {
                find(root, span, &mut path);
            }
            check.push(
                &path,
                error.to_string(),
                "correct the value: no API server reads the object as it is",
            );
        }
    }
}

/// Finds the path to the innermost value at a span; returns false if there is none.
fn find<'n>(node: &'n Node<'_>, span: Span, path: &mut Vec<Step<'n>>) -> bool {
    let is_below = |path: &mut Vec<Step<'n>>, step: Step<'n>, inner: &'n Node<'_>| {
        path.push(step);
        let found = find(inner, span, path);
        if !found {
            path.pop();
        }
        found
    };
    let found = match &node.value {
        Value::Sequence(items) => {
            items.iter().enumerate().any(|(at, item)| is_below(path, Step::Index(at), item))
        }
        Value::Mapping(map) => map.iter().any(|entry| is_below(path, Step::Key(&entry.key), &entry.value)),
        _ => false,
    };
    found || node.span == span
}
