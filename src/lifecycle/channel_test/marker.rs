//! What a run notes on the cluster of what it found there: a run that was killed is cleaned up by the next one, which must not remove
//! what neither of them has made.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::lifecycle::api::{Key, known, label, made_here};

/// What the ConfigMap with the note is called.
pub(super) const NAME: &str = "olmkit-operator-test";

/// The note of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marker {
    /// The package that is tested.
    pub(super) package: String,
    /// CRDs that were there before.
    pub(super) kept: BTreeSet<String>,
    /// The namespaces that the run has made.
    pub(super) namespaces: BTreeSet<String>,
    /// Until when its next step takes at most, in milliseconds since 1970.
    pub(super) until: i64,
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
                "until": self.until.to_string(),
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
            until: text("until").parse().unwrap_or(0),
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
            until: 7,
        };
        let document = marker.document("ns");
        assert_eq!(Marker::read(&document), Some(marker));
        assert_eq!(Marker::read(&json!({"data": {"package": "demo"}})), None);
    }
}
