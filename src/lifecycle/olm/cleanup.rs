//! What a failed installation has made is taken away again, and nothing hangs on finalizers whose owner is gone.

use std::time::Duration;

use serde_json::{Value, json};

use super::status::served;
use super::{GROUP, kinds, probe};
use crate::lifecycle::api::{Key, Resource, known};
use crate::lifecycle::engine::{Engine, EngineError, Planned, UNWATCHED};

/// How long OLM has to remove its own finalizers.
const GRACE: Duration = Duration::from_secs(20);

/// The order in which kinds go: what others need goes after them.
pub(super) fn rank(resource: &Resource) -> usize {
    match resource.kind.as_str() {
        _ if resource.group == GROUP => 0,
        "APIService" => 1,
        "Deployment" => 2,
        "CustomResourceDefinition" => 3,
        "Namespace" => 5,
        _ => 4,
    }
}

impl Engine<'_> {
    /// Deletes what a run has created, the newest first, and says what could not be.
    ///
    /// # Errors
    /// Something does not go.
    pub fn undo_olm(&mut self, done: &[Planned]) -> Result<Vec<Key>, EngineError> {
        let kinds = kinds();
        let created = done.iter().rev().filter(|one| one.verb == "create");
        let mut created: Vec<(Resource, Key)> = created
            .filter_map(|one| {
                let key = &one.key;
                let kind = kinds.iter().find(|kind| kind.kind == key.kind && kind.group == key.group)?;
                Some((kind.clone(), key.clone()))
            })
            .collect();
        created.sort_by_key(|(resource, _)| rank(resource));
        let mut kept = Vec::new();
        let others = self.made_by_others(&created)?;
        let others_in = |namespace: &str| others.iter().any(|other| other.namespace == namespace);
        if let Some(first) = others.first() {
            let more =
                if others.len() > 1 { format!(" and {} more", others.len() - 1) } else { String::new() };
            self.say(format!(
                "OLM's CustomResourceDefinitions are kept: {}{more} would go with them, and was not created here",
                first.placed()
            ));
        }
        for (resource, key) in &created {
            if resource.kind == known::CRD.kind && !others.is_empty()
                || resource.kind == known::NAMESPACE.kind && others_in(&key.name)
            {
                kept.push(key.clone());
                continue;
            }
            if resource.kind == known::NAMESPACE.kind
                && let Some(reason) = self.used_by_others(&key.name)?
            {
                self.say(format!("{key} is kept: {reason}"));
                kept.push(key.clone());
                continue;
            }
            self.delete(resource, key)?;
            match rank(resource) {
                0 => self.gone_or_freed(resource, key)?,
                2 | 3 => self.gone(resource, key)?,
                _ => {}
            }
        }
        created.retain(|(_, key)| !kept.contains(key));
        for (resource, key) in created.iter().filter(|(resource, _)| resource.kind == known::NAMESPACE.kind) {
            self.gone(resource, key)?;
        }
        Ok(created.into_iter().map(|(_, key)| key).collect())
    }

    /// What users make of OLM's kinds, but for what was `created` here: it would go with its CRD.
    fn made_by_others(&mut self, created: &[(Resource, Key)]) -> Result<Vec<Key>, EngineError> {
        let mut others = Vec::new();
        for resource in [&*known::SUBSCRIPTION, &*known::CATALOG_SOURCE, &*known::OPERATOR_GROUP] {
            let found = served(self.cluster.list(resource, None))?;
            let keys = found.iter().map(Key::of);
            others.extend(keys.filter(|key| !created.iter().any(|(_, own)| own == key)));
        }
        Ok(others.into_iter().filter(|key| key.namespace != probe::NAMESPACE).collect())
    }

    /// Waits until one of OLM's custom resources is gone. Where OLM does not remove its finalizers, they are removed here.
    pub(super) fn gone_or_freed(&mut self, resource: &Resource, key: &Key) -> Result<(), EngineError> {
        let begun = self.cluster.now();
        while !self.options.dry_run {
            let Some(found) = self.cluster.get(resource, &key.namespace, &key.name)? else { return Ok(()) };
            if !is_going(&found) {
                // OLM has made it again meanwhile, such as an OperatorCondition: it goes with what it is about.
                return Ok(());
            }
            let now = self.cluster.now();
            if now.saturating_sub(begun) >= GRACE || now >= self.deadline() {
                let left: Vec<&Value> = finalizers(&found).filter(|name| !is_of_olm(name)).collect();
                if finalizers(&found).count() > left.len() {
                    self.say(format!(
                        "{}: OLM did not remove its finalizer; olmkit removes it",
                        key.placed()
                    ));
                    let patch = json!({"metadata": {"finalizers": left}});
                    self.patch(resource, key, patch)?;
                }
                return self.gone(resource, key);
            }
            self.cluster.wait(UNWATCHED)?;
        }
        Ok(())
    }
}

fn finalizers(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten()
}

fn is_of_olm(finalizer: &Value) -> bool {
    finalizer.as_str().is_some_and(|name| name.starts_with(GROUP))
}

/// Whether a document is on its way out.
fn is_going(document: &Value) -> bool {
    document.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}
