//! Whether OLM works, shown by what it does: it has to look after an OperatorGroup and to answer a Subscription.
//!
//! No image is needed for it. The Subscription names a CatalogSource that does not exist, and the resolver says so: then
//! catalogs were asked, and the answer was written.

use serde_json::json;

use super::{OLM, condition, is_own, text};
use crate::lifecycle::api::{Key, Resource, known, label};
use crate::lifecycle::engine::{Engine, EngineError, Seen};

/// The namespace of the probe, which is removed at the end.
pub(super) const NAMESPACE: &str = "olmkit-probe";
/// Where a CatalogSource says how it is connected.
pub(super) const CONNECTION: &str = "/status/connectionState/lastObservedState";

impl Engine<'_> {
    /// Lets OLM work on something, and removes it whether it did or not.
    pub(super) fn probe(&mut self) -> Result<(), EngineError> {
        let probed = self.probed();
        let namespace = Key::new(&known::NAMESPACE, "", NAMESPACE);
        match &probed {
            // There is no time left to wait in, or nobody who would.
            Err(_) => drop(self.delete(&known::NAMESPACE, &namespace)),
            Ok(()) => {
                self.delete(&known::NAMESPACE, &namespace)?;
                self.gone(&known::NAMESPACE, &namespace)?;
            }
        }
        probed
    }

    fn probed(&mut self) -> Result<(), EngineError> {
        if let Some(there) = self.cluster.get(&known::NAMESPACE, "", NAMESPACE)? {
            if !is_own(&there) {
                return Err(EngineError::refused_help(
                    format!("the namespace `{NAMESPACE}` exists and olmkit did not create it"),
                    "remove it: the installation is tested in a namespace of this name",
                ));
            }
            // Of an earlier run.
            let key = Key::of(&there);
            self.delete(&known::NAMESPACE, &key)?;
            self.gone(&known::NAMESPACE, &key)?;
        }
        let labels = json!({label::CREATED_BY: label::OLMKIT, label::PART_OF: OLM});
        let placed = json!({"name": "probe", "namespace": NAMESPACE});
        self.make(&known::NAMESPACE, json!({"name": NAMESPACE, "labels": labels}), json!({}))?;
        self.make(&known::OPERATOR_GROUP, placed.clone(), json!({"targetNamespaces": [NAMESPACE]}))?;
        self.until("olm-operator to look after an OperatorGroup", |engine| {
            let group = engine.cluster.get(&known::OPERATOR_GROUP, NAMESPACE, "probe")?.unwrap_or_default();
            let namespaces = group.pointer("/status/namespaces").and_then(|list| list.as_array());
            Ok(namespaces.filter(|list| !list.is_empty()).map_or(Seen::NotYet(None), |_| Seen::Done(())))
        })?;
        let spec = json!({
            "name": "probe", "channel": "probe", "source": "probe", "sourceNamespace": NAMESPACE,
        });
        self.make(&known::SUBSCRIPTION, placed, spec)?;
        self.until("catalog-operator to answer a Subscription", |engine| {
            let found = engine.cluster.get(&known::SUBSCRIPTION, NAMESPACE, "probe")?.unwrap_or_default();
            let answer =
                condition(&found, "ResolutionFailed").or(condition(&found, "CatalogSourcesUnhealthy"));
            Ok(answer
                .filter(|found| !text(found, "/message").is_empty())
                .map_or(Seen::NotYet(None), |_| Seen::Done(())))
        })?;
        self.progress.state(self.elapsed(), "olm", "resolves Subscriptions");
        Ok(())
    }

    fn make(
        &mut self,
        resource: &Resource,
        metadata: serde_json::Value,
        spec: serde_json::Value,
    ) -> Result<(), EngineError> {
        let document = json!({
            "apiVersion": resource.api_version(), "kind": resource.kind, "metadata": metadata, "spec": spec,
        });
        self.create(resource, document)
    }
}
