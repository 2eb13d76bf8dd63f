//! What controllers tell users: conditions in a status, and Events.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tracing::warn;

use crate::{
    Operator,
    error::{ApiError, during},
    telemetry::chain,
};

/// One condition before it has a time.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// Its type, such as `Available`.
    pub kind: &'a str,
    /// Whether it holds.
    pub holds: bool,
    /// One CamelCase word for programs.
    pub reason: &'a str,
    /// One sentence for people.
    pub message: String,
}

/// What is wrong, and time alone does not repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// One CamelCase word for programs.
    pub reason: &'static str,
    /// One sentence for people, with what they can do.
    pub message: String,
}

impl Claim<'static> {
    /// The condition `Degraded`: whether there is a problem, and which.
    pub fn degraded(problem: Option<Problem>) -> Self {
        let holds = problem.is_some();
        let (reason, message) =
            problem.map_or(("AsExpected", String::new()), |problem| (problem.reason, problem.message));
        Self { kind: "Degraded", holds, reason, message }
    }
}

/// The conditions that follow from `claims`. The time of a condition is that of its last change of status, so that equal claims
/// give equal conditions, and a status that says nothing new is not written.
pub fn conditions(before: &[Condition], generation: Option<i64>, claims: &[Claim<'_>]) -> Vec<Condition> {
    let condition = |claim: &Claim<'_>| {
        let status = if claim.holds { "True" } else { "False" };
        let same = before.iter().find(|one| one.type_ == claim.kind && one.status == status);
        Condition {
            type_: claim.kind.to_owned(),
            status: status.to_owned(),
            reason: claim.reason.to_owned(),
            message: claim.message.clone(),
            observed_generation: generation,
            last_transition_time: same
                .map_or_else(|| Time(Timestamp::now()), |one| one.last_transition_time.clone()),
        }
    };
    claims.iter().map(condition).collect()
}

/// Writes the status of an object, if it says anything new, and publishes an Event for each condition of which the status has
/// changed. `conditions` are those of a status.
///
/// # Errors
/// When the API server does not take it.
pub async fn update<K, S>(
    object: &K,
    operator: &Operator,
    before: &S,
    status: &S,
    conditions: fn(&S) -> &[Condition],
) -> Result<(), ApiError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
    S: PartialEq + Serialize,
{
    if status == before {
        return Ok(());
    }
    let api: Api<K> = operator.api(&object.namespace().unwrap_or_default());
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status(&object.name_any(), &PatchParams::default(), &patch)
        .await
        .map_err(during("update the status"))?;
    publish_changes(&operator.recorder, object, conditions(before), conditions(status)).await;
    Ok(())
}

/// Publishes Events in the name of a controller and of one replica of it.
pub fn recorder(client: Client, controller: &str, instance: &str) -> Recorder {
    Recorder::new(client, Reporter { controller: controller.into(), instance: Some(instance.into()) })
}

/// Publishes an Event for each condition of which the status has changed. `Degraded` warns when it is true,
/// `Progressing` never, and others when they are false.
pub async fn publish_changes<K>(recorder: &Recorder, object: &K, before: &[Condition], after: &[Condition])
where
    K: Resource<DynamicType = ()>,
{
    for now in after {
        let bad = match now.type_.as_str() {
            "Degraded" => Some("True"),
            "Progressing" => None,
            _ => Some("False"),
        };
        let known = before.iter().find(|one| one.type_ == now.type_);
        // A new object is not available yet and not degraded: that is no news.
        let news = known.map_or(now.status == "True", |known| known.status != now.status);
        if news {
            let type_ = if Some(now.status.as_str()) == bad { EventType::Warning } else { EventType::Normal };
            publish(recorder, object, type_, &now.reason, &now.message).await;
        }
    }
}

/// Publishes an Event about an object. One that cannot be published is logged: no reconcile fails because of it.
pub async fn publish<K>(recorder: &Recorder, object: &K, type_: EventType, reason: &str, note: &str)
where
    K: Resource<DynamicType = ()>,
{
    let event = Event {
        type_,
        reason: reason.into(),
        // The API server takes at most a kilobyte here, and 128 characters there.
        note: Some(note.chars().take(900).collect()),
        // Equal events are merged and keep the first note, so the note makes them differ.
        action: note.chars().take(100).collect(),
        secondary: None,
    };
    if let Err(error) = recorder.publish(&event, &object.object_ref(&())).await {
        warn!(reason, error = chain(&error), "could not publish an event");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_while_its_status_is_the_same() {
        let claim = |holds, message: &str| Claim {
            kind: "Available",
            holds,
            reason: "Reason",
            message: message.into(),
        };
        let mut first = conditions(&[], Some(1), &[claim(true, "3 of 3")]);
        first[0].last_transition_time = Time(Timestamp::UNIX_EPOCH);
        let same = conditions(&first, Some(2), &[claim(true, "5 of 5")]);
        assert_eq!(same[0].last_transition_time, first[0].last_transition_time);
        assert_eq!((same[0].message.as_str(), same[0].observed_generation), ("5 of 5", Some(2)));
        let changed = conditions(&first, Some(2), &[claim(false, "2 of 5")]);
        assert!(changed[0].last_transition_time.0 > first[0].last_transition_time.0);
        assert_eq!(conditions(&first, Some(1), &[claim(true, "3 of 3")]), first);
    }
}
