//! One object of an observation, with short ways to what is in it.

use serde_json::Value;

use super::ObjectRef;
use crate::lifecycle::api::label;
use crate::moment;

/// How far the clocks of a cluster may be apart.
pub(super) const SKEW: i64 = 60_000;

/// An object: its document, with short ways to what is in it.
#[derive(Clone, Copy, Debug)]
pub struct Doc<'o>(pub &'o Value);

/// A condition of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cond<'o> {
    pub(super) kind: &'o str,
    pub(super) is_true: bool,
    pub(super) reason: &'o str,
    pub(super) message: &'o str,
    pub(super) since: Option<i64>,
}

impl<'o> Doc<'o> {
    /// Text at a path; empty if missing.
    pub fn text(self, path: &str) -> &'o str {
        self.0.pointer(path).and_then(Value::as_str).unwrap_or("")
    }

    /// A number at a path.
    pub fn number(self, path: &str) -> Option<i64> {
        self.0.pointer(path).and_then(Value::as_i64)
    }

    /// A list at a path.
    pub fn list(self, path: &str) -> impl Iterator<Item = &'o Value> + use<'o> {
        self.0.pointer(path).and_then(Value::as_array).into_iter().flatten()
    }

    /// A moment at a path.
    pub(super) fn moment(self, path: &str) -> Option<i64> {
        moment::parse(self.text(path))
    }

    /// The name.
    pub fn name(self) -> &'o str {
        self.text("/metadata/name")
    }

    /// The namespace; empty for objects of the cluster.
    pub fn namespace(self) -> &'o str {
        self.text("/metadata/namespace")
    }

    pub(super) fn kind(self) -> &'o str {
        self.text("/kind")
    }

    pub(super) fn created(self) -> Option<i64> {
        self.moment("/metadata/creationTimestamp")
    }

    /// A moment that the kubelet wrote into the status of this pod, by the clock of the API server: how far the node's clock is off shows
    /// in when it took the pod over from the scheduler.
    pub(super) fn by_server(self, at: Option<i64>) -> Option<i64> {
        let Some(created) = self.created() else { return at };
        let scheduled = self.holding("PodScheduled").and_then(|found| found.since).unwrap_or(created);
        let started = self.moment("/status/startTime");
        let off = started.map_or(0, |started| started - scheduled.max(created));
        let off = if off.abs() > SKEW { off } else { 0 };
        at.map(|at| (at - off).max(created))
    }

    pub(super) fn is_going(self) -> bool {
        !self.text("/metadata/deletionTimestamp").is_empty()
    }

    pub(super) fn label(self, name: &str) -> &'o str {
        self.entry("/metadata/labels", name)
    }

    pub(super) fn annotation(self, name: &str) -> &'o str {
        self.entry("/metadata/annotations", name)
    }

    fn entry(self, path: &str, name: &str) -> &'o str {
        self.0.pointer(path).and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or("")
    }

    pub(super) fn owners(self, kind: &'o str) -> impl Iterator<Item = &'o str> {
        let owners = self.list("/metadata/ownerReferences").filter(move |owner| owner["kind"] == kind);
        owners.filter_map(|owner| owner["name"].as_str())
    }

    pub(super) fn conditions(self) -> impl Iterator<Item = Cond<'o>> {
        self.list("/status/conditions").map(|found| {
            let found = Doc(found);
            Cond {
                kind: found.text("/type"),
                is_true: found.text("/status") == "True",
                reason: found.text("/reason"),
                message: found.text("/message"),
                since: found.moment("/lastTransitionTime"),
            }
        })
    }

    /// A condition, whatever its status.
    pub(super) fn condition(self, kind: &str) -> Option<Cond<'o>> {
        self.conditions().find(|found| found.kind == kind)
    }

    /// A condition that holds.
    pub(super) fn holding(self, kind: &str) -> Option<Cond<'o>> {
        self.condition(kind).filter(|found| found.is_true)
    }

    /// Whether it is a copy of a ClusterServiceVersion of another namespace.
    pub(super) fn is_copy(self) -> bool {
        !self.label(label::COPIED_FROM).is_empty() || self.text("/status/reason") == "Copied"
    }

    /// What the object is called.
    pub fn reference(self) -> ObjectRef {
        ObjectRef {
            api_version: self.text("/apiVersion").to_owned(),
            kind: self.kind().to_owned(),
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
        }
    }
}
