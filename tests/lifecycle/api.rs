//! The typed API on everything that OLM was seen to write.

use olmkit::lifecycle::api::{
    CatalogSource, ClusterServiceVersion, CsvPhase, InstallPlan, InstallPlanPhase, Object, OperatorCondition,
    OperatorGroup, StepStatus, Subscription, SubscriptionState,
};
use serde_json::Value;

use crate::trace::{Trace, What};

/// Reads an object as its type and gives it back, and says whether all its words are known.
fn round_trip(object: &Value) -> (Value, bool) {
    fn back<T: serde::de::DeserializeOwned>(object: &Value, known: impl Fn(&T) -> bool) -> (Value, bool) {
        let read = Object::<T>::read(object.clone()).unwrap();
        (serde_json::to_value(&read).unwrap(), known(&read))
    }
    match object["kind"].as_str().unwrap() {
        "Subscription" => back::<Subscription>(object, |found| {
            !matches!(found.status.state, SubscriptionState::Other(_)) && !found.spec.package.is_empty()
        }),
        "InstallPlan" => back::<InstallPlan>(object, |found| {
            !matches!(found.status.phase, InstallPlanPhase::Other(_))
                && found.status.plan.iter().all(|step| !matches!(step.status, StepStatus::Other(_)))
                && !found.spec.cluster_service_version_names.is_empty()
        }),
        "ClusterServiceVersion" => back::<ClusterServiceVersion>(object, |found| {
            !matches!(found.status.phase, CsvPhase::Other(_))
                && found.status.conditions.iter().all(|one| !matches!(one.phase, CsvPhase::Other(_)))
                && !found.spec.version.is_empty()
        }),
        "CatalogSource" => back::<CatalogSource>(object, |found| found.spec.source_type == "grpc"),
        "OperatorGroup" => back::<OperatorGroup>(object, |_| true),
        "OperatorCondition" => back::<OperatorCondition>(object, |_| true),
        _ => (object.clone(), true),
    }
}

#[test]
fn every_recorded_object_is_read_and_given_back_whole() {
    let mut count = 0;
    for trace in Trace::all() {
        for entry in &trace.entries {
            let (What::Added(object) | What::Modified(object) | What::Deleted(object)) = &entry.what else {
                continue;
            };
            let (back, known) = round_trip(object);
            assert!(back == *object && known, "{} at {}: {object}", trace.name, entry.at);
            count += 1;
        }
    }
    assert!(count > 5_000, "{count} objects are not all of them");
}
