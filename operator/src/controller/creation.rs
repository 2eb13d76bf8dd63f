//! Why Kubernetes does not create a pod: its StatefulSet says so in Events alone.

use std::time::{Duration, Instant};

use k8s_openapi::{
    api::{apps::v1::StatefulSet, events::v1::Event},
    jiff::Timestamp,
};
use kube::{Api, ResourceExt, api::ListParams};

use tracing::warn;

use super::{Memory, error::call, lasts, reconciler::Reconciler};
use crate::{plan::Pod, telemetry::chain};

/// A pod is created within that time, unless something is wrong.
const USUAL: Duration = Duration::from_secs(5);
/// How often Events are read while a pod is missing.
const PACE: Duration = Duration::from_secs(10);

/// A pod that Kubernetes does not create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCreated {
    /// The pod.
    pub pod: String,
    /// What the API server said.
    pub why: String,
}

impl Reconciler<'_> {
    /// The first pod that is missing, and why it is not created, as far as Events say.
    pub(super) async fn not_created(
        &self,
        memory: &mut Memory,
        set: Option<&StatefulSet>,
        pods: &[Pod],
    ) -> Option<NotCreated> {
        let missing = set.and_then(|set| Some((set, missing(set, pods)?)));
        let time = lasts(&mut memory.pod_missing, missing.is_some());
        let Some((set, pod)) = missing.filter(|_| time >= USUAL) else {
            memory.not_created = None;
            return None;
        };
        if let Some((_, found)) = memory.not_created.as_ref().filter(|(read, _)| read.elapsed() < PACE) {
            return found.clone();
        }
        let api: Api<Event> = self.scope.api(self.key);
        let of_set = format!("regarding.kind=StatefulSet,regarding.uid={}", set.uid().unwrap_or_default());
        let parameters = ListParams::default().fields(&of_set);
        let leadership = &self.scope.context.leadership;
        let found = match call("list", "Event", api.list(&parameters), leadership).await {
            Ok(events) => refusal(&events.items, &pod).map(|why| NotCreated { pod, why }),
            // They explain, and nothing depends on them.
            Err(error) => {
                warn!(error = chain(&error), "cannot read Events");
                None
            }
        };
        memory.not_created = Some((Instant::now(), found.clone()));
        found
    }
}

/// The name of the first pod that does not exist.
fn missing(set: &StatefulSet, pods: &[Pod]) -> Option<String> {
    let replicas = u32::try_from(set.spec.as_ref()?.replicas?).ok()?;
    let ordinal = (0..replicas).find(|ordinal| !pods.iter().any(|pod| pod.ordinal == *ordinal))?;
    Some(format!("{}-{ordinal}", set.name_any()))
}

/// What the newest Event about the creation of a pod says, unless it was created.
fn refusal(events: &[Event], pod: &str) -> Option<String> {
    // Of claims, too: `create Claim data-rc-0 Pod rc-0 in StatefulSet rc failed error: …`.
    let about = format!(" Pod {pod} in StatefulSet ");
    let about = events.iter().filter(|event| event.note.as_ref().is_some_and(|note| note.contains(&about)));
    let newest = about.max_by_key(|event| time(event))?;
    let (_, why) = newest.note.as_ref()?.split_once(" failed error: ")?;
    (newest.reason.as_deref() == Some("FailedCreate")).then(|| why.into())
}

/// When it happened the last time.
fn time(event: &Event) -> Option<Timestamp> {
    let last = event.series.as_ref().map(|series| series.last_observed_time.0);
    let legacy = event.deprecated_last_timestamp.as_ref().map(|time| time.0);
    let first = event.event_time.as_ref().map(|time| time.0);
    last.max(legacy).max(first)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `seconds reason note`
    fn event(seconds: u8, reason: &str, note: &str) -> Event {
        serde_json::from_value(json!({
            "metadata": {"name": "e"}, "reason": reason, "note": note, "eventTime": null,
            "deprecatedLastTimestamp": format!("2026-01-01T00:00:{seconds:02}Z"),
        }))
        .unwrap()
    }

    #[test]
    fn the_newest_event_about_a_pod_counts() {
        let failed = |seconds, pod| {
            let note = format!(
                "create Pod {pod} in StatefulSet rc failed error: pods \"{pod}\" is forbidden: no PriorityClass"
            );
            event(seconds, "FailedCreate", &note)
        };
        let created = |seconds, pod| {
            event(seconds, "SuccessfulCreate", &format!("create Pod {pod} in StatefulSet rc successful"))
        };
        let why = |events: &[Event]| refusal(events, "rc-1");
        assert_eq!(why(&[]), None);
        assert_eq!(why(&[failed(1, "rc-10"), failed(1, "rc-0")]), None);
        let said = Some("pods \"rc-1\" is forbidden: no PriorityClass".to_owned());
        assert_eq!(why(&[created(1, "rc-1"), failed(2, "rc-1"), created(3, "rc-0")]), said);
        assert_eq!(why(&[created(3, "rc-1"), failed(2, "rc-1")]), None);
        let claim = "create Claim data-rc-1 Pod rc-1 in StatefulSet rc failed error: exceeded quota";
        assert_eq!(why(&[event(1, "FailedCreate", claim)]).as_deref(), Some("exceeded quota"));
    }

    #[test]
    fn a_series_counts_by_its_last_event() {
        let mut series = event(0, "FailedCreate", "");
        series.deprecated_last_timestamp = None;
        series.event_time = serde_json::from_value(json!("2026-01-01T00:00:00.000000Z")).unwrap();
        let first = time(&series);
        series.series =
            serde_json::from_value(json!({"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}))
                .unwrap();
        assert!(first.is_some() && time(&series) > first);
    }
}
