//! What is wrong with an operator that OLM says nothing of: its ClusterServiceVersion keeps saying `Succeeded` when OLM is down or
//! behind, and OLM resolves nothing in a namespace with two OperatorGroups, in silence.

use super::api::{ClusterServiceVersion, Named as _, Object, Subscription};
use super::decide::group_fault;
use super::engine::EngineError;
use super::observe::Observed;
use super::rollback::unfinished;

/// What is wrong, a sentence each. Deployments are told of by [`deployments`], where they were looked at.
pub fn problems(observed: &Observed) -> Vec<String> {
    let going = observed.subscription.as_ref().and_then(going);
    let lost = observed.subscription.as_ref().and_then(|found| lost(observed, found));
    let group = group_fault(observed).map(|stuck| stuck.sentence);
    let unfinished = observed.subscription.as_ref().and_then(unfinished);
    let unfinished = unfinished.map(|(sentence, help)| format!("{sentence}: {help}"));
    going.into_iter().chain(lost).chain(group).chain(unfinished).collect()
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
fn going(subscription: &Object<Subscription>) -> Option<String> {
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

/// That what a Subscription has installed does not exist, and nothing else does that it knows.
fn lost(observed: &Observed, subscription: &Object<Subscription>) -> Option<String> {
    let status = &subscription.status;
    let installed = status.installed_csv.as_str();
    let is_lost = !installed.is_empty()
        && observed.csv(installed).is_none()
        && observed.csv(&status.current_csv).is_none();
    is_lost.then(|| {
        format!(
            "{} says that `{installed}` is installed, but that ClusterServiceVersion does not exist; OLM does not install it again",
            subscription.key()
        )
    })
}

/// Refuses where a verb cannot succeed: the Subscription is being deleted, OLM resolves nothing in the namespace, or
/// what is installed was deleted.
pub(super) fn check(observed: &Observed) -> Result<(), EngineError> {
    if let Some(subscription) = &observed.subscription {
        let (name, namespace) = (subscription.name(), subscription.namespace());
        if let Some(going) = going(subscription) {
            return Err(EngineError::refused_help(
                going,
                "wait until it is gone, then run the command again",
            ));
        }
        if let Some(lost) = lost(observed, subscription) {
            return Err(EngineError::refused_help(
                lost,
                format!(
                    "run `olmkit operator uninstall {name} -n {namespace}`, then install it again; custom resources stay"
                ),
            ));
        }
    }
    match group_fault(observed).filter(|_| observed.groups.len() > 1) {
        Some(stuck) => Err(EngineError::Stuck(stuck)),
        None => Ok(()),
    }
}
