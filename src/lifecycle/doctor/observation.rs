//! The objects of one moment, and what could not be looked at.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::clock::Clock;
use super::doc::Doc;
use super::stored::Stored;
use crate::moment;

/// The kinds that causes are read from.
pub(super) const KINDS: [&str; 11] = [
    "Subscription",
    "OperatorGroup",
    "CatalogSource",
    "InstallPlan",
    "ClusterServiceVersion",
    "OperatorCondition",
    "Job",
    "ConfigMap",
    "Deployment",
    "Pod",
    "Event",
];

/// The kinds besides that mean something by being absent.
const ALSO_COMPLETE: [&str; 2] = ["CustomResourceDefinition", "Namespace"];

/// Something that could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotSeen {
    /// What: a kind, or a file.
    pub what: String,
    /// Why not.
    pub why: String,
}

/// What is known of a cluster at one moment.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// The moment, in milliseconds since 1970.
    now: i64,
    /// When a recording began.
    origin: i64,
    /// The moment of the first line of a recording without its beginning: what existed before may not be in it.
    known_since: Option<i64>,
    /// The times that were mentioned by what is not kept whole.
    clock: Clock,
    /// Whether somebody collected it once: nobody can look again.
    is_collected: bool,
    /// Whether other namespaces were looked at for operators that provide the same APIs.
    is_everywhere: bool,
    /// The objects by kind, namespace and name.
    objects: BTreeMap<String, BTreeMap<(String, String), Stored>>,
    /// The kinds that were looked at: that an object of them is not there means that it does not exist.
    looked_at: BTreeSet<String>,
    /// What could not be looked at.
    not_seen: BTreeSet<NotSeen>,
    /// The kinds of which only a part was read, and the files that end too early.
    cut: BTreeMap<String, BTreeSet<String>>,
}

impl Observation {
    /// An observation with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that there is at a moment, written as Kubernetes does.
    pub fn complete(objects: impl IntoIterator<Item = Value>, now: &str) -> Self {
        let mut seen = Self::new();
        objects.into_iter().for_each(|object| seen.add(object));
        KINDS.iter().chain(&ALSO_COMPLETE).for_each(|kind| seen.look_at(*kind));
        seen.look_everywhere();
        seen.now = moment::parse(now).unwrap_or_default();
        seen
    }

    /// Adds an object; of two of one name the one with the higher resource version stays.
    pub fn add(&mut self, object: Value) {
        if let Some((kind, name)) = self.named(&object) {
            self.insert(kind, name, Stored::whole(object));
        }
    }

    /// As [`Observation::add`], of one object of many: it takes less memory until it is looked at.
    pub(super) fn pack(&mut self, object: &Value) {
        if let Some((kind, name)) = self.named(object) {
            self.insert(kind, name, Stored::packed(object));
        }
    }

    fn insert(&mut self, kind: String, name: (String, String), object: Stored) {
        self.looked_at.insert(kind.clone());
        let of_kind = self.objects.entry(kind).or_default();
        if of_kind.get(&name).is_none_or(|known| !known.is_newer_than(&object)) {
            of_kind.insert(name, object);
        }
    }

    /// Kind, and namespace and name, of an object that has them.
    fn named(&mut self, object: &Value) -> Option<(String, (String, String))> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
        let (kind, namespace, name) = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        if kind.is_empty() || name.is_empty() {
            return None;
        }
        if !is_name(&name) || !is_name(&namespace) {
            let what = format!("{kind} `{}`", name.escape_debug());
            self.miss(what, "Kubernetes allows no such name");
            return None;
        }
        Some((kind, (namespace, name)))
    }

    /// Adds an object without a claim that all objects of its kind are there; it replaces one of its name.
    pub(super) fn put(&mut self, object: Value) {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
        let (kind, name) = (text("/kind"), (text("/metadata/namespace"), text("/metadata/name")));
        self.objects.entry(kind).or_default().insert(name, Stored::whole(object));
    }

    /// Whether a kind could not be listed.
    pub(super) fn may_not_list(&self, kind: &str) -> bool {
        !self.looked_at(kind) && self.not_seen.iter().any(|one| one.what == kind)
    }

    /// Takes an object away.
    pub fn remove(&mut self, kind: &str, namespace: &str, name: &str) {
        if let Some(of_kind) = self.objects.get_mut(kind) {
            of_kind.remove(&(namespace.to_owned(), name.to_owned()));
        }
    }

    /// An object as a document.
    pub fn document_mut(&mut self, kind: &str, namespace: &str, name: &str) -> Option<&mut Value> {
        self.objects.get_mut(kind)?.get_mut(&(namespace.to_owned(), name.to_owned()))?.value_mut()
    }

    /// Says that all objects of a kind are in the observation.
    pub fn look_at(&mut self, kind: impl Into<String>) {
        self.looked_at.insert(kind.into());
    }

    /// Says that operators of other namespaces that provide the same APIs are in the observation, with all that shows whether they serve.
    pub(super) fn look_everywhere(&mut self) {
        self.is_everywhere = true;
    }

    /// Whether operators of other namespaces would be seen that a change of an OperatorGroup can take down. Where the groups of others
    /// were listed, so were they.
    pub(super) fn knows_others(&self, namespace: &str) -> bool {
        let is_listed = ["ClusterServiceVersion", "Deployment"].iter().all(|kind| self.looked_at(kind));
        self.is_everywhere
            || is_listed && self.of("OperatorGroup").any(|group| group.namespace() != namespace)
    }

    /// Says that something could not be looked at.
    pub fn miss(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.not_seen.insert(NotSeen { what: what.into(), why: why.into() });
    }

    /// Sets the moment, in milliseconds since 1970, and when a recording began.
    pub fn at(&mut self, now: i64, origin: i64) {
        (self.now, self.origin) = (now, origin);
    }

    /// Says that the beginning of a recording is missing, up to a moment in milliseconds since 1970: nothing is concluded from an
    /// object that is absent.
    pub(super) fn lacks_beginning(&mut self, known_since: i64) {
        if self.known_since.replace(known_since).is_none() {
            self.cut_off("the recording", &BTreeSet::new());
            self.miss(
                "the beginning of the recording",
                "it is missing, for an object is changed that was never added: an object that is not in the recording may exist, \
and nothing is concluded from its absence",
            );
        }
    }

    /// Whether the beginning of the recording is missing.
    pub(super) fn is_late(&self) -> bool {
        self.known_since.is_some()
    }

    /// Sets the moment to the newest time that objects mention: what was collected is as old as that.
    pub fn at_newest(&mut self) {
        let mut clock = self.clock.clone();
        // What was packed has been mentioned.
        let whole = self.objects.values().flat_map(BTreeMap::values).filter(|one| one.is_whole());
        whole.for_each(|one| clock.add(one.value()));
        self.now = clock.newest();
    }

    /// Says that this is all that was collected, at the newest time in it.
    pub fn collected(&mut self) {
        self.is_collected = true;
        self.at_newest();
        if self.now == 0 && !self.is_empty() {
            self.miss(
                "times",
                "no object says when it was created or changed, so how long a state has lasted is unknown",
            );
        }
    }

    /// Whether nobody can look again.
    pub(super) fn is_collected(&self) -> bool {
        self.is_collected
    }

    /// Remembers the times that an object mentions, before a part of it is left out.
    pub(super) fn mentions(&mut self, object: &Value) {
        self.clock.add(object);
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.values().map(BTreeMap::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The moment.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// The milliseconds that have passed since a moment. A long time when it is not known; in a recording without its beginning, the
    /// time for which it is known.
    pub(super) fn age(&self, since: Option<i64>) -> i64 {
        since.or(self.known_since).map_or(i64::MAX, |since| self.now - since)
    }

    /// Whether a state has lasted for longer than a limit; one of unknown age has not.
    pub(super) fn has_lasted(&self, since: Option<i64>, limit: i64) -> bool {
        since.is_some_and(|since| self.now - since > limit)
    }

    /// A moment as it is told.
    pub(super) fn relative(&self, at: i64) -> i64 {
        at - self.origin
    }

    /// Whether all objects of a kind are there.
    pub fn looked_at(&self, kind: &str) -> bool {
        self.looked_at.contains(kind) && !self.cut.contains_key(kind)
    }

    /// Says that objects of some kinds are missing, because only a part of a file was read; of none for any kind.
    pub fn cut_off(&mut self, file: &str, kinds: &BTreeSet<String>) {
        let all = KINDS.iter().chain(&ALSO_COMPLETE).map(|kind| (*kind).to_owned());
        let doubtful: Vec<String> =
            if kinds.is_empty() { all.collect() } else { kinds.iter().cloned().collect() };
        for kind in doubtful {
            self.cut.entry(kind).or_default().insert(file.to_owned());
        }
    }

    /// The files of which only a part was read, with objects of a kind in them.
    pub(super) fn cut_files(&self, kind: &str) -> impl Iterator<Item = &str> {
        self.cut.get(kind).into_iter().flatten().map(String::as_str)
    }

    pub(super) fn not_seen(&self) -> Vec<NotSeen> {
        let missing = KINDS.iter().filter(|kind| !self.looked_at(kind) && !self.is_late());
        let missing = missing.map(|kind| NotSeen {
            what: (*kind).to_owned(),
            why: match self.objects.get(*kind).is_some_and(|all| !all.is_empty()) {
                true => "objects of this kind may be missing, and causes that only they show are not found",
                false => "no object of this kind was given, and causes that only it shows are not found",
            }
            .to_owned(),
        });
        let told: Vec<&str> = self.not_seen.iter().map(|one| one.what.as_str()).collect();
        let missing: Vec<NotSeen> = missing.filter(|one| !told.contains(&one.what.as_str())).collect();
        self.not_seen.iter().cloned().chain(missing).collect()
    }

    /// Every object.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.objects.values().flat_map(BTreeMap::values).map(Stored::value)
    }

    /// The namespaces of all objects.
    pub fn namespaces(&self) -> BTreeSet<&str> {
        self.objects.values().flat_map(BTreeMap::keys).map(|(namespace, _)| namespace.as_str()).collect()
    }

    /// The objects of a kind.
    pub fn of(&self, kind: &str) -> impl Iterator<Item = Doc<'_>> {
        self.objects.get(kind).into_iter().flat_map(BTreeMap::values).map(|one| Doc(one.value()))
    }

    /// The objects of a kind in a namespace.
    pub fn within<'o>(&'o self, kind: &str, namespace: &str) -> impl Iterator<Item = Doc<'o>> {
        let first = (namespace.to_owned(), String::new());
        let namespace = namespace.to_owned();
        let of_kind = self.objects.get(kind);
        of_kind
            .into_iter()
            .flat_map(move |all| all.range(first.clone()..))
            .take_while(move |((found, _), _)| *found == namespace)
            .map(|(_, object)| Doc(object.value()))
    }

    /// An object.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Doc<'_>> {
        self.objects.get(kind)?.get(&(namespace.to_owned(), name.to_owned())).map(|one| Doc(one.value()))
    }
}

/// Whether a name has only characters that Kubernetes allows: it is printed in commands for a shell.
fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':' | b'@'))
}
