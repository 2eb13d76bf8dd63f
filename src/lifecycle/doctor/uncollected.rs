//! What was collected without the objects that would tell: such a collection ends with the last change of OLM's own objects, so
//! whatever is not up looks as if it had just begun.

use std::collections::BTreeSet;

use super::doc::Doc;
use super::observation::{KINDS, Observation};
use super::{Cause, codes, plans, pods, unpack, workloads};
use crate::shell::command;

/// The command that collects what the doctor reads.
pub const COLLECT: &str = "kubectl get subscriptions.operators.coreos.com,operatorgroups,catalogsources,installplans,clusterserviceversions,\
operatorconditions,jobs,configmaps,deployments,pods,events -A -o json > objects.json";

/// That nobody can tell whether an operator goes on that is not up, if something was not collected.
pub(super) fn cause(seen: &Observation, subscription: Doc<'_>) -> Option<Cause> {
    if !is_partial(seen) || subscription.is_going() {
        return None;
    }
    let status = |field: &str| subscription.text(&format!("/status/{field}"));
    let csv = |name: &str| seen.get("ClusterServiceVersion", subscription.namespace(), name);
    let version = csv(status("currentCSV")).or_else(|| csv(status("installedCSV")));
    let (shown, field, what, kinds) = match version {
        Some(csv) => {
            let phase =
                format!("`{}` is {} ({})", csv.name(), csv.text("/status/phase"), csv.text("/status/reason"));
            let has_deployments = workloads::wanted(csv).next().is_some();
            let kinds: &[&str] = if has_deployments { &["Deployment", "Pod"] } else { &[] };
            (csv, "status.phase", phase, kinds)
        }
        None if !status("currentCSV").is_empty() => {
            let known = format!("it names `{}`", status("currentCSV"));
            (subscription, "status.currentCSV", known, &["ClusterServiceVersion", "InstallPlan"][..])
        }
        None => {
            let none = "nothing was resolved for it yet".to_owned();
            (subscription, "status.state", none, &["OperatorGroup", "CatalogSource", "Pod"][..])
        }
    };
    let is_shown = |kind: &str| {
        let within = [subscription.namespace(), subscription.text("/spec/sourceNamespace")];
        seen.looked_at(kind)
            || seen.is_late() && within.iter().any(|namespace| seen.within(kind, namespace).next().is_some())
    };
    let mut missing: Vec<&str> = kinds.iter().copied().filter(|kind| !is_shown(kind)).collect();
    // What was unpacked gets a plan, unless something is wrong with it.
    if version.is_none() && status("currentCSV").is_empty() && unpack::lacks_plan(seen, subscription) {
        missing.extend(["InstallPlan"].iter().filter(|kind| !is_shown(kind)));
    }
    // Why a pod waits stands in its Events.
    let is_waiting = |pod: Doc<'_>| !pods::is_over(pod) && !pods::is_ready(pod);
    if !is_shown("Event") && seen.within("Pod", subscription.namespace()).any(is_waiting) {
        missing.push("Event");
    }
    if plans::of(seen, subscription).is_none()
        && !status("installPlanRef/name").is_empty()
        && version.is_none()
    {
        missing.extend(["InstallPlan"].iter().filter(|kind| !is_shown(kind) && !kinds.contains(kind)));
    }
    // An operator that goes on looks like one whose cause comes after the end of what was read.
    if missing.is_empty() && !seen.is_late() {
        missing.extend(KINDS.iter().filter(|kind| seen.cut_files(kind).next().is_some()));
    }
    if missing.is_empty() {
        return None;
    }
    let said = match field {
        "status.phase" => shown.text("/status/phase"),
        "status.currentCSV" => shown.text("/status/currentCSV"),
        _ => shown.text("/status/state"),
    };
    let text = format!(
        "cannot tell whether the Subscription `{}` in the namespace `{}` makes progress: {what}",
        subscription.name(),
        subscription.namespace(),
    );
    let cause = not_collected(seen, subscription, &text, &missing);
    Some(repaired(
        seen,
        cause.shown(shown, field, said, shown.moment("/status/lastTransitionTime")),
        &missing,
    ))
}

/// That nobody can tell whether a resolution that failed has succeeded since. OLM leaves the condition behind, and only the objects
/// that are resolved show it.
pub(super) fn resolution(seen: &Observation, subscription: Doc<'_>) -> Option<Cause> {
    let found = subscription.holding("ResolutionFailed").filter(|_| is_partial(seen))?;
    let kinds = ["CatalogSource", "InstallPlan", "ClusterServiceVersion", "Job", "Pod"];
    let missing: Vec<&str> = kinds.into_iter().filter(|kind| !seen.looked_at(kind)).collect();
    if missing.is_empty() {
        return None;
    }
    let text = format!(
        "cannot tell whether OLM still fails to resolve the Subscription `{}` in the namespace `{}` ({}): {}",
        subscription.name(),
        subscription.namespace(),
        found.reason,
        pods::shorten(found.message),
    );
    let cause = not_collected(seen, subscription, &text, &missing).shown(
        subscription,
        "status.conditions[ResolutionFailed].message",
        found.message,
        found.since,
    );
    Some(repaired(seen, cause, &missing))
}

/// Whether objects may be missing, and nobody can look again.
fn is_partial(seen: &Observation) -> bool {
    seen.is_collected() || seen.is_late()
}

fn not_collected(seen: &Observation, subscription: Doc<'_>, text: &str, missing: &[&str]) -> Cause {
    let cut: BTreeSet<&str> = missing.iter().flat_map(|kind| seen.cut_files(kind)).collect();
    let kinds = missing.join(" or ");
    let why = match (seen.is_late(), cut.is_empty()) {
        (false, true) => format!("no {kinds} was collected, so its state is unknown"),
        (is_late, _) => format!(
            "only a part of {} could be read, so objects of kind {kinds} may be missing",
            if is_late {
                "the recording".to_owned()
            } else {
                format!("`{}`", Vec::from_iter(cut).join("`, `"))
            },
        ),
    };
    Cause::new(&codes::NOT_COLLECTED, subscription.reference(), format!("{text}, and {why}"))
}

/// How to collect what is missing.
fn repaired(seen: &Observation, cause: Cause, missing: &[&str]) -> Cause {
    let cause = cause.repair(
        COLLECT,
        "collects everything that the doctor reads; then run it again with `--from objects.json`",
    );
    if seen.is_late() {
        return cause;
    }
    let paths: Vec<&str> = missing.iter().map(|kind| path_of(kind)).collect();
    cause.repair(
        command!("for list in").words(paths).then("; do kubectl get --raw $list; done > missing.json", &[]),
        "then shows which of the missing kinds have no objects, which `kubectl get` leaves out: run the doctor with `--from objects.json --from missing.json`",
    )
}

/// Where an API server lists the objects of a kind.
fn path_of(kind: &str) -> &'static str {
    match kind {
        "Subscription" => "/apis/operators.coreos.com/v1alpha1/subscriptions",
        "OperatorGroup" => "/apis/operators.coreos.com/v1/operatorgroups",
        "OperatorCondition" => "/apis/operators.coreos.com/v2/operatorconditions",
        "Job" => "/apis/batch/v1/jobs",
        "ConfigMap" => "/api/v1/configmaps",
        "CatalogSource" => "/apis/operators.coreos.com/v1alpha1/catalogsources",
        "InstallPlan" => "/apis/operators.coreos.com/v1alpha1/installplans",
        "Deployment" => "/apis/apps/v1/deployments",
        "Pod" => "/api/v1/pods",
        "Event" => "/api/v1/events",
        _ => "/apis/operators.coreos.com/v1alpha1/clusterserviceversions",
    }
}
