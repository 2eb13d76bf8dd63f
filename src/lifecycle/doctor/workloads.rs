//! The Deployments of an operator and their pods: why they do not come up.

use super::codes;
use super::doc::Doc;
use super::observation::Observation;
use super::pods::{self, What};
use super::rehearsal::way_back;
use super::relations::subscription_of;
use super::{Cause, Repair, plans, refusals};
use crate::lifecycle::api::label;
use crate::lifecycle::lineage::lineage;
use crate::sentence::Sentence;
use crate::shell::command;

/// How long OLM may take to create a Deployment.
const CREATING: i64 = 15_000;
/// How long OLM may take to notice that a Deployment of an installed version was changed, and others to put it right.
const CHANGING: i64 = 60_000;
/// How long Kubernetes may take to create the pods of a Deployment.
const BECOMING_VISIBLE: i64 = 60_000;

/// What keeps the Deployments of a version from becoming available.
pub(super) fn fault(seen: &Observation, csv: Doc<'_>) -> Option<Cause> {
    wanted(csv).find_map(|name| deployment(seen, csv, name))
}

/// The Deployments of a version.
pub(super) fn wanted<'o>(csv: Doc<'o>) -> impl Iterator<Item = &'o str> {
    csv.list("/spec/install/spec/deployments").filter_map(|one| one["name"].as_str())
}

/// Whether a Deployment of an installed version is gone, or has no pods any more, and nobody knows yet whether that lasts.
pub(super) fn is_changing(seen: &Observation, csv: Doc<'_>) -> bool {
    seen.looked_at("Deployment") && wanted(csv).any(|name| is_down(seen, csv, name))
}

/// Whether a Deployment of an installed version does not exist, or was scaled to zero.
pub(super) fn is_down(seen: &Observation, csv: Doc<'_>, name: &str) -> bool {
    let found = seen.get("Deployment", csv.namespace(), name);
    found.is_none_or(|found| is_scaled_down(csv, found))
}

/// Whether somebody scaled a Deployment to zero: the version itself may want no pods.
fn is_scaled_down(csv: Doc<'_>, deployment: Doc<'_>) -> bool {
    let mut own = csv.list("/spec/install/spec/deployments");
    let own = own.find(|one| one["name"] == deployment.name()).map(Doc);
    deployment.number("/spec/replicas") == Some(0)
        && own.is_none_or(|own| own.number("/spec/replicas") != Some(0))
}

fn deployment(seen: &Observation, csv: Doc<'_>, name: &str) -> Option<Cause> {
    let is_installed = csv.text("/status/phase") == "Succeeded";
    let Some(found) = seen.get("Deployment", csv.namespace(), name) else {
        return if is_installed { gone(seen, csv, name) } else { missing(seen, csv, name) };
    };
    if is_installed && is_scaled_down(csv, found) {
        return scaled_down(seen, csv, found);
    }
    let newest = newest_pods(seen, found);
    if is_available(found) && !newest.iter().any(|pod| pods::has_restarted(*pod)) {
        return None;
    }
    // While a new version waits for an old one that never came up, the Deployment is still that of the old one.
    let own = owner(seen, csv, found).unwrap_or(csv);
    let what = match is_available(found) {
        true => format!("`{}` does not keep running", own.name()),
        false => format!("`{}` does not start, its deployment `{name}` is not available", own.name()),
    };
    let fault = newest.into_iter().find_map(|pod| pods::fault(seen, pod));
    if is_available(found) && fault.is_none() {
        return None;
    }
    let cause = match fault {
        Some(fault) => repaired(seen, csv, own.name(), &fault, fault.cause(pods::code(&fault), &what)),
        None => refused(seen, csv, found, &what)
            .or_else(|| deadline(seen, csv, found, &what))
            .or_else(|| never_ready(seen, csv, found, &what))?,
    };
    let mut cause = context(seen, own, found, cause);
    if own.name() != csv.name() {
        let (name, phase, reason) = (csv.name(), csv.text("/status/phase"), csv.text("/status/reason"));
        let waits =
            format!("clusterserviceversion/{name}, which replaces it, waits for it: {phase} ({reason})");
        cause.consequences.push(waits);
    }
    Some(cause)
}

/// The version that a Deployment is of, where that is an older one.
fn owner<'o>(seen: &'o Observation, csv: Doc<'o>, deployment: Doc<'o>) -> Option<Doc<'o>> {
    let csv_named = |name: &str| seen.get("ClusterServiceVersion", csv.namespace(), name);
    let older = lineage([csv.text("/spec/replaces")], |name| Some(csv_named(name)?.text("/spec/replaces")));
    older.into_iter().find(|name| *name == deployment.label(label::OWNER)).and_then(csv_named)
}

/// Whether the pods that answer for a Deployment are of a version, and not of the one that replaces it.
pub(super) fn is_run_by(csv: Doc<'_>, deployment: Doc<'_>) -> bool {
    // What answers while the newest pods do not is the version before.
    let owner = deployment.label(label::OWNER);
    owner.is_empty() || owner == csv.name() || !is_available(deployment)
}

/// Whether a Deployment has all the pods of its newest template.
fn is_available(deployment: Doc<'_>) -> bool {
    let number = |path: &str| deployment.number(path).unwrap_or(0);
    let is_current = number("/status/observedGeneration") >= number("/metadata/generation");
    is_current
        && number("/status/replicas") <= number("/status/updatedReplicas")
        && deployment.holding("Available").is_some()
}

/// The pods of a Deployment.
pub(super) fn pods_of<'o>(
    seen: &'o Observation,
    namespace: &str,
    deployment: &str,
) -> impl Iterator<Item = Doc<'o>> {
    let deployment = deployment.to_owned();
    seen.within("Pod", namespace).filter(move |pod| {
        let set = pod.owners("ReplicaSet").next();
        set.and_then(|set| set.rsplit_once('-')).is_some_and(|(name, _)| name == deployment)
    })
}

/// The pods of the newest template of a Deployment, the newest first.
fn newest_pods<'o>(seen: &'o Observation, deployment: Doc<'o>) -> Vec<Doc<'o>> {
    let mut own: Vec<Doc<'o>> = pods_of(seen, deployment.namespace(), deployment.name()).collect();
    own.sort_by_key(|pod| (std::cmp::Reverse(pod.created()), pod.name()));
    let newest = own.first().map(|pod| pod.label("pod-template-hash")).unwrap_or("");
    own.retain(|pod| pod.label("pod-template-hash") == newest);
    own
}

/// What OLM and Kubernetes say beside the pod.
fn context(seen: &Observation, csv: Doc<'_>, deployment: Doc<'_>, mut cause: Cause) -> Cause {
    if let Some(found) = deployment.conditions().find(|one| one.kind == "Available" && !one.is_true) {
        cause = cause.shown(deployment, "status.conditions[Available].message", found.message, found.since);
    }
    if let Some(found) = deployment.conditions().find(|one| one.reason == "ProgressDeadlineExceeded") {
        cause = cause.shown(deployment, "status.conditions[Progressing].message", found.message, found.since);
    }
    let since = csv.moment("/status/lastTransitionTime");
    cause = cause.shown(csv, "status.message", csv.text("/status/message"), since);
    let failed = csv.list("/status/conditions").map(Doc).filter(|one| one.text("/phase") == "Failed").last();
    if let Some(found) = failed.filter(|found| found.text("/reason") == "InstallCheckFailed") {
        cause = cause.shown(
            csv,
            "status.conditions[].message",
            found.text("/message"),
            found.moment("/lastTransitionTime"),
        );
    }
    let phase = csv.text("/status/phase");
    cause.consequences.push(format!(
        "clusterserviceversion/{} is {phase} ({})",
        csv.name(),
        csv.text("/status/reason")
    ));
    let replaced = seen.get("ClusterServiceVersion", csv.namespace(), csv.text("/spec/replaces"));
    let is_replacing = |replaced: &Doc<'_>| replaced.text("/status/phase") == "Replacing";
    if let Some(replaced) = replaced.filter(is_replacing).filter(|_| phase != "Succeeded") {
        cause.consequences.push(format!("clusterserviceversion/{} stays Replacing", replaced.name()));
    }
    cause
}

/// The Deployment does not exist, and OLM does not make it right now.
fn missing(seen: &Observation, csv: Doc<'_>, name: &str) -> Option<Cause> {
    let since = csv.moment("/status/lastTransitionTime");
    let is_due = matches!(csv.text("/status/phase"), "Installing" | "Failed");
    if !seen.looked_at("Deployment") || !is_due || seen.age(since) < CREATING {
        return None;
    }
    let text = format!(
        "`{}` waits for its deployment `{name}`, which does not exist: OLM creates it again at its next cycle of five minutes",
        csv.name()
    );
    Some(
        Cause::new(&codes::DEPLOYMENT_MISSING, csv.reference(), text)
            .shown(csv, "status.message", csv.text("/status/message"), since)
            .repair(
                command!("kubectl -n {} get clusterserviceversion.operators.coreos.com {} -w", csv.namespace(), csv.name()),
                "no action needed: shows how OLM reinstalls it; while Installing, OLM recreates a Deployment only at its next five-minute cycle",
            ),
    )
}

/// The Deployment of an installed version does not exist, and OLM did not make it again at once, as it does.
fn gone(seen: &Observation, csv: Doc<'_>, name: &str) -> Option<Cause> {
    let (namespace, since) = (csv.namespace(), csv.moment("/status/lastTransitionTime"));
    // As long as its pods are there, it has just been deleted.
    let is_new = pods_of(seen, namespace, name).next().is_some();
    if !seen.looked_at("Deployment") || is_new || seen.age(since) < CHANGING {
        return None;
    }
    let text = format!(
        "`{}` is Succeeded, but its deployment `{name}` does not exist: the operator does not run, and OLM, which creates a deleted Deployment again within seconds, has not done so",
        csv.name()
    );
    Some(
        Cause::new(&codes::DEPLOYMENT_MISSING, csv.reference(), text)
            .shown(csv, "status.phase", "Succeeded", since)
            .repair(
                "kubectl get pods -A -l 'app in (olm-operator,catalog-operator)'",
                "shows whether OLM runs: once olm-operator runs, it creates the Deployment again, and nothing else has to be done",
            ),
    )
}

/// Somebody scaled an installed version to zero: OLM leaves it at that, and calls it Succeeded.
fn scaled_down(seen: &Observation, csv: Doc<'_>, deployment: Doc<'_>) -> Option<Cause> {
    let (name, namespace) = (deployment.name(), deployment.namespace());
    let changed = deployment.conditions().filter_map(|one| one.since).max();
    let since = csv.moment("/status/lastTransitionTime").max(deployment.created()).max(changed);
    if seen.age(since) < CHANGING {
        return None;
    }
    let text = format!(
        "deployment `{name}` of `{}` was scaled to 0: the operator does not run; OLM does not scale it back, and still reports Succeeded",
        csv.name()
    );
    let own = csv.list("/spec/install/spec/deployments").map(Doc).find(|one| one.text("/name") == name);
    let replicas = own.and_then(|own| own.number("/spec/replicas")).unwrap_or(1);
    Some(
        Cause::new(&codes::SCALED_TO_ZERO, deployment.reference(), text)
            .shown(deployment, "spec.replicas", "0", None)
            .shown(csv, "status.phase", "Succeeded", csv.moment("/status/lastTransitionTime"))
            .repair(
                command!("kubectl -n {} scale deployment {} --replicas {}", namespace, name, replicas),
                "starts the operator again, within seconds; it then acts on everything that changed meanwhile",
            ),
    )
}

/// The pods cannot even be created.
fn refused(seen: &Observation, csv: Doc<'_>, deployment: Doc<'_>, what: &str) -> Option<Cause> {
    let found = deployment.holding("ReplicaFailure")?;
    let code = refusals::code(found.message).unwrap_or(&codes::PODS_REFUSED);
    let name = deployment.name();
    let text = format!("{what}, because its pods are refused: {}", pods::refusal(found.message));
    let cause = Cause::new(code, deployment.reference(), text).shown(
        deployment,
        "status.conditions[ReplicaFailure].message",
        found.message,
        found.since,
    );
    let namespace = deployment.namespace();
    Some(match code.name {
        "quota-exceeded" => config(
            seen,
            csv,
            cause.repair(
                command!("kubectl -n {} describe resourcequota", namespace),
                "shows what is used: raise the quota or free what is not needed; the pods are then created within a few minutes",
            ),
            "resources",
        ),
        "limit-range" => config(
            seen,
            csv,
            cause.repair(command!("kubectl -n {} describe limitrange", namespace), "shows the limits: change them, or the operator's requests"),
            "resources",
        ),
        "pod-security" => cause
            .repair(
                command!("kubectl label namespace {} pod-security.kubernetes.io/enforce=baseline --overwrite", namespace),
                "lets pods run that do not meet the `restricted` profile; use `privileged` if the message asks for more",
            )
            .repair(
                command!("kubectl -n {} rollout restart deployment/{}", namespace, name),
                "then creates the pods at once; those that run stay until these are ready",
            ),
        "webhook-unreachable" => plans::webhook_repairs(seen, refusals::webhook(found.message).unwrap_or(""), cause),
        "namespace-terminating" => cause,
        _ => cause.repair(command!("kubectl -n {} get events --field-selector reason=FailedCreate", namespace), "shows every refusal"),
    })
}

/// Kubernetes gave the Deployment up, and nothing else says why.
fn deadline(seen: &Observation, csv: Doc<'_>, deployment: Doc<'_>, what: &str) -> Option<Cause> {
    let found = deployment.conditions().find(|one| one.reason == "ProgressDeadlineExceeded")?;
    // A pod that was made since is a new try.
    let pod = newest_pods(seen, deployment).into_iter().find_map(|pod| pod.created());
    if seen.age(pod) < 60_000 {
        return None;
    }
    let name = deployment.name();
    let text = format!("{what}: it exceeded its progress deadline");
    let cause = Cause::new(&codes::PROGRESS_DEADLINE, deployment.reference(), text).shown(
        deployment,
        "status.conditions[Progressing].message",
        found.message,
        found.since,
    );
    Some(upgrade(
        seen,
        csv,
        cause.repair(
            command!("kubectl -n {} describe deployment/{}", deployment.namespace(), name),
            "shows its pods and events: they show what it is waiting for",
        ),
    ))
}

/// OLM gives an operator five minutes, fails it for a moment and starts again; only the history shows it. Says no more where there are
/// pods that do.
fn never_ready(seen: &Observation, csv: Doc<'_>, deployment: Doc<'_>, what: &str) -> Option<Cause> {
    let is_new = seen.age(deployment.created()) < BECOMING_VISIBLE;
    if csv.text("/status/phase") == "Succeeded" || is_new || !newest_pods(seen, deployment).is_empty() {
        return None;
    }
    let is_timeout =
        |one: &Doc<'_>| one.text("/phase") == "Failed" && one.text("/reason") == "InstallCheckFailed";
    let found = csv.list("/status/conditions").map(Doc).filter(is_timeout).last()?;
    // Kubernetes itself says no more than that too few replicas are there.
    let said = deployment.condition("Available").map_or("", |found| found.message);
    let is_known = !said.is_empty() && !said.starts_with("Deployment does not have minimum availability");
    let text = match is_known {
        true => format!("{what} after five minutes: {said}"),
        false => format!("{what} after five minutes, and no pod of it can be seen"),
    };
    let name = deployment.name();
    let cause = Cause::new(&codes::NOT_READY, deployment.reference(), text).shown(
        csv,
        "status.conditions[].message",
        found.text("/message"),
        found.moment("/lastTransitionTime"),
    );
    Some(upgrade(
        seen,
        csv,
        cause.repair(
            command!("kubectl -n {} describe deployment/{}", deployment.namespace(), name),
            "shows its pods and events: they show what it is waiting for",
        ),
    ))
}

/// The way that fits what is wrong with a pod.
fn repaired(seen: &Observation, csv: Doc<'_>, own: &str, fault: &pods::Fault<'_>, cause: Cause) -> Cause {
    let (namespace, pod) = (csv.namespace(), fault.pod.name());
    let retry = command!("kubectl -n {} delete pod {}", namespace, pod);
    let logs = command!("kubectl -n {} logs {} -c {}", namespace, pod, fault.container);
    let cause = match &fault.what {
        What::Image { image, is_refused: true, .. } => cause
            .repair(
                command!("kubectl -n {} patch serviceaccount {} --type merge -p '{\"imagePullSecrets\":[{\"name\":\"pull-secret\"}]}'", namespace, account(fault.pod)),
                Sentence::from(format!("lets the pods use the Secret `pull-secret` with the credentials for `{image}`: create it with "))
                    + command!("kubectl create secret docker-registry"),
            )
            .safe_repair(retry, "then pulls at once; safe, because the operator is not running"),
        What::Image { image, .. } => cause.safe_repair(
            retry,
            format!("once `{image}` is in the registry: pulls at once instead of at the next back-off, and `{own}` succeeds within about 30 seconds; safe, because the pod is not running"),
        ),
        What::Crash { .. } => config(
            seen,
            csv,
            cause.repair(logs.then(" --previous", &[]), "shows what the container wrote before it ended"),
            "env",
        ),
        What::OutOfMemory => config(seen, csv, cause, "resources"),
        What::Config { .. } => cause.repair(
            command!("kubectl -n {} describe pod {}", namespace, pod),
            "names the Secret, ConfigMap or setting that is missing: create it, and the container starts within a minute",
        ),
        What::Unschedulable => {
            let cause = cause.repair("kubectl describe nodes", "shows what the nodes have left: add a node, or free what the pod needs, and it is scheduled at once");
            let fields = [("Insufficient ", "resources"), ("node affinity", "nodeSelector"), ("taint", "tolerations")];
            let field = fields.into_iter().find(|(word, _)| fault.message.contains(word));
            match field {
                Some((_, field)) => config(seen, csv, cause, field),
                None => cause,
            }
        }
        What::Pressure => cause
            .repair("kubectl get nodes -o 'custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key'", "names the nodes under pressure: free memory or disk on them, or add a node")
            .safe_repair(retry, "then starts a new pod; safe, because this one is not running"),
        What::Setup => cause.repair(command!("kubectl -n {} describe pod {}", namespace, pod), "names the volume, Secret or network that is missing"),
        What::NotReady => cause.repair(logs, awaited(seen, fault.pod)),
    };
    upgrade(seen, csv, cause)
}

/// What a pod that is not ready may wait for: one that is the leader until it ends goes only once this one is ready.
fn awaited(seen: &Observation, pod: Doc<'_>) -> String {
    let deployment = pod.owners("ReplicaSet").next().and_then(|set| set.rsplit_once('-'));
    let hash = pod.label("pod-template-hash");
    let old = deployment.and_then(|(name, _)| {
        let mut all = pods_of(seen, pod.namespace(), name);
        all.find(|one| one.label("pod-template-hash") != hash && !one.is_going() && pods::is_ready(*one))
    });
    let shows = "shows what the operator waits for";
    old.map_or_else(|| shows.to_owned(), |old| {
        format!(
            "{shows}: if it waits to become the leader, it waits in vain, because Kubernetes keeps pod `{}` until this one is ready; the next version needs `strategy: {{type: Recreate}}` or a probe that does not depend on it",
            old.name()
        )
    })
}

fn account(pod: Doc<'_>) -> &str {
    match pod.text("/spec/serviceAccountName") {
        "" => "default",
        account => account,
    }
}

/// How the Subscription changes the pods.
fn config(seen: &Observation, csv: Doc<'_>, cause: Cause, field: &str) -> Cause {
    let Some(subscription) = subscription_of(seen, csv) else { return cause };
    let late = match csv.text("/status/phase") {
        "Succeeded" => "the operator's pods are replaced",
        _ => "OLM applies it when it installs again, at its next cycle of five minutes",
    };
    cause.repair(
        command!(
            "kubectl -n {} edit subscription.operators.coreos.com {}",
            subscription.namespace(),
            subscription.name()
        ),
        format!("set `spec.config.{field}` to what the operator needs: {late}"),
    )
}

/// What else there is when the version that does not come up replaces another one.
fn upgrade(seen: &Observation, csv: Doc<'_>, cause: Cause) -> Cause {
    let (old, namespace) = (csv.text("/spec/replaces"), csv.namespace());
    let Some(subscription) = subscription_of(seen, csv) else { return cause };
    let found = seen.get("ClusterServiceVersion", namespace, old).filter(|_| !old.is_empty());
    let Some(found) = found else { return cause };
    let mut cause = cause;
    let is_failed = csv.text("/status/phase") == "Failed";
    let group = seen.within("OperatorGroup", namespace).next();
    if let Some(group) = group.filter(|_| is_failed) {
        cause = cause.instead(Repair::of(
            command!("kubectl -n {} patch operatorgroup.operators.coreos.com {} --type merge -p '{\"spec\":{\"upgradeStrategy\":\"TechPreviewUnsafeFailForward\"}}'", namespace, group.name()),
            format!("lets OLM upgrade from the failed `{}` to a newer version that replaces it; works only in phase Failed", csv.name()),
        ));
    }
    // A new installation brings the head of the channel: where that is what does not come up, it is of no use.
    if !matches!(found.text("/status/phase"), "Succeeded" | "Replacing") {
        return plans::reinstall_of(seen, subscription, cause);
    }
    match way_back(seen, subscription, found, &cause) {
        Some(back) => cause.instead(back),
        None => cause,
    }
}
