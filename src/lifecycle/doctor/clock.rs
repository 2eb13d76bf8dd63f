//! The moment of a collection: it is as old as the newest time in it that can be believed.
//!
//! Times of the API server count: it stamps the metadata of every object. So do those of OLM and of Kubernetes' own controllers, in
//! the status of what they manage. What a node wrote does not count alone, for the clock of a node may be wrong: kubelets write the
//! status of pods and most Events. Two clocks that agree are believed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::doc::{Doc, SKEW};
use crate::moment;

/// The times that the objects of a collection mention.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// The newest time of the API server, of OLM or of a controller.
    control: i64,
    /// The newest time by every other clock: of a node, or of a component that writes Events.
    others: BTreeMap<String, i64>,
}

impl Clock {
    /// Remembers the times of an object.
    pub(super) fn add(&mut self, object: &Value) {
        let doc = Doc(object);
        self.control = self.control.max(stamped(doc));
        match doc.kind() {
            "Event" => {
                if let Some(last) = last_seen(doc) {
                    self.hear(reporter(doc), last);
                }
            }
            "Pod" => {
                let node = doc.text("/spec/nodeName");
                if let Some(last) =
                    doc.by_server(Some(latest(&object["status"]))).filter(|_| !node.is_empty())
                {
                    self.hear(node, last);
                }
            }
            "Node" => self.hear(doc.name(), latest(&object["status"])),
            // What catalogs say of their bundles.
            "PackageManifest" => {}
            // Each write has a stamp, and that is enough.
            _ if is_stamped(doc) => {}
            _ => self.control = self.control.max(latest(&object["status"])),
        }
    }

    fn hear(&mut self, clock: &str, at: i64) {
        let known = self.others.entry(clock.to_owned()).or_default();
        *known = at.max(*known);
    }

    /// The newest time that can be believed; 0 if there is none.
    pub(super) fn newest(&self) -> i64 {
        let mut others: Vec<i64> = self.others.values().copied().collect();
        others.sort_unstable();
        // The last but one is a time that two of them have reached.
        let agreed = others.len().checked_sub(2).map_or(0, |at| others[at]);
        self.control.max(agreed)
    }
}

/// The newest time in the metadata of an object: the API server wrote them all.
fn stamped(object: Doc<'_>) -> i64 {
    let grace = object.number("/metadata/deletionGracePeriodSeconds").unwrap_or(0).max(0);
    // It is when the object should be gone.
    let deleted = object.moment("/metadata/deletionTimestamp").map(|at| at - grace.saturating_mul(1000));
    let written = object.list("/metadata/managedFields").filter_map(|one| Doc(one).moment("/time"));
    object.created().into_iter().chain(deleted).chain(written).max().unwrap_or(0)
}

/// Whether the API server says when an object was last written.
fn is_stamped(object: Doc<'_>) -> bool {
    object.list("/metadata/managedFields").any(|one| Doc(one).moment("/time").is_some())
}

/// Whose clock an Event has: that of a node, or of a component.
fn reporter<'o>(event: Doc<'o>) -> &'o str {
    let fields = ["/source/host", "/reportingInstance", "/source/component", "/reportingComponent"];
    fields.into_iter().map(|path| event.text(path)).find(|text| !text.is_empty()).unwrap_or("")
}

/// When an Event was seen last, by the clock of the API server as far as that is known. It is stored as soon as it happens: a component
/// whose clock is ahead is ahead by the difference.
pub(super) fn last_seen(event: Doc<'_>) -> Option<i64> {
    let newest_of = |paths: &[&str]| paths.iter().filter_map(|path| event.moment(path)).max();
    let stored = event.created();
    let first = newest_of(&["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let last =
        newest_of(&["/lastTimestamp", "/deprecatedLastTimestamp", "/series/lastObservedTime"]).or(first);
    let ahead = first.zip(stored).map_or(0, |(first, stored)| first - stored);
    let last = last.map(|last| last - if ahead > SKEW { ahead } else { 0 });
    last.max(stored)
}

/// The newest time in a document; 0 if there is none.
fn latest(value: &Value) -> i64 {
    match value {
        // Anything longer is text, and not a time.
        Value::String(text) if (20..=35).contains(&text.len()) && text.as_bytes()[4] == b'-' => {
            moment::parse(text).unwrap_or(0)
        }
        Value::Array(all) => all.iter().map(latest).max().unwrap_or(0),
        Value::Object(all) => {
            // Certificates and leases name moments to come.
            let past = all.iter().filter(|(name, _)| !matches!(name.as_str(), "certsRotateAt" | "notAfter"));
            past.map(|(_, value)| latest(value)).max().unwrap_or(0)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(objects: &[Value], expected: &str) {
        let mut clock = Clock::default();
        objects.iter().for_each(|object| clock.add(object));
        assert_eq!(moment::format(clock.newest()), expected);
    }

    fn subscription() -> Value {
        json!({"kind": "Subscription", "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}})
    }

    /// A pod whose kubelet says when something happened last.
    fn pod(node: &str, last: &str) -> Value {
        json!({
            "kind": "Pod", "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"nodeName": node},
            "status": {"containerStatuses": [{"state": {"running": {"startedAt": last}}}]},
        })
    }

    fn event(node: &str, stored: &str, first: &str, last: &str) -> Value {
        let metadata = json!({"name": "a", "creationTimestamp": stored});
        json!({
            "kind": "Event", "metadata": metadata, "firstTimestamp": first, "lastTimestamp": last,
            "source": {"component": "kubelet", "host": node},
        })
    }

    #[test]
    fn the_clock_of_one_node_does_not_say_when_a_collection_was_made() {
        check(&[subscription(), pod("one", "2026-01-01T00:12:00Z")], "2026-01-01T00:00:00Z");
        let seen = event("one", "2026-01-01T00:01:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:13:00Z");
        check(&[subscription(), seen.clone()], "2026-01-01T00:01:00Z");
        check(&[subscription(), pod("one", "2026-01-01T00:12:00Z"), seen], "2026-01-01T00:01:00Z");
        let node = json!({
            "kind": "Node", "metadata": {"name": "one", "creationTimestamp": "2025-01-01T00:00:00Z"},
            "status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": "2026-01-01T00:12:30Z"}]},
        });
        check(&[subscription(), pod("one", "2026-01-01T00:12:00Z"), node], "2026-01-01T00:00:00Z");
    }

    #[test]
    fn two_nodes_that_agree_say_when_a_collection_was_made() {
        let seen = event("two", "2026-01-01T00:01:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:40:00Z");
        check(&[subscription(), pod("one", "2026-01-01T00:30:00Z"), seen], "2026-01-01T00:30:00Z");
    }

    #[test]
    fn what_the_api_server_and_olm_wrote_says_when_a_collection_was_made() {
        let mut stamped = subscription();
        stamped["status"] = json!({"lastUpdated": "2026-01-01T00:20:00Z"});
        check(std::slice::from_ref(&stamped), "2026-01-01T00:20:00Z");
        // With a time stamp of the API server, the local clock is not needed.
        stamped["metadata"]["managedFields"] = json!([{"time": "2026-01-01T00:08:00Z"}]);
        check(&[stamped], "2026-01-01T00:08:00Z");
        let mut ill = pod("one", "2026-01-01T00:40:00Z");
        ill["metadata"]["managedFields"] = json!([{"time": "2026-01-01T00:28:00Z"}]);
        check(&[ill], "2026-01-01T00:28:00Z");
        let mut going = subscription();
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:10:30Z");
        going["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        check(&[going], "2026-01-01T00:10:00Z");
    }

    #[test]
    fn annotations_and_catalogs_say_nothing_of_a_collection() {
        let mut noted = subscription();
        noted["metadata"]["annotations"] = json!({"restartedAt": "2026-01-01T09:00:00Z"});
        let manifest = json!({"kind": "PackageManifest", "status": {"createdAt": "2026-01-01T09:00:00Z"}});
        check(&[noted, manifest], "2026-01-01T00:00:00Z");
    }

    #[test]
    fn the_clock_of_a_component_that_is_ahead_is_put_right() {
        let ahead = event("one", "2026-01-01T00:01:00Z", "2026-01-01T00:31:00Z", "2026-01-01T00:35:00Z");
        assert_eq!(last_seen(Doc(&ahead)).map(moment::format).as_deref(), Some("2026-01-01T00:05:00Z"));
        let behind = event("one", "2026-01-01T00:40:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:01:00Z");
        assert_eq!(last_seen(Doc(&behind)).map(moment::format).as_deref(), Some("2026-01-01T00:40:00Z"));
    }

    #[test]
    fn one_event_in_the_future_or_the_far_past_moves_nothing() {
        let future = event("one", "2026-01-01T00:01:00Z", "2026-01-01T00:01:00Z", "2036-01-01T00:00:00Z");
        check(&[subscription(), future], "2026-01-01T00:01:00Z");
        let unstored = event("one", "", "2036-01-01T00:00:00Z", "2036-01-01T00:00:00Z");
        check(&[subscription(), unstored], "2026-01-01T00:00:00Z");
        let past = event("one", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z");
        check(&[subscription(), past], "2026-01-01T00:00:00Z");
    }
}
