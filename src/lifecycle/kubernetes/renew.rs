//! A note that is renewed as long as the program lives, whatever else it does meanwhile.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::json;

use super::clock::ServerClock;

/// Renews a ConfigMap again and again, until it is gone or has another holder. What fails is tried again the next time.
pub(super) async fn keep(
    api: Api<DynamicObject>,
    name: String,
    holder: String,
    every: Duration,
    clock: Arc<ServerClock>,
) {
    loop {
        tokio::time::sleep(every).await;
        let Ok(Ok(found)) = tokio::time::timeout(every, api.get_opt(&name)).await else { continue };
        let Some(note) = found.filter(|note| note.data["data"]["holder"] == holder.as_str()) else { return };
        let patch = json!({
            "metadata": {"resourceVersion": note.metadata.resource_version},
            "data": {"renewed": clock.now().to_string()},
        });
        // A conflict is a write of our own, or the next look finds another holder.
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let _ = tokio::time::timeout(every, api.patch(&name, &parameters, &patch)).await;
    }
}
