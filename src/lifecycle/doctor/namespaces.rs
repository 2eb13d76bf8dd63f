//! The namespace itself, and OLM in its own.

use super::doc::{Cond, Doc};
use super::observation::Observation;
use super::{Cause, codes, deletions};
use crate::shell::command;

/// The conditions of a namespace that name what is left in it, the most telling first.
const REMAINING: [&str; 3] =
    ["NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionDiscoveryFailure"];
/// How long a namespace may take until it is gone.
const EMPTYING: i64 = 120_000;

/// An object that is kept by its finalizer, and its namespace with it.
pub(super) fn blocked(seen: &Observation, object: Doc<'_>) -> Option<Cause> {
    let mut cause = deletions::blocked(seen, object)?;
    if terminating(seen, object.namespace()).is_some() {
        cause.consequences.push(format!("namespace/{} stays Terminating", object.namespace()));
    }
    Some(cause)
}

/// A namespace that was deleted some time ago and is still there.
pub(super) fn overdue(seen: &Observation, namespace: &str) -> Option<Cause> {
    let since = seen.get("Namespace", "", namespace)?.moment("/metadata/deletionTimestamp");
    if seen.age(since) < EMPTYING { None } else { terminating(seen, namespace) }
}

/// What a condition says of finalizers that remain, with their owners.
fn remaining(message: &str) -> String {
    let Some((_, list)) = message.split_once("finalizers remaining: ") else { return message.to_owned() };
    let names = list.split(", ").filter_map(|one| one.split(" in ").next()).map(str::trim);
    let owners = names.map(|one| format!("`{one}` is of {}", deletions::owner_of(one)));
    format!("{message} ({})", owners.collect::<Vec<_>>().join(", "))
}

/// A namespace that is being deleted takes everything in it along.
pub(super) fn terminating(seen: &Observation, namespace: &str) -> Option<Cause> {
    let found = seen.get("Namespace", "", namespace)?;
    if found.text("/status/phase") != "Terminating" && !found.is_going() {
        return None;
    }
    let since = found.moment("/metadata/deletionTimestamp");
    let rest: Vec<Cond<'_>> = REMAINING.iter().filter_map(|kind| found.holding(kind)).collect();
    let mut said: Vec<String> = rest.iter().map(|one| remaining(one.message)).collect();
    // Every namespace has the finalizer `kubernetes`.
    let own: Vec<&str> =
        deletions::finalizers(found).into_iter().filter(|one| *one != "kubernetes").collect();
    said.extend((!own.is_empty()).then(|| deletions::kept_by(found, &own)));
    let why = if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) };
    let text = format!("the namespace `{namespace}` is being deleted, so nothing can be created in it{why}");
    let mut cause = Cause::new(&codes::NAMESPACE_TERMINATING, found.reference(), text).shown(
        found,
        "status.phase",
        "Terminating",
        since,
    );
    for one in rest {
        cause =
            cause.shown(found, &format!("status.conditions[{}].message", one.kind), one.message, one.since);
    }
    Some(cause.repair(
        command!("kubectl get namespace {} -o jsonpath='{range .status.conditions[*]}{.type}{\": \"}{.message}{\"\\n\"}{end}'", namespace),
        "shows what blocks the deletion: delete those objects, or let the operator that owns their finalizers run; install into another namespace or wait until this one is gone",
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
            .repair(command!("olmkit olm status"), "shows OLM's programs, its CRDs and its catalogs")
            .repair(
                command!("kubectl -n {} logs deployment/{} --tail 50", namespace, name),
                "shows why it does not run; operators that are installed run on without OLM",
            )
            .repair(
                command!("kubectl -n {} rollout restart deployment/{}", namespace, name),
                "starts OLM again; operators that are installed are not touched",
            ),
    )
}
