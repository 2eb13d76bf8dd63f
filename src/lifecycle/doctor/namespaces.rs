//! The namespace itself, and OLM in its own.

use super::Cause;
use super::codes;
use super::observation::{Doc, Observation};

/// A namespace that is being deleted takes everything in it along.
pub(super) fn terminating(seen: &Observation, namespace: &str) -> Option<Cause> {
    let found = seen.get("Namespace", "", namespace)?;
    if found.text("/status/phase") != "Terminating" && !found.is_going() {
        return None;
    }
    let since = found.moment("/metadata/deletionTimestamp");
    let rest = found.conditions().find(|one| {
        one.is_true
            && matches!(
                one.kind,
                "NamespaceFinalizersRemaining"
                    | "NamespaceContentRemaining"
                    | "NamespaceDeletionDiscoveryFailure"
            )
    });
    let why = rest.map(|one| format!(": {}", one.message)).unwrap_or_default();
    let text = format!("the namespace `{namespace}` is being deleted, so nothing can be created in it{why}");
    let mut cause = Cause::new(&codes::NAMESPACE_TERMINATING, found.reference(), text).shown(
        found,
        "status.phase",
        "Terminating",
        since,
    );
    if let Some(one) = rest {
        cause =
            cause.shown(found, &format!("status.conditions[{}].message", one.kind), one.message, one.since);
    }
    Some(cause.repair(
        format!("kubectl get namespace {namespace} -o jsonpath='{{range .status.conditions[*]}}{{.type}}{{\": \"}}{{.message}}{{\"\\n\"}}{{end}}'"),
        "shows what holds the deletion up: delete those objects, or let the operator that owns their finalizers run; install into another namespace or wait until this one is gone",
    ))
}

/// OLM's own Deployments, where they were looked at: without them nothing happens anywhere.
pub(super) fn olm(seen: &Observation) -> Option<Cause> {
    let is_olm = |one: &Doc<'_>| matches!(one.name(), "catalog-operator" | "olm-operator");
    let down = seen.of("Deployment").filter(is_olm).find(|one| {
        let is_old = seen.age(one.created()) > 60_000;
        is_old && one.number("/status/availableReplicas").unwrap_or(0) == 0
    })?;
    let (name, namespace) = (down.name(), down.namespace());
    let text =
        format!("OLM does not run: deployment `{name}` in the namespace `{namespace}` has no available pod");
    Some(
        Cause::new(&codes::OLM_NOT_RUNNING, down.reference(), text)
            .shown(
                down,
                "status.availableReplicas",
                "0",
                down.condition("Available").and_then(|one| one.since),
            )
            .repair(
                format!("kubectl -n {namespace} logs deployment/{name} --tail 50"),
                "shows why it does not run; operators that are installed run on without OLM",
            )
            .repair(
                format!("kubectl -n {namespace} rollout restart deployment/{name}"),
                "starts OLM again; operators that are installed are not touched",
            ),
    )
}
