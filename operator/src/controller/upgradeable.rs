//! Tells OLM not to upgrade the operator while slots move: a new leader would go on where the old one was, but an upgrade
//! is better begun in quiet.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use k8s_openapi::jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::json;
use tokio::sync::watch;
use tracing::warn;

use super::cache::Key;
use crate::telemetry::chain;

/// Which clusters are at work.
#[derive(Debug)]
pub struct Upgradeable {
    busy: Mutex<BTreeSet<Key>>,
    changed: watch::Sender<bool>,
}

impl Default for Upgradeable {
    fn default() -> Self {
        Self { busy: Mutex::default(), changed: watch::Sender::new(true) }
    }
}

impl Upgradeable {
    /// Whether slots of a cluster move.
    pub fn set(&self, key: &Key, busy: bool) {
        let mut all = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if busy {
            all.insert(key.clone());
        } else {
            all.remove(key);
        }
        let upgradeable = all.is_empty();
        self.changed.send_if_modified(|before| std::mem::replace(before, upgradeable) != upgradeable);
    }

    /// Keeps the OperatorCondition of this name up to date, for as long as it is polled.
    pub async fn publish(&self, client: Client, namespace: &str, name: &str) {
        let kind = GroupVersionKind::gvk("operators.coreos.com", "v2", "OperatorCondition");
        let resource = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
        let mut changed = self.changed.subscribe();
        loop {
            let upgradeable = *changed.borrow_and_update();
            if let Err(error) = write(&api, name, upgradeable).await {
                warn!(name, error = chain(&error), "writing the OperatorCondition");
                tokio::time::sleep(std::time::Duration::from_secs(5)).await;
                continue;
            }
            if changed.changed().await.is_err() {
                return;
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
