//! OLM v1's verdict on a new version of a CRD: the checks of crdify, as operator-controller configures them.
//!
//! operator-controller compares the CRD on the cluster with the one of the new bundle, and refuses the bundle for every
//! result. Descriptions may change and enums may grow; whatever no check knows is refused as `unhandled`, also when it
//! only relaxes (`crdify/pkg/validations`, `operator-controller/internal/operator-controller/rukpak/preflights`).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::schema::{
    Segment, child, children, field, field_path, is_true, list, number, same, same_field, span_of, text,
    texts, v1_path,
};
use crate::crd::types::SCHEMA;
use crate::crd::{Crd, CrdVersion};
use crate::finding::MOST_OF_A_KIND;
use crate::source::Span;
use crate::yaml::{Node, steps};

/// Served versions that are all compared with each other: CRDs have fewer than ten.
const MOST_SERVED: usize = 100;

/// Something that OLM v1 refuses a new version of a CRD for.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The check, by crdify's name.
    pub check: &'static str,
    /// The version, or `OLD -> NEW` where two served versions are compared; none for checks of the whole CRD.
    pub version: Option<String>,
    /// The property as crdify writes it, such as `^.spec.size`; none for checks of the whole CRD.
    pub property: Option<String>,
    /// The version and property that were removed, for `existingFieldRemoval`.
    pub removed: Option<(String, String)>,
    /// What changed, in our words.
    pub about: String,
    /// What tells a change from others, where `about` does not say all of it.
    rest: u64,
    /// The field, for people.
    pub field: String,
    /// Where it stands in the old version; for two served versions, in the older of them in the new CRD.
    pub old: Option<Span>,
    /// Where it stands in the new version, or should.
    pub new: Option<Span>,
}

/// Everything that OLM v1 refuses a new CRD for, and which served versions were not compared, if there are very many. The
/// versions stored in the cluster are the old CRD's `status.storedVersions`, else its storage version.
pub fn refusals(old: Crd<'_, '_>, new: Crd<'_, '_>) -> (Vec<Refusal>, Option<String>) {
    // It looks at nothing else.
    if !new.is_v1() {
        return (Vec::new(), None);
    }
    let mut refusals = Vec::new();
    whole(old, new, &mut refusals);
    let (olds, news) = (old.versions(), new.versions());
    let after = by_name(&news);
    for version in &olds {
        let Some(next) = after.get(version.name.as_ref()) else { continue };
        let (Some(from), Some(to)) = (old.schema(version), new.schema(next)) else { continue };
        let mut walk = Walk::new(version.name.to_string(), true);
        walk.root(from, to);
        refusals.append(&mut walk.refusals);
    }
    let not_compared = served(old, new, &mut refusals);
    (refusals, not_compared)
}

/// The first version of each name.
pub(super) fn by_name<'v, 'b, 'a>(
    versions: &'v [CrdVersion<'b, 'a>],
) -> HashMap<&'v str, &'v CrdVersion<'b, 'a>> {
    versions.iter().rev().map(|version| (version.name.as_ref(), version)).collect()
}

/// The versions that objects are stored in: those that a cluster reported, else the storage version.
pub(super) fn stored_versions(crd: Crd<'_, '_>) -> Vec<String> {
    let reported = crd.list(steps!("status", "storedVersions"));
    let reported: Vec<_> = reported.iter().filter_map(Node::as_str).map(str::to_owned).collect();
    if !reported.is_empty() {
        return reported;
    }
    storage_version(crd).into_iter().collect()
}

/// The version that objects are written in.
pub(super) fn storage_version(crd: Crd<'_, '_>) -> Option<String> {
    let versions = crd.versions();
    let is_storage = |version: &&CrdVersion<'_, '_>| is_true(version.node, "storage");
    let only = versions.first().filter(|_| versions.len() == 1);
    versions.iter().find(is_storage).or(only).map(|version| version.name.to_string())
}

fn whole(old: Crd<'_, '_>, new: Crd<'_, '_>, refusals: &mut Vec<Refusal>) {
    let refusal = |check, about, path: &[crate::yaml::Step<'_>]| Refusal {
        check,
        version: None,
        property: None,
        removed: None,
        about,
        rest: 0,
        field: String::new(),
        old: Some(old.0.locate(path)),
        new: Some(new.0.locate(path)),
    };
    let scope = steps!("spec", "scope");
    let (from, to) = (old.text(scope), new.text(scope));
    if from != to {
        refusals.push(refusal("scope", format!("the scope `{from}` becomes `{to}`"), scope));
    }
    let versions = new.versions();
    let mut gone = stored_versions(old);
    let names = by_name(&versions);
    gone.retain(|stored| !names.contains_key(stored.as_str()));
    if !gone.is_empty() {
        let about = format!("objects are stored as `{}`, which the CRD no longer has", gone.join("`, `"));
        refusals.push(refusal("storedVersionRemoval", about, steps!("spec", "versions")));
    }
}

/// Compares every served version of a CRD with every later one; what the old CRD has already is not refused. Returns
/// which were not compared.
fn served(old: Crd<'_, '_>, new: Crd<'_, '_>, refusals: &mut Vec<Refusal>) -> Option<String> {
    if new.text(steps!("spec", "conversion", "strategy")) == "Webhook" {
        return None;
    }
    let (mut found, not_compared) = pairs(new);
    if !found.is_empty() {
        let known: BTreeSet<_> = pairs(old).0.into_iter().map(key).collect();
        found.retain(|refusal| !known.contains(&key(refusal.clone())));
        refusals.append(&mut found);
    }
    not_compared
}

fn key(refusal: Refusal) -> (Option<String>, Option<String>, &'static str, String, u64) {
    (refusal.version, refusal.property, refusal.check, refusal.about, refusal.rest)
}

/// A sentence is no longer than this, in bytes: each pair of versions may have one about values that are as long as the CRD.
const MOST_OF_A_SENTENCE: usize = 1_000;

/// The beginning of a long sentence, and what tells it from others with this beginning.
fn cut(mut about: String, more: &str) -> (String, u64) {
    if about.len() <= MOST_OF_A_SENTENCE && more.is_empty() {
        return (about, 0);
    }
    let mut hasher = DefaultHasher::new();
    (&about, more).hash(&mut hasher);
    if about.len() > MOST_OF_A_SENTENCE {
        about.truncate(about.floor_char_boundary(MOST_OF_A_SENTENCE));
        about.push('…');
    }
    (about, hasher.finish())
}

/// The differences between served versions, and which versions were not compared.
fn pairs(crd: Crd<'_, '_>) -> (Vec<Refusal>, Option<String>) {
    let mut versions = crd.versions();
    versions.retain(|version| is_true(version.node, "served") || (!crd.is_v1() && version.is_served()));
    versions.sort_by(|a, b| compare_versions(&a.name, &b.name));
    let schemas: Vec<_> =
        versions.iter().filter_map(|version| Some((&version.name, crd.schema(version)?))).collect();
    let count = schemas.len();
    let each_with = if count > MOST_SERVED { 1 } else { count };
    let later = |at: usize| schemas[at + 1..].iter().take(each_with);
    let mut refusals = Vec::new();
    for ((name, from), (next, to)) in
        schemas.iter().enumerate().flat_map(|(at, one)| later(at).map(move |other| (one, other)))
    {
        if refusals.len() > MOST_OF_A_KIND {
            let most = format!("served versions differ in more than {MOST_OF_A_KIND} places");
            return (refusals, Some(format!("{most}: from `{name}` and `{next}` on they were not compared")));
        }
        let mut walk = Walk::new(format!("{name} -> {next}"), false);
        walk.root(from, to);
        refusals.append(&mut walk.refusals);
    }
    let not_compared = (count > MOST_SERVED).then(|| {
        format!("of {count} served versions each was compared with the next one alone: with more than {MOST_SERVED}, not all are compared")
    });
    (refusals, not_compared)
}

/// The order of Kubernetes' versions, lowest first: `v1alpha1`, `v1beta1`, `v1`, `v2`; others come before them, backwards.
pub(super) fn compare_versions(a: &str, b: &str) -> Ordering {
    match (kubernetes_version(a), kubernetes_version(b)) {
        (None, None) => b.cmp(a),
        (a, b) => a.cmp(&b),
    }
}

/// Stability, major and minor of a version such as `v1beta2`.
fn kubernetes_version(text: &str) -> Option<(u8, u64, u64)> {
    let rest = text.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(digits);
    let major = major.parse().ok()?;
    let minor = |rest: &str| rest.parse().ok().filter(|_| rest.bytes().all(|byte| byte.is_ascii_digit()));
    match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
        (Some(rest), _) => Some((0, major, minor(rest)?)),
        (_, Some(rest)) => Some((1, major, minor(rest)?)),
        _ if rest.is_empty() => Some((2, major, 0)),
        _ => None,
    }
}

/// A walk over two schemas at once.
struct Walk<'b> {
    version: String,
    /// Whether the schemas are of one version, so that a field that is gone is refused as such.
    same_version: bool,
    path: Vec<Segment<'b>>,
    refusals: Vec<Refusal>,
}

impl<'b> Walk<'b> {
    fn new(version: String, same_version: bool) -> Self {
        Self { version, same_version, path: Vec::new(), refusals: Vec::new() }
    }

    fn root(&mut self, old: &'b Node<'_>, new: &'b Node<'_>) {
        if !same(old, new) {
            self.both((old, old.span), (new, new.span));
        }
    }

    fn both(&mut self, old: (&'b Node<'_>, Span), new: (&'b Node<'_>, Span)) {
        self.properties(old, Some(new.0), new.1);
        for below in children(old.0) {
            self.path.push(below.segment);
            match child(new.0, below.segment) {
                Some(next) => self.both((below.node, below.key), (next.node, next.key)),
                None => self.gone((below.node, below.key), new.1),
            }
            self.path.pop();
        }
    }

    /// A schema that the new version does not have, with all below it.
    fn gone(&mut self, old: (&'b Node<'_>, Span), new: Span) {
        if self.same_version {
            let (version, path) = (self.version.clone(), v1_path(&self.path));
            self.refusals.push(Refusal {
                check: "existingFieldRemoval",
                version: None,
                property: None,
                removed: Some((version, path)),
                about: "it is removed".to_owned(),
                rest: 0,
                field: field_path(&self.path),
                old: Some(old.1),
                new: Some(new),
            });
        }
        self.properties(old, None, new);
        for below in children(old.0) {
            self.path.push(below.segment);
            self.gone((below.node, below.key), new);
            self.path.pop();
        }
    }

    /// The checks of one property; a schema that is gone counts as an empty one.
    fn properties(&mut self, (old, old_key): (&Node<'_>, Span), new: Option<&Node<'_>>, new_key: Span) {
        let mut found: Vec<(&'static str, &'static str, String)> = Vec::new();
        checks(old, new, |check, field, about| found.push((check, field, about)));
        let mut values = String::new();
        if let Some((field, about, all)) = unhandled(old, new) {
            found.push(("unhandled", field, about));
            values = all;
        }
        if found.is_empty() {
            return;
        }
        let (property, path) = (v1_path(&self.path), field_path(&self.path));
        for (check, field, about) in found {
            let (about, rest) = cut(about, if check == "unhandled" { &values } else { "" });
            self.refusals.push(Refusal {
                check,
                version: Some(self.version.clone()),
                property: Some(property.clone()),
                removed: None,
                about,
                rest,
                field: path.clone(),
                old: Some(span_of(old, old_key, field)),
                new: Some(new.map_or(new_key, |new| span_of(new, new_key, field))),
            });
        }
    }
}

/// Fields that a check of their own looks at, that do not count, or that are walked.
const HANDLED: &[&str] = &[
    "type",
    "default",
    "enum",
    "required",
    "maximum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minimum",
    "minItems",
    "minLength",
    "minProperties",
    "pattern",
    "nullable",
    "oneOf",
    "description",
    "properties",
    "items",
];

const MAXIMA: [&str; 4] = ["maximum", "maxItems", "maxLength", "maxProperties"];
const MINIMA: [&str; 4] = ["minimum", "minItems", "minLength", "minProperties"];

/// Runs every check on a property: the check, the field it looks at, what changed.
fn checks(
    old: &Node<'_>,
    new: Option<&Node<'_>>,
    mut refuse: impl FnMut(&'static str, &'static str, String),
) {
    let get = |name: &str| (field(old, name), new.and_then(|new| field(new, name)));
    let new_text = |name: &str| new.map_or("", |new| text(new, name));
    let (from, to) = (text(old, "type"), new_text("type"));
    if from != to {
        refuse("type", "type", becomes("type", from, to));
    }
    match get("default") {
        (None, Some(new)) => refuse("default", "default", format!("the default `{}` is new", new.to_json())),
        (Some(old), None) => {
            refuse("default", "default", format!("the default `{}` is removed", old.to_json()))
        }
        (Some(old), Some(new)) if old.to_json() != new.to_json() => {
            refuse(
                "default",
                "default",
                format!("the default `{}` becomes `{}`", old.to_json(), new.to_json()),
            );
        }
        _ => {}
    }
    let values = |node: &Node<'_>| {
        list(node, "enum").iter().map(|value| value.to_json().to_string()).collect::<BTreeSet<_>>()
    };
    let (from, to) = (values(old), new.map(values).unwrap_or_default());
    let removed: Vec<_> = from.difference(&to).map(String::as_str).collect();
    if from.is_empty() && !to.is_empty() {
        let values: Vec<_> = to.iter().map(String::as_str).collect();
        refuse("enum", "enum", format!("only the values `{}` are allowed now", values.join("`, `")));
    } else if !removed.is_empty() {
        refuse("enum", "enum", format!("the values `{}` leave the enum", removed.join("`, `")));
    }
    let from: BTreeSet<_> = texts(old, "required").into_iter().collect();
    let to: BTreeSet<_> = new.map(|new| texts(new, "required")).unwrap_or_default().into_iter().collect();
    let added: Vec<_> = to.difference(&from).copied().collect();
    if !added.is_empty() {
        refuse("required", "required", format!("`{}` is now required", added.join("`, `")));
    }
    for (names, is_maximum) in [(MAXIMA, true), (MINIMA, false)] {
        for name in names {
            match (number(old, name), new.and_then(|new| number(new, name))) {
                (None, Some(to)) => refuse(name, name, format!("`{name}` {to} is new")),
                (Some(from), Some(to)) if (is_maximum && to < from) || (!is_maximum && to > from) => {
                    refuse(name, name, format!("`{name}` {from} becomes {to}"));
                }
                _ => {}
            }
        }
    }
    let (from, to) = (text(old, "pattern"), new_text("pattern"));
    if from != to {
        refuse("pattern", "pattern", becomes("pattern", from, to));
    }
    let (from, to) = (is_true(old, "nullable"), new.is_some_and(|new| is_true(new, "nullable")));
    if from != to {
        let about = if to { "null is allowed now" } else { "null is no longer allowed" };
        refuse("nullable", "nullable", about.to_owned());
    }
    alternatives(old, new, &mut refuse);
}

/// `oneOf` is compared as a set of schemas by what they admit; their words do not count.
fn alternatives(
    old: &Node<'_>,
    new: Option<&Node<'_>>,
    refuse: &mut impl FnMut(&'static str, &'static str, String),
) {
    let of = |node: &Node<'_>| {
        list(node, "oneOf").iter().map(|one| wordless(one).to_string()).collect::<BTreeSet<_>>()
    };
    let (from, to) = (of(old), new.map(of).unwrap_or_default());
    if from != to {
        let about = match (from.is_empty(), to.is_empty()) {
            (true, _) => "`oneOf` is new",
            (_, true) => "`oneOf` is removed",
            _ => "`oneOf` has other alternatives",
        };
        refuse("oneOf", "oneOf", about.to_owned());
    }
}

/// A schema without its documentation.
pub(super) fn wordless(schema: &Node<'_>) -> serde_json::Value {
    fn strip(value: serde_json::Value, is_map: bool) -> serde_json::Value {
        match value {
            serde_json::Value::Object(map) => {
                let mut sorted = BTreeMap::new();
                for (key, value) in map {
                    if !is_map && WORDS.contains(&key.as_str()) {
                        continue;
                    }
                    let below =
                        !is_map && matches!(key.as_str(), "properties" | "patternProperties" | "definitions");
                    let value = if matches!(key.as_str(), "default" | "enum") && !is_map {
                        value
                    } else {
                        strip(value, below)
                    };
                    sorted.insert(key, value);
                }
                sorted.into_iter().collect::<serde_json::Map<_, _>>().into()
            }
            serde_json::Value::Array(items) => items.into_iter().map(|item| strip(item, false)).collect(),
            other => other,
        }
    }
    strip(schema.to_json(), false)
}

/// Fields of a schema that say nothing about what it admits.
const WORDS: &[&str] = &["description", "title", "example", "externalDocs"];

/// What no check looks at: the first field of it, what to say, and all values.
fn unhandled(old: &Node<'_>, new: Option<&Node<'_>>) -> Option<(&'static str, String, String)> {
    let mut changed: Vec<(&'static str, String)> = Vec::new();
    let names = [Some(old), new].into_iter().flatten().filter_map(Node::as_mapping).flatten();
    let names: BTreeSet<&str> = names.map(|entry| entry.key.as_ref()).collect();
    for name in names {
        if HANDLED.contains(&name) {
            continue;
        }
        let Some(known) = SCHEMA.fields.iter().find(|field| field.name == name) else { continue };
        let (from, to) = (old.get(name), new.and_then(|new| new.get(name)));
        if !same_field(name, from, to) {
            let show =
                |value: Option<&Node<'_>>| value.map_or(String::new(), |value| value.to_json().to_string());
            changed.push((known.name, format!("{} -> {}", show(from), show(to))));
        }
    }
    let (first, _) = changed.first()?;
    let names: Vec<_> = changed.iter().map(|(name, _)| *name).collect();
    let values: Vec<_> = changed.iter().map(|(_, values)| values.as_str()).collect();
    Some((
        first,
        format!("`{}` changes, which no OLM v1 check covers", names.join("`, `")),
        values.join("; "),
    ))
}

fn becomes(what: &str, from: &str, to: &str) -> String {
    match (from, to) {
        ("", to) => format!("the {what} `{to}` is new"),
        (from, "") => format!("the {what} `{from}` is removed"),
        (from, to) => format!("the {what} `{from}` becomes `{to}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::compare_versions;

    #[test]
    fn versions_are_ordered_as_kubernetes_does() {
        let mut versions = ["v2", "v1", "v10", "v1beta1", "v1alpha2", "v2alpha1", "foo1", "foo10", "v1beta2"];
        versions.sort_by(|a, b| compare_versions(a, b));
        assert_eq!(
            versions,
            ["foo10", "foo1", "v1alpha2", "v2alpha1", "v1beta1", "v1beta2", "v1", "v2", "v10"]
        );
    }
}
