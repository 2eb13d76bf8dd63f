//! CatalogSources and their pods. The health that a Subscription lists says only that pod and Service exist; the pod and the
//! connection tell the truth.

use serde_json::json;

use super::codes;
use super::doc::Doc;
use super::observation::Observation;
use super::pods::{self, What};
use super::{Cause, Code, Repair, refusals};
use crate::shell::{Command, command};

/// How long a catalog may be out of reach: its pod starts, OLM connects now and then only.
const CONNECTING: i64 = 90_000;
/// How long a catalog that OLM keeps trying may be.
const TRYING: i64 = 300_000;

/// Lists what may change pods.
const WEBHOOKS: &str = "kubectl get mutatingwebhookconfigurations -o 'custom-columns=NAME:.metadata.name,RESOURCES:.webhooks[*].rules[*].resources'";

/// What is wrong with a CatalogSource that does not pass by itself.
pub(super) fn fault(seen: &Observation, catalog: Doc<'_>) -> Option<Cause> {
    // A manifest that was never applied.
    if catalog.created().is_none() && catalog.0["status"].is_null() {
        return None;
    }
    let reason = catalog.text("/status/reason");
    if matches!(reason, "SpecInvalidError" | "ConfigMapError" | "InvalidIntervalError") {
        return Some(invalid(catalog, reason));
    }
    let has_pod = catalog.text("/spec/address").is_empty();
    if has_pod && let Some(cause) = pod_fault(seen, catalog).or_else(|| refused(seen, catalog)) {
        return Some(cause);
    }
    unreachable(seen, catalog, has_pod)
}

fn name(catalog: Doc<'_>) -> String {
    format!("the CatalogSource `{}` in the namespace `{}`", catalog.name(), catalog.namespace())
}

fn edit(catalog: Doc<'_>) -> Command {
    command!("kubectl -n {} edit catalogsource.operators.coreos.com {}", catalog.namespace(), catalog.name())
}

fn invalid(catalog: Doc<'_>, reason: &str) -> Cause {
    let message = catalog.text("/status/message");
    let text = format!("{} is invalid ({reason}): {message}", name(catalog));
    Cause::new(&codes::CATALOG_INVALID, catalog.reference(), text)
        .shown(catalog, "status.message", message, None)
        .repair(
            edit(catalog),
            "correct `spec`: OLM looks at it again at once; operators that are installed are not touched",
        )
}

/// The pods that serve a catalog; those that only look for a newer image are not among them.
fn pods<'o>(seen: &'o Observation, catalog: Doc<'o>) -> Vec<Doc<'o>> {
    pods_and_past(seen, catalog).into_iter().filter(|pod| !pods::is_over(*pod)).collect()
}

/// The pods of a catalog, newest first, with those that end.
fn pods_and_past<'o>(seen: &'o Observation, catalog: Doc<'o>) -> Vec<Doc<'o>> {
    let all = seen.within("Pod", catalog.namespace());
    let mut own: Vec<_> = all.filter(|pod| pod.label("olm.catalogSource") == catalog.name()).collect();
    own.sort_by_key(|pod| std::cmp::Reverse(pod.created()));
    own
}

/// Whether the pod of a catalog's newest image is not up yet.
pub(super) fn is_changing(seen: &Observation, catalog: Doc<'_>) -> bool {
    let own = pods(seen, catalog);
    let is_up = |pod: &Doc<'_>| pods::is_ready(*pod) && runs_image(catalog, *pod);
    let has_pod = catalog.text("/spec/address").is_empty() && (seen.looked_at("Pod") || !own.is_empty());
    has_pod && !own.iter().any(is_up)
}

/// When the pod of a catalog was made, if that was for a change of the catalog long after something else.
pub(super) fn replaced_after(seen: &Observation, catalog: Doc<'_>, since: Option<i64>) -> Option<i64> {
    let newest = pods(seen, catalog).first().and_then(|pod| pod.created())?;
    (newest > since.unwrap_or(i64::MAX).saturating_add(30_000)).then_some(newest)
}

/// Whether a pod runs the image that its catalog names.
fn runs_image(catalog: Doc<'_>, pod: Doc<'_>) -> bool {
    let image = catalog.text("/spec/image");
    let mut containers =
        ["/spec/containers", "/spec/initContainers"].into_iter().flat_map(|path| pod.list(path));
    image.is_empty() || containers.any(|container| container["image"] == image)
}

/// A pod that does not run what its catalog names, since something has changed it: the same image of another registry. OLM itself makes
/// pods of the image that is named; one of an older image may stay a while after the catalog was corrected.
fn changed_pod(catalog: Doc<'_>, pod: Doc<'_>) -> Option<Cause> {
    let wanted = catalog.text("/spec/image");
    let found = pod.list("/spec/containers").find_map(|one| one["image"].as_str())?;
    let is_extracted = catalog.0.pointer("/spec/grpcPodConfig/extractContent").is_some();
    if runs_image(catalog, pod) || is_extracted {
        return None;
    }
    let is_same_elsewhere = wanted.split_once('/').map(|one| one.1) == found.split_once('/').map(|one| one.1);
    if !is_same_elsewhere {
        return None;
    }
    let text = format!(
        "{} does not serve: its pod `{}` runs the image `{found}`, not `{wanted}`, so OLM replaces it again and again; a mutating webhook has most likely changed it",
        name(catalog),
        pod.name()
    );
    let state = catalog.text("/status/connectionState/lastObservedState");
    Some(
        Cause::new(&codes::CATALOG_POD_CHANGED, pod.reference(), text)
            .shown(pod, "spec.containers[].image", found, pod.created())
            .shown(catalog, "status.connectionState.lastObservedState", state, None)
            .repair(
                WEBHOOKS,
                format!("lists the webhooks: exclude the namespace `{}` from the one that changes pods; OLM then starts the pod as it should be, and installed operators are not affected", catalog.namespace()),
            )
            .repair(edit(catalog), "instead, name in `spec.image` the image that the webhook makes of it"),
    )
}

fn pod_fault(seen: &Observation, catalog: Doc<'_>) -> Option<Cause> {
    let all = pods_and_past(seen, catalog);
    let mut own = all.iter().filter(|pod| !pods::is_over(**pod));
    if own.clone().any(|pod| pods::is_ready(*pod)) {
        return None;
    }
    // OLM deletes a changed pod before it makes the next one.
    let newest = *own.next().or(all.first())?;
    if let Some(cause) = changed_pod(catalog, newest) {
        return Some(cause);
    }
    // OLM makes a new pod for a changed image within seconds.
    let fault = pods::fault(seen, newest).filter(|_| runs_image(catalog, newest))?;
    let code: &'static Code = match &fault.what {
        What::Image { .. } => &codes::CATALOG_IMAGE_PULL,
        What::Crash { .. } => &codes::CATALOG_CRASHING,
        What::OutOfMemory => &codes::CATALOG_OUT_OF_MEMORY,
        _ => &codes::CATALOG_POD_PENDING,
    };
    let (namespace, pod) = (catalog.namespace(), newest.name());
    let mut cause = fault.cause(code, &format!("{} does not serve", name(catalog)));
    let state = catalog.text("/status/connectionState/lastObservedState");
    if !state.is_empty() && state != "READY" {
        let since = catalog.moment("/status/connectionState/lastConnect");
        cause = cause.shown(catalog, "status.connectionState.lastObservedState", state, since);
    }
    Some(match &fault.what {
        What::Image { image, .. } if image != catalog.text("/spec/image") => cause
            .repair(
                WEBHOOKS,
                format!("lists the webhooks: the CatalogSource does not name `{image}`, so it is one of OLM's own (`--opmImage` and `--util-image` of catalog-operator), or a webhook has changed it; exclude the namespace `{namespace}` from that webhook"),
            )
            .safe_repair(
                command!("kubectl -n {} delete pod {}", namespace, pod),
                "then pulls again at once, and installed operators are not affected",
            ),
        What::Image { .. } => cause
            .repair(edit(catalog), "correct `spec.image`: OLM replaces the pod, and the catalog serves about 15 seconds later")
            .safe_repair(
                command!("kubectl -n {} delete pod {}", namespace, pod),
                "instead, once the image is in the registry or its pull secret is in `spec.secrets`: pulls again at once",
            ),
        What::Crash { .. } => cause
            .repair(command!("kubectl -n {} logs {} -c {} --previous", namespace, pod, fault.container), "shows what the catalog server wrote; `olmkit catalog validate` finds the same mistakes before a catalog is built")
            .repair(edit(catalog), "correct `spec.image`: name a valid catalog; OLM replaces the pod, and the catalog serves about 15 seconds later"),
        What::OutOfMemory => cause.repair(
            command!(
                "kubectl -n {} patch catalogsource.operators.coreos.com {} --type merge -p '{\"spec\":{\"grpcPodConfig\":{\"memoryTarget\":\"256Mi\"}}}'",
                namespace,
                catalog.name()
            ),
            "requests more memory and limits the server to it; OLM replaces the pod. A smaller catalog (`olmkit catalog prune`) or `spec.grpcPodConfig.extractContent` needs less",
        ),
        What::Unschedulable | What::Pressure => cause.repair(
            edit(catalog),
            "correct `spec.grpcPodConfig`: node selector, tolerations, affinity; or make room on the nodes",
        ),
        _ => cause.repair(
            command!("kubectl -n {} describe pod {}", namespace, pod),
            "shows what the pod waits for",
        ),
    })
}

/// A catalog that OLM has not reached for a while, though nothing is wrong with its pod.
fn unreachable(seen: &Observation, catalog: Doc<'_>, has_pod: bool) -> Option<Cause> {
    let state = catalog.text("/status/connectionState/lastObservedState");
    // A recording without its beginning may show only a part of the status.
    if state == "READY" || state.is_empty() && seen.is_late() && catalog.created().is_none() {
        return None;
    }
    let own = pods(seen, catalog);
    let started = own.iter().flat_map(|pod| {
        let statuses = pod.list("/status/containerStatuses").map(Doc);
        statuses.filter_map(|status| pod.by_server(status.moment("/state/running/startedAt")))
    });
    let since = catalog.created().into_iter().chain(started).max();
    // OLM writes this at each try, so it says little about when the trouble began.
    let tried = catalog.moment("/status/connectionState/lastConnect");
    let limit = if seen.age(tried) < CONNECTING { TRYING } else { CONNECTING };
    if seen.age(since) < limit || own.iter().any(|pod| !pods::is_ready(*pod)) && seen.age(since) < TRYING {
        return None;
    }
    let said = if state.is_empty() { "OLM never connected to it" } else { state };
    let message = catalog.text("/status/message");
    let is_podless = has_pod && own.is_empty() && seen.looked_at("Pod");
    let why = match (is_podless, message.is_empty()) {
        (true, true) => "it has no pod".to_owned(),
        (true, false) => format!("it has no pod: {message}"),
        (false, true) => said.to_owned(),
        (false, false) => format!("{said}: {message}"),
    };
    let text = format!("{} does not answer: {why}", name(catalog));
    let mut cause = Cause::new(&codes::CATALOG_UNREACHABLE, catalog.reference(), text).shown(
        catalog,
        "status.connectionState.lastObservedState",
        said,
        since,
    );
    let address = match catalog.text("/status/connectionState/address") {
        "" => catalog.text("/spec/address"),
        address => address,
    };
    if !address.is_empty() {
        cause = cause.shown(catalog, "status.connectionState.address", address, None);
    }
    let namespace = catalog.namespace();
    if is_podless {
        return Some(cause.repair(
            command!("olmkit olm status"),
            "shows whether OLM runs: it creates the catalog's pod",
        ).safe_repair(
            command!("olmkit source refresh {} -n {}", catalog.name(), namespace),
            "once OLM runs: makes it reconcile the CatalogSource and start a pod; installed operators are not affected",
        ));
    }
    Some(if has_pod {
        cause
            .repair(
                command!("kubectl -n {} get pods,services,networkpolicies -l olm.catalogSource={}", namespace, catalog.name()),
                "shows what is there: OLM reaches the pod through the Service, so a network policy or the cluster's DNS may be in the way",
            )
            .safe_repair(
                command!("kubectl -n {} delete pod -l olm.catalogSource={}", namespace, catalog.name()),
                "makes OLM start the catalog's pod again; installed operators are not affected",
            )
    } else {
        cause.repair(edit(catalog), "correct `spec.address`, or start the server that listens there: OLM connects again within 20 seconds")
    })
}

/// The API server refuses the pod of a catalog, and OLM quotes it.
fn refused(seen: &Observation, catalog: Doc<'_>) -> Option<Cause> {
    let message = catalog.text("/status/message");
    let is_podless = seen.looked_at("Pod") && pods(seen, catalog).is_empty();
    let code = refusals::code(message).filter(|_| is_podless)?;
    let (namespace, own) = (catalog.namespace(), catalog.name());
    let repair = match code.name {
        "pod-security" => Repair::of(
            command!(
                "kubectl -n {} patch catalogsource.operators.coreos.com {} --type merge -p '{\"spec\":{\"grpcPodConfig\":{\"securityContextConfig\":\"restricted\"}}}'",
                namespace,
                own
            ),
            "makes OLM create a pod that meets the `restricted` profile, which the catalog's server must support; installed operators are not affected",
        ),
        "quota-exceeded" => Repair::of(
            command!("kubectl -n {} describe resourcequota", namespace),
            "shows what is used: raise the quota, or free what is not needed; OLM then creates the pod",
        ),
        _ => return None,
    };
    let text =
        format!("{} does not serve, because its pod is refused: {}", name(catalog), pods::refusal(message));
    let mut cause =
        Cause::new(code, catalog.reference(), text).shown(catalog, "status.message", message, None);
    cause.repair.push(repair);
    Some(cause)
}

/// The CatalogSource of a Subscription does not exist.
pub(super) fn missing(seen: &Observation, subscription: Doc<'_>) -> Option<Cause> {
    let (name, namespace) = (subscription.text("/spec/source"), subscription.text("/spec/sourceNamespace"));
    if !seen.looked_at("CatalogSource")
        || name.is_empty()
        || seen.get("CatalogSource", namespace, name).is_some()
    {
        return None;
    }
    let is_told = subscription
        .holding("CatalogSourcesUnhealthy")
        .is_some_and(|found| found.message.contains("missing"))
        || subscription
            .holding("ResolutionFailed")
            .is_some_and(|found| found.message.contains("no operators found from catalog"));
    if !is_told && seen.age(subscription.created()) < 10_000 {
        return None;
    }
    let text = format!(
        "the Subscription `{}` names the CatalogSource `{name}` in the namespace `{namespace}`, which does not exist: no operators found from catalog {name} in namespace {namespace}",
        subscription.name()
    );
    let mut cause = Cause::new(&codes::CATALOG_NOT_FOUND, subscription.reference(), text).shown(
        subscription,
        "spec.source",
        name,
        subscription.created(),
    );
    for kind in ["CatalogSourcesUnhealthy", "ResolutionFailed"] {
        if let Some(found) = subscription.holding(kind) {
            cause = cause.shown(
                subscription,
                &format!("status.conditions[{kind}].message"),
                found.message,
                found.since,
            );
        }
    }
    let within = subscription.namespace();
    let others =
        seen.of("CatalogSource").filter(|one| one.namespace() == namespace || one.namespace() == within);
    let names: Vec<&str> = others.map(Doc::name).collect();
    let near = olmkit_bundle::suggest::nearest(name, names.iter().copied());
    if let Some(near) = near.or(names.first().copied().filter(|_| names.len() == 1)) {
        let home = seen.of("CatalogSource").find(|one| one.name() == near).map_or(namespace, Doc::namespace);
        let patch = json!({"spec": {"source": near, "sourceNamespace": home}});
        cause = cause.repair(
            command!(
                "kubectl -n {} patch subscription.operators.coreos.com {} --type merge -p {}",
                within,
                subscription.name(),
                patch
            ),
            "names the CatalogSource that exists; OLM resolves within 30 seconds, and nothing is restarted",
        );
    }
    Some(cause.repair(
        "kubectl get catalogsources.operators.coreos.com -A",
        "lists the CatalogSources: correct `spec.source` and `spec.sourceNamespace` of the Subscription, or create the catalog",
    ))
}
