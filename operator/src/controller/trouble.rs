//! Why a pod does not run, as Kubernetes reports it: in which container, with which image, and which fields of the spec that is about.

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod},
    jiff::Timestamp,
};

use super::{children::CONTAINER, exporter::EXPORTER};
use crate::plan::Trouble;

/// Restarts of a container that is not ready, after which it is failing.
const FAILING_RESTARTS: i32 = 3;
/// A container that ran for longer before it ended did start: its restarts are those of a long life.
const STARTED: Duration = Duration::from_secs(600);
/// A pod is scheduled within that time, unless something is wrong.
const SCHEDULED: Duration = Duration::from_secs(10);
/// The longest text of Kubernetes or of a container that is repeated.
const LONGEST: usize = 300;

/// What keeps a pod from running. If several containers fail, it is about the one of Redis.
pub(super) fn trouble(pod: &Pod) -> Option<Trouble> {
    let mut containers: Vec<&ContainerStatus> = statuses(pod).collect();
    containers.sort_by_key(|container| container.name != CONTAINER);
    // Between two attempts, a container that fails at once is not waiting.
    let failing = |container: &&&ContainerStatus| {
        container.restart_count >= FAILING_RESTARTS && !container.ready && !had_started(container)
    };
    let found = containers.iter().find_map(|container| Some((*container, waits(container)?)));
    let found = found.or_else(|| {
        let container = containers.iter().find(failing)?;
        Some((*container, format!("CrashLoop: restarted {} times", container.restart_count)))
    });
    if let Some((container, mut why)) = found {
        if let Some(ended) = ended(container) {
            why = format!("{why}; {ended}");
        }
        let image = image(pod, container);
        let what = format!("container `{}` with image `{image}`: {why}", container.name);
        let has_run = container.name == CONTAINER && ended(container).is_some();
        return Some(Trouble { what, fields: fields(&container.name), has_run });
    }
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let unscheduled = conditions.find(|one| one.type_ == "PodScheduled" && one.status == "False")?;
    // Volumes are made after the first attempt.
    let since = unscheduled.last_transition_time.as_ref();
    let age = since.and_then(|since| Duration::try_from(Timestamp::now().duration_since(since.0)).ok());
    if age.is_some_and(|age| age < SCHEDULED) {
        return None;
    }
    let (reason, message) = (unscheduled.reason.as_deref(), unscheduled.message.as_deref());
    let what = format!("{}: {}", reason.unwrap_or_default(), short(message.unwrap_or_default()));
    Some(Trouble { what, fields: Some("spec.resources, spec.pods or spec.storage"), has_run: false })
}

/// Whether a container beside the one of Redis is not ready.
pub(super) fn other_container_fails(pod: &Pod) -> bool {
    statuses(pod).any(|container| container.name != CONTAINER && !container.ready)
}

/// Whether the container of Redis is ready.
pub(super) fn redis_is_ready(pod: &Pod) -> bool {
    statuses(pod).any(|container| container.name == CONTAINER && container.ready)
}

/// Whether the kubelet last reported that the container of Redis does not run.
pub(super) fn redis_has_ended(pod: &Pod) -> bool {
    let running = |container: &ContainerStatus| {
        container.state.as_ref().is_none_or(|state| state.terminated.is_none() && state.waiting.is_none())
    };
    statuses(pod).any(|container| container.name == CONTAINER && !running(container))
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten())
}

/// Why a container waits to be started, unless every pod waits for that.
fn waits(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref()?;
    let usual = ["ContainerCreating", "PodInitializing"].contains(&reason);
    (!usual).then(|| format!("{reason}: {}", short(waiting.message.as_deref().unwrap_or_default())))
}

/// Whether the last run of a container was a long one.
fn had_started(container: &ContainerStatus) -> bool {
    let terminated =
        [&container.state, &container.last_state].map(|state| state.as_ref()?.terminated.as_ref());
    let last = terminated.into_iter().flatten().next();
    last.and_then(|last| {
        let (started, finished) = (last.started_at.as_ref()?, last.finished_at.as_ref()?);
        Duration::try_from(finished.0.duration_since(started.0)).ok()
    })
    .is_some_and(|ran| ran > STARTED)
}

/// How a container ended the last time, with what it said. A Redis that refuses its configuration says which line.
fn ended(container: &ContainerStatus) -> Option<String> {
    let state = |state: &Option<k8s_openapi::api::core::v1::ContainerState>| {
        state.as_ref().and_then(|state| state.terminated.clone())
    };
    let ContainerStateTerminated { exit_code, reason, message, .. } =
        state(&container.state).or_else(|| state(&container.last_state))?;
    let reason = match reason.filter(|reason| reason != "Error") {
        Some(reason) => format!(" ({reason})"),
        None if exit_code == 137 => " (killed by SIGKILL)".into(),
        None => String::new(),
    };
    let said = short(message.as_deref().unwrap_or_default());
    let said = if said.is_empty() { said } else { format!(": {said}") };
    Some(format!("exit code {exit_code}{reason}{said}"))
}

/// As the pod has it: the kubelet may report another name of the same image.
fn image<'a>(pod: &'a Pod, container: &'a ContainerStatus) -> &'a str {
    let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let own = containers.find(|one| one.name == container.name).and_then(|one| one.image.as_deref());
    own.unwrap_or(&container.image)
}

/// The fields of the spec that make a container fail. Others may have added containers.
fn fields(container: &str) -> Option<&'static str> {
    match container {
        CONTAINER => Some("spec.image, spec.config, spec.resources or spec.pods"),
        EXPORTER => Some("spec.exporter"),
        _ => None,
    }
}

/// On one line.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::{Value, json};

    use super::*;

    fn pod(statuses: Value) -> Pod {
        let image = |name: &str| json!({"name": name, "image": format!("{name}:1")});
        serde_json::from_value(json!({
            "metadata": {"name": "rc-0"},
            "spec": {"containers": [image("redis"), image("exporter"), image("proxy")]},
            "status": {"containerStatuses": statuses},
        }))
        .unwrap()
    }

    fn container(name: &str, state: Value, restarts: i32) -> Value {
        let image = format!("registry/{name}@sha256:1");
        json!({
            "name": name, "image": image, "imageID": "", "ready": state["running"].is_object(),
            "restartCount": restarts, "state": state,
        })
    }

    fn waiting(reason: &str, message: &str) -> Value {
        json!({"waiting": {"reason": reason, "message": message}})
    }

    fn check(statuses: Value, expected: Option<&str>, fields: Option<&str>) {
        let found = trouble(&pod(statuses));
        assert_eq!(found.as_ref().map(|found| found.what.as_str()), expected);
        assert_eq!(found.and_then(|found| found.fields), fields);
    }

    #[test]
    fn the_container_that_fails_is_named_with_its_image() {
        let running = || json!({"running": {}});
        let redis = container("redis", running(), 0);
        check(json!([redis]), None, None);
        let starts = container("exporter", waiting("ContainerCreating", ""), 0);
        check(json!([starts, redis]), None, None);
        let none = container("exporter", waiting("ErrImagePull", "not\nfound"), 0);
        let expected = "container `exporter` with image `exporter:1`: ErrImagePull: not found";
        check(json!([none, redis]), Some(expected), Some("spec.exporter"));
        let proxy = container("proxy", waiting("ErrImagePull", "denied"), 0);
        let expected = "container `proxy` with image `proxy:1`: ErrImagePull: denied";
        check(json!([proxy, redis]), Some(expected), None);
        // Kubernetes has them in the order of their names.
        let both = container("redis", waiting("ErrImagePull", "no access"), 0);
        let expected = "container `redis` with image `redis:1`: ErrImagePull: no access";
        let fields = Some("spec.image, spec.config, spec.resources or spec.pods");
        check(json!([none, both]), Some(expected), fields);
    }

    #[test]
    fn what_a_container_said_before_it_ended_is_repeated() {
        let mut redis = container("redis", waiting("CrashLoopBackOff", "back-off 10s"), 2);
        redis["lastState"] = json!({"terminated": {
            "exitCode": 1, "reason": "Error", "message": ">>> 'databases 0'\nBad directive\n",
        }});
        let expected = "container `redis` with image `redis:1`: CrashLoopBackOff: back-off 10s; exit code 1: >>> 'databases 0' Bad directive";
        let fields = Some("spec.image, spec.config, spec.resources or spec.pods");
        check(json!([redis]), Some(expected), fields);
        let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
        check(json!([container("redis", killed.clone(), 2)]), None, None);
        let expected =
            "container `redis` with image `redis:1`: CrashLoop: restarted 3 times; exit code 137 (OOMKilled)";
        check(json!([container("redis", killed, 3)]), Some(expected), fields);
        let killed = json!({"terminated": {"exitCode": 137, "reason": "Error"}});
        let expected = "container `redis` with image `redis:1`: CrashLoop: restarted 3 times; exit code 137 (killed by SIGKILL)";
        check(json!([container("redis", killed, 3)]), Some(expected), fields);
    }

    /// Three restarts in a year, the last of them a moment ago: it loads its data.
    #[test]
    fn restarts_of_a_long_life_are_no_loop() {
        let ended = |finished: &str| {
            json!({"terminated": {
                "exitCode": 137, "reason": "OOMKilled", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": finished,
            }})
        };
        let mut redis = container("redis", json!({"running": {}}), 3);
        redis["ready"] = json!(false);
        redis["lastState"] = ended("2026-01-01T00:11:00Z");
        check(json!([redis]), None, None);
        redis["lastState"] = ended("2026-01-01T00:00:09Z");
        let expected =
            "container `redis` with image `redis:1`: CrashLoop: restarted 3 times; exit code 137 (OOMKilled)";
        check(json!([redis]), Some(expected), Some("spec.image, spec.config, spec.resources or spec.pods"));
    }

    #[test]
    fn a_pod_that_fits_nowhere() {
        let mut pod = pod(Value::Null);
        let condition = json!([{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available",
        }]);
        pod.status.as_mut().unwrap().conditions = serde_json::from_value(condition).unwrap();
        let found = trouble(&pod).unwrap();
        assert_eq!(found.what, "Unschedulable: 0/3 nodes are available");
        assert_eq!(found.fields, Some("spec.resources, spec.pods or spec.storage"));
        let at = |seconds: i64| {
            let time = Timestamp::from_second(Timestamp::now().as_second() - seconds).unwrap();
            let mut pod = pod.clone();
            pod.status.as_mut().unwrap().conditions.as_mut().unwrap()[0].last_transition_time =
                Some(Time(time));
            trouble(&pod).is_some()
        };
        assert_eq!((at(1), at(11)), (false, true));
    }

    #[test]
    fn redis_may_be_ready_while_another_container_is_not() {
        let redis = container("redis", json!({"running": {}}), 0);
        let exporter = container("exporter", waiting("CrashLoopBackOff", ""), 1);
        let both = pod(json!([exporter, redis]));
        assert!(other_container_fails(&both) && redis_is_ready(&both));
        let alone = pod(json!([redis]));
        assert!(!other_container_fails(&alone) && redis_is_ready(&alone));
        assert!(!redis_is_ready(&pod(Value::Null)));
    }
}
