//! The API server of a simulation: objects with the fields that a server fills in, deletion with finalizers, and garbage
//! collection by owner.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::lifecycle::api::{Key, Resource};
use crate::lifecycle::cluster::ClusterError;
use crate::lifecycle::patch::merge;

/// When simulated clocks begin: 2026-01-01T00:00:00Z, in seconds.
const EPOCH: i64 = 1_767_225_600;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It is new.
    Added,
    /// It was changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// A change of an object.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The object as it is now, or was last.
    pub object: Value,
}

/// Objects by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Store {
    #[serde(with = "documents")]
    objects: BTreeMap<Key, Value>,
    now: Duration,
    version: u64,
    /// What happened, if somebody asks for it: each event is a copy of an object.
    #[serde(skip)]
    events: Option<Vec<Event>>,
}

/// Objects are saved as a list of documents, which know their keys themselves.
mod documents {
    use super::*;

    pub(super) fn serialize<S: serde::Serializer>(
        objects: &BTreeMap<Key, Value>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(objects.values())
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<Key, Value>, D::Error> {
        let documents = Vec::<Value>::deserialize(deserializer)?;
        Ok(documents.into_iter().map(|document| (Key::of(&document), document)).collect())
    }
}

impl Store {
    /// The objects of another world, at a moment: what rules look at when something else keeps the objects.
    pub fn of(documents: impl IntoIterator<Item = Value>, now: Duration) -> Self {
        let objects = documents.into_iter().map(|document| (Key::of(&document), document)).collect();
        Self { objects, now, ..Self::default() }
    }

    /// The time since the simulation began.
    pub fn now(&self) -> Duration {
        self.now
    }

    pub(super) fn set_now(&mut self, now: Duration) {
        self.now = now;
    }

    /// The clock as objects show it.
    pub fn timestamp(&self) -> String {
        timestamp(self.now)
    }

    /// The clock in milliseconds since 1970.
    pub(super) fn time_of_day(&self) -> i64 {
        EPOCH * 1000 + i64::try_from(self.now.as_millis()).unwrap_or(i64::MAX / 2)
    }

    pub(super) fn keep_events(&mut self) {
        self.events.get_or_insert_default();
    }

    pub(super) fn take_events(&mut self) -> Vec<Event> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Every object, sorted.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.objects.iter()
    }

    /// The objects of a kind, sorted by namespace and name.
    pub fn list<'s>(
        &'s self,
        resource: &'s Resource,
        namespace: Option<&'s str>,
    ) -> impl Iterator<Item = &'s Value> {
        let wanted = move |key: &Key| {
            key.kind == resource.kind
                && key.group == resource.group
                && namespace.is_none_or(|namespace| key.namespace == namespace)
        };
        self.objects.iter().filter(move |(key, _)| wanted(key)).map(|(_, object)| object)
    }

    /// An object.
    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.objects.get(key)
    }

    /// Stores a new object.
    ///
    /// # Errors
    /// There is one of that name.
    pub fn create(&mut self, mut object: Value) -> Result<Value, ClusterError> {
        self.version += 1;
        let generated = object.pointer("/metadata/generateName").and_then(Value::as_str).map(str::to_owned);
        if let (Some(prefix), true) = (generated, Key::of(&object).name.is_empty()) {
            merge(&mut object, &json!({"metadata": {"name": prefix + &self.suffix()}}));
        }
        let key = Key::of(&object);
        if self.objects.contains_key(&key) {
            return Err(ClusterError::Exists { key });
        }
        let uid = format!("00000000-0000-4000-8000-{:012x}", self.version);
        let version = self.version.to_string();
        merge(
            &mut object,
            &json!({"metadata": {
                "creationTimestamp": self.timestamp(), "generation": 1, "resourceVersion": version, "uid": uid,
            }}),
        );
        self.happened(EventKind::Added, &object);
        self.objects.insert(key, object.clone());
        Ok(object)
    }

    /// Merges a patch into an object.
    ///
    /// # Errors
    /// It is not there, or the patch names another version of it.
    pub fn patch(&mut self, key: &Key, patch: &Value) -> Result<Value, ClusterError> {
        let Some(object) = self.objects.get_mut(key) else {
            return Err(ClusterError::NotFound { key: key.clone() });
        };
        let expected = patch.pointer("/metadata/resourceVersion");
        if expected.is_some_and(|expected| Some(expected) != object.pointer("/metadata/resourceVersion")) {
            return Err(ClusterError::Conflict { key: key.clone() });
        }
        let before = object.clone();
        merge(object, patch);
        if *object == before {
            return Ok(before);
        }
        self.version += 1;
        let generation = object.pointer("/metadata/generation").and_then(Value::as_u64).unwrap_or(1)
            + u64::from(object.get("spec") != before.get("spec"));
        merge(
            object,
            &json!({"metadata": {"resourceVersion": self.version.to_string(), "generation": generation}}),
        );
        let after = object.clone();
        self.happened(EventKind::Modified, &after);
        if after.pointer("/metadata/deletionTimestamp").is_some() && !has_finalizer(&after) {
            self.remove(key);
        }
        Ok(after)
    }

    /// Asks for an object to go: at once, or when its finalizers are done.
    pub fn delete(&mut self, key: &Key) {
        let Some(object) = self.objects.get(key) else { return };
        if has_finalizer(object) {
            if object.pointer("/metadata/deletionTimestamp").is_none() {
                let patch = json!({"metadata": {"deletionTimestamp": self.timestamp()}});
                let _ = self.patch(key, &patch);
            }
        } else {
            self.remove(key);
        }
    }

    /// Takes an object away, and what it alone owns.
    pub(super) fn remove(&mut self, key: &Key) {
        let Some(object) = self.objects.remove(key) else { return };
        self.happened(EventKind::Deleted, &object);
        let uid = object.pointer("/metadata/uid").cloned();
        let orphans: Vec<Key> = self
            .objects
            .iter()
            .filter(|(_, other)| uid.is_some() && owners(other).any(|owner| Some(owner) == uid.as_ref()))
            .filter(|(_, other)| owners(other).all(|owner| !self.has_uid(owner)))
            .map(|(key, _)| key.clone())
            .collect();
        for orphan in orphans {
            self.delete(&orphan);
        }
    }

    fn has_uid(&self, uid: &Value) -> bool {
        self.objects.values().any(|object| object.pointer("/metadata/uid") == Some(uid))
    }

    fn happened(&mut self, kind: EventKind, object: &Value) {
        if let Some(events) = &mut self.events {
            events.push(Event { kind, object: object.clone() });
        }
    }

    /// Five letters for a generated name, different each time and the same in each run.
    fn suffix(&self) -> String {
        const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        // Knuth's multiplicative hash spreads consecutive versions.
        let mut left = self.version.wrapping_mul(2_654_435_761) % 14_348_907;
        let mut suffix = String::new();
        for _ in 0..5 {
            suffix.push(char::from(LETTERS[(left % 27) as usize]));
            left /= 27;
        }
        suffix
    }
}

/// A simulated moment as objects show it.
fn timestamp(at: Duration) -> String {
    let seconds = EPOCH + i64::try_from(at.as_secs()).unwrap_or(i64::MAX - EPOCH);
    Timestamp::from_second(seconds).map_or_else(|_| String::new(), |time| time.to_string())
}

fn has_finalizer(object: &Value) -> bool {
    object.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|all| !all.is_empty())
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().filter_map(|owner| owner.get("uid"))
}
