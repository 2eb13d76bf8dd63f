//! The Jobs that unpack bundles. They run beside the CatalogSource; what a Subscription says of them goes stale.

use super::codes;
use super::doc::Doc;
use super::observation::Observation;
use super::pods::{self, What};
use super::{Cause, clock, groups, refusals};
use crate::lifecycle::api::label;
use crate::lifecycle::unpacked;
use crate::shell::command;

/// On an unpacked bundle: its package.
pub(super) const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";

/// How long OLM may take to make a plan of an unpacked bundle.
const PLANNING: i64 = 60_000;

/// What is wrong with the unpacking of a Subscription's bundle.
pub(super) fn fault(seen: &Observation, subscription: Doc<'_>) -> Option<Cause> {
    let broken = jobs(seen, subscription).into_iter().find_map(|job| broken(seen, subscription, job));
    broken.or_else(|| without_plan(seen, subscription)).or_else(|| told(seen, subscription))
}

/// What a Subscription says of its unpack Job, where the Jobs themselves may not be looked at.
fn told(seen: &Observation, subscription: Doc<'_>) -> Option<Cause> {
    // At the newest version nothing is left to be unpacked.
    if seen.looked_at("Job") || subscription.text("/status/state") == "AtLatestKnown" {
        return None;
    }
    let unpacking = subscription.holding("BundleUnpacking");
    let found = match unpacking {
        Some(found) => pods::is_pull_reason(found.message).then_some(found)?,
        // OLM leaves the failure behind when it begins again.
        None => subscription.holding("BundleUnpackFailed")?,
    };
    let code =
        if pods::is_pull_reason(found.message) { &codes::BUNDLE_IMAGE_PULL } else { &codes::UNPACK_FAILED };
    let name = subscription.name();
    // A recording without its beginning may not have the spec.
    let home = match subscription.text("/spec/sourceNamespace") {
        "" => subscription.namespace(),
        home => home,
    };
    let text = format!("the bundle for the Subscription `{name}` cannot be unpacked: {}", found.message);
    let field = format!("status.conditions[{}].message", found.kind);
    Some(
        Cause::new(code, subscription.reference(), text)
            .shown(subscription, &field, found.message, found.since)
            .repair(
                command!("kubectl -n {} get jobs,pods -l {}", home, label::UNPACK),
                "shows the unpack Jobs, which the doctor may not list: delete the failed one and its ConfigMap once its cause is gone, and OLM unpacks the bundle again within 30 seconds",
            ),
    )
}

/// The newest Job of each bundle of the Subscription's catalog, the newest first.
fn jobs<'o>(seen: &'o Observation, subscription: Doc<'o>) -> Vec<Doc<'o>> {
    let (catalog, namespace) =
        (subscription.text("/spec/source"), subscription.text("/spec/sourceNamespace"));
    let is_of_catalog = |job: &Doc<'o>| {
        // The ConfigMap that the Job fills belongs to the catalog.
        let map = job.owners("ConfigMap").next().and_then(|name| seen.get("ConfigMap", namespace, name));
        map.is_none_or(|map| map.owners("CatalogSource").next().is_none_or(|owner| owner == catalog))
    };
    let all =
        seen.within("Job", namespace).filter(|job| !job.label(label::UNPACK).is_empty() && !job.is_going());
    let mut all: Vec<Doc<'o>> = all.filter(is_of_catalog).collect();
    all.sort_by_key(|job| std::cmp::Reverse(job.created()));
    let mut known: Vec<&str> = Vec::new();
    all.retain(|job| {
        let bundle = job.label(label::UNPACK);
        let is_new = !known.contains(&bundle);
        known.push(bundle);
        is_new
    });
    all
}

/// The image of the bundle that a Job unpacks.
fn bundle<'o>(job: Doc<'o>) -> &'o str {
    let pull = job.list("/spec/template/spec/initContainers").find(|container| container["name"] == "pull");
    pull.and_then(|container| container["image"].as_str()).unwrap_or("")
}

fn failed(job: Doc<'_>) -> Option<super::doc::Cond<'_>> {
    job.holding("Failed").or_else(|| job.holding("FailureTarget"))
}

/// A Job that does not succeed.
fn broken(seen: &Observation, subscription: Doc<'_>, job: Doc<'_>) -> Option<Cause> {
    let is_over = is_planned(seen, subscription, job) && !(is_pulling(subscription) && failed(job).is_none());
    if job.holding("Complete").is_some() || is_over {
        return None;
    }
    let namespace = job.namespace();
    let own = seen.within("Pod", namespace).filter(|pod| {
        pod.label("job-name") == job.name() || pod.label("batch.kubernetes.io/job-name") == job.name()
    });
    let mut own: Vec<Doc<'_>> = own.collect();
    own.sort_by_key(|pod| std::cmp::Reverse(pod.created()));
    let image = bundle(job);
    let what =
        format!("the bundle `{image}` for the Subscription `{}` cannot be unpacked", subscription.name());
    let fault = own.iter().find_map(|pod| pods::fault(seen, *pod));
    let is_image = fault.as_ref().is_some_and(|fault| matches!(fault.what, What::Image { .. }));
    if !waits_for(seen, subscription, job, is_image) {
        return None;
    }
    let mut cause = match fault {
        Some(fault) => {
            let code = match &fault.what {
                What::Image { .. } => &codes::BUNDLE_IMAGE_PULL,
                What::Crash { .. } if fault.container != "util" => &codes::BUNDLE_INVALID,
                _ => &codes::UNPACK_FAILED,
            };
            fault.cause(code, &what)
        }
        // The pod of a Job that missed its deadline is gone; events remember it for an hour.
        None => match (pull_event(seen, job), failed(job)) {
            (Some(event), found)
                if found.is_some() || own.iter().all(|pod| pods::is_over(*pod)) && !own.is_empty() =>
            {
                let text = format!(
                    "{what}: its image cannot be pulled (ErrImagePull): {}",
                    pods::pull_reason(event.text("/message"))
                );
                Cause::new(&codes::BUNDLE_IMAGE_PULL, job.reference(), text).shown(
                    event,
                    "message",
                    event.text("/message"),
                    event.created().or(event.moment("/firstTimestamp")),
                )
            }
            (_, Some(found)) => {
                let text = format!(
                    "{what}: the unpack Job `{}` failed ({}): {}",
                    job.name(),
                    found.reason,
                    found.message
                );
                Cause::new(&codes::UNPACK_FAILED, job.reference(), text)
            }
            _ => match refused_event(seen, job).filter(|_| own.is_empty()) {
                Some(event) => without_pods(job, event, &what),
                None => return None,
            },
        },
    };
    if let Some(found) = failed(job) {
        let field = format!("status.conditions[{}].message", found.kind);
        cause = cause.shown(job, &field, format!("{}: {}", found.reason, found.message), found.since);
        cause.consequences.push(format!(
            "job/{} failed ({}); OLM retries about 5 minutes later",
            job.name(),
            found.reason
        ));
    }
    for kind in ["BundleUnpackFailed", "BundleUnpacking"] {
        if let Some(found) = subscription.holding(kind).filter(|found| !found.message.is_empty()) {
            cause = cause.shown(
                subscription,
                &format!("status.conditions[{kind}].message"),
                found.message,
                found.since,
            );
        }
    }
    Some(repaired(seen, subscription, job, cause))
}

/// Whether a Subscription waits for a Job that does not succeed, as far as OLM says. The Jobs of a catalog's bundles do not name the
/// operators that wait for them, and stay a while when nobody does.
fn waits_for(seen: &Observation, subscription: Doc<'_>, job: Doc<'_>, is_image: bool) -> bool {
    if subscription.holding("BundleUnpackFailed").is_some() {
        return true;
    }
    let Some(unpacking) = subscription.holding("BundleUnpacking") else { return false };
    if !unpacking.message.is_empty() {
        return !is_image || pods::is_pull_reason(unpacking.message);
    }
    // OLM has not looked at the pod yet. The Job may be that of another operator, unless there is no other one since the last plan.
    let may_be_own =
        |job: &Doc<'_>| job.created() >= subscription.created() && !is_planned(seen, subscription, *job);
    may_be_own(&job) && jobs(seen, subscription).iter().filter(|job| may_be_own(job)).count() == 1
}

/// Whether OLM says that it cannot pull the bundle of a Subscription. It may say so of the version after the one that is there.
fn is_pulling(subscription: Doc<'_>) -> bool {
    subscription.holding("BundleUnpacking").is_some_and(|found| pods::is_pull_reason(found.message))
}

/// Whether OLM unpacks something for a Subscription right now: it does so only with what it has resolved.
pub(super) fn is_active(seen: &Observation, subscription: Doc<'_>) -> bool {
    jobs(seen, subscription).into_iter().any(|job| {
        let is_recent = job.holding("Complete").is_none() || seen.age(job.created()) < 120_000;
        // Jobs of before the Subscription are of its predecessor.
        let is_own = job.created() >= subscription.created();
        failed(job).is_none() && is_own && is_recent && !is_planned(seen, subscription, job)
    })
}

/// The event that says that the pods of a Job are refused.
fn refused_event<'o>(seen: &'o Observation, job: Doc<'o>) -> Option<Doc<'o>> {
    let is_it = |event: &Doc<'o>| {
        event.text("/reason") == "FailedCreate"
            && event.text("/involvedObject/kind") == "Job"
            && event.text("/involvedObject/name") == job.name()
    };
    seen.within("Event", job.namespace()).filter(is_it).max_by_key(|event| clock::last_seen(*event))
}

/// A Job whose pods cannot be created: by a quota or a policy of the namespace of the catalog.
fn without_pods(job: Doc<'_>, event: Doc<'_>, what: &str) -> Cause {
    let message = event.text("/message");
    let message = message.strip_prefix("Error creating: ").unwrap_or(message);
    let code = refusals::code(message).unwrap_or(&codes::UNPACK_FAILED);
    let text = format!(
        "{what}: the namespace `{}` of the catalog refuses the pods of its unpack Job: {}",
        job.namespace(),
        pods::refusal(message)
    );
    let cause =
        Cause::new(code, job.reference(), text).shown(event, "message", message, clock::last_seen(event));
    match code.name {
        "quota-exceeded" => cause.repair(
            command!("kubectl -n {} describe resourcequota", job.namespace()),
            "shows what is used: raise the quota, free what is not needed, or give pods defaults with a LimitRange; the Job then starts within a few minutes, and nothing is restarted",
        ),
        _ => cause.repair(
            command!("kubectl -n {} get events --field-selector reason=FailedCreate", job.namespace()),
            "shows every refusal",
        ),
    }
}

/// The event that says that a Job's image could not be pulled.
fn pull_event<'o>(seen: &'o Observation, job: Doc<'o>) -> Option<Doc<'o>> {
    seen.within("Event", job.namespace()).find(|event| {
        let pod = event.text("/involvedObject/name");
        // The name of a pod is that of its Job, shortened, and five characters.
        let stem = pod.get(..pod.len().saturating_sub(5)).unwrap_or("").trim_end_matches('-');
        let is_late = clock::last_seen(*event).is_none_or(|last| Some(last) >= job.created());
        event.text("/involvedObject/kind") == "Pod"
            && stem.len() > 20
            && job.name().starts_with(stem)
            && is_late
            && pods::pull_event(*event).is_some()
    })
}

fn repaired(seen: &Observation, subscription: Doc<'_>, job: Doc<'_>, cause: Cause) -> Cause {
    let (namespace, name) = (job.namespace(), job.name());
    let map = job.owners("ConfigMap").next().unwrap_or(name);
    let image = bundle(job);
    let first = match cause.code {
        "bundle-image-pull" => format!(
            "once the image `{image}` can be pulled (push it, mirror it, or give its pull secret in `spec.secrets` of the CatalogSource)"
        ),
        "bundle-invalid" => {
            "once a correct bundle is in the registry under the same tag; a digest needs a new catalog"
                .to_owned()
        }
        _ => "once the cause is gone".to_owned(),
    };
    let mut cause = cause.safe_repair(
        command!("kubectl -n {} delete job/{} configmap/{}", namespace, name, map),
        format!("{first}: OLM unpacks the bundle again within 30 seconds; running pods are not affected"),
    );
    if cause.code == "bundle-invalid" {
        cause = cause.repair(
            "olmkit bundle validate bundle",
            "finds what is wrong with the bundle in the directory `bundle` before it is pushed; `olmkit bundle build` makes an image with `manifests/` and `metadata/`",
        );
    }
    let within = subscription.namespace();
    let group = seen.within("OperatorGroup", within).find(|group| {
        !groups::targets(*group).is_empty()
            && group.annotation("operatorframework.io/bundle-unpack-min-retry-interval").is_empty()
    });
    if let Some(group) = group {
        cause = cause.safe_repair(
            command!("kubectl -n {} annotate operatorgroup.operators.coreos.com {} operatorframework.io/bundle-unpack-min-retry-interval=1m", within, group.name()),
            "instead, makes OLM retry every minute from now on",
        );
    }
    cause
}

/// Whether a plan was made after a Job, or the version is there.
fn is_planned(seen: &Observation, subscription: Doc<'_>, job: Doc<'_>) -> bool {
    seen.within("InstallPlan", subscription.namespace()).any(|plan| plan.created() > job.created())
}

/// Whether a bundle was unpacked for a Subscription, and OLM should have made a plan of it, if there is one.
pub(super) fn lacks_plan(seen: &Observation, subscription: Doc<'_>) -> bool {
    let is_late = |job: &Doc<'_>| {
        let complete = job.holding("Complete");
        job.created() >= subscription.created()
            && complete.is_some_and(|found| seen.has_lasted(found.since, PLANNING))
    };
    jobs(seen, subscription).first().is_some_and(is_late) || without_csv(seen, subscription).is_some()
}

/// An unpacked bundle that no plan can be made of. OLM says why only in its log.
fn without_plan(seen: &Observation, subscription: Doc<'_>) -> Option<Cause> {
    if seen.looked_at("InstallPlan") { without_csv(seen, subscription) } else { None }
}

/// An unpacked bundle without a ClusterServiceVersion, if no plan is known.
fn without_csv(seen: &Observation, subscription: Doc<'_>) -> Option<Cause> {
    let planned = subscription.text("/status/currentCSV");
    let catalog = (subscription.text("/spec/source"), subscription.text("/spec/sourceNamespace"));
    if !planned.is_empty() {
        return None;
    }
    let unpacked = seen.within("ConfigMap", catalog.1).find(|map| {
        let files = files(*map);
        is_bundle_of(*map, catalog.1, subscription.text("/spec/name"))
            && map.owners("CatalogSource").any(|owner| owner == catalog.0)
            && !files.is_empty()
            && !files.iter().any(|file| names_csv(file))
            && !holds_csv(*map)
    });
    let map = unpacked.filter(|map| !is_planned(seen, subscription, *map))?;
    let files = files(map);
    let job = seen.get("Job", catalog.1, map.name());
    let complete = job.and_then(|job| job.holding("Complete"));
    if job.is_some() && complete.is_none() {
        return None;
    }
    let since = complete.and_then(|found| found.since).or(map.created()).max(subscription.created());
    let image = map.annotation("olm.sourceImage");
    let text = format!(
        "the bundle `{image}` for the Subscription `{}` has no ClusterServiceVersion, so OLM creates no InstallPlan: it unpacked {} only",
        subscription.name(),
        files.iter().map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", "),
    );
    let mut cause = Cause::new(&codes::BUNDLE_WITHOUT_CSV, map.reference(), text).shown(
        map,
        "binaryData",
        files.join(", "),
        map.created(),
    );
    if let Some(job) = job {
        cause = cause.shown(job, "status.conditions[Complete].status", "True", since);
    }
    if let Some(found) = subscription.holding("BundleUnpacking") {
        cause =
            cause.shown(subscription, "status.conditions[BundleUnpacking].reason", found.reason, found.since);
    }
    Some(
        cause
            .repair(
                "olmkit bundle validate bundle",
                "finds what the bundle in the directory `bundle` lacks: exactly one ClusterServiceVersion in `manifests/`, in a separate file",
            )
            .repair(
                command!("kubectl -n {} edit catalogsource.operators.coreos.com {}", subscription.text("/spec/sourceNamespace"), subscription.text("/spec/source")),
                "names a catalog with a corrected bundle under a new reference: OLM unpacks each reference once; running pods are not affected",
            ),
    )
}

/// Whether a ConfigMap is for an unpacked bundle.
pub(super) fn is_unpacked(map: Doc<'_>) -> bool {
    !map.annotation(PACKAGE).is_empty() || map.owners("CatalogSource").next().is_some()
}

/// Whether a ConfigMap holds an unpacked bundle of a package.
pub(super) fn is_bundle_of(map: Doc<'_>, namespace: &str, package: &str) -> bool {
    map.namespace() == namespace && map.annotation(PACKAGE) == package
}

/// The files of an unpacked bundle.
fn files(map: Doc<'_>) -> Vec<String> {
    let keys = |path: &str| {
        map.0
            .pointer(path)
            .and_then(serde_json::Value::as_object)
            .into_iter()
            .flat_map(|all| all.keys().cloned())
    };
    // Recordings hold the names of the files alone.
    let names = ["/binaryDataKeys", "/dataKeys"].into_iter().flat_map(|path| map.list(path));
    let names = names.filter_map(|name| name.as_str().map(str::to_owned));
    let mut all: Vec<String> = keys("/binaryData").chain(keys("/data")).chain(names).collect();
    all.sort();
    all
}

/// Whether a file is named for a ClusterServiceVersion.
fn names_csv(file: &str) -> bool {
    let file = file.to_lowercase();
    file.contains("clusterserviceversion") || file.contains("csv")
}

/// Whether a file that is not named for it holds a ClusterServiceVersion, as far as it can be read.
fn holds_csv(map: Doc<'_>) -> bool {
    let says = |text: &str| {
        text.contains("kind: ClusterServiceVersion") || text.contains("\"kind\":\"ClusterServiceVersion\"")
    };
    unpacked::texts(map.0).any(|(_, text)| says(&text))
}
