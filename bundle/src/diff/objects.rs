//! What changes in the other objects that a bundle carries: Services, ConfigMaps, roles and bindings among them.

use std::collections::BTreeMap;

use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::codes;
use crate::finding::{Finding, Findings};
use crate::parse::{Bundle, Object};
use crate::yaml::{Node, Step, steps};

/// Compares the objects of two bundles, but for the ClusterServiceVersion and CRDs.
pub(super) fn compare(old: &Bundle<'_>, new: &Bundle<'_>, findings: &mut Findings) {
    let (olds, news) = (by_id(old), by_id(new));
    let name: &[Step<'_>] = steps!("metadata", "name");
    for (id, object) in olds.iter().filter(|(id, _)| !news.contains_key(*id)) {
        let finding = Finding::new(&codes::OBJECT_REMOVED, format!("`{id}` is no longer in the bundle"));
        findings.push(finding.at(new.place()).and(object.place(name).label("before")).subject(id));
    }
    for (id, object) in &news {
        let Some(before) = olds.get(id) else {
            let finding = Finding::new(&codes::OBJECT_ADDED, format!("`{id}` is new in the bundle"));
            findings.push(finding.at(object.place(name)).and(old.place()).subject(id));
            continue;
        };
        let refused = refused(before, object);
        if refused.is_none() && before.root.to_json() == object.root.to_json() {
            continue;
        }
        let (code, message, path) = match &refused {
            Some((what, path)) => (
                &codes::OBJECT_UPDATE_REFUSED,
                format!("{what} of `{id}` changes, which Kubernetes refuses for existing objects"),
                *path,
            ),
            None => (&codes::OBJECT_CHANGED, format!("`{id}` changes"), name),
        };
        let before = before.place(path).label("before");
        findings.push(Finding::new(code, message).at(object.place(path)).and(before).subject(id));
    }
}

fn by_id<'b, 'a>(bundle: &'b Bundle<'a>) -> BTreeMap<String, Object<'b, 'a>> {
    let is_other = |object: &Object<'_, '_>| {
        !matches!(object.kind(), "CustomResourceDefinition" | "" | crate::csv::KIND)
    };
    bundle.objects().filter(is_other).map(|object| (object.id(), object)).collect()
}

/// What changes although Kubernetes does not allow that, and where.
fn refused(old: &Object<'_, '_>, new: &Object<'_, '_>) -> Option<(&'static str, &'static [Step<'static>])> {
    let json = |object: &Object<'_, '_>, path: &[Step<'_>]| object.root.at(path).map(Node::to_json);
    let differs = |path: &[Step<'_>]| json(old, path) != json(new, path);
    match old.kind() {
        "Secret" if or(old, "type", "Opaque") != or(new, "type", "Opaque") => {
            Some(("`type`", &[Step::Key("type")]))
        }
        "Secret" | "ConfigMap" if json(old, steps!("immutable")) == Some(true.into()) => {
            if data(old) != data(new) {
                return Some(("the data", &[Step::Key("data")]));
            }
            let path: &'static [Step<'static>] = &[Step::Key("immutable")];
            differs(path).then_some(("`immutable`", path))
        }
        "PriorityClass" if differs(steps!("value")) => Some(("`value`", &[Step::Key("value")])),
        "PriorityClass" => {
            let of = |object| or(object, "preemptionPolicy", "PreemptLowerPriority");
            let path: &'static [Step<'static>] = &[Step::Key("preemptionPolicy")];
            (of(old) != of(new)).then_some(("`preemptionPolicy`", path))
        }
        // One that is left out stays as it is.
        "Service" => {
            let path: &'static [Step<'static>] = &[Step::Key("spec"), Step::Key("clusterIP")];
            (differs(path) && json(new, path).is_some()).then_some(("`clusterIP`", path))
        }
        "RoleBinding" | "ClusterRoleBinding" => {
            let path: &'static [Step<'static>] = &[Step::Key("roleRef")];
            differs(path).then_some(("`roleRef`", path))
        }
        _ => None,
    }
}

/// A text of an object, or what Kubernetes takes when there is none.
fn or(object: &Object<'_, '_>, key: &str, default: &str) -> String {
    let text = object.text(&[Step::Key(key)]);
    if text.is_empty() { default.to_owned() } else { text.to_owned() }
}

/// What a ConfigMap or Secret holds, `stringData` as the data that Kubernetes makes of it.
fn data(object: &Object<'_, '_>) -> BTreeMap<String, String> {
    let of = |key: &str| {
        let map = object.root.get(key).and_then(Node::as_mapping);
        map.into_iter().flatten().map(|entry| (entry.key.to_string(), entry.value.to_text()))
    };
    let plain = ["data", "binaryData"].into_iter().flat_map(of);
    let plain = plain.map(|(key, text)| (key, text.unwrap_or_default().into_owned()));
    let encoded = of("stringData")
        .map(|(key, text)| (key, BASE64_STANDARD.encode(text.unwrap_or_default().as_bytes())));
    plain.chain(encoded).collect()
}
