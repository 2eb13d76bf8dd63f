//! What is wrong with an operator besides what keeps OLM from going on, which the doctor knows: a Subscription that is being deleted,
//! a rollback that was interrupted, Deployments that are not there although its ClusterServiceVersion says `Succeeded`.

use super::api::{ClusterServiceVersion, Named as _, Object, Subscription, label};
use super::observe::Observed;
use crate::sentence::Sentence;
use crate::shell::{Reach, command};

/// What is wrong, a sentence each. Deployments are told of by [`deployments`], where they were looked at. Commands in
/// them act on the cluster.
pub fn problems(observed: &Observed, reach: &Reach) -> Vec<String> {
    let going = observed.subscription.as_ref().and_then(going);
    let unfinished = observed.subscription.as_ref().and_then(unfinished);
    let unfinished = unfinished.map(|(sentence, help)| format!("{sentence}: {}", help.on(reach)));
    going.into_iter().chain(unfinished).collect()
}

/// The Deployments that a version which is said to be up does not have, or whose pods are not there.
pub fn deployments(observed: &Observed) -> Vec<String> {
    let Some(csv) = observed.installed().filter(|csv| csv.succeeded()) else { return Vec::new() };
    let states = states(observed, csv).into_iter();
    states.filter(|(_, well)| !well).map(|(state, _)| format!("deployment/{state}")).collect()
}

/// The Deployments of a version, as `NAME: STATE`, and whether each is up.
pub fn states(observed: &Observed, csv: &Object<ClusterServiceVersion>) -> Vec<(String, bool)> {
    let state = |name: &String| {
        let mut own = observed.deployments.iter().filter(|found| found.owner == csv.name());
        match own.find(|found| found.name == *name) {
            Some(found) => {
                let (available, wanted) = (found.available, found.wanted);
                (format!("{name}: {available} of {wanted}"), available >= wanted)
            }
            None => (format!("{name}: not found"), false),
        }
    };
    csv.spec.install.spec.deployments.iter().map(|wanted| state(&wanted.name)).collect()
}

/// That a Subscription is being deleted.
pub(super) fn going(subscription: &Object<Subscription>) -> Option<String> {
    let metadata = &subscription.metadata;
    metadata.deletion_timestamp.as_ref()?;
    let finalizers = metadata.finalizers.iter().flatten().map(|name| format!("`{name}`"));
    let finalizers: Vec<String> = finalizers.collect();
    let waits = match finalizers.len() {
        0 => String::new(),
        1 => format!(" (finalizer {})", finalizers[0]),
        _ => format!(" (finalizers {})", finalizers.join(", ")),
    };
    Some(format!("{} is being deleted{waits}", subscription.key()))
}

/// The rollback of a Subscription that is not finished, if there is one, and how to resume it.
pub(super) fn unfinished(subscription: &Object<Subscription>) -> Option<(String, Sentence)> {
    let (spec, status) = (&subscription.spec, &subscription.status);
    subscription.annotation(label::ROLLED_BACK_FROM)?;
    let (name, namespace, to) = (subscription.name(), subscription.namespace(), &spec.starting_csv);
    (status.installed_csv.is_empty() && !to.is_empty()).then(|| {
        (
            format!("the rollback of {} to `{to}` is not finished", subscription.key()),
            Sentence::from("run ")
                + command!("olmkit operator rollback {} -n {} --to {}", name, namespace, to)
                + " to resume",
        )
    })
}
