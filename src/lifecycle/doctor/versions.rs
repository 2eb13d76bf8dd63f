//! ClusterServiceVersions: the phases that do not pass by themselves.

use std::collections::BTreeSet;

use super::codes::{self, Code};
use super::doc::Doc;
use super::observation::Observation;
use super::pods::shorten;
use super::relations::{subscription_of, versions_of};
use super::step::Step;
use super::{Cause, Repair, deletions, groups, namespaces, plans, refusals, workloads};
use crate::lifecycle::api::{InstallModeKind, csv_reason};
use crate::moment;
use crate::sentence::Sentence;
use crate::shell::command;

/// How long a requirement may be missing while OLM still installs.
const REQUIREMENTS: i64 = 15_000;
/// How long OLM may take to see a ServiceAccount that it has created, or that a version owns one.
const OWNING: i64 = 8_000;
/// How long OLM may take for a phase that it leaves by itself.
const PHASE: i64 = 600_000;
/// How long OLM may take to rotate a certificate that is due.
const ROTATION: i64 = 86_400_000;

/// The versions that no Subscription knows, and that no other version replaces.
pub(super) fn without_subscription(seen: &Observation) -> impl Iterator<Item = Doc<'_>> {
    let all = seen.of("ClusterServiceVersion");
    let replaced: BTreeSet<_> = all.map(|csv| (csv.namespace(), csv.text("/spec/replaces"))).collect();
    let referenced = referenced(seen);
    seen.of("ClusterServiceVersion").filter(move |csv| {
        let name = (csv.namespace(), csv.name());
        let is_alone = match csv.is_going() {
            true => deletions::blocked(seen, *csv).is_some(),
            // One that runs needs no Subscription; one that was scaled down, or lost its Deployment, does not run.
            false if csv.text("/status/phase") == "Succeeded" => {
                !is_of_olm(*csv) && workloads::is_changing(seen, *csv)
            }
            false => !matches!(csv.text("/status/phase"), "Replacing" | "Deleting" | ""),
        };
        !csv.is_copy() && is_alone && !referenced.contains(&name) && !replaced.contains(&name)
    })
}

/// The namespaces and names of the versions that a Subscription knows, or that OLM is about to tell one.
pub(super) fn referenced(seen: &Observation) -> BTreeSet<(&str, &str)> {
    let subscriptions = seen.of("Subscription");
    let known = subscriptions.flat_map(|one| versions_of(seen, one).into_iter().map(move |name| (one, name)));
    let plans = seen.of("InstallPlan").filter(|plan| !plans::is_over(*plan));
    let planned = plans.flat_map(|plan| plans::carried(plan).map(move |name| (plan, name)));
    known.chain(planned).map(|(one, name)| (one.namespace(), name)).collect()
}

/// Whether a version is of OLM's package server, which needs no Subscription.
pub fn is_of_olm(csv: Doc<'_>) -> bool {
    csv.list("/spec/apiservicedefinitions/owned").any(|api| api["group"] == "packages.operators.coreos.com")
}

/// How a version without a Subscription is doing.
pub(super) fn examine_alone(seen: &Observation, csv: Doc<'_>) -> Step {
    match examine(seen, csv) {
        Step::Found(cause) if !csv.is_going() && !is_of_olm(csv) => Step::found(alone(seen, csv, *cause)),
        Step::Progressing if is_of_olm(csv) => Step::Done,
        step => step,
    }
}

/// What it means for a version that no Subscription knows it, and how to give it one. Where there is one that OLM has only not told yet,
/// nothing is added.
fn alone(seen: &Observation, csv: Doc<'_>, mut cause: Cause) -> Cause {
    let (name, namespace) = (csv.name(), csv.namespace());
    let package = package_of(csv);
    let is_own = |one: Doc<'_>| {
        package.as_ref().is_some_and(|package| super::is_named(one, package))
            || versions_of(seen, one).contains(&csv.text("/spec/replaces"))
    };
    if seen.within("Subscription", namespace).any(is_own) {
        return cause;
    }
    cause
        .consequences
        .push(format!("clusterserviceversion/{name} has no Subscription: OLM never upgrades it"));
    // What else fails may run all the same.
    let does_not_run = codes::CODES.iter().any(|code| code.name == cause.code && code.has_way_back());
    let removes = |repair: &Repair| repair.command.to_string().contains("delete clusterserviceversion");
    if !does_not_run || cause.repair.iter().any(removes) {
        return cause;
    }
    let removed = format!("removes `{name}`, which does not run; CRDs and custom resources stay");
    cause.instead(match package {
        Some(package) => Repair::of(
            command!("olmkit operator uninstall {} -n {}", package, namespace),
            Sentence::from(removed + ". Then ")
                + command!("olmkit operator install {} -n {}", package, namespace)
                + " installs it with a Subscription",
        ),
        None => Repair::of(
            command!("kubectl -n {} delete clusterserviceversion.operators.coreos.com {}", namespace, name),
            removed,
        ),
    })
}

/// Whether a Subscription knows a version, or OLM is about to tell one.
pub(super) fn is_referenced(seen: &Observation, namespace: &str, name: &str) -> bool {
    let is_known = seen.within("Subscription", namespace).any(|one| versions_of(seen, one).contains(&name));
    is_known
        || seen
            .within("InstallPlan", namespace)
            .any(|plan| !plans::is_over(plan) && plans::carries(plan, name))
}

/// How a version is doing.
pub(super) fn examine(seen: &Observation, csv: Doc<'_>) -> Step {
    if csv.is_going() {
        return namespaces::blocked(seen, csv).map_or(Step::Progressing, Step::found);
    }
    // A clock that is behind cannot have changed it before it was there.
    let since = csv.moment("/status/lastTransitionTime").max(csv.created());
    let reason = csv.text("/status/reason");
    let found = match csv.text("/status/phase") {
        "Succeeded" => {
            let found = certificate(seen, csv).or_else(|| workload(seen, csv)).map(Step::found);
            let is_changing = workloads::is_changing(seen, csv);
            return found.unwrap_or(if is_changing { Step::Progressing } else { Step::Done });
        }
        "Replacing" => replaced_by_nothing(seen, csv),
        "Pending" if reason == csv_reason::NOT_UPGRADEABLE => Some(not_upgradeable(seen, csv)),
        "Pending" if reason == "RequirementsNotMet" => requirements(seen, csv, since),
        "Pending" => workload(seen, csv),
        "InstallReady" | "Installing" => workload(seen, csv),
        "Failed" => failed(seen, csv, since),
        _ => None,
    };
    let found = found.or_else(|| recurring(csv));
    match found {
        Some(cause) => Step::found(cause),
        None if seen.has_lasted(since, PHASE) && csv.text("/status/phase") != "Replacing" => {
            Step::found(idle(csv, since))
        }
        None => Step::Progressing,
    }
}

/// A failure that OLM tries again and again: between two attempts the version is in other phases for a moment, which says nothing. Once it
/// is Installing, the attempt was no failure.
/// The API server's own refusals count at once, what nobody knows when it has happened twice.
fn recurring(csv: Doc<'_>) -> Option<Cause> {
    let reason_of = |one: Doc<'_>| {
        matches!(one.text("/reason"), "InstallComponentFailed" | "InstallComponentFailedNoRetry")
    };
    let history: Vec<Doc<'_>> = csv.list("/status/conditions").map(Doc).collect();
    let after = history
        .iter()
        .rposition(|one| matches!(one.text("/phase"), "Succeeded" | "Installing"))
        .map_or(0, |at| at + 1);
    let failures = history[after..].iter().filter(|one| one.text("/phase") == "Failed" && reason_of(**one));
    let failures: Vec<&Doc<'_>> = failures.collect();
    let (last, text) = failures.last().map(|last| (last, last.text("/message")))?;
    if refusals::code(text).is_none() && failures.len() < 2 {
        return None;
    }
    let cause = |code: &'static Code, sentence: String| {
        let since = last.moment("/lastTransitionTime");
        Cause::new(code, csv.reference(), sentence).shown(csv, "status.conditions[].message", text, since)
    };
    Some(generic(csv, last.text("/reason"), text, cause))
}

/// The Deployments of a version, and how they keep it from succeeding.
fn workload(seen: &Observation, csv: Doc<'_>) -> Option<Cause> {
    workloads::fault(seen, csv)
}

/// Nothing has happened for long, and nothing says why.
fn idle(csv: Doc<'_>, since: Option<i64>) -> Cause {
    let (phase, reason) = (csv.text("/status/phase"), csv.text("/status/reason"));
    let text = format!(
        "`{}` has been {phase} ({reason}) for more than ten minutes: {}",
        csv.name(),
        shorten(csv.text("/status/message"))
    );
    Cause::new(&codes::NO_PROGRESS, csv.reference(), text)
        .shown(csv, "status.message", csv.text("/status/message"), since)
        .repair(
            command!(
                "kubectl -n {} describe clusterserviceversion.operators.coreos.com {}",
                csv.namespace(),
                csv.name()
            ),
            "shows its requirements and events",
        )
        .repair(
            "kubectl get pods -A -l 'app in (olm-operator,catalog-operator)'",
            "shows whether OLM runs; its logs show what it is waiting for",
        )
}

/// A version that gave way to one that does not exist.
fn replaced_by_nothing(seen: &Observation, csv: Doc<'_>) -> Option<Cause> {
    let mut all = seen.within("ClusterServiceVersion", csv.namespace());
    if all.any(|other| other.text("/spec/replaces") == csv.name()) {
        return None;
    }
    // A status that somebody wrote is acted on at the next resolution.
    let subscription = subscription_of(seen, csv);
    let is_adopted = subscription.is_some_and(|one| one.text("/status/currentCSV") == csv.name());
    if is_adopted && seen.age(csv.moment("/status/lastTransitionTime")) < PHASE {
        return None;
    }
    let text = format!(
        "`{}` is Replacing, but the ClusterServiceVersion that replaces it does not exist, and OLM does not take it back",
        csv.name()
    );
    let cause = Cause::new(&codes::REPLACED_BY_NOTHING, csv.reference(), text).shown(
        csv,
        "status.message",
        csv.text("/status/message"),
        csv.moment("/status/lastTransitionTime"),
    );
    Some(match subscription {
        Some(subscription) => plans::reinstall_of(seen, subscription, cause),
        None => cause.repair(
            command!("kubectl -n {} delete clusterserviceversion.operators.coreos.com {}", csv.namespace(), csv.name()),
            "removes the operator; CRDs and custom resources stay, and OLM installs it again for its Subscription",
        ),
    })
}

/// The operator says that it must not be replaced now.
fn not_upgradeable(seen: &Observation, csv: Doc<'_>) -> Cause {
    let (old, namespace, name) = (csv.text("/spec/replaces"), csv.namespace(), csv.name());
    let condition = seen.get("OperatorCondition", namespace, old);
    let said = condition.and_then(|one| one.condition("Upgradeable"));
    let stated = condition.and_then(|one| {
        one.list("/spec/conditions").map(Doc).find(|found| found.text("/type") == "Upgradeable")
    });
    let message = said.map(|found| found.message).filter(|text| !text.is_empty());
    let message =
        message.or(stated.map(|found| found.text("/message"))).unwrap_or(csv.text("/status/message"));
    let text = format!("`{name}` waits, because `{old}` reports that it is not upgradeable: {message}");
    let object = condition.map_or_else(|| csv.reference(), Doc::reference);
    let mut cause = Cause::new(&codes::NOT_UPGRADEABLE, object, text);
    if let (Some(one), Some(found)) = (condition, said) {
        cause = cause.shown(one, "status.conditions[Upgradeable].message", found.message, found.since);
    }
    cause = cause.shown(
        csv,
        "status.message",
        csv.text("/status/message"),
        csv.moment("/status/lastTransitionTime"),
    );
    cause.consequences.push(format!("clusterserviceversion/{old} is Replacing and runs on"));
    cause
        .repair(
            command!("kubectl -n {} get operatorcondition.operators.coreos.com {} -w", namespace, old),
            "waits for the operator to finish: the upgrade continues automatically once it sets Upgradeable=True, and nothing is lost",
        )
        .repair(
            command!("kubectl -n {} patch operatorcondition.operators.coreos.com {} --type merge -p '{\"spec\":{\"overrides\":[{\"type\":\"Upgradeable\",\"status\":\"True\",\"reason\":\"Overridden\",\"message\":\"overridden by the administrator\"}]}}'", namespace, old),
            "instead, overrides the operator: the upgrade continues at once, whatever the operator is doing",
        )
}

/// Requirements that are not met, and that OLM is not about to meet itself.
fn requirements(seen: &Observation, csv: Doc<'_>, since: Option<i64>) -> Option<Cause> {
    let unmet: Vec<Doc<'_>> = csv
        .list("/status/requirementStatus")
        .map(Doc)
        .filter(|one| !matches!(one.text("/status"), "Present" | "Satisfied" | ""))
        .collect();
    let is_installing = seen
        .within("InstallPlan", csv.namespace())
        .any(|plan| !plans::is_over(plan) && plans::carries(plan, csv.name()));
    // Steps of the plan come one after another.
    let settled = seen.age(since) >= REQUIREMENTS || !is_installing;
    let of_kind = |kind: &str| unmet.iter().copied().find(|one| one.text("/kind") == kind);
    let (name, namespace) = (csv.name(), csv.namespace());
    let field = "status.requirementStatus[].message";
    if let Some(one) = of_kind("ClusterServiceVersion") {
        let message = one.text("/message");
        let text = format!("`{name}` cannot run on this Kubernetes: {message}");
        let cause =
            Cause::new(&codes::KUBERNETES_TOO_OLD, csv.reference(), text).shown(csv, field, message, since);
        let cause = cause.repair(
            "kubectl version",
            "shows the version of the cluster: upgrade it, and OLM continues automatically",
        );
        return Some(match subscription_of(seen, csv) {
            Some(subscription) => cause.repair(
                command!("olmkit operator uninstall {} -n {}", subscription.name(), namespace),
                "instead, removes what never ran; then `olmkit operator install` with `--version` installs one that runs on this Kubernetes",
            ),
            None => cause,
        });
    }
    let is_alongside = |one: &Doc<'_>| one.text("/message").contains("installed alongside");
    let is_unserved = |one: &&Doc<'_>| {
        one.text("/kind") == "CustomResourceDefinition"
            && !is_alongside(one)
            && !serves(seen, csv, one.text("/name"))
    };
    let taken = unmet.iter().filter(is_unserved).find_map(|one| {
        let taken = names_taken(seen, &format!("`{name}`"), one.text("/name"))?;
        Some(taken.shown(csv, field, one.text("/message"), since))
    });
    if taken.is_some() {
        return taken;
    }
    if let Some(one) = unmet.iter().find(is_unserved).filter(|_| settled) {
        return Some(crd(csv, *one, since));
    }
    let apis = unmet.iter().copied().find(|one| one.text("/kind") == "APIService");
    if let Some(one) = apis.filter(|_| settled) {
        return Some(api_service(seen, csv, one, since));
    }
    let native = unmet.iter().copied().find(|one| one.text("/message").contains("Native API"));
    if let Some(one) = native {
        let (api, message) = (one.text("/name"), one.text("/message"));
        let text = format!(
            "`{name}` needs the API {} `{api}`, which the cluster does not have: {message}",
            one.text("/kind")
        );
        return Some(
            Cause::new(&codes::REQUIRED_API_MISSING, csv.reference(), text)
                .shown(csv, field, format!("{} {api}: {message}", one.text("/kind")), since)
                .repair("kubectl api-resources", "lists the APIs of the cluster: install what serves the missing one, and OLM continues within 30 seconds"),
        );
    }
    waiting(seen, csv, &unmet, (since, settled, is_installing))
}

/// Accounts and rules come with the plan; later they are in somebody's way.
fn waiting(
    seen: &Observation,
    csv: Doc<'_>,
    unmet: &[Doc<'_>],
    (since, settled, is_installing): (Option<i64>, bool, bool),
) -> Option<Cause> {
    let (name, namespace) = (csv.name(), csv.namespace());
    let is_alongside = |one: &Doc<'_>| one.text("/message").contains("installed alongside");
    let other = unmet
        .iter()
        .copied()
        .find(|one| !is_alongside(one) && one.text("/kind") != "CustomResourceDefinition")?;
    let is_waiting_for_predecessor =
        other.text("/message").contains("owned by another ClusterServiceVersion");
    // Once its plan is complete nobody makes the version an owner.
    let is_others = is_waiting_for_predecessor && !is_installing && seen.age(since) >= OWNING;
    if is_others {
        return Some(others_account(csv, other, since));
    }
    // An account that nobody is about to create does not come by itself; OLM looks again a moment after the last step of a plan.
    let is_gone = other.text("/kind") == "ServiceAccount"
        && other.text("/status") == "NotPresent"
        && settled
        && seen.age(since) >= OWNING;
    if !is_gone
        && (seen.age(since) < 60_000
            || is_installing
            || is_waiting_for_predecessor && seen.age(since) < PHASE)
    {
        return None;
    }
    let message = other.text("/message");
    let dependents: Vec<&str> = other
        .list("/dependents")
        .map(Doc)
        .filter(|one| one.text("/status") == "NotSatisfied")
        .map(|one| one.text("/message"))
        .collect();
    let text = format!("`{name}` needs {} `{}`: {message}", other.text("/kind"), other.text("/name"));
    let mut cause = Cause::new(&codes::REQUIREMENT_MISSING, csv.reference(), text).shown(
        csv,
        "status.requirementStatus[].message",
        message,
        since,
    );
    if !dependents.is_empty() {
        cause =
            cause.shown(csv, "status.requirementStatus[].dependents[].message", dependents.join("; "), since);
    }
    if is_gone {
        cause = cause.repair(
            command!("kubectl -n {} create serviceaccount {} && kubectl -n {} label serviceaccount {} olm.managed=true", namespace, other.text("/name"), namespace, other.text("/name")),
            "creates it again, and lets OLM see it: its rights are still bound to the name, and OLM continues within half a minute",
        );
    }
    Some(cause.repair(
        command!("kubectl -n {} get clusterserviceversion.operators.coreos.com {} -o jsonpath='{.status.requirementStatus}'", namespace, name),
        "lists every requirement: create what is missing, and OLM continues automatically",
    ))
}

/// An account that the bundle has as an object too: OLM makes a version an owner only of the accounts that it creates itself.
fn others_account(csv: Doc<'_>, unmet: Doc<'_>, since: Option<i64>) -> Cause {
    let (account, message) = (unmet.text("/name"), unmet.text("/message"));
    let text = format!(
        "`{}` waits for good for the ServiceAccount `{account}`, which its bundle has as an object and the version before owns: {message}",
        csv.name()
    );
    Cause::new(&codes::REQUIREMENT_MISSING, csv.reference(), text)
        .shown(csv, "status.requirementStatus[].message", message, since)
        .repair(
            command!("kubectl -n {} get serviceaccount {} -o jsonpath='{.metadata.ownerReferences}'", csv.namespace(), account),
            "shows who owns it: publish a bundle without the ServiceAccount, since OLM creates those of the permissions itself",
        )
}

/// Whether a CRD exists by now and is served: OLM looks again every half minute.
fn serves(seen: &Observation, csv: Doc<'_>, name: &str) -> bool {
    let Some(crd) = seen.get("CustomResourceDefinition", "", name) else { return false };
    let wanted = ["owned", "required"]
        .into_iter()
        .flat_map(|list| csv.list(&format!("/spec/customresourcedefinitions/{list}")));
    let mut versions = wanted.filter(|one| one["name"] == name).filter_map(|one| one["version"].as_str());
    let served =
        |version: &str| crd.list("/spec/versions").any(|one| one["name"] == version && one["served"] == true);
    crd.holding("Established").is_some() && versions.all(served)
}

/// A CRD that exists and is not served, since another one has its kind or another name of it: that no step of a plan changes.
pub(super) fn names_taken(seen: &Observation, needed_by: &str, crd: &str) -> Option<Cause> {
    let found = seen.get("CustomResourceDefinition", "", crd)?;
    let why = found.condition("NamesAccepted").filter(|accepted| !accepted.is_true)?;
    let (name, group) = (found.name(), found.text("/spec/group"));
    let text = format!(
        "{needed_by} needs the CRD `{name}`, which Kubernetes does not serve: another CRD of the group `{group}` has its names ({}): {}",
        why.reason, why.message
    );
    Some(
        Cause::new(&codes::CRD_NAMES_TAKEN, found.reference(), text)
            .finally(true)
            .shown(found, "status.conditions[NamesAccepted].message", why.message, why.since)
            .repair(
                "kubectl get crd -o 'custom-columns=NAME:.metadata.name,KIND:.spec.names.kind,SINGULAR:.spec.names.singular,SHORT:.spec.names.shortNames'",
                format!("shows which CRD of `{group}` has them: once it is gone Kubernetes serves `{name}`, and OLM continues within half a minute; its custom resources are deleted with it"),
            ),
    )
}

/// What OLM says of an owned version that its CRD does not serve.
const NOT_SERVED: &str = "CRD version not served";

fn crd(csv: Doc<'_>, one: Doc<'_>, since: Option<i64>) -> Cause {
    let (name, crd, message) = (csv.name(), one.text("/name"), one.text("/message"));
    let is_owned = csv.list("/spec/customresourcedefinitions/owned").any(|owned| owned["name"] == crd);
    let field = "status.requirementStatus[].message";
    let shown = format!("CustomResourceDefinition {crd}: {message}");
    if is_owned && message == NOT_SERVED {
        let text =
            format!("`{name}` owns a version of the CRD `{crd}` that the CRD does not serve: {message}");
        return Cause::new(&codes::OWNED_CRD_MISSING, csv.reference(), text).shown(csv, field, shown, since).repair(
            command!("kubectl get crd {} -o yaml", crd),
            "shows which versions are served: publish a bundle that owns only these, or that serves this one",
        );
    }
    if is_owned {
        let text = format!("`{name}` owns the CRD `{crd}`, which does not exist: {message}");
        return Cause::new(&codes::OWNED_CRD_MISSING, csv.reference(), text).shown(csv, field, shown, since).repair(
            command!("kubectl -n {} get configmaps -l olm.managed=true", csv.namespace()),
            "lists the unpacked bundles: create the CRD again from the operator's bundle, and OLM notices within half a minute. Custom resources were deleted with the CRD: restore them from a backup",
        );
    }
    if message == NOT_SERVED {
        let mut all = csv.list("/spec/customresourcedefinitions/required").map(Doc);
        let version = all.find(|one| one.text("/name") == crd).map_or("", |one| one.text("/version"));
        let text = format!(
            "`{name}` requires the version {version} of the CRD `{crd}`, which the CRD does not serve: {message}"
        );
        return Cause::new(&codes::REQUIRED_API_MISSING, csv.reference(), text).shown(csv, field, shown, since).repair(
            command!("kubectl get crd {} -o 'jsonpath={.metadata.labels}{range .spec.versions[*]}{\"\\n\"}{.name}: {.served}{end}'", crd),
            format!("shows which versions are served, and whose CRD it is: go back to a version of that operator that serves {version}, or upgrade this one"),
        );
    }
    let text = format!("`{name}` requires the CRD `{crd}`, which the cluster does not have: {message}");
    Cause::new(&codes::REQUIRED_API_MISSING, csv.reference(), text).shown(csv, field, shown, since).repair(
        command!("kubectl get crd {}", crd),
        "shows whether it exists: install the operator that owns it, or create the CRD, and OLM continues within 30 seconds",
    )
}

fn api_service(seen: &Observation, csv: Doc<'_>, one: Doc<'_>, since: Option<i64>) -> Cause {
    let (api, message) = (one.text("/name"), one.text("/message"));
    let found = seen.get("APIService", "", api);
    let why = found.and_then(|found| found.condition("Available")).filter(|available| !available.is_true);
    let text = format!(
        "`{}` needs the aggregated API `{api}`, which does not answer: {}",
        csv.name(),
        why.map_or(message, |why| why.message)
    );
    let object = found.map_or_else(|| csv.reference(), Doc::reference);
    let mut cause = Cause::new(&codes::API_SERVICE_DOWN, object, text);
    if let (Some(found), Some(why)) = (found, why) {
        cause = cause.shown(found, "status.conditions[Available].message", why.message, why.since);
    }
    cause
        .shown(csv, "status.requirementStatus[].message", format!("APIService {api}: {message}"), since)
        .repair(
            command!("kubectl describe apiservice {}", api),
            "names the Service that answers for the API: start the operator that it belongs to",
        )
}

/// A certificate of OLM's that nobody renewed.
fn certificate(seen: &Observation, csv: Doc<'_>) -> Option<Cause> {
    let due = csv.moment("/status/certsRotateAt")?;
    if seen.now() < due + ROTATION {
        return None;
    }
    let (name, namespace) = (csv.name(), csv.namespace());
    let services: Vec<String> = csv
        .list("/spec/install/spec/deployments")
        .filter_map(|one| one["name"].as_str())
        .map(|one| format!("secret/{one}-service-cert"))
        .collect();
    let text = format!(
        "the certificate that OLM created for the webhooks and APIs of `{name}` has expired: OLM should have renewed it at {}",
        csv.text("/status/certsRotateAt")
    );
    Some(
        Cause::new(&codes::CERTIFICATE_EXPIRED, csv.reference(), text)
            .shown(csv, "status.certsRotateAt", csv.text("/status/certsRotateAt"), Some(due))
            .repair(
                command!("kubectl -n {} delete", namespace).words(services),
                "makes OLM create a new certificate and replace the operator's pods, which takes about a minute",
            )
            .repair("kubectl get pods -A -l 'app in (olm-operator,catalog-operator)'", "shows whether OLM runs: it renews certificates a day before they expire"),
    )
}

fn failed(seen: &Observation, csv: Doc<'_>, since: Option<i64>) -> Option<Cause> {
    let (namespace, name) = (csv.namespace(), csv.name());
    let (reason, message) = (csv.text("/status/reason"), csv.text("/status/message"));
    let groups: Vec<Doc<'_>> = seen.within("OperatorGroup", namespace).collect();
    let group = groups.first().copied();
    let is_final = csv_reason::TERMINAL.iter().any(|(known, _)| *known == reason);
    let cause = |code: &'static Code, text: String| {
        Cause::new(code, csv.reference(), text).finally(is_final).shown(csv, "status.message", message, since)
    };
    match reason {
        // The groups were looked at before: what is said here is behind.
        "NoOperatorGroup" | "TooManyOperatorGroups" if groups.len() == 1 => None,
        // OLM says it, whether the groups could be looked at or not.
        "NoOperatorGroup" if groups.is_empty() => Some(groups::none(seen, csv)),
        "TooManyOperatorGroups" => Some(groups::several(seen, namespace).unwrap_or_else(|| {
            let text = format!("the namespace `{namespace}` has more than one OperatorGroup, so OLM installs and upgrades nothing there: {message}");
            cause(&codes::SEVERAL_OPERATOR_GROUPS, text).repair(
                command!("kubectl -n {} get operatorgroups.operators.coreos.com", namespace),
                "lists them: delete all but one, and OLM continues within 10 seconds",
            )
        })),
        "UnsupportedOperatorGroup" | "InvalidInstallModes" | "NoTargetNamespaces" => {
            let modes = supported(csv);
            if group.is_some_and(|group| {
                !groups::targets(group).is_empty() && modes.contains(&mode(namespace, group))
            }) && reason != "InvalidInstallModes"
            {
                return None;
            }
            let group_name = group.map_or("", Doc::name);
            let text = format!(
                "`{name}` cannot watch the namespaces of the OperatorGroup `{group_name}`: {message}; it supports {}",
                if modes.is_empty() { "no install mode".to_owned() } else { modes.join(", ") }
            );
            let mut found = cause(&codes::UNSUPPORTED_INSTALL_MODE, text);
            if let Some(group) = group {
                let targets = groups::targets(group);
                let shown = if targets == [""] { "all namespaces".to_owned() } else { targets.join(", ") };
                found = found.shown(group, "spec.targetNamespaces", shown, group.created());
                if let Some((kind, patch, effect)) = fitting(namespace, &modes, targets) {
                    found = found.repair(
                        command!("kubectl -n {} patch operatorgroup.operators.coreos.com {} --type {} -p {}", namespace, group_name, kind, patch),
                        effect,
                    );
                }
            }
            Some(found)
        }
        "InterOperatorGroupOwnerConflict" | "CannotModifyStaticOperatorGroupProvidedAPIs" => {
            conflict(seen, csv, group, reason, cause)
        }
        "OwnerConflict" => {
            let owned = |one: Doc<'_>| -> Vec<String> {
                let owned = one.list("/spec/customresourcedefinitions/owned");
                owned.filter_map(|crd| crd["name"].as_str().map(str::to_owned)).collect()
            };
            let own = owned(csv);
            let mut others = seen.within("ClusterServiceVersion", namespace).filter(|one| one.name() != name);
            let rival = others.find_map(|one| {
                let shared = owned(one).into_iter().find(|crd| own.contains(crd))?;
                Some(format!("`{}` of the same namespace own the same CRD, `{shared}`", one.name()))
            });
            let rival = rival.unwrap_or_else(|| "another operator own the same CRD or API".to_owned());
            let text = format!("`{name}` and {rival}: {message}");
            Some(cause(&codes::OPERATOR_GROUP_CONFLICT, text).repair(
                command!("kubectl -n {} get clusterserviceversions.operators.coreos.com", namespace),
                "shows the operators of the namespace: remove the one that is not wanted",
            ))
        }
        "RequirementsNotMet" => requirements(seen, csv, since),
        "ComponentUnhealthy" | "InstallCheckFailed" | "NeedsReinstall" => workload(seen, csv).or_else(|| {
            let is_final = message.contains("exceeded its progress deadline") && seen.age(since) > 60_000;
            let is_old = seen.age(since) > 30_000;
            (is_final || is_old && !message.contains("progress deadline"))
                .then(|| generic(csv, reason, message, cause))
        }),
        "APIServiceResourceIssue" | "APIServiceResourcesNeedReinstall" | "APIServiceInstallFailed" => {
            let owned = csv.list("/spec/apiservicedefinitions/owned").map(Doc).next();
            let api =
                owned.map_or(String::new(), |one| format!("{}.{}", one.text("/version"), one.text("/group")));
            let text =
                format!("the aggregated API `{api}` of `{name}` does not answer ({reason}): {message}");
            (seen.age(since) > 60_000).then(|| {
                cause(&codes::API_SERVICE_DOWN, text).repair(
                    command!("kubectl describe apiservice {}", api),
                    "shows why it is not available: its Service, its certificate or its pods",
                )
            })
        }
        _ => Some(generic(csv, reason, message, cause)),
    }
}

/// A failure that only its message explains.
fn generic(
    csv: Doc<'_>,
    reason: &str,
    message: &str,
    cause: impl Fn(&'static Code, String) -> Cause,
) -> Cause {
    let code = refusals::code(message).unwrap_or(&codes::CSV_FAILED);
    let help = csv_reason::TERMINAL.iter().find(|(known, _)| *known == reason).map(|(_, help)| *help);
    let text = format!("`{}` failed ({reason}): {}", csv.name(), shorten(message));
    cause(code, text).repair(
        command!(
            "kubectl -n {} describe clusterserviceversion.operators.coreos.com {}",
            csv.namespace(),
            csv.name()
        ),
        help.unwrap_or("shows what OLM tried, with its events"),
    )
}

/// The install modes that a version supports.
fn supported(csv: Doc<'_>) -> Vec<String> {
    let modes = csv.list("/spec/installModes").filter(|one| one["supported"] == true);
    modes.filter_map(|one| one["type"].as_str().map(str::to_owned)).collect()
}

/// The install mode that a group demands.
fn mode(namespace: &str, group: Doc<'_>) -> String {
    let targets: Vec<String> = groups::targets(group).into_iter().map(str::to_owned).collect();
    InstallModeKind::of(namespace, &targets).to_string()
}

/// The change of a group that a version supports: the kind of patch, the patch, and what it does.
fn fitting(
    namespace: &str,
    modes: &[String],
    targets: Vec<&str>,
) -> Option<(&'static str, serde_json::Value, String)> {
    let has = |mode: &str| modes.iter().any(|one| one == mode);
    let set = |list: &[&str], effect: String| {
        Some(("merge", serde_json::json!({"spec": {"targetNamespaces": list}}), effect))
    };
    if has("OwnNamespace") {
        return set(
            &[namespace],
            format!("lets the operator watch only `{namespace}`; OLM continues within 5 seconds"),
        );
    }
    if has("AllNamespaces") && targets != [""] {
        let patch = serde_json::json!([{"op": "remove", "path": "/spec/targetNamespaces"}]);
        return Some((
            "json",
            patch,
            "lets the operator watch all namespaces; OLM continues within 5 seconds".into(),
        ));
    }
    let other = targets.into_iter().find(|one| !one.is_empty() && *one != namespace);
    if has("SingleNamespace") {
        let other = other.unwrap_or("default");
        return set(
            &[other],
            format!(
                "lets the operator watch only the namespace `{other}`: name the one that you want; OLM continues within 5 seconds"
            ),
        );
    }
    None
}

/// Another group with the same namespaces provides the same API.
fn conflict(
    seen: &Observation,
    csv: Doc<'_>,
    group: Option<Doc<'_>>,
    reason: &str,
    cause: impl Fn(&'static Code, String) -> Cause,
) -> Option<Cause> {
    let owned = |csv: Doc<'_>| -> Vec<String> {
        csv.list("/spec/customresourcedefinitions/owned")
            .filter_map(|one| one["name"].as_str().map(str::to_owned))
            .collect()
    };
    let mine = owned(csv);
    let (name, namespace, message) = (csv.name(), csv.namespace(), csv.text("/status/message"));
    let own_targets = group.map(groups::targets).unwrap_or_default();
    let meets = |other: Doc<'_>| {
        let targets = groups::targets(other);
        targets.contains(&"")
            || own_targets.contains(&"")
            || targets.iter().any(|one| own_targets.contains(one))
    };
    let rival = seen.of("ClusterServiceVersion").find(|other| {
        !other.is_copy()
            && other.namespace() != namespace
            && owned(*other).iter().any(|one| mine.contains(one))
            && seen.within("OperatorGroup", other.namespace()).any(meets)
    });
    let Some(rival) = rival else {
        // The groups no longer meet: OLM looks again in a moment. What cannot be seen is believed.
        let knows_rivals = seen.of("OperatorGroup").any(|other| other.namespace() != namespace);
        let is_static = reason == "CannotModifyStaticOperatorGroupProvidedAPIs";
        if knows_rivals && !is_static {
            return None;
        }
        let text =
            format!("`{name}` provides an API that its OperatorGroup may not provide ({reason}): {message}");
        return Some(cause(&codes::OPERATOR_GROUP_CONFLICT, text).repair(
            "kubectl get operatorgroups.operators.coreos.com -A",
            "lists all groups with their namespaces: let no two of them that provide the same API share a namespace",
        ));
    };
    let other = seen.within("OperatorGroup", rival.namespace()).next();
    let text = format!(
        "`{name}` and `{}` in the namespace `{}` provide the same APIs ({}), and their OperatorGroups `{}` and `{}` share namespaces: {message}",
        rival.name(),
        rival.namespace(),
        mine.join(", "),
        group.map_or("", Doc::name),
        other.map_or("", Doc::name),
    );
    let mut found = cause(&codes::OPERATOR_GROUP_CONFLICT, text);
    for one in group.into_iter().chain(other) {
        let targets = groups::targets(one);
        let shown = if targets == [""] { "all namespaces".to_owned() } else { targets.join(", ") };
        found = found.shown(one, "spec.targetNamespaces", shown, one.created());
    }
    // The one with more namespaces is the one that can give some up.
    let wide = group.into_iter().chain(other).max_by_key(|one| groups::targets(*one).len());
    if let Some(wide) = wide {
        let rest: Vec<&str> = groups::targets(wide)
            .into_iter()
            .filter(|one| !one.is_empty())
            .filter(|one| {
                let narrow =
                    group.into_iter().chain(other).find(|other| other.namespace() != wide.namespace());
                narrow.is_none_or(|narrow| !groups::targets(narrow).contains(one))
            })
            .collect();
        if !rest.is_empty() {
            let patch = serde_json::json!({"spec": {"targetNamespaces": rest}});
            found = found.repair(
                command!("kubectl -n {} patch operatorgroup.operators.coreos.com {} --type merge -p {}", wide.namespace(), wide.name(), patch),
                "makes the groups disjoint: both operators continue within 3 seconds, and the one whose group shrinks is restarted",
            );
        }
    }
    Some(found.repair(
        match subscription_of(seen, csv) {
            Some(subscription) => {
                command!("olmkit operator uninstall {} -n {}", subscription.name(), namespace)
            }
            None => command!(
                "kubectl -n {} delete clusterserviceversion.operators.coreos.com/{}",
                namespace,
                name
            ),
        },
        format!("instead, removes the operator that does not run; `{}` runs on", rival.name()),
    ))
}

/// A version that exists, and that no Subscription knows.
pub(super) fn orphaned(seen: &Observation, csv: Doc<'_>, subscription: Doc<'_>) -> Cause {
    let (name, namespace) = (csv.name(), csv.namespace());
    // The Subscription of its own package is the one to adopt it.
    let package = package_of(csv);
    let mut all = seen.within("Subscription", namespace);
    let own = all.find(|one| package.as_deref() == Some(one.text("/spec/name"))).unwrap_or(subscription);
    let text = format!(
        "the ClusterServiceVersion `{name}` exists and is not referenced by a subscription, and OLM resolves nothing in the namespace `{namespace}` because of it: the Subscription `{}` does not record that its operator is installed",
        own.name()
    );
    let patch = serde_json::json!({"status": {
        "installedCSV": name, "currentCSV": name, "state": "AtLatestKnown",
        "lastUpdated": moment::format(seen.now()),
    }});
    Cause::new(&codes::CSV_ORPHANED, csv.reference(), text)
        .shown(csv, "status.phase", csv.text("/status/phase"), csv.moment("/status/lastTransitionTime"))
        .shown(own, "status.installedCSV", own.text("/status/installedCSV"), own.created())
        .safe_repair(
            command!("kubectl -n {} patch subscription.operators.coreos.com {} --subresource status --type merge -p {}", namespace, own.name(), patch),
            "lets the Subscription adopt the ClusterServiceVersion: OLM resolves the next version about 6 seconds later, and nothing is restarted",
        )
        .repair(
            command!("kubectl -n {} delete clusterserviceversion.operators.coreos.com {}", namespace, name),
            "instead, deletes it: OLM installs the operator again within about 10 seconds, in which it is down; CRDs and custom resources stay",
        )
}

/// The package that a version says it is of.
pub(super) fn package_of(csv: Doc<'_>) -> Option<String> {
    let properties: serde_json::Value =
        serde_json::from_str(csv.annotation(crate::lifecycle::api::label::PROPERTIES)).ok()?;
    let mut all = properties["properties"].as_array()?.iter();
    all.find(|one| one["type"] == "olm.package")?.pointer("/value/packageName")?.as_str().map(str::to_owned)
}
