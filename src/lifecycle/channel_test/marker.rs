//! What a run notes on the cluster of what it found there: a run that was killed is cleaned up by the next one, which must not remove
//! what neither of them has made.
//!
//! The note is a lease too: as long as a run lives it is renewed. A run that finds a note watches whether it is renewed, by its own
//! clock, as clients of Kubernetes' leases do.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use serde_json::{Value, json};

use crate::lifecycle::api::{Key, known, label, made_here};
use crate::lifecycle::engine::EngineError;

/// What the ConfigMap with the note is called.
pub(super) const NAME: &str = "olmkit-operator-test";

/// How often a run renews its note.
pub(super) const RENEW: Duration = Duration::from_secs(8);
/// A note that was not renewed for so long is that of a run that was killed.
pub(super) const LEASE: Duration = Duration::from_secs(40);

/// The note of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marker {
    /// The package that is tested.
    pub(super) package: String,
    /// CRDs that were there before.
    pub(super) kept: BTreeSet<String>,
    /// The namespaces that the run has made.
    pub(super) namespaces: BTreeSet<String>,
    /// The run that has written it.
    pub(super) holder: String,
    /// When it was renewed, in milliseconds since 1970 by the clock of that run.
    pub(super) renewed: i64,
}

/// A name for a run that no other one has.
pub(super) fn new_holder() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// That somebody else works in a namespace.
pub(super) fn at_work(namespace: &str) -> EngineError {
    EngineError::refused_help(
        format!("another run of `operator test` works in the namespace `{namespace}`"),
        "wait for it, or name another namespace with -n",
    )
}

impl Marker {
    pub(super) fn key(namespace: &str) -> Key {
        Key::new(&known::CONFIG_MAP, namespace, NAME)
    }

    pub(super) fn document(&self, namespace: &str) -> Value {
        let list = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        json!({
            "apiVersion": known::CONFIG_MAP.api_version(), "kind": known::CONFIG_MAP.kind,
            "metadata": {"name": NAME, "namespace": namespace, "labels": {label::CREATED_BY: label::OLMKIT}},
            "data": {
                "package": self.package, "kept": list(&self.kept), "namespaces": list(&self.namespaces),
                "holder": self.holder, "renewed": self.renewed.to_string(),
            },
        })
    }

    /// Reads a note; none where it is somebody else's.
    pub(super) fn read(document: &Value) -> Option<Self> {
        if !made_here(document) {
            return None;
        }
        let text = |field: &str| document["data"][field].as_str().unwrap_or("");
        let list = |field: &str| text(field).lines().map(str::to_owned).collect();
        Some(Self {
            package: text("package").to_owned(),
            kept: list("kept"),
            namespaces: list("namespaces"),
            holder: text("holder").to_owned(),
            renewed: text("renewed").parse().unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let marker = Marker {
            package: "demo".into(),
            kept: set(&["a.example.com", "b.example.com"]),
            namespaces: set(&[]),
            holder: new_holder(),
            renewed: 7,
        };
        let document = marker.document("ns");
        assert_eq!(Marker::read(&document), Some(marker));
        assert_eq!(Marker::read(&json!({"data": {"package": "demo"}})), None);
    }
}
