//! What keeps a pod from running: an operator's, a catalog's or an unpack Job's.

use serde_json::Value;

use super::doc::Doc;
use super::observation::Observation;
use super::{Cause, clock, codes};

/// How long a state that may pass by itself has to stand.
const PASSING: i64 = 30_000;
/// How long a pod may be without a node: the scheduler tries again at once when something changes.
const SCHEDULING: i64 = 5_000;
/// How long a container that runs may take until it is ready.
const BECOMING_READY: i64 = 180_000;
/// How long one that has crashed several times has to run until it is thought to last.
const RUNNING_AGAIN: i64 = 60_000;

/// What is wrong with a pod.
#[derive(Clone, Debug)]
pub(super) struct Fault<'o> {
    pub(super) what: What,
    /// The pod, or an event about it.
    pub(super) object: Doc<'o>,
    pub(super) pod: Doc<'o>,
    pub(super) container: &'o str,
    pub(super) field: String,
    pub(super) message: String,
    pub(super) since: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// An image, the kubelet's reason, and whether the registry refused it because a credential is missing.
    Image {
        image: String,
        reason: String,
        is_refused: bool,
    },
    /// A container that ended, the kubelet's reason and its exit code.
    Crash {
        reason: String,
        exit: i64,
    },
    OutOfMemory,
    Config {
        reason: String,
    },
    Unschedulable,
    Pressure,
    Setup,
    NotReady,
}

/// Words of the kubelet for an image that it cannot pull.
const IMAGE_REASONS: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];
/// Whether a text says that an image cannot be pulled.
pub(super) fn is_pull_reason(text: &str) -> bool {
    text.to_lowercase().contains("image pull failed")
        || IMAGE_REASONS.iter().any(|reason| text.contains(reason))
}

/// Words for a container that cannot be made.
const CONFIG_REASONS: [&str; 5] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PreCreateHookError",
    "PostStartHookError",
];
/// What registries say when they want to know who asks.
const REFUSALS: [&str; 7] = [
    "unauthorized",
    "authentication required",
    "no basic auth credentials",
    "authorization failed",
    "access denied",
    "requested access to the resource is denied",
    "403 Forbidden",
];

/// Whether a pod is on its way out, or out.
pub(super) fn is_over(pod: Doc<'_>) -> bool {
    pod.is_going() || pod.text("/status/phase") == "Succeeded"
}

/// Whether a pod serves.
pub(super) fn is_ready(pod: Doc<'_>) -> bool {
    let statuses: Vec<&Value> = pod.list("/status/containerStatuses").collect();
    pod.text("/status/phase") == "Running"
        && !statuses.is_empty()
        && statuses.iter().all(|status| status["ready"] == true)
        && pod.condition("Ready").is_none_or(|ready| ready.is_true)
}

/// Whether a container of a pod ended and was started again more than once.
pub(super) fn has_restarted(pod: Doc<'_>) -> bool {
    pod.list("/status/containerStatuses").any(|status| Doc(status).number("/restartCount") >= Some(2))
}

/// Whether a container that runs has ended again and again, and not yet run for longer than it did before: between two crashes
/// it is ready for a moment.
fn is_between_crashes(seen: &Observation, pod: Doc<'_>, status: Doc<'_>) -> bool {
    let before = Doc(status.0.pointer("/lastState/terminated").unwrap_or(&Value::Null));
    let times = (before.moment("/startedAt"), before.moment("/finishedAt"));
    let (Some(started), Some(finished)) = times else { return false };
    let limit = (2 * (finished - started)).max(RUNNING_AGAIN);
    let since = pod.by_server(status.moment("/state/running/startedAt"));
    status.number("/restartCount") >= Some(2)
        && since.is_some()
        && seen.age(since) < limit
        && is_failure(before)
}

/// Whether a container ended because something was wrong with it.
fn is_failure(ended: Doc<'_>) -> bool {
    ended.number("/exitCode").is_some_and(|code| code != 0) || ended.text("/reason") == "OOMKilled"
}

/// What is wrong with a pod, if anything is that does not pass by itself.
pub(super) fn fault<'o>(seen: &'o Observation, pod: Doc<'o>) -> Option<Fault<'o>> {
    if is_over(pod) || is_ready(pod) && !has_restarted(pod) {
        return None;
    }
    let fault = |what, container, field: &str, message: &str, since| Fault {
        what,
        object: pod,
        pod,
        container,
        field: field.to_owned(),
        message: message.trim().to_owned(),
        since,
    };
    if pod.text("/status/reason") == "Evicted" {
        return Some(fault(What::Pressure, "", "status.message", pod.text("/status/message"), pod.created()));
    }
    if let Some(found) =
        pod.condition("PodScheduled").filter(|found| !found.is_true && found.reason == "Unschedulable")
    {
        let since = found.since.or(pod.created());
        let what = if found.message.contains("-pressure") { What::Pressure } else { What::Unschedulable };
        let field = "status.conditions[PodScheduled].message";
        return (seen.age(since) >= SCHEDULING).then(|| fault(what, "", field, found.message, since));
    }
    let kinds = ["initContainerStatuses", "containerStatuses"];
    for list in kinds {
        for status in pod.list(&format!("/status/{list}")) {
            let status = Doc(status);
            if let Some(found) = container(seen, pod, list, status) {
                return Some(found);
            }
        }
    }
    event(seen, pod).or_else(|| unready(seen, pod))
}

/// What is wrong with a container.
fn container<'o>(seen: &'o Observation, pod: Doc<'o>, list: &str, status: Doc<'o>) -> Option<Fault<'o>> {
    let name = status.text("/name");
    let fault = |what, field: &str, message: &str, since| Fault {
        what,
        object: pod,
        pod,
        container: name,
        field: format!("status.{list}[{name}].{field}"),
        message: message.trim().to_owned(),
        since,
    };
    let (reason, message) = (status.text("/state/waiting/reason"), status.text("/state/waiting/message"));
    if IMAGE_REASONS.contains(&reason) {
        let is_refused = is_refused(message);
        let is_final = is_refused
            || matches!(reason, "InvalidImageName" | "ErrImageNeverPull")
            || ["not found", "NotFound", "manifest unknown", "does not exist"]
                .iter()
                .any(|word| message.contains(word));
        let what = What::Image { image: image_of(pod, name, status), reason: reason.to_owned(), is_refused };
        let stands = is_final || seen.age(pod.created()) >= PASSING;
        let text = format!("{reason}: {message}");
        return stands.then(|| fault(what, "state.waiting", &text, pod.created()));
    }
    if CONFIG_REASONS.contains(&reason) {
        let what = What::Config { reason: reason.to_owned() };
        let text = format!("{reason}: {message}");
        return (seen.age(pod.created()) >= SCHEDULING)
            .then(|| fault(what, "state.waiting", &text, pod.created()));
    }
    let restarts = status.number("/restartCount").unwrap_or(0);
    let is_job = pod.text("/spec/restartPolicy") == "Never";
    let now = Doc(status.0.pointer("/state/terminated").unwrap_or(&Value::Null));
    let before = Doc(status.0.pointer("/lastState/terminated").unwrap_or(&Value::Null));
    let (ended_in, field) =
        if is_failure(now) { (now, "state.terminated") } else { (before, "lastState.terminated") };
    let is_crash = match reason {
        "CrashLoopBackOff" => true,
        _ if is_failure(now) => restarts >= 1 || is_job,
        // It runs again; whether it will last is not known at its first restart.
        _ => is_failure(before) && restarts >= 2,
    };
    if !is_crash || status.0["ready"] == true && !is_between_crashes(seen, pod, status) {
        return None;
    }
    let exit = ended_in.number("/exitCode").unwrap_or(0);
    let since = pod.by_server(ended_in.moment("/finishedAt"));
    let own = match ended_in.text("/message") {
        "" => probe_event(seen, pod, "Liveness probe failed").map_or("", |event| event.text("/message")),
        own => own,
    };
    if ended_in.text("/reason") == "OOMKilled" {
        return Some(fault(What::OutOfMemory, field, &format!("OOMKilled: exit code {exit}"), since));
    }
    let reason = if reason.is_empty() { ended_in.text("/reason") } else { reason };
    let text = match own.is_empty() {
        true => format!("{reason}: exit code {exit}"),
        false => format!("{reason}: exit code {exit}: {}", last_words(own)),
    };
    Some(fault(What::Crash { reason: reason.to_owned(), exit }, field, &text, since))
}

pub(super) fn is_refused(message: &str) -> bool {
    REFUSALS.iter().any(|word| message.to_lowercase().contains(&word.to_lowercase()))
}

/// The image of a container as its pod wants it.
fn image_of(pod: Doc<'_>, name: &str, status: Doc<'_>) -> String {
    let wanted = ["/spec/containers", "/spec/initContainers"].iter().flat_map(|path| pod.list(path));
    let wanted = wanted
        .filter(|container| container["name"] == name)
        .find_map(|container| container["image"].as_str());
    wanted.unwrap_or_else(|| status.text("/image")).to_owned()
}

/// What events say of a pod that its status does not: an image of an init container, a volume, the network.
fn event<'o>(seen: &'o Observation, pod: Doc<'o>) -> Option<Fault<'o>> {
    let about = seen.within("Event", pod.namespace()).filter(|event| {
        event.text("/involvedObject/kind") == "Pod"
            && event.text("/involvedObject/name") == pod.name()
            && event.text("/type") == "Warning"
    });
    let statuses = || {
        ["/status/initContainerStatuses", "/status/containerStatuses"]
            .into_iter()
            .flat_map(move |path| pod.list(path))
    };
    let waits = |status: &&'o Value| Doc(status).0.pointer("/state/waiting").is_some();
    for event in about {
        let (reason, message) = (event.text("/reason"), event.text("/message"));
        let since = event.created().or(event.moment("/firstTimestamp"));
        let fault = |what, container, since| Fault {
            what,
            object: event,
            pod,
            container,
            field: "message".to_owned(),
            message: message.trim().to_owned(),
            since,
        };
        if let Some(image) = pull_event(event) {
            let waiting = statuses().filter(waits).find_map(|status| {
                let name = Doc(status).text("/name");
                (image_of(pod, name, Doc(status)) == image).then_some(name)
            });
            if let Some(name) = waiting {
                let what = What::Image {
                    image: image.to_owned(),
                    reason: "ErrImagePull".to_owned(),
                    is_refused: is_refused(message),
                };
                return Some(fault(what, name, since));
            }
        }
        let is_setup = matches!(
            reason,
            "FailedMount"
                | "FailedAttachVolume"
                | "FailedCreatePodSandBox"
                | "FailedMapVolume"
                | "NetworkNotReady"
        ) && !is_kubelet_late(message);
        let is_recent = clock::last_seen(event).is_none_or(|last| seen.age(Some(last)) < 180_000);
        if is_setup
            && is_recent
            // An object that is not there is created by nobody.
            && seen.age(pod.created()) >= if message.ends_with(" not found") { SCHEDULING } else { PASSING }
            && statuses().any(|status| waits(&status))
        {
            return Some(fault(What::Setup, "", since));
        }
    }
    None
}

/// Whether the kubelet has not read a Secret or ConfigMap in time, as on a busy node: that says nothing about the object, and it tries again
/// within seconds.
fn is_kubelet_late(message: &str) -> bool {
    message.contains("failed to sync ") && message.contains(" cache: timed out")
}

/// The image that an event says could not be pulled.
pub(super) fn pull_event<'o>(event: Doc<'o>) -> Option<&'o str> {
    let rest = event.text("/message").strip_prefix("Failed to pull image \"")?;
    rest.split_once('"').map(|(image, _)| image)
}

/// A container that runs, and does not become ready.
fn unready<'o>(seen: &'o Observation, pod: Doc<'o>) -> Option<Fault<'o>> {
    let started = |status: Doc<'_>| pod.by_server(status.moment("/state/running/startedAt"));
    let (list, status) = ["initContainerStatuses", "containerStatuses"].into_iter().find_map(|list| {
        let mut all = pod.list(&format!("/status/{list}")).map(Doc);
        let is_late = |status: &Doc<'_>| {
            let since = started(*status);
            // One that runs beside the others has begun.
            let is_beside = list == "initContainerStatuses" && status.0["started"] == true;
            status.0["ready"] != true && !is_beside && since.is_some() && seen.age(since) >= BECOMING_READY
        };
        Some((list, all.find(is_late)?))
    })?;
    let probe = probe_event(seen, pod, "");
    let since = started(status);
    let container = status.text("/name");
    Some(match probe {
        Some(event) => Fault {
            what: What::NotReady,
            object: event,
            pod,
            container,
            field: "message".into(),
            message: event.text("/message").to_owned(),
            since,
        },
        None => Fault {
            what: What::NotReady,
            object: pod,
            pod,
            container,
            field: format!("status.{list}[{container}].ready"),
            message: "false".into(),
            since,
        },
    })
}

/// The event about a failing probe of a pod whose message starts so.
fn probe_event<'o>(seen: &'o Observation, pod: Doc<'_>, start: &str) -> Option<Doc<'o>> {
    seen.within("Event", pod.namespace()).find(|event| {
        event.text("/involvedObject/name") == pod.name()
            && event.text("/reason") == "Unhealthy"
            && event.text("/message").starts_with(start)
    })
}

/// The end of what a container wrote: the line that says why, without what loggers put around it.
pub(super) fn last_words(message: &str) -> String {
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let fatal = lines.iter().rev().find(|line| {
        let lower = line.to_lowercase();
        ["level=fatal", "fatal:", "panic:"].iter().any(|word| lower.contains(word))
    });
    let line = fatal.or(lines.last()).copied().unwrap_or("");
    let text = match line.split_once("msg=\"") {
        // A text of logrus has its quotes and line breaks escaped.
        Some((_, rest)) => {
            let end = rest
                .char_indices()
                .find(|(at, c)| *c == '"' && !rest[..*at].ends_with('\\'))
                .map_or(rest.len(), |(at, _)| at);
            rest[..end].replace("\\\"", "\"").replace("\\n", "\n")
        }
        None => line.to_owned(),
    };
    let joined: Vec<&str> = text
        .lines()
        .map(|line| line.trim_matches(|c: char| c.is_whitespace() || "└─├│".contains(c)))
        .collect();
    shorten(&joined.join(" "))
}

/// A refusal that fits a sentence. What Pod Security forbids comes first in it, and how to allow it after that.
pub(in crate::lifecycle) fn refusal(text: &str) -> String {
    const MOST: usize = 400;
    match text.find("violates PodSecurity") {
        Some(at) if text.chars().count() > MOST => {
            let told: String = text[at..].chars().take(MOST).collect();
            if text[at..].chars().count() > MOST { format!("{told}…") } else { told }
        }
        _ => shorten(text),
    }
}

/// Text that fits a sentence: its end says most.
pub(super) fn shorten(text: &str) -> String {
    const MOST: usize = 400;
    let count = text.chars().count();
    match count > MOST {
        true => format!("…{}", text.chars().skip(count - MOST).collect::<String>()),
        false => text.to_owned(),
    }
}

/// The last reason in a chain of reasons that the kubelet gives for an image.
pub(super) fn pull_reason(message: &str) -> String {
    if is_refused(message) {
        return "the registry wants credentials (unauthorized)".into();
    }
    if message.contains("not found") || message.contains("NotFound") || message.contains("manifest unknown") {
        return "not found".into();
    }
    let last = message.rsplit(": ").find(|part| !part.trim().is_empty()).unwrap_or(message);
    shorten(last.trim())
}

/// The first sentence of a pod's fault, after what is affected by it.
pub(super) fn sentence(fault: &Fault<'_>) -> String {
    let pod = fault.pod.name();
    let container = fault.container;
    match &fault.what {
        What::Image { image, reason, .. } => {
            format!("pod `{pod}` cannot pull the image `{image}` ({reason}): {}", pull_reason(&fault.message))
        }
        What::Crash { reason, .. } => {
            let rest = fault.message.split_once(": ").map_or("", |(_, rest)| rest);
            format!("container `{container}` of pod `{pod}` crashes ({reason}): {rest}")
        }
        What::OutOfMemory => {
            format!(
                "container `{container}` of pod `{pod}` was killed for using more memory than its limit (OOMKilled)"
            )
        }
        What::Config { reason } => {
            let rest = fault.message.split_once(": ").map_or("", |(_, rest)| rest);
            format!("container `{container}` of pod `{pod}` cannot be created ({reason}): {rest}")
        }
        What::Unschedulable => format!("pod `{pod}` cannot be scheduled: {}", fault.message),
        What::Pressure => format!("pod `{pod}` has no node that is not under pressure: {}", fault.message),
        What::Setup => format!("pod `{pod}` cannot be set up on its node: {}", fault.message),
        What::NotReady if fault.field.starts_with("status.initContainerStatuses") => {
            format!(
                "init container `{container}` of pod `{pod}` runs and does not end, so that no other is started"
            )
        }
        What::NotReady => format!(
            "container `{container}` of pod `{pod}` runs and does not become ready: {}",
            // A probe that is a command may print nothing.
            fault.message.trim_end().trim_end_matches(':')
        ),
    }
}

/// The code of a fault of an operator's pod.
pub(super) fn code(fault: &Fault<'_>) -> &'static codes::Code {
    match &fault.what {
        What::Image { is_refused: true, .. } => &codes::IMAGE_PULL_SECRET,
        What::Image { .. } => &codes::IMAGE_PULL,
        What::Crash { .. } => &codes::CRASHING,
        What::OutOfMemory => &codes::OUT_OF_MEMORY,
        What::Config { .. } => &codes::CONTAINER_CONFIG,
        What::Unschedulable => &codes::UNSCHEDULABLE,
        What::Pressure => &codes::NODE_PRESSURE,
        What::Setup => &codes::MOUNT_FAILED,
        What::NotReady => &codes::NOT_READY,
    }
}

impl Fault<'_> {
    /// A cause of this fault: the pod is at fault, `what` is affected.
    pub(super) fn cause(&self, code: &'static codes::Code, what: &str) -> Cause {
        let text = format!("{what}: {}", sentence(self));
        Cause::new(code, self.pod.reference(), text).shown(
            self.object,
            &self.field,
            self.message.clone(),
            self.since,
        )
    }
}
