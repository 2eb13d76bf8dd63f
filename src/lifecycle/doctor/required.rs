//! What an operator requires of others: it may run, and cannot do its work while they do not.

use super::doc::Doc;
use super::observation::Observation;
use super::subject::Subject;
use super::{Cause, Diagnosis, OperatorState, Scope, State, Told, codes, diagnose};
use crate::lifecycle::api::{ClusterServiceVersion, Object, label};
use crate::lifecycle::properties::requires;

/// As [`diagnose`]; an operator that is asked for by name is broken also where one that it requires does not run.
pub fn diagnose_with_required(seen: &Observation, scope: &Scope) -> Diagnosis {
    let mut diagnosis = diagnose(seen, scope);
    if scope.name.is_none() {
        return diagnosis;
    }
    let mut more: Vec<OperatorState> = Vec::new();
    for own in diagnosis.operators.iter_mut().filter(|own| own.state == State::Healthy) {
        let Some(subscription) = seen.get("Subscription", &own.namespace, &own.subscription) else {
            continue;
        };
        let Some((mut cause, other)) = broken_requirement(seen, subscription) else { continue };
        cause.consequences.push(format!("subscription/{} requires it", own.subscription));
        own.state = other.state;
        own.sentence.clone_from(&other.sentence);
        own.code = other.code;
        diagnosis.state = diagnosis.state.max(other.state);
        if more.iter().all(|one| one.subscription != other.subscription) {
            diagnosis.causes.push(cause);
            more.push(other);
        }
    }
    diagnosis.operators.extend(more);
    diagnosis
}

/// An operator of the same namespace that a Subscription's version requires, and that does not run.
fn broken_requirement(seen: &Observation, subscription: Doc<'_>) -> Option<(Cause, OperatorState)> {
    let namespace = subscription.namespace();
    let csv = installed(seen, subscription)?;
    let user = Object::<ClusterServiceVersion>::read(csv.0.clone()).ok()?;
    let others = seen.within("Subscription", namespace).filter(|other| other.name() != subscription.name());
    let mut required = others.filter(|other| {
        // OLM installed it in the same plan, because of a requirement.
        let plan = seen.get("InstallPlan", namespace, other.annotation(label::GENERATED_BY));
        let is_root = subscription.annotation(label::GENERATED_BY).is_empty();
        let is_in_plan = is_root && plan.is_some_and(|plan| super::plans::carries(plan, csv.name()));
        let provider = installed(seen, *other).and_then(|csv| Object::read(csv.0.clone()).ok());
        is_in_plan
            || provider.is_some_and(|csv: Object<ClusterServiceVersion>| {
                requires(&user, &csv, other.text("/spec/name"))
            })
    });
    required.find_map(|other| {
        let mut told = Told::of(seen);
        let subject = Subject { seen, subscription: other };
        let state = told.judge(subject.examine(), other.name(), namespace);
        let is_down = state.state == State::Broken && !state.code.is_some_and(codes::is_upstream);
        Some((told.causes.pop()?, state)).filter(|_| is_down)
    })
}

fn installed<'o>(seen: &'o Observation, subscription: Doc<'o>) -> Option<Doc<'o>> {
    let current = subscription.text("/status/currentCSV");
    seen.get("ClusterServiceVersion", subscription.namespace(), current)
}
