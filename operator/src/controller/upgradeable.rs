//! Tells OLM not to upgrade the operator while slots move: a new leader would go on where the old one was, but an upgrade
//! is better begun in quiet.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use k8s_openapi::jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::json;
use tokio::{sync::watch, time::sleep_until};
use tracing::warn;

use super::cache::Key;
use crate::{
    plan::{Plan, Step},
    server::act::Done,
    telemetry::chain,
};

/// A cluster is at work for so long after the last thing that was done to it. Between two steps of a change it only waits; and
/// one that waits for longer, for a user or for a pod, must not keep the operator from being upgraded.
const PAUSE: Duration = Duration::from_secs(60);

/// What one reconcile of a cluster means for an upgrade of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Something was done that an upgrade would interrupt.
    Done,
    /// Nothing was done, and more is to come.
    Waits,
    /// The cluster is up to date, or only the user can go on.
    Rests,
}

impl Work {
    /// From what was planned, what became of it, and whether a problem stops the cluster.
    pub fn of(plan: &Plan, done: Option<&Done>, stopped: bool) -> Self {
        let changes = match plan.step {
            Step::Settled | Step::Hibernated => return Self::Rests,
            _ if stopped => return Self::Rests,
            // Slots that cannot be migrated are skipped each time.
            Step::Move => done.is_some_and(|done| done.slots > 0 || done.interrupted),
            Step::Shrink | Step::Roles | Step::Spread | Step::Balance | Step::CloseSlots | Step::Update => {
                done.is_some_and(|done| done.actions > 0)
            }
            _ => false,
        };
        if changes { Self::Done } else { Self::Waits }
    }
}

/// Until when each cluster counts as being at work.
#[derive(Debug, Default)]
struct Busy(BTreeMap<Key, Instant>);

impl Busy {
    fn see(&mut self, key: &Key, work: Work, now: Instant) {
        match work {
            Work::Done => drop(self.0.insert(key.clone(), now + PAUSE)),
            Work::Waits => {}
            Work::Rests => drop(self.0.remove(key)),
        }
    }

    /// When the last cluster is at rest, unless all are.
    fn until(&self, now: Instant) -> Option<Instant> {
        self.0.values().copied().max().filter(|until| *until > now)
    }
}

/// Which clusters are at work.
#[derive(Debug)]
pub struct Upgradeable {
    busy: Mutex<Busy>,
    until: watch::Sender<Option<Instant>>,
}

impl Default for Upgradeable {
    fn default() -> Self {
        Self { busy: Mutex::default(), until: watch::Sender::new(None) }
    }
}

impl Upgradeable {
    /// Takes note of one reconcile.
    pub fn see(&self, key: &Key, work: Work) {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        busy.see(key, work, now);
        let until = busy.until(now);
        self.until.send_if_modified(|before| std::mem::replace(before, until) != until);
    }

    /// Keeps the OperatorCondition of this name up to date, for as long as it is polled.
    pub async fn publish(&self, client: Client, namespace: &str, name: &str) {
        let kind = GroupVersionKind::gvk("operators.coreos.com", "v2", "OperatorCondition");
        let resource = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
        let mut changed = self.until.subscribe();
        let mut written = None;
        loop {
            let until = changed.borrow_and_update().filter(|until| *until > Instant::now());
            let upgradeable = until.is_none();
            if written != Some(upgradeable) {
                if let Err(error) = write(&api, name, upgradeable).await {
                    warn!(name, error = chain(&error), "writing the OperatorCondition");
                    tokio::time::sleep(Duration::from_secs(5)).await;
                    continue;
                }
                written = Some(upgradeable);
            }
            let over = async {
                match until {
                    Some(until) => sleep_until(until.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                result = changed.changed() => if result.is_err() { return },
                () = over => {}
            }
        }
    }
}

async fn write(api: &Api<DynamicObject>, name: &str, upgradeable: bool) -> Result<(), kube::Error> {
    let (status, reason, message) = if upgradeable {
        ("True", "Settled", "no cluster moves slots")
    } else {
        ("False", "MovingSlots", "slots of a cluster are being moved")
    };
    let condition = json!({
        "type": "Upgradeable", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": Timestamp::now().to_string(),
    });
    // OLM copies it to the status, and notes there which generation it is of.
    let patch = json!({"spec": {"conditions": [condition]}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Wait;

    fn work(step: Step, done: Option<&Done>, stopped: bool) -> Work {
        Work::of(&Plan { replicas: 3, step, actions: vec![] }, done, stopped)
    }

    #[test]
    fn a_change_goes_on_between_its_steps() {
        let key: Key = ("ns".into(), "rc".into());
        let (mut busy, start) = (Busy::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let acted = Done { actions: 1, ..Done::default() };
        let restarts = work(Step::Update, Some(&acted), false);
        let waits = work(Step::Wait(Wait::Pods), Some(&Done::default()), false);
        for (second, work) in [(0, restarts), (10, waits), (20, restarts), (30, waits), (70, waits)] {
            busy.see(&key, work, at(second));
            assert!(busy.until(at(second)).is_some(), "after {second} s");
        }
        // The next pod does not start.
        assert_eq!(busy.until(at(80)), None);
        busy.see(&key, restarts, at(90));
        busy.see(&key, work(Step::Settled, Some(&Done::default()), false), at(91));
        assert_eq!(busy.until(at(91)), None);
    }

    #[test]
    fn what_lasts_keeps_nobody_from_upgrading() {
        let moved = Done { actions: 1, slots: 16, ..Done::default() };
        assert_eq!(work(Step::Move, Some(&moved), false), Work::Done);
        // A key that is too large: nothing of the move is done.
        let skipped = Done { actions: 1, ..Done::default() };
        assert_eq!(work(Step::Move, Some(&skipped), false), Work::Waits);
        // `spec.paused` in the middle of a move, or another problem.
        assert_eq!(work(Step::Move, Some(&moved), true), Work::Rests);
        // Redis refuses.
        assert_eq!(work(Step::Roles, None, false), Work::Waits);
    }
}
