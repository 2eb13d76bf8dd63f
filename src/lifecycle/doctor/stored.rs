//! An object of an observation. What was collected is kept as text and parsed when it is looked at: of thousands of pods a few are.

use std::sync::OnceLock;

use serde_json::Value;

/// An object, parsed or not.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// The object in JSON; empty if it was never text.
    text: Box<str>,
    value: OnceLock<Value>,
    version: Option<u64>,
}

impl Stored {
    /// An object that is looked at.
    pub(super) fn whole(value: Value) -> Self {
        let version = version(&value);
        Self { text: Box::default(), value: OnceLock::from(value), version }
    }

    /// An object that may never be looked at.
    pub(super) fn packed(value: &Value) -> Self {
        Self { text: value.to_string().into(), value: OnceLock::new(), version: version(value) }
    }

    /// The object. What was packed here can be read.
    pub(super) fn value(&self) -> &Value {
        self.value.get_or_init(|| serde_json::from_str(&self.text).unwrap_or_default())
    }

    /// The object, to be changed.
    pub(super) fn value_mut(&mut self) -> Option<&mut Value> {
        self.value();
        self.text = Box::default();
        self.value.get_mut()
    }

    /// Whether it was never packed.
    pub(super) fn is_whole(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether it is newer than another one, by their resource versions.
    pub(super) fn is_newer_than(&self, other: &Self) -> bool {
        self.version > other.version
    }
}

fn version(object: &Value) -> Option<u64> {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str)?.parse().ok()
}
