//! Objects that are being deleted and stay: a finalizer keeps an object until its controller has cleaned up and removes it.

use super::doc::Doc;
use super::observation::Observation;
use super::{Cause, codes};
use crate::shell::command;

/// How long a deletion may take: OLM and Kubernetes need seconds, and catch up after a restart.
const DELETING: i64 = 120_000;
/// How long it may take if a finalizer is neither of OLM nor of Kubernetes.
const CLEANING: i64 = 30_000;

/// A finalizer that keeps an object from being deleted, if it has done so for too long.
pub(super) fn blocked(seen: &Observation, object: Doc<'_>) -> Option<Cause> {
    let since = object.moment("/metadata/deletionTimestamp");
    let finalizers = finalizers(object);
    let is_known = finalizers.iter().all(|one| known(one).is_some());
    let limit = if is_known { DELETING } else { CLEANING };
    if !object.is_going() || finalizers.is_empty() || seen.age(since) < limit {
        return None;
    }
    let (namespace, name) = (object.namespace(), object.name());
    let reference = object.reference();
    let kind = reference.kind.to_lowercase();
    let resource = match reference.api_version.split_once('/') {
        Some((group, _)) => format!("{kind}.{group}"),
        None => kind,
    };
    let text = format!(
        "{} in the namespace `{namespace}` was deleted and stays: {}",
        reference.short(),
        kept_by(object, &finalizers)
    );
    let cause = Cause::new(&codes::DELETION_BLOCKED, reference, text)
        .shown(object, "metadata.deletionTimestamp", object.text("/metadata/deletionTimestamp"), since)
        .shown(object, "metadata.finalizers", finalizers.join(", "), since);
    let cause = match &finalizers[..] {
        // Nobody has to run for it but Kubernetes: it waits for what the object owns.
        ["foregroundDeletion"] => cause.repair(
            command!("kubectl -n {} get deployments,pods,clusterserviceversions.operators.coreos.com -o 'custom-columns=KIND:.kind,NAME:.metadata.name,OWNERS:.metadata.ownerReferences[*].name,FINALIZERS:.metadata.finalizers'", namespace),
            "shows which objects that it owns are left, and their own finalizers",
        ),
        _ => cause.repair(
            command!("kubectl -n {} get {} {} -o yaml --show-managed-fields", namespace, resource, name),
            "shows who set the finalizer (`managedFields`): start that controller again, and it cleans up and removes its finalizer",
        ),
    };
    let mut successors = seen.within("ClusterServiceVersion", namespace);
    let is_replaced = successors.any(|one| one.text("/spec/replaces") == name);
    let also = match object.kind() {
        "ClusterServiceVersion" if !is_replaced => ", its operator is down",
        _ => "",
    };
    Some(cause.repair(
        command!("kubectl -n {} patch {} {} --type merge -p '{\"metadata\":{\"finalizers\":null}}'", namespace, resource, name),
        format!("only if that controller is gone for good: the object is deleted at once{also}, and the cleanup that the finalizer guards never happens"),
    ))
}

/// The finalizers of an object; of a namespace also those in its spec.
pub(super) fn finalizers<'o>(object: Doc<'o>) -> Vec<&'o str> {
    ["/metadata/finalizers", "/spec/finalizers"]
        .into_iter()
        .filter(|path| object.kind() == "Namespace" || path.starts_with("/metadata"))
        .flat_map(|path| object.list(path))
        .filter_map(|one| one.as_str())
        .collect()
}

/// The finalizers with their owners, as a sentence goes on with them.
pub(super) fn kept_by(object: Doc<'_>, finalizers: &[&str]) -> String {
    let told = finalizers.iter().map(|one| format!("the finalizer `{one}` of {}", owner(object, one)));
    let verb = if finalizers.len() == 1 { "keeps" } else { "keep" };
    format!("{} {verb} it", told.collect::<Vec<_>>().join(" and "))
}

/// The controller that is expected to remove a finalizer from an object.
fn owner(object: Doc<'_>, finalizer: &str) -> String {
    let key = format!("v:\"{finalizer}\"");
    let set_by = object.list("/metadata/managedFields").map(Doc).find(|one| {
        one.0.pointer("/fieldsV1/f:metadata/f:finalizers").is_some_and(|all| all.get(&key).is_some())
    });
    match set_by.map(|one| one.text("/manager")).filter(|manager| !manager.is_empty()) {
        Some(manager) if known(finalizer).is_none() => format!("the controller `{manager}`"),
        _ => owner_of(finalizer),
    }
}

/// The controller that is expected to remove a finalizer, as far as the finalizer's name tells.
pub(super) fn owner_of(finalizer: &str) -> String {
    match (known(finalizer), finalizer.split_once('/')) {
        (Some(known), _) => known.to_owned(),
        (None, Some((domain, _))) => format!("the controller for `{domain}`"),
        // `finalizer.example.com`, as it was written before Kubernetes wanted a path.
        (None, None) if finalizer.contains('.') => format!("the controller for `{finalizer}`"),
        (None, None) => "a controller that it does not name".to_owned(),
    }
}

/// The owners of finalizers that every cluster has.
fn known(finalizer: &str) -> Option<&'static str> {
    match finalizer {
        "foregroundDeletion" => {
            Some("Kubernetes' garbage collector, which waits until the objects that it owns are gone,")
        }
        "orphan" => Some("Kubernetes' garbage collector"),
        "kubernetes" => Some("Kubernetes' namespace controller"),
        _ if finalizer.starts_with("operators.coreos.com/") => Some("OLM (olm-operator)"),
        _ => None,
    }
}
